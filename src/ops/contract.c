/* Contractions: convolution and dot. Evaluation: contract_conv.c, contract_dot.c. */
#include "ops/contract.h"

#include <inttypes.h>

#include "ops/ops.h"

tn_dtype tn_contract_result(tn_dtype dtype, tn_dtype acc) {
    return acc == TN_DTYPE_NONE || tn_dtype_is_float(dtype) ? dtype : acc;
}

static tn_status check_operands(tn_infer *c, tn_operand_type *a, tn_operand_type *b, tn_dtype *out) {
    tn_dtype acc;
    TN_TRY(tn_infer_operand(c, 0, a));
    TN_TRY(tn_infer_operand(c, 1, b));
    TN_TRY(tn_infer_same_dtype(c, a, b));
    if (!tn_scalar_admits(TN_SCALAR_MUL, a->dtype))
        return tn_infer_unsupported(c, "%s of %s", tn_node_op_name(c->graph, c->node), tn_dtype_name(a->dtype));
    TN_TRY(tn_infer_accumulator(c, a->dtype, &acc));
    *out = tn_contract_result(a->dtype, acc);
    return TN_OK;
}

static tn_status infer_conv(tn_infer *c) {
    tn_operand_type x, w;
    tn_dtype dtype;
    tn_graph *g = c->graph;
    const int64_t *stride, *dilation, *gap;
    const tn_dim *lo, *hi;
    int64_t groups = tn_attr_int(g, c->node, "groups"), value;
    tn_dim dims[TN_MAX_RANK], one = tn_dim_const(g, 1);
    char a[96], b[96];
    TN_TRY(check_operands(c, &x, &w, &dtype));
    if (x.rank < 2 || w.rank != x.rank)
        return tn_infer_fail(c, "x has rank %d and w rank %d: they must be equal and at least 2", x.rank, w.rank);
    int spatial = x.rank - 2;
    TN_TRY(tn_infer_attr_ints(c, "stride", spatial, 1, &stride));
    TN_TRY(tn_infer_attr_ints(c, "dilation", spatial, 1, &dilation));
    TN_TRY(tn_infer_attr_ints(c, "lhs_dilation", spatial, 1, &gap));
    TN_TRY(tn_infer_attr_dims(c, "lo", spatial, true, &lo, NULL));
    TN_TRY(tn_infer_attr_dims(c, "hi", spatial, true, &hi, NULL));
    if (groups < 1)
        return tn_infer_fail(c, "attribute 'groups' is %" PRId64 ", it must be at least 1", groups);
    if (tn_dim_is_const(g, x.dims[1], &value) && value % groups != 0)
        return tn_infer_fail(c, "%" PRId64 " groups do not divide the %" PRId64 " channels of x", groups, value);
    if (tn_dim_is_const(g, w.dims[0], &value) && value % groups != 0)
        return tn_infer_fail(c, "%" PRId64 " groups do not divide the %" PRId64 " output channels of w", groups, value);
    tn_dim channels = tn_dim_mul(g, w.dims[1], tn_dim_const(g, groups));
    if (channels.id == 0 || tn_dim_never_equal(g, x.dims[1], channels))
        return tn_infer_fail(
            c, "weights %s do not go with %s in %" PRId64 " groups: axis 1 of w must be the channels of one group",
            tn_operand_describe(c, &w, a, sizeof a), tn_operand_describe(c, &x, b, sizeof b), groups);
    dims[0] = x.dims[0];
    dims[1] = w.dims[0];
    for (int i = 0; i < spatial; i++) {
        if (tn_dim_is_const(g, w.dims[i + 2], &value) && value == 0)
            return tn_infer_fail(c, "the kernel has no elements on spatial axis %d", i);
        tn_dim spread = x.dims[i + 2];
        if (gap[i] != 1) {
            spread = tn_dim_sub(g, spread, one);
            spread = spread.id != 0 ? tn_dim_mul(g, spread, tn_dim_const(g, gap[i])) : spread;
            spread = spread.id != 0 ? tn_dim_add(g, spread, one) : spread;
            if (spread.id == 0)
                return tn_infer_fail(c, "lhs_dilation makes spatial axis %d too large", i);
        }
        TN_TRY(tn_infer_window(c, "spatial axis", i, spread, lo[i], hi[i], w.dims[i + 2], stride[i], dilation[i],
                               &dims[i + 2]));
    }
    return tn_infer_tensor(c, 0, dtype, x.rank, dims);
}

