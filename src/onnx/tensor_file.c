/* Reading and writing of data files: tensors, sequences, optionals, maps. */
#include "onnx/tensor_file.h"

#include <inttypes.h>

#include "onnx/tensor_proto.h"

typedef struct reader {
    tn_onnx_source source;
    int depth;
} reader;

typedef TN_VEC(tn_object *) object_vec;

static tn_object *read_any(reader *r, tn_slice s, tn_kind kind, bool sparse);

static void release(reader *r, object_vec *items) {
    for (uint32_t i = 0; i < items->len; i++)
        tn_object_destroy(items->data[i]);
    tn_vec_free(r->source.heap, items);
}

static tn_status push(reader *r, object_vec *items, tn_slice s, tn_kind kind, bool sparse) {
    tn_object *item = read_any(r, s, kind, sparse);
    if (!item)
        return tn_error_status();
    if (!tn_vec_push(r->source.heap, items, item)) {
        tn_object_destroy(item);
        return tn_error_status();
    }
    return TN_OK;
}

/* SequenceProto.DataType to a kind; -1: undefined, -2: one that is not read. */
static int element_kind(uint64_t type) {
    static const int kinds[] = {-1,          TN_KIND_TENSOR,  TN_KIND_TENSOR, TN_KIND_SEQUENCE,
                                TN_KIND_MAP, TN_KIND_OPTIONAL}; /* the second tensor is sparse */
    return type < sizeof kinds / sizeof *kinds ? kinds[type] : -2;
}

static tn_object *read_sequence(reader *r, tn_slice s) {
    static const tn_kind kind_of[] = {TN_KIND_TENSOR, TN_KIND_TENSOR, TN_KIND_SEQUENCE, TN_KIND_MAP, TN_KIND_OPTIONAL};
    object_vec items = {0};
    uint64_t type = 0;
    tn_status status = TN_OK;
    tn_wire w;
    tn_wire_field f;
    tn_wire_init(&w, s.data, s.size);
    while (status == TN_OK && tn_wire_next(&w, &f))
        switch (f.key) {
        case TN_WIRE_KEY(2, TN_WIRE_VARINT): type = f.value; break;
        case TN_WIRE_KEY(3, TN_WIRE_BYTES):
        case TN_WIRE_KEY(4, TN_WIRE_BYTES):
        case TN_WIRE_KEY(5, TN_WIRE_BYTES):
        case TN_WIRE_KEY(6, TN_WIRE_BYTES):
        case TN_WIRE_KEY(7, TN_WIRE_BYTES): {
            tn_kind kind = kind_of[(f.key >> 3) - 3];
            if (items.len && tn_object_kind(items.data[0]) != kind)
                status = tn_fail(TN_ERR_MODEL, "a sequence of elements of different kinds");
            else
                status = push(r, &items, tn_wire_slice(&f), kind, f.key >> 3 == 4);
            break;
        }
        default: break;
        }
    if (status == TN_OK)
        status = w.status;
    if (status == TN_OK && items.len && element_kind(type) >= 0 &&
        element_kind(type) != (int)tn_object_kind(items.data[0]))
        status = tn_fail(TN_ERR_MODEL, "a sequence whose elements are not of its element type");
    tn_object *sequence = status == TN_OK ? tn_sequence_create(r->source.heap, items.len, items.data) : NULL;
    release(r, &items);
    return sequence;
}

static tn_object *read_optional(reader *r, tn_slice s) {
    tn_slice value = {0};
    int kind = -1;
    bool sparse = false;
    tn_wire w;
    tn_wire_field f;
    tn_wire_init(&w, s.data, s.size);
    while (tn_wire_next(&w, &f))
        switch (f.key) {
        case TN_WIRE_KEY(3, TN_WIRE_BYTES):
        case TN_WIRE_KEY(4, TN_WIRE_BYTES):
            value = tn_wire_slice(&f), kind = TN_KIND_TENSOR, sparse = f.key >> 3 == 4;
            break;
        case TN_WIRE_KEY(5, TN_WIRE_BYTES): value = tn_wire_slice(&f), kind = TN_KIND_SEQUENCE; break;
        case TN_WIRE_KEY(6, TN_WIRE_BYTES): value = tn_wire_slice(&f), kind = TN_KIND_MAP; break;
        case TN_WIRE_KEY(7, TN_WIRE_BYTES): value = tn_wire_slice(&f), kind = TN_KIND_OPTIONAL; break;
        default: break;
        }
    if (w.status != TN_OK)
        return NULL;
    tn_object *inner = NULL;
    if (kind >= 0 && !(inner = read_any(r, value, (tn_kind)kind, sparse)))
        return NULL;
    tn_object *optional = tn_optional_create(r->source.heap, inner);
    tn_object_destroy(inner);
    return optional;
}

