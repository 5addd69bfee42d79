/* What a file says that nothing here computes with, kept for writing it back: doc strings, properties, declared types. */
#include "onnx/reader.h"

tn_status tn_onnx_set_prefixed(tn_onnx_reader *r, const char *prefix, tn_slice name, tn_slice value) {
    tn_text key;
    tn_text_init(&key, r->heap);
    tn_text_add(&key, prefix);
    if (name.size)
        tn_text_bytes(&key, (const char *)name.data, name.size);
    tn_status status =
        key.failed ? tn_error_status()
                   : tn_graph_set_metadata(r->graph, key.data, value.size ? (const char *)value.data : "", value.size);
    tn_text_free(&key);
    return status;
}

tn_status tn_onnx_keep_fields(tn_slice message, const uint8_t *numbers, bool others, tn_text *out) {
    tn_wire w;
    tn_wire_field f;
    tn_wire_init(&w, message.data, message.size);
    for (const uint8_t *begin = w.at; tn_wire_next(&w, &f); begin = w.at) {
        bool listed = false;
        for (const uint8_t *n = numbers; *n; n++)
            listed = listed || *n == f.key >> 3;
        if (listed != others)
            tn_text_bytes(out, (const char *)begin, (size_t)(w.at - begin));
    }
    return out->failed ? tn_error_status() : w.status;
}

tn_status tn_onnx_keep(tn_onnx_reader *r, const char *prefix, const char *name, tn_text *text) {
    tn_slice key = {(const uint8_t *)name, strlen(name)};
    tn_status status = text->failed ? tn_error_status() : TN_OK;
    if (status == TN_OK && text->len)
        status = tn_onnx_set_prefixed(r, prefix, key, (tn_slice){(const uint8_t *)text->data, text->len});
    tn_text_free(text);
    return status;
}

/* "VALUE: TYPE" of a ValueInfoProto; nothing when it has no type. */
static tn_status add_declared(tn_onnx_reader *r, tn_slice message, tn_arena *scratch, tn_slice_vec *list) {
    tn_slice name, type;
    tn_text text;
    TN_TRY(tn_onnx_read_value_info(message, &name, &type));
    tn_text_init(&text, r->heap);
    if (name.size)
        tn_text_bytes(&text, (const char *)name.data, name.size);
    tn_text_add(&text, ": ");
    size_t before = text.len;
    tn_status status = type.data ? tn_onnx_print_type(type, 0, &text) : TN_OK;
    if (status == TN_OK && text.len > before) {
        char *copy = text.failed ? NULL : tn_arena_strndup(scratch, text.data, text.len);
        if (!copy || !tn_vec_push(r->heap, list, ((tn_slice){(const uint8_t *)copy, text.len})))
            status = tn_error_status();
    }
    tn_text_free(&text);
    return status;
}

static tn_status read_declared(tn_onnx_reader *r, tn_slice message, tn_arena *scratch, tn_slice_vec *list) {
    tn_wire w;
    tn_wire_field f;
    if (!tn_vec_push(r->heap, list, ((tn_slice){0})))
        return tn_error_status();
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f))
        switch (f.key) {
        case TN_WIRE_KEY(2, TN_WIRE_BYTES): list->data[0] = tn_wire_slice(&f); break;
        case TN_WIRE_KEY(11, TN_WIRE_BYTES):
        case TN_WIRE_KEY(12, TN_WIRE_BYTES):
        case TN_WIRE_KEY(13, TN_WIRE_BYTES): TN_TRY(add_declared(r, tn_wire_slice(&f), scratch, list)); break;
        default: break;
        }
    return w.status;
}

tn_status tn_onnx_keep_graph(tn_onnx_reader *r, tn_slice message, tn_arena *scratch, tn_attr *list, tn_attr *kept) {
    tn_slice_vec slices = {0};
    tn_text text;
    tn_text_init(&text, r->heap);
    tn_status status = read_declared(r, message, scratch, &slices);
    if (status == TN_OK)
        status = tn_onnx_keep_fields(message, (const uint8_t[]){1, 2, 5, 11, 12, 13, 15, 0}, true, &text);
    tn_string *strings = tn_arena_alloc(scratch, (slices.len + 1) * sizeof *strings);
    char *copy = tn_arena_strndup(scratch, text.data ? text.data : "", text.len);
    if (status == TN_OK && (!strings || !copy))
        status = tn_error_status();
    for (uint32_t i = 0; i < slices.len && status == TN_OK; i++)
        strings[i] = (tn_string){slices.data[i].size ? (const char *)slices.data[i].data : "", slices.data[i].size};
    list->as.strings = strings;
    list->count = slices.len;
    kept->as.s = (tn_string){copy, text.len};
    tn_vec_free(r->heap, &slices);
    tn_text_free(&text);
    return status;
}
