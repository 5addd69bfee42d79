/* select, cast, bitcast. */
#include <math.h>

#include "ops/contents.h"
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/support.h"

/* --- select ------------------------------------------------------------------------------------------------------- */

static tn_status propagate_select(tn_infer *c, tn_value condition) {
    tn_contents a, b;
    uint8_t truth[TN_MAX_CONTENTS];
    tn_contents_input(c, 1, &a);
    tn_contents_input(c, 2, &b);
    if (a.n < 0 && b.n < 0)
        return TN_OK;
    int32_t n = a.n >= 0 ? a.n : b.n;
    if ((a.n >= 0 && b.n >= 0 && a.n != b.n))
        return TN_OK;
    if (!tn_contents_truth(c->graph, condition, n, truth))
        memset(truth, 2, (size_t)n);
    tn_contents result = {.n = n};
    for (int32_t i = 0; i < n; i++) {
        tn_dim left = a.n >= 0 ? a.dim[i] : (tn_dim){0}, right = b.n >= 0 ? b.dim[i] : (tn_dim){0};
        if (truth[i] == 2)
            result.dim[i] = left.id == right.id ? left : (tn_dim){0};
        else
            result.dim[i] = truth[i] ? left : right;
    }
    return tn_contents_set(c, &result);
}

static tn_status infer_select(tn_infer *c) {
    tn_operand_type condition, a, b;
    TN_TRY(tn_infer_operand(c, 0, &condition));
    TN_TRY(tn_infer_operand(c, 1, &a));
    TN_TRY(tn_infer_operand(c, 2, &b));
    if (condition.dtype != TN_BOOL)
        return tn_infer_fail(c, "the condition is %s, not bool", tn_dtype_name(condition.dtype));
    TN_TRY(tn_infer_admits(c, &a));
    TN_TRY(tn_infer_same_dtype(c, &a, &b));
    TN_TRY(tn_infer_merge_shape(c, &a, &b));
    tn_dtype dtype = a.dtype;
    a.dtype = TN_BOOL; /* as the message should call it */
    TN_TRY(tn_infer_merge_shape(c, &a, &condition));
    TN_TRY(tn_infer_tensor(c, 0, dtype, a.rank, a.dims));
    return propagate_select(c, condition.value);
}

static void select_row(void *ctx, int64_t n, void *const *data, const int64_t *strides) {
    size_t size = *(const size_t *)ctx;
    int64_t step[4] = {strides[0] * (int64_t)size, strides[1], strides[2] * (int64_t)size, strides[3] * (int64_t)size};
    char *out = data[0];
    const char *condition = data[1], *a = data[2], *b = data[3];
#define SELECT_RUN(bytes)           \
    for (int64_t i = 0; i < n; i++) \
    memcpy(out + i * step[0], condition[i * step[1]] ? a + i * step[2] : b + i * step[3], bytes)
    switch (size) {
    case 1: SELECT_RUN(1); break;
    case 2: SELECT_RUN(2); break;
    case 4: SELECT_RUN(4); break;
    case 8: SELECT_RUN(8); break;
    default: SELECT_RUN(size); break;
    }
}

static tn_status select_strings(tn_eval *e, tn_tensor *out) {
    const tn_tensor *condition = tn_eval_in(e, 0);
    for (int64_t i = 0; i < out->count; i++) {
        tn_string text;
        TN_TRY(tn_tensor_get_string(tn_eval_in(e, tn_tensor_get_i64(condition, i) != 0 ? 1 : 2), i, &text));
        TN_TRY(tn_tensor_set_string(out, i, text.data, text.length));
    }
    return TN_OK;
}

static tn_status eval_select(tn_eval *e) {
    const tn_tensor *condition = tn_eval_in(e, 0), *a = tn_eval_in(e, 1), *b = tn_eval_in(e, 2);
    TN_TRY(tn_eval_same_shape(e, 0));
    tn_tensor *out = tn_eval_result(e, 0, (tn_dtype)a->dtype, a->rank, a->dims);
    if (out == NULL)
        return tn_error_status();
    if (a->dtype == TN_STRING)
        return select_strings(e, out);
    size_t size = (size_t)tn_dtype_bits((tn_dtype)a->dtype) / 8;
    const tn_walk_operand operand[4] = {{out->data, out->strides, size},
                                        {condition->data, condition->strides, 1},
                                        {a->data, a->strides, size},
                                        {b->data, b->strides, size}};
    tn_walk_split(e->pool, out->rank, out->dims, 4, operand, select_row, &size);
    return TN_OK;
}

