/* What the expansions of ai.onnx.ml share. */
#include "onnx/expand_ml.h"

/* --- constants -------------------------------------------------------------------------------------------------------------- */

tn_value tn_ml_tensor(tn_expand *x, tn_tensor *tensor) {
    tn_value value = tensor ? tn_graph_constant(x->graph, tensor) : (tn_value){0};
    if (!tensor)
        tn_graph_stick(x->graph);
    tn_tensor_destroy(tensor);
    return value;
}

tn_value tn_ml_constant(tn_expand *x, tn_dtype dtype, int rank, const int64_t *dims, const float *values) {
    tn_tensor *t = tn_tensor_new(x->graph->heap, dtype, rank, dims);
    for (int64_t i = 0; t && i < t->count; i++)
        tn_store_f64(dtype, t->data, i, (double)values[i]);
    return tn_ml_tensor(x, t);
}

tn_tensor *tn_ml_strings(tn_expand *x, uint32_t count, const tn_string *strings) {
    int64_t n = count;
    tn_tensor *t = tn_tensor_create_in(x->graph->heap, TN_STRING, 1, &n);
    for (uint32_t i = 0; t && i < count; i++)
        if (tn_tensor_set_string(t, i, strings[i].data, strings[i].length) != TN_OK) {
            tn_tensor_destroy(t);
            t = NULL;
        }
    return t;
}

tn_tensor *tn_ml_ints(tn_expand *x, uint32_t count, const int64_t *ints) {
    int64_t n = count;
    tn_tensor *t = tn_tensor_new(x->graph->heap, TN_I64, 1, &n);
    if (t && n)
        memcpy(t->data, ints, (size_t)n * sizeof *ints);
    return t;
}

/* --- input ---------------------------------------------------------------------------------------------------------------------- */

tn_status tn_ml_numbers(tn_expand *x, tn_value *out) {
    tn_dtype dtype = tn_expand_dtype(x, 0);
    TN_RULE(x, dtype == TN_F32 || dtype == TN_F64 || dtype == TN_I64 || dtype == TN_I32,
            "the input is %s: it must be f32, f64, i64 or i32", tn_dtype_name(dtype));
    *out = tn_cast(x->graph, tn_expand_input(x, 0), dtype == TN_F64 ? TN_F64 : TN_F32);
    return out->id ? TN_OK : tn_graph_check(x->graph);
}

tn_status tn_ml_rows(tn_expand *x, tn_value *out) {
    static const int front[1] = {0};
    int rank = tn_expand_rank(x, 0);
    TN_RULE(x, rank == 1 || rank == 2, "the input has rank %d: it must be [rows, features] or [features]", rank);
    TN_TRY(tn_ml_numbers(x, out));
    if (rank == 1)
        *out = tn_expand_dims(x->graph, *out, 1, front);
    return out->id ? TN_OK : tn_graph_check(x->graph);
}

/* --- labels --------------------------------------------------------------------------------------------------------------------- */

tn_status tn_ml_read_labels(tn_expand *x, const char *ints, const char *strings, tn_ml_labels *out) {
    const int64_t *numbers;
    const tn_string *texts;
    uint32_t n = tn_expand_ints(x, ints, &numbers), m = tn_expand_strings(x, strings, &texts);
    TN_RULE(x, !n || !m, "both '%s' and '%s' are given", ints, strings);
    *out = (tn_ml_labels){.count = n ? n : m, .strings = m != 0};
    if (out->count)
        out->values = tn_ml_tensor(x, m ? tn_ml_strings(x, m, texts) : tn_ml_ints(x, n, numbers));
    return tn_graph_check(x->graph);
}

tn_value tn_ml_pick(tn_expand *x, const tn_ml_labels *labels, tn_value index) {
    return labels->count ? tn_gather(x->graph, labels->values, index, 0) : index;
}

tn_value tn_ml_pick_second(tn_expand *x, const tn_ml_labels *labels, tn_value second) {
    tn_value index = tn_cast(x->graph, second, TN_I64);
    if (labels->count == 1 && labels->strings)
        index = tn_mul(x->graph, index, tn_scalar_like(x->graph, index, 0));
    else if (labels->count < 2)
        return index;
    return tn_ml_pick(x, labels, index);
}

/* --- scores --------------------------------------------------------------------------------------------------------------------- */

tn_ml_post tn_ml_read_post(tn_expand *x) {
    static const char *const names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
    for (int i = 0; i < 5; i++)
        if (tn_expand_string_is(x, "post_transform", names[i]))
            return (tn_ml_post)i;
    return TN_ML_NONE;
}

/* Softmax in which a score of (nearly) 0 counts as 0. */
static tn_value softmax_zero(tn_graph *g, tn_value v) {
    static const int last[1] = {1};
    tn_value most = tn_reduce_max(g, v, 1, last, true), zero = tn_scalar_like(g, v, 0);
    tn_value tiny = tn_less_equal(g, tn_abs(g, v), tn_scalar_like(g, v, 1e-7));
    tn_value e = tn_select(g, tiny, tn_mul(g, v, tn_exp(g, tn_neg(g, most))), tn_exp(g, tn_sub(g, v, most)));
    tn_value sum = tn_reduce_sum(g, e, 1, last, true);
    return tn_select(g, tn_equal(g, sum, zero), tn_scalar_like(g, v, 0.5), tn_div(g, e, sum));
}

/* sqrt(2) erfinv(2 v - 1), by Winitzki's formula, as other implementations compute it. */
static tn_value probit(tn_graph *g, tn_value v) {
    tn_value one = tn_scalar_like(g, v, 1), p = tn_sub(g, tn_mul(g, v, tn_scalar_like(g, v, 2)), one);
    tn_value log = tn_log(g, tn_mul(g, tn_sub(g, one, p), tn_add(g, one, p)));
    tn_value a = tn_add(g, tn_mul(g, log, tn_scalar_like(g, v, 0.5)),
                        tn_scalar_like(g, v, 2.0 / (3.14159265358979323846 * 0.147)));
    tn_value root = tn_sqrt(g, tn_sub(g, tn_mul(g, a, a), tn_mul(g, log, tn_scalar_like(g, v, 1 / 0.147))));
    tn_value r = tn_mul(g, tn_sqrt(g, tn_sub(g, root, a)), tn_scalar_like(g, v, 1.41421356));
    return tn_select(g, tn_less(g, p, tn_scalar_like(g, v, 0)), tn_neg(g, r), r);
}

tn_value tn_ml_transform(tn_expand *x, tn_ml_post post, tn_value scores) {
    if (!scores.id)
        return scores;
    switch (post) {
    case TN_ML_SOFTMAX: return tn_softmax(x->graph, scores, 1);
    case TN_ML_LOGISTIC: return tn_sigmoid(x->graph, scores);
    case TN_ML_SOFTMAX_ZERO: return softmax_zero(x->graph, scores);
    case TN_ML_PROBIT: return probit(x->graph, scores);
    case TN_ML_NONE: break;
    }
    return scores;
}

tn_value tn_ml_two_scores(tn_expand *x, tn_ml_post post, tn_value score, bool probability) {
    tn_graph *g = x->graph;
    if (!score.id)
        return score;
    bool complement = post == TN_ML_PROBIT || (post == TN_ML_NONE && probability);
    tn_value both[2] = {complement ? tn_sub(g, tn_scalar_like(g, score, 1), score) : tn_neg(g, score), score};
    return tn_ml_transform(x, post, tn_concat(g, 1, 2, both));
}
