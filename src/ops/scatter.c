/* Rows that read or write elements at computed positions: gather_elements, gather_nd, scatter_elements, scatter_nd.
   Negative indices count from the end, once; one out of range is an error of the run. */
#include <inttypes.h>

#include "ops/ops.h"
#include "ops/plain.h"

/* --- what is put where -------------------------------------------------------------------------------------------- */

/* How an update meets the element that it finds: the scalar operation, or TN_SCALAR_NONE: replaces it. */
static tn_scalar_op reduction_of(const tn_graph *g, tn_node node) {
    static const struct {
        const char *name;
        tn_scalar_op op;
    } all[] = {{"add", TN_SCALAR_ADD}, {"mul", TN_SCALAR_MUL}, {"max", TN_SCALAR_MAX}, {"min", TN_SCALAR_MIN}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (tn_attr_string_is(g, node, "reduction", all[i].name))
            return all[i].op;
    return TN_SCALAR_NONE;
}

static tn_status infer_reduction(tn_infer *c, const tn_operand_type *x) {
    tn_scalar_op op = reduction_of(c->graph, c->node);
    if (op != TN_SCALAR_NONE && !tn_scalar_admits(op, x->dtype))
        return tn_infer_unsupported(c, "reduction '%s' of %s", tn_scalar_describe(op)->name, tn_dtype_name(x->dtype));
    return TN_OK;
}

typedef struct scatter {
    tn_tensor *to;            /* contiguous */
    const tn_tensor *updates; /* any strides */
    tn_domain domain;
    tn_run_function *run; /* NULL: replace */
} scatter;

/* to[at + i] = op(to[at + i], updates[from + i * stride]) for i < n, elements counted in memory. */
static tn_status put(const scatter *s, int64_t at, int64_t from, int64_t stride, int64_t n) {
    if (s->run == NULL)
        return tn_copy_indexed(s->to, at, s->updates, from, NULL, stride, n);
    uint64_t a[TN_RUN], b[TN_RUN];
    const void *const in[2] = {a, b};
    tn_dtype dtype = (tn_dtype)s->to->dtype;
    for (int64_t i = 0; i < n; i += TN_RUN) {
        int64_t m = n - i < TN_RUN ? n - i : TN_RUN;
        tn_run_load(dtype, s->domain, s->to->data, at + i, 1, m, a);
        tn_run_load(dtype, s->domain, s->updates->data, from + i * stride, stride, m, b);
        s->run(m, in, a);
        tn_run_store(dtype, s->domain, a, m, s->to->data, at + i, 1);
    }
    return TN_OK;
}

typedef tn_status scatter_body(tn_eval *e, scatter *s);

/* Output 0 as a copy of x with what `body` puts into it. `flat`: updates are made contiguous. */
static tn_status scatter_into_copy(tn_eval *e, bool flat, scatter_body *body) {
    tn_tensor *x = tn_eval_in(e, 0);
    tn_scalar_op op = reduction_of(e->graph, e->node);
    scatter s = {.domain = TN_DOMAIN_F64};
    tn_plain_output o;
    if (op != TN_SCALAR_NONE) {
        s.domain = tn_scalar_domain(op, (tn_dtype)x->dtype);
        s.run = tn_scalar_run(op, s.domain);
    }
    tn_status status = tn_plain_begin(e, 0, (tn_dtype)x->dtype, x->rank, x->dims, &o);
    tn_tensor *from = NULL, *updates = NULL;
    if (status == TN_OK) {
        from = tn_plain_input(e->heap, x, false);
        status = from != NULL ? tn_tensor_assign(o.to, from) : tn_error_status();
    }
    if (status == TN_OK) {
        updates = tn_plain_input(e->heap, tn_eval_in(e, 2), flat);
        status = updates != NULL ? TN_OK : tn_error_status();
    }
    if (status == TN_OK) {
        s.to = o.to;
        s.updates = updates;
        status = body(e, &s);
    }
    tn_tensor_destroy(from);
    tn_tensor_destroy(updates);
    return tn_plain_end(&o, status);
}

/* --- along one axis ----------------------------------------------------------------------------------------------- */

/* Indices of the rank of x, no larger than x on the other axes. */
static tn_status infer_along(tn_infer *c, tn_operand_type *x, tn_operand_type *indices) {
    int axis;
    TN_TRY(tn_infer_operand(c, 0, x));
    TN_TRY(tn_infer_indices(c, 1, indices));
    if (indices->rank != x->rank)
        return tn_infer_fail(c, "indices have rank %d, x has rank %d", indices->rank, x->rank);
    TN_TRY(tn_infer_attr_axis(c, x->rank, &axis));
    for (int i = 0; i < x->rank; i++) {
        int64_t have, want;
        if (i != axis && tn_dim_is_const(c->graph, x->dims[i], &have) &&
            tn_dim_is_const(c->graph, indices->dims[i], &want) && want > have)
            return tn_infer_fail(c, "axis %d of the indices is %" PRId64 ", larger than that of x, %" PRId64, i, want,
                                 have);
    }
    return TN_OK;
}

static tn_status check_along(tn_eval *e, const tn_tensor *x, const tn_tensor *indices, int axis) {
    for (int i = 0; i < x->rank; i++)
        if (i != axis && indices->dims[i] > x->dims[i])
            return tn_eval_fail(e, TN_ERR_INPUT,
                                "axis %d of the indices is %" PRId64 ", larger than that of x, %" PRId64, i,
                                indices->dims[i], x->dims[i]);
    return TN_OK;
}

static tn_status infer_gather_elements(tn_infer *c) {
    tn_operand_type x, indices;
    TN_TRY(infer_along(c, &x, &indices));
    return tn_infer_tensor(c, 0, x.dtype, indices.rank, indices.dims);
}

static tn_status gather_elements(tn_eval *e, tn_tensor *to, const tn_tensor *x, const tn_tensor *indices, int axis) {
    tn_cursor c;
    tn_cursor_begin(&c, indices->rank, indices->dims);
    tn_cursor_operand(&c, indices->strides, -1);
    tn_cursor_operand(&c, x->strides, axis);
    for (int64_t i = 0; i < c.count; i++, tn_cursor_next(&c)) {
        int64_t k;
        TN_TRY(tn_eval_index(e, indices, c.offset[0], x->dims[axis], &k));
        TN_TRY(tn_copy_indexed(to, i, x, c.offset[1] + k * x->strides[axis], NULL, 1, 1));
    }
    return TN_OK;
}

static tn_status eval_gather_elements(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0), *indices = tn_eval_in(e, 1);
    int axis = (int)tn_attr_int(e->graph, e->node, "axis");
    tn_plain_output o;
    TN_TRY(check_along(e, x, indices, axis));
    tn_status status = tn_plain_begin(e, 0, (tn_dtype)x->dtype, indices->rank, indices->dims, &o);
    if (status == TN_OK) {
        tn_tensor *from = tn_plain_input(e->heap, x, false);
        status = from != NULL ? gather_elements(e, o.to, from, indices, axis) : tn_error_status();
        tn_tensor_destroy(from);
    }
    return tn_plain_end(&o, status);
}

