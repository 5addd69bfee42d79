/* The batch-reduce contraction: a register tile of outputs summed over runs of the reduced index, rows read in place through
   pointers, columns from packed panels. One source for each instruction-set level (isa/gemm.c). */
#ifndef TN_KERNELS_GEMM_H
#define TN_KERNELS_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/finish.h"

#define TN_GEMM_MAX_ROWS 16
#define TN_GEMM_MAX_COLUMNS 32

/* One tile: c[i][first + 0..columns) = (or +=) sum over runs r and k < length[r] of a[r * stride + i][k * step] * b[...][column].
   Each output is one chain of fused multiply-adds (multiply, then add at the generic level) in the order of the runs: its bits do
   not depend on the tile, nor on which rows and columns stand beside it. */
typedef struct tn_gemm_tile {
    int rows, columns; /* at most TN_GEMM_MAX_ROWS, the level's */
    /* As many tiles one after the other, of rows that follow each other in a, c, all and half; more than 1 of no more rows than the level's,
       not of several panels, and without `place`. */
    int64_t tiles;
    /* As many whole panels at once, if more than 1, `apart` floats from each to the next; c has their columns side by side. No more than
       the level's `beside` says; nothing is added to, nor fetched. */
    int panels;
    int64_t apart;
    int64_t
        next; /* of several panels: floats from the columns of an element to those of the next; 0: they are packed */
    int64_t runs;
    const int64_t *length; /* [runs] */
    const float *const *a; /* [runs][stride], rows used */
    int64_t stride;
    int64_t step; /* from one summed element of a row to the next */
    /* If not NULL, element k of row i is a[0][place[k] + i]; of one run, of one row or as many as the level has (narrow_rows of `narrow` columns), nothing is added to, nor
       fetched. */
    const int32_t *place;
    const float *b;  /* packed panel: [sum of lengths][level's columns] */
    bool add;        /* to what c holds: the chain goes on from there */
    float *const *c; /* [rows], each `first` elements before its first column */
    int64_t first;
    /* What is done with whole sums before they are stored; NULL: nothing. Its columns, and rows of all[], are as those of c. Not of more
       rows than the level's, nor of several panels. */
    const tn_finish_end *end;
    const float *const *all;
    /* If not NULL, whole sums go there, ended, as f16, and not to c: rows as those of c. Of whole panels, where the level narrows. */
    uint16_t *const *half;
    /* What is read later is fetched while this is summed: the lines of the cache from this address on, `ahead_step` bytes further at each
       summed element. It is no access: any address will do. 0: nothing. */
    uintptr_t ahead;
    int64_t ahead_step;
} tn_gemm_tile;

#define TN_GEMM_LINE 64 /* bytes */

/* Columns that are summed by lines, at most. */
#define TN_GEMM_LINES_MOST 16
/* to[c * pitch + i] = sum over k < count of x[place[k] + i] * b[k * (the level's columns) + c], for c < columns and i < n: as many chains
   as tiles have. Of x and `to` whole vectors are read and written, beyond i = n too: `pitch` and lines have room for n rounded up to 64. */
typedef void tn_gemm_lines_fn(int columns, int64_t n, int64_t count, const int32_t *place, const float *x,
                              const float *b, float *to, int64_t pitch);

/* A depthwise row: out[p * next_out + g] = sum over taps t of a[t][p * next_in + g] * w[t * stride + g], for g < groups, p < pixels. */
typedef struct tn_depthwise_row {
    int64_t groups, stride, taps;
    const tn_finish_end *end; /* as of a tile: its columns are the groups */
    const float *const *a;    /* [taps]; NULL where the tap lies outside */
    /* If not 0, each `slide` taps that follow each other (3 or 5) are a row of the window: each lies `unit` elements after the one before, pixels
       `step` (1 or 2) of them apart. a[t] of the first of them is that of position 0, NULL where the row lies outside; of the positions
       those from `low` up to `high` lie inside, all but at most slide - 1 at either end. Where pixels are 2 apart
       slide is 3. */
    int64_t slide, unit, step, low, high;
    const float *w;
    float *out;
    int64_t pixels, next_in, next_out;
} tn_depthwise_row;

/* The same along the pixels of one channel: out[i] = sum over taps t with low[t] <= i < high[t] of a[t][i * step] * w[t], i < n. */
typedef struct tn_depthwise_line {
    int64_t n, taps, step;
    const float *const *a; /* [taps]; read only where the tap counts */
    const int64_t *low, *high;
    const float *w;   /* [taps] */
    int64_t w_stride; /* between them */
    float *out;       /* n elements side by side */
} tn_depthwise_line;

/* Heights of tiles of which one alone has too few sums to fill the multiply-adds' latency. */
#define TN_GEMM_LOW 3

typedef struct tn_gemm_level {
    int rows, columns;
    bool narrows;                    /* tiles store f16 */
    int narrow, narrow_rows;         /* columns of tiles of one vector, 0: there are none; rows of those with places */
    uint8_t beside[TN_GEMM_LOW + 1]; /* by rows: panels that a tile takes at once */
    void (*tile)(const tn_gemm_tile *tile);
    /* to[k * rows + i] = from[i][k], k < n: rows as a tile of step `rows` reads them. */
    void (*interleave)(int rows, int64_t n, const void *const *from, float *to);
    const struct tn_depthwise_level *depthwise;
    tn_finish_fn *finish;
    const struct tn_half_level *half;
    tn_gemm_lines_fn *lines;
    /* `rounds` rounds of multiply-adds that wait for nothing: `peak_operations` scalar operations each; the answer is of no use. */
    float (*peak)(int64_t rounds);
    int peak_operations;
} tn_gemm_level;

/* Rows and outputs of 16-bit floats (isa/half.c). */
typedef struct tn_half_level {
    /* n elements of f16, `stride` apart, in f32; NaN that signal may become quiet ones. */
    void (*widen_f16)(int64_t n, const void *from, int64_t stride, void *to);
    /* See tn_gemm_level; from f16 and bf16. */
    void (*interleave_f16)(int rows, int64_t n, const void *const *from, float *to);
    void (*interleave_bf16)(int rows, int64_t n, const void *const *from, float *to);
    tn_finish_half_fn *finish;
} tn_half_level;

typedef struct tn_depthwise_level {
    int slides, sliding; /* channels and pixels from which on rows may slide; 0: none may */
    void (*row)(const tn_depthwise_row *row);
    void (*line)(const tn_depthwise_line *line);
} tn_depthwise_level;

extern const tn_depthwise_level tn_depthwise_generic, tn_depthwise_avx2, tn_depthwise_avx512, tn_depthwise_neon;
extern const tn_half_level tn_half_generic, tn_half_avx2, tn_half_avx512, tn_half_neon;
extern const tn_gemm_level tn_gemm_generic, tn_gemm_avx2, tn_gemm_avx512, tn_gemm_neon;

#endif
