/* Convolutions and matrix products: Conv, ConvTranspose, MatMul, Gemm. */
#include <inttypes.h>
#include <math.h>

#include "onnx/expand_common.h"

/* --- convolution ---------------------------------------------------------------------------------------------------------------- */

/* bias [M] is added to y [N, M, spatial...]; absent: y. */
static tn_status add_bias(tn_expand *x, tn_value y, tn_dim channels) {
    if (!tn_expand_has(x, 2))
        return tn_expand_set(x, 0, y);
    TN_RULE(x, tn_expand_rank(x, 2) == 1, "the bias has rank %d: it must be a list", tn_expand_rank(x, 2));
    TN_RULE(x, !tn_dim_never_equal(x->graph, tn_expand_dim(x, 2, 0), channels),
            "the bias must have one entry for each output channel");
    tn_value bias = tn_expand_listed(x, tn_expand_input(x, 2), channels);
    return tn_expand_set(x, 0, tn_add(x->graph, y, tn_expand_along(x, bias, tn_expand_rank(x, 0), 1)));
}

/* Ranks, and `group`, which must divide axis `axis` of the weights where that is known. */
static tn_status check_weights(tn_expand *x, int axis, int64_t *groups) {
    int64_t n;
    int rank = tn_expand_rank(x, 0);
    TN_RULE(x, tn_expand_rank(x, 1) == rank, "the weights have rank %d, the input rank %d: they must be equal",
            tn_expand_rank(x, 1), rank);
    TN_RULE(x, rank >= 3, "the input has rank %d: at least 3 are needed (batch, channels, spatial axes)", rank);
    *groups = tn_expand_int(x, "group");
    TN_RULE(x, *groups >= 1 && *groups <= INT32_MAX, "attribute 'group' is %" PRId64 ": it must be at least 1",
            *groups);
    if (tn_dim_is_const(x->graph, tn_expand_dim(x, 1, axis), &n))
        TN_RULE(x, n % *groups == 0, "axis %d of the weights has %" PRId64 " entries: no multiple of 'group', %" PRId64,
                axis, n, *groups);
    return tn_expand_hold_multiple(x, 1, axis, *groups);
}

static tn_status expand_conv(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_windows w;
    int64_t groups;
    TN_TRY(check_weights(x, 0, &groups));
    int rank = tn_expand_rank(x, 1);
    tn_dim *weights = tn_expand_value_dims(x, tn_expand_input(x, 1));
    if (!weights)
        return tn_error_status();
    tn_dim channels = tn_dim_mul(g, weights[1], tn_size(x, groups));
    TN_SIZED(x, channels);
    TN_RULE_SIZE(x, 0, 1, channels, "the input's channels are not 'group' times axis 1 of the weights");
    TN_TRY(tn_expand_windows(x, &w, weights + 2, true, false));
    const int64_t *kernel; /* checked by now: what is not known yet is checked when it runs */
    if (tn_expand_ints(x, "kernel_shape", &kernel))
        for (int i = 0; i < w.spatial; i++)
            weights[2 + i] = tn_size(x, kernel[i]);
    tn_value filters = tn_reshape_dims(g, tn_expand_input(x, 1), rank, weights);
    tn_value y = tn_conv(g, tn_expand_input(x, 0), filters, w.stride, w.dilation, NULL, w.lo, w.hi, groups);
    return add_bias(x, y, weights[0]);
}

/* --- transposed convolution: a convolution of the input spread by the strides with the kernel turned round --------------------------- */

