/* Small integers that follow from constants alone, by a way that contents do not take (through matrices, say, as PyTorch's pads go):
   they are computed by the reference evaluation of the nodes that lead to them. */
#include "interp/interp.h"
#include "onnx/expander.h"

enum { MAX_VISITS = 64, MAX_ELEMENTS = 1024 };

static bool is_small(const tn_graph *g, tn_value v) {
    int64_t size, count = 1;
    int rank = tn_value_rank(g, v);
    for (int i = 0; i < rank; i++) {
        if (!tn_dim_is_const(g, tn_value_dim(g, v, i), &size) || size > MAX_ELEMENTS)
            return false;
        count *= size ? size : 1;
        if (count > MAX_ELEMENTS)
            return false;
    }
    return rank >= 0;
}

/* Whether a value depends on small constants only, through at most *visits nodes. */
static bool is_computable(const tn_graph *g, tn_value v, int *visits) {
    tn_node node = v.id ? tn_value_producer(g, v) : (tn_node){0};
    const tn_op *op = node.id ? tn_node_op(g, node) : NULL;
    const uint32_t never = TN_EFFECT | TN_RANDOM | TN_CALL | TN_CONTROL;
    if (!op || --*visits < 0 || !is_small(g, v))
        return false;
    if (tn_value_constant(g, v))
        return true;
    if (op->dialect == TN_DIALECT_ONNX || op->traits & never || tn_node_region_count(g, node))
        return false;
    for (uint32_t i = 0; i < tn_node_output_count(g, node); i++)
        if (!is_small(g, tn_node_output(g, node, i)))
            return false;
    for (uint32_t i = 0; i < tn_node_input_count(g, node); i++) {
        tn_value in = tn_node_input(g, node, i);
        if (in.id && !is_computable(g, in, visits))
            return false;
    }
    return true;
}

/* A new object, or NULL. */
static tn_object *compute(const tn_graph *g, tn_value v) {
    tn_tensor *constant = tn_value_constant(g, v);
    if (constant)
        return tn_object_retain(tn_tensor_object(constant));
    tn_node node = tn_value_producer(g, v);
    uint32_t n = tn_node_input_count(g, node), outputs = tn_node_output_count(g, node), given = 0;
    tn_value *values = tn_alloc_array(g->heap, n + 1u, sizeof *values);
    tn_object **objects = tn_alloc_array(g->heap, (size_t)n + outputs + 1u, sizeof *objects), *result = NULL;
    bool ok = values && objects;
    for (uint32_t i = 0; i < n && ok; i++) {
        tn_value in = tn_node_input(g, node, i);
        bool again = !in.id;
        for (uint32_t k = 0; k < given; k++)
            again = again || values[k].id == in.id;
        if (again)
            continue;
        values[given] = in;
        objects[given] = compute(g, in);
        ok = objects[given++] != NULL;
    }
    tn_object **out = objects ? objects + n : NULL;
    const tn_interp_options options = {.heap = g->heap, .max_bytes = (size_t)16 << 20, .max_nodes = 100000};
    if (ok && tn_interp_run_node(g, &options, node, NULL, given, values, objects, out) == TN_OK) {
        for (uint32_t i = 0; i < outputs; i++)
            if (tn_node_output(g, node, i).id == v.id)
                result = out[i];
            else
                tn_object_destroy(out[i]);
    }
    for (uint32_t i = 0; objects && i < given; i++)
        tn_object_destroy(objects[i]);
    tn_free(g->heap, objects);
    tn_free(g->heap, values);
    return result;
}

tn_tensor *tn_expand_computed(tn_expand *x, uint32_t input) {
    int visits = MAX_VISITS;
    tn_value v = tn_expand_input(x, input);
    if (x->graph->stuck || !v.id || tn_value_rank(x->graph, v) > 1 || !is_computable(x->graph, v, &visits))
        return NULL;
    tn_object *object = compute(x->graph, v);
    if (!object)
        tn_error_clear(); /* what is wrong is said where it is run */
    tn_tensor *t = object ? tn_object_tensor(object) : NULL;
    if (object && !t)
        tn_object_destroy(object);
    return t;
}