static tn_object *read_map(reader *r, tn_slice s) {
    tn_slice values = {0};
    tn_i64_vec keys = {0};
    TN_VEC(tn_slice) strings = {0};
    uint64_t type = 0;
    tn_tensor *key_tensor = NULL;
    tn_object *sequence = NULL, *map = NULL;
    tn_wire w;
    tn_wire_field f;
    tn_wire_init(&w, s.data, s.size);
    while (tn_wire_next(&w, &f))
        switch (f.key) {
        case TN_WIRE_KEY(2, TN_WIRE_VARINT): type = f.value; break;
        case TN_WIRE_KEY(3, TN_WIRE_VARINT):
        case TN_WIRE_KEY(3, TN_WIRE_BYTES):
            if (tn_wire_push_i64(r->source.heap, &keys, &f) != TN_OK)
                goto done;
            break;
        case TN_WIRE_KEY(4, TN_WIRE_BYTES):
            if (!tn_vec_push(r->source.heap, &strings, tn_wire_slice(&f)))
                goto done;
            break;
        case TN_WIRE_KEY(5, TN_WIRE_BYTES): values = tn_wire_slice(&f); break;
        default: break;
        }
    if (w.status != TN_OK)
        goto done;
    tn_dtype dtype = type < TN_DTYPE_COUNT ? (tn_dtype)type : TN_DTYPE_NONE;
    if (dtype != TN_STRING && !(tn_dtype_is_int(dtype) && !tn_dtype_is_subbyte(dtype))) {
        tn_fail(TN_ERR_MODEL, "a map's keys must be integers or strings, not element type %" PRIu64, type);
        goto done;
    }
    int64_t count = dtype == TN_STRING ? strings.len : keys.len;
    if (!(key_tensor = tn_tensor_create_in(r->source.heap, dtype, 1, &count)))
        goto done;
    for (int64_t i = 0; i < count; i++)
        if (dtype != TN_STRING)
            tn_store_i64(dtype, key_tensor->data, i, keys.data[i]);
        else if (tn_tensor_set_string(key_tensor, i, (const char *)strings.data[i].data, strings.data[i].size) != TN_OK)
            goto done;
    if (!(sequence = read_any(r, values, TN_KIND_SEQUENCE, false)))
        goto done;
    if (tn_sequence_length(sequence) != (size_t)count)
        tn_fail(TN_ERR_MODEL, "a map of %" PRId64 " keys and %zu values", count, tn_sequence_length(sequence));
    else
        map = tn_map_create(r->source.heap, key_tensor, sequence);
done:
    tn_object_destroy(sequence);
    tn_tensor_destroy(key_tensor);
    tn_vec_free(r->source.heap, &keys);
    tn_vec_free(r->source.heap, &strings);
    return map;
}

/* Whether a message is a SparseTensorProto: its second field is the tensor of indices (which may lack where there are no values, but then
   there are dimensions in the third), a TensorProto's is a number, its element type, without which it is none. */
static bool is_sparse(tn_slice s) {
    bool dense = false, sparse = false;
    tn_wire w;
    tn_wire_field f;
    tn_wire_init(&w, s.data, s.size);
    while (tn_wire_next(&w, &f)) {
        dense = dense || f.key == TN_WIRE_KEY(2, TN_WIRE_VARINT);
        sparse = sparse || f.key == TN_WIRE_KEY(2, TN_WIRE_BYTES) || f.key >> 3 == 3;
    }
    return sparse && !dense;
}

