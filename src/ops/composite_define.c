/* Definitions of composites: as functions of the graph, as graphs of their own, inlined. */
#include "ops/composite.h"

#include <inttypes.h>

bool tn_node_is_composite(const tn_graph *g, tn_node node) {
    const tn_op *op = tn_node_op(g, node);
    return op && op->define;
}

/* Letters and digits stay, other bytes become _XX; nothing else writes a "_" followed by two capital hex digits. */
static void key_bytes(tn_text *key, const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        unsigned char ch = (unsigned char)bytes[i];
        bool plain = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9');
        if (plain)
            tn_text_bytes(key, bytes + i, 1);
        else
            tn_text_printf(key, "_%02X", ch);
    }
}

static void key_int(tn_text *key, int64_t value) {
    if (value < 0)
        tn_text_printf(key, "_m%" PRIu64, 0 - (uint64_t)value);
    else
        tn_text_printf(key, "_%" PRIu64, (uint64_t)value);
}

static tn_status key_attr(const tn_graph *g, tn_node node, const tn_attr_spec *spec, tn_text *key) {
    tn_text_add(key, ".");
    key_bytes(key, spec->name, strlen(spec->name));
    const tn_attr *a = tn_node_attr(g, node, spec->name);
    switch ((tn_attr_kind)spec->kind) {
    case TN_ATTR_INT:
    case TN_ATTR_DTYPE: key_int(key, tn_attr_int(g, node, spec->name)); return TN_OK;
    case TN_ATTR_FLOAT: {
        double value = tn_attr_float(g, node, spec->name);
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        tn_text_printf(key, "_x%" PRIx64, bits);
        return TN_OK;
    }
    case TN_ATTR_STRING: {
        tn_string s = tn_attr_string(g, node, spec->name);
        tn_text_add(key, "_");
        key_bytes(key, s.data, s.length);
        return TN_OK;
    }
    case TN_ATTR_INTS:
        for (uint32_t i = 0; a && i < a->count; i++)
            key_int(key, a->as.ints[i]);
        return TN_OK;
    default:
        return tn_fail(TN_ERR_UNSUPPORTED, "not supported: attribute '%s' of composite %s as part of its definition",
                       spec->name, tn_node_op_name(g, node));
    }
}

tn_status tn_composite_key(const tn_graph *g, tn_node node, tn_text *key) {
    const tn_op *op = tn_node_op(g, node);
    if (!op || !op->define)
        return tn_fail(TN_ERR_USAGE, "the definition of a node that is no composite was asked for");
    tn_text_add(key, op->name);
    for (uint32_t i = 0; i < tn_node_input_count(g, node); i++) {
        tn_value v = tn_node_input(g, node, i);
        tn_text_add(key, ".");
        if (!v.id) {
            tn_text_add(key, "none");
            continue;
        }
        tn_type type = tn_value_type(g, v);
        if (!type.id || tn_type_kind(g, type) != TN_KIND_TENSOR || tn_type_rank(g, type) < 0) {
            tn_fail(TN_ERR_UNSUPPORTED, "not supported: composite %s of a value whose rank is not known", op->name);
            tn_fail_at_node(g, node);
            return TN_ERR_UNSUPPORTED;
        }
        tn_text_add(key, tn_dtype_name(tn_type_dtype(g, type)));
        key_int(key, tn_type_rank(g, type));
    }
    for (const tn_attr_spec *spec = op->attrs; spec && spec->name; spec++)
        TN_TRY(key_attr(g, node, spec, key));
    return key->failed ? tn_error_status() : TN_OK;
}

/* Adds arguments like the node's inputs to a region of `to`; args[i] is null where the input is absent. */
static tn_status add_args(const tn_graph *from, tn_node node, tn_graph *to, tn_region region, tn_value *args) {
    for (uint32_t i = 0; i < tn_node_input_count(from, node); i++) {
        tn_value v = tn_node_input(from, node, i);
        args[i] = (tn_value){0};
        if (!v.id)
            continue;
        tn_dim dims[TN_MAX_RANK];
        tn_dtype dtype = tn_value_dtype(from, v);
        int rank = tn_value_rank(from, v);
        for (int d = 0; d < rank; d++)
            dims[d] = tn_dim_fresh(to, 0, INT64_MAX);
        args[i] = tn_region_add_arg(to, region, tn_type_tensor(to, dtype, rank, dims), "");
        if (!args[i].id)
            return tn_error_status();
    }
    return TN_OK;
}

static tn_status build_function(tn_graph *g, tn_node node, const char *name, tn_value *args, tn_value *results,
                                uint32_t *function) {
    tn_region region = tn_region_create(g);
    if (!region.id)
        return tn_error_status();
    TN_TRY(add_args(g, node, g, region, args));
    tn_insertion saved = tn_graph_insertion(g);
    tn_graph_insert_at_end(g, region);
    tn_graph_at_location(g, tn_node_location(g, node));
    tn_status status = tn_node_op(g, node)->define(g, node, args, results);
    if (status == TN_OK)
        status = tn_region_return(g, region, tn_node_output_count(g, node), results);
    tn_graph_set_insertion(g, saved);
    if (status != TN_OK)
        return status;
    *function = tn_graph_add_function(g, name, region);
    return *function == UINT32_MAX ? tn_error_status() : TN_OK;
}

