/* Operators that read by index tensors: Gather, GatherElements, GatherND, ReverseSequence, OneHot. An index out of range is an error
   when it runs. */
#include <inttypes.h>

#include "onnx/expand_common.h"

static tn_status expand_gather(tn_expand *x) {
    int axis;
    TN_TRY(tn_expand_axis(x, tn_expand_int(x, "axis"), tn_expand_rank(x, 0), &axis));
    return tn_expand_set(x, 0, tn_gather(x->graph, tn_expand_input(x, 0), tn_expand_input(x, 1), axis));
}

/* The position along `axis` in a tensor of `dims`. */
static tn_value along(tn_expand *x, int rank, const tn_dim *dims, int axis) {
    return tn_iota(x->graph, TN_I64, rank, dims, axis);
}

/* out[i][j][k] = data[i][index[i][j][k]][k] for axis 1. */
static tn_status expand_gather_elements(tn_expand *x) {
    int rank = tn_expand_rank(x, 0), axis;
    TN_RULE(x, rank >= 1 && tn_expand_rank(x, 1) == rank,
            "data of rank %d and indices of rank %d: they must have the same, at least 1", rank, tn_expand_rank(x, 1));
    TN_TRY(tn_expand_axis(x, tn_expand_int(x, "axis"), rank, &axis));
    tn_value in[2] = {tn_expand_input(x, 0), tn_expand_input(x, 1)};
    const tn_attr attrs[] = {TN_A_INT("axis", axis)};
    return tn_expand_set(x, 0, tn_graph_add(x->graph, "gather_elements", 2, in, 1, attrs));
}

/* The last axis of the indices holds a position in the axes that follow the `batch_dims` first ones, which both share. */
static tn_status expand_gather_nd(tn_expand *x) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0), count = tn_expand_rank(x, 1);
    int64_t batch = tn_expand_int(x, "batch_dims"), k;
    TN_RULE(x, rank >= 1 && count >= 1, "data of rank %d and indices of rank %d: neither may be a scalar", rank, count);
    TN_RULE(x, batch >= 0 && batch < rank && batch < count, "attribute 'batch_dims' is %" PRId64 " for ranks %d and %d",
            batch, rank, count);
    if (!tn_dim_is_const(g, tn_expand_dim(x, 1, -1), &k))
        return tn_expand_later(x, "needs the size of the last axis of the indices");
    TN_RULE(x, k >= 1 && k <= rank - batch,
            "the last axis of the indices has %" PRId64 " entries: 1 to %d are possible", k, rank - (int)batch);
    tn_value in[2] = {tn_expand_input(x, 0), tn_expand_input(x, 1)};
    const tn_attr attrs[] = {TN_A_INT("batch_dims", batch)};
    return tn_expand_set(x, 0, tn_graph_add(g, "gather_nd", 2, in, 1, attrs));
}

/* The first sequence_lens[b] steps of each batch entry b in reverse, the others as they are. */
static tn_status expand_reverse_sequence(tn_expand *x) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0);
    int64_t time = tn_expand_int(x, "time_axis"), batch = tn_expand_int(x, "batch_axis");
    TN_RULE(x, rank >= 2, "the input has rank %d: at least 2 are needed", rank);
    TN_RULE(x, (time == 0 && batch == 1) || (time == 1 && batch == 0),
            "'time_axis' and 'batch_axis' must be 0 and 1 in some order");
    TN_RULE(x, tn_expand_rank(x, 1) == 1, "the lengths have rank %d: they must be a list", tn_expand_rank(x, 1));
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    if (!dims)
        return tn_error_status();
    TN_RULE(x, !tn_dim_never_equal(g, tn_expand_dim(x, 1, 0), dims[batch]),
            "there must be one length for each batch entry");
    tn_value one = tn_scalar(g, TN_I64, 1),
             lengths = tn_expand_counted(x, 1, tn_expand_size_value(x, dims[time], TN_I64), "sequence_lens");
    tn_value length =
        tn_broadcast(g, tn_expand_along(x, tn_expand_listed(x, lengths, dims[batch]), 2, (int)batch), 2, dims);
    tn_value t = along(x, 2, dims, (int)time);
    tn_value from = tn_select(g, tn_less(g, t, length), tn_sub(g, tn_sub(g, length, one), t), t);
    tn_value width = tn_expand_size_value(x, dims[1], TN_I64), entry = along(x, 2, dims, (int)batch);
    tn_value at = time == 0 ? tn_add(g, tn_mul(g, from, width), entry) : tn_add(g, tn_mul(g, entry, width), from);
    tn_dim flat[TN_MAX_RANK];
    flat[0] = tn_dim_mul(g, dims[0], dims[1]);
    TN_SIZED(x, flat[0]);
    for (int i = 2; i < rank; i++)
        flat[i - 1] = dims[i];
    tn_value data = tn_reshape_dims(g, tn_expand_input(x, 0), rank - 1, flat);
    return tn_expand_set(x, 0, tn_gather(g, data, at, 0));
}

