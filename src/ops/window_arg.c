/* window_arg_max: where in x the largest of each window stands. */
#include <inttypes.h>

#include "ops/ops.h"
#include "ops/plain.h"

static tn_status infer_window_arg(tn_infer *c) {
    tn_operand_type x;
    const int64_t *window, *stride, *dilation;
    const tn_dim *lo, *hi;
    tn_dim dims[TN_MAX_RANK];
    TN_TRY(tn_infer_operand(c, 0, &x));
    if (!(tn_scalar_class(x.dtype) & (TN_ADMIT_FLOAT | TN_ADMIT_INT | TN_ADMIT_BOOL)))
        return tn_infer_unsupported(c, "window_arg_max of %s", tn_dtype_name(x.dtype));
    TN_TRY(tn_infer_attr_ints(c, "window", x.rank, 1, &window));
    TN_TRY(tn_infer_attr_ints(c, "stride", x.rank, 1, &stride));
    TN_TRY(tn_infer_attr_ints(c, "dilation", x.rank, 1, &dilation));
    TN_TRY(tn_infer_attr_dims(c, "lo", x.rank, true, &lo, NULL));
    TN_TRY(tn_infer_attr_dims(c, "hi", x.rank, true, &hi, NULL));
    if (tn_attr_string_is(c->graph, c->node, "order", "column") && x.rank < 2)
        return tn_infer_fail(c, "order 'column' is of axes after the first two, x has rank %d", x.rank);
    for (int i = 0; i < x.rank; i++)
        TN_TRY(tn_infer_window(c, "axis", i, x.dims[i], lo[i], hi[i], tn_dim_const(c->graph, window[i]), stride[i],
                               dilation[i], &dims[i]));
    return tn_infer_tensor(c, 0, TN_I64, x.rank, dims);
}

typedef struct search {
    const tn_tensor *x;
    const int64_t *window, *dilation;
    int64_t number[TN_MAX_RANK]; /* how far a step along an axis moves in the numbering */
    int64_t corner[TN_MAX_RANK]; /* of the window, perhaps outside x */
    uint64_t key;
    int64_t best; /* -1: none yet */
} search;

/* Looks at the window's elements from `axis` on, in row-major order. */
static void look(search *s, int axis, int64_t offset, int64_t number) {
    const tn_tensor *x = s->x;
    if (axis == x->rank) {
        uint64_t key = tn_order_key((tn_dtype)x->dtype, x->data, offset);
        if (s->best < 0 || key > s->key) {
            s->best = number;
            s->key = key;
        }
        return;
    }
    int64_t n = x->dims[axis], corner = s->corner[axis], by = s->dilation[axis];
    int64_t k = corner >= 0 ? 0 : (-corner - 1) / by + 1, end = corner >= n ? 0 : (n - 1 - corner) / by + 1;
    if (end > s->window[axis])
        end = s->window[axis];
    for (; k < end; k++) {
        int64_t at = corner + k * by;
        look(s, axis + 1, offset + at * x->strides[axis], number + at * s->number[axis]);
    }
}

/* Row-major over the whole of x, or column-major over the axes after the first two. */
static void number_axes(const tn_tensor *x, bool column, int64_t *number) {
    int64_t next = 1;
    for (int k = 0; k < x->rank; k++) {
        int i = x->rank - 1 - k;
        if (column && i >= 2) /* axes 2, 3, ... in turn */
            i = 2 + k;
        number[i] = next;
        next *= x->dims[i];
    }
}

static tn_status eval_window_arg(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0);
    int64_t lo[TN_MAX_RANK], hi[TN_MAX_RANK], dims[TN_MAX_RANK];
    const int64_t *stride;
    search s = {.x = x};
    tn_attr_ints(e->graph, e->node, "window", &s.window);
    tn_attr_ints(e->graph, e->node, "stride", &stride);
    tn_attr_ints(e->graph, e->node, "dilation", &s.dilation);
    TN_TRY(tn_eval_sizes(e, "lo", x->rank, lo));
    TN_TRY(tn_eval_sizes(e, "hi", x->rank, hi));
    for (int i = 0; i < x->rank; i++)
        TN_TRY(tn_eval_window(e, "axis", i, x->dims[i], lo[i], hi[i], s.window[i], stride[i], s.dilation[i], &dims[i]));
    tn_tensor *out = tn_eval_result(e, 0, TN_I64, x->rank, dims);
    if (out == NULL)
        return tn_error_status();
    tn_cursor c;
    tn_cursor_begin(&c, x->rank, dims);
    if (x->count > 0)
        number_axes(x, tn_attr_string_is(e->graph, e->node, "order", "column"), s.number);
    for (int64_t i = 0; i < c.count; i++, tn_cursor_next(&c)) {
        s.best = -1;
        for (int k = 0; k < x->rank; k++)
            s.corner[k] = c.index[k] * stride[k] - lo[k];
        if (x->count > 0)
            look(&s, 0, 0, 0);
        tn_store_i64(TN_I64, out->data, i, s.best);
    }
    return TN_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec attrs[] = {{.name = "window", .kind = TN_ATTR_INTS, .required = true},
                                     {.name = "stride", .kind = TN_ATTR_INTS, .required = true},
                                     {.name = "dilation", .kind = TN_ATTR_INTS, .required = true},
                                     {.name = "lo", .kind = TN_ATTR_DIMS, .required = true},
                                     {.name = "hi", .kind = TN_ATTR_DIMS, .required = true},
                                     {.name = "order", .kind = TN_ATTR_STRING, .s = "row", .allowed = "row|column"},
                                     {0}};

static const tn_op rows[] = {
    {.name = "window_arg_max",
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_EXACT,
     .attrs = attrs,
     .inputs = "x",
     .doc =
         "The number (i64) in x of the first largest element of each window, NaN if there is one; -1 for a window of "
         "padding. Numbers are row-major, or column-major on the axes after the first two.",
     .infer = infer_window_arg,
     .eval = eval_window_arg,
     .no_gradient = "a position does not depend on the elements"},
};
const tn_op_family tn_family_window_arg = {rows, sizeof rows / sizeof *rows};
