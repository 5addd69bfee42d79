/* Operators that move elements by position: Transpose, Concat, Split, Slice, Pad, CenterCropPad, DepthToSpace, SpaceToDepth,
   Trilu. Operators that read by index tensors are in expand_gather.c. */
#include <inttypes.h>

#include "onnx/expand_common.h"
#include "onnx/expander.h"
#include "ops/scalar.h"

static tn_status expand_transpose(tn_expand *x) {
    int rank = tn_expand_rank(x, 0), perm[TN_MAX_RANK];
    const int64_t *list;
    uint32_t n = tn_expand_ints(x, "perm", &list);
    if (!n)
        return tn_expand_set(x, 0, tn_transpose(x->graph, tn_expand_input(x, 0), NULL));
    TN_RULE(x, n == (uint32_t)rank, "attribute 'perm' has %u entries for a tensor of rank %d", (unsigned)n, rank);
    TN_TRY(tn_expand_axes(x, n, list, rank, perm));
    return tn_expand_set(x, 0, tn_transpose(x->graph, tn_expand_input(x, 0), perm));
}

static tn_status expand_concat(tn_expand *x) {
    int axis;
    tn_value *parts = tn_expand_alloc(x, x->inputs, sizeof *parts);
    if (!parts)
        return tn_error_status();
    TN_RULE(x, x->version < 4 || tn_expand_has_attr(x, "axis"), "attribute 'axis' is missing");
    TN_TRY(tn_expand_axis(x, tn_expand_int(x, "axis"), tn_expand_rank(x, 0), &axis));
    for (uint32_t i = 0; i < x->inputs; i++) {
        TN_RULE(x, tn_expand_rank(x, i) == tn_expand_rank(x, 0), "input %u has rank %d, input 0 rank %d", (unsigned)i,
                tn_expand_rank(x, i), tn_expand_rank(x, 0));
        parts[i] = tn_expand_input(x, i);
    }
    return tn_expand_set(x, 0, tn_concat(x->graph, axis, x->inputs, parts));
}

/* --- split ------------------------------------------------------------------------------------------------------------------------ */

/* Equal parts of a size that must divide (before operator set 18), or parts of ceil(size / count) with a smaller last one. */
static tn_status split_sizes(tn_expand *x, tn_dim whole, uint32_t count, tn_dim *parts) {
    tn_graph *g = x->graph;
    int64_t n;
    bool even = x->version < 18;
    if (even && tn_dim_is_const(g, whole, &n))
        TN_RULE(x, n % count == 0, "%" PRId64 " elements cannot be split into %u equal parts", n, (unsigned)count);
    tn_dim k = tn_size(x, count), part = even ? tn_dim_floordiv(g, whole, k) : tn_dim_ceildiv(g, whole, k);
    for (uint32_t i = 0; i < count; i++) {
        tn_dim left = tn_dim_sub(g, whole, tn_dim_mul(g, tn_size(x, i), part));
        parts[i] = even ? part : tn_dim_max(g, tn_dim_min(g, part, left), tn_size(x, 0));
        TN_SIZED(x, parts[i]);
    }
    return TN_OK;
}

