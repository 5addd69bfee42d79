/* Symbolic dimensions: the forms that shape inference relies on, and a randomised oracle for soundness. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/graph.h"

static uint64_t seed;
static uint64_t random_bits(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed * 0x9e3779b97f4a7c15u;
}
static int64_t random_in(int64_t low, int64_t high) {
    return low + (int64_t)(random_bits() >> 20) % (high - low + 1);
}

static tn_graph *g;
static int setup(void **state) {
    (void)state;
    g = tn_graph_new(NULL, NULL);
    return g == NULL;
}
static int teardown(void **state) {
    (void)state;
    tn_graph_destroy(g);
    tn_error_clear();
    return 0;
}

static tn_dim P(const char *text) {
    size_t used;
    tn_dim dim = tn_dim_parse(g, text, strlen(text), &used);
    if (dim.id == 0 || used != strlen(text))
        fail_msg("%s: %s (read %zu)", text, tn_error_message(), used);
    return dim;
}

static char *printed(tn_dim dim) {
    static char buffer[8][4096];
    static int at;
    char *out = buffer[at++ % 8];
    tn_text text;
    tn_text_init(&text, NULL);
    tn_dim_print(tn_graph_dims(g), dim, &text);
    assert_false(text.failed);
    snprintf(out, sizeof buffer[0], "%s", text.data);
    tn_text_free(&text);
    return out;
}

/* Both texts are one canonical expression, printed as the second. */
static void check_form(const char *text, const char *canonical) {
    tn_dim dim = P(text);
    if (strcmp(printed(dim), canonical) != 0)
        fail_msg("%s is %s, not %s", text, printed(dim), canonical);
    assert_int_equal(P(canonical).id, dim.id);
}

