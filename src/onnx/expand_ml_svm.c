/* Support vector machines of ai.onnx.ml: SVMClassifier, SVMRegressor. The kernel matrix and everything behind it are primitives; the
   probabilities of more than two outcomes are found by iteration on the host. */
#include <inttypes.h>

#include "onnx/expand_ml.h"
#include "onnx/host_ops.h"

enum { MAX_WEIGHTS = 1 << 28 }; /* of the matrix of all pairs of classes */

/* --- kernels -------------------------------------------------------------------------------------------------------------------------- */

/* x raised to a whole number that is not negative, or any other. */
static tn_value power(tn_graph *g, tn_value v, double degree) {
    if (degree == 1)
        return v;
    if (degree == 2)
        return tn_mul(g, v, v);
    if (degree == 3)
        return tn_mul(g, v, tn_mul(g, v, v));
    return tn_pow(g, v, tn_scalar_like(g, v, degree));
}

/* The kernel of each row with each of n vectors [n, features]: [N, n]. */
static tn_value kernel(tn_expand *x, tn_value rows, int64_t n, int64_t features, const float *vectors, bool linear) {
    static const int middle[1] = {1}, last[1] = {2};
    tn_graph *g = x->graph;
    tn_dtype dtype = tn_value_dtype(g, rows);
    const float *params;
    double gamma = 0, coef0 = 0, degree = 0;
    if (tn_expand_floats(x, "kernel_params", &params) >= 3)
        gamma = (double)params[0], coef0 = (double)params[1], degree = (double)params[2];
    if (!linear && tn_expand_string_is(x, "kernel_type", "RBF")) {
        const int64_t dims[3] = {1, n, features};
        tn_value d = tn_sub(g, tn_expand_dims(g, rows, 1, middle), tn_ml_constant(x, dtype, 3, dims, vectors));
        tn_value sum = tn_reduce_sum(g, tn_mul(g, d, d), 1, last, false);
        return tn_exp(g, tn_mul(g, sum, tn_scalar_like(g, rows, -gamma)));
    }
    static const int turned[2] = {1, 0};
    const int64_t dims[2] = {n, features};
    tn_value v = tn_transpose(g, tn_ml_constant(x, dtype, 2, dims, vectors), turned);
    tn_value dots = tn_matmul(g, rows, v);
    if (linear || tn_expand_string_is(x, "kernel_type", "LINEAR"))
        return dots;
    dots = tn_add(g, tn_mul(g, dots, tn_scalar_like(g, rows, gamma)), tn_scalar_like(g, rows, coef0));
    return tn_expand_string_is(x, "kernel_type", "POLY") ? power(g, dots, degree) : tn_tanh(g, dots);
}

static tn_status check_kernel(tn_expand *x, tn_value rows, int64_t features) {
    const float *values;
    uint32_t n = tn_expand_floats(x, "kernel_params", &values);
    TN_RULE(x, n == 0 || n == 3, "'kernel_params' has %u entries instead of 3", (unsigned)n);
    TN_RULE_SAME(x, tn_value_dim(x->graph, rows, 1), tn_size(x, features),
                 "the vectors have %" PRId64 " features, the input has another number", features);
    return TN_OK;
}

/* --- regression ------------------------------------------------------------------------------------------------------------------------- */

