/* Register tiles of the contraction at one instruction-set level. Vectors are GNU vector types; the accumulators of a tile stay in
   registers for the whole sum. */
#include "kernels/gemm.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
#define WIDTH 16
#define VECTORS 2
#define ROWS 12
#elif defined(__AVX2__)
#define WIDTH 8
#define VECTORS 2
#define ROWS 6
#else
#define WIDTH 4
#define VECTORS 4
#define ROWS 4
#endif
#define COLUMNS (WIDTH * VECTORS)

typedef float vec __attribute__((vector_size(WIDTH * 4)));
typedef float loose __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

INLINE vec load(const float *p) {
    return *(const loose *)p;
}
INLINE void store(float *p, vec v) {
    *(loose *)p = v;
}
INLINE vec splat(float x) {
    return x - (vec){0};
}

/* a * b + c, rounded once where the level has the instruction. */
INLINE vec madd(vec a, vec b, vec c) {
#if defined(__AVX512F__)
    return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
    return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__ARM_NEON)
    return (vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

INLINE void tile_of(const int rows, const tn_gemm_tile *t) {
    vec sum[ROWS][VECTORS];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++)
            sum[i][v] = (vec){0};
    if (t->add && t->columns == COLUMNS) {
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++)
                sum[i][v] = load(t->c[i] + v * WIDTH);
    } else if (t->add) {
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            float line[COLUMNS] = {0};
            for (int j = 0; j < t->columns; j++)
                line[j] = t->c[i][j];
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++)
                sum[i][v] = load(line + v * WIDTH);
        }
    }
    const float *b = t->b;
    for (int64_t r = 0; r < t->runs; r++) {
        const float *a[ROWS];
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
            a[i] = t->a[r * t->stride + i];
        for (int64_t k = 0, n = t->length[r]; k < n; k++, b += COLUMNS) {
            vec column[VECTORS];
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++)
                column[v] = load(b + v * WIDTH);
#pragma GCC unroll 16
            for (int i = 0; i < rows; i++) {
                vec x = splat(a[i][k]);
#pragma GCC unroll 4
                for (int v = 0; v < VECTORS; v++)
                    sum[i][v] = madd(x, column[v], sum[i][v]);
            }
        }
    }
    if (t->columns == COLUMNS) {
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++)
                store(t->c[i] + v * WIDTH, sum[i][v]);
        return;
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        float line[COLUMNS];
        for (int v = 0; v < VECTORS; v++)
            store(line + v * WIDTH, sum[i][v]);
        for (int j = 0; j < t->columns; j++)
            t->c[i][j] = line[j];
    }
}

static void tile(const tn_gemm_tile *t) {
    switch (t->rows) {
    case 1: tile_of(1, t); break;
    case 2: tile_of(2, t); break;
    case 3: tile_of(3, t); break;
    case 4: tile_of(4, t); break;
#if ROWS > 4
    case 5: tile_of(5, t); break;
    case 6: tile_of(6, t); break;
#endif
#if ROWS > 6
    case 7: tile_of(7, t); break;
    case 8: tile_of(8, t); break;
    case 9: tile_of(9, t); break;
    case 10: tile_of(10, t); break;
    case 11: tile_of(11, t); break;
    case 12: tile_of(12, t); break;
#endif
    default: break;
    }
}

static void depthwise(const tn_depthwise_row *d) {
    int64_t g = 0;
    for (; g + COLUMNS <= d->groups; g += COLUMNS) {
        vec sum[VECTORS];
        for (int v = 0; v < VECTORS; v++)
            sum[v] = (vec){0};
        for (int64_t t = 0; t < d->taps; t++) {
            if (!d->a[t])
                continue;
            const float *a = d->a[t] + g, *w = d->w + t * d->stride + g;
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++)
                sum[v] = madd(load(a + v * WIDTH), load(w + v * WIDTH), sum[v]);
        }
        for (int v = 0; v < VECTORS; v++)
            store(d->out + g + v * WIDTH, sum[v]);
    }
    for (; g < d->groups; g++) {
        vec sum = {0};
        for (int64_t t = 0; t < d->taps; t++)
            if (d->a[t])
                sum = madd(splat(d->a[t][g]), splat(d->w[t * d->stride + g]), sum);
        d->out[g] = sum[0];
    }
}

static void depthwise_line(const tn_depthwise_line *d) {
    for (int64_t i = 0; i < d->n; i++)
        d->out[i] = 0;
    for (int64_t t = 0; t < d->taps; t++) {
        const float *a = d->a[t];
        int64_t i = d->low[t], end = d->high[t];
        vec w = splat(d->w[t * d->w_stride]);
        for (; d->step == 1 && i + WIDTH <= end; i += WIDTH)
            store(d->out + i, madd(load(a + i), w, load(d->out + i)));
        for (; i < end; i++)
            d->out[i] = madd(splat(a[i * d->step]), w, splat(d->out[i]))[0];
    }
}

/* Twelve independent sums, no two alike: a compiler would keep one of them. */
#define SUMS 12
static float peak(int64_t rounds) {
    vec sum[SUMS], a = splat(0.999f), b = splat(1e-3f);
#pragma GCC unroll 12
    for (int i = 0; i < SUMS; i++)
        sum[i] = splat((float)i);
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 12
        for (int i = 0; i < SUMS; i++)
            sum[i] = madd(sum[i], a, b);
    float total = 0;
#pragma GCC unroll 12
    for (int i = 0; i < SUMS; i++)
        total += sum[i][0] + sum[i][WIDTH - 1];
    return total;
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
const tn_gemm_level PASTE(tn_gemm_, TN_ISA) = {.rows = ROWS,
                                               .columns = COLUMNS,
                                               .tile = tile,
                                               .depthwise = depthwise,
                                               .depthwise_line = depthwise_line,
                                               .peak = peak,
                                               .peak_operations = 2 * SUMS * WIDTH};
