/* Order along an axis: sort, top_k. NaNs are equal to each other and larger than every number, -0 equals 0, false is
   less than true, strings compare by bytes. Equal elements stay in their order, whichever way it goes. */
#include <inttypes.h>

#include "base/number.h"
#include "ops/ops.h"
#include "ops/plain.h"
#include "ops/support.h"

/* --- one lane ----------------------------------------------------------------------------------------------------- */

typedef struct entry {
    union {
        uint64_t number; /* tn_order_key */
        tn_string text;
    } key;
    int64_t index;
} entry;

/* Whether a comes before b: a total order, as no two have one index. */
typedef bool entry_before(const entry *a, const entry *b);

static bool less_number(const entry *a, const entry *b) {
    return a->key.number != b->key.number ? a->key.number < b->key.number : a->index < b->index;
}

static bool greater_number(const entry *a, const entry *b) {
    return a->key.number != b->key.number ? a->key.number > b->key.number : a->index < b->index;
}

static bool less_text(const entry *a, const entry *b) {
    int order = tn_order_strings(&a->key.text, &b->key.text);
    return order != 0 ? order < 0 : a->index < b->index;
}

static bool greater_text(const entry *a, const entry *b) {
    int order = tn_order_strings(&a->key.text, &b->key.text);
    return order != 0 ? order > 0 : a->index < b->index;
}

/* Merge sort from the bottom: n log n whatever the order was. `other` is room for n. */
static void sort_entries(entry *list, entry *other, int64_t n, entry_before *before) {
    entry *from = list, *to = other;
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t start = 0; start < n; start += 2 * width) {
            int64_t middle = n - start < width ? n : start + width, end = n - start < 2 * width ? n : start + 2 * width;
            for (int64_t a = start, b = middle, k = start; k < end; k++)
                to[k] = a < middle && (b == end || before(&from[a], &from[b])) ? from[a++] : from[b++];
        }
        entry *swap = from;
        from = to;
        to = swap;
    }
    if (from != list)
        memcpy(list, from, (size_t)n * sizeof *list);
}

static void sift_down(entry *heap, int64_t size, int64_t at, entry_before *before) {
    for (int64_t child; (child = 2 * at + 1) < size; at = child) {
        if (child + 1 < size && before(&heap[child], &heap[child + 1]))
            child++;
        if (!before(&heap[at], &heap[child]))
            return;
        entry swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
    }
}

/* Brings the first k in order to the front. */
static void select_entries(entry *list, entry *other, int64_t n, int64_t k, entry_before *before) {
    if (k == 0)
        return;
    if (k > n / 8) {
        sort_entries(list, other, n, before);
        return;
    }
    for (int64_t i = k / 2 - 1; i >= 0; i--) /* a heap of the first k so far, the last of them on top */
        sift_down(list, k, i, before);
    for (int64_t i = k; i < n; i++)
        if (before(&list[i], &list[0])) {
            list[0] = list[i];
            sift_down(list, k, 0, before);
        }
    sort_entries(list, other, k, before);
}

/* --- all lanes ---------------------------------------------------------------------------------------------------- */

/* Outputs 0 (elements) and 1 (positions): the first `keep` along the axis in order. */
static tn_status order_axis(tn_eval *e, int axis, bool descending, int64_t keep) {
    tn_tensor *x = tn_eval_in(e, 0);
    tn_dtype dtype = (tn_dtype)x->dtype;
    bool text = dtype == TN_STRING;
    entry_before *before = text ? (descending ? greater_text : less_text) : descending ? greater_number : less_number;
    int64_t dims[TN_MAX_RANK];
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    dims[axis] = keep;
    tn_tensor *values = tn_eval_result(e, 0, dtype, x->rank, dims);
    tn_tensor *positions = values != NULL ? tn_eval_result(e, 1, TN_I64, x->rank, dims) : NULL;
    if (positions == NULL)
        return tn_error_status();
    if (values->count == 0)
        return TN_OK;
    tn_lanes l = tn_lanes_of(x->rank, x->dims, axis);
    tn_tensor *flat = tn_eval_contiguous(e, x);
    entry *list = tn_alloc_array(e->heap, (size_t)l.length, 2 * sizeof *list);
    tn_status status = flat != NULL && list != NULL ? TN_OK : tn_error_status();
    for (int64_t lane = 0; lane < l.outer * l.inner && status == TN_OK; lane++) {
        int64_t o = lane / l.inner, i = lane % l.inner, first = o * l.length * l.inner + i;
        for (int64_t k = 0; k < l.length; k++) {
            int64_t at = first + k * l.inner;
            list[k].index = k;
            if (text)
                memcpy(&list[k].key.text, (const char *)flat->data + at * (int64_t)sizeof(tn_string),
                       sizeof(tn_string));
            else
                list[k].key.number = tn_order_key(dtype, flat->data, at);
        }
        select_entries(list, list + l.length, l.length, keep, before);
        for (int64_t k = 0; k < keep && status == TN_OK; k++) {
            int64_t to = (o * keep + k) * l.inner + i;
            tn_store_i64(TN_I64, positions->data, to, list[k].index);
            status = tn_copy_indexed(values, to, flat, first + list[k].index * l.inner, NULL, 1, 1);
        }
    }
    tn_free(e->heap, list);
    tn_tensor_destroy(flat);
    return status;
}

