/* The way out of movement: shapes, slices, elements at computed positions. */
#define TN_NO_POSITIONS
#include <tenon/build.h>

#include "onnx/contract.h"

static const tn_dim *dims_of(const tn_contract *c, const char *attr) {
    const tn_dim *dims = NULL;
    tn_attr_dims(c->g, c->node, attr, &dims);
    return dims;
}

/* --- shapes ---------------------------------------------------------------------------------------------------------------------------- */

/* One size that is not known becomes -1, sizes that stay where they are 0: then nothing needs to be read at run time. */
static tn_status reshape_of(tn_contract *c, tn_value from) {
    tn_graph *g = c->g;
    tn_value x = tn_c_in(c, 0); /* of the sizes of `from` */
    tn_type type = tn_c_type(c, 0);
    const tn_dim *given = dims_of(c, "shape");
    int rank = tn_type_rank(g, type), open = 0;
    int64_t values[TN_MAX_RANK];
    tn_dim dims[TN_MAX_RANK];
    bool zero = false, one_open = true;
    for (int i = 0; i < rank; i++) {
        dims[i] = given[i];
        if (tn_dim_is_const(g, dims[i], &values[i])) {
            zero = zero || values[i] == 0;
        } else if (i < tn_value_rank(g, x) && tn_value_dim(g, x, i).id == dims[i].id) {
            values[i] = 0;
        } else {
            values[i] = -1;
            open++;
        }
    }
    for (int i = 0; i < rank; i++) { /* -1 beside a size that may be 0 means nothing */
        int64_t low, high;
        tn_dim_bounds(g, dims[i], &low, &high);
        one_open = one_open && (values[i] > 0 || values[i] == -1 || low > 0);
    }
    tn_value shape;
    tn_attr keep_zero = TN_A_INT("allowzero", 1);
    if (!zero && (open == 0 || (open == 1 && one_open)))
        shape = tn_c_i64s(c, (uint32_t)rank, values);
    else
        shape = tn_c_dims(c, (uint32_t)rank, dims);
    bool as_said = zero || !(open == 0 || (open == 1 && one_open));
    return tn_c_set(c, 0, tn_c_emit(c, "Reshape", 2, (tn_value[]){from, shape}, as_said, &keep_zero, type));
}

static tn_status reshape(tn_contract *c) {
    return reshape_of(c, tn_c_in(c, 0));
}

/* x and a tensor of `dims` without any entry along the axis, one after the other: x, if its other sizes are those. */
static tn_value with_nothing(tn_contract *c, tn_value x, int rank, const tn_dim *dims, int axis) {
    tn_graph *g = c->g;
    tn_dim sizes[TN_MAX_RANK];
    tn_tensor *t = tn_tensor_create_in(g->heap, tn_value_dtype(g, tn_c_in(c, 0)), 0, NULL);
    for (int i = 0; i < rank; i++)
        sizes[i] = i == axis ? tn_dim_const(g, 0) : dims[i];
    tn_value zero = t ? tn_graph_constant(g, t) : (tn_value){0}, shape = tn_c_dims(c, (uint32_t)rank, sizes);
    tn_tensor_destroy(t);
    if (!t)
        tn_graph_stick(g);
    if (!zero.id || !shape.id || !x.id)
        return (tn_value){0};
    tn_value nothing = tn_c_two(c, "Expand", zero, shape, (tn_type){0});
    return tn_c_emit(c, "Concat", 2, (tn_value[]){x, nothing}, 1, &TN_A_INT("axis", axis), (tn_type){0});
}

/* Concat refuses parts that differ on other axes, also of tensors without elements, of which Reshape would take any. Reshape all the
   same: there are runtimes whose Concat does not look at what has no elements. */
