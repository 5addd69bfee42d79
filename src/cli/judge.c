/* Whether a result is what was expected. */
#include "cli/judge.h"

#include <inttypes.h>
#include <math.h>

#include "base/number.h"
#include "cli/print.h"

static const char *const kind_names[] = {"a tensor", "a sequence", "an optional", "a map"};

static bool near(const tn_judge *rule, double want, double got) {
    return want == got || (isnan(want) && isnan(got)) || fabs(got - want) <= rule->atol + rule->rtol * fabs(want);
}

/* One element of two contiguous tensors of one dtype; *error: how far apart, for floats. */
static bool same_element(const tn_judge *rule, const tn_tensor *want, const tn_tensor *got, int64_t i, double *error) {
    tn_dtype d = (tn_dtype)want->dtype;
    *error = NAN;
    if (d == TN_STRING) {
        tn_string a, b;
        if (tn_tensor_get_string(want, i, &a) != TN_OK || tn_tensor_get_string(got, i, &b) != TN_OK)
            return false;
        return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
    }
    if (tn_dtype_is_complex(d)) {
        tn_dtype part = d == TN_C64 ? TN_F32 : TN_F64;
        bool same = true;
        for (int64_t k = 2 * i; k < 2 * i + 2; k++) {
            double a = tn_load_f64(part, want->data, k), b = tn_load_f64(part, got->data, k);
            if (same && !near(rule, a, b)) {
                same = false;
                *error = fabs(b - a);
            }
        }
        return same;
    }
    if (!tn_dtype_is_float(d))
        return tn_load_i64(d, want->data, i) == tn_load_i64(d, got->data, i);
    double a = tn_load_f64(d, want->data, i), b = tn_load_f64(d, got->data, i);
    *error = fabs(b - a);
    return near(rule, a, b);
}

static void put_index(tn_text *out, const tn_tensor *t, int64_t index) {
    int64_t at[TN_MAX_RANK];
    for (int k = t->rank - 1; k >= 0; k--) {
        at[k] = index % t->dims[k];
        index /= t->dims[k];
    }
    tn_cli_print_dims(out, t->rank, at);
}

static bool judge_contiguous(const tn_judge *rule, const tn_tensor *want, const tn_tensor *got, tn_text *why) {
    int64_t first = -1, differ = 0;
    double error, first_error = NAN;
    for (int64_t i = 0; i < want->count; i++)
        if (!same_element(rule, want, got, i, &error)) {
            if (!differ++) {
                first = i;
                first_error = error;
            }
        }
    if (!differ)
        return true;
    tn_text_add(why, "at ");
    put_index(why, want, first);
    tn_text_add(why, ": got ");
    tn_cli_print_element(why, got, first);
    tn_text_add(why, ", wanted ");
    tn_cli_print_element(why, want, first);
    if (!isnan(first_error)) {
        char number[TN_NUMBER_TEXT];
        tn_format_f64_digits(first_error, 3, number);
        tn_text_printf(why, ", error %s", number);
    }
    tn_text_printf(why, "; %" PRId64 " of %" PRId64 " elements differ", differ, want->count);
    return false;
}

static bool judge_tensors(const tn_judge *rule, tn_tensor *want, tn_tensor *got, tn_text *why) {
    bool same = want->dtype == got->dtype && want->rank == got->rank;
    for (int k = 0; same && k < want->rank; k++)
        same = want->dims[k] == got->dims[k];
    if (!same) {
        char a[200], b[200];
        tn_text_printf(why, "got %s, wanted %s", tn_tensor_describe(got, a, sizeof a),
                       tn_tensor_describe(want, b, sizeof b));
        return false;
    }
    if (rule->shape_only)
        return true;
    tn_tensor *w = tn_tensor_contiguous(NULL, want), *g = tn_tensor_contiguous(NULL, got);
    if (!w || !g)
        tn_text_add(why, "out of memory");
    same = w && g && judge_contiguous(rule, w, g, why);
    tn_tensor_destroy(w);
    tn_tensor_destroy(g);
    return same;
}

