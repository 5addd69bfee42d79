/* Copying and moving parts of graphs: clone, region copy, splice. */
#include "ir/graph_internal.h"

typedef struct copier {
    tn_graph *to;
    const tn_graph *from;
    bool open;       /* tn_type_copy */
    bool exact;      /* clone: symbols, types and contents are taken as they are, nothing is inferred */
    uint32_t *value; /* by value id of `from`: id in `to`, 0 not copied (yet) */
    uint32_t *node;  /* clone only, else NULL */
    tn_dim *symbol;  /* by symbol index of `from`, null: not mapped yet */
    uint32_t symbols;
    tn_outer_lookup *outer;
    void *ctx;
    int depth;
} copier;

/* --- dimensions and types ------------------------------------------------------------------------------------------------- */

static tn_dim copy_symbol(copier *c, uint32_t index) {
    if (index < c->symbols && c->symbol[index].id)
        return c->symbol[index];
    const tn_dim_sym s = c->from->dims.symbol.data[index];
    if (c->to == c->from)
        return (tn_dim){s.expr};
    tn_dim d =
        s.fresh ? tn_dim_fresh(c->to, s.low, s.high) : tn_dim_symbol(c->to, tn_dim_symbol_name(&c->from->dims, index));
    if (d.id && !s.fresh && tn_dim_set_bounds(c->to, d, s.low, s.high) != TN_OK)
        return (tn_dim){0};
    if (index < c->symbols)
        c->symbol[index] = d;
    return d;
}

static tn_dim copy_dim(copier *c, tn_dim dim) {
    if (c->exact)
        return dim;
    if (c->depth > 200) {
        tn_fail(TN_ERR_LIMIT, "a dimension expression is nested too deeply");
        tn_graph_stick(c->to);
        return (tn_dim){0};
    }
    const tn_dim_expr e = c->from->dims.expr.data[dim.id];
    if (e.kind == TN_DIM_CONST)
        return tn_dim_const(c->to, e.constant);
    if (e.kind == TN_DIM_SYMBOL)
        return copy_symbol(c, e.symbol);
    if (c->open) {
        int64_t low, high;
        tn_dim_bounds(c->from, dim, &low, &high);
        return tn_dim_fresh(c->to, low < 0 ? 0 : low, high);
    }
    c->depth++;
    tn_dim r = {0};
    if (e.kind == TN_DIM_ADD || e.kind == TN_DIM_MUL) {
        r = tn_dim_const(c->to, e.constant);
        for (uint32_t i = 0; i < e.nargs && r.id; i++) {
            tn_dim a = copy_dim(c, (tn_dim){c->from->dims.arg.data[e.args + i]});
            r = e.kind == TN_DIM_ADD ? tn_dim_add(c->to, r, a) : tn_dim_mul(c->to, r, a);
        }
    } else {
        tn_dim a = copy_dim(c, (tn_dim){c->from->dims.arg.data[e.args]});
        tn_dim b = copy_dim(c, (tn_dim){c->from->dims.arg.data[e.args + 1]});
        static tn_dim (*const make[])(tn_graph *, tn_dim, tn_dim) = {
            [TN_DIM_FLOORDIV] = tn_dim_floordiv, [TN_DIM_CEILDIV] = tn_dim_ceildiv,
            [TN_DIM_MOD] = tn_dim_mod,           [TN_DIM_MIN] = tn_dim_min,
            [TN_DIM_MAX] = tn_dim_max,           [TN_DIM_BROADCAST] = tn_dim_broadcast};
        r = make[e.kind](c->to, a, b);
    }
    c->depth--;
    return r;
}

