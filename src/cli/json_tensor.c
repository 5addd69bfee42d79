/* Tensors from nested lists. */
#include <inttypes.h>
#include <math.h>

#include "base/number.h"
#include "cli/inputs.h"

/* The type of elements when the model doesn't say: strings, booleans, integers, else f32. */
static tn_dtype guess(const tn_json *json) {
    if (json->kind == TN_JSON_STRING)
        return TN_STRING;
    if (json->kind == TN_JSON_BOOL)
        return TN_BOOL;
    if (json->kind == TN_JSON_NUMBER) {
        int64_t value;
        size_t used;
        return tn_parse_i64(json->text, json->length, &value, &used) && used == json->length ? TN_I64 : TN_F32;
    }
    tn_dtype d = json->items ? guess(json->items) : TN_F32;
    for (const tn_json *item = json->items; item && d == TN_I64; item = item->next)
        d = guess(item);
    return d;
}

static tn_status misfit(const tn_json *json, tn_dtype d) {
    char text[80];
    size_t n = json->length < sizeof text - 1 ? json->length : sizeof text - 1;
    static const char *const names[] = {"null", "a boolean", "a number", "a string", "a list", "an object"};
    if (json->kind != TN_JSON_NUMBER)
        return tn_fail(TN_ERR_INPUT, "%s stands where %s is expected", names[json->kind], tn_dtype_name(d));
    memcpy(text, json->text, n);
    text[n] = '\0';
    tn_fail(TN_ERR_INPUT, "%s is no value of %s", text, tn_dtype_name(d));
    if (tn_dtype_is_float(d) || tn_dtype_is_complex(d))
        tn_fail_hint("it is out of range: %s has no finite number as large; infinity is written inf", tn_dtype_name(d));
    else if (d == TN_BOOL)
        tn_fail_hint("a bool is true, false, 0 or 1");
    else
        tn_fail_hint("%s holds the integers from %" PRId64 " to %" PRIu64, tn_dtype_name(d), tn_dtype_min_i64(d),
                     tn_dtype_max_u64(d));
    return TN_ERR_INPUT;
}

/* Whether a number stands there in digits, not as a word. */
static bool is_digits(const tn_json *json) {
    size_t sign = json->length && (*json->text == '-' || *json->text == '+');
    return json->length > sign && (json->text[sign] == '.' || (json->text[sign] >= '0' && json->text[sign] <= '9'));
}

/* The largest number of a format of at most 8 bits. */
static double largest(tn_dtype d) {
    double most = 0;
    for (int bits = 0; bits < 1 << tn_dtype_bits(d); bits++) {
        uint8_t byte = (uint8_t)bits;
        double value = tn_load_f64(d, &byte, 0);
        most = isfinite(value) && value > most ? value : most;
    }
    return most;
}

/* Numbers in digits are finite and stay so. Formats that saturate hold nothing above their largest number. */
static bool is_lost(const tn_tensor *t, int64_t i, const tn_json *json, double value) {
    tn_dtype d = (tn_dtype)t->dtype;
    if (!is_digits(json))
        return false;
    if (tn_dtype_is_complex(d))
        return d == TN_C64 ? isinf((float)value) : isinf(value);
    double kept = tn_tensor_get_f64(t, i);
    return !isfinite(kept) || (tn_dtype_bits(d) <= 8 && fabs(value) > fabs(kept) && fabs(value) > largest(d));
}

static tn_status set_number(tn_tensor *t, int64_t i, const tn_json *json) {
    tn_dtype d = (tn_dtype)t->dtype;
    size_t used;
    double value;
    if (json->kind == TN_JSON_BOOL && (d == TN_BOOL || tn_dtype_is_int(d))) {
        tn_store_i64(d, t->data, i, json->boolean);
        return TN_OK;
    }
    if (json->kind != TN_JSON_NUMBER)
        return misfit(json, d);
    if (d == TN_F32) {
        float narrow; /* rounded once */
        tn_parse_f32(json->text, json->length, &narrow, &used);
        memcpy((char *)t->data + 4 * i, &narrow, 4);
        return is_lost(t, i, json, (double)narrow) ? misfit(json, d) : TN_OK;
    }
    tn_parse_f64(json->text, json->length, &value, &used);
    if (tn_dtype_is_float(d) || tn_dtype_is_complex(d)) {
        tn_store_f64(d, t->data, i, value);
        return is_lost(t, i, json, value) ? misfit(json, d) : TN_OK;
    }
    int64_t low = d == TN_BOOL ? 0 : tn_dtype_min_i64(d), integer;
    uint64_t high = d == TN_BOOL ? 1 : tn_dtype_max_u64(d), natural;
    if (tn_parse_i64(json->text, json->length, &integer, &used) && used == json->length) {
        if (integer < low || (integer > 0 && (uint64_t)integer > high))
            return misfit(json, d);
    } else if (tn_parse_u64(json->text, json->length, &natural, &used) && used == json->length) {
        if (natural > high)
            return misfit(json, d);
        integer = (int64_t)natural;
    } else if (fabs(value) < 0x1p53 && trunc(value) == value && value >= (double)low && value <= (double)high) {
        integer = (int64_t)value; /* 1.0, 1e3 */
    } else {
        return misfit(json, d);
    }
    tn_store_i64(d, t->data, i, integer);
    return TN_OK;
}

