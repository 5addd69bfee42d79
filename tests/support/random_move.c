/* Random programs: steps that move elements, and those that sum. */
#include <tenon/build.h>

#include "support/random_graph.h"

static tn_dim constant(random_builder *b, int64_t n) {
    return tn_dim_const(b->graph, n);
}

static void dims_of(const random_builder *b, tn_value x, tn_dim *dims) {
    for (int i = 0; i < tn_value_rank(b->graph, x); i++)
        dims[i] = tn_value_dim(b->graph, x, i);
}

/* --- movement --------------------------------------------------------------------------------------------------------------- */

/* Splits a constant axis, joins two axes, puts in or takes out axes of one element. */
static tn_value reshaped(random_builder *b, tn_value x) {
    tn_graph *g = b->graph;
    tn_dim dims[TN_MAX_RANK];
    int rank = tn_value_rank(g, x);
    dims_of(b, x, dims);
    int64_t n;
    switch (random_below(&b->rng, 5)) {
    case 0: /* split */
        for (int i = 0; i < rank; i++)
            if (rank < 6 && random_is_const(b, x, i, &n) && n % 2 == 0) {
                int64_t part = n % 4 == 0 && random_chance(&b->rng, 50) ? 4 : 2;
                for (int k = rank; k > i + 1; k--)
                    dims[k] = dims[k - 1];
                dims[i] = constant(b, n / part);
                dims[i + 1] = constant(b, part);
                return tn_reshape_dims(g, x, rank + 1, dims);
            }
        return tn_flatten(g, x, (int)random_below(&b->rng, rank + 1));
    case 1: /* join */
        if (rank >= 2) {
            int i = (int)random_below(&b->rng, rank - 1);
            dims[i] = tn_dim_mul(g, dims[i], dims[i + 1]);
            for (int k = i + 1; k + 1 < rank; k++)
                dims[k] = dims[k + 1];
            return tn_reshape_dims(g, x, rank - 1, dims);
        }
        return tn_reshape(g, x, TN_SHAPE(-1));
    case 2:
        if (rank < 6)
            return tn_expand_dims(g, x, 1, (const int[]){(int)random_below(&b->rng, rank + 1)});
        return tn_flatten(g, x, 1);
    case 3:
        for (int i = 0; i < rank; i++)
            if (random_is_const(b, x, i, &n) && n == 1)
                return tn_squeeze(g, x, 1, &i);
        return tn_reshape(g, x, TN_SHAPE(-1));
    default: return tn_flatten(g, x, (int)random_below(&b->rng, rank + 1));
    }
}

static tn_value transposed(random_builder *b, tn_value x) {
    int perm[TN_MAX_RANK], rank = tn_value_rank(b->graph, x);
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        int k = (int)random_below(&b->rng, i + 1), t = perm[i];
        perm[i] = perm[k];
        perm[k] = t;
    }
    return tn_transpose(b->graph, x, random_chance(&b->rng, 30) ? NULL : perm);
}

static tn_value broadcasted(random_builder *b, tn_value x) {
    tn_graph *g = b->graph;
    tn_dim dims[TN_MAX_RANK];
    int rank = tn_value_rank(g, x), lead = rank < 5 ? (int)random_below(&b->rng, 2) : 0;
    int64_t n, count = random_count(b, x);
    for (int i = 0; i < rank; i++) {
        dims[lead + i] = tn_value_dim(g, x, i);
        int64_t s = random_below(&b->rng, RANDOM_SYMBOLS), more = random_chance(&b->rng, 50) ? 3 : b->size[s];
        if (random_is_const(b, x, i, &n) && n == 1 && count * more <= RANDOM_MOST) {
            dims[lead + i] = more == 3 ? constant(b, 3) : random_symbol(b, s);
            count *= more;
        }
    }
    for (int i = 0; i < lead; i++)
        dims[i] = constant(b, count * 2 <= RANDOM_MOST ? 2 : 1);
    return tn_broadcast(g, x, rank + lead, dims);
}

