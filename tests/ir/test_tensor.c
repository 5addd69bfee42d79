/* Tensors and objects: creation, limits, views, strings, copies, ownership, failing allocations. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ir/tensor.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static void expect_error(const void *nothing, tn_status status) {
    assert_null(nothing);
    assert_int_equal(tn_error_status(), status);
    tn_error_clear();
}

static void test_create(void **state) {
    (void)state;
    tn_tensor *t = tn_tensor_create(TN_F32, 3, DIMS(2, 3, 4));
    assert_non_null(t);
    assert_int_equal(tn_tensor_count(t), 24);
    assert_int_equal(tn_tensor_bytes(t), 96);
    assert_true(tn_tensor_is_contiguous(t));
    assert_int_equal((uintptr_t)tn_tensor_data(t) % 64, 0);
    assert_memory_equal(tn_tensor_strides(t), DIMS(12, 4, 1), 24);
    for (int i = 0; i < 24; i++)
        assert_true(tn_tensor_get_f64(t, i) == 0);
    assert_int_equal(tn_tensor_set_f64(t, 23, 2.5), TN_OK);
    assert_true(tn_tensor_get_f64(t, 23) == 2.5 && tn_tensor_get_i64(t, 23) == 2);
    assert_true(isnan(tn_tensor_get_f64(t, 24)));
    assert_int_equal(tn_error_status(), TN_ERR_USAGE);
    assert_int_equal(tn_tensor_set_f64(t, -1, 0), TN_ERR_USAGE);
    assert_ptr_equal(tn_tensor_retain(t), t);
    tn_tensor_destroy(t);
    tn_tensor_destroy(t);
    tn_tensor_destroy(NULL);

    t = tn_tensor_create(TN_I64, 0, NULL);
    assert_int_equal(tn_tensor_count(t), 1);
    tn_tensor_destroy(t);
    t = tn_tensor_create(TN_F64, 4, DIMS(INT64_MAX, 0, INT64_MAX, 3));
    assert_non_null(t);
    assert_int_equal(tn_tensor_count(t), 0);
    assert_true(tn_tensor_is_contiguous(t));
    assert_int_equal(tn_tensor_bytes(t), 0);
    tn_tensor_destroy(t);
    t = tn_tensor_create(TN_I4, 1, DIMS(5));
    assert_int_equal(tn_tensor_bytes(t), 3);
    tn_tensor_set_f64(t, 4, -3);
    assert_int_equal(tn_tensor_get_i64(t, 4), -3);
    tn_tensor_destroy(t);

    expect_error(tn_tensor_create(TN_F32, 1, DIMS(-1)), TN_ERR_USAGE);
    expect_error(tn_tensor_create(TN_F32, 2, DIMS((int64_t)1 << 32, (int64_t)1 << 32)), TN_ERR_LIMIT);
    expect_error(tn_tensor_create(TN_F64, 1, DIMS(INT64_MAX / 4)), TN_ERR_LIMIT);
    expect_error(tn_tensor_create(TN_DTYPE_NONE, 1, DIMS(1)), TN_ERR_USAGE);
    expect_error(tn_tensor_create((tn_dtype)77, 1, DIMS(1)), TN_ERR_USAGE);
    expect_error(tn_tensor_create(TN_F32, -1, NULL), TN_ERR_USAGE);
    expect_error(tn_tensor_create(TN_F32, 2, NULL), TN_ERR_USAGE);
    int64_t many[TN_MAX_RANK + 1];
    for (int i = 0; i <= TN_MAX_RANK; i++)
        many[i] = 1;
    expect_error(tn_tensor_create(TN_F32, TN_MAX_RANK + 1, many), TN_ERR_LIMIT);
    t = tn_tensor_create(TN_F32, TN_MAX_RANK, many);
    assert_non_null(t);
    tn_tensor_destroy(t);
    t = tn_tensor_from_i64(3, DIMS(5, 6, 7));
    assert_int_equal(tn_tensor_get_i64(t, 2), 7);
    tn_tensor_destroy(t);
    t = tn_tensor_from_f32(0, NULL, (const float[]){1.5f});
    assert_true(tn_tensor_get_f64(t, 0) == 1.5);
    tn_tensor_destroy(t);
}

/* B7: the bytes of a strided view are asked of one function, which gives the extent touched. */
static void test_extent(void **state) {
    (void)state;
    size_t bytes;
#define EXTENT(wanted, ...)                                         \
    assert_int_equal(tn_tensor_extent(__VA_ARGS__, &bytes), TN_OK); \
    assert_int_equal(bytes, wanted)
    EXTENT(84, TN_F32, 2, DIMS(4, 3), DIMS(6, 1));
    EXTENT(84, TN_F32, 2, DIMS(4, 3), DIMS(-6, 1));
    EXTENT(84, TN_F32, 2, DIMS(4, 3), DIMS(6, -1));
    EXTENT(48, TN_F32, 2, DIMS(4, 3), NULL);
    EXTENT(4, TN_F32, 2, DIMS(4, 3), DIMS(0, 0));
    EXTENT(0, TN_F32, 2, DIMS(4, 0), DIMS(INT64_MIN, INT64_MAX));
    EXTENT(4, TN_F32, 2, DIMS(1, 1), DIMS(INT64_MIN, INT64_MAX));
    EXTENT(4, TN_F32, 0, NULL, NULL);
    EXTENT(3, TN_I4, 1, DIMS(5), NULL);
    EXTENT(2, TN_U2, 1, DIMS(5), NULL);
    assert_int_equal(tn_tensor_extent(TN_F32, 1, DIMS(2), DIMS(INT64_MIN), &bytes), TN_ERR_LIMIT);
    assert_int_equal(tn_tensor_extent(TN_F32, 2, DIMS(3, INT64_MAX), DIMS(INT64_MAX, INT64_MAX), &bytes), TN_ERR_LIMIT);
    assert_int_equal(tn_tensor_extent(TN_F32, 2, DIMS(1 << 30, 1 << 30), DIMS((int64_t)1 << 40, 1), &bytes),
                     TN_ERR_LIMIT);
    assert_int_equal(tn_tensor_extent(TN_F32, 1, DIMS(-2), NULL, &bytes), TN_ERR_LIMIT);
    assert_int_equal(tn_tensor_extent(TN_F32, 33, DIMS(2), NULL, &bytes), TN_ERR_LIMIT);
    assert_int_equal(tn_tensor_extent(TN_DTYPE_NONE, 1, DIMS(2), NULL, &bytes), TN_ERR_USAGE);
    int64_t count;
    assert_int_equal(tn_dims_count(3, DIMS(INT64_MAX, INT64_MAX, 0), &count), TN_OK);
    assert_int_equal(count, 0);
}

