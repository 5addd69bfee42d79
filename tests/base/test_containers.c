/* Vectors, maps, id sets, interned strings and text buffers, with every allocation failing in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs `body` with the n-th allocation failing for n = 1, 2, ... until it succeeds; nothing may stay allocated. `body`
   answers whether it succeeded, and must have failed with TN_ERR_MEMORY otherwise. */
static void fail_each(bool (*body)(tn_heap *heap)) {
    tn_heap *heap = tn_heap_create(NULL);
    bool done = false;
    uint64_t n = 0;
    while (!done) {
        for (int after = 0; after < 2; after++) {
            tn_error_clear();
            tn_heap_fail_at(heap, ++n, after);
            bool ok = body(heap);
            bool reached = tn_error_status() == TN_ERR_MEMORY;
            if (ok == reached)
                fail_msg("allocation %" PRIu64 " failed %d, but the answer was %d", n, reached, ok);
            assert_int_equal(tn_heap_in_use(heap), 0);
            done = ok;
            n -= after == 0;
        }
        assert_true(n < 10000);
    }
    assert_true(n > 1);
    tn_heap_fail_at(heap, 0, false);
    tn_heap_destroy(heap);
}

static void test_vec(void **state) {
    tn_u32_vec v = {0};
    (void)state;
    for (uint32_t i = 0; i < 10000; i++)
        assert_true(tn_vec_push(NULL, &v, i * 3));
    assert_int_equal(v.len, 10000);
    for (uint32_t i = 0; i < 10000; i++)
        assert_int_equal(v.data[i], i * 3);
    assert_true(tn_vec_reserve(NULL, &v, 100000));
    assert_true(v.cap >= 110000);
    tn_vec_free(NULL, &v);
    assert_true(v.data == NULL && v.len == 0 && v.cap == 0);
    v.len = v.cap = UINT32_MAX; /* only looked at */
    assert_false(tn_vec_reserve(NULL, &v, 1));
    assert_int_equal(tn_error_status(), TN_ERR_LIMIT);
    void *data = NULL;
    uint32_t cap = 0;
    assert_false(tn_vec_reserve_raw(NULL, &data, 0, &cap, UINT32_MAX, SIZE_MAX / 2));
    assert_int_equal(tn_error_status(), TN_ERR_LIMIT);
    assert_true(data == NULL && cap == 0);
}

static bool vec_body(tn_heap *heap) {
    tn_i64_vec v = {0};
    bool ok = true;
    for (int64_t i = 0; ok && i < 300; i++) {
        uint32_t before = v.len;
        ok = tn_vec_push(heap, &v, i);
        ok = ok && v.data[i] == i;
        if (!ok && v.len != before)
            fail_msg("a failed push changed the vector");
    }
    tn_vec_free(heap, &v);
    return ok;
}

static void test_map(void **state) {
    tn_map map = {0};
    uint64_t value, expected[512], key_count = 0;
    bool present[512] = {0};
    (void)state;
    assert_false(tn_map_get(&map, 0, &value));
    assert_false(tn_map_remove(&map, 0));
    srand(7);
    for (int step = 0; step < 200000; step++) { /* against a plain table; keys with few different low bits */
        int k = rand() % 512;
        uint64_t key = (uint64_t)k << (k % 3 * 20);
        if (rand() % 3) {
            key_count += !present[k];
            present[k] = true;
            expected[k] = (uint64_t)step;
            assert_true(tn_map_put(NULL, &map, key, (uint64_t)step));
        } else {
            assert_int_equal(tn_map_remove(&map, key), present[k]);
            key_count -= present[k];
            present[k] = false;
        }
        assert_int_equal(map.len, key_count);
        int other = rand() % 512;
        uint64_t other_key = (uint64_t)other << (other % 3 * 20);
        assert_int_equal(tn_map_get(&map, other_key, &value), present[other]);
        if (present[other])
            assert_int_equal(value, expected[other]);
    }
    assert_true(map.cap <= 2048); /* removed keys do not pile up */
    assert_true(tn_map_put(NULL, &map, UINT64_MAX, 1) && tn_map_get(&map, UINT64_MAX, NULL));
    tn_map_free(NULL, &map);
    assert_int_equal(map.cap, 0);
    assert_false(tn_map_get(&map, UINT64_MAX, NULL));
}

static bool map_body(tn_heap *heap) {
    tn_map map = {0};
    bool ok = true;
    uint64_t value;
    for (uint64_t i = 0; ok && i < 500; i++) {
        ok = tn_map_put(heap, &map, i * i, i);
        if (!ok && (map.len != i || tn_map_get(&map, i * i, &value)))
            fail_msg("a failed put changed the map");
    }
    for (uint64_t i = 0; i < map.len; i++)
        if (!tn_map_get(&map, i * i, &value) || value != i)
            fail_msg("lost a key");
    tn_map_free(heap, &map);
    return ok;
}

static bool equal_mod(const void *ctx, uint32_t id) {
    return id == *(const uint32_t *)ctx;
}

