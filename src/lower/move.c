/* Movement: views of slots where the index map is affine, copies by guarded accesses where it is not. */
#include "lower/lowering.h"
#include "ops/ops.h"

static bool is_const(const tn_lowerer *l, tn_dim d, int64_t value) {
    int64_t n;
    return tn_dim_is_const(l->graph, d, &n) && n == value;
}

/* A STRIP kernel that copies: the draft's value is its only operand. The caller fills the operand. */
static tn_draft *copy_draft(tn_lowerer *l, tn_value value, tn_node node, tn_access **operand) {
    tn_draft *d = tn_lowering_draft(l, value, node, TN_KERNEL_STRIP);
    *operand = d ? tn_lowering_operand(l, d) : NULL;
    if (!*operand)
        return NULL;
    d->result = 0;
    return d;
}

/* The strides of `place` seen with `rank` dims that split or merge its dims, when that needs no copy. */
static bool reshape_strides(tn_lowerer *l, const tn_view *p, const tn_dim *old, int rank, const tn_dim *dims,
                            tn_dim *strides) {
    tn_graph *g = l->graph;
    if (tn_view_is_contiguous(l, p)) {
        tn_dim step = tn_dim_const(g, 1);
        for (int i = rank - 1; i >= 0; i--) {
            strides[i] = step;
            step = tn_dim_mul(g, step, dims[i]);
        }
        return true;
    }
    /* runs of dims of as many elements on both sides: those of p must walk on, one where the next steps; dims of 1 have any stride */
    tn_dim one = tn_dim_const(g, 1);
    int i = 0, j = 0;
    for (;;) {
        for (; i < rank && is_const(l, dims[i], 1); i++)
            strides[i] = tn_dim_const(g, 0);
        while (j < p->rank && is_const(l, tn_lowering_dim(l, p->dim[j]), 1))
            j++;
        if (i == rank || j == p->rank)
            return i == rank && j == p->rank;
        int n = 0, m = 0; /* lengths of the shortest runs */
        tn_dim count = one;
        for (int a = 1; i + a <= rank && !n; a++) {
            count = tn_dim_mul(g, count, dims[i + a - 1]);
            tn_dim have = one;
            for (int b = 1; j + b <= p->rank && !n; b++) {
                have = tn_dim_mul(g, have, tn_lowering_dim(l, p->dim[j + b - 1]));
                if (tn_dim_equal(g, count, have))
                    n = a, m = b;
            }
        }
        if (!n)
            return false;
        tn_dim step = old[j + m - 1], walk = step;
        for (int b = m - 1; b > 0; b--) {
            walk = tn_dim_mul(g, walk, tn_lowering_dim(l, p->dim[j + b]));
            if (!is_const(l, tn_lowering_dim(l, p->dim[j + b - 1]), 1) && !tn_dim_equal(g, old[j + b - 1], walk))
                return false;
        }
        for (int a = n - 1; a >= 0; a--) {
            strides[i + a] = step;
            step = tn_dim_mul(g, step, dims[i + a]);
        }
        i += n;
        j += m;
    }
}

static tn_dim count_of(tn_graph *g, tn_value v) {
    tn_dim n = tn_dim_const(g, 1);
    for (int i = 0; i < tn_value_rank(g, v); i++)
        n = tn_dim_mul(g, n, tn_value_dim(g, v, i));
    return n;
}

/* Whether a view repeats the elements of an image along some of its axes, with channels innermost. */
static bool repeats_channels_last(tn_lowerer *l, const tn_view *p) {
    tn_size dim[TN_MAX_RANK], stride[TN_MAX_RANK];
    tn_view q = *p;
    q.rank = 0;
    q.dim = dim;
    q.stride = stride;
    for (int i = 0; i < p->rank; i++) {
        if (i >= 2 && is_const(l, tn_lowering_dim(l, p->stride[i]), 0))
            continue;
        dim[q.rank] = p->dim[i];
        stride[q.rank++] = p->stride[i];
    }
    return q.rank < p->rank && tn_view_is_channels_last(l, &q);
}

