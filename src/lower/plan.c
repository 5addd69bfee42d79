/* Growing a plan: sizes, slots, places, drafts of kernels. */
#include "lower/lowering.h"

/* --- sizes -------------------------------------------------------------------------------------------------------------------- */

typedef struct segment_of {
    const tn_lowerer *l;
    uint32_t segment;
} segment_of;

static void note_segment(void *ctx, uint32_t symbol) {
    segment_of *s = ctx;
    uint32_t of = symbol < s->l->symbols ? s->l->symbol_segment[symbol] : s->l->segment;
    s->segment = of > s->segment ? of : s->segment;
}

bool tn_lowering_size(tn_lowerer *l, tn_dim dim, tn_size *size) {
    uint64_t have;
    if (!dim.id)
        return false;
    if (tn_map_get(&l->size_of, dim.id, &have)) {
        *size = (tn_size)have;
        return true;
    }
    segment_of s = {l, 0};
    tn_dim_symbols(&l->graph->dims, dim, note_segment, &s);
    tn_plan *p = l->plan;
    if (!tn_vec_push(p->heap, &p->size, dim) || !tn_vec_push(p->heap, &p->size_segment, s.segment) ||
        !tn_map_put(p->heap, &l->size_of, dim.id, p->size.len - 1))
        return false;
    *size = p->size.len - 1;
    return true;
}

bool tn_lowering_const(tn_lowerer *l, int64_t value, tn_size *size) {
    return tn_lowering_size(l, tn_dim_const(l->graph, value), size);
}

tn_dim tn_lowering_dim(const tn_lowerer *l, tn_size size) {
    return l->plan->size.data[size];
}

/* --- slots and places ------------------------------------------------------------------------------------------------------------ */

uint32_t tn_lowering_arena_slot(tn_lowerer *l, tn_value value) {
    tn_graph *g = l->graph;
    int rank = tn_value_rank(g, value);
    tn_dim count = tn_dim_const(g, 1);
    for (int i = 0; i < rank; i++)
        count = tn_dim_mul(g, count, tn_value_dim(g, value, i));
    tn_slot s = {.kind = TN_SLOT_ARENA,
                 .dtype = (uint8_t)tn_value_dtype(g, value),
                 .value = value,
                 .segment = l->segment,
                 .first = -1};
    tn_dim bytes = tn_dim_mul(g, count, tn_dim_const(g, tn_dtype_bits(tn_value_dtype(g, value)) / 8));
    if (!tn_lowering_size(l, count, &s.count) || !tn_lowering_size(l, bytes, &s.bytes) ||
        !tn_vec_push(l->plan->heap, &l->plan->slot, s))
        return UINT32_MAX;
    return l->plan->slot.len - 1;
}

static bool sizes_of(tn_lowerer *l, uint32_t count, const tn_dim *dims, tn_size **out) {
    *out = tn_arena_alloc(&l->plan->arena, count * sizeof **out + 1);
    for (uint32_t i = 0; *out && i < count; i++)
        if (!tn_lowering_size(l, dims[i], &(*out)[i]))
            return false;
    return *out != NULL;
}

uint32_t tn_lowering_view(tn_lowerer *l, tn_value value, uint32_t slot, tn_dim offset, const tn_dim *strides) {
    tn_graph *g = l->graph;
    int rank = tn_value_rank(g, value);
    tn_dim dims[TN_MAX_RANK], standard[TN_MAX_RANK], step = tn_dim_const(g, 1);
    for (int i = rank - 1; i >= 0; i--) {
        dims[i] = tn_value_dim(g, value, i);
        standard[i] = step;
        step = tn_dim_mul(g, step, dims[i]);
    }
    tn_view p = {.value = value, .slot = slot, .object = rank < 0, .rank = (uint8_t)(rank < 0 ? 0 : rank)};
    rank = rank < 0 ? 0 : rank;
    if (slot == UINT32_MAX || !tn_lowering_size(l, offset.id ? offset : tn_dim_const(g, 0), &p.offset) ||
        !sizes_of(l, (uint32_t)rank, dims, &p.dim) ||
        !sizes_of(l, (uint32_t)rank, strides ? strides : standard, &p.stride) ||
        !tn_vec_push(l->plan->heap, &l->plan->view, p))
        return TN_NO_VIEW;
    l->view_of[value.id] = l->plan->view.len - 1;
    return l->plan->view.len - 1;
}

