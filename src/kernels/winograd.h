/* The transforms of Winograd's convolution (ops/winograd.h) on tiles in f32. One source for each instruction-set level (isa/winograd.c). */
#ifndef TN_KERNELS_WINOGRAD_H
#define TN_KERNELS_WINOGRAD_H

#include <stdint.h>

#include "ops/winograd.h"

/* v[p * pitch + c] for the n * n points p and channels c: B' x B. pixel[i * n + j]: the channels of input (i, j), side by side. Whole
   vectors are written, beyond the last channel too: up to the next multiple of 16. */
typedef void tn_winograd_in_fn(int64_t channels, const float *const *pixel, float *v, int64_t pitch);
/* y[i * m + j][c]: A' s A of the sums s[p * pitch + c], for as many columns c as a panel has. */
typedef void tn_winograd_out_fn(const float *s, int64_t pitch, float *const *y);

/* By m / 2 - 1. */
typedef struct tn_winograd_level {
    tn_winograd_in_fn *in[2];
    tn_winograd_out_fn *out[2];
} tn_winograd_level;

extern const tn_winograd_level tn_winograd_generic, tn_winograd_avx2, tn_winograd_avx512, tn_winograd_neon;

#endif
