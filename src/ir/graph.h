/* The graph from the inside: storage, building of nodes, locations, functions. */
#ifndef TN_IR_GRAPH_H
#define TN_IR_GRAPH_H

#include <tenon/graph.h>

#include "base/error.h"
#include "base/map.h"
#include "ir/dim.h"
#include "ir/op.h"

/* Index 0 of every array below is unused: id 0 is null. */

typedef struct tn_type_rec {
    uint8_t kind;     /* tn_kind */
    uint8_t dtype;    /* tensor: element type; map: key */
    int8_t rank;      /* -1: unranked */
    uint32_t dims;    /* range in tn_graph.dim_list */
    uint32_t element; /* type id of a sequence's, optional's, map's element; 0 unknown */
} tn_type_rec;

typedef struct tn_value_rec {
    uint32_t type;
    uint32_t name;      /* string id */
    uint32_t producer;  /* node id, or 0 for an argument of `region` */
    uint32_t region;    /* arguments: their region */
    uint32_t index;     /* which output or argument */
    uint32_t first_use; /* operand id */
    uint32_t use_count;
    uint32_t contents;      /* range in dim_list, of contents_count; */
    int32_t contents_count; /* -1: unknown */
    bool alive;
} tn_value_rec;

typedef struct tn_operand {
    uint32_t value;
    uint32_t node;
    uint32_t next, previous; /* uses of the same value */
} tn_operand;

typedef struct tn_node_rec {
    const tn_op *op;                 /* NULL: removed */
    uint32_t inputs, input_count;    /* range in operand */
    uint32_t outputs, output_count;  /* first value id; contiguous */
    uint32_t regions, region_count;  /* range in region_list */
    uint32_t control, control_count; /* range in control_list (node ids) */
    tn_attr *attrs;                  /* in the arena */
    uint32_t attr_count;
    uint32_t region; /* that it stands in */
    uint32_t next, previous;
    uint64_t order; /* grows along the region's list */
    uint32_t name;
    uint32_t location;  /* id of a location set, 0: none */
    uint16_t placement; /* device index; 0: default */
    uint8_t role;
} tn_node_rec;

typedef struct tn_region_rec {
    uint32_t owner;       /* node, 0: main or function */
    uint32_t first, last; /* nodes */
    tn_u32_vec args;      /* value ids */
    bool alive;
} tn_region_rec;

/* One origin: `what` "app.c" and line, or ONNX op type with node name in a file. */
typedef struct tn_origin {
    uint32_t what, name, file; /* string ids */
    uint32_t line;             /* 0: none */
} tn_origin;

typedef struct tn_function {
    uint32_t name;   /* string id, unique */
    uint32_t region; /* closed: reads nothing but its arguments */
} tn_function;

typedef struct tn_input_default {
    uint32_t value;
    tn_tensor *tensor; /* retained */
} tn_input_default;

typedef struct tn_location_set {
    uint32_t first, count; /* range in origin_list */
} tn_location_set;

typedef struct tn_metadata {
    uint32_t key, value; /* string ids */
} tn_metadata;

struct tn_graph {
    tn_heap *heap;
    tn_arena arena;
    const tn_op_table *ops;
    tn_strings strings;
    tn_dims dims;
    TN_VEC(tn_type_rec) type;
    TN_VEC(tn_dim) dim_list;
    tn_idset type_set;
    TN_VEC(tn_value_rec) value;
    TN_VEC(tn_node_rec) node;
    TN_VEC(tn_operand) operand;
    TN_VEC(tn_region_rec) region;
    tn_u32_vec region_list, control_list;
    TN_VEC(tn_origin) origin; /* location sets: runs in origin_list */
    tn_u32_vec origin_list;   /* origin ids */
    TN_VEC(tn_location_set) location;
    tn_idset origin_set, location_set;
    TN_VEC(tn_function) function;
    TN_VEC(tn_input_default) input_default;
    TN_VEC(tn_tensor *) tensors;  /* every tensor an attribute holds: released with the graph */
    tn_u32_vec output_name;       /* string ids, by output of the main region */
    TN_VEC(tn_metadata) metadata; /* producer, opsets, doc: kept for writing back */
    tn_u32_vec symbol_value;      /* by symbol index: the value whose type or data defines it, 0 none */
    uint32_t main_region;
    uint32_t at_region, at_node; /* insertion point; at_node 0: end of region */
    uint32_t at_location;        /* location given to new nodes */
    uint8_t at_role;
    bool frozen, stuck;
    tn_error_record error;
};

/* --- creation ------------------------------------------------------------------------------------------------------------ */

