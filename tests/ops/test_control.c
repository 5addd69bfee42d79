/* if, while, scan, call: types, values, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <tenon/build.h>

#include "ir/graph.h"
#include "support/run_graph.h"

static void expect_ok(tn_status status) {
    if (status != TN_OK)
        print_error("%s\n", tn_error_message());
    assert_int_equal(status, TN_OK);
}

static void expect_words(tn_status got, tn_status wanted, const char *const *words) {
    if (got != wanted)
        print_error("%s\n", tn_error_message());
    assert_int_equal(got, wanted);
    for (; *words; words++)
        if (!strstr(tn_error_message(), *words)) {
            print_error("no \"%s\" in: %s\n", *words, tn_error_message());
            fail();
        }
    tn_error_clear();
}
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void expect_values(const tn_tensor *t, int rank, const int64_t *dims, const double *values) {
    assert_non_null(t);
    assert_int_equal(tn_tensor_rank(t), rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(tn_tensor_dims(t)[i], dims[i]);
    for (int64_t i = 0; i < tn_tensor_count(t); i++)
        if (tn_tensor_get_f64(t, i) != values[i]) {
            print_error("element %d is %d/1000, not %d/1000\n", (int)i, (int)(1000 * tn_tensor_get_f64(t, i)),
                        (int)(1000 * values[i]));
            fail();
        }
}

/* --- if -------------------------------------------------------------------------------------------------------------------- */

static void one_row(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_slice_axis(g, *(tn_value *)ctx, 0, 0, 1);
    results[1] = tn_reduce_sum(g, *(tn_value *)ctx, TN_ALL_AXES, false);
}

static void all_rows(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = *(tn_value *)ctx;
    results[1] = tn_reduce_max(g, *(tn_value *)ctx, TN_ALL_AXES, false);
}

static void test_if_joins(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value c = tn_input(g, "c", TN_BOOL, TN_SCALAR), x = tn_input(g, "x", TN_F32, TN_SHAPE("n", 2)), y[2];
    expect_ok(tn_if(g, c, one_row, all_rows, &x, 2, y));
    assert_int_equal(tn_value_rank(g, y[0]), 2);
    assert_true(tn_dim_equal(g, tn_value_dim(g, y[0], 1), tn_dim_const(g, 2)));     /* the same in both */
    assert_false(tn_dim_equal(g, tn_value_dim(g, y[0], 0), tn_value_dim(g, x, 0))); /* 1 or n: a size of its own */
    assert_false(tn_dim_equal(g, tn_value_dim(g, y[0], 0), tn_dim_const(g, 1)));
    assert_int_equal(tn_value_rank(g, y[1]), 0);
    tn_set_output(g, "rows", tn_mul(g, y[0], tn_scalar_like(g, y[0], 10)));
    tn_set_output(g, "r", y[1]);
    expect_ok(tn_graph_check(g));
    tn_tensor *t = make_tensor(TN_F32, 2, RUN_DIMS(2, 2), (const double[]){1, 2, 3, 4}), *out[2];
    for (int taken = 0; taken < 2; taken++) {
        tn_tensor *cond = make_scalar(TN_BOOL, taken);
        expect_ok(run_graph(g, NULL, (tn_tensor *[]){cond, t}, out));
        expect_values(out[0], 2, RUN_DIMS(taken ? 1 : 2, 2), (const double[]){10, 20, 30, 40});
        expect_values(out[1], 0, NULL, (const double[]){taken ? 10 : 4});
        tn_tensor_destroy(out[0]);
        tn_tensor_destroy(out[1]);
        tn_tensor_destroy(cond);
    }
    tn_tensor_destroy(t);
    tn_graph_destroy(g);
}

static void as_f64(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_cast(g, *(tn_value *)ctx, TN_F64);
}

static void as_is(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    (void)g;
    results[0] = *(tn_value *)ctx;
}

static void nothing(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    (void)g;
    (void)args;
    (void)results;
}

static void flat(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_reshape(g, *(tn_value *)ctx, TN_SHAPE(-1));
}

