/* Quantised operators against plain loops: every type, one scale, scales along an axis and for blocks, shapes known or not. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/one_node.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static uint64_t state = 88172645463325252u;
static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}
static int64_t between(int64_t low, int64_t high) {
    return low + (int64_t)(draw() % (uint64_t)(high - low + 1));
}

static const node_form forms[] = {NODE_KNOWN, NODE_FREE, NODE_CONSTANT};

static void check(tn_status status) {
    if (status != TN_OK)
        fail_msg("%s", tn_error_message());
}

static void free_all(uint32_t n, tn_tensor **list) {
    for (uint32_t i = 0; i < n; i++)
        tn_tensor_destroy(list[i]);
}

/* Integers from `low` to `high`. */
static tn_tensor *whole_numbers(tn_dtype dtype, int rank, const int64_t *dims, int64_t low, int64_t high) {
    tn_tensor *t = tn_tensor_create(dtype, rank, dims);
    for (int64_t i = 0; i < t->count; i++)
        tn_store_i64(dtype, t->data, i, between(low, high));
    return t;
}

/* Scales: powers of two and others. */
static tn_tensor *scales(tn_dtype dtype, int rank, const int64_t *dims) {
    tn_tensor *t = tn_tensor_create(dtype, rank, dims);
    for (int64_t i = 0; i < t->count; i++)
        tn_store_f64(dtype, t->data, i, (double)between(1, 40) / 16);
    return t;
}

typedef enum grain { WHOLE, ALONG, BLOCKED } grain;

/* Of x [3, 7]: the element of the scale for position i, with blocks of 3 along axis 1. */
static int64_t scale_of(grain g, int64_t i) {
    return g == WHOLE ? 0 : g == ALONG ? i % 7 : i / 7 * 3 + i % 7 / 3;
}

static tn_text grain_attrs(grain g) {
    tn_text attrs = message();
    if (g != WHOLE)
        attr_int(&attrs, "axis", -1);
    if (g == BLOCKED)
        attr_int(&attrs, "block_size", 3);
    return attrs;
}

static int grain_shape(grain g, int64_t dims[2]) {
    dims[0] = g == ALONG ? 7 : 3;
    dims[1] = 3;
    return (int)g;
}

static const tn_dtype quantised[] = {TN_U8, TN_I8, TN_U16, TN_I16, TN_U4, TN_I4, TN_U2, TN_I2};

static void test_quantize(void **unused) {
    (void)unused;
    for (size_t t = 0; t < sizeof quantised / sizeof *quantised; t++)
        for (int g = 0; g < 3; g++)
            for (size_t f = 0; f < 3; f++) {
                tn_dtype to = quantised[t];
                int64_t low = tn_dtype_min_i64(to), high = (int64_t)tn_dtype_max_u64(to), dims[2];
                int rank = grain_shape((grain)g, dims);
                tn_tensor *in[3] = {tn_tensor_create(TN_F32, 2, DIMS(3, 7)), scales(TN_F32, rank, dims),
                                    whole_numbers(to, rank, dims, low, high)},
                          *out = NULL;
                for (int64_t i = 0; i < 21; i++) /* many ties, some far outside */
                    ((float *)in[0]->data)[i] = i == 20   ? INFINITY
                                                : i == 19 ? -1e30f
                                                          : (float)between(4 * low - 9, 4 * high) / 8;
                check(run_one_node("QuantizeLinear", 25, grain_attrs((grain)g), forms[f], 3, in, "y", &out));
                assert_int_equal(out->dtype, to);
                for (int64_t i = 0; i < 21; i++) {
                    int64_t s = scale_of((grain)g, i);
                    double q = rintf(((float *)in[0]->data)[i] / ((float *)in[1]->data)[s]) +
                               (double)tn_load_i64(to, in[2]->data, s);
                    q = q < (double)low ? (double)low : q > (double)high ? (double)high : q;
                    assert_int_equal(tn_tensor_get_i64(out, i), (int64_t)q);
                }
                tn_tensor_destroy(out);
                free_all(3, in);
            }
}

