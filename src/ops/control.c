/* Control flow: if and call, and the rows of the family. Bodies are regions (closed functions for call); values are passed as
   arguments. Loops stand in control_loop.c. */
#include "ops/control.h"

#include <inttypes.h>

/* --- types ------------------------------------------------------------------------------------------------------------- */

/* Whether a symbol gets its value inside a region of this node (or nowhere), so that it means nothing outside. */
typedef struct inner_search {
    const tn_graph *graph;
    uint32_t node;
    bool found;
} inner_search;

static void visit_symbol(void *ctx, uint32_t symbol) {
    inner_search *s = ctx;
    const tn_graph *g = s->graph;
    uint32_t value = symbol < g->symbol_value.len ? g->symbol_value.data[symbol] : 0;
    if (!value) {
        s->found = true;
        return;
    }
    const tn_value_rec *v = &g->value.data[value];
    uint32_t region = v->producer ? g->node.data[v->producer].region : v->region;
    for (;;) {
        uint32_t owner = g->region.data[region].owner;
        if (!owner)
            return;
        if (owner == s->node) {
            s->found = true;
            return;
        }
        region = g->node.data[owner].region;
    }
}

bool tn_control_inner(const tn_infer *c, tn_dim dim) {
    inner_search s = {.graph = c->graph, .node = c->node.id};
    tn_dim_symbols(&c->graph->dims, dim, visit_symbol, &s);
    return s.found;
}

tn_status tn_control_differ(tn_infer *c, const char *what, uint32_t index, const char *here, tn_type a,
                            const char *there, tn_type b) {
    char x[200], y[200];
    return tn_infer_fail(c, "%s %" PRIu32 " is %s %s, but %s %s", what, index,
                         tn_type_describe(c->graph, a, x, sizeof x), here, tn_type_describe(c->graph, b, y, sizeof y),
                         there);
}

/* Copies the dims of a tensor type, which move when the graph grows. The rank, -1 for unranked. */
int tn_control_dims(const tn_graph *g, tn_type type, tn_dim dims[TN_MAX_RANK]) {
    int rank = tn_type_rank(g, type);
    if (rank > 0)
        memcpy(dims, tn_type_dims(g, type), (size_t)rank * sizeof *dims);
    return rank;
}

/* The type of a value that is an `a` or a `b`; *out is null when there is none. Inside sequences and the like there are no
   fresh symbols: what differs is unranked. `output` < 0: inside. */
static tn_status join(tn_infer *c, int64_t output, tn_type a, tn_type b, tn_type *out) {
    tn_graph *g = c->graph;
    *out = a;
    if (a.id == b.id)
        return TN_OK;
    *out = (tn_type){0};
    if (!a.id || !b.id || tn_type_kind(g, a) != tn_type_kind(g, b))
        return TN_OK;
    tn_kind kind = tn_type_kind(g, a);
    if (kind == TN_KIND_TENSOR) {
        tn_dim x[TN_MAX_RANK], y[TN_MAX_RANK];
        if (tn_type_dtype(g, a) != tn_type_dtype(g, b))
            return TN_OK;
        int rank = tn_control_dims(g, a, x), other = tn_control_dims(g, b, y);
        bool same = rank == other;
        for (int i = 0; same && i < rank; i++)
            same = tn_dim_equal(g, x[i], y[i]);
        if (rank != other || (output < 0 && !same))
            rank = -1;
        for (int i = 0; i < rank; i++) {
            if (tn_dim_equal(g, x[i], y[i]))
                continue;
            int64_t low, high, low2, high2;
            tn_dim_bounds(g, x[i], &low, &high);
            tn_dim_bounds(g, y[i], &low2, &high2);
            x[i] = tn_infer_fresh(c, (uint32_t)output, i, low < low2 ? low : low2, high > high2 ? high : high2);
            if (!x[i].id)
                return tn_error_status();
        }
        *out = tn_type_tensor(g, tn_type_dtype(g, a), rank, x);
    } else {
        tn_type element;
        TN_TRY(join(c, -1, tn_type_element(g, a), tn_type_element(g, b), &element));
        if (!element.id)
            return TN_OK;
        if (kind == TN_KIND_SEQUENCE)
            *out = tn_type_sequence(g, element);
        else if (kind == TN_KIND_OPTIONAL)
            *out = tn_type_optional(g, element);
        else if (tn_type_dtype(g, a) == tn_type_dtype(g, b))
            *out = tn_type_map(g, tn_type_dtype(g, a), element);
        else
            return TN_OK;
    }
    return out->id ? TN_OK : tn_error_status();
}

