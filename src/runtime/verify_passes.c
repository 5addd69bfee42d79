/* Checking passes. Between two graphs of the pipeline a node persists when it has the same operator, attributes and regions in both.
   Its results are the same if what it reads is. So only what persisting nodes and outputs read, and no longer comes from the same
   persisting node, is compared; what leads there is computed from values that persist: the cut-out region of the change. Values
   are computed once for all passes. */
#include "runtime/verify.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct step {
    const tn_pass *pass; /* NULL: the graph as it came */
    uint64_t sites;
    bool exact;                       /* what it promises */
    tn_graph *graph;                  /* a clone */
    uint32_t *value, *node;           /* by id of the graph at work: id in the clone, 0: not there */
    uint32_t *value_back, *node_back; /* by id of the clone: id at work */
    uint32_t values, nodes;           /* lengths of value and node */
    uint8_t *kept;                    /* by node at work: it persists from the step before */
    tn_u32_vec pair;                  /* values at work: before, after, reading node at work (0: an output) */
    tn_u32_vec stop;   /* values at work that are taken from before to compute what is compared and asked for */
    tn_u32_vec before; /* where bits may differ: values that the same takes in the graph before */
    tn_u32_vec ask;    /* values at work that this step is to give to later ones */
} step;

struct tn_verify_steps {
    tn_heap *heap;
    TN_VEC(step) step;
    tn_graph *graph;
    tn_object **known; /* by value at work; while a sample is run */
    uint32_t known_count;
    const tn_verify_options *options;
    tn_status status;
};

static void step_free(tn_heap *heap, step *s) {
    if (s->graph) {
        tn_graph_free_map(s->graph, s->value);
        tn_graph_free_map(s->graph, s->node);
    }
    tn_graph_destroy(s->graph);
    tn_free(heap, s->value_back);
    tn_free(heap, s->node_back);
    tn_free(heap, s->kept);
    tn_vec_free(heap, &s->pair);
    tn_vec_free(heap, &s->stop);
    tn_vec_free(heap, &s->before);
    tn_vec_free(heap, &s->ask);
}

static tn_status snapshot(tn_verify_steps *v, const tn_pass *pass, uint64_t sites) {
    tn_graph *g = v->graph;
    step s = {.pass = pass,
              .sites = sites,
              .exact = !pass || pass->effect == TN_BIT_EXACT,
              .values = g->value.len,
              .nodes = g->node.len};
    if (pass == &tn_pass_rewrites) { /* each says its own */
        s.exact = true;
        for (uint32_t i = 0; i < v->options->rewrite_count; i++)
            s.exact = s.exact && v->options->rewrites[i].effect == TN_BIT_EXACT;
    }
    s.graph = tn_graph_clone(g, &s.value, &s.node);
    if (!s.graph)
        return tn_error_status();
    s.value_back = tn_alloc_array(v->heap, s.graph->value.len + 1u, sizeof(uint32_t));
    s.node_back = tn_alloc_array(v->heap, s.graph->node.len + 1u, sizeof(uint32_t));
    s.kept = tn_alloc(v->heap, s.nodes + 1u);
    bool ok = s.value_back && s.node_back && s.kept;
    for (uint32_t i = 1; i < s.values && ok; i++)
        s.value_back[s.value[i]] = i;
    for (uint32_t i = 1; i < s.nodes && ok; i++)
        s.node_back[s.node[i]] = i;
    if (!ok || !tn_vec_push(v->heap, &v->step, s)) {
        step_free(v->heap, &s);
        return tn_error_status();
    }
    return TN_OK;
}

static void on_pass(void *ctx, const tn_pass_record *record) {
    tn_verify_steps *v = ctx;
    if (v->status == TN_OK)
        v->status = snapshot(v, record->pass, record->sites);
}

/* --- what persists -------------------------------------------------------------------------------------------------------------------- */

