/* Rows whose size or positions the data decide: nonzero, compress, unique, window_arg_max; sizes are fresh symbols. */
#include "ops/trials.h"

#include "support/run_graph.h"

#define D(...) ((const int64_t[]){__VA_ARGS__})

/* --- nonzero ------------------------------------------------------------------------------------------------------ */

static bool is_set(const tn_tensor *x, int64_t i) {
    static const uint8_t zeros[16];
    size_t size = (size_t)tn_dtype_bits((tn_dtype)x->dtype) / 8;
    if (x->dtype == TN_STRING) {
        tn_string text;
        assert_int_equal(tn_tensor_get_string(x, i, &text), TN_OK);
        return text.length > 0;
    }
    if (tn_dtype_is_int((tn_dtype)x->dtype) || x->dtype == TN_BOOL)
        return op_get_i64(x, i) != 0;
    if (!tn_dtype_is_complex((tn_dtype)x->dtype))
        return op_get(x, i) != 0;
    const uint8_t *at = (const uint8_t *)x->data + (size_t)i * size; /* +0 and -0 in both parts */
    for (size_t part = 0; part < 2; part++) {
        uint8_t bits[8];
        memcpy(bits, at + part * size / 2, size / 2);
        bits[size / 2 - 1] &= 0x7f;
        if (memcmp(bits, zeros, size / 2) != 0)
            return true;
    }
    return false;
}

static void oracle_nonzero(const op_case *c, tn_tensor *out) {
    const tn_tensor *x = c->in[0];
    int64_t n = 0;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t index[TN_MAX_RANK];
        if (!is_set(x, i))
            continue;
        unravel(i, x->rank, x->dims, index);
        assert_true(n < out->dims[1]);
        for (int k = 0; k < x->rank; k++)
            tn_store_i64(TN_I64, out->data, k * out->dims[1] + n, index[k]);
        n++;
    }
    assert_true(n == out->dims[1] && out->dims[0] == x->rank);
}

static tn_tensor *sparse(op_harness *h, tn_dtype dtype, int rank, const int64_t *dims) {
    tn_tensor *t = random_bits(h, dtype, rank, dims), *zeros = op_tensor(h, dtype, rank, dims);
    for (int64_t i = 0; i < t->count; i++)
        if (pick(h, 0, 1))
            copy_element(t, i, zeros, i);
        else if (tn_dtype_is_float(dtype) && tn_dtype_bits(dtype) >= 16 && pick(h, 0, 2) == 0)
            tn_store_f64(dtype, t->data, i, -0.0);
    return t;
}

static void try_nonzero(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK];
    int rank = random_shape(h, 0, 4, dims);
    op_check(h, &(op_case){.op = primitive("nonzero"),
                           .inputs = 1,
                           .in = {sparse(h, dtype, rank, dims)},
                           .oracle = oracle_nonzero});
}

/* --- compress ----------------------------------------------------------------------------------------------------- */

static void oracle_compress(const op_case *c, tn_tensor *out) {
    const tn_tensor *x = c->in[0], *condition = c->in[1];
    int axis = c->attrs > 0 ? (int)attr_of(c, "axis", 0) : -1;
    int64_t n = 0;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t index[TN_MAX_RANK], before = 0;
        unravel(i, x->rank, x->dims, index);
        int64_t k = axis < 0 ? i : index[axis];
        if (k >= condition->count || !op_get_i64(condition, k))
            continue;
        for (int64_t j = 0; j < k; j++)
            before += op_get_i64(condition, j);
        if (axis >= 0)
            index[axis] = before;
        copy_element(out, axis < 0 ? before : ravel(out->rank, out->dims, index), x, i);
        n++;
    }
    assert_int_equal(n, out->count);
}

static void try_compress(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK];
    int rank = random_shape(h, 0, 4, dims), axis = rank > 0 && pick(h, 0, 2) ? (int)pick(h, 0, rank - 1) : -1;
    tn_tensor *x = random_bits(h, dtype, rank, dims);
    int64_t length = axis < 0 ? x->count : dims[axis], less = length > 0 ? pick(h, 0, 1) : 0;
    check_bits(h, &(op_case){.op = primitive("compress"),
                             .inputs = 2,
                             .in = {x, random_bits(h, TN_BOOL, 1, D(length - less))},
                             .attrs = axis >= 0,
                             .attr = {TN_A_INT("axis", axis)},
                             .oracle = oracle_compress});
}

/* --- unique ------------------------------------------------------------------------------------------------------- */

