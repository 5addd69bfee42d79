/* GraphProto and FunctionProto. */
#include <string.h>

#include "onnx/writer.h"

/* --- the main graph --------------------------------------------------------------------------------------------------------------- */

/* Outputs whose value is called otherwise: an input, a constant, a value that is an output already. */
static void put_copy(tn_onnx_writer *w, const char *from, const char *to, tn_wire_out *out) {
    tn_wire_out node;
    tn_wire_out_init(&node, w->heap);
    tn_wire_out_text(&node, 1, from);
    tn_wire_out_text(&node, 2, to);
    tn_wire_out_text(&node, 4, "Identity");
    tn_wire_out_message(out, 1, &node);
}

static tn_status put_inputs(tn_onnx_writer *w, tn_wire_out *out) {
    const tn_graph *g = w->graph;
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++) {
        tn_value input = tn_graph_input(g, i);
        tn_tensor *value = tn_graph_input_default(g, input);
        const char *name = tn_onnx_name_of(w, input);
        tn_onnx_write_value(w, input, name, 11, out);
        if (value)
            TN_TRY(tn_onnx_write_initializer(w, value, name, true, out));
    }
    return TN_OK;
}

static tn_status put_outputs(tn_onnx_writer *w, tn_wire_out *out) {
    const tn_graph *g = w->graph;
    for (uint32_t i = 0; i < tn_graph_output_count(g); i++) {
        tn_value value = tn_graph_output(g, i);
        const char *name = tn_graph_output_name(g, i), *own = tn_onnx_name_of(w, value);
        if (!*name)
            name = own;
        bool before = false;
        for (uint32_t j = 0; j < i && !before; j++)
            before = strcmp(tn_graph_output_name(g, j), name) == 0;
        if (strcmp(name, own) != 0 && !before)
            put_copy(w, own, name, out);
        tn_onnx_write_value(w, value, name, 12, out);
    }
    return TN_OK;
}

/* Descriptions that the file gives of inner values, of those that are still there. */
static tn_status put_inner(tn_onnx_writer *w, tn_wire_out *out) {
    const tn_graph *g = w->graph;
    tn_map inner = {0}; /* string id of a name -> value */
    tn_status status = TN_OK;
    for (tn_node n = tn_region_first(g, tn_graph_region(g)); n.id && status == TN_OK; n = tn_node_next(g, n))
        for (uint32_t i = 0; i < tn_node_output_count(g, n) && status == TN_OK; i++) {
            tn_value value = tn_node_output(g, n, i);
            const char *name = tn_onnx_name_of(w, value);
            uint32_t id = *name ? tn_strings_find(&g->strings, name, strlen(name)) : UINT32_MAX;
            if (id != UINT32_MAX && !tn_map_put(w->heap, &inner, id, value.id))
                status = tn_error_status();
        }
    for (uint32_t i = 0; i < tn_graph_output_count(g); i++) {
        const char *name = tn_graph_output_name(g, i);
        tn_map_remove(&inner, tn_strings_find(&g->strings, name, strlen(name)));
    }
    for (uint32_t i = 0; i < g->metadata.len && status == TN_OK; i++) {
        const char *key = tn_strings_text(&g->strings, g->metadata.data[i].key);
        size_t prefix = sizeof TN_META_TYPE - 1;
        uint64_t id;
        if (strncmp(key, TN_META_TYPE, prefix) != 0)
            continue;
        uint32_t name = tn_strings_find(&g->strings, key + prefix, strlen(key + prefix));
        if (name != UINT32_MAX && tn_map_get(&inner, name, &id))
            tn_onnx_write_value(w, (tn_value){(uint32_t)id}, key + prefix, 13, out);
    }
    tn_map_free(w->heap, &inner);
    return status;
}

static tn_status put_main(tn_onnx_writer *w, tn_region region, tn_wire_out *out) {
    const char *name = tn_graph_metadata(w->graph, TN_META_GRAPH_NAME),
               *doc = tn_graph_metadata(w->graph, TN_META_GRAPH_DOC);
    TN_TRY(tn_onnx_write_nodes(w, region, false, out));
    tn_wire_out_text(out, 2, name && *name ? name : "graph");
    if (doc)
        tn_wire_out_text(out, 10, doc);
    TN_TRY(put_inputs(w, out));
    TN_TRY(put_outputs(w, out));
    TN_TRY(put_inner(w, out));
    size_t length = 0;
    const char *kept = tn_onnx_kept(w, TN_META_KEPT_GRAPH, "", &length, out);
    tn_wire_out_raw(out, kept ? kept : "", length);
    return TN_OK;
}

/* --- graphs in nodes ---------------------------------------------------------------------------------------------------------------- */

