/* Movement and indexing rows against naive oracles: all dtypes, random shapes and attributes, wrong attributes. */
#include "ops/naive.h"

static const tn_dtype all_dtypes[] = {TN_F32,  TN_U8,  TN_I8,     TN_U16, TN_I16, TN_I32,      TN_I64,    TN_STRING,
                                      TN_BOOL, TN_F16, TN_F64,    TN_U32, TN_U64, TN_C64,      TN_C128,   TN_BF16,
                                      TN_U4,   TN_I4,  TN_F4E2M1, TN_U2,  TN_I2,  TN_F8E4M3FN, TN_F8E5M2, TN_F8E8M0};

/* Index of the element of input `which` that stands at out[index], or -1: the pad value. */
typedef int64_t source_function(const op_case *c, const int64_t *index, uint32_t *which);

static void oracle(const op_case *c, tn_tensor *out) {
    source_function *source = *(source_function *const *)c->ctx;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t index[TN_MAX_RANK];
        uint32_t which = 0;
        unravel(i, out->rank, out->dims, index);
        int64_t j = source(c, index, &which);
        if (j >= 0)
            copy_element(out, i, c->in[which], j);
        else if (c->inputs > 1 && c->in[1] != NULL)
            copy_element(out, i, c->in[1], 0);
    }
}

/* All of the harness, and every bit against the oracle (which also sees complex numbers and NaNs). */
static void check(op_harness *h, op_case *c, source_function *source) {
    tn_tensor *out, *want;
    c->oracle = oracle;
    c->ctx = &source;
    op_check(h, c);
    assert_int_equal(op_try(h, c, 0, &out), TN_OK);
    want = tn_tensor_create((tn_dtype)out->dtype, out->rank, out->dims);
    assert_non_null(want);
    oracle(c, want);
    tn_tensor *flat = tn_tensor_contiguous(NULL, out);
    assert_non_null(flat);
    assert_true(tn_object_equal(tn_tensor_object(flat), tn_tensor_object(want)));
    tn_tensor_destroy(flat);
    tn_tensor_destroy(out);
    tn_tensor_destroy(want);
}

static int random_shape(op_harness *h, int least, int most, int64_t *dims) {
    int rank = (int)pick(h, least, most);
    for (int i = 0; i < rank; i++)
        dims[i] = op_random_bits(h) % 12 == 0 ? 0 : pick(h, 1, rank > 3 ? 3 : 5);
    return rank;
}

typedef void trial(op_harness *h, tn_dtype dtype);

static void for_all(const char *what, int repeats, trial *run) {
    op_harness h;
    op_harness_begin(&h);
    uint64_t seed = h.seed;
    for (int d = 0; d < COUNT(all_dtypes); d++)
        for (int i = 0; i < repeats; i++)
            run(&h, all_dtypes[d]);
    report(&h, what, seed);
    op_harness_end(&h);
}

/* --- reshape ------------------------------------------------------------------------------------------------------ */

static int64_t source_reshape(const op_case *c, const int64_t *index, uint32_t *which) {
    (void)which;
    return ravel((int)c->attr[0].count, c->attr[0].as.ints, index);
}

static void try_reshape(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK], shape[TN_MAX_RANK];
    int rank = random_shape(h, 0, 4, dims), n = 0;
    for (int i = 0; i < rank; i++) { /* merge some, put ones between, swap sizes */
        if (n > 0 && pick(h, 0, 2) == 0) {
            shape[n - 1] *= dims[i];
            continue;
        }
        if (pick(h, 0, 3) == 0)
            shape[n++] = 1;
        shape[n++] = dims[i];
    }
    if (n > 1) {
        int a = (int)pick(h, 0, n - 1), b = (int)pick(h, 0, n - 1);
        int64_t swap = shape[a];
        shape[a] = shape[b];
        shape[b] = swap;
    }
    op_case c = {.op = row(&tn_family_move, "reshape"),
                 .inputs = 1,
                 .in = {random_bits(h, dtype, rank, dims)},
                 .attrs = 1,
                 .attr = {OP_A_DIMS("shape", n, shape)}};
    check(h, &c, source_reshape);
}

