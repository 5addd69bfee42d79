/* Composites that no back end claims are replaced by their definitions. */
#include "ops/composite.h"
#include "passes/pass.h"

static tn_status run(tn_graph *g, tn_pass_context *context) {
    /* definitions are appended, so composites within them are met later in the same walk */
    for (uint32_t id = 1; id < g->node.len; id++) {
        tn_node node = {id};
        if (!tn_node_is_alive(g, node) || !tn_node_is_composite(g, node))
            continue;
        if (context->claims && context->claims(context->claims_ctx, g, node))
            continue;
        TN_TRY(tn_composite_inline(g, node));
        context->sites++;
    }
    return TN_OK;
}

const tn_pass tn_pass_inline_composites = {
    .name = "inline-composites",
    .doc = "Composites that no back end claims are replaced by their definitions in primitives.",
    .effect = TN_BIT_EXACT,
    .keeps = TN_KEEPS_ALL,
    .need = TN_PASS_NEEDED_LAST,
    .level = 0,
    .run = run,
};
