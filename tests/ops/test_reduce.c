/* Reductions and window reductions against naive oracles. */
#include "ops/naive.h"
#include "ops/scalar.h"

/* What an oracle combines, in the widest type of its kind. */
typedef struct total {
    long double f;
    uint64_t u;
    bool started;
} total;

static void start(const tn_op *op, tn_dtype dtype, total *t) {
    bool product = op->code == TN_SCALAR_MUL, max = op->code == TN_SCALAR_MAX;
    *t = (total){.f = product ? 1 : 0, .u = op->code == TN_SCALAR_AND ? UINT64_MAX : product};
    if (max || op->code == TN_SCALAR_MIN) {
        t->f = max ? -(long double)INFINITY : (long double)INFINITY;
        t->u = max ? (uint64_t)tn_dtype_min_i64(dtype) : tn_dtype_max_u64(dtype);
    }
}

static void add(const tn_op *op, tn_dtype dtype, total *t, const tn_tensor *x, int64_t i) {
    long double f = tn_dtype_is_float(dtype) ? op_get(x, i) : 0;
    uint64_t u = tn_dtype_is_float(dtype) ? 0 : (uint64_t)op_get_i64(x, i);
    bool less = tn_dtype_is_signed(dtype) ? (int64_t)u < (int64_t)t->u : u < t->u;
    switch (op->code) {
    case TN_SCALAR_ADD: t->f += f, t->u += u; break;
    case TN_SCALAR_MUL: t->f *= f, t->u *= u; break;
    case TN_SCALAR_AND: t->u &= u; break;
    case TN_SCALAR_OR: t->u |= u; break;
    case TN_SCALAR_MAX:
        t->u = less ? t->u : u;
        if (isnan(f) || (!isnan(t->f) && (f > t->f || (f == t->f && !signbit(f)))))
            t->f = f;
        break;
    default:
        t->u = less ? u : t->u;
        if (isnan(f) || (!isnan(t->f) && (f < t->f || (f == t->f && signbit(f)))))
            t->f = f;
    }
}

static void finish(tn_tensor *out, int64_t i, const total *t) {
    if (tn_dtype_is_float((tn_dtype)out->dtype))
        tn_store_f64((tn_dtype)out->dtype, out->data, i, (double)t->f);
    else
        tn_store_i64((tn_dtype)out->dtype, out->data, i, out->dtype == TN_BOOL ? (int64_t)(t->u & 1) : (int64_t)t->u);
}

/* Elements for an operation: exact sums, products of powers of two, NaN, infinities and both zeros for max and min. */
static tn_tensor *elements(op_harness *h, const tn_op *op, tn_dtype dtype, int rank, const int64_t *dims) {
    tn_tensor *t = random_exact(h, dtype, rank, dims);
    if (!tn_dtype_is_float(dtype))
        return t;
    for (int64_t i = 0; i < t->count; i++) {
        static const double powers[] = {0.5, -0.5, 1, -1, 2, -2},
                            edges[] = {0, -0.0, 1, -1, (double)INFINITY, -(double)INFINITY};
        if (op->code == TN_SCALAR_MUL)
            tn_store_f64(dtype, t->data, i, powers[pick(h, 0, 5)]);
        else if (op->code != TN_SCALAR_ADD && pick(h, 0, 1))
            tn_store_f64(dtype, t->data, i,
                         pick(h, 0, 20) == 0 ? (double)NAN : edges[pick(h, 0, pick(h, 0, 3) ? 1 : 5)]);
    }
    return t;
}

/* --- reductions --------------------------------------------------------------------------------------------------- */

static void oracle_reduce(const op_case *c, tn_tensor *out) {
    const tn_tensor *x = c->in[0];
    bool reduced[TN_MAX_RANK] = {false}, keep = c->attr[1].as.i != 0;
    for (uint32_t i = 0; i < c->attr[0].count; i++)
        reduced[c->attr[0].as.ints[i]] = true;
    for (int64_t o = 0; o < out->count; o++) {
        total t;
        start(c->op, (tn_dtype)x->dtype, &t);
        for (int64_t i = 0; i < x->count; i++) {
            int64_t index[TN_MAX_RANK], at[TN_MAX_RANK];
            int n = 0;
            unravel(i, x->rank, x->dims, index);
            for (int k = 0; k < x->rank; k++) {
                if (!reduced[k])
                    at[n++] = index[k];
                else if (keep)
                    at[n++] = 0;
            }
            if (ravel(n, out->dims, at) == o)
                add(c->op, (tn_dtype)x->dtype, &t, x, i);
        }
        finish(out, o, &t);
    }
}

