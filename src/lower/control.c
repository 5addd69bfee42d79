/* Branches and loops whose values keep their shapes: BRANCH and LOOP instructions over the code of the regions. */
#include "lower/lowering.h"
#include "ops/ops.h"

/* Whether all symbols that a value's dims use are bound here, and kernels can copy it. */
static bool is_plain(const tn_lowerer *l, tn_value v) {
    return tn_lowering_known(l, v) && tn_lowering_admits(tn_value_dtype(l->graph, v));
}

static bool same_dims(const tn_graph *g, tn_value a, tn_value b) {
    if (tn_value_dtype(g, a) != tn_value_dtype(g, b) || tn_value_rank(g, a) != tn_value_rank(g, b))
        return false;
    for (int i = 0; i < tn_value_rank(g, a); i++)
        if (!tn_dim_equal(g, tn_value_dim(g, a, i), tn_value_dim(g, b, i)))
            return false;
    return true;
}

/* A slot of its own for a value, as its view. */
static uint32_t own_view(tn_lowerer *l, tn_value v) {
    uint32_t slot = tn_lowering_arena_slot(l, v);
    return slot == UINT32_MAX ? TN_NO_VIEW : tn_lowering_view(l, v, slot, (tn_dim){0}, NULL);
}

static tn_status copy_results(tn_lowerer *l, tn_node node, tn_region region, uint32_t count, const uint32_t *to) {
    for (uint32_t i = 0; i < count; i++) {
        tn_value v = tn_region_result(l->graph, region, i);
        uint32_t from = tn_lowering_value(l, v);
        if (from == TN_NO_VIEW)
            return tn_error_status();
        TN_TRY(tn_lowering_copy(l, node, tn_value_dtype(l->graph, v), from, to[i]));
    }
    return TN_OK;
}

/* Every open draft is emitted: what a branch leaves out must not hold code that the rest needs. */
static tn_status flush(tn_lowerer *l) {
    for (uint32_t v = 1; v < l->values; v++)
        if (l->draft_of[v])
            if (tn_lowering_value(l, (tn_value){v}) == TN_NO_VIEW)
                return tn_error_status();
    return TN_OK;
}

/* The code of `else` follows that of `then`; the slots of both lie in the same memory, since they never live together. */
static tn_status lower_if(tn_lowerer *l, tn_node node) {
    tn_graph *g = l->graph;
    uint32_t n = tn_node_output_count(g, node);
    for (uint32_t i = 0; i < n; i++) {
        tn_value y = tn_node_output(g, node, i);
        if (!is_plain(l, y))
            return TN_ERR_UNSUPPORTED;
        for (uint32_t r = 0; r < 2; r++)
            if (!same_dims(g, y, tn_region_result(g, tn_node_region(g, node, r), i)))
                return TN_ERR_UNSUPPORTED;
    }
    uint32_t cond = tn_lowering_value(l, tn_node_input(g, node, 0));
    uint32_t *out = tn_arena_alloc(&l->scratch, (n + 1u) * sizeof *out);
    if (cond == TN_NO_VIEW || !out)
        return tn_error_status();
    TN_TRY(flush(l));
    for (uint32_t i = 0; i < n; i++)
        if ((out[i] = own_view(l, tn_node_output(g, node, i))) == TN_NO_VIEW)
            return TN_ERR_MEMORY;
    uint32_t branch = l->plan->code.len, segment = l->segment; /* what a branch binds is not bound after it */
    TN_TRY(tn_lowering_emit(l, TN_DO_BRANCH, cond, 0));
    TN_TRY(tn_lower_region(l, tn_node_region(g, node, 0)));
    TN_TRY(copy_results(l, node, tn_node_region(g, node, 0), n, out));
    l->segment = segment;
    uint32_t leave = l->plan->code.len;
    TN_TRY(tn_lowering_emit(l, TN_DO_BRANCH, UINT32_MAX, 0));
    l->plan->code.data[branch].b = l->plan->code.len;
    TN_TRY(tn_lower_region(l, tn_node_region(g, node, 1)));
    TN_TRY(copy_results(l, node, tn_node_region(g, node, 1), n, out));
    l->segment = segment;
    l->plan->code.data[leave].b = l->plan->code.len;
    return TN_OK;
}

