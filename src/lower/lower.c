/* Lowering a graph: nodes in order become views, kernels or HOST instructions. */
#include "lower/lowering.h"
#include "lower/packs.h"
#include "passes/pass.h"

static void note_unknown(void *ctx, uint32_t symbol) {
    struct {
        const tn_lowerer *l;
        bool known;
    } *s = ctx;
    if (symbol >= s->l->symbols || s->l->symbol_segment[symbol] == UINT32_MAX)
        s->known = false;
}

bool tn_lowering_known(const tn_lowerer *l, tn_value value) {
    struct {
        const tn_lowerer *l;
        bool known;
    } s = {l, true};
    int rank = tn_value_rank(l->graph, value);
    for (int i = 0; i < rank; i++)
        tn_dim_symbols(&l->graph->dims, tn_value_dim(l->graph, value, i), note_unknown, &s);
    return s.known && rank >= 0;
}

static void bind_symbol(void *ctx, uint32_t symbol) {
    tn_lowerer *l = ctx;
    if (symbol < l->symbols && l->symbol_segment[symbol] == UINT32_MAX)
        l->symbol_segment[symbol] = l->segment;
}

/* The symbols of a value's dims can be read from it from segment l->segment on. */
static tn_status bind_value(tn_lowerer *l, tn_value value, uint32_t slot) {
    for (int i = 0; i < tn_value_rank(l->graph, value); i++)
        tn_dim_symbols(&l->graph->dims, tn_value_dim(l->graph, value, i), bind_symbol, l);
    tn_bind_read r = {l->segment, slot, value};
    return tn_vec_push(l->plan->heap, &l->plan->bind_read, r) ? TN_OK : TN_ERR_MEMORY;
}

static bool push_u32(tn_lowerer *l, tn_u32_vec *v, uint32_t x) {
    return tn_vec_push(l->plan->heap, v, x);
}

/* --- HOST ---------------------------------------------------------------------------------------------------------------------- */

/* Whether a region lies inside a node. */
static bool lies_inside(const tn_graph *g, tn_region region, tn_node node) {
    while (region.id) {
        tn_node owner = tn_region_owner(g, region);
        if (owner.id == node.id)
            return true;
        region = owner.id ? tn_node_parent(g, owner) : (tn_region){0};
    }
    return false;
}

/* The enclosing values that the regions of a node read: (value, view) pairs. */
static tn_status add_outer(tn_lowerer *l, tn_node owner, tn_host_call *h, int depth) {
    tn_graph *g = l->graph;
    if (depth > TN_MAX_NESTING)
        return tn_fail(TN_ERR_LIMIT, "regions are nested deeper than %d", TN_MAX_NESTING);
    for (uint32_t r = 0; r < tn_node_region_count(g, owner); r++)
        for (tn_node n = tn_region_first(g, tn_node_region(g, owner, r)); n.id; n = tn_node_next(g, n)) {
            if (!l->needed[n.id] && !tn_node_has_trait(g, n, TN_TERMINATOR))
                continue;
            for (uint32_t i = 0; i < tn_node_input_count(g, n); i++) {
                tn_value v = tn_node_input(g, n, i);
                if (!v.id)
                    continue;
                tn_node producer = tn_value_producer(g, v);
                uint32_t home = producer.id ? tn_node_parent(g, producer).id : g->value.data[v.id].region;
                if (lies_inside(g, (tn_region){home}, h->node))
                    continue;
                bool have = false;
                for (uint32_t k = 0; k < h->outer_count && !have; k++)
                    have = l->plan->view_list.data[h->outer + 2 * k] == v.id;
                if (have)
                    continue;
                uint32_t place = tn_lowering_value(l, v);
                if (place == TN_NO_VIEW)
                    return tn_error_status();
                if (!push_u32(l, &l->plan->view_list, v.id) || !push_u32(l, &l->plan->view_list, place))
                    return TN_ERR_MEMORY;
                h->outer_count++;
            }
            TN_TRY(add_outer(l, n, h, depth + 1));
        }
    return TN_OK;
}

