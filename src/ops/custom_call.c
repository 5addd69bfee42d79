/* What users' operators are called with: one context for infer and eval, over those of ir/op.h. */
#include <stdarg.h>
#include <stdio.h>

#include "ir/graph.h"
#include "ops/custom.h"

struct tn_custom_call {
    const tn_custom_row *row;
    const tn_graph *graph;
    tn_node node;
    tn_infer *infer; /* one of the two is NULL */
    tn_eval *eval;
    tn_tensor **plain; /* eval: inputs as the row takes them, NULL where they are no tensors */
    bool *set;         /* eval: by output */
    tn_arena scratch;
    tn_status failed; /* of the first call that failed */
};

static bool usable(const tn_custom_call *c) {
    if (!c)
        tn_fail(TN_ERR_USAGE, "the call of a custom operator is NULL");
    return c != NULL;
}

static bool has_name(const tn_custom_call *c, const char *name) {
    return usable(c) && name;
}

static tn_status note(tn_custom_call *c, tn_status status) {
    if (c->failed == TN_OK)
        c->failed = status;
    return status;
}

/* --- failing -------------------------------------------------------------------------------------------------------------------- */

static tn_status fail_at(tn_custom_call *c, bool unsupported, const char *format, va_list args) {
    char what[512];
    if (!usable(c))
        return TN_ERR_USAGE;
    if (vsnprintf(what, sizeof what, format ? format : "failed", args) < 0)
        what[0] = '\0';
    if (c->infer)
        return note(c, unsupported ? tn_infer_unsupported(c->infer, "%s", what) : tn_infer_fail(c->infer, "%s", what));
    return note(c, unsupported ? tn_eval_fail(c->eval, TN_ERR_UNSUPPORTED, "not supported: %s", what)
                               : tn_eval_fail(c->eval, TN_ERR_INPUT, "%s", what));
}

tn_status tn_custom_fail(tn_custom_call *call, const char *format, ...) {
    va_list args;
    va_start(args, format);
    tn_status status = fail_at(call, false, format, args);
    va_end(args);
    return status;
}

tn_status tn_custom_unsupported(tn_custom_call *call, const char *format, ...) {
    va_list args;
    va_start(args, format);
    tn_status status = fail_at(call, true, format, args);
    va_end(args);
    return status;
}

/* The operator itself is wrong: what it does does not agree with what it says. */
static tn_status fail_operator(tn_custom_call *c, const char *format, ...) TN_PRINTF(2, 3);
static tn_status fail_operator(tn_custom_call *c, const char *format, ...) {
    char what[512];
    va_list args;
    va_start(args, format);
    if (vsnprintf(what, sizeof what, format, args) < 0)
        what[0] = '\0';
    va_end(args);
    if (c->eval)
        return note(c, tn_eval_fail(c->eval, TN_ERR_USAGE, "%s", what));
    tn_fail(TN_ERR_USAGE, "%s: %s", c->row->op.name, what);
    tn_fail_at_node(c->graph, c->node);
    return note(c, TN_ERR_USAGE);
}

/* The status of a callback: a failure always has a message, and one that was answered on the way counts. */
static tn_status finish(tn_custom_call *c, const char *callback, tn_status status) {
    if (status == TN_OK)
        status = c->failed;
    if (status != TN_OK && tn_error_status() == TN_OK) {
        tn_fail(status > TN_OK && status <= TN_ERR_INTERNAL ? status : TN_ERR_FAILED,
                "%s: %s failed and does not say why", c->row->op.name, callback);
        tn_fail_at_node(c->graph, c->node);
    }
    return status == TN_OK ? TN_OK : tn_error_status();
}

/* --- inputs ------------------------------------------------------------------------------------------------------------------------- */

void *tn_custom_user(const tn_custom_call *c) {
    if (!usable(c))
        return NULL;
    return c->row->user;
}

