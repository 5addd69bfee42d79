/* Constants as kernels want them are shared by all plans of a model: asking for some outputs, other sessions and other levels cost no
   second copy, whatever the constants come from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tenon/build.h>

#include "runtime/session.h"

enum { N = 192, CHANNELS = 64 };
static char unaligned[N * N * sizeof(float) + 1];

static tn_value ramp(tn_graph *g, int rank, const int64_t *dims, int step) {
    tn_tensor *t = tn_tensor_create(TN_F32, rank, dims);
    for (int64_t i = 0; i < tn_tensor_count(t); i++)
        ((float *)tn_tensor_data(t))[i] = (float)(i * step % 23 - 11) / 16;
    tn_value v = tn_constant(g, t);
    tn_tensor_destroy(t);
    return v;
}

static const char *const outputs[] = {"plain", "conv", "depthwise", "added", "turned", "computed"};
enum { OUTPUTS = sizeof outputs / sizeof *outputs };

/* Products with a constant as it is, turned, computed; convolutions that all levels compute alike, one of them by channel; a constant that is read in place, which the
   file has at an odd byte. */
static tn_graph *make(void) {
    const int64_t square[] = {N, N}, kernel[] = {CHANNELS, CHANNELS, 3, 2}, each[] = {CHANNELS, 1, 3, 3};
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(N, N)), i = tn_input(g, "i", TN_F32, TN_SHAPE(1, CHANNELS, 8, 8));
    tn_tensor *odd = tn_tensor_wrap(TN_F32, 2, square, unaligned + 1);
    tn_value y[OUTPUTS] = {tn_matmul(g, x, ramp(g, 2, square, 3)),
                           tn_conv(g, i, ramp(g, 4, kernel, 3), NULL, NULL, NULL, NULL, NULL, 1),
                           tn_conv(g, i, ramp(g, 4, each, 5), NULL, NULL, NULL, NULL, NULL, CHANNELS),
                           tn_add(g, x, tn_constant(g, odd)),
                           tn_matmul(g, x, tn_transpose(g, ramp(g, 2, square, 9), NULL)),
                           tn_matmul(g, x, tn_mul(g, ramp(g, 2, square, 5), ramp(g, 2, square, 7)))};
    for (int k = 0; k < OUTPUTS; k++)
        tn_set_output(g, outputs[k], y[k]);
    tn_tensor_destroy(odd);
    if (tn_graph_check(g) != TN_OK)
        fail_msg("%s", tn_error_message());
    return g;
}

static tn_tensor *filled(int rank, const int64_t *dims) {
    tn_tensor *t = tn_tensor_create(TN_F32, rank, dims);
    for (int64_t i = 0; i < tn_tensor_count(t); i++)
        ((float *)tn_tensor_data(t))[i] = (float)(i % 13 - 6) / 8;
    return t;
}

/* Asks for outputs [first, end); what is in use afterwards, results and buffers aside. */
static size_t run(tn_session *s, int first, int end, tn_tensor **want) {
    tn_tensor *x = filled(2, (const int64_t[]){N, N}), *i = filled(4, (const int64_t[]){1, CHANNELS, 8, 8});
    const tn_binding in[] = {{.name = "x", .tensor = x}, {.name = "i", .tensor = i}};
    tn_output out[OUTPUTS];
    tn_tensor *y[OUTPUTS] = {NULL};
    for (int k = first; k < end; k++)
        out[k - first] = (tn_output){.name = outputs[k], .tensor = &y[k]};
    if (!s || tn_session_run(s, 2, in, (uint32_t)(end - first), out) != TN_OK)
        fail_msg("%s", tn_error_message());
    for (int k = first; k < end; k++) {
        if (want[k]) {
            assert_int_equal(tn_tensor_bytes(y[k]), tn_tensor_bytes(want[k]));
            assert_memory_equal(tn_tensor_data(y[k]), tn_tensor_data(want[k]), tn_tensor_bytes(y[k]));
            tn_tensor_destroy(y[k]);
        } else
            want[k] = y[k];
    }
    tn_tensor_destroy(x);
    tn_tensor_destroy(i);
    tn_session_trim(s);
    tn_memory m;
    assert_int_equal(tn_memory_report(s, &m), TN_OK);
    return m.in_use;
}

