/* The thread pool: every piece once, nested and concurrent calls, fork, few threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/os.h"
#include "base/pool.h"

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#ifndef UNDER_TSAN
#define UNDER_TSAN 0
#endif

enum { MOST = 5000 };

typedef struct counts {
    int plain[MOST]; /* not atomic: each piece is one thread's, and the end of the run publishes it */
    tn_pool *pool;
    atomic_int nested;
} counts;

static void count_piece(void *ctx, int64_t piece) {
    ((counts *)ctx)->plain[piece]++;
}

static void check_counts(counts *c, int64_t pieces) {
    for (int64_t i = 0; i < MOST; i++)
        if (c->plain[i] != (i < pieces))
            fail_msg("piece %d of %d ran %d times", (int)i, (int)pieces, c->plain[i]);
    memset(c->plain, 0, sizeof c->plain);
}

static void test_each_once(void **state) {
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 64, MOST};
    counts *c = calloc(1, sizeof *c);
    (void)state;
    for (int threads = 1; threads <= 9; threads += 2) {
        tn_heap *heap = tn_heap_create(NULL);
        tn_pool *pool = tn_pool_create(heap, threads);
        assert_non_null(pool);
        assert_int_equal(tn_pool_threads(pool), threads);
        for (int round = 0; round < 300; round++) {
            int64_t pieces = sizes[round % 7];
            tn_pool_run(pool, pieces, count_piece, c);
            check_counts(c, pieces);
        }
        tn_pool_destroy(pool);
        assert_int_equal(tn_heap_in_use(heap), 0);
        tn_heap_destroy(heap);
    }
    tn_pool_run(NULL, 5, count_piece, c);
    check_counts(c, 5);
    assert_int_equal(tn_pool_threads(NULL), 1);
    tn_pool_destroy(NULL);
    tn_pool_destroy(tn_pool_create(NULL, 4)); /* never used: no worker was started */
    assert_null(tn_pool_create(NULL, 0));
    assert_int_equal(tn_error_status(), TN_ERR_USAGE);
    assert_null(tn_pool_create(NULL, 1000000));
    free(c);
}

/* Runs with pauses, so that workers are caught spinning, about to park and parked. */
static void test_parking(void **state) {
    counts *c = calloc(1, sizeof *c);
    tn_pool *pool = tn_pool_create(NULL, 3);
    (void)state;
    for (int round = 0; round < 400; round++) {
        struct timespec pause = {0, (round * 7919 % 120) * 1000};
        nanosleep(&pause, NULL);
        tn_pool_run(pool, 2 + round % 5, count_piece, c);
        check_counts(c, 2 + round % 5);
    }
    tn_pool_destroy(pool);
    free(c);
}

