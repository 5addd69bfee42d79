/* Loops whose values keep their shapes: ENTER and LOOP instructions over the code of the regions. What a loop carries, scans and stacks
   lies in moving slots: nothing is copied but what a trip does not make in its place. */
#include "lower/lowering.h"
#include "ops/control.h"
#include "ops/ops.h"

/* A loop while its code is made. Of all lists, carried values come first. */
typedef struct loop {
    tn_node node;
    tn_region body;
    uint32_t carried, results;
    uint32_t *slot;  /* [carried] MOVING: where the loop reads them */
    uint32_t *made;  /* [results] the MOVING slot that a trip makes them in; TN_NO_VIEW: none */
    tn_moving *move; /* [count] */
    uint32_t count;
    tn_region condition; /* null: it is counted */
    uint32_t index;      /* in tn_plan.loop */
} loop;

static tn_value result_of(const tn_lowerer *l, const loop *o, uint32_t i) {
    return tn_region_result(l->graph, o->body, i);
}

/* Whether a result is left out: nobody needs it. */
static bool is_dropped(const tn_lowerer *l, const loop *o, uint32_t i) {
    tn_node from = tn_value_producer(l->graph, result_of(l, o, i));
    return from.id && tn_node_parent(l->graph, from).id == o->body.id && !l->needed[from.id];
}

/* A moving slot of a value's dtype. UINT32_MAX: failed. */
static uint32_t moving_slot(tn_lowerer *l, loop *o, tn_moving m, tn_value value) {
    tn_slot s = {
        .kind = TN_SLOT_MOVING, .dtype = (uint8_t)tn_value_dtype(l->graph, value), .value = value, .first = -1};
    if (m.from == UINT32_MAX || !tn_vec_push(l->plan->heap, &l->plan->slot, s))
        return UINT32_MAX;
    m.slot = l->plan->slot.len - 1;
    m.other = m.other == UINT32_MAX ? m.slot : m.other;
    o->move[o->count++] = m;
    return m.slot;
}

/* Elements of a value, as a size. */
static bool elements_of(tn_lowerer *l, tn_value v, tn_size *size) {
    tn_dim count = tn_dim_const(l->graph, 1);
    for (int i = 0; i < tn_value_rank(l->graph, v); i++)
        count = tn_dim_mul(l->graph, count, tn_value_dim(l->graph, v, i));
    return tn_lowering_size(l, count, size);
}

static bool keeps_type(const tn_lowerer *l, tn_value x, tn_value other) {
    return tn_lowering_same_dims(l->graph, x, other, 0);
}

/* A value on entry, contiguous: itself or a copy. */
static tn_status entry_view(tn_lowerer *l, const loop *o, uint32_t i, tn_view *view) {
    tn_value x = tn_node_input(l->graph, o->node, i);
    uint32_t from = tn_lowering_value(l, x);
    if (from == TN_NO_VIEW)
        return tn_error_status();
    if (!tn_view_is_contiguous(l, &l->plan->view.data[from])) {
        uint32_t copy = tn_lowering_own_view(l, tn_node_output(l->graph, o->node, i));
        if (copy == TN_NO_VIEW)
            return TN_ERR_MEMORY;
        TN_TRY(tn_lowering_copy(l, o->node, tn_value_dtype(l->graph, x), from, copy));
        from = copy;
    }
    *view = l->plan->view.data[from];
    return TN_OK;
}

/* Where a trip makes what it hands on: a value that is stacked, too, in its row; one that it hands on as it is, nowhere. */
static tn_status place_carried(tn_lowerer *l, loop *o, uint32_t i) {
    tn_graph *g = l->graph;
    tn_value v = result_of(l, o, i), y = tn_node_output(g, o->node, i);
    tn_moving m = {.kind = TN_MOVING_CARRIED, .other = UINT32_MAX};
    tn_view entry = {0};
    TN_TRY(entry_view(l, o, i, &entry));
    m.from = entry.slot;
    m.offset = m.step = entry.offset;
    if (v.id != tn_region_arg(g, o->body, i).id && !is_dropped(l, o, i)) {
        for (uint32_t j = o->carried; j < o->results && o->made[i] == TN_NO_VIEW; j++)
            if (result_of(l, o, j).id == v.id)
                o->made[i] = o->made[j];
        if (o->made[i] == TN_NO_VIEW) {
            tn_moving turns = {
                .kind = TN_MOVING_TURNS, .from = tn_lowering_arena_slot(l, y), .other = tn_lowering_arena_slot(l, y)};
            if (!tn_lowering_const(l, 0, &turns.offset) || turns.other == UINT32_MAX)
                return TN_ERR_MEMORY;
            turns.step = turns.offset;
            if ((o->made[i] = moving_slot(l, o, turns, y)) == UINT32_MAX)
                return TN_ERR_MEMORY;
        }
        m.other = o->made[i];
    }
    return (o->slot[i] = moving_slot(l, o, m, y)) == UINT32_MAX ? TN_ERR_MEMORY : TN_OK;
}

