/* The wire reader: fields, packed lists, groups, and bytes that are no protobuf. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "onnx/tensor_file.h"
#include "onnx/wire.h"

#define BYTES(...) ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})

static int count_fields(const uint8_t *bytes, size_t size, tn_status *status) {
    tn_wire w;
    tn_wire_field f;
    int n = 0;
    tn_wire_init(&w, bytes, size);
    while (tn_wire_next(&w, &f))
        n++;
    *status = w.status;
    assert_false(tn_wire_next(&w, &f));
    return n;
}

static void good(const uint8_t *bytes, size_t size, int fields) {
    tn_status status;
    assert_int_equal(count_fields(bytes, size, &status), fields);
    assert_int_equal(status, TN_OK);
}

static void bad(const uint8_t *bytes, size_t size, const char *mentions) {
    tn_status status;
    tn_error_clear();
    (void)count_fields(bytes, size, &status);
    assert_int_equal(status, TN_ERR_MODEL);
    assert_non_null(strstr(tn_error_what(), mentions));
}

static void test_fields(void **state) {
    (void)state;
    good(NULL, 0, 0);
    good(BYTES(0x08, 0x01), 1);
    good(BYTES(0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01), 1);
    good(BYTES(0x0a, 0x00, 0x0d, 1, 2, 3, 4, 0x11, 1, 2, 3, 4, 5, 6, 7, 8), 3);
    tn_wire w;
    tn_wire_field f;
    const uint8_t bytes[] = {0x0a, 0x03, 'a', 'b', 'c', 0x15, 0, 0, 0x80, 0x3f, 0x98, 0x01, 0xac, 0x02};
    tn_wire_init(&w, bytes, sizeof bytes);
    assert_true(tn_wire_next(&w, &f));
    assert_int_equal(f.key, TN_WIRE_KEY(1, TN_WIRE_BYTES));
    assert_int_equal(f.size, 3);
    assert_memory_equal(f.data, "abc", 3);
    assert_true(tn_wire_next(&w, &f));
    assert_int_equal(f.key, TN_WIRE_KEY(2, TN_WIRE_FIXED32));
    assert_true(tn_wire_float(f.value) == 1.0f);
    assert_true(tn_wire_next(&w, &f));
    assert_int_equal(f.key, TN_WIRE_KEY(19, TN_WIRE_VARINT));
    assert_int_equal(f.value, 300);
    assert_false(tn_wire_next(&w, &f));
    assert_int_equal(w.status, TN_OK);
}

static void test_groups(void **state) {
    (void)state;
    good(BYTES(0x0b, 0x08, 0x01, 0x0c, 0x10, 0x02), 1); /* a group, then a field */
    good(BYTES(0x0b, 0x13, 0x08, 0x01, 0x14, 0x0c), 0); /* nested */
    bad(BYTES(0x0b, 0x08, 0x01), "never ends");
    bad(BYTES(0x0b, 0x14), "not begun"); /* ends another one */
    bad(BYTES(0x0c), "not begun");
    uint8_t deep[4096];
    memset(deep, 0x0b, sizeof deep);
    bad(deep, sizeof deep, "too deep");
}

static void test_malformed(void **state) {
    (void)state;
    bad(BYTES(0x08), "cut");
    bad(BYTES(0x08, 0x80), "cut");
    bad(BYTES(0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01), "ten bytes");
    bad(BYTES(0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02), "ten bytes");
    bad(BYTES(0x0a, 0x02, 'a'), "past the end");
    bad(BYTES(0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01), "past the end");
    bad(BYTES(0x0d, 1, 2, 3), "cut");
    bad(BYTES(0x09, 1, 2, 3, 4, 5, 6, 7), "cut");
    bad(BYTES(0x00, 0x01), "field number");
    bad(BYTES(0x0e, 0x01), "wire type");
    bad(BYTES(0x0f, 0x01), "wire type");
    bad(BYTES(0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0x00), "field number");
}

static void test_packed(void **state) {
    (void)state;
    tn_i64_vec v = {0};
    tn_wire_field f = {
        .key = TN_WIRE_KEY(1, TN_WIRE_BYTES), .data = (const uint8_t[]){0x01, 0xac, 0x02, 0x7f}, .size = 4};
    assert_int_equal(tn_wire_push_i64(NULL, &v, &f), TN_OK);
    tn_wire_field one = {.key = TN_WIRE_KEY(1, TN_WIRE_VARINT), .value = UINT64_MAX};
    assert_int_equal(tn_wire_push_i64(NULL, &v, &one), TN_OK);
    assert_int_equal(v.len, 4);
    assert_int_equal(v.data[0], 1);
    assert_int_equal(v.data[1], 300);
    assert_int_equal(v.data[2], 127);
    assert_int_equal(v.data[3], -1);
    tn_vec_free(NULL, &v);
    size_t n;
    f.size = 2; /* ends inside a varint */
    assert_int_equal(tn_wire_count(&f, TN_WIRE_VARINT, &n), TN_ERR_MODEL);
    f.size = 3;
    assert_int_equal(tn_wire_count(&f, TN_WIRE_FIXED32, &n), TN_ERR_MODEL);
    f.size = 4;
    assert_int_equal(tn_wire_count(&f, TN_WIRE_FIXED32, &n), TN_OK);
    assert_int_equal(n, 1);
    assert_int_equal(tn_wire_count(&f, TN_WIRE_FIXED64, &n), TN_ERR_MODEL);
}

/* Every byte string of a seeded kind ends, and what was written is read. */
static void test_random(void **state) {
    (void)state;
    unsigned seed = 20240611;
    print_message("seed %u\n", seed);
    for (int round = 0; round < 2000; round++) {
        tn_text out;
        tn_text_init(&out, NULL);
        int fields = 0;
        for (; fields < 8; fields++) {
            seed = seed * 1664525 + 1013904223;
            if (seed & 0x10000)
                tn_wire_put_varint(&out, 1 + (seed >> 20) % 40, (uint64_t)seed << (seed % 33));
            else
                tn_wire_put_bytes(&out, 1 + (seed >> 20) % 40, "0123456789abcdef", seed % 17);
        }
        good((const uint8_t *)out.data, out.len, fields);
        for (int flip = 0; flip < 8; flip++) { /* damaged: any answer, but an end and inside the bytes */
            uint8_t *copy = malloc(out.len);
            tn_status status;
            assert_non_null(copy);
            memcpy(copy, out.data, out.len);
            seed = seed * 1664525 + 1013904223;
            copy[(seed >> 8) % out.len] ^= (uint8_t)(1u << (seed >> 29));
            (void)count_fields(copy, out.len - seed % 3, &status);
            free(copy);
        }
        tn_text_free(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fields), cmocka_unit_test(test_groups),
                                       cmocka_unit_test(test_malformed), cmocka_unit_test(test_packed),
                                       cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
