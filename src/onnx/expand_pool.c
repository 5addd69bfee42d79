/* Pooling: MaxPool, AveragePool, LpPool and the global ones. */
#include <inttypes.h>
#include <math.h>

#include "onnx/expand_common.h"

/* Windows over all axes of [N, C, spatial...]. The rank. */
static int spread(tn_expand *x, const tn_windows *w, int64_t *window, int64_t *stride, int64_t *dilation, tn_dim *lo,
                  tn_dim *hi) {
    window[0] = window[1] = stride[0] = stride[1] = dilation[0] = dilation[1] = 1;
    lo[0] = lo[1] = hi[0] = hi[1] = tn_size(x, 0);
    for (int i = 0; i < w->spatial; i++) {
        window[2 + i] = w->kernel[i];
        stride[2 + i] = w->stride[i];
        dilation[2 + i] = w->dilation[i];
        lo[2 + i] = w->lo[i];
        hi[2 + i] = tn_dim_add(x->graph, w->hi[i], w->more[i]);
    }
    return w->spatial + 2;
}

/* A window reduction of v [N, C, spatial...]. */
static tn_value windowed(tn_expand *x, const char *kind, tn_value v, const tn_windows *w) {
    int64_t window[TN_MAX_RANK], stride[TN_MAX_RANK], dilation[TN_MAX_RANK];
    tn_dim lo[TN_MAX_RANK], hi[TN_MAX_RANK];
    (void)spread(x, w, window, stride, dilation, lo, hi);
    return tn_window(x->graph, kind, v, window, stride, dilation, lo, hi);
}

/* --- maximum ------------------------------------------------------------------------------------------------------------------------ */

/* Where in the flattened input the maximum of each window stands; storage_order 1: the first spatial axis runs fastest. */
static tn_value max_indices(tn_expand *x, const tn_windows *w) {
    int64_t window[TN_MAX_RANK], stride[TN_MAX_RANK], dilation[TN_MAX_RANK];
    tn_dim lo[TN_MAX_RANK], hi[TN_MAX_RANK];
    int rank = spread(x, w, window, stride, dilation, lo, hi);
    bool columns = tn_expand_int(x, "storage_order") != 0;
    const tn_attr attrs[] = {TN_A_INTS("window", rank, window),
                             TN_A_INTS("stride", rank, stride),
                             TN_A_INTS("dilation", rank, dilation),
                             TN_A_DIMS("lo", rank, lo),
                             TN_A_DIMS("hi", rank, hi),
                             TN_A_STRING("order", columns ? "column" : "row", columns ? 6 : 3)};
    tn_value in = tn_expand_input(x, 0);
    return tn_graph_add(x->graph, "window_arg_max", 1, &in, 6, attrs);
}

static tn_status expand_max_pool(tn_expand *x) {
    tn_windows w;
    TN_TRY(tn_expand_windows(x, &w, NULL, true, tn_expand_int(x, "ceil_mode") != 0));
    tn_value y = windowed(x, "max", tn_expand_input(x, 0), &w);
    TN_BUILT(x, y);
    if (tn_expand_wants(x, 1))
        TN_TRY(tn_expand_set(x, 1, max_indices(x, &w)));
    return tn_expand_set(x, 0, y);
}

/* --- mean --------------------------------------------------------------------------------------------------------------------------- */

/* Windows of w along spatial axis i, `windows` of them, over cells that begin `lo` after the first window: how many
   cells each meets, as a vector of `dtype`. From where windows begin, not by walking them: they may be of any size. */
