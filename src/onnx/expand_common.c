/* What the expansions share beyond op.h. */
#include "onnx/expand_common.h"

#include <inttypes.h>
#include <stdio.h>

#include "ops/support.h"

tn_dim tn_size(tn_expand *x, int64_t value) {
    return tn_dim_const(x->graph, value);
}

bool tn_size_at_least(tn_expand *x, tn_dim dim, int64_t low) {
    int64_t a, b;
    tn_dim_bounds(x->graph, dim, &a, &b);
    return a >= low;
}

bool tn_size_at_most(tn_expand *x, tn_dim dim, int64_t high) {
    int64_t a, b;
    tn_dim_bounds(x->graph, dim, &a, &b);
    return b <= high;
}

bool tn_size_is(tn_expand *x, tn_dim dim, int64_t value) {
    int64_t v;
    return tn_dim_is_const(x->graph, dim, &v) && v == value;
}

tn_dim tn_size_product(tn_expand *x, int count, const tn_dim *dims) {
    tn_dim product = tn_size(x, 1);
    for (int i = 0; i < count && product.id; i++)
        product = tn_dim_mul(x->graph, product, dims[i]);
    return product;
}

tn_dim tn_size_of_input(tn_expand *x, uint32_t input) {
    tn_dim product = tn_size(x, 1);
    for (int i = 0, rank = tn_expand_rank(x, input); i < rank && product.id; i++)
        product = tn_dim_mul(x->graph, product, tn_expand_dim(x, input, i));
    return product;
}

void tn_expand_stick(tn_expand *x, tn_status status) {
    if (status != TN_OK && status != TN_EXPAND_LATER)
        tn_graph_stick(x->graph);
}

tn_dim *tn_expand_value_dims(tn_expand *x, tn_value value) {
    int rank = value.id ? tn_value_rank(x->graph, value) : -1;
    if (rank < 0) {
        if (tn_graph_check(x->graph) == TN_OK)
            tn_fail(TN_ERR_INTERNAL, "%s: the dimensions of a value that has none", x->row->name);
        tn_graph_stick(x->graph);
        return NULL;
    }
    tn_dim *dims = tn_expand_alloc(x, (size_t)rank + 1, sizeof *dims);
    if (!dims)
        tn_graph_stick(x->graph);
    else if (rank)
        memcpy(dims, tn_value_dims(x->graph, value), (size_t)rank * sizeof *dims);
    return dims;
}

tn_value tn_expand_sizes_value(tn_expand *x, int count, const tn_dim *dims) {
    tn_graph *g = x->graph;
    int64_t *known = tn_expand_alloc(x, (size_t)count + 1, sizeof *known);
    tn_value *parts = tn_expand_alloc(x, (size_t)count + 1, sizeof *parts);
    if (!known || !parts) {
        tn_graph_stick(g);
        return (tn_value){0};
    }
    int constant = 0;
    while (constant < count && tn_dim_is_const(g, dims[constant], &known[constant]))
        constant++;
    if (constant == count)
        return tn_constant_i64(g, 1, count, known);
    for (int i = 0; i < count; i++) {
        int64_t v;
        if (tn_dim_is_const(g, dims[i], &v))
            parts[i] = tn_constant_i64(g, 1, 1, &v);
        else /* a shape that has the size: no element is ever stored */
            parts[i] = tn_shape_of(g, tn_broadcast(g, tn_scalar(g, TN_BOOL, 0), 1, &dims[i]));
    }
    return count == 1 ? parts[0] : tn_concat(g, 0, (uint32_t)count, parts);
}

tn_value tn_expand_size_value(tn_expand *x, tn_dim dim, tn_dtype dtype) {
    int64_t v;
    if (tn_dim_is_const(x->graph, dim, &v))
        return tn_cast(x->graph, tn_constant_i64(x->graph, 0, 1, &v), dtype);
    return tn_cast(x->graph, tn_reshape_dims(x->graph, tn_expand_sizes_value(x, 1, &dim), 0, NULL), dtype);
}

tn_status tn_expand_hold_multiple(tn_expand *x, uint32_t input, int axis, int64_t by) {
    tn_dim n = tn_size(x, by), d = tn_expand_dim(x, input, axis);
    return tn_expand_hold(x, input, axis, tn_dim_mul(x->graph, tn_dim_floordiv(x->graph, d, n), n));
}

