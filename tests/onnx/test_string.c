/* Operators on strings: splitting, joining, normalising, patterns, n-grams; numbers as text and back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "onnx/regex.h"
#include "support/one_node.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define TEXTS(...) ((const char *const[]){__VA_ARGS__})

static void check(tn_status status) {
    if (status != TN_OK)
        fail_msg("%s", tn_error_message());
}

static void is_text(const tn_tensor *t, int64_t i, const char *wanted) {
    tn_string s;
    check(tn_tensor_get_string(t, i, &s));
    if (s.length != strlen(wanted) || memcmp(s.data, wanted, s.length) != 0)
        fail_msg("element %d is '%.*s', not '%s'", (int)i, (int)s.length, s.data, wanted);
}

/* Runs on one tensor of strings (destroyed). */
static tn_tensor *runs(const char *op, int opset, tn_text attrs, node_form form, tn_tensor *in, const char *outputs,
                       tn_tensor **out) {
    check(run_one_node(op, opset, attrs, form, 1, &in, outputs, out));
    tn_tensor_destroy(in);
    return out[0];
}

/* --- splitting, joining --------------------------------------------------------------------------------------------------------- */

static void test_split(void **state) {
    (void)state;
    static const struct {
        const char *text, *delimiter;
        int most; /* -1: no limit */
        int count;
        const char *piece[4];
    } cases[] = {
        {" a  b\tc\n", "", -1, 3, {"a", "b", "c"}},
        {" a  b c ", "", 1, 2, {"a", "b c "}},
        {" a ", "", 0, 1, {"a "}},
        {"a\xe2\x80\x83\x62", "", -1, 2, {"a", "b"}}, /* an em space */
        {"", "", -1, 0, {NULL}},
        {"", ",", -1, 1, {""}},
        {",a,,b", ",", -1, 4, {"", "a", "", "b"}},
        {"a--b--c", "--", 1, 2, {"a", "b--c"}},
        {"a--b", "--", 0, 1, {"a--b"}},
        {"a---", "--", -1, 2, {"a", "-"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_text attrs = message();
        tn_tensor *out[2];
        attr_text(&attrs, "delimiter", cases[i].delimiter);
        if (cases[i].most >= 0)
            attr_int(&attrs, "maxsplit", cases[i].most);
        runs("StringSplit", 20, attrs, i & 1 ? NODE_FREE : NODE_KNOWN, string_tensor(1, DIMS(1), &cases[i].text), "y,z",
             out);
        assert_int_equal(out[0]->dims[1], cases[i].count);
        assert_int_equal(tn_tensor_get_i64(out[1], 0), cases[i].count);
        for (int k = 0; k < cases[i].count; k++)
            is_text(out[0], k, cases[i].piece[k]);
        tn_tensor_destroy(out[0]);
        tn_tensor_destroy(out[1]);
    }
}

static void test_concat(void **state) {
    (void)state;
    for (int form = 0; form < 3; form++) {
        tn_tensor *in[2] = {string_tensor(2, DIMS(2, 1), TEXTS("a", "")), string_tensor(1, DIMS(2), TEXTS("x", "yz"))},
                  *out;
        check(run_one_node("StringConcat", 20, message(), (node_form)form, 2, in, "y", &out));
        is_text(out, 0, "ax");
        is_text(out, 1, "ayz");
        is_text(out, 2, "x");
        is_text(out, 3, "yz");
        tn_tensor_destroy(in[0]);
        tn_tensor_destroy(in[1]);
        tn_tensor_destroy(out);
    }
}

static void test_normalize(void **state) {
    (void)state;
    tn_text attrs = message();
    tn_tensor *out;
    attr_text(&attrs, "case_change_action", "UPPER");
    attr_texts(&attrs, "stopwords", 2, TEXTS("MONDAY", "\xc3\xa9t\xc3\xa9")); /* été */
    runs(
        "StringNormalizer", 10, attrs, NODE_FREE,
        string_tensor(2, DIMS(1, 4), TEXTS("Monday", "stra\xc3\x9f\x65 \xce\xa3\xcf\x82\xff", "\xc3\x89T\xc3\x89", "")),
        "y", &out);
    assert_int_equal(out->dims[1], 2);
    is_text(out, 0, "STRA\xc3\x9f\x45 \xce\xa3\xce\xa3\xff"); /* one letter for one; bytes that are no UTF-8 stay */
    is_text(out, 1, "");
    tn_tensor_destroy(out);
    attrs = message();
    attr_int(&attrs, "is_case_sensitive", 1);
    attr_texts(&attrs, "stopwords", 1, TEXTS("a"));
    runs("StringNormalizer", 10, attrs, NODE_KNOWN, string_tensor(1, DIMS(2), TEXTS("A", "a")), "y", &out);
    assert_int_equal(out->count, 1);
    is_text(out, 0, "A");
    tn_tensor_destroy(out);
    attrs = message();
    attr_texts(&attrs, "stopwords", 1, TEXTS("a"));
    runs("StringNormalizer", 10, attrs, NODE_KNOWN, string_tensor(1, DIMS(2), TEXTS("A", "a")), "y", &out);
    assert_int_equal(out->count, 1); /* none is left: one that is empty */
    is_text(out, 0, "");
    tn_tensor_destroy(out);
    attrs = message();
    attr_text(&attrs, "case_change_action", "LOWER");
    attr_text(&attrs, "locale", "tr_TR.UTF-8");
    runs("StringNormalizer", 10, attrs, NODE_KNOWN, string_tensor(1, DIMS(1), TEXTS("I\xc4\xb0")), "y", &out);
    is_text(out, 0, "\xc4\xb1i");
    tn_tensor_destroy(out);
}

/* --- patterns --------------------------------------------------------------------------------------------------------------------- */

static void test_patterns(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *yes, *no; /* NULL: nothing to try */
    } cases[] = {
        {"", "", "a"},
        {"abc", "abc", "abcd"},
        {"a|b|", "", "c"},
        {"(ab|c)*", "abcab", "abca"},
        {"a+?b??c*?", "aabccc", "bc"},
        {"(?:a{2,3}){2}", "aaaaa", "aaa"},
        {"a{0}b", "b", "ab"},
        {"a{,3}", "a{,3}", "aaa"}, /* no repetition */
        {"x{2", "x{2", "xx"},
        {".", "\xe2\x82\xac", "\n"},
        {".", "a", "\xff"},
        {"(?s).", "\n", ""},
        {"[^a]", "\n", "a"},
        {"[]a-c-]+", "]b-", "d"},
        {"[a\\-z]+", "a-z", "b"},
        {"[[:alpha:]\\d]+", "aB3", "_"},
        {"[[:^space:]]", "a", " "},
        {"[^\\D5]", "4", "5"},
        {"\\w+\\s\\S", "a_1 x", "- x"},
        {"\\pL\\p{Lu}\\P{N}", "\xc3\xa9\xc3\x89x", "\xc3\xa9\xc3\xa9x"},
        {"\\p{^L}", "1", "a"},
        {"(?i)stra\xc3\x9f\x65", "STRA\xc3\x9f\x45", "strasse"},
        {"(?i)k", "\xe2\x84\xaa", "l"}, /* the Kelvin sign */
        {"(?i)[^k]", "l", "K"},
        {"(?i:a)b", "Ab", "AB"},
        {"a(?i)b|c", "aB", "A"},
        {"a(?i)b|c", "C", "AB"},
        {"(?P<word>a)(?<more>b)", "ab", "a"},
        {"^a$", "a", "a\n"},
        {"(?m)a$\n^b", "a\nb", "ab"},
        {"a\\b b", "a b", "ab"},
        {"a\\Bb\\z", "ab", "a"},
        {"\\Aab", "ab", "b"},
        {"\\x41\\x{20ac}\\101\\n\\.", "A\xe2\x82\xac\x41\n.", ""},
        {"\\Qa.b*\\E+", "a.b**", "a.b"},
        {"(?U)a*", "aaa", "b"},
        {"(a*)*", "aaaa", "b"},
        {"(|a)+", "aa", "b"},
        {"(\\w+\\.)*\\w+@(\\w+\\.)+\\w{2,}", "a.b@c.org", "a@b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_regex *r = tn_regex_compile(NULL, cases[i].pattern, strlen(cases[i].pattern));
        if (!r)
            fail_msg("%s: %s", cases[i].pattern, tn_error_message());
        if (!tn_regex_matches(r, cases[i].yes, strlen(cases[i].yes)))
            fail_msg("%s does not match '%s'", cases[i].pattern, cases[i].yes);
        if (tn_regex_matches(r, cases[i].no, strlen(cases[i].no)))
            fail_msg("%s matches '%s'", cases[i].pattern, cases[i].no);
        tn_regex_destroy(r);
    }
}

static void test_bad_patterns(void **state) {
    (void)state;
    static const struct {
        const char *pattern;
        tn_status status;
    } cases[] = {
        {"(", TN_ERR_MODEL},
        {")", TN_ERR_MODEL},
        {"a)", TN_ERR_MODEL},
        {"[a", TN_ERR_MODEL},
        {"[b-a]", TN_ERR_MODEL},
        {"*", TN_ERR_MODEL},
        {"a**", TN_ERR_MODEL},
        {"a{1001}", TN_ERR_MODEL},
        {"a{3,2}", TN_ERR_MODEL},
        {"\\", TN_ERR_MODEL},
        {"\\1", TN_ERR_MODEL},
        {"(?=a)", TN_ERR_MODEL},
        {"(?<=a)", TN_ERR_MODEL},
        {"\\Z", TN_ERR_MODEL},
        {"(?i", TN_ERR_MODEL},
        {"(?P<a", TN_ERR_MODEL},
        {"\\x{110000}", TN_ERR_MODEL},
        {"[[:foo:]]", TN_ERR_MODEL},
        {"\xff", TN_ERR_MODEL},
        {"\\p{Greek}", TN_ERR_UNSUPPORTED},
        {"\\C", TN_ERR_UNSUPPORTED},
        {"((a{100}){100}){100}", TN_ERR_MODEL},
        {"(((){1000}){1000}){1000}", TN_ERR_MODEL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_regex *r = tn_regex_compile(NULL, cases[i].pattern, strlen(cases[i].pattern));
        if (r || tn_error_status() != cases[i].status)
            fail_msg("%s: %s", cases[i].pattern, r ? "taken" : tn_error_message());
        tn_regex_destroy(r);
    }
    char deep[4001];
    memset(deep, '(', 2000);
    memset(deep + 2000, ')', 2000);
    deep[4000] = 0;
    assert_null(tn_regex_compile(NULL, deep, 4000));
}

/* Where backtracking takes for ever. */
static void test_pattern_time(void **state) {
    (void)state;
    static char text[20001];
    memset(text, 'a', 20000);
    tn_regex *r = tn_regex_compile(NULL, "(a*)*(a|aa)*(a?){50}b", 21);
    assert_non_null(r);
    assert_false(tn_regex_matches(r, text, 20000));
    tn_regex_destroy(r);
}

static void test_full_match(void **state) {
    (void)state;
    tn_text attrs = message();
    tn_tensor *out;
    attr_text(&attrs, "pattern", "\\d+");
    runs("RegexFullMatch", 20, attrs, NODE_FREE, string_tensor(2, DIMS(1, 2), TEXTS("12", "1a")), "y", &out);
    assert_int_equal(out->dtype, TN_BOOL);
    assert_int_equal(tn_tensor_get_i64(out, 0), 1);
    assert_int_equal(tn_tensor_get_i64(out, 1), 0);
    tn_tensor_destroy(out);
}

/* --- n-grams ---------------------------------------------------------------------------------------------------------------------- */

static void put_weights(tn_text *attrs, uint32_t count, const float *values) {
    tn_text a = message();
    put_text(&a, 1, "weights");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], 4);
        const char bytes[5] = {(char)(7 << 3 | 5), (char)bits, (char)(bits >> 8), (char)(bits >> 16),
                               (char)(bits >> 24)};
        tn_text_bytes(&a, bytes, 5);
    }
    tn_wire_put_varint(&a, 20, 6);
    put_message(attrs, 5, a);
}

