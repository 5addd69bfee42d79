/* Convolution and dot against naive oracles: all dtypes, random shapes and attributes, wrong attributes. Operands
   are such that every sum is exact, so any difference is an error. */
#include "ops/naive.h"
#include "ops/scalar.h"

static void store_sum(tn_tensor *out, int64_t i, double f, uint64_t u) {
    if (tn_dtype_is_float((tn_dtype)out->dtype))
        tn_store_f64((tn_dtype)out->dtype, out->data, i, f);
    else
        tn_store_i64((tn_dtype)out->dtype, out->data, i, (int64_t)u);
}

/* --- dot ---------------------------------------------------------------------------------------------------------- */

static bool member(const tn_attr *list, int64_t axis, int64_t *at) {
    for (uint32_t i = 0; i < list->count; i++)
        if (list->as.ints[i] == axis) {
            *at = i;
            return true;
        }
    return false;
}

/* Where an operand is read: batch and free axes from the output's index, contracted ones from `term`. */
static int64_t operand_at(const op_case *c, int which, const int64_t *index, int first_free, const int64_t *term) {
    const tn_tensor *t = c->in[which];
    int64_t at[TN_MAX_RANK], k;
    for (int i = 0; i < t->rank; i++) {
        if (member(&c->attr[which], i, &k))
            at[i] = index[k];
        else if (member(&c->attr[2 + which], i, &k))
            at[i] = term[k];
        else
            at[i] = index[first_free++];
    }
    return ravel(t->rank, t->dims, at);
}

static void oracle_dot(const op_case *c, tn_tensor *out) {
    const tn_tensor *a = c->in[0], *b = c->in[1];
    int contracts = (int)c->attr[2].count, batches = (int)c->attr[0].count;
    int64_t sizes[TN_MAX_RANK], terms = 1;
    for (int i = 0; i < contracts; i++)
        terms *= sizes[i] = a->dims[c->attr[2].as.ints[i]];
    for (int64_t o = 0; o < out->count; o++) {
        int64_t index[TN_MAX_RANK], term[TN_MAX_RANK];
        double f = 0;
        uint64_t u = 0;
        unravel(o, out->rank, out->dims, index);
        for (int64_t k = 0; k < terms; k++) {
            unravel(k, contracts, sizes, term);
            int64_t i = operand_at(c, 0, index, batches, term), j = operand_at(c, 1, index, a->rank - contracts, term);
            if (tn_dtype_is_float((tn_dtype)a->dtype))
                f += op_get(a, i) * op_get(b, j);
            else
                u += (uint64_t)op_get_i64(a, i) * (uint64_t)op_get_i64(b, j);
        }
        store_sum(out, o, f, u);
    }
}

typedef struct dot_attrs {
    int64_t a_batch[8], b_batch[8], a_contract[8], b_contract[8];
    int batches, contracts;
} dot_attrs;

static op_case dot(tn_tensor *a, tn_tensor *b, const dot_attrs *d, tn_dtype acc) {
    return (op_case){.op = row(&tn_family_contract, "dot"),
                     .inputs = 2,
                     .in = {a, b},
                     .attrs = 5,
                     .oracle = oracle_dot,
                     .attr = {TN_A_INTS("a_batch", d->batches, d->a_batch),
                              TN_A_INTS("b_batch", d->batches, d->b_batch),
                              TN_A_INTS("a_contract", d->contracts, d->a_contract),
                              TN_A_INTS("b_contract", d->contracts, d->b_contract), TN_A_DTYPE("acc", acc)}};
}

static tn_dtype random_accumulator(op_harness *h, tn_dtype dtype) {
    if (pick(h, 0, 1))
        return TN_DTYPE_NONE;
    if (tn_dtype_is_float(dtype))
        return tn_dtype_bits(dtype) <= 32 ? TN_F32 : TN_F64;
    return tn_dtype_bits(dtype) <= 32 && pick(h, 0, 1) ? TN_I32 : TN_I64;
}

