/* ModelProto, and the files that a model is written to. */
#include <inttypes.h>

#include "base/number.h"
#include "onnx/writer.h"

#define LARGEST_MESSAGE INT32_MAX /* of protobuf */

/* --- the message ------------------------------------------------------------------------------------------------------------------ */

int tn_onnx_ir_of_opset(int version) {
    static const struct {
        int opset, ir;
    } table[] = {{26, 13}, {25, 13}, {24, 12}, {23, 11}, {21, 10}, {19, 9}, {15, 8}, {12, 7}, {11, 6}, {10, 5}, {9, 4}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (version >= table[i].opset)
            return table[i].ir;
    return 3;
}

static int64_t number_of(const tn_graph *g, const char *key, int64_t absent) {
    const char *text = tn_graph_metadata(g, key);
    int64_t value;
    size_t used;
    return text && tn_parse_i64(text, strlen(text), &value, &used) && used == strlen(text) ? value : absent;
}

static void put_text(const tn_graph *g, const char *key, uint32_t field, tn_wire_out *out) {
    const char *text = tn_graph_metadata(g, key);
    if (text)
        tn_wire_out_text(out, field, text);
}

static void put_import(const char *domain, int64_t version, tn_wire_out *out) {
    tn_wire_out import;
    tn_wire_out_init(&import, out->text.heap);
    tn_wire_out_text(&import, 1, strcmp(domain, "ai.onnx") == 0 ? "" : domain);
    tn_wire_out_number(&import, 2, (uint64_t)version);
    tn_wire_out_message(out, 8, &import);
}

/* Operator sets and properties, in the order in which they were read. */
static void put_lists(const tn_graph *g, tn_wire_out *out) {
    for (uint32_t i = 0; i < g->metadata.len; i++) {
        const char *key = tn_strings_text(&g->strings, g->metadata.data[i].key),
                   *value = tn_strings_text(&g->strings, g->metadata.data[i].value);
        size_t opset = sizeof TN_META_OPSET - 1, prop = sizeof TN_META_PROP - 1;
        if (strncmp(key, TN_META_OPSET, opset) == 0) {
            put_import(key + opset, number_of(g, key, 1), out);
        } else if (strncmp(key, TN_META_PROP, prop) == 0) {
            tn_wire_out entry;
            tn_wire_out_init(&entry, out->text.heap);
            tn_wire_out_text(&entry, 1, key + prop);
            tn_wire_out_bytes(&entry, 2, value, tn_strings_length(&g->strings, g->metadata.data[i].value));
            tn_wire_out_message(out, 14, &entry);
        }
    }
}

static tn_status put_model(tn_onnx_writer *w, tn_wire_out *out) {
    const tn_graph *g = w->graph;
    tn_wire_out graph;
    uint64_t at;
    uint32_t kept = tn_strings_find(&g->strings, TN_META_KEPT_MODEL, sizeof TN_META_KEPT_MODEL - 1);
    tn_wire_out_number(out, 1, (uint64_t)number_of(g, TN_META_IR_VERSION, TN_ONNX_IR_NEWEST));
    put_text(g, TN_META_PRODUCER, 2, out);
    put_text(g, TN_META_PRODUCER_VERSION, 3, out);
    put_text(g, TN_META_DOMAIN, 4, out);
    if (tn_graph_metadata(g, TN_META_MODEL_VERSION))
        tn_wire_out_number(out, 5, (uint64_t)number_of(g, TN_META_MODEL_VERSION, 0));
    put_text(g, TN_META_DOC, 6, out);
    put_lists(g, out);
    TN_TRY(tn_onnx_name_graph(w));
    tn_wire_out_init(&graph, w->heap);
    tn_status status = tn_onnx_write_graph(w, tn_graph_region(g), (tn_node){0}, NULL, &graph);
    tn_wire_out_message(out, 7, &graph);
    TN_TRY(status);
    TN_TRY(tn_onnx_write_functions(w, out));
    if (kept != UINT32_MAX && tn_map_get(&w->declared, kept, &at))
        tn_wire_out_raw(out, tn_strings_text(&g->strings, g->metadata.data[at].value),
                        tn_strings_length(&g->strings, g->metadata.data[at].value));
    return tn_wire_out_status(out);
}

/* --- the writer ------------------------------------------------------------------------------------------------------------------- */

static tn_status begin(tn_onnx_writer *w, const tn_graph *g, const char *data_name, bool as_read) {
    *w = (tn_onnx_writer){.heap = g->heap, .graph = g, .as_read = as_read, .data_name = data_name};
    tn_arena_init(&w->arena, w->heap);
    w->name = tn_alloc_array(w->heap, g->value.len, sizeof *w->name);
    if (!w->name)
        return tn_error_status();
    for (uint32_t i = 0; i < g->metadata.len; i++)
        if (!tn_map_put(w->heap, &w->declared, g->metadata.data[i].key, i))
            return tn_error_status();
    return TN_OK;
}

static void end(tn_onnx_writer *w) {
    for (uint32_t i = 0; i < w->owned.len; i++)
        tn_tensor_destroy(w->owned.data[i]);
    tn_vec_free(w->heap, &w->owned);
    tn_vec_free(w->heap, &w->outside);
    tn_map_free(w->heap, &w->placed);
    tn_map_free(w->heap, &w->declared);
    tn_free(w->heap, w->name);
    tn_arena_free(&w->arena);
}

/* --- files -------------------------------------------------------------------------------------------------------------------------- */

static tn_status send_outside(const tn_onnx_writer *w, tn_file_writer *file) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < w->outside.len; i++) {
        const tn_onnx_outside *o = &w->outside.data[i];
        TN_TRY(tn_file_writer_zeros(file, o->offset - at));
        TN_TRY(tn_wire_send_tensor(o->tensor, file));
        at = o->offset + tn_tensor_bytes(o->tensor);
    }
    return TN_OK;
}

