/* The way out of control flow, sequences, composites and random numbers. */
#define TN_NO_POSITIONS
#include <tenon/build.h>

#include "onnx/contract.h"
#include "onnx/expander.h"

/* --- control flow ------------------------------------------------------------------------------------------------------------------- */

/* What a body returns must be made in it, each result by itself: copies of all else. */
static tn_status own_results(tn_contract *c, tn_region region) {
    tn_graph *g = c->g;
    uint32_t n = tn_region_result_count(g, region);
    tn_insertion at = tn_graph_insertion(g);
    tn_value *results = tn_alloc_array(g->heap, n + 1u, sizeof *results);
    if (!results)
        return tn_error_status();
    tn_graph_insert_at_end(g, region);
    for (uint32_t i = 0; i < n; i++) {
        tn_value value = results[i] = tn_region_result(g, region, i);
        tn_node producer = tn_value_producer(g, value);
        bool own = producer.id && tn_node_parent(g, producer).id == region.id && !tn_value_constant(g, value);
        for (uint32_t j = 0; j < i && own; j++)
            own = tn_region_result(g, region, j).id != value.id;
        if (!own)
            results[i] = tn_c_one(c, "Identity", value, tn_value_type(g, value));
    }
    tn_status status = tn_graph_check(g);
    if (status == TN_OK)
        status = tn_region_return(g, region, n, results);
    tn_graph_set_insertion(g, at);
    tn_free(g->heap, results);
    return status;
}

/* A node with the bodies `regions` and all outputs of the primitive. */
static tn_status put_control(tn_contract *c, const char *op, uint32_t inputs, const tn_value *in, uint32_t attrs,
                             const tn_attr *attr, uint32_t count, const tn_region *regions) {
    tn_graph *g = c->g;
    const tn_onnx_op *row = tn_onnx_find_any("", op);
    uint32_t outputs = tn_node_output_count(g, c->node);
    tn_type *types = tn_alloc_array(g->heap, outputs + 1u, sizeof *types);
    if (!types)
        return tn_error_status();
    for (uint32_t i = 0; i < outputs; i++)
        types[i] = tn_c_type(c, i);
    tn_node n = {0};
    if (row)
        n = tn_graph_add_node_typed(g,
                                    &(tn_node_desc){.op = &row->op,
                                                    .input_count = inputs,
                                                    .inputs = in,
                                                    .output_count = outputs,
                                                    .attr_count = attrs,
                                                    .attrs = attr,
                                                    .region_count = count,
                                                    .regions = regions},
                                    types);
    for (uint32_t i = 0; n.id && i < outputs; i++) {
        c->out[i] = tn_node_output(g, n, i);
        if (tn_value_set_name(g, c->out[i], "result") != TN_OK) /* there are runtimes that want all outputs named */
            break;
    }
    tn_free(g->heap, types);
    return !row ? tn_c_unsupported(c, "its operator is not in this build") : n.id ? TN_OK : tn_graph_check(g);
}

static tn_status if_(tn_contract *c) {
    tn_graph *g = c->g;
    tn_value cond = tn_c_in(c, 0);
    tn_region regions[] = {tn_node_region(g, c->node, 0), tn_node_region(g, c->node, 1)};
    for (int i = 0; i < 2; i++)
        TN_TRY(own_results(c, regions[i]));
    TN_TRY(tn_node_release_regions(g, c->node));
    return put_control(c, "If", 1, &cond, 0, NULL, 2, regions);
}

static tn_status scan(tn_contract *c) {
    tn_graph *g = c->g;
    uint32_t inputs = tn_node_input_count(g, c->node);
    int64_t carried = tn_attr_int(g, c->node, "carried");
    tn_region body = tn_node_region(g, c->node, 0);
    tn_value *in = tn_alloc_array(g->heap, inputs + 1u, sizeof *in);
    if (!in)
        return tn_error_status();
    for (uint32_t i = 0; i < inputs; i++)
        in[i] = tn_c_in(c, i);
    tn_status status = own_results(c, body);
    if (status == TN_OK)
        status = tn_node_release_regions(g, c->node);
    if (status == TN_OK)
        status =
            put_control(c, "Scan", inputs, in, 1, &TN_A_INT("num_scan_inputs", (int64_t)inputs - carried), 1, &body);
    tn_free(g->heap, in);
    return status;
}

