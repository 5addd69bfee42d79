/* Twenty thousand random programs; see tests/random/test_programs.c. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "support/random_run.h"

static void test_many(void **s) {
    (void)s;
    uint64_t ran, failures = random_run(1, 20000, false, 0, &ran);
    printf("%" PRIu64 " seeds run, %" PRIu64 " do not hold\n", ran, failures);
    assert_int_equal(failures, 0);
}

/* Every thread count, the verifier after every pass. */
static void test_thorough(void **s) {
    (void)s;
    uint64_t ran, failures = random_run(1000000, 1500, true, 0, &ran);
    assert_int_equal(failures, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many), cmocka_unit_test(test_thorough)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
