/* Normalisations. Statistics of f16 and bf16 are computed in f32. */
#include <inttypes.h>

#include "onnx/expand_common.h"

/* The mean over axes and the variance around it (of the population), kept as 1. */
static void statistics(tn_expand *x, tn_value v, int count, const int *axes, tn_value *mean, tn_value *variance) {
    *mean = tn_expand_mean(x, v, count, axes);
    tn_value d = tn_sub(x->graph, v, *mean);
    *variance = tn_expand_mean(x, tn_mul(x->graph, d, d), count, axes);
}

/* 1 / sqrt(variance + epsilon) */
static tn_value inverse_deviation(tn_expand *x, tn_value variance) {
    tn_graph *g = x->graph;
    if (!variance.id)
        return variance;
    return tn_rsqrt(g, tn_add(g, variance, tn_scalar_like(g, variance, tn_expand_float(x, "epsilon"))));
}

/* Input `input`, one entry for each channel (axis 1 of input 0), as [1, C, 1...] in `dtype`. */
static tn_status per_channel(tn_expand *x, uint32_t input, const char *name, tn_dtype dtype, tn_value *out) {
    int rank = tn_expand_rank(x, 0);
    tn_dim dims[TN_MAX_RANK];
    TN_RULE(x, tn_expand_rank(x, input) == 1, "'%s' has rank %d: it must be a list", name, tn_expand_rank(x, input));
    for (int i = 0; i < rank; i++)
        dims[i] = i == 1 ? tn_expand_dim(x, 0, 1) : tn_size(x, 1);
    TN_RULE(x, rank < 2 || !tn_dim_never_equal(x->graph, tn_expand_dim(x, input, 0), dims[1]),
            "'%s' must have one entry for each channel (axis 1 of the input)", name);
    *out = tn_cast(x->graph, tn_reshape_dims(x->graph, tn_expand_input(x, input), rank, dims), dtype);
    return TN_OK;
}

/* The same with one entry for each element of a sample, [C, D1, ..., Dn], as [1, C, D1, ..., Dn]. */
static tn_status per_element(tn_expand *x, uint32_t input, const char *name, tn_dtype dtype, tn_value *out) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0);
    tn_dim dims[TN_MAX_RANK] = {tn_size(x, 1)};
    TN_RULE(x, tn_expand_rank(x, input) == rank - 1,
            "'%s' has rank %d: where 'spatial' is 0 it must have the shape of a sample, of rank %d", name,
            tn_expand_rank(x, input), rank - 1);
    for (int i = 1; i < rank; i++) {
        dims[i] = tn_expand_dim(x, 0, i);
        TN_RULE_SAME(x, tn_expand_dim(x, input, i - 1), dims[i],
                     "axis %d of '%s' must have the size of axis %d of the input: 'spatial' is 0", i - 1, name, i);
    }
    *out = tn_cast(g, tn_reshape_dims(g, tn_expand_input(x, input), rank, dims), dtype);
    return TN_OK;
}

/* --- batch normalisation ------------------------------------------------------------------------------------------------------------ */

/* Outputs of training, for each channel or element, in the dtype of the input that gives the running one. */
static tn_status set_statistic(tn_expand *x, uint32_t output, uint32_t like, bool elements, tn_value v) {
    int rank = elements ? tn_expand_rank(x, 0) - 1 : 1;
    tn_dim dims[TN_MAX_RANK] = {tn_size(x, 1)};
    for (int i = 0; i < rank && tn_expand_rank(x, 0) > 1; i++)
        dims[i] = tn_expand_dim(x, 0, i + 1);
    return tn_expand_set(x, output,
                         tn_cast(x->graph, tn_reshape_dims(x->graph, v, rank, dims), tn_expand_dtype(x, like)));
}

