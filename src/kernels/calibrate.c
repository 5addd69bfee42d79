#include "kernels/calibrate.h"

#include <string.h>

#include "kernels/gemm.h"

#define ROUNDS 100000

typedef struct work {
    const tn_gemm_level *level;
    _Atomic int sink;
    char *from, *to;
    size_t bytes; /* of a thread */
} work;

static const tn_gemm_level *level_of(tn_isa isa) {
#if defined(TN_HAVE_ISA_AVX512)
    if (isa >= TN_ISA_AVX512 && isa <= TN_ISA_AVX512_VNNI)
        return &tn_gemm_avx512;
    if (isa == TN_ISA_AVX2)
        return &tn_gemm_avx2;
#elif defined(TN_HAVE_ISA_NEON)
    if (isa == TN_ISA_NEON)
        return &tn_gemm_neon;
#endif
    (void)isa;
    return &tn_gemm_generic;
}

static void compute(void *ctx, int64_t piece) {
    work *w = ctx;
    w->sink = (int)w->level->peak(ROUNDS) + (int)piece;
}

static void copy(void *ctx, int64_t piece) {
    work *w = ctx;
    memcpy(w->to + (size_t)piece * w->bytes, w->from + (size_t)piece * w->bytes, w->bytes);
    w->sink = w->to[(size_t)piece * w->bytes];
}

static double best_time(tn_pool *pool, int rounds, void (*run)(void *, int64_t), work *w) {
    double best = 0;
    for (int i = 0; i < rounds; i++) {
        double start = tn_clock();
        tn_pool_run(pool, tn_pool_threads(pool), run, w);
        double time = tn_clock() - start;
        best = i == 0 || time < best ? time : best;
    }
    return best;
}

double tn_calibrate_operations(tn_isa isa, tn_pool *pool, int rounds) {
    work w = {.level = level_of(isa)};
    double time = best_time(pool, rounds, compute, &w);
    return (double)tn_pool_threads(pool) * ROUNDS * w.level->peak_operations / time;
}

double tn_calibrate_copy(tn_pool *pool, size_t bytes, int rounds) {
    size_t threads = (size_t)tn_pool_threads(pool);
    tn_heap *heap = tn_heap_create(NULL); /* not the caller's: its peak is a figure, too */
    char *block = heap ? tn_alloc_aligned(heap, 2 * bytes + 64, 64) : NULL;
    double rate = 0;
    if (block) {
        memset(block, 1, 2 * bytes); /* pages are there */
        work w = {.from = block, .to = block + bytes, .bytes = bytes / threads};
        rate = 2 * (double)(w.bytes * threads) / best_time(pool, rounds, copy, &w);
    }
    tn_free(heap, block);
    tn_heap_destroy(heap);
    return rate;
}
