/* What is refused before anything is expanded: operators that nobody knows, all in one message; functions that call themselves;
   more nodes than are allowed once functions are inlined; bodies of the wrong form. On the way, random nodes are given seeds. */
#include "onnx/expander.h"

#include <inttypes.h>
#include <stdio.h>

/* One operator that is not supported. */
typedef struct missing {
    char domain[128];
    const char *name;
    int version;
    const char *why;
    uint32_t count;
    uint32_t nodes[3]; /* the first ones */
} missing;

typedef struct check {
    tn_expander *ex;
    const tn_graph *graph;
    TN_VEC(missing) missing;
    uint64_t *size; /* by function: nodes after inlining, 0: not known yet */
    uint8_t *state; /* by function: 1 on the path, 2 done */
    int depth;
    bool seeds;          /* note: */
    tn_u32_vec unseeded; /* random nodes without a seed; where there is one, calls of functions too */
    tn_u32_vec calls;
} check;

/* --- operators ------------------------------------------------------------------------------------------------------------------- */

static tn_status add_missing(check *c, tn_node node, const tn_onnx_identity *id) {
    for (uint32_t i = 0; i < c->missing.len; i++) {
        missing *m = &c->missing.data[i];
        if (m->version == id->version && strcmp(m->name, id->name) == 0 && strcmp(m->domain, id->domain) == 0) {
            if (m->count < 3)
                m->nodes[m->count] = node.id;
            m->count++;
            return TN_OK;
        }
    }
    if (c->missing.len == 1000) /* the message ends long before */
        return TN_OK;
    missing m = {.name = id->name, .version = id->version, .count = 1, .nodes = {node.id}};
    memcpy(m.domain, id->domain, sizeof m.domain);
    if (id->other_version || tn_onnx_find_any(id->domain, id->name))
        m.why = id->version < 1 ? "" : "not in this version";
    else if (tn_onnx_left_out(id->domain, id->name))
        m.why = "left out of this build";
    return tn_vec_push(c->ex->graph->heap, &c->missing, m) ? TN_OK : tn_error_status();
}

static void describe(const check *c, const missing *m, tn_text *out) {
    tn_text_printf(out, "%s (domain %s, version %d%s%s; %s", m->name, *m->domain ? m->domain : "ai.onnx", m->version,
                   m->why ? ", " : "", m->why ? m->why : "", m->count == 1 ? "node" : "nodes");
    for (uint32_t i = 0; i < m->count && i < 3; i++)
        tn_text_printf(out, "%s '%s'", i ? "," : "", tn_node_name(c->graph, (tn_node){m->nodes[i]}));
    if (m->count > 3)
        tn_text_printf(out, " and %" PRIu32 " more", m->count - 3);
    tn_text_add(out, ")");
}

/* --- forms of bodies ------------------------------------------------------------------------------------------------------------- */

static tn_status bad_form(const check *c, tn_node node, const char *format, uint32_t a, uint32_t b) {
    char text[160];
    snprintf(text, sizeof text, format, a, b);
    (void)tn_fail(TN_ERR_MODEL, "%s: %s", tn_node_op_name(c->graph, node) + sizeof "onnx." - 1, text);
    tn_fail_at_node(c->graph, node);
    return TN_ERR_MODEL;
}

static tn_status check_if(const check *c, tn_node node) {
    uint32_t outputs = tn_node_output_count(c->graph, node);
    uint32_t then_results = tn_region_result_count(c->graph, tn_node_region(c->graph, node, 0));
    uint32_t else_results = tn_region_result_count(c->graph, tn_node_region(c->graph, node, 1));
    if (then_results != else_results)
        return bad_form(c, node, "the branches of If give %" PRIu32 " and %" PRIu32 " values", then_results,
                        else_results);
    for (uint32_t i = 0; i < 2; i++) {
        tn_region r = tn_node_region(c->graph, node, i);
        if (tn_region_arg_count(c->graph, r))
            return bad_form(c, node, "branch %" PRIu32 " of If declares %" PRIu32 " inputs; branches have none", i,
                            tn_region_arg_count(c->graph, r));
        if (tn_region_result_count(c->graph, r) != outputs)
            return bad_form(c, node, "a branch of If gives %" PRIu32 " values, the node has %" PRIu32 " outputs",
                            tn_region_result_count(c->graph, r), outputs);
    }
    return TN_OK;
}

