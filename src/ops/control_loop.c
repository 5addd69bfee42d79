/* Loops: while and scan. */
#include "ops/control.h"

#include <inttypes.h>

/* --- loops: types -------------------------------------------------------------------------------------------------------------- */

/* The label of a loop value: its argument's, else that of its value on entry. */
static const char *loop_name(const tn_infer *c, tn_region body, uint32_t index) {
    const char *name = tn_value_name(c->graph, tn_region_arg(c->graph, body, index));
    return *name ? name : tn_value_name(c->graph, tn_node_input(c->graph, c->node, index));
}

static tn_status loop_fail(tn_infer *c, tn_region body, uint32_t index, tn_type entry, tn_type after) {
    char x[200], y[200];
    const tn_graph *g = c->graph;
    tn_infer_fail(c, "loop value '%s' (number %" PRIu32 ") is %s on entry and %s after one trip",
                  loop_name(c, body, index), index, tn_type_describe(g, entry, x, sizeof x),
                  tn_type_describe(g, after, y, sizeof y));
    tn_fail_hint("a loop value keeps its type; a dimension that changes must be declared: give the type of the loop "
                 "value with a fresh symbol (tn_dim_fresh) for it");
    return TN_ERR_MODEL;
}

/* One carried value: argument, value on entry and value after a trip must agree; a dimension that the argument declares as a
   symbol of the body's own may be anything. The type of the final value. */
static tn_status carried_type(tn_infer *c, tn_region body, uint32_t index, tn_type *out) {
    tn_graph *g = c->graph;
    tn_type entry = tn_value_type(g, tn_node_input(g, c->node, index));
    tn_type arg = tn_value_type(g, tn_region_arg(g, body, index));
    tn_type after = tn_value_type(g, tn_region_result(g, body, index));
    *out = arg;
    if (!entry.id || !arg.id || !after.id)
        return loop_fail(c, body, index, entry, after);
    if (tn_type_kind(g, arg) != TN_KIND_TENSOR)
        return tn_type_compatible(g, arg, entry) && tn_type_compatible(g, arg, after)
                   ? TN_OK
                   : loop_fail(c, body, index, entry, after);
    tn_dtype dtype = tn_type_dtype(g, arg);
    if (tn_type_kind(g, entry) != TN_KIND_TENSOR || tn_type_kind(g, after) != TN_KIND_TENSOR ||
        tn_type_dtype(g, entry) != dtype || tn_type_dtype(g, after) != dtype)
        return loop_fail(c, body, index, entry, after);
    tn_dim x[TN_MAX_RANK], y[TN_MAX_RANK], z[TN_MAX_RANK];
    int rank = tn_control_dims(g, arg, x);
    if (rank < 0)
        return TN_OK;
    if (tn_control_dims(g, entry, y) != rank || tn_control_dims(g, after, z) != rank)
        return loop_fail(c, body, index, entry, after);
    for (int i = 0; i < rank; i++) {
        if (tn_dim_equal(g, x[i], y[i]) && !tn_control_inner(c, x[i])) {
            if (!tn_dim_equal(g, x[i], z[i]))
                return loop_fail(c, body, index, entry, after);
            continue;
        }
        if (g->dims.expr.data[x[i].id].kind != TN_DIM_SYMBOL || !tn_control_inner(c, x[i]))
            return loop_fail(c, body, index, entry, after);
        x[i] = tn_infer_fresh(c, index, i, 0, INT64_MAX);
        if (!x[i].id)
            return tn_error_status();
    }
    *out = tn_type_tensor(g, dtype, rank, x);
    return out->id ? TN_OK : tn_error_status();
}