static void test_wrap_and_views(void **state) {
    (void)state;
    float values[12];
    for (int i = 0; i < 12; i++)
        values[i] = (float)i;
    tn_tensor *t = tn_tensor_wrap(TN_F32, 2, DIMS(3, 4), values);
    assert_ptr_equal(tn_tensor_data(t), values);
    tn_tensor *transposed = tn_tensor_view(NULL, t, TN_F32, 2, DIMS(4, 3), DIMS(1, 4), 0);
    assert_false(tn_tensor_is_contiguous(transposed));
    assert_true(tn_tensor_get_f64(transposed, 1) == 4 && tn_tensor_get_f64(transposed, 11) == 11);
    tn_tensor *back = tn_tensor_view(NULL, t, TN_F32, 1, DIMS(4), DIMS(-3), 10);
    assert_true(tn_tensor_get_f64(back, 0) == 10 && tn_tensor_get_f64(back, 3) == 1);
    tn_tensor *copy = tn_tensor_copy(transposed);
    assert_true(tn_tensor_is_contiguous(copy));
    for (int i = 0; i < 12; i++)
        assert_true(tn_tensor_get_f64(copy, i) == tn_tensor_get_f64(transposed, i));
    assert_true(tn_object_equal(tn_tensor_object(copy), tn_tensor_object(transposed)));
    tn_tensor_set_f64(transposed, 1, -1);
    assert_true(values[4] == -1);
    assert_false(tn_object_equal(tn_tensor_object(copy), tn_tensor_object(transposed)));
    assert_int_equal(tn_tensor_assign(transposed, copy), TN_OK);
    assert_true(values[4] == 4);
    assert_int_equal(tn_tensor_assign(transposed, t), TN_ERR_USAGE);
    tn_tensor *same = tn_tensor_contiguous(NULL, t), *made = tn_tensor_contiguous(NULL, transposed);
    assert_ptr_equal(same, t);
    assert_true(made != transposed && tn_tensor_is_contiguous(made));
    tn_tensor_destroy(same);
    tn_tensor_destroy(made);
    tn_tensor_destroy(copy);
    tn_tensor_destroy(back);
    tn_tensor_destroy(transposed);
    tn_tensor_destroy(t);

    /* strides of dimensions of size 1, and all strides of an empty tensor, do not matter */
    t = tn_tensor_wrap_strided(TN_F32, 3, DIMS(3, 1, 4), DIMS(4, 77, 1), values);
    assert_true(tn_tensor_is_contiguous(t));
    tn_tensor_destroy(t);
    t = tn_tensor_wrap_strided(TN_F32, 2, DIMS(3, 0), DIMS(5, 5), NULL);
    assert_true(tn_tensor_is_contiguous(t));
    tn_tensor_destroy(t);
    expect_error(tn_tensor_wrap(TN_F32, 1, DIMS(3), NULL), TN_ERR_USAGE);
    expect_error(tn_tensor_wrap_strided(TN_I4, 1, DIMS(3), DIMS(2), values), TN_ERR_USAGE);
    expect_error(tn_tensor_wrap_strided(TN_F32, 1, DIMS(3), DIMS(INT64_MAX / 2), values), TN_ERR_LIMIT);

    /* a view outlives its base; unaligned data */
    tn_tensor *base = tn_tensor_create(TN_F64, 1, DIMS(4));
    tn_tensor_set_f64(base, 3, 9);
    tn_tensor *view = tn_tensor_view(NULL, base, TN_F64, 0, NULL, NULL, 3);
    tn_tensor_destroy(base);
    assert_true(tn_tensor_get_f64(view, 0) == 9);
    tn_tensor_destroy(view);
    char raw[64] = {0};
    t = tn_tensor_wrap_strided(TN_F64, 2, DIMS(2, 3), DIMS(1, 2), raw + 3);
    for (int i = 0; i < 6; i++)
        assert_int_equal(tn_tensor_set_f64(t, i, i), TN_OK);
    copy = tn_tensor_copy(t);
    for (int i = 0; i < 6; i++)
        assert_true(tn_tensor_get_f64(copy, i) == i);
    tn_tensor_destroy(copy);
    tn_tensor_destroy(t);
    tn_tensor *packed = tn_tensor_create(TN_I4, 1, DIMS(4));
    expect_error(tn_tensor_view(NULL, packed, TN_I4, 1, DIMS(2), NULL, 2), TN_ERR_USAGE);
    expect_error(tn_tensor_view(NULL, packed, TN_I4, 1, DIMS(2), DIMS(2), 0), TN_ERR_USAGE);
    expect_error(tn_tensor_view(NULL, packed, TN_STRING, 1, DIMS(1), NULL, 0), TN_ERR_USAGE);
    view = tn_tensor_view(NULL, packed, TN_U8, 1, DIMS(2), NULL, 0);
    assert_non_null(view);
    tn_tensor_destroy(view);
    tn_tensor_destroy(packed);
}