/* --- cast --------------------------------------------------------------------------------------------------------- */

/* 0 and 1 of a bool whose truth is known. */
static void read_truth(tn_infer *c, const tn_operand_type *x, tn_contents *out) {
    uint8_t truth[TN_MAX_CONTENTS];
    int64_t n = x->rank == 0 ? 1 : -1;
    out->n = -1;
    if (x->rank == 1 && !tn_dim_is_const(c->graph, x->dims[0], &n))
        n = -1;
    if (n < 0 || n > TN_MAX_CONTENTS || !tn_contents_truth(c->graph, x->value, (int32_t)n, truth))
        return;
    for (int32_t i = 0; i < n; i++) {
        if (truth[i] == 2)
            return;
        out->dim[i] = tn_dim_const(c->graph, truth[i]);
    }
    out->n = (int32_t)n;
}

static tn_status infer_cast(tn_infer *c) {
    tn_operand_type x;
    tn_contents contents;
    tn_dtype to = (tn_dtype)tn_attr_int(c->graph, c->node, "to");
    TN_TRY(tn_infer_operand(c, 0, &x));
    if (x.dtype == TN_STRING || to == TN_STRING || tn_dtype_is_complex(x.dtype) || tn_dtype_is_complex(to))
        return tn_infer_unsupported(c, "cast from %s to %s", tn_dtype_name(x.dtype), tn_dtype_name(to));
    if (tn_scalar_class(to) == 0)
        return tn_infer_fail(c, "cast to no element type (%d)", (int)to);
    TN_TRY(tn_infer_tensor(c, 0, to, x.rank, x.dims));
    tn_contents_input(c, 0, &contents);
    if (x.dtype == TN_BOOL)
        read_truth(c, &x, &contents);
    return tn_contents_set(c, &contents);
}

enum { ROUND_UP, ROUND_DOWN, ROUND_NEAREST };

typedef struct cast_work {
    tn_dtype from, to;
    tn_domain domain;
    bool odd; /* the last step is narrow_f8 below, not tn_run_store */
    bool saturate;
    int round;         /* of powers of two */
    const void *input; /* linear casts */
    void *output;
} cast_work;

/* To binary32 such that a later rounding to fewer than 23 bits is the right one: towards zero, last bit 1 if
   inexact. */
static float odd_f32(double value) {
    float near = (float)value;
    uint32_t bits;
    if (isnan(value) || (double)near == value)
        return near;
    memcpy(&bits, &near, sizeof bits);
    if (fabs((double)near) > fabs(value))
        bits--;
    bits |= 1;
    memcpy(&near, &bits, sizeof bits);
    return near;
}

/* The power of two below |value|, or the nearest (from the middle on, the upper); beyond the ends the end, without `saturate` NaN. */
static uint8_t power_of_two(double value, bool saturate, bool nearest) {
    int exponent;
    if (isnan(value) || isinf(value))
        return isnan(value) || !saturate ? 0xff : 0xfe;
    if (fabs(value) < 0x1p-127)
        return saturate ? 0 : 0xff;
    double fraction = frexp(fabs(value), &exponent); /* in [1/2, 1), times 2^exponent */
    exponent += 126 + (nearest && fraction >= 0.75);
    return exponent > 0xfe ? (saturate ? 0xfe : 0xff) : (uint8_t)exponent;
}

static double item_f64(const cast_work *work, const void *items, int64_t i) {
    if (work->domain == TN_DOMAIN_F64)
        return ((const double *)items)[i];
    if (work->domain == TN_DOMAIN_U64)
        return tn_odd_f64(((const uint64_t *)items)[i]);
    int64_t value = ((const int64_t *)items)[i];
    return value < 0 ? -tn_odd_f64(0 - (uint64_t)value) : tn_odd_f64((uint64_t)value);
}

