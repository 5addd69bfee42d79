/* Composites of training and inference: normalisations, smooth activations, cross entropy; each defined in primitives by
   the plain builder functions. 16-bit floats are computed in f32 inside and rounded once at the end. */
#define TN_NO_POSITIONS
#include "ops/composite.h"

#include <tenon/build.h>

#include "ops/infer.h"
#include "ops/ops.h"
#include "ops/support.h"

#include <inttypes.h>

/* --- shared ------------------------------------------------------------------------------------------------------- */

static bool given(const tn_graph *g, tn_node node, uint32_t input) {
    return input < tn_node_input_count(g, node) && tn_node_input(g, node, input).id != 0;
}

/* x and the dtype of all inputs, which must agree with it. */
static tn_status infer_x(tn_infer *c, int least_rank, tn_operand_type *x) {
    tn_operand_type other;
    TN_TRY(tn_composite_same_type(c, true, x));
    if (x->rank < least_rank)
        return tn_infer_fail(c, "x has rank %d, at least %d is needed", x->rank, least_rank);
    for (uint32_t i = 1; i < tn_node_input_count(c->graph, c->node); i++)
        if (given(c->graph, c->node, i)) {
            TN_TRY(tn_infer_operand(c, i, &other));
            TN_TRY(tn_infer_same_dtype(c, x, &other));
        }
    return TN_OK;
}

/* Inputs [first, last) have one element for each channel (axis 1) of x. */
static tn_status infer_channels(tn_infer *c, const tn_operand_type *x, uint32_t first, uint32_t last) {
    tn_operand_type v;
    char a[64], b[64];
    for (uint32_t i = first; i < last; i++) {
        if (!given(c->graph, c->node, i))
            continue;
        TN_TRY(tn_infer_operand_rank(c, i, 1, &v));
        if (tn_dim_never_equal(c->graph, v.dims[0], x->dims[1]))
            return tn_infer_fail(c, "input %" PRIu32 " has %s elements for %s channels", i,
                                 tn_dim_describe(c->graph, v.dims[0], a, sizeof a),
                                 tn_dim_describe(c->graph, x->dims[1], b, sizeof b));
    }
    return TN_OK;
}

/* v [C] as wide as x, along its axis 1. */
static tn_value over_channels(tn_graph *g, tn_value v, tn_value x) {
    tn_dim dims[TN_MAX_RANK];
    int axes[TN_MAX_RANK], n = 0, rank = tn_value_rank(g, x);
    for (int i = 0; i < rank; i++) {
        dims[i] = tn_value_dim(g, x, i);
        if (i != 1)
            axes[n++] = i;
    }
    return tn_broadcast(g, tn_expand_dims(g, tn_composite_widen(g, v), (uint32_t)n, axes), rank, dims);
}

/* v, which broadcasts to x, as wide as x. */
static tn_value over_last(tn_graph *g, tn_value v, tn_value x) {
    tn_dim dims[TN_MAX_RANK];
    int rank = tn_value_rank(g, x);
    for (int i = 0; i < rank; i++)
        dims[i] = tn_value_dim(g, x, i);
    return tn_broadcast(g, tn_composite_widen(g, v), rank, dims);
}

static tn_value plus_epsilon(tn_graph *g, tn_node node, tn_value v) {
    return tn_add(g, v, tn_scalar_like(g, v, tn_attr_float(g, node, "epsilon")));
}

/* (x - mean) / sqrt(variance + epsilon) over axes [first, rank). */
static tn_value standardize(tn_graph *g, tn_node node, tn_value x, int first) {
    int axes[TN_MAX_RANK + 1], n = 0;
    for (int i = first; i < tn_value_rank(g, x); i++)
        axes[n++] = i;
    if (n == 0) /* each element is alone: its own mean */
        return tn_mul(g, tn_sub(g, x, x), tn_rsqrt(g, tn_scalar_like(g, x, tn_attr_float(g, node, "epsilon"))));
    tn_value d = tn_sub(g, x, tn_reduce_mean(g, x, (uint32_t)n, axes, true));
    tn_value variance = tn_reduce_mean(g, tn_mul(g, d, d), (uint32_t)n, axes, true);
    return tn_mul(g, d, tn_rsqrt(g, plus_epsilon(g, node, variance)));
}

