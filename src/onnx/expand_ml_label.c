/* Operators of ai.onnx.ml that map texts and numbers to others, or to and from maps: CastMap, CategoryMapper, DictVectorizer,
   LabelEncoder, OneHotEncoder, ZipMap. */
#include <inttypes.h>
#include <stdlib.h>

#include "onnx/expand_ml.h"
#include "onnx/host_ops.h"
#include "ops/plain.h"

/* --- sorted keys -------------------------------------------------------------------------------------------------------------------- */

typedef struct key_entry {
    uint64_t number;
    tn_string text;
    int64_t index;
} key_entry;

static int by_key(const void *a, const void *b) {
    const key_entry *p = a, *q = b;
    int order = p->number < q->number ? -1 : p->number > q->number;
    if (!order)
        order = tn_order_strings(&p->text, &q->text);
    return order ? order : (p->index > q->index) - (p->index < q->index);
}

/* keys [n] in order, each once; places[]: where the last one equal to each stood. */
static tn_status sort_keys(tn_expand *x, const tn_tensor *keys, tn_tensor **sorted, int64_t **places) {
    int64_t n = keys->count, kept = 0;
    key_entry *entries = tn_expand_alloc(x, (size_t)n, sizeof *entries);
    *places = tn_expand_alloc(x, (size_t)n + 1, sizeof **places);
    if (!entries || !*places)
        return tn_error_status();
    for (int64_t i = 0; i < n; i++) {
        entries[i].index = i;
        if (keys->dtype == TN_STRING)
            TN_TRY(tn_tensor_get_string(keys, i, &entries[i].text));
        else
            entries[i].number = tn_order_key((tn_dtype)keys->dtype, keys->data, i);
    }
    qsort(entries, (size_t)n, sizeof *entries, by_key);
    for (int64_t i = 0; i < n; i++) {
        bool last = i + 1 == n || entries[i].number != entries[i + 1].number ||
                    tn_order_strings(&entries[i].text, &entries[i + 1].text) != 0;
        if (last)
            (*places)[kept++] = entries[i].index;
    }
    *sorted = tn_tensor_create_in(x->graph->heap, (tn_dtype)keys->dtype, 1, &kept);
    if (!*sorted)
        return tn_error_status();
    tn_status status = tn_copy_indexed(*sorted, 0, keys, 0, *places, 1, kept);
    if (status != TN_OK)
        tn_tensor_destroy(*sorted);
    return status;
}

static tn_value host_node(tn_expand *x, const tn_op *op, tn_value in, uint32_t attrs, const tn_attr *attr) {
    tn_node node = tn_graph_add_node(
        x->graph,
        &(tn_node_desc){
            .op = op, .input_count = 1, .inputs = &in, .output_count = 1, .attr_count = attrs, .attrs = attr});
    return node.id ? tn_node_output(x->graph, node, 0) : (tn_value){0};
}

static tn_status find_sorted(tn_expand *x, tn_value in, const tn_tensor *keys, bool strict, tn_value *at,
                             int64_t **places, int64_t *count) {
    tn_tensor *sorted;
    TN_TRY(sort_keys(x, keys, &sorted, places));
    *count = sorted->count;
    const tn_attr attrs[] = {TN_A_TENSOR("keys", sorted), TN_A_INT("strict", strict)};
    *at = host_node(x, &tn_host_lookup, in, 2, attrs);
    tn_tensor_destroy(sorted);
    TN_BUILT(x, *at);
    return TN_OK;
}