static void test_dequantize(void **unused) {
    (void)unused;
    for (size_t t = 0; t < sizeof quantised / sizeof *quantised; t++)
        for (int g = 0; g < 3; g++)
            for (size_t f = 0; f < 3; f++) {
                tn_dtype from = quantised[t];
                int64_t low = tn_dtype_min_i64(from), high = (int64_t)tn_dtype_max_u64(from), dims[2];
                int rank = grain_shape((grain)g, dims);
                tn_tensor *in[3] = {whole_numbers(from, 2, DIMS(3, 7), low, high), scales(TN_F16, rank, dims),
                                    draw() % 4 ? whole_numbers(from, rank, dims, low, high) : NULL},
                          *out = NULL;
                check(run_one_node("DequantizeLinear", 25, grain_attrs((grain)g), forms[f], 3, in, "y", &out));
                assert_int_equal(out->dtype, TN_F16);
                for (int64_t i = 0; i < 21; i++) {
                    int64_t s = scale_of((grain)g, i);
                    float d =
                        (float)(tn_load_i64(from, in[0]->data, i) - (in[2] ? tn_load_i64(from, in[2]->data, s) : 0));
                    float wanted = tn_f16_to_f32(tn_f32_to_f16(d * (float)tn_load_f64(TN_F16, in[1]->data, s)));
                    assert_true((float)tn_tensor_get_f64(out, i) == wanted);
                }
                tn_tensor_destroy(out);
                free_all(3, in);
            }
}

/* Floats of 8 and 4 bits: what they hold survives; the type comes from output_dtype; without saturation infinities stay. */
static void test_small_floats(void **unused) {
    (void)unused;
    static const tn_dtype types[] = {TN_F8E4M3FN, TN_F8E4M3FNUZ, TN_F8E5M2, TN_F8E5M2FNUZ, TN_F4E2M1};
    for (size_t t = 0; t < 5; t++) {
        tn_text attrs = message();
        attr_int(&attrs, "output_dtype", types[t]);
        tn_tensor *in[2] = {tn_tensor_from_f32(1, DIMS(4), (const float[]){3, -1, 0.5f, 1e9f}),
                            tn_tensor_from_f32(0, NULL, (const float[]){0.5f})},
                  *q = NULL, *y = NULL;
        check(run_one_node("QuantizeLinear", 23, attrs, NODE_KNOWN, 2, in, "y", &q));
        assert_int_equal(q->dtype, types[t]);
        check(run_one_node("DequantizeLinear", 23, message(), NODE_FREE, 2, (tn_tensor *[]){q, in[1]}, "y", &y));
        for (int64_t i = 0; i < 3; i++)
            assert_true(tn_tensor_get_f64(y, i) == tn_tensor_get_f64(in[0], i));
        assert_true(isfinite(tn_tensor_get_f64(y, 3)));
        tn_tensor_destroy(q);
        tn_tensor_destroy(y);
        attrs = message();
        attr_int(&attrs, "output_dtype", types[t]);
        attr_int(&attrs, "saturate", 0);
        check(run_one_node("QuantizeLinear", 23, attrs, NODE_KNOWN, 2, in, "y", &q));
        assert_true(types[t] == TN_F4E2M1 || !isfinite(tn_tensor_get_f64(q, 3)));
        tn_tensor_destroy(q);
        free_all(2, in);
    }
}

/* The scale's dtype, or `precision`, says what the quotient is rounded to: 2049 / 1 is 2048 in f16. */
static void test_precision(void **unused) {
    (void)unused;
    for (int wide = 0; wide < 2; wide++) {
        tn_text attrs = message();
        attr_int(&attrs, "output_dtype", TN_U16);
        if (wide)
            attr_int(&attrs, "precision", TN_F32);
        tn_tensor *scale = tn_tensor_create(TN_F16, 0, NULL), *out = NULL;
        tn_store_f64(TN_F16, scale->data, 0, 1);
        tn_tensor *in[2] = {tn_tensor_from_f32(1, DIMS(1), (const float[]){2049}), scale};
        check(run_one_node("QuantizeLinear", 23, attrs, NODE_KNOWN, 2, in, "y", &out));
        assert_int_equal(tn_tensor_get_i64(out, 0), wide ? 2049 : 2048);
        tn_tensor_destroy(out);
        free_all(2, in);
    }
}

