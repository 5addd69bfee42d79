/* Elementwise rows of one operand. */
#include <math.h>

#include "ops/elementwise.h"
#include "ops/ops.h"

static void is_any_inf(int64_t n, const void *const *in, void *out) {
    for (int64_t i = 0; i < n; i++)
        ((uint64_t *)out)[i] = isinf(((const double *)in[0])[i]) != 0;
}

static void is_positive_inf(int64_t n, const void *const *in, void *out) {
    for (int64_t i = 0; i < n; i++)
        ((uint64_t *)out)[i] = ((const double *)in[0])[i] == (double)INFINITY;
}

static void is_negative_inf(int64_t n, const void *const *in, void *out) {
    for (int64_t i = 0; i < n; i++)
        ((uint64_t *)out)[i] = ((const double *)in[0])[i] == -(double)INFINITY;
}

static void is_never_inf(int64_t n, const void *const *in, void *out) {
    (void)in;
    memset(out, 0, (size_t)n * sizeof(uint64_t));
}

static tn_status eval_is_inf(tn_eval *e) {
    bool positive = tn_attr_int(e->graph, e->node, "positive") != 0;
    bool negative = tn_attr_int(e->graph, e->node, "negative") != 0;
    return tn_eval_elementwise_with(e, TN_DOMAIN_F64,
                                    positive ? (negative ? is_any_inf : is_positive_inf)
                                             : (negative ? is_negative_inf : is_never_inf));
}

static const tn_attr_spec is_inf_attrs[] = {{.name = "positive", .kind = TN_ATTR_INT, .i = 1},
                                            {.name = "negative", .kind = TN_ATTR_INT, .i = 1},
                                            {.name = NULL}};

/* The traits of each, as constants. */
enum {
#define X(ID, name, operands, traits, admits, boolean) TRAITS_##ID = TN_ELEMENTWISE | (traits),
    TN_SCALAR_UNARY(X)
#undef X
};

#define ROW(ID, row_name, text)                                                                                 \
    {                                                                                                           \
        .name = #row_name, .dialect = TN_DIALECT_PRIMITIVE, .min_inputs = 1, .max_inputs = 1, .min_outputs = 1, \
        .max_outputs = 1, .traits = TRAITS_##ID, .inputs = "x", .doc = text, .infer = tn_infer_elementwise,     \
        .eval = tn_eval_elementwise, .lowering = TN_LOWER_SCALAR, .code = TN_SCALAR_##ID                        \
    }

static const tn_op rows[] = {
    ROW(NEG, neg, "-x; integers wrap"),
    ROW(ABS, abs, "|x|; the lowest integer stays itself"),
    ROW(SIGN, sign, "-1, 0 or 1; NaN stays NaN"),
    ROW(FLOOR, floor, "the largest whole number at most x"),
    ROW(CEIL, ceil, "the smallest whole number at least x"),
    ROW(ROUND, round, "to the nearest whole number, ties to even"),
    ROW(TRUNC, trunc, "the whole part, towards zero"),
    ROW(SQRT, sqrt, "square root"),
    ROW(RSQRT, rsqrt, "1 / sqrt(x)"),
    ROW(RECIPROCAL, reciprocal, "1 / x"),
    ROW(EXP, exp, "e to the power x"),
    ROW(EXPM1, expm1, "exp(x) - 1"),
    ROW(LOG, log, "natural logarithm"),
    ROW(LOG1P, log1p, "log(1 + x)"),
    ROW(SIN, sin, "sine of radians"),
    ROW(COS, cos, "cosine of radians"),
    ROW(TAN, tan, "tangent of radians"),
    ROW(ASIN, asin, "arc sine"),
    ROW(ACOS, acos, "arc cosine"),
    ROW(ATAN, atan, "arc tangent"),
    ROW(SINH, sinh, "hyperbolic sine"),
    ROW(COSH, cosh, "hyperbolic cosine"),
    ROW(TANH, tanh, "hyperbolic tangent"),
    ROW(ASINH, asinh, "inverse hyperbolic sine"),
    ROW(ACOSH, acosh, "inverse hyperbolic cosine"),
    ROW(ATANH, atanh, "inverse hyperbolic tangent"),
    ROW(ERF, erf, "Gauss error function"),
    ROW(SIGMOID, sigmoid, "1 / (1 + exp(-x))"),
    ROW(NOT, not, "logical not"),
    ROW(BIT_NOT, bit_not, "all bits inverted"),
    ROW(IS_NAN, is_nan, "whether x is NaN"),
    ROW(IS_FINITE, is_finite, "whether x is neither infinite nor NaN"),
    {.name = "is_inf",
     .dialect = TN_DIALECT_PRIMITIVE,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TRAITS_IS_INF,
     .attrs = is_inf_attrs,
     .inputs = "x",
     .doc = "whether x is infinite: positive, negative, or either, by the attributes",
     .infer = tn_infer_elementwise,
     .eval = eval_is_inf,
     .lowering = TN_LOWER_SCALAR,
     .code = TN_SCALAR_IS_INF},
};

#define X(ID, name, operands, traits, admits, boolean) +1
_Static_assert(sizeof rows / sizeof *rows == 0 TN_SCALAR_UNARY(X), "a row for each scalar operation");
#undef X

const tn_op_family tn_family_unary = {rows, sizeof rows / sizeof *rows};
