/* Operators of ai.onnx.ml that are a few primitives: ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer,
   LinearClassifier, LinearRegressor, Normalizer, Scaler. */
#include <inttypes.h>
#include <math.h>

#include "onnx/expand_ml.h"

/* --- elements and features ------------------------------------------------------------------------------------------------------ */

static tn_status expand_array_feature_extractor(tn_expand *x) {
    static const int front[1] = {0};
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0);
    TN_RULE(x, rank >= 1, "the input is a scalar");
    TN_RULE(x, tn_expand_dtype(x, 1) == TN_I64, "the indices are %s: they must be i64",
            tn_dtype_name(tn_expand_dtype(x, 1)));
    tn_dim count = tn_size_of_input(x, 1);
    TN_SIZED(x, count);
    tn_value index = tn_reshape_dims(g, tn_expand_input(x, 1), 1, &count);
    tn_value y = tn_gather(g, tn_expand_input(x, 0), index, rank - 1);
    return tn_expand_set(x, 0, rank == 1 ? tn_expand_dims(g, y, 1, front) : y);
}

static tn_status expand_binarizer(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_value in = tn_expand_input(x, 0), above;
    tn_dtype dtype = tn_expand_dtype(x, 0);
    double threshold = tn_expand_float(x, "threshold");
    TN_RULE(x, dtype == TN_F32 || dtype == TN_F64 || dtype == TN_I64 || dtype == TN_I32,
            "the input is %s: it must be f32, f64, i64 or i32", tn_dtype_name(dtype));
    if (tn_is_float(dtype)) {
        above = tn_greater(g, in, tn_scalar_like(g, in, threshold));
    } else { /* a whole number is above a threshold when it is above its floor */
        double low = (double)tn_dtype_min_i64(dtype), high = dtype == TN_I64 ? 0x1p63 : 0x1p31;
        double floor_of = floor(threshold);
        int64_t limit = floor_of >= low && floor_of < high ? (int64_t)floor_of : 0;
        above = tn_greater(g, in, tn_cast(g, tn_constant_i64(g, 0, 1, &limit), dtype));
        if (!(threshold < high)) /* nothing is; nor above NaN */
            above = tn_and(g, above, tn_not(g, above));
        else if (threshold < low)
            above = tn_or(g, above, tn_not(g, above));
    }
    return tn_expand_set(x, 0, tn_cast(g, above, dtype));
}

/* Input i as f32 [N, C]; a vector is one row. inputdimensions says how many columns it fills: the rest is cut, or 0. */
static tn_status feature_columns(tn_expand *x, uint32_t i, const int64_t *columns, tn_value *out) {
    static const int front[1] = {0};
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, i);
    tn_dtype dtype = tn_expand_dtype(x, i);
    TN_RULE(x, rank == 1 || rank == 2, "input %u has rank %d: it must be 1 or 2", (unsigned)i, rank);
    TN_RULE(x, dtype == TN_F32 || dtype == TN_F64 || dtype == TN_I64 || dtype == TN_I32,
            "input %u is %s: it must be f32, f64, i64 or i32", (unsigned)i, tn_dtype_name(dtype));
    *out = tn_cast(g, tn_expand_input(x, i), TN_F32);
    if (rank == 1)
        *out = tn_expand_dims(g, *out, 1, front);
    TN_BUILT(x, *out);
    if (!columns)
        return TN_OK;
    TN_RULE(x, columns[i] >= 0, "'inputdimensions' has the entry %" PRId64, columns[i]);
    tn_dim want = tn_size(x, columns[i]), have = tn_value_dim(g, *out, 1), kept = tn_dim_min(g, want, have);
    TN_SIZED(x, kept);
    *out = tn_expand_slice(x, *out, 1, tn_size(x, 0), kept, 1);
    if (!tn_dim_equal(g, kept, want)) {
        tn_dim lo[2] = {tn_size(x, 0), tn_size(x, 0)}, hi[2] = {tn_size(x, 0), tn_dim_sub(g, want, kept)};
        TN_SIZED(x, hi[1]);
        *out = tn_pad(g, *out, tn_scalar(g, TN_F32, 0), lo, hi, "constant");
    }
    TN_BUILT(x, *out);
    return TN_OK;
}