static void test_copies_of_every_dtype(void **state) {
    (void)state;
    for (int t = 1; t < TN_DTYPE_COUNT; t++) {
        tn_dtype dtype = (tn_dtype)t;
        if (dtype == TN_STRING)
            continue;
        tn_tensor *a = tn_tensor_create(dtype, 2, DIMS(3, 5));
        for (int i = 0; i < 15; i++)
            tn_tensor_set_f64(a, i, i % 3 == 0);
        tn_tensor *b = NULL;
        if (tn_dtype_is_subbyte(dtype))
            b = tn_tensor_retain(a);
        else
            b = tn_tensor_view(NULL, a, dtype, 2, DIMS(5, 3), DIMS(-1, 5), 4);
        tn_tensor *c = tn_tensor_copy(b);
        assert_true(tn_object_equal(tn_tensor_object(b), tn_tensor_object(c)));
        for (int i = 0; i < 15; i++)
            assert_true(tn_tensor_get_f64(b, i) == tn_tensor_get_f64(c, i));
        tn_tensor_set_f64(c, 14, tn_tensor_get_f64(c, 14) == 1 ? 0.5 : 1);
        if (dtype != TN_F8E8M0 || tn_tensor_get_f64(c, 14) == 1)
            assert_int_equal(tn_object_equal(tn_tensor_object(b), tn_tensor_object(c)),
                             tn_tensor_get_f64(b, 14) == tn_tensor_get_f64(c, 14));
        tn_tensor_destroy(a);
        tn_tensor_destroy(b);
        tn_tensor_destroy(c);
    }
    uint8_t x[2] = {0x21, 0xf3}, y[2] = {0x21, 0x03};
    tn_tensor *a = tn_tensor_wrap(TN_U4, 1, DIMS(3), x), *b = tn_tensor_wrap(TN_U4, 1, DIMS(3), y);
    assert_true(tn_object_equal(tn_tensor_object(a), tn_tensor_object(b))); /* the spare nibble */
    tn_tensor_destroy(a);
    tn_tensor_destroy(b);
    a = tn_tensor_wrap(TN_U4, 1, DIMS(4), x), b = tn_tensor_wrap(TN_U4, 1, DIMS(4), y);
    assert_false(tn_object_equal(tn_tensor_object(a), tn_tensor_object(b)));
    tn_tensor_destroy(a);
    tn_tensor_destroy(b);
}

