/* Worked examples of what the plan does: counts of kernels and nodes in case.json, W02, W07, W08, W09, W11, W18, W21, W24. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tenon/build.h>

#include <tenon/tenon.h>

#include "base/os.h"
#include "lower/cost.h"
#include "runtime/session.h"
#include "runtime/verify.h"
#include "support/model_runs.h"

static tn_session *open_session(tn_model *model, tn_level level, tn_reuse_option reuse, tn_layout_option layout) {
    tn_session *s = tn_session_create(
        model, TN_OPTIONS(tn_session_options, .level = level, .reuse = reuse, .layout = layout, .threads = 1));
    if (!s)
        fail_msg("%s", tn_error_message());
    return s;
}

static const tn_plan *plan_of(const tn_session *s) {
    return s->whole.compiled->plan;
}

static tn_model *model_of(tn_graph *g) {
    tn_model *model = tn_graph_check(g) == TN_OK ? tn_model_from_graph(g, NULL) : NULL;
    if (!model)
        fail_msg("%s", tn_error_message());
    return model;
}

/* The model and the graph it was made from. */
static void drop(tn_model *model, tn_graph *g) {
    tn_model_destroy(model);
    tn_graph_destroy(g);
}

static tn_tensor *run_one(tn_session *s, tn_tensor *x) {
    tn_tensor *y = NULL;
    if (tn_session_run(s, 1, (const tn_binding[]){{.name = "x", .tensor = x}}, 1,
                       (const tn_output[]){{.name = "y", .tensor = &y}}) != TN_OK)
        fail_msg("%s", tn_error_message());
    return y;
}

static tn_tensor *ramp(int rank, const int64_t *dims) {
    tn_tensor *t = tn_tensor_create(TN_F32, rank, dims);
    for (int64_t i = 0; i < tn_tensor_count(t); i++)
        tn_tensor_set_f64(t, i, (double)(i * 7 % 23) / 8 - 1.3);
    return t;
}

static tn_value weights(tn_graph *g, int rank, const int64_t *dims) {
    tn_tensor *t = ramp(rank, dims);
    tn_value v = tn_constant(g, t);
    tn_tensor_destroy(t);
    return v;
}

static void assert_same_bits(const tn_tensor *a, const tn_tensor *b) {
    assert_int_equal(tn_tensor_bytes(a), tn_tensor_bytes(b));
    assert_memory_equal(tn_tensor_data(a), tn_tensor_data(b), tn_tensor_bytes(a));
}

static char *text_of(const tn_plan *p) {
    tn_text text;
    tn_text_init(&text, NULL);
    assert_int_equal(tn_plan_print(p, &text), TN_OK);
    char *copy = strdup(text.data);
    tn_text_free(&text);
    return copy;
}

/* --- counts in case.json ----------------------------------------------------------------------------------------------------- */

/* The number behind "key": in a file; -1: not there. */
static long number_in(const char *path, const char *key) {
    size_t size;
    char *text = tn_file_read(NULL, path, &size), *at = text ? strstr(text, key) : NULL;
    long n = -1;
    if (at && (at = strchr(at + strlen(key), ':')))
        n = strtol(at + 1, NULL, 10);
    tn_free(NULL, text);
    return n;
}

static void test_counts(void **state) {
    (void)state;
    /* counts that need rewriting which is not there yet */
    static const char *const later[] = {"W01-", "W05-", "W13-", "W14-"};
    char **names = shared_models("worked-examples");
    uint32_t checked = 0;
    for (uint32_t i = 0; names[i]; i++) {
        char within[300], path[4096], folder[4096];
        bool expected = true;
        for (size_t k = 0; k < sizeof later / sizeof *later; k++)
            expected = expected && strncmp(names[i], later[k], strlen(later[k])) != 0;
        snprintf(within, sizeof within, "worked-examples/%s/case.json", names[i]);
        if (!expected || !shared_path(within, path, sizeof path))
            continue;
        snprintf(within, sizeof within, "worked-examples/%s/model.onnx", names[i]);
        long kernels = number_in(path, "\"kernels_after\""), nodes = number_in(path, "\"nodes_after\"");
        tn_model *model = tn_model_load(shared_path(within, folder, sizeof folder), NULL);
        assert_non_null(model);
        tn_session *s = open_session(model, TN_LEVEL_DEFAULT, TN_REUSE_FULL, TN_LAYOUT_AUTO);
        tn_session_report report;
        assert_int_equal(tn_session_describe(s, &report), TN_OK);
        if ((kernels >= 0 && report.kernels != (uint32_t)kernels) || (nodes >= 0 && report.nodes != (uint32_t)nodes))
            fail_msg("%s: %u kernels, %u nodes; wanted %ld, %ld (-1: any)", names[i], report.kernels, report.nodes,
                     kernels, nodes);
        checked += kernels >= 0 || nodes >= 0;
        tn_session_destroy(s);
        tn_model_destroy(model);
    }
    assert_true(!names[0] || checked >= 3); /* W04, W06 and W06 fed */
    shared_free_names(names);
}

