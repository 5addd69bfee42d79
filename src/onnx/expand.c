/* The driver: goes over the ONNX nodes of a graph in order and lets each node's row put primitives in its place. */
#include "onnx/contract.h"
#include "onnx/custom.h"

#include <inttypes.h>
#include <stdio.h>

/* --- state ------------------------------------------------------------------------------------------------------------------------- */

static uint64_t domain_key(const char *domain) {
    return tn_hash_bytes(domain, strlen(domain), 1);
}

static tn_status read_metadata(tn_expander *ex) {
    const tn_graph *g = ex->graph;
    for (uint32_t i = 0; i < g->metadata.len; i++) {
        const char *key = tn_strings_text(&g->strings, g->metadata.data[i].key);
        if (strncmp(key, TN_META_OPSET, sizeof TN_META_OPSET - 1) == 0) {
            const char *domain = key + sizeof TN_META_OPSET - 1;
            uint64_t version = 0;
            for (const char *t = tn_strings_text(&g->strings, g->metadata.data[i].value);
                 *t >= '0' && *t <= '9' && version < 1000000000; t++)
                version = version * 10 + (uint64_t)(*t - '0');
            if (!tn_map_put(g->heap, &ex->opsets, domain_key(strcmp(domain, "ai.onnx") == 0 ? "" : domain), version))
                return tn_error_status();
        }
    }
    return TN_OK;
}

/* Functions that hold ONNX nodes are named "domain.Name"; those that passes and composites made are not called by ONNX nodes. */
static tn_status read_functions(tn_expander *ex) {
    for (uint32_t f = 0; f < ex->graph->function.len; f++)
        if (!tn_map_put(ex->graph->heap, &ex->functions, ex->graph->function.data[f].name, f + 1u))
            return tn_error_status();
    return TN_OK;
}

tn_status tn_expander_init(tn_expander *ex, tn_graph *graph, uint64_t max_nodes) {
    *ex = (tn_expander){.graph = graph, .budget = max_nodes ? max_nodes : TN_ONNX_MAX_NODES};
    tn_text_init(&ex->warnings, graph->heap);
    tn_arena_init(&ex->claim_text, graph->heap);
    tn_status status = read_metadata(ex);
    if (status == TN_OK)
        status = read_functions(ex);
    if (status != TN_OK)
        tn_expander_free(ex);
    return status;
}

void tn_expander_free(tn_expander *ex) {
    tn_heap *heap = ex->graph->heap;
    tn_map_free(heap, &ex->opsets);
    tn_map_free(heap, &ex->functions);
    tn_map_free(heap, &ex->claims);
    tn_arena_free(&ex->claim_text);
    tn_text_free(&ex->warnings);
}

/* --- what a node is ------------------------------------------------------------------------------------------------------------------- */

static uint32_t find_function(const tn_expander *ex, const char *domain, const char *name, const tn_attr *overload) {
    char full[512];
    uint64_t found;
    int n = overload ? snprintf(full, sizeof full, "%s.%s:%.*s", domain, name, (int)overload->as.s.length,
                                overload->as.s.data)
                     : snprintf(full, sizeof full, "%s.%s", domain, name);
    uint32_t id = n < (int)sizeof full ? tn_strings_find(&ex->graph->strings, full, (size_t)n) : UINT32_MAX;
    if (id == UINT32_MAX || !tn_map_get(&ex->functions, id, &found))
        return UINT32_MAX;
    return (uint32_t)found - 1;
}

uint32_t tn_onnx_input_count(const tn_graph *g, tn_node node) {
    const tn_attr *captures = tn_node_attr(g, node, "__captures");
    uint32_t inputs = tn_node_input_count(g, node);
    return captures && captures->as.i > 0 && captures->as.i <= inputs ? inputs - (uint32_t)captures->as.i : inputs;
}

tn_value tn_onnx_trip(const tn_graph *g, tn_node node) {
    uint32_t inputs = tn_node_input_count(g, node);
    return inputs && tn_node_attr(g, node, TN_ONNX_TRIP) ? tn_node_input(g, node, inputs - 1) : (tn_value){0};
}

bool tn_onnx_draws(const tn_expander *ex, const tn_graph *g, tn_node node) {
    tn_onnx_identity id;
    if (tn_node_is_onnx(g, node) && tn_onnx_identify(ex, g, node, &id) == TN_OK &&
        ((id.row && (id.row->flags & TN_ONNX_RANDOM)) || id.function != UINT32_MAX))
        return true;
    for (uint32_t i = 0; i < tn_node_region_count(g, node); i++)
        for (tn_node n = tn_region_first(g, tn_node_region(g, node, i)); n.id; n = tn_node_next(g, n))
            if (tn_onnx_draws(ex, g, n))
                return true;
    return false;
}