/* --- layer_norm, rms_norm ----------------------------------------------------------------------------------------- */

/* Scale and bias, where given, broadcast to x. */
static tn_status layer_infer(tn_infer *c) {
    tn_operand_type x, v;
    tn_dim one = tn_dim_const(c->graph, 1);
    TN_TRY(infer_x(c, 1, &x));
    int64_t axis = tn_attr_int(c->graph, c->node, "axis");
    if (axis < -(int64_t)x.rank || axis >= x.rank)
        return tn_infer_fail(c, "axis is %" PRId64 ", but x has rank %d", axis, x.rank);
    for (uint32_t i = 1; i < tn_node_input_count(c->graph, c->node); i++) {
        if (!given(c->graph, c->node, i))
            continue;
        TN_TRY(tn_infer_operand(c, i, &v));
        bool fits = v.rank <= x.rank;
        for (int k = 0; fits && k < v.rank; k++)
            fits = !tn_dim_never_equal(c->graph, v.dims[k], x.dims[x.rank - v.rank + k]) ||
                   !tn_dim_never_equal(c->graph, v.dims[k], one);
        if (!fits) {
            char a[200], b[200];
            return tn_infer_fail(c, "input %" PRIu32 ", %s, does not broadcast to x, %s", i,
                                 tn_operand_describe(c, &v, a, sizeof a), tn_operand_describe(c, &x, b, sizeof b));
        }
    }
    return TN_OK;
}

static int layer_axis(tn_graph *g, tn_node node, tn_value x) {
    int64_t axis = tn_attr_int(g, node, "axis");
    return (int)(axis < 0 ? axis + tn_value_rank(g, x) : axis);
}

static tn_status layer_define(tn_graph *g, tn_node node, const tn_value *in, tn_value *out) {
    tn_value x = tn_composite_widen(g, in[0]);
    tn_value y = standardize(g, node, x, layer_axis(g, node, x));
    if (given(g, node, 1))
        y = tn_mul(g, y, over_last(g, in[1], x));
    if (given(g, node, 2))
        y = tn_add(g, y, over_last(g, in[2], x));
    return tn_composite_finish(g, y, in[0], out);
}

static tn_status rms_define(tn_graph *g, tn_node node, const tn_value *in, tn_value *out) {
    tn_value x = tn_composite_widen(g, in[0]);
    int axes[TN_MAX_RANK], n = 0;
    for (int i = layer_axis(g, node, x); i < tn_value_rank(g, x); i++)
        axes[n++] = i;
    tn_value square = tn_reduce_mean(g, tn_mul(g, x, x), (uint32_t)n, axes, true);
    tn_value y = tn_mul(g, x, tn_rsqrt(g, plus_epsilon(g, node, square)));
    if (given(g, node, 1))
        y = tn_mul(g, y, over_last(g, in[1], x));
    return tn_composite_finish(g, y, in[0], out);
}

/* --- group_norm, instance_norm, batch_norm ------------------------------------------------------------------------ */

static tn_status group_infer(tn_infer *c) {
    tn_operand_type x;
    int64_t groups = tn_attr_int(c->graph, c->node, "groups"), channels;
    TN_TRY(infer_x(c, 2, &x));
    if (groups < 1)
        return tn_infer_fail(c, "attribute 'groups' is %" PRId64, groups);
    if (tn_dim_is_const(c->graph, x.dims[1], &channels) && channels % groups != 0)
        return tn_infer_fail(c, "%" PRId64 " channels do not make %" PRId64 " groups", channels, groups);
    if (x.rank == TN_MAX_RANK)
        return tn_infer_fail(c, "x has rank %d, below %d is needed", x.rank, TN_MAX_RANK);
    return infer_channels(c, &x, 1, 3);
}

