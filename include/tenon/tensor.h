/* Data at run time: tensors (dtype, dims, int64 element strides of any sign), sequences, optionals, maps.
   All are reference-counted objects; counts are atomic, contents are not synchronised. */
#ifndef TENON_TENSOR_H
#define TENON_TENSOR_H

#include <tenon/memory.h>
#include <tenon/types.h>

TN_BEGIN_DECLS

typedef struct tn_tensor tn_tensor;
/* Any of tensor, sequence, optional, map. A tensor converts both ways with the two functions below. */
typedef struct tn_object tn_object;

/* A string element. `data` need not be NUL-terminated and may hold NULs. */
typedef struct tn_string {
    const char *data;
    size_t length;
} tn_string;

/* A new contiguous tensor with zeroed data (strings empty) of its own. rank 0 is a scalar; dims may be 0.
   NULL with TN_ERR_USAGE (negative dim), TN_ERR_LIMIT (rank, size overflow), TN_ERR_MEMORY. Destroy it. */
TN_API tn_tensor *tn_tensor_create(tn_dtype dtype, int rank, const int64_t *dims);
TN_API tn_tensor *tn_tensor_create_in(tn_heap *heap, tn_dtype dtype, int rank, const int64_t *dims);
/* A tensor over memory of the caller's, contiguous (or with `strides` in elements; not for sub-byte types). Borrowed: it
   must outlive the tensor and everything made from it. `data` may be unaligned. */
TN_API tn_tensor *tn_tensor_wrap(tn_dtype dtype, int rank, const int64_t *dims, void *data);
TN_API tn_tensor *tn_tensor_wrap_strided(tn_dtype dtype, int rank, const int64_t *dims, const int64_t *strides,
                                         void *data);
/* A tensor of no elements yet over `bytes` bytes of the caller's, for the output of a run: it takes the shape of the result when that
   fits, else the run fails and nothing is written. Borrowed as above; `data` is aligned to an element. Not for strings. */
TN_API tn_tensor *tn_tensor_wrap_room(tn_dtype dtype, void *data, size_t bytes);
/* A 1-D i64 / scalar tensor with a copy of the values: short forms for tests and small inputs. */
TN_API tn_tensor *tn_tensor_from_i64(int64_t count, const int64_t *values);
TN_API tn_tensor *tn_tensor_from_f32(int rank, const int64_t *dims, const float *values);
/* One more owner; answers its argument. */
TN_API tn_tensor *tn_tensor_retain(tn_tensor *tensor);
/* One owner less; frees with the last. NULL is fine. */
TN_API void tn_tensor_destroy(tn_tensor *tensor);

TN_API tn_dtype tn_tensor_dtype(const tn_tensor *tensor);
TN_API int tn_tensor_rank(const tn_tensor *tensor);
TN_API const int64_t *tn_tensor_dims(const tn_tensor *tensor);
TN_API const int64_t *tn_tensor_strides(const tn_tensor *tensor);
TN_API int64_t tn_tensor_count(const tn_tensor *tensor); /* number of elements */
TN_API void *tn_tensor_data(const tn_tensor *tensor);    /* first element (index 0,...,0) */
TN_API size_t tn_tensor_bytes(const tn_tensor *tensor);  /* of the elements, packed: what a contiguous copy takes */
TN_API bool tn_tensor_is_contiguous(const tn_tensor *tensor);

/* Bytes from the lowest to the highest byte that a strided view touches (strides NULL: contiguous), overflow-checked:
   [4,3] of f32 with strides (6,1) is (3*6 + 2 + 1) * 4 = 84. 0 elements touch 0 bytes. */
TN_API tn_status tn_tensor_extent(tn_dtype dtype, int rank, const int64_t *dims, const int64_t *strides, size_t *bytes);

/* Elements by linear (row-major) index, converted; for inspection, not for speed. Strings: index out of range or another
   dtype is TN_ERR_USAGE. Setting a string copies it into the tensor. */
TN_API double tn_tensor_get_f64(const tn_tensor *tensor, int64_t index);
TN_API int64_t tn_tensor_get_i64(const tn_tensor *tensor, int64_t index);
TN_API tn_status tn_tensor_set_f64(tn_tensor *tensor, int64_t index, double value);
TN_API tn_status tn_tensor_get_string(const tn_tensor *tensor, int64_t index, tn_string *out);
TN_API tn_status tn_tensor_set_string(tn_tensor *tensor, int64_t index, const char *data, size_t length);
/* A contiguous copy with data of its own. */
TN_API tn_tensor *tn_tensor_copy(const tn_tensor *tensor);

/* Objects. */
TN_API tn_kind tn_object_kind(const tn_object *object);
TN_API tn_object *tn_object_retain(tn_object *object);
TN_API void tn_object_destroy(tn_object *object);
TN_API tn_object *tn_tensor_object(tn_tensor *tensor); /* the same object, no new reference */
TN_API tn_tensor *tn_object_tensor(tn_object *object); /* NULL when it is not a tensor; no new reference */
/* A sequence of objects (each retained). An optional that holds `object` or nothing (NULL). A map from keys (1-D tensor,
   integers or strings) to values: a tensor of as many rows, or a sequence. */
TN_API tn_object *tn_sequence_create(tn_heap *heap, size_t count, tn_object *const *items);
TN_API size_t tn_sequence_length(const tn_object *sequence);
TN_API tn_object *tn_sequence_at(const tn_object *sequence, size_t index); /* borrowed */
TN_API tn_object *tn_optional_create(tn_heap *heap, tn_object *object);
TN_API tn_object *tn_optional_get(const tn_object *optional); /* borrowed; NULL: empty */
TN_API tn_object *tn_map_create(tn_heap *heap, tn_tensor *keys, tn_object *values);
TN_API tn_tensor *tn_map_keys(const tn_object *map);   /* borrowed */
TN_API tn_object *tn_map_values(const tn_object *map); /* borrowed */

TN_END_DECLS
#endif
