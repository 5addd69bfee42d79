/* Factors and shifts after products with constants: what goes into the weights, what stays, and that results keep to rounding. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <tenon/build.h>

#include "support/pass_checks.h"

static uint32_t state_of_numbers = 1;

static double number(void) {
    state_of_numbers = state_of_numbers * 1664525u + 1013904223u;
    return (double)(state_of_numbers >> 8) / (double)(1 << 23) - 1;
}

static tn_value constant(tn_graph *g, tn_dtype dtype, int rank, const int64_t *dims, double scale) {
    tn_tensor *t = tn_tensor_create_in(g->heap, dtype, rank, dims);
    assert_non_null(t);
    for (int64_t i = 0; i < t->count; i++)
        tn_store_f64(dtype, t->data, i, scale * number());
    tn_value v = tn_constant(g, t);
    tn_tensor_destroy(t);
    return v;
}

static tn_value spread(tn_graph *g, tn_value v, tn_value like) {
    tn_dim dims[TN_MAX_RANK];
    int rank = tn_value_rank(g, like);
    for (int i = 0; i < rank; i++)
        dims[i] = tn_value_dim(g, like, i);
    return tn_broadcast(g, v, rank, dims);
}

/* A constant of `count` channels on the axis that `behind` axes follow. */
static tn_value channels(tn_graph *g, tn_dtype dtype, int64_t count, int behind, double scale, tn_value like) {
    const int64_t dims[4] = {count, 1, 1, 1};
    return spread(g, constant(g, dtype, behind + 1, dims, scale), like);
}

static tn_value convolution(tn_graph *g, tn_dtype dtype, int64_t groups) {
    tn_value x = tn_input(g, "x", dtype, TN_SHAPE(2, 8, 6, 7));
    const int64_t dims[] = {12, 8 / groups, 3, 3};
    return tn_conv(g, x, constant(g, dtype, 4, dims, 1), NULL, NULL, NULL, NULL, NULL, groups);
}

/* (x - mean) * factor + bias, as a batch normalisation has it. */
static tn_value normalised(tn_graph *g, tn_value x, int behind, int64_t count) {
    tn_dtype dtype = tn_value_dtype(g, x);
    x = tn_sub(g, x, channels(g, dtype, count, behind, 3, x));
    x = tn_mul(g, channels(g, dtype, count, behind, 2, x), x);
    return tn_add(g, x, channels(g, dtype, count, behind, 5, x));
}

/* Runs the pass and answers how many nodes are left; results are the same but for rounding. Destroys the graph. */
static uint32_t fold(tn_graph *g) {
    assert_int_equal(tn_graph_check(g), TN_OK);
    tn_graph *before = tn_graph_clone(g, NULL, NULL);
    pass_run(g, 2, "fold-affine,dce");
    for (uint64_t seed = 1; seed < 4; seed++) {
        tn_object *in[PASS_MAX] = {NULL}, *want[PASS_MAX] = {NULL}, *got[PASS_MAX] = {NULL};
        uint32_t inputs = tn_graph_input_count(g), outputs = tn_graph_output_count(g);
        for (uint32_t i = 0; i < inputs; i++) {
            const tn_value v = tn_graph_input(g, i);
            int64_t dims[TN_MAX_RANK];
            for (int k = 0; k < tn_value_rank(g, v); k++)
                assert_true(tn_dim_is_const(g, tn_value_dim(g, v, k), &dims[k]));
            tn_tensor *t = tn_tensor_create(tn_value_dtype(g, v), tn_value_rank(g, v), dims);
            for (int64_t k = 0; k < t->count; k++)
                tn_store_f64((tn_dtype)t->dtype, t->data, k, number());
            in[i] = tn_tensor_object(t);
        }
        assert_int_equal(pass_outputs(before, g, in, want), TN_OK);
        assert_int_equal(pass_outputs(g, g, in, got), TN_OK);
        for (uint32_t i = 0; i < outputs; i++) {
            const tn_tensor *a = (const tn_tensor *)want[i], *b = (const tn_tensor *)got[i];
            assert_int_equal(a->count, b->count);
            for (int64_t k = 0; k < a->count; k++) {
                double x = tn_load_f64((tn_dtype)a->dtype, a->data, k), y = tn_load_f64((tn_dtype)b->dtype, b->data, k);
                double unit = a->dtype == TN_F64 ? 0x1p-53 : 0x1p-24;
                if (fabs(x - y) > 400 * unit * (1 + fabs(x))) /* of some seventy terms of 1 and factors of 2 */
                    fail_msg("output %u, element %d: %g before, %g after", i, (int)k, x, y);
            }
        }
        pass_release(inputs, in);
        pass_release(outputs, want);
        pass_release(outputs, got);
    }
    uint32_t nodes = tn_graph_count_nodes(g);
    tn_graph_destroy(before);
    tn_graph_destroy(g);
    return nodes;
}

