/* Edge cases of the elementwise rows; every row of Tenon's table must belong to a family that is tested. TENON_TEST_SEED sets the seed. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/edges.h"

static const op_family_test families[] = {
    {&tn_family_unary, edges_elementwise},
    {&tn_family_binary, edges_elementwise},
    {&tn_family_compare, edges_elementwise},
    {&tn_family_select_cast, edges_select_cast},
};
/* These have programs of their own: test_move, test_reduce, test_contract on this harness, onnx/test_string; control flow, effects and
   definitions are not of the tensor kind. */
static const tn_op_family *const elsewhere[] = {
    &tn_family_move,      &tn_family_index,          &tn_family_scatter,    &tn_family_dynamic,    &tn_family_scan,
    &tn_family_sort,      &tn_family_select_data,    &tn_family_window_arg, &tn_family_random,     &tn_family_reduce,
    &tn_family_window,    &tn_family_contract,       &tn_family_sequence,   &tn_family_control,    &tn_family_debug,
    &tn_family_composite, &tn_family_composite_norm, &tn_family_random_mt,  &tn_family_string_cast};

static void test_family(void **state) {
    const op_family_test *test = *state;
    for (uint32_t i = 0; i < test->family->count; i++) {
        op_harness h;
        op_harness_begin(&h);
        uint64_t seed = h.seed;
        test->check(&h, &test->family->rows[i]);
        print_message("%s: %" PRIu64 " evaluations, seed %" PRIu64 "\n", test->family->rows[i].name, h.checks, seed);
        assert_true(h.checks > 0);
        op_harness_end(&h);
    }
}

static bool in_family(const tn_op_family *family, const tn_op *op) {
    return op >= family->rows && op < family->rows + family->count;
}

static void test_every_row_has_cases(void **state) {
    (void)state;
    const tn_op_table *table = tn_ops_table();
    for (uint32_t i = 0; i < table->count; i++) {
        const tn_op *op = table->rows[i];
        bool found = (op->traits & (TN_CONSTANT | TN_TERMINATOR)) != 0; /* no eval */
        for (size_t k = 0; k < sizeof families / sizeof *families; k++)
            found = found || in_family(families[k].family, op);
        for (size_t k = 0; k < sizeof elsewhere / sizeof *elsewhere; k++)
            found = found || in_family(elsewhere[k], op);
        if (!found)
            fail_msg("no edge cases for %s", op->name);
        assert_ptr_equal(tn_op_find(table, op->name, strlen(op->name)), op);
    }
}

static const tn_op *row(const char *name) {
    const tn_op *op = tn_op_find(tn_ops_table(), name, strlen(name));
    assert_non_null(op);
    return op;
}

/* 2^33 elements by stride 0: views and pieces of them take no memory to speak of, what would hold them all is refused. */
static void test_huge_views(void **state) {
    (void)state;
    static const int64_t huge[2] = {(int64_t)1 << 16, (int64_t)1 << 17}, swap[2] = {1, 0}, three[1] = {3};
    static const int64_t start[2] = {65535, 0}, size[2] = {1, 3}, step[2] = {-1, 40000}, zero[2] = {0, 0},
                         one[2] = {1, 1};
    static const int64_t more[3] = {2, (int64_t)1 << 16, (int64_t)1 << 17},
                         endless[3] = {1 << 8, (int64_t)1 << 16, (int64_t)1 << 17}, axis[1] = {0},
                         flat[1] = {(int64_t)1 << 33};
    static const double rows[3] = {0, -1, 65535};
    op_harness h;
    op_harness_begin(&h);
    tn_tensor *seven = op_values(&h, TN_F32, 0, NULL, (double[]){7}), *x = op_expand(&h, seven, 2, huge, -1);
    const size_t limit = (size_t)1 << 20;
    const op_case fine[] = {
        {.op = row("transpose"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {TN_A_INTS("perm", 2, swap)}},
        {.op = row("broadcast"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {OP_A_DIMS("shape", 3, more)}},
        {.op = row("slice"),
         .inputs = 1,
         .in = {x},
         .attrs = 3,
         .attr = {OP_A_DIMS("start", 2, start), OP_A_DIMS("size", 2, size), TN_A_INTS("step", 2, step)}},
        {.op = row("shape_of"), .inputs = 1, .in = {x}},
    };
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        tn_tensor *out;
        op_expect(&h, &fine[i], limit, TN_OK);
        assert_int_equal(op_try(&h, &fine[i], limit, &out), TN_OK);
        if (out->dtype == TN_F32)
            assert_true(op_get(out, out->count - 1) == 7);
        tn_tensor_destroy(out);
    }
    tn_tensor *whole = op_expand(&h, seven, 1, flat, -1), *index = op_values(&h, TN_I64, 1, three, rows);
    op_expect(
        &h,
        &(op_case){.op = row("gather"), .inputs = 2, .in = {whole, index}, .attrs = 1, .attr = {TN_A_INT("axis", 0)}},
        limit, TN_OK);
    const op_case refused[] = {
        {.op = row("neg"), .inputs = 1, .in = {x}},
        {.op = row("broadcast"), .inputs = 1, .in = {x}, .attrs = 1, .attr = {OP_A_DIMS("shape", 3, endless)}},
        {.op = row("concat"), .inputs = 2, .in = {x, x}, .attrs = 1, .attr = {TN_A_INT("axis", 1)}},
        {.op = row("pad"),
         .inputs = 2,
         .in = {x, seven},
         .attrs = 2,
         .attr = {OP_A_DIMS("lo", 2, one), OP_A_DIMS("hi", 2, zero)}},
        {.op = row("gather"), .inputs = 2, .in = {x, index}, .attrs = 1, .attr = {TN_A_INT("axis", 0)}},
        {.op = row("reduce_sum"),
         .inputs = 1,
         .in = {op_expand(&h, seven, 3, more, -1)},
         .attrs = 1,
         .attr = {TN_A_INTS("axes", 1, axis)}},
        {.op = row("iota"),
         .attrs = 3,
         .attr = {OP_A_DIMS("shape", 2, huge), TN_A_INT("axis", 0), TN_A_DTYPE("dtype", TN_I64)}},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        op_expect(&h, &refused[i], limit / 4, TN_ERR_LIMIT);
    op_harness_end(&h);
}

int main(void) {
    struct CMUnitTest tests[2 + sizeof families / sizeof *families] = {cmocka_unit_test(test_every_row_has_cases),
                                                                       cmocka_unit_test(test_huge_views)};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        tests[i + 2] = (struct CMUnitTest){.name = families[i].family->rows[0].name,
                                           .test_func = test_family,
                                           .initial_state = (void *)(uintptr_t)&families[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