static void test_packs(void **state) {
    (void)state;
    const size_t square = N * N * sizeof(float), plan = 64 << 10; /* at most what a plan takes but for constants */
    for (int64_t i = 0; i < N * N; i++) {
        float v = (float)(i % 7);
        memcpy(unaligned + 1 + i * (int64_t)sizeof v, &v, sizeof v);
    }
    tn_heap *heap = tn_heap_create(NULL);
    tn_graph *g = make();
    tn_model *model = tn_model_from_graph(g, TN_OPTIONS(tn_model_options, .heap = heap));
    tn_session *s = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1));
    tn_tensor *want[OUTPUTS] = {NULL};
    size_t before = run(s, 0, OUTPUTS, want), whole = before;
    assert_true(before > 5 * square); /* it counts what is packed */
    for (int k = 0; k < OUTPUTS; k++) {
        size_t now = run(s, k, k + 1, want),
               computed = k >= OUTPUTS - 2 ? square : 0; /* itself, not what is packed of it */
        if (now > before + plan + computed)
            fail_msg("asking for '%s' alone takes %zu bytes", outputs[k], now - before);
        before = now;
    }
    tn_session *other = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1, .level = TN_LEVEL_1));
    size_t shared = run(other, 0, OUTPUTS, want);
    if (shared > before + 2 * plan + 2 * square)
        fail_msg("another session takes %zu bytes", shared - before);
    /* what a plan that goes has to itself goes; what others hold stays */
    tn_session_destroy(s);
    run(other, 0, OUTPUTS, want);
    tn_session_destroy(other);
    other = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1));
    assert_true(run(other, 0, OUTPUTS, want) < whole + OUTPUTS * plan + 3 * square);
    tn_session_destroy(other);
    for (int k = 0; k < OUTPUTS; k++)
        tn_tensor_destroy(want[k]);
    tn_model_destroy(model);
    tn_graph_destroy(g);
    tn_heap_destroy(heap);
}

/* Rows of a constant are taken where the file has it: it is not copied for being at an odd byte. */
static void test_rows(void **state) {
    (void)state;
    enum { TAKEN = 5 };
    for (int64_t i = 0; i < N * N; i++) {
        float v = (float)(i % 1009);
        memcpy(unaligned + 1 + i * (int64_t)sizeof v, &v, sizeof v);
    }
    tn_heap *heap = tn_heap_create(NULL);
    tn_graph *g = tn_graph_create();
    tn_tensor *odd = tn_tensor_wrap(TN_F32, 2, (const int64_t[]){N, N}, unaligned + 1);
    tn_tensor *at = tn_tensor_create(TN_I64, 1, (const int64_t[]){TAKEN}), *y = NULL;
    for (int64_t i = 0; i < TAKEN; i++)
        tn_tensor_set_f64(at, i, (double)(i * 37 % N));
    tn_set_output(g, "y", tn_neg(g, tn_gather(g, tn_constant(g, odd), tn_input(g, "at", TN_I64, TN_SHAPE("K")), 0)));
    tn_model *model = tn_model_from_graph(g, TN_OPTIONS(tn_model_options, .heap = heap));
    tn_session *s = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1));
    if (!s || tn_session_run(s, 1, &(tn_binding){.name = "at", .tensor = at}, 1,
                             &(tn_output){.name = "y", .tensor = &y}) != TN_OK)
        fail_msg("%s", tn_error_message());
    for (int64_t i = 0; i < TAKEN * N; i++)
        assert_true(tn_tensor_get_f64(y, i) == -(double)((i / N * 37 % N * N + i % N) % 1009));
    tn_memory m;
    assert_int_equal(tn_memory_report(s, &m), TN_OK);
    assert_true(m.in_use < N * N * sizeof(float) / 2);
    tn_tensor_destroy(y);
    tn_tensor_destroy(at);
    tn_tensor_destroy(odd);
    tn_session_destroy(s);
    tn_model_destroy(model);
    tn_graph_destroy(g);
    tn_heap_destroy(heap);
}

/* Weights of a convolution by tiles, from -O2 on: once for all sessions. */
static void test_tiles(void **state) {
    (void)state;
    tn_heap *heap = tn_heap_create(NULL);
    tn_graph *g = tn_graph_create();
    tn_value i = tn_input(g, "i", TN_F32, TN_SHAPE("N", CHANNELS, 8, 8));
    tn_set_output(
        g, "y",
        tn_conv(g, i, ramp(g, 4, (const int64_t[]){2 * CHANNELS, CHANNELS, 3, 3}, 3), NULL, NULL, NULL, NULL, NULL, 1));
    const size_t weights = sizeof(float) * 2 * CHANNELS * CHANNELS * 36;
    tn_model *model = tn_model_from_graph(g, TN_OPTIONS(tn_model_options, .heap = heap));
    tn_session *s[3] = {NULL};
    size_t first = 0;
    for (int k = 0; k < 3; k++) {
        static const char *const dims[3][2] = {{NULL}, {"N=2"}, {"N=3"}}; /* a plan each */
        s[k] = tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1, .dims = dims[k]));
        tn_memory m;
        if (!s[k] || tn_memory_report(s[k], &m) != TN_OK)
            fail_msg("%s", tn_error_message());
        first = k ? first : m.in_use;
        assert_true(first > weights && m.in_use < first + weights / 4);
    }
    for (int k = 0; k < 3; k++)
        tn_session_destroy(s[k]);
    tn_model_destroy(model);
    tn_graph_destroy(g);
    tn_heap_destroy(heap);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_packs), cmocka_unit_test(test_tiles),
                                       cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
