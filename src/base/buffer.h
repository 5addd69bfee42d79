/* Growable byte buffer for building text. Sticky failure: after an out-of-memory, `failed` is set and calls do nothing. */
#ifndef TN_BASE_BUFFER_H
#define TN_BASE_BUFFER_H

#include "base/heap.h"

typedef struct tn_text {
    tn_heap *heap;
    char *data; /* NUL-terminated once something was added; NULL before */
    size_t len, cap;
    bool failed;
} tn_text;
void tn_text_init(tn_text *text, tn_heap *heap);
void tn_text_free(tn_text *text);
void tn_text_bytes(tn_text *text, const char *bytes, size_t count);
void tn_text_add(tn_text *text, const char *string);
void tn_text_printf(tn_text *text, const char *format, ...) TN_PRINTF(2, 3); /* integers and strings only */
void tn_text_f64(tn_text *text, double value);
void tn_text_f32(tn_text *text, float value);
/* As a double-quoted string with \" \\ \n \t \xNN escapes; bytes >= 0x80 that are valid UTF-8 stay. */
void tn_text_quoted(tn_text *text, const char *bytes, size_t count);
/* As a JSON string, quotes included (invalid UTF-8 becomes U+FFFD). */
void tn_text_json(tn_text *text, const char *bytes, size_t count);

#endif