static tn_status fit(tn_contract *c) {
    tn_graph *g = c->g;
    tn_value x = tn_c_in(c, 0), more;
    int rank = tn_type_rank(g, tn_c_type(c, 0));
    tn_dim dims[TN_MAX_RANK];
    if (rank == 0)
        return tn_c_set(c, 0, tn_c_one(c, "Identity", x, tn_c_type(c, 0)));
    memcpy(dims, dims_of(c, "shape"), (size_t)rank * sizeof *dims);
    if (rank == 1) {
        dims[1] = tn_dim_const(g, 1);
        more = tn_c_i64s(c, 1, (int64_t[]){1});
        x = with_nothing(c, tn_c_two(c, "Unsqueeze", x, more, (tn_type){0}), 2, dims, 1);
    } else {
        x = with_nothing(c, with_nothing(c, x, rank, dims, 0), rank, dims, 1);
    }
    return x.id ? reshape_of(c, x) : tn_graph_check(g);
}

static tn_status transpose(tn_contract *c) {
    const int64_t *perm;
    uint32_t n = tn_attr_ints(c->g, c->node, "perm", &perm);
    tn_value x = tn_c_in(c, 0);
    return tn_c_set(c, 0, tn_c_emit(c, "Transpose", 1, &x, 1, &TN_A_INTS("perm", n, perm), tn_c_type(c, 0)));
}

static tn_status broadcast(tn_contract *c) {
    tn_value x = tn_c_in(c, 0);
    tn_type type = tn_c_type(c, 0);
    tn_dim dims[TN_MAX_RANK];
    int rank = tn_type_rank(c->g, type);
    for (int i = 0; i < rank; i++)
        dims[i] = tn_type_dims(c->g, type)[i];
    tn_value shape = tn_c_dims(c, (uint32_t)rank, dims);
    tn_value made = shape.id ? tn_c_two(c, "Expand", x, shape, type) : shape;
    if (made.id && !tn_map_put(c->g->heap, &c->spread, made.id, x.id))
        return tn_error_status();
    return tn_c_set(c, 0, made);
}

#define ALL INT64_MAX

static tn_status slice(tn_contract *c) {
    tn_graph *g = c->g;
    tn_value x = tn_c_in(c, 0);
    const tn_dim *start = dims_of(c, "start"), *size = dims_of(c, "size");
    const int64_t *step;
    tn_attr_ints(g, c->node, "step", &step);
    tn_dim begins[TN_MAX_RANK], ends[TN_MAX_RANK];
    int64_t axes[TN_MAX_RANK], steps[TN_MAX_RANK];
    uint32_t n = 0;
    for (int i = 0; i < tn_value_rank(g, x); i++) {
        int64_t to;
        tn_dim dim = tn_value_dim(g, x, i), begin = start[i], length = size[i];
        if (step[i] == 1 && length.id == dim.id)
            continue;
        axes[n] = i;
        steps[n] = step[i];
        begins[n] = begin;
        tn_dim end = tn_dim_add(g, begin, tn_dim_mul(g, length, tn_dim_const(g, step[i])));
        if (!end.id)
            return tn_graph_check(g);
        if (step[i] < 0) {
            tn_dim last = tn_dim_sub(g, dim, tn_dim_const(g, 1));
            if (begin.id == last.id)
                begins[n] = tn_dim_const(g, ALL);
            if (!tn_dim_is_const(g, end, &to)) {
                int64_t low, high;
                tn_dim_bounds(g, end, &low, &high);
                if (low < 0)
                    return tn_c_unsupported(c, "a slice backwards to an end that only data decide");
            } else if (to < 0) {
                end = tn_dim_const(g, -ALL);
            }
        } else if (tn_dim_at_most(g, dim, end)) {
            end = tn_dim_const(g, ALL);
        }
        ends[n++] = end;
    }
    if (!n)
        return tn_c_set(c, 0, tn_c_one(c, "Identity", x, tn_c_type(c, 0)));
    tn_value in[] = {x, tn_c_dims(c, n, begins), tn_c_dims(c, n, ends), tn_c_i64s(c, n, axes), tn_c_i64s(c, n, steps)};
    return tn_c_set(c, 0, tn_c_emit(c, "Slice", 5, in, 0, NULL, tn_c_type(c, 0)));
}

static tn_value concat_two(tn_contract *c, tn_value a, tn_value b) {
    return tn_c_emit(c, "Concat", 2, (tn_value[]){a, b}, 1, &TN_A_INT("axis", 0), (tn_type){0});
}