/* An idle pool must cost nothing: its workers park soon. */
static void test_idle(void **state) {
    counts *c = calloc(1, sizeof *c);
    tn_pool *pool = tn_pool_create(NULL, 2);
    (void)state;
    tn_pool_run(pool, 100, count_piece, c);
    struct timespec pause = {0, 20000000}, before, after;
    nanosleep(&pause, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    pause.tv_nsec = 200000000;
    nanosleep(&pause, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    double used = (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) * 1e-9;
    assert_true(used < 0.05);
    tn_pool_destroy(pool);
    free(c);
}

static void test_task(void **state) {
    counts *c = calloc(1, sizeof *c);
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        tn_pool *pool = tn_pool_create(NULL, threads);
        assert_non_null(pool);
        bool shared = false;
        for (int round = 0; round < 20; round++) {
            tn_pool_task task = tn_pool_task_begin(pool, shared), other = tn_pool_task_begin(pool, !shared);
            assert_false(tn_pool_task_end(pool, other));
            if (round % 3)
                tn_pool_run(pool, 7, count_piece, c);
            shared = tn_pool_task_end(pool, task);
            assert_int_equal(shared, threads > 1 && round % 3 != 0);
            if (round % 3)
                check_counts(c, 7);
            if (round % 5 == 0)
                nanosleep(&(struct timespec){0, 1000000}, NULL); /* workers park */
        }
        tn_pool_destroy(pool);
    }
    assert_false(tn_pool_task_end(NULL, tn_pool_task_begin(NULL, true)));
    free(c);
}

static void nested_inner(void *ctx, int64_t piece) {
    (void)piece;
    atomic_fetch_add(&((counts *)ctx)->nested, 1);
}

static void nested_outer(void *ctx, int64_t piece) {
    counts *c = ctx;
    c->plain[piece]++;
    tn_pool_run(c->pool, 10, nested_inner, c);
}

static void test_nested(void **state) {
    counts *c = calloc(1, sizeof *c);
    (void)state;
    c->pool = tn_pool_create(NULL, 4);
    for (int round = 0; round < 50; round++) {
        atomic_store(&c->nested, 0);
        tn_pool_run(c->pool, 40, nested_outer, c);
        check_counts(c, 40);
        assert_int_equal(atomic_load(&c->nested), 400);
    }
    tn_pool_destroy(c->pool);
    free(c);
}

static bool calls_are_right(tn_pool *pool, counts *c) {
    bool ok = true;
    for (int round = 0; ok && round < 500; round++) {
        int64_t pieces = round % 50;
        tn_pool_run(pool, pieces, count_piece, c);
        for (int64_t i = 0; i < MOST && i < pieces + 5; i++)
            ok = ok && c->plain[i] == (i < pieces);
        memset(c->plain, 0, sizeof c->plain);
    }
    return ok;
}

static void *concurrent_caller(void *arg) {
    counts *c = calloc(1, sizeof *c);
    bool ok = c != NULL && calls_are_right(arg, c);
    free(c);
    return ok ? arg : NULL;
}

static void test_concurrent(void **state) {
    tn_pool *pool = tn_pool_create(NULL, 3);
    pthread_t threads[4];
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, concurrent_caller, pool), 0);
    for (int i = 0; i < 4; i++) {
        void *answer;
        pthread_join(threads[i], &answer);
        assert_non_null(answer);
    }
    tn_pool_destroy(pool);
}

/* The pieces really run beside each other: each waits for the other. */
static void meet(void *ctx, int64_t piece) {
    counts *c = ctx;
    (void)piece;
    atomic_fetch_add(&c->nested, 1);
    for (double end = tn_clock() + 20; atomic_load(&c->nested) < 2 && tn_clock() < end;)
        usleep(100);
}

static void test_parallel(void **state) {
    counts *c = calloc(1, sizeof *c);
    tn_pool *pool = tn_pool_create(NULL, 2);
    (void)state;
    double start = tn_clock();
    tn_pool_run(pool, 2, meet, c);
    assert_int_equal(atomic_load(&c->nested), 2);
    assert_true(tn_clock() - start < 19);
    tn_pool_destroy(pool);
    free(c);
}

static void note_rounding(void *ctx, int64_t piece) {
    ((counts *)ctx)->plain[piece] = fegetround();
    usleep(200);
}

/* Workers compute in the default mode although the host's thread that started them did not. */
static void test_floating_point_mode(void **state) {
    counts *c = calloc(1, sizeof *c);
    tn_pool *pool = tn_pool_create(NULL, 3);
    (void)state;
    fesetround(FE_UPWARD);
    tn_pool_run(pool, 60, note_rounding, c);
    fesetround(FE_TONEAREST);
    int others = 0;
    for (int i = 0; i < 60; i++) {
        assert_true(c->plain[i] == FE_TONEAREST || c->plain[i] == FE_UPWARD);
        others += c->plain[i] == FE_TONEAREST;
    }
    assert_true(others > 0);
    tn_pool_destroy(pool);
    free(c);
}

