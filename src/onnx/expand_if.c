/* If, as if. A branch is copied and expanded inside the region of the new node. */
#include "onnx/expand_common.h"
#include "onnx/expander.h"
#include "ops/contents.h"

tn_status tn_expand_truth(tn_expand *x, tn_value value, tn_value *out) {
    tn_graph *g = x->graph;
    tn_type type = tn_value_type(g, value);
    if (!type.id || (tn_type_kind(g, type) == TN_KIND_TENSOR && tn_type_rank(g, type) < 0)) {
        *out = tn_expand_declared(x, "Squeeze", value, tn_type_tensor(g, TN_BOOL, 0, NULL));
        return TN_OK;
    }
    TN_RULE(x, tn_type_kind(g, type) == TN_KIND_TENSOR && tn_type_dtype(g, type) == TN_BOOL,
            "the condition is not a bool");
    for (int i = 0; i < tn_type_rank(g, type); i++)
        TN_RULE(x, !tn_dim_never_equal(g, tn_value_dim(g, value, i), tn_size(x, 1)),
                "the condition must be one bool: axis %d of it is not of size 1", i);
    *out = tn_reshape_dims(g, value, 0, NULL);
    return TN_OK;
}

typedef struct branches {
    tn_expand *x;
    uint32_t next;
    tn_status status;
    tn_type *types; /* of the results of the first, then of the second */
} branches;

static void build_branch(void *ctx, tn_graph *graph, const tn_value *args, tn_value *results) {
    branches *b = ctx;
    (void)args;
    uint32_t region = b->next++;
    if (b->status == TN_OK)
        b->status = tn_expand_body(b->x, region, 0, NULL, tn_expand_body_results(b->x, region), results);
    tn_expand_stick(b->x, b->status);
    uint32_t count = tn_expand_body_results(b->x, 0);
    for (uint32_t i = 0; i < count && b->status == TN_OK; i++)
        b->types[region * count + i] = tn_value_type(graph, results[i]);
}

/* Whether one value can never be of both types: of another kind, or of another element type. Shapes may differ. */
static bool types_differ(const tn_graph *g, tn_type a, tn_type b) {
    if (!a.id || !b.id)
        return false;
    tn_kind kind = tn_type_kind(g, a);
    if (kind != tn_type_kind(g, b))
        return true;
    if ((kind == TN_KIND_TENSOR || kind == TN_KIND_MAP) && tn_type_dtype(g, a) && tn_type_dtype(g, b) &&
        tn_type_dtype(g, a) != tn_type_dtype(g, b))
        return true;
    return kind != TN_KIND_TENSOR && types_differ(g, tn_type_element(g, a), tn_type_element(g, b));
}

/* The text: what one branch gives and what the other gives in its place are of one type. */
static tn_status check_branches(const branches *b) {
    tn_expand *x = b->x;
    uint32_t count = tn_expand_body_results(x, 0);
    char p[200], q[200];
    for (uint32_t i = 0; i < count; i++) {
        if (!types_differ(x->graph, b->types[i], b->types[count + i]))
            continue;
        x->graph->stuck = false; /* `if` refused it, in other words */
        return tn_expand_fail(x,
                              "output %u is %s from 'then_branch' and %s from 'else_branch': they must be of one type",
                              (unsigned)i, tn_type_describe(x->graph, b->types[i], p, sizeof p),
                              tn_type_describe(x->graph, b->types[count + i], q, sizeof q));
    }
    return TN_OK;
}

/* Whether a condition that is no constant follows from shapes: its truth, else -1. */
static int decided(tn_expand *x, tn_value cond) {
    uint8_t truth;
    int rank = tn_value_rank(x->graph, cond);
    bool one = rank >= 0 && tn_value_dtype(x->graph, cond) == TN_BOOL;
    for (int i = 0; one && i < rank; i++)
        one = tn_size_is(x, tn_value_dim(x->graph, cond, i), 1);
    return one && tn_contents_truth(x->graph, cond, 1, &truth) && truth < 2 ? truth : -1;
}

/* A condition that is known takes its branch in place of the node. A branch that cannot be built may be one that is never taken (it
   squeezes an axis that the other keeps): then the node waits until it runs and the condition is known. */
static tn_status expand_if(tn_expand *x) {
    tn_graph *g = x->graph;
    uint32_t count = tn_expand_body_results(x, 0);
    tn_value cond = tn_expand_input(x, 0), *results = tn_expand_alloc(x, (size_t)count + 1, sizeof *results);
    if (!results)
        return tn_error_status();
    tn_tensor *known = tn_expand_constant(x, 0);
    TN_RULE(x, !known || (tn_tensor_dtype(known) == TN_BOOL && tn_tensor_count(known) == 1),
            "the condition must be one bool");
    int truth_known = known ? tn_tensor_get_i64(known, 0) != 0 : cond.id ? decided(x, cond) : -1;
    if (truth_known >= 0) {
        TN_TRY(tn_expand_body(x, truth_known ? 0 : 1, 0, NULL, count, results));
    } else {
        TN_TRY(tn_expand_truth(x, cond, &cond));
        TN_BUILT(x, cond);
        branches b = {.x = x, .types = tn_expand_alloc(x, 2 * (size_t)count + 1, sizeof *b.types)};
        if (!b.types)
            return tn_error_status();
        tn_status status = tn_if(g, cond, build_branch, build_branch, &b, count, results);
        if (b.status == TN_OK && b.next == 2)
            TN_TRY(check_branches(&b));
        status = b.status != TN_OK ? b.status : status;
        if ((status == TN_ERR_MODEL || status == TN_ERR_USAGE || status == TN_ERR_UNSUPPORTED) && !x->final &&
            !x->driver->explain) {
            g->stuck = false; /* what was built is taken back */
            tn_error_clear();
            return tn_expand_later(x, "needs the condition: a branch cannot be built");
        }
        TN_TRY(status);
    }
    for (uint32_t i = 0; i < x->outputs && i < count; i++)
        TN_TRY(tn_expand_set(x, i, results[i]));
    return TN_OK;
}

static const tn_onnx_op rows[] = {
    TN_ONNX_CONTROL("If", 2, .regions = "then_branch else_branch", .since = 1, .inputs = {1, 1},
                    .outputs = {1, TN_ONNX_ANY}, .flags = TN_ONNX_UNRANKED, .expand = expand_if),
};

const tn_onnx_family tn_onnx_family_if = {rows, sizeof rows / sizeof *rows};
