/* Normalisations, smooth activations and cross entropy against naive formulas in double; inlined and as functions; the
   builders of rows about positions and order. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <tenon/build.h>

#include "ops/composite.h"
#include "support/run_graph.h"

static void expect_ok(tn_status status) {
    if (status != TN_OK)
        print_error("%s\n", tn_error_message());
    assert_int_equal(status, TN_OK);
}

enum { N = 2, C = 4, S = 3, COUNT = N * C * S };
static const double epsilon = 1e-3;

typedef enum kind { LAYER, LAYER_TWO, RMS, GROUP, INSTANCE, BATCH, SILU, HARD_SWISH, MISH, KINDS } kind;

static tn_value add(tn_graph *g, kind k, tn_value x, const tn_value *p, bool affine) {
    tn_value none = {0}, scale = affine ? p[0] : none, bias = affine ? p[1] : none;
    switch (k) {
    case LAYER: return tn_layer_norm(g, x, affine ? p[2] : none, affine ? p[3] : none, -1, epsilon);
    case LAYER_TWO: return tn_layer_norm(g, x, affine ? p[2] : none, affine ? p[3] : none, 1, epsilon);
    case RMS: return tn_rms_norm(g, x, affine ? p[2] : none, 2, epsilon);
    case GROUP: return tn_group_norm(g, x, scale, bias, 2, epsilon);
    case INSTANCE: return tn_instance_norm(g, x, scale, bias, epsilon);
    case BATCH: return tn_batch_norm(g, x, p[0], p[1], p[4], p[5], epsilon);
    case SILU: return tn_silu(g, x);
    case HARD_SWISH: return tn_hard_swish(g, x);
    default: return tn_mish(g, x);
    }
}

/* Whether elements i and j are normalised together. */
static bool together(kind k, int i, int j) {
    int n = i / (C * S) == j / (C * S), c = i / S % C, d = j / S % C;
    switch (k) {
    case LAYER:
    case RMS: return i / S == j / S;
    case LAYER_TWO: return n;
    case GROUP: return n && c / 2 == d / 2;
    default: return n && c == d;
    }
}

/* p[0], p[1], p[4], p[5] by channel, p[2], p[3] by the last axis. */
static double naive(kind k, const double *x, int i, double *const *p, bool affine) {
    double v = x[i], sum = 0, squares = 0, n = 0;
    int c = i / S % C, last = i % S;
    if (k == SILU)
        return v / (1 + exp(-v));
    if (k == HARD_SWISH)
        return v * fmin(fmax(v / 6 + 0.5, 0), 1);
    if (k == MISH)
        return v * tanh(v > 30 ? v : log1p(exp(v)));
    if (k == BATCH)
        return (v - p[4][c]) / sqrt(p[5][c] + epsilon) * p[0][c] + p[1][c];
    for (int j = 0; j < COUNT; j++)
        if (together(k, i, j)) {
            sum += x[j];
            n++;
        }
    for (int j = 0; j < COUNT; j++)
        if (together(k, i, j))
            squares += k == RMS ? x[j] * x[j] : (x[j] - sum / n) * (x[j] - sum / n);
    double y = (v - (k == RMS ? 0 : sum / n)) / sqrt(squares / n + epsilon);
    if (!affine)
        return y;
    bool layer = k == LAYER || k == LAYER_TWO || k == RMS;
    return y * (layer ? p[2][last] : p[0][c]) + (k == RMS ? 0 : layer ? p[3][last] : p[1][c]);
}

static double ulp(tn_dtype dtype) {
    return dtype == TN_F64 ? DBL_EPSILON : dtype == TN_F32 ? FLT_EPSILON : dtype == TN_F16 ? 0x1p-10 : 0x1p-7;
}

static const double samples[COUNT] = {0,    1,   -1,  0.5, 3, -3, 2.5,  -2,   2, 2,  2,  2,
                                      1e-3, 4.5, 0.1, -7,  5, 6,  -0.0, -1.5, 7, -8, 30, -40};
