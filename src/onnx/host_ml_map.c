/* Maps and tensors: zip_map makes a map of each row; cast_map and vectorize_map make a row of a map. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "onnx/host_ml.h"
#include "ops/plain.h"

/* --- rows to maps ------------------------------------------------------------------------------------------------------------------ */

static tn_status infer_zip(tn_infer *c) {
    tn_operand_type in;
    tn_tensor *keys;
    tn_graph *g = c->graph;
    TN_TRY(tn_infer_operand(c, 0, &in));
    TN_TRY(tn_ml_infer_list(c, "keys", TN_DTYPE_NONE, &keys));
    if (keys->dtype != TN_I64 && keys->dtype != TN_STRING)
        return tn_infer_fail(c, "keys must be i64 or string, but are %s", tn_dtype_name((tn_dtype)keys->dtype));
    if (in.dtype != TN_F32 || in.rank < 1 || in.rank > 2)
        return tn_infer_fail(c, "the input must be f32 of rank 1 or 2, but is %s of rank %d", tn_dtype_name(in.dtype),
                             in.rank);
    if (tn_dim_never_equal(g, in.dims[in.rank - 1], tn_dim_const(g, keys->count)))
        return tn_infer_fail(c, "there are %" PRId64 " keys, but another number of columns", keys->count);
    tn_type map = tn_type_map(g, (tn_dtype)keys->dtype, tn_type_tensor(g, TN_F32, 0, NULL));
    return tn_infer_type(c, 0, tn_type_sequence(g, map));
}

static tn_status zip_rows(tn_eval *e, const tn_tensor *in, tn_tensor *keys, size_t rows, tn_object **maps) {
    const int64_t count = keys->count, dims[1] = {count}, strides[1] = {1};
    tn_status status = TN_OK;
    size_t made = 0;
    for (; made < rows && status == TN_OK; made += maps[made] != NULL) {
        tn_tensor *row = tn_tensor_view(e->heap, in, TN_F32, 1, dims, strides, (int64_t)made * count);
        maps[made] = row ? tn_map_create(e->heap, keys, tn_tensor_object(row)) : NULL;
        tn_tensor_destroy(row);
        status = maps[made] ? TN_OK : tn_error_status();
    }
    if (status == TN_OK)
        status = tn_eval_set(e, 0, tn_sequence_create(e->heap, rows, maps));
    for (size_t i = 0; i < made; i++)
        tn_object_destroy(maps[i]);
    return status;
}

static tn_status eval_zip(tn_eval *e) {
    const tn_tensor *in = tn_eval_in(e, 0), *list = tn_attr_tensor(e->graph, e->node, "keys");
    if (in->dims[in->rank - 1] != list->count)
        return tn_eval_fail(e, TN_ERR_INPUT, "there are %" PRId64 " keys for %" PRId64 " columns", list->count,
                            in->dims[in->rank - 1]);
    size_t rows = in->rank == 1 ? 1 : (size_t)in->dims[0];
    /* maps outlive the run: they share copies */
    tn_tensor *keys = tn_tensor_create_in(e->heap, (tn_dtype)list->dtype, 1, list->dims);
    tn_tensor *values = keys ? tn_tensor_new(e->heap, TN_F32, in->rank, in->dims) : NULL;
    tn_object **maps = values ? tn_alloc_array(e->heap, rows, sizeof *maps) : NULL;
    tn_status status = maps ? tn_tensor_assign(keys, list) : tn_error_status();
    if (status == TN_OK)
        status = tn_tensor_assign(values, in);
    if (status == TN_OK)
        status = zip_rows(e, values, keys, rows, maps);
    tn_free(e->heap, maps);
    tn_tensor_destroy(values);
    tn_tensor_destroy(keys);
    return status;
}

static const tn_attr_spec zip_attrs[] = {{.name = "keys", .kind = TN_ATTR_TENSOR, .required = true}, {0}};

const tn_op tn_host_zip_map = {.name = "zip_map",
                               .dialect = TN_DIALECT_PRIMITIVE,
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .min_outputs = 1,
                               .max_outputs = 1,
                               .traits = TN_HOST,
                               .attrs = zip_attrs,
                               .inputs = "x",
                               .doc = "A sequence of maps, one for each row: from the keys to the columns.",
                               .infer = infer_zip,
                               .eval = eval_zip,
                               .no_gradient = "a map has no gradient"};

