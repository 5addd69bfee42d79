/* Activation functions. Those of several steps are computed in f32 for f16 and bf16 and rounded once. */
#include <math.h>

#include "onnx/expand_common.h"

/* The input in the wide dtype; the result in the input's. */
static tn_value wide(tn_expand *x) {
    return tn_cast(x->graph, tn_expand_input(x, 0), tn_wide(tn_expand_dtype(x, 0)));
}
static tn_status finish(tn_expand *x, tn_value y) {
    return tn_expand_set(x, 0, tn_cast(x->graph, y, tn_expand_dtype(x, 0)));
}
static tn_value number(tn_expand *x, tn_value like, double v) {
    return tn_scalar_like(x->graph, like, v);
}
static tn_value attribute(tn_expand *x, tn_value like, const char *name) {
    return number(x, like, tn_expand_float(x, name));
}

static tn_status expand_relu(tn_expand *x) {
    return tn_expand_set(x, 0, tn_relu(x->graph, tn_expand_input(x, 0)));
}

static tn_status expand_leaky_relu(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_value v = wide(x);
    return finish(x, tn_select(g, tn_less(g, v, number(x, v, 0)), tn_mul(g, v, attribute(x, v, "alpha")), v));
}

static tn_status expand_thresholded_relu(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_value v = wide(x);
    return finish(x, tn_select(g, tn_greater(g, v, attribute(x, v, "alpha")), v, number(x, v, 0)));
}

static tn_status expand_elu(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_value v = wide(x), below = tn_mul(g, attribute(x, v, "alpha"), tn_expm1(g, v));
    return finish(x, tn_select(g, tn_less(g, v, number(x, v, 0)), below, v));
}

/* max(0, x) + min(0, alpha * (exp(x / alpha) - 1)) */
static tn_status expand_celu(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_value v = wide(x), zero = number(x, v, 0), alpha = attribute(x, v, "alpha");
    tn_value below = tn_mul(g, alpha, tn_expm1(g, tn_div(g, v, alpha)));
    return finish(x, tn_add(g, tn_max(g, v, zero), tn_min(g, below, zero)));
}

static tn_status expand_selu(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_value v = wide(x), below = tn_mul(g, attribute(x, v, "alpha"), tn_expm1(g, v));
    return finish(x, tn_mul(g, attribute(x, v, "gamma"), tn_select(g, tn_less_equal(g, v, number(x, v, 0)), below, v)));
}

/* log(exp(x) + 1) without overflow. */
static tn_value softplus(tn_expand *x, tn_value v) {
    tn_graph *g = x->graph;
    return tn_add(g, tn_max(g, v, number(x, v, 0)), tn_log1p(g, tn_exp(g, tn_neg(g, tn_abs(g, v)))));
}

static tn_status expand_softplus(tn_expand *x) {
    return finish(x, softplus(x, wide(x)));
}

static tn_status expand_softsign(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_value v = wide(x);
    return finish(x, tn_div(g, v, tn_add(g, tn_abs(g, v), number(x, v, 1))));
}

/* max(0, min(1, alpha * x + beta)) */
static tn_value hard_sigmoid(tn_expand *x, tn_value v, double alpha, double beta) {
    tn_graph *g = x->graph;
    tn_value line = tn_add(g, tn_mul(g, v, number(x, v, alpha)), number(x, v, beta));
    return tn_max(g, tn_min(g, line, number(x, v, 1)), number(x, v, 0));
}

static tn_status expand_hard_sigmoid(tn_expand *x) {
    return finish(x, hard_sigmoid(x, wide(x), tn_expand_float(x, "alpha"), tn_expand_float(x, "beta")));
}

static tn_status expand_hard_swish(tn_expand *x) {
    tn_value v = wide(x);
    return finish(x, tn_mul(x->graph, v, hard_sigmoid(x, v, 1.0 / 6, 0.5)));
}

static tn_status expand_mish(tn_expand *x) {
    tn_value v = wide(x);
    return finish(x, tn_mul(x->graph, v, tn_tanh(x->graph, softplus(x, v))));
}

static tn_status expand_gelu(tn_expand *x) {
    tn_value v = tn_expand_input(x, 0);
    return tn_expand_set(
        x, 0, tn_expand_string_is(x, "approximate", "tanh") ? tn_gelu_tanh(x->graph, v) : tn_gelu(x->graph, v));
}

/* x * sigmoid(alpha * x) */
static tn_value swish(tn_expand *x, tn_value v) {
    tn_graph *g = x->graph;
    double alpha = tn_expand_float(x, "alpha");
    tn_value scaled = alpha == 1.0 ? v : tn_mul(g, v, number(x, v, alpha)); /* NOLINT: exactly one */
    return tn_mul(g, v, tn_sigmoid(g, scaled));
}