static tn_type copy_type(copier *c, tn_type t) {
    if (!t.id || (c->to == c->from && c->exact))
        return t;
    tn_kind kind = tn_type_kind(c->from, t);
    tn_type element = {0};
    if (kind != TN_KIND_TENSOR)
        element = copy_type(c, tn_type_element(c->from, t));
    switch (kind) {
    case TN_KIND_SEQUENCE: return tn_type_sequence(c->to, element);
    case TN_KIND_OPTIONAL: return tn_type_optional(c->to, element);
    case TN_KIND_MAP: return tn_type_map(c->to, tn_type_dtype(c->from, t), element);
    default: break;
    }
    tn_dim dims[TN_MAX_RANK];
    int rank = tn_type_rank(c->from, t);
    for (int i = 0; i < rank; i++)
        dims[i] = copy_dim(c, tn_type_dims(c->from, t)[i]);
    return tn_type_tensor(c->to, tn_type_dtype(c->from, t), rank, dims);
}

tn_type tn_type_copy(tn_graph *graph, const tn_graph *source, tn_type type, bool open) {
    copier c = {.to = graph, .from = source, .open = open};
    return copy_type(&c, type);
}

/* --- nodes ------------------------------------------------------------------------------------------------------------------ */

static tn_status copy_nodes(copier *c, uint32_t region, uint32_t n_results, tn_value *results);

static tn_value copy_value(copier *c, tn_value v) {
    if (!v.id)
        return v;
    if (c->value[v.id])
        return (tn_value){c->value[v.id]};
    if (c->outer)
        return c->outer(c->ctx, v);
    return c->to == c->from ? v : (tn_value){0};
}

static uint32_t copy_location(copier *c, uint32_t location) {
    if (c->to == c->from || !location)
        return location;
    uint32_t r = 0;
    const tn_graph *f = c->from;
    tn_location_set s = f->location.data[location];
    for (uint32_t i = 0; i < s.count; i++) {
        tn_origin o = f->origin.data[f->origin_list.data[s.first + i]];
        r = tn_location_union(c->to, r,
                              tn_location_make(c->to, tn_strings_text(&f->strings, o.what),
                                               tn_strings_text(&f->strings, o.name),
                                               tn_strings_text(&f->strings, o.file), o.line));
    }
    return r;
}

static uint32_t copy_function(copier *c, uint32_t function) {
    if (c->to == c->from || c->exact)
        return function;
    const char *name = tn_strings_text(&c->from->strings, c->from->function.data[function].name);
    uint32_t have = tn_graph_find_function(c->to, name);
    if (have != UINT32_MAX)
        return have;
    tn_insertion at = tn_graph_insertion(c->to);
    tn_region region = tn_region_create(c->to);
    uint32_t from = c->from->function.data[function].region;
    uint32_t n_results = tn_region_result_count(c->from, (tn_region){from});
    tn_value *results = tn_alloc_array(c->to->heap, n_results + 1, sizeof *results);
    uint32_t made = UINT32_MAX;
    if (region.id && results) {
        const tn_u32_vec *args = &c->from->region.data[from].args;
        for (uint32_t i = 0; i < args->len; i++)
            c->value[args->data[i]] =
                tn_region_add_arg(c->to, region, copy_type(c, tn_value_type(c->from, (tn_value){args->data[i]})), NULL)
                    .id;
        tn_graph_insert_at_end(c->to, region);
        if (copy_nodes(c, from, n_results, results) == TN_OK &&
            tn_region_return(c->to, region, n_results, results) == TN_OK)
            made = tn_graph_add_function(c->to, name, region);
    }
    tn_free(c->to->heap, results);
    tn_graph_set_insertion(c->to, at);
    return made;
}

