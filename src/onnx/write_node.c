/* NodeProto and AttributeProto. */
#include <stdio.h>

#include "onnx/expander.h"
#include "onnx/writer.h"

/* AttributeProto.AttributeType */
enum { A_FLOAT = 1, A_INT, A_STRING, A_TENSOR, A_GRAPH, A_FLOATS, A_INTS, A_STRINGS, A_SPARSE = 11, A_TYPE = 13 };

/* --- the operator ------------------------------------------------------------------------------------------------------------------ */

/* Names of operators that no table has may hold dots: the node's origin says where the domain ends. */
static const char *split_name(const tn_graph *g, tn_node node, const char *full) {
    size_t length = strlen(full);
    uint32_t location = tn_node_location(g, node);
    for (uint32_t i = 0; location && i < g->location.data[location].count; i++) {
        const tn_origin *o = &g->origin.data[g->origin_list.data[g->location.data[location].first + i]];
        const char *what = tn_strings_text(&g->strings, o->what);
        size_t tail = strlen(what);
        if (tail && tail < length && full[length - tail - 1] == '.' && strcmp(full + length - tail, what) == 0)
            return full + length - tail;
        if (tail == length && strcmp(full, what) == 0)
            return full;
    }
    const char *dot = strrchr(full, '.');
    return dot ? dot + 1 : full;
}

const char *tn_onnx_write_op(tn_onnx_writer *w, tn_node node, const char **domain) {
    const tn_op *op = tn_node_op(w->graph, node);
    if (op->extra == tn_onnx_known) {
        const tn_onnx_op *row = (const tn_onnx_op *)(const void *)op; /* `op` is its first member */
        *domain = row->domain;
        return row->name;
    }
    const char *full = op->name + sizeof "onnx." - 1, *name = split_name(w->graph, node, full);
    size_t length = name > full ? (size_t)(name - full) - 1 : 0;
    *domain = tn_arena_strndup(&w->arena, full, length);
    return *domain ? name : NULL;
}

/* --- attributes ------------------------------------------------------------------------------------------------------------------- */

static void put_type(tn_wire_out *a, uint64_t type) {
    tn_wire_out_number(a, 20, type);
}

static tn_status put_value(tn_onnx_writer *w, const char *key, const tn_attr *attr, tn_wire_out *a) {
    switch (attr->kind) {
    case TN_ATTR_INT:
    case TN_ATTR_DTYPE:
        tn_wire_out_number(a, 3, (uint64_t)attr->as.i);
        put_type(a, A_INT);
        return TN_OK;
    case TN_ATTR_FLOAT:
        tn_wire_out_float(a, 2, (float)attr->as.f);
        put_type(a, A_FLOAT);
        return TN_OK;
    case TN_ATTR_STRING:
        tn_wire_out_bytes(a, 4, attr->as.s.data, attr->as.s.length);
        put_type(a, A_STRING);
        return TN_OK;
    case TN_ATTR_INTS:
        for (uint32_t i = 0; i < attr->count; i++)
            tn_wire_out_number(a, 8, (uint64_t)attr->as.ints[i]);
        put_type(a, A_INTS);
        return TN_OK;
    case TN_ATTR_FLOATS:
        if (attr->count > 64)
            tn_wire_out_f32s(a, 7, attr->count, attr->as.floats);
        else
            for (uint32_t i = 0; i < attr->count; i++)
                tn_wire_out_float(a, 7, attr->as.floats[i]);
        put_type(a, A_FLOATS);
        return TN_OK;
    case TN_ATTR_STRINGS:
        for (uint32_t i = 0; i < attr->count; i++)
            tn_wire_out_bytes(a, 9, attr->as.strings[i].data, attr->as.strings[i].length);
        put_type(a, A_STRINGS);
        return TN_OK;
    case TN_ATTR_TENSOR: {
        bool sparse = strcmp(key, "sparse_value") == 0;
        put_type(a, sparse ? A_SPARSE : A_TENSOR);
        return sparse ? tn_onnx_write_sparse(w, attr->as.tensor, NULL, 22, a)
                      : tn_onnx_write_constant(w, attr->as.tensor, NULL, true, 5, a);
    }
    case TN_ATTR_TYPE:
        tn_onnx_write_type(w, attr->as.type, NULL, 14, a);
        put_type(a, A_TYPE);
        return TN_OK;
    default: return tn_fail(TN_ERR_UNSUPPORTED, "not supported: an attribute '%s' of this kind in ONNX", key);
    }
}

