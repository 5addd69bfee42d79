/* Products of quantised tensors: MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv.

   Operands less their zero points fit 16 bits; products are summed in i32, where sums wrap and nothing saturates. The sum is
   scaled in f64 by the quotient of the scales in f32, so that it is rounded once, to the integer. */
#include <inttypes.h>

#include "onnx/expand_quant.h"
#include "ops/builder.h"

static tn_status check_8_bits(tn_expand *x, uint32_t input, bool floats) {
    tn_dtype t = tn_expand_dtype(x, input);
    TN_RULE(x, t == TN_U8 || t == TN_I8 || (floats && tn_quant_is_float(t) && t != TN_F4E2M1), "input %u is %s",
            (unsigned)input, tn_dtype_name(t));
    return TN_OK;
}

static tn_status check_zero_point(tn_expand *x, uint32_t input, uint32_t of) {
    TN_RULE(x, !tn_expand_has(x, input) || tn_expand_dtype(x, input) == tn_expand_dtype(x, of),
            "input %u, a zero point, is %s, but what it is of is %s", (unsigned)input,
            tn_dtype_name(tn_expand_dtype(x, input)), tn_dtype_name(tn_expand_dtype(x, of)));
    return TN_OK;
}

/* One operand of a product. */
typedef struct operand {
    uint32_t value, zero; /* inputs; `zero` may be absent */
    tn_value point;       /* the zero point as it broadcasts to the operand; null: 0 */
} operand;

/* The dtype that both operands are multiplied in, and of the sum. */
static tn_dtype common_dtype(tn_expand *x, const operand *a, const operand *b, tn_dtype *sum) {
    tn_dtype p = tn_expand_dtype(x, a->value), q = tn_expand_dtype(x, b->value);
    if (tn_quant_is_float(p) || tn_quant_is_float(q))
        return *sum = TN_F32;
    *sum = TN_I32;
    return p == TN_I8 && q == TN_I8 && !a->point.id && !b->point.id ? TN_I8 : TN_I16;
}

static tn_value centred(tn_expand *x, const operand *o, tn_dtype dtype) {
    tn_value v = tn_cast(x->graph, tn_expand_input(x, o->value), dtype);
    return o->point.id ? tn_sub(x->graph, v, tn_cast(x->graph, o->point, dtype)) : v;
}

/* Scales the sum, a tensor, and quantises it as input `zero` says; `point` is that input as it broadcasts to the sum. */
static tn_value requantise(tn_expand *x, tn_value sum, tn_value factor, uint32_t zero, tn_value point) {
    tn_graph *g = x->graph;
    tn_value y = tn_mul(g, tn_cast(g, sum, TN_F64), tn_cast(g, factor, TN_F64));
    if (tn_quant_zero(x, zero))
        point = (tn_value){0};
    return tn_quant_saturate(x, y, point.id ? tn_cast(g, point, TN_F64) : point, tn_expand_dtype(x, zero), true);
}

/* --- matrix products --------------------------------------------------------------------------------------------------------- */

/* An input that belongs to the rows (else the columns) of a matrix input, such that it broadcasts to the matrices: one number,
   a list, or a tensor of the matrix' rank with 1 for the other axis. */
static tn_status of_lines(tn_expand *x, uint32_t input, uint32_t matrix, bool rows, tn_value *out) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, input), whole = tn_expand_rank(x, matrix);
    if (tn_quant_is_single(x, input) || (whole == 1 && rank == 1 && tn_quant_may_be_single(x, input))) {
        *out = tn_reshape_dims(g, tn_expand_input(x, input), 0, NULL);
        return TN_OK;
    }
    if ((whole < 2 || (rank != 1 && rank != whole)) && tn_quant_may_be_single(x, input) && !x->final)
        return tn_expand_later(x, "needs the sizes of scales and zero points");
    TN_RULE(x, whole >= 2 && (rank == 1 || rank == whole),
            "input %u has rank %d: it must be one number, a list, or have the rank of input %u, %d", (unsigned)input,
            rank, (unsigned)matrix, whole);
    TN_RULE(x, rank == 1 || !tn_dim_never_equal(g, tn_expand_dim(x, input, rows ? -1 : -2), tn_size(x, 1)),
            "input %u must have 1 entry along the %s axis", (unsigned)input, rows ? "last" : "last but one");
    TN_RULE(x,
            tn_quant_may_be_single(x, input) ||
                !tn_dim_never_equal(g, tn_expand_dim(x, input, rank == 1 || !rows ? -1 : -2),
                                    tn_expand_dim(x, matrix, rows ? -2 : -1)),
            "input %u must have one entry for each %s of input %u", (unsigned)input, rows ? "row" : "column",
            (unsigned)matrix);
    if (tn_expand_constant(x, input)) /* of the matrix' size also where nothing reads it */
        TN_TRY(tn_expand_hold(x, input, rank == 1 || !rows ? -1 : -2, tn_expand_dim(x, matrix, rows ? -2 : -1)));
    static const int last[1] = {1};
    tn_value v = tn_expand_input(x, input);
    tn_dim *dims = tn_expand_value_dims(x, v); /* one entry, or the lines of the matrix */
    if (!dims)
        return tn_error_status();
    dims[rank == 1 || !rows ? rank - 1 : rank - 2] = tn_expand_dim(x, matrix, rows ? -2 : -1);
    if (rank > 1)
        dims[rows ? rank - 1 : rank - 2] = tn_size(x, 1);
    v = tn_broadcast(g, v, rank, dims);
    *out = rank == 1 && rows ? tn_expand_dims(g, v, 1, last) : v;
    return TN_OK;
}

