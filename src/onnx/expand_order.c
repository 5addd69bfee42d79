/* Operators that search, order, count or scatter: ArgMax, ArgMin, TopK, CumSum, CumProd, NonZero, Compress, Unique, Scatter,
   ScatterElements, ScatterND, MaxUnpool, NonMaxSuppression. Most are one primitive. */
#include <inttypes.h>

#include "onnx/expand_common.h"
#include "onnx/host_ops.h"

/* --- positions of extremes ---------------------------------------------------------------------------------------------------------- */

static tn_status expand_arg(tn_expand *x, const char *op) {
    int axis;
    TN_TRY(tn_expand_axis(x, tn_expand_int(x, "axis"), tn_expand_rank(x, 0), &axis));
    const tn_attr attrs[] = {TN_A_INT("axis", axis), TN_A_INT("keepdims", tn_expand_int(x, "keepdims") != 0),
                             TN_A_INT("select_last", tn_expand_int(x, "select_last_index") != 0)};
    tn_value in = tn_expand_input(x, 0);
    return tn_expand_set(x, 0, tn_graph_add(x->graph, op, 1, &in, 3, attrs));
}

static tn_status expand_arg_max(tn_expand *x) {
    return expand_arg(x, "argmax");
}
static tn_status expand_arg_min(tn_expand *x) {
    return expand_arg(x, "argmin");
}

static tn_status expand_top_k(tn_expand *x) {
    tn_graph *g = x->graph;
    int axis;
    tn_dim k;
    int64_t want, have;
    tn_value in = tn_expand_input(x, 0), out[2];
    TN_RULE(x, tn_expand_rank(x, 0) >= 1, "the input is a scalar");
    TN_TRY(tn_expand_axis(x, tn_expand_int(x, "axis"), tn_expand_rank(x, 0), &axis));
    TN_RULE(x, tn_is_int(tn_expand_dtype(x, 1)), "'K' is %s: it must be an integer",
            tn_dtype_name(tn_expand_dtype(x, 1)));
    TN_RULE(x, tn_expand_rank(x, 1) != 1 || !tn_dim_never_equal(g, tn_expand_dim(x, 1, 0), tn_size(x, 1)),
            "'K' must be one number");
    if (tn_expand_contents_dims(x, 1, &k, 1) != 1)
        return tn_expand_later(x, "needs the value of 'K'");
    TN_RULE(x, !tn_size_at_most(x, k, -1), "'K' is negative");
    if (tn_dim_is_const(g, k, &want))
        TN_RULE(x, want <= (int64_t)1 << 40, "'K' is %" PRId64 ", which is too large", want);
    if (tn_dim_is_const(g, k, &want) && tn_dim_is_const(g, tn_expand_dim(x, 0, axis), &have))
        TN_RULE(x, want <= have, "'K' is %" PRId64 ", but the axis has %" PRId64 " elements", want, have);
    const tn_attr attrs[] = {TN_A_DIMS("k", 1, &k), TN_A_INT("axis", axis),
                             TN_A_INT("largest", tn_expand_int(x, "largest") != 0)};
    TN_TRY(tn_expand_many(x, "top_k", 1, &in, 3, attrs, 2, out));
    TN_TRY(tn_expand_set(x, 1, out[1]));
    return tn_expand_set(x, 0, out[0]);
}

/* --- running results ------------------------------------------------------------------------------------------------------------------ */

static tn_status expand_running(tn_expand *x, const char *op) {
    int64_t given;
    int axis;
    tn_value in = tn_expand_input(x, 0);
    TN_RULE(x, tn_expand_rank(x, 0) >= 1, "the input is a scalar");
    TN_RULE(x, tn_is_int(tn_expand_dtype(x, 1)), "the axis is %s: it must be an integer",
            tn_dtype_name(tn_expand_dtype(x, 1)));
    TN_TRY(tn_expand_single(x, 1, "axis"));
    if (tn_expand_contents_i64(x, 1, &given, 1) != 1)
        return tn_expand_later(x, "needs the axis");
    TN_TRY(tn_expand_axis(x, given, tn_expand_rank(x, 0), &axis));
    const tn_attr attrs[] = {TN_A_INT("axis", axis), TN_A_INT("exclusive", tn_expand_int(x, "exclusive") != 0),
                             TN_A_INT("reverse", tn_expand_int(x, "reverse") != 0)};
    return tn_expand_set(x, 0, tn_graph_add(x->graph, op, 1, &in, 3, attrs));
}

