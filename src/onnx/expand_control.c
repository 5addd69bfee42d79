/* Loop and Scan as while and scan. A body is copied and expanded inside the region of the new node.

   ONNX lets a loop value change its shape from trip to trip without saying so. Here a loop value has one type; `settle` finds it by
   building the body: dimensions that come out differently become symbols of the body's own, values that come out with another rank
   have none. */
#include <inttypes.h>

#include "onnx/expand_common.h"
#include "onnx/expander.h"
#include "ops/contents.h"

/* --- values of a type that is not known yet ------------------------------------------------------------------------------------------- */

/* `value` as a value of `type`: through an ONNX node that is expanded when it runs, whose output is declared so. */
tn_value tn_expand_declared(tn_expand *x, const char *op, tn_value value, tn_type type) {
    const tn_onnx_op *row = tn_onnx_find("", op, tn_onnx_newest(""));
    if (!row) {
        tn_fail(TN_ERR_INTERNAL, "%s needs the operator %s", x->row->name, op);
        tn_graph_stick(x->graph);
        return (tn_value){0};
    }
    tn_node node = tn_graph_add_node_typed(
        x->graph, &(tn_node_desc){.op = &row->op, .input_count = 1, .inputs = &value, .output_count = 1}, &type);
    return node.id ? tn_node_output(x->graph, node, 0) : (tn_value){0};
}

/* --- the types of loop values ---------------------------------------------------------------------------------------------------------- */

/* Builds a body at the insertion point: reads args, fills results. */
typedef tn_status build_fn(tn_expand *x, void *ctx, const tn_value *args, tn_value *results);

typedef struct body {
    uint32_t carried, args, results;
    tn_type *types;      /* [args] */
    uint32_t *free_axes; /* [carried] a bit for each axis whose size may change */
    bool *wrapped;       /* [carried] enters as an optional, is what it holds after each trip */
    bool counted;        /* Scan: one argument more, the number of the trip */
    int64_t limit;       /* Loop: trips at most, where known, else -1 */
    tn_type *
        after; /* Scan: [carried] what the states are after a step, before they are held to what they were; NULL: not asked */
    build_fn *build;
    void *ctx;
    tn_region region;
} body;

/* --- trips ------------------------------------------------------------------------------------------------------------------------------- */

/* Whether the body draws random numbers, which then differ from trip to trip. */
static bool body_draws(const tn_expand *x) {
    tn_region region = tn_node_region(x->graph, x->node, 0);
    for (tn_node node = tn_region_first(x->graph, region); node.id; node = tn_node_next(x->graph, node))
        if (tn_onnx_draws(x->driver, x->graph, node))
            return true;
    return false;
}

/* What tells trip `number` of a loop in trip `outer` (null: in none) from others. A value of its own, which nothing else reads. */
static tn_value trip_of(tn_graph *g, tn_value outer, tn_value number) {
    const int64_t odd = 0x5851F42D4C957F2D;
    tn_value sum = outer.id ? tn_add(g, outer, number) : number;
    return tn_mul(g, sum, tn_constant_i64(g, 0, 1, &odd));
}

/* The element type that both have; unranked where they differ, null where they have nothing in common. */
static tn_type common_element(tn_graph *g, tn_type a, tn_type b) {
    if (a.id == b.id)
        return a;
    if (!a.id || !b.id)
        return a.id ? a : b;
    if (tn_type_kind(g, a) == TN_KIND_SEQUENCE && tn_type_kind(g, b) == TN_KIND_SEQUENCE)
        return tn_type_sequence(g, common_element(g, tn_type_element(g, a), tn_type_element(g, b)));
    if (tn_type_kind(g, a) != TN_KIND_TENSOR || tn_type_kind(g, b) != TN_KIND_TENSOR ||
        tn_type_dtype(g, a) != tn_type_dtype(g, b))
        return (tn_type){0};
    return tn_type_tensor(g, tn_type_dtype(g, a), -1, NULL);
}

