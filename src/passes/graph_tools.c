/* What passes share: counting, control flow, purity, building in a node's place. */
#include "passes/pass.h"

uint32_t tn_graph_count_nodes(const tn_graph *g) {
    uint32_t count = 0;
    for (uint32_t i = 1; i < g->node.len; i++) {
        const tn_op *op = g->node.data[i].op;
        if (op && !(op->traits & (TN_TERMINATOR | TN_CONSTANT)))
            count++;
    }
    return count;
}

tn_control_kind tn_node_control_kind(const tn_graph *g, tn_node node) {
    const tn_op *op = tn_node_op(g, node);
    if (!op || !tn_node_region_count(g, node))
        return TN_CONTROL_NONE;
    if (op->dialect == TN_DIALECT_PRIMITIVE && op->lowering == TN_LOWER_CONTROL) {
        if (strcmp(op->name, "if") == 0)
            return TN_CONTROL_IF;
        if (strcmp(op->name, "while") == 0)
            return TN_CONTROL_WHILE;
        if (strcmp(op->name, "scan") == 0)
            return TN_CONTROL_SCAN;
    }
    return TN_CONTROL_OTHER;
}

/* --- purity --------------------------------------------------------------------------------------------------------------------- */

static uint32_t region_traits(const tn_purity *p, const tn_graph *g, tn_region region) {
    uint32_t traits = 0;
    for (tn_node n = tn_region_first(g, region); n.id; n = tn_node_next(g, n))
        traits |= tn_purity_traits(p, g, n);
    return traits;
}

uint32_t tn_purity_traits(const tn_purity *p, const tn_graph *g, tn_node node) {
    const tn_op *op = tn_node_op(g, node);
    if (op->dialect == TN_DIALECT_ONNX)
        return (op->traits & TN_EFFECT) |
               TN_RANDOM; /* as far as is known they may draw numbers; effects are declared */
    uint32_t traits = op->traits & (TN_EFFECT | TN_RANDOM);
    if (op->traits & TN_CALL) {
        int64_t callee = tn_attr_int(g, node, "callee");
        traits |= callee >= 0 && callee < g->function.len ? p->function[callee] : TN_EFFECT | TN_RANDOM;
    }
    for (uint32_t i = 0; i < tn_node_region_count(g, node); i++)
        traits |= region_traits(p, g, tn_node_region(g, node, i));
    return traits;
}

tn_status tn_purity_init(tn_purity *p, const tn_graph *g) {
    *p = (tn_purity){.heap = g->heap, .nodes = g->node.len};
    p->function = tn_alloc_array(g->heap, g->function.len, sizeof *p->function);
    p->ordered = tn_alloc(g->heap, g->node.len);
    if (!p->function || !p->ordered) {
        tn_purity_free(p);
        return tn_error_status();
    }
    for (uint32_t i = 1; i < g->node.len; i++)
        for (uint32_t k = 0; g->node.data[i].op && k < g->node.data[i].control_count; k++)
            p->ordered[tn_node_control(g, (tn_node){i}, k).id] = p->ordered[i] = 1;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < g->function.len; i++) {
            uint32_t traits = region_traits(p, g, tn_graph_function_region(g, i));
            changed = changed || traits != p->function[i];
            p->function[i] = traits;
        }
    }
    return TN_OK;
}

void tn_purity_free(tn_purity *p) {
    tn_free(p->heap, p->function);
    tn_free(p->heap, p->ordered);
    p->function = NULL;
    p->ordered = NULL;
}

bool tn_purity_is_ordered(const tn_purity *p, const tn_graph *g, tn_node node) {
    return tn_node_control_count(g, node) || (node.id < p->nodes && p->ordered[node.id]);
}

/* --- building in place ------------------------------------------------------------------------------------------------------------ */

tn_place tn_place_enter(tn_graph *g, tn_node node) {
    tn_place place = {tn_graph_insertion(g), g->at_role};
    tn_graph_insert_before(g, node);
    tn_graph_at_location(g, tn_node_location(g, node));
    g->at_role = (uint8_t)tn_node_role(g, node);
    return place;
}

void tn_place_leave(tn_graph *g, tn_place place) {
    tn_graph_set_insertion(g, place.at);
    g->at_role = place.role;
}

tn_status tn_value_inherit(tn_graph *g, tn_value to, tn_value from) {
    tn_node maker = tn_value_producer(g, to), old = tn_value_producer(g, from);
    if (!maker.id)
        return TN_OK;
    const char *name = tn_value_name(g, from);
    if (*name && !*tn_value_name(g, to))
        TN_TRY(tn_value_set_name(g, to, name));
    if (old.id && tn_node_location(g, old) != tn_node_location(g, maker))
        g->node.data[maker.id].location = tn_location_union(g, tn_node_location(g, maker), tn_node_location(g, old));
    return TN_OK;
}

tn_status tn_value_note_symbols(tn_graph *g, tn_value value) {
    return tn_value_set_type(g, value, tn_value_type(g, value));
}
