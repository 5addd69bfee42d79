/* 16-bit floats around the register tiles of a contraction at one instruction-set level: rows on their way in, sums on their way out. */
#include <string.h>
#include <tenon/types.h>

#include "kernels/gemm.h"
#include "kernels/half_float.h"
#include "kernels/isa/interleave.h"

/* The same instructions as AVX-512: that level's table serves. */
#if !defined(__AVX512VNNI__)

#define INLINE static inline __attribute__((always_inline))
/* Vectors are written out: what is left of a row is not worth code of its own for each case. */
#if defined(__GNUC__) && !defined(__clang__)
#define AS_WRITTEN __attribute__((optimize("no-tree-vectorize")))
#else
#define AS_WRITTEN
#endif

/* --- rows ------------------------------------------------------------------------------------------------------------------------------ */

/* NaN become quiet ones: as factors they would, anyway. */
AS_WRITTEN static void widen_f16(int64_t n, const void *from, int64_t stride, void *to) {
    const uint16_t *h = from;
    float *x = to;
    if (stride == 1)
        tn_vm_widen_f16(n, h, x);
    else
        for (int64_t i = 0; i < n; i++)
            x[i] = tn_vm_f32_of_f16(h[i * stride]);
}

INLINE float read_one_f16(const char *from) {
    return tn_vm_f32_of_f16(*(const uint16_t *)(const void *)from);
}
INLINE four read_f16(const char *from) {
#if defined(__F16C__)
    return (four)_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(const void *)from));
#else
    return (four){read_one_f16(from), read_one_f16(from + 2), read_one_f16(from + 4), read_one_f16(from + 6)};
#endif
}
AS_WRITTEN static void interleave_f16(int rows, int64_t n, const void *const *from, float *to) {
    interleave_by(read_f16, read_one_f16, 2, rows, n, from, to);
}

INLINE float read_one_bf16(const char *from) {
    return tn_vm_f32_of_bf16(*(const uint16_t *)(const void *)from);
}
INLINE four read_bf16(const char *from) {
    return (four){read_one_bf16(from), read_one_bf16(from + 2), read_one_bf16(from + 4), read_one_bf16(from + 6)};
}
AS_WRITTEN static void interleave_bf16(int rows, int64_t n, const void *const *from, float *to) {
    interleave_by(read_bf16, read_one_bf16, 2, rows, n, from, to);
}

/* --- outputs --------------------------------------------------------------------------------------------------------------------------- */

#define SOME 16 /* elements at once */

static __attribute__((noinline)) void widen(bool bf16, const uint16_t *from, float *to) {
    if (bf16)
        for (int i = 0; i < SOME; i++)
            to[i] = tn_vm_f32_of_bf16(from[i]);
    else
        tn_vm_widen_f16(SOME, from, to);
}
static __attribute__((noinline)) void narrow(bool bf16, const float *from, uint16_t *to) {
    if (bf16)
        for (int i = 0; i < SOME; i++)
            to[i] = tn_vm_bf16_of_f32(from[i]);
    else
        tn_vm_narrow_f16(SOME, from, to);
}

/* n columns of a row, SOME at most. A bound is a number of the outputs' dtype, and rounding keeps order: what is rounded after bounds is what
   it would be before. */
static void finish_some(const tn_finish *f, int n, int64_t first, const float *c, const uint16_t *all, uint16_t *to) {
    bool bf16 = f->dtype == TN_BF16;
    float y[SOME] = {0}, x[SOME];
    uint16_t line[SOME] = {0};
    memcpy(y, c, (size_t)n * sizeof *c);
    for (int s = 0; s < f->steps; s++) {
        const tn_finish_step *step = &f->step[s];
        if (step->op == TN_FINISH_ADD || step->op == TN_FINISH_MUL) {
            narrow(bf16, y, line);
            widen(bf16, line, y);
        }
        if (step->form != TN_FINISH_ONE) {
            memcpy(line, step->form == TN_FINISH_ALL ? all : (const uint16_t *)step->at + first,
                   (size_t)n * sizeof *line);
            widen(bf16, line, x);
        } else
            for (int i = 0; i < SOME; i++)
                x[i] = step->one;
        float zero = step->one == 0 ? step->one : -0.0f; /* see isa/gemm.c */
        switch ((tn_finish_op)step->op) {
        case TN_FINISH_ADD:
            for (int i = 0; i < SOME; i++)
                y[i] = y[i] + x[i];
            break;
        case TN_FINISH_MUL:
            for (int i = 0; i < SOME; i++)
                y[i] = y[i] * x[i];
            break;
        case TN_FINISH_MAX:
            for (int i = 0; i < SOME; i++)
                y[i] = (x[i] > y[i] ? x[i] : y[i]) + zero;
            break;
        case TN_FINISH_MIN:
            for (int i = 0; i < SOME; i++)
                y[i] = x[i] < y[i] ? x[i] : y[i];
            break;
        default: break; /* of f32 alone */
        }
    }
    narrow(bf16, y, line);
    memcpy(to, line, (size_t)n * sizeof *line);
}

