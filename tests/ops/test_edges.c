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
/* These have programs of their own: test_move, test_reduce, test_contract on this harness; control flow, effects and
   definitions are not of the tensor kind. */
static const tn_op_family *const elsewhere[] = {&tn_family_move,   &tn_family_index,    &tn_family_reduce,
                                                &tn_family_window, &tn_family_contract, &tn_family_control,
                                                &tn_family_debug,  &tn_family_composite};

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

int main(void) {
    struct CMUnitTest tests[1 + sizeof families / sizeof *families] = {cmocka_unit_test(test_every_row_has_cases)};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        tests[i + 1] = (struct CMUnitTest){.name = families[i].family->rows[0].name,
                                           .test_func = test_family,
                                           .initial_state = (void *)(uintptr_t)&families[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