static tn_status check_inner(tn_expand *x, uint32_t a, uint32_t b) {
    int p = tn_expand_rank(x, a), q = tn_expand_rank(x, b);
    TN_RULE(x, p >= 1 && q >= 1, "an operand is a scalar");
    TN_RULE(x, !tn_dim_never_equal(x->graph, tn_expand_dim(x, a, -1), tn_expand_dim(x, b, q == 1 ? 0 : -2)),
            "the inner sizes of the product differ");
    return TN_OK;
}

static tn_status product(tn_expand *x, operand *a, operand *b, bool floats, tn_value *out) {
    tn_dtype sum;
    TN_TRY(check_8_bits(x, a->value, floats));
    TN_TRY(check_8_bits(x, b->value, floats));
    TN_TRY(check_zero_point(x, a->zero, a->value));
    TN_TRY(check_zero_point(x, b->zero, b->value));
    TN_TRY(check_inner(x, a->value, b->value));
    if (tn_expand_has(x, a->zero)) /* of the right size also when it is 0 */
        TN_TRY(of_lines(x, a->zero, a->value, true, &a->point));
    if (tn_quant_zero(x, a->zero))
        a->point = (tn_value){0};
    if (tn_expand_has(x, b->zero)) /* of the right size also when it is 0 */
        TN_TRY(of_lines(x, b->zero, b->value, false, &b->point));
    if (tn_quant_zero(x, b->zero))
        b->point = (tn_value){0};
    tn_dtype in = common_dtype(x, a, b, &sum);
    *out = tn_build_matmul(x->graph, centred(x, a, in), centred(x, b, in), sum == TN_I32 ? sum : TN_DTYPE_NONE);
    return TN_OK;
}

static tn_status expand_matmul_integer(tn_expand *x) {
    tn_value y;
    TN_TRY(product(x, &(operand){.value = 0, .zero = 2}, &(operand){.value = 1, .zero = 3}, false, &y));
    return tn_expand_set(x, 0, y);
}

/* A scale as a factor of the product: f32. Without columns in the product, those of the rows lose their last axis. */
static tn_status scale_of(tn_expand *x, uint32_t input, uint32_t matrix, bool rows, bool flat, tn_value *out) {
    tn_dtype t = tn_expand_dtype(x, input);
    TN_RULE(x, t == TN_F32 || t == TN_F16 || t == TN_BF16, "input %u, a scale, is %s", (unsigned)input,
            tn_dtype_name(t));
    TN_TRY(of_lines(x, input, matrix, rows, out));
    static const int last[1] = {-1};
    if (flat && out->id && tn_value_rank(x->graph, *out) > 0)
        *out = tn_squeeze(x->graph, *out, 1, last);
    *out = tn_cast(x->graph, *out, TN_F32);
    return TN_OK;
}

