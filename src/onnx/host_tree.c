/* tree_ensemble: the votes of decision trees. Trees are walked branch-free, eight rows (or, when there are few rows, eight trees) at
   a time, so that the loads of one hide behind those of the others. Votes are added in f64, tree by tree: the same bits however the
   rows are grouped. */
#include <inttypes.h>
#include <math.h>

#include "onnx/forest.h"
#include "onnx/host_ml.h"
#include "ops/plain.h"

enum { LANES = 8, BLOCK = 64 };

/* --- infer -------------------------------------------------------------------------------------------------------------------------- */

static tn_tree_node node_at(const tn_tensor *nodes, int64_t index) {
    tn_tree_node n;
    memcpy(&n, (const char *)nodes->data + index * (int64_t)sizeof n, sizeof n);
    return n;
}

static int32_t i32_at(const tn_tensor *list, int64_t index) {
    return (int32_t)tn_load_i64(TN_I32, list->data, index);
}

/* Children lie behind their parents, so that every walk ends; nothing points outside. */
static tn_status check_node(tn_infer *c, const tn_tensor *nodes, int64_t i, int64_t features, int64_t members,
                            int64_t votes, bool plain) {
    tn_tree_node n = node_at(nodes, i);
    int64_t next = n.code >> TN_NODE_SHIFT;
    int kind = n.code & TN_NODE_KIND;
    bool good = n.code >= 0;
    if (kind == TN_NODE_LEAF)
        good = good && n.feature == 0 && n.as.votes >= 0 && next + n.as.votes <= votes;
    else
        good = good && n.feature >= 0 && n.feature < features && next > i && next + 1 < nodes->dims[0];
    if (kind == TN_NODE_MEMBER)
        good =
            good && n.as.set.first >= 0 && n.as.set.count >= 0 && (int64_t)n.as.set.first + n.as.set.count <= members;
    if (plain)
        good = good && (kind == TN_NODE_LEAF || kind == TN_NODE_LEQ);
    return good ? TN_OK : tn_infer_fail(c, "node %" PRId64 " of 'nodes' points outside", i);
}

static tn_status infer_trees(tn_infer *c) {
    tn_graph *g = c->graph;
    tn_operand_type in;
    tn_tensor *nodes = tn_attr_tensor(g, c->node, "nodes"), *roots, *targets, *weights, *base, *members;
    int64_t features = tn_attr_int(g, c->node, "features"), count = tn_attr_int(g, c->node, "targets");
    bool plain = tn_attr_int(g, c->node, "plain") != 0;
    TN_TRY(tn_infer_operand_rank(c, 0, 2, &in));
    TN_TRY(tn_ml_infer_list(c, "roots", TN_I32, &roots));
    TN_TRY(tn_ml_infer_list(c, "vote_targets", TN_I32, &targets));
    TN_TRY(tn_ml_infer_list(c, "vote_weights", TN_F64, &weights));
    TN_TRY(tn_ml_infer_list(c, "base", TN_F64, &base));
    TN_TRY(tn_ml_infer_list(c, "members", TN_F64, &members));
    if (in.dtype != TN_F32 && in.dtype != TN_F64)
        return tn_infer_fail(c, "the input must be f32 or f64, but is %s", tn_dtype_name(in.dtype));
    if (!nodes || nodes->dtype != TN_I32 || nodes->rank != 2 || nodes->dims[1] != 4 || !nodes->contiguous)
        return tn_infer_fail(c, "attribute 'nodes' must be i32 [n, 4]");
    if (targets->count != weights->count || count < 1 || count > INT32_MAX || features < 0)
        return tn_infer_fail(c, "votes, targets or features do not go together");
    if (base->count != 0 && base->count != count)
        return tn_infer_fail(c, "attribute 'base' has %" PRId64 " entries for %" PRId64 " targets", base->count, count);
    for (int64_t i = 0; i < nodes->dims[0]; i++)
        TN_TRY(check_node(c, nodes, i, features, members->count, weights->count, plain));
    for (int64_t i = 0; i < roots->count; i++)
        if (i32_at(roots, i) < 0 || i32_at(roots, i) >= nodes->dims[0])
            return tn_infer_fail(c, "root %" PRId64 " points outside", i);
    for (int64_t i = 0; i < targets->count; i++)
        if (i32_at(targets, i) < 0 || i32_at(targets, i) >= count)
            return tn_infer_fail(c, "vote %" PRId64 " is for a target that does not exist", i);
    const tn_dim dims[2] = {in.dims[0], tn_dim_const(g, count)};
    return tn_infer_tensor(c, 0, in.dtype, 2, dims);
}

