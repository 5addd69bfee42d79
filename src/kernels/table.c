/* The list of kernels. A plain one that takes everything ends each kind. */
#include "kernels/kernels.h"

static const tn_kernel_impl *const impls[] = {&tn_kernel_strip, &tn_kernel_reduce, &tn_kernel_contract};
static const tn_kernel_table table = {impls, sizeof impls / sizeof *impls};

const tn_kernel_table *tn_kernels(void) { return &table; }
