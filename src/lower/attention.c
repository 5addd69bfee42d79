/* Attention: a contraction whose rows are read by elementwise kernels and reductions along them, and what these make of a row by another
   contraction that sums along it. As one kernel, rows never are in memory as a whole; no bit differs. Found by what kernels read and write, when
   all of them are there, so that it does not matter how the graph spells it. */
#include "lower/lowering.h"

typedef struct finder {
    tn_lowerer *l;
    tn_plan *p;
    bool *target;     /* by instruction */
    uint32_t *reads;  /* by slot: of kernels */
    bool *elsewhere;  /* by slot: it is read by other than kernels, or written more than once */
    bool *gone;       /* by instruction */
    bool *dead;       /* by kernel */
    uint32_t *number; /* new ones, of instructions or of kernels */
    uint32_t found;

    /* what is looked at */
    uint32_t at[TN_CHAIN_MOST + 2]; /* instructions */
    uint32_t slot[TN_CHAIN_MOST + 2], left[TN_CHAIN_MOST + 2];
    bool wide[TN_CHAIN_MOST + 2]; /* an element for each of the scores; else one for each row */
    int count;
} finder;

static const tn_kernel *kernel_at(const finder *f, uint32_t pc) {
    return &f->p->kernel.data[f->p->code.data[pc].a];
}
static const tn_kernel *member(const finder *f, int i) {
    return kernel_at(f, f->at[i]);
}

static bool is(const finder *f, tn_size size, int64_t value) {
    int64_t n;
    return tn_dim_is_const(f->l->graph, tn_lowering_dim(f->l, size), &n) && n == value;
}
static bool same(const finder *f, tn_size a, tn_size b) {
    return a == b || tn_dim_equal(f->l->graph, tn_lowering_dim(f->l, a), tn_lowering_dim(f->l, b));
}

/* Who made a slot that only members read; -1: it comes from elsewhere. */
static int made_by(const finder *f, uint32_t slot) {
    for (int i = 0; i < f->count; i++)
        if (f->slot[i] == slot)
            return i;
    return -1;
}

/* --- what may belong together ---------------------------------------------------------------------------------------------------------------- */

/* Whether an access walks the rows of scores one after the other: elements that lie row-major, one for each row or `wide`. `along`: the
   axis of the kernel that runs along a row. */
static bool walks_rows(const finder *f, const tn_kernel *k, const tn_access *a, int axes, bool wide, int along) {
    const tn_kernel *scores = member(f, 0);
    int column = scores->outer - 1;
    tn_graph *g = f->l->graph;
    if (a->guards || !is(f, a->offset, 0))
        return false;
    tn_dim step = wide ? tn_lowering_dim(f->l, scores->extent[column]) : tn_dim_const(g, 1);
    for (int i = column - 1; i >= 0; i--) {
        if (!is(f, k->extent[i], 1) && !tn_dim_equal(g, tn_lowering_dim(f->l, a->stride[i]), step))
            return false;
        step = tn_dim_mul(g, step, tn_lowering_dim(f->l, scores->extent[i]));
    }
    for (int i = column; i < axes; i++)
        if (!is(f, k->extent[i], 1) && !is(f, a->stride[i], wide && i == along ? 1 : 0))
            return false;
    return true;
}

/* Whether nobody but kernels, as many as read it, reads what a kernel makes. */
static bool is_passed_on(const finder *f, const tn_kernel *k) {
    if (k->outputs != 1)
        return false;
    const tn_slot *s = &f->p->slot.data[k->output[0].slot];
    return s->kind == TN_SLOT_ARENA && !s->fetched && !f->elsewhere[k->output[0].slot] &&
           f->reads[k->output[0].slot] > 0;
}

static bool has_guards(const tn_kernel *k) {
    for (int i = 0; i < k->operands; i++)
        if (k->operand[i].guards)
            return true;
    return false;
}

static void take(finder *f, uint32_t pc, bool wide) {
    uint32_t slot = kernel_at(f, pc)->output[0].slot;
    f->at[f->count] = pc;
    f->slot[f->count] = slot;
    f->left[f->count] = f->reads[slot];
    f->wide[f->count++] = wide;
}

