/* Values for people and for programs. */
#include "cli/print.h"

#include <inttypes.h>
#include <math.h>

#include "base/number.h"
#include "cli/cli.h"

#define FIRST_TEXT 8
#define FIRST_JSON 1024

void tn_cli_print_dims(tn_text *out, int rank, const int64_t *dims) {
    tn_text_add(out, "[");
    for (int i = 0; i < rank; i++)
        tn_text_printf(out, "%s%" PRId64, i ? "," : "", dims[i]);
    tn_text_add(out, "]");
}

static void put_i64(tn_text *out, const tn_tensor *t, int64_t index) {
    int64_t v = tn_tensor_get_i64(t, index);
    if (t->dtype == TN_U64)
        tn_text_printf(out, "%" PRIu64, (uint64_t)v);
    else
        tn_text_printf(out, "%" PRId64, v);
}

/* Real and imaginary part of a contiguous complex tensor. */
static void get_complex(const tn_tensor *t, int64_t index, double part[2]) {
    tn_dtype d = t->dtype == TN_C64 ? TN_F32 : TN_F64;
    part[0] = tn_load_f64(d, t->data, 2 * index);
    part[1] = tn_load_f64(d, t->data, 2 * index + 1);
}

static void put_float(tn_text *out, tn_dtype d, double value) {
    if (d == TN_F64 || d == TN_C128)
        tn_text_f64(out, value);
    else
        tn_text_f32(out, (float)value);
}

void tn_cli_print_element(tn_text *out, const tn_tensor *t, int64_t index) {
    tn_dtype d = (tn_dtype)t->dtype;
    if (d == TN_STRING) {
        tn_string s;
        if (tn_tensor_get_string(t, index, &s) == TN_OK)
            tn_text_quoted(out, s.data, s.length < 200 ? s.length : 200);
    } else if (d == TN_BOOL) {
        tn_text_add(out, tn_tensor_get_i64(t, index) ? "true" : "false");
    } else if (tn_dtype_is_int(d)) {
        put_i64(out, t, index);
    } else if (tn_dtype_is_complex(d)) {
        double part[2];
        get_complex(t, index, part);
        put_float(out, d, part[0]);
        tn_text_add(out, signbit(part[1]) ? "" : "+");
        put_float(out, d, part[1]);
        tn_text_add(out, "i");
    } else {
        put_float(out, d, tn_tensor_get_f64(t, index));
    }
}

typedef struct range {
    double min, max, mean; /* over what is not NaN */
    int64_t nan, known;
} range;

static range range_of(const tn_tensor *t) {
    range r = {.min = INFINITY, .max = -INFINITY};
    double sum = 0;
    for (int64_t i = 0; i < t->count; i++) {
        double v = t->dtype == TN_U64 ? (double)(uint64_t)tn_tensor_get_i64(t, i) : tn_tensor_get_f64(t, i);
        if (isnan(v)) {
            r.nan++;
            continue;
        }
        r.known++;
        sum += v;
        r.min = v < r.min ? v : r.min;
        r.max = v > r.max ? v : r.max;
    }
    r.mean = r.known ? sum / (double)r.known : NAN;
    return r;
}

static bool has_range(const tn_tensor *t) {
    return t->dtype != TN_STRING && !tn_dtype_is_complex((tn_dtype)t->dtype) && t->count > 0;
}

static void put_digits(tn_text *out, const char *label, double value) {
    char number[TN_NUMBER_TEXT];
    tn_format_f64_digits(value, 6, number);
    tn_text_printf(out, "  %s %s", label, number);
}

static void print_object(tn_text *out, const char *name, const tn_object *object, int depth);

static void print_tensor(tn_text *out, const char *name, const tn_tensor *t, int depth) {
    tn_text_printf(out, "%*s", 2 * depth, "");
    if (name) {
        tn_cli_name(out, name);
        tn_text_add(out, "  ");
    }
    tn_text_add(out, tn_dtype_name((tn_dtype)t->dtype));
    tn_cli_print_dims(out, t->rank, t->dims);
    if (has_range(t)) {
        range r = range_of(t);
        if (r.known) {
            put_digits(out, "min", r.min);
            put_digits(out, "max", r.max);
            put_digits(out, "mean", r.mean);
        }
        if (r.nan)
            tn_text_printf(out, "  NaN %" PRId64 " times", r.nan);
    }
    tn_text_printf(out, "\n%*s  ", 2 * depth, "");
    for (int64_t i = 0; i < t->count && i < FIRST_TEXT; i++) {
        tn_text_add(out, i ? ", " : "");
        tn_cli_print_element(out, t, i);
    }
    tn_text_add(out, t->count > FIRST_TEXT ? ", ...\n" : t->count ? "\n" : "(no elements)\n");
}