uint32_t tn_custom_input_count(const tn_custom_call *c) {
    if (!usable(c))
        return 0;
    return tn_node_input_count(c->graph, c->node);
}

uint32_t tn_custom_output_count(const tn_custom_call *c) {
    if (!usable(c))
        return 0;
    return tn_node_output_count(c->graph, c->node);
}

bool tn_custom_has_input(const tn_custom_call *c, uint32_t i) {
    if (!usable(c))
        return false;
    return c->eval ? i < c->eval->inputs && c->eval->in[i] : tn_node_input(c->graph, c->node, i).id != 0;
}

tn_type tn_custom_input_type(const tn_custom_call *c, uint32_t i) {
    if (!usable(c))
        return (tn_type){0};
    tn_value v = tn_node_input(c->graph, c->node, i);
    return v.id ? tn_value_type(c->graph, v) : (tn_type){0};
}

const tn_tensor *tn_custom_input(const tn_custom_call *c, uint32_t i) {
    if (!usable(c))
        return NULL;
    if (c->eval)
        return i < c->eval->inputs ? c->plain[i] : NULL;
    tn_value v = tn_node_input(c->graph, c->node, i);
    return v.id ? tn_value_constant(c->graph, v) : NULL;
}

tn_dtype tn_custom_input_dtype(const tn_custom_call *c, uint32_t i) {
    if (!usable(c))
        return TN_DTYPE_NONE;
    if (c->eval)
        return tn_custom_input(c, i) ? tn_tensor_dtype(tn_custom_input(c, i)) : TN_DTYPE_NONE;
    tn_value v = tn_node_input(c->graph, c->node, i);
    tn_type type = tn_custom_input_type(c, i);
    return v.id && type.id && tn_type_kind(c->graph, type) == TN_KIND_TENSOR ? tn_type_dtype(c->graph, type)
                                                                             : TN_DTYPE_NONE;
}

int tn_custom_input_rank(const tn_custom_call *c, uint32_t i) {
    if (!usable(c))
        return -1;
    if (c->eval)
        return tn_custom_input(c, i) ? tn_tensor_rank(tn_custom_input(c, i)) : -1;
    tn_value v = tn_node_input(c->graph, c->node, i);
    return v.id ? tn_value_rank(c->graph, v) : -1;
}

tn_dim tn_custom_input_dim(const tn_custom_call *c, uint32_t i, int axis) {
    if (!usable(c))
        return (tn_dim){0};
    tn_value v = tn_node_input(c->graph, c->node, i);
    int rank = v.id ? tn_value_rank(c->graph, v) : -1;
    if (axis < 0)
        axis += rank;
    return axis >= 0 && axis < rank ? tn_value_dims(c->graph, v)[axis] : (tn_dim){0};
}

int tn_custom_known(const tn_custom_call *c, uint32_t i, tn_dim *dims, int max) {
    if (!usable(c))
        return -1;
    const tn_dim *known;
    tn_value v = tn_node_input(c->graph, c->node, i);
    int32_t n = v.id ? tn_value_contents(c->graph, v, &known) : -1;
    if (n < 0 || n > max || (n && !dims))
        return -1;
    for (int32_t k = 0; k < n; k++)
        dims[k] = known[k];
    return n;
}

tn_object *tn_custom_object(const tn_custom_call *c, uint32_t i) {
    if (!usable(c) || !c->eval || i >= c->eval->inputs)
        return NULL;
    return c->plain[i] ? tn_tensor_object(c->plain[i]) : c->eval->in[i];
}

/* --- attributes ------------------------------------------------------------------------------------------------------------------------- */

bool tn_custom_has_attribute(const tn_custom_call *c, const char *name) {
    return has_name(c, name) && tn_node_attr(c->graph, c->node, name) != NULL;
}

int64_t tn_custom_int(const tn_custom_call *c, const char *name) {
    return !has_name(c, name) ? 0 : tn_attr_int(c->graph, c->node, name);
}