/* `elements`: each element of a sample has statistics of its own, over the batch, where otherwise each channel has. */
static tn_status batch_norm(tn_expand *x, bool training, bool elements) {
    tn_graph *g = x->graph;
    static const char *const names[5] = {"X", "scale", "B", "mean", "var"};
    tn_value in[5];
    tn_dtype wide = TN_F32;
    int rank = tn_expand_rank(x, 0), axes[TN_MAX_RANK], n = 0;
    TN_RULE(x, rank >= 1, "the input is a scalar");
    for (uint32_t i = 0; i < 5; i++) {
        TN_RULE(x, tn_is_float(tn_expand_dtype(x, i)), "'%s' is %s: it must be of a floating point type", names[i],
                tn_dtype_name(tn_expand_dtype(x, i)));
        if (tn_expand_dtype(x, i) == TN_F64)
            wide = TN_F64;
    }
    in[0] = tn_cast(g, tn_expand_input(x, 0), wide);
    for (uint32_t i = 1; i < 5; i++)
        TN_TRY((elements ? per_element : per_channel)(x, i, names[i], wide, &in[i]));
    tn_value mean = in[3], variance = in[4];
    if (training) {
        for (uint32_t i = 1; i < 5 && !elements && rank > 1; i++) /* some go into running statistics alone */
            TN_RULE_SAME(x, tn_expand_dim(x, i, 0), tn_expand_dim(x, 0, 1), "'%s' must have one entry for each channel",
                         names[i]);
        for (int i = 0; i < (elements ? 1 : rank); i++)
            if (i != 1)
                axes[n++] = i;
        statistics(x, in[0], n, axes, &mean, &variance);
        tn_value momentum = tn_scalar(g, wide, tn_expand_float(x, "momentum"));
        tn_value rest = tn_sub(g, tn_scalar(g, wide, 1), momentum);
        for (uint32_t i = 1; i < 3; i++)
            if (tn_expand_wants(x, i)) {
                tn_value now = tn_mul(g, i == 1 ? mean : variance, rest);
                TN_TRY(set_statistic(x, i, 2 + i, elements, tn_add(g, tn_mul(g, in[2 + i], momentum), now)));
            }
        for (uint32_t i = 3; i < 5; i++)
            if (tn_expand_wants(x, i))
                TN_TRY(set_statistic(x, i, i, elements, i == 3 ? mean : variance));
    }
    tn_value factor = tn_mul(g, in[1], inverse_deviation(x, variance));
    tn_value y = tn_add(g, tn_mul(g, tn_sub(g, in[0], mean), factor), in[2]);
    return tn_expand_set(x, 0, tn_cast(g, y, tn_expand_dtype(x, 0)));
}

static tn_status expand_batch_norm(tn_expand *x) {
    bool training = tn_expand_int(x, "training_mode") != 0;
    TN_RULE(x, training || (!tn_expand_wants(x, 1) && !tn_expand_wants(x, 2)),
            "the running statistics are outputs of training mode only");
    return batch_norm(x, training, false);
}

/* Before operator set 14 it trains when the statistics are asked for. With 'spatial' 0, up to operator set 8, statistics belong to the
   elements of a sample; before operator set 7 the text has lists of channels nevertheless, which only training contradicts. */
static tn_status expand_batch_norm_first(tn_expand *x) {
    bool training = false;
    for (uint32_t i = 1; i < 5; i++)
        training = training || tn_expand_wants(x, i);
    TN_RULE(x, !training || x->outputs == 5, "it has %u outputs: 1, or in training all 5", x->outputs);
    bool elements = x->version < 9 && !tn_expand_int(x, "spatial") && tn_expand_rank(x, 0) > 2;
    if (elements && x->version < 7 && training)
        return tn_expand_unsupported(
            x, "training that is not spatial in operator set %d, whose lists have no room for it", x->version);
    return batch_norm(x, training, elements && x->version >= 7);
}

/* --- over the rest of each image or group -------------------------------------------------------------------------------------------- */

