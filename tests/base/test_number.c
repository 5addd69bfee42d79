/* Numbers to text and back, against the C library in the C locale. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/number.h"

#include <fenv.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t rng = 0x853c49e6748fea9bu;

static uint64_t next_random(void) {
    uint64_t z = rng += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static double f64_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float f32_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bits64(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint32_t bits32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void check_parse(const char *text) {
    double d = -7;
    float f = -7;
    size_t used = 0, length = strlen(text);
    char *end;
    double wanted = strtod(text, &end);
    if (!tn_parse_f64(text, length, &d, &used) || bits64(d) != bits64(wanted) || used != (size_t)(end - text))
        fail_msg("f64 of '%.60s': %a, should be %a; used %zu", text, d, wanted, used);
    float wanted32 = strtof(text, &end);
    if (!tn_parse_f32(text, length, &f, &used) || bits32(f) != bits32(wanted32) || used != (size_t)(end - text))
        fail_msg("f32 of '%.60s': %a, should be %a; used %zu", text, (double)f, (double)wanted32, used);
}

/* Significant digits in a text such as -1.25e+10. */
static int count_digits(const char *text) {
    int count = 0, trailing = 0;
    bool started = false;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9')
            continue;
        started = started || *text != '0';
        count += started;
        trailing = *text == '0' ? trailing + started : 0;
    }
    return count - trailing;
}

/* The fewest digits with which printf reads back, and its digits at that count when ours has as many. */
static void check_shortest_f64(double value) {
    char text[TN_NUMBER_TEXT], other[64];
    size_t length = tn_format_f64(value, text);
    assert_int_equal(length, strlen(text));
    assert_true(length < TN_NUMBER_TEXT);
    if (bits64(strtod(text, NULL)) != bits64(value))
        fail_msg("%a reads back differently from %s", value, text);
    double back;
    size_t used;
    assert_true(tn_parse_f64(text, length, &back, &used) && used == length && bits64(back) == bits64(value));
    int ours = count_digits(text), precision = 1;
    for (; precision < 17; precision++) {
        snprintf(other, sizeof other, "%.*e", precision - 1, value);
        if (strtod(other, NULL) == value)
            break;
    }
    if (precision < 17)
        snprintf(other, sizeof other, "%.*e", precision - 1, value);
    if (ours > precision)
        fail_msg("%a: %s is longer than %s", value, text, other);
    if (ours == precision && precision < 17 && strtod(other, NULL) == value) { /* as short: then also as close */
        long double a = fabsl(strtold(text, NULL) - (long double)value);
        long double b = fabsl(strtold(other, NULL) - (long double)value);
        if (a > b * 1.000001L && fabs(value) > 1e-300)
            fail_msg("%a: %s is further away than %s", value, text, other);
    }
}

static void check_shortest_f32(float value) {
    char text[TN_NUMBER_TEXT], other[64];
    size_t length = tn_format_f32(value, text);
    if (bits32(strtof(text, NULL)) != bits32(value))
        fail_msg("%a reads back differently from %s", (double)value, text);
    float back;
    size_t used;
    assert_true(tn_parse_f32(text, length, &back, &used) && used == length && bits32(back) == bits32(value));
    int precision = 1;
    for (; precision < 9; precision++) {
        snprintf(other, sizeof other, "%.*e", precision - 1, (double)value);
        if (strtof(other, NULL) == value)
            break;
    }
    if (count_digits(text) > precision)
        fail_msg("%a: %s is longer than %s", (double)value, text, other);
}

static const double corners[] = {
    0.1,
    1,
    10,
    100,
    0.5,
    1e23,
    9.5e22,
    5e-324,
    1e-323,
    2.2250738585072014e-308,
    2.225073858507201e-308,
    1e-5,
    1e-4,
    1.7976931348623157e308,
    9007199254740991.0,
    9007199254740992.0,
    9007199254740993.0,
    9007199254740994.0,
    1e15,
    1e16,
    1e17,
    1e21,
    1e22,
    123456.789,
    5.684341886080802e-14,
    9.5367431640625e-07,
    4503599627370496.5,
    3.14159265358979,
    2.98023223876953125e-8,
    18446744073709551616.0,
    4294967296.0,
    0.3,
    2.0 / 3.0,
    1e-7,
    299792458.0,
    6.62607015e-34,
};