bool tn_view_is_contiguous(const tn_lowerer *l, const tn_view *place) {
    tn_graph *g = l->graph;
    tn_dim step = tn_dim_const(g, 1);
    for (int i = place->rank - 1; i >= 0; i--) {
        tn_dim dim = tn_lowering_dim(l, place->dim[i]);
        int64_t n;
        bool one = tn_dim_is_const(g, dim, &n) && n == 1;
        if (!one && tn_lowering_dim(l, place->stride[i]).id != step.id)
            return false;
        step = tn_dim_mul(g, step, dim);
    }
    return true;
}

#define FAR 4 /* elements from channel to channel: every second one, where channels are shuffled */

bool tn_view_is_channels_last(const tn_lowerer *l, const tn_view *v) {
    tn_graph *g = l->graph;
    int64_t n, step;
    if (v->rank < 3 || tn_view_is_contiguous(l, v) ||
        !(tn_dim_is_const(g, tn_lowering_dim(l, v->stride[1]), &step) && step >= 1 && step <= FAR))
        return false;
    /* the last of more than one element steps over whole pixels */
    for (int i = v->rank - 1; i > 1; i--) {
        bool one = tn_dim_is_const(g, tn_lowering_dim(l, v->dim[i]), &n) && n == 1;
        if (!one)
            return !(tn_dim_is_const(g, tn_lowering_dim(l, v->stride[i]), &n) && n <= step);
    }
    return true;
}

void tn_lowering_channels_last(tn_lowerer *l, tn_value value, tn_dim *strides) {
    int rank = tn_value_rank(l->graph, value);
    tn_dim step = tn_dim_const(l->graph, 1);
    for (int i = 0; i < rank; i++) {
        int axis = i == 0 ? 1 : i == rank - 1 ? 0 : rank - i;
        strides[axis] = step;
        step = tn_dim_mul(l->graph, step, tn_value_dim(l->graph, value, axis));
    }
}

bool tn_lowering_is_output(const tn_lowerer *l, tn_value value) {
    for (tn_use u = tn_value_first_use(l->graph, value); u.node.id; u = tn_use_next(l->graph, u))
        if (tn_node_has_trait(l->graph, u.node, TN_TERMINATOR) &&
            tn_node_parent(l->graph, u.node).id == l->graph->main_region)
            return true;
    return false;
}

tn_dim *tn_view_strides(tn_lowerer *l, const tn_view *place) {
    tn_dim *s = tn_arena_alloc(&l->scratch, (place->rank + 1u) * sizeof *s);
    for (int i = 0; s && i < place->rank; i++)
        s[i] = tn_lowering_dim(l, place->stride[i]);
    return s;
}

tn_status tn_lowering_emit(tn_lowerer *l, tn_instruction_op op, uint32_t a, uint32_t b) {
    return tn_vec_push(l->plan->heap, &l->plan->code, ((tn_instruction){(uint8_t)op, a, b})) ? TN_OK : TN_ERR_MEMORY;
}

uint32_t tn_lowering_value(tn_lowerer *l, tn_value value) {
    tn_draft *d = l->draft_of[value.id];
    l->draft_of[value.id] = NULL;
    if (d && (tn_lowering_finish(l, d) != TN_OK || (d->broadcast.id && tn_lower_move(l, d->broadcast) != TN_OK)))
        return TN_NO_VIEW;
    if (l->view_of[value.id] == TN_NO_VIEW)
        tn_fail(TN_ERR_INTERNAL, "lowering: value %%%u is read before it is made", value.id);
    return l->view_of[value.id];
}