static void test_reshape(void **state) {
    (void)state;
    for_all("reshape", 6, try_reshape);
}

/* --- fit ---------------------------------------------------------------------------------------------------------- */

static void try_fit(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK];
    int rank = random_shape(h, 0, 5, dims);
    op_case c = {.op = row(&tn_family_move, "fit"),
                 .inputs = 1,
                 .in = {random_bits(h, dtype, rank, dims)},
                 .attrs = 1,
                 .attr = {OP_A_DIMS("shape", rank, dims)}};
    check(h, &c, source_reshape);
}

static void test_fit(void **state) {
    (void)state;
    for_all("fit", 3, try_fit);
}

/* --- transpose ---------------------------------------------------------------------------------------------------- */

static int64_t source_transpose(const op_case *c, const int64_t *index, uint32_t *which) {
    int64_t at[TN_MAX_RANK];
    (void)which;
    for (int i = 0; i < c->in[0]->rank; i++)
        at[c->attr[0].as.ints[i]] = index[i];
    return ravel(c->in[0]->rank, c->in[0]->dims, at);
}

static void try_transpose(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK], perm[TN_MAX_RANK];
    int rank = random_shape(h, 0, 5, dims);
    for (int i = 0; i < rank; i++) {
        int64_t k = pick(h, 0, i);
        perm[i] = perm[k];
        perm[k] = i;
    }
    op_case c = {.op = row(&tn_family_move, "transpose"),
                 .inputs = 1,
                 .in = {random_bits(h, dtype, rank, dims)},
                 .attrs = 1,
                 .attr = {TN_A_INTS("perm", rank, perm)}};
    check(h, &c, source_transpose);
}

static void test_transpose(void **state) {
    (void)state;
    for_all("transpose", 6, try_transpose);
}

/* --- broadcast ---------------------------------------------------------------------------------------------------- */

static int64_t source_broadcast(const op_case *c, const int64_t *index, uint32_t *which) {
    int64_t at[TN_MAX_RANK];
    (void)which;
    for (int i = 0; i < c->in[0]->rank; i++)
        at[i] = c->in[0]->dims[i] == 1 ? 0 : index[(int)c->attr[0].count - c->in[0]->rank + i];
    return ravel(c->in[0]->rank, c->in[0]->dims, at);
}

static void try_broadcast(op_harness *h, tn_dtype dtype) {
    int64_t shape[TN_MAX_RANK], dims[TN_MAX_RANK];
    int rank = random_shape(h, 0, 4, shape), less = (int)pick(h, 0, rank);
    for (int i = 0; i < rank - less; i++)
        dims[i] = pick(h, 0, 1) ? 1 : shape[less + i];
    op_case c = {.op = row(&tn_family_move, "broadcast"),
                 .inputs = 1,
                 .in = {random_bits(h, dtype, rank - less, dims)},
                 .attrs = 1,
                 .attr = {OP_A_DIMS("shape", rank, shape)}};
    check(h, &c, source_broadcast);
}

static void test_broadcast(void **state) {
    (void)state;
    for_all("broadcast", 6, try_broadcast);
}

/* --- slice -------------------------------------------------------------------------------------------------------- */

static int64_t source_slice(const op_case *c, const int64_t *index, uint32_t *which) {
    int64_t at[TN_MAX_RANK];
    (void)which;
    for (int i = 0; i < c->in[0]->rank; i++)
        at[i] = c->attr[0].as.ints[i] + index[i] * c->attr[2].as.ints[i];
    return ravel(c->in[0]->rank, c->in[0]->dims, at);
}