/* The value of one key: a row of a tensor, or an item of a sequence. A new reference. */
static tn_object *map_value(const tn_object *map, int64_t index) {
    tn_object *values = tn_map_values(map);
    if (tn_object_kind(values) == TN_KIND_SEQUENCE)
        return tn_object_retain(tn_sequence_at(values, (size_t)index));
    tn_tensor *t = tn_object_tensor(values);
    tn_tensor *row = t && t->rank > 0 ? tn_tensor_view(NULL, t, (tn_dtype)t->dtype, t->rank - 1, t->dims + 1,
                                                       t->strides + 1, index * t->strides[0])
                                      : NULL;
    return row ? tn_tensor_object(row) : NULL;
}

/* Where key `index` of `want` stands in `got`, or -1. Mostly at the same place. */
static int64_t find_key(const tn_tensor *want, const tn_tensor *got, int64_t index) {
    const tn_judge exact = {0};
    for (int64_t i = 0; i < got->count; i++) {
        int64_t at = (index + i) % got->count;
        tn_tensor *a = tn_tensor_view(NULL, want, (tn_dtype)want->dtype, 0, NULL, NULL, index * want->strides[0]);
        tn_tensor *b = tn_tensor_view(NULL, got, (tn_dtype)got->dtype, 0, NULL, NULL, at * got->strides[0]);
        double error;
        bool same = a && b && same_element(&exact, a, b, 0, &error);
        tn_tensor_destroy(a);
        tn_tensor_destroy(b);
        if (same)
            return at;
    }
    return -1;
}

/* The order of keys means nothing. */
static bool judge_maps(const tn_judge *rule, const tn_object *want, const tn_object *got, tn_text *why) {
    tn_tensor *keys = tn_map_keys(want), *others = tn_map_keys(got);
    if (keys->dtype != others->dtype || keys->count != others->count) {
        char a[200], b[200];
        tn_text_printf(why, "got keys %s, wanted %s", tn_tensor_describe(others, a, sizeof a),
                       tn_tensor_describe(keys, b, sizeof b));
        return false;
    }
    bool same = true;
    for (int64_t i = 0; same && i < keys->count; i++) {
        int64_t at = find_key(keys, others, i);
        if (at < 0) {
            tn_text_add(why, "there is no key ");
            tn_cli_print_element(why, keys, i);
            return false;
        }
        tn_object *a = map_value(want, i), *b = map_value(got, at);
        same = a && b && tn_judge_objects(rule, a, b, why);
        if (!same) {
            tn_text_add(why, " (value of key ");
            tn_cli_print_element(why, keys, i);
            tn_text_add(why, ")");
        }
        tn_object_destroy(a);
        tn_object_destroy(b);
    }
    return same;
}

bool tn_judge_objects(const tn_judge *rule, const tn_object *want, const tn_object *got, tn_text *why) {
    tn_kind kind = tn_object_kind(want);
    if (kind != tn_object_kind(got)) {
        tn_text_printf(why, "got %s, wanted %s", kind_names[tn_object_kind(got)], kind_names[kind]);
        return false;
    }
    switch (kind) {
    case TN_KIND_TENSOR:
        return judge_tensors(rule, tn_object_tensor((tn_object *)(uintptr_t)want),
                             tn_object_tensor((tn_object *)(uintptr_t)got), why);
    case TN_KIND_MAP: return judge_maps(rule, want, got, why);
    case TN_KIND_OPTIONAL: {
        const tn_object *a = tn_optional_get(want), *b = tn_optional_get(got);
        if (a && b)
            return tn_judge_objects(rule, a, b, why);
        if (a || b)
            tn_text_printf(why, "got %s optional, wanted %s", b ? "a filled" : "an empty",
                           a ? "a filled one" : "an empty one");
        return !a && !b;
    }
    case TN_KIND_SEQUENCE: break;
    }
    size_t n = tn_sequence_length(want);
    if (n != tn_sequence_length(got)) {
        tn_text_printf(why, "got a sequence of %zu, wanted %zu", tn_sequence_length(got), n);
        return false;
    }
    for (size_t i = 0; i < n; i++)
        if (!tn_judge_objects(rule, tn_sequence_at(want, i), tn_sequence_at(got, i), why)) {
            tn_text_printf(why, " (item %zu of the sequence)", i);
            return false;
        }
    return true;
}
