/* Elementwise rows of two operands. */
#include "ops/elementwise.h"
#include "ops/ops.h"

/* The traits of each, as constants. */
enum {
#define X(ID, name, operands, traits, admits, boolean) TRAITS_##ID = TN_ELEMENTWISE | (traits),
    TN_SCALAR_BINARY(X)
#undef X
};

#define ROW(ID, row_name, text)                                                                                 \
    {                                                                                                           \
        .name = #row_name, .dialect = TN_DIALECT_PRIMITIVE, .min_inputs = 2, .max_inputs = 2, .min_outputs = 1, \
        .max_outputs = 1, .traits = TRAITS_##ID, .inputs = "a, b", .doc = text, .infer = tn_infer_elementwise,  \
        .eval = tn_eval_elementwise, .lowering = TN_LOWER_SCALAR, .code = TN_SCALAR_##ID                        \
    }

static const tn_op rows[] = {
    ROW(ADD, add, "a + b; integers wrap"),
    ROW(SUB, sub, "a - b; integers wrap"),
    ROW(MUL, mul, "a * b; integers wrap"),
    ROW(DIV, div, "a / b; integers truncate, x / 0 is 0, the lowest / -1 is itself"),
    ROW(MOD, mod, "a - b * floor(a / b), the sign of b; integers: x mod 0 is x"),
    ROW(REM, rem, "a - b * trunc(a / b), the sign of a; integers: x rem 0 is x"),
    ROW(POW, pow, "a to the power b; integers wrap, a negative power of other than 1 and -1 is 0"),
    ROW(MIN, min, "the smaller; NaN if either is, -0 below +0"),
    ROW(MAX, max, "the larger; NaN if either is, -0 below +0"),
    ROW(ATAN2, atan2, "angle of the point (b, a)"),
    ROW(AND, and, "and, of bool or bit by bit"),
    ROW(OR, or, "or, of bool or bit by bit"),
    ROW(XOR, xor, "exclusive or, of bool or bit by bit"),
    ROW(SHL, shl, "a shifted left by b bits; 0 when b is negative or the width or more"),
    ROW(SHR, shr, "a shifted right by b bits, signed ones with their sign; b negative or large: all bits out"),
};

#define X(ID, name, operands, traits, admits, boolean) +1
_Static_assert(sizeof rows / sizeof *rows == 0 TN_SCALAR_BINARY(X), "a row for each scalar operation");
#undef X

const tn_op_family tn_family_binary = {rows, sizeof rows / sizeof *rows};