static bool same_attr(const tn_attr *a, const tn_attr *b) {
    if (!b || a->kind != b->kind || a->count != b->count)
        return false;
    switch ((tn_attr_kind)a->kind) {
    case TN_ATTR_NONE: return true;
    case TN_ATTR_INT:
    case TN_ATTR_DTYPE:
    case TN_ATTR_FLOAT: return a->as.i == b->as.i; /* a float by its bits: NaN is itself, -0 is not 0 */
    case TN_ATTR_STRING:
        return a->as.s.length == b->as.s.length && memcmp(a->as.s.data, b->as.s.data, a->as.s.length) == 0;
    case TN_ATTR_INTS: return !a->count || memcmp(a->as.ints, b->as.ints, a->count * sizeof *a->as.ints) == 0;
    case TN_ATTR_FLOATS: return !a->count || memcmp(a->as.floats, b->as.floats, a->count * sizeof *a->as.floats) == 0;
    case TN_ATTR_DIMS: /* clones of one graph number their dimensions alike */
        return !a->count || memcmp(a->as.dims, b->as.dims, a->count * sizeof *a->as.dims) == 0;
    case TN_ATTR_TENSOR: return a->as.tensor == b->as.tensor;
    case TN_ATTR_STRINGS:
    case TN_ATTR_TYPE:
    case TN_ATTR_FUNCTION: return false; /* taken as changed: computed again */
    }
    return false;
}

static bool same_node(const step *a, const step *b, uint32_t node, bool whole, int depth);

static bool same_region(const step *a, const step *b, tn_region x, tn_region y, int depth) {
    uint32_t n = tn_region_arg_count(a->graph, x);
    if (depth > TN_MAX_NESTING || n != tn_region_arg_count(b->graph, y))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (a->value_back[tn_region_arg(a->graph, x, i).id] != b->value_back[tn_region_arg(b->graph, y, i).id])
            return false;
    tn_node p = tn_region_first(a->graph, x), q = tn_region_first(b->graph, y);
    for (; p.id && q.id; p = tn_node_next(a->graph, p), q = tn_node_next(b->graph, q))
        if (a->node_back[p.id] != b->node_back[q.id] || !same_node(a, b, a->node_back[p.id], true, depth + 1))
            return false;
    return !p.id && !q.id;
}

/* Whether a node at work is the same in both; `whole`: what it reads too. */
static bool same_node(const step *a, const step *b, uint32_t node, bool whole, int depth) {
    if (node >= a->nodes || node >= b->nodes || !a->node[node] || !b->node[node])
        return false;
    tn_node x = {a->node[node]}, y = {b->node[node]};
    const tn_graph *g = a->graph, *h = b->graph;
    uint32_t inputs = tn_node_input_count(g, x);
    if (tn_node_op(g, x) != tn_node_op(h, y) || inputs != tn_node_input_count(h, y) ||
        tn_node_output_count(g, x) != tn_node_output_count(h, y) ||
        tn_node_attr_count(g, x) != tn_node_attr_count(h, y) ||
        tn_node_region_count(g, x) != tn_node_region_count(h, y))
        return false;
    for (uint32_t i = 0; i < inputs; i++) {
        tn_value v = tn_node_input(g, x, i), w = tn_node_input(h, y, i);
        if (!v.id != !w.id || (whole && v.id && a->value_back[v.id] != b->value_back[w.id]))
            return false;
    }
    for (uint32_t i = 0; i < tn_node_attr_count(g, x); i++) {
        const tn_attr *attr = tn_node_attr_at(g, x, i);
        if (!same_attr(attr, tn_node_attr(h, y, attr->key)))
            return false;
    }
    for (uint32_t r = 0; r < tn_node_region_count(g, x); r++)
        if (!same_region(a, b, tn_node_region(g, x, r), tn_node_region(h, y, r), depth + 1))
            return false;
    return true;
}

/* The node of the main region that makes a value, or that it lies in; 0: an input. */
static tn_node maker(const tn_graph *g, tn_value v) {
    tn_node n = tn_value_producer(g, v);
    tn_region region = n.id ? tn_node_parent(g, n) : (tn_region){g->value.data[v.id].region};
    while (region.id && region.id != g->main_region) {
        n = tn_region_owner(g, region);
        region = n.id ? tn_node_parent(g, n) : (tn_region){0};
    }
    return n;
}

