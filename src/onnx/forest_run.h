/* tree_ensemble: the form of its trees, and a run of it. */
#ifndef TN_ONNX_FOREST_RUN_H
#define TN_ONNX_FOREST_RUN_H

#include "ops/ops.h"

/* The form of tree_ensemble: a node is four i32, [n, 4]. Children stand side by side, behind their parent: the false one after the
   true one.
     0: feature (leaf: 0)
     1: kind, | TN_NODE_MISSING where NaN goes to the true child, | index << 3: of the true child, or a leaf's first vote
     2, 3: the bits of the f64 threshold, or 2 those of the f32 one; a set: first member and number; a leaf: number of votes, 0 */
enum {
    TN_NODE_LEQ,
    TN_NODE_EQ,
    TN_NODE_MEMBER,
    TN_NODE_LEAF,
    TN_NODE_KIND = 3,
    TN_NODE_MISSING = 4,
    TN_NODE_SHIFT = 3
};
#define TN_NODE_INDEX_MAX (INT32_MAX >> TN_NODE_SHIFT)

typedef struct tn_tree_node {
    int32_t feature;
    int32_t code;
    union {
        float narrow;
        double wide;
        struct {
            int32_t first, count;
        } set;
        int32_t votes;
    } as;
} tn_tree_node;
_Static_assert(sizeof(tn_tree_node) == 16, "four i32");

/* --- host_tree.c: a run of tree_ensemble ------------------------------------------------------------------------------------------------ */

typedef enum tn_votes { TN_VOTES_SUM, TN_VOTES_AVERAGE, TN_VOTES_MIN, TN_VOTES_MAX } tn_votes;
enum { TN_FOREST_TENSORS = 6 };

typedef struct tn_forest_state {
    const tn_tree_node *node;
    const int32_t *root, *vote_target;
    const double *vote_weight, *base, *members;
    int64_t nodes, count, targets, features; /* `count`: trees */
    tn_votes how;
    bool plain; /* all nodes decide by <= */
    tn_dtype dtype;
    const void *rows; /* [n, features] of dtype */
    double *sum;      /* [n, targets] */
    bool *voted;      /* [n, targets], of MIN and MAX */
    void *out;
    tn_tensor *in, *list[TN_FOREST_TENSORS]; /* what the pointers point into */
} tn_forest_state;

/* Reads the attributes, makes the result. End it in any case. */
tn_status tn_forest_begin(tn_eval *e, tn_forest_state *t);
void tn_forest_end(tn_eval *e, tn_forest_state *t);
/* Walks rows [begin, end) through all trees, and finishes them. */
void tn_forest_walk(const tn_forest_state *t, int64_t begin, int64_t end);
/* The votes of the leaf `leaf`, a node, for a row; what the votes of rows come to. Trees vote in their order. */
void tn_forest_vote(const tn_forest_state *t, int64_t row, uint32_t leaf);
void tn_forest_finish(const tn_forest_state *t, int64_t begin, int64_t end);

#endif