static tn_status expand_instance_norm(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dtype dtype = tn_expand_dtype(x, 0), wide = tn_wide(dtype);
    int rank = tn_expand_rank(x, 0), axes[TN_MAX_RANK];
    tn_value scale, bias, mean, variance, v = tn_cast(g, tn_expand_input(x, 0), wide);
    TN_RULE(x, rank >= 2, "the input has rank %d: at least 2 are needed (batch, channels)", rank);
    TN_TRY(per_channel(x, 1, "scale", wide, &scale));
    TN_TRY(per_channel(x, 2, "B", wide, &bias));
    for (int i = 2; i < rank; i++)
        axes[i - 2] = i;
    statistics(x, v, rank - 2, axes, &mean, &variance);
    tn_value factor = tn_mul(g, inverse_deviation(x, variance), scale);
    tn_value y = tn_add(g, tn_mul(g, tn_sub(g, v, mean), factor), bias);
    return tn_expand_set(x, 0, tn_cast(g, y, dtype));
}

static tn_status stash_type(tn_expand *x, tn_dtype *dtype) {
    int64_t t = tn_expand_int(x, "stash_type");
    TN_RULE(x, t > 0 && t < TN_DTYPE_COUNT && tn_is_float((tn_dtype)t), "attribute 'stash_type' is %" PRId64, t);
    *dtype = (tn_dtype)t;
    return TN_OK;
}

/* Scale and bias belong to channels; before operator set 21 to groups. */
static tn_status expand_group_norm(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dtype dtype = tn_expand_dtype(x, 0), wide = tn_wide(dtype);
    int rank = tn_expand_rank(x, 0), axis = 2;
    int64_t groups = tn_expand_int(x, "num_groups"), channels;
    TN_RULE(x, rank >= 2, "the input has rank %d: at least 2 are needed (batch, channels)", rank);
    TN_RULE(x, groups >= 1 && groups <= INT32_MAX, "attribute 'num_groups' is %" PRId64, groups);
    TN_TRY(stash_type(x, &(tn_dtype){0}));
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    if (!dims)
        return tn_error_status();
    if (tn_dim_is_const(g, dims[1], &channels))
        TN_RULE(x, channels % groups == 0, "%" PRId64 " channels cannot be divided into %" PRId64 " groups", channels,
                groups);
    else if (tn_expand_rank(x, 1) == 1 && tn_dim_is_const(g, tn_expand_dim(x, 1, 0), &channels))
        TN_RULE(
            x, channels % groups == 0 || channels < groups, /* fewer: one for each group, in operator sets before 21 */
            "'scale' has one entry for each of %" PRId64 " channels, which cannot be divided into %" PRId64 " groups",
            channels, groups);
    TN_TRY(tn_expand_hold_multiple(x, 0, 1, groups));
    dims = tn_expand_dims_copy(x, 0);
    if (!dims)
        return tn_error_status();
    tn_dim grouped[3] = {dims[0], tn_size(x, groups), tn_dim_floordiv(g, dims[1], tn_size(x, groups))};
    tn_dim image = tn_size_product(x, rank - 2, dims + 2);
    TN_SIZED(x, image);
    grouped[2] = tn_dim_mul(g, grouped[2], image);
    TN_SIZED(x, grouped[2]);
    tn_value v = tn_reshape_dims(g, tn_cast(g, tn_expand_input(x, 0), wide), 3, grouped), mean, variance;
    statistics(x, v, 1, &axis, &mean, &variance);
    v = tn_cast(g, tn_mul(g, tn_sub(g, v, mean), inverse_deviation(x, variance)), dtype);
    if (x->row->until) {
        for (uint32_t i = 1; i < 3; i++)
            TN_RULE(x, tn_expand_rank(x, i) == 1 && !tn_dim_never_equal(g, tn_expand_dim(x, i, 0), grouped[1]),
                    "input %u must have one entry for each group", (unsigned)i);
        tn_value scale = tn_expand_along(x, tn_expand_listed(x, tn_expand_input(x, 1), grouped[1]), 3, 1),
                 bias = tn_expand_along(x, tn_expand_listed(x, tn_expand_input(x, 2), grouped[1]), 3, 1);
        return tn_expand_set(x, 0, tn_reshape_dims(g, tn_add(g, tn_mul(g, v, scale), bias), rank, dims));
    }
    tn_value scale, bias;
    TN_TRY(per_channel(x, 1, "scale", dtype, &scale));
    TN_TRY(per_channel(x, 2, "bias", dtype, &bias));
    v = tn_reshape_dims(g, v, rank, dims);
    return tn_expand_set(x, 0, tn_add(g, tn_mul(g, v, scale), bias));
}

