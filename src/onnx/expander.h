/* Shared by the files that expand ONNX nodes into primitives. */
#ifndef TN_ONNX_EXPANDER_H
#define TN_ONNX_EXPANDER_H

#include "onnx/model.h"
#include "onnx/op.h"

/* The number of the trip of a loop whose body is being expanded: from 0 to limit - 1. */
typedef struct tn_counter {
    tn_value value;
    int64_t limit;
    const struct tn_counter *outer;
} tn_counter;

/* What the file declares of a value. */
typedef struct tn_claim {
    const struct tn_claim *next; /* of the same value */
    const char *value, *type;    /* its name; "f32[1,N,?]" */
    const char *place;           /* " in body of Loop 'rows'"; "": in the main graph */
} tn_claim;

/* The driver's state for one graph. */
typedef struct tn_expander {
    tn_graph *graph;
    tn_map opsets;    /* versions by domain: hash of the name -> version */
    tn_map functions; /* string id -> function + 1 */
    tn_map claims;    /* ONNX value -> const tn_claim *, the first; copies have those of what they copy */
    tn_arena claim_text;
    uint64_t budget;            /* nodes that may still be copied */
    uint32_t late_node;         /* the node that must not be put off; 0: none */
    int depth;                  /* of bodies being expanded */
    const tn_counter *counters; /* innermost first */
    bool writable;              /* nodes stay whose primitives have no way back */
    tn_text warnings;
    uint32_t warning_count;
    /* Lines "from ORIGIN": only nodes of these origins may fail, and nodes inside of one of the first; others stay as they are, of
       unknown type. NULL: all may. */
    const char *explain;
    bool inside; /* of a node of the first origin */
} tn_expander;

tn_status tn_expander_init(tn_expander *ex, tn_graph *graph, uint64_t max_nodes);
void tn_expander_free(tn_expander *ex);
/* The whole of tn_onnx_expand, with the fields of these names. */
tn_status tn_expander_run(tn_graph *graph, uint64_t max_nodes, bool writable, const char *explain);
/* explain.c: whether the first of ex->explain is this node; whether its failure is nobody's business: then the error is gone, and the
   node is to stay. */
bool tn_explain_begins(const tn_expander *ex, tn_node node);
bool tn_explain_passes_over(tn_expander *ex, tn_node node, tn_status status);
/* Expands all nodes of a region, inlined functions included. */
tn_status tn_expander_region(tn_expander *ex, tn_region region);

/* declared.c: what the file declares of the values of the main graph, of the bodies of nodes and of functions becomes claims. */
tn_status tn_declared_collect(tn_expander *ex);
/* `made` takes the place of `declared`, for `node` (which the warning names): a claim that inference contradicts is a warning.
   `single`: of a scalar, [1] is no contradiction. */
void tn_declared_compare(tn_expander *ex, tn_node node, tn_value declared, tn_value made, bool single);
/* `to` is a copy of `from`. */
tn_status tn_declared_follow(tn_expander *ex, tn_value from, tn_value to);
/* Warnings about what is taken back are taken back, too. */
typedef struct tn_warnings_mark {
    size_t length;
    uint32_t count;
} tn_warnings_mark;
tn_warnings_mark tn_warnings_here(const tn_expander *ex);
void tn_warnings_back_to(tn_expander *ex, tn_warnings_mark mark);

/* types.c: element types and ranks of a normalised node's inputs, as far as they are known, are what the operator's text says. */
tn_status tn_expand_check_inputs(tn_expand *x);
/* Whether a version of an operator takes inputs of these element types (TN_DTYPE_NONE: not known); *input: the first that it does not. */
bool tn_onnx_takes(const tn_onnx_op *op, int version, uint32_t inputs, const tn_dtype *dtypes, uint32_t *input);
/* types.c: the element type of an input, or of another that must have the same; NONE: unknown. */
tn_dtype tn_expand_dtype_like(tn_expand *x, uint32_t input);
/* foresee.c: what is known of the outputs of a node that waits; null types where nothing is. */
tn_status tn_expand_foresee(tn_expand *x, tn_type *types);
/* expand_known.c: an input of rank 0 or 1 that follows from small constants alone, computed: a new tensor, or NULL. */
tn_tensor *tn_expand_computed(tn_expand *x, uint32_t input);