static tn_status lower_reshape(tn_lowerer *l, tn_node node) {
    tn_graph *g = l->graph;
    tn_value x = tn_node_input(g, node, 0), y = tn_node_output(g, node, 0);
    if (!tn_dim_equal(g, count_of(g, x), count_of(g, y)))
        return TN_ERR_UNSUPPORTED; /* checked at run time, by the row itself */
    uint32_t place = tn_lowering_value(l, x);
    if (place == TN_NO_VIEW)
        return tn_error_status();
    tn_view p = l->plan->view.data[place];
    int rank = tn_value_rank(g, y);
    tn_dim dims[TN_MAX_RANK] = {{0}}, strides[TN_MAX_RANK], *old = tn_view_strides(l, &p);
    for (int i = 0; i < rank; i++)
        dims[i] = tn_value_dim(g, y, i);
    if (!old)
        return TN_ERR_MEMORY;
    if (reshape_strides(l, &p, old, rank, dims, strides))
        return tn_lowering_view(l, y, p.slot, tn_lowering_dim(l, p.offset), strides) == TN_NO_VIEW ? tn_error_status()
                                                                                                   : TN_OK;
    /* copy x in the order of its axes, or, for an image that grows, channels last if y then is, too; then look at it with y's dims */
    tn_access *a;
    tn_draft *d = copy_draft(l, x, node, &a);
    if (!d)
        return TN_ERR_MEMORY;
    d->in_order = true;
    if (rank >= 3 && repeats_channels_last(l, &p) && tn_dim_equal(g, dims[0], tn_value_dim(g, x, 0)) &&
        tn_dim_equal(g, dims[1], tn_value_dim(g, x, 1))) {
        tn_lowering_channels_last(l, x, old);
        d->channels_last = reshape_strides(l, &p, old, rank, dims, strides);
    }
    a->slot = p.slot;
    a->dtype = (uint8_t)tn_value_dtype(g, x);
    a->offset = p.offset;
    for (int i = 0; i < p.rank; i++)
        a->stride[i] = p.stride[i];
    uint32_t keep = l->view_of[x.id];
    TN_TRY(tn_lowering_finish(l, d));
    const tn_view copy = l->plan->view.data[l->view_of[x.id]];
    l->view_of[x.id] = keep;
    return tn_lowering_view(l, y, copy.slot, (tn_dim){0}, tn_view_is_contiguous(l, &copy) ? NULL : strides) ==
                   TN_NO_VIEW
               ? tn_error_status()
               : TN_OK;
}

static tn_status lower_transpose(tn_lowerer *l, tn_node node, const tn_view *p, const tn_dim *old) {
    const int64_t *perm;
    uint32_t n = tn_attr_ints(l->graph, node, "perm", &perm);
    tn_dim strides[TN_MAX_RANK];
    for (uint32_t i = 0; i < n; i++)
        strides[i] = old[perm[i]];
    uint32_t q =
        tn_lowering_view(l, tn_node_output(l->graph, node, 0), p->slot, tn_lowering_dim(l, p->offset), strides);
    return q == TN_NO_VIEW ? tn_error_status() : TN_OK;
}

