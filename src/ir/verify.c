/* The verifier: every numbered rule of docs/verifier.md over a whole graph. */
#include "ir/verify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

tn_status tn_rule_broken(const tn_verifier *v, int rule, uint32_t node, const char *format, ...) {
    char what[768];
    va_list args;
    va_start(args, format);
    if (vsnprintf(what, sizeof what, format, args) < 0)
        what[0] = '\0';
    va_end(args);
    tn_fail(TN_ERR_MODEL, "rule %d: %s", rule, what);
    if (node)
        tn_fail_at_node(v->g, (tn_node){node});
    return TN_ERR_MODEL;
}

/* --- rules 4, 5, 6 and 17: each node by its row --------------------------------------------------------------------------------------- */

static tn_status check_return(const tn_verifier *v, uint32_t region) {
    const tn_graph *g = v->g;
    const tn_region_rec *r = &g->region.data[region];
    for (uint32_t id = r->first; id; id = g->node.data[id].next) {
        bool ends = g->node.data[id].op->traits & TN_TERMINATOR;
        if (ends && id != r->last)
            return tn_rule_broken(v, TN_RULE_RETURN, id, "it stands before the end of region %u", region);
        if (!ends && id == r->last)
            return tn_rule_broken(v, TN_RULE_RETURN, id, "region %u does not end in return", region);
    }
    if (!r->last)
        return tn_rule_broken(v, TN_RULE_RETURN, r->owner, "region %u has no return", region);
    return TN_OK;
}

static tn_status check_arity(const tn_verifier *v, uint32_t id) {
    const tn_node_rec *n = &v->g->node.data[id];
    const tn_op *op = n->op;
    if ((int64_t)n->input_count < op->min_inputs || (op->max_inputs >= 0 && (int64_t)n->input_count > op->max_inputs))
        return tn_rule_broken(v, TN_RULE_ARITY, id, "%s has %u inputs", op->name, n->input_count);
    if ((int64_t)n->output_count < op->min_outputs ||
        (op->max_outputs >= 0 && (int64_t)n->output_count > op->max_outputs))
        return tn_rule_broken(v, TN_RULE_ARITY, id, "%s has %u outputs", op->name, n->output_count);
    if (op->regions >= 0 && (int64_t)n->region_count != op->regions)
        return tn_rule_broken(v, TN_RULE_ARITY, id, "%s has %u regions, not %d", op->name, n->region_count,
                              op->regions);
    if (op->traits & TN_OPTIONAL_INPUTS || op->dialect == TN_DIALECT_ONNX)
        return TN_OK;
    for (uint32_t i = 0; i < n->input_count; i++)
        if (!v->g->operand.data[n->inputs + i].value)
            return tn_rule_broken(v, TN_RULE_ARITY, id, "input %u of %s is absent", i, op->name);
    return TN_OK;
}

static tn_status check_attr(const tn_verifier *v, uint32_t id, const tn_attr *a) {
    const tn_graph *g = v->g;
    const char *name = tn_strings_text(&g->strings, a->name);
    if (a->kind == TN_ATTR_NONE || a->kind > TN_ATTR_FUNCTION || !a->key || a->name >= g->strings.text.len ||
        (a->key != name && strcmp(a->key, name) != 0))
        return tn_rule_broken(v, TN_RULE_ATTRIBUTES, id, "an attribute has no name or no kind");
    bool good = true;
    if (a->kind == TN_ATTR_FUNCTION)
        good = a->as.i >= 0 && a->as.i < (int64_t)g->function.len;
    else if (a->kind == TN_ATTR_TYPE)
        good = a->as.type.id < g->type.len;
    else if (a->kind == TN_ATTR_TENSOR)
        good = a->as.tensor != NULL;
    else if (a->kind == TN_ATTR_DTYPE)
        good = a->as.i >= 0 && a->as.i < TN_DTYPE_COUNT;
    for (uint32_t i = 0; a->kind == TN_ATTR_DIMS && good && i < a->count; i++)
        good = a->as.dims[i].id != 0 && a->as.dims[i].id < g->dims.expr.len;
    if (!good)
        return tn_rule_broken(v, TN_RULE_ATTRIBUTES, id, "attribute '%s' names nothing of this graph", a->key);
    return TN_OK;
}

