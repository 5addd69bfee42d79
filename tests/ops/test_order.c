/* argmax, argmin, running results, sort, top_k against naive loops over every lane. */
#include "ops/trials.h"

#define D(...) ((const int64_t[]){__VA_ARGS__})

/* Position in a contiguous tensor of element k of the lane through `index` along the axis. */
static int64_t lane(const tn_tensor *t, const int64_t *index, int axis, int64_t k) {
    int64_t at[TN_MAX_RANK];
    memcpy(at, index, sizeof at);
    at[axis] = k;
    return ravel(t->rank, t->dims, at);
}

/* -1, 0, 1 as element i of t is less than, equal to, greater than element j; NaN is the largest. */
static int order(const tn_tensor *t, int64_t i, int64_t j) {
    if (t->dtype == TN_STRING) {
        tn_string a, b;
        assert_int_equal(tn_tensor_get_string(t, i, &a), TN_OK);
        assert_int_equal(tn_tensor_get_string(t, j, &b), TN_OK);
        for (size_t k = 0; k < a.length && k < b.length; k++)
            if (a.data[k] != b.data[k])
                return (unsigned char)a.data[k] < (unsigned char)b.data[k] ? -1 : 1;
        return a.length < b.length ? -1 : a.length > b.length;
    }
    if (tn_dtype_is_float((tn_dtype)t->dtype)) {
        double a = op_get(t, i), b = op_get(t, j);
        if (isnan(a) || isnan(b))
            return !!isnan(a) - !!isnan(b);
        return a < b ? -1 : a > b;
    }
    int64_t a = op_get_i64(t, i), b = op_get_i64(t, j);
    if (t->dtype == TN_U64)
        return (uint64_t)a < (uint64_t)b ? -1 : (uint64_t)a > (uint64_t)b;
    return a < b ? -1 : a > b;
}

static bool is_nan(const tn_tensor *t, int64_t i) {
    return tn_dtype_is_float((tn_dtype)t->dtype) && isnan(op_get(t, i));
}

/* Elements that often are equal, with NaNs and both zeros among them. */
static tn_tensor *ties(op_harness *h, tn_dtype dtype, int rank, const int64_t *dims) {
    if (dtype == TN_STRING) {
        tn_tensor *t = op_tensor(h, dtype, rank, dims);
        for (int64_t i = 0; i < t->count; i++) {
            char text[3];
            for (int k = 0; k < 3; k++)
                text[k] = "ab\xff"[pick(h, 0, 2)];
            assert_int_equal(tn_tensor_set_string(t, i, text, (size_t)pick(h, 0, 3)), TN_OK);
        }
        return t;
    }
    tn_tensor *edges = op_edges(h, dtype), *t = op_random(h, dtype, rank, dims, true);
    for (int64_t i = 0; i < t->count; i++)
        if (pick(h, 0, 2) == 0)
            copy_element(t, i, edges, pick(h, 0, edges->count - 1));
        else if (tn_dtype_is_float(dtype))
            tn_store_f64(dtype, t->data, i, pick(h, 0, 3) == 0 ? -0.0 : round(op_get(t, i)));
    return t;
}

/* --- argmax, argmin ----------------------------------------------------------------------------------------------- */

static void oracle_arg(const op_case *c, tn_tensor *out) {
    const tn_tensor *x = c->in[0];
    int axis = (int)attr_of(c, "axis", 0);
    bool keep = attr_of(c, "keepdims", 0) != 0, last = attr_of(c, "select_last", 0) != 0;
    int sign = strcmp(c->op->name, "argmax") == 0 ? 1 : -1;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t index[TN_MAX_RANK], best = 0;
        unravel(i, out->rank, out->dims, index);
        if (!keep)
            memmove(index + axis + 1, index + axis, sizeof *index * (size_t)(out->rank - axis));
        for (int64_t k = 1; k < x->dims[axis]; k++) {
            int64_t a = lane(x, index, axis, k), b = lane(x, index, axis, best);
            int better = is_nan(x, a) || is_nan(x, b) ? is_nan(x, a) - is_nan(x, b) : sign * order(x, a, b);
            if (better > 0 || (better == 0 && last))
                best = k;
        }
        tn_store_i64(TN_I64, out->data, i, best);
    }
}

