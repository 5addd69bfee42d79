/* The text form: it prints and parses back exactly; wrong texts are refused with line and column. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/os.h"
#include "ir/text.h"
#include "support/binary_checks.h"
#include "support/toy_ops.h"

static tn_graph *parse(const char *text) {
    return tn_graph_parse_with(NULL, toy_ops(), text, strlen(text));
}

/* print(g) parses, verifies, equals g, and prints the same bytes; its binary form reads as the same. */
static void round_trip(const tn_graph *g) {
    char *first = tn_graph_print(g);
    if (!first)
        fail_msg("%s", tn_error_message());
    tn_graph *back = parse(first);
    if (!back)
        fail_msg("%s\n%s", tn_error_message(), first);
    char *second = tn_graph_print(back);
    assert_non_null(second);
    assert_string_equal(first, second);
    if (!tn_graph_equal(g, back) || !tn_graph_equal(back, g))
        fail_msg("%s\n%s", tn_error_message(), first);
    if (!binary_survives(g, NULL))
        fail_msg("the binary form: %s\n%s", tn_error_message(), first);
    tn_graph_free_text(back, second);
    tn_graph_free_text(g, first);
    tn_graph_destroy(back);
}

/* `text` is in canonical form: it parses and prints as it is. */
static void canonical(const char *text) {
    tn_graph *g = parse(text);
    if (!g)
        fail_msg("%s\n%s", tn_error_message(), text);
    char *printed = tn_graph_print(g);
    assert_non_null(printed);
    assert_string_equal(printed, text);
    tn_graph_free_text(g, printed);
    round_trip(g);
    tn_graph_destroy(g);
}

static void refused(const char *text, const char *message) {
    tn_error_clear();
    tn_graph *g = parse(text);
    if (g)
        fail_msg("accepted: %s", text);
    if (!strstr(tn_error_message(), message))
        fail_msg("expected \"%s\" in\n%s\nfor\n%s", message, tn_error_message(), text);
}

#define MAIN(body) "tenon 1\ngraph (%1 \"x\": f32[2]) -> () {\n" body "  return()\n}\n"

static void whole_graph(void **state) {
    (void)state;
    canonical("tenon 1\ngraph () -> () {\n  return()\n}\n");
    canonical("tenon 1\n"
              "metadata \"producer\" = \"a \\\"quoted\\\" name\\n\"\n"
              "metadata \"empty\" = \"\"\n"
              "symbol N [0, 9223372036854775807]\n"
              "symbol `batch size` [1, 64]\n"
              "symbol u1 [0, 1000] fresh\n"
              "function \"first\" (%1: f32[N]) {\n"
              "  return(%1)\n"
              "}\n"
              "function \"second\" (%2: f32[N]) {\n"
              "  %3 = call(%2) {callee = function \"first\"} : f32[N]\n"
              "  return(%3)\n"
              "}\n"
              "graph (%4 \"x\": f32[N], %5 \"y\": f32[`batch size`, 3] = f32[2, 3] [0, 1, -0, inf, nan, 1e-45]) -> "
              "(\"out\", \"n\") {\n"
              "  !1 %6 \"h\" = pair(%4, %4) : f32[N] \"sum\" @\"app.c\":12 @\"Conv\"(\"conv1\", \"model.onnx\")\n"
              "  %7 = size(%6) : i64[u1] role debug device 3\n"
              "  %8 = shaped() {shape = dims [2*u1, N + 3]} : f32[2*u1, N + 3]\n"
              "  %9 = tuned(%6) {level = 3, mode = \"two\", scale = 0.1f} : f32[N]\n"
              "  %10, %11 \"named\" = any(_, %6, _) {odd = 1, \"odd key\" = \"\\x00\\xff\"} : ?, seq(optional(map(i64, "
              "f32[*])))\n"
              "  open()\n"
              "    region () {\n"
              "      !2 %12 = pair(%4, %6) : f32[N]\n"
              "      effect(%12) after(!2) role gradient\n"
              "      return()\n"
              "    }\n"
              "  any()\n"
              "    region (%13 \"arg\": f32[]) {\n"
              "      return(%13)\n"
              "    }\n"
              "    region () {\n"
              "      return()\n"
              "    }\n"
              "  op \"odd name!\"() \"label\"\n"
              "  op \"region\"()\n"
              "  effect(%8, %9) after(!1) @\"\"(\"only a name\", \"\") @\"f\" @\"what\"(\"\", \"file\":7)\n"
              "  return(%6, %7) \"the end\" @\"app.c\":99\n"
              "}\n");
}

