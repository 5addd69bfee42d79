/* Rows about positions and stored data: constant, gather, shape_of, iota. */
#include <inttypes.h>

#include "base/number.h"
#include "ops/contents.h"
#include "ops/ops.h"
#include "ops/support.h"

/* --- constant ----------------------------------------------------------------------------------------------------- */

static tn_status infer_constant(tn_infer *c) {
    const tn_tensor *value = tn_attr_tensor(c->graph, c->node, "value");
    tn_dim dims[TN_MAX_RANK];
    if (value == NULL)
        return tn_infer_fail(c, "attribute 'value' holds no tensor");
    for (int i = 0; i < value->rank; i++)
        dims[i] = tn_dim_const(c->graph, value->dims[i]);
    TN_TRY(tn_infer_tensor(c, 0, (tn_dtype)value->dtype, value->rank, dims));
    if (value->rank > 1 || value->count > TN_MAX_CONTENTS || (value->dtype != TN_I64 && value->dtype != TN_I32))
        return TN_OK;
    tn_contents known = {.n = (int32_t)value->count};
    for (int32_t i = 0; i < known.n; i++)
        known.dim[i] = tn_dim_const(c->graph, tn_tensor_get_i64(value, i));
    return tn_contents_set(c, &known);
}

static tn_status eval_constant(tn_eval *e) {
    return tn_eval_set(e, 0, tn_object_retain(tn_tensor_object(tn_attr_tensor(e->graph, e->node, "value"))));
}

/* --- gather ------------------------------------------------------------------------------------------------------- */

static tn_status infer_gather(tn_infer *c) {
    tn_operand_type x, indices;
    int64_t axis = tn_attr_int(c->graph, c->node, "axis");
    tn_dim dims[2 * TN_MAX_RANK];
    int rank = 0;
    TN_TRY(tn_infer_operand(c, 0, &x));
    TN_TRY(tn_infer_operand(c, 1, &indices));
    if (indices.dtype != TN_I64 && indices.dtype != TN_I32)
        return tn_infer_fail(c, "indices are %s, they must be i64 or i32", tn_dtype_name(indices.dtype));
    TN_TRY(tn_infer_axis(c, "axis", axis, x.rank));
    if (x.rank - 1 + indices.rank > TN_MAX_RANK)
        return tn_infer_fail(c, "the output has rank %d, above the limit of %d", x.rank - 1 + indices.rank,
                             TN_MAX_RANK);
    for (int i = 0; i < axis; i++)
        dims[rank++] = x.dims[i];
    for (int i = 0; i < indices.rank; i++)
        dims[rank++] = indices.dims[i];
    for (int i = (int)axis + 1; i < x.rank; i++)
        dims[rank++] = x.dims[i];
    TN_TRY(tn_infer_tensor(c, 0, x.dtype, rank, dims));
    if (x.rank != 1 || indices.rank > 1)
        return TN_OK;
    tn_contents from, at, taken;
    tn_contents_input(c, 0, &from);
    tn_contents_input(c, 1, &at);
    if (from.n < 0 || at.n < 0)
        return TN_OK;
    taken.n = at.n;
    for (int32_t i = 0; i < at.n; i++) {
        int64_t k;
        if (!tn_dim_is_const(c->graph, at.dim[i], &k) || k < -from.n || k >= from.n)
            return TN_OK; /* an index out of range is an error of the run */
        taken.dim[i] = from.dim[k < 0 ? k + from.n : k];
    }
    return tn_contents_set(c, &taken);
}

/* The indices, in order, made non-negative; NULL with the error set. Free it. */
static int64_t *read_indices(tn_eval *e, const tn_tensor *indices, int64_t limit) {
    int64_t *at = tn_alloc_array(e->heap, (size_t)indices->count, sizeof *at);
    tn_space space;
    if (at == NULL)
        return NULL;
    tn_space_init(&space, indices->rank, indices->dims, indices->strides);
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t k = tn_load_i64((tn_dtype)indices->dtype, indices->data, tn_space_offset(&space, i));
        if (k < -limit || k >= limit) {
            tn_eval_fail(e, TN_ERR_INPUT,
                         "index %" PRId64 " at position %" PRId64 " is out of range for %" PRId64 " elements", k, i,
                         limit);
            tn_free(e->heap, at);
            return NULL;
        }
        at[i] = k < 0 ? k + limit : k;
    }
    return at;
}

/* out[o, i, r] = x[o, at[i], r], not packed. */
typedef struct taking {
    tn_tensor *out;
    const tn_tensor *x;
    const int64_t *at;
    int64_t count, stride;
    tn_space outer, inner;
    tn_status status; /* of strings, which are copied by one thread */
} taking;

