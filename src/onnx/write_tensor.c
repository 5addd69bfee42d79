/* TensorProto, inside the model or in its data file, and SparseTensorProto. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "onnx/tensor_proto.h"
#include "onnx/writer.h"

enum { ALIGN_SMALL = 64, ALIGN_LARGE = 4096, LARGE = 65536 };

static void put_entry(tn_wire_out *tensor, const char *key, const char *value) {
    tn_wire_out entry;
    tn_wire_out_init(&entry, tensor->text.heap);
    tn_wire_out_text(&entry, 1, key);
    tn_wire_out_text(&entry, 2, value);
    tn_wire_out_message(tensor, 13, &entry);
}

/* Gives the tensor's bytes a place in the data file; tensors that share bytes share the place. */
static tn_status place(tn_onnx_writer *w, const tn_tensor *t, uint64_t *offset) {
    uint64_t at, bytes = tn_tensor_bytes(t), align = bytes < LARGE ? ALIGN_SMALL : ALIGN_LARGE;
    if (tn_map_get(&w->placed, (uintptr_t)t->data, &at) && tn_tensor_bytes(w->outside.data[at].tensor) == bytes) {
        *offset = w->outside.data[at].offset;
        return TN_OK;
    }
    *offset = (w->data_size + align - 1) / align * align;
    if (!tn_map_put(w->heap, &w->placed, (uintptr_t)t->data, w->outside.len) ||
        !tn_vec_push(w->heap, &w->outside, ((tn_onnx_outside){t, *offset})))
        return tn_error_status();
    w->data_size = *offset + bytes;
    return TN_OK;
}

static tn_status put_outside(tn_onnx_writer *w, const tn_tensor *t, tn_wire_out *message) {
    uint64_t offset;
    char number[24];
    TN_TRY(place(w, t, &offset));
    put_entry(message, "location", w->data_name);
    snprintf(number, sizeof number, "%" PRIu64, offset);
    put_entry(message, "offset", number);
    snprintf(number, sizeof number, "%zu", tn_tensor_bytes(t));
    put_entry(message, "length", number);
    tn_wire_out_number(message, 14, 1);
    return TN_OK;
}

static tn_status put_strings(const tn_tensor *t, tn_wire_out *message) {
    for (int64_t i = 0; i < t->count; i++) {
        tn_string s;
        TN_TRY(tn_tensor_get_string(t, i, &s));
        tn_wire_out_bytes(message, 6, s.data, s.length);
    }
    return TN_OK;
}

/* `tensor`, or a contiguous copy that lives as long as the writer. */
static tn_tensor *whole(tn_onnx_writer *w, tn_tensor *tensor) {
    if (tensor->contiguous)
        return tensor;
    tn_tensor *copy = tn_tensor_contiguous(w->heap, tensor);
    if (copy && !tn_vec_push(w->heap, &w->owned, copy)) {
        tn_tensor_destroy(copy);
        return NULL;
    }
    return copy;
}

tn_status tn_onnx_write_constant(tn_onnx_writer *w, tn_tensor *tensor, const char *name, bool outside, uint32_t field,
                                 tn_wire_out *out) {
    tn_wire_out message;
    tn_tensor *t = whole(w, tensor);
    if (!t)
        return tn_error_status();
    tn_wire_out_init(&message, w->heap);
    tn_wire_out_i64s(&message, 1, t->rank, t->dims);
    tn_wire_out_number(&message, 2, t->dtype);
    if (name && *name)
        tn_wire_out_text(&message, 8, name);
    tn_status status = TN_OK;
    if (t->dtype == TN_STRING)
        status = put_strings(t, &message);
    else if (outside && w->data_name && tn_tensor_bytes(t) >= TN_ONNX_OUTSIDE_LEAST)
        status = put_outside(w, t, &message);
    else
        tn_wire_out_tensor(&message, 9, t);
    tn_wire_out_message(out, field, &message);
    return status;
}

/* `element`: bytes of one; 0: strings, packed numbers. */
static bool is_set(const tn_tensor *t, int64_t i, size_t element) {
    static const uint8_t zero[16];
    tn_string s;
    if (t->dtype == TN_STRING)
        return tn_tensor_get_string(t, i, &s) == TN_OK && s.length;
    if (!element) {
        double value = tn_load_f64((tn_dtype)t->dtype, t->data, i);
        return value != 0 || signbit(value);
    }
    return memcmp((const char *)t->data + (size_t)i * element, zero, element) != 0;
}

tn_status tn_onnx_write_sparse(tn_onnx_writer *w, tn_tensor *tensor, const char *name, uint32_t field,
                               tn_wire_out *out) {
    tn_dtype dtype = (tn_dtype)tensor->dtype;
    size_t element = (size_t)tn_dtype_bits(dtype) / 8;
    tn_tensor *t = whole(w, tensor);
    if (!t)
        return tn_error_status();
    int64_t count = 0, at = 0;
    for (int64_t i = 0; i < t->count; i++)
        count += is_set(t, i, element);
    tn_tensor *values = tn_tensor_create_in(w->heap, dtype, 1, &count),
              *indices = tn_tensor_new(w->heap, TN_I64, 1, &count);
    tn_wire_out message;
    tn_wire_out_init(&message, w->heap);
    tn_status status = values && indices ? TN_OK : tn_error_status();
    for (int64_t i = 0; i < t->count && status == TN_OK; i++)
        if (is_set(t, i, element)) {
            status = tn_onnx_copy_element(values, at, t, i);
            ((int64_t *)indices->data)[at++] = i;
        }
    tn_tensor *made[] = {values, indices};
    for (int i = 0; i < 2; i++)
        if (made[i] && !tn_vec_push(w->heap, &w->owned, made[i])) {
            tn_tensor_destroy(made[i]);
            status = tn_error_status();
        }
    if (status == TN_OK)
        status = tn_onnx_write_constant(w, values, name, false, 1, &message);
    if (status == TN_OK)
        status = tn_onnx_write_constant(w, indices, NULL, false, 2, &message);
    tn_wire_out_i64s(&message, 3, t->rank, t->dims);
    tn_wire_out_message(out, field, &message);
    return status;
}