static tn_region copy_region(copier *c, uint32_t from) {
    tn_graph *to = c->to;
    tn_region region = tn_region_create(to);
    uint32_t n = c->from->region.data[from].args.len, n_results = tn_region_result_count(c->from, (tn_region){from});
    for (uint32_t i = 0; i < n && region.id; i++) {
        tn_value arg = {c->from->region.data[from].args.data[i]};
        tn_type type = copy_type(c, tn_value_type(c->from, arg));
        tn_value a = tn_region_add_arg(to, region, type, tn_value_name(c->from, arg));
        c->value[arg.id] = a.id;
    }
    tn_value *results = tn_alloc_array(to->heap, n_results + 1, sizeof *results);
    tn_insertion at = tn_graph_insertion(to);
    bool ok = region.id && results && !to->stuck;
    if (ok) {
        tn_graph_insert_at_end(to, region);
        ok = copy_nodes(c, from, n_results, results) == TN_OK &&
             tn_region_return(to, region, n_results, results) == TN_OK;
    }
    tn_graph_set_insertion(to, at);
    tn_free(to->heap, results);
    return ok ? region : (tn_region){0};
}

static bool copy_attrs(copier *c, const tn_node_rec *n, tn_attr *attrs, tn_arena *scratch) {
    for (uint32_t i = 0; i < n->attr_count; i++) {
        attrs[i] = n->attrs[i];
        if (attrs[i].kind == TN_ATTR_DIMS && attrs[i].count) {
            tn_dim *dims = tn_arena_alloc(scratch, attrs[i].count * sizeof *dims);
            if (!dims)
                return false;
            for (uint32_t d = 0; d < attrs[i].count; d++)
                dims[d] = copy_dim(c, attrs[i].as.dims[d]);
            attrs[i].as.dims = dims;
        } else if (attrs[i].kind == TN_ATTR_TYPE)
            attrs[i].as.type = copy_type(c, attrs[i].as.type);
        else if (attrs[i].kind == TN_ATTR_FUNCTION &&
                 (attrs[i].as.i = copy_function(c, (uint32_t)attrs[i].as.i)) == UINT32_MAX)
            return false;
    }
    return true;
}

/* Symbols that a copied node defines become those of its copy. */
static void map_symbols(copier *c, tn_value old, tn_value copy) {
    int rank = tn_value_rank(c->from, old);
    if (rank != tn_value_rank(c->to, copy))
        return;
    for (int i = 0; i < rank; i++) {
        const tn_dim_expr *e = &c->from->dims.expr.data[tn_value_dims(c->from, old)[i].id];
        if (e->kind == TN_DIM_SYMBOL && e->symbol < c->symbols && e->symbol < c->from->symbol_value.len &&
            c->from->symbol_value.data[e->symbol] == old.id)
            c->symbol[e->symbol] = tn_value_dims(c->to, copy)[i];
    }
}

/* The row for a copy: one that lies in the source graph is copied along. NULL: out of memory. */
static const tn_op *copy_row(copier *c, const tn_op *op) {
    if (!(op->traits & TN_OWNED_ROW) || c->to == c->from)
        return op;
    tn_op *copy = tn_arena_copy(&c->to->arena, op, sizeof *op);
    uint32_t name = tn_strings_add(&c->to->strings, op->name, strlen(op->name));
    if (!copy || name == UINT32_MAX)
        return NULL;
    copy->name = tn_strings_text(&c->to->strings, name);
    return copy;
}