/* Copies a region of ONNX nodes to the insertion point, with args for its arguments. */
static tn_status copy_nodes(tn_contract *c, tn_region region, uint32_t n_args, const tn_value *args, uint32_t n_results,
                            tn_value *results) {
    uint64_t budget = UINT64_MAX;
    tn_onnx_copier copier = {.to = c->g, .from = c->g, .budget = &budget};
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < n_args && status == TN_OK; i++)
        if (!tn_map_put(c->g->heap, &copier.values, tn_region_arg(c->g, region, i).id, args[i].id))
            status = tn_error_status();
    if (status == TN_OK)
        status = tn_onnx_copy_region(&copier, region, n_results, results);
    tn_onnx_copier_free(&copier);
    return status;
}

/* Loop asks for its condition before the first trip and at the end of each: the region that computes it is copied to both places. */
static tn_status build_loop(tn_contract *c, uint32_t n, tn_value *in, tn_value *args, tn_value *results) {
    tn_graph *g = c->g;
    tn_region cond = tn_node_region(g, c->node, 0), body = tn_node_region(g, c->node, 1), loop = tn_region_create(g);
    uint32_t results_count = tn_region_result_count(g, body);
    for (uint32_t i = 0; i < n; i++)
        in[2 + i] = tn_c_in(c, i);
    TN_TRY(copy_nodes(c, cond, n, in + 2, 1, &in[1]));
    tn_insertion at = tn_graph_insertion(g);
    tn_region_add_arg(g, loop, tn_type_tensor(g, TN_I64, 0, NULL), "");
    tn_region_add_arg(g, loop, tn_type_tensor(g, TN_BOOL, 0, NULL), "");
    for (uint32_t i = 0; i < n; i++) {
        tn_value arg = tn_region_arg(g, body, i);
        args[i] = tn_region_add_arg(g, loop, tn_value_type(g, arg), tn_value_name(g, arg));
    }
    tn_graph_insert_at_end(g, loop);
    TN_TRY(copy_nodes(c, body, n, args, results_count, results + 1));
    TN_TRY(copy_nodes(c, cond, n, results + 1, 1, &results[0]));
    TN_TRY(tn_region_return(g, loop, results_count + 1, results));
    tn_graph_set_insertion(g, at);
    TN_TRY(own_results(c, loop));
    return put_control(c, "Loop", n + 2, in, 0, NULL, 1, &loop);
}

static tn_status while_(tn_contract *c) {
    uint32_t n = tn_node_input_count(c->g, c->node), m = tn_region_result_count(c->g, tn_node_region(c->g, c->node, 1));
    tn_value *in = tn_alloc_array(c->g->heap, n + 2u, sizeof *in),
             *args = tn_alloc_array(c->g->heap, n + 1u, sizeof *args),
             *results = tn_alloc_array(c->g->heap, m + 1u, sizeof *results);
    tn_status status = in && args && results ? build_loop(c, n, in, args, results) : tn_error_status();
    tn_free(c->g->heap, in);
    tn_free(c->g->heap, args);
    tn_free(c->g->heap, results);
    return status;
}

/* --- sequences and optionals ------------------------------------------------------------------------------------------------------------ */

/* The same inputs and attributes under another name. */
static tn_status as_it_is(tn_contract *c) {
    const char *op = tn_contract_find(tn_node_op_name(c->g, c->node))->onnx;
    uint32_t n = tn_node_input_count(c->g, c->node), attrs = tn_node_attr_count(c->g, c->node);
    tn_attr list[4];
    tn_value *in = tn_alloc_array(c->g->heap, n + 1u, sizeof *in);
    if (!in)
        return tn_error_status();
    for (uint32_t i = 0; i < n; i++)
        in[i] = tn_c_in(c, i);
    for (uint32_t i = 0; i < attrs && i < 4; i++) {
        list[i] = *tn_node_attr_at(c->g, c->node, i);
        list[i].key = tn_strings_text(&c->g->strings, list[i].name);
    }
    while (n && !in[n - 1].id)
        n--;
    tn_value made = tn_c_emit(c, op, n, in, attrs, list, tn_c_type(c, 0));
    tn_free(c->g->heap, in);
    return tn_c_set(c, 0, made);
}

