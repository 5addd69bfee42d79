/* GraphProto: inputs, initializers, nodes in order, outputs. */
#include "onnx/reader.h"

#include <inttypes.h>

typedef struct graph_fields {
    tn_slice_vec nodes, initializers, sparse, inputs, outputs, declared, others; /* others: whole fields */
    tn_slice name, doc;
} graph_fields;

static void free_fields(tn_onnx_reader *r, graph_fields *g) {
    tn_vec_free(r->heap, &g->nodes);
    tn_vec_free(r->heap, &g->initializers);
    tn_vec_free(r->heap, &g->sparse);
    tn_vec_free(r->heap, &g->inputs);
    tn_vec_free(r->heap, &g->outputs);
    tn_vec_free(r->heap, &g->declared);
    tn_vec_free(r->heap, &g->others);
}

static tn_status collect(tn_onnx_reader *r, tn_slice message, graph_fields *g) {
    tn_wire w;
    tn_wire_field f;
    tn_wire_init(&w, message.data, message.size);
    for (const uint8_t *begin = w.at; tn_wire_next(&w, &f); begin = w.at) {
        tn_slice_vec *list = NULL;
        switch (f.key) {
        case TN_WIRE_KEY(1, TN_WIRE_BYTES): list = &g->nodes; break;
        case TN_WIRE_KEY(2, TN_WIRE_BYTES): g->name = tn_wire_slice(&f); break;
        case TN_WIRE_KEY(5, TN_WIRE_BYTES): list = &g->initializers; break;
        case TN_WIRE_KEY(10, TN_WIRE_BYTES): g->doc = tn_wire_slice(&f); break;
        case TN_WIRE_KEY(11, TN_WIRE_BYTES): list = &g->inputs; break;
        case TN_WIRE_KEY(12, TN_WIRE_BYTES): list = &g->outputs; break;
        case TN_WIRE_KEY(13, TN_WIRE_BYTES): list = &g->declared; break;
        case TN_WIRE_KEY(15, TN_WIRE_BYTES): list = &g->sparse; break;
        default:
            if (!tn_vec_push(r->heap, &g->others, ((tn_slice){begin, (size_t)(w.at - begin)})))
                return tn_error_status();
        }
        if (list && !tn_vec_push(r->heap, list, tn_wire_slice(&f)))
            return tn_error_status();
    }
    return w.status;
}

/* --- names -------------------------------------------------------------------------------------------------------------------- */

bool tn_onnx_name(tn_onnx_reader *r, tn_slice text, uint32_t *id) {
    if (text.size && memchr(text.data, 0, text.size)) {
        tn_fail(TN_ERR_MODEL, "the name '" TN_SLICE_FMT "' holds a zero byte", TN_SLICE_ARG(text));
        return false;
    }
    *id = text.size ? tn_strings_add(&r->graph->strings, (const char *)text.data, text.size) : 0;
    return *id != UINT32_MAX;
}

bool tn_onnx_lookup(const tn_onnx_reader *r, uint32_t name, tn_value *value) {
    uint64_t id;
    for (const tn_onnx_scope *s = r->scope; s; s = s->outer)
        if (tn_map_get(&s->names, name, &id)) {
            value->id = (uint32_t)id;
            return true;
        }
    return false;
}

tn_status tn_onnx_bind(tn_onnx_reader *r, uint32_t name, tn_value value) {
    if (tn_map_get(&r->scope->names, name, NULL))
        return tn_fail(TN_ERR_MODEL, "value '%s' is made twice", tn_onnx_text(r, name));
    return tn_map_put(r->heap, &r->scope->names, name, value.id) ? TN_OK : tn_error_status();
}

/* What a file says of a value of the main graph beside its name and type: doc string, properties. */
static tn_status keep_info(tn_onnx_reader *r, tn_slice message, uint32_t name) {
    tn_text kept;
    tn_text_init(&kept, r->heap);
    tn_onnx_keep_fields(message, (const uint8_t[]){1, 2, 0}, true, &kept);
    return tn_onnx_keep(r, TN_META_INFO, tn_onnx_text(r, name), &kept);
}

/* --- inputs and initializers ------------------------------------------------------------------------------------------------- */