/* --- W02: product, bias and ReLU are one kernel, whose result alone is written -------------------------------------------------------- */

static double bytes_written(const tn_plan *p) {
    double bytes = 0;
    tn_dim_env env;
    assert_true(tn_dim_env_init(&env, NULL, &p->graph->dims));
    for (uint32_t i = 0; i < p->kernel.len; i++) {
        int64_t n;
        uint32_t slot = p->kernel.data[i].output[0].slot;
        assert_true(tn_dim_eval(&p->graph->dims, &env, p->size.data[p->slot.data[slot].bytes], &n));
        bytes += (double)n;
    }
    tn_dim_env_free(&env);
    return bytes;
}

static void test_w02_one_kernel(void **state) {
    (void)state;
    enum { M = 24, K = 40, N = 56 };
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(M, K)), w = weights(g, 2, (const int64_t[]){K, N}),
             b = weights(g, 1, (const int64_t[]){N});
    tn_set_output(g, "y", tn_relu(g, tn_add(g, tn_matmul(g, x, w), b)));
    tn_model *model = model_of(g);
    tn_tensor *in = ramp(2, (const int64_t[]){M, K}), *y[3];
    for (int level = 0; level < 3; level++) {
        tn_session *s = open_session(model, (tn_level)(TN_LEVEL_0 + level), TN_REUSE_FULL, TN_LAYOUT_AUTO);
        assert_int_equal(plan_of(s)->kernel.len, level ? 1 : 3);
        assert_true(bytes_written(plan_of(s)) == (level ? 1.0 : 3.0) * M * N * 4);
        y[level] = run_one(s, in);
        tn_session_destroy(s);
    }
    assert_same_bits(y[0], y[1]);
    assert_same_bits(y[0], y[2]);
    for (int level = 0; level < 3; level++)
        tn_tensor_destroy(y[level]);
    tn_tensor_destroy(in);
    drop(model, g);
}

/* --- W07: four equal values in a chain that cannot fuse take two places; W08: a ReLU in place ------------------------------------------- */

static uint64_t arena_of(const tn_session *s) {
    const tn_plan *p = plan_of(s);
    tn_plan_cost cost;
    tn_dim_env env;
    assert_true(tn_dim_env_init(&env, NULL, &p->graph->dims));
    assert_int_equal(tn_plan_cost_of(p, &env, &cost), TN_OK);
    tn_dim_env_free(&env);
    return cost.arena_bytes;
}

static void test_w07_two_places(void **state) {
    (void)state;
    enum { N = 32 };
    tn_graph *g = tn_graph_create();
    tn_value v = tn_input(g, "x", TN_F32, TN_SHAPE(N, N));
    for (int i = 0; i < 5; i++) /* four between, and the output */
        v = tn_matmul(g, v, weights(g, 2, (const int64_t[]){N, N}));
    tn_set_output(g, "y", v);
    tn_model *model = model_of(g);
    static const tn_reuse_option how[] = {TN_REUSE_FULL, TN_REUSE_NONE};
    tn_tensor *in = ramp(2, (const int64_t[]){N, N}), *y[2];
    for (int i = 0; i < 2; i++) {
        tn_session *s = open_session(model, TN_LEVEL_DEFAULT, how[i], TN_LAYOUT_AUTO);
        assert_int_equal(arena_of(s), (i ? 4 : 2) * N * N * sizeof(float));
        char *text = text_of(plan_of(s));
        assert_int_equal(strstr(text, "lies where slot") != NULL, i == 0);
        free(text);
        y[i] = run_one(s, in);
        tn_session_destroy(s);
    }
    assert_same_bits(y[0], y[1]);
    tn_tensor_destroy(y[0]);
    tn_tensor_destroy(y[1]);
    tn_tensor_destroy(in);
    drop(model, g);
}

