/* Builder: movement of elements, and shapes as data. */
#include <inttypes.h>

#include "ops/builder.h"

tn_value tn_reshape_dims(tn_graph *g, tn_value x, int rank, const tn_dim *dims) {
    if (!tn_build_ranked(g, "tn_reshape", 1, &x))
        return TN_NULL_VALUE;
    if (rank < 0 || rank > TN_MAX_RANK || (rank && !dims))
        return tn_build_fail(g, TN_ERR_USAGE, "tn_reshape: a shape of rank %d", rank);
    if (rank == tn_value_rank(g, x) && (!rank || memcmp(dims, tn_value_dims(g, x), (size_t)rank * sizeof *dims) == 0))
        return x;
    tn_attr attr = TN_A_DIMS("shape", rank, dims);
    return tn_graph_add(g, "reshape", 1, &x, 1, &attr);
}

tn_value tn_transpose(tn_graph *g, tn_value x, const int *perm) {
    int64_t order[TN_MAX_RANK];
    if (!tn_build_ranked(g, "tn_transpose", 1, &x))
        return TN_NULL_VALUE;
    int rank = tn_value_rank(g, x);
    bool seen[TN_MAX_RANK] = {false};
    for (int i = 0; i < rank; i++) {
        int axis = perm ? tn_build_axis(g, "tn_transpose", perm[i], rank) : rank - 1 - i;
        if (axis < 0)
            return TN_NULL_VALUE;
        if (seen[axis])
            return tn_build_fail(g, TN_ERR_USAGE, "tn_transpose: axis %d is given twice", axis);
        seen[axis] = true;
        order[i] = axis;
    }
    tn_attr attr = TN_A_INTS("perm", rank, order);
    return tn_graph_add(g, "transpose", 1, &x, 1, &attr);
}

tn_value tn_broadcast(tn_graph *g, tn_value x, int rank, const tn_dim *dims) {
    if (!tn_build_ranked(g, "tn_broadcast", 1, &x))
        return TN_NULL_VALUE;
    if (rank < 0 || rank > TN_MAX_RANK || (rank && !dims))
        return tn_build_fail(g, TN_ERR_USAGE, "tn_broadcast: a shape of rank %d", rank);
    bool equal = rank == tn_value_rank(g, x);
    for (int i = 0; equal && i < rank; i++)
        equal = dims[i].id == tn_value_dims(g, x)[i].id;
    if (equal)
        return x;
    tn_attr attr = TN_A_DIMS("shape", rank, dims);
    return tn_graph_add(g, "broadcast", 1, &x, 1, &attr);
}

tn_value tn_fit(tn_graph *g, tn_value x, const tn_dim *dims) {
    if (!tn_build_ranked(g, "tn_fit", 1, &x))
        return TN_NULL_VALUE;
    int rank = tn_value_rank(g, x);
    bool equal = true;
    for (int i = 0; equal && i < rank; i++)
        equal = dims && tn_dim_equal(g, dims[i], tn_value_dim(g, x, i));
    if (equal)
        return x;
    if (!dims)
        return tn_build_fail(g, TN_ERR_USAGE, "tn_fit: dims is NULL");
    tn_attr attr = TN_A_DIMS("shape", rank, dims);
    return tn_graph_add(g, "fit", 1, &x, 1, &attr);
}

tn_value tn_slice(tn_graph *g, tn_value x, const tn_dim *start, const tn_dim *size, const int64_t *step) {
    int64_t ones[TN_MAX_RANK];
    if (!tn_build_ranked(g, "tn_slice", 1, &x))
        return TN_NULL_VALUE;
    int rank = tn_value_rank(g, x);
    if (rank && (!start || !size))
        return tn_build_fail(g, TN_ERR_USAGE, "tn_slice: start or size is NULL");
    for (int i = 0; i < rank; i++)
        ones[i] = 1;
    const tn_attr attrs[] = {TN_A_DIMS("start", rank, start), TN_A_DIMS("size", rank, size),
                             TN_A_INTS("step", rank, step ? step : ones)};
    return tn_graph_add(g, "slice", 1, &x, 3, attrs);
}

