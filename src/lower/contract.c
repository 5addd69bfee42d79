/* Contractions and windows: accesses with guards over outer and inner axes. */
#include "lower/lowering.h"
#include "ops/ops.h"
#include "ops/winograd.h"

static bool is_const(const tn_lowerer *l, tn_dim d, int64_t value) {
    int64_t n;
    return tn_dim_is_const(l->graph, d, &n) && n == value;
}

static void use_place(tn_access *a, const tn_view *p, tn_dtype dtype) {
    a->slot = p->slot;
    a->dtype = (uint8_t)dtype;
    a->offset = p->offset;
}

/* Adds an axis after those there: inner ones after all outer ones. */
static bool add_axis(tn_kernel *k, bool inner, tn_size extent) {
    if (k->outer + k->inner >= 2 * TN_MAX_RANK)
        return false;
    k->extent[k->outer + k->inner] = extent;
    if (inner)
        k->inner++;
    else
        k->outer++;
    return true;
}

/* One windowed axis of an operand: source index = outer index * stride + inner index * dilation - lo. `inner` is -1 where the window
   is one element. Sets strides, moves *offset, adds a guard where padding may be read. */
static tn_status window_axis(tn_lowerer *l, const tn_kernel *k, tn_access *a, const tn_view *p, int axis, int outer,
                             int inner, int64_t stride, int64_t dilation, tn_dim lo, tn_dim hi, tn_dim *offset) {
    tn_graph *g = l->graph;
    tn_dim step = tn_lowering_dim(l, p->stride[axis]);
    if (!tn_lowering_size(l, tn_dim_mul(g, step, tn_dim_const(g, stride)), &a->stride[outer]) ||
        (inner >= 0 && !tn_lowering_size(l, tn_dim_mul(g, step, tn_dim_const(g, dilation)), &a->stride[inner])))
        return TN_ERR_MEMORY;
    *offset = tn_dim_sub(g, *offset, tn_dim_mul(g, lo, step));
    if (is_const(l, lo, 0) && is_const(l, hi, 0))
        return TN_OK;
    tn_guard *q = &a->guard[a->guards++];
    q->coef = tn_arena_alloc(&l->plan->arena, 2 * (TN_MAX_RANK + 2) * sizeof *q->coef);
    tn_size zero;
    if (!q->coef || !tn_lowering_const(l, 0, &zero) ||
        !tn_lowering_size(l, tn_dim_sub(g, tn_dim_const(g, 0), lo), &q->offset))
        return TN_ERR_MEMORY;
    for (int i = 0; i < k->outer + k->inner; i++)
        q->coef[i] = zero;
    q->extent = p->dim[axis];
    if (!tn_lowering_const(l, stride, &q->coef[outer]) ||
        (inner >= 0 && !tn_lowering_const(l, dilation, &q->coef[inner])))
        return TN_ERR_MEMORY;
    return TN_OK;
}

static tn_status require_padding(tn_lowerer *l, tn_node node, uint32_t n, const tn_dim *lo, const tn_dim *hi) {
    for (uint32_t i = 0; i < n; i++) {
        TN_TRY(tn_lowering_require_size(l, node, lo[i]));
        TN_TRY(tn_lowering_require_size(l, node, hi[i]));
    }
    return TN_OK;
}

/* Whether windows reach far beyond what they slide over: then most of their steps would read padding alone. */
static bool is_mostly_padding(const tn_graph *g, tn_value x, int rank, const int64_t *window) {
    for (int i = 0; i < rank; i++) {
        int64_t size, most = 1024;
        if (tn_dim_is_const(g, tn_value_dim(g, x, i), &size))
            most = size < INT64_MAX / 4 ? size * 2 + 16 : INT64_MAX;
        if (window[i] > most)
            return true;
    }
    return false;
}

