/* What ends a contraction while its outputs are still in L1: sums of columns' values, factors, bounds. The common epilogues are chains of
   nothing else; other ones run as strips. One source for each instruction-set level (isa/gemm.c; of 16-bit floats isa/half.c). */
#ifndef TN_KERNELS_FINISH_H
#define TN_KERNELS_FINISH_H

#include <stdbool.h>
#include <stdint.h>

#define TN_FINISH_STEPS 12

typedef enum {
    TN_FINISH_ADD,
    TN_FINISH_MUL,
    TN_FINISH_MAX,
    TN_FINISH_MIN,
    /* of f32 alone: y - x, x - y, y / x, x / y, and a function of y */
    TN_FINISH_SUB,
    TN_FINISH_FROM,
    TN_FINISH_DIV,
    TN_FINISH_INTO,
    TN_FINISH_CALL
} tn_finish_op;

/* Where the other operand of a step lies: one element, one of each column, one of each row and column, or what the chain has kept. */
typedef enum { TN_FINISH_ONE, TN_FINISH_COLUMNS, TN_FINISH_ALL, TN_FINISH_KEPT } tn_finish_form;

typedef struct tn_finish_step {
    uint8_t op, form;
    uint8_t operand; /* of the kernel */
    bool keep;       /* what the step is given is kept for a later one */
    bool sigmoid;    /* of a call */
    float one;       /* ONE: the element */
    const void *at;  /* the first element */
    void (*call)(int64_t n, const void *x, const void *b, const void *c,
                 void *to); /* CALL: to[i] = f(x[i]); b and c are not read */
} tn_finish_step;

typedef struct tn_finish {
    uint8_t dtype; /* of the outputs and of all operands: f32, f16, bf16; each step is rounded to it */
    int steps;
    int all; /* the operand that one step at most reads as TN_FINISH_ALL; 0: none does */
    tn_finish_step step[TN_FINISH_STEPS];
} tn_finish;

/* In place, of f32: c[i][j] for i < rows and j < columns; the first column is column `first` of the steps'. all[i]: row i of TN_FINISH_ALL, from
   its first column on. */
typedef void tn_finish_fn(const tn_finish *f, int rows, int64_t columns, int64_t first, float *const *c,
                          const void *const *all);
/* The same of 16-bit floats: sums c[i], rounded, then ended, go to to[i]. */
typedef void tn_finish_half_fn(const tn_finish *f, int rows, int64_t columns, int64_t first, float *const *c,
                               const void *const *all, uint16_t *const *to);

typedef enum {
    TN_ENDS_BOUNDED, /* y, between `low` and `high` */
    TN_ENDS_SILU,    /* y * sigmoid(y) */
    TN_ENDS_SWISH    /* y * (y * by + plus, between `low` and `high`) / over: hard-swish */
} tn_finish_end_form;

/* A chain as tiles do it: what is subtracted of each column, a factor, and what is added; another tensor added; a form; for TN_ENDS_SWISH
   a factor and what is added after it. */
typedef struct tn_finish_end {
    const float *sub, *mul, *add; /* of column 0; NULL: none, or `scale` and `shift` */
    bool adds;                    /* `sub` is added */
    bool all, bounds;             /* all: TN_FINISH_ALL is added */
    bool scales;                  /* all by `scale` before; then nothing is subtracted, and there is no `mul` */
    float scale;                  /* 1 where there is none */
    bool late;                    /* more than sums and bounds: done when the sums are stored, no sooner */
    uint8_t form;
    float low, high; /* infinities: no bound */
    float zero;      /* added between them: of two zeros the bound counts; -0 changes nothing */
    float by, plus, over;
    float shift, after, more;                                                          /* neutral: -0, 1, -0 */
    bool goes_on;                                                                      /* by the last two */
    void (*sigmoid)(int64_t n, const void *x, const void *b, const void *c, void *to); /* of any x */
} tn_finish_end;
/* Whether f is such a chain of f32; then makes *e of it. */
bool tn_finish_end_of(const tn_finish *f, tn_finish_end *e);
/* Whether f is bounds alone, or nothing: rounding keeps order, so of any dtype they may be those of f32 sums; then makes *e of it. */
bool tn_finish_bounds_of(const tn_finish *f, tn_finish_end *e);

struct tn_resolved;
/* Whether the epilogue (none: too) of a contraction, with outputs by axis `column` side by side, is such a chain with the addresses of this
   run; then makes *f of it. A bound that is NaN, or a zero whose sign matters, is left to strips. */
bool tn_finish_make(tn_finish *f, const struct tn_resolved *r, int column);

#endif
