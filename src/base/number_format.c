/* Numbers to text: shortest digits that read back to the same number, or a fixed count, both exact. */
#include "base/bignum.h"
#include "base/number.h"

#include <string.h>

typedef unsigned __int128 u128;

/* Decimal digits d1 d2 ... dn, standing for 0.d1d2...dn * 10^point. */
typedef struct decimal {
    int count, point;
    char digits[24];
} decimal;

/* A finite positive number: mantissa * 2^exponent, and where its neighbours' halves lie. */
typedef struct binary {
    uint64_t mantissa;
    int exponent;
    bool near_below; /* a power of two: the number below is half as far away as the one above */
} binary;

/* floor(log10(2^e)) for |e| < 1500. */
static int log10_of_pow2(int e) {
    return (e * 78913) >> 18;
}

static int bits64(uint64_t value) {
    return 64 - __builtin_clzll(value);
}

/* A digit that became 10 carries into the ones before it. */
static void carry(decimal *out) {
    int i = out->count - 1;
    while (i >= 0 && out->digits[i] > '9') {
        if (i == 0) {
            out->digits[0] = '1';
            out->count = 1;
            out->point++;
            return;
        }
        out->count = i;
        out->digits[--i]++;
    }
}

static bool twice_above(u128 r, u128 s, int digit) {
    return r * 2 > s || (r * 2 == s && (digit & 1));
}

/* Steele and White: value = r/s, and every number between r - below and r + above (inclusive if the mantissa is even)
   over s reads back as it; emit digits until what is left is within that distance on one side or both.
   Here for -112 <= exponent < 0, where everything fits in 128 bits. */
static void shortest_small(binary v, decimal *out) {
    bool even = (v.mantissa & 1) == 0;
    u128 r = (u128)v.mantissa << 2, s = (u128)1 << (2 - v.exponent), above = 2, below = v.near_below ? 1 : 2;
    int point = log10_of_pow2(v.exponent + bits64(v.mantissa) - 1);
    for (int i = 0; i < point; i++)
        s *= 10;
    for (int i = point; i < 0; i++) {
        r *= 10;
        above *= 10;
        below *= 10;
    }
    while (even ? r + above >= s : r + above > s) {
        s *= 10;
        point++;
    }
    out->point = point;
    for (bool low = false, high = false; !low && !high;) {
        int digit = 0;
        for (r *= 10, above *= 10, below *= 10; r >= s; r -= s)
            digit++;
        low = even ? r <= below : r < below;
        high = even ? r + above >= s : r + above > s;
        if (high && (!low || twice_above(r, s, digit)))
            digit++;
        out->digits[out->count++] = (char)('0' + digit);
    }
}

static void times_ten(tn_bignum *a, tn_bignum *b, tn_bignum *c) {
    tn_bignum_muladd(a, 10, 0);
    tn_bignum_muladd(b, 10, 0);
    tn_bignum_muladd(c, 10, 0);
}

static bool twice_above_big(const tn_bignum *r, const tn_bignum *s, int digit) {
    int order = tn_bignum_cmp_sum(r, r, s);
    return order > 0 || (order == 0 && (digit & 1));
}