/* --- walking -------------------------------------------------------------------------------------------------------------------------- */

typedef tn_forest_state trees;

static bool is_member(const trees *t, const tn_tree_node *n, double value) {
    const double *set = t->members + n->as.set.first;
    int64_t low = 0, high = n->as.set.count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (set[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n->as.set.count && set[low] == value;
}

/* Moves LANES walks from their nodes to leaves. T, field: the type compared in and where the threshold lies. */
#define WALK_PLAIN(name, T, field)                                                                                  \
    static void name(const tn_tree_node *node, const T *const *row, uint32_t *at) {                                 \
        for (bool more = true; more;) {                                                                             \
            int inner = 0;                                                                                          \
            for (int k = 0; k < LANES; k++) {                                                                       \
                const tn_tree_node *n = &node[at[k]];                                                               \
                T value = row[k][n->feature];                                                                       \
                uint32_t code = (uint32_t)n->code, leaf = (code & TN_NODE_KIND) == TN_NODE_LEAF;                    \
                uint32_t yes =                                                                                      \
                    (uint32_t)(value <= n->as.field) | ((uint32_t)(value != value) & (code / TN_NODE_MISSING & 1)); \
                uint32_t next = (code >> TN_NODE_SHIFT) + (yes ^ 1);                                                \
                at[k] = leaf ? at[k] : next;                                                                        \
                inner |= (int)(leaf ^ 1);                                                                           \
            }                                                                                                       \
            more = inner != 0;                                                                                      \
        }                                                                                                           \
    }
WALK_PLAIN(walk_f32, float, narrow)
WALK_PLAIN(walk_f64, double, wide)

static uint32_t walk_any(const trees *t, uint32_t at, const void *row) {
    for (;;) {
        const tn_tree_node *n = &t->node[at];
        int kind = n->code & TN_NODE_KIND;
        if (kind == TN_NODE_LEAF)
            return at;
        bool wide = t->dtype == TN_F64, yes;
        double value = wide ? ((const double *)row)[n->feature] : (double)((const float *)row)[n->feature];
        double limit = wide ? n->as.wide : (double)n->as.narrow;
        if (isnan(value))
            yes = (n->code & TN_NODE_MISSING) != 0;
        else if (kind == TN_NODE_MEMBER)
            yes = is_member(t, n, value);
        else
            yes = kind == TN_NODE_LEQ ? value <= limit : value == limit;
        at = (uint32_t)(n->code >> TN_NODE_SHIFT) + !yes;
    }
}

static const void *row_at(const trees *t, int64_t row) {
    size_t element = t->dtype == TN_F64 ? sizeof(double) : sizeof(float);
    return (const char *)t->rows + (size_t)(row * t->features) * element;
}

/* Walks lane k from root[k] with row[k]. */
static void walk(const trees *t, const void *const *row, uint32_t *at) {
    if (!t->plain || !t->features) {
        for (int k = 0; k < LANES; k++)
            at[k] = walk_any(t, at[k], row[k]);
    } else if (t->dtype == TN_F32) {
        const float *rows[LANES];
        for (int k = 0; k < LANES; k++)
            rows[k] = row[k];
        walk_f32(t->node, rows, at);
    } else {
        const double *rows[LANES];
        for (int k = 0; k < LANES; k++)
            rows[k] = row[k];
        walk_f64(t->node, rows, at);
    }
}

void tn_forest_vote(const trees *t, int64_t row, uint32_t leaf) {
    const tn_tree_node *n = &t->node[leaf];
    int64_t first = n->code >> TN_NODE_SHIFT;
    double *sum = t->sum + row * t->targets;
    for (int64_t v = first; v < first + n->as.votes; v++) {
        int32_t target = t->vote_target[v];
        double weight = t->vote_weight[v];
        if (t->voted) {
            bool *voted = t->voted + row * t->targets + target;
            bool better = t->how == TN_VOTES_MIN ? weight < sum[target] : weight > sum[target];
            sum[target] = !*voted || better ? weight : sum[target];
            *voted = true;
        } else {
            sum[target] += weight;
        }
    }
}

/* --- runs ------------------------------------------------------------------------------------------------------------------------------ */

static void run_rows(const trees *t, int64_t begin, int64_t end) {
    for (int64_t tree = 0; tree < t->count; tree++)
        for (int64_t r = begin; r < end; r += LANES) {
            const void *row[LANES];
            uint32_t at[LANES];
            for (int64_t k = 0; k < LANES; k++) {
                row[k] = row_at(t, r + k < end ? r + k : r);
                at[k] = (uint32_t)t->root[tree];
            }
            walk(t, row, at);
            for (int64_t k = 0; k < LANES && r + k < end; k++)
                tn_forest_vote(t, r + k, at[k]);
        }
}

static void run_few(const trees *t, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++)
        for (int64_t tree = 0; tree < t->count; tree += LANES) {
            const void *row[LANES];
            uint32_t at[LANES];
            for (int64_t k = 0; k < LANES; k++) {
                row[k] = row_at(t, r);
                at[k] = (uint32_t)t->root[tree + k < t->count ? tree + k : tree];
            }
            walk(t, row, at);
            for (int64_t k = 0; k < LANES && tree + k < t->count; k++)
                tn_forest_vote(t, r, at[k]);
        }
}

void tn_forest_finish(const trees *t, int64_t begin, int64_t end) {
    for (int64_t i = begin * t->targets; i < end * t->targets; i++) {
        double value = t->sum[i];
        if (t->how == TN_VOTES_AVERAGE && t->count)
            value /= (double)t->count;
        if (t->base)
            value += t->base[i % t->targets];
        if (t->dtype == TN_F32)
            ((float *)t->out)[i] = (float)value;
        else
            ((double *)t->out)[i] = value;
    }
}

void tn_forest_walk(const trees *t, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r += BLOCK) {
        int64_t stop = end - r < BLOCK ? end : r + BLOCK;
        if (stop - r < LANES)
            run_few(t, r, stop);
        else
            run_rows(t, r, stop);
        tn_forest_finish(t, r, stop);
    }
}

