/* Random attentions. */
#include "support/random_attention.h"

#include <math.h>

#include <tenon/build.h>

int random_attention_dims(tn_graph *g, const random_attention_sizes *s, int operand, tn_dim *dims) {
    int n = 0;
    for (; n < s->rank; n++)
        dims[n] = s->batch[n];
    dims[n++] = operand ? tn_dim_floordiv(g, s->heads, tn_dim_const(g, s->group)) : s->heads;
    dims[n++] = operand ? s->keys : s->queries;
    dims[n++] = operand == 2 ? s->width : s->depth;
    return n;
}

/* Each head's own keys or values: repeated, in axes of their own, or not at all (one for all heads that are rows then). */
static tn_value spread_heads(tn_graph *g, const random_attention_sizes *s, int operand, tn_value x) {
    tn_dim dims[8];
    if (s->group == 1)
        return x;
    int n = random_attention_dims(g, s, operand, dims);
    tn_value y = tn_expand_dims(g, x, 1, (const int[]){s->rank + 1});
    for (int i = n; i > s->rank + 1; i--)
        dims[i] = dims[i - 1];
    dims[s->rank + 1] = tn_dim_const(g, s->group);
    y = tn_broadcast(g, y, n + 1, dims);
    for (int i = s->rank + 1; i < n; i++)
        dims[i] = dims[i + 1];
    dims[s->rank] = s->heads;
    return tn_reshape_dims(g, y, n, dims);
}

static tn_value constant(tn_graph *g, random_rng *r, tn_dtype dtype, int rank, const int64_t *dims, bool infinite) {
    tn_tensor *t = random_tensor(r, dtype, rank, dims, 0);
    for (int64_t i = 0; i < t->count && infinite; i++)
        if (random_chance(r, 30))
            tn_store_f64(dtype, t->data, i, -INFINITY);
    tn_value v = tn_constant(g, t);
    tn_tensor_destroy(t);
    return v;
}

/* Whether key j may be seen by query i, as [queries, keys]. */
static tn_value causal(tn_graph *g, const random_attention_sizes *s) {
    tn_dim dims[2] = {s->queries, s->keys};
    return tn_less_equal(g, tn_iota(g, TN_I64, 2, dims, 1), tn_iota(g, TN_I64, 2, dims, 0));
}

static tn_value mask_scores(tn_graph *g, random_rng *r, const random_attention_sizes *s, tn_value x) {
    const int64_t shape[2] = {s->query_count, s->key_count};
    switch (random_below(r, s->known_keys ? 6 : 3)) {
    case 0: return x;
    case 1: return tn_select(g, causal(g, s), x, tn_scalar(g, TN_F32, random_chance(r, 50) ? -INFINITY : -3e38));
    case 2: return tn_add(g, x, tn_cast(g, tn_iota(g, TN_I64, 1, &s->keys, 0), TN_F32));
    case 3: return tn_add(g, x, constant(g, r, TN_F32, 1, shape + 1, true));
    case 4: return tn_add(g, x, constant(g, r, TN_F32, 2, shape, true));
    default: return tn_select(g, constant(g, r, TN_BOOL, 2, shape, false), x, tn_scalar(g, TN_F32, -1e9));
    }
}

static tn_value make_weights(tn_graph *g, random_rng *r, const random_attention_sizes *s, tn_value x) {
    const int last[] = {-1};
    const int64_t shape[2] = {s->query_count, s->key_count};
    switch (random_below(r, 9)) {
    case 0: { /* sums to 1 by division */
        tn_value e = tn_exp(g, tn_sub(g, x, tn_reduce_max(g, x, 1, last, true)));
        return tn_div(g, e, tn_reduce_sum(g, e, 1, last, true));
    }
    case 1: { /* squares, by the greatest of them */
        tn_value e = tn_mul(g, x, x);
        return tn_mul(g, e, tn_reciprocal(g, tn_add(g, tn_reduce_max(g, e, 1, last, true), tn_scalar(g, TN_F32, 1))));
    }
    case 2: { /* what is no number counts nothing */
        tn_value p = tn_softmax(g, x, -1);
        return tn_select(g, tn_is_nan(g, p), tn_scalar(g, TN_F32, 0), p);
    }
    case 3:
        return s->known_keys ? tn_mul(g, tn_softmax(g, x, -1), constant(g, r, TN_F32, 2, shape, false))
                             : tn_softmax(g, x, -1);
    case 4: return tn_select(g, causal(g, s), tn_softmax(g, x, -1), tn_scalar(g, TN_F32, 0));
    default: return tn_softmax(g, x, -1);
    }
}