static tn_status expand_split(tn_expand *x) {
    tn_graph *g = x->graph;
    int axis, n = (int)x->outputs, rank = tn_expand_rank(x, 0);
    TN_TRY(tn_expand_axis(x, tn_expand_int(x, "axis"), rank, &axis));
    tn_dim *parts = tn_expand_alloc(x, x->outputs, sizeof *parts), whole = tn_expand_dim(x, 0, axis),
           start = tn_size(x, 0);
    if (!parts)
        return tn_error_status();
    tn_value in = tn_expand_input(x, 0);
    if (tn_expand_has(x, 1)) {
        TN_RULE(x, !tn_expand_has_attr(x, "num_outputs"), "both 'split' and 'num_outputs' are given");
        int64_t given;
        if (tn_expand_rank(x, 1) == 1 && tn_dim_is_const(g, tn_expand_dim(x, 1, 0), &given))
            TN_RULE(x, given == n, "%" PRId64 " sizes are given for %d outputs", given, n);
        if (tn_expand_contents_dims(x, 1, parts, n) != n)
            return tn_expand_later(x, "needs the sizes of the parts");
        tn_dim sum = tn_size(x, 0);
        for (int i = 0; i < n; i++) {
            TN_RULE(x, !tn_size_at_most(x, parts[i], -1), "size %d of the parts is negative", i);
            sum = tn_dim_add(g, sum, parts[i]);
            TN_SIZED(x, sum);
        }
        TN_RULE_SAME(x, sum, whole, "the sizes of the parts do not add up to that of axis %d", axis);
    } else {
        int64_t count = tn_expand_has_attr(x, "num_outputs") ? tn_expand_int(x, "num_outputs") : n;
        TN_RULE(x, count == n, "'num_outputs' is %" PRId64 ", but there are %d outputs", count, n);
        TN_TRY(split_sizes(x, whole, x->outputs, parts));
        if (x->version < 18) { /* refused at run time when the size does not divide */
            TN_TRY(tn_expand_hold_multiple(x, 0, axis, n));
            in = tn_expand_input(x, 0);
        }
    }
    for (int i = 0; i < n; i++) {
        if (tn_expand_wants(x, (uint32_t)i))
            TN_TRY(tn_expand_set(x, (uint32_t)i, tn_expand_slice(x, in, axis, start, parts[i], 1)));
        start = tn_dim_add(g, start, parts[i]);
        TN_SIZED(x, start);
    }
    return TN_OK;
}

/* --- slice -------------------------------------------------------------------------------------------------------------------------- */

enum { BEFORE = -1, INSIDE = 0, AFTER = 1 };

/* Whether an expression has at most `room` operations and symbols; what is left of it. */
static int room_left(const tn_graph *g, uint32_t id, int room) {
    const tn_dim_expr *e = &g->dims.expr.data[id];
    room--;
    for (uint32_t i = 0; i < e->nargs && room > 0; i++)
        room = room_left(g, g->dims.arg.data[e->args + i], room);
    return room;
}

/* A bound as the file gives it: counted from the start, made so; or far outside on either side. The largest 32-bit and 64-bit integers
   mean the end. */
static tn_status position(tn_expand *x, tn_dim bound, tn_dim size, tn_dim *at, int *side) {
    tn_graph *g = x->graph;
    int64_t v;
    *side = INSIDE;
    if (tn_dim_is_const(g, bound, &v) && (v > INT64_MAX / 4 || v < -(INT64_MAX / 4) || v == INT32_MAX)) {
        *side = v > 0 ? AFTER : BEFORE;
        *at = tn_size(x, 0);
        return TN_OK;
    }
    *at = bound;
    if (tn_size_at_least(x, bound, 0))
        return TN_OK;
    tn_dim less = tn_size(x, 1); /* 1 where the bound is negative, else 0 */
    if (!tn_size_at_most(x, bound, -1)) {
        /* Expressions that hold such sizes would grow from slice to slice. */
        if (room_left(g, bound.id, 48) <= 0)
            return tn_expand_later(x, "needs the sign of a bound");
        less = tn_dim_min(g, less, tn_dim_max(g, tn_dim_sub(g, tn_size(x, 0), bound), tn_size(x, 0)));
    }
    *at = tn_dim_add(g, bound, tn_dim_mul(g, less, size));
    return TN_OK;
}