tn_status tn_lower_window(tn_lowerer *l, tn_node node) {
    tn_graph *g = l->graph;
    tn_value x = tn_node_input(g, node, 0), y = tn_node_output(g, node, 0);
    tn_dtype dtype = tn_value_dtype(g, x);
    if (!tn_lowering_known(l, y) || !tn_lowering_admits(dtype))
        return TN_ERR_UNSUPPORTED;
    const int64_t *window, *stride, *dilation;
    tn_attr_ints(g, node, "window", &window);
    if (is_mostly_padding(g, x, tn_value_rank(g, x), window))
        return TN_ERR_UNSUPPORTED; /* the row leaves padding out */
    uint32_t place = tn_lowering_value(l, x);
    tn_draft *d = place == TN_NO_VIEW ? NULL : tn_lowering_draft(l, y, node, TN_KERNEL_REDUCE);
    if (!d)
        return tn_error_status();
    const tn_view p = l->plan->view.data[place];
    const tn_dim *lo, *hi;
    tn_attr_ints(g, node, "stride", &stride);
    tn_attr_ints(g, node, "dilation", &dilation);
    tn_attr_dims(g, node, "lo", &lo);
    tn_attr_dims(g, node, "hi", &hi);
    TN_TRY(require_padding(l, node, p.rank, lo, hi));
    tn_kernel *k = &d->kernel;
    k->combine = tn_node_op(g, node)->code;
    if (tn_dtype_is_float(dtype))
        k->accumulator = TN_F64;
    int inner[TN_MAX_RANK] = {0};
    for (int i = 0; i < p.rank; i++) {
        tn_size extent;
        inner[i] = -1;
        if (window[i] == 1)
            continue;
        inner[i] = k->outer + k->inner;
        if (!tn_lowering_const(l, window[i], &extent) || !add_axis(k, true, extent))
            return TN_ERR_MEMORY;
    }
    tn_access *a = tn_lowering_operand(l, d);
    if (!a || !(a->guard = tn_arena_alloc(&l->plan->arena, (p.rank + 1u) * sizeof *a->guard)))
        return TN_ERR_MEMORY;
    use_place(a, &p, dtype);
    d->channels_last = tn_view_is_channels_last(l, &p);
    a->fill_identity = k->combine;
    tn_dim offset = tn_lowering_dim(l, p.offset);
    for (int i = 0; i < p.rank; i++)
        TN_TRY(window_axis(l, k, a, &p, i, i, inner[i], stride[i], dilation[i], lo[i], hi[i], &offset));
    if (!tn_lowering_size(l, offset, &a->offset))
        return TN_ERR_MEMORY;
    d->result = TN_REG_REDUCED;
    return tn_lowering_close(l, d);
}

/* A CONTRACT draft without axes for a node's output. */
static tn_draft *contract_draft(tn_lowerer *l, tn_value y, tn_node node) {
    tn_draft *d = tn_lowering_draft(l, y, node, TN_KERNEL_CONTRACT);
    if (!d)
        return NULL;
    tn_dtype dtype = tn_value_dtype(l->graph, y), asked = (tn_dtype)tn_attr_int(l->graph, node, "acc");
    bool narrow = dtype == TN_F16 || dtype == TN_BF16;
    d->kernel.accumulator = (uint8_t)(asked != TN_DTYPE_NONE ? asked : narrow ? TN_F32 : dtype);
    d->kernel.combine = TN_SCALAR_ADD;
    d->kernel.outer = 0;
    d->result = TN_REG_REDUCED;
    return d;
}

/* Along one axis, a convolution of an input that is spread by `spread` is as many plain ones: outputs spread * q + r, for one r, are made of the
   taps spread * t + spread - 1 - r. So an axis r of outputs and weights is all it takes, where this fits: with whole numbers of t and q, and
   nothing cut off before the first output. q, t: their numbers; lo, hi: padding of the input as it is. */
typedef struct phases {
    int64_t spread, taps;
    tn_dim q, lo, hi;
} phases;

static bool find_phases(tn_lowerer *l, tn_node node, const tn_view *px, const tn_view *pw, uint32_t i, phases *f) {
    tn_graph *g = l->graph;
    const int64_t *stride, *dilation, *spread;
    const tn_dim *lo;
    int64_t taps, low;
    tn_attr_ints(g, node, "stride", &stride);
    tn_attr_ints(g, node, "dilation", &dilation);
    tn_attr_ints(g, node, "lhs_dilation", &spread);
    tn_attr_dims(g, node, "lo", &lo);
    int64_t s = f->spread = spread ? spread[i] : 1;
    if (s == 1)
        return true;
    tn_dim size = tn_value_dim(g, tn_node_output(g, node, 0), (int)i + 2), by = tn_dim_const(g, s);
    f->q = tn_dim_floordiv(g, size, by);
    if ((stride && stride[i] != 1) || (dilation && dilation[i] != 1) ||
        !tn_dim_is_const(g, tn_lowering_dim(l, pw->dim[2 + i]), &taps) || taps % s != 0 ||
        !tn_dim_is_const(g, lo[i], &low) || (low + 1) % s != 0 || !tn_dim_equal(g, tn_dim_mul(g, f->q, by), size))
        return false;
    f->taps = taps / s;
    f->lo = tn_dim_const(g, (low + 1) / s - 1);
    tn_dim reach = tn_dim_add(g, f->q, tn_dim_const(g, f->taps - 1));
    f->hi = tn_dim_sub(g, tn_dim_sub(g, reach, f->lo), tn_lowering_dim(l, px->dim[2 + i]));
    return true;
}