static bool idset_body(tn_heap *heap) {
    tn_idset set = {0};
    bool ok = true;
    uint32_t count = 0;
    for (uint32_t i = 1; ok && i < 400; i++) {
        ok = tn_idset_add(heap, &set, i / 3, i); /* collisions */
        count += ok;
    }
    for (uint32_t i = 1; i < 400; i++)
        if (tn_idset_find(&set, i / 3, equal_mod, &i) != (i <= count ? i : 0))
            fail_msg("id %u", i);
    tn_idset_free(heap, &set);
    return ok;
}

static void test_strings(void **state) {
    tn_strings strings;
    char text[32];
    (void)state;
    assert_true(tn_strings_init(&strings, NULL));
    assert_int_equal(tn_strings_add(&strings, "", 0), 0);
    assert_int_equal(tn_strings_find(&strings, NULL, 0), 0);
    assert_string_equal(tn_strings_text(&strings, 0), "");
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 20000; i++) {
            size_t length = (size_t)snprintf(text, sizeof text, "name_%u", i);
            assert_int_equal(tn_strings_add(&strings, text, length), i + 1);
        }
    for (uint32_t i = 0; i < 20000; i++) {
        size_t length = (size_t)snprintf(text, sizeof text, "name_%u", i);
        assert_int_equal(tn_strings_find(&strings, text, length), i + 1);
        assert_string_equal(tn_strings_text(&strings, i + 1), text);
        assert_int_equal(tn_strings_length(&strings, i + 1), length);
    }
    assert_int_equal(tn_strings_find(&strings, "name", 4), UINT32_MAX);
    uint32_t a = tn_strings_add(&strings, "a\0b", 3), b = tn_strings_add(&strings, "a\0c", 3),
             c = tn_strings_add(&strings, "a", 1), d = tn_strings_add(&strings, "\0", 1);
    assert_true(a != b && b != c && a != c && d != 0);
    assert_memory_equal(tn_strings_text(&strings, a), "a\0b", 4);
    assert_int_equal(tn_strings_add(&strings, "x", (size_t)UINT32_MAX + 1), UINT32_MAX);
    assert_int_equal(tn_error_status(), TN_ERR_LIMIT);
    assert_string_equal(tn_strings_text(&strings, UINT32_MAX), "");
    assert_int_equal(tn_strings_length(&strings, UINT32_MAX), 0);
    tn_strings_free(&strings);
}

static bool strings_body(tn_heap *heap) {
    tn_strings strings;
    char text[64];
    if (!tn_strings_init(&strings, heap))
        return false;
    bool ok = true;
    uint32_t count = 0;
    for (uint32_t i = 0; ok && i < 300; i++) {
        int length = snprintf(text, sizeof text, "a rather long name %u", i);
        ok = tn_strings_add(&strings, text, (size_t)length) == i + 1;
        count += ok;
    }
    for (uint32_t i = 0; i < 300; i++) {
        int length = snprintf(text, sizeof text, "a rather long name %u", i);
        if (tn_strings_find(&strings, text, (size_t)length) != (i < count ? i + 1 : UINT32_MAX))
            fail_msg("string %u", i);
    }
    tn_strings_free(&strings);
    return ok;
}

static void test_hash(void **state) {
    unsigned char bytes[100];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    for (size_t size = 0; size < sizeof bytes; size++) { /* every bit of the input and the length changes the hash */
        uint64_t hash = tn_hash_bytes(bytes, size, 1);
        assert_true(hash == tn_hash_bytes(bytes, size, 1));
        assert_true(hash != tn_hash_bytes(bytes, size, 2));
        assert_true(hash != tn_hash_bytes(bytes, size + 1, 1) || size + 1 == sizeof bytes);
        for (size_t bit = 0; bit < size * 8; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            uint64_t changed = tn_hash_bytes(bytes, size, 1);
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            int flips = __builtin_popcountll(hash ^ changed);
            if (flips < 10 || flips > 54)
                fail_msg("bit %zu of %zu bytes flips %d bits of the hash", bit, size, flips);
        }
    }
    assert_true(tn_hash_mix(1, 2) != tn_hash_mix(2, 1));
    assert_true(tn_hash_mix(0, 0) != tn_hash_mix(0, 1));
    char zeros[64] = {0};
    for (size_t size = 1; size < 64; size++)
        assert_true(tn_hash_bytes(zeros, size, 0) != tn_hash_bytes(zeros, size - 1, 0));
}

static void check_text(tn_text *text, const char *expected) {
    assert_false(text->failed);
    assert_string_equal(text->data, expected);
    assert_int_equal(text->len, strlen(expected));
    tn_text_free(text);
}

