/* Reading the text form: dimensions, types, tensors, attribute values. */
#include <stdio.h>

#include "base/number.h"
#include "ir/parse.h"

bool tn_parse_dim(tn_parser *p, tn_dim *out) {
    tn_parse_skip(p);
    size_t used = 0;
    uint32_t symbols = p->g->dims.symbol.len;
    *out = tn_dim_parse(p->g, p->text + p->at, p->length - p->at, &used);
    if (!out->id)
        return tn_parse_failed_at(p, p->at);
    if (p->g->dims.symbol.len != symbols)
        return tn_parse_fail(p, p->at, "symbol '%s' is not declared (symbol NAME [low, high] at the start of the text)",
                             tn_dim_symbol_name(&p->g->dims, symbols));
    p->at += used;
    return true;
}

bool tn_parse_dims(tn_parser *p, tn_parse_list *dims) {
    if (!tn_parse_expect(p, '['))
        return false;
    if (tn_parse_accept(p, ']'))
        return true;
    do {
        tn_dim dim;
        if (!tn_parse_dim(p, &dim) || !tn_parse_push(p, dims, &dim, sizeof dim))
            return false;
    } while (tn_parse_accept(p, ','));
    return tn_parse_accept(p, ']') || tn_parse_expected(p, "',' or ']'");
}

/* The dtype named by an identifier; false without an error when it is none. */
static bool dtype_named(tn_string word, tn_dtype *out) {
    char name[32];
    if (word.length >= sizeof name)
        return false;
    memcpy(name, word.data, word.length);
    name[word.length] = '\0';
    *out = tn_dtype_from_name(name);
    return *out != TN_DTYPE_NONE || strcmp(name, tn_dtype_name(TN_DTYPE_NONE)) == 0;
}

bool tn_parse_dtype(tn_parser *p, tn_dtype *out) {
    tn_string word;
    tn_parse_skip(p);
    size_t start = p->at;
    if (!tn_parse_word(p, "an element type", &word))
        return false;
    if (dtype_named(word, out))
        return true;
    p->at = start;
    return tn_parse_expected(p, "an element type (f32, i64, ...)");
}

static bool parse_type(tn_parser *p, tn_type *out, int depth) {
    tn_parse_skip(p);
    size_t start = p->at;
    if (tn_parse_accept(p, '?')) {
        *out = (tn_type){0};
        return true;
    }
    if (depth > TN_MAX_NESTING) {
        tn_fail(TN_ERR_LIMIT, "types are nested deeper than %d", TN_MAX_NESTING);
        return tn_parse_failed_at(p, start);
    }
    bool sequence = tn_parse_accept_word(p, "seq"), optional = !sequence && tn_parse_accept_word(p, "optional");
    bool map = !sequence && !optional && tn_parse_accept_word(p, "map");
    tn_dtype dtype;
    if (sequence || optional || map) {
        tn_type element;
        if (!tn_parse_expect(p, '(') || (map && (!tn_parse_dtype(p, &dtype) || !tn_parse_expect(p, ','))) ||
            !parse_type(p, &element, depth + 1) || !tn_parse_expect(p, ')'))
            return false;
        *out = sequence   ? tn_type_sequence(p->g, element)
               : optional ? tn_type_optional(p->g, element)
                          : tn_type_map(p->g, dtype, element);
        return out->id != 0 || tn_parse_failed_at(p, start);
    }
    if (!tn_parse_dtype(p, &dtype) || !tn_parse_expect(p, '['))
        return false;
    size_t bracket = p->at - 1;
    if (tn_parse_accept(p, '*')) {
        if (!tn_parse_expect(p, ']'))
            return false;
        *out = tn_type_tensor(p->g, dtype, -1, NULL);
        return out->id != 0 || dtype == TN_DTYPE_NONE || tn_parse_failed_at(p, start);
    }
    p->at = bracket;
    tn_parse_list dims = {0};
    if (!tn_parse_dims(p, &dims))
        return false;
    if (dims.len > TN_MAX_RANK) {
        tn_fail(TN_ERR_LIMIT, "a tensor of rank %u: at most %d is supported", dims.len, TN_MAX_RANK);
        return tn_parse_failed_at(p, start);
    }
    *out = tn_type_tensor(p->g, dtype, (int)dims.len, dims.data);
    return out->id != 0 || tn_parse_failed_at(p, start);
}