static const double parameter[6][C] = {{1, 2, -1, 0.5}, {0, 1, -2, 3},     {2, -1, 0.25, 0},
                                       {1, 0, -1, 0},   {0.5, -1, 2, 0.1}, {1, 0.25, 4, 0.5}};

/* symbolic: batch and last size are symbols; inlined: composites are replaced by their definitions. */
static void check(kind k, tn_dtype dtype, bool affine, bool symbolic, bool inlined) {
    tn_graph *g = tn_graph_create();
    tn_value x = symbolic ? tn_input(g, "x", dtype, TN_SHAPE("n", "c", "s"))
                          : tn_input(g, "x", dtype, TN_SHAPE(N, C, S)),
             p[6];
    tn_tensor *in[7], *out;
    double rounded[COUNT], kept[6][C], *values[6];
    in[0] = make_tensor(dtype, 3, RUN_DIMS(N, C, S), samples);
    for (int i = 0; i < 6; i++) {
        char name[2] = {(char)('0' + i), 0};
        int64_t size = i == 2 || i == 3 ? S : C;
        p[i] = tn_input(g, name, dtype, TN_SHAPE(size));
        in[i + 1] = make_tensor(dtype, 1, &size, parameter[i]);
        for (int64_t j = 0; j < size; j++)
            kept[i][j] = tn_tensor_get_f64(in[i + 1], j);
        values[i] = kept[i];
    }
    tn_value y = add(g, k, x, p, affine);
    assert_int_equal(tn_value_type(g, y).id, tn_value_type(g, x).id);
    tn_node node = tn_value_producer(g, y);
    tn_set_output(g, "y", y);
    expect_ok(tn_graph_check(g));
    if (inlined) {
        uint32_t function;
        expect_ok(tn_composite_function(g, node, &function));
        expect_ok(tn_composite_inline(g, node));
    }
    expect_ok(tn_graph_verify(g));
    expect_ok(run_graph(g, NULL, in, &out));
    for (int i = 0; i < COUNT; i++)
        rounded[i] = tn_tensor_get_f64(in[0], i);
    for (int i = 0; i < COUNT; i++) {
        double want = naive(k, rounded, i, values, affine), got = tn_tensor_get_f64(out, i);
        double scale = fabs(want) + fabs(rounded[i]) + 8; /* terms of the sums */
        if (!(fabs(got - want) <= 8 * ulp(dtype == TN_F64 ? TN_F64 : TN_F32) * scale + ulp(dtype) * fabs(want) +
                                      (dtype == TN_F16 ? 0x1p-24 : 0)))
            fail_msg("kind %d, %s, element %d: %d of %d millionths", k, tn_dtype_name(dtype), i, (int)(1e6 * got),
                     (int)(1e6 * want));
    }
    tn_tensor_destroy(out);
    for (int i = 0; i < 7; i++)
        tn_tensor_destroy(in[i]);
    tn_graph_destroy(g);
}

static void test_values(void **state) {
    (void)state;
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16};
    for (int k = 0; k < KINDS; k++)
        for (int d = 0; d < 4; d++)
            for (int how = 0; how < 8; how++)
                check((kind)k, dtypes[d], how & 1, how & 2, how & 4);
}

/* --- cross entropy ------------------------------------------------------------------------------------------------ */