tn_status tn_expand_hold_least(tn_expand *x, uint32_t input, int axis, tn_dim least) {
    tn_dim d = tn_expand_dim(x, input, axis);
    TN_TRY(tn_expand_hold(x, input, axis, tn_dim_max(x->graph, d, least)));
    return tn_expand_hold(x, input, axis, d); /* which it then is: results keep its name */
}

tn_value tn_expand_one_row(tn_expand *x, tn_value rows) {
    tn_graph *g = x->graph;
    tn_dim lo[TN_MAX_RANK], hi[TN_MAX_RANK], zero = tn_size(x, 0);
    if (!rows.id)
        return rows;
    for (int i = 0; i < tn_value_rank(g, rows); i++)
        lo[i] = hi[i] = zero;
    hi[0] = tn_dim_max(g, tn_dim_sub(g, tn_size(x, 1), tn_value_dim(g, rows, 0)), zero);
    int64_t n;
    if (tn_dim_is_const(g, hi[0], &n) && n == 0)
        return rows;
    return tn_pad(g, rows, tn_expand_zero(x, tn_value_dtype(g, rows)), lo, hi, "constant");
}

tn_dim tn_expand_spread(tn_expand *x, tn_dim have, tn_dim to) {
    tn_graph *g = x->graph;
    tn_dim one = tn_size(x, 1), zero = tn_size(x, 0);
    int64_t n;
    if (!tn_dim_is_const(g, to, &n))
        return tn_dim_broadcast(g, have, to);
    /* the broadcast of a size with a number is that number, also where it has no value: what `have` has to be is computed instead */
    tn_dim want = tn_dim_min(g, have, one);
    if (n > 0)
        want = tn_dim_add(
            g, one,
            tn_dim_mul(g, tn_dim_min(g, tn_dim_max(g, tn_dim_sub(g, have, one), zero), one), tn_size(x, n - 1)));
    return tn_dim_max(g, tn_dim_add(g, to, tn_dim_sub(g, have, want)), zero);
}

tn_value tn_expand_sure(tn_expand *x, tn_value value, int axis, tn_dim want) {
    tn_dim *dims = tn_expand_value_dims(x, value), *fit = dims ? tn_expand_value_dims(x, value) : NULL;
    if (!fit)
        return (tn_value){0};
    fit[axis] = want;
    return tn_fit(x->graph, tn_fit(x->graph, value, fit), dims);
}

tn_status tn_expand_spread_to(tn_expand *x, uint32_t input, const char *name, int rank, const tn_dim *dims,
                              tn_value *out) {
    tn_graph *g = x->graph;
    int own = tn_expand_rank(x, input);
    TN_RULE(x, own <= rank, "'%s' has rank %d, more than the input, which has %d", name, own, rank);
    for (int i = 0; i < own; i++) {
        tn_dim have = tn_expand_dim(x, input, i), want = dims[rank - own + i];
        char a[64], b[64];
        TN_RULE(x, !tn_dim_never_equal(g, have, want) || !tn_dim_never_equal(g, have, tn_size(x, 1)),
                "axis %d of '%s' has size %s: it must be 1, or that of the input's axis %d, %s", i, name,
                tn_dim_describe(g, have, a, sizeof a), rank - own + i, tn_dim_describe(g, want, b, sizeof b));
    }
    *out = tn_broadcast(g, tn_expand_input(x, input), rank, dims);
    return TN_OK;
}

tn_status tn_expand_single(tn_expand *x, uint32_t input, const char *name) {
    int rank = tn_expand_rank(x, input);
    TN_RULE(x, rank == 0 || (rank == 1 && !tn_dim_never_equal(x->graph, tn_expand_dim(x, input, 0), tn_size(x, 1))),
            "'%s' must be a scalar", name);
    return TN_OK;
}

tn_value tn_expand_listed(tn_expand *x, tn_value list, tn_dim size) {
    return tn_reshape_dims(x->graph, list, 1, &size);
}

tn_value tn_expand_along(tn_expand *x, tn_value value, int rank, int axis) {
    tn_dim dims[TN_MAX_RANK];
    if (!value.id)
        return value;
    tn_dim n = tn_value_dim(x->graph, value, 0);
    for (int i = 0; i < rank; i++)
        dims[i] = i == axis ? n : tn_size(x, 1);
    return tn_reshape_dims(x->graph, value, rank, dims);
}

