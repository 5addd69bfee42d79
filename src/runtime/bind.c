/* Binding a segment of a plan: sizes are evaluated, slots get their places. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "runtime/frame.h"

/* --- sizes --------------------------------------------------------------------------------------------------------------------- */

static tn_status read_dims(tn_frame *f, const tn_bind_read *r) {
    const tn_graph *g = f->plan->graph;
    const tn_slot *slot = &f->plan->slot.data[r->slot];
    const tn_object *object = f->object[r->slot];
    if (!object && (slot->kind == TN_SLOT_INPUT || !tn_value_is_wanted(g, r->value)))
        return TN_OK; /* not read, or not made */
    const tn_tensor *t = (const tn_tensor *)object;
    char text[200];
    if (!t || t->object.kind != TN_KIND_TENSOR || t->rank != tn_value_rank(g, r->value))
        return tn_fail(TN_ERR_INTERNAL, "inferred rank is false: %s",
                       tn_value_describe(g, r->value, text, sizeof text));
    for (int i = 0; i < t->rank; i++) {
        tn_dim dim = tn_value_dim(g, r->value, i);
        int m = tn_dim_env_match(&g->dims, &f->env, dim, t->dims[i]);
        if (m != 1)
            continue; /* bound, or decided by another dimension */
        int64_t expected = 0;
        bool known = tn_dim_eval(&g->dims, &f->env, dim, &expected);
        bool input = slot->kind == TN_SLOT_INPUT;
        char want[64] = "another size";
        int64_t low, high;
        tn_dim_bounds(g, dim, &low, &high);
        if (known)
            snprintf(want, sizeof want, "%" PRId64, expected);
        else if (t->dims[i] < low)
            snprintf(want, sizeof want, "at least %" PRId64, low);
        else if (t->dims[i] > high)
            snprintf(want, sizeof want, "at most %" PRId64, high);
        tn_fail(input ? TN_ERR_INPUT : TN_ERR_INTERNAL, "%s '%s': dimension %d is %" PRId64 ", expected %s",
                input ? "input" : "inferred shape is false: value", tn_value_name(g, r->value), i, t->dims[i], want);
        tn_fail_hint("the shape is %s", tn_value_describe(g, r->value, text, sizeof text));
        return tn_error_status();
    }
    return TN_OK;
}

static void evaluate_sizes(tn_frame *f, const tn_segment *segment) {
    const tn_plan *p = f->plan;
    for (uint32_t n = 0; n < segment->sizes; n++) {
        uint32_t i = f->size_list[segment->size + n];
        f->lacking -= f->missing[i];
        f->missing[i] = !tn_dim_eval(&p->graph->dims, &f->env, p->size.data[i], &f->size[i]);
        f->lacking += f->missing[i];
        if (f->missing[i])
            f->size[i] = 0;
    }
}

/* A symbol whose value is another than the one that f->version stands for makes a new version. */
static void note_symbol(void *ctx, uint32_t symbol) {
    tn_frame *f = ctx;
    if (symbol >= f->env.count || (f->env.bound[symbol] == f->was_bound[symbol] &&
                                   (!f->env.bound[symbol] || f->env.value[symbol] == f->was_value[symbol])))
        return;
    f->was_bound[symbol] = f->env.bound[symbol];
    f->was_value[symbol] = f->env.value[symbol];
    f->version++;
}

static void note_symbols(tn_frame *f, const tn_segment *segment) {
    const tn_plan *p = f->plan;
    for (uint32_t i = 0; i < segment->symbols; i++)
        note_symbol(f, f->symbol_list[segment->symbol + i]);
    for (uint32_t i = 0; i < segment->reads; i++) {
        const tn_bind_read *r = &p->bind_read.data[f->read_list[segment->read + i]];
        for (int axis = 0; axis < tn_value_rank(p->graph, r->value); axis++)
            tn_dim_symbols(&p->graph->dims, tn_value_dim(p->graph, r->value, axis), note_symbol, f);
    }
}

/* --- slots --------------------------------------------------------------------------------------------------------------------- */

static tn_status charge(tn_frame *f, uint64_t bytes) {
    if (__builtin_add_overflow(f->bytes, bytes, &f->bytes))
        f->bytes = UINT64_MAX;
    if (!f->options->max_bytes || f->bytes <= f->options->max_bytes)
        return TN_OK;
    tn_fail(TN_ERR_LIMIT, "this run needs %" PRIu64 " bytes, the limit is %" PRIu64, f->bytes, f->options->max_bytes);
    return TN_ERR_LIMIT;
}

