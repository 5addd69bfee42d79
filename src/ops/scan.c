/* Rows along one axis: positions of extremes (argmax, argmin), running results (cumsum, cumprod, cummax, cummin). */
#include <inttypes.h>

#include "ops/fold.h"
#include "ops/ops.h"
#include "ops/plain.h"
#include "ops/support.h"

static tn_scalar_op operation(const tn_graph *graph, tn_node node) {
    return (tn_scalar_op)tn_node_op(graph, node)->code;
}

/* --- argmax, argmin ----------------------------------------------------------------------------------------------- */

static tn_status infer_arg(tn_infer *c) {
    tn_operand_type x;
    bool keep, last;
    int axis, rank = 0;
    int64_t size;
    tn_dim dims[TN_MAX_RANK];
    TN_TRY(tn_infer_operand(c, 0, &x));
    if (!(tn_scalar_class(x.dtype) & (TN_ADMIT_FLOAT | TN_ADMIT_INT | TN_ADMIT_BOOL)))
        return tn_infer_unsupported(c, "%s of %s", tn_node_op_name(c->graph, c->node), tn_dtype_name(x.dtype));
    TN_TRY(tn_infer_attr_axis(c, x.rank, &axis));
    TN_TRY(tn_infer_flag(c, "keepdims", &keep));
    TN_TRY(tn_infer_flag(c, "select_last", &last));
    if (tn_dim_is_const(c->graph, x.dims[axis], &size) && size == 0)
        return tn_infer_fail(c, "axis %d has no elements to choose from", axis);
    for (int i = 0; i < x.rank; i++)
        if (i != axis)
            dims[rank++] = x.dims[i];
        else if (keep)
            dims[rank++] = tn_dim_const(c->graph, 1);
    return tn_infer_tensor(c, 0, TN_I64, rank, dims);
}

typedef struct arg_work {
    const tn_tensor *x; /* contiguous */
    tn_lanes lanes;
    uint64_t flip; /* of keys: all ones for the smallest */
    bool last;
    tn_tensor *out;
} arg_work;

static void arg_lanes(void *ctx, int64_t begin, int64_t end) {
    const arg_work *w = ctx;
    tn_dtype dtype = (tn_dtype)w->x->dtype;
    for (int64_t lane = begin; lane < end; lane++) {
        int64_t first = lane / w->lanes.inner * w->lanes.length * w->lanes.inner + lane % w->lanes.inner, best = 0;
        uint64_t top = 0;
        for (int64_t k = 0; k < w->lanes.length; k++) {
            uint64_t key = tn_order_key(dtype, w->x->data, first + k * w->lanes.inner);
            if (key == UINT64_MAX && tn_dtype_is_float(dtype)) /* NaN is the extreme either way */
                key = w->flip ^ UINT64_MAX;
            key ^= w->flip;
            if (k == 0 || key > top || (w->last && key == top)) {
                top = key;
                best = k;
            }
        }
        tn_store_i64(TN_I64, w->out->data, lane, best);
    }
}

static tn_status eval_arg(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0);
    int axis = (int)tn_attr_int(e->graph, e->node, "axis"), rank = 0;
    bool keep = tn_attr_int(e->graph, e->node, "keepdims") != 0;
    int64_t dims[TN_MAX_RANK];
    if (x->dims[axis] == 0) /* also where there is nothing to choose for */
        return tn_eval_fail(e, TN_ERR_INPUT, "axis %d has no elements to choose from", axis);
    for (int i = 0; i < x->rank; i++)
        if (i != axis)
            dims[rank++] = x->dims[i];
        else if (keep)
            dims[rank++] = 1;
    arg_work w = {.lanes = tn_lanes_of(x->rank, x->dims, axis),
                  .flip = operation(e->graph, e->node) == TN_SCALAR_MIN ? UINT64_MAX : 0,
                  .last = tn_attr_int(e->graph, e->node, "select_last") != 0};
    w.out = tn_eval_result(e, 0, TN_I64, rank, dims);
    if (w.out == NULL)
        return tn_error_status();
    if (w.out->count == 0)
        return TN_OK;
    tn_tensor *flat = tn_eval_contiguous(e, x);
    if (flat == NULL)
        return tn_error_status();
    w.x = flat;
    tn_range_split(e->pool, w.out->count, 1 + (1 << 14) / w.lanes.length, arg_lanes, &w);
    tn_tensor_destroy(flat);
    return TN_OK;
}

/* --- running results ---------------------------------------------------------------------------------------------- */

static tn_status infer_cumulative(tn_infer *c) {
    tn_operand_type x;
    bool flag;
    int axis;
    TN_TRY(tn_infer_operand(c, 0, &x));
    if (!tn_scalar_admits(operation(c->graph, c->node), x.dtype))
        return tn_infer_unsupported(c, "%s of %s", tn_node_op_name(c->graph, c->node), tn_dtype_name(x.dtype));
    TN_TRY(tn_infer_attr_axis(c, x.rank, &axis));
    TN_TRY(tn_infer_flag(c, "exclusive", &flag));
    TN_TRY(tn_infer_flag(c, "reverse", &flag));
    return tn_infer_tensor(c, 0, x.dtype, x.rank, x.dims);
}

