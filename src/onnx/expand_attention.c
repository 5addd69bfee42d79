/* Attention and RotaryEmbedding. Keys and values are not repeated for grouped queries: the query heads that share a key head stand
   one below the other in one product. */
#include <inttypes.h>
#include <math.h>

#include "onnx/expand_common.h"

/* --- heads ----------------------------------------------------------------------------------------------------------------------- */

static const int swap_heads[4] = {0, 2, 1, 3};

/* [batch, length, heads * size] as [batch, heads, length, size]. */
static tn_status split_heads(tn_expand *x, uint32_t input, int64_t heads, tn_value *out) {
    tn_graph *g = x->graph;
    int64_t width;
    const tn_dim *dims = tn_expand_dims_copy(x, input);
    if (!dims)
        return tn_error_status();
    TN_RULE(x, heads > 0, "a tensor of rank 3 needs the number of heads");
    TN_RULE(x, heads <= INT32_MAX, "input %u: %" PRId64 " heads are too many", (unsigned)input, heads);
    if (tn_dim_is_const(g, dims[2], &width))
        TN_RULE(x, width % heads == 0, "input %u: %" PRId64 " columns cannot be divided among %" PRId64 " heads",
                (unsigned)input, width, heads);
    TN_TRY(tn_expand_hold_multiple(x, input, 2, heads));
    dims = tn_expand_dims_copy(x, input);
    if (!dims)
        return tn_error_status();
    tn_dim apart[4] = {dims[0], dims[1], tn_size(x, heads), tn_dim_floordiv(g, dims[2], tn_size(x, heads))};
    *out = tn_transpose(g, tn_reshape_dims(g, tn_expand_input(x, input), 4, apart), swap_heads);
    return TN_OK;
}

/* The way back. */
static tn_value join_heads(tn_expand *x, tn_value v) {
    tn_dim *dims = tn_expand_value_dims(x, v);
    if (!dims)
        return (tn_value){0};
    tn_dim joined[3] = {dims[0], dims[2], tn_dim_mul(x->graph, dims[1], dims[3])};
    return tn_reshape_dims(x->graph, tn_transpose(x->graph, v, swap_heads), 3, joined);
}

/* --- attention --------------------------------------------------------------------------------------------------------------------- */

typedef struct attention {
    tn_dtype dtype;
    tn_value q, k, v; /* [batch, heads, length, size] */
    tn_dim batch, heads, kv_heads, q_length, total;
    tn_value bias;     /* added to the scores, or null */
    tn_value allowed;  /* which keys are attended, or null: all. Broadcast to the scores */
    bool may_be_empty; /* a query may attend no key */
    bool parted;       /* scores have an axis of key heads, and one of the heads that share each */
} attention;

