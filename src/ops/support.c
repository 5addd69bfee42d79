/* Shared parts of the rows that move, reduce and contract tensors. */
#include "ops/support.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/number.h"

/* --- infer -------------------------------------------------------------------------------------------------------- */

const char *tn_dim_describe(tn_graph *graph, tn_dim dim, char *text, size_t size) {
    tn_text out;
    tn_text_init(&out, graph->heap);
    tn_dim_print(tn_graph_dims(graph), dim, &out);
    snprintf(text, size, "%s", out.data != NULL ? out.data : "?");
    tn_text_free(&out);
    return text;
}

tn_status tn_infer_attr_dims(tn_infer *c, const char *attr, int count, bool sizes, const tn_dim **dims, int *found) {
    uint32_t n = tn_attr_dims(c->graph, c->node, attr, dims);
    if (count >= 0 && n != (uint32_t)count)
        return tn_infer_fail(c, "attribute '%s' has %u entries for %d dimensions", attr, n, count);
    if (n > TN_MAX_RANK)
        return tn_infer_fail(c, "attribute '%s' has %u entries, above the rank limit of %d", attr, n, TN_MAX_RANK);
    for (uint32_t i = 0; i < n; i++) {
        int64_t low, high;
        if ((*dims)[i].id == 0)
            return tn_infer_fail(c, "entry %u of attribute '%s' is no dimension", i, attr);
        tn_dim_bounds(c->graph, (*dims)[i], &low, &high);
        if (sizes && high < 0) {
            char text[64];
            return tn_infer_fail(c, "entry %u of attribute '%s' is negative (%s)", i, attr,
                                 tn_dim_describe(c->graph, (*dims)[i], text, sizeof text));
        }
    }
    if (found != NULL)
        *found = (int)n;
    return TN_OK;
}

tn_status tn_infer_attr_ints(tn_infer *c, const char *attr, int count, int64_t low, const int64_t **ints) {
    uint32_t n = tn_attr_ints(c->graph, c->node, attr, ints);
    if (n != (uint32_t)count)
        return tn_infer_fail(c, "attribute '%s' has %u entries for %d dimensions", attr, n, count);
    for (uint32_t i = 0; i < n; i++)
        if ((*ints)[i] < low)
            return tn_infer_fail(c, "entry %u of attribute '%s' is %" PRId64 ", it must be at least %" PRId64, i, attr,
                                 (*ints)[i], low);
    return TN_OK;
}

tn_status tn_infer_attr_axes(tn_infer *c, const char *attr, int rank, bool *marked, const int64_t **axes, int *count) {
    uint32_t n = tn_attr_ints(c->graph, c->node, attr, axes);
    if (n > (uint32_t)rank)
        return tn_infer_fail(c, "attribute '%s' has %u axes for a tensor of rank %d", attr, n, rank);
    for (uint32_t i = 0; i < n; i++) {
        TN_TRY(tn_infer_axis(c, attr, (*axes)[i], rank));
        if (marked[(*axes)[i]])
            return tn_infer_fail(c, "axis %" PRId64 " occurs twice in attribute '%s'", (*axes)[i], attr);
        marked[(*axes)[i]] = true;
    }
    *count = (int)n;
    return TN_OK;
}

tn_dim tn_infer_count(tn_infer *c, const char *what, int rank, const tn_dim *dims) {
    int64_t numbers = 1; /* their product */
    int other = -1, others = 0;
    bool fits = true;
    for (int i = 0; i < rank; i++) {
        int64_t value;
        if (!tn_dim_is_const(c->graph, dims[i], &value)) {
            other = i;
            others++;
            continue;
        }
        if (value == 0)
            return tn_dim_const(c->graph, 0);
        fits = fits && !__builtin_mul_overflow(numbers, value, &numbers);
    }
    bool simple = fits && others < 2; /* the same, multiplied once */
    tn_dim count = tn_dim_const(c->graph, simple ? numbers : 1);
    if (simple && others)
        count = tn_dim_mul(c->graph, count, dims[other]);
    for (int i = 0; i < rank && count.id != 0 && !simple; i++)
        count = tn_dim_mul(c->graph, count, dims[i]);
    if (count.id == 0)
        tn_infer_fail(c, "the number of elements of %s overflows", what);
    return count;
}