/* The type that the file declares for a value, in a list of "VALUE: TYPE". */
static const tn_string *declared_in(const tn_attr *list, const char *name) {
    size_t length = strlen(name);
    for (uint32_t i = 1; list && i < list->count; i++) {
        const tn_string *s = &list->as.strings[i];
        if (s->length > length + 2 && memcmp(s->data, name, length) == 0 && memcmp(s->data + length, ": ", 2) == 0)
            return s;
    }
    return NULL;
}

static void put_inner_value(tn_onnx_writer *w, tn_value value, const tn_attr *list, uint32_t field, tn_wire_out *out) {
    tn_wire_out info;
    const char *name = tn_onnx_name_of(w, value), *label = tn_value_name(w->graph, value);
    const tn_string *s = declared_in(list, label);
    tn_wire_out_init(&info, w->heap);
    tn_wire_out_text(&info, 1, name);
    if (s)
        tn_onnx_write_declared(w, s->data + strlen(label) + 2, s->length - strlen(label) - 2, 2, &info);
    else if (!list)
        tn_onnx_write_type(w, tn_value_type(w->graph, value), NULL, 2, &info);
    tn_wire_out_message(out, field, &info);
}

/* Descriptions of values that are neither inputs nor outputs. */
static void put_described(tn_onnx_writer *w, tn_region region, const tn_attr *list, tn_wire_out *out) {
    const tn_graph *g = w->graph;
    if (!list || list->count < 2)
        return;
    for (tn_node n = tn_region_first(g, region); n.id; n = tn_node_next(g, n))
        for (uint32_t i = 0; i < tn_node_output_count(g, n); i++) {
            tn_value value = tn_node_output(g, n, i);
            bool result = false;
            for (uint32_t j = 0; j < tn_region_result_count(g, region) && !result; j++)
                result = tn_region_result(g, region, j).id == value.id;
            if (!result && *tn_value_name(g, value) && declared_in(list, tn_value_name(g, value)))
                put_inner_value(w, value, list, 13, out);
        }
}

tn_status tn_onnx_write_graph(tn_onnx_writer *w, tn_region region, tn_node node, const char *name, tn_wire_out *out) {
    const tn_graph *g = w->graph;
    if (!node.id)
        return put_main(w, region, out);
    const tn_attr *list = tn_onnx_own_attr(g, node, "__graph:", name),
                  *kept = tn_onnx_own_attr(g, node, "__graph_kept:", name);
    TN_TRY(tn_onnx_write_nodes(w, region, false, out));
    if (list && list->count && list->as.strings[0].length)
        tn_wire_out_bytes(out, 2, list->as.strings[0].data, list->as.strings[0].length);
    else
        tn_wire_out_text(out, 2, name);
    for (uint32_t i = 0; i < tn_region_arg_count(g, region); i++)
        put_inner_value(w, tn_region_arg(g, region, i), list, 11, out);
    for (uint32_t i = 0; i < tn_region_result_count(g, region); i++)
        put_inner_value(w, tn_region_result(g, region, i), list, 12, out);
    put_described(w, region, list, out);
    if (kept)
        tn_wire_out_raw(out, kept->as.s.data, kept->as.s.length);
    return TN_OK;
}

/* --- functions ------------------------------------------------------------------------------------------------------------------------ */

/* A function of the graph as a FunctionProto; what the file said of it beside its nodes is kept. */
static tn_status put_function(tn_onnx_writer *w, const tn_function *f, const char *kept, size_t length,
                              tn_wire_out *out) {
    const tn_graph *g = w->graph;
    tn_region region = {f->region};
    tn_wire_out message;
    TN_TRY(tn_onnx_name_function(w, region));
    tn_wire_out_init(&message, w->heap);
    for (uint32_t i = 0; i < tn_region_arg_count(g, region); i++)
        tn_wire_out_text(&message, 4, tn_onnx_name_of(w, tn_region_arg(g, region, i)));
    for (uint32_t i = 0; i < tn_region_result_count(g, region); i++)
        tn_wire_out_text(&message, 5, tn_onnx_name_of(w, tn_region_result(g, region, i)));
    tn_status status = tn_onnx_write_nodes(w, region, true, &message);
    tn_wire_out_raw(&message, kept, length);
    tn_wire_out_message(out, 25, &message);
    return status;
}

tn_status tn_onnx_write_functions(tn_onnx_writer *w, tn_wire_out *out) {
    const tn_graph *g = w->graph;
    for (uint32_t i = 0; i < g->function.len; i++) {
        size_t length;
        const char *name = tn_strings_text(&g->strings, g->function.data[i].name),
                   *kept = tn_onnx_kept(w, TN_META_FUNCTION, name, &length, out);
        if (kept)
            TN_TRY(put_function(w, &g->function.data[i], kept, length, out));
    }
    return TN_OK;
}
