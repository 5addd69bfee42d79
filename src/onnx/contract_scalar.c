/* The way out of elementwise primitives. */
#define TN_NO_POSITIONS
#include <tenon/build.h>

#include "onnx/contract.h"

/* An operand as the operator may read it: what was repeated to the result's shape, where the operator repeats by itself. One other
   operand keeps the shape. */
static void unspread(const tn_contract *c, uint32_t count, tn_value *in) {
    uint32_t whole = 0;
    for (uint32_t i = 0; i < count; i++)
        whole += !tn_map_get(&c->spread, in[i].id, NULL);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t from;
        if (!tn_map_get(&c->spread, in[i].id, &from))
            continue;
        if (whole)
            in[i].id = (uint32_t)from;
        else
            whole = 1; /* this one stays */
    }
}

static tn_status elementwise(tn_contract *c) {
    const char *op = tn_contract_find(tn_node_op_name(c->g, c->node))->onnx;
    uint32_t count = tn_node_input_count(c->g, c->node);
    tn_value in[3];
    for (uint32_t i = 0; i < count; i++)
        in[i] = tn_c_in(c, i);
    if (count > 1)
        unspread(c, count, in);
    return tn_c_set(c, 0, tn_c_emit(c, op, count, in, 0, NULL, tn_c_type(c, 0)));
}

static tn_value scalar(tn_contract *c, double value) {
    return tn_scalar(c->g, tn_value_dtype(c->g, tn_c_in(c, 0)), value);
}

static tn_status trunc_(tn_contract *c) {
    tn_value x = tn_c_in(c, 0);
    tn_type type = tn_c_type(c, 0);
    tn_value below = tn_c_two(c, "Less", x, scalar(c, 0), tn_c_like(c, x, TN_BOOL));
    tn_value in[] = {below, tn_c_one(c, "Ceil", x, type), tn_c_one(c, "Floor", x, type)};
    return tn_c_set(c, 0, tn_c_emit(c, "Where", 3, in, 0, NULL, type));
}

static tn_status rsqrt(tn_contract *c) {
    tn_type type = tn_c_type(c, 0);
    return tn_c_set(c, 0, tn_c_one(c, "Reciprocal", tn_c_one(c, "Sqrt", tn_c_in(c, 0), type), type));
}

/* Elu is exp(x) - 1 below 0, without loss; above, exp(x) - 1 = -exp(x) (exp(-x) - 1). */
static tn_status expm1_(tn_contract *c) {
    tn_value x = tn_c_in(c, 0);
    tn_type type = tn_c_type(c, 0);
    tn_value below = tn_c_two(c, "Less", x, scalar(c, 0), tn_c_like(c, x, TN_BOOL));
    tn_value small = tn_c_one(c, "Elu", tn_c_one(c, "Neg", tn_c_one(c, "Abs", x, type), type), type);
    tn_value above = tn_c_two(c, "Mul", tn_c_one(c, "Neg", small, type), tn_c_one(c, "Exp", x, type), type);
    return tn_c_set(c, 0, tn_c_emit(c, "Where", 3, (tn_value[]){below, small, above}, 0, NULL, type));
}

/* With u = 1 + x rounded: x where u is 1, log(u) where x is large, else log(u) x / (u - 1). */
static tn_status log1p_(tn_contract *c) {
    tn_value x = tn_c_in(c, 0), one = scalar(c, 1);
    tn_type type = tn_c_type(c, 0), flag = tn_c_like(c, x, TN_BOOL);
    tn_value u = tn_c_two(c, "Add", x, one, type), log_u = tn_c_one(c, "Log", u, type);
    tn_value ratio = tn_c_two(c, "Div", x, tn_c_two(c, "Sub", u, one, type), type);
    tn_value large = tn_c_two(c, "Greater", x, scalar(c, 1024), flag);
    tn_value middle =
        tn_c_emit(c, "Where", 3, (tn_value[]){large, log_u, tn_c_two(c, "Mul", log_u, ratio, type)}, 0, NULL, type);
    tn_value tiny = tn_c_two(c, "Equal", u, one, flag);
    return tn_c_set(c, 0, tn_c_emit(c, "Where", 3, (tn_value[]){tiny, x, middle}, 0, NULL, type));
}