static void types(void **state) {
    (void)state;
    for (int d = 1; d < TN_DTYPE_COUNT; d++) {
        char text[512];
        const char *n = tn_dtype_name((tn_dtype)d);
        snprintf(text, sizeof text,
                 "tenon 1\nsymbol N [0, 7]\ngraph (%%1 \"a\": %s[], %%2 \"b\": %s[*], %%3 \"c\": %s[N, 4], %%4 \"d\": "
                 "map(%s, ?), "
                 "%%5 \"e\": seq(%s[0])) -> () {\n  return()\n}\n",
                 n, n, n, n, n);
        canonical(text);
    }
    canonical("tenon 1\ngraph (%1 \"x\": ?, %2 \"y\": seq(?), %3 \"z\": optional(seq(map(string, f32[1])))) -> () {\n  "
              "return()\n}\n");
    char deep[2048] = "tenon 1\ngraph (%1 \"x\": ";
    for (int i = 0; i < TN_MAX_NESTING; i++)
        strcat(deep, "seq(");
    strcat(deep, "f32[]");
    for (int i = 0; i < TN_MAX_NESTING; i++)
        strcat(deep, ")");
    strcat(deep, ") -> () {\n  return()\n}\n");
    canonical(deep);
}

static void attributes(void **state) {
    (void)state;
    canonical(
        MAIN("  any() {a = 0, b = -9223372036854775808, c = 9223372036854775807}\n"
             "  any() {a = 1.0, b = -0.0, c = 0.1, d = 0.1f, e = inf, f = -inf, g = nan, h = 1e+300, i = 5e-324, j = "
             "0.333333343267441}\n"
             "  any() {a = bits(0x7ff8000000000001), b = bits(0xfff8000000000000), c = bits(0x7ff0000000000001)}\n"
             "  any() {a = \"\", b = \"two\\nlines\\t\\\"\\\\\\x00\\x7f\\xff\", c = \"\xc3\xa9\"}\n"
             "  any() {a = f32, b = none, c = f8e4m3fn, d = string}\n"
             "  any() {a = [], b = [1, -2, 3], c = floats [], d = floats [1, 0.1, -0, nan, bits(0x7fc00001)]}\n"
             "  any() {a = strings [], b = strings [\"\", \"x\", \"\\x00\"], c = dims [], d = dims [4, 0, -1]}\n"
             "  any() {a = type f32[4, 5], b = type ?, c = type seq(i64[*])}\n"));
}

static void tensors(void **state) {
    (void)state;
    canonical(MAIN(
        "  any() {a = f32[] [1], b = f32[2] [1, 0.1], c = f32[0] [], d = f32[2, 1, 2] [1, 2, 3, 4], e = f32[0, "
        "9000000000000] []}\n"
        "  any() {a = u8[3] [0, 7, 255], b = i8[2] [-128, 127], c = u64[1] [18446744073709551615], d = i64[1] "
        "[-9223372036854775808]}\n"
        "  any() {a = bool[3] [true, false, bits(0x2)], b = string[2] [\"a\", \"\\x00b\"], c = string[] [\"\"]}\n"
        "  any() {a = f16[4] [1, -0, inf, 65504], b = bf16[2] [1, bits(0x7fc1)], c = f64[2] [0.1, "
        "bits(0x7ff8000000000001)]}\n"
        "  any() {a = c64[2] [(1, 2), (nan, -0)], b = c128[1] [(0.1, bits(0xfff8000000000000))]}\n"
        "  any() {a = u4[3] [1, 15, 0], b = i4[3] [-8, 7, 0], c = u2[5] [0, 1, 2, 3, 1], d = i2[4] [-2, -1, 0, 1]}\n"));
    canonical(MAIN("  any() {a = u8[65] base64 "
                   "\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P0A=\"}\n"));
}

/* Every bit pattern of the narrow types survives, small and large. */
static void bit_patterns(void **state) {
    (void)state;
    static const tn_dtype narrow[] = {TN_U8,     TN_I8,       TN_BOOL,       TN_F16,    TN_BF16,       TN_U16,
                                      TN_I16,    TN_F8E4M3FN, TN_F8E4M3FNUZ, TN_F8E5M2, TN_F8E5M2FNUZ, TN_F8E8M0,
                                      TN_F4E2M1, TN_U4,       TN_I4,         TN_U2,     TN_I2};
    for (size_t d = 0; d < sizeof narrow / sizeof *narrow; d++) {
        int bits = tn_dtype_bits(narrow[d]);
        for (uint32_t pattern = 0; pattern < 1u << bits; pattern++) {
            uint16_t value = (uint16_t)pattern, back = 0;
            tn_text text;
            tn_text_init(&text, NULL);
            tn_element_print(narrow[d], &value, 0, &text);
            assert_true(tn_element_parse(narrow[d], text.data, text.len, &back, 0));
            if (back != value)
                fail_msg("%s %x: %s", tn_dtype_name(narrow[d]), pattern, text.data);
            tn_text_free(&text);
        }
    }
}

