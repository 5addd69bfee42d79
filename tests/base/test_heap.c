/* The counting heap and the arena. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/heap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static bool all_zero(const void *bytes, size_t size) {
    const char *b = bytes;
    for (size_t i = 0; i < size; i++)
        if (b[i])
            return false;
    return true;
}

static void test_counts(void **state) {
    tn_heap *heap = tn_heap_create(NULL);
    (void)state;
    assert_non_null(heap);
    assert_int_equal(tn_heap_in_use(heap), 0);
    char *a = tn_alloc(heap, 100), *b = tn_alloc_array(heap, 10, 20), *c = tn_alloc_aligned(heap, 64, 4096);
    assert_true(a && b && c && all_zero(a, 100) && all_zero(b, 200));
    assert_int_equal((uintptr_t)a % 16, 0);
    assert_int_equal((uintptr_t)c % 4096, 0);
    memset(a, 1, 100), memset(b, 2, 200), memset(c, 3, 64);
    assert_int_equal(tn_heap_in_use(heap), 364);
    assert_int_equal(tn_heap_allocations(heap), 3);
    tn_free(heap, b);
    assert_int_equal(tn_heap_in_use(heap), 164);
    assert_int_equal(tn_heap_peak(heap), 364);
    tn_heap_reset_peak(heap);
    assert_int_equal(tn_heap_peak(heap), 164);
    a = tn_realloc(heap, a, 300);
    assert_true(a && a[99] == 1 && all_zero(a + 100, 200));
    a = tn_realloc(heap, a, 10);
    assert_true(a && a[9] == 1);
    assert_int_equal(tn_heap_in_use(heap), 74);
    char *d = tn_realloc(heap, NULL, 5);
    assert_true(d && all_zero(d, 5));
    tn_free(heap, a), tn_free(heap, c), tn_free(heap, d), tn_free(heap, NULL);
    assert_int_equal(tn_heap_in_use(heap), 0);
    char *e = tn_alloc(heap, 0), *f = tn_alloc(heap, 0);
    assert_true(e && f && e != f);
    tn_free(heap, e), tn_free(heap, f);
    tn_heap_destroy(heap);
    tn_heap_destroy(NULL);
    tn_heap_destroy(tn_heap_default());
    a = tn_alloc(NULL, 7);
    assert_true(tn_heap_in_use(NULL) >= 7 && tn_heap_in_use(NULL) == tn_heap_in_use(tn_heap_default()));
    tn_free(tn_heap_default(), a);
}

static void test_strings(void **state) {
    (void)state;
    char *a = tn_strdup(NULL, "text"), *b = tn_strndup(NULL, "a\0b", 3), *c = tn_strndup(NULL, NULL, 0);
    assert_string_equal(a, "text");
    assert_memory_equal(b, "a\0b", 4);
    assert_string_equal(c, "");
    tn_free(NULL, a), tn_free(NULL, b), tn_free(NULL, c);
    assert_null(tn_strndup(NULL, "x", SIZE_MAX));
}

static void test_limit(void **state) {
    tn_heap *heap = tn_heap_create(NULL);
    (void)state;
    tn_heap_set_limit(heap, 1000);
    void *a = tn_alloc(heap, 600);
    assert_non_null(a);
    assert_null(tn_alloc(heap, 401));
    assert_int_equal(tn_error_status(), TN_ERR_LIMIT);
    assert_non_null(strstr(tn_error_what(), "1000"));
    void *b = tn_alloc(heap, 400);
    assert_non_null(b);
    assert_null(tn_realloc(heap, b, 500));
    assert_int_equal(tn_heap_in_use(heap), 1000);
    tn_heap_set_limit(heap, 0);
    b = tn_realloc(heap, b, 5000);
    assert_non_null(b);
    tn_free(heap, a), tn_free(heap, b);
    assert_null(tn_alloc_array(heap, SIZE_MAX / 2, 3));
    assert_int_equal(tn_error_status(), TN_ERR_LIMIT);
    assert_null(tn_alloc(heap, SIZE_MAX));
    assert_int_equal(tn_error_status(), TN_ERR_MEMORY);
    assert_null(tn_alloc(heap, PTRDIFF_MAX - 1));
    assert_int_equal(tn_error_status(), TN_ERR_MEMORY);
    assert_int_equal(tn_heap_in_use(heap), 0);
    tn_heap_destroy(heap);
}

static void test_failing(void **state) {
    tn_heap *heap = tn_heap_create(NULL);
    void *kept[4] = {0};
    (void)state;
    tn_heap_fail_at(heap, 2, false);
    for (int i = 0; i < 4; i++)
        kept[i] = tn_alloc(heap, 8);
    assert_true(kept[0] && !kept[1] && kept[2] && kept[3]);
    assert_int_equal(tn_error_status(), TN_ERR_MEMORY);
    assert_string_equal(tn_error_what(), "out of memory: 8 bytes asked for");
    tn_heap_fail_at(heap, 1, true);
    assert_null(tn_alloc(heap, 1));
    assert_null(tn_realloc(heap, kept[0], 1));
    tn_heap_fail_at(heap, 3, true);
    tn_heap_fail_at(heap, 0, false);
    for (int i = 0; i < 5; i++) {
        void *block = tn_alloc(heap, 1);
        assert_non_null(block);
        tn_free(heap, block);
    }
    for (int i = 0; i < 4; i++)
        tn_free(heap, kept[i]);
    assert_int_equal(tn_heap_in_use(heap), 0);
    tn_heap_destroy(heap);
}

/* A user's allocator that checks what it is given back. */
typedef struct user_heap {
    size_t live, blocks;
    bool refuse, wrong;
} user_heap;