static void test_if_refusals(void **state) {
    (void)state;
    tn_value x, c, y = {7};
    for (int k = 0; k < 4; k++) {
        tn_graph *g = tn_graph_create();
        c = tn_input(g, "c", TN_BOOL, k == 1 ? TN_SHAPE(1) : TN_SCALAR);
        x = tn_input(g, "x", TN_F32, TN_SHAPE("n", 2));
        if (k == 0)
            expect_words(tn_if(g, c, as_f64, as_is, &x, 1, &y), TN_ERR_MODEL,
                         WORDS("f64[n, 2]", "f32[n, 2]", "test_control.c"));
        else if (k == 1)
            expect_words(tn_if(g, c, as_is, as_is, &x, 1, &y), TN_ERR_MODEL, WORDS("bool scalar", "bool[1]"));
        else if (k == 2)
            expect_words(tn_if(g, c, as_is, nothing, &x, 1, &y), TN_ERR_USAGE, WORDS("result 0"));
        else { /* ranks that differ: a rank is not known */
            expect_ok(tn_if(g, c, flat, as_is, &x, 1, &y));
            assert_int_equal(tn_value_rank(g, y), -1);
            tn_graph_destroy(g);
            continue;
        }
        assert_int_equal(y.id, 0);
        assert_int_not_equal(tn_graph_check(g), TN_OK);
        tn_graph_destroy(g);
    }
}

/* --- while ---------------------------------------------------------------------------------------------------------------- */

typedef struct growing {
    tn_value n, x;
} growing;

static void below(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_less(g, args[0], ((growing *)ctx)->n);
}

static void grow(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_add(g, args[0], tn_scalar_like(g, args[0], 1));
    results[1] = tn_concat(g, 0, 2, (const tn_value[]){args[1], ((growing *)ctx)->x});
    results[2] = tn_mul(g, ((growing *)ctx)->x, tn_cast(g, args[0], TN_F32));
}

/* A loop value that grows: refused when built unless its dimension is declared free. */
static void test_growing(void **state) {
    (void)state;
    for (int declared = 0; declared < 2; declared++) {
        tn_graph *g = tn_graph_create();
        growing c = {.n = tn_input(g, "n", TN_I64, TN_SCALAR), .x = tn_input(g, "x", TN_F32, TN_SHAPE(2))};
        tn_value init[2] = {tn_scalar(g, TN_I64, 0), c.x}, out[3];
        tn_dim free_size = tn_dim_fresh(g, 0, INT64_MAX);
        tn_type types[2] = {{0}, tn_type_tensor(g, TN_F32, 1, &free_size)};
        tn_status status = tn_while(g, 2, init, declared ? types : NULL, below, grow, &c, 1, out);
        if (!declared) {
            expect_words(status, TN_ERR_MODEL,
                         WORDS("'x'", "f32[2] on entry", "f32[4] after one trip", "tn_dim_fresh", "test_control.c"));
            assert_int_equal(out[1].id, 0);
            tn_graph_destroy(g);
            continue;
        }
        expect_ok(status);
        tn_set_output(g, "all", out[1]);
        tn_set_output(g, "stacked", out[2]);
        tn_set_output(g, "sum", tn_add(g, tn_reduce_sum(g, out[1], TN_ALL_AXES, false), tn_scalar(g, TN_F32, 1)));
        expect_ok(tn_graph_check(g));
        assert_int_equal(tn_value_rank(g, out[2]), 2);
        tn_tensor *x = make_tensor(TN_F32, 1, RUN_DIMS(2), (const double[]){3, 4}), *got[3];
        for (int n = 0; n < 3; n++) {
            tn_tensor *trips = make_scalar(TN_I64, n);
            expect_ok(run_graph(g, NULL, (tn_tensor *[]){trips, x}, got));
            expect_values(got[0], 1, RUN_DIMS(2 + 2 * n), (const double[]){3, 4, 3, 4, 3, 4});
            expect_values(got[1], 2, RUN_DIMS(n, 2), (const double[]){0, 0, 3, 4});
            expect_values(got[2], 0, NULL, (const double[]){7 * (n + 1) + 1});
            for (int i = 0; i < 3; i++)
                tn_tensor_destroy(got[i]);
            tn_tensor_destroy(trips);
        }
        tn_tensor_destroy(x);
        tn_graph_destroy(g);
    }
}

static void to_f64(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = args[0];
    results[1] = tn_cast(g, args[1], TN_F64);
}

static void never(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    (void)args;
    results[0] = tn_constant_i64(g, 0, 1, (const int64_t[]){0});
}