static void try_arg(op_harness *h, tn_dtype dtype) {
    static const char *const names[] = {"argmax", "argmin"};
    int64_t dims[TN_MAX_RANK];
    int rank = random_shape(h, 1, 4, dims), axis = (int)pick(h, 0, rank - 1);
    dims[axis] += dims[axis] == 0;
    for (int k = 0; k < 2; k++)
        op_check(h, &(op_case){.op = primitive(names[k]),
                               .inputs = 1,
                               .in = {ties(h, dtype, rank, dims)},
                               .attrs = 3,
                               .attr = {TN_A_INT("axis", axis), TN_A_INT("keepdims", pick(h, 0, 1)),
                                        TN_A_INT("select_last", pick(h, 0, 1))},
                               .oracle = oracle_arg});
}

static void test_arg(void **state) {
    (void)state;
    for_dtypes("argmax, argmin", op_numbers, 12, try_arg);
}

/* --- running results ---------------------------------------------------------------------------------------------- */

static void oracle_cumulative(const op_case *c, tn_tensor *out) {
    const char *name = c->op->name + 3;
    int axis = (int)attr_of(c, "axis", 0);
    tn_dtype dtype = (tn_dtype)out->dtype;
    bool floats = tn_dtype_is_float(dtype), exclusive = attr_of(c, "exclusive", 0) != 0;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t index[TN_MAX_RANK], n = out->dims[axis];
        unravel(i, out->rank, out->dims, index);
        bool back = attr_of(c, "reverse", 0) != 0;
        int64_t k = back ? n - 1 : 0, end = index[axis], by = back ? -1 : 1;
        double f = name[0] == 's' ? 0 : name[0] == 'p' ? 1 : name[1] == 'a' ? -(double)INFINITY : (double)INFINITY;
        uint64_t u = name[0] == 's'   ? 0
                     : name[0] == 'p' ? 1
                     : name[1] == 'a' ? (uint64_t)(floats ? 0 : tn_dtype_min_i64(dtype))
                                      : (floats ? 0 : tn_dtype_max_u64(dtype));
        for (; exclusive ? k != end : k != end + by; k += by) {
            int64_t at = lane(out, index, axis, k), v = op_get_i64(c->in[0], at);
            double g = op_get(c->in[0], at);
            bool more = dtype == TN_U64 ? (uint64_t)v > u : v > (int64_t)u;
            switch (name[0] == 'm' ? name[1] : name[0]) {
            case 's': f += g, u += (uint64_t)v; break;
            case 'p': f *= g, u *= (uint64_t)v; break;
            case 'a':
                f = isnan(f) || isnan(g) ? (double)NAN : g > f || (g == f && signbit(f)) ? g : f;
                u = more ? (uint64_t)v : u;
                break;
            default:
                f = isnan(f) || isnan(g) ? (double)NAN : g < f || (g == f && signbit(g)) ? g : f;
                u = more ? u : (uint64_t)v;
            }
        }
        if (floats)
            tn_store_f64(dtype, out->data, i, f);
        else
            tn_store_i64(dtype, out->data, i, (int64_t)u);
    }
}

static void try_cumulative(op_harness *h, tn_dtype dtype) {
    static const char *const names[] = {"cumsum", "cumprod", "cummax", "cummin"};
    int64_t dims[TN_MAX_RANK];
    int rank = random_shape(h, 1, 4, dims);
    for (int k = 0; k < COUNT(names) && dtype != TN_BOOL; k++)
        op_check(h, &(op_case){.op = primitive(names[k]),
                               .inputs = 1,
                               .in = {pick(h, 0, 1) ? random_exact(h, dtype, rank, dims) : ties(h, dtype, rank, dims)},
                               .attrs = 3,
                               .attr = {TN_A_INT("axis", pick(h, 0, rank - 1)), TN_A_INT("exclusive", pick(h, 0, 1)),
                                        TN_A_INT("reverse", pick(h, 0, 1))},
                               .oracle = oracle_cumulative});
}