/* x[n, g, c, s...], w[g, m, c, k...] -> y[n, (g, m), s...]; the axis of groups is there only with more than one; an axis of s is two where
   the input is spread. */
static tn_status lower_conv(tn_lowerer *l, tn_node node, const tn_view *px, const tn_view *pw) {
    tn_graph *g = l->graph;
    const int64_t *stride, *dilation;
    const tn_dim *lo, *hi;
    uint32_t n = tn_attr_ints(g, node, "stride", &stride);
    tn_attr_ints(g, node, "dilation", &dilation);
    tn_attr_dims(g, node, "lo", &lo);
    tn_attr_dims(g, node, "hi", &hi);
    phases phase[TN_MAX_RANK];
    for (uint32_t i = 0; i < n; i++)
        if (!find_phases(l, node, px, pw, i, &phase[i]))
            return TN_ERR_UNSUPPORTED;
    tn_value y = tn_node_output(g, node, 0);
    int64_t groups = tn_attr_int(g, node, "groups");
    tn_dim many = tn_dim_const(g, groups), per = tn_dim_floordiv(g, tn_value_dim(g, y, 1), many);
    for (uint32_t i = 0; i < n; i++) {
        int64_t low, high;
        tn_dim_bounds(g, tn_lowering_dim(l, pw->dim[2 + i]), &low, &high);
        if (low < 1)
            return TN_ERR_UNSUPPORTED; /* perhaps a kernel without elements: the row refuses it */
    }
    TN_TRY(require_padding(l, node, n, lo, hi));
    TN_TRY(tn_lowering_require(l, node, TN_CHECK_EQUAL, 0, 1, tn_dim_mul(g, tn_lowering_dim(l, pw->dim[1]), many)));
    TN_TRY(tn_lowering_require(l, node, TN_CHECK_EQUAL, 1, 0, tn_dim_mul(g, per, many)));
    tn_draft *d = contract_draft(l, y, node);
    if (!d)
        return TN_ERR_MEMORY;
    d->channels_last = true; /* channels innermost: the sum runs through memory, and so do the columns of the result */
    tn_kernel *k = &d->kernel;
    k->winograd = l->options->level >= 2 ? (uint8_t)tn_winograd_of(g, node) : 0;
    tn_size extent, s_groups, s_per;
    int at_group = -1;
    d->axis[0] = 0;
    if (!tn_lowering_size(l, many, &s_groups) || !tn_lowering_size(l, per, &s_per) ||
        !tn_lowering_size(l, tn_value_dim(g, y, 0), &extent) || !add_axis(k, false, extent))
        return TN_ERR_MEMORY;
    d->axis[1] = 1;
    if (groups > 1) {
        at_group = k->outer;
        add_axis(k, false, s_groups);
    }
    int at_m = k->outer, at[TN_MAX_RANK];
    add_axis(k, false, s_per);
    for (uint32_t i = 0; i < n; i++) {
        tn_size by;
        bool spreads = phase[i].spread != 1;
        d->axis[2 + i] = (uint8_t)(at[i] = k->outer);
        if (!tn_lowering_size(l, spreads ? phase[i].q : tn_value_dim(g, y, (int)i + 2), &extent) ||
            !add_axis(k, false, extent) || !tn_lowering_const(l, phase[i].spread, &by))
            return TN_ERR_MEMORY;
        if (spreads && !add_axis(k, false, by))
            return TN_ERR_LIMIT;
    }
    d->axis[2 + n] = k->outer;
    /* the order of the sum: kernel positions, then channels, whatever the layout */
    int at_k = k->outer, at_c = k->outer + (int)n;
    for (uint32_t i = 0; i < n; i++) {
        tn_size taps = pw->dim[2 + i];
        if (phase[i].spread != 1 && !tn_lowering_const(l, phase[i].taps, &taps))
            return TN_ERR_MEMORY;
        if (!add_axis(k, true, taps))
            return TN_ERR_LIMIT;
    }
    if (!add_axis(k, true, pw->dim[1]))
        return TN_ERR_LIMIT;
    if (!(k->role = tn_arena_alloc(&l->plan->arena, (size_t)k->outer + k->inner)))
        return TN_ERR_MEMORY;
    memset(k->role + k->outer, TN_AXIS_SUM, k->inner);
    k->role[at_m] = TN_AXIS_COLUMN;
    if (at_group >= 0)
        k->role[at_group] = TN_AXIS_BATCH;
    for (uint32_t i = 0; i < n; i++)
        if (phase[i].spread != 1)
            k->role[at[i] + 1] = TN_AXIS_BATCH;
    tn_access *x = tn_lowering_operand(l, d), *w = tn_lowering_operand(l, d);
    if (!x || !w || !(x->guard = tn_arena_alloc(&l->plan->arena, (n + 1u) * sizeof *x->guard)))
        return TN_ERR_MEMORY;
    use_place(x, px, tn_value_dtype(g, px->value));
    use_place(w, pw, tn_value_dtype(g, pw->value));
    x->stride[0] = px->stride[0];
    x->stride[at_c] = px->stride[1];
    w->stride[at_m] = pw->stride[0];
    w->stride[at_c] = pw->stride[1];
    if (at_group >= 0 &&
        (!tn_lowering_size(l, tn_dim_mul(g, tn_lowering_dim(l, px->stride[1]), tn_lowering_dim(l, pw->dim[1])),
                           &x->stride[at_group]) ||
         !tn_lowering_size(l, tn_dim_mul(g, tn_lowering_dim(l, pw->stride[0]), per), &w->stride[at_group])))
        return TN_ERR_MEMORY;
    tn_dim offset = tn_lowering_dim(l, px->offset), w_offset = tn_lowering_dim(l, pw->offset);
    for (uint32_t i = 0; i < n; i++) {
        const phases *f = &phase[i];
        tn_dim step = tn_lowering_dim(l, pw->stride[2 + i]), by = tn_dim_const(g, f->spread);
        bool spreads = f->spread != 1;
        w->stride[at_k + (int)i] = pw->stride[2 + i];
        if (spreads) {
            w_offset = tn_dim_add(g, w_offset, tn_dim_mul(g, step, tn_dim_const(g, f->spread - 1)));
            if (!tn_lowering_size(l, tn_dim_mul(g, step, by), &w->stride[at_k + (int)i]) ||
                !tn_lowering_size(l, tn_dim_sub(g, tn_dim_const(g, 0), step), &w->stride[at[i] + 1]))
                return TN_ERR_MEMORY;
        }
        TN_TRY(window_axis(l, k, x, px, (int)i + 2, at[i], at_k + (int)i, stride ? stride[i] : 1,
                           dilation ? dilation[i] : 1, spreads ? f->lo : lo[i], spreads ? f->hi : hi[i], &offset));
    }
    if (!tn_lowering_size(l, offset, &x->offset) || !tn_lowering_size(l, w_offset, &w->offset))
        return TN_ERR_MEMORY;
    return tn_lowering_close(l, d);
}