/* Compares slices a and b along the axis (-1: elements), as the words say. */
static int compare(const tn_tensor *x, int axis, int64_t a, int64_t b) {
    tn_dtype dtype = (tn_dtype)x->dtype;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t index[TN_MAX_RANK] = {0}, j = b;
        unravel(i, x->rank, x->dims, index);
        if (axis < 0 ? i != a : index[axis] != a)
            continue;
        if (axis >= 0) {
            index[axis] = b;
            j = ravel(x->rank, x->dims, index);
        }
        if (dtype == TN_STRING) {
            tn_string p, q;
            assert_int_equal(tn_tensor_get_string(x, i, &p), TN_OK);
            assert_int_equal(tn_tensor_get_string(x, j, &q), TN_OK);
            for (size_t k = 0; k < p.length && k < q.length; k++)
                if (p.data[k] != q.data[k])
                    return (uint8_t)p.data[k] < (uint8_t)q.data[k] ? -1 : 1;
            if (p.length != q.length)
                return p.length < q.length ? -1 : 1;
        } else if (tn_dtype_is_float(dtype)) {
            double p = op_get(x, i), q = op_get(x, j);
            if (isnan(p) != isnan(q))
                return isnan(p) ? 1 : -1;
            if (p != q && !isnan(p))
                return p < q ? -1 : 1;
        } else {
            int64_t p = op_get_i64(x, i), q = op_get_i64(x, j);
            if (p != q)
                return (dtype == TN_U64 ? (uint64_t)p < (uint64_t)q : p < q) ? -1 : 1;
        }
    }
    return 0;
}

static void oracle_unique(const op_case *c, tn_tensor *out) {
    const tn_tensor *x = c->in[0];
    int axis = (int)attr_of(c, "axis", -1);
    bool sorted = attr_of(c, "sorted", 1) != 0;
    int64_t n = axis < 0 ? x->count : x->dims[axis], groups = 0, first[200], number[200];
    assert_true(n <= 200);
    for (int64_t i = 0; i < n; i++) {
        first[i] = i;
        for (int64_t j = i - 1; j >= 0; j--)
            if (compare(x, axis, i, j) == 0)
                first[i] = j;
        groups += first[i] == i;
    }
    for (int64_t i = 0; i < n; i++) { /* how many groups come before that of i */
        number[i] = 0;
        for (int64_t j = 0; j < n; j++)
            if (first[j] == j)
                number[i] += sorted ? compare(x, axis, j, i) < 0 : j < first[i];
    }
    assert_int_equal(out->dims[axis < 0 || c->output > 0 ? 0 : axis], c->output == 2 ? n : groups);
    if (c->output == 0)
        for (int64_t i = 0; i < x->count; i++) {
            int64_t index[TN_MAX_RANK];
            unravel(i, x->rank, x->dims, index);
            int64_t k = axis < 0 ? i : index[axis];
            if (first[k] != k)
                continue;
            if (axis >= 0)
                index[axis] = number[k];
            copy_element(out, axis < 0 ? number[k] : ravel(out->rank, out->dims, index), x, i);
        }
    for (int64_t i = 0; i < n && c->output > 0; i++)
        if (c->output == 2)
            tn_store_i64(TN_I64, out->data, i, number[i]);
        else if (c->output == 1)
            tn_store_i64(TN_I64, out->data, number[i], first[i]);
        else
            tn_store_i64(TN_I64, out->data, number[i], tn_load_i64(TN_I64, out->data, number[i]) + 1);
}

static void try_unique(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK];
    int rank = random_shape(h, 0, 3, dims), axis = rank > 0 && pick(h, 0, 2) ? (int)pick(h, 0, rank - 1) : -1;
    tn_tensor *pool = sparse(h, dtype, 1, D(3)), *x = op_tensor(h, dtype, rank, dims);
    for (int64_t i = 0; i < x->count; i++)
        copy_element(x, i, pool, pick(h, 0, 2));
    op_case c = {.op = primitive("unique"),
                 .inputs = 1,
                 .in = {x},
                 .attrs = axis >= 0 ? 2 : 1,
                 .attr = {TN_A_INT("sorted", pick(h, 0, 1)), TN_A_INT("axis", axis)},
                 .oracle = oracle_unique};
    for (c.output = 0; c.output < 4; c.output++)
        check_bits(h, &c);
}

static const tn_dtype comparable[] = {TN_F32, TN_F64, TN_F16, TN_BF16, TN_I8,   TN_U8,     TN_I16,       TN_U16,
                                      TN_I32, TN_U32, TN_I64, TN_U64,  TN_BOOL, TN_STRING, TN_DTYPE_NONE};

