/* Movement by data against oracles that follow its words index by index; what infer knows of the sizes. */
#include "ops/trials.h"

#include "ir/graph.h"
#include "support/run_graph.h"

#define D(...) ((const int64_t[]){__VA_ARGS__})

/* Index of the element of input `which` that stands at out[index], or -1: the pad value. */
typedef int64_t source_function(const op_case *c, const tn_tensor *out, const int64_t *index, uint32_t *which);

static void oracle(const op_case *c, tn_tensor *out) {
    source_function *source = *(source_function *const *)c->ctx;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t index[TN_MAX_RANK];
        uint32_t which = 0;
        unravel(i, out->rank, out->dims, index);
        int64_t j = source(c, out, index, &which);
        if (j >= 0)
            copy_element(out, i, c->in[which], j);
        else if (c->inputs > 3 && c->in[3] != NULL)
            copy_element(out, i, c->in[3], 0);
    }
}

static void check(op_harness *h, op_case *c, source_function *source) {
    c->oracle = oracle;
    c->ctx = &source;
    check_bits(h, c);
}

/* A vector of i32 or i64. */
static tn_tensor *vector(op_harness *h, int64_t n, const int64_t *values) {
    tn_dtype dtype = pick(h, 0, 1) ? TN_I64 : TN_I32;
    tn_tensor *t = op_tensor(h, dtype, 1, &n);
    for (int64_t i = 0; i < n; i++)
        tn_store_i64(dtype, t->data, i, values[i]);
    return t;
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

static int64_t source_slice(const op_case *c, const tn_tensor *out, const int64_t *index, uint32_t *which) {
    int64_t at[TN_MAX_RANK];
    (void)which;
    for (int i = 0; i < out->rank; i++)
        at[i] = index[i] + op_get_i64(c->in[1], i);
    return ravel(out->rank, c->in[0]->dims, at);
}

static int64_t source_update(const op_case *c, const tn_tensor *out, const int64_t *index, uint32_t *which) {
    int64_t at[TN_MAX_RANK];
    *which = 1;
    for (int i = 0; i < out->rank; i++) {
        at[i] = index[i] - op_get_i64(c->in[2], i);
        if (at[i] < 0 || at[i] >= c->in[1]->dims[i])
            *which = 0;
    }
    return *which ? ravel(out->rank, c->in[1]->dims, at) : ravel(out->rank, out->dims, index);
}

static void try_parts(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK], start[TN_MAX_RANK], size[TN_MAX_RANK];
    int rank = random_shape(h, 0, 4, dims);
    for (int i = 0; i < rank; i++) {
        size[i] = pick(h, 0, dims[i]);
        size[i] += size[i] == 0 && dims[i] > 0 && pick(h, 0, 3) > 0;
        start[i] = pick(h, 0, dims[i] - size[i]);
    }
    check(h,
          &(op_case){.op = primitive("dynamic_slice"),
                     .inputs = 2,
                     .in = {random_bits(h, dtype, rank, dims), vector(h, rank, start)},
                     .attrs = 1,
                     .attr = {OP_A_DIMS("size", rank, size)}},
          source_slice);
    check(h,
          &(op_case){
              .op = primitive("dynamic_update_slice"),
              .inputs = 3,
              .in = {random_bits(h, dtype, rank, dims), random_bits(h, dtype, rank, size), vector(h, rank, start)}},
          source_update);
}

/* --- shapes ------------------------------------------------------------------------------------------------------- */

static int64_t source_reshape(const op_case *c, const tn_tensor *out, const int64_t *index, uint32_t *which) {
    (void)which;
    int64_t count = 1;
    for (int i = 0; i < out->rank; i++) {
        int64_t want = op_get_i64(c->in[1], i);
        assert_true(want == out->dims[i] || want == -1);
        count *= out->dims[i];
    }
    assert_int_equal(count, c->in[0]->count);
    return ravel(out->rank, out->dims, index);
}