static tn_status check_loop(const check *c, tn_node node) {
    uint32_t inputs = tn_onnx_input_count(c->graph, node), outputs = tn_node_output_count(c->graph, node);
    tn_region r = tn_node_region(c->graph, node, 0);
    uint32_t args = tn_region_arg_count(c->graph, r), results = tn_region_result_count(c->graph, r);
    uint32_t carried = inputs > 2 ? inputs - 2 : 0;
    if (args != carried + 2)
        return bad_form(c, node, "the body of Loop takes %" PRIu32 " values, it is given %" PRIu32, args, carried + 2);
    if (results < carried + 1 || outputs != results - 1)
        return bad_form(c, node, "the body of Loop gives %" PRIu32 " values, the node has %" PRIu32 " outputs", results,
                        outputs);
    return TN_OK;
}

static tn_status check_scan(const check *c, tn_node node, int version) {
    uint32_t inputs = tn_onnx_input_count(c->graph, node), outputs = tn_node_output_count(c->graph, node);
    tn_region r = tn_node_region(c->graph, node, 0);
    uint32_t given = version < 9 && inputs ? inputs - 1 : inputs; /* Scan of operator set 8 begins with sequence_lens */
    if (tn_region_arg_count(c->graph, r) != given)
        return bad_form(c, node, "the body of Scan takes %" PRIu32 " values, it is given %" PRIu32,
                        tn_region_arg_count(c->graph, r), given);
    if (tn_region_result_count(c->graph, r) != outputs)
        return bad_form(c, node, "the body of Scan gives %" PRIu32 " values, the node has %" PRIu32 " outputs",
                        tn_region_result_count(c->graph, r), outputs);
    return TN_OK;
}

static tn_status check_form(const check *c, tn_node node, const tn_onnx_identity *id) {
    uint32_t regions = tn_node_region_count(c->graph, node);
    if (*id->domain || !id->row)
        return TN_OK;
    if (regions != (uint32_t)id->row->op.regions)
        return bad_form(c, node, "the node has %" PRIu32 " graphs, its operator %" PRIu32, regions,
                        (uint32_t)id->row->op.regions);
    if (strcmp(id->name, "If") == 0)
        return check_if(c, node);
    if (strcmp(id->name, "Loop") == 0)
        return check_loop(c, node);
    if (strcmp(id->name, "Scan") == 0)
        return check_scan(c, node, id->version);
    return TN_OK;
}

/* --- seeds ------------------------------------------------------------------------------------------------------------------------ */

static tn_status note(check *c, tn_node node, bool call) {
    if (!c->seeds || tn_node_attr(c->graph, node, TN_ONNX_SEED) || (!call && tn_node_attr(c->graph, node, "seed")))
        return TN_OK;
    return tn_vec_push(c->ex->graph->heap, call ? &c->calls : &c->unseeded, node.id) ? TN_OK : tn_error_status();
}

/* `met`: how often each first seed was given. */
static tn_status give(tn_graph *g, tn_node node, tn_map *met) {
    uint64_t times = 0, first = (uint64_t)tn_onnx_seed(g, node, 0);
    tn_map_get(met, first, &times);
    if (!tn_map_put(g->heap, met, first, times + 1))
        return tn_error_status();
    return tn_node_add_attr(g, node, &TN_A_INT(TN_ONNX_SEED, tn_onnx_seed(g, node, times)));
}

static tn_status give_seeds(const check *c) {
    tn_graph *g = c->ex->graph;
    tn_map met = {0};
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < c->unseeded.len && status == TN_OK; i++)
        status = give(g, (tn_node){c->unseeded.data[i]}, &met);
    for (uint32_t i = 0; i < c->calls.len && c->unseeded.len && status == TN_OK; i++)
        status = give(g, (tn_node){c->calls.data[i]}, &met);
    tn_map_free(g->heap, &met);
    return status;
}

/* --- the walk -------------------------------------------------------------------------------------------------------------------- */

static uint64_t add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static tn_status walk_region(check *c, tn_region region, uint64_t *size);

static tn_status walk_function(check *c, uint32_t function, tn_node call, uint64_t *size) {
    const tn_graph *graph = c->graph;
    if (c->state[function] == 2) {
        *size = c->size[function];
        return TN_OK;
    }
    const char *name = tn_strings_text(&graph->strings, graph->function.data[function].name);
    if (c->state[function] == 1 || c->depth == TN_MAX_NESTING) {
        tn_status status = c->state[function] == 1
                               ? tn_fail(TN_ERR_MODEL, "function '%s' calls itself, directly or through others", name)
                               : tn_fail(TN_ERR_LIMIT, "functions call each other deeper than %d", TN_MAX_NESTING);
        if (call.id)
            tn_fail_at_node(graph, call);
        return status;
    }
    c->state[function] = 1;
    c->depth++;
    tn_status status = walk_region(c, tn_graph_function_region(graph, function), size);
    c->depth--;
    c->state[function] = 2;
    c->size[function] = *size;
    return status;
}

