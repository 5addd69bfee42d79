/* Builder: reductions, windows, contractions. */
#include <inttypes.h>
#include <stdio.h>

#include "ops/builder.h"

static tn_value reduce(tn_graph *g, const char *function, const char *row, tn_value x, uint32_t count, const int *axes,
                       bool keepdims) {
    int64_t list[TN_MAX_RANK];
    if (!tn_build_ranked(g, function, 1, &x))
        return TN_NULL_VALUE;
    int n = tn_build_axes(g, function, count, axes, tn_value_rank(g, x), list);
    if (n < 0)
        return TN_NULL_VALUE;
    const tn_attr attrs[] = {TN_A_INTS("axes", n, list), TN_A_INT("keepdims", keepdims)};
    return tn_graph_add(g, row, 1, &x, 2, attrs);
}

#define REDUCE(name)                                                                              \
    tn_value tn_##name(tn_graph *g, tn_value x, uint32_t count, const int *axes, bool keepdims) { \
        return reduce(g, "tn_" #name, #name, x, count, axes, keepdims);                           \
    }
REDUCE(reduce_sum)
REDUCE(reduce_prod)
REDUCE(reduce_max)
REDUCE(reduce_min)
REDUCE(reduce_and)
REDUCE(reduce_or)

/* The number of elements along the axes, as a scalar of `dtype`: a constant, or computed from x's shape at run time. */
static tn_value element_count(tn_graph *g, tn_value x, int n, const int64_t *axes, tn_dtype dtype) {
    tn_dim dims[TN_MAX_RANK], chosen[TN_MAX_RANK];
    int64_t count;
    tn_build_dims(g, x, dims);
    for (int i = 0; i < n; i++)
        chosen[i] = dims[axes[i]];
    tn_dim product = tn_build_product(g, n, chosen);
    if (!product.id)
        return TN_NULL_VALUE;
    if (tn_dim_is_const(g, product, &count))
        return tn_cast(g, tn_constant_i64(g, 0, 1, &count), dtype);
    tn_value sizes = tn_gather(g, tn_shape_of(g, x), tn_constant_i64(g, 1, n, axes), 0);
    return tn_cast(g, tn_reduce_prod(g, sizes, TN_ALL_AXES, false), dtype);
}

/* Sum divided by count. 16-bit floats are summed and divided in f32 and rounded once. */
tn_value tn_reduce_mean(tn_graph *g, tn_value x, uint32_t count, const int *axes, bool keepdims) {
    int64_t list[TN_MAX_RANK];
    if (!tn_build_ranked(g, "tn_reduce_mean", 1, &x))
        return TN_NULL_VALUE;
    int n = tn_build_axes(g, "tn_reduce_mean", count, axes, tn_value_rank(g, x), list);
    if (n < 0)
        return TN_NULL_VALUE;
    tn_dtype dtype = tn_value_dtype(g, x);
    if (dtype == TN_F16 || dtype == TN_BF16)
        x = tn_cast(g, x, TN_F32);
    tn_value sum = reduce(g, "tn_reduce_mean", "reduce_sum", x, count, axes, keepdims);
    if (!sum.id)
        return sum;
    return tn_cast(g, tn_div(g, sum, element_count(g, x, n, list, tn_value_dtype(g, x))), dtype);
}

tn_value tn_window(tn_graph *g, const char *kind, tn_value x, const int64_t *window, const int64_t *stride,
                   const int64_t *dilation, const tn_dim *lo, const tn_dim *hi) {
    int64_t ones[TN_MAX_RANK];
    tn_dim zeros[TN_MAX_RANK];
    char row[32];
    if (!tn_build_ranked(g, "tn_window", 1, &x))
        return TN_NULL_VALUE;
    if (!kind || (strcmp(kind, "sum") != 0 && strcmp(kind, "max") != 0 && strcmp(kind, "min") != 0))
        return tn_build_fail(g, TN_ERR_USAGE, "tn_window: kind is '%s', not sum, max or min", kind ? kind : "NULL");
    int rank = tn_value_rank(g, x);
    if (!window && rank)
        return tn_build_fail(g, TN_ERR_USAGE, "tn_window: window is NULL");
    for (int i = 0; i < rank; i++) {
        ones[i] = 1;
        zeros[i] = tn_dim_const(g, 0);
    }
    snprintf(row, sizeof row, "window_%s", kind);
    const tn_attr attrs[] = {TN_A_INTS("window", rank, window), TN_A_INTS("stride", rank, stride ? stride : ones),
                             TN_A_INTS("dilation", rank, dilation ? dilation : ones),
                             TN_A_DIMS("lo", rank, lo ? lo : zeros), TN_A_DIMS("hi", rank, hi ? hi : zeros)};
    return tn_graph_add(g, row, 1, &x, 5, attrs);
}

