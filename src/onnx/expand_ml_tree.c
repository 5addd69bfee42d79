/* Ensembles of decision trees: TreeEnsemble, TreeEnsembleClassifier, TreeEnsembleRegressor. The trees run as tree_ensemble; what is
   done to their scores is primitives. */
#include <inttypes.h>

#include "onnx/forest.h"

static tn_status check_input(tn_expand *x, tn_forest *f) {
    tn_dtype dtype = tn_expand_dtype(x, 0);
    TN_RULE(x, dtype == TN_F32 || dtype == TN_F64 || dtype == TN_I64 || dtype == TN_I32,
            "the input is %s: it must be f32, f64, i64 or i32", tn_dtype_name(dtype));
    f->wide = f->wide || dtype != TN_F32; /* integers are compared exactly */
    return TN_OK;
}

/* --- regression --------------------------------------------------------------------------------------------------------------------- */

static tn_status expand_tree_regressor(tn_expand *x) {
    tn_forest f;
    tn_value scores;
    int64_t targets = tn_expand_int(x, "n_targets");
    const char *how = tn_expand_string_is(x, "aggregate_function", "AVERAGE") ? "average"
                      : tn_expand_string_is(x, "aggregate_function", "MIN")   ? "min"
                      : tn_expand_string_is(x, "aggregate_function", "MAX")   ? "max"
                                                                              : "sum";
    TN_RULE(x, targets >= 1, "'n_targets' is %" PRId64, targets);
    TN_TRY(tn_forest_read_lists(x, "target", targets, &f));
    TN_TRY(check_input(x, &f));
    TN_TRY(tn_forest_run(x, &f, how, &scores));
    scores = tn_ml_transform(x, tn_ml_read_post(x), scores);
    return tn_expand_set(x, 0, tn_cast(x->graph, scores, TN_F32));
}

static tn_status expand_tree_ensemble(tn_expand *x) {
    static const char *const names[] = {"average", "sum", "min", "max"};
    tn_forest f;
    tn_value scores;
    tn_dtype dtype = tn_expand_dtype(x, 0);
    int64_t how = tn_expand_int(x, "aggregate_function"), post = tn_expand_int(x, "post_transform");
    TN_RULE(x, how >= 0 && how <= 3, "'aggregate_function' is %" PRId64, how);
    TN_RULE(x, post >= 0 && post <= TN_ML_PROBIT, "'post_transform' is %" PRId64, post);
    TN_RULE(x, dtype == TN_F32 || dtype == TN_F64 || dtype == TN_F16, "the input is %s: it must be f32, f64 or f16",
            tn_dtype_name(dtype));
    TN_TRY(tn_forest_read_split(x, &f));
    f.wide = f.wide || dtype == TN_F64;
    TN_TRY(tn_forest_run(x, &f, names[how], &scores));
    return tn_expand_set(x, 0, tn_cast(x->graph, tn_ml_transform(x, (tn_ml_post)post, scores), dtype));
}

/* --- classification ------------------------------------------------------------------------------------------------------------------- */

/* All votes are for one class of two: they say how far the second class is the case. Whether they are probabilities shows in that
   none is negative. */
static bool votes_for_one(const tn_forest *f, int64_t *class, bool *probability) {
    int64_t n = f->votes_of[f->leaves];
    *class = n ? f->vote_target[0] : 0;
    *probability = true;
    bool one = n > 0;
    for (int64_t i = 0; i < n; i++) {
        one = one && f->vote_target[i] == *class;
        *probability = *probability && f->vote_weight[i] >= 0;
    }
    return one;
}

static tn_status two_classes(tn_expand *x, tn_forest *f, const tn_ml_labels *labels, int64_t class, bool probability) {
    static const int last[1] = {1};
    tn_graph *g = x->graph;
    tn_ml_post post = tn_ml_read_post(x);
    double base = f->bases ? f->base[f->bases - 1] : 0, first = f->bases == 2 ? f->base[0] : 0;
    tn_value scores;
    int64_t votes = f->votes_of[f->leaves];
    for (int64_t i = 0; i < votes; i++)
        f->vote_target[i] = 0;
    f->targets = 1;
    f->bases = f->bases ? 1 : 0;
    if (f->bases)
        f->base[0] = base;
    TN_TRY(tn_forest_run(x, f, "sum", &scores));
    tn_value limit = tn_scalar_like(g, scores, probability ? 0.5 : 0);
    TN_TRY(tn_expand_set(x, 0, tn_ml_pick_second(x, labels, tn_greater(g, tn_squeeze(g, scores, 1, last), limit))));
    if (class == 0)
        return tn_expand_set(x, 1, tn_cast(g, tn_ml_two_scores(x, post, scores, probability), TN_F32));
    tn_value both[2] = {tn_broadcast(g, tn_scalar_like(g, scores, first), 2, tn_expand_value_dims(x, scores)), scores};
    return tn_expand_set(x, 1, tn_cast(g, tn_ml_transform(x, post, tn_concat(g, 1, 2, both)), TN_F32));
}

