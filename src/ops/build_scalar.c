/* Builder: elementwise functions, with broadcasting. */
#include "ops/builder.h"

#define X(name)                                                                                                \
    tn_value tn_##name(tn_graph *g, tn_value x) {                                                              \
        return tn_build_ready(g, "tn_" #name, 1, &x) ? tn_graph_add(g, #name, 1, &x, 0, NULL) : TN_NULL_VALUE; \
    }
TN_BUILD_UNARY(X)
#undef X

/* Adds a row of `count` operands broadcast to one shape. Unranked operands are left to the row to refuse. */
tn_value tn_build_elementwise(tn_graph *g, const char *function, const char *row, uint32_t count,
                              const tn_value *operands) {
    tn_value v[3];
    tn_dim dims[TN_MAX_RANK], other[TN_MAX_RANK];
    if (!tn_build_ready(g, function, count, operands))
        return TN_NULL_VALUE;
    int rank = tn_build_dims(g, operands[0], dims);
    bool ranked = rank >= 0;
    for (uint32_t i = 1; ranked && i < count; i++) {
        int r = tn_build_dims(g, operands[i], other);
        ranked = r >= 0;
        if (ranked && !tn_build_broadcast(g, function, &rank, dims, r, other))
            return TN_NULL_VALUE;
    }
    for (uint32_t i = 0; i < count; i++) {
        v[i] = ranked ? tn_broadcast(g, operands[i], rank, dims) : operands[i];
        if (!v[i].id)
            return TN_NULL_VALUE;
    }
    return tn_graph_add(g, row, count, v, 0, NULL);
}

/* Mixed dtypes are refused before broadcasts are added. */
static bool same_dtype(tn_graph *g, const char *function, tn_value a, tn_value b) {
    char x[200], y[200];
    if (tn_value_dtype(g, a) == tn_value_dtype(g, b))
        return true;
    tn_fail(TN_ERR_USAGE, "%s: operands of different dtypes: %s and %s", function, tn_value_describe(g, a, x, sizeof x),
            tn_value_describe(g, b, y, sizeof y));
    tn_fail_hint("operators do not convert: cast one of them");
    tn_graph_stick(g);
    return false;
}

#define X(name)                                                                         \
    tn_value tn_##name(tn_graph *g, tn_value a, tn_value b) {                           \
        const tn_value v[] = {a, b};                                                    \
        return tn_build_ready(g, "tn_" #name, 2, v) && same_dtype(g, "tn_" #name, a, b) \
                   ? tn_build_elementwise(g, "tn_" #name, #name, 2, v)                  \
                   : TN_NULL_VALUE;                                                     \
    }
TN_BUILD_BINARY(X)
#undef X

tn_value tn_is_inf(tn_graph *g, tn_value x, bool positive, bool negative) {
    const tn_attr attrs[] = {TN_A_INT("positive", positive), TN_A_INT("negative", negative)};
    return tn_build_ready(g, "tn_is_inf", 1, &x) ? tn_graph_add(g, "is_inf", 1, &x, 2, attrs) : TN_NULL_VALUE;
}

tn_value tn_select(tn_graph *g, tn_value condition, tn_value a, tn_value b) {
    const tn_value v[] = {condition, a, b};
    return tn_build_ready(g, "tn_select", 3, v) && same_dtype(g, "tn_select", a, b)
               ? tn_build_elementwise(g, "tn_select", "select", 3, v)
               : TN_NULL_VALUE;
}

tn_value tn_cast(tn_graph *g, tn_value x, tn_dtype to) {
    if (!tn_build_ready(g, "tn_cast", 1, &x))
        return TN_NULL_VALUE;
    if (tn_value_dtype(g, x) == to)
        return x;
    tn_attr attr = TN_A_DTYPE("to", to);
    return tn_graph_add(g, "cast", 1, &x, 1, &attr);
}

tn_value tn_bitcast(tn_graph *g, tn_value x, tn_dtype to) {
    if (!tn_build_ready(g, "tn_bitcast", 1, &x))
        return TN_NULL_VALUE;
    if (tn_value_dtype(g, x) == to)
        return x;
    tn_attr attr = TN_A_DTYPE("to", to);
    return tn_graph_add(g, "bitcast", 1, &x, 1, &attr);
}