/* Pool: x, y | x y, y z. Weights and columns are those of the n-grams in this order. */
static tn_text pool_attrs(const char *mode) {
    tn_text attrs = message();
    attr_texts(&attrs, "pool_strings", 6, TEXTS("x", "y", "x", "y", "y", "z"));
    attr_ints(&attrs, "ngram_counts", 2, DIMS(0, 2));
    attr_ints(&attrs, "ngram_indexes", 4, DIMS(3, 0, 1, 4));
    put_weights(&attrs, 4, (const float[]){10, 20, 30, 40});
    attr_int(&attrs, "min_gram_length", 1);
    attr_int(&attrs, "max_gram_length", 2);
    attr_int(&attrs, "max_skip_count", 1);
    attr_text(&attrs, "mode", mode);
    return attrs;
}

static void test_ngrams(void **state) {
    (void)state;
    static const char *const modes[] = {"TF", "IDF", "TFIDF"};
    /* x y q z y: x once, y twice; "x y" at distance 1; "y z" at distance 2 */
    static const double wanted[3][5] = {{2, 1, 0, 1, 1}, {20, 30, 0, 10, 40}, {40, 30, 0, 10, 40}};
    for (int i = 0; i < 3; i++) {
        tn_tensor *out;
        runs("TfIdfVectorizer", 9, pool_attrs(modes[i]), NODE_FREE,
             string_tensor(2, DIMS(1, 5), TEXTS("x", "y", "q", "z", "y")), "y", &out);
        assert_int_equal(out->dims[1], 5);
        for (int64_t k = 0; k < 5; k++)
            assert_true(tn_tensor_get_f64(out, k) == wanted[i][k]);
        tn_tensor_destroy(out);
    }
}

