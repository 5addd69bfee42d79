/* Computing a node whose inputs are constants with the reference interpreter: the node, and what leads to it, in a graph of their
   own. So it works for nodes in bodies, and nothing but the node is run. */
#include "interp/interp.h"
#include "passes/pass.h"

#define MAX_DEPTH 64
#define MAX_NODES 100000 /* nodes and trips that one evaluation may run */

typedef struct cone {
    const tn_graph *from;
    tn_graph *to;
    tn_map copied; /* value -> value */
    tn_arena scratch;
} cone;

static tn_status copy_value(cone *c, tn_value v, int depth, tn_value *out);

static tn_status copy_dims(cone *c, const tn_attr *from, tn_attr *to) {
    tn_dim *dims = tn_arena_alloc(&c->scratch, from->count * sizeof *dims + 1);
    if (!dims)
        return tn_error_status();
    for (uint32_t i = 0; i < from->count; i++) {
        int64_t size;
        if (!tn_dim_is_const(c->from, from->as.dims[i], &size))
            return tn_fail(TN_ERR_USAGE, "evaluating a node whose attribute '%s' is not constant", from->key);
        dims[i] = tn_dim_const(c->to, size);
        if (!dims[i].id)
            return tn_graph_check(c->to);
    }
    to->as.dims = dims;
    return TN_OK;
}

static tn_status copy_node(cone *c, tn_node node, int depth, tn_node *out) {
    const tn_graph *g = c->from;
    uint32_t inputs = tn_node_input_count(g, node), attrs = tn_node_attr_count(g, node);
    tn_value *in = tn_arena_alloc(&c->scratch, inputs * sizeof *in + 1);
    tn_attr *attr = tn_arena_alloc(&c->scratch, attrs * sizeof *attr + 1);
    if (!in || !attr)
        return tn_error_status();
    for (uint32_t i = 0; i < inputs; i++)
        TN_TRY(copy_value(c, tn_node_input(g, node, i), depth + 1, &in[i]));
    for (uint32_t i = 0; i < attrs; i++) {
        attr[i] = *tn_node_attr_at(g, node, i);
        if (attr[i].kind == TN_ATTR_DIMS)
            TN_TRY(copy_dims(c, tn_node_attr_at(g, node, i), &attr[i]));
        else if (attr[i].kind == TN_ATTR_TYPE || attr[i].kind == TN_ATTR_FUNCTION)
            return tn_fail(TN_ERR_UNSUPPORTED, "not supported: evaluating %s by itself", tn_node_op_name(g, node));
    }
    *out = tn_graph_add_node(c->to, &(tn_node_desc){.op = tn_node_op(g, node),
                                                    .name = tn_node_name(g, node),
                                                    .input_count = inputs,
                                                    .inputs = in,
                                                    .output_count = tn_node_output_count(g, node),
                                                    .attr_count = attrs,
                                                    .attrs = attr});
    return out->id ? TN_OK : tn_graph_check(c->to);
}

static tn_status copy_value(cone *c, tn_value v, int depth, tn_value *out) {
    uint64_t known;
    *out = (tn_value){0};
    if (!v.id)
        return TN_OK;
    if (tn_map_get(&c->copied, v.id, &known)) {
        out->id = (uint32_t)known;
        return TN_OK;
    }
    tn_node maker = tn_value_producer(c->from, v), copy = {0};
    if (!maker.id || tn_node_region_count(c->from, maker) || depth > MAX_DEPTH)
        return tn_fail(TN_ERR_USAGE, "evaluating a node whose inputs are not constant");
    tn_tensor *constant = tn_value_constant(c->from, v);
    if (constant) {
        *out = tn_graph_constant(c->to, constant);
        if (!out->id)
            return tn_graph_check(c->to);
    } else {
        TN_TRY(copy_node(c, maker, depth, &copy));
        *out = tn_node_output(c->to, copy, c->from->value.data[v.id].index);
    }
    return tn_map_put(c->to->heap, &c->copied, v.id, out->id) ? TN_OK : tn_error_status();
}

static tn_status evaluate(cone *c, tn_node node, tn_object **outputs) {
    tn_node copy;
    if (tn_node_region_count(c->from, node))
        return tn_fail(TN_ERR_UNSUPPORTED, "not supported: evaluating %s by itself", tn_node_op_name(c->from, node));
    TN_TRY(copy_node(c, node, 0, &copy));
    uint32_t count = tn_node_output_count(c->to, copy);
    tn_value *values = tn_arena_alloc(&c->scratch, count * sizeof *values + 1);
    if (!values)
        return tn_error_status();
    for (uint32_t i = 0; i < count; i++)
        values[i] = tn_node_output(c->to, copy, i);
    tn_interp_options options = {.heap = c->to->heap, .max_nodes = MAX_NODES};
    return tn_interp_run(c->to, &options, 0, NULL, NULL, count, values, outputs);
}

tn_status tn_pass_evaluate(void *ctx, const tn_graph *g, tn_node node, tn_object **outputs) {
    cone c = {.from = g, .to = tn_graph_new(ctx, g->ops)};
    if (!c.to)
        return tn_error_status();
    tn_arena_init(&c.scratch, c.to->heap);
    tn_status status = evaluate(&c, node, outputs);
    tn_map_free(c.to->heap, &c.copied);
    tn_arena_free(&c.scratch);
    tn_error_record error;
    tn_error_save(&error);
    tn_graph_destroy(c.to);
    return status == TN_OK ? TN_OK : tn_error_restore(&error);
}