static void shortest_large(binary v, decimal *out) {
    bool even = (v.mantissa & 1) == 0;
    int least = even ? 0 : 1; /* the order from which a sum counts as reaching the boundary */
    tn_bignum r, s, above, below;
    tn_bignum_set(&r, v.mantissa << 2);
    tn_bignum_set(&s, 4);
    tn_bignum_set(&above, 2);
    tn_bignum_set(&below, v.near_below ? 1 : 2);
    if (v.exponent >= 0) {
        tn_bignum_shl(&r, v.exponent);
        tn_bignum_shl(&above, v.exponent);
        tn_bignum_shl(&below, v.exponent);
    } else {
        tn_bignum_shl(&s, -v.exponent);
    }
    int point = log10_of_pow2(v.exponent + bits64(v.mantissa) - 1);
    if (point >= 0) {
        tn_bignum_mul_pow10(&s, point);
    } else {
        tn_bignum_mul_pow10(&r, -point);
        tn_bignum_mul_pow10(&above, -point);
        tn_bignum_mul_pow10(&below, -point);
    }
    while (tn_bignum_cmp_sum(&r, &above, &s) >= least) {
        tn_bignum_muladd(&s, 10, 0);
        point++;
    }
    out->point = point;
    for (bool low = false, high = false; !low && !high;) {
        times_ten(&r, &above, &below);
        int digit = tn_bignum_digit(&r, &s);
        low = tn_bignum_cmp(&r, &below) <= -least;
        high = tn_bignum_cmp_sum(&r, &above, &s) >= least;
        if (high && (!low || twice_above_big(&r, &s, digit)))
            digit++;
        out->digits[out->count++] = (char)('0' + digit);
    }
}

static void shortest(binary v, decimal *out) {
    out->count = 0;
    if (v.exponent <= 0 && v.exponent > -64 && (v.mantissa & (((uint64_t)1 << -v.exponent) - 1)) == 0) {
        uint64_t whole = v.mantissa >> -v.exponent; /* its own digits are the shortest: neighbours are at most 1 away */
        char reversed[24];
        int n = 0;
        for (; whole; whole /= 10)
            reversed[n++] = (char)('0' + whole % 10);
        out->point = out->count = n;
        for (int i = 0; i < n; i++)
            out->digits[i] = reversed[n - 1 - i];
    } else if (v.exponent < 0 && v.exponent >= -112) {
        shortest_small(v, out);
    } else {
        shortest_large(v, out);
    }
    carry(out);
    while (out->count > 1 && out->digits[out->count - 1] == '0')
        out->count--;
}

/* `count` digits (1 to 17), rounded to nearest, ties to even; trailing zeros dropped. */
static void fixed(binary v, int count, decimal *out) {
    tn_bignum r, s;
    tn_bignum_set(&r, v.mantissa);
    tn_bignum_set(&s, 1);
    tn_bignum_shl(v.exponent >= 0 ? &r : &s, v.exponent >= 0 ? v.exponent : -v.exponent);
    int point = log10_of_pow2(v.exponent + bits64(v.mantissa) - 1);
    tn_bignum_mul_pow10(point >= 0 ? &s : &r, point >= 0 ? point : -point);
    while (tn_bignum_cmp(&r, &s) >= 0) {
        tn_bignum_muladd(&s, 10, 0);
        point++;
    }
    out->point = point;
    for (out->count = 0; out->count < count;) {
        tn_bignum_muladd(&r, 10, 0);
        out->digits[out->count++] = (char)('0' + tn_bignum_digit(&r, &s));
    }
    if (twice_above_big(&r, &s, out->digits[count - 1] & 1))
        out->digits[count - 1]++;
    carry(out);
    while (out->count > 1 && out->digits[out->count - 1] == '0')
        out->count--;
}

/* Lays digits out plainly for 10^-4 <= value < 10^plain_below, else with an exponent. */
static size_t layout(bool negative, const decimal *d, int plain_below, char *text) {
    char *at = text;
    int exponent = d->point - 1;
    if (negative)
        *at++ = '-';
    if (exponent < -4 || exponent >= plain_below) {
        *at++ = d->digits[0];
        if (d->count > 1) {
            *at++ = '.';
            memcpy(at, d->digits + 1, (size_t)d->count - 1);
            at += d->count - 1;
        }
        *at++ = 'e';
        *at++ = exponent < 0 ? '-' : '+';
        unsigned size = (unsigned)(exponent < 0 ? -exponent : exponent);
        if (size >= 100)
            *at++ = (char)('0' + size / 100);
        *at++ = (char)('0' + size / 10 % 10);
        *at++ = (char)('0' + size % 10);
    } else if (exponent < 0) {
        *at++ = '0';
        *at++ = '.';
        for (int i = exponent + 1; i < 0; i++)
            *at++ = '0';
        memcpy(at, d->digits, (size_t)d->count);
        at += d->count;
    } else {
        for (int i = 0; i < d->count || i < d->point; i++) {
            if (i == d->point)
                *at++ = '.';
            *at++ = i < d->count ? d->digits[i] : '0';
        }
    }
    *at = '\0';
    return (size_t)(at - text);
}