static void test_dot(void **state) {
    op_harness h;
    (void)state;
    op_harness_begin(&h);
    uint64_t seed = h.seed;
    for (const tn_dtype *d = op_numbers; *d != TN_BOOL; d++)
        for (int repeat = 0; repeat < 25; repeat++) {
            dot_attrs attrs = {.batches = (int)pick(&h, 0, 2), .contracts = (int)pick(&h, 0, 2)};
            int shared = attrs.batches + attrs.contracts, ranks[2];
            int64_t size[4], dims[2][TN_MAX_RANK];
            for (int i = 0; i < shared; i++)
                size[i] = pick(&h, 0, 30) == 0 ? 0 : pick(&h, 1, 5);
            for (int k = 0; k < 2; k++) { /* axes in any order */
                int rank = ranks[k] = shared + (int)pick(&h, 0, 2);
                int64_t order[TN_MAX_RANK], *batch = k ? attrs.b_batch : attrs.a_batch,
                                            *contract = k ? attrs.b_contract : attrs.a_contract;
                for (int i = 0; i < rank; i++) {
                    int64_t j = pick(&h, 0, i);
                    order[i] = order[j];
                    order[j] = i;
                }
                for (int i = 0; i < rank; i++)
                    dims[k][order[i]] = i < shared ? size[i] : pick(&h, 0, 30) == 0 ? 0 : pick(&h, 1, 6);
                for (int i = 0; i < shared; i++)
                    *(i < attrs.batches ? &batch[i] : &contract[i - attrs.batches]) = order[i];
            }
            op_case c = dot(random_exact(&h, *d, ranks[0], dims[0]), random_exact(&h, *d, ranks[1], dims[1]), &attrs,
                            random_accumulator(&h, *d));
            op_check(&h, &c);
        }
    report(&h, "dot", seed);
    op_harness_end(&h);
}

/* Past the blocks' sizes in every direction; few columns, which swaps the operands; one row. */
static void test_dot_blocks(void **state) {
    op_harness h;
    (void)state;
    op_harness_begin(&h);
    static const int64_t sizes[][3] = {{70, 130, 300}, {9, 5, 600}, {1, 200, 513},
                                       {520, 1, 257},  {3, 65, 1},  {530, 9, 2}};
    static const tn_dtype dtypes[] = {TN_F32, TN_I8, TN_F16};
    for (int s = 0; s < COUNT(sizes); s++)
        for (int d = 0; d < COUNT(dtypes); d++)
            for (int transposed = 0; transposed < 2; transposed++) {
                const int64_t *m = sizes[s];
                int64_t b_dims[] = {transposed ? m[1] : m[2], transposed ? m[2] : m[1]};
                dot_attrs attrs = {.a_contract = {1}, .b_contract = {transposed}, .contracts = 1};
                op_case c =
                    dot(random_exact(&h, dtypes[d], 2, (int64_t[]){m[0], m[2]}), random_exact(&h, dtypes[d], 2, b_dims),
                        &attrs, dtypes[d] == TN_I8 ? TN_I32 : TN_DTYPE_NONE);
                if (s > 0 && d > 0)
                    c.oracle = NULL;
                op_check(&h, &c);
            }
    op_harness_end(&h);
}

