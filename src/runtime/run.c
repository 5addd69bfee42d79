/* Running a session. */
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "interp/interp.h"
#include "runtime/session.h"

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

typedef struct stopping {
    tn_session *s;
    const tn_cancel *cancel;
} stopping;

static bool is_cancelled(void *ctx) {
    const stopping *c = ctx;
    return atomic_load_explicit(&c->s->closing, memory_order_relaxed) || (c->cancel && tn_cancel_is_set(c->cancel));
}

static tn_status run_reference(tn_session *s, const tn_compiled *c, stopping *stop, tn_object **in, tn_object **out) {
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
                           .late = c->late,
                           .cancelled = is_cancelled,
                           .cancel_ctx = stop};
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
static tn_status deliver(const tn_output *to, const tn_tensor *into, tn_object *result) {
    tn_tensor *t = tn_object_tensor(result);
    if (!to->tensor) {
        *to->object = tn_object_retain(result);
        return TN_OK;
    }
    if (!t)
        return tn_fail(TN_ERR_USAGE, "output '%s' is no tensor: ask for an object", to->name);
    if (*to->tensor == t)
        return TN_OK; /* written in place */
    if (!*to->tensor) {
        *to->tensor = t == into ? tn_tensor_copy_in(NULL, t) : tn_tensor_retain(t);
        return *to->tensor ? TN_OK : tn_error_status();
    }
    tn_tensor *mine = *to->tensor;
    if (!tn_tensor_accept(mine, (tn_dtype)t->dtype, t->rank, t->dims)) {
        char a[200], b[200];
        tn_fail(TN_ERR_INPUT, "output '%s': the tensor given for it is %s, the result is %s", to->name,
                tn_tensor_describe(mine, a, sizeof a), tn_tensor_describe(t, b, sizeof b));
        tn_fail_hint("give a tensor of the result's type and shape, or NULL to receive a new one");
        return TN_ERR_INPUT;
    }
    return tn_tensor_assign(mine, t);
}

/* --- memory that is shared ----------------------------------------------------------------------------------------------------------- */

static bool overlap(const tn_tensor *a, const tn_tensor *b) {
    uintptr_t a_low, a_high, b_low, b_high;
    tn_tensor_span(a, &a_low, &a_high);
    tn_tensor_span(b, &b_low, &b_high);
    return a_low < b_high && b_low < a_high;
}

/* The last instruction that may read an input's memory. Host objects may hold on to it. */
static int32_t last_read(const tn_plan *p, uint32_t input) {
    uint32_t slot = p->view.data[p->input_view.data[input]].slot;
    const tn_slot *s = &p->slot.data[slot];
    if (s->fetched)
        return INT32_MAX;
    for (uint32_t i = 0; i < p->host.len; i++) {
        const tn_host_call *h = &p->host.data[i];
        for (uint32_t k = 0; k < h->input_count + h->outer_count; k++) {
            uint32_t view = k < h->input_count ? p->view_list.data[h->inputs + k]
                                               : p->view_list.data[h->outer + 2 * (k - h->input_count) + 1];
            if (view != UINT32_MAX && p->view.data[view].slot == slot)
                return INT32_MAX;
        }
    }
    return s->last;
}

static bool is_donated(const tn_run_options *options, const char *name) {
    for (const char *const *d = options->donate; d && *d; d++)
        if (strcmp(*d, name) == 0)
            return true;
    return false;
}