static void test_cumulative(void **state) {
    (void)state;
    for_dtypes("cumsum, cumprod, cummax, cummin", op_numbers, 8, try_cumulative);
    op_harness h;
    op_harness_begin(&h);
    for (int axis = 0; axis < 3; axis++) /* more lanes than a run, more than one piece */
        op_check(&h, &(op_case){.op = primitive("cumsum"),
                                .inputs = 1,
                                .in = {random_exact(&h, TN_F32, 3, D(4, 300, 31))},
                                .attrs = 1,
                                .attr = {TN_A_INT("axis", axis)},
                                .oracle = oracle_cumulative});
    op_harness_end(&h);
}

/* --- sort, top_k -------------------------------------------------------------------------------------------------- */

/* Place of each element: how many of the lane come before it. */
static void oracle_ordered(const op_case *c, tn_tensor *out) {
    const tn_tensor *x = c->in[0];
    int axis = (int)attr_of(c, "axis", 0);
    bool descending = strcmp(c->op->name, "sort") == 0 ? attr_of(c, "descending", 0) : attr_of(c, "largest", 1);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t index[TN_MAX_RANK], place = 0;
        unravel(i, x->rank, x->dims, index);
        int64_t own = index[axis];
        for (int64_t k = 0; k < x->dims[axis]; k++) {
            int o = order(x, lane(x, index, axis, k), i);
            place += descending ? o > 0 || (o == 0 && k < own) : o < 0 || (o == 0 && k < own);
        }
        if (place >= out->dims[axis])
            continue;
        int64_t to = lane(out, index, axis, place);
        if (c->output == 1)
            tn_store_i64(TN_I64, out->data, to, own);
        else
            copy_element(out, to, x, i);
    }
}

static void ordered(op_harness *h, tn_dtype dtype, int rank, const int64_t *dims) {
    int axis = (int)pick(h, 0, rank - 1);
    const int64_t k = pick(h, 0, dims[axis]);
    op_case sort = {.op = primitive("sort"),
                    .inputs = 1,
                    .in = {ties(h, dtype, rank, dims)},
                    .attrs = 2,
                    .attr = {TN_A_INT("axis", axis), TN_A_INT("descending", pick(h, 0, 1))},
                    .oracle = oracle_ordered};
    op_case top = {.op = primitive("top_k"),
                   .inputs = 1,
                   .in = {sort.in[0]},
                   .attrs = 4,
                   .attr = {TN_A_INT("axis", axis), TN_A_INT("largest", pick(h, 0, 1)),
                            TN_A_INT("sorted", pick(h, 0, 1)), OP_A_DIMS("k", 1, &k)},
                   .oracle = oracle_ordered};
    for (uint32_t output = 0; output < 2; output++) {
        sort.output = top.output = output;
        check_bits(h, &sort);
        check_bits(h, &top);
    }
}

static void try_sort(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK];
    ordered(h, dtype, random_shape(h, 1, 4, dims), dims);
}

static const tn_dtype sortable[] = {TN_F32, TN_F64, TN_F16, TN_BF16, TN_I8,   TN_U8,     TN_I16,       TN_U16,
                                    TN_I32, TN_U32, TN_I64, TN_U64,  TN_BOOL, TN_STRING, TN_DTYPE_NONE};

static void test_sort(void **state) {
    (void)state;
    for_dtypes("sort, top_k", sortable, 8, try_sort);
    op_harness h;
    op_harness_begin(&h);
    for (int i = 0; i < 12; i++) { /* long lanes: selection by a heap */
        ordered(&h, i % 2 ? TN_F32 : TN_STRING, 2, D(pick(&h, 1, 3), pick(&h, 50, 400)));
        ordered(&h, TN_F64, 1, D(pick(&h, 1, 700)));
    }
    op_harness_end(&h);
}

/* --- failures ----------------------------------------------------------------------------------------------------- */