tn_value tn_expand_full(tn_expand *x, tn_dtype dtype, double number, int rank, const tn_dim *dims) {
    return tn_broadcast(x->graph, tn_scalar(x->graph, dtype, number), rank, dims);
}

tn_value tn_expand_zero(tn_expand *x, tn_dtype dtype) {
    if (dtype != TN_STRING && !tn_dtype_is_complex(dtype))
        return tn_cast(x->graph, tn_scalar(x->graph, TN_BOOL, 0), dtype);
    tn_tensor *t = tn_tensor_create_in(x->graph->heap, dtype, 0, NULL);
    if (!t) {
        tn_graph_stick(x->graph);
        return (tn_value){0};
    }
    tn_value v = tn_constant(x->graph, t);
    tn_tensor_destroy(t);
    return v;
}

tn_value tn_expand_count(tn_expand *x, tn_value value, int count, const int *axes, tn_dtype dtype) {
    tn_dim dims[TN_MAX_RANK];
    if (!value.id)
        return value;
    for (int i = 0; i < count; i++)
        dims[i] = tn_value_dim(x->graph, value, axes[i]);
    return tn_expand_size_value(x, tn_size_product(x, count, dims), dtype);
}

tn_value tn_expand_mean(tn_expand *x, tn_value value, int count, const int *axes) {
    if (!count)
        return value;
    tn_value n = tn_expand_count(x, value, count, axes, tn_value_dtype(x->graph, value));
    return tn_div(x->graph, tn_reduce_sum(x->graph, value, (uint32_t)count, axes, true), n);
}

tn_value tn_expand_sized_as(tn_graph *graph, tn_value value, tn_value like) {
    tn_dim dims[TN_MAX_RANK];
    int rank = value.id && like.id ? tn_value_rank(graph, like) : -1;
    if (rank < 0)
        return value;
    memcpy(dims, tn_value_dims(graph, like), (size_t)rank * sizeof *dims);
    return tn_value_rank(graph, value) == rank ? tn_fit(graph, value, dims) : tn_reshape_dims(graph, value, rank, dims);
}

tn_value tn_expand_slice(tn_expand *x, tn_value value, int axis, tn_dim start, tn_dim size, int64_t step) {
    tn_dim starts[TN_MAX_RANK], sizes[TN_MAX_RANK];
    int64_t steps[TN_MAX_RANK];
    if (!value.id)
        return value;
    int rank = tn_value_rank(x->graph, value);
    for (int i = 0; i < rank; i++) {
        starts[i] = i == axis ? start : tn_size(x, 0);
        sizes[i] = i == axis ? size : tn_value_dim(x->graph, value, i);
        steps[i] = i == axis ? step : 1;
    }
    return tn_slice(x->graph, value, starts, sizes, steps);
}

tn_status tn_expand_many(tn_expand *x, const char *op, uint32_t inputs, const tn_value *in, uint32_t attr_count,
                         const tn_attr *attrs, uint32_t outputs, tn_value *out) {
    tn_graph *g = x->graph;
    const tn_op *row = tn_op_find(g->ops, op, strlen(op));
    if (!row)
        return tn_fail(TN_ERR_INTERNAL, "there is no row '%s'", op);
    tn_node node = tn_graph_add_node(g, &(tn_node_desc){.op = row,
                                                        .input_count = inputs,
                                                        .inputs = in,
                                                        .output_count = outputs,
                                                        .attr_count = attr_count,
                                                        .attrs = attrs});
    for (uint32_t i = 0; i < outputs; i++)
        out[i] = node.id ? tn_node_output(g, node, i) : (tn_value){0};
    return node.id ? TN_OK : tn_graph_check(g);
}

tn_value tn_expand_within(tn_expand *x, tn_value value, tn_value low, tn_value high, const char *what) {
    tn_graph *g = x->graph;
    char text[160];
    snprintf(text, sizeof text, "%s{i} is {0}: it must lie in {1}..{2}", what);
    tn_value shown[3] = {value, low, high};
    tn_value holds = tn_and(g, tn_greater_equal(g, value, low), tn_less_equal(g, value, high));
    return tn_require(g, value, holds, text, 3, shown);
}

