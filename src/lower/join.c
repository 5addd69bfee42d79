/* One kernel in the place of several: what all that do so share. */
#include "lower/join.h"

const tn_kernel *tn_join_kernel_at(const tn_joiner *f, uint32_t pc) {
    return &f->p->kernel.data[f->p->code.data[pc].a];
}
const tn_kernel *tn_join_member(const tn_joiner *f, int i) {
    return tn_join_kernel_at(f, f->at[i]);
}

bool tn_join_is(const tn_joiner *f, tn_size size, int64_t value) {
    int64_t n;
    return tn_dim_is_const(f->l->graph, tn_lowering_dim(f->l, size), &n) && n == value;
}
bool tn_join_same(const tn_joiner *f, tn_size a, tn_size b) {
    return a == b || tn_dim_equal(f->l->graph, tn_lowering_dim(f->l, a), tn_lowering_dim(f->l, b));
}

int tn_join_made_by(const tn_joiner *f, uint32_t slot) {
    for (int i = 0; i < f->count; i++)
        if (f->slot[i] == slot)
            return i;
    return -1;
}

bool tn_join_is_passed_on(const tn_joiner *f, const tn_kernel *k) {
    if (k->outputs != 1)
        return false;
    const tn_slot *s = &f->p->slot.data[k->output[0].slot];
    return s->kind == TN_SLOT_ARENA && !s->fetched && !f->elsewhere[k->output[0].slot] &&
           f->reads[k->output[0].slot] > 0;
}

bool tn_join_has_guards(const tn_kernel *k) {
    for (int i = 0; i < k->operands; i++)
        if (k->operand[i].guards)
            return true;
    return false;
}

void tn_join_take(tn_joiner *f, uint32_t pc, bool wide) {
    uint32_t slot = tn_join_kernel_at(f, pc)->output[0].slot;
    f->at[f->count] = pc;
    f->slot[f->count] = slot;
    f->left[f->count] = f->reads[slot];
    f->wide[f->count++] = wide;
}

/* Columns that were packed when the plan was made serve all rows; then nothing is gained. */
uint32_t tn_join_next(const tn_joiner *f, uint32_t pc) {
    for (uint32_t i = pc + 1; i < f->p->code.len && !f->target[i]; i++) {
        uint8_t op = f->p->code.data[i].op;
        if (op == TN_DO_CALL && !f->gone[i])
            return i;
        if (op != TN_DO_CALL && op != TN_DO_HOST && op != TN_DO_BIND && op != TN_DO_CHECK)
            return 0;
    }
    return 0;
}

int tn_join_count_reads(tn_joiner *f, const tn_kernel *k) {
    int n = 0;
    for (int i = 0; i < k->operands; i++) {
        int from = tn_join_made_by(f, k->operand[i].slot);
        n += from >= 0;
        if (from >= 0)
            f->left[from]--;
    }
    return n;
}

bool tn_join_may_wait(const tn_joiner *f) {
    bool neighbours = f->at[f->count - 1] - f->at[0] + 1 == (uint32_t)f->count;
    for (int i = 0; i + 1 < f->count && !neighbours; i++)
        for (int j = 0; j < tn_join_member(f, i)->operands; j++)
            if (f->p->slot.data[tn_join_member(f, i)->operand[j].slot].kind == TN_SLOT_MOVING)
                return false;
    return true;
}

/* What the parts read from outside. */
static tn_status list_operands(const tn_joiner *f, tn_kernel *k) {
    int most = 0;
    for (int i = 0; i < k->parts; i++)
        most += k->part[i].operands;
    if (!(k->operand = tn_arena_alloc(&f->p->arena, (size_t)most * sizeof *k->operand)))
        return TN_ERR_MEMORY;
    for (int i = 0; i < k->parts; i++)
        for (int j = 0; j < k->part[i].operands; j++) {
            const tn_access *a = &k->part[i].operand[j];
            bool have = tn_join_made_by(f, a->slot) >= 0 || (j == 1 && k->part[i].packed_only);
            for (int n = 0; n < k->operands && !have; n++)
                have = k->operand[n].slot == a->slot;
            if (!have)
                k->operand[k->operands++] = *a;
        }
    return TN_OK;
}

