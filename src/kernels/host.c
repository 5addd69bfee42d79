/* Host instructions by kernels: which one, and what they share. */
#include "kernels/host.h"

#include <stdatomic.h>

#define PIECE_WORK (1 << 15) /* elements */
#define PIECES_EACH 8        /* of a thread */

tn_status tn_kernels_host(tn_eval *e, tn_isa isa, bool *done) {
    static tn_host_run *const runs[] = {[TN_HOST_EXTREME] = tn_host_extreme,
                                        [TN_HOST_RUNNING] = tn_host_running,
                                        [TN_HOST_ORDER] = tn_host_order,
                                        [TN_HOST_PICK] = tn_host_pick,
                                        [TN_HOST_TREES] = tn_host_trees};
    uint8_t which = tn_node_op(e->graph, e->node)->host;
    *done = false;
    for (uint32_t i = 0; which && i < e->inputs; i++)
        if (!e->in[i] || e->in[i]->kind != TN_KIND_TENSOR)
            return TN_OK;
    return which ? runs[which](e, isa, done) : TN_OK;
}

tn_tensor *tn_host_flat(const tn_eval *e, uint32_t input, tn_isa isa, bool *fits) {
    tn_tensor *x = tn_eval_in(e, input);
    size_t element = (size_t)tn_dtype_bits((tn_dtype)x->dtype) / 8;
    *fits = element && x->dtype != TN_STRING;
    if (!*fits)
        return NULL;
    if (x->contiguous && (uintptr_t)x->data % (element > 8 ? 8 : element) == 0)
        return tn_tensor_retain(x);
    *fits = !e->max_bytes || (uint64_t)x->count * element <= e->max_bytes;
    tn_tensor *copy = *fits ? tn_tensor_new(e->heap, (tn_dtype)x->dtype, x->rank, x->dims) : NULL;
    if (copy && tn_copy_tensor(copy, x, isa, e->pool) != TN_OK) {
        tn_tensor_destroy(copy);
        return NULL;
    }
    return copy;
}

typedef struct split {
    int64_t count, per_piece;
    tn_host_body *body;
    const void *ctx;
    tn_places *places; /* NULL: no scratch */
    atomic_bool failed;
} split;

static void piece(void *ctx, int64_t index) {
    split *s = ctx;
    int64_t begin = index * s->per_piece, end = begin + s->per_piece;
    char *scratch = s->places ? tn_places_take(s->places) : NULL;
    if (s->places && !scratch) {
        s->failed = true;
        return;
    }
    s->body(s->ctx, begin, end < s->count ? end : s->count, scratch);
    if (scratch)
        tn_places_give(s->places, scratch);
}

tn_status tn_host_split(const tn_eval *e, int64_t count, int64_t grain, double work, size_t scratch, tn_host_body *body,
                        const void *ctx) {
    if (count == 0)
        return TN_OK;
    double most = (double)count * work / PIECE_WORK;
    int64_t threads = tn_pool_threads(e->pool), pieces = threads == 1 ? 1 : PIECES_EACH * threads;
    pieces = most < 2 ? 1 : most < (double)pieces ? (int64_t)most : pieces;
    tn_places places;
    split s = {.count = count, .body = body, .ctx = ctx, .places = scratch ? &places : NULL};
    s.per_piece = (count + pieces - 1) / pieces;
    s.per_piece = (s.per_piece + grain - 1) / grain * grain;
    pieces = (count + s.per_piece - 1) / s.per_piece;
    if (scratch && !tn_places_make(&places, e->heap, e->pool, pieces, scratch))
        return tn_error_status();
    tn_pool_run(e->pool, pieces, piece, &s);
    if (scratch)
        tn_places_free(&places);
    return s.failed ? tn_fail(TN_ERR_MEMORY, "out of memory in a host instruction") : TN_OK;
}
