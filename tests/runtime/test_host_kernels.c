/* Sums of nodes that host instructions run (bodies of branches and loops of changing shapes) have the bits that kernels give: it does
   not depend on the level, nor on where a node stands, who runs it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tenon/build.h>
#include <tenon/session.h>

#include "support/nets.h"

enum { RESULTS = 9, N = 5, C = 24, H = 9, W = 10 };

typedef struct net {
    tn_value x, weight, grouped, matrix;
} net;

/* x [N, C, H, W] */
static void sums(const net *n, tn_graph *g, tn_value x, tn_value *y) {
    const int last[] = {2, 3}, one[] = {1};
    tn_value rows = tn_reshape_dims(g, x, 2, (const tn_dim[]){tn_value_dim(g, x, 0), tn_dim_const(g, C * H * W)});
    tn_value wide = tn_cast(g, rows, TN_F64), half = tn_cast(g, rows, TN_F16);
    tn_value near_one = tn_add(g, tn_mul(g, rows, tn_scalar(g, TN_F32, 0.01)), tn_scalar(g, TN_F32, 1));
    y[0] = tn_conv(g, x, n->weight, NULL, NULL, NULL, NULL, NULL, 1);
    y[1] = tn_conv(g, x, n->grouped, NULL, NULL, NULL, NULL, NULL, C);
    y[2] = tn_matmul(g, rows, n->matrix);
    y[3] = tn_matmul(g, x, tn_transpose(g, x, (const int[]){0, 1, 3, 2}));
    y[4] = tn_reduce_sum(g, x, 2, last);
    y[5] = tn_reduce_sum(g, wide, 1, one);
    y[6] = tn_reduce_sum(g, half, 1, one);
    y[7] = tn_reduce_prod(g, near_one, 1, one);
    y[8] = tn_window(g, "sum", x, (const int64_t[]){1, 1, 3, 3}, NULL, NULL, NULL, NULL);
}

static void taken(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    const net *n = ctx;
    sums(n, g, n->x, results);
}

/* Of one image: other shapes, so that the branch is a host instruction. */
static void left(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    const net *n = ctx;
    sums(n, g, tn_slice_axis(g, n->x, 0, 0, 1), results);
}

static tn_tensor *noise(int rank, const int64_t *dims, double scale) {
    tn_tensor *t = tn_tensor_create(TN_F32, rank, dims);
    uint32_t state = 12345;
    for (int64_t i = 0; t && i < tn_tensor_count(t); i++) {
        state = state * 1664525u + 1013904223u;
        tn_tensor_set_f64(t, i, ((double)(state >> 8) / 8388608 - 1) * scale);
    }
    return t;
}

/* `how`: 0 straight, 1 in a branch that is fed, 2 in a branch whose condition is a constant (a pass takes it). */
static tn_graph *make(int how) {
    tn_graph *g = tn_graph_create();
    tn_tensor *w = noise(4, (const int64_t[]){6, C, 3, 3}, 1), *d = noise(4, (const int64_t[]){C, 1, 3, 3}, 1),
              *m = noise(2, (const int64_t[]){C * H * W, 7}, 1);
    net n = {.x = tn_input(g, "x", TN_F32, TN_SHAPE(N, C, H, W)),
             .weight = tn_variable(g, "w", w),
             .grouped = tn_variable(g, "d", d),
             .matrix = tn_variable(g, "m", m)};
    tn_value go = how == 1 ? tn_input(g, "go", TN_BOOL, TN_SCALAR) : tn_scalar(g, TN_BOOL, 1);
    tn_value y[RESULTS];
    if (how)
        assert_int_equal(tn_if(g, go, taken, left, &n, RESULTS, y), TN_OK);
    else
        sums(&n, g, n.x, y);
    for (int i = 0; i < RESULTS; i++)
        tn_set_output(g, (char[]){'y', (char)('0' + i), 0}, y[i]);
    tn_tensor_destroy(w);
    tn_tensor_destroy(d);
    tn_tensor_destroy(m);
    if (tn_graph_check(g) != TN_OK)
        fail_msg("%s", tn_error_message());
    return g;
}

static void run(tn_graph *g, int level, const char *isa, int threads, bool branch, bool on_host, tn_tensor **y) {
    tn_model *model = tn_model_from_graph(g, NULL);
    tn_session *s = tn_session_create(model, TN_OPTIONS(tn_session_options, .level = (tn_level)(TN_LEVEL_0 + level),
                                                        .isa = isa, .threads = threads, .oversubscribe = true));
    if (!s)
        fail_msg("%s", tn_error_message());
    tn_session_report report;
    assert_int_equal(tn_session_describe(s, &report), TN_OK);
    assert_true((report.host_calls > 0) == on_host); /* else nothing is shown */
    tn_tensor *x = noise(4, (const int64_t[]){N, C, H, W}, 3), *go = tn_tensor_create(TN_BOOL, 0, NULL);
    tn_tensor_set_f64(go, 0, 1);
    tn_output out[RESULTS];
    char name[RESULTS][3];
    for (int time = 0; time < 2; time++) { /* what is kept gives the same */
        for (int i = 0; i < RESULTS; i++) {
            memcpy(name[i], (char[]){'y', (char)('0' + i), 0}, 3);
            tn_tensor_destroy(time ? y[i] : NULL);
            y[i] = NULL;
            out[i] = (tn_output){.name = name[i], .tensor = &y[i]};
        }
        if (tn_session_run(s, branch ? 2 : 1,
                           (const tn_binding[]){{.name = "x", .tensor = x}, {.name = "go", .tensor = go}}, RESULTS,
                           out) != TN_OK)
            fail_msg("%s", tn_error_message());
    }
    tn_tensor_destroy(x);
    tn_tensor_destroy(go);
    tn_session_destroy(s);
    tn_model_destroy(model);
}

static void test_same_sums(void **state) {
    (void)state;
    static const struct {
        int how, level;
        bool on_host;
    } way[] = {{0, 0, false}, {0, 1, false}, {1, 0, true}, {1, 1, true}, {2, 0, true}, {2, 1, false}};
    const char *const isa[] = {"generic", NULL};
    for (int i = 0; i < 2; i++) {
        tn_tensor *want[RESULTS];
        for (size_t k = 0; k < sizeof way / sizeof *way; k++)
            for (int threads = 1; threads <= 3; threads += 2) {
                tn_graph *g = make(way[k].how);
                tn_tensor *y[RESULTS] = {NULL};
                run(g, way[k].level, isa[i], threads, way[k].how == 1, way[k].on_host, y);
                for (int r = 0; r < RESULTS; r++) {
                    if (k == 0 && threads == 1)
                        want[r] = tn_tensor_retain(y[r]);
                    else if (tn_tensor_bytes(y[r]) != tn_tensor_bytes(want[r]) ||
                             memcmp(tn_tensor_data(y[r]), tn_tensor_data(want[r]), tn_tensor_bytes(y[r])) != 0)
                        fail_msg("%s: sum %d: way %d at -O%d on %d threads has other bits", isa[i] ? isa[i] : "best", r,
                                 way[k].how, way[k].level, threads);
                    tn_tensor_destroy(y[r]);
                }
                tn_graph_destroy(g);
            }
        for (int r = 0; r < RESULTS; r++)
            tn_tensor_destroy(want[r]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