static tn_value cells_met(tn_expand *x, const tn_windows *w, int i, tn_dim windows, tn_dim lo, tn_dim cells,
                          tn_dtype dtype) {
    tn_graph *g = x->graph;
    tn_value zero = tn_scalar(g, TN_I64, 0), step = tn_expand_size_value(x, tn_size(x, w->dilation[i]), TN_I64);
    tn_value at = tn_sub(
        g, tn_mul(g, tn_iota(g, TN_I64, 1, &windows, 0), tn_expand_size_value(x, tn_size(x, w->stride[i]), TN_I64)),
        tn_expand_size_value(x, lo, TN_I64));
    /* elements of the window before the first cell, and up to the last: numerators that keep a division towards 0 right */
    tn_value before = tn_sub(g, tn_expand_size_value(x, tn_size(x, w->dilation[i] - 1), TN_I64), at);
    tn_value until =
        tn_sub(g, tn_expand_size_value(x, tn_dim_add(g, cells, tn_size(x, w->dilation[i] - 1)), TN_I64), at);
    if (w->dilation[i] != 1) {
        before = tn_div(g, before, step);
        until = tn_div(g, until, step);
    }
    until = tn_min(g, until, tn_expand_size_value(x, tn_size(x, w->kernel[i]), TN_I64));
    return tn_cast(g, tn_max(g, tn_sub(g, until, tn_max(g, before, zero)), zero), dtype);
}

/* How many elements each window of `sum` counts: a scalar, or the product over the padded axes of a vector along each. The
   padding that completes the last window of ceil_mode never counts. */
static tn_value window_count(tn_expand *x, const tn_windows *w, tn_value sum, bool with_padding, tn_dtype dtype) {
    tn_graph *g = x->graph;
    double whole = 1;
    tn_value count = {0};
    for (int i = 0; i < w->spatial; i++) {
        if (!w->padded[i]) {
            whole *= (double)w->kernel[i];
            continue;
        }
        tn_dim lo = w->lo[i], cells = w->in[i];
        if (with_padding) {
            tn_dim fewer = tn_dim_min(g, w->more[i], tn_size(x, 0));
            cells = tn_dim_add(g, tn_dim_add(g, tn_dim_add(g, cells, lo), w->hi[i]), fewer);
            lo = tn_size(x, 0);
        }
        tn_value n = cells_met(x, w, i, tn_value_dim(g, sum, 2 + i), lo, cells, dtype);
        n = tn_expand_along(x, n, w->spatial + 2, 2 + i);
        count = count.id ? tn_mul(g, count, n) : n;
    }
    tn_value full = tn_scalar(g, dtype, whole);
    return !count.id ? full : whole > 1 ? tn_mul(g, count, full) : count;
}

static tn_status expand_average_pool(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_windows w;
    tn_dtype dtype = tn_expand_dtype(x, 0), wide = tn_wide(dtype);
    TN_TRY(tn_expand_windows(x, &w, NULL, true, tn_expand_int(x, "ceil_mode") != 0));
    tn_value sum = windowed(x, "sum", tn_cast(g, tn_expand_input(x, 0), wide), &w);
    TN_BUILT(x, sum);
    tn_value count = window_count(x, &w, sum, tn_expand_int(x, "count_include_pad") != 0, wide);
    return tn_expand_set(x, 0, tn_cast(g, tn_div(g, sum, count), dtype));
}

/* --- norm ----------------------------------------------------------------------------------------------------------------------------- */

/* |v|^p and the p-th root. */
static tn_value power(tn_expand *x, tn_value v, int64_t p) {
    tn_graph *g = x->graph;
    if (p == 2)
        return tn_mul(g, v, v);
    v = tn_abs(g, v);
    return p == 1 ? v : tn_pow(g, v, tn_scalar_like(g, v, (double)p));
}
static tn_value root(tn_expand *x, tn_value v, int64_t p) {
    tn_graph *g = x->graph;
    return p == 1 ? v : p == 2 ? tn_sqrt(g, v) : tn_pow(g, v, tn_scalar_like(g, v, 1.0 / (double)p));
}

static tn_status norm_order(tn_expand *x, int64_t *p) {
    *p = tn_expand_int(x, "p");
    TN_RULE(x, *p >= 1, "attribute 'p' is %" PRId64 ": it must be at least 1", *p);
    return TN_OK;
}