static void test_strings(void **state) {
    (void)state;
    tn_heap *heap = tn_heap_create(NULL);
    tn_tensor *t = tn_tensor_create_in(heap, TN_STRING, 2, DIMS(2, 2));
    tn_string s;
    assert_int_equal(tn_tensor_get_string(t, 3, &s), TN_OK);
    assert_int_equal(s.length, 0);
    assert_non_null(s.data);
    assert_int_equal(tn_tensor_set_string(t, 1, "a\0b", 3), TN_OK);
    assert_int_equal(tn_tensor_set_string(t, 1, "longer text", 11), TN_OK);
    assert_int_equal(tn_tensor_set_string(t, 0, "x", 1), TN_OK);
    assert_int_equal(tn_tensor_get_string(t, 1, &s), TN_OK);
    assert_int_equal(s.length, 11);
    assert_memory_equal(s.data, "longer text", 11);
    assert_int_equal(tn_tensor_set_string(t, 1, s.data, s.length), TN_OK); /* from itself */
    assert_int_equal(tn_tensor_get_string(t, 4, &s), TN_ERR_USAGE);
    assert_int_equal(tn_tensor_set_f64(t, 0, 1), TN_ERR_USAGE);
    tn_tensor *turned = tn_tensor_view(heap, t, TN_STRING, 2, DIMS(2, 2), DIMS(1, 2), 0);
    tn_tensor *copy = tn_tensor_copy(turned);
    assert_true(tn_object_equal(tn_tensor_object(turned), tn_tensor_object(copy)));
    assert_int_equal(tn_tensor_get_string(copy, 2, &s), TN_OK);
    assert_int_equal(s.length, 11);
    assert_int_equal(tn_tensor_set_string(copy, 2, "longer texT", 11), TN_OK);
    assert_false(tn_object_equal(tn_tensor_object(turned), tn_tensor_object(copy)));
    tn_tensor_destroy(t);
    tn_tensor_destroy(turned);
    tn_tensor_destroy(copy);
    assert_int_equal(tn_heap_in_use(heap), 0);
    tn_heap_destroy(heap);

    tn_string mine[2] = {{"one", 3}, {NULL, 0}};
    t = tn_tensor_wrap(TN_STRING, 1, DIMS(2), mine);
    assert_int_equal(tn_tensor_set_string(t, 0, "two", 3), TN_ERR_USAGE);
    copy = tn_tensor_copy(t);
    assert_int_equal(tn_tensor_get_string(copy, 0, &s), TN_OK);
    assert_memory_equal(s.data, "one", 3);
    tn_tensor_destroy(t);
    tn_tensor_destroy(copy);
    t = tn_tensor_create(TN_F32, 0, NULL);
    assert_int_equal(tn_tensor_get_string(t, 0, &s), TN_ERR_USAGE);
    assert_int_equal(tn_tensor_set_string(t, 0, "", 0), TN_ERR_USAGE);
    tn_tensor_destroy(t);
}

