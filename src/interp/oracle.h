/* Judging results by what the reference gives: the same bits, or within what rounding explains.

   Where bits may differ, the unit of an element is what it moves by when the reference is run again with every rounding moved: each
   result of an operation that is not exact becomes x +- u * t, u the rounding unit of its dtype and t the sum of the absolute terms
   times sqrt(n) / 3, n their number (contractions, sums), or |x|. (Where the first term is most of a sum, each of n additions errs by about
   0.4 u t, the standard deviation: TN_ORACLE_FACTOR units are six of the whole's, since millions of elements are judged.) So cancellation, depth and width are accounted for element by element, through any operator, and
   what exact operations alone lead to must have the same bits. */
#ifndef TN_INTERP_ORACLE_H
#define TN_INTERP_ORACLE_H

#include "interp/interp.h"

/* Runs with moved roundings, made when bits differ; more, with those of exact arithmetic moved too, and more, moved TN_ORACLE_FACTOR
   times as far, each when the runs before do not explain a difference. */
enum { TN_ORACLE_RUNS = 3, TN_ORACLE_EVERY = 6, TN_ORACLE_STRETCHED = 16 };
#define TN_ORACLE_MOST (TN_ORACLE_RUNS + TN_ORACLE_EVERY + TN_ORACLE_STRETCHED)
#define TN_ORACLE_FACTOR 8.0 /* units that a result may be off */

/* Runs what is judged on the reference: `count` new objects, all NULL on failure. Options have the oracle's `adjust`. */
typedef tn_status tn_oracle_run(void *ctx, const tn_interp_options *options, tn_object **out);

/* Set by the caller: run, ctx, options, count, factor, seed. The rest zero. */
typedef struct tn_oracle {
    tn_oracle_run *run;
    void *ctx;
    tn_interp_options options;
    uint32_t count;
    const tn_graph
        *once;        /* nodes of this graph run once in a run: what does not change between runs is kept; NULL: none */
    bool anywhere;    /* all its nodes, not only those of the main region */
    bool rewritten;   /* what is judged was written otherwise, exact arithmetic, too: it may round elsewhere */
    bool winograd;    /* convolutions may be computed as ops/winograd.h says, as they are from -O2 on */
    double factor;    /* 0: TN_ORACLE_FACTOR */
    double tolerance; /* more that is allowed: this share of the rms of a tensor; 0: nothing */
    uint64_t seed;

    tn_object **base;  /* [count] of the reference as it is */
    tn_object **moved; /* [runs * count]; NULL where a run failed */
    uint32_t runs;
    tn_object **terms; /* by node of `once`: its sums of absolute terms */
    size_t terms_bytes;
    struct tn_oracle_sum *sums; /* by node of `once`: contractions of what never moves, unmoved */
} tn_oracle;

/* How a result differs; the worst element, or what is wrong with the whole. */
typedef struct tn_difference {
    uint32_t output;
    uint64_t elements; /* how many are off */
    char text[400];    /* "element [0,3] is 1.5 instead of 1.25, 0.1 may be explained by rounding" */
} tn_difference;

/* Runs the reference: TN_OK, or its error. Free the oracle in any case. */
tn_status tn_oracle_begin(tn_oracle *oracle);
void tn_oracle_free(tn_oracle *oracle);
/* Whether result `output` is right. `exact`: bits must be the same (a NaN is as good as another). *right false fills *difference.
   A status only when memory runs out. */
tn_status tn_oracle_judge(tn_oracle *oracle, uint32_t output, const tn_object *got, bool exact, bool *right,
                          tn_difference *difference);
/* The same bits, sequences item by item; NaN equals NaN. */
bool tn_object_same_bits(const tn_object *a, const tn_object *b);

#endif
