/* Sums of f32 in lanes, as tn_strip_sums says; for the files of isa/. */
#ifndef TN_KERNELS_SUMS_H
#define TN_KERNELS_SUMS_H

#include "kernels/strip.h"
#include "kernels/vector_math.h"

typedef float tn_vm_f32x8 __attribute__((vector_size(32), aligned(4), may_alias));

#define TN_VM_GROUP (TN_STRIP_LANES * TN_STRIP_SUMMED)

/* Puts the parts where they belong: the group they are of is whole, or the last. */
TN_VM void tn_vm_end_group(tn_strip_sums *s) {
    for (int l = 0; l < TN_STRIP_LANES; l++) {
        s->sum[l] += (double)s->part[l];
        s->part[l] = 0;
    }
}

TN_VM void tn_vm_end_parts(const tn_vm_f32x8 *part, double *sum) {
    float each[TN_STRIP_LANES];
    __builtin_memcpy(each, part, sizeof each);
    for (int l = 0; l < TN_STRIP_LANES; l++)
        sum[l] += (double)each[l];
}

/* A whole group; no parts wait. */
TN_VM void tn_vm_add_group(const float *x, double *sum) {
    tn_vm_f32x8 part[2];
    for (int h = 0; h < 2; h++) {
        part[h] = *(const tn_vm_f32x8 *)(const void *)(x + 8 * h);
        for (int k = 1; k < TN_STRIP_SUMMED; k++)
            part[h] += *(const tn_vm_f32x8 *)(const void *)(x + 8 * h + k * TN_STRIP_LANES);
    }
    tn_vm_end_parts(part, sum);
}

/* to = x - shift, and the squares of that. */
TN_VM void tn_vm_add_squares(const float *x, float shift, float *to, double *sum) {
    tn_vm_f32x8 part[2];
    for (int h = 0; h < 2; h++)
        for (int k = 0; k < TN_STRIP_SUMMED; k++) {
            tn_vm_f32x8 d = *(const tn_vm_f32x8 *)(const void *)(x + 8 * h + k * TN_STRIP_LANES) - shift;
            *(tn_vm_f32x8 *)(void *)(to + 8 * h + k * TN_STRIP_LANES) = d;
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

#endif