/* --- over the last axes ------------------------------------------------------------------------------------------------------------------ */

/* Axes "axis"... of input 0. */
static tn_status last_axes(tn_expand *x, int axes[TN_MAX_RANK], int *count) {
    int first, rank = tn_expand_rank(x, 0);
    TN_TRY(tn_expand_axis(x, tn_expand_int(x, "axis"), rank, &first));
    *count = rank - first;
    for (int i = 0; i < *count; i++)
        axes[i] = first + i;
    return TN_OK;
}

static tn_status expand_layer_norm(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dtype dtype = tn_expand_dtype(x, 0), stash;
    int axes[TN_MAX_RANK], n;
    tn_value mean, variance, scale, bias, v = tn_cast(g, tn_expand_input(x, 0), tn_wide(dtype));
    TN_TRY(last_axes(x, axes, &n));
    TN_TRY(stash_type(x, &stash));
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    if (!dims)
        return tn_error_status();
    statistics(x, v, n, axes, &mean, &variance);
    tn_value inverse = inverse_deviation(x, variance);
    TN_TRY(tn_expand_spread_to(x, 1, "Scale", tn_expand_rank(x, 0), dims, &scale));
    tn_value y = tn_mul(g, tn_cast(g, tn_mul(g, tn_sub(g, v, mean), inverse), dtype), scale);
    if (tn_expand_has(x, 2)) {
        TN_TRY(tn_expand_spread_to(x, 2, "B", tn_expand_rank(x, 0), dims, &bias));
        y = tn_add(g, y, bias);
    }
    if (tn_expand_wants(x, 1))
        TN_TRY(tn_expand_set(x, 1, tn_cast(g, mean, stash)));
    if (tn_expand_wants(x, 2))
        TN_TRY(tn_expand_set(x, 2, tn_cast(g, inverse, stash)));
    return tn_expand_set(x, 0, y);
}

static tn_status expand_rms_norm(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dtype stash;
    int axes[TN_MAX_RANK], n;
    tn_value v = tn_cast(g, tn_expand_input(x, 0), tn_wide(tn_expand_dtype(x, 0)));
    TN_TRY(last_axes(x, axes, &n));
    TN_TRY(stash_type(x, &stash));
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    if (!dims)
        return tn_error_status();
    tn_value inverse = inverse_deviation(x, tn_expand_mean(x, tn_mul(g, v, v), n, axes));
    tn_value normal = tn_cast(g, tn_mul(g, v, inverse), tn_expand_dtype(x, 1));
    tn_value scale;
    TN_TRY(tn_expand_spread_to(x, 1, "scale", tn_expand_rank(x, 0), dims, &scale));
    return tn_expand_set(x, 0, tn_mul(g, normal, scale));
}

/* --- by a norm ------------------------------------------------------------------------------------------------------------------------------ */

