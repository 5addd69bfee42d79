/* Attention: a contraction whose rows are read by elementwise kernels and reductions along them, and what these make of a row by another
   contraction that sums along it. As one kernel, rows never are in memory as a whole; no bit differs. Found by what kernels read and write, when
   all of them are there, so that it does not matter how the graph spells it. */
#include "lower/join.h"

/* --- what may belong together ---------------------------------------------------------------------------------------------------------------- */

/* Whether an access walks the rows of scores one after the other: elements that lie row-major, one for each row or `wide`. `along`: the
   axis of the kernel that runs along a row. */
static bool walks_rows(const tn_joiner *f, const tn_kernel *k, const tn_access *a, int axes, bool wide, int along) {
    const tn_kernel *scores = tn_join_member(f, 0);
    int column = scores->outer - 1;
    tn_graph *g = f->l->graph;
    if (a->guards || !tn_join_is(f, a->offset, 0))
        return false;
    tn_dim step = wide ? tn_lowering_dim(f->l, scores->extent[column]) : tn_dim_const(g, 1);
    for (int i = column - 1; i >= 0; i--) {
        if (!tn_join_is(f, k->extent[i], 1) && !tn_dim_equal(g, tn_lowering_dim(f->l, a->stride[i]), step))
            return false;
        step = tn_dim_mul(g, step, tn_lowering_dim(f->l, scores->extent[i]));
    }
    for (int i = column; i < axes; i++)
        if (!tn_join_is(f, k->extent[i], 1) && !tn_join_is(f, a->stride[i], wide && i == along ? 1 : 0))
            return false;
    return true;
}

static bool is_contraction(const tn_kernel *k) {
    return k->kind == TN_KERNEL_CONTRACT && !k->packed_only && !k->winograd && k->inner > 0 && !tn_join_has_guards(k) &&
           k->outer > 0 && k->role[k->outer - 1] == TN_AXIS_COLUMN;
}

static bool begins(tn_joiner *f, uint32_t pc) {
    const tn_kernel *k = tn_join_kernel_at(f, pc);
    bool rows = false;
    if (!is_contraction(k) || !tn_join_is_passed_on(f, k) || tn_join_is(f, k->extent[k->outer - 1], 1))
        return false;
    for (int i = 0; i + 1 < k->outer; i++) {
        if (k->role[i] == TN_AXIS_BATCH ? rows : k->role[i] != TN_AXIS_ROW)
            return false;
        rows |= k->role[i] == TN_AXIS_ROW;
    }
    f->count = 0;
    tn_join_take(f, pc, true);
    return walks_rows(f, k, &k->output[0], k->outer, true, k->outer - 1);
}

/* A kernel reads what members make, and in the order of rows. */
static bool follows(const tn_joiner *f, const tn_kernel *k, int along) {
    for (int i = 0; i < k->operands; i++) {
        int from = tn_join_made_by(f, k->operand[i].slot);
        if (from >= 0 && !walks_rows(f, k, &k->operand[i], k->outer + k->inner, f->wide[from], along))
            return false;
    }
    return true;
}

static bool joins(tn_joiner *f, uint32_t pc) {
    const tn_kernel *k = tn_join_kernel_at(f, pc), *scores = tn_join_member(f, 0);
    int column = scores->outer - 1;
    bool reduces = k->kind == TN_KERNEL_REDUCE;
    if ((!reduces && k->kind != TN_KERNEL_STRIP) || f->count > TN_CHAIN_MOST || !tn_join_is_passed_on(f, k) ||
        tn_join_has_guards(k))
        return false;
    bool short_of_one = reduces && k->outer == column; /* the axis of columns is gone */
    if ((!short_of_one && k->outer != scores->outer) || k->inner != reduces)
        return false;
    for (int i = 0; i < column; i++)
        if (!tn_join_same(f, k->extent[i], scores->extent[i]))
            return false;
    bool one = short_of_one || tn_join_is(f, k->extent[column], 1);
    if (reduces ? !one || !tn_join_same(f, k->extent[k->outer], scores->extent[column])
                : !one && !tn_join_same(f, k->extent[column], scores->extent[column]))
        return false;
    if (!follows(f, k, reduces ? k->outer : column))
        return false;
    tn_join_take(f, pc, !one);
    return walks_rows(f, k, &k->output[0], k->outer, !one, column);
}

static bool ends(const tn_joiner *f, uint32_t pc) {
    const tn_kernel *k = tn_join_kernel_at(f, pc), *scores = tn_join_member(f, 0);
    int column = scores->outer - 1;
    if (!is_contraction(k) || k->outer != scores->outer || k->inner != 1 || k->outputs != 1 ||
        !tn_join_same(f, k->extent[k->outer], scores->extent[column]))
        return false;
    for (int i = 0; i < column; i++)
        if (k->role[i] != scores->role[i] || !tn_join_same(f, k->extent[i], scores->extent[i]))
            return false;
    for (int i = 0; i < k->operands; i++)
        if ((tn_join_made_by(f, k->operand[i].slot) == f->count - 1) != (i == 0) ||
            (i && tn_join_made_by(f, k->operand[i].slot) >= 0))
            return false;
    return f->wide[f->count - 1] && follows(f, k, k->outer);
}