static void test_objects(void **state) {
    (void)state;
    tn_heap *heap = tn_heap_create(NULL);
    tn_tensor *t = tn_tensor_create_in(heap, TN_F32, 1, DIMS(2));
    tn_object *o = tn_tensor_object(t);
    assert_ptr_equal(tn_object_tensor(o), t);
    tn_object *sequence = tn_sequence_create(heap, 3, (tn_object *const[]){o, o, o});
    tn_tensor_destroy(t);
    assert_int_equal(tn_sequence_length(sequence), 3);
    assert_ptr_equal(tn_sequence_at(sequence, 2), o);
    expect_error(tn_sequence_at(sequence, 3), TN_ERR_USAGE);
    assert_null(tn_object_tensor(sequence));
    tn_object *empty = tn_optional_create(heap, NULL), *full = tn_optional_create(heap, sequence);
    assert_null(tn_optional_get(empty));
    assert_ptr_equal(tn_optional_get(full), sequence);
    assert_false(tn_object_equal(empty, full));
    assert_true(tn_object_equal(full, full));
    expect_error(tn_optional_get(sequence), TN_ERR_USAGE);
    expect_error(tn_sequence_create(heap, 1, (tn_object *const[]){NULL}), TN_ERR_USAGE);
    expect_error(tn_sequence_create(heap, SIZE_MAX / 4, NULL), TN_ERR_LIMIT);
    tn_tensor *keys = tn_tensor_create_in(heap, TN_I64, 1, DIMS(3));
    tn_object *map = tn_map_create(heap, keys, sequence), *twin = tn_map_create(heap, keys, sequence);
    assert_int_equal(tn_object_kind(map), TN_KIND_MAP);
    assert_ptr_equal(tn_map_keys(map), keys);
    assert_ptr_equal(tn_map_values(map), sequence);
    assert_true(tn_object_equal(map, twin));
    assert_false(tn_object_equal(map, full));
    expect_error(tn_map_create(heap, keys, o), TN_ERR_USAGE); /* 2 rows for 3 keys */
    expect_error(tn_map_create(heap, tn_object_tensor(o), sequence), TN_ERR_USAGE);
    expect_error(tn_map_create(heap, NULL, sequence), TN_ERR_USAGE);
    tn_tensor_destroy(keys);
    tn_object_destroy(map);
    tn_object_destroy(twin);
    tn_object_destroy(empty);
    tn_object_destroy(full);
    tn_object_destroy(sequence);
    tn_object_destroy(NULL);
    /* deep nesting is no deep recursion */
    tn_object *nest = tn_sequence_create(heap, 0, NULL);
    for (int i = 0; i < 1000000; i++) {
        tn_object *outer = tn_optional_create(heap, nest);
        tn_object_destroy(nest);
        nest = outer;
    }
    tn_object_destroy(nest);
    assert_int_equal(tn_heap_in_use(heap), 0);
    tn_heap_destroy(heap);
}

static void test_describe(void **state) {
    (void)state;
    char text[64];
    tn_tensor *t = tn_tensor_create(TN_BF16, 3, DIMS(2, 0, 1234567));
    assert_string_equal(tn_tensor_describe(t, text, sizeof text), "bf16[2,0,1234567]");
    assert_string_equal(tn_tensor_describe(t, text, 18), "bf16[2,0,1234567]");
    assert_string_equal(tn_tensor_describe(t, text, 17), "bf16[2,0,1234...");
    assert_string_equal(tn_tensor_describe(t, text, 4), "...");
    assert_string_equal(tn_tensor_describe(t, text, 2), ".");
    assert_string_equal(tn_tensor_describe(t, text, 1), "");
    assert_string_equal(tn_tensor_describe(NULL, text, sizeof text), "no tensor");
    tn_tensor_destroy(t);
}

