/* Shared parts of the rows that move single elements. */
#include "ops/plain.h"

#include <inttypes.h>

#include "base/number.h"

/* --- infer -------------------------------------------------------------------------------------------------------- */

tn_status tn_infer_indices(tn_infer *c, uint32_t index, tn_operand_type *out) {
    TN_TRY(tn_infer_operand(c, index, out));
    if (out->dtype != TN_I64 && out->dtype != TN_I32)
        return tn_infer_fail(c, "input %u is %s, it must be i64 or i32", (unsigned)index, tn_dtype_name(out->dtype));
    return TN_OK;
}

tn_status tn_infer_attr_axis(tn_infer *c, int rank, int *axis) {
    int64_t value = tn_attr_int(c->graph, c->node, "axis");
    TN_TRY(tn_infer_axis(c, "axis", value, rank));
    *axis = (int)value;
    return TN_OK;
}

tn_status tn_infer_flag(tn_infer *c, const char *attr, bool *value) {
    int64_t v = tn_attr_int(c->graph, c->node, attr);
    if (v != 0 && v != 1)
        return tn_infer_fail(c, "attribute '%s' is %" PRId64 ", it must be 0 or 1", attr, v);
    *value = v != 0;
    return TN_OK;
}

tn_status tn_infer_vector(tn_infer *c, uint32_t index, int *length) {
    tn_operand_type v;
    int64_t n;
    TN_TRY(tn_infer_indices(c, index, &v));
    if (v.rank != 1)
        return tn_infer_fail(c, "input %u has rank %d, it must be a vector", (unsigned)index, v.rank);
    if (!tn_dim_is_const(c->graph, v.dims[0], &n))
        return tn_infer_unsupported(c, "input %u of a length that is not known now", (unsigned)index);
    if (n > TN_MAX_RANK)
        return tn_infer_fail(c, "input %u has %" PRId64 " elements, above the rank limit of %d", (unsigned)index, n,
                             TN_MAX_RANK);
    *length = (int)n;
    return TN_OK;
}

/* --- elements of any width ---------------------------------------------------------------------------------------- */

tn_tensor *tn_plain_input(tn_heap *heap, tn_tensor *x, bool flat) {
    if (tn_dtype_is_subbyte((tn_dtype)x->dtype))
        return tn_unpack_bits(heap, x);
    return flat ? tn_tensor_contiguous(heap, x) : tn_tensor_retain(x);
}

tn_status tn_plain_begin(tn_eval *e, uint32_t output, tn_dtype dtype, int rank, const int64_t *dims,
                         tn_plain_output *o) {
    o->to = NULL;
    o->out = tn_eval_result(e, output, dtype, rank, dims);
    if (o->out == NULL)
        return tn_error_status();
    o->to = tn_dtype_is_subbyte(dtype) ? tn_tensor_new(e->heap, TN_U8, rank, dims) : tn_tensor_retain(o->out);
    return o->to != NULL ? TN_OK : tn_error_status();
}

tn_status tn_plain_end(tn_plain_output *o, tn_status status) {
    if (status == TN_OK && o->to != NULL && o->to != o->out)
        tn_pack_bits(o->out, o->to);
    tn_tensor_destroy(o->to);
    o->to = NULL;
    return status;
}

/* --- walking ------------------------------------------------------------------------------------------------------ */

void tn_cursor_begin(tn_cursor *c, int rank, const int64_t *dims) {
    c->rank = rank;
    c->operands = 0;
    c->count = 1;
    for (int i = 0; i < rank; i++) {
        c->dims[i] = dims[i];
        c->index[i] = 0;
        if (dims[i] == 0)
            c->count = 0;
    }
    for (int i = 0; i < rank && c->count != 0; i++)
        c->count *= dims[i];
}

void tn_cursor_operand(tn_cursor *c, const int64_t *strides, int skip) {
    int k = c->operands++;
    c->offset[k] = 0;
    for (int i = 0; i < c->rank; i++)
        c->strides[k][i] = i == skip ? 0 : strides[i];
}

tn_status tn_eval_index(tn_eval *e, const tn_tensor *indices, int64_t offset, int64_t limit, int64_t *index) {
    int64_t k = tn_load_i64((tn_dtype)indices->dtype, indices->data, offset);
    if (k < -limit || k >= limit)
        return tn_eval_fail(e, TN_ERR_INPUT, "index %" PRId64 " is out of range for %" PRId64 " elements", k, limit);
    *index = k < 0 ? k + limit : k;
    return TN_OK;
}

tn_status tn_eval_vector(tn_eval *e, uint32_t input, int count, int64_t *values) {
    const tn_tensor *v = tn_eval_in(e, input);
    if (v->rank > 1 || v->count != count)
        return tn_eval_fail(e, TN_ERR_INPUT, "input %u has %" PRId64 " elements where %d are needed", (unsigned)input,
                            v->count, count);
    for (int i = 0; i < count; i++)
        values[i] = tn_load_i64((tn_dtype)v->dtype, v->data, v->rank == 0 ? 0 : i * v->strides[0]);
    return TN_OK;
}

/* --- lanes -------------------------------------------------------------------------------------------------------- */

tn_lanes tn_lanes_of(int rank, const int64_t *dims, int axis) {
    tn_lanes l = {1, dims[axis], 1};
    for (int i = 0; i < rank; i++)
        if (i != axis && dims[i] == 0)
            return (tn_lanes){0, dims[axis], 0};
    for (int i = 0; i < axis; i++)
        l.outer *= dims[i];
    for (int i = axis + 1; i < rank; i++)
        l.inner *= dims[i];
    return l;
}

uint64_t tn_order_key(tn_dtype dtype, const void *data, int64_t index) {
    const uint64_t top = (uint64_t)1 << 63;
    if (tn_dtype_is_float(dtype)) {
        double value = tn_load_f64(dtype, data, index);
        uint64_t bits;
        if (value != value)
            return UINT64_MAX;
        if (value == 0)
            return top;
        memcpy(&bits, &value, sizeof bits);
        return bits & top ? ~bits : bits | top;
    }
    uint64_t bits = (uint64_t)tn_load_i64(dtype, data, index);
    return tn_dtype_is_signed(dtype) ? bits ^ top : bits;
}

int tn_order_strings(const tn_string *a, const tn_string *b) {
    size_t n = a->length < b->length ? a->length : b->length;
    int order = n > 0 ? memcmp(a->data, b->data, n) : 0;
    if (order == 0)
        order = (a->length > b->length) - (a->length < b->length);
    return order < 0 ? -1 : order > 0;
}
