/* From a model's graph to what a session runs: a copy, the passes, and for the cpu back end a plan. */
#include <inttypes.h>
#include <string.h>

#include "base/os.h"
#include "kernels/kernels.h"
#include "passes/pass.h"
#include "runtime/model.h"

static bool claims_all(void *ctx, const tn_graph *g, tn_node n) {
    (void)ctx, (void)g, (void)n;
    return true; /* the interpreter runs composites by their definition */
}

static void log_text(void *ctx, const char *text) {
    const tn_model *m = ctx;
    if (m->log)
        m->log(m->log_user, text);
}

static tn_status run_passes(tn_model *m, const tn_compile_key *key, tn_graph *g) {
    bool reference = key->backend == TN_BACKEND_REFERENCE;
    tn_pass_context c = {.level = key->level,
                         .disable = key->disable,
                         .passes = *key->passes ? key->passes : NULL,
                         .dump = *key->dump ? key->dump : NULL,
                         .verify = key->verify,
                         .bind_defaults = true,
                         .evaluate = tn_pass_evaluate,
                         .evaluate_ctx = m->heap,
                         .max_nodes = m->max_ops,
                         .claims = reference ? claims_all : NULL,
                         .log = m->notes ? log_text : NULL,
                         .log_ctx = m};
    if (reference && key->level < 0) {
        /* the oracle runs nodes as they were written; those that nothing needs no back end runs, so that all refuse the same runs */
        c.level = 0;
        if (!c.passes) {
            c.passes = "defaults,expand,dce";
            c.just_listed = true;
        }
    }
    uint32_t n = tn_graph_input_count(m->graph);
    tn_value *fed = tn_alloc_array(m->heap, n + 1u, sizeof *fed);
    if (!fed)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0, k = 0; i < n && key->fed; i++) { /* a part has some of the inputs, in the same order */
        const char *name = tn_value_name(m->graph, tn_graph_input(m->graph, i));
        if (k == tn_graph_input_count(g) || strcmp(tn_value_name(g, tn_graph_input(g, k)), name) != 0)
            continue;
        if (key->fed[i])
            fed[c.fed_count++] = tn_graph_input(g, k);
        k++;
    }
    c.fed = fed;
    tn_status status = tn_graph_fix_dims(g, key->dims);
    if (status == TN_OK)
        status = tn_passes_run(g, &c);
    tn_pass_context_free(&c);
    tn_free(m->heap, fed);
    return status;
}

static tn_status dump_plan(tn_model *m, const tn_plan *plan, const char *folder) {
    tn_text path, text;
    tn_text_init(&path, m->heap);
    tn_text_init(&text, m->heap);
    tn_text_printf(&path, "%s/plan.txt", folder);
    tn_status status = tn_plan_print(plan, &text);
    if (status == TN_OK && (path.failed || text.failed))
        status = TN_ERR_MEMORY;
    if (status == TN_OK)
        status = tn_file_write(path.data, text.data, text.len);
    tn_text_free(&path);
    tn_text_free(&text);
    return status;
}

tn_graph *tn_model_infer(tn_model *m) {
    const tn_compile_key key = {.backend = TN_BACKEND_REFERENCE,
                                .level = -1,
                                .disable = "",
                                .passes = "defaults,expand",
                                .dump = "",
                                .dims = ""};
    tn_graph *g = tn_graph_clone(m->graph, NULL, NULL);
    if (!g || (run_passes(m, &key, g) == TN_OK && tn_graph_check(g) == TN_OK))
        return g;
    tn_error_record error;
    tn_error_save(&error);
    tn_graph_destroy(g);
    tn_error_restore(&error);
    return NULL;
}

static tn_graph *cut_graph(tn_model *m, const tn_cut *cut) {
    bool typed = true;
    for (uint32_t i = 0; i < cut->feeds; i++)
        typed &= tn_value_type(m->graph, cut->feed[i]).id != 0;
    tn_graph *types = typed ? NULL : tn_model_infer(m);
    if (!typed && !types)
        return NULL;
    tn_graph *g = tn_graph_cut(m->graph, types, cut);
    tn_graph_destroy(types);
    return g;
}

tn_status tn_compile(tn_model *m, const tn_compile_key *key, tn_compiled *c) {
    tn_graph *g = key->cut ? cut_graph(m, key->cut) : tn_graph_clone(m->graph, NULL, NULL);
    if (!g)
        return tn_error_status();
    tn_status status = run_passes(m, key, g);
    if (status == TN_OK)
        status = tn_graph_check(g);
    if (status != TN_OK) {
        tn_error_record error;
        tn_error_save(&error);
        tn_graph_destroy(g);
        return tn_error_restore(&error);
    }
    if (key->backend == TN_BACKEND_REFERENCE) {
        tn_graph_freeze(g);
        c->graph = g;
        return TN_OK;
    }
    tn_lower_options o = {.level = key->level,
                          .isa = key->isa,
                          .kernels = tn_kernels(),
                          .packs = m->packs,
                          .layout = key->layout,
                          .reuse = key->reuse,
                          .measure = key->measure,
                          .describe_only = key->describe_only};
    c->plan = tn_lower(m->heap, g, &o);
    if (!c->plan)
        return tn_error_status();
    c->graph = c->plan->graph;
    if (*key->dump && dump_plan(m, c->plan, key->dump) != TN_OK) {
        tn_error_record error;
        tn_error_save(&error);
        tn_plan_destroy(c->plan);
        c->plan = NULL;
        return tn_error_restore(&error);
    }
    return TN_OK;
}
