/* What a loop costs beside what it computes: a million trips of one scalar addition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tenon/build.h>
#include <tenon/session.h>

#include "base/os.h"

#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define JUDGED 1
#else
#define JUDGED 0
#endif

enum { TRIPS = 1000000 };

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
        double start = tn_clock();
        if (!s || tn_session_run(s, 2, (const tn_binding[]){{.name = "n", .tensor = trips}, {.name = "x", .tensor = x}},
                                 1, &(tn_output){.name = "y", .tensor = &y}) != TN_OK)
            fail_msg("%s", tn_error_message());
        double took = (tn_clock() - start) / TRIPS;
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scalar_addition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
