/* Movement whose sizes or positions are data: dynamic_slice, dynamic_update_slice, dynamic_reshape, dynamic_broadcast,
   dynamic_strided_slice, dynamic_pad, dynamic_iota. Ranks are known; sizes that only data decides are fresh symbols,
   those that the contents of the operands tell are expressions. */
#include <inttypes.h>

#include "base/number.h"
#include "ops/contents.h"
#include "ops/move.h"
#include "ops/ops.h"
#include "ops/plain.h"
#include "ops/support.h"

/* --- infer -------------------------------------------------------------------------------------------------------- */

/* The entry of a vector of sizes if it is known and cannot be negative, else null. */
static tn_dim known_size(tn_infer *c, const tn_contents *known, int i) {
    int64_t low, high;
    if (i >= known->n || known->dim[i].id == 0)
        return (tn_dim){0};
    tn_dim_bounds(c->graph, known->dim[i], &low, &high);
    return low >= 0 ? known->dim[i] : (tn_dim){0};
}

static bool is_constant(tn_infer *c, const tn_contents *known, int i, int64_t *value) {
    return i < known->n && known->dim[i].id != 0 && tn_dim_is_const(c->graph, known->dim[i], value);
}

static tn_status infer_starts(tn_infer *c, uint32_t input, int rank) {
    int length;
    TN_TRY(tn_infer_vector(c, input, &length));
    if (length != rank)
        return tn_infer_fail(c, "%d starts for a tensor of rank %d", length, rank);
    return TN_OK;
}

static tn_status infer_inside(tn_infer *c, const char *what, tn_dim size, tn_dim room, int axis) {
    int64_t part, all;
    if (tn_dim_is_const(c->graph, size, &part) && tn_dim_is_const(c->graph, room, &all) && part > all)
        return tn_infer_fail(c, "%s has %" PRId64 " elements on axis %d, x has %" PRId64, what, part, axis, all);
    return TN_OK;
}

static tn_status infer_dynamic_slice(tn_infer *c) {
    tn_operand_type x;
    const tn_dim *size;
    TN_TRY(tn_infer_operand(c, 0, &x));
    TN_TRY(infer_starts(c, 1, x.rank));
    TN_TRY(tn_infer_attr_dims(c, "size", x.rank, true, &size, NULL));
    for (int i = 0; i < x.rank; i++)
        TN_TRY(infer_inside(c, "the slice", size[i], x.dims[i], i));
    return tn_infer_tensor(c, 0, x.dtype, x.rank, size);
}

static tn_status infer_dynamic_update_slice(tn_infer *c) {
    tn_operand_type x, update;
    TN_TRY(tn_infer_operand(c, 0, &x));
    TN_TRY(tn_infer_operand_rank(c, 1, x.rank, &update));
    TN_TRY(tn_infer_same_dtype(c, &x, &update));
    TN_TRY(infer_starts(c, 2, x.rank));
    for (int i = 0; i < x.rank; i++)
        TN_TRY(infer_inside(c, "the update", update.dims[i], x.dims[i], i));
    return tn_infer_tensor(c, 0, x.dtype, x.rank, x.dims);
}

static tn_status infer_dynamic_reshape(tn_infer *c) {
    tn_operand_type x;
    tn_contents known;
    tn_dim dims[TN_MAX_RANK], rest = {0};
    int rank, holes = 0;
    int64_t value, others = 1;
    TN_TRY(tn_infer_operand(c, 0, &x));
    TN_TRY(tn_infer_vector(c, 1, &rank));
    tn_contents_input(c, 1, &known);
    for (int i = 0; i < rank; i++)
        if (!is_constant(c, &known, i, &value))
            others = 0;
        else if (value == -1)
            holes++;
        else if (value < 0)
            return tn_infer_fail(c, "size %d of the new shape is %" PRId64, i, value);
        else if (!tn_mul_i64(others, value, &others))
            return tn_infer_fail(c, "the number of elements of the new shape overflows");
    if (holes > 1)
        return tn_infer_fail(c, "%d sizes of the new shape are -1, one may be", holes);
    if (holes == 1 && others > 0) {
        tn_dim count = tn_infer_count(c, "x", x.rank, x.dims);
        if (count.id == 0)
            return tn_error_status();
        rest = tn_dim_floordiv(c->graph, count, tn_dim_const(c->graph, others));
        if (rest.id == 0)
            return tn_error_status();
    }
    for (int i = 0; i < rank; i++) {
        dims[i] = known_size(c, &known, i);
        if (dims[i].id == 0 && rest.id != 0 && is_constant(c, &known, i, &value))
            dims[i] = rest;
        if (dims[i].id == 0)
            dims[i] = tn_infer_fresh(c, 0, i, 0, INT64_MAX);
        if (dims[i].id == 0)
            return tn_error_status();
    }
    TN_TRY(tn_infer_tensor(c, 0, x.dtype, rank, dims));
    if (rank > 1)
        return TN_OK;
    tn_contents_input(c, 0, &known);
    return tn_contents_set(c, &known);
}