/* The type of loop value i, given what the body made of it. *changed: it is not what the body was built with. */
static tn_status widen(tn_expand *x, body *b, uint32_t i, tn_type after, bool *changed) {
    tn_graph *g = x->graph;
    tn_type before = b->types[i];
    char p[200], q[200];
    if (before.id == after.id)
        return TN_OK;
    tn_kind kind = tn_type_kind(g, before);
    if (!after.id) {
        if (kind == TN_KIND_TENSOR && tn_type_rank(g, before) >= 0) {
            b->types[i] = tn_type_tensor(g, tn_type_dtype(g, before), -1, NULL);
            *changed = true;
        }
        return TN_OK;
    }
    bool same = kind == tn_type_kind(g, after) &&
                (kind != TN_KIND_TENSOR || tn_type_dtype(g, before) == tn_type_dtype(g, after));
    TN_RULE(x, same, "loop value %u is %s on entry, but %s after a trip", (unsigned)i,
            tn_type_describe(g, before, p, sizeof p), tn_type_describe(g, after, q, sizeof q));
    if (kind == TN_KIND_SEQUENCE || kind == TN_KIND_OPTIONAL) {
        tn_type element = common_element(g, tn_type_element(g, before), tn_type_element(g, after));
        b->types[i] = kind == TN_KIND_SEQUENCE ? tn_type_sequence(g, element) : tn_type_optional(g, element);
        *changed = b->types[i].id != before.id || *changed;
        return TN_OK;
    }
    if (kind != TN_KIND_TENSOR || tn_type_rank(g, before) < 0)
        return TN_OK;
    int rank = tn_type_rank(g, before);
    tn_dim dims[TN_MAX_RANK];
    if (tn_type_rank(g, after) != rank) {
        b->types[i] = tn_type_tensor(g, tn_type_dtype(g, before), -1, NULL);
        *changed = true;
        return TN_OK;
    }
    bool differ = false;
    for (int k = 0; k < rank; k++) {
        dims[k] = tn_type_dims(g, before)[k];
        if ((b->free_axes[i] >> k & 1) || tn_dim_equal(g, dims[k], tn_type_dims(g, after)[k]))
            continue;
        dims[k] = tn_dim_fresh(g, 0, INT64_MAX);
        b->free_axes[i] |= 1u << k;
        differ = true;
    }
    if (differ)
        b->types[i] = tn_type_tensor(g, tn_type_dtype(g, before), rank, dims);
    *changed = *changed || differ;
    return TN_OK;
}

tn_status tn_expand_discard(tn_expand *x, tn_region region) {
    static const tn_op owner = {.name = "onnx.__discarded",
                                .dialect = TN_DIALECT_ONNX,
                                .max_inputs = -1,
                                .max_outputs = -1,
                                .regions = 1,
                                .traits = TN_CONTROL,
                                .infer = tn_onnx_infer};
    tn_node node = tn_graph_add_node(x->graph, &(tn_node_desc){.op = &owner, .region_count = 1, .regions = &region});
    return node.id ? tn_node_remove(x->graph, node) : tn_graph_check(x->graph);
}

/* One body with arguments of the types so far. */
static tn_status build_once(tn_expand *x, body *b, tn_value *values) {
    tn_graph *g = x->graph;
    b->region = tn_region_create(g);
    tn_insertion saved = tn_graph_insertion(g);
    for (uint32_t i = 0; b->region.id && i < b->args; i++)
        values[i] = tn_region_add_arg(g, b->region, b->types[i], "");
    TN_TRY(tn_graph_check(g));
    tn_graph_insert_at_end(g, b->region);
    TN_TRY(b->build(x, b->ctx, values, values + b->args));
    for (uint32_t i = 0; i < b->carried; i++) {
        tn_value *v = &values[b->args + i];
        if (v->id && !tn_value_type(g, *v).id) { /* declared to be what the loop value is, if that is settled */
            tn_type type = b->types[i];
            if (tn_type_kind(g, type) != TN_KIND_TENSOR || tn_type_rank(g, type) < 0)
                *v = tn_expand_declared(x, "Identity", *v, type);
        } else if (v->id && tn_type_kind(g, b->types[i]) == TN_KIND_OPTIONAL &&
                   tn_type_kind(g, tn_value_type(g, *v)) != TN_KIND_OPTIONAL) {
            *v = tn_graph_add(g, "optional", 1, v, 0, NULL);
            b->wrapped[i] = true;
        }
    }
    tn_graph_set_insertion(g, saved);
    TN_TRY(tn_graph_check(g));
    return tn_region_return(g, b->region, b->results, values + b->args);
}