/* --- drafts ------------------------------------------------------------------------------------------------------------------------ */

tn_draft *tn_lowering_draft(tn_lowerer *l, tn_value value, tn_node node, uint8_t kind) {
    tn_draft *d = tn_arena_alloc(&l->scratch, sizeof *d);
    if (!d)
        return NULL;
    d->value = value;
    d->rank = (uint8_t)tn_value_rank(l->graph, value);
    d->nodes[d->node_count++] = node;
    tn_kernel *k = &d->kernel;
    k->kind = kind;
    k->accumulator = k->reduced = (uint8_t)tn_value_dtype(l->graph, value);
    k->extent = tn_arena_alloc(&l->plan->arena, 2 * (TN_MAX_RANK + 2) * sizeof *k->extent);
    k->operand = tn_arena_alloc(&l->plan->arena, TN_FUSE_OPERANDS * sizeof *k->operand);
    k->step = tn_arena_alloc(&l->plan->arena, TN_FUSE_STEPS * sizeof *k->step);
    if (!k->extent || !k->operand || !k->step)
        return NULL;
    for (int i = 0; i < d->rank; i++) {
        d->axis[i] = (uint8_t)i;
        if (!tn_lowering_size(l, tn_value_dim(l->graph, value, i), &k->extent[i]))
            return NULL;
    }
    d->axis[d->rank] = d->rank;
    k->outer = d->rank;
    return d;
}

tn_access *tn_lowering_operand(tn_lowerer *l, tn_draft *d) {
    tn_kernel *k = &d->kernel;
    tn_size zero;
    if (k->operands == TN_FUSE_OPERANDS || !tn_lowering_const(l, 0, &zero))
        return NULL;
    tn_access *a = &k->operand[k->operands];
    *a = (tn_access){.offset = zero};
    a->stride = tn_arena_alloc(&l->plan->arena, 2 * (TN_MAX_RANK + 2) * sizeof *a->stride);
    a->guard = NULL;
    if (!a->stride)
        return NULL;
    for (int i = 0; i < k->outer + k->inner; i++)
        a->stride[i] = zero;
    k->operands++;
    return a;
}

/* Spreads a value's per-axis strides over the draft's outer axes (an axis that is several kernel axes is row-major in them). */
static tn_status spread(tn_lowerer *l, const tn_draft *d, const tn_view *p, tn_size *stride) {
    for (int v = 0; v < d->rank; v++) {
        tn_dim step = tn_lowering_dim(l, p->stride[v]);
        for (int a = d->axis[v + 1] - 1; a >= d->axis[v]; a--) {
            if (!tn_lowering_size(l, step, &stride[a]))
                return TN_ERR_MEMORY;
            step = tn_dim_mul(l->graph, step, tn_lowering_dim(l, d->kernel.extent[a]));
        }
    }
    return TN_OK;
}

tn_status tn_lowering_read(tn_lowerer *l, tn_draft *d, uint32_t place) {
    tn_access *a = tn_lowering_operand(l, d);
    if (!a)
        return TN_ERR_MEMORY;
    const tn_view p = l->plan->view.data[place];
    a->slot = p.slot;
    a->dtype = (uint8_t)tn_value_dtype(l->graph, p.value);
    a->offset = p.offset;
    d->channels_last |= tn_view_is_channels_last(l, &p);
    return spread(l, d, &p, a->stride);
}

uint16_t tn_lowering_step(tn_draft *d, tn_scalar_step step) {
    tn_kernel *k = &d->kernel;
    uint16_t at = (uint16_t)(k->steps + k->epilogue);
    if (at == TN_FUSE_STEPS)
        return UINT16_MAX;
    k->step[at] = step;
    if (k->kind == TN_KERNEL_STRIP)
        k->steps++;
    else
        k->epilogue++;
    return (uint16_t)(TN_REG_STEP | at);
}