/* values[1] where the position along the new axis is the index, values[0] elsewhere (and for an index out of range). */
static tn_status expand_one_hot(tn_expand *x) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0) + 1, axis;
    tn_dim depth, dims[TN_MAX_RANK], ones[TN_MAX_RANK];
    TN_RULE(x, rank <= TN_MAX_RANK, "the result has rank %d: at most %d is supported", rank, TN_MAX_RANK);
    TN_TRY(tn_expand_axis(x, tn_expand_int(x, "axis"), rank, &axis));
    TN_TRY(tn_expand_single(x, 1, "depth"));
    TN_RULE(x, tn_expand_rank(x, 2) == 1 && !tn_dim_never_equal(g, tn_expand_dim(x, 2, 0), tn_size(x, 2)),
            "'values' must be two elements, [off, on]");
    if (tn_expand_contents_dims(x, 1, &depth, 1) != 1) {
        tn_tensor *t = tn_expand_constant(x, 1);
        if (!t || tn_tensor_count(t) != 1)
            return tn_expand_later(x, "needs the value of depth");
        double v = tn_tensor_get_f64(t, 0);
        TN_RULE(x, v >= 0 && v < 9e15, "'depth' is negative or too large");
        depth = tn_size(x, (int64_t)v);
    }
    TN_RULE(x, !tn_size_at_most(x, depth, -1), "'depth' is negative");
    for (int i = 0; i < rank; i++) {
        dims[i] = i == axis ? tn_size(x, 1) : tn_expand_dim(x, 0, i < axis ? i : i - 1);
        ones[i] = i == axis ? depth : tn_size(x, 1);
    }
    tn_value index = tn_reshape_dims(g, tn_cast(g, tn_expand_input(x, 0), TN_I64), rank, dims);
    tn_value wrapped = tn_add(g, index, tn_expand_size_value(x, depth, TN_I64));
    index = tn_select(g, tn_less(g, index, tn_scalar(g, TN_I64, 0)), wrapped, index);
    tn_dim two = tn_size(x, 2);
    tn_value values = tn_expand_input(x, 2), side[2];
    if (!tn_dim_equal(g, tn_expand_dim(x, 2, 0), two))
        values = tn_reshape_dims(g, values, 1, &two); /* which is where another number is refused */
    for (int i = 0; i < 2; i++)
        side[i] = tn_reshape_dims(g, tn_slice_axis(g, values, 0, i, 1), 0, NULL);
    tn_value hot = tn_equal(g, tn_iota(g, TN_I64, rank, ones, axis), index);
    return tn_expand_set(x, 0, tn_select(g, hot, side[1], side[0]));
}

static const tn_attr_spec axis_attrs[] = {TN_SPEC_INT("axis", 0), {0}};
static const tn_attr_spec nd_attrs[] = {TN_SPEC_INT("batch_dims", 0), {0}};
static const tn_attr_spec reverse_attrs[] = {TN_SPEC_INT("time_axis", 0), TN_SPEC_INT("batch_axis", 1), {0}};
static const tn_attr_spec hot_attrs[] = {TN_SPEC_INT("axis", -1), {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX("Gather", .since = 1, .inputs = {2, 2}, .outputs = {1, 1}, .attrs = axis_attrs, .expand = expand_gather),
    TN_ONNX("GatherElements", .since = 11, .inputs = {2, 2}, .outputs = {1, 1}, .attrs = axis_attrs,
            .expand = expand_gather_elements),
    TN_ONNX("GatherND", .since = 11, .inputs = {2, 2}, .outputs = {1, 1}, .attrs = nd_attrs,
            .expand = expand_gather_nd),
    TN_ONNX("ReverseSequence", .since = 10, .inputs = {2, 2}, .outputs = {1, 1}, .attrs = reverse_attrs,
            .expand = expand_reverse_sequence),
    TN_ONNX("OneHot", .since = 9, .inputs = {3, 3}, .outputs = {1, 1}, .attrs = hot_attrs, .expand = expand_one_hot),
};

const tn_onnx_family tn_onnx_family_gather = {rows, sizeof rows / sizeof *rows};