static tn_status put_pad(tn_contract *c, tn_value pads, tn_value value) {
    tn_string mode = tn_attr_string(c->g, c->node, "mode");
    if (c->opset < 19 && mode.length == 4 && memcmp(mode.data, "wrap", 4) == 0)
        return tn_c_unsupported(c, "padding that wraps begins with operator set 19");
    tn_value in[] = {tn_c_in(c, 0), pads, value};
    return tn_c_set(
        c, 0,
        tn_c_emit(c, "Pad", value.id ? 3 : 2, in, 1, &TN_A_STRING("mode", mode.data, mode.length), tn_c_type(c, 0)));
}

static tn_status pad(tn_contract *c) {
    uint32_t rank = (uint32_t)tn_value_rank(c->g, tn_c_in(c, 0));
    tn_dim all[2 * TN_MAX_RANK];
    const tn_dim *lo = dims_of(c, "lo"), *hi = dims_of(c, "hi");
    bool known = true;
    int64_t values[2 * TN_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++) {
        all[i] = lo[i];
        all[rank + i] = hi[i];
    }
    for (uint32_t i = 0; i < 2 * rank; i++)
        known = tn_dim_is_const(c->g, all[i], &values[i]) && known;
    if (known)
        return put_pad(c, tn_c_i64s(c, 2 * rank, values), tn_c_in(c, 1));
    tn_value low = tn_c_dims(c, rank, all), high = tn_c_dims(c, rank, all + rank);
    return put_pad(c, concat_two(c, low, high), tn_c_in(c, 1));
}

static tn_status concat(tn_contract *c) {
    uint32_t n = tn_node_input_count(c->g, c->node);
    tn_value *in = tn_alloc_array(c->g->heap, n + 1u, sizeof *in);
    if (!in)
        return tn_error_status();
    for (uint32_t i = 0; i < n; i++)
        in[i] = tn_c_in(c, i);
    tn_value made =
        tn_c_emit(c, "Concat", n, in, 1, &TN_A_INT("axis", tn_attr_int(c->g, c->node, "axis")), tn_c_type(c, 0));
    tn_free(c->g->heap, in);
    return tn_c_set(c, 0, made);
}

static tn_status shape_of(tn_contract *c) {
    return tn_c_set(c, 0, tn_c_one(c, "Shape", tn_c_in(c, 0), tn_c_type(c, 0)));
}

/* 0, 1, ... along an axis, from its size (i64[1]) and the whole shape. */
static tn_status put_iota(tn_contract *c, tn_value length, tn_value shape, int rank) {
    tn_graph *g = c->g;
    int64_t axis = tn_attr_int(g, c->node, "axis"), along[TN_MAX_RANK];
    tn_dtype dtype = (tn_dtype)tn_attr_int(g, c->node, "dtype");
    tn_type type = tn_c_type(c, 0);
    tn_value count = tn_c_emit(c, "Squeeze", 1, &length, 0, NULL, tn_type_tensor(g, TN_I64, 0, NULL));
    tn_value in[] = {tn_scalar(g, TN_I64, 0), count, tn_scalar(g, TN_I64, 1)};
    tn_value made = tn_c_emit(c, "Range", 3, in, 0, NULL, (tn_type){0});
    if (dtype != TN_I64)
        made = tn_c_emit(c, "Cast", 1, &made, 1, &TN_A_INT("to", dtype), rank == 1 ? type : (tn_type){0});
    if (rank == 1)
        return tn_c_set(c, 0, tn_c_one(c, "Identity", made, type));
    for (int i = 0; i < rank; i++)
        along[i] = i == axis ? -1 : 1;
    made = tn_c_two(c, "Reshape", made, tn_c_i64s(c, (uint32_t)rank, along), (tn_type){0});
    return tn_c_set(c, 0, tn_c_two(c, "Expand", made, shape, type));
}

static tn_status iota(tn_contract *c) {
    tn_dim dims[TN_MAX_RANK];
    int rank = tn_type_rank(c->g, tn_c_type(c, 0));
    for (int i = 0; i < rank; i++)
        dims[i] = dims_of(c, "shape")[i];
    return put_iota(c, tn_c_dims(c, 1, &dims[tn_attr_int(c->g, c->node, "axis")]), tn_c_dims(c, (uint32_t)rank, dims),
                    rank);
}

