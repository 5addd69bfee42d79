/* gather_elements, gather_nd, scatter_elements, scatter_nd against oracles that follow their words index by index. */
#include "ops/trials.h"

/* --- oracles ------------------------------------------------------------------------------------------------------ */

static int64_t wrapped(const tn_tensor *indices, const int64_t *index, int64_t limit) {
    int64_t k = op_get_i64(indices, ravel(indices->rank, indices->dims, index));
    return k < 0 ? k + limit : k;
}

static void oracle_gather_elements(const op_case *c, tn_tensor *out) {
    int axis = (int)attr_of(c, "axis", 0);
    for (int64_t i = 0; i < out->count; i++) {
        int64_t index[TN_MAX_RANK];
        unravel(i, out->rank, out->dims, index);
        index[axis] = wrapped(c->in[1], index, c->in[0]->dims[axis]);
        copy_element(out, i, c->in[0], ravel(out->rank, c->in[0]->dims, index));
    }
}

static void oracle_gather_nd(const op_case *c, tn_tensor *out) {
    const tn_tensor *x = c->in[0], *indices = c->in[1];
    int batch = (int)attr_of(c, "batch_dims", 0), tuple = indices->rank - 1, depth = (int)indices->dims[tuple];
    for (int64_t i = 0; i < out->count; i++) {
        int64_t index[TN_MAX_RANK], at[TN_MAX_RANK], from[TN_MAX_RANK];
        unravel(i, out->rank, out->dims, index);
        memcpy(at, index, sizeof at);
        for (int k = 0; k < x->rank; k++) {
            at[tuple] = k - batch;
            from[k] = k < batch           ? index[k]
                      : k < batch + depth ? wrapped(indices, at, x->dims[k])
                                          : index[tuple + k - batch - depth];
        }
        copy_element(out, i, x, ravel(x->rank, x->dims, from));
    }
}

static void combine(const op_case *c, tn_tensor *out, int64_t i, const tn_tensor *updates, int64_t j) {
    const char *how = c->attr[c->attrs - 1].as.s.data;
    tn_dtype dtype = (tn_dtype)out->dtype;
    if (how[0] == 'n') {
        copy_element(out, i, updates, j);
    } else if (tn_dtype_is_float(dtype)) {
        double a = op_get(out, i), b = op_get(updates, j);
        double r = how[0] == 'a' ? a + b : how[1] == 'u' ? a * b : isnan(a) ? a : isnan(b) ? b : a;
        if (how[0] == 'm' && how[1] != 'u' && !isnan(a) && !isnan(b))
            r = (how[1] == 'a' ? b > a || (b == a && !signbit(b)) : b < a || (b == a && signbit(b))) ? b : a;
        tn_store_f64(dtype, out->data, i, r);
    } else {
        int64_t a = op_get_i64(out, i), b = op_get_i64(updates, j);
        bool less = dtype == TN_U64 ? (uint64_t)a < (uint64_t)b : a < b;
        uint64_t r = how[0] == 'a'   ? (uint64_t)a + (uint64_t)b
                     : how[1] == 'u' ? (uint64_t)a * (uint64_t)b
                     : how[1] == 'a' ? (uint64_t)(less ? b : a)
                                     : (uint64_t)(less ? a : b);
        tn_store_i64(dtype, out->data, i, (int64_t)r);
    }
}

static void oracle_scatter_elements(const op_case *c, tn_tensor *out) {
    int axis = (int)attr_of(c, "axis", 0);
    const tn_tensor *indices = c->in[1];
    for (int64_t i = 0; i < out->count; i++)
        copy_element(out, i, c->in[0], i);
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t index[TN_MAX_RANK];
        unravel(i, indices->rank, indices->dims, index);
        index[axis] = wrapped(indices, index, out->dims[axis]);
        combine(c, out, ravel(out->rank, out->dims, index), c->in[2], i);
    }
}

static void oracle_scatter_nd(const op_case *c, tn_tensor *out) {
    const tn_tensor *indices = c->in[1], *updates = c->in[2];
    int tuple = indices->rank - 1, depth = (int)indices->dims[tuple];
    for (int64_t i = 0; i < out->count; i++)
        copy_element(out, i, c->in[0], i);
    for (int64_t i = 0; i < updates->count; i++) {
        int64_t index[TN_MAX_RANK], at[TN_MAX_RANK], to[TN_MAX_RANK];
        unravel(i, updates->rank, updates->dims, index);
        memcpy(at, index, sizeof at);
        for (int k = 0; k < out->rank; k++) {
            at[tuple] = k;
            to[k] = k < depth ? wrapped(indices, at, out->dims[k]) : index[tuple + k - depth];
        }
        combine(c, out, ravel(out->rank, out->dims, to), updates, i);
    }
}

