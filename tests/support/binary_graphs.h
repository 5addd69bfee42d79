/* For tests of the binary form: the graphs that they save. */
#ifndef TN_TESTS_BINARY_GRAPHS_H
#define TN_TESTS_BINARY_GRAPHS_H

#include "ir/text.h"
#include "ops/ops.h"
#include "support/binary_checks.h"
#include "support/toy_ops.h"

static inline const tn_op_table *binary_ops(void) {
    return toy_ops_before(tn_ops_table());
}

static inline tn_graph *binary_parse(const char *text) {
    tn_graph *g = tn_graph_parse_with(NULL, binary_ops(), text, strlen(text));
    if (!g)
        fail_msg("%s\n%.200s...", tn_error_message(), text);
    return g;
}

/* A bit of everything. */
static const char binary_everything[] =
    "tenon 1\nmetadata \"a\" = \"b\\x00c\"\nmetadata \"empty\" = \"\"\nsymbol N [0, 9]\nsymbol `odd name` [1, 1000]\n"
    "symbol u3 [-5, 1000] fresh\nsymbol u7 [0, 9] fresh\n"
    "function \"f\" (%1: f32[N]) {\n  return(%1)\n}\n"
    "function \"g\" (%2: f32[N]) {\n  %3 = call(%2) {callee = function \"f\"} : f32[N]\n  return(%3)\n}\n"
    "graph (%4 \"x\": f32[N] = f32[1] [1], %5 \"s\": seq(optional(map(i64, f32[`odd name`, 2*N + 3]))), %6 \"q\": ?, "
    "%7 \"p\": i64[2] holds [u7, 4]) -> (\"y\", \"z\") {\n"
    "  !1 %8 \"h\" = call(%4) {callee = function \"g\"} : f32[N] \"n\" role gradient device 3 @\"f\":1 @\"a\"(\"b\", "
    "\"c\":7)\n"
    "  any(%8, _, %5) {s = strings [\"a\\x00b\", \"\"], t = string[2] [\"b\", \"\"], d = dims [N + 1, floordiv(N, 2)], "
    "l = [1, "
    "-9223372036854775808], i = -3, f = 0.1, h = bits(0x7ff8000000000001), fs = floats [1, nan, -0], none = [], e = "
    "string, "
    "w = type seq(f32[*]), k = u4[3] [1, 2, 15], z = f32[0, 5] [], c = c64[1] [(1, -0)]} after(!1)\n"
    "    region (%9: f32[], %10: i64[1] holds [u3]) {\n      %11, %12 = any(%9) : f32[], i64[1]\n      return(%9)\n    "
    "}\n"
    "    region () {\n      return(%8)\n    }\n"
    "  return(%8, %8)\n}\n";

static inline void binary_check(const tn_graph *g) {
    if (!binary_survives(g, NULL)) {
        char *text = tn_graph_print(g);
        fail_msg("%s\n%s", tn_error_message(), text);
    }
}

#endif
