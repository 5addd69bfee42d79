/* Laying trees out for tree_ensemble: level by level, comparisons reduced to <=, =, and membership. */
#include "onnx/forest.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "onnx/host_ops.h"

typedef struct layout {
    tn_expand *x;
    const tn_forest *forest;
    tn_tree_node *node;
    int64_t *source; /* by laid out node: what it comes from, as a child is given */
    int64_t count, room;
    bool *seen;       /* by node of the forest */
    int32_t *roots;   /* [trees] */
    double *members;  /* sorted, set by set */
    int64_t features; /* one more than the highest */
    bool plain;       /* all nodes decide by <= */
} layout;

/* The largest number below a threshold, in the precision of the comparison. */
static double below(double value, bool wide) {
    return wide ? nextafter(value, -HUGE_VAL) : (double)nextafterf((float)value, -HUGE_VALF);
}

static int by_value(const void *a, const void *b) {
    double p, q;
    memcpy(&p, a, sizeof p);
    memcpy(&q, b, sizeof q);
    return p < q ? -1 : p > q;
}

/* How node i decides; *swap: what is true of it is false of the comparison that is made. */
static void decide(layout *l, int64_t i, tn_tree_node *to, bool *swap) {
    const tn_forest *f = l->forest;
    double value = f->wide ? f->value[i] : (double)(float)f->value[i];
    tn_forest_mode mode = (tn_forest_mode)f->mode[i];
    int kind = TN_NODE_LEQ;
    *swap = mode == TN_FOREST_GT || mode == TN_FOREST_GTE || mode == TN_FOREST_NEQ;
    if (mode == TN_FOREST_MEMBER) {
        int64_t first = f->members_of[i], n = f->members_of[i + 1] - first;
        qsort(l->members + first, (size_t)n, sizeof *l->members, by_value);
        to->as.set.first = (int32_t)first;
        to->as.set.count = (int32_t)n;
        kind = TN_NODE_MEMBER;
    } else {
        if (isnan(value) || (value == -HUGE_VAL && mode == TN_FOREST_LT)) {
            /* no number is, or all are in the case of !=: the same as not <= infinity */
            value = HUGE_VAL;
            *swap = mode != TN_FOREST_NEQ;
        } else if (value == -HUGE_VAL && mode == TN_FOREST_GTE) {
            value = HUGE_VAL;
            *swap = false;
        } else if (mode == TN_FOREST_LT || mode == TN_FOREST_GTE) {
            value = below(value, f->wide);
        } else if (mode == TN_FOREST_EQ || mode == TN_FOREST_NEQ) {
            kind = TN_NODE_EQ;
        }
        if (f->wide)
            to->as.wide = value;
        else
            to->as.narrow = (float)value;
    }
    if ((f->missing && f->missing[i]) != *swap)
        kind |= TN_NODE_MISSING;
    l->plain = l->plain && (kind & TN_NODE_KIND) == TN_NODE_LEQ;
    to->code = kind;
}

static tn_status place_node(layout *l, int64_t at) {
    const tn_forest *f = l->forest;
    tn_expand *x = l->x;
    tn_tree_node *to = &l->node[at];
    int64_t i = l->source[at], index;
    bool swap;
    if (i < 0) {
        int64_t leaf = ~i, votes = f->votes_of[leaf + 1] - f->votes_of[leaf];
        index = f->votes_of[leaf];
        to->as.votes = (int32_t)votes;
        to->code = TN_NODE_LEAF;
    } else {
        TN_RULE(x, !l->seen[i], "a node is reached on two ways: these are no trees");
        l->seen[i] = true;
        TN_RULE(x, f->feature[i] >= 0 && f->feature[i] < INT32_MAX, "a node decides by feature %" PRId64,
                f->feature[i]);
        to->feature = (int32_t)f->feature[i];
        l->features = f->feature[i] >= l->features ? f->feature[i] + 1 : l->features;
        decide(l, i, to, &swap);
        index = l->count;
        l->source[l->count++] = swap ? f->no[i] : f->yes[i];
        l->source[l->count++] = swap ? f->yes[i] : f->no[i];
    }
    if (index > TN_NODE_INDEX_MAX)
        return tn_expand_unsupported(x, "an ensemble of more than %d nodes", TN_NODE_INDEX_MAX);
    to->code |= (int32_t)(index << TN_NODE_SHIFT);
    return TN_OK;
}

