/* A table of small rows that exercise every part of a row, for tests of ir/ that need no real operators. */
#ifndef TN_TESTS_TOY_OPS_H
#define TN_TESTS_TOY_OPS_H

#include "ir/graph.h"

/* any: any inputs (absent ones too), outputs, attributes, regions; the outputs' types are whatever they are given.
   pair(a, b): the type of a.  const {value}: required.  loose {}: a constant row whose `value` is not required.
   size(x): i64[u], u fresh.  shaped {shape = dims}: f32 of that shape.  tuned(x) {level INT required, mode one|two, scale FLOAT}.
   block() region: its region is closed.  open() region: its region reads what is around.  call(args...) {callee}.  effect(x...).
   "odd name!"(): as any.  `next` (may be NULL) is chained behind. */
const tn_op_table *toy_ops(void);
const tn_op_table *toy_ops_before(const tn_op_table *next); /* one `next` per process */
const tn_op *toy_op(const char *name);

/* Builds a node; inputs and outputs as given; checks that it was made. */
tn_node toy_node(tn_graph *graph, const char *op, uint32_t inputs, const tn_value *input, uint32_t outputs,
                 const tn_type *types, uint32_t attrs, const tn_attr *attr);
tn_value toy_input(tn_graph *graph, const char *name, tn_dtype dtype, int rank, const tn_dim *dims);

#endif
