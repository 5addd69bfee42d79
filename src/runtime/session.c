/* Sessions: options, creation, reports. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "onnx/late.h"
#include "runtime/session.h"

static const char *text_of(const tn_text *t) {
    return t->data ? t->data : "";
}

static tn_status set_isa(tn_session *s, const char *name) {
    s->key.isa = tn_cpu_best();
    if (!name)
        return TN_OK;
    for (int i = 0; i < TN_ISA_COUNT; i++) {
        if (strcmp(tn_isa_name((tn_isa)i), name) != 0)
            continue;
        if (!tn_cpu_has((tn_isa)i)) {
            tn_fail(TN_ERR_USAGE, "this CPU has no %s", name);
            tn_fail_hint("its best level is %s", tn_isa_name(tn_cpu_best()));
            return TN_ERR_USAGE;
        }
        s->key.isa = (tn_isa)i;
        return TN_OK;
    }
    return tn_fail(TN_ERR_USAGE, "unknown instruction set '%s'", name);
}

static tn_status set_options(tn_session *s, const tn_session_options *o) {
    if (o->size != sizeof *o) {
        tn_fail(TN_ERR_USAGE, "tn_session_options: the size is %zu, not %zu", o->size, sizeof *o);
        tn_fail_hint("make it with TN_OPTIONS(tn_session_options, ...)");
        return TN_ERR_USAGE;
    }
    if ((unsigned)o->backend > TN_BACKEND_REFERENCE || (unsigned)o->level > TN_LEVEL_3 || o->threads < 0 ||
        o->spin_microseconds > 1000000 || (unsigned)o->layout > TN_LAYOUT_NHWC || (unsigned)o->reuse > TN_REUSE_NONE)
        return tn_fail(TN_ERR_USAGE,
                       "tn_session_options: back end, level, threads, spin, layout or reuse out of range");
    if (o->threads > tn_cpu_count() && !o->oversubscribe) {
        tn_fail(TN_ERR_USAGE, "%d threads were asked for, this process may use %d CPU%s", o->threads, tn_cpu_count(),
                tn_cpu_count() == 1 ? "" : "s");
        tn_fail_hint("more threads than CPUs are never faster");
        return TN_ERR_USAGE;
    }
    s->options = *o;
    tn_text *texts[] = {&s->disable, &s->passes, &s->dump};
    const char *given[] = {o->disable, o->passes, o->dump};
    for (int i = 0; i < 3; i++)
        tn_text_add(texts[i], given[i] ? given[i] : "");
    for (const char *const *d = o->dims; d && *d; d++) {
        if (d != o->dims)
            tn_text_add(&s->dims, ",");
        tn_text_add(&s->dims, *d);
    }
    if (s->disable.failed || s->passes.failed || s->dump.failed || s->dims.failed)
        return TN_ERR_MEMORY;
    s->key = (tn_compile_key){.backend = o->backend == TN_BACKEND_DEFAULT ? TN_BACKEND_CPU : o->backend,
                              .level = o->level != TN_LEVEL_DEFAULT         ? (int)o->level - TN_LEVEL_0
                                       : o->backend == TN_BACKEND_REFERENCE ? -1
                                                                            : 2,
                              .disable = text_of(&s->disable),
                              .passes = text_of(&s->passes),
                              .dump = text_of(&s->dump),
                              .dims = text_of(&s->dims),
                              .verify = o->verify,
                              .describe_only = o->describe_only,
                              .layout = o->layout,
                              .reuse = o->reuse,
                              .measure = o->measure};
    return set_isa(s, o->isa);
}

/* After compiling failed for lack of memory: which constants are the largest. */
void tn_session_say_largest(const tn_session *s) {
    const tn_graph *g = s->model->graph;
    enum { SAID = 3 };
    tn_value largest[SAID] = {{0}};
    size_t bytes[SAID] = {0};
    for (tn_node n = tn_region_first(g, tn_graph_region(g)); n.id; n = tn_node_next(g, n)) {
        tn_value v = tn_node_output(g, n, 0);
        tn_tensor *t = v.id ? tn_value_constant(g, v) : NULL;
        for (int k = 0; k < SAID && t; k++)
            if (tn_tensor_bytes(t) > bytes[k]) {
                memmove(largest + k + 1, largest + k, (size_t)(SAID - 1 - k) * sizeof *largest);
                memmove(bytes + k + 1, bytes + k, (size_t)(SAID - 1 - k) * sizeof *bytes);
                largest[k] = v;
                bytes[k] = tn_tensor_bytes(t);
                break;
            }
    }
    char text[200];
    for (int k = 0; k < SAID && largest[k].id; k++)
        tn_fail_where("%s, %zu bytes: %s", k ? "then" : "the largest constant", bytes[k],
                      tn_value_describe(g, largest[k], text, sizeof text));
}