double tn_custom_float(const tn_custom_call *c, const char *name) {
    return !has_name(c, name) ? 0 : tn_attr_float(c->graph, c->node, name);
}

tn_string tn_custom_string(const tn_custom_call *c, const char *name) {
    return !has_name(c, name) ? (tn_string){"", 0} : tn_attr_string(c->graph, c->node, name);
}

bool tn_custom_string_is(const tn_custom_call *c, const char *name, const char *text) {
    return has_name(c, name) && text && tn_attr_string_is(c->graph, c->node, name, text);
}

static const tn_attr *list_of(const tn_custom_call *c, const char *name, tn_attr_kind kind) {
    const tn_attr *a = has_name(c, name) ? tn_node_attr(c->graph, c->node, name) : NULL;
    return a && a->kind == kind ? a : NULL;
}

uint32_t tn_custom_ints(const tn_custom_call *c, const char *name, const int64_t **values) {
    const tn_attr *a = list_of(c, name, TN_ATTR_INTS);
    if (values)
        *values = a ? a->as.ints : NULL;
    return a ? a->count : 0;
}

uint32_t tn_custom_floats(const tn_custom_call *c, const char *name, const float **values) {
    const tn_attr *a = list_of(c, name, TN_ATTR_FLOATS);
    if (values)
        *values = a ? a->as.floats : NULL;
    return a ? a->count : 0;
}

uint32_t tn_custom_strings(const tn_custom_call *c, const char *name, const tn_string **values) {
    const tn_attr *a = list_of(c, name, TN_ATTR_STRINGS);
    if (values)
        *values = a ? a->as.strings : NULL;
    return a ? a->count : 0;
}

const tn_tensor *tn_custom_tensor(const tn_custom_call *c, const char *name) {
    return !has_name(c, name) ? NULL : tn_attr_tensor(c->graph, c->node, name);
}

/* --- infer ------------------------------------------------------------------------------------------------------------------------------- */

tn_graph *tn_custom_graph(const tn_custom_call *c) {
    return usable(c) && c->infer ? c->infer->graph : NULL;
}

tn_dim tn_custom_fresh_dim(tn_custom_call *c, uint32_t output, int axis, int64_t low, int64_t high) {
    if (!usable(c) || !c->infer || output >= c->infer->outputs)
        return (tn_dim){0};
    return tn_infer_fresh(c->infer, output, axis, low, high);
}

tn_status tn_custom_set_type(tn_custom_call *c, uint32_t output, tn_type type) {
    if (!usable(c))
        return TN_ERR_USAGE;
    if (!c->infer)
        return fail_operator(c, "eval states a type");
    if (output >= c->infer->outputs)
        return TN_OK; /* an output that this node does not have */
    return note(c, tn_infer_type(c->infer, output, type));
}

tn_status tn_custom_set_tensor(tn_custom_call *c, uint32_t output, tn_dtype dtype, int rank, const tn_dim *dims) {
    if (!usable(c))
        return TN_ERR_USAGE;
    if (!c->infer)
        return fail_operator(c, "eval states a type");
    if (output >= c->infer->outputs)
        return TN_OK;
    if (dtype <= TN_DTYPE_NONE || dtype >= TN_DTYPE_COUNT || rank < -1 || rank > TN_MAX_RANK || (rank > 0 && !dims))
        return fail_operator(c, "infer states element type %d and rank %d for output %u", (int)dtype, rank,
                             (unsigned)output);
    for (int i = 0; i < rank; i++)
        if (!dims[i].id && !c->infer->graph->stuck)
            return fail_operator(c, "infer states no size for dimension %d of output %u", i, (unsigned)output);
    return note(c, tn_infer_tensor(c->infer, output, dtype, rank, dims));
}

tn_status tn_custom_set_like(tn_custom_call *c, uint32_t output, uint32_t input) {
    if (!usable(c))
        return TN_ERR_USAGE;
    return tn_custom_set_type(c, output, tn_custom_input_type(c, input));
}