static void test_canonical(void **state) {
    (void)state;
    check_form("N", "N");
    check_form("2 + 3*4", "14");
    check_form("N + M - N", "M");
    check_form("M + 2*N + 3 - M", "2*N + 3");
    check_form("-N + 1", "-N + 1");
    check_form("(N + 1)*(N - 1)", "N*N - 1");
    check_form("(N + M)*(N + M) - N*N - 2*N*M", "M*M");
    check_form("C*H*W - H*W*C", "0");
    check_form("0*floordiv(N, M)", "0");
    /* reshape [N, C, H, W] -> [N, -1], and -1 among symbols */
    check_form("floordiv(N*C*H*W, N)", "C*H*W");
    check_form("floordiv(N*12*T, 12*N)", "T");
    check_form("floordiv(N*T*768, N*12*T)", "64");
    check_form("floordiv(6*N*M, 4*M)", "floordiv(3*N, 2)");
    check_form("floordiv(N*C*H, N*W)", "floordiv(C*H, W)");
    check_form("floordiv((N + 1)*(M + 2)*K, M + 2)", "K + K*N");
    check_form("floordiv(floordiv(H, 2)*floordiv(W, 2)*C, floordiv(W, 2)*C)", "floordiv(H, 2)");
    check_form("floordiv((floordiv(H - 1, 2) + 1)*(floordiv(W - 1, 2) + 1)*C, floordiv(W - 1, 2) + 1)",
               "C*floordiv(H + 1, 2)");
    /* convolution: floordiv(H + 2*p - d*(k - 1) - 1, s) + 1 */
    check_form("floordiv(H + 2*1 - 1*(3 - 1) - 1, 1) + 1", "H");
    check_form("floordiv(H + 2*3 - 1*(7 - 1) - 1, 2) + 1", "floordiv(H + 1, 2)");
    check_form("floordiv(floordiv(H + 1, 2) + 2*1 - 2 - 1, 2) + 1", "floordiv(H + 3, 4)");
    check_form("floordiv(floordiv(floordiv(N, 2), 3), M)", "floordiv(N, 6*M)");
    check_form("floordiv(2*H + 1, 2)", "H");
    check_form("floordiv(2*H - 1, 2)", "H - 1");
    check_form("floordiv(4*H + 6, 8)", "floordiv(H + 1, 2)");
    check_form("ceildiv(N, 2)", "floordiv(N + 1, 2)");
    check_form("ceildiv(4*N, 4)", "N");
    check_form("ceildiv(N*M, M)", "N");
    check_form("floordiv(N, -2)", "floordiv(-N, 2)");
    check_form("floordiv(7, -2) + ceildiv(7, -2)", "-7");
    check_form("mod(-7, 3)", "2");
    check_form("mod(7, -3)", "-2");
    check_form("mod(4*N + 7, 4)", "3");
    check_form("mod(N + 5*M + 9, 4)", "mod(M + N + 1, 4)");
    check_form("mod(6*N + 3, 4)", "2*mod(N + 1, 2) + 1");
    check_form("mod(mod(N, 8) + 1, 4)", "mod(N + 1, 4)");
    check_form("mod(N*M + K, M)", "mod(K, M)");
    check_form("mod(N*M, N*K)", "N*mod(M, K)");
    check_form("floordiv(mod(N, 4), 4)", "0");
    check_form("mod(mod(N, 4), 7)", "mod(N, 4)");
    /* extremes by bounds: symbols are not negative */
    check_form("max(N, 0)", "N");
    check_form("min(N, -1)", "-1");
    check_form("max(N + 1, N)", "N + 1");
    check_form("min(max(N, M), N)", "N");
    check_form("max(3, max(N, max(5, M)))", "max(M, N, 5)");
    check_form("min(floordiv(N, 2), N)", "floordiv(N, 2)");
    check_form("broadcast(1, N)", "N");
    check_form("broadcast(N, N)", "N");
    check_form("broadcast(N, 4)", "4");
    check_form("broadcast(N, 0)", "0");
    check_form("broadcast(M, broadcast(N, M))", "broadcast(M, N)");
    check_form("broadcast(N + 2, M)", "N + 2");
    assert_int_equal(P("broadcast(1, 1)").id, P("1").id);
    /* one symbol, linear piece by piece: a window of a table of 8 rows, cut again from what the first cut gave */
    check_form("max(min(N + 1, 8) - min(N, 8), 0)", "min(N + 1, 8) - min(N, 8)");
    check_form("min(N + min(N + 1, 8) - min(N, 8), 8)", "min(N + 1, 8)");
    check_form("max(min(N + min(N + 1, 8) - min(N, 8), 8) - min(N, 8), 0)", "min(N + 1, 8) - min(N, 8)");
    check_form("min(max(2*N - 6, 0), max(N - 3, 0))", "max(N - 3, 0)");
    check_form("min(max(3*N - 7, 0), max(N - 3, 0))", "max(N - 3, 0)");
    check_form("min(max(3*N - 10, 0), N + min(N, 4))", "min(N + min(N, 4), max(3*N - 10, 0))");
    check_form("broadcast(N, min(N, 8))", "N");
    check_form("broadcast(min(N + 1, 8), N + 1)", "N + 1");
    check_form("broadcast(N, max(N, 3))", "max(N, 3)");
    check_form("broadcast(N, min(N, 0 - N + 4))", "N");
    check_form("broadcast(max(N, 1) - 1, N)", "broadcast(max(N, 1) - 1, N)");
    check_form("broadcast(N, min(M, N))", "broadcast(N, min(M, N))");
    check_form("`a b` + `min` + `u1` + u1 + `\\x01\\`\\\\`", "`\\x01\\`\\\\` + `a b` + `min` + `u1` + u1");
    check_form("-9223372036854775807 - 1", "-9223372036854775808");
    check_form("N - 9223372036854775808", "N - 9223372036854775808");
    check_form("M - 9223372036854775808*N", "M - 9223372036854775808*N");
}

static void test_wrong_text(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "+",
                                        "N +",
                                        "(N",
                                        "N)*",
                                        "floordiv(N)",
                                        "floordiv(N, 2, 3)",
                                        "min(N)",
                                        "floordiv(N, 0)",
                                        "mod(N, 0)",
                                        "ceildiv(3, 0)",
                                        "broadcast(2, 3)",
                                        "9223372036854775808",
                                        "9223372036854775807 + 1",
                                        "`",
                                        "``",
                                        "`a",
                                        "`a\\y`",
                                        "`\\x0`",
                                        "`\\x00`",
                                        "4611686018427387904*2*N",
                                        "floordiv(-9223372036854775808, -1)",
                                        "N -",
                                        "- - N",
                                        "?",
                                        "min(N,)",
                                        "\xff"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        size_t used;
        tn_error_clear();
        tn_dim dim = tn_dim_parse(g, texts[i], strlen(texts[i]), &used);
        if (dim.id != 0 && used == strlen(texts[i]))
            fail_msg("%s is taken for %s", texts[i], printed(dim));
        if (dim.id == 0)
            assert_int_not_equal(tn_error_status(), TN_OK);
    }
    char deep[5000];
    memset(deep, '(', sizeof deep);
    assert_int_equal(tn_dim_parse(g, deep, sizeof deep, NULL).id, 0);
    assert_int_equal(tn_graph_check(g), TN_OK); /* parsing leaves the graph's error alone */
    size_t used;
    assert_int_equal(tn_dim_parse(g, "N + 1, 2", 8, &used).id, P("N + 1").id);
    assert_int_equal(used, 5);
}

