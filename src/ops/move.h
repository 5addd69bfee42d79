/* Evaluation of the movement rows (move_eval.c), whose inference and rows stand in move.c. */
#ifndef TN_OPS_MOVE_H
#define TN_OPS_MOVE_H

#include "ops/support.h"

tn_status tn_eval_reshape(tn_eval *e);
tn_status tn_eval_transpose(tn_eval *e);
tn_status tn_eval_broadcast(tn_eval *e);
tn_status tn_eval_fit(tn_eval *e);
tn_status tn_eval_slice(tn_eval *e);
tn_status tn_eval_pad(tn_eval *e);
/* x padded by amounts that are not negative, in the node's mode; `value` NULL: zero, the empty string. */
tn_status tn_eval_pad_by(tn_eval *e, tn_tensor *x, tn_tensor *value, const int64_t *lo, const int64_t *hi);
tn_status tn_eval_concat(tn_eval *e);

#endif