static tn_status sequence_construct(tn_contract *c) {
    return tn_node_input_count(c->g, c->node) ? as_it_is(c)
                                              : tn_c_unsupported(c, "a sequence of it has an item at least");
}

/* --- composites -------------------------------------------------------------------------------------------------------------------------- */

static tn_status by_definition(tn_contract *c) {
    tn_value in[8];
    for (uint32_t i = 0; i < tn_node_input_count(c->g, c->node) && i < 8; i++)
        in[i] = tn_c_in(c, i);
    return tn_c_define(c, in);
}

static tn_status along_axis(tn_contract *c) {
    const char *op = tn_contract_find(tn_node_op_name(c->g, c->node))->onnx;
    tn_value x = tn_c_in(c, 0);
    return tn_c_set(c, 0,
                    tn_c_emit(c, op, 1, &x, 1, &TN_A_INT("axis", tn_attr_int(c->g, c->node, "axis")), tn_c_type(c, 0)));
}

static tn_status gelu(tn_contract *c) {
    tn_string mode = tn_attr_string(c->g, c->node, "approximate");
    tn_value x = tn_c_in(c, 0);
    if (c->opset < 20)
        return by_definition(c);
    return tn_c_set(
        c, 0, tn_c_emit(c, "Gelu", 1, &x, 1, &TN_A_STRING("approximate", mode.data, mode.length), tn_c_type(c, 0)));
}

/* Operators of an input, parameters and an epsilon, that ask for all `needed` inputs. */
static tn_status normalization(tn_contract *c, const char *op, int since, uint32_t needed, uint32_t attrs,
                               tn_attr *list) {
    uint32_t n = tn_node_input_count(c->g, c->node);
    tn_value in[8];
    for (uint32_t i = 0; i < n; i++)
        in[i] = tn_c_in(c, i);
    for (uint32_t i = 0; i < needed; i++)
        if (i >= n || !in[i].id)
            return by_definition(c);
    if (c->opset < since || tn_value_dtype(c->g, in[0]) == TN_F64)
        return by_definition(c);
    while (n && !in[n - 1].id)
        n--;
    list[attrs] = TN_A_FLOAT("epsilon", tn_attr_float(c->g, c->node, "epsilon"));
    return tn_c_set(c, 0, tn_c_emit(c, op, n, in, attrs + 1, list, tn_c_type(c, 0)));
}

static tn_status layer_norm(tn_contract *c) {
    tn_attr list[3] = {TN_A_INT("axis", tn_attr_int(c->g, c->node, "axis"))};
    return normalization(c, "LayerNormalization", 17, 2, 1, list);
}

static tn_status rms_norm(tn_contract *c) {
    tn_attr list[3] = {TN_A_INT("axis", tn_attr_int(c->g, c->node, "axis"))};
    return normalization(c, "RMSNormalization", 23, 2, 1, list);
}

static tn_status group_norm(tn_contract *c) {
    tn_attr list[3] = {TN_A_INT("num_groups", tn_attr_int(c->g, c->node, "groups"))};
    return normalization(c, "GroupNormalization", 21, 3, 1, list);
}

static tn_status instance_norm(tn_contract *c) {
    tn_attr list[2];
    return normalization(c, "InstanceNormalization", 6, 3, 0, list);
}

static tn_status batch_norm(tn_contract *c) {
    tn_attr list[2];
    return normalization(c, "BatchNormalization", 15, 5, 0, list);
}

/* --- the rest ------------------------------------------------------------------------------------------------------------------------------ */

