/* Evaluation of the movement rows (move_eval.c), whose inference and rows stand in move.c. */
#ifndef TN_OPS_MOVE_H
#define TN_OPS_MOVE_H

#include "ops/support.h"

tn_status tn_eval_reshape(tn_eval *e);
tn_status tn_eval_transpose(tn_eval *e);
tn_status tn_eval_broadcast(tn_eval *e);
tn_status tn_eval_slice(tn_eval *e);
tn_status tn_eval_pad(tn_eval *e);
tn_status tn_eval_concat(tn_eval *e);

#endif
