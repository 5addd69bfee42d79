/* Evaluation of the movement rows. Views where strides can say it, else copies. Packed elements have no strides:
   they are moved as bytes, then packed again. */
#include "ops/move.h"

#include <inttypes.h>

#include "base/number.h"

typedef tn_tensor *view_function(tn_eval *e, tn_tensor *x, const void *how);

/* Output 0 as a view of input 0 (of its bytes, packed again, for packed dtypes). */
static tn_status answer_view(tn_eval *e, view_function *view, const void *how) {
    tn_tensor *x = tn_eval_in(e, 0);
    if (!tn_dtype_is_subbyte((tn_dtype)x->dtype)) {
        tn_tensor *y = view(e, x, how);
        return y != NULL ? tn_eval_set(e, 0, tn_tensor_object(y)) : tn_error_status();
    }
    tn_tensor *bytes = tn_unpack_bits(e->heap, x);
    tn_tensor *y = bytes != NULL ? view(e, bytes, how) : NULL;
    tn_tensor *out = y != NULL ? tn_eval_result(e, 0, (tn_dtype)x->dtype, y->rank, y->dims) : NULL;
    if (out != NULL)
        tn_pack_bits(out, y);
    tn_tensor_destroy(y);
    tn_tensor_destroy(bytes);
    return out != NULL ? TN_OK : tn_error_status();
}

/* --- reshape, transpose, broadcast, slice ------------------------------------------------------------------------- */

tn_status tn_eval_reshape(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0);
    const tn_dim *shape;
    int rank = (int)tn_attr_dims(e->graph, e->node, "shape", &shape);
    int64_t dims[TN_MAX_RANK];
    TN_TRY(tn_eval_sizes(e, "shape", rank, dims));
    return tn_eval_reshaped(e, x, rank, dims);
}

static tn_tensor *view_transposed(tn_eval *e, tn_tensor *x, const void *how) {
    const int64_t *perm = how;
    int64_t dims[TN_MAX_RANK], strides[TN_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        dims[i] = x->dims[perm[i]];
        strides[i] = x->strides[perm[i]];
    }
    return tn_tensor_view(e->heap, x, (tn_dtype)x->dtype, x->rank, dims, strides, 0);
}

tn_status tn_eval_transpose(tn_eval *e) {
    const int64_t *perm;
    tn_attr_ints(e->graph, e->node, "perm", &perm);
    return answer_view(e, view_transposed, perm);
}

/* A view needs no memory, but who reads it takes its time. */
#define MAX_SPREAD ((int64_t)1 << 40)

typedef struct broadcast_how {
    int rank;
    int64_t dims[TN_MAX_RANK];
} broadcast_how;

static tn_tensor *view_broadcast(tn_eval *e, tn_tensor *x, const void *how) {
    const broadcast_how *to = how;
    int64_t strides[TN_MAX_RANK] = {0}, room = MAX_SPREAD;
    for (int i = 0; i < x->rank; i++) {
        int at = to->rank - x->rank + i;
        if (x->dims[i] == to->dims[at]) {
            strides[at] = x->strides[i];
        } else if (x->dims[i] != 1) {
            tn_eval_fail(e, TN_ERR_INPUT,
                         "axis %d of x has %" PRId64 " elements, which cannot be broadcast to %" PRId64, i, x->dims[i],
                         to->dims[at]);
            tn_fail_hint("a size that is broadcast must be 1, or that of the result");
            return NULL;
        }
    }
    bool empty = false;
    for (int i = 0; i < to->rank; i++) {
        empty = empty || to->dims[i] == 0;
        room /= to->dims[i] ? to->dims[i] : 1;
    }
    if (room == 0 && !empty) {
        tn_eval_fail(e, TN_ERR_LIMIT, "the result has more than 2^40 elements");
        return NULL;
    }
    return tn_tensor_view(e->heap, x, (tn_dtype)x->dtype, to->rank, to->dims, strides, 0);
}

tn_status tn_eval_broadcast(tn_eval *e) {
    const tn_dim *shape;
    broadcast_how how = {.rank = (int)tn_attr_dims(e->graph, e->node, "shape", &shape)};
    TN_TRY(tn_eval_sizes(e, "shape", how.rank, how.dims));
    return answer_view(e, view_broadcast, &how);
}