static void walk_range(void *ctx, int64_t begin, int64_t end) {
    tn_forest_walk(ctx, begin, end);
}

static tn_votes read_aggregate(const tn_eval *e) {
    static const char *const names[] = {"sum", "average", "min", "max"};
    int i = 0;
    while (i < 3 && !tn_attr_string_is(e->graph, e->node, "aggregate", names[i]))
        i++;
    return (tn_votes)i;
}

enum { NODES, ROOTS, TARGETS, WEIGHTS, BASE, MEMBERS };
_Static_assert(MEMBERS + 1 == TN_FOREST_TENSORS, "one for each list");

tn_status tn_forest_begin(tn_eval *e, trees *t) {
    static const char *const names[TN_FOREST_TENSORS] = {"nodes",        "roots", "vote_targets",
                                                         "vote_weights", "base",  "members"};
    *t = (trees){.in = tn_host_readable(e->heap, tn_eval_in(e, 0)),
                 .targets = tn_attr_int(e->graph, e->node, "targets"),
                 .how = read_aggregate(e),
                 .plain = tn_attr_int(e->graph, e->node, "plain") != 0};
    if (!t->in)
        return tn_error_status();
    const int64_t dims[2] = {t->in->dims[0], t->targets};
    if (t->in->dims[1] < tn_attr_int(e->graph, e->node, "features"))
        return tn_eval_fail(e, TN_ERR_INPUT, "the trees decide by %" PRId64 " features, the input has %" PRId64,
                            tn_attr_int(e->graph, e->node, "features"), t->in->dims[1]);
    for (int i = 0; i < TN_FOREST_TENSORS; i++) {
        tn_tensor *given = tn_attr_tensor(e->graph, e->node, names[i]);
        bool aligned = (uintptr_t)given->data % _Alignof(tn_tree_node) == 0;
        t->list[i] = aligned ? tn_tensor_retain(given) : tn_tensor_copy(given);
        if (!t->list[i])
            return tn_error_status();
    }
    tn_tensor *out = tn_eval_result(e, 0, (tn_dtype)t->in->dtype, 2, dims);
    if (!out)
        return tn_error_status();
    t->node = t->list[NODES]->data;
    t->nodes = t->list[NODES]->dims[0];
    t->root = t->list[ROOTS]->data;
    t->vote_target = t->list[TARGETS]->data;
    t->vote_weight = t->list[WEIGHTS]->data;
    t->base = t->list[BASE]->count ? t->list[BASE]->data : NULL;
    t->members = t->list[MEMBERS]->data;
    t->count = t->list[ROOTS]->count;
    t->features = t->in->dims[1];
    t->dtype = (tn_dtype)t->in->dtype;
    t->rows = t->in->data;
    t->out = out->data;
    t->sum = tn_alloc_array(e->heap, (size_t)out->count, sizeof *t->sum);
    bool bounds = t->how == TN_VOTES_MIN || t->how == TN_VOTES_MAX;
    t->voted = t->sum && bounds ? tn_alloc_array(e->heap, (size_t)out->count, sizeof *t->voted) : NULL;
    return t->sum && (t->voted || !bounds) ? TN_OK : tn_error_status();
}

