/* The memory planner: a pure function from lifetimes to offsets. */
#ifndef TN_LOWER_PLANNER_H
#define TN_LOWER_PLANNER_H

#include "base/heap.h"

/* A buffer that lives from instruction `first` to `last`, both included. */
typedef struct tn_lifetime {
    int32_t first, last;
    size_t bytes;
    size_t offset; /* answer; aligned to TN_PLAN_ALIGN */
} tn_lifetime;
#define TN_PLAN_ALIGN 64

/* Gives buffers that are live together disjoint offsets: greedy by size with a bounded improvement by exchange (Pisarchyk and Lee,
   "Efficient memory management for deep neural net inference", 2020). *total: the arena's bytes. Deterministic.
   TN_ERR_MEMORY, or TN_ERR_LIMIT when a sum overflows. */
tn_status tn_planner_place(tn_heap *heap, uint32_t count, tn_lifetime *buffers, size_t *total);
/* How buffers were placed, for the next time that they have other sizes. */
typedef struct tn_placement {
    uint32_t *order; /* [count] of the caller's */
    bool known;
    size_t total, bound; /* what came out, and the lower bound */
} tn_placement;
/* The same, in the order that was good for other sizes as long as it does as well for these: without a search. */
tn_status tn_planner_place_again(tn_heap *heap, uint32_t count, tn_lifetime *buffers, tn_placement *placement,
                                 size_t *total);
/* The lower bound: the largest sum of bytes (each rounded up to the alignment) live at one instruction. */
size_t tn_planner_bound(tn_heap *heap, uint32_t count, const tn_lifetime *buffers);

#endif