static void test_dynamic(void **unused) {
    (void)unused;
    static const float values[2][4] = {{-1, 0, 1.5f, 4}, {0, 0, 0, 0}};
    for (int k = 0; k < 2; k++) {
        tn_tensor *in = tn_tensor_from_f32(1, DIMS(4), values[k]), *out[3];
        check(run_one_node("DynamicQuantizeLinear", 11, message(), NODE_FREE, 1, &in, "y,s,z", out));
        float scale = k ? 0 : 5.0f / 255;
        assert_true((float)tn_tensor_get_f64(out[1], 0) == scale);
        assert_int_equal(tn_tensor_get_i64(out[2], 0), k ? 0 : 51);
        for (int64_t i = 0; i < 4; i++)
            assert_int_equal(tn_tensor_get_i64(out[0], i), k ? 0 : (int64_t)rintf(values[0][i] / scale) + 51);
        free_all(3, out);
        tn_tensor_destroy(in);
    }
}

/* --- products ------------------------------------------------------------------------------------------------------------------ */

/* a [2, 4, 5] x b [5, 3]: zero points for each row and each column. */
static void test_matmul(void **unused) {
    (void)unused;
    static const tn_dtype types[] = {TN_U8, TN_I8};
    for (int trial = 0; trial < 48; trial++) {
        tn_dtype p = types[trial & 1], q = types[trial >> 1 & 1];
        bool lines = trial & 4, quant = trial & 8, points = trial % 3 || quant;
        tn_tensor *a = whole_numbers(p, 3, DIMS(2, 4, 5), -300, 300), *b = whole_numbers(q, 2, DIMS(5, 3), -300, 300);
        tn_tensor *za = points ? whole_numbers(p, lines ? 3 : 0, DIMS(2, 4, 1), -300, 300) : NULL,
                  *zb = points ? whole_numbers(q, lines ? 1 : 0, DIMS(3), -300, 300) : NULL;
        tn_tensor *sa = scales(TN_F32, lines ? 3 : 0, DIMS(2, 4, 1)), *sb = scales(TN_F32, lines ? 1 : 0, DIMS(3)),
                  *sy = tn_tensor_from_f32(0, NULL, (const float[]){100}), *zy = whole_numbers(p, 0, NULL, -300, 300),
                  *out;
        tn_tensor *plain[4] = {a, b, za, zb}, *full[8] = {a, sa, za, b, sb, zb, sy, zy};
        check(run_one_node(quant ? "QLinearMatMul" : "MatMulInteger", 21, message(), forms[trial % 3], quant ? 8 : 4,
                           quant ? full : plain, "y", &out));
        assert_int_equal(out->dtype, quant ? p : TN_I32);
        for (int64_t i = 0; i < 24; i++) {
            int64_t row = i / 3, column = i % 3, sum = 0;
            for (int64_t k = 0; k < 5; k++)
                sum += (tn_tensor_get_i64(a, row * 5 + k) - (za ? tn_tensor_get_i64(za, lines ? row : 0) : 0)) *
                       (tn_tensor_get_i64(b, k * 3 + column) - (zb ? tn_tensor_get_i64(zb, lines ? column : 0) : 0));
            if (quant) {
                float factor = (float)tn_tensor_get_f64(sa, lines ? row : 0) *
                               (float)tn_tensor_get_f64(sb, lines ? column : 0) / 100;
                sum = (int64_t)rint((double)sum * (double)factor) + tn_tensor_get_i64(zy, 0);
                int64_t low = tn_dtype_min_i64(p), high = (int64_t)tn_dtype_max_u64(p);
                sum = sum < low ? low : sum > high ? high : sum;
            }
            assert_int_equal(tn_tensor_get_i64(out, i), sum);
        }
        tn_tensor_destroy(out);
        free_all(8, full);
    }
}