static void test_bounds_and_symbols(void **state) {
    (void)state;
    int64_t low, high, value;
    tn_dim n = tn_dim_symbol(g, "N"), u = tn_dim_fresh(g, 2, 9), v = tn_dim_fresh(g, 0, INT64_MAX);
    assert_int_equal(tn_dim_symbol(g, "N").id, n.id);
    assert_string_equal(printed(u), "u1");
    assert_string_equal(printed(v), "u2");
    assert_int_not_equal(tn_dim_symbol(g, "u1").id, u.id);
    assert_string_equal(printed(tn_dim_symbol(g, "u1")), "`u1`");
    assert_int_equal(P("u1").id, u.id);
    assert_int_not_equal(P("u7").id, 0);
    assert_string_equal(printed(tn_dim_fresh(g, 0, 1)), "u8");
#define BOUNDS(text, l, h)                  \
    tn_dim_bounds(g, P(text), &low, &high); \
    if (low != (l) || high != (h))          \
    fail_msg("%s: [%" PRId64 ", %" PRId64 "]", text, low, high)
    BOUNDS("N", 0, INT64_MAX);
    BOUNDS("u1*N + 1", 1, INT64_MAX);
    BOUNDS("-u1", -9, -2);
    BOUNDS("u1*u1 - 3", 1, 78);
    BOUNDS("floordiv(100, u1)", 11, 50);
    BOUNDS("floordiv(100, N)", 0, 100);
    BOUNDS("floordiv(0 - 100, u1)", -50, -12);
    BOUNDS("mod(N, u1)", 0, 8);
    BOUNDS("min(N, u1)", 0, 9);
    BOUNDS("max(N, u1)", 2, INT64_MAX);
    BOUNDS("broadcast(u8, N)", 0, INT64_MAX);
    BOUNDS("(N - M)*(N - M)", INT64_MIN, INT64_MAX);
    assert_int_equal(tn_dim_set_bounds(g, n, 4, 100), TN_OK);
    assert_int_equal(tn_dim_set_bounds(g, n, 0, 8), TN_OK);
    BOUNDS("N", 4, 8);
    BOUNDS("broadcast(N, M)", 4, 8);
    assert_int_equal(tn_dim_set_bounds(g, n, 9, 10), TN_ERR_MODEL);
    BOUNDS("N", 4, 8);
    assert_int_equal(tn_dim_set_bounds(g, P("N + 1"), 0, 1), TN_ERR_USAGE);
    assert_int_equal(tn_dim_set_bounds(g, (tn_dim){0}, 0, 1), TN_ERR_USAGE);
    assert_false(tn_dim_is_const(g, n, &value));
    assert_int_equal(tn_dim_set_bounds(g, n, 8, 8), TN_OK);
    assert_true(tn_dim_is_const(g, P("N*2 + 1"), &value) && value == 17);
    assert_true(tn_dim_is_const(g, P("9223372036854775807"), &value) && value == INT64_MAX);
    assert_false(tn_dim_is_const(g, (tn_dim){0}, &value));
    tn_dim_bounds(g, (tn_dim){0}, &low, &high);
    assert_true(low == INT64_MIN && high == INT64_MAX);
    assert_true(tn_graph_check(g) == TN_OK);
}

