/* Random numbers: RandomUniform, RandomNormal, their -Like forms, Bernoulli, Multinomial, Dropout. They come from the counting generator of
   the primitives. Without a seed each node has one of its own (TN_ONNX_SEED), the same in every run: runs can be repeated.
   In a loop the generator's offset (TN_ONNX_TRIP) tells trips apart. */
#include <inttypes.h>
#include <math.h>

#include "onnx/expand_common.h"
#include "onnx/expander.h"

static int64_t mixed(uint64_t h) {
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9u;
    h = (h ^ h >> 27) * 0x94D049BB133111EBu;
    return (int64_t)((h ^ h >> 31) >> 1);
}

int64_t tn_onnx_seed(const tn_graph *g, tn_node node, uint64_t times) {
    const char *names[2] = {tn_node_name(g, node), tn_value_name(g, tn_node_output(g, node, 0))};
    uint64_t h = 14695981039346656037u;
    for (int i = 0; i < 2; i++) {
        for (const char *name = names[i]; *name; name++)
            h = (h ^ (uint8_t)*name) * 1099511628211u;
        h = (h ^ 0xFF) * 1099511628211u; /* no byte of a name */
    }
    return mixed(h + times * 0x9E3779B97F4A7C15u);
}

int64_t tn_onnx_seed_of_call(int64_t seed, int64_t call) {
    return mixed((uint64_t)seed * 0x9E3779B97F4A7C15u + (uint64_t)call);
}

static int64_t own_seed(const tn_expand *x) {
    const tn_attr *given = tn_node_attr(x->graph, x->node, TN_ONNX_SEED);
    return given ? given->as.i : tn_onnx_seed(x->graph, x->node, 0);
}

static tn_value random_node(tn_expand *x, const char *op, tn_dtype dtype, int rank, const tn_dim *dims, int64_t seed) {
    const tn_attr attrs[] = {TN_A_DIMS("shape", rank, dims), TN_A_DTYPE("dtype", dtype), TN_A_INT("seed", seed)};
    tn_value offset = tn_onnx_trip(x->graph, x->node);
    return tn_graph_add(x->graph, op, offset.id ? 1 : 0, &offset, 3, attrs);
}

/* f16 and bf16 are drawn in f32 and rounded. */
static tn_value draw(tn_expand *x, const char *op, tn_dtype dtype, int rank, const tn_dim *dims) {
    union {
        float f;
        uint32_t bits;
    } seed = {.f = (float)tn_expand_float(x, "seed")};
    int64_t number = tn_expand_has_attr(x, "seed") ? (int64_t)seed.bits : own_seed(x);
    return random_node(x, op, dtype, rank, dims, number);
}

/* The attribute "dtype", or what is the rule without it. */
static tn_status read_dtype(tn_expand *x, tn_dtype absent, bool floats, tn_dtype *dtype) {
    int64_t t = tn_expand_has_attr(x, "dtype") ? tn_expand_int(x, "dtype") : (int64_t)absent;
    bool known = t > 0 && t < TN_DTYPE_COUNT;
    TN_RULE(x, known && (tn_is_float((tn_dtype)t) || (!floats && (tn_is_int((tn_dtype)t) || t == TN_BOOL))),
            "the element type %" PRId64 " is not possible", t);
    *dtype = (tn_dtype)t;
    return TN_OK;
}

static tn_status uniform(tn_expand *x, tn_dtype absent, int rank, const tn_dim *dims) {
    tn_graph *g = x->graph;
    tn_dtype dtype;
    TN_TRY(read_dtype(x, absent, true, &dtype));
    double low = tn_expand_float(x, "low"), high = tn_expand_float(x, "high");
    tn_value u = draw(x, "random_uniform", tn_wide(dtype), rank, dims);
    TN_BUILT(x, u);
    u = tn_add(g, tn_mul(g, u, tn_scalar_like(g, u, high - low)), tn_scalar_like(g, u, low));
    return tn_expand_set(x, 0, tn_cast(g, u, dtype));
}

