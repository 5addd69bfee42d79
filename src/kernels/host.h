/* Host instructions by kernels: rows that have no kernel of a plan, computed with the bits of their eval. A kernel answers TN_OK and sets
   *done, or leaves *done false: eval does it, or says what is wrong. */
#ifndef TN_KERNELS_HOST_H
#define TN_KERNELS_HOST_H

#include "kernels/kernels.h"
#include "kernels/order.h"
#include "ops/plain.h"

/* The input, contiguous and aligned to its elements: itself, or a copy. NULL with the error set; *fits false: there is no room for a copy,
   or its elements have no address. Destroy it. */
tn_tensor *tn_host_flat(const tn_eval *e, uint32_t input, tn_isa isa, bool *fits);
/* Calls body for pieces of [0, count), multiples of `grain`, with `scratch` bytes for each thread (0: NULL); `work`: of one, in elements. */
typedef void tn_host_body(const void *ctx, int64_t begin, int64_t end, char *scratch);
tn_status tn_host_split(const tn_eval *e, int64_t count, int64_t grain, double work, size_t scratch, tn_host_body *body,
                        const void *ctx);

typedef tn_status tn_host_run(tn_eval *e, tn_isa isa, bool *done);
tn_host_run tn_host_extreme, tn_host_running, tn_host_order, tn_host_pick,
    tn_host_trees; /* in files of these names; pick.c, trees.c */

/* Lanes that lie beside each other are not cut into fewer than these: else lines of the cache are read in part. */
#define TN_HOST_BESIDE 256

#endif
