/* Both back ends on random graphs whose sizes need not fit: all ways of running end in an error, or all in the same result.
   TENON_SEED: the first draw (default: the day); TENON_DRAWS: how many (200000). */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "support/mismatch.h"

static uint64_t number(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static void test_draws(void **state) {
    (void)state;
    uint64_t seed = number("TENON_SEED", (uint64_t)time(NULL) / 86400 * 1000000), draws = number("TENON_DRAWS", 200000);
    uint64_t count[4] = {0};
    printf("seed %" PRIu64 ", %" PRIu64 " draws\n", seed, draws);
    for (uint64_t i = 0; i < draws; i++) {
        char why[1200], *text = NULL;
        mismatch_outcome outcome = mismatch_draw(seed + i, why, sizeof why, &text);
        count[outcome]++;
        if (outcome == MISMATCH_DIFFERENT && count[outcome] <= 20) {
            printf("TENON_SEED=%" PRIu64 " TENON_DRAWS=1 ctest -V -R nightly/mismatch\n%s\n", seed + i, why);
            if (draws == 1 && text)
                printf("%s\n", text);
        }
        free(text);
    }
    printf("not built %" PRIu64 ", errors %" PRIu64 ", results %" PRIu64 ", different %" PRIu64 "\n",
           count[MISMATCH_NOT_BUILT], count[MISMATCH_ERROR], count[MISMATCH_RESULT], count[MISMATCH_DIFFERENT]);
    assert_int_equal(count[MISMATCH_DIFFERENT], 0);
    if (draws >= 1000) { /* the draws must be worth something */
        assert_true(count[MISMATCH_ERROR] > draws / 20);
        assert_true(count[MISMATCH_RESULT] > draws / 20);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_draws)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