static tn_status infer_scatter_elements(tn_infer *c) {
    tn_operand_type x, indices, updates;
    TN_TRY(infer_along(c, &x, &indices));
    TN_TRY(tn_infer_operand_rank(c, 2, x.rank, &updates));
    TN_TRY(tn_infer_same_dtype(c, &x, &updates));
    TN_TRY(tn_infer_merge_shape(c, &indices, &updates));
    TN_TRY(infer_reduction(c, &x));
    return tn_infer_tensor(c, 0, x.dtype, x.rank, x.dims);
}

static tn_status scatter_elements(tn_eval *e, scatter *s) {
    const tn_tensor *indices = tn_eval_in(e, 1);
    int axis = (int)tn_attr_int(e->graph, e->node, "axis");
    tn_cursor c;
    tn_cursor_begin(&c, indices->rank, indices->dims);
    tn_cursor_operand(&c, indices->strides, -1);
    tn_cursor_operand(&c, s->to->strides, axis);
    tn_cursor_operand(&c, s->updates->strides, -1);
    for (int64_t i = 0; i < c.count; i++, tn_cursor_next(&c)) {
        int64_t k;
        TN_TRY(tn_eval_index(e, indices, c.offset[0], s->to->dims[axis], &k));
        TN_TRY(put(s, c.offset[1] + k * s->to->strides[axis], c.offset[2], 1, 1));
    }
    return TN_OK;
}