tn_status tn_composite_function(tn_graph *g, tn_node node, uint32_t *function) {
    TN_TRY(tn_graph_changeable(g));
    tn_text key;
    tn_text_init(&key, g->heap);
    tn_value *values = NULL;
    tn_status status = tn_composite_key(g, node, &key);
    if (status == TN_OK) {
        *function = tn_graph_find_function(g, key.data);
        if (*function == UINT32_MAX) {
            uint32_t inputs = tn_node_input_count(g, node);
            values = tn_alloc_array(g->heap, (size_t)inputs + tn_node_output_count(g, node), sizeof *values);
            status = values ? build_function(g, node, key.data, values, values + inputs, function) : tn_error_status();
        }
    }
    tn_free(g->heap, values);
    tn_text_free(&key);
    return status;
}

static tn_status fill_definition(const tn_graph *g, tn_node node, tn_graph *d, tn_value *args, tn_value *results) {
    uint32_t inputs = tn_node_input_count(g, node), outputs = tn_node_output_count(g, node);
    TN_TRY(add_args(g, node, d, tn_graph_region(d), args));
    uint32_t attr_count = tn_node_attr_count(g, node);
    tn_attr *attrs = tn_alloc_array(d->heap, attr_count, sizeof *attrs);
    if (!attrs)
        return tn_error_status();
    for (uint32_t i = 0; i < attr_count; i++)
        attrs[i] = *tn_node_attr_at(g, node, i);
    /* the node itself stands in the graph too, unused: the definition reads its attributes */
    tn_node twin = tn_graph_add_node(d, &(tn_node_desc){.op = tn_node_op(g, node),
                                                        .input_count = inputs,
                                                        .inputs = args,
                                                        .output_count = outputs,
                                                        .attr_count = attr_count,
                                                        .attrs = attrs});
    tn_free(d->heap, attrs);
    if (!twin.id)
        return tn_error_status();
    TN_TRY(tn_node_op(d, twin)->define(d, twin, args, results));
    for (uint32_t i = 0; i < outputs; i++)
        TN_TRY(tn_graph_add_output(d, results[i], ""));
    return tn_node_remove(d, twin);
}

tn_status tn_composite_definition(const tn_graph *g, tn_node node, tn_heap *heap, tn_graph **definition) {
    *definition = NULL;
    tn_text key;
    tn_text_init(&key, heap);
    tn_status status = tn_composite_key(g, node, &key); /* refuses what has none */
    tn_text_free(&key);
    if (status != TN_OK)
        return status;
    tn_graph *d = tn_graph_new(heap, g->ops);
    uint32_t inputs = tn_node_input_count(g, node);
    tn_value *values = d ? tn_alloc_array(heap, (size_t)inputs + tn_node_output_count(g, node), sizeof *values) : NULL;
    status = values ? fill_definition(g, node, d, values, values + inputs) : tn_error_status();
    tn_free(heap, values);
    if (status != TN_OK) {
        tn_graph_destroy(d);
        return status;
    }
    tn_graph_freeze(d);
    *definition = d;
    return TN_OK;
}

static tn_status inline_into(tn_graph *g, tn_node node, tn_value *inputs, tn_value *results) {
    uint32_t outputs = tn_node_output_count(g, node);
    for (uint32_t i = 0; i < tn_node_input_count(g, node); i++)
        inputs[i] = tn_node_input(g, node, i);
    TN_TRY(tn_node_op(g, node)->define(g, node, inputs, results));
    for (uint32_t i = 0; i < outputs; i++) {
        tn_value old = tn_node_output(g, node, i);
        const char *name = tn_value_name(g, old);
        if (*name && !*tn_value_name(g, results[i]))
            TN_TRY(tn_value_set_name(g, results[i], name));
        TN_TRY(tn_value_replace_uses(g, old, results[i]));
    }
    return tn_node_remove(g, node);
}

tn_status tn_composite_inline(tn_graph *g, tn_node node) {
    TN_TRY(tn_graph_changeable(g));
    if (!tn_node_is_composite(g, node))
        return tn_fail(TN_ERR_USAGE, "inlining a node that is no composite");
    uint32_t inputs = tn_node_input_count(g, node);
    tn_value *values = tn_alloc_array(g->heap, (size_t)inputs + tn_node_output_count(g, node), sizeof *values);
    if (!values)
        return tn_error_status();
    tn_insertion saved = tn_graph_insertion(g);
    uint8_t role = g->at_role;
    if (saved.node == node.id) /* it goes away */
        saved.node = tn_node_next(g, node).id;
    tn_graph_insert_before(g, node);
    tn_graph_at_location(g, tn_node_location(g, node));
    g->at_role = (uint8_t)tn_node_role(g, node);
    tn_status status = inline_into(g, node, values, values + inputs);
    g->at_role = role;
    tn_graph_set_insertion(g, saved);
    tn_free(g->heap, values);
    return status;
}