static tn_status infer_dynamic_broadcast(tn_infer *c) {
    tn_operand_type x;
    tn_contents known;
    tn_dim dims[TN_MAX_RANK], one = tn_dim_const(c->graph, 1);
    int length, rank;
    int64_t value;
    TN_TRY(tn_infer_operand(c, 0, &x));
    TN_TRY(tn_infer_vector(c, 1, &length));
    tn_contents_input(c, 1, &known);
    rank = x.rank > length ? x.rank : length;
    for (int i = 0; i < rank; i++) {
        int from = i - (rank - x.rank), to = i - (rank - length);
        tn_dim have = from >= 0 ? x.dims[from] : one;
        tn_dim want = to < 0 ? one : known_size(c, &known, to);
        if (to >= 0 && is_constant(c, &known, to, &value) && value < 0)
            return tn_infer_fail(c, "size %d of the new shape is %" PRId64, to, value);
        if (want.id != 0 && tn_dim_never_equal(c->graph, have, want) && tn_dim_never_equal(c->graph, have, one) &&
            tn_dim_never_equal(c->graph, want, one)) {
            char a[64], b[64];
            return tn_infer_fail(c, "axis %d of x is %s, which does not broadcast with %s", from,
                                 tn_dim_describe(c->graph, have, a, sizeof a),
                                 tn_dim_describe(c->graph, want, b, sizeof b));
        }
        /* a size of x that cannot be 1 stays, whatever is asked for */
        if (want.id != 0)
            dims[i] = tn_dim_broadcast(c->graph, have, want);
        else
            dims[i] = tn_dim_never_equal(c->graph, have, one) ? have : tn_infer_fresh(c, 0, i, 0, INT64_MAX);
        if (dims[i].id == 0)
            return tn_error_status();
    }
    return tn_infer_tensor(c, 0, x.dtype, rank, dims);
}

static tn_status infer_dynamic_strided_slice(tn_infer *c) {
    tn_operand_type x;
    const int64_t *axes;
    bool marked[TN_MAX_RANK] = {false};
    int count, length;
    uint32_t inputs = tn_node_input_count(c->graph, c->node);
    TN_TRY(tn_infer_operand(c, 0, &x));
    TN_TRY(tn_infer_attr_axes(c, "axes", x.rank, marked, &axes, &count));
    for (uint32_t i = 1; i < inputs; i++) {
        TN_TRY(tn_infer_vector(c, i, &length));
        if (length != count)
            return tn_infer_fail(c, "input %u has %d elements for %d axes", (unsigned)i, length, count);
    }
    tn_contents steps = {.n = -1};
    if (inputs > 3)
        tn_contents_input(c, 3, &steps);
    for (int i = 0; i < count; i++) {
        int64_t step, low, high;
        if (is_constant(c, &steps, i, &step) && step == 0)
            return tn_infer_fail(c, "step %d is 0", i);
        tn_dim_bounds(c->graph, x.dims[axes[i]], &low, &high);
        x.dims[axes[i]] = tn_infer_fresh(c, 0, (int)axes[i], 0, high);
        if (x.dims[axes[i]].id == 0)
            return tn_error_status();
    }
    return tn_infer_tensor(c, 0, x.dtype, x.rank, x.dims);
}