static tn_status lower_broadcast(tn_lowerer *l, tn_node node, const tn_view *p, const tn_dim *old) {
    tn_graph *g = l->graph;
    tn_value y = tn_node_output(g, node, 0);
    int rank = tn_value_rank(g, y), lead = rank - p->rank;
    tn_dim strides[TN_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        tn_dim to = tn_value_dim(g, y, i);
        if (i < lead) {
            strides[i] = tn_dim_const(g, 0);
            continue;
        }
        tn_dim from = tn_lowering_dim(l, p->dim[i - lead]);
        if (tn_dim_equal(g, from, to))
            strides[i] = old[i - lead];
        else if (is_const(l, from, 1))
            strides[i] = tn_dim_const(g, 0);
        else if (tn_dim_equal(g, tn_dim_broadcast(g, from, to), to)) {
            /* decided at run time: 0 where from is 1, else its stride */
            TN_TRY(tn_lowering_require(l, node, TN_CHECK_BROADCAST, 0, i - lead, to));
            tn_dim more = tn_dim_max(g, tn_dim_sub(g, from, tn_dim_const(g, 1)), tn_dim_const(g, 0));
            strides[i] = tn_dim_mul(g, old[i - lead], tn_dim_min(g, tn_dim_const(g, 1), more));
        } else
            return TN_ERR_UNSUPPORTED;
    }
    uint32_t q = tn_lowering_view(l, y, p->slot, tn_lowering_dim(l, p->offset), strides);
    return q == TN_NO_VIEW ? tn_error_status() : TN_OK;
}

static tn_status lower_fit(tn_lowerer *l, tn_node node, const tn_view *p, const tn_dim *old) {
    tn_value y = tn_node_output(l->graph, node, 0);
    for (int i = 0; i < p->rank; i++)
        TN_TRY(tn_lowering_require(l, node, TN_CHECK_EQUAL, 0, i, tn_value_dim(l->graph, y, i)));
    uint32_t q = tn_lowering_view(l, y, p->slot, tn_lowering_dim(l, p->offset), old);
    return q == TN_NO_VIEW ? tn_error_status() : TN_OK;
}

static tn_status lower_slice(tn_lowerer *l, tn_node node, const tn_view *p, const tn_dim *old) {
    tn_graph *g = l->graph;
    const tn_dim *start, *size;
    const int64_t *step;
    tn_attr_dims(g, node, "start", &start);
    tn_attr_dims(g, node, "size", &size);
    tn_attr_ints(g, node, "step", &step);
    tn_dim strides[TN_MAX_RANK], offset = tn_lowering_dim(l, p->offset), zero = tn_dim_const(g, 0),
                                 one = tn_dim_const(g, 1);
    for (int i = 0; i < p->rank; i++) {
        tn_dim last = tn_dim_add(g, start[i], tn_dim_mul(g, tn_dim_sub(g, size[i], one), tn_dim_const(g, step[i])));
        tn_dim low = step[i] > 0 ? start[i] : last, high = step[i] > 0 ? last : start[i];
        tn_dim end = tn_lowering_dim(l, p->dim[i]);
        bool whole = is_const(l, start[i], 0) && step[i] == 1 && tn_dim_equal(g, size[i], end);
        bool inside = tn_dim_at_most(g, zero, low) && tn_dim_at_most(g, tn_dim_add(g, high, one), end);
        int64_t n;
        bool nothing = is_const(l, size[i], 0) && tn_dim_is_const(g, start[i], &n);
        if (!whole && !inside && !nothing)
            return TN_ERR_UNSUPPORTED; /* bounds are checked at run time, by the row itself, and that `start` has a value */
        offset = is_const(l, size[i], 0) ? offset : tn_dim_add(g, offset, tn_dim_mul(g, start[i], old[i]));
        strides[i] = tn_dim_mul(g, old[i], tn_dim_const(g, step[i]));
    }
    uint32_t q = tn_lowering_view(l, tn_node_output(g, node, 0), p->slot, offset, strides);
    return q == TN_NO_VIEW ? tn_error_status() : TN_OK;
}

