/* Text built in a growable buffer. */
#include "base/buffer.h"

#include "base/error.h"
#include "base/number.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tn_text_init(tn_text *text, tn_heap *heap) {
    *text = (tn_text){.heap = heap};
}

void tn_text_free(tn_text *text) {
    tn_free(text->heap, text->data);
    tn_text_init(text, text->heap);
}

/* Room for `count` more bytes and the NUL. */
static bool reserve(tn_text *text, size_t count) {
    if (text->failed)
        return false;
    if (count < text->cap - text->len)
        return true;
    size_t need, want = text->cap <= SIZE_MAX / 2 ? text->cap * 2 : SIZE_MAX;
    if (__builtin_add_overflow(text->len, count, &need) || __builtin_add_overflow(need, 1, &need)) {
        tn_fail(TN_ERR_LIMIT, "too large: a text of %zu bytes with %zu more", text->len, count);
        text->failed = true;
        return false;
    }
    if (want < 64)
        want = 64;
    if (want < need)
        want = need;
    char *grown = tn_realloc(text->heap, text->data, want);
    if (!grown) {
        text->failed = true;
        return false;
    }
    text->data = grown;
    text->cap = want;
    return true;
}

void tn_text_bytes(tn_text *text, const char *bytes, size_t count) {
    if (!reserve(text, count))
        return;
    if (count)
        memcpy(text->data + text->len, bytes, count);
    text->len += count;
    text->data[text->len] = '\0';
}

void tn_text_add(tn_text *text, const char *string) {
    tn_text_bytes(text, string, strlen(string));
}

void tn_text_printf(tn_text *text, const char *format, ...) {
    if (!reserve(text, 80))
        return;
    va_list args;
    va_start(args, format);
    int needed = vsnprintf(text->data + text->len, text->cap - text->len, format, args);
    va_end(args);
    if (needed >= 0 && (size_t)needed >= text->cap - text->len && reserve(text, (size_t)needed)) {
        va_start(args, format);
        needed = vsnprintf(text->data + text->len, text->cap - text->len, format, args);
        va_end(args);
    }
    if (needed < 0) {
        tn_fail(TN_ERR_LIMIT, "too large: a text could not be formatted");
        text->failed = true;
    }
    if (text->failed) {
        text->data[text->len] = '\0';
        return;
    }
    text->len += (size_t)needed;
}

void tn_text_f64(tn_text *text, double value) {
    char digits[TN_NUMBER_TEXT];
    tn_text_bytes(text, digits, tn_format_f64(value, digits));
}

void tn_text_f32(tn_text *text, float value) {
    char digits[TN_NUMBER_TEXT];
    tn_text_bytes(text, digits, tn_format_f32(value, digits));
}

/* The bytes from the start that stand for themselves between quotes: no quote, backslash, control, invalid UTF-8. */
static size_t plain_run(const char *bytes, size_t count) {
    size_t i = 0;
    while (i < count) {
        uint8_t c = (uint8_t)bytes[i];
        if (c < 0x20 || c == 0x7F || c == '"' || c == '\\')
            break;
        size_t n = tn_utf8_next(bytes + i, count - i, NULL);
        if (n == 0)
            break;
        i += n;
    }
    return i;
}

/* Both kinds of quoted text: runs that stand for themselves, and one escape between them. */
static void add_quoted(tn_text *text, const char *bytes, size_t count, bool json) {
    static const char hex[] = "0123456789abcdef";
    tn_text_bytes(text, "\"", 1);
    for (size_t i = 0; i < count;) {
        size_t run = plain_run(bytes + i, count - i);
        tn_text_bytes(text, bytes + i, run);
        i += run;
        if (i == count)
            break;
        uint8_t c = (uint8_t)bytes[i++];
        char escape[6] = {'\\', (char)c};
        size_t n = 2;
        if (c == '\n' || c == '\t') {
            escape[1] = c == '\n' ? 'n' : 't';
        } else if (c != '"' && c != '\\') {
            if (json && c >= 0x80) {
                memcpy(escape, "\xEF\xBF\xBD", 3);
                n = 3;
            } else if (json) {
                memcpy(escape, "\\u00", 4);
                n = 4;
            } else {
                escape[1] = 'x';
            }
            if (!json || c < 0x80) {
                escape[n++] = hex[c >> 4];
                escape[n++] = hex[c & 15];
            }
        }
        tn_text_bytes(text, escape, n);
    }
    tn_text_bytes(text, "\"", 1);
}

void tn_text_quoted(tn_text *text, const char *bytes, size_t count) {
    add_quoted(text, bytes, count, false);
}

void tn_text_json(tn_text *text, const char *bytes, size_t count) {
    add_quoted(text, bytes, count, true);
}