static tn_status expand_swish(tn_expand *x) {
    return finish(x, swish(x, wide(x)));
}

/* The first input through swish, times the second: of one shape, nothing is broadcast. */
static tn_status expand_swiglu(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dtype dtype = tn_expand_dtype(x, 0);
    int rank = tn_expand_rank(x, 0);
    TN_RULE(x, tn_expand_dtype(x, 1) == dtype && tn_expand_rank(x, 1) == rank, "'A' and 'B' differ in type or rank");
    for (int i = 0; i < rank; i++)
        TN_RULE_SAME(x, tn_expand_dim(x, 0, i), tn_expand_dim(x, 1, i), "'A' and 'B' differ on axis %d", i);
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    if (!dims)
        return tn_error_status();
    tn_value b = tn_cast(g, tn_expand_input(x, 1), tn_wide(dtype));
    return finish(x, tn_mul(g, swish(x, wide(x)), tn_reshape_dims(g, b, rank, dims)));
}

/* x + bias below -lambd, x - bias above lambd, else 0; of an integer's bias the fraction is dropped. */
static tn_status expand_shrink(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_value v = wide(x), probe = v;
    tn_dtype dtype = tn_wide(tn_expand_dtype(x, 0));
    double bias = tn_expand_float(x, "bias"), lambd = tn_expand_float(x, "lambd");
    if (tn_is_int(dtype)) /* -lambd has no value in unsigned types, nor a fraction in any */
        probe = tn_cast(g, v, TN_F64);
    bool beyond = fabs(bias) > (dtype == TN_U64 ? 0x1.fffffffffffffp63 : 0x1p63);
    if (tn_is_int(dtype) &&
        (beyond || bias != floor(bias))) { /* NOLINT: a fraction counts before the result is an integer again */
        v = probe;
        dtype = TN_F64;
    }
    static const int64_t least = INT64_MIN; /* 2^63, as what wraps has it */
    tn_value size = dtype == TN_I64 && fabs(bias) == 0x1p63 ? tn_constant_i64(g, 0, 1, &least) /* NOLINT */
                                                            : tn_cast(g, tn_scalar(g, TN_F64, fabs(bias)), dtype);
    tn_value up = tn_add(g, v, size), down = tn_sub(g, v, size);
    tn_value inner = tn_select(g, tn_greater(g, probe, number(x, probe, lambd)), bias < 0 ? up : down, number(x, v, 0));
    return finish(x, tn_select(g, tn_less(g, probe, number(x, probe, -lambd)), bias < 0 ? down : up, inner));
}

/* --- over one axis --------------------------------------------------------------------------------------------------------------- */

/* 1 at the first of the largest elements (a NaN counts as the largest), else 0. */
static tn_value hardmax(tn_expand *x, tn_value v, int axis) {
    tn_graph *g = x->graph;
    const tn_dim *dims = tn_expand_value_dims(x, v);
    if (!dims)
        return (tn_value){0};
    int rank = tn_value_rank(g, v);
    tn_value position = tn_iota(g, TN_I64, rank, dims, axis);
    const int64_t far = INT64_MAX;
    tn_value top = tn_or(g, tn_equal(g, v, tn_reduce_max(g, v, 1, &axis, true)), tn_is_nan(g, v));
    tn_value first = tn_reduce_min(g, tn_select(g, top, position, tn_constant_i64(g, 0, 1, &far)), 1, &axis, true);
    return tn_cast(g, tn_equal(g, position, first), tn_value_dtype(g, v));
}

/* Along "axis"; before operator set 13 over all axes from it, as one. */
static tn_status along_axis(tn_expand *x, tn_value (*build)(tn_expand *, tn_value, int)) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0), axis;
    tn_value v = tn_expand_input(x, 0);
    TN_RULE(x, rank > 0 || x->version < 11, "the input is a scalar: there is no axis");
    if (!x->row->until || rank == 0) {
        TN_TRY(tn_expand_axis(x, tn_expand_int(x, "axis"), rank + (rank == 0), &axis));
        if (rank == 0) {
            tn_dim one = tn_size(x, 1);
            return tn_expand_set(x, 0, tn_reshape_dims(g, build(x, tn_reshape_dims(g, v, 1, &one), 0), 0, NULL));
        }
        return tn_expand_set(x, 0, build(x, v, axis));
    }
    int64_t from = tn_expand_int(x, "axis"); /* rank is admitted too before version 11: each element for itself */
    if (from != rank || x->version >= 11)    /* which state the range */
        TN_TRY(tn_expand_axis(x, from, rank, &axis));
    else
        axis = rank;
    if (axis == rank - 1)
        return tn_expand_set(x, 0, build(x, v, axis));
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    if (!dims)
        return tn_error_status();
    return tn_expand_set(x, 0, tn_reshape_dims(g, build(x, tn_flatten(g, v, axis), 1), rank, dims));
}