/* Columns that were packed when the plan was made serve all rows; then nothing is gained. */
static bool is_contraction(const tn_kernel *k) {
    return k->kind == TN_KERNEL_CONTRACT && !k->packed_only && !k->winograd && k->inner > 0 && !has_guards(k) &&
           k->outer > 0 && k->role[k->outer - 1] == TN_AXIS_COLUMN;
}

static bool begins(finder *f, uint32_t pc) {
    const tn_kernel *k = kernel_at(f, pc);
    bool rows = false;
    if (!is_contraction(k) || !is_passed_on(f, k) || is(f, k->extent[k->outer - 1], 1))
        return false;
    for (int i = 0; i + 1 < k->outer; i++) {
        if (k->role[i] == TN_AXIS_BATCH ? rows : k->role[i] != TN_AXIS_ROW)
            return false;
        rows |= k->role[i] == TN_AXIS_ROW;
    }
    f->count = 0;
    take(f, pc, true);
    return walks_rows(f, k, &k->output[0], k->outer, true, k->outer - 1);
}

/* A kernel reads what members make, and in the order of rows. */
static bool follows(const finder *f, const tn_kernel *k, int along) {
    for (int i = 0; i < k->operands; i++) {
        int from = made_by(f, k->operand[i].slot);
        if (from >= 0 && !walks_rows(f, k, &k->operand[i], k->outer + k->inner, f->wide[from], along))
            return false;
    }
    return true;
}

static bool joins(finder *f, uint32_t pc) {
    const tn_kernel *k = kernel_at(f, pc), *scores = member(f, 0);
    int column = scores->outer - 1;
    bool reduces = k->kind == TN_KERNEL_REDUCE;
    if ((!reduces && k->kind != TN_KERNEL_STRIP) || f->count > TN_CHAIN_MOST || !is_passed_on(f, k) || has_guards(k))
        return false;
    bool short_of_one = reduces && k->outer == column; /* the axis of columns is gone */
    if ((!short_of_one && k->outer != scores->outer) || k->inner != reduces)
        return false;
    for (int i = 0; i < column; i++)
        if (!same(f, k->extent[i], scores->extent[i]))
            return false;
    bool one = short_of_one || is(f, k->extent[column], 1);
    if (reduces ? !one || !same(f, k->extent[k->outer], scores->extent[column])
                : !one && !same(f, k->extent[column], scores->extent[column]))
        return false;
    if (!follows(f, k, reduces ? k->outer : column))
        return false;
    take(f, pc, !one);
    return walks_rows(f, k, &k->output[0], k->outer, !one, column);
}

static bool ends(const finder *f, uint32_t pc) {
    const tn_kernel *k = kernel_at(f, pc), *scores = member(f, 0);
    int column = scores->outer - 1;
    if (!is_contraction(k) || k->outer != scores->outer || k->inner != 1 || k->outputs != 1 ||
        !same(f, k->extent[k->outer], scores->extent[column]))
        return false;
    for (int i = 0; i < column; i++)
        if (k->role[i] != scores->role[i] || !same(f, k->extent[i], scores->extent[i]))
            return false;
    for (int i = 0; i < k->operands; i++)
        if ((made_by(f, k->operand[i].slot) == f->count - 1) != (i == 0) || (i && made_by(f, k->operand[i].slot) >= 0))
            return false;
    return f->wide[f->count - 1] && follows(f, k, k->outer);
}

/* Counts the reads of a kernel among the members; how many of them it makes. */
static int count_reads(finder *f, const tn_kernel *k) {
    int n = 0;
    for (int i = 0; i < k->operands; i++) {
        int from = made_by(f, k->operand[i].slot);
        n += from >= 0;
        if (from >= 0)
            f->left[from]--;
    }
    return n;
}

/* Whether members may run where the last one is: what they read is then as it was. */
static bool may_wait(const finder *f) {
    bool neighbours = f->at[f->count - 1] - f->at[0] + 1 == (uint32_t)f->count;
    for (int i = 0; i + 1 < f->count && !neighbours; i++)
        for (int j = 0; j < member(f, i)->operands; j++)
            if (f->p->slot.data[member(f, i)->operand[j].slot].kind == TN_SLOT_MOVING)
                return false;
    return true;
}

