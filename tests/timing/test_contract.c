/* How fast the reference evaluates contractions and reductions on one thread. Printed; slower than the bound is a
   failure in optimised builds. */
#include "ops/naive.h"

#include "base/number.h"
#include "base/os.h"
#include "base/pool.h"

static double best_time(op_harness *h, const op_case *c) {
    double best = 1e30;
    for (int i = 0; i < 3; i++) {
        tn_tensor *out;
        double start = tn_clock();
        assert_int_equal(op_try(h, c, 0, &out), TN_OK);
        double took = tn_clock() - start;
        best = took < best ? took : best;
        tn_tensor_destroy(out);
    }
    return best;
}

static void check(const char *what, double operations, double seconds, double least) {
    char rate[TN_NUMBER_TEXT];
    tn_format_f64_digits(operations / seconds * 1e-9, 3, rate);
    print_message("%-44s %6s G/s\n", what, rate);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(operations / seconds * 1e-9 >= least);
#else
    (void)least;
#endif
}

static void dot(op_harness *h, const char *what, tn_dtype dtype, int64_t m, int64_t n, int64_t k, bool transposed,
                double least) {
    int64_t one = 1, b_axis = transposed, b_dims[] = {transposed ? n : k, transposed ? k : n};
    op_case c = {.op = row(&tn_family_contract, "dot"),
                 .inputs = 2,
                 .attrs = 4,
                 .in = {op_random(h, dtype, 2, (int64_t[]){m, k}, true), op_random(h, dtype, 2, b_dims, true)},
                 .attr = {TN_A_INTS("a_batch", 0, NULL), TN_A_INTS("b_batch", 0, NULL),
                          TN_A_INTS("a_contract", 1, &one), TN_A_INTS("b_contract", 1, &b_axis)}};
    check(what, 2.0 * (double)(m * n * k), best_time(h, &c), least);
}

static void conv(op_harness *h, const char *what, int64_t channels, int64_t size, int64_t out, int64_t kernel,
                 int64_t stride, int64_t gap, int64_t groups, double least) {
    int64_t strides[] = {stride, stride}, ones[] = {1, 1}, gaps[] = {gap, gap}, pad[] = {kernel / 2, kernel / 2};
    int64_t spread = (size - 1) * gap + 1, side = (spread + 2 * pad[0] - kernel) / stride + 1;
    op_case c = {.op = row(&tn_family_contract, "conv"),
                 .inputs = 2,
                 .attrs = 6,
                 .in = {op_random(h, TN_F32, 4, (int64_t[]){1, channels, size, size}, true),
                        op_random(h, TN_F32, 4, (int64_t[]){out, channels / groups, kernel, kernel}, true)},
                 .attr = {TN_A_INTS("stride", 2, strides), TN_A_INTS("dilation", 2, ones),
                          TN_A_INTS("lhs_dilation", 2, gaps), OP_A_DIMS("lo", 2, pad), OP_A_DIMS("hi", 2, pad),
                          TN_A_INT("groups", groups)}};
    check(what, 2.0 * (double)(out * channels / groups * kernel * kernel * side * side), best_time(h, &c), least);
}

static void test_contractions(void **state) {
    op_harness h;
    (void)state;
    op_harness_begin(&h);
    tn_pool_destroy(h.pool); /* one thread */
    h.pool = tn_pool_create(NULL, 1);
    assert_non_null(h.pool);
    dot(&h, "dot 384x384x384", TN_F32, 384, 384, 384, false, 1);
    dot(&h, "dot 384x384x384, b transposed", TN_F32, 384, 384, 384, true, 1);
    dot(&h, "dot 384x384x384 f64", TN_F64, 384, 384, 384, false, 1);
    dot(&h, "dot 256x256x256 f16", TN_F16, 256, 256, 256, false, 0);
    dot(&h, "dot 256x256x256 i8", TN_I8, 256, 256, 256, false, 0);
    dot(&h, "dot 1x4096x1024, b transposed", TN_F32, 1, 4096, 1024, true, 0);
    dot(&h, "dot 4096x1x1024", TN_F32, 4096, 1, 1024, false, 0);
    conv(&h, "conv 3->64 7x7/2 at 224", 3, 224, 64, 7, 2, 1, 1, 1);
    conv(&h, "conv 64->64 3x3 at 56", 64, 56, 64, 3, 1, 1, 1, 1);
    conv(&h, "conv 256->64 1x1 at 56", 256, 56, 64, 1, 1, 1, 1, 1);
    conv(&h, "conv 512->512 3x3 at 7", 512, 7, 512, 3, 1, 1, 1, 1);
    conv(&h, "conv 512->2048 1x1 at 7", 512, 7, 2048, 1, 1, 1, 1, 1);
    conv(&h, "conv 128->128 3x3 depthwise at 56", 128, 56, 128, 3, 1, 1, 128, 0);
    conv(&h, "conv 64->64 4x4 spread by 2 at 28", 64, 28, 64, 4, 1, 2, 1, 0);
    op_harness_end(&h);
}

static void reduce(op_harness *h, const char *what, const char *name, const int64_t *dims, int64_t axis) {
    op_case c = {.op = row(&tn_family_reduce, name),
                 .inputs = 1,
                 .in = {op_random(h, TN_F32, 2, dims, true)},
                 .attrs = 1,
                 .attr = {TN_A_INTS("axes", 1, &axis)}};
    check(what, (double)(dims[0] * dims[1]), best_time(h, &c), 0);
}

static void test_reductions(void **state) {
    op_harness h;
    const int64_t dims[] = {2048, 1024};
    (void)state;
    op_harness_begin(&h);
    tn_pool_destroy(h.pool);
    h.pool = tn_pool_create(NULL, 1);
    assert_non_null(h.pool);
    reduce(&h, "reduce_sum [2048, 1024] over rows (elements)", "reduce_sum", dims, 0);
    reduce(&h, "reduce_sum [2048, 1024] along rows (elements)", "reduce_sum", dims, 1);
    reduce(&h, "reduce_max [2048, 1024] over rows (elements)", "reduce_max", dims, 0);
    reduce(&h, "reduce_max [2048, 1024] along rows (elements)", "reduce_max", dims, 1);
    int64_t window[] = {1, 1, 3, 3}, stride[] = {1, 1, 2, 2}, ones[] = {1, 1, 1, 1}, pad[] = {0, 0, 1, 1};
    op_case c = {.op = row(&tn_family_window, "window_max"),
                 .inputs = 1,
                 .in = {op_random(&h, TN_F32, 4, (int64_t[]){1, 64, 112, 112}, true)},
                 .attrs = 5,
                 .attr = {TN_A_INTS("window", 4, window), TN_A_INTS("stride", 4, stride),
                          TN_A_INTS("dilation", 4, ones), OP_A_DIMS("lo", 4, pad), OP_A_DIMS("hi", 4, pad)}};
    check("window_max 3x3/2 at 112, 64 channels (elements)", 64.0 * 56 * 56 * 9, best_time(&h, &c), 0);
    op_harness_end(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_contractions), cmocka_unit_test(test_reductions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
