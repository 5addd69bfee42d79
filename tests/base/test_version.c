/* tn_version says what the headers say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <tenon/tenon.h>

static void test_version(void **state) {
    char expected[64];
    (void)state;
    snprintf(expected, sizeof expected, "%d.%d.%d", TN_VERSION_MAJOR, TN_VERSION_MINOR, TN_VERSION_PATCH);
    assert_string_equal(tn_version(), expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_version)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