/* --- shapes that are data --------------------------------------------------------------------------------------------------------------- */

static tn_status dynamic_iota(tn_contract *c) {
    tn_value shape = tn_c_cast(c, tn_c_in(c, 0), TN_I64),
             axis = tn_c_i64s(c, 1, (int64_t[]){tn_attr_int(c->g, c->node, "axis")});
    return put_iota(c, tn_c_two(c, "Gather", shape, axis, (tn_type){0}), shape, tn_type_rank(c->g, tn_c_type(c, 0)));
}

static tn_status dynamic_reshape(tn_contract *c) {
    tn_value in[] = {tn_c_in(c, 0), tn_c_cast(c, tn_c_in(c, 1), TN_I64)};
    return tn_c_set(c, 0, tn_c_emit(c, "Reshape", 2, in, 1, &TN_A_INT("allowzero", 1), tn_c_type(c, 0)));
}

static tn_status dynamic_broadcast(tn_contract *c) {
    return tn_c_set(c, 0, tn_c_two(c, "Expand", tn_c_in(c, 0), tn_c_cast(c, tn_c_in(c, 1), TN_I64), tn_c_type(c, 0)));
}

static tn_status dynamic_strided_slice(tn_contract *c) {
    const int64_t *axes;
    uint32_t n = tn_attr_ints(c->g, c->node, "axes", &axes);
    int64_t copy[TN_MAX_RANK];
    memcpy(copy, axes, n * sizeof *axes);
    tn_value in[5] = {tn_c_in(c, 0)};
    for (uint32_t i = 1; i < 3; i++)
        in[i] = tn_c_cast(c, tn_c_in(c, i), TN_I64);
    in[3] = tn_c_i64s(c, n, copy);
    if (tn_c_in(c, 3).id)
        in[4] = tn_c_cast(c, tn_c_in(c, 3), TN_I64);
    return tn_c_set(c, 0, tn_c_emit(c, "Slice", in[4].id ? 5 : 4, in, 0, NULL, tn_c_type(c, 0)));
}

static tn_status dynamic_pad(tn_contract *c) {
    tn_value lo = tn_c_cast(c, tn_c_in(c, 1), TN_I64), hi = tn_c_cast(c, tn_c_in(c, 2), TN_I64);
    return put_pad(c, concat_two(c, lo, hi), tn_c_in(c, 3));
}

static tn_status dynamic_slice(tn_contract *c) {
    uint32_t rank = (uint32_t)tn_value_rank(c->g, tn_c_in(c, 0));
    tn_value starts = tn_c_cast(c, tn_c_in(c, 1), TN_I64), size = tn_c_dims(c, rank, dims_of(c, "size"));
    if (!rank)
        return tn_c_set(c, 0, tn_c_one(c, "Identity", tn_c_in(c, 0), tn_c_type(c, 0)));
    tn_value ends = size.id ? tn_c_two(c, "Add", starts, size, tn_value_type(c->g, starts)) : size;
    return tn_c_set(c, 0,
                    tn_c_emit(c, "Slice", 3, (tn_value[]){tn_c_in(c, 0), starts, ends}, 0, NULL, tn_c_type(c, 0)));
}

/* The update and a mask of it, both padded to x: where the mask holds, the update. */
static tn_status dynamic_update_slice(tn_contract *c) {
    tn_graph *g = c->g;
    tn_value x = tn_c_in(c, 0), update = tn_c_in(c, 1), starts = tn_c_cast(c, tn_c_in(c, 2), TN_I64);
    tn_type list = tn_value_type(g, starts), flags = tn_c_like(c, x, TN_BOOL);
    if (tn_value_rank(g, x) == 0)
        return tn_c_set(c, 0, tn_c_one(c, "Identity", update, tn_c_type(c, 0)));
    tn_value size = tn_c_one(c, "Shape", update, list), all = tn_c_one(c, "Shape", x, list);
    tn_value after = tn_c_two(c, "Sub", tn_c_two(c, "Sub", all, starts, list), size, list);
    tn_value pads = concat_two(c, starts, after);
    tn_value mask = tn_c_two(c, "Expand", tn_scalar(g, TN_BOOL, 1), size, tn_c_like(c, update, TN_BOOL));
    mask = tn_c_two(c, "Pad", mask, pads, flags);
    tn_value padded = tn_c_two(c, "Pad", update, pads, tn_c_type(c, 0));
    return tn_c_set(c, 0, tn_c_emit(c, "Where", 3, (tn_value[]){mask, padded, x}, 0, NULL, tn_c_type(c, 0)));
}

