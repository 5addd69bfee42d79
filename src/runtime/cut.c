/* A part of a model as a graph of its own: what is fed becomes an input, what is asked for an output. */
#include "base/error.h"
#include "onnx/model.h"
#include "passes/pass.h"
#include "runtime/model.h"

typedef struct cutting {
    tn_graph *g;       /* a clone of the whole */
    tn_value *fetch;   /* in it */
    uint8_t *needed;   /* by node id */
    uint8_t *known;    /* by value id: looked at */
    uint32_t *definer; /* by symbol: a value whose sizes give it its value; 0 none */
    uint32_t symbols;
    tn_u32_vec todo; /* values */
    bool failed;     /* out of memory */
} cutting;

/* Puts an argument in the place of each value that is fed. */
static tn_status feed(cutting *c, const tn_graph *whole, const tn_cut *cut, const uint32_t *map) {
    for (uint32_t i = 0; i < cut->fetches; i++)
        c->fetch[i] = (tn_value){map[cut->fetch[i].id]};
    for (uint32_t i = 0; i < cut->feeds; i++) {
        tn_value v = {map[cut->feed[i].id]};
        tn_value arg =
            tn_region_add_arg(c->g, tn_graph_region(c->g), tn_value_type(c->g, v), tn_value_name(whole, cut->feed[i]));
        if (!arg.id)
            return tn_graph_check(c->g);
        TN_TRY(tn_value_replace_uses(c->g, v, arg));
        for (uint32_t k = 0; k < cut->fetches; k++)
            if (c->fetch[k].id == v.id)
                c->fetch[k] = arg;
    }
    return TN_OK;
}

/* --- what is needed ------------------------------------------------------------------------------------------------------------ */

static void need(cutting *c, tn_value v) {
    if (!v.id || c->known[v.id])
        return;
    c->known[v.id] = 1;
    if (!tn_vec_push(c->g->heap, &c->todo, v.id))
        c->failed = true;
}

static void need_symbol(void *ctx, uint32_t symbol) {
    cutting *c = ctx;
    if (symbol < c->symbols)
        need(c, (tn_value){c->definer[symbol]});
}

static void need_dims(cutting *c, uint32_t count, const tn_dim *dims) {
    for (uint32_t i = 0; i < count; i++)
        tn_dim_symbols(&c->g->dims, dims[i], need_symbol, c);
}

static void need_type(cutting *c, tn_type type) {
    for (int depth = 0; type.id && depth <= 2 * TN_MAX_NESTING; depth++) {
        int rank = tn_type_rank(c->g, type);
        if (rank > 0)
            need_dims(c, (uint32_t)rank, tn_type_dims(c->g, type));
        type = tn_type_element(c->g, type);
    }
}

/* All that a node reads, its regions included; and the sizes that it mentions. */
static void visit_node(cutting *c, tn_node node) {
    tn_graph *g = c->g;
    for (uint32_t i = 0; i < tn_node_input_count(g, node); i++)
        need(c, tn_node_input(g, node, i));
    for (uint32_t i = 0; i < tn_node_output_count(g, node); i++)
        need(c, tn_node_output(g, node, i));
    for (uint32_t i = 0; i < tn_node_attr_count(g, node); i++) {
        const tn_attr *a = tn_node_attr_at(g, node, i);
        if (a->kind == TN_ATTR_DIMS)
            need_dims(c, a->count, a->as.dims);
        else if (a->kind == TN_ATTR_TYPE)
            need_type(c, a->as.type);
    }
    for (uint32_t r = 0; r < tn_node_region_count(g, node); r++) {
        tn_region region = tn_node_region(g, node, r);
        for (uint32_t i = 0; i < tn_region_arg_count(g, region); i++)
            need(c, tn_region_arg(g, region, i));
        for (tn_node n = tn_region_first(g, region); n.id; n = tn_node_next(g, n))
            visit_node(c, n); /* nested at most as deep as a graph may be */
    }
}

