/* Losses: NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss. f16 and bf16 are computed in f32. */
#include "onnx/expand_common.h"

/* log_prob[n][target][d] of each target, and the weight of each; both have the targets' shape. */
typedef struct picked {
    tn_value score, weight; /* weight null: 1 each */
} picked;

static tn_status pick(tn_expand *x, tn_value log_prob, picked *p) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0);
    const tn_dim *dims = tn_expand_dims_copy(x, 0), *shape = tn_expand_dims_copy(x, 1);
    if (!dims || !shape)
        return tn_error_status();
    TN_RULE(x, rank >= 2, "the input has rank %d: at least 2 are needed (batch, classes)", rank);
    TN_RULE(x, tn_expand_rank(x, 1) == rank - 1, "the targets have rank %d, they must have %d", tn_expand_rank(x, 1),
            rank - 1);
    for (int i = 0; i < rank - 1; i++)
        TN_RULE_SAME(x, shape[i], dims[i == 0 ? 0 : i + 1], "the targets differ from the input on axis %d", i);
    tn_dim image = tn_size_product(x, rank - 2, dims + 2), flat[2] = {dims[0], image};
    TN_SIZED(x, image);
    tn_value target = tn_cast(g, tn_expand_input(x, 1), TN_I64), ignored = {0}, zero_index = tn_scalar(g, TN_I64, 0);
    tn_value classes = tn_expand_size_value(x, dims[1], TN_I64), last = tn_sub(g, classes, tn_scalar(g, TN_I64, 1));
    if (tn_expand_has_attr(x, "ignore_index")) {
        int64_t index = tn_expand_int(x, "ignore_index");
        ignored = tn_equal(g, target, tn_constant_i64(g, 0, 1, &index));
        tn_value shown[3] = {target, last, tn_constant_i64(g, 0, 1, &index)};
        tn_value holds = tn_and(g, tn_greater_equal(g, target, zero_index), tn_less_equal(g, target, last));
        target = tn_require(g, target, tn_or(g, ignored, holds),
                            "target{i} is {0}: it must lie in 0..{1}, or be the ignore_index {2}", 3, shown);
        target = tn_select(g, ignored, zero_index, target);
        ignored = tn_reshape_dims(g, ignored, 2, flat);
    } else {
        target = tn_expand_within(x, target, zero_index, last, "target");
    }
    target = tn_reshape_dims(g, target, 2, flat);
    if (tn_expand_has(x, 2)) {
        TN_RULE(x, tn_expand_rank(x, 2) == 1, "there must be one weight for each class");
        TN_RULE_SAME(x, tn_expand_dim(x, 2, 0), dims[1], "there must be one weight for each class");
        tn_value weights = tn_cast(g, tn_expand_input(x, 2), tn_value_dtype(g, log_prob));
        p->weight = tn_gather(g, weights, target, 0);
    }
    /* [batch, classes, image] in one row each: the position is (n * classes + target) * image + d */
    tn_value at = tn_add(g, tn_mul(g, tn_iota(g, TN_I64, 2, flat, 0), classes), target);
    at = tn_add(g, tn_mul(g, at, tn_expand_size_value(x, image, TN_I64)), tn_iota(g, TN_I64, 2, flat, 1));
    tn_dim all = tn_size_product(x, rank, dims);
    TN_SIZED(x, all);
    p->score = tn_gather(g, tn_reshape_dims(g, log_prob, 1, &all), at, 0);
    TN_BUILT(x, p->score);
    if (ignored.id) {
        tn_value zero = tn_scalar_like(g, p->score, 0), one = tn_scalar_like(g, p->score, 1);
        p->score = tn_select(g, ignored, zero, p->score);
        p->weight = tn_select(g, ignored, zero, p->weight.id ? p->weight : one);
    }
    if (p->weight.id)
        p->weight = tn_reshape_dims(g, p->weight, rank - 1, shape);
    p->score = tn_reshape_dims(g, p->score, rank - 1, shape);
    return TN_OK;
}

static tn_status loss(tn_expand *x, tn_value log_prob) {
    tn_graph *g = x->graph;
    picked p = {0};
    TN_TRY(pick(x, log_prob, &p));
    tn_value y = tn_neg(g, p.score);
    if (p.weight.id)
        y = tn_mul(g, y, p.weight);
    if (tn_expand_string_is(x, "reduction", "mean") && !p.weight.id)
        y = tn_reduce_mean(g, y, TN_ALL_AXES, false);
    else if (!tn_expand_string_is(x, "reduction", "none"))
        y = tn_reduce_sum(g, y, TN_ALL_AXES, false);
    if (tn_expand_string_is(x, "reduction", "mean") && p.weight.id)
        y = tn_div(g, y, tn_reduce_sum(g, p.weight, TN_ALL_AXES, false));
    return tn_expand_set(x, 0, tn_cast(g, y, tn_expand_dtype(x, 0)));
}

static tn_status check_float(tn_expand *x) {
    TN_RULE(x, tn_is_float(tn_expand_dtype(x, 0)), "the input is %s: it must be of a floating point type",
            tn_dtype_name(tn_expand_dtype(x, 0)));
    return TN_OK;
}

static tn_status expand_nll(tn_expand *x) {
    TN_TRY(check_float(x));
    return loss(x, tn_cast(x->graph, tn_expand_input(x, 0), tn_wide(tn_expand_dtype(x, 0))));
}

static tn_status expand_cross_entropy(tn_expand *x) {
    tn_graph *g = x->graph;
    TN_TRY(check_float(x));
    TN_RULE(x, tn_expand_rank(x, 0) >= 2, "the scores have rank %d: at least 2 are needed", tn_expand_rank(x, 0));
    tn_dtype dtype = tn_expand_dtype(x, 0);
    tn_value log_prob = tn_log_softmax(g, tn_cast(g, tn_expand_input(x, 0), tn_wide(dtype)), 1);
    if (tn_expand_wants(x, 1))
        TN_TRY(tn_expand_set(x, 1, tn_cast(g, log_prob, dtype)));
    TN_BUILT(x, log_prob);
    return loss(x, log_prob);
}

static const tn_attr_spec loss_attrs[] = {
    TN_SPEC_INT("ignore_index", 0), TN_SPEC_STRING("reduction", "mean", "none|sum|mean"), {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX("NegativeLogLikelihoodLoss", .since = 12, .inputs = {2, 3}, .outputs = {1, 1}, .attrs = loss_attrs,
            .expand = expand_nll),
    TN_ONNX("SoftmaxCrossEntropyLoss", .since = 12, .inputs = {2, 3}, .outputs = {1, 2}, .attrs = loss_attrs,
            .expand = expand_cross_entropy),
};

const tn_onnx_family tn_onnx_family_loss = {rows, sizeof rows / sizeof *rows};
