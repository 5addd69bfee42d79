/* Sessions: options, binding by name, running. */
#include <inttypes.h>
#include <string.h>

#include "base/os.h"
#include "interp/interp.h"
#include "onnx/late.h"
#include "runtime/execute.h"
#include "runtime/model.h"

struct tn_session {
    tn_heap *heap;
    tn_model *model;
    tn_session_options options; /* texts point into `text` */
    tn_compile_key key;
    tn_text disable, passes, dump, dims;
    tn_compiled *compiled; /* for the default inputs */
    tn_pool *pool;
    _Atomic uint64_t arena_bytes;
};

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
    if ((unsigned)o->backend > TN_BACKEND_REFERENCE || (unsigned)o->level > TN_LEVEL_3 || o->threads < 0)
        return tn_fail(TN_ERR_USAGE, "tn_session_options: back end, level or threads out of range");
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
                              .describe_only = o->describe_only};
    return set_isa(s, o->isa);
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
        ok = s->pool && (s->compiled = tn_model_compile(model, &s->key)) != NULL;
    }
    if (ok)
        return s;
    tn_error_record error;
    tn_error_save(&error);
    tn_session_destroy(s);
    tn_error_restore(&error);
    return NULL;
}

void tn_session_destroy(tn_session *s) {
    if (!s)
        return;
    tn_pool_destroy(s->pool);
    tn_model_release(s->model, s->compiled);
    tn_model_destroy(s->model);
    tn_text_free(&s->disable);
    tn_text_free(&s->passes);
    tn_text_free(&s->dump);
    tn_text_free(&s->dims);
    tn_free(s->heap, s);
}

/* --- binding ------------------------------------------------------------------------------------------------------------------------- */

static void list_names(const tn_graph *g, bool inputs) {
    char text[200];
    uint32_t n = inputs ? tn_graph_input_count(g) : tn_graph_output_count(g);
    for (uint32_t i = 0; i < n && i < 12; i++) {
        tn_value v = inputs ? tn_graph_input(g, i) : tn_graph_output(g, i);
        tn_fail_where("%s %" PRIu32 ": '%s' %s%s", inputs ? "input" : "output", i,
                      inputs ? tn_value_name(g, v) : tn_graph_output_name(g, i),
                      tn_type_describe(g, tn_value_type(g, v), text, sizeof text),
                      inputs && tn_graph_input_default(g, v) ? " (has a default)" : "");
    }
}

static uint32_t find_input(const tn_graph *g, const char *name) {
    for (uint32_t i = 0; name && i < tn_graph_input_count(g); i++)
        if (strcmp(tn_value_name(g, tn_graph_input(g, i)), name) == 0)
            return i;
    return UINT32_MAX;
}

static uint32_t find_output(const tn_graph *g, const char *name) {
    for (uint32_t i = 0; name && i < tn_graph_output_count(g); i++)
        if (strcmp(tn_graph_output_name(g, i), name) == 0)
            return i;
    return UINT32_MAX;
}

static tn_status check_bindings(const tn_session *s, uint32_t n_in, const tn_binding *in, uint32_t n_out,
                                const tn_output *out, uint8_t *fed, bool *special) {
    const tn_graph *g = s->model->graph;
    for (uint32_t i = 0; i < n_in; i++) {
        uint32_t k = find_input(g, in[i].name);
        if (k == UINT32_MAX) {
            tn_fail(TN_ERR_INPUT, "the model has no input '%s'", in[i].name ? in[i].name : "(NULL)");
            list_names(g, true);
            return TN_ERR_INPUT;
        }
        if (!in[i].tensor && !in[i].object)
            return tn_fail(TN_ERR_USAGE, "input '%s' is bound to NULL", in[i].name);
        if (fed[k])
            return tn_fail(TN_ERR_USAGE, "input '%s' is bound twice", in[i].name);
        fed[k] = 1;
    }
    for (uint32_t i = 0; i < n_out; i++) {
        if (find_output(g, out[i].name) == UINT32_MAX) {
            tn_fail(TN_ERR_INPUT, "the model has no output '%s'", out[i].name ? out[i].name : "(NULL)");
            list_names(g, false);
            return TN_ERR_INPUT;
        }
        if (!out[i].tensor && !out[i].object)
            return tn_fail(TN_ERR_USAGE, "output '%s' has no place to go to", out[i].name);
    }
    *special = false;
    for (uint32_t k = 0; k < tn_graph_input_count(g); k++) {
        bool has_default = tn_graph_input_default(g, tn_graph_input(g, k)) != NULL;
        if (!fed[k] && !has_default) {
            tn_fail(TN_ERR_INPUT, "input '%s' is not given", tn_value_name(g, tn_graph_input(g, k)));
            list_names(g, true);
            tn_fail_hint("give every input that has no default");
            return TN_ERR_INPUT;
        }
        fed[k] = fed[k] && has_default;
        *special |= fed[k];
    }
    return TN_OK;
}

