/* Removes what nothing needs: pure nodes, and results, loop values and stacked outputs of if, while and scan.

   Needed are the results of the main region and of functions, nodes with effects, and what they are made from; also what gives a
   symbol its value that a needed shape mentions. */
#include "ops/control.h"
#include "passes/pass.h"

#define IS_NODE ((uint32_t)1 << 31) /* in the list of what is to be visited; values without it */

typedef struct marker {
    tn_graph *g;
    tn_purity purity;
    uint8_t *node, *value; /* needed; by id */
    uint32_t *definer;     /* by symbol: the value that defines it, 0 none */
    uint32_t symbols;
    tn_u32_vec todo;
    bool failed; /* out of memory */
    bool whole;  /* control flow is needed with all its results or not at all */
    uint64_t sites;
} marker;

/* --- marking ----------------------------------------------------------------------------------------------------------------------- */

static void push(marker *m, uint32_t item) {
    if (!tn_vec_push(m->g->heap, &m->todo, item))
        m->failed = true;
}

static void need_value(marker *m, tn_value v) {
    if (v.id && !m->value[v.id]) {
        m->value[v.id] = 1;
        push(m, v.id);
    }
}

static void need_node(marker *m, tn_node n) {
    if (n.id && !m->node[n.id]) {
        m->node[n.id] = 1;
        push(m, n.id | IS_NODE);
    }
}

static void need_symbol(void *ctx, uint32_t symbol) {
    marker *m = ctx;
    if (symbol < m->symbols)
        need_value(m, (tn_value){m->definer[symbol]});
}

static void need_dims(marker *m, uint32_t count, const tn_dim *dims) {
    for (uint32_t i = 0; i < count; i++)
        tn_dim_symbols(&m->g->dims, dims[i], need_symbol, m);
}

static void need_type(marker *m, tn_type type) {
    for (int depth = 0; type.id && depth <= 2 * TN_MAX_NESTING; depth++) {
        int rank = tn_type_rank(m->g, type);
        if (rank > 0)
            need_dims(m, (uint32_t)rank, tn_type_dims(m->g, type));
        type = tn_type_element(m->g, type);
    }
}

static void need_inputs(marker *m, tn_node n) {
    for (uint32_t i = 0; i < tn_node_input_count(m->g, n); i++)
        need_value(m, tn_node_input(m->g, n, i));
}

static void need_outputs(marker *m, tn_node n) {
    for (uint32_t i = 0; i < tn_node_output_count(m->g, n); i++)
        need_value(m, tn_node_output(m->g, n, i));
}

static void need_results(marker *m, tn_region r) {
    for (uint32_t i = 0; i < tn_region_result_count(m->g, r); i++)
        need_value(m, tn_region_result(m->g, r, i));
}

/* Whether results and loop values of the node can be taken away one by one. */
static tn_control_kind divisible(const marker *m, tn_node n) {
    tn_control_kind kind = tn_node_control_kind(m->g, n);
    bool apart = !m->whole && !tn_purity_is_ordered(&m->purity, m->g, n);
    return kind != TN_CONTROL_NONE && !apart ? TN_CONTROL_OTHER : kind;
}

/* One scanned value at least gives the number of trips; those that may be of another length end the run if they are. */
static void need_scanned(marker *m, tn_node n) {
    tn_graph *g = m->g;
    uint32_t first = (uint32_t)tn_attr_int(g, n, "carried");
    for (uint32_t i = first; i < tn_node_input_count(g, n); i++) {
        tn_value a = tn_node_input(g, n, first), b = tn_node_input(g, n, i);
        bool same = i > first && tn_value_rank(g, a) > 0 && tn_value_rank(g, b) > 0 &&
                    tn_dim_equal(g, tn_value_dim(g, a, 0), tn_value_dim(g, b, 0));
        if (!same)
            need_value(m, tn_region_arg(g, tn_node_region(g, n, 0), i));
    }
}