tn_value tn_slice_axis(tn_graph *g, tn_value x, int axis, int64_t start, int64_t size) {
    tn_dim starts[TN_MAX_RANK], sizes[TN_MAX_RANK];
    if (!tn_build_ranked(g, "tn_slice_axis", 1, &x))
        return TN_NULL_VALUE;
    int rank = tn_build_dims(g, x, sizes);
    axis = tn_build_axis(g, "tn_slice_axis", axis, rank);
    if (axis < 0)
        return TN_NULL_VALUE;
    if (start < 0 || size < 0)
        return tn_build_fail(g, TN_ERR_USAGE, "tn_slice_axis: start %" PRId64 ", size %" PRId64 ": negative", start,
                             size);
    for (int i = 0; i < rank; i++)
        starts[i] = tn_dim_const(g, i == axis ? start : 0);
    sizes[axis] = tn_dim_const(g, size);
    return tn_slice(g, x, starts, sizes, NULL);
}

tn_value tn_pad(tn_graph *g, tn_value x, tn_value value, const tn_dim *lo, const tn_dim *hi, const char *mode) {
    tn_dim zeros[TN_MAX_RANK];
    if (!tn_build_ranked(g, "tn_pad", 1, &x))
        return TN_NULL_VALUE;
    if (!mode)
        mode = "constant";
    bool constant = strcmp(mode, "constant") == 0;
    tn_value in[2] = {x, value};
    if (constant && !value.id)
        in[1] = tn_scalar_like(g, x, 0);
    if (!constant && value.id)
        return tn_build_fail(g, TN_ERR_USAGE, "tn_pad: a value is for mode constant only, not for %s", mode);
    int rank = tn_value_rank(g, x);
    for (int i = 0; i < rank; i++)
        zeros[i] = tn_dim_const(g, 0);
    const tn_attr attrs[] = {TN_A_DIMS("lo", rank, lo ? lo : zeros), TN_A_DIMS("hi", rank, hi ? hi : zeros),
                             TN_A_STRING("mode", mode, strlen(mode))};
    return tn_graph_add(g, "pad", constant ? 2 : 1, in, 3, attrs);
}

tn_value tn_concat(tn_graph *g, int axis, uint32_t count, const tn_value *values) {
    if (!values && count)
        return tn_build_fail(g, TN_ERR_USAGE, "tn_concat: values is NULL");
    if (!tn_build_ranked(g, "tn_concat", count, values))
        return TN_NULL_VALUE;
    if (!count)
        return tn_build_fail(g, TN_ERR_USAGE, "tn_concat: nothing to join");
    axis = tn_build_axis(g, "tn_concat", axis, tn_value_rank(g, values[0]));
    if (axis < 0)
        return TN_NULL_VALUE;
    tn_attr attr = TN_A_INT("axis", axis);
    return tn_graph_add(g, "concat", count, values, 1, &attr);
}

tn_value tn_gather(tn_graph *g, tn_value x, tn_value indices, int axis) {
    const tn_value in[] = {x, indices};
    if (!tn_build_ranked(g, "tn_gather", 2, in))
        return TN_NULL_VALUE;
    axis = tn_build_axis(g, "tn_gather", axis, tn_value_rank(g, x));
    if (axis < 0)
        return TN_NULL_VALUE;
    tn_attr attr = TN_A_INT("axis", axis);
    return tn_graph_add(g, "gather", 2, in, 1, &attr);
}