/* Refuses outputs that share memory where they may not; fills lane->apart. */
static tn_status check_sharing(const tn_call *call, tn_lane *lane, const tn_binding *in, const tn_output *out,
                               const tn_run_options *options) {
    const tn_compiled *c = call->form->compiled;
    for (const char *const *d = options->donate; d && *d; d++) {
        bool bound = false;
        for (uint32_t i = 0; i < call->inputs && !bound; i++)
            bound = strcmp(in[i].name, *d) == 0;
        if (!bound)
            return tn_fail(TN_ERR_USAGE, "'%s' is donated, but no input is bound to that name", *d);
    }
    for (uint32_t i = 0; i < tn_graph_output_count(c->graph); i++)
        lane->apart[i] = -1;
    for (uint32_t i = 0; i < call->outputs; i++) {
        const tn_tensor *mine = out[i].tensor ? *out[i].tensor : NULL;
        for (uint32_t k = 0; k < i && mine; k++)
            if (out[k].tensor && *out[k].tensor && overlap(mine, *out[k].tensor))
                return tn_fail(TN_ERR_USAGE, "the tensors given for outputs '%s' and '%s' share memory", out[k].name,
                               out[i].name);
        for (uint32_t k = 0; k < call->inputs && mine; k++) {
            const tn_tensor *x = in[k].tensor ? in[k].tensor : tn_object_tensor(in[k].object);
            if (!x || !overlap(mine, x))
                continue;
            if (!is_donated(options, in[k].name)) {
                tn_fail(TN_ERR_USAGE, "the tensor given for output '%s' shares memory with input '%s'", out[i].name,
                        in[k].name);
                tn_fail_hint("donate the input, or give other memory");
                return TN_ERR_USAGE;
            }
            int32_t last = call->input[k] == UINT32_MAX ? -1 : c->plan ? last_read(c->plan, call->input[k]) : INT32_MAX;
            int32_t *apart = &lane->apart[call->output[i]];
            *apart = last > *apart ? last : *apart;
        }
    }
    return TN_OK;
}

static tn_status run_lane(tn_session *s, const tn_call *call, tn_lane *lane, stopping *stop, const tn_binding *in,
                          const tn_output *out, const tn_run_options *options) {
    const tn_compiled *c = call->form->compiled;
    uint32_t inputs = tn_graph_input_count(c->graph), outputs = tn_graph_output_count(c->graph);
    memset(lane->in, 0, inputs * sizeof(tn_object *));
    memset(lane->into, 0, outputs * sizeof(tn_tensor *));
    for (uint32_t i = 0; i < call->inputs; i++)
        if (call->input[i] != UINT32_MAX) /* else no pass left a reader of it */
            lane->in[call->input[i]] = in[i].tensor ? tn_tensor_object(in[i].tensor) : in[i].object;
    for (uint32_t i = 0; i < call->outputs; i++)
        if (out[i].tensor && *out[i].tensor && !lane->into[call->output[i]])
            lane->into[call->output[i]] = *out[i].tensor;
    tn_status status = check_sharing(call, lane, in, out, options);
    if (status != TN_OK)
        return status;
    if (lane->frame) {
        uint64_t bytes = 0;
        bool measured = false;
        uint64_t peak = 0;
        tn_execute_options o = {.heap = s->heap,
                                .pool = s->pool,
                                .log = log_text,
                                .log_ctx = s->model,
                                .max_bytes = s->options.max_bytes,
                                .late = c->late,
                                .cancelled = is_cancelled,
                                .cancel_ctx = stop,
                                .profile = options->profile,
                                .profile_user = options->profile_user,
                                .apart = lane->apart,
                                .guard = s->options.guard,
                                .measure = s->options.measure,
                                .measured = &measured,
                                .measured_bytes = &peak,
                                .arena_bytes = &bytes};
        status = tn_frame_run(lane->frame, &o, lane->in, lane->into, lane->out);
        s->measured = measured;
        s->measured_bytes = peak;
        s->arena_bytes = bytes;
    } else if (s->options.measure)
        status = tn_fail(TN_ERR_UNSUPPORTED, "not supported: measuring the reference back end, which plans no memory");
    else
        status = run_reference(s, c, stop, lane->in, lane->out);
    if (status == TN_ERR_MEMORY && !*tn_error_where()) {
        const char *file = tn_graph_metadata(s->model->graph, "file");
        tn_fail_where("running %s", file ? file : "a graph");
    }
    if (status != TN_OK)
        return status; /* no output was made */
    for (uint32_t i = 0; i < call->outputs && status == TN_OK; i++)
        status = deliver(&out[i], lane->into[call->output[i]], lane->out[call->output[i]]);
    for (uint32_t i = 0; i < outputs; i++)
        tn_object_destroy(lane->out[i]);
    return status;
}