/* Carried values live in slots of their own; a trip's results are copied aside first, since they may be views of them. */
static tn_status lower_while(tn_lowerer *l, tn_node node) {
    tn_graph *g = l->graph;
    uint32_t n = tn_node_input_count(g, node);
    tn_region cond = tn_node_region(g, node, 0), body = tn_node_region(g, node, 1);
    if (tn_node_output_count(g, node) != n)
        return TN_ERR_UNSUPPORTED; /* stacked values: their number is not known before the end */
    for (uint32_t i = 0; i < n; i++) {
        tn_value x = tn_node_input(g, node, i);
        if (!is_plain(l, x) || !same_dims(g, x, tn_region_arg(g, body, i)) ||
            !same_dims(g, x, tn_region_arg(g, cond, i)) || !same_dims(g, x, tn_region_result(g, body, i)) ||
            !same_dims(g, x, tn_node_output(g, node, i)))
            return TN_ERR_UNSUPPORTED;
    }
    uint32_t *carried = tn_arena_alloc(&l->scratch, 2 * (n + 1u) * sizeof *carried),
             *next = carried ? carried + n : NULL;
    if (!carried)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < n; i++) {
        tn_value y = tn_node_output(g, node, i), x = tn_node_input(g, node, i);
        uint32_t from = tn_lowering_value(l, x);
        if (from == TN_NO_VIEW || (next[i] = own_view(l, y)) == TN_NO_VIEW ||
            (carried[i] = own_view(l, y)) == TN_NO_VIEW)
            return tn_error_status();
        TN_TRY(tn_lowering_copy(l, node, tn_value_dtype(g, x), from, carried[i]));
        /* made before the loop begins, so that its memory is its own throughout */
        TN_TRY(tn_lowering_copy(l, node, tn_value_dtype(g, x), from, next[i]));
        const tn_view v = l->plan->view.data[carried[i]];
        if (tn_lowering_view(l, tn_region_arg(g, cond, i), v.slot, (tn_dim){0}, NULL) == TN_NO_VIEW ||
            tn_lowering_view(l, tn_region_arg(g, body, i), v.slot, (tn_dim){0}, NULL) == TN_NO_VIEW)
            return TN_ERR_MEMORY;
    }
    TN_TRY(flush(l));
    uint32_t top = l->plan->code.len, segment = l->segment;
    TN_TRY(tn_lower_region(l, cond));
    uint32_t go_on = tn_lowering_value(l, tn_region_result(g, cond, 0)), branch = l->plan->code.len;
    if (go_on == TN_NO_VIEW)
        return tn_error_status();
    TN_TRY(tn_lowering_emit(l, TN_DO_BRANCH, go_on, 0));
    l->segment = segment;
    TN_TRY(tn_lower_region(l, body));
    TN_TRY(copy_results(l, node, body, n, next));
    for (uint32_t i = 0; i < n; i++)
        TN_TRY(tn_lowering_copy(l, node, tn_value_dtype(g, tn_node_output(g, node, i)), next[i], carried[i]));
    TN_TRY(tn_lowering_emit(l, TN_DO_LOOP, 0, top));
    l->segment = segment;
    l->plan->code.data[branch].b = l->plan->code.len;
    return TN_OK;
}

tn_status tn_lower_control(tn_lowerer *l, tn_node node) {
    switch (tn_node_op(l->graph, node)->code) {
    case TN_FLOW_IF: return lower_if(l, node);
    case TN_FLOW_WHILE: return lower_while(l, node);
    default: return TN_ERR_UNSUPPORTED;
    }
}
