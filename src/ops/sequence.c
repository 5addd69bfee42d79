/* Host operations on sequences and optionals.

   The element type of a sequence says what all its items have in common: a size that differs is a symbol that stands for
   any, a rank that differs leaves the element unranked. What is taken out of a sequence has symbols of its own for all
   sizes but constants. */
#include <inttypes.h>

#include "base/number.h"
#include "ops/ops.h"
#include "ops/plain.h"

/* --- types -------------------------------------------------------------------------------------------------------- */

static tn_status input_type(tn_infer *c, uint32_t index, tn_type *type) {
    tn_value value = tn_node_input(c->graph, c->node, index);
    *type = value.id != 0 ? tn_value_type(c->graph, value) : (tn_type){0};
    if (type->id == 0)
        return tn_infer_fail(c, "input %u %s", (unsigned)index, value.id != 0 ? "has no known type" : "is missing");
    return TN_OK;
}

/* Input `index` as a sequence; its element type, null when nothing is known of the items. */
static tn_status input_sequence(tn_infer *c, uint32_t index, tn_type *element) {
    tn_type type;
    char text[200];
    TN_TRY(input_type(c, index, &type));
    if (tn_type_kind(c->graph, type) != TN_KIND_SEQUENCE)
        return tn_infer_fail(c, "input %u is no sequence but %s", (unsigned)index,
                             tn_type_describe(c->graph, type, text, sizeof text));
    *element = tn_type_element(c->graph, type);
    return TN_OK;
}

/* Input `index` as a position: an i32 or i64 scalar, or a vector of one. An unknown rank is for eval to check. */
static tn_status input_position(tn_infer *c, uint32_t index) {
    tn_operand_type at;
    tn_type type;
    TN_TRY(input_type(c, index, &type));
    if (tn_type_kind(c->graph, type) == TN_KIND_TENSOR && tn_type_rank(c->graph, type) < 0) {
        tn_dtype dtype = tn_type_dtype(c->graph, type);
        return dtype == TN_I64 || dtype == TN_I32
                   ? TN_OK
                   : tn_infer_fail(c, "input %u is %s, it must be i64 or i32", (unsigned)index, tn_dtype_name(dtype));
    }
    TN_TRY(tn_infer_indices(c, index, &at));
    if (at.rank > 1 || (at.rank == 1 && tn_dim_never_equal(c->graph, at.dims[0], tn_dim_const(c->graph, 1))))
        return tn_infer_fail(c, "input %u must be one number", (unsigned)index);
    return TN_OK;
}

static bool has_input(const tn_graph *g, tn_node node, uint32_t index) {
    return index < tn_node_input_count(g, node) && tn_node_input(g, node, index).id != 0;
}

static int copy_dims(const tn_graph *g, tn_type type, tn_dim dims[TN_MAX_RANK]) {
    int rank = tn_type_rank(g, type);
    if (rank > 0)
        memcpy(dims, tn_type_dims(g, type), (size_t)rank * sizeof *dims);
    return rank;
}

/* Any size, inside the element type of output 0; the same symbol when the node is inferred again. */
static tn_dim any_size(tn_infer *c, int axis) {
    tn_graph *g = c->graph;
    tn_type type = tn_value_type(g, tn_node_output(g, c->node, 0));
    if (type.id != 0 && tn_type_kind(g, type) != TN_KIND_TENSOR) {
        tn_type element = tn_type_element(g, type);
        if (element.id != 0 && tn_type_rank(g, element) > axis) {
            tn_dim old = tn_type_dims(g, element)[axis];
            const tn_dim_expr *expr = &g->dims.expr.data[old.id];
            if (expr->kind == TN_DIM_SYMBOL && g->dims.symbol.data[expr->symbol].fresh)
                return old;
        }
    }
    return tn_dim_fresh(g, 0, INT64_MAX);
}