/* The type of a value stacked over trips. `length`: null for a fresh one. */
static tn_status stacked_type(tn_infer *c, tn_value row, uint32_t output, tn_dim length) {
    tn_graph *g = c->graph;
    tn_dim dims[TN_MAX_RANK + 1];
    tn_type type = tn_value_type(g, row);
    char text[200];
    if (!type.id) /* of a node that is expanded when it runs */
        return tn_infer_type(c, output, type);
    if (tn_type_kind(g, type) != TN_KIND_TENSOR || tn_type_rank(g, type) >= TN_MAX_RANK)
        return tn_infer_fail(c, "output %" PRIu32 " stacks %s, but only tensors of rank below %d can be stacked",
                             output, tn_value_describe(g, row, text, sizeof text), TN_MAX_RANK);
    tn_dtype dtype = tn_type_dtype(g, type);
    int rank = tn_control_dims(g, type, dims + 1);
    if (rank < 0)
        return tn_infer_tensor(c, output, dtype, -1, NULL);
    dims[0] = length.id ? length : tn_infer_fresh(c, output, 0, 0, INT64_MAX);
    for (int i = 1; i <= rank; i++)
        if (tn_control_inner(c, dims[i]))
            dims[i] = tn_infer_fresh(c, output, i, 0, INT64_MAX);
    for (int i = 0; i <= rank; i++)
        if (!dims[i].id)
            return tn_error_status();
    return tn_infer_tensor(c, output, dtype, rank + 1, dims);
}

/* Where the entry after that at `at` begins. */
static uint32_t row_end(const int64_t *rows, uint32_t count, uint32_t at) {
    int64_t rank = count - at < 2 || rows[at + 1] < 0 ? 0 : rows[at + 1];
    return rank > count - at - 2 || count - at < 2 ? count : at + 2 + (uint32_t)rank;
}

uint32_t tn_loop_row(const int64_t *rows, uint32_t count, uint32_t index) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < index && at < count; i++)
        at = row_end(rows, count, at);
    return at;
}

/* Whether TN_LOOP_ROWS, where it is, says something of every stacked output. */
static tn_status check_rows(tn_infer *c, uint32_t stacked) {
    const int64_t *rows;
    uint32_t count = tn_attr_ints(c->graph, c->node, TN_LOOP_ROWS, &rows), at = 0;
    if (!tn_node_attr(c->graph, c->node, TN_LOOP_ROWS))
        return TN_OK;
    for (uint32_t i = 0; i < stacked; i++) {
        bool good = count - at >= 2 && rows[at] >= 0 && rows[at] < TN_DTYPE_COUNT && rows[at + 1] >= -1 &&
                    rows[at + 1] < TN_MAX_RANK && (rows[at + 1] < 0 || rows[at + 1] <= count - at - 2);
        for (int64_t k = 0; good && k < rows[at + 1]; k++)
            good = rows[at + 2 + k] >= 0;
        if (!good)
            return tn_infer_fail(c, "attribute '%s' has no dtype, rank and sizes for stacked output %" PRIu32,
                                 TN_LOOP_ROWS, i);
        at = row_end(rows, count, at);
    }
    return at == count
               ? TN_OK
               : tn_infer_fail(c, "attribute '%s' goes on after %" PRIu32 " stacked outputs", TN_LOOP_ROWS, stacked);
}