/* --- trials ------------------------------------------------------------------------------------------------------- */

static void try_gather_elements(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK], at[TN_MAX_RANK];
    int rank = random_shape(h, 1, 4, dims), axis = (int)pick(h, 0, rank - 1);
    dims[axis] += dims[axis] == 0;
    for (int i = 0; i < rank; i++)
        at[i] = i == axis ? pick(h, 0, 6) : pick(h, 0, dims[i]);
    check_bits(h, &(op_case){.op = primitive("gather_elements"),
                             .inputs = 2,
                             .in = {random_bits(h, dtype, rank, dims), random_indices(h, rank, at, dims[axis])},
                             .attrs = 1,
                             .attr = {TN_A_INT("axis", axis)},
                             .oracle = oracle_gather_elements});
}

/* Indices whose last axis holds tuples of positions on the axes of `dims` from `from` on. */
static tn_tensor *random_tuples(op_harness *h, int rank, const int64_t *shape, const int64_t *dims, int from) {
    tn_tensor *t = op_tensor(h, pick(h, 0, 1) ? TN_I64 : TN_I32, rank, shape);
    for (int64_t i = 0; i < t->count; i++) {
        int64_t limit = dims[from + i % shape[rank - 1]];
        tn_store_i64((tn_dtype)t->dtype, t->data, i, pick(h, -limit, limit - 1));
    }
    return t;
}

static void try_gather_nd(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK], at[TN_MAX_RANK];
    int rank = random_shape(h, 1, 4, dims), batch = (int)pick(h, 0, rank > 2 ? 2 : rank - 1);
    int depth = (int)pick(h, 0, rank - batch), more = (int)pick(h, 0, 2);
    for (int i = 0; i < batch; i++)
        at[i] = dims[i];
    for (int i = 0; i < more; i++)
        at[batch + i] = pick(h, 0, 3);
    for (int i = batch; i < batch + depth; i++)
        dims[i] += dims[i] == 0;
    at[batch + more] = depth;
    check_bits(
        h, &(op_case){.op = primitive("gather_nd"),
                      .inputs = 2,
                      .in = {random_bits(h, dtype, rank, dims), random_tuples(h, batch + more + 1, at, dims, batch)},
                      .attrs = 1,
                      .attr = {TN_A_INT("batch_dims", batch)},
                      .oracle = oracle_gather_nd});
}

static const char *const reductions[] = {"none", "add", "mul", "max", "min"};

static void scatter_elements(op_harness *h, tn_dtype dtype, const char *how) {
    int64_t dims[TN_MAX_RANK], at[TN_MAX_RANK];
    int rank = random_shape(h, 1, 4, dims), axis = (int)pick(h, 0, rank - 1);
    dims[axis] += dims[axis] == 0;
    for (int i = 0; i < rank; i++)
        at[i] = i == axis ? pick(h, 0, 6) : pick(h, 0, dims[i]);
    bool none = how == reductions[0];
    check_bits(h, &(op_case){.op = primitive("scatter_elements"),
                             .inputs = 3,
                             .in = {none ? random_bits(h, dtype, rank, dims) : op_random(h, dtype, rank, dims, false),
                                    random_indices(h, rank, at, dims[axis]),
                                    none ? random_bits(h, dtype, rank, at) : op_random(h, dtype, rank, at, false)},
                             .attrs = 2,
                             .attr = {TN_A_INT("axis", axis), TN_A_STRING("reduction", how, strlen(how))},
                             .oracle = oracle_scatter_elements});
}

static void scatter_nd(op_harness *h, tn_dtype dtype, const char *how) {
    int64_t dims[TN_MAX_RANK], at[TN_MAX_RANK], shape[TN_MAX_RANK];
    int rank = random_shape(h, 1, 4, dims), depth = (int)pick(h, 0, rank), more = random_shape(h, 0, 2, at);
    for (int i = 0; i < depth; i++)
        dims[i] += dims[i] == 0;
    at[more] = depth;
    memcpy(shape, at, sizeof shape);
    memcpy(shape + more, dims + depth, sizeof *dims * (size_t)(rank - depth));
    int given = more + rank - depth;
    bool none = how == reductions[0];
    check_bits(h,
               &(op_case){.op = primitive("scatter_nd"),
                          .inputs = 3,
                          .in = {none ? random_bits(h, dtype, rank, dims) : op_random(h, dtype, rank, dims, false),
                                 random_tuples(h, more + 1, at, dims, 0),
                                 none ? random_bits(h, dtype, given, shape) : op_random(h, dtype, given, shape, false)},
                          .attrs = 1,
                          .attr = {TN_A_STRING("reduction", how, strlen(how))},
                          .oracle = oracle_scatter_nd});
}