static tn_value sliced(random_builder *b, tn_value x) {
    tn_graph *g = b->graph;
    tn_dim start[TN_MAX_RANK], size[TN_MAX_RANK];
    int64_t step[TN_MAX_RANK];
    int rank = tn_value_rank(g, x);
    for (int i = 0; i < rank; i++) {
        int64_t n, fixed;
        start[i] = constant(b, 0);
        size[i] = tn_value_dim(g, x, i);
        step[i] = 1;
        if (!random_size(b, x, i, &n) || n < 1 || !random_chance(&b->rng, 60))
            continue;
        if (!random_is_const(b, x, i, &fixed)) { /* one less, from 0 or 1; or reversed */
            tn_dim less = tn_dim_sub(g, size[i], constant(b, 1));
            if (random_chance(&b->rng, 30)) {
                start[i] = less;
                step[i] = -1;
            } else {
                size[i] = less;
                start[i] = constant(b, random_below(&b->rng, 2));
            }
            continue;
        }
        step[i] = 1 + random_below(&b->rng, 3);
        int64_t from = random_below(&b->rng, n), most = (n - 1 - from) / step[i] + 1,
                take = random_below(&b->rng, most + 1);
        if (random_chance(&b->rng, 25) && take) { /* the same backwards */
            from += (take - 1) * step[i];
            step[i] = -step[i];
        }
        start[i] = constant(b, from);
        size[i] = constant(b, take);
    }
    return tn_slice(g, x, start, size, step);
}

static tn_value padded(random_builder *b, tn_value x) {
    static const char *const modes[] = {"constant", "constant", "constant", "reflect", "edge", "wrap"};
    tn_graph *g = b->graph;
    const char *mode = modes[random_below(&b->rng, 6)];
    tn_dim lo[TN_MAX_RANK], hi[TN_MAX_RANK];
    int rank = tn_value_rank(g, x);
    int64_t count = random_count(b, x);
    for (int i = 0; i < rank; i++) {
        int64_t n, l = 0, h = 0;
        if (random_size(b, x, i, &n) && random_chance(&b->rng, 50) && (*mode == 'c' || n > 3)) {
            l = random_below(&b->rng, 3);
            h = random_below(&b->rng, 3);
            if (n && count / n * (n + l + h) > RANDOM_MOST)
                l = h = 0;
        }
        lo[i] = constant(b, l);
        hi[i] = constant(b, h);
    }
    tn_value value = {0};
    if (*mode == 'c' && random_chance(&b->rng, 60))
        value = tn_scalar_like(g, x, (double)random_below(&b->rng, 2));
    return tn_pad(g, x, value, lo, hi, mode);
}

static tn_value concatenated(random_builder *b, tn_value x) {
    tn_graph *g = b->graph;
    int rank = tn_value_rank(g, x), axis = (int)random_below(&b->rng, rank);
    tn_value parts[4] = {x};
    uint32_t n = 1;
    for (uint32_t i = 0; i < b->pooled && n < 4; i++) {
        tn_value v = b->pool[i];
        bool fits = tn_value_dtype(g, v) == tn_value_dtype(g, x) && tn_value_rank(g, v) == rank;
        for (int k = 0; fits && k < rank; k++)
            fits = k == axis || tn_dim_equal(g, tn_value_dim(g, v, k), tn_value_dim(g, x, k));
        if (fits && random_chance(&b->rng, 50))
            parts[n++] = v;
    }
    if (n == 1 || random_chance(&b->rng, 20))
        parts[n < 4 ? n++ : 3] = x;
    return tn_concat(g, axis, n, parts);
}

void random_step_move(random_builder *b) {
    tn_graph *g = b->graph;
    tn_value x = random_pick(b, RANDOM_ANY, 1, 6);
    int64_t k = random_below(&b->rng, 100);
    if (k < 4) {
        tn_dim dims[3];
        int rank = 1 + (int)random_below(&b->rng, 2);
        for (int i = 0; i < rank; i++)
            dims[i] = random_chance(&b->rng, 40) ? random_symbol(b, 0) : constant(b, 1 + random_below(&b->rng, 5));
        random_add(b, tn_iota(g, random_dtype(b, RANDOM_NUMBER), rank, dims, (int)random_below(&b->rng, rank)));
        return;
    }
    if (!x.id || random_count(b, x) > RANDOM_MOST / 2) {
        if (x.id && random_count(b, x) == INT64_MAX)
            random_add(b, transposed(b, x));
        return;
    }
    int rank = tn_value_rank(g, x);
    if (k < 22)
        random_add(b, reshaped(b, x));
    else if (k < 40)
        random_add(b, transposed(b, x));
    else if (k < 52)
        random_add(b, broadcasted(b, x));
    else if (k < 70)
        random_add(b, sliced(b, x));
    else if (k < 78)
        random_add(b, padded(b, x));
    else if (k < 90)
        random_add(b, concatenated(b, x));
    else if (k < 93)
        random_add(b, tn_shape_of(g, x));
    else
        random_add(b, tn_reverse(g, x, 1, (const int[]){(int)random_below(&b->rng, rank)}));
}

