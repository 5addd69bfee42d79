/* Users' operators in ONNX models: a node of their domain and name becomes a node of their row. */
#include "onnx/custom.h"

const tn_op_table *tn_onnx_table_with(tn_op_set *ops) {
    if (!ops)
        return tn_onnx_table();
    for (uint32_t i = 0; i < tn_op_set_count(ops); i++) {
        const tn_custom_row *row = tn_op_set_row(ops, i);
        if (!tn_onnx_find_any(row->domain, row->name))
            continue;
        tn_fail(TN_ERR_USAGE, "operator '%s.%s' is built in: it can't be replaced", row->domain, row->name);
        tn_fail_hint("take it out of the set, or give it a domain of your own");
        return NULL;
    }
    return tn_op_set_table(ops, tn_onnx_table());
}

/* Attributes of the file, without those that reading added. */
static uint32_t own_attributes(const tn_graph *g, tn_node node, tn_attr *attrs) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < tn_node_attr_count(g, node); i++)
        if (strncmp(tn_node_attr_at(g, node, i)->key, "__", 2) != 0)
            attrs[n++] = *tn_node_attr_at(g, node, i);
    return n;
}

tn_status tn_onnx_make_custom(tn_expander *ex, tn_node node, const tn_onnx_identity *id, tn_value *out) {
    tn_graph *g = ex->graph;
    if (tn_node_region_count(g, node)) {
        tn_fail(TN_ERR_UNSUPPORTED, "not supported: graph attributes of the user's operator %s", id->custom->name);
        tn_fail_at_node(g, node);
        return TN_ERR_UNSUPPORTED;
    }
    uint32_t inputs = tn_node_input_count(g, node), outputs = tn_node_output_count(g, node);
    tn_attr *attrs = tn_alloc_array(g->heap, tn_node_attr_count(g, node) + 1u, sizeof *attrs);
    tn_value *in = tn_alloc_array(g->heap, inputs + 1u, sizeof *in);
    tn_node made = {0};
    if (attrs && in) {
        for (uint32_t i = 0; i < inputs; i++)
            in[i] = tn_node_input(g, node, i);
        while (inputs > 0 && !in[inputs - 1].id)
            inputs--; /* left out */
        tn_graph_insert_before(g, node);
        tn_graph_at_location(g, tn_node_location(g, node));
        made = tn_graph_add_node(g, &(tn_node_desc){.op = id->custom,
                                                    .name = tn_node_name(g, node),
                                                    .input_count = inputs,
                                                    .inputs = in,
                                                    .output_count = outputs,
                                                    .attr_count = own_attributes(g, node, attrs),
                                                    .attrs = attrs});
    }
    for (uint32_t i = 0; made.id && i < outputs; i++)
        out[i] = tn_node_output(g, made, i);
    bool had_memory = attrs && in;
    tn_free(g->heap, attrs);
    tn_free(g->heap, in);
    return made.id ? TN_OK : had_memory ? tn_graph_check(g) : tn_error_status();
}