static void visit_node(marker *m, tn_node n) {
    tn_graph *g = m->g;
    for (uint32_t i = 0; i < tn_node_attr_count(g, n); i++) {
        const tn_attr *a = tn_node_attr_at(g, n, i);
        if (a->kind == TN_ATTR_DIMS)
            need_dims(m, a->count, a->as.dims);
        else if (a->kind == TN_ATTR_TYPE)
            need_type(m, a->as.type);
    }
    for (uint32_t i = 0; i < tn_node_control_count(g, n); i++)
        need_node(m, tn_node_control(g, n, i));
    need_node(m, tn_region_owner(g, tn_node_parent(g, n)));
    switch (divisible(m, n)) {
    case TN_CONTROL_NONE: need_inputs(m, n); break;
    case TN_CONTROL_IF: need_value(m, tn_node_input(g, n, 0)); return;
    case TN_CONTROL_WHILE: need_value(m, tn_region_result(g, tn_node_region(g, n, 0), 0)); return;
    case TN_CONTROL_SCAN: /* one scanned value at least gives the number of trips */ need_scanned(m, n); return;
    case TN_CONTROL_OTHER:
        need_inputs(m, n);
        for (uint32_t i = 0; i < tn_node_region_count(g, n); i++) {
            tn_region r = tn_node_region(g, n, i);
            need_results(m, r);
            for (uint32_t k = 0; k < tn_region_arg_count(g, r); k++)
                need_value(m, tn_region_arg(g, r, k));
        }
        break;
    }
    need_outputs(m, n); /* they stay, so what their types mention must */
}

/* Loop value i of a while or scan: its start and what a trip makes of it. */
static void need_carried(marker *m, tn_node loop, tn_control_kind kind, uint32_t i) {
    need_value(m, tn_node_input(m->g, loop, i));
    need_value(m, tn_region_result(m->g, tn_node_region(m->g, loop, kind == TN_CONTROL_WHILE), i));
}

static uint32_t carried_count(const tn_graph *g, tn_node loop, tn_control_kind kind) {
    return kind == TN_CONTROL_WHILE ? tn_node_input_count(g, loop) : (uint32_t)tn_attr_int(g, loop, "carried");
}

static void visit_value(marker *m, tn_value v) {
    tn_graph *g = m->g;
    need_type(m, tn_value_type(g, v));
    const tn_value_rec rec = g->value.data[v.id];
    if (rec.producer) {
        tn_node n = {rec.producer};
        need_node(m, n);
        tn_control_kind kind = divisible(m, n);
        if (kind == TN_CONTROL_IF)
            for (uint32_t r = 0; r < 2; r++)
                need_value(m, tn_region_result(g, tn_node_region(g, n, r), rec.index));
        if (kind == TN_CONTROL_WHILE || kind == TN_CONTROL_SCAN) {
            if (rec.index < carried_count(g, n, kind))
                need_carried(m, n, kind, rec.index);
            else
                need_value(m, tn_region_result(g, tn_node_region(g, n, kind == TN_CONTROL_WHILE), rec.index));
        }
        return;
    }
    tn_node owner = tn_region_owner(g, (tn_region){rec.region});
    if (!owner.id)
        return;
    need_node(m, owner);
    tn_control_kind kind = divisible(m, owner);
    if ((kind == TN_CONTROL_WHILE || kind == TN_CONTROL_SCAN) && rec.index < carried_count(g, owner, kind))
        need_carried(m, owner, kind, rec.index);
    else if (kind == TN_CONTROL_SCAN)
        need_value(m, tn_node_input(g, owner, rec.index));
}

static void define_symbols(marker *m, tn_value v) {
    int rank = tn_value_rank(m->g, v);
    for (int i = 0; i < rank; i++) {
        const tn_dim_expr *e = &m->g->dims.expr.data[tn_value_dims(m->g, v)[i].id];
        if (e->kind == TN_DIM_SYMBOL && !m->definer[e->symbol])
            m->definer[e->symbol] = v.id;
    }
}

