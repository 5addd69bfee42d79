/* The per-thread error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/utf8.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void test_parts(void **state) {
    (void)state;
    tn_error_clear();
    assert_string_equal(tn_error_message(), "");
    tn_fail_where("nothing to add to");
    tn_fail_hint("nothing to add to");
    assert_string_equal(tn_error_message(), "");
    assert_int_equal(tn_fail(TN_ERR_MODEL, "bad %s %d", "axis", 7), TN_ERR_MODEL);
    assert_string_equal(tn_error_message(), "bad axis 7");
    tn_fail_where("node %d", 3);
    tn_fail_where("graph '%s'", "g");
    tn_fail_hint("an axis below %d", 4);
    tn_fail_hint("a later hint is less precise");
    assert_string_equal(tn_error_what(), "bad axis 7");
    assert_string_equal(tn_error_where(), "node 3\ngraph 'g'");
    assert_string_equal(tn_error_hint(), "an axis below 4");
    assert_string_equal(tn_error_message(), "bad axis 7\n  where: node 3\n  where: graph 'g'\n  hint: an axis below 4");
    assert_int_equal(tn_error_status(), TN_ERR_MODEL);
    tn_fail(TN_ERR_IO, "again: %s", tn_error_what()); /* an argument inside the buffer that is overwritten */
    assert_string_equal(tn_error_message(), "again: bad axis 7");
    tn_error_clear();
    assert_int_equal(tn_error_status(), TN_OK);
    assert_string_equal(tn_error_message(), "");
}

static void test_names(void **state) {
    (void)state;
    for (int i = 0; i <= TN_ERR_INTERNAL; i++) {
        assert_true(strlen(tn_status_name((tn_status)i)) > 1);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(tn_status_name((tn_status)i), tn_status_name((tn_status)j));
    }
    assert_string_equal(tn_status_name(TN_OK), "ok");
    assert_string_equal(tn_status_name((tn_status)99), "unknown status");
    assert_string_equal(tn_status_name((tn_status)-1), "unknown status");
}

static void test_hostile_bytes(void **state) {
    (void)state;
    tn_fail(TN_ERR_MODEL, "name '%s'",
            "a\n\t\r\x1b[31m\x7f\xff\xc3\xa9\xe2\x80\xae\xc2\x9b\xf0\x9f\x98\x80\xed\xa0\x80\\");
    assert_string_equal(tn_error_what(), "name 'a\\n\\t\\r\\x1b[31m\\x7f\\xff\xc3\xa9\\u202e\\u009b\xf0\x9f\x98\x80"
                                         "\\xed\\xa0\\x80\\'");
    tn_fail_where("forged\n  hint: %s", "x\ny");
    tn_fail_where("second");
    assert_string_equal(tn_error_where(), "forged\\n  hint: x\\ny\nsecond");
}

/* Every prefix of well-formed text stays well formed when it is cut, and says that it was. */
static void test_truncation(void **state) {
    static char text[5000];
    (void)state;
    for (size_t shift = 0; shift < 7; shift++) {
        memset(text, 'x', shift);
        size_t n = shift;
        while (n + 4 < sizeof text) {
            memcpy(text + n, n % 2 ? "\xe2\x82\xac" : "\xc3\xa9", n % 2 ? 3 : 2);
            n += n % 2 ? 3 : 2;
        }
        text[n] = '\0';
        tn_fail(TN_ERR_MODEL, "%s", text);
        tn_fail_where("%s", text);
        tn_fail_where("%s", text);
        tn_fail_hint("%s", text);
        const char *const parts[] = {tn_error_what(), tn_error_where(), tn_error_hint(), tn_error_message()};
        for (int p = 0; p < 4; p++) {
            size_t length = strlen(parts[p]);
            assert_null(strstr(parts[p], "\\x")); /* half a character would show as an escape */
            for (size_t i = 0; i < length;) {
                size_t step = tn_utf8_next(parts[p] + i, length - i, NULL);
                assert_int_not_equal(step, 0);
                i += step;
            }
            assert_true(length > 400);
            assert_string_equal(parts[p] + length - 3, "...");
        }
    }
    memset(text, '\n', sizeof text - 1); /* escapes are not cut either */
    tn_fail(TN_ERR_MODEL, "%s", text);
    size_t length = strlen(tn_error_what());
    assert_true(length > 1000 && length < 1024);
    for (size_t i = 0; i + 3 < length; i += 2)
        assert_memory_equal(tn_error_what() + i, "\\n", 2);
    char exact[1024];
    memset(exact, 'y', 1023);
    exact[1023] = '\0';
    tn_fail(TN_ERR_MODEL, "%s", exact); /* what just fits is not cut */
    assert_string_equal(tn_error_what(), exact);
}

