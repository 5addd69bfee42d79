/* What a plan does at given sizes: for `info`, `bench` and tests. */
#ifndef TN_LOWER_COST_H
#define TN_LOWER_COST_H

#include "lower/plan.h"

/* Each instruction is counted once: both sides of a branch, one trip of a loop. Operations are scalar ones, a multiply-add is two;
   bytes are those that kernels must move, each element of an operand once a kernel, weights as they are packed. */
typedef struct tn_plan_cost {
    uint32_t calls, host_calls;
    double operations, bytes;
    double contract_operations; /* of these: multiply-adds of contractions */
    uint64_t arena_bytes;       /* of slots as they are placed */
    uint64_t live_bytes;        /* the largest sum of bytes that live at once: no placement needs less */
    uint64_t output_bytes;      /* of outputs, which lie in tensors of their own */
    uint32_t unknown; /* kernels and slots left out: their sizes depend on data, or on symbols that have no value */
} tn_plan_cost;

/* One kernel; `size`: values of the plan's sizes. */
typedef struct tn_kernel_cost {
    double operations, contract_operations, bytes;
} tn_kernel_cost;
tn_kernel_cost tn_kernel_cost_of(const tn_plan *plan, const tn_kernel *kernel, const int64_t *size);

/* Calls visit for every kernel whose sizes are known, in order; *unknown: how many others there are. */
typedef void tn_cost_visit(void *ctx, const tn_kernel *kernel, const tn_kernel_cost *cost);
tn_status tn_plan_visit_costs(const tn_plan *plan, const tn_dim_env *env, tn_cost_visit *visit, void *ctx,
                              uint32_t *unknown);

/* `env`: values of the graph's symbols, as far as they are known. */
tn_status tn_plan_cost_of(const tn_plan *plan, const tn_dim_env *env, tn_plan_cost *cost);

#endif
