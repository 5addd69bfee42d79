/* Operators of ai.onnx.ml: small values worked out by hand from the standard's text, each on every path. A row is text: attributes
   "name:kind=values;..." (kinds f, i, s; F, I, S lists; T tensor), inputs and results as "f32[2,2] 1 2 3 4", maps as
   "{keys > values}", sequences as "(item, item)". */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/number.h"
#include "onnx/op.h"
#include "support/one_node.h"
#include "support/paths.h"

typedef struct row {
    const char *op;
    int version;
    const char *attrs, *in[3], *out[2];
} row;

static const row rows[] = {
    {"ArrayFeatureExtractor", 1, "", {"f32[2,3] 1 2 3 4 5 6", "i64[2] 2 0"}, {"f32[2,2] 3 1 6 4"}},
    {"ArrayFeatureExtractor", 1, "", {"string[1,3] a b c", "i64[1] 1"}, {"string[1,1] b"}},
    {"Binarizer", 1, "threshold:f=2", {"f32[4] 1 2 3 -5"}, {"f32[4] 0 0 1 0"}},
    {"CastMap", 1, "cast_to:s=TO_INT64", {"{i64[2] 3 0 > f32[2] 2.5 1.5}"}, {"i64[1,2] 1 2"}},
    {"CastMap", 1, "map_form:s=SPARSE;max_map:i=5", {"{i64[2] 0 3 > f32[2] 1.5 2.5}"}, {"f32[1,5] 1.5 0 0 2.5 0"}},
    {"CastMap", 1, "", {"{i64[2] 1 4 > string[2] 0.5 7}"}, {"f32[1,2] 0.5 7"}},
    {"CategoryMapper", 1, "cats_strings:S=a,b,c;cats_int64s:I=10,20,30", {"string[3] b a z"}, {"i64[3] 20 10 -1"}},
    {"CategoryMapper",
     1,
     "cats_strings:S=a,b,c;cats_int64s:I=10,20,30;default_string:s=none",
     {"i64[2] 30 5"},
     {"string[2] c none"}},
    {"DictVectorizer", 1, "string_vocabulary:S=a,b,c", {"{string[2] c a > f32[2] 4 2}"}, {"f32[1,3] 2 0 4"}},
    {"DictVectorizer", 1, "int64_vocabulary:I=7,5", {"{i64[2] 5 9 > i64[2] 1 2}"}, {"i64[1,2] 0 1"}},
    {"FeatureVectorizer", 1, "inputdimensions:I=2,1", {"f32[2,2] 1 2 3 4", "f32[2,1] 5 6"}, {"f32[2,3] 1 2 5 3 4 6"}},
    {"Imputer", 1, "imputed_value_floats:F=9;replaced_value_float:f=0", {"f32[1,3] 1 0 3"}, {"f32[1,3] 1 9 3"}},
    {"Imputer",
     1,
     "imputed_value_int64s:I=7,8;replaced_value_int64:i=-1",
     {"i64[2,2] -1 2 3 -1"},
     {"i64[2,2] 7 2 3 8"}},
    {"Imputer", 1, "imputed_value_floats:F=9;replaced_value_float:f=nan", {"f32[1,3] nan 0 3"}, {"f32[1,3] 9 0 3"}},
    {"LabelEncoder", 1, "classes_strings:S=a,b,c", {"string[3] c z a"}, {"i64[3] 2 -1 0"}},
    {"LabelEncoder", 1, "classes_strings:S=a,b,c;default_string:s=?", {"i64[3] 2 3 -1"}, {"string[3] c ? ?"}},
    {"LabelEncoder",
     2,
     "keys_strings:S=a,b;values_int64s:I=4,5;default_int64:i=9",
     {"string[2,2] b a x a"},
     {"i64[2,2] 5 4 9 4"}},
    {"LabelEncoder",
     2,
     "keys_floats:F=1.5,nan;values_strings:S=one,none",
     {"f32[3] nan 1.5 2"},
     {"string[3] none one _Unused"}},
    {"LabelEncoder",
     4,
     "keys_tensor:T=i64[2] 3 4;values_tensor:T=f64[2] 0.5 0.25;default_tensor:T=f64[1] -1",
     {"i64[3] 4 3 5"},
     {"f64[3] 0.25 0.5 -1"}},
    {"LinearClassifier",
     1,
     "coefficients:F=1,2,3,-1;intercepts:F=0.5,-0.5;classlabels_ints:I=7,9;multi_class:i=1",
     {"f32[2,2] 1 1 1 -1"},
     {"i64[2] 7 9", "f32[2,2] 3.5 1.5 -0.5 3.5"}},
    {"LinearClassifier",
     1,
     "coefficients:F=1,2,3,-1;intercepts:F=0.5,-0.5;classlabels_strings:S=x,y;post_transform:s=SOFTMAX",
     {"f32[1,2] 1 1"},
     {"string[1] x", "f32[1,2] 0.880797 0.119203"}},
    {"LinearClassifier",
     1,
     "coefficients:F=1,0,0,1,1,1;intercepts:F=0,0,-1;classlabels_ints:I=1,2,3;post_transform:s=LOGISTIC",
     {"f32[1,2] 0 2"},
     {"i64[1] 2", "f32[1,3] 0.5 0.880797 0.731059"}},
    {"LinearRegressor",
     1,
     "coefficients:F=1,2,3,4;intercepts:F=0.5,1;targets:i=2",
     {"f32[2,2] 1 1 0 -1"},
     {"f32[2,2] 3.5 8 -1.5 -3"}},
    {"Normalizer", 1, "norm:s=L1", {"f32[2,2] 1 -3 0 2"}, {"f32[2,2] 0.25 -0.75 0 1"}},
    {"Normalizer", 1, "norm:s=L2", {"f32[1,2] 3 4"}, {"f32[1,2] 0.6 0.8"}},
    {"Normalizer", 1, "norm:s=MAX", {"f32[2,2] 1 2 4 1"}, {"f32[2,2] 0.5 1 1 0.25"}},
    {"OneHotEncoder", 1, "cats_int64s:I=1,3", {"i64[2] 3 5"}, {"f32[2,2] 0 1 0 0"}},
    {"OneHotEncoder", 1, "cats_strings:S=a,b,c", {"string[1,2] c a"}, {"f32[1,2,3] 0 0 1 1 0 0"}},
    {"Scaler", 1, "offset:F=1,2;scale:F=2,0.5", {"f32[1,2] 3 6"}, {"f32[1,2] 4 2"}},
    {"Scaler", 1, "offset:F=1;scale:F=2", {"i64[1,2] 3 6"}, {"f32[1,2] 4 10"}},
    {"SVMRegressor",
     1,
     "n_supports:i=2;support_vectors:F=1,0,0,1;coefficients:F=2,3;rho:F=0.5;kernel_type:s=LINEAR",
     {"f32[1,2] 1 1"},
     {"f32[1,1] 5.5"}},
    {"SVMRegressor",
     1,
     "n_supports:i=2;support_vectors:F=1,0,0,1;coefficients:F=2,3;rho:F=0.5;kernel_type:s=RBF;kernel_params:F=0.5,0,3",
     {"f32[1,2] 1 1"},
     {"f32[1,1] 3.53265"}},
    {"SVMRegressor",
     1,
     "n_supports:i=2;support_vectors:F=1,0,0,1;coefficients:F=2,3;rho:F=0.5;kernel_type:s=POLY;kernel_params:F=1,1,2",
     {"f32[1,2] 1 1"},
     {"f32[1,1] 20.5"}},
    {"SVMRegressor",
     1,
     "n_supports:i=2;support_vectors:F=1,0,0,1;coefficients:F=2,3;rho:F=0.5;kernel_type:s=SIGMOID;kernel_params:F=1,0,"
     "3",
     {"f32[1,2] 1 1"},
     {"f32[1,1] 4.30797"}},
    {"SVMRegressor",
     1,
     "n_supports:i=1;support_vectors:F=1,1;coefficients:F=1;rho:F=-3;one_class:i=1",
     {"f32[2,2] 1 1 2 2"},
     {"f32[2,1] -1 1"}},
    /* one pair of classes: 2 - 0 > 0 votes for the first */
    {"SVMClassifier",
     1,
     "classlabels_ints:I=4,6;vectors_per_class:I=1,1;support_vectors:F=1,0,0,1;coefficients:F=1,-1;rho:F=0;kernel_type:"
     "s=LINEAR",
     {"f32[2,2] 2 0 0 2"},
     {"i64[2] 4 6"}},
    {"TreeEnsembleRegressor",
     1,
     "nodes_treeids:I=0,0,0;nodes_nodeids:I=0,1,2;nodes_featureids:I=0,0,0;nodes_values:F=1.5,0,0;nodes_modes:S=BRANCH_"
     "LEQ,LEAF,LEAF;"
     "nodes_truenodeids:I=1,0,0;nodes_falsenodeids:I=2,0,0;target_treeids:I=0,0;target_nodeids:I=1,2;target_ids:I=0,0;"
     "target_weights:F=10,20;base_values:F=0.5",
     {"f32[3,1] 1 1.5 2"},
     {"f32[3,1] 10.5 10.5 20.5"}},
    {"TreeEnsembleRegressor",
     1, /* two trees, averaged; a missing value that goes to the true side */
     "nodes_treeids:I=0,0,0,1;nodes_nodeids:I=0,1,2,0;nodes_featureids:I=0,0,0,0;nodes_values:F=1,0,0,0;"
     "nodes_modes:S=BRANCH_GT,LEAF,LEAF,LEAF;nodes_truenodeids:I=1,0,0,0;nodes_falsenodeids:I=2,0,0,0;"
     "nodes_missing_value_tracks_true:I=1,0,0,0;target_treeids:I=0,0,1;target_nodeids:I=1,2,0;target_ids:I=0,0,0;"
     "target_weights:F=10,20,4;aggregate_function:s=AVERAGE",
     {"f32[3,1] 0 2 nan"},
     {"f32[3,1] 12 7 7"}},
    {"TreeEnsembleRegressor",
     1, /* a node that is its own child, beside a leaf that would do for a root */
     "nodes_treeids:I=0,0,0;nodes_nodeids:I=0,1,2;nodes_featureids:I=0,0,0;nodes_values:F=1.5,0,0;"
     "nodes_modes:S=BRANCH_LEQ,LEAF,LEAF;nodes_truenodeids:I=1,0,0;nodes_falsenodeids:I=0,0,0;target_treeids:I=0,0;"
     "target_nodeids:I=1,2;target_ids:I=0,0;target_weights:F=10,20",
     {"f32[1,1] 1"},
     {"!part of a circle"}},
    {"TreeEnsembleRegressor",
     1, /* two nodes that are each other's child, and one that hangs from them */
     "nodes_treeids:I=0,0,0,0;nodes_nodeids:I=0,1,2,3;nodes_featureids:I=0,0,0,0;nodes_values:F=1,0,2,0;"
     "nodes_modes:S=BRANCH_LT,LEAF,BRANCH_LT,LEAF;nodes_truenodeids:I=1,0,0,0;nodes_falsenodeids:I=2,0,0,0;"
     "target_treeids:I=0;target_nodeids:I=3;target_ids:I=0;target_weights:F=10",
     {"f32[1,1] 1"},
     {"!part of a circle"}},
    {"TreeEnsembleClassifier",
     1,
     "nodes_treeids:I=0,0,0;nodes_nodeids:I=0,1,2;nodes_featureids:I=1,0,0;nodes_values:F=1.5,0,0;nodes_modes:S=BRANCH_"
     "LT,LEAF,LEAF;"
     "nodes_truenodeids:I=1,0,0;nodes_falsenodeids:I=2,0,0;class_treeids:I=0,0,0,0;class_nodeids:I=1,1,2,2;class_ids:I="
     "0,2,1,2;"
     "class_weights:F=0.75,0.25,0.5,0.25;classlabels_strings:S=a,b,c",
     {"f32[2,2] 9 1 0 1.5"},
     {"string[2] a b", "f32[2,3] 0.75 0 0.25 0 0.5 0.25"}},
    {"TreeEnsemble",
     5, /* feature 0 <= 1.5: leaf 0 (weight 10), else leaf 1 (weight 20) */
     "tree_roots:I=0;nodes_featureids:I=0;nodes_modes:T=u8[1] 0;nodes_splits:T=f32[1] "
     "1.5;nodes_truenodeids:I=0;nodes_trueleafs:I=1;"
     "nodes_falsenodeids:I=1;nodes_falseleafs:I=1;leaf_targetids:I=0,1;leaf_weights:T=f32[2] 10 "
     "20;n_targets:i=2;aggregate_function:i=1",
     {"f32[2,1] 1.5 3"},
     {"f32[2,2] 10 0 0 20"}},
    {"ZipMap",
     1,
     "classlabels_int64s:I=1,3",
     {"f32[2,2] 0.5 2 3 4"},
     {"({i64[2] 1 3 > f32[2] 0.5 2}, {i64[2] 1 3 > f32[2] 3 4})"}},
    {"ZipMap", 1, "classlabels_strings:S=a,b", {"f32[1,2] 0.5 2"}, {"({string[2] a b > f32[2] 0.5 2})"}},
};