static tn_object *read_any(reader *r, tn_slice s, tn_kind kind, bool sparse) {
    if (r->depth == TN_MAX_NESTING) {
        tn_fail(TN_ERR_LIMIT, "values are nested deeper than %d", TN_MAX_NESTING);
        return NULL;
    }
    r->depth++;
    tn_object *object = NULL;
    switch (kind) {
    case TN_KIND_TENSOR: {
        tn_tensor *t = sparse ? tn_onnx_decode_sparse(&r->source, s, NULL) : tn_onnx_decode_tensor(&r->source, s, NULL);
        object = t ? tn_tensor_object(t) : NULL;
        break;
    }
    case TN_KIND_SEQUENCE: object = read_sequence(r, s); break;
    case TN_KIND_OPTIONAL: object = read_optional(r, s); break;
    case TN_KIND_MAP: object = read_map(r, s); break;
    }
    r->depth--;
    return object;
}

tn_object *tn_onnx_read_object(tn_heap *heap, const void *bytes, size_t size, tn_mapping *mapping, tn_kind kind) {
    reader r = {.source = {.heap = heap, .mapping = mapping}};
    tn_slice s = {bytes, size};
    return read_any(&r, s, kind, kind == TN_KIND_TENSOR && is_sparse(s));
}

tn_object *tn_onnx_read_object_file(tn_heap *heap, const char *path, tn_kind kind) {
    tn_mapping *mapping = tn_mapping_open(heap, path);
    if (!mapping)
        return NULL;
    tn_object *object = tn_onnx_read_object(heap, tn_mapping_data(mapping), tn_mapping_size(mapping), mapping, kind);
    if (!object)
        tn_fail_where("file %s", path);
    tn_mapping_release(mapping);
    return object;
}

/* --- writing ------------------------------------------------------------------------------------------------------------------ */