/* The example of the library's front page, up to the gradients. */
static void test_loss(void **state) {
    (void)state;
    static const double logits[6] = {1, 2, 3, -1, 1000, 0.5};
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("batch", 3));
    tn_value each = tn_cross_entropy(g, x, tn_input(g, "labels", TN_I64, TN_SHAPE("batch")));
    tn_value loss = tn_reduce_mean(g, each, TN_ALL_AXES);
    assert_int_equal(tn_value_rank(g, each), 1);
    assert_true(tn_dim_equal(g, tn_value_dim(g, each, 0), tn_value_dim(g, x, 0)));
    assert_int_equal(tn_value_rank(g, loss), 0);
    tn_set_output(g, "each", each);
    tn_set_output(g, "loss", loss);
    tn_set_output(g, "kept", tn_reduce_sum(g, each, TN_ALL_AXES, true));
    tn_set_output(g, "pair", tn_reduce_sum(g, x, 2, (int[]){0, 1}, false));
    expect_ok(tn_graph_verify(g));
    tn_tensor *in[2] = {make_tensor(TN_F32, 2, RUN_DIMS(2, 3), logits), tn_tensor_from_i64(2, RUN_DIMS(0, 1))}, *out[4];
    expect_ok(run_graph(g, NULL, in, out));
    double want = log(exp(-2) + exp(-1) + 1) + 2;
    assert_true(fabs(tn_tensor_get_f64(out[0], 0) - want) < 1e-6 && tn_tensor_get_f64(out[0], 1) == 0);
    assert_true(fabs(tn_tensor_get_f64(out[1], 0) - want / 2) < 1e-6);
    assert_int_equal(tn_tensor_rank(out[2]), 1);
    assert_true(tn_tensor_get_f64(out[3], 0) == 1005.5f);
    for (int i = 0; i < 4; i++)
        tn_tensor_destroy(out[i]);
    tn_tensor_destroy(in[1]);
    in[1] = tn_tensor_from_i64(2, RUN_DIMS(0, 3));
    assert_int_equal(run_graph(g, NULL, in, out), TN_ERR_INPUT); /* no class 3 */
    tn_tensor_destroy(in[0]);
    tn_tensor_destroy(in[1]);
    tn_graph_destroy(g);
}

static void test_wrong(void **state) {
    (void)state;
    for (int i = 0; i < 13; i++) {
        tn_graph *g = tn_graph_create();
        tn_value none = {0}, x = tn_input(g, "x", TN_F32, TN_SHAPE(2, 4, 3)), v = tn_input(g, "v", TN_F32, TN_SHAPE(5)),
                 c = tn_input(g, "c", TN_F32, TN_SHAPE(4)), h = tn_input(g, "h", TN_F16, TN_SHAPE(3)),
                 n = tn_input(g, "n", TN_I64, TN_SHAPE(2, 4)), s = tn_input(g, "s", TN_F32, TN_SCALAR);
        switch (i) {
        case 0: tn_layer_norm(g, x, v, none, -1, 1e-5); break;
        case 1: tn_layer_norm(g, x, h, none, -1, 1e-5); break;
        case 2: tn_layer_norm(g, x, none, none, 3, 1e-5); break;
        case 3: tn_layer_norm(g, n, none, none, 0, 1e-5); break;
        case 4: tn_group_norm(g, x, c, c, 3, 1e-5); break;
        case 5: tn_group_norm(g, x, c, c, 0, 1e-5); break;
        case 6: tn_instance_norm(g, c, none, none, 1e-5); break;
        case 7: tn_batch_norm(g, x, c, c, v, c, 1e-5); break;
        case 8: tn_cross_entropy(g, x, c); break;
        case 9: tn_cross_entropy(g, x, tn_input(g, "m", TN_I64, TN_SHAPE(2, 5))); break;
        case 10: tn_cross_entropy(g, s, n); break;
        case 11: tn_rms_norm(g, s, none, 0, 1e-5); break;
        default: tn_silu(g, n);
        }
        if (tn_graph_check(g) == TN_OK)
            fail_msg("case %d is accepted", i);
        assert_non_null(strstr(tn_error_where(), "test_norm.c"));
        tn_graph_destroy(g);
    }
}

/* --- builders ----------------------------------------------------------------------------------------------------- */