static tn_status check_lists(uint32_t n_in, const tn_binding *in, uint32_t n_out, const tn_output *out) {
    for (uint32_t i = 0; i < n_in; i++) {
        if (!in[i].name)
            return tn_fail(TN_ERR_USAGE, "input %" PRIu32 " has no name", i);
        if (!in[i].tensor && !in[i].object)
            return tn_fail(TN_ERR_USAGE, "input '%s' is bound to NULL", in[i].name);
    }
    for (uint32_t i = 0; i < n_out; i++) {
        if (!out[i].name)
            return tn_fail(TN_ERR_USAGE, "output %" PRIu32 " has no name", i);
        if (!out[i].tensor && !out[i].object)
            return tn_fail(TN_ERR_USAGE, "output '%s' has no place to go to", out[i].name);
    }
    return TN_OK;
}

static tn_status run_counted(tn_session *s, uint32_t n_in, const tn_binding *in, uint32_t n_out, const tn_output *out,
                             const tn_run_options *options) {
    TN_TRY(check_lists(n_in, in, n_out, out));
    stopping stop = {s, options->cancel};
    if (is_cancelled(&stop))
        return tn_fail(TN_ERR_CANCELLED, "the run was cancelled");
    tn_lane *lane = NULL;
    tn_call *call = tn_session_acquire(s, n_in, in, n_out, out, &lane);
    tn_status status = call && lane ? run_lane(s, call, lane, &stop, in, out, options) : tn_error_status();
    if (status == TN_ERR_LIMIT || status == TN_ERR_MEMORY || (status == TN_ERR_INPUT && call)) {
        tn_session_say_rule(s, n_in, in);
        status = tn_error_status();
    }
    if (status == TN_ERR_LIMIT && !strstr(tn_error_where(), "the largest"))
        tn_session_say_largest(s);
    if (call)
        tn_session_give_back(s, call, lane);
    return status;
}

tn_status tn_session_run_with(tn_session *s, uint32_t n_in, const tn_binding *in, uint32_t n_out, const tn_output *out,
                              const tn_run_options *options) {
    static const tn_run_options none = {.size = sizeof none};
    enum { FEW = 64 };
    options = options ? options : &none;
    if (!s || (n_in && !in) || (n_out && !out))
        return tn_fail(TN_ERR_USAGE, "a session or a list of bindings is NULL");
    if (options->size != sizeof *options) {
        tn_fail(TN_ERR_USAGE, "tn_run_options: the size is %zu, not %zu", options->size, sizeof *options);
        tn_fail_hint("make it with TN_OPTIONS(tn_run_options, ...)");
        return TN_ERR_USAGE;
    }
    if (s->options.describe_only)
        return tn_fail(TN_ERR_USAGE, "a session that was made to be described does not run");
    uint8_t few[FEW], *created = n_out > FEW ? tn_alloc(s->heap, n_out) : few;
    if (!created)
        return tn_error_status();
    for (uint32_t i = 0; i < n_out; i++) {
        created[i] = !out[i].tensor || !*out[i].tensor;
        if (out[i].object)
            *out[i].object = NULL;
    }
    tn_park_lock(&s->park);
    s->running++;
    tn_park_unlock(&s->park);
    tn_status status = run_counted(s, n_in, in, n_out, out, options);
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
    if (created != few)
        tn_free(s->heap, created);
    tn_park_lock(&s->park);
    if (--s->running == 0 && s->closing)
        tn_park_wake_all(&s->park);
    tn_park_unlock(&s->park);
    return status;
}

tn_status tn_session_run(tn_session *s, uint32_t n_in, const tn_binding *in, uint32_t n_out, const tn_output *out) {
    return tn_session_run_with(s, n_in, in, n_out, out, NULL);
}
