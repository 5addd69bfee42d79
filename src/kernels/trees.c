/* tree_ensemble, a block of rows at a time where trees are small: by bits (isa/trees.c). Others are walked, as its eval does. Votes are added
   in the order of the trees in either way. */
#include "kernels/trees.h"

#include <string.h>

#include "kernels/host.h"

/* NULL: walking is as good, or worth less code. */
static const tn_trees_level *level_of(tn_isa isa) {
#if defined(TN_HAVE_ISA_AVX2)
    return isa >= TN_ISA_AVX2 ? &tn_trees_avx2 : NULL;
#elif defined(TN_HAVE_ISA_NEON)
    return isa >= TN_ISA_NEON ? &tn_trees_neon : NULL;
#else
    (void)isa;
    return &tn_trees_generic;
#endif
}

typedef struct forest {
    tn_forest_state t;
    const tn_trees_level *level;
    int64_t columns; /* bytes */
} forest;

/* The nodes of a tree, which lie behind its root; those of the next begin where they end. */
static int64_t nodes_of(const tn_forest_state *t, int64_t tree) {
    return (tree + 1 < t->count ? t->root[tree + 1] : t->nodes) - t->root[tree];
}

/* A block of whole rows, of which the last is there as often as is needed. */
static void turn(const tn_forest_state *t, int64_t begin, int64_t rows, float *columns) {
    for (int64_t r = 0; r < TN_TREES_ROWS; r++) {
        const float *row = (const float *)t->rows + (begin + (r < rows ? r : rows - 1)) * t->features;
        for (int64_t f = 0; f < t->features; f++)
            columns[f * TN_TREES_ROWS + r] = row[f];
    }
}

/* Whether each leaf gives one vote, for the only target there is: its weight, by the number of the leaf. */
static bool single_votes(const tn_forest_state *t, const tn_tree_node *tree, const tn_trees_room *room, uint32_t leaves,
                         double *weight) {
    bool single = t->targets == 1 && !t->voted;
    for (uint32_t i = 0; i < leaves && single; i++) {
        const tn_tree_node *n = &tree[room->leaf_node[i]];
        single = n->as.votes == 1;
        if (single)
            weight[i] = t->vote_weight[n->code >> TN_NODE_SHIFT];
    }
    return single;
}

static void run_block(const forest *f, int64_t begin, int64_t rows, float *columns, tn_trees_room *room) {
    const tn_forest_state *t = &f->t;
    double sum[TN_TREES_ROWS] = {0}, weight[TN_TREES_NODES];
    bool summed = t->targets == 1 && !t->voted; /* in `sum`, which is brought up to date where a tree votes otherwise */
    turn(t, begin, rows, columns);
    for (int64_t k = 0; k < t->count; k++) {
        int64_t nodes = nodes_of(t, k);
        const tn_tree_node *tree = t->node + t->root[k];
        f->level->leaves(t->node, t->root[k], nodes, columns, room);
        if (summed && single_votes(t, tree, room, (uint32_t)((nodes + 1) / 2), weight)) {
            f->level->add(weight, room->leaf, sum);
            continue;
        }
        if (summed)
            memcpy(t->sum + begin, sum, (size_t)rows * sizeof *sum);
        for (int64_t r = 0; r < rows; r++)
            tn_forest_vote(t, begin + r, (uint32_t)t->root[k] + room->leaf_node[room->leaf[r]]);
        if (summed)
            memcpy(sum, t->sum + begin, (size_t)rows * sizeof *sum);
    }
    if (summed)
        memcpy(t->sum + begin, sum, (size_t)rows * sizeof *sum);
    tn_forest_finish(t, begin, begin + rows);
}

static void body(const void *ctx, int64_t begin, int64_t end, char *scratch) {
    const forest *f = ctx;
    for (int64_t r = begin; r < end; r += TN_TREES_ROWS) {
        int64_t rows = end - r < TN_TREES_ROWS ? end - r : TN_TREES_ROWS;
        if (rows < TN_TREES_ROWS / 2)
            tn_forest_walk(&f->t, r, r + rows);
        else
            run_block(f, r, rows, (float *)(void *)scratch, (tn_trees_room *)(void *)(scratch + f->columns));
    }
}

/* What is laid out for each tree by itself, in few enough nodes. */
static bool takes(const tn_forest_state *t) {
    bool good = t->plain && t->dtype == TN_F32 && t->features > 0 && t->features <= 512;
    for (int64_t k = 0; k < t->count && good; k++) {
        int64_t nodes = nodes_of(t, k), end = t->root[k] + nodes;
        good = nodes >= 1 && nodes <= TN_TREES_NODES && nodes % 2 == 1;
        int64_t next = t->root[k] + 1; /* children follow each other, as tn_forest_run lays them out */
        for (int64_t i = t->root[k]; i < end && good; i++)
            if ((t->node[i].code & TN_NODE_KIND) != TN_NODE_LEAF) {
                good = t->node[i].code >> TN_NODE_SHIFT == next && next + 1 < end;
                next += 2;
            }
        good = good && next == end;
    }
    return good;
}

tn_status tn_host_trees(tn_eval *e, tn_isa isa, bool *done) {
    const tn_tensor *x = tn_eval_in(e, 0);
    forest f = {.level = level_of(isa)};
    if (!f.level || x->rank != 2 || x->dims[0] < TN_TREES_ROWS / 2)
        return TN_OK;
    tn_status status = tn_forest_begin(e, &f.t);
    bool mine = status == TN_OK && takes(&f.t);
    f.columns = f.t.features * TN_TREES_ROWS * (int64_t)sizeof(float);
    if (mine)
        status = tn_host_split(e, x->dims[0], TN_TREES_ROWS, (double)f.t.nodes,
                               (size_t)f.columns + sizeof(tn_trees_room), body, &f);
    tn_forest_end(e, &f.t);
    *done = mine && status == TN_OK;
    return status;
}