static void not_canonical(void **state) {
    (void)state;
    /* free layout, comments, other numbers, declared but unused symbols */
    tn_graph *g = parse("# a comment\n tenon\n1 symbol M[0,5]symbol K [3 , 3 ]\ngraph(%900\"x\":f32 [ K ]) # here too\n"
                        "->( \"o\" ){%7=pair(%900,%900){}:f32[K]return(%7)}# end");
    if (!g)
        fail_msg("%s", tn_error_message());
    char *text = tn_graph_print(g);
    assert_string_equal(text, "tenon 1\nsymbol K [3, 3]\ngraph (%1 \"x\": f32[K]) -> (\"o\") {\n  %2 = pair(%1, %1) : "
                              "f32[K]\n  return(%2)\n}\n");
    tn_graph_free_text(g, text);
    tn_graph_destroy(g);
}

static void symbols_keep_their_form(void **state) {
    (void)state;
    /* written before the bounds that would simplify them were known */
    canonical("tenon 1\nsymbol N [1, 4]\nsymbol u7 [-5, 5] fresh\n"
              "graph (%1 \"x\": f32[N, u7]) -> () {\n  any() {d = dims [max(N, 1), min(N, 4), max(u7, 0), floordiv(N, "
              "8)]}\n  return()\n}\n");
    canonical("tenon 1\nsymbol `u1` [0, 9]\nsymbol u1 [0, 9] fresh\nsymbol `floordiv` [0, 9]\n"
              "graph (%1 \"x\": f32[`u1`, u1], %2 \"y\": f32[`floordiv` + 1]) -> () {\n  return()\n}\n");
    canonical("tenon 1\nsymbol u3 [0, 10] fresh\n"
              "graph (%1 \"n\": i64[2] holds [u3, 7]) -> () {\n  %2 = shaped() {shape = dims [u3]} : f32[u3]\n  "
              "return()\n}\n");
}

static void types_as_printed(void **state) {
    (void)state;
    /* a fresh symbol of the text, types that say less than infer does */
    canonical("tenon 1\nsymbol N [0, 9]\nsymbol u40 [0, 1000] fresh\n"
              "graph (%1 \"x\": f32[N]) -> () {\n  %2 = size(%1) : i64[u40]\n  %3 = size(%1) : i64[*]\n"
              "  %4 = size(%1) : ?\n  return()\n}\n");
    refused("tenon 1\ngraph (%1 \"x\": f32[2]) -> () {\n  %2 = size(%1) : f32[3]\n  return()\n}\n", "line 3, column 3");
    refused("tenon 1\ngraph (%1 \"x\": f32[2]) -> () {\n  %2 = size(%1) : f32[3]\n  return()\n}\n",
            "written as f32[3]");
}