static void try_slice(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK], start[TN_MAX_RANK], size[TN_MAX_RANK], step[TN_MAX_RANK];
    int rank = random_shape(h, 0, 4, dims);
    for (int i = 0; i < rank; i++) {
        step[i] = pick(h, 1, 3) * (pick(h, 0, 1) ? 1 : -1);
        start[i] = dims[i] > 0 ? pick(h, 0, dims[i] - 1) : pick(h, -2, 2);
        int64_t fit = dims[i] == 0 ? 0 : (step[i] > 0 ? dims[i] - 1 - start[i] : start[i]) / llabs(step[i]) + 1;
        size[i] = pick(h, fit > 0 && pick(h, 0, 9) ? 1 : 0, fit);
        if (size[i] == 1 && pick(h, 0, 1))
            step[i] = pick(h, 0, 1) ? INT64_MIN : INT64_MAX; /* no second element: any step */
        if (size[i] == 0)
            start[i] = pick(h, -9, 9);
    }
    op_case c = {
        .op = row(&tn_family_move, "slice"),
        .inputs = 1,
        .in = {random_bits(h, dtype, rank, dims)},
        .attrs = 3,
        .attr = {OP_A_DIMS("start", rank, start), OP_A_DIMS("size", rank, size), TN_A_INTS("step", rank, step)}};
    check(h, &c, source_slice);
}

static void test_slice(void **state) {
    (void)state;
    for_all("slice", 8, try_slice);
}

/* --- pad ---------------------------------------------------------------------------------------------------------- */

/* Walks back into the axis step by step, as the words say it. */
static int64_t source_pad(const op_case *c, const int64_t *index, uint32_t *which) {
    int64_t at[TN_MAX_RANK];
    const char *mode = c->attr[2].as.s.data;
    (void)which;
    for (int i = 0; i < c->in[0]->rank; i++) {
        int64_t n = c->in[0]->dims[i];
        at[i] = index[i] - c->attr[0].as.ints[i];
        if (mode[0] == 'c' && (at[i] < 0 || at[i] >= n))
            return -1;
        while (at[i] < 0 || at[i] >= n) {
            if (mode[0] == 'w')
                at[i] += at[i] < 0 ? n : -n;
            else if (mode[0] == 'e' || n == 1)
                at[i] = at[i] < 0 ? 0 : n - 1;
            else
                at[i] = at[i] < 0 ? -at[i] : 2 * (n - 1) - at[i];
        }
    }
    return ravel(c->in[0]->rank, c->in[0]->dims, at);
}

static void try_pad(op_harness *h, tn_dtype dtype) {
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    int64_t dims[TN_MAX_RANK], lo[TN_MAX_RANK], hi[TN_MAX_RANK];
    const char *mode = modes[pick(h, 0, 3)];
    int rank = random_shape(h, 0, 4, dims);
    for (int i = 0; i < rank; i++) {
        bool none = dims[i] == 0 && mode[0] != 'c';
        lo[i] = none ? 0 : pick(h, 0, rank > 2 ? 2 : 7);
        hi[i] = none ? 0 : pick(h, 0, rank > 2 ? 2 : 7);
    }
    op_case c = {
        .op = row(&tn_family_move, "pad"),
        .inputs = 2,
        .in = {random_bits(h, dtype, rank, dims)},
        .attrs = 3,
        .attr = {OP_A_DIMS("lo", rank, lo), OP_A_DIMS("hi", rank, hi), TN_A_STRING("mode", mode, strlen(mode))}};
    if (mode[0] == 'c' && pick(h, 0, 2))
        c.in[1] = random_bits(h, dtype, 0, NULL);
    check(h, &c, source_pad);
}

static void test_pad(void **state) {
    (void)state;
    for_all("pad", 12, try_pad);
}

/* --- concat ------------------------------------------------------------------------------------------------------- */

static int64_t source_concat(const op_case *c, const int64_t *index, uint32_t *which) {
    int64_t at[TN_MAX_RANK], axis = c->attr[0].as.i;
    memcpy(at, index, sizeof *at * c->in[0]->rank);
    for (*which = 0; at[axis] >= c->in[*which]->dims[axis]; ++*which)
        at[axis] -= c->in[*which]->dims[axis];
    return ravel(c->in[0]->rank, c->in[*which]->dims, at);
}

