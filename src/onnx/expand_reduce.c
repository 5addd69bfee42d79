/* Reductions. One function: prepare each element, combine along the axes, finish. Sums of f16 and bf16 are computed in f32. */
#include <string.h>

#include "onnx/expand_common.h"

typedef enum how { SUM, MEAN, MAX, MIN, PROD, L1, L2, LOG_SUM, LOG_SUM_EXP, SUM_SQUARE } how;

/* "axes" given: those; none: all, or with noop_with_empty_axes none. */
static tn_status axes_of(tn_expand *x, int axes[TN_MAX_RANK], int *count) {
    int rank = tn_expand_rank(x, 0);
    *count = 0;
    if (tn_expand_has(x, 1))
        TN_TRY(tn_expand_axes_input(x, 1, rank, axes, count));
    if (*count || tn_expand_int(x, "noop_with_empty_axes"))
        return TN_OK;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    *count = rank;
    return TN_OK;
}

typedef tn_value reduce_fn(tn_graph *, tn_value, uint32_t, const int *, bool);

/* Reduction over no axes leaves the value; the builder's empty list means all. */
static tn_value along(tn_graph *g, reduce_fn *reduce, tn_value v, int count, const int *axes, bool keep) {
    return count ? reduce(g, v, (uint32_t)count, axes, keep) : v;
}

/* log(sum(exp(x))), shifted by the largest element where that is finite. */
static tn_value log_sum_exp(tn_expand *x, tn_value v, int count, const int *axes, bool keep) {
    tn_graph *g = x->graph;
    tn_value top = along(g, tn_reduce_max, v, count, axes, true);
    top = tn_select(g, tn_is_finite(g, top), top, tn_scalar_like(g, v, 0));
    tn_value sum = along(g, tn_reduce_sum, tn_exp(g, tn_sub(g, v, top)), count, axes, true);
    v = tn_add(g, tn_log(g, sum), top);
    return keep || !count ? v : tn_squeeze(g, v, (uint32_t)count, axes);
}

static tn_status reduce(tn_expand *x, how h) {
    tn_graph *g = x->graph;
    int axes[TN_MAX_RANK], n;
    bool keep = tn_expand_int(x, "keepdims") != 0;
    tn_dtype dtype = tn_expand_dtype(x, 0), in = tn_wide(dtype);
    TN_TRY(axes_of(x, axes, &n));
    if (tn_is_int(dtype) && (h == L2 || h == LOG_SUM || h == LOG_SUM_EXP))
        in = TN_F64;
    if (h == MAX || h == MIN)
        in = dtype;
    TN_RULE(x, tn_is_float(dtype) || tn_is_int(dtype) || (dtype == TN_BOOL && (h == MAX || h == MIN)),
            "a reduction of %s", tn_dtype_name(dtype));
    tn_value v = tn_expand_input(x, 0);
    if (dtype == TN_BOOL)
        return tn_expand_set(x, 0, along(g, h == MAX ? tn_reduce_or : tn_reduce_and, v, n, axes, keep));
    if (h == L1 && n == 0)
        return tn_expand_set(x, 0, tn_abs(g, v));
    v = tn_cast(g, v, in);
    switch (h) {
    case SUM: v = along(g, tn_reduce_sum, v, n, axes, keep); break;
    case MEAN: {
        if (n == 0)
            break;
        tn_value count = tn_expand_count(x, v, n, axes, in);
        v = tn_div(g, along(g, tn_reduce_sum, v, n, axes, keep), count);
        break;
    }
    case MAX: v = along(g, tn_reduce_max, v, n, axes, keep); break;
    case MIN: v = along(g, tn_reduce_min, v, n, axes, keep); break;
    case PROD: v = along(g, tn_reduce_prod, v, n, axes, keep); break;
    case L1: v = along(g, tn_reduce_sum, tn_abs(g, v), n, axes, keep); break;
    case L2: v = tn_sqrt(g, along(g, tn_reduce_sum, tn_mul(g, v, v), n, axes, keep)); break;
    case LOG_SUM: v = tn_log(g, along(g, tn_reduce_sum, v, n, axes, keep)); break;
    case LOG_SUM_EXP: v = log_sum_exp(x, v, n, axes, keep); break;
    case SUM_SQUARE: v = along(g, tn_reduce_sum, tn_mul(g, v, v), n, axes, keep); break;
    }
    return tn_expand_set(x, 0, tn_cast(g, v, dtype));
}

static tn_status expand_sum(tn_expand *x) {
    return reduce(x, SUM);
}
static tn_status expand_mean(tn_expand *x) {
    return reduce(x, MEAN);
}
static tn_status expand_max(tn_expand *x) {
    return reduce(x, MAX);
}
static tn_status expand_min(tn_expand *x) {
    return reduce(x, MIN);
}
static tn_status expand_prod(tn_expand *x) {
    return reduce(x, PROD);
}
static tn_status expand_l1(tn_expand *x) {
    return reduce(x, L1);
}
static tn_status expand_l2(tn_expand *x) {
    return reduce(x, L2);
}
static tn_status expand_log_sum(tn_expand *x) {
    return reduce(x, LOG_SUM);
}
static tn_status expand_log_sum_exp(tn_expand *x) {
    return reduce(x, LOG_SUM_EXP);
}
static tn_status expand_sum_square(tn_expand *x) {
    return reduce(x, SUM_SQUARE);
}

static const tn_attr_spec attrs[] = {TN_SPEC_BOOL("keepdims", 1), TN_SPEC_BOOL("noop_with_empty_axes", 0), {0}};

#define ROW(name, build) \
    TN_ONNX(name, .since = 1, .inputs = {1, 2}, .outputs = {1, 1}, .attrs = attrs, .expand = expand_##build)

static const tn_onnx_op rows[] = {
    ROW("ReduceSum", sum),
    ROW("ReduceMean", mean),
    ROW("ReduceMax", max),
    ROW("ReduceMin", min),
    ROW("ReduceProd", prod),
    ROW("ReduceL1", l1),
    ROW("ReduceL2", l2),
    ROW("ReduceLogSum", log_sum),
    ROW("ReduceLogSumExp", log_sum_exp),
    ROW("ReduceSumSquare", sum_square),
};

const tn_onnx_family tn_onnx_family_reduce = {rows, sizeof rows / sizeof *rows};