static tn_status read_input(tn_onnx_reader *r, tn_slice message, tn_region region, bool main) {
    tn_slice text, type_message;
    uint32_t name;
    tn_type type = {0};
    TN_TRY(tn_onnx_read_value_info(message, &text, &type_message));
    if (!tn_onnx_name(r, text, &name))
        return tn_error_status();
    if (!name)
        return tn_fail(TN_ERR_MODEL, "an input of the graph has no name");
    tn_status status = TN_OK;
    /* what an inner graph declares is a hint; its inputs have the type of what they are given */
    if (main) {
        status = type_message.data ? tn_onnx_read_type(r, type_message, 0, &type) : TN_OK;
        if (status == TN_OK && !type.id)
            status = tn_fail(TN_ERR_MODEL, "the type of graph input '%s' is missing", tn_onnx_text(r, name));
    }
    if (status == TN_OK && tn_map_get(&r->scope->names, name, NULL))
        return tn_fail(TN_ERR_MODEL, "two inputs of the graph are named '%s'", tn_onnx_text(r, name));
    if (status == TN_OK) {
        tn_value value = tn_region_add_arg(r->graph, region, type, tn_onnx_text(r, name));
        status = value.id ? tn_onnx_bind(r, name, value) : tn_error_status();
    }
    if (status == TN_OK && main)
        status = tn_onnx_declare(r, name, type_message, true);
    if (status == TN_OK && main)
        status = keep_info(r, message, name);
    if (status != TN_OK)
        tn_fail_where("input '%s'", tn_onnx_text(r, name));
    return status;
}

/* A type may be given for an initializer that is listed as an input: the tensor must be of it. */
static tn_status fits(tn_onnx_reader *r, tn_value input, const tn_tensor *t) {
    tn_type type = tn_value_type(r->graph, input);
    int rank = tn_type_rank(r->graph, type);
    bool ok = tn_type_kind(r->graph, type) == TN_KIND_TENSOR && tn_type_dtype(r->graph, type) == (tn_dtype)t->dtype &&
              (rank < 0 || rank == t->rank);
    int64_t size;
    for (int i = 0; ok && i < rank; i++)
        ok = !tn_dim_is_const(r->graph, tn_type_dims(r->graph, type)[i], &size) || size == t->dims[i];
    if (ok)
        return TN_OK;
    char declared[160], actual[160];
    return tn_fail(TN_ERR_MODEL, "input %s has a default of another type: %s",
                   tn_value_describe(r->graph, input, declared, sizeof declared),
                   tn_tensor_describe(t, actual, sizeof actual));
}

static tn_status add_initializer(tn_onnx_reader *r, tn_tensor *t, tn_slice text, bool main) {
    uint32_t name;
    tn_value value;
    uint64_t input;
    if (!tn_onnx_name(r, text, &name))
        return tn_error_status();
    if (!name)
        return tn_fail(TN_ERR_MODEL, "an initializer has no name");
    if (tn_map_get(&r->scope->names, name, &input)) {
        value.id = (uint32_t)input;
        if (tn_value_producer(r->graph, value).id || (main && tn_graph_input_default(r->graph, value)))
            return tn_fail(TN_ERR_MODEL, "there are two initializers '%s'", tn_onnx_text(r, name));
        if (!main) /* the inputs of a body are always given */
            return TN_OK;
        TN_TRY(fits(r, value, t));
        return tn_graph_set_input_default(r->graph, value, t);
    }
    value = tn_graph_constant(r->graph, t);
    if (!value.id)
        return tn_graph_check(r->graph);
    TN_TRY(tn_value_set_name(r->graph, value, tn_onnx_text(r, name)));
    return tn_onnx_bind(r, name, value);
}

static tn_status mark_sparse(tn_onnx_reader *r, tn_slice name) {
    uint32_t id;
    tn_text mark;
    if (!tn_onnx_name(r, name, &id))
        return tn_error_status();
    tn_text_init(&mark, r->heap);
    tn_text_add(&mark, "1");
    return tn_onnx_keep(r, TN_META_SPARSE, tn_onnx_text(r, id), &mark);
}

static tn_status read_initializer(tn_onnx_reader *r, tn_slice message, bool sparse, bool main) {
    tn_slice name = {0};
    tn_tensor *t =
        sparse ? tn_onnx_decode_sparse(&r->source, message, &name) : tn_onnx_decode_tensor(&r->source, message, &name);
    if (!t)
        return tn_error_status();
    tn_status status = add_initializer(r, t, name, main);
    tn_tensor_destroy(t);
    if (status == TN_OK && main && sparse)
        status = mark_sparse(r, name);
    return status;
}

/* --- outputs ---------------------------------------------------------------------------------------------------------------------- */