/* Start and number of elements of one axis. */
static tn_status slice_axis(tn_expand *x, tn_dim from, tn_dim to, int64_t step, tn_dim size, tn_dim *start,
                            tn_dim *count) {
    tn_graph *g = x->graph;
    tn_dim zero = tn_size(x, 0), one = tn_size(x, 1), a, b, span;
    int a_side, b_side;
    TN_TRY(position(x, from, size, &a, &a_side));
    TN_TRY(position(x, to, size, &b, &b_side));
    if (step > 0) {
        a = a_side == BEFORE ? zero : a_side == AFTER ? size : tn_dim_min(g, tn_dim_max(g, a, zero), size);
        b = b_side == BEFORE ? zero : b_side == AFTER ? size : tn_dim_min(g, tn_dim_max(g, b, zero), size);
        span = tn_dim_max(g, tn_dim_sub(g, b, a), zero);
        /* The plainer forms of what the clamped bounds come to. */
        int64_t v;
        if (tn_dim_equal(g, b, size) && tn_dim_is_const(g, from, &v) && a_side == INSIDE)
            span = v >= 0 ? tn_dim_max(g, tn_dim_sub(g, size, from), zero) : tn_dim_min(g, size, tn_size(x, -v));
        *count = tn_dim_ceildiv(g, span, tn_size(x, step));
    } else {
        tn_dim last = tn_dim_sub(g, size, one), before = tn_size(x, -1);
        a = a_side == BEFORE  ? tn_dim_min(g, zero, last)
            : a_side == AFTER ? last
                              : tn_dim_min(g, tn_dim_max(g, a, zero), last);
        b = b_side == BEFORE ? before : b_side == AFTER ? last : tn_dim_min(g, tn_dim_max(g, b, before), last);
        span = tn_dim_max(g, tn_dim_sub(g, a, b), zero);
        *count = tn_dim_ceildiv(g, span, tn_size(x, -step));
    }
    *start = a;
    TN_SIZED(x, a);
    TN_SIZED(x, *count);
    return TN_OK;
}

/* What a position of one element is reckoned from, and how far: adding constants leads back, so do views and conversions. */
static tn_value reckoned_from(tn_expand *x, tn_value v, int64_t *distance) {
    const tn_graph *g = x->graph;
    *distance = 0;
    for (int look = 0; look < 16; look++) {
        tn_node n = tn_value_producer(g, v);
        const tn_op *op = n.id ? tn_node_op(g, n) : NULL;
        tn_value from = op && tn_node_input_count(g, n) ? tn_node_input(g, n, 0) : (tn_value){0};
        if (!from.id || tn_value_rank(g, from) < 0 || tn_value_rank(g, from) > 1 ||
            (tn_value_rank(g, from) == 1 && !tn_size_is(x, tn_value_dim(g, from, 0), 1)))
            return v;
        if (op->lowering == TN_LOWER_SCALAR && op->code == TN_SCALAR_ADD) {
            const tn_dim *known;
            int64_t number;
            int at = tn_value_contents(g, from, &known) == 1 && tn_dim_is_const(g, *known, &number) ? 0 : 1;
            if (at == 1 &&
                (tn_value_contents(g, tn_node_input(g, n, 1), &known) != 1 || !tn_dim_is_const(g, *known, &number)))
                return v;
            if (number > INT32_MAX || number < INT32_MIN)
                return v;
            *distance += number;
            from = tn_node_input(g, n, at == 0);
        } else if (!(op->traits & TN_VIEW) && !(op->lowering == TN_LOWER_SCALAR && op->code == TN_SCALAR_CAST &&
                                                tn_value_dtype(g, from) == TN_I64 &&
                                                (tn_value_dtype(g, v) == TN_I64 || tn_value_dtype(g, v) == TN_I32))) {
            return v;
        }
        v = from;
    }
    return v;
}

/* The number of elements between two positions that move with the trips of a loop and never leave the axis, else -1. */
static int64_t moving_size(tn_expand *x, tn_value start, tn_value end, tn_dim size) {
    int64_t from, to, low, high;
    tn_value a = reckoned_from(x, start, &from), b = reckoned_from(x, end, &to);
    tn_dim_bounds(x->graph, size, &low, &high);
    for (const tn_counter *c = x->driver->counters; c; c = c->outer)
        if (c->value.id == a.id && a.id == b.id)
            return c->limit <= INT32_MAX && from >= 0 && from <= to && to <= INT32_MAX && c->limit - 1 + to <= low
                       ? to - from
                       : -1;
    return -1;
}

