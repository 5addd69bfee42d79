/* Operators that carry something along an axis: Det, LinearAttention, CausalConvWithState, TensorScatter. */
#include <inttypes.h>

#include "onnx/expand_common.h"

/* --- determinant: Gaussian elimination, the largest element of the column as pivot --------------------------------------------------- */

typedef struct det {
    tn_expand *x;
    tn_dim batch, n;
} det;

/* (matrix [batch, n, n], determinant so far [batch], step) */
static void eliminate(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    static const int rows[1] = {1}, columns[1] = {2}, last[1] = {1};
    const det *d = ctx;
    tn_dim line[2] = {d->batch, d->n};
    tn_value m = args[0], k = args[2], zero = tn_scalar_like(g, m, 0), row = tn_iota(g, TN_I64, 2, line, 1);
    tn_value column = tn_gather(g, m, k, 2); /* [batch, n] */
    tn_value size = tn_select(g, tn_less(g, row, k), tn_scalar_like(g, m, -1), tn_abs(g, column));
    tn_value top = tn_reduce_max(g, size, 1, last, true);
    const int64_t far = INT64_MAX;
    tn_value best = tn_or(g, tn_equal(g, size, top), tn_is_nan(g, size));
    tn_value at = tn_reduce_min(g, tn_select(g, best, row, tn_constant_i64(g, 0, 1, &far)), 1, last, true);
    tn_value is_pivot = tn_equal(g, row, at), is_k = tn_equal(g, row, k);
    tn_value pivot = tn_reduce_sum(g, tn_select(g, is_pivot, column, zero), 1, last, true); /* [batch, 1] */
    tn_value pivot_row = tn_select(g, tn_expand_dims(g, is_pivot, 1, columns), m, zero);
    pivot_row = tn_reduce_sum(g, pivot_row, 1, rows, true); /* [batch, 1, n] */
    tn_value k_row = tn_expand_dims(g, tn_gather(g, m, k, 1), 1, rows);
    m = tn_select(g, tn_expand_dims(g, is_pivot, 1, columns), k_row, m);
    m = tn_select(g, tn_expand_dims(g, is_k, 1, columns), pivot_row, m);
    column = tn_gather(g, m, k, 2);
    tn_value below = tn_and(g, tn_greater(g, row, k), tn_not_equal(g, pivot, zero));
    tn_value factor = tn_select(g, below, tn_div(g, column, pivot), zero);
    results[0] = tn_sub(g, m, tn_mul(g, tn_expand_dims(g, factor, 1, columns), pivot_row));
    pivot = tn_squeeze(g, tn_select(g, tn_equal(g, at, k), pivot, tn_neg(g, pivot)), 1, last);
    results[1] = tn_mul(g, args[1], pivot);
    for (int i = 0; i < 2; i++)
        results[i] = tn_expand_sized_as(g, results[i], args[i]);
}

static tn_status expand_det(tn_expand *x) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0);
    tn_dtype dtype = tn_expand_dtype(x, 0);
    TN_RULE(x, tn_is_float(dtype), "the input is %s: it must be of a floating point type", tn_dtype_name(dtype));
    TN_RULE(x, rank >= 2, "the input has rank %d: at least 2 are needed", rank);
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    if (!dims)
        return tn_error_status();
    TN_RULE(x, !tn_dim_never_equal(g, dims[rank - 1], dims[rank - 2]), "the matrices are not square");
    det d = {.x = x, .batch = tn_size_product(x, rank - 2, dims), .n = dims[rank - 1]};
    bool square = tn_dim_equal(g, dims[rank - 1], dims[rank - 2]);
    if (!square && !tn_size_at_least(x, d.batch, 1) && !x->final) /* of no matrices all have the same count */
        return tn_expand_later(x, "needs the sizes of its matrices");
    if (!square) /* the reshape refuses what is not square when it runs */
        d.n = tn_dim_max(g, dims[rank - 1], dims[rank - 2]);
    TN_SIZED(x, d.n);
    TN_SIZED(x, d.batch);
    tn_dim flat[3] = {d.batch, d.n, d.n};
    tn_value init[2] = {tn_reshape_dims(g, tn_cast(g, tn_expand_input(x, 0), TN_F64), 3, flat),
                        tn_expand_full(x, TN_F64, 1, 1, &d.batch)};
    tn_value steps = tn_iota(g, TN_I64, 1, &d.n, 0), out[2];
    TN_TRY(tn_scan(g, 2, init, 1, &steps, eliminate, &d, 0, out));
    return tn_expand_set(x, 0, tn_cast(g, tn_reshape_dims(g, out[1], rank - 2, dims), dtype));
}