bool tn_parse_type(tn_parser *p, tn_type *out) {
    return parse_type(p, out, 0);
}

/* --- tensors -------------------------------------------------------------------------------------------------------------------- */

static int base64_value(char c) {
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

/* Decodes all of `text` into `bytes` bytes; false when it is no base64 of that many. */
static bool decode_base64(tn_string text, uint8_t *to, size_t bytes) {
    if (text.length % 4 || text.length / 4 != (bytes + 2) / 3)
        return false;
    for (size_t i = 0; i < text.length; i += 4) {
        size_t at = i / 4 * 3, n = bytes - at < 3 ? bytes - at : 3;
        uint32_t word = 0;
        for (size_t k = 0; k < 4; k++) {
            int digit = k <= n ? base64_value(text.data[i + k]) : text.data[i + k] == '=' ? 0 : -1;
            if (digit < 0)
                return false;
            word = word << 6 | (uint32_t)digit;
        }
        for (size_t k = 0; k < 3; k++) {
            uint8_t byte = (uint8_t)(word >> (16 - 8 * k));
            if (k < n)
                to[at + k] = byte;
            else if (byte)
                return false;
        }
    }
    return true;
}

/* A tensor of the parser's, uninitialised. */
static tn_tensor *make_tensor(tn_parser *p, size_t start, tn_dtype dtype, uint32_t rank, const int64_t *dims) {
    if (!tn_vec_reserve(p->g->heap, &p->tensors, 1))
        return NULL;
    tn_tensor *tensor = tn_tensor_new(p->g->heap, dtype, (int)rank, dims);
    if (!tensor)
        tn_parse_failed_at(p, start);
    else
        p->tensors.data[p->tensors.len++] = tensor;
    return tensor;
}

/* The elements between brackets: numbers into packed bytes of the scratch, strings into a list. */
static bool parse_elements(tn_parser *p, tn_dtype dtype, tn_parse_list *strings, uint8_t **data, int64_t *count) {
    size_t capacity = 0;
    bool complex = tn_dtype_is_complex(dtype);
    tn_dtype part = !complex ? dtype : dtype == TN_C64 ? TN_F32 : TN_F64;
    *data = NULL;
    *count = 0;
    if (tn_parse_accept(p, ']'))
        return true;
    do {
        if (dtype == TN_STRING) {
            tn_string s;
            if (!tn_parse_string(p, "a string", &s) || !tn_parse_push(p, strings, &s, sizeof s))
                return false;
            ++*count;
            continue;
        }
        if ((size_t)(*count + 1) * 16 > capacity) { /* 16: the widest element */
            size_t larger = capacity ? capacity * 2 : 1024;
            uint8_t *grown = tn_arena_alloc(&p->scratch, larger);
            if (!grown)
                return false;
            if (capacity)
                memcpy(grown, *data, capacity);
            *data = grown;
            capacity = larger;
        }
        if (complex && !tn_parse_expect(p, '('))
            return false;
        for (int i = 0; i <= complex; i++) {
            if (i && !tn_parse_expect(p, ','))
                return false;
            tn_string token = tn_parse_number_token(p);
            if (!tn_element_parse(part, token.data, token.length, *data, complex ? 2 * *count + i : *count)) {
                char what[64];
                snprintf(what, sizeof what, "an element of type %s", tn_dtype_name(part));
                return tn_parse_expected(p, what);
            }
            p->at += token.length;
        }
        if (complex && !tn_parse_expect(p, ')'))
            return false;
        ++*count;
    } while (tn_parse_accept(p, ','));
    return tn_parse_accept(p, ']') || tn_parse_expected(p, "',' or ']'");
}

/* What follows the dtype: "[2, 3] [1, 2, ...]" or "[2, 3] base64 "..."". */
static bool parse_tensor_rest(tn_parser *p, size_t start, tn_dtype dtype, tn_tensor **out) {
    int64_t dims[TN_MAX_RANK + 1], count;
    uint32_t rank = 0;
    size_t bytes;
    if (!tn_parse_expect(p, '['))
        return false;
    if (!tn_parse_accept(p, ']')) {
        do {
            if (rank == TN_MAX_RANK) {
                tn_fail(TN_ERR_LIMIT, "a tensor of a rank above %d", TN_MAX_RANK);
                return tn_parse_failed_at(p, start);
            }
            if (!tn_parse_i64_text(p, "a size", &dims[rank]))
                return false;
            if (dims[rank++] < 0)
                return tn_parse_fail(p, start, "a tensor of a negative size");
        } while (tn_parse_accept(p, ','));
        if (!tn_parse_expect(p, ']'))
            return false;
    }
    if (dtype == TN_DTYPE_NONE)
        return tn_parse_fail(p, start, "a tensor needs an element type");
    if (tn_dims_count((int)rank, dims, &count) != TN_OK || tn_dtype_bytes(dtype, count, &bytes) != TN_OK)
        return tn_parse_failed_at(p, start);
    if (tn_parse_accept_word(p, "base64")) {
        if (!tn_parse_peek_string(p))
            return tn_parse_expected(p, "a quoted string of base64");
        const char *begin = p->text + p->at + 1, *end = memchr(begin, '"', p->length - p->at - 1);
        if (!end)
            return tn_parse_fail(p, p->at, "a string without an end");
        tn_string digits = {begin, (size_t)(end - begin)};
        /* the digits there are bound what is allocated */
        if (dtype == TN_STRING || digits.length % 4 || digits.length / 4 != (bytes + 2) / 3)
            return tn_parse_fail(p, p->at, "%zu base64 digits do not hold the %zu bytes of the tensor", digits.length,
                                 bytes);
        *out = make_tensor(p, start, dtype, rank, dims);
        if (!*out)
            return false;
        if (!decode_base64(digits, (*out)->data, bytes))
            return tn_parse_fail(p, p->at, "no base64 of %zu bytes", bytes);
        p->at += digits.length + 2;
        return true;
    }
    tn_parse_list strings = {0};
    uint8_t *data;
    int64_t given;
    if (!tn_parse_accept(p, '['))
        return tn_parse_expected(p, "'[' and elements, or base64");
    if (!parse_elements(p, dtype, &strings, &data, &given))
        return false;
    if (given != count)
        return tn_parse_fail(p, start, "a tensor of %lld elements with %lld given", (long long)count, (long long)given);
    *out = make_tensor(p, start, dtype, rank, dims);
    if (!*out)
        return false;
    for (uint32_t i = 0; i < strings.len; i++) {
        tn_string s = ((tn_string *)strings.data)[i];
        if (tn_tensor_set_string(*out, i, s.data, s.length) != TN_OK)
            return false;
    }
    if (dtype != TN_STRING && given)
        memcpy((*out)->data, data, bytes);
    return true;
}

bool tn_parse_tensor(tn_parser *p, tn_tensor **out) {
    tn_dtype dtype;
    tn_parse_skip(p);
    size_t start = p->at;
    return tn_parse_dtype(p, &dtype) && parse_tensor_rest(p, start, dtype, out);
}

/* --- attribute values ------------------------------------------------------------------------------------------------------------- */

/* "[" items "]" of one kind, into out->as and out->count. */
static bool parse_list(tn_parser *p, tn_attr *out, tn_attr_kind kind) {
    tn_parse_list list = {0};
    out->kind = (uint8_t)kind;
    if (kind == TN_ATTR_DIMS) {
        if (!tn_parse_dims(p, &list))
            return false;
    } else {
        if (!tn_parse_expect(p, '['))
            return false;
        if (!tn_parse_accept(p, ']')) {
            do {
                if (kind == TN_ATTR_STRINGS) {
                    tn_string s;
                    if (!tn_parse_string(p, "a string", &s) || !tn_parse_push(p, &list, &s, sizeof s))
                        return false;
                } else if (kind == TN_ATTR_INTS) {
                    int64_t i;
                    if (!tn_parse_i64_text(p, "an integer", &i) || !tn_parse_push(p, &list, &i, sizeof i))
                        return false;
                } else {
                    float f;
                    tn_string token = tn_parse_number_token(p);
                    if (!tn_element_parse(TN_F32, token.data, token.length, &f, 0))
                        return tn_parse_expected(p, "a number");
                    p->at += token.length;
                    if (!tn_parse_push(p, &list, &f, sizeof f))
                        return false;
                }
            } while (tn_parse_accept(p, ','));
            if (!tn_parse_accept(p, ']'))
                return tn_parse_expected(p, "',' or ']'");
        }
    }
    static const int64_t nothing;
    out->count = list.len;
    out->as.ints = list.data ? list.data : &nothing;
    return true;
}

/* An integer, or a float: "0.5", "1.0", "0.1f", "-inf", "nan", "bits(0x...)". */
static bool parse_number(tn_parser *p, tn_attr *out) {
    tn_string s = tn_parse_number_token(p);
    size_t used, digits = s.length && (s.data[0] == '-' || s.data[0] == '+');
    bool integer = digits < s.length;
    for (size_t i = digits; i < s.length; i++)
        integer = integer && s.data[i] >= '0' && s.data[i] <= '9';
    if (integer) {
        out->kind = TN_ATTR_INT;
        if (!tn_parse_i64(s.data, s.length, &out->as.i, &used) || used != s.length)
            return tn_parse_expected(p, "an integer of 64 bits");
        p->at += s.length;
        return true;
    }
    out->kind = TN_ATTR_FLOAT;
    float narrow;
    bool ok = tn_element_parse(TN_F64, s.data, s.length, &out->as.f, 0);
    if (!ok && s.length > 1 && s.data[s.length - 1] == 'f' &&
        tn_element_parse(TN_F32, s.data, s.length - 1, &narrow, 0)) {
        out->as.f = (double)narrow;
        ok = true;
    }
    if (!ok)
        return tn_parse_expected(p, "the value of an attribute");
    p->at += s.length;
    return true;
}

bool tn_parse_attr(tn_parser *p, tn_attr *out) {
    static const struct {
        const char *word;
        tn_attr_kind kind;
    } lists[] = {{"floats", TN_ATTR_FLOATS}, {"strings", TN_ATTR_STRINGS}, {"dims", TN_ATTR_DIMS}};
    tn_parse_skip(p);
    size_t start = p->at;
    *out = (tn_attr){0};
    if (tn_parse_peek_string(p)) {
        out->kind = TN_ATTR_STRING;
        return tn_parse_string(p, "a string", &out->as.s);
    }
    if (p->at < p->length && p->text[p->at] == '[')
        return parse_list(p, out, TN_ATTR_INTS);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (tn_parse_accept_word(p, lists[i].word))
            return parse_list(p, out, lists[i].kind);
    if (tn_parse_accept_word(p, "type")) {
        out->kind = TN_ATTR_TYPE;
        return tn_parse_type(p, &out->as.type);
    }
    if (tn_parse_accept_word(p, "function")) {
        const char *name;
        if (!tn_parse_name(p, "a function's name", &name))
            return false;
        uint32_t function = tn_graph_find_function(p->g, name);
        if (function == UINT32_MAX)
            return tn_parse_fail(p, start, "no function '%s' stands before", name);
        out->kind = TN_ATTR_FUNCTION;
        out->as.i = function;
        return true;
    }
    tn_string word = tn_parse_number_token(p);
    tn_dtype dtype;
    if (word.length && tn_text_is_word(word.data[0], true) && dtype_named(word, &dtype)) {
        p->at += word.length;
        tn_parse_skip(p);
        if (p->at < p->length && p->text[p->at] == '[') {
            out->kind = TN_ATTR_TENSOR;
            return parse_tensor_rest(p, start, dtype, &out->as.tensor);
        }
        out->kind = TN_ATTR_DTYPE;
        out->as.i = dtype;
        return true;
    }
    return parse_number(p, out);
}
