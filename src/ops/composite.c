/* The composites: relu, gelu, softmax, log_softmax, each defined in primitives by the plain builder functions. 16-bit floats are
   computed in f32 inside and rounded once at the end. */
#define TN_NO_POSITIONS
#include "ops/composite.h"

#include <tenon/build.h>

#include "ops/infer.h"
#include "ops/ops.h"

#include <inttypes.h>

/* --- types ---------------------------------------------------------------------------------------------------------------- */

tn_status tn_composite_same_type(tn_infer *c, bool floats_only, tn_operand_type *x) {
    char text[200];
    TN_TRY(tn_infer_operand(c, 0, x));
    bool ok = x->dtype == TN_F16 || x->dtype == TN_BF16 || x->dtype == TN_F32 || x->dtype == TN_F64 ||
              (!floats_only && tn_dtype_is_int(x->dtype) && !tn_dtype_is_subbyte(x->dtype));
    if (!ok)
        return tn_infer_fail(c, "takes %s, but x is %s", floats_only ? "floats" : "floats and integers",
                             tn_operand_describe(c, x, text, sizeof text));
    return tn_infer_tensor(c, 0, x->dtype, x->rank, x->dims);
}

static tn_status relu_infer(tn_infer *c) {
    tn_operand_type x;
    return tn_composite_same_type(c, false, &x);
}

static tn_status gelu_infer(tn_infer *c) {
    tn_operand_type x;
    return tn_composite_same_type(c, true, &x);
}

static tn_status softmax_infer(tn_infer *c) {
    tn_operand_type x;
    TN_TRY(tn_composite_same_type(c, true, &x));
    int64_t axis = tn_attr_int(c->graph, c->node, "axis");
    if (axis < -(int64_t)x.rank || axis >= x.rank)
        return tn_infer_fail(c, "axis is %" PRId64 ", but x has rank %d", axis, x.rank);
    return TN_OK;
}

/* --- definitions ------------------------------------------------------------------------------------------------------------- */

tn_value tn_composite_widen(tn_graph *g, tn_value x) {
    tn_dtype dtype = tn_value_dtype(g, x);
    return dtype == TN_F16 || dtype == TN_BF16 ? tn_cast(g, x, TN_F32) : x;
}

tn_status tn_composite_finish(tn_graph *g, tn_value y, tn_value like, tn_value *out) {
    *out = tn_cast(g, y, tn_value_dtype(g, like));
    return out->id ? TN_OK : tn_graph_check(g);
}

static tn_status relu_define(tn_graph *g, tn_node node, const tn_value *in, tn_value *out) {
    (void)node;
    return tn_composite_finish(g, tn_max(g, in[0], tn_scalar_like(g, in[0], 0)), in[0], out);
}

static tn_status gelu_define(tn_graph *g, tn_node node, const tn_value *in, tn_value *out) {
    tn_value x = tn_composite_widen(g, in[0]), phi;
    tn_value half = tn_scalar_like(g, x, 0.5), one = tn_scalar_like(g, x, 1);
    if (tn_attr_string_is(g, node, "approximate", "tanh")) {
        tn_value cube = tn_mul(g, tn_mul(g, x, x), x);
        tn_value inner = tn_add(g, x, tn_mul(g, tn_scalar_like(g, x, 0.044715), cube));
        phi = tn_tanh(g, tn_mul(g, tn_scalar_like(g, x, 0.79788456080286535588), inner)); /* sqrt(2 / pi) */
    } else {
        phi = tn_erf(g, tn_mul(g, x, tn_scalar_like(g, x, 0.70710678118654752440))); /* 1 / sqrt(2) */
    }
    return tn_composite_finish(g, tn_mul(g, x, tn_mul(g, half, tn_add(g, one, phi))), in[0], out);
}

static tn_status softmax_define(tn_graph *g, tn_node node, const tn_value *in, tn_value *out) {
    int axis = (int)tn_attr_int(g, node, "axis");
    tn_value x = tn_composite_widen(g, in[0]);
    tn_value e = tn_exp(g, tn_sub(g, x, tn_reduce_max(g, x, 1, &axis, true)));
    /* one division for all: the sum is at least 1 */
    tn_value part = tn_reciprocal(g, tn_reduce_sum(g, e, 1, &axis, true));
    return tn_composite_finish(g, tn_mul(g, e, part), in[0], out);
}

static tn_status log_softmax_define(tn_graph *g, tn_node node, const tn_value *in, tn_value *out) {
    int axis = (int)tn_attr_int(g, node, "axis");
    tn_value x = tn_composite_widen(g, in[0]);
    tn_value d = tn_sub(g, x, tn_reduce_max(g, x, 1, &axis, true));
    tn_value sum = tn_reduce_sum(g, tn_exp(g, d), 1, &axis, true);
    return tn_composite_finish(g, tn_sub(g, d, tn_log(g, sum)), in[0], out);
}

/* --- rows ---------------------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec gelu_attrs[] = {
    {.name = "approximate", .kind = TN_ATTR_STRING, .s = "none", .allowed = "none|tanh"}, {0}};
static const tn_attr_spec softmax_attrs[] = {{.name = "axis", .kind = TN_ATTR_INT, .i = -1}, {0}};

#define ROW(NAME, TRAITS, ATTRS, INFER, DEFINE, DOC)                                                           \
    {                                                                                                          \
        .name = NAME, .dialect = TN_DIALECT_COMPOSITE, .min_inputs = 1, .max_inputs = 1, .min_outputs = 1,     \
        .max_outputs = 1, .traits = (TRAITS), .attrs = (ATTRS), .inputs = "x", .doc = (DOC), .infer = (INFER), \
        .define = (DEFINE)                                                                                     \
    }

static const tn_op rows[] = {
    ROW("relu", TN_ELEMENTWISE | TN_IDEMPOTENT | TN_EXACT, NULL, relu_infer, relu_define, "max(x, 0)."),
    ROW("gelu", TN_ELEMENTWISE, gelu_attrs, gelu_infer, gelu_define, "x times the normal distribution function of x."),
    ROW("softmax", 0, softmax_attrs, softmax_infer, softmax_define, "exp(x) divided by its sum along the axis."),
    ROW("log_softmax", 0, softmax_attrs, softmax_infer, log_softmax_define, "The logarithm of softmax."),
};

const tn_op_family tn_family_composite = {rows, sizeof rows / sizeof rows[0]};

/* --- builders -------------------------------------------------------------------------------------------------------------------- */

tn_value tn_relu(tn_graph *g, tn_value x) {
    return tn_graph_add(g, "relu", 1, &x, 0, NULL);
}

tn_value tn_gelu(tn_graph *g, tn_value x) {
    return tn_graph_add(g, "gelu", 1, &x, 0, NULL);
}

tn_value tn_gelu_tanh(tn_graph *g, tn_value x) {
    tn_attr approximate = TN_A_STRING("approximate", "tanh", 4);
    return tn_graph_add(g, "gelu", 1, &x, 1, &approximate);
}

tn_value tn_softmax(tn_graph *g, tn_value x, int axis) {
    tn_attr a = TN_A_INT("axis", axis);
    return tn_graph_add(g, "softmax", 1, &x, 1, &a);
}

tn_value tn_log_softmax(tn_graph *g, tn_value x, int axis) {
    tn_attr a = TN_A_INT("axis", axis);
    return tn_graph_add(g, "log_softmax", 1, &x, 1, &a);
}
