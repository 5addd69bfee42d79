/* The strip machine: a kernel with its sizes resolved, and one vectorised loop for each scalar operation over strips of elements that
   fit in L1. It needs no compiler; it is also what applies epilogues to contractions. */
#ifndef TN_KERNELS_MACHINE_H
#define TN_KERNELS_MACHINE_H

#include <stdatomic.h>

#include "base/error.h"
#include "kernels/strip.h"
#include "lower/kernel.h"

#define TN_MACHINE_AXES (2 * TN_MAX_RANK)
#define TN_MACHINE_REGISTERS 64

/* --- resolve.c: a kernel bound to sizes and addresses ------------------------------------------------------------------------------ */

typedef struct tn_resolved_guard {
    int64_t coef[TN_MACHINE_AXES], offset, extent;
} tn_resolved_guard;

typedef struct tn_resolved_access {
    char *base; /* of index (0, ..., 0) */
    tn_dtype dtype;
    int64_t element;                 /* bytes */
    int64_t stride[TN_MACHINE_AXES]; /* in elements */
    int guards;
    tn_resolved_guard *guard;
    uint64_t fill; /* an element of the dtype */
} tn_resolved_access;

typedef struct tn_resolved {
    const tn_kernel *kernel;
    int outer, inner;
    void *extra;
    int64_t outputs_count, inner_count; /* products of extents */
    tn_resolved_access *operand, *output;
    int64_t extent[TN_MACHINE_AXES];
} tn_resolved;

/* How axes are taken: as the kernel has them, or outer ones in the order of the first output's memory, and neighbours that all accesses
   walk alike as one. One kernel is always resolved in the same way, with as much extra. */
typedef enum tn_resolve_how { TN_RESOLVE_PLAIN, TN_RESOLVE_MERGED } tn_resolve_how;
/* Evaluates sizes; or takes what args->kept has, with the addresses of this run. r->extra: `extra` bytes of the caller's, zero at first and
   kept with the rest. Free it; NULL with the error set. */
tn_resolved *tn_resolve(const tn_kernel_args *args, tn_resolve_how how, size_t extra);
void tn_resolved_free(const tn_kernel_args *args, tn_resolved *r); /* does nothing with what is kept */

/* The same in parts, for a kernel that others are parts of: the bytes of a block, all but addresses in it, addresses. */
size_t tn_resolved_bytes(const tn_kernel *kernel);
void tn_resolve_sizes(tn_resolved *block, const tn_kernel_args *args, tn_resolve_how how);
/* From TN_RESOLVE_PLAIN to TN_RESOLVE_MERGED. */
void tn_resolved_merge(tn_resolved *r);
void tn_resolve_bases(const tn_resolved *r, const tn_kernel_args *args);

/* The elements [*low, *high) of a run of n along `axis` (-1: one element) for which all guards hold. */
void tn_machine_inside(const tn_resolved_access *a, int axes, int axis, const int64_t *at, int64_t n, int64_t *low,
                       int64_t *high);
/* Steps to the next inner index of `at` (row-major); false after the last. */
static inline bool tn_machine_next(const tn_resolved *r, int64_t *at) {
    for (int i = r->outer + r->inner - 1; i >= r->outer; i--) {
        if (++at[i] < r->extent[i])
            return true;
        at[i] = 0;
    }
    return false;
}
static inline int64_t tn_machine_offset(const tn_resolved_access *a, int axes, const int64_t *at) {
    int64_t o = 0;
    for (int i = 0; i < axes; i++)
        o += a->stride[i] * at[i];
    return o;
}

/* --- places.c: scratch of pieces that run at once ------------------------------------------------------------------------------------- */