static tn_status expand_svm_regressor(tn_expand *x) {
    tn_graph *g = x->graph;
    const float *coefficients, *vectors, *rho;
    int64_t n = tn_expand_floats(x, "coefficients", &coefficients),
            m = tn_expand_floats(x, "support_vectors", &vectors);
    int64_t supports = tn_expand_int(x, "n_supports");
    uint32_t offsets = tn_expand_floats(x, "rho", &rho);
    tn_value rows, y;
    TN_TRY(tn_ml_rows(x, &rows));
    tn_dtype dtype = tn_value_dtype(g, rows);
    TN_RULE(x, offsets >= 1, "attribute 'rho' is missing");
    TN_RULE(x, n >= 1 && supports >= 0, "there are no coefficients, or 'n_supports' is negative");
    if (supports) {
        const int64_t dims[2] = {n, 1};
        TN_RULE(x, n == supports && m >= supports && m % supports == 0,
                "%" PRId64 " supports do not go with %" PRId64 " coefficients and %" PRId64 " numbers of vectors",
                supports, n, m);
        TN_TRY(check_kernel(x, rows, m / supports));
        y = kernel(x, rows, supports, m / supports, vectors, false);
        y = tn_matmul(g, y, tn_ml_constant(x, dtype, 2, dims, coefficients));
    } else {
        TN_TRY(check_kernel(x, rows, n));
        y = kernel(x, rows, 1, n, coefficients, true);
    }
    y = tn_add(g, y, tn_scalar_like(g, rows, (double)rho[0]));
    if (tn_expand_int(x, "one_class"))
        y = tn_select(g, tn_greater(g, y, tn_scalar_like(g, y, 0)), tn_scalar_like(g, y, 1), tn_scalar_like(g, y, -1));
    else
        y = tn_ml_transform(x, tn_ml_read_post(x), y);
    return tn_expand_set(x, 0, tn_cast(g, y, TN_F32));
}

/* --- classification ------------------------------------------------------------------------------------------------------------------- */

typedef struct classifier {
    tn_expand *x;
    tn_graph *g;
    tn_ml_labels labels;
    tn_ml_post post;
    int64_t classes, pairs, supports, features;
    const int64_t *per_class;
    const float *coefficients, *vectors, *rho;
    tn_value rows;
    tn_dtype dtype;
} classifier;

/* One model for each class. */
static tn_status linear_classifier(classifier *c, int64_t count, uint32_t offsets) {
    static const int last[1] = {1};
    tn_expand *x = c->x;
    TN_RULE(x, count % c->classes == 0 && offsets >= 1,
            "%" PRId64 " coefficients and %u offsets are not those of %" PRId64 " classes", count, (unsigned)offsets,
            c->classes);
    TN_TRY(check_kernel(x, c->rows, count / c->classes));
    tn_value s = kernel(x, c->rows, c->classes, count / c->classes, c->coefficients, true);
    s = tn_add(c->g, s, tn_scalar_like(c->g, c->rows, (double)c->rho[0]));
    tn_value label = c->classes == 1
                         ? tn_ml_pick_second(x, &c->labels,
                                             tn_greater(c->g, tn_squeeze(c->g, s, 1, last), tn_scalar_like(c->g, s, 0)))
                         : tn_ml_pick(x, &c->labels, tn_argmax(c->g, s, 1, false));
    TN_TRY(tn_expand_set(x, 0, label));
    return tn_expand_set(x, 1, tn_cast(c->g, tn_ml_transform(x, c->post, s), TN_F32));
}

/* One model for each pair of classes (i, j), i < j: coefficients of class i's vectors in row j - 1, of class j's in row i. Also
   votes[pair][class]: 1 for i, -1 for j, and against[class]: how many pairs have the class second. */
static tn_status pair_weights(classifier *c, float *weights, float *votes, float *against) {
    int64_t *first = tn_expand_alloc(c->x, (size_t)c->classes, sizeof *first), pair = 0;
    if (!first)
        return tn_error_status();
    for (int64_t i = 1; i < c->classes; i++)
        first[i] = first[i - 1] + c->per_class[i - 1];
    for (int64_t i = 0; i < c->classes; i++)
        for (int64_t j = i + 1; j < c->classes; j++, pair++) {
            for (int64_t s = first[i]; s < first[i] + c->per_class[i]; s++)
                weights[s * c->pairs + pair] = c->coefficients[(j - 1) * c->supports + s];
            for (int64_t s = first[j]; s < first[j] + c->per_class[j]; s++)
                weights[s * c->pairs + pair] = c->coefficients[i * c->supports + s];
            votes[pair * c->classes + i] = 1;
            votes[pair * c->classes + j] = -1;
            against[j]++;
        }
    return TN_OK;
}

