/* Cases of the elementwise rows, driven by what their scalar operation admits; the oracle is written out here in
   plain arithmetic: double for what is exact, long double for functions, 128-bit integers cut to the width. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/scalar.h"
#include "support/edges.h"

/* --- floats ------------------------------------------------------------------------------------------------------- */

static double exact_float(tn_scalar_op op, double x, double y) {
    switch (op) {
    case TN_SCALAR_NEG: return copysign(x, signbit(x) ? 1.0 : -1.0);
    case TN_SCALAR_ABS: return copysign(x, 1.0);
    case TN_SCALAR_SIGN: return isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0;
    case TN_SCALAR_FLOOR: return floor(x);
    case TN_SCALAR_CEIL: return -floor(-x);
    case TN_SCALAR_ROUND: return copysign(fabs(x) >= 0x1p52 || isnan(x) ? fabs(x) : fabs(x) + 0x1p52 - 0x1p52, x);
    case TN_SCALAR_TRUNC: return copysign(floor(fabs(x)), x);
    case TN_SCALAR_SQRT: return sqrt(x);
    case TN_SCALAR_RECIPROCAL: return 1 / x;
    case TN_SCALAR_ADD: return x + y;
    case TN_SCALAR_SUB: return x - y;
    case TN_SCALAR_MUL: return x * y;
    case TN_SCALAR_DIV: return x / y;
    case TN_SCALAR_REM: return fmod(x, y);
    case TN_SCALAR_MOD: {
        double r = fmod(x, y);
        if (r == 0)
            return copysign(0.0, y);
        return (r > 0 && y < 0) || (r < 0 && y > 0) ? r + y : r;
    }
    case TN_SCALAR_MIN:
        if (isnan(x) || isnan(y))
            return (double)NAN;
        return x == 0 && y == 0 ? (signbit(x) ? x : y) : x < y ? x : y;
    case TN_SCALAR_MAX:
        if (isnan(x) || isnan(y))
            return (double)NAN;
        return x == 0 && y == 0 ? (signbit(x) ? y : x) : x > y ? x : y;
    default: fail_msg("no formula for %s of floats", tn_scalar_describe(op)->name);
    }
    return 0;
}

static long double function(tn_scalar_op op, long double x, long double y) {
    switch (op) {
    case TN_SCALAR_RSQRT: return 1 / sqrtl(x);
    case TN_SCALAR_EXP: return expl(x);
    case TN_SCALAR_EXPM1: return expm1l(x);
    case TN_SCALAR_LOG: return logl(x);
    case TN_SCALAR_LOG1P: return log1pl(x);
    case TN_SCALAR_SIN: return sinl(x);
    case TN_SCALAR_COS: return cosl(x);
    case TN_SCALAR_TAN: return tanl(x);
    case TN_SCALAR_ASIN: return asinl(x);
    case TN_SCALAR_ACOS: return acosl(x);
    case TN_SCALAR_ATAN: return atanl(x);
    case TN_SCALAR_SINH: return sinhl(x);
    case TN_SCALAR_COSH: return coshl(x);
    case TN_SCALAR_TANH: return tanhl(x);
    case TN_SCALAR_ASINH: return asinhl(x);
    case TN_SCALAR_ACOSH: return acoshl(x);
    case TN_SCALAR_ATANH: return atanhl(x);
    case TN_SCALAR_ERF: return erfl(x);
    case TN_SCALAR_SIGMOID: return 1 / (1 + expl(-x));
    case TN_SCALAR_POW: /* of an infinity or zero, every huge power is as this even one: some powl are wrong there */
        return powl(x, fabsl(y) >= 0x1p60L && (isinf(x) || x == 0) && !isinf(y) ? copysignl(0x1p40L, y) : y);
    case TN_SCALAR_ATAN2: return atan2l(x, y);
    default: fail_msg("no formula for %s", tn_scalar_describe(op)->name);
    }
    return 0;
}

