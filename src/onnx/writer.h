/* Shared by the files that write models. A graph is written that holds onnx.* nodes and constants only: as it was read, or made so
   by primitives becoming operators (contract.h). */
#ifndef TN_ONNX_WRITER_H
#define TN_ONNX_WRITER_H

#include "onnx/model.h"
#include "onnx/op.h"
#include "onnx/wire_write.h"

/* A tensor whose bytes go to the data file. */
typedef struct tn_onnx_outside {
    const tn_tensor *tensor;
    uint64_t offset;
} tn_onnx_outside;

typedef struct tn_onnx_writer {
    tn_heap *heap;
    const tn_graph *graph;
    bool as_read;          /* names stand as a file gave them, also where an inner graph uses one again */
    tn_arena arena;        /* names */
    const char **name;     /* by value id; "" where nothing needs one, NULL: none yet */
    const char *data_name; /* location of external data; NULL: all is inside */
    uint64_t data_size;    /* of the data file so far */
    tn_map placed;         /* address of a tensor's bytes -> index in `outside` */
    TN_VEC(tn_onnx_outside) outside;
    TN_VEC(tn_tensor *) owned; /* made for writing */
    tn_map declared;           /* string id of a key -> index in graph->metadata */
} tn_onnx_writer;

/* Tensors of fewer bytes stay in the model. */
#define TN_ONNX_OUTSIDE_LEAST 1024

/* --- write_name.c: names of values, each once where it is visible --- */
tn_status tn_onnx_name_graph(tn_onnx_writer *w);
/* Names of a function's region. */
tn_status tn_onnx_name_function(tn_onnx_writer *w, tn_region region);
static inline const char *tn_onnx_name_of(const tn_onnx_writer *w, tn_value value) {
    return value.id && w->name[value.id] ? w->name[value.id] : "";
}

/* --- write_type.c --- */
/* A type as text ("f32[1,N,?]", "seq(f32[*])") as a TypeProto in a field of `out`. False when the text is no type. */
bool tn_onnx_write_declared(tn_onnx_writer *w, const char *text, size_t length, uint32_t field, tn_wire_out *out);
/* A type of the graph; nothing when it is unknown. `text`: what a file declares of it (NULL: nothing), which says more where the
   graph knows a size by no name. */
void tn_onnx_write_type(tn_onnx_writer *w, tn_type type, const char *text, uint32_t field, tn_wire_out *out);
/* What the graph's metadata hold under PREFIX NAME; NULL: nothing, or memory ran out, which `out` tells. */
const char *tn_onnx_kept(const tn_onnx_writer *w, const char *prefix, const char *name, size_t *length,
                         tn_wire_out *out);
/* ValueInfoProto of a value of the main graph, of an inner graph with what the file declared there (may be NULL). */
void tn_onnx_write_value(tn_onnx_writer *w, tn_value value, const char *name, uint32_t field, tn_wire_out *out);

/* --- write_tensor.c --- */
/* TensorProto, SparseTensorProto. `outside`: the bytes may go to the data file. */
tn_status tn_onnx_write_constant(tn_onnx_writer *w, tn_tensor *tensor, const char *name, bool outside, uint32_t field,
                                 tn_wire_out *out);
tn_status tn_onnx_write_sparse(tn_onnx_writer *w, tn_tensor *tensor, const char *name, uint32_t field,
                               tn_wire_out *out);

/* --- write_node.c --- */
/* Domain ("" for ai.onnx) and name of the operator of an onnx.* node. The domain is in the writer's arena. NULL with the error set. */
const char *tn_onnx_write_op(tn_onnx_writer *w, tn_node node, const char **domain);
/* The attribute PREFIX NAME of a node (of our own, model.h), or NULL. */
const tn_attr *tn_onnx_own_attr(const tn_graph *g, tn_node node, const char *prefix, const char *name);
/* The nodes of a region as fields of `out`; constants as initializers, or as nodes where there are none (functions). */
tn_status tn_onnx_write_nodes(tn_onnx_writer *w, tn_region region, bool function, tn_wire_out *out);
/* A constant of a graph, `main` one or inner, as an initializer: sparse where it was. */
tn_status tn_onnx_write_initializer(tn_onnx_writer *w, tn_tensor *tensor, const char *name, bool main,
                                    tn_wire_out *out);

/* --- write_model.c --- */
/* Writes a graph of onnx.* nodes and constants as a model: a file, and beside it PATH.data where the model has external data, is
   asked to, or is larger than a message may be. Both appear whole or not at all. */
tn_status tn_onnx_write_model(const tn_graph *graph, const char *path, bool external_data, bool as_read);
/* The oldest IR version whose models may import operator set `version` of ai.onnx. */
int tn_onnx_ir_of_opset(int version);

/* --- write_graph.c --- */
/* A GraphProto: of a node's graph attribute `name`, or the main graph (node null). */
tn_status tn_onnx_write_graph(tn_onnx_writer *w, tn_region region, tn_node node, const char *name, tn_wire_out *out);
/* Model-local functions. */
tn_status tn_onnx_write_functions(tn_onnx_writer *w, tn_wire_out *out);

#endif
