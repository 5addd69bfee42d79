#include "support/shape_checks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interp/interp.h"

typedef struct watch {
    const tn_graph *graph;
    tn_dim_env env;
    uint8_t *seen; /* by value: since its region began anew */
    shape_tally *tally;
} watch;

static void wrong(watch *w, tn_value v, const char *what, int at, tn_dim dim, int64_t actual) {
    if (w->tally->wrong++)
        return;
    char type[300];
    tn_node node = tn_value_producer(w->graph, v);
    tn_text text;
    tn_text_init(&text, NULL);
    if (dim.id)
        tn_dim_print(&w->graph->dims, dim, &text);
    snprintf(w->tally->first, sizeof w->tally->first, "%s from %s: %s %d is %" PRId64 ", inferred %s",
             tn_value_describe(w->graph, v, type, sizeof type),
             node.id ? tn_node_op_name(w->graph, node) : "the caller", what, at, actual,
             text.data ? text.data : "otherwise");
    tn_text_free(&text);
}

/* --- one number ------------------------------------------------------------------------------------------------------------------ */

static uint32_t definer(const tn_graph *g, uint32_t symbol) {
    return symbol < g->symbol_value.len ? g->symbol_value.data[symbol] : 0;
}

static void check_number(watch *w, tn_value v, const char *what, int at, tn_dim dim, int64_t actual) {
    const tn_dims *dims = &w->graph->dims;
    const tn_dim_expr *e = &dims->expr.data[dim.id];
    shape_tally *t = w->tally;
    if (e->kind == TN_DIM_CONST) {
        if (e->constant == actual)
            t->numbers++;
        else
            wrong(w, v, what, at, dim, actual);
        return;
    }
    if (e->kind == TN_DIM_SYMBOL && !w->env.bound[e->symbol] && definer(w->graph, e->symbol) == v.id &&
        actual >= dims->symbol.data[e->symbol].low && actual <= dims->symbol.data[e->symbol].high) {
        w->env.value[e->symbol] = actual;
        w->env.bound[e->symbol] = 1;
        t->data++;
        return;
    }
    switch (tn_dim_env_match(dims, &w->env, dim, actual)) {
    case 0: t->expressions++; break;
    case 1: wrong(w, v, what, at, dim, actual); break;
    default: t->undecided++;
    }
}

static void check_object(watch *w, tn_value v, const tn_object *object) {
    const tn_graph *g = w->graph;
    tn_type type = tn_value_type(g, v);
    w->tally->values++;
    if (!type.id) {
        w->tally->unknown++;
        return;
    }
    if (tn_type_kind(g, type) != tn_object_kind(object)) {
        wrong(w, v, "its kind", 0, (tn_dim){0}, tn_object_kind(object));
        return;
    }
    if (tn_object_kind(object) != TN_KIND_TENSOR)
        return;
    const tn_tensor *t = (const tn_tensor *)object;
    int rank = tn_type_rank(g, type);
    if (tn_type_dtype(g, type) != TN_DTYPE_NONE && tn_type_dtype(g, type) != tn_tensor_dtype(t))
        wrong(w, v, "its dtype", 0, (tn_dim){0}, tn_tensor_dtype(t));
    if (rank < 0) {
        w->tally->unknown++;
        return;
    }
    if (rank != tn_tensor_rank(t)) {
        wrong(w, v, "its rank", rank, (tn_dim){0}, tn_tensor_rank(t));
        return;
    }
    for (int i = 0; i < rank; i++)
        check_number(w, v, "dimension", i, tn_type_dims(g, type)[i], tn_tensor_dims(t)[i]);
    const tn_dim *contents;
    int32_t known = tn_value_contents(g, v, &contents);
    if (known >= 0 && known != tn_tensor_count(t))
        wrong(w, v, "the number of its elements", 0, (tn_dim){0}, tn_tensor_count(t));
    for (int32_t i = 0; i < known && known == tn_tensor_count(t) && tn_dtype_is_int(tn_tensor_dtype(t)); i++) {
        w->tally->contents++;
        check_number(w, v, "element", i, contents[i], tn_tensor_get_i64(t, i));
    }
}

/* --- a run ------------------------------------------------------------------------------------------------------------------------- */

static uint32_t home(const tn_graph *g, uint32_t value) {
    tn_node producer = tn_value_producer(g, (tn_value){value});
    return producer.id ? tn_node_parent(g, producer).id : g->value.data[value].region;
}

/* Functions stay in the graph when all calls are inlined. */
static bool in_function(const tn_graph *g, uint32_t value) {
    uint32_t region = home(g, value);
    for (tn_node owner; (owner = tn_region_owner(g, (tn_region){region})).id;)
        region = tn_node_parent(g, owner).id;
    return region != g->main_region;
}

/* A body begins anew: what its values define is forgotten. */
static void begin(watch *w, uint32_t region) {
    const tn_graph *g = w->graph;
    for (uint32_t v = 1; v < g->value.len; v++)
        if (w->seen[v] && home(g, v) == region)
            w->seen[v] = 0;
    for (uint32_t s = 0; s < w->env.count; s++)
        if (definer(g, s) && home(g, definer(g, s)) == region)
            w->env.bound[s] = 0;
}