static tn_status read_inputs(tn_expand *x, attention *a) {
    tn_graph *g = x->graph;
    a->dtype = tn_expand_dtype(x, 0);
    int rank = tn_expand_rank(x, 0);
    static const char *const names[] = {"Q", "K", "V"};
    TN_RULE(x, rank == 3 || rank == 4, "'Q' has rank %d, it must be 3 or 4", rank);
    for (uint32_t i = 0; i < 3; i++) {
        tn_value *to = i == 0 ? &a->q : i == 1 ? &a->k : &a->v;
        TN_RULE(x, tn_is_float(tn_expand_dtype(x, i)), "'%s' is %s: it must be of a floating point type", names[i],
                tn_dtype_name(tn_expand_dtype(x, i)));
        TN_RULE(x, i == 2 || tn_expand_dtype(x, i) == a->dtype, "'Q' and 'K' differ in their element type");
        TN_RULE(x, tn_expand_rank(x, i) == rank, "'%s' has rank %d, but 'Q' %d", names[i], tn_expand_rank(x, i), rank);
        TN_RULE(x, rank == 3 || !(tn_expand_has_attr(x, "q_num_heads") || tn_expand_has_attr(x, "kv_num_heads")),
                "'q_num_heads' and 'kv_num_heads' go with inputs of rank 3; these have rank %d", rank);
        if (rank == 3)
            TN_TRY(split_heads(x, i, tn_expand_int(x, i == 0 ? "q_num_heads" : "kv_num_heads"), to));
        else
            *to = tn_expand_input(x, i);
        TN_BUILT(x, *to);
    }
    TN_RULE(x, tn_expand_has(x, 4) == tn_expand_has(x, 5), "'past_key' and 'past_value' go together");
    TN_RULE(x, !tn_expand_has(x, 6) || !tn_expand_has(x, 4), "'nonpad_kv_seqlen' does not go with 'past_key'");
    for (uint32_t i = 4; i < 6 && tn_expand_has(x, i); i++) {
        tn_value *to = i == 4 ? &a->k : &a->v;
        TN_RULE(x, tn_expand_rank(x, i) == 4 && tn_expand_dtype(x, i) == tn_value_dtype(g, *to),
                "'%s' must have rank 4 and the element type of '%s'", i == 4 ? "past_key" : "past_value", names[i - 3]);
        for (int k = 0; k < 4; k += k == 1 ? 2 : 1) /* all but the lengths */
            TN_RULE(x, !tn_dim_never_equal(g, tn_expand_dim(x, i, k), tn_value_dim(g, *to, k)),
                    "'%s' has another size on axis %d than '%s', in heads", i == 4 ? "past_key" : "past_value", k,
                    names[i - 3]);
        tn_value both[2] = {tn_expand_input(x, i), *to};
        *to = tn_concat(g, 2, 2, both);
        TN_BUILT(x, *to);
    }
    const struct {
        tn_value a, b;
        int axis;
        const char *text;
    } same[] = {{a->q, a->k, 0, "'K' must have the batch of 'Q'"},
                {a->q, a->v, 0, "'V' must have the batch of 'Q'"},
                {a->q, a->k, 3, "heads of 'K' must have the size of those of 'Q'"},
                {a->k, a->v, 1, "'V' must have the heads of 'K'"},
                {a->k, a->v, 2, "'V' must have the length of 'K'"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        TN_RULE(
            x,
            !tn_dim_never_equal(g, tn_value_dim(g, same[i].a, same[i].axis), tn_value_dim(g, same[i].b, same[i].axis)),
            "%s", same[i].text);
    a->batch = tn_value_dim(g, a->q, 0);
    a->heads = tn_value_dim(g, a->q, 1);
    a->q_length = tn_value_dim(g, a->q, 2);
    a->kv_heads = tn_value_dim(g, a->k, 1);
    a->total = tn_value_dim(g, a->k, 2);
    int64_t h, kv;
    if (tn_dim_is_const(g, a->heads, &h) && tn_dim_is_const(g, a->kv_heads, &kv))
        TN_RULE(x, kv > 0 && h % kv == 0, "%" PRId64 " query heads cannot be divided among %" PRId64 " key heads", h,
                kv);
    else
        a->q = tn_expand_sure(x, a->q, 1, tn_dim_mul(g, tn_dim_floordiv(g, a->heads, a->kv_heads), a->kv_heads));
    TN_BUILT(x, a->q);
    return TN_OK;
}

static void allow(tn_expand *x, attention *a, tn_value which) {
    a->allowed = a->allowed.id ? tn_and(x->graph, a->allowed, which) : which;
}

/* A mask that ends before the last key disallows the rest (from operator set 24 on). */
static tn_status read_mask(tn_expand *x, attention *a) {
    tn_graph *g = x->graph;
    if (!tn_expand_has(x, 3))
        return TN_OK;
    tn_value mask = tn_expand_input(x, 3);
    tn_dtype dtype = tn_expand_dtype(x, 3);
    int rank = tn_expand_rank(x, 3);
    TN_RULE(x, dtype == TN_BOOL || dtype == a->dtype, "'attn_mask' is %s: it must be bool or %s", tn_dtype_name(dtype),
            tn_dtype_name(a->dtype));
    TN_RULE(x, rank <= 4, "'attn_mask' has rank %d: at most 4 is possible", rank);
    for (int i = 0; i < rank; i++) { /* 1, or that of the scores: a mask does not widen them */
        int axis = 4 - rank + i;
        tn_dim have = tn_expand_dim(x, 3, i), want = axis == 3 ? a->total : tn_value_dim(g, a->q, axis);
        bool shorter = axis == 3 && x->version >= 24;
        if (shorter) {
            have = tn_dim_max(g, have, want);
        } else {
            TN_RULE(x, !tn_dim_never_equal(g, have, want) || !tn_dim_never_equal(g, have, tn_size(x, 1)),
                    "axis %d of 'attn_mask' is neither 1 nor that of the scores", i);
            have = tn_size_is(x, have, 1) ? want : tn_expand_spread(x, have, want);
        }
        TN_SIZED(x, have);
        tn_value *of = axis == 3 ? &a->k : &a->q;
        *of = tn_expand_sure(x, *of, axis == 3 ? 2 : axis, have);
        TN_BUILT(x, *of);
    }
    if (x->version >= 24 && rank > 0 && !tn_dim_equal(g, tn_expand_dim(x, 3, -1), a->total)) {
        tn_dim lo[4], hi[4], zero = tn_size(x, 0);
        for (int i = 0; i < rank; i++)
            lo[i] = hi[i] = zero;
        hi[rank - 1] = tn_dim_max(g, tn_dim_sub(g, a->total, tn_expand_dim(x, 3, -1)), zero);
        TN_SIZED(x, hi[rank - 1]);
        tn_value fill = dtype == TN_BOOL ? tn_scalar(g, TN_BOOL, 0) : tn_scalar(g, dtype, -HUGE_VAL);
        mask = tn_pad(g, mask, fill, lo, hi, "constant");
    }
    a->may_be_empty = true;
    if (dtype == TN_BOOL)
        allow(x, a, mask);
    else
        a->bias = mask;
    return TN_OK;
}

/* Keys by position: query i stands at i + offset; padding, what is_causal hides, and what windows leave out. */
static tn_status read_positions(tn_expand *x, attention *a) {
    tn_graph *g = x->graph;
    bool causal = tn_expand_int(x, "is_causal") != 0;
    int64_t left = tn_expand_int(x, "left_window_size"), right = tn_expand_int(x, "right_window_size");
    TN_RULE(x, left >= -1 && right >= -1, "a window size is below -1");
    tn_dim plane[2] = {a->q_length, a->total}, column[4] = {a->batch, tn_size(x, 1), tn_size(x, 1), tn_size(x, 1)};
    tn_value length = {0}, key = tn_iota(g, TN_I64, 2, plane, 1);
    if (tn_expand_has(x, 6)) {
        TN_RULE(x, tn_expand_rank(x, 6) == 1 && tn_expand_dtype(x, 6) == TN_I64,
                "'nonpad_kv_seqlen' must be a list of i64");
        TN_RULE(x, !tn_dim_never_equal(g, tn_expand_dim(x, 6, 0), a->batch),
                "'nonpad_kv_seqlen' must have one entry for each of the batch");
        length = tn_reshape_dims(g, tn_expand_input(x, 6), 4, column);
        allow(x, a, tn_less(g, key, length));
        a->may_be_empty = true;
    }
    if (!causal && left < 0 && right < 0)
        return TN_OK;
    tn_value query = tn_iota(g, TN_I64, 2, plane, 0);
    if (length.id)
        query = tn_add(g, query, tn_sub(g, length, tn_expand_size_value(x, a->q_length, TN_I64)));
    else if (tn_expand_has(x, 4))
        query = tn_add(g, query, tn_expand_size_value(x, tn_expand_dim(x, 4, 2), TN_I64));
    if (causal)
        allow(x, a, tn_less_equal(g, key, query));
    if (left >= 0) {
        allow(x, a, tn_greater_equal(g, key, tn_sub(g, query, tn_constant_i64(g, 0, 1, &left))));
        a->may_be_empty = true;
    }
    if (right >= 0)
        allow(x, a, tn_less_equal(g, key, tn_add(g, query, tn_constant_i64(g, 0, 1, &right))));
    return TN_OK;
}

/* Products of a's rows with b's rows (columns: false) or columns, for each key head. */
static tn_value product(tn_expand *x, tn_value a, tn_value b, bool rows) {
    static const int64_t batch[2] = {0, 1}, last[1] = {3}, third[1] = {2};
    const int64_t summed[1] = {tn_value_rank(x->graph, a) - 1};
    return tn_dot(x->graph, a, b, 2, batch, batch, 1, summed, rows ? last : third);
}

/* [batch, heads, length, n] as [batch, kv_heads, heads / kv_heads * length, n]. */
static tn_value group(tn_expand *x, const attention *a, tn_value v) {
    tn_graph *g = x->graph;
    if (!v.id || tn_dim_equal(g, a->heads, a->kv_heads))
        return v;
    tn_dim rows = tn_dim_mul(g, tn_dim_floordiv(g, a->heads, a->kv_heads), a->q_length);
    tn_dim dims[4] = {a->batch, a->kv_heads, rows, tn_value_dim(g, v, 3)};
    return tn_reshape_dims(g, v, 4, dims);
}
static tn_value ungroup(tn_expand *x, const attention *a, tn_value v) {
    if (!v.id || tn_dim_equal(x->graph, a->heads, a->kv_heads))
        return v;
    tn_dim dims[4] = {a->batch, a->heads, a->q_length, tn_value_dim(x->graph, v, -1)};
    return tn_reshape_dims(x->graph, v, 4, dims);
}

/* The axis of heads of what is broadcast to scores; -1: it has none. */
static int head_axis(const tn_graph *g, tn_value v) {
    return v.id ? tn_value_rank(g, v) - 3 : -1;
}

/* Whether that axis is known to be one of all heads, or of one for all. */
static bool may_part(tn_expand *x, const attention *a, tn_value v) {
    int axis = head_axis(x->graph, v);
    if (axis < 0)
        return true;
    tn_dim size = tn_value_dim(x->graph, v, axis);
    return tn_size_is(x, size, 1) || tn_dim_equal(x->graph, size, a->heads);
}

/* v with two axes for that of heads, where scores have them. */
static tn_value part_heads(tn_expand *x, const attention *a, tn_value v) {
    tn_graph *g = x->graph;
    int axis = head_axis(g, v), n = 0;
    if (axis < 0 || !a->parted)
        return v;
    bool one = tn_size_is(x, tn_value_dim(g, v, axis), 1);
    tn_dim dims[5];
    for (int i = 0; i < tn_value_rank(g, v); i++) {
        dims[n++] = i == axis && !one ? a->kv_heads : tn_value_dim(g, v, i);
        if (i == axis)
            dims[n++] = one ? tn_size(x, 1) : tn_dim_floordiv(g, a->heads, a->kv_heads);
    }
    return tn_reshape_dims(g, v, n, dims);
}

/* What queries are multiplied by, and keys where it is the `root` of the scale. */
static tn_value scale_of(tn_expand *x, const attention *a, bool root) {
    tn_graph *g = x->graph;
    int64_t size;
    if (tn_expand_has_attr(x, "scale")) {
        double scale = tn_expand_float(x, "scale");
        return tn_cast(g, tn_scalar(g, TN_F32, root ? sqrt(scale) : scale), a->dtype);
    }
    tn_dim width = tn_value_dim(g, a->q, 3);
    if (tn_dim_is_const(g, width, &size)) {
        double scale = 1 / sqrt((double)size);
        return tn_cast(g, tn_scalar(g, TN_F64, root ? sqrt(scale) : scale), a->dtype);
    }
    tn_value scale = tn_reciprocal(g, tn_sqrt(g, tn_expand_size_value(x, width, TN_F64)));
    return tn_cast(g, root ? tn_sqrt(g, scale) : scale, a->dtype);
}

/* Whether both factors are multiplied by the root of the scale, as the standard has it. It keeps products of narrow types in range; others are
   spared a walk over all keys. No number is the root of a negative scale. */
static bool both_scaled(tn_expand *x, const attention *a) {
    return (a->dtype != TN_F32 && a->dtype != TN_F64) ||
           (tn_expand_has_attr(x, "scale") && tn_expand_float(x, "scale") < 0);
}

static tn_status softmax_dtype(tn_expand *x, const attention *a, tn_dtype *dtype) {
    *dtype = a->dtype;
    if (!tn_expand_has_attr(x, "softmax_precision"))
        return TN_OK;
    int64_t t = tn_expand_int(x, "softmax_precision");
    TN_RULE(x, t > 0 && t < TN_DTYPE_COUNT && tn_is_float((tn_dtype)t), "attribute 'softmax_precision' is %" PRId64, t);
    *dtype = (tn_dtype)t;
    return TN_OK;
}

/* Whether a query attends any key: its bias is not -infinity everywhere. */
static tn_value attends(tn_expand *x, const attention *a) {
    tn_graph *g = x->graph;
    tn_dim dims[5] = {a->batch, a->heads, a->q_length, a->q_length, a->total};
    const int rank = a->parted ? 5 : 4;
    dims[rank - 1] = a->total;
    tn_value some = a->allowed;
    if (a->bias.id) {
        tn_value open = tn_not_equal(g, a->bias, tn_scalar_like(g, a->bias, -HUGE_VAL));
        some = some.id ? tn_and(g, some, open) : open;
    }
    if (!some.id)
        return some;
    for (int i = 0, missing = rank - tn_value_rank(g, some); i + 1 < rank; i++) /* one row stands for all equal ones */
        dims[i] = i < missing ? tn_size(x, 1) : tn_value_dim(g, some, i - missing);
    const int last[1] = {rank - 1};
    return tn_reduce_or(g, tn_broadcast(g, some, rank, dims), 1, last, true);
}

static tn_status expand_attention(tn_expand *x) {
    tn_graph *g = x->graph;
    attention a = {0};
    tn_dtype precise;
    int64_t mode = tn_expand_int(x, "qk_matmul_output_mode");
    double cap = tn_expand_float(x, "softcap");
    TN_RULE(x, mode >= 0 && mode <= 3, "attribute 'qk_matmul_output_mode' is %" PRId64, mode);
    TN_TRY(read_inputs(x, &a));
    TN_TRY(softmax_dtype(x, &a, &precise));
    TN_TRY(read_mask(x, &a));
    TN_TRY(read_positions(x, &a));
    a.parted = !tn_dim_equal(g, a.heads, a.kv_heads) && may_part(x, &a, a.bias) && may_part(x, &a, a.allowed);
    a.bias = part_heads(x, &a, a.bias);
    a.allowed = part_heads(x, &a, a.allowed);
    bool both = both_scaled(x, &a);
    tn_value scale = scale_of(x, &a, both), q = tn_mul(g, a.q, scale), k = both ? tn_mul(g, a.k, scale) : a.k;
    tn_value scores = product(x, a.parted ? part_heads(x, &a, q) : group(x, &a, q), k, true);
    scores = a.parted ? scores : ungroup(x, &a, scores);
    tn_value shown = scores;
    TN_BUILT(x, scores);
    if (cap > 0) {
        tn_value bound = tn_scalar_like(g, scores, cap);
        scores = tn_mul(g, tn_tanh(g, tn_div(g, scores, bound)), bound);
    }
    shown = mode == 1 ? scores : shown;
    if (a.bias.id)
        scores = tn_add(g, scores, a.bias);
    if (a.allowed.id)
        scores = tn_select(g, a.allowed, scores, tn_scalar(g, a.dtype, -HUGE_VAL));
    shown = mode == 2 ? scores : shown;
    tn_value weights = tn_softmax(g, tn_cast(g, scores, precise), -1);
    TN_BUILT(x, weights);
    if (a.may_be_empty)
        weights = tn_select(g, attends(x, &a), weights, tn_scalar_like(g, weights, 0));
    weights = tn_cast(g, weights, a.dtype);
    shown = mode == 3 ? weights : shown;
    tn_value y = product(x, a.parted ? weights : group(x, &a, weights), tn_cast(g, a.v, a.dtype), false);
    y = ungroup(x, &a, y);
    if (tn_expand_wants(x, 1))
        TN_TRY(tn_expand_set(x, 1, a.k));
    if (tn_expand_wants(x, 2))
        TN_TRY(tn_expand_set(x, 2, a.v));
    if (tn_expand_wants(x, 3))
        TN_TRY(tn_expand_set(x, 3, a.parted ? ungroup(x, &a, shown) : shown));
    return tn_expand_set(x, 0, tn_expand_rank(x, 0) == 3 ? join_heads(x, y) : y);
}

/* --- flexible attention: the scores and probabilities go through graphs of the model's ------------------------------------------------ */

/* What the graph attribute makes of v, in `dtype`; v when there is none. */
static tn_status modify(tn_expand *x, uint32_t region, const char *name, tn_value *v) {
    tn_graph *g = x->graph;
    if (region >= tn_node_region_count(g, x->node) || !tn_expand_body_results(x, region))
        return TN_OK;
    TN_RULE(x, tn_expand_body_args(x, region) == 1 && tn_expand_body_results(x, region) == 1,
            "attribute '%s' must take one tensor and give one", name);
    tn_dtype dtype = tn_value_dtype(g, *v);
    TN_TRY(tn_expand_body(x, region, 1, v, 1, v));
    TN_RULE(x, v->id && tn_value_dtype(g, *v) == dtype, "attribute '%s' must keep the element type", name);
    return TN_OK;
}

static tn_status expand_flex(tn_expand *x) {
    tn_graph *g = x->graph;
    attention a = {0};
    tn_dtype precise;
    TN_RULE(x, tn_expand_rank(x, 0) == 4, "'Q' has rank %d, it must be 4", tn_expand_rank(x, 0));
    TN_TRY(read_inputs(x, &a));
    TN_TRY(softmax_dtype(x, &a, &precise));
    if (!tn_expand_has_attr(x, "softmax_precision") && precise != TN_F64)
        precise = TN_F32;
    tn_value scale = scale_of(x, &a, true);
    tn_value scores = product(x, group(x, &a, tn_mul(g, a.q, scale)), tn_mul(g, a.k, scale), true);
    scores = tn_cast(g, ungroup(x, &a, scores), precise);
    TN_BUILT(x, scores);
    TN_TRY(modify(x, 0, "score_mod", &scores));
    tn_value weights = tn_softmax(g, scores, 3);
    TN_BUILT(x, weights);
    TN_TRY(modify(x, 1, "prob_mod", &weights));
    tn_value y = product(x, group(x, &a, weights), tn_cast(g, a.v, precise), false);
    return tn_expand_set(x, 0, tn_cast(g, ungroup(x, &a, y), tn_expand_dtype(x, 2)));
}

/* --- rotary embedding --------------------------------------------------------------------------------------------------------------------- */

/* cos_cache or sin_cache, `wanted` [batch, length, half], as [batch, 1, length, half] in the wide dtype. */
static tn_status read_cache(tn_expand *x, uint32_t input, const char *name, tn_dtype wide, const tn_dim wanted[3],
                            tn_value *out) {
    tn_graph *g = x->graph;
    static const int heads[1] = {1};
    bool by_id = tn_expand_has(x, 3);
    tn_value v = tn_expand_input(x, input);
    TN_RULE(x, tn_expand_rank(x, input) == (by_id ? 2 : 3), "'%s' has rank %d, it must be %d", name,
            tn_expand_rank(x, input), by_id ? 2 : 3);
    TN_RULE_SAME(x, tn_expand_dim(x, input, -1), wanted[2], "the last axis of '%s' must have half of what is rotated",
                 name);
    if (by_id) {
        TN_RULE(x, tn_expand_rank(x, 3) == 2, "'position_ids' has rank %d, it must be 2", tn_expand_rank(x, 3));
        tn_value at = tn_cast(g, tn_expand_input(x, 3), TN_I64),
                 rows = tn_expand_size_value(x, tn_value_dim(g, v, 0), TN_I64),
                 last = tn_sub(g, rows, tn_scalar(g, TN_I64, 1));
        v = tn_gather(g, v, tn_expand_within(x, at, tn_neg(g, rows), last, "position_ids"), 0);
    }
    TN_BUILT(x, v);
    for (int i = 0; i < 2; i++)
        TN_RULE_SAME(x, tn_value_dim(g, v, i), wanted[i],
                     "'%s' has the wrong size for axis %d of [batch, length, half of what is rotated]", name, i);
    v = tn_reshape_dims(g, v, 3, wanted); /* checked when it runs, where it is not known to be */
    *out = tn_cast(g, tn_expand_dims(g, v, 1, heads), wide);
    return TN_OK;
}

static tn_status expand_rotary(tn_expand *x) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0);
    tn_dtype dtype = tn_expand_dtype(x, 0), wide = tn_wide(dtype);
    bool interleaved = tn_expand_int(x, "interleaved") != 0;
    tn_value v = tn_expand_input(x, 0), cosine = {0}, sine = {0};
    TN_RULE(x, rank == 3 || rank == 4, "the input has rank %d, it must be 3 or 4", rank);
    if (rank == 3)
        TN_TRY(split_heads(x, 0, tn_expand_int(x, "num_heads"), &v));
    TN_BUILT(x, v);
    tn_dim size = tn_value_dim(g, v, 3), two = tn_size(x, 2), zero = tn_size(x, 0), turned = size;
    int64_t part = tn_expand_int(x, "rotary_embedding_dim"), n = 0;
    TN_RULE(x, part >= 0, "attribute 'rotary_embedding_dim' is %" PRId64, part);
    if (part)
        turned = tn_size(x, part);
    if (tn_dim_is_const(g, turned, &n))
        TN_RULE(x, n % 2 == 0, "%" PRId64 " entries cannot be rotated in pairs", n);
    TN_RULE(x, tn_dim_is_const(g, size, &n) ? part <= n : true,
            "'rotary_embedding_dim' is %" PRId64 ", but a head has %" PRId64 " entries", part, n);
    v = tn_expand_sure(x, v, 3, part ? tn_dim_max(g, size, turned) : tn_dim_mul(g, tn_dim_floordiv(g, size, two), two));
    TN_BUILT(x, v);
    tn_dim half = tn_dim_floordiv(g, turned, two);
    const tn_dim cache[3] = {tn_value_dim(g, v, 0), tn_value_dim(g, v, 2), half};
    TN_TRY(read_cache(x, 1, "cos_cache", wide, cache, &cosine));
    TN_TRY(read_cache(x, 2, "sin_cache", wide, cache, &sine));
    tn_value w = tn_cast(g, v, wide), rest = {0};
    if (!tn_dim_equal(g, turned, size)) {
        rest = tn_expand_slice(x, v, 3, turned, tn_dim_sub(g, size, turned), 1);
        w = tn_expand_slice(x, w, 3, zero, turned, 1);
    }
    tn_value first = tn_expand_slice(x, w, 3, zero, half, interleaved ? 2 : 1);
    tn_value second =
        interleaved ? tn_expand_slice(x, w, 3, tn_size(x, 1), half, 2) : tn_expand_slice(x, w, 3, half, half, 1);
    tn_value out[2] = {tn_sub(g, tn_mul(g, cosine, first), tn_mul(g, sine, second)),
                       tn_add(g, tn_mul(g, sine, first), tn_mul(g, cosine, second))};
    tn_value y;
    if (interleaved) {
        static const int pair[1] = {4};
        tn_dim *dims = tn_expand_value_dims(x, w);
        if (!dims)
            return tn_error_status();
        for (int i = 0; i < 2; i++)
            out[i] = tn_expand_dims(g, out[i], 1, pair);
        y = tn_reshape_dims(g, tn_concat(g, 4, 2, out), 4, dims);
    } else {
        y = tn_concat(g, 3, 2, out);
    }
    y = tn_cast(g, y, dtype);
    if (rest.id) {
        tn_value both[2] = {y, rest};
        y = tn_concat(g, 3, 2, both);
    }
    return tn_expand_set(x, 0, rank == 3 ? join_heads(x, y) : y);
}

