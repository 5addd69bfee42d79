/* Contractions summed in f32, shared between packing (contract_pack.c) and running (contract_f32.c).

   Outputs are cut into blocks of rows and panels of columns (gemm.h); the summed index into segments, and these into groups so short
   that a panel of a group stays in L1 while rows pass. A sum that goes through several groups waits in memory as the f32 it is: its bits
   do not depend on the cut. */
#ifndef TN_KERNELS_CONTRACT_F32_H
#define TN_KERNELS_CONTRACT_F32_H

#include "kernels/gemm.h"
#include "kernels/machine.h"

/* Few rows by packed columns, in place, in one piece: all that a run needs but addresses, together in memory. */
typedef struct tn_gemm_few {
    bool known, ends; /* ends: as `finish` says, but for addresses */
    int rows, threads;
    uint32_t a_slot, c_slot;
    int64_t n, k;
    const float *columns;
    int64_t a[TN_GEMM_MAX_ROWS], c[TN_GEMM_MAX_ROWS]; /* where rows begin in their slots, in bytes */
    tn_finish finish;
    uint32_t with_slot[TN_FINISH_STEPS]; /* and where the steps' other operands lie */
    int64_t with[TN_FINISH_STEPS], all[TN_GEMM_MAX_ROWS];
} tn_gemm_few;

/* Few columns, or rows that would have to be packed (contract_lines.c): outputs along one row axis, by lines of what they read. */
typedef struct tn_gemm_lines {
    bool few;                /* columns: vectors hold outputs, not columns */
    int along, slide;        /* the last row axis, and the summed axis that moves by places of the same line */
    int64_t unit, step, tap; /* elements from place to place; places from output to output, and from tap to tap */
    int64_t count, pitch;    /* lines, and floats from one to the next */
    int tall;                /* the outermost summed axis, where lines of an output row serve the next one; -1: none */
    int64_t down;            /* taps along it, from such a row to the next */
    int64_t length, outputs; /* floats of each of the `step` parts of a line, of every step-th place; outputs at once */
} tn_gemm_lines;