/* --- sums ------------------------------------------------------------------------------------------------------------------------- */

typedef tn_value reduce_function(tn_graph *, tn_value, uint32_t, const int *, bool);
#define X(name) (tn_##name),
static reduce_function *const reductions[] = {TN_BUILD_REDUCE(X)};
#undef X

static tn_value reduced(random_builder *b) {
    static const int classes[] = {
        RANDOM_NUMBER, RANDOM_NUMBER, RANDOM_NUMBER, RANDOM_NUMBER, RANDOM_INT | RANDOM_BOOL, RANDOM_INT | RANDOM_BOOL,
        RANDOM_FLOAT};
    int64_t k = random_below(&b->rng, 7);
    tn_value x = random_pick(b, classes[k], 1, 6);
    if (!x.id)
        return x;
    int axes[TN_MAX_RANK], rank = tn_value_rank(b->graph, x);
    uint32_t n = 0;
    for (int i = 0; i < rank; i++)
        if (random_chance(&b->rng, 45))
            axes[n++] = random_chance(&b->rng, 20) ? i - rank : i;
    if (n == 0)
        axes[n++] = (int)random_below(&b->rng, rank);
    return reductions[k](b->graph, x, n, axes, random_chance(&b->rng, 50));
}

static tn_value windowed(random_builder *b) {
    static const char *const kinds[] = {"sum", "max", "min"};
    tn_graph *g = b->graph;
    tn_value x = random_pick(b, RANDOM_NUMBER, 1, 5);
    if (!x.id)
        return x;
    int64_t window[TN_MAX_RANK], stride[TN_MAX_RANK], dilation[TN_MAX_RANK];
    tn_dim lo[TN_MAX_RANK], hi[TN_MAX_RANK];
    int rank = tn_value_rank(g, x);
    for (int i = 0; i < rank; i++) {
        int64_t n, l = 0, h = 0;
        window[i] = stride[i] = dilation[i] = 1;
        if (random_size(b, x, i, &n) && n > 0 && random_chance(&b->rng, 55)) {
            window[i] = 1 + random_below(&b->rng, 3);
            stride[i] = 1 + random_below(&b->rng, 3);
            dilation[i] = random_chance(&b->rng, 25) ? 2 : 1;
            l = random_below(&b->rng, window[i] + 1);
            h = random_below(&b->rng, window[i] + 1);
            if (n + l + h < (window[i] - 1) * dilation[i] + 1)
                window[i] = 1;
        }
        lo[i] = constant(b, l);
        hi[i] = constant(b, h);
    }
    return tn_window(g, kinds[random_below(&b->rng, 3)], x, window, stride, dilation, lo, hi);
}

static tn_value weights(random_builder *b, tn_dtype dtype, int rank, const int64_t *dims) {
    tn_tensor *t = random_tensor(&b->rng, dtype, rank, dims, 0);
    tn_value w = tn_constant(b->graph, t);
    tn_tensor_destroy(t);
    if (random_chance(&b->rng, 15)) /* not known when it is compiled: hidden behind an input */
        for (uint32_t i = 0; i < b->pooled; i++)
            if (tn_value_dtype(b->graph, b->pool[i]) == dtype && tn_value_rank(b->graph, b->pool[i]) == 0)
                return tn_add(b->graph, w, b->pool[i]);
    return w;
}