static tn_status infer_ordered(tn_infer *c, tn_operand_type *x, int *axis) {
    TN_TRY(tn_infer_operand(c, 0, x));
    if (!(tn_scalar_class(x->dtype) & (TN_ADMIT_FLOAT | TN_ADMIT_INT | TN_ADMIT_BOOL | TN_ADMIT_STRING)))
        return tn_infer_unsupported(c, "%s of %s", tn_node_op_name(c->graph, c->node), tn_dtype_name(x->dtype));
    return tn_infer_attr_axis(c, x->rank, axis);
}

/* --- sort --------------------------------------------------------------------------------------------------------- */

static tn_status infer_sort(tn_infer *c) {
    tn_operand_type x;
    bool flag;
    int axis;
    TN_TRY(infer_ordered(c, &x, &axis));
    TN_TRY(tn_infer_flag(c, "descending", &flag));
    TN_TRY(tn_infer_flag(c, "stable", &flag));
    TN_TRY(tn_infer_tensor(c, 0, x.dtype, x.rank, x.dims));
    return tn_infer_tensor(c, 1, TN_I64, x.rank, x.dims);
}

static tn_status eval_sort(tn_eval *e) {
    int axis = (int)tn_attr_int(e->graph, e->node, "axis");
    return order_axis(e, axis, tn_attr_int(e->graph, e->node, "descending") != 0, tn_eval_in(e, 0)->dims[axis]);
}

/* --- top_k -------------------------------------------------------------------------------------------------------- */

static tn_status infer_top_k(tn_infer *c) {
    tn_operand_type x;
    const tn_dim *k;
    bool flag;
    int axis;
    TN_TRY(infer_ordered(c, &x, &axis));
    TN_TRY(tn_infer_attr_dims(c, "k", 1, true, &k, NULL));
    TN_TRY(tn_infer_flag(c, "largest", &flag));
    TN_TRY(tn_infer_flag(c, "sorted", &flag));
    if (!tn_dim_equal(c->graph, k[0], x.dims[axis]) && tn_dim_never_equal(c->graph, k[0], x.dims[axis]) &&
        tn_dim_at_most(c->graph, x.dims[axis], k[0])) {
        char a[64], b[64];
        return tn_infer_fail(c, "%s elements are wanted of axis %d, which has %s",
                             tn_dim_describe(c->graph, k[0], a, sizeof a), axis,
                             tn_dim_describe(c->graph, x.dims[axis], b, sizeof b));
    }
    x.dims[axis] = k[0];
    TN_TRY(tn_infer_tensor(c, 0, x.dtype, x.rank, x.dims));
    return tn_infer_tensor(c, 1, TN_I64, x.rank, x.dims);
}

static tn_status eval_top_k(tn_eval *e) {
    int axis = (int)tn_attr_int(e->graph, e->node, "axis");
    int64_t k, have = tn_eval_in(e, 0)->dims[axis];
    TN_TRY(tn_eval_sizes(e, "k", 1, &k));
    if (k > have)
        return tn_eval_fail(e, TN_ERR_INPUT, "%" PRId64 " elements are wanted of axis %d, which has %" PRId64, k, axis,
                            have);
    return order_axis(e, axis, tn_attr_int(e->graph, e->node, "largest") != 0, k);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec sort_attrs[] = {{.name = "axis", .kind = TN_ATTR_INT, .required = true},
                                          {.name = "descending", .kind = TN_ATTR_INT},
                                          {.name = "stable", .kind = TN_ATTR_INT, .i = 1}, /* it always is */
                                          {0}};
static const tn_attr_spec top_k_attrs[] = {{.name = "k", .kind = TN_ATTR_DIMS, .required = true},
                                           {.name = "axis", .kind = TN_ATTR_INT, .required = true},
                                           {.name = "largest", .kind = TN_ATTR_INT, .i = 1},
                                           {.name = "sorted", .kind = TN_ATTR_INT, .i = 1}, /* they always are */
                                           {0}};

static const tn_op rows[] = {
    {.name = "sort",
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 2,
     .max_outputs = 2,
     .traits = TN_EXACT,
     .attrs = sort_attrs,
     .inputs = "x",
     .doc = "The elements in order along the axis, and the position (i64) that each had; NaN is the largest, equal "
            "ones keep their order.",
     .infer = infer_sort,
     .eval = eval_sort,
     .host = TN_HOST_ORDER},
    {.name = "top_k",
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 2,
     .max_outputs = 2,
     .traits = TN_EXACT,
     .attrs = top_k_attrs,
     .inputs = "x",
     .doc = "The k largest (or smallest) along the axis in order, and the position (i64) that each had; NaN is the "
            "largest, of equal ones the first come first.",
     .infer = infer_top_k,
     .eval = eval_top_k,
     .host = TN_HOST_ORDER,
     .code = 1},
};
const tn_op_family tn_family_sort = {rows, sizeof rows / sizeof *rows};
