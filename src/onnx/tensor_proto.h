/* TensorProto and SparseTensorProto to tensors: sizes are checked against the dims before anything is allocated, and data that
   lies in the file as it is in memory stays there. */
#ifndef TN_ONNX_TENSOR_PROTO_H
#define TN_ONNX_TENSOR_PROTO_H

#include "ir/tensor.h"
#include "onnx/wire.h"

/* Where the bytes come from and how many may. */
typedef struct tn_onnx_source {
    tn_heap *heap;
    tn_mapping *mapping;                 /* that the messages lie in; NULL: data is copied out of them */
    uint64_t max_bytes;                  /* of tensor data in all; 0: no limit */
    uint64_t admitted;                   /* so far */
    uint64_t sparse_stored, sparse_made; /* bytes of sparse tensors so far, and of the dense ones they stand for */
    /* External data by location (not NUL-terminated): its bytes, and the mapping they lie in (borrowed; NULL: copy).
       NULL: external data is refused. */
    tn_status (*external)(void *ctx, tn_slice location, tn_mapping **mapping, tn_slice *bytes);
    void *ctx;
} tn_onnx_source;

/* The tensor of a TensorProto; `name` (may be NULL) receives its name. NULL with the error set, `where` naming the tensor. */
tn_tensor *tn_onnx_decode_tensor(tn_onnx_source *source, tn_slice message, tn_slice *name);
/* A SparseTensorProto made dense; the indices may stand in any order. At most TN_ONNX_SPARSE_FACTOR times the bytes stored (but at least
   16 MiB are allowed), and all of a source the same (64 MiB). */
tn_tensor *tn_onnx_decode_sparse(tn_onnx_source *source, tn_slice message, tn_slice *name);
#define TN_ONNX_SPARSE_FACTOR 256
/* One element of a contiguous tensor to another of the same dtype, strings and packed ones too. */
tn_status tn_onnx_copy_element(tn_tensor *to, int64_t at, const tn_tensor *from, int64_t k);

/* A slice for messages: its text cut to 60 bytes. */
#define TN_SLICE_FMT "%.*s"
#define TN_SLICE_ARG(s) (int)((s).size < 60 ? (s).size : 60), (s).size ? (const char *)(s).data : ""

#endif
