/* What an expansion sees of its node: inputs, attributes, outputs; how it ends. */
#include <stdarg.h>
#include <stdio.h>

#include <inttypes.h>

#define TN_NO_POSITIONS
#include <tenon/build.h>

#include "onnx/expander.h"
#include "ops/ops.h"

/* --- inputs ------------------------------------------------------------------------------------------------------------------------ */

bool tn_expand_has(const tn_expand *x, uint32_t input) {
    return input < x->inputs && (x->in[input].value.id || x->in[input].form != TN_INPUT_VALUE);
}

tn_value tn_expand_input(tn_expand *x, uint32_t input) {
    return tn_expand_make_input(x, input);
}

tn_dtype tn_expand_dtype(tn_expand *x, uint32_t input) {
    tn_value v = tn_expand_input(x, input);
    return v.id ? tn_value_dtype(x->graph, v) : TN_DTYPE_NONE;
}

int tn_expand_rank(tn_expand *x, uint32_t input) {
    tn_value v = tn_expand_input(x, input);
    return v.id ? tn_value_rank(x->graph, v) : -1;
}

tn_dim tn_expand_dim(tn_expand *x, uint32_t input, int axis) {
    tn_value v = tn_expand_input(x, input);
    int rank = v.id ? tn_value_rank(x->graph, v) : -1;
    if (axis < 0)
        axis += rank;
    return axis >= 0 && axis < rank ? tn_value_dim(x->graph, v, axis) : (tn_dim){0};
}

const tn_dim *tn_expand_dims_copy(tn_expand *x, uint32_t input) {
    tn_value v = tn_expand_input(x, input);
    int rank = v.id ? tn_value_rank(x->graph, v) : -1;
    if (rank < 0)
        return NULL;
    tn_dim *copy = tn_expand_alloc(x, (size_t)rank + 1, sizeof *copy);
    if (copy && rank)
        memcpy(copy, tn_value_dims(x->graph, v), (size_t)rank * sizeof *copy);
    return copy;
}

static tn_status hold(tn_expand *x, uint32_t input, int axis, tn_dim want) {
    tn_expand_slot *in = (tn_expand_slot *)(uintptr_t)&x->in[input]; /* the node's own, in its scratch memory */
    tn_value v = tn_expand_input(x, input);
    tn_dim dims[TN_MAX_RANK];
    memcpy(dims, tn_value_dims(x->graph, v), (size_t)tn_value_rank(x->graph, v) * sizeof *dims);
    dims[axis] = want;
    v = tn_fit(x->graph, v, dims);
    if (!v.id)
        return tn_expand_set(x, 0, v);
    *in = (tn_expand_slot){.value = v, .form = TN_INPUT_VALUE};
    return TN_OK;
}

tn_status tn_expand_hold(tn_expand *x, uint32_t input, int axis, tn_dim want) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, input);
    axis = axis < 0 ? axis + rank : axis;
    if (!want.id)
        return tn_expand_fail(x, "a size that follows from the shapes overflows");
    tn_dim have = tn_expand_dim(x, input, axis);
    if (!have.id || tn_dim_equal(g, have, want))
        return TN_OK;
    for (uint32_t i = 0; i < x->inputs && tn_expand_constant(x, input); i++)
        for (int k = 0; i != input && k < tn_expand_rank(x, i); k++)
            if (tn_expand_dim(x, i, k).id == want.id)
                return hold(x, i, k, have);
    return hold(x, input, axis, want);
}

bool tn_expand_holds(tn_expand *x) {
    for (uint32_t i = 0; i < x->inputs; i++) {
        tn_value v = x->in[i].value;
        tn_node made = v.id ? tn_value_producer(x->graph, v) : (tn_node){0};
        bool used = !made.id || tn_value_use_count(x->graph, v);
        for (uint32_t k = 0; k < x->outputs && !used; k++)
            used = x->out[k].id == v.id;
        const tn_op *op = used ? NULL : tn_node_op(x->graph, made);
        if (op && op->lowering == TN_LOWER_MOVE && op->code == TN_MOVE_FIT)
            return false;
    }
    return true;
}