tn_status tn_onnx_identify(const tn_expander *ex, const tn_graph *g, tn_node node, tn_onnx_identity *out) {
    const char *name = tn_node_op_name(g, node) + sizeof "onnx." - 1, *dot = strrchr(name, '.');
    size_t length = dot ? (size_t)(dot - name) : 0;
    uint64_t version;
    *out = (tn_onnx_identity){.name = dot ? dot + 1 : name, .function = UINT32_MAX};
    if (length >= sizeof out->domain)
        return tn_fail(TN_ERR_UNSUPPORTED, "not supported: an operator domain of %zu bytes", length);
    memcpy(out->domain, name, length);
    const tn_attr *own = tn_node_attr(g, node, "__opset"), *overload = tn_node_attr(g, node, "__overload");
    if (own && own->as.i > 0 && own->as.i < INT32_MAX)
        out->version = (int)own->as.i;
    else if (tn_map_get(&ex->opsets, domain_key(out->domain), &version))
        out->version = (int)version;
    else
        out->version = tn_onnx_newest(out->domain);
    if (!tn_onnx_find_any(out->domain, out->name))
        out->custom =
            tn_custom_find(g->ops, out->domain, strlen(out->domain), out->name, out->version, &out->other_version);
    if (out->custom)
        return TN_OK;
    if (*out->domain || !tn_onnx_find_any("", out->name))
        out->function = find_function(ex, out->domain, out->name, overload);
    if (out->function == UINT32_MAX && !*out->domain && !tn_onnx_find_any("", out->name))
        out->function = find_function(ex, "ai.onnx", out->name, overload);
    if (out->function == UINT32_MAX)
        out->row = tn_onnx_find(out->domain, out->name, out->version);
    return TN_OK;
}

/* --- replacing a node ----------------------------------------------------------------------------------------------------------------- */

static tn_status replace(tn_expander *ex, tn_node node, const tn_value *out) {
    tn_graph *g = ex->graph;
    for (uint32_t i = 0; i < tn_node_output_count(g, node); i++) {
        tn_value old = tn_node_output(g, node, i);
        if (!out[i].id) {
            if (tn_value_use_count(g, old) == 0)
                continue;
            tn_fail(TN_ERR_UNSUPPORTED, "not supported: output %" PRIu32 " of %s", i, tn_node_op_name(g, node));
            tn_fail_at_node(g, node);
            return TN_ERR_UNSUPPORTED;
        }
        tn_declared_compare(ex, node, old, out[i], false);
        const char *name = tn_value_name(g, old);
        if (*name && !*tn_value_name(g, out[i]))
            TN_TRY(tn_value_set_name(g, out[i], name));
        TN_TRY(tn_value_replace_uses(g, old, out[i]));
    }
    return tn_node_remove(g, node);
}

/* Takes back what was built between `before` (null: the region's start) and `node`, and regions without owner from `regions` on. */
static tn_status take_back(tn_expander *ex, tn_node before, tn_node node, uint32_t regions) {
    static const tn_op trash = {.name = "onnx.__trash",
                                .dialect = TN_DIALECT_ONNX,
                                .max_inputs = -1,
                                .max_outputs = -1,
                                .regions = -1,
                                .traits = TN_CONTROL,
                                .infer = tn_onnx_infer};
    tn_graph *g = ex->graph;
    for (uint32_t r = regions; r < g->region.len; r++) {
        tn_region region = {r};
        bool function = false;
        for (uint32_t f = 0; f < g->function.len; f++)
            function = function || g->function.data[f].region == r;
        if (!g->region.data[r].alive || g->region.data[r].owner || function)
            continue;
        tn_graph_insert_before(g, node);
        tn_node owner = tn_graph_add_node(g, &(tn_node_desc){.op = &trash, .region_count = 1, .regions = &region});
        if (!owner.id)
            return tn_graph_check(g);
        TN_TRY(tn_node_remove(g, owner));
    }
    for (tn_node n = tn_node_previous(g, node); n.id && n.id != before.id;) {
        tn_node previous = tn_node_previous(g, n);
        TN_TRY(tn_node_remove(g, n));
        n = previous;
    }
    return TN_OK;
}

