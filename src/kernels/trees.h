/* Decision trees, many rows at a time. */
#ifndef TN_KERNELS_TREES_H
#define TN_KERNELS_TREES_H

#include "onnx/forest_run.h"

enum {
    TN_TREES_LANES = 8,
    TN_TREES_BITS = 32,
    TN_TREES_ROWS = TN_TREES_LANES * TN_TREES_BITS, /* rows that are walked together */
    TN_TREES_NODES = 255                            /* of a tree, at most */
};

/* What a block of rows needs besides. */
typedef struct tn_trees_room {
    _Alignas(64) uint32_t reach[TN_TREES_NODES][TN_TREES_LANES]; /* the rows that come by a node, as bits */
    _Alignas(64) uint32_t leaf[TN_TREES_ROWS]; /* of each row: the number of the leaf that it comes to */
    uint32_t leaf_node[TN_TREES_NODES];        /* of each leaf, relative to the root */
} tn_trees_room;

/* Where the rows of a block leave a tree of `nodes` nodes that all decide by <=: room->leaf, room->leaf_node. `columns`: of each feature the
   values of all rows of the block. */
typedef void tn_trees_leaves_fn(const tn_tree_node *tree, int64_t root, int64_t nodes, const float *columns,
                                tn_trees_room *room);
/* sum[r] += weight[leaf[r]] for all rows of a block. */
typedef void tn_trees_add_fn(const double *weight, const uint32_t *leaf, double *sum);
typedef struct tn_trees_level {
    tn_trees_leaves_fn *leaves;
    tn_trees_add_fn *add;
} tn_trees_level;

/* isa/trees.c. Levels with registers of 64 bytes use those of 32: masks are of eight words. */
extern const tn_trees_level tn_trees_generic, tn_trees_avx2, tn_trees_neon;

#endif
