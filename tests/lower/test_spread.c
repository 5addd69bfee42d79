/* Convolutions of a spread input (transposed ones): where each output of a period of the spread is made of as many taps, one kernel makes them all,
   beside a plain sum in double, with the same bits at -O0 and -O1; others stay right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>
#include <tenon/tenon.h>

#include "runtime/model.h"

typedef struct form {
    int64_t in, out, groups, kernel[2], spread[2], lo[2], hi[2];
    bool split;         /* a kernel, not the row's eval */
    bool after, beside; /* what follows: a bias, another tensor and a bound; channels of what is read side by side */
} form;

static const form forms[] = {
    {5, 7, 1, {2, 2}, {2, 2}, {1, 1}, {1, 1}, true, false, false},
    {16, 24, 1, {2, 2}, {2, 2}, {1, 1}, {1, 1}, true, true, true},
    {16, 24, 1, {4, 4}, {2, 2}, {3, 3}, {3, 3}, true, true, true},
    {8, 6, 2, {3, 2}, {3, 2}, {2, 1}, {2, 1}, true, true, true},
    {8, 6, 2, {3, 3}, {3, 1}, {2, 1}, {2, 1}, true, false, true},
    {6, 6, 6, {4, 2}, {2, 2}, {1, 1}, {1, 1}, true, true, true},
    {9, 4, 1, {4, 2}, {2, 2}, {1, 3}, {1, 3}, true, true, false},
    {4, 5, 1, {4, 4}, {2, 2}, {2, 2}, {2, 2}, false, true, true},
    {4, 5, 1, {3, 3}, {2, 2}, {1, 1}, {1, 1}, false, true, true},
    {4, 5, 1, {2, 2}, {2, 2}, {1, 1}, {0, 1}, false, false, true},
};

static uint64_t state = 17;
static tn_tensor *random_of(int rank, const int64_t *dims) {
    tn_tensor *t = tn_tensor_create(TN_F32, rank, dims);
    for (int64_t i = 0; i < tn_tensor_count(t); i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        tn_tensor_set_f64(t, i, (double)((state >> 33) % 257) / 128 - 1);
    }
    return t;
}

static int64_t size_of(const form *f, int axis, int64_t n) {
    return (n - 1) * f->spread[axis] + 1 + f->lo[axis] + f->hi[axis] - f->kernel[axis] + 1;
}

