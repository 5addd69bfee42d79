/* Rows whose result is as long as the data say: nonzero, compress, unique. */
#include <inttypes.h>

#include "ops/ops.h"
#include "ops/plain.h"
#include "ops/support.h"

/* The size as a fresh symbol, at most `most`. */
static tn_dim fresh_size(tn_infer *c, uint32_t output, int axis, tn_dim most) {
    int64_t low, high;
    if (most.id == 0)
        return most;
    tn_dim_bounds(c->graph, most, &low, &high);
    return tn_infer_fresh(c, output, axis, 0, high < 0 ? 0 : high);
}

/* --- nonzero ------------------------------------------------------------------------------------------------------ */

static tn_status infer_nonzero(tn_infer *c) {
    tn_operand_type x;
    tn_dim dims[2];
    TN_TRY(tn_infer_operand(c, 0, &x));
    tn_dim count = tn_infer_count(c, "x", x.rank, x.dims);
    if (count.id == 0)
        return tn_error_status();
    dims[0] = tn_dim_const(c->graph, x.rank);
    dims[1] = fresh_size(c, 0, 1, count);
    if (dims[1].id == 0)
        return tn_error_status();
    return tn_infer_tensor(c, 0, TN_I64, 2, dims);
}

/* Whether the element at an offset is not zero: NaN is not, -0 is, an empty string is. */
static bool is_set(const tn_tensor *x, int64_t offset) {
    tn_dtype dtype = (tn_dtype)x->dtype;
    if (dtype == TN_STRING) {
        tn_string text;
        memcpy(&text, (const char *)x->data + offset * (int64_t)sizeof text, sizeof text);
        return text.length > 0;
    }
    if (tn_dtype_is_complex(dtype)) {
        tn_dtype part = dtype == TN_C64 ? TN_F32 : TN_F64;
        return tn_load_f64(part, x->data, 2 * offset) != 0 || tn_load_f64(part, x->data, 2 * offset + 1) != 0;
    }
    return tn_dtype_is_float(dtype) ? tn_load_f64(dtype, x->data, offset) != 0
                                    : tn_load_i64(dtype, x->data, offset) != 0;
}

static void begin_walk(tn_cursor *c, const tn_tensor *x) {
    tn_cursor_begin(c, x->rank, x->dims);
    tn_cursor_operand(c, x->strides, -1);
}

static tn_status eval_nonzero(tn_eval *e) {
    const tn_tensor *x = tn_eval_in(e, 0);
    int64_t dims[2] = {x->rank, 0}, at = 0;
    tn_cursor c;
    begin_walk(&c, x);
    for (int64_t i = 0; i < c.count; i++, tn_cursor_next(&c))
        dims[1] += is_set(x, c.offset[0]);
    tn_tensor *out = tn_eval_result(e, 0, TN_I64, 2, dims);
    if (out == NULL)
        return tn_error_status();
    begin_walk(&c, x);
    for (int64_t i = 0; i < c.count && at < dims[1]; i++, tn_cursor_next(&c)) {
        if (!is_set(x, c.offset[0]))
            continue;
        for (int k = 0; k < x->rank; k++)
            tn_store_i64(TN_I64, out->data, k * dims[1] + at, c.index[k]);
        at++;
    }
    return TN_OK;
}

/* --- compress ----------------------------------------------------------------------------------------------------- */

/* The axis, or -1: of the elements in order. */
static int chosen_axis(const tn_graph *g, tn_node node) {
    return tn_node_attr(g, node, "axis") == NULL ? -1 : (int)tn_attr_int(g, node, "axis");
}

static tn_status infer_chosen_axis(tn_infer *c, const tn_operand_type *x, int *axis, tn_dim *length) {
    *axis = -1;
    if (tn_node_attr(c->graph, c->node, "axis") != NULL)
        TN_TRY(tn_infer_attr_axis(c, x->rank, axis));
    *length = *axis < 0 ? tn_infer_count(c, "x", x->rank, x->dims) : x->dims[*axis];
    return length->id != 0 ? TN_OK : tn_error_status();
}

static tn_status infer_compress(tn_infer *c) {
    tn_operand_type x, condition;
    int axis;
    tn_dim length;
    TN_TRY(tn_infer_operand(c, 0, &x));
    TN_TRY(tn_infer_operand_rank(c, 1, 1, &condition));
    if (condition.dtype != TN_BOOL)
        return tn_infer_fail(c, "the condition is %s, it must be bool", tn_dtype_name(condition.dtype));
    TN_TRY(infer_chosen_axis(c, &x, &axis, &length));
    if (axis < 0) {
        axis = 0;
        x.rank = 1;
    }
    x.dims[axis] = fresh_size(c, 0, axis, tn_dim_min(c->graph, length, condition.dims[0]));
    if (x.dims[axis].id == 0)
        return tn_error_status();
    return tn_infer_tensor(c, 0, x.dtype, x.rank, x.dims);
}