/* Marks a value's node, or the node in whose regions it is made. */
static void visit_value(cutting *c, tn_value v) {
    tn_graph *g = c->g;
    need_type(c, tn_value_type(g, v));
    tn_node n = tn_value_producer(g, v);
    tn_region r = n.id ? tn_node_parent(g, n) : (tn_region){g->value.data[v.id].region};
    while (r.id && r.id != tn_graph_region(g).id) {
        n = tn_region_owner(g, r);
        r = n.id ? tn_node_parent(g, n) : (tn_region){0};
    }
    if (!n.id || !r.id || c->needed[n.id])
        return;
    c->needed[n.id] = 1;
    visit_node(c, n);
}

static void define_symbols(cutting *c, tn_value v) {
    for (int i = 0; i < tn_value_rank(c->g, v); i++) {
        const tn_dim_expr *e = &c->g->dims.expr.data[tn_value_dim(c->g, v, i).id];
        if (e->kind == TN_DIM_SYMBOL && e->symbol < c->symbols && !c->definer[e->symbol])
            c->definer[e->symbol] = v.id;
    }
}

/* What gives symbols their values: what is fed, before inputs that would have to be, before what is computed. */
static void find_definers(cutting *c, uint32_t feeds) {
    tn_graph *g = c->g;
    uint32_t inputs = tn_graph_input_count(g);
    for (uint32_t i = inputs - feeds; i < inputs; i++)
        define_symbols(c, tn_graph_input(g, i));
    for (uint32_t i = 0; i < inputs - feeds; i++)
        define_symbols(c, tn_graph_input(g, i));
    for (uint32_t s = 0; s < c->symbols && s < g->symbol_value.len; s++)
        if (!c->definer[s] && tn_value_is_alive(g, (tn_value){g->symbol_value.data[s]}))
            c->definer[s] = g->symbol_value.data[s];
    for (tn_node n = tn_region_first(g, tn_graph_region(g)); n.id; n = tn_node_next(g, n))
        for (uint32_t i = 0; i < tn_node_output_count(g, n); i++)
            define_symbols(c, tn_node_output(g, n, i));
}

/* Removes what the values asked for do not need. */
static tn_status remove_rest(cutting *c, const tn_cut *cut) {
    tn_graph *g = c->g;
    TN_TRY(tn_region_return(g, tn_graph_region(g), cut->fetches, c->fetch));
    g->output_name.len = 0;
    for (uint32_t i = 0; i < cut->fetches; i++) {
        uint32_t name = tn_strings_add(&g->strings, cut->fetch_name[i], strlen(cut->fetch_name[i]));
        if (name == UINT32_MAX || !tn_vec_push(g->heap, &g->output_name, name))
            return TN_ERR_MEMORY;
        need(c, c->fetch[i]);
    }
    find_definers(c, cut->feeds);
    while (c->todo.len && !c->failed)
        visit_value(c, (tn_value){c->todo.data[--c->todo.len]});
    if (c->failed)
        return TN_ERR_MEMORY;
    tn_node last = tn_region_last(g, tn_graph_region(g));
    for (tn_node n = tn_node_previous(g, last), before; n.id; n = before) {
        before = tn_node_previous(g, n);
        if (!c->needed[n.id])
            TN_TRY(tn_node_remove(g, n));
    }
    for (uint32_t i = tn_graph_input_count(g); i-- > 0;)
        if (!c->known[tn_graph_input(g, i).id]) /* one that only gives sizes has no uses */
            TN_TRY(tn_region_remove_arg(g, tn_graph_region(g), i));
    return TN_OK;
}

static bool is_fed(const tn_graph *g, tn_value input, const tn_graph *whole, const tn_cut *cut) {
    for (uint32_t i = 0; i < cut->feeds; i++)
        if (strcmp(tn_value_name(g, input), tn_value_name(whole, cut->feed[i])) == 0)
            return true;
    return false;
}