/* --- numbers as text -------------------------------------------------------------------------------------------------------------- */

static tn_text cast_to(tn_dtype to) {
    tn_text attrs = message();
    attr_int(&attrs, "to", to);
    return attrs;
}

static void test_numbers_to_text(void **state) {
    (void)state;
    static const struct {
        tn_dtype dtype;
        double value;
        const char *text;
    } cases[] = {
        {TN_F32, 314.15926, "314.15927"},
        {TN_F64, 314.15926, "314.15926"},
        {TN_F32, 0.1, "0.1"},
        {TN_F32, 3, "3"},
        {TN_F32, -INFINITY, "-INF"},
        {TN_F64, INFINITY, "INF"},
        {TN_F16, NAN, "NaN"},
        {TN_I8, -128, "-128"},
        {TN_BOOL, 1, "1"},
        {TN_U4, 15, "15"},
        {TN_F8E5M2, 0.5, "0.5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_tensor *in = tn_tensor_create(cases[i].dtype, 0, NULL), *out;
        tn_store_f64(cases[i].dtype, in->data, 0, cases[i].value);
        is_text(runs("Cast", 25, cast_to(TN_STRING), NODE_KNOWN, in, "y", &out), 0, cases[i].text);
        tn_tensor_destroy(out);
    }
    tn_tensor *in = tn_tensor_create(TN_U64, 0, NULL), *out;
    *(uint64_t *)in->data = UINT64_MAX;
    is_text(runs("Cast", 25, cast_to(TN_STRING), NODE_KNOWN, in, "y", &out), 0, "18446744073709551615");
    tn_tensor_destroy(out);
}

static void test_text_to_numbers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        tn_dtype to;
        double value;
    } cases[] = {
        {"100.5", TN_F32, 100.5},
        {"1e-5", TN_F64, 1e-5},
        {"1E8", TN_F32, 1e8},
        {"+INF", TN_F32, INFINITY},
        {"inf", TN_F64, INFINITY},
        {"-Inf", TN_F16, -INFINITY},
        {"nAn", TN_F32, NAN},
        {" 5 ", TN_F32, 5},
        {"100.5", TN_I32, 100},
        {"-7", TN_I64, -7},
        {"300", TN_I8, 44},
        {"+3", TN_U8, 3},
        {"1e3", TN_I32, 1000},
        {"-3", TN_I4, -3},
        {"2", TN_BOOL, 1},
        {"0", TN_BOOL, 0},
        {"9007199254740993", TN_I64, 9007199254740993.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_tensor *out;
        runs("Cast", 25, cast_to(cases[i].to), i & 1 ? NODE_FREE : NODE_KNOWN,
             string_tensor(1, DIMS(1), &cases[i].text), "y", &out);
        double value = tn_tensor_get_f64(out, 0);
        if (isnan(cases[i].value) ? !isnan(value) : value != cases[i].value)
            fail_msg("'%s' is read wrongly", cases[i].text);
        tn_tensor_destroy(out);
    }
    static const char *const bad[] = {"", "Hello", "1x", "--1", "1 2"};
    for (size_t i = 0; i < 5; i++) {
        tn_tensor *in = string_tensor(0, NULL, &bad[i]), *out;
        assert_int_equal(run_one_node("Cast", 25, cast_to(TN_F32), NODE_KNOWN, 1, &in, "y", &out), TN_ERR_INPUT);
        tn_tensor_destroy(in);
    }
}

