/* The computation graph: values and nodes in regions, looked at and changed through 32-bit handles.

   Handles are small structs; id 0 is the null handle. Ids are never reused within a graph: a removed node or value reads as
   dead, and using it in a building or changing call is an error.
   Errors are sticky: the first wrong building or changing call leaves its error on the graph, answers a null handle (or the
   status), and later building calls on the graph do nothing and answer null. Check once with tn_graph_check.
   A graph is not thread safe while it changes; a frozen graph may be read by many threads. */
#ifndef TENON_GRAPH_H
#define TENON_GRAPH_H

#include <tenon/dim.h>
#include <tenon/tensor.h>

TN_BEGIN_DECLS

typedef struct tn_value {
    uint32_t id;
} tn_value;
typedef struct tn_node {
    uint32_t id;
} tn_node;
typedef struct tn_region {
    uint32_t id;
} tn_region;
typedef struct tn_type {
    uint32_t id;
} tn_type; /* interned; equal ids are equal types; id 0: unknown */

/* What a node is for; passes keep it. */
typedef enum tn_role {
    TN_ROLE_FORWARD,
    TN_ROLE_GRADIENT,
    TN_ROLE_OPTIMIZER,
    TN_ROLE_STATISTICS,
    TN_ROLE_DEBUG /* print, assert: stripped by one pass */
} tn_role;

/* An empty graph on the default heap (or `heap`), with all of Tenon's operators. NULL when out of memory. */
TN_API tn_graph *tn_graph_create(void);
TN_API tn_graph *tn_graph_create_in(tn_heap *heap);
TN_API void tn_graph_destroy(tn_graph *graph);
/* A compacted copy: dead nodes and values are left out. `value_map`/`node_map`, if not NULL, receive arrays (index: old id,
   element: new id or 0) to be freed with tn_graph_free_map. The copy is not frozen. */
TN_API tn_graph *tn_graph_clone(const tn_graph *graph, uint32_t **value_map, uint32_t **node_map);
TN_API void tn_graph_free_map(const tn_graph *graph, uint32_t *map);
/* TN_OK, or the first error left on the graph, which becomes the thread's error (its `where` names the caller's file and line). */
TN_API tn_status tn_graph_check(const tn_graph *graph);
/* From now on changing calls fail with TN_ERR_USAGE. A session freezes the graph it holds. */
TN_API void tn_graph_freeze(tn_graph *graph);
TN_API bool tn_graph_is_frozen(const tn_graph *graph);
/* Checks every numbered rule of docs/verifier.md over the whole graph; the first broken one is TN_ERR_MODEL ("rule 7: ..."). */
TN_API tn_status tn_graph_verify(const tn_graph *graph);
/* The text form, and a graph from it. The text is a heap string of the graph's heap: free with tn_graph_free_text. */
TN_API char *tn_graph_print(const tn_graph *graph);
TN_API void tn_graph_free_text(const tn_graph *graph, char *text);
TN_API tn_graph *tn_graph_parse(tn_heap *heap, const char *text, size_t length);
/* Saves a graph that verifies: the binary form where the path ends in ".tenon", the text form where it ends in ".txt", an ONNX model
   where it ends in ".onnx" (else TN_ERR_USAGE). The file appears whole or not at all and replaces what is at `path`; a link there
   is replaced, not followed. tn_model_load reads all three. A file that the graph's constants are mapped from may be saved over.
   ONNX: nodes that were read from ONNX are written as they were; primitives and composites become the operators that mean the same
   (TN_ERR_UNSUPPORTED names what has none). A model that is larger than 2 GiB, or was read with external data, has its large tensors
   in a second file, PATH.data. */