static void try_concat(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK];
    int rank = random_shape(h, 1, 4, dims), axis = (int)pick(h, 0, rank - 1);
    op_case c = {.op = row(&tn_family_move, "concat"),
                 .inputs = (uint32_t)pick(h, 1, 4),
                 .attrs = 1,
                 .attr = {TN_A_INT("axis", axis)}};
    for (uint32_t k = 0; k < c.inputs; k++) {
        dims[axis] = pick(h, 0, 3);
        c.in[k] = random_bits(h, dtype, rank, dims);
    }
    check(h, &c, source_concat);
}

static void test_concat(void **state) {
    (void)state;
    for_all("concat", 8, try_concat);
}

/* --- gather ------------------------------------------------------------------------------------------------------- */

static int64_t source_gather(const op_case *c, const int64_t *index, uint32_t *which) {
    const tn_tensor *x = c->in[0], *indices = c->in[1];
    int64_t at[TN_MAX_RANK];
    int axis = (int)c->attr[0].as.i;
    (void)which;
    int64_t k = op_get_i64(indices, ravel(indices->rank, indices->dims, index + axis));
    memcpy(at, index, sizeof *at * (size_t)axis);
    at[axis] = k < 0 ? k + x->dims[axis] : k;
    memcpy(at + axis + 1, index + axis + indices->rank, sizeof *at * (size_t)(x->rank - axis - 1));
    return ravel(x->rank, x->dims, at);
}

static void try_gather(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK], index_dims[TN_MAX_RANK];
    int rank = random_shape(h, 1, 4, dims), axis = (int)pick(h, 0, rank - 1),
        index_rank = random_shape(h, 0, 2, index_dims);
    if (dims[axis] == 0)
        dims[axis] = 2;
    op_case c = {.op = row(&tn_family_index, "gather"),
                 .inputs = 2,
                 .in = {random_bits(h, dtype, rank, dims)},
                 .attrs = 1,
                 .attr = {TN_A_INT("axis", axis)}};
    c.in[1] = op_tensor(h, pick(h, 0, 1) ? TN_I64 : TN_I32, index_rank, index_dims);
    for (int64_t i = 0; i < c.in[1]->count; i++)
        tn_store_i64((tn_dtype)c.in[1]->dtype, c.in[1]->data, i, pick(h, -dims[axis], dims[axis] - 1));
    check(h, &c, source_gather);
}

static void test_gather(void **state) {
    op_harness h;
    (void)state;
    for_all("gather", 8, try_gather);
    op_harness_begin(&h);
    static const int64_t bad[] = {3, -4, INT32_MAX, INT32_MIN};
    for (int i = 0; i < COUNT(bad); i++) {
        tn_tensor *at = op_tensor(&h, TN_I32, 0, NULL);
        tn_store_i64(TN_I32, at->data, 0, bad[i]);
        op_case c = {.op = row(&tn_family_index, "gather"),
                     .inputs = 2,
                     .in = {op_random(&h, TN_F32, 1, (int64_t[]){3}, true), at},
                     .attrs = 1,
                     .attr = {TN_A_INT("axis", 0)}};
        op_expect(&h, &c, 0, TN_ERR_INPUT);
    }
    op_harness_end(&h);
}

/* --- constant, shape_of, iota ------------------------------------------------------------------------------------- */

static void oracle_shape_of(const op_case *c, tn_tensor *out) {
    for (int i = 0; i < c->in[0]->rank; i++)
        tn_store_i64(TN_I64, out->data, i, c->in[0]->dims[i]);
}

static void oracle_iota(const op_case *c, tn_tensor *out) {
    for (int64_t i = 0; i < out->count; i++) {
        int64_t index[TN_MAX_RANK];
        unravel(i, out->rank, out->dims, index);
        tn_store_i64((tn_dtype)out->dtype, out->data, i, index[c->attr[1].as.i]);
    }
}

static void oracle_constant(const op_case *c, tn_tensor *out) {
    for (int64_t i = 0; i < out->count; i++)
        copy_element(out, i, c->attr[0].as.tensor, i);
}