/* Everything that allocates, on a heap; true when all of it worked. */
static bool build_all(tn_heap *heap) {
    tn_tensor *a = tn_tensor_create_in(heap, TN_STRING, 1, DIMS(2));
    bool ok = a != NULL && tn_tensor_set_string(a, 0, "abc", 3) == TN_OK && tn_tensor_set_string(a, 1, "d", 1) == TN_OK;
    tn_tensor *b = ok ? tn_tensor_view(heap, a, TN_STRING, 1, DIMS(2), DIMS(-1), 1) : NULL;
    tn_tensor *c = b ? tn_tensor_copy(b) : NULL, *d = c ? tn_tensor_contiguous(heap, b) : NULL;
    tn_object *items[2] = {tn_tensor_object(c), tn_tensor_object(d)};
    tn_object *sequence = d ? tn_sequence_create(heap, 2, items) : NULL;
    tn_object *map = sequence ? tn_map_create(heap, c, sequence) : NULL;
    tn_object *optional = map ? tn_optional_create(heap, map) : NULL;
    ok = optional != NULL;
    if (!ok)
        assert_int_equal(tn_error_status(), TN_ERR_MEMORY);
    tn_tensor_destroy(a);
    tn_tensor_destroy(b);
    tn_tensor_destroy(c);
    tn_tensor_destroy(d);
    tn_object_destroy(sequence);
    tn_object_destroy(map);
    tn_object_destroy(optional);
    return ok;
}

static void test_failing_allocations(void **state) {
    (void)state;
    tn_heap *heap = tn_heap_create(NULL);
    int failed = 0;
    for (uint64_t n = 1;; n++) {
        tn_heap_fail_at(heap, n, n % 2 != 0);
        bool ok = build_all(heap);
        tn_heap_fail_at(heap, 0, false);
        assert_int_equal(tn_heap_in_use(heap), 0);
        if (ok)
            break;
        failed++;
    }
    assert_true(failed >= 10);
    tn_heap_destroy(heap);
}

static void test_mapped(void **state) {
    (void)state;
    char path[] = "/tmp/tenon-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    float values[3] = {1, 2, 3};
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(write(fd, values, sizeof values), sizeof values);
    close(fd);
    tn_heap *heap = tn_heap_create(NULL);
    tn_mapping *mapping = tn_mapping_open(heap, path);
    assert_non_null(mapping);
    for (uint64_t n = 1; n < 3; n++) {
        tn_heap_fail_at(heap, n, true);
        expect_error(tn_tensor_mapped(heap, TN_F32, 1, DIMS(3), mapping, tn_mapping_data(mapping) + 1), TN_ERR_MEMORY);
    }
    tn_heap_fail_at(heap, 0, false);
    tn_tensor *t = tn_tensor_mapped(heap, TN_F32, 1, DIMS(3), mapping, tn_mapping_data(mapping) + 1);
    tn_mapping_release(mapping);
    assert_true(tn_tensor_get_f64(t, 2) == 3);
    expect_error(tn_tensor_mapped(heap, TN_STRING, 1, DIMS(1), mapping, values), TN_ERR_USAGE);
    tn_tensor_destroy(t);
    assert_int_equal(tn_heap_in_use(heap), 0);
    tn_heap_destroy(heap);
    unlink(path);
}

static void *retain_and_release(void *tensor) {
    for (int i = 0; i < 20000; i++) {
        tn_tensor *view = tn_tensor_view(NULL, tensor, TN_F32, 0, NULL, NULL, 0);
        tn_tensor_destroy(tn_tensor_retain(tensor));
        tn_tensor_destroy(view);
    }
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    tn_tensor *t = tn_tensor_create(TN_F32, 0, NULL);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, retain_and_release, t), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(t->object.refs, 1);
    assert_int_equal(t->storage->refs, 1);
    tn_tensor_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create),         cmocka_unit_test(test_extent),
        cmocka_unit_test(test_wrap_and_views), cmocka_unit_test(test_copies_of_every_dtype),
        cmocka_unit_test(test_strings),        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_describe),       cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_mapped),         cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