tn_status tn_lower_host(tn_lowerer *l, tn_node node) {
    tn_graph *g = l->graph;
    tn_plan *p = l->plan;
    tn_host_call h = {
        .node = node, .input_count = tn_node_input_count(g, node), .output_count = tn_node_output_count(g, node)};
    for (uint32_t i = 0; i < h.input_count; i++) {
        tn_value v = tn_node_input(g, node, i);
        if (v.id && tn_lowering_value(l, v) == TN_NO_VIEW)
            return tn_error_status();
    }
    h.inputs = p->view_list.len;
    for (uint32_t i = 0; i < h.input_count; i++) {
        tn_value v = tn_node_input(g, node, i);
        if (!push_u32(l, &p->view_list, v.id ? l->view_of[v.id] : TN_NO_VIEW))
            return TN_ERR_MEMORY;
    }
    h.outer = p->view_list.len;
    TN_TRY(add_outer(l, node, &h, 0));
    h.outputs = p->slot_list.len;
    bool unknown = false;
    for (uint32_t i = 0; i < h.output_count; i++) {
        tn_value v = tn_node_output(g, node, i);
        uint32_t slot;
        if (tn_lowering_known(l, v) && tn_lowering_admits(tn_value_dtype(g, v)))
            slot = tn_lowering_arena_slot(l, v);
        else {
            tn_slot s = {.kind = TN_SLOT_OBJECT, .dtype = (uint8_t)tn_value_dtype(g, v), .value = v, .first = -1};
            slot = tn_vec_push(p->heap, &p->slot, s) ? p->slot.len - 1 : UINT32_MAX;
            unknown |= tn_value_rank(g, v) > 0 && !tn_lowering_known(l, v);
        }
        if (slot == UINT32_MAX || !push_u32(l, &p->slot_list, slot))
            return TN_ERR_MEMORY;
    }
    if (!tn_vec_push(p->heap, &p->host, h))
        return TN_ERR_MEMORY;
    p->operators++;
    TN_TRY(tn_lowering_emit(l, TN_DO_HOST, p->host.len - 1, 0));
    if (unknown) {
        l->segment = ++p->segments;
        for (uint32_t i = 0; i < h.output_count; i++) {
            tn_value v = tn_node_output(g, node, i);
            if (tn_value_rank(g, v) > 0 && !tn_lowering_known(l, v))
                TN_TRY(bind_value(l, v, p->slot_list.data[h.outputs + i]));
        }
        TN_TRY(tn_lowering_emit(l, TN_DO_BIND, l->segment, 0));
    }
    for (uint32_t i = 0; i < h.output_count; i++)
        if (tn_lowering_view(l, tn_node_output(g, node, i), p->slot_list.data[h.outputs + i], (tn_dim){0}, NULL) ==
            TN_NO_VIEW)
            return tn_error_status() == TN_OK ? TN_ERR_MEMORY : tn_error_status();
    return TN_OK;
}

/* --- the whole graph ------------------------------------------------------------------------------------------------------------ */

static tn_status lower_constant(tn_lowerer *l, tn_node node) {
    tn_tensor *t = tn_attr_tensor(l->graph, node, "value");
    tn_value v = tn_node_output(l->graph, node, 0);
    tn_slot s = {.kind = TN_SLOT_CONSTANT, .dtype = t->dtype, .value = v, .first = -1};
    s.tensor = t->contiguous ? tn_tensor_retain(t) : tn_tensor_copy(t);
    if (!s.tensor)
        return TN_ERR_MEMORY;
    l->plan->weight_bytes += tn_tensor_bytes(s.tensor);
    if (!tn_vec_push(l->plan->heap, &l->plan->slot, s)) {
        tn_tensor_destroy(s.tensor);
        return TN_ERR_MEMORY;
    }
    return tn_lowering_view(l, v, l->plan->slot.len - 1, (tn_dim){0}, NULL) == TN_NO_VIEW ? TN_ERR_MEMORY : TN_OK;
}