static tn_status expand_qlinear_matmul(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_value sum, a_scale, b_scale, point = tn_expand_input(x, 7), y_scale = tn_expand_input(x, 6);
    TN_TRY(product(x, &(operand){.value = 0, .zero = 2}, &(operand){.value = 3, .zero = 5}, true, &sum));
    TN_TRY(check_8_bits(x, 7, true));
    TN_RULE(x, tn_is_float(tn_expand_dtype(x, 6)), "input 6, a scale, is %s", tn_dtype_name(tn_expand_dtype(x, 6)));
    TN_TRY(scale_of(x, 1, 0, true, tn_expand_rank(x, 3) == 1, &a_scale));
    TN_TRY(scale_of(x, 4, 3, false, false, &b_scale));
    y_scale = tn_cast(g, y_scale, TN_F32);
    bool flat = y_scale.id && sum.id && tn_value_rank(g, sum) == 0;
    if (flat || tn_quant_is_single(x, 6))
        y_scale = tn_reshape_dims(g, y_scale, 0, NULL);
    if (flat || tn_quant_is_single(x, 7))
        point = tn_reshape_dims(g, point, 0, NULL);
    return tn_expand_set(x, 0, requantise(x, sum, tn_div(g, tn_mul(g, a_scale, b_scale), y_scale), 7, point));
}

/* --- convolutions ------------------------------------------------------------------------------------------------------------ */

/* An input that is one number, or (`channels` not null) one for each of them, as [n, 1, ...] of `rank` with n at `axis`. */
static tn_status of_channels(tn_expand *x, uint32_t input, tn_dim channels, int rank, int axis, tn_value *out) {
    tn_graph *g = x->graph;
    tn_value v = tn_expand_input(x, input);
    if (tn_quant_is_single(x, input) || (!channels.id && tn_quant_may_be_single(x, input))) {
        *out = tn_reshape_dims(g, v, 0, NULL);
        return TN_OK;
    }
    if (channels.id && tn_expand_rank(x, input) != 1 && tn_quant_may_be_single(x, input) && !x->final)
        return tn_expand_later(x, "needs the sizes of scales and zero points");
    TN_RULE(x, channels.id != 0, "input %u must be one number", (unsigned)input);
    TN_RULE(x,
            tn_expand_rank(x, input) == 1 &&
                (tn_quant_may_be_single(x, input) || !tn_dim_never_equal(g, tn_expand_dim(x, input, 0), channels)),
            "input %u must be one number, or one for each output channel", (unsigned)input);
    *out = tn_expand_along(x, tn_broadcast(g, v, 1, &channels), rank, axis);
    return TN_OK;
}

/* The sum [N, M, spatial...]; *channels: M. Padding is with zero points, which are zeros here. */
static tn_status convolution(tn_expand *x, operand *a, operand *b, tn_dim *channels, tn_value *out) {
    tn_graph *g = x->graph;
    tn_windows w;
    tn_dtype sum;
    int64_t groups = tn_expand_int(x, "group"), n;
    int rank = tn_expand_rank(x, a->value);
    TN_TRY(check_8_bits(x, a->value, false));
    TN_TRY(check_8_bits(x, b->value, false));
    TN_TRY(check_zero_point(x, a->zero, a->value));
    TN_TRY(check_zero_point(x, b->zero, b->value));
    TN_RULE(x, rank >= 3, "the input has rank %d: at least 3 are needed (batch, channels, spatial axes)", rank);
    TN_RULE(x, tn_expand_rank(x, b->value) == rank, "the weights have rank %d, the input rank %d: they must be equal",
            tn_expand_rank(x, b->value), rank);
    TN_RULE(x, groups >= 1 && groups <= INT32_MAX, "attribute 'group' is %" PRId64 ": it must be at least 1", groups);
    const tn_dim *weights = tn_expand_dims_copy(x, b->value);
    if (!weights)
        return tn_error_status();
    if (tn_dim_is_const(g, weights[0], &n))
        TN_RULE(x, n % groups == 0, "the weights have %" PRId64 " output channels: no multiple of 'group', %" PRId64, n,
                groups);
    TN_TRY(tn_expand_hold_multiple(x, b->value, 0, groups));
    tn_dim inputs = tn_dim_mul(g, weights[1], tn_size(x, groups));
    TN_SIZED(x, inputs);
    TN_RULE_SIZE(x, a->value, 1, inputs, "the input's channels are not 'group' times axis 1 of the weights");
    if (tn_quant_zero(x, b->zero) && tn_expand_has(x, b->zero) && tn_expand_rank(x, b->zero) == 1 &&
        !tn_quant_is_single(x, b->zero)) { /* nothing reads zeros: their number is the weights' all the same */
        TN_RULE_SIZE(x, b->zero, 0, weights[0], "input %u must be one number, or one for each output channel",
                     (unsigned)b->zero);
        weights = tn_expand_dims_copy(x, b->value);
        if (!weights)
            return tn_error_status();
    }
    TN_TRY(tn_expand_windows(x, &w, weights + 2, true, false));
    *channels = weights[0];
    if (tn_expand_has(x, a->zero)) /* of the right size also when it is 0 */
        TN_TRY(of_channels(x, a->zero, (tn_dim){0}, rank, 0, &a->point));
    if (tn_quant_zero(x, a->zero))
        a->point = (tn_value){0};
    if (tn_expand_has(x, b->zero)) /* of the right size also when it is 0 */
        TN_TRY(of_channels(x, b->zero, *channels, rank, 0, &b->point));
    if (tn_quant_zero(x, b->zero))
        b->point = (tn_value){0};
    tn_dtype in = common_dtype(x, a, b, &sum);
    *out = tn_build_conv(g, centred(x, a, in), centred(x, b, in), w.stride, w.dilation, NULL, w.lo, w.hi, groups, sum);
    return TN_OK;
}