const tn_attr *tn_onnx_own_attr(const tn_graph *g, tn_node node, const char *prefix, const char *name) {
    size_t before = strlen(prefix);
    for (uint32_t i = 0; i < tn_node_attr_count(g, node); i++) {
        const tn_attr *a = tn_node_attr_at(g, node, i);
        const char *key = tn_strings_text(&g->strings, a->name);
        if (strncmp(key, prefix, before) == 0 && strcmp(key + before, name) == 0)
            return a;
    }
    return NULL;
}

static tn_status put_attr(tn_onnx_writer *w, tn_node node, const tn_attr *attr, tn_wire_out *out) {
    const tn_graph *g = w->graph;
    const char *key = tn_strings_text(&g->strings, attr->name);
    bool ref = strncmp(key, "__ref:", 6) == 0;
    if (!ref && (strncmp(key, "__", 2) == 0 || tn_onnx_own_attr(g, node, "__ref:", key)))
        return TN_OK; /* ours; the default of a reference */
    tn_wire_out a;
    tn_wire_out_init(&a, w->heap);
    tn_status status = TN_OK;
    if (ref) {
        const tn_attr *type = tn_onnx_own_attr(g, node, "__type:", key + 6);
        tn_wire_out_text(&a, 1, key + 6);
        tn_wire_out_bytes(&a, 21, attr->as.s.data, attr->as.s.length);
        if (type)
            put_type(&a, (uint64_t)type->as.i);
    } else {
        tn_wire_out_text(&a, 1, key);
        status = put_value(w, key, attr, &a);
    }
    tn_wire_out_message(out, 5, &a);
    return status;
}

/* --- graph attributes ------------------------------------------------------------------------------------------------------------ */

static bool is_empty(const tn_graph *g, tn_region region) {
    return tn_region_arg_count(g, region) == 0 && tn_region_result_count(g, region) == 0 &&
           tn_region_first(g, region).id == tn_region_last(g, region).id;
}

static tn_status put_graphs(tn_onnx_writer *w, tn_node node, tn_wire_out *out) {
    const tn_graph *g = w->graph;
    const tn_op *op = tn_node_op(g, node);
    const tn_onnx_op *row = op->extra == tn_onnx_known ? (const tn_onnx_op *)(const void *)op : NULL;
    tn_string names = tn_attr_string(g, node, "__regions");
    if (row)
        names = (tn_string){row->regions ? row->regions : "", row->regions ? strlen(row->regions) : 0};
    for (uint32_t i = 0; i < tn_node_region_count(g, node); i++) {
        const char *space = names.length ? memchr(names.data, ' ', names.length) : NULL;
        size_t length = space ? (size_t)(space - names.data) : names.length;
        char *name = tn_arena_strndup(&w->arena, names.data, length);
        if (!name)
            return tn_error_status();
        names.data += length + (space != NULL);
        names.length -= length + (space != NULL);
        tn_region region = tn_node_region(g, node, i);
        if (row && row->flags & TN_ONNX_OPTIONAL_GRAPHS && is_empty(g, region))
            continue;
        tn_wire_out a, graph;
        tn_wire_out_init(&a, w->heap);
        tn_wire_out_init(&graph, w->heap);
        tn_wire_out_text(&a, 1, name);
        tn_status status = tn_onnx_write_graph(w, region, node, name, &graph);
        tn_wire_out_message(&a, 6, &graph);
        put_type(&a, A_GRAPH);
        tn_wire_out_message(out, 5, &a);
        TN_TRY(status);
    }
    return TN_OK;
}

/* --- nodes --------------------------------------------------------------------------------------------------------------------------- */