/* Roots; and definers of symbols whose recorded one is dead. */
static void walk(marker *m, tn_region r, int depth) {
    tn_graph *g = m->g;
    for (uint32_t i = 0; i < tn_region_arg_count(g, r); i++)
        define_symbols(m, tn_region_arg(g, r, i));
    for (tn_node n = tn_region_first(g, r); n.id; n = tn_node_next(g, n)) {
        const tn_op *op = tn_node_op(g, n);
        bool call = (op->traits & TN_CALL) && (tn_purity_traits(&m->purity, g, n) & TN_EFFECT);
        if ((op->traits & TN_EFFECT) || call)
            need_node(m, n);
        for (uint32_t i = 0; i < tn_node_region_count(g, n) && depth < 2 * TN_MAX_NESTING; i++)
            walk(m, tn_node_region(g, n, i), depth + 1);
        for (uint32_t i = 0; i < tn_node_output_count(g, n); i++)
            define_symbols(m, tn_node_output(g, n, i));
    }
}

static tn_status mark(marker *m) {
    tn_graph *g = m->g;
    for (uint32_t s = 0; s < m->symbols && s < g->symbol_value.len; s++)
        if (tn_value_is_alive(g, (tn_value){g->symbol_value.data[s]}))
            m->definer[s] = g->symbol_value.data[s];
    walk(m, tn_graph_region(g), 0);
    need_results(m, tn_graph_region(g));
    for (uint32_t i = 0; i < g->function.len; i++) {
        walk(m, tn_graph_function_region(g, i), 0);
        need_results(m, tn_graph_function_region(g, i));
    }
    while (m->todo.len && !m->failed) {
        uint32_t item = m->todo.data[--m->todo.len];
        if (item & IS_NODE)
            visit_node(m, (tn_node){item & ~IS_NODE});
        else
            visit_value(m, (tn_value){item});
    }
    return m->failed ? tn_error_status() : TN_OK;
}

/* --- removing ---------------------------------------------------------------------------------------------------------------------- */

static tn_status sweep(marker *m, tn_region r);

static bool value_needed(const marker *m, tn_value v) {
    return v.id < m->g->value.len && m->value[v.id];
}

/* Which outputs of an if, while or scan stay. */
static void kept_outputs(const marker *m, tn_node n, tn_control_kind kind, uint8_t *keep) {
    const tn_graph *g = m->g;
    uint32_t carried = kind == TN_CONTROL_IF ? 0 : carried_count(g, n, kind);
    for (uint32_t i = 0; i < tn_node_output_count(g, n); i++) {
        keep[i] = value_needed(m, tn_node_output(g, n, i));
        for (uint32_t r = 0; i < carried && r < tn_node_region_count(g, n); r++)
            keep[i] = keep[i] || value_needed(m, tn_region_arg(g, tn_node_region(g, n, r), i));
    }
}

/* The region returns only results that are kept. */
static tn_status shrink_return(tn_graph *g, tn_region r, const uint8_t *keep, tn_value *scratch) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < tn_region_result_count(g, r); i++)
        if (keep[i])
            scratch[count++] = tn_region_result(g, r, i);
    return count == tn_region_result_count(g, r) ? TN_OK : tn_region_return(g, r, count, scratch);
}

/* What a loop says of its stacked outputs, for those that stay; in place of `list`. */
static uint32_t kept_rows(const int64_t *rows, uint32_t count, uint32_t stacked, const uint8_t *keep, int64_t *list) {
    uint32_t n = 0;
    for (uint32_t j = 0; j < stacked; j++) {
        uint32_t at = tn_loop_row(rows, count, j), end = tn_loop_row(rows, count, j + 1);
        if (keep[j])
            memcpy(list + n, rows + at, (end - at) * sizeof *list);
        n += keep[j] ? end - at : 0;
    }
    return n;
}

