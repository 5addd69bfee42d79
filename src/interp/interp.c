/* A whole run: what is fed and fetched is checked and bound, the needed nodes are run, results are handed out. */
#include "interp/interp.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "interp/internal.h"

/* --- what is fed and fetched ------------------------------------------------------------------------------------------------------ */

/* Values of the main region (or `anywhere`), each fed once. */
static tn_status check_values(const tn_graph *g, tn_heap *heap, bool anywhere, uint32_t n_in, const tn_value *in_values,
                              tn_object *const *in, uint32_t n_out, const tn_value *out_values) {
    char label[200];
    for (uint32_t i = 0; i < n_in + n_out; i++) {
        tn_value v = i < n_in ? in_values[i] : out_values[i - n_in];
        const char *what = i < n_in ? "fed" : "asked for";
        if (!tn_value_is_alive(g, v))
            return tn_fail(TN_ERR_USAGE, "a value is %s that is null, dead or of another graph (%%%" PRIu32 ")", what,
                           v.id);
        if (!anywhere && tn_interp_home(g, v).id != g->main_region)
            return tn_fail(TN_ERR_USAGE, "value %s is %s, but it lies inside a body",
                           tn_interp_label(g, v, label, sizeof label), what);
        if (i < n_in && !in[i])
            return tn_fail(TN_ERR_INPUT, "input %s is NULL", tn_interp_label(g, v, label, sizeof label));
    }
    uint8_t *seen = tn_alloc(heap, g->value.len);
    if (!seen)
        return tn_error_status();
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < n_in && status == TN_OK; i++) {
        if (seen[in_values[i].id]++)
            status =
                tn_fail(TN_ERR_USAGE, "input %s is given twice", tn_interp_label(g, in_values[i], label, sizeof label));
    }
    tn_free(heap, seen);
    return status;
}

static tn_status fail_missing(const tn_graph *g, tn_value input) {
    char text[300];
    tn_fail(TN_ERR_INPUT, "no data for input %s", tn_interp_label(g, input, text, sizeof text));
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++) {
        tn_value v = tn_graph_input(g, i);
        tn_fail_where("input '%s' %s%s", tn_value_name(g, v),
                      tn_type_describe(g, tn_value_type(g, v), text, sizeof text),
                      tn_graph_input_default(g, v) ? " (has a default)" : "");
    }
    tn_fail_hint("feed every input that is needed");
    return TN_ERR_INPUT;
}

/* Puts what is fed, and defaults of needed inputs, in their slots. */
static tn_status place_inputs(tn_interp_scope *s, uint32_t n_in, const tn_value *in_values, tn_object *const *in) {
    const tn_interp_plan *p = s->plan;
    const tn_graph *g = p->graph;
    for (uint32_t i = 0; i < n_in; i++)
        s->value[p->slot[in_values[i].id]] = tn_object_retain(in[i]);
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++) {
        tn_value v = tn_graph_input(g, i);
        tn_object **place = &s->value[p->slot[v.id]];
        if (*place || (!p->last[v.id] && !p->pinned[v.id]))
            continue;
        tn_tensor *given = tn_graph_input_default(g, v);
        if (!given)
            return fail_missing(g, v);
        *place = tn_tensor_object(tn_tensor_retain(given));
    }
    return TN_OK;
}

static tn_status bind_one(tn_interp_scope *s, const char *who, tn_value v) {
    const tn_object *object = s->value[s->plan->slot[v.id]];
    if (!object)
        return TN_OK;
    tn_interp_mismatch m = tn_interp_fit(s, v, object);
    return m.what == TN_FITS ? TN_OK : tn_interp_fail_fit(s, TN_ERR_INPUT, who, v, object, &m);
}

/* Binds symbols from the inputs' shapes. Twice: what could not be decided the first time (N + M) may be the second time. */
static tn_status bind_inputs(tn_interp_scope *s, uint32_t n_in, const tn_value *in_values) {
    const tn_graph *g = s->plan->graph;
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < tn_graph_input_count(g); i++)
            TN_TRY(bind_one(s, "input", tn_graph_input(g, i)));
        for (uint32_t i = 0; i < n_in; i++)
            TN_TRY(bind_one(s, "fed value", in_values[i]));
    }
    return TN_OK;
}