static tn_value affine_channels(tn_graph *g, tn_node node, const tn_value *in, tn_value y, tn_value x) {
    if (given(g, node, 1))
        y = tn_mul(g, y, over_channels(g, in[1], x));
    if (given(g, node, 2))
        y = tn_add(g, y, over_channels(g, in[2], x));
    return y;
}

static tn_status group_define(tn_graph *g, tn_node node, const tn_value *in, tn_value *out) {
    tn_value x = tn_composite_widen(g, in[0]);
    int rank = tn_value_rank(g, x);
    tn_dim whole[TN_MAX_RANK], parts[TN_MAX_RANK + 1], groups = tn_dim_const(g, tn_attr_int(g, node, "groups"));
    for (int i = 0; i < rank; i++)
        whole[i] = parts[i + 1] = tn_value_dim(g, x, i);
    parts[0] = tn_value_dim(g, x, 0);
    parts[1] = groups;
    parts[2] = tn_dim_floordiv(g, tn_value_dim(g, x, 1), groups);
    tn_value y = standardize(g, node, tn_reshape_dims(g, x, rank + 1, parts), 2);
    y = affine_channels(g, node, in, tn_reshape_dims(g, y, rank, whole), x);
    return tn_composite_finish(g, y, in[0], out);
}

static tn_status instance_infer(tn_infer *c) {
    tn_operand_type x;
    TN_TRY(infer_x(c, 2, &x));
    return infer_channels(c, &x, 1, 3);
}

static tn_status instance_define(tn_graph *g, tn_node node, const tn_value *in, tn_value *out) {
    tn_value x = tn_composite_widen(g, in[0]);
    return tn_composite_finish(g, affine_channels(g, node, in, standardize(g, node, x, 2), x), in[0], out);
}

static tn_status batch_infer(tn_infer *c) {
    tn_operand_type x;
    TN_TRY(infer_x(c, 2, &x));
    return infer_channels(c, &x, 1, 5);
}

static tn_status batch_define(tn_graph *g, tn_node node, const tn_value *in, tn_value *out) {
    tn_value x = tn_composite_widen(g, in[0]);
    tn_value factor = tn_rsqrt(g, plus_epsilon(g, node, tn_composite_widen(g, in[4])));
    factor = tn_mul(g, factor, tn_composite_widen(g, in[1]));
    tn_value y = tn_mul(g, tn_sub(g, x, over_channels(g, in[3], x)), over_channels(g, factor, x));
    return tn_composite_finish(g, tn_add(g, y, over_channels(g, in[2], x)), in[0], out);
}

/* --- activations -------------------------------------------------------------------------------------------------- */

static tn_status smooth_infer(tn_infer *c) {
    tn_operand_type x;
    return tn_composite_same_type(c, true, &x);
}

static tn_status silu_define(tn_graph *g, tn_node node, const tn_value *in, tn_value *out) {
    (void)node;
    tn_value x = tn_composite_widen(g, in[0]);
    return tn_composite_finish(g, tn_mul(g, x, tn_sigmoid(g, x)), in[0], out);
}

static tn_status hard_swish_define(tn_graph *g, tn_node node, const tn_value *in, tn_value *out) {
    (void)node;
    tn_value x = tn_composite_widen(g, in[0]);
    tn_value gate = tn_add(g, tn_mul(g, x, tn_scalar_like(g, x, 1.0 / 6)), tn_scalar_like(g, x, 0.5));
    gate = tn_max(g, tn_min(g, gate, tn_scalar_like(g, x, 1)), tn_scalar_like(g, x, 0));
    return tn_composite_finish(g, tn_mul(g, x, gate), in[0], out);
}