static tn_tensor *run(const form *f, bool free_sizes, int level, tn_tensor *x, tn_tensor *w, tn_tensor *bias,
                      tn_tensor *r) {
    const int64_t *d = tn_tensor_dims(x), *e = tn_tensor_dims(r);
    tn_graph *g = tn_graph_create();
    tn_value y = free_sizes ? tn_input(g, "x", TN_F32, TN_SHAPE("N", f->in, "H", "W"))
                            : tn_input(g, "x", TN_F32, TN_SHAPE(d[0], d[1], d[2], d[3]));
    tn_dim lo[2], hi[2];
    for (int i = 0; i < 2; i++) {
        lo[i] = tn_dim_const(g, f->lo[i]);
        hi[i] = tn_dim_const(g, f->hi[i]);
    }
    if (f->beside) {
        tn_tensor *one = tn_tensor_create(TN_F32, 4, (int64_t[]){f->in, f->in, 1, 1});
        for (int64_t i = 0; i < f->in * f->in; i++)
            tn_tensor_set_f64(one, i, i % (f->in + 1) == 0);
        y = tn_conv(g, y, tn_constant(g, one), NULL, NULL, NULL, NULL, NULL, 1);
        tn_tensor_destroy(one);
    }
    y = tn_conv(g, y, tn_constant(g, w), NULL, NULL, f->spread, lo, hi, f->groups);
    if (f->after) {
        tn_value other = free_sizes ? tn_input(g, "r", TN_F32, TN_SHAPE("N", f->out, "H2", "W2"))
                                    : tn_input(g, "r", TN_F32, TN_SHAPE(e[0], e[1], e[2], e[3]));
        y = tn_relu(g, tn_add(g, tn_add(g, y, tn_constant(g, bias)), other));
    }
    tn_set_output(g, "y", y);
    tn_model *m = tn_model_from_graph(g, NULL);
    const tn_compile_key key = {.backend = TN_BACKEND_CPU,
                                .level = level,
                                .isa = tn_cpu_best(),
                                .disable = "",
                                .passes = "",
                                .dump = "",
                                .dims = ""};
    tn_compiled *c = m ? tn_model_compile(m, &key) : NULL;
    if (!c)
        fail_msg("%s", tn_error_message());
    bool host = false;
    for (uint32_t i = 0; i < c->plan->code.len; i++)
        host |= c->plan->code.data[i].op == TN_DO_HOST;
    if (host == f->split)
        fail_msg("%d to %d channels, %d x %d by %d x %d: %s", (int)f->in, (int)f->out, (int)f->kernel[0],
                 (int)f->kernel[1], (int)f->spread[0], (int)f->spread[1], host ? "no kernel" : "a kernel");
    tn_model_release(m, c);
    tn_session *s = tn_session_create(m, TN_OPTIONS(tn_session_options, .threads = 2, .oversubscribe = true,
                                                    .guard = true, .level = (tn_level)(TN_LEVEL_0 + level)));
    tn_tensor *out = NULL;
    const tn_binding in[] = {{.name = "x", .tensor = x}, {.name = "r", .tensor = r}};
    if (!s || tn_session_run(s, f->after ? 2 : 1, in, 1, &(tn_output){.name = "y", .tensor = &out}) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_session_destroy(s);
    tn_model_destroy(m);
    tn_graph_destroy(g);
    return out;
}

static double at(const tn_tensor *t, int64_t n, int64_t c, int64_t i, int64_t j) {
    const int64_t *d = tn_tensor_dims(t);
    return tn_tensor_get_f64(t, ((n * d[1] + c) * d[2] + i) * d[3] + j);
}

static void is_right(const form *f, const tn_tensor *x, const tn_tensor *w, const tn_tensor *bias, const tn_tensor *r,
                     const tn_tensor *y) {
    const int64_t *d = tn_tensor_dims(y), *e = tn_tensor_dims(x);
    int64_t per_in = f->in / f->groups, per_out = f->out / f->groups;
    for (int64_t k = 0; k < tn_tensor_count(y); k++) {
        int64_t j = k % d[3], i = k / d[3] % d[2], m = k / d[3] / d[2] % d[1], n = k / d[3] / d[2] / d[1];
        double sum = 0, size = 1;
        for (int64_t p = 0; p < f->kernel[0]; p++)
            for (int64_t q = 0; q < f->kernel[1]; q++) {
                int64_t a = i + p - f->lo[0], b = j + q - f->lo[1];
                if (a < 0 || b < 0 || a % f->spread[0] || b % f->spread[1] || a / f->spread[0] >= e[2] ||
                    b / f->spread[1] >= e[3])
                    continue;
                for (int64_t c = 0; c < per_in; c++) {
                    double term =
                        at(x, n, m / per_out * per_in + c, a / f->spread[0], b / f->spread[1]) * at(w, m, c, p, q);
                    sum += term;
                    size += fabs(term);
                }
            }
        if (f->after)
            sum = fmax(sum + tn_tensor_get_f64(bias, m) + at(r, n, m, i, j), 0);
        if (!(fabs(tn_tensor_get_f64(y, k) - sum) <= 1e-6 * size))
            fail_msg("%d to %d channels, %d x %d by %d x %d: y[%d, %d, %d, %d] = %g, not %g", (int)f->in, (int)f->out,
                     (int)f->kernel[0], (int)f->kernel[1], (int)f->spread[0], (int)f->spread[1], (int)n, (int)m, (int)i,
                     (int)j, tn_tensor_get_f64(y, k), sum);
    }
}

static void test_forms(void **unused) {
    (void)unused;
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
        for (int64_t height = 1; height <= 9; height += 4) {
            const form *f = &forms[k];
            int64_t width = height * 5 % 7 + 1, tall = size_of(f, 0, height), wide = size_of(f, 1, width);
            if (tall < 1 || wide < 1)
                continue;
            tn_tensor *x = random_of(4, (int64_t[]){2, f->in, height, width});
            tn_tensor *w = random_of(4, (int64_t[]){f->out, f->in / f->groups, f->kernel[0], f->kernel[1]});
            tn_tensor *bias = random_of(3, (int64_t[]){f->out, 1, 1}),
                      *r = random_of(4, (int64_t[]){2, f->out, tall, wide});
            tn_tensor *first = NULL;
            for (int way = 0; way < 4; way++) { /* sizes known or free, -O0 and -O1 */
                tn_tensor *y = run(f, way & 1, way >> 1, x, w, bias, r);
                is_right(f, x, w, bias, r, y);
                if (first)
                    assert_memory_equal(tn_tensor_data(y), tn_tensor_data(first), tn_tensor_bytes(y));
                else
                    first = y;
                if (y != first)
                    tn_tensor_destroy(y);
            }
            tn_tensor *all[] = {x, w, bias, r, first};
            for (size_t i = 0; i < sizeof all / sizeof *all; i++)
                tn_tensor_destroy(all[i]);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