tn_status tn_infer_accumulator(tn_infer *c, tn_dtype dtype, tn_dtype *acc) {
    int64_t value = tn_attr_int(c->graph, c->node, "acc");
    *acc = TN_DTYPE_NONE;
    if (value == TN_DTYPE_NONE)
        return TN_OK;
    if (value < 0 || value >= TN_DTYPE_COUNT)
        return tn_infer_fail(c, "attribute 'acc' is no dtype (%" PRId64 ")", value);
    if (tn_dtype_is_float(dtype) != tn_dtype_is_float((tn_dtype)value) ||
        tn_dtype_is_int(dtype) != tn_dtype_is_int((tn_dtype)value) ||
        tn_dtype_bits((tn_dtype)value) < tn_dtype_bits(dtype))
        return tn_infer_fail(c, "%s cannot be accumulated in %s", tn_dtype_name(dtype), tn_dtype_name((tn_dtype)value));
    *acc = (tn_dtype)value;
    return TN_OK;
}

tn_status tn_infer_window(tn_infer *c, const char *what, int axis, tn_dim in, tn_dim lo, tn_dim hi, tn_dim window,
                          int64_t stride, int64_t dilation, tn_dim *out) {
    tn_graph *g = c->graph;
    tn_dim one = tn_dim_const(g, 1);
    tn_dim padded = tn_dim_add(g, in, lo), reach, last;
    int64_t low, high;
    if (padded.id != 0)
        padded = tn_dim_add(g, padded, hi);
    reach = tn_dim_sub(g, window, one);
    if (reach.id != 0)
        reach = tn_dim_mul(g, reach, tn_dim_const(g, dilation));
    last = padded.id != 0 && reach.id != 0 ? tn_dim_sub(g, padded, reach) : (tn_dim){0};
    if (last.id != 0)
        last = tn_dim_sub(g, last, one);
    *out = last.id != 0 ? tn_dim_floordiv(g, last, tn_dim_const(g, stride)) : (tn_dim){0};
    if (out->id != 0)
        *out = tn_dim_add(g, *out, one);
    if (out->id == 0)
        return tn_infer_fail(c, "the size of %s %d of the output overflows", what, axis);
    tn_dim_bounds(g, *out, &low, &high);
    if (high < 0) {
        char a[64], b[64];
        return tn_infer_fail(
            c, "a window of %s elements with dilation %" PRId64 " does not fit in %s %d of %s elements, padded",
            tn_dim_describe(g, window, a, sizeof a), dilation, what, axis, tn_dim_describe(g, padded, b, sizeof b));
    }
    return TN_OK;
}

/* --- eval --------------------------------------------------------------------------------------------------------- */

tn_status tn_eval_sizes(const tn_eval *e, const char *attr, int count, int64_t *values) {
    TN_TRY(tn_eval_dims(e, attr, (uint32_t)count, values));
    for (int i = 0; i < count; i++)
        if (values[i] < 0)
            return tn_eval_fail(e, TN_ERR_INPUT, "entry %d of '%s' is negative (%" PRId64 ")", i, attr, values[i]);
    return TN_OK;
}

tn_status tn_eval_window(const tn_eval *e, const char *what, int axis, int64_t in, int64_t lo, int64_t hi,
                         int64_t window, int64_t stride, int64_t dilation, int64_t *out) {
    int64_t padded, reach;
    if (!tn_add_i64(in, lo, &padded) || !tn_add_i64(padded, hi, &padded) || window < 0 ||
        !tn_mul_i64(window - 1, dilation, &reach) || !tn_add_i64(padded - 1, -reach, &padded))
        return tn_eval_fail(e, TN_ERR_LIMIT, "the size of %s %d of the output overflows", what, axis);
    int64_t steps = padded / stride - (padded % stride < 0); /* rounded down */
    if (steps < -1)
        return tn_eval_fail(e, TN_ERR_INPUT,
                            "a window of %" PRId64 " elements with dilation %" PRId64
                            " does not fit in %s %d of %" PRId64 " elements, padded by %" PRId64 " and %" PRId64,
                            window, dilation, what, axis, in, lo, hi);
    *out = steps + 1;
    return TN_OK;
}

