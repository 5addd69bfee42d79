/* The strided walker against a plain loop over all indices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ir/tensor.h"

static uint64_t seed = 7;
static unsigned random_below(unsigned n) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)((seed * 0x9e3779b97f4a7c15u >> 33) % n);
}

typedef struct visit {
    int operands;
    int64_t elements, rows;
    int64_t seen[8][20000]; /* byte offsets in order */
    const char *base[8];
    const tn_walk_operand *operand;
} visit;

static void record(void *ctx, int64_t n, void *const *data, const int64_t *strides) {
    visit *v = ctx;
    assert_true(n > 0);
    v->rows++;
    for (int64_t i = 0; i < n; i++, v->elements++)
        for (int k = 0; k < v->operands; k++)
            v->seen[k][v->elements] = (char *)data[k] - v->base[k] + i * strides[k] * (int64_t)v->operand[k].element;
}

static char arena[4096];

static void test_random(void **state) {
    (void)state;
    visit *v = calloc(1, sizeof *v), *parts = calloc(1, sizeof *v);
    assert_non_null(v);
    assert_non_null(parts);
    printf("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 4000; round++) {
        int rank = (int)random_below(6), operands = (int)random_below(8) + 1;
        int64_t dims[6], strides[8][6], count = 1;
        tn_walk_operand operand[8];
        for (int i = 0; i < rank; i++)
            count *= dims[i] = (int64_t)random_below(round % 10 == 0 ? 5 : 4) + (round % 10 != 0);
        int mode = (int)random_below(3); /* all row-major, part of it, anything */
        for (int k = 0; k < operands; k++) {
            int64_t stride = 1;
            for (int i = rank - 1; i >= 0; i--) {
                strides[k][i] = stride;
                if (mode == 2 || (mode == 1 && random_below(4) == 0))
                    strides[k][i] = (int64_t)random_below(7) - 3;
                if (dims[i] == 1 && random_below(2))
                    strides[k][i] = INT64_MAX - (int64_t)random_below(3);
                stride *= dims[i];
            }
            operand[k] = (tn_walk_operand){arena + 2048, strides[k], (size_t)1 << random_below(2)};
            v->base[k] = parts->base[k] = arena + 2048;
        }
        v->operand = parts->operand = operand;
        v->operands = parts->operands = operands;
        v->elements = v->rows = parts->elements = parts->rows = 0;
        tn_walk(rank, dims, operands, operand, record, v);
        assert_int_equal(v->elements, count);
        int64_t rows = tn_walk_rows(rank, dims, operands, operand);
        assert_int_equal(rows, v->rows);
        if (mode == 0 && count > 0)
            assert_int_equal(rows, 1);
        for (int64_t e = 0; e < count; e++)
            for (int k = 0; k < operands; k++) {
                int64_t at = 0, rest = e;
                for (int i = rank - 1; i >= 0; i--) {
                    if (dims[i] > 1)
                        at += rest % dims[i] * strides[k][i];
                    rest /= dims[i];
                }
                assert_int_equal(v->seen[k][e], at * (int64_t)operand[k].element);
            }
        for (int64_t begin = 0; begin < rows;) {
            int64_t end = begin + 1 + random_below(3);
            tn_walk_range(rank, dims, operands, operand, begin, end, record, parts);
            begin = end;
        }
        assert_int_equal(parts->elements, count);
        for (int k = 0; k < operands; k++)
            assert_memory_equal(parts->seen[k], v->seen[k], (size_t)count * sizeof(int64_t));
    }
    free(v);
    free(parts);
}

static void test_edges(void **state) {
    (void)state;
    static visit v;
    tn_walk_operand operand = {arena, NULL, 4};
    v.operand = &operand;
    v.operands = 1;
    v.base[0] = arena;
    tn_walk(0, NULL, 1, &operand, record, &v);
    assert_int_equal(v.rows, 1);
    assert_int_equal(v.elements, 1);
    const int64_t dims[3] = {3, 0, INT64_MAX}, strides[3] = {1, 1, 1};
    operand.strides = strides;
    tn_walk(3, dims, 1, &operand, record, &v);
    assert_int_equal(v.rows, 1);
    assert_int_equal(tn_walk_rows(3, dims, 1, &operand), 0);
    tn_walk_range(0, NULL, 1, &operand, 5, 9, record, &v);
    assert_int_equal(v.rows, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_edges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
