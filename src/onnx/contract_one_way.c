/* Primitives that no standard operator computes to the last bit. */
#include "onnx/contract.h"

static bool is_constant(const tn_graph *g, tn_node node, const char *attr) {
    const tn_dim *dims;
    uint32_t n = tn_attr_dims(g, node, attr, &dims);
    for (uint32_t i = 0; i < n; i++) {
        int64_t size;
        if (!tn_dim_is_const(g, dims[i], &size) || size < 0)
            return false;
    }
    return true;
}

static bool always(const tn_graph *g, tn_node node, tn_dtype dtype) {
    (void)g, (void)node, (void)dtype;
    return true;
}

static bool of_narrow_integers(const tn_graph *g, tn_node node, tn_dtype dtype) {
    return tn_dtype_is_int(dtype) &&
           (tn_dtype_bits(dtype) < 32 || dtype != tn_value_dtype(g, tn_node_output(g, node, 0)));
}

static bool of_signed(const tn_graph *g, tn_node node, tn_dtype dtype) {
    (void)g, (void)node;
    return tn_dtype_is_signed(dtype);
}

static bool of_integers(const tn_graph *g, tn_node node, tn_dtype dtype) {
    (void)g, (void)node;
    return tn_dtype_is_int(dtype);
}

static bool convolution(const tn_graph *g, tn_node node, tn_dtype dtype) {
    const int64_t *spread, *stride;
    uint32_t n = tn_attr_ints(g, node, "lhs_dilation", &spread);
    bool transposed = false;
    tn_attr_ints(g, node, "stride", &stride);
    for (uint32_t i = 0; i < n; i++)
        transposed = transposed || spread[i] != 1;
    return !tn_dtype_is_float(dtype) || transposed || !is_constant(g, node, "lo") || !is_constant(g, node, "hi");
}

static bool window(const tn_graph *g, tn_node node, tn_dtype dtype) {
    return !is_constant(g, node, "lo") || !is_constant(g, node, "hi") ||
           (tn_dtype_is_int(dtype) && dtype != TN_I8 && dtype != TN_U8) || dtype == TN_BOOL;
}

bool tn_contract_is_one_way(const tn_graph *g, tn_node node) {
    static const struct {
        const char *op;
        bool (*where)(const tn_graph *g, tn_node node, tn_dtype dtype);
    } rows[] = {
        {"dot", of_narrow_integers},
        {"conv", convolution},
        {"window_sum", always}, /* sums and counts apart */
        {"window_max", window},
        {"window_min", window},
        {"window_arg_max", always}, /* beside the largest, from one node */
        {"rsqrt", always},          /* rounded once: norms stay whole */
        {"shl", of_signed},
        {"shr", of_signed},
        {"atan2", always},
        {"bitcast", always},
        {"expm1", always},
        {"log1p", always},
        {"mod", always},
        {"reduce_and", of_integers},
        {"reduce_or", of_integers},
        {"cumsum", of_narrow_integers},
        {"cumprod", always},
        {"cummax", always},
        {"cummin", always},
        {"random_bits", always},
        {"random_uniform", always},
        {"random_normal", always},
        {"random_mt19937", always},
        {"group_norm", always}, /* a new meaning in operator set 21 */
        {"lookup", always},
        {"fit", always},     /* the same of its inputs' sizes */
        {"require", always}, /* whoever runs the operator checks its inputs */
        {"couple", always},
        {"tree_ensemble", always},
        {"zip_map", always},
        {"cast_map", always},
        {"vectorize_map", always},
    };
    const tn_op *op = tn_node_op(g, node);
    if (op->dialect == TN_DIALECT_ONNX)
        return false;
    tn_value first = tn_node_input(g, node, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].op, op->name) == 0)
            return rows[i].where(g, node, first.id ? tn_value_dtype(g, first) : TN_DTYPE_NONE);
    return op->dialect == TN_DIALECT_CUSTOM;
}