typedef struct cumulative {
    const tn_tensor *x;
    tn_tensor *out; /* both contiguous */
    tn_lanes lanes;
    tn_fold fold;
    bool exclusive, reverse;
} cumulative;

/* Lanes [begin, end), as many side by side as lie beside each other. */
static void run_lanes(void *ctx, int64_t begin, int64_t end) {
    const cumulative *w = ctx;
    tn_dtype dtype = (tn_dtype)w->x->dtype;
    tn_cell acc[TN_RUN], loaded[TN_RUN];
    int64_t inner = w->lanes.inner, length = w->lanes.length;
    while (begin < end) {
        int64_t n = end - begin, step = 1, first;
        if (inner > 1) {
            n = inner - begin % inner < n ? inner - begin % inner : n;
            first = begin / inner * length * inner + begin % inner;
        } else {
            step = length;
            first = begin * length;
        }
        n = n < TN_RUN ? n : TN_RUN;
        for (int64_t i = 0; i < n; i++)
            acc[i] = w->fold.identity;
        for (int64_t k = 0; k < length; k++) {
            int64_t at = first + (w->reverse ? length - 1 - k : k) * inner;
            tn_run_load(dtype, w->fold.domain, w->x->data, at, step, n, loaded);
            if (w->exclusive)
                tn_run_store(dtype, w->fold.domain, acc, n, w->out->data, at, step);
            w->fold.across(acc, loaded, n);
            if (!w->exclusive)
                tn_run_store(dtype, w->fold.domain, acc, n, w->out->data, at, step);
        }
        begin += n;
    }
}

static tn_status eval_cumulative(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0);
    cumulative w = {.lanes = tn_lanes_of(x->rank, x->dims, (int)tn_attr_int(e->graph, e->node, "axis")),
                    .exclusive = tn_attr_int(e->graph, e->node, "exclusive") != 0,
                    .reverse = tn_attr_int(e->graph, e->node, "reverse") != 0};
    if (!tn_fold_init(&w.fold, operation(e->graph, e->node), (tn_dtype)x->dtype))
        return tn_eval_fail(e, TN_ERR_UNSUPPORTED, "not supported: this running result of %s",
                            tn_dtype_name((tn_dtype)x->dtype));
    w.out = tn_eval_result(e, 0, (tn_dtype)x->dtype, x->rank, x->dims);
    if (w.out == NULL)
        return tn_error_status();
    if (w.out->count == 0)
        return TN_OK;
    tn_tensor *flat = tn_eval_contiguous(e, x);
    if (flat == NULL)
        return tn_error_status();
    w.x = flat;
    tn_range_split(e->pool, w.lanes.outer * w.lanes.inner, 16 + (1 << 14) / w.lanes.length, run_lanes, &w);
    tn_tensor_destroy(flat);
    return TN_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec arg_attrs[] = {{.name = "axis", .kind = TN_ATTR_INT, .required = true},
                                         {.name = "keepdims", .kind = TN_ATTR_INT},
                                         {.name = "select_last", .kind = TN_ATTR_INT},
                                         {0}};
static const tn_attr_spec cumulative_attrs[] = {{.name = "axis", .kind = TN_ATTR_INT, .required = true},
                                                {.name = "exclusive", .kind = TN_ATTR_INT},
                                                {.name = "reverse", .kind = TN_ATTR_INT},
                                                {0}};

#define ARG(row, ID, text)                                                                                            \
    {                                                                                                                 \
        .name = row, .min_inputs = 1, .max_inputs = 1, .min_outputs = 1, .max_outputs = 1, .traits = TN_EXACT,        \
        .attrs = arg_attrs, .inputs = "x", .doc = text, .infer = infer_arg, .eval = eval_arg, .code = TN_SCALAR_##ID, \
        .host = TN_HOST_EXTREME, .no_gradient = "a position does not depend on the elements"                          \
    }
#define CUMULATIVE(row, ID, exact, text)                                                                           \
    {                                                                                                              \
        .name = row, .min_inputs = 1, .max_inputs = 1, .min_outputs = 1, .max_outputs = 1, .traits = (exact),      \
        .attrs = cumulative_attrs, .inputs = "x", .doc = text, .infer = infer_cumulative, .eval = eval_cumulative, \
        .code = TN_SCALAR_##ID, .host = TN_HOST_RUNNING                                                            \
    }

static const tn_op rows[] = {
    ARG("argmax", MAX, "The position along the axis of the largest, of the first (select_last: last) such; NaN is it."),
    ARG("argmin", MIN,
        "The position along the axis of the smallest, of the first (select_last: last) such; NaN is it."),
    CUMULATIVE("cumsum", ADD, 0, "Sums of the elements up to each (exclusive: before it), from the front or the back."),
    CUMULATIVE("cumprod", MUL, 0, "Products of the elements up to each (exclusive: before it)."),
    CUMULATIVE("cummax", MAX, TN_EXACT, "The largest of the elements up to each (exclusive: before it); NaN stays."),
    CUMULATIVE("cummin", MIN, TN_EXACT, "The smallest of the elements up to each (exclusive: before it); NaN stays."),
};
const tn_op_family tn_family_scan = {rows, sizeof rows / sizeof *rows};