/* --- results ------------------------------------------------------------------------------------------------------------------------- */

typedef struct owning {
    const tn_interp_runner *runner;
    tn_heap *heap;
    bool sole; /* nothing else holds what contains the object */
    int depth;
} owning;

static tn_object *own(owning o, tn_object *object);

static tn_tensor *own_tensor(owning o, tn_tensor *t) {
    tn_heap *heap = o.heap;
    tn_storage *storage = t->storage;
    if (o.sole && t->contiguous && t->object.heap == heap && storage && atomic_load(&storage->refs) == 1 &&
        !storage->mapping)
        return tn_tensor_retain(t);
    if (tn_interp_check_bytes(o.runner, tn_tensor_bytes(t)) != TN_OK)
        return NULL;
    tn_tensor *copy = tn_tensor_create_in(heap, (tn_dtype)t->dtype, t->rank, t->dims);
    if (copy && tn_tensor_assign(copy, t) != TN_OK) {
        tn_tensor_destroy(copy);
        return NULL;
    }
    return copy;
}

static tn_object *own_sequence(owning o, const tn_object *sequence) {
    size_t count = tn_sequence_length(sequence), made = 0;
    tn_object **items = tn_alloc_array(o.heap, count, sizeof(tn_object *)), *result = NULL;
    if (!items)
        return NULL;
    while (made < count && (items[made] = own(o, tn_sequence_at(sequence, made))))
        made++;
    if (made == count)
        result = tn_sequence_create(o.heap, count, items);
    for (size_t i = 0; i < made; i++)
        tn_object_destroy(items[i]);
    tn_free(o.heap, items);
    return result;
}

/* A new reference to an object that shares no memory with others, tensors contiguous: the object itself where it is that already. NULL on
   failure. The caller holds the one reference that does not count as sharing. */
static tn_object *own(owning o, tn_object *object) {
    tn_object *result = NULL, *part, *more;
    if (o.depth++ > TN_MAX_NESTING) {
        tn_fail(TN_ERR_LIMIT, "sequences, optionals and maps nested deeper than %d", TN_MAX_NESTING);
        return NULL;
    }
    o.sole = o.sole && atomic_load(&object->refs) == 1;
    switch ((tn_kind)object->kind) {
    case TN_KIND_TENSOR: {
        tn_tensor *t = own_tensor(o, (tn_tensor *)object);
        return t ? tn_tensor_object(t) : NULL;
    }
    case TN_KIND_SEQUENCE: return own_sequence(o, object);
    case TN_KIND_OPTIONAL:
        part = tn_optional_get(object);
        more = part ? own(o, part) : NULL;
        if (more || !part)
            result = tn_optional_create(o.heap, more);
        tn_object_destroy(more);
        return result;
    case TN_KIND_MAP:
        part = own(o, tn_tensor_object(tn_map_keys(object)));
        more = part ? own(o, tn_map_values(object)) : NULL;
        if (more)
            result = tn_map_create(o.heap, tn_object_tensor(part), more);
        tn_object_destroy(part);
        tn_object_destroy(more);
        return result;
    }
    return NULL;
}

static tn_status take_results(tn_interp_scope *s, uint32_t n_out, const tn_value *out_values, tn_object **out) {
    for (uint32_t i = 0; i < n_out; i++) {
        char label[200];
        tn_object *object = s->value[s->plan->slot[out_values[i].id]];
        if (!object && !tn_value_is_wanted(s->plan->graph, out_values[i]))
            continue; /* an optional result that nobody wants */
        if (!object)
            return tn_fail(TN_ERR_INTERNAL, "value %s was not computed",
                           tn_interp_label(s->plan->graph, out_values[i], label, sizeof label));
        out[i] = tn_object_retain(object);
    }
    return TN_OK;
}