static void test_many_lines(void **state) {
    (void)state;
    tn_fail(TN_ERR_LIMIT, "deep");
    for (int i = 0; i < 5000; i++)
        tn_fail_where("%c", 'a' + i % 26);
    tn_fail_hint("less deep");
    const char *message = tn_error_message();
    assert_true(strlen(message) < 5120);
    assert_non_null(strstr(message, "...\n  hint: less deep"));
    assert_memory_equal(message, "deep\n  where: a\n  where: b\n", 26);
}

static void test_save_restore(void **state) {
    tn_error_record record;
    (void)state;
    tn_fail(TN_ERR_INPUT, "first");
    tn_fail_where("here");
    tn_fail_hint("so");
    tn_error_save(&record);
    tn_fail(TN_ERR_IO, "second");
    assert_int_equal(tn_error_restore(&record), TN_ERR_INPUT);
    assert_string_equal(tn_error_message(), "first\n  where: here\n  hint: so");
}

static tn_status tried(tn_status status, int *after) {
    TN_TRY(status);
    ++*after;
    return TN_OK;
}

static void test_try(void **state) {
    int after = 0;
    (void)state;
    assert_int_equal(tried(TN_ERR_IO, &after), TN_ERR_IO);
    assert_int_equal(after, 0);
    assert_int_equal(tried(TN_OK, &after), TN_OK);
    assert_int_equal(after, 1);
}

static void *other_thread(void *arg) {
    (void)arg;
    bool empty = tn_error_status() == TN_OK && tn_error_message()[0] == '\0';
    tn_fail(TN_ERR_MEMORY, "of the other thread");
    return empty ? "" : NULL;
}

static void test_threads(void **state) {
    pthread_t thread;
    void *answer;
    (void)state;
    tn_fail(TN_ERR_IO, "of this thread");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
    pthread_join(thread, &answer);
    assert_non_null(answer);
    assert_string_equal(tn_error_message(), "of this thread");
}

static void test_utf8(void **state) {
    static const struct {
        const char *bytes;
        size_t length;
        uint32_t code;
    } rows[] = {{"a", 1, 'a'},
                {"\xc3\xa9", 2, 0xE9},
                {"\xe2\x82\xac", 3, 0x20AC},
                {"\xf0\x9f\x98\x80", 4, 0x1F600},
                {"\xf4\x8f\xbf\xbf", 4, 0x10FFFF},
                {"\xf4\x90\x80\x80", 0, 0},
                {"\xc0\x80", 0, 0},
                {"\xc1\xbf", 0, 0},
                {"\xe0\x9f\xbf", 0, 0},
                {"\xf0\x8f\xbf\xbf", 0, 0},
                {"\xed\x9f\xbf", 3, 0xD7FF},
                {"\xed\xa0\x80", 0, 0},
                {"\xee\x80\x80", 3, 0xE000},
                {"\x80", 0, 0},
                {"\xe2\x82", 0, 0},
                {"\xc3", 0, 0},
                {"\xc3x", 0, 0},
                {"\xf5\x80\x80\x80", 0, 0},
                {"\xff", 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t code = 0;
        assert_int_equal(tn_utf8_next(rows[i].bytes, strlen(rows[i].bytes), &code), rows[i].length);
        if (rows[i].length)
            assert_int_equal(code, rows[i].code);
    }
    assert_int_equal(tn_utf8_next("a", 0, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),      cmocka_unit_test(test_names),      cmocka_unit_test(test_hostile_bytes),
        cmocka_unit_test(test_truncation), cmocka_unit_test(test_many_lines), cmocka_unit_test(test_save_restore),
        cmocka_unit_test(test_try),        cmocka_unit_test(test_threads),    cmocka_unit_test(test_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
