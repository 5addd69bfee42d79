/* Data files: what is written is read back; payloads in every field; what does not add up is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/onnx_bytes.h"

static tn_object *read_back(const tn_object *object) {
    tn_text bytes = message();
    assert_int_equal(tn_onnx_write_object(&bytes, object, "name"), TN_OK);
    tn_object *back = tn_onnx_read_object(NULL, bytes.data, bytes.len, NULL, tn_object_kind(object));
    if (!back)
        fail_msg("%s", tn_error_message());
    tn_text_free(&bytes);
    return back;
}

static void round_trip(tn_object *object) {
    tn_object *back = read_back(object);
    assert_true(tn_object_equal(object, back));
    tn_object_destroy(back);
    tn_object_destroy(object);
}

static void test_round_trips(void **state) {
    (void)state;
    for (int dtype = 1; dtype < TN_DTYPE_COUNT; dtype++)
        for (int rank = 0; rank < 3; rank++) {
            tn_tensor *t = tn_tensor_create((tn_dtype)dtype, rank, (const int64_t[]){3, 5});
            assert_non_null(t);
            for (int64_t i = 0; i < t->count; i++)
                if (dtype == TN_STRING)
                    assert_int_equal(tn_tensor_set_string(t, i, "a\0b", (size_t)(i % 4)), TN_OK);
                else if (!tn_dtype_is_complex((tn_dtype)dtype))
                    tn_store_i64((tn_dtype)dtype, t->data, i, i % 2);
            round_trip(tn_tensor_object(t));
        }
    tn_tensor *empty = tn_tensor_create(TN_F32, 2, (const int64_t[]){0, 7});
    round_trip(tn_tensor_object(empty));
    /* strided */
    float data[6] = {0, 1, 2, 3, 4, 5};
    tn_tensor *wrapped = tn_tensor_wrap_strided(TN_F32, 2, (const int64_t[]){3, 2}, (const int64_t[]){1, 3}, data);
    tn_object *back = read_back(tn_tensor_object(wrapped));
    for (int64_t i = 0; i < 6; i++)
        assert_true(tn_tensor_get_f64(wrapped, i) == tn_tensor_get_f64((tn_tensor *)back, i));
    tn_object_destroy(back);
    tn_tensor_destroy(wrapped);
}

static void test_objects(void **state) {
    (void)state;
    tn_tensor *a = tn_tensor_from_i64(2, (const int64_t[]){7, -8}), *b = tn_tensor_from_i64(0, NULL);
    tn_object *items[] = {tn_tensor_object(a), tn_tensor_object(b)};
    tn_object *sequence = tn_sequence_create(NULL, 2, items), *none = tn_sequence_create(NULL, 0, NULL);
    tn_object *nested = tn_sequence_create(NULL, 2, (tn_object *[]){sequence, none});
    tn_object *map = tn_map_create(NULL, a, sequence);
    tn_tensor *keys = tn_tensor_create(TN_STRING, 1, (const int64_t[]){2});
    assert_int_equal(tn_tensor_set_string(keys, 0, "cat", 3), TN_OK);
    tn_object *named = tn_map_create(NULL, keys, sequence);
    tn_object *maps = tn_sequence_create(NULL, 1, &named);
    round_trip(tn_optional_create(NULL, NULL));
    round_trip(tn_optional_create(NULL, sequence));
    round_trip(tn_optional_create(NULL, items[0]));
    round_trip(tn_optional_create(NULL, maps));
    tn_tensor_destroy(a);
    tn_tensor_destroy(b);
    tn_tensor_destroy(keys);
    tn_object_destroy(named);
    round_trip(sequence);
    round_trip(none);
    round_trip(nested);
    round_trip(map);
    round_trip(maps);
}

static tn_tensor *read_tensor(tn_text bytes) {
    tn_object *object = tn_onnx_read_object(NULL, bytes.data, bytes.len, NULL, TN_KIND_TENSOR);
    tn_text_free(&bytes);
    return object ? tn_object_tensor(object) : NULL;
}

static tn_text head(int dtype, int64_t count) {
    tn_text m = message();
    tn_wire_put_varint(&m, 1, (uint64_t)count);
    tn_wire_put_varint(&m, 2, (uint64_t)dtype);
    return m;
}

