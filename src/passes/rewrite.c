/* Local rewrites run to a bounded fixpoint: rows found by the operator of their root, nodes from a work list. */
#include "passes/names.h"

#define FIRINGS_PER_NODE \
    32 /* more than that many replacements for each node of the graph: they do not come to an end */
#define FIRINGS_AT_LEAST 1000

struct tn_rewriter {
    tn_graph *g;
    tn_pass_context *context; /* may be NULL */
    const tn_rewrite *rewrites;
    uint32_t count;
    tn_map by_root; /* operator row -> index of the first rewrite + 1 */
    uint32_t *next; /* by rewrite: the next one of the same root, + 1 */
    uint32_t any;   /* the first one without a root, + 1 */
    const tn_rewrite *current;
    tn_node node; /* at work */
    bool replaced;
    tn_u32_vec work;  /* nodes to look at */
    uint32_t at;      /* how many of them were */
    uint8_t *waiting; /* by node id: stands in `work` */
    uint32_t waiting_len;
    tn_purity purity;
    tn_symbol_map symbols;
    uint64_t sites;
};

tn_graph *tn_rewriter_graph(const tn_rewriter *r) {
    return r ? r->g : NULL;
}

void *tn_rewriter_user(const tn_rewriter *r) {
    return r && r->current ? r->current->user : NULL;
}

/* --- the work list ----------------------------------------------------------------------------------------------------------------- */

static tn_status enqueue(tn_rewriter *r, tn_node node) {
    tn_heap *heap = r->g->heap;
    if (node.id >= r->waiting_len) {
        uint32_t len = r->g->node.len + r->g->node.len / 2;
        uint8_t *waiting = tn_realloc(heap, r->waiting, len);
        if (!waiting)
            return tn_error_status();
        r->waiting = waiting;
        r->waiting_len = len;
    }
    if (r->waiting[node.id])
        return TN_OK;
    if (r->at > 4096 && r->at > r->work.len / 2) { /* what was looked at goes */
        memmove(r->work.data, r->work.data + r->at, (r->work.len - r->at) * sizeof *r->work.data);
        r->work.len -= r->at;
        r->at = 0;
    }
    if (!tn_vec_push(heap, &r->work, node.id))
        return tn_error_status();
    r->waiting[node.id] = 1;
    return TN_OK;
}

static tn_status enqueue_users(tn_rewriter *r, tn_value value) {
    for (tn_use u = tn_value_first_use(r->g, value); u.node.id; u = tn_use_next(r->g, u))
        TN_TRY(enqueue(r, u.node));
    return TN_OK;
}

static tn_status enqueue_region(tn_rewriter *r, tn_region region, int depth) {
    if (depth > 2 * TN_MAX_NESTING)
        return TN_OK;
    for (tn_node n = tn_region_first(r->g, region); n.id; n = tn_node_next(r->g, n)) {
        TN_TRY(enqueue(r, n));
        for (uint32_t i = 0; i < tn_node_region_count(r->g, n); i++)
            TN_TRY(enqueue_region(r, tn_node_region(r->g, n, i), depth + 1));
    }
    return TN_OK;
}

/* --- replacing --------------------------------------------------------------------------------------------------------------------- */

static tn_status fail_replace(const tn_rewriter *r, tn_status status, tn_node node, const char *why) {
    tn_fail(status, "rewrite '%s': %s", r->current->name, why);
    tn_fail_at_node(r->g, node);
    return status;
}

tn_status tn_rewrite_replace_output(tn_rewriter *r, tn_node node, uint32_t output, tn_value value) {
    tn_graph *g = tn_rewriter_graph(r);
    TN_TRY(tn_graph_changeable(g));
    if (!r->current || !tn_node_is_alive(g, node) || output >= tn_node_output_count(g, node))
        return tn_fail(TN_ERR_USAGE,
                       "tn_rewrite_replace: no rewrite is at work, or the node is dead or has no such output");
    tn_value old = tn_node_output(g, node, output);
    if (!tn_value_is_alive(g, value))
        return fail_replace(r, TN_ERR_USAGE, node, "the replacement is null, dead or of another graph");
    if (old.id == value.id)
        return TN_OK;
    tn_node maker = tn_value_producer(g, value);
    if (!tn_value_visible(g, value, node))
        return fail_replace(r, TN_ERR_USAGE, node, "the replacement is not defined before the node");
    bool agree;
    TN_TRY(tn_symbol_map_unify(g, &r->symbols, old, tn_value_type(g, value), &agree));
    if (!agree) {
        char a[200], b[200];
        tn_fail(TN_ERR_MODEL, "rewrite '%s' replaces %s by %s", r->current->name,
                tn_value_describe(g, old, a, sizeof a), tn_value_describe(g, value, b, sizeof b));
        tn_fail_at_node(g, node);
        tn_fail_hint("a replacement has the dtype and shape of what it replaces");
        return TN_ERR_MODEL;
    }
    TN_TRY(enqueue_users(r, old));
    TN_TRY(tn_value_replace_uses(g, old, value));
    TN_TRY(tn_value_note_symbols(g, value)); /* what defined them goes */
    const char *name = tn_value_name(g, old);
    if (maker.id && *name && !*tn_value_name(g, value))
        TN_TRY(tn_value_set_name(g, value, name));
    r->replaced = true;
    return TN_OK;
}

