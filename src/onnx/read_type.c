/* TypeProto and ValueInfoProto. */
#include "onnx/reader.h"

#include <inttypes.h>

/* Names that writers give to dimensions they know nothing about: they bind nothing together. */
static bool means_unknown(const char *name) {
    static const char *const list[] = {"", "?", "None", "none", "unknown", "-1", "*"};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

/* One Dimension: *value, or *name set, or neither (*value negative). -1 in the file says
   nothing, other negative numbers are an error when `strict`. */
static tn_status read_dim(tn_slice message, bool strict, int64_t *value, tn_slice *name) {
    tn_wire w;
    tn_wire_field f;
    bool negative = false;
    *value = -1;
    *name = (tn_slice){0};
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f))
        if (f.key == TN_WIRE_KEY(1, TN_WIRE_VARINT)) {
            *value = (int64_t)f.value;
            *name = (tn_slice){0};
            negative = *value < -1; /* -1: some writers' unknown */
        } else if (f.key == TN_WIRE_KEY(2, TN_WIRE_BYTES)) {
            *name = tn_wire_slice(&f);
            *value = -1;
            negative = false;
        }
    if (negative && strict)
        return tn_fail(TN_ERR_MODEL, "a declared dimension is %" PRId64, *value);
    return w.status;
}

typedef struct tensor_type {
    uint64_t dtype;
    int rank; /* -1: no shape */
    tn_slice dim[TN_MAX_RANK];
} tensor_type;

static tn_status read_shape(tn_slice message, tensor_type *t) {
    tn_wire w;
    tn_wire_field f;
    t->rank = 0;
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f))
        if (f.key == TN_WIRE_KEY(1, TN_WIRE_BYTES)) {
            if (t->rank == TN_MAX_RANK)
                return tn_fail(TN_ERR_LIMIT, "a declared tensor of more than %d dimensions", TN_MAX_RANK);
            t->dim[t->rank++] = tn_wire_slice(&f);
        }
    return w.status;
}

static tn_status read_tensor_type(tn_slice message, tensor_type *t) {
    tn_wire w;
    tn_wire_field f;
    *t = (tensor_type){.rank = -1};
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f))
        if (f.key == TN_WIRE_KEY(1, TN_WIRE_VARINT))
            t->dtype = f.value;
        else if (f.key == TN_WIRE_KEY(2, TN_WIRE_BYTES))
            TN_TRY(read_shape(tn_wire_slice(&f), t));
    if (t->dtype >= TN_DTYPE_COUNT)
        return tn_fail(TN_ERR_MODEL, "element type %" PRIu64 " does not exist", t->dtype);
    return w.status;
}

static tn_status make_tensor_type(tn_onnx_reader *r, tn_slice message, tn_type *type) {
    tensor_type t;
    tn_dim dims[TN_MAX_RANK];
    TN_TRY(read_tensor_type(message, &t));
    if (!t.dtype)
        return TN_OK;
    for (int i = 0; i < t.rank; i++) {
        int64_t value;
        tn_slice name;
        uint32_t id = 0;
        TN_TRY(read_dim(t.dim[i], true, &value, &name));
        if (!tn_onnx_name(r, name, &id))
            return tn_error_status();
        if (value >= 0)
            dims[i] = tn_dim_const(r->graph, value);
        else if (means_unknown(tn_onnx_text(r, id)))
            dims[i] = tn_dim_fresh(r->graph, 0, INT64_MAX);
        else
            dims[i] = tn_dim_symbol(r->graph, tn_onnx_text(r, id));
    }
    *type = tn_type_tensor(r->graph, (tn_dtype)t.dtype, t.rank, dims);
    return tn_graph_check(r->graph);
}

/* The message of field `number` of a message of one element type (sequence, optional: 1; map: 2), and a map's key. */
static tn_status inner_type(tn_slice message, uint32_t number, tn_slice *inner, uint64_t *key) {
    tn_wire w;
    tn_wire_field f;
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f))
        if (f.key == TN_WIRE_KEY(number, TN_WIRE_BYTES))
            *inner = tn_wire_slice(&f);
        else if (f.key == TN_WIRE_KEY(1, TN_WIRE_VARINT))
            *key = f.value;
    return w.status;
}

tn_status tn_onnx_read_type(tn_onnx_reader *r, tn_slice message, int depth, tn_type *type) {
    tn_wire w;
    tn_wire_field f;
    tn_slice body = {0}, inner = {0};
    uint64_t key = 0;
    uint32_t which = 0;
    tn_type element = {0};
    *type = (tn_type){0};
    if (depth > TN_MAX_NESTING)
        return tn_fail(TN_ERR_LIMIT, "types are nested deeper than %d", TN_MAX_NESTING);
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f))
        if ((f.key & 7) == TN_WIRE_BYTES && f.key >> 3 != 6) {
            which = f.key >> 3;
            body = tn_wire_slice(&f);
        }
    TN_TRY(w.status);
    switch (which) {
    case 0: return TN_OK;
    case 1:
    case 8: return make_tensor_type(r, body, type); /* sparse: the tensor that it stands for */
    case 4:
    case 5:
    case 9: break;
    default: return tn_fail(TN_ERR_UNSUPPORTED, "not supported: a value of an opaque type");
    }
    TN_TRY(inner_type(body, which == 5 ? 2 : 1, &inner, &key));
    if (inner.data)
        TN_TRY(tn_onnx_read_type(r, inner, depth + 1, &element));
    if (which == 4)
        *type = tn_type_sequence(r->graph, element);
    else if (which == 9)
        *type = tn_type_optional(r->graph, element);
    else if (key == 0 || key >= TN_DTYPE_COUNT)
        return tn_fail(TN_ERR_MODEL, "a map whose keys have element type %" PRIu64, key);
    else
        *type = tn_type_map(r->graph, (tn_dtype)key, element);
    return tn_graph_check(r->graph);
}