/* A convolution, a broadcast and an addition are what is left of a normalisation. */
static void test_normalisation(void **state) {
    (void)state;
    for (int64_t groups = 1; groups <= 4; groups *= 2)
        for (int wide = 0; wide < 2; wide++) {
            tn_graph *g = tn_graph_create();
            tn_set_output(g, "y", normalised(g, convolution(g, wide ? TN_F64 : TN_F32, groups), 2, 12));
            assert_int_equal(fold(g), 3);
        }
}

static void test_products_of_matrices(void **state) {
    (void)state;
    const int64_t dims[] = {5, 9}, none[] = {0}, one[] = {1};
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(4, 3, 5));
    tn_set_output(g, "y", normalised(g, tn_matmul(g, x, constant(g, TN_F32, 2, dims, 1)), 0, 9));
    assert_int_equal(fold(g), 3);
    g = tn_graph_create(); /* the other way round */
    x = tn_input(g, "x", TN_F32, TN_SHAPE(4, 9));
    x = tn_dot(g, x, constant(g, TN_F32, 2, dims, 1), 0, none, none, 1, one, one);
    tn_set_output(g, "y", normalised(g, x, 0, 5));
    assert_int_equal(fold(g), 3);
}

static void test_factors_and_shifts_alone(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = convolution(g, TN_F32, 1);
    tn_set_output(g, "y", tn_mul(g, x, channels(g, TN_F32, 12, 2, 2, x)));
    assert_int_equal(fold(g), 1);
    g = tn_graph_create(); /* one number for all channels */
    x = convolution(g, TN_F32, 1);
    tn_set_output(g, "y", tn_mul(g, x, spread(g, tn_scalar(g, TN_F32, 0.3), x)));
    assert_int_equal(fold(g), 1);
    g = tn_graph_create();
    x = convolution(g, TN_F32, 1);
    x = tn_add(g, x, channels(g, TN_F32, 12, 2, 2, x));
    tn_set_output(g, "y", tn_add(g, x, channels(g, TN_F32, 12, 2, 2, x)));
    assert_int_equal(fold(g), 3);
    g = tn_graph_create(); /* a bias alone is what it is */
    x = convolution(g, TN_F32, 1);
    tn_set_output(g, "y", tn_sub(g, x, channels(g, TN_F32, 12, 2, 2, x)));
    assert_int_equal(fold(g), 3);
    g = tn_graph_create(); /* what follows is left alone */
    x = convolution(g, TN_F32, 1);
    x = tn_relu(g, normalised(g, x, 2, 12));
    tn_set_output(g, "y", tn_mul(g, x, channels(g, TN_F32, 12, 2, 2, x)));
    uint32_t relu = fold(g);
    g = tn_graph_create();
    x = convolution(g, TN_F32, 1);
    x = tn_relu(g, tn_add(g, x, channels(g, TN_F32, 12, 2, 2, x)));
    tn_set_output(g, "y", tn_mul(g, x, channels(g, TN_F32, 12, 2, 2, x)));
    assert_int_equal(tn_graph_count_nodes(g), relu);
    tn_graph_destroy(g);
}

