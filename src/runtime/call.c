/* How a session is called: names to inputs and outputs, and a compiled form for what is fed and asked for. */
#include <inttypes.h>
#include <string.h>

#include "runtime/session.h"

/* --- names ------------------------------------------------------------------------------------------------------------------------- */

/* `typed` has the same outputs, with the types that the model's graph may lack. */
static void list_names(const tn_graph *g, const tn_graph *typed, bool inputs) {
    char text[200];
    uint32_t n = inputs ? tn_graph_input_count(g) : tn_graph_output_count(g);
    for (uint32_t i = 0; i < n && i < 12; i++) {
        tn_value v = inputs ? tn_graph_input(g, i) : tn_graph_output(typed, i);
        tn_fail_where("%s %" PRIu32 ": '%s' %s%s", inputs ? "input" : "output", i,
                      inputs ? tn_value_name(g, v) : tn_graph_output_name(g, i),
                      tn_type_describe(inputs ? g : typed, tn_value_type(inputs ? g : typed, v), text, sizeof text),
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

/* The value that a name stands for: an output's name first. Null: none. */
static tn_value find_value(const tn_graph *g, const char *name) {
    uint32_t output = find_output(g, name);
    return output != UINT32_MAX ? tn_graph_output(g, output)
           : name && *name      ? tn_graph_find_value(g, name)
                                : (tn_value){0};
}

static tn_status no_such_value(const tn_session *s, const char *name, bool input) {
    tn_fail(TN_ERR_INPUT, "the model has no %s '%s', nor an inner value of that name", input ? "input" : "output",
            name ? name : "(NULL)");
    list_names(s->model->graph, s->whole.compiled->graph, input);
    tn_fail_hint("values inside the body of a loop or branch have no names here");
    return TN_ERR_INPUT;
}

/* What a call asks for, in terms of the model's graph. */
typedef struct request {
    uint8_t *fed;   /* by input of the model: a default that is fed */
    tn_value *feed; /* inner values */
    uint32_t feeds;
    uint32_t fetches; /* asked for, each once */
    tn_value *fetch;
    const char **name; /* of `fetch` */
    bool inner;        /* one of them is no output */
    bool defaults;     /* any of `fed` */
} request;

static tn_status read_inputs(const tn_session *s, uint32_t n_in, const tn_binding *in, request *r) {
    const tn_graph *g = s->model->graph;
    for (uint32_t i = 0; i < n_in; i++) {
        uint32_t k = find_input(g, in[i].name);
        tn_value v = k == UINT32_MAX ? find_value(g, in[i].name) : (tn_value){0};
        if (k == UINT32_MAX && !v.id)
            return no_such_value(s, in[i].name, true);
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(in[j].name, in[i].name) == 0 ||
                (v.id && find_input(g, in[j].name) == UINT32_MAX && find_value(g, in[j].name).id == v.id))
                return tn_fail(TN_ERR_USAGE, "input '%s' is bound twice", in[i].name);
        if (v.id)
            r->feed[r->feeds++] = v;
        else if (tn_graph_input_default(g, tn_graph_input(g, k)))
            r->fed[k] = r->defaults = true;
    }
    for (uint32_t i = 1; i < r->feeds; i++) /* the order of a call does not matter */
        for (uint32_t j = i; j > 0 && r->feed[j - 1].id > r->feed[j].id; j--) {
            tn_value v = r->feed[j];
            r->feed[j] = r->feed[j - 1];
            r->feed[j - 1] = v;
        }
    return TN_OK;
}

/* Outputs in the model's order, then inner values. */
static tn_status read_outputs(const tn_session *s, uint32_t n_out, const tn_output *out, request *r) {
    const tn_graph *g = s->model->graph;
    for (uint32_t i = 0; i < n_out; i++)
        if (!find_value(g, out[i].name).id)
            return no_such_value(s, out[i].name, false);
    for (uint32_t k = 0; k < tn_graph_output_count(g); k++)
        for (uint32_t i = 0; i < n_out; i++)
            if (find_output(g, out[i].name) == k) {
                r->fetch[r->fetches] = tn_graph_output(g, k);
                r->name[r->fetches++] = tn_graph_output_name(g, k);
                break;
            }
    for (uint32_t i = 0; i < n_out; i++) {
        bool again = find_output(g, out[i].name) != UINT32_MAX;
        r->inner |= !again;
        for (uint32_t j = 0; j < i && !again; j++)
            again = strcmp(out[j].name, out[i].name) == 0;
        if (again)
            continue;
        uint32_t at = r->fetches++; /* by id, for the same order does not matter */
        r->fetch[at] = find_value(g, out[i].name);
        r->name[at] = out[i].name;
        for (; at > 0 && find_output(g, r->name[at - 1]) == UINT32_MAX && r->fetch[at - 1].id > r->fetch[at].id; at--) {
            tn_value v = r->fetch[at];
            const char *name = r->name[at];
            r->fetch[at] = r->fetch[at - 1];
            r->name[at] = r->name[at - 1];
            r->fetch[at - 1] = v;
            r->name[at - 1] = name;
        }
    }
    return TN_OK;
}

static bool is_fetched(const request *r, const char *name) {
    for (uint32_t i = 0; i < r->fetches; i++)
        if (strcmp(r->name[i], name) == 0)
            return true;
    return false;
}

/* --- calls and forms --------------------------------------------------------------------------------------------------------------- */

static void lane_free(tn_session *s, tn_lane *lane) {
    tn_frame_destroy(lane->frame);
    tn_free(s->heap, lane->in);
    tn_free(s->heap, lane->into);
    tn_free(s->heap, lane->apart);
    tn_free(s->heap, lane);
}

static tn_lane *lane_create(tn_session *s, const tn_compiled *c) {
    uint32_t inputs = tn_graph_input_count(c->graph), outputs = tn_graph_output_count(c->graph);
    tn_lane *lane = tn_alloc(s->heap, sizeof *lane);
    if (!lane)
        return NULL;
    lane->in = tn_alloc_array(s->heap, (size_t)inputs + outputs + 1, sizeof(tn_object *));
    lane->into = tn_alloc_array(s->heap, outputs + 1u, sizeof(tn_tensor *));
    lane->apart = tn_alloc_array(s->heap, outputs + 1u, sizeof *lane->apart);
    bool ok = lane->in && lane->into && lane->apart;
    if (ok && c->plan)
        ok = (lane->frame = tn_frame_create(c->plan, s->heap)) != NULL;
    if (ok) {
        lane->out = lane->in + inputs;
        return lane;
    }
    lane_free(s, lane);
    return NULL;
}

static void free_lanes(tn_session *s, tn_form *form) {
    for (tn_lane *l = form->idle, *next; l; l = next) {
        next = l->next;
        lane_free(s, l);
    }
    form->idle = NULL;
}

static void form_free(tn_session *s, tn_form *form) {
    free_lanes(s, form);
    tn_model_release(s->model, form->compiled);
    if (form != &s->whole)
        tn_free(s->heap, form);
}

static void call_free(tn_session *s, tn_call *call) {
    if (!call)
        return;
    tn_free(s->heap, call->names);
    tn_free(s->heap, call->input);
    tn_free(s->heap, call);
}

void tn_session_free_runs(tn_session *s) {
    for (uint32_t i = 0; i < s->call.len; i++)
        call_free(s, s->call.data[i]);
    for (uint32_t i = 0; i < s->form.len; i++)
        form_free(s, s->form.data[i]);
    tn_vec_free(s->heap, &s->call);
    tn_vec_free(s->heap, &s->form);
    form_free(s, &s->whole);
}

tn_frame_memory tn_session_lanes(tn_session *s, bool trim) {
    tn_frame_memory sum = {0};
    tn_park_lock(&s->park);
    for (uint32_t i = 0; i <= s->form.len; i++)
        for (tn_lane *l = i ? s->form.data[i - 1]->idle : s->whole.idle; l; l = l->next) {
            if (!l->frame)
                continue;
            if (trim)
                tn_frame_trim(l->frame);
            tn_frame_memory m = tn_frame_measure(l->frame);
            sum.arena += m.arena;
            sum.cached += m.cached;
        }
    tn_park_unlock(&s->park);
    return sum;
}

static bool is_called_so(const tn_call *c, uint32_t n_in, const tn_binding *in, uint32_t n_out, const tn_output *out) {
    if (c->inputs != n_in || c->outputs != n_out)
        return false;
    const char *name = c->names;
    for (uint32_t i = 0; i < n_in + n_out; i++) {
        const char *given = i < n_in ? in[i].name : out[i - n_in].name;
        if (!given || strcmp(given, name) != 0)
            return false;
        name += strlen(name) + 1;
    }
    return true;
}

/* With the session locked. Counts the run in. */
static tn_call *find_call(tn_session *s, uint32_t n_in, const tn_binding *in, uint32_t n_out, const tn_output *out) {
    for (uint32_t i = 0; i < s->call.len; i++) {
        tn_call *c = s->call.data[i];
        if (!is_called_so(c, n_in, in, n_out, out))
            continue;
        c->used = ++s->clock;
        c->busy++;
        c->form->busy++;
        return c;
    }
    return NULL;
}

/* With the session locked: the call used longest ago goes, if there are too many. Answers a form that is to be freed. */
static tn_form *forget_one(tn_session *s) {
    uint32_t oldest = UINT32_MAX;
    for (uint32_t i = 0; i < s->call.len && s->call.len > TN_SESSION_CALLS; i++)
        if (!s->call.data[i]->busy && (oldest == UINT32_MAX || s->call.data[i]->used < s->call.data[oldest]->used))
            oldest = i;
    if (oldest == UINT32_MAX)
        return NULL;
    tn_call *gone = s->call.data[oldest];
    tn_form *form = gone->form;
    s->call.data[oldest] = s->call.data[--s->call.len];
    call_free(s, gone);
    if (--form->calls || form == &s->whole)
        return NULL;
    for (uint32_t i = 0; i < s->form.len; i++)
        if (s->form.data[i] == form)
            s->form.data[i] = s->form.data[--s->form.len];
    return form;
}

static tn_status missing_input(const tn_graph *whole, const tn_graph *g, tn_value input) {
    tn_fail(TN_ERR_INPUT, "input '%s' is not given", tn_value_name(g, input));
    list_names(whole, whole, true);
    tn_fail_hint("give every input that has no default");
    return TN_ERR_INPUT;
}

/* Finds the names of a call in the compiled graph. */
static tn_status resolve(tn_call *call, const tn_session *s, const tn_compiled *c, uint32_t n_in, const tn_binding *in,
                         uint32_t n_out, const tn_output *out) {
    const tn_graph *g = c->graph;
    for (uint32_t i = 0; i < n_in; i++)
        call->input[i] = find_input(g, in[i].name);
    for (uint32_t i = 0; i < n_out; i++)
        call->output[i] = find_output(g, out[i].name);
    for (uint32_t k = 0; k < tn_graph_input_count(g); k++) {
        tn_value v = tn_graph_input(g, k);
        bool given = tn_graph_input_default(g, v) != NULL;
        for (uint32_t i = 0; i < n_in; i++)
            given |= call->input[i] == k;
        if (!given)
            return missing_input(s->model->graph, g, v);
    }
    return TN_OK;
}

static tn_call *call_create(tn_session *s, uint32_t n_in, const tn_binding *in, uint32_t n_out, const tn_output *out) {
    size_t size = 1;
    for (uint32_t i = 0; i < n_in + n_out; i++)
        size += strlen(i < n_in ? in[i].name : out[i - n_in].name) + 1;
    tn_call *call = tn_alloc(s->heap, sizeof *call);
    if (!call)
        return NULL;
    call->inputs = n_in;
    call->outputs = n_out;
    call->names = tn_alloc(s->heap, size);
    call->input = tn_alloc_array(s->heap, (size_t)n_in + n_out + 1, sizeof *call->input);
    if (!call->names || !call->input) {
        call_free(s, call);
        return NULL;
    }
    call->output = call->input + n_in;
    char *to = call->names;
    for (uint32_t i = 0; i < n_in + n_out; i++) {
        const char *name = i < n_in ? in[i].name : out[i - n_in].name;
        size_t length = strlen(name) + 1;
        memcpy(to, name, length);
        to += length;
    }
    return call;
}

/* The form for a compiled graph: one that is there, or a new one, which takes over the reference. NULL: out of memory. */
static tn_form *form_for(tn_session *s, tn_compiled *c) {
    if (c == s->whole.compiled)
        return &s->whole;
    for (uint32_t i = 0; i < s->form.len; i++)
        if (s->form.data[i]->compiled == c)
            return s->form.data[i];
    tn_form *form = tn_vec_reserve(s->heap, &s->form, 1) ? tn_alloc(s->heap, sizeof *form) : NULL;
    if (form) {
        form->compiled = c;
        s->form.data[s->form.len++] = form;
    }
    return form;
}

/* Remembers a way of being called; answers it, counted in, or NULL with the error set. */
static tn_call *remember(tn_session *s, tn_call *call, tn_compiled *c, uint32_t n_in, const tn_binding *in,
                         uint32_t n_out, const tn_output *out) {
    tn_form *gone = NULL;
    tn_park_lock(&s->park);
    tn_call *found = find_call(s, n_in, in, n_out, out); /* another thread may have been faster */
    bool kept = false;
    if (!found && tn_vec_reserve(s->heap, &s->call, 1)) {
        tn_form *form = form_for(s, c);
        if (form) {
            kept = form->calls == 0 && form != &s->whole;
            call->form = form;
            call->used = ++s->clock;
            call->busy = 1;
            form->busy++;
            form->calls++;
            s->call.data[s->call.len++] = found = call;
            gone = forget_one(s);
            call = NULL;
        }
    }
    tn_park_unlock(&s->park);
    if (gone)
        form_free(s, gone);
    if (!kept)
        tn_model_release(s->model, c);
    call_free(s, call);
    return found;
}

/* A call of this kind for the first time: what it needs is compiled unless it is there. */
static tn_call *prepare(tn_session *s, uint32_t n_in, const tn_binding *in, uint32_t n_out, const tn_output *out) {
    const tn_graph *g = s->model->graph;
    uint32_t inputs = tn_graph_input_count(g), outputs = tn_graph_output_count(g);
    request r = {.fed = tn_alloc(s->heap, inputs + 1u),
                 .feed = tn_alloc_array(s->heap, (size_t)n_in + n_out + 1, sizeof(tn_value)),
                 .name = tn_alloc_array(s->heap, n_out + 1u, sizeof *r.name)};
    tn_call *call = NULL;
    tn_compiled *c = NULL;
    tn_status status = r.fed && r.feed && r.name ? TN_OK : tn_error_status();
    if (status == TN_OK) {
        r.fetch = r.feed + n_in;
        status = read_inputs(s, n_in, in, &r);
    }
    if (status == TN_OK)
        status = read_outputs(s, n_out, out, &r);
    if (status == TN_OK && !(call = call_create(s, n_in, in, n_out, out)))
        status = tn_error_status();
    if (status == TN_OK) {
        bool whole = !r.feeds && !r.inner;
        for (uint32_t k = 0; k < outputs && whole && n_out; k++) /* two outputs may have one name */
            whole = is_fetched(&r, tn_graph_output_name(g, k));
        for (uint32_t k = 0; k < inputs && whole && status == TN_OK; k++) { /* said before anything is compiled */
            tn_value v = tn_graph_input(g, k);
            bool given = tn_graph_input_default(g, v) != NULL;
            for (uint32_t i = 0; i < n_in && !given; i++)
                given = strcmp(in[i].name, tn_value_name(g, v)) == 0;
            if (!given)
                status = missing_input(g, g, v);
        }
        tn_cut cut = {r.feed, r.feeds, r.fetch, r.name, r.fetches};
        tn_compile_key key = s->key;
        key.fed = r.defaults ? r.fed : NULL;
        key.cut = whole ? NULL : &cut;
        if (status == TN_OK && !(c = tn_model_compile(s->model, &key)))
            status = tn_error_status();
    }
    if (status == TN_OK)
        status = resolve(call, s, c, n_in, in, n_out, out);
    tn_free(s->heap, r.fed);
    tn_free(s->heap, r.feed);
    tn_free(s->heap, r.name);
    if (status == TN_OK)
        return remember(s, call, c, n_in, in, n_out, out);
    tn_error_record error;
    tn_error_save(&error);
    if (c)
        tn_model_release(s->model, c);
    call_free(s, call);
    tn_error_restore(&error);
    return NULL;
}

tn_call *tn_session_acquire(tn_session *s, uint32_t n_in, const tn_binding *in, uint32_t n_out, const tn_output *out,
                            tn_lane **lane) {
    tn_park_lock(&s->park);
    tn_call *call = find_call(s, n_in, in, n_out, out);
    tn_park_unlock(&s->park);
    if (!call && !(call = prepare(s, n_in, in, n_out, out)))
        return NULL;
    tn_park_lock(&s->park);
    *lane = call->form->idle;
    if (*lane)
        call->form->idle = (*lane)->next;
    tn_park_unlock(&s->park);
    if (!*lane)
        *lane = lane_create(s, call->form->compiled);
    return call;
}

void tn_session_give_back(tn_session *s, tn_call *call, tn_lane *lane) {
    tn_park_lock(&s->park);
    if (lane) {
        lane->next = call->form->idle;
        call->form->idle = lane;
    }
    call->form->busy--;
    call->busy--;
    tn_park_unlock(&s->park);
}