static op_case reduction(const tn_op *op, tn_tensor *x, int count, const int64_t *axes, bool keep) {
    return (op_case){.op = op,
                     .inputs = 1,
                     .in = {x},
                     .attrs = 2,
                     .attr = {TN_A_INTS("axes", count, axes), TN_A_INT("keepdims", keep)},
                     .oracle = oracle_reduce};
}

static void test_reduce(void **state) {
    op_harness h;
    (void)state;
    op_harness_begin(&h);
    uint64_t seed = h.seed;
    for (uint32_t r = 0; r < tn_family_reduce.count; r++)
        for (const tn_dtype *d = op_numbers; *d != TN_DTYPE_NONE; d++) {
            const tn_op *op = &tn_family_reduce.rows[r];
            for (int repeat = 0; repeat < 6 && tn_scalar_admits((tn_scalar_op)op->code, *d); repeat++) {
                int64_t dims[4], axes[4];
                int rank = (int)pick(&h, 0, 4), count = 0;
                for (int i = 0; i < rank; i++) {
                    dims[i] = pick(&h, 0, 14) == 0 ? 0 : pick(&h, 1, rank > 2 ? 5 : 20);
                    if (pick(&h, 0, 1)) { /* any order */
                        int at = (int)pick(&h, 0, count);
                        axes[count++] = axes[at];
                        axes[at] = i;
                    }
                }
                op_case c = reduction(op, elements(&h, op, *d, rank, dims), count, axes, pick(&h, 0, 1));
                op_check(&h, &c);
            }
        }
    report(&h, "reductions", seed);
    op_harness_end(&h);
}

/* Sizes past the runs' and pieces' lengths, both ways of running, rank 32. */
static void test_reduce_large(void **state) {
    op_harness h;
    (void)state;
    op_harness_begin(&h);
    const int64_t shapes[][2] = {{3, 700}, {700, 3}, {300, 40}, {40, 300}, {1, 70000}, {70000, 1}};
    const tn_op *sum = row(&tn_family_reduce, "reduce_sum"), *max = row(&tn_family_reduce, "reduce_max");
    for (int i = 0; i < COUNT(shapes); i++)
        for (int64_t axis = 0; axis < 2; axis++) {
            op_case c = reduction(sum, random_exact(&h, TN_F32, 2, shapes[i]), 1, &axis, false);
            if (c.in[0]->dims[1 - axis] > 1000)
                c.oracle = NULL;
            op_check(&h, &c);
            c.op = max;
            op_check(&h, &c);
        }
    int64_t dims[TN_MAX_RANK], axes[] = {31, 0, 7, 15};
    for (int i = 0; i < TN_MAX_RANK; i++)
        dims[i] = i % 8 == 7 || i == 0 ? 2 : 1;
    op_case c = reduction(sum, random_exact(&h, TN_I8, TN_MAX_RANK, dims), 4, axes, true);
    op_check(&h, &c);
    op_check_failures(&h, &c);
    op_harness_end(&h);
}

/* Rounded once: a sum in f16 steps, or in f32, would be off; wrapping, NaN's place, nothing at all. */
static void test_reduce_values(void **state) {
    op_harness h;
    tn_tensor *out;
    (void)state;
    op_harness_begin(&h);
    static const tn_dtype narrow[] = {TN_F16, TN_BF16, TN_F32};
    int64_t n = 5000, axis = 0, none = 0;
    for (int d = 0; d < COUNT(narrow); d++) {
        tn_tensor *x = op_tensor(&h, narrow[d], 1, &n);
        for (int64_t i = 0; i < n; i++)
            tn_store_f64(narrow[d], x->data, i, 0.1);
        double one = tn_load_f64(narrow[d], x->data, 0);
        op_case c = reduction(row(&tn_family_reduce, "reduce_sum"), x, 1, &axis, false);
        assert_int_equal(op_try(&h, &c, 0, &out), TN_OK);
        uint64_t want = 0;
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += one;
        tn_store_f64(narrow[d], &want, 0, sum);
        assert_true(tn_load_f64(narrow[d], out->data, 0) == tn_load_f64(narrow[d], &want, 0));
        tn_tensor_destroy(out);
    }
    for (uint32_t r = 0; r < tn_family_reduce.count; r++)
        for (const tn_dtype *d = op_numbers; *d != TN_DTYPE_NONE; d++) {
            op_case c = reduction(&tn_family_reduce.rows[r], op_tensor(&h, *d, 1, &none), 1, &axis, true);
            if (tn_scalar_admits((tn_scalar_op)c.op->code, *d))
                op_check(&h, &c);
            else
                op_expect(&h, &c, 0, TN_ERR_UNSUPPORTED);
        }
    op_harness_end(&h);
}