tn_tensor *tn_expand_constant(tn_expand *x, uint32_t input) {
    tn_value v = tn_expand_input(x, input);
    return v.id ? tn_value_constant(x->graph, v) : NULL;
}

static bool holds_integers(tn_dtype dtype) {
    return dtype == TN_BOOL || (tn_dtype_is_int(dtype) && !tn_dtype_is_subbyte(dtype));
}

static int read_integers(const tn_tensor *t, int64_t *values, int max) {
    if (t->rank > 1 || !holds_integers((tn_dtype)t->dtype) || t->count > max)
        return -1;
    for (int64_t i = 0; i < t->count; i++)
        values[i] = tn_tensor_get_i64(t, i);
    return (int)t->count;
}

int tn_expand_contents_i64(tn_expand *x, uint32_t input, int64_t *values, int max) {
    if (!tn_expand_has(x, input))
        return -1;
    const tn_expand_slot *in = &x->in[input];
    if (in->form == TN_INPUT_INTS || in->form == TN_INPUT_INT) {
        if (in->count > (uint32_t)max)
            return -1;
        if (in->count)
            memcpy(values, in->ints, in->count * sizeof *values);
        return (int)in->count;
    }
    const tn_tensor *t = tn_expand_constant(x, input);
    if (t)
        return read_integers(t, values, max);
    const tn_dim *dims;
    int32_t n = tn_value_contents(x->graph, tn_expand_input(x, input), &dims);
    if (n < 0) {
        tn_tensor *computed = tn_expand_computed(x, input);
        n = computed ? read_integers(computed, values, max) : -1;
        tn_tensor_destroy(computed);
        return n;
    }
    if (n > max)
        return -1;
    for (int32_t i = 0; i < n; i++)
        if (!tn_dim_is_const(x->graph, dims[i], &values[i]))
            return -1;
    return n;
}

int tn_expand_contents_dims(tn_expand *x, uint32_t input, tn_dim *values, int max) {
    if (!tn_expand_has(x, input))
        return -1;
    const tn_dim *dims;
    int32_t n = tn_value_contents(x->graph, tn_expand_input(x, input), &dims);
    if (n >= 0) {
        if (n > max)
            return -1;
        if (n)
            memcpy(values, dims, (size_t)n * sizeof *values);
        return n;
    }
    tn_tensor *constant = tn_expand_constant(x, input), *computed = constant ? NULL : tn_expand_computed(x, input);
    const tn_tensor *t = constant ? constant : computed;
    n = t && t->rank <= 1 && t->count <= max && holds_integers((tn_dtype)t->dtype) ? (int32_t)t->count : -1;
    for (int32_t i = 0; i < n; i++)
        values[i] = tn_dim_const(x->graph, tn_tensor_get_i64(t, i));
    tn_tensor_destroy(computed);
    return n;
}

/* --- attributes --------------------------------------------------------------------------------------------------------------------- */

static const tn_attr *find_attr(const tn_expand *x, const char *name) {
    for (uint32_t i = 0; i < x->attr_count; i++)
        if (strcmp(x->attrs[i].key, name) == 0)
            return &x->attrs[i];
    return NULL;
}

