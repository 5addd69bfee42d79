#include "support/toy_ops.h"

#include <stdlib.h>

static tn_status infer_first(tn_infer *c) {
    return tn_infer_type(c, 0, tn_value_type(c->graph, tn_node_input(c->graph, c->node, 0)));
}

static tn_status infer_value(tn_infer *c) {
    tn_tensor *t = tn_attr_tensor(c->graph, c->node, "value");
    tn_dim dims[TN_MAX_RANK];
    if (!t)
        return TN_OK;
    for (int i = 0; i < t->rank; i++)
        dims[i] = tn_dim_const(c->graph, t->dims[i]);
    return tn_infer_tensor(c, 0, (tn_dtype)t->dtype, t->rank, dims);
}

static tn_status infer_size(tn_infer *c) {
    tn_dim u = tn_infer_fresh(c, 0, 0, 0, 1000);
    return tn_infer_tensor(c, 0, TN_I64, 1, &u);
}

static tn_status infer_shaped(tn_infer *c) {
    const tn_dim *dims;
    tn_dim copy[TN_MAX_RANK];
    uint32_t rank = tn_attr_dims(c->graph, c->node, "shape", &dims);
    if (rank > TN_MAX_RANK)
        return tn_infer_fail(c, "rank %u", rank);
    for (uint32_t i = 0; i < rank; i++)
        copy[i] = dims[i];
    return tn_infer_tensor(c, 0, TN_F32, (int)rank, copy);
}

static tn_status infer_call(tn_infer *c) {
    tn_region region = tn_graph_function_region(c->graph, (uint32_t)tn_attr_int(c->graph, c->node, "callee"));
    if (tn_region_result_count(c->graph, region) != c->outputs)
        return tn_infer_fail(c, "its function has %u results", tn_region_result_count(c->graph, region));
    for (uint32_t i = 0; i < c->outputs; i++)
        TN_TRY(tn_infer_type(c, i, tn_value_type(c->graph, tn_region_result(c->graph, region, i))));
    return TN_OK;
}

static const tn_attr_spec value_spec[] = {{.name = "value", .kind = TN_ATTR_TENSOR, .required = true}, {0}};
static const tn_attr_spec loose_spec[] = {{.name = "value", .kind = TN_ATTR_TENSOR}, {0}};
static const tn_attr_spec shape_spec[] = {{.name = "shape", .kind = TN_ATTR_DIMS, .required = true}, {0}};
static const tn_attr_spec call_spec[] = {{.name = "callee", .kind = TN_ATTR_FUNCTION, .required = true}, {0}};
static const tn_attr_spec tuned_spec[] = {{.name = "level", .kind = TN_ATTR_INT, .required = true},
                                          {.name = "mode", .kind = TN_ATTR_STRING, .s = "one", .allowed = "one|two"},
                                          {.name = "scale", .kind = TN_ATTR_FLOAT, .f = 1},
                                          {0}};

#define ANY                                                                           \
    .dialect = TN_DIALECT_CUSTOM, .max_inputs = -1, .max_outputs = -1, .regions = -1, \
    .traits = TN_OPTIONAL_INPUTS | TN_CONTROL
static const tn_op rows[] = {
    {.name = "any", ANY},
    {.name = "odd name!", ANY},
    {.name = "region", ANY},
    {.name = "pair", .min_inputs = 2, .max_inputs = 2, .min_outputs = 1, .max_outputs = 1, .infer = infer_first},
    {.name = "const",
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_CONSTANT,
     .attrs = value_spec,
     .infer = infer_value},
    {.name = "loose",
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_CONSTANT,
     .attrs = loose_spec,
     .infer = infer_value},
    {.name = "size", .min_inputs = 1, .max_inputs = 1, .min_outputs = 1, .max_outputs = 1, .infer = infer_size},
    {.name = "shaped", .min_outputs = 1, .max_outputs = 1, .attrs = shape_spec, .infer = infer_shaped},
    {.name = "tuned",
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 1,
     .attrs = tuned_spec,
     .infer = infer_first},
    {.name = "block", .regions = 1},
    {.name = "open", .regions = 1, .traits = TN_CONTROL},
    {.name = "call", .max_inputs = -1, .max_outputs = -1, .traits = TN_CALL, .attrs = call_spec, .infer = infer_call},
    {.name = "effect", .max_inputs = -1, .traits = TN_EFFECT},
};
#define COUNT (sizeof rows / sizeof *rows)

const tn_op_table *toy_ops_before(const tn_op_table *next) {
    static const tn_op *pointers[COUNT];
    static tn_op_table table;
    for (size_t i = 0; i < COUNT; i++)
        pointers[i] = &rows[i];
    table = (tn_op_table){pointers, COUNT, next};
    return &table;
}

const tn_op_table *toy_ops(void) {
    return toy_ops_before(NULL);
}

const tn_op *toy_op(const char *name) {
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    abort();
}

tn_node toy_node(tn_graph *graph, const char *op, uint32_t inputs, const tn_value *input, uint32_t outputs,
                 const tn_type *types, uint32_t attrs, const tn_attr *attr) {
    tn_node_desc desc = {.op = toy_op(op),
                         .input_count = inputs,
                         .inputs = input,
                         .output_count = outputs,
                         .attr_count = attrs,
                         .attrs = attr};
    tn_node node = tn_graph_add_node_typed(graph, &desc, types);
    if (!node.id)
        abort();
    return node;
}

tn_value toy_input(tn_graph *graph, const char *name, tn_dtype dtype, int rank, const tn_dim *dims) {
    tn_value value = tn_region_add_arg(graph, tn_graph_region(graph), tn_type_tensor(graph, dtype, rank, dims), name);
    if (!value.id)
        abort();
    return value;
}
