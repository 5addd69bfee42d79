/* The scalar operations: what one element of an elementwise row, of a reduction or of a kernel computes. One list. */
#ifndef TN_OPS_SCALAR_H
#define TN_OPS_SCALAR_H

#include "ir/op.h"

/* Classes of element types that a scalar operation admits. */
enum {
    TN_ADMIT_FLOAT = 1 << 0, /* f16 bf16 f32 f64 */
    TN_ADMIT_INT = 1 << 1,   /* signed and unsigned, 8 to 64 bits */
    TN_ADMIT_BOOL = 1 << 2,
    TN_ADMIT_STRING = 1 << 3,
    TN_ADMIT_OTHER = 1 << 4, /* complex, 8-bit floats */
    TN_ADMIT_PACKED = 1 << 5 /* fewer than 8 bits */
};

/* X(ID, name, operands, traits, admitted classes, result is bool). The name is that of the row, "min" of the row
   `min`. COMMUTATIVE, ASSOCIATIVE, IDEMPOTENT, EXACT as in ir/op.h; is_inf's two flags, cast's and bitcast's dtype
   are attributes of the node. select's admitted classes are those of its last two operands; the first is bool. */
#define TN_SCALAR_UNARY(X)                                                           \
    X(NEG, neg, 1, TN_EXACT, TN_ADMIT_FLOAT | TN_ADMIT_INT, false)                   \
    X(ABS, abs, 1, TN_EXACT | TN_IDEMPOTENT, TN_ADMIT_FLOAT | TN_ADMIT_INT, false)   \
    X(SIGN, sign, 1, TN_EXACT | TN_IDEMPOTENT, TN_ADMIT_FLOAT | TN_ADMIT_INT, false) \
    X(FLOOR, floor, 1, TN_EXACT | TN_IDEMPOTENT, TN_ADMIT_FLOAT, false)              \
    X(CEIL, ceil, 1, TN_EXACT | TN_IDEMPOTENT, TN_ADMIT_FLOAT, false)                \
    X(ROUND, round, 1, TN_EXACT | TN_IDEMPOTENT, TN_ADMIT_FLOAT, false)              \
    X(TRUNC, trunc, 1, TN_EXACT | TN_IDEMPOTENT, TN_ADMIT_FLOAT, false)              \
    X(SQRT, sqrt, 1, TN_EXACT, TN_ADMIT_FLOAT, false)                                \
    X(RSQRT, rsqrt, 1, 0, TN_ADMIT_FLOAT, false)                                     \
    X(RECIPROCAL, reciprocal, 1, TN_EXACT, TN_ADMIT_FLOAT, false)                    \
    X(EXP, exp, 1, 0, TN_ADMIT_FLOAT, false)                                         \
    X(EXPM1, expm1, 1, 0, TN_ADMIT_FLOAT, false)                                     \
    X(LOG, log, 1, 0, TN_ADMIT_FLOAT, false)                                         \
    X(LOG1P, log1p, 1, 0, TN_ADMIT_FLOAT, false)                                     \
    X(SIN, sin, 1, 0, TN_ADMIT_FLOAT, false)                                         \
    X(COS, cos, 1, 0, TN_ADMIT_FLOAT, false)                                         \
    X(TAN, tan, 1, 0, TN_ADMIT_FLOAT, false)                                         \
    X(ASIN, asin, 1, 0, TN_ADMIT_FLOAT, false)                                       \
    X(ACOS, acos, 1, 0, TN_ADMIT_FLOAT, false)                                       \
    X(ATAN, atan, 1, 0, TN_ADMIT_FLOAT, false)                                       \
    X(SINH, sinh, 1, 0, TN_ADMIT_FLOAT, false)                                       \
    X(COSH, cosh, 1, 0, TN_ADMIT_FLOAT, false)                                       \
    X(TANH, tanh, 1, 0, TN_ADMIT_FLOAT, false)                                       \
    X(ASINH, asinh, 1, 0, TN_ADMIT_FLOAT, false)                                     \
    X(ACOSH, acosh, 1, 0, TN_ADMIT_FLOAT, false)                                     \
    X(ATANH, atanh, 1, 0, TN_ADMIT_FLOAT, false)                                     \
    X(ERF, erf, 1, 0, TN_ADMIT_FLOAT, false)                                         \
    X(SIGMOID, sigmoid, 1, 0, TN_ADMIT_FLOAT, false)                                 \
    X(NOT, not, 1, TN_EXACT, TN_ADMIT_BOOL, true)                                    \
    X(BIT_NOT, bit_not, 1, TN_EXACT, TN_ADMIT_INT, false)                            \
    X(IS_NAN, is_nan, 1, TN_EXACT, TN_ADMIT_FLOAT, true)                             \
    X(IS_INF, is_inf, 1, TN_EXACT, TN_ADMIT_FLOAT, true)                             \
    X(IS_FINITE, is_finite, 1, TN_EXACT, TN_ADMIT_FLOAT, true)
