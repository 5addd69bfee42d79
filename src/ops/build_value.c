/* Builder: inputs, outputs, constants. */
#include "ops/builder.h"

#include <inttypes.h>
#include <math.h>

/* The dims of a shape in a call. `free_one`: one -1 is admitted and answered in *free_axis (else refused). False: sticky error. */
static bool shape_dims(tn_graph *g, const char *function, tn_shape shape, tn_dim dims[TN_MAX_RANK], int *free_axis) {
    const int max = (int)(sizeof shape.item / sizeof shape.item[0]);
    if (shape.rank < 0 || shape.rank > max) {
        tn_build_fail(g, TN_ERR_USAGE, "%s: a shape of rank %d", function, shape.rank);
        return false;
    }
    for (int i = 0; i < shape.rank; i++) {
        tn_shape_item item = shape.item[i];
        if (item.name) {
            if (!*item.name) {
                tn_build_fail(g, TN_ERR_USAGE, "%s: dimension %d has an empty name", function, i);
                return false;
            }
            dims[i] = tn_dim_symbol(g, item.name);
        } else if (item.size == -1 && free_axis && *free_axis < 0) {
            *free_axis = i;
            dims[i] = tn_dim_const(g, 1);
        } else if (item.size < 0) {
            tn_build_fail(g, TN_ERR_USAGE, "%s: dimension %d is %" PRId64, function, i, item.size);
            return false;
        } else {
            dims[i] = tn_dim_const(g, item.size);
        }
        if (!dims[i].id) {
            tn_graph_stick(g);
            return false;
        }
    }
    return true;
}

tn_value tn_input(tn_graph *g, const char *name, tn_dtype dtype, tn_shape shape) {
    tn_dim dims[TN_MAX_RANK];
    if (!tn_build_ready(g, "tn_input", 0, NULL))
        return TN_NULL_VALUE;
    if (!name || !*name)
        return tn_build_fail(g, TN_ERR_USAGE, "tn_input: an input needs a name");
    if (dtype <= TN_DTYPE_NONE || dtype >= TN_DTYPE_COUNT)
        return tn_build_fail(g, TN_ERR_USAGE, "tn_input: input '%s' has no known dtype (%d)", name, (int)dtype);
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++)
        if (strcmp(tn_value_name(g, tn_graph_input(g, i)), name) == 0)
            return tn_build_fail(g, TN_ERR_USAGE, "tn_input: there is an input '%s' already", name);
    if (shape.rank != -1 && !shape_dims(g, "tn_input", shape, dims, NULL))
        return TN_NULL_VALUE;
    tn_type type = tn_type_tensor(g, dtype, shape.rank, dims);
    return type.id ? tn_region_add_arg(g, tn_graph_region(g), type, name) : tn_build_stick(g);
}

tn_value tn_set_output(tn_graph *g, const char *name, tn_value value) {
    if (!tn_build_ready(g, "tn_set_output", 1, &value))
        return TN_NULL_VALUE;
    if (!name || !*name)
        return tn_build_fail(g, TN_ERR_USAGE, "tn_set_output: an output needs a name");
    for (uint32_t i = 0; i < tn_graph_output_count(g); i++)
        if (strcmp(tn_graph_output_name(g, i), name) == 0)
            return tn_build_fail(g, TN_ERR_USAGE, "tn_set_output: there is an output '%s' already", name);
    tn_node last = tn_region_last(g, tn_graph_region(g));
    if (!tn_value_visible(g, value, last))
        return tn_build_fail(g, TN_ERR_USAGE, "tn_set_output: the value of output '%s' lies inside a body", name);
    return tn_graph_add_output(g, value, name) == TN_OK ? value : TN_NULL_VALUE;
}

tn_value tn_constant(tn_graph *g, tn_tensor *tensor) {
    if (!tn_build_ready(g, "tn_constant", 0, NULL))
        return TN_NULL_VALUE;
    if (!tensor)
        return tn_build_fail(g, TN_ERR_USAGE, "tn_constant: the tensor is NULL");
    return tn_graph_constant(g, tensor);
}

tn_value tn_variable(tn_graph *g, const char *name, tn_tensor *tensor) {
    if (!tn_build_ready(g, "tn_variable", 0, NULL))
        return TN_NULL_VALUE;
    if (!name || !*name)
        return tn_build_fail(g, TN_ERR_USAGE, "tn_variable: a variable needs a name");
    if (!tensor)
        return tn_build_fail(g, TN_ERR_USAGE, "tn_variable: the tensor of '%s' is NULL", name);
    tn_value v = tn_graph_constant(g, tensor);
    if (!v.id)
        return v;
    if (tn_value_set_name(g, v, name) != TN_OK || tn_node_set_name(g, tn_value_producer(g, v), name) != TN_OK)
        return tn_build_stick(g);
    return v;
}