static void wrong_texts(void **state) {
    (void)state;
    refused("", "line 1, column 1: expected \"tenon 1\", found the end of the text");
    refused("tenon 2\n", "version 2");
    refused("tenon x\n", "expected the version");
    refused("tenon 1\n", "found the end of the text");
    refused("tenon 1\ngraph () -> () {\n  return()\n} x", "line 4, column 3: expected the end");
    refused("tenon 1\ngraph () -> () {\n  return()\n", "expected an operator or '}'");
    refused("tenon 1\ngraph () -> () {\n}\n", "does not end in return");
    refused("tenon 1\ngraph () -> () {\n  return()\n  return()\n}\n", "'}' after return");
    refused("tenon 1\ngraph () -> (\"y\") {\n  return()\n}\n", "1 outputs are named, 0 are returned");
    refused(MAIN("  nonsense()\n"), "not supported: operator 'nonsense'");
    refused(MAIN("  nonsense()\n"), "line 3, column 3");
    refused(MAIN("  %2 = size(%3) : i64[4]\n"), "line 3, column 13: %3 is not defined");
    refused(MAIN("  %1 = size(%1) : i64[4]\n"), "%1 is defined twice");
    refused(MAIN("  open()\n    region () {\n      %2 = pair(%1, %1) : f32[2]\n      return()\n    }\n  effect(%2)\n"),
            "region that has ended");
    refused(MAIN("  block()\n    region () {\n      %2 = pair(%1, %1) : f32[2]\n      return()\n    }\n"), "rule 11");
    refused(MAIN("  %2 = size(%1)\n"), "expected ':'");
    refused(MAIN("  %2 = size(%1) : q32[4]\n"), "line 3, column 19: expected an element type");
    refused(MAIN("  %2 = size(%1) : i64[M]\n"), "symbol 'M' is not declared");
    refused(MAIN("  %2 = size(%1) : i64[1 +]\n"), "a dimension's text is wrong");
    refused(MAIN("  %2 = size(%1, %1) : i64[1]\n"), "size has 2 inputs");
    refused(MAIN("  size(%1)\n"), "0 outputs");
    refused(MAIN("  %2 = tuned(%1) : f32[2]\n"), "'level'");
    refused(MAIN("  %2 = tuned(%1) {level = 1.0} : f32[2]\n"), "is of kind float");
    refused(MAIN("  %2 = tuned(%1) {level = 1, mode = \"ten\"} : f32[2]\n"), "one of one|two");
    refused(MAIN("  %2 = tuned(%1) {level = 1, level = 2} : f32[2]\n"), "given twice");
    refused(MAIN("  any() {a = 1, a = 2}\n"), "twice");
    refused(MAIN("  any() {a = }\n"), "expected the value of an attribute");
    refused(MAIN("  any() {a = 9223372036854775808}\n"), "64 bits");
    refused(MAIN("  any() {a = [1, 2}\n"), "expected ',' or ']'");
    refused(MAIN("  any() {a = \"x}\n"), "does not end on its line");
    refused(MAIN("  any() {a = \"\\q\"}\n"), "no such escape");
    refused(MAIN("  any() {a = \"\\x1\"}\n"), "hexadecimal");
    refused(MAIN("  any() {a = function \"f\"}\n"), "no function 'f'");
    refused(MAIN("  any() {a = f32[2] [1]}\n"), "2 elements with 1 given");
    refused(MAIN("  any() {a = f32[1] [x]}\n"), "expected an element of type f32");
    refused(MAIN("  any() {a = u8[1] [256]}\n"), "expected an element of type u8");
    refused(MAIN("  any() {a = i8[1] [-129]}\n"), "expected an element of type i8");
    refused(MAIN("  any() {a = u4[1] [bits(0x10)]}\n"), "expected an element of type u4");
    refused(MAIN("  any() {a = f32[-1] []}\n"), "negative");
    refused(MAIN("  any() {a = none[1] [1]}\n"), "element type");
    refused(MAIN("  any() {a = f32[4000000000, 4000000000, 4000000000] []}\n"), "where: line 3");
    refused(MAIN("  any() {a = f32[1000000000] []}\n"), "with 0 given");
    refused(MAIN("  any() {a = f32[1000000000] base64 \"AAAA\"}\n"), "do not hold");
    refused(MAIN("  any() {a = f32[1] base64 \"AAAA=AA=\"}\n"), "no base64");
    refused(MAIN("  any() {a = u8[1] base64 \"AAE=\"}\n"), "no base64");
    refused(MAIN("  any() {a = u8[1] base64 \"AB==\"}\n"), "no base64");
    refused(MAIN("  any() {a = string[1] base64 \"\"}\n"), "do not hold");
    refused(MAIN("  effect() after(!1)\n"), "no node !1");
    refused(MAIN("  !1 effect()\n  !1 effect()\n"), "label !1 is given twice");
    refused(MAIN("  !1 effect()\n  open()\n    region () {\n      effect() after(!1)\n      return()\n    }\n"),
            "control input");
    refused(MAIN("  effect() role nothing\n"), "expected forward");
    refused(MAIN("  effect() device 65536\n"), "at most 65535");
    refused(MAIN("  effect() @\"f\":4294967296\n"), "line number");
    refused(MAIN("  effect() \"a\\x00b\"\n"), "NUL");
    refused("tenon 1\nsymbol N [5, 4]\n", "line 2, column 8");
    refused("tenon 1\nsymbol N [-1, 4]\n", "hold no size");
    refused("tenon 1\nsymbol N [0, 4]\nsymbol N [0, 4]\n", "no other symbol");
    refused("tenon 1\nsymbol N [0, 4] fresh\n", "u1, u2");
    refused("tenon 1\nsymbol u1 [0, 4]\n", "fresh");
    refused("tenon 1\nsymbol 7 [0, 4]\n", "a name");
    refused("tenon 1\nmetadata \"a\" = \"\"\nmetadata \"a\" = \"\"\n", "twice");
    refused("tenon 1\nfunction \"f\" () {\n  return()\n}\nfunction \"f\" () {\n  return()\n}\n", "exists already");
    refused("tenon 1\nfunction \"f\" (%1: f32[2]) {\n  return(%1)\n}\ngraph () -> (\"y\") {\n  return(%1)\n}\n",
            "ended");
    refused("tenon 1\ngraph (%1 \"x\": f32[2], %2 \"x\": f32[2]) -> () {\n  return()\n}\n", "rule 15");
    refused("tenon 1\ngraph (%1 \"x\": i8[2] holds [1, 2]) -> () {\n  return()\n}\n", "i64 or i32");
    refused("tenon 1\ngraph (%1 \"x\": i64[2] holds [1]) -> () {\n  return()\n}\n", "do not fit");
    refused("tenon 1\ngraph (%99999999999999999999: f32[2]) -> () {\n  return()\n}\n", "expected an argument");
    refused("tenon 1\ngraph (%18446744073709551615: f32[2]) -> () {\n  return()\n}\n", "too large");

    assert_null(tn_graph_parse_with(NULL, toy_ops(), NULL, 0));
    assert_int_equal(tn_error_status(), TN_ERR_USAGE);
    assert_null(tn_graph_print(NULL));
}

