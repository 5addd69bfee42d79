/* Regular expressions in RE2's syntax, matched against whole texts in time proportional to the text times the expression.

   Left out (a pattern that uses them is not supported): \p{...} of scripts, and \C. Bytes that are no UTF-8 match nothing. */
#ifndef TN_ONNX_REGEX_H
#define TN_ONNX_REGEX_H

#include "base/heap.h"

typedef struct tn_regex tn_regex;
/* NULL with TN_ERR_MODEL (what is wrong with the pattern, and where), TN_ERR_UNSUPPORTED, TN_ERR_LIMIT, TN_ERR_MEMORY. */
tn_regex *tn_regex_compile(tn_heap *heap, const char *pattern, size_t length);
void tn_regex_destroy(tn_regex *regex);
/* Whether all of a text matches. A regex is used by one thread at a time. */
bool tn_regex_matches(tn_regex *regex, const char *text, size_t length);

#endif