static tn_status expand_feature_vectorizer(tn_expand *x) {
    const int64_t *columns;
    uint32_t n = tn_expand_ints(x, "inputdimensions", &columns);
    TN_RULE(x, !n || n == x->inputs, "'inputdimensions' has %u entries for %u inputs", (unsigned)n,
            (unsigned)x->inputs);
    tn_value *parts = tn_expand_alloc(x, x->inputs, sizeof *parts);
    if (!parts)
        return tn_error_status();
    for (uint32_t i = 0; i < x->inputs; i++)
        TN_TRY(feature_columns(x, i, n ? columns : NULL, &parts[i]));
    return tn_expand_set(x, 0, x->inputs == 1 ? parts[0] : tn_concat(x->graph, 1, x->inputs, parts));
}

/* --- one number, or one for each feature --------------------------------------------------------------------------------------- */

/* A list [n], n 1 or the number of features, with the shape of input 0. */
static tn_status spread(tn_expand *x, const char *name, tn_value list, uint32_t n, tn_value *out) {
    int rank = tn_expand_rank(x, 0);
    const tn_dim *dims = tn_expand_dims_copy(x, 0);
    if (!dims)
        return tn_error_status();
    TN_RULE(x, n == 1 || (rank >= 1 && !tn_dim_never_equal(x->graph, dims[rank - 1], tn_size(x, n))),
            "'%s' has %u entries: there must be one, or one for each feature", name, (unsigned)n);
    if (n == 1)
        list = tn_reshape_dims(x->graph, list, 0, NULL);
    *out = tn_broadcast(x->graph, list, rank, dims);
    TN_BUILT(x, *out);
    return TN_OK;
}

static tn_status spread_floats(tn_expand *x, const char *name, tn_dtype dtype, tn_value *out) {
    const float *values;
    int64_t n = tn_expand_floats(x, name, &values);
    *out = (tn_value){0};
    return n ? spread(x, name, tn_ml_constant(x, dtype, 1, &n, values), (uint32_t)n, out) : TN_OK;
}

static tn_status expand_scaler(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_value y, offset, scale;
    TN_TRY(tn_ml_numbers(x, &y));
    TN_TRY(spread_floats(x, "offset", tn_value_dtype(g, y), &offset));
    TN_TRY(spread_floats(x, "scale", tn_value_dtype(g, y), &scale));
    if (offset.id)
        y = tn_sub(g, y, offset);
    if (scale.id)
        y = tn_mul(g, y, scale);
    return tn_expand_set(x, 0, tn_cast(g, y, TN_F32));
}

static tn_status expand_imputer(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_value in = tn_expand_input(x, 0), found, with;
    tn_dtype dtype = tn_expand_dtype(x, 0);
    const float *floats;
    const int64_t *ints;
    uint32_t n = tn_expand_floats(x, "imputed_value_floats", &floats),
             m = tn_expand_ints(x, "imputed_value_int64s", &ints);
    bool real = dtype == TN_F32 || dtype == TN_F64;
    TN_RULE(x, real || dtype == TN_I64 || dtype == TN_I32, "the input is %s: it must be f32, f64, i64 or i32",
            tn_dtype_name(dtype));
    TN_RULE(x, !n != !m, "there must be one of 'imputed_value_floats' and 'imputed_value_int64s'");
    TN_RULE(x, real == (n != 0), "'%s' does not go with an input of %s",
            n ? "imputed_value_floats" : "imputed_value_int64s", tn_dtype_name(dtype));
    if (real) {
        double old = tn_expand_float(x, "replaced_value_float");
        found = isnan(old) ? tn_is_nan(g, in) : tn_equal(g, in, tn_scalar_like(g, in, old));
        TN_TRY(spread_floats(x, "imputed_value_floats", dtype, &with));
    } else {
        int64_t old = tn_expand_int(x, "replaced_value_int64");
        for (uint32_t i = 0; i < m; i++)
            TN_RULE(x, ints[i] >= tn_dtype_min_i64(dtype) && (dtype == TN_I64 || ints[i] <= INT32_MAX),
                    "'imputed_value_int64s' has %" PRId64 ", which does not fit into %s", ints[i],
                    tn_dtype_name(dtype));
        found = tn_equal(g, tn_cast(g, in, TN_I64), tn_constant_i64(g, 0, 1, &old));
        TN_TRY(spread(x, "imputed_value_int64s", tn_cast(g, tn_constant_i64(g, 1, m, ints), dtype), m, &with));
    }
    return tn_expand_set(x, 0, tn_select(g, found, with, in));
}

