/* The builder: shapes and values of its functions, and what it refuses, with the caller's line. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <tenon/build.h>

#include "support/run_graph.h"

static void expect_ok(tn_status status) {
    if (status != TN_OK)
        print_error("%s\n", tn_error_message());
    assert_int_equal(status, TN_OK);
}

/* The type of a value as text: "f32[n, 3]". */
static const char *type_of(const tn_graph *g, tn_value v) {
    static char text[200];
    return v.id ? tn_type_describe(g, tn_value_type(g, v), text, sizeof text) : tn_error_message();
}

static void test_broadcast(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value n3 = tn_input(g, "n3", TN_F32, TN_SHAPE("n", 3)), three = tn_input(g, "three", TN_F32, TN_SHAPE(3)),
             column = tn_input(g, "column", TN_F32, TN_SHAPE("n", 1)),
             big = tn_input(g, "big", TN_F32, TN_SHAPE(2, 1, 1)), m = tn_input(g, "m", TN_F32, TN_SHAPE("m", 3)),
             scalar = tn_input(g, "s", TN_F32, TN_SCALAR);
    assert_string_equal(type_of(g, tn_add(g, n3, three)), "f32[n, 3]");
    assert_string_equal(type_of(g, tn_add(g, three, column)), "f32[n, 3]");
    assert_string_equal(type_of(g, tn_mul(g, column, big)), "f32[2, n, 1]");
    assert_string_equal(type_of(g, tn_less(g, n3, scalar)), "bool[n, 3]");
    assert_string_equal(type_of(g, tn_select(g, tn_less(g, column, column), scalar, three)), "f32[n, 3]");
    assert_int_equal(tn_value_rank(g, tn_sub(g, n3, m)), 2); /* n and m: known when it runs */
    /* equal shapes: no broadcast nodes */
    tn_value sum = tn_add(g, n3, n3);
    assert_int_equal(tn_node_input(g, tn_value_producer(g, sum), 0).id, n3.id);
    tn_set_output(g, "y", tn_add(g, tn_mul(g, column, big), tn_sub(g, n3, m)));
    expect_ok(tn_graph_check(g));
    tn_tensor *in[6] = {make_tensor(TN_F32, 2, RUN_DIMS(2, 3), (const double[]){1, 2, 3, 4, 5, 6}),
                        NULL,
                        make_tensor(TN_F32, 2, RUN_DIMS(2, 1), (const double[]){10, 20}),
                        make_tensor(TN_F32, 3, RUN_DIMS(2, 1, 1), (const double[]){1, -1}),
                        make_tensor(TN_F32, 2, RUN_DIMS(1, 3), (const double[]){1, 1, 1}),
                        NULL};
    tn_tensor *y;
    expect_ok(run_graph(g, NULL, in, &y));
    static const double want[12] = {10, 11, 12, 23, 24, 25, -10, -9, -8, -17, -16, -15};
    assert_int_equal(tn_tensor_count(y), 12);
    for (int i = 0; i < 12; i++)
        assert_true(tn_tensor_get_f64(y, i) == want[i]);
    tn_tensor_destroy(y);
    tn_tensor_destroy(in[4]);
    in[4] = make_tensor(TN_F32, 2, RUN_DIMS(3, 3), (const double[9]){0});
    assert_int_equal(run_graph(g, NULL, in, &y), TN_ERR_INPUT); /* 2 and 3 rows */
    for (int i = 0; i < 6; i++)
        tn_tensor_destroy(in[i]);
    tn_graph_destroy(g);
}