/* What items of both types have in common; null types say nothing yet. */
static tn_status join_elements(tn_infer *c, tn_type a, tn_type b, tn_type *out) {
    tn_graph *g = c->graph;
    char left[200], right[200];
    *out = a.id != 0 ? a : b;
    if (a.id == b.id || a.id == 0 || b.id == 0)
        return TN_OK;
    bool tensors = tn_type_kind(g, a) == TN_KIND_TENSOR && tn_type_kind(g, b) == TN_KIND_TENSOR;
    if (!tensors ? !tn_type_compatible(g, a, b) : tn_type_dtype(g, a) != tn_type_dtype(g, b))
        return tn_infer_fail(c, "items of one sequence are %s and %s", tn_type_describe(g, a, left, sizeof left),
                             tn_type_describe(g, b, right, sizeof right));
    if (!tensors)
        return TN_OK;
    tn_dim x[TN_MAX_RANK], y[TN_MAX_RANK];
    int rank = copy_dims(g, a, x);
    if (rank != copy_dims(g, b, y))
        rank = -1;
    for (int i = 0; i < rank; i++) {
        if (!tn_dim_equal(g, x[i], y[i]))
            x[i] = any_size(c, i);
        if (x[i].id == 0)
            return tn_error_status();
    }
    *out = tn_type_tensor(g, tn_type_dtype(g, a), rank, x);
    return out->id != 0 ? TN_OK : tn_error_status();
}

static tn_status infer_sequence_of(tn_infer *c, tn_type element) {
    return tn_infer_type(c, 0, tn_type_sequence(c->graph, element));
}

/* Output 0 as an item of this type. */
static tn_status infer_item(tn_infer *c, tn_type element) {
    tn_dim dims[TN_MAX_RANK];
    int64_t value;
    if (element.id == 0) /* the item, too, is known when it is there */
        return tn_infer_type(c, 0, (tn_type){0});
    if (tn_type_kind(c->graph, element) != TN_KIND_TENSOR)
        return tn_infer_type(c, 0, element);
    int rank = copy_dims(c->graph, element, dims);
    for (int i = 0; i < rank; i++) {
        if (!tn_dim_is_const(c->graph, dims[i], &value))
            dims[i] = tn_infer_fresh(c, 0, i, 0, INT64_MAX);
        if (dims[i].id == 0)
            return tn_error_status();
    }
    return tn_infer_tensor(c, 0, tn_type_dtype(c->graph, element), rank, dims);
}

/* --- objects ------------------------------------------------------------------------------------------------------ */

/* The object to be kept: itself, or a copy of a tensor whose memory somebody else may use again. */
static tn_object *keep(tn_eval *e, tn_object *object) {
    tn_tensor *t = tn_object_tensor(object);
    if (t == NULL || t->storage != NULL)
        return tn_object_retain(object);
    tn_tensor *copy = tn_tensor_new(e->heap, (tn_dtype)t->dtype, t->rank, t->dims);
    if (copy != NULL && tn_tensor_assign(copy, t) != TN_OK) {
        tn_tensor_destroy(copy);
        return NULL;
    }
    return tn_tensor_object(copy);
}

/* A list of objects that are owned, to become a sequence. */
typedef struct item_list {
    tn_object **item;
    size_t count;
} item_list;

static tn_status list_begin(tn_eval *e, item_list *list, size_t most) {
    list->count = 0;
    list->item = tn_alloc_array(e->heap, most, sizeof *list->item);
    return list->item != NULL ? TN_OK : tn_error_status();
}

/* Takes `item` over; NULL is an error that is set. */
static tn_status list_add(item_list *list, tn_object *item) {
    if (item == NULL)
        return tn_error_status();
    list->item[list->count++] = item;
    return TN_OK;
}

/* Output 0 as the sequence, if `status` is TN_OK. */
static tn_status list_end(tn_eval *e, item_list *list, tn_status status) {
    if (status == TN_OK)
        status = tn_eval_set(e, 0, tn_sequence_create(e->heap, list->count, list->item));
    for (size_t i = 0; i < list->count; i++)
        tn_object_destroy(list->item[i]);
    tn_free(e->heap, list->item);
    return status;
}

static tn_status operand_sequence(tn_eval *e, uint32_t input, size_t *length) {
    if (e->in[input] == NULL || tn_object_kind(e->in[input]) != TN_KIND_SEQUENCE)
        return tn_eval_fail(e, TN_ERR_INPUT, "input %u is no sequence", (unsigned)input);
    *length = tn_sequence_length(e->in[input]);
    return TN_OK;
}

/* A position in [-length, limit), made non-negative; `absent` when the input is. */
static tn_status operand_position(tn_eval *e, uint32_t input, size_t length, size_t limit, size_t absent, size_t *at) {
    *at = absent;
    if (input >= e->inputs || e->in[input] == NULL)
        return TN_OK;
    int64_t value, n = (int64_t)length;
    TN_TRY(tn_eval_vector(e, input, 1, &value));
    if (value < -n || value >= (int64_t)limit)
        return tn_eval_fail(e, TN_ERR_INPUT, "position %" PRId64 " in a sequence of %zu", value, length);
    *at = (size_t)(value < 0 ? value + n : value);
    return TN_OK;
}

