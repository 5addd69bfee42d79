/* Random programs: the compiled plan gives what the reference gives. TENON_SEED=N runs that one thoroughly, TENON_SEEDS=FIRST+COUNT
   a range. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/random_run.h"

static void test_seeds(void **s) {
    (void)s;
    uint64_t first = 1, count = 500, ran;
    const char *one = getenv("TENON_SEED"), *range = getenv("TENON_SEEDS");
    if (one) {
        first = strtoull(one, NULL, 10);
        count = 1;
    } else if (range) {
        char *plus;
        first = strtoull(range, &plus, 10);
        count = *plus == '+' ? strtoull(plus + 1, NULL, 10) : 1;
    }
    uint64_t failures = random_run(first, count, one != NULL, one || range ? 0 : 60, &ran);
    printf("seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " do not hold\n", first, first + ran - 1, failures);
    assert_int_equal(failures, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_seeds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