/* Output 0: for each element of the input the value of its key, or the one element of `absent`. */
static tn_status map_elements(tn_expand *x, const tn_tensor *keys, const tn_tensor *values, const tn_tensor *absent) {
    int64_t *places, n;
    tn_value at;
    tn_dtype dtype = (tn_dtype)values->dtype;
    TN_RULE(x, keys->dtype == tn_expand_dtype(x, 0), "the input is %s, the keys are %s",
            tn_dtype_name(tn_expand_dtype(x, 0)), tn_dtype_name((tn_dtype)keys->dtype));
    TN_RULE(x, keys->count == values->count, "there are %" PRId64 " keys and %" PRId64 " values", keys->count,
            values->count);
    TN_RULE(x, absent->dtype == dtype && absent->count == 1, "the default must be one %s", tn_dtype_name(dtype));
    TN_TRY(find_sorted(x, tn_expand_input(x, 0), keys, false, &at, &places, &n));
    const int64_t room = n + 1, zero = 0;
    tn_tensor *table = tn_tensor_create_in(x->graph->heap, dtype, 1, &room);
    tn_status status = table ? tn_copy_indexed(table, 0, values, 0, places, 1, n) : tn_error_status();
    if (status == TN_OK)
        status = tn_copy_indexed(table, n, absent, 0, &zero, 1, 1);
    if (status != TN_OK) {
        tn_tensor_destroy(table);
        return status;
    }
    return tn_expand_set(x, 0, tn_gather(x->graph, tn_ml_tensor(x, table), at, 0));
}

/* --- lists as tensors ---------------------------------------------------------------------------------------------------------------- */

/* One of the lists that a node may give, as a tensor [n] (a new reference); NULL: none is given. */
static tn_status one_list(tn_expand *x, const char *strings, const char *ints, const char *floats, const char *tensor,
                          tn_tensor **out) {
    const tn_string *texts;
    const int64_t *numbers;
    const float *reals;
    uint32_t n = tn_expand_strings(x, strings, &texts), m = tn_expand_ints(x, ints, &numbers);
    int64_t k = floats ? tn_expand_floats(x, floats, &reals) : 0;
    tn_tensor *t = tensor ? tn_expand_tensor(x, tensor) : NULL;
    *out = NULL;
    TN_RULE(x, (n != 0) + (m != 0) + (k != 0) + (t != NULL) <= 1, "more than one of '%s', '%s' and their like is given",
            strings, ints);
    if (n)
        *out = tn_ml_strings(x, n, texts);
    else if (m)
        *out = tn_ml_ints(x, m, numbers);
    else if (k && (*out = tn_tensor_new(x->graph->heap, TN_F32, 1, &k)))
        memcpy((*out)->data, reals, (size_t)k * sizeof *reals);
    else if (t) {
        TN_RULE(x, t->rank == 1, "'%s' must have rank 1", tensor);
        *out = tn_tensor_contiguous(x->graph->heap, t);
    }
    return *out || !(n || m || k || t) ? TN_OK : tn_error_status();
}

static tn_tensor *scalar_string(tn_expand *x, tn_string s) {
    tn_tensor *t = tn_tensor_create_in(x->graph->heap, TN_STRING, 0, NULL);
    if (t && tn_tensor_set_string(t, 0, s.data, s.length) != TN_OK) {
        tn_tensor_destroy(t);
        t = NULL;
    }
    return t;
}

static tn_tensor *scalar_number(tn_expand *x, tn_dtype dtype, int64_t integer, double real) {
    tn_tensor *t = tn_tensor_create_in(x->graph->heap, dtype, 0, NULL);
    if (t && tn_is_float(dtype))
        tn_store_f64(dtype, t->data, 0, real);
    else if (t)
        tn_store_i64(dtype, t->data, 0, integer);
    return t;
}

/* --- LabelEncoder, CategoryMapper ------------------------------------------------------------------------------------------------------ */

static bool is_label(tn_dtype t) {
    return t == TN_STRING || t == TN_I64 || t == TN_F32 || t == TN_I32 || t == TN_I16 || t == TN_F64;
}

static tn_status label_default(tn_expand *x, const tn_tensor *values, tn_tensor **out) {
    tn_tensor *t = tn_expand_tensor(x, "default_tensor");
    tn_dtype dtype = (tn_dtype)values->dtype;
    if (t) {
        TN_RULE(x, t->dtype == values->dtype && t->count == 1, "'default_tensor' must be one %s", tn_dtype_name(dtype));
        *out = tn_tensor_contiguous(x->graph->heap, t);
    } else if (dtype == TN_STRING) {
        *out = scalar_string(x, tn_expand_string(x, "default_string"));
    } else {
        *out = scalar_number(x, dtype, dtype == TN_I64 ? tn_expand_int(x, "default_int64") : -1,
                             dtype == TN_F32 ? tn_expand_float(x, "default_float") : -0.0);
    }
    return *out ? TN_OK : tn_error_status();
}