/* --- one node ---------------------------------------------------------------------------------------------------------------------------- */

/* Unless the row takes such inputs, a node with one of unknown type or rank waits. */
static const char *must_wait(tn_expand *x) {
    if (x->row->flags & TN_ONNX_UNRANKED)
        return NULL;
    for (uint32_t i = 0; i < x->inputs; i++) {
        tn_value v = x->in[i].value;
        if (v.id && (tn_value_rank(x->graph, v) < 0 || !tn_value_dtype(x->graph, v)))
            return "needs the dtype and rank of its inputs";
    }
    return NULL;
}

static tn_status run_host(tn_expand *x) {
    tn_value *in = tn_expand_alloc(x, x->inputs, sizeof *in);
    if (!in)
        return tn_error_status();
    for (uint32_t i = 0; i < x->inputs; i++)
        in[i] = tn_expand_input(x, i);
    tn_node made = tn_graph_add_node(x->graph, &(tn_node_desc){.op = x->row->host,
                                                               .name = tn_node_name(x->graph, x->node),
                                                               .input_count = x->inputs,
                                                               .inputs = in,
                                                               .output_count = x->outputs,
                                                               .attr_count = x->attr_count,
                                                               .attrs = x->attrs});
    for (uint32_t i = 0; made.id && i < x->outputs; i++)
        TN_TRY(tn_expand_set(x, i, tn_node_output(x->graph, made, i)));
    return tn_graph_check(x->graph);
}

/* "tn_add: ..." of a builder becomes "Add: ...", "dot: ..." of a primitive "Attention: dot: ...": who reads it has a file, and knows
   neither functions nor primitives. What names an operator already stays. */
static void name_operator(const tn_graph *g, tn_error_record *error, const char *op) {
    char what[sizeof error->what];
    size_t name = strspn(error->what, "abcdefghijklmnopqrstuvwxyz0123456789_");
    bool builder = strncmp(error->what, "tn_", 3) == 0;
    if (error->what[name] != ':' || (!builder && !tn_op_find(g->ops, error->what, name)))
        return;
    snprintf(what, sizeof what, "%.100s%s%.900s", op, builder ? "" : ": ", error->what + (builder ? name : 0));
    memcpy(error->what, what, sizeof what);
}

/* Runs the row's expansion; x->late says that it was put off. */
static tn_status run_row(tn_expand *x) {
    tn_graph *g = x->graph;
    TN_TRY(tn_onnx_normalize(x));
    TN_TRY(tn_expand_check_inputs(x));
    x->late = must_wait(x);
    x->out = tn_expand_alloc(x, x->outputs, sizeof *x->out);
    if (!x->out)
        return tn_error_status();
    if (x->late)
        return TN_OK;
    tn_graph_insert_before(g, x->node);
    tn_status status = x->row->expand ? x->row->expand(x) : run_host(x);
    if (status == TN_OK && !x->final && !tn_expand_holds(x))
        status = tn_expand_later(x, "needs the sizes of its inputs");
    if (status == TN_EXPAND_LATER)
        return tn_graph_check(g);
    x->late = NULL; /* it went on without what it asked for */
    if (status == TN_OK)
        status = tn_graph_check(g);
    if ((status == TN_ERR_USAGE || status == TN_ERR_MODEL) && g->stuck) {
        /* a builder's refusal of what the model says: operands that do not fit */
        g->error.status = status = TN_ERR_MODEL;
        name_operator(g, &g->error, x->row->name);
        (void)tn_error_restore(&g->error);
    }
    return status;
}