static tn_status lower_pad(tn_lowerer *l, tn_node node, const tn_view *p, const tn_dim *old) {
    tn_graph *g = l->graph;
    tn_tensor *value = tn_node_input_count(g, node) > 1 ? tn_value_constant(g, tn_node_input(g, node, 1)) : NULL;
    tn_value y = tn_node_output(g, node, 0);
    tn_dtype dtype = tn_value_dtype(g, y);
    if (!tn_attr_string_is(g, node, "mode", "constant") || !value || !tn_lowering_admits(dtype) || dtype == TN_I64 ||
        dtype == TN_U64)
        return TN_ERR_UNSUPPORTED;
    const tn_dim *lo, *hi;
    tn_attr_dims(g, node, "lo", &lo);
    tn_attr_dims(g, node, "hi", &hi);
    for (int i = 0; i < p->rank; i++) {
        TN_TRY(tn_lowering_require_size(l, node, lo[i]));
        TN_TRY(tn_lowering_require_size(l, node, hi[i]));
    }
    tn_access *a;
    tn_draft *d = copy_draft(l, y, node, &a);
    tn_guard *guard = tn_arena_alloc(&l->plan->arena, (p->rank + 1u) * sizeof *guard);
    if (!d || !guard)
        return TN_ERR_MEMORY;
    tn_size zero, one;
    tn_dim offset = tn_lowering_dim(l, p->offset);
    if (!tn_lowering_const(l, 0, &zero) || !tn_lowering_const(l, 1, &one))
        return TN_ERR_MEMORY;
    a->slot = p->slot;
    a->dtype = (uint8_t)dtype;
    a->guard = guard;
    a->fill = tn_tensor_get_f64(value, 0);
    d->channels_last = tn_view_is_channels_last(l, p);
    for (int i = 0; i < p->rank; i++) {
        a->stride[i] = p->stride[i];
        if (is_const(l, lo[i], 0) && is_const(l, hi[i], 0))
            continue;
        tn_guard *q = &guard[a->guards++];
        q->coef = tn_arena_alloc(&l->plan->arena, 2 * (TN_MAX_RANK + 2) * sizeof *q->coef);
        if (!q->coef || !tn_lowering_size(l, tn_dim_sub(g, tn_dim_const(g, 0), lo[i]), &q->offset))
            return TN_ERR_MEMORY;
        for (int j = 0; j < d->kernel.outer; j++)
            q->coef[j] = j == i ? one : zero;
        q->extent = p->dim[i];
        offset = tn_dim_sub(g, offset, tn_dim_mul(g, lo[i], old[i]));
    }
    if (!tn_lowering_size(l, offset, &a->offset))
        return TN_ERR_MEMORY;
    return tn_lowering_close(l, d);
}

/* --- concatenations: values are made where they are wanted, or copied there ------------------------------------------------------------ */

static bool is_concat(const tn_graph *g, tn_node node) {
    const tn_op *op = tn_node_op(g, node);
    return op->lowering == TN_LOWER_MOVE && op->code == TN_MOVE_CONCAT;
}

/* Whether kernels make a concatenation: its size is known, and those of its inputs are alike. */
static bool concat_is_plain(const tn_lowerer *l, tn_node node) {
    tn_graph *g = l->graph;
    tn_value y = tn_node_output(g, node, 0);
    int axis = (int)tn_attr_int(g, node, "axis");
    if (!tn_lowering_admits(tn_value_dtype(g, y)) || !tn_lowering_known(l, y))
        return false;
    for (uint32_t i = 0; i < tn_node_input_count(g, node); i++)
        for (int j = 0; j < tn_value_rank(g, y); j++)
            if (j != axis && !tn_dim_equal(g, tn_value_dim(g, tn_node_input(g, node, i), j), tn_value_dim(g, y, j)))
                return false;
    return true;
}

/* The view of the whole of a concatenation, made before its first part is. Channels lie side by side where the part that is made first
   wants it, and those that are there already lie so. */
