/* Operators of ai.onnx.preview.training that step an optimizer: Adagrad, Adam, Momentum. Inputs: rate R, count of updates T, then
   each kind of tensor for all that are optimized (X..., gradients..., states...); outputs: new X..., new states... */
#include "onnx/expand_common.h"

/* The operands of one step. */
typedef struct step {
    tn_expand *x;
    tn_graph *g;
    uint32_t tensors;     /* that are optimized */
    tn_value rate, count; /* f64 scalars */
} step;

static tn_value number(const step *s, tn_value like, double value) {
    return tn_scalar_like(s->g, like, value);
}

static tn_value scaled(const step *s, tn_value v, double factor) {
    return tn_mul(s->g, v, number(s, v, factor));
}

static tn_status one_number(tn_expand *x, uint32_t input, const char *name, tn_value *out) {
    for (int i = 0; i < tn_expand_rank(x, input); i++)
        TN_RULE(x, !tn_dim_never_equal(x->graph, tn_expand_dim(x, input, i), tn_size(x, 1)), "'%s' must be one number",
                name);
    *out = tn_cast(x->graph, tn_reshape_dims(x->graph, tn_expand_input(x, input), 0, NULL), TN_F64);
    TN_BUILT(x, *out);
    return TN_OK;
}

/* `kinds` of inputs for each tensor, all floats of one dtype and shape. */
static tn_status begin(step *s, tn_expand *x, uint32_t kinds) {
    *s = (step){.x = x, .g = x->graph, .tensors = (x->inputs - 2) / kinds};
    TN_RULE(x, (x->inputs - 2) % kinds == 0 && s->tensors, "it has %u inputs: two, and %u for each tensor are needed",
            (unsigned)x->inputs, (unsigned)kinds);
    TN_RULE(x, x->outputs <= s->tensors * (kinds - 1), "it has %u outputs for %u tensors", (unsigned)x->outputs,
            (unsigned)s->tensors);
    tn_dtype rate = tn_expand_dtype(x, 0);
    TN_RULE(x, rate == TN_F32 || rate == TN_F64, "'R' is %s: it must be f32 or f64", tn_dtype_name(rate));
    TN_RULE(x, tn_expand_dtype(x, 1) == TN_I64, "'T' is %s: it must be i64", tn_dtype_name(tn_expand_dtype(x, 1)));
    for (uint32_t i = 2; i < x->inputs; i++) {
        uint32_t of = 2 + (i - 2) % s->tensors;
        tn_dtype dtype = tn_expand_dtype(x, i);
        TN_RULE(x, dtype == TN_F32 || dtype == TN_F64, "input %u is %s: it must be f32 or f64", (unsigned)i,
                tn_dtype_name(dtype));
        TN_RULE(x, dtype == tn_expand_dtype(x, of) && tn_expand_rank(x, i) == tn_expand_rank(x, of),
                "inputs %u and %u differ in element type or rank", (unsigned)of, (unsigned)i);
        for (int d = 0; d < tn_expand_rank(x, i); d++)
            TN_RULE_SAME(x, tn_expand_dim(x, i, d), tn_expand_dim(x, of, d),
                         "inputs %u and %u differ in size on axis %d", (unsigned)of, (unsigned)i, d);
    }
    TN_TRY(one_number(x, 0, "R", &s->rate));
    return one_number(x, 1, "T", &s->count);
}

/* Input of tensor i; kind 0: X, 1: gradient, 2...: states. */
static tn_value in(const step *s, uint32_t kind, uint32_t i) {
    return tn_expand_input(s->x, 2 + kind * s->tensors + i);
}

static tn_status put(const step *s, uint32_t kind, uint32_t i, tn_value v) {
    return tn_expand_set(s->x, kind * s->tensors + i, v);
}

/* The gradient with that of 0.5 * norm_coefficient * |X|^2. */
static tn_value regularized(const step *s, uint32_t i) {
    tn_value g = in(s, 1, i);
    double c = tn_expand_float(s->x, "norm_coefficient");
    return c != 0 ? tn_add(s->g, scaled(s, in(s, 0, i), c), g) : g;
}

static tn_value started(const step *s) {
    return tn_greater(s->g, s->count, number(s, s->count, 0));
}

static tn_status expand_adagrad(tn_expand *x) {
    step s;
    TN_TRY(begin(&s, x, 3));
    tn_graph *g = x->graph;
    tn_value decay = scaled(&s, s.count, tn_expand_float(x, "decay_factor"));
    tn_value rate = tn_div(g, s.rate, tn_add(g, decay, number(&s, decay, 1)));
    for (uint32_t i = 0; i < s.tensors; i++) {
        tn_value v = in(&s, 0, i), grad = regularized(&s, i);
        tn_value h = tn_add(g, in(&s, 2, i), tn_mul(g, grad, grad)), root = tn_sqrt(g, h);
        tn_value by = tn_add(g, root, number(&s, root, tn_expand_float(x, "epsilon")));
        tn_value r = tn_cast(g, rate, tn_expand_dtype(x, 2 + i));
        TN_TRY(put(&s, 0, i, tn_sub(g, v, tn_div(g, tn_mul(g, r, grad), by))));
        TN_TRY(put(&s, 1, i, h));
    }
    return TN_OK;
}

