/* Tensors and objects from the inside: layout, element access that never assumes alignment, dtype conversion. */
#ifndef TN_IR_TENSOR_H
#define TN_IR_TENSOR_H

#include <string.h>
#include <tenon/tensor.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/os.h"

/* Common head of all objects; first member of each. */
struct tn_object {
    _Atomic int32_t refs;
    uint8_t kind; /* tn_kind */
    tn_heap *heap;
};

/* Where a tensor's bytes live; shared by views. */
typedef struct tn_storage {
    _Atomic int32_t refs;
    tn_heap *heap;
    void *data; /* owned block, or bytes inside `mapping` */
    size_t bytes;
    tn_mapping *mapping; /* retained, or NULL */
    bool owned;          /* data is freed with the storage */
    bool strings;        /* data is an array of tn_string whose texts are heap blocks owned by the storage */
} tn_storage;

struct tn_tensor {
    tn_object object;
    uint8_t dtype;
    uint8_t rank;
    bool contiguous;
    tn_storage *storage; /* NULL for memory borrowed from a user */
    void *data;          /* element (0,...,0); may be unaligned */
    size_t room;         /* bytes at `data` that it may grow into; 0: its shape is fixed */
    int64_t count;
    int64_t dims[TN_MAX_RANK];
    int64_t strides[TN_MAX_RANK]; /* in elements */
};

/* A tensor over bytes inside a mapping (retained), or, with NULL, over bytes that outlive it. Contiguous. */
tn_tensor *tn_tensor_mapped(tn_heap *heap, tn_dtype dtype, int rank, const int64_t *dims, tn_mapping *mapping,
                            const void *data);
/* Uninitialised contiguous tensor, 64-byte aligned (strings are zeroed). */
tn_tensor *tn_tensor_new(tn_heap *heap, tn_dtype dtype, int rank, const int64_t *dims);
/* tn_tensor_wrap_strided with the tensor itself on a heap. */
tn_tensor *tn_tensor_wrap_in(tn_heap *heap, tn_dtype dtype, int rank, const int64_t *dims, const int64_t *strides,
                             void *data);
/* Whether a result of this type can be written into a tensor: it has that shape, or has room for it and now has it. */
bool tn_tensor_accept(tn_tensor *tensor, tn_dtype dtype, int rank, const int64_t *dims);
/* The bytes that a tensor's elements may lie in: [*low, *high); with room, all of it. Empty: equal. */
void tn_tensor_span(const tn_tensor *tensor, uintptr_t *low, uintptr_t *high);
/* A contiguous copy on a heap. */
tn_tensor *tn_tensor_copy_in(tn_heap *heap, const tn_tensor *tensor);
/* What of an object lies on heap `from`, copied to heap `to` with all inside; other objects are retained. */
tn_object *tn_object_move(tn_object *object, const tn_heap *from, tn_heap *to);
/* A view of `base` (its storage is retained; a borrowed base must outlive it): any dims and strides, `offset` in elements
   from base's first element. The caller guarantees that it stays inside. Not for sub-byte dtypes unless contiguous at offset 0. */
tn_tensor *tn_tensor_view(tn_heap *heap, const tn_tensor *base, tn_dtype dtype, int rank, const int64_t *dims,
                          const int64_t *strides, int64_t offset);
/* `tensor` itself (retained) when contiguous, or a contiguous copy. */
tn_tensor *tn_tensor_contiguous(tn_heap *heap, tn_tensor *tensor);
/* Copies elements, any strides on both sides; dtypes and dims equal. */
tn_status tn_tensor_assign(tn_tensor *to, const tn_tensor *from);
/* Product of dims, checked; TN_ERR_LIMIT on overflow or negative. */
tn_status tn_dims_count(int rank, const int64_t *dims, int64_t *count);
/* Bytes of `count` packed elements, checked. */
tn_status tn_dtype_bytes(tn_dtype dtype, int64_t count, size_t *bytes);
/* "f32[2,3]" into a fixed buffer, cut with "..." when long. Returns text. */
const char *tn_tensor_describe(const tn_tensor *tensor, char *text, size_t size);
/* Equality of contents: same kind, dtype, dims, and bits; sequences item by item. */
bool tn_object_equal(const tn_object *a, const tn_object *b);

/* dtype traits */
bool tn_dtype_is_float(tn_dtype dtype);  /* f64 f32 f16 bf16 f8* f4 */
bool tn_dtype_is_int(tn_dtype dtype);    /* signed or unsigned integer, sub-byte included, not bool */
bool tn_dtype_is_signed(tn_dtype dtype); /* signed integer */
bool tn_dtype_is_complex(tn_dtype dtype);
bool tn_dtype_is_subbyte(tn_dtype dtype); /* fewer than 8 bits */
/* Inclusive range of an integer dtype. */
int64_t tn_dtype_min_i64(tn_dtype dtype);
uint64_t tn_dtype_max_u64(tn_dtype dtype);

/* Conversions of the narrow floats, round to nearest even; the widening ones are exact. */
float tn_f16_to_f32(uint16_t bits);
uint16_t tn_f32_to_f16(float value);
uint16_t tn_f64_to_f16(double value); /* one rounding, not two */
float tn_bf16_to_f32(uint16_t bits);
uint16_t tn_f32_to_bf16(float value);
uint16_t tn_f64_to_bf16(double value);
/* 8- and 4-bit floats by dtype. `saturate`: out of range becomes the largest finite value, else NaN/inf as the standard says. */
float tn_f8_to_f32(tn_dtype dtype, uint8_t bits);
uint8_t tn_f32_to_f8(tn_dtype dtype, float value, bool saturate);

/* One element at element offset `index` from `data` (packed for sub-byte types), never assuming alignment.
   load_f64: any real dtype, exact except 64-bit integers. load_i64: integers and bool exact (u64 reinterpreted), floats
   truncated with saturation. store_f64 rounds to the dtype (to integers: truncates with saturation); store_i64 wraps
   (two's complement) for integers, rounds for floats; bool: != 0. */
double tn_load_f64(tn_dtype dtype, const void *data, int64_t index);
int64_t tn_load_i64(tn_dtype dtype, const void *data, int64_t index);
void tn_store_f64(tn_dtype dtype, void *data, int64_t index, double value);
void tn_store_i64(tn_dtype dtype, void *data, int64_t index, int64_t value);

/* Walks the elements of up to 8 strided operands of one shape, the innermost dimension as a row:
   row(ctx, n, pointers, strides) gets element pointers and element strides of the innermost dimension. Coalesces dimensions
   that are laid out alike. Not for sub-byte dtypes. rank 0 is one row of 1; no elements, no rows. */
typedef struct tn_walk_operand {
    void *data;
    const int64_t *strides; /* in elements */
    size_t element;         /* bytes of one element */
} tn_walk_operand;
typedef void tn_walk_row(void *ctx, int64_t n, void *const *data, const int64_t *strides);
void tn_walk(int rank, const int64_t *dims, int operands, const tn_walk_operand *operand, tn_walk_row *row, void *ctx);
/* The number of rows of that walk, and rows [begin, end) only (for splitting over threads). */
int64_t tn_walk_rows(int rank, const int64_t *dims, int operands, const tn_walk_operand *operand);
void tn_walk_range(int rank, const int64_t *dims, int operands, const tn_walk_operand *operand, int64_t begin,
                   int64_t end, tn_walk_row *row, void *ctx);

#endif