static void check_tensor(const tn_tensor *t, tn_dtype dtype, int rank, const int64_t *dims, const double *values) {
    assert_int_equal(tn_tensor_dtype(t), dtype);
    assert_int_equal(tn_tensor_rank(t), rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(tn_tensor_dims(t)[i], dims[i]);
    for (int64_t i = 0; i < tn_tensor_count(t); i++)
        assert_true(tn_tensor_get_f64(t, i) == values[i]);
}

static void test_builders(void **state) {
    (void)state;
    enum { OUTPUTS = 16 };
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(2, 3)), at, top, where;
    tn_value i = tn_constant_i64(g, 1, 2, (const int64_t[]){2, -2}), i2 = tn_expand_dims(g, i, 1, (int[]){0});
    tn_value row = tn_slice_axis(g, x, 0, 0, 1), pair = tn_slice_axis(g, row, 1, 0, 2);
    tn_value y[OUTPUTS] = {
        tn_gather_elements(g, x, i2, -1),
        tn_gather_nd(g, x, tn_constant_i64(g, 1, 2, (const int64_t[]){1, 0}), 0),
        tn_scatter_elements(g, x, i2, pair, -1, "add"),
        tn_scatter_nd(g, x, tn_constant_i64(g, 1, 1, (const int64_t[]){-1}), tn_squeeze(g, row, 1, (int[]){0}), NULL),
        tn_argmax(g, x, -1, false),
        tn_argmin(g, x, 0, true),
        tn_cumsum(g, x, 1, false, true),
        tn_cumprod(g, x, -1, true, false),
        tn_sort(g, x, -1, true, &at),
        tn_top_k(g, x, 1, 1, false, &top),
        tn_nonzero(g, x),
        tn_compress(g, x, tn_equal(g, i, i), 1),
        tn_dynamic_slice(g, x, tn_constant_i64(g, 1, 2, (const int64_t[]){1, 1}),
                         (tn_dim[]){tn_dim_const(g, 1), tn_dim_const(g, 2)}),
        tn_dynamic_update_slice(g, x, pair, tn_constant_i64(g, 1, 2, (const int64_t[]){1, 1})),
        tn_reverse(g, x, 1, (int[]){-1})};
    y[15] = at;
    where = top;
    expect_ok(tn_graph_check(g));
    assert_int_equal(tn_value_dtype(g, where), TN_I64);
    for (int k = 0; k < OUTPUTS; k++) {
        char name[3] = {(char)('a' + k), 0};
        tn_set_output(g, name, y[k]);
    }
    expect_ok(tn_graph_verify(g));
    tn_tensor *in = make_tensor(TN_F32, 2, RUN_DIMS(2, 3), (const double[]){1, 3, 2, 6, 0, 5}), *out[OUTPUTS];
    expect_ok(run_graph(g, NULL, &in, out));
#define V(...) ((const double[]){__VA_ARGS__})
    check_tensor(out[0], TN_F32, 2, RUN_DIMS(1, 2), V(2, 3));
    check_tensor(out[1], TN_F32, 0, NULL, V(6));
    check_tensor(out[2], TN_F32, 2, RUN_DIMS(2, 3), V(1, 6, 3, 6, 0, 5));
    check_tensor(out[3], TN_F32, 2, RUN_DIMS(2, 3), V(1, 3, 2, 1, 3, 2));
    check_tensor(out[4], TN_I64, 1, RUN_DIMS(2), V(1, 0));
    check_tensor(out[5], TN_I64, 2, RUN_DIMS(1, 3), V(0, 1, 0));
    check_tensor(out[6], TN_F32, 2, RUN_DIMS(2, 3), V(6, 5, 2, 11, 5, 5));
    check_tensor(out[7], TN_F32, 2, RUN_DIMS(2, 3), V(1, 1, 3, 1, 6, 0));
    check_tensor(out[8], TN_F32, 2, RUN_DIMS(2, 3), V(3, 2, 1, 6, 5, 0));
    check_tensor(out[9], TN_F32, 2, RUN_DIMS(2, 1), V(1, 0));
    check_tensor(out[10], TN_I64, 2, RUN_DIMS(2, 5), V(0, 0, 0, 1, 1, 0, 1, 2, 0, 2));
    check_tensor(out[11], TN_F32, 2, RUN_DIMS(2, 2), V(1, 3, 6, 0));
    check_tensor(out[12], TN_F32, 2, RUN_DIMS(1, 2), V(0, 5));
    check_tensor(out[13], TN_F32, 2, RUN_DIMS(2, 3), V(1, 3, 2, 6, 1, 3));
    check_tensor(out[14], TN_F32, 2, RUN_DIMS(2, 3), V(2, 3, 1, 5, 0, 6));
    check_tensor(out[15], TN_I64, 2, RUN_DIMS(2, 3), V(1, 2, 0, 0, 2, 1));
    for (int k = 0; k < OUTPUTS; k++)
        tn_tensor_destroy(out[k]);
    tn_tensor_destroy(in);
    tn_graph_destroy(g);
}

