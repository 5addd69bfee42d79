/* Rows that move elements: reshape, transpose, broadcast, fit, slice, pad, concat. */
#include "ops/move.h"

#include <inttypes.h>

#include "ops/contents.h"
#include "ops/ops.h"

static tn_status overflow(tn_infer *c, int axis) {
    return tn_infer_fail(c, "the size of axis %d of the output overflows", axis);
}

/* --- reshape ------------------------------------------------------------------------------------------------------ */

static tn_status infer_reshape(tn_infer *c) {
    tn_operand_type x;
    const tn_dim *shape;
    int rank;
    TN_TRY(tn_infer_operand(c, 0, &x));
    TN_TRY(tn_infer_attr_dims(c, "shape", -1, true, &shape, &rank));
    tn_dim from = tn_infer_count(c, "x", x.rank, x.dims);
    if (from.id == 0)
        return tn_error_status();
    tn_dim to = tn_infer_count(c, "the new shape", rank, shape);
    if (to.id == 0)
        return tn_error_status();
    if (tn_dim_never_equal(c->graph, from, to)) {
        char a[96], b[64], d[64];
        tn_infer_fail(c, "%s has %s elements, the new shape %s", tn_operand_describe(c, &x, a, sizeof a),
                      tn_dim_describe(c->graph, from, b, sizeof b), tn_dim_describe(c->graph, to, d, sizeof d));
        tn_fail_hint("the sizes of the new shape must multiply to %s", b);
        return tn_error_status();
    }
    TN_TRY(tn_infer_tensor(c, 0, x.dtype, rank, shape));
    if (rank <= 1) {
        tn_contents known;
        tn_contents_input(c, 0, &known);
        return tn_contents_set(c, &known);
    }
    return TN_OK;
}

/* --- transpose ---------------------------------------------------------------------------------------------------- */

static tn_status infer_transpose(tn_infer *c) {
    tn_operand_type x;
    const int64_t *perm;
    int count;
    bool used[TN_MAX_RANK] = {false};
    tn_dim dims[TN_MAX_RANK];
    TN_TRY(tn_infer_operand(c, 0, &x));
    TN_TRY(tn_infer_attr_axes(c, "perm", x.rank, used, &perm, &count));
    if (count != x.rank)
        return tn_infer_fail(c, "attribute 'perm' has %d entries for a tensor of rank %d", count, x.rank);
    for (int i = 0; i < x.rank; i++)
        dims[i] = x.dims[perm[i]];
    TN_TRY(tn_infer_tensor(c, 0, x.dtype, x.rank, dims));
    if (x.rank <= 1) {
        tn_contents known;
        tn_contents_input(c, 0, &known);
        return tn_contents_set(c, &known);
    }
    return TN_OK;
}

/* --- broadcast ---------------------------------------------------------------------------------------------------- */

static tn_status infer_broadcast(tn_infer *c) {
    tn_operand_type x;
    const tn_dim *shape;
    int rank;
    tn_dim one = tn_dim_const(c->graph, 1);
    TN_TRY(tn_infer_operand(c, 0, &x));
    TN_TRY(tn_infer_attr_dims(c, "shape", -1, true, &shape, &rank));
    if (rank < x.rank)
        return tn_infer_fail(c, "a tensor of rank %d cannot be broadcast to rank %d", x.rank, rank);
    for (int i = 0; i < x.rank; i++) {
        int to = rank - x.rank + i;
        if (tn_dim_never_equal(c->graph, x.dims[i], shape[to]) && tn_dim_never_equal(c->graph, x.dims[i], one)) {
            char a[96], b[64], d[64];
            return tn_infer_fail(c, "%s cannot be broadcast: its axis %d is %s, axis %d of the new shape %s",
                                 tn_operand_describe(c, &x, a, sizeof a), i,
                                 tn_dim_describe(c->graph, x.dims[i], b, sizeof b), to,
                                 tn_dim_describe(c->graph, shape[to], d, sizeof d));
        }
    }
    TN_TRY(tn_infer_tensor(c, 0, x.dtype, rank, shape));
    if (rank <= 1) {
        tn_contents known;
        int64_t size = 1;
        tn_contents_input(c, 0, &known);
        if (rank == 1 && !tn_dim_is_const(c->graph, shape[0], &size))
            return TN_OK;
        if (known.n == 1 && size <= TN_MAX_CONTENTS) {
            known.n = (int32_t)size;
            for (int32_t i = 1; i < known.n; i++)
                known.dim[i] = known.dim[0];
        }
        return known.n == size ? tn_contents_set(c, &known) : TN_OK;
    }
    return TN_OK;
}