/* Memory for slots: what the block holds where that is enough, else other memory; the block is empty on failure. Under a limit it never
   holds more than it uses. */
static tn_status block_renew(tn_frame *f, tn_block *b, uint64_t bytes) {
    uint64_t before = f->bytes -= b->bytes;
    b->bytes = 0;
    tn_status status = charge(f, bytes);
    if (status == TN_OK && (!b->data || b->held < bytes || (f->options->max_bytes && b->held > bytes))) {
        tn_free(f->home, b->data);
        b->held = 0;
        tn_heap_cache_yield(f->cache, bytes + TN_PLAN_ALIGN);
        b->data = tn_alloc_aligned(f->home, (size_t)bytes + TN_PLAN_ALIGN, TN_PLAN_ALIGN);
        if (b->data)
            b->held = bytes;
        else
            status = tn_error_status();
    }
    if (status == TN_OK)
        b->bytes = bytes;
    else {
        tn_free(f->home, b->data);
        *b = (tn_block){0};
        f->bytes = before;
    }
    return status;
}

void tn_frame_make_room(const tn_frame *f, uint32_t slot) {
    tn_heap_cache_yield(f->cache, (uint64_t)f->size[f->plan->slot.data[slot].bytes] + 2 * sizeof(tn_tensor));
}

/* An output that is made by a kernel lies in a tensor of its own: the caller's, if that can be written in place. */
static tn_status fetched_slot(tn_frame *f, uint32_t index) {
    const tn_slot *s = &f->plan->slot.data[index];
    const tn_graph *g = f->plan->graph;
    int64_t dims[TN_MAX_RANK];
    int rank = tn_value_rank(g, s->value);
    for (int i = 0; i < rank; i++)
        if (!tn_dim_eval(&g->dims, &f->env, tn_value_dim(g, s->value, i), &dims[i]) || dims[i] < 0)
            return TN_OK; /* the check before its node ends the run */
    uint32_t output = f->output_of[index];
    tn_tensor *mine = f->into && output != UINT32_MAX ? f->into[output] : NULL;
    if (mine && !tn_tensor_accept(mine, (tn_dtype)s->dtype, rank, dims)) {
        tn_tensor result = {.dtype = s->dtype, .rank = (uint8_t)rank};
        memcpy(result.dims, dims, (size_t)rank * sizeof *dims);
        return tn_frame_fail_output(f, output, mine, &result);
    }
    bool free = !mine || !f->options->apart || f->options->apart[output] < s->first;
    size_t element = (size_t)tn_dtype_bits((tn_dtype)s->dtype) / 8;
    tn_object_destroy(f->object[index]); /* of an earlier trip */
    f->object[index] = NULL;
    if (mine && free && mine->contiguous && (uintptr_t)mine->data % (element > 1 ? element : 1) == 0) {
        f->object[index] = (tn_object *)tn_tensor_retain(mine);
        f->slot[index] = mine->data;
        return TN_OK;
    }
    TN_TRY(charge(f, (uint64_t)f->size[s->bytes]));
    tn_frame_make_room(f, index);
    tn_tensor *t = tn_tensor_new(mine ? f->heap : f->home, (tn_dtype)s->dtype, rank, dims);
    if (!t)
        return tn_error_status();
    f->object[index] = (tn_object *)t;
    f->slot[index] = t->data;
    return TN_OK;
}

/* Whether an instruction is one that some runs leave out. */
static bool is_conditional(const tn_plan *p, int32_t at) {
    for (uint32_t i = 0; i < p->code.len && (int32_t)i < at; i++)
        if ((p->code.data[i].op == TN_DO_BRANCH || p->code.data[i].op == TN_DO_ENTER) &&
            (int32_t)p->code.data[i].b > at)
            return true;
    return false;
}

