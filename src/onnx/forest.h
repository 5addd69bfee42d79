/* Ensembles of decision trees: what the operators say, and the form in which `tree_ensemble` runs them. */
#ifndef TN_ONNX_FOREST_H
#define TN_ONNX_FOREST_H

#include "onnx/expand_ml.h"
#include "onnx/forest_run.h"

/* How a node decides; also the numbers of TreeEnsemble's nodes_modes. */
typedef enum tn_forest_mode {
    TN_FOREST_LEQ,
    TN_FOREST_LT,
    TN_FOREST_GTE,
    TN_FOREST_GT,
    TN_FOREST_EQ,
    TN_FOREST_NEQ,
    TN_FOREST_MEMBER,
    TN_FOREST_LEAF
} tn_forest_mode;

/* Trees as read. A child or root is a node (>= 0) or a leaf (~leaf < 0). Arrays lie in the expansion's scratch memory. */
typedef struct tn_forest {
    int64_t nodes, leaves, trees, targets;
    const int64_t *feature; /* [nodes] */
    uint8_t *mode;          /* [nodes] */
    const int64_t *missing; /* [nodes]: NaN goes the way of true; NULL: nowhere */
    double *value;          /* [nodes] */
    int64_t *yes, *no;      /* [nodes] */
    int64_t *members_of;    /* [nodes + 1] of `members`, or NULL */
    double *members;
    int64_t *roots;       /* [trees] */
    int64_t *votes_of;    /* [leaves + 1] of the votes */
    int64_t *vote_target; /* in [0, targets) */
    double *vote_weight;
    int64_t bases; /* 0, or targets */
    double *base;
    bool wide; /* compare as f64 */
} tn_forest;

/* TreeEnsembleClassifier ("class") and TreeEnsembleRegressor ("target"): lists of nodes and of votes by tree and node. */
tn_status tn_forest_read_lists(tn_expand *x, const char *prefix, int64_t targets, tn_forest *out);
/* TreeEnsemble: inner nodes and leaves apart. */
tn_status tn_forest_read_split(tn_expand *x, tn_forest *out);
/* The aggregated votes of each row of input 0, [N, targets], f64 if the forest is wide, else f32. `aggregate`: "sum", ... */
tn_status tn_forest_run(tn_expand *x, const tn_forest *forest, const char *aggregate, tn_value *out);

#endif