static void try_reshape(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK], shape[TN_MAX_RANK];
    int rank = random_shape(h, 0, 4, dims), n = 0;
    int64_t others = 1;
    for (int i = 0; i < rank; i++) {
        if (n > 0 && pick(h, 0, 2) == 0) {
            shape[n - 1] *= dims[i];
            continue;
        }
        if (pick(h, 0, 3) == 0)
            shape[n++] = 1;
        shape[n++] = dims[i];
    }
    int hole = n > 0 && pick(h, 0, 1) ? (int)pick(h, 0, n - 1) : -1;
    for (int i = 0; i < n; i++)
        others *= i == hole ? 1 : shape[i];
    if (hole >= 0 && others > 0)
        shape[hole] = -1;
    check(h,
          &(op_case){.op = primitive("dynamic_reshape"),
                     .inputs = 2,
                     .in = {random_bits(h, dtype, rank, dims), vector(h, n, shape)}},
          source_reshape);
}

static int64_t source_broadcast(const op_case *c, const tn_tensor *out, const int64_t *index, uint32_t *which) {
    const tn_tensor *x = c->in[0];
    int64_t at[TN_MAX_RANK], n = c->in[1]->count;
    (void)which;
    assert_true(out->rank == (x->rank > n ? x->rank : n));
    for (int i = 0; i < out->rank; i++) {
        int from = i - (out->rank - x->rank);
        int64_t to = i - (out->rank - n), have = from < 0 ? 1 : x->dims[from],
                want = to < 0 ? 1 : op_get_i64(c->in[1], to);
        assert_int_equal(out->dims[i], have == 1 ? want : have);
        if (from >= 0)
            at[from] = have == 1 ? 0 : index[i];
    }
    return ravel(x->rank, x->dims, at);
}

static void try_broadcast(op_harness *h, tn_dtype dtype) {
    int64_t shape[TN_MAX_RANK], dims[TN_MAX_RANK];
    int rank = random_shape(h, 0, 4, shape), less = (int)pick(h, 0, rank), drop = (int)pick(h, 0, rank);
    for (int i = 0; i < rank - less; i++)
        dims[i] = pick(h, 0, 1) ? 1 : shape[less + i];
    for (int i = 0; i < rank - less; i++)
        if (shape[less + i] == dims[i] && pick(h, 0, 1))
            shape[less + i] = 1;
    drop = drop <= less ? drop : 0; /* a shape of fewer axes than x is 1 there */
    check(h,
          &(op_case){.op = primitive("dynamic_broadcast"),
                     .inputs = 2,
                     .in = {random_bits(h, dtype, rank - less, dims), vector(h, rank - drop, shape + drop)}},
          source_broadcast);
}

/* --- slice, pad, iota --------------------------------------------------------------------------------------------- */

/* The k-th of the positions that numpy's start:end:step visits, by walking. -1: there is none. */
static int64_t visit(int64_t n, int64_t start, int64_t end, int64_t step, int64_t k) {
    int64_t first = start < 0 ? start + n : start, last = end < 0 ? end + n : end;
    if (step > 0) {
        for (first = first < 0 ? 0 : first; first < n && first < last; first += step)
            if (k-- == 0)
                return first;
    } else {
        for (first = first >= n ? n - 1 : first; first >= 0 && first > last; first += step)
            if (k-- == 0)
                return first;
    }
    return -1;
}

static int64_t source_strided(const op_case *c, const tn_tensor *out, const int64_t *index, uint32_t *which) {
    const tn_tensor *x = c->in[0];
    int64_t at[TN_MAX_RANK];
    (void)which;
    memcpy(at, index, sizeof at);
    for (uint32_t i = 0; i < c->attr[0].count; i++) {
        int64_t axis = c->attr[0].as.ints[i], start = op_get_i64(c->in[1], i), end = op_get_i64(c->in[2], i);
        int64_t step = c->inputs > 3 ? op_get_i64(c->in[3], i) : 1;
        at[axis] = visit(x->dims[axis], start, end, step, index[axis]);
        assert_true(at[axis] >= 0 && visit(x->dims[axis], start, end, step, out->dims[axis]) == -1);
    }
    return ravel(x->rank, x->dims, at);
}

