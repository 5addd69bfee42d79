/* A JSON reader: a recursive descent with bounded depth over an arena. */
#include "cli/json.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/utf8.h"

#define MAX_DEPTH 64

typedef struct parser {
    tn_arena *arena;
    const char *start, *at, *end;
    int depth;
} parser;

static tn_json *bad(const parser *p, const char *what) {
    int line = 1, column = 1;
    for (const char *c = p->start; c < p->at; c++) {
        column = *c == '\n' ? 1 : column + 1;
        line += *c == '\n';
    }
    tn_fail(TN_ERR_INPUT, "bad JSON: %s", what);
    tn_fail_where("line %d, column %d", line, column);
    return NULL;
}

static void skip_blanks(parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

static bool take(parser *p, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

static bool hex4(parser *p, uint32_t *code) {
    *code = 0;
    for (int i = 0; i < 4; i++) {
        if (p->at == p->end)
            return false;
        char c = *p->at++;
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10
                                                : 16;
        if (digit == 16)
            return false;
        *code = *code * 16 + digit;
    }
    return true;
}

static char *put_utf8(char *out, uint32_t code) {
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *out++ = (char)(0xe0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    } else {
        *out++ = (char)(0xf0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 0x3f));
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    }
    return out;
}

/* After the opening quote. A decoded string is never longer than it was written. */
static const char *parse_string(parser *p, size_t *length) {
    const char *close = p->at;
    while (close < p->end && *close != '"')
        close += *close == '\\' ? 2 : 1;
    if (close >= p->end)
        return (void)bad(p, "a string does not end"), NULL;
    char *text = tn_arena_alloc(p->arena, (size_t)(close - p->at) + 1), *out = text;
    if (!text)
        return NULL;
    while (p->at < close) {
        if (*p->at != '\\') {
            if ((unsigned char)*p->at < 0x20)
                return (void)bad(p, "a control character in a string"), NULL;
            size_t n = tn_utf8_next(p->at, (size_t)(close - p->at), NULL);
            if (n == 0)
                return (void)bad(p, "a string is not UTF-8"), NULL;
            memcpy(out, p->at, n);
            out += n;
            p->at += n;
            continue;
        }
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        char escape = p->at[1];
        p->at += 2;
        const char *known = escape ? strchr(from, escape) : NULL;
        if (known) {
            *out++ = to[known - from];
        } else {
            uint32_t code, low;
            if (escape != 'u' || !hex4(p, &code))
                return (void)bad(p, "a wrong escape in a string"), NULL;
            if (code >= 0xd800 && code < 0xdc00 && take(p, "\\u") && hex4(p, &low) && low >= 0xdc00 && low < 0xe000)
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            if (code >= 0xd800 && code < 0xe000)
                return (void)bad(p, "half a surrogate pair in a string"), NULL;
            out = put_utf8(out, code);
        }
    }
    p->at = close + 1;
    *length = (size_t)(out - text);
    return text;
}

static bool parse_value(parser *p, tn_json *json);

/* The items of an array or object, after its bracket. */
static bool parse_items(parser *p, tn_json *json, char close) {
    tn_json **last = &json->items;
    if (++p->depth > MAX_DEPTH)
        return bad(p, "nested too deep") != NULL;
    skip_blanks(p);
    if (p->at < p->end && *p->at == close) {
        p->at++;
        p->depth--;
        return true;
    }
    for (;;) {
        tn_json *item = tn_arena_alloc(p->arena, sizeof *item);
        if (!item)
            return false;
        if (json->kind == TN_JSON_OBJECT) {
            size_t length;
            skip_blanks(p);
            if (!take(p, "\""))
                return bad(p, "expected a key in quotes") != NULL;
            if (!(item->key = parse_string(p, &length)))
                return false;
            skip_blanks(p);
            if (!take(p, ":"))
                return bad(p, "expected ':'") != NULL;
        }
        if (!parse_value(p, item))
            return false;
        *last = item;
        last = &item->next;
        json->count++;
        skip_blanks(p);
        if (p->at < p->end && *p->at == close) {
            p->at++;
            p->depth--;
            return true;
        }
        if (!take(p, ","))
            return bad(p, p->at < p->end ? "expected ',' or a closing bracket" : "a bracket is not closed") != NULL;
    }
}

static bool parse_value(parser *p, tn_json *json) {
    skip_blanks(p);
    if (p->at == p->end)
        return bad(p, "it ends too early") != NULL;
    if (take(p, "{")) {
        json->kind = TN_JSON_OBJECT;
        return parse_items(p, json, '}');
    }
    if (take(p, "[")) {
        json->kind = TN_JSON_ARRAY;
        return parse_items(p, json, ']');
    }
    if (take(p, "\"")) {
        json->kind = TN_JSON_STRING;
        json->text = parse_string(p, &json->length);
        return json->text != NULL;
    }
    if (take(p, "null"))
        return true;
    json->boolean = (p->end - p->at >= 4 && memcmp(p->at, "true", 4) == 0);
    if (take(p, "true") || take(p, "false")) {
        json->kind = TN_JSON_BOOL;
        return true;
    }
    double value;
    size_t used = 0;
    const char *digits = p->at + (*p->at == '+' && p->end - p->at > 1);
    if (!tn_parse_f64(digits, (size_t)(p->end - digits), &value, &used) || used == 0)
        return bad(p, "expected a value") != NULL;
    json->kind = TN_JSON_NUMBER;
    json->text = digits;
    json->length = used;
    p->at = digits + used;
    return true;
}

const tn_json *tn_json_parse(tn_arena *arena, const char *bytes, size_t size) {
    parser p = {.arena = arena, .start = bytes, .at = bytes, .end = bytes + size};
    take(&p, "\xef\xbb\xbf"); /* a byte-order mark */
    tn_json *json = tn_arena_alloc(arena, sizeof *json);
    if (!json || !parse_value(&p, json))
        return NULL;
    skip_blanks(&p);
    return p.at == p.end ? json : bad(&p, "something follows the value");
}

const tn_json *tn_json_get(const tn_json *object, const char *key) {
    for (const tn_json *item = object && object->kind == TN_JSON_OBJECT ? object->items : NULL; item; item = item->next)
        if (strcmp(item->key, key) == 0)
            return item;
    return NULL;
}

bool tn_json_number(const tn_json *json, double *value) {
    size_t used;
    return json && json->kind == TN_JSON_NUMBER && tn_parse_f64(json->text, json->length, value, &used) &&
           isfinite(*value);
}
