/* Finding repeated blocks. Nodes become a sequence of hashes of what they are by themselves; distances at which windows of several
   lengths come again are the periods to try; each period's runs are those where the sequence equals itself shifted. The largest
   runs are taken first, and cut where the inputs of a block do not come from the same places as those of the first. */
#include "ir/blocks.h"

#include <stdlib.h>

enum { PERIODS = 64, NOT_HERE = -1 };
#define BASE UINT64_C(0x9E3779B97F4A7C15)

typedef struct candidate {
    uint32_t start, period, count;
} candidate;

typedef struct finder {
    const tn_graph *g;
    uint32_t n;
    tn_node *node;   /* by position */
    int32_t *place;  /* by node id: its position, or NOT_HERE */
    uint64_t *hash;  /* by position */
    uint64_t *sum;   /* prefix sums of a polynomial in BASE, n + 1 */
    uint32_t *again; /* by distance: how often a window comes again so far on */
    uint8_t *taken;  /* by position */
    TN_VEC(candidate) candidates;
} finder;

static bool counts(const tn_graph *g, tn_node node) {
    bool source = tn_node_input_count(g, node) == 0 && tn_node_region_count(g, node) == 0;
    return !source && !(tn_node_op(g, node)->traits & TN_TERMINATOR);
}

tn_node tn_blocks_next(const tn_graph *g, tn_node node) {
    do
        node = tn_node_next(g, node);
    while (node.id && !counts(g, node));
    return node;
}

/* --- what a node is ------------------------------------------------------------------------------------------------------------- */

static uint64_t hash_tensor(const tn_tensor *t) {
    return tn_hash_mix(t->dtype, tn_hash_bytes(t->dims, t->rank * sizeof *t->dims, 3));
}

static uint64_t hash_attr(const tn_attr *a) {
    uint64_t h = tn_hash_bytes(a->key, strlen(a->key), a->kind);
    switch (a->kind) {
    case TN_ATTR_INT:
    case TN_ATTR_DTYPE:
    case TN_ATTR_FUNCTION: return tn_hash_mix(h, (uint64_t)a->as.i);
    case TN_ATTR_FLOAT: return tn_hash_mix(h, tn_hash_bytes(&a->as.f, sizeof a->as.f, 5));
    case TN_ATTR_STRING: return tn_hash_mix(h, tn_hash_bytes(a->as.s.data, a->as.s.length, 6));
    case TN_ATTR_INTS: return tn_hash_mix(h, tn_hash_bytes(a->as.ints, a->count * sizeof *a->as.ints, 7));
    case TN_ATTR_FLOATS: return tn_hash_mix(h, tn_hash_bytes(a->as.floats, a->count * sizeof *a->as.floats, 8));
    case TN_ATTR_STRINGS:
        for (uint32_t i = 0; i < a->count; i++)
            h = tn_hash_mix(h, tn_hash_bytes(a->as.strings[i].data, a->as.strings[i].length, 9));
        return h;
    case TN_ATTR_TENSOR: return tn_hash_mix(h, hash_tensor(a->as.tensor));
    case TN_ATTR_DIMS: return tn_hash_mix(h, a->count); /* sizes may be symbols of the block's own */
    default: return h;
    }
}

static uint64_t hash_node(const tn_graph *g, tn_node node) {
    const char *name = tn_node_op_name(g, node);
    uint32_t inputs = tn_node_input_count(g, node);
    uint64_t h = tn_hash_bytes(name, strlen(name), 1), attrs = 0;
    for (uint32_t i = 0; i < tn_node_attr_count(g, node); i++)
        attrs += hash_attr(tn_node_attr_at(g, node, i)); /* in any order */
    h = tn_hash_mix(tn_hash_mix(h, attrs), (uint64_t)inputs << 32 | tn_node_output_count(g, node));
    for (uint32_t i = 0; i < inputs; i++) {
        tn_value v = tn_node_input(g, node, i);
        tn_node producer = v.id ? tn_value_producer(g, v) : (tn_node){0};
        h = tn_hash_mix(h, producer.id && !counts(g, producer) ? hash_node(g, producer) : v.id != 0);
    }
    for (uint32_t i = 0; i < tn_node_output_count(g, node); i++) {
        tn_value v = tn_node_output(g, node, i);
        h = tn_hash_mix(h, (uint64_t)tn_value_dtype(g, v) << 8 | (uint8_t)tn_value_rank(g, v));
    }
    for (uint32_t i = 0; i < tn_node_region_count(g, node); i++)
        for (tn_node n = tn_region_first(g, tn_node_region(g, node, i)); n.id; n = tn_node_next(g, n))
            h = tn_hash_mix(h, hash_node(g, n));
    return h;
}

/* --- periods ------------------------------------------------------------------------------------------------------------------------ */

