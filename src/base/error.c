/* The per-thread error: fixed thread-local buffers, so that reporting a failed allocation never allocates. */
#include "base/error.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Room for what, hint and their labels, and for `where` with a label before each of its lines. */
#define MESSAGE_CAP 5120

static _Thread_local tn_error_record current;
static _Thread_local char message[MESSAGE_CAP];

const char *tn_status_name(tn_status status) {
    static const char *const names[] = {
        [TN_OK] = "ok",
        [TN_ERR_FAILED] = "failed",
        [TN_ERR_USAGE] = "bad usage",
        [TN_ERR_MODEL] = "bad model",
        [TN_ERR_INPUT] = "bad input",
        [TN_ERR_UNSUPPORTED] = "not supported",
        [TN_ERR_LIMIT] = "limit exceeded",
        [TN_ERR_MEMORY] = "out of memory",
        [TN_ERR_IO] = "input/output error",
        [TN_ERR_CANCELLED] = "cancelled",
        [TN_ERR_INTERNAL] = "internal error",
    };
    size_t index = (size_t)status;
    return index < sizeof names / sizeof names[0] ? names[index] : "unknown status";
}

/* Characters that can forge or hide parts of a message on a terminal: controls, line separators, text direction. */
static bool deceives(uint32_t c) {
    return c < 0x20 || (c >= 0x7F && c <= 0x9F) || (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
           (c >= 0x2060 && c <= 0x2069) || c == 0xFEFF;
}

/* Writes one character or one escape for it; *taken is how many bytes of the source it stands for. */
static size_t escape_one(const char *bytes, size_t count, char out[12], size_t *taken) {
    static const char hex[] = "0123456789abcdef";
    uint32_t c;
    size_t length = tn_utf8_next(bytes, count, &c);
    *taken = length ? length : 1;
    if (length && !deceives(c)) {
        memcpy(out, bytes, length);
        return length;
    }
    size_t n = 0;
    out[n++] = '\\';
    if (length > 1) {
        out[n++] = 'u';
        for (int shift = 12; shift >= 0; shift -= 4)
            out[n++] = hex[c >> shift & 15];
    } else if (*bytes == '\n' || *bytes == '\t' || *bytes == '\r') {
        out[n++] = *bytes == '\n' ? 'n' : *bytes == '\t' ? 't' : 'r';
    } else {
        uint8_t byte = (uint8_t)*bytes;
        out[n++] = 'x';
        out[n++] = hex[byte >> 4];
        out[n++] = hex[byte & 15];
    }
    return n;
}

/* Escapes `count` bytes into `out` from `at` on, NUL-terminated. What does not fit in `cap` is cut between characters
   and ends with "...", also when `cut` says that more text follows. Answers the new end. */
static size_t add_escaped(char *out, size_t cap, size_t at, const char *bytes, size_t count, bool cut) {
    size_t room_end = cap - 4; /* the last place from which "..." and NUL still fit */
    size_t safe = at;          /* the last end of a whole character at or before room_end */
    size_t end = at;
    if (at > room_end)
        return at;
    for (size_t i = 0; i < count;) {
        char piece[12];
        size_t taken, n = escape_one(bytes + i, count - i, piece, &taken);
        if (end + n >= cap) {
            cut = true;
            break;
        }
        memcpy(out + end, piece, n);
        end += n;
        i += taken;
        if (end <= room_end)
            safe = end;
    }
    if (cut) {
        memcpy(out + safe, "...", 3);
        end = safe + 3;
    }
    out[end] = '\0';
    return end;
}

static void add_formatted(char *out, size_t cap, size_t at, const char *format, va_list args) {
    char plain[sizeof current.where];
    if (!format)
        format = "(no message)";
    int needed = vsnprintf(plain, sizeof plain, format, args);
    if (needed < 0) { /* a string of more than INT_MAX bytes: the format alone still says what failed */
        size_t length = strlen(format);
        add_escaped(out, cap, at, format, length, false);
        return;
    }
    bool cut = (size_t)needed >= sizeof plain;
    size_t length = cut ? sizeof plain - 1 : (size_t)needed;
    if (cut) { /* do not show the half of a character that the cut leaves as invalid bytes */
        size_t back = 0;
        while (back < 3 && back < length && ((uint8_t)plain[length - 1 - back] & 0xC0) == 0x80)
            back++;
        if (back < length && (uint8_t)plain[length - 1 - back] >= 0xC0 &&
            tn_utf8_next(plain + length - 1 - back, back + 1, NULL) == 0)
            length -= back + 1;
    }
    add_escaped(out, cap, at, plain, length, cut);
}

tn_status(tn_fail)(tn_status status, const char *format, ...) {
    char what[sizeof current.what];
    va_list args;
    what[0] = '\0';
    va_start(args, format);
    add_formatted(what, sizeof what, 0, format, args); /* the arguments may be parts of the current error */
    va_end(args);
    memcpy(current.what, what, sizeof what);
    current.status = status;
    current.where[0] = current.hint[0] = '\0';
    return status;
}

void tn_fail_where(const char *format, ...) {
    size_t at = strlen(current.where);
    if (current.status == TN_OK || at + 8 > sizeof current.where)
        return;
    char line[sizeof current.where];
    va_list args;
    line[0] = '\0';
    va_start(args, format);
    add_formatted(line, sizeof line - at - 1, 0, format, args);
    va_end(args);
    if (at)
        current.where[at++] = '\n';
    memcpy(current.where + at, line, strlen(line) + 1);
}

void tn_fail_hint(const char *format, ...) {
    if (current.status == TN_OK || current.hint[0])
        return;
    char hint[sizeof current.hint];
    va_list args;
    hint[0] = '\0';
    va_start(args, format);
    add_formatted(hint, sizeof hint, 0, format, args);
    va_end(args);
    memcpy(current.hint, hint, sizeof hint);
}

void tn_error_save(tn_error_record *out) {
    *out = current;
}

tn_status tn_error_restore(const tn_error_record *record) {
    current = *record;
    return current.status;
}

/* Appends bytes that are already escaped; the callers see to it that they fit. */
static size_t append(size_t at, const char *bytes, size_t count) {
    memcpy(message + at, bytes, count);
    message[at + count] = '\0';
    return at + count;
}

const char *tn_error_message(void) {
    static const char where_label[] = "\n  where: ", hint_label[] = "\n  hint: ";
    size_t hint_length = strlen(current.hint);
    size_t limit = MESSAGE_CAP - 1 - (hint_length ? sizeof hint_label - 1 + hint_length : 0);
    size_t end = append(0, current.what, strlen(current.what));
    for (const char *line = current.where; *line;) {
        size_t length = strcspn(line, "\n");
        if (end + sizeof where_label - 1 + length + sizeof where_label + 3 > limit) {
            end = append(end, where_label, sizeof where_label - 1);
            end = append(end, "...", 3);
            break;
        }
        end = append(end, where_label, sizeof where_label - 1);
        end = append(end, line, length);
        line += length + (line[length] == '\n');
    }
    if (hint_length) {
        end = append(end, hint_label, sizeof hint_label - 1);
        append(end, current.hint, hint_length);
    }
    return message;
}

const char *tn_error_what(void) {
    return current.what;
}

const char *tn_error_where(void) {
    return current.where;
}

const char *tn_error_hint(void) {
    return current.hint;
}

tn_status(tn_error_status)(void) {
    return current.status;
}

void tn_error_clear(void) {
    current.status = TN_OK;
    current.what[0] = current.where[0] = current.hint[0] = '\0';
}
