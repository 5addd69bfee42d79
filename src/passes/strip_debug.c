/* Removes what is there for debugging only: print answers its input, assert nothing. */
#include "passes/pass.h"

static tn_status strip(tn_graph *g, tn_pass_context *context, tn_node node) {
    uint32_t outputs = tn_node_output_count(g, node);
    tn_value x = tn_node_input(g, node, 0), y = tn_node_output(g, node, 0);
    bool passes_on = outputs == 1 && x.id && tn_value_type(g, x).id == tn_value_type(g, y).id;
    if (outputs && !passes_on)
        return TN_OK;
    if (outputs) {
        TN_TRY(tn_value_replace_uses(g, y, x));
        TN_TRY(tn_value_inherit(g, x, y));
    }
    TN_TRY(tn_node_remove(g, node));
    context->sites++;
    return outputs ? tn_value_note_symbols(g, x) : TN_OK;
}

static tn_status run(tn_graph *g, tn_pass_context *context) {
    tn_purity purity;
    TN_TRY(tn_purity_init(&purity, g));
    tn_status status = TN_OK;
    for (uint32_t id = 1; id < g->node.len && status == TN_OK; id++) {
        tn_node node = {id};
        if (tn_node_has_trait(g, node, TN_EFFECT) && tn_node_role(g, node) == TN_ROLE_DEBUG &&
            !tn_purity_is_ordered(&purity, g, node))
            status = strip(g, context, node);
    }
    tn_purity_free(&purity);
    return status;
}

const tn_pass tn_pass_strip_debug = {
    .name = "strip-debug",
    .doc = "Removes print and assert. Only when asked for: an assert that fails is an answer.",
    .effect = TN_BIT_EXACT,
    .keeps = TN_KEEPS_ALL,
    .level = TN_LEVEL_ON_REQUEST,
    .run = run,
};