static void try_others(op_harness *h, tn_dtype dtype) {
    int64_t dims[TN_MAX_RANK];
    int rank = random_shape(h, 0, 4, dims);
    op_case c = {.op = row(&tn_family_index, "shape_of"),
                 .inputs = 1,
                 .in = {random_bits(h, dtype, rank, dims)},
                 .oracle = oracle_shape_of};
    op_check(h, &c);
    c = (op_case){.op = row(&tn_family_index, "constant"),
                  .attrs = 1,
                  .attr = {TN_A_TENSOR("value", c.in[0])},
                  .oracle = oracle_constant};
    op_check(h, &c);
    if (rank == 0 || (!tn_dtype_is_int(dtype) && !tn_dtype_is_float(dtype)))
        return;
    c = (op_case){
        .op = row(&tn_family_index, "iota"),
        .attrs = 3,
        .oracle = oracle_iota,
        .attr = {OP_A_DIMS("shape", rank, dims), TN_A_INT("axis", pick(h, 0, rank - 1)), TN_A_DTYPE("dtype", dtype)}};
    op_check(h, &c);
}

static void test_others(void **state) {
    (void)state;
    for_all("constant, shape_of, iota", 4, try_others);
}

/* --- ranks, failing memory, wrong attributes ---------------------------------------------------------------------- */

static void test_high_rank(void **state) {
    op_harness h;
    int64_t dims[TN_MAX_RANK], zero[TN_MAX_RANK] = {0}, step[TN_MAX_RANK], perm[TN_MAX_RANK], shape[TN_MAX_RANK];
    (void)state;
    op_harness_begin(&h);
    for (int i = 0; i < TN_MAX_RANK; i++) {
        dims[i] = i % 5 == 0 ? 2 : 1;
        shape[i] = i % 5 == 2 ? 2 : dims[i];
        perm[i] = (i * 7 + 3) % TN_MAX_RANK;
        step[i] = 1;
    }
    tn_tensor *x = random_bits(&h, TN_I16, TN_MAX_RANK, dims);
    op_case transpose = {.op = row(&tn_family_move, "transpose"),
                         .inputs = 1,
                         .in = {x},
                         .attrs = 1,
                         .attr = {TN_A_INTS("perm", TN_MAX_RANK, perm)}};
    check(&h, &transpose, source_transpose);
    op_case broadcast = {.op = row(&tn_family_move, "broadcast"),
                         .inputs = 1,
                         .in = {x},
                         .attrs = 1,
                         .attr = {OP_A_DIMS("shape", TN_MAX_RANK, shape)}};
    check(&h, &broadcast, source_broadcast);
    op_case slice = {.op = row(&tn_family_move, "slice"),
                     .inputs = 1,
                     .in = {x},
                     .attrs = 3,
                     .attr = {OP_A_DIMS("start", TN_MAX_RANK, zero), OP_A_DIMS("size", TN_MAX_RANK, dims),
                              TN_A_INTS("step", TN_MAX_RANK, step)}};
    check(&h, &slice, source_slice);
    op_case pad = {.op = row(&tn_family_move, "pad"),
                   .inputs = 1,
                   .in = {x},
                   .attrs = 3,
                   .attr = {OP_A_DIMS("lo", TN_MAX_RANK, zero), OP_A_DIMS("hi", TN_MAX_RANK, zero),
                            TN_A_STRING("mode", "wrap", 4)}};
    check(&h, &pad, source_pad);
    op_harness_end(&h);
}

