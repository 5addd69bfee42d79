/* The text form of a graph: values and nodes numbered in the order of the text, so that it depends on nothing else. */
#include "ir/text.h"

typedef struct printer {
    const tn_graph *g;
    tn_text out;
    uint32_t *value_number; /* by value id; 0: none */
    uint32_t *node_label;   /* by node id; only nodes that are control inputs */
    uint32_t values, labels;
    uint8_t *symbol_used; /* by symbol index */
    uint32_t *order;      /* functions, callees first */
    uint32_t ordered;
    uint8_t *function_seen;
} printer;

static void print_name(printer *p, uint32_t string) {
    tn_text_quoted(&p->out, tn_strings_text(&p->g->strings, string), tn_strings_length(&p->g->strings, string));
}

/* --- first walk: numbers, symbols, functions ---------------------------------------------------------------------------- */

static void mark_symbol(void *ctx, uint32_t symbol) {
    printer *p = ctx;
    if (symbol < p->g->dims.symbol.len)
        p->symbol_used[symbol] = 1;
}

static void mark_dims(printer *p, uint32_t count, const tn_dim *dims) {
    for (uint32_t i = 0; i < count; i++)
        if (dims[i].id && dims[i].id < p->g->dims.expr.len)
            tn_dim_symbols(&p->g->dims, dims[i], mark_symbol, p);
}

static void mark_type(printer *p, uint32_t type) {
    for (int depth = 0; type && type < p->g->type.len && depth <= TN_MAX_NESTING; depth++) {
        const tn_type_rec *rec = &p->g->type.data[type];
        if (rec->rank > 0)
            mark_dims(p, (uint32_t)rec->rank, p->g->dim_list.data + rec->dims);
        type = rec->element;
    }
}

/* Whether the elements of a value define symbols: then they are part of the text. */
static bool defines_by_contents(const printer *p, uint32_t value) {
    const tn_graph *g = p->g;
    const tn_value_rec *v = &g->value.data[value];
    for (int32_t i = 0; i < v->contents_count; i++) {
        tn_dim dim = g->dim_list.data[v->contents + (uint32_t)i];
        const tn_dim_expr *e = &g->dims.expr.data[dim.id];
        if (e->kind == TN_DIM_SYMBOL && e->symbol < g->symbol_value.len && g->symbol_value.data[e->symbol] == value)
            return true;
    }
    return false;
}

static void number_value(printer *p, uint32_t value) {
    const tn_value_rec *v = &p->g->value.data[value];
    p->value_number[value] = ++p->values;
    mark_type(p, v->type);
    if (defines_by_contents(p, value))
        mark_dims(p, (uint32_t)v->contents_count, p->g->dim_list.data + v->contents);
}

/* Nodes of a region, at most as many as there are (a broken list must not hang the printer). */
static void number_region(printer *p, uint32_t region, int depth) {
    const tn_graph *g = p->g;
    if (depth > TN_MAX_NESTING || region >= g->region.len)
        return;
    const tn_region_rec *r = &g->region.data[region];
    for (uint32_t i = 0; i < r->args.len; i++)
        number_value(p, r->args.data[i]);
    uint32_t left = g->node.len;
    for (uint32_t id = r->first; id && left; id = g->node.data[id].next, left--) {
        const tn_node_rec *n = &g->node.data[id];
        if (!n->op)
            continue;
        for (uint32_t i = 0; i < n->output_count; i++)
            number_value(p, n->outputs + i);
        for (uint32_t i = 0; i < n->attr_count; i++) {
            const tn_attr *a = &n->attrs[i];
            if (a->kind == TN_ATTR_DIMS)
                mark_dims(p, a->count, a->as.dims);
            else if (a->kind == TN_ATTR_TYPE)
                mark_type(p, a->as.type.id);
        }
        for (uint32_t i = 0; i < n->control_count; i++)
            p->node_label[g->control_list.data[n->control + i]] = 1; /* numbered in print order below */
        for (uint32_t i = 0; i < n->region_count; i++)
            number_region(p, g->region_list.data[n->regions + i], depth + 1);
    }
}