static void test_values(void **state) {
    (void)state;
    for_dtypes("nonzero", any_dtypes, 8, try_nonzero);
    for_dtypes("compress", any_dtypes, 8, try_compress);
    for_dtypes("unique", comparable, 10, try_unique);
}

/* --- window_arg_max ----------------------------------------------------------------------------------------------- */

static void oracle_window(const op_case *c, tn_tensor *out) {
    const tn_tensor *x = c->in[0];
    const int64_t *window = c->attr[0].as.ints, *stride = c->attr[1].as.ints, *dilation = c->attr[2].as.ints;
    bool column = c->attr[5].as.s.data[0] == 'c';
    for (int64_t i = 0; i < out->count; i++) {
        int64_t index[TN_MAX_RANK], steps = 1, best = -1;
        unravel(i, out->rank, out->dims, index);
        for (int k = 0; k < x->rank; k++)
            steps *= window[k];
        for (int64_t s = 0; s < steps; s++) {
            int64_t at[TN_MAX_RANK];
            bool inside = true;
            unravel(s, x->rank, window, at);
            for (int k = 0; k < x->rank; k++) {
                at[k] = index[k] * stride[k] - c->attr[3].as.ints[k] + at[k] * dilation[k];
                inside = inside && at[k] >= 0 && at[k] < x->dims[k];
            }
            int64_t j = inside ? ravel(x->rank, x->dims, at) : 0;
            if (inside && (best < 0 || compare(x, -1, j, best) > 0))
                best = j;
        }
        if (column && best >= 0) {
            int64_t at[TN_MAX_RANK] = {0}, number = 0;
            unravel(best, x->rank, x->dims, at);
            for (int k = 0; k < 2; k++)
                number = number * x->dims[k] + at[k];
            for (int k = x->rank - 1; k >= 2; k--)
                number = number * x->dims[k] + at[k];
            best = number;
        }
        tn_store_i64(TN_I64, out->data, i, best);
    }
}

static void try_window(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK], window[TN_MAX_RANK], stride[TN_MAX_RANK], dilation[TN_MAX_RANK], lo[TN_MAX_RANK],
        hi[TN_MAX_RANK];
    int rank = random_shape(h, 0, 5, dims);
    for (int i = 0; i < rank; i++) {
        window[i] = pick(h, 1, 3);
        stride[i] = pick(h, 1, 2);
        dilation[i] = pick(h, 1, 2);
        lo[i] = pick(h, 0, 2);
        hi[i] = pick(h, 0, 2);
        int64_t less = (window[i] - 1) * dilation[i] + 1 - dims[i] - lo[i] - hi[i];
        hi[i] += less > 0 ? less : 0;
    }
    const char *order = rank >= 2 && pick(h, 0, 1) ? "column" : "row";
    tn_tensor *pool = sparse(h, dtype, 1, D(4)), *x = op_tensor(h, dtype, rank, dims);
    for (int64_t i = 0; i < x->count; i++)
        copy_element(x, i, pool, pick(h, 0, 3));
    op_check(h, &(op_case){.op = primitive("window_arg_max"),
                           .inputs = 1,
                           .in = {x},
                           .attrs = 6,
                           .attr = {TN_A_INTS("window", rank, window), TN_A_INTS("stride", rank, stride),
                                    TN_A_INTS("dilation", rank, dilation), OP_A_DIMS("lo", rank, lo),
                                    OP_A_DIMS("hi", rank, hi), TN_A_STRING("order", order, strlen(order))},
                           .oracle = oracle_window});
}

static void test_window(void **state) {
    (void)state;
    for_dtypes("window_arg_max", op_numbers, 10, try_window);
}

/* --- failures ----------------------------------------------------------------------------------------------------- */