static tn_status is_inf(tn_contract *c) {
    tn_value x = tn_c_in(c, 0);
    tn_dtype dtype = tn_value_dtype(c->g, x);
    if (c->opset < 20 && dtype != TN_F32 && dtype != TN_F64)
        x = tn_c_cast(c, x, TN_F32);
    tn_attr attrs[] = {TN_A_INT("detect_positive", tn_attr_int(c->g, c->node, "positive")),
                       TN_A_INT("detect_negative", tn_attr_int(c->g, c->node, "negative"))};
    return tn_c_set(c, 0, tn_c_emit(c, "IsInf", 1, &x, 2, attrs, tn_c_type(c, 0)));
}

static tn_status is_finite(tn_contract *c) {
    tn_value x = tn_c_in(c, 0);
    tn_type flag = tn_c_type(c, 0);
    tn_value zero = tn_c_two(c, "Sub", x, x, tn_value_type(c->g, x)); /* NaN for infinities and NaN */
    return tn_c_set(c, 0, tn_c_one(c, "Not", tn_c_one(c, "IsNaN", zero, flag), flag));
}

static tn_status not_equal(tn_contract *c) {
    tn_value in[] = {tn_c_in(c, 0), tn_c_in(c, 1)};
    unspread(c, 2, in);
    return tn_c_set(c, 0, tn_c_one(c, "Not", tn_c_two(c, "Equal", in[0], in[1], tn_c_type(c, 0)), tn_c_type(c, 0)));
}

static bool is_float(const tn_contract *c) {
    return tn_dtype_is_float(tn_value_dtype(c->g, tn_c_in(c, 0)));
}

static tn_status mod(tn_contract *c) {
    tn_value a = tn_c_in(c, 0), b = tn_c_in(c, 1);
    tn_type type = tn_c_type(c, 0);
    if (!is_float(c))
        return tn_c_set(c, 0, tn_c_two(c, "Mod", a, b, type));
    /* fmod has the sign of a: one step of b where the signs differ */
    tn_value rem = tn_c_emit(c, "Mod", 2, (tn_value[]){a, b}, 1, &TN_A_INT("fmod", 1), type);
    tn_type flag = tn_c_like(c, a, TN_BOOL);
    tn_value zero = scalar(c, 0), some = tn_c_one(c, "Not", tn_c_two(c, "Equal", rem, zero, flag), flag);
    tn_value differ =
        tn_c_two(c, "Xor", tn_c_two(c, "Less", rem, zero, flag), tn_c_two(c, "Less", b, zero, flag), flag);
    tn_value in[] = {tn_c_two(c, "And", some, differ, flag), tn_c_two(c, "Add", rem, b, type), rem};
    return tn_c_set(c, 0, tn_c_emit(c, "Where", 3, in, 0, NULL, type));
}

static tn_status rem_(tn_contract *c) {
    tn_value in[] = {tn_c_in(c, 0), tn_c_in(c, 1)};
    return tn_c_set(c, 0, tn_c_emit(c, "Mod", 2, in, 1, &TN_A_INT("fmod", 1), tn_c_type(c, 0)));
}

/* And, Or, Xor of bool; bit by bit of integers. */
static tn_status logic(tn_contract *c) {
    static const char *const names[][3] = {
        {"and", "And", "BitwiseAnd"}, {"or", "Or", "BitwiseOr"}, {"xor", "Xor", "BitwiseXor"}};
    tn_value in[] = {tn_c_in(c, 0), tn_c_in(c, 1)};
    bool flag = tn_value_dtype(c->g, in[0]) == TN_BOOL;
    unspread(c, 2, in);
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i][0], tn_node_op_name(c->g, c->node)) == 0)
            return tn_c_set(c, 0, tn_c_two(c, names[i][flag ? 1 : 2], in[0], in[1], tn_c_type(c, 0)));
    return TN_OK;
}

static tn_status shift(tn_contract *c) {
    tn_value in[] = {tn_c_in(c, 0), tn_c_in(c, 1)};
    tn_dtype dtype = tn_value_dtype(c->g, in[0]);
    bool left = strcmp(tn_node_op_name(c->g, c->node), "shl") == 0;
    if (tn_dtype_is_signed(dtype))
        return tn_c_unsupported(c, "BitShift is of unsigned integers");
    const char *direction = left ? "LEFT" : "RIGHT";
    return tn_c_set(
        c, 0,
        tn_c_emit(c, "BitShift", 2, in, 1, &TN_A_STRING("direction", direction, strlen(direction)), tn_c_type(c, 0)));
}

