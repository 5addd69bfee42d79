/* Combining many elements into one, for reductions and windows. Floats of all widths are combined in double and
   rounded once, integers in 64 bits and wrapped. Each result takes its elements one after the other, in the order
   they are given: how the work is split over runs, results or threads never changes bits. */
#ifndef TN_OPS_FOLD_H
#define TN_OPS_FOLD_H

#include "ops/scalar.h"

/* One accumulator or loaded element: a double, int64_t or uint64_t, as the fold's domain says. */
typedef union tn_cell {
    double f;
    int64_t i;
    uint64_t u;
} tn_cell;

typedef struct tn_fold {
    tn_domain domain;
    tn_cell identity;
    /* acc = op(...op(op(acc, x[0]), x[1])...) */
    void (*along)(tn_cell *acc, const tn_cell *x, int64_t n);
    /* acc[i] = op(acc[i], x[i]) */
    void (*across)(tn_cell *acc, const tn_cell *x, int64_t n);
} tn_fold;

/* ADD, MUL, MIN, MAX, AND, OR on a dtype that tn_scalar_admits. False when there is no such fold. */
bool tn_fold_init(tn_fold *fold, tn_scalar_op op, tn_dtype dtype);

#endif