static void test_while_refusals(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    growing c = {.n = tn_input(g, "n", TN_I64, TN_SCALAR), .x = tn_input(g, "x", TN_F32, TN_SHAPE("k"))};
    tn_value out[3], init[2] = {tn_scalar(g, TN_I64, 0), c.x};
    expect_words(tn_while(g, 2, init, NULL, below, to_f64, &c, 0, out), TN_ERR_MODEL,
                 WORDS("f32[k] on entry", "f64[k] after one trip"));
    tn_graph_destroy(g);
    g = tn_graph_create();
    init[0] = tn_input(g, "n", TN_I64, TN_SCALAR);
    expect_words(tn_while(g, 1, init, NULL, never, as_is, &init[0], 0, out), TN_ERR_MODEL,
                 WORDS("one bool scalar", "i64"));
    assert_int_equal(tn_neg(g, init[0]).id, 0); /* sticky */
    expect_words(tn_graph_check(g), TN_ERR_MODEL, WORDS("one bool scalar"));
    tn_graph_destroy(g);
    g = tn_graph_create();
    expect_words(tn_while(g, 0, NULL, NULL, NULL, as_is, NULL, 0, out), TN_ERR_USAGE, WORDS("tn_while"));
    tn_graph_destroy(g);
}

/* --- scan ------------------------------------------------------------------------------------------------------------------- */

static void running_sum(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = tn_add(g, args[0], tn_mul(g, args[1], args[2]));
    results[1] = results[0];
    results[2] = tn_reduce_sum(g, args[1], TN_ALL_AXES, false);
}

static void test_scan(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value a = tn_input(g, "a", TN_F32, TN_SHAPE("t", 2)), b = tn_input(g, "b", TN_F32, TN_SHAPE("t")), out[3];
    tn_value zero = tn_constant_i64(g, 1, 2, (const int64_t[]){0, 0});
    zero = tn_cast(g, zero, TN_F32);
    expect_ok(tn_scan(g, 1, &zero, 2, (const tn_value[]){a, b}, running_sum, NULL, 2, out));
    assert_true(tn_dim_equal(g, tn_value_dim(g, out[1], 0), tn_value_dim(g, a, 0)));
    assert_int_equal(tn_value_rank(g, out[2]), 1);
    for (int i = 0; i < 3; i++)
        tn_set_output(g, (const char *[]){"final", "sums", "rows"}[i], out[i]);
    expect_ok(tn_graph_check(g));
    for (int n = 0; n < 4; n += 3) {
        tn_tensor *x = make_tensor(TN_F32, 2, RUN_DIMS(n, 2), (const double[]){1, 2, 3, 4, 5, 6}), *got[3];
        tn_tensor *y = make_tensor(TN_F32, 1, RUN_DIMS(n), (const double[]){1, 10, 100});
        expect_ok(run_graph(g, NULL, (tn_tensor *[]){x, y}, got));
        expect_values(got[0], 1, RUN_DIMS(2), n ? (const double[]){531, 642} : (const double[]){0, 0});
        expect_values(got[1], 2, RUN_DIMS(n, 2), (const double[]){1, 2, 31, 42, 531, 642});
        expect_values(got[2], 1, RUN_DIMS(n), (const double[]){3, 7, 11});
        for (int i = 0; i < 3; i++)
            tn_tensor_destroy(got[i]);
        tn_tensor_destroy(x);
        tn_tensor_destroy(y);
    }
    tn_graph_destroy(g);
    g = tn_graph_create();
    a = tn_input(g, "a", TN_F32, TN_SCALAR);
    expect_words(tn_scan(g, 0, NULL, 1, &a, as_is, &a, 0, NULL), TN_ERR_USAGE, WORDS("slices"));
    tn_graph_destroy(g);
}

static void pass_slice(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    (void)g;
    results[0] = args[0];
}

/* Packed elements are sliced and stacked bit for bit; strings too. */
static void test_scan_dtypes(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        tn_dtype dtype = (const tn_dtype[]){TN_I4, TN_STRING, TN_U2}[k];
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", dtype, TN_SHAPE("t", 3)), y;
        expect_ok(tn_scan(g, 0, NULL, 1, &x, pass_slice, NULL, 1, &y));
        tn_set_output(g, "y", y);
        tn_tensor *t = tn_tensor_create(dtype, 2, RUN_DIMS(3, 3)), *out;
        for (int i = 0; i < 9; i++)
            if (dtype == TN_STRING)
                tn_tensor_set_string(t, i, &"abcdefghij"[i], 1);
            else
                tn_tensor_set_f64(t, i, dtype == TN_I4 ? i - 5 : i % 4);
        expect_ok(run_graph(g, NULL, &t, &out));
        assert_true(tn_object_equal(tn_tensor_object(t), tn_tensor_object(out)));
        tn_tensor_destroy(out);
        tn_tensor_destroy(t);
        tn_graph_destroy(g);
    }
}

/* --- nesting, call ------------------------------------------------------------------------------------------------------------ */

typedef struct outer {
    tn_value x, cond;
} outer;