bool tn_control_bool_scalar(const tn_graph *g, tn_value value) {
    tn_type type = tn_value_type(g, value);
    return type.id && tn_type_kind(g, type) == TN_KIND_TENSOR && tn_type_dtype(g, type) == TN_BOOL &&
           tn_type_rank(g, type) == 0;
}

/* --- if ---------------------------------------------------------------------------------------------------------------------- */

static tn_status if_infer(tn_infer *c) {
    tn_graph *g = c->graph;
    char text[200];
    tn_value cond = tn_node_input(g, c->node, 0);
    if (!tn_control_bool_scalar(g, cond))
        return tn_infer_fail(c, "the condition must be a bool scalar, but is %s",
                             tn_value_describe(g, cond, text, sizeof text));
    for (uint32_t r = 0; r < 2; r++) {
        if (tn_region_arg_count(g, tn_control_region(c, r)) != 0)
            return tn_infer_fail(c, "a branch takes no arguments");
        if (tn_region_result_count(g, tn_control_region(c, r)) != c->outputs)
            return tn_infer_fail(c, "the %s branch gives %" PRIu32 " results, but the node has %" PRIu32 " outputs",
                                 r ? "else" : "then", tn_region_result_count(g, tn_control_region(c, r)), c->outputs);
    }
    for (uint32_t i = 0; i < c->outputs; i++) {
        tn_value x = tn_region_result(g, tn_control_region(c, 0), i),
                 y = tn_region_result(g, tn_control_region(c, 1), i);
        tn_type type, a = tn_value_type(g, x), b = tn_value_type(g, y);
        TN_TRY(join(c, i, a, b, &type));
        if (!type.id && a.id && b.id)
            return tn_control_differ(c, "result", i, "from the then branch", a, "from the else branch", b);
        TN_TRY(tn_infer_type(c, i, type));
        const tn_dim *p, *q;
        int32_t n = tn_value_contents(g, x, &p), m = tn_value_contents(g, y, &q);
        if (n >= 0 && n == m && (n == 0 || memcmp(p, q, (size_t)n * sizeof *p) == 0))
            TN_TRY(tn_infer_known(c, i, (uint32_t)n, p));
    }
    return TN_OK;
}

bool tn_control_truth(const tn_tensor *t) {
    return tn_tensor_get_i64(t, 0) != 0;
}

static tn_status if_eval(tn_eval *e) {
    tn_region taken = tn_node_region(e->graph, e->node, tn_control_truth(tn_eval_in(e, 0)) ? 0 : 1);
    tn_object **results = tn_alloc_array(e->heap, e->outputs, sizeof *results);
    if (!results)
        return tn_error_status();
    tn_status status = e->run_region(e, taken, 0, NULL, e->outputs, results);
    for (uint32_t i = 0; status == TN_OK && i < e->outputs; i++) {
        tn_object *object = results[i];
        results[i] = NULL;
        status = tn_eval_set(e, i, object);
    }
    for (uint32_t i = 0; i < e->outputs; i++)
        tn_object_destroy(results[i]);
    tn_free(e->heap, results);
    return status;
}

/* --- call ------------------------------------------------------------------------------------------------------------------------- */