/* Builds the body until the types of its loop values are those it was built with. */
static tn_status settle(tn_expand *x, body *b) {
    tn_graph *g = x->graph;
    tn_value *values = tn_expand_alloc(x, (size_t)b->args + b->results + 1, sizeof *values);
    b->free_axes = tn_expand_alloc(x, (size_t)b->carried + 1, sizeof *b->free_axes);
    b->wrapped = tn_expand_alloc(x, (size_t)b->carried + 1, sizeof *b->wrapped);
    if (!values || !b->free_axes || !b->wrapped)
        return tn_error_status();
    for (int round = 0;; round++) {
        bool changed = false;
        tn_warnings_mark mark = tn_warnings_here(x->driver);
        TN_TRY(build_once(x, b, values));
        for (uint32_t i = 0; i < b->carried; i++)
            TN_TRY(widen(x, b, i, tn_value_type(g, values[b->args + i]), &changed));
        TN_TRY(tn_graph_check(g));
        if (!changed)
            return TN_OK;
        TN_RULE(x, round < 100, "the types of its loop values do not settle");
        tn_warnings_back_to(x->driver,
                            mark); /* a loop value of another type is not what the file has declared wrongly */
        TN_TRY(tn_expand_discard(x, b->region));
    }
}

/* The row's node with its regions; outputs to `results`. */
static tn_status add_node(tn_expand *x, const char *op, uint32_t inputs, const tn_value *in, uint32_t attrs,
                          const tn_attr *attr, uint32_t regions, const tn_region *region, uint32_t outputs,
                          tn_value *results) {
    tn_node node = tn_graph_add_node(x->graph, &(tn_node_desc){.op = tn_op_find(x->graph->ops, op, strlen(op)),
                                                               .input_count = inputs,
                                                               .inputs = in,
                                                               .output_count = outputs,
                                                               .attr_count = attrs,
                                                               .attrs = attr,
                                                               .region_count = regions,
                                                               .regions = region});
    if (!node.id)
        return tn_graph_check(x->graph);
    for (uint32_t i = 0; i < outputs; i++)
        results[i] = tn_node_output(x->graph, node, i);
    return TN_OK;
}

/* --- Loop -------------------------------------------------------------------------------------------------------------------------------- */

/* args: number of the trip, condition, loop values. results: the same for the next trip, then rows of the stacked outputs. */
static tn_status build_loop(tn_expand *x, void *ctx, const tn_value *args, tn_value *results) {
    const body *b = ctx;
    tn_graph *g = x->graph;
    tn_value trip = body_draws(x) ? trip_of(g, tn_onnx_trip(g, x->node), args[0]) : (tn_value){0};
    const tn_counter counter = {args[0], b->limit, x->driver->counters};
    if (b->limit >= 0)
        x->driver->counters = &counter;
    tn_status status = tn_expand_trip(x, 0, trip, b->carried, args, b->results - 1, results + 1);
    x->driver->counters = counter.outer;
    TN_TRY(status);
    TN_TRY(tn_expand_truth(x, results[1], &results[1]));
    results[0] = tn_add(g, args[0], tn_scalar(g, TN_I64, 1));
    return tn_graph_check(g);
}

static tn_status loop_condition(tn_expand *x, const body *b, tn_value limit, tn_region *region) {
    tn_graph *g = x->graph;
    tn_value args[2] = {{0}}, go;
    *region = tn_region_create(g);
    for (uint32_t i = 0; region->id && i < b->args; i++) {
        tn_value arg = tn_region_add_arg(g, *region, b->types[i], "");
        if (i < 2)
            args[i] = arg;
    }
    TN_TRY(tn_graph_check(g));
    tn_insertion saved = tn_graph_insertion(g);
    tn_graph_insert_at_end(g, *region);
    go = limit.id ? tn_and(g, args[1], tn_less(g, args[0], limit)) : args[1];
    tn_graph_set_insertion(g, saved);
    TN_TRY(tn_graph_check(g));
    return tn_region_return(g, *region, 1, &go);
}

