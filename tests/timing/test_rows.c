/* Rows of behaviour that say how long: T6 (folding a large weight), T12 (tiny products against plain loops), H1 (half precision against
   float). All are ratios within one run. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <tenon/build.h>

#include "base/os.h"
#include "runtime/session.h"
#include "support/nets.h"

#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define JUDGED 1
#else
#define JUDGED 0
#endif

static tn_tensor *noise(tn_dtype dtype, int rank, const int64_t *dims, double scale) {
    tn_tensor *t = tn_tensor_create(dtype, rank, dims);
    uint32_t state = 99;
    for (int64_t i = 0; t && i < tn_tensor_count(t); i++) {
        state = state * 1664525u + 1013904223u;
        tn_tensor_set_f64(t, i, ((double)(state >> 8) / 8388608 - 1) * scale);
    }
    return t;
}

typedef struct net {
    tn_graph *graph;
    tn_model *model;
    tn_session *session;
    tn_tensor *x, *y;
    double least; /* seconds of a run */
} net;

/* A net of one thread for input x, which it takes. */
static void net_open(net *n, tn_graph *g, tn_tensor *x) {
    if (tn_graph_check(g) != TN_OK)
        fail_msg("%s", tn_error_message());
    *n = (net){.graph = g, .model = tn_model_from_graph(g, NULL), .x = x, .least = 1e9};
    n->session = tn_session_create(n->model, TN_OPTIONS(tn_session_options, .threads = 1));
}
static void net_run(net *n, int runs) {
    double start = tn_clock();
    for (int i = 0; i < runs; i++)
        if (!n->session || tn_session_run(n->session, 1, &(tn_binding){.name = "x", .tensor = n->x}, 1,
                                          &(tn_output){.name = "y", .tensor = &n->y}) != TN_OK)
            fail_msg("%s", tn_error_message());
    double took = (tn_clock() - start) / runs;
    n->least = took < n->least ? took : n->least;
}
static void net_close(net *n) {
    tn_tensor_destroy(n->y);
    tn_session_destroy(n->session);
    tn_model_destroy(n->model);
    tn_graph_destroy(n->graph);
    tn_tensor_destroy(n->x);
}

/* Seconds of a run, at least. The graph is destroyed; x is borrowed. */
static double best_run(tn_graph *g, tn_tensor *x, int rounds, int each) {
    net n;
    net_open(&n, g, x);
    for (int round = 0; round < rounds; round++)
        net_run(&n, each);
    n.x = NULL;
    net_close(&n);
    return n.least;
}

/* --- H1 ------------------------------------------------------------------------------------------------------------------------------------- */

static tn_graph *layers(tn_dtype dtype) {
    enum { LAYERS = 10, WIDE = 512 };
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", dtype, TN_SHAPE("N", WIDE));
    tn_tensor *w = noise(dtype, 2, (const int64_t[]){WIDE, WIDE}, 0.1);
    for (int i = 0; i < LAYERS; i++)
        x = tn_relu(g, tn_matmul(g, x, tn_constant(g, w)));
    tn_tensor_destroy(w);
    tn_set_output(g, "y", x);
    return g;
}

static void test_h1_half_precision(void **state) {
    (void)state;
    net nets[2];
    for (int half = 0; half < 2; half++)
        net_open(&nets[half], layers(half ? TN_F16 : TN_F32),
                 noise(half ? TN_F16 : TN_F32, 2, (const int64_t[]){64, 512}, 1));
    for (int round = 0; round < 120; round++)
        for (int half = 0; half < 2; half++)
            net_run(&nets[half], 2);
    print_message("ten layers: %d us in half precision, %d in float\n", (int)(nets[1].least * 1e6),
                  (int)(nets[0].least * 1e6));
    if (JUDGED)
        assert_true(nets[1].least <= nets[0].least);
    for (int half = 0; half < 2; half++)
        net_close(&nets[half]);
}

/* --- T6 ------------------------------------------------------------------------------------------------------------------------------------- */

enum { WEIGHT_SIDE = 8192 };

/* In a process of its own: prepares and runs Transpose and Cast of a weight of 256 MB, wherever that is computed. Answers by its exit
   status; seconds into the pipe. */