static tn_status normal(tn_expand *x, tn_dtype absent, int rank, const tn_dim *dims) {
    tn_graph *g = x->graph;
    tn_dtype dtype;
    TN_TRY(read_dtype(x, absent, true, &dtype));
    tn_value u = draw(x, "random_normal", tn_wide(dtype), rank, dims);
    TN_BUILT(x, u);
    u = tn_mul(g, u, tn_scalar_like(g, u, tn_expand_float(x, "scale")));
    u = tn_add(g, u, tn_scalar_like(g, u, tn_expand_float(x, "mean")));
    return tn_expand_set(x, 0, tn_cast(g, u, dtype));
}

static tn_status shape_attr(tn_expand *x, tn_dim dims[TN_MAX_RANK], int *rank) {
    const int64_t *list;
    uint32_t n = tn_expand_ints(x, "shape", &list);
    TN_RULE(x, n <= TN_MAX_RANK, "the shape has %u entries", (unsigned)n);
    for (uint32_t i = 0; i < n; i++) {
        TN_RULE(x, list[i] >= 0, "the shape holds %" PRId64, list[i]);
        dims[i] = tn_size(x, list[i]);
    }
    *rank = (int)n;
    return TN_OK;
}

static tn_status expand_uniform(tn_expand *x) {
    tn_dim dims[TN_MAX_RANK];
    int rank;
    TN_TRY(shape_attr(x, dims, &rank));
    return uniform(x, TN_F32, rank, dims);
}
static tn_status expand_normal(tn_expand *x) {
    tn_dim dims[TN_MAX_RANK];
    int rank;
    TN_TRY(shape_attr(x, dims, &rank));
    return normal(x, TN_F32, rank, dims);
}
static tn_status expand_uniform_like(tn_expand *x) {
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    return dims ? uniform(x, tn_expand_dtype(x, 0), tn_expand_rank(x, 0), dims) : tn_error_status();
}
static tn_status expand_normal_like(tn_expand *x) {
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    return dims ? normal(x, tn_expand_dtype(x, 0), tn_expand_rank(x, 0), dims) : tn_error_status();
}

/* 1 with the probability that the input gives. */
static tn_status expand_bernoulli(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dtype dtype, in = tn_expand_dtype(x, 0);
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    if (!dims)
        return tn_error_status();
    TN_RULE(x, tn_is_float(in), "the probabilities are %s", tn_dtype_name(in));
    TN_TRY(read_dtype(x, in, false, &dtype));
    tn_value u = draw(x, "random_uniform", tn_wide(in), tn_expand_rank(x, 0), dims);
    tn_value p = tn_cast(g, tn_expand_input(x, 0), tn_wide(in));
    p = tn_expand_within(x, p, tn_scalar(g, tn_wide(in), 0), tn_scalar(g, tn_wide(in), 1), "input");
    tn_value one = tn_less(g, u, p);
    return tn_expand_set(x, 0, tn_cast(g, one, dtype));
}

/* The class of each sample: how many of the running sums of the classes' probabilities a uniform number is past. */
static tn_status expand_multinomial(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_dtype dtype;
    int64_t samples = tn_expand_int(x, "sample_size");
    TN_RULE(x, tn_expand_rank(x, 0) == 2, "the input has rank %d, it must be 2", tn_expand_rank(x, 0));
    TN_RULE(x, tn_is_float(tn_expand_dtype(x, 0)), "the log-probabilities are %s",
            tn_dtype_name(tn_expand_dtype(x, 0)));
    TN_RULE(x, samples >= 1, "attribute 'sample_size' is %" PRId64, samples);
    TN_TRY(read_dtype(x, TN_I32, false, &dtype));
    TN_RULE(x, dtype == TN_I32 || dtype == TN_I64, "attribute 'dtype' must be i32 or i64");
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    if (!dims)
        return tn_error_status();
    tn_value in = tn_expand_input(x, 0);
    TN_RULE(x, !tn_size_is(x, dims[1], 0), "there are no classes to draw from");
    if (!tn_size_at_least(x, dims[1], 1)) {
        tn_value some = tn_greater(g, tn_expand_size_value(x, dims[1], TN_I64), tn_scalar(g, TN_I64, 0));
        in = tn_require(g, in, some, "there are no classes to draw from", 0, NULL);
    }
    static const int last[1] = {2}, middle[1] = {1};
    tn_dim drawn[3] = {dims[0], tn_size(x, samples), tn_size(x, 1)};
    const tn_attr along[] = {TN_A_INT("axis", 1)};
    tn_value p = tn_softmax(g, tn_cast(g, in, TN_F64), 1);
    tn_value sums = tn_expand_dims(g, tn_graph_add(g, "cumsum", 1, &p, 1, along), 1, middle);
    tn_value u = draw(x, "random_uniform", TN_F64, 3, drawn);
    tn_value past = tn_cast(g, tn_greater_equal(g, u, sums), TN_I64);
    tn_value index = tn_reduce_sum(g, past, 1, last, false); /* rounding may leave u past all of them */
    tn_value top = tn_sub(g, tn_expand_size_value(x, dims[1], TN_I64), tn_scalar(g, TN_I64, 1));
    return tn_expand_set(x, 0, tn_cast(g, tn_min(g, index, top), dtype));
}

