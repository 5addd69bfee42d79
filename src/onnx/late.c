/* Late evaluation: a node that could not be expanded before run time is put alone into a small graph with the shapes and small
   contents that it now has, expanded there, and run by the interpreter. The graph is kept for the next run with inputs of these types,
   sizes and small contents (late.h). */
#include "onnx/late.h"

#include "interp/interp.h"
#include "onnx/expander.h"

#include <inttypes.h>

#define META_DEPTH "late_depth" /* of small graphs: how many late nodes they stand in */
/* Elements up to which a tensor may say how a node is to be expanded: a shape, axes, pads, scales, sizes of parts. What is larger is
   data, unless the expansion asks for it. */
enum { MAX_DEPTH = TN_MAX_NESTING, SMALL = 64, SMALL_FLOAT = 16 };

typedef struct late {
    tn_eval *e;
    tn_late_form *form;
    tn_graph *graph; /* the form's */
    tn_node node;    /* the copy */
} late;

/* Whether the contents of an input are part of the form. */
static bool is_parameter(const tn_eval *e, uint32_t input, bool constants) {
    const tn_object *object = e->in[input];
    if (!object || tn_object_kind(object) != TN_KIND_TENSOR)
        return false;
    const tn_tensor *t = (const tn_tensor *)object;
    if (input + 1 == e->inputs && tn_onnx_trip(e->graph, e->node).id)
        return false; /* another number in each trip */
    return constants || t->count <= (tn_dtype_is_float((tn_dtype)t->dtype) ? SMALL_FLOAT : SMALL);
}

/* --- the small graph ---------------------------------------------------------------------------------------------------------------- */

static tn_type type_of(tn_graph *g, const tn_object *object, int depth);

/* What all tensors of a sequence are. */
typedef struct common {
    const tn_tensor *first;
    bool same_dtype, same_rank, same[TN_MAX_RANK]; /* sizes */
} common;

/* False: the first item is no tensor, or there is none. */
static bool common_of(const tn_object *sequence, common *c) {
    size_t n = tn_sequence_length(sequence);
    const tn_object *object = n ? tn_sequence_at(sequence, 0) : NULL;
    if (!object || tn_object_kind(object) != TN_KIND_TENSOR)
        return false;
    *c = (common){.first = (const tn_tensor *)object, .same_dtype = true, .same_rank = true};
    for (int a = 0; a < c->first->rank; a++)
        c->same[a] = true;
    for (size_t i = 1; i < n && c->same_dtype; i++) {
        const tn_tensor *t = tn_object_tensor(tn_sequence_at(sequence, i));
        c->same_dtype = t && t->dtype == c->first->dtype;
        c->same_rank = c->same_rank && c->same_dtype && t->rank == c->first->rank;
        for (int a = 0; c->same_rank && a < t->rank; a++)
            c->same[a] &= t->dims[a] == c->first->dims[a];
    }
    return true;
}