/* A slice of known size along one axis. */
static tn_status slice_moving(tn_expand *x, tn_value start, int axis, int64_t count) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0);
    static const int64_t zeros[TN_MAX_RANK] = {0};
    tn_value parts[3] = {tn_constant_i64(g, 1, axis, zeros), start, tn_constant_i64(g, 1, rank - axis - 1, zeros)};
    tn_value in[2] = {tn_expand_input(x, 0), tn_concat(g, 0, 3, parts)};
    TN_BUILT(x, in[0]);
    tn_dim *size = tn_expand_value_dims(x, in[0]);
    if (!size)
        return tn_error_status();
    size[axis] = tn_size(x, count);
    const tn_attr attr = TN_A_DIMS("size", (uint32_t)rank, size);
    return tn_expand_set(x, 0, tn_graph_add(g, "dynamic_slice", 2, in, 1, &attr));
}

/* With positions that only data decide, and steps of 1: the rank stays, and so do the sizes of the other axes. */
static tn_status slice_by_data(tn_expand *x, const char *reason) {
    tn_graph *g = x->graph;
    int64_t list[TN_MAX_RANK], steps[TN_MAX_RANK], n = -1;
    int axes[TN_MAX_RANK], rank = tn_expand_rank(x, 0);
    tn_value in[3] = {tn_expand_input(x, 0), tn_expand_input(x, 1), tn_expand_input(x, 2)};
    if (x->final)
        return tn_expand_later(x, reason);
    for (uint32_t i = 1; i < 3; i++) {
        if (tn_expand_rank(x, i) > 1 || !tn_is_int(tn_expand_dtype(x, i)))
            return tn_expand_later(x, reason);
        if (n < 0 && tn_expand_rank(x, i) == 1 && !tn_dim_is_const(g, tn_expand_dim(x, i, 0), &n))
            n = -1;
    }
    int64_t starts = -1, ends = -1;
    if (tn_expand_rank(x, 1) == 1 && tn_expand_rank(x, 2) == 1 && tn_dim_is_const(g, tn_expand_dim(x, 1, 0), &starts) &&
        tn_dim_is_const(g, tn_expand_dim(x, 2, 0), &ends))
        TN_RULE(x, starts == ends, "there are %d starts and %d ends", (int)starts, (int)ends);
    bool named = tn_expand_has(x, 3);
    if (named && (n = tn_expand_contents_i64(x, 3, list, TN_MAX_RANK)) < 0)
        return tn_expand_later(x, "needs the axes");
    if (n < 0 || n > rank)
        return tn_expand_later(x, reason);
    if (named && ends >= 0)
        TN_RULE(x, starts == n, "there are %d starts and %d axes", (int)starts, (int)n);
    for (int i = 0; i < n; i++) {
        list[i] = named ? list[i] : i;
        steps[i] = 1;
    }
    if (tn_expand_has(x, 4) && tn_expand_contents_i64(x, 4, steps, TN_MAX_RANK) != n)
        return tn_expand_later(x, "needs the steps");
    for (int i = 0; i < n; i++)
        if (steps[i] != 1)
            return tn_expand_later(x, reason);
    TN_TRY(tn_expand_axes(x, (uint32_t)n, list, rank, axes));
    for (int i = 0; i < n; i++)
        list[i] = axes[i];
    tn_dim length = tn_size(x, n);
    int64_t moving = n == 1 ? moving_size(x, in[1], in[2], tn_expand_dim(x, 0, axes[0])) : -1;
    for (uint32_t i = 1; i < 3; i++) {
        in[i] = tn_cast(g, in[i], TN_I64);
        if (tn_expand_rank(x, i) != 1 || !tn_size_is(x, tn_expand_dim(x, i, 0), n)) /* checked at run time */
            in[i] = tn_reshape_dims(g, in[i], 1, &length);
    }
    if (moving >= 0)
        return slice_moving(x, in[1], axes[0], moving);
    const tn_attr attr = {.key = "axes", .kind = TN_ATTR_INTS, .count = (uint32_t)n, .as.ints = list};
    return tn_expand_set(x, 0, tn_graph_add(g, "dynamic_strided_slice", 3, in, 1, &attr));
}

