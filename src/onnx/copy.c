/* Copying ONNX nodes: bodies of functions and of control flow into the place where they are expanded, late nodes into a graph of
   their own. Unlike tn_region_copy, absent arguments become absent inputs, and references to the caller's attributes are
   replaced by what the caller gives. */
#include "onnx/expander.h"
#include "onnx/reader.h"

#include <inttypes.h>

void tn_onnx_copier_free(tn_onnx_copier *c) {
    tn_map_free(c->to->heap, &c->values);
}

static tn_status map_value(tn_onnx_copier *c, tn_value from, tn_value to) {
    if (c->driver && c->to == c->from)
        TN_TRY(tn_declared_follow(c->driver, from, to));
    return tn_map_put(c->to->heap, &c->values, from.id, to.id) ? TN_OK : tn_error_status();
}

static tn_status copied(const tn_onnx_copier *c, tn_value from, tn_value *to) {
    uint64_t id;
    *to = from;
    if (!from.id)
        return TN_OK;
    if (tn_map_get(&c->values, from.id, &id))
        to->id = (uint32_t)id;
    else if (c->to != c->from)
        return tn_fail(TN_ERR_INTERNAL, "copying between graphs: a value from outside was not given");
    return TN_OK;
}

/* --- attributes ------------------------------------------------------------------------------------------------------------------ */

/* A type of another graph: only its kind of value matters for ONNX attributes, dims are kept when constant. */
static tn_type copy_type(tn_graph *to, const tn_graph *from, tn_type type) {
    if (to == from || !type.id)
        return type;
    switch (tn_type_kind(from, type)) {
    case TN_KIND_SEQUENCE: return tn_type_sequence(to, copy_type(to, from, tn_type_element(from, type)));
    case TN_KIND_OPTIONAL: return tn_type_optional(to, copy_type(to, from, tn_type_element(from, type)));
    case TN_KIND_MAP:
        return tn_type_map(to, tn_type_dtype(from, type), copy_type(to, from, tn_type_element(from, type)));
    case TN_KIND_TENSOR: break;
    }
    tn_dim dims[TN_MAX_RANK];
    int rank = tn_type_rank(from, type);
    for (int i = 0; i < rank; i++) {
        int64_t size;
        dims[i] = tn_dim_is_const(from, tn_type_dims(from, type)[i], &size) ? tn_dim_const(to, size)
                                                                            : tn_dim_fresh(to, 0, INT64_MAX);
    }
    return tn_type_tensor(to, tn_type_dtype(from, type), rank, dims);
}

static tn_status copy_attr(tn_onnx_copier *c, const tn_attr *a, const char *key, tn_attr *out, tn_arena *scratch) {
    *out = *a;
    out->key = key;
    if (c->to == c->from)
        return TN_OK;
    if (a->kind == TN_ATTR_TYPE) {
        out->as.type = copy_type(c->to, c->from, a->as.type);
        return tn_graph_check(c->to);
    }
    if (a->kind == TN_ATTR_FUNCTION)
        return tn_fail(TN_ERR_UNSUPPORTED, "not supported: a composite inside a body that waits for run time");
    if (a->kind != TN_ATTR_DIMS)
        return TN_OK;
    tn_dim *dims = tn_arena_alloc(scratch, a->count * sizeof *dims + 1);
    if (!dims)
        return tn_error_status();
    for (uint32_t i = 0; i < a->count; i++) {
        int64_t size;
        if (!tn_dim_is_const(c->from, a->as.dims[i], &size))
            return tn_fail(TN_ERR_UNSUPPORTED, "not supported: a symbolic size inside a body that waits for run time");
        dims[i] = tn_dim_const(c->to, size);
    }
    out->as.dims = dims;
    return TN_OK;
}

static const tn_attr *find_attr(const tn_graph *g, tn_node node, const char *name) {
    return node.id ? tn_node_attr(g, node, name) : NULL;
}