static void test_reduce_wrong(void **state) {
    op_harness h;
    (void)state;
    op_harness_begin(&h);
    static const int64_t axes[] = {0, 0, 2, -1, 0, 1, 0};
    const tn_op *sum = row(&tn_family_reduce, "reduce_sum");
    tn_tensor *x = op_random(&h, TN_F32, 2, (int64_t[]){2, 3}, true),
              *i8 = op_random(&h, TN_I16, 2, (int64_t[]){2, 3}, true);
    op_case cases[] = {reduction(sum, x, 2, axes, false),     reduction(sum, x, 1, axes + 2, false),
                       reduction(sum, x, 1, axes + 3, false), reduction(sum, x, 3, axes + 4, false),
                       reduction(sum, x, 1, axes, false),     reduction(sum, x, 1, axes, false),
                       reduction(sum, i8, 1, axes, false),    reduction(sum, i8, 1, axes, false),
                       reduction(sum, x, 1, axes, false)};
    cases[4].attr[1] = TN_A_INT("keepdims", 2);
    cases[5].attr[1] = TN_A_DTYPE("acc", TN_I32);
    cases[6].attr[1] = TN_A_DTYPE("acc", TN_F32);
    cases[7].attr[1] = TN_A_DTYPE("acc", TN_I8);
    cases[8].attr[1] = TN_A_DTYPE("acc", 77);
    for (int i = 0; i < COUNT(cases); i++)
        op_expect(&h, &cases[i], 0, TN_ERR_MODEL);
    op_harness_end(&h);
}

/* --- windows ------------------------------------------------------------------------------------------------------ */

static void oracle_window(const op_case *c, tn_tensor *out) {
    const tn_tensor *x = c->in[0];
    const int64_t *window = c->attr[0].as.ints, *stride = c->attr[1].as.ints, *dilation = c->attr[2].as.ints,
                  *lo = c->attr[3].as.ints;
    for (int64_t o = 0; o < out->count; o++) {
        int64_t index[TN_MAX_RANK], tap[TN_MAX_RANK], at[TN_MAX_RANK], taps = 1;
        total t;
        start(c->op, (tn_dtype)x->dtype, &t);
        unravel(o, x->rank, out->dims, index);
        for (int i = 0; i < x->rank; i++)
            taps *= window[i];
        for (int64_t k = 0; k < taps; k++) {
            bool inside = true;
            unravel(k, x->rank, window, tap);
            for (int i = 0; i < x->rank; i++) {
                at[i] = index[i] * stride[i] + tap[i] * dilation[i] - lo[i];
                inside = inside && at[i] >= 0 && at[i] < x->dims[i];
            }
            if (inside)
                add(c->op, (tn_dtype)x->dtype, &t, x, ravel(x->rank, x->dims, at));
        }
        finish(out, o, &t);
    }
}

typedef struct window_attrs {
    int64_t window[4], stride[4], dilation[4], lo[4], hi[4];
} window_attrs;

static op_case windowed(const tn_op *op, tn_tensor *x, const window_attrs *a) {
    int n = x->rank;
    return (op_case){.op = op,
                     .inputs = 1,
                     .in = {x},
                     .attrs = 5,
                     .oracle = oracle_window,
                     .attr = {TN_A_INTS("window", n, a->window), TN_A_INTS("stride", n, a->stride),
                              TN_A_INTS("dilation", n, a->dilation), OP_A_DIMS("lo", n, a->lo),
                              OP_A_DIMS("hi", n, a->hi)}};
}