static void test_proofs(void **state) {
    (void)state;
    assert_int_equal(tn_dim_set_bounds(g, P("M"), 1, INT64_MAX), TN_OK);
#define HOLDS(proof, a, b)              \
    if (!tn_dim_##proof(g, P(a), P(b))) \
    fail_msg("not proved: %s %s %s", a, #proof, b)
#define OPEN(proof, a, b) assert_false(tn_dim_##proof(g, P(a), P(b)))
    HOLDS(at_most, "N", "N + 1");
    HOLDS(at_most, "floordiv(N, 2)", "N");
    HOLDS(at_most, "2*floordiv(N, 2)", "N");
    HOLDS(at_most, "N - 1", "2*floordiv(N, 2)");
    HOLDS(at_most, "floordiv(N + 1, 2)", "N + 1");
    HOLDS(at_most, "N", "N*M");
    HOLDS(at_most, "min(N, K)", "max(K, J)");
    HOLDS(at_most, "max(N, K)", "N + K");
    HOLDS(at_most, "mod(N, 4)", "3");
    OPEN(at_most, "N", "N*K");
    OPEN(at_most, "N", "K");
    OPEN(at_most, "N + 1", "2*floordiv(N, 2)");
    HOLDS(never_equal, "2*N", "2*K + 1");
    HOLDS(never_equal, "N", "N + M");
    HOLDS(never_equal, "N + 4", "3");
    OPEN(never_equal, "N", "K");
    OPEN(never_equal, "2*N", "3*K");
    HOLDS(equal, "N*K", "K*N");
    OPEN(equal, "N", "K");
    assert_int_equal(tn_dim_set_bounds(g, P("N"), 3, 3), TN_OK);
    HOLDS(equal, "N", "3");
    assert_false(tn_dim_equal(g, (tn_dim){0}, (tn_dim){0}));
    assert_false(tn_dim_at_most(g, P("N"), (tn_dim){9999}));
}

static void test_errors_stick(void **state) {
    (void)state;
    tn_dim n = tn_dim_symbol(g, "N");
    assert_int_equal(tn_dim_add(g, n, (tn_dim){0}).id, 0);
    assert_int_equal(tn_graph_check(g), TN_ERR_USAGE);
    assert_int_equal(tn_dim_add(NULL, n, n).id, 0);
    teardown(NULL);
    setup(NULL);
    assert_int_equal(tn_dim_mul(g, tn_dim_const(g, 1), (tn_dim){77}).id, 0);
    assert_int_equal(tn_graph_check(g), TN_ERR_USAGE);
    teardown(NULL);
    setup(NULL);
    n = tn_dim_symbol(g, "N");
    assert_int_equal(tn_dim_mul(g, tn_dim_const(g, INT64_MAX), tn_dim_mul(g, n, tn_dim_const(g, 2))).id, 0);
    assert_int_equal(tn_graph_check(g), TN_ERR_LIMIT);
    teardown(NULL);
    setup(NULL);
    assert_int_equal(tn_dim_symbol(g, "").id, 0);
    assert_int_equal(tn_dim_fresh(g, 2, 1).id, 0);
    assert_int_equal(tn_graph_check(g), TN_ERR_USAGE);
    /* expressions that double are refused before they cost anything */
    teardown(NULL);
    setup(NULL);
    tn_dim x = tn_dim_symbol(g, "N"), two = tn_dim_const(g, 2), m = tn_dim_symbol(g, "M");
    for (int i = 0; i < 200 && x.id != 0; i++)
        x = tn_dim_max(g, tn_dim_floordiv(g, x, m), tn_dim_mod(g, x, tn_dim_add(g, m, two)));
    assert_int_equal(x.id, 0);
    assert_int_equal(tn_graph_check(g), TN_ERR_LIMIT);
}

static void test_long_sum(void **state) {
    (void)state;
    tn_dim sum = tn_dim_const(g, 0);
    char name[16];
    for (int i = 0; i < 1500; i++) {
        snprintf(name, sizeof name, "s%d", i);
        sum = tn_dim_add(g, sum, tn_dim_symbol(g, name));
    }
    assert_int_not_equal(sum.id, 0);
    tn_text text;
    tn_text_init(&text, NULL);
    tn_dim_print(tn_graph_dims(g), sum, &text);
    size_t used;
    assert_int_equal(tn_dim_parse(g, text.data, text.len, &used).id, sum.id);
    tn_text_free(&text);
    /* a product that is too large to be multiplied out is kept, and stays the same through text */
    char *form = printed(P("(a + b + c + d + e)*(f + h + i + j + k)*(x + y)*N*3"));
    assert_int_equal(P(form).id, P("(a + b + c + d + e)*(f + h + i + j + k)*(x + y)*N*3").id);
    assert_string_equal(form, "(a + b + c + d + e)*(f + h + i + j + k)*(x + y)*N*3");
    check_form("floordiv((a + b + c + d + e)*(f + h + i + j + k)*N, a + b + c + d + e)", "N*f + N*h + N*i + N*j + N*k");
}

static void test_match(void **state) {
    (void)state;
    const tn_dims *dims = tn_graph_dims(g);
    tn_dim n = tn_dim_symbol(g, "N"), m = tn_dim_symbol(g, "M"), k = tn_dim_symbol(g, "K");
    tn_dim form = P("2*N*M + 4"), floored = P("floordiv(K, 2)"), square = P("K*K"), sum = P("N + M + K");
    assert_int_equal(tn_dim_set_bounds(g, n, 1, 10), TN_OK);
    tn_dim_env env;
    int64_t value;
    assert_true(tn_dim_env_init(&env, NULL, dims));
    tn_dim late = tn_dim_symbol(g, "late");
    assert_int_equal(tn_dim_env_match(dims, &env, late, 1), 2);
    assert_int_equal(tn_dim_env_match(dims, &env, form, 10), 2);
    assert_int_equal(tn_dim_env_match(dims, &env, m, 3), 0);
    assert_int_equal(tn_dim_env_match(dims, &env, m, 4), 1);
    assert_int_equal(tn_dim_env_match(dims, &env, form, 11), 1); /* not divisible */
    assert_int_equal(tn_dim_env_match(dims, &env, form, 4), 1);  /* N = 0 */
    assert_int_equal(tn_dim_env_match(dims, &env, form, 70), 1); /* N = 11 */
    assert_false(tn_dim_eval(dims, &env, form, &value));
    assert_int_equal(tn_dim_env_match(dims, &env, form, 34), 0);
    assert_true(tn_dim_eval(dims, &env, n, &value) && value == 5);
    assert_int_equal(tn_dim_env_match(dims, &env, floored, 2), 2);
    assert_int_equal(tn_dim_env_match(dims, &env, square, 4), 2);
    assert_int_equal(tn_dim_env_match(dims, &env, sum, 8), 0);
    assert_true(tn_dim_eval(dims, &env, k, &value) && value == 0);
    assert_false(tn_dim_eval(dims, &env, P("floordiv(N, K)"), &value));
    assert_int_equal(tn_dim_env_match(dims, &env, P("floordiv(N, K)"), 0), 1);
    assert_false(tn_dim_eval(dims, &env, P("broadcast(N, M)"), &value));
    tn_dim_env_free(&env);
}

/* --- the oracle --- */

enum { SYMBOLS = 5 };
static tn_dim symbols[SYMBOLS];
static int64_t lows[SYMBOLS], highs[SYMBOLS];

typedef struct tree {
    tn_dim_kind kind;
    bool minus; /* ADD: a - b */
    int64_t constant;
    int symbol;
    bool extreme; /* holds a constant near the ends of 64 bits: its form may overflow where it does not */
    struct tree *a, *b;
    tn_dim dim;
} tree;

static bool extremes, narrow; /* narrow: one symbol, and what is linear piece by piece */

static tree *random_tree(int depth) {
    tree *t = calloc(1, sizeof *t);
    assert_non_null(t);
    if (depth == 0 || random_in(0, 5) == 0) {
        if (random_in(0, 2) == 0) {
            t->kind = TN_DIM_CONST;
            t->constant = random_in(0, 3) == 0 ? random_in(-12, 12) : random_in(0, 4);
            t->extreme = extremes && random_in(0, 4) == 0;
            if (t->extreme)
                t->constant = random_in(0, 1) ? INT64_MAX - random_in(0, 3) : INT64_MIN + random_in(0, 3);
            t->dim = tn_dim_const(g, t->constant);
        } else {
            t->kind = TN_DIM_SYMBOL;
            t->symbol = narrow ? 2 : (int)random_in(0, SYMBOLS - 1);
            t->dim = symbols[t->symbol];
        }
        return t;
    }
    static const tn_dim_kind kinds[] = {TN_DIM_ADD, TN_DIM_ADD,      TN_DIM_ADD,      TN_DIM_MUL,
                                        TN_DIM_MUL, TN_DIM_FLOORDIV, TN_DIM_FLOORDIV, TN_DIM_CEILDIV,
                                        TN_DIM_MOD, TN_DIM_MIN,      TN_DIM_MAX,      TN_DIM_BROADCAST};
    static const tn_dim_kind narrow_kinds[] = {TN_DIM_ADD, TN_DIM_ADD, TN_DIM_ADD,      TN_DIM_MIN,
                                               TN_DIM_MAX, TN_DIM_MIN, TN_DIM_BROADCAST};
    t->kind = narrow ? narrow_kinds[random_in(0, sizeof narrow_kinds / sizeof narrow_kinds[0] - 1)]
                     : kinds[random_in(0, sizeof kinds / sizeof kinds[0] - 1)];
    t->minus = t->kind == TN_DIM_ADD && random_in(0, 1);
    t->a = random_tree(depth - 1);
    t->b = random_tree(depth - 1);
    t->extreme = t->a->extreme || t->b->extreme;
    if (t->a->dim.id == 0 || t->b->dim.id == 0)
        return t;
    switch (t->kind) {
    case TN_DIM_ADD:
        t->dim = t->minus ? tn_dim_sub(g, t->a->dim, t->b->dim) : tn_dim_add(g, t->a->dim, t->b->dim);
        break;
    case TN_DIM_MUL: t->dim = tn_dim_mul(g, t->a->dim, t->b->dim); break;
    case TN_DIM_FLOORDIV: t->dim = tn_dim_floordiv(g, t->a->dim, t->b->dim); break;
    case TN_DIM_CEILDIV: t->dim = tn_dim_ceildiv(g, t->a->dim, t->b->dim); break;
    case TN_DIM_MOD: t->dim = tn_dim_mod(g, t->a->dim, t->b->dim); break;
    case TN_DIM_MIN: t->dim = tn_dim_min(g, t->a->dim, t->b->dim); break;
    case TN_DIM_MAX: t->dim = tn_dim_max(g, t->a->dim, t->b->dim); break;
    default: t->dim = tn_dim_broadcast(g, t->a->dim, t->b->dim);
    }
    return t;
}

static void free_tree(tree *t) {
    if (t == NULL)
        return;
    free_tree(t->a);
    free_tree(t->b);
    free(t);
}

/* The definition. False: no value. */
static bool value_of(const tree *t, const int64_t *env, __int128 *value) {
    __int128 a, b;
    if (t->kind == TN_DIM_CONST)
        return *value = t->constant, true;
    if (t->kind == TN_DIM_SYMBOL)
        return *value = env[t->symbol], true;
    if (!value_of(t->a, env, &a) || !value_of(t->b, env, &b))
        return false;
    __int128 limit = (__int128)1 << 62;
    if ((a > limit || a < -limit || b > limit || b < -limit) && !t->extreme)
        return false;
    if (a > INT64_MAX || a < INT64_MIN || b > INT64_MAX || b < INT64_MIN)
        return false;
    __int128 floor = b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
    switch (t->kind) {
    case TN_DIM_ADD: *value = t->minus ? a - b : a + b; return true;
    case TN_DIM_MUL: *value = a * b; return t->extreme || (*value<limit && * value> - limit);
    case TN_DIM_FLOORDIV: *value = floor; return b != 0;
    case TN_DIM_CEILDIV: *value = b == 0 ? 0 : floor + (a % b != 0); return b != 0;
    case TN_DIM_MOD: *value = a - b * floor; return b != 0;
    case TN_DIM_MIN: *value = a < b ? a : b; return true;
    case TN_DIM_MAX: *value = a > b ? a : b; return true;
    default: *value = a == 1 ? b : a; return a == 1 || b == 1 || a == b;
    }
}

static void random_symbols(void) {
    static const int64_t ranges[][2] = {{0, INT64_MAX}, {1, INT64_MAX}, {2, 9},   {-4, 5},  {INT64_MIN, INT64_MAX},
                                        {0, 1},         {1, 1},         {-6, -1}, {3, 1000}};
    char name[8];
    for (int i = 0; i < SYMBOLS; i++) {
        snprintf(name, sizeof name, "%c", "NMKHW"[i]);
        int64_t r = i < 2 ? random_in(0, 1) : random_in(0, 8);
        lows[i] = ranges[r][0];
        highs[i] = ranges[r][1];
        symbols[i] = lows[i] < 0 ? tn_dim_fresh(g, lows[i], highs[i]) : tn_dim_symbol(g, name);
        assert_int_equal(tn_dim_set_bounds(g, symbols[i], lows[i], highs[i]), TN_OK);
    }
}

static void random_env(int64_t *env, int64_t reach) {
    for (int i = 0; i < SYMBOLS; i++) {
        int64_t low = lows[i] < -reach ? -reach : lows[i], high = highs[i] > reach ? reach : highs[i];
        env[i] = low <= high ? random_in(low, high) : lows[i] > reach ? lows[i] : highs[i];
    }
}

static void bind(tn_dim_env *out, const int64_t *env) {
    const tn_dims *dims = tn_graph_dims(g);
    for (int i = 0; i < SYMBOLS; i++) {
        uint32_t s = dims->expr.data[symbols[i].id].symbol;
        out->value[s] = env[i];
        out->bound[s] = 1;
    }
}

enum { TREES = 40, ENVS = 25 };

static void one_round(void) {
    tree *trees[TREES];
    int64_t envs[ENVS][SYMBOLS], got;
    tn_dims *dims = tn_graph_dims(g);
    random_symbols();
    for (int i = 0; i < TREES; i++)
        trees[i] = random_tree((int)random_in(1, 4));
    tn_dim_env env;
    assert_true(tn_dim_env_init(&env, NULL, dims));
    for (int e = 0; e < ENVS; e++)
        random_env(envs[e], e % 5 == 4 ? 1000 : 7);
    __int128 values[TREES][ENVS];
    bool has[TREES][ENVS];
    for (int i = 0; i < TREES; i++) {
        tn_dim dim = trees[i]->dim;
        int64_t low = 0, high = 0;
        if (dim.id != 0) {
            tn_dim_bounds(g, dim, &low, &high);
            char *text = printed(dim);
            size_t used;
            tn_dim back = strlen(text) < 4000 ? tn_dim_parse(g, text, strlen(text), &used) : dim;
            if (back.id != dim.id)
                fail_msg("seed %" PRIu64 ": %s parses as %s", seed, text, printed(back));
            assert_int_equal(tn_dim_substitute(g, dim, NULL, 0).id, dim.id);
        }
        for (int e = 0; e < ENVS; e++) {
            has[i][e] = value_of(trees[i], envs[e], &values[i][e]);
            bind(&env, envs[e]);
            has[i][e] = has[i][e] && values[i][e] >= INT64_MIN && values[i][e] <= INT64_MAX;
            if (!has[i][e])
                continue;
            if (dim.id == 0 && trees[i]->extreme)
                continue;
            if (dim.id == 0) /* null only where it never has a value */
                fail_msg("an expression that has a value was refused: %s", tn_error_message());
            if (!tn_dim_eval(dims, &env, dim, &got) || got != values[i][e])
                fail_msg("%s is %" PRId64 ", not %" PRId64, printed(dim), got, (int64_t)values[i][e]);
            if (got < low || got > high)
                fail_msg("%s: %" PRId64 " outside of [%" PRId64 ", %" PRId64 "]", printed(dim), got, low, high);
        }
    }
    for (int i = 0; i < TREES; i++)
        for (int j = 0; j < TREES; j++) {
            tn_dim a = trees[i]->dim, b = trees[j]->dim;
            if (a.id == 0 || b.id == 0)
                continue;
            bool equal = tn_dim_equal(g, a, b), never = tn_dim_never_equal(g, a, b), at_most = tn_dim_at_most(g, a, b);
            for (int e = 0; e < ENVS; e++) {
                if (!has[i][e] || !has[j][e])
                    continue;
                if ((equal && values[i][e] != values[j][e]) || (never && values[i][e] == values[j][e]) ||
                    (at_most && values[i][e] > values[j][e]))
                    fail_msg("wrongly proved (%d %d %d) of %s and %s", equal, never, at_most, printed(a), printed(b));
            }
        }
    tn_dim_env_free(&env);
    for (int i = 0; i < TREES; i++)
        free_tree(trees[i]);
}

static void test_oracle(void **state) {
    (void)state;
    const char *given = getenv("TENON_TEST_SEED");
    seed = given != NULL ? strtoull(given, NULL, 10) : 88172645463325252u;
    printf("seed %" PRIu64 "\n", seed);
    const char *rounds = getenv("TENON_TEST_ROUNDS");
    for (int round = rounds != NULL ? atoi(rounds) : 100; round > 0; round--) {
        extremes = round % 4 == 0;
        narrow = round % 3 == 0;
        one_round();
        teardown(NULL);
        setup(NULL);
    }
}

/* Substitution commutes with evaluation: symbols whose bounds allow any value are replaced. */
static void test_substitution(void **state) {
    (void)state;
    seed = 4711;
    extremes = narrow = false;
    for (int round = 0; round < 100; round++) {
        tn_dims *dims = tn_graph_dims(g);
        for (int i = 0; i < SYMBOLS; i++) {
            lows[i] = INT64_MIN;
            highs[i] = INT64_MAX;
            symbols[i] = tn_dim_fresh(g, lows[i], highs[i]);
        }
        tn_dim map[SYMBOLS] = {{0}};
        tree *by[SYMBOLS];
        for (int i = 0; i < SYMBOLS; i++) {
            by[i] = random_tree(2);
            map[dims->expr.data[symbols[i].id].symbol] = by[i]->dim;
        }
        tn_dim_env env;
        assert_true(tn_dim_env_init(&env, NULL, dims));
        for (int k = 0; k < 20; k++) {
            tree *t = random_tree(3);
            tn_dim done = t->dim.id != 0 ? tn_dim_substitute(g, t->dim, map, SYMBOLS) : (tn_dim){0};
            for (int e = 0; e < 20; e++) {
                int64_t values[SYMBOLS], inner[SYMBOLS], got = 0;
                __int128 wanted, part;
                random_env(values, 6);
                bind(&env, values);
                bool has = true;
                for (int i = 0; i < SYMBOLS; i++) {
                    has = has && by[i]->dim.id != 0 && value_of(by[i], values, &part);
                    inner[i] = has ? (int64_t)part : 0;
                }
                if (!has || !value_of(t, inner, &wanted))
                    continue;
                if (done.id == 0 || !tn_dim_eval(dims, &env, done, &got) || got != wanted)
                    fail_msg("%s with its symbols replaced is %s = %" PRId64 ", not %" PRId64, printed(t->dim),
                             printed(done), got, (int64_t)wanted);
            }
            free_tree(t);
        }
        tn_dim_env_free(&env);
        for (int i = 0; i < SYMBOLS; i++)
            free_tree(by[i]);
        teardown(NULL);
        setup(NULL);
    }
}

static void test_copy_and_failing_allocations(void **state) {
    (void)state;
    tn_heap *heap = tn_heap_create(NULL);
    for (uint64_t n = 1;; n++) {
        tn_heap_fail_at(heap, n, n % 2 != 0);
        tn_graph *one = tn_graph_new(heap, NULL);
        bool ok = one != NULL;
        if (ok) {
            tn_dim a = tn_dim_symbol(one, "N"), b = tn_dim_fresh(one, 1, 50), c = tn_dim_const(one, 3);
            tn_dim d = tn_dim_floordiv(one, tn_dim_add(one, tn_dim_mul(one, a, tn_dim_add(one, b, c)), c),
                                       tn_dim_mul(one, b, c));
            tn_dim e = tn_dim_max(one, tn_dim_mod(one, d, b), tn_dim_broadcast(one, tn_dim_ceildiv(one, a, c), b));
            tn_dim f = tn_dim_substitute(one, e, &c, 1);
            size_t used;
            tn_dim p = tn_dim_parse(one, "floordiv(N*`x y` + 4*N, `x y` + 4)", 34, &used);
            ok = f.id != 0 && p.id != 0;
            if (f.id == 0) /* later calls with null operands do not hide the first error */
                assert_int_equal(tn_graph_check(one), TN_ERR_MEMORY);
            else if (!ok)
                assert_int_equal(tn_error_status(), TN_ERR_MEMORY);
            tn_dims copy;
            if (ok && tn_dims_copy(&copy, tn_graph_dims(one), heap)) {
                tn_text x, y;
                tn_text_init(&x, heap);
                tn_text_init(&y, heap);
                tn_dim_print(tn_graph_dims(one), e, &x);
                tn_dim_print(&copy, e, &y);
                ok = !x.failed && !y.failed;
                if (ok)
                    assert_string_equal(x.data, y.data);
                tn_text_free(&x);
                tn_text_free(&y);
                tn_dims_free(&copy);
            } else {
                ok = false;
            }
        }
        tn_heap_fail_at(heap, 0, false);
        tn_graph_destroy(one);
        assert_int_equal(tn_heap_in_use(heap), 0);
        tn_error_clear();
        if (ok)
            break;
        assert_true(n < 2000);
    }
    tn_heap_destroy(heap);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(canonical),
        TEST(wrong_text),
        TEST(bounds_and_symbols),
        TEST(proofs),
        TEST(errors_stick),
        TEST(long_sum),
        TEST(match),
        TEST(oracle),
        TEST(substitution),
        TEST(copy_and_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
