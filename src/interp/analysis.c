/* Which nodes are run for the values asked for, and after which node each value is freed. */
#include <inttypes.h>

#include "interp/internal.h"

tn_region tn_interp_home(const tn_graph *g, tn_value value) {
    tn_node producer = tn_value_producer(g, value);
    return producer.id ? tn_node_parent(g, producer) : (tn_region){g->value.data[value.id].region};
}

/* --- what is needed ------------------------------------------------------------------------------------------------------------- */

typedef struct marking {
    tn_interp_plan *plan;
    const uint8_t *fed; /* by value */
    uint8_t *effects;   /* by region that is a function's: running it has effects */
    tn_u32_vec todo;
} marking;

static tn_status mark(marking *m, tn_node node) {
    if (!node.id || !tn_node_op(m->plan->graph, node) || m->plan->needed[node.id])
        return TN_OK;
    m->plan->needed[node.id] = 1;
    return tn_vec_push(m->plan->heap, &m->todo, node.id) ? TN_OK : tn_error_status();
}

static tn_status mark_value(marking *m, tn_value value) {
    return value.id && !m->fed[value.id] ? mark(m, tn_value_producer(m->plan->graph, value)) : TN_OK;
}

/* The function's region that a call runs; null for other nodes. */
static tn_region callee(const tn_graph *g, tn_node node) {
    if (!tn_node_has_trait(g, node, TN_CALL))
        return (tn_region){0};
    return tn_graph_function_region(g, (uint32_t)tn_attr_int(g, node, "callee"));
}

typedef struct symbol_marking {
    marking *m;
    tn_status status;
} symbol_marking;

/* A size that data decide is known once the value that defines it was computed. */
static void mark_symbol(void *ctx, uint32_t symbol) {
    symbol_marking *s = ctx;
    const tn_graph *g = s->m->plan->graph;
    tn_value definer = {symbol < g->symbol_value.len ? g->symbol_value.data[symbol] : 0};
    if (s->status == TN_OK && tn_value_is_alive(g, definer))
        s->status = mark_value(s->m, definer);
}

static tn_status mark_sizes(marking *m, tn_node node) {
    const tn_graph *g = m->plan->graph;
    symbol_marking s = {m, TN_OK};
    for (uint32_t i = 0; i < tn_node_attr_count(g, node); i++) {
        const tn_attr *a = tn_node_attr_at(g, node, i);
        for (uint32_t d = 0; a->kind == TN_ATTR_DIMS && d < a->count; d++)
            tn_dim_symbols(&g->dims, a->as.dims[d], mark_symbol, &s);
    }
    return s.status;
}

static tn_status mark_needs(marking *m) {
    const tn_graph *g = m->plan->graph;
    while (m->todo.len) {
        tn_node node = {m->todo.data[--m->todo.len]};
        for (uint32_t i = 0; i < tn_node_input_count(g, node); i++)
            TN_TRY(mark_value(m, tn_node_input(g, node, i)));
        TN_TRY(mark_sizes(m, node));
        for (uint32_t i = 0; i < tn_node_control_count(g, node); i++)
            TN_TRY(mark(m, tn_node_control(g, node, i)));
        for (uint32_t i = 0; i < tn_node_region_count(g, node); i++)
            TN_TRY(mark(m, tn_region_last(g, tn_node_region(g, node, i))));
        tn_region function = callee(g, node);
        if (function.id)
            TN_TRY(mark(m, tn_region_last(g, function)));
    }
    return TN_OK;
}

/* Whether a node stands outside of `only` and of functions. */
static bool stands_aside(const tn_graph *g, tn_node node, tn_node only) {
    for (;;) {
        if (node.id == only.id)
            return false;
        tn_region region = tn_node_parent(g, node);
        if (region.id == g->main_region)
            return true;
        node = tn_region_owner(g, region);
        if (!node.id)
            return false; /* in a function */
    }
}