/* Sums are in double and rounded once: 2^24 + 1 - 2^24, and f16 whose partial sums overflow. */
static void test_dot_values(void **state) {
    op_harness h;
    tn_tensor *out;
    int64_t n = 4;
    (void)state;
    op_harness_begin(&h);
    const dot_attrs attrs = {.a_contract = {0}, .b_contract = {0}, .contracts = 1};
    tn_tensor *ones = op_values(&h, TN_F32, 1, &n, (double[]){1, 1, 1, 1}),
              *half = op_values(&h, TN_F16, 1, &n, (double[]){60000, 60000, -60000, 1});
    op_case c = dot(op_values(&h, TN_F32, 1, &n, (double[]){0x1p24, 1, -0x1p24, 0}), ones, &attrs, TN_DTYPE_NONE);
    assert_int_equal(op_try(&h, &c, 0, &out), TN_OK);
    assert_true(op_get(out, 0) == 1);
    tn_tensor_destroy(out);
    c = dot(half, op_values(&h, TN_F16, 1, &n, (double[]){1, 1, 1, 0}), &attrs, TN_DTYPE_NONE);
    assert_int_equal(op_try(&h, &c, 0, &out), TN_OK);
    assert_true(op_get(out, 0) == 60000);
    tn_tensor_destroy(out);
    c = dot(op_values(&h, TN_F32, 1, &n, (double[]){(double)INFINITY, 1, 2, 3}),
            op_values(&h, TN_F32, 1, &n, (double[]){0, 1, 1, 1}), &attrs, TN_DTYPE_NONE);
    assert_int_equal(op_try(&h, &c, 0, &out), TN_OK);
    assert_true(isnan(op_get(out, 0)));
    tn_tensor_destroy(out);
    c = dot(op_values(&h, TN_I8, 1, &n, (double[]){100, 100, 100, -100}),
            op_values(&h, TN_I8, 1, &n, (double[]){100, 100, 1, 1}), &attrs, TN_I32);
    assert_int_equal(op_try(&h, &c, 0, &out), TN_OK);
    assert_int_equal(tn_tensor_dtype(out), TN_I32);
    assert_true(op_get_i64(out, 0) == 20000);
    tn_tensor_destroy(out);
    op_harness_end(&h);
}

/* --- convolution -------------------------------------------------------------------------------------------------- */

typedef struct conv_attrs {
    int64_t stride[4], dilation[4], gap[4], lo[4], hi[4], groups;
} conv_attrs;

static void oracle_conv(const op_case *c, tn_tensor *out);

static op_case conv(tn_tensor *x, tn_tensor *w, const conv_attrs *a, tn_dtype acc) {
    int n = x->rank - 2;
    return (op_case){.op = row(&tn_family_contract, "conv"),
                     .inputs = 2,
                     .in = {x, w},
                     .attrs = 7,
                     .oracle = oracle_conv,
                     .attr = {TN_A_INTS("stride", n, a->stride), TN_A_INTS("dilation", n, a->dilation),
                              TN_A_INTS("lhs_dilation", n, a->gap), OP_A_DIMS("lo", n, a->lo),
                              OP_A_DIMS("hi", n, a->hi), TN_A_INT("groups", a->groups), TN_A_DTYPE("acc", acc)}};
}

static void oracle_conv(const op_case *c, tn_tensor *out) {
    const tn_tensor *x = c->in[0], *w = c->in[1];
    const int64_t *stride = c->attr[0].as.ints, *dilation = c->attr[1].as.ints, *gap = c->attr[2].as.ints,
                  *lo = c->attr[3].as.ints;
    int64_t groups = c->attr[5].as.i, taps = 1;
    int n = x->rank - 2;
    for (int i = 1; i < w->rank; i++)
        taps *= w->dims[i];
    for (int64_t o = 0; o < out->count; o++) {
        int64_t index[TN_MAX_RANK], tap[TN_MAX_RANK], at[TN_MAX_RANK];
        double f = 0;
        uint64_t u = 0;
        unravel(o, out->rank, out->dims, index);
        for (int64_t k = 0; k < taps; k++) {
            bool inside = true;
            unravel(k, w->rank - 1, w->dims + 1, tap + 1);
            tap[0] = index[1];
            at[0] = index[0];
            at[1] = index[1] / (w->dims[0] / groups) * w->dims[1] + tap[1];
            for (int i = 0; i < n; i++) {
                int64_t p = index[i + 2] * stride[i] + tap[i + 2] * dilation[i] - lo[i];
                inside = inside && p >= 0 && p % gap[i] == 0 && p / gap[i] < x->dims[i + 2];
                at[i + 2] = p / gap[i];
            }
            if (!inside)
                continue;
            int64_t i = ravel(x->rank, x->dims, at), j = ravel(w->rank, w->dims, tap);
            if (tn_dtype_is_float((tn_dtype)x->dtype))
                f += op_get(x, i) * op_get(w, j);
            else
                u += (uint64_t)op_get_i64(x, i) * (uint64_t)op_get_i64(w, j);
        }
        store_sum(out, o, f, u);
    }
}