static tn_status expand_loop(tn_expand *x) {
    tn_graph *g = x->graph;
    uint32_t values = tn_expand_body_args(x, 0),
             results = tn_expand_body_results(x, 0); /* trip, condition, values... */
    TN_RULE(x, values >= 2 && results + 1 >= values, "the body takes %u values and gives %u", (unsigned)values,
            (unsigned)results);
    body b = {.carried = values, .args = values, .results = results + 1, .build = build_loop};
    b.ctx = &b;
    x->singles = 2;
    b.types = tn_expand_alloc(x, values, sizeof *b.types);
    tn_value *in = tn_expand_alloc(x, values, sizeof *in), *out = tn_expand_alloc(x, (size_t)results + 1, sizeof *out),
             limit = {0};
    if (!b.types || !in || !out)
        return tn_error_status();
    for (uint32_t i = 0; i < 2; i++) {
        if (!tn_expand_has(x, i))
            continue;
        tn_value v = tn_expand_input(x, i);
        if (!tn_value_dtype(g, v) || tn_value_rank(g, v) < 0)
            return tn_expand_later(x, "needs the types of its trip count and condition");
        TN_RULE(x, tn_value_dtype(g, v) == (i ? TN_BOOL : TN_I64), "%s is %s: it must be %s",
                i ? "the condition" : "the trip count", tn_dtype_name(tn_value_dtype(g, v)), i ? "bool" : "i64");
        for (int k = 0; k < tn_value_rank(g, v); k++)
            TN_RULE(x, !tn_dim_never_equal(g, tn_value_dim(g, v, k), tn_size(x, 1)), "%s must be one %s",
                    i ? "the condition" : "the trip count", i ? "bool" : "number");
        v = tn_reshape_dims(g, v, 0, NULL);
        *(i ? &in[1] : &limit) = v;
    }
    if (!tn_expand_has(x, 0) || tn_expand_contents_i64(x, 0, &b.limit, 1) != 1)
        b.limit = -1;
    in[0] = tn_scalar(g, TN_I64, 0);
    if (!in[1].id)
        in[1] = tn_scalar(g, TN_BOOL, 1);
    for (uint32_t i = 2; i < values; i++) {
        TN_RULE(x, tn_expand_has(x, i), "loop value %u has no value on entry", (unsigned)(i - 2));
        in[i] = tn_expand_input(x, i);
    }
    for (uint32_t i = 0; i < values; i++) {
        TN_BUILT(x, in[i]);
        b.types[i] = tn_value_type(g, in[i]);
        if (!b.types[i].id)
            return tn_expand_later(x, "needs the types of its loop values");
    }
    tn_region regions[2];
    TN_TRY(settle(x, &b));
    regions[1] = b.region;
    TN_TRY(loop_condition(x, &b, limit, &regions[0]));
    tn_attr rows;
    uint32_t attrs = 0;
    TN_TRY(tn_expand_loop_rows(x, b.region, b.carried, 1, &rows, &attrs));
    TN_TRY(add_node(x, "while", values, in, attrs, &rows, 2, regions, b.results, out));
    for (uint32_t i = 0; i < x->outputs && i + 2 < b.results; i++) {
        if (i + 2 < b.carried && b.wrapped[i + 2])
            out[i + 2] = tn_graph_add(g, "optional_get_element", 1, &out[i + 2], 0, NULL);
        TN_TRY(tn_expand_set(x, i, out[i + 2]));
    }
    return TN_OK;
}

/* --- Scan --------------------------------------------------------------------------------------------------------------------------------- */

/* An attribute list of one entry for each of `count` inputs or outputs; absent: zeros. */
static tn_status per_value(tn_expand *x, const char *name, uint32_t count, const int64_t **list) {
    uint32_t n = tn_expand_ints(x, name, list);
    TN_RULE(x, n == 0 || n == count, "attribute '%s' has %u entries, but there must be %u", name, (unsigned)n,
            (unsigned)count);
    if (n)
        return TN_OK;
    *list = tn_expand_alloc(x, (size_t)count + 1, sizeof **list);
    return *list ? TN_OK : tn_error_status();
}

static tn_status direction(tn_expand *x, const char *name, int64_t value) {
    TN_RULE(x, value == 0 || value == 1, "attribute '%s' holds %" PRId64 ": 0 and 1 are possible", name, value);
    return TN_OK;
}

static tn_value reversed(tn_expand *x, tn_value v) {
    tn_dim n = tn_value_dim(x->graph, v, 0);
    return tn_expand_slice(x, v, 0, tn_dim_sub(x->graph, n, tn_size(x, 1)), n, -1);
}

/* The order of axes that moves axis `from` to `to`. */
static void moved(int rank, int from, int to, int perm[TN_MAX_RANK]) {
    int k = 0;
    for (int i = 0; i < rank; i++) {
        if (i == to) {
            perm[i] = from;
            continue;
        }
        k += k == from;
        perm[i] = k++;
    }
}

