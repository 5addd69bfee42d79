/* Cases of select, cast and bitcast. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/scalar.h"
#include "support/edges.h"

/* --- select ------------------------------------------------------------------------------------------------------- */

static void select_oracle(const op_case *c, tn_tensor *out) {
    for (int64_t i = 0; i < out->count; i++) {
        const tn_tensor *from = c->in[op_get_i64(c->in[0], i) ? 1 : 2];
        if (out->dtype == TN_STRING) {
            tn_string text;
            assert_int_equal(tn_tensor_get_string(from, i, &text), TN_OK);
            assert_int_equal(tn_tensor_set_string(out, i, text.data, text.length), TN_OK);
            continue;
        }
        assert_true(from->contiguous);
        size_t size = (size_t)tn_dtype_bits((tn_dtype)out->dtype) / 8;
        memcpy((char *)out->data + (size_t)i * size, (char *)from->data + (size_t)i * size, size);
    }
}

static void check_select(op_harness *h, const tn_op *op) {
    static const int64_t shape[3] = {4, 3, 5}, empty[2] = {0, 4}, large[2] = {3, 40000}, huge[2] = {1 << 16, 1 << 17};
    for (int dtype = 1; dtype < TN_DTYPE_COUNT; dtype++) {
        op_case c = {.op = op, .inputs = 3, .oracle = select_oracle};
        if (!tn_scalar_admits(TN_SCALAR_SELECT, (tn_dtype)dtype)) {
            c.in[0] = op_tensor(h, TN_BOOL, 3, shape);
            c.in[1] = c.in[2] = op_tensor(h, (tn_dtype)dtype, 3, shape);
            op_expect(h, &c, 0, TN_ERR_MODEL);
            continue;
        }
        c.in[0] = op_random(h, TN_BOOL, 3, shape, true);
        for (int k = 1; k < 3; k++) {
            c.in[k] = op_tensor(h, (tn_dtype)dtype, 3, shape);
            for (size_t i = 0; dtype != TN_STRING && i < tn_tensor_bytes(c.in[k]); i++)
                ((uint8_t *)c.in[k]->data)[i] = (uint8_t)op_random_bits(h) & (dtype == TN_BOOL ? 1 : 255);
            for (int64_t i = 0; dtype == TN_STRING && i < c.in[k]->count; i++)
                assert_int_equal(tn_tensor_set_string(c.in[k], i, &"selected"[i % 6], (size_t)(i % 3)), TN_OK);
        }
        if (tn_dtype_is_float((tn_dtype)dtype) || tn_dtype_is_complex((tn_dtype)dtype))
            c.oracle = tn_scalar_class((tn_dtype)dtype) == TN_ADMIT_FLOAT ? select_oracle : NULL;
        op_check(h, &c);
        op_check_failures(h, &c);
        c.in[0] = op_tensor(h, TN_BOOL, 2, empty);
        c.in[1] = c.in[2] = op_tensor(h, (tn_dtype)dtype, 2, empty);
        op_check(h, &c);
        c.in[0] = op_tensor(h, TN_BOOL, 0, NULL);
        c.in[1] = c.in[2] = op_tensor(h, (tn_dtype)dtype, 0, NULL);
        op_check(h, &c);
    }
    op_case c = {.op = op, .inputs = 3, .oracle = select_oracle};
    c.in[0] = op_random(h, TN_BOOL, 2, large, true);
    c.in[1] = op_random(h, TN_F32, 2, large, true);
    c.in[2] = op_random(h, TN_F32, 2, large, true);
    op_check(h, &c);
    c.in[0] = op_random(h, TN_U8, 2, large, true);
    op_expect(h, &c, 0, TN_ERR_MODEL);
    c.in[0] = op_random(h, TN_BOOL, 1, large, true);
    op_expect(h, &c, 0, TN_ERR_MODEL);
    c.in[0] = op_expand(h, op_random(h, TN_BOOL, 1, (int64_t[]){1}, true), 2, huge, -1);
    c.in[1] = c.in[2] = op_expand(h, op_random(h, TN_F64, 1, (int64_t[]){1}, true), 2, huge, -1);
    op_expect(h, &c, (size_t)64 << 20, TN_ERR_LIMIT);
}

