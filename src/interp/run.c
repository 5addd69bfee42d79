/* Running nodes: operands from slots, outputs made where the shape is known, eval, checks, frees; bodies, functions, composites. */
#include <inttypes.h>

#include "interp/internal.h"
#include "ops/composite.h"

/* Dynamic depth: bodies, and the functions and definitions run inside them. */
#define MAX_DEPTH (2 * TN_MAX_NESTING)
/* Operands of a node that need no allocation. */
#define FEW 12

/* What run_region gets as `runner`. */
typedef struct frame {
    tn_interp_runner *runner;
    tn_interp_scope *scope;
} frame;

static tn_status step(tn_interp_runner *r) {
    const tn_interp_options *o = r->options;
    if (o->cancelled && o->cancelled(o->cancel_ctx))
        return tn_fail(TN_ERR_CANCELLED, "the run was cancelled");
    if (o->max_nodes && r->steps++ >= o->max_nodes)
        return tn_fail(TN_ERR_LIMIT, "more than %" PRIu64 " nodes were run", o->max_nodes);
    return TN_OK;
}

tn_status tn_interp_check_bytes(const tn_interp_runner *r, size_t more) {
    size_t limit = r->options->max_bytes, used = tn_heap_in_use(r->heap);
    used = used > r->base_bytes ? used - r->base_bytes : 0;
    if (limit && (used > limit || more > limit - used))
        return tn_fail(TN_ERR_LIMIT, "more than %zu bytes would be needed (%zu in use, %zu more)", limit, used, more);
    return TN_OK;
}

static size_t bytes_left(const tn_interp_runner *r) {
    size_t limit = r->options->max_bytes, used = tn_heap_in_use(r->heap);
    used = used > r->base_bytes ? used - r->base_bytes : 0;
    return !limit ? 0 : used < limit ? limit - used : 1;
}

static void release(tn_interp_scope *s, uint32_t value) {
    uint32_t slot = s->plan->slot[value];
    tn_object_destroy(s->value[slot]);
    s->value[slot] = NULL;
}

static void free_after(tn_interp_scope *s, tn_node node) {
    const tn_interp_plan *p = s->plan;
    for (uint32_t i = p->free_first[node.id]; i < p->free_first[node.id + 1]; i++)
        release(s, p->frees[i]);
}

/* --- regions ------------------------------------------------------------------------------------------------------------------- */

static tn_status body_args(tn_interp_scope *s, tn_region region, uint32_t n_args, tn_object *const *args) {
    const tn_graph *g = s->plan->graph;
    if (n_args != tn_region_arg_count(g, region))
        return tn_fail(TN_ERR_INTERNAL, "a region of %" PRIu32 " arguments was run with %" PRIu32,
                       tn_region_arg_count(g, region), n_args);
    bool closed = !tn_region_owner(g, region).id;
    for (uint32_t i = 0; i < n_args; i++) {
        tn_value arg = tn_region_arg(g, region, i);
        tn_interp_mismatch m = tn_interp_fit(s, arg, args[i]);
        if (m.what != TN_FITS)
            return tn_interp_fail_fit(s, closed ? TN_ERR_INPUT : TN_ERR_INTERNAL, closed ? "argument" : "loop value",
                                      arg, args[i], &m);
        s->value[s->plan->slot[arg.id]] = tn_object_retain(args[i]);
    }
    return TN_OK;
}

static tn_status body_results(tn_interp_scope *s, tn_region region, uint32_t n_results, tn_object **results) {
    const tn_graph *g = s->plan->graph;
    if (n_results != tn_region_result_count(g, region))
        return tn_fail(TN_ERR_INTERNAL, "a region of %" PRIu32 " results was asked for %" PRIu32,
                       tn_region_result_count(g, region), n_results);
    for (uint32_t i = 0; i < n_results; i++)
        if (!s->value[s->plan->slot[tn_region_result(g, region, i).id]])
            return tn_fail(TN_ERR_INTERNAL, "result %" PRIu32 " of a region was not computed", i);
    for (uint32_t i = 0; i < n_results; i++)
        results[i] = tn_object_retain(s->value[s->plan->slot[tn_region_result(g, region, i).id]]);
    free_after(s, tn_region_last(g, region));
    for (uint32_t i = 0; i < tn_region_arg_count(g, region); i++)
        release(s, tn_region_arg(g, region, i).id);
    return TN_OK;
}