static tn_status infer_dynamic_pad(tn_infer *c) {
    tn_operand_type x, value;
    tn_contents lo, hi;
    int n;
    TN_TRY(tn_infer_operand(c, 0, &x));
    for (uint32_t i = 1; i <= 2; i++) {
        TN_TRY(tn_infer_vector(c, i, &n));
        if (n != x.rank)
            return tn_infer_fail(c, "input %u has %d elements for a tensor of rank %d", (unsigned)i, n, x.rank);
    }
    if (tn_node_input_count(c->graph, c->node) > 3 && tn_node_input(c->graph, c->node, 3).id != 0) {
        TN_TRY(tn_infer_operand_rank(c, 3, 0, &value));
        TN_TRY(tn_infer_same_dtype(c, &x, &value));
        if (!tn_attr_string_is(c->graph, c->node, "mode", "constant"))
            return tn_infer_fail(c, "a value is given, but the mode is not 'constant'");
    }
    tn_contents_input(c, 1, &lo);
    tn_contents_input(c, 2, &hi);
    for (int i = 0; i < x.rank; i++) {
        tn_dim before = known_size(c, &lo, i), after = known_size(c, &hi, i);
        if (before.id != 0 && after.id != 0)
            x.dims[i] = tn_dim_add(c->graph, x.dims[i], tn_dim_add(c->graph, before, after));
        else
            x.dims[i] = tn_infer_fresh(c, 0, i, 0, INT64_MAX);
        if (x.dims[i].id == 0)
            return tn_error_status();
    }
    return tn_infer_tensor(c, 0, x.dtype, x.rank, x.dims);
}

static tn_status infer_dynamic_iota(tn_infer *c) {
    tn_contents known;
    tn_dim dims[TN_MAX_RANK];
    int64_t dtype = tn_attr_int(c->graph, c->node, "dtype"), value;
    int rank, axis;
    TN_TRY(tn_infer_vector(c, 0, &rank));
    TN_TRY(tn_infer_attr_axis(c, rank, &axis));
    if (dtype <= 0 || dtype >= TN_DTYPE_COUNT ||
        (!tn_dtype_is_float((tn_dtype)dtype) && !tn_dtype_is_int((tn_dtype)dtype)))
        return tn_infer_fail(c, "no numbers of dtype %s are counted: integers and floats are",
                             dtype > 0 && dtype < TN_DTYPE_COUNT ? tn_dtype_name((tn_dtype)dtype) : "none");
    tn_contents_input(c, 0, &known);
    for (int i = 0; i < rank; i++) {
        if (is_constant(c, &known, i, &value) && value < 0)
            return tn_infer_fail(c, "size %d is %" PRId64, i, value);
        dims[i] = known_size(c, &known, i);
        if (dims[i].id == 0)
            dims[i] = tn_infer_fresh(c, 0, i, 0, INT64_MAX);
        if (dims[i].id == 0)
            return tn_error_status();
    }
    return tn_infer_tensor(c, 0, (tn_dtype)dtype, rank, dims);
}

/* --- eval --------------------------------------------------------------------------------------------------------- */

/* A view of t: dims, strides and the offset of the first element in elements; nothing is looked at when it is empty. */
static tn_tensor *part_of(tn_eval *e, tn_tensor *t, const int64_t *dims, const int64_t *strides, int64_t offset) {
    bool empty = false;
    for (int i = 0; i < t->rank; i++)
        empty = empty || dims[i] == 0;
    return tn_tensor_view(e->heap, t, (tn_dtype)t->dtype, t->rank, dims, empty ? NULL : strides, empty ? 0 : offset);
}

static tn_status check_starts(tn_eval *e, const tn_tensor *x, const int64_t *start, const int64_t *size,
                              int64_t *offset) {
    *offset = 0;
    for (int i = 0; i < x->rank; i++) {
        if (start[i] < 0 || size[i] > x->dims[i] || start[i] > x->dims[i] - size[i])
            return tn_eval_fail(e, TN_ERR_INPUT,
                                "%" PRId64 " elements from %" PRId64 " on leave axis %d of %" PRId64 " elements",
                                size[i], start[i], i, x->dims[i]);
    }
    for (int i = 0; i < x->rank && x->count > 0; i++)
        *offset += start[i] * x->strides[i];
    return TN_OK;
}

