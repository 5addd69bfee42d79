/* Numbers to text and back, independent of the locale, exactly rounded. */
#ifndef TN_BASE_NUMBER_H
#define TN_BASE_NUMBER_H

#include <tenon/status.h>

#define TN_NUMBER_TEXT 40 /* enough for every result below, NUL included */

/* Shortest decimal text that reads back to the same double/float ("1", "0.1", "-0", "1e+30", "inf", "-inf", "nan").
   Returns the length. */
size_t tn_format_f64(double value, char text[TN_NUMBER_TEXT]);
size_t tn_format_f32(float value, char text[TN_NUMBER_TEXT]);
/* `digits` significant digits at most, for people. */
size_t tn_format_f64_digits(double value, int digits, char text[TN_NUMBER_TEXT]);
size_t tn_format_i64(int64_t value, char text[TN_NUMBER_TEXT]);
size_t tn_format_u64(uint64_t value, char text[TN_NUMBER_TEXT]);

/* Parse the longest number at the start of [text, text+length); *used is what was read, 0 if there is none there.
   Decimal and hexadecimal ("0x1.8p3") floats, inf, nan, round to nearest even. Integers out of range: false, *used not 0. */
bool tn_parse_f64(const char *text, size_t length, double *value, size_t *used);
bool tn_parse_f32(const char *text, size_t length, float *value, size_t *used);
bool tn_parse_i64(const char *text, size_t length, int64_t *value, size_t *used);
bool tn_parse_u64(const char *text, size_t length, uint64_t *value, size_t *used);
/* "64MiB", "1.5G", "4096": bytes (K, M, G, T decimal with B optional; KiB... binary). The whole text must be read. */
bool tn_parse_size(const char *text, uint64_t *bytes);

/* Overflow-checked int64 arithmetic: false (result untouched) on overflow. */
bool tn_add_i64(int64_t a, int64_t b, int64_t *out);
bool tn_mul_i64(int64_t a, int64_t b, int64_t *out);
bool tn_mul_size(size_t a, size_t b, size_t *out);

#endif
