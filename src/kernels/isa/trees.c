/* Trees by bits: a node compares all rows of a block at once, and what it says is one bit of each; the rows that come to a child are those
   that come to its parent and those bits. So a tree costs its nodes, not its depth, and nothing of it has to be foretold. */
#include "kernels/trees.h"

#if !defined(__AVX512F__)

typedef uint32_t words __attribute__((vector_size(4 * TN_TREES_LANES), may_alias));
typedef int32_t signs __attribute__((vector_size(4 * TN_TREES_LANES), may_alias));
typedef float values __attribute__((vector_size(4 * TN_TREES_LANES), may_alias));

enum { LANES = TN_TREES_LANES, BITS = TN_TREES_BITS, HALF = BITS / 2 };

/* Rows [0, HALF * LANES) of a column: bit HALF - 1 - k of lane i is of row k * LANES + i. Comparisons are -1 or 0. */
static inline void compare(const float *column, float limit, bool missing, words *to) {
    words m = {0};
    if (missing) /* NaN is not above */
        for (int k = 0; k < HALF; k++)
            m = m + m + 1 + (words)(signs)(*(const values *)(const void *)(column + k * LANES) > limit);
    else
        for (int k = 0; k < HALF; k++)
            m = m + m - (words)(signs)(*(const values *)(const void *)(column + k * LANES) <= limit);
    *to = m;
}

static void leaves(const tn_tree_node *tree, int64_t root, int64_t nodes, const float *columns, tn_trees_room *room) {
    words plane[8] = {{0}}, *reach = (words *)(void *)room->reach;
    uint32_t count = 0, planes = 0;
    tree += root;
    reach[0] = (words){0} - 1;
    for (int64_t i = 0; i < nodes; i++) {
        uint32_t code = (uint32_t)tree[i].code;
        words here = reach[i];
        if ((code & TN_NODE_KIND) == TN_NODE_LEAF) {
            for (uint32_t b = 0; count >> b; b++)
                if (count >> b & 1)
                    plane[b] |= here;
            room->leaf_node[count++] = (uint32_t)i;
            continue;
        }
        const float *column = columns + (int64_t)tree[i].feature * TN_TREES_ROWS;
        bool missing = code & TN_NODE_MISSING;
        words first, second;
        compare(column, tree[i].as.narrow, missing, &first);
        compare(column + HALF * LANES, tree[i].as.narrow, missing, &second);
        words m = first << HALF | second;
        int64_t yes = (int64_t)(code >> TN_NODE_SHIFT) - root;
        reach[yes] = here & m;
        reach[yes + 1] = here & ~m;
    }
    while (count > 1u << planes)
        planes++;
    for (int k = 0; k < BITS; k++) {
        words at = {0};
        for (uint32_t b = planes; b-- > 0;)
            at = at + at + (plane[b] >> (BITS - 1 - k) & 1);
        *(words *)(void *)(room->leaf + k * LANES) = at;
    }
}

static void add(const double *weight, const uint32_t *leaf, double *sum) {
    for (int r = 0; r < TN_TREES_ROWS; r++)
        sum[r] += weight[leaf[r]];
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
const tn_trees_level PASTE(tn_trees_, TN_ISA) = {leaves, add};

#endif
