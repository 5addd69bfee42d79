/* Random programs: steps with positions from data, order, running results, random numbers; and control flow. */
#include <tenon/build.h>

#include "support/random_graph.h"

/* i64 positions of this shape, within [-n, n); n > 0. Computed, or constant. */
static tn_value positions(random_builder *b, int64_t n, int rank, const int64_t *dims) {
    tn_graph *g = b->graph;
    if (random_chance(&b->rng, 35)) {
        tn_value v = random_pick(b, RANDOM_INT, rank, rank);
        bool fits = v.id != 0;
        for (int i = 0; fits && i < rank; i++) {
            int64_t have;
            fits = random_size(b, v, i, &have) && have == dims[i];
        }
        if (fits)
            return tn_mod(g, tn_cast(g, v, TN_I64), tn_scalar(g, TN_I64, (double)n));
    }
    tn_tensor *t = tn_tensor_create(random_chance(&b->rng, 70) ? TN_I64 : TN_I32, rank, dims);
    for (int64_t i = 0; i < t->count; i++)
        tn_store_i64((tn_dtype)t->dtype, t->data, i, random_below(&b->rng, n) - (random_chance(&b->rng, 20) ? n : 0));
    tn_value v = tn_constant(g, t);
    tn_tensor_destroy(t);
    return v;
}

static bool sizes_of(const random_builder *b, tn_value x, int64_t *dims) {
    for (int i = 0; i < tn_value_rank(b->graph, x); i++)
        if (!random_size(b, x, i, &dims[i]))
            return false;
    return true;
}

static void gathered(random_builder *b, tn_value x, const int64_t *size) {
    tn_graph *g = b->graph;
    int rank = tn_value_rank(g, x), axis = (int)random_below(&b->rng, rank);
    int64_t dims[TN_MAX_RANK] = {1 + random_below(&b->rng, 4), 1 + random_below(&b->rng, 3)};
    if (size[axis] == 0)
        return;
    if (random_chance(&b->rng, 8))
        dims[0] = 0;
    switch (random_below(&b->rng, 3)) {
    case 0: random_add(b, tn_gather(g, x, positions(b, size[axis], (int)random_below(&b->rng, 3), dims), axis)); break;
    case 1:
        for (int i = 0; i < rank; i++)
            dims[i] = i == axis ? 1 + random_below(&b->rng, 4) : size[i];
        random_add(b, tn_gather_elements(g, x, positions(b, size[axis], rank, dims), axis));
        break;
    default:
        dims[1] = 1;
        if (size[0])
            random_add(b, tn_gather_nd(g, x, positions(b, size[0], 2, dims), 0));
    }
}

static void scattered(random_builder *b, tn_value x, const int64_t *size) {
    static const char *const how[] = {"none", "add", "mul", "max", "min"};
    tn_graph *g = b->graph;
    tn_dtype dtype = tn_value_dtype(g, x);
    int rank = tn_value_rank(g, x), axis = (int)random_below(&b->rng, rank);
    const char *reduction = dtype == TN_BOOL ? "none" : how[random_below(&b->rng, 5)];
    int64_t dims[TN_MAX_RANK];
    if (!size[axis])
        return;
    for (int i = 0; i < rank; i++)
        dims[i] = i == axis ? random_below(&b->rng, 4) : size[i];
    tn_value updates;
    if (random_chance(&b->rng, 60)) {
        tn_tensor *t = random_tensor(&b->rng, dtype, rank, dims, 0);
        updates = tn_constant(g, t);
        tn_tensor_destroy(t);
        random_add(b, tn_scatter_elements(g, x, positions(b, size[axis], rank, dims), updates, axis, reduction));
        return;
    }
    int64_t list[2] = {1 + random_below(&b->rng, 3), 1};
    dims[0] = list[0];
    for (int i = 1; i < rank; i++)
        dims[i] = size[i];
    if (!size[0])
        return;
    tn_tensor *t = random_tensor(&b->rng, dtype, rank, dims, 0);
    updates = tn_constant(g, t);
    tn_tensor_destroy(t);
    random_add(b, tn_scatter_nd(g, x, positions(b, size[0], 2, list), updates, reduction));
}