static tn_status expand_slice(tn_expand *x) {
    tn_dim from[TN_MAX_RANK], to[TN_MAX_RANK], start[TN_MAX_RANK], size[TN_MAX_RANK];
    int64_t steps[TN_MAX_RANK], step[TN_MAX_RANK], list[TN_MAX_RANK];
    int n, m, axes[TN_MAX_RANK], rank = tn_expand_rank(x, 0);
    tn_status known = tn_expand_known_dims(x, 1, "needs the starts", from, &n);
    if (known == TN_OK)
        known = tn_expand_known_dims(x, 2, "needs the ends", to, &m);
    if (known == TN_EXPAND_LATER)
        return slice_by_data(x, x->late);
    TN_TRY(known);
    TN_RULE(x, n == m, "there are %d starts and %d ends", n, m);
    for (int i = 0; i < n; i++) {
        list[i] = i;
        steps[i] = 1;
    }
    if (tn_expand_has(x, 3))
        TN_TRY(tn_expand_known_ints(x, 3, "needs the axes", list, &m));
    TN_RULE(x, n == m, "there are %d starts and %d axes", n, m);
    if (tn_expand_has(x, 4))
        TN_TRY(tn_expand_known_ints(x, 4, "needs the steps", steps, &m));
    TN_RULE(x, n == m, "there are %d starts and %d steps", n, m);
    TN_TRY(tn_expand_axes(x, (uint32_t)n, list, rank, axes));
    for (int i = 0; i < rank; i++) {
        start[i] = tn_size(x, 0);
        size[i] = tn_expand_dim(x, 0, i);
        step[i] = 1;
    }
    for (int i = 0; i < n; i++) {
        TN_RULE(x, steps[i] != 0, "step %d is 0", i);
        int64_t limit = INT64_MAX / 4; /* a larger step takes one element as well */
        step[axes[i]] = steps[i] > limit ? limit : steps[i] < -limit ? -limit : steps[i];
        known =
            slice_axis(x, from[i], to[i], step[axes[i]], tn_expand_dim(x, 0, axes[i]), &start[axes[i]], &size[axes[i]]);
        if (known == TN_EXPAND_LATER)
            return slice_by_data(x, x->late);
        TN_TRY(known);
    }
    return tn_expand_set(x, 0, tn_slice(x->graph, tn_expand_input(x, 0), start, size, step));
}

/* --- pad ------------------------------------------------------------------------------------------------------------------------------ */

/* Pads each axis by lo and hi; negative ones take elements away, before the others are added. */
static tn_status pad(tn_expand *x, const tn_dim *lo, const tn_dim *hi, tn_value value) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0);
    tn_dim start[TN_MAX_RANK], size[TN_MAX_RANK], before[TN_MAX_RANK], after[TN_MAX_RANK], zero = tn_size(x, 0);
    bool cut = false, grow = false;
    for (int i = 0; i < rank; i++) {
        const tn_dim side[2] = {lo[i], hi[i]};
        tn_dim drop[2], add[2];
        for (int k = 0; k < 2; k++) {
            drop[k] = add[k] = zero;
            if (tn_size_at_least(x, side[k], 0))
                add[k] = side[k];
            else if (tn_size_at_most(x, side[k], 0))
                drop[k] = tn_dim_sub(g, zero, side[k]);
            else {
                add[k] = tn_dim_max(g, side[k], zero);
                drop[k] = tn_dim_sub(g, add[k], side[k]);
            }
            cut = cut || !tn_size_is(x, drop[k], 0);
            grow = grow || !tn_size_is(x, add[k], 0);
        }
        start[i] = drop[0];
        size[i] = tn_dim_sub(g, tn_expand_dim(x, 0, i), tn_dim_add(g, drop[0], drop[1]));
        TN_SIZED(x, size[i]);
        TN_RULE(x, !tn_size_at_most(x, size[i], -1), "more elements are taken from axis %d than it has", i);
        before[i] = add[0];
        after[i] = add[1];
    }
    tn_value v = tn_expand_input(x, 0);
    if (cut)
        v = tn_slice(g, v, start, size, NULL);
    if (!grow)
        return tn_expand_set(x, 0, v);
    tn_string mode = tn_expand_string(x, "mode");
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    const char *name = modes[0];
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strlen(modes[i]) == mode.length && memcmp(modes[i], mode.data, mode.length) == 0)
            name = modes[i];
    return tn_expand_set(x, 0, tn_pad(g, v, name == modes[0] ? value : (tn_value){0}, before, after, name));
}