/* Whether there are bindings that leave a dim without a value: sizes that do not broadcast, a division by 0. (Overflow is found by
   the instruction that needs the size.) */
static bool may_lack_value(const tn_graph *g, tn_dim dim) {
    const tn_dim_expr *e = &g->dims.expr.data[dim.id];
    const tn_u32_vec *args = &g->dims.arg;
    if (e->kind == TN_DIM_BROADCAST)
        return true;
    if (e->kind == TN_DIM_FLOORDIV || e->kind == TN_DIM_CEILDIV || e->kind == TN_DIM_MOD) {
        int64_t low, high;
        tn_dim_bounds(g, (tn_dim){args->data[e->args + 1]}, &low, &high);
        if (low <= 0 && high >= 0)
            return true;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        if (may_lack_value(g, (tn_dim){args->data[e->args + i]}))
            return true;
    return false;
}

/* Whether code that every run of this node comes by has checked the dim. */
static bool is_checked(const tn_lowerer *l, tn_node node, tn_dim dim) {
    uint64_t region;
    if (!tn_map_get(&l->checked, dim.id, &region))
        return false;
    for (tn_region r = tn_node_parent(l->graph, node); r.id;) {
        if (r.id == region)
            return true;
        tn_node owner = tn_region_owner(l->graph, r);
        r = owner.id ? tn_node_parent(l->graph, owner) : (tn_region){0};
    }
    return false;
}

bool tn_lowering_size_holds(const tn_lowerer *l, tn_node node, tn_dim dim) {
    int64_t low, high;
    tn_dim_bounds(l->graph, dim, &low, &high);
    return (low >= 0 && !may_lack_value(l->graph, dim)) || is_checked(l, node, dim);
}

/* Sizes that inputs can make negative, or that they can leave without a value, are checked before the node, so that nothing is
   computed with them; at the node, not when they are bound, since a branch that is not taken may have such sizes. What only data
   decide is checked by `eval`. */
static tn_status check_sizes(tn_lowerer *l, tn_node node) {
    tn_graph *g = l->graph;
    tn_plan *p = l->plan;
    uint32_t first = p->check.len;
    for (uint32_t i = 0; i < tn_node_output_count(g, node); i++) {
        tn_value v = tn_node_output(g, node, i);
        if (tn_value_rank(g, v) <= 0 || !tn_lowering_known(l, v))
            continue;
        for (int axis = 0; axis < tn_value_rank(g, v); axis++) {
            tn_dim dim = tn_value_dim(g, v, axis);
            if (tn_lowering_size_holds(l, node, dim))
                continue;
            tn_size_check c = {.node = node, .kind = TN_CHECK_SIZE, .value = (uint8_t)i, .axis = (uint8_t)axis};
            if (!tn_lowering_size(l, dim, &c.size) || !tn_vec_push(p->heap, &p->check, c) ||
                !tn_map_put(p->heap, &l->checked, dim.id, tn_node_parent(g, node).id))
                return TN_ERR_MEMORY;
        }
    }
    return p->check.len > first ? tn_lowering_emit(l, TN_DO_CHECK, first, p->check.len - first) : TN_OK;
}

tn_status tn_lowering_require_size(tn_lowerer *l, tn_node node, tn_dim dim) {
    tn_plan *p = l->plan;
    int64_t low, high;
    tn_dim_bounds(l->graph, dim, &low, &high);
    if (low >= 0 && !may_lack_value(l->graph, dim))
        return TN_OK;
    tn_size_check c = {.node = node, .kind = TN_CHECK_SIZE};
    if (!tn_lowering_size(l, dim, &c.size) || !tn_vec_push(p->heap, &p->check, c))
        return TN_ERR_MEMORY;
    return tn_lowering_emit(l, TN_DO_CHECK, p->check.len - 1, 1);
}

tn_status tn_lowering_require(tn_lowerer *l, tn_node node, tn_check_kind kind, uint8_t input, int axis, tn_dim want) {
    tn_graph *g = l->graph;
    tn_plan *p = l->plan;
    tn_dim have = tn_value_dim(g, tn_node_input(g, node, input), axis);
    int64_t n;
    if (tn_dim_equal(g, have, want) || (kind == TN_CHECK_BROADCAST && tn_dim_is_const(g, have, &n) && n == 1))
        return TN_OK;
    tn_size_check c = {.node = node, .kind = (uint8_t)kind, .value = input, .axis = (uint8_t)axis};
    if (!tn_lowering_size(l, have, &c.size) || !tn_lowering_size(l, want, &c.want) ||
        !tn_vec_push(p->heap, &p->check, c))
        return TN_ERR_MEMORY;
    return tn_lowering_emit(l, TN_DO_CHECK, p->check.len - 1, 1);
}

static tn_status lower_node(tn_lowerer *l, tn_node node) {
    const tn_op *op = tn_node_op(l->graph, node);
    tn_status status = TN_ERR_UNSUPPORTED;
    TN_TRY(check_sizes(l, node));
    switch ((tn_lowering)op->lowering) {
    case TN_LOWER_NOTHING:
        if (op->traits & TN_TERMINATOR)
            return TN_OK;
        if (op->traits & TN_CONSTANT)
            return lower_constant(l, node);
        break;
    case TN_LOWER_SCALAR: status = tn_lower_scalar(l, node); break;
    case TN_LOWER_MOVE: status = tn_lower_move(l, node); break;
    case TN_LOWER_REDUCE: status = tn_lower_reduce(l, node); break;
    case TN_LOWER_WINDOW: status = tn_lower_window(l, node); break;
    case TN_LOWER_CONTRACT: status = tn_lower_contract(l, node); break;
    case TN_LOWER_CONTROL: status = tn_lower_control(l, node); break;
    default: break;
    }
    return status == TN_ERR_UNSUPPORTED ? tn_lower_host(l, node) : status;
}

/* A loop, and those that waited for it. */
static tn_status lower_together(tn_lowerer *l, uint32_t count, const tn_node *nodes) {
    for (uint32_t i = 0; i < count; i++)
        TN_TRY(check_sizes(l, nodes[i]));
    return tn_lower_loops(l, count, nodes);
}

tn_status tn_lower_region(tn_lowerer *l, tn_region region) {
    tn_graph *g = l->graph;
    tn_node waiting[TN_FORK_MOST];
    uint32_t count = 0;
    for (tn_node n = tn_region_first(g, region); n.id; n = tn_node_next(g, n)) {
        if (!l->needed[n.id])
            continue;
        bool loop = tn_node_op(g, n)->lowering == TN_LOWER_CONTROL;
        if (loop && tn_lowering_loop_waits(l, n, count, waiting)) {
            waiting[count++] = n;
            continue;
        }
        bool together = loop && count && tn_lowering_is_loop(l, n);
        if (together)
            waiting[count++] = n;
        tn_status status = together ? lower_together(l, count, waiting) : lower_node(l, n);
        count = together ? 0 : count;
        if (status == TN_OK)
            continue;
        TN_TRY(tn_graph_check(g));
        return tn_error_status() == TN_OK ? tn_fail(status, "lowering %s failed", tn_node_op_name(g, n)) : status;
    }
    return TN_OK;
}

static tn_status lower_inputs(tn_lowerer *l) {
    tn_graph *g = l->graph;
    tn_plan *p = l->plan;
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++) {
        tn_value v = tn_graph_input(g, i);
        tn_slot s = {
            .kind = TN_SLOT_INPUT, .dtype = (uint8_t)tn_value_dtype(g, v), .input = i, .value = v, .first = -1};
        if (!tn_vec_push(p->heap, &p->slot, s))
            return TN_ERR_MEMORY;
        uint32_t slot = p->slot.len - 1;
        if (tn_value_rank(g, v) > 0)
            TN_TRY(bind_value(l, v, slot));
        uint32_t place = tn_lowering_view(l, v, slot, (tn_dim){0}, NULL);
        if (place == TN_NO_VIEW || !push_u32(l, &p->input_view, place))
            return TN_ERR_MEMORY;
    }
    return tn_lowering_emit(l, TN_DO_BIND, 0, 0);
}

