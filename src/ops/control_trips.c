/* How many trips a while makes, where that is known: it counts from 0 up to a limit, and nothing ends it before. */
#include "ops/control.h"
#include "ops/scalar.h"

/* Through reshapes and broadcasts of one element. */
static tn_value behind_views(const tn_graph *g, tn_value v) {
    for (tn_node n; (n = tn_value_producer(g, v)).id && tn_node_op(g, n)->traits & TN_VIEW;) {
        tn_value from = tn_node_input(g, n, 0);
        for (int i = 0; i < tn_value_rank(g, from); i++)
            if (!tn_dim_is_const(g, tn_value_dim(g, from, i), &(int64_t){0}))
                return v;
        v = from;
    }
    return v;
}

static tn_node made_by(const tn_graph *g, tn_value v, tn_scalar_op code) {
    tn_node n = tn_value_producer(g, v);
    const tn_op *op = n.id ? tn_node_op(g, n) : NULL;
    return op && op->lowering == TN_LOWER_SCALAR && op->code == code ? n : (tn_node){0};
}

static bool is_number(const tn_graph *g, tn_value v, int64_t number) {
    const tn_tensor *t = tn_value_constant(g, behind_views(g, v));
    return t && t->count == 1 && (t->dtype == TN_I64 || t->dtype == TN_I32 || t->dtype == TN_BOOL) &&
           tn_tensor_get_i64(t, 0) == number;
}

static uint32_t index_of(const tn_graph *g, tn_region region, tn_value v) {
    uint32_t n = tn_region_arg_count(g, region), i = 0;
    while (i < n && tn_region_arg(g, region, i).id != v.id)
        i++;
    return i; /* n: it is none */
}

/* A loop value that is true on entry and is what it was after each trip. */
static bool stays_true(const tn_graph *g, tn_node node, tn_value v) {
    tn_region cond = tn_node_region(g, node, 0), body = tn_node_region(g, node, 1);
    uint32_t i = index_of(g, cond, behind_views(g, v));
    if (i == tn_region_arg_count(g, cond))
        return is_number(g, v, 1);
    return is_number(g, tn_node_input(g, node, i), 1) &&
           behind_views(g, tn_region_result(g, body, i)).id == tn_region_arg(g, body, i).id;
}

/* A loop value that begins with 0 and grows by 1. */
static bool counts(const tn_graph *g, tn_node node, tn_value v, uint32_t *index) {
    tn_region cond = tn_node_region(g, node, 0), body = tn_node_region(g, node, 1);
    uint32_t i = *index = index_of(g, cond, behind_views(g, v));
    if (i == tn_region_arg_count(g, cond) || !is_number(g, tn_node_input(g, node, i), 0))
        return false;
    tn_node add = made_by(g, tn_region_result(g, body, i), TN_SCALAR_ADD);
    tn_value arg = tn_region_arg(g, body, i);
    return add.id && ((tn_node_input(g, add, 0).id == arg.id && is_number(g, tn_node_input(g, add, 1), 1)) ||
                      (tn_node_input(g, add, 1).id == arg.id && is_number(g, tn_node_input(g, add, 0), 1)));
}

tn_value tn_while_limit(const tn_graph *g, tn_node node, uint32_t *counter) {
    tn_value go = tn_region_result(g, tn_node_region(g, node, 0), 0);
    tn_node both = made_by(g, go, TN_SCALAR_AND);
    if (both.id) {
        bool second = stays_true(g, node, tn_node_input(g, both, 0));
        if (!second && !stays_true(g, node, tn_node_input(g, both, 1)))
            return (tn_value){0};
        go = tn_node_input(g, both, second);
    }
    tn_node less = made_by(g, go, TN_SCALAR_LESS);
    if (!less.id || !counts(g, node, tn_node_input(g, less, 0), counter))
        return (tn_value){0};
    return tn_node_input(g, less, 1);
}

tn_dim tn_while_trips(tn_infer *c) {
    tn_graph *g = c->graph;
    const tn_dim *known;
    int64_t number;
    uint32_t counter;
    tn_value limit = tn_while_limit(g, c->node, &counter);
    if (!limit.id || tn_value_contents(g, limit, &known) != 1 || tn_control_inner(c, *known))
        return (tn_dim){0};
    if (tn_dim_is_const(g, *known, &number) && number > INT32_MAX) /* it does not end: no size that anything has */
        return (tn_dim){0};
    return tn_dim_max(g, *known, tn_dim_const(g, 0));
}