/* [C, M/g, k...] as [M, C/g, k...], each kernel reversed along every spatial axis. */
static tn_status turned_weights(tn_expand *x, int64_t groups, const tn_dim *dims, int rank, tn_value *out) {
    tn_graph *g = x->graph;
    tn_dim split[TN_MAX_RANK + 1], start[TN_MAX_RANK], size[TN_MAX_RANK], joined[TN_MAX_RANK],
        group = tn_size(x, groups);
    int perm[TN_MAX_RANK + 1];
    int64_t step[TN_MAX_RANK];
    tn_dim part = tn_dim_floordiv(g, dims[0], group);
    split[0] = group;
    split[1] = part;
    for (int i = 1; i < rank; i++)
        split[i + 1] = dims[i];
    for (int i = 0; i <= rank; i++)
        perm[i] = i == 1 ? 2 : i == 2 ? 1 : i;
    joined[0] = tn_dim_mul(g, group, dims[1]);
    joined[1] = part;
    TN_SIZED(x, joined[0]);
    for (int i = 0; i < rank; i++) {
        joined[i] = i < 2 ? joined[i] : dims[i];
        size[i] = joined[i];
        step[i] = i < 2 ? 1 : -1;
        start[i] = i < 2 ? tn_size(x, 0) : tn_dim_sub(g, dims[i], tn_size(x, 1));
    }
    tn_value w = tn_expand_input(x, 1);
    if (groups == 1) {
        w = tn_transpose(g, w, (perm[0] = 1, perm[1] = 0, perm[2] = 2, perm));
    } else {
        w = tn_transpose(g, tn_reshape_dims(g, w, rank + 1, split), perm);
        w = tn_reshape_dims(g, w, rank, joined);
    }
    *out = tn_slice(g, w, start, size, step);
    return TN_OK;
}

static tn_status expand_conv_transpose(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_windows w;
    int64_t groups, extra[TN_MAX_RANK], want[TN_MAX_RANK], one[TN_MAX_RANK];
    TN_TRY(check_weights(x, 0, &groups));
    int rank = tn_expand_rank(x, 0), n = rank - 2;
    const tn_dim *weights = tn_expand_dims_copy(x, 1);
    if (!weights)
        return tn_error_status();
    TN_RULE_SIZE(x, 0, 1, weights[0], "the input's channels are not axis 0 of the weights");
    TN_TRY(tn_expand_windows(x, &w, weights + 2, true, false));
    TN_TRY(tn_expand_list(x, "output_padding", n, 0, 0, extra));
    for (int i = 0; i < n; i++)
        TN_RULE(x, extra[i] == 0 || extra[i] < w.stride[i] || extra[i] < w.dilation[i],
                "attribute 'output_padding' is %" PRId64 " on axis %d: it must be less than the stride or the dilation",
                extra[i], i);
    bool shaped = tn_expand_has_attr(x, "output_shape");
    const int64_t *list;
    uint32_t given = tn_expand_ints(x, "output_shape", &list);
    if (shaped) { /* batch and channels before the spatial sizes are tolerated */
        TN_RULE(x, given == (uint32_t)n || given == (uint32_t)rank,
                "attribute 'output_shape' has %u entries for %d spatial axes", (unsigned)given, n);
        for (int i = 0; i < n; i++) {
            want[i] = list[(int)given - n + i];
            TN_RULE(x, want[i] >= 0, "attribute 'output_shape' holds %" PRId64, want[i]);
        }
    }
    bool upper = tn_expand_string_is(x, "auto_pad", "SAME_UPPER"),
         same = upper || tn_expand_string_is(x, "auto_pad", "SAME_LOWER");
    tn_dim lo[TN_MAX_RANK], hi[TN_MAX_RANK], zero = tn_size(x, 0), start[TN_MAX_RANK], size[TN_MAX_RANK];
    bool cut = false;
    for (int i = 0; i < n; i++) {
        tn_dim spread = tn_dim_mul(g, tn_size(x, w.stride[i]), tn_dim_sub(g, w.in[i], tn_size(x, 1)));
        tn_dim full = tn_dim_add(g, tn_dim_add(g, spread, w.extent[i]), tn_size(x, extra[i]));
        if (shaped || same) {
            tn_dim out = shaped ? tn_size(x, want[i]) : tn_dim_mul(g, w.in[i], tn_size(x, w.stride[i]));
            tn_dim total = tn_dim_sub(g, full, out);
            tn_dim half = tn_dim_floordiv(g, total, tn_size(x, 2)), rest = tn_dim_sub(g, total, half);
            w.lo[i] = upper ? half : rest;
            w.hi[i] = upper ? rest : half;
        }
        /* Padding of the spread input; where it comes out negative, the result is cut instead. */
        tn_dim reach = tn_dim_sub(g, w.extent[i], tn_size(x, 1)), low = tn_dim_sub(g, reach, w.lo[i]);
        tn_dim high = tn_dim_add(g, tn_dim_sub(g, reach, w.hi[i]), tn_size(x, extra[i]));
        TN_SIZED(x, low);
        TN_SIZED(x, high);
        lo[i] = tn_dim_max(g, low, zero);
        hi[i] = tn_dim_max(g, high, zero);
        start[2 + i] = tn_dim_sub(g, lo[i], low);
        tn_dim end = tn_dim_sub(g, hi[i], high);
        tn_dim out = tn_dim_sub(g, tn_dim_sub(g, full, w.lo[i]), w.hi[i]);
        TN_SIZED(x, out);
        TN_RULE(x, !tn_size_at_most(x, out, -1), "the output would have a negative size on spatial axis %d", i);
        size[2 + i] = out;
        cut = cut || !tn_size_is(x, start[2 + i], 0) || !tn_size_is(x, end, 0);
        one[i] = 1;
    }
    tn_value turned;
    TN_TRY(turned_weights(x, groups, weights, rank, &turned));
    tn_value y = tn_conv(g, tn_expand_input(x, 0), turned, one, w.dilation, w.stride, lo, hi, groups);
    tn_dim channels = tn_dim_mul(g, weights[1], tn_size(x, groups));
    if (cut) {
        start[0] = start[1] = zero;
        size[0] = tn_expand_dim(x, 0, 0);
        size[1] = channels;
        y = tn_slice(g, y, start, size, NULL);
    }
    return add_bias(x, y, channels);
}