/* Probabilities of the classes from the decisions [N, pairs]. */
static tn_value probabilities(classifier *c, tn_value s, const float *a, const float *b) {
    tn_graph *g = c->g;
    tn_value slope = tn_ml_constant(c->x, c->dtype, 1, &c->pairs, a),
             base = tn_ml_constant(c->x, c->dtype, 1, &c->pairs, b);
    tn_value p = tn_sigmoid(g, tn_neg(g, tn_add(g, tn_mul(g, s, slope), base)));
    p = tn_min(g, tn_max(g, p, tn_scalar_like(g, s, 1e-7)), tn_scalar_like(g, s, 1 - 1e-7));
    p = tn_cast(g, p, TN_F32);
    const tn_attr attrs[] = {TN_A_INT("classes", c->classes)};
    tn_node node = tn_graph_add_node(
        g,
        &(tn_node_desc){
            .op = &tn_host_couple, .input_count = 1, .inputs = &p, .output_count = 1, .attr_count = 1, .attrs = attrs});
    return node.id ? tn_node_output(g, node, 0) : (tn_value){0};
}

static tn_status pairwise_classifier(classifier *c, int64_t count, uint32_t offsets) {
    tn_expand *x = c->x;
    tn_graph *g = c->g;
    const float *a, *b;
    uint32_t na = tn_expand_floats(x, "prob_a", &a), nb = tn_expand_floats(x, "prob_b", &b);
    TN_RULE(x, c->classes >= 2, "there are support vectors, but only one class");
    TN_RULE(x, count / c->supports == c->classes - 1 && count % c->supports == 0,
            "there are %" PRId64 " coefficients for %" PRId64 " vectors of %" PRId64 " classes", count, c->supports,
            c->classes);
    c->pairs = c->classes * (c->classes - 1) / 2;
    TN_RULE(x, offsets >= c->pairs, "'rho' has %u entries for %" PRId64 " pairs of classes", (unsigned)offsets,
            c->pairs);
    TN_RULE(x, na == nb && (na == 0 || na == c->pairs), "'prob_a' has %u, 'prob_b' %u entries for %" PRId64 " pairs",
            (unsigned)na, (unsigned)nb, c->pairs);
    if (c->pairs > MAX_WEIGHTS / c->supports)
        return tn_expand_unsupported(x, "%" PRId64 " classes with %" PRId64 " vectors", c->classes, c->supports);
    TN_TRY(check_kernel(x, c->rows, c->features));
    float *weights = tn_expand_alloc(x, (size_t)(c->supports * c->pairs), sizeof *weights);
    float *votes = tn_expand_alloc(x, (size_t)(c->pairs * c->classes), sizeof *votes);
    float *against = tn_expand_alloc(x, (size_t)c->classes, sizeof *against);
    if (!weights || !votes || !against)
        return tn_error_status();
    TN_TRY(pair_weights(c, weights, votes, against));
    const int64_t w[2] = {c->supports, c->pairs}, v[2] = {c->pairs, c->classes};
    tn_value k = kernel(x, c->rows, c->supports, c->features, c->vectors, false);
    tn_value s = tn_add(g, tn_matmul(g, k, tn_ml_constant(x, c->dtype, 2, w, weights)),
                        tn_ml_constant(x, c->dtype, 1, &c->pairs, c->rho));
    TN_BUILT(x, s);
    tn_value won = tn_cast(g, tn_greater(g, s, tn_scalar_like(g, s, 0)), TN_F32);
    tn_value tally = tn_add(g, tn_matmul(g, won, tn_ml_constant(x, TN_F32, 2, v, votes)),
                            tn_ml_constant(x, TN_F32, 1, &c->classes, against));
    TN_TRY(tn_expand_set(x, 0, tn_ml_pick(x, &c->labels, tn_argmax(g, tally, 1, false))));
    tn_value scores;
    if (na)
        scores = tn_ml_transform(x, c->post, probabilities(c, s, a, b));
    else if (c->classes == 2)
        scores = tn_ml_two_scores(x, c->post, s, false);
    else
        scores = tn_ml_transform(x, c->post, s);
    return tn_expand_set(x, 1, tn_cast(g, scores, TN_F32));
}