/* Control inputs stand before the nodes that name them, so labels are given in a walk of its own. */
static void label_region(printer *p, uint32_t region, int depth) {
    const tn_graph *g = p->g;
    if (depth > TN_MAX_NESTING || region >= g->region.len)
        return;
    uint32_t left = g->node.len;
    for (uint32_t id = g->region.data[region].first; id && left; id = g->node.data[id].next, left--) {
        const tn_node_rec *n = &g->node.data[id];
        if (p->node_label[id])
            p->node_label[id] = ++p->labels;
        for (uint32_t i = 0; n->op && i < n->region_count; i++)
            label_region(p, g->region_list.data[n->regions + i], depth + 1);
    }
}

static void order_function(printer *p, uint32_t function);

static void order_callees(printer *p, uint32_t region, int depth) {
    const tn_graph *g = p->g;
    if (depth > TN_MAX_NESTING || region >= g->region.len)
        return;
    uint32_t left = g->node.len;
    for (uint32_t id = g->region.data[region].first; id && left; id = g->node.data[id].next, left--) {
        const tn_node_rec *n = &g->node.data[id];
        for (uint32_t i = 0; n->op && i < n->attr_count; i++)
            if (n->attrs[i].kind == TN_ATTR_FUNCTION && n->attrs[i].as.i >= 0 &&
                n->attrs[i].as.i < (int64_t)g->function.len)
                order_function(p, (uint32_t)n->attrs[i].as.i);
        for (uint32_t i = 0; n->op && i < n->region_count; i++)
            order_callees(p, g->region_list.data[n->regions + i], depth + 1);
    }
}

static void order_function(printer *p, uint32_t function) {
    if (p->function_seen[function])
        return;
    p->function_seen[function] = 1;
    order_callees(p, p->g->function.data[function].region, 0);
    p->order[p->ordered++] = function;
}

/* --- second walk: the text -------------------------------------------------------------------------------------------------- */

static void indent(printer *p, int depth) {
    for (int i = 0; i < depth; i++)
        tn_text_add(&p->out, "  ");
}

static void print_value(printer *p, uint32_t value) {
    if (!value)
        tn_text_add(&p->out, "_");
    else if (value < p->g->value.len && p->value_number[value])
        tn_text_printf(&p->out, "%%%u", p->value_number[value]);
    else
        tn_text_add(&p->out, "%?"); /* a broken graph: reads as an error */
}

static void print_defined(printer *p, uint32_t value) {
    print_value(p, value);
    if (p->g->value.data[value].name) {
        tn_text_add(&p->out, " ");
        print_name(p, p->g->value.data[value].name);
    }
}

static void print_value_type(printer *p, uint32_t value) {
    const tn_value_rec *v = &p->g->value.data[value];
    tn_type_print(p->g, (tn_type){v->type}, &p->out);
    if (!defines_by_contents(p, value))
        return;
    tn_text_add(&p->out, " holds [");
    for (int32_t i = 0; i < v->contents_count; i++) {
        tn_text_add(&p->out, i ? ", " : "");
        tn_dim_print(&p->g->dims, p->g->dim_list.data[v->contents + (uint32_t)i], &p->out);
    }
    tn_text_add(&p->out, "]");
}

static void print_args(printer *p, uint32_t region, bool defaults) {
    const tn_region_rec *r = &p->g->region.data[region];
    tn_text_add(&p->out, "(");
    for (uint32_t i = 0; i < r->args.len; i++) {
        uint32_t value = r->args.data[i];
        tn_text_add(&p->out, i ? ", " : "");
        print_defined(p, value);
        tn_text_add(&p->out, ": ");
        print_value_type(p, value);
        tn_tensor *tensor = defaults ? tn_graph_input_default(p->g, (tn_value){value}) : NULL;
        if (tensor) {
            tn_text_add(&p->out, " = ");
            tn_tensor_print(tensor, &p->out);
        }
    }
    tn_text_add(&p->out, ")");
}