#define TN_SCALAR_BINARY(X)                                                                          \
    X(ADD, add, 2, TN_EXACT | TN_COMMUTATIVE | TN_ASSOCIATIVE, TN_ADMIT_FLOAT | TN_ADMIT_INT, false) \
    X(SUB, sub, 2, TN_EXACT, TN_ADMIT_FLOAT | TN_ADMIT_INT, false)                                   \
    X(MUL, mul, 2, TN_EXACT | TN_COMMUTATIVE | TN_ASSOCIATIVE, TN_ADMIT_FLOAT | TN_ADMIT_INT, false) \
    X(DIV, div, 2, TN_EXACT, TN_ADMIT_FLOAT | TN_ADMIT_INT, false)                                   \
    X(MOD, mod, 2, TN_EXACT, TN_ADMIT_FLOAT | TN_ADMIT_INT, false)                                   \
    X(REM, rem, 2, TN_EXACT, TN_ADMIT_FLOAT | TN_ADMIT_INT, false)                                   \
    X(POW, pow, 2, 0, TN_ADMIT_FLOAT | TN_ADMIT_INT, false)                                          \
    X(MIN, min, 2, TN_EXACT | TN_COMMUTATIVE | TN_ASSOCIATIVE, TN_ADMIT_FLOAT | TN_ADMIT_INT, false) \
    X(MAX, max, 2, TN_EXACT | TN_COMMUTATIVE | TN_ASSOCIATIVE, TN_ADMIT_FLOAT | TN_ADMIT_INT, false) \
    X(ATAN2, atan2, 2, 0, TN_ADMIT_FLOAT, false)                                                     \
    X(AND, and, 2, TN_EXACT | TN_COMMUTATIVE | TN_ASSOCIATIVE, TN_ADMIT_INT | TN_ADMIT_BOOL, false)  \
    X(OR, or, 2, TN_EXACT | TN_COMMUTATIVE | TN_ASSOCIATIVE, TN_ADMIT_INT | TN_ADMIT_BOOL, false)    \
    X(XOR, xor, 2, TN_EXACT | TN_COMMUTATIVE | TN_ASSOCIATIVE, TN_ADMIT_INT | TN_ADMIT_BOOL, false)  \
    X(SHL, shl, 2, TN_EXACT, TN_ADMIT_INT, false)                                                    \
    X(SHR, shr, 2, TN_EXACT, TN_ADMIT_INT, false)
#define TN_SCALAR_COMPARE(X)                                                                                       \
    X(EQUAL, equal, 2, TN_EXACT | TN_COMMUTATIVE, TN_ADMIT_FLOAT | TN_ADMIT_INT | TN_ADMIT_BOOL | TN_ADMIT_STRING, \
      true)                                                                                                        \
    X(NOT_EQUAL, not_equal, 2, TN_EXACT | TN_COMMUTATIVE,                                                          \
      TN_ADMIT_FLOAT | TN_ADMIT_INT | TN_ADMIT_BOOL | TN_ADMIT_STRING, true)                                       \
    X(LESS, less, 2, TN_EXACT, TN_ADMIT_FLOAT | TN_ADMIT_INT, true)                                                \
    X(LESS_EQUAL, less_equal, 2, TN_EXACT, TN_ADMIT_FLOAT | TN_ADMIT_INT, true)                                    \
    X(GREATER, greater, 2, TN_EXACT, TN_ADMIT_FLOAT | TN_ADMIT_INT, true)                                          \
    X(GREATER_EQUAL, greater_equal, 2, TN_EXACT, TN_ADMIT_FLOAT | TN_ADMIT_INT, true)