/* --- matrix products -------------------------------------------------------------------------------------------------------------- */

/* Contracted sizes must agree where both are known. */
static tn_status check_inner(tn_expand *x, tn_dim a, tn_dim b) {
    int64_t m = 0, n = 0;
    if (!tn_dim_never_equal(x->graph, a, b))
        return TN_OK;
    if (tn_dim_is_const(x->graph, a, &m) && tn_dim_is_const(x->graph, b, &n))
        return tn_expand_fail(x, "the inner sizes of the product differ: %" PRId64 " and %" PRId64, m, n);
    return tn_expand_fail(x, "the inner sizes of the product differ");
}

static tn_status expand_matmul(tn_expand *x) {
    int a = tn_expand_rank(x, 0), b = tn_expand_rank(x, 1);
    TN_RULE(x, a >= 1 && b >= 1, "an operand is a scalar");
    TN_TRY(check_inner(x, tn_expand_dim(x, 0, -1), tn_expand_dim(x, 1, b == 1 ? 0 : -2)));
    return tn_expand_set(x, 0, tn_matmul(x->graph, tn_expand_input(x, 0), tn_expand_input(x, 1)));
}

/* value * factor in its own dtype; whole numbers by a fraction go through f64. */
static tn_value scaled(tn_expand *x, tn_value value, double factor) {
    tn_graph *g = x->graph;
    if (factor == 1.0 || !value.id) /* NOLINT: exactly one */
        return value;
    tn_dtype dtype = tn_value_dtype(g, value);
    tn_dtype in = tn_is_float(dtype) || (factor >= 0 && factor <= 127 && factor == floor(factor)) ? dtype : TN_F64;
    return tn_cast(g, tn_mul(g, tn_cast(g, value, in), tn_scalar(g, in, factor)), dtype);
}