/* Row o, or (o, i) where rows are not single elements. */
static tn_status take_row(const taking *t, int64_t row) {
    if (t->inner.count == 1)
        return tn_copy_indexed(t->out, row * t->count, t->x, tn_space_offset(&t->outer, row), t->at, t->stride,
                               t->count);
    return tn_copy_indexed(t->out, row * t->inner.count, t->x,
                           tn_space_offset(&t->outer, row / t->count) + t->at[row % t->count] * t->stride, NULL,
                           t->inner.rank == 1 ? t->inner.strides[0] : 1, t->inner.count);
}

static void take_rows(void *ctx, int64_t begin, int64_t end) {
    taking *t = ctx;
    int64_t width = t->inner.count == 1 ? t->count : t->inner.count;
    for (int64_t row = begin / width; row * width < end && t->status == TN_OK; row++) {
        tn_status status = take_row(t, row);
        if (status != TN_OK)
            t->status = status;
    }
}

/* out has elements. */
static tn_status take(tn_eval *e, tn_tensor *out, const tn_tensor *x, int axis, const int64_t *at, int64_t count) {
    taking t = {.out = out, .x = x, .at = at, .count = count, .stride = x->strides[axis]};
    tn_space_init(&t.outer, axis, x->dims, x->strides);
    tn_space_init(&t.inner, x->rank - axis - 1, x->dims + axis + 1, x->strides + axis + 1);
    tn_range_split(out->dtype == TN_STRING ? NULL : e->pool, out->count, t.inner.count == 1 ? count : t.inner.count,
                   take_rows, &t);
    return t.status;
}

static tn_status eval_gather(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0), *indices = tn_eval_in(e, 1);
    int axis = (int)tn_attr_int(e->graph, e->node, "axis"), rank = 0;
    int64_t dims[2 * TN_MAX_RANK];
    for (int i = 0; i < axis; i++)
        dims[rank++] = x->dims[i];
    for (int i = 0; i < indices->rank; i++)
        dims[rank++] = indices->dims[i];
    for (int i = axis + 1; i < x->rank; i++)
        dims[rank++] = x->dims[i];
    tn_tensor *out = tn_eval_result(e, 0, (tn_dtype)x->dtype, rank, dims);
    if (out == NULL)
        return tn_error_status();
    if (out->count == 0)
        return TN_OK;
    int64_t *at = read_indices(e, indices, x->dims[axis]);
    if (at == NULL)
        return tn_error_status();
    /* Rows that are taken must be laid out with one stride. */
    tn_space inner;
    tn_space_init(&inner, x->rank - axis - 1, x->dims + axis + 1, x->strides + axis + 1);
    bool packed = tn_dtype_is_subbyte((tn_dtype)x->dtype);
    tn_tensor *from = packed           ? tn_unpack_bits(e->heap, x)
                      : inner.rank > 1 ? tn_eval_contiguous(e, x)
                                       : tn_tensor_retain(x);
    tn_tensor *to = packed ? tn_tensor_new(e->heap, TN_U8, rank, dims) : tn_tensor_retain(out);
    tn_status status = from != NULL && to != NULL ? take(e, to, from, axis, at, indices->count) : tn_error_status();
    if (status == TN_OK && packed)
        tn_pack_bits(out, to);
    tn_tensor_destroy(from);
    tn_tensor_destroy(to);
    tn_free(e->heap, at);
    return status;
}

/* --- shape_of ----------------------------------------------------------------------------------------------------- */

static tn_status infer_shape_of(tn_infer *c) {
    tn_operand_type x;
    tn_contents known;
    TN_TRY(tn_infer_operand(c, 0, &x));
    tn_dim rank = tn_dim_const(c->graph, x.rank);
    TN_TRY(tn_infer_tensor(c, 0, TN_I64, 1, &rank));
    known.n = x.rank;
    for (int i = 0; i < x.rank; i++)
        known.dim[i] = x.dims[i];
    return tn_contents_set(c, &known);
}

static tn_status eval_shape_of(tn_eval *e) {
    const tn_tensor *x = tn_eval_in(e, 0);
    int64_t rank = x->rank;
    tn_tensor *out = tn_eval_result(e, 0, TN_I64, 1, &rank);
    if (out == NULL)
        return tn_error_status();
    for (int i = 0; i < x->rank; i++)
        tn_store_i64(TN_I64, out->data, i, x->dims[i]);
    return TN_OK;
}