static tn_status check_attrs(const tn_verifier *v, uint32_t id) {
    const tn_graph *g = v->g;
    const tn_node_rec *n = &g->node.data[id];
    tn_map seen = {0}; /* of names, where there are many */
    bool many = n->attr_count > 16;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < n->attr_count && status == TN_OK; i++) {
        uint32_t name = n->attrs[i].name;
        bool twice = many && tn_map_get(&seen, name, NULL);
        for (uint32_t k = 0; k < i && !many; k++)
            twice |= n->attrs[k].name == name;
        status = check_attr(v, id, &n->attrs[i]);
        if (status == TN_OK && twice)
            status = tn_rule_broken(v, TN_RULE_ATTRIBUTES, id, "attribute '%s' is there twice", n->attrs[i].key);
        if (status == TN_OK && many && !tn_map_put(g->heap, &seen, name, 1))
            status = tn_error_status();
    }
    tn_map_free(g->heap, &seen);
    TN_TRY(status);
    if (tn_attrs_check(n->op, n->attr_count, n->attrs, n->op->name) != TN_OK)
        return tn_rule_broken(v, TN_RULE_ATTRIBUTES, id, "%s", tn_error_what());
    return TN_OK;
}

tn_status tn_verify_nodes(tn_verifier *v) {
    const tn_graph *g = v->g;
    for (uint32_t i = 1; i < g->region.len; i++)
        if (g->region.data[i].alive)
            TN_TRY(check_return(v, i));
    for (uint32_t id = 1; id < g->node.len; id++) {
        const tn_node_rec *n = &g->node.data[id];
        if (!n->op)
            continue;
        TN_TRY(check_arity(v, id));
        TN_TRY(check_attrs(v, id));
        if (n->op->traits & TN_CONSTANT && (n->input_count || !tn_attr_tensor(g, (tn_node){id}, "value")))
            return tn_rule_broken(v, TN_RULE_CONSTANTS, id, "a constant has inputs or no tensor 'value'");
    }
    return TN_OK;
}

/* --- rules 15 and 18: the graph's face -------------------------------------------------------------------------------------------------- */

/* Names are unique, but one value may be put out more than once under one name. `value` 0: never. */
static tn_status check_name(const tn_verifier *v, tn_map *seen, const char *what, uint32_t index, uint32_t name,
                            uint32_t value) {
    uint64_t before;
    if (!name)
        return tn_rule_broken(v, TN_RULE_NAMES, 0, "%s %u has no name", what, index);
    if (tn_map_get(seen, name, &before) && (!value || before != value))
        return tn_rule_broken(v, TN_RULE_NAMES, 0, "two %ss are called '%s'", what,
                              tn_strings_text(&v->g->strings, name));
    return tn_map_put(v->g->heap, seen, name, value) ? TN_OK : tn_error_status();
}

static tn_status check_names(const tn_verifier *v) {
    const tn_graph *g = v->g;
    tn_map inputs = {0}, outputs = {0};
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < tn_graph_input_count(g) && status == TN_OK; i++)
        status = check_name(v, &inputs, "input", i, g->value.data[tn_graph_input(g, i).id].name, 0);
    if (status == TN_OK && g->output_name.len != tn_graph_output_count(g))
        status = tn_rule_broken(v, TN_RULE_NAMES, 0, "%u outputs, but %u names of outputs", tn_graph_output_count(g),
                                g->output_name.len);
    for (uint32_t i = 0; i < g->output_name.len && status == TN_OK; i++)
        status = check_name(v, &outputs, "output", i, g->output_name.data[i], tn_graph_output(g, i).id);
    tn_map_free(g->heap, &inputs);
    tn_map_free(g->heap, &outputs);
    return status;
}

static bool fits_type(const tn_graph *g, const tn_tensor *tensor, uint32_t type) {
    const tn_type_rec *t = &g->type.data[type];
    if (!type)
        return true;
    if (t->kind != TN_KIND_TENSOR || (t->dtype != TN_DTYPE_NONE && t->dtype != tensor->dtype) ||
        (t->rank >= 0 && t->rank != tensor->rank))
        return false;
    for (int i = 0; i < t->rank; i++) {
        int64_t low, high;
        tn_dim_bounds(g, g->dim_list.data[t->dims + (uint32_t)i], &low, &high);
        if (tensor->dims[i] < low || tensor->dims[i] > high)
            return false;
    }
    return true;
}