tn_status tn_while_infer(tn_infer *c) {
    tn_graph *g = c->graph;
    tn_region cond = tn_control_region(c, 0), body = tn_control_region(c, 1);
    uint32_t n = tn_node_input_count(g, c->node);
    char text[200];
    if (tn_region_arg_count(g, cond) != n || tn_region_arg_count(g, body) != n)
        return tn_infer_fail(c, "%" PRIu32 " loop values, but the condition takes %" PRIu32 " and the body %" PRIu32, n,
                             tn_region_arg_count(g, cond), tn_region_arg_count(g, body));
    if (tn_region_result_count(g, cond) != 1 || !tn_control_bool_scalar(g, tn_region_result(g, cond, 0)))
        return tn_infer_fail(c, "the condition must give one bool scalar, but gives %" PRIu32 " results, the first %s",
                             tn_region_result_count(g, cond),
                             tn_value_describe(g, tn_region_result(g, cond, 0), text, sizeof text));
    if (tn_region_result_count(g, body) != c->outputs || c->outputs < n)
        return tn_infer_fail(c,
                             "the body gives %" PRIu32 " results for %" PRIu32 " loop values and %" PRIu32 " outputs",
                             tn_region_result_count(g, body), n, c->outputs);
    TN_TRY(check_rows(c, c->outputs - n));
    for (uint32_t i = 0; i < n; i++) {
        tn_type type, a = tn_value_type(g, tn_region_arg(g, cond, i)), b = tn_value_type(g, tn_region_arg(g, body, i));
        if (!tn_type_compatible(g, a, b))
            return tn_control_differ(c, "loop value", i, "for the condition", a, "for the body", b);
        TN_TRY(carried_type(c, body, i, &type));
        TN_TRY(tn_infer_type(c, i, type));
    }
    tn_dim trips = {0};
    for (uint32_t i = n; i < c->outputs; i++) {
        /* all stacked outputs have as many rows as there were trips: one size */
        if (!trips.id && tn_value_rank(g, tn_region_result(g, body, i)) >= 0) {
            trips = tn_while_trips(c);
            if (!trips.id)
                trips = tn_infer_fresh(c, i, 0, 0, INT64_MAX);
        }
        TN_TRY(stacked_type(c, tn_region_result(g, body, i), i, trips));
    }
    return TN_OK;
}

tn_status tn_scan_infer(tn_infer *c) {
    tn_graph *g = c->graph;
    tn_region body = tn_control_region(c, 0);
    uint32_t n = tn_node_input_count(g, c->node);
    int64_t carried = tn_attr_int(g, c->node, "carried");
    if (carried < 0 || carried >= n)
        return tn_infer_fail(c, "%" PRId64 " carried values of %" PRIu32 " inputs: one input at least must be scanned",
                             carried, n);
    uint32_t k = (uint32_t)carried;
    if (tn_region_arg_count(g, body) != n)
        return tn_infer_fail(c, "%" PRIu32 " inputs, but the body takes %" PRIu32, n, tn_region_arg_count(g, body));
    if (tn_region_result_count(g, body) != c->outputs || c->outputs < k)
        return tn_infer_fail(
            c, "the body gives %" PRIu32 " results for %" PRIu32 " carried values and %" PRIu32 " outputs",
            tn_region_result_count(g, body), k, c->outputs);
    TN_TRY(check_rows(c, c->outputs - k));
    tn_dim length = {0};
    for (uint32_t i = k; i < n; i++) {
        tn_operand_type x;
        TN_TRY(tn_infer_operand(c, i, &x));
        if (x.rank < 1)
            return tn_infer_fail(c, "input %" PRIu32 " is a scalar: nothing to scan along", i);
        tn_dim merged = length.id ? tn_infer_merge_dim(g, length, x.dims[0]) : x.dims[0];
        if (!merged.id)
            return tn_infer_fail(c, "the scanned inputs differ in length (their first dimension)");
        length = merged;
        tn_type slice = tn_type_tensor(g, x.dtype, x.rank - 1, x.dims + 1);
        if (!slice.id)
            return tn_error_status();
        tn_type arg = tn_value_type(g, tn_region_arg(g, body, i));
        if (!tn_type_compatible(g, slice, arg))
            return tn_control_differ(c, "scanned value", i - k, "in each slice", slice, "in the body", arg);
    }
    for (uint32_t i = 0; i < k; i++) {
        tn_type type;
        TN_TRY(carried_type(c, body, i, &type));
        TN_TRY(tn_infer_type(c, i, type));
    }
    for (uint32_t i = k; i < c->outputs; i++)
        TN_TRY(stacked_type(c, tn_region_result(g, body, i), i, length));
    return TN_OK;
}

/* --- loops: running ------------------------------------------------------------------------------------------------------------ */