static tn_status expand_lp_norm(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dtype dtype = tn_expand_dtype(x, 0);
    int axis;
    int64_t p = tn_expand_int(x, "p");
    tn_value v = tn_cast(g, tn_expand_input(x, 0), tn_wide(dtype));
    TN_RULE(x, p == 1 || p == 2, "attribute 'p' is %" PRId64 ": 1 and 2 are possible", p);
    TN_TRY(tn_expand_axis(x, tn_expand_int(x, "axis"), tn_expand_rank(x, 0), &axis));
    TN_BUILT(x, v);
    tn_value zero = tn_scalar_like(g, v, 0),
             norm = tn_reduce_sum(g, p == 1 ? tn_abs(g, v) : tn_mul(g, v, v), 1, &axis, true);
    norm = p == 1 ? norm : tn_sqrt(g, norm);
    return tn_expand_set(x, 0, tn_cast(g, tn_select(g, tn_equal(g, norm, zero), zero, tn_div(g, v, norm)), dtype));
}

static tn_status expand_mean_variance(tn_expand *x) {
    tn_graph *g = x->graph;
    static const int64_t usual[3] = {0, 2, 3};
    const int64_t *list;
    tn_dtype dtype = tn_expand_dtype(x, 0);
    int axes[TN_MAX_RANK], rank = tn_expand_rank(x, 0);
    uint32_t n = tn_expand_ints(x, "axes", &list);
    if (!tn_expand_has_attr(x, "axes")) {
        list = usual;
        n = 3;
    }
    TN_RULE(x, n <= (uint32_t)rank, "there are %u axes for a tensor of rank %d", (unsigned)n, rank);
    TN_TRY(tn_expand_axes(x, n, list, rank, axes));
    tn_value mean, variance, v = tn_cast(g, tn_expand_input(x, 0), tn_wide(dtype));
    statistics(x, v, (int)n, axes, &mean, &variance);
    TN_BUILT(x, variance);
    tn_value deviation = tn_add(g, tn_sqrt(g, variance), tn_scalar_like(g, variance, 1e-9));
    return tn_expand_set(x, 0, tn_cast(g, tn_div(g, tn_sub(g, v, mean), deviation), dtype));
}

/* x / (bias + alpha / size * sum of squares over `size` channels around)^beta */
static tn_status expand_lrn(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dtype dtype = tn_expand_dtype(x, 0);
    int rank = tn_expand_rank(x, 0);
    int64_t size = tn_expand_int(x, "size"), window[TN_MAX_RANK];
    tn_dim lo[TN_MAX_RANK], hi[TN_MAX_RANK];
    TN_RULE(x, rank >= 2, "the input has rank %d: at least 2 are needed (batch, channels)", rank);
    TN_RULE(x, size >= 1 && size <= INT32_MAX, "attribute 'size' is %" PRId64 ": it must be at least 1", size);
    int64_t below = (size - 1) / 2, above = size / 2, channels;
    if (tn_dim_is_const(g, tn_expand_dim(x, 0, 1), &channels)) { /* no need to look far beyond all of them */
        below = below < channels ? below : channels;
        above = above < channels ? above : channels;
    } else if (size > 4096) {
        return tn_expand_later(x, "needs the number of channels");
    }
    for (int i = 0; i < rank; i++) {
        window[i] = i == 1 ? below + 1 + above : 1;
        lo[i] = tn_size(x, i == 1 ? below : 0);
        hi[i] = tn_size(x, i == 1 ? above : 0);
    }
    tn_value v = tn_cast(g, tn_expand_input(x, 0), tn_wide(dtype));
    TN_BUILT(x, v);
    tn_value sum = tn_window(g, "sum", tn_mul(g, v, v), window, NULL, NULL, lo, hi);
    tn_value base = tn_mul(g, sum, tn_scalar_like(g, v, tn_expand_float(x, "alpha") / (double)size));
    base = tn_add(g, base, tn_scalar_like(g, v, tn_expand_float(x, "bias")));
    tn_value y = tn_div(g, v, tn_pow(g, base, tn_scalar_like(g, v, tn_expand_float(x, "beta"))));
    return tn_expand_set(x, 0, tn_cast(g, y, dtype));
}