/* 8-bit floats without saturation, and powers of two rounded other than up. */
static void narrow_f8(const cast_work *work, const void *items, int64_t n, void *to, int64_t first, int64_t stride) {
    for (int64_t i = 0; i < n; i++) {
        double value = item_f64(work, items, i);
        uint8_t *at = (uint8_t *)to + first + i * stride;
        if (work->to == TN_F8E8M0 && work->round != ROUND_UP)
            *at = power_of_two(value, work->saturate, work->round == ROUND_NEAREST);
        else
            *at = tn_f32_to_f8(work->to, odd_f32(value), work->saturate);
    }
}

static void cast_run(const cast_work *work, int64_t n, void *to, int64_t to_first, int64_t to_stride, const void *from,
                     int64_t from_first, int64_t from_stride) {
    union {
        double f64[TN_RUN];
        int64_t i64[TN_RUN];
        uint64_t u64[TN_RUN];
    } items;
    for (int64_t at = 0; at < n; at += TN_RUN) {
        int64_t count = n - at < TN_RUN ? n - at : TN_RUN;
        tn_run_load(work->from, work->domain, from, from_first + at * from_stride, from_stride, count, &items);
        if (work->odd)
            narrow_f8(work, &items, count, to, to_first + at * to_stride, to_stride);
        else
            tn_run_store(work->to, work->domain, &items, count, to, to_first + at * to_stride, to_stride);
    }
}

static void cast_row(void *ctx, int64_t n, void *const *data, const int64_t *strides) {
    cast_run(ctx, n, data[0], 0, strides[0], data[1], 0, strides[1]);
}

/* Contiguous on both sides, as packed elements are; pieces begin at whole bytes. */
static void cast_range(void *ctx, int64_t begin, int64_t end) {
    const cast_work *work = ctx;
    cast_run(work, end - begin, work->output, begin, 1, work->input, begin, 1);
}

static tn_status eval_cast(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0);
    tn_dtype from = (tn_dtype)x->dtype, to = (tn_dtype)tn_attr_int(e->graph, e->node, "to");
    cast_work work = {.from = from, .to = to, .saturate = tn_attr_int(e->graph, e->node, "saturate") != 0};
    work.domain = tn_dtype_is_float(from) ? TN_DOMAIN_F64 : tn_scalar_domain(TN_SCALAR_CAST, from);
    work.round = tn_attr_string_is(e->graph, e->node, "round_mode", "down")      ? ROUND_DOWN
                 : tn_attr_string_is(e->graph, e->node, "round_mode", "nearest") ? ROUND_NEAREST
                                                                                 : ROUND_UP;
    if (work.domain == TN_DOMAIN_COUNT || to == TN_STRING || tn_dtype_is_complex(to))
        return tn_eval_fail(e, TN_ERR_UNSUPPORTED, "not supported: cast from %s to %s", tn_dtype_name(from),
                            tn_dtype_name(to));
    if (tn_scalar_class(to) == TN_ADMIT_OTHER) /* 8-bit floats */
        work.odd = !work.saturate || (to == TN_F8E8M0 && work.round != ROUND_UP);
    tn_tensor *out = tn_eval_result(e, 0, to, x->rank, x->dims);
    if (out == NULL)
        return tn_error_status();
    if (!tn_dtype_is_subbyte(from) && !tn_dtype_is_subbyte(to)) {
        const tn_walk_operand operand[2] = {{out->data, out->strides, (size_t)tn_dtype_bits(to) / 8},
                                            {x->data, x->strides, (size_t)tn_dtype_bits(from) / 8}};
        tn_walk_split(e->pool, out->rank, out->dims, 2, operand, cast_row, &work);
        return TN_OK;
    }
    tn_tensor *packed = tn_eval_contiguous(e, x);
    if (packed == NULL)
        return tn_error_status();
    if (out->count > 0)
        memset(out->data, 0, tn_tensor_bytes(out)); /* the last byte may have bits of no element */
    work.input = packed->data;
    work.output = out->data;
    tn_range_split(e->pool, out->count, TN_RUN, cast_range, &work);
    tn_tensor_destroy(packed);
    return TN_OK;
}

/* --- bitcast ------------------------------------------------------------------------------------------------------ */