static void print_origin(printer *p, uint32_t origin) {
    const tn_origin *o = &p->g->origin.data[origin];
    tn_text_add(&p->out, " @");
    if (o->what || o->name) {
        print_name(p, o->what);
        tn_text_add(&p->out, "(");
        print_name(p, o->name);
        tn_text_add(&p->out, ", ");
    }
    print_name(p, o->file);
    if (o->line)
        tn_text_printf(&p->out, ":%u", o->line);
    if (o->what || o->name)
        tn_text_add(&p->out, ")");
}

static void print_region(printer *p, uint32_t region, int depth, int indentation);

static void print_attrs(printer *p, const tn_node_rec *n) {
    if (!n->attr_count)
        return;
    tn_text_add(&p->out, " {");
    for (uint32_t i = 0; i < n->attr_count; i++) {
        const tn_attr *a = &n->attrs[i];
        tn_text_add(&p->out, i ? ", " : "");
        tn_word_print(a->key, strlen(a->key), "", &p->out);
        tn_text_add(&p->out, " = ");
        tn_attr_print(p->g, a, &p->out);
    }
    tn_text_add(&p->out, "}");
}

static void print_node(printer *p, uint32_t id, int depth, int indentation) {
    static const char *const role[] = {"forward", "gradient", "optimizer", "statistics", "debug"};
    const tn_graph *g = p->g;
    const tn_node_rec *n = &g->node.data[id];
    indent(p, indentation);
    if (p->node_label[id])
        tn_text_printf(&p->out, "!%u ", p->node_label[id]);
    for (uint32_t i = 0; i < n->output_count; i++) {
        tn_text_add(&p->out, i ? ", " : "");
        print_defined(p, n->outputs + i);
    }
    tn_text_add(&p->out, n->output_count ? " = " : "");
    tn_word_print(n->op->name, strlen(n->op->name), "op ", &p->out);
    tn_text_add(&p->out, "(");
    for (uint32_t i = 0; i < n->input_count; i++) {
        tn_text_add(&p->out, i ? ", " : "");
        print_value(p, g->operand.data[n->inputs + i].value);
    }
    tn_text_add(&p->out, ")");
    print_attrs(p, n);
    if (n->control_count) {
        tn_text_add(&p->out, " after(");
        for (uint32_t i = 0; i < n->control_count; i++)
            tn_text_printf(&p->out, "%s!%u", i ? ", " : "", p->node_label[g->control_list.data[n->control + i]]);
        tn_text_add(&p->out, ")");
    }
    for (uint32_t i = 0; i < n->output_count; i++) {
        tn_text_add(&p->out, i ? ", " : " : ");
        print_value_type(p, n->outputs + i);
    }
    if (n->name) {
        tn_text_add(&p->out, " ");
        print_name(p, n->name);
    }
    if (n->role)
        tn_text_printf(&p->out, " role %s", n->role < sizeof role / sizeof *role ? role[n->role] : "?");
    if (n->placement)
        tn_text_printf(&p->out, " device %u", n->placement);
    if (n->location && n->location < g->location.len) {
        const tn_location_set *set = &g->location.data[n->location];
        for (uint32_t i = 0; i < set->count; i++)
            print_origin(p, g->origin_list.data[set->first + i]);
    }
    tn_text_add(&p->out, "\n");
    for (uint32_t i = 0; i < n->region_count; i++) {
        uint32_t region = g->region_list.data[n->regions + i];
        indent(p, indentation + 1);
        tn_text_add(&p->out, "region ");
        if (region < g->region.len)
            print_args(p, region, false);
        tn_text_add(&p->out, " ");
        print_region(p, region, depth + 1, indentation + 1);
    }
}

