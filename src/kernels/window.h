/* Windows that slide over what they combine: pooling. */
#ifndef TN_KERNELS_WINDOW_H
#define TN_KERNELS_WINDOW_H

#include "kernels/machine.h"

#define TN_WINDOW_TAPS 64  /* at most */
#define TN_WINDOW_STEP 4   /* elements between what neighbours read, at most */
#define TN_WINDOW_GUARDS 3 /* at most */

/* Output i of row r is combined from a[t][r * apart + i * step], t < taps, in that order; rows of n outputs lie one after the other. */
typedef struct tn_window_lines {
    int64_t n, taps, step, rows, apart;
    const float **a; /* [taps]; moved from row to row */
} tn_window_lines;

typedef struct tn_window_level {
    void (*max)(const tn_window_lines *lines, float *out);
    void (*sum)(const tn_window_lines *lines,
                double *out); /* by the recipe of reduce.c; taps: TN_STRIP_LANES at most */
} tn_window_level;

/* --- window.c: a reduction over few elements of f32 as lines of windows ------------------------------------------------------------------- */

typedef struct tn_windows {
    const tn_reduction *q;
    const tn_window_level *level;
    int64_t taps, offset[TN_WINDOW_TAPS]; /* elements from where the window begins */
    int64_t guard[TN_WINDOW_TAPS][TN_WINDOW_GUARDS], low[TN_WINDOW_GUARDS],
        high[TN_WINDOW_GUARDS];                      /* what a tap adds */
    float outside[TN_STRIP_LENGTH * TN_WINDOW_STEP]; /* what is read beyond guards: changes nothing */
} tn_windows;

/* Whether it has that form, with outputs side by side along `axis`. */
bool tn_windows_fit(const tn_reduction *q, int axis);
void tn_windows_begin(tn_windows *w, const tn_reduction *q);
/* The combinations of a block's outputs: n * rows of the accumulator's type. */
void tn_windows_block(const tn_windows *w, const tn_strip_block *b, void *sums);

extern const tn_window_level tn_window_generic, tn_window_avx2, tn_window_avx512, tn_window_neon;

#endif
