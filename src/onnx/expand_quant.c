/* Quantising and dequantising: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear. Products are in expand_quant_product.c.

   A scale is one number, a list along an axis, or has one entry for each block of an axis. */
#include <inttypes.h>

#include "onnx/expand_quant.h"

/* --- what both files use ---------------------------------------------------------------------------------------------------- */

static bool is_float8(tn_dtype t) {
    return t == TN_F8E4M3FN || t == TN_F8E4M3FNUZ || t == TN_F8E5M2 || t == TN_F8E5M2FNUZ;
}

bool tn_quant_is_float(tn_dtype t) {
    return is_float8(t) || t == TN_F4E2M1;
}

bool tn_quant_is_type(tn_dtype t) {
    switch (t) {
    case TN_U8:
    case TN_I8:
    case TN_U16:
    case TN_I16:
    case TN_U4:
    case TN_I4:
    case TN_U2:
    case TN_I2: return true;
    default: return tn_quant_is_float(t);
    }
}

bool tn_quant_is_single(tn_expand *x, uint32_t input) {
    for (int i = 0; i < tn_expand_rank(x, input); i++)
        if (!tn_size_is(x, tn_expand_dim(x, input, i), 1))
            return false;
    return true;
}

bool tn_quant_may_be_single(tn_expand *x, uint32_t input) {
    for (int i = 0; i < tn_expand_rank(x, input); i++)
        if (tn_dim_never_equal(x->graph, tn_expand_dim(x, input, i), tn_size(x, 1)))
            return false;
    return true;
}

bool tn_quant_zero(tn_expand *x, uint32_t input) {
    if (!tn_expand_has(x, input))
        return true;
    tn_tensor *t = tn_expand_constant(x, input);
    if (!t)
        return false;
    for (int64_t i = 0; i < tn_tensor_count(t); i++)
        if (tn_tensor_get_f64(t, i) != 0) /* NOLINT: exactly zero */
            return false;
    return true;
}

tn_value tn_quant_saturate(tn_expand *x, tn_value y, tn_value zero, tn_dtype to, bool saturate) {
    tn_graph *g = x->graph;
    if (tn_quant_is_float(to)) {
        if (zero.id)
            y = tn_add(g, y, zero);
        const tn_attr attrs[] = {TN_A_DTYPE("to", to), TN_A_INT("saturate", saturate)};
        return tn_graph_add(g, "cast", 1, &y, 2, attrs);
    }
    y = tn_round(g, y);
    if (!y.id)
        return y;
    tn_dtype wide = tn_wide(tn_value_dtype(g, y)); /* sums with zero points are exact below the limits */
    y = tn_cast(g, y, wide);
    if (zero.id)
        y = tn_add(g, y, tn_cast(g, zero, wide));
    y = tn_max(g, y, tn_scalar(g, wide, (double)tn_dtype_min_i64(to)));
    y = tn_min(g, y, tn_scalar(g, wide, (double)tn_dtype_max_u64(to)));
    return tn_cast(g, y, to);
}

/* --- granularity ------------------------------------------------------------------------------------------------------------ */

typedef enum grain { WHOLE, ALONG_AXIS, BLOCKS } grain;

typedef struct granularity {
    grain grain;
    int rank, axis;
    int64_t block;
    tn_dim dims[TN_MAX_RANK]; /* of x */
    tn_dim blocks;
    bool split; /* whole blocks: x is seen as [..., blocks, block, ...] */
} granularity;

