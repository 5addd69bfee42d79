/* Shared parts of the tests of rows that move, reduce and contract: index arithmetic of naive oracles, random shapes
   and elements. */
#ifndef TESTS_OPS_NAIVE_H
#define TESTS_OPS_NAIVE_H

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/op_harness.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static inline const tn_op *row(const tn_op_family *family, const char *name) {
    for (uint32_t i = 0; i < family->count; i++)
        if (strcmp(family->rows[i].name, name) == 0)
            return &family->rows[i];
    fail_msg("no row %s", name);
    return NULL;
}

/* Row-major index of element `linear`. */
static inline void unravel(int64_t linear, int rank, const int64_t *dims, int64_t *index) {
    for (int i = rank - 1; i >= 0; i--) {
        index[i] = linear % dims[i];
        linear /= dims[i];
    }
}

static inline int64_t ravel(int rank, const int64_t *dims, const int64_t *index) {
    int64_t linear = 0;
    for (int i = 0; i < rank; i++)
        linear = linear * dims[i] + index[i];
    return linear;
}

/* Copies one element between contiguous tensors of one dtype. */
static inline void copy_element(tn_tensor *to, int64_t i, const tn_tensor *from, int64_t j) {
    tn_dtype dtype = (tn_dtype)to->dtype;
    size_t size = (size_t)tn_dtype_bits(dtype) / 8;
    tn_string text;
    if (dtype == TN_STRING) {
        assert_int_equal(tn_tensor_get_string(from, j, &text), TN_OK);
        assert_int_equal(tn_tensor_set_string(to, i, text.data, text.length), TN_OK);
    } else if (dtype == TN_F4E2M1) {
        tn_store_f64(dtype, to->data, i, tn_load_f64(dtype, from->data, j));
    } else if (tn_dtype_is_subbyte(dtype)) {
        tn_store_i64(dtype, to->data, i, tn_load_i64(dtype, from->data, j));
    } else {
        memcpy((char *)to->data + (size_t)i * size, (const char *)from->data + (size_t)j * size, size);
    }
}

/* In [low, high]. */
static inline int64_t pick(op_harness *h, int64_t low, int64_t high) {
    return low + (int64_t)(op_random_bits(h) % (uint64_t)(high - low + 1));
}

/* Any bits (bool: 0 and 1; strings of 0 to 12 bytes). */
static inline tn_tensor *random_bits(op_harness *h, tn_dtype dtype, int rank, const int64_t *dims) {
    tn_tensor *t = op_tensor(h, dtype, rank, dims);
    if (dtype == TN_STRING) {
        for (int64_t i = 0; i < t->count; i++) {
            char text[12];
            for (int k = 0; k < 12; k++)
                text[k] = (char)op_random_bits(h);
            assert_int_equal(tn_tensor_set_string(t, i, text, (size_t)pick(h, 0, 12)), TN_OK);
        }
    } else {
        for (int64_t i = 0; i < t->count && tn_dtype_is_subbyte(dtype); i++)
            tn_store_i64(dtype == TN_F4E2M1 ? TN_U4 : dtype, t->data, i, (int64_t)op_random_bits(h));
        for (size_t i = 0; i < tn_tensor_bytes(t) && !tn_dtype_is_subbyte(dtype); i++)
            ((uint8_t *)t->data)[i] = (uint8_t)(dtype == TN_BOOL ? op_random_bits(h) >> 63 : op_random_bits(h));
    }
    return t;
}

/* Numbers whose sums and products of pairs are exact in double: floats k / 16 in [-4, 4], small integers. */
static inline tn_tensor *random_exact(op_harness *h, tn_dtype dtype, int rank, const int64_t *dims) {
    tn_tensor *t = op_random(h, dtype, rank, dims, op_random_bits(h) >> 62 != 0);
    for (int64_t i = 0; i < t->count && tn_dtype_is_float(dtype); i++)
        tn_store_f64(dtype, t->data, i, round(op_get(t, i) * 16) / 16);
    return t;
}

static inline void report(const op_harness *h, const char *what, uint64_t seed) {
    print_message("%s: %" PRIu64 " evaluations, seed %" PRIu64 "\n", what, h->checks, seed);
}

#endif