static tn_status put_scalar(tn_eval *e, tn_dtype dtype, int64_t value) {
    tn_tensor *out = tn_eval_result(e, 0, dtype, 0, NULL);
    if (out == NULL)
        return tn_error_status();
    tn_store_i64(dtype, out->data, 0, value);
    return TN_OK;
}

/* --- sequences: making and changing ------------------------------------------------------------------------------- */

static tn_status infer_empty(tn_infer *c) {
    int64_t dtype = tn_attr_int(c->graph, c->node, "dtype");
    if (dtype <= 0 || dtype >= TN_DTYPE_COUNT)
        return tn_infer_fail(c, "attribute 'dtype' is no dtype (%" PRId64 ")", dtype);
    return infer_sequence_of(c, tn_type_tensor(c->graph, (tn_dtype)dtype, -1, NULL));
}

static tn_status eval_empty(tn_eval *e) {
    return tn_eval_set(e, 0, tn_sequence_create(e->heap, 0, NULL));
}

static tn_status infer_construct(tn_infer *c) {
    tn_type element = {0}, next;
    for (uint32_t i = 0; i < tn_node_input_count(c->graph, c->node); i++) {
        TN_TRY(input_type(c, i, &next));
        TN_TRY(join_elements(c, element, next, &element));
    }
    return infer_sequence_of(c, element);
}

static tn_status eval_construct(tn_eval *e) {
    item_list list;
    tn_status status = list_begin(e, &list, e->inputs);
    for (uint32_t i = 0; i < e->inputs && status == TN_OK; i++)
        status = list_add(&list, keep(e, e->in[i]));
    return list_end(e, &list, status);
}

static tn_status infer_insert(tn_infer *c) {
    tn_type element, item;
    TN_TRY(input_sequence(c, 0, &element));
    if (element.id != 0 || !has_input(c->graph, c->node, 1))
        TN_TRY(input_type(c, 1, &item));
    else /* of unknown items: any is one */
        item = tn_value_type(c->graph, tn_node_input(c->graph, c->node, 1));
    if (has_input(c->graph, c->node, 2))
        TN_TRY(input_position(c, 2));
    TN_TRY(join_elements(c, element, item, &element));
    return infer_sequence_of(c, element);
}

static tn_status eval_insert(tn_eval *e) {
    size_t n, at;
    item_list list;
    TN_TRY(operand_sequence(e, 0, &n));
    TN_TRY(operand_position(e, 2, n, n + 1, n, &at));
    const tn_tensor *first = n > 0 ? tn_object_tensor(tn_sequence_at(e->in[0], 0)) : NULL,
                    *item = tn_object_tensor(e->in[1]);
    if (n > 0 && ((first == NULL) != (item == NULL) || (item != NULL && item->dtype != first->dtype)))
        return tn_eval_fail(e, TN_ERR_INPUT, "items of one sequence are %s and %s",
                            first != NULL ? tn_dtype_name((tn_dtype)first->dtype) : "no tensors",
                            item != NULL ? tn_dtype_name((tn_dtype)item->dtype) : "no tensor");
    tn_status status = list_begin(e, &list, n + 1);
    for (size_t i = 0; i <= n && status == TN_OK; i++)
        status = list_add(&list,
                          i == at ? keep(e, e->in[1]) : tn_object_retain(tn_sequence_at(e->in[0], i < at ? i : i - 1)));
    return list_end(e, &list, status);
}

static tn_status infer_erase(tn_infer *c) {
    tn_type element;
    TN_TRY(input_sequence(c, 0, &element));
    if (has_input(c->graph, c->node, 1))
        TN_TRY(input_position(c, 1));
    return infer_sequence_of(c, element);
}

static tn_status eval_erase(tn_eval *e) {
    size_t n, at;
    item_list list;
    TN_TRY(operand_sequence(e, 0, &n));
    if (n == 0)
        return tn_eval_fail(e, TN_ERR_INPUT, "there is nothing to erase: the sequence is empty");
    TN_TRY(operand_position(e, 1, n, n, n - 1, &at));
    tn_status status = list_begin(e, &list, n);
    for (size_t i = 0; i < n && status == TN_OK; i++)
        if (i != at)
            status = list_add(&list, tn_object_retain(tn_sequence_at(e->in[0], i)));
    return list_end(e, &list, status);
}

