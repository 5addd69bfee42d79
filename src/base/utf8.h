/* Recognising well-formed UTF-8. */
#ifndef TN_BASE_UTF8_H
#define TN_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The number of bytes (1 to 4) of the well-formed character that starts at `bytes`, or 0 when there is none there:
   stray and missing continuation bytes, overlong forms, surrogates and values past U+10FFFF are not well formed.
   `code` (may be NULL) gets the character. */
size_t tn_utf8_next(const char *bytes, size_t count, uint32_t *code);

#endif