static tn_status place_stacked(tn_lowerer *l, loop *o, uint32_t i) {
    tn_value y = tn_node_output(l->graph, o->node, i);
    if (!tn_value_use_count(l->graph, y))
        return TN_OK;
    uint32_t whole = tn_lowering_own_view(l, y);
    if (whole == TN_NO_VIEW)
        return TN_ERR_MEMORY;
    tn_moving m = {.kind = TN_MOVING_ROW, .from = l->plan->view.data[whole].slot, .other = UINT32_MAX};
    if (!tn_lowering_const(l, 0, &m.offset) || !elements_of(l, result_of(l, o, i), &m.step))
        return TN_ERR_MEMORY;
    return (o->made[i] = moving_slot(l, o, m, y)) == UINT32_MAX ? TN_ERR_MEMORY : TN_OK;
}

/* Rows of an input along its first axis, as the body's argument. */
static tn_status place_scanned(tn_lowerer *l, loop *o, uint32_t i) {
    tn_graph *g = l->graph;
    tn_value x = tn_node_input(g, o->node, i), arg = tn_region_arg(g, o->body, i);
    uint32_t from = tn_lowering_value(l, x);
    if (from == TN_NO_VIEW)
        return tn_error_status();
    const tn_view v = l->plan->view.data[from];
    tn_moving m = {.kind = TN_MOVING_ROW, .from = v.slot, .other = UINT32_MAX, .offset = v.offset, .step = v.stride[0]};
    uint32_t slot = moving_slot(l, o, m, arg);
    tn_dim *strides = tn_view_strides(l, &v);
    if (slot == UINT32_MAX || !strides)
        return TN_ERR_MEMORY;
    return tn_lowering_view(l, arg, slot, (tn_dim){0}, strides + 1) == TN_NO_VIEW ? TN_ERR_MEMORY : TN_OK;
}

/* The moving slots of a loop; `scanned` inputs follow those that are carried. */
static tn_status place_values(tn_lowerer *l, loop *o, uint32_t scanned) {
    size_t most = 2 * (size_t)o->results + o->carried + scanned + 1;
    o->move = tn_arena_alloc(&l->scratch, most * sizeof *o->move);
    o->slot = tn_arena_alloc(&l->scratch, (o->carried + 1u) * sizeof *o->slot);
    o->made = tn_arena_alloc(&l->scratch, (o->results + 1u) * sizeof *o->made);
    if (!o->move || !o->slot || !o->made)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < o->results; i++)
        o->made[i] = TN_NO_VIEW;
    for (uint32_t i = o->carried; i < o->results; i++)
        TN_TRY(place_stacked(l, o, i));
    for (uint32_t i = 0; i < o->carried; i++)
        TN_TRY(place_carried(l, o, i));
    for (uint32_t i = 0; i < scanned; i++)
        TN_TRY(place_scanned(l, o, o->carried + i));
    for (uint32_t i = 0; i < o->results; i++) {
        tn_value v = result_of(l, o, i);
        tn_node from = tn_value_producer(l->graph, v);
        if (o->made[i] != TN_NO_VIEW && from.id && tn_node_parent(l->graph, from).id == o->body.id && !l->made_in[v.id])
            l->made_in[v.id] = 1 + o->made[i];
    }
    return TN_OK;
}

static tn_status add_loop(tn_lowerer *l, const loop *o, tn_loop record, uint32_t *index) {
    tn_plan *p = l->plan;
    record.node = o->node;
    record.first = p->moving.len;
    record.count = o->count;
    for (int carried = 1; carried >= 0; carried--)
        for (uint32_t i = 0; i < o->count; i++)
            if ((o->move[i].kind == TN_MOVING_CARRIED) == carried && !tn_vec_push(p->heap, &p->moving, o->move[i]))
                return TN_ERR_MEMORY;
    *index = p->loop.len;
    return tn_vec_push(p->heap, &p->loop, record) ? TN_OK : TN_ERR_MEMORY;
}