static tn_status copy_node(copier *c, uint32_t id, tn_arena *scratch) {
    const tn_node_rec n = c->from->node.data[id];
    tn_graph *to = c->to;
    tn_attr *attrs = tn_arena_alloc(scratch, n.attr_count * sizeof *attrs + 1);
    tn_value *inputs = tn_arena_alloc(scratch, n.input_count * sizeof *inputs + 1);
    tn_region *regions = tn_arena_alloc(scratch, n.region_count * sizeof *regions + 1);
    tn_type *types = tn_arena_alloc(scratch, n.output_count * sizeof *types + 1);
    if (!attrs || !inputs || !regions || !types || !copy_attrs(c, &n, attrs, scratch))
        return tn_error_status() == TN_OK ? TN_ERR_MEMORY : tn_error_status();
    for (uint32_t i = 0; i < n.input_count; i++) {
        tn_value v = {c->from->operand.data[n.inputs + i].value};
        inputs[i] = copy_value(c, v);
        if (v.id && !inputs[i].id)
            return tn_error_status() == TN_OK ? tn_fail(TN_ERR_INTERNAL, "copying a node: an input was not copied")
                                              : tn_error_status();
    }
    for (uint32_t i = 0; i < n.region_count; i++)
        if (!(regions[i] = copy_region(c, c->from->region_list.data[n.regions + i])).id)
            return tn_graph_check(to) != TN_OK ? tn_error_status() : TN_ERR_MEMORY;
    for (uint32_t i = 0; c->exact && i < n.output_count; i++)
        types[i] = copy_type(c, (tn_type){c->from->value.data[n.outputs + i].type});
    to->at_location = copy_location(c, n.location);
    uint8_t role = to->at_role;
    to->at_role = n.role;
    const tn_op *row = copy_row(c, n.op);
    if (!row)
        return tn_error_status();
    tn_node_desc d = {.op = row,
                      .name = tn_strings_text(&c->from->strings, n.name),
                      .input_count = n.input_count,
                      .inputs = inputs,
                      .output_count = n.output_count,
                      .attr_count = n.attr_count,
                      .attrs = attrs,
                      .region_count = n.region_count,
                      .regions = regions};
    tn_node copy = tn_graph_add_node_typed(to, &d, c->exact ? types : NULL);
    to->at_role = role;
    if (!copy.id)
        return tn_graph_check(to);
    to->node.data[copy.id].placement = n.placement;
    if (c->node) {
        c->node[id] = copy.id;
        for (uint32_t i = 0; i < n.control_count; i++) {
            uint32_t before = c->node[c->from->control_list.data[n.control + i]];
            if (before)
                TN_TRY(tn_node_add_control(to, copy, (tn_node){before}));
        }
    }
    for (uint32_t i = 0; i < n.output_count; i++) {
        tn_value old = {n.outputs + i}, fresh = tn_node_output(to, copy, i);
        c->value[old.id] = fresh.id;
        const char *name = tn_value_name(c->from, old);
        if (*name)
            TN_TRY(tn_value_set_name(to, fresh, name));
        if (!c->exact) {
            map_symbols(c, old, fresh);
            continue;
        }
        const tn_value_rec *v = &c->from->value.data[old.id];
        if (v->contents_count >= 0) {
            uint32_t first = tn_dim_list_add(to, (uint32_t)v->contents_count, c->from->dim_list.data + v->contents);
            if (first == UINT32_MAX)
                return TN_ERR_MEMORY;
            to->value.data[fresh.id].contents = first;
            to->value.data[fresh.id].contents_count = v->contents_count;
        }
    }
    return TN_OK;
}

static tn_status copy_nodes(copier *c, uint32_t region, uint32_t n_results, tn_value *results) {
    if (++c->depth > TN_MAX_NESTING + 50)
        return tn_fail(TN_ERR_LIMIT, "regions are nested deeper than %d", TN_MAX_NESTING);
    tn_arena scratch;
    tn_arena_init(&scratch, c->to->heap);
    tn_status status = TN_OK;
    for (uint32_t n = c->from->region.data[region].first; n && status == TN_OK; n = c->from->node.data[n].next) {
        if (c->from->node.data[n].op == &tn_op_return)
            break;
        status = copy_node(c, n, &scratch);
        tn_arena_free(&scratch);
    }
    tn_arena_free(&scratch);
    for (uint32_t i = 0; i < n_results && status == TN_OK; i++)
        results[i] = copy_value(c, tn_region_result(c->from, (tn_region){region}, i));
    c->depth--;
    return status;
}

static bool copier_init(copier *c, tn_graph *to, const tn_graph *from) {
    *c = (copier){.to = to, .from = from, .symbols = from->dims.symbol.len};
    c->value = tn_alloc_array(to->heap, from->value.len, sizeof *c->value);
    c->symbol = tn_alloc_array(to->heap, c->symbols + 1, sizeof *c->symbol);
    return c->value && c->symbol;
}