/* An output that is all of what kernels made, in another shape: it is made in that shape, so that it can be handed over as it is. */
static void adopt_shape(const tn_lowerer *l, const tn_view *v) {
    tn_graph *g = l->graph;
    tn_plan *p = l->plan;
    tn_slot *s = &p->slot.data[v->slot];
    int64_t offset;
    if (s->kind != TN_SLOT_ARENA || s->fetched || v->object || tn_value_dtype(g, v->value) != (tn_dtype)s->dtype ||
        tn_lowering_is_output(l, s->value) || !tn_dim_is_const(g, tn_lowering_dim(l, v->offset), &offset) || offset ||
        !tn_view_is_contiguous(l, v))
        return;
    tn_dim count = tn_dim_const(g, 1);
    for (int i = 0; i < v->rank; i++) {
        if (p->size_segment.data[v->dim[i]] > s->segment)
            return;
        count = tn_dim_mul(g, count, tn_lowering_dim(l, v->dim[i]));
    }
    for (uint32_t i = 0; i < p->host.len; i++) /* these make what their node gives */
        for (uint32_t k = 0; k < p->host.data[i].output_count; k++)
            if (p->slot_list.data[p->host.data[i].outputs + k] == v->slot)
                return;
    if (tn_dim_equal(g, count, tn_lowering_dim(l, s->count)))
        s->value = v->value;
}