/* As numpy multiplies, or with axes named, the queries' perhaps not where they stand in a matrix. */
static tn_value multiply(tn_graph *g, const random_attention_sizes *s, tn_value a, tn_value b, bool turned,
                         bool named) {
    int64_t axes[4] = {0, 1, 2, 3}, last = s->rank + 2, other = turned ? s->rank + 2 : s->rank + 1;
    if (named)
        return tn_dot(g, a, b, (uint32_t)s->rank + 1, axes, axes, 1, &last, &other);
    int perm[8];
    for (int i = 0; i <= s->rank; i++)
        perm[i] = i;
    perm[s->rank + 1] = s->rank + 2;
    perm[s->rank + 2] = s->rank + 1;
    return tn_matmul(g, a, turned ? tn_transpose(g, b, perm) : b);
}

random_attention random_attention_make(tn_graph *g, random_rng *r, const random_attention_sizes *s, tn_value q,
                                       tn_value k, tn_value v) {
    random_attention a;
    bool named = random_chance(r, 40);
    k = spread_heads(g, s, 1, k);
    v = spread_heads(g, s, 2, v);
    if (random_chance(r, 20))
        q = tn_mul(g, q, tn_scalar(g, TN_F32, 0.3));
    tn_value x = multiply(g, s, q, k, true, named);
    if (random_chance(r, 50))
        x = random_chance(r, 50) ? tn_div(g, x, tn_scalar(g, TN_F32, random_chance(r, 50) ? 8 : 3))
                                 : tn_mul(g, x, tn_scalar(g, TN_F32, 0.125));
    if (random_chance(r, 15))
        x = tn_mul(g, tn_tanh(g, tn_div(g, x, tn_scalar(g, TN_F32, 30))), tn_scalar(g, TN_F32, 30));
    a.scores = x = mask_scores(g, r, s, x);
    a.weights = make_weights(g, r, s, x);
    a.result = multiply(g, s, a.weights, v, false, named);
    if (random_chance(r, 20))
        a.result = tn_add(g, a.result, tn_scalar(g, TN_F32, 1));
    if (random_chance(r, 40)) { /* heads beside each other */
        int perm[8];
        for (int i = 0; i < s->rank; i++)
            perm[i] = i;
        perm[s->rank] = s->rank + 1;
        perm[s->rank + 1] = s->rank;
        perm[s->rank + 2] = s->rank + 2;
        a.result = tn_transpose(g, a.result, perm);
    }
    return a;
}

/* An operand whose elements differ, made of a value of the program. */
static tn_value operand(random_builder *b, const random_attention_sizes *s, int which, tn_value x) {
    tn_graph *g = b->graph;
    tn_dim dims[8];
    int n = random_attention_dims(g, s, which, dims);
    tn_value sum = tn_scalar(g, TN_F32, which);
    for (int i = 0; i < n; i++) {
        tn_value index = tn_cast(g, tn_iota(g, TN_I64, n, dims, i), TN_F32);
        sum = tn_add(g, sum, tn_mul(g, index, tn_scalar(g, TN_F32, 0.7 + i)));
    }
    return tn_add(g, tn_sin(g, sum), x);
}

void random_step_attention(random_builder *b) {
    tn_graph *g = b->graph;
    tn_value x = random_pick(b, RANDOM_FLOAT, 0, 8);
    if (!x.id)
        return;
    int rank = tn_value_rank(g, x), axes[TN_MAX_RANK];
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    x = tn_cast(g, tn_tanh(g, rank ? tn_reduce_max(g, x, (uint32_t)rank, axes, false) : x), TN_F32);
    int64_t heads = 1 + random_below(&b->rng, 4), queries = random_below(&b->rng, 5), keys = random_below(&b->rng, 4);
    random_attention_sizes s = {.rank = (int)random_below(&b->rng, 2),
                                .batch = {tn_dim_const(g, 1 + random_below(&b->rng, 2))},
                                .heads = tn_dim_const(g, heads),
                                .depth = tn_dim_const(g, 1 + random_below(&b->rng, 9)),
                                .width = tn_dim_const(g, 1 + random_below(&b->rng, 9)),
                                .group = heads % 2 == 0 && random_chance(&b->rng, 40) ? 2 : 1,
                                .known_keys = queries >= RANDOM_SYMBOLS && keys >= RANDOM_SYMBOLS,
                                .query_count = queries < RANDOM_SYMBOLS ? b->size[queries] : random_below(&b->rng, 12),
                                .key_count = keys < RANDOM_SYMBOLS ? b->size[keys] : random_below(&b->rng, 40)};
    s.queries = queries < RANDOM_SYMBOLS ? random_symbol(b, queries) : tn_dim_const(g, s.query_count);
    s.keys = keys < RANDOM_SYMBOLS ? random_symbol(b, keys) : tn_dim_const(g, s.key_count);
    if (s.query_count * s.key_count * heads * 2 > RANDOM_MOST)
        return;
    random_attention a =
        random_attention_make(g, &b->rng, &s, operand(b, &s, 0, x), operand(b, &s, 1, x), operand(b, &s, 2, x));
    random_add(b, a.result);
    if (random_chance(&b->rng, 15))
        random_add(b, random_chance(&b->rng, 50) ? a.weights : a.scores);
}