static tn_status expand_pad(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dim list[2 * TN_MAX_RANK], lo[TN_MAX_RANK] = {{0}}, hi[TN_MAX_RANK] = {{0}};
    int n, axes[TN_MAX_RANK], rank = tn_expand_rank(x, 0);
    TN_TRY(tn_expand_axes_input(x, 3, rank, axes, &n));
    int found = tn_expand_contents_dims(x, 1, list, 2 * TN_MAX_RANK);
    if (found < 0)
        return tn_expand_later(x, "needs the pads");
    TN_RULE(x, found == 2 * n, "there are %d pads for %d axes", found, n);
    for (int i = 0; i < rank; i++)
        lo[i] = hi[i] = tn_size(x, 0);
    for (int i = 0; i < n; i++) {
        lo[axes[i]] = list[i];
        hi[axes[i]] = list[n + i];
    }
    tn_value value = {0};
    if (tn_expand_has(x, 2)) {
        for (int i = 0; i < tn_expand_rank(x, 2); i++)
            TN_RULE(x, !tn_dim_never_equal(g, tn_expand_dim(x, 2, i), tn_size(x, 1)),
                    "'constant_value' must be one element");
        value = tn_reshape_dims(g, tn_expand_input(x, 2), 0, NULL);
    } else {
        value = tn_expand_zero(x, tn_expand_dtype(x, 0));
    }
    return pad(x, lo, hi, value);
}

/* The middle of an axis that is too large, the whole in the middle of one that is too small; odd ones: one more at the end. */
static tn_status expand_center_crop_pad(tn_expand *x) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0), axes[TN_MAX_RANK], n = rank, m;
    int64_t list[TN_MAX_RANK];
    const int64_t *given;
    tn_dim want[TN_MAX_RANK], start[TN_MAX_RANK], size[TN_MAX_RANK], lo[TN_MAX_RANK], hi[TN_MAX_RANK];
    tn_dim zero = tn_size(x, 0), two = tn_size(x, 2);
    TN_TRY(tn_expand_known_dims(x, 1, "needs the new sizes", want, &m));
    if (tn_expand_has_attr(x, "axes")) {
        n = (int)tn_expand_ints(x, "axes", &given);
        TN_RULE(x, n <= rank, "there are %d axes for a tensor of rank %d", n, rank);
        memcpy(list, given, (size_t)n * sizeof *list);
    } else {
        for (int i = 0; i < rank; i++)
            list[i] = i;
    }
    TN_RULE(x, n == m, "there are %d sizes for %d axes", m, n);
    TN_TRY(tn_expand_axes(x, (uint32_t)n, list, rank, axes));
    for (int i = 0; i < rank; i++) {
        start[i] = lo[i] = hi[i] = zero;
        size[i] = tn_expand_dim(x, 0, i);
    }
    for (int i = 0; i < n; i++) {
        int a = axes[i];
        TN_RULE(x, !tn_size_at_most(x, want[i], -1), "size %d is negative", i);
        tn_dim more = tn_dim_sub(g, want[i], size[a]), add = tn_dim_max(g, more, zero);
        tn_dim drop = tn_dim_max(g, tn_dim_sub(g, zero, more), zero);
        start[a] = tn_dim_floordiv(g, drop, two);
        lo[a] = tn_dim_floordiv(g, add, two);
        hi[a] = tn_dim_sub(g, add, lo[a]);
        size[a] = tn_dim_min(g, size[a], want[i]);
        TN_SIZED(x, hi[a]);
    }
    tn_value v = tn_slice(g, tn_expand_input(x, 0), start, size, NULL);
    return tn_expand_set(x, 0, tn_pad(g, v, tn_expand_zero(x, tn_expand_dtype(x, 0)), lo, hi, "constant"));
}

