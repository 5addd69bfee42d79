/* The table of scalar operations and what each computes on a run of elements, in four domains: f32, f64, i64, u64.

   Narrower dtypes need no code of their own: integers wrap when they are stored, floats are rounded when they are
   stored. */
#include <math.h>

#include "ops/scalar.h"

static const tn_scalar_info infos[TN_SCALAR_COUNT] = {[TN_SCALAR_NONE] = {"none", 0, 0, false, 0},
#define X(ID, name, operands, traits, admits, boolean) [TN_SCALAR_##ID] = {#name, operands, admits, boolean, traits},
                                                      TN_SCALARS(X)
#undef X
};

const tn_scalar_info *tn_scalar_describe(tn_scalar_op op) {
    return (unsigned)op < TN_SCALAR_COUNT ? &infos[op] : &infos[TN_SCALAR_NONE];
}

uint8_t tn_scalar_class(tn_dtype dtype) {
    switch (dtype) {
    case TN_F16:
    case TN_BF16:
    case TN_F32:
    case TN_F64: return TN_ADMIT_FLOAT;
    case TN_BOOL: return TN_ADMIT_BOOL;
    case TN_STRING: return TN_ADMIT_STRING;
    case TN_DTYPE_NONE:
    case TN_DTYPE_COUNT: return 0;
    default: break;
    }
    if (tn_dtype_is_subbyte(dtype))
        return TN_ADMIT_PACKED;
    if (tn_dtype_is_int(dtype))
        return TN_ADMIT_INT;
    return tn_dtype_bits(dtype) > 0 ? TN_ADMIT_OTHER : 0;
}

tn_domain tn_scalar_domain(tn_scalar_op op, tn_dtype dtype) {
    if (dtype == TN_F64)
        return TN_DOMAIN_F64;
    if (tn_dtype_is_float(dtype))
        return tn_scalar_describe(op)->traits & TN_EXACT ? TN_DOMAIN_F32 : TN_DOMAIN_F64;
    if (tn_dtype_is_signed(dtype))
        return TN_DOMAIN_I64;
    return dtype == TN_BOOL || tn_dtype_is_int(dtype) ? TN_DOMAIN_U64 : TN_DOMAIN_COUNT;
}

bool tn_scalar_identity(tn_scalar_op op, tn_dtype dtype, void *element) {
    if (!tn_scalar_admits(op, dtype))
        return false;
    bool is_float = tn_dtype_is_float(dtype);
    switch (op) {
    case TN_SCALAR_ADD:
    case TN_SCALAR_OR:
    case TN_SCALAR_XOR: tn_store_i64(dtype, element, 0, 0); return true;
    case TN_SCALAR_MUL: tn_store_i64(dtype, element, 0, 1); return true;
    case TN_SCALAR_AND: tn_store_i64(dtype, element, 0, -1); return true;
    case TN_SCALAR_MAX:
        if (is_float)
            tn_store_f64(dtype, element, 0, -(double)INFINITY);
        else
            tn_store_i64(dtype, element, 0, tn_dtype_min_i64(dtype));
        return true;
    case TN_SCALAR_MIN:
        if (is_float)
            tn_store_f64(dtype, element, 0, (double)INFINITY);
        else
            tn_store_i64(dtype, element, 0, (int64_t)tn_dtype_max_u64(dtype));
        return true;
    default: return false;
    }
}

/* --- bodies: `x` (and `y`) of the domain's type T, result of type R ----------------------------------------------- */

#define UNARY(name, domain, T, R, expr)                                        \
    static void name##_##domain(int64_t n, const void *const *in, void *out) { \
        const T *a = in[0];                                                    \
        R *r = out;                                                            \
        for (int64_t i = 0; i < n; i++) {                                      \
            T x = a[i];                                                        \
            r[i] = (R)(expr);                                                  \
        }                                                                      \
    }
#define BINARY(name, domain, T, R, expr)                                       \
    static void name##_##domain(int64_t n, const void *const *in, void *out) { \
        const T *a = in[0], *b = in[1];                                        \
        R *r = out;                                                            \
        for (int64_t i = 0; i < n; i++) {                                      \
            T x = a[i], y = b[i];                                              \
            r[i] = (R)(expr);                                                  \
        }                                                                      \
    }