static tn_status eval_scatter_elements(tn_eval *e) {
    TN_TRY(check_along(e, tn_eval_in(e, 0), tn_eval_in(e, 1), (int)tn_attr_int(e->graph, e->node, "axis")));
    TN_TRY(tn_eval_same_shape(e, 1));
    return scatter_into_copy(e, false, scatter_elements);
}

/* --- at tuples of indices ----------------------------------------------------------------------------------------- */

/* The last axis of the indices holds tuples of *depth positions on the axes of x from `from` on. */
static tn_status infer_tuples(tn_infer *c, const tn_operand_type *x, const tn_operand_type *indices, int from,
                              int *depth) {
    int64_t n;
    if (indices->rank < 1)
        return tn_infer_fail(c, "indices need an axis of positions, but are a scalar");
    if (!tn_dim_is_const(c->graph, indices->dims[indices->rank - 1], &n))
        return tn_infer_unsupported(c, "indices whose last axis has a size that is not known now");
    if (n > x->rank - from)
        return tn_infer_fail(c, "tuples of %" PRId64 " indices for %d axes of x", n, x->rank - from);
    *depth = (int)n;
    return TN_OK;
}

/* The shape of the slices that tuples name: the tuples' own, then what is left of x. */
static tn_status tuple_shape(tn_infer *c, const tn_operand_type *x, const tn_operand_type *indices, int left,
                             tn_operand_type *out) {
    out->value = x->value;
    out->dtype = x->dtype;
    out->rank = indices->rank - 1 + x->rank - left;
    if (out->rank > TN_MAX_RANK)
        return tn_infer_fail(c, "slices of rank %d, above the limit of %d", out->rank, TN_MAX_RANK);
    for (int i = 0; i < indices->rank - 1; i++)
        out->dims[i] = indices->dims[i];
    for (int i = left; i < x->rank; i++)
        out->dims[indices->rank - 1 + i - left] = x->dims[i];
    return TN_OK;
}

static tn_status infer_gather_nd(tn_infer *c) {
    tn_operand_type x, indices, out;
    int64_t batch = tn_attr_int(c->graph, c->node, "batch_dims");
    int depth;
    TN_TRY(tn_infer_operand(c, 0, &x));
    TN_TRY(tn_infer_indices(c, 1, &indices));
    if (batch < 0 || batch > x.rank || batch >= indices.rank)
        return tn_infer_fail(c, "batch_dims is %" PRId64 " for x of rank %d and indices of rank %d", batch, x.rank,
                             indices.rank);
    TN_TRY(infer_tuples(c, &x, &indices, (int)batch, &depth));
    for (int i = 0; i < batch; i++) {
        tn_dim merged = tn_infer_merge_dim(c->graph, x.dims[i], indices.dims[i]);
        if (merged.id == 0)
            return tn_infer_fail(c, "x and the indices differ on batch axis %d", i);
        indices.dims[i] = merged;
    }
    TN_TRY(tuple_shape(c, &x, &indices, (int)batch + depth, &out));
    return tn_infer_tensor(c, 0, x.dtype, out.rank, out.dims);
}

/* The offset in x (elements) of the slice that the tuple at `at` of the indices names. */
static tn_status slice_offset(tn_eval *e, const tn_tensor *x, const tn_tensor *indices, int64_t at, int from, int depth,
                              int64_t *offset) {
    int64_t step = indices->strides[indices->rank - 1];
    for (int i = 0; i < depth; i++) {
        int64_t k;
        TN_TRY(tn_eval_index(e, indices, at + i * step, x->dims[from + i], &k));
        if (x->count > 0) /* strides of a tensor without elements say nothing */
            *offset += k * x->strides[from + i];
    }
    return TN_OK;
}

