/* What a loop costs beside what it computes: a million trips of one scalar addition. T11: 10 000 steps of a scan of 3 x 3 products of
   doubles, a thousand scalar additions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include <tenon/build.h>
#include <tenon/session.h>

#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define JUDGED 1
#else
#define JUDGED 0
#endif

enum { TRIPS = 1000000 };

/* Seconds that this process had a processor: what else runs meanwhile does not count. */
static double processor_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void below(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_less(g, args[0], *(tn_value *)ctx);
}
static void trip(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = tn_add(g, args[0], tn_scalar(g, TN_I64, 1));
    results[1] = tn_add(g, args[1], tn_scalar(g, TN_F32, 1));
}

static void test_scalar_addition(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value n = tn_input(g, "n", TN_I64, TN_SCALAR), out[2];
    tn_value init[2] = {tn_scalar(g, TN_I64, 0), tn_input(g, "x", TN_F32, TN_SCALAR)};
    assert_int_equal(tn_while(g, 2, init, NULL, below, trip, &n, 0, out), TN_OK);
    tn_set_output(g, "y", out[1]);
    tn_model *model = tn_model_from_graph(g, NULL);
    tn_session *s = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1));
    tn_tensor *trips = tn_tensor_create(TN_I64, 0, NULL), *x = tn_tensor_create(TN_F32, 0, NULL), *y = NULL;
    tn_tensor_set_f64(trips, 0, TRIPS);
    tn_tensor_set_f64(x, 0, 3);
    double best = 1e30;
    for (int round = 0; round < 7; round++) {
        double start = processor_time();
        if (!s || tn_session_run(s, 2, (const tn_binding[]){{.name = "n", .tensor = trips}, {.name = "x", .tensor = x}},
                                 1, &(tn_output){.name = "y", .tensor = &y}) != TN_OK)
            fail_msg("%s", tn_error_message());
        double took = (processor_time() - start) / TRIPS;
        best = took < best ? took : best;
    }
    assert_true(tn_tensor_get_f64(y, 0) == TRIPS + 3);
    print_message("a trip takes %d ns\n", (int)(best * 1e9));
    assert_true(!JUDGED || best <= 0.2e-6); /* the addition itself takes two or three */
    tn_tensor_destroy(x);
    tn_tensor_destroy(y);
    tn_tensor_destroy(trips);
    tn_session_destroy(s);
    tn_model_destroy(model);
    tn_graph_destroy(g);
}

/* Seconds of a run that takes "x" and gives "y", at least. */
static double best_run(tn_graph *g, tn_tensor *x) {
    if (tn_graph_check(g) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_model *model = tn_model_from_graph(g, NULL);
    tn_session *s = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1));
    tn_tensor *y = NULL;
    double best = 1e30;
    for (int round = 0; round < 9; round++) {
        double start = processor_time();
        if (!s || tn_session_run(s, 1, &(tn_binding){.name = "x", .tensor = x}, 1,
                                 &(tn_output){.name = "y", .tensor = &y}) != TN_OK)
            fail_msg("%s", tn_error_message());
        double took = processor_time() - start;
        best = took < best ? took : best;
    }
    tn_tensor_destroy(x);
    tn_tensor_destroy(y);
    tn_session_destroy(s);
    tn_model_destroy(model);
    tn_graph_destroy(g);
    return best;
}

static void multiply(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = tn_matmul(g, args[0], args[1]);
    results[1] = results[0];
}

static void test_t11_scan(void **state) {
    (void)state;
    enum { STEPS = 10000 };
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F64, TN_SHAPE(STEPS, 3, 3)), out[2];
    tn_value first = tn_reshape(g, tn_slice_axis(g, x, 0, 0, 1), TN_SHAPE(3, 3));
    assert_int_equal(tn_scan(g, 1, &first, 1, &x, multiply, NULL, 1, out), TN_OK);
    tn_set_output(g, "y", out[0]);
    tn_tensor *turns = tn_tensor_create(TN_F64, 3, (const int64_t[]){STEPS, 3, 3});
    for (int64_t i = 0; i < STEPS * 9; i++) /* permutations */
        tn_tensor_set_f64(turns, i, i % 9 / 3 == (i % 3 + i / 9) % 3 ? 1 : 0);
    double step = best_run(g, turns) / STEPS;
    print_message("T11: a step takes %d ns\n", (int)(step * 1e9));
    assert_true(!JUDGED ||
                step <= 180e-9); /* 27 multiply-adds of doubles, one after the other in threes, take 30 or so */
}

static void test_t11_additions(void **state) {
    (void)state;
    enum { ADDED = 1000 };
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SCALAR), y = x;
    for (int i = 0; i < ADDED; i++)
        y = tn_add(g, y, x);
    tn_set_output(g, "y", y);
    double each = best_run(g, tn_tensor_create(TN_F32, 0, NULL)) / ADDED;
    print_message("T11: an addition takes %d ns\n", (int)(each * 1e9));
    assert_true(!JUDGED || each <= 150e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scalar_addition), cmocka_unit_test(test_t11_scan),
                                       cmocka_unit_test(test_t11_additions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
