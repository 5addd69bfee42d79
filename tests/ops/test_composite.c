/* Composites against naive formulas; their definitions stored once, inlined, and shared by the interpreter. */
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

enum { ROWS = 5, COLUMNS = 4, COUNT = ROWS * COLUMNS };

static void expect_ok(tn_status status) {
    if (status != TN_OK)
        print_error("%s\n", tn_error_message());
    assert_int_equal(status, TN_OK);
}

static const double samples[COUNT] = {0, -0.0, 1,   -1,   0.5, 3,  -3, 100, -100, 2,
                                      2, 2,    1e4, -1e4, 0.1, -7, 11, 12,  13,   14};

typedef enum kind { RELU, GELU, GELU_TANH, SOFTMAX, LOG_SOFTMAX, KINDS } kind;

static tn_value add(tn_graph *g, kind k, tn_value x, int axis) {
    switch (k) {
    case RELU: return tn_relu(g, x);
    case GELU: return tn_gelu(g, x);
    case GELU_TANH: return tn_gelu_tanh(g, x);
    case SOFTMAX: return tn_softmax(g, x, axis);
    default: return tn_log_softmax(g, x, axis);
    }
}

/* The naive formula in double for element (i, j) of ROWS x COLUMNS values, along axis 0 or 1. */
static double naive(kind k, const double *x, int i, int j, int axis) {
    double v = x[i * COLUMNS + j], max = -INFINITY, sum = 0;
    if (k == RELU)
        return v > 0 ? v : 0;
    if (k == GELU)
        return v * 0.5 * (1 + erf(v / sqrt(2)));
    if (k == GELU_TANH)
        return v * 0.5 * (1 + tanh(sqrt(2 / acos(-1)) * (v + 0.044715 * v * v * v)));
    int n = axis ? COLUMNS : ROWS;
    for (int a = 0; a < n; a++)
        max = fmax(max, axis ? x[i * COLUMNS + a] : x[a * COLUMNS + j]);
    for (int a = 0; a < n; a++)
        sum += exp((axis ? x[i * COLUMNS + a] : x[a * COLUMNS + j]) - max);
    return k == SOFTMAX ? exp(v - max) / sum : v - max - log(sum);
}

static double ulp(tn_dtype dtype) {
    return dtype == TN_F64 ? DBL_EPSILON : dtype == TN_F32 ? FLT_EPSILON : dtype == TN_F16 ? 0x1p-10 : 0x1p-7;
}

static void test_values(void **state) {
    (void)state;
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16};
    for (int k = 0; k < KINDS; k++)
        for (int d = 0; d < 4; d++)
            for (int axis = -2; axis < 2; axis++) {
                tn_dtype dtype = dtypes[d];
                tn_graph *g = tn_graph_create();
                tn_value x = tn_input(g, "x", dtype, TN_SHAPE("rows", COLUMNS)), y = add(g, (kind)k, x, axis);
                assert_true(tn_value_dtype(g, y) == dtype && tn_value_rank(g, y) == 2);
                assert_true(tn_dim_equal(g, tn_value_dim(g, y, 0), tn_value_dim(g, x, 0)));
                tn_set_output(g, "y", y);
                expect_ok(tn_graph_check(g));
                tn_tensor *t = make_tensor(dtype, 2, RUN_DIMS(ROWS, COLUMNS), samples), *out;
                double rounded[COUNT];
                for (int i = 0; i < COUNT; i++)
                    rounded[i] = tn_tensor_get_f64(t, i);
                expect_ok(run_graph(g, NULL, &t, &out));
                for (int i = 0; i < COUNT; i++) {
                    double want = naive((kind)k, rounded, i / COLUMNS, i % COLUMNS, axis < 0 ? axis + 2 : axis);
                    double got = tn_tensor_get_f64(out, i);
                    double scale = fabs(want);
                    if (k == GELU || k == GELU_TANH)
                        scale += fabs(rounded[i]);
                    if (k == LOG_SOFTMAX) /* near 0 the logarithm of a sum near 1 */
                        scale += 1;
                    double error = fabs(got - want),
                           allowed = 8 * ulp(dtype) * scale + (dtype == TN_F16 ? 0x1p-24 : FLT_MIN);
                    if (!(error <= allowed)) {
                        print_error("kind %d, dtype %s, axis %d, element %d: %d ppm of what is allowed\n", k,
                                    tn_dtype_name(dtype), axis, i, (int)(1e6 * error / allowed));
                        fail();
                    }
                }
                tn_tensor_destroy(out);
                tn_tensor_destroy(t);
                tn_graph_destroy(g);
            }
}

static void test_corners(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("n", 3));
    tn_set_output(g, "r", tn_relu(g, x));
    tn_set_output(g, "s", tn_softmax(g, x, 1));
    tn_set_output(g, "i", tn_relu(g, tn_cast(g, tn_constant_i64(g, 1, 2, (const int64_t[]){-5, 5}), TN_I8)));
    tn_tensor *t = make_tensor(TN_F32, 2, RUN_DIMS(2, 3), (const double[]){NAN, -0.0, -INFINITY, -INFINITY, 0, 0}),
              *out[3];
    expect_ok(run_graph(g, NULL, &t, out));
    assert_true(isnan(tn_tensor_get_f64(out[0], 0)) && !signbit(tn_tensor_get_f64(out[0], 1)) &&
                tn_tensor_get_f64(out[0], 2) == 0);
    assert_true(isnan(tn_tensor_get_f64(out[1], 1)) && tn_tensor_get_f64(out[1], 3) == 0 &&
                tn_tensor_get_f64(out[1], 4) == 0.5);
    assert_true(tn_tensor_get_i64(out[2], 0) == 0 && tn_tensor_get_i64(out[2], 1) == 5);
    for (int i = 0; i < 3; i++)
        tn_tensor_destroy(out[i]);
    tn_tensor_destroy(t);
    t = tn_tensor_create(TN_F32, 2, RUN_DIMS(0, 3));
    expect_ok(run_graph(g, NULL, &t, out));
    for (int i = 0; i < 3; i++)
        tn_tensor_destroy(out[i]);
    tn_tensor_destroy(t);
    tn_graph_destroy(g);
}