/* Nesting of any kind is an error, never a crash. */
static void nesting(void **state) {
    (void)state;
    static const struct {
        const char *head, *part;
    } deep[] = {
        {"tenon 1\ngraph (%1 \"x\": ", "seq("},
        {"tenon 1\ngraph (%1 \"x\": ", "map(i64, "},
        {"tenon 1\ngraph () -> () {\n", "open() region () {\n"},
        {"tenon 1\ngraph (%1 \"x\": f32[", "("},
        {"tenon 1\ngraph (%1 \"x\": f32[", "min(1, "},
    };
    for (size_t k = 0; k < sizeof deep / sizeof *deep; k++) {
        size_t part = strlen(deep[k].part), head = strlen(deep[k].head), n = 100000;
        char *text = malloc(head + n * part);
        memcpy(text, deep[k].head, head);
        for (size_t i = 0; i < n; i++)
            memcpy(text + head + i * part, deep[k].part, part);
        assert_null(tn_graph_parse_with(NULL, toy_ops(), text, head + n * part));
        free(text);
    }
}

/* --- random graphs --------------------------------------------------------------------------------------------------------------- */

static uint64_t seed;
static unsigned below(unsigned n) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)((seed * 0x9e3779b97f4a7c15u >> 33) % n);
}
static uint64_t bits64(void) {
    return (uint64_t)below(1u << 30) << 34 ^ (uint64_t)below(1u << 30) << 17 ^ below(1u << 30);
}

static const char *random_name(char *text, size_t size) {
    size_t n = below((unsigned)size);
    for (size_t i = 0; i < n; i++)
        text[i] = (char)(below(4) ? 'a' + (int)below(26) : 1 + (int)below(255));
    text[n] = '\0';
    return text;
}

static tn_dim random_dim(tn_graph *g, int depth) {
    static const char *const names[] = {"N", "M", "seq len", "u1", "min"};
    if (depth == 0 || below(3) == 0)
        return below(2) ? tn_dim_const(g, (int64_t)below(6)) : tn_dim_symbol(g, names[below(5)]);
    tn_dim a = random_dim(g, depth - 1), b = random_dim(g, depth - 1);
    switch (below(8)) {
    case 0: return tn_dim_add(g, a, b);
    case 1: return tn_dim_sub(g, a, b);
    case 2: return tn_dim_mul(g, a, b);
    case 3: return tn_dim_floordiv(g, a, tn_dim_const(g, 1 + (int64_t)below(5)));
    case 4: return tn_dim_mod(g, a, tn_dim_const(g, 1 + (int64_t)below(5)));
    case 5: return tn_dim_min(g, a, b);
    case 6: return tn_dim_max(g, a, b);
    default: return tn_dim_ceildiv(g, a, tn_dim_const(g, 1 + (int64_t)below(5)));
    }
}

static tn_type random_type(tn_graph *g, int depth) {
    tn_dtype dtype = (tn_dtype)(1 + below(TN_DTYPE_COUNT - 1));
    tn_dim dims[3];
    switch (depth ? below(8) : 7) {
    case 0: return (tn_type){0};
    case 1: return tn_type_sequence(g, random_type(g, depth - 1));
    case 2: return tn_type_optional(g, random_type(g, depth - 1));
    case 3: return tn_type_map(g, dtype, random_type(g, depth - 1));
    case 4: return tn_type_tensor(g, dtype, -1, NULL);
    default: break;
    }
    int rank = (int)below(4);
    for (int i = 0; i < rank; i++)
        dims[i] = random_dim(g, 2);
    return tn_type_tensor(g, dtype, rank, dims);
}