static void look(void *ctx, tn_value v, const tn_object *object) {
    watch *w = ctx;
    if (w->seen[v.id])
        begin(w, home(w->graph, v.id));
    w->seen[v.id] = 1;
    check_object(w, v, object);
}

tn_status shapes_run(const tn_graph *g, uint32_t n, const tn_value *in, tn_object *const *objects, shape_tally *tally) {
    watch w = {.graph = g, .tally = tally, .seen = calloc(g->value.len + 1u, 1)};
    uint32_t outputs = tn_graph_output_count(g);
    tn_value *wanted = calloc(outputs + 1u, sizeof *wanted);
    tn_object **got = calloc(outputs + 1u, sizeof *got);
    if (!w.seen || !wanted || !got || !tn_dim_env_init(&w.env, NULL, &g->dims))
        abort();
    /* sizes that are symbols first: an expression may be read before what it is made of */
    for (uint32_t i = 0; i < n; i++) {
        const tn_tensor *t = tn_object_tensor(objects[i]);
        tn_type type = tn_value_type(g, in[i]);
        for (int d = 0; t && d < tn_type_rank(g, type) && d < tn_tensor_rank(t); d++)
            if (g->dims.expr.data[tn_type_dims(g, type)[d].id].kind == TN_DIM_SYMBOL)
                (void)tn_dim_env_match(&g->dims, &w.env, tn_type_dims(g, type)[d], tn_tensor_dims(t)[d]);
    }
    for (uint32_t i = 0; i < outputs; i++)
        wanted[i] = tn_graph_output(g, i);
    shape_tally before = *tally;
    for (uint32_t i = 0; i < n; i++)
        check_object(&w, in[i], objects[i]);
    bool misfed = tally->wrong != before.wrong;
    tn_interp_options options = {.tap = look, .tap_ctx = &w, .check_shapes = true, .max_bytes = (size_t)6 << 30};
    tn_status status = tn_interp_run(g, &options, n, in, objects, outputs, wanted, got);
    if (misfed && status != TN_OK) /* such inputs are refused */
        *tally = before;
    for (uint32_t i = 0; i < outputs; i++)
        tn_object_destroy(got[i]);
    tn_dim_env_free(&w.env);
    free(got);
    free(wanted);
    free(w.seen);
    return status;
}

/* --- what is not known ---------------------------------------------------------------------------------------------------------------- */

typedef struct gap_visit {
    const tn_graph *graph;
    uint8_t *given, *counted; /* by symbol: an input defines it; it was counted */
    bool marking, found, tell;
    uint32_t symbols;
} gap_visit;

static void tell_origin(const tn_graph *g, const char *what, tn_value v) {
    char text[300], origin[300];
    tn_node n = tn_value_producer(g, v);
    printf("    %s: %s from %s%s%s\n", what, tn_value_describe(g, v, text, sizeof text),
           n.id ? tn_node_op_name(g, n) : "a body's argument", n.id && tn_node_origin_count(g, n) ? ", " : "",
           n.id && tn_node_origin_count(g, n) ? tn_node_origin(g, n, 0, origin, sizeof origin) : "");
}

static void visit_symbol(void *ctx, uint32_t symbol) {
    gap_visit *c = ctx;
    if (c->marking) {
        c->given[symbol] = 1;
        return;
    }
    if (c->given[symbol])
        return;
    c->found = true;
    if (!c->counted[symbol]) {
        c->symbols++;
        if (c->tell)
            tell_origin(c->graph, tn_dim_symbol_name(&c->graph->dims, symbol), (tn_value){definer(c->graph, symbol)});
    }
    c->counted[symbol] = 1;
}

shape_gaps shapes_unknown(const tn_graph *g, bool tell) {
    shape_gaps gaps = {0};
    gap_visit c = {.graph = g,
                   .given = calloc(g->dims.symbol.len + 1u, 1),
                   .counted = calloc(g->dims.symbol.len + 1u, 1),
                   .marking = true,
                   .tell = tell};
    if (!c.given || !c.counted)
        abort();
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++) {
        tn_value v = tn_graph_input(g, i);
        for (int d = 0; d < tn_value_rank(g, v); d++)
            tn_dim_symbols(&g->dims, tn_value_dim(g, v, d), visit_symbol, &c);
    }
    c.marking = false;
    for (uint32_t id = 1; id < g->value.len; id++) {
        tn_value v = {id};
        if (!tn_value_is_alive(g, v) || in_function(g, id))
            continue;
        tn_type type = tn_value_type(g, v);
        gaps.values++;
        if (!type.id || (tn_type_kind(g, type) == TN_KIND_TENSOR && tn_type_rank(g, type) < 0)) {
            gaps.ranks++;
            if (tell)
                tell_origin(g, "no rank", v);
        }
        for (int d = 0; type.id && d < tn_type_rank(g, type); d++) {
            c.found = false;
            tn_dim_symbols(&g->dims, tn_type_dims(g, type)[d], visit_symbol, &c);
            gaps.dims += c.found;
        }
    }
    for (uint32_t n = 1; n < g->node.len; n++)
        gaps.late += g->node.data[n].op && g->node.data[n].op->dialect == TN_DIALECT_ONNX &&
                     g->node.data[n].output_count && !in_function(g, g->node.data[n].outputs);
    gaps.symbols = c.symbols;
    free(c.given);
    free(c.counted);
    return gaps;
}
