/* The memory planner: no two buffers that live together overlap; the arena reaches the lower bound on chains, and nearly on random sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "lower/planner.h"

static uint64_t state = 20261129;
static uint32_t draw(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static void check(uint32_t n, tn_lifetime *b, double slack) {
    size_t total, bound = tn_planner_bound(NULL, n, b);
    assert_int_equal(tn_planner_place(NULL, n, b, &total), TN_OK);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(b[i].offset % TN_PLAN_ALIGN == 0 && b[i].offset + b[i].bytes <= total);
        for (uint32_t j = 0; j < i; j++)
            if (b[i].first <= b[j].last && b[j].first <= b[i].last && b[i].bytes && b[j].bytes)
                assert_true(b[i].offset + b[i].bytes <= b[j].offset || b[j].offset + b[j].bytes <= b[i].offset);
    }
    if ((double)total > slack * (double)bound)
        fail_msg("%u buffers: arena %zu, bound %zu", n, total, bound);
}

static void test_chain(void **s) {
    (void)s;
    tn_lifetime b[20];
    for (int i = 0; i < 20; i++)
        b[i] = (tn_lifetime){.first = i, .last = i + 1, .bytes = 1000};
    check(20, b, 1.0);
    size_t total;
    assert_int_equal(tn_planner_place(NULL, 20, b, &total), TN_OK);
    assert_int_equal(total, 2 * 1024);
}

static void test_random(void **s) {
    (void)s;
    for (int round = 0; round < 200; round++) {
        tn_lifetime b[60];
        uint32_t n = 1 + draw(60);
        for (uint32_t i = 0; i < n; i++) {
            int32_t first = (int32_t)draw(50);
            b[i] =
                (tn_lifetime){.first = first, .last = first + (int32_t)draw(10), .bytes = draw(5) ? draw(100000) : 0};
        }
        check(n, b, 1.25);
    }
}

static void test_overflow(void **s) {
    (void)s;
    tn_lifetime b[2] = {{.bytes = SIZE_MAX / 3}, {.bytes = SIZE_MAX / 3}};
    size_t total;
    assert_int_equal(tn_planner_place(NULL, 2, b, &total), TN_ERR_LIMIT);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chain), cmocka_unit_test(test_random),
                                       cmocka_unit_test(test_overflow)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