static bool all_ranked(const tn_graph *g, tn_node node) {
    for (uint32_t i = 0; i < tn_node_input_count(g, node); i++) {
        tn_value v = tn_node_input(g, node, i);
        tn_type type = v.id ? tn_value_type(g, v) : (tn_type){0};
        if (v.id && (!type.id || (tn_type_kind(g, type) == TN_KIND_TENSOR &&
                                  (tn_type_rank(g, type) < 0 || tn_type_dtype(g, type) == TN_DTYPE_NONE))))
            return false;
    }
    return true;
}

tn_status tn_custom_run_infer(tn_infer *c) {
    const tn_custom_row *row = tn_custom_row_of(tn_node_op(c->graph, c->node));
    if (!row->infer || (!(row->flags & TN_CUSTOM_UNRANKED) && !all_ranked(c->graph, c->node)))
        return TN_OK; /* types stay unknown */
    tn_custom_call call = {.row = row, .graph = c->graph, .node = c->node, .infer = c};
    tn_error_clear();
    return finish(&call, "infer", row->infer(&call));
}

/* --- eval ----------------------------------------------------------------------------------------------------------------------------------- */

/* Whether a tensor is what infer said of output i. */
static tn_status check_output(tn_custom_call *c, uint32_t i, tn_dtype dtype, int rank, const int64_t *dims) {
    const tn_graph *g = c->graph;
    if (i >= c->eval->outputs)
        return fail_operator(c, "eval makes output %u of a node that has %u", (unsigned)i, (unsigned)c->eval->outputs);
    tn_type type = tn_value_type(g, tn_node_output(g, c->node, i));
    if (!type.id)
        return TN_OK;
    bool same = tn_type_kind(g, type) == TN_KIND_TENSOR &&
                (tn_type_dtype(g, type) == TN_DTYPE_NONE || tn_type_dtype(g, type) == dtype) &&
                (tn_type_rank(g, type) < 0 || tn_type_rank(g, type) == rank);
    for (int k = 0; same && k < tn_type_rank(g, type); k++) {
        int64_t size;
        same = !tn_dim_eval(&g->dims, c->eval->env, tn_type_dims(g, type)[k], &size) || size == dims[k];
    }
    if (same)
        return TN_OK;
    char text[256];
    return fail_operator(c, "eval makes output %u another type or shape than infer said, %s", (unsigned)i,
                         tn_type_describe(g, type, text, sizeof text));
}

tn_tensor *tn_custom_output(tn_custom_call *c, uint32_t i, tn_dtype dtype, int rank, const int64_t *dims) {
    if (!usable(c))
        return NULL;
    if (!c->eval) {
        fail_operator(c, "infer makes an output");
        return NULL;
    }
    if (dtype <= TN_DTYPE_NONE || dtype >= TN_DTYPE_COUNT || rank < 0 || rank > TN_MAX_RANK || (rank > 0 && !dims)) {
        fail_operator(c, "eval makes an output of element type %d and rank %d", (int)dtype, rank);
        return NULL;
    }
    if (check_output(c, i, dtype, rank, dims) != TN_OK)
        return NULL;
    tn_eval *e = c->eval;
    tn_tensor *there = tn_eval_out(e, i);
    bool fits = there && tn_object_kind(e->out[i]) == TN_KIND_TENSOR && there->dtype == dtype && there->rank == rank &&
                there->contiguous && memcmp(there->dims, dims, (size_t)rank * sizeof *dims) == 0;
    if (!fits) {
        tn_tensor *made = tn_tensor_new(e->heap, dtype, rank, dims);
        if (note(c, made ? tn_eval_set(e, i, tn_tensor_object(made)) : tn_error_status()) != TN_OK)
            return NULL;
    }
    c->set[i] = true;
    return tn_eval_out(e, i);
}