static tn_status lower_outputs(tn_lowerer *l) {
    for (uint32_t i = 0; i < tn_graph_output_count(l->graph); i++) {
        uint32_t place = tn_lowering_value(l, tn_graph_output(l->graph, i));
        if (place == TN_NO_VIEW || !push_u32(l, &l->plan->output_view, place))
            return tn_error_status() == TN_OK ? TN_ERR_MEMORY : tn_error_status();
        adopt_shape(l, &l->plan->view.data[place]);
        l->plan->slot.data[l->plan->view.data[place].slot].fetched = true;
    }
    return tn_lowering_emit(l, TN_DO_END, 0, 0);
}

/* Constants that kernels read in place are aligned to their elements; those that are only packed, or of which rows are taken, stay where
   the file has them. */
static tn_status align_constants(tn_plan *p) {
    for (uint32_t i = 0; i < p->slot.len; i++) {
        tn_slot *s = &p->slot.data[i];
        size_t element = (size_t)tn_dtype_bits((tn_dtype)s->dtype) / 8;
        if (s->kind != TN_SLOT_CONSTANT || !s->aligned || element < 2 ||
            (uintptr_t)s->tensor->data % (element > 8 ? 8 : element) == 0)
            continue;
        tn_pack_form form = {.count = 0};
        tn_pack_say(&form, TN_PACK_ALIGNED);
        tn_pack_say(&form, s->tensor->dtype);
        for (int d = 0; d < s->tensor->rank; d++)
            tn_pack_say(&form, s->tensor->dims[d]);
        tn_tensor *copy = tn_packs_find(p->packs, s->tensor, &form);
        if (!copy && (copy = tn_tensor_copy_in(p->heap, s->tensor)))
            copy = tn_packs_add(p->packs, s->tensor, &form, copy);
        if (!copy)
            return TN_ERR_MEMORY;
        if (s->tensor->storage && s->tensor->storage->mapping) /* the file's pages are not wanted any more */
            tn_mapping_forget(s->tensor->storage->mapping, s->tensor->data, tn_tensor_bytes(s->tensor));
        tn_tensor_destroy(s->tensor);
        s->tensor = copy;
    }
    return TN_OK;
}

/* `rows`: what reads it takes rows of it as bytes. */
static void touch(tn_lowerer *l, uint32_t slot, int32_t at, bool rows) {
    tn_slot *s = &l->plan->slot.data[slot];
    s->aligned |= !rows;
    if (s->first < 0)
        s->first = at;
    s->last = at;
}