tn_value tn_expand_counted(tn_expand *x, uint32_t input, tn_value high, const char *what) {
    tn_graph *g = x->graph;
    tn_value v = tn_cast(g, tn_expand_input(x, input), TN_I64);
    return tn_expand_within(x, v, tn_scalar(g, TN_I64, 0), high, what);
}

/* --- small integer inputs --------------------------------------------------------------------------------------------------- */

/* What to answer when the elements are not known. */
static tn_status unknown(tn_expand *x, uint32_t input, const char *reason) {
    int64_t n;
    tn_dtype dtype = tn_expand_dtype(x, input);
    TN_RULE(x, tn_is_int(dtype), "input %u must hold integers, but is %s", (unsigned)input, tn_dtype_name(dtype));
    TN_RULE(x, tn_expand_rank(x, input) <= 1, "input %u must be a list, but has rank %d", (unsigned)input,
            tn_expand_rank(x, input));
    if (tn_expand_rank(x, input) == 1 && tn_dim_is_const(x->graph, tn_expand_dim(x, input, 0), &n))
        TN_RULE(x, n <= TN_MAX_RANK, "input %u has %" PRId64 " entries: more than any tensor has axes", (unsigned)input,
                n);
    return tn_expand_later(x, reason);
}

tn_status tn_expand_known_dims(tn_expand *x, uint32_t input, const char *reason, tn_dim values[TN_MAX_RANK],
                               int *count) {
    *count = tn_expand_contents_dims(x, input, values, TN_MAX_RANK);
    return *count < 0 ? unknown(x, input, reason) : TN_OK;
}

tn_status tn_expand_known_ints(tn_expand *x, uint32_t input, const char *reason, int64_t values[TN_MAX_RANK],
                               int *count) {
    *count = tn_expand_contents_i64(x, input, values, TN_MAX_RANK);
    return *count < 0 ? unknown(x, input, reason) : TN_OK;
}

tn_status tn_expand_axes_input(tn_expand *x, uint32_t input, int rank, int axes[TN_MAX_RANK], int *count) {
    int64_t list[TN_MAX_RANK];
    if (tn_expand_has(x, input)) {
        TN_TRY(tn_expand_known_ints(x, input, "needs the axes", list, count));
        return tn_expand_axes(x, (uint32_t)*count, list, rank, axes);
    }
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    *count = rank;
    return TN_OK;
}

/* --- windows -------------------------------------------------------------------------------------------------------------- */

tn_status tn_expand_list(tn_expand *x, const char *name, int count, int64_t low, int64_t absent, int64_t *values) {
    const int64_t *list;
    uint32_t n = tn_expand_ints(x, name, &list);
    for (int i = 0; i < count; i++)
        values[i] = absent;
    if (!n && !(count == 0 && tn_expand_has_attr(x, name)))
        return TN_OK;
    TN_RULE(x, n == (uint32_t)count, "attribute '%s' has %u entries, but there must be %d", name, (unsigned)n, count);
    for (int i = 0; i < count; i++) {
        TN_RULE(x, list[i] >= low, "attribute '%s' has the entry %" PRId64 ": each must be at least %" PRId64, name,
                list[i], low);
        TN_RULE(x, list[i] <= (int64_t)1 << 40, "attribute '%s' has the entry %" PRId64 ", which is too large", name,
                list[i]);
        values[i] = list[i];
    }
    return TN_OK;
}

/* Padding of one axis that auto_pad SAME_* asks for: ceil(in / stride) windows. */
static void pad_same(tn_expand *x, tn_windows *w, int i, bool upper) {
    tn_graph *g = x->graph;
    tn_dim one = tn_size(x, 1), stride = tn_size(x, w->stride[i]);
    tn_dim last = tn_dim_mul(g, tn_dim_sub(g, tn_dim_ceildiv(g, w->in[i], stride), one), stride);
    tn_dim total = tn_dim_max(g, tn_dim_sub(g, tn_dim_add(g, last, w->extent[i]), w->in[i]), tn_size(x, 0));
    tn_dim half = tn_dim_floordiv(g, total, tn_size(x, 2));
    tn_dim rest = tn_dim_sub(g, total, half);
    w->lo[i] = upper ? half : rest;
    w->hi[i] = upper ? rest : half;
}