/* Each dtype's list, packed and not. */
static void test_lists(void **state) {
    (void)state;
    static const struct {
        int dtype;
        uint32_t field;
        uint64_t stored;
        int64_t value;
    } list[] = {
        {TN_I32, 5, (uint64_t)-3, -3},
        {TN_I8, 5, (uint64_t)-128, -128},
        {TN_U8, 5, 255, 255},
        {TN_I16, 5, (uint64_t)-5, -5},
        {TN_U16, 5, 65535, 65535},
        {TN_BOOL, 5, 1, 1},
        {TN_F16, 5, 0x3c00, 1},
        {TN_BF16, 5, 0x4000, 2},
        {TN_I64, 7, (uint64_t)-9, -9},
        {TN_U64, 11, 12, 12},
        {TN_U32, 11, 4000000000u, 4000000000},
        {TN_I4, 5, 0x0f, -1},
        {TN_F8E5M2, 5, 0x3c, 1},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        tn_text m = head(list[i].dtype, 1);
        tn_wire_put_varint(&m, list[i].field, list[i].stored);
        tn_tensor *t = read_tensor(m);
        if (!t)
            fail_msg("%s: %s", tn_dtype_name((tn_dtype)list[i].dtype), tn_error_message());
        assert_true(tn_tensor_get_f64(t, 0) == (double)list[i].value);
        tn_tensor_destroy(t);
    }
    static const struct {
        int dtype;
        uint32_t field;
        uint64_t stored;
    } wrong[] = {
        {TN_I8, 5, 128}, {TN_U8, 5, 256}, {TN_I16, 5, 40000}, {TN_F16, 5, 1 << 16}, {TN_U32, 11, (uint64_t)1 << 32},
        {TN_F32, 7, 1},  {TN_I64, 5, 1},  {TN_U32, 5, 1},     {TN_I32, 7, 1},       {27, 5, 1},
        {0, 5, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_text m = head(wrong[i].dtype, 1);
        tn_wire_put_varint(&m, wrong[i].field, wrong[i].stored);
        assert_null(read_tensor(m));
        assert_int_equal(tn_error_status(), TN_ERR_MODEL);
    }
    tn_text m = head(TN_F32, 3); /* one packed, one single */
    const float two[] = {1, 2};
    tn_wire_put_bytes(&m, 4, two, sizeof two);
    const uint8_t third[] = {0x25, 0, 0, 0x40, 0x40};
    tn_text_bytes(&m, (const char *)third, sizeof third);
    tn_tensor *t = read_tensor(m);
    assert_non_null(t);
    assert_true(tn_tensor_get_f64(t, 0) == 1 && tn_tensor_get_f64(t, 1) == 2 && tn_tensor_get_f64(t, 2) == 3);
    tn_tensor_destroy(t);
    m = head(TN_BOOL, 3); /* bools that are neither 0 nor 1 */
    tn_wire_put_bytes(&m, 9, "\0\2\1", 3);
    t = read_tensor(m);
    assert_non_null(t);
    assert_memory_equal(t->data, "\0\1\1", 3);
    tn_tensor_destroy(t);
}

static void test_hostile_sizes(void **state) {
    (void)state;
    static const int64_t sizes[] = {-1, INT64_MIN, INT64_MAX, (int64_t)1 << 62, (int64_t)1 << 40, 2};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t before = tn_heap_in_use(tn_heap_default());
        tn_text m = head(TN_F32, sizes[i]);
        tn_wire_put_bytes(&m, 9, "abcd", 4);
        assert_null(read_tensor(m));
        assert_true(tn_error_status() == TN_ERR_MODEL || tn_error_status() == TN_ERR_LIMIT);
        assert_int_equal(tn_heap_in_use(tn_heap_default()), before);
    }
    tn_text m = message();
    for (int i = 0; i <= TN_MAX_RANK; i++)
        tn_wire_put_varint(&m, 1, 1);
    tn_wire_put_varint(&m, 2, TN_F32);
    assert_null(read_tensor(m));
    assert_int_equal(tn_error_status(), TN_ERR_LIMIT);
    tn_text deep = message(); /* sequences in sequences */
    for (int i = 0; i < 1000; i++) {
        tn_text outer = message();
        put_message(&outer, 5, deep);
        deep = outer;
    }
    assert_null(tn_onnx_read_object(NULL, deep.data, deep.len, NULL, TN_KIND_SEQUENCE));
    assert_int_equal(tn_error_status(), TN_ERR_LIMIT);
    tn_text_free(&deep);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trips), cmocka_unit_test(test_objects),
                                       cmocka_unit_test(test_lists), cmocka_unit_test(test_hostile_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