/* What is made before a loop and read in it is read again on the next trip. */
static void extend_over_loops(tn_plan *p) {
    for (uint32_t i = 0; i < p->code.len; i++) {
        if (p->code.data[i].op != TN_DO_LOOP)
            continue;
        int32_t from = (int32_t)p->code.data[i].b, to = (int32_t)i;
        for (uint32_t s = 0; s < p->slot.len; s++)
            if (p->slot.data[s].first >= 0 && p->slot.data[s].first < from && p->slot.data[s].last >= from &&
                p->slot.data[s].last < to)
                p->slot.data[s].last = to;
    }
}

/* What a loop carries and stacks lives from before its first trip to its end. */
static void touch_moving(tn_lowerer *l, const tn_loop *loop, int32_t at) {
    if (loop->limit != UINT32_MAX)
        touch(l, l->plan->view.data[loop->limit].slot, at, false);
    for (uint32_t i = loop->first; i < loop->first + loop->count; i++) {
        const tn_moving m = l->plan->moving.data[i];
        touch(l, m.slot, at, false);
        touch(l, m.from, at, false);
        touch(l, m.other, at, false);
    }
}

/* Who reads a moving slot reads where it lies. */
static bool extend_to_moving(tn_plan *p) {
    bool changed = false;
    for (uint32_t i = 0; i < p->moving.len; i++) {
        const tn_moving m = p->moving.data[i];
        const tn_slot *s = &p->slot.data[m.slot];
        tn_slot *in[2] = {&p->slot.data[m.from], &p->slot.data[m.other]};
        for (int k = 0; k < 2; k++)
            if (in[k]->last < s->last) {
                in[k]->last = s->last;
                changed = true;
            }
    }
    return changed;
}

tn_status tn_lowering_lifetimes(tn_lowerer *l) {
    tn_plan *p = l->plan;
    for (uint32_t i = 0; i < p->code.len; i++) {
        const tn_instruction in = p->code.data[i];
        if (in.op == TN_DO_CALL) {
            const tn_kernel *k = &p->kernel.data[in.a];
            for (int j = 0; j < k->operands; j++)
                if (j != 1 || !k->packed_only)
                    touch(l, k->operand[j].slot, (int32_t)i, false);
            for (int j = 0; j < k->outputs; j++)
                touch(l, k->output[j].slot, (int32_t)i, false);
        } else if (in.op == TN_DO_HOST) {
            const tn_host_call *h = &p->host.data[in.a];
            bool rows = tn_node_op(l->graph, h->node)->lowering == TN_LOWER_GATHER;
            for (uint32_t j = 0; j < h->input_count; j++)
                if (p->view_list.data[h->inputs + j] != TN_NO_VIEW)
                    touch(l, p->view.data[p->view_list.data[h->inputs + j]].slot, (int32_t)i, rows);
            for (uint32_t j = 0; j < h->outer_count; j++)
                touch(l, p->view.data[p->view_list.data[h->outer + 2 * j + 1]].slot, (int32_t)i, false);
            for (uint32_t j = 0; j < h->output_count; j++)
                touch(l, p->slot_list.data[h->outputs + j], (int32_t)i, false);
        } else if (in.op == TN_DO_BRANCH && in.a != UINT32_MAX)
            touch(l, p->view.data[in.a].slot, (int32_t)i, false);
        else if (in.op == TN_DO_ENTER || in.op == TN_DO_LOOP)
            touch_moving(l, &p->loop.data[in.a], (int32_t)i);
    }
    for (uint32_t i = 0; i < p->slot.len; i++)
        if (p->slot.data[i].fetched)
            p->slot.data[i].last = (int32_t)p->code.len;
    do
        extend_over_loops(p);
    while (extend_to_moving(p));
    if (!l->options->describe_only)
        TN_TRY(align_constants(p));
    for (uint32_t i = 0; i < p->slot.len; i++)
        if (p->slot.data[i].first < 0)
            p->slot.data[i].first = p->slot.data[i].last = 0;
    for (uint32_t i = 0; i < p->bind_read.len; i++)
        if (p->slot.data[p->bind_read.data[i].slot].last < 1)
            p->slot.data[p->bind_read.data[i].slot].last = 1;
    return TN_OK;
}

