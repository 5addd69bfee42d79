/* Shared parts of rows' infer functions: reading operands, merging shapes, messages that name what did not agree. */
#ifndef TN_OPS_INFER_H
#define TN_OPS_INFER_H

#include "ir/graph.h"
#include "ir/op.h"

/* An operand's type, copied: stays valid while the graph changes. */
typedef struct tn_operand_type {
    tn_value value;
    tn_dtype dtype;
    int rank;
    tn_dim dims[TN_MAX_RANK];
} tn_operand_type;

/* Input `index` as a ranked tensor; fails when it is absent, no tensor, of no known dtype, or unranked ("needs a
   rank"). */
tn_status tn_infer_operand(tn_infer *c, uint32_t index, tn_operand_type *out);
/* The same with the rank required to be `rank`. */
tn_status tn_infer_operand_rank(tn_infer *c, uint32_t index, int rank, tn_operand_type *out);
/* Fails unless the two operands have one dtype ("primitives do not convert: cast one"). */
tn_status tn_infer_same_dtype(tn_infer *c, const tn_operand_type *a, const tn_operand_type *b);
/* Merges `b` into `a`: the shapes must not be provably different; each dim becomes the more informative of the two (a
   constant, else a named symbol, else what `a` has). */
tn_status tn_infer_merge_shape(tn_infer *c, tn_operand_type *a, const tn_operand_type *b);
/* One dim of that merge: null id when they can never be equal. */
tn_dim tn_infer_merge_dim(tn_graph *graph, tn_dim a, tn_dim b);
/* Fails unless `axis` is in [0, rank). */
tn_status tn_infer_axis(tn_infer *c, const char *attr, int64_t axis, int rank);
/* "f32[N, 3]" of an operand. Returns text. */
const char *tn_operand_describe(tn_infer *c, const tn_operand_type *operand, char *text, size_t size);

#endif