static tn_status eval_dynamic_slice(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0);
    int64_t start[TN_MAX_RANK], size[TN_MAX_RANK], offset;
    tn_plain_output o;
    TN_TRY(tn_eval_vector(e, 1, x->rank, start));
    TN_TRY(tn_eval_sizes(e, "size", x->rank, size));
    TN_TRY(check_starts(e, x, start, size, &offset));
    tn_status status = tn_plain_begin(e, 0, (tn_dtype)x->dtype, x->rank, size, &o);
    if (status == TN_OK) {
        tn_tensor *plain = tn_plain_input(e->heap, x, false);
        tn_tensor *part = plain != NULL ? part_of(e, plain, size, plain->strides, offset) : NULL;
        status = part != NULL ? tn_tensor_assign(o.to, part) : tn_error_status();
        tn_tensor_destroy(part);
        tn_tensor_destroy(plain);
    }
    return tn_plain_end(&o, status);
}

static tn_status eval_dynamic_update_slice(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0), *update = tn_eval_in(e, 1);
    int64_t start[TN_MAX_RANK], unused;
    tn_plain_output o;
    TN_TRY(tn_eval_vector(e, 2, x->rank, start));
    TN_TRY(check_starts(e, x, start, update->dims, &unused));
    tn_status status = tn_plain_begin(e, 0, (tn_dtype)x->dtype, x->rank, x->dims, &o);
    tn_tensor *from = NULL, *put = NULL, *part = NULL;
    if (status == TN_OK) {
        from = tn_plain_input(e->heap, x, false);
        status = from != NULL ? tn_tensor_assign(o.to, from) : tn_error_status();
    }
    if (status == TN_OK && update->count > 0) {
        int64_t offset = 0;
        for (int i = 0; i < x->rank; i++)
            offset += start[i] * o.to->strides[i];
        put = tn_plain_input(e->heap, update, false);
        part = put != NULL ? part_of(e, o.to, update->dims, o.to->strides, offset) : NULL;
        status = part != NULL ? tn_tensor_assign(part, put) : tn_error_status();
    }
    tn_tensor_destroy(part);
    tn_tensor_destroy(put);
    tn_tensor_destroy(from);
    return tn_plain_end(&o, status);
}

/* Reads a shape; one entry may be -1 when `hole` is not NULL. */
static tn_status read_shape(tn_eval *e, uint32_t input, int64_t *dims, int *rank, int *hole) {
    const tn_tensor *shape = tn_eval_in(e, input);
    if (shape->count > TN_MAX_RANK)
        return tn_eval_fail(e, TN_ERR_LIMIT, "a shape of %" PRId64 " sizes, above the rank limit of %d", shape->count,
                            TN_MAX_RANK);
    *rank = (int)shape->count;
    TN_TRY(tn_eval_vector(e, input, *rank, dims));
    if (hole != NULL)
        *hole = -1;
    for (int i = 0; i < *rank; i++) {
        if (dims[i] >= 0)
            continue;
        if (dims[i] != -1 || hole == NULL || *hole >= 0)
            return tn_eval_fail(e, TN_ERR_INPUT, "size %d of the shape is %" PRId64, i, dims[i]);
        *hole = i;
    }
    return TN_OK;
}

static tn_status eval_dynamic_reshape(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0);
    int64_t dims[TN_MAX_RANK], others = 1;
    int rank, hole;
    TN_TRY(read_shape(e, 1, dims, &rank, &hole));
    if (hole >= 0) {
        dims[hole] = 1;
        if (tn_dims_count(rank, dims, &others) != TN_OK || others == 0 || x->count % others != 0)
            return tn_eval_fail(e, TN_ERR_INPUT,
                                "x has %" PRId64 " elements: no size in place of -1 makes the new shape of as many",
                                x->count);
        dims[hole] = x->count / others;
    }
    return tn_eval_reshaped(e, x, rank, dims);
}