static void try_replace(op_harness *h, tn_dtype dtype) {
    scatter_elements(h, dtype, reductions[0]);
    scatter_nd(h, dtype, reductions[0]);
}

static void try_combine(op_harness *h, tn_dtype dtype) {
    for (int i = 1; i < COUNT(reductions) && dtype != TN_BOOL; i++) {
        scatter_elements(h, dtype, reductions[i]);
        scatter_nd(h, dtype, reductions[i]);
    }
}

static void test_gather(void **state) {
    (void)state;
    for_dtypes("gather_elements", any_dtypes, 6, try_gather_elements);
    for_dtypes("gather_nd", any_dtypes, 6, try_gather_nd);
}

static void test_scatter(void **state) {
    (void)state;
    for_dtypes("scatter", any_dtypes, 6, try_replace);
    for_dtypes("scatter with a reduction", op_numbers, 4, try_combine);
}

/* Edge values meet edge values. */
static void test_edge_values(void **state) {
    (void)state;
    op_harness h;
    op_harness_begin(&h);
    for (const tn_dtype *d = op_numbers; *d != TN_DTYPE_NONE; d++) {
        tn_tensor *edges = op_edges(&h, *d);
        int64_t n = edges->count, square[2] = {n, n};
        tn_tensor *rows = op_tensor(&h, *d, 2, square), *columns = op_tensor(&h, *d, 2, square);
        tn_tensor *at = op_tensor(&h, TN_I64, 2, square);
        for (int64_t i = 0; i < n * n; i++) {
            tn_store_i64(TN_I64, at->data, i, i % n);
            copy_element(rows, i, edges, i / n);
            copy_element(columns, i, edges, i % n);
        }
        for (int i = 0; i < COUNT(reductions) && (*d != TN_BOOL || i == 0); i++)
            op_check(&h, &(op_case){.op = primitive("scatter_elements"),
                                    .inputs = 3,
                                    .in = {rows, at, columns},
                                    .attrs = 2,
                                    .attr = {TN_A_INT("axis", 1),
                                             TN_A_STRING("reduction", reductions[i], strlen(reductions[i]))},
                                    .oracle = oracle_scatter_elements});
    }
    op_harness_end(&h);
}

#define D(...) ((const int64_t[]){__VA_ARGS__})
#define F32(rank, ...) op_random(&h, TN_F32, rank, D(__VA_ARGS__), true)
#define AT(rank, dims, ...) op_values(&h, TN_I64, rank, dims, (const double[]){__VA_ARGS__})

static void test_failures(void **state) {
    (void)state;
    op_harness h;
    op_harness_begin(&h);
    static const tn_dtype dtypes[] = {TN_F32, TN_STRING, TN_I4};
    for (int i = 0; i < COUNT(dtypes); i++) {
        tn_tensor *x = random_bits(&h, dtypes[i], 2, D(3, 2)), *at = AT(2, D(2, 2), 0, -1, 2, 1);
        tn_tensor *u = random_bits(&h, dtypes[i], 2, D(2, 2)), *v = random_bits(&h, dtypes[i], 1, D(2));
        at = AT(2, D(2, 2), 0, -1, 2, 1);
        op_case cases[] = {
            {.op = primitive("gather_elements"), .inputs = 2, .in = {x, at}, .attrs = 1, .attr = {TN_A_INT("axis", 0)}},
            {.op = primitive("gather_nd"), .inputs = 2, .in = {x, at}},
            {.op = primitive("scatter_elements"),
             .inputs = 3,
             .in = {x, at, u},
             .attrs = 1,
             .attr = {TN_A_INT("axis", 0)}},
            {.op = primitive("scatter_nd"), .inputs = 3, .in = {x, at, v}}};
        for (int k = 0; k < COUNT(cases); k++)
            op_check_failures(&h, &cases[k]);
    }
    op_harness_end(&h);
}