static tn_status read_outputs(tn_onnx_reader *r, const graph_fields *g, tn_region region, bool main) {
    tn_value *values = tn_alloc_array(r->heap, g->outputs.len, sizeof *values);
    if (!values)
        return tn_error_status();
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < g->outputs.len && status == TN_OK; i++) {
        tn_slice text, type;
        uint32_t name = 0;
        status = tn_onnx_read_value_info(g->outputs.data[i], &text, &type);
        if (status == TN_OK && !tn_onnx_name(r, text, &name))
            status = tn_error_status();
        if (status == TN_OK && !name)
            status = tn_fail(TN_ERR_MODEL, "output %u of the graph has no name", i);
        else if (status == TN_OK && !tn_onnx_lookup(r, name, &values[i]))
            status = tn_fail(TN_ERR_MODEL, "nothing makes the graph's output '%s'", tn_onnx_text(r, name));
        if (status == TN_OK && main) {
            status = type.data ? tn_onnx_declare(r, name, type, false) : TN_OK;
            if (status == TN_OK)
                status = keep_info(r, g->outputs.data[i], name);
            if (status == TN_OK && !tn_vec_push(r->heap, &r->graph->output_name, name))
                status = tn_error_status();
        }
    }
    if (status == TN_OK)
        status = tn_region_return(r->graph, region, g->outputs.len, values);
    tn_free(r->heap, values);
    return status;
}

/* --- all of it ------------------------------------------------------------------------------------------------------------------- */

tn_status tn_onnx_read_nodes(tn_onnx_reader *r, const tn_slice_vec *nodes, tn_region region) {
    if (!nodes->len)
        return TN_OK;
    uint32_t *order = tn_alloc_array(r->heap, nodes->len, sizeof *order);
    if (!order)
        return tn_error_status();
    uint32_t kept = 0;
    tn_status status = tn_onnx_order(r, nodes->data, nodes->len, order, &kept);
    for (uint32_t i = 0; i < kept && status == TN_OK; i++) {
        tn_graph_insert_at_end(r->graph, region);
        status = tn_onnx_read_node(r, nodes->data[order[i]]);
    }
    tn_free(r->heap, order);
    return status;
}

static tn_status read_fields(tn_onnx_reader *r, const graph_fields *g, tn_region region, bool main) {
    for (uint32_t i = 0; i < g->inputs.len; i++)
        TN_TRY(read_input(r, g->inputs.data[i], region, main));
    tn_graph_insert_at_end(r->graph, region);
    tn_graph_at_location(r->graph, 0);
    for (uint32_t i = 0; i < g->initializers.len; i++)
        TN_TRY(read_initializer(r, g->initializers.data[i], false, main));
    for (uint32_t i = 0; i < g->sparse.len; i++)
        TN_TRY(read_initializer(r, g->sparse.data[i], true, main));
    TN_TRY(tn_onnx_read_nodes(r, &g->nodes, region));
    if (main) {
        TN_TRY(tn_graph_set_metadata(r->graph, TN_META_GRAPH_NAME, (const char *)g->name.data, g->name.size));
        if (g->doc.size)
            TN_TRY(tn_graph_set_metadata(r->graph, TN_META_GRAPH_DOC, (const char *)g->doc.data, g->doc.size));
        for (uint32_t i = 0; i < g->declared.len; i++) {
            tn_slice text, type;
            uint32_t name;
            TN_TRY(tn_onnx_read_value_info(g->declared.data[i], &text, &type));
            if (!tn_onnx_name(r, text, &name))
                return tn_error_status();
            if (type.data)
                TN_TRY(tn_onnx_declare(r, name, type, false));
            TN_TRY(keep_info(r, g->declared.data[i], name));
        }
        tn_text kept;
        tn_text_init(&kept, r->heap);
        for (uint32_t i = 0; i < g->others.len; i++)
            tn_text_bytes(&kept, (const char *)g->others.data[i].data, g->others.data[i].size);
        TN_TRY(tn_onnx_keep(r, TN_META_KEPT_GRAPH, "", &kept));
    }
    return read_outputs(r, g, region, main);
}

tn_status tn_onnx_read_graph(tn_onnx_reader *r, tn_slice message, tn_region region, bool main) {
    if (r->depth >= TN_MAX_NESTING)
        return tn_fail(TN_ERR_LIMIT, "graphs are nested deeper than %d", TN_MAX_NESTING);
    graph_fields g = {0};
    tn_onnx_scope scope = {.outer = r->scope};
    r->scope = &scope;
    r->depth++;
    tn_status status = collect(r, message, &g);
    if (status == TN_OK)
        status = read_fields(r, &g, region, main);
    r->depth--;
    r->scope = scope.outer;
    tn_map_free(r->heap, &scope.names);
    free_fields(r, &g);
    return status;
}