/* The strides of an operand of a draft over the axes that its value is broadcast to. */
static void broadcast_strides(const tn_lowerer *l, const tn_draft *d, const tn_access *a, int rank, tn_size zero,
                              tn_size *stride) {
    int lead = rank - d->rank;
    for (int i = 0; i < rank; i++) {
        int64_t n = 1;
        bool one =
            i < lead || (tn_dim_is_const(l->graph, tn_lowering_dim(l, d->kernel.extent[i - lead]), &n) && n == 1);
        stride[i] = one ? zero : a->stride[i - lead];
    }
}

uint16_t tn_lowering_merge(tn_lowerer *l, tn_draft *d, tn_draft *part) {
    tn_kernel *k = &d->kernel, *q = &part->kernel;
    uint32_t steps = (uint32_t)k->steps + k->epilogue;
    bool guarded = false;
    for (int i = 0; i < q->operands; i++)
        guarded |= q->operand[i].guards > 0;
    bool broadcast = part->broadcast.id != 0;
    tn_size zero;
    if (q->kind != TN_KERNEL_STRIP || (guarded && k->kind != TN_KERNEL_STRIP) ||
        (broadcast && k->kind != TN_KERNEL_CONTRACT) || k->operands + q->operands > TN_FUSE_OPERANDS ||
        steps + q->steps > TN_FUSE_STEPS || d->node_count + part->node_count + broadcast > TN_FUSE_STEPS ||
        !tn_lowering_const(l, 0, &zero))
        return UINT16_MAX;
    uint16_t base = k->operands;
    for (int i = 0; i < q->operands; i++) {
        tn_access *a = tn_lowering_operand(l, d);
        if (!a)
            return UINT16_MAX;
        tn_size *stride = a->stride;
        *a = q->operand[i];
        a->stride = stride;
        tn_size over[TN_MAX_RANK];
        tn_view p = {.rank = part->rank, .stride = q->operand[i].stride};
        if (broadcast) {
            broadcast_strides(l, part, &q->operand[i], d->rank, zero, over);
            p = (tn_view){.rank = d->rank, .stride = over};
        }
        if (spread(l, d, &p, stride) != TN_OK)
            return UINT16_MAX;
    }
    for (uint32_t i = 0; i < q->steps; i++) {
        tn_scalar_step s = q->step[i];
        uint16_t *r[3] = {&s.a, &s.b, &s.c};
        for (int j = 0; j < 3; j++)
            *r[j] = (uint16_t)(*r[j] & TN_REG_STEP ? *r[j] + steps : *r[j] + base);
        tn_lowering_step(d, s);
    }
    for (uint32_t i = 0; i < part->node_count; i++)
        d->nodes[d->node_count++] = part->nodes[i];
    if (broadcast)
        d->nodes[d->node_count++] = part->broadcast;
    l->draft_of[broadcast ? tn_node_output(l->graph, part->broadcast, 0).id : part->value.id] = NULL;
    d->channels_last |= part->channels_last;
    return (uint16_t)(part->result & TN_REG_STEP ? part->result + steps : part->result + base);
}

static bool same_access(const tn_access *a, const tn_access *b, int axes) {
    bool same = a->slot == b->slot && a->dtype == b->dtype && a->offset == b->offset && !a->guards && !b->guards;
    for (int i = 0; i < axes && same; i++)
        same = a->stride[i] == b->stride[i];
    return same;
}