static void test_format_corners(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof corners / sizeof *corners; i++) {
        check_shortest_f64(corners[i]);
        check_shortest_f64(-corners[i]);
        check_shortest_f32((float)corners[i] + 0.0f);
    }
    for (int e = 0; e < 2047; e++) /* powers of two and their neighbours: uneven gaps */
        for (int d = -1; d <= 1; d++)
            if (e || d >= 0)
                check_shortest_f64(f64_of(((uint64_t)e << 52) + (uint64_t)(int64_t)d));
    for (uint32_t e = 0; e < 255; e++)
        for (int d = -1; d <= 1; d++)
            if (e || d >= 0)
                check_shortest_f32(f32_of((e << 23) + (uint32_t)d));
    for (uint32_t i = 1; i < 300; i++) {
        check_shortest_f64(f64_of(i));
        check_shortest_f32(f32_of(i));
    }
}

static void test_format_text(void **state) {
    static const struct {
        double value;
        const char *text;
    } rows[] = {{1, "1"},
                {0.1, "0.1"},
                {-0.0, "-0"},
                {0, "0"},
                {1e30, "1e+30"},
                {INFINITY, "inf"},
                {-INFINITY, "-inf"},
                {1e15, "1000000000000000"},
                {1e16, "1e+16"},
                {0.0001, "0.0001"},
                {0.00001, "1e-05"},
                {5e-324, "5e-324"},
                {-1.5e-10, "-1.5e-10"},
                {123.456, "123.456"},
                {1e100, "1e+100"},
                {2e22, "2e+22"},
                {1200, "1200"},
                {1e23, "1e+23"}};
    char text[TN_NUMBER_TEXT];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_format_f64(rows[i].value, text);
        assert_string_equal(text, rows[i].text);
    }
    tn_format_f64((double)NAN, text);
    assert_string_equal(text, "nan");
    tn_format_f64(-(double)NAN, text);
    assert_string_equal(text, "nan");
    tn_format_f32(0.1f, text);
    assert_string_equal(text, "0.1");
    tn_format_f32(1.4e-45f, text);
    assert_string_equal(text, "1e-45");
    tn_format_f32(FLT_MAX, text);
    assert_string_equal(text, "3.4028235e+38");
    assert_int_equal(tn_format_i64(INT64_MIN, text), 20);
    assert_string_equal(text, "-9223372036854775808");
    tn_format_i64(-5, text);
    assert_string_equal(text, "-5");
    tn_format_u64(UINT64_MAX, text);
    assert_string_equal(text, "18446744073709551615");
    tn_format_u64(0, text);
    assert_string_equal(text, "0");
}

static void test_random_f64(void **state) {
    (void)state;
    for (int i = 0; i < 30000; i++) {
        double value = f64_of(next_random());
        if (isfinite(value))
            check_shortest_f64(value);
        value = (double)(int64_t)(next_random() >> (next_random() & 63)) / 1000; /* everyday sizes */
        check_shortest_f64(value);
    }
}

static void test_random_f32(void **state) {
    (void)state;
    for (int i = 0; i < 30000; i++) {
        float value = f32_of((uint32_t)next_random());
        if (isfinite(value))
            check_shortest_f32(value);
        check_shortest_f32((float)(int32_t)next_random() / 4e9f);
    }
}

static void test_digits(void **state) {
    char text[TN_NUMBER_TEXT], wanted[64];
    (void)state;
    for (int i = 0; i < 30000; i++) {
        double value = i & 1 ? f64_of(next_random()) : (double)(next_random() >> 40) / 256;
        int digits = 1 + (int)(next_random() % 17);
        if (!isfinite(value))
            continue;
        tn_format_f64_digits(value, digits, text);
        snprintf(wanted, sizeof wanted, "%.*g", digits, value);
        if (strcmp(text, wanted) != 0)
            fail_msg("%a with %d digits: %s, should be %s", value, digits, text, wanted);
    }
    tn_format_f64_digits(9.9996, 4, text);
    assert_string_equal(text, "10");
    tn_format_f64_digits(0.125, 2, text);
    assert_string_equal(text, "0.12");
    tn_format_f64_digits(-1234567, 3, text);
    assert_string_equal(text, "-1.23e+06");
    tn_format_f64_digits(1.5, -3, text);
    assert_string_equal(text, "2");
    tn_format_f64_digits((double)NAN, 3, text);
    assert_string_equal(text, "nan");
}

