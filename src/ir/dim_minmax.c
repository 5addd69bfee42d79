/* Minimum, maximum and broadcast of dimensions. */
#include <string.h>

#include "ir/dim_work.h"

/* Appends an operand, or those of a nested expression of the same kind. */
static uint32_t flatten(const tn_dims *dims, tn_dim_kind kind, uint32_t id, uint32_t *out) {
    const tn_dim_expr *e = tn_dim_at(dims, id);
    if (e->kind != kind) {
        *out = id;
        return 1;
    }
    memcpy(out, tn_dim_args(dims, e), e->nargs * sizeof *out);
    return e->nargs;
}

static uint32_t width_of(const tn_dims *dims, tn_dim_kind kind, uint32_t id) {
    const tn_dim_expr *e = tn_dim_at(dims, id);
    return e->kind == kind ? e->nargs : 1;
}

static uint32_t sort_and_dedupe(uint32_t *ids, uint32_t count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id = ids[i], at = kept;
        while (at > 0 && ids[at - 1] > id)
            at--;
        if (at > 0 && ids[at - 1] == id)
            continue;
        memmove(ids + at + 1, ids + at, (kept - at) * sizeof *ids);
        ids[at] = id;
        kept++;
    }
    return kept;
}

/* min and max: drops every operand that another makes superfluous. */
static uint32_t prune_extremes(const tn_dims *dims, tn_dim_kind kind, uint32_t *ids, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = i + 1; j < count;) {
            uint32_t small = kind == TN_DIM_MIN ? ids[i] : ids[j], large = kind == TN_DIM_MIN ? ids[j] : ids[i];
            bool drop_j = tn_dim_is_at_most(dims, small, 0, large);
            bool drop_i = !drop_j && tn_dim_is_at_most(dims, large, 0, small);
            if (drop_i)
                ids[i] = ids[j];
            if (drop_i || drop_j) {
                memmove(ids + j, ids + j + 1, (count - j - 1) * sizeof *ids);
                count--;
            }
            if (drop_i)
                j = i + 1; /* a new operand i */
            else if (!drop_j)
                j++;
        }
    return count;
}

/* min and max: two operands that together are always a part of one of them become that part. Pairs alone, whatever else stands there:
   so a form stays itself when it is built anew, operand by operand. */
static bool join_pair(const tn_dims *dims, tn_dim_kind kind, uint32_t *ids, uint32_t *count) {
    for (uint32_t i = 0; i < *count; i++)
        for (uint32_t j = i + 1; j < *count; j++) {
            uint32_t part = tn_pieces_same_part(dims, kind, ids[i], ids[j]);
            if (!part || *count + width_of(dims, kind, part) > TN_DIM_MAX_EXTREMES)
                continue;
            memmove(ids + j, ids + j + 1, (*count - j - 1) * sizeof *ids);
            memmove(ids + i, ids + i + 1, (*count - i - 2) * sizeof *ids);
            *count -= 2;
            *count += flatten(dims, kind, part, ids + *count);
            *count = sort_and_dedupe(ids, *count);
            return true;
        }
    return false;
}

/* broadcast: drops operands that are 1, or what another is, wherever that other is 1. */
static uint32_t keep_results(const tn_dims *dims, uint32_t *ids, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = i + 1; j < count;) {
            bool smaller = tn_dim_at(dims, ids[j])->size < tn_dim_at(dims, ids[i])->size;
            bool drop_j = tn_pieces_broadcast_is(dims, ids[i], ids[j]);
            bool drop_i = (smaller || !drop_j) && tn_pieces_broadcast_is(dims, ids[j], ids[i]);
            if (drop_i)
                ids[i] = ids[j];
            if (drop_i || drop_j) {
                memmove(ids + j, ids + j + 1, (count - j - 1) * sizeof *ids);
                count--;
            }
            if (drop_i)
                j = i + 1; /* a new operand i */
            else if (!drop_j)
                j++;
        }
    return sort_and_dedupe(ids, count);
}

/* broadcast: an operand that is never 1 is the result; ones do not matter. *mismatch: two constants that never fit. */
static uint32_t prune_broadcast(const tn_dims *dims, uint32_t *ids, uint32_t count, bool *mismatch) {
    uint32_t kept = 0, winner = 0;
    bool winner_const = false;
    for (uint32_t i = 0; i < count; i++) {
        const tn_dim_expr *e = tn_dim_at(dims, ids[i]);
        bool constant = e->kind == TN_DIM_CONST;
        tn_interval x = tn_dim_interval(dims, ids[i]);
        if (constant && e->constant == 1)
            continue;
        if (x.low > 1 || x.high < 1) {
            *mismatch = *mismatch || (constant && winner_const);
            if (winner == 0 || (constant && !winner_const))
                winner = ids[i];
            winner_const = winner_const || constant;
        }
        ids[kept++] = ids[i];
    }
    if (winner == 0)
        return kept > TN_DIM_MAX_EXTREMES ? kept : keep_results(dims, ids, kept);
    ids[0] = winner;
    return 1;
}

uint32_t tn_dimw_lattice(tn_dim_work *work, tn_dim_kind kind, uint32_t a, uint32_t b) {
    tn_dims *dims = work->dims;
    if (a == b)
        return a;
    if (kind != TN_DIM_BROADCAST && width_of(dims, kind, a) + width_of(dims, kind, b) > TN_DIM_MAX_EXTREMES) {
        work->why = TN_DIM_TOO_LARGE;
        return 0;
    }
    uint32_t room = width_of(dims, kind, a) + width_of(dims, kind, b) + TN_DIM_MAX_EXTREMES;
    uint32_t *ids = tn_alloc_array(dims->heap, room, sizeof *ids);
    if (ids == NULL) {
        work->why = TN_DIM_MEMORY;
        return 0;
    }
    uint32_t count = flatten(dims, kind, a, ids), id = 0;
    count += flatten(dims, kind, b, ids + count);
    count = sort_and_dedupe(ids, count);
    bool mismatch = false;
    if (kind == TN_DIM_BROADCAST)
        count = prune_broadcast(dims, ids, count, &mismatch);
    else
        do
            count = sort_and_dedupe(ids, prune_extremes(dims, kind, ids, count));
        while (join_pair(dims, kind, ids, &count));
    if (mismatch)
        work->why = TN_DIM_MISMATCH;
    else if (count == 0)
        id = tn_dimw_const(work, 1);
    else
        id = count == 1 ? ids[0] : tn_dimw_intern(work, kind, 0, ids, count);
    tn_free(dims->heap, ids);
    return id;
}