/* Calls visit(ctx, value) for what a node of the main region reads, its regions included. */
typedef tn_status visit_value(void *ctx, tn_value value);
static tn_status visit_reads(const tn_graph *g, tn_node top, tn_node node, visit_value *visit, void *ctx, int depth) {
    if (depth > TN_MAX_NESTING)
        return tn_fail(TN_ERR_LIMIT, "regions are nested deeper than %d", TN_MAX_NESTING);
    for (uint32_t i = 0; i < tn_node_input_count(g, node); i++) {
        tn_value v = tn_node_input(g, node, i);
        tn_node from = v.id ? tn_value_producer(g, v) : (tn_node){0};
        tn_region home = !v.id     ? (tn_region){0}
                         : from.id ? tn_node_parent(g, from)
                                   : (tn_region){g->value.data[v.id].region};
        if (v.id && home.id == g->main_region)
            TN_TRY(visit(ctx, v));
    }
    for (uint32_t r = 0; r < tn_node_region_count(g, node); r++)
        for (tn_node n = tn_region_first(g, tn_node_region(g, node, r)); n.id; n = tn_node_next(g, n))
            TN_TRY(visit_reads(g, top, n, visit, ctx, depth + 1));
    return TN_OK;
}

/* --- what is compared ------------------------------------------------------------------------------------------------------------------- */

static bool listed(const tn_u32_vec *list, uint32_t x) {
    for (uint32_t i = 0; i < list->len; i++)
        if (list->data[i] == x)
            return true;
    return false;
}

/* Whether the value at work is made by a node that persists into step b, or is an input. */
static bool persists(const step *b, uint32_t value) {
    tn_node n = maker(b->graph, (tn_value){b->value[value]});
    return !n.id || b->kept[b->node_back[n.id]];
}

static tn_status add_pair(tn_verify_steps *v, step *b, uint32_t before, uint32_t after, uint32_t reader) {
    if (before == after && persists(b, after))
        return TN_OK;
    for (uint32_t i = 0; i + 2 < b->pair.len; i += 3)
        if (b->pair.data[i] == before && b->pair.data[i + 1] == after)
            return TN_OK;
    return tn_vec_push(v->heap, &b->pair, before) && tn_vec_push(v->heap, &b->pair, after) &&
                   tn_vec_push(v->heap, &b->pair, reader)
               ? TN_OK
               : tn_error_status();
}

typedef struct reads {
    tn_verify_steps *steps;
    tn_u32_vec list;
    const uint32_t *back;
} reads;
static tn_status collect(void *ctx, tn_value value) {
    reads *r = ctx;
    return tn_vec_push(r->steps->heap, &r->list, r->back[value.id]) ? TN_OK : tn_error_status();
}

/* Nodes of bodies that become part of the main region have run otherwise before. */
static bool in_main(const step *a, uint32_t node) {
    return node < a->nodes && a->node[node] &&
           tn_node_parent(a->graph, (tn_node){a->node[node]}).id == tn_graph_region(a->graph).id;
}

static tn_status find_pairs(tn_verify_steps *v, const step *a, step *b) {
    const tn_graph *g = b->graph;
    for (tn_node n = tn_region_first(g, tn_graph_region(g)); n.id; n = tn_node_next(g, n))
        b->kept[b->node_back[n.id]] = !tn_node_has_trait(g, n, TN_TERMINATOR) && in_main(a, b->node_back[n.id]) &&
                                      same_node(a, b, b->node_back[n.id], false, 0);
    tn_status status = TN_OK;
    reads x = {v, {0}, a->value_back}, y = {v, {0}, b->value_back};
    for (tn_node n = tn_region_first(g, tn_graph_region(g)); n.id && status == TN_OK; n = tn_node_next(g, n)) {
        uint32_t id = b->node_back[n.id];
        if (!b->kept[id])
            continue;
        tn_node old = {a->node[id]};
        x.list.len = y.list.len = 0;
        status = visit_reads(a->graph, old, old, collect, &x, 0);
        if (status == TN_OK)
            status = visit_reads(g, n, n, collect, &y, 0);
        if (status == TN_OK && x.list.len != y.list.len)
            b->kept[id] = 0;
        for (uint32_t i = 0; status == TN_OK && b->kept[id] && i < y.list.len; i++)
            status = add_pair(v, b, x.list.data[i], y.list.data[i], id);
    }
    uint32_t outputs = tn_graph_output_count(g);
    for (uint32_t i = 0; i < outputs && status == TN_OK; i++)
        status =
            add_pair(v, b, a->value_back[tn_graph_output(a->graph, i).id], b->value_back[tn_graph_output(g, i).id], 0);
    tn_vec_free(v->heap, &x.list);
    tn_vec_free(v->heap, &y.list);
    return status;
}