typedef struct note {
    size_t size, align;
} note;

static void *user_alloc(void *user, size_t size, size_t align) {
    user_heap *u = user;
    char *raw = NULL;
    size_t front = align < sizeof(note) ? sizeof(note) : align;
    if (u->refuse || posix_memalign((void **)&raw, front, front + size) != 0)
        return NULL;
    memset(raw, 0xEE, front + size);
    *(note *)(void *)(raw + front - sizeof(note)) = (note){size, align};
    u->live += size;
    u->blocks++;
    return raw + front;
}

static void user_free(void *user, void *block, size_t size, size_t align) {
    user_heap *u = user;
    note n = *(note *)(void *)((char *)block - sizeof(note));
    u->wrong = u->wrong || n.size != size || n.align != align;
    u->live -= size;
    u->blocks--;
    free((char *)block - (align < sizeof(note) ? sizeof(note) : align));
}

static void test_user_allocator(void **state) {
    user_heap user = {0};
    tn_allocator allocator = {user_alloc, user_free, &user};
    (void)state;
    tn_heap *heap = tn_heap_create(&allocator);
    assert_non_null(heap);
    assert_int_equal(user.blocks, 1); /* the heap itself */
    char *a = tn_alloc(heap, 1000), *b = tn_alloc_aligned(heap, 10, 256), *c = tn_alloc_aligned(heap, 10, 1);
    assert_true(a && b && c && all_zero(a, 1000) && (uintptr_t)b % 256 == 0);
    a = tn_realloc(heap, a, 2000);
    assert_true(a && all_zero(a, 2000));
    user.refuse = true;
    assert_null(tn_alloc(heap, 1));
    assert_int_equal(tn_error_status(), TN_ERR_MEMORY);
    assert_null(tn_realloc(heap, a, 4000));
    assert_int_equal(tn_heap_in_use(heap), 2020);
    tn_free(heap, a), tn_free(heap, b), tn_free(heap, c);
    tn_heap_destroy(heap);
    assert_true(user.live == 0 && user.blocks == 0 && !user.wrong);
    assert_null(tn_heap_create(&allocator));
    assert_int_equal(tn_error_status(), TN_ERR_MEMORY);
    assert_null(tn_heap_create(&(tn_allocator){user_alloc, NULL, &user}));
    assert_int_equal(tn_error_status(), TN_ERR_USAGE);
}

static void *hammer(void *arg) {
    tn_heap *heap = arg;
    for (int i = 0; i < 5000; i++) {
        void *a = tn_alloc(heap, (size_t)(i % 100)), *b = tn_alloc(heap, 50);
        tn_free(heap, a);
        tn_free(heap, b);
    }
    return NULL;
}

static void test_threads(void **state) {
    tn_heap *heap = tn_heap_create(NULL);
    pthread_t threads[4];
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, heap), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(tn_heap_in_use(heap), 0);
    assert_int_equal(tn_heap_allocations(heap), 40000);
    assert_true(tn_heap_peak(heap) >= 99 + 50 && tn_heap_peak(heap) <= 4 * 149);
    tn_heap_destroy(heap);
}

static void test_arena(void **state) {
    tn_heap *heap = tn_heap_create(NULL);
    tn_arena arena;
    char *blocks[600];
    size_t sizes[600], total = 0;
    (void)state;
    tn_arena_init(&arena, heap);
    assert_int_equal(tn_heap_in_use(heap), 0);
    for (int i = 0; i < 600; i++) {
        sizes[i] = i % 97 == 0 ? (size_t)i * 1000 : (size_t)i % 61;
        blocks[i] = tn_arena_alloc(&arena, sizes[i]);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        assert_true(all_zero(blocks[i], sizes[i]));
        memset(blocks[i], i % 251, sizes[i]);
        total += sizes[i];
    }
    for (int i = 0; i < 600; i++)
        for (size_t j = 0; j < sizes[i]; j++)
            assert_int_equal((unsigned char)blocks[i][j], i % 251);
    assert_int_equal(arena.total, total);
    assert_true(tn_heap_in_use(heap) < total * 2 + 100000);
    assert_string_equal(tn_arena_strndup(&arena, "hello", 4), "hell");
    assert_string_equal(tn_arena_strndup(&arena, NULL, 0), "");
    assert_memory_equal(tn_arena_copy(&arena, "abc", 3), "abc", 3);
    assert_true(tn_arena_alloc(&arena, 0) != tn_arena_alloc(&arena, 0));
    assert_null(tn_arena_alloc(&arena, SIZE_MAX));
    assert_int_equal(tn_error_status(), TN_ERR_MEMORY);
    assert_null(tn_arena_strndup(&arena, "", SIZE_MAX));
    tn_heap_fail_at(heap, 1, true);
    assert_null(tn_arena_alloc(&arena, 10000000));
    tn_heap_fail_at(heap, 0, false);
    tn_arena_free(&arena);
    assert_int_equal(tn_heap_in_use(heap), 0);
    assert_non_null(tn_arena_alloc(&arena, 5000)); /* used again, first block larger than a first chunk */
    tn_arena_free(&arena);
    tn_arena_free(&arena);
    assert_int_equal(tn_heap_in_use(heap), 0);
    tn_heap_destroy(heap);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),  cmocka_unit_test(test_strings),        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_failing), cmocka_unit_test(test_user_allocator), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