/* How the scale, input 1, and the zero point, input 2, go with input 0. */
static tn_status read_granularity(tn_expand *x, granularity *q) {
    tn_graph *g = x->graph;
    int scale = tn_expand_rank(x, 1);
    *q = (granularity){.rank = tn_expand_rank(x, 0), .block = tn_expand_int(x, "block_size")};
    for (int i = 0; i < q->rank; i++)
        q->dims[i] = tn_expand_dim(x, 0, i);
    TN_RULE(x, q->block >= 0 && q->block <= (int64_t)1 << 40, "attribute 'block_size' is %" PRId64, q->block);
    if (tn_expand_has(x, 2) && !(tn_quant_is_single(x, 1) && tn_quant_is_single(x, 2))) {
        if (tn_expand_rank(x, 2) != scale && tn_quant_may_be_single(x, 1) && tn_quant_may_be_single(x, 2))
            return tn_expand_later(x, "needs the sizes of scale and zero point");
        TN_RULE(x, tn_expand_rank(x, 2) == scale, "the scale has rank %d, the zero point rank %d: they must be alike",
                scale, tn_expand_rank(x, 2));
        for (int i = 0; i < scale; i++) {
            TN_RULE(x, !tn_dim_never_equal(g, tn_expand_dim(x, 1, i), tn_expand_dim(x, 2, i)),
                    "the scale and the zero point differ in size on axis %d", i);
            if (!tn_dim_equal(g, tn_expand_dim(x, 1, i), tn_expand_dim(x, 2, i)))
                return tn_expand_later(x, "needs the sizes of scale and zero point");
        }
    }
    TN_RULE(x, q->rank > 0 || tn_quant_may_be_single(x, 1), "the scale must be one number, as the input is");
    if (tn_quant_is_single(x, 1) || (q->rank == 0 && scale <= 1))
        return TN_OK;
    TN_RULE(x, x->version >= 13 || tn_quant_may_be_single(x, 1), "the scale must be one number before operator set 13");
    if (x->version < 13)
        return TN_OK;
    int64_t axis = tn_expand_int(x, "axis");
    bool fits = axis >= -q->rank && axis < q->rank && scale == (q->block ? q->rank : 1);
    if (!fits && tn_quant_may_be_single(x, 1) &&
        !x->final) /* of no matter for one number, which the scale may turn out to be */
        return tn_expand_later(x, "needs the sizes of the scale");
    TN_TRY(tn_expand_axis(x, axis, q->rank, &q->axis));
    if (!q->block) {
        TN_RULE(x, scale == 1, "the scale has rank %d: without 'block_size' it must be one number or a list", scale);
        TN_RULE(x,
                q->rank >= 1 &&
                    (tn_quant_may_be_single(x, 1) || !tn_dim_never_equal(g, tn_expand_dim(x, 1, 0), q->dims[q->axis])),
                "the scale must have one entry for each along axis %d of the input", q->axis);
        q->grain = ALONG_AXIS;
        return TN_OK;
    }
    TN_RULE(x, scale == q->rank, "the scale has rank %d: with 'block_size' it must be the input's, %d", scale, q->rank);
    q->grain = BLOCKS;
    q->blocks = tn_dim_ceildiv(g, q->dims[q->axis], tn_size(x, q->block));
    TN_SIZED(x, q->blocks);
    if (tn_quant_may_be_single(x, 1) && !x->final)
        return tn_expand_later(x, "needs the sizes of the scale");
    for (int i = 0; i < scale; i++)
        TN_RULE(x, !tn_dim_never_equal(g, tn_expand_dim(x, 1, i), i == q->axis ? q->blocks : q->dims[i]),
                "the scale's size on axis %d is not that of the input%s", i, i == q->axis ? " in blocks" : "");
    if (q->rank == TN_MAX_RANK)
        return tn_expand_unsupported(x, "blocks of a tensor of rank %d", q->rank);
    q->split = tn_dim_equal(g, tn_dim_mul(g, q->blocks, tn_size(x, q->block)), q->dims[q->axis]);
    return TN_OK;
}

/* x's dims with the axis as blocks of `block`. */
static void split_dims(tn_expand *x, const granularity *q, tn_dim *dims) {
    for (int i = 0, j = 0; i < q->rank; i++) {
        if (i != q->axis) {
            dims[j++] = q->dims[i];
        } else {
            dims[j++] = q->blocks;
            dims[j++] = tn_size(x, q->block);
        }
    }
}

/* Input 0 in the shape that scales are placed in; and back. */
static tn_value spread(tn_expand *x, const granularity *q, tn_value value) {
    tn_dim dims[TN_MAX_RANK];
    if (q->grain != BLOCKS || !q->split)
        return value;
    split_dims(x, q, dims);
    return tn_reshape_dims(x->graph, value, q->rank + 1, dims);
}
static tn_value join(tn_expand *x, const granularity *q, tn_value value) {
    return q->grain == BLOCKS && q->split ? tn_reshape_dims(x->graph, value, q->rank, q->dims) : value;
}

/* An input that goes with x, such that it broadcasts to it. */
static tn_value place(tn_expand *x, const granularity *q, uint32_t input, tn_dtype dtype) {
    tn_graph *g = x->graph;
    tn_value v = tn_cast(g, tn_expand_input(x, input), dtype);
    if (q->grain == WHOLE || tn_quant_is_single(x, input))
        return tn_reshape_dims(g, v, 0, NULL);
    if (q->grain == ALONG_AXIS) {
        v = tn_broadcast(g, v, 1, &q->dims[q->axis]);
        return tn_expand_along(x, v, q->rank, q->axis);
    }
    tn_dim own[TN_MAX_RANK], dims[TN_MAX_RANK];
    for (int i = 0; i < q->rank; i++)
        own[i] = i == q->axis ? q->blocks : q->dims[i];
    const int inner = q->axis + 1;
    v = tn_expand_dims(g, tn_fit(g, v, own), 1, &inner);
    if (q->split)
        return v;
    split_dims(x, q, dims); /* each entry as often as the block is long, the last block cut */
    v = tn_broadcast(g, v, q->rank + 1, dims);
    own[q->axis] = tn_dim_mul(g, q->blocks, tn_size(x, q->block));
    v = tn_reshape_dims(g, v, q->rank, own);
    return tn_expand_slice(x, v, q->axis, tn_size(x, 0), q->dims[q->axis], 1);
}

