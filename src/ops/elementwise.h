/* What all elementwise rows share: infer, eval, results, and walks split over threads. */
#ifndef TN_OPS_ELEMENTWISE_H
#define TN_OPS_ELEMENTWISE_H

#include "ops/infer.h"
#include "ops/scalar.h"

/* Of rows whose `code` is a tn_scalar_op other than select, cast, bitcast: dtypes admitted and equal, shapes merged. */
tn_status tn_infer_elementwise(tn_infer *c);
tn_status tn_eval_elementwise(tn_eval *e);
/* The same with a function of the row's own on `domain`. */
tn_status tn_eval_elementwise_with(tn_eval *e, tn_domain domain, tn_run_function *run);
/* Fails (TN_ERR_MODEL) unless the row's operation admits the dtype of `operand`, saying what it takes. */
tn_status tn_infer_admits(tn_infer *c, const tn_operand_type *operand);

/* Output i as a contiguous tensor of this dtype and shape: the one that is there, or a new one put in its place.
   Borrowed; NULL on failure. */
tn_tensor *tn_eval_result(tn_eval *e, uint32_t i, tn_dtype dtype, int rank, const int64_t *dims);
/* Fails with TN_ERR_INPUT unless inputs [first, inputs) all have one shape. */
tn_status tn_eval_same_shape(tn_eval *e, uint32_t first);
/* tn_walk in pieces on the pool (along the longest dimension): for rows whose calls are independent of each other. */
void tn_walk_split(tn_pool *pool, int rank, const int64_t *dims, int operands, const tn_walk_operand *operand,
                   tn_walk_row *row, void *ctx);
/* body(ctx, begin, end) over [0, count) in pieces on the pool; pieces begin at multiples of `grain`. */
void tn_range_split(tn_pool *pool, int64_t count, int64_t grain, void (*body)(void *ctx, int64_t begin, int64_t end),
                    void *ctx);

#endif