tn_status tn_eval_fit(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0);
    const tn_dim *shape;
    int rank = (int)tn_attr_dims(e->graph, e->node, "shape", &shape);
    int64_t dims[TN_MAX_RANK];
    TN_TRY(tn_eval_sizes(e, "shape", rank, dims));
    for (int i = 0; i < rank; i++)
        if (x->dims[i] != dims[i])
            return tn_eval_fail(e, TN_ERR_INPUT, "axis %d of x has %" PRId64 " elements, needed are %" PRId64, i,
                                x->dims[i], dims[i]);
    return tn_eval_set(e, 0, tn_object_retain(e->in[0]));
}

typedef struct slice_how {
    int64_t start[TN_MAX_RANK], size[TN_MAX_RANK];
    const int64_t *step;
} slice_how;

static tn_tensor *view_slice(tn_eval *e, tn_tensor *x, const void *how) {
    const slice_how *at = how;
    int64_t strides[TN_MAX_RANK], offset = 0;
    bool empty = false;
    for (int i = 0; i < x->rank; i++)
        empty = empty || at->size[i] == 0;
    for (int i = 0; i < x->rank; i++) {
        __int128 last = at->start[i] + (__int128)(at->size[i] - 1) * at->step[i];
        if (at->size[i] > 0 && (at->start[i] < 0 || at->start[i] >= x->dims[i] || last < 0 || last >= x->dims[i])) {
            tn_eval_fail(e, TN_ERR_INPUT,
                         "slice of %" PRId64 " elements from %" PRId64 " with step %" PRId64
                         " leaves axis %d of %" PRId64 " elements",
                         at->size[i], at->start[i], at->step[i], i, x->dims[i]);
            return NULL;
        }
        /* With two elements or more the step is inside x, so the product is too. */
        strides[i] = at->size[i] > 1 ? x->strides[i] * at->step[i] : x->strides[i];
        if (!empty)
            offset += at->start[i] * x->strides[i];
    }
    return tn_tensor_view(e->heap, x, (tn_dtype)x->dtype, x->rank, at->size, empty ? NULL : strides, offset);
}

tn_status tn_eval_slice(tn_eval *e) {
    slice_how how;
    int rank = tn_eval_in(e, 0)->rank;
    TN_TRY(tn_eval_dims(e, "start", (uint32_t)rank, how.start));
    TN_TRY(tn_eval_sizes(e, "size", rank, how.size));
    tn_attr_ints(e->graph, e->node, "step", &how.step);
    return answer_view(e, view_slice, &how);
}

/* --- pad ---------------------------------------------------------------------------------------------------------- */

typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP } pad_mode;

static pad_mode mode_of(const tn_eval *e) {
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    for (int i = 1; i < 4; i++)
        if (tn_attr_string_is(e->graph, e->node, "mode", names[i]))
            return (pad_mode)i;
    return PAD_CONSTANT;
}

/* Which element of an axis of n > 0 stands at `at`, which may lie outside. */
static int64_t source_of(pad_mode mode, int64_t at, int64_t n) {
    int64_t period;
    switch (mode) {
    case PAD_REFLECT:
        if (n == 1)
            return 0;
        period = 2 * (n - 1);
        at = (at % period + period) % period;
        return at < n ? at : period - at;
    case PAD_WRAP: return (at % n + n) % n;
    default: return at < 0 ? 0 : at >= n ? n - 1 : at;
    }
}

typedef struct pad_state {
    const tn_tensor *x;
    tn_tensor *out;
    int64_t *source[TN_MAX_RANK]; /* by axis and index of out: elements from the first of x; of the last axis indices */
    int64_t before, inside;       /* along the last axis: elements before those of x, and those */
    tn_status status;             /* of strings, which are copied by one thread */
} pad_state;

static tn_status pad_row(const pad_state *s, int64_t row) {
    const tn_tensor *x = s->x;
    int last = x->rank - 1;
    int64_t offset = 0, width = s->out->dims[last], first = row * width, step = x->strides[last],
            after = s->before + s->inside;
    for (int i = last - 1; i >= 0; row /= s->out->dims[i--])
        offset += s->source[i][row % s->out->dims[i]];
    TN_TRY(tn_copy_indexed(s->out, first, x, offset, s->source[last], step, s->before));
    TN_TRY(tn_copy_indexed(s->out, first + s->before, x, offset + (s->inside ? s->source[last][s->before] : 0) * step,
                           NULL, step, s->inside));
    return tn_copy_indexed(s->out, first + after, x, offset, s->source[last] + after, step, width - after);
}

