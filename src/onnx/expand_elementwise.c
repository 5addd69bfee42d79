/* Elementwise operators: arithmetic, comparison, logic, casts. Activations are in expand_activation.c. */
#include <inttypes.h>
#include <math.h>

#include "onnx/expand_common.h"

/* --- one operand ------------------------------------------------------------------------------------------------------------ */

#define UNARY(build)                                                             \
    static tn_status expand_##build(tn_expand *x) {                              \
        return tn_expand_set(x, 0, tn_##build(x->graph, tn_expand_input(x, 0))); \
    }
/* clang-format off */
UNARY(abs) UNARY(neg) UNARY(sign) UNARY(floor) UNARY(ceil) UNARY(round) UNARY(sqrt) UNARY(reciprocal) UNARY(exp)
UNARY(log) UNARY(sin) UNARY(cos) UNARY(tan) UNARY(asin) UNARY(acos) UNARY(atan) UNARY(sinh) UNARY(cosh) UNARY(tanh)
UNARY(asinh) UNARY(acosh) UNARY(atanh) UNARY(sigmoid) UNARY(not) UNARY(bit_not)
/* clang-format on */
#undef UNARY

    /* Whole numbers are admitted too: their values are those of f32, truncated. */
    static tn_status expand_erf(tn_expand *x) {
    tn_dtype dtype = tn_expand_dtype(x, 0), in = tn_is_float(dtype) ? dtype : TN_F32;
    tn_value y = tn_erf(x->graph, tn_cast(x->graph, tn_expand_input(x, 0), in));
    return tn_expand_set(x, 0, tn_cast(x->graph, y, dtype));
}

/* The input as a dtype that is_nan and is_inf take: 8-bit floats convert exactly. */
static tn_value float_input(tn_expand *x) {
    tn_dtype dtype = tn_expand_dtype(x, 0);
    return tn_is_float(dtype) ? tn_expand_input(x, 0) : tn_cast(x->graph, tn_expand_input(x, 0), TN_F32);
}

static tn_status expand_is_nan(tn_expand *x) {
    return tn_expand_set(x, 0, tn_is_nan(x->graph, float_input(x)));
}

static tn_status expand_is_inf(tn_expand *x) {
    bool positive = tn_expand_int(x, "detect_positive") != 0, negative = tn_expand_int(x, "detect_negative") != 0;
    return tn_expand_set(x, 0, tn_is_inf(x->graph, float_input(x), positive, negative));
}

static tn_status expand_identity(tn_expand *x) {
    return tn_expand_set(x, 0, tn_expand_input(x, 0));
}

/* --- two operands, broadcast as numpy does ------------------------------------------------------------------------------------ */

#define BINARY(build)                                                                                   \
    static tn_status expand_##build(tn_expand *x) {                                                     \
        return tn_expand_set(x, 0, tn_##build(x->graph, tn_expand_input(x, 0), tn_expand_input(x, 1))); \
    }
BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(div)
BINARY(and)
BINARY(or)
BINARY(xor) BINARY(equal) BINARY(less) BINARY(less_equal) BINARY(greater) BINARY(greater_equal)
#undef BINARY

    static tn_status expand_mod(tn_expand *x) {
    tn_value a = tn_expand_input(x, 0), b = tn_expand_input(x, 1);
    return tn_expand_set(x, 0, tn_expand_int(x, "fmod") ? tn_rem(x->graph, a, b) : tn_mod(x->graph, a, b));
}

/* Whether every element of a constant integer tensor is so small that a float of any width holds it and its parity. */
static bool small_constant(tn_expand *x, uint32_t input) {
    tn_tensor *t = tn_expand_constant(x, input);
    if (!t || tn_tensor_count(t) > 64)
        return false;
    for (int64_t i = 0; i < tn_tensor_count(t); i++) {
        int64_t v = tn_tensor_get_i64(t, i);
        if (v < -128 || v > 128)
            return false;
    }
    return true;
}

/* The dtypes of base and exponent may differ; the result has the base's. */
static tn_status expand_pow(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_value a = tn_expand_input(x, 0), b = tn_expand_input(x, 1);
    tn_dtype base = tn_expand_dtype(x, 0), power = tn_expand_dtype(x, 1), in = base;
    if (base != power) {
        if (tn_is_int(base) && tn_is_int(power))
            in = TN_I64; /* products wrap alike in every width */
        else if (tn_is_float(base) && tn_is_int(power) && small_constant(x, 1))
            in = base;
        else if (tn_is_float(base) && tn_is_float(power))
            in = base == TN_F64 || power == TN_F64 ? TN_F64 : TN_F32;
        else
            in = TN_F64;
    }
    return tn_expand_set(x, 0, tn_cast(g, tn_pow(g, tn_cast(g, a, in), tn_cast(g, b, in)), base));
}