/* Both files are whole, under other names, before either takes its place. */
static tn_status send(const tn_onnx_writer *w, const tn_wire_out *message, const char *path, const char *data_path) {
    tn_file_writer *data = NULL, *model = tn_file_writer_begin(w->heap, path);
    tn_status status = model ? TN_OK : tn_error_status();
    if (status == TN_OK && w->outside.len) {
        if (tn_path_kind_of(data_path) == TN_PATH_OTHER)
            status = tn_fail(TN_ERR_IO, "cannot write '%s': it is neither a file nor a folder", data_path);
        else if (!(data = tn_file_writer_begin(w->heap, data_path)))
            status = tn_error_status();
    }
    if (status == TN_OK && data)
        status = send_outside(w, data);
    if (status == TN_OK)
        status = tn_wire_out_send(message, model);
    if (status == TN_OK && data) {
        status = tn_file_writer_commit(data);
        data = NULL;
    }
    if (status == TN_OK)
        return tn_file_writer_commit(model);
    tn_file_writer_abort(data);
    tn_file_writer_abort(model);
    return status;
}

/* *large: the message would be larger than one may be, and nothing was written. */
static tn_status write(const tn_graph *g, const char *path, const char *data_path, const char *data_name, bool as_read,
                       bool *large) {
    tn_onnx_writer w;
    tn_wire_out message;
    tn_wire_out_init(&message, g->heap);
    tn_status status = begin(&w, g, data_name, as_read);
    if (status == TN_OK)
        status = put_model(&w, &message);
    *large = status == TN_OK && tn_wire_out_size(&message) > LARGEST_MESSAGE;
    if (status == TN_OK && !*large)
        status = send(&w, &message, path, data_path);
    tn_wire_out_free(&message);
    end(&w);
    return status;
}

tn_status tn_onnx_write_model(const tn_graph *graph, const char *path, bool external_data, bool as_read) {
    tn_text data_path;
    bool large, file = tn_path_kind_of(path) != TN_PATH_OTHER;
    tn_text_init(&data_path, graph->heap);
    tn_text_printf(&data_path, "%s.data", path);
    if (data_path.failed) {
        tn_text_free(&data_path);
        return tn_error_status();
    }
    const char *slash = strrchr(data_path.data, '/'), *name = slash ? slash + 1 : data_path.data;
    bool outside = file && (external_data || tn_graph_metadata(graph, TN_META_EXTERNAL));
    tn_status status = write(graph, path, data_path.data, outside ? name : NULL, as_read, &large);
    if (status == TN_OK && large && !outside && file)
        status = write(graph, path, data_path.data, name, as_read, &large);
    if (status == TN_OK && large)
        status = tn_fail(TN_ERR_LIMIT, "the model would be larger than the 2 GiB that one file may hold");
    tn_text_free(&data_path);
    return status;
}