static void pad_rows(void *ctx, int64_t begin, int64_t end) {
    pad_state *s = ctx;
    int64_t width = s->out->dims[s->x->rank - 1];
    for (int64_t row = begin / width; row * width < end && s->status == TN_OK; row++) {
        tn_status status = pad_row(s, row);
        if (status != TN_OK)
            s->status = status;
    }
}

/* Padding with elements of x; out has elements. */
static tn_status pad_from_itself(tn_eval *e, tn_tensor *out, const tn_tensor *x, pad_mode mode, const int64_t *lo) {
    if (x->rank == 0)
        return tn_tensor_assign(out, x);
    int last = x->rank - 1;
    int64_t all = 0, n = out->dims[last];
    for (int i = 0; i <= last; i++)
        all += out->dims[i]; /* out has no fewer elements */
    pad_state s = {.x = x, .out = out};
    int64_t *at = tn_alloc_array(e->heap, (size_t)all, sizeof *at);
    if (at == NULL)
        return tn_error_status();
    for (int i = 0; i <= last; at += out->dims[i++]) {
        s.source[i] = at;
        for (int64_t j = 0; j < out->dims[i]; j++)
            at[j] = source_of(mode, j - lo[i], x->dims[i]) * (i < last ? x->strides[i] : 1);
    }
    s.before = lo[last] <= 0 ? 0 : lo[last] < n ? lo[last] : n;
    s.inside = x->dims[last] + (lo[last] < 0 ? lo[last] : 0);
    s.inside = s.inside < 0 ? 0 : s.inside < n - s.before ? s.inside : n - s.before;
    tn_range_split(out->dtype == TN_STRING ? NULL : e->pool, out->count, n, pad_rows, &s);
    tn_free(e->heap, s.source[0]);
    return s.status;
}

/* Fills `out` with the element at `value` (NULL: zero, the empty string). */
static tn_status fill(tn_tensor *out, const void *value) {
    size_t size = (size_t)tn_dtype_bits((tn_dtype)out->dtype) / 8, total = tn_tensor_bytes(out);
    if (out->dtype == TN_STRING) {
        tn_string text = {"", 0};
        if (value != NULL)
            memcpy(&text, value, sizeof text);
        for (int64_t i = 0; i < out->count; i++)
            TN_TRY(tn_tensor_set_string(out, i, text.data, text.length));
        return TN_OK;
    }
    if (value == NULL) {
        memset(out->data, 0, total);
        return TN_OK;
    }
    memcpy(out->data, value, size);
    for (size_t done = size; done < total;) {
        size_t more = done < total - done ? done : total - done;
        memcpy((char *)out->data + done, out->data, more);
        done += more;
    }
    return TN_OK;
}

static tn_status pad_with_value(tn_eval *e, tn_tensor *out, const tn_tensor *x, const void *value, const int64_t *lo) {
    int64_t offset = 0;
    TN_TRY(fill(out, value));
    if (x->count == 0)
        return TN_OK;
    for (int i = 0; i < x->rank; i++)
        offset += lo[i] * out->strides[i];
    tn_tensor *inside = tn_tensor_view(e->heap, out, (tn_dtype)x->dtype, x->rank, x->dims, out->strides, offset);
    if (inside == NULL)
        return tn_error_status();
    tn_status status = tn_tensor_assign(inside, x);
    tn_tensor_destroy(inside);
    return status;
}