/* The body, and copies of those of its results that do not lie where they should. */
static tn_status lower_body(tn_lowerer *l, const loop *o) {
    TN_TRY(tn_lower_region(l, o->body));
    for (uint32_t i = 0; i < o->results; i++) {
        tn_value v = result_of(l, o, i);
        if (is_dropped(l, o, i))
            continue;
        uint32_t from = tn_lowering_value(l, v);
        if (from == TN_NO_VIEW)
            return tn_error_status();
        if (o->made[i] == TN_NO_VIEW || l->plan->view.data[from].slot == o->made[i])
            continue;
        bool copied = false; /* for another result that lies in the same place */
        for (uint32_t j = 0; j < i; j++)
            copied |= o->made[j] == o->made[i];
        if (copied)
            continue;
        uint32_t to = tn_lowering_view(l, v, o->made[i], (tn_dim){0}, NULL);
        l->view_of[v.id] = from;
        if (to == TN_NO_VIEW)
            return TN_ERR_MEMORY;
        TN_TRY(tn_lowering_copy(l, o->node, tn_value_dtype(l->graph, v), from, to));
    }
    return TN_OK;
}

/* Instructions from ENTER to LOOP. */
static tn_status lower_code(tn_lowerer *l, const loop *o) {
    tn_graph *g = l->graph;
    uint32_t index = o->index;
    tn_region condition = o->condition;
    uint32_t enter = l->plan->code.len, top = enter + 1, branch = 0, segment = l->segment;
    TN_TRY(tn_lowering_emit(l, TN_DO_ENTER, index, 0));
    if (condition.id) {
        TN_TRY(tn_lower_region(l, condition));
        uint32_t go_on = tn_lowering_value(l, tn_region_result(g, condition, 0));
        if (go_on == TN_NO_VIEW)
            return tn_error_status();
        branch = l->plan->code.len;
        TN_TRY(tn_lowering_emit(l, TN_DO_BRANCH, go_on, 0));
        l->segment = segment;
    }
    TN_TRY(lower_body(l, o));
    TN_TRY(tn_lowering_emit(l, TN_DO_LOOP, index, top));
    l->segment = segment; /* what a trip binds is not bound after it */
    l->plan->code.data[enter].b = l->plan->code.len;
    if (condition.id)
        l->plan->code.data[branch].b = l->plan->code.len;
    for (uint32_t i = 0; i < o->carried; i++)
        if (tn_lowering_view(l, tn_node_output(g, o->node, i), o->slot[i], (tn_dim){0}, NULL) == TN_NO_VIEW)
            return TN_ERR_MEMORY;
    return TN_OK;
}

static bool carried_plain(const tn_lowerer *l, const loop *o) {
    const tn_graph *g = l->graph;
    for (uint32_t i = 0; i < o->carried; i++) {
        tn_value x = tn_node_input(g, o->node, i);
        if (!tn_lowering_is_plain(l, x) || !keeps_type(l, x, tn_region_arg(g, o->body, i)) ||
            !keeps_type(l, x, result_of(l, o, i)) || !keeps_type(l, x, tn_node_output(g, o->node, i)))
            return false;
    }
    for (uint32_t i = o->carried; i < o->results; i++) {
        tn_value y = tn_node_output(g, o->node, i);
        if (!tn_lowering_is_plain(l, y) || !tn_lowering_same_dims(g, result_of(l, o, i), y, 1))
            return false;
    }
    return true;
}

/* The views of carried values, as a region's arguments. */
static tn_status take_args(tn_lowerer *l, const loop *o, tn_region region) {
    for (uint32_t i = 0; i < o->carried; i++)
        if (tn_lowering_view(l, tn_region_arg(l->graph, region, i), o->slot[i], (tn_dim){0}, NULL) == TN_NO_VIEW)
            return TN_ERR_MEMORY;
    return TN_OK;
}

/* Whether nothing that a region does is seen but by its results. */
static bool is_quiet(const tn_graph *g, tn_region region) {
    for (tn_node n = tn_region_first(g, region); n.id; n = tn_node_next(g, n)) {
        if (tn_node_has_trait(g, n, TN_EFFECT | TN_CALL))
            return false;
        for (uint32_t r = 0; r < tn_node_region_count(g, n); r++)
            if (!is_quiet(g, tn_node_region(g, n, r)))
                return false;
    }
    return true;
}