static tn_status expand_adam(tn_expand *x) {
    step s;
    TN_TRY(begin(&s, x, 4));
    tn_graph *g = x->graph;
    double alpha = tn_expand_float(x, "alpha"), beta = tn_expand_float(x, "beta");
    double after = tn_expand_float(x, "norm_coefficient_post");
    tn_value one = number(&s, s.rate, 1);
    tn_value a = tn_sub(g, one, tn_pow(g, number(&s, s.rate, alpha), s.count));
    tn_value b = tn_sub(g, one, tn_pow(g, number(&s, s.rate, beta), s.count));
    tn_value rate = tn_select(g, started(&s), tn_div(g, tn_mul(g, s.rate, tn_sqrt(g, b)), a), s.rate);
    for (uint32_t i = 0; i < s.tensors; i++) {
        tn_value v = in(&s, 0, i), grad = regularized(&s, i);
        tn_value mean = tn_add(g, scaled(&s, in(&s, 2, i), alpha), scaled(&s, grad, 1 - alpha));
        tn_value square = tn_add(g, scaled(&s, in(&s, 3, i), beta), scaled(&s, tn_mul(g, grad, grad), 1 - beta));
        tn_value root = tn_sqrt(g, square);
        tn_value by = tn_add(g, root, number(&s, root, tn_expand_float(x, "epsilon")));
        tn_value r = tn_cast(g, rate, tn_expand_dtype(x, 2 + i));
        tn_value y = tn_sub(g, v, tn_mul(g, r, tn_div(g, mean, by)));
        TN_TRY(put(&s, 0, i, after != 0 ? scaled(&s, y, 1 - after) : y));
        TN_TRY(put(&s, 1, i, mean));
        TN_TRY(put(&s, 2, i, square));
    }
    return TN_OK;
}

static tn_status expand_momentum(tn_expand *x) {
    step s;
    TN_TRY(begin(&s, x, 3));
    tn_graph *g = x->graph;
    double alpha = tn_expand_float(x, "alpha"), beta = tn_expand_float(x, "beta");
    bool nesterov = tn_expand_string_is(x, "mode", "nesterov");
    tn_value factor = tn_select(g, started(&s), number(&s, s.rate, beta), number(&s, s.rate, 1));
    for (uint32_t i = 0; i < s.tensors; i++) {
        tn_dtype dtype = tn_expand_dtype(x, 2 + i);
        tn_value v = in(&s, 0, i), grad = regularized(&s, i);
        tn_value m = tn_add(g, scaled(&s, in(&s, 2, i), alpha), tn_mul(g, tn_cast(g, factor, dtype), grad));
        tn_value way = nesterov ? tn_add(g, grad, scaled(&s, m, alpha)) : m;
        TN_TRY(put(&s, 0, i, tn_sub(g, v, tn_mul(g, tn_cast(g, s.rate, dtype), way))));
        TN_TRY(put(&s, 1, i, m));
    }
    return TN_OK;
}

/* --- rows ------------------------------------------------------------------------------------------------------------------------- */

#define TRAINING "ai.onnx.preview.training"

static const tn_attr_spec adagrad_attrs[] = {TN_SPEC_FLOAT("decay_factor", 0),
                                             TN_SPEC_FLOAT("epsilon", 9.999999974752427e-07),
                                             TN_SPEC_FLOAT("norm_coefficient", 0),
                                             {0}};
static const tn_attr_spec adam_attrs[] = {
    TN_SPEC_FLOAT("alpha", 0.8999999761581421),      TN_SPEC_FLOAT("beta", 0.9990000128746033),
    TN_SPEC_FLOAT("epsilon", 9.999999974752427e-07), TN_SPEC_FLOAT("norm_coefficient", 0),
    TN_SPEC_FLOAT("norm_coefficient_post", 0),       {0}};
static const tn_attr_spec momentum_attrs[] = {
    TN_SPEC_NEEDED("alpha", TN_ATTR_FLOAT),
    TN_SPEC_NEEDED("beta", TN_ATTR_FLOAT),
    {.name = "mode", .kind = TN_ATTR_STRING, .required = true, .allowed = "nesterov|standard"},
    TN_SPEC_NEEDED("norm_coefficient", TN_ATTR_FLOAT),
    {0}};

#define ROW(NAME, least, list, build)                                                                                  \
    TN_ONNX_OF(TRAINING, NAME, .since = 1, .inputs = {least, TN_ONNX_ANY}, .outputs = {1, TN_ONNX_ANY}, .attrs = list, \
               .flags = TN_ONNX_VARIADIC, .expand = expand_##build)

static const tn_onnx_op rows[] = {
    ROW("Adagrad", 5, adagrad_attrs, adagrad),
    ROW("Adam", 6, adam_attrs, adam),
    ROW("Momentum", 5, momentum_attrs, momentum),
};

const tn_onnx_family tn_onnx_family_optimizer = {rows, sizeof rows / sizeof *rows};
