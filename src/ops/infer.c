/* Shared parts of infer functions. */
#include <inttypes.h>

#include "ops/infer.h"

const char *tn_operand_describe(tn_infer *c, const tn_operand_type *operand, char *text, size_t size) {
    return tn_type_describe(c->graph, tn_type_tensor(c->graph, operand->dtype, operand->rank, operand->dims), text,
                            size);
}

tn_status tn_infer_operand(tn_infer *c, uint32_t index, tn_operand_type *out) {
    tn_value value = tn_node_input(c->graph, c->node, index);
    if (value.id == 0)
        return tn_infer_fail(c, "input %u is missing", (unsigned)index);
    tn_type type = tn_value_type(c->graph, value);
    if (type.id == 0)
        return tn_infer_fail(c, "input %u has no known type", (unsigned)index);
    if (tn_type_kind(c->graph, type) != TN_KIND_TENSOR)
        return tn_infer_fail(c, "input %u is no tensor", (unsigned)index);
    out->value = value;
    out->dtype = tn_type_dtype(c->graph, type);
    out->rank = tn_type_rank(c->graph, type);
    if (out->dtype == TN_DTYPE_NONE)
        return tn_infer_fail(c, "the element type of input %u is not known", (unsigned)index);
    if (out->rank < 0)
        return tn_infer_fail(c, "input %u needs a rank", (unsigned)index);
    if (out->rank > 0)
        memcpy(out->dims, tn_type_dims(c->graph, type), (size_t)out->rank * sizeof *out->dims);
    return TN_OK;
}

tn_status tn_infer_operand_rank(tn_infer *c, uint32_t index, int rank, tn_operand_type *out) {
    TN_TRY(tn_infer_operand(c, index, out));
    if (out->rank != rank)
        return tn_infer_fail(c, "input %u has rank %d where %d is needed", (unsigned)index, out->rank, rank);
    return TN_OK;
}

tn_status tn_infer_same_dtype(tn_infer *c, const tn_operand_type *a, const tn_operand_type *b) {
    if (a->dtype != b->dtype)
        return tn_infer_fail(c, "operands of %s and %s: primitives do not convert, cast one", tn_dtype_name(a->dtype),
                             tn_dtype_name(b->dtype));
    return TN_OK;
}

/* How much a dim says: constants most, then symbols of the model, then expressions and sizes that only data decides. */
static int information(const tn_graph *graph, tn_dim dim) {
    int64_t value;
    if (tn_dim_is_const(graph, dim, &value))
        return 2;
    const tn_dim_expr *expr = &graph->dims.expr.data[dim.id];
    return expr->kind == TN_DIM_SYMBOL && !graph->dims.symbol.data[expr->symbol].fresh;
}

tn_dim tn_infer_merge_dim(tn_graph *graph, tn_dim a, tn_dim b) {
    if (tn_dim_equal(graph, a, b))
        return information(graph, b) > information(graph, a) ? b : a;
    if (tn_dim_never_equal(graph, a, b))
        return (tn_dim){0};
    return information(graph, b) > information(graph, a) ? b : a;
}

tn_status tn_infer_merge_shape(tn_infer *c, tn_operand_type *a, const tn_operand_type *b) {
    bool fits = a->rank == b->rank;
    tn_dim merged[TN_MAX_RANK];
    for (int i = 0; fits && i < a->rank; i++) {
        merged[i] = tn_infer_merge_dim(c->graph, a->dims[i], b->dims[i]);
        fits = merged[i].id != 0;
    }
    if (!fits) {
        char left[256], right[256];
        return tn_infer_fail(c, "operands of different shapes: %s and %s", tn_operand_describe(c, a, left, sizeof left),
                             tn_operand_describe(c, b, right, sizeof right));
    }
    if (a->rank > 0)
        memcpy(a->dims, merged, (size_t)a->rank * sizeof *merged);
    return TN_OK;
}

tn_status tn_infer_axis(tn_infer *c, const char *attr, int64_t axis, int rank) {
    if (axis < 0 || axis >= rank)
        return tn_infer_fail(c, "%s %" PRId64 " is not an axis of a tensor of rank %d", attr, axis, rank);
    return TN_OK;
}