static void test_parse_texts(void **state) {
    static const char *const texts[] = {
        "0",
        "-0",
        "+1",
        "1.",
        ".5",
        "1e5",
        "1E5",
        "1e+5",
        "1e-5",
        "1e",
        "1e+",
        "1ex",
        "1.5.5",
        "00012.50",
        "0x",
        "0xg",
        "0x1p3",
        "0X1.8P3",
        "0x1.8",
        "0x.8p1",
        "0x1p",
        "0x1p-1074",
        "0x1p-1075",
        "0x1.8p-1075",
        "0x0.8p-1074",
        "0x1p-149",
        "0x1p-150",
        "0x1.8p-150",
        "0x1.fffffffffffff8p1023",
        "0x1.fffffffffffff7fffp1023",
        "0x1.ffffffp127",
        "0x1.fffffefp127",
        "0x1.fffffffp127",
        "0x123456789abcdef0123456789p-40",
        "0x1.00000000000008p0",
        "0x1.000000000000080000000000001p0",
        "0x1.00000000000018p0",
        "0x1.000001p0",
        "0x1.0000010000000000001p0",
        "0x0p99999999999999999999",
        "0x1p99999999999999999999",
        "0x1p-99999999999999999999",
        "0x1.p1",
        "1e308",
        "1e309",
        "1e310",
        "1e400",
        "-1e400",
        "1e-400",
        "-1e-400",
        "1e-323",
        "2e-324",
        "3e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "3.4028235e38",
        "3.4028236e38",
        "3.40282356e38",
        "3.4028235677973366e38",
        "3.4028235677973367e38",
        "7.006492321624085e-46",
        "7.0064923216240853e-46",
        "7.0064923216240862e-46",
        "9007199254740993",
        "9007199254740993.0000000000000000000001",
        "9007199254740992.9999999999999999999999",
        "16777217",
        "16777217.0000000000000001",
        "16777216.99999999999999999",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "0e99999999999999999999",
        "inf",
        "-inf",
        "Infinity",
        "INF",
        "infinit",
        "0.000000000000000000000000000000000000000000000000001",
        "123456789012345678901234567890",
        "2.2250738585072011e-308",
        "2.2250738585072012e-308",
        "8.98846567431158e307",
        "1.00000017881393432617187499",
        "1.00000017881393432617187500",
        "1.00000017881393432617187501",
        "0.000001",
        "6.0221e23abc",
        "5e-1 ",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_parse(texts[i]);
    double d = 7;
    size_t used = 9;
    static const char *const none[] = {"", "-", "+", ".", "e5", "x", " 1", "--1", "-.", "i", "na", "\xff"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_false(tn_parse_f64(none[i], strlen(none[i]), &d, &used));
        assert_int_equal(used, 0);
        assert_true(d == 7);
    }
    float f = 7; /* just above half of the smallest float: not compared with strtof, which some C libraries get wrong */
    assert_true(tn_parse_f32("0x1.000001p-150", 15, &f, &used) && bits32(f) == 1 && used == 15);
    assert_true(tn_parse_f64("nan", 3, &d, &used) && isnan(d) && used == 3);
    assert_true(tn_parse_f64("-NaN(1)", 7, &d, &used) && isnan(d) && signbit(d) && used == 4);
    assert_true(tn_parse_f64("12345", 2, &d, &used) && d == 12 && used == 2); /* never past the length */
    assert_true(tn_parse_f64("1e55", 2, &d, &used) && d == 1 && used == 1);
    assert_true(tn_parse_f64("infinity", 5, &d, &used) && used == 3);
}

static void test_parse_random(void **state) {
    char text[1100];
    (void)state;
    for (int i = 0; i < 50000; i++) {
        size_t n = 0;
        int digits = 1 + (int)(next_random() % (i % 100 == 0 ? 900 : 40));
        int point = (int)(next_random() % 44);
        for (int k = 0; k < digits; k++) {
            if (k == point)
                text[n++] = '.';
            text[n++] = (char)('0' + next_random() % 10);
        }
        int range = i % 3 == 0 ? 700 : 60;
        snprintf(text + n, sizeof text - n, "e%d", (int)(next_random() % (unsigned)range) - range / 2);
        check_parse(text);
    }
}

/* Exactly half-way between two neighbours, and a last digit to either side. */
static void test_parse_halfway(void **state) {
    static char text[1400];
    (void)state;
    for (int i = 0; i < 6000; i++) {
        uint64_t bits = next_random() & INT64_MAX;
        if (i % 4 == 0)
            bits &= (UINT64_C(1) << 53) - 1; /* the smallest numbers */
        if (i % 4 == 1)
            bits = bits % (UINT64_C(1) << 58) + (UINT64_C(1005) << 52);
        double low = f64_of(bits), high = f64_of(bits + 1);
        if (!isfinite(high))
            continue;
        long double half = ((long double)low + (long double)high) / 2; /* exact in 64 bits of mantissa */
        int length = snprintf(text, sizeof text - 40, "%.1200Le", half);
        check_parse(text);
        char *e = strchr(text, 'e'), exponent[16];
        assert_true(length > 0 && e);
        snprintf(exponent, sizeof exponent, "%s", e);
        snprintf(e, 40, "00001%s", exponent); /* just above */
        check_parse(text);
        for (char *c = e - 1; c > text; c--) /* just below: one less in the last place */
            if (*c >= '1' && *c <= '9') {
                (*c)--;
                snprintf(c + 1, 40, "999%s", exponent);
                break;
            }
        check_parse(text);
        float flow = f32_of((uint32_t)(bits & 0x7F7FFFFE)), fhigh = f32_of((uint32_t)(bits & 0x7F7FFFFE) + 1);
        snprintf(text, sizeof text, "%.200e", ((double)flow + (double)fhigh) / 2);
        check_parse(text);
    }
}

static void test_parse_hostile(void **state) {
    const size_t length = 4000000;
    char *text = malloc(length + 32);
    double d;
    size_t used;
    (void)state;
    assert_non_null(text);
    clock_t start = clock();
    memset(text, '9', length);
    assert_true(tn_parse_f64(text, length, &d, &used) && isinf(d) && used == length);
    memset(text, '0', length);
    memcpy(text, "0.", 2);
    memcpy(text + length, "125e4000000", 11);
    assert_true(tn_parse_f64(text, length + 11, &d, &used) && d == 12.5 && used == length + 11);
    memset(text, '7', length);
    text[1] = '.';
    assert_true(tn_parse_f64(text, length, &d, &used) && d == 7.7777777777777777777);
    memset(text, '0', length);
    text[0] = '1';
    memcpy(text + length, "e-3999999", 9);
    assert_true(tn_parse_f64(text, length + 9, &d, &used) && d == 1.0);
    memcpy(text, "9007199254740993.", 17); /* half-way, decided by the last of millions of digits */
    text[length - 1] = '0';
    assert_true(tn_parse_f64(text, length, &d, &used) && d == 9007199254740992.0);
    text[length - 1] = '1';
    assert_true(tn_parse_f64(text, length, &d, &used) && d == 9007199254740994.0);
    memset(text, 'f', length);
    memcpy(text, "0x", 2);
    assert_true(tn_parse_f64(text, length, &d, &used) && isinf(d));
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 3.0);
    free(text);
}