/* The same with types inferred from what is fed: a size of it need not be what its old producer made it. */
static tn_graph *infer_anew(const tn_graph *g, const tn_graph *whole, const tn_graph *typed, const tn_cut *cut) {
    uint32_t inputs = tn_graph_input_count(g), outputs = cut->fetches;
    tn_graph *n = tn_graph_new(g->heap, g->ops);
    tn_value *values = n ? tn_alloc_array(g->heap, (size_t)inputs + outputs + 1, sizeof *values) : NULL;
    tn_status status = values ? TN_OK : tn_error_status();
    for (uint32_t i = 0; i < inputs && status == TN_OK; i++) {
        tn_value v = tn_graph_input(g, i);
        tn_tensor *given = tn_graph_input_default(g, v);
        bool fed = is_fed(g, v, whole, cut);
        tn_value known =
            fed && typed && !tn_value_type(g, v).id ? tn_graph_find_value(typed, tn_value_name(g, v)) : (tn_value){0};
        tn_type type = known.id ? tn_type_copy(n, typed, tn_value_type(typed, known), true)
                                : tn_type_copy(n, g, tn_value_type(g, v), fed);
        values[i] = tn_region_add_arg(n, tn_graph_region(n), type, tn_value_name(g, v));
        status = values[i].id ? TN_OK : tn_graph_check(n);
        if (status == TN_OK && given)
            status = tn_graph_set_input_default(n, values[i], given);
    }
    if (status == TN_OK)
        status = tn_graph_copy_functions(n, g);
    if (status == TN_OK)
        status = tn_region_copy(n, g, tn_graph_region(g), inputs, values, outputs, values + inputs, NULL, NULL);
    for (uint32_t i = 0; i < outputs && status == TN_OK; i++)
        status = tn_graph_add_output(n, values[inputs + i], cut->fetch_name[i]);
    for (uint32_t i = 0; i < g->metadata.len && status == TN_OK; i++) {
        const tn_metadata *m = &g->metadata.data[i];
        status = tn_graph_set_metadata(n, tn_strings_text(&g->strings, m->key), tn_strings_text(&g->strings, m->value),
                                       tn_strings_length(&g->strings, m->value));
    }
    if (values)
        tn_free(g->heap, values);
    if (status == TN_OK)
        status = tn_graph_check(n);
    if (status == TN_OK)
        return n;
    tn_error_record error;
    tn_error_save(&error);
    tn_graph_destroy(n);
    tn_error_restore(&error);
    return NULL;
}

tn_graph *tn_graph_cut(const tn_graph *whole, const tn_graph *typed, const tn_cut *cut) {
    uint32_t *map;
    cutting c = {.g = tn_graph_clone(whole, &map, NULL)};
    if (!c.g)
        return NULL;
    c.fetch = tn_alloc_array(whole->heap, cut->fetches + 1u, sizeof *c.fetch);
    c.needed = tn_alloc(whole->heap, c.g->node.len + 1u);
    c.known = tn_alloc(whole->heap, (size_t)c.g->value.len + cut->feeds + 1u);
    c.symbols = c.g->dims.symbol.len;
    c.definer = tn_alloc_array(whole->heap, c.symbols + 1u, sizeof *c.definer);
    tn_status status = c.fetch && c.needed && c.known && c.definer ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = tn_onnx_give_seeds(c.g); /* a part draws what the whole does */
    if (status == TN_OK)
        status = feed(&c, whole, cut, map);
    if (status == TN_OK)
        status = remove_rest(&c, cut);
    tn_graph *made = status == TN_OK ? c.g : NULL;
    if (made && cut->feeds)
        made = infer_anew(c.g, whole, typed, cut);
    tn_error_record error;
    tn_error_save(&error);
    tn_free(whole->heap, c.fetch);
    tn_free(whole->heap, c.needed);
    tn_free(whole->heap, c.known);
    tn_free(whole->heap, c.definer);
    tn_vec_free(whole->heap, &c.todo); /* the clone's heap, too */
    tn_graph_free_map(whole, map);
    if (made != c.g)
        tn_graph_destroy(c.g);
    if (!made)
        tn_error_restore(&error);
    return made;
}