static void inner_if(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    outer *o = ctx;
    tn_value sum = tn_add(g, args[0], o->x), branch;
    tn_value big = tn_greater(g, tn_reduce_sum(g, sum, TN_ALL_AXES, false), tn_scalar_like(g, sum, 10));
    /* the branches read the body's and the graph's values, and run a composite */
    tn_if(g, big, flat, as_is, &sum, 1, &branch);
    results[0] = tn_relu(g, tn_reshape_dims(g, branch, 1, (const tn_dim[]){tn_value_dim(g, o->x, 0)}));
}

static void small(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = tn_less(g, tn_reduce_max(g, args[0], TN_ALL_AXES, false), tn_scalar_like(g, args[0], 20));
}

static void test_nested(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    outer o = {.x = tn_input(g, "x", TN_F32, TN_SHAPE("k"))};
    tn_value y;
    expect_ok(tn_while(g, 1, &o.x, NULL, small, inner_if, &o, 0, &y));
    tn_set_output(g, "y", y);
    expect_ok(tn_graph_check(g));
    tn_tensor *x = make_tensor(TN_F32, 1, RUN_DIMS(3), (const double[]){1, 5, -2}), *out;
    expect_ok(run_graph(g, NULL, &x, &out));
    expect_values(out, 1, RUN_DIMS(3), (const double[]){4, 20, 0});
    tn_tensor_destroy(out);
    tn_tensor_destroy(x);
    tn_graph_destroy(g);
}

static void test_call(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_region body = tn_region_create(g);
    tn_dim dims[2] = {tn_dim_fresh(g, 0, INT64_MAX), tn_dim_fresh(g, 0, INT64_MAX)};
    tn_value a = tn_region_add_arg(g, body, tn_type_tensor(g, TN_F32, 2, dims), "a");
    tn_insertion saved = tn_graph_insertion(g);
    tn_graph_insert_at_end(g, body);
    tn_value results[2] = {tn_transpose(g, tn_neg(g, a), NULL), tn_flatten(g, a, 0)};
    expect_ok(tn_region_return(g, body, 2, results));
    tn_graph_set_insertion(g, saved);
    uint32_t f = tn_graph_add_function(g, "f", body);
    assert_int_not_equal(f, UINT32_MAX);

    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("n", 3));
    tn_attr callee = TN_A_FUNCTION("callee", f);
    const tn_op *row = tn_op_find(g->ops, "call", 4);
    tn_node_desc desc = {
        .op = row, .input_count = 1, .inputs = &x, .output_count = 2, .attr_count = 1, .attrs = &callee};
    tn_node first = tn_graph_add_node(g, &desc);
    expect_ok(tn_graph_check(g));
    /* the function's symbols are the call's sizes */
    tn_value t = tn_node_output(g, first, 0), flattened = tn_node_output(g, first, 1);
    assert_true(tn_dim_equal(g, tn_value_dim(g, t, 1), tn_value_dim(g, x, 0)));
    assert_true(tn_dim_equal(g, tn_value_dim(g, t, 0), tn_dim_const(g, 3)));
    assert_true(
        tn_dim_equal(g, tn_value_dim(g, flattened, 1), tn_dim_mul(g, tn_dim_const(g, 3), tn_value_dim(g, x, 0))));
    desc.inputs = &t;
    tn_node second = tn_graph_add_node(g, &desc);
    tn_set_output(g, "y", tn_node_output(g, second, 0));
    expect_ok(tn_graph_check(g));
    tn_tensor *data = make_tensor(TN_F32, 2, RUN_DIMS(2, 3), (const double[]){1, 2, 3, 4, 5, 6}), *out;
    expect_ok(run_graph(g, NULL, &data, &out));
    expect_values(out, 2, RUN_DIMS(2, 3), (const double[]){1, 2, 3, 4, 5, 6});
    tn_tensor_destroy(out);
    tn_tensor_destroy(data);

    tn_value flat_x = tn_reshape(g, x, TN_SHAPE(-1));
    desc.inputs = &flat_x;
    assert_int_equal(tn_graph_add_node(g, &desc).id, 0);
    expect_words(tn_graph_check(g), TN_ERR_MODEL, WORDS("argument 0"));
    tn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_if_joins),       cmocka_unit_test(test_if_refusals), cmocka_unit_test(test_growing),
        cmocka_unit_test(test_while_refusals), cmocka_unit_test(test_scan),        cmocka_unit_test(test_scan_dtypes),
        cmocka_unit_test(test_nested),         cmocka_unit_test(test_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
