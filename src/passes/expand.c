/* ONNX operators become primitives and composites. */
#include "onnx/model.h"
#include "passes/pass.h"

static tn_status run(tn_graph *g, tn_pass_context *context) {
    uint64_t before = 0, after = 0;
    for (uint32_t i = 1; i < g->node.len; i++)
        before += g->node.data[i].op && g->node.data[i].op->dialect == TN_DIALECT_ONNX;
    if (!before)
        return TN_OK;
    TN_TRY(context->writable ? tn_onnx_expand_writable(g, context->max_nodes) : tn_onnx_expand(g, context->max_nodes));
    for (uint32_t i = 1; i < g->node.len; i++)
        after += g->node.data[i].op && g->node.data[i].op->dialect == TN_DIALECT_ONNX;
    context->sites += before > after ? before - after : 0;
    return TN_OK;
}

const tn_pass tn_pass_expand = {
    .name = "expand",
    .doc = "ONNX operators become primitives and composites, by what stands in src/onnx/.",
    .effect = TN_BIT_EXACT,
    .keeps = TN_KEEPS_ALL,
    .need = TN_PASS_NEEDED_FIRST,
    .level = 0,
    .run = run,
};