static tn_status expand_cum_sum(tn_expand *x) {
    return expand_running(x, "cumsum");
}
static tn_status expand_cum_prod(tn_expand *x) {
    return expand_running(x, "cumprod");
}

/* --- what the data choose --------------------------------------------------------------------------------------------------------------- */

static tn_status expand_non_zero(tn_expand *x) {
    tn_value in = tn_expand_input(x, 0);
    return tn_expand_set(x, 0, tn_graph_add(x->graph, "nonzero", 1, &in, 0, NULL));
}

/* The axis attribute if the node has one: its number is the count of attributes to pass. */
static tn_status optional_axis(tn_expand *x, tn_attr *attr, uint32_t *count) {
    int axis;
    *count = 0;
    if (!tn_expand_has_attr(x, "axis"))
        return TN_OK;
    TN_TRY(tn_expand_axis(x, tn_expand_int(x, "axis"), tn_expand_rank(x, 0), &axis));
    *attr = TN_A_INT("axis", axis);
    *count = 1;
    return TN_OK;
}

static tn_status expand_compress(tn_expand *x) {
    tn_attr attr;
    uint32_t n;
    tn_value in[2] = {tn_expand_input(x, 0), tn_expand_input(x, 1)};
    TN_RULE(x, tn_expand_rank(x, 1) == 1 && tn_expand_dtype(x, 1) == TN_BOOL, "the condition must be a list of bool");
    TN_TRY(optional_axis(x, &attr, &n));
    return tn_expand_set(x, 0, tn_graph_add(x->graph, "compress", 2, in, n, &attr));
}

static tn_status expand_unique(tn_expand *x) {
    tn_attr attrs[2];
    uint32_t n;
    tn_value in = tn_expand_input(x, 0), out[4];
    TN_TRY(optional_axis(x, attrs, &n));
    attrs[n] = TN_A_INT("sorted", tn_expand_int(x, "sorted") != 0);
    TN_TRY(tn_expand_many(x, "unique", 1, &in, n + 1, attrs, 4, out));
    for (uint32_t i = 0; i < 4; i++)
        TN_TRY(tn_expand_set(x, i, out[i]));
    return TN_OK;
}

/* --- scatter ------------------------------------------------------------------------------------------------------------------------------ */

static tn_attr reduction(tn_expand *x) {
    tn_string s = tn_expand_string(x, "reduction"); /* Scatter has none */
    if (!s.length)
        s = (tn_string){"none", 4};
    return TN_A_STRING("reduction", s.data, s.length);
}

static tn_status expand_scatter_elements(tn_expand *x) {
    int axis, rank = tn_expand_rank(x, 0);
    TN_TRY(tn_expand_axis(x, tn_expand_int(x, "axis"), rank, &axis));
    TN_RULE(x, tn_expand_rank(x, 1) == rank && tn_expand_rank(x, 2) == rank,
            "data, indices and updates have the ranks %d, %d, %d: they must have the same", rank, tn_expand_rank(x, 1),
            tn_expand_rank(x, 2));
    tn_value in[3] = {tn_expand_input(x, 0), tn_expand_input(x, 1), tn_expand_input(x, 2)};
    const tn_attr attrs[] = {TN_A_INT("axis", axis), reduction(x)};
    return tn_expand_set(x, 0, tn_graph_add(x->graph, "scatter_elements", 3, in, 2, attrs));
}