/* --- cast --------------------------------------------------------------------------------------------------------- */

/* Floats as the textbook has them. */
typedef struct format {
    tn_dtype dtype;
    int mantissa, least; /* fraction bits, exponent of the smallest normal */
    double largest;
    bool infinities, nan;
} format;
static const format formats[] = {
    {TN_F64, 52, -1022, 1.7976931348623157e308, true, true},
    {TN_F32, 23, -126, 3.4028234663852886e38, true, true},
    {TN_F16, 10, -14, 65504, true, true},
    {TN_BF16, 7, -126, 3.3895313892515355e38, true, true},
    {TN_F8E4M3FN, 3, -6, 448, false, true},
    {TN_F8E4M3FNUZ, 3, -7, 240, false, true},
    {TN_F8E5M2, 2, -14, 57344, true, true},
    {TN_F8E5M2FNUZ, 2, -15, 57344, false, true},
    {TN_F4E2M1, 1, 0, 6, false, false},
};

static const format *format_of(tn_dtype dtype) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].dtype == dtype)
            return &formats[i];
    return NULL;
}

/* Nearest multiple of the spacing at x, ties to even; may pass the largest. long double holds every 64-bit integer
   exactly. */
static double round_to(const format *f, long double x) {
    if (x == 0 || isnan(x) || isinf(x))
        return (double)x;
    int exponent;
    frexpl(x, &exponent);
    exponent = exponent - 1 < f->least ? f->least : exponent - 1;
    long double unit = ldexpl(1, exponent - f->mantissa);
    return (double)(rintl(x / unit) * unit);
}

static double narrow(const format *f, long double x, bool saturate) {
    double value = round_to(f, x);
    bool eight = f->mantissa < 7;
    if (isnan(x))
        return f->nan ? (double)NAN : -0.0;
    if (fabs(value) <= f->largest)
        return value == 0 && (f->dtype == TN_F8E4M3FNUZ || f->dtype == TN_F8E5M2FNUZ) ? 0 : value;
    if ((eight && saturate) || !f->nan)
        return copysign(f->largest, value);
    return f->infinities ? copysign((double)INFINITY, value) : (double)NAN;
}

static double power_of_two(long double x, bool saturate, char round) {
    if (isnan(x))
        return (double)NAN;
    x = fabsl(x);
    if (isinf(x) || x < 0x1p-127L)
        return !saturate ? (double)NAN : isinf(x) ? 0x1p127 : 0x1p-127;
    double below = 0x1p-127;
    while (below * 2 <= x && below < 0x1p200)
        below *= 2;
    bool up = round == 'u' ? x > below : round == 'n' ? x >= 1.5 * below : false;
    double value = up ? 2 * below : below;
    return value <= 0x1p127 ? value : saturate ? 0x1p127 : (double)NAN;
}

typedef struct cast_options {
    bool saturate;
    char round;
} cast_options;

static void store_whole(tn_dtype to, void *data, int64_t i, double x) {
    double whole = x < 0 ? ceil(x) : floor(x);
    if (isnan(x))
        tn_store_i64(to, data, i, 0);
    else if (whole >= -0x1p63 && whole < 0x1p63)
        tn_store_i64(to, data, i, (int64_t)whole);
    else if (to == TN_U64 && whole > 0 && whole < 0x1p64)
        tn_store_i64(to, data, i, (int64_t)((uint64_t)(whole / 2048) << 11)); /* 53 bits at most: exact */
    else
        tn_store_i64(to, data, i, whole > 0 ? (int64_t)tn_dtype_max_u64(to) : tn_dtype_min_i64(to));
}