/* --- linear attention ------------------------------------------------------------------------------------------------------------------- */

typedef struct linear {
    tn_value scale;
    bool gated, delta;
} linear;

/* (state [b, h, dk, dv], q [b, h, group, dk], k [b, h, dk], v [b, h, dv], [decay [b, h, dk or 1]], [beta [b, h or 1, 1]]) */
static void attend(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    static const int64_t batch[2] = {0, 1}, third[1] = {2}, fourth[1] = {3};
    static const int value_axis[1] = {3}, key_axis[1] = {2};
    const linear *l = ctx;
    tn_value state = args[0], q = args[1], k = args[2], v = args[3];
    if (l->gated)
        state = tn_mul(g, state, tn_expand_dims(g, tn_exp(g, args[4]), 1, value_axis));
    if (l->delta) {
        tn_value known = tn_dot(g, k, state, 2, batch, batch, 1, third, third);
        v = tn_mul(g, args[l->gated ? 5 : 4], tn_sub(g, v, known));
    }
    state = tn_add(g, state, tn_mul(g, tn_expand_dims(g, k, 1, value_axis), tn_expand_dims(g, v, 1, key_axis)));
    results[0] = tn_expand_sized_as(g, state, args[0]);
    results[1] = tn_mul(g, tn_dot(g, q, results[0], 2, batch, batch, 1, fourth, third), l->scale);
}

/* Input [batch, steps, heads * size] as [steps, batch, heads, size]; for heads in groups as [steps, batch, groups, heads / groups, size]. */
static tn_status steps_first(tn_expand *x, uint32_t input, tn_dtype wide, int64_t heads, int64_t groups,
                             tn_value *out) {
    static const int perm[5] = {1, 0, 2, 3, 4};
    tn_graph *g = x->graph;
    int64_t width;
    const tn_dim *dims = tn_expand_dims_copy(x, input);
    if (!dims)
        return tn_error_status();
    TN_RULE(x, tn_expand_rank(x, input) == 3, "input %u has rank %d, it must be 3", (unsigned)input,
            tn_expand_rank(x, input));
    if (tn_dim_is_const(g, dims[2], &width))
        TN_RULE(x, width % heads == 0, "input %u: %" PRId64 " columns cannot be divided among %" PRId64 " heads",
                (unsigned)input, width, heads);
    TN_TRY(tn_expand_hold_multiple(x, input, 2, heads));
    tn_dim size = tn_dim_floordiv(g, dims[2], tn_size(x, heads));
    for (int i = 0; i < 2; i++)
        TN_RULE_SAME(x, dims[i], tn_expand_dim(x, 0, i), "inputs 0 and %u differ in their %s", (unsigned)input,
                     i ? "steps" : "batch");
    /* batch and steps are those of input 0: checked when it runs, where they are not known to be */
    tn_dim apart[5] = {tn_expand_dim(x, 0, 0), tn_expand_dim(x, 0, 1), tn_size(x, groups ? groups : heads),
                       groups ? tn_size(x, heads / groups) : size, size};
    int rank = groups ? 5 : 4;
    *out = tn_cast(g, tn_transpose(g, tn_reshape_dims(g, tn_expand_input(x, input), rank, apart), perm), wide);
    return TN_OK;
}

