/* Data files of the ONNX test layout: one TensorProto, SparseTensorProto, SequenceProto, OptionalProto or MapProto a file. */
#ifndef TN_ONNX_TENSOR_FILE_H
#define TN_ONNX_TENSOR_FILE_H

#include "base/buffer.h"
#include "ir/tensor.h"

/* The object of a message of the given kind (of a sequence or optional, too: what the graph's type says); a sparse tensor becomes the
   dense one it stands for. `mapping`: that the
   bytes lie in, which the object then keeps; NULL: data is copied. NULL with the error set. */
tn_object *tn_onnx_read_object(tn_heap *heap, const void *bytes, size_t size, tn_mapping *mapping, tn_kind kind);
/* The same of a file, mapped. `where` names it. */
tn_object *tn_onnx_read_object_file(tn_heap *heap, const char *path, tn_kind kind);

/* Appends the message of a tensor (raw data; strings as string_data), or of any object; `name` may be NULL. */
tn_status tn_onnx_write_tensor(tn_text *out, const tn_tensor *tensor, const char *name);
tn_status tn_onnx_write_object(tn_text *out, const tn_object *object, const char *name);

/* Wire writing: a varint field, a bytes field. */
void tn_wire_put_varint(tn_text *out, uint32_t field, uint64_t value);
void tn_wire_put_bytes(tn_text *out, uint32_t field, const void *bytes, size_t size);

#endif