/* Operands that read the same elements become one. Factors of a contraction are read in its own way. */
static void share_operands(tn_draft *d) {
    tn_kernel *k = &d->kernel;
    uint16_t kept = 0, first = k->kind == TN_KERNEL_CONTRACT ? 2 : 0, to[TN_FUSE_OPERANDS] = {0};
    for (uint16_t i = 0; i < k->operands; i++) {
        to[i] = i < first ? i : first;
        while (i >= first && to[i] < kept && !same_access(&k->operand[to[i]], &k->operand[i], k->outer + k->inner))
            to[i]++;
        if (to[i] == kept)
            k->operand[kept++] = k->operand[i];
    }
    for (uint32_t i = 0; i < (uint32_t)k->steps + k->epilogue; i++) {
        uint16_t *r[3] = {&k->step[i].a, &k->step[i].b, &k->step[i].c};
        for (int j = 0; j < 3; j++)
            *r[j] = *r[j] & (TN_REG_STEP | TN_REG_REDUCED) ? *r[j] : to[*r[j]];
    }
    d->result = d->result & (TN_REG_STEP | TN_REG_REDUCED) ? d->result : to[d->result];
    k->operands = (uint8_t)kept;
}

/* The final number of a register: operands, steps, the reduced value, epilogue steps. */
static uint16_t number(const tn_kernel *k, uint16_t code) {
    if (code & TN_REG_STEP) {
        uint32_t step = code & ~TN_REG_STEP;
        return (uint16_t)(k->operands + step + (step >= k->steps ? 1 : 0));
    }
    return code & TN_REG_REDUCED ? (uint16_t)(k->operands + k->steps) : code;
}

tn_status tn_lowering_finish(tn_lowerer *l, tn_draft *d) {
    tn_plan *p = l->plan;
    tn_kernel *k = &d->kernel;
    l->draft_of[d->value.id] = NULL;
    tn_dim last[TN_MAX_RANK];
    tn_layout_option layout = l->options->layout;
    bool channels_last = d->rank >= 3 && !tn_lowering_is_output(l, d->value) && layout != TN_LAYOUT_NCHW &&
                         !l->made_in[d->value.id] && (d->channels_last || (layout == TN_LAYOUT_NHWC && !d->in_order));
    if (channels_last)
        tn_lowering_channels_last(l, d->value, last);
    uint32_t place;
    if (l->made_in[d->value.id])
        place = tn_lowering_view(l, d->value, l->made_in[d->value.id] - 1, (tn_dim){0}, NULL);
    else
        TN_TRY(tn_lowering_part(l, d, channels_last, &place));
    if (place == TN_NO_VIEW && !l->made_in[d->value.id])
        place = tn_lowering_view(l, d->value, tn_lowering_arena_slot(l, d->value), (tn_dim){0},
                                 channels_last ? last : NULL);
    k->output = tn_arena_alloc(&p->arena, sizeof *k->output);
    k->result = tn_arena_alloc(&p->arena, sizeof *k->result);
    if (place == TN_NO_VIEW || !k->output || !k->result)
        return TN_ERR_MEMORY;
    k->outputs = 1;
    tn_size zero;
    tn_size *stride = tn_arena_alloc(&p->arena, 2 * (TN_MAX_RANK + 2) * sizeof *stride);
    if (!stride || !tn_lowering_const(l, 0, &zero))
        return TN_ERR_MEMORY;
    for (int i = 0; i < k->outer; i++)
        stride[i] = zero;
    const tn_view at = p->view.data[place];
    k->output[0] =
        (tn_access){.slot = at.slot, .dtype = p->slot.data[at.slot].dtype, .offset = at.offset, .stride = stride};
    TN_TRY(spread(l, d, &at, stride));
    share_operands(d);
    for (uint32_t i = 0; i < k->steps + k->epilogue; i++) {
        k->step[i].a = number(k, k->step[i].a);
        k->step[i].b = number(k, k->step[i].b);
        k->step[i].c = number(k, k->step[i].c);
    }
    k->result[0] = number(k, d->result);
    return tn_lowering_call(l, k, d->node_count, d->nodes);
}