static bool is_listed(const tn_joiner *f, const tn_kernel *k, tn_node node) {
    for (uint32_t i = 0; i < k->node_count; i++)
        if (f->p->kernel_node.data[k->nodes + i] == node.id)
            return true;
    return false;
}

static tn_status list_node(const tn_joiner *f, tn_kernel *k, tn_node node) {
    if (is_listed(f, k, node))
        return TN_OK;
    k->node_count++;
    return tn_vec_push(f->p->heap, &f->p->kernel_node, node.id) ? TN_OK : TN_ERR_MEMORY;
}

/* The parts' nodes, and those that only look at what one part makes as another reads it. */
static tn_status list_nodes(const tn_joiner *f, tn_kernel *k, const tn_kernel *copy) {
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
            if (view != TN_NO_VIEW && tn_join_made_by(f, p->view.data[view].slot) >= 0)
                TN_TRY(list_node(f, k, tn_value_producer(g, v)));
        }
    }
    return TN_OK;
}

tn_status tn_join_begin(const tn_joiner *f, tn_kernel_kind kind, tn_kernel *k) {
    const tn_kernel *last = tn_join_member(f, f->count - 1);
    *k = (tn_kernel){.kind = (uint8_t)kind,
                     .parts = (uint8_t)f->count,
                     .outer = last->outer,
                     .extent = last->extent,
                     .outputs = last->outputs,
                     .output = last->output,
                     .result = last->result};
    k->part = tn_arena_alloc(&f->p->arena, (size_t)f->count * sizeof *k->part);
    if (!k->part)
        return TN_ERR_MEMORY;
    for (int i = 0; i < f->count; i++)
        k->part[i] = *tn_join_member(f, i);
    return TN_OK;
}

tn_status tn_join_put(tn_joiner *f, tn_kernel *k, uint32_t copied) {
    tn_plan *p = f->p;
    uint32_t pc = f->at[--f->count]; /* the last one's output is read outside, but for a copy */
    const tn_kernel *copy = copied ? tn_join_kernel_at(f, copied) : NULL;
    tn_size zero;
    if (!tn_lowering_const(f->l, 0, &zero))
        return TN_ERR_MEMORY;
    TN_TRY(list_operands(f, k));
    if (copied) {
        f->slot[f->count] = tn_join_kernel_at(f, pc)->output[0].slot;
        f->at[f->count++] = copied;
    }
    TN_TRY(list_nodes(f, k, copy));
    if (copied)
        tn_free(p->heap, copy->program);
    for (int i = 0; i < k->parts; i++)
        p->fused_operators += k->part[i].node_count == 1;
    for (int i = 0; i < f->count; i++) {
        p->slot.data[f->slot[i]].bytes = p->slot.data[f->slot[i]].count = zero; /* nothing lies there */
        f->gone[f->at[i]] = true;
        f->dead[p->code.data[f->at[i]].a] = true;
    }
    p->kernel.data[p->code.data[pc].a] = *k;
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

static void remove_gone(tn_joiner *f) {
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

static void note_reads(const tn_joiner *f) {
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
static void note_writes(const tn_joiner *f, bool *written) {
    const tn_plan *p = f->p;
    for (uint32_t i = 0; i < p->code.len; i++) {
        const tn_kernel *k = p->code.data[i].op == TN_DO_CALL ? &p->kernel.data[p->code.data[i].a] : NULL;
        for (int j = 0; k && j < k->outputs; j++) {
            f->elsewhere[k->output[j].slot] |= written[k->output[j].slot];
            written[k->output[j].slot] = true;
        }
    }
}

tn_status tn_join_all(tn_lowerer *l, bool (*find)(tn_joiner *f, uint32_t pc), tn_status (*join)(tn_joiner *f)) {
    tn_plan *p = l->plan;
    uint32_t most = p->code.len > p->kernel.len ? p->code.len : p->kernel.len;
    tn_joiner f = {.l = l, .p = p, .target = tn_lowering_targets(p)};
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