/* Text beyond a type's range becomes its largest number, or without `saturate` what the table of Cast says; f8e8m0 rounds as asked for. */
static void test_text_to_small_floats(void **state) {
    (void)state;
    static const struct {
        const char *text, *round;
        tn_dtype to;
        int saturate;
        double value;
    } cases[] = {
        {"INF", NULL, TN_F8E4M3FNUZ, 1, 240},    {"INF", NULL, TN_F8E4M3FNUZ, 0, NAN},
        {"-INF", NULL, TN_F8E4M3FN, 1, -448},    {"1e9", NULL, TN_F8E4M3FN, 0, NAN},
        {"-1e9", NULL, TN_F8E5M2, 0, -INFINITY}, {"-1e9", NULL, TN_F8E5M2, 1, -57344},
        {"1e9", NULL, TN_F8E5M2FNUZ, 0, NAN},    {"1.5", NULL, TN_F8E5M2FNUZ, 0, 1.5},
        {"3", "down", TN_F8E8M0, 1, 2},          {"3", "up", TN_F8E8M0, 1, 4},
        {"2.9", "nearest", TN_F8E8M0, 1, 2},     {"3", "nearest", TN_F8E8M0, 0, 4},
        {"1e60", "down", TN_F8E8M0, 0, NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_tensor *out;
        tn_text attrs = cast_to(cases[i].to);
        attr_int(&attrs, "saturate", cases[i].saturate);
        if (cases[i].round != NULL)
            attr_text(&attrs, "round_mode", cases[i].round);
        runs("Cast", 25, attrs, i & 1 ? NODE_FREE : NODE_KNOWN, string_tensor(1, DIMS(1), &cases[i].text), "y", &out);
        double value = tn_tensor_get_f64(out, 0);
        if (isnan(cases[i].value) ? !isnan(value) : value != cases[i].value)
            fail_msg("case %d: '%s' is %g, not %g", (int)i, cases[i].text, value, cases[i].value);
        tn_tensor_destroy(out);
    }
}

/* --- dropout ---------------------------------------------------------------------------------------------------------------------- */

/* RandomState(0).random_sample(4) is 0.5488135, 0.71518937, 0.60276338, 0.54488318. */
static void test_dropout(void **state) {
    (void)state;
    for (int form = 0; form < 3; form++)
        for (int on = 0; on < 2; on++) {
            tn_text attrs = message();
            attr_int(&attrs, "seed", 0);
            tn_tensor *in[3] = {tn_tensor_from_f32(1, DIMS(4), (const float[]){1, 2, 3, 4}),
                                tn_tensor_from_f32(0, NULL, (const float[]){0.6f}), tn_tensor_create(TN_BOOL, 0, NULL)},
                      *out[2];
            *(uint8_t *)in[2]->data = (uint8_t)on;
            check(run_one_node("Dropout", 13, attrs, (node_form)form, 3, in, "y,m", out));
            for (int64_t i = 0; i < 4; i++) {
                bool kept = !on || i == 1 || i == 2;
                float wanted = kept ? (float)(i + 1) * (on ? 1 / (1 - 0.6f) : 1) : 0;
                assert_int_equal(tn_tensor_get_i64(out[1], i), kept);
                assert_true((float)tn_tensor_get_f64(out[0], i) == wanted);
            }
            for (int i = 0; i < 3; i++)
                tn_tensor_destroy(in[i]);
            tn_tensor_destroy(out[0]);
            tn_tensor_destroy(out[1]);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_concat),
        cmocka_unit_test(test_normalize),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_bad_patterns),
        cmocka_unit_test(test_pattern_time),
        cmocka_unit_test(test_full_match),
        cmocka_unit_test(test_ngrams),
        cmocka_unit_test(test_numbers_to_text),
        cmocka_unit_test(test_text_to_numbers),
        cmocka_unit_test(test_text_to_small_floats),
        cmocka_unit_test(test_dropout),
    };
    return cmocka_run_group_tests_name("onnx/string", tests, NULL, NULL);
}