/* --- rows ---------------------------------------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec batch_attrs[] = {
    TN_SPEC_FLOAT("epsilon", 1e-5f), TN_SPEC_FLOAT("momentum", 0.9f), TN_SPEC_BOOL("training_mode", 0), {0}};
static const tn_attr_spec batch_9_attrs[] = {TN_SPEC_FLOAT("epsilon", 1e-5f), TN_SPEC_FLOAT("momentum", 0.9f), {0}};
static const tn_attr_spec batch_1_attrs[] = {
    TN_SPEC_FLOAT("epsilon", 1e-5f), TN_SPEC_FLOAT("momentum", 0.9f), TN_SPEC_BOOL("spatial", 1), {0}};
static const tn_attr_spec epsilon_attrs[] = {TN_SPEC_FLOAT("epsilon", 1e-5f), {0}};
static const tn_attr_spec layer_attrs[] = {
    TN_SPEC_INT("axis", -1), TN_SPEC_FLOAT("epsilon", 1e-5f), TN_SPEC_INT("stash_type", 1), {0}};
static const tn_attr_spec group_attrs[] = {
    TN_SPEC_FLOAT("epsilon", 1e-5f), TN_SPEC_NEEDED("num_groups", TN_ATTR_INT), TN_SPEC_INT("stash_type", 1), {0}};
static const tn_attr_spec lp_attrs[] = {TN_SPEC_INT("axis", -1), TN_SPEC_INT("p", 2), {0}};
static const tn_attr_spec mean_attrs[] = {TN_SPEC_INTS("axes"), {0}};
static const tn_attr_spec lrn_attrs[] = {TN_SPEC_FLOAT("alpha", 1e-4f),
                                         TN_SPEC_FLOAT("beta", 0.75),
                                         TN_SPEC_FLOAT("bias", 1),
                                         TN_SPEC_NEEDED("size", TN_ATTR_INT),
                                         {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX("BatchNormalization", .since = 14, .inputs = {5, 5}, .outputs = {1, 3}, .attrs = batch_attrs,
            .expand = expand_batch_norm),
    TN_ONNX("BatchNormalization", .since = 9, .until = 13, .inputs = {5, 5}, .outputs = {1, 5}, .attrs = batch_9_attrs,
            .expand = expand_batch_norm_first),
    TN_ONNX("BatchNormalization", .since = 1, .until = 8, .inputs = {5, 5}, .outputs = {1, 5}, .attrs = batch_1_attrs,
            .expand = expand_batch_norm_first),
    TN_ONNX("InstanceNormalization", .since = 1, .inputs = {3, 3}, .outputs = {1, 1}, .attrs = epsilon_attrs,
            .expand = expand_instance_norm),
    TN_ONNX("GroupNormalization", .since = 21, .inputs = {3, 3}, .outputs = {1, 1}, .attrs = group_attrs,
            .expand = expand_group_norm),
    TN_ONNX("GroupNormalization", .since = 18, .until = 20, .inputs = {3, 3}, .outputs = {1, 1}, .attrs = group_attrs,
            .expand = expand_group_norm),
    TN_ONNX("LayerNormalization", .since = 17, .inputs = {2, 3}, .outputs = {1, 3}, .attrs = layer_attrs,
            .expand = expand_layer_norm),
    TN_ONNX("RMSNormalization", .since = 23, .inputs = {2, 2}, .outputs = {1, 1}, .attrs = layer_attrs,
            .expand = expand_rms_norm),
    TN_ONNX("LpNormalization", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = lp_attrs,
            .expand = expand_lp_norm),
    TN_ONNX("MeanVarianceNormalization", .since = 9, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = mean_attrs,
            .expand = expand_mean_variance),
    TN_ONNX("LRN", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = lrn_attrs, .expand = expand_lrn),
};

const tn_onnx_family tn_onnx_family_norm = {rows, sizeof rows / sizeof *rows};
