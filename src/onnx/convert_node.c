/* A node that is converted: its inputs and attributes while they change. */
#define TN_NO_POSITIONS
#include <tenon/build.h>

#include "onnx/convert.h"

tn_status(tn_v_refuse)(const tn_convert_node *n, int version, bool up, const char *why) {
    tn_fail(TN_ERR_UNSUPPORTED, "not supported: operator %s from operator set %d to %d: %s", n->op,
            up ? version - 1 : version, up ? version : version - 1, why);
    tn_fail_at_node(n->g, n->node);
    return TN_ERR_UNSUPPORTED;
}

tn_attr *tn_v_attr_of(tn_convert_node *n, const char *name) {
    for (uint32_t i = 0; i < n->attr_count; i++)
        if (strcmp(n->attrs[i].key, name) == 0)
            return &n->attrs[i];
    return NULL;
}

void tn_v_drop(tn_convert_node *n, tn_attr *a) {
    *a = n->attrs[--n->attr_count];
    n->changed = true;
}

void tn_v_add(tn_convert_node *n, tn_attr a) {
    n->attrs[n->attr_count++] = a;
    n->changed = true;
}

bool tn_v_has_input(const tn_convert_node *n, uint32_t i) {
    return i < n->inputs && n->in[i].id;
}

/* The element type of a value, as far as nodes that read and pass it tell. */
tn_dtype tn_v_dtype_of(const tn_graph *g, tn_value value, int depth) {
    tn_dtype dtype = tn_value_dtype(g, value);
    tn_node from = tn_value_producer(g, value);
    if (dtype != TN_DTYPE_NONE || !from.id || depth > 64)
        return dtype;
    const char *op = tn_node_op_name(g, from);
    const tn_attr *to = tn_node_attr(g, from, "to"), *constant = tn_node_attr(g, from, "value");
    static const char *const passing[] = {"Relu",
                                          "Conv",
                                          "BatchNormalization",
                                          "Add",
                                          "Mul",
                                          "Sub",
                                          "Div",
                                          "Pad",
                                          "MaxPool",
                                          "MatMul",
                                          "Gemm",
                                          "Identity",
                                          "Reshape",
                                          "Transpose",
                                          "AveragePool",
                                          "Sigmoid",
                                          "Clip",
                                          "Concat",
                                          "LeakyRelu",
                                          "Squeeze",
                                          "Unsqueeze",
                                          "Slice",
                                          "Flatten",
                                          "Dropout",
                                          "GlobalAveragePool",
                                          "ConvTranspose",
                                          "InstanceNormalization",
                                          "Upsample",
                                          "Resize"};
    if (strcmp(op, "onnx.Cast") == 0 && to && to->kind == TN_ATTR_INT)
        return (tn_dtype)to->as.i;
    if (strcmp(op, "onnx.Constant") == 0 && constant && constant->kind == TN_ATTR_TENSOR)
        return (tn_dtype)constant->as.tensor->dtype;
    const tn_attr *made = tn_node_attr(g, from, "dtype");
    bool random = strncmp(op, "onnx.Random", 11) == 0;
    if (random && made && made->kind == TN_ATTR_INT)
        return (tn_dtype)made->as.i;
    if (random && !tn_node_input_count(g, from))
        return TN_F32;
    if (random) /* as its input */
        return tn_v_dtype_of(g, tn_node_input(g, from, 0), depth + 1);
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (strcmp(op + 5, passing[i]) == 0 && tn_node_input_count(g, from))
            return tn_v_dtype_of(g, tn_node_input(g, from, 0), depth + 1);
    return TN_DTYPE_NONE;
}

tn_tensor *tn_v_constant_of(const tn_graph *g, tn_value value) {
    tn_node from = tn_value_producer(g, value);
    const tn_attr *a =
        from.id && strcmp(tn_node_op_name(g, from), "onnx.Constant") == 0 ? tn_node_attr(g, from, "value") : NULL;
    tn_tensor *t = a && a->kind == TN_ATTR_TENSOR ? a->as.tensor : tn_value_constant(g, value);
    return t && t->contiguous ? t : NULL;
}

tn_status tn_v_put_input(tn_convert_node *n, int64_t at, tn_value value, int version, bool up) {
    if (!value.id)
        return tn_graph_check(n->g);
    if (tn_v_has_input(n, (uint32_t)at))
        return tn_v_refuse(n, version, up, "an input is given as an attribute, too");
    while (n->inputs <= (uint32_t)at)
        n->in[n->inputs++] = (tn_value){0};
    n->in[at] = value;
    n->changed = true;
    return TN_OK;
}