/* Whether a value is none of the regions of a node. */
static bool is_outside(const tn_graph *g, tn_value v, tn_node node) {
    tn_node from = tn_value_producer(g, v);
    tn_region home = from.id ? tn_node_parent(g, from) : (tn_region){g->value.data[v.id].region};
    while (home.id) {
        tn_node owner = tn_region_owner(g, home);
        if (owner.id == node.id)
            return false;
        home = owner.id ? tn_node_parent(g, owner) : (tn_region){0};
    }
    return true;
}

/* The trips are counted anyway: a value that counts them is not computed where nobody else reads it. */
static void drop_counter(tn_lowerer *l, const loop *o, uint32_t counter) {
    tn_value next = result_of(l, o, counter);
    if (tn_value_use_count(l->graph, tn_region_arg(l->graph, o->body, counter)) == 1 &&
        tn_value_use_count(l->graph, next) == 1 &&
        tn_value_use_count(l->graph, tn_node_output(l->graph, o->node, counter)) == 0)
        l->needed[tn_value_producer(l->graph, next).id] = 0;
}

/* Everything but the code. TN_ERR_UNSUPPORTED: a HOST instruction runs it. */
static tn_status begin_while(tn_lowerer *l, tn_node node, loop *o) {
    tn_graph *g = l->graph;
    *o = (loop){.node = node,
                .condition = tn_node_region(g, node, 0),
                .body = tn_node_region(g, node, 1),
                .carried = tn_node_input_count(g, node),
                .results = tn_node_output_count(g, node)};
    if (!carried_plain(l, o))
        return TN_ERR_UNSUPPORTED;
    for (uint32_t i = 0; i < o->carried; i++)
        if (!keeps_type(l, tn_node_input(g, node, i), tn_region_arg(g, o->condition, i)))
            return TN_ERR_UNSUPPORTED;
    tn_loop record = {.limit = UINT32_MAX};
    uint32_t counter;
    tn_value limit = tn_while_limit(g, node, &counter);
    if (limit.id && is_outside(g, limit, node) && is_quiet(g, o->condition) && tn_value_rank(g, limit) == 0 &&
        (tn_value_dtype(g, limit) == TN_I64 || tn_value_dtype(g, limit) == TN_I32)) {
        record.counted = true;
        record.limit = tn_lowering_value(l, limit);
        if (record.limit == TN_NO_VIEW)
            return tn_error_status();
        o->condition = (tn_region){0};
        drop_counter(l, o, counter);
    }
    TN_TRY(place_values(l, o, 0));
    TN_TRY(add_loop(l, o, record, &o->index));
    if (o->condition.id)
        TN_TRY(take_args(l, o, o->condition));
    return take_args(l, o, o->body);
}

static tn_status begin_scan(tn_lowerer *l, tn_node node, loop *o) {
    tn_graph *g = l->graph;
    uint32_t inputs = tn_node_input_count(g, node);
    *o = (loop){.node = node,
                .body = tn_node_region(g, node, 0),
                .carried = (uint32_t)tn_attr_int(g, node, "carried"),
                .results = tn_node_output_count(g, node)};
    if (!carried_plain(l, o) || inputs > UINT8_MAX)
        return TN_ERR_UNSUPPORTED;
    for (uint32_t i = o->carried; i < inputs; i++)
        if (!tn_lowering_is_plain(l, tn_node_input(g, node, i)) ||
            !tn_lowering_same_dims(g, tn_region_arg(g, o->body, i), tn_node_input(g, node, i), 1))
            return TN_ERR_UNSUPPORTED;
    tn_dim length = tn_value_dim(g, tn_node_input(g, node, o->carried), 0);
    for (uint32_t i = o->carried + 1; i < inputs; i++)
        TN_TRY(tn_lowering_require(l, node, TN_CHECK_EQUAL, (uint8_t)i, 0, length));
    tn_loop record = {.counted = true, .limit = UINT32_MAX};
    if (!tn_lowering_size(l, length, &record.trips))
        return TN_ERR_MEMORY;
    TN_TRY(place_values(l, o, inputs - o->carried));
    TN_TRY(add_loop(l, o, record, &o->index));
    return take_args(l, o, o->body);
}

static bool is_scan(const tn_lowerer *l, tn_node node) {
    return tn_node_op(l->graph, node)->code == TN_FLOW_SCAN;
}

