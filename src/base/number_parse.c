/* Text to numbers: floats rounded to nearest even from the exact value, whatever its length; checked integers. */
#include "base/bignum.h"
#include "base/number.h"

#include <string.h>

typedef unsigned __int128 u128;

/* The float format that is asked for. */
typedef struct format {
    int fraction_bits, exponent_bits;
} format;

static const format f64_format = {52, 11}, f32_format = {23, 8};

/* No halfway point between two doubles has more significant digits than this; what follows only breaks ties. */
#define MOST_DIGITS 800

static uint64_t infinity_bits(format f) {
    return (((uint64_t)1 << f.exponent_bits) - 1) << f.fraction_bits;
}

/* Rounds (mantissa + something in [0, 1)) * 2^exponent to nearest even; `inexact`: the something is not 0.
   The mantissa's highest bit is set. */
static uint64_t round_to(format f, uint64_t mantissa, bool inexact, int exponent) {
    int full = (1 << f.exponent_bits) - 1, least = 1 - full / 2 - f.fraction_bits; /* exponent of the last place */
    int drop = 63 - f.fraction_bits, last = exponent + drop;
    if (last < least) {
        drop += least - last;
        last = least;
    }
    if (drop > 64)
        return 0;
    uint64_t kept = drop < 64 ? mantissa >> drop : 0, half = (uint64_t)1 << (drop - 1);
    uint64_t rest = mantissa & (half | (half - 1));
    kept += rest > half || (rest == half && (inexact || (kept & 1)));
    if (kept >> (f.fraction_bits + 1)) {
        kept >>= 1;
        last++;
    }
    int biased = kept >> f.fraction_bits ? last - least + 1 : 0;
    if (biased >= full)
        return infinity_bits(f);
    return (uint64_t)biased << f.fraction_bits | (kept & (((uint64_t)1 << f.fraction_bits) - 1));
}

static uint64_t round_u128(format f, u128 value, bool inexact, int exponent) {
    uint64_t high = (uint64_t)(value >> 64);
    int shift = high ? 64 - __builtin_clzll(high) : -__builtin_clzll((uint64_t)value);
    if (shift <= 0)
        return round_to(f, (uint64_t)value << -shift, inexact, exponent + shift);
    inexact = inexact || (value & (((u128)1 << shift) - 1)) != 0;
    return round_to(f, (uint64_t)(value >> shift), inexact, exponent + shift);
}

/* Significant decimal digits: 0.d1d2...dn * 10^point, d1 and dn not 0. */
typedef struct digits {
    const char *first; /* text of d1; a '.' may stand among the digits */
    size_t count;
    int64_t point;
} digits;

/* mantissa * 10^power for |power| <= 27, in integers alone: no rounding mode of the host matters. */
static uint64_t from_small(format f, uint64_t mantissa, int power) {
    uint64_t five = 1;
    for (int i = 0; i < power || i < -power; i++)
        five *= 5;
    if (power >= 0)
        return round_u128(f, (u128)mantissa * five, false, power);
    int shift = 64 + __builtin_clzll(mantissa);
    u128 scaled = (u128)mantissa << shift;
    return round_u128(f, scaled / five, scaled % five != 0, power - shift);
}

static uint64_t from_big(format f, const digits *d) {
    tn_bignum n, divisor;
    size_t taken = d->count < MOST_DIGITS ? d->count : MOST_DIGITS;
    tn_bignum_set(&n, 0);
    uint32_t factor = 1, group = 0;
    size_t left = taken;
    for (const char *at = d->first; left; at++) {
        if (*at == '.')
            continue;
        group = group * 10 + (uint32_t)(*at - '0');
        factor *= 10;
        if (--left == 0 || factor == 1000000000u) {
            tn_bignum_muladd(&n, factor, group);
            factor = 1;
            group = 0;
        }
    }
    bool inexact = taken < d->count; /* the last digit is not 0 */
    int power = (int)(d->point - (int64_t)taken);
    tn_bignum_set(&divisor, 1);
    tn_bignum_mul_pow10(power >= 0 ? &n : &divisor, power >= 0 ? power : -power);
    int exponent = tn_bignum_bits(&n) - tn_bignum_bits(&divisor);
    tn_bignum_shl(exponent > 0 ? &divisor : &n, exponent > 0 ? exponent : -exponent);
    if (tn_bignum_cmp(&n, &divisor) < 0) {
        tn_bignum_shl(&n, 1);
        exponent--;
    }
    uint64_t mantissa = 0; /* n / divisor in [1, 2): 64 bits of it by long division */
    for (int i = 0; i < 64; i++) {
        mantissa <<= 1;
        if (tn_bignum_cmp(&n, &divisor) >= 0) {
            tn_bignum_sub(&n, &divisor);
            mantissa |= 1;
        }
        tn_bignum_shl(&n, 1);
    }
    return round_to(f, mantissa, inexact || n.len != 0, exponent - 63);
}