static tn_status expand_label_encoder(tn_expand *x) {
    tn_tensor *keys = NULL, *values = NULL, *absent = NULL;
    tn_status status = one_list(x, "keys_strings", "keys_int64s", "keys_floats", "keys_tensor", &keys);
    if (status == TN_OK)
        status = one_list(x, "values_strings", "values_int64s", "values_floats", "values_tensor", &values);
    if (status == TN_OK && (!keys || !values))
        status = tn_expand_fail(x, "attribute '%s' is missing", keys ? "values_*" : "keys_*");
    else if (status == TN_OK && (!is_label((tn_dtype)keys->dtype) || !is_label((tn_dtype)values->dtype)))
        status = tn_expand_fail(x, "keys of %s and values of %s are not allowed", tn_dtype_name((tn_dtype)keys->dtype),
                                tn_dtype_name((tn_dtype)values->dtype));
    if (status == TN_OK)
        status = label_default(x, values, &absent);
    if (status == TN_OK)
        status = map_elements(x, keys, values, absent);
    tn_tensor_destroy(keys);
    tn_tensor_destroy(values);
    tn_tensor_destroy(absent);
    return status;
}

/* Texts and integers, whichever the input is, to the others. `numbers` NULL: the texts' positions. */
static tn_status texts_and_numbers(tn_expand *x, uint32_t n, const tn_string *texts, const int64_t *numbers) {
    tn_dtype from = tn_expand_dtype(x, 0);
    int64_t *own = tn_expand_alloc(x, n, sizeof *own);
    if (!own)
        return tn_error_status();
    for (uint32_t i = 0; i < n; i++)
        own[i] = numbers ? numbers[i] : (int64_t)i;
    TN_RULE(x, from == TN_STRING || from == TN_I64, "the input is %s: it must be string or i64", tn_dtype_name(from));
    tn_tensor *a = tn_ml_strings(x, n, texts), *b = tn_ml_ints(x, n, own);
    tn_tensor *absent = from == TN_STRING ? scalar_number(x, TN_I64, tn_expand_int(x, "default_int64"), 0)
                                          : scalar_string(x, tn_expand_string(x, "default_string"));
    tn_status status = a && b && absent ? TN_OK : tn_error_status();
    if (status == TN_OK)
        status = map_elements(x, from == TN_STRING ? a : b, from == TN_STRING ? b : a, absent);
    tn_tensor_destroy(a);
    tn_tensor_destroy(b);
    tn_tensor_destroy(absent);
    return status;
}

static tn_status expand_label_encoder_1(tn_expand *x) {
    const tn_string *texts;
    uint32_t n = tn_expand_strings(x, "classes_strings", &texts);
    TN_RULE(x, n, "attribute 'classes_strings' is missing");
    return texts_and_numbers(x, n, texts, NULL);
}

static tn_status expand_category_mapper(tn_expand *x) {
    const tn_string *texts;
    const int64_t *numbers;
    uint32_t n = tn_expand_strings(x, "cats_strings", &texts), m = tn_expand_ints(x, "cats_int64s", &numbers);
    TN_RULE(x, n == m, "there are %u entries of 'cats_strings' and %u of 'cats_int64s'", (unsigned)n, (unsigned)m);
    return texts_and_numbers(x, n, texts, numbers);
}

/* --- OneHotEncoder -------------------------------------------------------------------------------------------------------------------- */

static tn_status one_hot(tn_expand *x, const tn_tensor *keys) {
    tn_graph *g = x->graph;
    int rank = tn_expand_rank(x, 0);
    const int last[1] = {rank};
    int64_t *places, n;
    tn_value in = tn_expand_input(x, 0), at;
    tn_dtype dtype = tn_expand_dtype(x, 0);
    TN_RULE(x, (dtype == TN_STRING) == (keys->dtype == TN_STRING), "the input is %s, the categories are %s",
            tn_dtype_name(dtype), tn_dtype_name((tn_dtype)keys->dtype));
    TN_RULE(x, dtype == TN_STRING || dtype == TN_F32 || dtype == TN_F64 || dtype == TN_I64 || dtype == TN_I32,
            "the input is %s", tn_dtype_name(dtype));
    TN_RULE(x, rank < TN_MAX_RANK, "the result would have rank %d", rank + 1);
    if (dtype != TN_STRING)
        in = tn_cast(g, in, TN_I64);
    TN_BUILT(x, in);
    TN_TRY(find_sorted(x, in, keys, !tn_expand_int(x, "zeros"), &at, &places, &n));
    tn_dim count = tn_size(x, keys->count);
    places[n] = -1;
    tn_value category = tn_gather(g, tn_constant_i64(g, 1, n + 1, places), at, 0);
    tn_value hot = tn_equal(g, tn_expand_dims(g, category, 1, last), tn_iota(g, TN_I64, 1, &count, 0));
    return tn_expand_set(x, 0, tn_cast(g, hot, TN_F32));
}