tn_status tn_rewrite_replace(tn_rewriter *r, tn_node node, tn_value value) {
    if (!r || (!value.id && tn_graph_check(r->g) != TN_OK))
        return r ? tn_error_status() : tn_fail(TN_ERR_USAGE, "tn_rewrite_replace: the rewriter is NULL");
    if (tn_node_output_count(r->g, node) != 1)
        return tn_fail(TN_ERR_USAGE, "tn_rewrite_replace: the node has %u outputs; use tn_rewrite_replace_output",
                       tn_node_output_count(r->g, node));
    return tn_rewrite_replace_output(r, node, 0, value);
}

tn_status tn_rewrite_near_miss(tn_rewriter *r, tn_node node, const char *why) {
    if (!r)
        return tn_fail(TN_ERR_USAGE, "tn_rewrite_near_miss: the rewriter is NULL");
    if (r->context && r->current)
        tn_pass_note(r->context, r->g, node, "%s did not fire: %s", r->current->name, why ? why : "");
    return TN_OK;
}

/* --- one firing --------------------------------------------------------------------------------------------------------------------- */

/* Whether a node may vanish because nothing uses it. One that gives a symbol its value may not: that is for dce to say. */
static bool removable(const tn_rewriter *r, tn_node node) {
    const tn_graph *g = r->g;
    const tn_op *op = tn_node_op(g, node);
    if (!op || (op->traits & TN_TERMINATOR) || tn_purity_is_ordered(&r->purity, g, node) ||
        (tn_purity_traits(&r->purity, g, node) & TN_EFFECT))
        return false;
    for (uint32_t i = 0; i < tn_node_output_count(g, node); i++) {
        tn_value v = tn_node_output(g, node, i);
        if (tn_value_use_count(g, v))
            return false;
        int rank = tn_value_rank(g, v);
        for (int d = 0; d < rank; d++) {
            const tn_dim_expr *e = &g->dims.expr.data[tn_value_dims(g, v)[d].id];
            if (e->kind == TN_DIM_SYMBOL && e->symbol < g->symbol_value.len && g->symbol_value.data[e->symbol] == v.id)
                return false;
        }
    }
    return true;
}

/* Removes nodes that nothing uses any more, from `list` on through their inputs; *location gathers where they came from. */
static tn_status remove_unused(tn_rewriter *r, tn_u32_vec *list, uint32_t *location) {
    tn_graph *g = r->g;
    while (list->len) {
        tn_node node = {list->data[--list->len]};
        if (!tn_node_is_alive(g, node) || !removable(r, node))
            continue;
        for (uint32_t i = 0; i < tn_node_input_count(g, node); i++) {
            tn_node maker = tn_value_producer(g, tn_node_input(g, node, i));
            if (maker.id && !tn_vec_push(g->heap, list, maker.id))
                return tn_error_status();
            if (maker.id) /* it has one use less: rewrites that ask for a single use may fire */
                TN_TRY(enqueue(r, maker));
        }
        *location = tn_location_union(g, *location, tn_node_location(g, node));
        TN_TRY(tn_node_remove(g, node));
    }
    return TN_OK;
}