/* Counts the distances between equal windows of `length` nodes. */
static tn_status count_windows(finder *f, uint32_t length) {
    tn_map last = {0};
    uint64_t power = 1, before;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < length; i++)
        power *= BASE;
    for (uint32_t i = 0; i + length <= f->n && status == TN_OK; i++) {
        uint64_t window = f->sum[i + length] - f->sum[i] * power;
        if (tn_map_get(&last, window, &before))
            f->again[i - (uint32_t)before]++;
        if (!tn_map_put(f->g->heap, &last, window, i))
            status = tn_error_status();
    }
    tn_map_free(f->g->heap, &last);
    return status;
}

static tn_status add_candidate(finder *f, uint32_t start, uint32_t period, uint32_t count) {
    return (uint64_t)period * (count - 1) < TN_BLOCKS_LEAST ||
                   tn_vec_push(f->g->heap, &f->candidates, ((candidate){start, period, count}))
               ? TN_OK
               : tn_error_status();
}

/* All runs of a period. */
static tn_status find_runs(finder *f, uint32_t period) {
    uint32_t run = 0;
    for (uint32_t i = 0; i + period <= f->n; i++) {
        if (i + period < f->n && f->hash[i] == f->hash[i + period]) {
            run++;
            continue;
        }
        if (run >= period)
            TN_TRY(add_candidate(f, i - run, period, run / period + 1));
        run = 0;
    }
    return TN_OK;
}

static tn_status find_candidates(finder *f) {
    for (uint32_t length = 1; length <= f->n / 2; length *= 4)
        TN_TRY(count_windows(f, length));
    for (uint32_t tried = 0; tried < PERIODS; tried++) {
        uint32_t best = 0;
        for (uint32_t d = 1; d <= f->n / 2; d++)
            if (f->again[d] > f->again[best])
                best = d;
        if (!best) /* again[0] is 0: nothing is a distance of 0 away */
            break;
        f->again[best] = 0;
        TN_TRY(find_runs(f, best));
    }
    return TN_OK;
}

/* --- where inputs come from ---------------------------------------------------------------------------------------------------------- */

/* Where a value is made: its producer's position, or NOT_HERE (arguments, constants, other regions). */
static int32_t place_of(const finder *f, tn_value v) {
    tn_node producer = v.id ? tn_value_producer(f->g, v) : (tn_node){0};
    return producer.id ? f->place[producer.id] : NOT_HERE;
}

/* Whether the node `at` of a block that begins at `block` reads as its counterpart in the first block does: from the same places
   in the block; from earlier blocks as far back as the second block does; or from before all blocks, where each may have values
   of its own (weights, masks, inputs). */
static bool same_inputs(const finder *f, const candidate *c, uint32_t block, uint32_t at) {
    tn_node first = f->node[c->start + at], here = f->node[block + at];
    for (uint32_t i = 0; i < tn_node_input_count(f->g, first); i++) {
        tn_value a = tn_node_input(f->g, first, i), b = tn_node_input(f->g, here, i);
        int32_t x = place_of(f, a), y = place_of(f, b);
        bool inside = x >= (int32_t)c->start, inside_here = y >= (int32_t)block;
        if (inside != inside_here)
            return false;
        if (inside) {
            if (y - x != (int32_t)(block - c->start) || f->g->value.data[a.id].index != f->g->value.data[b.id].index)
                return false;
            continue;
        }
        int32_t z = place_of(f, tn_node_input(f->g, f->node[c->start + c->period + at], i));
        bool before = y < (int32_t)c->start, second_before = z < (int32_t)c->start;
        if (before != second_before || (!before && y - z != (int32_t)(block - c->start - c->period)))
            return false;
    }
    return true;
}

/* The blocks from the first one on that are equal to it. */
static uint32_t equal_blocks(const finder *f, const candidate *c) {
    for (uint32_t k = 1; k < c->count; k++)
        for (uint32_t at = 0; at < c->period; at++)
            if (!same_inputs(f, c, c->start + k * c->period, at))
                return k;
    return c->count;
}

/* --- choosing --------------------------------------------------------------------------------------------------------------------------- */

/* The one that covers most first; of equal ones that of the smaller period, then the earlier. */
static int by_cover(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    uint64_t cx = (uint64_t)x->period * x->count, cy = (uint64_t)y->period * y->count;
    if (cx != cy)
        return cx < cy ? 1 : -1;
    if (x->period != y->period)
        return x->period > y->period ? 1 : -1;
    return (x->start > y->start) - (x->start < y->start);
}

static int by_start(const void *a, const void *b) {
    const tn_block_run *x = a, *y = b;
    return (x->first.id > y->first.id) - (x->first.id < y->first.id);
}