/* The node anew with fewer inputs and outputs; its regions, already shrunk, are handed over. `was_carried`: of its outputs. */
static tn_status rebuild(marker *m, tn_node n, const uint8_t *keep, uint32_t n_inputs, const tn_value *inputs,
                         uint32_t was_carried, int64_t carried) {
    tn_graph *g = m->g;
    uint32_t outputs = tn_node_output_count(g, n), regions = tn_node_region_count(g, n), kept = 0;
    tn_type *types = tn_alloc_array(g->heap, outputs, sizeof *types);
    if (!types)
        return tn_error_status();
    for (uint32_t i = 0; i < outputs; i++)
        if (keep[i])
            types[kept++] = tn_value_type(g, tn_node_output(g, n, i));
    tn_region region[2] = {tn_node_region(g, n, 0), tn_node_region(g, n, 1)};
    const int64_t *rows;
    uint32_t row_count = tn_attr_ints(g, n, TN_LOOP_ROWS, &rows), attrs = 0;
    int64_t *row_list = tn_alloc_array(g->heap, row_count, sizeof *row_list);
    if (!row_list) {
        tn_free(g->heap, types);
        return tn_error_status();
    }
    tn_attr attr[2];
    if (carried >= 0)
        attr[attrs++] = TN_A_INT("carried", carried);
    uint32_t row_kept = row_count ? kept_rows(rows, row_count, outputs - was_carried, keep + was_carried, row_list) : 0;
    if (row_kept)
        attr[attrs++] = TN_A_INTS(TN_LOOP_ROWS, row_kept, row_list);
    tn_status status = tn_node_release_regions(g, n);
    tn_place place = tn_place_enter(g, n);
    tn_node made = {0};
    if (status == TN_OK) {
        made = tn_graph_add_node_typed(g,
                                       &(tn_node_desc){.op = tn_node_op(g, n),
                                                       .name = tn_node_name(g, n),
                                                       .input_count = n_inputs,
                                                       .inputs = inputs,
                                                       .output_count = kept,
                                                       .attr_count = attrs,
                                                       .attrs = attr,
                                                       .region_count = regions,
                                                       .regions = region},
                                       types);
        status = made.id ? TN_OK : tn_graph_check(g);
    }
    tn_place_leave(g, place);
    tn_free(g->heap, types);
    tn_free(g->heap, row_list);
    TN_TRY(status);
    g->node.data[made.id].placement = g->node.data[n.id].placement;
    for (uint32_t i = 0, k = 0; i < outputs; i++) {
        if (!keep[i])
            continue;
        tn_value old = tn_node_output(g, n, i), now = tn_node_output(g, made, k++);
        TN_TRY(tn_value_set_name(g, now, tn_value_name(g, old)));
        TN_TRY(tn_value_replace_uses(g, old, now));
    }
    TN_TRY(tn_node_remove(g, n));
    for (uint32_t k = 0; k < kept; k++)
        TN_TRY(tn_value_note_symbols(g, tn_node_output(g, made, k)));
    return TN_OK;
}

static tn_status shrink(marker *m, tn_node n, tn_control_kind kind, uint8_t *keep, tn_value *scratch) {
    tn_graph *g = m->g;
    uint32_t outputs = tn_node_output_count(g, n), inputs = tn_node_input_count(g, n),
             regions = tn_node_region_count(g, n);
    uint32_t carried = kind == TN_CONTROL_IF ? 0 : carried_count(g, n, kind), dropped = 0, kept_carried = 0,
             kept_inputs = 0;
    kept_outputs(m, n, kind, keep);
    for (uint32_t r = kind == TN_CONTROL_WHILE; r < regions; r++)
        TN_TRY(shrink_return(g, tn_node_region(g, n, r), keep, scratch));
    for (uint32_t r = 0; r < regions; r++)
        TN_TRY(sweep(m, tn_node_region(g, n, r)));
    for (uint32_t i = 0; i < outputs; i++)
        dropped += !keep[i];
    for (uint32_t i = 0; i < inputs; i++) {
        bool stays = kind == TN_CONTROL_IF ||
                     (i < carried ? keep[i] != 0 : value_needed(m, tn_region_arg(g, tn_node_region(g, n, 0), i)));
        keep[outputs + i] = stays;
        kept_carried += stays && i < carried;
        if (stays)
            scratch[kept_inputs++] = tn_node_input(g, n, i);
    }
    dropped += inputs - kept_inputs;
    if (!dropped)
        return TN_OK;
    for (uint32_t r = 0; r < regions && kind != TN_CONTROL_IF; r++)
        for (uint32_t i = inputs; i-- > 0;)
            if (!keep[outputs + i])
                TN_TRY(tn_region_remove_arg(g, tn_node_region(g, n, r), i));
    m->sites++;
    return rebuild(m, n, keep, kept_inputs, scratch, carried, kind == TN_CONTROL_SCAN ? (int64_t)kept_carried : -1);
}