/* Element i of packed data, bit for bit. */
static void copy_packed(int bits, const uint8_t *from, int64_t from_index, uint8_t *to, int64_t to_index) {
    unsigned mask = (1u << bits) - 1u;
    int64_t f = from_index * bits, t = to_index * bits;
    unsigned value = (unsigned)(from[f / 8] >> (f % 8)) & mask;
    to[t / 8] = (uint8_t)((to[t / 8] & ~(mask << (t % 8))) | value << (t % 8));
}

/* Row `index` along axis 0 as a tensor: a view, or a copy of packed elements. */
static tn_tensor *take_row(tn_heap *heap, const tn_tensor *x, int64_t index) {
    if (!tn_dtype_is_subbyte((tn_dtype)x->dtype))
        return tn_tensor_view(heap, x, (tn_dtype)x->dtype, x->rank - 1, x->dims + 1, x->strides + 1,
                              index * x->strides[0]);
    tn_tensor *row = tn_tensor_create_in(heap, (tn_dtype)x->dtype, x->rank - 1, x->dims + 1);
    for (int64_t i = 0; row && i < row->count; i++)
        copy_packed(tn_dtype_bits((tn_dtype)x->dtype), x->data, index * row->count + i, row->data, i);
    return row;
}

/* Rows collected over trips: row t of stacked output j is rows.data[t * stacked + j]. */
typedef TN_VEC(tn_object *) row_vec;

static void rows_free(tn_heap *heap, row_vec *rows) {
    for (uint32_t i = 0; i < rows->len; i++)
        tn_object_destroy(rows->data[i]);
    tn_vec_free(heap, rows);
}

typedef struct open_symbols {
    const tn_dim_env *env;
    bool open; /* one has no value yet */
} open_symbols;

static void note_open(void *ctx, uint32_t symbol) {
    open_symbols *s = ctx;
    s->open |= symbol >= s->env->count || !s->env->bound[symbol];
}

/* A size of the rows where no trip made one: 0 when only a trip could tell; what no trip could have made is an error. */
static tn_status size_of_no_row(const tn_eval *e, uint32_t output, int axis, tn_dim dim, int64_t *size) {
    const tn_dims *all = &e->graph->dims;
    open_symbols s = {e->env, false};
    if (tn_dim_eval(all, e->env, dim, size)) {
        if (*size >= 0)
            return TN_OK;
        return tn_eval_fail(e, TN_ERR_INPUT, "dimension %d of output %" PRIu32 " is %" PRId64, axis + 1, output, *size);
    }
    *size = 0;
    tn_dim_symbols(all, dim, note_open, &s);
    if (s.open)
        return TN_OK;
    tn_text text;
    tn_text_init(&text, e->heap);
    const char *rule = tn_dim_explain(all, e->env, dim, &text);
    tn_eval_fail(e, TN_ERR_INPUT, "dimension %d of output %" PRIu32 ": the size %.600s", axis + 1, output,
                 text.failed || !text.data ? "of a dimension has no value" : text.data);
    tn_text_free(&text);
    tn_fail_hint("%s", rule);
    return TN_ERR_INPUT;
}

/* The dtype, rank and sizes of a row where no trip made one: as inference knows them, else as the node says; a row of unknown rank is
   a scalar. */