/* Puts the function's nodes before the call; *next is the first of them. */
static tn_status inline_call(tn_expander *ex, tn_node node, uint32_t function, tn_node *next) {
    tn_graph *g = ex->graph;
    tn_region body = tn_graph_function_region(ex->graph, function);
    uint32_t args = tn_region_arg_count(ex->graph, body), results = tn_region_result_count(ex->graph, body);
    uint32_t inputs = tn_onnx_input_count(g, node), outputs = tn_node_output_count(g, node);
    tn_onnx_copier c = {.to = g,
                        .from = ex->graph,
                        .caller_graph = g,
                        .caller = node,
                        .budget = &ex->budget,
                        .driver = ex,
                        .trip = tn_onnx_trip(g, node)};
    if (inputs > args || outputs > results) {
        tn_fail(TN_ERR_MODEL,
                "a call with %" PRIu32 " inputs and %" PRIu32 " outputs of a function with %" PRIu32 " and %" PRIu32,
                inputs, outputs, args, results);
        tn_fail_at_node(g, node);
        return TN_ERR_MODEL;
    }
    tn_value *out = tn_alloc_array(g->heap, results, sizeof *out);
    tn_status status = out ? TN_OK : tn_error_status();
    for (uint32_t i = 0; i < args && status == TN_OK; i++) {
        tn_value given = i < inputs ? tn_node_input(g, node, i) : (tn_value){0};
        if (!tn_map_put(g->heap, &c.values, tn_region_arg(ex->graph, body, i).id, given.id))
            status = tn_error_status();
        tn_declared_compare(ex, node, tn_region_arg(ex->graph, body, i), given, false);
    }
    tn_node before = tn_node_previous(g, node);
    tn_region region = tn_node_parent(g, node);
    tn_graph_insert_before(g, node);
    if (status == TN_OK)
        status = tn_onnx_copy_region(&c, body, results, out);
    if (status == TN_OK) {
        *next = before.id ? tn_node_next(g, before) : tn_region_first(g, region);
        bool empty = next->id == node.id;
        tn_node after = tn_node_next(g, node);
        status = replace(ex, node, out);
        if (empty)
            *next = after;
    }
    if (status != TN_OK && tn_node_is_alive(g, node))
        tn_fail_where("in the function called by node '%s'", tn_node_name(g, node));
    tn_onnx_copier_free(&c);
    tn_free(g->heap, out);
    return status;
}

/* Calls in a region and inside. */
static tn_status inline_region(tn_expander *ex, tn_region region, int depth) {
    tn_graph *g = ex->graph;
    if (depth > TN_MAX_NESTING)
        return tn_fail(TN_ERR_LIMIT, "regions are nested deeper than %d", TN_MAX_NESTING);
    for (tn_node n = tn_region_first(g, region), next; n.id; n = next) {
        tn_onnx_identity id = {.function = UINT32_MAX};
        next = tn_node_next(g, n);
        if (tn_node_is_onnx(g, n))
            TN_TRY(tn_onnx_identify(ex, g, n, &id));
        if (id.function != UINT32_MAX) {
            TN_TRY(inline_call(ex, n, id.function, &next));
            continue;
        }
        for (uint32_t i = 0; i < tn_node_region_count(g, n); i++)
            TN_TRY(inline_region(ex, tn_node_region(g, n, i), depth + 1));
    }
    return TN_OK;
}

/* Calls inside the regions of a node that waits: what runs later knows no functions. */
static tn_status inline_inside(tn_expander *ex, tn_node node) {
    for (uint32_t i = 0; i < tn_node_region_count(ex->graph, node); i++)
        TN_TRY(inline_region(ex, tn_node_region(ex->graph, node, i), 1));
    return TN_OK;
}

/* Whether something that was built between `before` and `node` has no way back to an ONNX operator. */
static bool is_one_way(const tn_graph *g, tn_node before, tn_node node) {
    if (tn_node_region_count(g, node))
        return false;
    for (tn_node n = tn_node_previous(g, node); n.id && n.id != before.id; n = tn_node_previous(g, n))
        if (tn_contract_is_one_way(g, n))
            return true;
    return false;
}

/* The node stays, with the types that its outputs turned out to have. */
static tn_status stay(tn_expander *ex, tn_node before, tn_node node, uint32_t regions, const tn_value *out) {
    tn_graph *g = ex->graph;
    for (uint32_t i = 0; i < tn_node_output_count(g, node); i++) {
        tn_value value = tn_node_output(g, node, i);
        if (out[i].id)
            TN_TRY(tn_value_set_type(g, value, tn_value_type(g, out[i])));
    }
    TN_TRY(take_back(ex, before, node, regions));
    for (uint32_t i = 0; i < tn_node_output_count(g, node); i++) { /* what defined the symbols is gone: these do now */
        tn_value value = tn_node_output(g, node, i);
        TN_TRY(tn_value_set_type(g, value, tn_value_type(g, value)));
    }
    return TN_OK;
}