/* --- blocks ------------------------------------------------------------------------------------------------------------------------------ */

static tn_status block_size(tn_expand *x, int64_t *block) {
    *block = tn_expand_int(x, "blocksize");
    TN_RULE(x, *block >= 1 && *block <= 1 << 20, "attribute 'blocksize' is %" PRId64, *block);
    TN_RULE(x, tn_expand_rank(x, 0) == 4, "the input has rank %d: 4 is needed", tn_expand_rank(x, 0));
    return TN_OK;
}

/* size / by, which must divide. */
static tn_status divided(tn_expand *x, int axis, int64_t by, tn_dim *out) {
    int64_t n;
    tn_dim d = tn_expand_dim(x, 0, axis);
    if (tn_dim_is_const(x->graph, d, &n))
        TN_RULE(x, n % by == 0, "the size of axis %d, %" PRId64 ", is no multiple of %" PRId64, axis, n, by);
    *out = tn_dim_floordiv(x->graph, d, tn_size(x, by));
    return tn_expand_hold_multiple(x, 0, axis, by);
}

static tn_status expand_depth_to_space(tn_expand *x) {
    tn_graph *g = x->graph;
    int64_t b;
    tn_dim c;
    TN_TRY(block_size(x, &b));
    TN_TRY(divided(x, 1, b * b, &c));
    bool crd = tn_expand_string_is(x, "mode", "CRD");
    tn_dim n = tn_expand_dim(x, 0, 0), h = tn_expand_dim(x, 0, 2), w = tn_expand_dim(x, 0, 3), s = tn_size(x, b);
    const tn_dim dcr_dims[6] = {n, s, s, c, h, w}, crd_dims[6] = {n, c, s, s, h, w};
    static const int dcr_perm[6] = {0, 3, 4, 1, 5, 2}, crd_perm[6] = {0, 1, 4, 2, 5, 3};
    const tn_dim out[4] = {n, c, tn_dim_mul(g, h, s), tn_dim_mul(g, w, s)};
    TN_SIZED(x, out[2]);
    TN_SIZED(x, out[3]);
    tn_value v = tn_reshape_dims(g, tn_expand_input(x, 0), 6, crd ? crd_dims : dcr_dims);
    return tn_expand_set(x, 0, tn_reshape_dims(g, tn_transpose(g, v, crd ? crd_perm : dcr_perm), 4, out));
}

static tn_status expand_space_to_depth(tn_expand *x) {
    tn_graph *g = x->graph;
    int64_t b;
    tn_dim h, w;
    TN_TRY(block_size(x, &b));
    TN_TRY(divided(x, 2, b, &h));
    TN_TRY(divided(x, 3, b, &w));
    tn_dim n = tn_expand_dim(x, 0, 0), c = tn_expand_dim(x, 0, 1), s = tn_size(x, b);
    const tn_dim dims[6] = {n, c, h, s, w, s}, out[4] = {n, tn_dim_mul(g, c, tn_size(x, b * b)), h, w};
    static const int rows_first[6] = {0, 3, 5, 1, 2, 4}, depth_first[6] = {0, 1, 3, 5, 2, 4};
    const int *perm = tn_expand_string_is(x, "mode", "CRD") ? depth_first : rows_first;
    TN_SIZED(x, out[1]);
    tn_value v = tn_transpose(g, tn_reshape_dims(g, tn_expand_input(x, 0), 6, dims), perm);
    return tn_expand_set(x, 0, tn_reshape_dims(g, v, 4, out));
}

