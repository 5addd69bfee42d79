/* Contractions summed in f32, shared between packing (contract_pack.c) and running (contract_f32.c).

   Outputs are cut into blocks of rows and panels of columns (gemm.h); the summed index into segments, and these into groups so short
   that a panel of a group stays in L1 while rows pass. A sum that goes through several groups waits in memory as the f32 it is: its bits
   do not depend on the cut. */
#ifndef TN_KERNELS_CONTRACT_F32_H
#define TN_KERNELS_CONTRACT_F32_H

#include "kernels/gemm.h"
#include "kernels/machine.h"

typedef struct tn_gemm {
    const tn_resolved *r;
    const tn_gemm_level *level;
    tn_heap *heap;
    int column; /* axis, -1: none */
    int rows[TN_MACHINE_AXES], n_rows;
    int batch[TN_MACHINE_AXES], n_batch;
    int first_sum, last_sum; /* summed axes; the runs are [run_axis, last_sum] */
    int run_axis;
    int64_t m, n, k, batches;  /* counts */
    int64_t run, taps;         /* elements of a run, number of runs of one output */
    tn_strip_load_fn *load[2]; /* of rows, of columns; NULL: they are f32 in memory */
    tn_strip_fn *round;        /* of sums; NULL: they stay f32 */
    bool direct;               /* rows are read in place */
    bool in_place;             /* sums are formed in the output itself */
    const float *packed;       /* columns, NULL: packed by each piece */
    /* how it is cut: pieces are blocks of rows by spans of panels; a piece sums `step` panels at a time */
    int64_t panels, block, blocks, spans, panels_per_span, step;
    int64_t segments, segment, groups, per_group; /* segment: its most elements */
    int64_t pitch;                                /* of packed rows, in elements */
    tn_places places;                             /* of one run; no base: the stack does */
    int threads;                                  /* that it was cut for; 0: not yet */
    _Atomic int failed;
} tn_gemm;

/* A row's first element, and its guards' values where summed indices are zero. */
typedef struct tn_gemm_row {
    const char *a;
    int64_t guard[4];
} tn_gemm_row;

/* One panel: the level's number of columns from `first` on (zeros beyond n) of all summed elements in their order. */
void tn_gemm_pack_panel(const tn_gemm *g, const char *b, int64_t first, float *to);
/* The row at outer indices `at`. */
void tn_gemm_row_at(const tn_gemm *g, const int64_t *at, tn_gemm_row *row);
/* table[segment * rows + i]: where the segments of row i lie; zeros where they are outside. */
void tn_gemm_point_rows(const tn_gemm *g, const tn_gemm_row *row, int64_t rows, const float *zeros,
                        const float **table);
/* The same of rows copied to `to`, so that their summed elements lie side by side, `pitch` apart. */
void tn_gemm_pack_rows(const tn_gemm *g, const tn_gemm_row *row, int64_t rows, float *to, const float **table);

#endif
