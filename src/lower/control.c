/* Branches whose values have one shape: BRANCH instructions over the code of the regions. */
#include "lower/lowering.h"
#include "ops/ops.h"

bool tn_lowering_is_plain(const tn_lowerer *l, tn_value v) {
    return tn_lowering_known(l, v) && tn_lowering_admits(tn_value_dtype(l->graph, v));
}

bool tn_lowering_same_dims(const tn_graph *g, tn_value a, tn_value b, int lead) {
    if (tn_value_dtype(g, a) != tn_value_dtype(g, b) || tn_value_rank(g, a) < 0 ||
        tn_value_rank(g, a) + lead != tn_value_rank(g, b))
        return false;
    for (int i = 0; i < tn_value_rank(g, a); i++)
        if (!tn_dim_equal(g, tn_value_dim(g, a, i), tn_value_dim(g, b, i + lead)))
            return false;
    return true;
}

uint32_t tn_lowering_own_view(tn_lowerer *l, tn_value v) {
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

tn_status tn_lowering_flush(tn_lowerer *l) {
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
        if (!tn_lowering_is_plain(l, y))
            return TN_ERR_UNSUPPORTED;
        for (uint32_t r = 0; r < 2; r++)
            if (!tn_lowering_same_dims(g, y, tn_region_result(g, tn_node_region(g, node, r), i), 0))
                return TN_ERR_UNSUPPORTED;
    }
    uint32_t cond = tn_lowering_value(l, tn_node_input(g, node, 0));
    uint32_t *out = tn_arena_alloc(&l->scratch, (n + 1u) * sizeof *out);
    if (cond == TN_NO_VIEW || !out)
        return tn_error_status();
    TN_TRY(tn_lowering_flush(l));
    for (uint32_t i = 0; i < n; i++)
        if ((out[i] = tn_lowering_own_view(l, tn_node_output(g, node, i))) == TN_NO_VIEW)
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

tn_status tn_lower_control(tn_lowerer *l, tn_node node) {
    switch (tn_node_op(l->graph, node)->code) {
    case TN_FLOW_IF: return lower_if(l, node);
    case TN_FLOW_WHILE:
    case TN_FLOW_SCAN: return tn_lower_loops(l, 1, &node);
    default: return TN_ERR_UNSUPPORTED;
    }
}