static void test_w08_in_place(void **state) {
    (void)state;
    for (int readers = 1; readers <= 2; readers++) {
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(8, 8)), w = weights(g, 2, (const int64_t[]){8, 8});
        tn_value t = tn_matmul(g, x, w), r = tn_relu(g, t), y = tn_matmul(g, r, w);
        tn_set_output(g, "y", readers == 1 ? y : tn_add(g, y, t));
        tn_model *model = model_of(g);
        tn_session *s = open_session(model, TN_LEVEL_0, TN_REUSE_FULL, TN_LAYOUT_AUTO),
                   *apart = open_session(model, TN_LEVEL_0, TN_REUSE_NONE, TN_LAYOUT_AUTO);
        char *text = text_of(plan_of(s));
        assert_int_equal(strstr(text, "in place of slot") != NULL, readers == 1);
        free(text);
        tn_tensor *in = ramp(2, (const int64_t[]){8, 8}), *a = run_one(s, in), *b = run_one(apart, in);
        assert_same_bits(a, b);
        tn_tensor_destroy(a);
        tn_tensor_destroy(b);
        tn_tensor_destroy(in);
        tn_session_destroy(s);
        tn_session_destroy(apart);
        drop(model, g);
    }
}

/* --- W09: one branch runs, the other's assertion is silent; they share memory ------------------------------------------------------------ */

static void twice(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_mul(g, *(tn_value *)ctx, tn_scalar(g, TN_F32, 2));
}
static void negated(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_mul(g, *(tn_value *)ctx, tn_scalar(g, TN_F32, -1));
}

static void count_events(void *user, const tn_profile_event *event) {
    if (strstr(event->operators, "mul"))
        ++*(int *)user;
}

static void test_w09_branch(void **state) {
    (void)state;
    static const struct {
        int64_t n;
        float x[2], y[2];
    } cases[] = {{2, {1, 2}, {2, 4}}, {2, {0, 0}, {-0.0F, -0.0F}}, {2, {NAN, 1}, {NAN, -1}}, {0, {0}, {0}}};
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N")), y;
    tn_value c = tn_greater(g, tn_reduce_sum(g, x, TN_ALL_AXES, false), tn_scalar(g, TN_F32, 0));
    assert_int_equal(tn_if(g, c, twice, negated, &x, 1, &y), TN_OK);
    tn_set_output(g, "y", y);
    tn_model *model = model_of(g);
    for (int level = 0; level < 3; level++) {
        tn_session *s = open_session(model, (tn_level)(TN_LEVEL_0 + level), TN_REUSE_FULL, TN_LAYOUT_AUTO);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            tn_tensor *in = tn_tensor_from_f32(1, &cases[i].n, cases[i].x), *out = NULL;
            int products = 0;
            const tn_run_options profiled = {
                .size = sizeof profiled, .profile = count_events, .profile_user = &products};
            if (tn_session_run_with(s, 1, (const tn_binding[]){{.name = "x", .tensor = in}}, 1,
                                    (const tn_output[]){{.name = "y", .tensor = &out}}, &profiled) != TN_OK)
                fail_msg("%s", tn_error_message());
            assert_int_equal(products, 1); /* none of the branch not taken */
            assert_int_equal(tn_tensor_count(out), cases[i].n);
            for (int64_t k = 0; k < cases[i].n; k++) {
                float got = ((const float *)tn_tensor_data(out))[k], want = cases[i].y[k];
                assert_true(isnan(want) ? isnan(got) : got == want && !signbit(got) == !signbit(want));
            }
            tn_tensor_destroy(in);
            tn_tensor_destroy(out);
        }
        tn_session_destroy(s);
    }
    drop(model, g);
}

/* The sum of a product [rows, 1] x [1, 4096]: a temporary of rows * 16 KiB. */
static tn_value large(tn_graph *g, tn_value x, int64_t rows) {
    tn_value column = tn_slice_axis(g, x, 0, 0, rows);
    tn_value all = tn_matmul(g, tn_reshape(g, column, TN_SHAPE(rows, 1)), tn_reshape(g, x, TN_SHAPE(1, 4096)));
    return tn_reduce_sum(g, tn_cumsum(g, all, 1, false, false), TN_ALL_AXES, false);
}
static void large_then(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = large(g, *(tn_value *)ctx, 4096);
}
static void large_else(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = large(g, *(tn_value *)ctx, 3072);
}
static tn_value branch_of(tn_graph *g, tn_value x, bool first) {
    return first ? large(g, x, 4096) : large(g, x, 3072);
}

static void test_w09_branches_share_memory(void **state) {
    (void)state;
    uint64_t arena[3];
    for (int how = 0; how < 3; how++) { /* the branches, each of them alone */
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(4096)), y;
        if (how == 0) {
            tn_value c = tn_greater(g, tn_reduce_sum(g, x, TN_ALL_AXES, false), tn_scalar(g, TN_F32, 0));
            assert_int_equal(tn_if(g, c, large_then, large_else, &x, 1, &y), TN_OK);
        } else
            y = branch_of(g, x, how == 1);
        tn_set_output(g, "y", y);
        tn_model *model = model_of(g);
        tn_session *s = open_session(model, TN_LEVEL_DEFAULT, TN_REUSE_FULL, TN_LAYOUT_AUTO);
        arena[how] = arena_of(s);
        tn_session_destroy(s);
        drop(model, g);
    }
    assert_true(arena[1] >= (64u << 20) && arena[2] >= (48u << 20));
    assert_in_range(arena[0], arena[1], arena[1] + 4096);
}