/* The instructions from `pc` on that belong together, the first being a contraction. */
static bool find(finder *f, uint32_t pc) {
    if (!begins(f, pc))
        return false;
    for (uint32_t i = pc + 1; i < f->p->code.len && !f->target[i]; i++) {
        uint8_t op = f->p->code.data[i].op;
        if (op == TN_DO_HOST || op == TN_DO_BIND || op == TN_DO_CHECK || f->gone[i])
            continue;
        if (op != TN_DO_CALL)
            return false;
        const tn_kernel *k = kernel_at(f, i);
        if (!count_reads(f, k))
            continue;
        if (f->count > 1 && ends(f, i)) {
            bool all = true;
            for (int j = 0; j < f->count; j++)
                all &= f->left[j] == 0;
            f->at[f->count++] = i;
            return all && may_wait(f);
        }
        if (!joins(f, i))
            return false;
    }
    return false;
}

/* --- the kernel ------------------------------------------------------------------------------------------------------------------------------- */

/* What the parts read from outside. */
static tn_status list_operands(const finder *f, tn_kernel *k) {
    int most = 0;
    for (int i = 0; i < k->parts; i++)
        most += k->part[i].operands;
    if (!(k->operand = tn_arena_alloc(&f->p->arena, (size_t)most * sizeof *k->operand)))
        return TN_ERR_MEMORY;
    for (int i = 0; i < k->parts; i++)
        for (int j = 0; j < k->part[i].operands; j++) {
            const tn_access *a = &k->part[i].operand[j];
            bool have = made_by(f, a->slot) >= 0;
            for (int n = 0; n < k->operands && !have; n++)
                have = k->operand[n].slot == a->slot;
            if (!have)
                k->operand[k->operands++] = *a;
        }
    return TN_OK;
}

static bool is_listed(const finder *f, const tn_kernel *k, tn_node node) {
    for (uint32_t i = 0; i < k->node_count; i++)
        if (f->p->kernel_node.data[k->nodes + i] == node.id)
            return true;
    return false;
}

static tn_status list_node(const finder *f, tn_kernel *k, tn_node node) {
    if (is_listed(f, k, node))
        return TN_OK;
    k->node_count++;
    return tn_vec_push(f->p->heap, &f->p->kernel_node, node.id) ? TN_OK : TN_ERR_MEMORY;
}

/* The parts' nodes, and those that only look at what one part makes as another reads it. */
static tn_status list_nodes(const finder *f, tn_kernel *k, const tn_kernel *copy) {
    const tn_graph *g = f->l->graph;
    tn_plan *p = f->p;
    k->nodes = p->kernel_node.len;
    for (int i = 0; i < k->parts; i++)
        for (uint32_t n = 0; n < k->part[i].node_count; n++)
            TN_TRY(list_node(f, k, (tn_node){p->kernel_node.data[k->part[i].nodes + n]}));
    for (uint32_t n = 0; copy && n < copy->node_count; n++)
        TN_TRY(list_node(f, k, (tn_node){p->kernel_node.data[copy->nodes + n]}));
    for (uint32_t i = 0; i < k->node_count; i++) {
        tn_node node = {p->kernel_node.data[k->nodes + i]};
        for (uint32_t n = 0; n < tn_node_input_count(g, node); n++) {
            tn_value v = tn_node_input(g, node, n);
            uint32_t view = v.id ? f->l->view_of[v.id] : TN_NO_VIEW;
            if (view != TN_NO_VIEW && made_by(f, p->view.data[view].slot) >= 0)
                TN_TRY(list_node(f, k, tn_value_producer(g, v)));
        }
    }
    return TN_OK;
}