static void test_parse_integers(void **state) {
    int64_t i = 0;
    uint64_t u = 0;
    size_t used;
    (void)state;
    assert_true(tn_parse_i64("-9223372036854775808x", 21, &i, &used) && i == INT64_MIN && used == 20);
    assert_true(tn_parse_i64("9223372036854775807", 19, &i, &used) && i == INT64_MAX);
    i = 5;
    assert_false(tn_parse_i64("9223372036854775808", 19, &i, &used));
    assert_false(tn_parse_i64("-9223372036854775809", 20, &i, &used));
    assert_int_equal(used, 20);
    assert_false(tn_parse_i64("99999999999999999999999", 23, &i, &used));
    assert_false(tn_parse_i64("-", 1, &i, &used));
    assert_int_equal(used, 0);
    assert_false(tn_parse_i64("", 0, &i, &used));
    assert_false(tn_parse_i64("x1", 2, &i, &used));
    assert_int_equal(i, 5);
    assert_true(tn_parse_i64("+00042", 6, &i, &used) && i == 42 && used == 6);
    assert_true(tn_parse_u64("18446744073709551615", 20, &u, &used) && u == UINT64_MAX);
    assert_false(tn_parse_u64("18446744073709551616", 20, &u, &used));
    assert_false(tn_parse_u64("-1", 2, &u, &used));
    assert_true(tn_parse_u64("12", 1, &u, &used) && u == 1 && used == 1);
}