static tn_status expand_bit_shift(tn_expand *x) {
    tn_value a = tn_expand_input(x, 0), b = tn_expand_input(x, 1);
    bool left = tn_expand_string_is(x, "direction", "LEFT");
    return tn_expand_set(x, 0, left ? tn_shl(x->graph, a, b) : tn_shr(x->graph, a, b));
}

/* The slope is broadcast to the input. */
static tn_status expand_prelu(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_value in = tn_expand_input(x, 0), slope;
    int rank = tn_expand_rank(x, 0);
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    if (!dims)
        return tn_error_status();
    int own = tn_expand_rank(x, 1);
    TN_TRY(tn_expand_spread_to(x, 1, "slope", rank, dims, &slope));
    for (int i = 0; i < own; i++) { /* where nothing is negative, too, and no slope is read */
        int axis = rank - own + i;
        tn_dim have = tn_expand_dim(x, 1, i);
        if (!tn_size_is(x, have, 1))
            in = tn_expand_sure(x, in, axis, tn_expand_spread(x, have, dims[axis]));
        TN_BUILT(x, in);
    }
    return tn_expand_set(x, 0, tn_select(g, tn_less(g, in, tn_scalar_like(g, in, 0)), tn_mul(g, slope, in), in));
}

/* --- any number of operands --------------------------------------------------------------------------------------------------- */

/* Before operator set 8 the operands have one shape. */
static tn_status check_same(tn_expand *x) {
    for (uint32_t i = 1; x->version < 8 && i < x->inputs; i++) {
        bool same = tn_expand_rank(x, i) == tn_expand_rank(x, 0);
        for (int k = 0; same && k < tn_expand_rank(x, 0); k++) {
            tn_dim a = tn_expand_dim(x, 0, k), b = tn_expand_dim(x, i, k);
            if (!tn_dim_equal(x->graph, a, b) && !x->final)
                return tn_expand_later(x, "needs the sizes of its inputs: they must be equal");
            same = tn_dim_equal(x->graph, a, b);
        }
        TN_RULE(x, same, "inputs 0 and %u differ in shape, which version %d does not broadcast", i, x->version);
    }
    return TN_OK;
}

static tn_value fold(tn_expand *x, tn_value (*combine)(tn_graph *, tn_value, tn_value)) {
    tn_value y = tn_expand_input(x, 0);
    for (uint32_t i = 1; i < x->inputs; i++)
        y = combine(x->graph, y, tn_expand_input(x, i));
    return y;
}

static tn_status expand_max(tn_expand *x) {
    TN_TRY(check_same(x));
    return tn_expand_set(x, 0, fold(x, tn_max));
}
static tn_status expand_min(tn_expand *x) {
    TN_TRY(check_same(x));
    return tn_expand_set(x, 0, fold(x, tn_min));
}
static tn_status expand_sum(tn_expand *x) {
    TN_TRY(check_same(x));
    return tn_expand_set(x, 0, fold(x, tn_add));
}
static tn_status expand_mean(tn_expand *x) {
    TN_TRY(check_same(x));
    tn_graph *g = x->graph;
    tn_dtype dtype = tn_expand_dtype(x, 0), in = tn_wide(dtype); /* rounded once */
    tn_value sum = tn_cast(g, tn_expand_input(x, 0), in);
    for (uint32_t i = 1; i < x->inputs; i++)
        sum = tn_add(g, sum, tn_cast(g, tn_expand_input(x, i), in));
    TN_BUILT(x, sum);
    return tn_expand_set(x, 0, tn_cast(g, tn_div(g, sum, tn_scalar(g, in, x->inputs)), dtype));
}

static tn_status expand_where(tn_expand *x) {
    return tn_expand_set(x, 0,
                         tn_select(x->graph, tn_expand_input(x, 0), tn_expand_input(x, 1), tn_expand_input(x, 2)));
}

/* --- clip ----------------------------------------------------------------------------------------------------------------------- */