void tn_forest_end(tn_eval *e, trees *t) {
    tn_free(e->heap, t->sum);
    tn_free(e->heap, t->voted);
    for (int i = 0; i < TN_FOREST_TENSORS; i++)
        tn_tensor_destroy(t->list[i]);
    tn_tensor_destroy(t->in);
}

static tn_status eval_trees(tn_eval *e) {
    trees t;
    tn_status status = tn_forest_begin(e, &t);
    if (status == TN_OK)
        tn_range_split(e->pool, t.in->dims[0], BLOCK, walk_range, &t);
    tn_forest_end(e, &t);
    return status;
}

#define TENSOR(n) \
    { .name = (n), .kind = TN_ATTR_TENSOR, .required = true }

static const tn_attr_spec tree_attrs[] = {
    {.name = "aggregate", .kind = TN_ATTR_STRING, .s = "sum", .allowed = "sum|average|min|max"},
    TENSOR("base"),
    {.name = "features", .kind = TN_ATTR_INT, .required = true},
    TENSOR("members"),
    TENSOR("nodes"),
    {.name = "plain", .kind = TN_ATTR_INT},
    TENSOR("roots"),
    {.name = "targets", .kind = TN_ATTR_INT, .required = true},
    TENSOR("vote_targets"),
    TENSOR("vote_weights"),
    {0}};

const tn_op tn_host_tree_ensemble = {.name = "tree_ensemble",
                                     .dialect = TN_DIALECT_PRIMITIVE,
                                     .min_inputs = 1,
                                     .max_inputs = 1,
                                     .min_outputs = 1,
                                     .max_outputs = 1,
                                     .traits = TN_HOST,
                                     .attrs = tree_attrs,
                                     .inputs = "rows",
                                     .doc = "The aggregated votes of decision trees for each row: [N, targets].",
                                     .infer = infer_trees,
                                     .eval = eval_trees,
                                     .host = TN_HOST_TREES,
                                     .no_gradient = "decisions do not change smoothly"};