static tn_status no_row(const tn_eval *e, tn_value row, uint32_t j, uint32_t output, tn_dtype *dtype, int *rank,
                        int64_t *sizes) {
    const int64_t *rows;
    uint32_t count = tn_attr_ints(e->graph, e->node, TN_LOOP_ROWS, &rows), at = tn_loop_row(rows, count, j);
    tn_type type = tn_value_type(e->graph, row);
    *dtype = tn_type_dtype(e->graph, type);
    *rank = tn_type_rank(e->graph, type);
    bool said = count - at >= 2 && rows[at] != TN_DTYPE_NONE && (!*dtype || *dtype == rows[at]);
    if (!*dtype && !said) {
        tn_eval_fail(e, TN_ERR_MODEL, "output %" PRIu32 " stacks the rows of no trip, and nothing says what they are",
                     output);
        const char *name = tn_value_name(e->graph, row), *quote = *name ? "'" : "";
        tn_fail_hint("declare element type and shape of the body's output %s%s%s", quote,
                     *name ? name : "that it stacks, outside of functions", quote);
        return TN_ERR_MODEL;
    }
    if (*rank >= 0) {
        for (int i = 0; i < *rank; i++)
            TN_TRY(size_of_no_row(e, output, i, tn_type_dims(e->graph, type)[i], &sizes[i]));
        return TN_OK;
    }
    *dtype = said ? (tn_dtype)rows[at] : *dtype;
    *rank = said && rows[at + 1] > 0 ? (int)rows[at + 1] : 0;
    if (*rank)
        memcpy(sizes, rows + at + 2, (size_t)*rank * sizeof *sizes);
    return TN_OK;
}

/* Stacks column `j` of the rows and sets it as output `output`; `value`: a row in the body. */
static tn_status set_stacked(tn_eval *e, const row_vec *rows, uint32_t stacked, uint32_t j, uint32_t output,
                             tn_value value) {
    int64_t trips = stacked ? rows->len / stacked : 0, dims[TN_MAX_RANK] = {trips};
    int rank;
    tn_dtype dtype;
    const tn_tensor *first = rows->len ? (const tn_tensor *)rows->data[j] : NULL;
    if (rows->len) {
        if (first->rank >= TN_MAX_RANK)
            return tn_eval_fail(e, TN_ERR_LIMIT, "output %" PRIu32 ": rank above %d", output, TN_MAX_RANK);
        dtype = (tn_dtype)first->dtype;
        rank = first->rank;
        memcpy(dims + 1, first->dims, (size_t)rank * sizeof *dims);
    } else {
        TN_TRY(no_row(e, value, j, output, &dtype, &rank, dims + 1));
    }
    tn_tensor *all = tn_tensor_create_in(e->heap, dtype, rank + 1, dims);
    if (!all)
        return tn_error_status();
    for (int64_t t = 0; t < trips; t++) {
        tn_tensor *row = (tn_tensor *)rows->data[t * stacked + j];
        if (row->object.kind != TN_KIND_TENSOR || row->dtype != dtype || row->rank != rank ||
            memcmp(row->dims, dims + 1, (size_t)rank * sizeof *dims) != 0) {
            char a[160], b[160];
            tn_tensor_destroy(all);
            return tn_eval_fail(
                e, TN_ERR_INPUT,
                "output %" PRIu32 " stacks rows of one shape, but trip %" PRId64 " gave %s, the first %s", output, t,
                tn_tensor_describe(row, a, sizeof a), tn_tensor_describe(first, b, sizeof b));
        }
        tn_status status = TN_OK;
        if (tn_dtype_is_subbyte(dtype)) {
            for (int64_t i = 0; i < row->count; i++)
                copy_packed(tn_dtype_bits(dtype), row->data, i, all->data, t * row->count + i);
        } else {
            tn_tensor *place = take_row(e->heap, all, t);
            status = place ? tn_tensor_assign(place, row) : tn_error_status();
            tn_tensor_destroy(place);
        }
        if (status != TN_OK) {
            tn_tensor_destroy(all);
            return status;
        }
    }
    return tn_eval_set(e, output, tn_tensor_object(all));
}

/* State of a loop: carried values, then slices as arguments; carried values, then rows as results. */
typedef struct loop {
    uint32_t carried, args, results;
    tn_object **arg, **result;
    row_vec rows;
} loop;

static void loop_end(tn_eval *e, loop *l) {
    for (uint32_t i = 0; i < l->args; i++)
        tn_object_destroy(l->arg[i]);
    tn_free(e->heap, l->arg);
    rows_free(e->heap, &l->rows);
}