/* One block with a place for each thread that can be at work: what a run takes from the heap does not depend on how threads meet. */
typedef struct tn_places {
    tn_heap *heap;
    char *base;
    size_t bytes; /* of a place */
    int count;
    _Atomic uint64_t taken; /* bits */
} tn_places;
/* False when out of memory. */
bool tn_places_make(tn_places *p, tn_heap *heap, const tn_pool *pool, int64_t pieces, size_t bytes);
void tn_places_free(tn_places *p);
/* A place aligned to 64 bytes for the thread that calls; give it back. NULL: out of memory. */
char *tn_places_take(tn_places *p);
void tn_places_give(tn_places *p, char *place);

/* --- program.c: a kernel's steps for a level ------------------------------------------------------------------------------------------ */

/* One function to call on registers. */
typedef struct tn_strip_code {
    tn_strip_fn *run;           /* NULL: by ops/scalar.h */
    const tn_scalar_step *step; /* it comes from */
    uint16_t a, b, c, to;
} tn_strip_code;

/* The two parts of a kernel: before the reduction, after it. Elementwise kernels have the first alone. */
typedef enum tn_strip_part { TN_STRIP_BEFORE, TN_STRIP_AFTER } tn_strip_part;

typedef struct tn_strip_program {
    const tn_strip_level *level;
    uint16_t first[3]; /* codes of part p: [first[p], first[p + 1]) */
    uint16_t buffers;  /* registers share them as their lives allow; operands have their own */
    int64_t length;    /* elements of a strip */
    int64_t pitch;     /* bytes of a buffer */
    bool direct;       /* the last code makes the only result: it may be made in place */
    uint64_t uses[2];  /* operands that a part reads, as bits */
    uint64_t apart;    /* codes after a contraction that only operands lead to: bit i is code first[1] + i */
    uint64_t apart_uses;
    uint8_t type[TN_MACHINE_REGISTERS];
    uint8_t buffer[TN_MACHINE_REGISTERS];
    tn_strip_code code[]; /* a step is one code, and another that rounds */
} tn_strip_program;

/* The best level for which there is code where `isa` is the highest wanted. */
const tn_strip_level *tn_strip_best(tn_isa isa);
/* Makes kernel->program; for `prepare`. */
tn_status tn_strip_prepare(tn_kernel *kernel, const tn_kernel_facts *facts);

/* --- machine.c: running strips --------------------------------------------------------------------------------------------------------- */

#define TN_STRIP_LENGTH 512
#define TN_STRIP_SCRATCH (96 << 10)

/* One thread's registers. */
typedef struct tn_strip {
    const tn_resolved *r;
    const tn_strip_program *program;
    const void *reg[TN_MACHINE_REGISTERS];
    /* what operands' buffers hold */
    const char *loaded[TN_MACHINE_REGISTERS];
    int64_t loaded_n[TN_MACHINE_REGISTERS], loaded_rows[TN_MACHINE_REGISTERS];
    uint64_t seen, standing; /* operands that were loaded; those that are one number, of which the buffer is full */
    /* what codes apart have made: the same for all rows where their operands lie along `apart_axis` alone (-1: no axis; -2: they do not) */
    bool fetches; /* lines of the output, before they are written */
    int apart_axis;
    int64_t apart_at, apart_n, apart_rows;
    _Alignas(64) char buffer[TN_STRIP_SCRATCH];
} tn_strip;

/* A rectangle of outputs: n along `axis` (-1: one), for `rows` indices of `tile` from `at` on. Indices not spoken of are those of
   `at`. */
typedef struct tn_strip_block {
    int64_t *at; /* [outer + inner] */
    int axis, tile;
    int64_t n, rows;
} tn_strip_block;

void tn_strip_begin(tn_strip *s, const tn_resolved *r);
/* Operand i: n * rows elements in its register's type, row by row; in memory where they lie so, else in its buffer. */
const void *tn_strip_load(tn_strip *s, int i, const tn_strip_block *b);
/* Loads the operands of a part and computes its steps; then register j is at s->reg[j], n * rows elements, row by row. `result`: NULL,
   or where the last code of the part shall put its result. */
