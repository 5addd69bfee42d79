/* What element types an operator admits, found by asking its row. */
#ifndef TN_CLI_OPS_PROBE_H
#define TN_CLI_OPS_PROBE_H

#include "ir/op.h"

/* A bit for each dtype (1 << TN_F32, ...) that the row admits as its principal one: that of its inputs but for positions and
   conditions, or of its `dtype` attribute. 0: none could be found (the row works on other values, or on regions). */
tn_status tn_ops_probe(const tn_op_table *table, const tn_op *op, uint32_t *dtypes);

#endif