typedef struct tn_gemm {
    tn_gemm_few few;
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
    int64_t row_step;          /* from an element of a run to the next, in rows that are read in place */
    tn_strip_load_fn *load[2]; /* of rows, of columns; NULL: they are f32 in memory */
    tn_strip_fn *round;        /* of sums; NULL: they stay f32 */
    bool direct;               /* rows are read in place */
    bool interleaved;          /* else: packed rows stand element by element as tiles read them */
    bool in_place;             /* sums are formed in the output itself */
    bool turns, turned;        /* or beside it, ended there, and brought where rows lie side by side: may be, is */
    bool by_strips;            /* so few columns that strips end them, many rows at once */
    bool finishes; /* else: they end as `finish` says, tile by tile: in place, or as 16-bit floats in the output */
    tn_finish finish;
    bool narrows; /* tiles store f16, within bounds, as `end` says */
    bool ends;    /* and, but for few rows, in registers, as `end` says */
    tn_finish_end end;
    bool by_lines; /* sums are formed as `lines` says */
    tn_gemm_lines lines;
    const float *packed; /* columns, NULL: packed by each piece */
    bool backwards;      /* of few rows: the last panels first */
    /* how it is cut: pieces are blocks of rows by spans of panels; a piece sums `step` panels at a time */
    int64_t pieces; /* that the work is worth */
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
/* Floats from the columns of a summed element to those of the next, where columns lie side by side; else 0. */
int64_t tn_gemm_step_of_columns(const tn_gemm *g);
/* Columns from `first` on that are to be turned soon: each lies in a piece of its own, too short for the processor to foresee. */
void tn_gemm_fetch_columns(const tn_gemm *g, const char *columns, int64_t first);
/* The row at outer indices `at`. */
void tn_gemm_row_at(const tn_gemm *g, const int64_t *at, tn_gemm_row *row);
/* table[segment * rows + i]: where the segments of row i lie; zeros where they are outside. first: the number of row 0 among all. */
void tn_gemm_point_rows(const tn_gemm *g, const tn_gemm_row *row, int64_t rows, int64_t first, const float *zeros,
                        const float **table);
/* The same of rows copied to `to`, so that their summed elements lie side by side, `pitch` apart. */
void tn_gemm_pack_rows(const tn_gemm *g, const tn_gemm_row *row, int64_t rows, float *to, const float **table);
/* The same of rows whose summed elements lie side by side: the rows of a tile element by element, segment after segment. */
void tn_gemm_interleave_rows(const tn_gemm *g, const tn_gemm_row *row, int64_t rows, const int64_t *length, float *to,
                             const float **table);
#define TN_GEMM_SUM_BYTES (256 << 10) /* of the sums that a piece works at */
/* What its axes are, and how its rows lie; *g is of no shape yet, but for what its columns are packed to. */
void tn_gemm_describe(tn_gemm *g, const tn_resolved *r, const tn_kernel *k);
/* Cuts the sums into groups, the outputs into blocks, spans and pieces. `ended`: sums are formed beside the outputs, in which tiles end. */
void tn_gemm_cut(tn_gemm *g, int threads, bool ended);
/* The next of the indices of `count` axes, the last of which runs first. */
void tn_gemm_advance(const tn_resolved *r, const int *axes, int count, int64_t *at);
/* All sums of a panel for so few rows that one tile takes them: its columns are read once, in the order in which they lie. c[i]: row i
   of all panels. */
void tn_gemm_few_tile(const tn_gemm_level *level, tn_gemm_tile *t, int64_t n, int64_t panel, float *const *c,
                      bool fetch);
/* The index-th tile of few rows over panels [panel, end): its first panel, and how many it takes at once (those that it has sums for, of
   whole columns); 0 after the last. */
int tn_gemm_few_panels(const tn_gemm_level *level, int64_t rows, int64_t n, int64_t panel, int64_t end, bool backwards,
                       int64_t index, int64_t *first);
/* Whether runs of these sizes are `few`; then says how. */
void tn_gemm_few_learn(const tn_kernel_args *args, tn_gemm *g);
void tn_gemm_few_run(const tn_kernel_args *args, const tn_gemm_few *f, const tn_gemm_level *level);

/* Whether sums are formed by lines, of whole rows of outputs. */
bool tn_gemm_lines_fit(const tn_gemm *g, tn_gemm_lines *lines);
/* Then cuts it anew, into blocks of whole rows of outputs where these find their lines in each other. */
void tn_gemm_lines_cut(tn_gemm *g);
/* Scratch that it needs. */
size_t tn_gemm_lines_bytes(const tn_gemm *g);
/* out[i][..]: the sums of row i of `rows`, the first of which is number `first` of the rows' indices, of panels [panel, end), ended where
   g->ends; all[i]: row i of what is added then. `columns`: the packed panels. */
void tn_gemm_lines_sum(const tn_gemm *g, const tn_gemm_row *row, int64_t rows, int64_t first, const float *columns,
                       int64_t panel, int64_t end, float *const *out, const char *const *all, void *scratch);
/* A contraction that is a part of another kernel: of f32, in place, blocks of at most so many rows at a time, of columns that are `packed` or
   are packed a panel at a time. `r`, strides as they are then, outlives it; copies of both, with other addresses, do as well. */
void tn_gemm_open(tn_gemm *g, const tn_gemm_level *level, const tn_resolved *r, int64_t rows, bool packed);
/* Then by lines, where these fit: of whole rows of outputs. */
void tn_gemm_use_lines(tn_gemm *g);
/* To be called when the addresses of what its epilogue reads are known: how tiles end. */
void tn_gemm_see_ends(tn_gemm *g);
/* Of `room`, aligned to 64. */
size_t tn_gemm_rows_bytes(const tn_gemm *g);
/* The indices of a batch; which set of columns it uses; these, packed: panel after panel. */
void tn_gemm_batch_at(const tn_gemm *g, int64_t batch, int64_t *at);
int64_t tn_gemm_columns_of(const tn_gemm *g, const int64_t *at);
void tn_gemm_pack_columns(const tn_gemm *g, const int64_t *at, float *to);
/* Rows [first, first + rows) of the batch at `at`. `packed`: NULL, or its columns. */
void tn_gemm_rows(const tn_gemm *g, int64_t *at, int64_t first, int64_t rows, const float *packed, void *room);
/* How many rows the tile at row i of `rows` takes: tiles are of nearly the same height. */
static inline int tn_gemm_tile_rows(const tn_gemm_level *level, int64_t rows, int64_t i) {
    int64_t left = (rows - i + level->rows - 1) / level->rows;
    return (int)((rows - i + left - 1) / left);
}

#endif