/* The text: states have the same shape in each iteration. What is not known now is checked in each. */
static tn_status keep_shapes(tn_expand *x, uint32_t states, const tn_value *before, tn_value *after, tn_type *types) {
    tn_graph *g = x->graph;
    for (uint32_t i = 0; i < states; i++) {
        if (types)
            types[i] = after[i].id ? tn_value_type(g, after[i]) : (tn_type){0};
        int rank = tn_value_rank(g, before[i]), now = after[i].id ? tn_value_rank(g, after[i]) : -1;
        if (rank < 0 || now < 0)
            continue;
        TN_RULE(x, rank == now, "state %u has rank %d, and rank %d after a step", (unsigned)i, rank, now);
        bool known = true;
        for (int k = 0; k < rank; k++) {
            tn_dim a = tn_value_dim(g, before[i], k), b = tn_value_dim(g, after[i], k);
            TN_RULE(x, !tn_dim_never_equal(g, a, b), "axis %d of state %u has another size after a step", k,
                    (unsigned)i);
            known = known && tn_dim_equal(g, a, b);
        }
        if (!known)
            after[i] = tn_expand_sized_as(g, after[i], before[i]);
    }
    return TN_OK;
}

static tn_status build_scan(tn_expand *x, void *ctx, const tn_value *args, tn_value *results) {
    const body *b = ctx;
    uint32_t count = b->args - b->counted;
    tn_value trip = b->counted ? trip_of(x->graph, tn_onnx_trip(x->graph, x->node), args[count]) : (tn_value){0};
    TN_TRY(tn_expand_trip(x, 0, trip, count, args, b->results, results));
    return keep_shapes(x, b->carried, args, results, b->after);
}

typedef struct symbols {
    const tn_graph *g;
    uint32_t count, wanted;
    const tn_value *in;
    bool found;
} symbols;

static void is_wanted(void *ctx, uint32_t symbol) {
    symbols *s = ctx;
    s->found = s->found || symbol == s->wanted;
}

static void is_known(void *ctx, uint32_t symbol) {
    symbols *s = ctx, one = {.wanted = symbol};
    for (uint32_t i = 0; i < s->count && !one.found; i++)
        for (int k = 0; k < tn_value_rank(s->g, s->in[i]) && !one.found; k++)
            tn_dim_symbols(&s->g->dims, tn_value_dim(s->g, s->in[i], k), is_wanted, &one);
    s->found = s->found && one.found;
}

/* Where the sizes of inputs say what a state becomes in a step (`types`, of all axes but the first `lead`), it has to be that before
   the first: also if there is none. */
static tn_status hold_states(tn_expand *x, uint32_t states, const tn_type *types, int lead, uint32_t count,
                             tn_value *in) {
    tn_graph *g = x->graph;
    for (uint32_t i = 0; i < states; i++) {
        int rank = tn_value_rank(g, in[i]);
        if (rank <= lead || !types[i].id || tn_type_kind(g, types[i]) != TN_KIND_TENSOR ||
            tn_type_rank(g, types[i]) != rank - lead)
            continue;
        tn_dim *before = tn_expand_value_dims(x, in[i]), *after = before ? tn_expand_value_dims(x, in[i]) : NULL;
        if (!after)
            return tn_error_status();
        for (int k = lead; k < rank; k++) {
            tn_dim dim = tn_type_dims(g, types[i])[k - lead];
            symbols s = {.g = g, .count = count, .in = in, .found = true};
            tn_dim_symbols(&g->dims, dim, is_known, &s);
            after[k] = s.found ? dim : after[k];
        }
        in[i] = tn_fit(g, tn_fit(g, in[i], after), before);
        TN_BUILT(x, in[i]);
    }
    return TN_OK;
}

/* How many inputs are scanned, of `count`. */
static tn_status scanned_inputs(tn_expand *x, uint32_t count, uint32_t *scanned) {
    int64_t n = tn_expand_int(x, "num_scan_inputs");
    TN_RULE(x, n >= 1 && n <= count, "attribute 'num_scan_inputs' is %" PRId64 " of %u inputs", n, (unsigned)count);
    *scanned = (uint32_t)n;
    return TN_OK;
}