static tn_status expand_svm_classifier(tn_expand *x) {
    classifier c = {.x = x, .g = x->graph, .post = tn_ml_read_post(x)};
    TN_TRY(tn_ml_read_labels(x, "classlabels_ints", "classlabels_strings", &c.labels));
    TN_TRY(tn_ml_rows(x, &c.rows));
    c.dtype = tn_value_dtype(c.g, c.rows);
    c.classes = c.labels.count;
    uint32_t groups = tn_expand_ints(x, "vectors_per_class", &c.per_class),
             offsets = tn_expand_floats(x, "rho", &c.rho);
    int64_t n = tn_expand_floats(x, "coefficients", &c.coefficients),
            m = tn_expand_floats(x, "support_vectors", &c.vectors);
    TN_RULE(x, c.classes, "attribute 'classlabels_ints' or 'classlabels_strings' is missing");
    TN_RULE(x, n, "attribute 'coefficients' is missing");
    for (uint32_t i = 0; i < groups; i++) {
        TN_RULE(x, c.per_class[i] >= 0 && c.per_class[i] <= m, "'vectors_per_class' has %" PRId64, c.per_class[i]);
        c.supports += c.per_class[i];
    }
    if (!c.supports)
        return linear_classifier(&c, n, offsets);
    TN_RULE(x, groups == c.classes, "'vectors_per_class' has %u entries for %" PRId64 " classes", (unsigned)groups,
            c.classes);
    TN_RULE(x, m >= c.supports && m % c.supports == 0,
            "'support_vectors' has %" PRId64 " entries for %" PRId64 " vectors", m, c.supports);
    c.features = m / c.supports;
    return pairwise_classifier(&c, n, offsets);
}

/* --- rows ------------------------------------------------------------------------------------------------------------------------------- */

#define KERNELS "LINEAR|POLY|RBF|SIGMOID"

static const tn_attr_spec classifier_attrs[] = {TN_SPEC_INTS("classlabels_ints"),
                                                TN_SPEC_STRINGS("classlabels_strings"),
                                                TN_SPEC_FLOATS("coefficients"),
                                                TN_SPEC_FLOATS("kernel_params"),
                                                TN_SPEC_STRING("kernel_type", "LINEAR", KERNELS),
                                                TN_SPEC_STRING("post_transform", "NONE", TN_ML_POSTS),
                                                TN_SPEC_FLOATS("prob_a"),
                                                TN_SPEC_FLOATS("prob_b"),
                                                TN_SPEC_FLOATS("rho"),
                                                TN_SPEC_FLOATS("support_vectors"),
                                                TN_SPEC_INTS("vectors_per_class"),
                                                {0}};
static const tn_attr_spec regressor_attrs[] = {TN_SPEC_FLOATS("coefficients"),
                                               TN_SPEC_FLOATS("kernel_params"),
                                               TN_SPEC_STRING("kernel_type", "LINEAR", KERNELS),
                                               TN_SPEC_INT("n_supports", 0),
                                               TN_SPEC_BOOL("one_class", 0),
                                               TN_SPEC_STRING("post_transform", "NONE", TN_ML_POSTS),
                                               TN_SPEC_FLOATS("rho"),
                                               TN_SPEC_FLOATS("support_vectors"),
                                               {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX_OF(TN_ML, "SVMClassifier", .since = 1, .inputs = {1, 1}, .outputs = {2, 2}, .attrs = classifier_attrs,
               .expand = expand_svm_classifier),
    TN_ONNX_OF(TN_ML, "SVMRegressor", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = regressor_attrs,
               .expand = expand_svm_regressor),
};

const tn_onnx_family tn_onnx_family_ml_svm = {rows, sizeof rows / sizeof *rows};
