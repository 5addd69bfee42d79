/* Sums of f32 in lanes, as tn_strip_sums says; for the files of isa/. */
#ifndef TN_KERNELS_SUMS_H
#define TN_KERNELS_SUMS_H

#include "kernels/strip.h"
#include "kernels/vector_math.h"
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

/* As many lanes as one register has. */
#if defined(__AVX512F__)
#define TN_VM_PART 16
#else
#define TN_VM_PART 8
#endif
typedef float tn_vm_part __attribute__((vector_size(TN_VM_PART * 4), aligned(4), may_alias));
typedef double tn_vm_half __attribute__((vector_size(TN_VM_PART * 4), aligned(8), may_alias));

#define TN_VM_PARTS (TN_STRIP_LANES / TN_VM_PART)
#define TN_VM_GROUP (TN_STRIP_LANES * TN_STRIP_SUMMED)

/* Puts the parts where they belong: the group they are of is whole, or the last. */
TN_VM void tn_vm_end_group(tn_strip_sums *s) {
    for (int l = 0; l < TN_STRIP_LANES; l++) {
        s->sum[l] += (double)s->part[l];
        s->part[l] = 0;
    }
}

/* In registers: a part that is stored in halves and read whole waits for memory. */
TN_VM void tn_vm_end_parts(const tn_vm_part *part, double *sum) {
#if defined(__AVX512F__)
    /* compilers make four of the two conversions */
    __m256 low = _mm512_castps512_ps256((__m512)*part),
           high = _mm256_castpd_ps(_mm512_extractf64x4_pd((__m512d)*part, 1));
    *(tn_vm_half *)(void *)sum += (tn_vm_half)_mm512_cvtps_pd(low);
    *(tn_vm_half *)(void *)(sum + 8) += (tn_vm_half)_mm512_cvtps_pd(high);
#else
    float each[TN_STRIP_LANES];
    __builtin_memcpy(each, part, sizeof each);
    for (int l = 0; l < TN_STRIP_LANES; l++)
        sum[l] += (double)each[l];
#endif
}

#define TN_VM_PART_AT(x) (*(const tn_vm_part *)(const void *)(x))

/* A whole group; no parts wait. */
TN_VM void tn_vm_add_group(const float *x, double *sum) {
    tn_vm_part part[TN_VM_PARTS];
    for (int h = 0; h < TN_VM_PARTS; h++) {
        part[h] = TN_VM_PART_AT(x + TN_VM_PART * h);
        for (int k = 1; k < TN_STRIP_SUMMED; k++)
            part[h] += TN_VM_PART_AT(x + TN_VM_PART * h + k * TN_STRIP_LANES);
    }
    tn_vm_end_parts(part, sum);
}

/* to = x - shift, and the squares of that. */
TN_VM void tn_vm_add_squares(const float *x, float shift, float *to, double *sum) {
    tn_vm_part part[TN_VM_PARTS];
    for (int h = 0; h < TN_VM_PARTS; h++)
        for (int k = 0; k < TN_STRIP_SUMMED; k++) {
            int64_t at = TN_VM_PART * h + k * TN_STRIP_LANES;
            tn_vm_part d = TN_VM_PART_AT(x + at) - shift;
            *(tn_vm_part *)(void *)(to + at) = d;
            if (k)
                part[h] += d * d;
            else
                part[h] = d * d;
        }
    tn_vm_end_parts(part, sum);
}

/* tn_strip_fold_fn */
TN_VM void tn_vm_add_sums(int64_t n, const float *x, int64_t phase, tn_strip_sums *s) {
    _Alignas(64) double sum[TN_STRIP_LANES];
    int64_t i = 0, k = phase % TN_VM_GROUP;
    for (; i < n && k; i++) {
        s->part[k % TN_STRIP_LANES] += x[i];
        if ((k = (k + 1) % TN_VM_GROUP) == 0)
            tn_vm_end_group(s);
    }
    __builtin_memcpy(sum, s->sum, sizeof sum);
    for (; i + TN_VM_GROUP <= n; i += TN_VM_GROUP)
        tn_vm_add_group(x + i, sum);
    __builtin_memcpy(s->sum, sum, sizeof sum);
    for (; i < n; i++, k++)
        s->part[k % TN_STRIP_LANES] += x[i];
}

/* Lanes in pairs, in arrays of their own: these stay in registers. */
TN_VM double tn_vm_sum_lanes(const double *sum) {
    double eight[8], four[4];
    for (int l = 0; l < 8; l++)
        eight[l] = sum[l] + sum[l + 8];
    for (int l = 0; l < 4; l++)
        four[l] = eight[l] + eight[l + 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/* The sum of n elements from the first on. */
TN_VM double tn_vm_sum_row(int64_t n, const float *x) {
    tn_strip_sums s;
    int64_t whole = n - n % TN_VM_GROUP;
    for (int l = 0; l < TN_STRIP_LANES; l++)
        s.sum[l] = 0;
    for (int64_t i = 0; i < whole; i += TN_VM_GROUP)
        tn_vm_add_group(x + i, s.sum);
    if (whole < n) {
        for (int l = 0; l < TN_STRIP_LANES; l++)
            s.part[l] = 0;
        for (int64_t i = whole; i < n; i += TN_STRIP_LANES) {
            int64_t m = n - i < TN_STRIP_LANES ? n - i : TN_STRIP_LANES;
            for (int64_t l = 0; l < m; l++)
                s.part[l] += x[i + l];
        }
        tn_vm_end_group(&s);
    }
    return tn_vm_sum_lanes(s.sum);
}

#endif