/* Sums of i32 wrap; products of extremes do not saturate. */
static void test_accumulator(void **unused) {
    (void)unused;
    const int64_t depth = 40000;
    tn_tensor *in[2] = {whole_numbers(TN_U8, 2, DIMS(1, depth), 255, 255),
                        whole_numbers(TN_U8, 2, DIMS(depth, 1), 255, 255)},
              *out;
    check(run_one_node("MatMulInteger", 10, message(), NODE_KNOWN, 2, in, "y", &out));
    assert_int_equal(tn_tensor_get_i64(out, 0), (int32_t)(uint32_t)(depth * 255 * 255));
    tn_tensor_destroy(out);
    free_all(2, in);
}

/* x [1, 4, 5], w [6, 2, 3], 2 groups, padding 1, stride 2. */
static void test_convolution(void **unused) {
    (void)unused;
    for (int trial = 0; trial < 24; trial++) {
        bool quant = trial & 1, channels = trial & 2;
        tn_text attrs = message();
        attr_ints(&attrs, "pads", 2, DIMS(1, 1));
        attr_ints(&attrs, "strides", 1, DIMS(2));
        attr_int(&attrs, "group", 2);
        tn_tensor *x = whole_numbers(TN_U8, 3, DIMS(1, 4, 5), 0, 255),
                  *w = whole_numbers(TN_I8, 3, DIMS(6, 2, 3), -128, 127);
        tn_tensor *zx = whole_numbers(TN_U8, 0, NULL, 0, 255), *zw = whole_numbers(TN_I8, channels, DIMS(6), -128, 127);
        tn_tensor *sx = scales(TN_F32, 0, NULL), *sw = scales(TN_F32, channels, DIMS(6)), *out;
        tn_tensor *sy = tn_tensor_from_f32(0, NULL, (const float[]){900}),
                  *zy = whole_numbers(TN_I8, 0, NULL, -128, 127);
        tn_tensor *bias = whole_numbers(TN_I32, 1, DIMS(6), -5000, 5000);
        tn_tensor *plain[4] = {x, w, zx, zw}, *full[9] = {x, sx, zx, w, sw, zw, sy, zy, bias};
        check(run_one_node(quant ? "QLinearConv" : "ConvInteger", 10, attrs, forms[trial % 3], quant ? 9 : 4,
                           quant ? full : plain, "y", &out));
        assert_int_equal(out->count, 6 * 3);
        for (int64_t i = 0; i < 18; i++) {
            int64_t m = i / 3, at = i % 3 * 2 - 1, sum = quant ? tn_tensor_get_i64(bias, m) : 0;
            for (int64_t c = 0; c < 2; c++)
                for (int64_t k = 0; k < 3; k++)
                    if (at + k >= 0 && at + k < 5)
                        sum += (tn_tensor_get_i64(x, (m / 3 * 2 + c) * 5 + at + k) - tn_tensor_get_i64(zx, 0)) *
                               (tn_tensor_get_i64(w, (m * 2 + c) * 3 + k) - tn_tensor_get_i64(zw, channels ? m : 0));
            if (quant) {
                float factor = (float)tn_tensor_get_f64(sx, 0) * (float)tn_tensor_get_f64(sw, channels ? m : 0) / 900;
                sum = (int64_t)rint((double)sum * (double)factor) + tn_tensor_get_i64(zy, 0);
                sum = sum < -128 ? -128 : sum > 127 ? 127 : sum;
            }
            assert_int_equal(tn_tensor_get_i64(out, i), sum);
        }
        tn_tensor_destroy(out);
        free_all(9, full);
    }
}

/* --- packed elements move as others do -------------------------------------------------------------------------------------------- */

