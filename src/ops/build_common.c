/* Shared parts of the builder: refusing wrong calls with a sticky error, axes, broadcasting of shapes. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "ops/builder.h"

tn_value tn_build_stick(tn_graph *g) {
    if (g)
        tn_graph_stick(g);
    return TN_NULL_VALUE;
}

tn_value tn_build_fail(tn_graph *g, tn_status status, const char *format, ...) {
    char text[900];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tn_fail(status, "%s", text);
    return tn_build_stick(g);
}

bool tn_build_ready(tn_graph *g, const char *function, uint32_t count, const tn_value *values) {
    if (tn_graph_changeable(g) != TN_OK)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (tn_value_is_alive(g, values[i]))
            continue;
        tn_build_fail(g, TN_ERR_USAGE, "%s: operand %" PRIu32 " is %s", function, i,
                      values[i].id ? "dead, or a value of another graph" : "the null value");
        return false;
    }
    return true;
}

bool tn_build_ranked(tn_graph *g, const char *function, uint32_t count, const tn_value *values) {
    if (!tn_build_ready(g, function, count, values))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        char text[200];
        if (tn_value_rank(g, values[i]) >= 0)
            continue;
        tn_build_fail(g, TN_ERR_UNSUPPORTED, "%s needs operands of known rank, but operand %" PRIu32 " is %s", function,
                      i, tn_value_describe(g, values[i], text, sizeof text));
        return false;
    }
    return true;
}

int tn_build_dims(const tn_graph *g, tn_value value, tn_dim dims[TN_MAX_RANK]) {
    int rank = tn_value_rank(g, value);
    if (rank > 0)
        memcpy(dims, tn_value_dims(g, value), (size_t)rank * sizeof *dims);
    return rank;
}

int tn_build_axis(tn_graph *g, const char *function, int64_t axis, int rank) {
    if (axis >= -(int64_t)rank && axis < rank)
        return (int)(axis < 0 ? axis + rank : axis);
    tn_build_fail(g, TN_ERR_USAGE, "%s: axis %" PRId64 " of a value of rank %d", function, axis, rank);
    return -1;
}

int tn_build_axes(tn_graph *g, const char *function, uint32_t count, const int *axes, int rank,
                  int64_t out[TN_MAX_RANK]) {
    bool chosen[TN_MAX_RANK] = {false};
    if (count && !axes) {
        tn_build_fail(g, TN_ERR_USAGE, "%s: %" PRIu32 " axes, but their list is NULL", function, count);
        return -1;
    }
    for (uint32_t i = 0; i < count; i++) {
        int axis = tn_build_axis(g, function, axes[i], rank);
        if (axis < 0)
            return -1;
        if (chosen[axis]) {
            tn_build_fail(g, TN_ERR_USAGE, "%s: axis %d is given twice", function, axis);
            return -1;
        }
        chosen[axis] = true;
    }
    int n = 0;
    for (int axis = 0; axis < rank; axis++)
        if (!count || chosen[axis])
            out[n++] = axis;
    return n;
}

tn_dim tn_build_product(tn_graph *g, int count, const tn_dim *dims) {
    tn_dim product = tn_dim_const(g, 1);
    for (int i = 0; i < count && product.id; i++)
        product = tn_dim_mul(g, product, dims[i]);
    if (!product.id)
        tn_graph_stick(g);
    return product;
}

/* Whether two dims can never be broadcast together. */
static bool never_broadcast(const tn_graph *g, tn_dim a, tn_dim b) {
    int64_t low, high;
    if (!tn_dim_never_equal(g, a, b))
        return false;
    tn_dim_bounds(g, a, &low, &high);
    if (low <= 1 && high >= 1)
        return false;
    tn_dim_bounds(g, b, &low, &high);
    return low > 1 || high < 1;
}

bool tn_build_broadcast(tn_graph *g, const char *function, int *rank, tn_dim a[TN_MAX_RANK], int b_rank,
                        const tn_dim *b) {
    int grow = b_rank - *rank;
    if (grow > 0) {
        memmove(a + grow, a, (size_t)*rank * sizeof *a);
        memcpy(a, b, (size_t)grow * sizeof *a);
        *rank = b_rank;
    }
    int first = *rank - b_rank;
    for (int i = grow > 0 ? grow : 0; i < b_rank; i++) {
        tn_dim *x = &a[first + i];
        if (tn_dim_equal(g, *x, b[i]))
            continue;
        if (never_broadcast(g, *x, b[i])) {
            char p[160], q[160];
            tn_type s = tn_type_tensor(g, TN_DTYPE_NONE, *rank, a), t = tn_type_tensor(g, TN_DTYPE_NONE, b_rank, b);
            const char *left = tn_type_describe(g, s, p, sizeof p), *right = tn_type_describe(g, t, q, sizeof q);
            const char *left_dims = strchr(left, '['), *right_dims = strchr(right, '[');
            tn_build_fail(g, TN_ERR_USAGE, "%s: shapes %s and %s do not broadcast together", function,
                          left_dims ? left_dims : left, right_dims ? right_dims : right);
            return false;
        }
        *x = tn_dim_broadcast(g, *x, b[i]);
        if (!x->id) {
            tn_graph_stick(g);
            return false;
        }
    }
    return true;
}