static void print_object(tn_text *out, const char *name, const tn_object *object, int depth) {
    tn_kind kind = tn_object_kind(object);
    if (kind == TN_KIND_TENSOR) {
        tn_tensor *whole = tn_tensor_contiguous(NULL, tn_object_tensor((tn_object *)(uintptr_t)object));
        if (whole)
            print_tensor(out, name, whole, depth);
        out->failed |= !whole;
        tn_tensor_destroy(whole);
        return;
    }
    tn_text_printf(out, "%*s", 2 * depth, "");
    if (name) {
        tn_cli_name(out, name);
        tn_text_add(out, "  ");
    }
    if (kind == TN_KIND_SEQUENCE) {
        size_t n = tn_sequence_length(object);
        tn_text_printf(out, "sequence of %zu\n", n);
        for (size_t i = 0; i < n && i < FIRST_TEXT; i++)
            print_object(out, NULL, tn_sequence_at(object, i), depth + 1);
        if (n > FIRST_TEXT)
            tn_text_printf(out, "%*s...\n", 2 * depth + 2, "");
    } else if (kind == TN_KIND_OPTIONAL) {
        const tn_object *inner = tn_optional_get(object);
        tn_text_add(out, inner ? "optional\n" : "optional, empty\n");
        if (inner)
            print_object(out, NULL, inner, depth + 1);
    } else {
        tn_text_add(out, "map\n");
        print_object(out, "keys", tn_tensor_object(tn_map_keys(object)), depth + 1);
        print_object(out, "values", tn_map_values(object), depth + 1);
    }
}

void tn_cli_print_object(tn_text *out, const char *name, const tn_object *object) {
    print_object(out, name, object, 0);
}

/* ---- JSON ---- */

void tn_cli_json_f64(tn_text *out, double value) {
    if (isfinite(value))
        tn_text_f64(out, value);
    else
        tn_text_add(out, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
}

static void json_float(tn_text *out, tn_dtype d, double value) {
    if (isfinite(value))
        put_float(out, d, value);
    else
        tn_cli_json_f64(out, value);
}

static void json_element(tn_text *out, const tn_tensor *t, int64_t index) {
    tn_dtype d = (tn_dtype)t->dtype;
    if (d == TN_STRING) {
        tn_string s;
        if (tn_tensor_get_string(t, index, &s) == TN_OK)
            tn_text_json(out, s.data, s.length);
    } else if (tn_dtype_is_complex(d)) {
        double part[2];
        get_complex(t, index, part);
        tn_text_add(out, "[");
        json_float(out, d, part[0]);
        tn_text_add(out, ", ");
        json_float(out, d, part[1]);
        tn_text_add(out, "]");
    } else if (tn_dtype_is_float(d)) {
        json_float(out, d, tn_tensor_get_f64(t, index));
    } else {
        tn_cli_print_element(out, t, index);
    }
}

static void json_tensor(tn_text *out, const tn_tensor *t) {
    tn_text_printf(out, "\"kind\": \"tensor\", \"dtype\": \"%s\", \"shape\": ", tn_dtype_name((tn_dtype)t->dtype));
    tn_cli_print_dims(out, t->rank, t->dims);
    if (has_range(t)) {
        range r = range_of(t);
        if (r.known) {
            const double values[] = {r.min, r.max, r.mean};
            static const char *const names[] = {"min", "max", "mean"};
            for (int i = 0; i < 3; i++) {
                tn_text_printf(out, ", \"%s\": ", names[i]);
                tn_cli_json_f64(out, values[i]);
            }
        }
        tn_text_printf(out, ", \"nan\": %" PRId64, r.nan);
    }
    tn_text_add(out, ", \"values\": [");
    for (int64_t i = 0; i < t->count && i < FIRST_JSON; i++) {
        tn_text_add(out, i ? ", " : "");
        json_element(out, t, i);
    }
    tn_text_printf(out, "], \"truncated\": %s", t->count > FIRST_JSON ? "true" : "false");
}

void tn_cli_print_json(tn_text *out, const char *name, const char *file, const tn_object *object) {
    tn_text_add(out, "{");
    if (name) {
        tn_text_add(out, "\"name\": ");
        tn_text_json(out, name, strlen(name));
        tn_text_add(out, ", ");
    }
    if (file) {
        tn_text_add(out, "\"file\": ");
        tn_text_json(out, file, strlen(file));
        tn_text_add(out, ", ");
    }
    switch (tn_object_kind(object)) {
    case TN_KIND_TENSOR: {
        tn_tensor *whole = tn_tensor_contiguous(NULL, tn_object_tensor((tn_object *)(uintptr_t)object));
        if (whole)
            json_tensor(out, whole);
        out->failed |= !whole;
        tn_tensor_destroy(whole);
        break;
    }
    case TN_KIND_SEQUENCE:
        tn_text_add(out, "\"kind\": \"sequence\", \"items\": [");
        for (size_t i = 0; i < tn_sequence_length(object); i++) {
            tn_text_add(out, i ? ", " : "");
            tn_cli_print_json(out, NULL, NULL, tn_sequence_at(object, i));
        }
        tn_text_add(out, "]");
        break;
    case TN_KIND_OPTIONAL:
        tn_text_add(out, "\"kind\": \"optional\", \"value\": ");
        if (tn_optional_get(object))
            tn_cli_print_json(out, NULL, NULL, tn_optional_get(object));
        else
            tn_text_add(out, "null");
        break;
    case TN_KIND_MAP:
        tn_text_add(out, "\"kind\": \"map\", \"keys\": ");
        tn_cli_print_json(out, NULL, NULL, tn_tensor_object(tn_map_keys(object)));
        tn_text_add(out, ", \"values\": ");
        tn_cli_print_json(out, NULL, NULL, tn_map_values(object));
        break;
    }
    tn_text_add(out, "}");
}