static tn_status sweep_control(marker *m, tn_node n, tn_control_kind kind) {
    tn_graph *g = m->g;
    if (kind == TN_CONTROL_OTHER) {
        for (uint32_t i = 0; i < tn_node_region_count(g, n); i++)
            TN_TRY(sweep(m, tn_node_region(g, n, i)));
        return TN_OK;
    }
    size_t room = (size_t)tn_node_output_count(g, n) + tn_node_input_count(g, n);
    uint8_t *keep = tn_alloc(g->heap, room);
    tn_value *scratch = tn_alloc_array(g->heap, room, sizeof *scratch);
    tn_status status = keep && scratch ? shrink(m, n, kind, keep, scratch) : tn_error_status();
    tn_free(g->heap, keep);
    tn_free(g->heap, scratch);
    return status;
}

/* From the end, so that uses are gone before what they use. */
static tn_status sweep(marker *m, tn_region r) {
    tn_graph *g = m->g;
    tn_node previous;
    for (tn_node n = tn_region_last(g, r); n.id; n = previous) {
        previous = tn_node_previous(g, n);
        if (tn_node_has_trait(g, n, TN_TERMINATOR))
            continue;
        if (!m->node[n.id]) {
            m->sites += !tn_node_has_trait(g, n, TN_CONSTANT);
            TN_TRY(tn_node_remove(g, n));
            continue;
        }
        tn_control_kind kind = divisible(m, n);
        if (kind != TN_CONTROL_NONE)
            TN_TRY(sweep_control(m, n, kind));
    }
    return TN_OK;
}

static tn_status sweep_all(marker *m) {
    TN_TRY(sweep(m, tn_graph_region(m->g)));
    for (uint32_t i = 0; i < m->g->function.len; i++)
        TN_TRY(sweep(m, tn_graph_function_region(m->g, i)));
    return TN_OK;
}

static tn_status start(marker *m) {
    tn_graph *g = m->g;
    TN_TRY(tn_purity_init(&m->purity, g));
    m->node = tn_alloc(g->heap, g->node.len);
    m->value = tn_alloc(g->heap, g->value.len);
    m->definer = tn_alloc_array(g->heap, m->symbols, sizeof *m->definer);
    return m->node && m->value && m->definer ? mark(m) : tn_error_status();
}

static void finish(marker *m) {
    tn_heap *heap = m->g->heap;
    tn_vec_free(heap, &m->todo);
    tn_free(heap, m->node);
    tn_free(heap, m->value);
    tn_free(heap, m->definer);
    tn_purity_free(&m->purity);
}

uint8_t *tn_graph_needed_nodes(tn_graph *g) {
    marker m = {.g = g, .symbols = g->dims.symbol.len, .whole = true};
    uint8_t *needed = NULL;
    if (start(&m) == TN_OK) {
        needed = m.node;
        m.node = NULL;
    }
    finish(&m);
    return needed;
}

static tn_status run(tn_graph *g, tn_pass_context *context) {
    marker m = {.g = g, .symbols = g->dims.symbol.len};
    tn_status status = start(&m);
    if (status == TN_OK)
        status = sweep_all(&m);
    for (uint32_t s = 0; status == TN_OK && s < m.symbols && s < g->symbol_value.len; s++) {
        tn_value known = {g->symbol_value.data[s]}, found = {m.definer[s]};
        if (!tn_value_is_alive(g, known) && tn_value_is_alive(g, found))
            g->symbol_value.data[s] = found.id;
    }
    context->sites += m.sites;
    finish(&m);
    return status;
}

const tn_pass tn_pass_dce = {
    .name = "dce",
    .doc = "Removes what nothing needs: nodes, results of branches, loop values. Effects stay.",
    .effect = TN_BIT_EXACT,
    .keeps = TN_KEEPS_ALL,
    .level = 0, /* what is dead is run by no back end at any level: they refuse the same runs */
    .run = run,
};