/* Each inner node is laid out once at most, and brings two children. */
static tn_status lay_out(layout *l, tn_expand *x, const tn_forest *f) {
    *l = (layout){.x = x, .forest = f, .plain = true, .room = f->trees + 2 * f->nodes};
    l->node = tn_expand_alloc(x, (size_t)l->room, sizeof *l->node);
    l->source = tn_expand_alloc(x, (size_t)l->room, sizeof *l->source);
    l->seen = tn_expand_alloc(x, (size_t)f->nodes, sizeof *l->seen);
    l->roots = tn_expand_alloc(x, (size_t)f->trees, sizeof *l->roots);
    l->members = f->members;
    if (!l->node || !l->source || !l->seen || !l->roots)
        return tn_error_status();
    for (int64_t t = 0; t < f->trees; t++) {
        int64_t at = l->count;
        l->roots[t] = (int32_t)at;
        l->source[l->count++] = f->roots[t];
        for (; at < l->count; at++)
            TN_TRY(place_node(l, at));
    }
    return TN_OK;
}

static tn_tensor *list_of(tn_expand *x, tn_dtype dtype, int64_t count, const void *data) {
    tn_tensor *t = tn_tensor_new(x->graph->heap, dtype, 1, &count);
    if (t && count)
        memcpy(t->data, data, tn_tensor_bytes(t));
    return t;
}

static tn_tensor *list_of_i32(tn_expand *x, int64_t count, const int64_t *data) {
    tn_tensor *t = tn_tensor_new(x->graph->heap, TN_I32, 1, &count);
    for (int64_t i = 0; t && i < count; i++)
        ((int32_t *)t->data)[i] = (int32_t)data[i];
    return t;
}

enum { NODES, ROOTS, TARGETS, WEIGHTS, BASE, MEMBERS, TENSORS };

static tn_status make_tensors(tn_expand *x, const layout *l, tn_tensor **t) {
    const tn_forest *f = l->forest;
    const int64_t dims[2] = {l->count, 4}, votes = f->votes_of[f->leaves];
    const int64_t members = f->members_of ? f->members_of[f->nodes] : 0;
    TN_RULE(x, f->targets <= INT32_MAX && votes <= INT32_MAX && members <= INT32_MAX, "the ensemble is too large");
    t[NODES] = tn_tensor_new(x->graph->heap, TN_I32, 2, dims);
    if (t[NODES] && l->count)
        memcpy(t[NODES]->data, l->node, (size_t)l->count * sizeof *l->node);
    t[ROOTS] = list_of(x, TN_I32, f->trees, l->roots);
    t[TARGETS] = list_of_i32(x, votes, f->vote_target);
    t[WEIGHTS] = list_of(x, TN_F64, votes, f->vote_weight);
    t[BASE] = list_of(x, TN_F64, f->bases, f->base);
    t[MEMBERS] = list_of(x, TN_F64, members, l->members);
    for (int i = 0; i < TENSORS; i++)
        if (!t[i])
            return tn_error_status();
    return TN_OK;
}

tn_status tn_forest_run(tn_expand *x, const tn_forest *f, const char *aggregate, tn_value *out) {
    static const int front[1] = {0};
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0);
    layout l;
    tn_tensor *t[TENSORS] = {NULL};
    TN_RULE(x, rank == 1 || rank == 2, "the input has rank %d: it must be [rows, features]", rank);
    TN_RULE(x, f->bases == 0 || f->bases == f->targets, "'base_values' has %" PRId64 " entries for %" PRId64 " results",
            f->bases, f->targets);
    TN_TRY(lay_out(&l, x, f));
    tn_value rows = tn_cast(g, tn_expand_input(x, 0), f->wide ? TN_F64 : TN_F32);
    if (rank == 1)
        rows = tn_expand_dims(g, rows, 1, front);
    TN_BUILT(x, rows);
    TN_RULE(x, !tn_size_at_most(x, tn_value_dim(g, rows, 1), l.features - 1),
            "a node decides by feature %" PRId64 ", which the input does not have", l.features - 1);
    tn_status status = make_tensors(x, &l, t);
    if (status == TN_OK) {
        const tn_attr attrs[] = {TN_A_STRING("aggregate", aggregate, strlen(aggregate)),
                                 TN_A_TENSOR("base", t[BASE]),
                                 TN_A_INT("features", l.features),
                                 TN_A_TENSOR("members", t[MEMBERS]),
                                 TN_A_TENSOR("nodes", t[NODES]),
                                 TN_A_INT("plain", l.plain),
                                 TN_A_TENSOR("roots", t[ROOTS]),
                                 TN_A_INT("targets", f->targets),
                                 TN_A_TENSOR("vote_targets", t[TARGETS]),
                                 TN_A_TENSOR("vote_weights", t[WEIGHTS])};
        tn_node node = tn_graph_add_node(g, &(tn_node_desc){.op = &tn_host_tree_ensemble,
                                                            .input_count = 1,
                                                            .inputs = &rows,
                                                            .output_count = 1,
                                                            .attr_count = sizeof attrs / sizeof *attrs,
                                                            .attrs = attrs});
        *out = node.id ? tn_node_output(g, node, 0) : (tn_value){0};
        status = node.id ? TN_OK : tn_graph_check(g);
    }
    for (int i = 0; i < TENSORS; i++)
        tn_tensor_destroy(t[i]);
    return status;
}