/* --- reading a map -------------------------------------------------------------------------------------------------------------------- */

/* The key and value dtypes of input 0; NONE where not known. */
static tn_status map_types(tn_infer *c, tn_dtype *key, tn_dtype *value) {
    char text[200];
    tn_graph *g = c->graph;
    tn_value in = tn_node_input(g, c->node, 0);
    tn_type type = tn_value_type(g, in);
    *key = *value = TN_DTYPE_NONE;
    if (!type.id)
        return TN_OK;
    if (tn_type_kind(g, type) != TN_KIND_MAP)
        return tn_infer_fail(c, "the input is no map but %s", tn_type_describe(g, type, text, sizeof text));
    *key = tn_type_dtype(g, type);
    tn_type element = tn_type_element(g, type);
    if (element.id && tn_type_kind(g, element) != TN_KIND_TENSOR)
        return tn_infer_fail(c, "the values of the map are no tensors");
    *value = element.id ? tn_type_dtype(g, element) : TN_DTYPE_NONE;
    return TN_OK;
}

static tn_status infer_row(tn_infer *c, tn_dtype dtype, tn_dim columns) {
    const tn_dim dims[2] = {tn_dim_const(c->graph, 1), columns};
    return columns.id ? tn_infer_tensor(c, 0, dtype, 2, dims) : tn_error_status();
}

/* The one element of value i: a tensor and the index in it. */
typedef struct element {
    const tn_tensor *tensor;
    int64_t index;
} element;

static tn_status map_element(const tn_eval *e, const tn_object *map, int64_t i, element *out) {
    tn_object *values = tn_map_values(map);
    const tn_tensor *t = tn_object_tensor(values);
    *out = (element){t, i};
    if (!t) {
        *out = (element){tn_object_tensor(tn_sequence_at(values, (size_t)i)), 0};
        if (!out->tensor || out->tensor->count != 1)
            return tn_eval_fail(e, TN_ERR_INPUT, "value %" PRId64 " of the map is no single number or text", i);
    } else if (t->count != tn_map_keys(map)->count) {
        return tn_eval_fail(e, TN_ERR_INPUT, "the values of the map are no single numbers or texts");
    }
    return TN_OK;
}

static tn_status check_map(const tn_eval *e, tn_dtype key) {
    if (!e->in[0] || tn_object_kind(e->in[0]) != TN_KIND_MAP)
        return tn_eval_fail(e, TN_ERR_INPUT, "the input is no map");
    if (tn_map_keys(e->in[0])->dtype != key)
        return tn_eval_fail(e, TN_ERR_INPUT, "the keys of the map are %s, they must be %s",
                            tn_dtype_name((tn_dtype)tn_map_keys(e->in[0])->dtype), tn_dtype_name(key));
    return TN_OK;
}

/* --- cast_map -------------------------------------------------------------------------------------------------------------------------- */

static tn_status infer_cast_map(tn_infer *c) {
    tn_dtype key, value, to = (tn_dtype)tn_attr_int(c->graph, c->node, "to");
    int64_t columns = tn_attr_int(c->graph, c->node, "columns");
    TN_TRY(map_types(c, &key, &value));
    if (to != TN_F32 && to != TN_I64 && to != TN_STRING)
        return tn_infer_fail(c, "attribute 'to' must be f32, i64 or string");
    if (key && key != TN_I64)
        return tn_infer_fail(c, "the keys of the map are %s, they must be i64", tn_dtype_name(key));
    if (value && value != TN_F32 && value != TN_STRING)
        return tn_infer_fail(c, "the values of the map are %s, they must be f32 or string", tn_dtype_name(value));
    if (columns < -1)
        return tn_infer_fail(c, "attribute 'columns' is %" PRId64, columns);
    return infer_row(c, to, columns < 0 ? tn_infer_fresh(c, 0, 1, 0, INT64_MAX) : tn_dim_const(c->graph, columns));
}

typedef struct entry {
    int64_t key, index;
} entry;

static int by_key(const void *a, const void *b) {
    const entry *p = a, *q = b;
    return p->key < q->key ? -1 : p->key > q->key ? 1 : p->index < q->index ? -1 : p->index > q->index;
}

/* The whole text as a number. */
static bool number_of(tn_string s, double *value) {
    size_t used;
    return tn_parse_f64(s.data ? s.data : "", s.length, value, &used) && used == s.length && used;
}