static tn_status expand_one_hot_encoder(tn_expand *x) {
    tn_tensor *keys;
    TN_TRY(one_list(x, "cats_strings", "cats_int64s", NULL, NULL, &keys));
    TN_RULE(x, keys, "attribute 'cats_strings' or 'cats_int64s' is missing");
    tn_status status = one_hot(x, keys);
    tn_tensor_destroy(keys);
    return status;
}

/* --- maps ------------------------------------------------------------------------------------------------------------------------------ */

/* A key that is given twice means its last column. */
static tn_status zip_map(tn_expand *x, tn_value in, tn_tensor *keys) {
    tn_tensor *sorted;
    int64_t *places;
    TN_TRY(sort_keys(x, keys, &sorted, &places));
    bool twice = sorted->count < keys->count;
    if (twice)
        in = tn_gather(x->graph, in, tn_constant_i64(x->graph, 1, sorted->count, places), tn_expand_rank(x, 0) - 1);
    const tn_attr attrs[] = {TN_A_TENSOR("keys", twice ? sorted : keys)};
    tn_value y = in.id ? host_node(x, &tn_host_zip_map, in, 1, attrs) : in;
    tn_tensor_destroy(sorted);
    return tn_expand_set(x, 0, y);
}

static tn_status expand_zip_map(tn_expand *x) {
    tn_tensor *keys;
    int rank = tn_expand_rank(x, 0);
    TN_RULE(x, rank == 1 || rank == 2, "the input has rank %d: it must be 1 or 2", rank);
    TN_TRY(one_list(x, "classlabels_strings", "classlabels_int64s", NULL, NULL, &keys));
    TN_RULE(x, keys, "attribute 'classlabels_strings' or 'classlabels_int64s' is missing");
    tn_status status = TN_OK;
    if (tn_dim_never_equal(x->graph, tn_expand_dim(x, 0, -1), tn_size(x, keys->count)))
        status = tn_expand_fail(x, "there are %" PRId64 " keys, but another number of columns", keys->count);
    else
        status = zip_map(x, tn_expand_input(x, 0), keys);
    tn_tensor_destroy(keys);
    return status;
}

static tn_status expand_cast_map(tn_expand *x) {
    bool sparse = tn_expand_string_is(x, "map_form", "SPARSE");
    int64_t columns = tn_expand_int(x, "max_map");
    tn_dtype to = tn_expand_string_is(x, "cast_to", "TO_STRING")  ? TN_STRING
                  : tn_expand_string_is(x, "cast_to", "TO_INT64") ? TN_I64
                                                                  : TN_F32;
    TN_RULE(x, !sparse || columns >= 1, "'max_map' is %" PRId64, columns);
    const tn_attr attrs[] = {TN_A_INT("columns", sparse ? columns : -1), TN_A_DTYPE("to", to)};
    return tn_expand_set(x, 0, host_node(x, &tn_host_cast_map, tn_expand_input(x, 0), 2, attrs));
}

static tn_status vectorize(tn_expand *x, const tn_tensor *vocabulary) {
    tn_tensor *sorted;
    int64_t *places;
    TN_TRY(sort_keys(x, vocabulary, &sorted, &places));
    tn_tensor *columns = tn_ml_ints(x, (uint32_t)sorted->count, places);
    tn_value y = {0};
    if (columns) {
        const tn_attr attrs[] = {TN_A_TENSOR("columns", columns), TN_A_INT("count", vocabulary->count),
                                 TN_A_TENSOR("keys", sorted)};
        y = host_node(x, &tn_host_vectorize_map, tn_expand_input(x, 0), 3, attrs);
    } else {
        tn_graph_stick(x->graph);
    }
    tn_tensor_destroy(columns);
    tn_tensor_destroy(sorted);
    return tn_expand_set(x, 0, y);
}