/* Runs a region once in a scope. What its symbols were bound to is forgotten afterwards. On failure the scope may hold values of the
   region: it is given up by whoever made it. */
static tn_status run_body(tn_interp_runner *r, tn_interp_scope *s, tn_region region, uint32_t n_args,
                          tn_object *const *args, uint32_t n_results, tn_object **results) {
    if (r->depth >= MAX_DEPTH)
        return tn_fail(TN_ERR_LIMIT, "bodies and calls nested deeper than %d", MAX_DEPTH);
    TN_TRY(step(r));
    uint32_t mark = s->trail.len;
    r->depth++;
    tn_status status = body_args(s, region, n_args, args);
    if (status == TN_OK)
        status = tn_interp_run_nodes(r, s, region);
    if (status == TN_OK)
        status = body_results(s, region, n_results, results);
    r->depth--;
    tn_interp_scope_undo(s, mark);
    return status;
}

/* Runs a closed region in a scope of its own. */
static tn_status run_closed(tn_interp_runner *r, tn_interp_plan *plan, tn_region region, uint32_t n_args,
                            tn_object *const *args, uint32_t n_results, tn_object **results) {
    tn_interp_scope scope;
    TN_TRY(tn_interp_scope_init(&scope, plan, region));
    tn_status status = run_body(r, &scope, region, n_args, args, n_results, results);
    tn_interp_scope_free(&scope);
    return status;
}

static tn_status run_region(tn_eval *e, tn_region region, uint32_t n_args, tn_object *const *args, uint32_t n_results,
                            tn_object **results) {
    frame *f = e->runner;
    if (!tn_region_owner(e->graph, region).id)
        return run_closed(f->runner, f->scope->plan, region, n_args, args, n_results, results);
    return run_body(f->runner, f->scope, region, n_args, args, n_results, results);
}

/* --- composites ------------------------------------------------------------------------------------------------------------------ */

static void definition_free(tn_heap *heap, tn_interp_definition *d) {
    if (!d)
        return;
    tn_interp_plan_free(&d->plan);
    tn_graph_destroy(d->graph);
    tn_free(heap, d->key);
    tn_free(heap, d);
}

static tn_status definition_make(tn_interp_runner *r, const tn_graph *g, tn_node node, const char *key) {
    tn_interp_definition *d = tn_alloc(r->heap, sizeof *d);
    tn_status status = d ? TN_OK : tn_error_status();
    if (status == TN_OK) {
        d->key = tn_strdup(r->heap, key);
        status = d->key ? tn_composite_definition(g, node, r->heap, &d->graph) : tn_error_status();
    }
    if (status == TN_OK)
        status = tn_interp_plan_make(&d->plan, d->graph, r->heap, 0, NULL, true, (tn_node){0}, 0, NULL);
    if (status == TN_OK && !tn_vec_push(r->heap, &r->definitions, d))
        status = tn_error_status();
    if (status != TN_OK)
        definition_free(r->heap, d);
    return status;
}

/* The definition of a composite, made at its first run; nodes with equal keys share one. */
static tn_status definition_find(tn_interp_runner *r, tn_interp_plan *p, tn_node node, tn_interp_definition **out) {
    uint32_t *index = &p->definition[node.id];
    if (!*index) {
        tn_text key;
        tn_text_init(&key, r->heap);
        tn_status status = tn_composite_key(p->graph, node, &key);
        uint32_t i = 0;
        while (status == TN_OK && i < r->definitions.len && strcmp(r->definitions.data[i]->key, key.data) != 0)
            i++;
        if (status == TN_OK && i == r->definitions.len)
            status = definition_make(r, p->graph, node, key.data);
        tn_text_free(&key);
        if (status != TN_OK)
            return status;
        *index = i + 1;
    }
    *out = r->definitions.data[*index - 1];
    return TN_OK;
}

