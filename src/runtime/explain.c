/* Sizes that do not fit, in words: checks of a compiled plan, and why one does not hold. */
#include <inttypes.h>

#include "base/error.h"
#include "interp/interp.h"
#include "runtime/frame.h"

/* --- in the words of the row -------------------------------------------------------------------------------------------------- */

/* A stand-in for an input: its shape as bound, every element the same zero. NULL without an error where it has no shape. */
static tn_object *stand_in(const tn_frame *f, tn_value v) {
    static const uint64_t zero[4];
    const tn_graph *g = f->plan->graph;
    tn_tensor *constant = tn_value_constant(g, v);
    if (constant)
        return (tn_object *)tn_tensor_retain(constant);
    int64_t dims[TN_MAX_RANK], strides[TN_MAX_RANK] = {0};
    int rank = tn_value_rank(g, v);
    tn_dtype dtype = tn_value_dtype(g, v);
    for (int i = 0; i < rank; i++)
        if (!tn_dim_eval(&g->dims, &f->env, tn_value_dim(g, v, i), &dims[i]) || dims[i] < 0)
            return NULL;
    if (rank < 0 || dtype == TN_DTYPE_NONE || dtype == TN_STRING || tn_dtype_is_subbyte(dtype))
        return NULL;
    return (tn_object *)tn_tensor_wrap_strided(dtype, rank, dims, strides, (void *)(uintptr_t)zero);
}

/* Has the row of a primitive refuse these sizes itself: it looks at them before it looks at any element. False: it has nothing
   against them, or nothing that it could be shown. */
static bool row_refuses(const tn_frame *f, tn_node node) {
    const tn_graph *g = f->plan->graph;
    const tn_op *op = tn_node_op(g, node);
    uint32_t n = tn_node_input_count(g, node), n_out = tn_node_output_count(g, node), count = 0;
    if (op->lowering == TN_LOWER_HOST || op->lowering == TN_LOWER_NOTHING || op->lowering == TN_LOWER_CONTROL ||
        !op->eval)
        return false;
    tn_value *values = tn_alloc_array(f->heap, n + 1u, sizeof *values);
    tn_object **objects = tn_alloc_array(f->heap, (size_t)n + n_out + 1, sizeof *objects);
    bool ready = values && objects;
    for (uint32_t i = 0; i < n && ready; i++) {
        tn_value v = tn_node_input(g, node, i);
        bool again = !v.id;
        for (uint32_t j = 0; j < count && !again; j++)
            again = values[j].id == v.id;
        if (again)
            continue;
        values[count] = v;
        objects[count] = stand_in(f, v);
        ready = objects[count++] != NULL;
    }
    tn_interp_options o = {.heap = f->heap, .pool = f->options->pool};
    tn_status status = TN_OK;
    if (ready)
        status = tn_interp_run_node(g, &o, node, &f->env, count, values, objects, objects + n);
    for (uint32_t i = 0; objects && i < n + n_out; i++)
        tn_object_destroy(objects[i]);
    tn_free(f->heap, values);
    tn_free(f->heap, objects);
    return status == TN_ERR_INPUT || status == TN_ERR_LIMIT;
}

/* --- in our own ---------------------------------------------------------------------------------------------------------------- */

/* The sizes of a node's inputs, as `where` lines. */
static void say_inputs(const tn_frame *f, tn_node node) {
    const tn_graph *g = f->plan->graph;
    for (uint32_t k = 0; k < tn_node_input_count(g, node); k++) {
        tn_value v = tn_node_input(g, node, k);
        tn_text shape;
        tn_text_init(&shape, f->heap);
        tn_text_add(&shape, "[");
        for (int axis = 0; v.id && axis < tn_value_rank(g, v); axis++) {
            int64_t n;
            tn_text_add(&shape, axis ? "," : "");
            if (tn_dim_eval(&g->dims, &f->env, tn_value_dim(g, v, axis), &n))
                tn_text_printf(&shape, "%" PRId64, n);
            else
                tn_text_add(&shape, "?");
        }
        tn_text_add(&shape, "]");
        if (v.id && tn_value_rank(g, v) >= 0 && !shape.failed)
            tn_fail_where("at run time input %" PRIu32 " is %s%s", k, tn_dtype_name(tn_value_dtype(g, v)), shape.data);
        tn_text_free(&shape);
    }
}

void tn_frame_say_enclosing(const tn_frame *f, tn_node node) {
    const tn_graph *g = f->plan->graph;
    for (tn_region r = tn_node_parent(g, node); r.id;) {
        tn_node owner = tn_region_owner(g, r);
        if (!owner.id)
            return;
        tn_fail_at_node(g, owner);
        r = tn_node_parent(g, owner);
    }
}

tn_status tn_frame_fail_size(const tn_frame *f, tn_node node, tn_size size) {
    const tn_graph *g = f->plan->graph;
    if (node.id && row_refuses(f, node))
        return tn_error_status();
    tn_text text;
    tn_text_init(&text, f->heap);
    const char *rule = tn_dim_explain(&g->dims, &f->env, f->plan->size.data[size], &text);
    tn_fail(TN_ERR_INPUT, "%s: the size %.700s", node.id ? tn_node_op_name(g, node) : "an input",
            text.failed || !text.data ? "of a dimension has no value" : text.data);
    tn_text_free(&text);
    if (node.id) {
        tn_fail_at_node(g, node);
        say_inputs(f, node);
    }
    tn_fail_hint("%s", rule);
    return TN_ERR_INPUT;
}

static bool holds(const tn_frame *f, const tn_size_check *c) {
    int64_t size = f->size[c->size];
    if (f->missing[c->size] || (c->kind != TN_CHECK_SIZE && f->missing[c->want]))
        return false;
    return c->kind == TN_CHECK_SIZE ? size >= 0
                                    : size == f->size[c->want] || (c->kind == TN_CHECK_BROADCAST && size == 1);
}

static tn_status refuse(const tn_frame *f, const tn_size_check *c) {
    const tn_graph *g = f->plan->graph;
    const char *op = tn_node_op_name(g, c->node);
    int64_t size = f->size[c->size];
    if (f->missing[c->size])
        return tn_frame_fail_size(f, c->node, c->size);
    if (c->kind != TN_CHECK_SIZE && f->missing[c->want])
        return tn_frame_fail_size(f, c->node, c->want);
    if (row_refuses(f, c->node))
        return tn_error_status();
    if (c->kind == TN_CHECK_SIZE)
        tn_fail(TN_ERR_INPUT, "%s: dimension %d of output %d is %" PRId64, op, c->axis, c->value, size);
    else if (c->kind == TN_CHECK_EQUAL)
        tn_fail(TN_ERR_INPUT, "%s: axis %d of input %d has %" PRId64 " elements, needed are %" PRId64, op, c->axis,
                c->value, size, f->size[c->want]);
    else
        tn_fail(TN_ERR_INPUT, "%s: axis %d of input %d has %" PRId64 " elements, which cannot be broadcast to %" PRId64,
                op, c->axis, c->value, size, f->size[c->want]);
    tn_fail_at_node(g, c->node);
    say_inputs(f, c->node);
    if (c->kind == TN_CHECK_SIZE)
        tn_fail_hint("inputs of these sizes are too small for this model");
    return TN_ERR_INPUT;
}

tn_status tn_frame_check(const tn_frame *f, uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; i++) {
        const tn_size_check *c = &f->plan->check.data[i];
        if (holds(f, c))
            continue;
        tn_status status = refuse(f, c);
        tn_frame_say_enclosing(f, c->node);
        return status;
    }
    return TN_OK;
}