/* --- QuantizeLinear --------------------------------------------------------------------------------------------------------- */

/* The dtype that the division is done in. */
static tn_status division(tn_expand *x, tn_dtype *dtype) {
    int64_t precision = tn_expand_int(x, "precision");
    tn_dtype scale = tn_expand_dtype(x, 1), in = tn_expand_dtype(x, 0);
    TN_RULE(x, tn_is_float(in) || in == TN_I32, "the input is %s", tn_dtype_name(in));
    TN_RULE(x, tn_is_float(scale) || scale == TN_I32 || scale == TN_F8E8M0, "the scale is %s", tn_dtype_name(scale));
    TN_RULE(x, precision == 0 || (precision > 0 && precision < TN_DTYPE_COUNT && tn_is_float((tn_dtype)precision)),
            "attribute 'precision' is %" PRId64 ", which is no float type", precision);
    *dtype = precision            ? (tn_dtype)precision
             : tn_is_float(scale) ? scale
             : scale == TN_I32    ? TN_F64 /* quotients of i32 do not tie by rounding */
                                  : TN_F32;
    return TN_OK;
}

static tn_status output_dtype(tn_expand *x, tn_dtype *dtype) {
    int64_t asked = tn_expand_int(x, "output_dtype");
    tn_dtype zero = tn_expand_has(x, 2) ? tn_expand_dtype(x, 2) : TN_DTYPE_NONE;
    TN_RULE(x, !asked || !zero || asked == (int64_t)zero,
            "attribute 'output_dtype' is %" PRId64 ", but the zero point is %s", asked, tn_dtype_name(zero));
    if (!asked)
        asked = zero ? zero : TN_U8;
    TN_RULE(x, asked > 0 && asked < TN_DTYPE_COUNT, "attribute 'output_dtype' is %" PRId64 ", which is no element type",
            asked);
    TN_RULE(x, tn_quant_is_type((tn_dtype)asked), "%s is no quantised type", tn_dtype_name((tn_dtype)asked));
    *dtype = (tn_dtype)asked;
    return TN_OK;
}

static tn_status expand_quantize(tn_expand *x) {
    tn_graph *g = x->graph;
    granularity q;
    tn_dtype to = TN_U8, in = TN_F32;
    tn_value zero = {0};
    TN_TRY(division(x, &in));
    TN_TRY(output_dtype(x, &to));
    TN_TRY(read_granularity(x, &q));
    tn_value y = tn_cast(g, spread(x, &q, tn_expand_input(x, 0)), in);
    y = tn_div(g, y, place(x, &q, 1, in));
    /* adding 0 does nothing but to a float of -0 */
    if (!tn_quant_zero(x, 2) || (tn_quant_is_float(to) && tn_expand_has(x, 2)))
        zero = place(x, &q, 2, tn_quant_is_float(to) ? in : tn_wide(in));
    y = tn_quant_saturate(x, y, zero, to, !is_float8(to) || x->version < 19 || tn_expand_int(x, "saturate") != 0);
    return tn_expand_set(x, 0, join(x, &q, y));
}

/* --- DequantizeLinear ------------------------------------------------------------------------------------------------------- */

/* Differences and products in f32, rounded once: for all but i32 the differences are exact. */
static tn_status expand_dequantize(tn_expand *x) {
    tn_graph *g = x->graph;
    granularity q;
    tn_dtype from = tn_expand_dtype(x, 0), scale = tn_expand_dtype(x, 1);
    int64_t to = tn_expand_int(x, "output_dtype");
    TN_RULE(x, from == TN_I32 || tn_quant_is_type(from), "the input is %s, which is no quantised type",
            tn_dtype_name(from));
    TN_RULE(x, scale == TN_F32 || scale == TN_F16 || scale == TN_BF16 || scale == TN_F8E8M0, "the scale is %s",
            tn_dtype_name(scale));
    TN_RULE(x, to || scale != TN_F8E8M0, "attribute 'output_dtype' is missing: the scale's type, %s, cannot be it",
            tn_dtype_name(scale));
    to = to ? to : (int64_t)scale;
    TN_RULE(x, to == TN_F32 || to == TN_F16 || to == TN_BF16, "attribute 'output_dtype' is %" PRId64, to);
    TN_RULE(x, !tn_expand_has(x, 2) || tn_expand_dtype(x, 2) == from, "the input is %s, the zero point %s",
            tn_dtype_name(from), tn_dtype_name(tn_expand_dtype(x, 2)));
    TN_TRY(read_granularity(x, &q));
    tn_value y = spread(x, &q, tn_expand_input(x, 0));
    if (tn_quant_zero(x, 2)) {
        y = tn_cast(g, y, TN_F32);
    } else {
        tn_dtype in = from == TN_I32 ? TN_I64 : TN_F32;
        y = tn_cast(g, tn_sub(g, tn_cast(g, y, in), place(x, &q, 2, in)), TN_F32);
    }
    y = tn_cast(g, tn_mul(g, y, place(x, &q, 1, TN_F32)), (tn_dtype)to);
    return tn_expand_set(x, 0, join(x, &q, y));
}

