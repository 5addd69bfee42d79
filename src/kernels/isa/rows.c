/* Steps of rows that pass over memory together: a few that follow each other in softmax and in normalisations, with the operations, and so
   the bits, of the steps one by one. */
#include "kernels/rows.h"

/* The same instructions as AVX-512: that level's table serves. */
#if !defined(__AVX512VNNI__)

#include "kernels/vector_math.h"

#define BLOCK 64
#define LANES TN_STRIP_LANES

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* a wish: sanitizers and coverage may stand in its way */
#define LOOP(n) _Pragma("clang loop vectorize(assume_safety)") for (int64_t i = 0; i < n; i++)
#else
#define LOOP(n) _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)
#endif

/* lanes[i % LANES] += x[i], in order. */
TN_VM void add_lanes(int64_t n, const float *x, double *lanes) {
    double v[LANES];
    int64_t at = 0;
    for (int l = 0; l < LANES; l++)
        v[l] = lanes[l];
    for (; at + LANES <= n; at += LANES)
        for (int l = 0; l < LANES; l++)
            v[l] += (double)x[at + l];
    for (int l = 0; at < n; at++, l++)
        v[l] += (double)x[at];
    for (int l = 0; l < LANES; l++)
        lanes[l] = v[l];
}

static void exp_sum(int64_t n, const float *x, float shift, float *to, double *lanes) {
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        const float *a = x + at;
        float *r = to + at;
        int far = 0;
        if (m == BLOCK)
            LOOP(BLOCK) far |= !(__builtin_fabsf(a[i] - shift) <= TN_VM_EXP_LIMIT) ? -1 : 0;
        if (m == BLOCK && !far)
            LOOP(BLOCK) r[i] = tn_vm_exp_normal(a[i] - shift);
        else
            LOOP(m) r[i] = tn_vm_exp(a[i] - shift);
        add_lanes(m, r, lanes);
    }
}

static void square_sum(int64_t n, const float *x, float shift, float *to, double *lanes) {
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        const float *a = x + at;
        float *r = to + at, square[BLOCK];
        LOOP(m) {
            float d = a[i] - shift;
            r[i] = d;
            square[i] = d * d;
        }
        add_lanes(m, square, lanes);
    }
}

static void scale_shift(int64_t n, const float *x, float factor, const float *scale, const float *shift, float *to) {
    if (shift)
        LOOP(n) to[i] = x[i] * factor * scale[i] + shift[i];
    else
        LOOP(n) to[i] = x[i] * factor * scale[i];
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
const tn_rows_level PASTE(tn_rows_, TN_ISA) = {exp_sum, square_sum, scale_shift};

#endif