tn_tensor *tn_eval_contiguous(const tn_eval *e, tn_tensor *x) {
    size_t bytes = x->contiguous ? 0 : tn_tensor_bytes(x);
    if (e->max_bytes && bytes > e->max_bytes) {
        tn_eval_fail(e, TN_ERR_LIMIT, "%zu bytes more would be needed, %zu are left", bytes, e->max_bytes);
        return NULL;
    }
    return tn_tensor_contiguous(e->heap, x);
}

/* The strides of x seen in another shape of as many elements (at least one); false when its elements do not lie so. Both shapes are
   cut, from the last dimension on, into the shortest pieces of equal products: those of x must each be one run. */
static bool strides_of_shape(const tn_tensor *x, int rank, const int64_t *dims, int64_t *strides) {
    int from = x->rank, to = rank;
    while (from > 0 || to > 0) {
        int from_end = from, to_end = to;
        int64_t have = from > 0 ? x->dims[--from] : 1, want = to > 0 ? dims[--to] : 1;
        while (have != want) {
            if (have < want ? from == 0 : to == 0)
                return false;
            if (have < want)
                have *= x->dims[--from];
            else
                want *= dims[--to];
        }
        int64_t step = 0, next = 0; /* between neighbours of the piece; what the next larger dimension must have */
        bool begun = false;
        for (int i = from_end - 1; i >= from; i--) {
            if (x->dims[i] == 1)
                continue;
            if (begun && x->strides[i] != next)
                return false;
            step = begun ? step : x->strides[i];
            begun = true;
            next = x->strides[i] * x->dims[i];
        }
        for (int i = to_end - 1; i >= to; i--) {
            strides[i] = step;
            step *= dims[i];
        }
    }
    return true;
}

static void put_dims(tn_text *out, int rank, const int64_t *dims) {
    tn_text_add(out, "[");
    for (int i = 0; i < rank; i++)
        tn_text_printf(out, "%s%" PRId64, i ? "," : "", dims[i]);
    tn_text_add(out, "]");
}

static tn_status fail_reshape(const tn_eval *e, const tn_tensor *x, int rank, const int64_t *dims) {
    tn_text from, to;
    tn_text_init(&from, e->heap);
    tn_text_init(&to, e->heap);
    put_dims(&from, x->rank, x->dims);
    put_dims(&to, rank, dims);
    tn_eval_fail(e, TN_ERR_INPUT, "%s cannot become %s: x has %" PRId64 " elements, the new shape another number",
                 from.failed ? "x" : from.data, to.failed ? "this shape" : to.data, x->count);
    tn_fail_hint("the sizes of the new shape must multiply to %" PRId64
                 "; a size that was written into the model as a number may belong to the input it was exported with",
                 x->count);
    tn_text_free(&from);
    tn_text_free(&to);
    return TN_ERR_INPUT;
}

tn_status tn_eval_reshaped(tn_eval *e, tn_tensor *x, int rank, const int64_t *dims) {
    int64_t count, strides[TN_MAX_RANK];
    if (tn_dims_count(rank, dims, &count) != TN_OK || count != x->count)
        return fail_reshape(e, x, rank, dims);
    tn_tensor *y = NULL;
    if (!x->contiguous && count > 0 && strides_of_shape(x, rank, dims, strides))
        y = tn_tensor_view(e->heap, x, (tn_dtype)x->dtype, rank, dims, strides, 0);
    else {
        tn_tensor *whole = tn_eval_contiguous(e, x);
        y = whole != NULL ? tn_tensor_view(e->heap, whole, (tn_dtype)x->dtype, rank, dims, NULL, 0) : NULL;
        tn_tensor_destroy(whole);
    }
    return y != NULL ? tn_eval_set(e, 0, tn_tensor_object(y)) : tn_error_status();
}