static tn_status expand_scan(tn_expand *x) {
    tn_graph *g = x->graph;
    uint32_t n = x->inputs, scanned = 0, results = tn_expand_body_results(x, 0);
    const int64_t *axes, *ways, *out_axes, *out_ways;
    TN_TRY(scanned_inputs(x, n, &scanned));
    uint32_t states = n - scanned;
    TN_RULE(x, tn_expand_body_args(x, 0) == n && results >= states,
            "the body takes %u values and gives %u, for %u inputs", (unsigned)tn_expand_body_args(x, 0),
            (unsigned)results, (unsigned)n);
    TN_TRY(per_value(x, "scan_input_axes", scanned, &axes));
    TN_TRY(per_value(x, "scan_input_directions", scanned, &ways));
    TN_TRY(per_value(x, "scan_output_axes", results - states, &out_axes));
    TN_TRY(per_value(x, "scan_output_directions", results - states, &out_ways));
    body b = {.carried = states, .results = results, .build = build_scan};
    b.counted = body_draws(x);
    b.args = n + b.counted;
    b.ctx = &b;
    b.types = tn_expand_alloc(x, b.args, sizeof *b.types);
    b.after = tn_expand_alloc(x, (size_t)states + 1, sizeof *b.after);
    tn_value *in = tn_expand_alloc(x, b.args, sizeof *in), *out = tn_expand_alloc(x, (size_t)results + 1, sizeof *out);
    if (!b.types || !b.after || !in || !out)
        return tn_error_status();
    for (uint32_t i = 0; i < n; i++) {
        in[i] = tn_expand_input(x, i);
        TN_RULE(x, in[i].id, "input %u is missing", (unsigned)i);
        b.types[i] = tn_value_type(g, in[i]);
        if (!b.types[i].id)
            return tn_expand_later(x, "needs the types of its inputs");
        int axis, perm[TN_MAX_RANK], rank = tn_value_rank(g, in[i]);
        if (i < states) {
            if (rank < 0 && tn_type_kind(g, b.types[i]) == TN_KIND_TENSOR && !x->final)
                return tn_expand_later(x, "needs the ranks of its states");
            continue;
        }
        if (rank < 0)
            return tn_expand_later(x, "needs the ranks of what it scans");
        TN_RULE(x, rank >= 1, "input %u is a scalar: there is nothing to scan", (unsigned)i);
        TN_TRY(tn_expand_axis(x, axes[i - states], rank, &axis));
        TN_TRY(direction(x, "scan_input_directions", ways[i - states]));
        moved(rank, axis, 0, perm);
        if (axis)
            in[i] = tn_transpose(g, in[i], perm);
        TN_BUILT(x, in[i]);
        TN_RULE(x, !tn_dim_never_equal(g, tn_value_dim(g, in[i], 0), tn_value_dim(g, in[states], 0)),
                "input %u has another number of steps than input %u", (unsigned)i, (unsigned)states);
        if (ways[i - states])
            in[i] = reversed(x, in[i]);
        tn_dim *dims = tn_expand_value_dims(x, in[i]);
        if (!dims)
            return tn_error_status();
        b.types[i] = tn_type_tensor(g, tn_value_dtype(g, in[i]), rank - 1, dims + 1);
    }
    if (b.counted) {
        tn_dim steps = tn_value_dim(g, in[n - 1], 0);
        in[n] = tn_iota(g, TN_I64, 1, &steps, 0);
        b.types[n] = tn_type_tensor(g, TN_I64, 0, NULL);
    }
    TN_TRY(settle(x, &b));
    TN_TRY(hold_states(x, states, b.after, 0, n, in));
    tn_attr attr[2] = {TN_A_INT("carried", states)};
    uint32_t attrs = 1;
    TN_TRY(tn_expand_loop_rows(x, b.region, b.carried, 0, attr, &attrs));
    TN_TRY(add_node(x, "scan", b.args, in, attrs, attr, 1, &b.region, results, out));
    for (uint32_t i = 0; i < x->outputs && i < results; i++) {
        if (i >= states && (out_axes[i - states] || out_ways[i - states])) {
            int axis, perm[TN_MAX_RANK], rank = tn_value_rank(g, out[i]);
            if (rank < 0)
                return tn_expand_later(x, "needs the ranks of what it stacks");
            TN_TRY(tn_expand_axis(x, out_axes[i - states], rank, &axis));
            TN_TRY(direction(x, "scan_output_directions", out_ways[i - states]));
            if (out_ways[i - states])
                out[i] = reversed(x, out[i]);
            moved(rank, 0, axis, perm);
            if (axis)
                out[i] = tn_transpose(g, out[i], perm);
        }
        TN_TRY(tn_expand_set(x, i, out[i]));
    }
    return TN_OK;
}

/* --- Scan of operator set 8: over a batch, each entry with a length of its own ------------------------------------------------------------ */

