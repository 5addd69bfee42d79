/* Carried values of compiled loops: swapped, turned, kept, read after they were overwritten; the reference says what they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tenon/build.h>
#include <tenon/session.h>

enum { CARRIED = 7, PATHS = 4 };

static const tn_session_options paths[PATHS] = {
    {.size = sizeof(tn_session_options), .backend = TN_BACKEND_REFERENCE},
    {.size = sizeof(tn_session_options), .level = TN_LEVEL_0},
    {.size = sizeof(tn_session_options), .level = TN_LEVEL_1, .guard = true},
    {.size = sizeof(tn_session_options)}};

static void below(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_less(g, args[0], *(tn_value *)ctx);
}

/* i; two that change places; one that is turned over and its sum with another; one that stays and one that only leaves. */
static void trip(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = tn_add(g, args[0], tn_scalar(g, TN_I64, 1));
    results[1] = args[2];
    results[2] = args[1];
    results[3] = tn_transpose(g, args[3], NULL);
    results[4] = tn_add(g, args[4], args[3]);
    results[5] = args[5];
    results[6] = tn_mul(g, args[5], tn_cast(g, args[0], TN_F32));
}

static tn_graph *make(int size) {
    tn_graph *g = tn_graph_create();
    tn_value n = tn_input(g, "n", TN_I64, TN_SCALAR), x = tn_input(g, "x", TN_F32, TN_SHAPE(size, size)), out[CARRIED];
    tn_value init[CARRIED] = {tn_scalar(g, TN_I64, 0), x, tn_neg(g, x), x, x, x, tn_exp(g, x)};
    assert_int_equal(tn_while(g, CARRIED, init, NULL, below, trip, &n, 0, out), TN_OK);
    tn_value y = out[1];
    for (int i = 2; i < CARRIED; i++)
        y = tn_add(g, y, tn_mul(g, out[i], tn_scalar(g, TN_F32, i)));
    tn_set_output(g, "y", tn_mul(g, y, tn_cast(g, out[0], TN_F32)));
    assert_int_equal(tn_graph_check(g), TN_OK);
    return g;
}

/* Sizes of one strip and of more, which run in other ways. */
static void test_carried(void **state) {
    (void)state;
    static const int sizes[] = {1, 3, 11, 40};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        tn_graph *g = make(sizes[k]);
        tn_model *model = tn_model_from_graph(g, NULL);
        tn_tensor *x = tn_tensor_create(TN_F32, 2, (const int64_t[]){sizes[k], sizes[k]});
        for (int64_t i = 0; i < tn_tensor_count(x); i++)
            tn_tensor_set_f64(x, i, (double)(i % 13) / 4 - 1);
        for (int n = 0; n < 5; n++) {
            tn_tensor *trips = tn_tensor_create(TN_I64, 0, NULL), *want = NULL;
            tn_tensor_set_f64(trips, 0, n);
            const tn_binding in[] = {{.name = "n", .tensor = trips}, {.name = "x", .tensor = x}};
            for (int p = 0; p < PATHS; p++) {
                tn_session *s = tn_session_create(model, &paths[p]);
                for (int again = 0; again < 2; again++) {
                    tn_tensor *y = NULL;
                    if (!s || tn_session_run(s, 2, in, 1, &(tn_output){.name = "y", .tensor = &y}) != TN_OK)
                        fail_msg("%s", tn_error_message());
                    for (int64_t i = 0; want && i < tn_tensor_count(y); i++) {
                        double a = tn_tensor_get_f64(y, i), b = tn_tensor_get_f64(want, i);
                        if (a - b > 1e-4 || b - a > 1e-4)
                            fail_msg("%d by %d, %d trips, path %d: element %d is %g, not %g", sizes[k], sizes[k], n, p,
                                     (int)i, a, b);
                    }
                    if (want)
                        tn_tensor_destroy(y);
                    else
                        want = y;
                }
                tn_session_destroy(s);
            }
            tn_tensor_destroy(want);
            tn_tensor_destroy(trips);
        }
        tn_tensor_destroy(x);
        tn_model_destroy(model);
        tn_graph_destroy(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_carried)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