static void visit_unmapped(void *ctx, uint32_t symbol) {
    struct {
        const tn_dim *map;
        bool missing;
    } *s = ctx;
    s->missing = s->missing || !s->map[symbol].id;
}

/* The type of result `index` of the function with its symbols replaced; `map` has one entry per symbol of the graph. */
static tn_status call_result(tn_infer *c, tn_region body, uint32_t index, const tn_dim *map, uint32_t symbols) {
    tn_graph *g = c->graph;
    tn_type type = tn_value_type(g, tn_region_result(g, body, index));
    if (!type.id || tn_type_kind(g, type) != TN_KIND_TENSOR || tn_type_rank(g, type) < 0)
        return tn_infer_type(c, index, type);
    tn_dim dims[TN_MAX_RANK];
    int rank = tn_control_dims(g, type, dims);
    for (int i = 0; i < rank; i++) {
        struct {
            const tn_dim *map;
            bool missing;
        } search = {map, false};
        tn_dim_symbols(&g->dims, dims[i], visit_unmapped, &search);
        dims[i] =
            search.missing ? tn_infer_fresh(c, index, i, 0, INT64_MAX) : tn_dim_substitute(g, dims[i], map, symbols);
        if (!dims[i].id)
            return tn_error_status();
    }
    return tn_infer_tensor(c, index, tn_type_dtype(g, type), rank, dims);
}

static tn_status call_types(tn_infer *c, tn_region body, tn_dim *map, uint32_t symbols) {
    tn_graph *g = c->graph;
    for (uint32_t i = 0; i < tn_region_arg_count(g, body); i++) {
        tn_type type = tn_value_type(g, tn_region_arg(g, body, i)),
                given = tn_value_type(g, tn_node_input(g, c->node, i));
        if (!type.id || !given.id || tn_type_kind(g, type) != tn_type_kind(g, given) ||
            tn_type_dtype(g, type) != tn_type_dtype(g, given))
            return tn_control_differ(c, "argument", i, "in the call", given, "in the function", type);
        int rank = tn_type_rank(g, type), other = tn_type_rank(g, given);
        if (rank < 0 || other < 0)
            continue;
        if (rank != other)
            return tn_control_differ(c, "argument", i, "in the call", given, "in the function", type);
        for (int d = 0; d < rank; d++) {
            tn_dim want = tn_type_dims(g, type)[d], have = tn_type_dims(g, given)[d];
            const tn_dim_expr *expr = &g->dims.expr.data[want.id];
            int64_t value;
            tn_dim *bound = expr->kind == TN_DIM_SYMBOL && expr->symbol < symbols ? &map[expr->symbol] : NULL;
            bool never = false;
            if (bound && bound->id)
                never = tn_dim_never_equal(g, *bound, have);
            else if (bound)
                *bound = have;
            else if (tn_dim_is_const(g, want, &value))
                never = tn_dim_never_equal(g, want, have);
            if (never)
                return tn_control_differ(c, "argument", i, "in the call", given, "in the function", type);
        }
    }
    for (uint32_t i = 0; i < c->outputs; i++)
        TN_TRY(call_result(c, body, i, map, symbols));
    return TN_OK;
}

static tn_status call_infer(tn_infer *c) {
    tn_graph *g = c->graph;
    tn_region body = tn_graph_function_region(g, (uint32_t)tn_attr_int(g, c->node, "callee"));
    if (!body.id)
        return tn_infer_fail(c, "there is no function number %" PRId64, tn_attr_int(g, c->node, "callee"));
    if (tn_region_arg_count(g, body) != tn_node_input_count(g, c->node) ||
        tn_region_result_count(g, body) != c->outputs)
        return tn_infer_fail(c,
                             "the function takes %" PRIu32 " arguments and gives %" PRIu32
                             " results, the call has %" PRIu32 " and %" PRIu32,
                             tn_region_arg_count(g, body), tn_region_result_count(g, body),
                             tn_node_input_count(g, c->node), c->outputs);
    uint32_t symbols = g->dims.symbol.len;
    tn_dim *map = tn_alloc_array(g->heap, symbols, sizeof *map);
    if (!map)
        return tn_error_status();
    tn_status status = call_types(c, body, map, symbols);
    tn_free(g->heap, map);
    return status;
}