tn_value tn_expand_dims(tn_graph *g, tn_value x, uint32_t count, const int *axes) {
    tn_dim old[TN_MAX_RANK], dims[TN_MAX_RANK];
    int64_t chosen[TN_MAX_RANK];
    if (!tn_build_ranked(g, "tn_expand_dims", 1, &x) || !count)
        return count ? TN_NULL_VALUE : x;
    int rank = tn_build_dims(g, x, old);
    if (count > (uint32_t)(TN_MAX_RANK - rank))
        return tn_build_fail(g, TN_ERR_LIMIT, "tn_expand_dims: rank above %d", TN_MAX_RANK);
    int result = rank + (int)count, n = tn_build_axes(g, "tn_expand_dims", count, axes, result, chosen);
    if (n < 0)
        return TN_NULL_VALUE;
    for (int i = 0, next = 0, from = 0; i < result; i++) {
        bool added = next < n && chosen[next] == i;
        next += added;
        dims[i] = added ? tn_dim_const(g, 1) : old[from++];
    }
    return tn_reshape_dims(g, x, result, dims);
}

tn_value tn_squeeze(tn_graph *g, tn_value x, uint32_t count, const int *axes) {
    tn_dim old[TN_MAX_RANK], dims[TN_MAX_RANK], fit[TN_MAX_RANK] = {{0}};
    int64_t chosen[TN_MAX_RANK];
    if (!tn_build_ranked(g, "tn_squeeze", 1, &x) || !count)
        return count ? TN_NULL_VALUE : x;
    int rank = tn_build_dims(g, x, old), n = tn_build_axes(g, "tn_squeeze", count, axes, rank, chosen), kept = 0;
    if (n < 0)
        return TN_NULL_VALUE;
    for (int i = 0, next = 0; i < rank; i++) {
        fit[i] = old[i];
        if (next == n || chosen[next] != i) {
            dims[kept++] = old[i];
            continue;
        }
        next++;
        fit[i] = tn_dim_const(g, 1);
        if (tn_dim_never_equal(g, old[i], fit[i])) {
            char text[200];
            return tn_build_fail(g, TN_ERR_USAGE, "tn_squeeze: dimension %d of %s is not 1", i,
                                 tn_value_describe(g, x, text, sizeof text));
        }
    }
    return tn_reshape_dims(g, tn_fit(g, x, fit), kept, dims);
}

tn_value tn_flatten(tn_graph *g, tn_value x, int axis) {
    tn_dim dims[TN_MAX_RANK];
    if (!tn_build_ranked(g, "tn_flatten", 1, &x))
        return TN_NULL_VALUE;
    int rank = tn_build_dims(g, x, dims);
    if (axis < -rank || axis > rank)
        return tn_build_fail(g, TN_ERR_USAGE, "tn_flatten: axis %d of a value of rank %d", axis, rank);
    axis = axis < 0 ? axis + rank : axis;
    tn_dim sides[2] = {tn_build_product(g, axis, dims), tn_build_product(g, rank - axis, dims + axis)};
    return sides[0].id && sides[1].id ? tn_reshape_dims(g, x, 2, sides) : TN_NULL_VALUE;
}

tn_value tn_shape_of(tn_graph *g, tn_value x) {
    return tn_build_ready(g, "tn_shape_of", 1, &x) ? tn_graph_add(g, "shape_of", 1, &x, 0, NULL) : TN_NULL_VALUE;
}

tn_value tn_iota(tn_graph *g, tn_dtype dtype, int rank, const tn_dim *dims, int axis) {
    if (!tn_build_ready(g, "tn_iota", 0, NULL))
        return TN_NULL_VALUE;
    if (rank < 0 || rank > TN_MAX_RANK || (rank && !dims))
        return tn_build_fail(g, TN_ERR_USAGE, "tn_iota: a shape of rank %d", rank);
    axis = tn_build_axis(g, "tn_iota", axis, rank);
    if (axis < 0)
        return TN_NULL_VALUE;
    const tn_attr attrs[] = {TN_A_DIMS("shape", rank, dims), TN_A_INT("axis", axis), TN_A_DTYPE("dtype", dtype)};
    return tn_graph_add(g, "iota", 0, NULL, 3, attrs);
}