/* Places the slots of a segment in one block of memory; with `late`, those of code that may be left out are not among them. */
static tn_status place_slots(tn_frame *f, uint32_t segment, bool late) {
    const tn_plan *p = f->plan;
    tn_segment *part = &f->segment[segment];
    tn_placement none = {0};
    size_t zone = f->options->guard ? TN_GUARD_ZONE : 0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < part->slots; k++) {
        uint32_t i = f->slot_list[part->slot + k];
        const tn_slot *s = &p->slot.data[i];
        if (late && f->size[s->bytes] > 0 && is_conditional(p, s->first)) {
            f->slot[i] = NULL;
            continue;
        }
        bool merged = !late && !zone;
        if (merged && !tn_plan_lifetime(p, i, &f->life[n]))
            continue;
        /* negative or missing: a check comes before its first use, or it lies in a branch that is not taken */
        int64_t bytes = f->size[s->bytes] < 0 ? 0 : f->size[s->bytes];
        if (!merged)
            f->life[n] = (tn_lifetime){.first = s->first, .last = s->last};
        f->life[n].bytes = (size_t)bytes + 2 * zone;
        f->which[n++] = i;
    }
    size_t total = 0;
    TN_TRY(tn_planner_place_again(f->heap, n, f->life, late ? &none : &part->placement, &total));
    TN_TRY(block_renew(f, &f->arena[segment], total));
    part->bytes = total;
    for (uint32_t i = 0; i < n; i++)
        f->slot[f->which[i]] = (char *)f->arena[segment].data + f->life[i].offset + zone;
    for (uint32_t k = 0; k < part->slots && !late && !zone && p->reuse != TN_REUSE_NONE; k++) {
        uint32_t i = f->slot_list[part->slot + k];
        f->slot[i] = f->slot[tn_plan_home(p, i)];
    }
    return TN_OK;
}

static bool has_conditional(const tn_plan *p) {
    for (uint32_t i = 0; i < p->code.len; i++)
        if (p->code.data[i].op == TN_DO_BRANCH || p->code.data[i].op == TN_DO_ENTER)
            return true;
    return false;
}

static uint64_t bytes_of(const tn_frame *f, const tn_slot *s) {
    if (s->kind == TN_SLOT_CONSTANT)
        return s->value.id ? tn_tensor_bytes(s->tensor) : 0;
    bool counts = s->kind == TN_SLOT_ARENA && s->value.id && f->size[s->bytes] > 0;
    return counts ? (uint64_t)f->size[s->bytes] : 0;
}

void tn_frame_say_largest(const tn_frame *f) {
    enum { SAID = 3 };
    const tn_plan *p = f->plan;
    const tn_slot *largest[SAID] = {0};
    for (uint32_t i = 0; i < p->slot.len; i++) {
        const tn_slot *s = &p->slot.data[i];
        uint64_t bytes = bytes_of(f, s);
        for (int k = 0; k < SAID && bytes; k++)
            if (!largest[k] || bytes > bytes_of(f, largest[k])) {
                memmove(largest + k + 1, largest + k, (size_t)(SAID - 1 - k) * sizeof *largest);
                largest[k] = s;
                break;
            }
    }
    if (strstr(tn_error_where(), "the largest value"))
        return;
    char text[200];
    bool alone = !*tn_error_where();
    for (int k = 0; k < SAID && largest[k]; k++)
        tn_fail_where("%s, %" PRIu64 " bytes: %s", k ? "then" : "the largest value", bytes_of(f, largest[k]),
                      tn_value_describe(p->graph, largest[k]->value, text, sizeof text));
    tn_node maker = largest[0] ? tn_value_producer(p->graph, largest[0]->value) : (tn_node){0};
    if (alone && maker.id && largest[0]->kind == TN_SLOT_ARENA)
        tn_fail_at_node(p->graph, maker);
}

void tn_frame_unbind(tn_frame *f, uint32_t segment) {
    for (uint32_t i = 0; segment && i < f->segment[segment].symbols; i++)
        f->env.bound[f->symbol_list[f->segment[segment].symbol + i]] = 0;
}

void tn_frame_forget(tn_frame *f) {
    for (uint32_t i = 0; i <= f->plan->segments; i++)
        f->segment[i].version = 0;
}

void tn_frame_drop_kept(tn_frame *f) {
    for (uint32_t i = 0; f->keeping && i < f->plan->kernel.len; i++) {
        tn_free(f->heap, f->kept[i]);
        f->kept[i] = NULL;
    }
    f->keeping = false;
}