tn_status tn_eval_pad_by(tn_eval *e, tn_tensor *x, tn_tensor *value, const int64_t *lo, const int64_t *hi) {
    int64_t dims[TN_MAX_RANK];
    pad_mode mode = mode_of(e);
    for (int i = 0; i < x->rank; i++) {
        if (!tn_add_i64(x->dims[i], lo[i], &dims[i]) || !tn_add_i64(dims[i], hi[i], &dims[i]))
            return tn_eval_fail(e, TN_ERR_LIMIT, "the size of axis %d of the output overflows", i);
        if (mode != PAD_CONSTANT && x->dims[i] == 0 && dims[i] > 0)
            return tn_eval_fail(e, TN_ERR_INPUT, "axis %d has no elements to pad from", i);
    }
    tn_tensor *out = tn_eval_result(e, 0, (tn_dtype)x->dtype, x->rank, dims);
    if (out == NULL)
        return tn_error_status();
    if (out->count == 0)
        return TN_OK;
    bool packed = tn_dtype_is_subbyte((tn_dtype)x->dtype);
    tn_tensor *from = packed ? tn_unpack_bits(e->heap, x) : x, *bits = NULL;
    tn_tensor *to = packed ? tn_tensor_new(e->heap, TN_U8, x->rank, dims) : out;
    tn_status status = from != NULL && to != NULL ? TN_OK : tn_error_status();
    if (status == TN_OK && packed && value != NULL && (bits = tn_unpack_bits(e->heap, value)) == NULL)
        status = tn_error_status();
    if (status == TN_OK) {
        const tn_tensor *given = packed ? bits : value;
        status = mode == PAD_CONSTANT ? pad_with_value(e, to, from, given != NULL ? given->data : NULL, lo)
                                      : pad_from_itself(e, to, from, mode, lo);
    }
    if (packed) {
        if (status == TN_OK)
            tn_pack_bits(out, to);
        tn_tensor_destroy(from);
        tn_tensor_destroy(to);
        tn_tensor_destroy(bits);
    }
    return status;
}

tn_status tn_eval_pad(tn_eval *e) {
    tn_tensor *x = tn_eval_in(e, 0), *value = e->inputs > 1 && e->in[1] != NULL ? tn_eval_in(e, 1) : NULL;
    int64_t lo[TN_MAX_RANK], hi[TN_MAX_RANK];
    TN_TRY(tn_eval_sizes(e, "lo", x->rank, lo));
    TN_TRY(tn_eval_sizes(e, "hi", x->rank, hi));
    return tn_eval_pad_by(e, x, value, lo, hi);
}

/* --- concat ------------------------------------------------------------------------------------------------------- */

/* Copies x to where `at` on `axis` of out begins. */
static tn_status place(tn_eval *e, tn_tensor *out, tn_tensor *x, int axis, int64_t at) {
    tn_tensor *from = tn_dtype_is_subbyte((tn_dtype)x->dtype) ? tn_unpack_bits(e->heap, x) : tn_tensor_retain(x);
    tn_tensor *part = from != NULL ? tn_tensor_view(e->heap, out, (tn_dtype)from->dtype, x->rank, x->dims, out->strides,
                                                    at * out->strides[axis])
                                   : NULL;
    tn_status status = part != NULL ? tn_tensor_assign(part, from) : tn_error_status();
    tn_tensor_destroy(part);
    tn_tensor_destroy(from);
    return status;
}

tn_status tn_eval_concat(tn_eval *e) {
    tn_tensor *first = tn_eval_in(e, 0);
    int axis = (int)tn_attr_int(e->graph, e->node, "axis");
    int64_t dims[TN_MAX_RANK], at = 0;
    memcpy(dims, first->dims, first->rank * sizeof *dims);
    for (uint32_t k = 1; k < e->inputs; k++) {
        const tn_tensor *x = tn_eval_in(e, k);
        for (int i = 0; i < first->rank; i++)
            if (i != axis && x->dims[i] != dims[i]) {
                tn_eval_fail(e, TN_ERR_INPUT, "axis %d of input %u has %" PRId64 " elements, that of input 0 %" PRId64,
                             i, k, x->dims[i], dims[i]);
                tn_fail_hint("all axes but axis %d, along which they are joined, must be equal", axis);
                return TN_ERR_INPUT;
            }
        if (!tn_add_i64(dims[axis], x->dims[axis], &dims[axis]))
            return tn_eval_fail(e, TN_ERR_LIMIT, "the size of axis %d of the output overflows", axis);
    }
    tn_dtype dtype = (tn_dtype)first->dtype;
    tn_tensor *out = tn_eval_result(e, 0, dtype, first->rank, dims);
    if (out == NULL)
        return tn_error_status();
    bool packed = tn_dtype_is_subbyte(dtype);
    tn_tensor *to = packed ? tn_tensor_new(e->heap, TN_U8, first->rank, dims) : out;
    tn_status status = to != NULL ? TN_OK : tn_error_status();
    for (uint32_t k = 0; k < e->inputs && status == TN_OK; k++) {
        tn_tensor *x = tn_eval_in(e, k);
        if (x->count > 0)
            status = place(e, to, x, axis, at);
        at += x->dims[axis];
    }
    if (packed) {
        if (status == TN_OK)
            tn_pack_bits(out, to);
        tn_tensor_destroy(to);
    }
    return status;
}