/* What parts that run at once use, they use at once. */
static void extend_over_forks(tn_plan *p) {
    for (uint32_t i = 0; i < p->code.len; i++) {
        if (p->code.data[i].op != TN_DO_FORK)
            continue;
        int32_t from = (int32_t)i, to = (int32_t)p->code.data[i].b - 1;
        for (uint32_t k = 0; k < p->slot.len; k++) {
            tn_slot *s = &p->slot.data[k];
            s->first = s->first > from && s->first <= to ? from : s->first;
            s->last = s->last > from && s->last < to ? to : s->last;
            s->until = s->until > from && s->until < to ? to : s->until;
        }
    }
}

static bool chainable(const tn_plan *p, uint32_t pc) {
    if (pc >= p->code.len || p->code.data[pc].op != TN_DO_CALL)
        return false;
    const tn_kernel *k = &p->kernel.data[p->code.data[pc].a];
    return k->kind == TN_KERNEL_STRIP || k->kind == TN_KERNEL_REDUCE;
}

/* The kernels at [first, end): chained, with what is read among them alone. */
static void chain(tn_plan *p, uint32_t first, uint32_t end) {
    tn_kernel *k = &p->kernel.data[p->code.data[first].a];
    k->chain = (uint8_t)(end - first);
    for (uint32_t i = first; i < end; i++) {
        tn_kernel *each = k + (i - first);
        const tn_slot *s = &p->slot.data[each->output[0].slot];
        bool alone = each->outputs == 1 && s->kind == TN_SLOT_ARENA && !s->fetched && s->first == (int32_t)i &&
                     s->last > (int32_t)i && s->last < (int32_t)end;
        for (uint32_t j = first; j < end && alone; j++)
            alone = j == i || k[j - first].output[0].slot != each->output[0].slot;
        each->readers = (uint8_t)(alone ? (uint32_t)s->last - i : 0);
    }
}

bool *tn_lowering_targets(const tn_plan *p) {
    bool *target = tn_alloc_array(p->heap, p->code.len + 1, sizeof *target);
    for (uint32_t i = 0; target && i < p->code.len; i++)
        if ((p->code.data[i].op == TN_DO_BRANCH || p->code.data[i].op == TN_DO_ENTER ||
             p->code.data[i].op == TN_DO_LOOP || p->code.data[i].op == TN_DO_FORK) &&
            p->code.data[i].b < p->code.len)
            target[p->code.data[i].b] = true;
    return target;
}

/* Chains are runs of calls that nothing jumps into. */
static tn_status find_chains(tn_plan *p) {
    bool *target = tn_lowering_targets(p);
    if (!target)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0, end; i < p->code.len; i = end) {
        end = i + 1;
        if (!chainable(p, i))
            continue;
        while (end - i < TN_CHAIN_MOST && chainable(p, end) && !target[end] &&
               p->code.data[end].a == p->code.data[end - 1].a + 1)
            end++;
        if (end - i > 1)
            chain(p, i, end);
    }
    tn_free(p->heap, target);
    return TN_OK;
}

static tn_status lower_all(tn_lowerer *l) {
    tn_graph *g = l->graph;
    for (uint32_t i = 0; i < l->symbols; i++)
        l->symbol_segment[i] = UINT32_MAX;
    for (uint32_t i = 0; i < l->values; i++)
        l->view_of[i] = TN_NO_VIEW;
    TN_TRY(lower_inputs(l));
    TN_TRY(tn_lower_region(l, tn_graph_region(g)));
    TN_TRY(lower_outputs(l));
    if (l->options->level >= 1)
        TN_TRY(tn_lowering_attention(l));
    if (l->options->level >= 1)
        TN_TRY(tn_lowering_bands(l));
    TN_TRY(tn_lowering_lifetimes(l));
    if (l->options->level >= 1)
        TN_TRY(find_chains(l->plan));
    tn_lowering_in_place(l->plan);
    extend_over_forks(l->plan);
    for (uint32_t i = 0; i < l->plan->kernel.len;
         i++) /* once more: reading one constant brings back pages of those beside it */
        tn_lowering_forget(l->plan, &l->plan->kernel.data[i]);
    for (uint32_t i = 0; i < l->symbols; i++)
        if (!push_u32(l, &l->plan->symbol_segment, l->symbol_segment[i]))
            return TN_ERR_MEMORY;
    return tn_graph_check(g);
}

