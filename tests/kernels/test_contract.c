/* Contractions of sizes at which the work is cut in different ways: right, and every row with the bits that it has alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>
#include <tenon/tenon.h>

#include "base/os.h"

static uint64_t state = 11;
static float draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int)((state >> 33) % 2001) / 1000 - 1;
}

static tn_tensor *random_matrix(int64_t rows, int64_t columns) {
    tn_tensor *t = tn_tensor_create(TN_F32, 2, (int64_t[]){rows, columns});
    assert_non_null(t);
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)tn_tensor_data(t))[i] = draw();
    return t;
}

static tn_tensor *run(tn_session *s, tn_tensor *x, tn_tensor *w) {
    tn_tensor *y = NULL;
    const tn_binding in[] = {{"x", x, NULL}, {"w", w, NULL}};
    if (tn_session_run(s, w ? 2 : 1, in, 1, (const tn_output[]){{"y", &y, NULL}}) != TN_OK)
        fail_msg("%s", tn_error_message());
    return y;
}

typedef struct form {
    int64_t k, n;
    bool constant, turned, after; /* columns known when the plan is made; lying across; something follows the sum */
} form;

/* What runs: a session of a model of a graph; one needs the next. */
typedef struct runner {
    tn_session *session;
    tn_model *model;
    tn_graph *graph;
} runner;

static void prepare(runner *r, const form *f, tn_tensor *w, const char *isa, int threads) {
    tn_graph *g = r->graph = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("M", f->k));
    const int64_t *dims = tn_tensor_dims(w);
    tn_value b = f->constant ? tn_constant(g, w) : tn_input(g, "w", TN_F32, TN_SHAPE(dims[0], dims[1]));
    b = f->turned ? tn_transpose(g, b, NULL) : b;
    tn_value y = tn_matmul(g, x, b);
    tn_set_output(g, "y", f->after ? tn_relu(g, tn_add(g, y, tn_scalar(g, TN_F32, 0.25))) : y);
    r->model = tn_model_from_graph(g, NULL);
    r->session = r->model ? tn_session_create(r->model, TN_OPTIONS(tn_session_options, .threads = threads, .isa = isa,
                                                                   .oversubscribe = true))
                          : NULL;
    if (!r->session)
        fail_msg("%s", tn_error_message());
}

static void is_right(const form *f, const tn_tensor *x, const tn_tensor *w, const tn_tensor *y) {
    const float *a = tn_tensor_data(x), *b = tn_tensor_data(w), *c = tn_tensor_data(y);
    int64_t m = tn_tensor_dims(x)[0];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < f->n; j++) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < f->k; k++) {
                double term = (double)a[i * f->k + k] * (double)(f->turned ? b[j * f->k + k] : b[k * f->n + j]);
                sum += term;
                size += fabs(term);
            }
            double want = f->after ? fmax(sum + 0.25, 0) : sum, got = (double)c[i * f->n + j];
            if (!(fabs(got - want) <= 1e-7 * (1 + size) * sqrt((double)f->k + 1)))
                fail_msg("%d x %d x %d, constant %d, turned %d: y[%d, %d] = %g, not %g", (int)m, (int)f->k, (int)f->n,
                         f->constant, f->turned, (int)i, (int)j, got, want);
        }
}

