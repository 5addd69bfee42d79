/* Random numbers: the published vectors of Philox4x32-10, the documented use of its words, moments, independence of
   size, seed and offset. */
#include "ops/trials.h"

#define D(...) ((const int64_t[]){__VA_ARGS__})

/* Philox4x32-10 once more, straight from the paper. */
static void philox(uint64_t counter_low, uint64_t counter_high, uint64_t key, uint32_t out[4]) {
    uint32_t l0 = (uint32_t)counter_low, r0 = (uint32_t)(counter_low >> 32), l1 = (uint32_t)counter_high,
             r1 = (uint32_t)(counter_high >> 32), k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int i = 0; i < 10; i++) {
        uint64_t p0 = l0 * 0xD2511F53ull, p1 = l1 * 0xCD9E8D57ull;
        l0 = (uint32_t)(p1 >> 32) ^ r0 ^ k0;
        l1 = (uint32_t)(p0 >> 32) ^ r1 ^ k1;
        r0 = (uint32_t)p1;
        r1 = (uint32_t)p0;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    out[0] = l0;
    out[1] = r0;
    out[2] = l1;
    out[3] = r1;
}

static void oracle(const op_case *c, tn_tensor *out) {
    tn_dtype dtype = (tn_dtype)out->dtype;
    bool wide = tn_dtype_bits(dtype) == 64, normal = strcmp(c->op->name, "random_normal") == 0;
    uint64_t seed = (uint64_t)attr_of(c, "seed", 0), offset = c->inputs ? (uint64_t)op_get_i64(c->in[0], 0) : 0;
    for (int64_t i = 0; i < out->count; i++) {
        uint32_t w[4];
        int64_t each = normal ? (wide ? 1 : 2) : wide ? 2 : 4, j = i % each;
        philox((uint64_t)(i / each), offset, seed, w);
        uint64_t number = wide ? w[2 * j] + ((uint64_t)w[2 * j + 1] << 32) : (uint64_t)w[j] << 32;
        if (strcmp(c->op->name, "random_bits") == 0) {
            tn_store_i64(dtype, out->data, i, (int64_t)(wide ? number : w[j]));
        } else if (normal) {
            double u = wide ? (double)((number >> 11) + 1) / 0x1p53 : (w[2 * j] + 1.0) / 0x1p32;
            double v = wide ? (double)((w[2] + ((uint64_t)w[3] << 32)) >> 11) / 0x1p53 : w[2 * j + 1] / 0x1p32;
            tn_store_f64(dtype, out->data, i, sqrt(-2 * log(u)) * cos(2 * acos(-1) * v));
        } else {
            int bits = dtype == TN_F64 ? 53 : dtype == TN_F32 ? 24 : dtype == TN_F16 ? 11 : 8;
            tn_store_f64(dtype, out->data, i, (double)(number >> (64 - bits)) / pow(2, bits));
        }
    }
}

static op_case random_case(op_harness *h, const char *name, tn_dtype dtype, int rank, const int64_t *dims,
                           int64_t seed) {
    (void)h;
    return (op_case){.op = primitive(name),
                     .attrs = 3,
                     .attr = {OP_A_DIMS("shape", rank, dims), TN_A_DTYPE("dtype", dtype), TN_A_INT("seed", seed)},
                     .oracle = oracle,
                     .ulps = strcmp(name, "random_normal") == 0 ? 1 : 0};
}

static void try_row(op_harness *h, const char *name, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK];
    int rank = random_shape(h, 0, 4, dims);
    op_case c = random_case(h, name, dtype, rank, dims, (int64_t)op_random_bits(h));
    static const tn_dtype offsets[] = {TN_I64, TN_U64, TN_I32, TN_U32};
    if (pick(h, 0, 1)) {
        c.inputs = 1;
        c.in[0] = op_random(h, offsets[pick(h, 0, 3)], 0, NULL, false);
    }
    op_check(h, &c);
}

static void try_bits(op_harness *h, tn_dtype dtype) {
    try_row(h, "random_bits", dtype);
}

static void try_floats(op_harness *h, tn_dtype dtype) {
    try_row(h, "random_uniform", dtype);
    try_row(h, "random_normal", dtype);
}

static void test_words(void **state) {
    (void)state;
    for_dtypes("random_bits", op_ints, 8, try_bits);
    for_dtypes("random_uniform, random_normal", op_floats, 8, try_floats);
}

static tn_tensor *values(op_harness *h, const op_case *c) {
    tn_tensor *out;
    assert_int_equal(op_try(h, c, 0, &out), TN_OK);
    return out;
}

