/* The kernel table: what a plan's kernels run on. */
#ifndef TN_KERNELS_KERNELS_H
#define TN_KERNELS_KERNELS_H

#include "lower/kernel.h"

/* Runs args->kernel and those after it: `count`, up to TN_CHAIN_MOST, elementwise kernels and reductions. */
tn_status tn_chain_run(const tn_kernel_args *args, uint32_t count);

/* For tn_interp_options.adjust, `ctx` the plan: what a host instruction computed by the C library's elementary functions is computed anew
   by those of the kernels, so that a value has the same bits wherever it is computed. */
tn_status tn_kernels_adjust(void *ctx, tn_eval *e);

/* Runs a host instruction by a kernel that has the bits of its row's eval; *done false: there is none that takes it. */
tn_status tn_kernels_host(tn_eval *e, tn_isa isa, bool *done);

/* tn_tensor_assign by the kernels: to a contiguous tensor that lies apart. */
tn_status tn_copy_tensor(tn_tensor *to, const tn_tensor *from, tn_isa isa, tn_pool *pool);

/* All ways to run kernels, best first. Lives for ever. */
const tn_kernel_table *tn_kernels(void);

extern const tn_kernel_impl tn_kernel_strip;
extern const tn_kernel_impl tn_kernel_reduce;
extern const tn_kernel_impl tn_kernel_contract;
/* The batch-reduce contraction, the depthwise convolution and Winograd's in f32, and what runs several of them as one, by level. */
extern const tn_kernel_impl tn_kernel_gemm[], tn_kernel_depthwise[], tn_kernel_winograd[], tn_kernel_attention[],
    tn_kernel_bands[];

#endif