static tn_status expand_linear_attention(tn_expand *x) {
    tn_graph *g = x->graph;
    int64_t heads = tn_expand_int(x, "q_num_heads"), groups = tn_expand_int(x, "kv_num_heads"), last, size;
    tn_dtype dtype = tn_expand_dtype(x, 0), wide = dtype == TN_F64 ? TN_F64 : TN_F32;
    bool gated_delta = tn_expand_string_is(x, "update_rule", "gated_delta");
    linear l = {.gated = gated_delta || tn_expand_string_is(x, "update_rule", "gated"),
                .delta = gated_delta || tn_expand_string_is(x, "update_rule", "delta")};
    TN_RULE(x, heads > 0 && groups > 0 && heads <= INT32_MAX && heads % groups == 0,
            "%" PRId64 " query heads and %" PRId64 " key heads", heads, groups);
    TN_RULE(x, tn_expand_has(x, 4) == l.gated,
            "'decay' goes with the update rules gated and gated_delta, and only with them");
    TN_RULE(x, tn_expand_has(x, 5) == l.delta,
            "'beta' goes with the update rules delta and gated_delta, and only with them");
    tn_value in[5], init, out[2];
    uint32_t n = 3;
    TN_TRY(steps_first(x, 0, wide, heads, groups, &in[0]));
    TN_TRY(steps_first(x, 1, wide, groups, 0, &in[1]));
    TN_TRY(steps_first(x, 2, wide, groups, 0, &in[2]));
    TN_BUILT(x, in[2]);
    if (l.gated) {
        if (!tn_dim_is_const(g, tn_expand_dim(x, 4, -1), &last))
            return tn_expand_later(x, "needs the size of the last axis of 'decay'");
        TN_TRY(steps_first(x, 4, wide, groups, 0, &in[n++]));
    }
    if (l.delta) {
        if (!tn_dim_is_const(g, tn_expand_dim(x, 5, -1), &last))
            return tn_expand_later(x, "needs the size of the last axis of 'beta'");
        TN_RULE(x, last == 1 || last == groups, "the last axis of 'beta' has %" PRId64 " entries", last);
        TN_TRY(steps_first(x, 5, wide, last, 0, &in[n++]));
    }
    TN_BUILT(x, in[0]);
    TN_BUILT(x, in[1]);
    TN_RULE(x, !tn_dim_never_equal(g, tn_value_dim(g, in[0], 4), tn_value_dim(g, in[1], 3)),
            "heads of queries and of keys differ in their size");
    tn_dim state[4] = {tn_value_dim(g, in[1], 1), tn_size(x, groups), tn_value_dim(g, in[1], 3),
                       tn_value_dim(g, in[2], 3)};
    tn_dtype state_dtype = dtype;
    if (tn_expand_has(x, 3)) {
        TN_RULE(x, tn_expand_rank(x, 3) == 4, "'past_state' has rank %d, it must be 4", tn_expand_rank(x, 3));
        for (int i = 0; i < 4; i++)
            TN_RULE(x, !tn_dim_never_equal(g, tn_expand_dim(x, 3, i), state[i]),
                    "axis %d of 'past_state', [batch, heads of keys, size of a key, size of a value], has another size",
                    i);
        state_dtype = tn_expand_dtype(x, 3);
        init = tn_cast(g, tn_reshape_dims(g, tn_expand_input(x, 3), 4, state), wide);
    } else {
        init = tn_expand_full(x, wide, 0, 4, state);
    }
    double scale = tn_expand_float(x, "scale");
    l.scale = tn_scalar(g, wide, scale);
    if (scale == 0) {
        if (tn_dim_is_const(g, state[2], &size))
            l.scale = tn_rsqrt(g, tn_scalar(g, wide, (double)size));
        else
            l.scale = tn_rsqrt(g, tn_expand_size_value(x, state[2], wide));
    }
    TN_TRY(tn_scan(g, 1, &init, n, in, attend, &l, 1, out));
    static const int perm[5] = {1, 0, 2, 3, 4};
    if (tn_expand_wants(x, 1))
        TN_TRY(tn_expand_set(x, 1, tn_cast(g, out[0], state_dtype)));
    tn_dim joined[3] = {state[0], tn_expand_dim(x, 0, 1), tn_dim_mul(g, tn_size(x, heads), state[3])};
    tn_value y = tn_reshape_dims(g, tn_transpose(g, out[1], perm), 3, joined);
    return tn_expand_set(x, 0, tn_cast(g, y, dtype));
}

/* --- causal convolution --------------------------------------------------------------------------------------------------------------------- */