/* The instructions from `pc` on that belong together, the first being a contraction. */
static bool find(tn_joiner *f, uint32_t pc) {
    if (!begins(f, pc))
        return false;
    for (uint32_t i = tn_join_next(f, pc); i; i = tn_join_next(f, i)) {
        const tn_kernel *k = tn_join_kernel_at(f, i);
        if (!tn_join_count_reads(f, k))
            continue;
        if (f->count > 1 && ends(f, i)) {
            bool all = true;
            for (int j = 0; j < f->count; j++)
                all &= f->left[j] == 0;
            f->at[f->count++] = i;
            return all && tn_join_may_wait(f);
        }
        if (!joins(f, i))
            return false;
    }
    return false;
}

/* --- the kernel ------------------------------------------------------------------------------------------------------------------------------- */

/* The kernel that alone reads what the last part makes, to copy it; 0: there is none, or it runs when sizes may be others. */
static uint32_t find_copy(const tn_joiner *f, uint32_t pc) {
    const tn_kernel *k = tn_join_kernel_at(f, pc);
    uint32_t slot = k->output[0].slot;
    if (!tn_join_is_passed_on(f, k) || f->reads[slot] != 1)
        return 0;
    for (uint32_t i = pc + 1; i < f->p->code.len && !f->target[i]; i++) {
        uint8_t op = f->p->code.data[i].op;
        if (op != TN_DO_CALL && op != TN_DO_HOST && op != TN_DO_CHECK)
            return 0;
        const tn_kernel *c = op == TN_DO_CALL && !f->gone[i] ? tn_join_kernel_at(f, i) : NULL;
        if (c && c->operands == 1 && c->operand[0].slot == slot)
            return c->kind == TN_KERNEL_STRIP && c->outputs == 1 && !c->steps && !c->operand[0].guards &&
                           c->operand[0].dtype == c->output[0].dtype &&
                           f->p->slot.data[c->output[0].slot].kind == TN_SLOT_ARENA
                       ? i
                       : 0;
    }
    return 0;
}

/* The last part writes where a copy of what it makes goes, if axes fit and the copy keeps columns side by side. Its strides in *stride. */
static bool follow_copy(const tn_joiner *f, const tn_kernel *k, const tn_kernel *copy, tn_size zero, tn_size *stride) {
    bool used[2 * TN_MAX_RANK + 4] = {false};
    if (!tn_join_same(f, k->output[0].offset, copy->operand[0].offset))
        return false;
    for (int i = 0; i < k->outer; i++) {
        stride[i] = zero;
        int n = 0;
        while (n < copy->outer && (used[n] || !tn_join_same(f, k->extent[i], copy->extent[n]) ||
                                   !tn_join_same(f, k->output[0].stride[i], copy->operand[0].stride[n])))
            n++;
        if (n < copy->outer)
            stride[i] = copy->output[0].stride[n];
        else if (!tn_join_is(f, k->extent[i], 1))
            return false;
        used[n] = true;
    }
    for (int n = 0; n < copy->outer; n++)
        if (!used[n] && !tn_join_is(f, copy->extent[n], 1))
            return false;
    return tn_join_is(f, stride[k->outer - 1], 1);
}

/* *copied is 0 afterwards where it does not fit. */
static tn_status take_copy(const tn_joiner *f, tn_kernel *k, const tn_kernel *copy, tn_size zero, uint32_t *copied) {
    tn_kernel *last = &k->part[k->parts - 1];
    tn_access *output = tn_arena_alloc(&f->p->arena, sizeof *output);
    tn_size *stride = tn_arena_alloc(&f->p->arena, 2 * (TN_MAX_RANK + 2) * sizeof *stride);
    if (!output || !stride)
        return TN_ERR_MEMORY;
    *output = copy->output[0];
    output->stride = stride;
    if (!follow_copy(f, last, copy, zero, stride)) {
        *copied = 0;
        return TN_OK;
    }
    k->output = last->output = output;
    return TN_OK;
}

/* Puts one kernel in the place of those found, if there is one that runs them. */
static tn_status join(tn_joiner *f) {
    tn_kernel k;
    tn_size zero;
    TN_TRY(tn_join_begin(f, TN_KERNEL_ATTENTION, &k));
    if (!tn_lowering_const(f->l, 0, &zero))
        return TN_ERR_MEMORY;
    uint32_t copied = find_copy(f, f->at[f->count - 1]);
    if (copied)
        TN_TRY(take_copy(f, &k, tn_join_kernel_at(f, copied), zero, &copied));
    k.impl = tn_lowering_choose(f->l, &k);
    return k.impl ? tn_join_put(f, &k, copied) : TN_OK;
}

tn_status tn_lowering_attention(tn_lowerer *l) {
    return tn_join_all(l, find, join);
}
