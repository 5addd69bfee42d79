/* gather_elements, and scatter_elements that replaces: row by row of the indices. */
#include "kernels/host.h"

#include <string.h>

#define CHUNK 512

typedef struct pick {
    const tn_tensor *indices;                    /* contiguous */
    char *data, *row;                            /* what is picked from or put into; what lies as the indices do */
    int64_t element, limit, stride[TN_MAX_RANK]; /* of data, in elements */
    int axis;
    bool scatter;
    _Atomic bool *bad; /* an index is out of range */
} pick;

typedef struct pair {
    uint64_t a, b;
} pair;

/* Element i of `row` and the one of `data` that index i names along the axis, `beside` elements further for each; an index out of range names
   the first. */
#define MOVE(T)                                                \
    {                                                          \
        T *a = data, *b = row;                                 \
        for (int64_t i = 0; i < n; i++) {                      \
            int64_t k = index[i] + (index[i] < 0 ? limit : 0); \
            bool out = (uint64_t)k >= (uint64_t)limit;         \
            T *named = a + (out ? 0 : k) * step + i * beside;  \
            bad |= out;                                        \
            if (scatter)                                       \
                *named = b[i];                                 \
            else                                               \
                b[i] = *named;                                 \
        }                                                      \
        return !bad;                                           \
    }
static inline __attribute__((always_inline)) bool move(bool scatter, int64_t element, int64_t n, const int64_t *index,
                                                       int64_t limit, int64_t step, int64_t beside, void *data,
                                                       void *row) {
    bool bad = false;
    switch (element) {
    case 1: MOVE(uint8_t)
    case 2: MOVE(uint16_t)
    case 4: MOVE(uint32_t)
    case 8: MOVE(uint64_t)
    default: MOVE(pair)
    }
}

static bool move_chunk(const pick *w, int64_t n, const int64_t *index, char *data, char *row) {
    int last = w->indices->rank - 1;
    int64_t step = w->stride[w->axis], beside = last == w->axis ? 0 : w->stride[last];
    return w->scatter ? move(true, w->element, n, index, w->limit, step, beside, data, row)
                      : move(false, w->element, n, index, w->limit, step, beside, data, row);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): a tn_host_body */
static void rows(const void *ctx, int64_t begin, int64_t end, char *scratch) {
    const pick *w = ctx;
    const tn_tensor *indices = w->indices;
    int last = indices->rank - 1;
    int64_t length = indices->dims[last], step = last == w->axis ? 0 : w->stride[last], room[CHUNK];
    (void)scratch;
    for (int64_t row = begin; row < end && !*w->bad; row++) {
        int64_t left = row, base = 0;
        for (int i = last - 1; i >= 0; i--) {
            base += i == w->axis ? 0 : left % indices->dims[i] * w->stride[i];
            left /= indices->dims[i];
        }
        for (int64_t done = 0; done < length; done += CHUNK) {
            int64_t n = length - done < CHUNK ? length - done : CHUNK, first = row * length + done;
            const int64_t *index = (const int64_t *)indices->data + first;
            if (indices->dtype == TN_I32) {
                for (int64_t i = 0; i < n; i++)
                    room[i] = ((const int32_t *)indices->data)[first + i];
                index = room;
            }
            if (!move_chunk(w, n, index, w->data + (base + done * step) * w->element, w->row + first * w->element))
                *w->bad = true;
        }
    }
}

static tn_status run(const tn_eval *e, pick *w, bool *done) {
    _Atomic bool bad = false;
    int last = w->indices->rank - 1;
    int64_t length = w->indices->dims[last], count = w->indices->count / length;
    w->bad = &bad;
    /* rows that are put into share elements unless the axis is the last: they keep their order */
    TN_TRY(tn_host_split(e, count, w->scatter && w->axis != last ? count : 1, 2.0 * (double)length, 0, rows, w));
    *done = !bad; /* else eval says which index */
    return TN_OK;
}

static bool aligned(const tn_tensor *t, int64_t element) {
    return (uintptr_t)t->data % (size_t)(element > 8 ? 8 : element) == 0;
}

tn_status tn_host_pick(tn_eval *e, tn_isa isa, bool *done) {
    const tn_tensor *x = tn_eval_in(e, 0), *indices = tn_eval_in(e, 1);
    int axis = (int)tn_attr_int(e->graph, e->node, "axis");
    pick w = {.element = tn_dtype_bits((tn_dtype)x->dtype) / 8,
              .limit = x->dims[axis],
              .axis = axis,
              .scatter = tn_node_op(e->graph, e->node)->code};
    const tn_tensor *updates = w.scatter ? tn_eval_in(e, 2) : NULL;
    bool fits = x->dtype != TN_STRING && w.element && indices->count > 0 && w.limit > 0 && indices->rank == x->rank;
    for (int i = 0; i < x->rank && fits; i++)
        fits = (i == axis || indices->dims[i] <= x->dims[i]) && (!updates || updates->dims[i] == indices->dims[i]);
    if (!fits || (w.scatter && !tn_attr_string_is(e->graph, e->node, "reduction", "none")) ||
        (!w.scatter && !aligned(x, w.element)))
        return TN_OK;
    const tn_tensor *like = w.scatter ? x : indices;
    tn_tensor *out = tn_eval_result(e, 0, (tn_dtype)x->dtype, like->rank, like->dims), *put = NULL;
    tn_tensor *at = out ? tn_host_flat(e, 1, isa, &fits) : NULL;
    if (at && w.scatter)
        put = tn_host_flat(e, 2, isa, &fits);
    tn_status status = out && !fits ? TN_OK : at && (put || !w.scatter) ? TN_OK : tn_error_status();
    if (at && (put || !w.scatter)) {
        w.indices = at;
        w.data = w.scatter ? out->data : x->data;
        w.row = w.scatter ? put->data : out->data;
        memcpy(w.stride, w.scatter ? out->strides : x->strides, sizeof w.stride);
        if (w.scatter)
            status = tn_copy_tensor(out, x, isa, e->pool);
        if (status == TN_OK)
            status = run(e, &w, done);
    }
    tn_tensor_destroy(at);
    tn_tensor_destroy(put);
    return status;
}
