/* Window reductions: each result combines the elements of a strided, dilated window; padding is the identity. */
#include <inttypes.h>

#include "ops/fold.h"
#include "ops/ops.h"
#include "ops/support.h"

static tn_scalar_op operation(const tn_graph *graph, tn_node node) {
    return (tn_scalar_op)tn_node_op(graph, node)->code;
}

static tn_status infer_window(tn_infer *c) {
    tn_operand_type x;
    const int64_t *window, *stride, *dilation;
    const tn_dim *lo, *hi;
    tn_dim dims[TN_MAX_RANK];
    TN_TRY(tn_infer_operand(c, 0, &x));
    if (!tn_scalar_admits(operation(c->graph, c->node), x.dtype))
        return tn_infer_unsupported(c, "%s of %s", tn_node_op_name(c->graph, c->node), tn_dtype_name(x.dtype));
    TN_TRY(tn_infer_attr_ints(c, "window", x.rank, 1, &window));
    TN_TRY(tn_infer_attr_ints(c, "stride", x.rank, 1, &stride));
    TN_TRY(tn_infer_attr_ints(c, "dilation", x.rank, 1, &dilation));
    TN_TRY(tn_infer_attr_dims(c, "lo", x.rank, true, &lo, NULL));
    TN_TRY(tn_infer_attr_dims(c, "hi", x.rank, true, &hi, NULL));
    for (int i = 0; i < x.rank; i++)
        TN_TRY(tn_infer_window(c, "axis", i, x.dims[i], lo[i], hi[i], tn_dim_const(c->graph, window[i]), stride[i],
                               dilation[i], &dims[i]));
    return tn_infer_tensor(c, 0, x.dtype, x.rank, dims);
}

/* --- eval --------------------------------------------------------------------------------------------------------- */

typedef struct windows {
    const tn_tensor *x;
    char *to;
    int64_t size; /* bytes of an element */
    tn_fold fold;
    int outer; /* axes but the last */
    const int64_t *window, *stride, *dilation;
    int64_t lo[TN_MAX_RANK], out[TN_MAX_RANK];
    int64_t runs; /* per row of the last axis */
} windows;

/* The k in [*first, *end) for which at + k * dilation lies in [0, n). */
static void inside(int64_t at, int64_t dilation, int64_t window, int64_t n, int64_t *first, int64_t *end) {
    *first = at >= 0 ? 0 : (-at - 1) / dilation + 1;
    *end = at >= n ? 0 : (n - 1 - at) / dilation + 1;
    if (*end > window)
        *end = window;
    if (*first > *end)
        *first = *end;
}

/* Combines the window's row at `base` (elements from x's first) into results [j0, j0 + n) of the last axis. */
static void window_row(const windows *w, int64_t base, int64_t j0, int64_t n, tn_cell *acc) {
    tn_cell loaded[TN_RUN];
    int last = w->outer;
    const tn_tensor *x = w->x;
    int64_t stride = w->stride[last], dilation = w->dilation[last], window = w->window[last], step = x->strides[last];
    int64_t at = j0 * stride - w->lo[last], size = x->dims[last];
    const char *from = (const char *)x->data + base * w->size;
    if (window > 64) { /* mostly outside, perhaps: go along each window */
        for (int64_t i = 0; i < n; i++, at += stride) {
            int64_t k, end;
            inside(at, dilation, window, size, &k, &end);
            for (int64_t m; k < end; k += m) {
                m = end - k < TN_RUN ? end - k : TN_RUN;
                tn_run_load((tn_dtype)x->dtype, w->fold.domain, from + (at + k * dilation) * step * w->size, 0,
                            dilation * step, m, loaded);
                w->fold.along(&acc[i], loaded, m);
            }
        }
        return;
    }
    for (int64_t k = 0; k < window; k++) {
        int64_t i, end;
        inside(at + k * dilation, stride, n, size, &i, &end);
        if (i >= end)
            continue;
        tn_run_load((tn_dtype)x->dtype, w->fold.domain, from + (at + k * dilation + i * stride) * step * w->size, 0,
                    stride * step, end - i, loaded);
        w->fold.across(acc + i, loaded, end - i);
    }
}

/* Walks the windows' outer axes from `axis` on, in order. corner: the element of x on each axis where the windows
   begin. */