static tn_status mish_define(tn_graph *g, tn_node node, const tn_value *in, tn_value *out) {
    (void)node;
    tn_value x = tn_composite_widen(g, in[0]);
    /* softplus without overflow: max(x, 0) + log(1 + exp(-|x|)) */
    tn_value soft = tn_add(g, tn_max(g, x, tn_scalar_like(g, x, 0)), tn_log1p(g, tn_exp(g, tn_neg(g, tn_abs(g, x)))));
    return tn_composite_finish(g, tn_mul(g, x, tn_tanh(g, soft)), in[0], out);
}

/* --- cross_entropy ------------------------------------------------------------------------------------------------ */

static tn_status cross_entropy_infer(tn_infer *c) {
    tn_operand_type x, labels;
    TN_TRY(tn_composite_same_type(c, true, &x));
    if (x.rank < 1)
        return tn_infer_fail(c, "the logits are a scalar: the last axis must hold the classes");
    TN_TRY(tn_infer_operand_rank(c, 1, x.rank - 1, &labels));
    if (labels.dtype != TN_I64 && labels.dtype != TN_I32)
        return tn_infer_fail(c, "the labels are %s, they must be i64 or i32", tn_dtype_name(labels.dtype));
    tn_operand_type rows = x;
    rows.rank--;
    TN_TRY(tn_infer_merge_shape(c, &rows, &labels));
    return tn_infer_tensor(c, 0, x.dtype, rows.rank, rows.dims);
}