static bool is_constant(const void *ctx, tn_size size, int64_t *value) {
    const tn_lowerer *l = ctx;
    return tn_dim_is_const(l->graph, tn_lowering_dim(l, size), value);
}

static const tn_tensor *weights_of(const void *ctx, uint32_t slot) {
    const tn_lowerer *l = ctx;
    return l->plan->slot.data[slot].tensor;
}

/* Whether code for a level runs where `allowed` is the highest one wanted. */
static bool isa_includes(tn_isa allowed, tn_isa level) {
    if (level == TN_ISA_GENERIC || level == allowed)
        return true;
    return allowed != TN_ISA_NEON && level != TN_ISA_NEON && level < allowed;
}

void tn_lowering_forget(const tn_plan *p, const tn_kernel *k) {
    const tn_tensor *t = k->packed && k->packed_only ? p->slot.data[k->operand[1].slot].tensor : NULL;
    for (int i = 0; i < k->parts; i++)
        tn_lowering_forget(p, &k->part[i]);
    if (t && t->storage && t->storage->mapping)
        tn_mapping_forget(t->storage->mapping, t->data, tn_tensor_bytes(t));
}

static tn_kernel_facts facts_of(const tn_lowerer *l) {
    return (tn_kernel_facts){l->plan->heap, l->options->isa, l->options->measure, l,
                             is_constant,   weights_of,      l->options->packs};
}

const tn_kernel_impl *tn_lowering_choose(const tn_lowerer *l, const tn_kernel *k) {
    const tn_kernel_table *t = l->options->kernels;
    const tn_kernel_facts facts = facts_of(l);
    for (uint32_t i = 0; i < t->count; i++)
        if (t->impl[i]->kind == k->kind && isa_includes(l->options->isa, (tn_isa)t->impl[i]->isa) &&
            t->impl[i]->takes(k, &facts))
            return t->impl[i];
    return NULL;
}

tn_status tn_lowering_call(tn_lowerer *l, tn_kernel *k, uint32_t count, const tn_node *nodes) {
    tn_plan *p = l->plan;
    k->nodes = p->kernel_node.len;
    k->node_count = count;
    for (uint32_t i = 0; i < count; i++)
        if (!tn_vec_push(p->heap, &p->kernel_node, nodes[i].id))
            return TN_ERR_MEMORY;
    p->operators += count;
    p->fused_operators += count > 1 ? count : 0;
    const tn_kernel_facts facts = facts_of(l);
    k->impl = tn_lowering_choose(l, k);
    if (!k->impl)
        return tn_fail(TN_ERR_INTERNAL, "no kernel takes %s", tn_node_op_name(l->graph, nodes[0]));
    if (!tn_vec_reserve(p->heap, &p->kernel, 1))
        return TN_ERR_MEMORY;
    tn_status status = k->impl->prepare && !l->options->describe_only ? k->impl->prepare(k, &facts) : TN_OK;
    p->packed_bytes += k->packed_bytes;
    tn_lowering_forget(p, k);
    p->kernel.data[p->kernel.len++] = *k; /* the plan frees what is prepared */
    TN_TRY(status);
    return tn_lowering_emit(l, TN_DO_CALL, p->kernel.len - 1, 0);
}

/* The only node that reads a value, if it lies in the same region as the draft: code of a branch or a body stays there. */
static tn_node only_reader(const tn_lowerer *l, const tn_draft *d, tn_value value) {
    const tn_graph *g = l->graph;
    tn_node reader = {0};
    if (tn_value_use_count(g, value) == 1)
        reader = tn_value_first_use(g, value).node;
    return reader.id && tn_node_parent(g, reader).id == tn_node_parent(g, d->nodes[d->node_count - 1]).id
               ? reader
               : (tn_node){0};
}