/* The node waits: its outputs have the types that are known of them already. */
static tn_status wait_until_run(tn_expand *x, tn_node before, uint32_t regions) {
    tn_graph *g = x->graph;
    tn_type *types = tn_expand_alloc(x, x->outputs + 1u, sizeof *types);
    if (!types)
        return tn_error_status();
    tn_graph_insert_before(g, x->node);
    TN_TRY(tn_expand_foresee(x, types));
    TN_TRY(take_back(x->driver, before, x->node, regions));
    for (uint32_t i = 0; i < tn_node_output_count(g, x->node) && i < x->outputs; i++) {
        tn_value value = tn_node_output(g, x->node, i);
        if (types[i].id && !tn_value_type(g, value).id)
            TN_TRY(tn_value_set_type(g, value, types[i]));
    }
    return TN_OK;
}

static tn_status expand_row(tn_expander *ex, tn_node node, const tn_onnx_identity *id) {
    tn_graph *g = ex->graph;
    tn_arena scratch;
    tn_arena_init(&scratch, g->heap);
    tn_expand x = {.graph = g,
                   .node = node,
                   .row = id->row,
                   .version = id->version,
                   .driver = ex,
                   .scratch = &scratch,
                   .final = node.id == ex->late_node};
    tn_node before = tn_node_previous(g, node);
    uint32_t regions = g->region.len;
    tn_graph_at_location(g, tn_node_location(g, node));
    int depth = ex->depth;
    bool inside = ex->inside;
    tn_warnings_mark mark = tn_warnings_here(ex);
    ex->inside = inside || tn_explain_begins(ex, node);
    tn_status status = run_row(&x);
    ex->depth = depth;
    ex->inside = inside;
    bool passed_over = status != TN_OK && tn_explain_passes_over(ex, node, status);
    if (passed_over || x.late) /* what was built of it is taken back */
        tn_warnings_back_to(ex, mark);
    if (passed_over)
        status = take_back(ex, before, node, regions);
    else if (status == TN_OK && x.late && x.final)
        status = tn_expand_unsupported(&x, "%s %s, which is not known even at run time", id->name, x.late);
    else if (status == TN_OK && x.late)
        status = wait_until_run(&x, before, regions);
    else if (status == TN_OK && ex->writable && is_one_way(g, before, node))
        status = stay(ex, before, node, regions, x.out);
    else if (status == TN_OK)
        status = replace(ex, node, x.out);
    if (status == TN_OK && (x.late || passed_over))
        status = inline_inside(ex, node);
    tn_arena_free(&scratch);
    return status;
}

static tn_status expand_custom(tn_expander *ex, tn_node node, const tn_onnx_identity *id) {
    tn_value *out = tn_alloc_array(ex->graph->heap, tn_node_output_count(ex->graph, node) + 1u, sizeof *out);
    if (!out)
        return tn_error_status();
    tn_status status = tn_onnx_make_custom(ex, node, id, out);
    if (status == TN_OK)
        status = replace(ex, node, out);
    tn_free(ex->graph->heap, out);
    return status;
}

tn_status tn_expander_region(tn_expander *ex, tn_region region) {
    tn_graph *g = ex->graph;
    for (tn_node node = tn_region_first(g, region), next; node.id; node = next) {
        next = tn_node_next(g, node);
        if (!tn_node_is_onnx(g, node))
            continue;
        tn_onnx_identity id;
        TN_TRY(tn_onnx_identify(ex, g, node, &id));
        if (id.function != UINT32_MAX) {
            TN_TRY(inline_call(ex, node, id.function, &next));
        } else if (id.custom) {
            tn_status status = expand_custom(ex, node, &id);
            if (status != TN_OK && !tn_explain_passes_over(ex, node, status))
                return status;
        } else if (!id.row) {
            tn_fail(TN_ERR_UNSUPPORTED, "not supported: %s (domain %s, version %d%s)", id.name,
                    *id.domain ? id.domain : "ai.onnx", id.version,
                    tn_onnx_left_out(id.domain, id.name) ? ", left out of this build" : "");
            tn_fail_at_node(g, node);
            return TN_ERR_UNSUPPORTED;
        } else {
            TN_TRY(expand_row(ex, node, &id));
        }
    }
    return TN_OK;
}