static void test_random(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_dim dims[2] = {tn_dim_symbol(g, "n"), tn_dim_const(g, 2)};
    tn_value step = tn_input(g, "step", TN_I64, TN_SCALAR), none = {0};
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("n"));
    tn_set_output(g, "u", tn_random_uniform(g, TN_F32, 2, dims, 1, step));
    tn_set_output(g, "v", tn_random_uniform(g, TN_F32, 2, dims, 1, none));
    tn_set_output(g, "w", tn_random_normal(g, TN_F64, 1, dims, 2, none));
    tn_set_output(g, "b", tn_random_bits(g, TN_U8, 1, dims, 2, none));
    tn_set_output(g, "y", x);
    expect_ok(tn_graph_verify(g));
    tn_tensor *in[2] = {make_scalar(TN_I64, 0), make_tensor(TN_F32, 1, RUN_DIMS(3), (const double[]){0, 0, 0})}, *a[5],
              *b[5];
    expect_ok(run_graph(g, NULL, in, a));
    tn_tensor_destroy(in[0]);
    in[0] = make_scalar(TN_I64, 1);
    expect_ok(run_graph(g, NULL, in, b));
    assert_int_equal(tn_tensor_count(a[0]), 6);
    for (int i = 0; i < 6; i++) {
        assert_true(tn_tensor_get_f64(a[0], i) == tn_tensor_get_f64(a[1], i)); /* offset 0 is none */
        assert_true(tn_tensor_get_f64(a[0], i) != tn_tensor_get_f64(b[0], i)); /* another step */
        assert_true(tn_tensor_get_f64(a[1], i) == tn_tensor_get_f64(b[1], i));
    }
    for (int i = 0; i < 5; i++) {
        tn_tensor_destroy(a[i]);
        tn_tensor_destroy(b[i]);
    }
    tn_tensor_destroy(in[0]);
    tn_tensor_destroy(in[1]);
    tn_graph_destroy(g);
}

static void test_wrong_calls(void **state) {
    (void)state;
    for (int i = 0; i < 14; i++) {
        tn_graph *g = tn_graph_create();
        tn_value none = {0}, x = tn_input(g, "x", TN_F32, TN_SHAPE(2, 3)), n = tn_input(g, "n", TN_I64, TN_SHAPE(1, 3)),
                 u = tn_input(g, "u", TN_F32, TN_SHAPE(1, 3)), second = x;
        switch (i) {
        case 0: tn_gather_elements(g, x, n, 2); break;
        case 1: tn_gather_elements(g, x, none, 0); break;
        case 2: tn_gather_nd(g, x, u, 0); break;
        case 3: tn_scatter_elements(g, x, n, u, 0, "sub"); break;
        case 4: tn_scatter_nd(g, x, n, u, NULL); break;
        case 5: tn_argmax(g, x, -3, false); break;
        case 6: tn_cumsum(g, none, 0, false, false); break;
        case 7: tn_sort(g, x, 2, false, &second); break;
        case 8: tn_top_k(g, x, -1, 0, true, &second); break;
        case 9: tn_top_k(g, x, 4, 1, true, &second); break;
        case 10: tn_compress(g, x, n, 0); break;
        case 11: tn_dynamic_slice(g, x, n, NULL); break;
        case 12: tn_random_uniform(g, TN_I32, 0, NULL, 0, none); break;
        default: tn_reverse(g, x, 2, (int[]){0, -2});
        }
        if (tn_graph_check(g) == TN_OK)
            fail_msg("case %d is accepted", i);
        if (i >= 7 && i <= 9)
            assert_int_equal(second.id, 0);
        assert_non_null(strstr(tn_error_where(), "test_norm.c"));
        tn_graph_destroy(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_loss),
                                       cmocka_unit_test(test_wrong),  cmocka_unit_test(test_builders),
                                       cmocka_unit_test(test_random), cmocka_unit_test(test_wrong_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
