/* Checksums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/checksum.h"

/* The published values of XXH64. */
static void checksums(void **state) {
    (void)state;
    assert_true(tn_checksum_of("", 0) == 0xEF46DB3751D8E999u);
    assert_true(tn_checksum_of("a", 1) == 0xD24EC4F1A98C6E5Bu);
    assert_true(tn_checksum_of("abc", 3) == 0x44BC2CF5AD770999u);
    uint8_t bytes[150];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7);
    for (size_t size = 0; size <= sizeof bytes; size++)
        for (size_t first = 0; first <= size; first++) {
            tn_checksum sum;
            tn_checksum_begin(&sum);
            tn_checksum_add(&sum, bytes, first);
            tn_checksum_add(&sum, bytes + first, size - first);
            assert_true(tn_checksum_end(&sum) == tn_checksum_of(bytes, size));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
