/* Between the two files of the oracle. */
#ifndef TN_INTERP_ORACLE_MOVE_H
#define TN_INTERP_ORACLE_MOVE_H

#include "interp/oracle.h"

/* Half a unit in the last place of 1: what one rounding may do to a number of magnitude 1. */
double tn_oracle_unit(tn_dtype dtype);
/* More runs of the reference, roundings moved `scale` times as far; `every`: those of exact arithmetic, too. One that fails stays NULL:
   then rounding decides whether there is a result at all. */
tn_status tn_oracle_run_moved(tn_oracle *oracle, uint32_t runs, double scale, bool every);
/* Frees what is kept between runs. */
void tn_oracle_forget(tn_oracle *oracle);

/* Elements of contiguous f32 tensors, aligned or not. */
static inline uint32_t tn_f32_bits(const tn_tensor *t, int64_t i) {
    uint32_t bits;
    memcpy(&bits, (const char *)t->data + 4 * i, sizeof bits);
    return bits;
}

static inline double tn_f32_at(const tn_tensor *t, int64_t i) {
    float x;
    memcpy(&x, (const char *)t->data + 4 * i, sizeof x);
    return (double)x;
}

#endif
