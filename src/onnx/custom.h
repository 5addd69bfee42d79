/* Users' operators in ONNX models. */
#ifndef TN_ONNX_CUSTOM_H
#define TN_ONNX_CUSTOM_H

#include "onnx/expander.h"
#include "ops/custom.h"

/* The table of graphs that come from ONNX, with a set's rows (NULL: without). NULL with the error set: TN_ERR_USAGE when the set
   has an operator that is built in. */
const tn_op_table *tn_onnx_table_with(tn_op_set *ops);
/* A node of the row `id->custom` for an ONNX node: built before it; out[] receives its outputs. */
tn_status tn_onnx_make_custom(tn_expander *ex, tn_node node, const tn_onnx_identity *id, tn_value *out);

#endif