/* --- loops side by side ----------------------------------------------------------------------------------------------------------- */

/* Whether instructions are kernels and loops of kernels: what a thread can run that shares the frame with others. */
static bool is_pure(const tn_plan *p, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++)
        switch ((tn_instruction_op)p->code.data[i].op) {
        case TN_DO_CALL:
        case TN_DO_ENTER:
        case TN_DO_BRANCH:
        case TN_DO_LOOP: break;
        default: return false;
        }
    return true;
}

/* A fork of code that must not run so is none: what follows it moves up. */
static void take_fork_out(tn_plan *p, uint32_t at) {
    for (uint32_t i = at; i + 1 < p->code.len; i++) {
        tn_instruction in = p->code.data[i + 1];
        in.b -= in.op == TN_DO_BRANCH || in.op == TN_DO_ENTER || in.op == TN_DO_LOOP;
        p->code.data[i] = in;
    }
    p->code.len--;
    p->fork.len--;
}

static tn_status lower_forked(tn_lowerer *l, uint32_t count, const loop *loops) {
    tn_plan *p = l->plan;
    tn_fork fork = {.parts = count};
    uint32_t at = p->code.len, forks = p->fork.len;
    TN_TRY(tn_lowering_emit(l, TN_DO_FORK, forks, 0));
    if (!tn_vec_push(p->heap, &p->fork, fork))
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        fork.start[i] = p->code.len;
        TN_TRY(lower_code(l, &loops[i]));
    }
    fork.start[count] = p->code.data[at].b = p->code.len;
    p->fork.data[forks] = fork;
    if (!is_pure(p, at + 1, p->code.len))
        take_fork_out(p, at);
    return TN_OK;
}

tn_status tn_lower_loops(tn_lowerer *l, uint32_t count, const tn_node *nodes) {
    loop loops[TN_FORK_MOST];
    uint32_t have = 0;
    for (uint32_t i = 0; i < count; i++) {
        tn_status status = (is_scan(l, nodes[i]) ? begin_scan : begin_while)(l, nodes[i], &loops[have]);
        have += status == TN_OK;
        if (status == TN_ERR_UNSUPPORTED)
            status = tn_lower_host(l, nodes[i]);
        TN_TRY(status);
    }
    TN_TRY(tn_lowering_flush(l));
    if (have > 1)
        return lower_forked(l, have, loops);
    return have ? lower_code(l, &loops[0]) : TN_OK;
}

bool tn_lowering_is_loop(const tn_lowerer *l, tn_node node) {
    const tn_op *op = tn_node_op(l->graph, node);
    bool is = op->lowering == TN_LOWER_CONTROL && (op->code == TN_FLOW_SCAN || op->code == TN_FLOW_WHILE);
    for (uint32_t r = 0; r < tn_node_region_count(l->graph, node) && is; r++)
        is = is_quiet(l->graph, tn_node_region(l->graph, node, r));
    return is;
}

/* Whether `reader` reads what a node gives, itself or in its regions. */
static bool needs(const tn_graph *g, tn_node reader, tn_node node) {
    tn_region home = tn_node_parent(g, node);
    for (uint32_t i = 0; i < tn_node_output_count(g, node); i++)
        for (tn_use u = tn_value_first_use(g, tn_node_output(g, node, i)); u.node.id; u = tn_use_next(g, u)) {
            tn_node n = u.node;
            while (n.id && tn_node_parent(g, n).id != home.id)
                n = tn_region_owner(g, tn_node_parent(g, n));
            if (n.id == reader.id)
                return true;
        }
    return false;
}

bool tn_lowering_loop_waits(const tn_lowerer *l, tn_node node, uint32_t count, const tn_node *waiting) {
    enum { FAR = 200 }; /* nodes that are looked at */
    const tn_graph *g = l->graph;
    if (l->options->level < 1 || count + 1 >= TN_FORK_MOST || !tn_lowering_is_loop(l, node))
        return false;
    int looked = 0;
    for (tn_node n = tn_node_next(g, node); n.id && looked < FAR; n = tn_node_next(g, n), looked++) {
        if (!l->needed[n.id])
            continue;
        bool needed = needs(g, n, node);
        for (uint32_t i = 0; i < count; i++)
            needed = needed || needs(g, n, waiting[i]);
        if (needed)
            return false;
        if (tn_lowering_is_loop(l, n))
            return true;
    }
    return false;
}