/* What is not a finite number other than zero; 0 when it is one. */
static size_t special(bool negative, bool exponent_full, uint64_t fraction, bool zero, char *text) {
    const char *name = exponent_full ? (fraction ? "nan" : negative ? "-inf" : "inf") : negative ? "-0" : "0";
    if (!exponent_full && !zero)
        return 0;
    size_t length = strlen(name);
    memcpy(text, name, length + 1);
    return length;
}

/* Takes a number of `fraction_bits` apart; false (and *length set) when it is special. */
static bool take_apart(uint64_t bits, int fraction_bits, int exponent_bits, char *text, binary *v, bool *negative,
                       size_t *length) {
    uint64_t fraction = bits & (((uint64_t)1 << fraction_bits) - 1);
    int full = (1 << exponent_bits) - 1, biased = (int)(bits >> fraction_bits) & full;
    *negative = bits >> (fraction_bits + exponent_bits) & 1;
    *length = special(*negative, biased == full, fraction, biased == 0 && fraction == 0, text);
    if (*length)
        return false;
    int bias = full / 2 + fraction_bits;
    v->mantissa = biased ? fraction | (uint64_t)1 << fraction_bits : fraction;
    v->exponent = (biased ? biased : 1) - bias;
    v->near_below = fraction == 0 && biased > 1;
    return true;
}

size_t tn_format_f64(double value, char text[TN_NUMBER_TEXT]) {
    uint64_t bits;
    binary v;
    bool negative;
    size_t length;
    decimal d;
    memcpy(&bits, &value, sizeof bits);
    if (!take_apart(bits, 52, 11, text, &v, &negative, &length))
        return length;
    shortest(v, &d);
    return layout(negative, &d, 16, text);
}

size_t tn_format_f32(float value, char text[TN_NUMBER_TEXT]) {
    uint32_t bits;
    binary v;
    bool negative;
    size_t length;
    decimal d;
    memcpy(&bits, &value, sizeof bits);
    if (!take_apart(bits, 23, 8, text, &v, &negative, &length))
        return length;
    shortest(v, &d);
    return layout(negative, &d, 16, text);
}

size_t tn_format_f64_digits(double value, int digits, char text[TN_NUMBER_TEXT]) {
    uint64_t bits;
    binary v;
    bool negative;
    size_t length;
    decimal d;
    digits = digits < 1 ? 1 : digits > 17 ? 17 : digits;
    memcpy(&bits, &value, sizeof bits);
    if (!take_apart(bits, 52, 11, text, &v, &negative, &length))
        return length;
    fixed(v, digits, &d);
    return layout(negative, &d, digits, text);
}

static size_t format_integer(bool negative, uint64_t size, char *text) {
    char reversed[24];
    size_t n = 0, length = 0;
    do
        reversed[n++] = (char)('0' + size % 10);
    while (size /= 10);
    if (negative)
        text[length++] = '-';
    while (n)
        text[length++] = reversed[--n];
    text[length] = '\0';
    return length;
}

size_t tn_format_u64(uint64_t value, char text[TN_NUMBER_TEXT]) {
    return format_integer(false, value, text);
}

size_t tn_format_i64(int64_t value, char text[TN_NUMBER_TEXT]) {
    return format_integer(value < 0, value < 0 ? -(uint64_t)value : (uint64_t)value, text);
}
