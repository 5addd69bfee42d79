/* sort, top_k: keys, then positions in the order of their keys. Few of many are found by a bound that rises; what is above it waits until
   as many have come as are kept. */
#include "kernels/host.h"

#include <string.h>

#define FEW 64    /* entries that are sorted by insertion */
#define TURNED 16 /* lanes that are read together where they lie beside each other */

/* A part of a key, the earlier the smaller, above the position. */
typedef uint64_t entry;

typedef struct order {
    tn_keys keys;
    tn_lanes lanes;
    int64_t keep, element;
    const char *x;
    char *values;
    int64_t *positions;
} order;

/* By the part of the key; those with equal ones stay in their order. The sorted ones are in `list`. */
static void sort_entries(entry *list, entry *other, int64_t n) {
    if (n <= FEW) {
        for (int64_t i = 1; i < n; i++) {
            entry e = list[i];
            int64_t k = i;
            for (; k > 0 && list[k - 1] >> 32 > e >> 32; k--)
                list[k] = list[k - 1];
            list[k] = e;
        }
        return;
    }
    uint32_t count[4][256];
    entry *from = list, *to = other;
    memset(count, 0, sizeof count);
    for (int64_t i = 0; i < n; i++)
        for (int b = 0; b < 4; b++)
            count[b][list[i] >> (32 + 8 * b) & 255]++;
    for (int b = 0; b < 4; b++) {
        uint32_t *at = count[b], sum = 0;
        if (at[from[0] >> (32 + 8 * b) & 255] == n)
            continue; /* all alike */
        for (int k = 0; k < 256; k++) {
            uint32_t here = at[k];
            at[k] = sum;
            sum += here;
        }
        for (int64_t i = 0; i < n; i++)
            to[at[from[i] >> (32 + 8 * b) & 255]++] = from[i];
        entry *swap = from;
        from = to;
        to = swap;
    }
    if (from != list)
        memcpy(list, from, (size_t)n * sizeof *list);
}

/* The positions of a list in the order of their keys. */
static void sort_positions(const tn_keys *k, const void *keys, entry *list, entry *other, int64_t n) {
    if (k->wide) {
        for (int64_t i = 0; i < n; i++) {
            uint32_t at = (uint32_t)list[i];
            list[i] = (entry) ~(uint32_t)((const int64_t *)keys)[at] << 32 | at;
        }
        sort_entries(list, other, n);
    }
    for (int64_t i = 0; i < n; i++) {
        uint32_t at = (uint32_t)list[i];
        uint32_t high = k->wide ? (uint32_t)(((const uint64_t *)keys)[at] >> 32) : ((const uint32_t *)keys)[at];
        list[i] = (entry)(high ^ 0x7fffffffu) << 32 | at;
    }
    sort_entries(list, other, n);
}

/* Puts a position that comes before the last of `keep` in its place among them; after those of equal keys. */
static void insert(const tn_keys *k, const void *keys, entry *list, int64_t keep, int64_t at) {
    int64_t key = tn_keys_at(k, keys, at), i = keep - 1;
    for (; i > 0 && tn_keys_at(k, keys, (int64_t)(uint32_t)list[i - 1]) < key; i--)
        list[i] = list[i - 1];
    list[i] = (entry)at;
}

/* The first w->keep positions of a lane in order. */
static void select_positions(const order *w, const void *keys, entry *list, entry *other) {
    int64_t n = w->lanes.length, keep = w->keep;
    bool one_by_one = keep <= FEW / 4;
    int64_t room = one_by_one ? keep : 2 * keep < FEW ? FEW : 2 * keep;
    if (keep > n / 16 || n < 2 * FEW)
        room = n;
    for (int64_t i = 0; i < room; i++)
        list[i] = (entry)i;
    sort_positions(&w->keys, keys, list, other, room);
    int64_t have = keep;
    for (int64_t i = room; i < n; i++) {
        i = w->keys.level->find(n, keys, i, tn_keys_at(&w->keys, keys, (int64_t)(uint32_t)list[keep - 1]));
        if (i == n)
            break;
        if (one_by_one) {
            insert(&w->keys, keys, list, keep, i);
            continue;
        }
        list[have++] = (entry)i;
        if (have == room) {
            sort_positions(&w->keys, keys, list, other, have);
            have = keep;
        }
    }
    if (have > keep)
        sort_positions(&w->keys, keys, list, other, have);
}