static tn_status put_node(tn_onnx_writer *w, tn_node node, tn_wire_out *out) {
    const tn_graph *g = w->graph;
    const char *domain, *op = tn_onnx_write_op(w, node, &domain), *label = tn_node_name(g, node);
    if (!op)
        return tn_error_status();
    for (uint32_t i = 0; i < tn_onnx_input_count(g, node); i++)
        tn_wire_out_text(out, 1, tn_onnx_name_of(w, tn_node_input(g, node, i)));
    for (uint32_t i = 0; i < tn_node_output_count(g, node); i++)
        tn_wire_out_text(out, 2, tn_onnx_name_of(w, tn_node_output(g, node, i)));
    if (*label)
        tn_wire_out_text(out, 3, label);
    tn_wire_out_text(out, 4, op);
    for (uint32_t i = 0; i < tn_node_attr_count(g, node); i++)
        TN_TRY(put_attr(w, node, tn_node_attr_at(g, node, i), out));
    TN_TRY(put_graphs(w, node, out));
    const tn_attr *doc = tn_node_attr(g, node, "__doc"), *kept = tn_node_attr(g, node, "__kept"),
                  *overload = tn_node_attr(g, node, "__overload");
    if (doc)
        tn_wire_out_bytes(out, 6, doc->as.s.data, doc->as.s.length);
    if (*domain)
        tn_wire_out_text(out, 7, domain);
    if (overload)
        tn_wire_out_bytes(out, 8, overload->as.s.data, overload->as.s.length);
    if (kept)
        tn_wire_out_raw(out, kept->as.s.data, kept->as.s.length);
    return TN_OK;
}

/* A constant where there are no initializers. */
static tn_status put_constant_node(tn_onnx_writer *w, tn_node node, tn_wire_out *out) {
    tn_wire_out message, a;
    tn_wire_out_init(&message, w->heap);
    tn_wire_out_init(&a, w->heap);
    tn_wire_out_text(&message, 2, tn_onnx_name_of(w, tn_node_output(w->graph, node, 0)));
    tn_wire_out_text(&message, 4, "Constant");
    tn_wire_out_text(&a, 1, "value");
    tn_status status = tn_onnx_write_constant(w, tn_attr_tensor(w->graph, node, "value"), NULL, true, 5, &a);
    put_type(&a, A_TENSOR);
    tn_wire_out_message(&message, 5, &a);
    tn_wire_out_message(out, 7, &message);
    return status;
}

tn_status tn_onnx_write_initializer(tn_onnx_writer *w, tn_tensor *tensor, const char *name, bool main,
                                    tn_wire_out *out) {
    size_t length;
    if (main && tn_onnx_kept(w, TN_META_SPARSE, name, &length, out))
        return tn_onnx_write_sparse(w, tensor, name, 15, out);
    return tn_onnx_write_constant(w, tensor, name, true, 5, out);
}

static tn_status put_initializer(tn_onnx_writer *w, tn_node node, tn_wire_out *out) {
    tn_tensor *tensor = tn_attr_tensor(w->graph, node, "value");
    const char *name = tn_onnx_name_of(w, tn_node_output(w->graph, node, 0));
    if (!*name)
        return TN_OK; /* nobody reads it */
    bool main = tn_node_parent(w->graph, node).id == tn_graph_region(w->graph).id;
    return tn_onnx_write_initializer(w, tensor, name, main, out);
}

tn_status tn_onnx_write_nodes(tn_onnx_writer *w, tn_region region, bool function, tn_wire_out *out) {
    const tn_graph *g = w->graph;
    for (tn_node n = tn_region_first(g, region); n.id; n = tn_node_next(g, n)) {
        const tn_op *op = tn_node_op(g, n);
        if (op->traits & TN_TERMINATOR)
            continue;
        if (op->traits & TN_CONSTANT && op->dialect != TN_DIALECT_ONNX) {
            TN_TRY(function ? put_constant_node(w, n, out) : put_initializer(w, n, out));
            continue;
        }
        if (op->dialect != TN_DIALECT_ONNX) {
            tn_fail(TN_ERR_UNSUPPORTED, "not supported: operator %s in ONNX", op->name);
            tn_fail_at_node(g, n);
            return TN_ERR_UNSUPPORTED;
        }
        tn_wire_out message;
        tn_wire_out_init(&message, w->heap);
        tn_status status = put_node(w, n, &message);
        tn_wire_out_message(out, function ? 7 : 1, &message);
        TN_TRY(status);
        TN_TRY(tn_wire_out_status(out));
    }
    return TN_OK;
}