/* --- W11: trips known at run time, the order of sums kept ------------------------------------------------------------------------------- */

static void more(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_less(g, args[0], *(tn_value *)ctx);
}
static void sum(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_add(g, args[0], tn_scalar(g, TN_I64, 1));
    results[1] = tn_add(g, args[1], ((tn_value *)ctx)[1]);
}

static void test_w11_trips(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value of[2] = {tn_input(g, "n", TN_I64, TN_SCALAR), tn_input(g, "x", TN_F32, TN_SHAPE(3))}, out[2];
    tn_value init[2] = {tn_scalar(g, TN_I64, 0), weights(g, 1, (const int64_t[]){3})};
    init[1] = tn_mul(g, init[1], tn_scalar(g, TN_F32, 0));
    assert_int_equal(tn_while(g, 2, init, NULL, more, sum, of, 0, out), TN_OK);
    tn_set_output(g, "y", tn_abs(g, out[1])); /* of -0, which the zeros may be */
    tn_model *model = model_of(g);
    static const struct {
        int64_t n;
        uint32_t bits[3];
    } cases[] = {
        {10, {0x41200000, 0x41a00000, 0x3f800001}}, {0, {0, 0, 0}}, {1000, {0x447a0000, 0x44fa0000, 0x42c7ff83}}};
    for (int level = 0; level < 3; level++) {
        tn_session *s = open_session(model, (tn_level)(TN_LEVEL_0 + level), TN_REUSE_FULL, TN_LAYOUT_AUTO);
        tn_memory before, after;
        assert_int_equal(tn_memory_report(s, &before), TN_OK);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const float values[3] = {1, 2, 0.1F};
            tn_tensor *x = tn_tensor_from_f32(1, (const int64_t[]){3}, values), *n = tn_tensor_create(TN_I64, 0, NULL),
                      *y = NULL;
            tn_tensor_set_f64(n, 0, (double)cases[i].n);
            if (tn_session_run(s, 2, (const tn_binding[]){{.name = "n", .tensor = n}, {.name = "x", .tensor = x}}, 1,
                               (const tn_output[]){{.name = "y", .tensor = &y}}) != TN_OK)
                fail_msg("%s", tn_error_message());
            assert_memory_equal(tn_tensor_data(y), cases[i].bits, sizeof cases[i].bits);
            tn_tensor_destroy(x);
            tn_tensor_destroy(n);
            tn_tensor_destroy(y);
        }
        assert_int_equal(tn_memory_report(s, &after), TN_OK);
        assert_int_equal(after.compilations, before.compilations); /* one for all n */
        tn_session_destroy(s);
    }
    drop(model, g);
}

/* --- W18: ten convolutions, channels first outside ------------------------------------------------------------------------------------------ */

static void test_w18_layouts(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value v = tn_input(g, "x", TN_F32, TN_SHAPE(2, 16, 12, 10));
    for (int i = 0; i < 10; i++) {
        tn_dim one[2] = {tn_dim_const(g, 1), tn_dim_const(g, 1)};
        v = tn_relu(g, tn_conv(g, v, weights(g, 4, (const int64_t[]){16, 16, 3, 3}), NULL, NULL, NULL, one, one, 1));
    }
    tn_set_output(g, "y", v);
    tn_model *model = model_of(g);
    tn_tensor *in = ramp(4, (const int64_t[]){2, 16, 12, 10}), *y[3];
    static const tn_layout_option how[] = {TN_LAYOUT_AUTO, TN_LAYOUT_NCHW, TN_LAYOUT_NHWC};
    for (int i = 0; i < 3; i++) {
        tn_session *s = open_session(model, TN_LEVEL_DEFAULT, TN_REUSE_FULL, how[i]);
        const tn_plan *p = plan_of(s);
        uint32_t convolutions = 0, last = 0, between = 0;
        for (uint32_t k = 0; k < p->kernel.len; k++) {
            const tn_kernel *q = &p->kernel.data[k];
            bool conv = q->kind == TN_KERNEL_CONTRACT;
            convolutions += conv;
            between += !conv && k > 0 && k + 1 < p->kernel.len;
        }
        for (uint32_t k = 0; k < p->view.len; k++)
            if (p->slot.data[p->view.data[k].slot].kind == TN_SLOT_ARENA && p->view.data[k].rank == 4) {
                int64_t n;
                last += tn_dim_is_const(p->graph, p->size.data[p->view.data[k].stride[1]], &n) && n == 1;
            }
        assert_int_equal(convolutions, 10);
        assert_int_equal(between, 0); /* copies at the edges, if any: two at most */
        assert_in_range(p->kernel.len, 10, 12);
        if (how[i] == TN_LAYOUT_NCHW)
            assert_int_equal(last, 0);
        else
            assert_true(last >= 9); /* all between the convolutions */
        y[i] = run_one(s, in);
        tn_session_destroy(s);
    }
    assert_same_bits(y[0], y[1]);
    assert_same_bits(y[0], y[2]);
    for (int i = 0; i < 3; i++)
        tn_tensor_destroy(y[i]);
    tn_tensor_destroy(in);
    drop(model, g);
}

