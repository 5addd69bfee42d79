/* Reading ONNX models into graphs of onnx.* nodes, and turning those into primitives.

   A loaded graph keeps what is needed to write it back: metadata under the keys below, model-local functions as functions of the
   graph ("domain.Name", or "domain.Name:overload"), and on nodes, beside the attributes of the file, these of our own:
     __opset     INT     the operator set version of the node's domain, where it is not the model's (in functions)
     __overload  STRING  of a call
     __regions   STRING  names of the graph attributes of an operator that is not known, in the order of the regions
     __ref:NAME  STRING  in functions: the caller's attribute that NAME stands for (NAME itself, if there, is the default)
     __type:NAME INT     beside it: the attribute's type (AttributeProto.AttributeType)
     __doc       STRING  doc_string
     __kept      STRING  other fields of the node's message, as they stand in the file
     __graph:NAME  STRINGS  of a graph attribute: its name; "VALUE: TYPE" for each value whose type it declares
     __graph_kept:NAME  STRING  other fields of that graph's message
     __captures  INT     nodes with regions: so many inputs at the end are not the operator's, but what the regions read from outside
                         (and, of nodes that draw random numbers in a loop, what tells the trip) */
#ifndef TN_ONNX_MODEL_H
#define TN_ONNX_MODEL_H

#include "base/buffer.h"
#include "ir/graph.h"

/* Metadata keys. Prefixes end with ':' and are followed by a domain, a key, a value's name. */
#define TN_META_IR_VERSION "ir_version"
#define TN_META_PRODUCER "producer_name"
#define TN_META_PRODUCER_VERSION "producer_version"
#define TN_META_DOMAIN "domain"
#define TN_META_MODEL_VERSION "model_version"
#define TN_META_DOC "doc_string"
#define TN_META_GRAPH_NAME "graph_name"
#define TN_META_GRAPH_DOC "graph_doc"
#define TN_META_FILE "file"
#define TN_META_OPSET "opset:" /* "opset:ai.onnx" -> "17" */
#define TN_META_PROP "prop:"   /* metadata_props */
#define TN_META_TYPE \
    "declared:" /* type the file declares for an inner value or output of the main graph: "f32[1,N,?]", "seq(f32[*])"; and for an input
                   where it is or holds a sparse tensor: "sparse(f32[1,N])" */
#define TN_SPARSE_TYPE "sparse(" /* in such a text; the graph's own type is the dense tensor's */
/* Kept for writing back, as they stand in the file: fields of messages (wire format), where there are any. */
#define TN_META_KEPT_MODEL "kept:model"
#define TN_META_KEPT_GRAPH "kept:graph"
#define TN_META_INFO "info:"             /* of the description of a value of the main graph, beside name and type */
#define TN_META_FUNCTION "function:"     /* of a function: all but inputs, outputs and nodes */
#define TN_META_SPARSE "sparse:"         /* an initializer that was sparse */
#define TN_META_EXTERNAL "external_data" /* the model has some: where the first lies */
#define TN_META_WARNINGS "warnings"      /* lines */

#define TN_ONNX_IR_OLDEST 1
#define TN_ONNX_IR_NEWEST 14

typedef struct tn_onnx_options {
    tn_heap *heap;         /* NULL: the default heap */
    uint64_t max_bytes;    /* of tensor data and file together; 0: no limit */
    uint64_t max_nodes;    /* after functions are inlined; 0: TN_ONNX_MAX_NODES */
    bool copy;             /* copies weights out of the files, which may then change or vanish */
    struct tn_op_set *ops; /* users' operators; NULL: none */
} tn_onnx_options;
#define TN_ONNX_MAX_NODES 1000000

/* A graph of onnx.* nodes over the mapped file. NULL with the error set; `where` names the file and node. */
tn_graph *tn_onnx_load_file(const char *path, const tn_onnx_options *options);

/* External data for models in memory: fills bytes and size (which must stay as they are until loading ends: they are copied).
   `location` is what the model says, not to be trusted as a path. */
typedef tn_status tn_onnx_external(void *ctx, const char *location, const void **bytes, size_t *size);
/* The same from memory, which is copied from. `external` NULL: external data is refused. */
tn_graph *tn_onnx_load_memory(const void *bytes, size_t size, tn_onnx_external *external, void *ctx,
                              const tn_onnx_options *options);

/* Appends a line for each operator of the graph that nothing can expand: name, domain, version, nodes. Empty: all are known. */
tn_status tn_onnx_list_unsupported(tn_graph *graph, tn_text *out, uint32_t *count);

/* Makes constants of the inputs that have a default (initializers listed among the inputs), except of those that will be fed:
   call it before tn_onnx_expand, on a copy for each set of fed inputs. Such an input stays an input, without uses. Without this
   call the weights of models of IR version 3 are not constants, and shapes that depend on them are known at run time only. */
tn_status tn_onnx_use_defaults(tn_graph *graph, uint32_t n_fed, const tn_value *fed);

/* Turns onnx.* nodes into primitives, in place, functions inlined. Nodes that need to know more than can be known before run
   time stay: they are expanded when they run. max_nodes as in the options. TN_ERR_UNSUPPORTED lists all operators that are not
   supported; TN_ERR_LIMIT, values of TN_ONNX_MAX_VALUE bytes or more. What a file declares and inference contradicts becomes a line of TN_META_WARNINGS; inference wins. */
tn_status tn_onnx_expand(tn_graph *graph, uint64_t max_nodes);
/* Puts the nodes of model-local functions in place of their calls, and nothing else: what the interpreter runs knows no functions. */
tn_status tn_onnx_inline_calls(tn_graph *graph, uint64_t max_nodes);
/* The same for a graph that will be written as an ONNX model: nodes whose primitives no operator computes to the last bit stay as
   they are, with the types that are known. */
tn_status tn_onnx_expand_writable(tn_graph *graph, uint64_t max_nodes);
/* Gives random nodes their seeds, as tn_onnx_expand does: before nodes are taken away whose names decide them, too. */
tn_status tn_onnx_give_seeds(tn_graph *graph);
/* Expands a graph that is thrown away afterwards, to learn why one of the nodes that `nodes` names (lines "from ORIGIN", as errors have
   them, among others) does not take what its inputs are: the error of the first that does not. TN_OK: nothing is to be said against
   them. Other nodes may fail. NULL: why any node does not. */
tn_status tn_onnx_explain(tn_graph *graph, const char *nodes);
#define TN_ONNX_MAX_VALUE ((uint64_t)1 << 40)

#endif