static void test_parse_sizes(void **state) {
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},
                {"4096", 4096},
                {"4096B", 4096},
                {"64MiB", 64u << 20},
                {"1.5G", 1500000000},
                {"1.5GiB", 1610612736},
                {"2k", 2000},
                {"2KB", 2000},
                {"2KiB", 2048},
                {"1T", 1000000000000},
                {"16777215TiB", 16777215ull << 40},
                {"0.3KiB", 307},
                {"0.000000000000000000000000001T", 0},
                {"18446744073709551615", UINT64_MAX}};
    static const char *const bad[] = {"",
                                      "B",
                                      "-1",
                                      "1.",
                                      ".5",
                                      "1X",
                                      "1KK",
                                      "1Ki",
                                      "1 K",
                                      "1iB",
                                      "K",
                                      "1Bx",
                                      "1e3",
                                      "16777216TiB",
                                      "18446744073709551616",
                                      "99999999999T",
                                      "1.5.5K"};
    uint64_t bytes;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!tn_parse_size(good[i].text, &bytes) || bytes != good[i].bytes)
            fail_msg("%s is not %llu", good[i].text, (unsigned long long)good[i].bytes);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (tn_parse_size(bad[i], &bytes))
            fail_msg("'%s' is taken for a size", bad[i]);
}

static void test_arithmetic(void **state) {
    int64_t i = 3;
    size_t s = 3;
    (void)state;
    assert_false(tn_add_i64(INT64_MAX, 1, &i));
    assert_false(tn_add_i64(INT64_MIN, -1, &i));
    assert_false(tn_mul_i64(INT64_MIN, -1, &i));
    assert_false(tn_mul_size(SIZE_MAX / 2 + 1, 2, &s));
    assert_true(i == 3 && s == 3);
    assert_true(tn_add_i64(INT64_MAX, INT64_MIN, &i) && i == -1);
    assert_true(tn_mul_i64(-3, 7, &i) && i == -21);
    assert_true(tn_mul_size(3, 7, &s) && s == 21);
}

/* Whatever the host did to rounding and locale, the text is the same. */
static void test_host_modes(void **state) {
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    char text[TN_NUMBER_TEXT];
    double d;
    size_t used;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        fesetround(modes[i]);
        bool ok = tn_parse_f64("0.1", 3, &d, &used) && bits64(d) == 0x3FB999999999999Au;
        tn_format_f64(f64_of(0x3FB999999999999Au), text);
        ok = ok && strcmp(text, "0.1") == 0;
        tn_format_f64_digits(f64_of(0x3FD5555555555555u), 4, text);
        fesetround(FE_TONEAREST);
        assert_true(ok);
        assert_string_equal(text, "0.3333");
    }
    char folder[] = "/tmp/tenon-locale-XXXXXX", command[128];
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/comma >/dev/null 2>&1", folder);
    if (system(command) != 0)
        print_message("localedef makes no locale here\n");
    setenv("LOCPATH", folder, 1);
    bool comma = setlocale(LC_NUMERIC, "comma") || setlocale(LC_NUMERIC, "de_DE.UTF-8");
    comma = comma && strtod("1,5", NULL) == 1.5;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0 || !comma)
        print_message("no locale with a decimal comma here: 1 check skipped\n");
    tn_format_f64(1.5, text);
    bool ok = strcmp(text, "1.5") == 0 && tn_parse_f64("1.5", 3, &d, &used) && d == 1.5 && used == 3;
    setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
    assert_true(ok);
}

int main(void) {
    const char *seed = getenv("TENON_TEST_SEED");
    if (seed)
        rng = strtoull(seed, NULL, 0);
    print_message("seed %llu (TENON_TEST_SEED)\n", (unsigned long long)rng);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_format_text),   cmocka_unit_test(test_format_corners),
        cmocka_unit_test(test_random_f64),    cmocka_unit_test(test_random_f32),
        cmocka_unit_test(test_digits),        cmocka_unit_test(test_parse_texts),
        cmocka_unit_test(test_parse_random),  cmocka_unit_test(test_parse_halfway),
        cmocka_unit_test(test_parse_hostile), cmocka_unit_test(test_parse_integers),
        cmocka_unit_test(test_parse_sizes),   cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_host_modes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