/* Marks nodes with effects, and what contains them up to the main region (with `only`: those in it and in functions). */
static tn_status mark_effects(marking *m, tn_node only) {
    const tn_graph *g = m->plan->graph;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t id = 1; id < g->node.len; id++) {
            tn_node node = {id};
            if (m->plan->needed[id] || !tn_node_op(g, node))
                continue;
            if (!tn_node_has_trait(g, node, TN_EFFECT) && !m->effects[callee(g, node).id])
                continue;
            if (only.id && stands_aside(g, node, only))
                continue;
            while (node.id) {
                TN_TRY(mark(m, node));
                tn_region region = tn_node_parent(g, node);
                node = tn_region_owner(g, region);
                if (!node.id && region.id != g->main_region && !m->effects[region.id])
                    m->effects[region.id] = changed = true;
            }
        }
    }
    return TN_OK;
}

/* --- where values live -------------------------------------------------------------------------------------------------------------- */

/* The node of the value's own region inside which `node` reads it; null when it cannot be read there. */
static tn_node lift(const tn_graph *g, tn_node node, tn_value value) {
    tn_region home = tn_interp_home(g, value);
    while (node.id && tn_node_parent(g, node).id != home.id)
        node = tn_region_owner(g, tn_node_parent(g, node));
    return node;
}

static void give_slot(tn_interp_plan *p, tn_region root, tn_value value) {
    if (!p->slot[value.id])
        p->slot[value.id] = ++p->slots[root.id];
}

static tn_status visit_region(tn_interp_plan *p, tn_region region, tn_region root, int depth);

static tn_status visit_node(tn_interp_plan *p, tn_node node, tn_region root, int depth) {
    const tn_graph *g = p->graph;
    for (uint32_t i = 0; i < tn_node_region_count(g, node); i++)
        TN_TRY(visit_region(p, tn_node_region(g, node, i), root, depth + 1));
    for (uint32_t i = 0; i < tn_node_output_count(g, node); i++)
        give_slot(p, root, tn_node_output(g, node, i));
    for (uint32_t i = 0; i < tn_node_input_count(g, node); i++) {
        tn_value value = tn_node_input(g, node, i);
        if (!value.id)
            continue;
        p->last[value.id] = lift(g, node, value).id;
        if (!p->last[value.id]) {
            tn_fail(TN_ERR_MODEL, "input %" PRIu32 " of %s is a value that it cannot see", i, tn_node_op_name(g, node));
            tn_fail_at_node(g, node);
            return TN_ERR_MODEL;
        }
    }
    return TN_OK;
}

static tn_status visit_region(tn_interp_plan *p, tn_region region, tn_region root, int depth) {
    const tn_graph *g = p->graph;
    if (depth > TN_MAX_NESTING)
        return tn_fail(TN_ERR_LIMIT, "regions nested deeper than %d", TN_MAX_NESTING);
    for (uint32_t i = 0; i < tn_region_arg_count(g, region); i++)
        give_slot(p, root, tn_region_arg(g, region, i));
    for (tn_node node = tn_region_first(g, region); node.id; node = tn_node_next(g, node))
        if (p->needed[node.id])
            TN_TRY(visit_node(p, node, root, depth));
    return TN_OK;
}

/* After which node a value is freed: its last user, or its producer when it has none. */
static uint32_t freed_after(const tn_interp_plan *p, uint32_t value) {
    if (!p->slot[value] || p->pinned[value])
        return 0;
    if (p->last[value])
        return p->last[value];
    tn_node producer = tn_value_producer(p->graph, (tn_value){value});
    return producer.id && p->needed[producer.id] ? producer.id : 0;
}

static void list_frees(tn_interp_plan *p) {
    const tn_graph *g = p->graph;
    for (uint32_t v = 1; v < g->value.len; v++) {
        uint32_t node = freed_after(p, v);
        if (node)
            p->free_first[node]++;
    }
    /* counts become ends, then, filling backwards, beginnings */
    for (uint32_t n = 1; n < g->node.len; n++)
        p->free_first[n] += p->free_first[n - 1];
    p->free_first[g->node.len] = p->free_first[g->node.len - 1];
    for (uint32_t v = g->value.len; v-- > 1;) {
        uint32_t node = freed_after(p, v);
        if (node)
            p->frees[--p->free_first[node]] = v;
    }
}