static tn_tensor *random_tensor(void) {
    tn_dtype dtype = (tn_dtype)(1 + below(TN_DTYPE_COUNT - 1));
    int64_t dims[3];
    int rank = (int)below(4);
    for (int i = 0; i < rank; i++)
        dims[i] = (int64_t)below(7);
    tn_tensor *t = tn_tensor_create(dtype, rank, dims);
    if (!t)
        fail_msg("%s", tn_error_message());
    for (int64_t i = 0; dtype == TN_STRING && i < t->count; i++) {
        char text[12];
        for (int k = 0; k < 12; k++)
            text[k] = (char)below(256);
        assert_int_equal(tn_tensor_set_string(t, i, text, below(12)), TN_OK);
    }
    for (size_t i = 0; dtype != TN_STRING && i < tn_tensor_bytes(t); i++)
        ((uint8_t *)t->data)[i] = (uint8_t)below(256);
    return t;
}

static const char *keys[] = {"a", "b", "c", "long name", "_", "region", "x.y", "z"};

static uint32_t random_attrs(tn_graph *g, tn_attr *attrs) {
    static int64_t ints[3];
    static float floats[3];
    static tn_string strings[2] = {{"one", 3}, {"\0\xff", 2}};
    static tn_dim dims[2];
    static char text[16];
    uint32_t n = below(8);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t raw = bits64();
        switch (below(11)) {
        case 0: attrs[i] = TN_A_INT(keys[i], (int64_t)raw); break;
        case 1:
            attrs[i] = TN_A_FLOAT(keys[i], 0);
            memcpy(&attrs[i].as.f, &raw, sizeof raw);
            break;
        case 2: attrs[i] = TN_A_FLOAT(keys[i], (double)((float)(int)below(1000) / 8)); break;
        case 3: attrs[i] = TN_A_STRING(keys[i], random_name(text, sizeof text), strlen(text)); break;
        case 4: attrs[i] = TN_A_DTYPE(keys[i], below(TN_DTYPE_COUNT)); break;
        case 5:
            for (int k = 0; k < 3; k++)
                ints[k] = (int64_t)bits64();
            attrs[i] = TN_A_INTS(keys[i], below(4), ints);
            break;
        case 6:
            for (int k = 0; k < 3; k++) {
                uint32_t half = (uint32_t)bits64();
                memcpy(&floats[k], &half, sizeof half);
            }
            attrs[i] = TN_A_FLOATS(keys[i], below(4), floats);
            break;
        case 7:
            attrs[i] = (tn_attr){.key = keys[i], .kind = TN_ATTR_STRINGS, .count = below(3), .as.strings = strings};
            break;
        case 8:
            dims[0] = random_dim(g, 3);
            dims[1] = random_dim(g, 1);
            attrs[i] = TN_A_DIMS(keys[i], below(3), dims);
            break;
        case 9: attrs[i] = TN_A_TYPE(keys[i], random_type(g, 3)); break;
        default: attrs[i] = TN_A_TENSOR(keys[i], random_tensor()); break;
        }
        if (attrs[i].kind == TN_ATTR_STRING) /* one buffer: the next would overwrite it */
            break;
    }
    uint32_t made = 0;
    while (made < n && attrs[made].key)
        made++;
    return made;
}