#if defined(__F16C__)
#define BOTH(i) _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)
/* The same of SOME columns of f16 of two rows, in registers. */
static void finish_f16(const tn_finish *f, int64_t first, float *const *c, const uint16_t *const *all,
                       uint16_t *const *to) {
    __m256 y[4], x[4];
    BOTH(i)
    y[i] = _mm256_loadu_ps(c[i / 2] + i % 2 * 8);
    for (int s = 0; s < f->steps; s++) {
        const tn_finish_step *step = &f->step[s];
        __m256 zero = _mm256_set1_ps(step->one == 0 ? step->one : -0.0f);
        if (step->form == TN_FINISH_ONE)
            BOTH(i)
        x[i] = _mm256_set1_ps(step->one);
        else BOTH(i) {
            const uint16_t *from = step->form == TN_FINISH_ALL ? all[i / 2] : (const uint16_t *)step->at + first;
            x[i] = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i % 2 * 8)));
        }
        if (step->op == TN_FINISH_ADD || step->op == TN_FINISH_MUL)
            BOTH(i)
        y[i] = _mm256_cvtph_ps(_mm256_cvtps_ph(y[i], _MM_FROUND_TO_NEAREST_INT));
        switch ((tn_finish_op)step->op) {
        case TN_FINISH_ADD:
            BOTH(i)
            y[i] = _mm256_add_ps(y[i], x[i]);
            break;
        case TN_FINISH_MUL:
            BOTH(i)
            y[i] = _mm256_mul_ps(y[i], x[i]);
            break;
        case TN_FINISH_MAX:
            BOTH(i)
            y[i] = _mm256_add_ps(_mm256_max_ps(x[i], y[i]), zero);
            break;
        case TN_FINISH_MIN:
            BOTH(i)
            y[i] = _mm256_min_ps(x[i], y[i]);
            break;
        default: break; /* of f32 alone */
        }
    }
    BOTH(i)
    _mm_storeu_si128((__m128i *)(void *)(to[i / 2] + i % 2 * 8), _mm256_cvtps_ph(y[i], _MM_FROUND_TO_NEAREST_INT));
}
#endif

static void finish(const tn_finish *f, int rows, int64_t columns, int64_t first, float *const *c,
                   const void *const *all, uint16_t *const *to) {
    for (int64_t j = 0; j < columns; j += SOME) {
        int i = 0;
#if defined(__F16C__)
        for (; f->dtype == TN_F16 && columns - j >= SOME && i + 2 <= rows; i += 2) {
            float *from[2] = {c[i] + j, c[i + 1] + j};
            const uint16_t *also[2] = {all ? (const uint16_t *)all[i] + j : NULL,
                                       all ? (const uint16_t *)all[i + 1] + j : NULL};
            finish_f16(f, first + j, from, also, (uint16_t *const[]){to[i] + j, to[i + 1] + j});
        }
#endif
        for (; i < rows; i++)
            finish_some(f, columns - j < SOME ? (int)(columns - j) : SOME, first + j, c[i] + j,
                        all ? (const uint16_t *)all[i] + j : NULL, to[i] + j);
    }
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
const tn_half_level PASTE(tn_half_, TN_ISA) = {
    .widen_f16 = widen_f16, .interleave_f16 = interleave_f16, .interleave_bf16 = interleave_bf16, .finish = finish};

#endif