static void try_strided(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK], axes[TN_MAX_RANK], start[TN_MAX_RANK], end[TN_MAX_RANK], step[TN_MAX_RANK];
    int rank = random_shape(h, 0, 4, dims), n = 0;
    for (int i = rank - 1; i >= 0; i--)
        if (pick(h, 0, 1))
            axes[n++] = i;
    bool steps = pick(h, 0, 2) > 0;
    for (int i = 0; i < n; i++) {
        step[i] = !steps ? 1 : pick(h, 1, 3) * (pick(h, 0, 1) ? 1 : -1);
        start[i] = pick(h, -7, 7);
        end[i] = pick(h, 0, 3) ? pick(h, -7, 7) : step[i] > 0 ? INT32_MAX : INT32_MIN;
    }
    check(h,
          &(op_case){.op = primitive("dynamic_strided_slice"),
                     .inputs = steps ? 4 : 3,
                     .in = {random_bits(h, dtype, rank, dims), vector(h, n, start), vector(h, n, end),
                            steps ? vector(h, n, step) : NULL},
                     .attrs = 1,
                     .attr = {TN_A_INTS("axes", n, axes)}},
          source_strided);
}

static int64_t source_pad(const op_case *c, const tn_tensor *out, const int64_t *index, uint32_t *which) {
    int64_t at[TN_MAX_RANK];
    const char *mode = c->attr[0].as.s.data;
    (void)which;
    for (int i = 0; i < out->rank; i++) {
        int64_t n = c->in[0]->dims[i];
        at[i] = index[i] - op_get_i64(c->in[1], i);
        assert_int_equal(out->dims[i], n + op_get_i64(c->in[1], i) + op_get_i64(c->in[2], i));
        if (mode[0] == 'c' && (at[i] < 0 || at[i] >= n))
            return -1;
        if (at[i] < 0 || at[i] >= n)
            at[i] = at[i] < 0 ? 0 : n - 1;
    }
    return ravel(out->rank, c->in[0]->dims, at);
}

static void try_pad(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK], lo[TN_MAX_RANK], hi[TN_MAX_RANK];
    int rank = random_shape(h, 0, 4, dims);
    bool constant = pick(h, 0, 1);
    const char *mode = constant ? "constant" : "edge";
    for (int i = 0; i < rank; i++) {
        lo[i] = dims[i] == 0 && !constant ? 0 : pick(h, 0, 2);
        hi[i] = dims[i] == 0 && !constant ? 0 : pick(h, 0, 2);
    }
    check(h,
          &(op_case){.op = primitive("dynamic_pad"),
                     .inputs = 4,
                     .in = {random_bits(h, dtype, rank, dims), vector(h, rank, lo), vector(h, rank, hi),
                            constant && pick(h, 0, 2) ? random_bits(h, dtype, 0, NULL) : NULL},
                     .attrs = 1,
                     .attr = {TN_A_STRING("mode", mode, strlen(mode))}},
          source_pad);
}

static void oracle_iota(const op_case *c, tn_tensor *out) {
    assert_int_equal(out->rank, c->in[0]->count);
    for (int64_t i = 0; i < out->count; i++) {
        int64_t index[TN_MAX_RANK];
        unravel(i, out->rank, out->dims, index);
        tn_store_i64((tn_dtype)out->dtype, out->data, i, index[attr_of(c, "axis", 0)]);
    }
}

static void try_iota(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK];
    int rank = random_shape(h, 1, 4, dims);
    if (dtype == TN_BOOL)
        return;
    op_check(h, &(op_case){.op = primitive("dynamic_iota"),
                           .inputs = 1,
                           .in = {vector(h, rank, dims)},
                           .attrs = 2,
                           .attr = {TN_A_INT("axis", pick(h, 0, rank - 1)), TN_A_DTYPE("dtype", dtype)},
                           .oracle = oracle_iota});
}

