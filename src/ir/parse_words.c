/* Reading the text form: words, strings, numbers, and errors that say where. */
#include "ir/parse.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/number.h"

bool tn_parse_push(tn_parser *p, tn_parse_list *list, const void *item, size_t size) {
    if (list->len == list->cap) {
        if (list->cap > UINT32_MAX / 2) {
            tn_fail(TN_ERR_LIMIT, "too large: a list of %u items", list->len);
            return false;
        }
        uint32_t cap = list->cap ? list->cap * 2 : 8;
        void *grown = tn_arena_alloc(&p->scratch, cap * size);
        if (!grown)
            return false;
        if (list->len)
            memcpy(grown, list->data, list->len * size);
        list->data = grown;
        list->cap = cap;
    }
    memcpy((char *)list->data + list->len++ * size, item, size);
    return true;
}

/* --- errors ----------------------------------------------------------------------------------------------------------------- */

static void place_of(const tn_parser *p, size_t at, size_t *line, size_t *column) {
    *line = 1;
    size_t start = 0;
    for (size_t i = 0; i < at && i < p->length; i++)
        if (p->text[i] == '\n') {
            ++*line;
            start = i + 1;
        }
    *column = at - start + 1;
}

bool(tn_parse_fail)(tn_parser *p, size_t at, const char *format, ...) {
    char what[512];
    size_t line, column;
    va_list args;
    va_start(args, format);
    if (vsnprintf(what, sizeof what, format, args) < 0)
        what[0] = '\0';
    va_end(args);
    place_of(p, at, &line, &column);
    tn_fail(TN_ERR_MODEL, "line %zu, column %zu: %s", line, column, what);
    return false;
}

bool(tn_parse_failed_at)(tn_parser *p, size_t at) {
    size_t line, column;
    place_of(p, at, &line, &column);
    tn_fail_where("line %zu, column %zu of the text", line, column);
    return false;
}

bool(tn_parse_expected)(tn_parser *p, const char *what) {
    tn_parse_skip(p);
    size_t n = 0;
    while (p->at + n < p->length && n < 24 && p->text[p->at + n] != '\n')
        n++;
    if (p->at >= p->length)
        return tn_parse_fail(p, p->at, "expected %s, found the end of the text", what);
    return tn_parse_fail(p, p->at, "expected %s, found '%.*s'", what, (int)n, p->text + p->at);
}

/* --- words ------------------------------------------------------------------------------------------------------------------- */

void tn_parse_skip(tn_parser *p) {
    while (p->at < p->length) {
        char c = p->text[p->at];
        if (c == '#') {
            while (p->at < p->length && p->text[p->at] != '\n')
                p->at++;
        } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            p->at++;
        } else {
            return;
        }
    }
}

bool tn_parse_accept(tn_parser *p, char c) {
    tn_parse_skip(p);
    if (p->at >= p->length || p->text[p->at] != c)
        return false;
    p->at++;
    return true;
}

bool tn_parse_expect(tn_parser *p, char c) {
    char what[4] = {'\'', c, '\'', '\0'};
    return tn_parse_accept(p, c) || tn_parse_expected(p, what);
}

/* The identifier at the cursor; length 0: none. */
static tn_string word_here(tn_parser *p) {
    tn_parse_skip(p);
    size_t n = 0;
    while (p->at + n < p->length && (tn_text_is_word(p->text[p->at + n], n == 0) || (n && p->text[p->at + n] == '.')))
        n++;
    return (tn_string){p->text + p->at, n};
}

bool tn_parse_accept_word(tn_parser *p, const char *word) {
    tn_string s = word_here(p);
    if (s.length != strlen(word) || memcmp(s.data, word, s.length) != 0)
        return false;
    p->at += s.length;
    return true;
}

bool tn_parse_peek_string(tn_parser *p) {
    tn_parse_skip(p);
    return p->at < p->length && p->text[p->at] == '"';
}