static tn_status run(tn_interp_runner *r, tn_interp_plan *plan, tn_node only, const tn_dim_env *env, uint32_t n_in,
                     const tn_value *in_values, tn_object *const *in, uint32_t n_out, const tn_value *out_values,
                     tn_object **out) {
    tn_interp_scope scope;
    tn_region main = tn_graph_region(plan->graph);
    TN_TRY(tn_interp_scope_init(&scope, plan, main));
    for (uint32_t i = 0; env && i < env->count && i < scope.env.count; i++)
        if (env->bound[i]) {
            scope.env.value[i] = env->value[i];
            scope.env.bound[i] = 1;
        }
    tn_status status = place_inputs(&scope, n_in, in_values, in);
    if (status == TN_OK)
        status = bind_inputs(&scope, n_in, in_values);
    if (status == TN_OK)
        status = only.id ? tn_interp_run_one(r, &scope, only) : tn_interp_run_nodes(r, &scope, main);
    if (status == TN_OK)
        status = take_results(&scope, n_out, out_values, out);
    tn_interp_scope_free(&scope);
    return status;
}

static tn_status run_for(const tn_graph *g, const tn_interp_options *options, tn_node only, const tn_dim_env *env,
                         uint32_t n_in, const tn_value *in_values, tn_object *const *in, uint32_t n_out,
                         const tn_value *out_values, tn_object **out) {
    static const tn_interp_options none;
    for (uint32_t i = 0; out && i < n_out; i++)
        out[i] = NULL;
    if (!g || (n_in && (!in_values || !in)) || (n_out && (!out_values || !out)))
        return tn_fail(TN_ERR_USAGE, "a graph or a list to run with is NULL");
    TN_TRY(tn_graph_check(g));
    if (!options)
        options = &none;
    tn_interp_runner r = {.options = options, .heap = options->heap};
    tn_interp_plan plan;
    TN_TRY(check_values(g, r.heap, only.id != 0, n_in, in_values, in, n_out, out_values));
    TN_TRY(tn_interp_plan_make(&plan, g, r.heap, n_in, in_values, false, only, n_out, out_values));
    r.tapped = &plan;
    r.base_bytes = tn_heap_in_use(r.heap);
    tn_status status = run(&r, &plan, only, env, n_in, in_values, in, n_out, out_values, out);
    tn_interp_runner_free(&r);
    for (uint32_t i = 0; i < n_out && status == TN_OK; i++) {
        tn_object *shared = out[i];
        if (!shared)
            continue;
        out[i] = own((owning){.runner = &r, .heap = r.heap, .sole = true}, shared);
        if (!out[i])
            status = tn_error_status();
        tn_object_destroy(shared);
    }
    for (uint32_t i = 0; i < n_out && status != TN_OK; i++) {
        tn_object_destroy(out[i]);
        out[i] = NULL;
    }
    tn_interp_plan_free(&plan);
    return status;
}

tn_status tn_interp_run(const tn_graph *g, const tn_interp_options *options, uint32_t n_in, const tn_value *in_values,
                        tn_object *const *in, uint32_t n_out, const tn_value *out_values, tn_object **out) {
    return run_for(g, options, (tn_node){0}, NULL, n_in, in_values, in, n_out, out_values, out);
}

tn_status tn_interp_run_node(const tn_graph *g, const tn_interp_options *options, tn_node node, const tn_dim_env *env,
                             uint32_t n_in, const tn_value *in_values, tn_object *const *in, tn_object **out) {
    if (!g || !tn_node_is_alive(g, node))
        return tn_fail(TN_ERR_USAGE, "a node to run is null or dead");
    uint32_t n_out = tn_node_output_count(g, node);
    tn_heap *heap = options ? options->heap : NULL;
    tn_value *values = tn_alloc_array(heap, (size_t)n_out + 1, sizeof *values);
    if (!values)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < n_out; i++)
        values[i] = tn_node_output(g, node, i);
    tn_status status = run_for(g, options, node, env, n_in, in_values, in, n_out, values, out);
    tn_free(heap, values);
    return status;
}
