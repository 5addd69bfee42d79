/* Random programs: valid graphs of every primitive and composite that the builder makes, with control flow, symbolic sizes, odd
   dtypes, empty dimensions and aliases. The same seed gives the same graph. */
#ifndef TESTS_SUPPORT_RANDOM_GRAPH_H
#define TESTS_SUPPORT_RANDOM_GRAPH_H

#include "ir/graph.h"

#define RANDOM_SYMBOLS 3
#define RANDOM_POOL 160
#define RANDOM_STEPS 40
#define RANDOM_MOST 3000 /* elements of any value */

typedef struct random_rng {
    uint64_t state;
} random_rng;
uint64_t random_next(random_rng *r);
/* 0 to n - 1; n > 0. */
int64_t random_below(random_rng *r, int64_t n);
bool random_chance(random_rng *r, int percent);

/* A graph while it grows. */
typedef struct random_builder {
    tn_graph *graph;
    random_rng rng;
    int64_t size[RANDOM_SYMBOLS]; /* of the symbols A, B, C */
    bool defined[RANDOM_SYMBOLS]; /* by the shape of an input */
    tn_dim_env env;               /* the same; fresh symbols are unbound */
    tn_value pool[RANDOM_POOL];   /* what operands are chosen from */
    uint32_t pooled;
    int depth; /* of regions */
} random_builder;

/* The graph of a seed; the sizes of A, B, C that it is meant for are in `size`. */
tn_graph *random_graph_make(uint64_t seed, int64_t size[RANDOM_SYMBOLS]);
/* Objects for the inputs, at these sizes of A, B, C. */
void random_graph_inputs(const tn_graph *graph, const int64_t size[RANDOM_SYMBOLS], uint64_t seed, tn_object **in);
/* A tensor of random values: corners (NaN, infinities, extremes) among them with chance `corners` percent an element. */
tn_tensor *random_tensor(random_rng *r, tn_dtype dtype, int rank, const int64_t *dims, int corners);

/* --- for the files that build steps ---------------------------------------------------------------------------------------------- */
enum { RANDOM_FLOAT = 1, RANDOM_INT = 2, RANDOM_BOOL = 4, RANDOM_NUMBER = 3, RANDOM_ANY = 7 };
/* A value of the pool of one of these classes, rank within [low, high], sizes known; null when there is none. */
tn_value random_pick(random_builder *b, int classes, int low, int high);
tn_dtype random_dtype(random_builder *b, int classes);
/* The size of an axis at the seed's binding; false: only data decides. */
bool random_size(const random_builder *b, tn_value v, int axis, int64_t *size);
int64_t random_count(const random_builder *b, tn_value v); /* elements; INT64_MAX: only data decides */
bool random_is_const(const random_builder *b, tn_value v, int axis, int64_t *size);
/* Symbol A, B or C, or its size where no input defines it. */
tn_dim random_symbol(random_builder *b, int64_t index);
/* A value of x's dtype that broadcasts with x. */
tn_value random_partner(random_builder *b, tn_value x);
void random_add(random_builder *b, tn_value v);
/* One step: adds nodes and pools what they give, or does nothing. */
void random_step(random_builder *b);
void random_step_move(random_builder *b);
void random_step_sum(random_builder *b);
void random_step_index(random_builder *b);
void random_step_control(random_builder *b);
void random_step_attention(random_builder *b);

#endif