static void test_conv(void **state) {
    op_harness h;
    (void)state;
    op_harness_begin(&h);
    uint64_t seed = h.seed;
    for (const tn_dtype *d = op_numbers; *d != TN_BOOL; d++)
        for (int repeat = 0; repeat < 16; repeat++) {
            conv_attrs a = {.groups = pick(&h, 1, 3)};
            int64_t x[6], w[6];
            int n = (int)pick(&h, 0, 3);
            w[1] = pick(&h, 0, 25) == 0 ? 0 : pick(&h, 1, 3);
            w[0] = a.groups * pick(&h, pick(&h, 0, 25) != 0, 4);
            x[0] = pick(&h, pick(&h, 0, 25) != 0, 3);
            x[1] = w[1] * a.groups;
            for (int i = 0; i < n; i++) {
                x[i + 2] = pick(&h, pick(&h, 0, 25) != 0, n == 3 ? 4 : 8);
                w[i + 2] = pick(&h, 1, n == 3 ? 2 : 4);
                a.stride[i] = pick(&h, 1, 3);
                a.dilation[i] = pick(&h, 1, 3);
                a.gap[i] = pick(&h, 0, 1) ? 1 : pick(&h, 2, 3);
                a.lo[i] = pick(&h, 0, 4);
                a.hi[i] = pick(&h, 0, 4);
                int64_t lack = a.dilation[i] * (w[i + 2] - 1) + 1 - ((x[i + 2] - 1) * a.gap[i] + 1) - a.lo[i] - a.hi[i];
                a.hi[i] += lack > 0 ? lack : 0;
            }
            op_case c =
                conv(random_exact(&h, *d, n + 2, x), random_exact(&h, *d, n + 2, w), &a, random_accumulator(&h, *d));
            op_check(&h, &c);
        }
    report(&h, "conv", seed);
    op_harness_end(&h);
}

/* Many channels and positions; images that share a block of columns; depthwise. */
static void test_conv_blocks(void **state) {
    op_harness h;
    (void)state;
    op_harness_begin(&h);
    const conv_attrs same = {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1};
    conv_attrs deep = same, wide = {{2, 3}, {2, 1}, {1, 1}, {1, 2}, {0, 1}, 1};
    deep.groups = 12;
    op_case cases[] = {conv(random_exact(&h, TN_F32, 4, (int64_t[]){3, 40, 7, 7}),
                            random_exact(&h, TN_F32, 4, (int64_t[]){35, 40, 3, 3}), &same, 0),
                       conv(random_exact(&h, TN_F32, 4, (int64_t[]){2, 12, 9, 75}),
                            random_exact(&h, TN_F32, 4, (int64_t[]){12, 1, 3, 3}), &deep, 0),
                       conv(random_exact(&h, TN_F32, 4, (int64_t[]){2, 3, 30, 200}),
                            random_exact(&h, TN_F32, 4, (int64_t[]){5, 3, 5, 4}), &wide, 0),
                       conv(random_exact(&h, TN_U8, 4, (int64_t[]){1, 300, 3, 3}),
                            random_exact(&h, TN_U8, 4, (int64_t[]){3, 300, 3, 3}), &same, TN_I32)};
    for (int i = 0; i < COUNT(cases); i++)
        op_check(&h, &cases[i]);
    op_check_failures(&h, &cases[1]);
    op_harness_end(&h);
}