static tn_status check_defaults(const tn_verifier *v) {
    const tn_graph *g = v->g;
    for (uint32_t i = 0; i < g->input_default.len; i++) {
        const tn_input_default *d = &g->input_default.data[i];
        const tn_value_rec *value = d->value < g->value.len ? &g->value.data[d->value] : &g->value.data[0];
        if (!value->alive || value->producer || value->region != g->main_region || !d->tensor)
            return tn_rule_broken(v, TN_RULE_DEFAULTS, 0, "default %u is of no input, or has no tensor", i);
        if (!fits_type(g, d->tensor, value->type))
            return tn_rule_broken(v, TN_RULE_DEFAULTS, 0, "the default of input '%s' does not fit its type",
                                  tn_strings_text(&g->strings, value->name));
    }
    return TN_OK;
}

/* --- rule 13: types ------------------------------------------------------------------------------------------------------------------------ */

/* Elements that infer knows: noted, or compared with those that are stated. */
static tn_status settle_contents(const tn_verifier *v, tn_graph *g, uint32_t id, uint32_t output, const tn_infer *c) {
    uint32_t value = g->node.data[id].outputs + output;
    int32_t count = c->contents[output].n, stated = g->value.data[value].contents_count;
    const tn_dim *dims = c->contents[output].dims;
    if (stated < 0) {
        if (count < 0)
            return TN_OK;
        uint32_t first = tn_dim_list_add(g, (uint32_t)count, dims);
        if (first == UINT32_MAX)
            return tn_error_status();
        g->value.data[value].contents = first;
        g->value.data[value].contents_count = count;
        return TN_OK;
    }
    bool good = stated == count;
    for (int32_t i = 0; i < count && good; i++)
        good = tn_dim_equal(g, g->dim_list.data[g->value.data[value].contents + (uint32_t)i], dims[i]);
    return good ? TN_OK
                : tn_rule_broken(v, TN_RULE_TYPES, id, "output %u is stated to hold other elements than infer says",
                                 output);
}

/* Whether every value of type `found` is one of type `has`. */
static bool is_sure(const tn_graph *g, tn_type has, tn_type found) {
    if (has.id == found.id || !has.id || !found.id)
        return true;
    const tn_type_rec *h = &g->type.data[has.id], *f = &g->type.data[found.id];
    if (h->kind != f->kind)
        return false;
    if (h->kind != TN_KIND_TENSOR)
        return is_sure(g, (tn_type){h->element}, (tn_type){f->element});
    if (h->dtype != TN_DTYPE_NONE && f->dtype != h->dtype)
        return false;
    bool sure = h->rank < 0 || h->rank == f->rank;
    for (int i = 0; sure && i < h->rank; i++)
        sure = tn_dim_equal(g, g->dim_list.data[h->dims + (uint32_t)i], g->dim_list.data[f->dims + (uint32_t)i]);
    return sure;
}