/* x as [outer, length, inner] of its contiguous elements. */
static tn_lanes axis_lanes(const tn_tensor *x, int axis) {
    return axis < 0 ? (tn_lanes){1, x->count, 1} : tn_lanes_of(x->rank, x->dims, axis);
}

/* Output `output` as the slices at the `count` positions `at` of x along the axis. */
static tn_status take_slices(tn_eval *e, uint32_t output, tn_tensor *x, int axis, const int64_t *at, int64_t count) {
    int64_t dims[TN_MAX_RANK];
    int rank = axis < 0 ? 1 : x->rank;
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    dims[axis < 0 ? 0 : axis] = count;
    tn_lanes l = axis_lanes(x, axis);
    tn_plain_output o;
    tn_status status = tn_plain_begin(e, output, (tn_dtype)x->dtype, rank, dims, &o);
    tn_tensor *flat = NULL;
    if (status == TN_OK) {
        flat = tn_plain_input(e->heap, x, true);
        status = flat != NULL ? TN_OK : tn_error_status();
    }
    for (int64_t i = 0; i < l.outer && l.inner > 0 && status == TN_OK; i++)
        for (int64_t k = 0; k < count && status == TN_OK; k++)
            status = tn_copy_indexed(o.to, (i * count + k) * l.inner, flat, (i * l.length + at[k]) * l.inner, NULL, 1,
                                     l.inner);
    tn_tensor_destroy(flat);
    return tn_plain_end(&o, status);
}

static tn_status eval_compress(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0), *condition = tn_eval_in(e, 1);
    int axis = chosen_axis(e->graph, e->node);
    int64_t length = axis < 0 ? x->count : x->dims[axis], count = 0;
    for (int64_t i = 0; i < condition->count; i++) {
        if (tn_load_i64(TN_BOOL, condition->data, i * condition->strides[0]) == 0)
            continue;
        if (i >= length)
            return tn_eval_fail(e, TN_ERR_INPUT, "element %" PRId64 " is chosen of %" PRId64, i, length);
        count++;
    }
    int64_t *at = tn_alloc_array(e->heap, (size_t)count, sizeof *at), n = 0;
    if (at == NULL)
        return tn_error_status();
    for (int64_t i = 0; n < count; i++)
        if (tn_load_i64(TN_BOOL, condition->data, i * condition->strides[0]) != 0)
            at[n++] = i;
    tn_status status = take_slices(e, 0, x, axis, at, count);
    tn_free(e->heap, at);
    return status;
}

/* --- unique ------------------------------------------------------------------------------------------------------- */

static tn_status infer_unique(tn_infer *c) {
    tn_operand_type x;
    bool flag;
    int axis;
    tn_dim length, size;
    TN_TRY(tn_infer_operand(c, 0, &x));
    if (!(tn_scalar_class(x.dtype) & (TN_ADMIT_FLOAT | TN_ADMIT_INT | TN_ADMIT_BOOL | TN_ADMIT_STRING)))
        return tn_infer_unsupported(c, "unique of %s", tn_dtype_name(x.dtype));
    TN_TRY(tn_infer_flag(c, "sorted", &flag));
    TN_TRY(infer_chosen_axis(c, &x, &axis, &length));
    if (axis < 0) {
        axis = 0;
        x.rank = 1;
    }
    size = fresh_size(c, 0, axis, length);
    if (size.id == 0)
        return tn_error_status();
    x.dims[axis] = size;
    TN_TRY(tn_infer_tensor(c, 0, x.dtype, x.rank, x.dims));
    TN_TRY(tn_infer_tensor(c, 1, TN_I64, 1, &size));
    TN_TRY(tn_infer_tensor(c, 2, TN_I64, 1, &length));
    return tn_infer_tensor(c, 3, TN_I64, 1, &size);
}

/* Slices along an axis, compared element by element. */
typedef struct slices {
    const tn_tensor *x; /* contiguous */
    tn_lanes lanes;
} slices;

static int compare_slices(const slices *s, int64_t a, int64_t b) {
    const tn_tensor *x = s->x;
    tn_dtype dtype = (tn_dtype)x->dtype;
    for (int64_t o = 0; o < s->lanes.outer; o++)
        for (int64_t i = 0; i < s->lanes.inner; i++) {
            int64_t at = (o * s->lanes.length + a) * s->lanes.inner + i, to = at + (b - a) * s->lanes.inner;
            if (dtype == TN_STRING) {
                tn_string left, right;
                memcpy(&left, (const char *)x->data + at * (int64_t)sizeof left, sizeof left);
                memcpy(&right, (const char *)x->data + to * (int64_t)sizeof right, sizeof right);
                int order = tn_order_strings(&left, &right);
                if (order != 0)
                    return order;
                continue;
            }
            uint64_t left = tn_order_key(dtype, x->data, at), right = tn_order_key(dtype, x->data, to);
            if (left != right)
                return left < right ? -1 : 1;
        }
    return 0;
}