tn_graph *tn_graph_new(tn_heap *heap, const tn_op_table *ops);
extern const tn_op tn_op_return; /* the row of every region's terminator */
/* Records the thread's current error as the graph's first error (if it has none) with the current location as `where`. */
void tn_graph_stick(tn_graph *graph);
/* TN_OK when the graph may be changed: not frozen, not stuck. */
tn_status tn_graph_changeable(tn_graph *graph);

/* --- building --------------------------------------------------------------------------------------------------------------- */

/* What a node is made of. Zero-initialised fields are fine. */
typedef struct tn_node_desc {
    const tn_op *op;
    const char *name; /* label, may be NULL */
    uint32_t input_count;
    const tn_value *inputs; /* null values where absent */
    uint32_t output_count;  /* 0: the row's min_outputs */
    uint32_t attr_count;
    const tn_attr *attrs;
    uint32_t region_count;
    const tn_region *regions; /* made with tn_region_create; they become the node's */
} tn_node_desc;
/* Adds a node at the insertion point: checks arity, attributes against the row (unknown, ill-typed, missing, not allowed: refused
   by name), that inputs are alive and visible, then infers. Null and the sticky error on failure: nothing is left behind. */
tn_node tn_graph_add_node(tn_graph *graph, const tn_node_desc *desc);
/* The same with the types of the outputs given instead of inferred (copies, the text form); NULL: inferred. */
tn_node tn_graph_add_node_typed(tn_graph *graph, const tn_node_desc *desc, const tn_type *types);
/* The same by op name with one output: the short form for builders. attrs may be NULL. */
tn_value tn_graph_add(tn_graph *graph, const char *op, uint32_t inputs, const tn_value *input, uint32_t attrs,
                      const tn_attr *attr);
/* A constant node's output. The tensor is retained. */
tn_value tn_graph_constant(tn_graph *graph, tn_tensor *tensor);
/* A new argument of a region (of the main region: an input). */
tn_value tn_region_add_arg(tn_graph *graph, tn_region region, tn_type type, const char *name);
/* A region without owner yet, empty but for nothing; insertion point is unchanged. */
tn_region tn_region_create(tn_graph *graph);
/* Ends a region (replaces its return if it has one). */
tn_status tn_region_return(tn_graph *graph, tn_region region, uint32_t count, const tn_value *values);
/* Main region outputs: adds one to the return node. */
tn_status tn_graph_add_output(tn_graph *graph, tn_value value, const char *name);
tn_status tn_graph_set_input_default(tn_graph *graph, tn_value input, tn_tensor *tensor);
/* A closed function. Its index, or UINT32_MAX. */
uint32_t tn_graph_add_function(tn_graph *graph, const char *name, tn_region region);
uint32_t tn_graph_find_function(const tn_graph *graph, const char *name); /* UINT32_MAX: none */
tn_region tn_graph_function_region(const tn_graph *graph, uint32_t function);
/* Saves and restores the insertion point around building a region. */
typedef struct tn_insertion {
    uint32_t region, node, location;
} tn_insertion;
tn_insertion tn_graph_insertion(const tn_graph *graph);
void tn_graph_set_insertion(tn_graph *graph, tn_insertion at);

/* --- moving and copying ---------------------------------------------------------------------------------------------------- */

/* Moves all nodes of `region` but its return to the insertion point, with args[i] for its arguments; `results` receives the
   values it returned. The region is dead afterwards. */
tn_status tn_region_splice(tn_graph *graph, tn_region region, uint32_t n_args, const tn_value *args, uint32_t n_results,
                           tn_value *results);
/* Copies a region's nodes (of `source`, which may be another graph with the same op rows, or the same) to the insertion
   point of `graph`, with args[i] for its arguments; `results` receives what it returns. Outputs are inferred anew. Symbols that
   the arguments' types define become the dims of args[i], those that copied nodes define become the copies'; of the rest, those of
   the same graph stay, those of another are mapped by name (fresh ones anew). Values the region reads from outside are looked up
   by `outer` (NULL: same graph, kept). Functions called are copied along to another graph. */
typedef tn_value tn_outer_lookup(void *ctx, tn_value outer);
/* Copies the functions of another graph that are called by name (model-local ones of ONNX), unless one of the name is there. */
tn_status tn_graph_copy_functions(tn_graph *graph, const tn_graph *source);
tn_status tn_region_copy(tn_graph *graph, const tn_graph *source, tn_region region, uint32_t n_args,
                         const tn_value *args, uint32_t n_results, tn_value *results, tn_outer_lookup *outer,
                         void *ctx);
/* A type of another graph in this one: symbols go by their names, fresh ones are made anew. `open`: sizes that are no constant and no
   named symbol become fresh symbols. Null with the sticky error on failure. */