/* --- triangles ---------------------------------------------------------------------------------------------------------------------------- */

/* Keeps what lies on and above (below) the k-th diagonal of the last two axes. */
static tn_status expand_trilu(tn_expand *x) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0);
    TN_RULE(x, rank >= 2, "the input has rank %d: at least 2 are needed", rank);
    const tn_dim last[2] = {tn_expand_dim(x, 0, -2), tn_expand_dim(x, 0, -1)};
    tn_value diagonal = tn_sub(g, tn_iota(g, TN_I64, 2, last, 1), tn_iota(g, TN_I64, 2, last, 0)),
             k = tn_scalar(g, TN_I64, 0);
    if (tn_expand_has(x, 1)) {
        TN_TRY(tn_expand_single(x, 1, "k"));
        k = tn_reshape_dims(g, tn_expand_input(x, 1), 0, NULL);
    }
    tn_value keep = tn_expand_int(x, "upper") ? tn_greater_equal(g, diagonal, k) : tn_less_equal(g, diagonal, k);
    return tn_expand_set(x, 0, tn_select(g, keep, tn_expand_input(x, 0), tn_expand_zero(x, tn_expand_dtype(x, 0))));
}

/* --- rows ---------------------------------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec transpose_attrs[] = {TN_SPEC_INTS("perm"), {0}};
static const tn_attr_spec concat_attrs[] = {TN_SPEC_INT("axis", 1), {0}};
static const tn_attr_spec split_attrs[] = {TN_SPEC_INT("axis", 0), TN_SPEC_INT("num_outputs", 0), {0}};
static const tn_attr_spec pad_attrs[] = {TN_SPEC_STRING("mode", "constant", "constant|reflect|edge|wrap"), {0}};
static const tn_attr_spec crop_attrs[] = {TN_SPEC_INTS("axes"), {0}};
static const tn_attr_spec depth_attrs[] = {
    TN_SPEC_NEEDED("blocksize", TN_ATTR_INT), TN_SPEC_STRING("mode", "DCR", "DCR|CRD"), {0}};
static const tn_attr_spec space_attrs[] = {
    TN_SPEC_NEEDED("blocksize", TN_ATTR_INT), TN_SPEC_STRING("mode", "DCR", "DCR|CRD"), {0}};
static const tn_attr_spec trilu_attrs[] = {TN_SPEC_BOOL("upper", 1), {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX("Transpose", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = transpose_attrs,
            .expand = expand_transpose),
    TN_ONNX("Concat", .since = 1, .inputs = {1, TN_ONNX_ANY}, .outputs = {1, 1}, .attrs = concat_attrs,
            .flags = TN_ONNX_VARIADIC, .expand = expand_concat),
    TN_ONNX("Split", .since = 1, .inputs = {1, 2}, .outputs = {1, TN_ONNX_ANY}, .attrs = split_attrs,
            .expand = expand_split),
    TN_ONNX("Slice", .since = 1, .inputs = {3, 5}, .outputs = {1, 1}, .expand = expand_slice),
    TN_ONNX("Pad", .since = 1, .inputs = {2, 4}, .outputs = {1, 1}, .attrs = pad_attrs, .expand = expand_pad),
    TN_ONNX("CenterCropPad", .since = 18, .inputs = {2, 2}, .outputs = {1, 1}, .attrs = crop_attrs,
            .expand = expand_center_crop_pad),
    TN_ONNX("DepthToSpace", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = depth_attrs,
            .expand = expand_depth_to_space),
    TN_ONNX("SpaceToDepth", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = space_attrs,
            .expand = expand_space_to_depth),
    TN_ONNX("Trilu", .since = 14, .inputs = {1, 2}, .outputs = {1, 1}, .attrs = trilu_attrs, .expand = expand_trilu),
};

const tn_onnx_family tn_onnx_family_move = {rows, sizeof rows / sizeof *rows};