static tn_tensor *converted(const tn_tensor *t, tn_dtype to) {
    tn_tensor *c = tn_tensor_create(to, t->rank, t->dims);
    for (int64_t i = 0; i < t->count; i++)
        tn_store_i64(to, c->data, i, tn_tensor_get_i64(t, i));
    return c;
}

/* The same node on packed elements and on the same numbers as i8 or u8. */
static void moves_alike(const char *op, int opset, const char *ints, uint32_t n_ints, const int64_t *values, int rank,
                        const int64_t *dims, uint32_t tensors, uint32_t n, tn_tensor *const *more) {
    static const tn_dtype types[] = {TN_U4, TN_I4, TN_U2, TN_I2};
    for (int t = 0; t < 4; t++)
        for (int f = 0; f < 2; f++) {
            tn_dtype packed = types[t], plain = tn_dtype_is_signed(packed) ? TN_I8 : TN_U8;
            tn_tensor *a[NODE_INPUTS] = {NULL}, *b[NODE_INPUTS] = {NULL}, *x, *y;
            for (uint32_t i = 0; i < tensors; i++) {
                a[i] = whole_numbers(packed, rank, dims, tn_dtype_min_i64(packed), (int64_t)tn_dtype_max_u64(packed));
                b[i] = converted(a[i], plain);
            }
            for (uint32_t i = 0; i < n; i++)
                a[tensors + i] = b[tensors + i] = more[i];
            for (int k = 0; k < 2; k++) {
                tn_text attrs = message();
                if (ints && n_ints == UINT32_MAX)
                    attr_int(&attrs, ints, values[0]);
                else if (ints)
                    attr_ints(&attrs, ints, n_ints, values);
                check(run_one_node(op, opset, attrs, f ? NODE_CONSTANT : NODE_KNOWN, tensors + n, k ? b : a, "y",
                                   k ? &y : &x));
            }
            assert_int_equal(x->dtype, packed);
            assert_int_equal(x->count, y->count);
            assert_memory_equal(x->dims, y->dims, x->rank * sizeof *x->dims);
            for (int64_t i = 0; i < x->count; i++)
                assert_int_equal(tn_tensor_get_i64(x, i), tn_tensor_get_i64(y, i));
            free_all(tensors, a);
            free_all(tensors, b);
            tn_tensor_destroy(x);
            tn_tensor_destroy(y);
        }
    free_all(n, (tn_tensor **)(uintptr_t)more);
}

static void test_packed(void **unused) {
    (void)unused;
    const int64_t *dims = DIMS(3, 1, 5), one = 1;
#define ONE(op, opset, ints, n, values) moves_alike(op, opset, ints, n, values, 3, dims, 1, 0, NULL)
#define MORE(op, opset, ...)                          \
    moves_alike(op, opset, NULL, 0, NULL, 3, dims, 1, \
                (uint32_t)(sizeof((tn_tensor *[]){__VA_ARGS__}) / sizeof(tn_tensor *)), (tn_tensor *[]){__VA_ARGS__})
    ONE("Identity", 21, NULL, 0, NULL);
    ONE("Transpose", 21, "perm", 3, DIMS(2, 0, 1));
    ONE("Flatten", 21, "axis", UINT32_MAX, &one);
    MORE("Reshape", 21, tn_tensor_from_i64(2, DIMS(5, -1)));
    MORE("Squeeze", 21, tn_tensor_from_i64(1, DIMS(1)));
    MORE("Unsqueeze", 21, tn_tensor_from_i64(1, DIMS(0)));
    MORE("Expand", 13, tn_tensor_from_i64(3, DIMS(3, 2, 5)));
    MORE("Tile", 13, tn_tensor_from_i64(3, DIMS(2, 1, 3)));
    MORE("Gather", 13, tn_tensor_from_i64(3, DIMS(2, -1, 0)));
    MORE("Pad", 21, tn_tensor_from_i64(6, DIMS(1, 0, 2, 0, 1, 1)));
    MORE("Slice", 13, tn_tensor_from_i64(2, DIMS(2, 1)), tn_tensor_from_i64(2, DIMS(-9, 4)),
         tn_tensor_from_i64(2, DIMS(0, 2)), tn_tensor_from_i64(2, DIMS(-1, 2)));
    moves_alike("Concat", 13, "axis", UINT32_MAX, &one, 3, dims, 3, 0, NULL);
}