static tn_status expand_tree_classifier(tn_expand *x) {
    static const int last[1] = {1};
    tn_graph *g = x->graph;
    tn_forest f;
    tn_ml_labels labels;
    tn_value scores;
    int64_t class;
    bool probability;
    TN_TRY(tn_ml_read_labels(x, "classlabels_int64s", "classlabels_strings", &labels));
    TN_RULE(x, labels.count, "attribute 'classlabels_int64s' or 'classlabels_strings' is missing");
    TN_TRY(tn_forest_read_lists(x, "class", labels.count, &f));
    TN_TRY(check_input(x, &f));
    if (labels.count == 2 && votes_for_one(&f, &class, &probability)) {
        TN_RULE(x, f.bases <= 2, "'base_values' has %" PRId64 " entries for 2 classes", f.bases);
        return two_classes(x, &f, &labels, class, probability);
    }
    TN_TRY(tn_forest_run(x, &f, "sum", &scores));
    tn_value label =
        labels.count == 1
            ? tn_ml_pick_second(x, &labels, tn_greater(g, tn_squeeze(g, scores, 1, last), tn_scalar_like(g, scores, 0)))
            : tn_ml_pick(x, &labels, tn_argmax(g, scores, 1, false));
    TN_TRY(tn_expand_set(x, 0, label));
    return tn_expand_set(x, 1, tn_cast(g, tn_ml_transform(x, tn_ml_read_post(x), scores), TN_F32));
}

/* --- rows ---------------------------------------------------------------------------------------------------------------------------- */

#define NODE_LISTS                                                                                                   \
    TN_SPEC_FLOATS("base_values"), TN_SPEC_TENSOR("base_values_as_tensor"), TN_SPEC_INTS("nodes_falsenodeids"),      \
        TN_SPEC_INTS("nodes_featureids"), TN_SPEC_FLOATS("nodes_hitrates"),                                          \
        TN_SPEC_TENSOR("nodes_hitrates_as_tensor"), TN_SPEC_INTS("nodes_missing_value_tracks_true"),                 \
        TN_SPEC_STRINGS("nodes_modes"), TN_SPEC_INTS("nodes_nodeids"), TN_SPEC_INTS("nodes_treeids"),                \
        TN_SPEC_INTS("nodes_truenodeids"), TN_SPEC_FLOATS("nodes_values"), TN_SPEC_TENSOR("nodes_values_as_tensor"), \
        TN_SPEC_STRING("post_transform", "NONE", TN_ML_POSTS)

static const tn_attr_spec classifier_attrs[] = {NODE_LISTS,
                                                TN_SPEC_INTS("class_ids"),
                                                TN_SPEC_INTS("class_nodeids"),
                                                TN_SPEC_INTS("class_treeids"),
                                                TN_SPEC_FLOATS("class_weights"),
                                                TN_SPEC_TENSOR("class_weights_as_tensor"),
                                                TN_SPEC_INTS("classlabels_int64s"),
                                                TN_SPEC_STRINGS("classlabels_strings"),
                                                {0}};
static const tn_attr_spec regressor_attrs[] = {NODE_LISTS,
                                               TN_SPEC_STRING("aggregate_function", "SUM", "AVERAGE|SUM|MIN|MAX"),
                                               TN_SPEC_INT("n_targets", 1),
                                               TN_SPEC_INTS("target_ids"),
                                               TN_SPEC_INTS("target_nodeids"),
                                               TN_SPEC_INTS("target_treeids"),
                                               TN_SPEC_FLOATS("target_weights"),
                                               TN_SPEC_TENSOR("target_weights_as_tensor"),
                                               {0}};
static const tn_attr_spec ensemble_attrs[] = {TN_SPEC_INT("aggregate_function", 1),
                                              TN_SPEC_NEEDED("leaf_targetids", TN_ATTR_INTS),
                                              TN_SPEC_NEEDED("leaf_weights", TN_ATTR_TENSOR),
                                              TN_SPEC_TENSOR("membership_values"),
                                              TN_SPEC_INT("n_targets", 1),
                                              TN_SPEC_NEEDED("nodes_falseleafs", TN_ATTR_INTS),
                                              TN_SPEC_NEEDED("nodes_falsenodeids", TN_ATTR_INTS),
                                              TN_SPEC_NEEDED("nodes_featureids", TN_ATTR_INTS),
                                              TN_SPEC_TENSOR("nodes_hitrates"),
                                              TN_SPEC_INTS("nodes_missing_value_tracks_true"),
                                              TN_SPEC_NEEDED("nodes_modes", TN_ATTR_TENSOR),
                                              TN_SPEC_NEEDED("nodes_splits", TN_ATTR_TENSOR),
                                              TN_SPEC_NEEDED("nodes_trueleafs", TN_ATTR_INTS),
                                              TN_SPEC_NEEDED("nodes_truenodeids", TN_ATTR_INTS),
                                              TN_SPEC_INT("post_transform", 0),
                                              TN_SPEC_NEEDED("tree_roots", TN_ATTR_INTS),
                                              {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX_OF(TN_ML, "TreeEnsemble", .since = 5, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = ensemble_attrs,
               .expand = expand_tree_ensemble),
    TN_ONNX_OF(TN_ML, "TreeEnsembleClassifier", .since = 1, .inputs = {1, 1}, .outputs = {2, 2},
               .attrs = classifier_attrs, .expand = expand_tree_classifier),
    TN_ONNX_OF(TN_ML, "TreeEnsembleRegressor", .since = 1, .inputs = {1, 1}, .outputs = {1, 1},
               .attrs = regressor_attrs, .expand = expand_tree_regressor),
};

const tn_onnx_family tn_onnx_family_ml_tree = {rows, sizeof rows / sizeof *rows};