static void fold_large(int to) {
    enum { PARTS = 4 };
    size_t bytes = (size_t)WEIGHT_SIDE * WEIGHT_SIDE * sizeof(float);
    tn_tensor *w = tn_tensor_create(TN_F32, 2, (const int64_t[]){WEIGHT_SIDE, WEIGHT_SIDE});
    if (!w)
        _exit(2);
    memset(tn_tensor_data(w), 0x3c, bytes);
    double start = tn_clock();
    for (size_t i = 0; i < PARTS; i++) { /* into fresh memory, without a second weight in it */
        char *copy = tn_alloc_aligned(NULL, bytes / PARTS, 64);
        if (!copy)
            _exit(2);
        memcpy(copy, (char *)tn_tensor_data(w) + i * (bytes / PARTS), bytes / PARTS);
        __asm__ volatile("" ::"r"(copy) : "memory");
        tn_free(NULL, copy);
    }
    double copied = tn_clock() - start;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F16, TN_SHAPE(1, 1)), c = tn_constant(g, w);
    tn_tensor_destroy(w);
    tn_set_output(g, "y", tn_add(g, x, tn_cast(g, tn_transpose(g, c, NULL), TN_F16)));
    tn_model *model = tn_model_from_graph(g, NULL);
    tn_tensor *one = tn_tensor_create(TN_F16, 2, (const int64_t[]){1, 1}), *y = NULL;
    start = tn_clock();
    tn_session *s = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1));
    if (!s || tn_session_run(s, 1, &(tn_binding){.name = "x", .tensor = one}, 1,
                             &(tn_output){.name = "y", .tensor = &y}) != TN_OK)
        _exit(3);
    double times[] = {copied, tn_clock() - start};
    _exit(write(to, times, sizeof times) == (ssize_t)sizeof times ? 0 : 4);
}

static void test_t6_large_weight(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0)
        fold_large(ends[1]);
    close(ends[1]);
    double times[2] = {0};
    int status = 0;
    struct rusage usage;
    ssize_t got = read(ends[0], times, sizeof times);
    close(ends[0]);
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    assert_int_equal(status, 0);
    assert_int_equal(got, sizeof times);
    long megabytes = usage.ru_maxrss / 1024;
    print_message("a weight of 256 MB: transposed and cast in %d ms, copied in %d; %ld MB at most\n",
                  (int)(times[1] * 1e3), (int)(times[0] * 1e3), megabytes);
    if (JUDGED) {
        assert_true(megabytes <= 2 * 256 + 50);
        assert_true(times[1] <= 3 * times[0]);
    }
}

/* --- T12 ---------------------------------------------------------------------------------------------------------------------------------- */

enum { TIMES = 40 };

static tn_graph *products(int64_t n) {
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F64, TN_SHAPE(n, n));
    for (int i = 0; i < TIMES; i++)
        x = tn_matmul(g, x, x);
    tn_set_output(g, "y", x);
    return g;
}

static void plain_product(int64_t n, const double *a, const double *b, double *c) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t k = 0; k < n; k++)
                sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
}

static double best_plain(int64_t n, const double *a) {
    double *c = tn_alloc(NULL, (size_t)(n * n) * sizeof *c), least = 1e9;
    int each = n > 100 ? 1 : 2000;
    for (int round = 0; round < 5; round++) {
        double start = tn_clock();
        for (int i = 0; i < each; i++) {
            plain_product(n, a, a, c);
            __asm__ volatile("" ::"r"(c) : "memory");
        }
        double took = (tn_clock() - start) / each;
        least = took < least ? took : least;
    }
    tn_free(NULL, c);
    return least;
}

static void test_t12_products(void **state) {
    (void)state;
    static const int64_t size[] = {2, 3, 256};
    tn_tensor *one = noise(TN_F64, 2, (const int64_t[]){1, 1}, 0.5);
    double call = best_run(products(1), one, 40, 20) / TIMES;
    tn_tensor_destroy(one);
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        int64_t n = size[i];
        tn_tensor *x = noise(TN_F64, 2, (const int64_t[]){n, n}, 1.0 / (double)n);
        double took = best_run(products(n), x, n > 100 ? 3 : 40, n > 100 ? 1 : 20) / TIMES,
               plain = best_plain(n, tn_tensor_data(x));
        print_message("%d x %d doubles: %d ns, of which a call takes %d; plain loops %d\n", (int)n, (int)n,
                      (int)(took * 1e9), (int)(call * 1e9), (int)(plain * 1e9));
        tn_tensor_destroy(x);
        /* what a call takes is known to some nanoseconds */
        if (JUDGED)
            assert_true(took - call <= plain + 15e-9);
    }
}

