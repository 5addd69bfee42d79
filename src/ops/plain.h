/* Shared by the rows that move single elements: packed elements seen as bytes, index spaces walked with offsets into
   several operands, indices that count from the end, lanes along an axis. */
#ifndef TN_OPS_PLAIN_H
#define TN_OPS_PLAIN_H

#include "ops/support.h"

/* --- infer -------------------------------------------------------------------------------------------------------- */

/* Input `index` as a tensor of indices: i32 or i64. */
tn_status tn_infer_indices(tn_infer *c, uint32_t index, tn_operand_type *out);
/* The `axis` attribute, in [0, rank). */
tn_status tn_infer_attr_axis(tn_infer *c, int rank, int *axis);
/* An INT attribute that is 0 or 1. */
tn_status tn_infer_flag(tn_infer *c, const char *attr, bool *value);
/* Input `index` as a vector of sizes or positions: i32 or i64, rank 1, of a length known now (at most TN_MAX_RANK). */
tn_status tn_infer_vector(tn_infer *c, uint32_t index, int *length);

/* --- elements of any width ---------------------------------------------------------------------------------------- */

/* x itself (retained), or its packed elements as bytes; `flat`: contiguous. NULL with the error set. */
tn_tensor *tn_plain_input(tn_heap *heap, tn_tensor *x, bool flat);

/* An output whose elements are written one by one: `to` is the output, or bytes that are packed in the end. */
typedef struct tn_plain_output {
    tn_tensor *out, *to; /* contiguous */
} tn_plain_output;
tn_status tn_plain_begin(tn_eval *e, uint32_t output, tn_dtype dtype, int rank, const int64_t *dims,
                         tn_plain_output *o);
/* Packs (when `status` is TN_OK) and lets go; answers `status`. After a failed tn_plain_begin it does nothing. */
tn_status tn_plain_end(tn_plain_output *o, tn_status status);

/* --- walking ------------------------------------------------------------------------------------------------------ */

#define TN_CURSOR_OPERANDS 3
/* A row-major walk over an index space: `index`, and the offset in elements of it in each operand. */
typedef struct tn_cursor {
    int rank, operands;
    int64_t count; /* elements of the space */
    int64_t dims[TN_MAX_RANK], index[TN_MAX_RANK];
    int64_t strides[TN_CURSOR_OPERANDS][TN_MAX_RANK], offset[TN_CURSOR_OPERANDS];
} tn_cursor;
/* The product of dims must not overflow (they are those of a tensor, or part of them). */
void tn_cursor_begin(tn_cursor *c, int rank, const int64_t *dims);
/* One more operand; `skip`: an axis along which its offset stays (-1: none). */
void tn_cursor_operand(tn_cursor *c, const int64_t *strides, int skip);
static inline void tn_cursor_next(tn_cursor *c) {
    for (int i = c->rank - 1; i >= 0; i--) {
        if (++c->index[i] < c->dims[i]) {
            for (int k = 0; k < c->operands; k++)
                c->offset[k] += c->strides[k][i];
            return;
        }
        c->index[i] = 0;
        for (int k = 0; k < c->operands; k++)
            c->offset[k] -= (c->dims[i] - 1) * c->strides[k][i];
    }
}

/* The index at an element offset of `indices`, counted from the end when negative; out of [-limit, limit):
   TN_ERR_INPUT. */
tn_status tn_eval_index(tn_eval *e, const tn_tensor *indices, int64_t offset, int64_t limit, int64_t *index);
/* The elements of an integer vector (or scalar) of exactly `count`. */
tn_status tn_eval_vector(tn_eval *e, uint32_t input, int count, int64_t *values);

/* --- lanes -------------------------------------------------------------------------------------------------------- */

/* A contiguous tensor along one axis: element k of the lane (o, i) stands at (o * length + k) * inner + i. */
typedef struct tn_lanes {
    int64_t outer, length, inner;
} tn_lanes;
tn_lanes tn_lanes_of(int rank, const int64_t *dims, int axis);

/* A number as an unsigned key that orders as the numbers do: -0 equals 0, NaNs are equal to each other and above all.
   dtype: floats, integers, bool. */
uint64_t tn_order_key(tn_dtype dtype, const void *data, int64_t index);
/* -1, 0, 1: by bytes, a prefix first. */
int tn_order_strings(const tn_string *a, const tn_string *b);

#endif