TN_API tn_status tn_graph_save(const tn_graph *graph, const char *path);
typedef struct tn_save_options {
    size_t size; /* set by TN_OPTIONS */
    /* Of ONNX models: */
    int opset; /* version of the standard operators; 0: the graph's own, at least TN_OPSET_DEFAULT where primitives become
                           operators. A step that would change what is computed is TN_ERR_UNSUPPORTED and named. */
    bool external_data; /* tensors of 1 KiB and more go to PATH.data, whatever the size */
    bool standard_only; /* refuse operators that are not the standard's, and functions */
} tn_save_options;
#define TN_OPSET_DEFAULT 18
TN_API tn_status tn_graph_save_as(const tn_graph *graph, const char *path, const tn_save_options *options);

/* --- types ---------------------------------------------------------------------------------------------------------- */

/* A tensor type of the graph; rank -1: unranked (dims ignored). */
TN_API tn_type tn_type_tensor(tn_graph *graph, tn_dtype dtype, int rank, const tn_dim *dims);
TN_API tn_type tn_type_sequence(tn_graph *graph, tn_type element);
TN_API tn_type tn_type_optional(tn_graph *graph, tn_type element);
TN_API tn_type tn_type_map(tn_graph *graph, tn_dtype key, tn_type value);
TN_API tn_kind tn_type_kind(const tn_graph *graph, tn_type type);
TN_API tn_dtype tn_type_dtype(const tn_graph *graph, tn_type type);     /* of a tensor; a map: its key */
TN_API int tn_type_rank(const tn_graph *graph, tn_type type);           /* -1: unranked or not a tensor */
TN_API const tn_dim *tn_type_dims(const tn_graph *graph, tn_type type); /* valid until the graph changes */
TN_API tn_type tn_type_element(const tn_graph *graph, tn_type type);

/* --- looking --------------------------------------------------------------------------------------------------------- */

TN_API tn_region tn_graph_region(const tn_graph *graph); /* the main region */
TN_API uint32_t tn_graph_input_count(const tn_graph *graph);
TN_API tn_value tn_graph_input(const tn_graph *graph, uint32_t index);
TN_API uint32_t tn_graph_output_count(const tn_graph *graph);
TN_API tn_value tn_graph_output(const tn_graph *graph, uint32_t index);
TN_API const char *tn_graph_output_name(const tn_graph *graph, uint32_t index);
/* The default of an input (models that list initializers as inputs), or NULL. Borrowed. */
TN_API tn_tensor *tn_graph_input_default(const tn_graph *graph, tn_value input);
/* The first value of this name in the main region (inputs first), or null. */
TN_API tn_value tn_graph_find_value(const tn_graph *graph, const char *name);

/* Nodes of a region in order; each value is defined before it is used. The last node is the region's `return`. */
TN_API tn_node tn_region_first(const tn_graph *graph, tn_region region);
TN_API tn_node tn_region_last(const tn_graph *graph, tn_region region);
TN_API tn_node tn_node_next(const tn_graph *graph, tn_node node);
TN_API tn_node tn_node_previous(const tn_graph *graph, tn_node node);
TN_API uint32_t tn_region_arg_count(const tn_graph *graph, tn_region region);
TN_API tn_value tn_region_arg(const tn_graph *graph, tn_region region, uint32_t index);
TN_API uint32_t tn_region_result_count(const tn_graph *graph, tn_region region); /* operands of its return */
TN_API tn_value tn_region_result(const tn_graph *graph, tn_region region, uint32_t index);
TN_API tn_node tn_region_owner(const tn_graph *graph, tn_region region); /* null: main region or a function */

