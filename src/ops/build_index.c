/* Builder: elements at computed positions, order, running results, movement by data, random numbers. */
#include <inttypes.h>

#include "ops/builder.h"

/* The axis in range, as the attribute; false with the sticky error. */
static bool ready_on_axis(tn_graph *g, const char *function, uint32_t count, const tn_value *values, int *axis) {
    if (!tn_build_ranked(g, function, count, values))
        return false;
    *axis = tn_build_axis(g, function, *axis, tn_value_rank(g, values[0]));
    return *axis >= 0;
}

/* --- gather, scatter ---------------------------------------------------------------------------------------------- */

tn_value tn_gather_elements(tn_graph *g, tn_value x, tn_value indices, int axis) {
    const tn_value in[] = {x, indices};
    if (!ready_on_axis(g, "tn_gather_elements", 2, in, &axis))
        return TN_NULL_VALUE;
    const tn_attr attr = TN_A_INT("axis", axis);
    return tn_graph_add(g, "gather_elements", 2, in, 1, &attr);
}

tn_value tn_gather_nd(tn_graph *g, tn_value x, tn_value indices, int batch_dims) {
    const tn_value in[] = {x, indices};
    if (!tn_build_ranked(g, "tn_gather_nd", 2, in))
        return TN_NULL_VALUE;
    const tn_attr attr = TN_A_INT("batch_dims", batch_dims);
    return tn_graph_add(g, "gather_nd", 2, in, 1, &attr);
}

tn_value tn_scatter_elements(tn_graph *g, tn_value x, tn_value indices, tn_value updates, int axis,
                             const char *reduction) {
    const tn_value in[] = {x, indices, updates};
    if (!ready_on_axis(g, "tn_scatter_elements", 3, in, &axis))
        return TN_NULL_VALUE;
    if (!reduction)
        reduction = "none";
    const tn_attr attrs[] = {TN_A_INT("axis", axis), TN_A_STRING("reduction", reduction, strlen(reduction))};
    return tn_graph_add(g, "scatter_elements", 3, in, 2, attrs);
}

tn_value tn_scatter_nd(tn_graph *g, tn_value x, tn_value indices, tn_value updates, const char *reduction) {
    const tn_value in[] = {x, indices, updates};
    if (!tn_build_ranked(g, "tn_scatter_nd", 3, in))
        return TN_NULL_VALUE;
    if (!reduction)
        reduction = "none";
    const tn_attr attr = TN_A_STRING("reduction", reduction, strlen(reduction));
    return tn_graph_add(g, "scatter_nd", 3, in, 1, &attr);
}

/* --- along an axis ------------------------------------------------------------------------------------------------ */

static tn_value arg_extreme(tn_graph *g, const char *function, const char *row, tn_value x, int axis, bool keepdims) {
    if (!ready_on_axis(g, function, 1, &x, &axis))
        return TN_NULL_VALUE;
    const tn_attr attrs[] = {TN_A_INT("axis", axis), TN_A_INT("keepdims", keepdims)};
    return tn_graph_add(g, row, 1, &x, 2, attrs);
}

tn_value tn_argmax(tn_graph *g, tn_value x, int axis, bool keepdims) {
    return arg_extreme(g, "tn_argmax", "argmax", x, axis, keepdims);
}

tn_value tn_argmin(tn_graph *g, tn_value x, int axis, bool keepdims) {
    return arg_extreme(g, "tn_argmin", "argmin", x, axis, keepdims);
}

static tn_value cumulative(tn_graph *g, const char *function, const char *row, tn_value x, int axis, bool exclusive,
                           bool reverse) {
    if (!ready_on_axis(g, function, 1, &x, &axis))
        return TN_NULL_VALUE;
    const tn_attr attrs[] = {TN_A_INT("axis", axis), TN_A_INT("exclusive", exclusive), TN_A_INT("reverse", reverse)};
    return tn_graph_add(g, row, 1, &x, 3, attrs);
}

#define CUMULATIVE(name)                                                                  \
    tn_value tn_##name(tn_graph *g, tn_value x, int axis, bool exclusive, bool reverse) { \
        return cumulative(g, "tn_" #name, #name, x, axis, exclusive, reverse);            \
    }
CUMULATIVE(cumsum)
CUMULATIVE(cumprod)
CUMULATIVE(cummax)
CUMULATIVE(cummin)

/* A node of two outputs: the first is answered, the second put in *second unless that is NULL. */
static tn_value add_pair(tn_graph *g, const char *row, tn_value x, uint32_t attr_count, const tn_attr *attrs,
                         tn_value *second) {
    if (second)
        *second = TN_NULL_VALUE;
    tn_node node = tn_graph_add_node(g, &(tn_node_desc){.op = tn_op_find(g->ops, row, strlen(row)),
                                                        .input_count = 1,
                                                        .inputs = &x,
                                                        .output_count = 2,
                                                        .attr_count = attr_count,
                                                        .attrs = attrs});
    if (!node.id)
        return TN_NULL_VALUE;
    if (second)
        *second = tn_node_output(g, node, 1);
    return tn_node_output(g, node, 0);
}

