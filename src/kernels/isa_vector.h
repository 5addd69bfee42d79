/* Vectors of f32 at the instruction-set level that a file of isa/ is built for, as GNU vector types: what its register tiles are made of. */
#ifndef TN_KERNELS_ISA_VECTOR_H
#define TN_KERNELS_ISA_VECTOR_H

#include <stdint.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
#define WIDTH 16
#define VECTORS 2
#elif defined(__AVX2__)
#define WIDTH 8
#define VECTORS 2
#else
#define WIDTH 4
#define VECTORS 4
#endif
#define COLUMNS (WIDTH * VECTORS)

/* Whether what is only faster is worth its code: not at the lowest level, which serves processors of before 2013. */
#if defined(__AVX2__) || defined(__ARM_NEON)
#define WORTH_CODE 1
#else
#define WORTH_CODE 0
#endif

typedef float vec __attribute__((vector_size(WIDTH * 4)));
typedef int32_t bits __attribute__((vector_size(WIDTH * 4))); /* and what comparisons give */
typedef float loose __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));

/* A loop that is unrolled whole: arrays of vectors stay in registers only then. */
#if defined(__clang__)
#define EACH(i, n) _Pragma("clang loop unroll(full)") for (int i = 0; i < (n); i++)
#else
#define EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)
#endif

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

/* The first n elements (none, or a vector of them at most); zeros beyond. */
#if defined(__AVX512F__)
#define FIRST(n) ((__mmask16)((1u << ((n) < 0 ? 0 : (n) > WIDTH ? WIDTH : (n))) - 1))
INLINE vec load_part(const float *p, int64_t n) {
    return (vec)_mm512_maskz_loadu_ps(FIRST(n), p);
}
INLINE void store_part(float *p, vec v, int64_t n) {
    _mm512_mask_storeu_ps(p, FIRST(n), (__m512)v);
}
#else
static __attribute__((noinline, unused)) vec load_part(const float *p, int64_t n) {
    vec v = {0};
    for (int64_t i = 0; i < n && i < WIDTH; i++)
        v[i] = p[i];
    return v;
}
static __attribute__((noinline, unused)) void store_part(float *p, vec v, int64_t n) {
    for (int64_t i = 0; i < n && i < WIDTH; i++)
        p[i] = v[i];
}
#endif

/* Whether one is not 0. */
INLINE int any_of(bits b) {
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)b, (__m512i)b) != 0;
#elif defined(__AVX2__)
    return !_mm256_testz_si256((__m256i)b, (__m256i)b);
#elif defined(__ARM_NEON) && defined(__aarch64__)
    return vmaxvq_u32((uint32x4_t)b) != 0;
#else
    int any = 0;
    EACH (i, WIDTH)
        any |= b[i] != 0;
    return any;
#endif
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

#endif