/* to[i * step] = from[at[i]] */
#define PICK(T)                                         \
    for (int64_t i = 0; i < n; i++)                     \
        ((T *)to)[i * step] = ((const T *)from)[at[i]]; \
    break
static void take(int64_t element, int64_t n, const void *from, const int64_t *at, void *to, int64_t step) {
    switch (element) {
    case 1: PICK(uint8_t);
    case 2: PICK(uint16_t);
    case 4: PICK(uint32_t);
    default: PICK(uint64_t);
    }
}

static size_t column_bytes(const order *w) {
    return w->lanes.inner > 1 ? (size_t)(TURNED * w->lanes.length * w->element + 63) & ~(size_t)63 : 0;
}

static void lanes(const void *ctx, int64_t begin, int64_t end, char *scratch) {
    const order *w = ctx;
    int64_t inner = w->lanes.inner, length = w->lanes.length, keep = w->keep;
    char *columns = scratch;
    entry *list = (entry *)(void *)(scratch + column_bytes(w)), *other = list + length;
    void *room = other + length;
    for (int64_t n; begin < end; begin += n) {
        int64_t o = begin / inner, i = begin % inner;
        const char *x = w->x + (o * length * inner + i) * w->element;
        n = 1;
        if (inner > 1) {
            n = inner - i < end - begin ? inner - i : end - begin;
            n = n < TURNED ? n : TURNED;
            tn_move_of(w->keys.strips)->transpose[w->element](length, n, x, inner, columns, length);
            x = columns;
        }
        for (int64_t lane = 0; lane < n; lane++, x += length * w->element) {
            select_positions(w, tn_keys_of(&w->keys, length, x, room), list, other);
            int64_t to = o * keep * inner + i + lane, *at = (int64_t *)(void *)other;
            for (int64_t k = 0; k < keep; k++)
                w->positions[to + k * inner] = at[k] = (int64_t)(uint32_t)list[k];
            take(w->element, keep, x, at, w->values + to * w->element, inner);
        }
    }
}

tn_status tn_host_order(tn_eval *e, tn_isa isa, bool *done) {
    const tn_tensor *x = tn_eval_in(e, 0);
    const tn_graph *g = e->graph;
    bool top = tn_node_op(g, e->node)->code, fits;
    int axis = (int)tn_attr_int(g, e->node, "axis");
    order w = {.lanes = tn_lanes_of(x->rank, x->dims, axis), .element = tn_dtype_bits((tn_dtype)x->dtype) / 8};
    bool smallest = tn_attr_int(g, e->node, top ? "largest" : "descending") == 0;
    int64_t dims[TN_MAX_RANK];
    w.keep = w.lanes.length;
    if (top)
        TN_TRY(tn_eval_sizes(e, "k", 1, &w.keep));
    if (!tn_keys_make(&w.keys, (tn_dtype)x->dtype, smallest, false, isa) || x->count == 0 || w.keep == 0 ||
        w.keep > w.lanes.length || w.lanes.length > INT32_MAX)
        return TN_OK;
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    dims[axis] = w.keep;
    tn_tensor *values = tn_eval_result(e, 0, (tn_dtype)x->dtype, x->rank, dims);
    tn_tensor *positions = values ? tn_eval_result(e, 1, TN_I64, x->rank, dims) : NULL;
    tn_tensor *flat = positions ? tn_host_flat(e, 0, isa, &fits) : NULL;
    if (!flat)
        return positions && !fits ? TN_OK : tn_error_status();
    w.x = flat->data;
    w.values = values->data;
    w.positions = positions->data;
    size_t scratch = column_bytes(&w) + (size_t)w.lanes.length * 3 * sizeof(entry);
    tn_status status = tn_host_split(e, w.lanes.outer * w.lanes.inner, w.lanes.inner == 1 ? 1 : TURNED,
                                     8.0 * (double)w.lanes.length, scratch, lanes, &w);
    tn_tensor_destroy(flat);
    *done = status == TN_OK;
    return status;
}
