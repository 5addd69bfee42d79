/* The verifier's rules about order and scope: values, symbols and control inputs are defined before they are used, where they
   can be seen; functions call each other without a cycle. */
#include "ir/verify.h"

/* --- rule 14: symbols -------------------------------------------------------------------------------------------------------------- */

static void note_symbol(void *ctx, uint32_t symbol) {
    tn_verifier *v = ctx;
    if (tn_vec_push(v->g->heap, &v->symbols, symbol))
        v->symbol_depth[symbol]++;
    else
        v->out_of_memory = true;
}

typedef struct search {
    const tn_verifier *v;
    uint32_t missing; /* symbol + 1 */
} search;

static void find_missing(void *ctx, uint32_t symbol) {
    search *s = ctx;
    if (!s->v->symbol_depth[symbol])
        s->missing = symbol + 1;
}

/* The symbols of `dim` are in scope until the region ends: they need not be looked for again. Expressions can be large, and many
   values can share one. */
static tn_status note_good(tn_verifier *v, tn_dim dim) {
    if (!tn_vec_push(v->g->heap, &v->dims, dim.id))
        return tn_error_status();
    v->dim_good[dim.id] = 1;
    return TN_OK;
}

static tn_status check_dims(tn_verifier *v, uint32_t node, const char *where, uint32_t count, const tn_dim *dims) {
    search s = {v, 0};
    for (uint32_t i = 0; i < count; i++) {
        if (v->dim_good[dims[i].id])
            continue;
        tn_dim_symbols(&v->g->dims, dims[i], find_missing, &s);
        if (s.missing)
            return tn_rule_broken(v, TN_RULE_SYMBOLS, node,
                                  "%s uses the dimension %s, which no value visible here defines", where,
                                  tn_dim_symbol_name(&v->g->dims, s.missing - 1));
        TN_TRY(note_good(v, dims[i]));
    }
    return TN_OK;
}

/* Dimensions of a type and of its elements: `each` sees them tensor by tensor. */
static tn_status walk_type(tn_verifier *v, uint32_t type, uint32_t node, const char *where,
                           tn_status (*each)(tn_verifier *v, uint32_t node, const char *where, uint32_t count,
                                             const tn_dim *dims)) {
    for (int depth = 0; type && depth <= 2 * TN_MAX_NESTING; depth++) {
        const tn_type_rec *t = &v->g->type.data[type];
        if (t->rank > 0)
            TN_TRY(each(v, node, where, (uint32_t)t->rank, v->g->dim_list.data + t->dims));
        type = t->element;
    }
    return TN_OK;
}

static tn_status use_dims(tn_verifier *v, uint32_t node, const char *where, uint32_t count, const tn_dim *dims) {
    return check_dims(v, node, where, count, dims);
}

/* Of a region's arguments: all symbols are found when the argument is bound. */
static tn_status define_all(tn_verifier *v, uint32_t node, const char *where, uint32_t count, const tn_dim *dims) {
    (void)node, (void)where;
    for (uint32_t i = 0; i < count; i++) {
        if (v->dim_good[dims[i].id])
            continue;
        tn_dim_symbols(&v->g->dims, dims[i], note_symbol, v);
        TN_TRY(note_good(v, dims[i]));
    }
    return v->out_of_memory ? tn_error_status() : TN_OK;
}

/* Of a node's outputs: a size that is a symbol defines it. */
static tn_status define_plain(tn_verifier *v, uint32_t node, const char *where, uint32_t count, const tn_dim *dims) {
    (void)node, (void)where;
    for (uint32_t i = 0; i < count; i++) {
        const tn_dim_expr *e = &v->g->dims.expr.data[dims[i].id];
        if (e->kind != TN_DIM_SYMBOL || v->dim_good[dims[i].id])
            continue;
        note_symbol(v, e->symbol);
        TN_TRY(note_good(v, dims[i]));
    }
    return v->out_of_memory ? tn_error_status() : TN_OK;
}