/* Each wrong call on a graph of its own: null, sticky, with these words and this file and line. */
static void test_refusals(void **state) {
    (void)state;
    tn_graph *other = tn_graph_create();
    tn_value foreign = {1000};
    for (int k = 0;; k++) {
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("n", 3)), i = tn_input(g, "i", TN_I64, TN_SHAPE(3)), bad = {0};
        tn_value f43 = tn_input(g, "f43", TN_F32, TN_SHAPE(4, 2)), any = tn_input(g, "any", TN_F32, TN_UNRANKED);
        const char *words = NULL;
        int line = 0, two[2] = {0, 0}, first = 5;
#define CASE(number, call, text) \
    case number:                 \
        line = __LINE__;         \
        bad = call;              \
        words = text;            \
        break
        switch (k) {
            CASE(0, tn_add(g, x, i), "different dtypes");
            CASE(1, tn_add(g, x, f43), "do not broadcast");
            CASE(2, tn_neg(g, (tn_value){0}), "null value");
            CASE(3, tn_neg(g, foreign), "another graph");
            CASE(4, tn_add(g, x, any), "rank");
            CASE(5, tn_reshape(g, x, TN_SHAPE(-1, -1)), "dimension 1 is -1");
            CASE(6, tn_reshape(g, f43, TN_SHAPE(3, -1)), "8 elements");
            CASE(7, tn_transpose(g, x, two), "axis 0 is given twice");
            CASE(8, tn_gather(g, x, i, 2), "axis 2");
            CASE(9, tn_squeeze(g, x, 1, (const int[]){1}), "dimension 1");
            CASE(10, tn_reduce_sum(g, x, 1, &first, false), "axis 5");
            CASE(11, tn_matmul(g, x, f43), "last but one");
            CASE(12, tn_input(g, "x", TN_F32, TN_SCALAR), "already");
            CASE(13, tn_input(g, "w", TN_F32, TN_SHAPE(-3)), "dimension 0 is -3");
            CASE(14, tn_scalar(g, TN_I8, 300), "not a value of i8");
            CASE(15, tn_scalar(g, TN_I32, 0.5), "not a value of i32");
            CASE(16, tn_constant(g, NULL), "NULL");
            CASE(17, tn_window(g, "mean", x, NULL, NULL, NULL, NULL, NULL), "mean");
            CASE(18, tn_concat(g, 0, 0, NULL), "nothing");
            CASE(19, tn_iota(g, TN_I64, 0, NULL, 0), "axis 0");
            CASE(20, tn_set_output(g, "", x), "name");
            CASE(21, tn_pad(g, x, x, NULL, NULL, "edge"), "constant only");
            CASE(22, tn_expand_dims(g, x, 1, (const int[]){4}), "axis 4");
        default: break;
        }
#undef CASE
        if (!words) {
            tn_graph_destroy(g);
            assert_int_equal(k, 23);
            break;
        }
        char place[64];
        snprintf(place, sizeof place, "test_build.c:%d", line);
        assert_int_equal(bad.id, 0);
        assert_int_not_equal(tn_graph_check(g), TN_OK);
        if (!strstr(tn_error_message(), words) || !strstr(tn_error_message(), place)) {
            print_error("case %d, %s, \"%s\": %s\n", k, place, words, tn_error_message());
            fail();
        }
        /* the first error stays */
        assert_int_equal(tn_neg(g, x).id, 0);
        tn_reshape(g, x, TN_SHAPE(-5));
        tn_graph_check(g);
        assert_non_null(strstr(tn_error_message(), place));
        tn_graph_destroy(g);
    }
    tn_graph_destroy(other);
}