static tn_status gather_nd(tn_eval *e, tn_tensor *to, const tn_tensor *x, const tn_tensor *indices, int batch,
                           int depth) {
    tn_cursor tuple, inner;
    int64_t at = 0, batch_strides[TN_MAX_RANK] = {0};
    tn_space space;
    tn_space_init(&space, x->rank - batch - depth, x->dims + batch + depth, x->strides + batch + depth);
    for (int i = 0; i < batch; i++)
        batch_strides[i] = x->strides[i];
    tn_cursor_begin(&tuple, indices->rank - 1, indices->dims);
    tn_cursor_operand(&tuple, indices->strides, -1);
    tn_cursor_operand(&tuple, batch_strides, -1);
    for (int64_t t = 0; t < tuple.count; t++, tn_cursor_next(&tuple)) {
        int64_t offset = tuple.offset[1];
        TN_TRY(slice_offset(e, x, indices, tuple.offset[0], batch, depth, &offset));
        int last = space.rank - 1;
        int64_t n = last < 0 ? 1 : space.dims[last], step = last < 0 ? 1 : space.strides[last];
        tn_cursor_begin(&inner, last < 0 ? 0 : last, space.dims);
        tn_cursor_operand(&inner, space.strides, -1);
        for (int64_t k = 0; k < inner.count && space.count > 0; k++, tn_cursor_next(&inner), at += n)
            TN_TRY(tn_copy_indexed(to, at, x, offset + inner.offset[0], NULL, step, n));
    }
    return TN_OK;
}

static tn_status eval_gather_nd(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0), *indices = tn_eval_in(e, 1);
    int batch = (int)tn_attr_int(e->graph, e->node, "batch_dims"), rank = 0;
    int64_t depth = indices->dims[indices->rank - 1], dims[2 * TN_MAX_RANK];
    if (depth > x->rank - batch)
        return tn_eval_fail(e, TN_ERR_INPUT, "tuples of %" PRId64 " indices for %d axes of x", depth, x->rank - batch);
    for (int i = 0; i < batch; i++)
        if (x->dims[i] != indices->dims[i])
            return tn_eval_fail(e, TN_ERR_INPUT, "x and the indices differ on batch axis %d", i);
    for (int i = 0; i < indices->rank - 1; i++)
        dims[rank++] = indices->dims[i];
    for (int i = batch + (int)depth; i < x->rank; i++)
        dims[rank++] = x->dims[i];
    tn_plain_output o;
    tn_status status = tn_plain_begin(e, 0, (tn_dtype)x->dtype, rank, dims, &o);
    if (status == TN_OK) {
        tn_tensor *from = tn_plain_input(e->heap, x, false);
        status = from != NULL ? gather_nd(e, o.to, from, indices, batch, (int)depth) : tn_error_status();
        tn_tensor_destroy(from);
    }
    return tn_plain_end(&o, status);
}

static tn_status infer_scatter_nd(tn_infer *c) {
    tn_operand_type x, indices, updates, want;
    int depth;
    TN_TRY(tn_infer_operand(c, 0, &x));
    TN_TRY(tn_infer_indices(c, 1, &indices));
    TN_TRY(infer_tuples(c, &x, &indices, 0, &depth));
    TN_TRY(tn_infer_operand(c, 2, &updates));
    TN_TRY(tn_infer_same_dtype(c, &x, &updates));
    TN_TRY(tuple_shape(c, &x, &indices, depth, &want));
    TN_TRY(tn_infer_merge_shape(c, &want, &updates));
    TN_TRY(infer_reduction(c, &x));
    return tn_infer_tensor(c, 0, x.dtype, x.rank, x.dims);
}

