/* The tables of Tenon's own operators: primitives and composites, one row each, a family a file. */
#ifndef TN_OPS_OPS_H
#define TN_OPS_OPS_H

#include "ir/op.h"

/* `code` of the rows that lower alike but are not scalar operations. */
enum {
    TN_MOVE_RESHAPE = 1,
    TN_MOVE_TRANSPOSE,
    TN_MOVE_BROADCAST,
    TN_MOVE_FIT,
    TN_MOVE_SLICE,
    TN_MOVE_PAD,
    TN_MOVE_CONCAT
};
enum { TN_CONTRACT_DOT = 1, TN_CONTRACT_CONV };
enum { TN_FLOW_IF = 1, TN_FLOW_WHILE, TN_FLOW_SCAN, TN_FLOW_CALL };

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
extern const tn_op_family tn_family_scatter;
extern const tn_op_family tn_family_dynamic;
extern const tn_op_family tn_family_scan;
extern const tn_op_family tn_family_sort;
extern const tn_op_family tn_family_select_data;
extern const tn_op_family tn_family_window_arg;
extern const tn_op_family tn_family_random;
extern const tn_op_family tn_family_random_mt;
extern const tn_op_family tn_family_string_cast;
extern const tn_op_family tn_family_reduce;
extern const tn_op_family tn_family_window;
extern const tn_op_family tn_family_contract;
extern const tn_op_family tn_family_sequence;
extern const tn_op_family tn_family_control;
extern const tn_op_family tn_family_debug;
extern const tn_op_family tn_family_composite;
extern const tn_op_family tn_family_composite_norm;

/* All of them in one table. Lives for ever. */
const tn_op_table *tn_ops_table(void);

#endif