/* Output 0 as a view of x, or of its unpacked elements, packed again. */
static tn_status answer_view(tn_eval *e, tn_tensor *x, int rank, const int64_t *dims, const int64_t *strides,
                             int64_t offset) {
    tn_tensor *plain = tn_plain_input(e->heap, x, false);
    tn_tensor *view =
        plain != NULL ? tn_tensor_view(e->heap, plain, (tn_dtype)plain->dtype, rank, dims, strides, offset) : NULL;
    tn_tensor_destroy(plain);
    if (view == NULL)
        return tn_error_status();
    if (!tn_dtype_is_subbyte((tn_dtype)x->dtype))
        return tn_eval_set(e, 0, tn_tensor_object(view));
    tn_tensor *out = tn_eval_result(e, 0, (tn_dtype)x->dtype, rank, dims);
    if (out != NULL)
        tn_pack_bits(out, view);
    tn_tensor_destroy(view);
    return out != NULL ? TN_OK : tn_error_status();
}

static tn_status eval_dynamic_broadcast(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0);
    int64_t shape[TN_MAX_RANK], dims[TN_MAX_RANK], strides[TN_MAX_RANK];
    int length;
    TN_TRY(read_shape(e, 1, shape, &length, NULL));
    int rank = x->rank > length ? x->rank : length;
    for (int i = 0; i < rank; i++) {
        int from = i - (rank - x->rank), to = i - (rank - length);
        int64_t have = from >= 0 ? x->dims[from] : 1, want = to >= 0 ? shape[to] : 1;
        if (have != want && have != 1 && want != 1)
            return tn_eval_fail(e, TN_ERR_INPUT,
                                "axis %d of x has %" PRId64 " elements, which does not broadcast with %" PRId64, from,
                                have, want);
        dims[i] = have == 1 ? want : have;
        strides[i] = have == 1 ? 0 : x->strides[from];
        if (tn_dtype_is_subbyte((tn_dtype)x->dtype) && have != 1) { /* of the unpacked elements: contiguous */
            strides[i] = 1;
            for (int k = from + 1; k < x->rank; k++)
                strides[i] *= x->count > 0 ? x->dims[k] : 1;
        }
    }
    return answer_view(e, x, rank, dims, strides, 0);
}

static tn_status eval_dynamic_strided_slice(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0);
    const int64_t *axes;
    int count = (int)tn_attr_ints(e->graph, e->node, "axes", &axes);
    int64_t start[TN_MAX_RANK], end[TN_MAX_RANK], step[TN_MAX_RANK], dims[TN_MAX_RANK], strides[TN_MAX_RANK];
    int64_t offset = 0;
    TN_TRY(tn_eval_vector(e, 1, count, start));
    TN_TRY(tn_eval_vector(e, 2, count, end));
    for (int i = 0; i < count; i++)
        step[i] = 1;
    if (e->inputs > 3 && e->in[3] != NULL)
        TN_TRY(tn_eval_vector(e, 3, count, step));
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    memcpy(strides, x->strides, x->rank * sizeof *strides);
    for (int i = 0; i < count; i++) {
        int64_t n = x->dims[axes[i]], low = step[i] > 0 ? 0 : -1, high = step[i] > 0 ? n : n - 1;
        if (step[i] == 0)
            return tn_eval_fail(e, TN_ERR_INPUT, "step %d is 0", i);
        int64_t *ends[2] = {&start[i], &end[i]};
        for (int k = 0; k < 2; k++) {
            int64_t at = *ends[k] < 0 ? *ends[k] + n : *ends[k];
            *ends[k] = at < low ? low : at > high ? high : at;
        }
        uint64_t gap = 0, by = step[i] > 0 ? (uint64_t)step[i] : 0 - (uint64_t)step[i];
        if (step[i] > 0 && end[i] > start[i])
            gap = (uint64_t)(end[i] - start[i]);
        if (step[i] < 0 && start[i] > end[i])
            gap = (uint64_t)(start[i] - end[i]);
        dims[axes[i]] = gap == 0 ? 0 : (int64_t)((gap - 1) / by) + 1;
        if (dims[axes[i]] > 1) /* then the step is inside x, and the product too */
            strides[axes[i]] = x->count > 0 ? x->strides[axes[i]] * step[i] : 0;
        if (dims[axes[i]] > 0 && x->count > 0)
            offset += start[i] * x->strides[axes[i]];
    }
    bool empty = false;
    for (int i = 0; i < x->rank; i++)
        empty = empty || dims[i] == 0;
    return answer_view(e, x, x->rank, dims, empty ? NULL : strides, empty ? 0 : offset);
}

