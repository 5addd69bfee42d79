/* Windows: outputs side by side, each combined from as many taps; vectors over the outputs. */
#include "kernels/window.h"

/* The same instructions as AVX-512: that level's table serves. */
#if !defined(__AVX512VNNI__)

#include "kernels/vector_math.h"

#define LOOP TN_VM_LOOP

#define LANES TN_STRIP_LANES
#define BLOCK 64 /* outputs that are combined tap by tap */

/* What any step leaves apart, side by side: the loops over it have one form. */
static __attribute__((noinline)) const float *together(int64_t n, const float *from, int64_t step, float *to) {
    if (step == 1)
        return from;
    LOOP(n) to[i] = from[i * step];
    return to;
}

/* The greatest: NaN wins. Where it is 0 nothing else is positive: -0 if all signs are set. */
#define MAX_OF(most, signs, odd) ((odd) ? __builtin_nanf("") : (most) == 0 ? tn_vm_float((signs)&0x80000000u) : (most))
#define MAX_FIRST                      \
    float most = a[0][i * step];       \
    uint32_t signs = tn_vm_bits(most); \
    int odd = most != most ? -1 : 0;
#define MAX_TAPS(s, t)                                \
    {                                                 \
        float x = a[s][i * step], y = a[t][i * step]; \
        odd |= __builtin_isunordered(x, y) ? -1 : 0;  \
        signs &= tn_vm_bits(x) & tn_vm_bits(y);       \
        most = most > x ? most : x;                   \
        most = most > y ? most : y;                   \
    }
/* 3 x 3 and 2 x 2, tap by tap, so that an output stays in registers. */
TN_VM void max_of_9(int64_t n, int64_t step, const float *const *restrict a, float *restrict to) {
    LOOP(n) {
        MAX_FIRST
        MAX_TAPS(1, 2)
        MAX_TAPS(3, 4)
        MAX_TAPS(5, 6)
        MAX_TAPS(7, 8)
        to[i] = MAX_OF(most, signs, odd);
    }
}

TN_VM void max_of_4(int64_t n, int64_t step, const float *const *restrict a, float *restrict to) {
    LOOP(n) {
        MAX_FIRST
        MAX_TAPS(1, 2)
        MAX_TAPS(3, 3)
        to[i] = MAX_OF(most, signs, odd);
    }
}

static void max_of_any(int64_t n, int64_t taps, int64_t step, const float *const *a, float *to) {
    float most[BLOCK], taken[BLOCK];
    uint32_t signs[BLOCK];
    int odd[BLOCK];
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        LOOP(m) {
            most[i] = -__builtin_inff();
            signs[i] = UINT32_MAX;
            odd[i] = 0;
        }
        for (int64_t t = 0; t < taps; t++) {
            const float *from = together(m, a[t] + at * step, step, taken);
            LOOP(m) {
                float x = from[i];
                odd[i] |= x != x ? -1 : 0;
                signs[i] &= tn_vm_bits(x);
                most[i] = most[i] > x ? most[i] : x;
            }
        }
        LOOP(m) to[at + i] = MAX_OF(most[i], signs[i], odd[i]);
    }
}

static void max_line(const tn_window_lines *w, float *out) {
    if (w->taps == 9 && w->step == 1)
        max_of_9(w->n, 1, w->a, out);
    else if (w->taps == 9 && w->step == 2)
        max_of_9(w->n, 2, w->a, out);
    else if (w->taps == 4 && w->step == 1)
        max_of_4(w->n, 1, w->a, out);
    else if (w->taps == 4 && w->step == 2)
        max_of_4(w->n, 2, w->a, out);
    else
        max_of_any(w->n, w->taps, w->step, w->a, out);
}

/* The sum by the recipe of kernels/reduce.c: each tap in a lane of its own, lanes combined in pairs. */
#define TAP(t) (0.0 + (double)a[t][i * step])
TN_VM void sum_of_9(int64_t n, int64_t step, const float *const *restrict a, double *restrict to) {
    LOOP(n)
    to[i] = (((TAP(0) + TAP(8)) + TAP(4)) + (TAP(2) + TAP(6))) + ((TAP(1) + TAP(5)) + (TAP(3) + TAP(7)));
}

TN_VM void sum_of_4(int64_t n, int64_t step, const float *const *restrict a, double *restrict to) {
    LOOP(n)
    to[i] = (TAP(0) + TAP(2)) + (TAP(1) + TAP(3));
}

static void sum_of_any(int64_t n, int64_t taps, int64_t step, const float *const *a, double *to) {
    double lane[LANES][BLOCK];
    float taken[BLOCK];
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        for (int64_t t = 0; t < taps; t++) {
            const float *from = together(m, a[t] + at * step, step, taken);
            LOOP(m) lane[t][i] = 0.0 + (double)from[i];
        }
        for (int64_t half = LANES / 2; half; half /= 2)
            for (int64_t k = 0; k < half && k + half < taps; k++)
                LOOP(m) lane[k][i] += lane[k + half][i];
        LOOP(m) to[at + i] = lane[0][i];
    }
}

static void sum_line(const tn_window_lines *w, double *out) {
    if (w->taps == 9 && w->step == 1)
        sum_of_9(w->n, 1, w->a, out);
    else if (w->taps == 9 && w->step == 2)
        sum_of_9(w->n, 2, w->a, out);
    else if (w->taps == 4 && w->step == 1)
        sum_of_4(w->n, 1, w->a, out);
    else if (w->taps == 4 && w->step == 2)
        sum_of_4(w->n, 2, w->a, out);
    else
        sum_of_any(w->n, w->taps, w->step, w->a, out);
}

static void next_row(const tn_window_lines *w) {
    for (int64_t t = 0; t < w->taps; t++)
        w->a[t] += w->apart;
}

static void max_lines(const tn_window_lines *w, float *out) {
    for (int64_t row = 0; row < w->rows; row++, out += w->n, next_row(w))
        max_line(w, out);
}

static void sum_lines(const tn_window_lines *w, double *out) {
    for (int64_t row = 0; row < w->rows; row++, out += w->n, next_row(w))
        sum_line(w, out);
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
const tn_window_level PASTE(tn_window_, TN_ISA) = {max_lines, sum_lines};

#endif
