/* 16-bit floats to f32 and back, branch-free; the same values as ir/convert.c. For the files of isa/. */
#ifndef TN_KERNELS_HALF_FLOAT_H
#define TN_KERNELS_HALF_FLOAT_H

#include "kernels/vector_math.h"

TN_VM float tn_vm_f32_of_f16(uint16_t h) {
    uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
    float scaled = tn_vm_float(magnitude) * 0x1p112f; /* subnormals too */
    uint32_t u = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : tn_vm_bits(scaled);
    return tn_vm_float(u | sign);
}
TN_VM uint16_t tn_vm_f16_of_f32(float x) {
    uint32_t u = tn_vm_bits(x), sign = u >> 16 & 0x8000u, magnitude = u & 0x7fffffffu;
    uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1) - 0x38000000u) >> 13;
    uint32_t small = tn_vm_bits(tn_vm_float(magnitude) + 0.5f) - 0x3f000000u; /* the addition rounds to 2^-24 */
    uint32_t code = magnitude < 0x38800000u ? small : normal;
    code = magnitude >= 0x477ff000u ? 0x7c00u : code;
    code = magnitude > 0x7f800000u ? 0x7e00u | (magnitude >> 13 & 0x1ffu) : code;
    return (uint16_t)(sign | code);
}
TN_VM float tn_vm_f32_of_bf16(uint16_t h) {
    return tn_vm_float((uint32_t)h << 16);
}
TN_VM uint16_t tn_vm_bf16_of_f32(float x) {
    uint32_t u = tn_vm_bits(x), rounded = (u + 0x7fffu + (u >> 16 & 1)) >> 16;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? u >> 16 | 0x40u : rounded);
}

#if defined(__F16C__)
#include <immintrin.h>
#define TN_VM_HALVES(a) _mm256_cvtps_ph(_mm256_loadu_ps(a), _MM_FROUND_TO_NEAREST_INT)
#endif

/* f16 in f32; NaN that signal may become quiet ones. */
TN_VM void tn_vm_widen_f16(int64_t n, const uint16_t *from, float *to) {
#if defined(__F16C__)
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
    for (; i < n; i++)
        to[i] = tn_vm_f32_of_f16(from[i]);
#else
    TN_VM_LOOP(n) to[i] = tn_vm_f32_of_f16(from[i]);
#endif
}

/* What f32 becomes in f16, and back in f32. */
TN_VM void tn_vm_narrow_f16(int64_t n, const float *a, uint16_t *to) {
#if defined(__F16C__)
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(to + i), TN_VM_HALVES(a + i));
    for (; i < n; i++)
        to[i] = tn_vm_f16_of_f32(a[i]);
#else
    TN_VM_LOOP(n) to[i] = tn_vm_f16_of_f32(a[i]);
#endif
}
TN_VM void tn_vm_round_f16(int64_t n, const float *a, float *to) {
#if defined(__F16C__)
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(TN_VM_HALVES(a + i)));
    for (; i < n; i++)
        to[i] = tn_vm_f32_of_f16(tn_vm_f16_of_f32(a[i]));
#else
    TN_VM_LOOP(n) to[i] = tn_vm_f32_of_f16(tn_vm_f16_of_f32(a[i]));
#endif
}

#endif