static tn_status expand_causal_conv(tn_expand *x) {
    tn_graph *g = x->graph;
    int64_t channels;
    tn_dtype dtype = tn_expand_dtype(x, 0);
    TN_RULE(x, tn_expand_rank(x, 0) == 3 && tn_expand_rank(x, 1) == 3,
            "input and weights must have rank 3, but have %d and %d", tn_expand_rank(x, 0), tn_expand_rank(x, 1));
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    if (!dims)
        return tn_error_status();
    tn_dim one = tn_size(x, 1), zero = tn_size(x, 0);
    if (!tn_dim_is_const(g, tn_expand_dim(x, 1, 0), &channels))
        return tn_expand_later(x, "needs the number of channels");
    TN_RULE(
        x, !tn_dim_never_equal(g, dims[1], tn_size(x, channels)) && !tn_dim_never_equal(g, tn_expand_dim(x, 1, 1), one),
        "the weights must have the shape [channels, 1, k]");
    TN_RULE(x, !tn_size_at_most(x, tn_expand_dim(x, 1, 2), 0), "the kernel is empty");
    tn_dim before = tn_dim_sub(g, tn_expand_dim(x, 1, 2), one);
    tn_value v = tn_expand_input(x, 0);
    if (tn_expand_has(x, 3)) {
        tn_dim past[3] = {dims[0], dims[1], before};
        TN_RULE(x, tn_expand_rank(x, 3) == 3, "'past_state' has rank %d, it must be 3", tn_expand_rank(x, 3));
        for (int i = 0; i < 3; i++) {
            TN_RULE_SAME(x, tn_expand_dim(x, 3, i), past[i], "'past_state' has the wrong size on axis %d", i);
        }
        tn_value both[2] = {tn_reshape_dims(g, tn_expand_input(x, 3), 3, past), v};
        v = tn_concat(g, 2, 2, both);
    } else {
        tn_dim lo[3] = {zero, zero, before}, hi[3] = {zero, zero, zero};
        v = tn_pad(g, v, tn_scalar(g, dtype, 0), lo, hi, "constant");
    }
    tn_value y = tn_conv(g, v, tn_expand_input(x, 1), NULL, NULL, NULL, NULL, NULL, channels);
    if (tn_expand_has(x, 2)) {
        TN_RULE(x, tn_expand_rank(x, 2) == 1, "'bias' has rank %d, it must be a list", tn_expand_rank(x, 2));
        TN_RULE(x, !tn_dim_never_equal(g, tn_expand_dim(x, 2, 0), tn_size(x, channels)),
                "'bias' must have one entry for each channel");
        y = tn_add(g, y, tn_expand_along(x, tn_expand_listed(x, tn_expand_input(x, 2), tn_size(x, channels)), 3, 1));
    }
    if (!tn_expand_string_is(x, "activation", "none")) {
        y = tn_cast(g, y, tn_wide(dtype));
        y = tn_cast(g, tn_mul(g, y, tn_sigmoid(g, y)), dtype);
    }
    if (tn_expand_wants(x, 1))
        TN_TRY(tn_expand_set(x, 1, tn_expand_slice(x, v, 2, dims[2], before, 1)));
    return tn_expand_set(x, 0, y);
}

/* --- writing into a cache ------------------------------------------------------------------------------------------------------------------- */

