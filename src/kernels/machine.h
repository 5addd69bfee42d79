/* The strip machine: a kernel with its sizes resolved, and one vectorised loop for each scalar operation over runs of elements
   that fit in L1. It needs no compiler; it is also what applies epilogues to contractions. */
#ifndef TN_KERNELS_MACHINE_H
#define TN_KERNELS_MACHINE_H

#include "base/error.h"
#include "lower/kernel.h"

#define TN_MACHINE_AXES (2 * TN_MAX_RANK)
#define TN_MACHINE_REGISTERS 64

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
    union {
        float f;
        double d;
        int64_t i;
        uint64_t u;
    } fill; /* in the domain of the dtype's registers */
} tn_resolved_access;

/* A kernel bound to sizes and addresses. */
typedef struct tn_resolved {
    const tn_kernel *kernel;
    int outer, inner;
    int64_t extent[TN_MACHINE_AXES];
    int64_t outputs_count; /* product of outer extents */
    tn_resolved_access *operand, *output;
    tn_arena arena;
} tn_resolved;

/* Evaluates sizes; merges neighbouring outer axes (and neighbouring inner ones) that all accesses walk alike. An error leaves
   nothing to free; else call tn_resolved_free. */
tn_status tn_resolve(tn_resolved *r, const tn_kernel_args *args);
/* The same with the axes as the kernel has them. */
tn_status tn_resolve_plain(tn_resolved *r, const tn_kernel_args *args);
void tn_resolved_free(tn_resolved *r);

/* One register: a run of at most TN_RUN elements in the domain of its dtype (f16, bf16, f32: float; f64: double; integers and
   bool: 64 bits). */
typedef union tn_register {
    float f[TN_RUN];
    double d[TN_RUN];
    int64_t i[TN_RUN];
    uint64_t u[TN_RUN];
} tn_register;

tn_domain tn_register_domain(tn_dtype dtype);
/* Loads n elements of an access along `axis`, from index `at` (all axes; at[axis] is the first), guards obeyed. */
void tn_machine_load(const tn_resolved *r, const tn_resolved_access *a, int axis, const int64_t *at, int64_t n,
                     tn_register *to);
void tn_machine_store(const tn_resolved *r, const tn_resolved_access *a, int axis, const int64_t *at, int64_t n,
                      const tn_register *from);
/* Runs steps [first, first + count): registers are numbered as the kernel says. */
void tn_machine_steps(const tn_kernel *kernel, uint32_t first, uint32_t count, uint32_t base, int64_t n,
                      tn_register *reg);
/* The elements [*low, *high) of a run of n along `axis` for which all guards hold. */
void tn_machine_inside(const tn_resolved_access *a, int axes, int axis, const int64_t *at, int64_t n, int64_t *low,
                       int64_t *high);

/* Calls row(ctx, at, n) for runs along `axis` that together cover all outer indices, split over the pool into fixed pieces. `at` has
   outer + inner entries (inner ones 0). n <= run. */
typedef void tn_machine_row(void *ctx, int64_t *at, int64_t n);
void tn_machine_rows(const tn_resolved *r, tn_pool *pool, int axis, int64_t run, tn_machine_row *row, void *ctx);
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

#endif