/* Hands over a tensor (or NULL with the error set) as a constant. */
static tn_value own_constant(tn_graph *g, tn_tensor *tensor) {
    if (!tensor)
        return tn_build_stick(g);
    tn_value v = tn_graph_constant(g, tensor);
    tn_tensor_destroy(tensor);
    return v;
}

static bool holds(tn_dtype dtype, double value) {
    if (dtype == TN_BOOL)
        return value == 0 || value == 1;
    if (tn_dtype_is_int(dtype)) /* below 2^64 the comparison with the maximum is not exact: ask for one less */
        return value == floor(value) && value >= (double)tn_dtype_min_i64(dtype) &&
               (tn_dtype_bits(dtype) < 64 ? value <= (double)tn_dtype_max_u64(dtype)
                                          : value < (dtype == TN_U64 ? 0x1p64 : 0x1p63));
    return true;
}

tn_value tn_scalar(tn_graph *g, tn_dtype dtype, double value) {
    if (!tn_build_ready(g, "tn_scalar", 0, NULL))
        return TN_NULL_VALUE;
    if (dtype <= TN_DTYPE_NONE || dtype >= TN_DTYPE_COUNT || dtype == TN_STRING || tn_dtype_is_complex(dtype))
        return tn_build_fail(g, TN_ERR_USAGE, "tn_scalar: not a number's dtype: %s", tn_dtype_name(dtype));
    if (!holds(dtype, value))
        return tn_build_fail(g, TN_ERR_USAGE, "tn_scalar: the number is not a value of %s", tn_dtype_name(dtype));
    tn_tensor *t = tn_tensor_create_in(g->heap, dtype, 0, NULL);
    if (t) {
        if (dtype == TN_U64 && value >= 0x1p63)
            tn_store_i64(dtype, t->data, 0, (int64_t)(uint64_t)value);
        else
            tn_store_f64(dtype, t->data, 0, value);
    }
    return own_constant(g, t);
}

tn_value tn_constant_i64(tn_graph *g, int rank, int64_t count, const int64_t *values) {
    if (!tn_build_ready(g, "tn_constant_i64", 0, NULL))
        return TN_NULL_VALUE;
    if (rank < 0 || rank > 1 || count < 0 || (rank == 0 && count != 1) || (count && !values))
        return tn_build_fail(g, TN_ERR_USAGE, "tn_constant_i64: rank %d with %" PRId64 " elements%s", rank, count,
                             count && !values ? ", which are NULL" : "");
    tn_tensor *t = tn_tensor_create_in(g->heap, TN_I64, rank, &count);
    if (t && count)
        memcpy(t->data, values, (size_t)count * sizeof *values);
    return own_constant(g, t);
}

tn_value tn_scalar_like(tn_graph *g, tn_value like, double value) {
    if (!tn_build_ready(g, "tn_scalar_like", 1, &like))
        return TN_NULL_VALUE;
    return tn_scalar(g, tn_value_dtype(g, like), value);
}

tn_value tn_reshape(tn_graph *g, tn_value x, tn_shape shape) {
    tn_dim dims[TN_MAX_RANK], of_x[TN_MAX_RANK];
    int free_axis = -1;
    if (!tn_build_ranked(g, "tn_reshape", 1, &x) || !shape_dims(g, "tn_reshape", shape, dims, &free_axis))
        return TN_NULL_VALUE;
    if (free_axis >= 0) {
        tn_dim all = tn_build_product(g, tn_build_dims(g, x, of_x), of_x);
        tn_dim rest = tn_build_product(g, shape.rank, dims);
        int64_t count, divisor;
        if (!all.id || !rest.id)
            return TN_NULL_VALUE;
        if (tn_dim_is_const(g, rest, &divisor)) {
            if (divisor == 0)
                return tn_build_fail(g, TN_ERR_USAGE,
                                     "tn_reshape: the dimension given as -1 could be anything: another one is 0");
            if (tn_dim_is_const(g, all, &count) && count % divisor)
                return tn_build_fail(g, TN_ERR_USAGE, "tn_reshape: %" PRId64 " elements do not divide by %" PRId64,
                                     count, divisor);
        }
        dims[free_axis] = tn_dim_floordiv(g, all, rest);
        if (!dims[free_axis].id)
            return tn_build_stick(g);
    }
    return tn_reshape_dims(g, x, shape.rank, dims);
}
