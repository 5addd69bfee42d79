/* What a new size costs: binding takes at most a microsecond for each kernel; a small size of a bounded dimension takes a small share of
   the time of the largest; a loop that is cancelled ends at once. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <cmocka.h>
#include <tenon/build.h>

#include "base/os.h"
#include "support/nets.h"

static void run(tn_session *s, tn_tensor *x, tn_tensor **y) {
    if (tn_session_run(s, 1, &(tn_binding){.name = "x", .tensor = x}, 1, &(tn_output){.name = "y", .tensor = y}) !=
        TN_OK)
        fail_msg("%s", tn_error_message());
}

/* Seconds of a run, at least, over sizes that stay (step 0) or change from run to run. */
static double seconds(tn_session *s, tn_tensor *const *x, tn_tensor **y, int step) {
    double least = 1;
    for (int round = 0; round < 40; round++) {
        double start = tn_clock();
        for (int i = 0; i < 20; i++)
            run(s, x[i * step % 4], &y[i * step % 4]);
        double took = (tn_clock() - start) / 20;
        least = took < least ? took : least;
    }
    return least;
}

/* x [N, T]: 500 layers that don't fuse, each read again ten layers later. */
static tn_graph *deep(void) {
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", "T")), y[500];
    for (int i = 0; i < 500; i++) {
        tn_value from = i ? y[i - 1] : x;
        y[i] = tn_cumsum(g, i > 10 ? tn_mul(g, from, y[i - 10]) : tn_sin(g, from), 1, false, false);
    }
    tn_set_output(g, "y", y[499]);
    return g;
}

static void test_binding(void **state) {
    (void)state;
    for (int kind = 0; kind <= NET_KINDS; kind++) {
        bool is_deep = kind == NET_KINDS;
        tn_graph *g = is_deep ? deep() : net_build(NULL, (net_kind)kind, -1, -1);
        tn_model *model = tn_model_from_graph(g, NULL);
        tn_session *s = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1));
        tn_tensor *x[4], *y[4] = {0};
        for (int i = 0; i < 4; i++) {
            x[i] = net_input(is_deep ? NET_LOOP : (net_kind)kind, 1 + i % 2, 3 + i / 2, 1);
            run(s, x[i], &y[i]);
        }
        double same = 0;
        for (int i = 0; i < 4; i++) {
            tn_tensor *one[4] = {x[i], x[i], x[i], x[i]}, *into[4] = {y[i], y[i], y[i], y[i]};
            same += seconds(s, one, into, 0) / 4;
        }
        double other = seconds(s, x, y, 1);
        tn_session_report report;
        assert_int_equal(tn_session_describe(s, &report), TN_OK);
        double each = 1e9 * (other - same) / (report.kernels + report.host_calls);
        printf("%s: %.2f us a run, %.2f us with a new size, %d kernels: %.0f ns each\n",
               is_deep ? "500 layers" : net_names[kind], 1e6 * same, 1e6 * other, (int)report.kernels, each);
        assert_true(each <= 1000);
        for (int i = 0; i < 4; i++) {
            tn_tensor_destroy(x[i]);
            tn_tensor_destroy(y[i]);
        }
        tn_session_destroy(s);
        tn_model_destroy(model);
        tn_graph_destroy(g);
    }
}

/* A plan for all sizes takes no more than 1.05 of the time of one for these sizes alone. */
static void test_free_against_fixed(void **state) {
    (void)state;
    static const int64_t n[] = {16, 4, 4}, t[] = {1, 32, 64};
    static const net_kind kinds[] = {NET_MLP, NET_CNN, NET_TRANSFORMER};
    for (int k = 0; k < 3; k++) {
        tn_graph *g[2] = {net_build(NULL, kinds[k], -1, -1), net_build(NULL, kinds[k], n[k], t[k])};
        tn_tensor *x = net_input(kinds[k], n[k], t[k], 1), *y[2] = {NULL, NULL};
        tn_model *model[2];
        tn_session *s[2];
        double least[2] = {1, 1};
        for (int i = 0; i < 2; i++) {
            model[i] = tn_model_from_graph(g[i], NULL);
            s[i] = tn_session_create(model[i], TN_OPTIONS(tn_session_options, .threads = 1));
            run(s[i], x, &y[i]);
        }
        for (int round = 0; round < 400; round++) { /* in turns */
            double begin = tn_clock();
            for (int j = 0; j < 5; j++)
                run(s[round % 2], x, &y[round % 2]);
            double took = (tn_clock() - begin) / 5;
            least[round % 2] = took < least[round % 2] ? took : least[round % 2];
        }
        printf("%s: free sizes %.2f us, fixed sizes %.2f us: %.3f\n", net_names[kinds[k]], 1e6 * least[0],
               1e6 * least[1], least[0] / least[1]);
        assert_true(least[0] <= 1.05 * least[1]);
        for (int i = 0; i < 2; i++) {
            tn_session_destroy(s[i]);
            tn_model_destroy(model[i]);
            tn_graph_destroy(g[i]);
            tn_tensor_destroy(y[i]);
        }
        tn_tensor_destroy(x);
    }
}