static tn_status run_composite(tn_interp_runner *r, tn_interp_scope *s, tn_eval *e) {
    tn_interp_definition *d;
    TN_TRY(definition_find(r, s->plan, e->node, &d));
    tn_object **objects = tn_alloc_array(r->heap, (size_t)e->inputs + e->outputs, sizeof *objects);
    if (!objects)
        return tn_error_status();
    tn_object **results = objects + e->inputs;
    uint32_t given = 0;
    for (uint32_t i = 0; i < e->inputs; i++)
        if (e->in[i])
            objects[given++] = e->in[i];
    tn_status status = run_closed(r, &d->plan, tn_graph_region(d->graph), given, objects, e->outputs, results);
    for (uint32_t i = 0; i < e->outputs; i++) {
        if (status != TN_OK) {
            tn_object_destroy(results[i]);
            continue;
        }
        tn_object_destroy(e->out[i]);
        e->out[i] = results[i];
    }
    tn_free(r->heap, objects);
    return status;
}

/* --- nodes ------------------------------------------------------------------------------------------------------------------------- */

/* Makes output i when its shape has a value now. */
static tn_status make_output(tn_interp_runner *r, tn_interp_scope *s, tn_eval *e, uint32_t i) {
    const tn_graph *g = s->plan->graph;
    tn_type type = tn_value_type(g, tn_node_output(g, e->node, i));
    if (!type.id || tn_type_kind(g, type) != TN_KIND_TENSOR || tn_type_dtype(g, type) == TN_DTYPE_NONE)
        return TN_OK;
    int rank = tn_type_rank(g, type);
    const tn_dim *dims = rank > 0 ? tn_type_dims(g, type) : NULL;
    int64_t sizes[TN_MAX_RANK], count;
    for (int a = 0; a < rank; a++) {
        if (!tn_dim_eval(&g->dims, &s->env, dims[a], &sizes[a]))
            return TN_OK;
        if (sizes[a] < 0) {
            tn_eval_fail(e, TN_ERR_INPUT, "dimension %d of output %" PRIu32 " is %" PRId64, a, i, sizes[a]);
            tn_fail_hint("inputs of these sizes are too small for this model");
            return TN_ERR_INPUT;
        }
    }
    if (rank < 0)
        return TN_OK;
    size_t bytes;
    TN_TRY(tn_dims_count(rank, sizes, &count));
    TN_TRY(tn_dtype_bytes(tn_type_dtype(g, type), count, &bytes));
    TN_TRY(tn_interp_check_bytes(r, bytes));
    tn_tensor *t = tn_tensor_new(r->heap, tn_type_dtype(g, type), rank, sizes);
    if (!t)
        return tn_error_status();
    e->out[i] = tn_tensor_object(t);
    return TN_OK;
}

static tn_status evaluate(tn_interp_runner *r, tn_interp_scope *s, tn_eval *e, const tn_op *op) {
    const tn_graph *g = s->plan->graph;
    /* views, constants and what regions give stand elsewhere already */
    if (op->eval && !(op->traits & (TN_VIEW | TN_CONSTANT | TN_CONTROL | TN_CALL | TN_EFFECT)))
        for (uint32_t i = 0; i < e->outputs; i++)
            TN_TRY(make_output(r, s, e, i));
    bool done = false;
    if (r->options->instead && op->eval)
        TN_TRY(r->options->instead(r->options->adjust_ctx, e, &done));
    if (done)
        ;
    else if (op->eval)
        TN_TRY(op->eval(e));
    else if (op->define)
        TN_TRY(run_composite(r, s, e));
    else
        return tn_fail(TN_ERR_UNSUPPORTED, "not supported: %s has no reference evaluation", op->name);
    if (r->options->adjust && op->eval && !done)
        TN_TRY(r->options->adjust(r->options->adjust_ctx, e));
    TN_TRY(tn_interp_check_bytes(r, 0));
    for (uint32_t i = 0; i < e->outputs; i++) {
        tn_value value = tn_node_output(e->graph, e->node, i);
        if (!e->out[i] && !tn_value_is_wanted(g, value))
            continue; /* an optional result that nobody wants */
        if (!e->out[i])
            return tn_fail(TN_ERR_INTERNAL, "%s gave no output %" PRIu32, op->name, i);
        if (s->value[s->plan->slot[value.id]]) /* fed: what the node gives is dropped */
            continue;
        tn_interp_mismatch m = tn_interp_fit(s, value, e->out[i]);
        if (m.what != TN_FITS)
            return tn_interp_fail_fit(s, TN_ERR_INTERNAL,
                                      r->options->check_shapes ? "inferred shape is false (shapes are checked): value"
                                                               : "inferred shape is false: value",
                                      value, e->out[i], &m);
        if (r->options->tap && s->plan == r->tapped)
            r->options->tap(r->options->tap_ctx, value, e->out[i]);
    }
    return TN_OK;
}