static tn_status expand_scatter_nd(tn_expand *x) {
    int64_t k;
    TN_RULE(x, tn_expand_rank(x, 0) >= 1 && tn_expand_rank(x, 1) >= 1, "data or indices are a scalar");
    if (!tn_dim_is_const(x->graph, tn_expand_dim(x, 1, -1), &k))
        return tn_expand_later(x, "needs the size of the last axis of the indices");
    TN_RULE(x, k <= tn_expand_rank(x, 0), "the indices have %" PRId64 " entries for data of rank %d", k,
            tn_expand_rank(x, 0));
    tn_value in[3] = {tn_expand_input(x, 0), tn_expand_input(x, 1), tn_expand_input(x, 2)};
    const tn_attr attrs[] = {reduction(x)};
    return tn_expand_set(x, 0, tn_graph_add(x->graph, "scatter_nd", 3, in, 1, attrs));
}

/* Each element of X goes to the place that its index names in an output of the pooled size, 0 elsewhere. An output_shape that is
   larger is filled up with 0. */
static tn_status expand_max_unpool(tn_expand *x) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0), n = rank - 2, count;
    int64_t kernel[TN_MAX_RANK], stride[TN_MAX_RANK], pads[2 * TN_MAX_RANK];
    tn_dim plain[TN_MAX_RANK], want[TN_MAX_RANK], lo[TN_MAX_RANK], hi[TN_MAX_RANK];
    TN_RULE(x, rank >= 3, "the input has rank %d: at least 3 are needed", rank);
    TN_RULE(x, tn_expand_rank(x, 1) == rank, "the indices have rank %d, the input %d: they must be alike",
            tn_expand_rank(x, 1), rank);
    for (int i = 0; i < rank; i++)
        TN_RULE_SIZE(x, 1, i, tn_expand_dim(x, 0, i), "the indices differ from the input on axis %d", i);
    TN_TRY(tn_expand_list(x, "kernel_shape", n, 1, 1, kernel));
    TN_TRY(tn_expand_list(x, "strides", n, 1, 1, stride));
    TN_TRY(tn_expand_list(x, "pads", 2 * n, 0, 0, pads));
    for (int i = 0; i < rank; i++) {
        tn_dim d = tn_expand_dim(x, 0, i);
        if (i >= 2) {
            tn_dim last = tn_dim_mul(g, tn_dim_sub(g, d, tn_size(x, 1)), tn_size(x, stride[i - 2]));
            d = tn_dim_add(g, last, tn_size(x, kernel[i - 2] - pads[i - 2] - pads[n + i - 2]));
        }
        TN_SIZED(x, d);
        TN_RULE(x, !tn_size_at_most(x, d, -1), "axis %d of the output would be negative", i);
        plain[i] = want[i] = d;
        lo[i] = tn_size(x, 0);
    }
    if (tn_expand_has(x, 2)) {
        TN_TRY(tn_expand_known_dims(x, 2, "needs the elements of 'output_shape'", want, &count));
        TN_RULE(x, count == rank, "'output_shape' has %d entries for a tensor of rank %d", count, rank);
    }
    tn_dim all = tn_size_product(x, rank, plain), from = tn_size_of_input(x, 0);
    TN_SIZED(x, all);
    TN_SIZED(x, from);
    tn_value in = tn_expand_input(x, 0), index = tn_cast(g, tn_expand_input(x, 1), TN_I64);
    tn_value last = tn_sub(g, tn_expand_size_value(x, all, TN_I64), tn_scalar(g, TN_I64, 1));
    index = tn_expand_within(x, index, tn_scalar(g, TN_I64, 0), last, "the indices' element ");
    tn_value parts[3] = {tn_expand_full(x, tn_expand_dtype(x, 0), 0, 1, &all), tn_reshape_dims(g, index, 1, &from),
                         tn_reshape_dims(g, in, 1, &from)};
    const tn_attr attrs[] = {TN_A_INT("axis", 0)};
    tn_value v = tn_reshape_dims(g, tn_graph_add(g, "scatter_elements", 3, parts, 1, attrs), rank, plain);
    bool larger = false;
    for (int i = 0; i < rank; i++) {
        hi[i] = tn_dim_sub(g, want[i], plain[i]);
        TN_SIZED(x, hi[i]);
        TN_RULE(x, !tn_size_at_most(x, hi[i], -1), "'output_shape' is smaller than the output on axis %d", i);
        larger = larger || !tn_size_is(x, hi[i], 0);
    }
    TN_BUILT(x, v);
    return tn_expand_set(x, 0, larger ? tn_pad(g, v, tn_scalar_like(g, v, 0), lo, hi, "constant") : v);
}