tn_status tn_custom_set_output(tn_custom_call *c, uint32_t i, tn_object *object) {
    if (!usable(c)) {
        tn_object_destroy(object);
        return TN_ERR_USAGE;
    }
    if (!object)
        return note(c, tn_error_status() == TN_OK ? fail_operator(c, "eval gives no output") : tn_error_status());
    tn_status status = TN_OK;
    const tn_tensor *t = tn_object_tensor(object);
    if (!c->eval)
        status = fail_operator(c, "infer makes an output");
    else if (i >= c->eval->outputs)
        status =
            fail_operator(c, "eval makes output %u of a node that has %u", (unsigned)i, (unsigned)c->eval->outputs);
    else if (t)
        status = check_output(c, i, tn_tensor_dtype(t), tn_tensor_rank(t), tn_tensor_dims(t));
    if (status != TN_OK) {
        tn_object_destroy(object);
        return status;
    }
    c->set[i] = true;
    return note(c, tn_eval_set(c->eval, i, object));
}

void *tn_custom_scratch(tn_custom_call *c, size_t size) {
    if (!usable(c))
        return NULL;
    if (!c->eval) {
        fail_operator(c, "infer asks for scratch memory");
        return NULL;
    }
    void *block = tn_arena_alloc(&c->scratch, size);
    if (!block)
        note(c, tn_error_status());
    return block;
}

tn_heap *tn_custom_heap(const tn_custom_call *c) {
    if (!usable(c))
        return NULL;
    return c->eval ? c->eval->heap : c->infer->graph->heap;
}

static bool is_plain(const tn_tensor *t) {
    size_t unit = (size_t)tn_dtype_bits((tn_dtype)t->dtype) / 8;
    if (tn_dtype_is_complex((tn_dtype)t->dtype))
        unit /= 2;
    if (t->dtype == TN_STRING)
        unit = _Alignof(tn_string);
    return t->contiguous && (unit < 2 || (uintptr_t)t->data % unit == 0);
}

/* The inputs, as the row takes them. */
static tn_status take_inputs(tn_custom_call *c) {
    for (uint32_t i = 0; i < c->eval->inputs; i++) {
        tn_object *object = c->eval->in[i];
        tn_tensor *t = object ? tn_object_tensor(object) : NULL;
        if (!t)
            continue;
        if (c->row->flags & TN_CUSTOM_STRIDED || is_plain(t)) {
            c->plain[i] = tn_tensor_retain(t);
            continue;
        }
        c->plain[i] = tn_tensor_new(c->eval->heap, (tn_dtype)t->dtype, t->rank, t->dims);
        if (!c->plain[i])
            return tn_error_status();
        TN_TRY(tn_tensor_assign(c->plain[i], t));
    }
    return TN_OK;
}

static tn_status run_eval(tn_custom_call *c) {
    tn_eval *e = c->eval;
    c->plain = tn_arena_alloc(&c->scratch, e->inputs * sizeof *c->plain + 1);
    c->set = tn_arena_alloc(&c->scratch, e->outputs * sizeof *c->set + 1);
    if (!c->plain || !c->set)
        return tn_error_status();
    tn_status status = take_inputs(c);
    if (status == TN_OK) {
        tn_error_clear();
        status = finish(c, "eval", c->row->eval(c));
    }
    for (uint32_t i = 0; i < e->inputs; i++)
        tn_tensor_destroy(c->plain[i]);
    for (uint32_t i = 0; i < e->outputs && status == TN_OK; i++)
        if (!c->set[i])
            status = fail_operator(c, "eval makes no output %u", (unsigned)i);
    return status;
}

tn_status tn_custom_run_eval(tn_eval *e) {
    tn_custom_call call = {
        .row = tn_custom_row_of(tn_node_op(e->graph, e->node)), .graph = e->graph, .node = e->node, .eval = e};
    tn_arena_init(&call.scratch, e->heap);
    tn_status status = run_eval(&call);
    tn_arena_free(&call.scratch);
    return status;
}