/* D3: N = 7 of at most 1024. */
static void test_bounded(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_tensor *w = tn_tensor_create(TN_F32, 2, (const int64_t[]){64, 256});
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 64));
    tn_dim_set_bounds(g, tn_value_dim(g, x, 0), 0, 1024);
    tn_value y = tn_gelu(g, tn_matmul(g, x, tn_constant(g, w)));
    tn_set_output(g, "y", tn_softmax(g, tn_matmul(g, y, tn_transpose(g, tn_constant(g, w), NULL)), 1));
    tn_model *model = tn_model_from_graph(g, NULL);
    tn_session *s = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1));
    double least[2];
    for (int i = 0; i < 2; i++) {
        tn_tensor *in = tn_tensor_create(TN_F32, 2, (const int64_t[]){i ? 7 : 1024, 64}), *out = NULL;
        run(s, in, &out);
        tn_tensor *all[4] = {in, in, in, in}, *into[4] = {out, out, out, out};
        least[i] = seconds(s, all, into, 0);
        tn_tensor_destroy(in);
        tn_tensor_destroy(out);
    }
    printf("N = 1024: %.1f us, N = 7: %.1f us\n", 1e6 * least[0], 1e6 * least[1]);
    assert_true(least[1] < 0.05 * least[0]);
    tn_session_destroy(s);
    tn_model_destroy(model);
    tn_graph_destroy(g);
    tn_tensor_destroy(w);
}

/* --- R3 ------------------------------------------------------------------------------------------------------------------------- */

static void below(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_less(g, args[0], *(const tn_value *)ctx);
}
static void trip(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = tn_add(g, args[0], tn_constant_i64(g, 0, 1, (const int64_t[]){1}));
}

typedef struct job {
    tn_session *session;
    tn_cancel *cancel;
    tn_status status;
    double ended;
} job;

static void *run_long(void *arg) {
    job *j = arg;
    tn_tensor *x = tn_tensor_create(TN_I64, 0, NULL), *y = NULL;
    tn_tensor_set_f64(x, 0, 1e9);
    j->status =
        tn_session_run_with(j->session, 1, &(tn_binding){.name = "x", .tensor = x}, 1,
                            &(tn_output){.name = "y", .tensor = &y}, TN_OPTIONS(tn_run_options, .cancel = j->cancel));
    j->ended = tn_clock();
    tn_tensor_destroy(x);
    tn_tensor_destroy(y);
    return NULL;
}

static void test_cancel(void **state) {
    (void)state;
    for (int back = 0; back < 2; back++) {
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_I64, TN_SCALAR), y, zero = tn_constant_i64(g, 0, 1, (const int64_t[]){0});
        assert_int_equal(tn_while(g, 1, &zero, NULL, below, trip, &x, 0, &y), TN_OK);
        tn_set_output(g, "y", y);
        tn_model *model = tn_model_from_graph(g, NULL);
        job j = {.cancel = tn_cancel_create()};
        j.session = tn_session_create(
            model, TN_OPTIONS(tn_session_options, .backend = back ? TN_BACKEND_REFERENCE : TN_BACKEND_CPU));
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, run_long, &j), 0);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        double set = tn_clock();
        tn_cancel_set(j.cancel);
        pthread_join(thread, NULL);
        printf("cancelled after %.3f ms\n", 1e3 * (j.ended - set));
        assert_int_equal(j.status, TN_ERR_CANCELLED);
        assert_true(j.ended - set < 0.02);
        tn_session_destroy(j.session);
        tn_cancel_destroy(j.cancel);
        tn_model_destroy(model);
        tn_graph_destroy(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_binding), cmocka_unit_test(test_free_against_fixed),
                                       cmocka_unit_test(test_bounded), cmocka_unit_test(test_cancel)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