static void copier_free(copier *c) {
    tn_free(c->to->heap, c->value);
    tn_free(c->to->heap, c->symbol);
}

tn_status tn_region_copy(tn_graph *g, const tn_graph *source, tn_region region, uint32_t n_args, const tn_value *args,
                         uint32_t n_results, tn_value *results, tn_outer_lookup *outer, void *ctx) {
    TN_TRY(tn_graph_changeable(g));
    if (!tn_region_is_alive(source, region) || n_args != tn_region_arg_count(source, region) ||
        n_results > tn_region_result_count(source, region))
        return tn_fail(TN_ERR_USAGE, "copying a region: it is dead, or the number of arguments or results differs");
    copier c;
    uint32_t location = g->at_location;
    if (!copier_init(&c, g, source)) {
        copier_free(&c);
        tn_graph_stick(g);
        return TN_ERR_MEMORY;
    }
    c.outer = outer;
    c.ctx = ctx;
    for (uint32_t i = 0; i < n_args; i++) {
        tn_value arg = tn_region_arg(source, region, i);
        c.value[arg.id] = args[i].id;
        map_symbols(&c, arg, args[i]);
    }
    tn_status status = copy_nodes(&c, region.id, n_results, results);
    copier_free(&c);
    g->at_location = location;
    if (status != TN_OK)
        tn_graph_stick(g);
    return status;
}

tn_status tn_graph_copy_functions(tn_graph *g, const tn_graph *source) {
    TN_TRY(tn_graph_changeable(g));
    copier c;
    uint32_t location = g->at_location;
    bool ok = copier_init(&c, g, source);
    for (uint32_t i = 0; i < source->function.len && ok; i++)
        ok = copy_function(&c, i) != UINT32_MAX;
    copier_free(&c);
    g->at_location = location;
    if (!ok)
        tn_graph_stick(g);
    return ok ? TN_OK : tn_error_status();
}

tn_status tn_region_splice(tn_graph *g, tn_region region, uint32_t n_args, const tn_value *args, uint32_t n_results,
                           tn_value *results) {
    TN_TRY(tn_graph_changeable(g));
    if (!tn_region_is_alive(g, region) || n_args != tn_region_arg_count(g, region) ||
        n_results > tn_region_result_count(g, region))
        return tn_fail(TN_ERR_USAGE, "splicing a region: it is dead, or the number of arguments or results differs");
    for (uint32_t i = 0; i < n_args; i++) {
        tn_value old = tn_region_arg(g, region, i);
        for (uint32_t o; (o = g->value.data[old.id].first_use) != 0;) {
            tn_operand_unlink(g, o);
            tn_operand_link(g, o, args[i].id);
        }
    }
    for (uint32_t i = 0; i < n_results; i++)
        results[i] = tn_region_result(g, region, i);
    uint32_t node = g->region.data[region.id].first;
    while (node) {
        uint32_t next = g->node.data[node].next;
        if (g->node.data[node].op == &tn_op_return)
            tn_node_kill(g, node);
        else {
            tn_node_unlink(g, node);
            tn_node_link(g, node, g->at_region, g->at_node);
        }
        node = next;
    }
    for (uint32_t i = 0; i < n_args; i++)
        g->value.data[g->region.data[region.id].args.data[i]].alive = false;
    g->region.data[region.id].alive = false;
    return TN_OK;
}

/* --- clone -------------------------------------------------------------------------------------------------------------------- */

static tn_status clone_tables(tn_graph *to, const tn_graph *from) {
    tn_dims_free(&to->dims);
    to->dims = (tn_dims){0};
    if (!tn_dims_copy(&to->dims, &from->dims, to->heap))
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < from->metadata.len; i++) {
        tn_metadata m = from->metadata.data[i];
        TN_TRY(tn_graph_set_metadata(to, tn_strings_text(&from->strings, m.key),
                                     tn_strings_text(&from->strings, m.value),
                                     tn_strings_length(&from->strings, m.value)));
    }
    return TN_OK;
}

