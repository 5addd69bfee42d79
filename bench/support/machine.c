#include "support/machine.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/os.h"
#include "kernels/calibrate.h"

static volatile float sink;

double machine_multiply_add_rate(int threads, int rounds) {
    tn_pool *pool = threads > 1 ? tn_pool_create(NULL, threads) : NULL;
    double rate = tn_calibrate_operations(tn_cpu_best(), pool, rounds);
    tn_pool_destroy(pool);
    return rate;
}

double machine_copy_rate(int rounds) {
    return tn_calibrate_copy(NULL, 16 << 20, rounds + 1);
}

/* --- memory ------------------------------------------------------------------------------------------------------------------------------ */

#if defined(__x86_64__)
__attribute__((target("avx2")))
#endif
static uint64_t
read_all(const char *block, int64_t bytes) {
    typedef uint64_t vec __attribute__((vector_size(32), may_alias));
    vec a = {0}, b = {0}, c = {0}, d = {0};
    for (int64_t i = 0; i + 128 <= bytes; i += 128) {
        const vec *p = (const vec *)(const void *)(block + i);
        a |= p[0];
        b |= p[1];
        c |= p[2];
        d |= p[3];
    }
    a |= b | c | d;
    return a[0] | a[1] | a[2] | a[3];
}

double machine_read_rate(int64_t bytes, int rounds) {
    char *block = aligned_alloc(64, (size_t)bytes);
    double best = INFINITY;
    if (!block)
        exit(1);
    memset(block, 1, (size_t)bytes);
    int64_t repeat = 1 + (8 << 20) / bytes;
    for (int i = 0; i <= rounds; i++) {
        double start = tn_clock();
        for (int64_t j = 0; j < repeat; j++)
            sink = (float)read_all(block, bytes);
        if (i)
            best = fmin(best, (tn_clock() - start) / (double)repeat);
    }
    free(block);
    return (double)bytes / best;
}

typedef struct bell {
    pthread_mutex_t lock;
    pthread_cond_t rung;
    int rings, heard;
    double at, latest; /* when it rang; the delay of the last ring */
} bell;

enum { RINGS = 200 };

static void *listen_for(void *ctx) {
    bell *b = ctx;
    pthread_mutex_lock(&b->lock);
    while (b->heard < RINGS) {
        while (b->rings == b->heard)
            pthread_cond_wait(&b->rung, &b->lock);
        b->latest = tn_clock() - b->at;
        b->heard++;
        pthread_cond_signal(&b->rung);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double machine_wake_time(void) {
    bell b = {.lock = PTHREAD_MUTEX_INITIALIZER, .rung = PTHREAD_COND_INITIALIZER};
    double delay[RINGS];
    pthread_t thread;
    if (pthread_create(&thread, NULL, listen_for, &b))
        exit(1);
    for (int i = 0; i < RINGS; i++) {
        usleep(200); /* it sleeps by now */
        pthread_mutex_lock(&b.lock);
        b.at = tn_clock();
        b.rings++;
        pthread_cond_signal(&b.rung);
        while (b.heard < b.rings)
            pthread_cond_wait(&b.rung, &b.lock);
        delay[i] = b.latest;
        pthread_mutex_unlock(&b.lock);
    }
    pthread_join(thread, NULL);
    qsort(delay, RINGS, sizeof *delay, by_size);
    return delay[RINGS / 2];
}

double machine_page_time(void) {
    const size_t bytes = 32 << 20, page = tn_page_size();
    double best = INFINITY;
    for (int i = 0; i < 3; i++) {
        char *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED)
            exit(1);
        double start = tn_clock();
        for (size_t at = 0; at < bytes; at += page)
            block[at] = 1;
        best = fmin(best, tn_clock() - start);
        munmap(block, bytes);
    }
    return best / ((double)bytes / (double)page);
}

void machine_print(int threads) {
    printf("multiply-add, 1 thread      %9.1f GFLOP/s\n", machine_multiply_add_rate(1, 9) * 1e-9);
    if (threads > 1)
        printf("multiply-add, %d threads     %9.1f GFLOP/s\n", threads, machine_multiply_add_rate(threads, 9) * 1e-9);
    static const struct {
        const char *name;
        int64_t bytes;
    } blocks[] = {{"24 KiB", 24 << 10}, {"256 KiB", 256 << 10}, {"4 MiB", 4 << 20}, {"256 MiB", 256 << 20}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        printf("read of %-10s          %9.1f GB/s\n", blocks[i].name, machine_read_rate(blocks[i].bytes, 7) * 1e-9);
    printf("copy of 16 MiB              %9.1f GB/s\n", machine_copy_rate(20) * 1e-9);
    printf("waking a thread             %9.1f us\n", machine_wake_time() * 1e6);
    printf("first write to a page       %9.2f us\n", machine_page_time() * 1e6);
}
