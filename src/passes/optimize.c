/* tn_graph_optimize: the pipeline for users, with the reference interpreter to fold with. */
#include "passes/pass.h"

static bool claim_all(void *ctx, const tn_graph *g, tn_node node) {
    (void)ctx, (void)g, (void)node;
    return true;
}

static void report(void *ctx, const tn_pass_record *record) {
    const tn_optimize_options *o = ctx;
    o->report(o->report_user, &(const tn_pass_report){.name = record->pass->name,
                                                      .seconds = record->seconds,
                                                      .nodes_before = record->nodes_before,
                                                      .nodes_after = record->nodes_after,
                                                      .sites = record->sites});
}

tn_status tn_graph_optimize(tn_graph *graph, const tn_optimize_options *options) {
    tn_optimize_options o = {.size = sizeof o};
    TN_TRY(tn_graph_changeable(graph));
    if (options) { /* fields that the caller's version of the struct lacks stay zero */
        if (options->size < sizeof(size_t))
            return tn_fail(TN_ERR_USAGE, "tn_graph_optimize: options without a size; make them with TN_OPTIONS");
        memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
    }
    if (o.level < TN_LEVEL_DEFAULT || o.level > TN_LEVEL_3)
        return tn_fail(TN_ERR_USAGE, "tn_graph_optimize: there is no level %d", (int)o.level);
    if (o.rewrite_count && !o.rewrites)
        return tn_fail(TN_ERR_USAGE, "tn_graph_optimize: the list of rewrites is NULL");
    tn_pass_context context = {
        .level = o.level == TN_LEVEL_DEFAULT ? 2 : (int)o.level - (int)TN_LEVEL_0,
        .disable = o.disable,
        .passes = o.passes,
        .dump = o.dump,
        .verify = o.verify,
        .strip_debug = o.strip_debug,
        .keep_variables = o.keep_variables,
        .writable = o.for_onnx,
        .bind_defaults = o.bind_defaults,
        .evaluate = tn_pass_evaluate,
        .evaluate_ctx = graph->heap,
        .fold_bytes = o.fold_bytes,
        .claims = o.keep_composites ? claim_all : NULL,
        .rewrites = o.rewrites,
        .rewrite_count = o.rewrite_count,
        .log = o.log,
        .log_ctx = o.log_user,
        .report = o.report ? report : NULL,
        .report_ctx = &o,
    };
    tn_status status = tn_passes_run(graph, &context);
    tn_pass_context_free(&context);
    return status;
}
