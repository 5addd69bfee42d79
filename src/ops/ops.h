/* The tables of Tenon's own operators: primitives and composites, one row each, a family a file. */
#ifndef TN_OPS_OPS_H
#define TN_OPS_OPS_H

#include "ir/op.h"

typedef struct tn_op_family {
    const tn_op *rows;
    uint32_t count;
} tn_op_family;

extern const tn_op_family tn_family_unary;
extern const tn_op_family tn_family_binary;
extern const tn_op_family tn_family_compare;
extern const tn_op_family tn_family_select_cast;
extern const tn_op_family tn_family_move;
extern const tn_op_family tn_family_index;
extern const tn_op_family tn_family_reduce;
extern const tn_op_family tn_family_window;
extern const tn_op_family tn_family_contract;
extern const tn_op_family tn_family_control;
extern const tn_op_family tn_family_debug;
extern const tn_op_family tn_family_composite;

/* All of them in one table. Lives for ever. */
const tn_op_table *tn_ops_table(void);

#endif