void tn_strip_compute(tn_strip *s, tn_strip_part part, const tn_strip_block *b, void *result);
/* The codes of a part on n elements: registers in `reg`, what they make in `buffer`, `pitch` bytes each; those among `made` (bits) are there. */
void tn_strip_codes(const tn_strip_program *program, tn_strip_part part, int64_t n, const void **reg, char *buffer,
                    int64_t pitch, uint64_t made, void *result);
/* The same as tn_strip_compute, and stores the outputs. `reduced`: the reduced register (TN_STRIP_AFTER). */
void tn_strip_run(tn_strip *s, tn_strip_part part, const tn_strip_block *b, const void *reduced);

struct tn_strip_range;
/* Splits all outer indices into blocks, and these into pieces for the pool. */
typedef struct tn_strip_walk {
    const tn_resolved *r;
    int axis, tile; /* -1: none */
    int64_t length; /* elements of a block at most, rows counted */
    bool crossed; /* operands run along `tile`: blocks are many rows of it, so that lines of the cache are read whole */
    double work;  /* of an output, in steps of an element */
    void (*piece)(void *ctx, struct tn_strip_range *range);
    void *ctx;
    /* the rest is the walk's own */
    int order[TN_MACHINE_AXES], others;
    int64_t stretch, stretches, rows, bands, group, blocks, per_piece;
} tn_strip_walk;
typedef struct tn_strip_range {
    const tn_strip_walk *w;
    int64_t next, end; /* blocks */
    int64_t at[TN_MACHINE_AXES];
} tn_strip_range;
/* Calls walk->piece for all pieces. */
void tn_strip_walk_run(tn_strip_walk *walk, tn_pool *pool);
/* The next block of a range; false after the last. Inner indices of its `at` are 0. */
bool tn_strip_range_next(tn_strip_range *range, tn_strip_block *block);

/* small.c: elementwise kernels of few elements. How much extra a kernel is resolved with; looks whether it is one, once its sizes are known;
   whether it was one (NULL: no); runs args->kernel by what was kept of it, false: it is none. */
size_t tn_small_room(const tn_kernel *kernel);
void tn_small_consider(tn_resolved *r);
bool tn_small_is(const tn_resolved *kept);
bool tn_small_run(const tn_resolved *kept, const tn_kernel_args *args);

/* strip.c, reduce.c: a kernel of that kind on resolved sizes. */
void tn_strip_run_resolved(const tn_resolved *r, tn_pool *pool);
void tn_reduce_run_resolved(const tn_resolved *r, tn_pool *pool);

/* How the kernel of `r` combines. */
typedef struct tn_reduction {
    const tn_resolved *r;
    const tn_strip_level *level;
    tn_scalar_op combine;
    tn_strip_type in, acc; /* types of what is combined and of the result */
    tn_strip_fn *step;     /* acc op in */
    uint16_t summand;      /* register */
    bool lanes;            /* the order matters */
    bool parts;            /* sums of f32, in f64 */
    bool along;
    bool whole;   /* a row is read in place, whatever its length */
    bool windows; /* outputs of a block as tn_windows_block makes them */
    uint64_t identity;
} tn_reduction;
void tn_reduction_make(tn_reduction *q, const tn_resolved *r); /* `along` and `whole` aside */
/* What the elements of one output are folded into, in their order; and the reduced register from it. */
typedef union tn_reduction_lanes {
    uint64_t lane[TN_STRIP_LANES]; /* of `acc` */
    tn_strip_sums sums;            /* where `parts` */
} tn_reduction_lanes;
void tn_reduction_begin(const tn_reduction *q, tn_reduction_lanes *lanes);
/* False: a sum that must be formed again, all in f64 (tn_strip_sums). */
bool tn_reduction_end(const tn_reduction *q, tn_reduction_lanes *lanes, void *to);
/* Both, with the n elements of an output side by side. */
void tn_reduction_row(const tn_reduction *q, int64_t n, const void *x, void *to);

#endif
