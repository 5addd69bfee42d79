/* Running a row's infer, and what infer functions call. */
#include <stdarg.h>
#include <stdio.h>

#include "ir/graph_internal.h"

tn_status tn_infer_tensor(tn_infer *c, uint32_t output, tn_dtype dtype, int rank, const tn_dim *dims) {
    return tn_infer_type(c, output, tn_type_tensor(c->graph, dtype, rank, dims));
}

tn_status tn_infer_type(tn_infer *c, uint32_t output, tn_type type) {
    if (c->graph->stuck)
        return tn_error_restore(&c->graph->error);
    if (output < c->outputs)
        c->type[output] = type;
    return TN_OK;
}

tn_status tn_infer_known(tn_infer *c, uint32_t output, uint32_t n, const tn_dim *dims) {
    if (output >= c->outputs || n > TN_MAX_CONTENTS)
        return TN_OK; /* knowing less is never wrong */
    for (uint32_t i = 0; i < n; i++)
        if (!dims[i].id)
            return TN_OK;
    tn_dim *copy = tn_arena_copy(&c->scratch, dims, n * sizeof *dims);
    if (!copy)
        return TN_ERR_MEMORY;
    c->contents[output].n = (int32_t)n;
    c->contents[output].dims = copy;
    return TN_OK;
}

tn_dim tn_infer_fresh(tn_infer *c, uint32_t output, int axis, int64_t low, int64_t high) {
    tn_graph *g = c->graph;
    tn_value v = tn_node_output(g, c->node, output);
    if (axis < tn_value_rank(g, v)) {
        tn_dim old = tn_value_dims(g, v)[axis];
        const tn_dim_expr *e = &g->dims.expr.data[old.id];
        /* its own symbol, not one that the size was equal to before */
        if (e->kind == TN_DIM_SYMBOL && g->dims.symbol.data[e->symbol].fresh && e->symbol < g->symbol_value.len &&
            g->symbol_value.data[e->symbol] == v.id) {
            const tn_dim_sym *s = &g->dims.symbol.data[e->symbol];
            if (s->low > low || s->high < high)
                c->narrow = old;
            return old;
        }
    }
    return tn_dim_fresh(g, low, high);
}

void tn_fail_at_node(const tn_graph *g, tn_node node) {
    if (!node.id || node.id >= g->node.len)
        return;
    char text[256];
    const tn_node_rec *n = &g->node.data[node.id];
    tn_fail_where("node %%%u %s%s%s%s", node.id, n->op ? n->op->name : "(dead)", n->name ? " '" : "",
                  n->name ? tn_strings_text(&g->strings, n->name) : "", n->name ? "'" : "");
    for (uint32_t i = 0; i < tn_node_origin_count(g, node) && i < 4; i++)
        tn_fail_where("from %s", tn_node_origin(g, node, i, text, sizeof text));
    for (uint32_t i = 0; i < n->input_count && i < 6; i++) {
        tn_value v = tn_node_input(g, node, i);
        if (!v.id)
            continue;
        tn_node p = tn_value_producer(g, v);
        char maker[200] = "";
        if (p.id && tn_node_origin_count(g, p)) /* as the file has it */
            tn_node_origin(g, p, 0, maker, sizeof maker);
        else if (p.id)
            snprintf(maker, sizeof maker, "%s", tn_node_op_name(g, p));
        tn_fail_where("input %u: %s%s%s", i, tn_value_describe(g, v, text, sizeof text), p.id ? " from " : "", maker);
    }
}

static tn_status fail_at(tn_infer *c, tn_status status, const char *format, va_list args) {
    if (c->graph->stuck && (c->graph->error.status == TN_ERR_MEMORY || c->graph->error.status == TN_ERR_LIMIT)) {
        tn_error_restore(&c->graph->error); /* why a dimension is null */
        tn_fail_at_node(c->graph, c->node);
        return tn_error_status();
    }
    char what[512];
    vsnprintf(what, sizeof what, format, args);
    tn_fail(status, "%s%s: %s", status == TN_ERR_UNSUPPORTED ? "not supported: " : "",
            tn_node_op_name(c->graph, c->node), what);
    tn_fail_at_node(c->graph, c->node);
    return status;
}