static tn_status cast(tn_contract *c) {
    tn_attr attrs[3] = {TN_A_INT("to", tn_attr_int(c->g, c->node, "to"))};
    uint32_t n = 1;
    tn_string mode = tn_attr_string(c->g, c->node, "round_mode");
    tn_value x = tn_c_in(c, 0);
    if (c->opset >= 19 && tn_node_attr(c->g, c->node, "saturate"))
        attrs[n++] = TN_A_INT("saturate", tn_attr_int(c->g, c->node, "saturate"));
    if (c->opset >= 24 && tn_node_attr(c->g, c->node, "round_mode"))
        attrs[n++] = TN_A_STRING("round_mode", mode.data, mode.length);
    return tn_c_set(c, 0, tn_c_emit(c, "Cast", 1, &x, n, attrs, tn_c_type(c, 0)));
}

static tn_status bitcast(tn_contract *c) {
    tn_value x = tn_c_in(c, 0);
    if (c->opset < 26)
        return tn_c_unsupported(c, "BitCast begins with operator set 26");
    return tn_c_set(
        c, 0, tn_c_emit(c, "BitCast", 1, &x, 1, &TN_A_INT("to", tn_attr_int(c->g, c->node, "to")), tn_c_type(c, 0)));
}

static tn_status string_cast(tn_contract *c) {
    tn_value x = tn_c_in(c, 0);
    tn_dtype to = tn_type_dtype(c->g, tn_c_type(c, 0));
    return tn_c_set(c, 0, tn_c_emit(c, "Cast", 1, &x, 1, &TN_A_INT("to", to), tn_c_type(c, 0)));
}

static tn_status silu(tn_contract *c) {
    tn_type type = tn_c_type(c, 0);
    return tn_c_set(c, 0, tn_c_two(c, "Mul", tn_c_in(c, 0), tn_c_one(c, "Sigmoid", tn_c_in(c, 0), type), type));
}

const tn_contract_row tn_contract_scalar[] = {
    {"neg", elementwise, "Neg"},
    {"abs", elementwise, "Abs"},
    {"sign", elementwise, "Sign"},
    {"floor", elementwise, "Floor"},
    {"ceil", elementwise, "Ceil"},
    {"round", elementwise, "Round"},
    {"trunc", trunc_, NULL},
    {"sqrt", elementwise, "Sqrt"},
    {"rsqrt", rsqrt, NULL},
    {"reciprocal", elementwise, "Reciprocal"},
    {"exp", elementwise, "Exp"},
    {"expm1", expm1_, NULL},
    {"log", elementwise, "Log"},
    {"log1p", log1p_, NULL},
    {"sin", elementwise, "Sin"},
    {"cos", elementwise, "Cos"},
    {"tan", elementwise, "Tan"},
    {"asin", elementwise, "Asin"},
    {"acos", elementwise, "Acos"},
    {"atan", elementwise, "Atan"},
    {"sinh", elementwise, "Sinh"},
    {"cosh", elementwise, "Cosh"},
    {"tanh", elementwise, "Tanh"},
    {"asinh", elementwise, "Asinh"},
    {"acosh", elementwise, "Acosh"},
    {"atanh", elementwise, "Atanh"},
    {"erf", elementwise, "Erf"},
    {"sigmoid", elementwise, "Sigmoid"},
    {"not", elementwise, "Not"},
    {"bit_not", elementwise, "BitwiseNot"},
    {"is_nan", elementwise, "IsNaN"},
    {"is_inf", is_inf, NULL},
    {"is_finite", is_finite, NULL},
    {"add", elementwise, "Add"},
    {"sub", elementwise, "Sub"},
    {"mul", elementwise, "Mul"},
    {"div", elementwise, "Div"},
    {"mod", mod, NULL},
    {"rem", rem_, NULL},
    {"pow", elementwise, "Pow"},
    {"min", elementwise, "Min"},
    {"max", elementwise, "Max"},
    {"and", logic, NULL},
    {"or", logic, NULL},
    {"xor", logic, NULL},
    {"shl", shift, NULL},
    {"shr", shift, NULL},
    {"equal", elementwise, "Equal"},
    {"not_equal", not_equal, NULL},
    {"less", elementwise, "Less"},
    {"less_equal", elementwise, "LessOrEqual"},
    {"greater", elementwise, "Greater"},
    {"greater_equal", elementwise, "GreaterOrEqual"},
    {"select", elementwise, "Where"},
    {"cast", cast, NULL},
    {"bitcast", bitcast, NULL},
    {"to_string", string_cast, NULL},
    {"from_string", string_cast, NULL},
    {"relu", elementwise, "Relu"},
    {"silu", silu, NULL},
    {"hard_swish", elementwise, "HardSwish"},
    {"mish", elementwise, "Mish"},
    {NULL, NULL, NULL},
};
