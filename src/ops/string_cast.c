/* to_string, from_string: numbers as text and back, as ONNX Cast does. Texts are the shortest that read as the same number; infinities
   and NaN are "INF", "-INF", "NaN", bools "1" and "0". Read are decimal and hexadecimal numbers, INF, INFINITY and NAN in any case, with
   white space around them; integers wrap, fractions are cut off. What is no number is refused. */
#include <math.h>

#include "base/number.h"
#include "ops/elementwise.h"
#include "ops/ops.h"

static bool is_number(tn_dtype dtype) {
    return dtype != TN_STRING && !tn_dtype_is_complex(dtype) && tn_scalar_class(dtype) != 0;
}

static tn_status infer_to_string(tn_infer *c) {
    tn_operand_type x;
    TN_TRY(tn_infer_operand(c, 0, &x));
    if (!is_number(x.dtype))
        return tn_infer_unsupported(c, "to_string of %s", tn_dtype_name(x.dtype));
    return tn_infer_tensor(c, 0, TN_STRING, x.rank, x.dims);
}

static size_t special(double value, char text[TN_NUMBER_TEXT]) {
    const char *name = isnan(value) ? "NaN" : value > 0 ? "INF" : "-INF";
    memcpy(text, name, strlen(name) + 1);
    return strlen(name);
}

static size_t format(const tn_tensor *x, int64_t i, char text[TN_NUMBER_TEXT]) {
    tn_dtype dtype = (tn_dtype)x->dtype;
    if (dtype == TN_U64)
        return tn_format_u64((uint64_t)tn_tensor_get_i64(x, i), text);
    if (dtype == TN_BOOL || tn_dtype_is_int(dtype))
        return tn_format_i64(tn_tensor_get_i64(x, i), text);
    double value = tn_tensor_get_f64(x, i);
    if (!isfinite(value))
        return special(value, text);
    return dtype == TN_F64 ? tn_format_f64(value, text) : tn_format_f32((float)value, text);
}

static tn_status eval_to_string(tn_eval *e) {
    const tn_tensor *x = tn_eval_in(e, 0);
    tn_tensor *out = tn_eval_result(e, 0, TN_STRING, x->rank, x->dims);
    if (out == NULL)
        return tn_error_status();
    for (int64_t i = 0; i < x->count; i++) {
        char text[TN_NUMBER_TEXT];
        size_t length = format(x, i, text);
        TN_TRY(tn_tensor_set_string(out, i, text, length));
    }
    return TN_OK;
}

static tn_status infer_from_string(tn_infer *c) {
    tn_operand_type x;
    tn_dtype to = (tn_dtype)tn_attr_int(c->graph, c->node, "to");
    TN_TRY(tn_infer_operand(c, 0, &x));
    if (x.dtype != TN_STRING)
        return tn_infer_fail(c, "the input is %s, it must be string", tn_dtype_name(x.dtype));
    if (!is_number(to) && to != TN_STRING)
        return tn_infer_unsupported(c, "from_string to %s", tn_dtype_name(to));
    return tn_infer_tensor(c, 0, to, x.rank, x.dims);
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static tn_string trimmed(tn_string text) {
    while (text.length > 0 && is_space(text.data[0])) {
        text.data++;
        text.length--;
    }
    while (text.length > 0 && is_space(text.data[text.length - 1]))
        text.length--;
    return text;
}

/* Whole numbers of up to 64 bits keep all their bits. */
static bool parse_whole(tn_string text, int64_t *value) {
    size_t used;
    uint64_t large;
    if (tn_parse_i64(text.data, text.length, value, &used) && used == text.length)
        return true;
    if (!tn_parse_u64(text.data, text.length, &large, &used) || used != text.length)
        return false;
    *value = (int64_t)large;
    return true;
}

static bool parse_float(tn_string text, tn_dtype to, double *value) {
    size_t used;
    float narrow;
    if (to != TN_F32)
        return tn_parse_f64(text.data, text.length, value, &used) && used == text.length;
    bool good = tn_parse_f32(text.data, text.length, &narrow, &used) && used == text.length;
    *value = good ? (double)narrow : 0;
    return good;
}

static tn_status eval_from_string(tn_eval *e) {
    const tn_tensor *x = tn_eval_in(e, 0);
    tn_dtype to = (tn_dtype)tn_attr_int(e->graph, e->node, "to");
    bool whole = to == TN_BOOL || tn_dtype_is_int(to);
    tn_tensor *out = tn_eval_result(e, 0, to, x->rank, x->dims);
    if (out == NULL)
        return tn_error_status();
    if (to == TN_STRING)
        return tn_tensor_assign(out, x);
    if (out->count > 0)
        memset(out->data, 0, tn_tensor_bytes(out)); /* the last byte of packed elements may have bits of none */
    for (int64_t i = 0; i < x->count; i++) {
        tn_string text;
        int64_t bits;
        double value = 0;
        TN_TRY(tn_tensor_get_string(x, i, &text));
        text = trimmed(text);
        if (whole && parse_whole(text, &bits)) {
            tn_store_i64(to, out->data, i, to == TN_BOOL ? bits != 0 : bits);
            continue;
        }
        if (text.length == 0 || !parse_float(text, to, &value))
            return tn_eval_fail(e, TN_ERR_INPUT, "'%.*s' is no number", (int)(text.length < 40 ? text.length : 40),
                                text.data != NULL ? text.data : "");
        if (whole)
            tn_run_store(to, TN_DOMAIN_F64, &value, 1, out->data, i, 1);
        else
            tn_store_f64(to, out->data, i, value);
    }
    return TN_OK;
}

static const tn_attr_spec from_attrs[] = {{.name = "to", .kind = TN_ATTR_DTYPE, .required = true}, {.name = NULL}};

static const tn_op rows[] = {
    {.name = "to_string",
     .dialect = TN_DIALECT_PRIMITIVE,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_ELEMENTWISE | TN_EXACT | TN_HOST,
     .inputs = "x",
     .doc = "the shortest decimal text that reads as the same number",
     .infer = infer_to_string,
     .eval = eval_to_string,
     .no_gradient = "strings are no numbers"},
    {.name = "from_string",
     .dialect = TN_DIALECT_PRIMITIVE,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 1,
     .traits = TN_ELEMENTWISE | TN_EXACT | TN_HOST,
     .attrs = from_attrs,
     .inputs = "x",
     .doc = "the number that a text spells; to string: the text itself",
     .infer = infer_from_string,
     .eval = eval_from_string,
     .no_gradient = "strings are no numbers"},
};

const tn_op_family tn_family_string_cast = {rows, sizeof rows / sizeof *rows};