/* Floats. M(f) is the C library's function for the type. */
#define FLOAT_HELPERS(domain, T, M)                      \
    static T sign_of_##domain(T x) {                     \
        return isnan(x) ? x : (T)((x > 0) - (x < 0));    \
    }                                                    \
    static T floor_mod_##domain(T x, T y) {              \
        T r = M(fmod)(x, y);                             \
        if (r == 0)                                      \
            return M(copysign)(r, y);                    \
        return (r < 0) != (y < 0) ? r + y : r;           \
    }                                                    \
    static T least_##domain(T x, T y) {                  \
        if (isnan(x) || isnan(y))                        \
            return isnan(x) ? x : y;                     \
        return x < y || (x == y && signbit(x)) ? x : y;  \
    }                                                    \
    static T greatest_##domain(T x, T y) {               \
        if (isnan(x) || isnan(y))                        \
            return isnan(x) ? x : y;                     \
        return x > y || (x == y && !signbit(x)) ? x : y; \
    }
#define FLOAT_EXACT(domain, T, M)                           \
    FLOAT_HELPERS(domain, T, M)                             \
    UNARY(neg, domain, T, T, -x)                            \
    UNARY(abs, domain, T, T, M(fabs)(x))                    \
    UNARY(sign, domain, T, T, sign_of_##domain(x))          \
    UNARY(floor, domain, T, T, M(floor)(x))                 \
    UNARY(ceil, domain, T, T, M(ceil)(x))                   \
    UNARY(round, domain, T, T, M(rint)(x))                  \
    UNARY(trunc, domain, T, T, M(trunc)(x))                 \
    UNARY(sqrt, domain, T, T, M(sqrt)(x))                   \
    UNARY(reciprocal, domain, T, T, 1 / x)                  \
    UNARY(is_nan, domain, T, uint64_t, isnan(x) != 0)       \
    UNARY(is_finite, domain, T, uint64_t, isfinite(x) != 0) \
    BINARY(add, domain, T, T, x + y)                        \
    BINARY(sub, domain, T, T, x - y)                        \
    BINARY(mul, domain, T, T, x *y)                         \
    BINARY(div, domain, T, T, x / y)                        \
    BINARY(mod, domain, T, T, floor_mod_##domain(x, y))     \
    BINARY(rem, domain, T, T, M(fmod)(x, y))                \
    BINARY(min, domain, T, T, least_##domain(x, y))         \
    BINARY(max, domain, T, T, greatest_##domain(x, y))
#define COMPARE(domain, T)                          \
    BINARY(equal, domain, T, uint64_t, x == y)      \
    BINARY(not_equal, domain, T, uint64_t, x != y)  \
    BINARY(less, domain, T, uint64_t, x < y)        \
    BINARY(less_equal, domain, T, uint64_t, x <= y) \
    BINARY(greater, domain, T, uint64_t, x > y)     \
    BINARY(greater_equal, domain, T, uint64_t, x >= y)

#define OF_FLOAT(name) name##f
#define OF_DOUBLE(name) name
FLOAT_EXACT(f32, float, OF_FLOAT)
FLOAT_EXACT(f64, double, OF_DOUBLE)
COMPARE(f32, float)
COMPARE(f64, double)

static double sigmoid_of(double x) {
    if (x >= 0)
        return 1 / (1 + exp(-x));
    double e = exp(x);
    return e / (1 + e);
}

UNARY(rsqrt, f64, double, double, 1 / sqrt(x))
UNARY(exp, f64, double, double, exp(x))
UNARY(expm1, f64, double, double, expm1(x))
UNARY(log, f64, double, double, log(x))
UNARY(log1p, f64, double, double, log1p(x))
UNARY(sin, f64, double, double, sin(x))
UNARY(cos, f64, double, double, cos(x))
UNARY(tan, f64, double, double, tan(x))
UNARY(asin, f64, double, double, asin(x))
UNARY(acos, f64, double, double, acos(x))
UNARY(atan, f64, double, double, atan(x))
UNARY(sinh, f64, double, double, sinh(x))
UNARY(cosh, f64, double, double, cosh(x))
UNARY(tanh, f64, double, double, tanh(x))
UNARY(asinh, f64, double, double, asinh(x))
UNARY(acosh, f64, double, double, acosh(x))
UNARY(atanh, f64, double, double, atanh(x))
UNARY(erf, f64, double, double, erf(x))
UNARY(sigmoid, f64, double, double, sigmoid_of(x))
BINARY(pow, f64, double, double, pow(x, y))
BINARY(atan2, f64, double, double, atan2(x, y))

/* Integers: all arithmetic is done unsigned, where it wraps. */
static int64_t divide_i64(int64_t x, int64_t y) {
    if (y == 0)
        return 0;
    return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

static int64_t rem_i64_of(int64_t x, int64_t y) {
    if (y == 0)
        return x;
    return y == -1 ? 0 : x % y;
}

static int64_t mod_i64_of(int64_t x, int64_t y) {
    int64_t r = rem_i64_of(x, y);
    return y != 0 && r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static uint64_t power_u64(uint64_t x, uint64_t y) {
    uint64_t result = 1;
    for (; y != 0; y >>= 1, x *= x)
        if (y & 1)
            result *= x;
    return result;
}

static int64_t power_i64(int64_t x, int64_t y) {
    if (y >= 0)
        return (int64_t)power_u64((uint64_t)x, (uint64_t)y);
    return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
}

#define INTEGER(domain, T)                               \
    UNARY(neg, domain, T, T, 0 - (uint64_t)x)            \
    UNARY(bit_not, domain, T, T, ~(uint64_t)x)           \
    BINARY(add, domain, T, T, (uint64_t)x + (uint64_t)y) \
    BINARY(sub, domain, T, T, (uint64_t)x - (uint64_t)y) \
    BINARY(mul, domain, T, T, (uint64_t)x *(uint64_t)y)  \
    BINARY(min, domain, T, T, x < y ? x : y)             \
    BINARY(max, domain, T, T, x > y ? x : y)             \
    BINARY(and, domain, T, T, (uint64_t)x &(uint64_t)y)  \
    BINARY(or, domain, T, T, (uint64_t)x | (uint64_t)y)  \
    BINARY(xor, domain, T, T, (uint64_t)x ^ (uint64_t)y) \
    COMPARE(domain, T)
INTEGER(i64, int64_t)
INTEGER(u64, uint64_t)

UNARY(abs, i64, int64_t, int64_t, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)
UNARY(sign, i64, int64_t, int64_t, (x > 0) - (x < 0))
BINARY(div, i64, int64_t, int64_t, divide_i64(x, y))
BINARY(mod, i64, int64_t, int64_t, mod_i64_of(x, y))
BINARY(rem, i64, int64_t, int64_t, rem_i64_of(x, y))
BINARY(pow, i64, int64_t, int64_t, power_i64(x, y))
BINARY(shl, i64, int64_t, int64_t, y<0 || y> 63 ? 0 : (uint64_t)x << y)
BINARY(shr, i64, int64_t, int64_t, x >> (y < 0 || y > 63 ? 63 : y))

UNARY(abs, u64, uint64_t, uint64_t, x)
UNARY(sign, u64, uint64_t, uint64_t, x != 0)
UNARY(not, u64, uint64_t, uint64_t, x == 0)
BINARY(div, u64, uint64_t, uint64_t, y == 0 ? 0 : x / y)
BINARY(mod, u64, uint64_t, uint64_t, y == 0 ? x : x % y)
BINARY(rem, u64, uint64_t, uint64_t, y == 0 ? x : x % y)
BINARY(pow, u64, uint64_t, uint64_t, power_u64(x, y))
BINARY(shl, u64, uint64_t, uint64_t, y > 63 ? 0 : x << y)
BINARY(shr, u64, uint64_t, uint64_t, y > 63 ? 0 : x >> y)

#define FLOATS(name) [TN_DOMAIN_F32] = name##_f32, [TN_DOMAIN_F64] = name##_f64
#define INTS(name) [TN_DOMAIN_I64] = name##_i64, [TN_DOMAIN_U64] = name##_u64
#define DOUBLES(name) [TN_DOMAIN_F64] = name##_f64
static tn_run_function *const functions[TN_SCALAR_COUNT][TN_DOMAIN_COUNT] = {
    [TN_SCALAR_NEG] = {FLOATS(neg), INTS(neg)},
    [TN_SCALAR_ABS] = {FLOATS(abs), INTS(abs)},
    [TN_SCALAR_SIGN] = {FLOATS(sign), INTS(sign)},
    [TN_SCALAR_FLOOR] = {FLOATS(floor)},
    [TN_SCALAR_CEIL] = {FLOATS(ceil)},
    [TN_SCALAR_ROUND] = {FLOATS(round)},
    [TN_SCALAR_TRUNC] = {FLOATS(trunc)},
    [TN_SCALAR_SQRT] = {FLOATS(sqrt)},
    [TN_SCALAR_RECIPROCAL] = {FLOATS(reciprocal)},
    [TN_SCALAR_RSQRT] = {DOUBLES(rsqrt)},
    [TN_SCALAR_EXP] = {DOUBLES(exp)},
    [TN_SCALAR_EXPM1] = {DOUBLES(expm1)},
    [TN_SCALAR_LOG] = {DOUBLES(log)},
    [TN_SCALAR_LOG1P] = {DOUBLES(log1p)},
    [TN_SCALAR_SIN] = {DOUBLES(sin)},
    [TN_SCALAR_COS] = {DOUBLES(cos)},
    [TN_SCALAR_TAN] = {DOUBLES(tan)},
    [TN_SCALAR_ASIN] = {DOUBLES(asin)},
    [TN_SCALAR_ACOS] = {DOUBLES(acos)},
    [TN_SCALAR_ATAN] = {DOUBLES(atan)},
    [TN_SCALAR_SINH] = {DOUBLES(sinh)},
    [TN_SCALAR_COSH] = {DOUBLES(cosh)},
    [TN_SCALAR_TANH] = {DOUBLES(tanh)},
    [TN_SCALAR_ASINH] = {DOUBLES(asinh)},
    [TN_SCALAR_ACOSH] = {DOUBLES(acosh)},
    [TN_SCALAR_ATANH] = {DOUBLES(atanh)},
    [TN_SCALAR_ERF] = {DOUBLES(erf)},
    [TN_SCALAR_SIGMOID] = {DOUBLES(sigmoid)},
    [TN_SCALAR_NOT] = {[TN_DOMAIN_U64] = not_u64},
    [TN_SCALAR_BIT_NOT] = {INTS(bit_not)},
    [TN_SCALAR_IS_NAN] = {FLOATS(is_nan)},
    [TN_SCALAR_IS_FINITE] = {FLOATS(is_finite)},
    [TN_SCALAR_ADD] = {FLOATS(add), INTS(add)},
    [TN_SCALAR_SUB] = {FLOATS(sub), INTS(sub)},
    [TN_SCALAR_MUL] = {FLOATS(mul), INTS(mul)},
    [TN_SCALAR_DIV] = {FLOATS(div), INTS(div)},
    [TN_SCALAR_MOD] = {FLOATS(mod), INTS(mod)},
    [TN_SCALAR_REM] = {FLOATS(rem), INTS(rem)},
    [TN_SCALAR_POW] = {DOUBLES(pow), INTS(pow)},
    [TN_SCALAR_MIN] = {FLOATS(min), INTS(min)},
    [TN_SCALAR_MAX] = {FLOATS(max), INTS(max)},
    [TN_SCALAR_ATAN2] = {DOUBLES(atan2)},
    [TN_SCALAR_AND] = {INTS(and)},
    [TN_SCALAR_OR] = {INTS(or)},
    [TN_SCALAR_XOR] = {INTS(xor)},
    [TN_SCALAR_SHL] = {INTS(shl)},
    [TN_SCALAR_SHR] = {INTS(shr)},
    [TN_SCALAR_EQUAL] = {FLOATS(equal), INTS(equal)},
    [TN_SCALAR_NOT_EQUAL] = {FLOATS(not_equal), INTS(not_equal)},
    [TN_SCALAR_LESS] = {FLOATS(less), INTS(less)},
    [TN_SCALAR_LESS_EQUAL] = {FLOATS(less_equal), INTS(less_equal)},
    [TN_SCALAR_GREATER] = {FLOATS(greater), INTS(greater)},
    [TN_SCALAR_GREATER_EQUAL] = {FLOATS(greater_equal), INTS(greater_equal)},
};

tn_run_function *tn_scalar_run(tn_scalar_op op, tn_domain domain) {
    return (unsigned)op < TN_SCALAR_COUNT && (unsigned)domain < TN_DOMAIN_COUNT ? functions[op][domain] : NULL;
}
