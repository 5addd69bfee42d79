#include "support/machine.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include "base/os.h"

static volatile float sink;

/* --- multiply-adds --------------------------------------------------------------------------------------------------------------------- */

/* A million rounds of multiply-adds into ten independent sums: no two start alike, or a compiler would keep one of them. */
#define ROUNDS 1000000
#define SUMS 10
#define PEAK(name, target, vector, lanes, madd)                                                  \
    target static float name(void) {                                                             \
        vector sum[SUMS], x = {0}, y = {0};                                                      \
        x += 0.999f, y += 1e-3f;                                                                 \
        _Pragma("GCC unroll 10") for (int i = 0; i < SUMS; i++) sum[i] = y * (float)i;           \
        for (int n = 0; n < ROUNDS; n++)                                                         \
            _Pragma("GCC unroll 10") for (int i = 0; i < SUMS; i++) sum[i] = madd(sum[i], x, y); \
        float total = 0;                                                                         \
        for (int i = 0; i < SUMS; i++)                                                           \
            for (int j = 0; j < lanes; j++)                                                      \
                total += sum[i][j];                                                              \
        return total;                                                                            \
    }
#if defined(__x86_64__)
PEAK(peak_avx2, __attribute__((target("avx2,fma"))), __m256, 8, _mm256_fmadd_ps)
PEAK(peak_avx512, __attribute__((target("avx512f"))), __m512, 16, _mm512_fmadd_ps)
#endif
#if defined(__ARM_NEON)
#define MADD(a, b, c) vfmaq_f32(c, a, b)
PEAK(peak_plain, , float32x4_t, 4, MADD)
#else
typedef float lanes4 __attribute__((vector_size(16)));
#define MADD(a, b, c) ((a) * (b) + (c))
PEAK(peak_plain, , lanes4, 4, MADD)
#endif

static int peak_once(void) {
#if defined(__x86_64__)
    int lanes = tn_cpu_has(TN_ISA_AVX512) ? 16 : tn_cpu_has(TN_ISA_AVX2) ? 8 : 4;
    sink = lanes == 16 ? peak_avx512() : lanes == 8 ? peak_avx2() : peak_plain();
    return lanes;
#else
    sink = peak_plain();
    return 4;
#endif
}

static void *peak_thread(void *barrier) {
    pthread_barrier_wait(barrier);
    peak_once();
    pthread_barrier_wait(barrier);
    return NULL;
}

double machine_multiply_add_rate(int threads, int rounds) {
    double best = INFINITY;
    int lanes = 4;
    for (int i = 0; i < rounds; i++) {
        pthread_barrier_t barrier;
        pthread_t thread[64];
        int others = threads > 64 ? 64 : threads - 1;
        pthread_barrier_init(&barrier, NULL, (unsigned)others + 1);
        for (int t = 0; t < others; t++)
            if (pthread_create(&thread[t], NULL, peak_thread, &barrier))
                exit(1);
        pthread_barrier_wait(&barrier);
        double start = tn_clock();
        lanes = peak_once();
        pthread_barrier_wait(&barrier);
        best = fmin(best, tn_clock() - start);
        for (int t = 0; t < others; t++)
            pthread_join(thread[t], NULL);
        pthread_barrier_destroy(&barrier);
    }
    return 2.0 * ROUNDS * SUMS * lanes * threads / best;
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

double machine_copy_rate(int rounds) {
    const size_t bytes = 16 << 20;
    char *a = malloc(bytes), *b = malloc(bytes);
    double best = INFINITY;
    if (!a || !b)
        exit(1);
    memset(a, 1, bytes);
    for (int i = 0; i <= rounds; i++) {
        double start = tn_clock();
        memcpy(b, a, bytes);
        sink = b[i * 1000];
        if (i)
            best = fmin(best, tn_clock() - start);
    }
    free(a);
    free(b);
    return 2 * (double)bytes / best;
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