static uint64_t from_digits(format f, const digits *d) {
    if (d->count == 0 || d->point < -330)
        return 0;
    if (d->point > 310)
        return infinity_bits(f);
    int64_t power = d->point - (int64_t)d->count;
    if (d->count > 19 || power < -27 || power > 27)
        return from_big(f, d);
    uint64_t mantissa = 0;
    const char *at = d->first;
    for (size_t left = d->count; left; at++)
        if (*at != '.') {
            mantissa = mantissa * 10 + (uint64_t)(*at - '0');
            left--;
        }
    return from_small(f, mantissa, (int)power);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static int hex_value(char c) {
    c = lower(c);
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool has_word(const char *text, const char *end, const char *word) {
    for (; *word; word++, text++)
        if (text == end || lower(*text) != *word)
            return false;
    return true;
}

/* Reads "e-12" at `text` if it is there; anything past 10^17 counts as that. Answers where it ends. */
static const char *parse_exponent(const char *text, const char *end, char letter, int64_t *exponent) {
    const char *at = text;
    *exponent = 0;
    if (at == end || lower(*at) != letter)
        return text;
    at++;
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    if (at == end || !is_digit(*at))
        return text;
    for (; at < end && is_digit(*at); at++)
        if (*exponent < INT64_C(100000000000000000))
            *exponent = *exponent * 10 + (*at - '0');
    if (negative)
        *exponent = -*exponent;
    return at;
}

/* Reads hexadecimal digits (after "0x"); NULL when there is none. */
static const char *parse_hex(format f, const char *at, const char *end, uint64_t *bits) {
    uint64_t mantissa = 0;
    int64_t exponent = 0, given;
    bool inexact = false, point = false, any = false;
    for (; at < end; at++) {
        int value = hex_value(*at);
        if (*at == '.' && !point) {
            point = true;
            continue;
        }
        if (value < 0)
            break;
        any = true;
        if (mantissa >> 60 == 0)
            mantissa = mantissa << 4 | (uint64_t)value;
        else {
            inexact = inexact || value != 0;
            exponent += 4;
        }
        if (point)
            exponent -= 4;
    }
    if (!any)
        return NULL;
    at = parse_exponent(at, end, 'p', &given);
    exponent += given;
    exponent = exponent > 100000 ? 100000 : exponent < -100000 ? -100000 : exponent;
    *bits = mantissa ? round_u128(f, mantissa, inexact, (int)exponent) : 0;
    return at;
}

/* Reads decimal digits; NULL when there is none. */
static const char *parse_decimal(format f, const char *at, const char *end, uint64_t *bits) {
    digits d = {0};
    size_t seen = 0; /* digits from the first that is not 0 on; d.count: up to the last that is not 0 */
    bool point = false, any = false;
    int64_t given;
    for (; at < end; at++) {
        if (*at == '.' && !point) {
            point = true;
            continue;
        }
        if (!is_digit(*at))
            break;
        any = true;
        if (seen == 0 && *at == '0') {
            d.point -= point;
            continue;
        }
        if (seen++ == 0)
            d.first = at;
        if (*at != '0')
            d.count = seen;
        d.point += !point;
    }
    if (!any)
        return NULL;
    at = parse_exponent(at, end, 'e', &given);
    d.point += given;
    *bits = from_digits(f, &d);
    return at;
}

static bool parse_float(format f, const char *text, size_t length, uint64_t *bits, size_t *used) {
    const char *at = text, *end = text + length, *after = NULL;
    *used = 0;
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    if (has_word(at, end, "inf")) {
        *bits = infinity_bits(f);
        after = at + (has_word(at, end, "infinity") ? 8 : 3);
    } else if (has_word(at, end, "nan")) {
        *bits = infinity_bits(f) | (uint64_t)1 << (f.fraction_bits - 1);
        after = at + 3;
    } else {
        if (has_word(at, end, "0x"))
            after = parse_hex(f, at + 2, end, bits);
        if (!after)
            after = parse_decimal(f, at, end, bits);
    }
    if (!after)
        return false;
    *bits |= (uint64_t)negative << (f.fraction_bits + f.exponent_bits);
    *used = (size_t)(after - text);
    return true;
}

bool tn_parse_f64(const char *text, size_t length, double *value, size_t *used) {
    uint64_t bits;
    if (!parse_float(f64_format, text, length, &bits, used))
        return false;
    memcpy(value, &bits, sizeof *value);
    return true;
}

bool tn_parse_f32(const char *text, size_t length, float *value, size_t *used) {
    uint64_t bits;
    if (!parse_float(f32_format, text, length, &bits, used))
        return false;
    uint32_t narrow = (uint32_t)bits;
    memcpy(value, &narrow, sizeof *value);
    return true;
}

/* Digits from `at` on; false when there are none (*after == at) or they pass `most`. */
static bool parse_digits(const char *at, const char *end, uint64_t most, uint64_t *value, const char **after) {
    bool fits = at < end && is_digit(*at);
    uint64_t sum = 0;
    for (; at < end && is_digit(*at); at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (sum > (most - digit) / 10)
            fits = false;
        else
            sum = sum * 10 + digit;
    }
    *value = sum;
    *after = at;
    return fits;
}

bool tn_parse_u64(const char *text, size_t length, uint64_t *value, size_t *used) {
    const char *end = text + length, *start = text + (length && *text == '+'), *after;
    uint64_t sum;
    bool fits = parse_digits(start, end, UINT64_MAX, &sum, &after);
    *used = after == start ? 0 : (size_t)(after - text);
    if (fits)
        *value = sum;
    return fits;
}

bool tn_parse_i64(const char *text, size_t length, int64_t *value, size_t *used) {
    bool negative = length && *text == '-';
    const char *end = text + length, *start = text + (length && (*text == '-' || *text == '+')), *after;
    uint64_t sum;
    bool fits = parse_digits(start, end, (uint64_t)INT64_MAX + negative, &sum, &after);
    *used = after == start ? 0 : (size_t)(after - text);
    if (fits)
        *value = (int64_t)(negative ? -sum : sum);
    return fits;
}

bool tn_parse_size(const char *text, uint64_t *bytes) {
    const char *end = text + strlen(text), *after;
    uint64_t whole = 0, unit = 1, numerator = 0, denominator = 1;
    if (!parse_digits(text, end, UINT64_MAX, &whole, &after))
        return false;
    text = after;
    if (text < end && *text == '.') {
        if (++text == end || !is_digit(*text))
            return false;
        for (; text < end && is_digit(*text); text++)
            if (denominator <= UINT64_MAX / 100) { /* further digits are below a byte */
                numerator = numerator * 10 + (uint64_t)(*text - '0');
                denominator *= 10;
            }
    }
    static const char letters[] = "kmgt";
    const char *letter = text < end ? strchr(letters, lower(*text)) : NULL;
    if (letter) {
        text++;
        bool binary = end - text >= 2 && lower(text[0]) == 'i' && lower(text[1]) == 'b';
        text += binary;
        for (const char *l = letters; l <= letter; l++)
            unit *= binary ? 1024 : 1000;
    }
    if (text < end && lower(*text) == 'b')
        text++;
    u128 total = (u128)whole * unit + (u128)numerator * unit / denominator;
    if (text != end || total > UINT64_MAX)
        return false;
    *bytes = (uint64_t)total;
    return true;
}

bool tn_add_i64(int64_t a, int64_t b, int64_t *out) {
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

bool tn_mul_i64(int64_t a, int64_t b, int64_t *out) {
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

bool tn_mul_size(size_t a, size_t b, size_t *out) {
    size_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}