tn_type tn_type_copy(tn_graph *graph, const tn_graph *source, tn_type type, bool open);
tn_status tn_node_move_before(tn_graph *graph, tn_node node, tn_node before);
/* Takes an argument that has no uses away from a region; later ones move up. An input of the graph loses its default too. */
tn_status tn_region_remove_arg(tn_graph *graph, tn_region region, uint32_t index);
/* Takes its regions away from a node that is about to be removed: they can be given to another. Until then the graph is not good. */
tn_status tn_node_release_regions(tn_graph *graph, tn_node node);

/* --- reading --------------------------------------------------------------------------------------------------------------- */

const tn_op *tn_node_op(const tn_graph *graph, tn_node node); /* NULL: dead */
bool tn_node_has_trait(const tn_graph *graph, tn_node node, uint32_t trait);
/* Gives a node another attribute, of a key that it does not have; its row is not asked. */
tn_status tn_node_add_attr(tn_graph *graph, tn_node node, const tn_attr *attr);
/* The attribute, or NULL when it is absent (defaults: the getters below). */
const tn_attr *tn_node_attr(const tn_graph *graph, tn_node node, const char *name);
uint32_t tn_node_attr_count(const tn_graph *graph, tn_node node);
const tn_attr *tn_node_attr_at(const tn_graph *graph, tn_node node, uint32_t index);
/* INT or DTYPE; the row's default when absent. */
int64_t tn_attr_int(const tn_graph *graph, tn_node node, const char *name);
double tn_attr_float(const tn_graph *graph, tn_node node, const char *name);
tn_string tn_attr_string(const tn_graph *graph, tn_node node, const char *name);
bool tn_attr_string_is(const tn_graph *graph, tn_node node, const char *name, const char *text);
/* 0, NULL when absent. */
uint32_t tn_attr_ints(const tn_graph *graph, tn_node node, const char *name, const int64_t **ints);
uint32_t tn_attr_dims(const tn_graph *graph, tn_node node, const char *name, const tn_dim **dims);
tn_tensor *tn_attr_tensor(const tn_graph *graph, tn_node node, const char *name); /* borrowed */
/* Known contents of a small integer value, as dimensions: the count, or -1. The pointer is valid until the graph changes. */
int32_t tn_value_contents(const tn_graph *graph, tn_value value, const tn_dim **dims);
/* The tensor of a value made by a constant node, or NULL. Borrowed. */
tn_tensor *tn_value_constant(const tn_graph *graph, tn_value value);
const tn_dim *tn_value_dims(const tn_graph *graph, tn_value value);   /* valid until the graph changes */
bool tn_type_compatible(const tn_graph *graph, tn_type a, tn_type b); /* could be the same at run time */
const char *tn_type_describe(const tn_graph *graph, tn_type type, char *text, size_t size);
/* Whether `value` is visible at `node` (defined earlier in its region or in an enclosing one that may be read). */
/* Whether anybody may ask for the value: something reads it, or it has a name that a run may fetch. */
bool tn_value_is_wanted(const tn_graph *graph, tn_value value);
bool tn_value_visible(const tn_graph *graph, tn_value value, tn_node node);
/* Runs infer again on a node and, if types became more precise, sets them. */
tn_status tn_node_reinfer(tn_graph *graph, tn_node node);
/* Runs infer without changing anything; types[output_count] filled (the verifier). */
tn_status tn_node_infer_types(tn_graph *graph, tn_node node, tn_type *types);
tn_status tn_value_set_type(tn_graph *graph, tn_value value, tn_type type);
/* Adds the lines "op 'name' (origin)" and the input types of a node to the current error. */
void tn_fail_at_node(const tn_graph *graph, tn_node node);

/* --- locations --------------------------------------------------------------------------------------------------------------- */

/* A location of one origin; for ONNX: what = op type, name = node name, file = model file; for C: what = NULL, file, line.
   0 and the sticky error when memory runs out. */
uint32_t tn_location_make(tn_graph *graph, const char *what, const char *name, const char *file, uint32_t line);
uint32_t tn_location_union(tn_graph *graph, uint32_t a, uint32_t b); /* at most 16 origins are kept */
/* New nodes get this location from now on. */
void tn_graph_at_location(tn_graph *graph, uint32_t location);
uint32_t tn_node_location(const tn_graph *graph, tn_node node);

/* --- metadata ------------------------------------------------------------------------------------------------------------------ */
tn_status tn_graph_set_metadata(tn_graph *graph, const char *key, const char *value, size_t length);
const char *tn_graph_metadata(const tn_graph *graph, const char *key); /* NULL: none */

#endif