/* --- rows ------------------------------------------------------------------------------------------------------------------------------ */

#define COMMON                                                                                           \
    TN_SPEC_BOOL("is_causal", 0), TN_SPEC_INT("q_num_heads", 0), TN_SPEC_INT("kv_num_heads", 0),         \
        TN_SPEC_INT("qk_matmul_output_mode", 0), TN_SPEC_FLOAT("scale", 0), TN_SPEC_FLOAT("softcap", 0), \
        TN_SPEC_INT("softmax_precision", 0)
static const tn_attr_spec attention_attrs[] = {
    COMMON, TN_SPEC_INT("left_window_size", -1), TN_SPEC_INT("right_window_size", -1), {0}};
static const tn_attr_spec rotary_attrs[] = {
    TN_SPEC_BOOL("interleaved", 0), TN_SPEC_INT("num_heads", 0), TN_SPEC_INT("rotary_embedding_dim", 0), {0}};
static const tn_attr_spec flex_attrs[] = {TN_SPEC_FLOAT("scale", 0), TN_SPEC_INT("softmax_precision", 0), {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX("Attention", .since = 23, .inputs = {3, 7}, .outputs = {1, 4}, .attrs = attention_attrs,
            .expand = expand_attention),
    TN_ONNX("RotaryEmbedding", .since = 23, .inputs = {3, 4}, .outputs = {1, 1}, .attrs = rotary_attrs,
            .expand = expand_rotary),
    TN_ONNX_CONTROL_OF("ai.onnx.preview", "FlexAttention", 2, .since = 1, .inputs = {3, 3}, .outputs = {1, 1},
                       .attrs = flex_attrs, .regions = "score_mod prob_mod", .flags = TN_ONNX_OPTIONAL_GRAPHS,
                       .expand = expand_flex),
};

const tn_onnx_family tn_onnx_family_attention = {rows, sizeof rows / sizeof *rows};
