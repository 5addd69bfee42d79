/* Shared by the files that read models. */
#ifndef TN_ONNX_READER_H
#define TN_ONNX_READER_H

#include "onnx/model.h"
#include "onnx/op.h"
#include "onnx/tensor_proto.h"

typedef struct tn_slice_vec {
    tn_slice *data;
    uint32_t len, cap;
} tn_slice_vec;

/* Names visible in one graph: string id -> value id. */
typedef struct tn_onnx_scope {
    struct tn_onnx_scope *outer;
    tn_map names;
} tn_onnx_scope;

typedef struct tn_onnx_file {
    uint32_t location; /* string id */
    tn_mapping *mapping;
    tn_slice bytes;
} tn_onnx_file;

typedef struct tn_onnx_reader {
    tn_heap *heap;
    tn_graph *graph;
    tn_onnx_source source;
    const char *file;   /* for origins; "" when in memory */
    const char *folder; /* external data lies in it; NULL: in memory */
    tn_onnx_external *external;
    void *external_ctx;
    TN_VEC(tn_onnx_file) files; /* external data opened so far */
    int64_t ir_version;
    tn_map model_opsets; /* domain's string id -> version */
    tn_map opsets;       /* the same for the function being read */
    bool in_function;
    const struct tn_slice_vec *defaults; /* attributes of the function being read that have defaults */
    int depth;                           /* of graphs in graphs */
    tn_map declared;                     /* metadata key's string id -> its index: types that the file declares */
    tn_map unknown_ops;                  /* full name's string id -> const tn_op * */
    tn_onnx_scope *scope;
    tn_text warnings;
} tn_onnx_reader;

/* The id of a name in the graph's strings. Names with a NUL in them are refused. False with the error set. */
bool tn_onnx_name(tn_onnx_reader *r, tn_slice text, uint32_t *id);
static inline const char *tn_onnx_text(const tn_onnx_reader *r, uint32_t id) {
    return tn_strings_text(&r->graph->strings, id);
}
/* Reads a TypeProto; id 0 when it says nothing. */
tn_status tn_onnx_read_type(tn_onnx_reader *r, tn_slice message, int depth, tn_type *type);
/* ValueInfoProto: name and type message (data NULL: none). */
tn_status tn_onnx_read_value_info(tn_slice message, tn_slice *name, tn_slice *type);
/* A TypeProto as text ("f32[N,?,3]", "seq(f32[*])"); nothing when it says nothing. */
tn_status tn_onnx_print_type(tn_slice message, int depth, tn_text *out);
/* Notes what the file declares about a value, as TN_META_TYPE; `sparse_only`: where it speaks of sparse tensors, which the graph's types do
   not. */
tn_status tn_onnx_declare(tn_onnx_reader *r, uint32_t name, tn_slice type, bool sparse_only);

/* Fills order[count] so that every node comes after those it reads, otherwise as in the file. Refuses values made twice and
   cycles, by name; of two Constant nodes for one value the last one is kept. *kept: the nodes in `order`. */
tn_status tn_onnx_order(tn_onnx_reader *r, const tn_slice *nodes, uint32_t count, uint32_t *order, uint32_t *kept);

/* Appends the fields of a message whose numbers are in the list (ended by 0; `others`: those that are not) as they stand. */
tn_status tn_onnx_keep_fields(tn_slice message, const uint8_t *numbers, bool others, tn_text *out);
/* Metadata PREFIX NAME. */
tn_status tn_onnx_set_prefixed(tn_onnx_reader *r, const char *prefix, tn_slice name, tn_slice value);
/* Keeps a text as metadata PREFIX NAME when it is not empty; frees it in any case. */
tn_status tn_onnx_keep(tn_onnx_reader *r, const char *prefix, const char *name, tn_text *text);

/* What writing a graph attribute back needs, of its message: the values of "__graph:NAME" and "__graph_kept:NAME" (perhaps empty), in
   `scratch`. */
tn_status tn_onnx_keep_graph(tn_onnx_reader *r, tn_slice message, tn_arena *scratch, tn_attr *list, tn_attr *kept);

/* Reads a GraphProto into a region (empty, without a return yet); the main graph's outputs become the graph's. */
tn_status tn_onnx_read_graph(tn_onnx_reader *r, tn_slice message, tn_region region, bool main);
/* Reads nodes into a region, in their right order. */
tn_status tn_onnx_read_nodes(tn_onnx_reader *r, const tn_slice_vec *nodes, tn_region region);
/* Adds one node at the insertion point and its outputs to the scope. */
tn_status tn_onnx_read_node(tn_onnx_reader *r, tn_slice message);

/* Scopes: looking a name up through all of them; adding one, refused when this scope has it ("made twice"). */
bool tn_onnx_lookup(const tn_onnx_reader *r, uint32_t name, tn_value *value);
tn_status tn_onnx_bind(tn_onnx_reader *r, uint32_t name, tn_value value);

/* Values that regions read from outside them, each once, in the order they are met. */
typedef TN_VEC(tn_value) tn_value_vec;
tn_status tn_onnx_captures(const tn_graph *graph, uint32_t count, const tn_region *regions, tn_heap *heap,
                           tn_value_vec *out);

/* The operator set version of a domain where we are; TN_ERR_MODEL when it is not imported. */
tn_status tn_onnx_opset(tn_onnx_reader *r, const char *domain, int *version);

#endif
