/* Late evaluation: a node that could not be expanded before run time is put alone into a small graph with the shapes and small
   contents that it now has, expanded there, and run by the interpreter. */
#include "interp/interp.h"
#include "onnx/expander.h"

#include <inttypes.h>

#define META_DEPTH "late_depth" /* of small graphs: how many late nodes they stand in */
enum { MAX_DEPTH = TN_MAX_NESTING, SMALL = 1024 };

typedef struct late {
    tn_eval *e;
    tn_graph *graph;
    tn_node node;            /* the copy */
    TN_VEC(tn_value) inputs; /* arguments of the small graph, and what they are fed */
    TN_VEC(tn_object *) fed;
    tn_u32_vec wanted; /* outputs that are computed */
} late;

/* --- the small graph ---------------------------------------------------------------------------------------------------------------- */

static tn_type type_of(tn_graph *g, const tn_object *object, int depth);

/* What all items of a sequence are: a size in which they differ is any, a rank in which they differ is not known. */
static tn_type type_of_items(tn_graph *g, const tn_object *sequence, int depth) {
    size_t n = tn_sequence_length(sequence);
    const tn_object *object = n ? tn_sequence_at(sequence, 0) : NULL;
    if (!object || tn_object_kind(object) != TN_KIND_TENSOR)
        return type_of(g, object, depth + 1);
    const tn_tensor *first = (const tn_tensor *)object;
    bool same_rank = true, same[TN_MAX_RANK];
    for (int a = 0; a < first->rank; a++)
        same[a] = true;
    for (size_t i = 1; i < n; i++) {
        const tn_tensor *t = tn_object_tensor(tn_sequence_at(sequence, i));
        if (!t || t->dtype != first->dtype)
            return (tn_type){0};
        same_rank = same_rank && t->rank == first->rank;
        for (int a = 0; same_rank && a < t->rank; a++)
            same[a] &= t->dims[a] == first->dims[a];
    }
    tn_dim dims[TN_MAX_RANK];
    for (int a = 0; same_rank && a < first->rank; a++)
        dims[a] = same[a] ? tn_dim_const(g, first->dims[a]) : tn_dim_fresh(g, 0, INT64_MAX);
    return tn_type_tensor(g, (tn_dtype)first->dtype, same_rank ? first->rank : -1, dims);
}

static tn_type type_of(tn_graph *g, const tn_object *object, int depth) {
    if (!object || depth > TN_MAX_NESTING)
        return (tn_type){0};
    switch (tn_object_kind(object)) {
    case TN_KIND_TENSOR: {
        const tn_tensor *t = (const tn_tensor *)object;
        tn_dim dims[TN_MAX_RANK];
        for (int i = 0; i < t->rank; i++)
            dims[i] = tn_dim_const(g, t->dims[i]);
        return tn_type_tensor(g, (tn_dtype)t->dtype, t->rank, dims);
    }
    case TN_KIND_SEQUENCE: return tn_type_sequence(g, type_of_items(g, object, depth));
    case TN_KIND_OPTIONAL: return tn_type_optional(g, type_of(g, tn_optional_get(object), depth + 1));
    case TN_KIND_MAP: {
        const tn_object *values = tn_map_values(object);
        const tn_object *first =
            tn_object_kind(values) == TN_KIND_SEQUENCE && tn_sequence_length(values) ? tn_sequence_at(values, 0) : NULL;
        return tn_type_map(g, tn_tensor_dtype(tn_map_keys(object)), type_of(g, first, depth + 1));
    }
    }
    return (tn_type){0};
}

static tn_status add_input(late *l, tn_object *object, bool constant, tn_value *value) {
    tn_graph *g = l->graph;
    *value = (tn_value){0};
    if (!object)
        return TN_OK;
    bool tensor = tn_object_kind(object) == TN_KIND_TENSOR;
    if (tensor && (constant || tn_tensor_count((tn_tensor *)object) <= SMALL)) {
        tn_tensor *whole = tn_tensor_contiguous(g->heap, (tn_tensor *)object);
        *value = whole ? tn_graph_constant(g, whole) : (tn_value){0};
        tn_tensor_destroy(whole);
        return value->id ? TN_OK : tn_error_status();
    }
    tn_type type = type_of(g, object, 0);
    TN_TRY(tn_graph_check(g));
    *value = tn_region_add_arg(g, tn_graph_region(g), type, NULL);
    if (!value->id)
        return tn_graph_check(g);
    return tn_vec_push(g->heap, &l->inputs, *value) && tn_vec_push(g->heap, &l->fed, object) ? TN_OK
                                                                                             : tn_error_status();
}

/* Values that differ only in rank or size at run time and small contents are what a late node lacked. */
static tn_status copy_metadata(late *l, int depth) {
    const tn_graph *from = l->e->graph;
    char text[16];
    int n = 0;
    for (uint32_t i = 0; i < from->metadata.len; i++) {
        const char *key = tn_strings_text(&from->strings, from->metadata.data[i].key);
        if (strncmp(key, TN_META_OPSET, sizeof TN_META_OPSET - 1) == 0 || strcmp(key, TN_META_FILE) == 0) {
            const char *value = tn_strings_text(&from->strings, from->metadata.data[i].value);
            TN_TRY(tn_graph_set_metadata(l->graph, key, value, strlen(value)));
        }
    }
    for (int d = depth; d || n == 0; d /= 10)
        text[n++] = (char)('0' + d % 10);
    for (int i = 0; i < n / 2; i++) {
        char swap = text[i];
        text[i] = text[n - 1 - i];
        text[n - 1 - i] = swap;
    }
    return tn_graph_set_metadata(l->graph, META_DEPTH, text, (size_t)n);
}