static void check(const form *f, const char *isa) {
    static const int64_t rows[] = {1, 2, 7, 13, 16, 17, 100, 333};
    tn_tensor *w = f->turned ? random_matrix(f->n, f->k) : random_matrix(f->k, f->n);
    runner r[2];
    prepare(&r[0], f, w, isa, 1);
    prepare(&r[1], f, w, isa, 3);
    tn_tensor *x = random_matrix(333, f->k), *all = run(r[0].session, x, f->constant ? NULL : w);
    is_right(f, x, w, all);
    size_t line = (size_t)f->n * sizeof(float);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int t = 0; t < 2; t++) {
            int64_t first = (333 - rows[i]) / 2;
            tn_tensor *part =
                tn_tensor_wrap(TN_F32, 2, (int64_t[]){rows[i], f->k}, (float *)tn_tensor_data(x) + first * f->k);
            tn_tensor *y = run(r[t].session, part, f->constant ? NULL : w);
            if (memcmp(tn_tensor_data(y), (float *)tn_tensor_data(all) + first * f->n, (size_t)rows[i] * line))
                fail_msg("%d rows of 333 x %d x %d on %d threads have other bits", (int)rows[i], (int)f->k, (int)f->n,
                         t ? 3 : 1);
            tn_tensor_destroy(y);
            tn_tensor_destroy(part);
        }
    tn_tensor_destroy(all);
    tn_tensor_destroy(x);
    tn_tensor_destroy(w);
    for (int t = 0; t < 2; t++) {
        tn_session_destroy(r[t].session);
        tn_model_destroy(r[t].model);
        tn_graph_destroy(r[t].graph);
    }
}

static void test_cuts(void **unused) {
    (void)unused;
    static const int64_t ks[] = {0, 1, 9, 65, 256, 520, 1024}, ns[] = {1, 16, 35, 130};
    for (int isa = 0; isa < TN_ISA_COUNT; isa++)
        for (size_t i = 0; i < sizeof ks / sizeof *ks && tn_cpu_has((tn_isa)isa); i++)
            for (size_t j = 0; j < sizeof ns / sizeof *ns; j++) {
                unsigned kind = (unsigned)(i + 3 * j) % 8;
                form f = {ks[i], ns[j], kind & 1, kind & 2, kind & 4};
                check(&f, tn_isa_name((tn_isa)isa));
                f.constant = !f.constant;
                check(&f, tn_isa_name((tn_isa)isa));
            }
    for (int isa = 0; isa < TN_ISA_COUNT; isa++) /* panels enough that rows are copied first */
        if (tn_cpu_has((tn_isa)isa))
            check(&(form){.k = 300, .n = 400, .constant = true}, tn_isa_name((tn_isa)isa));
}

/* Rows of f16 are converted when they are packed. Whole numbers, so that every sum is exact. */
static void test_narrow(void **unused) {
    (void)unused;
    enum { K = 300, N = 400 };
    static const int64_t rows[] = {16, 17};
    tn_tensor *w = tn_tensor_create(TN_F16, 2, (int64_t[]){K, N});
    for (int64_t i = 0; i < K * N; i++)
        tn_tensor_set_f64(w, i, (double)(i * 7919 % 3 - 1));
    for (int isa = 0; isa < TN_ISA_COUNT; isa++) {
        if (!tn_cpu_has((tn_isa)isa))
            continue;
        tn_graph *g = tn_graph_create();
        tn_value x = tn_input(g, "x", TN_F16, TN_SHAPE("M", K));
        tn_set_output(g, "y", tn_matmul(g, x, tn_constant(g, w)));
        tn_model *model = tn_model_from_graph(g, NULL);
        tn_session *s =
            tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1, .isa = tn_isa_name((tn_isa)isa)));
        assert_non_null(s);
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            tn_tensor *a = tn_tensor_create(TN_F16, 2, (int64_t[]){rows[r], K});
            for (int64_t i = 0; i < rows[r] * K; i++)
                tn_tensor_set_f64(a, i, (double)(i * 31 % 7 - 3));
            tn_tensor *y = run(s, a, NULL);
            for (int64_t i = 0; i < rows[r]; i++)
                for (int64_t j = 0; j < N; j++) {
                    int sum = 0;
                    for (int64_t k = 0; k < K; k++)
                        sum += (int)((i * K + k) * 31 % 7 - 3) * (int)((k * N + j) * 7919 % 3 - 1);
                    assert_true(sum >= -2048 && sum <= 2048);
                    assert_int_equal((int)tn_tensor_get_f64(y, i * N + j), sum);
                }
            tn_tensor_destroy(y);
            tn_tensor_destroy(a);
        }
        tn_session_destroy(s);
        tn_model_destroy(model);
        tn_graph_destroy(g);
    }
    tn_tensor_destroy(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cuts), cmocka_unit_test(test_narrow)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