tn_status(tn_infer_fail)(tn_infer *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    tn_status status = fail_at(c, TN_ERR_MODEL, format, args);
    va_end(args);
    return status;
}

tn_status(tn_infer_unsupported)(tn_infer *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    tn_status status = fail_at(c, TN_ERR_UNSUPPORTED, format, args);
    va_end(args);
    return status;
}

tn_status tn_infer_run(tn_graph *g, tn_node node, tn_infer *c) {
    tn_arena scratch;
    tn_arena_init(&scratch, g->heap);
    return tn_infer_run_in(g, node, c, &scratch);
}

tn_status tn_infer_run_in(tn_graph *g, tn_node node, tn_infer *c, const tn_arena *scratch) {
    const tn_op *op = g->node.data[node.id].op;
    uint32_t outputs = g->node.data[node.id].output_count;
    *c = (tn_infer){.graph = g, .node = node, .outputs = outputs, .scratch = *scratch};
    c->type = tn_arena_alloc(&c->scratch, outputs * sizeof *c->type + 1);
    c->contents = tn_arena_alloc(&c->scratch, outputs * sizeof *c->contents + 1);
    if (!c->type || !c->contents)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < outputs; i++)
        c->contents[i].n = -1;
    return op->infer ? op->infer(c) : TN_OK;
}

tn_status tn_graph_note_symbols(tn_graph *g, uint32_t value) {
    uint32_t n = g->dims.symbol.len;
    if (g->symbol_value.len < n) {
        if (!tn_vec_reserve(g->heap, &g->symbol_value, n - g->symbol_value.len))
            return TN_ERR_MEMORY;
        while (g->symbol_value.len < n)
            g->symbol_value.data[g->symbol_value.len++] = 0;
    }
    int rank = tn_value_rank(g, (tn_value){value});
    const tn_dim *dims = tn_value_dims(g, (tn_value){value});
    for (int i = 0; i < rank; i++) {
        const tn_dim_expr *e = &g->dims.expr.data[dims[i].id];
        if (e->kind == TN_DIM_SYMBOL &&
            (!g->symbol_value.data[e->symbol] || !g->value.data[g->symbol_value.data[e->symbol]].alive))
            g->symbol_value.data[e->symbol] = value;
    }
    return TN_OK;
}

static tn_status apply_types(tn_graph *g, tn_node node, const tn_infer *c) {
    for (uint32_t i = 0; i < c->outputs; i++) {
        uint32_t id = g->node.data[node.id].outputs + i;
        if (c->contents[i].n >= 0) {
            uint32_t first = tn_dim_list_add(g, (uint32_t)c->contents[i].n, c->contents[i].dims);
            if (first == UINT32_MAX)
                return TN_ERR_MEMORY;
            g->value.data[id].contents = first;
            g->value.data[id].contents_count = c->contents[i].n;
        }
        if (c->type[i].id)
            g->value.data[id].type = c->type[i].id;
        TN_TRY(tn_graph_note_symbols(g, id));
    }
    return TN_OK;
}

tn_status tn_node_reinfer(tn_graph *g, tn_node node) {
    tn_infer c;
    tn_status status = tn_infer_run(g, node, &c);
    if (status == TN_OK)
        status = apply_types(g, node, &c);
    tn_arena_free(&c.scratch);
    return status;
}

tn_status tn_node_infer_types(tn_graph *g, tn_node node, tn_type *types) {
    tn_infer c;
    tn_status status = tn_infer_run(g, node, &c);
    for (uint32_t i = 0; status == TN_OK && i < c.outputs; i++)
        types[i] = c.type[i];
    tn_arena_free(&c.scratch);
    return status;
}

tn_status tn_value_set_type(tn_graph *g, tn_value value, tn_type type) {
    TN_TRY(tn_graph_changeable(g));
    if (!tn_value_is_alive(g, value) || type.id >= g->type.len)
        return tn_fail(TN_ERR_USAGE, "setting the type of a value that is null or dead");
    g->value.data[value.id].type = type.id;
    return tn_graph_note_symbols(g, value.id);
}