tn_status tn_onnx_read_value_info(tn_slice message, tn_slice *name, tn_slice *type) {
    tn_wire w;
    tn_wire_field f;
    *name = *type = (tn_slice){0};
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f))
        if (f.key == TN_WIRE_KEY(1, TN_WIRE_BYTES))
            *name = tn_wire_slice(&f);
        else if (f.key == TN_WIRE_KEY(2, TN_WIRE_BYTES))
            *type = tn_wire_slice(&f);
    return w.status;
}

/* --- declared types as text -------------------------------------------------------------------------------------------------- */

static bool is_plain(tn_slice name) {
    for (size_t i = 0; i < name.size; i++) {
        uint8_t c = name.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (i && c >= '0' && c <= '9')))
            return false;
    }
    return name.size > 0;
}

static tn_status print_tensor_type(tn_slice message, tn_text *out) {
    tensor_type t;
    TN_TRY(read_tensor_type(message, &t));
    if (!t.dtype)
        return TN_OK;
    tn_text_add(out, tn_dtype_name((tn_dtype)t.dtype));
    tn_text_add(out, t.rank < 0 ? "[*]" : "[");
    for (int i = 0; i < t.rank; i++) {
        int64_t value;
        tn_slice symbol;
        TN_TRY(read_dim(t.dim[i], false, &value, &symbol));
        tn_text_add(out, i ? "," : "");
        if (value >= 0)
            tn_text_printf(out, "%" PRId64, value);
        else if (is_plain(symbol))
            tn_text_bytes(out, (const char *)symbol.data, symbol.size);
        else if (symbol.size)
            tn_text_quoted(out, (const char *)symbol.data, symbol.size);
        else
            tn_text_add(out, "?");
    }
    if (t.rank >= 0)
        tn_text_add(out, "]");
    return TN_OK;
}

tn_status tn_onnx_print_type(tn_slice message, int depth, tn_text *out) {
    tn_wire w;
    tn_wire_field f;
    tn_slice body = {0}, inner = {0};
    uint64_t key = 0;
    uint32_t which = 0;
    if (depth > TN_MAX_NESTING)
        return TN_OK;
    tn_wire_init(&w, message.data, message.size);
    while (tn_wire_next(&w, &f))
        if ((f.key & 7) == TN_WIRE_BYTES && f.key >> 3 != 6) {
            which = f.key >> 3;
            body = tn_wire_slice(&f);
        }
    TN_TRY(w.status);
    if (which == 1)
        return print_tensor_type(body, out);
    if (which != 4 && which != 5 && which != 8 && which != 9)
        return TN_OK;
    if (which != 8)
        TN_TRY(inner_type(body, which == 5 ? 2 : 1, &inner, &key));
    if (which == 5 && (key == 0 || key >= TN_DTYPE_COUNT))
        return TN_OK;
    size_t start = out->len;
    if (which == 5)
        tn_text_printf(out, "map(%s,", tn_dtype_name((tn_dtype)key));
    else
        tn_text_add(out, which == 4 ? "seq(" : which == 8 ? TN_SPARSE_TYPE : "optional(");
    size_t before = out->len;
    if (which == 8)
        TN_TRY(print_tensor_type(body, out));
    else if (inner.data)
        TN_TRY(tn_onnx_print_type(inner, depth + 1, out));
    if (out->len == before && !out->failed) { /* nothing is said about the elements */
        out->len = start;
        out->data[start] = 0;
    } else {
        tn_text_add(out, ")");
    }
    return TN_OK;
}

tn_status tn_onnx_declare(tn_onnx_reader *r, uint32_t name, tn_slice type, bool sparse_only) {
    tn_text key, text;
    tn_text_init(&key, r->heap);
    tn_text_init(&text, r->heap);
    tn_status status = tn_onnx_print_type(type, 0, &text);
    bool noted = text.len && (!sparse_only || strstr(text.data, TN_SPARSE_TYPE));
    if (status == TN_OK && text.failed)
        status = tn_error_status();
    if (status == TN_OK && noted) {
        tn_text_printf(&key, TN_META_TYPE "%s", tn_onnx_text(r, name));
        if (key.failed)
            status = tn_error_status();
    }
    if (status == TN_OK && noted) {
        /* not tn_graph_set_metadata: it looks for the key in a list, and there may be many */
        tn_graph *g = r->graph;
        uint32_t k = tn_strings_add(&g->strings, key.data, key.len),
                 v = tn_strings_add(&g->strings, text.data, text.len);
        uint64_t at;
        if (k == UINT32_MAX || v == UINT32_MAX)
            status = tn_error_status();
        else if (tn_map_get(&r->declared, k, &at))
            g->metadata.data[at].value = v;
        else if (!tn_map_put(r->heap, &r->declared, k, g->metadata.len) ||
                 !tn_vec_push(r->heap, &g->metadata, ((tn_metadata){k, v})))
            status = tn_error_status();
    }
    tn_text_free(&key);
    tn_text_free(&text);
    return status;
}