/* --- fit ------------------------------------------------------------------------------------------------------------ */

static tn_status infer_fit(tn_infer *c) {
    tn_operand_type x;
    const tn_dim *shape;
    int rank;
    TN_TRY(tn_infer_operand(c, 0, &x));
    TN_TRY(tn_infer_attr_dims(c, "shape", x.rank, true, &shape, &rank));
    for (int i = 0; i < rank; i++)
        if (tn_dim_never_equal(c->graph, x.dims[i], shape[i])) {
            char a[96], b[64];
            return tn_infer_fail(c, "axis %d of %s is not %s", i, tn_operand_describe(c, &x, a, sizeof a),
                                 tn_dim_describe(c->graph, shape[i], b, sizeof b));
        }
    return tn_infer_tensor(c, 0, x.dtype, rank,
                           shape); /* of unknown contents: who knows them would not ask for the sizes */
}

/* --- slice -------------------------------------------------------------------------------------------------------- */

/* Refuses start + i * step outside [0, dim) where that can be seen now. */
static tn_status check_slice(tn_infer *c, const tn_operand_type *x, int axis, tn_dim start, tn_dim size, int64_t step) {
    tn_graph *g = c->graph;
    int64_t low, high, n, first;
    char a[96], b[64], d[64];
    tn_dim_bounds(g, size, &low, &high);
    if (low < 1)
        return TN_OK; /* it may be empty: any start */
    tn_dim_bounds(g, start, &low, &high);
    bool outside = high < 0 || tn_dim_at_most(g, x->dims[axis], start);
    if (!outside && tn_dim_is_const(g, size, &n)) {
        /* The last one, start + (n - 1) * step, where it is no larger than a size can be. */
        __int128 reach = (__int128)(n - 1) * step;
        if (tn_dim_is_const(g, start, &first))
            reach += first;
        if (reach > INT64_MAX / 2 || reach < -(INT64_MAX / 2)) {
            outside = tn_dim_is_const(g, start, &first) || reach > 0;
        } else if (n > 1) {
            tn_dim last = tn_dim_const(g, (int64_t)reach);
            if (!tn_dim_is_const(g, start, &first))
                last = tn_dim_add(g, start, last);
            if (last.id != 0) {
                tn_dim_bounds(g, last, &low, &high);
                outside = high < 0 || tn_dim_at_most(g, x->dims[axis], last);
            }
        }
    } else if (!outside && step > -((int64_t)1 << 31) && step < (int64_t)1 << 31) {
        tn_dim reach = tn_dim_mul(g, tn_dim_sub(g, size, tn_dim_const(g, 1)), tn_dim_const(g, step));
        tn_dim last = tn_dim_add(g, start, reach);
        if (last.id == 0)
            return overflow(c, axis);
        tn_dim_bounds(g, last, &low, &high);
        outside = high < 0 || tn_dim_at_most(g, x->dims[axis], last);
    }
    if (!outside)
        return TN_OK;
    return tn_infer_fail(c, "slice of %s elements from %s with step %" PRId64 " leaves axis %d of %s",
                         tn_dim_describe(g, size, b, sizeof b), tn_dim_describe(g, start, d, sizeof d), step, axis,
                         tn_operand_describe(c, x, a, sizeof a));
}