static tn_status set_items(tn_tensor *t, int depth, int64_t *next, const tn_json *json) {
    if (depth == t->rank) {
        int64_t i = (*next)++;
        if (t->dtype != TN_STRING)
            return set_number(t, i, json);
        if (json->kind != TN_JSON_STRING)
            return misfit(json, TN_STRING);
        return tn_tensor_set_string(t, i, json->text, json->length);
    }
    if (json->kind != TN_JSON_ARRAY || (int64_t)json->count != t->dims[depth])
        return tn_fail(TN_ERR_INPUT, "the nested lists are ragged: not all of one length (%" PRId64 " at depth %d)",
                       t->dims[depth], depth);
    for (const tn_json *item = json->items; item; item = item->next)
        TN_TRY(set_items(t, depth + 1, next, item));
    return TN_OK;
}

static tn_object *read_tensor(const tn_graph *graph, tn_type type, const tn_json *json) {
    tn_dtype d = type.id ? tn_type_dtype(graph, type) : TN_DTYPE_NONE;
    int64_t dims[TN_MAX_RANK];
    int rank = 0;
    const tn_json *inner = json; /* of the first item of each list, to the end or an empty list */
    do {
        if (inner->kind != TN_JSON_ARRAY)
            break;
        if (rank == TN_MAX_RANK) {
            tn_fail(TN_ERR_LIMIT, "lists nested deeper than %d", TN_MAX_RANK);
            return NULL;
        }
        dims[rank++] = (int64_t)inner->count;
        inner = inner->items;
    } while (inner);
    tn_tensor *t = tn_tensor_create(d ? d : guess(json), rank, dims);
    int64_t next = 0;
    if (t && set_items(t, 0, &next, json) != TN_OK) {
        tn_tensor_destroy(t);
        return NULL;
    }
    return t ? tn_tensor_object(t) : NULL;
}

tn_object *tn_cli_json_object(const tn_graph *graph, tn_type type, const tn_json *json) {
    tn_kind kind = type.id ? tn_type_kind(graph, type) : TN_KIND_TENSOR;
    if (kind == TN_KIND_TENSOR)
        return read_tensor(graph, type, json);
    tn_type element = tn_type_element(graph, type);
    if (kind == TN_KIND_OPTIONAL) {
        tn_object *inner = json->kind == TN_JSON_NULL ? NULL : tn_cli_json_object(graph, element, json);
        tn_object *optional = inner || json->kind == TN_JSON_NULL ? tn_optional_create(NULL, inner) : NULL;
        tn_object_destroy(inner);
        return optional;
    }
    if (kind == TN_KIND_MAP || json->kind != TN_JSON_ARRAY) {
        if (kind == TN_KIND_MAP)
            tn_fail(TN_ERR_UNSUPPORTED, "not supported: maps as JSON");
        else
            tn_fail(TN_ERR_INPUT, "a sequence is written as a list");
        return NULL;
    }
    tn_object **items = tn_alloc_array(NULL, json->count + 1, sizeof *items), *sequence = NULL;
    size_t n = 0;
    bool good = items != NULL;
    for (const tn_json *j = json->items; good && j; j = j->next)
        good = (items[n] = tn_cli_json_object(graph, element, j)) != NULL && ++n;
    if (good)
        sequence = tn_sequence_create(NULL, n, items);
    for (size_t i = 0; i < n; i++)
        tn_object_destroy(items[i]);
    tn_free(NULL, items);
    return sequence;
}