/* --- text to values, and back ------------------------------------------------------------------------------------------------------- */

static tn_dtype dtype_of(const char *name, size_t length) {
    for (int d = 1; d < TN_DTYPE_COUNT; d++)
        if (strlen(tn_dtype_name((tn_dtype)d)) == length && strncmp(tn_dtype_name((tn_dtype)d), name, length) == 0)
            return (tn_dtype)d;
    fail_msg("no element type in %s", name);
    return TN_DTYPE_NONE;
}

/* Ends at what is no value: ';', '>', '}', or the end. */
static tn_tensor *tensor_of(const char **text) {
    const char *p = *text;
    int64_t dims[TN_MAX_RANK];
    int rank = 0;
    size_t n = strcspn(p, "[");
    tn_dtype dtype = dtype_of(p, n);
    for (p += n + 1; *p != ']'; p += *p == ',')
        dims[rank++] = strtoll(p, (char **)(uintptr_t)&p, 10);
    p++;
    tn_tensor *t = tn_tensor_create(dtype, rank, dims);
    for (int64_t i = 0; i < t->count; i++) {
        p += *p == ' ';
        n = strcspn(p, " ;>}");
        double value = 0;
        size_t used;
        if (dtype == TN_STRING)
            assert_int_equal(tn_tensor_set_string(t, i, p, n), TN_OK);
        else if (strncmp(p, "nan", 3) == 0)
            tn_tensor_set_f64(t, i, (double)NAN);
        else {
            assert_true(tn_parse_f64(p, n, &value, &used) && used == n);
            tn_tensor_set_f64(t, i, value);
        }
        p += n;
    }
    p += *p == ' ';
    *text = p;
    return t;
}