/* Fills region `to_region` (made, empty) from one of `from`. */
static tn_status clone_region(copier *c, uint32_t from_region, uint32_t to_region) {
    uint32_t n = c->from->region.data[from_region].args.len,
             n_results = tn_region_result_count(c->from, (tn_region){from_region});
    for (uint32_t i = 0; i < n; i++) {
        tn_value arg = {c->from->region.data[from_region].args.data[i]};
        tn_value a = tn_region_add_arg(c->to, (tn_region){to_region}, copy_type(c, tn_value_type(c->from, arg)),
                                       tn_value_name(c->from, arg));
        if (!a.id)
            return tn_graph_check(c->to);
        c->value[arg.id] = a.id;
        tn_tensor *value = from_region == c->from->main_region ? tn_graph_input_default(c->from, arg) : NULL;
        if (value)
            TN_TRY(tn_graph_set_input_default(c->to, a, value));
    }
    tn_value *results = tn_alloc_array(c->to->heap, n_results + 1, sizeof *results);
    if (!results)
        return TN_ERR_MEMORY;
    tn_graph_insert_at_end(c->to, (tn_region){to_region});
    tn_status status = copy_nodes(c, from_region, n_results, results);
    if (status == TN_OK)
        status = tn_region_return(c->to, (tn_region){to_region}, n_results, results);
    tn_free(c->to->heap, results);
    return status;
}

static tn_status clone_all(copier *c) {
    tn_graph *to = c->to;
    TN_TRY(clone_tables(to, c->from));
    for (uint32_t i = 0; i < c->from->function.len; i++) {
        tn_region region = tn_region_create(to);
        if (!region.id)
            return tn_graph_check(to);
        TN_TRY(clone_region(c, c->from->function.data[i].region, region.id));
        if (tn_graph_add_function(to, tn_strings_text(&c->from->strings, c->from->function.data[i].name), region) ==
            UINT32_MAX)
            return tn_graph_check(to);
    }
    TN_TRY(clone_region(c, c->from->main_region, to->main_region));
    for (uint32_t i = 0; i < c->from->output_name.len; i++) {
        uint32_t s = c->from->output_name.data[i];
        uint32_t id = tn_strings_add(&to->strings, tn_strings_text(&c->from->strings, s),
                                     tn_strings_length(&c->from->strings, s));
        if (id == UINT32_MAX || !tn_vec_push(to->heap, &to->output_name, id))
            return TN_ERR_MEMORY;
    }
    to->at_location = 0;
    tn_graph_insert_at_end(to, (tn_region){to->main_region});
    return TN_OK;
}

tn_graph *tn_graph_clone(const tn_graph *from, uint32_t **value_map, uint32_t **node_map) {
    if (value_map)
        *value_map = NULL;
    if (node_map)
        *node_map = NULL;
    if (tn_graph_check(from) != TN_OK)
        return NULL;
    tn_graph *to = tn_graph_new(from->heap, from->ops);
    if (!to)
        return NULL;
    copier c;
    bool ok = copier_init(&c, to, from);
    c.exact = true;
    c.node = tn_alloc_array(from->heap, from->node.len, sizeof *c.node);
    ok = ok && c.node && clone_all(&c) == TN_OK;
    if (ok && value_map) {
        *value_map = c.value;
        c.value = NULL;
    }
    if (ok && node_map) {
        *node_map = c.node;
        c.node = NULL;
    }
    tn_free(from->heap, c.node);
    copier_free(&c);
    if (ok)
        return to;
    tn_error_record error;
    tn_error_save(&error);
    tn_graph_destroy(to);
    tn_error_restore(&error);
    return NULL;
}
