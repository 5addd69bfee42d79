/* Worked examples that are programs: W12, a loop value that grows, by the builder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <tenon/tenon.h>

typedef struct growing {
    tn_value x, n;
} growing;

static void below(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_less(g, args[0], ((growing *)ctx)->n);
}

static void grow(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_add(g, args[0], tn_scalar(g, TN_I64, 1));
    results[1] = tn_concat(g, 0, 2, (const tn_value[]){args[1], ((growing *)ctx)->x});
}

/* acc := concat(acc, x), n times from acc = x. */
static tn_status build(tn_graph *g, bool declared) {
    growing c = {tn_input(g, "x", TN_F32, TN_SHAPE(1)), tn_input(g, "n", TN_I64, TN_SCALAR)};
    tn_value init[2] = {tn_scalar(g, TN_I64, 0), c.x}, out[2];
    tn_dim any = tn_dim_fresh(g, 1, INT64_MAX);
    const tn_type types[2] = {{0}, tn_type_tensor(g, TN_F32, 1, &any)};
    tn_status status = tn_while(g, 2, init, declared ? types : NULL, below, grow, &c, 0, out);
    if (status == TN_OK)
        tn_set_output(g, "y", out[1]);
    return status;
}

/* Without a declared free dimension it is refused when built, by the value's name, its shape on entry and after one trip. */
static void test_w12_refused(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    assert_int_equal(build(g, false), TN_ERR_MODEL);
    static const char *const words[] = {"'x'", "f32[1] on entry", "f32[2] after one trip"};
    for (int i = 0; i < 3; i++)
        if (!strstr(tn_error_message(), words[i]))
            fail_msg("W12: no \"%s\" in: %s", words[i], tn_error_message());
    assert_int_not_equal(tn_graph_check(g), TN_OK); /* nothing half-built is used */
    assert_null(tn_model_from_graph(g, NULL));
    tn_graph_destroy(g);
}

static void test_w12_runs(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    if (build(g, true) != TN_OK)
        fail_msg("W12: %s", tn_error_message());
    tn_model *model = tn_model_from_graph(g, NULL);
    assert_non_null(model);
    for (int path = 0; path < 4; path++) {
        tn_session *session = tn_session_create(
            model, TN_OPTIONS(tn_session_options, .backend = path ? TN_BACKEND_CPU : TN_BACKEND_REFERENCE,
                              .level = path ? (tn_level)(TN_LEVEL_0 + path - 1) : TN_LEVEL_DEFAULT));
        if (!session)
            fail_msg("W12: %s", tn_error_message());
        static const int64_t trips[] = {10, 0, 3};
        for (int k = 0; k < 3; k++) {
            const float seven = 7;
            tn_tensor *x = tn_tensor_from_f32(1, (const int64_t[]){1}, &seven), *n = tn_tensor_create(TN_I64, 0, NULL),
                      *y = NULL;
            tn_tensor_set_f64(n, 0, (double)trips[k]);
            const tn_binding in[] = {{.name = "x", .tensor = x}, {.name = "n", .tensor = n}};
            if (tn_session_run(session, 2, in, 1, &(tn_output){.name = "y", .tensor = &y}) != TN_OK)
                fail_msg("W12: %s", tn_error_message());
            assert_int_equal(tn_tensor_rank(y), 1);
            assert_int_equal(tn_tensor_count(y), trips[k] + 1);
            for (int64_t i = 0; i <= trips[k]; i++)
                assert_true(tn_tensor_get_f64(y, i) == 7);
            tn_tensor_destroy(x);
            tn_tensor_destroy(n);
            tn_tensor_destroy(y);
        }
        tn_session_destroy(session);
    }
    tn_model_destroy(model);
    tn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_w12_refused), cmocka_unit_test(test_w12_runs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