/* --- running ------------------------------------------------------------------------------------------------------------------------- */

typedef struct tapping {
    const tn_session *s;
    const tn_graph *g;
} tapping;

static void tap(void *ctx, tn_value value, const tn_object *object) {
    const tapping *t = ctx;
    const char *name = tn_value_name(t->g, value);
    if (*name)
        t->s->options.tap(t->s->options.tap_user, name, object);
}

static void log_text(void *ctx, const char *text) {
    const tn_model *m = ctx;
    if (m->log)
        m->log(m->log_user, text);
}

static tn_status run_reference(tn_session *s, const tn_compiled *c, tn_object **in, tn_object **out) {
    const tn_graph *g = c->graph;
    uint32_t n_in = tn_graph_input_count(g), n_out = tn_graph_output_count(g), n = 0;
    tn_value *values = tn_alloc_array(s->heap, (size_t)n_in + n_out + 1, sizeof *values);
    tn_object **given = tn_alloc_array(s->heap, (size_t)n_in + 1, sizeof *given);
    tapping t = {s, g};
    tn_interp_options o = {.heap = s->heap,
                           .pool = s->pool,
                           .log = log_text,
                           .log_ctx = s->model,
                           .tap = s->options.tap ? tap : NULL,
                           .tap_ctx = &t,
                           .check_shapes = s->options.check_shapes,
                           .max_bytes = s->options.max_bytes,
                           .late = c->late};
    tn_status status = values && given ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK) {
        for (uint32_t i = 0; i < n_in; i++)
            if (in[i]) {
                values[n] = tn_graph_input(g, i);
                given[n++] = in[i];
            }
        for (uint32_t i = 0; i < n_out; i++)
            values[n_in + i] = tn_graph_output(g, i);
        status = tn_interp_run(g, &o, n, values, given, n_out, values + n_in, out);
    }
    tn_free(s->heap, values);
    tn_free(s->heap, given);
    return status;
}

/* Hands a result over, or writes it into the tensor that was given. */
static tn_status deliver(const tn_output *to, tn_object *result) {
    tn_tensor *t = tn_object_tensor(result);
    if (!to->tensor) {
        *to->object = tn_object_retain(result);
        return TN_OK;
    }
    if (!t)
        return tn_fail(TN_ERR_USAGE, "output '%s' is no tensor: ask for an object", to->name);
    if (!*to->tensor) {
        *to->tensor = tn_tensor_retain(t);
        return TN_OK;
    }
    tn_tensor *mine = *to->tensor;
    bool same = mine->dtype == t->dtype && mine->rank == t->rank;
    for (int i = 0; same && i < t->rank; i++)
        same = mine->dims[i] == t->dims[i];
    if (!same) {
        char a[200], b[200];
        tn_fail(TN_ERR_INPUT, "output '%s': the tensor given for it is %s, the result is %s", to->name,
                tn_tensor_describe(mine, a, sizeof a), tn_tensor_describe(t, b, sizeof b));
        tn_fail_hint("give a tensor of the result's type and shape, or NULL to receive a new one");
        return TN_ERR_INPUT;
    }
    return tn_tensor_assign(mine, t);
}