/* The attributes of a copy: references replaced, their defaults where the caller gives nothing. */
static tn_status copy_attrs(tn_onnx_copier *c, tn_node node, tn_attr **attrs, uint32_t *count, tn_arena *scratch) {
    uint32_t n = tn_node_attr_count(c->from, node);
    tn_attr *list = tn_arena_alloc(scratch, (n + 2) * sizeof *list);
    *count = 0;
    *attrs = list;
    if (!list)
        return tn_error_status();
    for (uint32_t i = 0; i < n; i++) {
        const tn_attr *a = tn_node_attr_at(c->from, node, i);
        const char *key = tn_strings_text(&c->from->strings, a->name);
        if (c->caller_graph && strncmp(key, "__type:", 7) == 0)
            continue;
        if (c->caller_graph && strncmp(key, "__ref:", 6) == 0) {
            char ref[256];
            if (a->as.s.length >= sizeof ref)
                return tn_fail(TN_ERR_LIMIT, "the name of a function's attribute is longer than %zu bytes", sizeof ref);
            memcpy(ref, a->as.s.data, a->as.s.length);
            ref[a->as.s.length] = 0;
            const tn_attr *given = find_attr(c->caller_graph, c->caller, ref);
            if (given)
                TN_TRY(copy_attr(c, given, key + 6, &list[(*count)++], scratch));
            continue;
        }
        if (c->caller_graph) { /* the default of a reference that the caller gives */
            char name[300];
            const tn_attr *ref = NULL;
            if (strlen(key) < 256) {
                memcpy(name, "__ref:", 6);
                memcpy(name + 6, key, strlen(key) + 1);
                ref = tn_node_attr(c->from, node, name);
            }
            if (ref && ref->as.s.length < 256) {
                memcpy(name, ref->as.s.data, ref->as.s.length);
                name[ref->as.s.length] = 0;
                if (find_attr(c->caller_graph, c->caller, name))
                    continue;
            }
        }
        TN_TRY(copy_attr(c, a, key, &list[*count], scratch));
        const tn_attr *call = c->caller_graph ? find_attr(c->caller_graph, c->caller, TN_ONNX_SEED) : NULL;
        if (call && strcmp(key, TN_ONNX_SEED) == 0)
            list[*count].as.i = tn_onnx_seed_of_call(a->as.i, call->as.i);
        ++*count;
    }
    return TN_OK;
}

/* --- nodes and regions ------------------------------------------------------------------------------------------------------------- */

static tn_status copy_inner_region(tn_onnx_copier *c, tn_region from, tn_region *to) {
    tn_graph *g = c->to;
    tn_insertion at = tn_graph_insertion(g);
    uint32_t args = tn_region_arg_count(c->from, from), n = tn_region_result_count(c->from, from);
    *to = tn_region_create(g);
    if (!to->id)
        return tn_graph_check(g);
    for (uint32_t i = 0; i < args; i++) {
        tn_value arg = tn_region_arg(c->from, from, i);
        tn_value made = tn_region_add_arg(g, *to, (tn_type){0}, tn_value_name(c->from, arg));
        if (!made.id)
            return tn_graph_check(g);
        TN_TRY(map_value(c, arg, made));
    }
    tn_value *results = tn_alloc_array(g->heap, n, sizeof *results);
    if (!results)
        return tn_error_status();
    tn_graph_insert_at_end(g, *to);
    tn_status status = tn_onnx_copy_region(c, from, n, results);
    if (status == TN_OK)
        status = tn_region_return(g, *to, n, results);
    tn_free(g->heap, results);
    tn_graph_set_insertion(g, at);
    return status;
}

static uint32_t copy_location(tn_onnx_copier *c, tn_node node) {
    if (c->to == c->from) {
        uint32_t location = tn_node_location(c->from, node);
        return c->caller.id ? tn_location_union(c->to, tn_node_location(c->caller_graph, c->caller), location)
                            : location;
    }
    const char *name = tn_node_op_name(c->from, node);
    const char *file = tn_graph_metadata(c->from, TN_META_FILE);
    const char *dot = strrchr(name, '.');
    return tn_location_make(c->to, dot ? dot + 1 : name, tn_node_name(c->from, node), file ? file : "", 0);
}

/* One captured input more, the trip. There is room for two attributes. */
static void add_capture_attrs(tn_attr *attrs, uint32_t *count) {
    uint32_t i = 0;
    while (i < *count && strcmp(attrs[i].key, "__captures") != 0)
        i++;
    if (i == *count)
        attrs[(*count)++] = TN_A_INT("__captures", 0);
    attrs[i].as.i++;
    attrs[(*count)++] = TN_A_INT(TN_ONNX_TRIP, 1);
}