static tn_status cross_entropy_define(tn_graph *g, tn_node node, const tn_value *in, tn_value *out) {
    (void)node;
    int last = tn_value_rank(g, in[0]) - 1;
    tn_value x = tn_composite_widen(g, in[0]);
    tn_value d = tn_sub(g, x, tn_reduce_max(g, x, 1, &last, true));
    tn_value sum = tn_reduce_sum(g, tn_exp(g, d), 1, &last, false);
    tn_value chosen = tn_gather_elements(g, d, tn_expand_dims(g, in[1], 1, &last), last);
    return tn_composite_finish(g, tn_sub(g, tn_log(g, sum), tn_squeeze(g, chosen, 1, &last)), in[0], out);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

#define EPSILON \
    { .name = "epsilon", .kind = TN_ATTR_FLOAT, .f = 1e-5 }
static const tn_attr_spec layer_attrs[] = {{.name = "axis", .kind = TN_ATTR_INT, .i = -1}, EPSILON, {0}};
static const tn_attr_spec group_attrs[] = {{.name = "groups", .kind = TN_ATTR_INT, .required = true}, EPSILON, {0}};
static const tn_attr_spec norm_attrs[] = {EPSILON, {0}};

#define ROW(row, function, how, least, most, more, list, operands, text)                                             \
    {                                                                                                                \
        .name = row, .dialect = TN_DIALECT_COMPOSITE, .min_inputs = (least), .max_inputs = (most), .min_outputs = 1, \
        .max_outputs = 1, .traits = (more), .attrs = (list), .inputs = operands, .doc = text,                        \
        .infer = function##_infer, .define = how##_define                                                            \
    }

static const tn_op rows[] = {
    ROW("layer_norm", layer, layer, 1, 3, TN_OPTIONAL_INPUTS, layer_attrs, "x, scale, bias",
        "x with mean 0 and variance 1 over the axes from this one on, then scaled and moved."),
    ROW("rms_norm", layer, rms, 1, 2, TN_OPTIONAL_INPUTS, layer_attrs, "x, scale",
        "x divided by the root of its mean square over the axes from this one on, then scaled."),
    ROW("group_norm", group, group, 1, 3, TN_OPTIONAL_INPUTS, group_attrs, "x, scale, bias",
        "x [N, C, ...] with mean 0 and variance 1 in each group of channels, then scaled and moved by channel."),
    ROW("instance_norm", instance, instance, 1, 3, TN_OPTIONAL_INPUTS, norm_attrs, "x, scale, bias",
        "x [N, C, ...] with mean 0 and variance 1 in each channel, then scaled and moved by channel."),
    ROW("batch_norm", batch, batch, 5, 5, 0, norm_attrs, "x, scale, bias, mean, variance",
        "x [N, C, ...] normalised by the mean and variance given for each channel, then scaled and moved."),
    ROW("silu", smooth, silu, 1, 1, TN_ELEMENTWISE, NULL, "x", "x sigmoid(x)."),
    ROW("hard_swish", smooth, hard_swish, 1, 1, TN_ELEMENTWISE, NULL, "x", "x min(max(x / 6 + 1/2, 0), 1)."),
    ROW("mish", smooth, mish, 1, 1, TN_ELEMENTWISE, NULL, "x", "x tanh(log(1 + exp(x)))."),
    ROW("cross_entropy", cross_entropy, cross_entropy, 2, 2, 0, NULL, "logits, labels",
        "-log softmax(logits)[label] along the last axis, for each label; negative labels count from the end."),
};
const tn_op_family tn_family_composite_norm = {rows, sizeof rows / sizeof *rows};

/* --- builders ----------------------------------------------------------------------------------------------------- */

/* Trailing inputs that are null are left out. */
static tn_value add(tn_graph *g, const char *row, uint32_t inputs, const tn_value *in, uint32_t attrs,
                    const tn_attr *attr) {
    while (inputs > 1 && in[inputs - 1].id == 0)
        inputs--;
    return tn_graph_add(g, row, inputs, in, attrs, attr);
}

tn_value tn_layer_norm(tn_graph *g, tn_value x, tn_value scale, tn_value bias, int axis, double epsilon) {
    const tn_value in[] = {x, scale, bias};
    const tn_attr attrs[] = {TN_A_INT("axis", axis), TN_A_FLOAT("epsilon", epsilon)};
    return add(g, "layer_norm", 3, in, 2, attrs);
}

tn_value tn_rms_norm(tn_graph *g, tn_value x, tn_value scale, int axis, double epsilon) {
    const tn_value in[] = {x, scale};
    const tn_attr attrs[] = {TN_A_INT("axis", axis), TN_A_FLOAT("epsilon", epsilon)};
    return add(g, "rms_norm", 2, in, 2, attrs);
}

tn_value tn_group_norm(tn_graph *g, tn_value x, tn_value scale, tn_value bias, int64_t groups, double epsilon) {
    const tn_value in[] = {x, scale, bias};
    const tn_attr attrs[] = {TN_A_INT("groups", groups), TN_A_FLOAT("epsilon", epsilon)};
    return add(g, "group_norm", 3, in, 2, attrs);
}

tn_value tn_instance_norm(tn_graph *g, tn_value x, tn_value scale, tn_value bias, double epsilon) {
    const tn_value in[] = {x, scale, bias};
    const tn_attr attr = TN_A_FLOAT("epsilon", epsilon);
    return add(g, "instance_norm", 3, in, 1, &attr);
}

tn_value tn_batch_norm(tn_graph *g, tn_value x, tn_value scale, tn_value bias, tn_value mean, tn_value variance,
                       double epsilon) {
    const tn_value in[] = {x, scale, bias, mean, variance};
    const tn_attr attr = TN_A_FLOAT("epsilon", epsilon);
    return tn_graph_add(g, "batch_norm", 5, in, 1, &attr);
}

tn_value tn_silu(tn_graph *g, tn_value x) {
    return tn_graph_add(g, "silu", 1, &x, 0, NULL);
}

tn_value tn_hard_swish(tn_graph *g, tn_value x) {
    return tn_graph_add(g, "hard_swish", 1, &x, 0, NULL);
}

tn_value tn_mish(tn_graph *g, tn_value x) {
    return tn_graph_add(g, "mish", 1, &x, 0, NULL);
}

tn_value tn_cross_entropy(tn_graph *g, tn_value logits, tn_value labels) {
    const tn_value in[] = {logits, labels};
    return tn_graph_add(g, "cross_entropy", 2, in, 0, NULL);
}