/* --- elements at computed positions -------------------------------------------------------------------------------------------------- */

static tn_value index_of(tn_contract *c, uint32_t i) {
    tn_value index = tn_c_in(c, i);
    tn_dtype dtype = tn_value_dtype(c->g, index);
    return dtype == TN_I32 || dtype == TN_I64 ? index : tn_c_cast(c, index, TN_I64);
}

/* An operator of x, indices and perhaps updates, with the primitive's attributes. */
static tn_status indexed(tn_contract *c) {
    const char *op = tn_contract_find(tn_node_op_name(c->g, c->node))->onnx;
    bool wide = strcmp(op, "GatherND") == 0 || strcmp(op, "ScatterND") == 0; /* these take i64 alone */
    tn_value in[3] = {tn_c_in(c, 0), wide ? tn_c_cast(c, tn_c_in(c, 1), TN_I64) : index_of(c, 1), tn_c_in(c, 2)};
    tn_attr attrs[4];
    uint32_t n = tn_node_attr_count(c->g, c->node);
    for (uint32_t i = 0; i < n && i < 4; i++) {
        attrs[i] = *tn_node_attr_at(c->g, c->node, i);
        attrs[i].key = tn_strings_text(&c->g->strings, attrs[i].name);
    }
    return tn_c_set(c, 0, tn_c_emit(c, op, tn_node_input_count(c->g, c->node), in, n, attrs, tn_c_type(c, 0)));
}

static tn_status nonzero(tn_contract *c) {
    return tn_c_set(c, 0, tn_c_one(c, "NonZero", tn_c_in(c, 0), tn_c_type(c, 0)));
}

static tn_status axis_perhaps(tn_contract *c) {
    const char *op = tn_contract_find(tn_node_op_name(c->g, c->node))->onnx;
    tn_attr attrs[2];
    uint32_t n = 0, inputs = tn_node_input_count(c->g, c->node);
    tn_value in[2] = {tn_c_in(c, 0), tn_c_in(c, 1)};
    if (tn_node_attr(c->g, c->node, "axis"))
        attrs[n++] = TN_A_INT("axis", tn_attr_int(c->g, c->node, "axis"));
    if (tn_node_attr(c->g, c->node, "sorted"))
        attrs[n++] = TN_A_INT("sorted", tn_attr_int(c->g, c->node, "sorted"));
    return tn_c_emit_many(c, op, inputs, in, n, attrs, tn_node_output_count(c->g, c->node), c->out);
}

const tn_contract_row tn_contract_move[] = {
    {"reshape", reshape, NULL},
    {"transpose", transpose, NULL},
    {"broadcast", broadcast, NULL},
    {"fit", fit, NULL},
    {"slice", slice, NULL},
    {"pad", pad, NULL},
    {"concat", concat, NULL},
    {"shape_of", shape_of, NULL},
    {"iota", iota, NULL},
    {"dynamic_iota", dynamic_iota, NULL},
    {"dynamic_reshape", dynamic_reshape, NULL},
    {"dynamic_broadcast", dynamic_broadcast, NULL},
    {"dynamic_strided_slice", dynamic_strided_slice, NULL},
    {"dynamic_pad", dynamic_pad, NULL},
    {"dynamic_slice", dynamic_slice, NULL},
    {"dynamic_update_slice", dynamic_update_slice, NULL},
    {"gather", indexed, "Gather"},
    {"gather_elements", indexed, "GatherElements"},
    {"gather_nd", indexed, "GatherND"},
    {"scatter_elements", indexed, "ScatterElements"},
    {"scatter_nd", indexed, "ScatterND"},
    {"nonzero", nonzero, NULL},
    {"compress", axis_perhaps, "Compress"},
    {"unique", axis_perhaps, "Unique"},
    {NULL, NULL, NULL},
};