static void print_region(printer *p, uint32_t region, int depth, int indentation) {
    const tn_graph *g = p->g;
    tn_text_add(&p->out, "{\n");
    if (depth <= TN_MAX_NESTING && region < g->region.len) {
        uint32_t left = g->node.len;
        for (uint32_t id = g->region.data[region].first; id && left && !p->out.failed;
             id = g->node.data[id].next, left--)
            if (g->node.data[id].op)
                print_node(p, id, depth, indentation + 1);
    }
    indent(p, indentation);
    tn_text_add(&p->out, "}\n");
}

static void print_symbols(printer *p) {
    const tn_dims *dims = &p->g->dims;
    for (uint32_t i = 0; i < dims->symbol.len; i++) {
        const tn_dim_sym *s = &dims->symbol.data[i];
        if (!p->symbol_used[i])
            continue;
        tn_text_add(&p->out, "symbol ");
        tn_dim_print(dims, (tn_dim){s->expr}, &p->out);
        tn_text_printf(&p->out, " [%lld, %lld]%s\n", (long long)s->low, (long long)s->high, s->fresh ? " fresh" : "");
    }
}

static void print_graph(printer *p) {
    const tn_graph *g = p->g;
    for (uint32_t i = 0; i < g->function.len; i++)
        order_function(p, i);
    for (uint32_t i = 0; i < p->ordered; i++)
        number_region(p, g->function.data[p->order[i]].region, 0);
    number_region(p, g->main_region, 0);
    for (uint32_t i = 0; i < p->ordered; i++)
        label_region(p, g->function.data[p->order[i]].region, 0);
    label_region(p, g->main_region, 0);

    tn_text_printf(&p->out, "tenon %d\n", TN_TEXT_VERSION);
    for (uint32_t i = 0; i < g->metadata.len; i++) {
        tn_text_add(&p->out, "metadata ");
        print_name(p, g->metadata.data[i].key);
        tn_text_add(&p->out, " = ");
        print_name(p, g->metadata.data[i].value);
        tn_text_add(&p->out, "\n");
    }
    print_symbols(p);
    for (uint32_t i = 0; i < p->ordered; i++) {
        const tn_function *f = &g->function.data[p->order[i]];
        tn_text_add(&p->out, "function ");
        print_name(p, f->name);
        tn_text_add(&p->out, " ");
        print_args(p, f->region, false);
        tn_text_add(&p->out, " ");
        print_region(p, f->region, 0, 0);
    }
    tn_text_add(&p->out, "graph ");
    print_args(p, g->main_region, true);
    tn_text_add(&p->out, " -> (");
    for (uint32_t i = 0; i < g->output_name.len; i++) {
        tn_text_add(&p->out, i ? ", " : "");
        print_name(p, g->output_name.data[i]);
    }
    tn_text_add(&p->out, ") ");
    print_region(p, g->main_region, 0, 0);
}

char *tn_graph_print(const tn_graph *graph) {
    if (!graph) {
        tn_fail(TN_ERR_USAGE, "graph is NULL");
        return NULL;
    }
    tn_heap *heap = graph->heap;
    printer p = {.g = graph};
    tn_text_init(&p.out, heap);
    p.value_number = tn_alloc_array(heap, graph->value.len, sizeof *p.value_number);
    p.node_label = tn_alloc_array(heap, graph->node.len, sizeof *p.node_label);
    p.symbol_used = tn_alloc_array(heap, graph->dims.symbol.len, sizeof *p.symbol_used);
    p.order = tn_alloc_array(heap, graph->function.len, sizeof *p.order);
    p.function_seen = tn_alloc_array(heap, graph->function.len, sizeof *p.function_seen);
    bool ok = p.value_number && p.node_label && p.symbol_used && p.order && p.function_seen;
    if (ok)
        print_graph(&p);
    tn_free(heap, p.value_number);
    tn_free(heap, p.node_label);
    tn_free(heap, p.symbol_used);
    tn_free(heap, p.order);
    tn_free(heap, p.function_seen);
    if (!ok || p.out.failed) {
        tn_text_free(&p.out);
        return NULL;
    }
    return p.out.data;
}

void tn_graph_free_text(const tn_graph *graph, char *text) {
    if (graph)
        tn_free(graph->heap, text);
}