/* --- sequences: looking ------------------------------------------------------------------------------------------- */

static tn_status infer_at(tn_infer *c) {
    tn_type element;
    TN_TRY(input_sequence(c, 0, &element));
    TN_TRY(input_position(c, 1));
    return infer_item(c, element);
}

static tn_status eval_at(tn_eval *e) {
    size_t n, at;
    TN_TRY(operand_sequence(e, 0, &n));
    TN_TRY(operand_position(e, 1, n, n, n, &at));
    return tn_eval_set(e, 0, tn_object_retain(tn_sequence_at(e->in[0], at)));
}

static tn_status infer_length(tn_infer *c) {
    tn_type element;
    TN_TRY(input_sequence(c, 0, &element));
    return tn_infer_tensor(c, 0, TN_I64, 0, NULL);
}

static tn_status eval_length(tn_eval *e) {
    size_t n;
    TN_TRY(operand_sequence(e, 0, &n));
    return put_scalar(e, TN_I64, (int64_t)n);
}

/* --- to and from one tensor --------------------------------------------------------------------------------------- */

static tn_status infer_concat_from(tn_infer *c) {
    tn_type element;
    bool new_axis;
    tn_dim dims[TN_MAX_RANK + 1];
    int64_t axis = tn_attr_int(c->graph, c->node, "axis"), size;
    TN_TRY(input_sequence(c, 0, &element));
    TN_TRY(tn_infer_flag(c, "new_axis", &new_axis));
    if (element.id == 0 || tn_type_kind(c->graph, element) != TN_KIND_TENSOR)
        return tn_infer_fail(c, "the items are not known to be tensors");
    int rank = copy_dims(c->graph, element, dims);
    if (rank < 0)
        return tn_infer_tensor(c, 0, tn_type_dtype(c->graph, element), -1, NULL);
    if (rank + new_axis > TN_MAX_RANK)
        return tn_infer_fail(c, "the output has rank %d, above the limit of %d", rank + new_axis, TN_MAX_RANK);
    if (axis < 0)
        axis += rank + new_axis;
    TN_TRY(tn_infer_axis(c, "axis", axis, rank + new_axis));
    if (new_axis)
        memmove(dims + axis + 1, dims + axis, (size_t)(rank - axis) * sizeof *dims);
    rank += new_axis;
    for (int i = 0; i < rank; i++) {
        if (i == axis || !tn_dim_is_const(c->graph, dims[i], &size))
            dims[i] = tn_infer_fresh(c, 0, i, 0, INT64_MAX);
        if (dims[i].id == 0)
            return tn_error_status();
    }
    return tn_infer_tensor(c, 0, tn_type_dtype(c->graph, element), rank, dims);
}

/* Copies item to where `at` on `axis` of the output begins; `strides` are the output's without a new axis. */
static tn_status place_item(tn_eval *e, tn_tensor *to, tn_tensor *item, const int64_t *strides, int64_t offset) {
    tn_tensor *from = tn_plain_input(e->heap, item, false);
    tn_tensor *part = from != NULL
                          ? tn_tensor_view(e->heap, to, (tn_dtype)from->dtype, from->rank, from->dims, strides, offset)
                          : NULL;
    tn_status status = part != NULL ? tn_tensor_assign(part, from) : tn_error_status();
    tn_tensor_destroy(part);
    tn_tensor_destroy(from);
    return status;
}