static tn_status infer_bitcast(tn_infer *c) {
    tn_operand_type x;
    tn_dtype to = (tn_dtype)tn_attr_int(c->graph, c->node, "to");
    TN_TRY(tn_infer_operand(c, 0, &x));
    TN_TRY(tn_infer_admits(c, &x));
    if (!tn_scalar_admits(TN_SCALAR_BITCAST, to) || (to == TN_BOOL && x.dtype != TN_BOOL))
        return tn_infer_fail(c, "bitcast to %s, whose bits not every element has", tn_dtype_name(to));
    if (tn_dtype_bits(to) != tn_dtype_bits(x.dtype))
        return tn_infer_fail(c, "bitcast from %s (%d bits) to %s (%d bits)", tn_dtype_name(x.dtype),
                             tn_dtype_bits(x.dtype), tn_dtype_name(to), tn_dtype_bits(to));
    return tn_infer_tensor(c, 0, to, x.rank, x.dims);
}

static void copy_row(void *ctx, int64_t n, void *const *data, const int64_t *strides) {
    int64_t size = (int64_t) * (const size_t *)ctx;
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)data[0] + i * strides[0] * size, (const char *)data[1] + i * strides[1] * size, (size_t)size);
}

static tn_status eval_bitcast(tn_eval *e) {
    const tn_tensor *x = tn_eval_in(e, 0);
    tn_tensor *out = tn_eval_result(e, 0, (tn_dtype)tn_attr_int(e->graph, e->node, "to"), x->rank, x->dims);
    if (out == NULL)
        return tn_error_status();
    if (x->contiguous) {
        if (x->count > 0)
            memcpy(out->data, x->data, tn_tensor_bytes(x));
        return TN_OK;
    }
    size_t size = (size_t)tn_dtype_bits((tn_dtype)x->dtype) / 8;
    const tn_walk_operand operand[2] = {{out->data, out->strides, size}, {x->data, x->strides, size}};
    tn_walk_split(e->pool, out->rank, out->dims, 2, operand, copy_row, &size);
    return TN_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec cast_attrs[] = {
    {.name = "to", .kind = TN_ATTR_DTYPE, .required = true},
    {.name = "saturate", .kind = TN_ATTR_INT, .i = 1},
    {.name = "round_mode", .kind = TN_ATTR_STRING, .s = "up", .allowed = "up|down|nearest"},
    {.name = NULL}};
static const tn_attr_spec bitcast_attrs[] = {{.name = "to", .kind = TN_ATTR_DTYPE, .required = true}, {.name = NULL}};

static const tn_op rows[] = {
    {.name = "select",
     .dialect = TN_DIALECT_PRIMITIVE,
     .min_inputs = 3,
     .max_inputs = 3,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_ELEMENTWISE | TN_EXACT,
     .inputs = "condition, a, b",
     .doc = "a where the condition is true, else b",
     .infer = infer_select,
     .eval = eval_select,
     .lowering = TN_LOWER_SCALAR,
     .code = TN_SCALAR_SELECT},
    {.name = "cast",
     .dialect = TN_DIALECT_PRIMITIVE,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_ELEMENTWISE | TN_EXACT,
     .attrs = cast_attrs,
     .inputs = "x",
     .doc = "converts: integers wrap, floats round to nearest even; float to integer truncates, then wraps while it "
            "fits in 64 "
            "bits, beyond is the type's extreme, NaN 0; 8-bit floats saturate or not; round_mode is of f8e8m0",
     .infer = infer_cast,
     .eval = eval_cast,
     .lowering = TN_LOWER_SCALAR,
     .code = TN_SCALAR_CAST},
    {.name = "bitcast",
     .dialect = TN_DIALECT_PRIMITIVE,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_ELEMENTWISE | TN_EXACT,
     .attrs = bitcast_attrs,
     .inputs = "x",
     .doc = "the same bits as another element type of the same width",
     .infer = infer_bitcast,
     .eval = eval_bitcast,
     .lowering = TN_LOWER_SCALAR,
     .code = TN_SCALAR_BITCAST,
     .no_gradient = "bits have no derivative"},
};

const tn_op_family tn_family_select_cast = {rows, sizeof rows / sizeof *rows};