/* --- iota --------------------------------------------------------------------------------------------------------- */

static tn_status infer_iota(tn_infer *c) {
    const tn_dim *shape;
    int rank;
    int64_t dtype = tn_attr_int(c->graph, c->node, "dtype"), axis = tn_attr_int(c->graph, c->node, "axis"), count;
    TN_TRY(tn_infer_attr_dims(c, "shape", -1, true, &shape, &rank));
    TN_TRY(tn_infer_axis(c, "axis", axis, rank));
    if (dtype <= 0 || dtype >= TN_DTYPE_COUNT ||
        (!tn_dtype_is_float((tn_dtype)dtype) && !tn_dtype_is_int((tn_dtype)dtype)))
        return tn_infer_fail(c, "no numbers of dtype %s are counted: integers and floats are",
                             dtype > 0 && dtype < TN_DTYPE_COUNT ? tn_dtype_name((tn_dtype)dtype) : "none");
    TN_TRY(tn_infer_tensor(c, 0, (tn_dtype)dtype, rank, shape));
    if (rank != 1 || (dtype != TN_I64 && dtype != TN_I32) || !tn_dim_is_const(c->graph, shape[0], &count) ||
        count > TN_MAX_CONTENTS)
        return TN_OK;
    tn_contents known = {.n = (int32_t)count};
    for (int32_t i = 0; i < known.n; i++)
        known.dim[i] = tn_dim_const(c->graph, i);
    return tn_contents_set(c, &known);
}

static tn_status eval_iota(tn_eval *e) {
    const tn_dim *shape;
    int rank = (int)tn_attr_dims(e->graph, e->node, "shape", &shape),
        axis = (int)tn_attr_int(e->graph, e->node, "axis");
    tn_dtype dtype = (tn_dtype)tn_attr_int(e->graph, e->node, "dtype");
    int64_t dims[TN_MAX_RANK], inner = 1;
    TN_TRY(tn_eval_sizes(e, "shape", rank, dims));
    tn_tensor *out = tn_eval_result(e, 0, dtype, rank, dims);
    if (out == NULL)
        return tn_error_status();
    for (int i = axis + 1; i < rank && out->count > 0; i++)
        inner *= dims[i];
    for (int64_t at = 0, k = 0; at < out->count; k = k + 1 < dims[axis] ? k + 1 : 0)
        for (int64_t end = at + inner; at < end; at++)
            tn_store_i64(dtype, out->data, at, k);
    return TN_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec constant_attrs[] = {{.name = "value", .kind = TN_ATTR_TENSOR, .required = true}, {0}};
static const tn_attr_spec gather_attrs[] = {{.name = "axis", .kind = TN_ATTR_INT, .required = true}, {0}};
static const tn_attr_spec iota_attrs[] = {{.name = "shape", .kind = TN_ATTR_DIMS, .required = true},
                                          {.name = "axis", .kind = TN_ATTR_INT, .required = true},
                                          {.name = "dtype", .kind = TN_ATTR_DTYPE, .required = true},
                                          {0}};

static const tn_op rows[] = {
    {.name = "constant",
     .min_inputs = 0,
     .max_inputs = 0,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_CONSTANT | TN_EXACT,
     .attrs = constant_attrs,
     .inputs = "",
     .doc = "A tensor that the graph holds.",
     .infer = infer_constant,
     .eval = eval_constant,
     .lowering = TN_LOWER_NOTHING},
    {.name = "gather",
     .min_inputs = 2,
     .max_inputs = 2,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_EXACT,
     .attrs = gather_attrs,
     .inputs = "x, indices",
     .doc = "The slices of x along an axis that the indices name; negative ones count from the end.",
     .infer = infer_gather,
     .eval = eval_gather,
     .lowering = TN_LOWER_GATHER},
    {.name = "shape_of",
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_EXACT | TN_SHAPE_ONLY,
     .inputs = "x",
     .doc = "The dimensions of x as i64.",
     .infer = infer_shape_of,
     .eval = eval_shape_of,
     .lowering = TN_LOWER_HOST,
     .no_gradient = "a shape does not depend on the elements"},
    {.name = "iota",
     .min_inputs = 0,
     .max_inputs = 0,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_EXACT,
     .attrs = iota_attrs,
     .inputs = "",
     .doc = "0, 1, 2, ... along an axis, repeated along the others.",
     .infer = infer_iota,
     .eval = eval_iota,
     .lowering = TN_LOWER_HOST,
     .no_gradient = "a constant"},
};
const tn_op_family tn_family_index = {rows, sizeof rows / sizeof *rows};