tn_status tn_frame_bind(tn_frame *f, uint32_t segment) {
    const tn_plan *p = f->plan;
    tn_segment *part = &f->segment[segment];
    tn_frame_unbind(f, segment);
    for (uint32_t i = 0; i < part->reads; i++)
        TN_TRY(read_dims(f, &p->bind_read.data[f->read_list[part->read + i]]));
    note_symbols(f, part);
    bool again = part->version == f->version; /* nothing that its sizes depend on has changed */
    part->version = 0;
    if (!again) {
        evaluate_sizes(f, part);
        tn_frame_drop_kept(f);
    }
    for (uint32_t i = 0; i < part->fetches; i++)
        TN_TRY(fetched_slot(f, f->fetched_list[part->fetched + i]));
    tn_status status = again ? block_renew(f, &f->arena[segment], part->bytes) : place_slots(f, segment, false);
    if ((status == TN_ERR_LIMIT || status == TN_ERR_MEMORY) && has_conditional(p)) {
        /* perhaps it is a branch that is too large, and not taken: its slots wait for their first use */
        if (!f->late && !(f->late = tn_alloc_array(f->home, p->slot.len + 1, sizeof *f->late)))
            status = TN_ERR_MEMORY;
        else
            status = place_slots(f, segment, true);
    } else if (status == TN_OK)
        part->version = f->version;
    if (status == TN_ERR_MEMORY || status == TN_ERR_LIMIT)
        tn_frame_say_largest(f);
    if (status == TN_OK && f->options->guard)
        tn_frame_guard_bound(f, segment);
    return status;
}

/* --- instructions that need sizes ---------------------------------------------------------------------------------------------- */

static bool lacks(const tn_frame *f, const tn_size *sizes, uint32_t count, tn_size *which) {
    for (uint32_t i = 0; i < count; i++)
        if (f->missing[sizes[i]]) {
            *which = sizes[i];
            return true;
        }
    return false;
}

static bool access_lacks(const tn_frame *f, const tn_access *a, uint32_t axes, tn_size *which) {
    if (lacks(f, &a->offset, 1, which) || lacks(f, a->stride, axes, which))
        return true;
    for (uint32_t i = 0; i < a->guards; i++)
        if (lacks(f, &a->guard[i].offset, 1, which) || lacks(f, &a->guard[i].extent, 1, which) ||
            lacks(f, a->guard[i].coef, axes, which))
            return true;
    return false;
}

static tn_status admit_slot(tn_frame *f, uint32_t index) {
    const tn_slot *s = &f->plan->slot.data[index];
    if (s->kind != TN_SLOT_ARENA || f->slot[index] || s->fetched || f->size[s->bytes] <= 0)
        return TN_OK;
    TN_TRY(block_renew(f, &f->late[index], (uint64_t)f->size[s->bytes])); /* it may hold that of an earlier trip */
    f->slot[index] = f->late[index].data;
    return TN_OK;
}

/* The node of a kernel that a size without a value is due to: the first one with a result that has none. */
static tn_node node_to_blame(const tn_frame *f, const tn_kernel *k) {
    const tn_plan *p = f->plan;
    const tn_graph *g = p->graph;
    for (uint32_t i = 0; i < k->node_count; i++) {
        tn_node node = {p->kernel_node.data[k->nodes + i]};
        tn_value v = tn_node_output(g, node, 0);
        int64_t dims[TN_MAX_RANK], count;
        size_t bytes;
        for (int axis = 0; axis < tn_value_rank(g, v); axis++)
            if (!tn_dim_eval(&g->dims, &f->env, tn_value_dim(g, v, axis), &dims[axis]) || dims[axis] < 0)
                return node;
        if (tn_dims_count(tn_value_rank(g, v), dims, &count) != TN_OK ||
            tn_dtype_bytes(tn_value_dtype(g, v), count, &bytes) != TN_OK)
            return node;
    }
    return (tn_node){p->kernel_node.data[k->nodes]};
}