tn_tensor *tn_unpack_bits(tn_heap *heap, const tn_tensor *packed) {
    tn_tensor *bytes = tn_tensor_new(heap, TN_U8, packed->rank, packed->dims);
    if (bytes == NULL)
        return NULL;
    int bits = tn_dtype_bits((tn_dtype)packed->dtype), mask = (1 << bits) - 1;
    const uint8_t *from = packed->data;
    uint8_t *to = bytes->data;
    int64_t each = 8 / bits;
    for (int64_t i = 0; i < packed->count; i++)
        to[i] = (uint8_t)(from[i / each] >> (i % each * bits) & mask);
    return bytes;
}

typedef struct pack_state {
    uint8_t *to;
    int bits;
    int64_t at; /* next element */
} pack_state;

static void pack_row(void *ctx, int64_t n, void *const *data, const int64_t *strides) {
    pack_state *s = ctx;
    const uint8_t *from = data[0];
    int64_t each = 8 / s->bits;
    for (int64_t i = 0; i < n; i++, s->at++) {
        int shift = (int)(s->at % each) * s->bits;
        uint8_t *byte = &s->to[s->at / each];
        int kept = shift == 0 ? 0 : *byte;
        *byte = (uint8_t)(kept | from[i * strides[0]] << shift);
    }
}

void tn_pack_bits(tn_tensor *packed, const tn_tensor *bytes) {
    pack_state s = {packed->data, tn_dtype_bits((tn_dtype)packed->dtype), 0};
    const tn_walk_operand operand = {bytes->data, bytes->strides, 1};
    tn_walk(bytes->rank, bytes->dims, 1, &operand, pack_row, &s);
}

#define COPY(size)                                                                           \
    for (int64_t i = 0; i < n; i++)                                                          \
        memcpy(target + i * (size), source + (index != NULL ? index[i] : i) * step, (size)); \
    break

tn_status tn_copy_indexed(tn_tensor *to, int64_t first, const tn_tensor *from, int64_t offset, const int64_t *index,
                          int64_t stride, int64_t n) {
    int64_t size = tn_dtype_bits((tn_dtype)to->dtype) / 8, step = stride * size;
    if (n == 0)
        return TN_OK;
    char *target = (char *)to->data + first * size;
    const char *source = (const char *)from->data + offset * size;
    if (to->dtype == TN_STRING) {
        for (int64_t i = 0; i < n; i++) {
            tn_string text;
            memcpy(&text, source + (index != NULL ? index[i] : i) * step, sizeof text);
            TN_TRY(tn_tensor_set_string(to, first + i, text.data, text.length));
        }
        return TN_OK;
    }
    if (index == NULL && stride == 1) {
        memcpy(target, source, (size_t)(n * size));
        return TN_OK;
    }
    switch (size) {
    case 1: COPY(1);
    case 2: COPY(2);
    case 4: COPY(4);
    case 8: COPY(8);
    default: COPY(16);
    }
    return TN_OK;
}

void tn_space_init(tn_space *space, int rank, const int64_t *dims, const int64_t *strides) {
    space->rank = 0;
    space->count = 1;
    for (int i = 0; i < rank; i++)
        if (dims[i] == 0) {
            space->count = 0;
            return;
        }
    for (int i = 0; i < rank; i++) {
        int at = space->rank - 1;
        int64_t reach;
        if (dims[i] == 1)
            continue;
        space->count *= dims[i];
        if (at >= 0 && tn_mul_i64(strides[i], dims[i], &reach) && reach == space->strides[at]) {
            space->dims[at] *= dims[i];
            space->strides[at] = strides[i];
        } else {
            at = space->rank++;
            space->dims[at] = dims[i];
            space->strides[at] = strides[i];
        }
    }
}

int64_t tn_space_offset(const tn_space *space, int64_t index) {
    int64_t offset = 0;
    if (space->rank == 1)
        return index * space->strides[0];
    for (int i = space->rank - 1; i >= 0; i--) {
        offset += index % space->dims[i] * space->strides[i];
        index /= space->dims[i];
    }
    return offset;
}