static tn_status loop_begin(tn_eval *e, loop *l, uint32_t carried, uint32_t args) {
    *l = (loop){.carried = carried, .args = args, .results = e->outputs};
    l->arg = tn_alloc_array(e->heap, (size_t)args + e->outputs, sizeof *l->arg);
    if (!l->arg) {
        l->args = 0;
        return tn_error_status();
    }
    l->result = l->arg + args;
    for (uint32_t i = 0; i < carried; i++)
        l->arg[i] = tn_object_retain(e->in[i]);
    return TN_OK;
}

/* One trip of the body; its results become the carried values and one more row. */
static tn_status loop_trip(tn_eval *e, loop *l, tn_region body) {
    uint32_t stacked = l->results - l->carried;
    if (!tn_vec_reserve(e->heap, &l->rows, stacked))
        return tn_error_status();
    TN_TRY(e->run_region(e, body, l->args, l->arg, l->results, l->result));
    for (uint32_t i = 0; i < l->args; i++) {
        tn_object_destroy(l->arg[i]);
        l->arg[i] = i < l->carried ? l->result[i] : NULL;
    }
    for (uint32_t j = 0; j < stacked; j++)
        l->rows.data[l->rows.len++] = l->result[l->carried + j];
    return TN_OK;
}

static tn_status loop_finish(tn_eval *e, loop *l, tn_region body) {
    uint32_t stacked = l->results - l->carried;
    for (uint32_t i = 0; i < l->carried; i++) {
        tn_object *final = l->arg[i];
        l->arg[i] = NULL;
        TN_TRY(tn_eval_set(e, i, final));
    }
    for (uint32_t j = 0; j < stacked; j++) {
        tn_value row = tn_region_result(e->graph, body, l->carried + j);
        TN_TRY(set_stacked(e, &l->rows, stacked, j, l->carried + j, row));
    }
    return TN_OK;
}

static tn_status while_run(tn_eval *e, loop *l) {
    tn_region cond = tn_node_region(e->graph, e->node, 0), body = tn_node_region(e->graph, e->node, 1);
    for (;;) {
        tn_object *go = NULL;
        TN_TRY(e->run_region(e, cond, l->args, l->arg, 1, &go));
        bool again = tn_control_truth((tn_tensor *)go);
        tn_object_destroy(go);
        if (!again)
            return loop_finish(e, l, body);
        TN_TRY(loop_trip(e, l, body));
    }
}

tn_status tn_while_eval(tn_eval *e) {
    loop l;
    tn_status status = loop_begin(e, &l, e->inputs, e->inputs);
    if (status == TN_OK)
        status = while_run(e, &l);
    loop_end(e, &l);
    return status;
}

static tn_status scan_run(tn_eval *e, loop *l) {
    tn_region body = tn_node_region(e->graph, e->node, 0);
    int64_t trips = tn_eval_in(e, l->carried)->dims[0];
    for (uint32_t i = l->carried; i < l->args; i++)
        if (tn_eval_in(e, i)->dims[0] != trips)
            return tn_eval_fail(e, TN_ERR_INPUT, "the scanned inputs differ in length: %" PRId64 " and %" PRId64, trips,
                                tn_eval_in(e, i)->dims[0]);
    for (int64_t t = 0; t < trips; t++) {
        for (uint32_t i = l->carried; i < l->args; i++) {
            tn_tensor *row = take_row(e->heap, tn_eval_in(e, i), t);
            if (!row)
                return tn_error_status();
            l->arg[i] = tn_tensor_object(row);
        }
        TN_TRY(loop_trip(e, l, body));
    }
    return loop_finish(e, l, body);
}

tn_status tn_scan_eval(tn_eval *e) {
    loop l;
    tn_status status = loop_begin(e, &l, (uint32_t)tn_attr_int(e->graph, e->node, "carried"), e->inputs);
    if (status == TN_OK)
        status = scan_run(e, &l);
    loop_end(e, &l);
    return status;
}