tn_value tn_sort(tn_graph *g, tn_value x, int axis, bool descending, tn_value *positions) {
    if (positions)
        *positions = TN_NULL_VALUE;
    if (!ready_on_axis(g, "tn_sort", 1, &x, &axis))
        return TN_NULL_VALUE;
    const tn_attr attrs[] = {TN_A_INT("axis", axis), TN_A_INT("descending", descending)};
    return add_pair(g, "sort", x, 2, attrs, positions);
}

tn_value tn_top_k(tn_graph *g, tn_value x, int64_t k, int axis, bool largest, tn_value *positions) {
    if (positions)
        *positions = TN_NULL_VALUE;
    if (!ready_on_axis(g, "tn_top_k", 1, &x, &axis))
        return TN_NULL_VALUE;
    if (k < 0)
        return tn_build_fail(g, TN_ERR_USAGE, "tn_top_k: k is %" PRId64, k);
    tn_dim size = tn_dim_const(g, k);
    const tn_attr attrs[] = {TN_A_DIMS("k", 1, &size), TN_A_INT("axis", axis), TN_A_INT("largest", largest)};
    return add_pair(g, "top_k", x, 3, attrs, positions);
}

/* --- as the data say ---------------------------------------------------------------------------------------------- */

tn_value tn_nonzero(tn_graph *g, tn_value x) {
    return tn_build_ranked(g, "tn_nonzero", 1, &x) ? tn_graph_add(g, "nonzero", 1, &x, 0, NULL) : TN_NULL_VALUE;
}

tn_value tn_compress(tn_graph *g, tn_value x, tn_value condition, int axis) {
    const tn_value in[] = {x, condition};
    if (!ready_on_axis(g, "tn_compress", 2, in, &axis))
        return TN_NULL_VALUE;
    const tn_attr attr = TN_A_INT("axis", axis);
    return tn_graph_add(g, "compress", 2, in, 1, &attr);
}

tn_value tn_dynamic_slice(tn_graph *g, tn_value x, tn_value starts, const tn_dim *size) {
    const tn_value in[] = {x, starts};
    if (!tn_build_ranked(g, "tn_dynamic_slice", 2, in))
        return TN_NULL_VALUE;
    if (!size && tn_value_rank(g, x))
        return tn_build_fail(g, TN_ERR_USAGE, "tn_dynamic_slice: size is NULL");
    const tn_attr attr = TN_A_DIMS("size", tn_value_rank(g, x), size);
    return tn_graph_add(g, "dynamic_slice", 2, in, 1, &attr);
}

tn_value tn_dynamic_update_slice(tn_graph *g, tn_value x, tn_value update, tn_value starts) {
    const tn_value in[] = {x, update, starts};
    return tn_build_ranked(g, "tn_dynamic_update_slice", 3, in)
               ? tn_graph_add(g, "dynamic_update_slice", 3, in, 0, NULL)
               : TN_NULL_VALUE;
}

tn_value tn_reverse(tn_graph *g, tn_value x, uint32_t count, const int *axes) {
    int64_t list[TN_MAX_RANK], step[TN_MAX_RANK];
    tn_dim start[TN_MAX_RANK], size[TN_MAX_RANK];
    if (!tn_build_ranked(g, "tn_reverse", 1, &x))
        return TN_NULL_VALUE;
    int rank = tn_build_dims(g, x, size), n = tn_build_axes(g, "tn_reverse", count, axes, rank, list);
    if (n < 0)
        return TN_NULL_VALUE;
    for (int i = 0; i < rank; i++) {
        start[i] = tn_dim_const(g, 0);
        step[i] = 1;
    }
    for (int i = 0; i < n; i++) {
        start[list[i]] = tn_dim_sub(g, size[list[i]], tn_dim_const(g, 1));
        step[list[i]] = -1;
    }
    return tn_slice(g, x, start, size, step);
}

/* --- random numbers ----------------------------------------------------------------------------------------------- */

static tn_value random_value(tn_graph *g, const char *function, const char *row, tn_dtype dtype, int rank,
                             const tn_dim *dims, int64_t seed, tn_value offset) {
    if (!tn_build_ready(g, function, offset.id ? 1 : 0, &offset))
        return TN_NULL_VALUE;
    if (rank < 0 || rank > TN_MAX_RANK || (rank && !dims))
        return tn_build_fail(g, TN_ERR_USAGE, "%s: a shape of rank %d%s", function, rank,
                             rank && !dims ? ", NULL" : "");
    const tn_attr attrs[] = {TN_A_DIMS("shape", rank, dims), TN_A_DTYPE("dtype", dtype), TN_A_INT("seed", seed)};
    return tn_graph_add(g, row, offset.id ? 1 : 0, &offset, 3, attrs);
}

#define RANDOM(name)                                                                                               \
    tn_value tn_##name(tn_graph *g, tn_dtype dtype, int rank, const tn_dim *dims, int64_t seed, tn_value offset) { \
        return random_value(g, "tn_" #name, #name, dtype, rank, dims, seed, offset);                               \
    }
RANDOM(random_bits)
RANDOM(random_uniform)
RANDOM(random_normal)