static void test_values(void **state) {
    (void)state;
    for_dtypes("dynamic_slice, dynamic_update_slice", any_dtypes, 6, try_parts);
    for_dtypes("dynamic_reshape", any_dtypes, 6, try_reshape);
    for_dtypes("dynamic_broadcast", any_dtypes, 8, try_broadcast);
    for_dtypes("dynamic_strided_slice", any_dtypes, 8, try_strided);
    for_dtypes("dynamic_pad", any_dtypes, 6, try_pad);
    for_dtypes("dynamic_iota", op_numbers, 6, try_iota);
}

static void test_failures(void **state) {
    (void)state;
    op_harness h;
    op_harness_begin(&h);
    static const tn_dtype dtypes[] = {TN_F32, TN_STRING, TN_U4};
    for (int d = 0; d < COUNT(dtypes); d++) {
        tn_tensor *x = random_bits(&h, dtypes[d], 2, D(3, 2)), *u = random_bits(&h, dtypes[d], 2, D(1, 2));
        tn_tensor *zero = vector(&h, 2, D(0, 0)), *two = vector(&h, 2, D(2, 2)),
                  *v = random_bits(&h, dtypes[d], 0, NULL);
        const op_case cases[] = {
            {.op = primitive("dynamic_slice"),
             .inputs = 2,
             .in = {x, zero},
             .attrs = 1,
             .attr = {OP_A_DIMS("size", 2, D(2, 2))}},
            {.op = primitive("dynamic_update_slice"), .inputs = 3, .in = {x, u, zero}},
            {.op = primitive("dynamic_reshape"), .inputs = 2, .in = {x, vector(&h, 2, D(2, -1))}},
            {.op = primitive("dynamic_broadcast"), .inputs = 2, .in = {u, two}},
            {.op = primitive("dynamic_strided_slice"),
             .inputs = 3,
             .in = {x, zero, two},
             .attrs = 1,
             .attr = {TN_A_INTS("axes", 2, D(0, 1))}},
            {.op = primitive("dynamic_pad"), .inputs = 4, .in = {x, zero, two, v}},
        };
        for (int i = 0; i < COUNT(cases); i++)
            op_check_failures(&h, &cases[i]);
    }
    op_harness_end(&h);
}

