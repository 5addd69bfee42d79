/* Elementwise comparisons: bool results; of strings too for equal and not_equal. */
#include "ops/elementwise.h"
#include "ops/ops.h"

static tn_string load_string(const void *data, int64_t index) {
    tn_string text;
    memcpy(&text, (const char *)data + index * (int64_t)sizeof text, sizeof text);
    return text;
}

/* ctx: const bool, the result where two strings are equal. */
static void compare_strings(void *ctx, int64_t n, void *const *data, const int64_t *strides) {
    bool when_equal = *(const bool *)ctx;
    for (int64_t i = 0; i < n; i++) {
        tn_string a = load_string(data[1], i * strides[1]), b = load_string(data[2], i * strides[2]);
        bool equal = a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
        ((uint8_t *)data[0])[i * strides[0]] = equal == when_equal;
    }
}

static tn_status eval_compare(tn_eval *e) {
    const tn_tensor *a = tn_eval_in(e, 0), *b = tn_eval_in(e, 1);
    if (a->dtype != TN_STRING)
        return tn_eval_elementwise(e);
    TN_TRY(tn_eval_same_shape(e, 0));
    tn_tensor *out = tn_eval_result(e, 0, TN_BOOL, a->rank, a->dims);
    if (out == NULL)
        return tn_error_status();
    bool when_equal = tn_node_op(e->graph, e->node)->code == TN_SCALAR_EQUAL;
    const tn_walk_operand operand[3] = {{out->data, out->strides, 1},
                                        {a->data, a->strides, sizeof(tn_string)},
                                        {b->data, b->strides, sizeof(tn_string)}};
    tn_walk_split(e->pool, out->rank, out->dims, 3, operand, compare_strings, &when_equal);
    return TN_OK;
}

/* The traits of each, as constants. */
enum {
#define X(ID, name, operands, traits, admits, boolean) TRAITS_##ID = TN_ELEMENTWISE | (traits),
    TN_SCALAR_COMPARE(X)
#undef X
};

#define ROW(ID, row_name, text)                                                                                 \
    {                                                                                                           \
        .name = #row_name, .dialect = TN_DIALECT_PRIMITIVE, .min_inputs = 2, .max_inputs = 2, .min_outputs = 1, \
        .max_outputs = 1, .traits = TRAITS_##ID, .inputs = "a, b", .doc = text, .infer = tn_infer_elementwise,  \
        .eval = eval_compare, .lowering = TN_LOWER_SCALAR, .code = TN_SCALAR_##ID,                              \
        .no_gradient = "a comparison is constant around almost every point"                                     \
    }

static const tn_op rows[] = {
    ROW(EQUAL, equal, "a = b; NaN equals nothing"),
    ROW(NOT_EQUAL, not_equal, "a is not b; true where either is NaN"),
    ROW(LESS, less, "a < b"),
    ROW(LESS_EQUAL, less_equal, "a <= b"),
    ROW(GREATER, greater, "a > b"),
    ROW(GREATER_EQUAL, greater_equal, "a >= b"),
};

#define X(ID, name, operands, traits, admits, boolean) +1
_Static_assert(sizeof rows / sizeof *rows == 0 TN_SCALAR_COMPARE(X), "a row for each scalar operation");
#undef X

const tn_op_family tn_family_compare = {rows, sizeof rows / sizeof *rows};