static void test_failures(void **state) {
    static const tn_dtype dtypes[] = {TN_F32, TN_STRING, TN_I4};
    op_harness h;
    int64_t dims[] = {3, 2}, perm[] = {1, 0}, six[] = {2, 3}, one[] = {1, 1}, shape[] = {2, 3, 2}, step[] = {-1, 1},
            start[] = {2, 0};
    (void)state;
    op_harness_begin(&h);
    for (int d = 0; d < COUNT(dtypes); d++) {
        tn_tensor *x = random_bits(&h, dtypes[d], 2, dims), *value = random_bits(&h, dtypes[d], 0, NULL);
        tn_tensor *at = op_values(&h, TN_I64, 1, dims, (double[]){2, -3, 0});
        const op_case cases[] = {
            {.op = row(&tn_family_move, "transpose"),
             .inputs = 1,
             .in = {x},
             .attrs = 1,
             .attr = {TN_A_INTS("perm", 2, perm)}},
            {.op = row(&tn_family_move, "reshape"),
             .inputs = 1,
             .in = {x},
             .attrs = 1,
             .attr = {OP_A_DIMS("shape", 2, six)}},
            {.op = row(&tn_family_move, "broadcast"),
             .inputs = 1,
             .in = {x},
             .attrs = 1,
             .attr = {OP_A_DIMS("shape", 3, shape)}},
            {.op = row(&tn_family_move, "slice"),
             .inputs = 1,
             .in = {x},
             .attrs = 3,
             .attr = {OP_A_DIMS("start", 2, start), OP_A_DIMS("size", 2, dims), TN_A_INTS("step", 2, step)}},
            {.op = row(&tn_family_move, "pad"),
             .inputs = 2,
             .in = {x, value},
             .attrs = 2,
             .attr = {OP_A_DIMS("lo", 2, one), OP_A_DIMS("hi", 2, dims)}},
            {.op = row(&tn_family_move, "pad"),
             .inputs = 1,
             .in = {x},
             .attrs = 3,
             .attr = {OP_A_DIMS("lo", 2, one), OP_A_DIMS("hi", 2, dims), TN_A_STRING("mode", "edge", 4)}},
            {.op = row(&tn_family_move, "concat"),
             .inputs = 2,
             .in = {x, x},
             .attrs = 1,
             .attr = {TN_A_INT("axis", 1)}},
            {.op = row(&tn_family_index, "gather"),
             .inputs = 2,
             .in = {x, at},
             .attrs = 1,
             .attr = {TN_A_INT("axis", 0)}}};
        for (int i = 0; i < COUNT(cases); i++)
            op_check_failures(&h, &cases[i]);
    }
    op_harness_end(&h);
}

