/* Shared by the files that convert operator sets: the table's rows, a node at work, and the steps that are functions. */
#ifndef TN_ONNX_CONVERT_H
#define TN_ONNX_CONVERT_H

#include "ir/graph.h"
#include "onnx/op.h"

struct tn_convert_node;
typedef tn_status tn_convert_step(struct tn_convert_node *n, int version, bool up);

typedef enum tn_change_kind {
    DROPPED,     /* attribute: gone from `version` on, without effect before */
    NEW_INT,     /* attribute: there from `version` on, before as if it were `number` */
    NEW_TEXT,    /* the same with `text` */
    NEW_ANY,     /* attribute: nothing like it before */
    NEW_INPUT,   /* input `number`: nothing like it before */
    NEW_OUTPUT,  /* output `number` */
    INTS_INPUT,  /* list attribute becomes input `number`, i64[n] */
    VEC_INPUT,   /* integer attribute becomes input `number`, i64[1] */
    INT_INPUT,   /* integer attribute becomes input `number`, i64 scalar; absent: `text` is its value */
    FLOAT_INPUT, /* number attribute becomes input `number`, a scalar of input 0's element type */
    BOUND_INPUT, /* the same; absent: the lowest ("-") or largest ("+") finite number */
    VALUES,      /* texts of an attribute are spelt differently: "old=new old=new" */
    OPERATOR,    /* the operator is called `text` from `version` on */
    TYPES,       /* element types of input 0 (Cast: `to`, too) that are not admitted before: names with spaces */
    MEANS,       /* something else is computed: refused, `text` says what */
    STEP         /* see the function */
} tn_change_kind;

typedef struct tn_change {
    const char *op; /* "*": all; "Reduce*": all that begin so */
    int version;
    tn_change_kind kind;
    const char *attr;
    int64_t number;
    const char *text;
    tn_convert_step *step;
} tn_change;

typedef struct tn_convert_node {
    tn_graph *g;
    tn_node node;
    const char *op;
    tn_value *in;
    uint32_t inputs;
    tn_attr *attrs;
    uint32_t attr_count;
    uint32_t outputs; /* named or used ones, at least the first */
    tn_arena scratch;
    bool changed;
} tn_convert_node;

/* convert_node.c */
tn_status tn_v_refuse(const tn_convert_node *n, int version, bool up, const char *why);
#ifdef __clang_analyzer__ /* as in base/error.h */
#define tn_v_refuse(...) tn_not_ok((tn_v_refuse)(__VA_ARGS__))
#endif
tn_attr *tn_v_attr_of(tn_convert_node *n, const char *name); /* NULL: none */
void tn_v_drop(tn_convert_node *n, tn_attr *a);
void tn_v_add(tn_convert_node *n, tn_attr a);
bool tn_v_has_input(const tn_convert_node *n, uint32_t i);
/* The element type of a value, as far as nodes that read and pass it tell. */
tn_dtype tn_v_dtype_of(const tn_graph *g, tn_value value, int depth);
/* The tensor of a constant, or of a Constant; NULL: it is none. */
tn_tensor *tn_v_constant_of(const tn_graph *g, tn_value value);
tn_status tn_v_put_input(tn_convert_node *n, int64_t at, tn_value value, int version, bool up);

/* convert_step.c */
tn_convert_step tn_step_resize, tn_step_softmax, tn_step_broadcasting, tn_step_upsample, tn_step_scales,
    tn_step_dropout, tn_step_cast_names, tn_step_trips, tn_step_pad_names, tn_step_narrower;

#endif