static tn_status expand_conv_integer(tn_expand *x) {
    tn_dim channels;
    tn_value y;
    TN_TRY(convolution(x, &(operand){.value = 0, .zero = 2}, &(operand){.value = 1, .zero = 3}, &channels, &y));
    return tn_expand_set(x, 0, y);
}

static tn_status expand_qlinear_conv(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dim channels;
    tn_value sum, x_scale, w_scale, y_scale, point;
    int rank = tn_expand_rank(x, 0);
    TN_TRY(convolution(x, &(operand){.value = 0, .zero = 2}, &(operand){.value = 3, .zero = 5}, &channels, &sum));
    TN_TRY(check_8_bits(x, 7, false));
    for (uint32_t i = 1; i <= 6; i += i == 1 ? 3 : 2)
        TN_RULE(x, tn_expand_dtype(x, i) == TN_F32, "input %u, a scale, is %s, it must be f32", (unsigned)i,
                tn_dtype_name(tn_expand_dtype(x, i)));
    TN_TRY(of_channels(x, 1, (tn_dim){0}, rank, 1, &x_scale));
    TN_TRY(of_channels(x, 4, channels, rank, 1, &w_scale));
    TN_TRY(of_channels(x, 6, (tn_dim){0}, rank, 1, &y_scale));
    TN_TRY(of_channels(x, 7, (tn_dim){0}, rank, 1, &point));
    if (tn_expand_has(x, 8)) {
        TN_RULE(x, tn_expand_dtype(x, 8) == TN_I32, "the bias is %s, it must be i32",
                tn_dtype_name(tn_expand_dtype(x, 8)));
        TN_RULE(x, tn_expand_rank(x, 8) == 1 && !tn_dim_never_equal(g, tn_expand_dim(x, 8, 0), channels),
                "the bias must have one entry for each output channel");
        tn_value bias = tn_expand_listed(x, tn_expand_input(x, 8), channels);
        sum = tn_add(g, sum, tn_expand_along(x, bias, rank, 1));
    }
    return tn_expand_set(x, 0, requantise(x, sum, tn_div(g, tn_mul(g, x_scale, w_scale), y_scale), 7, point));
}

/* --- rows ------------------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec conv_attrs[] = {TN_SPEC_STRING("auto_pad", "NOTSET", "NOTSET|SAME_UPPER|SAME_LOWER|VALID"),
                                          TN_SPEC_INTS("dilations"),
                                          TN_SPEC_INT("group", 1),
                                          TN_SPEC_INTS("kernel_shape"),
                                          TN_SPEC_INTS("pads"),
                                          TN_SPEC_INTS("strides"),
                                          {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX("MatMulInteger", .since = 10, .inputs = {2, 4}, .outputs = {1, 1}, .expand = expand_matmul_integer),
    TN_ONNX("ConvInteger", .since = 10, .inputs = {2, 4}, .outputs = {1, 1}, .attrs = conv_attrs,
            .expand = expand_conv_integer),
    TN_ONNX("QLinearMatMul", .since = 10, .inputs = {8, 8}, .outputs = {1, 1}, .expand = expand_qlinear_matmul),
    TN_ONNX("QLinearConv", .since = 10, .inputs = {8, 9}, .outputs = {1, 1}, .attrs = conv_attrs,
            .expand = expand_qlinear_conv),
};

const tn_onnx_family tn_onnx_family_quant_product = {rows, sizeof rows / sizeof *rows};
