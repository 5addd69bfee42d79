/* Steps of rows that pass over memory together: a few that follow each other in softmax and in normalisations, with the operations, and so
   the bits, of the steps one by one. */
#include "kernels/rows.h"

#include <string.h>

/* The same instructions as AVX-512: that level's table serves. */
#if !defined(__AVX512VNNI__)

#include "kernels/sums.h"

#define BLOCK (8 * TN_VM_GROUP)

#define LOOP TN_VM_LOOP

/* The next lines of the cache of what other rows need. */
TN_VM void fetch(const char *from, int64_t at, int64_t n) {
    for (int64_t i = at; from && i < at + n; i += 16)
        __builtin_prefetch(from + i * 4);
}

/* Loops do not wait for each other's last results if they are long. */
static void exp_sum(int64_t n, const float *x, float shift, float *to, tn_strip_sums *sums,
                    const tn_rows_ahead *ahead) {
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        const float *a = x + at;
        float *r = to + at;
        int32_t most = 0; /* the greatest magnitude, as bits: NaN is beyond all */
        fetch(ahead->read, at, m);
        if (x == to)
            most = INT32_MAX;
        else
            LOOP(m) {
                float d = a[i] - shift;
                int32_t magnitude = (int32_t)(tn_vm_bits(d) & 0x7fffffffu);
                most = magnitude > most ? magnitude : most;
                r[i] = tn_vm_exp_normal(d);
            }
        if (most > (int32_t)tn_vm_bits(TN_VM_EXP_LIMIT))
            LOOP(m) r[i] = tn_vm_exp(a[i] - shift);
        fetch(ahead->write, at, m);
        tn_vm_add_sums(m, r, 0, sums);
    }
}

static void square_sum(int64_t n, const float *x, float shift, float *to, tn_strip_sums *sums,
                       const tn_rows_ahead *ahead) {
    _Alignas(64) double sum[TN_STRIP_LANES];
    int64_t at = 0;
    memcpy(sum, sums->sum, sizeof sum);
    for (; at + TN_VM_GROUP <= n; at += TN_VM_GROUP) {
        fetch(ahead->read, at, TN_VM_GROUP);
        fetch(ahead->write, at, TN_VM_GROUP);
        tn_vm_add_squares(x + at, shift, to + at, sum);
    }
    memcpy(sums->sum, sum, sizeof sum);
    for (int64_t l = 0; at < n; at++, l++) {
        float d = x[at] - shift;
        to[at] = d;
        sums->part[l % TN_STRIP_LANES] += d * d;
    }
}

static void wide_squares(int64_t n, const float *x, tn_strip_sums *sums) {
    for (int64_t i = 0; i < n; i++)
        sums->sum[i % TN_STRIP_LANES] += (double)(x[i] * x[i]);
}

static void scale_shift(int64_t n, const float *x, float factor, const float *scale, const float *shift, float *to) {
    if (shift)
        LOOP(n) to[i] = x[i] * factor * scale[i] + shift[i];
    else if (scale)
        LOOP(n) to[i] = x[i] * factor * scale[i];
    else
        LOOP(n) to[i] = x[i] * factor;
}

static void divide(int64_t n, const float *x, float by, float *to) {
    LOOP(n) to[i] = x[i] / by;
}

/* The greatest of a row, and whether its exponentials are those of arguments near 0 (TN_VM_EXP_LIMIT); NaN if there is one. */
static float greatest(int64_t n, const float *x, bool *near) {
    float most[TN_STRIP_LANES], least[TN_STRIP_LANES];
    int odd[TN_STRIP_LANES] = {0}, any = 0;
    int64_t at = 0;
    for (int l = 0; l < TN_STRIP_LANES; l++) {
        most[l] = -__builtin_inff();
        least[l] = __builtin_inff();
    }
    for (; at + TN_STRIP_LANES <= n; at += TN_STRIP_LANES)
        for (int l = 0; l < TN_STRIP_LANES; l++) {
            float b = x[at + l];
            odd[l] |= b != b ? -1 : 0;
            most[l] = most[l] > b ? most[l] : b;
            least[l] = least[l] < b ? least[l] : b;
        }
    for (int l = 0; at < n; at++, l++) {
        odd[l] |= x[at] != x[at] ? -1 : 0;
        most[l] = most[l] > x[at] ? most[l] : x[at];
        least[l] = least[l] < x[at] ? least[l] : x[at];
    }
    for (int half = TN_STRIP_LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) {
            odd[l] |= odd[l + half];
            most[l] = most[l] > most[l + half] ? most[l] : most[l + half];
            least[l] = least[l] < least[l + half] ? least[l] : least[l + half];
        }
    any |= odd[0];
    *near = least[0] - most[0] >= -TN_VM_EXP_LIMIT;
    return any ? __builtin_nanf("") : most[0];
}

static int64_t softmax(int64_t rows, int64_t n, const char *from, int64_t step, char *into, int64_t into_step,
                       bool divides) {
    for (int64_t row = 0; row < rows; row++) {
        const float *x = (const float *)(const void *)(from + row * step);
        float *to = (float *)(void *)(into + row * into_step);
        tn_strip_sums sums = {0};
        bool near;
        float most = greatest(n, x, &near);
        if (!(most - most == 0))
            return row;
        if (near)
            LOOP(n) to[i] = tn_vm_exp_normal(x[i] - most);
        else
            LOOP(n) to[i] = tn_vm_exp(x[i] - most);
        tn_vm_add_sums(n, to, 0, &sums);
        float sum = (float)tn_vm_end_sums(&sums), factor = 1.0f / sum;
        if (divides)
            LOOP(n) to[i] = to[i] / sum;
        else
            LOOP(n) to[i] = to[i] * factor;
    }
    return rows;
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
const tn_rows_level PASTE(tn_rows_, TN_ISA) = {exp_sum, square_sum, wide_squares, scale_shift, divide, softmax};

#endif