/* A limit: a scalar by the text ("shape must be empty"). A list of one is taken for one, as ONNX Runtime does: exporters write it. */
static tn_status limit(tn_expand *x, uint32_t input, const char *name, tn_value *out) {
    int rank = tn_expand_rank(x, input);
    TN_RULE(x, rank <= 1, "'%s' has rank %d, it must be a scalar", name, rank);
    if (rank == 1)
        TN_RULE(x, !tn_dim_never_equal(x->graph, tn_expand_dim(x, input, 0), tn_size(x, 1)), "'%s' must be one number",
                name);
    *out = tn_reshape_dims(x->graph, tn_expand_input(x, input), 0, NULL);
    return TN_OK;
}

static tn_status expand_clip(tn_expand *x) {
    tn_value y = tn_expand_input(x, 0), bound;
    if (tn_expand_has(x, 1)) {
        TN_TRY(limit(x, 1, "min", &bound));
        y = tn_max(x->graph, y, bound);
    }
    if (tn_expand_has(x, 2)) {
        TN_TRY(limit(x, 2, "max", &bound));
        y = tn_min(x->graph, y, bound);
    }
    return tn_expand_set(x, 0, y);
}

/* --- casts ---------------------------------------------------------------------------------------------------------------------- */

static bool is_eight_bit_float(tn_dtype t) {
    return t == TN_F8E4M3FN || t == TN_F8E4M3FNUZ || t == TN_F8E5M2 || t == TN_F8E5M2FNUZ || t == TN_F8E8M0;
}

static tn_status cast_to(tn_expand *x, tn_dtype to) {
    tn_graph *g = x->graph;
    tn_value in = tn_expand_input(x, 0);
    tn_dtype from = tn_expand_dtype(x, 0);
    if (from == to)
        return tn_expand_set(x, 0, in);
    const tn_attr type[] = {TN_A_DTYPE("to", to)};
    if (to == TN_STRING)
        return tn_expand_set(x, 0, tn_graph_add(g, "to_string", 1, &in, 0, NULL));
    tn_string mode = tn_expand_string(x, "round_mode");
    bool up = to != TN_F8E8M0 || tn_expand_string_is(x, "round_mode", "up"),
         saturate = tn_expand_int(x, "saturate") != 0;
    if (from == TN_STRING && ((saturate && up) || !is_eight_bit_float(to)))
        return tn_expand_set(x, 0, tn_graph_add(g, "from_string", 1, &in, 1, type));
    if (from == TN_STRING) /* the number that the text is, cast as numbers are */
        in = tn_graph_add(g, "from_string", 1, &in, 1, &TN_A_DTYPE("to", TN_F64));
    if (saturate && up)
        return tn_expand_set(x, 0, tn_cast(g, in, to));
    const tn_attr attrs[] = {TN_A_DTYPE("to", to), TN_A_INT("saturate", saturate),
                             TN_A_STRING("round_mode", mode.data, mode.length)};
    return tn_expand_set(x, 0, tn_graph_add(g, "cast", 1, &in, up ? 2 : 3, attrs));
}

static tn_status expand_cast(tn_expand *x) {
    int64_t to = tn_expand_int(x, "to");
    TN_RULE(x, to > TN_DTYPE_NONE && to < TN_DTYPE_COUNT, "attribute 'to' is %" PRId64 ", which is no element type",
            to);
    return cast_to(x, (tn_dtype)to);
}

static tn_status expand_cast_like(tn_expand *x) {
    return cast_to(x, tn_expand_dtype(x, 1));
}

static tn_status expand_bit_cast(tn_expand *x) {
    int64_t to = tn_expand_int(x, "to");
    TN_RULE(x, to > TN_DTYPE_NONE && to < TN_DTYPE_COUNT && to != TN_STRING,
            "attribute 'to' is %" PRId64 ", which is no such type", to);
    TN_RULE(x, tn_dtype_bits((tn_dtype)to) == tn_dtype_bits(tn_expand_dtype(x, 0)),
            "%s and %s differ in their number of bits", tn_dtype_name(tn_expand_dtype(x, 0)),
            tn_dtype_name((tn_dtype)to));
    return tn_expand_set(x, 0, tn_bitcast(x->graph, tn_expand_input(x, 0), (tn_dtype)to));
}

