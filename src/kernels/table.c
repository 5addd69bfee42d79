/* The list of kernels. A plain one that takes everything ends each kind. */
#include "kernels/kernels.h"

/* Every level of the contractions, best first, then the plain ones. */
static const tn_kernel_impl *const impls[] = {
    &tn_kernel_strip,        &tn_kernel_reduce,
#if defined(TN_HAVE_ISA_AVX512)
    &tn_kernel_bands[2],     &tn_kernel_bands[1],     &tn_kernel_bands[0],     &tn_kernel_attention[2],
    &tn_kernel_attention[1], &tn_kernel_attention[0], &tn_kernel_winograd[2],  &tn_kernel_winograd[1],
    &tn_kernel_winograd[0],  &tn_kernel_depthwise[2], &tn_kernel_depthwise[1], &tn_kernel_depthwise[0],
    &tn_kernel_gemm[2],      &tn_kernel_gemm[1],      &tn_kernel_gemm[0],
#elif defined(TN_HAVE_ISA_NEON)
    &tn_kernel_bands[1],    &tn_kernel_bands[0],    &tn_kernel_attention[1], &tn_kernel_attention[0],
    &tn_kernel_winograd[1], &tn_kernel_winograd[0], &tn_kernel_depthwise[1], &tn_kernel_depthwise[0],
    &tn_kernel_gemm[1],     &tn_kernel_gemm[0],
#else
    &tn_kernel_bands[0], &tn_kernel_attention[0], &tn_kernel_winograd[0], &tn_kernel_depthwise[0], &tn_kernel_gemm[0],
#endif
    &tn_kernel_contract,
};
static const tn_kernel_table table = {impls, sizeof impls / sizeof *impls};

const tn_kernel_table *tn_kernels(void) {
    return &table;
}