typedef struct batched {
    tn_expand *x;
    uint32_t states, scanned, results;
    const int64_t *ways;
    bool lengths;
    tn_dim steps;       /* size of axis 1 of what is scanned */
    const tn_value *xs; /* of the entry being built: [scanned] */
    tn_value length;    /* i64 scalar, with lengths */
    bool counted;       /* the entry's number is the last argument */
    tn_value entry;     /* what tells it from others, if so */
    tn_type *after;     /* [states], as in body; those of one entry */
    tn_status status;
} batched;

/* One step of one entry: the states, then t. Beyond the entry's length states stay and outputs are zero. */
static tn_status build_step(tn_expand *x, void *ctx, const tn_value *args, tn_value *results) {
    batched *s = ctx;
    tn_graph *g = x->graph;
    tn_value t = args[s->states], end = s->lengths ? s->length : tn_expand_size_value(x, s->steps, TN_I64);
    tn_value back = tn_sub(g, tn_sub(g, end, t), tn_scalar(g, TN_I64, 1));
    tn_value *in = tn_expand_alloc(x, (size_t)s->states + s->scanned + 1, sizeof *in);
    if (!in)
        return tn_error_status();
    back = tn_max(g, back, tn_scalar(g, TN_I64, 0));
    for (uint32_t i = 0; i < s->states; i++)
        in[i] = args[i];
    for (uint32_t i = 0; i < s->scanned; i++)
        in[s->states + i] = tn_gather(g, s->xs[i], s->ways[i] ? back : t, 0);
    tn_value trip = s->counted ? trip_of(g, s->entry, t) : (tn_value){0};
    TN_TRY(tn_expand_trip(x, 0, trip, s->states + s->scanned, in, s->results, results));
    TN_TRY(keep_shapes(x, s->states, args, results, s->after));
    if (!s->lengths)
        return TN_OK;
    tn_value live = tn_less(g, t, s->length);
    for (uint32_t i = 0; i < s->results; i++)
        results[i] = tn_select(g, live, results[i], i < s->states ? args[i] : tn_scalar_like(g, results[i], 0));
    return TN_OK;
}

static tn_status scan_entry(batched *s, const tn_value *states, tn_value *results) {
    tn_expand *x = s->x;
    tn_graph *g = x->graph;
    body b = {.carried = s->states, .args = s->states + 1, .results = s->results, .build = build_step, .ctx = s};
    b.after = s->after = tn_expand_alloc(x, (size_t)s->states + 1, sizeof *s->after);
    tn_value *in = tn_expand_alloc(x, b.args, sizeof *in);
    b.types = tn_expand_alloc(x, b.args, sizeof *b.types);
    if (!in || !b.types || !b.after)
        return tn_error_status();
    for (uint32_t i = 0; i < s->states; i++) {
        in[i] = states[i];
        b.types[i] = tn_value_type(g, in[i]);
    }
    in[s->states] = tn_iota(g, TN_I64, 1, &s->steps, 0);
    b.types[s->states] = tn_type_tensor(g, TN_I64, 0, NULL);
    TN_TRY(tn_graph_check(g));
    TN_TRY(settle(x, &b));
    tn_attr attr = TN_A_INT("carried", s->states);
    return add_node(x, "scan", b.args, in, 1, &attr, 1, &b.region, s->results, results);
}

/* One entry: [length,] states, inputs. */
static void build_entry(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    batched *s = ctx;
    if (s->lengths)
        s->length = tn_cast(g, args[0], TN_I64);
    s->xs = args + s->lengths + s->states;
    if (s->counted)
        s->entry = trip_of(g, tn_onnx_trip(g, s->x->node), s->xs[s->scanned]);
    if (s->status == TN_OK)
        s->status = scan_entry(s, args + s->lengths, results);
    tn_expand_stick(s->x, s->status);
}