static void random_region(tn_graph *g, tn_region region, tn_value *values, uint32_t count, int depth) {
    char text[12];
    uint32_t nodes = below(6);
    for (uint32_t i = 0; i < nodes && count < 60; i++) {
        tn_attr attrs[8] = {0};
        tn_value inputs[3];
        tn_type outs[2];
        tn_region inner[2];
        uint32_t inputs_n = below(4), outs_n = below(3), inner_n = depth ? below(3) : 0;
        for (uint32_t k = 0; k < inner_n; k++) {
            tn_value more[64];
            memcpy(more, values, count * sizeof *values);
            inner[k] = tn_region_create(g);
            uint32_t args = below(2);
            for (uint32_t a = 0; a < args; a++)
                more[count + a] = tn_region_add_arg(g, inner[k], random_type(g, 1), random_name(text, sizeof text));
            random_region(g, inner[k], more, count + args, depth - 1);
        }
        for (uint32_t k = 0; k < inputs_n; k++)
            inputs[k] = count && below(5) ? values[below(count)] : (tn_value){0};
        for (uint32_t k = 0; k < outs_n; k++)
            outs[k] = random_type(g, 2);
        uint32_t attrs_n = random_attrs(g, attrs);
        for (uint32_t k = below(4); k > 0; k--)
            tn_graph_at_location(g, tn_location_union(g, tn_node_location(g, tn_region_first(g, region)),
                                                      tn_location_make(g, below(2) ? "Conv" : NULL,
                                                                       below(2) ? random_name(text, 8) : NULL,
                                                                       below(2) ? "file.c" : "", below(5))));
        g->at_role = (uint8_t)below(5);
        tn_graph_insert_at_end(g, region);
        tn_node_desc d = {.op = toy_op(below(4)   ? "any"
                                       : below(2) ? "odd name!"
                                                  : "region"),
                          .name = below(2) ? random_name(text, sizeof text) : NULL,
                          .input_count = inputs_n,
                          .inputs = inputs,
                          .output_count = outs_n,
                          .attr_count = attrs_n,
                          .attrs = attrs,
                          .region_count = inner_n,
                          .regions = inner};
        tn_node node = tn_graph_add_node_typed(g, &d, outs);
        if (!node.id)
            fail_msg("%s", tn_error_message());
        for (uint32_t k = 0; k < attrs_n; k++)
            if (attrs[k].kind == TN_ATTR_TENSOR)
                tn_tensor_destroy(attrs[k].as.tensor);
        for (uint32_t k = 0; k < outs_n; k++) {
            values[count++] = tn_node_output(g, node, k);
            if (below(2))
                assert_int_equal(tn_value_set_name(g, values[count - 1], random_name(text, sizeof text)), TN_OK);
        }
        g->node.data[node.id].placement = (uint16_t)below(3);
        tn_node first = tn_region_first(g, region);
        if (below(3) == 0 && first.id != node.id)
            assert_int_equal(tn_node_add_control(g, node, first), TN_OK);
    }
    tn_value results[3];
    uint32_t n = count ? below(4) : 0;
    for (uint32_t i = 0; i < n; i++)
        results[i] = values[below(count)];
    if (region.id == tn_graph_region(g).id) {
        for (uint32_t i = 0; i < n; i++) {
            char name[16];
            snprintf(name, sizeof name, "out%u", i);
            assert_int_equal(tn_graph_add_output(g, results[i], name), TN_OK);
        }
    } else {
        assert_int_equal(tn_region_return(g, region, n, results), TN_OK);
    }
}

static void random_graphs(void **state) {
    (void)state;
    uint64_t start = tn_random_seed() | 1;
    printf("seed %llu\n", (unsigned long long)start);
    seed = start;
    for (int round = 0; round < 400; round++) {
        tn_graph *g = tn_graph_new(NULL, toy_ops());
        assert_non_null(g);
        static const char *const names[] = {"N", "M", "seq len", "u1", "min"};
        tn_dim all[5];
        for (int i = 0; i < 5; i++) /* all are defined by an input */
            all[i] = tn_dim_symbol(g, names[i]);
        tn_value values[64] = {{0}};
        values[0] = toy_input(g, "x", TN_F32, 5, all);
        random_region(g, tn_graph_region(g), values, 1, 3);
        /* expressions made before a bound stay as they are */
        for (int i = 0; i < 5; i++)
            if (below(2))
                assert_int_equal(tn_dim_set_bounds(g, all[i], (int64_t)below(3), 3 + (int64_t)below(5)), TN_OK);
        if (tn_graph_verify(g) != TN_OK)
            fail_msg("%s", tn_error_message());
        round_trip(g);
        tn_graph_destroy(g);
    }
}

/* Parsing, printing with any allocation failing: an error, and nothing is lost. */
static void out_of_memory(void **state) {
    (void)state;
    static const char text[] =
        "tenon 1\nmetadata \"a\" = \"b\"\nsymbol N [0, 9]\nfunction \"f\" (%1: f32[N]) {\n  return(%1)\n}\n"
        "graph (%2 \"x\": f32[N] = f32[1] [1]) -> (\"y\") {\n"
        "  !1 %3 = call(%2) {callee = function \"f\"} : f32[N] \"n\" @\"f\":1 @\"g\":2\n"
        "  any(%3) {s = strings [\"a\"], t = string[1] [\"b\"], d = dims [N + 1], l = [1]} after(!1)\n"
        "    region (%4: f32[]) {\n      return(%4)\n    }\n"
        "  return(%3)\n}\n";
    tn_heap *heap = tn_heap_create(NULL);
    assert_non_null(heap);
    for (uint64_t k = 1;; k++) {
        tn_heap_fail_at(heap, k, false);
        tn_graph *g = tn_graph_parse_with(heap, toy_ops(), text, sizeof text - 1);
        tn_heap_fail_at(heap, 0, false);
        if (g) {
            tn_graph_destroy(g);
            assert_int_equal(tn_heap_in_use(heap), 0);
            break;
        }
        if (tn_error_status() != TN_ERR_MEMORY)
            fail_msg("allocation %llu: %s", (unsigned long long)k, tn_error_message());
        assert_int_equal(tn_heap_in_use(heap), 0);
        assert_true(k < 20000);
    }
    tn_graph *g = tn_graph_parse_with(heap, toy_ops(), text, sizeof text - 1);
    assert_non_null(g);
    size_t before = tn_heap_in_use(heap);
    for (uint64_t k = 1;; k++) {
        tn_heap_fail_at(heap, k, false);
        char *printed = tn_graph_print(g);
        tn_heap_fail_at(heap, 0, false);
        if (printed) {
            assert_string_equal(printed, text);
            tn_graph_free_text(g, printed);
            break;
        }
        assert_int_equal(tn_error_status(), TN_ERR_MEMORY);
        assert_int_equal(tn_heap_in_use(heap), before);
    }
    tn_graph_destroy(g);
    tn_heap_destroy(heap);
}