static void dynamic(random_builder *b, tn_value x, const int64_t *size) {
    tn_graph *g = b->graph;
    int rank = tn_value_rank(g, x);
    int64_t part[TN_MAX_RANK], count = rank;
    tn_dim dims[TN_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        part[i] = size[i] ? 1 + random_below(&b->rng, size[i]) : 0;
        dims[i] = tn_dim_const(g, part[i]);
    }
    tn_tensor *zeros = random_tensor(&b->rng, TN_I64, 1, &count, 0);
    for (int i = 0; i < rank; i++)
        tn_store_i64(TN_I64, zeros->data, i, random_below(&b->rng, size[i] - part[i] + 1));
    tn_value starts = tn_constant(g, zeros);
    tn_tensor_destroy(zeros);
    if (random_chance(&b->rng, 50)) {
        random_add(b, tn_dynamic_slice(g, x, starts, dims));
        return;
    }
    tn_tensor *t = random_tensor(&b->rng, tn_value_dtype(g, x), rank, part, 0);
    random_add(b, tn_dynamic_update_slice(g, x, tn_constant(g, t), starts));
    tn_tensor_destroy(t);
}

static void ordered(random_builder *b, tn_value x, const int64_t *size) {
    tn_graph *g = b->graph;
    int axis = (int)random_below(&b->rng, tn_value_rank(g, x));
    bool one = random_chance(&b->rng, 50), two = random_chance(&b->rng, 50);
    tn_value at = {0};
    switch (random_below(&b->rng, 8)) {
    case 0:
        if (size[axis])
            random_add(b, tn_argmax(g, x, axis, one));
        break;
    case 1:
        if (size[axis])
            random_add(b, tn_argmin(g, x, axis, one));
        break;
    case 2: random_add(b, tn_cumsum(g, x, axis, one, two)); break;
    case 3: random_add(b, tn_cumprod(g, x, axis, one, two)); break;
    case 4: random_add(b, tn_cummax(g, x, axis, one, two)); break;
    case 5: random_add(b, tn_cummin(g, x, axis, one, two)); break;
    case 6:
        random_add(b, tn_sort(g, x, axis, one, &at));
        random_add(b, at);
        break;
    default: random_add(b, tn_top_k(g, x, random_below(&b->rng, size[axis] + 1), axis, one, &at)); random_add(b, at);
    }
}

void random_step_index(random_builder *b) {
    tn_graph *g = b->graph;
    int64_t size[TN_MAX_RANK], k = random_below(&b->rng, 100);
    if (k < 8) {
        tn_dim dims[2] = {random_symbol(b, 1), tn_dim_const(g, 1 + random_below(&b->rng, 4))};
        int64_t seed = (int64_t)(random_next(&b->rng) >> 1);
        if (k < 2)
            random_add(b, tn_random_bits(g, random_dtype(b, RANDOM_INT), 2, dims, seed, (tn_value){0}));
        else if (k < 5)
            random_add(b, tn_random_uniform(g, random_dtype(b, RANDOM_FLOAT), 2, dims, seed, (tn_value){0}));
        else
            random_add(b, tn_random_normal(g, random_dtype(b, RANDOM_FLOAT), 2, dims, seed, (tn_value){0}));
        return;
    }
    tn_value x = random_pick(b, k < 60 ? RANDOM_ANY : RANDOM_NUMBER, 1, 5);
    if (!x.id || !sizes_of(b, x, size) || random_count(b, x) > RANDOM_MOST)
        return;
    if (k < 34)
        gathered(b, x, size);
    else if (k < 46)
        scattered(b, x, size);
    else if (k < 52)
        dynamic(b, x, size);
    else if (k < 56)
        random_add(b, tn_nonzero(g, x));
    else if (k < 60) {
        int64_t n = size[0];
        tn_tensor *t = random_tensor(&b->rng, TN_BOOL, 1, &n, 0);
        random_add(b, tn_compress(g, x, tn_constant(g, t), 0));
        tn_tensor_destroy(t);
    } else
        ordered(b, x, size);
}

/* --- control flow --------------------------------------------------------------------------------------------------------------- */

typedef struct body {
    random_builder *outer;
    tn_value limit, x; /* x: what a branch must look like */
} body;

/* A builder for a region: it sees its arguments and everything outside. */
static random_builder inside(const body *c, uint32_t n, const tn_value *args) {
    random_builder b = *c->outer;
    b.depth++;
    for (uint32_t i = 0; i < n; i++)
        random_add(&b, args[i]);
    return b;
}