static void window_axis(const windows *w, int axis, const int64_t *corner, int64_t base, int64_t j0, int64_t n,
                        tn_cell *acc) {
    if (axis >= w->outer) {
        window_row(w, base, j0, n, acc);
        return;
    }
    int64_t k, end;
    inside(corner[axis], w->dilation[axis], w->window[axis], w->x->dims[axis], &k, &end);
    for (; k < end; k++)
        window_axis(w, axis + 1, corner, base + (corner[axis] + k * w->dilation[axis]) * w->x->strides[axis], j0, n,
                    acc);
}

static void window_piece(void *ctx, int64_t piece) {
    const windows *w = ctx;
    int64_t row = piece / w->runs, j0 = piece % w->runs * TN_RUN, n = w->out[w->outer] - j0, corner[TN_MAX_RANK],
            rest = row;
    tn_cell acc[TN_RUN];
    if (n > TN_RUN)
        n = TN_RUN;
    for (int i = w->outer - 1; i >= 0; i--) {
        corner[i] = rest % w->out[i] * w->stride[i] - w->lo[i];
        rest /= w->out[i];
    }
    for (int64_t i = 0; i < n; i++)
        acc[i] = w->fold.identity;
    if (w->x->count > 0)
        window_axis(w, 0, corner, 0, j0, n, acc);
    tn_run_store((tn_dtype)w->x->dtype, w->fold.domain, acc, n, w->to + (row * w->out[w->outer] + j0) * w->size, 0, 1);
}

static tn_status eval_window(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0);
    tn_dtype dtype = (tn_dtype)x->dtype;
    int64_t hi[TN_MAX_RANK];
    windows w = {.x = x, .size = tn_dtype_bits(dtype) / 8, .outer = x->rank - 1, .runs = 1};
    tn_attr_ints(e->graph, e->node, "window", &w.window);
    tn_attr_ints(e->graph, e->node, "stride", &w.stride);
    tn_attr_ints(e->graph, e->node, "dilation", &w.dilation);
    TN_TRY(tn_eval_sizes(e, "lo", x->rank, w.lo));
    TN_TRY(tn_eval_sizes(e, "hi", x->rank, hi));
    for (int i = 0; i < x->rank; i++)
        TN_TRY(tn_eval_window(e, "axis", i, x->dims[i], w.lo[i], hi[i], w.window[i], w.stride[i], w.dilation[i],
                              &w.out[i]));
    if (!tn_fold_init(&w.fold, operation(e->graph, e->node), dtype))
        return tn_eval_fail(e, TN_ERR_UNSUPPORTED, "not supported: this window reduction of %s", tn_dtype_name(dtype));
    tn_tensor *out = tn_eval_result(e, 0, dtype, x->rank, w.out);
    if (out == NULL)
        return tn_error_status();
    if (out->count == 0)
        return TN_OK;
    if (x->rank == 0)
        return tn_tensor_assign(out, x);
    w.to = out->data;
    w.runs = (w.out[w.outer] - 1) / TN_RUN + 1;
    tn_pool_run(e->pool, out->count / w.out[w.outer] * w.runs, window_piece, &w);
    return TN_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec attrs[] = {{.name = "window", .kind = TN_ATTR_INTS, .required = true},
                                     {.name = "stride", .kind = TN_ATTR_INTS, .required = true},
                                     {.name = "dilation", .kind = TN_ATTR_INTS, .required = true},
                                     {.name = "lo", .kind = TN_ATTR_DIMS, .required = true},
                                     {.name = "hi", .kind = TN_ATTR_DIMS, .required = true},
                                     {0}};

#define ROW(row, ID, exact, text)                                                                            \
    {                                                                                                        \
        .name = row, .min_inputs = 1, .max_inputs = 1, .min_outputs = 1, .max_outputs = 1,                   \
        .traits = TN_REDUCTION | (exact), .attrs = attrs, .inputs = "x", .doc = text, .infer = infer_window, \
        .eval = eval_window, .lowering = TN_LOWER_WINDOW, .code = TN_SCALAR_##ID                             \
    }

static const tn_op rows[] = {
    ROW("window_sum", ADD, 0, "The sum of each window; padding is 0."),
    ROW("window_max", MAX, TN_EXACT, "The largest of each window, NaN if there is one; padding is -inf or the lowest."),
    ROW("window_min", MIN, TN_EXACT,
        "The smallest of each window, NaN if there is one; padding is +inf or the highest."),
};
const tn_op_family tn_family_window = {rows, sizeof rows / sizeof *rows};