static void equality_tells_apart(void **state) {
    (void)state;
    static const char *const text[] = {
        MAIN("  %2 = size(%1) : i64[*]\n"),
        MAIN("  %2 = size(%1) : ?\n"),
        MAIN("  %2 \"n\" = size(%1) : i64[*]\n"),
        MAIN("  %2 = size(%1) : i64[*] \"n\"\n"),
        MAIN("  %2 = size(%1) : i64[*] role debug\n"),
        MAIN("  %2 = size(%1) : i64[*] device 1\n"),
        MAIN("  %2 = size(%1) : i64[*] @\"a\":1\n"),
        MAIN("  %2 = size(%1) : i64[*] @\"a\":2\n"),
        MAIN("  any(%1)\n"),
        MAIN("  any(_)\n"),
        MAIN("  any() {a = 1}\n"),
        MAIN("  any() {a = 1.0}\n"),
        MAIN("  any() {b = 1}\n"),
        MAIN("  any() {a = -0.0}\n"),
        MAIN("  any() {a = 0.0}\n"),
        MAIN("  any() {a = f32[1] [0]}\n"),
        MAIN("  any() {a = f32[1] [-0]}\n"),
        MAIN("  any() {a = i32[1] [0]}\n"),
        MAIN("  any() {a = \"x\"}\n"),
        MAIN("  any() {a = dims [3]}\n"),
        MAIN("  any() {a = [3]}\n"),
        MAIN("  any()\n"),
        MAIN("  op \"odd name!\"()\n"),
        MAIN("  any()\n    region () {\n      return()\n    }\n"),
        MAIN(""),
        MAIN("  !1 effect()\n  effect() after(!1)\n"),
        MAIN("  effect()\n  effect()\n"),
        "tenon 1\nmetadata \"a\" = \"b\"\ngraph (%1 \"x\": f32[2]) -> () {\n  return()\n}\n",
        "tenon 1\ngraph (%1 \"x\": f32[2]) -> (\"y\") {\n  return(%1)\n}\n",
        "tenon 1\ngraph (%1 \"x\": f32[2]) -> (\"z\") {\n  return(%1)\n}\n",
        "tenon 1\ngraph (%1 \"x\": f32[2] = f32[2] [1, 2]) -> () {\n  return()\n}\n",
        "tenon 1\nsymbol N [0, 5]\ngraph (%1 \"x\": f32[N]) -> () {\n  return()\n}\n",
        "tenon 1\nsymbol N [0, 6]\ngraph (%1 \"x\": f32[N]) -> () {\n  return()\n}\n",
        "tenon 1\nsymbol u1 [0, 6] fresh\ngraph (%1 \"x\": f32[u1]) -> () {\n  return()\n}\n",
        "tenon 1\nsymbol u1 [0, 7] fresh\ngraph (%1 \"x\": f32[u1]) -> () {\n  return()\n}\n",
        "tenon 1\nfunction \"f\" () {\n  return()\n}\ngraph (%1 \"x\": f32[2]) -> () {\n  return()\n}\n",
    };
    enum { N = sizeof text / sizeof *text };
    tn_graph *g[N];
    for (int i = 0; i < N; i++)
        if (!(g[i] = parse(text[i])))
            fail_msg("%s\n%s", text[i], tn_error_message());
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            if (tn_graph_equal(g[i], g[k]) != (i == k))
                fail_msg("%s%s%s", text[i], i == k ? "is not\n" : "is\n", text[k]);
    for (int i = 0; i < N; i++)
        tn_graph_destroy(g[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_graph),
        cmocka_unit_test(types),
        cmocka_unit_test(attributes),
        cmocka_unit_test(tensors),
        cmocka_unit_test(bit_patterns),
        cmocka_unit_test(not_canonical),
        cmocka_unit_test(symbols_keep_their_form),
        cmocka_unit_test(types_as_printed),
        cmocka_unit_test(wrong_texts),
        cmocka_unit_test(nesting),
        cmocka_unit_test(random_graphs),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(equality_tells_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