static void cast_oracle(const op_case *c, tn_tensor *out) {
    const cast_options *options = c->ctx;
    const tn_tensor *x = c->in[0];
    tn_dtype from = (tn_dtype)x->dtype, to = (tn_dtype)out->dtype;
    for (int64_t i = 0; i < out->count; i++) {
        long double value = tn_dtype_is_float(from) ? (long double)op_get(x, i)
                            : from == TN_U64        ? (long double)(uint64_t)op_get_i64(x, i)
                                                    : (long double)op_get_i64(x, i);
        if (to == TN_BOOL)
            tn_store_i64(to, out->data, i, value != 0);
        else if (tn_dtype_is_float(to))
            tn_store_f64(to, out->data, i,
                         to == TN_F8E8M0 ? power_of_two(value, options->saturate, options->round)
                                         : narrow(format_of(to), value, options->saturate));
        else if (tn_dtype_is_float(from))
            store_whole(to, out->data, i, (double)value);
        else
            tn_store_i64(to, out->data, i, op_get_i64(x, i));
    }
}

/* Where the standard leaves NaN or infinity in an 8-bit float, tn_store_f64 (which saturates) cannot put them: look
   by hand. */
static void check_cast(op_harness *h, const tn_op *op, tn_tensor *x, tn_dtype to, cast_options options) {
    static const char *const rounds[] = {"up", "down", "nearest"};
    const char *round = rounds[options.round == 'u' ? 0 : options.round == 'd' ? 1 : 2];
    op_case c = {.op = op, .inputs = 1, .in = {x}, .attrs = 3, .ctx = &options};
    c.attr[0] = TN_A_DTYPE("to", to);
    c.attr[1] = TN_A_INT("saturate", options.saturate);
    c.attr[2] = TN_A_STRING("round_mode", round, strlen(round));
    bool eight = tn_dtype_is_float(to) && tn_dtype_bits(to) <= 8;
    c.oracle = eight ? NULL : cast_oracle;
    op_check(h, &c);
    if (!eight)
        return;
    tn_tensor *out;
    assert_int_equal(op_try(h, &c, 0, &out), TN_OK);
    for (int64_t i = 0; i < out->count; i++) {
        bool whole = !tn_dtype_is_float((tn_dtype)x->dtype);
        long double value = !whole               ? (long double)op_get(x, i)
                            : x->dtype == TN_U64 ? (long double)(uint64_t)op_get_i64(x, i)
                                                 : (long double)op_get_i64(x, i);
        double want = to == TN_F8E8M0 ? power_of_two(value, options.saturate, options.round)
                                      : narrow(format_of(to), value, options.saturate);
        double got = op_get(out, i);
        if (isnan(want) ? !isnan(got) : got != want || signbit(got) != signbit(want))
            fail_msg("cast %s to %s (saturate %d, %s): element %d is %d/1000, not %d/1000",
                     tn_dtype_name((tn_dtype)x->dtype), tn_dtype_name(to), options.saturate, round, (int)i,
                     (int)(got * 1000), (int)(want * 1000));
    }
    tn_tensor_destroy(out);
}

static bool castable(tn_dtype dtype) {
    return tn_dtype_bits(dtype) > 0 && dtype != TN_STRING && !tn_dtype_is_complex(dtype);
}

/* Every element of a dtype of 8 bits or fewer; else its edges. */
static tn_tensor *elements_of(op_harness *h, tn_dtype dtype) {
    int bits = tn_dtype_bits(dtype);
    if (bits > 8 || dtype == TN_BOOL)
        return op_edges(h, dtype);
    int64_t count = (int64_t)1 << bits;
    tn_tensor *t = op_tensor(h, dtype, 1, &count);
    for (int64_t i = 0; i < count; i++)
        if (bits == 8)
            ((uint8_t *)t->data)[i] = (uint8_t)i;
        else
            ((uint8_t *)t->data)[i * bits / 8] |= (uint8_t)(i << i * bits % 8);
    return t;
}