static tn_status expand_lp_pool(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_windows w;
    int64_t p;
    tn_dtype dtype = tn_expand_dtype(x, 0);
    TN_TRY(norm_order(x, &p));
    TN_TRY(tn_expand_windows(x, &w, NULL, true, tn_expand_int(x, "ceil_mode") != 0));
    tn_value v = power(x, tn_cast(g, tn_expand_input(x, 0), tn_wide(dtype)), p);
    return tn_expand_set(x, 0, tn_cast(g, root(x, windowed(x, "sum", v, &w), p), dtype));
}

/* --- over the whole image --------------------------------------------------------------------------------------------------------------- */

/* The spatial axes, all but the first two. */
static tn_status spatial_axes(tn_expand *x, int axes[TN_MAX_RANK], int *count) {
    int rank = tn_expand_rank(x, 0);
    TN_RULE(x, rank >= 2, "the input has rank %d: at least 2 are needed (batch, channels)", rank);
    *count = rank - 2;
    for (int i = 0; i < *count; i++)
        axes[i] = 2 + i;
    return TN_OK;
}

static tn_status expand_global_average(tn_expand *x) {
    int axes[TN_MAX_RANK], n;
    tn_dtype dtype = tn_expand_dtype(x, 0);
    TN_TRY(spatial_axes(x, axes, &n));
    tn_value v = tn_cast(x->graph, tn_expand_input(x, 0), tn_wide(dtype));
    return tn_expand_set(x, 0, tn_cast(x->graph, tn_expand_mean(x, v, n, axes), dtype));
}

static tn_status expand_global_max(tn_expand *x) {
    int axes[TN_MAX_RANK], n;
    TN_TRY(spatial_axes(x, axes, &n));
    tn_value v = tn_expand_input(x, 0);
    return tn_expand_set(x, 0, n ? tn_reduce_max(x->graph, v, (uint32_t)n, axes, true) : v);
}

static tn_status expand_global_lp(tn_expand *x) {
    tn_graph *g = x->graph;
    int axes[TN_MAX_RANK], n;
    int64_t p;
    tn_dtype dtype = tn_expand_dtype(x, 0);
    TN_TRY(norm_order(x, &p));
    TN_TRY(spatial_axes(x, axes, &n));
    tn_value v = power(x, tn_cast(g, tn_expand_input(x, 0), tn_wide(dtype)), p);
    v = n ? tn_reduce_sum(g, v, (uint32_t)n, axes, true) : v;
    return tn_expand_set(x, 0, tn_cast(g, root(x, v, p), dtype));
}

/* --- rows ------------------------------------------------------------------------------------------------------------------------------------ */

#define WINDOW_SPECS                                                                                          \
    TN_SPEC_STRING("auto_pad", "NOTSET", "NOTSET|SAME_UPPER|SAME_LOWER|VALID"), TN_SPEC_BOOL("ceil_mode", 0), \
        TN_SPEC_INTS("dilations"), {.name = "kernel_shape", .kind = TN_ATTR_INTS, .required = true},          \
        TN_SPEC_INTS("pads"), TN_SPEC_INTS("strides")
static const tn_attr_spec max_attrs[] = {WINDOW_SPECS, TN_SPEC_BOOL("storage_order", 0), {0}};
static const tn_attr_spec average_attrs[] = {WINDOW_SPECS, TN_SPEC_BOOL("count_include_pad", 0), {0}};
static const tn_attr_spec lp_attrs[] = {WINDOW_SPECS, TN_SPEC_INT("p", 2), {0}};
static const tn_attr_spec p_attrs[] = {TN_SPEC_INT("p", 2), {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX("MaxPool", .since = 1, .inputs = {1, 1}, .outputs = {1, 2}, .attrs = max_attrs, .expand = expand_max_pool),
    TN_ONNX("AveragePool", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = average_attrs,
            .expand = expand_average_pool),
    TN_ONNX("LpPool", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = lp_attrs, .expand = expand_lp_pool),
    TN_ONNX("GlobalAveragePool", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .expand = expand_global_average),
    TN_ONNX("GlobalMaxPool", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .expand = expand_global_max),
    TN_ONNX("GlobalLpPool", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = p_attrs,
            .expand = expand_global_lp),
};

const tn_onnx_family tn_onnx_family_pool = {rows, sizeof rows / sizeof *rows};