static bool holds(tn_scalar_op op, double x, double y, bool positive, bool negative) {
    switch (op) {
    case TN_SCALAR_IS_NAN: return x != x;
    case TN_SCALAR_IS_INF: return (positive && x > 1.7976931348623157e308) || (negative && x < -1.7976931348623157e308);
    case TN_SCALAR_IS_FINITE: return x - x == 0;
    case TN_SCALAR_EQUAL: return x == y;
    case TN_SCALAR_NOT_EQUAL: return !(x == y);
    case TN_SCALAR_LESS: return x < y;
    case TN_SCALAR_LESS_EQUAL: return x < y || x == y;
    case TN_SCALAR_GREATER: return y < x;
    case TN_SCALAR_GREATER_EQUAL: return y < x || x == y;
    default: fail_msg("no formula for %s", tn_scalar_describe(op)->name);
    }
    return false;
}

/* --- integers, as 128-bit values of their dtype ------------------------------------------------------------------- */

typedef __int128 wide;

static wide floor_div(wide x, wide y) {
    return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

/* x to the power y >= 0 modulo 2^64, from the top bit down. */
static uint64_t power(uint64_t x, uint64_t y) {
    uint64_t result = 1;
    for (int bit = 63; bit >= 0; bit--) {
        result *= result;
        if (y >> bit & 1)
            result *= x;
    }
    return result;
}

static wide integer(tn_scalar_op op, tn_dtype dtype, wide x, wide y) {
    int width = dtype == TN_BOOL ? 1 : tn_dtype_bits(dtype);
    switch (op) {
    case TN_SCALAR_NEG: return -x;
    case TN_SCALAR_ABS: return x < 0 ? -x : x;
    case TN_SCALAR_SIGN: return x < 0 ? -1 : x > 0;
    case TN_SCALAR_NOT: return 1 - x;
    case TN_SCALAR_BIT_NOT: return -x - 1;
    case TN_SCALAR_ADD: return x + y;
    case TN_SCALAR_SUB: return x - y;
    case TN_SCALAR_MUL: return (wide)((unsigned __int128)x * (unsigned __int128)y);
    case TN_SCALAR_DIV: return y == 0 ? 0 : x / y;
    case TN_SCALAR_MOD: return y == 0 ? x : x - y * floor_div(x, y);
    case TN_SCALAR_REM: return y == 0 ? x : x - y * (x / y);
    case TN_SCALAR_POW:
        if (y < 0)
            return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
        return (wide)power((uint64_t)x, (uint64_t)y);
    case TN_SCALAR_MIN: return x < y ? x : y;
    case TN_SCALAR_MAX: return x < y ? y : x;
    case TN_SCALAR_AND: return x & y;
    case TN_SCALAR_OR: return x | y;
    case TN_SCALAR_XOR: return x ^ y;
    case TN_SCALAR_SHL: return y < 0 || y >= width ? 0 : (wide)((unsigned __int128)x << (int)y);
    case TN_SCALAR_SHR: return y < 0 || y >= width ? (x < 0 ? -1 : 0) : floor_div(x, (wide)1 << (int)y);
    case TN_SCALAR_EQUAL: return x == y;
    case TN_SCALAR_NOT_EQUAL: return x != y;
    case TN_SCALAR_LESS: return x < y;
    case TN_SCALAR_LESS_EQUAL: return x <= y;
    case TN_SCALAR_GREATER: return x > y;
    case TN_SCALAR_GREATER_EQUAL: return x >= y;
    default: fail_msg("no formula for %s of integers", tn_scalar_describe(op)->name);
    }
    return 0;
}

static wide element(const tn_tensor *t, int64_t i) {
    int64_t value = op_get_i64(t, i);
    return t->dtype == TN_U64 ? (wide)(uint64_t)value : value;
}

/* --- the oracle --------------------------------------------------------------------------------------------------- */

static void oracle(const op_case *c, tn_tensor *out) {
    tn_scalar_op op = (tn_scalar_op)c->op->code;
    const tn_scalar_info *info = tn_scalar_describe(op);
    const tn_tensor *a = c->in[0], *b = c->inputs > 1 ? c->in[1] : c->in[0];
    tn_dtype dtype = (tn_dtype)a->dtype;
    bool positive = c->attrs == 0 || c->attr[0].as.i != 0, negative = c->attrs == 0 || c->attr[1].as.i != 0;
    for (int64_t i = 0; i < out->count; i++) {
        if (!tn_dtype_is_float(dtype)) {
            tn_store_i64((tn_dtype)out->dtype, out->data, i,
                         (int64_t)(uint64_t)integer(op, dtype, element(a, i), element(b, i)));
            continue;
        }
        double x = op_get(a, i), y = op_get(b, i);
        if (info->boolean)
            tn_store_i64(TN_BOOL, out->data, i, holds(op, x, y, positive, negative));
        else
            tn_store_f64(dtype, out->data, i,
                         info->traits & TN_EXACT ? exact_float(op, x, y) : (double)function(op, x, y));
    }
}

/* --- the cases ---------------------------------------------------------------------------------------------------- */

static op_case case_of(const tn_op *op, tn_dtype dtype) {
    op_case c = {.op = op, .inputs = (uint32_t)op->min_inputs, .oracle = oracle};
    /* bf16 rounds twice near its subnormals, as the definition says. libm is good to an ulp or two. */
    if (op->traits & TN_EXACT)
        c.ulps = dtype == TN_BF16 ? 1 : 0;
    else
        c.ulps = dtype == TN_F64 ? 3 : 1;
    return c;
}

static void check_dtype(op_harness *h, const tn_op *op, tn_dtype dtype) {
    static const int64_t empty[3] = {3, 0, 2}, shape[3] = {3, 5, 7}, row[1] = {1};
    op_case c = case_of(op, dtype);
    tn_tensor *edges = op_edges(h, dtype);
    int64_t n = edges->count;
    if (c.inputs == 1) {
        c.in[0] = edges;
    } else { /* every pair, by operands of stride 0 */
        const int64_t square[2] = {n, n};
        c.in[0] = op_expand(h, edges, 2, square, 0);
        c.in[1] = op_expand(h, edges, 2, square, 1);
    }
    op_check(h, &c);
    for (int64_t i = 0; i < 4 && i < n; i++) { /* rank 0 */
        for (uint32_t k = 0; k < c.inputs; k++) {
            c.in[k] = op_tensor(h, dtype, 0, NULL);
            size_t size = (size_t)tn_dtype_bits(dtype) / 8;
            memcpy(c.in[k]->data, (char *)edges->data + (size_t)((i + 3 * k) % n) * size, size);
        }
        op_check(h, &c);
    }
    for (uint32_t k = 0; k < c.inputs; k++)
        c.in[k] = op_tensor(h, dtype, 3, empty);
    op_check(h, &c);
    for (uint32_t k = 0; k < c.inputs; k++)
        c.in[k] = op_random(h, dtype, 3, shape, k > 0);
    op_check(h, &c);
    for (uint32_t k = 0; k < c.inputs; k++) /* one column against one row */
        c.in[k] = op_expand(h, op_random(h, dtype, 1, &shape[k], true), 2, shape, (int)k);
    op_check(h, &c);
    for (uint32_t k = 0; k < c.inputs; k++) /* rank 32 */
        c.in[k] = op_expand(h, op_random(h, dtype, 1, row, true), 32, (int64_t[32]){1, 1, 2, 1, [4 ... 30] = 1, 3}, -1);
    op_check(h, &c);
}

/* Large enough for several threads; and of 2^33 elements by stride 0, which must be refused, not made. */
static void check_large(op_harness *h, const tn_op *op, tn_dtype dtype) {
    static const int64_t large[2] = {3, 40000}, huge[2] = {(int64_t)1 << 16, (int64_t)1 << 17}, one[1] = {1};
    op_case c = case_of(op, dtype);
    for (uint32_t k = 0; k < c.inputs; k++)
        c.in[k] = op_random(h, dtype, 2, large, true);
    c.oracle = NULL;
    op_check(h, &c);
    for (uint32_t k = 0; k < c.inputs; k++)
        c.in[k] = op_expand(h, op_random(h, dtype, 1, one, true), 2, huge, -1);
    op_expect(h, &c, (size_t)64 << 20, TN_ERR_LIMIT);
    for (uint32_t k = 0; k < c.inputs; k++)
        c.in[k] = op_random(h, dtype, 1, one, true);
    op_check_failures(h, &c);
}

/* What must be refused when the graph is built. */
static void check_refusals(op_harness *h, const tn_op *op) {
    static const int64_t two[1] = {2}, three[1] = {3};
    tn_dtype admitted = TN_DTYPE_NONE;
    op_case c = case_of(op, TN_F32);
    for (int dtype = 1; dtype < TN_DTYPE_COUNT; dtype++) {
        if (tn_scalar_admits((tn_scalar_op)op->code, (tn_dtype)dtype)) {
            admitted = (tn_dtype)dtype;
            continue;
        }
        for (uint32_t k = 0; k < c.inputs; k++)
            c.in[k] = op_tensor(h, (tn_dtype)dtype, 1, two);
        op_expect(h, &c, 0, TN_ERR_MODEL);
    }
    if (c.inputs == 1)
        return;
    c.in[0] = op_tensor(h, admitted, 1, two);
    c.in[1] = op_tensor(h, admitted, 1, three);
    op_expect(h, &c, 0, TN_ERR_MODEL);
    c.in[1] = op_tensor(h, admitted, 0, NULL);
    op_expect(h, &c, 0, TN_ERR_MODEL);
    c.in[1] = op_tensor(h, admitted == TN_I64 ? TN_I32 : TN_I64, 1, two);
    op_expect(h, &c, 0, TN_ERR_MODEL);
}

static void check_is_inf(op_harness *h, const tn_op *op) {
    for (int i = 0; i < 4; i++) {
        op_case c = case_of(op, TN_F32);
        c.attrs = 2;
        c.attr[0] = TN_A_INT("positive", i & 1);
        c.attr[1] = TN_A_INT("negative", i >> 1);
        for (const tn_dtype *dtype = op_floats; *dtype != TN_DTYPE_NONE; dtype++) {
            c.in[0] = op_edges(h, *dtype);
            op_check(h, &c);
        }
    }
}

/* For each pair: whether the strings are equal, by their numbers. */
static const struct {
    const char *data;
    size_t length;
    int number;
} texts[] = {{"", 0, 0}, {"a", 1, 1}, {"ab", 2, 2}, {"a\0b", 3, 3}, {"a\0c", 3, 4}, {"a", 1, 1}, {NULL, 0, 0}};
enum { TEXTS = sizeof texts / sizeof *texts };

static void string_oracle(const op_case *c, tn_tensor *out) {
    for (int64_t i = 0; i < out->count; i++)
        ((uint8_t *)out->data)[i] =
            (texts[i / TEXTS].number == texts[i % TEXTS].number) == (c->op->code == TN_SCALAR_EQUAL);
}

static void check_strings(op_harness *h, const tn_op *op) {
    const int64_t n = TEXTS, square[2] = {TEXTS, TEXTS};
    tn_tensor *t = op_tensor(h, TN_STRING, 1, &n);
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(tn_tensor_set_string(t, i, texts[i].data, texts[i].length), TN_OK);
    op_case c = {.op = op, .inputs = 2, .oracle = string_oracle};
    c.in[0] = op_expand(h, t, 2, square, 0);
    c.in[1] = op_expand(h, t, 2, square, 1);
    op_check(h, &c);
}

void edges_elementwise(op_harness *h, const tn_op *op) {
    bool large = false;
    for (const tn_dtype *dtype = op_numbers; *dtype != TN_DTYPE_NONE; dtype++) {
        if (!tn_scalar_admits((tn_scalar_op)op->code, *dtype))
            continue;
        check_dtype(h, op, *dtype);
        if (!large)
            check_large(h, op, *dtype);
        large = true;
    }
    assert_true(large);
    check_refusals(h, op);
    if (op->code == TN_SCALAR_IS_INF)
        check_is_inf(h, op);
    if (tn_scalar_admits((tn_scalar_op)op->code, TN_STRING))
        check_strings(h, op);
}