/* Known answers for block 0: the row's own, without the oracle above. */
static void test_vectors(void **state) {
    (void)state;
    op_harness h;
    op_harness_begin(&h);
    static const uint32_t zero[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    op_case c = random_case(&h, "random_bits", TN_U32, 1, D(4), 0);
    tn_tensor *t = values(&h, &c);
    for (int i = 0; i < 4; i++)
        assert_int_equal((uint32_t)tn_tensor_get_i64(t, i), zero[i]);
    tn_tensor_destroy(t);
    static const uint32_t ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
                          pi[4] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
    uint32_t w[4];
    philox(UINT64_MAX, UINT64_MAX, UINT64_MAX, w);
    assert_memory_equal(w, ones, sizeof w);
    philox(0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822, w);
    assert_memory_equal(w, pi, sizeof w);
    op_harness_end(&h);
}

static void test_distribution(void **state) {
    (void)state;
    op_harness h;
    op_harness_begin(&h);
    enum { N = 100000 };
    for (int d = 0; d < 4; d++)
        for (int normal = 0; normal < 2; normal++) {
            op_case c = random_case(&h, normal ? "random_normal" : "random_uniform", op_floats[d], 1, D(N), 7);
            tn_tensor *t = values(&h, &c);
            double sum = 0, squares = 0;
            for (int64_t i = 0; i < N; i++) {
                double v = tn_tensor_get_f64(t, i);
                assert_true(isfinite(v) && (normal || (v >= 0 && v < 1)));
                sum += v;
                squares += v * v;
            }
            double mean = sum / N, variance = squares / N - mean * mean;
            /* five deviations of the mean; bf16's uniform numbers lie half a step low */
            double low = !normal && op_floats[d] == TN_BF16 ? 0x1p-9 : !normal && op_floats[d] == TN_F16 ? 0x1p-12 : 0;
            assert_true(fabs(mean + low - (normal ? 0 : 0.5)) < 5 * (normal ? 1 : 0.29) / sqrt(N));
            assert_true(fabs(variance - (normal ? 1 : 1.0 / 12)) < 0.03 * (normal ? 1 : 1.0 / 12));
            tn_tensor_destroy(t);
        }
    op_harness_end(&h);
}

/* A larger shape begins with the same numbers; another seed or offset gives others. */
static void test_counting(void **state) {
    (void)state;
    op_harness h;
    op_harness_begin(&h);
    op_case small = random_case(&h, "random_uniform", TN_F32, 1, D(10), 3);
    op_case large = random_case(&h, "random_uniform", TN_F32, 2, D(5, 10000), 3), other = large, later = small;
    other.attr[2] = TN_A_INT("seed", 4);
    later.inputs = 1;
    later.in[0] = op_values(&h, TN_I64, 0, NULL, (double[]){1});
    tn_tensor *a = values(&h, &small), *b = values(&h, &large), *c = values(&h, &other), *d = values(&h, &later);
    int same_seed = 0, same_offset = 0;
    for (int64_t i = 0; i < 10; i++) {
        assert_true(tn_tensor_get_f64(a, i) == tn_tensor_get_f64(b, i));
        same_seed += tn_tensor_get_f64(a, i) == tn_tensor_get_f64(c, i);
        same_offset += tn_tensor_get_f64(a, i) == tn_tensor_get_f64(d, i);
    }
    assert_true(same_seed == 0 && same_offset == 0);
    tn_tensor *all[] = {a, b, c, d};
    for (int i = 0; i < 4; i++)
        tn_tensor_destroy(all[i]);
    op_case wrong[] = {random_case(&h, "random_bits", TN_F32, 1, D(2), 0),
                       random_case(&h, "random_uniform", TN_I32, 1, D(2), 0),
                       random_case(&h, "random_normal", 99, 1, D(2), 0),
                       random_case(&h, "random_normal", TN_F32, 1, D(-1), 0),
                       random_case(&h, "random_uniform", TN_F32, 2, D(INT64_MAX, 2), 0),
                       small,
                       small};
    wrong[5].inputs = wrong[6].inputs = 1;
    wrong[5].in[0] = op_values(&h, TN_F32, 0, NULL, (double[]){1});
    wrong[6].in[0] = op_values(&h, TN_I64, 1, D(1), (double[]){1});
    expect_refused(&h, wrong, COUNT(wrong));
    op_case huge = random_case(&h, "random_normal", TN_F32, 1, D((int64_t)1 << 40), 0);
    op_expect(&h, &huge, 1 << 20, TN_ERR_LIMIT);
    op_check_failures(&h, &later);
    op_harness_end(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words), cmocka_unit_test(test_vectors),
                                       cmocka_unit_test(test_distribution), cmocka_unit_test(test_counting)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
