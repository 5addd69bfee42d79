/* Removes what does nothing, and joins movements that follow each other: exact algebra only. The rows stand in cleanup_move.c
   (movement, casts) and cleanup_algebra.c (arithmetic). */
#include "passes/cleanup.h"

tn_node tn_cleanup_same_op(const tn_graph *g, tn_node node, uint32_t index) {
    tn_node maker = tn_value_producer(g, tn_node_input(g, node, index));
    return maker.id && tn_node_op(g, maker) == tn_node_op(g, node) ? maker : (tn_node){0};
}

tn_status tn_cleanup_forward(tn_rewriter *r, tn_node node, tn_value value) {
    const tn_graph *g = tn_rewriter_graph(r);
    tn_type type = tn_value_type(g, value);
    if (!type.id || type.id != tn_value_type(g, tn_node_output(g, node, 0)).id)
        return TN_OK;
    return tn_rewrite_replace(r, node, value);
}

tn_status tn_cleanup_built(tn_rewriter *r, tn_node node, tn_value value) {
    tn_graph *g = tn_rewriter_graph(r);
    if (value.id)
        return tn_cleanup_forward(r, node, value);
    if (!g->stuck || (g->error.status != TN_ERR_MODEL && g->error.status != TN_ERR_USAGE))
        return tn_graph_check(g);
    g->stuck = false; /* a builder that fails leaves nothing behind */
    tn_error_clear();
    return TN_OK;
}

static tn_status run(tn_graph *g, tn_pass_context *context) {
    tn_rewrite rows[64];
    uint32_t count = 0;
    for (uint32_t i = 0; i < tn_cleanup_move_count; i++)
        rows[count++] = tn_cleanup_move_rows[i];
    for (uint32_t i = 0; i < tn_cleanup_algebra_count; i++)
        rows[count++] = tn_cleanup_algebra_rows[i];
    return tn_rewrites_run(g, context, count, rows);
}

const tn_pass tn_pass_cleanup = {
    .name = "cleanup",
    .doc = "Removes identities (reshape, transpose, cast, x * 1, ...) and joins movements that follow each other.",
    .effect = TN_BIT_EXACT,
    .keeps = TN_KEEPS_ALL,
    .level = 1,
    .run = run,
};
