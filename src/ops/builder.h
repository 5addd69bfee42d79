/* Shared by the files that implement <tenon/build.h>: refusing wrong calls, axes, shapes. */
#ifndef TN_OPS_BUILDER_H
#define TN_OPS_BUILDER_H

#define TN_NO_POSITIONS
#include <tenon/build.h>

#include "ir/graph.h"

#define TN_NULL_VALUE ((tn_value){0})

/* Leaves an error on the graph; answers the null value. */
tn_value tn_build_fail(tn_graph *graph, tn_status status, const char *format, ...) TN_PRINTF(3, 4);
/* The thread's current error is left on the graph. Answers the null value. */
tn_value tn_build_stick(tn_graph *graph);
/* Whether the graph can be changed and all values are alive; else the sticky error that names `function` and the operand. */
bool tn_build_ready(tn_graph *graph, const char *function, uint32_t count, const tn_value *values);
/* The same, and each must be a tensor of known rank. */
bool tn_build_ranked(tn_graph *graph, const char *function, uint32_t count, const tn_value *values);
/* The rank of a value and its dims, copied (they move when the graph grows). */
int tn_build_dims(const tn_graph *graph, tn_value value, tn_dim dims[TN_MAX_RANK]);
/* An axis of a rank, counted from the end when negative: in [0, rank), or -1 with the sticky error. */
int tn_build_axis(tn_graph *graph, const char *function, int64_t axis, int rank);
/* Axes as above, all of them when count is 0, in increasing order; twice the same is refused. The count, or -1. */
int tn_build_axes(tn_graph *graph, const char *function, uint32_t count, const int *axes, int rank,
                  int64_t out[TN_MAX_RANK]);
/* The product of dims. Null with the sticky error when it overflows. */
tn_dim tn_build_product(tn_graph *graph, int count, const tn_dim *dims);
/* Merges dims `b` into `a` by numpy's rule, aligned at the right; *rank is a's and becomes the result's. */
bool tn_build_broadcast(tn_graph *graph, const char *function, int *rank, tn_dim a[TN_MAX_RANK], int b_rank,
                        const tn_dim *b);

/* tn_conv and tn_matmul with sums kept in `acc` (none: as those do); integers also have it as their result's dtype. */
tn_value tn_build_conv(tn_graph *graph, tn_value x, tn_value w, const int64_t *stride, const int64_t *dilation,
                       const int64_t *lhs_dilation, const tn_dim *lo, const tn_dim *hi, int64_t groups, tn_dtype acc);
tn_value tn_build_matmul(tn_graph *graph, tn_value a, tn_value b, tn_dtype acc);
/* Adds an elementwise row of 1 to 3 operands, broadcast to one shape. `function` names the call in messages. */
tn_value tn_build_elementwise(tn_graph *graph, const char *function, const char *row, uint32_t count,
                              const tn_value *operands);

#endif