static tn_status run_compiled(tn_session *s, const tn_compiled *c, uint32_t n_in, const tn_binding *binding,
                              uint32_t n_out, const tn_output *output) {
    const tn_graph *g = c->graph;
    uint32_t inputs = tn_graph_input_count(g), outputs = tn_graph_output_count(g);
    tn_object **in = tn_alloc_array(s->heap, (size_t)inputs + outputs + 1, sizeof *in);
    if (!in)
        return TN_ERR_MEMORY;
    tn_object **out = in + inputs;
    for (uint32_t i = 0; i < n_in; i++) {
        uint32_t k = find_input(g, binding[i].name);
        if (k != UINT32_MAX) /* else no pass left a reader of it */
            in[k] = binding[i].tensor ? tn_tensor_object(binding[i].tensor) : binding[i].object;
    }
    tn_status status;
    if (c->plan) {
        uint64_t bytes = 0;
        tn_execute_options o = {.heap = s->heap,
                                .pool = s->pool,
                                .log = log_text,
                                .log_ctx = s->model,
                                .max_bytes = s->options.max_bytes,
                                .late = c->late,
                                .arena_bytes = &bytes};
        status = tn_execute(c->plan, &o, in, out);
        s->arena_bytes = bytes;
    } else
        status = run_reference(s, c, in, out);
    if (status == TN_ERR_MEMORY && !*tn_error_where()) {
        const char *file = tn_graph_metadata(s->model->graph, "file");
        tn_fail_where("running %s", file ? file : "a graph");
    }
    for (uint32_t i = 0; i < n_out && status == TN_OK; i++)
        status = deliver(&output[i], out[find_output(g, output[i].name)]);
    for (uint32_t i = 0; i < outputs; i++)
        tn_object_destroy(out[i]);
    tn_free(s->heap, in);
    return status;
}

tn_status tn_session_run(tn_session *s, uint32_t n_in, const tn_binding *in, uint32_t n_out, const tn_output *out) {
    if (!s || (n_in && !in) || (n_out && !out))
        return tn_fail(TN_ERR_USAGE, "a session or a list of bindings is NULL");
    if (s->options.describe_only)
        return tn_fail(TN_ERR_USAGE, "a session that was made to be described does not run");
    bool special = false;
    uint32_t n_model = tn_graph_input_count(s->model->graph);
    uint8_t *fed = tn_alloc(s->heap, (size_t)n_model + n_out + 1);
    if (!fed)
        return TN_ERR_MEMORY;
    uint8_t *created = fed + n_model;
    for (uint32_t i = 0; i < n_out; i++) {
        created[i] = !out[i].tensor || !*out[i].tensor;
        if (out[i].object)
            *out[i].object = NULL;
    }
    tn_status status = check_bindings(s, n_in, in, n_out, out, fed, &special);
    if (status == TN_OK && special) {
        tn_compile_key key = s->key;
        key.fed = fed;
        tn_compiled *c = tn_model_compile(s->model, &key);
        status = c ? run_compiled(s, c, n_in, in, n_out, out) : tn_error_status();
        tn_model_release(s->model, c);
    } else if (status == TN_OK)
        status = run_compiled(s, s->compiled, n_in, in, n_out, out);
    for (uint32_t i = 0; i < n_out && status != TN_OK; i++) {
        if (created[i] && out[i].tensor) {
            tn_tensor_destroy(*out[i].tensor);
            *out[i].tensor = NULL;
        }
        if (!out[i].tensor && out[i].object) {
            tn_object_destroy(*out[i].object);
            *out[i].object = NULL;
        }
    }
    tn_free(s->heap, fed);
    return status;
}

/* --- reports -------------------------------------------------------------------------------------------------------------------------- */

const tn_graph *tn_session_graph(tn_session *s) {
    return s ? s->compiled->graph : NULL;
}

tn_status tn_session_describe(tn_session *s, tn_session_report *report) {
    if (!s || !report)
        return tn_fail(TN_ERR_USAGE, "a session or its report is NULL");
    *report = (tn_session_report){.arena_bytes = s->arena_bytes, .peak_bytes = tn_heap_peak(s->heap)};
    const tn_graph *g = s->compiled->graph;
    for (tn_node n = tn_region_first(g, tn_graph_region(g)); n.id; n = tn_node_next(g, n))
        report->nodes += !tn_node_has_trait(g, n, TN_TERMINATOR | TN_CONSTANT);
    tn_late_counts late = tn_late_cache_counts(s->compiled->late);
    report->expansions = late.made;
    report->expansions_found = late.found;
    report->expansion_bytes = late.bytes;
    const tn_plan *p = s->compiled->plan;
    if (p) {
        report->kernels = p->kernel.len;
        report->host_calls = p->host.len;
        report->operators = p->operators;
        report->fused_operators = p->fused_operators;
        report->weight_bytes = p->weight_bytes;
    }
    return TN_OK;
}