static tn_status take(finder *f, candidate c, tn_block_runs *runs) {
    for (uint32_t i = c.start; i < c.start + c.period * c.count; i++)
        if (f->taken[i])
            return TN_OK;
    while (c.count >= 2) {
        uint32_t count = equal_blocks(f, &c);
        if ((uint64_t)c.period * (count - 1) >= TN_BLOCKS_LEAST) {
            memset(f->taken + c.start, 1, (size_t)count * c.period);
            if (!tn_vec_push(f->g->heap, runs,
                             ((tn_block_run){{c.start}, c.period, count, 0}))) /* the position, for sorting */
                return tn_error_status();
        }
        c.start += count * c.period;
        c.count -= count;
    }
    return TN_OK;
}

/* The nodes of a run's second block and where they read: in the block, so far back in the run, or before it. */
static uint64_t hash_run(const finder *f, const tn_block_run *run) {
    uint32_t start = run->first.id, block = start + run->nodes; /* positions */
    uint64_t hash = run->nodes;
    for (uint32_t at = block; at < block + run->nodes; at++) {
        hash = tn_hash_mix(hash, f->hash[at]);
        for (uint32_t i = 0; i < tn_node_input_count(f->g, f->node[at]); i++) {
            tn_value v = tn_node_input(f->g, f->node[at], i);
            int32_t place = place_of(f, v);
            bool inside = place >= (int32_t)start;
            hash =
                tn_hash_mix(hash, inside ? (uint64_t)(at - (uint32_t)place) << 32 | f->g->value.data[v.id].index : 0);
        }
    }
    return hash;
}

/* Something between two blocks makes two runs of what are the same layers. */
static tn_status number_kinds(const finder *f, tn_block_runs *runs) {
    tn_map kinds = {0};
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < runs->len && status == TN_OK; i++) {
        tn_block_run *run = &runs->data[i];
        uint64_t hash = hash_run(f, run), first = i;
        if (!tn_map_get(&kinds, hash, &first) && !tn_map_put(f->g->heap, &kinds, hash, i))
            status = tn_error_status();
        run->kind = (uint32_t)first;
    }
    tn_map_free(f->g->heap, &kinds);
    return status;
}

static tn_status choose(finder *f, tn_block_runs *runs) {
    if (f->candidates.len)
        qsort(f->candidates.data, f->candidates.len, sizeof *f->candidates.data, by_cover);
    for (uint32_t i = 0; i < f->candidates.len; i++)
        TN_TRY(take(f, f->candidates.data[i], runs));
    if (runs->len)
        qsort(runs->data, runs->len, sizeof *runs->data, by_start);
    tn_status status = number_kinds(f, runs);
    for (uint32_t i = 0; i < runs->len; i++)
        runs->data[i].first = f->node[runs->data[i].first.id];
    return status;
}

static tn_status prepare(finder *f, tn_region region) {
    const tn_graph *g = f->g;
    for (tn_node n = tn_region_first(g, region); n.id; n = tn_node_next(g, n))
        f->n += counts(g, n);
    f->node = tn_alloc_array(g->heap, f->n + 1u, sizeof *f->node);
    f->place = tn_alloc_array(g->heap, g->node.len, sizeof *f->place);
    f->hash = tn_alloc_array(g->heap, f->n + 1u, sizeof *f->hash);
    f->sum = tn_alloc_array(g->heap, f->n + 1u, sizeof *f->sum);
    f->again = tn_alloc_array(g->heap, f->n + 1u, sizeof *f->again);
    f->taken = tn_alloc(g->heap, f->n + 1u);
    if (!f->node || !f->place || !f->hash || !f->sum || !f->again || !f->taken)
        return tn_error_status();
    for (uint32_t i = 0; i < g->node.len; i++)
        f->place[i] = NOT_HERE;
    uint32_t at = 0;
    for (tn_node n = tn_region_first(g, region); n.id; n = tn_node_next(g, n)) {
        if (!counts(g, n))
            continue;
        f->node[at] = n;
        f->place[n.id] = (int32_t)at;
        f->hash[at] = hash_node(g, n);
        f->sum[at + 1] = f->sum[at] * BASE + f->hash[at];
        at++;
    }
    return TN_OK;
}

tn_status tn_blocks_find(const tn_graph *g, tn_region region, tn_block_runs *runs) {
    finder f = {.g = g};
    tn_status status = prepare(&f, region);
    if (status == TN_OK)
        status = find_candidates(&f);
    if (status == TN_OK)
        status = choose(&f, runs);
    tn_free(g->heap, f.node);
    tn_free(g->heap, f.place);
    tn_free(g->heap, f.hash);
    tn_free(g->heap, f.sum);
    tn_free(g->heap, f.again);
    tn_free(g->heap, f.taken);
    tn_vec_free(g->heap, &f.candidates);
    if (status != TN_OK)
        tn_vec_free(g->heap, runs);
    return status;
}