/* A size in which the items differ is any, a rank in which they differ is not known. */
static tn_type type_of_items(tn_graph *g, const tn_object *sequence, int depth) {
    common c;
    if (!common_of(sequence, &c))
        return type_of(g, tn_sequence_length(sequence) ? tn_sequence_at(sequence, 0) : NULL, depth + 1);
    if (!c.same_dtype)
        return (tn_type){0};
    tn_dim dims[TN_MAX_RANK];
    for (int a = 0; c.same_rank && a < c.first->rank; a++)
        dims[a] = c.same[a] ? tn_dim_const(g, c.first->dims[a]) : tn_dim_fresh(g, 0, INT64_MAX);
    return tn_type_tensor(g, (tn_dtype)c.first->dtype, c.same_rank ? c.first->rank : -1, dims);
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

static int depth_of(const tn_graph *g);

/* Who made the input, for messages about the constant that stands for it: as the plan's graph has it. */
static uint32_t maker_of(late *l, tn_value value) {
    const tn_graph *from = l->e->graph;
    tn_node maker = tn_value_producer(from, value);
    bool input = from->value.data[value.id].region == from->main_region && depth_of(from) == 0;
    if (!maker.id)
        return tn_location_make(l->graph, input ? "the run's input" : "an argument", "", "", 0);
    if (tn_node_has_trait(from, maker, TN_CONSTANT))
        return 0;
    tn_location_set s = from->location.data[tn_node_location(from, maker)];
    if (!s.count)
        return tn_location_make(l->graph, tn_node_op_name(from, maker), "", "", 0);
    const tn_origin *o = &from->origin.data[from->origin_list.data[s.first]];
    return tn_location_make(l->graph, tn_strings_text(&from->strings, o->what),
                            tn_strings_text(&from->strings, o->name), tn_strings_text(&from->strings, o->file),
                            o->line);
}

static tn_status add_input(late *l, uint32_t index, bool constants, tn_value *value) {
    tn_graph *g = l->graph;
    tn_object *object = l->e->in[index];
    *value = (tn_value){0};
    if (!object)
        return TN_OK;
    const char *name = tn_value_name(l->e->graph, tn_node_input(l->e->graph, l->e->node, index));
    if (is_parameter(l->e, index, constants)) {
        tn_tensor *t = (tn_tensor *)object;
        tn_graph_at_location(g, maker_of(l, tn_node_input(l->e->graph, l->e->node, index)));
        tn_tensor *whole =
            tn_tensor_create_in(g->heap, (tn_dtype)t->dtype, t->rank, t->dims); /* the caller's may change */
        if (whole && tn_tensor_assign(whole, t) == TN_OK)
            *value = tn_graph_constant(g, whole);
        tn_tensor_destroy(whole);
        tn_graph_at_location(g, 0);
        if (!value->id)
            return tn_error_status();
        return *name ? tn_value_set_name(g, *value, name) : TN_OK;
    }
    tn_type type = type_of(g, object, 0);
    TN_TRY(tn_graph_check(g));
    *value = tn_region_add_arg(g, tn_graph_region(g), type, *name ? name : NULL);
    if (!value->id)
        return tn_graph_check(g);
    return tn_vec_push(g->heap, &l->form->inputs, *value) && tn_vec_push(g->heap, &l->form->fed, index)
               ? TN_OK
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
        status = add_input(l, i, constants, &to);
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
        if (!tn_vec_push(g->heap, &l->form->wanted, i))
            status = tn_error_status();
        else
            status = tn_graph_add_output(g, tn_node_output(g, l->node, i), "");
    }
    tn_onnx_copier_free(&c);
    return status;
}

/* --- what tells forms apart ---------------------------------------------------------------------------------------------------------- */

static void key_tensor(tn_text *key, const tn_tensor *t, bool contents) {
    tn_text_printf(key, "%c%d,%d", contents ? '=' : ':', t->dtype, t->rank);
    tn_text_bytes(key, (const char *)t->dims, (size_t)t->rank * sizeof *t->dims);
    if (!contents || !t->count)
        return;
    tn_tensor *whole = tn_tensor_contiguous(key->heap, (tn_tensor *)(uintptr_t)t);
    if (!whole) {
        key->failed = true;
        return;
    }
    if (t->dtype != TN_STRING)
        tn_text_bytes(key, whole->data, tn_tensor_bytes(whole));
    for (int64_t i = 0; t->dtype == TN_STRING && i < t->count; i++) {
        tn_string text;
        if (tn_tensor_get_string(whole, i, &text) != TN_OK)
            break; /* i is in range */
        tn_text_bytes(key, (const char *)&text.length, sizeof text.length);
        tn_text_bytes(key, text.data, text.length);
    }
    tn_tensor_destroy(whole);
}

/* Follows type_of: what has one type there has one text here. */
static void key_object(tn_text *key, const tn_object *object, bool contents, int depth) {
    if (!object || depth > TN_MAX_NESTING) {
        tn_text_add(key, "_");
        return;
    }
    switch (tn_object_kind(object)) {
    case TN_KIND_TENSOR: key_tensor(key, (const tn_tensor *)object, contents); return;
    case TN_KIND_SEQUENCE: {
        common c;
        if (!common_of(object, &c)) {
            tn_text_add(key, "s");
            key_object(key, tn_sequence_length(object) ? tn_sequence_at(object, 0) : NULL, false, depth + 1);
            return;
        }
        tn_text_printf(key, "S%d,%d", c.same_dtype ? c.first->dtype : -1, c.same_rank ? c.first->rank : -1);
        for (int a = 0; c.same_rank && a < c.first->rank; a++)
            tn_text_printf(key, ",%" PRId64, c.same[a] ? c.first->dims[a] : -1);
        return;
    }
    case TN_KIND_OPTIONAL:
        tn_text_add(key, "o");
        key_object(key, tn_optional_get(object), false, depth + 1);
        return;
    case TN_KIND_MAP: {
        const tn_object *values = tn_map_values(object);
        bool list = tn_object_kind(values) == TN_KIND_SEQUENCE && tn_sequence_length(values);
        tn_text_printf(key, "m%d", (int)tn_tensor_dtype(tn_map_keys(object)));
        key_object(key, list ? tn_sequence_at(values, 0) : NULL, false, depth + 1);
        return;
    }
    }
}