static tn_value build_softmax(tn_expand *x, tn_value v, int axis) {
    return tn_softmax(x->graph, v, axis);
}
static tn_value build_log_softmax(tn_expand *x, tn_value v, int axis) {
    return tn_log_softmax(x->graph, v, axis);
}
static tn_status expand_softmax(tn_expand *x) {
    return along_axis(x, build_softmax);
}
static tn_status expand_log_softmax(tn_expand *x) {
    return along_axis(x, build_log_softmax);
}
static tn_status expand_hardmax(tn_expand *x) {
    return along_axis(x, hardmax);
}

/* --- rows ------------------------------------------------------------------------------------------------------------------------- */

/* The standard states these as float literals. */
#define SELU_ALPHA 1.67326319217681884765625
#define SELU_GAMMA 1.05070102214813232421875

static const tn_attr_spec leaky_attrs[] = {TN_SPEC_FLOAT("alpha", 0.01f), {0}};
static const tn_attr_spec alpha_attrs[] = {TN_SPEC_FLOAT("alpha", 1), {0}};
static const tn_attr_spec selu_attrs[] = {TN_SPEC_FLOAT("alpha", SELU_ALPHA), TN_SPEC_FLOAT("gamma", SELU_GAMMA), {0}};
static const tn_attr_spec selu_first_attrs[] = {TN_SPEC_FLOAT("alpha", 1.6732f), TN_SPEC_FLOAT("gamma", 1.0507f), {0}};
static const tn_attr_spec hard_attrs[] = {TN_SPEC_FLOAT("alpha", 0.2f), TN_SPEC_FLOAT("beta", 0.5), {0}};
static const tn_attr_spec gelu_attrs[] = {TN_SPEC_STRING("approximate", "none", "none|tanh"), {0}};
static const tn_attr_spec shrink_attrs[] = {TN_SPEC_FLOAT("lambd", 0.5), TN_SPEC_FLOAT("bias", 0), {0}};
static const tn_attr_spec axis_attrs[] = {TN_SPEC_INT("axis", -1), {0}};
static const tn_attr_spec axis_first_attrs[] = {TN_SPEC_INT("axis", 1), {0}};

#define ONE(name, from, list, build) \
    TN_ONNX(name, .since = from, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = list, .expand = expand_##build)
#define ONE_UNTIL(name, from, to, list, build)                                                    \
    TN_ONNX(name, .since = from, .until = to, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = list, \
            .expand = expand_##build)

static const tn_onnx_op rows[] = {
    ONE("Relu", 1, NULL, relu),
    ONE("LeakyRelu", 1, leaky_attrs, leaky_relu),
    ONE("ThresholdedRelu", 10, alpha_attrs, thresholded_relu),
    ONE("Elu", 1, alpha_attrs, elu),
    ONE("Celu", 12, alpha_attrs, celu),
    ONE("Selu", 6, selu_attrs, selu),
    ONE_UNTIL("Selu", 1, 5, selu_first_attrs, selu),
    ONE("Softplus", 1, NULL, softplus),
    ONE("Softsign", 1, NULL, softsign),
    ONE("HardSigmoid", 1, hard_attrs, hard_sigmoid),
    ONE("HardSwish", 14, NULL, hard_swish),
    ONE("Mish", 18, NULL, mish),
    ONE("Gelu", 20, gelu_attrs, gelu),
    ONE("Swish", 24, alpha_attrs, swish),
    TN_ONNX("SwiGLU", .since = 28, .inputs = {2, 2}, .outputs = {1, 1}, .attrs = alpha_attrs, .expand = expand_swiglu),
    ONE("Shrink", 9, shrink_attrs, shrink),
    ONE("Softmax", 13, axis_attrs, softmax),
    ONE_UNTIL("Softmax", 1, 12, axis_first_attrs, softmax),
    ONE("LogSoftmax", 13, axis_attrs, log_softmax),
    ONE_UNTIL("LogSoftmax", 1, 12, axis_first_attrs, log_softmax),
    ONE("Hardmax", 13, axis_attrs, hardmax),
    ONE_UNTIL("Hardmax", 1, 12, axis_first_attrs, hardmax),
};

const tn_onnx_family tn_onnx_family_activation = {rows, sizeof rows / sizeof *rows};