static tn_status add_copy(tn_onnx_copier *c, tn_node node, tn_arena *scratch) {
    tn_graph *g = c->to;
    uint32_t inputs = tn_node_input_count(c->from, node), outputs = tn_node_output_count(c->from, node);
    uint32_t regions = tn_node_region_count(c->from, node);
    tn_value *in = tn_arena_alloc(scratch, (inputs + 1) * sizeof *in);
    tn_region *inner = tn_arena_alloc(scratch, regions * sizeof *inner + 1);
    tn_attr *attrs;
    uint32_t attr_count;
    if (!in || !inner)
        return tn_error_status();
    for (uint32_t i = 0; i < inputs; i++)
        TN_TRY(copied(c, tn_node_input(c->from, node, i), &in[i]));
    TN_TRY(copy_attrs(c, node, &attrs, &attr_count, scratch));
    if (c->trip.id && !tn_onnx_trip(c->from, node).id && tn_onnx_draws(c->driver, c->from, node)) {
        in[inputs++] = c->trip;
        add_capture_attrs(attrs, &attr_count);
    }
    for (uint32_t i = 0; i < regions; i++)
        TN_TRY(copy_inner_region(c, tn_node_region(c->from, node, i), &inner[i]));
    tn_graph_at_location(g, copy_location(c, node));
    tn_node made = tn_graph_add_node(g, &(tn_node_desc){.op = tn_node_op(c->from, node),
                                                        .name = tn_node_name(c->from, node),
                                                        .input_count = inputs,
                                                        .inputs = in,
                                                        .output_count = outputs,
                                                        .attr_count = attr_count,
                                                        .attrs = attrs,
                                                        .region_count = regions,
                                                        .regions = inner});
    if (!made.id)
        return tn_graph_check(g);
    for (uint32_t i = 0; i < outputs; i++) {
        tn_value from = tn_node_output(c->from, node, i), to = tn_node_output(g, made, i);
        TN_TRY(map_value(c, from, to));
        const char *name = tn_value_name(c->from, from);
        if (*name && !c->caller_graph) /* names inside a function are not those of the model */
            TN_TRY(tn_value_set_name(g, to, name));
    }
    return TN_OK;
}

tn_status tn_onnx_copy_node(tn_onnx_copier *c, tn_node node) {
    if (c->budget) {
        if (*c->budget == 0)
            return tn_fail(TN_ERR_LIMIT, "the model has too many nodes once its functions and bodies are expanded");
        --*c->budget;
    }
    if (++c->depth > TN_MAX_NESTING + 1)
        return tn_fail(TN_ERR_LIMIT, "regions are nested deeper than %d", TN_MAX_NESTING);
    tn_arena scratch;
    tn_arena_init(&scratch, c->to->heap);
    tn_status status = add_copy(c, node, &scratch);
    tn_arena_free(&scratch);
    c->depth--;
    return status;
}

tn_status tn_onnx_copy_region(tn_onnx_copier *c, tn_region region, uint32_t n_results, tn_value *results) {
    tn_node last = tn_region_last(c->from, region);
    for (tn_node node = tn_region_first(c->from, region); node.id && node.id != last.id;
         node = tn_node_next(c->from, node))
        TN_TRY(tn_onnx_copy_node(c, node));
    for (uint32_t i = 0; i < n_results; i++) {
        TN_TRY(copied(c, tn_region_result(c->from, region, i), &results[i]));
        if (!results[i].id)
            return tn_fail(TN_ERR_MODEL, "result %u of a function is an argument that the call leaves out", i);
    }
    return TN_OK;
}

/* --- what regions read from outside ------------------------------------------------------------------------------------------------ */

static tn_status add_capture(tn_value v, tn_map *inside, tn_heap *heap, tn_value_vec *out) {
    if (!v.id || tn_map_get(inside, v.id, NULL))
        return TN_OK;
    return tn_map_put(heap, inside, v.id, 0) && tn_vec_push(heap, out, v) ? TN_OK : tn_error_status();
}

/* `inside`: values defined in the regions, and those already met. */
static tn_status capture_region(const tn_graph *g, tn_region r, tn_map *inside, tn_heap *heap, tn_value_vec *out) {
    for (uint32_t i = 0; i < tn_region_arg_count(g, r); i++)
        if (!tn_map_put(heap, inside, tn_region_arg(g, r, i).id, 0))
            return tn_error_status();
    for (tn_node n = tn_region_first(g, r); n.id; n = tn_node_next(g, n)) {
        for (uint32_t i = 0; i < tn_node_input_count(g, n); i++)
            TN_TRY(add_capture(tn_node_input(g, n, i), inside, heap, out));
        for (uint32_t i = 0; i < tn_node_region_count(g, n); i++)
            TN_TRY(capture_region(g, tn_node_region(g, n, i), inside, heap, out));
        for (uint32_t i = 0; i < tn_node_output_count(g, n); i++)
            if (!tn_map_put(heap, inside, tn_node_output(g, n, i).id, 0))
                return tn_error_status();
    }
    return TN_OK;
}

tn_status tn_onnx_captures(const tn_graph *g, uint32_t count, const tn_region *regions, tn_heap *heap,
                           tn_value_vec *out) {
    tn_map inside = {0};
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < count && status == TN_OK; i++)
        status = capture_region(g, regions[i], &inside, heap, out);
    tn_map_free(heap, &inside);
    return status;
}