static tn_status expand_scan_batched(tn_expand *x) {
    tn_graph *g = x->graph;
    TN_RULE(x, x->inputs >= 2, "it has no input to scan");
    uint32_t n = x->inputs - 1;
    batched s = {.x = x, .results = tn_expand_body_results(x, 0), .lengths = tn_expand_has(x, 0)};
    TN_TRY(scanned_inputs(x, n, &s.scanned));
    s.states = n - s.scanned;
    TN_RULE(x, tn_expand_body_args(x, 0) == n && s.results >= s.states,
            "the body takes %u values and gives %u, for %u inputs", (unsigned)tn_expand_body_args(x, 0),
            (unsigned)s.results, (unsigned)n);
    TN_TRY(per_value(x, "directions", s.scanned, &s.ways));
    s.counted = body_draws(x);
    tn_value *in = tn_expand_alloc(x, (size_t)n + 2, sizeof *in),
             *out = tn_expand_alloc(x, (size_t)s.results + 1, sizeof *out);
    if (!in || !out)
        return tn_error_status();
    for (uint32_t i = 0; i < x->inputs; i++) {
        int rank = tn_expand_rank(x, i);
        TN_RULE(x, i == 0 || tn_expand_has(x, i), "input %u is missing", (unsigned)i);
        TN_RULE(x, !tn_expand_has(x, i) || rank >= (i > s.states ? 2 : 1), "input %u has rank %d: axes are missing",
                (unsigned)i, rank);
    }
    for (uint32_t i = 0; i < x->inputs; i++) { /* all are of one batch, and all that is scanned of as many steps */
        if (!tn_expand_has(x, i))
            continue;
        TN_RULE_SIZE(x, i, 0, tn_expand_dim(x, s.states + 1, 0), "input %u has another batch than input %u",
                     (unsigned)i, (unsigned)s.states + 1);
        if (i > s.states)
            TN_RULE_SIZE(x, i, 1, tn_expand_dim(x, s.states + 1, 1),
                         "input %u has another number of steps than input %u", (unsigned)i, (unsigned)s.states + 1);
        in[i - !s.lengths] =
            i == 0 ? tn_expand_counted(x, 0, tn_expand_size_value(x, tn_expand_dim(x, s.states + 1, 1), TN_I64),
                                       "sequence_lens")
                   : tn_expand_input(x, i);
        if (i > s.states)
            TN_TRY(direction(x, "directions", s.ways[i - 1 - s.states]));
    }
    s.steps = tn_expand_dim(x, s.states + 1, 1);
    uint32_t count = n + s.lengths;
    if (s.counted) {
        tn_dim entries = tn_expand_dim(x, s.states + 1, 0);
        in[count++] = tn_iota(g, TN_I64, 1, &entries, 0);
    }
    tn_status status = tn_scan(g, 0, NULL, count, in, build_entry, &s, s.results, out);
    TN_TRY(s.status != TN_OK ? s.status : status);
    if (s.states && s.after) { /* what its states become is known only now */
        tn_node scan = tn_value_producer(g, out[0]);
        tn_insertion at = tn_graph_insertion(g);
        tn_graph_insert_before(g, scan);
        status = hold_states(x, s.states, s.after, 1, count, in + s.lengths);
        tn_graph_set_insertion(g, at);
        TN_TRY(status);
        for (uint32_t i = 0; i < s.states; i++)
            TN_TRY(tn_node_set_input(g, scan, i + s.lengths, in[i + s.lengths]));
    }
    for (uint32_t i = 0; i < x->outputs && i < s.results; i++)
        TN_TRY(tn_expand_set(x, i, out[i]));
    return TN_OK;
}

/* --- rows ------------------------------------------------------------------------------------------------------------------------------------ */

static const tn_attr_spec scan_attrs[] = {
    TN_SPEC_NEEDED("num_scan_inputs", TN_ATTR_INT), TN_SPEC_INTS("scan_input_axes"),
    TN_SPEC_INTS("scan_input_directions"),          TN_SPEC_INTS("scan_output_axes"),
    TN_SPEC_INTS("scan_output_directions"),         {0}};
static const tn_attr_spec scan_8_attrs[] = {
    TN_SPEC_NEEDED("num_scan_inputs", TN_ATTR_INT), TN_SPEC_INTS("directions"), {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX_CONTROL("Loop", 1, .regions = "body", .since = 1, .inputs = {0, TN_ONNX_ANY}, .outputs = {1, TN_ONNX_ANY},
                    .flags = TN_ONNX_UNRANKED, .expand = expand_loop),
    TN_ONNX_CONTROL("Scan", 1, .regions = "body", .since = 9, .inputs = {1, TN_ONNX_ANY}, .outputs = {1, TN_ONNX_ANY},
                    .attrs = scan_attrs, .flags = TN_ONNX_UNRANKED, .expand = expand_scan),
    TN_ONNX_CONTROL("Scan", 1, .regions = "body", .since = 8, .until = 8, .inputs = {0, TN_ONNX_ANY},
                    .outputs = {1, TN_ONNX_ANY}, .attrs = scan_8_attrs, .expand = expand_scan_batched),
};

const tn_onnx_family tn_onnx_family_control = {rows, sizeof rows / sizeof *rows};
