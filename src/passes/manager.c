/* Running passes: which, in what order; around each of them time, node counts, dumps, the verifier. */
#include <stdarg.h>
#include <stdio.h>

#include "base/os.h"
#include "passes/names.h"

/* --- notes ---------------------------------------------------------------------------------------------------------------------- */

void tn_pass_note(tn_pass_context *context, const tn_graph *graph, tn_node node, const char *format, ...) {
    if (!context->log || context->notes >= TN_PASS_MAX_NOTES)
        return;
    char text[1024];
    size_t used = 0;
    const char *pass = context->running ? context->running->name : "passes";
    if (++context->notes == TN_PASS_MAX_NOTES) {
        snprintf(text, sizeof text, "%s: more is not listed", pass);
        context->log(context->log_ctx, text);
        return;
    }
    char from[200] = "";
    if (tn_node_origin_count(graph, node))
        tn_node_origin(graph, node, 0, from, sizeof from);
    const char *name = node.id ? tn_node_name(graph, node) : "";
    if (node.id)
        snprintf(text, sizeof text, "%s: %s%s%.80s%s (node %u%s%.150s): ", pass, tn_node_op_name(graph, node),
                 *name ? " '" : "", name, *name ? "'" : "", node.id, *from ? ", from " : "", from);
    else
        snprintf(text, sizeof text, "%s: ", pass);
    used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, sizeof text - used, format, args);
    va_end(args);
    context->log(context->log_ctx, text);
}

/* --- dumps ----------------------------------------------------------------------------------------------------------------------- */

/* Writes NN-name.txt into the dump folder unless the text is that of the last one written. */
static tn_status dump(const tn_graph *graph, tn_pass_context *context, uint32_t number, const char *name, char **last) {
    if (!context->dump)
        return TN_OK;
    char *text = tn_graph_print(graph);
    if (!text)
        return tn_error_status();
    if (*last && strcmp(*last, text) == 0) {
        tn_graph_free_text(graph, text);
        return TN_OK;
    }
    tn_text path;
    tn_text_init(&path, graph->heap);
    tn_text_printf(&path, "%s/%02u-%s.txt", context->dump, number, name);
    tn_status status = path.failed ? TN_ERR_MEMORY : tn_file_write(path.data, text, strlen(text));
    tn_text_free(&path);
    tn_graph_free_text(graph, *last);
    *last = text;
    return status;
}

/* --- running ---------------------------------------------------------------------------------------------------------------------- */

static tn_status verify(const tn_graph *graph, const tn_pass_context *context, const char *when, const char *pass) {
    if (!context->verify)
        return TN_OK;
    tn_status status = tn_graph_verify(graph);
    if (status != TN_OK)
        tn_fail_where("%s%s%s%s", when, pass ? " '" : "", pass ? pass : "", pass ? "'" : "");
    return status;
}

tn_status tn_pass_run_one(const tn_pass *pass, tn_graph *graph, tn_pass_context *context) {
    TN_TRY(tn_graph_changeable(graph));
    context->heap = graph->heap;
    tn_pass_record record = {.pass = pass, .nodes_before = tn_graph_count_nodes(graph)};
    if (!tn_vec_reserve(context->heap, &context->record, 1))
        return tn_error_status();
    context->running = pass;
    context->sites = 0;
    context->notes = 0;
    tn_insertion at = tn_graph_insertion(graph);
    double start = tn_clock();
    tn_status status = pass->run(graph, context);
    if (status == TN_OK) /* a sticky error that the pass did not see */
        status = tn_graph_check(graph);
    record.seconds = tn_clock() - start;
    tn_graph_set_insertion(graph, at);
    record.nodes_after = tn_graph_count_nodes(graph);
    record.sites = context->sites;
    context->record.data[context->record.len++] = record;
    context->running = NULL;
    if (status == TN_ERR_MEMORY || status == TN_ERR_LIMIT)
        tn_graph_stick(graph); /* it may have been left in the middle of a change */
    if (status != TN_OK)
        tn_fail_where("in pass '%s'", pass->name);
    else
        status = verify(graph, context, "after pass", pass->name);
    if (status == TN_OK && context->report)
        context->report(context->report_ctx, &record);
    return status;
}

typedef TN_VEC(const tn_pass *) pass_list;

static bool is_listed(const pass_list *list, const tn_pass *pass) {
    for (uint32_t i = 0; i < list->len; i++)
        if (list->data[i] == pass)
            return true;
    return false;
}

/* The passes of an explicit list, and what is needed around them. */
static bool explicit_passes(const tn_pass_context *c, tn_heap *heap, pass_list *out) {
    pass_list named = {0};
    const char *list = c->passes, *name;
    size_t length;
    uint32_t count;
    const tn_pass *const *pipeline = tn_pipeline(&count);
    bool ok = true;
    while (ok && tn_name_next(&list, &name, &length)) {
        const tn_pass *pass = tn_pass_find(name, length);
        if (!tn_name_listed(c->disable, pass->name))
            ok = tn_vec_push(heap, &named, pass);
    }
    for (uint32_t i = 0; ok && i < count && !c->just_listed; i++)
        if (pipeline[i]->need == TN_PASS_NEEDED_FIRST && !is_listed(&named, pipeline[i]))
            ok = tn_vec_push(heap, out, pipeline[i]);
    for (uint32_t i = 0; ok && i < named.len; i++)
        ok = tn_vec_push(heap, out, named.data[i]);
    for (uint32_t i = 0; ok && i < count && !c->just_listed; i++)
        if (pipeline[i]->need == TN_PASS_NEEDED_LAST && !is_listed(out, pipeline[i]))
            ok = tn_vec_push(heap, out, pipeline[i]);
    tn_vec_free(heap, &named);
    return ok;
}

static bool level_passes(const tn_pass_context *c, tn_heap *heap, pass_list *out) {
    uint32_t count;
    const tn_pass *const *pipeline = tn_pipeline(&count);
    bool ok = true;
    for (uint32_t i = 0; ok && i < count; i++) {
        const tn_pass *pass = pipeline[i];
        bool asked = pass == &tn_pass_strip_debug && c->strip_debug;
        if ((asked || pass->level <= c->level) && !tn_name_listed(c->disable, pass->name))
            ok = tn_vec_push(heap, out, pass);
    }
    return ok;
}

static tn_status run_list(tn_graph *graph, tn_pass_context *context, const pass_list *list) {
    char *last = NULL;
    tn_status status = verify(graph, context, "before the first pass", NULL);
    if (status == TN_OK && context->dump)
        status = tn_folder_make(context->dump);
    if (status == TN_OK)
        status = dump(graph, context, 0, "input", &last);
    for (uint32_t i = 0; i < list->len && status == TN_OK; i++) {
        status = tn_pass_run_one(list->data[i], graph, context);
        if (status == TN_OK)
            status = dump(graph, context, i + 1, list->data[i]->name, &last);
    }
    tn_graph_free_text(graph, last);
    return status;
}

tn_status tn_passes_run(tn_graph *graph, tn_pass_context *context) {
    TN_TRY(tn_graph_changeable(graph));
    TN_TRY(tn_passes_check_names(context));
    TN_TRY(tn_rewrites_check(graph, context->rewrite_count, context->rewrites));
    pass_list list = {0};
    bool ok =
        context->passes ? explicit_passes(context, graph->heap, &list) : level_passes(context, graph->heap, &list);
    tn_status status = ok ? run_list(graph, context, &list) : tn_error_status();
    tn_vec_free(graph->heap, &list);
    return status;
}

void tn_pass_context_free(tn_pass_context *context) {
    tn_vec_free(context->heap, &context->record);
}
