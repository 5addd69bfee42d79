/* The protobuf wire writer. */
#include "onnx/wire_write.h"

#include "onnx/tensor_file.h"
#include "onnx/wire.h"

enum { PIECE = 1 << 16, FORGET = 1 << 24 };

void tn_wire_out_init(tn_wire_out *out, tn_heap *heap) {
    *out = (tn_wire_out){0};
    tn_text_init(&out->text, heap);
}

void tn_wire_out_free(tn_wire_out *out) {
    tn_vec_free(out->text.heap, &out->blobs);
    tn_text_free(&out->text);
    out->blob_bytes = 0;
}

tn_status tn_wire_out_status(const tn_wire_out *out) {
    return out->text.failed ? tn_error_status() : TN_OK;
}

uint64_t tn_wire_out_size(const tn_wire_out *out) {
    return out->text.len + out->blob_bytes;
}

static void varint(tn_wire_out *out, uint64_t value) {
    char bytes[10];
    size_t n = 0;
    do {
        bytes[n++] = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
    tn_text_bytes(&out->text, bytes, n);
}

static void fixed32(tn_wire_out *out, float value) {
    char bytes[4];
    memcpy(bytes, &value, 4);
    tn_text_bytes(&out->text, bytes, 4);
}

static void header(tn_wire_out *out, uint32_t field, tn_wire_type type) {
    varint(out, TN_WIRE_KEY(field, type));
}

void tn_wire_out_number(tn_wire_out *out, uint32_t field, uint64_t value) {
    tn_wire_put_varint(&out->text, field, value);
}

void tn_wire_out_float(tn_wire_out *out, uint32_t field, float value) {
    header(out, field, TN_WIRE_FIXED32);
    fixed32(out, value);
}

void tn_wire_out_bytes(tn_wire_out *out, uint32_t field, const void *bytes, size_t size) {
    tn_wire_put_bytes(&out->text, field, bytes, size);
}

void tn_wire_out_text(tn_wire_out *out, uint32_t field, const char *text) {
    tn_wire_put_bytes(&out->text, field, text, strlen(text));
}

static void add_blob(tn_wire_out *out, size_t at, const tn_tensor *tensor) {
    if (!out->text.failed && !tn_vec_push(out->text.heap, &out->blobs, ((tn_wire_blob){at, tensor})))
        out->text.failed = true;
    out->blob_bytes += tn_tensor_bytes(tensor);
}

void tn_wire_out_tensor(tn_wire_out *out, uint32_t field, const tn_tensor *tensor) {
    size_t size = tn_tensor_bytes(tensor);
    header(out, field, TN_WIRE_BYTES);
    varint(out, size);
    if (size <= 256)
        tn_text_bytes(&out->text, tensor->data, size);
    else
        add_blob(out, out->text.len, tensor);
}

void tn_wire_out_message(tn_wire_out *out, uint32_t field, tn_wire_out *inner) {
    header(out, field, TN_WIRE_BYTES);
    varint(out, tn_wire_out_size(inner));
    size_t base = out->text.len;
    if (inner->text.len)
        tn_text_bytes(&out->text, inner->text.data, inner->text.len);
    for (uint32_t i = 0; i < inner->blobs.len; i++)
        add_blob(out, base + inner->blobs.data[i].at, inner->blobs.data[i].tensor);
    out->text.failed = out->text.failed || inner->text.failed;
    tn_wire_out_free(inner);
}

static size_t varint_size(uint64_t value) {
    size_t n = 1;
    while (value >>= 7)
        n++;
    return n;
}

void tn_wire_out_i64s(tn_wire_out *out, uint32_t field, uint32_t count, const int64_t *values) {
    size_t size = 0;
    if (!count)
        return;
    for (uint32_t i = 0; i < count; i++)
        size += varint_size((uint64_t)values[i]);
    header(out, field, TN_WIRE_BYTES);
    varint(out, size);
    for (uint32_t i = 0; i < count; i++)
        varint(out, (uint64_t)values[i]);
}

void tn_wire_out_f32s(tn_wire_out *out, uint32_t field, uint32_t count, const float *values) {
    if (!count)
        return;
    header(out, field, TN_WIRE_BYTES);
    varint(out, (uint64_t)count * 4);
    tn_text_bytes(&out->text, (const char *)values, (size_t)count * 4);
}

void tn_wire_out_raw(tn_wire_out *out, const char *bytes, size_t size) {
    if (size)
        tn_text_bytes(&out->text, bytes, size);
}

/* --- into a file ---------------------------------------------------------------------------------------------------------------- */

static bool is_zero(const uint8_t *bytes, size_t size) {
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

tn_status tn_wire_send_tensor(const tn_tensor *tensor, tn_file_writer *writer) {
    const uint8_t *bytes = tensor->data;
    size_t size = tn_tensor_bytes(tensor), kept = 0;
    tn_mapping *mapping = tensor->storage ? tensor->storage->mapping : NULL;
    for (size_t at = 0; at < size;) {
        size_t piece = size - at < PIECE ? size - at : PIECE;
        if (piece == PIECE && is_zero(bytes + at, piece))
            TN_TRY(tn_file_writer_zeros(writer, piece));
        else
            TN_TRY(tn_file_writer_write(writer, bytes + at, piece));
        at += piece;
        if (mapping && (at - kept >= FORGET || at == size)) {
            tn_mapping_forget(mapping, bytes + kept, at - kept);
            kept = at;
        }
    }
    return TN_OK;
}

tn_status tn_wire_out_send(const tn_wire_out *out, tn_file_writer *writer) {
    TN_TRY(tn_wire_out_status(out));
    size_t at = 0;
    for (uint32_t i = 0; i < out->blobs.len; i++) {
        const tn_wire_blob *blob = &out->blobs.data[i];
        if (blob->at > at)
            TN_TRY(tn_file_writer_write(writer, out->text.data + at, blob->at - at));
        at = blob->at;
        TN_TRY(tn_wire_send_tensor(blob->tensor, writer));
    }
    return out->text.len > at ? tn_file_writer_write(writer, out->text.data + at, out->text.len - at) : TN_OK;
}