/* --- dropout ------------------------------------------------------------------------------------------------------------------ */

/* Nothing is dropped. The mask says true everywhere (before operator set 10: 1 in the data's dtype). */
static tn_status keep_all(tn_expand *x, tn_value in, tn_dtype mask) {
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    if (!dims)
        return tn_error_status();
    if (tn_expand_wants(x, 1))
        TN_TRY(tn_expand_set(x, 1, tn_expand_full(x, mask, 1, tn_expand_rank(x, 0), dims)));
    return tn_expand_set(x, 0, in);
}

static tn_status expand_dropout_first(tn_expand *x) {
    return keep_all(x, tn_expand_input(x, 0), tn_expand_dtype(x, 0));
}

/* The one element of a constant input. */
static bool known_number(tn_expand *x, uint32_t input, double *value) {
    int64_t small;
    tn_tensor *t = tn_expand_constant(x, input);
    if (t && tn_tensor_count(t) == 1) {
        *value = tn_tensor_get_f64(t, 0);
        return true;
    }
    bool known = tn_expand_contents_i64(x, input, &small, 1) == 1;
    *value = known ? (double)small : 0;
    return known;
}

/* Uniform numbers in [0, 1): with a seed those of numpy's generator, as the standard's own tests have them. */
static tn_value dropout_numbers(tn_expand *x, int rank, const tn_dim *dims) {
    if (!tn_expand_has_attr(x, "seed"))
        return random_node(x, "random_uniform", TN_F32, rank, dims, own_seed(x));
    const tn_attr attrs[] = {TN_A_DIMS("shape", rank, dims), TN_A_INT("seed", tn_expand_int(x, "seed"))};
    return tn_graph_add(x->graph, "random_mt19937", 0, NULL, 2, attrs);
}

/* data * mask / (1 - ratio), where the mask is true with the probability 1 - ratio; or the data, when training_mode is false. */
static tn_status expand_dropout(tn_expand *x) {
    tn_graph *g = x->graph;
    double training = 0, ratio = 0.5;
    for (uint32_t i = 1; i < 3; i++)
        TN_RULE(x, !tn_expand_has(x, i) || tn_expand_rank(x, i) <= 0, "%s must be a scalar",
                i == 1 ? "ratio" : "training_mode");
    bool known = !tn_expand_has(x, 2) || known_number(x, 2, &training);
    bool known_ratio = !tn_expand_has(x, 1) || known_number(x, 1, &ratio);
    tn_dtype dtype = tn_expand_dtype(x, 0), in = tn_is_float(dtype) ? tn_wide(dtype) : TN_F32;
    int rank = tn_expand_rank(x, 0);
    TN_RULE(x, !known_ratio || (ratio >= 0 && ratio < 1), "the ratio is not in [0, 1)");
    tn_value data = tn_expand_input(x, 0);
    if (!known_ratio) {
        tn_value shown = tn_cast(g, tn_reshape_dims(g, tn_expand_input(x, 1), 0, NULL), TN_F32);
        tn_value holds =
            tn_and(g, tn_greater_equal(g, shown, tn_scalar(g, TN_F32, 0)), tn_less(g, shown, tn_scalar(g, TN_F32, 1)));
        data = tn_require(g, data, holds, "the ratio is {0}: it is not in [0, 1)", 1, &shown);
    }
    if ((known && training == 0) || (known_ratio && ratio == 0)) /* NOLINT: exactly zero */
        return keep_all(x, data, TN_BOOL);
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    if (!dims)
        return tn_error_status();
    tn_value numbers = dropout_numbers(x, rank, dims);
    TN_BUILT(x, numbers);
    tn_value part =
        tn_expand_has(x, 1) ? tn_reshape_dims(g, tn_expand_input(x, 1), 0, NULL) : tn_scalar(g, TN_F32, 0.5);
    tn_value keep = tn_greater_equal(g, numbers, tn_cast(g, part, tn_value_dtype(g, numbers)));
    part = tn_cast(g, part, in);
    tn_value one = tn_scalar(g, in, 1), scale = tn_div(g, one, tn_sub(g, one, part));
    if (!known) {
        tn_value on = tn_reshape_dims(g, tn_expand_input(x, 2), 0, NULL);
        keep = tn_or(g, keep, tn_not(g, on));
        scale = tn_select(g, on, scale, one);
    }
    tn_value y = tn_mul(g, tn_cast(g, data, in), tn_cast(g, keep, in));
    if (tn_expand_wants(x, 1))
        TN_TRY(tn_expand_set(x, 1, keep));
    return tn_expand_set(x, 0, tn_cast(g, tn_mul(g, y, scale), dtype));
}