static tn_status infer_slice(tn_infer *c) {
    tn_operand_type x;
    const tn_dim *start, *size;
    const int64_t *step;
    TN_TRY(tn_infer_operand(c, 0, &x));
    TN_TRY(tn_infer_attr_dims(c, "start", x.rank, false, &start, NULL));
    TN_TRY(tn_infer_attr_dims(c, "size", x.rank, true, &size, NULL));
    TN_TRY(tn_infer_attr_ints(c, "step", x.rank, INT64_MIN, &step));
    for (int i = 0; i < x.rank; i++) {
        if (step[i] == 0)
            return tn_infer_fail(c, "entry %d of attribute 'step' is 0", i);
        TN_TRY(check_slice(c, &x, i, start[i], size[i], step[i]));
    }
    TN_TRY(tn_infer_tensor(c, 0, x.dtype, x.rank, size));
    if (x.rank > 1)
        return TN_OK;
    tn_contents known, sliced;
    int64_t from = 0, n = 1;
    tn_contents_input(c, 0, &known);
    if (known.n < 0 ||
        (x.rank == 1 && (!tn_dim_is_const(c->graph, start[0], &from) || !tn_dim_is_const(c->graph, size[0], &n))))
        return TN_OK;
    if (x.rank == 0)
        return tn_contents_set(c, &known);
    if (n < 0 || n > TN_MAX_CONTENTS)
        return TN_OK;
    sliced.n = (int32_t)n;
    for (int32_t i = 0; i < sliced.n; i++) {
        __int128 at = from + (__int128)i * step[0];
        if (at < 0 || at >= known.n)
            return TN_OK;
        sliced.dim[i] = known.dim[at];
    }
    return tn_contents_set(c, &sliced);
}

/* --- pad ---------------------------------------------------------------------------------------------------------- */

static tn_status infer_pad(tn_infer *c) {
    tn_operand_type x, value;
    const tn_dim *lo, *hi;
    tn_dim dims[TN_MAX_RANK];
    tn_graph *g = c->graph;
    TN_TRY(tn_infer_operand(c, 0, &x));
    bool constant = tn_attr_string_is(g, c->node, "mode", "constant");
    if (tn_node_input_count(g, c->node) > 1 && tn_node_input(g, c->node, 1).id != 0) {
        TN_TRY(tn_infer_operand_rank(c, 1, 0, &value));
        TN_TRY(tn_infer_same_dtype(c, &x, &value));
        if (!constant)
            return tn_infer_fail(c, "a value is given, but the mode is not 'constant'");
    }
    TN_TRY(tn_infer_attr_dims(c, "lo", x.rank, true, &lo, NULL));
    TN_TRY(tn_infer_attr_dims(c, "hi", x.rank, true, &hi, NULL));
    for (int i = 0; i < x.rank; i++) {
        tn_dim padding = tn_dim_add(g, lo[i], hi[i]);
        int64_t size, low, high;
        dims[i] = padding.id != 0 ? tn_dim_add(g, x.dims[i], padding) : (tn_dim){0};
        if (dims[i].id == 0)
            return overflow(c, i);
        tn_dim_bounds(g, padding, &low, &high);
        if (!constant && low > 0 && tn_dim_is_const(g, x.dims[i], &size) && size == 0)
            return tn_infer_fail(c, "axis %d has no elements to pad from", i);
    }
    return tn_infer_tensor(c, 0, x.dtype, x.rank, dims);
}

/* --- concat ------------------------------------------------------------------------------------------------------- */