/* --- what is refused ------------------------------------------------------------------------------------------------------------- */

static void refused(const char *op, int opset, tn_text attrs, uint32_t n, tn_tensor **in, const char *says) {
    tn_tensor *out = NULL;
    tn_status status = run_one_node(op, opset, attrs, NODE_KNOWN, n, in, "y", &out);
    if (status != TN_ERR_MODEL || !strstr(tn_error_message(), says))
        fail_msg("status %d: %s", (int)status, tn_error_message());
    free_all(n, in);
}

static void test_refused(void **unused) {
    (void)unused;
    tn_text attrs = message();
    attr_int(&attrs, "block_size", 3);
    refused("DequantizeLinear", 20, attrs, 2,
            (tn_tensor *[]){whole_numbers(TN_I8, 1, DIMS(6), 0, 9), scales(TN_F32, 1, DIMS(2))}, "block_size");
    attrs = message();
    attr_int(&attrs, "block_size", 3);
    attr_int(&attrs, "axis", 0);
    refused("DequantizeLinear", 21, attrs, 2,
            (tn_tensor *[]){whole_numbers(TN_I8, 1, DIMS(6), 0, 9), scales(TN_F32, 1, DIMS(3))}, "size on axis 0");
    refused("DequantizeLinear", 13, message(), 2,
            (tn_tensor *[]){whole_numbers(TN_I8, 2, DIMS(2, 6), 0, 9), scales(TN_F32, 1, DIMS(2))},
            "one entry for each");
    refused("DequantizeLinear", 13, message(), 2,
            (tn_tensor *[]){whole_numbers(TN_I8, 1, DIMS(6), 0, 9), scales(TN_F32, 1, DIMS(6))}, "axis 1");
    refused("DequantizeLinear", 10, message(), 2,
            (tn_tensor *[]){whole_numbers(TN_I8, 1, DIMS(2), 0, 9), scales(TN_F32, 1, DIMS(2))}, "one number");
    refused("DequantizeLinear", 13, message(), 3,
            (tn_tensor *[]){whole_numbers(TN_I8, 1, DIMS(2), 0, 9), scales(TN_F32, 0, NULL),
                            whole_numbers(TN_U8, 0, NULL, 0, 9)},
            "must be of the same");
    refused("QuantizeLinear", 10, message(), 3,
            (tn_tensor *[]){scales(TN_F32, 1, DIMS(2)), scales(TN_F32, 0, NULL), whole_numbers(TN_I32, 0, NULL, 0, 0)},
            "does not take");
    attrs = message();
    attr_int(&attrs, "output_dtype", TN_I8);
    refused("QuantizeLinear", 21, attrs, 3,
            (tn_tensor *[]){scales(TN_F32, 1, DIMS(2)), scales(TN_F32, 0, NULL), whole_numbers(TN_U8, 0, NULL, 0, 0)},
            "output_dtype");
    refused("MatMulInteger", 10, message(), 2,
            (tn_tensor *[]){whole_numbers(TN_I8, 2, DIMS(2, 3), 0, 9), whole_numbers(TN_I8, 2, DIMS(2, 3), 0, 9)},
            "inner sizes");
    refused("MatMulInteger", 10, message(), 2,
            (tn_tensor *[]){whole_numbers(TN_I16, 2, DIMS(2, 3), 0, 9), whole_numbers(TN_I8, 2, DIMS(3, 2), 0, 9)},
            "i16");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantize),    cmocka_unit_test(test_dequantize),  cmocka_unit_test(test_small_floats),
        cmocka_unit_test(test_precision),   cmocka_unit_test(test_dynamic),     cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_accumulator), cmocka_unit_test(test_convolution), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_packed),
    };
    return cmocka_run_group_tests_name("onnx/quant", tests, NULL, NULL);
}