/* alpha * A' * B' + beta * C */
static tn_status expand_gemm(tn_expand *x) {
    tn_graph *g = x->graph;
    TN_RULE(x, tn_expand_rank(x, 0) == 2 && tn_expand_rank(x, 1) == 2,
            "A has rank %d and B rank %d: both must be matrices", tn_expand_rank(x, 0), tn_expand_rank(x, 1));
    int64_t a = tn_expand_int(x, "transA") ? 0 : 1, b = tn_expand_int(x, "transB") ? 1 : 0;
    TN_TRY(check_inner(x, tn_expand_dim(x, 0, (int)a), tn_expand_dim(x, 1, (int)b)));
    const tn_dim out[2] = {tn_expand_dim(x, 0, a ? 0 : 1), tn_expand_dim(x, 1, b ? 0 : 1)};
    tn_value y = tn_dot(g, tn_expand_input(x, 0), tn_expand_input(x, 1), 0, NULL, NULL, 1, &a, &b);
    TN_BUILT(x, y);
    y = scaled(x, y, tn_expand_float(x, "alpha"));
    double beta = tn_expand_float(x, "beta");
    if (tn_expand_has(x, 2)) {
        int rank = tn_expand_rank(x, 2);
        TN_RULE(x, rank <= 2, "C has rank %d: at most 2 are possible", rank);
        for (int i = 0; i < rank; i++) {
            tn_dim d = tn_expand_dim(x, 2, i);
            TN_RULE(x, !tn_dim_never_equal(g, d, out[2 - rank + i]) || !tn_dim_never_equal(g, d, tn_size(x, 1)),
                    "C cannot be broadcast to the product: axis %d differs", i);
            bool known = tn_dim_equal(g, d, out[2 - rank + i]) || tn_dim_equal(g, d, tn_size(x, 1));
            if (beta == 0 && !known && !x->final) /* nothing else would hold to it */
                return tn_expand_later(x, "needs the sizes of its inputs");
        }
        tn_value c = scaled(x, tn_expand_input(x, 2), beta);
        if (beta < 0 || beta > 0 || isnan(beta)) /* times 0 it is left out, whatever it holds */
            y = tn_add(g, y, tn_broadcast(g, c, 2, out));
    }
    return tn_expand_set(x, 0, y);
}

/* --- rows --------------------------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec conv_attrs[] = {TN_SPEC_STRING("auto_pad", "NOTSET", "NOTSET|SAME_UPPER|SAME_LOWER|VALID"),
                                          TN_SPEC_INTS("dilations"),
                                          TN_SPEC_INT("group", 1),
                                          TN_SPEC_INTS("kernel_shape"),
                                          TN_SPEC_INTS("pads"),
                                          TN_SPEC_INTS("strides"),
                                          {0}};
static const tn_attr_spec transpose_attrs[] = {
    TN_SPEC_STRING("auto_pad", "NOTSET", "NOTSET|SAME_UPPER|SAME_LOWER|VALID"),
    TN_SPEC_INTS("dilations"),
    TN_SPEC_INT("group", 1),
    TN_SPEC_INTS("kernel_shape"),
    TN_SPEC_INTS("output_padding"),
    TN_SPEC_INTS("output_shape"),
    TN_SPEC_INTS("pads"),
    TN_SPEC_INTS("strides"),
    {0}};
static const tn_attr_spec gemm_attrs[] = {
    TN_SPEC_FLOAT("alpha", 1), TN_SPEC_FLOAT("beta", 1), TN_SPEC_BOOL("transA", 0), TN_SPEC_BOOL("transB", 0), {0}};
static const tn_onnx_op rows[] = {
    TN_ONNX("Conv", .since = 1, .inputs = {2, 3}, .outputs = {1, 1}, .attrs = conv_attrs, .expand = expand_conv),
    TN_ONNX("ConvTranspose", .since = 1, .inputs = {2, 3}, .outputs = {1, 1}, .attrs = transpose_attrs,
            .expand = expand_conv_transpose),
    TN_ONNX("MatMul", .since = 1, .inputs = {2, 2}, .outputs = {1, 1}, .expand = expand_matmul),
    TN_ONNX("Gemm", .since = 1, .inputs = {2, 3}, .outputs = {1, 1}, .attrs = gemm_attrs, .expand = expand_gemm),
};

const tn_onnx_family tn_onnx_family_conv = {rows, sizeof rows / sizeof *rows};