/* The dims of the items joined along *axis (made non-negative). */
static tn_status joined_dims(tn_eval *e, size_t n, bool new_axis, int64_t *axis, int *rank, int64_t *dims) {
    const tn_tensor *first = tn_object_tensor(tn_sequence_at(e->in[0], 0));
    if (first == NULL)
        return tn_eval_fail(e, TN_ERR_INPUT, "item 0 is no tensor");
    *rank = first->rank + new_axis;
    if (*rank > TN_MAX_RANK)
        return tn_eval_fail(e, TN_ERR_LIMIT, "the output has rank %d, above the limit of %d", *rank, TN_MAX_RANK);
    *axis += *axis < 0 ? *rank : 0;
    if (*axis < 0 || *axis >= *rank)
        return tn_eval_fail(e, TN_ERR_INPUT, "the axis is not one of a tensor of rank %d", *rank);
    memcpy(dims, first->dims, (size_t)first->rank * sizeof *dims);
    if (new_axis)
        memmove(dims + *axis + 1, dims + *axis, (size_t)(first->rank - *axis) * sizeof *dims);
    dims[*axis] = 0;
    for (size_t i = 0; i < n; i++) {
        const tn_tensor *t = tn_object_tensor(tn_sequence_at(e->in[0], i));
        bool fits = t != NULL && t->dtype == first->dtype && t->rank == first->rank;
        for (int k = 0; fits && k < t->rank; k++)
            fits = (!new_axis && k == *axis) || t->dims[k] == first->dims[k];
        if (!fits)
            return tn_eval_fail(e, TN_ERR_INPUT, "item %zu does not fit the items before it", i);
        if (!tn_add_i64(dims[*axis], new_axis ? 1 : t->dims[*axis], &dims[*axis]))
            return tn_eval_fail(e, TN_ERR_LIMIT, "the size of axis %" PRId64 " of the output overflows", *axis);
    }
    return TN_OK;
}

static tn_status eval_concat_from(tn_eval *e) {
    bool new_axis = tn_attr_int(e->graph, e->node, "new_axis") != 0;
    int64_t axis = tn_attr_int(e->graph, e->node, "axis"), dims[TN_MAX_RANK + 1], strides[TN_MAX_RANK + 1], at = 0;
    size_t n;
    int rank = 0;
    TN_TRY(operand_sequence(e, 0, &n));
    if (n == 0)
        return tn_eval_fail(e, TN_ERR_INPUT, "the sequence is empty: the shape of the result is not known");
    TN_TRY(joined_dims(e, n, new_axis, &axis, &rank, dims));
    tn_plain_output o;
    tn_status status =
        tn_plain_begin(e, 0, tn_tensor_dtype(tn_object_tensor(tn_sequence_at(e->in[0], 0))), rank, dims, &o);
    if (status == TN_OK) {
        memcpy(strides, o.to->strides, (size_t)rank * sizeof *strides);
        if (new_axis)
            memmove(strides + axis, strides + axis + 1, (size_t)(rank - 1 - axis) * sizeof *strides);
    }
    for (size_t i = 0; i < n && status == TN_OK; i++) {
        tn_tensor *item = tn_object_tensor(tn_sequence_at(e->in[0], i));
        if (item->count > 0)
            status = place_item(e, o.to, item, strides, at * o.to->strides[axis]);
        at += new_axis ? 1 : item->dims[axis];
    }
    return tn_plain_end(&o, status);
}

static tn_status infer_split(tn_infer *c) {
    tn_operand_type x, split;
    bool keep_axis;
    int axis;
    int64_t each = 0, whole;
    tn_graph *g = c->graph;
    TN_TRY(tn_infer_operand(c, 0, &x));
    TN_TRY(tn_infer_attr_axis(c, x.rank, &axis));
    TN_TRY(tn_infer_flag(c, "keepdims", &keep_axis));
    if (!has_input(g, c->node, 1)) {
        if (keep_axis) {
            x.dims[axis] = tn_dim_const(g, 1);
        } else {
            memmove(x.dims + axis, x.dims + axis + 1, (size_t)(x.rank - 1 - axis) * sizeof *x.dims);
            x.rank--;
        }
    } else {
        const tn_dim *known;
        TN_TRY(tn_infer_indices(c, 1, &split));
        if (split.rank > 1)
            return tn_infer_fail(c, "split has rank %d, it must be a scalar or a vector", split.rank);
        int32_t n = tn_value_contents(g, split.value, &known);
        bool same = n > 0 && tn_dim_is_const(g, known[0], &each) && each > 0;
        for (int32_t i = 1; same && i < n; i++)
            same = known[i].id == known[0].id;
        if (split.rank == 0) /* parts of `each`, the last one smaller unless they fit */
            same = same && tn_dim_is_const(g, x.dims[axis], &whole) && whole % each == 0;
        x.dims[axis] = same ? tn_dim_const(g, each) : any_size(c, axis);
    }
    if (x.rank > axis && x.dims[axis].id == 0)
        return tn_error_status();
    tn_type element = tn_type_tensor(g, x.dtype, x.rank, x.dims);
    return element.id != 0 ? infer_sequence_of(c, element) : tn_error_status();
}