/* The distribution is the same, the numbers are the runtime's. */
static tn_status random_(tn_contract *c) {
    const char *op = tn_contract_find(tn_node_op_name(c->g, c->node))->onnx;
    tn_type type = tn_c_type(c, 0);
    int64_t shape[TN_MAX_RANK];
    int rank = tn_type_rank(c->g, type);
    for (int i = 0; i < rank; i++)
        if (!tn_dim_is_const(c->g, tn_type_dims(c->g, type)[i], &shape[i]))
            return tn_c_unsupported(c, "random numbers of a shape that is not constant");
    if (tn_node_input_count(c->g, c->node) && tn_c_in(c, 0).id)
        return tn_c_unsupported(c, "random numbers with an offset");
    tn_attr attrs[] = {TN_A_INTS("shape", rank, shape), TN_A_INT("dtype", tn_type_dtype(c->g, type)),
                       TN_A_FLOAT("seed", (double)tn_attr_int(c->g, c->node, "seed"))};
    return tn_c_set(c, 0, tn_c_emit(c, op, 0, NULL, 3, attrs, type));
}

/* ONNX has no nodes for debugging: the value goes on. */
static tn_status print_(tn_contract *c) {
    return tn_c_set(c, 0, tn_c_one(c, "Identity", tn_c_in(c, 0), tn_c_type(c, 0)));
}

/* ONNX has no node that refuses: x is the one entry of a list, of which the entry is read whose number is how many elements do not hold. */
static tn_status require(tn_contract *c) {
    tn_value x = tn_c_in(c, 0), holds = tn_c_in(c, 1);
    tn_type type = tn_c_type(c, 0), count = tn_type_tensor(c->g, TN_I64, 0, NULL);
    if (!type.id || tn_type_kind(c->g, type) != TN_KIND_TENSOR)
        return tn_c_unsupported(c, "a check before what is no tensor");
    const int64_t first = 0;
    tn_attr keep = TN_A_INT("keepdims", 0), axis = TN_A_INT("axis", 0);
    tn_value wrong = tn_c_one(c, "Not", holds, tn_c_like(c, holds, TN_BOOL));
    wrong = tn_c_cast(c, wrong, TN_I64);
    wrong = tn_c_emit(c, "ReduceSum", 1, &wrong, 1, &keep, count);
    tn_value list = tn_c_two(c, "Unsqueeze", x, tn_c_i64s(c, 1, &first), (tn_type){0}), in[2] = {list, wrong};
    return tn_c_set(c, 0, tn_c_emit(c, "Gather", 2, in, 1, &axis, type));
}

static tn_status nothing(tn_contract *c) {
    (void)c;
    return TN_OK;
}

const tn_contract_row tn_contract_other[] = {
    {"if", if_, NULL},
    {"while", while_, NULL},
    {"scan", scan, NULL},
    {"sequence_empty", as_it_is, "SequenceEmpty"},
    {"sequence_construct", sequence_construct, "SequenceConstruct"},
    {"sequence_insert", as_it_is, "SequenceInsert"},
    {"sequence_erase", as_it_is, "SequenceErase"},
    {"sequence_at", as_it_is, "SequenceAt"},
    {"sequence_length", as_it_is, "SequenceLength"},
    {"concat_from_sequence", as_it_is, "ConcatFromSequence"},
    {"split_to_sequence", as_it_is, "SplitToSequence"},
    {"optional", as_it_is, "Optional"},
    {"optional_has_element", as_it_is, "OptionalHasElement"},
    {"optional_get_element", as_it_is, "OptionalGetElement"},
    {"gelu", gelu, NULL},
    {"softmax", along_axis, "Softmax"},
    {"log_softmax", along_axis, "LogSoftmax"},
    {"layer_norm", layer_norm, NULL},
    {"rms_norm", rms_norm, NULL},
    {"group_norm", group_norm, NULL},
    {"instance_norm", instance_norm, NULL},
    {"batch_norm", batch_norm, NULL},
    {"random_uniform", random_, "RandomUniform"},
    {"random_normal", random_, "RandomNormal"},
    {"print", print_, NULL},
    {"assert", nothing, NULL},
    {"require", require, NULL},
    {NULL, NULL, NULL},
};
