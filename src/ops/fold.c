/* Combining many elements into one. */
#include "ops/fold.h"

#include <math.h>

/* NaN stays, whichever side it is on; -0 is below +0. */
static inline double larger(double a, double b) {
    if (a > b || a != a)
        return a;
    return a == b && !signbit(a) ? a : b;
}

static inline double smaller(double a, double b) {
    if (a < b || a != a)
        return a;
    return a == b && signbit(a) ? a : b;
}

#define FOLD(name, field, type, expression)                                                  \
    static void along_##name(tn_cell *acc, const tn_cell *x, int64_t n) {                    \
        type a = acc->field;                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                    \
            type b = x[i].field;                                                             \
            a = (expression);                                                                \
        }                                                                                    \
        acc->field = a;                                                                      \
    }                                                                                        \
    static void across_##name(tn_cell *restrict acc, const tn_cell *restrict x, int64_t n) { \
        for (int64_t i = 0; i < n; i++) {                                                    \
            type a = acc[i].field, b = x[i].field;                                           \
            acc[i].field = (expression);                                                     \
        }                                                                                    \
    }

FOLD(add_f, f, double, a + b)
FOLD(mul_f, f, double, a *b)
FOLD(max_f, f, double, larger(a, b))
FOLD(min_f, f, double, smaller(a, b))
FOLD(max_i, i, int64_t, a > b ? a : b)
FOLD(min_i, i, int64_t, a < b ? a : b)
FOLD(max_u, u, uint64_t, a > b ? a : b)
FOLD(min_u, u, uint64_t, a < b ? a : b)
FOLD(add_u, u, uint64_t, a + b)
FOLD(mul_u, u, uint64_t, a *b)
FOLD(and_u, u, uint64_t, a &b)
FOLD(or_u, u, uint64_t, a | b)

#define USE(name) fold->along = along_##name, fold->across = across_##name

bool tn_fold_init(tn_fold *fold, tn_scalar_op op, tn_dtype dtype) {
    union {
        uint64_t align;
        char bytes[16];
    } element = {0};
    bool is_float = tn_dtype_is_float(dtype), is_signed = tn_dtype_is_signed(dtype);
    *fold = (tn_fold){.domain = is_float ? TN_DOMAIN_F64 : is_signed ? TN_DOMAIN_I64 : TN_DOMAIN_U64};
    if (!tn_scalar_admits(op, dtype) || !tn_scalar_identity(op, dtype, element.bytes))
        return false;
    tn_run_load(dtype, fold->domain, element.bytes, 0, 1, 1, &fold->identity);
    switch (op) {
    case TN_SCALAR_ADD: is_float ? (USE(add_f)) : (USE(add_u)); return true;
    case TN_SCALAR_MUL: is_float ? (USE(mul_f)) : (USE(mul_u)); return true;
    case TN_SCALAR_MAX: is_float ? (USE(max_f)) : is_signed ? (USE(max_i)) : (USE(max_u)); return true;
    case TN_SCALAR_MIN: is_float ? (USE(min_f)) : is_signed ? (USE(min_i)) : (USE(min_u)); return true;
    case TN_SCALAR_AND: USE(and_u); return !is_float;
    case TN_SCALAR_OR: USE(or_u); return !is_float;
    default: return false;
    }
}
