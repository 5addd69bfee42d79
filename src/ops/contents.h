/* Contents propagation: the elements of small integer tensors as symbolic dimensions, through the rows that compute
   shapes. */
#ifndef TN_OPS_CONTENTS_H
#define TN_OPS_CONTENTS_H

#include "ir/graph.h"
#include "ops/scalar.h"

/* A copy of a value's known elements: stays valid while the graph changes. */
typedef struct tn_contents {
    int32_t n; /* -1: unknown */
    tn_dim dim[TN_MAX_CONTENTS];
} tn_contents;

/* The contents of input `index` of the node; n = -1 when unknown. */
void tn_contents_input(const tn_infer *c, uint32_t index, tn_contents *out);
/* States them for output 0, if n >= 0, its dtype is i64 or i32, and every element is known (a null dim: says
   nothing). */
tn_status tn_contents_set(tn_infer *c, const tn_contents *contents);
/* op(a, b) on integer elements as rows compute it (integers wrap, x div 0 = 0, ...), or a null dim when that is no
   expression. `b` is ignored for unary ones. */
tn_dim tn_contents_apply(tn_graph *graph, tn_scalar_op op, tn_dim a, tn_dim b);
/* Known truth of the elements of a bool value of rank <= 1 and n elements (constant, comparison of known contents,
   cast of such, and / or / not of such, broadcast or reshape of such): truth[i] is 0, 1, or 2 for unknown. False when nothing is
   known. */
bool tn_contents_truth(const tn_graph *graph, tn_value value, int32_t n, uint8_t *truth);

#endif