static void test_refusals(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    assert_int_equal(tn_softmax(g, tn_input(g, "x", TN_F32, TN_SHAPE(2, 3)), 2).id, 0);
    assert_int_equal(tn_graph_check(g), TN_ERR_MODEL);
    assert_non_null(strstr(tn_error_message(), "axis is 2"));
    assert_non_null(strstr(tn_error_message(), "test_composite.c"));
    tn_graph_destroy(g);
    g = tn_graph_create();
    assert_int_equal(tn_gelu(g, tn_input(g, "x", TN_I32, TN_SHAPE(2, 3))).id, 0);
    assert_int_equal(tn_graph_check(g), TN_ERR_MODEL);
    tn_graph_destroy(g);
}

static void test_function(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("n", 3)), z = tn_input(g, "z", TN_F32, TN_SHAPE("m", 4, 5));
    tn_value all[] = {tn_softmax(g, x, 1), tn_softmax(g, tn_neg(g, x), 1), tn_softmax(g, x, 0), tn_softmax(g, z, 1),
                      tn_relu(g, x)};
    uint32_t f[5];
    for (int i = 0; i < 5; i++)
        expect_ok(tn_composite_function(g, tn_value_producer(g, all[i]), &f[i]));
    assert_int_equal(f[0], f[1]);
    for (int i = 1; i < 5; i++)
        for (int j = 1; j < i; j++)
            assert_int_not_equal(f[i], f[j]);
    assert_int_equal(g->function.len, 4);

    /* calling the function gives what the composite gives */
    tn_attr callee = TN_A_FUNCTION("callee", f[0]);
    tn_node call = tn_graph_add_node(g, &(tn_node_desc){.op = tn_op_find(g->ops, "call", 4),
                                                        .input_count = 1,
                                                        .inputs = &x,
                                                        .output_count = 1,
                                                        .attr_count = 1,
                                                        .attrs = &callee});
    expect_ok(tn_graph_check(g));
    assert_int_equal(tn_value_type(g, tn_node_output(g, call, 0)).id, tn_value_type(g, all[0]).id);
    tn_set_output(g, "a", all[0]);
    tn_set_output(g, "b", tn_node_output(g, call, 0));
    tn_tensor *t = make_tensor(TN_F32, 2, RUN_DIMS(2, 3), samples + 2), *out[2];
    expect_ok(run_graph(g, NULL, (tn_tensor *[]){t, NULL}, out));
    assert_true(tn_object_equal(tn_tensor_object(out[0]), tn_tensor_object(out[1])));
    tn_tensor_destroy(out[0]);
    tn_tensor_destroy(out[1]);
    uint32_t function;
    assert_int_equal(tn_composite_function(g, call, &function), TN_ERR_USAGE);
    tn_tensor_destroy(t);
    tn_graph_destroy(g);
}

static void test_inline(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F16, TN_SHAPE("n", 4)), y = add(g, (kind)k, x, 1);
        tn_node node = tn_value_producer(g, y);
        tn_value_set_name(g, y, "label");
        tn_node_set_role(g, node, TN_ROLE_STATISTICS);
        char before[256], after[256];
        tn_node_origin(g, node, 0, before, sizeof before);
        tn_set_output(g, "y", tn_neg(g, y));
        expect_ok(tn_graph_check(g));
        tn_tensor *t = make_tensor(TN_F16, 2, RUN_DIMS(5, 4), samples), *out[2];
        expect_ok(run_graph(g, NULL, &t, &out[0]));
        tn_graph_insert_before(g, node);
        expect_ok(tn_composite_inline(g, node));
        assert_false(tn_node_is_alive(g, node));
        expect_ok(run_graph(g, NULL, &t, &out[1]));
        assert_true(tn_object_equal(tn_tensor_object(out[0]), tn_tensor_object(out[1])));
        tn_value v = tn_graph_find_value(g, "label");
        assert_true(v.id && v.id != y.id);
        assert_int_equal(tn_node_role(g, tn_value_producer(g, v)), TN_ROLE_STATISTICS);
        tn_node_origin(g, tn_value_producer(g, v), 0, after, sizeof after);
        assert_string_equal(before, after);
        for (tn_node n = tn_region_first(g, tn_graph_region(g)); n.id; n = tn_node_next(g, n))
            assert_false(tn_node_is_composite(g, n));
        /* the insertion point stood at the node that went: building goes on where it was */
        assert_int_not_equal(tn_neg(g, x).id, 0);
        assert_int_equal(tn_composite_inline(g, node), TN_ERR_USAGE);
        tn_tensor_destroy(out[0]);
        tn_tensor_destroy(out[1]);
        tn_tensor_destroy(t);
        tn_graph_destroy(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),   cmocka_unit_test(test_corners), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_function), cmocka_unit_test(test_inline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
