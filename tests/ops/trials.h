/* Shared by the tests of rows that move single elements: every dtype, random shapes, checks of every bit. */
#ifndef TESTS_OPS_TRIALS_H
#define TESTS_OPS_TRIALS_H

#include "ops/naive.h"

static const tn_dtype any_dtypes[] = {TN_F32,    TN_U8,     TN_I8,   TN_U16,      TN_I16,    TN_I32,
                                      TN_I64,    TN_STRING, TN_BOOL, TN_F16,      TN_F64,    TN_U32,
                                      TN_U64,    TN_C64,    TN_C128, TN_BF16,     TN_U4,     TN_I4,
                                      TN_F4E2M1, TN_U2,     TN_I2,   TN_F8E4M3FN, TN_F8E5M2, TN_DTYPE_NONE};

static inline int random_shape(op_harness *h, int least, int most, int64_t *dims) {
    int rank = (int)pick(h, least, most);
    for (int i = 0; i < rank; i++)
        dims[i] = op_random_bits(h) % 12 == 0 ? 0 : pick(h, 1, rank > 3 ? 3 : 5);
    return rank;
}

typedef void trial(op_harness *h, tn_dtype dtype);

static inline void for_dtypes(const char *what, const tn_dtype *dtypes, int repeats, trial *run) {
    op_harness h;
    op_harness_begin(&h);
    uint64_t seed = h.seed;
    for (; *dtypes != TN_DTYPE_NONE; dtypes++)
        for (int i = 0; i < repeats; i++)
            run(&h, *dtypes);
    report(&h, what, seed);
    op_harness_end(&h);
}

/* All of the harness, and every bit against the oracle (which then also sees complex numbers and NaNs). */
static inline void check_bits(op_harness *h, const op_case *c) {
    tn_tensor *out, *want;
    op_check(h, c);
    assert_int_equal(op_try(h, c, 0, &out), TN_OK);
    want = tn_tensor_create((tn_dtype)out->dtype, out->rank, out->dims);
    assert_non_null(want);
    c->oracle(c, want);
    tn_tensor *flat = tn_tensor_contiguous(NULL, out);
    assert_non_null(flat);
    assert_true(tn_object_equal(tn_tensor_object(flat), tn_tensor_object(want)));
    tn_tensor_destroy(flat);
    tn_tensor_destroy(out);
    tn_tensor_destroy(want);
}

/* Indices in [-limit, limit). */
static inline tn_tensor *random_indices(op_harness *h, int rank, const int64_t *dims, int64_t limit) {
    tn_tensor *t = op_tensor(h, pick(h, 0, 1) ? TN_I64 : TN_I32, rank, dims);
    for (int64_t i = 0; i < t->count; i++)
        tn_store_i64((tn_dtype)t->dtype, t->data, i, pick(h, -limit, limit - 1));
    return t;
}

static inline const tn_op *primitive(const char *name) {
    const tn_op *op = tn_op_find(tn_ops_table(), name, strlen(name));
    if (op == NULL)
        fail_msg("no row %s", name);
    return op;
}

/* The integer value of the attribute, or `absent`. */
static inline int64_t attr_of(const op_case *c, const char *key, int64_t absent) {
    for (uint32_t i = 0; i < c->attrs; i++)
        if (strcmp(c->attr[i].key, key) == 0)
            return c->attr[i].as.i;
    return absent;
}

/* Each must be refused when it is built or evaluated, and not for want of memory. */
static inline void expect_refused(op_harness *h, const op_case *cases, int count) {
    for (int i = 0; i < count; i++) {
        tn_tensor *out;
        tn_status status = op_try(h, &cases[i], 0, &out);
        if (status != TN_ERR_MODEL && status != TN_ERR_USAGE && status != TN_ERR_INPUT &&
            status != TN_ERR_UNSUPPORTED && status != TN_ERR_LIMIT)
            fail_msg("case %d (%s): %s %s", i, cases[i].op->name, tn_status_name(status), tn_error_message());
        tn_tensor_destroy(out);
    }
}

#endif