static tn_status eval_dynamic_pad(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0), *value = e->inputs > 3 && e->in[3] != NULL ? tn_eval_in(e, 3) : NULL;
    int64_t lo[TN_MAX_RANK], hi[TN_MAX_RANK];
    TN_TRY(tn_eval_vector(e, 1, x->rank, lo));
    TN_TRY(tn_eval_vector(e, 2, x->rank, hi));
    for (int i = 0; i < x->rank; i++)
        if (lo[i] < 0 || hi[i] < 0)
            return tn_eval_fail(e, TN_ERR_INPUT, "padding of axis %d is negative (%" PRId64 ", %" PRId64 ")", i, lo[i],
                                hi[i]);
    return tn_eval_pad_by(e, x, value, lo, hi);
}

static tn_status eval_dynamic_iota(tn_eval *e) {
    tn_dtype dtype = (tn_dtype)tn_attr_int(e->graph, e->node, "dtype");
    int axis = (int)tn_attr_int(e->graph, e->node, "axis"), rank;
    int64_t dims[TN_MAX_RANK];
    TN_TRY(read_shape(e, 0, dims, &rank, NULL));
    tn_tensor *out = tn_eval_result(e, 0, dtype, rank, dims);
    if (out == NULL)
        return tn_error_status();
    if (out->count == 0)
        return TN_OK;
    tn_lanes l = tn_lanes_of(rank, dims, axis);
    for (int64_t i = 0; i < out->count; i++)
        tn_store_i64(dtype, out->data, i, i / l.inner % l.length);
    return TN_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec slice_attrs[] = {{.name = "size", .kind = TN_ATTR_DIMS, .required = true}, {0}};
static const tn_attr_spec axes_attrs[] = {{.name = "axes", .kind = TN_ATTR_INTS, .required = true}, {0}};
static const tn_attr_spec pad_attrs[] = {
    {.name = "mode", .kind = TN_ATTR_STRING, .s = "constant", .allowed = "constant|reflect|edge|wrap"}, {0}};
static const tn_attr_spec iota_attrs[] = {{.name = "axis", .kind = TN_ATTR_INT, .required = true},
                                          {.name = "dtype", .kind = TN_ATTR_DTYPE, .required = true},
                                          {0}};

#define ROW(row, least, most, more, list, operands, text)                                                    \
    {                                                                                                        \
        .name = #row, .min_inputs = (least), .max_inputs = (most), .min_outputs = 1, .max_outputs = 1,       \
        .traits = TN_EXACT | (more), .attrs = (list), .inputs = operands, .doc = text, .infer = infer_##row, \
        .eval = eval_##row                                                                                   \
    }

static const tn_op rows[] = {
    ROW(dynamic_slice, 2, 2, 0, slice_attrs, "x, starts",
        "The part of x of this size that begins at the starts (one for each axis), which must lie inside."),
    ROW(dynamic_update_slice, 3, 3, 0, NULL, "x, update, starts",
        "x with the update in place of the part that begins at the starts, which must lie inside."),
    ROW(dynamic_reshape, 2, 2, TN_VIEW | TN_HOST, NULL, "x, shape",
        "The elements of x, in order, as a shape that is data; one size may be -1: what is left."),
    ROW(dynamic_broadcast, 2, 2, TN_VIEW | TN_HOST, NULL, "x, shape",
        "x broadcast with a shape that is data, by numpy's rule in both directions."),
    ROW(dynamic_strided_slice, 3, 4, TN_VIEW | TN_HOST, axes_attrs, "x, starts, ends, steps",
        "numpy's x[start:end:step] on the axes: negative starts and ends count from the end, all are cut to the axis; "
        "steps absent are 1."),
    ROW(dynamic_pad, 3, 4, TN_OPTIONAL_INPUTS | TN_HOST, pad_attrs, "x, lo, hi, value",
        "pad with amounts, not negative, that are data (one for each axis)."),
    ROW(dynamic_iota, 1, 1, TN_HOST, iota_attrs, "shape",
        "0, 1, 2, ... along an axis, repeated along the others, of a shape that is data."),
};
const tn_op_family tn_family_dynamic = {rows, sizeof rows / sizeof *rows};