static tn_status run_operands(tn_interp_runner *r, tn_interp_scope *s, const tn_op *op, tn_eval *e, tn_object **in) {
    const tn_graph *g = s->plan->graph;
    for (uint32_t i = 0; i < e->inputs; i++) {
        tn_value value = tn_node_input(g, e->node, i);
        in[i] = value.id ? s->value[s->plan->slot[value.id]] : NULL;
        if (value.id && !in[i])
            return tn_fail(TN_ERR_INTERNAL, "input %" PRIu32 " of %s was not computed", i, op->name);
    }
    return evaluate(r, s, e, op);
}

tn_status tn_interp_run_one(tn_interp_runner *r, tn_interp_scope *s, tn_node node) {
    const tn_graph *g = s->plan->graph;
    const tn_op *op = tn_node_op(g, node);
    TN_TRY(step(r));
    frame f = {r, s};
    tn_object *few[FEW] = {NULL}, **objects = few;
    tn_eval e = {.graph = g,
                 .node = node,
                 .inputs = tn_node_input_count(g, node),
                 .outputs = tn_node_output_count(g, node),
                 .heap = r->heap,
                 .max_bytes = bytes_left(r),
                 .pool = r->options->pool,
                 .env = &s->env,
                 .run_region = run_region,
                 .runner = &f,
                 .log = r->options->log,
                 .log_ctx = r->options->log_ctx,
                 .late = s->plan == r->tapped ? r->options->late : NULL,
                 .late_graph = r->options->late_graph,
                 .adjust = r->options->adjust,
                 .adjust_ctx = r->options->adjust_ctx,
                 .instead = r->options->instead};
    if (e.inputs + e.outputs > FEW) {
        objects = tn_alloc_array(r->heap, (size_t)e.inputs + e.outputs, sizeof(tn_object *));
        if (!objects)
            return tn_error_status();
    }
    e.in = objects;
    e.out = objects + e.inputs;
    tn_status status = run_operands(r, s, op, &e, objects);
    if (status != TN_OK && (tn_node_region_count(g, node) || op->traits & TN_CALL || op->define || !*tn_error_where()))
        tn_fail_at_node(g, node);
    for (uint32_t i = 0; i < e.outputs; i++) {
        tn_object **place = &s->value[s->plan->slot[tn_node_output(g, node, i).id]];
        if (status == TN_OK && !*place)
            *place = e.out[i];
        else /* failed, or the value was fed */
            tn_object_destroy(e.out[i]);
    }
    if (objects != few)
        tn_free(r->heap, objects);
    if (status == TN_OK)
        free_after(s, node);
    return status;
}

tn_status tn_interp_run_nodes(tn_interp_runner *r, tn_interp_scope *s, tn_region region) {
    const tn_graph *g = s->plan->graph;
    for (tn_node node = tn_region_first(g, region); node.id; node = tn_node_next(g, node))
        if (s->plan->needed[node.id] && !tn_node_has_trait(g, node, TN_TERMINATOR))
            TN_TRY(tn_interp_run_one(r, s, node));
    return TN_OK;
}

void tn_interp_runner_free(tn_interp_runner *r) {
    for (uint32_t i = 0; i < r->definitions.len; i++)
        definition_free(r->heap, r->definitions.data[i]);
    tn_vec_free(r->heap, &r->definitions);
}
