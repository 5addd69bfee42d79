/* Writing the protobuf wire format: messages in memory, the bytes of tensors by reference.

       tn_wire_out inner, out;
       ...
       tn_wire_out_text(&inner, 1, "name");
       tn_wire_out_tensor(&inner, 9, tensor);      // its bytes are copied when the message is sent, not before
       tn_wire_out_message(&out, 5, &inner);       // frees `inner`
       TN_TRY(tn_wire_out_send(&out, writer));

   Failure is sticky, as with tn_text: tn_wire_out_send (or tn_wire_out_status) tells. */
#ifndef TN_ONNX_WIRE_WRITE_H
#define TN_ONNX_WIRE_WRITE_H

#include "base/buffer.h"
#include "base/os.h"
#include "base/vec.h"
#include "ir/tensor.h"

/* Bytes of a contiguous tensor that stand before byte `at` of the text. */
typedef struct tn_wire_blob {
    size_t at;
    const tn_tensor *tensor; /* borrowed: must live until the message is sent */
} tn_wire_blob;

typedef struct tn_wire_out {
    tn_text text;
    TN_VEC(tn_wire_blob) blobs;
    uint64_t blob_bytes;
} tn_wire_out;

void tn_wire_out_init(tn_wire_out *out, tn_heap *heap);
void tn_wire_out_free(tn_wire_out *out);
tn_status tn_wire_out_status(const tn_wire_out *out);
/* Bytes of the message. */
uint64_t tn_wire_out_size(const tn_wire_out *out);

void tn_wire_out_number(tn_wire_out *out, uint32_t field, uint64_t value);
void tn_wire_out_float(tn_wire_out *out, uint32_t field, float value);
void tn_wire_out_bytes(tn_wire_out *out, uint32_t field, const void *bytes, size_t size);
void tn_wire_out_text(tn_wire_out *out, uint32_t field, const char *text);
void tn_wire_out_tensor(tn_wire_out *out, uint32_t field, const tn_tensor *tensor);
void tn_wire_out_message(tn_wire_out *out, uint32_t field, tn_wire_out *inner);
/* Packed numbers of a list. */
void tn_wire_out_i64s(tn_wire_out *out, uint32_t field, uint32_t count, const int64_t *values);
void tn_wire_out_f32s(tn_wire_out *out, uint32_t field, uint32_t count, const float *values);
/* Fields that were kept as they stand in a file. */
void tn_wire_out_raw(tn_wire_out *out, const char *bytes, size_t size);

tn_status tn_wire_out_send(const tn_wire_out *out, tn_file_writer *writer);
/* The bytes of one tensor into a file: in pieces, long runs of zeros as holes, pages of a mapping given back. */
tn_status tn_wire_send_tensor(const tn_tensor *tensor, tn_file_writer *writer);

#endif