static void test_wrong(void **state) {
    (void)state;
    op_harness h;
    op_harness_begin(&h);
    tn_tensor *x = op_random(&h, TN_F32, 2, D(3, 2), true), *u = op_random(&h, TN_F32, 2, D(2, 2), true);
    tn_tensor *big = op_random(&h, TN_F32, 2, D(4, 1), true), *zero = vector(&h, 2, D(0, 0)),
              *one = vector(&h, 1, D(1));
    tn_tensor *high = vector(&h, 2, D(2, 0)), *low = vector(&h, 2, D(-1, 0)),
              *floats = op_values(&h, TN_F32, 1, D(2), (double[]){1, 1});
    tn_tensor *most = op_tensor(&h, TN_I64, 1, D(2)), *many = op_tensor(&h, TN_I64, 1, D(TN_MAX_RANK + 1));
    tn_store_i64(TN_I64, most->data, 0, INT64_MAX);
    tn_store_i64(TN_I64, most->data, 1, INT64_MAX);
#define SIZE OP_A_DIMS("size", 2, D(2, 2))
#define AXES TN_A_INTS("axes", 2, D(0, 1))
    const op_case cases[] = {
        {.op = primitive("dynamic_slice"), .inputs = 2, .in = {x, high}, .attrs = 1, .attr = {SIZE}},
        {.op = primitive("dynamic_slice"), .inputs = 2, .in = {x, low}, .attrs = 1, .attr = {SIZE}},
        {.op = primitive("dynamic_slice"), .inputs = 2, .in = {x, most}, .attrs = 1, .attr = {SIZE}},
        {.op = primitive("dynamic_slice"), .inputs = 2, .in = {x, one}, .attrs = 1, .attr = {SIZE}},
        {.op = primitive("dynamic_slice"), .inputs = 2, .in = {x, floats}, .attrs = 1, .attr = {SIZE}},
        {.op = primitive("dynamic_slice"),
         .inputs = 2,
         .in = {x, zero},
         .attrs = 1,
         .attr = {OP_A_DIMS("size", 2, D(4, 1))}},
        {.op = primitive("dynamic_update_slice"), .inputs = 3, .in = {x, u, high}},
        {.op = primitive("dynamic_update_slice"), .inputs = 3, .in = {x, big, zero}},
        {.op = primitive("dynamic_update_slice"), .inputs = 3, .in = {x, one, zero}},
        {.op = primitive("dynamic_reshape"), .inputs = 2, .in = {x, vector(&h, 2, D(-1, -1))}},
        {.op = primitive("dynamic_reshape"), .inputs = 2, .in = {x, vector(&h, 2, D(-1, 4))}},
        {.op = primitive("dynamic_reshape"), .inputs = 2, .in = {x, vector(&h, 2, D(-1, 0))}},
        {.op = primitive("dynamic_reshape"), .inputs = 2, .in = {x, vector(&h, 2, D(-2, 3))}},
        {.op = primitive("dynamic_reshape"), .inputs = 2, .in = {x, most}},
        {.op = primitive("dynamic_reshape"), .inputs = 2, .in = {x, many}},
        {.op = primitive("dynamic_reshape"), .inputs = 2, .in = {x, zero}},
        {.op = primitive("dynamic_broadcast"), .inputs = 2, .in = {x, vector(&h, 2, D(2, 2))}},
        {.op = primitive("dynamic_broadcast"), .inputs = 2, .in = {x, vector(&h, 2, D(3, -1))}},
        {.op = primitive("dynamic_broadcast"), .inputs = 2, .in = {op_tensor(&h, TN_F32, 0, NULL), most}},
        {.op = primitive("dynamic_strided_slice"),
         .inputs = 4,
         .in = {x, zero, zero, zero},
         .attrs = 1,
         .attr = {AXES}},
        {.op = primitive("dynamic_strided_slice"), .inputs = 3, .in = {x, one, zero}, .attrs = 1, .attr = {AXES}},
        {.op = primitive("dynamic_strided_slice"),
         .inputs = 3,
         .in = {x, zero, zero},
         .attrs = 1,
         .attr = {TN_A_INTS("axes", 2, D(1, 1))}},
        {.op = primitive("dynamic_pad"), .inputs = 3, .in = {x, low, zero}},
        {.op = primitive("dynamic_pad"), .inputs = 3, .in = {x, most, zero}},
        {.op = primitive("dynamic_pad"), .inputs = 3, .in = {x, one, zero}},
        {.op = primitive("dynamic_iota"),
         .inputs = 1,
         .in = {low},
         .attrs = 2,
         .attr = {TN_A_INT("axis", 0), TN_A_DTYPE("dtype", TN_F32)}},
        {.op = primitive("dynamic_iota"),
         .inputs = 1,
         .in = {most},
         .attrs = 2,
         .attr = {TN_A_INT("axis", 0), TN_A_DTYPE("dtype", TN_F32)}},
        {.op = primitive("dynamic_iota"),
         .inputs = 1,
         .in = {one},
         .attrs = 2,
         .attr = {TN_A_INT("axis", 1), TN_A_DTYPE("dtype", TN_F32)}},
    };
    expect_refused(&h, cases, COUNT(cases));
    op_harness_end(&h);
}

/* --- what infer knows --------------------------------------------------------------------------------------------- */

static const char *type_of(tn_graph *g, tn_value v, char *text, size_t size) {
    return tn_type_describe(g, tn_value_type(g, v), text, size);
}