/* Node `twin` of `g` stands for node `id` of what is verified. */
static tn_status check_node_types(tn_verifier *v, tn_graph *g, uint32_t id, tn_node twin, bool settle) {
    tn_infer c = {0};
    tn_status status = tn_infer_run_in(g, twin, &c, &v->scratch);
    if (status != TN_OK && status != TN_ERR_MEMORY && status != TN_ERR_LIMIT) {
        char why[512];
        snprintf(why, sizeof why, "%s", tn_error_what());
        status = tn_rule_broken(v, TN_RULE_TYPES, id, "infer refuses it: %s", why);
    }
    for (uint32_t i = 0; i < c.outputs && status == TN_OK; i++) {
        tn_type has = tn_value_type(g, tn_node_output(g, twin, i));
        char held[160], found[160];
        if (!tn_type_compatible(g, has, c.type[i]))
            status = tn_rule_broken(v, TN_RULE_TYPES, id, "output %u has the type %s, but infer says %s", i,
                                    tn_type_describe(g, has, held, sizeof held),
                                    tn_type_describe(g, c.type[i], found, sizeof found));
        else if (settle && !is_sure(g, has, c.type[i]))
            status = tn_rule_broken(
                v, TN_RULE_TYPES, id, "output %u is stated to be %s, but infer says %s, which it may not be", i,
                tn_type_describe(g, has, held, sizeof held), tn_type_describe(g, c.type[i], found, sizeof found));
        else if (settle)
            status = settle_contents(v, g, id, i, &c);
    }
    if (status == TN_OK && settle && c.narrow.id) {
        int64_t low, high;
        tn_dim_bounds(g, c.narrow, &low, &high);
        status = tn_rule_broken(
            v, TN_RULE_SYMBOLS, id,
            "a size that data decide is stated to be from %" PRId64 " to %" PRId64 ", but may be another", low, high);
    }
    v->scratch = c.scratch;
    tn_arena_reset(&v->scratch);
    return status;
}

/* On a copy: infer interns dimensions, and a graph that is looked at must not change. */
static tn_status check_types(tn_verifier *v) {
    const tn_graph *g = v->g;
    uint32_t *twin = NULL;
    tn_graph *copy = tn_graph_clone(g, NULL, &twin);
    if (!copy)
        return tn_error_status();
    tn_status status = TN_OK;
    for (uint32_t id = 1; id < g->node.len && status == TN_OK; id++)
        if (g->node.data[id].op && twin[id])
            status = check_node_types(v, copy, id, (tn_node){twin[id]}, false);
    tn_graph_free_map(g, twin);
    tn_error_record error;
    if (status != TN_OK)
        tn_error_save(&error);
    tn_graph_destroy(copy);
    return status == TN_OK ? TN_OK : tn_error_restore(&error);
}

static tn_status settle_types(tn_verifier *v, tn_graph *g) {
    for (uint32_t id = 1; id < g->node.len; id++)
        if (g->node.data[id].op)
            TN_TRY(check_node_types(v, g, id, (tn_node){id}, true));
    return tn_graph_check(g);
}

/* --- all of them ------------------------------------------------------------------------------------------------------------------------------ */

/* `settle`: the same graph, if infer may work on it; else NULL. */
static tn_status verify_all(tn_verifier *v, tn_graph *settle) {
    TN_TRY(tn_verify_storage(v));
    TN_TRY(tn_verify_nodes(v));
    TN_TRY(tn_verify_functions(v));
    TN_TRY(tn_verify_scopes(v));
    TN_TRY(check_names(v));
    TN_TRY(check_defaults(v));
    return settle ? settle_types(v, settle) : check_types(v);
}

static tn_status verify(const tn_graph *graph, tn_graph *settle) {
    TN_TRY(tn_graph_check(graph));
    tn_heap *heap = graph->heap;
    tn_verifier v = {.g = graph};
    v.region_seen = tn_alloc(heap, graph->region.len);
    v.node_seen = tn_alloc(heap, graph->node.len);
    v.serial = tn_alloc_array(heap, graph->value.len, sizeof *v.serial);
    v.symbol_depth = tn_alloc_array(heap, graph->dims.symbol.len, sizeof *v.symbol_depth);
    v.dim_good = tn_alloc(heap, graph->dims.expr.len);
    tn_arena_init(&v.scratch, heap);
    bool ready = v.region_seen && v.node_seen && v.serial && v.symbol_depth && v.dim_good;
    tn_status status = ready ? verify_all(&v, settle) : tn_error_status();
    tn_free(heap, v.region_seen);
    tn_free(heap, v.node_seen);
    tn_free(heap, v.serial);
    tn_free(heap, v.symbol_depth);
    tn_free(heap, v.dim_good);
    tn_vec_free(heap, &v.symbols);
    tn_vec_free(heap, &v.dims);
    tn_vec_free(heap, &v.values);
    tn_arena_free(&v.scratch);
    return status;
}

tn_status tn_graph_verify(const tn_graph *graph) {
    return verify(graph, NULL);
}

tn_status tn_graph_verify_settle(tn_graph *graph) {
    return verify(graph, graph);
}