/* False: too long to be kept. */
static bool make_key(const tn_eval *e, bool constants, tn_text *key) {
    size_t contents = 0;
    for (uint32_t i = 0; i < e->inputs; i++)
        if (is_parameter(e, i, constants))
            contents += tn_tensor_bytes((const tn_tensor *)e->in[i]);
    if (contents > TN_LATE_KEY)
        return false;
    tn_text_add(key, constants ? "all" : "");
    for (uint32_t i = 0; i < e->inputs; i++)
        key_object(key, e->in[i], is_parameter(e, i, constants), 0);
    return !key->failed && key->len <= TN_LATE_KEY;
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

/* Who made the node may have declared what the output must be (a condition is one bool): for these inputs it is something else. */
static tn_status check_declared(const tn_eval *e, uint32_t output, const tn_object *object) {
    const tn_graph *g = e->graph;
    tn_value value = tn_node_output(g, e->node, output);
    tn_type type = tn_value_type(g, value);
    char text[200];
    if (!type.id || !object)
        return TN_OK;
    if (tn_type_kind(g, type) != TN_KIND_TENSOR) {
        static const char *const kinds[] = {"a tensor", "a sequence", "an optional", "a map"};
        return tn_object_kind(object) == tn_type_kind(g, type)
                   ? TN_OK
                   : tn_fail(TN_ERR_INPUT, "where %s is needed there is %s",
                             tn_type_describe(g, type, text, sizeof text), kinds[tn_object_kind(object)]);
    }
    const tn_tensor *t = (const tn_tensor *)object;
    int rank = tn_type_rank(g, type);
    bool fits =
        tn_object_kind(object) == TN_KIND_TENSOR && t->dtype == tn_type_dtype(g, type) && (rank < 0 || t->rank == rank);
    for (int i = 0; fits && i < rank; i++) {
        int64_t size;
        fits = !tn_dim_is_const(g, tn_value_dim(g, value, i), &size) || size == t->dims[i];
    }
    if (fits)
        return TN_OK;
    tn_type_describe(g, type, text, sizeof text);
    if (tn_object_kind(object) != TN_KIND_TENSOR)
        return tn_fail(TN_ERR_INPUT, "where %s is needed there is no tensor", text);
    tn_text dims;
    tn_text_init(&dims, e->heap);
    for (int i = 0; i < t->rank; i++)
        tn_text_printf(&dims, "%s%" PRId64, i ? "," : "", t->dims[i]);
    tn_status status = dims.failed ? tn_error_status()
                                   : tn_fail(TN_ERR_INPUT, "where %s is needed there is %s[%s]", text,
                                             tn_dtype_name((tn_dtype)t->dtype), dims.len ? dims.data : "");
    tn_text_free(&dims);
    return status;
}

static tn_status run(tn_eval *e, const tn_late_form *form) {
    uint32_t n = form->wanted.len, fed = form->fed.len;
    tn_value *values = tn_alloc_array(e->heap, n + 1u, sizeof *values);
    tn_object **objects = tn_alloc_array(e->heap, (size_t)n + fed + 1, sizeof *objects);
    tn_object **results = objects ? objects + fed : NULL;
    tn_status status = values && objects ? TN_OK : tn_error_status();
    for (uint32_t i = 0; i < n && status == TN_OK; i++)
        values[i] = tn_graph_output(form->graph, i);
    for (uint32_t i = 0; i < fed && status == TN_OK; i++)
        objects[i] = e->in[form->fed.data[i]];
    tn_interp_options options = {.heap = e->heap,
                                 .pool = e->pool,
                                 .max_bytes = e->max_bytes,
                                 .log = e->log,
                                 .log_ctx = e->log_ctx,
                                 .adjust = e->adjust,
                                 .adjust_ctx = e->adjust_ctx,
                                 .instead = e->instead,
                                 .late = form->number ? e->late : NULL,
                                 .late_graph = form->number};
    if (status == TN_OK)
        status = tn_interp_run(form->graph, &options, fed, form->inputs.data, objects, n, values, results);
    for (uint32_t i = 0; i < n && status == TN_OK; i++) {
        tn_object *object = results[i];
        status = check_declared(e, form->wanted.data[i], object);
        if (status != TN_OK)
            break;
        results[i] = NULL;
        status = tn_eval_set(e, form->wanted.data[i], object);
    }
    for (uint32_t i = 0; results && i < n; i++)
        tn_object_destroy(results[i]);
    tn_free(e->heap, values);
    tn_free(e->heap, objects);
    return status;
}

/* A new reference to the form of the node for its inputs. */
static tn_status make_form(tn_eval *e, bool constants, bool more, tn_heap *heap, tn_late_form **out) {
    late l = {.e = e, .form = tn_late_form_create(heap)};
    if (!l.form)
        return tn_error_status();
    *out = l.form;
    l.graph = l.form->graph = tn_graph_new(heap, e->graph->ops);
    tn_status status = l.graph ? build(&l, constants) : tn_error_status();
    if (status == TN_OK)
        status = expand(&l);
    if (status == TN_OK)
        tn_graph_freeze(l.graph);
    if (status == TN_ERR_UNSUPPORTED && more) {
        tn_graph_destroy(l.graph);
        l.form->graph = NULL;
        return TN_OK;
    }
    return status;
}

/* `more`: there are contents that are not constants yet, so that *retry may be answered: they are needed. */
static tn_status attempt(tn_eval *e, bool constants, bool more, bool *retry) {
    tn_heap *heap = e->late ? tn_late_cache_heap(e->late) : e->heap;
    uint64_t place = (uint64_t)e->late_graph << 32 | e->node.id;
    tn_text key;
    tn_text_init(&key, heap);
    bool kept = e->late && make_key(e, constants, &key);
    tn_late_form *form = kept ? tn_late_cache_find(e->late, place, &key) : NULL;
    tn_status status = key.failed ? TN_ERR_MEMORY : TN_OK;
    if (status == TN_OK && !form) {
        status = make_form(e, constants, more, heap, &form);
        if (status == TN_OK && kept)
            tn_late_cache_put(e->late, place, &key, form);
    }
    *retry = status == TN_OK && !form->graph;
    if (status == TN_OK && form->graph)
        status = run(e, form);
    tn_error_record error;
    tn_error_save(&error);
    tn_text_free(&key);
    tn_late_form_release(form);
    return status == TN_OK ? TN_OK : tn_error_restore(&error);
}

/* What cannot be expanded for the inputs of this run may be right for others: the node as the user knows it, with these inputs. */
static tn_status fail_late(const tn_eval *e, tn_status status) {
    if (status == TN_ERR_MODEL) {
        tn_error_record error;
        tn_error_save(&error);
        error.status = status = TN_ERR_INPUT;
        tn_error_restore(&error);
    }
    if (status == TN_ERR_INPUT)
        tn_eval_fail_inputs(e);
    return status;
}

tn_status tn_onnx_late_eval(tn_eval *e) {
    if (depth_of(e->graph) >= MAX_DEPTH) {
        return tn_eval_fail(e, TN_ERR_LIMIT, "operators that are expanded at run time are nested deeper than %d",
                            MAX_DEPTH);
    }
    bool more = false, retry;
    for (uint32_t i = 0; i < e->inputs; i++)
        more = more || (is_parameter(e, i, true) && !is_parameter(e, i, false));
    tn_status status = attempt(e, false, more, &retry);
    /* an expansion may need the contents of a large input */
    if (status == TN_OK && retry)
        status = attempt(e, true, false, &retry);
    return status == TN_OK ? TN_OK : fail_late(e, status);
}