static tn_object *object_of(const char *text) {
    if (*text != '{')
        return tn_tensor_object(tensor_of(&text));
    text++;
    tn_tensor *keys = tensor_of(&text);
    assert_true(*text++ == '>');
    text++;
    tn_tensor *values = tensor_of(&text);
    tn_object *map = tn_map_create(NULL, keys, tn_tensor_object(values));
    tn_tensor_destroy(keys);
    tn_tensor_destroy(values);
    assert_non_null(map);
    return map;
}

static void put_object(tn_text *out, const tn_object *object) {
    if (tn_object_kind(object) == TN_KIND_SEQUENCE) {
        for (size_t i = 0; i < tn_sequence_length(object); i++) {
            tn_text_add(out, i ? ", " : "(");
            put_object(out, tn_sequence_at(object, i));
        }
        tn_text_add(out, ")");
        return;
    }
    if (tn_object_kind(object) == TN_KIND_MAP) {
        tn_text_add(out, "{");
        put_object(out, tn_tensor_object(tn_map_keys(object)));
        tn_text_add(out, " > ");
        put_object(out, tn_map_values(object));
        tn_text_add(out, "}");
        return;
    }
    const tn_tensor *t = (const tn_tensor *)object;
    char text[200];
    tn_text_add(out, tn_tensor_describe(t, text, sizeof text));
    for (int64_t i = 0; i < t->count; i++) {
        tn_string string;
        tn_text_add(out, " ");
        if (t->dtype == TN_STRING) {
            assert_int_equal(tn_tensor_get_string(t, i, &string), TN_OK);
            tn_text_bytes(out, string.data, string.length);
            continue;
        }
        double value = tn_tensor_get_f64(t, i);
        tn_format_f64_digits(value == 0 ? 0 : value, 6, text);
        tn_text_add(out, text);
    }
}