bool tn_parse_word(tn_parser *p, const char *what, tn_string *out) {
    if (tn_parse_peek_string(p)) {
        size_t start = p->at;
        if (!tn_parse_string(p, what, out))
            return false;
        if (memchr(out->data, 0, out->length))
            return tn_parse_fail(p, start, "a name cannot hold NUL");
        return true;
    }
    tn_string s = word_here(p);
    if (!s.length)
        return tn_parse_expected(p, what);
    const char *copy = tn_arena_strndup(&p->scratch, s.data, s.length);
    if (!copy)
        return false;
    p->at += s.length;
    *out = (tn_string){copy, s.length};
    return true;
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

bool tn_parse_string(tn_parser *p, const char *what, tn_string *out) {
    if (!tn_parse_peek_string(p))
        return tn_parse_expected(p, what);
    size_t start = p->at, end = start + 1;
    while (end < p->length && p->text[end] != '"' && p->text[end] != '\n')
        end += p->text[end] == '\\' ? 2 : 1;
    if (end >= p->length || p->text[end] != '"')
        return tn_parse_fail(p, start, "a string that does not end on its line");
    char *copy = tn_arena_alloc(&p->scratch, end - start);
    if (!copy)
        return false;
    size_t n = 0;
    for (size_t i = start + 1; i < end; i++) {
        char c = p->text[i];
        if (c == '\\') {
            c = p->text[++i];
            if (c == 'x') {
                int high = i + 2 < end ? hex_digit(p->text[i + 1]) : -1,
                    low = i + 2 < end ? hex_digit(p->text[i + 2]) : -1;
                if (high < 0 || low < 0)
                    return tn_parse_fail(p, i - 1, "an escape \\x without two hexadecimal digits");
                c = (char)(high << 4 | low);
                i += 2;
            } else if (c == 'n' || c == 't') {
                c = c == 'n' ? '\n' : '\t';
            } else if (c != '"' && c != '\\') {
                return tn_parse_fail(p, i - 1, "no such escape: there are \\\" \\\\ \\n \\t \\xNN");
            }
        }
        copy[n++] = c;
    }
    copy[n] = '\0';
    p->at = end + 1;
    *out = (tn_string){copy, n};
    return true;
}

bool tn_parse_name(tn_parser *p, const char *what, const char **out) {
    tn_string s;
    tn_parse_skip(p);
    size_t start = p->at;
    if (!tn_parse_string(p, what, &s))
        return false;
    if (memchr(s.data, 0, s.length))
        return tn_parse_fail(p, start, "a name cannot hold NUL");
    *out = s.data;
    return true;
}

/* --- numbers ------------------------------------------------------------------------------------------------------------------ */

tn_string tn_parse_number_token(tn_parser *p) {
    tn_parse_skip(p);
    const char *s = p->text + p->at;
    size_t left = p->length - p->at, n = 0;
    while (n < left) {
        char c = s[n];
        bool sign = (c == '-' || c == '+') &&
                    (n == 0 || s[n - 1] == 'e' || s[n - 1] == 'E' || s[n - 1] == 'p' || s[n - 1] == 'P');
        if (!sign && !tn_text_is_word(c, false) && c != '.')
            break;
        n++;
    }
    if (n == 4 && memcmp(s, "bits", 4) == 0 && n < left && s[n] == '(') {
        while (n < left && s[n] != ')' && s[n] != '\n')
            n++;
        n += n < left;
    }
    return (tn_string){s, n};
}

bool tn_parse_u64_text(tn_parser *p, const char *what, uint64_t *out) {
    tn_string s = tn_parse_number_token(p);
    size_t used;
    if (!s.length || !tn_parse_u64(s.data, s.length, out, &used) || used != s.length)
        return tn_parse_expected(p, what);
    p->at += s.length;
    return true;
}

bool tn_parse_i64_text(tn_parser *p, const char *what, int64_t *out) {
    tn_string s = tn_parse_number_token(p);
    size_t used;
    if (!s.length || !tn_parse_i64(s.data, s.length, out, &used) || used != s.length)
        return tn_parse_expected(p, what);
    p->at += s.length;
    return true;
}