/* Reads a pair of axis lists: as many axes of a as of b. */
static tn_status read_axes(tn_infer *c, const char *of_a, const char *of_b, const tn_operand_type *a,
                           const tn_operand_type *b, bool *used_a, bool *used_b, const int64_t **axes_a,
                           const int64_t **axes_b, int *count) {
    int other;
    TN_TRY(tn_infer_attr_axes(c, of_a, a->rank, used_a, axes_a, count));
    TN_TRY(tn_infer_attr_axes(c, of_b, b->rank, used_b, axes_b, &other));
    if (*count != other)
        return tn_infer_fail(c, "attribute '%s' has %d axes, '%s' %d", of_a, *count, of_b, other);
    return TN_OK;
}

static tn_status infer_dot(tn_infer *c) {
    tn_operand_type a, b;
    tn_dtype dtype;
    const int64_t *a_batch, *b_batch, *a_contract, *b_contract;
    int batches, contracts, rank = 0;
    bool used_a[TN_MAX_RANK] = {false}, used_b[TN_MAX_RANK] = {false};
    tn_dim dims[2 * TN_MAX_RANK];
    TN_TRY(check_operands(c, &a, &b, &dtype));
    TN_TRY(read_axes(c, "a_batch", "b_batch", &a, &b, used_a, used_b, &a_batch, &b_batch, &batches));
    TN_TRY(read_axes(c, "a_contract", "b_contract", &a, &b, used_a, used_b, &a_contract, &b_contract, &contracts));
    for (int i = 0; i < batches + contracts; i++) {
        int64_t of_a = i < batches ? a_batch[i] : a_contract[i - batches],
                of_b = i < batches ? b_batch[i] : b_contract[i - batches];
        tn_dim merged = tn_infer_merge_dim(c->graph, a.dims[of_a], b.dims[of_b]);
        if (merged.id == 0) {
            char x[96], y[96];
            return tn_infer_fail(c, "%s axes %" PRId64 " of a, %s, and %" PRId64 " of b, %s, differ",
                                 i < batches ? "batch" : "contracted", of_a, tn_operand_describe(c, &a, x, sizeof x),
                                 of_b, tn_operand_describe(c, &b, y, sizeof y));
        }
        if (i < batches)
            dims[rank++] = merged;
    }
    for (int i = 0; i < a.rank; i++)
        if (!used_a[i])
            dims[rank++] = a.dims[i];
    for (int i = 0; i < b.rank; i++)
        if (!used_b[i])
            dims[rank++] = b.dims[i];
    if (rank > TN_MAX_RANK)
        return tn_infer_fail(c, "the output has rank %d, above the limit of %d", rank, TN_MAX_RANK);
    return tn_infer_tensor(c, 0, dtype, rank, dims);
}

static const tn_attr_spec conv_attrs[] = {{.name = "stride", .kind = TN_ATTR_INTS, .required = true},
                                          {.name = "dilation", .kind = TN_ATTR_INTS, .required = true},
                                          {.name = "lhs_dilation", .kind = TN_ATTR_INTS, .required = true},
                                          {.name = "lo", .kind = TN_ATTR_DIMS, .required = true},
                                          {.name = "hi", .kind = TN_ATTR_DIMS, .required = true},
                                          {.name = "groups", .kind = TN_ATTR_INT, .i = 1},
                                          {.name = "acc", .kind = TN_ATTR_DTYPE},
                                          {0}};
static const tn_attr_spec dot_attrs[] = {{.name = "a_batch", .kind = TN_ATTR_INTS, .required = true},
                                         {.name = "b_batch", .kind = TN_ATTR_INTS, .required = true},
                                         {.name = "a_contract", .kind = TN_ATTR_INTS, .required = true},
                                         {.name = "b_contract", .kind = TN_ATTR_INTS, .required = true},
                                         {.name = "acc", .kind = TN_ATTR_DTYPE},
                                         {0}};

static const tn_op rows[] = {
    {.name = "conv",
     .min_inputs = 2,
     .max_inputs = 2,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_CONTRACTION,
     .attrs = conv_attrs,
     .inputs = "x, w",
     .doc = "Cross-correlation of x [N, C, spatial...] with w [M, C / groups, kernel...]; x is spread by lhs_dilation, "
            "then padded.",
     .infer = infer_conv,
     .eval = tn_eval_conv,
     .lowering = TN_LOWER_CONTRACT,
     .code = TN_CONTRACT_CONV},
    {.name = "dot",
     .min_inputs = 2,
     .max_inputs = 2,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_CONTRACTION,
     .attrs = dot_attrs,
     .inputs = "a, b",
     .doc = "Sums of products over the contracted axes, for each batch index; axes of the output: batch, free of a, "
            "free of b.",
     .infer = infer_dot,
     .eval = tn_eval_dot,
     .lowering = TN_LOWER_CONTRACT,
     .code = TN_CONTRACT_DOT},
};
const tn_op_family tn_family_contract = {rows, sizeof rows / sizeof *rows};