static void test_wrong(void **state) {
    (void)state;
    op_harness h;
    op_harness_begin(&h);
    tn_tensor *x = F32(2, 3, 2), *fine = AT(2, D(1, 2), 0, 1), *high = AT(2, D(1, 2), 0, 3),
              *low = AT(2, D(1, 2), -4, 0);
    tn_tensor *u = F32(2, 1, 2), *row = F32(1, 1), *floats = F32(2, 1, 2), *vector = AT(1, D(2), 0, 1);
    tn_tensor *big = AT(2, D(2, 3), 0, 0, 0, 0, 0, 0), *triple = AT(2, D(1, 3), 0, 0, 0), *text;
    text = op_tensor(&h, TN_STRING, 2, D(1, 2));
    tn_tensor *words = op_tensor(&h, TN_STRING, 2, D(3, 2)), *scalar = AT(0, D(1), 0);
#define GATHER(i, a)                                                                                               \
    {                                                                                                              \
        .op = primitive("gather_elements"), .inputs = 2, .in = {x, i}, .attrs = 1, .attr = { TN_A_INT("axis", a) } \
    }
#define SCATTER(t, i, v, a, how)                                                                 \
    {                                                                                            \
        .op = primitive("scatter_elements"), .inputs = 3, .in = {t, i, v}, .attrs = 2, .attr = { \
            TN_A_INT("axis", a),                                                                 \
            TN_A_STRING("reduction", how, strlen(how))                                           \
        }                                                                                        \
    }
    const op_case cases[] = {
        GATHER(high, 0),
        GATHER(low, 0),
        GATHER(fine, 2),
        GATHER(fine, -1),
        GATHER(floats, 0),
        GATHER(vector, 0),
        GATHER(big, 0), /* axis 1 of 3 where x has 2 */
        SCATTER(x, high, u, 0, "none"),
        SCATTER(x, low, u, 0, "add"),
        SCATTER(x, fine, row, 0, "none"),
        SCATTER(x, fine, fine, 0, "none"),
        SCATTER(x, fine, u, 0, "sub"),
        SCATTER(words, fine, text, 0, "add"),
        {.op = primitive("gather_nd"), .inputs = 2, .in = {x, triple}},
        {.op = primitive("gather_nd"), .inputs = 2, .in = {x, scalar}},
        {.op = primitive("gather_nd"), .inputs = 2, .in = {x, AT(1, D(1), 3)}},
        {.op = primitive("gather_nd"), .inputs = 2, .in = {x, fine}, .attrs = 1, .attr = {TN_A_INT("batch_dims", 2)}},
        {.op = primitive("gather_nd"), .inputs = 2, .in = {x, fine}, .attrs = 1, .attr = {TN_A_INT("batch_dims", 1)}},
        {.op = primitive("gather_nd"), .inputs = 2, .in = {x, fine}, .attrs = 1, .attr = {TN_A_INT("batch_dims", -1)}},
        {.op = primitive("scatter_nd"), .inputs = 3, .in = {x, triple, row}},
        {.op = primitive("scatter_nd"), .inputs = 3, .in = {x, fine, u}},
        {.op = primitive("scatter_nd"), .inputs = 3, .in = {x, AT(2, D(1, 2), 3, 0), row}},
        {.op = primitive("scatter_nd"), .inputs = 3, .in = {x, AT(2, D(1, 2), 0, -3), row}},
    };
    expect_refused(&h, cases, COUNT(cases));
    /* 2^33 elements by stride 0: read where they lie, not copied */
    tn_tensor *huge = op_expand(&h, F32(0, 1), 2, D((int64_t)1 << 16, (int64_t)1 << 17), -1);
    op_expect(&h,
              &(op_case){.op = primitive("gather_elements"),
                         .inputs = 2,
                         .in = {huge, fine},
                         .attrs = 1,
                         .attr = {TN_A_INT("axis", 0)}},
              1 << 16, TN_OK);
    op_expect(&h, &(op_case){.op = primitive("gather_nd"), .inputs = 2, .in = {huge, fine}}, 1 << 16, TN_OK);
    op_expect(&h, &(op_case){.op = primitive("scatter_nd"), .inputs = 3, .in = {huge, fine, row}}, 1 << 16,
              TN_ERR_LIMIT);
    op_harness_end(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gather), cmocka_unit_test(test_scatter),
                                       cmocka_unit_test(test_edge_values), cmocka_unit_test(test_failures),
                                       cmocka_unit_test(test_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