/* ceil_mode: the windows that start inside the input or its left padding, the last one possibly reaching beyond. */
static void pad_ceil(tn_expand *x, tn_windows *w, int i) {
    tn_graph *g = x->graph;
    tn_dim one = tn_size(x, 1), stride = tn_size(x, w->stride[i]);
    tn_dim left = tn_dim_add(g, w->in[i], w->lo[i]), all = tn_dim_add(g, left, w->hi[i]);
    tn_dim count = tn_dim_add(g, tn_dim_ceildiv(g, tn_dim_sub(g, all, w->extent[i]), stride), one);
    count = tn_dim_min(g, count, tn_dim_ceildiv(g, left, stride));
    tn_dim reach = tn_dim_add(g, tn_dim_mul(g, tn_dim_sub(g, count, one), stride), w->extent[i]);
    /* hi + more >= 0 pads; where windows were dropped the padding shrinks */
    tn_dim pad = tn_dim_max(g, tn_dim_sub(g, reach, left), tn_size(x, 0));
    w->more[i] = tn_dim_sub(g, pad, w->hi[i]);
}

tn_status tn_expand_windows(tn_expand *x, tn_windows *w, const tn_dim *kernel, bool has_dilation, bool ceil_mode) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0), n = rank - 2;
    int64_t pads[2 * TN_MAX_RANK];
    TN_RULE(x, rank >= 3, "the input has rank %d: at least 3 are needed (batch, channels, spatial axes)", rank);
    w->spatial = n;
    TN_RULE(x, kernel || tn_expand_has_attr(x, "kernel_shape"), "attribute 'kernel_shape' is missing");
    TN_TRY(tn_expand_list(x, "kernel_shape", n, 1, 0, w->kernel));
    TN_TRY(tn_expand_list(x, "strides", n, 1, 1, w->stride));
    for (int i = 0; i < n; i++)
        w->dilation[i] = 1;
    if (has_dilation)
        TN_TRY(tn_expand_list(x, "dilations", n, 1, 1, w->dilation));
    bool same_upper = tn_expand_string_is(x, "auto_pad", "SAME_UPPER"),
         same_lower = tn_expand_string_is(x, "auto_pad", "SAME_LOWER");
    bool valid = tn_expand_string_is(x, "auto_pad", "VALID");
    TN_TRY(tn_expand_list(x, "pads", 2 * n, 0, 0, pads));
    for (int i = 0; i < n; i++) {
        w->in[i] = tn_expand_dim(x, 0, 2 + i);
        tn_dim k = tn_size(x, w->kernel[i]);
        TN_RULE(x, kernel || w->kernel[i], "attribute 'kernel_shape' must have an entry for each of %d spatial axes",
                n);
        if (kernel) {
            TN_RULE(x, !w->kernel[i] || !tn_dim_never_equal(g, k, kernel[i]),
                    "attribute 'kernel_shape' disagrees with the weights on axis %d", i);
            if (w->kernel[i] && !tn_dim_equal(g, k, kernel[i]) && !x->final)
                return tn_expand_later(x, "needs the sizes of the weights: 'kernel_shape' must be theirs");
            k = kernel[i];
            if (!tn_dim_is_const(g, k, &w->kernel[i]))
                w->kernel[i] = 0;
            TN_RULE(x, !tn_size_is(x, k, 0), "the kernel is empty on axis %d", i);
        }
        tn_dim reach = tn_dim_mul(g, tn_dim_sub(g, k, tn_size(x, 1)), tn_size(x, w->dilation[i]));
        w->extent[i] = tn_dim_add(g, reach, tn_size(x, 1));
        w->lo[i] = tn_size(x, same_upper || same_lower || valid ? 0 : pads[i]);
        w->hi[i] = tn_size(x, same_upper || same_lower || valid ? 0 : pads[n + i]);
        w->more[i] = tn_size(x, 0);
        TN_SIZED(x, w->extent[i]);
        if (same_upper || same_lower)
            pad_same(x, w, i, same_upper);
        else if (ceil_mode && !valid)
            pad_ceil(x, w, i);
        TN_SIZED(x, w->lo[i]);
        TN_SIZED(x, w->hi[i]);
        TN_SIZED(x, w->more[i]);
        w->padded[i] = !tn_size_is(x, w->lo[i], 0) || !tn_size_is(x, w->hi[i], 0) || !tn_size_is(x, w->more[i], 0);
    }
    return TN_OK;
}