/* --- what is computed -------------------------------------------------------------------------------------------------------------------- */

typedef struct cone {
    tn_verify_steps *steps;
    const step *in;    /* the graph that is walked */
    const step *after; /* whose `kept` counts */
    uint8_t *seen;     /* by value at work */
    tn_u32_vec stack, *stop;
} cone;

static tn_status reach(void *ctx, tn_value value) {
    cone *c = ctx;
    uint32_t id = c->in->value_back[value.id];
    if (c->seen[id])
        return TN_OK;
    c->seen[id] = 1;
    tn_node n = maker(c->in->graph, value);
    if (!n.id)
        return TN_OK; /* an input: always there */
    uint32_t at = c->in->node_back[n.id];
    bool kept = at < c->after->nodes && c->after->kept[at] && !tn_node_has_trait(c->in->graph, n, TN_CONSTANT);
    return tn_vec_push(c->steps->heap, kept ? c->stop : &c->stack, kept ? id : n.id) ? TN_OK : tn_error_status();
}

/* The persisting values that computing the listed ones in a graph needs, into *stop. */
static tn_status find_stops(tn_verify_steps *v, const step *in, const step *after, const tn_u32_vec *a, uint32_t first,
                            uint32_t every, const tn_u32_vec *b, tn_u32_vec *stop) {
    cone c = {.steps = v, .in = in, .after = after, .stop = stop};
    c.seen = tn_alloc(v->heap, v->graph->value.len + 1u);
    tn_status status = c.seen ? TN_OK : tn_error_status();
    for (uint32_t i = first; status == TN_OK && i < a->len; i += every)
        status = reach(&c, (tn_value){in->value[a->data[i]]});
    for (uint32_t i = 0; status == TN_OK && b && i < b->len; i++)
        status = reach(&c, (tn_value){in->value[b->data[i]]});
    while (status == TN_OK && c.stack.len) {
        tn_node n = {c.stack.data[--c.stack.len]};
        status = visit_reads(in->graph, n, n, reach, &c, 0);
    }
    tn_vec_free(v->heap, &c.stack);
    tn_free(v->heap, c.seen);
    return status;
}

/* Asks the step that defines a value last, at `at` or before, for it. */
static tn_status ask(tn_verify_steps *v, uint32_t value, uint32_t at) {
    while (at > 0 && persists(&v->step.data[at], value))
        at--;
    step *s = &v->step.data[at];
    if (!maker(s->graph, (tn_value){s->value[value]}).id || listed(&s->ask, value))
        return TN_OK;
    return tn_vec_push(v->heap, &s->ask, value) ? TN_OK : tn_error_status();
}

/* From the last step to the first: what each must give. */
static tn_status plan_values(tn_verify_steps *v) {
    for (uint32_t j = v->step.len; j-- > 1;) {
        step *a = &v->step.data[j - 1], *b = &v->step.data[j];
        TN_TRY(find_stops(v, b, b, &b->pair, 1, 3, &b->ask, &b->stop));
        for (uint32_t i = 0; i < b->stop.len; i++)
            TN_TRY(ask(v, b->stop.data[i], j - 1));
        for (uint32_t i = 0; i < b->pair.len; i += 3)
            TN_TRY(ask(v, b->pair.data[i], j - 1));
        if (b->exact)
            continue;
        TN_TRY(find_stops(v, a, b, &b->pair, 0, 3, NULL, &b->before));
        for (uint32_t i = 0; i < b->before.len; i++)
            TN_TRY(ask(v, b->before.data[i], j - 1));
    }
    return TN_OK;
}

tn_status tn_verify_steps_make(tn_verify_steps **out, tn_graph *graph, tn_pass_context *context,
                               const tn_verify_options *o) {
    tn_verify_steps *v = *out = tn_alloc(graph->heap, sizeof *v);
    if (!v)
        return tn_error_status();
    v->heap = graph->heap;
    v->graph = graph;
    v->options = o;
    context->report = on_pass;
    context->report_ctx = v;
    TN_TRY(snapshot(v, NULL, 0));
    TN_TRY(tn_passes_run(graph, context));
    for (uint32_t i = 0; i < o->more_count; i++)
        TN_TRY(tn_pass_run_one(o->more[i], graph, context));
    TN_TRY(v->status);
    for (uint32_t j = 1; j < v->step.len; j++)
        TN_TRY(find_pairs(v, &v->step.data[j - 1], &v->step.data[j]));
    return plan_values(v);
}