/* Part of x of `size` from `start` on along the axis, without the axis when not `keep_axis`: a view, or a copy. */
static tn_object *split_part(tn_eval *e, tn_tensor *x, tn_tensor *plain, int axis, int64_t start, int64_t size,
                             bool keep_axis) {
    int64_t dims[TN_MAX_RANK], strides[TN_MAX_RANK],
        offset = x->count > 0 && size > 0 ? start * plain->strides[axis] : 0;
    int rank = x->rank;
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    memcpy(strides, plain->strides, sizeof strides);
    dims[axis] = size;
    if (!keep_axis) {
        rank--;
        memmove(dims + axis, dims + axis + 1, (size_t)(rank - axis) * sizeof *dims);
        memmove(strides + axis, strides + axis + 1, (size_t)(rank - axis) * sizeof *strides);
    }
    bool empty = x->count == 0 || size == 0, packed = plain != x;
    tn_tensor *part =
        tn_tensor_view(e->heap, plain, (tn_dtype)plain->dtype, rank, dims, empty ? NULL : strides, offset);
    if (part == NULL || (x->storage != NULL && !packed))
        return tn_tensor_object(part);
    tn_tensor *copy = tn_tensor_new(e->heap, (tn_dtype)x->dtype, rank, dims);
    if (copy != NULL && packed) {
        tn_pack_bits(copy, part);
    } else if (copy != NULL && tn_tensor_assign(copy, part) != TN_OK) {
        tn_tensor_destroy(copy);
        copy = NULL;
    }
    tn_tensor_destroy(part);
    return tn_tensor_object(copy);
}

static tn_status eval_split(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0), *split = e->inputs > 1 && e->in[1] != NULL ? tn_eval_in(e, 1) : NULL;
    int axis = (int)tn_attr_int(e->graph, e->node, "axis");
    bool keep_axis = split != NULL || tn_attr_int(e->graph, e->node, "keepdims") != 0;
    int64_t length = x->dims[axis], each = 1, parts = length, at = 0, sum = 0;
    if (split != NULL && split->rank == 0) {
        TN_TRY(tn_eval_vector(e, 1, 1, &each));
        if (each <= 0)
            return tn_eval_fail(e, TN_ERR_INPUT, "parts of %" PRId64 " elements", each);
        parts = length == 0 ? 0 : (length - 1) / each + 1;
    } else if (split != NULL) {
        parts = split->count;
        for (int64_t i = 0; i < parts; i++) {
            int64_t size = tn_load_i64((tn_dtype)split->dtype, split->data, i * split->strides[0]);
            if (size < 0 || !tn_add_i64(sum, size, &sum))
                return tn_eval_fail(e, TN_ERR_INPUT, "part %" PRId64 " has %" PRId64 " elements", i, size);
        }
        if (sum != length)
            return tn_eval_fail(e, TN_ERR_INPUT, "the parts have %" PRId64 " elements, axis %d has %" PRId64, sum, axis,
                                length);
    }
    item_list list;
    tn_status status = list_begin(e, &list, (size_t)parts);
    tn_tensor *plain = status == TN_OK ? tn_plain_input(e->heap, x, false) : NULL;
    if (status == TN_OK && plain == NULL)
        status = tn_error_status();
    for (int64_t i = 0; i < parts && status == TN_OK; i++) {
        int64_t size = each;
        if (split != NULL && split->rank == 1)
            size = tn_load_i64((tn_dtype)split->dtype, split->data, i * split->strides[0]);
        size = size < length - at ? size : length - at;
        status = list_add(&list, split_part(e, x, plain, axis, at, size, keep_axis));
        at += size;
    }
    tn_tensor_destroy(plain);
    return list_end(e, &list, status);
}

/* --- optionals ---------------------------------------------------------------------------------------------------- */

static tn_status infer_optional(tn_infer *c) {
    tn_type element;
    if (has_input(c->graph, c->node, 0)) {
        TN_TRY(input_type(c, 0, &element));
    } else {
        const tn_attr *type = tn_node_attr(c->graph, c->node, "type");
        if (type == NULL || type->as.type.id == 0)
            return tn_infer_fail(c, "an optional without a value needs the attribute 'type'");
        element = type->as.type;
    }
    return tn_infer_type(c, 0, tn_type_optional(c->graph, element));
}