static tn_status put_cast(tn_eval *e, tn_tensor *out, int64_t at, element from) {
    tn_string s = {0};
    double value = 0;
    char text[TN_NUMBER_TEXT];
    bool is_text = from.tensor->dtype == TN_STRING;
    if (is_text)
        TN_TRY(tn_tensor_get_string(from.tensor, from.index, &s));
    else
        value = tn_tensor_get_f64(from.tensor, from.index);
    if (out->dtype == TN_STRING) {
        if (!is_text)
            s = (tn_string){text, tn_format_f32((float)value, text)};
        return tn_tensor_set_string(out, at, s.data, s.length);
    }
    if (is_text && !number_of(s, &value))
        return tn_eval_fail(e, TN_ERR_INPUT, "\"%.*s\" is no number", (int)(s.length < 60 ? s.length : 60),
                            s.data ? s.data : "");
    tn_store_f64((tn_dtype)out->dtype, out->data, at, value);
    return TN_OK;
}

static tn_status fill_cast(tn_eval *e, tn_tensor *out, int64_t n, const entry *entries, bool dense) {
    for (int64_t i = 0; !dense && out->dtype == TN_STRING && i < out->count; i++)
        TN_TRY(tn_tensor_set_string(out, i, "0", 1));
    if (!dense && out->dtype != TN_STRING && out->count)
        memset(out->data, 0, tn_tensor_bytes(out));
    for (int64_t i = 0; i < n; i++) {
        element from;
        if (!dense && (entries[i].key < 0 || entries[i].key >= out->count))
            return tn_eval_fail(e, TN_ERR_INPUT, "key %" PRId64 " of the map is not in [0, %" PRId64 ")",
                                entries[i].key, out->count);
        TN_TRY(map_element(e, e->in[0], entries[i].index, &from));
        TN_TRY(put_cast(e, out, dense ? i : entries[i].key, from));
    }
    return TN_OK;
}

static tn_status eval_cast_map(tn_eval *e) {
    int64_t columns = tn_attr_int(e->graph, e->node, "columns");
    TN_TRY(check_map(e, TN_I64));
    const tn_tensor *keys = tn_map_keys(e->in[0]);
    const int64_t n = keys->count, dims[2] = {1, columns < 0 ? n : columns};
    tn_tensor *out = tn_eval_result(e, 0, (tn_dtype)tn_attr_int(e->graph, e->node, "to"), 2, dims);
    entry *entries = out ? tn_alloc_array(e->heap, (size_t)n, sizeof *entries) : NULL;
    if (!entries)
        return tn_error_status();
    for (int64_t i = 0; i < n; i++)
        entries[i] = (entry){tn_tensor_get_i64(keys, i), i};
    qsort(entries, (size_t)n, sizeof *entries, by_key);
    tn_status status = fill_cast(e, out, n, entries, columns < 0);
    tn_free(e->heap, entries);
    return status;
}

static const tn_attr_spec cast_attrs[] = {
    {.name = "columns", .kind = TN_ATTR_INT, .i = -1}, {.name = "to", .kind = TN_ATTR_DTYPE, .required = true}, {0}};

const tn_op tn_host_cast_map = {
    .name = "cast_map",
    .dialect = TN_DIALECT_PRIMITIVE,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .traits = TN_HOST,
    .attrs = cast_attrs,
    .inputs = "map",
    .doc = "The values of a map with integer keys, in the keys' order; with `columns`, each at the "
           "place its key says: [1, n].",
    .infer = infer_cast_map,
    .eval = eval_cast_map,
    .no_gradient = "a map has no gradient"};

/* --- vectorize_map --------------------------------------------------------------------------------------------------------------------- */

static tn_status infer_vectorize(tn_infer *c) {
    tn_dtype key, value;
    tn_tensor *keys, *columns;
    int64_t count = tn_attr_int(c->graph, c->node, "count");
    TN_TRY(map_types(c, &key, &value));
    TN_TRY(tn_ml_infer_keys(c, "keys", &keys));
    TN_TRY(tn_ml_infer_list(c, "columns", TN_I64, &columns));
    if (columns->count != keys->count || count < 0)
        return tn_infer_fail(c, "there are %" PRId64 " keys and %" PRId64 " columns", keys->count, columns->count);
    for (int64_t i = 0; i < columns->count; i++)
        if (tn_load_i64(TN_I64, columns->data, i) < 0 || tn_load_i64(TN_I64, columns->data, i) >= count)
            return tn_infer_fail(c, "column %" PRId64 " is out of range", tn_load_i64(TN_I64, columns->data, i));
    if (key && key != keys->dtype)
        return tn_infer_fail(c, "the keys of the map are %s, those of the vocabulary %s", tn_dtype_name(key),
                             tn_dtype_name((tn_dtype)keys->dtype));
    if (value && value != TN_I64 && value != TN_F32 && value != TN_F64 && value != TN_STRING)
        return tn_infer_fail(c, "the values of the map are %s", tn_dtype_name(value));
    return value ? infer_row(c, value, tn_dim_const(c->graph, count)) : tn_infer_type(c, 0, (tn_type){0});
}