void tn_verify_steps_free(tn_verify_steps *v) {
    if (!v)
        return;
    for (uint32_t i = 0; i < v->step.len; i++)
        step_free(v->heap, &v->step.data[i]);
    tn_vec_free(v->heap, &v->step);
    tn_free(v->heap, v);
}

const tn_graph *tn_verify_steps_graph(const tn_verify_steps *v) {
    return v->step.data[0].graph;
}

uint32_t tn_verify_steps_count(const tn_verify_steps *v, uint32_t *changed) {
    *changed = 0;
    for (uint32_t i = 1; i < v->step.len; i++)
        *changed += v->step.data[i].pair.len > 0 || v->step.data[i].sites > 0;
    return v->step.len - 1;
}

/* --- running --------------------------------------------------------------------------------------------------------------------------------- */

/* Values at work computed in a step's graph, from what is known and the inputs. */
typedef struct computation {
    tn_verify_steps *steps;
    const step *in;
    const tn_verify_sample *sample;
    const tn_u32_vec *stop;
    const uint32_t *want;
    uint32_t count, every;
} computation;

static tn_status compute(void *ctx, const tn_interp_options *options, tn_object **out) {
    const computation *c = ctx;
    const tn_graph *g = c->in->graph, *first = c->steps->step.data[0].graph;
    const uint32_t *input_back = c->steps->step.data[0].value_back;
    tn_heap *heap = c->steps->heap;
    uint32_t most = c->sample->count + (c->stop ? c->stop->len : 0), n = 0;
    tn_value *values = tn_alloc_array(heap, (size_t)most + c->count + 1, sizeof *values);
    tn_object **objects = tn_alloc_array(heap, (size_t)most + 1, sizeof *objects);
    tn_status status = values && objects ? TN_OK : tn_error_status();
    for (uint32_t i = 0; status == TN_OK && i < c->sample->count; i++) {
        uint32_t id = input_back[tn_graph_input(first, i).id];
        if (!c->sample->in[i] || id >= c->in->values || !c->in->value[id])
            continue;
        values[n].id = c->in->value[id];
        objects[n++] = c->sample->in[i];
    }
    for (uint32_t i = 0; status == TN_OK && c->stop && i < c->stop->len; i++) {
        uint32_t id = c->stop->data[i];
        if (!c->steps->known[id])
            status = tn_fail(TN_ERR_INTERNAL, "a value that is needed was not computed");
        values[n].id = c->in->value[id];
        objects[n++] = c->steps->known[id];
    }
    for (uint32_t i = 0; status == TN_OK && i < c->count; i++)
        values[n + i].id = c->in->value[c->want[i * c->every]];
    if (status == TN_OK)
        status = tn_interp_run(g, options, n, values, objects, c->count, values + n, out);
    tn_free(heap, values);
    tn_free(heap, objects);
    return status;
}

static void remember(tn_verify_steps *v, uint32_t value, tn_object *object) {
    tn_object_destroy(v->known[value]);
    v->known[value] = tn_object_retain(object);
}

static void say(const step *b, uint32_t pair, tn_verify_result *r) {
    const tn_graph *g = b->graph;
    r->stage = TN_VERIFY_PASS;
    snprintf(r->name, sizeof r->name, "%s", b->pass->name);
    char value[200], at[160] = "";
    tn_value v = {b->value[b->pair.data[pair + 1]]};
    tn_value_describe(g, v, value, sizeof value);
    tn_node n = maker(g, v);
    if (n.id)
        tn_verify_describe(g, n, at, sizeof at);
    snprintf(r->node, sizeof r->node, "%s%s%s", value, n.id ? " of " : "", at);
}