/* Elements that a value's data define. */
static tn_status define_held(tn_verifier *v, uint32_t value) {
    const tn_graph *g = v->g;
    const tn_value_rec *rec = &g->value.data[value];
    for (int32_t i = 0; i < rec->contents_count; i++) {
        const tn_dim_expr *e = &g->dims.expr.data[g->dim_list.data[rec->contents + (uint32_t)i].id];
        if (e->kind == TN_DIM_SYMBOL && e->symbol < g->symbol_value.len && g->symbol_value.data[e->symbol] == value)
            note_symbol(v, e->symbol);
    }
    return v->out_of_memory ? tn_error_status() : TN_OK;
}

static tn_status check_symbols(tn_verifier *v, uint32_t id) {
    const tn_graph *g = v->g;
    const tn_node_rec *n = &g->node.data[id];
    for (uint32_t i = 0; i < n->attr_count; i++) {
        const tn_attr *a = &n->attrs[i];
        if (a->kind == TN_ATTR_DIMS)
            TN_TRY(check_dims(v, id, a->key, a->count, a->as.dims));
        else if (a->kind == TN_ATTR_TYPE)
            TN_TRY(walk_type(v, a->as.type.id, id, a->key, use_dims));
    }
    for (uint32_t i = 0; i < n->output_count; i++) {
        TN_TRY(walk_type(v, g->value.data[n->outputs + i].type, id, NULL, define_plain));
        TN_TRY(define_held(v, n->outputs + i));
    }
    for (uint32_t i = 0; i < n->output_count; i++)
        TN_TRY(walk_type(v, g->value.data[n->outputs + i].type, id, "the type of an output", use_dims));
    return TN_OK;
}

/* --- rules 10, 11 and 16 ------------------------------------------------------------------------------------------------------------ */

static tn_status make_visible(tn_verifier *v, uint32_t value) {
    if (!tn_vec_push(v->g->heap, &v->values, value))
        return tn_error_status();
    v->serial[value] = ++v->serials;
    return TN_OK;
}

static tn_status check_inputs(const tn_verifier *v, uint32_t id, uint32_t closed) {
    const tn_graph *g = v->g;
    const tn_node_rec *n = &g->node.data[id];
    for (uint32_t i = 0; i < n->input_count; i++) {
        uint32_t value = g->operand.data[n->inputs + i].value;
        if (!value)
            continue;
        uint32_t serial = v->serial[value] & ~TN_SERIAL_ENDED;
        if (serial == 0)
            return tn_rule_broken(v, TN_RULE_ORDER, id, "input %u is not defined before this node", i);
        if (serial <= closed)
            return tn_rule_broken(v, TN_RULE_CLOSED, id, "input %u is defined outside of a closed region", i);
        if (v->serial[value] & TN_SERIAL_ENDED)
            return tn_rule_broken(v, TN_RULE_ORDER, id, "input %u is defined in a region that is not around this node",
                                  i);
    }
    return TN_OK;
}

static tn_status check_control(const tn_verifier *v, uint32_t id) {
    const tn_graph *g = v->g;
    const tn_node_rec *n = &g->node.data[id];
    for (uint32_t i = 0; i < n->control_count; i++) {
        const tn_node_rec *before = &g->node.data[g->control_list.data[n->control + i]];
        if (!before->op)
            return tn_rule_broken(v, TN_RULE_CONTROL, id, "control input %u is a removed node", i);
        if (before->region != n->region || before->order >= n->order)
            return tn_rule_broken(v, TN_RULE_CONTROL, id,
                                  "control input %u does not stand before this node in its region", i);
    }
    return TN_OK;
}

/* `closed`: values of this serial and before are out of reach. */
static tn_status scope_region(tn_verifier *v, uint32_t region, uint32_t closed) {
    const tn_graph *g = v->g;
    const tn_region_rec *r = &g->region.data[region];
    uint32_t values = v->values.len, symbols = v->symbols.len, dims = v->dims.len;
    for (uint32_t i = 0; i < r->args.len; i++) {
        TN_TRY(make_visible(v, r->args.data[i]));
        TN_TRY(walk_type(v, g->value.data[r->args.data[i]].type, 0, NULL, define_all));
        TN_TRY(define_held(v, r->args.data[i]));
    }
    for (uint32_t id = r->first; id; id = g->node.data[id].next) {
        const tn_node_rec *n = &g->node.data[id];
        bool open = (n->op->traits & TN_CONTROL) || n->op->dialect == TN_DIALECT_ONNX;
        TN_TRY(check_inputs(v, id, closed));
        TN_TRY(check_control(v, id));
        for (uint32_t i = 0; i < n->region_count; i++)
            TN_TRY(scope_region(v, g->region_list.data[n->regions + i], open ? closed : v->serials));
        TN_TRY(check_symbols(v, id));
        for (uint32_t i = 0; i < n->output_count; i++)
            TN_TRY(make_visible(v, n->outputs + i));
    }
    while (v->values.len > values)
        v->serial[v->values.data[--v->values.len]] |= TN_SERIAL_ENDED;
    while (v->symbols.len > symbols)
        v->symbol_depth[v->symbols.data[--v->symbols.len]]--;
    while (v->dims.len > dims)
        v->dim_good[v->dims.data[--v->dims.len]] = 0;
    return TN_OK;
}