static void put_raw_varint(tn_text *out, uint64_t value) {
    char bytes[10];
    size_t n = 0;
    do {
        bytes[n++] = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
    tn_text_bytes(out, bytes, n);
}

void tn_wire_put_varint(tn_text *out, uint32_t field, uint64_t value) {
    put_raw_varint(out, TN_WIRE_KEY(field, TN_WIRE_VARINT));
    put_raw_varint(out, value);
}

void tn_wire_put_bytes(tn_text *out, uint32_t field, const void *bytes, size_t size) {
    put_raw_varint(out, TN_WIRE_KEY(field, TN_WIRE_BYTES));
    put_raw_varint(out, size);
    tn_text_bytes(out, bytes, size);
}

static tn_status finish(const tn_text *out) {
    return out->failed ? tn_error_status() : TN_OK;
}

tn_status tn_onnx_write_tensor(tn_text *out, const tn_tensor *tensor, const char *name) {
    for (int i = 0; i < tensor->rank; i++)
        tn_wire_put_varint(out, 1, (uint64_t)tensor->dims[i]);
    tn_wire_put_varint(out, 2, tensor->dtype);
    if (name && *name)
        tn_wire_put_bytes(out, 8, name, strlen(name));
    if (tensor->dtype == TN_STRING) {
        for (int64_t i = 0; i < tensor->count; i++) {
            tn_string s;
            TN_TRY(tn_tensor_get_string(tensor, i, &s));
            tn_wire_put_bytes(out, 6, s.data, s.length);
        }
        return finish(out);
    }
    tn_tensor *whole = tensor->contiguous ? NULL : tn_tensor_copy(tensor);
    if (!whole && !tensor->contiguous)
        return tn_error_status();
    tn_wire_put_bytes(out, 9, whole ? whole->data : tensor->data, tn_tensor_bytes(tensor));
    tn_tensor_destroy(whole);
    return finish(out);
}

/* A message as a field of another. */
static tn_status put_message(tn_text *out, uint32_t field, const tn_object *object, const char *name) {
    tn_text inner;
    tn_text_init(&inner, out->heap);
    tn_status status = tn_onnx_write_object(&inner, object, name);
    if (status == TN_OK)
        tn_wire_put_bytes(out, field, inner.data, inner.len);
    tn_text_free(&inner);
    return status == TN_OK ? finish(out) : status;
}

/* SequenceProto.DataType, and the field of such an element in a SequenceProto, by kind. */
static const uint8_t wire_type_of[] = {
    [TN_KIND_TENSOR] = 1, [TN_KIND_SEQUENCE] = 3, [TN_KIND_MAP] = 4, [TN_KIND_OPTIONAL] = 5};
static const uint8_t field_of[] = {
    [TN_KIND_TENSOR] = 3, [TN_KIND_SEQUENCE] = 5, [TN_KIND_MAP] = 6, [TN_KIND_OPTIONAL] = 7};

static tn_status write_sequence(tn_text *out, const tn_object *s, const char *name) {
    size_t n = tn_sequence_length(s);
    if (name && *name)
        tn_wire_put_bytes(out, 1, name, strlen(name));
    tn_wire_put_varint(out, 2, n ? wire_type_of[tn_object_kind(tn_sequence_at(s, 0))] : 1);
    for (size_t i = 0; i < n; i++) {
        const tn_object *item = tn_sequence_at(s, i);
        TN_TRY(put_message(out, field_of[tn_object_kind(item)], item, NULL));
    }
    return finish(out);
}

/* A map's values as a SequenceProto: rows of a tensor become scalars. */
static tn_status write_map(tn_text *out, const tn_object *map, const char *name) {
    const tn_tensor *keys = tn_map_keys(map);
    tn_object *values = tn_map_values(map);
    if (name && *name)
        tn_wire_put_bytes(out, 1, name, strlen(name));
    tn_wire_put_varint(out, 2, keys->dtype);
    for (int64_t i = 0; i < keys->count; i++)
        if (keys->dtype == TN_STRING) {
            tn_string s;
            TN_TRY(tn_tensor_get_string(keys, i, &s));
            tn_wire_put_bytes(out, 4, s.data, s.length);
        } else {
            tn_wire_put_varint(out, 3, (uint64_t)tn_tensor_get_i64(keys, i));
        }
    if (tn_object_kind(values) == TN_KIND_SEQUENCE)
        return put_message(out, 5, values, NULL);
    tn_tensor *t = tn_object_tensor(values), *whole = tn_tensor_copy(t);
    if (!whole)
        return tn_error_status();
    tn_text inner;
    tn_text_init(&inner, out->heap);
    tn_wire_put_varint(&inner, 2, 1);
    tn_status status = finish(&inner);
    for (int64_t i = 0; status == TN_OK && i < keys->count; i++) {
        int64_t count = whole->count / (whole->dims[0] ? whole->dims[0] : 1);
        tn_tensor *row = tn_tensor_view(out->heap, whole, (tn_dtype)whole->dtype, whole->rank - 1, whole->dims + 1,
                                        whole->strides + 1, i * count);
        status = row ? put_message(&inner, 3, tn_tensor_object(row), NULL) : tn_error_status();
        tn_tensor_destroy(row);
    }
    if (status == TN_OK)
        tn_wire_put_bytes(out, 5, inner.data, inner.len);
    tn_text_free(&inner);
    tn_tensor_destroy(whole);
    return status == TN_OK ? finish(out) : status;
}

tn_status tn_onnx_write_object(tn_text *out, const tn_object *object, const char *name) {
    switch (tn_object_kind(object)) {
    case TN_KIND_TENSOR: return tn_onnx_write_tensor(out, (const tn_tensor *)object, name);
    case TN_KIND_SEQUENCE: return write_sequence(out, object, name);
    case TN_KIND_MAP: return write_map(out, object, name);
    case TN_KIND_OPTIONAL: break;
    }
    const tn_object *inner = tn_optional_get(object);
    if (name && *name)
        tn_wire_put_bytes(out, 1, name, strlen(name));
    tn_wire_put_varint(out, 2, inner ? wire_type_of[tn_object_kind(inner)] : 0);
    return inner ? put_message(out, field_of[tn_object_kind(inner)], inner, NULL) : finish(out);
}