/* Whether the sizes of a kernel have values. *skip: it has no outputs, strides of an array without elements may be out of range. */
static tn_status admit_sizes(tn_frame *f, const tn_kernel *k, bool *skip) {
    uint32_t axes = (uint32_t)k->outer + k->inner;
    tn_size which = 0;
    bool lacking = lacks(f, k->extent, axes, &which);
    for (int i = 0; i < k->operands && !lacking; i++)
        lacking = access_lacks(f, &k->operand[i], axes, &which);
    for (int i = 0; i < k->outputs && !lacking; i++)
        lacking = access_lacks(f, &k->output[i], k->outer, &which);
    *skip = false;
    for (int i = 0; i < k->outer && lacking && !lacks(f, k->extent, k->outer, &(tn_size){0}); i++)
        if (f->size[k->extent[i]] == 0) {
            *skip = true;
            return TN_OK;
        }
    if (lacking) {
        tn_node node = node_to_blame(f, k);
        tn_status status = tn_frame_fail_size(f, node, which);
        tn_frame_say_enclosing(f, node);
        return status;
    }
    return TN_OK;
}

static tn_status admit_call(tn_frame *f, const tn_kernel *k, bool *skip) {
    if (!k->parts)
        TN_TRY(admit_sizes(f, k, skip));
    for (int i = 0; i < k->parts; i++) /* what the last one skips, all do; sizes of no outputs count as 0 */
        TN_TRY(admit_sizes(f, &k->part[i], skip));
    if (*skip)
        return TN_OK;
    for (int i = 0; i < k->operands; i++)
        if (i != 1 || !k->packed_only)
            TN_TRY(admit_slot(f, k->operand[i].slot));
    for (int i = 0; i < k->outputs; i++)
        TN_TRY(admit_slot(f, k->output[i].slot));
    return TN_OK;
}

/* Sizes of a place that a host instruction reads. What is an object has its sizes with it. */
static tn_status admit_view(tn_frame *f, tn_node node, uint32_t index) {
    if (index == UINT32_MAX)
        return TN_OK;
    const tn_view *v = &f->plan->view.data[index];
    tn_size which;
    TN_TRY(admit_slot(f, v->slot));
    if (v->object || (f->object[v->slot] && f->plan->slot.data[v->slot].value.id == v->value.id) ||
        !lacks(f, v->dim, v->rank, &which))
        return TN_OK;
    tn_status status = tn_frame_fail_size(f, node, which);
    tn_frame_say_enclosing(f, node);
    return status;
}

static tn_status admit_host(tn_frame *f, const tn_host_call *h) {
    const tn_plan *p = f->plan;
    for (uint32_t i = 0; i < h->input_count; i++)
        TN_TRY(admit_view(f, h->node, p->view_list.data[h->inputs + i]));
    for (uint32_t i = 0; i < h->outer_count; i++)
        TN_TRY(admit_view(f, h->node, p->view_list.data[h->outer + 2 * i + 1]));
    for (uint32_t i = 0; i < h->output_count; i++)
        TN_TRY(admit_slot(f, p->slot_list.data[h->outputs + i]));
    return TN_OK;
}

/* A loop of no trip needs only what it carries. */
static tn_status admit_loop(tn_frame *f, const tn_loop *loop) {
    const tn_plan *p = f->plan;
    tn_size which = loop->trips;
    bool sized = loop->counted && loop->limit == UINT32_MAX, lacking = sized && f->missing[loop->trips],
         runs = !sized || (!lacking && f->size[loop->trips] > 0);
    TN_TRY(admit_view(f, loop->node, loop->limit));
    for (uint32_t i = loop->first; i < loop->first + loop->count && !lacking; i++) {
        const tn_moving *m = &p->moving.data[i];
        if (!runs && m->kind != TN_MOVING_CARRIED)
            continue;
        lacking = lacks(f, &m->offset, 1, &which) || lacks(f, &m->step, 1, &which);
        if (!lacking)
            TN_TRY(admit_slot(f, m->from));
        if (!lacking && runs)
            TN_TRY(admit_slot(f, m->other));
    }
    if (!lacking)
        return TN_OK;
    tn_status status = tn_frame_fail_size(f, loop->node, which);
    tn_frame_say_enclosing(f, loop->node);
    return status;
}

tn_status tn_frame_admit(tn_frame *f, const tn_instruction *in, bool *skip) {
    *skip = false;
    if (in->op == TN_DO_ENTER)
        return admit_loop(f, &f->plan->loop.data[in->a]);
    return in->op == TN_DO_CALL ? admit_call(f, &f->plan->kernel.data[in->a], skip)
                                : admit_host(f, &f->plan->host.data[in->a]);
}