static void put_fixed(tn_text *out, uint32_t field, uint32_t bits) {
    const char bytes[5] = {(char)(field << 3 | 5), (char)bits, (char)(bits >> 8), (char)(bits >> 16),
                           (char)(bits >> 24)};
    tn_text_bytes(out, bytes, sizeof bytes);
}

static void put_attributes(tn_text *attrs, const char *p) {
    while (*p) {
        char name[64], item[64];
        size_t n = strcspn(p, ":"), end = strcspn(p, ";");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        char kind = p[n + 1];
        const char *v = p + n + 3, *stop = p + end;
        tn_text a = message();
        put_text(&a, 1, name);
        if (kind == 'T') {
            tn_tensor *t = tensor_of(&v);
            tn_text bytes = message();
            assert_int_equal(tn_onnx_write_tensor(&bytes, t, ""), TN_OK);
            put_message(&a, 5, bytes);
            tn_tensor_destroy(t);
        }
        while (kind != 'T' && v < stop) {
            n = strcspn(v, ",;");
            snprintf(item, sizeof item, "%.*s", (int)n, v);
            double f = 0;
            size_t used;
            bool nan = strcmp(item, "nan") == 0;
            if (!nan && (kind == 'f' || kind == 'F'))
                assert_true(tn_parse_f64(item, n, &f, &used));
            float number = nan ? NAN : (float)f;
            uint32_t bits;
            memcpy(&bits, &number, 4);
            switch (kind) {
            case 'f': put_fixed(&a, 2, bits); break;
            case 'F': put_fixed(&a, 7, bits); break;
            case 'i': tn_wire_put_varint(&a, 3, (uint64_t)strtoll(item, NULL, 10)); break;
            case 'I': tn_wire_put_varint(&a, 8, (uint64_t)strtoll(item, NULL, 10)); break;
            case 's': put_text(&a, 4, item); break;
            default: put_text(&a, 9, item);
            }
            v += n + (v[n] == ',');
        }
        static const char kinds[] =
            " fisT  FIS"; /* numbers of AttributeProto's types: FLOAT 1, INT 2, STRING 3, TENSOR 4, FLOATS 6, ... */
        uint64_t type = kind == 'F' ? 6 : kind == 'I' ? 7 : kind == 'S' ? 8 : (uint64_t)(strchr(kinds, kind) - kinds);
        tn_wire_put_varint(&a, 20, type);
        put_message(attrs, 5, a);
        p = *stop ? stop + 1 : stop;
    }
}