/* Merge sort from the bottom, stable; the sorted list is answered, one of the two. */
static int64_t *sort_slices(const slices *s, int64_t *list, int64_t *other, int64_t n) {
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t start = 0; start < n; start += 2 * width) {
            int64_t middle = n - start < width ? n : start + width, end = n - start < 2 * width ? n : start + 2 * width;
            for (int64_t a = start, b = middle, k = start; k < end; k++)
                other[k] = a < middle && (b == end || compare_slices(s, list[a], list[b]) <= 0) ? list[a++] : list[b++];
        }
        int64_t *swap = list;
        list = other;
        other = swap;
    }
    return list;
}

/* first[g], count[g] of each group of equal slices, inverse[i] = the group of slice i; the number of groups. Groups are
   numbered by order or, when not `sorted`, by where they first appear. order, spare: room for n each. */
static int64_t group_slices(const slices *s, bool sorted, int64_t n, int64_t *order, int64_t *spare, int64_t *first,
                            int64_t *count, int64_t *inverse) {
    int64_t groups = 0;
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    int64_t *list = sort_slices(s, order, spare, n), *other = list == order ? spare : order;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || compare_slices(s, list[i - 1], list[i]) != 0) {
            first[groups] = list[i];
            count[groups++] = 0;
        }
        inverse[list[i]] = groups - 1;
        count[groups - 1]++;
    }
    if (sorted)
        return groups;
    /* renumber: `other` the new number of a group, `list` the new lists in turn */
    int64_t next = 0;
    for (int64_t i = 0; i < n; i++)
        if (first[inverse[i]] == i)
            other[inverse[i]] = next++;
    for (int64_t i = 0; i < n; i++)
        inverse[i] = other[inverse[i]];
    for (int64_t g = 0; g < groups; g++)
        list[other[g]] = first[g];
    memcpy(first, list, (size_t)groups * sizeof *first);
    for (int64_t g = 0; g < groups; g++)
        list[other[g]] = count[g];
    memcpy(count, list, (size_t)groups * sizeof *count);
    return groups;
}

static tn_status put_list(tn_eval *e, uint32_t output, int64_t n, const int64_t *values) {
    tn_tensor *out = tn_eval_result(e, output, TN_I64, 1, &n);
    if (out == NULL)
        return tn_error_status();
    if (n > 0)
        memcpy(out->data, values, (size_t)n * sizeof *values);
    return TN_OK;
}

static tn_status eval_unique(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0), *flat = tn_eval_contiguous(e, x);
    int axis = chosen_axis(e->graph, e->node);
    slices s = {flat, axis_lanes(x, axis)};
    int64_t n = s.lanes.length, groups = 0, *room = NULL;
    if (s.lanes.outer == 0) /* slices without elements are equal */
        s.lanes.outer = s.lanes.inner = 0;
    if (flat == NULL || (room = tn_alloc_array(e->heap, (size_t)n, 5 * sizeof *room)) == NULL) {
        tn_tensor_destroy(flat);
        return tn_error_status();
    }
    int64_t *first = room + 2 * n, *count = first + n, *inverse = count + n;
    groups = group_slices(&s, tn_attr_int(e->graph, e->node, "sorted") != 0, n, room, room + n, first, count, inverse);
    tn_status status = take_slices(e, 0, flat, axis, first, groups);
    if (status == TN_OK)
        status = put_list(e, 1, groups, first);
    if (status == TN_OK)
        status = put_list(e, 2, n, inverse);
    if (status == TN_OK)
        status = put_list(e, 3, groups, count);
    tn_free(e->heap, room);
    tn_tensor_destroy(flat);
    return status;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec compress_attrs[] = {{.name = "axis", .kind = TN_ATTR_INT}, {0}};
static const tn_attr_spec unique_attrs[] = {
    {.name = "axis", .kind = TN_ATTR_INT}, {.name = "sorted", .kind = TN_ATTR_INT, .i = 1}, {0}};

static const tn_op rows[] = {
    {.name = "nonzero",
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_EXACT | TN_HOST,
     .inputs = "x",
     .doc = "The positions of the elements that are not zero, in order: i64, a row for each axis of x.",
     .infer = infer_nonzero,
     .eval = eval_nonzero,
     .no_gradient = "a position does not depend on the elements"},
    {.name = "compress",
     .min_inputs = 2,
     .max_inputs = 2,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_EXACT | TN_HOST,
     .attrs = compress_attrs,
     .inputs = "x, condition",
     .doc = "The slices along the axis (absent: the elements in order) for which the condition, a bool vector that may "
            "be shorter, holds.",
     .infer = infer_compress,
     .eval = eval_compress},
    {.name = "unique",
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 4,
     .max_outputs = 4,
     .traits = TN_EXACT | TN_HOST,
     .attrs = unique_attrs,
     .inputs = "x",
     .doc =
         "The different slices along the axis (absent: elements), in order or as they first appear; where each first "
         "stood, which of them each slice is, and how often each occurs (i64). NaNs are equal, -0 equals 0.",
     .infer = infer_unique,
     .eval = eval_unique},
};
const tn_op_family tn_family_select_data = {rows, sizeof rows / sizeof *rows};