static void test_failures(void **state) {
    (void)state;
    static const char *const one[] = {"argmax", "cumsum", "sort"};
    op_harness h;
    op_harness_begin(&h);
    for (int i = 0; i < COUNT(one); i++) /* a view, so that it is copied */
        op_check_failures(&h, &(op_case){.op = primitive(one[i]),
                                         .inputs = 1,
                                         .in = {op_expand(&h, op_random(&h, TN_F32, 1, D(3), true), 2, D(2, 3), 1)},
                                         .attrs = 1,
                                         .attr = {TN_A_INT("axis", 1)}});
    op_check_failures(&h, &(op_case){.op = primitive("top_k"),
                                     .inputs = 1,
                                     .in = {random_bits(&h, TN_STRING, 1, D(4))},
                                     .attrs = 2,
                                     .attr = {TN_A_INT("axis", 0), OP_A_DIMS("k", 1, D(2))}});
    op_harness_end(&h);
}

static void test_wrong(void **state) {
    (void)state;
    op_harness h;
    op_harness_begin(&h);
    tn_tensor *x = op_random(&h, TN_F32, 2, D(2, 3), true), *none = op_tensor(&h, TN_F32, 2, D(2, 0));
    tn_tensor *scalar = op_tensor(&h, TN_F32, 0, NULL), *text = op_tensor(&h, TN_STRING, 1, D(2));
    tn_tensor *wide = op_expand(&h, scalar, 1, D((int64_t)1 << 33), -1), *complex = op_tensor(&h, TN_C64, 1, D(2));
#define ONE(name, t, ...)                                                                                           \
    {                                                                                                               \
        .op = primitive(name), .inputs = 1, .in = {t}, .attrs = sizeof((tn_attr[]){__VA_ARGS__}) / sizeof(tn_attr), \
        .attr = {                                                                                                   \
            __VA_ARGS__                                                                                             \
        }                                                                                                           \
    }
    const op_case cases[] = {ONE("argmax", x, TN_A_INT("axis", 2)),
                             ONE("argmax", x, TN_A_INT("axis", -1)),
                             ONE("argmax", none, TN_A_INT("axis", 1)),
                             ONE("argmax", scalar, TN_A_INT("axis", 0)),
                             ONE("argmin", text, TN_A_INT("axis", 0)),
                             ONE("argmin", x, TN_A_INT("axis", 0), TN_A_INT("keepdims", 2)),
                             ONE("cumsum", x, TN_A_INT("axis", 2)),
                             ONE("cumsum", text, TN_A_INT("axis", 0)),
                             ONE("cumprod", x, TN_A_INT("axis", 0), TN_A_INT("reverse", -1)),
                             ONE("sort", x, TN_A_INT("axis", 5)),
                             ONE("sort", complex, TN_A_INT("axis", 0)),
                             ONE("sort", scalar, TN_A_INT("axis", 0)),
                             ONE("top_k", x, TN_A_INT("axis", 0), OP_A_DIMS("k", 1, D(3))),
                             ONE("top_k", x, TN_A_INT("axis", 0), OP_A_DIMS("k", 1, D(-1))),
                             ONE("top_k", x, TN_A_INT("axis", 0), OP_A_DIMS("k", 2, D(1, 1)))};
    expect_refused(&h, cases, COUNT(cases));
    const op_case huge[] = {ONE("argmax", wide, TN_A_INT("axis", 0)), ONE("cumsum", wide, TN_A_INT("axis", 0)),
                            ONE("sort", wide, TN_A_INT("axis", 0)),
                            ONE("top_k", wide, TN_A_INT("axis", 0), OP_A_DIMS("k", 1, D(1)))};
    for (int i = 0; i < COUNT(huge); i++)
        op_expect(&h, &huge[i], 1 << 20, TN_ERR_LIMIT);
    op_harness_end(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_arg), cmocka_unit_test(test_cumulative),
                                       cmocka_unit_test(test_sort), cmocka_unit_test(test_failures),
                                       cmocka_unit_test(test_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