static tn_status scatter_nd(tn_eval *e, scatter *s) {
    const tn_tensor *indices = tn_eval_in(e, 1);
    int depth = (int)indices->dims[indices->rank - 1];
    int64_t inner = 1;
    tn_cursor tuple;
    for (int i = depth; i < s->to->rank; i++) /* a product of dims of x: with none of 0 it fits */
        inner = s->to->count == 0 ? 0 : inner * s->to->dims[i];
    tn_cursor_begin(&tuple, indices->rank - 1, indices->dims);
    tn_cursor_operand(&tuple, indices->strides, -1);
    for (int64_t t = 0; t < tuple.count; t++, tn_cursor_next(&tuple)) {
        int64_t offset = 0;
        TN_TRY(slice_offset(e, s->to, indices, tuple.offset[0], 0, depth, &offset));
        if (inner > 0)
            TN_TRY(put(s, offset, t * inner, 1, inner));
    }
    return TN_OK;
}

static tn_status eval_scatter_nd(tn_eval *e) {
    const tn_tensor *x = tn_eval_in(e, 0), *indices = tn_eval_in(e, 1), *updates = tn_eval_in(e, 2);
    int64_t depth = indices->dims[indices->rank - 1];
    bool fits = depth <= x->rank && updates->rank == indices->rank - 1 + x->rank - depth;
    for (int i = 0; fits && i < updates->rank; i++)
        fits =
            updates->dims[i] == (i < indices->rank - 1 ? indices->dims[i] : x->dims[depth + i - (indices->rank - 1)]);
    if (!fits)
        return tn_eval_fail(e, TN_ERR_INPUT, "the shapes of x, indices and updates do not fit together");
    return scatter_into_copy(e, true, scatter_nd);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

#define REDUCTION \
    { .name = "reduction", .kind = TN_ATTR_STRING, .s = "none", .allowed = "none|add|mul|max|min" }
static const tn_attr_spec gather_elements_attrs[] = {{.name = "axis", .kind = TN_ATTR_INT, .required = true}, {0}};
static const tn_attr_spec gather_nd_attrs[] = {{.name = "batch_dims", .kind = TN_ATTR_INT}, {0}};
static const tn_attr_spec scatter_elements_attrs[] = {
    {.name = "axis", .kind = TN_ATTR_INT, .required = true}, REDUCTION, {0}};
static const tn_attr_spec scatter_nd_attrs[] = {REDUCTION, {0}};

static const tn_op rows[] = {
    {.name = "gather_elements",
     .min_inputs = 2,
     .max_inputs = 2,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_EXACT,
     .attrs = gather_elements_attrs,
     .inputs = "x, indices",
     .doc = "Element by element, that of x at the same position but for the axis, where the index says which.",
     .infer = infer_gather_elements,
     .eval = eval_gather_elements,
     .host = TN_HOST_PICK},
    {.name = "gather_nd",
     .min_inputs = 2,
     .max_inputs = 2,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_EXACT,
     .attrs = gather_nd_attrs,
     .inputs = "x, indices",
     .doc = "The slices of x that the tuples along the last axis of the indices name, after batch_dims shared axes.",
     .infer = infer_gather_nd,
     .eval = eval_gather_nd},
    {.name = "scatter_elements",
     .min_inputs = 3,
     .max_inputs = 3,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_EXACT,
     .attrs = scatter_elements_attrs,
     .inputs = "x, indices, updates",
     .doc = "x with each update put at its own position but for the axis, where the index says which; in order, "
            "combined as the reduction says.",
     .infer = infer_scatter_elements,
     .eval = eval_scatter_elements,
     .host = TN_HOST_PICK,
     .code = 1},
    {.name = "scatter_nd",
     .min_inputs = 3,
     .max_inputs = 3,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_EXACT,
     .attrs = scatter_nd_attrs,
     .inputs = "x, indices, updates",
     .doc = "x with each slice of the updates put where its tuple along the last axis of the indices says; in order, "
            "combined as the reduction says.",
     .infer = infer_scatter_nd,
     .eval = eval_scatter_nd},
};
const tn_op_family tn_family_scatter = {rows, sizeof rows / sizeof *rows};