static tn_status call_eval(tn_eval *e) {
    tn_region body = tn_graph_function_region(e->graph, (uint32_t)tn_attr_int(e->graph, e->node, "callee"));
    tn_object **results = tn_alloc_array(e->heap, e->outputs, sizeof *results);
    if (!results)
        return tn_error_status();
    tn_status status = e->run_region(e, body, e->inputs, e->in, e->outputs, results);
    for (uint32_t i = 0; status == TN_OK && i < e->outputs; i++) {
        tn_object *object = results[i];
        results[i] = NULL;
        status = tn_eval_set(e, i, object);
    }
    for (uint32_t i = 0; i < e->outputs; i++)
        tn_object_destroy(results[i]);
    tn_free(e->heap, results);
    return status;
}

/* --- rows ------------------------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec scan_attrs[] = {
    {.name = "carried", .kind = TN_ATTR_INT, .required = true}, {.name = TN_LOOP_ROWS, .kind = TN_ATTR_INTS}, {0}};
static const tn_attr_spec while_attrs[] = {{.name = TN_LOOP_ROWS, .kind = TN_ATTR_INTS}, {0}};
static const tn_attr_spec call_attrs[] = {{.name = "callee", .kind = TN_ATTR_FUNCTION, .required = true}, {0}};

static const tn_op rows[] = {
    {
        .name = "if",
        .dialect = TN_DIALECT_PRIMITIVE,
        .min_inputs = 1,
        .max_inputs = 1,
        .max_outputs = -1,
        .regions = 2,
        .traits = TN_CONTROL,
        .inputs = "cond",
        .doc = "The results of the first region when cond holds, else of the second.",
        .infer = if_infer,
        .eval = if_eval,
        .lowering = TN_LOWER_CONTROL,
        .code = TN_FLOW_IF,
    },
    {
        .name = "while",
        .dialect = TN_DIALECT_PRIMITIVE,
        .max_inputs = -1,
        .max_outputs = -1,
        .regions = 2,
        .traits = TN_CONTROL,
        .attrs = while_attrs,
        .inputs = "init...",
        .doc = "Runs the second region on the loop values while the first holds of them; further results are stacked.",
        .infer = tn_while_infer,
        .eval = tn_while_eval,
        .lowering = TN_LOWER_CONTROL,
        .code = TN_FLOW_WHILE,
    },
    {
        .name = "scan",
        .dialect = TN_DIALECT_PRIMITIVE,
        .min_inputs = 1,
        .max_inputs = -1,
        .max_outputs = -1,
        .regions = 1,
        .traits = TN_CONTROL,
        .attrs = scan_attrs,
        .inputs = "init..., xs...",
        .doc =
            "Runs the region once for each slice of xs along axis 0, with carried values; further results are stacked.",
        .infer = tn_scan_infer,
        .eval = tn_scan_eval,
        .lowering = TN_LOWER_CONTROL,
        .code = TN_FLOW_SCAN,
    },
    {
        .name = "call",
        .dialect = TN_DIALECT_PRIMITIVE,
        .max_inputs = -1,
        .max_outputs = -1,
        .traits = TN_CALL,
        .attrs = call_attrs,
        .inputs = "args...",
        .doc = "The results of a function of the graph.",
        .infer = call_infer,
        .eval = call_eval,
        .lowering = TN_LOWER_CONTROL,
        .code = TN_FLOW_CALL,
    },
};

const tn_op_family tn_family_control = {rows, sizeof rows / sizeof rows[0]};