static bool listed(const int64_t *list, uint32_t n, int axis) {
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == axis)
            return true;
    return false;
}

static tn_status lower_dot(tn_lowerer *l, tn_node node, const tn_view *pa, const tn_view *pb) {
    tn_graph *g = l->graph;
    const int64_t *batch[2], *contract[2];
    uint32_t n_batch = tn_attr_ints(g, node, "a_batch", &batch[0]),
             n_contract = tn_attr_ints(g, node, "a_contract", &contract[0]);
    tn_attr_ints(g, node, "b_batch", &batch[1]);
    tn_attr_ints(g, node, "b_contract", &contract[1]);
    tn_draft *d = contract_draft(l, tn_node_output(g, node, 0), node);
    if (!d)
        return TN_ERR_MEMORY;
    const tn_view *p[2] = {pa, pb};
    tn_kernel *k = &d->kernel;
    /* the kernel axis of each operand's axis */
    int axis_of[2][TN_MAX_RANK] = {{0}};
    for (uint32_t i = 0; i < n_batch; i++) {
        axis_of[0][batch[0][i]] = axis_of[1][batch[1][i]] = k->outer;
        if (!tn_dim_equal(g, tn_lowering_dim(l, pa->dim[batch[0][i]]), tn_lowering_dim(l, pb->dim[batch[1][i]])))
            return TN_ERR_UNSUPPORTED;
        add_axis(k, false, pa->dim[batch[0][i]]);
    }
    for (int o = 0; o < 2; o++)
        for (int i = 0; i < p[o]->rank; i++)
            if (!listed(batch[o], n_batch, i) && !listed(contract[o], n_contract, i)) {
                axis_of[o][i] = k->outer;
                if (!add_axis(k, false, p[o]->dim[i]))
                    return TN_ERR_LIMIT;
            }
    for (int i = 0; i <= d->rank; i++)
        d->axis[i] = (uint8_t)i;
    if (!(k->role = tn_arena_alloc(&l->plan->arena, (size_t)k->outer + n_contract + 1)))
        return TN_ERR_MEMORY;
    memset(k->role, TN_AXIS_BATCH, k->outer);
    for (int i = 0; i < pa->rank; i++)
        if (!listed(batch[0], n_batch, i) && !listed(contract[0], n_contract, i))
            k->role[axis_of[0][i]] = TN_AXIS_ROW;
    if (pb->rank > (int)(n_batch + n_contract))
        k->role[k->outer - 1] = TN_AXIS_COLUMN; /* the last of b's own */
    memset(k->role + k->outer, TN_AXIS_SUM, n_contract);
    for (uint32_t i = 0; i < n_contract; i++) {
        axis_of[0][contract[0][i]] = axis_of[1][contract[1][i]] = k->outer + k->inner;
        if (!tn_dim_equal(g, tn_lowering_dim(l, pa->dim[contract[0][i]]), tn_lowering_dim(l, pb->dim[contract[1][i]])))
            return TN_ERR_UNSUPPORTED;
        add_axis(k, true, pa->dim[contract[0][i]]);
    }
    for (int o = 0; o < 2; o++) {
        tn_access *a = tn_lowering_operand(l, d);
        if (!a)
            return TN_ERR_MEMORY;
        use_place(a, p[o], tn_value_dtype(g, p[o]->value));
        for (int i = 0; i < p[o]->rank; i++)
            a->stride[axis_of[o][i]] = p[o]->stride[i];
    }
    return tn_lowering_close(l, d);
}