static tn_status put_element(tn_eval *e, tn_tensor *out, int64_t at, element from) {
    if (from.tensor->dtype != out->dtype)
        return tn_eval_fail(e, TN_ERR_INPUT, "the values of the map are of several element types");
    if (out->dtype == TN_STRING) {
        tn_string s;
        TN_TRY(tn_tensor_get_string(from.tensor, from.index, &s));
        return tn_tensor_set_string(out, at, s.data, s.length);
    }
    if (out->dtype == TN_I64)
        tn_store_i64(TN_I64, out->data, at, tn_tensor_get_i64(from.tensor, from.index));
    else
        tn_store_f64((tn_dtype)out->dtype, out->data, at, tn_tensor_get_f64(from.tensor, from.index));
    return TN_OK;
}

static tn_status fill_vector(tn_eval *e, tn_tensor *out, const tn_tensor *have) {
    const tn_tensor *keys = tn_attr_tensor(e->graph, e->node, "keys"),
                    *columns = tn_attr_tensor(e->graph, e->node, "columns");
    tn_ml_finder finder;
    TN_TRY(tn_ml_finder_init(&finder, e->heap, keys, have->count));
    tn_status status = TN_OK;
    for (int64_t i = 0; i < have->count && status == TN_OK; i++) {
        element from;
        int64_t at = tn_ml_find(&finder, have->data, i);
        if (at < 0)
            continue; /* a key that the vocabulary lacks has no column */
        status = map_element(e, e->in[0], i, &from);
        if (status == TN_OK)
            status = put_element(e, out, tn_load_i64(TN_I64, columns->data, at), from);
    }
    tn_ml_finder_free(&finder, e->heap);
    return status;
}

static tn_status eval_vectorize(tn_eval *e) {
    const tn_tensor *keys = tn_attr_tensor(e->graph, e->node, "keys");
    TN_TRY(check_map(e, (tn_dtype)keys->dtype));
    const int64_t dims[2] = {1, tn_attr_int(e->graph, e->node, "count")};
    tn_dtype dtype = tn_value_dtype(e->graph, tn_node_output(e->graph, e->node, 0));
    element first = {0};
    if (!dtype && tn_map_keys(e->in[0])->count)
        TN_TRY(map_element(e, e->in[0], 0, &first));
    if (!dtype)
        dtype = first.tensor ? (tn_dtype)first.tensor->dtype : TN_F32;
    tn_tensor *have = tn_tensor_contiguous(e->heap, tn_map_keys(e->in[0]));
    tn_tensor *out = have ? tn_tensor_create_in(e->heap, dtype, 2, dims) : NULL;
    tn_status status = out ? fill_vector(e, out, have) : tn_error_status();
    tn_tensor_destroy(have);
    if (status == TN_OK)
        return tn_eval_set(e, 0, tn_tensor_object(out));
    tn_tensor_destroy(out);
    return status;
}

static const tn_attr_spec vectorize_attrs[] = {{.name = "columns", .kind = TN_ATTR_TENSOR, .required = true},
                                               {.name = "count", .kind = TN_ATTR_INT, .required = true},
                                               {.name = "keys", .kind = TN_ATTR_TENSOR, .required = true},
                                               {0}};

const tn_op tn_host_vectorize_map = {
    .name = "vectorize_map",
    .dialect = TN_DIALECT_PRIMITIVE,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .traits = TN_HOST,
    .attrs = vectorize_attrs,
    .inputs = "map",
    .doc = "The values of a map, each in the column of its key, 0 or \"\" elsewhere: [1, count].",
    .infer = infer_vectorize,
    .eval = eval_vectorize,
    .no_gradient = "a map has no gradient"};