static tn_status finish(tn_rewriter *r, tn_node node, uint32_t first_new) {
    tn_graph *g = r->g;
    tn_u32_vec list = {0};
    uint32_t location = tn_node_location(g, node);
    tn_status status = TN_OK;
    /* unused results of apply first: what it built in vain must not be taken for a use */
    uint32_t in_vain = 0;
    for (uint32_t id = first_new; id < g->node.len && status == TN_OK; id++)
        if (!tn_vec_push(g->heap, &list, id))
            status = tn_error_status();
    if (status == TN_OK)
        status = remove_unused(r, &list, &in_vain);
    if (status == TN_OK && r->replaced && !tn_vec_push(g->heap, &list, node.id))
        status = tn_error_status();
    if (status == TN_OK && r->replaced)
        status = remove_unused(r, &list, &location);
    tn_vec_free(g->heap, &list);
    for (uint32_t id = first_new; id < g->node.len && status == TN_OK; id++) {
        if (!g->node.data[id].op)
            continue;
        g->node.data[id].location =
            location; /* not where the code of the rewrite stands, which builders' macros note */
        status = enqueue(r, (tn_node){id});
    }
    return status;
}

static tn_status fire(tn_rewriter *r, const tn_rewrite *rewrite, tn_node node) {
    tn_graph *g = r->g;
    if (rewrite->condition && !rewrite->condition(g, node, rewrite->user))
        return TN_OK;
    uint32_t first_new = g->node.len;
    r->current = rewrite;
    r->replaced = false;
    tn_place place = tn_place_enter(g, node);
    tn_status status = rewrite->apply(r, node);
    if (status == TN_OK)
        status = tn_graph_check(g);
    tn_place_leave(g, place);
    if (status == TN_OK)
        status = finish(r, node, first_new);
    r->sites += r->replaced;
    r->current = NULL;
    if (status != TN_OK)
        tn_fail_where("in rewrite '%s'", rewrite->name);
    return status;
}

/* Tries the chain of rewrites that begins with `first` until one replaces the node. */
static tn_status try_chain(tn_rewriter *r, uint32_t first, tn_node node) {
    bool used = tn_node_output_count(r->g, node) == 0;
    for (uint32_t i = 0; i < tn_node_output_count(r->g, node); i++)
        used = used || tn_value_use_count(r->g, tn_node_output(r->g, node, i));
    if (!used) /* replaced already, or for dce */
        return TN_OK;
    for (uint32_t i = first; i && !r->replaced && tn_node_is_alive(r->g, node); i = r->next[i - 1])
        TN_TRY(fire(r, &r->rewrites[i - 1], node));
    return TN_OK;
}

/* --- the fixpoint ---------------------------------------------------------------------------------------------------------------------- */

static bool allowed(const tn_pass_context *c, const tn_rewrite *rewrite) {
    if (!c)
        return true;
    return c->level >= (rewrite->effect == TN_BIT_EXACT ? 1 : 2) && !tn_name_listed(c->disable, rewrite->name);
}

static tn_status index_roots(tn_rewriter *r) {
    tn_graph *g = r->g;
    for (uint32_t i = r->count; i-- > 0;) { /* backwards: chains keep the order of the list */
        const char *root = r->rewrites[i].root;
        if (!allowed(r->context, &r->rewrites[i]))
            continue;
        const tn_op *op = root ? tn_op_find(g->ops, root, strlen(root)) : NULL;
        if (!root) {
            r->next[i] = r->any;
            r->any = i + 1;
        } else if (op) {
            uint64_t first = 0;
            tn_map_get(&r->by_root, (uintptr_t)op, &first);
            r->next[i] = (uint32_t)first;
            if (!tn_map_put(g->heap, &r->by_root, (uintptr_t)op, i + 1))
                return tn_error_status();
        }
    }
    return TN_OK;
}

static tn_status fixpoint(tn_rewriter *r) {
    tn_graph *g = r->g;
    TN_TRY(enqueue_region(r, tn_graph_region(g), 0));
    for (uint32_t i = 0; i < g->function.len; i++)
        TN_TRY(enqueue_region(r, tn_graph_function_region(g, i), 0));
    uint64_t limit = (uint64_t)g->node.len * FIRINGS_PER_NODE + FIRINGS_AT_LEAST;
    while (r->at < r->work.len) {
        tn_node node = {r->work.data[r->at++]};
        r->waiting[node.id] = 0;
        uint64_t first = 0;
        if (!tn_node_is_alive(g, node))
            continue;
        r->replaced = false;
        tn_map_get(&r->by_root, (uintptr_t)tn_node_op(g, node), &first);
        TN_TRY(try_chain(r, (uint32_t)first, node));
        if (!r->replaced)
            TN_TRY(try_chain(r, r->any, node));
        if (r->sites > limit) {
            tn_fail(TN_ERR_LIMIT, "rewrites do not come to an end: %llu replacements", (unsigned long long)r->sites);
            tn_fail_hint("one of them makes what it, or another one, replaces again");
            return TN_ERR_LIMIT;
        }
    }
    return TN_OK;
}