/* Refuses values that no machine holds: at least TN_ONNX_MAX_VALUE bytes whatever the symbols are. */
static tn_status check_sizes(const tn_graph *g) {
    for (uint32_t v = 1; v < g->value.len; v++) {
        tn_value value = {v};
        int rank = tn_value_is_alive(g, value) ? tn_value_rank(g, value) : -1;
        double bytes = rank < 0 ? 0 : tn_dtype_bits(tn_value_dtype(g, value)) / 8.0;
        for (int i = 0; i < rank; i++) {
            int64_t low, high;
            tn_dim_bounds(g, tn_value_dim(g, value, i), &low, &high);
            bytes *= low > 0 ? (double)low : 0;
        }
        if (bytes < (double)TN_ONNX_MAX_VALUE)
            continue;
        char text[200];
        tn_fail(TN_ERR_LIMIT, "a value would take more than %" PRIu64 " GiB: %s", TN_ONNX_MAX_VALUE >> 30,
                tn_value_describe(g, value, text, sizeof text));
        if (tn_value_producer(g, value).id)
            tn_fail_at_node(g, tn_value_producer(g, value));
        return TN_ERR_LIMIT;
    }
    return TN_OK;
}

tn_status tn_expander_run(tn_graph *graph, uint64_t max_nodes, bool writable, const char *explain) {
    tn_expander ex;
    TN_TRY(tn_graph_changeable(graph));
    TN_TRY(tn_expander_init(&ex, graph, max_nodes));
    ex.writable = writable;
    ex.explain = explain;
    tn_status status = tn_onnx_check(&ex);
    const char *earlier = tn_graph_metadata(graph, TN_META_WARNINGS);
    tn_text_add(&ex.warnings, earlier ? earlier : "");
    if (status == TN_OK && !explain)
        status = tn_declared_collect(&ex);
    if (status == TN_OK)
        status = tn_expander_region(&ex, tn_graph_region(graph));
    if (status == TN_OK)
        status = check_sizes(graph);
    if (status == TN_OK && ex.warnings.failed)
        status = tn_fail(TN_ERR_MEMORY, "out of memory: warnings");
    if (status == TN_OK && ex.warnings.len)
        status = tn_graph_set_metadata(graph, TN_META_WARNINGS, ex.warnings.data, ex.warnings.len);
    if (status == TN_ERR_USAGE) { /* a builder was called wrongly because the file says so */
        tn_error_record error;
        tn_error_save(&error);
        error.status = TN_ERR_MODEL;
        status = tn_error_restore(&error);
    }
    if (status != TN_OK) {
        const char *file = tn_graph_metadata(graph, TN_META_FILE);
        if (file && *file)
            tn_fail_where("file %s", file);
    }
    tn_graph_insert_at_end(graph, tn_graph_region(graph));
    tn_graph_at_location(graph, 0);
    tn_expander_free(&ex);
    return status;
}

tn_status tn_onnx_expand(tn_graph *graph, uint64_t max_nodes) {
    return tn_expander_run(graph, max_nodes, false, NULL);
}

tn_status tn_onnx_expand_writable(tn_graph *graph, uint64_t max_nodes) {
    return tn_expander_run(graph, max_nodes, true, NULL);
}

tn_status tn_onnx_inline_calls(tn_graph *g, uint64_t max_nodes) {
    tn_expander ex;
    TN_TRY(tn_graph_changeable(g));
    TN_TRY(tn_expander_init(&ex, g, max_nodes));
    tn_status status = inline_region(&ex, tn_graph_region(g), 0);
    tn_graph_insert_at_end(g, tn_graph_region(g));
    tn_graph_at_location(g, 0);
    tn_expander_free(&ex);
    return status;
}

tn_status tn_onnx_use_defaults(tn_graph *g, uint32_t n_fed, const tn_value *fed) {
    TN_TRY(tn_graph_changeable(g));
    tn_graph_insert_before(g, tn_region_first(g, tn_graph_region(g)));
    tn_graph_at_location(g, 0);
    tn_map kept = {0};
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < n_fed && status == TN_OK; i++)
        status = tn_map_put(g->heap, &kept, fed[i].id, 0) ? TN_OK : tn_error_status();
    for (uint32_t i = 0; i < g->input_default.len && status == TN_OK; i++) {
        tn_value input = {g->input_default.data[i].value};
        if (!tn_value_use_count(g, input) || tn_map_get(&kept, input.id, NULL))
            continue;
        tn_value value = tn_graph_constant(g, g->input_default.data[i].tensor);
        status = value.id ? tn_value_set_name(g, value, tn_value_name(g, input)) : tn_graph_check(g);
        if (status == TN_OK)
            status = tn_value_replace_uses(g, input, value);
    }
    tn_map_free(g->heap, &kept);
    tn_graph_insert_at_end(g, tn_graph_region(g));
    return status;
}

tn_status tn_onnx_infer(tn_infer *c) {
    for (uint32_t i = 0; i < c->outputs; i++)
        c->type[i] = (tn_type){0};
    return TN_OK;
}