/* --- the whole ------------------------------------------------------------------------------------------------------------------------ */

static tn_status make(tn_interp_plan *p, marking *m, uint8_t *fed, uint32_t n_fed, const tn_value *fed_values,
                      bool whole, tn_node only, uint32_t n_out, const tn_value *out) {
    const tn_graph *g = p->graph;
    tn_region main = {g->main_region};
    for (uint32_t i = 0; i < n_fed; i++) {
        fed[fed_values[i].id] = 1;
        give_slot(p, main, fed_values[i]);
    }
    if (only.id) {
        TN_TRY(mark(m, only));
        TN_TRY(mark_needs(m));
    }
    TN_TRY(mark_effects(m, only));
    if (whole)
        TN_TRY(mark(m, tn_region_last(g, main)));
    for (uint32_t i = 0; i < n_out; i++)
        TN_TRY(mark_value(m, out[i]));
    TN_TRY(mark_needs(m));
    TN_TRY(only.id ? visit_node(p, only, main, 0) : visit_region(p, main, main, 0));
    for (uint32_t f = 0; f < g->function.len; f++) {
        tn_region region = {g->function.data[f].region};
        if (p->needed[tn_region_last(g, region).id])
            TN_TRY(visit_region(p, region, region, 0));
    }
    for (uint32_t i = 0; i < n_out; i++) {
        p->pinned[out[i].id] = 1;
        give_slot(p, main, out[i]); /* an output that nothing else reads */
    }
    list_frees(p);
    return TN_OK;
}

tn_status tn_interp_plan_make(tn_interp_plan *p, const tn_graph *g, tn_heap *heap, uint32_t n_fed,
                              const tn_value *fed_values, bool whole, tn_node only, uint32_t n_out,
                              const tn_value *out) {
    *p = (tn_interp_plan){.graph = g, .heap = heap};
    uint32_t nodes = g->node.len, values = g->value.len, regions = g->region.len;
    p->needed = tn_alloc(heap, nodes);
    p->pinned = tn_alloc(heap, values);
    p->slot = tn_alloc_array(heap, values, sizeof *p->slot);
    p->last = tn_alloc_array(heap, values, sizeof *p->last);
    p->free_first = tn_alloc_array(heap, (size_t)nodes + 1, sizeof *p->free_first);
    p->frees = tn_alloc_array(heap, values, sizeof *p->frees);
    p->slots = tn_alloc_array(heap, regions, sizeof *p->slots);
    p->definition = tn_alloc_array(heap, nodes, sizeof *p->definition);
    uint8_t *fed = tn_alloc(heap, values);
    marking m = {.plan = p, .fed = fed, .effects = tn_alloc(heap, regions)};
    tn_status status = TN_OK;
    if (!p->needed || !p->pinned || !p->slot || !p->last || !p->free_first || !p->frees || !p->slots ||
        !p->definition || !fed || !m.effects)
        status = tn_error_status();
    if (status == TN_OK)
        status = make(p, &m, fed, n_fed, fed_values, whole, only, n_out, out);
    tn_vec_free(heap, &m.todo);
    tn_free(heap, m.effects);
    tn_free(heap, fed);
    if (status != TN_OK)
        tn_interp_plan_free(p);
    return status;
}

void tn_interp_plan_free(tn_interp_plan *p) {
    tn_free(p->heap, p->needed);
    tn_free(p->heap, p->pinned);
    tn_free(p->heap, p->slot);
    tn_free(p->heap, p->last);
    tn_free(p->heap, p->free_first);
    tn_free(p->heap, p->frees);
    tn_free(p->heap, p->slots);
    tn_free(p->heap, p->definition);
    *p = (tn_interp_plan){0};
}