#define TN_SCALAR_SELECT_CAST(X)                                                                                       \
    X(SELECT, select, 3, TN_EXACT, TN_ADMIT_FLOAT | TN_ADMIT_INT | TN_ADMIT_BOOL | TN_ADMIT_STRING | TN_ADMIT_OTHER,   \
      false)                                                                                                           \
    X(CAST, cast, 1, TN_EXACT, TN_ADMIT_FLOAT | TN_ADMIT_INT | TN_ADMIT_BOOL | TN_ADMIT_OTHER | TN_ADMIT_PACKED,       \
      false)                                                                                                           \
    X(BITCAST, bitcast, 1, TN_EXACT, TN_ADMIT_FLOAT | TN_ADMIT_INT | TN_ADMIT_BOOL | TN_ADMIT_OTHER | TN_ADMIT_PACKED, \
      false)
#define TN_SCALARS(X) TN_SCALAR_UNARY(X) TN_SCALAR_BINARY(X) TN_SCALAR_COMPARE(X) TN_SCALAR_SELECT_CAST(X)

typedef enum tn_scalar_op {
    TN_SCALAR_NONE,
#define X(ID, name, operands, traits, admits, boolean) TN_SCALAR_##ID,
    TN_SCALARS(X)
#undef X
        TN_SCALAR_COUNT
} tn_scalar_op;

typedef struct tn_scalar_info {
    const char *name; /* of the operation and of its row */
    uint8_t operands;
    uint8_t admits;
    bool boolean; /* the result is bool whatever the operands */
    uint32_t traits;
} tn_scalar_info;
/* Never NULL; TN_SCALAR_NONE and numbers out of range give "none" with no operands. */
const tn_scalar_info *tn_scalar_describe(tn_scalar_op op);
/* The class of a dtype, one of TN_ADMIT_*; 0 for none. */
uint8_t tn_scalar_class(tn_dtype dtype);
static inline bool tn_scalar_admits(tn_scalar_op op, tn_dtype dtype) {
    return (tn_scalar_describe(op)->admits & tn_scalar_class(dtype)) != 0;
}
/* Stores at `element` the value e of `dtype` with op(e, x) = x for all x: add or xor 0, mul 1, max -inf or the
   lowest, min +inf or the highest, and all ones (true), or 0. False when `op` has none or does not admit the dtype. */
bool tn_scalar_identity(tn_scalar_op op, tn_dtype dtype, void *element);

/* --- computing on runs of elements -------------------------------------------------------------------------------- */

/* What elements are computed in: every dtype is loaded into one of these. f16, bf16 and f32 use F32 for operations
   that are EXACT (so they round like the hardware's) and F64 for the others (libm's value, rounded once). */
typedef enum tn_domain { TN_DOMAIN_F32, TN_DOMAIN_F64, TN_DOMAIN_I64, TN_DOMAIN_U64, TN_DOMAIN_COUNT } tn_domain;
/* bool and unsigned: U64; signed: I64. Strings and complex have none: TN_DOMAIN_COUNT. */
tn_domain tn_scalar_domain(tn_scalar_op op, tn_dtype dtype);
/* The length of run that callers of the functions below work in: buffers of TN_RUN 8-byte items. */
#define TN_RUN 256
/* Loads elements first, first + stride, ... (n of them) of the array of `dtype` at `from` into an array of the
   domain's C type. The domain must be of the dtype's kind: floats F32 (not from f64) or F64, signed integers I64,
   unsigned and bool U64. */
void tn_run_load(tn_dtype dtype, tn_domain domain, const void *from, int64_t first, int64_t stride, int64_t n,
                 void *to);
/* Stores n items of a domain as `dtype`, converted: integers wrap, floats round to nearest even; float to integer
   truncates and wraps while the value fits in 64 bits, outside it becomes the dtype's extreme, NaN 0; to bool is != 0.
   8-bit floats saturate. */
void tn_run_store(tn_dtype dtype, tn_domain domain, const void *from, int64_t n, void *to, int64_t first,
                  int64_t stride);
/* To binary64 such that a later rounding to at most 40 bits is the right one ("round to odd"). */
double tn_odd_f64(uint64_t magnitude);
/* out[i] = op(in[0][i], in[1][i]) for n items of a domain; results that are bool are uint64_t 0 or 1, others of the
   domain. `out` may be one of the inputs when the result is not bool. */
typedef void tn_run_function(int64_t n, const void *const *in, void *out);
/* NULL where the operation is not defined on that domain; select, cast, bitcast, is_inf have none. */
tn_run_function *tn_scalar_run(tn_scalar_op op, tn_domain domain);

#endif