static tn_status walk_region(check *c, tn_region region, uint64_t *size) {
    const tn_graph *g = c->graph;
    *size = 0;
    for (tn_node n = tn_region_first(g, region); n.id; n = tn_node_next(g, n)) {
        uint64_t inner = 0;
        *size = add(*size, 1);
        for (uint32_t i = 0; i < tn_node_region_count(g, n); i++) {
            TN_TRY(walk_region(c, tn_node_region(g, n, i), &inner));
            *size = add(*size, inner);
        }
        if (!tn_node_is_onnx(g, n))
            continue;
        tn_onnx_identity id;
        TN_TRY(tn_onnx_identify(c->ex, g, n, &id));
        if (id.function != UINT32_MAX) {
            TN_TRY(note(c, n, true));
            TN_TRY(walk_function(c, id.function, n, &inner));
            *size = add(*size, inner);
        } else if (id.custom) {
            continue;
        } else if (!id.row || (!id.row->expand && !id.row->host)) {
            TN_TRY(add_missing(c, n, &id));
        } else {
            if (id.row->flags & TN_ONNX_RANDOM)
                TN_TRY(note(c, n, false));
            TN_TRY(check_form(c, n, &id));
        }
    }
    return TN_OK;
}

static tn_status begin(check *c, tn_expander *ex) {
    uint32_t n = ex->graph->function.len;
    *c = (check){.ex = ex, .graph = ex->graph};
    c->size = tn_alloc_array(ex->graph->heap, n, sizeof *c->size);
    c->state = tn_alloc(ex->graph->heap, n);
    return c->size && c->state ? TN_OK : tn_error_status();
}

static void end(check *c) {
    tn_heap *heap = c->ex->graph->heap;
    tn_free(heap, c->size);
    tn_free(heap, c->state);
    tn_vec_free(heap, &c->missing);
    tn_vec_free(heap, &c->unseeded);
    tn_vec_free(heap, &c->calls);
}

static tn_status refuse_missing(const check *c) {
    tn_text text;
    tn_text_init(&text, c->ex->graph->heap);
    for (uint32_t i = 0; i < c->missing.len; i++) {
        tn_text_add(&text, i ? "; " : "");
        describe(c, &c->missing.data[i], &text);
    }
    tn_status status = text.failed ? tn_error_status()
                                   : tn_fail(TN_ERR_UNSUPPORTED, "not supported: %" PRIu32 " operator%s: %s",
                                             c->missing.len, c->missing.len == 1 ? "" : "s", text.data);
    tn_text_free(&text);
    return status;
}

tn_status tn_onnx_check(tn_expander *ex) {
    check c;
    uint64_t size = 0;
    tn_status status = begin(&c, ex);
    c.seeds = true;
    if (status == TN_OK)
        status = walk_region(&c, tn_graph_region(c.graph), &size);
    if (status == TN_OK && c.missing.len)
        status = refuse_missing(&c);
    if (status == TN_OK && size > ex->budget) {
        status = tn_fail(TN_ERR_LIMIT, "the model has more than %" PRIu64 " nodes once its functions are inlined",
                         ex->budget);
        tn_fail_hint("raise the limit on nodes if the file is to be trusted");
    }
    if (status == TN_OK)
        status = give_seeds(&c);
    end(&c);
    return status;
}

tn_status tn_onnx_give_seeds(tn_graph *graph) {
    tn_expander ex;
    check c;
    uint64_t size = 0;
    TN_TRY(tn_expander_init(&ex, graph, 0));
    tn_status status = begin(&c, &ex);
    c.seeds = true;
    if (status == TN_OK)
        status = walk_region(&c, tn_graph_region(graph), &size);
    if (status == TN_OK)
        status = give_seeds(&c);
    end(&c);
    tn_expander_free(&ex);
    return status;
}

tn_status tn_onnx_list_unsupported(tn_graph *graph, tn_text *out, uint32_t *count) {
    tn_expander ex;
    check c;
    uint64_t size;
    *count = 0;
    TN_TRY(tn_expander_init(&ex, graph, 0));
    tn_status status = begin(&c, &ex);
    if (status == TN_OK)
        status = walk_region(&c, tn_graph_region(c.graph), &size);
    for (uint32_t i = 0; status == TN_OK && i < c.missing.len; i++) {
        describe(&c, &c.missing.data[i], out);
        tn_text_add(out, "\n");
    }
    *count = c.missing.len;
    if (status == TN_OK && out->failed)
        status = tn_error_status();
    end(&c);
    tn_expander_free(&ex);
    return status;
}