/* --- W21: every pass keeps what the graph means, checked on each worked example --------------------------------------------------------------- */

static void test_w21_passes(void **state) {
    (void)state;
    char **names = shared_models("worked-examples");
    for (uint32_t i = 0; names[i]; i++) {
        char within[300], path[4096];
        snprintf(within, sizeof within, "worked-examples/%s/model.onnx", names[i]);
        const char *arguments[] = {"verify", shared_path(within, path, sizeof path), "--quiet", NULL};
        long kb;
        double ms;
        if (command_run(arguments, &kb, &ms) != 0)
            fail_msg("tenon verify %s does not hold", path);
    }
    shared_free_names(names);
}

/* --- W24: a batch is its rows: one plan of any size, plans of each size, rows alone ------------------------------------------------------------- */

static tn_model *mlp(bool free, int64_t rows, tn_graph **graph) {
    tn_graph *g = *graph = tn_graph_create();
    tn_value x = free ? tn_input(g, "x", TN_F32, TN_SHAPE("N", 24)) : tn_input(g, "x", TN_F32, TN_SHAPE(rows, 24));
    for (int i = 0; i < 3; i++)
        x = tn_tanh(g, tn_matmul(g, x, weights(g, 2, (const int64_t[]){24, 24})));
    tn_set_output(g, "y", tn_softmax(g, x, 1));
    return model_of(g);
}

static void test_w24_batches(void **state) {
    (void)state;
    tn_graph *graph[3];
    tn_model *any = mlp(true, 0, &graph[0]), *row = mlp(false, 1, &graph[1]);
    tn_session *of_any = open_session(any, TN_LEVEL_DEFAULT, TN_REUSE_FULL, TN_LAYOUT_AUTO),
               *of_row = open_session(row, TN_LEVEL_DEFAULT, TN_REUSE_FULL, TN_LAYOUT_AUTO);
    for (int64_t n = 1; n <= 17; n += 4) {
        tn_model *fixed = mlp(false, n, &graph[2]);
        tn_session *of_fixed = open_session(fixed, TN_LEVEL_DEFAULT, TN_REUSE_FULL, TN_LAYOUT_AUTO);
        tn_tensor *in = ramp(2, (const int64_t[]){n, 24}), *a = run_one(of_any, in), *b = run_one(of_fixed, in);
        assert_same_bits(a, b);
        for (int64_t i = 0; i < n; i++) {
            tn_tensor *one =
                tn_tensor_from_f32(2, (const int64_t[]){1, 24}, (const float *)tn_tensor_data(in) + i * 24);
            tn_tensor *c = run_one(of_row, one);
            assert_memory_equal(tn_tensor_data(c), (const float *)tn_tensor_data(a) + i * 24, 24 * sizeof(float));
            tn_tensor_destroy(one);
            tn_tensor_destroy(c);
        }
        tn_tensor_destroy(in);
        tn_tensor_destroy(a);
        tn_tensor_destroy(b);
        tn_session_destroy(of_fixed);
        drop(fixed, graph[2]);
    }
    tn_session_destroy(of_any);
    tn_session_destroy(of_row);
    drop(any, graph[0]);
    drop(row, graph[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),         cmocka_unit_test(test_w02_one_kernel),
        cmocka_unit_test(test_w07_two_places), cmocka_unit_test(test_w08_in_place),
        cmocka_unit_test(test_w09_branch),     cmocka_unit_test(test_w09_branches_share_memory),
        cmocka_unit_test(test_w11_trips),      cmocka_unit_test(test_w18_layouts),
        cmocka_unit_test(test_w21_passes),     cmocka_unit_test(test_w24_batches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