static tn_status expand_dict_vectorizer(tn_expand *x) {
    tn_tensor *vocabulary;
    TN_TRY(one_list(x, "string_vocabulary", "int64_vocabulary", NULL, NULL, &vocabulary));
    TN_RULE(x, vocabulary, "attribute 'string_vocabulary' or 'int64_vocabulary' is missing");
    tn_status status = vectorize(x, vocabulary);
    tn_tensor_destroy(vocabulary);
    return status;
}

/* --- rows ------------------------------------------------------------------------------------------------------------------------------ */

static const tn_attr_spec cast_map_attrs[] = {TN_SPEC_STRING("cast_to", "TO_FLOAT", "TO_FLOAT|TO_STRING|TO_INT64"),
                                              TN_SPEC_STRING("map_form", "DENSE", "DENSE|SPARSE"),
                                              TN_SPEC_INT("max_map", 1),
                                              {0}};
static const tn_attr_spec category_attrs[] = {TN_SPEC_INTS("cats_int64s"),
                                              TN_SPEC_STRINGS("cats_strings"),
                                              TN_SPEC_INT("default_int64", -1),
                                              TN_SPEC_STRING("default_string", "_Unused", NULL),
                                              {0}};
static const tn_attr_spec dict_attrs[] = {TN_SPEC_INTS("int64_vocabulary"), TN_SPEC_STRINGS("string_vocabulary"), {0}};
static const tn_attr_spec label_1_attrs[] = {TN_SPEC_STRINGS("classes_strings"),
                                             TN_SPEC_INT("default_int64", -1),
                                             TN_SPEC_STRING("default_string", "_Unused", NULL),
                                             {0}};
static const tn_attr_spec label_attrs[] = {TN_SPEC_FLOAT("default_float", -0.0),
                                           TN_SPEC_INT("default_int64", -1),
                                           TN_SPEC_STRING("default_string", "_Unused", NULL),
                                           TN_SPEC_TENSOR("default_tensor"),
                                           TN_SPEC_FLOATS("keys_floats"),
                                           TN_SPEC_INTS("keys_int64s"),
                                           TN_SPEC_STRINGS("keys_strings"),
                                           TN_SPEC_TENSOR("keys_tensor"),
                                           TN_SPEC_FLOATS("values_floats"),
                                           TN_SPEC_INTS("values_int64s"),
                                           TN_SPEC_STRINGS("values_strings"),
                                           TN_SPEC_TENSOR("values_tensor"),
                                           {0}};
static const tn_attr_spec one_hot_attrs[] = {
    TN_SPEC_INTS("cats_int64s"), TN_SPEC_STRINGS("cats_strings"), TN_SPEC_BOOL("zeros", 1), {0}};
static const tn_attr_spec zip_attrs[] = {
    TN_SPEC_INTS("classlabels_int64s"), TN_SPEC_STRINGS("classlabels_strings"), {0}};

#define ROW(NAME, from, to, list, what, build)                                                              \
    TN_ONNX_OF(TN_ML, NAME, .since = from, .until = to, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = list, \
               .flags = what, .expand = expand_##build)

static const tn_onnx_op rows[] = {
    ROW("CastMap", 1, 0, cast_map_attrs, TN_ONNX_UNRANKED, cast_map),
    ROW("CategoryMapper", 1, 0, category_attrs, 0, category_mapper),
    ROW("DictVectorizer", 1, 0, dict_attrs, TN_ONNX_UNRANKED, dict_vectorizer),
    ROW("LabelEncoder", 1, 1, label_1_attrs, 0, label_encoder_1),
    ROW("LabelEncoder", 2, 0, label_attrs, 0, label_encoder),
    ROW("OneHotEncoder", 1, 0, one_hot_attrs, 0, one_hot_encoder),
    ROW("ZipMap", 1, 0, zip_attrs, 0, zip_map),
};

const tn_onnx_family tn_onnx_family_ml_label = {rows, sizeof rows / sizeof *rows};