static tn_status infer_concat(tn_infer *c) {
    tn_operand_type first, next;
    tn_graph *g = c->graph;
    uint32_t count = tn_node_input_count(g, c->node);
    int64_t axis = tn_attr_int(g, c->node, "axis");
    TN_TRY(tn_infer_operand(c, 0, &first));
    TN_TRY(tn_infer_axis(c, "axis", axis, first.rank));
    for (uint32_t k = 1; k < count; k++) {
        TN_TRY(tn_infer_operand_rank(c, k, first.rank, &next));
        TN_TRY(tn_infer_same_dtype(c, &first, &next));
        tn_dim sum = tn_dim_add(g, first.dims[axis], next.dims[axis]);
        if (sum.id == 0)
            return overflow(c, (int)axis);
        for (int i = 0; i < first.rank; i++) {
            if (i == axis)
                continue;
            tn_dim merged = tn_infer_merge_dim(g, first.dims[i], next.dims[i]);
            if (merged.id == 0) {
                char a[64], b[96];
                return tn_infer_fail(c, "axis %d is %s before input %u, but that is %s", i,
                                     tn_dim_describe(g, first.dims[i], a, sizeof a), k,
                                     tn_operand_describe(c, &next, b, sizeof b));
            }
            first.dims[i] = merged;
        }
        first.dims[axis] = sum;
    }
    TN_TRY(tn_infer_tensor(c, 0, first.dtype, first.rank, first.dims));
    if (first.rank != 1)
        return TN_OK;
    tn_contents all = {.n = 0}, part;
    for (uint32_t k = 0; k < count; k++) {
        tn_contents_input(c, k, &part);
        if (part.n < 0 || part.n > TN_MAX_CONTENTS - all.n)
            return TN_OK;
        memcpy(all.dim + all.n, part.dim, (size_t)part.n * sizeof *part.dim);
        all.n += part.n;
    }
    return tn_contents_set(c, &all);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec reshape_attrs[] = {{.name = "shape", .kind = TN_ATTR_DIMS, .required = true}, {0}};
static const tn_attr_spec transpose_attrs[] = {{.name = "perm", .kind = TN_ATTR_INTS, .required = true}, {0}};
static const tn_attr_spec slice_attrs[] = {{.name = "start", .kind = TN_ATTR_DIMS, .required = true},
                                           {.name = "size", .kind = TN_ATTR_DIMS, .required = true},
                                           {.name = "step", .kind = TN_ATTR_INTS, .required = true},
                                           {0}};
static const tn_attr_spec pad_attrs[] = {
    {.name = "lo", .kind = TN_ATTR_DIMS, .required = true},
    {.name = "hi", .kind = TN_ATTR_DIMS, .required = true},
    {.name = "mode", .kind = TN_ATTR_STRING, .s = "constant", .allowed = "constant|reflect|edge|wrap"},
    {0}};
static const tn_attr_spec concat_attrs[] = {{.name = "axis", .kind = TN_ATTR_INT, .required = true}, {0}};

static const tn_op rows[] = {
    {.name = "reshape",
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_VIEW | TN_EXACT,
     .attrs = reshape_attrs,
     .inputs = "x",
     .doc = "The elements of x, in order, as another shape of as many elements.",
     .infer = infer_reshape,
     .eval = tn_eval_reshape,
     .lowering = TN_LOWER_MOVE,
     .code = TN_MOVE_RESHAPE},
    {.name = "transpose",
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_VIEW | TN_EXACT,
     .attrs = transpose_attrs,
     .inputs = "x",
     .doc = "Axis i of the output is axis perm[i] of x.",
     .infer = infer_transpose,
     .eval = tn_eval_transpose,
     .lowering = TN_LOWER_MOVE,
     .code = TN_MOVE_TRANSPOSE},
    {.name = "broadcast",
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_VIEW | TN_EXACT | TN_SPREADS,
     .attrs = reshape_attrs,
     .inputs = "x",
     .doc = "x repeated to a shape: axes are aligned at the right, each of x is 1 or that of the shape.",
     .infer = infer_broadcast,
     .eval = tn_eval_broadcast,
     .lowering = TN_LOWER_MOVE,
     .code = TN_MOVE_BROADCAST},
    {.name = "fit",
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_VIEW | TN_EXACT,
     .attrs = reshape_attrs,
     .inputs = "x",
     .doc = "x itself; every axis must have the size that the shape says, also where there are no elements.",
     .infer = infer_fit,
     .eval = tn_eval_fit,
     .lowering = TN_LOWER_MOVE,
     .code = TN_MOVE_FIT},
    {.name = "slice",
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_VIEW | TN_EXACT,
     .attrs = slice_attrs,
     .inputs = "x",
     .doc = "out[i] = x[start + i * step] for i < size, on every axis; all inside x.",
     .infer = infer_slice,
     .eval = tn_eval_slice,
     .lowering = TN_LOWER_MOVE,
     .code = TN_MOVE_SLICE},
    {.name = "pad",
     .min_inputs = 1,
     .max_inputs = 2,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_EXACT | TN_OPTIONAL_INPUTS,
     .attrs = pad_attrs,
     .inputs = "x, value",
     .doc =
         "x with lo elements before and hi after on every axis: value (0 when absent), mirrored, repeated or wrapped.",
     .infer = infer_pad,
     .eval = tn_eval_pad,
     .lowering = TN_LOWER_MOVE,
     .code = TN_MOVE_PAD},
    {.name = "concat",
     .min_inputs = 1,
     .max_inputs = -1,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_EXACT,
     .attrs = concat_attrs,
     .inputs = "x...",
     .doc = "The inputs one after the other along an axis.",
     .infer = infer_concat,
     .eval = tn_eval_concat,
     .lowering = TN_LOWER_MOVE,
     .code = TN_MOVE_CONCAT},
};
const tn_op_family tn_family_move = {rows, sizeof rows / sizeof *rows};