/* Judges pair `p`: what the graph before gives against what the graph after does. */
static tn_status judge(tn_verify_steps *v, const step *a, const step *b, uint32_t p, const tn_verify_options *o,
                       const tn_interp_options *interp, const tn_verify_sample *sample, const tn_object *after,
                       bool *right, tn_difference *d) {
    const tn_object *before = v->known[b->pair.data[p]];
    tn_value input = {a->value[b->pair.data[p]]};
    for (uint32_t i = 0; !before && i < sample->count; i++) /* an input stands for itself */
        if (tn_graph_input(v->step.data[0].graph, i).id == v->step.data[0].value[b->pair.data[p]] && input.id)
            before = sample->in[i];
    *right = before && tn_object_same_bits(before, after);
    if (*right)
        return TN_OK;
    computation c = {v, a, sample, b->exact ? NULL : &b->before, &b->pair.data[p], 1, 1};
    tn_oracle oracle = {.run = compute,
                        .ctx = &c,
                        .options = *interp,
                        .count = 1,
                        .once = a->graph,
                        .rewritten = true,
                        .seed = o->seed,
                        .tolerance = o->tolerance};
    tn_status status = tn_oracle_begin(&oracle);
    if (status == TN_OK)
        status = tn_oracle_judge(&oracle, 0, after, b->exact, right, d);
    tn_oracle_free(&oracle);
    return status;
}

static tn_status run_step(tn_verify_steps *v, uint32_t j, const tn_verify_options *o, const tn_interp_options *interp,
                          const tn_verify_sample *sample, tn_verify_result *r) {
    const step *a = &v->step.data[j - 1], *b = &v->step.data[j];
    uint32_t pairs = b->pair.len / 3, count = pairs + b->ask.len;
    if (!count)
        return TN_OK;
    uint32_t *want = tn_alloc_array(v->heap, count, sizeof *want);
    tn_object **got = tn_alloc_array(v->heap, count, sizeof *got);
    tn_status status = want && got ? TN_OK : tn_error_status();
    for (uint32_t i = 0; status == TN_OK && i < count; i++)
        want[i] = i < pairs ? b->pair.data[3 * i + 1] : b->ask.data[i - pairs];
    computation c = {v, b, sample, &b->stop, want, count, 1};
    if (status == TN_OK && (status = compute(&c, interp, got)) != TN_OK) {
        if (status != TN_ERR_MEMORY && status != TN_ERR_CANCELLED) {
            r->holds = false;
            r->stage = TN_VERIFY_PASS;
            snprintf(r->name, sizeof r->name, "%s", b->pass->name);
            snprintf(r->node, sizeof r->node, "the graph after the pass");
            snprintf(r->what, sizeof r->what, "fails, but the graph before does not: %s", tn_error_message());
            status = TN_OK;
        }
        count = 0;
    }
    for (uint32_t i = 0; status == TN_OK && i < pairs && count && r->holds; i++) {
        tn_difference d = {0};
        status = judge(v, a, b, 3 * i, o, interp, sample, got[i], &r->holds, &d);
        r->regions++;
        if (status == TN_OK && !r->holds) {
            say(b, 3 * i, r);
            snprintf(r->what, sizeof r->what, "%s", d.text);
        }
    }
    for (uint32_t i = pairs; status == TN_OK && i < count; i++)
        remember(v, want[i], got[i]);
    for (uint32_t i = 0; i < count && got; i++)
        tn_object_destroy(got[i]);
    tn_free(v->heap, want);
    tn_free(v->heap, got);
    return status;
}

tn_status tn_verify_steps_run(tn_verify_steps *v, const tn_verify_options *o, const tn_interp_options *interp,
                              const tn_verify_sample *sample, bool *refused, tn_verify_result *r) {
    v->known_count = v->graph->value.len;
    v->known = tn_alloc_array(v->heap, v->known_count + 1u, sizeof(tn_object *));
    if (!v->known)
        return tn_error_status();
    step *first = &v->step.data[0];
    tn_object **got = tn_alloc_array(v->heap, first->ask.len + 1u, sizeof *got);
    computation c = {v, first, sample, NULL, first->ask.data, first->ask.len, 1};
    tn_status status = got ? compute(&c, interp, got) : tn_error_status();
    *refused = tn_verify_is_refusal(status);
    for (uint32_t i = 0; status == TN_OK && i < first->ask.len; i++) {
        remember(v, first->ask.data[i], got[i]);
        tn_object_destroy(got[i]);
    }
    for (uint32_t j = 1; status == TN_OK && j < v->step.len && r->holds; j++)
        status = run_step(v, j, o, interp, sample, r);
    tn_free(v->heap, got);
    for (uint32_t i = 0; i < v->known_count; i++)
        tn_object_destroy(v->known[i]);
    tn_free(v->heap, v->known);
    v->known = NULL;
    return *refused ? TN_OK : status;
}
