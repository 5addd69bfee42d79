/* Characters of texts: upper and lower case, spaces, UTF-8 written. By Unicode 14's simple mappings, one character for one; the same
   on every machine, whatever locales it has. */
#ifndef TN_ONNX_LETTERS_H
#define TN_ONNX_LETTERS_H

#include "base/buffer.h"

typedef enum tn_case { TN_CASE_NONE, TN_CASE_LOWER, TN_CASE_UPPER } tn_case;

/* `turkic`: i and its dots as in Turkish and Azeri. */
uint32_t tn_letter_case(uint32_t code, tn_case to, bool turkic);
/* The same for all spellings of a letter that differ in case only. */
uint32_t tn_letter_fold(uint32_t code);
bool tn_letter_space(uint32_t code);
/* Whether a locale's name ("tr_TR.UTF-8", "az") is of a Turkic language. */
bool tn_locale_turkic(const char *name, size_t length);
/* Bytes written: 1 to 4. `code` is at most 0x10FFFF. */
size_t tn_utf8_write(uint32_t code, char bytes[4]);
/* Adds a text with its letters changed; bytes that are no UTF-8 stay. */
void tn_text_case(tn_text *out, const char *bytes, size_t count, tn_case to, bool turkic);

#endif