static void test_wrong(void **state) {
    op_harness h;
    const int64_t big = (int64_t)1 << 62, m = INT64_MAX;
    (void)state;
    op_harness_begin(&h);
    tn_tensor *x = op_random(&h, TN_F32, 2, (int64_t[]){2, 3}, true), *s = op_random(&h, TN_F32, 0, NULL, true);
    tn_tensor *i32 = op_random(&h, TN_I32, 2, (int64_t[]){2, 3}, true),
              *none = op_tensor(&h, TN_F32, 1, (int64_t[]){0});
    tn_tensor *y = op_random(&h, TN_F32, 2, (int64_t[]){3, 3}, true),
              *three = op_random(&h, TN_F32, 1, (int64_t[]){3}, true);
    static const int64_t axes[] = {0, 0, 2, -1, 1, 0};
#define D(...) ((const int64_t[]){__VA_ARGS__})
#define MOVE(name) .op = row(&tn_family_move, name)
#define INDEX(name) .op = row(&tn_family_index, name)
#define SLICE(a, b, c, d, e, f)                                      \
    {                                                                \
        MOVE("slice"), .inputs = 1, .in = {x}, .attrs = 3, .attr = { \
            OP_A_DIMS("start", 2, D(a, b)),                          \
            OP_A_DIMS("size", 2, D(c, d)),                           \
            TN_A_INTS("step", 2, D(e, f))                            \
        }                                                            \
    }
#define PAD(a, b, c, d, text)                                      \
    {                                                              \
        MOVE("pad"), .inputs = 1, .in = {x}, .attrs = 3, .attr = { \
            OP_A_DIMS("lo", 2, D(a, b)),                           \
            OP_A_DIMS("hi", 2, D(c, d)),                           \
            TN_A_STRING("mode", text, strlen(text))                \
        }                                                          \
    }
#define IOTA(n, shape, axis, dtype)          \
    {                                        \
        INDEX("iota"), .attrs = 3, .attr = { \
            OP_A_DIMS("shape", n, shape),    \
            TN_A_INT("axis", axis),          \
            TN_A_DTYPE("dtype", dtype)       \
        }                                    \
    }
    const op_case cases[] = {
        {MOVE("reshape"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {OP_A_DIMS("shape", 2, D(2, 4))}},
        {MOVE("reshape"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {OP_A_DIMS("shape", 2, D(-2, -3))}},
        {MOVE("reshape"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {OP_A_DIMS("shape", 2, D(big, 4))}},
        {MOVE("reshape"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {OP_A_DIMS("shape", 0, NULL)}},
        {MOVE("reshape"), .inputs = 1, .in = {x}},
        {MOVE("fit"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {OP_A_DIMS("shape", 2, D(3, 2))}},
        {MOVE("fit"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {OP_A_DIMS("shape", 2, D(2, 4))}},
        {MOVE("fit"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {OP_A_DIMS("shape", 1, D(6))}},
        {MOVE("fit"), .inputs = 1, .in = {none}, .attrs = 1, .attr = {OP_A_DIMS("shape", 1, D(1))}},
        {MOVE("transpose"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {TN_A_INTS("perm", 2, axes)}},
        {MOVE("transpose"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {TN_A_INTS("perm", 2, axes + 1)}},
        {MOVE("transpose"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {TN_A_INTS("perm", 2, axes + 3)}},
        {MOVE("transpose"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {TN_A_INTS("perm", 1, axes)}},
        {MOVE("transpose"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {TN_A_INTS("perm", 6, axes)}},
        {MOVE("broadcast"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {OP_A_DIMS("shape", 2, D(2, 4))}},
        {MOVE("broadcast"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {OP_A_DIMS("shape", 2, D(2, 1))}},
        {MOVE("broadcast"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {OP_A_DIMS("shape", 1, D(3))}},
        {MOVE("broadcast"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {OP_A_DIMS("shape", 3, D(-1, 2, 3))}},
        SLICE(0, 0, 2, 3, 0, 1),
        SLICE(0, 0, 3, 3, 1, 1),
        SLICE(-1, 0, 1, 1, 1, 1),
        SLICE(2, 0, 1, 1, 1, 1),
        SLICE(0, 0, 2, 2, -1, 1),
        SLICE(0, 1, 2, 2, 1, 2),
        SLICE(0, 0, 2, 2, m, 1),
        SLICE(0, 0, 2, 2, INT64_MIN, 1),
        SLICE(0, 0, big, 2, 1, 1),
        SLICE(0, 0, big, 2, big, 1),
        SLICE(0, 0, -1, 1, 1, 1),
        SLICE(m, 0, 2, 1, m, 1),
        {MOVE("slice"), .inputs = 1, .in = {x}, .attrs = 3,
         .attr = {OP_A_DIMS("start", 1, D(0)), OP_A_DIMS("size", 2, D(1, 1)), TN_A_INTS("step", 2, D(1, 1))}},
        {MOVE("slice"), .inputs = 1, .in = {x}, .attrs = 3,
         .attr = {OP_A_DIMS("start", 2, D(0, 0)), OP_A_DIMS("size", 2, D(1, 1)), TN_A_INTS("step", 3, D(1, 1, 1))}},
        PAD(-1, 0, 0, 0, "constant"),
        PAD(0, 0, 0, -1, "edge"),
        PAD(0, 0, 0, 0, "mirror"),
        PAD(m, 0, 1, 0, "constant"),
        {MOVE("pad"), .inputs = 2, .in = {x, s}, .attrs = 3,
         .attr = {OP_A_DIMS("lo", 2, D(0, 0)), OP_A_DIMS("hi", 2, D(0, 0)), TN_A_STRING("mode", "edge", 4)}},
        {MOVE("pad"), .inputs = 2, .in = {x, three}, .attrs = 2,
         .attr = {OP_A_DIMS("lo", 2, D(0, 0)), OP_A_DIMS("hi", 2, D(0, 0))}},
        {MOVE("pad"), .inputs = 2, .in = {i32, s}, .attrs = 2,
         .attr = {OP_A_DIMS("lo", 2, D(0, 0)), OP_A_DIMS("hi", 2, D(0, 0))}},
        {MOVE("pad"), .inputs = 1, .in = {none}, .attrs = 3,
         .attr = {OP_A_DIMS("lo", 1, D(1)), OP_A_DIMS("hi", 1, D(0)), TN_A_STRING("mode", "wrap", 4)}},
        {MOVE("concat"), .inputs = 2, .in = {x, y}, .attrs = 1, .attr = {TN_A_INT("axis", 1)}},
        {MOVE("concat"), .inputs = 2, .in = {x, x}, .attrs = 1, .attr = {TN_A_INT("axis", 2)}},
        {MOVE("concat"), .inputs = 2, .in = {x, x}, .attrs = 1, .attr = {TN_A_INT("axis", -1)}},
        {MOVE("concat"), .inputs = 2, .in = {x, three}, .attrs = 1, .attr = {TN_A_INT("axis", 0)}},
        {MOVE("concat"), .inputs = 2, .in = {x, i32}, .attrs = 1, .attr = {TN_A_INT("axis", 0)}},
        {MOVE("concat"), .inputs = 1, .in = {s}, .attrs = 1, .attr = {TN_A_INT("axis", 0)}},
        {INDEX("gather"), .inputs = 2, .in = {x, three}, .attrs = 1, .attr = {TN_A_INT("axis", 0)}},
        {INDEX("gather"), .inputs = 2, .in = {x, i32}, .attrs = 1, .attr = {TN_A_INT("axis", 2)}},
        {INDEX("gather"), .inputs = 2, .in = {x, i32}, .attrs = 1, .attr = {TN_A_INT("axis", -1)}},
        {INDEX("gather"), .inputs = 2, .in = {s, i32}, .attrs = 1, .attr = {TN_A_INT("axis", 0)}},
        IOTA(2, D(2, 3), 2, TN_I64),
        IOTA(0, NULL, 0, TN_I64),
        IOTA(1, D(2), 0, TN_STRING),
        IOTA(1, D(2), 0, TN_BOOL),
        IOTA(1, D(2), 0, 99),
        IOTA(1, D(-2), 0, TN_I64)};
    for (int i = 0; i < COUNT(cases); i++) {
        tn_tensor *out;
        tn_status status = op_try(&h, &cases[i], 0, &out);
        if (status != TN_ERR_MODEL && status != TN_ERR_USAGE && status != TN_ERR_LIMIT)
            fail_msg("case %d (%s): %s %s", i, cases[i].op->name, tn_status_name(status), tn_error_message());
        tn_tensor_destroy(out);
    }
    /* A view may have 2^40 elements; a copy of it is refused by the limit. */
    tn_tensor *one = op_values(&h, TN_F32, 0, NULL, (double[]){1}), *view;
    op_case wide = {MOVE("broadcast"), .inputs = 1, .in = {one}, .attrs = 1,
                    .attr = {OP_A_DIMS("shape", 1, D(1ll << 40))}};
    assert_int_equal(op_try(&h, &wide, 1 << 20, &view), TN_OK);
    assert_int_equal(tn_tensor_count(view), 1ll << 40);
    op_case copied = {MOVE("concat"), .inputs = 1, .in = {view}, .attrs = 1, .attr = {TN_A_INT("axis", 0)}};
    op_expect(&h, &copied, 1 << 20, TN_ERR_LIMIT);
    tn_tensor_destroy(view);
    op_harness_end(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reshape),   cmocka_unit_test(test_fit),      cmocka_unit_test(test_transpose),
        cmocka_unit_test(test_broadcast), cmocka_unit_test(test_slice),    cmocka_unit_test(test_pad),
        cmocka_unit_test(test_concat),    cmocka_unit_test(test_gather),   cmocka_unit_test(test_others),
        cmocka_unit_test(test_high_rank), cmocka_unit_test(test_failures), cmocka_unit_test(test_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