/* Whether a convolution of one channel a group, of enough channels to fill vectors, reads an image whose channels do not lie side by side:
   gathering them at each of its positions costs many times what one copy does. */
static bool wants_copy(const tn_lowerer *l, tn_node node, const tn_view *x, const tn_view *w) {
    const tn_graph *g = l->graph;
    int64_t per, channels, step;
    return l->options->layout != TN_LAYOUT_NCHW && x->rank > 2 && tn_attr_int(g, node, "groups") >= 8 &&
           tn_dim_is_const(g, tn_lowering_dim(l, w->dim[1]), &per) && per == 1 &&
           tn_dim_is_const(g, tn_lowering_dim(l, x->dim[1]), &channels) && channels >= 8 &&
           !(tn_dim_is_const(g, tn_lowering_dim(l, x->stride[1]), &step) && step == 1);
}

/* A copy of a value with axis 1 innermost, for one reader: the place of the value stays. */
static uint32_t copy_channels_last(tn_lowerer *l, tn_node node, tn_value value, uint32_t place) {
    tn_dim strides[TN_MAX_RANK];
    uint32_t keep = l->view_of[value.id], slot = tn_lowering_arena_slot(l, value);
    tn_lowering_channels_last(l, value, strides);
    uint32_t to = tn_lowering_view(l, value, slot, (tn_dim){0}, strides);
    l->view_of[value.id] = keep;
    if (to == TN_NO_VIEW || tn_lowering_copy(l, node, tn_value_dtype(l->graph, value), place, to) != TN_OK)
        return TN_NO_VIEW;
    return to;
}

tn_status tn_lower_contract(tn_lowerer *l, tn_node node) {
    tn_graph *g = l->graph;
    tn_value y = tn_node_output(g, node, 0), a = tn_node_input(g, node, 0), b = tn_node_input(g, node, 1);
    if (!tn_lowering_known(l, y) || !tn_lowering_admits(tn_value_dtype(g, a)))
        return TN_ERR_UNSUPPORTED;
    uint32_t pa = tn_lowering_value(l, a), pb = pa == TN_NO_VIEW ? pa : tn_lowering_value(l, b);
    if (pb == TN_NO_VIEW)
        return tn_error_status();
    tn_view x = l->plan->view.data[pa], w = l->plan->view.data[pb];
    if (tn_node_op(g, node)->code != TN_CONTRACT_CONV)
        return lower_dot(l, node, &x, &w);
    if (wants_copy(l, node, &x, &w)) {
        if ((pa = copy_channels_last(l, node, a, pa)) == TN_NO_VIEW)
            return tn_error_status();
        x = l->plan->view.data[pa];
    }
    return lower_conv(l, node, &x, &w);
}