static uint32_t concat_whole(tn_lowerer *l, tn_node node, bool wanted) {
    tn_graph *g = l->graph;
    tn_value y = tn_node_output(g, node, 0);
    if (l->view_of[y.id] != TN_NO_VIEW)
        return l->view_of[y.id];
    tn_layout_option layout = l->options->layout;
    bool last = tn_value_rank(g, y) >= 3 && !tn_lowering_is_output(l, y) && layout != TN_LAYOUT_NCHW &&
                (wanted || layout == TN_LAYOUT_NHWC);
    for (uint32_t i = 0; i < tn_node_input_count(g, node) && last && layout == TN_LAYOUT_AUTO; i++) {
        uint32_t from = l->view_of[tn_node_input(g, node, i).id];
        if (from != TN_NO_VIEW) {
            const tn_view v = l->plan->view.data[from];
            last = tn_view_is_channels_last(l, &v);
        }
    }
    tn_dim strides[TN_MAX_RANK];
    if (last)
        tn_lowering_channels_last(l, y, strides);
    return tn_lowering_view(l, y, tn_lowering_arena_slot(l, y), (tn_dim){0}, last ? strides : NULL);
}

/* Where part `index` of a concatenation begins. */
static tn_dim part_offset(tn_lowerer *l, tn_node node, const tn_view *whole, uint32_t index) {
    tn_graph *g = l->graph;
    int axis = (int)tn_attr_int(g, node, "axis");
    tn_dim at = tn_lowering_dim(l, whole->offset);
    for (uint32_t i = 0; i < index; i++)
        at = tn_dim_add(
            g, at,
            tn_dim_mul(g, tn_value_dim(g, tn_node_input(g, node, i), axis), tn_lowering_dim(l, whole->stride[axis])));
    return at;
}

/* Whether every part of a concatenation has a size, whatever is fed: the whole has room for each before the others are made. */
static bool parts_have_sizes(const tn_lowerer *l, tn_node node) {
    const tn_graph *g = l->graph;
    for (uint32_t i = 0; i < tn_node_input_count(g, node); i++) {
        tn_value x = tn_node_input(g, node, i);
        for (int j = 0; j < tn_value_rank(g, x); j++)
            if (!tn_lowering_size_holds(l, node, tn_value_dim(g, x, j)))
                return false;
    }
    return true;
}

tn_status tn_lowering_part(tn_lowerer *l, const tn_draft *d, bool channels_last, uint32_t *place) {
    tn_graph *g = l->graph;
    *place = TN_NO_VIEW;
    if (l->options->level < 1 || d->in_order || tn_lowering_is_output(l, d->value))
        return TN_OK;
    uint32_t home = tn_node_parent(g, d->nodes[0]).id;
    for (tn_use u = tn_value_first_use(g, d->value); u.node.id; u = tn_use_next(g, u)) {
        uint32_t count = 0, index = 0;
        if (!is_concat(g, u.node) || tn_node_parent(g, u.node).id != home || !l->needed[u.node.id] ||
            !concat_is_plain(l, u.node) || !parts_have_sizes(l, u.node))
            continue;
        for (uint32_t i = 0; i < tn_node_input_count(g, u.node); i++)
            if (tn_node_input(g, u.node, i).id == d->value.id) {
                count++;
                index = i;
            }
        uint32_t whole = count == 1 ? concat_whole(l, u.node, channels_last) : TN_NO_VIEW;
        if (count > 1)
            continue;
        if (whole == TN_NO_VIEW)
            return tn_error_status();
        const tn_view w = l->plan->view.data[whole];
        if (w.rank >= 3 && tn_view_is_channels_last(l, &w) != channels_last)
            return TN_OK; /* a copy turns it */
        tn_dim *strides = tn_view_strides(l, &w);
        if (strides)
            *place = tn_lowering_view(l, d->value, w.slot, part_offset(l, u.node, &w, index), strides);
        return *place == TN_NO_VIEW ? TN_ERR_MEMORY : TN_OK;
    }
    return TN_OK;
}