/* A ValueInfoProto of a map. */
static void put_map_value(tn_text *graph, const char *name, const tn_object *map) {
    tn_text info = message(), type = message(), m = message(), value = message(), tensor = message();
    tn_wire_put_varint(&tensor, 1, (uint64_t)tn_tensor_dtype((const tn_tensor *)tn_map_values(map)));
    put_message(&tensor, 2, message());
    put_message(&value, 1, tensor);
    tn_wire_put_varint(&m, 1, (uint64_t)tn_tensor_dtype(tn_map_keys(map)));
    put_message(&m, 2, value);
    put_message(&type, 5, m);
    put_text(&info, 1, name);
    put_message(&info, 2, type);
    put_message(graph, 11, info);
}

/* --- the rows -------------------------------------------------------------------------------------------------------------------------- */

static void check_row(const row *r, bool known) {
    tn_text g = message(), attrs = message();
    char names[16] = "", shape[100];
    tn_binding in[3];
    uint32_t n = 0, m = 0;
    for (; n < 3 && r->in[n]; n++) {
        static const char *const name[] = {"x", "z", "w"};
        tn_object *object = object_of(r->in[n]);
        in[n] = (tn_binding){.name = name[n], .object = object};
        strcat(strcat(names, n ? "," : ""), name[n]);
        if (tn_object_kind(object) == TN_KIND_MAP) {
            put_map_value(&g, name[n], object);
            continue;
        }
        const tn_tensor *t = (const tn_tensor *)object;
        shape[0] = 0;
        for (int k = 0; k < t->rank; k++)
            snprintf(shape + strlen(shape), sizeof shape - strlen(shape), known ? "%s%d" : "%s?", k ? "," : "",
                     (int)t->dims[k]);
        put_value(&g, 11, name[n], (int)t->dtype, shape);
    }
    put_attributes(&attrs, r->attrs);
    tn_text node = node_bytes(r->op, "node", names, r->out[1] || strstr(r->op, "Classifier") ? "y,s" : "y", attrs);
    put_text(&node, 7, "ai.onnx.ml");
    put_message(&g, 1, node);
    for (; m < 2 && r->out[m]; m++)
        put_value(&g, 12, m ? "s" : "y", 0, NULL);
    tn_text bytes = model_bytes(17, g);
    put_opset(&bytes, 8, "ai.onnx.ml", r->version);
    tn_model *model = tn_model_load_memory(bytes.data, bytes.len, NULL);
    if (!model)
        fail_msg("%s: %s", r->op, tn_error_message());
    for (int p = 0; p < RUN_PATHS; p++) {
        tn_object *out[2] = {NULL};
        const tn_output wanted[2] = {{.name = "y", .object = &out[0]}, {.name = "s", .object = &out[1]}};
        tn_session *s = tn_session_create(model, &run_paths[p].options);
        if (*r->out[0] == '!') {
            if (s && tn_session_run(s, n, in, m, wanted) == TN_OK)
                fail_msg("%s %s, %s: is not refused", r->op, r->attrs, run_paths[p].name);
            if (!strstr(tn_error_message(), r->out[0] + 1))
                fail_msg("%s: refused for another reason: %s", r->op, tn_error_message());
            tn_session_destroy(s);
            continue;
        }
        if (!s || tn_session_run(s, n, in, m, wanted) != TN_OK)
            fail_msg("%s %s, %s: %s", r->op, r->attrs, run_paths[p].name, tn_error_message());
        for (uint32_t i = 0; i < m; i++) {
            tn_text got = message();
            put_object(&got, out[i]);
            if (strcmp(got.data, r->out[i]) != 0)
                fail_msg("%s %s, %s, output %u:\n  %s\nnot\n  %s", r->op, r->attrs, run_paths[p].name, i, got.data,
                         r->out[i]);
            tn_text_free(&got);
            tn_object_destroy(out[i]);
        }
        tn_session_destroy(s);
    }
    for (uint32_t i = 0; i < n; i++)
        tn_object_destroy(in[i].object);
    tn_model_destroy(model);
    tn_text_free(&bytes);
}

static void test_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_row(&rows[i], true);
        check_row(&rows[i], false);
    }
}

/* Every operator of the domain has a row here. */
static void test_all_operators(void **state) {
    (void)state;
    uint32_t families;
    const tn_onnx_family *const *family = tn_onnx_families(&families);
    for (uint32_t f = 0; f < families; f++)
        for (uint32_t i = 0; i < family[f]->count; i++) {
            const tn_onnx_op *op = &family[f]->rows[i];
            bool found = strcmp(op->domain, "ai.onnx.ml") != 0;
            for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
                found |= strcmp(rows[k].op, op->name) == 0;
            if (!found)
                fail_msg("no row for %s", op->name);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_all_operators)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