tn_session *tn_session_create(tn_model *model, const tn_session_options *options) {
    static const tn_session_options none = {.size = sizeof none};
    if (!model) {
        tn_fail(TN_ERR_USAGE, "a session's model is NULL");
        return NULL;
    }
    tn_session *s = tn_alloc(model->heap, sizeof *s);
    if (!s)
        return NULL;
    s->heap = model->heap;
    s->model = tn_model_retain(model);
    tn_text_init(&s->disable, s->heap);
    tn_text_init(&s->passes, s->heap);
    tn_text_init(&s->dump, s->heap);
    tn_text_init(&s->dims, s->heap);
    bool ok = set_options(s, options ? options : &none) == TN_OK;
    if (ok) {
        int threads = s->options.threads ? s->options.threads : tn_cpu_count();
        s->pool = tn_pool_create(s->heap, threads);
        if (s->pool)
            tn_pool_spin(s->pool, s->options.spin_microseconds);
        if (s->pool && s->options.measure)
            tn_pool_idle(s->pool, true);
        ok = s->pool && (s->parks = tn_park_init(&s->park)) &&
             (s->whole.compiled = tn_model_compile(model, &s->key)) != NULL;
    }
    if (ok)
        return s;
    if (tn_error_status() == TN_ERR_LIMIT && strstr(tn_error_what(), "memory limit"))
        tn_session_say_largest(s);
    tn_error_record error;
    tn_error_save(&error);
    tn_session_destroy(s);
    tn_error_restore(&error);
    return NULL;
}

void tn_session_destroy(tn_session *s) {
    if (!s)
        return;
    if (s->parks) {
        atomic_store(&s->closing, true);
        tn_park_lock(&s->park);
        while (s->running)
            tn_park_wait(&s->park);
        tn_park_unlock(&s->park);
        tn_park_destroy(&s->park);
    }
    tn_pool_destroy(s->pool);
    tn_session_free_runs(s);
    tn_model_destroy(s->model);
    tn_text_free(&s->disable);
    tn_text_free(&s->passes);
    tn_text_free(&s->dump);
    tn_text_free(&s->dims);
    tn_free(s->heap, s);
}

/* --- reports -------------------------------------------------------------------------------------------------------------------------- */

bool tn_session_measured(const tn_session *s, uint64_t *peak_bytes) {
    if (peak_bytes)
        *peak_bytes = s ? s->measured_bytes : 0;
    return s && s->measured;
}

const tn_graph *tn_session_graph(tn_session *s) {
    return s ? s->whole.compiled->graph : NULL;
}

tn_status tn_session_describe(tn_session *s, tn_session_report *report) {
    if (!s || !report)
        return tn_fail(TN_ERR_USAGE, "a session or its report is NULL");
    *report = (tn_session_report){.arena_bytes = s->arena_bytes, .peak_bytes = tn_heap_peak(s->heap)};
    const tn_graph *g = s->whole.compiled->graph;
    for (tn_node n = tn_region_first(g, tn_graph_region(g)); n.id; n = tn_node_next(g, n))
        report->nodes += !tn_node_has_trait(g, n, TN_TERMINATOR | TN_CONSTANT);
    tn_late_counts late = tn_late_cache_counts(s->whole.compiled->late);
    report->expansions = late.made;
    report->expansions_found = late.found;
    report->expansion_bytes = late.bytes;
    const tn_plan *p = s->whole.compiled->plan;
    if (p) {
        report->kernels = p->kernel.len;
        report->host_calls = p->host.len;
        report->operators = p->operators;
        report->fused_operators = p->fused_operators;
        report->weight_bytes = p->weight_bytes;
    }
    return TN_OK;
}

tn_status tn_memory_report(tn_session *s, tn_memory *report) {
    if (!s || !report)
        return tn_fail(TN_ERR_USAGE, "a session or its report is NULL");
    tn_frame_memory lanes = tn_session_lanes(s, false);
    const tn_plan *p = s->whole.compiled->plan;
    *report = (tn_memory){.in_use = tn_heap_in_use(s->heap),
                          .peak = tn_heap_peak(s->heap),
                          .cached = lanes.arena + lanes.cached,
                          .arenas = lanes.arena,
                          .weights = p ? p->weight_bytes : 0,
                          .packed = p ? p->packed_bytes : 0};
    tn_mutex_lock(s->model->mutex);
    report->plans = s->model->compiled.len;
    report->compilations = s->model->compilations;
    tn_mutex_unlock(s->model->mutex);
    return TN_OK;
}

tn_status tn_session_plan(tn_session *s, uint32_t index, char *text, size_t size) {
    if (!s || !text || !size)
        return tn_fail(TN_ERR_USAGE, "a session, or where a plan is to be described, is NULL");
    tn_mutex_lock(s->model->mutex);
    uint32_t count = s->model->compiled.len;
    snprintf(text, size, "%s", index < count ? s->model->compiled.data[index]->reason : "");
    tn_mutex_unlock(s->model->mutex);
    return index < count ? TN_OK : tn_fail(TN_ERR_USAGE, "plan %" PRIu32 " of %" PRIu32, index, count);
}

void tn_session_trim(tn_session *s) {
    if (s)
        tn_session_lanes(s, true);
}