/* --- rows ----------------------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec is_inf_attrs[] = {
    TN_SPEC_BOOL("detect_negative", 1), TN_SPEC_BOOL("detect_positive", 1), {0}};
static const tn_attr_spec mod_attrs[] = {TN_SPEC_BOOL("fmod", 0), {0}};
static const tn_attr_spec shift_attrs[] = {
    {.name = "direction", .kind = TN_ATTR_STRING, .required = true, .allowed = "LEFT|RIGHT"}, {0}};
static const tn_attr_spec cast_attrs[] = {TN_SPEC_NEEDED("to", TN_ATTR_INT),
                                          TN_SPEC_BOOL("saturate", 1),
                                          TN_SPEC_STRING("round_mode", "up", "up|down|nearest"),
                                          {0}};
static const tn_attr_spec cast_like_attrs[] = {
    TN_SPEC_BOOL("saturate", 1), TN_SPEC_STRING("round_mode", "up", "up|down|nearest"), {0}};
static const tn_attr_spec bit_cast_attrs[] = {TN_SPEC_NEEDED("to", TN_ATTR_INT), {0}};

#define ONE(name, from, build) \
    TN_ONNX(name, .since = from, .inputs = {1, 1}, .outputs = {1, 1}, .expand = expand_##build)
#define TWO(name, from, build) \
    TN_ONNX(name, .since = from, .inputs = {2, 2}, .outputs = {1, 1}, .expand = expand_##build)
#define MANY(name, build)                                                                               \
    TN_ONNX(name, .since = 1, .inputs = {1, TN_ONNX_ANY}, .outputs = {1, 1}, .flags = TN_ONNX_VARIADIC, \
            .expand = expand_##build)

static const tn_onnx_op rows[] = {
    ONE("Abs", 1, abs),
    ONE("Neg", 1, neg),
    ONE("Sign", 9, sign),
    ONE("Floor", 1, floor),
    ONE("Ceil", 1, ceil),
    ONE("Round", 11, round),
    ONE("Sqrt", 1, sqrt),
    ONE("Reciprocal", 1, reciprocal),
    ONE("Exp", 1, exp),
    ONE("Log", 1, log),
    ONE("Sin", 7, sin),
    ONE("Cos", 7, cos),
    ONE("Tan", 7, tan),
    ONE("Asin", 7, asin),
    ONE("Acos", 7, acos),
    ONE("Atan", 7, atan),
    ONE("Sinh", 9, sinh),
    ONE("Cosh", 9, cosh),
    ONE("Tanh", 1, tanh),
    ONE("Asinh", 9, asinh),
    ONE("Acosh", 9, acosh),
    ONE("Atanh", 9, atanh),
    ONE("Erf", 9, erf),
    ONE("Sigmoid", 1, sigmoid),
    ONE("Not", 1, not ),
    ONE("BitwiseNot", 18, bit_not),
    ONE("IsNaN", 9, is_nan),
    TN_ONNX("IsInf", .since = 10, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = is_inf_attrs, .expand = expand_is_inf),
    TN_ONNX("Identity", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .flags = TN_ONNX_UNRANKED,
            .expand = expand_identity),
    TWO("Add", 1, add),
    TWO("Sub", 1, sub),
    TWO("Mul", 1, mul),
    TWO("Div", 1, div),
    TWO("Pow", 1, pow),
    TWO("And", 1, and),
    TWO("Or", 1, or),
    TWO("Xor", 1, xor),
    TWO("Equal", 1, equal),
    TWO("Less", 1, less),
    TWO("Greater", 1, greater),
    TWO("LessOrEqual", 12, less_equal),
    TWO("GreaterOrEqual", 12, greater_equal),
    TWO("BitwiseAnd", 18, and),
    TWO("BitwiseOr", 18, or),
    TWO("BitwiseXor", 18, xor),
    TWO("PRelu", 1, prelu),
    TN_ONNX("Mod", .since = 10, .inputs = {2, 2}, .outputs = {1, 1}, .attrs = mod_attrs, .expand = expand_mod),
    TN_ONNX("BitShift", .since = 11, .inputs = {2, 2}, .outputs = {1, 1}, .attrs = shift_attrs,
            .expand = expand_bit_shift),
    MANY("Max", max),
    MANY("Min", min),
    MANY("Sum", sum),
    MANY("Mean", mean),
    TN_ONNX("Where", .since = 9, .inputs = {3, 3}, .outputs = {1, 1}, .expand = expand_where),
    TN_ONNX("Clip", .since = 1, .inputs = {1, 3}, .outputs = {1, 1}, .expand = expand_clip),
    TN_ONNX("Cast", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = cast_attrs, .expand = expand_cast),
    TN_ONNX("CastLike", .since = 15, .inputs = {2, 2}, .outputs = {1, 1}, .attrs = cast_like_attrs,
            .expand = expand_cast_like),
    TN_ONNX("BitCast", .since = 26, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = bit_cast_attrs,
            .expand = expand_bit_cast),
};

const tn_onnx_family tn_onnx_family_elementwise = {rows, sizeof rows / sizeof *rows};