static const tn_attr_spec *find_spec(const tn_expand *x, const char *name) {
    for (const tn_attr_spec *s = x->row->attrs; s && s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    return NULL;
}

bool tn_expand_has_attr(const tn_expand *x, const char *name) {
    return find_attr(x, name) != NULL;
}

int64_t tn_expand_int(const tn_expand *x, const char *name) {
    const tn_attr *a = find_attr(x, name);
    const tn_attr_spec *s = a ? NULL : find_spec(x, name);
    return a ? a->as.i : s ? s->i : 0;
}

double tn_expand_float(const tn_expand *x, const char *name) {
    const tn_attr *a = find_attr(x, name);
    const tn_attr_spec *s = a ? NULL : find_spec(x, name);
    return a ? a->as.f : s ? s->f : 0;
}

tn_string tn_expand_string(const tn_expand *x, const char *name) {
    const tn_attr *a = find_attr(x, name);
    const tn_attr_spec *s = a ? NULL : find_spec(x, name);
    const char *text = s && s->s ? s->s : "";
    return a ? a->as.s : (tn_string){text, strlen(text)};
}

bool tn_expand_string_is(const tn_expand *x, const char *name, const char *text) {
    tn_string s = tn_expand_string(x, name);
    return s.length == strlen(text) && memcmp(s.data, text, s.length) == 0;
}

uint32_t tn_expand_ints(const tn_expand *x, const char *name, const int64_t **values) {
    const tn_attr *a = find_attr(x, name);
    *values = a ? a->as.ints : NULL;
    return a ? a->count : 0;
}

uint32_t tn_expand_floats(const tn_expand *x, const char *name, const float **values) {
    const tn_attr *a = find_attr(x, name);
    *values = a ? a->as.floats : NULL;
    return a ? a->count : 0;
}

uint32_t tn_expand_strings(const tn_expand *x, const char *name, const tn_string **values) {
    const tn_attr *a = find_attr(x, name);
    *values = a ? a->as.strings : NULL;
    return a ? a->count : 0;
}

tn_tensor *tn_expand_tensor(const tn_expand *x, const char *name) {
    const tn_attr *a = find_attr(x, name);
    return a ? a->as.tensor : NULL;
}

tn_type tn_expand_type(const tn_expand *x, const char *name) {
    const tn_attr *a = find_attr(x, name);
    return a ? a->as.type : (tn_type){0};
}

/* --- outputs, endings ------------------------------------------------------------------------------------------------------------------ */

bool tn_expand_wants(const tn_expand *x, uint32_t output) {
    if (output >= tn_node_output_count(x->graph, x->node))
        return false;
    return tn_value_is_wanted(x->graph, tn_node_output(x->graph, x->node, output));
}

tn_status tn_expand_set(tn_expand *x, uint32_t output, tn_value value) {
    if (!value.id) {
        TN_TRY(tn_graph_check(x->graph));
        return tn_fail(TN_ERR_INTERNAL, "%s: output %" PRIu32 " is the null value", x->row->name, output);
    }
    if (output < x->outputs)
        x->out[output] = value;
    return TN_OK;
}

static tn_status fail_with(tn_expand *x, tn_status status, const char *prefix, const char *format, va_list args) {
    if (x->graph->stuck && (x->graph->error.status == TN_ERR_MEMORY || x->graph->error.status == TN_ERR_LIMIT)) {
        tn_error_restore(&x->graph->error); /* why a dimension is null */
        tn_fail_at_node(x->graph, x->node);
        return tn_error_status();
    }
    char text[800];
    vsnprintf(text, sizeof text, format, args);
    tn_fail(status, "%s%s: %s", prefix, x->row->name, text);
    tn_fail_at_node(x->graph, x->node);
    return status;
}

tn_status(tn_expand_fail)(tn_expand *x, const char *format, ...) {
    va_list args;
    va_start(args, format);
    tn_status status = fail_with(x, TN_ERR_MODEL, "", format, args);
    va_end(args);
    return status;
}

tn_status(tn_expand_unsupported)(tn_expand *x, const char *format, ...) {
    va_list args;
    va_start(args, format);
    tn_status status = fail_with(x, TN_ERR_UNSUPPORTED, "not supported: ", format, args);
    va_end(args);
    return status;
}

tn_status(tn_expand_later)(tn_expand *x, const char *reason) {
    x->late = reason;
    return TN_EXPAND_LATER;
}

/* --- helpers ---------------------------------------------------------------------------------------------------------------------------- */

tn_status tn_expand_axis(tn_expand *x, int64_t axis, int rank, int *result) {
    if (axis < -rank || axis >= rank)
        return tn_expand_fail(x, "axis %" PRId64 " is out of range for rank %d", axis, rank);
    *result = (int)(axis < 0 ? axis + rank : axis);
    return TN_OK;
}

tn_status tn_expand_axes(tn_expand *x, uint32_t count, const int64_t *axes, int rank, int *result) {
    bool seen[2 * TN_MAX_RANK] = {false};
    for (uint32_t i = 0; i < count; i++) {
        int axis = 0;
        TN_TRY(tn_expand_axis(x, axes[i], rank, &axis));
        if (axis < 2 * TN_MAX_RANK && seen[axis])
            return tn_expand_fail(x, "axis %d is given twice", axis);
        if (axis < 2 * TN_MAX_RANK)
            seen[axis] = true;
        result[i] = axis;
    }
    return TN_OK;
}

void *tn_expand_alloc(tn_expand *x, size_t count, size_t size) {
    if (size && count > SIZE_MAX / 2 / size) {
        tn_fail(TN_ERR_LIMIT, "%zu elements of %zu bytes", count, size);
        return NULL;
    }
    return tn_arena_alloc(x->scratch, count * size + 1);
}

/* --- bodies ------------------------------------------------------------------------------------------------------------------------------- */

uint32_t tn_expand_body_args(const tn_expand *x, uint32_t region) {
    return tn_region_arg_count(x->graph, tn_node_region(x->graph, x->node, region));
}

uint32_t tn_expand_body_results(const tn_expand *x, uint32_t region) {
    return tn_region_result_count(x->graph, tn_node_region(x->graph, x->node, region));
}

tn_status tn_expand_body(tn_expand *x, uint32_t region, uint32_t n_args, const tn_value *args, uint32_t n_results,
                         tn_value *results) {
    return tn_expand_trip(x, region, (tn_value){0}, n_args, args, n_results, results);
}

/* Copies the body into a region of its own, expands it there (its return follows what is replaced), and moves the nodes. */
tn_status tn_expand_trip(tn_expand *x, uint32_t region, tn_value trip, uint32_t n_args, const tn_value *args,
                         uint32_t n_results, tn_value *results) {
    tn_graph *g = x->graph;
    tn_region body = tn_node_region(g, x->node, region);
    if (!body.id || n_args != tn_region_arg_count(g, body) || n_results != tn_region_result_count(g, body))
        return tn_fail(TN_ERR_INTERNAL, "%s: body %" PRIu32 " with a wrong number of arguments or results",
                       x->row->name, region);
    if (x->driver->depth >= TN_MAX_NESTING)
        return tn_fail(TN_ERR_LIMIT, "regions are nested deeper than %d", TN_MAX_NESTING);
    tn_insertion at = tn_graph_insertion(g);
    tn_onnx_copier c = {.to = g, .from = g, .budget = &x->driver->budget, .driver = x->driver, .trip = trip};
    tn_region own = tn_region_create(g);
    tn_status status = own.id ? TN_OK : tn_graph_check(g);
    for (uint32_t i = 0; i < n_args && status == TN_OK; i++) {
        if (!tn_map_put(g->heap, &c.values, tn_region_arg(g, body, i).id, args[i].id))
            status = tn_error_status();
        tn_declared_compare(x->driver, x->node, tn_region_arg(g, body, i), args[i], i < x->singles);
    }
    tn_value outer = tn_onnx_trip(g, x->node);
    if (status == TN_OK && trip.id && outer.id && !tn_map_put(g->heap, &c.values, outer.id, trip.id))
        status = tn_error_status();
    tn_graph_insert_at_end(g, own);
    if (status == TN_OK)
        status = tn_onnx_copy_region(&c, body, n_results, results);
    if (status == TN_OK)
        status = tn_region_return(g, own, n_results, results);
    x->driver->depth++;
    if (status == TN_OK)
        status = tn_expander_region(x->driver, own);
    x->driver->depth--;
    tn_graph_set_insertion(g, at);
    if (status == TN_OK)
        status = tn_region_splice(g, own, 0, NULL, n_results, results);
    if (status == TN_ERR_MEMORY || status == TN_ERR_LIMIT)
        tn_graph_stick(g); /* the error that callers find, not that of the body that ends early */
    tn_onnx_copier_free(&c);
    return status;
}