/* --- DynamicQuantizeLinear -------------------------------------------------------------------------------------------------- */

/* The range, widened to hold 0, is divided into 255 steps. All zeros: scale 0, and zeros. */
static tn_status expand_dynamic(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_value in = tn_expand_input(x, 0);
    TN_RULE(x, tn_expand_dtype(x, 0) == TN_F32, "the input is %s, it must be f32",
            tn_dtype_name(tn_expand_dtype(x, 0)));
    tn_value zero = tn_scalar(g, TN_F32, 0), steps = tn_scalar(g, TN_F32, 255);
    tn_value high = tn_max(g, tn_reduce_max(g, in, TN_ALL_AXES, false), zero);
    tn_value low = tn_min(g, tn_reduce_min(g, in, TN_ALL_AXES, false), zero);
    tn_value scale = tn_div(g, tn_sub(g, high, low), steps);
    tn_value point = tn_sub(g, zero, tn_div(g, low, scale));
    point = tn_round(g, tn_min(g, tn_max(g, point, zero), steps));
    tn_value y = tn_quant_saturate(x, tn_div(g, in, scale), point, TN_U8, true);
    TN_TRY(tn_expand_set(x, 0, y));
    TN_TRY(tn_expand_set(x, 1, scale));
    return tn_expand_set(x, 2, tn_cast(g, point, TN_U8));
}

/* --- rows ------------------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec axis_attrs[] = {TN_SPEC_INT("axis", 1), {0}};
static const tn_attr_spec quantize_19_attrs[] = {TN_SPEC_INT("axis", 1), TN_SPEC_BOOL("saturate", 1), {0}};
static const tn_attr_spec quantize_21_attrs[] = {TN_SPEC_INT("axis", 1),
                                                 TN_SPEC_BOOL("saturate", 1),
                                                 TN_SPEC_INT("block_size", 0),
                                                 TN_SPEC_INT("output_dtype", 0),
                                                 {0}};
static const tn_attr_spec quantize_attrs[] = {TN_SPEC_INT("axis", 1),       TN_SPEC_BOOL("saturate", 1),
                                              TN_SPEC_INT("block_size", 0), TN_SPEC_INT("output_dtype", 0),
                                              TN_SPEC_INT("precision", 0),  {0}};
static const tn_attr_spec dequantize_21_attrs[] = {TN_SPEC_INT("axis", 1), TN_SPEC_INT("block_size", 0), {0}};
static const tn_attr_spec dequantize_attrs[] = {
    TN_SPEC_INT("axis", 1), TN_SPEC_INT("block_size", 0), TN_SPEC_INT("output_dtype", 0), {0}};

#define ROW(name, from, to, list, build)                                                          \
    TN_ONNX(name, .since = from, .until = to, .inputs = {2, 3}, .outputs = {1, 1}, .attrs = list, \
            .expand = expand_##build)

static const tn_onnx_op rows[] = {
    ROW("QuantizeLinear", 10, 12, NULL, quantize),
    ROW("QuantizeLinear", 13, 18, axis_attrs, quantize),
    ROW("QuantizeLinear", 19, 20, quantize_19_attrs, quantize),
    ROW("QuantizeLinear", 21, 22, quantize_21_attrs, quantize),
    ROW("QuantizeLinear", 23, 0, quantize_attrs, quantize),
    ROW("DequantizeLinear", 10, 12, NULL, dequantize),
    ROW("DequantizeLinear", 13, 20, axis_attrs, dequantize),
    ROW("DequantizeLinear", 21, 22, dequantize_21_attrs, dequantize),
    ROW("DequantizeLinear", 23, 0, dequantize_attrs, dequantize),
    TN_ONNX("DynamicQuantizeLinear", .since = 11, .inputs = {1, 1}, .outputs = {3, 3}, .expand = expand_dynamic),
};

const tn_onnx_family tn_onnx_family_quant = {rows, sizeof rows / sizeof *rows};