/* --- rows ------------------------------------------------------------------------------------------------------------------------ */

static tn_status expand_normalizer(tn_expand *x) {
    tn_graph *g = x->graph;
    tn_value in, norm;
    int rank = tn_expand_rank(x, 0), axes[1] = {rank - 1};
    TN_RULE(x, rank == 1 || rank == 2, "the input has rank %d: it must be [N, C] or [C]", rank);
    TN_TRY(tn_ml_numbers(x, &in));
    if (tn_expand_string_is(x, "norm", "L1"))
        norm = tn_reduce_sum(g, tn_abs(g, in), 1, axes, true);
    else if (tn_expand_string_is(x, "norm", "L2"))
        norm = tn_sqrt(g, tn_reduce_sum(g, tn_mul(g, in, in), 1, axes, true));
    else
        norm = tn_reduce_max(g, in, 1, axes, true);
    tn_value zero = tn_equal(g, norm, tn_scalar_like(g, in, 0));
    return tn_expand_set(x, 0, tn_cast(g, tn_select(g, zero, in, tn_div(g, in, norm)), TN_F32));
}

/* rows [N, F] times the coefficients [models, F], plus the intercepts [models] if there are. */
static tn_status linear(tn_expand *x, int64_t models, tn_value *scores) {
    tn_graph *g = x->graph;
    const float *coefficients, *intercepts;
    int64_t n = tn_expand_floats(x, "coefficients", &coefficients), m = tn_expand_floats(x, "intercepts", &intercepts);
    tn_value rows;
    TN_TRY(tn_ml_rows(x, &rows));
    TN_RULE(x, models >= 1 && models <= n && n % models == 0,
            "%" PRId64 " coefficients are not those of %" PRId64 " models", n, models);
    TN_RULE(x, m == 0 || m == models, "there are %" PRId64 " intercepts for %" PRId64 " models", m, models);
    const int64_t features = n / models, dims[2] = {features, models};
    TN_RULE(x, !tn_dim_never_equal(g, tn_value_dim(g, rows, 1), tn_size(x, features)),
            "the models have %" PRId64 " features, the input has another number", features);
    float *turned = tn_expand_alloc(x, (size_t)n, sizeof *turned);
    if (!turned)
        return tn_error_status();
    for (int64_t i = 0; i < n; i++)
        turned[i % features * models + i / features] = coefficients[i];
    tn_dtype dtype = tn_value_dtype(g, rows);
    *scores = tn_matmul(g, rows, tn_ml_constant(x, dtype, 2, dims, turned));
    if (m)
        *scores = tn_add(g, *scores, tn_ml_constant(x, dtype, 1, &m, intercepts));
    TN_BUILT(x, *scores);
    return TN_OK;
}

static tn_status expand_linear_regressor(tn_expand *x) {
    tn_value scores;
    TN_TRY(linear(x, tn_expand_int(x, "targets"), &scores));
    scores = tn_ml_transform(x, tn_ml_read_post(x), scores);
    return tn_expand_set(x, 0, tn_cast(x->graph, scores, TN_F32));
}