tn_plan *tn_lower(tn_heap *heap, tn_graph *graph, const tn_lower_options *options) {
    tn_plan *p = tn_alloc(heap, sizeof *p);
    if (!p) {
        tn_graph_destroy(graph);
        return NULL;
    }
    p->heap = heap;
    p->graph = graph;
    p->isa = options->isa;
    p->packs = options->packs;
    p->reuse = (uint8_t)options->reuse;
    tn_packs_begin(p->packs);
    tn_arena_init(&p->arena, heap);
    tn_lowerer l = {
        .plan = p, .graph = graph, .options = options, .values = graph->value.len, .symbols = graph->dims.symbol.len};
    tn_arena_init(&l.scratch, heap);
    l.view_of = tn_alloc_array(heap, l.values, sizeof *l.view_of);
    l.draft_of = tn_alloc_array(heap, l.values, sizeof *l.draft_of);
    l.made_in = tn_alloc_array(heap, l.values, sizeof *l.made_in);
    l.symbol_segment = tn_alloc_array(heap, l.symbols + 1u, sizeof *l.symbol_segment);
    l.needed = tn_graph_needed_nodes(graph);
    tn_status status =
        l.view_of && l.draft_of && l.made_in && l.symbol_segment && l.needed ? lower_all(&l) : TN_ERR_MEMORY;
    tn_free(graph->heap, l.needed);
    tn_free(heap, l.view_of);
    tn_free(heap, l.draft_of);
    tn_free(heap, l.made_in);
    tn_free(heap, l.symbol_segment);
    tn_map_free(heap, &l.size_of);
    tn_map_free(heap, &l.checked);
    tn_arena_free(&l.scratch);
    if (status != TN_OK) {
        tn_error_record error;
        tn_error_save(&error);
        tn_plan_destroy(p);
        tn_error_restore(&error);
        return NULL;
    }
    tn_graph_freeze(graph);
    return p;
}

static void free_kernel(tn_heap *heap, const tn_kernel *k) {
    tn_tensor_destroy(k->pack);
    tn_free(heap, k->program);
    for (int i = 0; i < k->parts; i++)
        free_kernel(heap, &k->part[i]);
}

void tn_plan_destroy(tn_plan *p) {
    if (!p)
        return;
    tn_heap *heap = p->heap;
    for (uint32_t i = 0; i < p->slot.len; i++)
        tn_tensor_destroy(p->slot.data[i].tensor);
    for (uint32_t i = 0; i < p->kernel.len; i++)
        free_kernel(heap, &p->kernel.data[i]);
    tn_packs_sweep(p->packs);
    tn_vec_free(heap, &p->size);
    tn_vec_free(heap, &p->size_segment);
    tn_vec_free(heap, &p->slot);
    tn_vec_free(heap, &p->view);
    tn_vec_free(heap, &p->kernel);
    tn_vec_free(heap, &p->host);
    tn_vec_free(heap, &p->loop);
    tn_vec_free(heap, &p->moving);
    tn_vec_free(heap, &p->fork);
    tn_vec_free(heap, &p->bind_read);
    tn_vec_free(heap, &p->check);
    tn_vec_free(heap, &p->code);
    tn_vec_free(heap, &p->view_list);
    tn_vec_free(heap, &p->slot_list);
    tn_vec_free(heap, &p->kernel_node);
    tn_vec_free(heap, &p->symbol_segment);
    tn_vec_free(heap, &p->input_view);
    tn_vec_free(heap, &p->output_view);
    tn_arena_free(&p->arena);
    tn_graph_destroy(p->graph);
    tn_free(heap, p);
}