/* A value of the type of `like`, computed from it and from what else there is. */
static tn_value worked(random_builder *b, tn_value like, int steps) {
    tn_graph *g = b->graph;
    uint32_t pooled = b->pooled;
    tn_value made = like;
    for (int i = 0; i < steps; i++)
        random_step(b);
    for (uint32_t i = pooled; i < b->pooled; i++) {
        tn_value v = b->pool[i];
        bool same = tn_value_dtype(g, v) == tn_value_dtype(g, like) && tn_value_rank(g, v) == tn_value_rank(g, like);
        for (int k = 0; same && k < tn_value_rank(g, v); k++)
            same = tn_dim_equal(g, tn_value_dim(g, v, k), tn_value_dim(g, like, k));
        if (same)
            made = v;
    }
    if (made.id == like.id && !tn_graph_check(g)) {
        tn_dtype d = tn_value_dtype(g, like);
        if (d == TN_BOOL)
            made = tn_not(g, like);
        else if (tn_dtype_is_float(d))
            made = tn_mul(g, tn_tanh(g, like), tn_scalar_like(g, like, 0.75));
        else
            made = tn_sub(g, like, tn_scalar_like(g, like, 1));
    }
    return made;
}

static void branch(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args, (void)g;
    body *c = ctx;
    random_builder b = inside(c, 0, NULL);
    results[0] = random_chance(&b.rng, 15) ? c->x : worked(&b, c->x, (int)random_below(&b.rng, 4));
    c->outer->rng = b.rng;
}

static void goes_on(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_less(g, args[0], ((body *)ctx)->limit);
}

static void trip(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    body *c = ctx;
    random_builder b = inside(c, 2, args);
    results[0] = tn_add(g, args[0], tn_scalar(g, TN_I64, 1));
    results[1] = worked(&b, args[1], (int)random_below(&b.rng, 3));
    results[2] = args[1];
    c->outer->rng = b.rng;
}

static void slice(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)g;
    body *c = ctx;
    random_builder b = inside(c, 2, args);
    results[0] = worked(&b, args[0], (int)random_below(&b.rng, 3));
    results[1] = worked(&b, args[1], (int)random_below(&b.rng, 3));
    c->outer->rng = b.rng;
}

void random_step_control(random_builder *b) {
    tn_graph *g = b->graph;
    body c = {.outer = b, .x = random_pick(b, RANDOM_ANY, 0, 4)};
    tn_value results[3] = {{0}};
    if (!c.x.id || random_count(b, c.x) > RANDOM_MOST / 4)
        return;
    switch (random_below(&b->rng, 3)) {
    case 0: {
        tn_value cond = random_pick(b, RANDOM_BOOL, 0, 4);
        if (!cond.id) {
            tn_value n = random_pick(b, RANDOM_INT, 0, 4);
            cond = n.id ? tn_less(g, n, tn_scalar_like(g, n, 1)) : tn_scalar(g, TN_BOOL, 1);
        }
        if (tn_value_rank(g, cond) > 0)
            cond = tn_reduce_or(g, cond, TN_ALL_AXES, false);
        if (!tn_graph_check(g) && tn_if(g, cond, branch, branch, &c, 1, results) == TN_OK)
            random_add(b, results[0]);
        return;
    }
    case 1: {
        tn_value init[2] = {tn_scalar(g, TN_I64, 0), c.x};
        uint32_t stacked = (uint32_t)random_below(&b->rng, 2);
        c.limit = tn_scalar(g, TN_I64, (double)random_below(&b->rng, 4));
        tn_value n = random_pick(b, RANDOM_INT, 0, 0);
        if (n.id && random_chance(&b->rng, 60))
            c.limit = tn_mod(g, tn_cast(g, n, TN_I64), tn_scalar(g, TN_I64, 4));
        if (!tn_graph_check(g) && tn_while(g, 2, init, NULL, goes_on, trip, &c, stacked, results) == TN_OK) {
            random_add(b, results[1]);
            if (stacked)
                random_add(b, results[2]);
        }
        return;
    }
    default: {
        tn_value xs = random_pick(b, RANDOM_ANY, 1, 4);
        int64_t n;
        if (!xs.id || !random_size(b, xs, 0, &n) || n > 8 || random_count(b, xs) > RANDOM_MOST / 2)
            return;
        if (tn_scan(g, 1, &c.x, 1, &xs, slice, &c, 1, results) == TN_OK) {
            random_add(b, results[0]);
            random_add(b, results[1]);
        }
        return;
    }
    }
}