/* What a node is: names of domain ("" for ai.onnx) and operator, version, and the row or function (UINT32_MAX: none). */
typedef struct tn_onnx_identity {
    char domain[128];
    const char *name;
    int version;
    const tn_onnx_op *row;
    uint32_t function;
    const tn_op *custom; /* the user's row that takes the node; then there is no other */
    bool other_version;  /* there is a user's row for another version only */
} tn_onnx_identity;
tn_status tn_onnx_identify(const tn_expander *ex, const tn_graph *graph, tn_node node, tn_onnx_identity *out);
/* Inputs of the operator itself, without the captured values after them. */
uint32_t tn_onnx_input_count(const tn_graph *graph, tn_node node);
/* Whether a node, or one in its graphs, draws random numbers: calls of functions may. */
bool tn_onnx_draws(const tn_expander *ex, const tn_graph *graph, tn_node node);
tn_value tn_onnx_trip(const tn_graph *graph, tn_node node); /* null: it has none */
static inline bool tn_node_is_onnx(const tn_graph *graph, tn_node node) {
    const tn_op *op = tn_node_op(graph, node);
    return op && op->dialect == TN_DIALECT_ONNX;
}

/* The attribute of a random node that has no seed, and of calls of functions: a number of its own, the same whether the node is expanded
   at once or when it runs. */
#define TN_ONNX_SEED "__seed"
/* INT 1, of a node in a loop's body that draws random numbers, itself or inside: its last captured input is an i64 that tells the trip
   from others (and the trips of the loops around it): the offset of the generator. */
#define TN_ONNX_TRIP "__trip"
/* The number of the first output without a name in the file. */
#define TN_ONNX_NAMELESS "__nameless"
/* expand_random.c: from the names of a node and its first output; `times`: how many before it are called so. */
int64_t tn_onnx_seed(const tn_graph *graph, tn_node node, uint64_t times);
/* That of a node in the body of a function, for a call. */
int64_t tn_onnx_seed_of_call(int64_t seed, int64_t call);

/* check.c: refuses what must be refused before anything is expanded: operators nobody knows, functions that call themselves,
   more than `budget` nodes after inlining, bodies of the wrong form. Over the main region and all functions. Gives TN_ONNX_SEEDs. */
tn_status tn_onnx_check(tn_expander *ex);

/* copy.c: copies ONNX nodes (and constants) between regions, of one graph or two. */
typedef struct tn_onnx_copier {
    tn_graph *to;
    const tn_graph *from;
    tn_map values; /* value of `from` -> value of `to` (0: absent); others stay themselves within one graph */
    const tn_graph
        *caller_graph; /* of a function's body: the calling node, whose attributes references read; NULL: none */
    tn_node caller;
    uint64_t *budget;
    int depth;
    tn_expander *driver; /* copies within one graph: what is declared of a value is of its copy; NULL: none */
    tn_value trip;       /* with a driver: it becomes the last input (TN_ONNX_TRIP) of nodes that draw and have none */
} tn_onnx_copier;
tn_status tn_onnx_copy_node(tn_onnx_copier *c, tn_node node);
/* All nodes but the return, to the insertion point; results[] are what the region returns. */
tn_status tn_onnx_copy_region(tn_onnx_copier *c, tn_region region, uint32_t n_results, tn_value *results);
void tn_onnx_copier_free(tn_onnx_copier *c);

/* normalize.c: inputs and attributes of a node in the newest form. */
typedef enum tn_input_form {
    TN_INPUT_VALUE,  /* `value`, null: absent */
    TN_INPUT_INTS,   /* i64[count] from an attribute */
    TN_INPUT_INT,    /* i64 scalar, ints[0] */
    TN_INPUT_FLOATS, /* f32[count] */
    TN_INPUT_FLOAT,  /* scalar of input 0's dtype, `f` */
    TN_INPUT_ALIGN   /* `value` with dimensions of 1 appended so that its first lies at axis ints[0] of input 0 */
} tn_input_form;
typedef struct tn_expand_slot {
    tn_value value;
    tn_input_form form;
    uint32_t count;
    const int64_t *ints;
    const float *floats;
    double f;
} tn_expand_slot;
/* Fills x->in, inputs, attrs, attr_count from the node; then checks them against the row. */
tn_status tn_onnx_normalize(tn_expand *x);
/* Whether what tn_expand_hold made is used: what is not holds to nothing. */
bool tn_expand_holds(tn_expand *x);
/* Makes an input a value (constants and reshapes before the node). */
tn_value tn_expand_make_input(tn_expand *x, uint32_t input);

#endif