/* Parts that are not made in their place are copied there. */
static tn_status lower_concat(tn_lowerer *l, tn_node node) {
    tn_graph *g = l->graph;
    tn_value y = tn_node_output(g, node, 0);
    int rank = tn_value_rank(g, y);
    if (!concat_is_plain(l, node))
        return TN_ERR_UNSUPPORTED;
    uint32_t n = tn_node_input_count(g, node);
    bool last = true;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = tn_lowering_value(l, tn_node_input(g, node, i));
        if (from == TN_NO_VIEW)
            return tn_error_status();
        const tn_view v = l->plan->view.data[from];
        last = last && tn_view_is_channels_last(l, &v);
    }
    uint32_t whole = concat_whole(l, node, last);
    if (whole == TN_NO_VIEW)
        return tn_error_status();
    for (uint32_t i = 0; i < n; i++) {
        tn_value x = tn_node_input(g, node, i);
        const tn_view p = l->plan->view.data[l->view_of[x.id]], w = l->plan->view.data[whole];
        tn_size at;
        if (!tn_lowering_size(l, part_offset(l, node, &w, i), &at))
            return TN_ERR_MEMORY;
        if (p.slot == w.slot && p.offset == at)
            continue;
        tn_access *a;
        tn_draft *d = copy_draft(l, x, node, &a);
        if (!d)
            return tn_error_status();
        a->slot = p.slot;
        a->dtype = (uint8_t)tn_value_dtype(g, x);
        a->offset = p.offset;
        tn_kernel *k = &d->kernel;
        k->outputs = 1;
        k->output = tn_arena_alloc(&l->plan->arena, sizeof *k->output);
        k->result = tn_arena_alloc(&l->plan->arena, sizeof *k->result);
        if (!k->output || !k->result)
            return TN_ERR_MEMORY;
        k->output[0] = (tn_access){.slot = w.slot, .dtype = a->dtype, .offset = at, .stride = w.stride};
        for (int j = 0; j < rank; j++)
            a->stride[j] = p.stride[j];
        TN_TRY(tn_lowering_call(l, k, 1, &node));
    }
    return TN_OK;
}

bool tn_lowering_is_broadcast(const tn_graph *g, tn_node node) {
    const tn_op *op = tn_node_op(g, node);
    return op->lowering == TN_LOWER_MOVE && op->code == TN_MOVE_BROADCAST;
}

tn_status tn_lower_move(tn_lowerer *l, tn_node node) {
    tn_graph *g = l->graph;
    tn_value x = tn_node_input(g, node, 0), y = tn_node_output(g, node, 0);
    uint16_t code = tn_node_op(g, node)->code;
    tn_draft *d = l->draft_of[x.id];
    if (d && d->spreads && !d->broadcast.id) {
        d->broadcast = node;
        l->draft_of[x.id] = NULL;
        l->draft_of[y.id] = d;
        return TN_OK;
    }
    if (!tn_lowering_admits(tn_value_dtype(g, y)) || !tn_lowering_known(l, y) || tn_value_rank(g, x) < 0)
        return TN_ERR_UNSUPPORTED;
    if (code == TN_MOVE_CONCAT)
        return lower_concat(l, node);
    if (code == TN_MOVE_RESHAPE)
        return lower_reshape(l, node);
    uint32_t place = tn_lowering_value(l, x);
    if (place == TN_NO_VIEW)
        return tn_error_status();
    const tn_view v = l->plan->view.data[place];
    tn_dim *old = tn_view_strides(l, &v);
    if (!old)
        return TN_ERR_MEMORY;
    switch (code) {
    case TN_MOVE_TRANSPOSE: return lower_transpose(l, node, &v, old);
    case TN_MOVE_BROADCAST: return lower_broadcast(l, node, &v, old);
    case TN_MOVE_FIT: return lower_fit(l, node, &v, old);
    case TN_MOVE_SLICE: return lower_slice(l, node, &v, old);
    case TN_MOVE_PAD: return lower_pad(l, node, &v, old);
    default: return TN_ERR_UNSUPPORTED;
    }
}
