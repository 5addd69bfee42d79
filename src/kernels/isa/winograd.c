/* The transforms of Winograd's convolution at one instruction-set level: a vector of channels at a time, first along columns, then along
   rows. */
#include "kernels/winograd.h"

#include <stdbool.h>

/* The same instructions as AVX-512: that level's table serves. */
#if !defined(__AVX512VNNI__)

#include "kernels/isa_vector.h"

#define R 0.70710678f
#define S 1.41421356f
#define MOST TN_WINOGRAD_MOST

/* A loop that stays one: its turns are long as they are. */
#if defined(__clang__)
#define AS_LOOP _Pragma("clang loop unroll(disable)")
#else
#define AS_LOOP _Pragma("GCC unroll 1")
#endif

/* B' x for one line of x. */
INLINE void in_line(const int n, const vec *x, vec *v) {
    if (n == 4) {
        v[0] = x[0] - x[2];
        v[1] = x[1] + x[2];
        v[2] = x[2] - x[1];
        v[3] = x[1] - x[3];
        return;
    }
    const vec less_half = splat(-0.5f), less_two = splat(-2), less_sum = splat(-2.5f), r = splat(R), s = splat(S);
    vec even = madd(less_two, x[2], x[4]), odd = madd(less_two, x[1], x[3]);
    v[0] = madd(less_sum, x[2], x[0] + x[4]);
    v[1] = madd(r, odd, even);
    v[2] = madd(-r, odd, even);
    even = madd(less_half, x[2], x[4]);
    odd = madd(less_half, x[1], x[3]);
    v[3] = madd(s, odd, even);
    v[4] = madd(-s, odd, even);
    v[5] = madd(less_sum, x[3], x[1] + x[5]);
}

/* A' s for one line of s. */
INLINE void out_line(const int m, const vec *s, vec *y) {
    if (m == 2) {
        y[0] = s[0] + s[1] + s[2];
        y[1] = s[1] - s[2] - s[3];
        return;
    }
    vec a = s[1] + s[2], b = s[3] + s[4], c = splat(R) * (s[1] - s[2]), d = splat(S) * (s[3] - s[4]);
    y[0] = s[0] + a + b;
    y[1] = c + d;
    y[2] = madd(splat(2), b, splat(0.5f) * a);
    y[3] = madd(splat(2), d, madd(splat(0.5f), c, s[5]));
}

INLINE void in_block(const int n, const float *const *pixel, int64_t c, float *v, int64_t pitch) {
    vec t[MOST][MOST];
    AS_LOOP
    for (int j = 0; j < n; j++) {
        vec x[MOST], y[MOST];
        EACH (i, n)
            x[i] = load(pixel[i * n + j] + c);
        in_line(n, x, y);
        EACH (i, n)
            t[i][j] = y[i];
    }
    AS_LOOP
    for (int i = 0; i < n; i++) {
        vec x[MOST], y[MOST];
        EACH (j, n)
            x[j] = t[i][j];
        in_line(n, x, y);
        EACH (j, n)
            store(v + (i * n + j) * pitch, y[j]);
    }
}

INLINE void in_of(const int n, int64_t channels, const float *const *pixel, float *v, int64_t pitch) {
    float last[MOST * MOST][WIDTH];
    const float *at[MOST * MOST];
    for (int64_t c = 0; c < channels; c += WIDTH) {
        bool whole = c + WIDTH <= channels;
        for (int p = 0; p < n * n && !whole; p++) {
            store(last[p], load_part(pixel[p] + c, channels - c));
            at[p] = last[p];
        }
        in_block(n, whole ? pixel : at, whole ? c : 0, v + c, pitch);
    }
}

INLINE void out_of(const int m, const float *s, int64_t pitch, float *const *y) {
    const int n = m + 2;
    for (int v = 0; v < VECTORS; v++) {
        vec t[4][MOST];
        AS_LOOP
        for (int j = 0; j < n; j++) {
            vec x[MOST], z[4];
            EACH (i, n)
                x[i] = load(s + (i * n + j) * pitch + v * WIDTH);
            out_line(m, x, z);
            EACH (i, m)
                t[i][j] = z[i];
        }
        AS_LOOP
        for (int i = 0; i < m; i++) {
            vec x[MOST], z[4];
            EACH (j, n)
                x[j] = t[i][j];
            out_line(m, x, z);
            EACH (j, m)
                store(y[i * m + j] + v * WIDTH, z[j]);
        }
    }
}

static void in_two(int64_t channels, const float *const *pixel, float *v, int64_t pitch) {
    in_of(4, channels, pixel, v, pitch);
}
static void in_four(int64_t channels, const float *const *pixel, float *v, int64_t pitch) {
    in_of(6, channels, pixel, v, pitch);
}
static void out_two(const float *s, int64_t pitch, float *const *y) {
    out_of(2, s, pitch, y);
}
static void out_four(const float *s, int64_t pitch, float *const *y) {
    out_of(4, s, pitch, y);
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
const tn_winograd_level PASTE(tn_winograd_, TN_ISA) = {.in = {in_two, in_four}, .out = {out_two, out_four}};

#endif