static void test_infer(void **state) {
    (void)state;
    char text[200];
    tn_graph *g = tn_graph_create();
    tn_dim n = tn_dim_symbol(g, "n"), four = tn_dim_const(g, 4), three = tn_dim_const(g, 3);
    tn_region main = tn_graph_region(g);
    tn_value x = tn_region_add_arg(g, main, tn_type_tensor(g, TN_F32, 2, (tn_dim[]){n, four}), "x");
    tn_value s = tn_region_add_arg(g, main, tn_type_tensor(g, TN_I64, 1, &three), "s");
    tn_value free3 = tn_graph_add(g, "dynamic_reshape", 2, (tn_value[]){x, s}, 0, NULL);
    assert_int_equal(tn_value_rank(g, free3), 3);
    tn_value shape = tn_graph_add(g, "shape_of", 1, &x, 0, NULL);
    tn_value same = tn_graph_add(g, "dynamic_reshape", 2, (tn_value[]){x, shape}, 0, NULL);
    assert_string_equal(type_of(g, same, text, sizeof text), "f32[n, 4]");
    tn_tensor *hole = tn_tensor_from_i64(2, D(2, -1));
    tn_value left = tn_graph_add(g, "dynamic_reshape", 2, (tn_value[]){x, tn_graph_constant(g, hole)}, 0, NULL);
    assert_string_equal(type_of(g, left, text, sizeof text), "f32[2, 2*n]");
    tn_tensor_destroy(hole);
    tn_tensor *ones = tn_tensor_from_i64(3, D(2, 1, 1));
    tn_value grown = tn_graph_add(g, "dynamic_broadcast", 2, (tn_value[]){x, tn_graph_constant(g, ones)}, 0, NULL);
    assert_string_equal(type_of(g, grown, text, sizeof text), "f32[2, n, 4]");
    tn_tensor_destroy(ones);
    tn_value wide = tn_graph_add(g, "dynamic_broadcast", 2, (tn_value[]){x, s}, 0, NULL);
    assert_true(tn_dim_equal(g, tn_value_dim(g, wide, 2), four)); /* 4 stays 4 */
    tn_value counted =
        tn_graph_add(g, "dynamic_iota", 1, &shape, 2, (tn_attr[]){TN_A_INT("axis", 1), TN_A_DTYPE("dtype", TN_I32)});
    assert_string_equal(type_of(g, counted, text, sizeof text), "i32[n, 4]");
    tn_value padded = tn_graph_add(g, "dynamic_pad", 3, (tn_value[]){x, shape, shape}, 0, NULL);
    assert_string_equal(type_of(g, padded, text, sizeof text), "f32[3*n, 12]");
    assert_int_equal(tn_graph_check(g), TN_OK);
    /* a second inference keeps the fresh symbols */
    tn_type before = tn_value_type(g, free3);
    assert_int_equal(tn_node_reinfer(g, tn_value_producer(g, free3)), TN_OK);
    assert_int_equal(tn_value_type(g, free3).id, before.id);
    assert_int_equal(tn_graph_add_output(g, free3, "y"), TN_OK);
    assert_int_equal(tn_graph_add_output(g, left, "z"), TN_OK);
    assert_int_equal(tn_graph_verify(g), TN_OK);
    tn_tensor *in[2] = {tn_tensor_create(TN_F32, 2, D(6, 4)), tn_tensor_from_i64(3, D(3, -1, 2))}, *out[2];
    assert_int_equal(run_graph(g, NULL, in, out), TN_OK);
    assert_int_equal(tn_tensor_dims(out[0])[1], 4);
    assert_int_equal(tn_tensor_dims(out[1])[1], 12);
    for (int i = 0; i < 2; i++) {
        tn_tensor_destroy(in[i]);
        tn_tensor_destroy(out[i]);
    }
    tn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_failures),
                                       cmocka_unit_test(test_wrong), cmocka_unit_test(test_infer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