static int depth_of(const tn_graph *g) {
    const char *text = tn_graph_metadata(g, META_DEPTH);
    int depth = 0;
    for (; text && *text >= '0' && *text <= '9'; text++)
        depth = depth * 10 + (*text - '0');
    return depth;
}

static tn_status build(late *l, bool constants) {
    tn_eval *e = l->e;
    tn_graph *g = l->graph;
    tn_onnx_copier c = {.to = g, .from = e->graph};
    tn_status status = copy_metadata(l, depth_of(e->graph) + 1);
    for (uint32_t i = 0; i < e->inputs && status == TN_OK; i++) {
        tn_value from = tn_node_input(e->graph, e->node, i), to;
        if (!from.id || tn_map_get(&c.values, from.id, NULL))
            continue;
        status = add_input(l, e->in[i], constants, &to);
        if (status == TN_OK && !tn_map_put(g->heap, &c.values, from.id, to.id))
            status = tn_error_status();
    }
    if (status == TN_OK)
        status = tn_onnx_copy_node(&c, e->node);
    if (status == TN_OK)
        l->node = tn_node_previous(g, tn_region_last(g, tn_graph_region(g)));
    for (uint32_t i = 0; i < e->outputs && status == TN_OK; i++) {
        if (!tn_value_is_wanted(e->graph, tn_node_output(e->graph, e->node, i)))
            continue;
        if (!tn_vec_push(g->heap, &l->wanted, i))
            status = tn_error_status();
        else
            status = tn_graph_add_output(g, tn_node_output(g, l->node, i), "");
    }
    tn_onnx_copier_free(&c);
    return status;
}

/* --- running ------------------------------------------------------------------------------------------------------------------------- */

static tn_status expand(late *l) {
    tn_expander ex;
    TN_TRY(tn_expander_init(&ex, l->graph, 0));
    ex.late_node = l->node.id;
    tn_status status = tn_expander_region(&ex, tn_graph_region(l->graph));
    tn_expander_free(&ex);
    return status;
}

static tn_status run(late *l) {
    tn_eval *e = l->e;
    tn_graph *g = l->graph;
    uint32_t n = l->wanted.len;
    tn_value *values = tn_alloc_array(g->heap, n, sizeof *values);
    tn_object **results = tn_alloc_array(g->heap, n, sizeof *results);
    tn_status status = values && results ? TN_OK : tn_error_status();
    for (uint32_t i = 0; i < n && status == TN_OK; i++)
        values[i] = tn_graph_output(g, i);
    tn_interp_options options = {
        .heap = e->heap, .pool = e->pool, .max_bytes = e->max_bytes, .log = e->log, .log_ctx = e->log_ctx};
    if (status == TN_OK)
        status = tn_interp_run(g, &options, l->inputs.len, l->inputs.data, l->fed.data, n, values, results);
    for (uint32_t i = 0; i < n && status == TN_OK; i++) {
        tn_object *object = results[i];
        results[i] = NULL;
        status = tn_eval_set(e, l->wanted.data[i], object);
    }
    for (uint32_t i = 0; results && i < n; i++)
        tn_object_destroy(results[i]);
    tn_free(g->heap, values);
    tn_free(g->heap, results);
    return status;
}

static tn_status attempt(tn_eval *e, bool constants) {
    late l = {.e = e, .graph = tn_graph_new(e->heap, e->graph->ops)};
    if (!l.graph)
        return tn_error_status();
    tn_heap *heap = l.graph->heap;
    tn_status status = build(&l, constants);
    if (status == TN_OK)
        status = expand(&l);
    if (status == TN_OK)
        status = run(&l);
    tn_error_record error;
    tn_error_save(&error);
    tn_vec_free(heap, &l.inputs);
    tn_vec_free(heap, &l.fed);
    tn_vec_free(heap, &l.wanted);
    tn_graph_destroy(l.graph);
    return status == TN_OK ? TN_OK : tn_error_restore(&error);
}

tn_status tn_onnx_late_eval(tn_eval *e) {
    if (depth_of(e->graph) >= MAX_DEPTH) {
        return tn_eval_fail(e, TN_ERR_LIMIT, "operators that are expanded at run time are nested deeper than %d",
                            MAX_DEPTH);
    }
    bool large = false;
    for (uint32_t i = 0; i < e->inputs; i++)
        large = large || (e->in[i] && tn_object_kind(e->in[i]) == TN_KIND_TENSOR &&
                          tn_tensor_count((tn_tensor *)e->in[i]) > SMALL);
    tn_status status = attempt(e, false);
    /* an expansion may need the contents of a large input */
    if (status == TN_ERR_UNSUPPORTED && large)
        status = attempt(e, true);
    return status;
}