static tn_status run_rewrites(tn_graph *g, tn_pass_context *context, uint32_t count, const tn_rewrite *rewrites,
                              uint64_t *sites) {
    tn_rewriter r = {.g = g, .context = context, .rewrites = rewrites, .count = count};
    tn_symbol_map_init(&r.symbols, g->heap);
    TN_TRY(tn_graph_changeable(g));
    TN_TRY(tn_purity_init(&r.purity, g));
    r.next = tn_alloc_array(g->heap, count, sizeof *r.next);
    tn_status status = r.next ? index_roots(&r) : tn_error_status();
    if (status == TN_OK && (r.any || r.by_root.len))
        status = fixpoint(&r);
    if (tn_graph_check(g) == TN_OK) { /* also after a failure: types and symbols agree again */
        tn_error_record error;
        tn_error_save(&error);
        tn_status applied = tn_symbol_map_apply(g, &r.symbols);
        if (status == TN_OK)
            status = applied;
        else
            tn_error_restore(&error);
    }
    *sites += r.sites;
    tn_symbol_map_free(&r.symbols);
    tn_map_free(g->heap, &r.by_root);
    tn_vec_free(g->heap, &r.work);
    tn_free(g->heap, r.waiting);
    tn_free(g->heap, r.next);
    tn_purity_free(&r.purity);
    return status;
}

tn_status tn_rewrites_run(tn_graph *g, tn_pass_context *context, uint32_t count, const tn_rewrite *rewrites) {
    return run_rewrites(g, context, count, rewrites, &context->sites);
}

tn_status tn_rewrites_check(const tn_graph *g, uint32_t count, const tn_rewrite *rewrites) {
    for (uint32_t i = 0; i < count; i++) {
        const tn_rewrite *r = &rewrites[i];
        if (!r->name || !*r->name || !r->apply)
            return tn_fail(TN_ERR_USAGE, "rewrite %u has no name, or no function that applies it", i);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(rewrites[k].name, r->name) == 0)
                return tn_fail(TN_ERR_USAGE, "two rewrites are called '%s'", r->name);
        /* those of ONNX are in the tables of graphs that come from there only */
        if (!r->root || strncmp(r->root, "onnx.", 5) == 0 || tn_op_find(g->ops, r->root, strlen(r->root)))
            continue;
        tn_fail(TN_ERR_USAGE, "rewrite '%s': there is no operator '%s'", r->name, r->root);
        uint32_t best = 3;
        for (const tn_op_table *t = g->ops; t; t = t->next)
            for (uint32_t k = 0; k < t->count; k++) {
                uint32_t distance =
                    tn_name_distance(r->root, strlen(r->root), t->rows[k]->name, strlen(t->rows[k]->name));
                if (distance >= best)
                    continue;
                best = distance;
                tn_fail(TN_ERR_USAGE, "rewrite '%s': there is no operator '%s'", r->name, r->root);
                tn_fail_hint("did you mean '%s'?", t->rows[k]->name);
            }
        return TN_ERR_USAGE;
    }
    return TN_OK;
}

tn_status tn_rewrite_apply(tn_graph *g, uint32_t count, const tn_rewrite *rewrites, uint64_t *sites) {
    uint64_t unused = 0;
    if (!sites)
        sites = &unused;
    *sites = 0;
    TN_TRY(tn_graph_changeable(g));
    if (count && !rewrites)
        return tn_fail(TN_ERR_USAGE, "tn_rewrite_apply: the list of rewrites is NULL");
    TN_TRY(tn_rewrites_check(g, count, rewrites));
    return run_rewrites(g, NULL, count, rewrites, sites);
}

/* --- the pass ----------------------------------------------------------------------------------------------------------------------------- */

static tn_status run(tn_graph *g, tn_pass_context *context) {
    return context->rewrite_count ? tn_rewrites_run(g, context, context->rewrite_count, context->rewrites) : TN_OK;
}

const tn_pass tn_pass_rewrites = {
    .name = "rewrites",
    .doc = "The rewrites handed in by the caller, to a fixpoint.",
    .effect = TN_VALUE_CHANGING,
    .level = 1,
    .run = run,
};