static void test_shapes(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("n", 3, 4));
    assert_string_equal(type_of(g, tn_reshape(g, x, TN_SHAPE(-1, 6))), "f32[2*n, 6]");
    assert_string_equal(type_of(g, tn_reshape(g, x, TN_SHAPE("n", -1))), "f32[n, 12]");
    assert_string_equal(type_of(g, tn_transpose(g, x, (const int[]){1, -1, 0})), "f32[3, 4, n]");
    assert_string_equal(type_of(g, tn_transpose(g, x, NULL)), "f32[4, 3, n]");
    assert_string_equal(type_of(g, tn_expand_dims(g, x, 2, (const int[]){0, -1})), "f32[1, n, 3, 4, 1]");
    assert_string_equal(type_of(g, tn_squeeze(g, tn_expand_dims(g, x, 2, (const int[]){1, 3}), 2, (const int[]){3, 1})),
                        "f32[n, 3, 4]");
    assert_string_equal(type_of(g, tn_flatten(g, x, 1)), "f32[n, 12]");
    assert_string_equal(type_of(g, tn_flatten(g, x, -1)), "f32[3*n, 4]");
    assert_string_equal(type_of(g, tn_flatten(g, x, 0)), "f32[1, 12*n]");
    assert_string_equal(type_of(g, tn_slice_axis(g, x, -1, 1, 2)), "f32[n, 3, 2]");
    assert_string_equal(type_of(g, tn_concat(g, -2, 2, (const tn_value[]){x, x})), "f32[n, 6, 4]");
    assert_string_equal(type_of(g, tn_gather(g, x, tn_constant_i64(g, 1, 2, (const int64_t[]){0, 1}), -1)),
                        "f32[n, 3, 2]");
    assert_string_equal(type_of(g, tn_reduce_sum(g, x, 1, (const int[]){-1}, true)), "f32[n, 3, 1]");
    assert_string_equal(type_of(g, tn_reduce_mean(g, x, TN_ALL_AXES, false)), "f32[]");
    assert_string_equal(type_of(g, tn_reduce_max(g, x, 2, (const int[]){2, 0}, false)), "f32[3]");
    assert_string_equal(type_of(g, tn_shape_of(g, x)), "i64[3]");
    assert_string_equal(
        type_of(g, tn_pad(g, x, (tn_value){0}, NULL,
                          (const tn_dim[]){tn_dim_const(g, 1), tn_dim_const(g, 0), tn_value_dim(g, x, 0)}, NULL)),
        "f32[n + 1, 3, n + 4]");
    assert_string_equal(type_of(g, tn_iota(g, TN_I32, 1, (const tn_dim[]){tn_value_dim(g, x, 0)}, -1)), "i32[n]");
    tn_value image = tn_input(g, "image", TN_F32, TN_SHAPE("n", 4, "h", 8)),
             w = tn_input(g, "w", TN_F32, TN_SHAPE(6, 2, 3, 3));
    assert_string_equal(type_of(g, tn_conv(g, image, w, NULL, NULL, NULL, NULL, NULL, 2)), "f32[n, 6, h - 2, 6]");
    assert_string_equal(type_of(g, tn_window(g, "max", image, (const int64_t[]){1, 1, 1, 2},
                                             (const int64_t[]){1, 1, 1, 2}, NULL, NULL, NULL)),
                        "f32[n, 4, h, 4]");
    assert_int_equal(tn_cast(g, x, TN_F32).id, x.id);
    assert_int_equal(tn_reshape(g, x, TN_SHAPE("n", 3, 4)).id, x.id);
    expect_ok(tn_graph_check(g));
    tn_graph_destroy(g);
}

/* numpy's matmul, element by element. */
static void test_matmul(void **state) {
    (void)state;
    static const struct {
        int ra, rb, ry;
        int64_t a[4], b[4], y[4];
        const char *type;
    } cases[] = {
        {1, 1, 0, {3}, {3}, {0}, "f32[]"},
        {1, 2, 1, {3}, {3, 2}, {2}, "f32[2]"},
        {2, 1, 1, {2, 3}, {3}, {2}, "f32[2]"},
        {2, 2, 2, {2, 3}, {3, 4}, {2, 4}, "f32[2, 4]"},
        {3, 2, 3, {2, 2, 3}, {3, 4}, {2, 2, 4}, "f32[2, 2, 4]"},
        {2, 3, 3, {2, 3}, {2, 3, 4}, {2, 2, 4}, "f32[2, 2, 4]"},
        {4, 3, 4, {2, 1, 2, 3}, {2, 3, 1}, {2, 2, 2, 1}, "f32[2, 2, 2, 1]"},
        {1, 3, 2, {3}, {2, 3, 4}, {2, 4}, "f32[2, 4]"},
        {3, 1, 2, {2, 2, 3}, {3}, {2, 2}, "f32[2, 2]"},
        {2, 2, 2, {2, 0}, {0, 2}, {2, 2}, "f32[2, 2]"},
    };
    double values[64];
    for (int i = 0; i < 64; i++)
        values[i] = (i * 7) % 11 - 5;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        tn_graph *g = tn_graph_create();
        tn_shape sa = {.rank = cases[k].ra}, sb = {.rank = cases[k].rb};
        for (int i = 0; i < 4; i++) {
            sa.item[i].size = cases[k].a[i];
            sb.item[i].size = cases[k].b[i];
        }
        tn_value x = tn_input(g, "a", TN_F32, sa), w = tn_input(g, "b", TN_F32, sb), y = tn_matmul(g, x, w);
        assert_string_equal(type_of(g, y), cases[k].type);
        tn_set_output(g, "y", y);
        tn_tensor *a = make_tensor(TN_F32, cases[k].ra, cases[k].a, values),
                  *b = make_tensor(TN_F32, cases[k].rb, cases[k].b, values + 5), *out;
        expect_ok(run_graph(g, NULL, (tn_tensor *[]){a, b}, &out));
        /* promote to [batch, 2, rows, k] x [batch, 2, k, columns] with broadcast batches */
        int64_t da[4] = {1, 1, 1, 1}, db[4] = {1, 1, 1, 1};
        for (int i = 0; i < cases[k].ra; i++)
            da[4 - cases[k].ra + i] = cases[k].a[i];
        for (int i = 0; i < cases[k].rb; i++)
            db[4 - cases[k].rb + i] = cases[k].b[i];
        if (cases[k].rb == 1) {
            db[2] = cases[k].b[0];
            db[3] = 1;
        }
        int64_t at = 0, depth = da[3], columns = db[3];
        assert_int_equal(db[2], depth);
        for (int64_t p = 0; p < (da[0] > db[0] ? da[0] : db[0]); p++)
            for (int64_t q = 0; q < (da[1] > db[1] ? da[1] : db[1]); q++)
                for (int64_t r = 0; r < da[2]; r++)
                    for (int64_t c = 0; c < columns; c++, at++) {
                        double sum = 0;
                        int64_t ap = da[0] > 1 ? p : 0, aq = da[1] > 1 ? q : 0, bp = db[0] > 1 ? p : 0,
                                bq = db[1] > 1 ? q : 0;
                        for (int64_t d = 0; d < depth; d++)
                            sum += values[((ap * da[1] + aq) * da[2] + r) * depth + d] *
                                   values[5 + ((bp * db[1] + bq) * depth + d) * columns + c];
                        assert_true(tn_tensor_get_f64(out, at) == sum);
                    }
        assert_int_equal(at, tn_tensor_count(out));
        tn_tensor_destroy(out);
        tn_tensor_destroy(a);
        tn_tensor_destroy(b);
        tn_graph_destroy(g);
    }
}