static void test_text(void **state) {
    tn_text text;
    (void)state;
    tn_text_init(&text, NULL);
    assert_null(text.data);
    tn_text_add(&text, "");
    assert_string_equal(text.data, "");
    tn_text_add(&text, "a");
    tn_text_bytes(&text, "bcd", 2);
    tn_text_printf(&text, "-%d-%s-", 5, "x");
    tn_text_f64(&text, 0.1);
    tn_text_add(&text, " ");
    tn_text_f32(&text, 0.1f);
    check_text(&text, "abc-5-x-0.1 0.1");
    for (size_t n = 0; n < 300; n++) { /* formatted text around the room that is there */
        char *expected = malloc(n + 2);
        memset(expected, 'q', n);
        memcpy(expected + n, "!", 2);
        tn_text_printf(&text, "%.*s!", (int)n, expected);
        check_text(&text, expected);
        free(expected);
    }
    tn_text_quoted(&text, "a\"b\\c\n\t\r\x01\x7f\xff\xc3\xa9\xc3", 14);
    check_text(&text, "\"a\\\"b\\\\c\\n\\t\\x0d\\x01\\x7f\\xff\xc3\xa9\\xc3\"");
    tn_text_quoted(&text, "a\0b", 3);
    check_text(&text, "\"a\\x00b\"");
    tn_text_quoted(&text, NULL, 0);
    check_text(&text, "\"\"");
    tn_text_json(&text, "a\"b\\c\n\t\r\x01\x7f\xff\xc3\xa9\xc3", 14);
    check_text(&text, "\"a\\\"b\\\\c\\n\\t\\u000d\\u0001\\u007f\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\"");
    tn_text_bytes(&text, "x", SIZE_MAX);
    assert_true(text.failed);
    assert_int_equal(tn_error_status(), TN_ERR_LIMIT);
    tn_text_add(&text, "ignored");
    assert_int_equal(text.len, 0);
    tn_text_free(&text);
    assert_false(text.failed);
}

static bool text_body(tn_heap *heap) {
    tn_text text;
    char filler[200];
    memset(filler, 'x', sizeof filler - 1);
    filler[sizeof filler - 1] = '\0';
    tn_text_init(&text, heap);
    for (int i = 0; i < 50; i++) {
        tn_text_printf(&text, "%d %s", i, filler);
        tn_text_quoted(&text, "a\nb", 3);
        tn_text_json(&text, "\xff", 1);
        tn_text_f64(&text, 1.5);
    }
    bool ok = !text.failed;
    if (text.data && strlen(text.data) != text.len)
        fail_msg("the text is not ended");
    tn_text_free(&text);
    return ok;
}

static bool arena_body(tn_heap *heap) {
    tn_arena arena;
    bool ok = true;
    tn_arena_init(&arena, heap);
    for (size_t i = 0; ok && i < 300; i++)
        ok = tn_arena_alloc(&arena, i * 50) != NULL;
    tn_arena_free(&arena);
    return ok;
}

static void test_failures(void **state) {
    (void)state;
    fail_each(vec_body);
    fail_each(map_body);
    fail_each(idset_body);
    fail_each(strings_body);
    fail_each(text_body);
    fail_each(arena_body);
}

/* Strings that were loaded are found, and stay what they are when others are added. */
static void test_loaded_strings(void **state) {
    (void)state;
    static const char bytes[] = "a\0ab\0b\0ba\0c";
    const uint32_t lengths[] = {1, 2, 1, 2, 1};
    uint8_t raw[sizeof lengths];
    memcpy(raw, lengths, sizeof raw);
    tn_strings s;
    uint32_t record;
    assert_true(tn_strings_init(&s, NULL));
    assert_true(tn_strings_load(&s, 5, raw, bytes, sizeof bytes, &record));
    for (int added = 0; added < 2; added++) {
        assert_int_equal(tn_strings_find(&s, "a", 1), 1);
        assert_int_equal(tn_strings_find(&s, "ab", 2), 2);
        assert_int_equal(tn_strings_find(&s, "ba", 2), 4);
        assert_int_equal(tn_strings_find(&s, "c", 1), 5);
        assert_int_equal(tn_strings_find(&s, "aa", 2), UINT32_MAX);
        assert_int_equal(tn_strings_find(&s, "d", 1), UINT32_MAX);
        assert_int_equal(tn_strings_find(&s, "", 0), 0);
        if (!added)
            assert_int_equal(tn_strings_append(&s, "ab", 2), 6);
        assert_int_equal(tn_strings_add(&s, "ab", 2), 2);
        assert_int_equal(tn_strings_add(&s, "new", 3), 7);
    }
    tn_strings_free(&s);
    static const struct {
        const char *bytes;
        size_t size;
        uint32_t first, second, wrong;
    } bad[] = {{"b\0a", 4, 1, 1, 2},          {"a\0a", 4, 1, 1, 2}, {"\0a", 3, 0, 1, 1},
               {"a\0b", 3, 1, 1, 2},          {"abab", 5, 1, 2, 1}, {"a\0b\0\0", 5, 1, 1, 3},
               {"a\0b", 4, 1, 0xffffffff, 2}, {"a\0b", 0, 1, 1, 1}, {"a\0\0b", 5, 1, 2, 2}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        memcpy(raw, &bad[i].first, 4);
        memcpy(raw + 4, &bad[i].second, 4);
        assert_true(tn_strings_init(&s, NULL));
        assert_false(tn_strings_load(&s, 2, raw, bad[i].bytes, bad[i].size, &record));
        assert_int_equal(record, bad[i].wrong);
        tn_strings_free(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vec),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_loaded_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