/* Whether a value is, or will be made of, a contraction that is open or to come. */
static bool of_contraction(const tn_lowerer *l, tn_value value, int depth) {
    const tn_graph *g = l->graph;
    const tn_draft *d = l->draft_of[value.id];
    tn_node from = tn_value_producer(g, value);
    if (d || !from.id || depth == 0 || l->view_of[value.id] != TN_NO_VIEW)
        return d && d->kernel.kind == TN_KERNEL_CONTRACT;
    if (tn_node_op(g, from)->lowering != TN_LOWER_SCALAR)
        return tn_node_op(g, from)->lowering == TN_LOWER_CONTRACT;
    for (uint32_t i = 0; i < tn_node_input_count(g, from); i++)
        if (of_contraction(l, tn_node_input(g, from, i), depth - 1))
            return true;
    return false;
}

/* Whether a node only broadcasts the draft's value, in a way known now, for the epilogue of a contraction that is open: what is made of a
   few numbers for each column is computed where they are used. */
static bool spreads(const tn_lowerer *l, const tn_draft *d, tn_node node) {
    tn_graph *g = l->graph;
    if (d->kernel.kind != TN_KERNEL_STRIP || !tn_lowering_is_broadcast(g, node))
        return false;
    tn_value y = tn_node_output(g, node, 0);
    for (int i = 0, lead = tn_value_rank(g, y) - d->rank; i < d->rank; i++) {
        tn_dim from = tn_value_dim(g, d->value, i);
        int64_t n;
        if (!tn_dim_equal(g, from, tn_value_dim(g, y, lead + i)) && !(tn_dim_is_const(g, from, &n) && n == 1))
            return false;
    }
    tn_node reader = only_reader(l, d, y);
    if (!reader.id || tn_node_op(g, reader)->lowering != TN_LOWER_SCALAR)
        return false;
    for (uint32_t i = 0; i < tn_node_input_count(g, reader); i++)
        if (of_contraction(l, tn_node_input(g, reader, i), 4))
            return true;
    return false;
}

tn_status tn_lowering_close(tn_lowerer *l, tn_draft *d) {
    l->draft_of[d->value.id] = d;
    tn_node reader = only_reader(l, d, d->value);
    bool open = l->options->level >= 1 && reader.id && d->node_count < TN_FUSE_STEPS;
    d->spreads = open && spreads(l, d, reader);
    open = open && (d->spreads || tn_node_op(l->graph, reader)->lowering == TN_LOWER_SCALAR);
    if (l->options->level >= 1 && (d->held_count || (!open && tn_lowering_comes_together(l, d)))) {
        if (d->held_count == TN_HELD_MOST)
            return tn_fail(TN_ERR_INTERNAL, "lowering: an epilogue holds too many values");
        d->held[d->held_count] = d->value;
        d->held_result[d->held_count] = d->result;
        d->held_left[d->held_count++] = tn_value_use_count(l->graph, d->value);
        open = true;
    }
    return open ? TN_OK : tn_lowering_finish(l, d);
}

tn_status tn_lowering_copy(tn_lowerer *l, tn_node node, tn_dtype dtype, uint32_t from, uint32_t to) {
    tn_plan *p = l->plan;
    const tn_view a = p->view.data[from], b = p->view.data[to];
    tn_kernel k = {.kind = TN_KERNEL_STRIP, .outer = b.rank, .operands = 1, .outputs = 1, .extent = b.dim};
    k.operand = tn_arena_alloc(&p->arena, sizeof *k.operand);
    k.output = tn_arena_alloc(&p->arena, sizeof *k.output);
    k.result = tn_arena_alloc(&p->arena, sizeof *k.result);
    if (!k.operand || !k.output || !k.result)
        return TN_ERR_MEMORY;
    k.operand[0] = (tn_access){.slot = a.slot, .dtype = (uint8_t)dtype, .offset = a.offset, .stride = a.stride};
    k.output[0] = (tn_access){.slot = b.slot, .dtype = (uint8_t)dtype, .offset = b.offset, .stride = b.stride};
    return tn_lowering_call(l, &k, 1, &node);
}