/* The kernel that alone reads what the last part makes, to copy it; 0: there is none, or it runs when sizes may be others. */
static uint32_t find_copy(const finder *f, uint32_t pc) {
    const tn_kernel *k = kernel_at(f, pc);
    uint32_t slot = k->output[0].slot;
    if (!is_passed_on(f, k) || f->reads[slot] != 1)
        return 0;
    for (uint32_t i = pc + 1; i < f->p->code.len && !f->target[i]; i++) {
        uint8_t op = f->p->code.data[i].op;
        if (op != TN_DO_CALL && op != TN_DO_HOST && op != TN_DO_CHECK)
            return 0;
        const tn_kernel *c = op == TN_DO_CALL && !f->gone[i] ? kernel_at(f, i) : NULL;
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
static bool follow_copy(const finder *f, const tn_kernel *k, const tn_kernel *copy, tn_size zero, tn_size *stride) {
    bool used[2 * TN_MAX_RANK + 4] = {false};
    if (!same(f, k->output[0].offset, copy->operand[0].offset))
        return false;
    for (int i = 0; i < k->outer; i++) {
        stride[i] = zero;
        int n = 0;
        while (n < copy->outer && (used[n] || !same(f, k->extent[i], copy->extent[n]) ||
                                   !same(f, k->output[0].stride[i], copy->operand[0].stride[n])))
            n++;
        if (n < copy->outer)
            stride[i] = copy->output[0].stride[n];
        else if (!is(f, k->extent[i], 1))
            return false;
        used[n] = true;
    }
    for (int n = 0; n < copy->outer; n++)
        if (!used[n] && !is(f, copy->extent[n], 1))
            return false;
    return is(f, stride[k->outer - 1], 1);
}

/* *copied is 0 afterwards where it does not fit. */
static tn_status take_copy(const finder *f, tn_kernel *k, const tn_kernel *copy, tn_size zero, uint32_t *copied) {
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
static tn_status join(finder *f) {
    tn_plan *p = f->p;
    tn_kernel k = {.kind = TN_KERNEL_ATTENTION, .parts = (uint8_t)f->count};
    const tn_kernel *last = member(f, f->count - 1);
    k.part = tn_arena_alloc(&p->arena, (size_t)f->count * sizeof *k.part);
    if (!k.part)
        return TN_ERR_MEMORY;
    for (int i = 0; i < f->count; i++)
        k.part[i] = *member(f, i);
    tn_size zero;
    if (!tn_lowering_const(f->l, 0, &zero))
        return TN_ERR_MEMORY;
    k.outer = last->outer;
    k.extent = last->extent;
    k.outputs = last->outputs;
    k.output = last->output;
    k.result = last->result;
    uint32_t pc = f->at[f->count - 1], copied = find_copy(f, pc);
    if (copied)
        TN_TRY(take_copy(f, &k, kernel_at(f, copied), zero, &copied));
    k.impl = tn_lowering_choose(f->l, &k);
    if (!k.impl)
        return TN_OK;
    f->count--; /* the last one's output is read outside, but for a copy */
    TN_TRY(list_operands(f, &k));
    if (copied) {
        f->slot[f->count] = last->output[0].slot;
        f->at[f->count++] = copied;
    }
    TN_TRY(list_nodes(f, &k, copied ? kernel_at(f, copied) : NULL));
    if (copied)
        tn_free(p->heap, kernel_at(f, copied)->program);
    for (int i = 0; i < k.parts; i++)
        p->fused_operators += k.part[i].node_count == 1;
    for (int i = 0; i < f->count; i++) {
        p->slot.data[f->slot[i]].bytes = p->slot.data[f->slot[i]].count = zero; /* nothing lies there */
        f->gone[f->at[i]] = true;
        f->dead[p->code.data[f->at[i]].a] = true;
    }
    p->kernel.data[p->code.data[pc].a] = k;
    f->found++;
    return TN_OK;
}

/* New numbers of what is left of `count`. */
static void renumber(uint32_t *number, const bool *gone, uint32_t count) {
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; i++) {
        number[i] = next;
        next += !gone[i];
    }
    number[count] = next;
}

static void remove_gone(finder *f) {
    tn_plan *p = f->p;
    renumber(f->number, f->dead, p->kernel.len);
    for (uint32_t i = 0; i < p->kernel.len; i++)
        if (!f->dead[i])
            p->kernel.data[f->number[i]] = p->kernel.data[i];
    for (uint32_t i = 0; i < p->code.len; i++)
        if (p->code.data[i].op == TN_DO_CALL)
            p->code.data[i].a = f->number[p->code.data[i].a];
    p->kernel.len = f->number[p->kernel.len];
    renumber(f->number, f->gone, p->code.len);
    for (uint32_t i = 0; i < p->code.len; i++) {
        tn_instruction in = p->code.data[i];
        if (in.op == TN_DO_BRANCH || in.op == TN_DO_ENTER || in.op == TN_DO_LOOP || in.op == TN_DO_FORK)
            in.b = f->number[in.b];
        if (!f->gone[i])
            p->code.data[f->number[i]] = in;
    }
    for (uint32_t i = 0; i < p->fork.len; i++)
        for (uint32_t j = 0; j <= p->fork.data[i].parts; j++)
            p->fork.data[i].start[j] = f->number[p->fork.data[i].start[j]];
    p->code.len = f->number[p->code.len];
}

/* --- all of them ------------------------------------------------------------------------------------------------------------------------------ */

static void note_reads(const finder *f) {
    const tn_plan *p = f->p;
    for (uint32_t i = 0; i < p->code.len; i++) {
        const tn_instruction in = p->code.data[i];
        if (in.op == TN_DO_CALL) {
            const tn_kernel *k = &p->kernel.data[in.a];
            for (int j = 0; j < k->operands; j++)
                f->reads[k->operand[j].slot]++;
        } else if (in.op == TN_DO_HOST) {
            const tn_host_call *h = &p->host.data[in.a];
            for (uint32_t j = 0; j < h->input_count; j++)
                if (p->view_list.data[h->inputs + j] != TN_NO_VIEW)
                    f->elsewhere[p->view.data[p->view_list.data[h->inputs + j]].slot] = true;
            for (uint32_t j = 0; j < h->outer_count; j++)
                f->elsewhere[p->view.data[p->view_list.data[h->outer + 2 * j + 1]].slot] = true;
            for (uint32_t j = 0; j < h->output_count; j++)
                f->elsewhere[p->slot_list.data[h->outputs + j]] = true;
        } else if (in.op == TN_DO_BRANCH && in.a != UINT32_MAX)
            f->elsewhere[p->view.data[in.a].slot] = true;
        else if ((in.op == TN_DO_ENTER || in.op == TN_DO_LOOP) && p->loop.data[in.a].limit != UINT32_MAX)
            f->elsewhere[p->view.data[p->loop.data[in.a].limit].slot] = true;
    }
    for (uint32_t i = 0; i < p->moving.len; i++)
        f->elsewhere[p->moving.data[i].slot] = f->elsewhere[p->moving.data[i].from] =
            f->elsewhere[p->moving.data[i].other] = true;
    for (uint32_t i = 0; i < p->bind_read.len; i++)
        f->elsewhere[p->bind_read.data[i].slot] = true;
    for (uint32_t i = 0; i < p->fork.len; i++)
        for (uint32_t j = 0; j <= p->fork.data[i].parts; j++)
            f->target[p->fork.data[i].start[j]] = true;
}

/* Slots that several kernels write, each its part. */
static void note_writes(const finder *f, bool *written) {
    const tn_plan *p = f->p;
    for (uint32_t i = 0; i < p->code.len; i++) {
        const tn_kernel *k = p->code.data[i].op == TN_DO_CALL ? &p->kernel.data[p->code.data[i].a] : NULL;
        for (int j = 0; k && j < k->outputs; j++) {
            f->elsewhere[k->output[j].slot] |= written[k->output[j].slot];
            written[k->output[j].slot] = true;
        }
    }
}

tn_status tn_lowering_attention(tn_lowerer *l) {
    tn_plan *p = l->plan;
    uint32_t most = p->code.len > p->kernel.len ? p->code.len : p->kernel.len;
    finder f = {.l = l, .p = p, .target = tn_lowering_targets(p)};
    f.reads = tn_arena_alloc(&l->scratch, (p->slot.len + 1) * sizeof *f.reads);
    f.elsewhere = tn_arena_alloc(&l->scratch, p->slot.len + 1);
    f.gone = tn_arena_alloc(&l->scratch, p->code.len + 1);
    f.dead = tn_arena_alloc(&l->scratch, p->kernel.len + 1);
    f.number = tn_arena_alloc(&l->scratch, (most + 1) * sizeof *f.number);
    bool *written = tn_arena_alloc(&l->scratch, p->slot.len + 1);
    tn_status status =
        f.target && f.reads && f.elsewhere && f.gone && f.dead && f.number && written ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK) {
        note_reads(&f);
        note_writes(&f, written);
    }
    for (uint32_t i = 0; i < p->code.len && status == TN_OK; i++)
        if (p->code.data[i].op == TN_DO_CALL && !f.gone[i] && find(&f, i))
            status = join(&f);
    if (status == TN_OK && f.found)
        remove_gone(&f);
    tn_free(p->heap, f.target);
    return status;
}
