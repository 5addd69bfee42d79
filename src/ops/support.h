/* Shared parts of the rows that move, reduce and contract tensors: checked attributes, the sizes of windows, outputs
   of eval, packed elements. */
#ifndef TN_OPS_SUPPORT_H
#define TN_OPS_SUPPORT_H

#include "ops/elementwise.h"
#include "ops/infer.h"

/* --- infer -------------------------------------------------------------------------------------------------------- */

/* A DIMS attribute of `count` entries (-1: any number up to TN_MAX_RANK), none provably negative when `sizes`.
   Answers the count in *found when it is not NULL. */
tn_status tn_infer_attr_dims(tn_infer *c, const char *attr, int count, bool sizes, const tn_dim **dims, int *found);
/* An INTS attribute of exactly `count` entries, each at least `low`. */
tn_status tn_infer_attr_ints(tn_infer *c, const char *attr, int count, int64_t low, const int64_t **ints);
/* An INTS attribute of distinct axes in [0, rank); marked[rank] is set true for each. Answers the list and its
   length. */
tn_status tn_infer_attr_axes(tn_infer *c, const char *attr, int rank, bool *marked, const int64_t **axes, int *count);
/* The number of elements; null with the error set when it overflows. */
tn_dim tn_infer_count(tn_infer *c, const char *what, int rank, const tn_dim *dims);
/* The `acc` attribute of reductions and contractions of `dtype`: checked, none when absent. */
tn_status tn_infer_accumulator(tn_infer *c, tn_dtype dtype, tn_dtype *acc);
/* floordiv(in + lo + hi - dilation * (window - 1) - 1, stride) + 1, the size of a windowed dimension; fails when it
   is provably negative or overflows. `what` and `axis` name the dimension in the message. */
tn_status tn_infer_window(tn_infer *c, const char *what, int axis, tn_dim in, tn_dim lo, tn_dim hi, tn_dim window,
                          int64_t stride, int64_t dilation, tn_dim *out);
/* Text of a dimension, cut when long. Returns text. */
const char *tn_dim_describe(tn_graph *graph, tn_dim dim, char *text, size_t size);

/* --- eval --------------------------------------------------------------------------------------------------------- */

/* A DIMS attribute of `count` sizes at run time: none negative (TN_ERR_INPUT). */
tn_status tn_eval_sizes(const tn_eval *e, const char *attr, int count, int64_t *values);
/* tn_infer_window at run time. */
tn_status tn_eval_window(const tn_eval *e, const char *what, int axis, int64_t in, int64_t lo, int64_t hi,
                         int64_t window, int64_t stride, int64_t dilation, int64_t *out);
/* x as it is when it is contiguous, else a copy, which must fit in what the run may still allocate. NULL: the error is set. */
tn_tensor *tn_eval_contiguous(const tn_eval *e, tn_tensor *x);
/* Output 0 := x with another shape of as many elements: a view where the strides allow it, whatever x stands for (a broadcast
   number is not written out), else a copy. */
tn_status tn_eval_reshaped(tn_eval *e, tn_tensor *x, int rank, const int64_t *dims);
/* Packed elements (fewer than 8 bits) as bytes: a new contiguous u8 tensor of the same dims with the bits of each
   element, and back from any strides into a packed tensor of as many elements. */
tn_tensor *tn_unpack_bits(tn_heap *heap, const tn_tensor *packed);
void tn_pack_bits(tn_tensor *packed, const tn_tensor *bytes);

/* to[first + i] = the element of `from` at offset + index[i] * stride (i * stride when index is NULL) elements from
   its first one, for i < n. `to` is contiguous; one dtype, not packed; strings are copied. */
tn_status tn_copy_indexed(tn_tensor *to, int64_t first, const tn_tensor *from, int64_t offset, const int64_t *index,
                          int64_t stride, int64_t n);

/* Dimensions with strides, merged where they continue each other; dimensions of one element are left out. */
typedef struct tn_space {
    int rank;
    int64_t count; /* product of dims */
    int64_t dims[TN_MAX_RANK], strides[TN_MAX_RANK];
} tn_space;
void tn_space_init(tn_space *space, int rank, const int64_t *dims, const int64_t *strides);
/* The offset in elements of the index-th element, row-major. */
int64_t tn_space_offset(const tn_space *space, int64_t index);

#endif