static tn_value convolved(random_builder *b) {
    tn_graph *g = b->graph;
    tn_value x = random_pick(b, random_chance(&b->rng, 85) ? RANDOM_FLOAT : RANDOM_NUMBER, 3, 5);
    int64_t c, n;
    if (!x.id || !random_is_const(b, x, 1, &c) || c < 1 || c > 24)
        return (tn_value){0};
    int spatial = tn_value_rank(g, x) - 2;
    int64_t groups = random_chance(&b->rng, 25) ? c : c % 2 == 0 && random_chance(&b->rng, 30) ? 2 : 1;
    int64_t per = 1 + random_below(&b->rng, 3), w[TN_MAX_RANK], stride[3], dilation[3], spread[3];
    if (groups == 1 && random_chance(&b->rng, 40))
        per = 4 + random_below(&b->rng, 20);
    w[0] = groups * per;
    w[1] = c / groups;
    tn_dim lo[3], hi[3];
    bool plain = random_chance(&b->rng, 40), gaps = random_chance(&b->rng, 12);
    bool threes = plain && spatial == 2 && random_chance(&b->rng, 40);
    for (int i = 0; i < spatial; i++) {
        int64_t l, h;
        w[2 + i] = threes ? 3 : 1 + random_below(&b->rng, 3);
        stride[i] = plain ? 1 : 1 + random_below(&b->rng, 2);
        dilation[i] = !plain && random_chance(&b->rng, 25) ? 2 : 1;
        spread[i] = gaps ? 2 : 1;
        l = random_below(&b->rng, w[2 + i] + 1);
        h = random_below(&b->rng, w[2 + i] + 1);
        if (!random_size(b, x, 2 + i, &n) || n < 1)
            return (tn_value){0};
        if (n + l + h < (w[2 + i] - 1) * dilation[i] + 1)
            w[2 + i] = 1;
        lo[i] = constant(b, l);
        hi[i] = constant(b, h);
    }
    if (random_count(b, x) / c * w[0] > RANDOM_MOST * 2)
        return (tn_value){0};
    tn_value y =
        tn_conv(g, x, weights(b, tn_value_dtype(g, x), spatial + 2, w), stride, dilation, spread, lo, hi, groups);
    if (y.id && random_chance(&b->rng, 50)) { /* what follows convolutions */
        int64_t bias[TN_MAX_RANK] = {w[0]};
        for (int i = 0; i < spatial; i++)
            bias[1 + i] = 1;
        y = tn_add(g, y, weights(b, tn_value_dtype(g, x), spatial + 1, bias));
    }
    return y;
}

static tn_value multiplied(random_builder *b) {
    tn_graph *g = b->graph;
    tn_value x = random_pick(b, random_chance(&b->rng, 85) ? RANDOM_FLOAT : RANDOM_NUMBER, 1, 4), y;
    int64_t k, n;
    if (!x.id || random_count(b, x) > RANDOM_MOST)
        return (tn_value){0};
    int rank = tn_value_rank(g, x);
    if (random_chance(&b->rng, 25) && rank >= 2) /* by itself, turned */
        return random_size(b, x, -2, &n) && n * random_count(b, x) < 40000
                   ? tn_matmul(g, x,
                               tn_transpose(g, x,
                                            rank == 2   ? NULL
                                            : rank == 3 ? (const int[]){0, 2, 1}
                                                        : (const int[]){0, 1, 3, 2}))
                   : (tn_value){0};
    for (uint32_t i = 0; i < b->pooled; i++) { /* two of the pool */
        y = b->pool[i];
        if (random_chance(&b->rng, 50) && tn_value_dtype(g, y) == tn_value_dtype(g, x) && rank >= 2 &&
            tn_value_rank(g, y) == 2 && tn_dim_equal(g, tn_value_dim(g, x, -1), tn_value_dim(g, y, 0)) &&
            random_size(b, y, 1, &n) && random_count(b, x) * n < 40000)
            return tn_matmul(g, x, y);
    }
    if (!random_is_const(b, x, -1, &k) || k > 300)
        return (tn_value){0};
    int64_t dims[3] = {2, k, random_chance(&b->rng, 20) ? 1 : 1 + random_below(&b->rng, 20)};
    if (random_count(b, x) * dims[2] > 40000)
        return (tn_value){0};
    if (rank == 3 && random_is_const(b, x, 0, &n) && n < 6 && random_chance(&b->rng, 40)) {
        dims[0] = n;
        return tn_matmul(g, x, weights(b, tn_value_dtype(g, x), 3, dims));
    }
    if (random_chance(&b->rng, 25)) { /* dot over another order of axes */
        int64_t other[2] = {dims[2], k};
        return tn_dot(g, x, weights(b, tn_value_dtype(g, x), 2, other), 0, NULL, NULL, 1, (const int64_t[]){rank - 1},
                      (const int64_t[]){1});
    }
    return tn_matmul(g, x, weights(b, tn_value_dtype(g, x), random_chance(&b->rng, 10) ? 1 : 2, dims + 1));
}

void random_step_sum(random_builder *b) {
    int64_t k = random_below(&b->rng, 100);
    random_add(b, k < 40 ? reduced(b) : k < 52 ? windowed(b) : k < 76 ? convolved(b) : multiplied(b));
}