static void test_failures(void **state) {
    (void)state;
    op_harness h;
    op_harness_begin(&h);
    static const tn_dtype dtypes[] = {TN_F32, TN_STRING};
    for (int d = 0; d < COUNT(dtypes); d++) {
        tn_tensor *x = op_expand(&h, random_bits(&h, dtypes[d], 1, D(3)), 2, D(2, 3), 1);
        tn_tensor *condition = op_values(&h, TN_BOOL, 1, D(2), (double[]){1, 1});
        const op_case cases[] = {
            {.op = primitive("nonzero"), .inputs = 1, .in = {x}},
            {.op = primitive("compress"), .inputs = 2, .in = {x, condition}, .attrs = 1, .attr = {TN_A_INT("axis", 0)}},
            {.op = primitive("unique"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {TN_A_INT("axis", 1)}}};
        for (int i = 0; i < COUNT(cases); i++)
            op_check_failures(&h, &cases[i]);
    }
    tn_tensor *packed = random_bits(&h, TN_U4, 1, D(5)), *all = op_values(&h, TN_BOOL, 1, D(3), (double[]){1, 0, 1});
    op_check_failures(&h, &(op_case){.op = primitive("compress"), .inputs = 2, .in = {packed, all}});
    op_harness_end(&h);
}

static void test_wrong(void **state) {
    (void)state;
    op_harness h;
    op_harness_begin(&h);
    tn_tensor *x = op_random(&h, TN_F32, 2, D(2, 3), true), *yes = op_values(&h, TN_BOOL, 1, D(3), (double[]){0, 0, 1});
    tn_tensor *floats = op_random(&h, TN_F32, 1, D(2), true), *square = op_tensor(&h, TN_BOOL, 2, D(2, 3));
    tn_tensor *complex = op_tensor(&h, TN_C64, 1, D(2));
    const op_case cases[] = {
        {.op = primitive("compress"), .inputs = 2, .in = {x, yes}, .attrs = 1, .attr = {TN_A_INT("axis", 0)}},
        {.op = primitive("compress"), .inputs = 2, .in = {x, yes}, .attrs = 1, .attr = {TN_A_INT("axis", 2)}},
        {.op = primitive("compress"), .inputs = 2, .in = {x, floats}},
        {.op = primitive("compress"), .inputs = 2, .in = {x, square}},
        {.op = primitive("unique"), .inputs = 1, .in = {complex}},
        {.op = primitive("unique"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {TN_A_INT("axis", -1)}},
        {.op = primitive("unique"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {TN_A_INT("sorted", 2)}},
        {.op = primitive("window_arg_max"),
         .inputs = 1,
         .in = {floats},
         .attrs = 6,
         .attr = {TN_A_INTS("window", 1, D(1)), TN_A_INTS("stride", 1, D(1)), TN_A_INTS("dilation", 1, D(1)),
                  OP_A_DIMS("lo", 1, D(0)), OP_A_DIMS("hi", 1, D(0)), TN_A_STRING("order", "column", 6)}}};
    expect_refused(&h, cases, COUNT(cases));
    op_harness_end(&h);
}

/* Sizes are symbols with bounds; those of unique's outputs are one; they are bound when the graph runs. */
static void test_symbols(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_dim dims[2] = {tn_dim_const(g, 2), tn_dim_const(g, 3)};
    tn_value x = tn_region_add_arg(g, tn_graph_region(g), tn_type_tensor(g, TN_F32, 2, dims), "x");
    tn_value where = tn_graph_add(g, "nonzero", 1, &x, 0, NULL);
    tn_node unique = tn_graph_add_node(
        g, &(tn_node_desc){.op = primitive("unique"), .input_count = 1, .inputs = &x, .output_count = 4});
    tn_value values = tn_node_output(g, unique, 0), count = tn_node_output(g, unique, 3);
    int64_t low, high;
    tn_dim_bounds(g, tn_value_dim(g, where, 1), &low, &high);
    assert_true(low == 0 && high == 6);
    assert_true(tn_dim_equal(g, tn_value_dim(g, values, 0), tn_value_dim(g, count, 0)));
    assert_false(tn_dim_equal(g, tn_value_dim(g, values, 0), tn_value_dim(g, where, 1)));
    assert_int_equal(tn_node_reinfer(g, unique), TN_OK);
    assert_true(tn_dim_equal(g, tn_value_dim(g, tn_node_output(g, unique, 0), 0), tn_value_dim(g, values, 0)));
    assert_int_equal(tn_graph_add_output(g, where, "where"), TN_OK);
    assert_int_equal(tn_graph_add_output(g, count, "count"), TN_OK);
    assert_int_equal(tn_graph_verify(g), TN_OK);
    tn_tensor *in = make_tensor(TN_F32, 2, D(2, 3), (double[]){0, 5, 0, 5, -1, NAN}), *out[2];
    assert_int_equal(run_graph(g, NULL, &in, out), TN_OK);
    assert_true(tn_tensor_dims(out[0])[0] == 2 && tn_tensor_dims(out[0])[1] == 4);
    assert_int_equal(tn_tensor_count(out[1]), 4);
    assert_int_equal(tn_tensor_get_i64(out[1], 2), 2);
    tn_tensor_destroy(in);
    tn_tensor_destroy(out[0]);
    tn_tensor_destroy(out[1]);
    tn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_window),
                                       cmocka_unit_test(test_failures), cmocka_unit_test(test_wrong),
                                       cmocka_unit_test(test_symbols)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