static void test_mean(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("n", 2)), h = tn_input(g, "h", TN_F16, TN_SHAPE("k"));
    tn_set_output(g, "all", tn_reduce_mean(g, x, TN_ALL_AXES, false));
    tn_set_output(g, "rows", tn_reduce_mean(g, x, 1, (const int[]){1}, true));
    tn_set_output(g, "columns", tn_reduce_mean(g, x, 1, (const int[]){0}, false));
    tn_set_output(g, "half", tn_reduce_mean(g, h, TN_ALL_AXES, false));
    expect_ok(tn_graph_check(g));
    double many[3000];
    for (int i = 0; i < 3000; i++)
        many[i] = 100 + (i % 2); /* the sum is far above the largest f16 */
    tn_tensor *t = make_tensor(TN_F32, 2, RUN_DIMS(3, 2), (const double[]){1, 2, 3, 4, 5, 9}), *out[4];
    tn_tensor *half = make_tensor(TN_F16, 1, RUN_DIMS(3000), many);
    expect_ok(run_graph(g, NULL, (tn_tensor *[]){t, half}, out));
    assert_true(tn_tensor_get_f64(out[0], 0) == 4 && tn_tensor_get_f64(out[1], 2) == 7 &&
                tn_tensor_get_f64(out[2], 1) == 5);
    assert_true(tn_tensor_get_f64(out[3], 0) == 100.5);
    for (int i = 0; i < 4; i++)
        tn_tensor_destroy(out[i]);
    tn_tensor_destroy(t);
    tn_tensor_destroy(half);
    tn_graph_destroy(g);
}

static void test_scalars(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_tensor *t = tn_value_constant(g, tn_scalar(g, TN_U64, 0x1p63));
    assert_true((uint64_t)tn_tensor_get_i64(t, 0) == (uint64_t)1 << 63);
    t = tn_value_constant(g, tn_scalar(g, TN_F16, 0.1));
    assert_true(fabs(tn_tensor_get_f64(t, 0) - 0.1) < 1e-4);
    t = tn_value_constant(g, tn_scalar(g, TN_BOOL, 1));
    assert_true(tn_tensor_get_i64(t, 0) == 1);
    assert_true(tn_tensor_get_i64(tn_value_constant(g, tn_constant_i64(g, 1, 0, NULL)), 0) == 0 ||
                tn_error_status() != TN_OK);
    expect_ok(tn_graph_check(g));
    tn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcast), cmocka_unit_test(test_refusals), cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_matmul),    cmocka_unit_test(test_mean),     cmocka_unit_test(test_scalars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