tn_value tn_build_conv(tn_graph *g, tn_value x, tn_value w, const int64_t *stride, const int64_t *dilation,
                       const int64_t *lhs_dilation, const tn_dim *lo, const tn_dim *hi, int64_t groups, tn_dtype acc) {
    const tn_value in[] = {x, w};
    int64_t ones[TN_MAX_RANK];
    tn_dim zeros[TN_MAX_RANK];
    if (!tn_build_ranked(g, "tn_conv", 2, in))
        return TN_NULL_VALUE;
    int spatial = tn_value_rank(g, x) - 2;
    if (spatial < 0)
        return tn_build_fail(g, TN_ERR_USAGE, "tn_conv: x has rank %d, but needs batch and channels", spatial + 2);
    for (int i = 0; i < spatial; i++) {
        ones[i] = 1;
        zeros[i] = tn_dim_const(g, 0);
    }
    const tn_attr attrs[] = {TN_A_INTS("stride", spatial, stride ? stride : ones),
                             TN_A_INTS("dilation", spatial, dilation ? dilation : ones),
                             TN_A_INTS("lhs_dilation", spatial, lhs_dilation ? lhs_dilation : ones),
                             TN_A_DIMS("lo", spatial, lo ? lo : zeros),
                             TN_A_DIMS("hi", spatial, hi ? hi : zeros),
                             TN_A_INT("groups", groups),
                             TN_A_DTYPE("acc", acc)};
    return tn_graph_add(g, "conv", 2, in, acc ? 7 : 6, attrs);
}

tn_value tn_conv(tn_graph *g, tn_value x, tn_value w, const int64_t *stride, const int64_t *dilation,
                 const int64_t *lhs_dilation, const tn_dim *lo, const tn_dim *hi, int64_t groups) {
    return tn_build_conv(g, x, w, stride, dilation, lhs_dilation, lo, hi, groups, TN_DTYPE_NONE);
}

static tn_value dot(tn_graph *g, tn_value a, tn_value b, uint32_t batch, const int64_t *a_batch, const int64_t *b_batch,
                    uint32_t contract, const int64_t *a_contract, const int64_t *b_contract, tn_dtype acc) {
    const tn_value in[] = {a, b};
    if (!tn_build_ranked(g, "tn_dot", 2, in))
        return TN_NULL_VALUE;
    if ((batch && (!a_batch || !b_batch)) || (contract && (!a_contract || !b_contract)))
        return tn_build_fail(g, TN_ERR_USAGE, "tn_dot: a list of axes is NULL");
    const tn_attr attrs[] = {TN_A_INTS("a_batch", batch, a_batch), TN_A_INTS("b_batch", batch, b_batch),
                             TN_A_INTS("a_contract", contract, a_contract),
                             TN_A_INTS("b_contract", contract, b_contract), TN_A_DTYPE("acc", acc)};
    return tn_graph_add(g, "dot", 2, in, acc ? 5 : 4, attrs);
}

tn_value tn_dot(tn_graph *g, tn_value a, tn_value b, uint32_t batch, const int64_t *a_batch, const int64_t *b_batch,
                uint32_t contract, const int64_t *a_contract, const int64_t *b_contract) {
    return dot(g, a, b, batch, a_batch, b_batch, contract, a_contract, b_contract, TN_DTYPE_NONE);
}

/* Broadcasts the dims before the last two of `x` to `batch`. */
static tn_value broadcast_batch(tn_graph *g, tn_value x, int batch_rank, const tn_dim *batch) {
    tn_dim dims[TN_MAX_RANK], own[TN_MAX_RANK];
    int rank = tn_build_dims(g, x, own);
    memcpy(dims, batch, (size_t)batch_rank * sizeof *dims);
    memcpy(dims + batch_rank, own + rank - 2, 2 * sizeof *dims);
    return tn_broadcast(g, x, batch_rank + 2, dims);
}

tn_value tn_build_matmul(tn_graph *g, tn_value a, tn_value b, tn_dtype acc) {
    const tn_value in[] = {a, b};
    tn_dim batch[TN_MAX_RANK], other[TN_MAX_RANK];
    int64_t axes[TN_MAX_RANK];
    if (!tn_build_ranked(g, "tn_matmul", 2, in))
        return TN_NULL_VALUE;
    int a_rank = tn_build_dims(g, a, batch), b_rank = tn_build_dims(g, b, other);
    if (!a_rank || !b_rank)
        return tn_build_fail(g, TN_ERR_USAGE, "tn_matmul: operand %d is a scalar", a_rank ? 1 : 0);
    tn_dim k = batch[a_rank - 1], l = other[b_rank > 1 ? b_rank - 2 : 0];
    if (tn_dim_never_equal(g, k, l)) {
        char p[200], q[200];
        return tn_build_fail(g, TN_ERR_USAGE, "tn_matmul: the last dimension of %s is not the %s of %s",
                             tn_value_describe(g, a, p, sizeof p), b_rank > 1 ? "last but one" : "only one",
                             tn_value_describe(g, b, q, sizeof q));
    }
    int64_t a_last = a_rank - 1, b_last = b_rank > 1 ? b_rank - 2 : 0;
    /* without batch dims on b, or free dims on a, the contraction alone gives the dims in order */
    if (b_rank <= 2 || a_rank == 1)
        return dot(g, a, b, 0, NULL, NULL, 1, &a_last, &b_last, acc);
    int rank = a_rank - 2;
    if (!tn_build_broadcast(g, "tn_matmul", &rank, batch, b_rank - 2, other))
        return TN_NULL_VALUE;
    a = broadcast_batch(g, a, rank, batch);
    b = broadcast_batch(g, b, rank, batch);
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    a_last = rank + 1;
    b_last = rank;
    return dot(g, a, b, (uint32_t)rank, axes, axes, 1, &a_last, &b_last, acc);
}

tn_value tn_matmul(tn_graph *g, tn_value a, tn_value b) {
    return tn_build_matmul(g, a, b, TN_DTYPE_NONE);
}