tn_status tn_verify_scopes(tn_verifier *v) {
    const tn_graph *g = v->g;
    TN_TRY(scope_region(v, g->main_region, 0));
    for (uint32_t i = 0; i < g->function.len; i++) /* closed to what main and the functions before define */
        TN_TRY(scope_region(v, g->function.data[i].region, v->serials));
    return TN_OK;
}

/* --- rule 12: functions ---------------------------------------------------------------------------------------------------------------- */

typedef struct call_walk {
    tn_verifier *v;
    uint8_t *state; /* by function: 0 new, 1 being walked, 2 done */
    tn_u32_vec stack;
} call_walk;

/* Pushes the functions that a region calls and that are not done; one being walked is a cycle. */
static tn_status push_callees(call_walk *w, uint32_t region) {
    const tn_graph *g = w->v->g;
    for (uint32_t id = g->region.data[region].first; id; id = g->node.data[id].next) {
        const tn_node_rec *n = &g->node.data[id];
        for (uint32_t i = 0; i < n->attr_count; i++) {
            if (n->attrs[i].kind != TN_ATTR_FUNCTION)
                continue;
            uint32_t callee = (uint32_t)n->attrs[i].as.i;
            if (w->state[callee] == 1)
                return tn_rule_broken(w->v, TN_RULE_FUNCTIONS, id,
                                      "function '%s' calls itself, directly or through others",
                                      tn_strings_text(&g->strings, g->function.data[callee].name));
            if (w->state[callee] == 0 && !tn_vec_push(g->heap, &w->stack, callee))
                return tn_error_status();
        }
        for (uint32_t i = 0; i < n->region_count; i++)
            TN_TRY(push_callees(w, g->region_list.data[n->regions + i]));
    }
    return TN_OK;
}

static tn_status walk_calls(call_walk *w) {
    const tn_graph *g = w->v->g;
    for (uint32_t i = 0; i < g->function.len; i++) {
        if (!tn_vec_push(g->heap, &w->stack, i))
            return tn_error_status();
        while (w->stack.len) {
            uint32_t f = w->stack.data[w->stack.len - 1];
            if (w->state[f]) { /* its callees are done, or it was pushed twice */
                w->state[f] = 2;
                w->stack.len--;
                continue;
            }
            w->state[f] = 1;
            TN_TRY(push_callees(w, g->function.data[f].region));
        }
    }
    return TN_OK;
}

tn_status tn_verify_functions(tn_verifier *v) {
    const tn_graph *g = v->g;
    tn_map names = {0};
    tn_status named = TN_OK;
    for (uint32_t i = 0; i < g->function.len && named == TN_OK; i++) {
        uint32_t name = g->function.data[i].name;
        if (!name)
            named = tn_rule_broken(v, TN_RULE_FUNCTIONS, 0, "function %u has no name", i);
        else if (tn_map_get(&names, name, NULL))
            named = tn_rule_broken(v, TN_RULE_FUNCTIONS, 0, "two functions are called '%s'",
                                   tn_strings_text(&g->strings, name));
        else if (!tn_map_put(g->heap, &names, name, 1))
            named = tn_error_status();
    }
    tn_map_free(g->heap, &names);
    TN_TRY(named);
    call_walk w = {.v = v, .state = tn_alloc(g->heap, g->function.len)};
    tn_status status = w.state ? walk_calls(&w) : tn_error_status();
    tn_free(g->heap, w.state);
    tn_vec_free(g->heap, &w.stack);
    return status;
}