static void test_what_stays(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create(); /* the product is read elsewhere */
    tn_value x = convolution(g, TN_F32, 1);
    tn_set_output(g, "z", x);
    tn_set_output(g, "y", normalised(g, x, 2, 12));
    assert_int_equal(fold(g), 7);
    g = tn_graph_create(); /* so is a value between */
    x = convolution(g, TN_F32, 1);
    x = tn_mul(g, x, channels(g, TN_F32, 12, 2, 2, x));
    tn_set_output(g, "z", x);
    tn_set_output(g, "y", tn_mul(g, x, channels(g, TN_F32, 12, 2, 2, x)));
    assert_int_equal(fold(g), 3); /* the first is folded */
    g = tn_graph_create();        /* two convolutions share weights */
    const int64_t dims[] = {12, 8, 3, 3};
    tn_value w = constant(g, TN_F32, 4, dims, 1), a = tn_input(g, "a", TN_F32, TN_SHAPE(1, 8, 5, 5)),
             b = tn_input(g, "b", TN_F32, TN_SHAPE(1, 8, 5, 5));
    a = tn_conv(g, a, w, NULL, NULL, NULL, NULL, NULL, 1);
    tn_set_output(g, "a", tn_mul(g, a, channels(g, TN_F32, 12, 2, 2, a)));
    tn_set_output(g, "b", tn_conv(g, b, w, NULL, NULL, NULL, NULL, NULL, 1));
    assert_int_equal(fold(g), 4);
    g = tn_graph_create(); /* a factor for each column of the image */
    x = convolution(g, TN_F32, 1);
    tn_set_output(g, "y", tn_mul(g, x, channels(g, TN_F32, 5, 0, 2, x)));
    assert_int_equal(fold(g), 3);
    g = tn_graph_create(); /* factors that are no constants */
    x = convolution(g, TN_F32, 1);
    tn_set_output(g, "y", tn_mul(g, x, tn_input(g, "f", TN_F32, TN_SHAPE(2, 12, 4, 5))));
    assert_int_equal(fold(g), 2);
    g = tn_graph_create(); /* weights that are none */
    x = tn_input(g, "x", TN_F32, TN_SHAPE(1, 8, 5, 5));
    x = tn_conv(g, x, tn_input(g, "w", TN_F32, TN_SHAPE(12, 8, 3, 3)), NULL, NULL, NULL, NULL, NULL, 1);
    tn_set_output(g, "y", tn_mul(g, x, channels(g, TN_F32, 12, 2, 2, x)));
    assert_int_equal(fold(g), 3);
}

/* Half precision would lose bits of the weights; so would factors that take them out of range; both stay. */
static void test_range_and_precision(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = convolution(g, TN_F16, 1);
    tn_set_output(g, "y", tn_mul(g, x, channels(g, TN_F16, 12, 2, 2, x)));
    pass_run(g, 2, "fold-affine,dce");
    assert_int_equal(tn_graph_count_nodes(g), 3);
    tn_graph_destroy(g);
    const double factors[] = {1e-38, 3e38, INFINITY, NAN};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        g = tn_graph_create();
        x = convolution(g, TN_F32, 1);
        tn_value f = spread(g, tn_scalar(g, TN_F32, factors[i]), x);
        tn_set_output(g, "y", tn_mul(g, tn_mul(g, x, f), f));
        pass_run(g, 2, "fold-affine,dce");
        assert_int_equal(tn_graph_count_nodes(g), 4);
        tn_graph_destroy(g);
    }
}

static void test_levels(void **state) {
    (void)state;
    for (int level = 1; level <= 2; level++) {
        tn_graph *g = tn_graph_create();
        tn_value x = convolution(g, TN_F32, 1);
        tn_set_output(g, "y", tn_mul(g, x, channels(g, TN_F32, 12, 2, 2, x)));
        assert_int_equal(
            tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .level = level == 1 ? TN_LEVEL_1 : TN_LEVEL_2)),
            TN_OK);
        assert_int_equal(tn_graph_count_nodes(g), level == 1 ? 3 : 1);
        tn_graph_destroy(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_normalisation),
        cmocka_unit_test(test_products_of_matrices),
        cmocka_unit_test(test_factors_and_shifts_alone),
        cmocka_unit_test(test_what_stays),
        cmocka_unit_test(test_range_and_precision),
        cmocka_unit_test(test_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