static bool run_is_right(tn_pool *pool) {
    counts *c = calloc(1, sizeof *c);
    bool ok = c != NULL;
    for (int round = 0; ok && round < 20; round++)
        tn_pool_run(pool, 100, count_piece, c);
    for (int i = 0; ok && i < 100; i++)
        ok = c->plain[i] == 20;
    if (ok) { /* and in parallel */
        atomic_store(&c->nested, 0);
        tn_pool_run(pool, 2, meet, c);
        ok = atomic_load(&c->nested) == 2;
    }
    free(c);
    return ok;
}

static void *busy_thread(void *arg) {
    static counts c; /* no block of a thread that a forked child has not: there it would be lost */
    return calls_are_right(arg, &c) ? arg : NULL;
}

static void test_fork(void **state) {
    (void)state;
    if (UNDER_TSAN) {
        print_message("fork under the thread sanitizer: skipped\n");
        return;
    }
    const char *emulator = getenv("TENON_EMULATED");
    if (emulator && *emulator) { /* qemu 7.2 asserts when a forked child of a program with threads makes a thread */
        print_message("fork under %s: skipped\n", emulator);
        return;
    }
    tn_pool *pool = tn_pool_create(NULL, 3);
    assert_true(run_is_right(pool));
    for (int round = 0; round < 5; round++) { /* the later ones fork while another thread runs jobs */
        pthread_t thread;
        if (round)
            assert_int_equal(pthread_create(&thread, NULL, busy_thread, pool), 0);
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            bool ok = run_is_right(pool);
            pid_t grandchild = fork();
            if (grandchild == 0) {
                alarm(60);
                ok = run_is_right(pool);
                tn_pool_destroy(pool);
                _exit(ok ? 0 : 1);
            }
            int status = 1;
            ok = ok && waitpid(grandchild, &status, 0) == grandchild && status == 0;
            tn_pool_destroy(pool);
            _exit(ok ? 0 : 1);
        }
        assert_true(child > 0);
        int status = 1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        if (round)
            pthread_join(thread, NULL);
        assert_true(run_is_right(pool));
    }
    pid_t child = fork(); /* destroyed in a child that never used it */
    if (child == 0) {
        alarm(60);
        tn_pool_destroy(pool);
        _exit(0);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    tn_pool_destroy(pool);
}

static void test_out_of_memory(void **state) {
    tn_heap *heap = tn_heap_create(NULL);
    (void)state;
    for (uint64_t n = 1;; n++) {
        tn_heap_fail_at(heap, n, true);
        tn_pool *pool = tn_pool_create(heap, 4);
        tn_heap_fail_at(heap, 0, false);
        if (pool) {
            tn_pool_destroy(pool);
            break;
        }
        assert_int_equal(tn_error_status(), TN_ERR_MEMORY);
        assert_int_equal(tn_heap_in_use(heap), 0);
    }
    tn_heap_fail_at(heap, 1, true);
    assert_null(tn_mutex_create(heap));
    tn_heap_fail_at(heap, 0, false);
    tn_heap_destroy(heap);
}

typedef struct shared_sum {
    tn_mutex *mutex;
    long sum;
} shared_sum;

static void add_locked(void *ctx, int64_t piece) {
    shared_sum *s = ctx;
    tn_mutex_lock(s->mutex);
    s->sum += piece;
    tn_mutex_unlock(s->mutex);
}

static void test_mutex(void **state) {
    shared_sum s = {tn_mutex_create(NULL), 0};
    tn_pool *pool = tn_pool_create(NULL, 4);
    (void)state;
    assert_non_null(s.mutex);
    tn_pool_run(pool, 1000, add_locked, &s);
    assert_int_equal(s.sum, 499500);
    tn_mutex_destroy(NULL, s.mutex);
    tn_mutex_destroy(NULL, NULL);
    tn_pool_destroy(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_once), cmocka_unit_test(test_parking),
        cmocka_unit_test(test_idle),      cmocka_unit_test(test_task),
        cmocka_unit_test(test_nested),    cmocka_unit_test(test_concurrent),
        cmocka_unit_test(test_parallel),  cmocka_unit_test(test_floating_point_mode),
        cmocka_unit_test(test_fork),      cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_mutex),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