/* --- rows ----------------------------------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec arg_attrs[] = {
    TN_SPEC_INT("axis", 0), TN_SPEC_BOOL("keepdims", 1), TN_SPEC_BOOL("select_last_index", 0), {0}};
static const tn_attr_spec top_attrs[] = {
    TN_SPEC_INT("axis", -1), TN_SPEC_BOOL("largest", 1), TN_SPEC_BOOL("sorted", 1), {0}};
static const tn_attr_spec cum_attrs[] = {TN_SPEC_BOOL("exclusive", 0), TN_SPEC_BOOL("reverse", 0), {0}};
static const tn_attr_spec axis_attrs[] = {TN_SPEC_INT("axis", 0), {0}};
static const tn_attr_spec unique_attrs[] = {TN_SPEC_INT("axis", 0), TN_SPEC_BOOL("sorted", 1), {0}};
static const tn_attr_spec elements_attrs[] = {
    TN_SPEC_INT("axis", 0), TN_SPEC_STRING("reduction", "none", "none|add|mul|max|min"), {0}};
static const tn_attr_spec nd_attrs[] = {TN_SPEC_STRING("reduction", "none", "none|add|mul|max|min"), {0}};
static const tn_attr_spec unpool_attrs[] = {
    TN_SPEC_NEEDED("kernel_shape", TN_ATTR_INTS), TN_SPEC_INTS("pads"), TN_SPEC_INTS("strides"), {0}};
static const tn_attr_spec nms_attrs[] = {TN_SPEC_BOOL("center_point_box", 0), {0}};

#define OF(n, name, from, list, build) \
    TN_ONNX(name, .since = from, .inputs = {n, n}, .outputs = {1, 1}, .attrs = list, .expand = expand_##build)

static const tn_onnx_op rows[] = {
    OF(1, "ArgMax", 1, arg_attrs, arg_max),
    OF(1, "ArgMin", 1, arg_attrs, arg_min),
    TN_ONNX("TopK", .since = 1, .inputs = {2, 2}, .outputs = {2, 2}, .attrs = top_attrs, .expand = expand_top_k),
    OF(2, "CumSum", 11, cum_attrs, cum_sum),
    OF(2, "CumProd", 26, cum_attrs, cum_prod),
    OF(1, "NonZero", 9, NULL, non_zero),
    OF(2, "Compress", 9, axis_attrs, compress),
    TN_ONNX("Unique", .since = 11, .inputs = {1, 1}, .outputs = {1, 4}, .attrs = unique_attrs, .expand = expand_unique),
    TN_ONNX("Scatter", .since = 9, .inputs = {3, 3}, .outputs = {1, 1}, .attrs = axis_attrs,
            .expand = expand_scatter_elements),
    OF(3, "ScatterElements", 11, elements_attrs, scatter_elements),
    OF(3, "ScatterND", 11, nd_attrs, scatter_nd),
    TN_ONNX("MaxUnpool", .since = 9, .inputs = {2, 3}, .outputs = {1, 1}, .attrs = unpool_attrs,
            .expand = expand_max_unpool),
    TN_ONNX("NonMaxSuppression", .since = 10, .inputs = {2, 5}, .outputs = {1, 1}, .attrs = nms_attrs,
            .host = &tn_host_nms),
};

const tn_onnx_family tn_onnx_family_order = {rows, sizeof rows / sizeof *rows};