TN_API bool tn_node_is_alive(const tn_graph *graph, tn_node node);
TN_API const char *tn_node_op_name(const tn_graph *graph, tn_node node); /* "add"; "onnx.Conv" */
TN_API uint32_t tn_node_input_count(const tn_graph *graph, tn_node node);
TN_API tn_value tn_node_input(const tn_graph *graph, tn_node node, uint32_t index); /* null: absent, or no such index */
TN_API uint32_t tn_node_output_count(const tn_graph *graph, tn_node node);
TN_API tn_value tn_node_output(const tn_graph *graph, tn_node node, uint32_t index);
TN_API uint32_t tn_node_region_count(const tn_graph *graph, tn_node node);
TN_API tn_region tn_node_region(const tn_graph *graph, tn_node node, uint32_t index);
TN_API tn_region tn_node_parent(const tn_graph *graph, tn_node node); /* the region it stands in */
TN_API const char *tn_node_name(const tn_graph *graph, tn_node node); /* label; may be "" */
TN_API tn_role tn_node_role(const tn_graph *graph, tn_node node);
/* Where it came from: origins, oldest first ("Conv 'conv1' (model.onnx)", "app.c:12"), each written to `text`. */
TN_API uint32_t tn_node_origin_count(const tn_graph *graph, tn_node node);
TN_API const char *tn_node_origin(const tn_graph *graph, tn_node node, uint32_t index, char *text, size_t size);

TN_API bool tn_value_is_alive(const tn_graph *graph, tn_value value);
TN_API tn_type tn_value_type(const tn_graph *graph, tn_value value);
TN_API tn_dtype tn_value_dtype(const tn_graph *graph, tn_value value);
TN_API int tn_value_rank(const tn_graph *graph, tn_value value);             /* -1: unranked or not a tensor */
TN_API tn_dim tn_value_dim(const tn_graph *graph, tn_value value, int axis); /* negative: from the end */
TN_API const char *tn_value_name(const tn_graph *graph, tn_value value);     /* label; may be "" */
TN_API tn_node tn_value_producer(const tn_graph *graph, tn_value value);     /* null for region arguments */
TN_API uint32_t tn_value_use_count(const tn_graph *graph, tn_value value);
/* "%5 'conv1' f32[N, 64, 56, 56]" for messages. Returns text. */
TN_API const char *tn_value_describe(const tn_graph *graph, tn_value value, char *text, size_t size);
/* Uses, in no particular order: for (tn_use u = tn_value_first_use(g, v); u.node.id; u = tn_use_next(g, u)) */
typedef struct tn_use {
    tn_node node;
    uint32_t input; /* which input of the node */
    uint32_t link;  /* internal */
} tn_use;
TN_API tn_use tn_value_first_use(const tn_graph *graph, tn_value value);
TN_API tn_use tn_use_next(const tn_graph *graph, tn_use use);

/* --- changing -------------------------------------------------------------------------------------------------------- */

/* Every use of `from` becomes a use of `to` (types must agree; null `to` is an error). */
TN_API tn_status tn_value_replace_uses(tn_graph *graph, tn_value from, tn_value to);
TN_API tn_status tn_node_set_input(tn_graph *graph, tn_node node, uint32_t index, tn_value value);
/* Removes a node whose outputs have no uses, its regions with it. */
TN_API tn_status tn_node_remove(tn_graph *graph, tn_node node);
TN_API tn_status tn_value_set_name(tn_graph *graph, tn_value value, const char *name);
TN_API tn_status tn_node_set_name(tn_graph *graph, tn_node node, const char *name);
TN_API tn_status tn_node_set_role(tn_graph *graph, tn_node node, tn_role role);
/* An ordering edge without data: `node` runs after `before`. */
TN_API tn_status tn_node_add_control(tn_graph *graph, tn_node node, tn_node before);
TN_API uint32_t tn_node_control_count(const tn_graph *graph, tn_node node);
TN_API tn_node tn_node_control(const tn_graph *graph, tn_node node, uint32_t index);
/* Sets the caller's position (recorded as origin of the nodes built next); answers `graph`. The builders' macros call it. */
TN_API tn_graph *tn_at(tn_graph *graph, const char *file, int line);
/* New nodes are put before `node` (or, with null, at the end of `region`, before its return). */
TN_API void tn_graph_insert_before(tn_graph *graph, tn_node node);
TN_API void tn_graph_insert_at_end(tn_graph *graph, tn_region region);

TN_END_DECLS
#endif