static void check_casts(op_harness *h, const tn_op *op) {
    static const int64_t odd[2] = {3, 5}, empty[1] = {0}, large[2] = {3, 40001};
    for (int from = 1; from < TN_DTYPE_COUNT; from++)
        for (int to = 1; to < TN_DTYPE_COUNT; to++) {
            op_case c = {.op = op, .inputs = 1, .attrs = 1, .attr = {TN_A_DTYPE("to", to)}};
            if (!castable((tn_dtype)from) || !castable((tn_dtype)to)) {
                c.in[0] = op_tensor(h, (tn_dtype)from, 2, odd);
                op_expect(h, &c, 0, TN_ERR_UNSUPPORTED);
                continue;
            }
            tn_tensor *x = elements_of(h, (tn_dtype)from);
            check_cast(h, op, x, (tn_dtype)to, (cast_options){true, 'u'});
            if (tn_scalar_class((tn_dtype)to) == TN_ADMIT_OTHER)
                check_cast(h, op, x, (tn_dtype)to, (cast_options){false, 'u'});
            if (to == TN_F8E8M0)
                for (int i = 0; i < 4; i++)
                    check_cast(h, op, x, (tn_dtype)to, (cast_options){i & 1, i & 2 ? 'd' : 'n'});
            c.in[0] = op_random(h, (tn_dtype)from, 2, odd, true); /* packed: an odd number of elements */
            op_check(h, &c);
            op_check_failures(h, &c);
            c.in[0] = op_tensor(h, (tn_dtype)from, 1, empty);
            op_check(h, &c);
            c.in[0] = op_random(h, (tn_dtype)from, 0, NULL, true);
            op_check(h, &c);
        }
    static const tn_dtype pairs[][2] = {{TN_F32, TN_F16}, {TN_I4, TN_I8}, {TN_F32, TN_U2}, {TN_U2, TN_U4}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        check_cast(h, op, op_random(h, pairs[i][0], 2, large, true), pairs[i][1], (cast_options){true, 'u'});
}

/* --- bitcast ------------------------------------------------------------------------------------------------------ */

static void bitcast_oracle(const op_case *c, tn_tensor *out) {
    assert_true(c->in[0]->contiguous);
    memcpy(out->data, c->in[0]->data, tn_tensor_bytes(out));
}

static void check_bitcasts(op_harness *h, const tn_op *op) {
    static const int64_t shape[2] = {3, 5};
    for (int from = 1; from < TN_DTYPE_COUNT; from++)
        for (int to = 1; to < TN_DTYPE_COUNT; to++) {
            op_case c = {.op = op, .inputs = 1, .attrs = 1, .attr = {TN_A_DTYPE("to", to)}};
            c.in[0] = op_tensor(h, (tn_dtype)from, 2, shape);
            bool same = tn_dtype_bits((tn_dtype)from) == tn_dtype_bits((tn_dtype)to);
            if (from == TN_STRING || to == TN_STRING || !same || (to == TN_BOOL && from != TN_BOOL)) {
                op_expect(h, &c, 0, TN_ERR_MODEL);
                continue;
            }
            for (size_t i = 0; i < tn_tensor_bytes(c.in[0]); i++)
                ((uint8_t *)c.in[0]->data)[i] = (uint8_t)op_random_bits(h) & (from == TN_BOOL ? 1 : 255);
            c.oracle = tn_dtype_is_float((tn_dtype)to) || tn_dtype_is_complex((tn_dtype)to) ? NULL : bitcast_oracle;
            op_check(h, &c);
            op_check_failures(h, &c);
        }
}

void edges_select_cast(op_harness *h, const tn_op *op) {
    switch (op->code) {
    case TN_SCALAR_SELECT: check_select(h, op); break;
    case TN_SCALAR_CAST: check_casts(h, op); break;
    case TN_SCALAR_BITCAST: check_bitcasts(h, op); break;
    default: fail_msg("no cases for %s", op->name);
    }
}