/* Each place of the cache reads the update that falls there, or keeps what it has. */
static tn_status expand_tensor_scatter(tn_expand *x) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0), axis;
    bool circular = tn_expand_string_is(x, "mode", "circular");
    TN_RULE(x, tn_expand_rank(x, 1) == rank && tn_expand_dtype(x, 1) == tn_expand_dtype(x, 0),
            "cache and update must have one element type and rank");
    TN_TRY(tn_expand_axis(x, tn_expand_int(x, "axis"), rank, &axis));
    TN_RULE(x, axis > 0, "'axis' is 0, which is the batch");
    const tn_dim *dims = tn_expand_dims_copy(x, 0), *with = tn_expand_dims_copy(x, 1);
    if (!dims || !with)
        return tn_error_status();
    for (int i = 0; i < rank; i++)
        if (i != axis)
            TN_RULE_SAME(x, dims[i], with[i], "cache and update differ on axis %d", i);
    int64_t size, room;
    if (tn_dim_is_const(g, with[axis], &size) && tn_dim_is_const(g, dims[axis], &room))
        TN_RULE(x, size <= room, "an update of %" PRId64 " entries does not fit into a cache of %" PRId64, size, room);
    tn_dim one = tn_size(x, 1), batch[3] = {dims[0], one, one}, outer = tn_size_product(x, axis - 1, dims + 1),
           inner = tn_size_product(x, rank - axis - 1, dims + axis + 1);
    TN_SIZED(x, outer);
    TN_SIZED(x, inner);
    tn_value start, zero = tn_scalar(g, TN_I64, 0), n = tn_expand_size_value(x, with[axis], TN_I64),
                    all = tn_expand_size_value(x, dims[axis], TN_I64);
    if (tn_expand_has(x, 2)) {
        TN_RULE(x, tn_expand_rank(x, 2) == 1, "'write_indices' has rank %d, it must be a list", tn_expand_rank(x, 2));
        TN_RULE(x, !tn_dim_never_equal(g, tn_expand_dim(x, 2, 0), dims[0]),
                "'write_indices' must have one entry for each of the batch");
        start = tn_cast(g, tn_expand_input(x, 2), TN_I64);
    } else {
        start = tn_expand_full(x, TN_I64, 0, 1, batch);
    }
    tn_value shown[2] = {n, all};
    start = tn_require(g, start, tn_less_equal(g, n, all), "an update of {0} entries does not fit into a cache of {1}",
                       2, shown);
    if (!circular)
        start = tn_expand_within(x, start, zero, tn_sub(g, all, n), "write_indices");
    else
        start = tn_mod(g, start, all); /* before anything is taken from it: it may be any number */
    start = tn_reshape_dims(g, start, 3, batch);
    tn_dim grid[3] = {dims[0], outer, dims[axis]}, prefix[3] = {dims[0], outer, one};
    tn_value from = tn_sub(g, tn_iota(g, TN_I64, 3, grid, 2), start); /* [batch, outer, places] */
    if (circular)
        from = tn_mod(g, from, all);
    tn_value fresh = tn_and(g, tn_greater_equal(g, from, zero), tn_less(g, from, n));
    tn_value row = tn_add(g, tn_mul(g, tn_iota(g, TN_I64, 3, prefix, 0), tn_expand_size_value(x, outer, TN_I64)),
                          tn_iota(g, TN_I64, 3, prefix, 1));
    tn_value at = tn_add(g, tn_mul(g, row, n), tn_select(g, fresh, from, zero));
    tn_dim rows[2] = {tn_dim_mul(g, tn_dim_mul(g, dims[0], outer), with[axis]), inner},
           whole[4] = {dims[0], outer, dims[axis], inner};
    TN_SIZED(x, rows[0]);
    static const int last[1] = {3};
    tn_dtype dtype = tn_expand_dtype(x, 0), in = dtype == TN_F4E2M1 ? TN_F32 : tn_dtype_bits(dtype) < 8 ? TN_I8 : dtype;
    tn_value v = tn_reshape_dims(g, tn_cast(g, tn_expand_input(x, 1), in), 2, rows),
             past = tn_reshape_dims(g, tn_cast(g, tn_expand_input(x, 0), in), 4, whole);
    v = tn_select(g, tn_expand_dims(g, fresh, 1, last), tn_gather(g, tn_expand_one_row(x, v), at, 0), past);
    return tn_expand_set(x, 0, tn_cast(g, tn_reshape_dims(g, v, rank, dims), dtype));
}

/* --- rows ---------------------------------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec linear_attrs[] = {
    TN_SPEC_INT("chunk_size", 64),
    TN_SPEC_NEEDED("kv_num_heads", TN_ATTR_INT),
    TN_SPEC_NEEDED("q_num_heads", TN_ATTR_INT),
    TN_SPEC_FLOAT("scale", 0),
    TN_SPEC_STRING("update_rule", "gated_delta", "linear|gated|delta|gated_delta"),
    {0}};
static const tn_attr_spec causal_attrs[] = {TN_SPEC_STRING("activation", "none", "none|silu|swish"), {0}};
static const tn_attr_spec scatter_attrs[] = {
    TN_SPEC_INT("axis", -2), TN_SPEC_STRING("mode", "linear", "linear|circular"), {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX("Det", .since = 11, .inputs = {1, 1}, .outputs = {1, 1}, .expand = expand_det),
    TN_ONNX("LinearAttention", .since = 27, .inputs = {3, 6}, .outputs = {2, 2}, .attrs = linear_attrs,
            .expand = expand_linear_attention),
    TN_ONNX("CausalConvWithState", .since = 27, .inputs = {2, 4}, .outputs = {2, 2}, .attrs = causal_attrs,
            .expand = expand_causal_conv),
    TN_ONNX("TensorScatter", .since = 24, .inputs = {2, 3}, .outputs = {1, 1}, .attrs = scatter_attrs,
            .expand = expand_tensor_scatter),
};

const tn_onnx_family tn_onnx_family_state = {rows, sizeof rows / sizeof *rows};