/* As many models as intercepts; without those one for each label. One model tells two labels apart: above 0 is the second. */
static tn_status expand_linear_classifier(tn_expand *x) {
    static const int last[1] = {1};
    tn_graph *g = x->graph;
    const float *values;
    tn_ml_labels labels;
    tn_value scores;
    TN_TRY(tn_ml_read_labels(x, "classlabels_ints", "classlabels_strings", &labels));
    int64_t models = tn_expand_floats(x, "intercepts", &values);
    if (!models)
        models = labels.count ? labels.count : 1;
    TN_RULE(x, !labels.count || labels.count == models || (labels.count == 2 && models == 1),
            "there are %u labels for %" PRId64 " models", (unsigned)labels.count, models);
    TN_TRY(linear(x, models, &scores));
    tn_ml_post post = tn_ml_read_post(x);
    if (models == 1) {
        tn_value second = tn_greater(g, tn_squeeze(g, scores, 1, last), tn_scalar_like(g, scores, 0));
        TN_TRY(tn_expand_set(x, 0, tn_ml_pick_second(x, &labels, second)));
        scores = labels.count == 2 ? tn_ml_two_scores(x, post, scores, true) : tn_ml_transform(x, post, scores);
    } else {
        TN_TRY(tn_expand_set(x, 0, tn_ml_pick(x, &labels, tn_argmax(g, scores, 1, false))));
        scores = tn_ml_transform(x, post, scores);
    }
    return tn_expand_set(x, 1, tn_cast(g, scores, TN_F32));
}

/* --- table --------------------------------------------------------------------------------------------------------------------- */

static const tn_attr_spec binarizer_attrs[] = {TN_SPEC_FLOAT("threshold", 0), {0}};
static const tn_attr_spec vectorizer_attrs[] = {TN_SPEC_INTS("inputdimensions"), {0}};
static const tn_attr_spec imputer_attrs[] = {TN_SPEC_FLOATS("imputed_value_floats"),
                                             TN_SPEC_INTS("imputed_value_int64s"),
                                             TN_SPEC_FLOAT("replaced_value_float", 0),
                                             TN_SPEC_INT("replaced_value_int64", 0),
                                             {0}};
static const tn_attr_spec scaler_attrs[] = {TN_SPEC_FLOATS("offset"), TN_SPEC_FLOATS("scale"), {0}};
static const tn_attr_spec normalizer_attrs[] = {TN_SPEC_STRING("norm", "MAX", "MAX|L1|L2"), {0}};
static const tn_attr_spec regressor_attrs[] = {TN_SPEC_FLOATS("coefficients"),
                                               TN_SPEC_FLOATS("intercepts"),
                                               TN_SPEC_STRING("post_transform", "NONE", TN_ML_POSTS),
                                               TN_SPEC_INT("targets", 1),
                                               {0}};
static const tn_attr_spec classifier_attrs[] = {TN_SPEC_INTS("classlabels_ints"),
                                                TN_SPEC_STRINGS("classlabels_strings"),
                                                TN_SPEC_NEEDED("coefficients", TN_ATTR_FLOATS),
                                                TN_SPEC_FLOATS("intercepts"),
                                                TN_SPEC_INT("multi_class", 0),
                                                TN_SPEC_STRING("post_transform", "NONE", TN_ML_POSTS),
                                                {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX_OF(TN_ML, "ArrayFeatureExtractor", .since = 1, .inputs = {2, 2}, .outputs = {1, 1},
               .expand = expand_array_feature_extractor),
    TN_ONNX_OF(TN_ML, "Binarizer", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = binarizer_attrs,
               .expand = expand_binarizer),
    TN_ONNX_OF(TN_ML, "FeatureVectorizer", .since = 1, .inputs = {1, TN_ONNX_ANY}, .outputs = {1, 1},
               .attrs = vectorizer_attrs, .flags = TN_ONNX_VARIADIC, .expand = expand_feature_vectorizer),
    TN_ONNX_OF(TN_ML, "Imputer", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = imputer_attrs,
               .expand = expand_imputer),
    TN_ONNX_OF(TN_ML, "LinearClassifier", .since = 1, .inputs = {1, 1}, .outputs = {2, 2}, .attrs = classifier_attrs,
               .expand = expand_linear_classifier),
    TN_ONNX_OF(TN_ML, "LinearRegressor", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = regressor_attrs,
               .expand = expand_linear_regressor),
    TN_ONNX_OF(TN_ML, "Normalizer", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = normalizer_attrs,
               .expand = expand_normalizer),
    TN_ONNX_OF(TN_ML, "Scaler", .since = 1, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = scaler_attrs,
               .expand = expand_scaler),
};

const tn_onnx_family tn_onnx_family_ml = {rows, sizeof rows / sizeof *rows};