static void test_wrong(void **state) {
    op_harness h;
    const int64_t m = INT64_MAX;
    (void)state;
    op_harness_begin(&h);
    tn_tensor *x = random_exact(&h, TN_F32, 3, (int64_t[]){1, 4, 5}),
              *w = random_exact(&h, TN_F32, 3, (int64_t[]){6, 2, 3});
    tn_tensor *flat = random_exact(&h, TN_F32, 2, (int64_t[]){4, 5}),
              *odd = random_exact(&h, TN_F32, 3, (int64_t[]){5, 2, 3});
    tn_tensor *empty = op_tensor(&h, TN_F32, 3, (int64_t[]){6, 2, 0}),
              *f64 = random_exact(&h, TN_F64, 3, (int64_t[]){6, 2, 3});
    tn_tensor *flags = op_random(&h, TN_BOOL, 3, (int64_t[]){1, 4, 5}, true);
    const conv_attrs good = {{1}, {1}, {1}, {0}, {0}, 2},
                     wrong[] = {
                         {{0}, {1}, {1}, {0}, {0}, 2},  {{1}, {0}, {1}, {0}, {0}, 2},  {{1}, {1}, {0}, {0}, {0}, 2},
                         {{1}, {1}, {1}, {-1}, {0}, 2}, {{1}, {1}, {1}, {0}, {-1}, 2}, {{1}, {1}, {1}, {0}, {0}, 1},
                         {{1}, {1}, {1}, {0}, {0}, 0},  {{1}, {1}, {1}, {0}, {0}, -2}, {{1}, {1}, {1}, {0}, {0}, 3},
                         {{1}, {1}, {1}, {0}, {0}, m},  {{1}, {4}, {1}, {0}, {0}, 2},  {{1}, {m}, {1}, {0}, {0}, 2},
                         {{1}, {1}, {m}, {0}, {0}, 2},  {{1}, {1}, {1}, {m}, {m}, 2}};
    for (int i = 0; i < COUNT(wrong); i++) {
        op_case c = conv(x, w, &wrong[i], TN_DTYPE_NONE);
        tn_tensor *out;
        tn_status status = op_try(&h, &c, 1 << 20, &out);
        if (status != TN_ERR_MODEL && status != TN_ERR_USAGE && status != TN_ERR_LIMIT)
            fail_msg("case %d: %s %s", i, tn_status_name(status), tn_error_message());
    }
    op_case more[] = {conv(x, flat, &good, 0),   conv(flat, w, &good, 0), conv(x, odd, &good, 0),
                      conv(x, empty, &good, 0),  conv(x, f64, &good, 0),  conv(x, w, &good, TN_F16),
                      conv(x, w, &good, TN_I64), conv(x, w, &good, 0)};
    more[7].attr[0].count = 2;
    more[7].attr[0].as.ints = (int64_t[]){1, 1};
    for (int i = 0; i < COUNT(more); i++)
        op_expect(&h, &more[i], 0, TN_ERR_MODEL);
    op_case unsupported = conv(flags, flags, &good, 0);
    op_expect(&h, &unsupported, 0, TN_ERR_UNSUPPORTED);

    tn_tensor *b = random_exact(&h, TN_F32, 2, (int64_t[]){5, 4});
    const dot_attrs dots[] = {
        {.a_contract = {0}, .b_contract = {0}, .contracts = 1},
        {.a_contract = {2}, .b_contract = {0}, .contracts = 1},
        {.a_contract = {-1}, .b_contract = {0}, .contracts = 1},
        {.a_contract = {1}, .b_contract = {2}, .contracts = 1},
        {.a_contract = {1, 1}, .b_contract = {0, 0}, .contracts = 2},
        {.a_batch = {1}, .b_batch = {0}, .batches = 1, .a_contract = {1}, .b_contract = {1}, .contracts = 1},
        {.a_batch = {0}, .b_batch = {0}, .batches = 1}};
    for (int i = 0; i < COUNT(dots); i++) {
        op_case c = dot(flat, b, &dots[i], TN_DTYPE_NONE);
        op_expect(&h, &c, 0, TN_ERR_MODEL);
    }
    op_case uneven = dot(flat, b, &(dot_attrs){.a_contract = {1}, .b_contract = {0}, .contracts = 1}, 0);
    uneven.attr[3].count = 0;
    op_expect(&h, &uneven, 0, TN_ERR_MODEL);
    int64_t many[20];
    for (int i = 0; i < 20; i++)
        many[i] = 1;
    tn_tensor *tall = op_tensor(&h, TN_F32, 20, many);
    op_case rank = dot(tall, tall, &(dot_attrs){.batches = 0}, 0);
    op_expect(&h, &rank, 0, TN_ERR_MODEL);
    op_harness_end(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_dot),         cmocka_unit_test(test_dot_blocks),
                                       cmocka_unit_test(test_dot_values),  cmocka_unit_test(test_conv),
                                       cmocka_unit_test(test_conv_blocks), cmocka_unit_test(test_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