static tn_status eval_optional(tn_eval *e) {
    tn_object *value = NULL;
    if (e->inputs > 0 && e->in[0] != NULL && (value = keep(e, e->in[0])) == NULL)
        return tn_error_status();
    tn_status status = tn_eval_set(e, 0, tn_optional_create(e->heap, value));
    tn_object_destroy(value);
    return status;
}

static tn_status infer_has_element(tn_infer *c) {
    return tn_infer_tensor(c, 0, TN_BOOL, 0, NULL);
}

static tn_status eval_has_element(tn_eval *e) {
    const tn_object *x = e->inputs > 0 ? e->in[0] : NULL;
    bool has = x != NULL && (tn_object_kind(x) != TN_KIND_OPTIONAL || tn_optional_get(x) != NULL);
    return put_scalar(e, TN_BOOL, has);
}

static tn_status infer_get_element(tn_infer *c) {
    tn_type type;
    TN_TRY(input_type(c, 0, &type));
    if (tn_type_kind(c->graph, type) != TN_KIND_OPTIONAL)
        return tn_infer_type(c, 0, type);
    return infer_item(c, tn_type_element(c->graph, type));
}

static tn_status eval_get_element(tn_eval *e) {
    tn_object *x = e->in[0];
    if (tn_object_kind(x) == TN_KIND_OPTIONAL) {
        x = tn_optional_get(x);
        if (x == NULL)
            return tn_eval_fail(e, TN_ERR_INPUT, "the optional holds nothing");
    }
    return tn_eval_set(e, 0, keep(e, x));
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec empty_attrs[] = {{.name = "dtype", .kind = TN_ATTR_DTYPE, .required = true}, {0}};
static const tn_attr_spec concat_attrs[] = {
    {.name = "axis", .kind = TN_ATTR_INT, .required = true}, {.name = "new_axis", .kind = TN_ATTR_INT}, {0}};
static const tn_attr_spec split_attrs[] = {
    {.name = "axis", .kind = TN_ATTR_INT, .required = true}, {.name = "keepdims", .kind = TN_ATTR_INT, .i = 1}, {0}};
static const tn_attr_spec optional_attrs[] = {{.name = "type", .kind = TN_ATTR_TYPE}, {0}};

#define ROW(row, function, least, most, more, list, operands, text)                                              \
    {                                                                                                            \
        .name = row, .min_inputs = (least), .max_inputs = (most), .min_outputs = 1, .max_outputs = 1,            \
        .traits = TN_HOST | (more), .attrs = (list), .inputs = operands, .doc = text, .infer = infer_##function, \
        .eval = eval_##function                                                                                  \
    }

static const tn_op rows[] = {
    ROW("sequence_empty", empty, 0, 0, 0, empty_attrs, "", "A sequence of tensors of this dtype, without items."),
    ROW("sequence_construct", construct, 0, -1, 0, NULL, "x...",
        "A sequence of these items; without any, nothing is known of those that may come."),
    ROW("sequence_insert", insert, 2, 3, TN_OPTIONAL_INPUTS, NULL, "sequence, x, position",
        "The sequence with x before the item at the position (negative: from the end; absent: at the end)."),
    ROW("sequence_erase", erase, 1, 2, TN_OPTIONAL_INPUTS, NULL, "sequence, position",
        "The sequence without the item at the position (negative: from the end; absent: the last)."),
    ROW("sequence_at", at, 2, 2, 0, NULL, "sequence, position", "The item at the position (negative: from the end)."),
    ROW("sequence_length", length, 1, 1, 0, NULL, "sequence", "The number of items, i64."),
    ROW("concat_from_sequence", concat_from, 1, 1, 0, concat_attrs, "sequence",
        "The items joined along an axis, or stacked along a new one; the axis may count from the end."),
    ROW("split_to_sequence", split, 1, 2, TN_OPTIONAL_INPUTS, split_attrs, "x, split",
        "Parts of x along an axis: of this size (the last may be smaller), of these sizes or, without, of one element, "
        "whose axis goes unless keepdims."),
    ROW("optional", optional, 0, 1, TN_OPTIONAL_INPUTS, optional_attrs, "x",
        "An optional that holds x or, without, nothing of the type."),
    ROW("optional_has_element", has_element, 0, 1, TN_OPTIONAL_INPUTS, NULL, "x",
        "Whether the optional holds a value; other values are held."),
    ROW("optional_get_element", get_element, 1, 1, 0, NULL, "x", "What the optional holds; other values are it."),
};
const tn_op_family tn_family_sequence = {rows, sizeof rows / sizeof *rows};