/* --- rows ---------------------------------------------------------------------------------------------------------------------- */

#define UNIFORM TN_SPEC_FLOAT("low", 0), TN_SPEC_FLOAT("high", 1), TN_SPEC_FLOAT("seed", 0), TN_SPEC_INT("dtype", 1)
#define NORMAL TN_SPEC_FLOAT("mean", 0), TN_SPEC_FLOAT("scale", 1), TN_SPEC_FLOAT("seed", 0), TN_SPEC_INT("dtype", 1)
static const tn_attr_spec uniform_attrs[] = {UNIFORM, TN_SPEC_NEEDED("shape", TN_ATTR_INTS), {0}};
static const tn_attr_spec normal_attrs[] = {NORMAL, TN_SPEC_NEEDED("shape", TN_ATTR_INTS), {0}};
static const tn_attr_spec uniform_like_attrs[] = {UNIFORM, {0}};
static const tn_attr_spec normal_like_attrs[] = {NORMAL, {0}};
static const tn_attr_spec bernoulli_attrs[] = {TN_SPEC_FLOAT("seed", 0), TN_SPEC_INT("dtype", 1), {0}};
static const tn_attr_spec multi_attrs[] = {
    TN_SPEC_FLOAT("seed", 0), TN_SPEC_INT("dtype", 6), TN_SPEC_INT("sample_size", 1), {0}};
static const tn_attr_spec dropout_attrs[] = {TN_SPEC_INT("seed", 0), {0}};

#define RANDOM(n, name, from, list, build)                                                                    \
    TN_ONNX(name, .since = from, .inputs = {n, n}, .outputs = {1, 1}, .attrs = list, .flags = TN_ONNX_RANDOM, \
            .expand = expand_##build)

static const tn_onnx_op rows[] = {
    RANDOM(0, "RandomUniform", 1, uniform_attrs, uniform),
    RANDOM(0, "RandomNormal", 1, normal_attrs, normal),
    RANDOM(1, "RandomUniformLike", 1, uniform_like_attrs, uniform_like),
    RANDOM(1, "RandomNormalLike", 1, normal_like_attrs, normal_like),
    RANDOM(1, "Bernoulli", 15, bernoulli_attrs, bernoulli),
    RANDOM(1, "Multinomial", 7, multi_attrs, multinomial),
    TN_ONNX("Dropout", .since = 10, .inputs = {1, 3}, .outputs = {1, 2}, .attrs = dropout_attrs,
            .flags = TN_ONNX_RANDOM, .expand = expand_dropout),
    TN_ONNX("Dropout", .since = 1, .until = 9, .inputs = {1, 2}, .outputs = {1, 2}, .expand = expand_dropout_first),
};

const tn_onnx_family tn_onnx_family_random = {rows, sizeof rows / sizeof *rows};