/* Volumes of 4 x 4 x 4, 2 channels to 3, windows of 2 x 2 x 2. */
enum { IN = 2, OUT = 3, SIDE = 4, WINDOW = 2, SIDE_OUT = SIDE - WINDOW + 1 };

static void plain_volume(const double *x, const double *w, double *y) {
    for (int m = 0; m < OUT; m++)
        for (int d = 0; d < SIDE_OUT; d++)
            for (int h = 0; h < SIDE_OUT; h++)
                for (int v = 0; v < SIDE_OUT; v++) {
                    double sum = 0;
                    for (int c = 0; c < IN; c++)
                        for (int i = 0; i < WINDOW; i++)
                            for (int j = 0; j < WINDOW; j++)
                                for (int k = 0; k < WINDOW; k++)
                                    sum += x[((c * SIDE + d + i) * SIDE + h + j) * SIDE + v + k] *
                                           w[((m * IN + c) * WINDOW + i) * WINDOW * WINDOW + j * WINDOW + k];
                    y[((m * SIDE_OUT + d) * SIDE_OUT + h) * SIDE_OUT + v] = sum;
                }
}

/* TIMES convolutions of one volume by weights of their own, each an output. */
static double best_volumes(int64_t in, int64_t out, int64_t side, int64_t window, tn_tensor *x) {
    tn_graph *g = tn_graph_create();
    tn_value v = tn_input(g, "x", TN_F64, TN_SHAPE(1, in, side, side, side));
    char name[TIMES][8];
    tn_output y[TIMES];
    tn_tensor *result[TIMES] = {NULL};
    for (int i = 0; i < TIMES; i++) {
        tn_tensor *w = noise(TN_F64, 5, (const int64_t[]){out, in, window, window, window}, 1 + i);
        snprintf(name[i], sizeof name[i], "y%d", i);
        tn_set_output(g, name[i], tn_conv(g, v, tn_constant(g, w), NULL, NULL, NULL, NULL, NULL, 1));
        y[i] = (tn_output){.name = name[i], .tensor = &result[i]};
        tn_tensor_destroy(w);
    }
    if (tn_graph_check(g) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_model *model = tn_model_from_graph(g, NULL);
    tn_session *s = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1));
    double least = 1e9;
    for (int round = 0; round < 200; round++) { /* into the tensors of the first */
        double start = tn_clock();
        if (!s || tn_session_run(s, 1, &(tn_binding){.name = "x", .tensor = x}, TIMES, y) != TN_OK)
            fail_msg("%s", tn_error_message());
        double took = (tn_clock() - start) / TIMES;
        least = took < least ? took : least;
    }
    for (int i = 0; i < TIMES; i++)
        tn_tensor_destroy(result[i]);
    tn_session_destroy(s);
    tn_model_destroy(model);
    tn_graph_destroy(g);
    return least;
}

static void test_t12_volumes(void **state) {
    (void)state;
    tn_tensor *one = noise(TN_F64, 5, (const int64_t[]){1, 1, 1, 1, 1}, 1),
              *x = noise(TN_F64, 5, (const int64_t[]){1, IN, SIDE, SIDE, SIDE}, 1),
              *w = noise(TN_F64, 5, (const int64_t[]){OUT, IN, WINDOW, WINDOW, WINDOW}, 1);
    double call = best_volumes(1, 1, 1, 1, one), took = best_volumes(IN, OUT, SIDE, WINDOW, x), plain = 1e9,
           y[OUT * SIDE_OUT * SIDE_OUT * SIDE_OUT];
    for (int round = 0; round < 50; round++) {
        double start = tn_clock();
        for (int i = 0; i < 100; i++) {
            plain_volume(tn_tensor_data(x), tn_tensor_data(w), y);
            __asm__ volatile("" ::"r"(y) : "memory");
        }
        double now = (tn_clock() - start) / 100;
        plain = now < plain ? now : plain;
    }
    print_message("volumes of doubles: %d ns, of which a call takes %d; plain loops %d\n", (int)(took * 1e9),
                  (int)(call * 1e9), (int)(plain * 1e9));
    tn_tensor_destroy(one);
    tn_tensor_destroy(x);
    tn_tensor_destroy(w);
    if (JUDGED)
        assert_true(took - call <= plain + 15e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_h1_half_precision), cmocka_unit_test(test_t6_large_weight),
                                       cmocka_unit_test(test_t12_products), cmocka_unit_test(test_t12_volumes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
