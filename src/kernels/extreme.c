/* argmax, argmin: along the axis where it is the last one, else beside each other. Positions are looked for in the order in which they win:
   from the back for the last of equal ones. */
#include "kernels/host.h"

#define CHUNK 2048

typedef struct extreme {
    tn_keys keys;
    tn_lanes lanes;
    const char *x;
    int64_t element, *out;
    bool last;
} extreme;

static int64_t along(const extreme *w, const char *x) {
    int64_t room[CHUNK], length = w->lanes.length, top = INT64_MIN, best = w->last ? length - 1 : 0;
    for (int64_t done = 0; done < length; done += CHUNK) {
        int64_t n = length - done < CHUNK ? length - done : CHUNK, first = w->last ? length - done - n : done;
        const void *keys = tn_keys_of(&w->keys, n, x + first * w->element, room);
        int64_t most = w->keys.level->most(n, keys), i = n - 1;
        if (most <= top)
            continue;
        if (w->last)
            while (tn_keys_at(&w->keys, keys, i) != most)
                i--;
        else /* nothing is above; where nothing is below, it is the first */
            i = most == (w->keys.wide ? INT64_MIN : INT32_MIN) ? 0 : w->keys.level->find(n, keys, 0, most - 1);
        top = most;
        best = first + i;
    }
    return best;
}

static void beside(const extreme *w, const char *x, int64_t n, int64_t *out) {
    int64_t room[CHUNK], best[CHUNK], at[CHUNK], length = w->lanes.length;
    for (int64_t i = 0; i < n; i++)
        if (w->keys.wide) {
            best[i] = INT64_MIN;
            at[i] = w->last ? length - 1 : 0;
        } else {
            ((int32_t *)best)[i] = INT32_MIN;
            ((int32_t *)at)[i] = (int32_t)(w->last ? length - 1 : 0);
        }
    for (int64_t k = 0; k < length; k++) {
        int64_t row = w->last ? length - 1 - k : k;
        const void *keys = tn_keys_of(&w->keys, n, x + row * w->lanes.inner * w->element, room);
        w->keys.level->across(n, keys, row, best, at);
    }
    for (int64_t i = 0; i < n; i++)
        out[i] = tn_keys_at(&w->keys, at, i);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): a tn_host_body */
static void lanes(const void *ctx, int64_t begin, int64_t end, char *scratch) {
    const extreme *w = ctx;
    int64_t inner = w->lanes.inner;
    (void)scratch;
    while (begin < end) {
        const char *x = w->x + (begin / inner * w->lanes.length * inner + begin % inner) * w->element;
        if (inner == 1) {
            w->out[begin++] = along(w, x);
            continue;
        }
        int64_t n = inner - begin % inner;
        n = n < end - begin ? n : end - begin;
        n = n < CHUNK ? n : CHUNK;
        beside(w, x, n, w->out + begin);
        begin += n;
    }
}

tn_status tn_host_extreme(tn_eval *e, tn_isa isa, bool *done) {
    const tn_tensor *x = tn_eval_in(e, 0);
    const tn_op *op = tn_node_op(e->graph, e->node);
    int axis = (int)tn_attr_int(e->graph, e->node, "axis"), rank = 0;
    bool keep = tn_attr_int(e->graph, e->node, "keepdims") != 0, fits;
    int64_t dims[TN_MAX_RANK];
    extreme w = {.lanes = tn_lanes_of(x->rank, x->dims, axis),
                 .element = tn_dtype_bits((tn_dtype)x->dtype) / 8,
                 .last = tn_attr_int(e->graph, e->node, "select_last") != 0};
    if (!tn_keys_make(&w.keys, (tn_dtype)x->dtype, op->code == TN_SCALAR_MIN, true, isa) || x->count == 0 ||
        w.lanes.length > INT32_MAX)
        return TN_OK;
    for (int i = 0; i < x->rank; i++)
        if (i != axis)
            dims[rank++] = x->dims[i];
        else if (keep)
            dims[rank++] = 1;
    tn_tensor *out = tn_eval_result(e, 0, TN_I64, rank, dims), *flat = out ? tn_host_flat(e, 0, isa, &fits) : NULL;
    if (!flat)
        return out && !fits ? TN_OK : tn_error_status();
    w.x = flat->data;
    w.out = out->data;
    tn_status status =
        tn_host_split(e, out->count, w.lanes.inner == 1 ? 1 : TN_HOST_BESIDE, (double)w.lanes.length, 0, lanes, &w);
    tn_tensor_destroy(flat);
    *done = status == TN_OK;
    return status;
}
