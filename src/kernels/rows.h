/* Rows: kernels of a chain that all walk the same rows, each contiguous, run a row at a time: a step is one call over a row. */
#ifndef TN_KERNELS_ROWS_H
#define TN_KERNELS_ROWS_H

#include "kernels/machine.h"

/* What to fetch into the cache meanwhile: where the next row is read, where this one will be written; NULL: nothing. */
typedef struct tn_rows_ahead {
    const char *read, *write;
} tn_rows_ahead;

/* Steps that pass over a row together; isa/rows.c. Sums begin at the row's first element. */
typedef struct tn_rows_level {
    /* to = exp(x - shift), of which the sum */
    void (*exp_sum)(int64_t n, const float *x, float shift, float *to, tn_strip_sums *sums, const tn_rows_ahead *ahead);
    /* to = x - shift, of whose squares the sum */
    void (*square_sum)(int64_t n, const float *x, float shift, float *to, tn_strip_sums *sums,
                       const tn_rows_ahead *ahead);
    /* The sum of squares, all in f64. */
    void (*wide_squares)(int64_t n, const float *x, tn_strip_sums *sums);
    /* to = x * factor * scale + shift; `shift`, or both of them NULL: without it. `to` may be one of the others. */
    void (*scale_shift)(int64_t n, const float *x, float factor, const float *scale, const float *shift, float *to);
    void (*divide)(int64_t n, const float *x, float by, float *to);
    /* Rows of n elements, `step` and `to_step` bytes apart: to = e / sum of e, or e * (1 / sum), where e = exp(x - greatest x). How many
       rows are done: it stops at a row whose greatest is not finite, which is untouched. `to` may be `x`. */
    int64_t (*softmax)(int64_t rows, int64_t n, const char *x, int64_t step, char *to, int64_t to_step, bool divides);
} tn_rows_level;

extern const tn_rows_level tn_rows_generic, tn_rows_avx2, tn_rows_avx512, tn_rows_neon;

/* A kernel of a chain; its part of a row is `times` indices of axis 0. */
typedef struct tn_rows_link {
    tn_resolved *resolved; /* that r is of */
    tn_resolved r;
    int64_t times;
    bool internal;  /* the output is read in the group alone */
    int64_t row;    /* bytes between rows of the output */
    size_t scratch; /* where rows of an internal output begin in a block's scratch */
} tn_rows_link;

#define TN_ROWS_CODES 96
#define TN_ROWS_PLACES 128

/* Elements that codes read and write: in memory, `step` bytes further each row, or in scratch. */
typedef struct tn_rows_place {
    char *base; /* NULL: in scratch */
    int64_t step;
    size_t offset;         /* in scratch */
    size_t bytes;          /* in scratch */
    bool wide;             /* a row of elements; else one */
    bool lasting;          /* made once, for all rows */
    uint8_t link, operand; /* in memory: whose it is */
    bool apart;            /* in the block of rows that a run is given, `step` bytes apart there */
} tn_rows_place;

typedef enum tn_rows_op {
    TN_ROWS_STEP,  /* to = run(a, b, c) */
    TN_ROWS_LOAD,  /* to: elements of a dtype; of one (`stride` 0), or of n side by side */
    TN_ROWS_STORE, /* and back */
    TN_ROWS_FOLD,  /* to = the combination of a */
    TN_ROWS_EXP_SUM,
    TN_ROWS_SQUARE_SUM,  /* of a, less b, into c; the sum to `to` */
    TN_ROWS_SCALE_SHIFT, /* of a by b, c and d; UINT16_MAX: without it */
    TN_ROWS_DIVIDE,      /* a by b */
    TN_ROWS_SOFTMAX      /* of a: what the next `stride` codes do, where all is finite */
} tn_rows_op;

typedef struct tn_rows_code {
    uint8_t op, dtype;
    uint16_t a, b, c, d, to; /* places */
    int64_t n, stride;
    const void *immediate; /* STEP: in place of c */
    union {
        tn_strip_fn *run;
        tn_strip_load_fn *load;
        tn_strip_store_fn *store;
        const tn_reduction *fold;
    };
} tn_rows_code;

typedef struct tn_rows {
    const tn_rows_level *level;
    tn_rows_code once[TN_ROWS_CODES], code[TN_ROWS_CODES];
    tn_rows_place place[TN_ROWS_PLACES];
    tn_reduction fold[TN_CHAIN_MOST];
    uint16_t moving[TN_ROWS_PLACES]; /* places that step from row to row */
    int onces, codes, places, folds, movings;
    uint16_t read, written; /* the places to look ahead to; UINT16_MAX: none */
    int64_t length;         /* elements of a row */
    size_t scratch;         /* bytes, for each thread */
} tn_rows;

/* Whether the links have that form: makes *p of them. They outlive it. */
bool tn_rows_make(tn_rows *p, const tn_rows_link *link, int count, int64_t rows);
/* The same however short or long rows are. */
bool tn_rows_make_any(tn_rows *p, const tn_rows_link *link, int count, int64_t rows);
/* Rows [first, end). */
void tn_rows_run(const tn_rows *p, int64_t first, int64_t end, char *scratch);
/* The same. `block`: where those of them lie that are `apart`; shift[i]: bytes that place i, of the others in memory, is moved by. */
void tn_rows_run_apart(const tn_rows *p, int64_t first, int64_t end, char *scratch, char *block, const int64_t *shift);

#endif