static void test_window(void **state) {
    op_harness h;
    (void)state;
    op_harness_begin(&h);
    uint64_t seed = h.seed;
    for (uint32_t r = 0; r < tn_family_window.count; r++)
        for (const tn_dtype *d = op_numbers; *d != TN_DTYPE_NONE; d++) {
            const tn_op *op = &tn_family_window.rows[r];
            for (int repeat = 0; repeat < 8 && tn_scalar_admits((tn_scalar_op)op->code, *d); repeat++) {
                window_attrs a;
                int64_t dims[4];
                int rank = (int)pick(&h, 0, 3);
                for (int i = 0; i < rank; i++) {
                    dims[i] = pick(&h, 0, 20) == 0 ? 0 : pick(&h, 1, 9);
                    a.window[i] = pick(&h, 1, 4);
                    a.stride[i] = pick(&h, 1, 3);
                    a.dilation[i] = pick(&h, 1, 3);
                    a.lo[i] = pick(&h, 0, 5);
                    a.hi[i] = pick(&h, 0, 5);
                    int64_t lack = a.dilation[i] * (a.window[i] - 1) + 1 - dims[i] - a.lo[i] - a.hi[i];
                    if (lack > 0)
                        a.hi[i] += lack - (lack <= a.stride[i] ? pick(&h, 0, lack) : 0);
                }
                op_case c = windowed(op, elements(&h, op, *d, rank, dims), &a);
                op_check(&h, &c);
            }
        }
    report(&h, "windows", seed);
    op_harness_end(&h);
}

/* Windows mostly outside, windows as large as the axis, rows longer than a run: nothing takes time in proportion to
   a number. */
static void test_window_large(void **state) {
    op_harness h;
    (void)state;
    op_harness_begin(&h);
    const int64_t big = (int64_t)1 << 40;
    const tn_op *max = row(&tn_family_window, "window_max"), *sum = row(&tn_family_window, "window_sum");
    op_case c = windowed(max, random_exact(&h, TN_F32, 2, (int64_t[]){3, 5}),
                         &(window_attrs){{1, big}, {1, 1}, {1, 1}, {0, big}, {0, 2}});
    c.oracle = NULL;
    op_check(&h, &c);
    c = windowed(max, random_exact(&h, TN_F32, 2, (int64_t[]){3, 5}),
                 &(window_attrs){{big, 2}, {big, 1}, {7, 1}, {4 * big, 0}, {4 * big, 0}});
    c.oracle = NULL;
    op_check(&h, &c);
    c = windowed(sum, random_exact(&h, TN_I32, 2, (int64_t[]){2, 600}),
                 &(window_attrs){{1, 3}, {1, 1}, {1, 2}, {0, 2}, {0, 2}});
    op_check(&h, &c);
    c = windowed(sum, random_exact(&h, TN_F32, 2, (int64_t[]){2, 600}),
                 &(window_attrs){{2, 500}, {1, 7}, {1, 1}, {1, 9}, {0, 400}});
    op_check(&h, &c);
    op_check_failures(&h, &c);
    op_harness_end(&h);
}

static void test_window_wrong(void **state) {
    op_harness h;
    (void)state;
    op_harness_begin(&h);
    const int64_t m = INT64_MAX;
    const tn_op *max = row(&tn_family_window, "window_max");
    tn_tensor *x = op_random(&h, TN_F32, 1, (int64_t[]){4}, true);
    const window_attrs wrong[] = {{{0}, {1}, {1}, {0}, {0}},  {{1}, {0}, {1}, {0}, {0}},  {{1}, {1}, {0}, {0}, {0}},
                                  {{-1}, {1}, {1}, {0}, {0}}, {{1}, {-1}, {1}, {0}, {0}}, {{1}, {1}, {1}, {-1}, {0}},
                                  {{1}, {1}, {1}, {0}, {-1}}, {{6}, {1}, {1}, {0}, {0}},  {{m}, {1}, {m}, {0}, {0}},
                                  {{1}, {1}, {1}, {m}, {m}},  {{3}, {1}, {3}, {0}, {1}}};
    for (int i = 0; i < COUNT(wrong); i++) {
        op_case c = windowed(max, x, &wrong[i]);
        tn_tensor *out;
        tn_status status = op_try(&h, &c, 1 << 20, &out);
        if (status != TN_ERR_MODEL && status != TN_ERR_USAGE && status != TN_ERR_LIMIT)
            fail_msg("case %d: %s %s", i, tn_status_name(status), tn_error_message());
        tn_tensor_destroy(out);
    }
    op_case c = windowed(max, x, &(window_attrs){{1}, {1}, {1}, {0}, {0}});
    c.attr[0].count = 0;
    op_expect(&h, &c, 0, TN_ERR_MODEL);
    op_harness_end(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reduce),        cmocka_unit_test(test_reduce_large),
                                       cmocka_unit_test(test_reduce_values), cmocka_unit_test(test_reduce_wrong),
                                       cmocka_unit_test(test_window),        cmocka_unit_test(test_window_large),
                                       cmocka_unit_test(test_window_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
