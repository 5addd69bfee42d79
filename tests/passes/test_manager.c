/* The pass manager: which passes run, what is reported, dumped and refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <tenon/build.h>

#include "base/os.h"
#include "passes/names.h"
#include "support/pass_checks.h"

/* softmax(x * 1) + softmax(x * 1), and something unused */
static tn_graph *sample(void) {
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 3));
    tn_value a = tn_softmax(g, tn_mul(g, x, tn_scalar(g, TN_F32, 1)), -1),
             b = tn_softmax(g, tn_mul(g, x, tn_scalar(g, TN_F32, 1)), -1);
    tn_exp(g, x);
    tn_set_output(g, "y", tn_add(g, a, b));
    assert_int_equal(tn_graph_check(g), TN_OK);
    return g;
}

typedef struct seen {
    char names[500];
    uint32_t reports, before, after;
    uint64_t sites;
} seen;

static void see(void *ctx, const tn_pass_report *r) {
    seen *s = ctx;
    size_t used = strlen(s->names);
    snprintf(s->names + used, sizeof s->names - used, "%s%s", used ? "," : "", r->name);
    if (!s->reports++)
        s->before = r->nodes_before;
    s->after = r->nodes_after;
    s->sites += r->sites;
    assert_true(r->seconds >= 0);
}

static void expect_passes(tn_level level, const char *passes, const char *disable, bool strip, const char *names) {
    tn_graph *g = sample();
    seen s = {0};
    tn_status status =
        tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .level = level, .passes = passes, .disable = disable,
                                        .strip_debug = strip, .verify = true, .report = see, .report_user = &s));
    if (status != TN_OK)
        fail_msg("%s", tn_error_message());
    assert_string_equal(s.names, names);
    tn_graph_destroy(g);
}

static void test_levels_and_lists(void **state) {
    (void)state;
    expect_passes(TN_LEVEL_0, NULL, NULL, false, "defaults,expand,dce,dce,inline-composites,dce");
    expect_passes(TN_LEVEL_0, NULL, NULL, true, "defaults,expand,strip-debug,dce,dce,inline-composites,dce");
    const char *all =
        "defaults,rewrites,expand,rewrites,dce,fold,cleanup,cse,dce,inline-composites,fold,cleanup,cse,fold-affine,dce";
    expect_passes(TN_LEVEL_1, NULL, NULL, false,
                  "defaults,rewrites,expand,rewrites,dce,fold,cleanup,cse,dce,inline-composites,fold,cleanup,cse,dce");
    expect_passes(TN_LEVEL_DEFAULT, NULL, NULL, false, all);
    expect_passes(TN_LEVEL_3, "", NULL, false, "defaults,expand,inline-composites");
    expect_passes(TN_LEVEL_2, " cse , dce,cse", NULL, false, "defaults,expand,cse,dce,cse,inline-composites");
    expect_passes(TN_LEVEL_2, "inline-composites,expand", NULL, false, "defaults,inline-composites,expand");
    expect_passes(TN_LEVEL_2, NULL, "fold,rewrites, cleanup", false,
                  "defaults,expand,dce,cse,dce,inline-composites,cse,fold-affine,dce");
    expect_passes(TN_LEVEL_2, "cse,dce", "cse", false, "defaults,expand,dce,inline-composites");
}

static void test_effect_of_the_whole(void **state) {
    (void)state;
    tn_graph *g = sample(), *before = tn_graph_clone(g, NULL, NULL);
    seen s = {0};
    assert_int_equal(tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .report = see, .report_user = &s)), TN_OK);
    /* max, broadcast, sub, exp, sum, reciprocal, broadcast, mul, add */
    assert_int_equal(tn_graph_count_nodes(g), 9);
    assert_int_equal(s.after, 9);
    assert_int_equal(s.before, tn_graph_count_nodes(before));
    assert_true(s.sites >= 5);
    assert_int_equal(tn_graph_verify(g), TN_OK);
    assert_true(pass_equal(before, g, 10));
    tn_graph_destroy(g);
    g = tn_graph_clone(before, NULL, NULL);
    assert_int_equal(tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .keep_composites = true)), TN_OK);
    assert_int_equal(tn_graph_count_nodes(g), 2); /* softmax, once, and add */
    tn_graph_destroy(g);
    g = tn_graph_clone(before, NULL, NULL);
    assert_int_equal(tn_graph_optimize(g, NULL), TN_OK);
    assert_int_equal(tn_graph_count_nodes(g), 9);
    tn_graph_destroy(g);
    tn_graph_destroy(before);
}

static void expect_refused(const char *disable, const char *passes, const char *what, const char *hint) {
    tn_graph *g = sample();
    uint32_t nodes = tn_graph_count_nodes(g);
    assert_int_equal(tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .disable = disable, .passes = passes)),
                     TN_ERR_USAGE);
    assert_non_null(strstr(tn_error_what(), what));
    assert_non_null(strstr(tn_error_hint(), hint));
    assert_int_equal(tn_graph_check(g), TN_OK);
    assert_int_equal(tn_graph_count_nodes(g), nodes);
    tn_graph_destroy(g);
}

static tn_status nothing(tn_rewriter *r, tn_node n) {
    (void)r, (void)n;
    return TN_OK;
}

static void test_names(void **state) {
    (void)state;
    expect_refused("fodl", NULL, "disable: there is no pass 'fodl'", "did you mean 'fold'");
    expect_refused(NULL, "cse,deadcode", "passes: there is no pass 'deadcode'", "docs/passes.md");
    expect_refused(NULL, "cs", "no pass 'cs'", "'cse'");
    expect_refused("inline_composites", NULL, "inline_composites", "'inline-composites'");
    expect_refused("expand", NULL, "pass 'expand' cannot be left out", "relies");
    expect_refused("cse;dce", NULL, "there is no pass 'cse;dce'", "");
    char longest[300];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    expect_refused(longest, NULL, "there is no pass 'aaa", "");
    /* rewrites may be disabled by name, not listed */
    const tn_rewrite rows[] = {{.name = "mine", .root = "add", .apply = nothing}};
    tn_graph *g = sample();
    assert_int_equal(
        tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .disable = "mine", .rewrites = rows, .rewrite_count = 1)),
        TN_OK);
    assert_int_equal(
        tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .disable = "mien", .rewrites = rows, .rewrite_count = 1)),
        TN_ERR_USAGE);
    assert_non_null(strstr(tn_error_hint(), "'mine'"));
    assert_int_equal(
        tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .passes = "mine", .rewrites = rows, .rewrite_count = 1)),
        TN_ERR_USAGE);
    tn_graph_destroy(g);
    assert_int_equal(tn_name_distance("kitten", 6, "sitting", 7), 3);
    assert_int_equal(tn_name_distance("", 0, "abc", 3), 3);
    assert_true(tn_name_listed("a, bc ,d", "bc"));
    assert_false(tn_name_listed("a,bc,d", "b"));
    assert_false(tn_name_listed(NULL, "b"));
}

static void test_the_list_of_passes(void **state) {
    (void)state;
    uint32_t n = 0;
    for (; tn_pass_name(n); n++) {
        assert_true(*tn_pass_doc(n) != '\0');
        const tn_pass *p = tn_pass_find(tn_pass_name(n), strlen(tn_pass_name(n)));
        assert_non_null(p);
        assert_true(p->effect == TN_VALUE_CHANGING || p->keeps == TN_KEEPS_ALL);
        for (uint32_t i = 0; i < n; i++)
            assert_string_not_equal(tn_pass_name(i), tn_pass_name(n));
    }
    assert_int_equal(n, 10);
    assert_null(tn_pass_doc(n));
    assert_null(tn_pass_find("fol", 3));
}

static void test_wrong_calls(void **state) {
    (void)state;
    assert_int_equal(tn_graph_optimize(NULL, NULL), TN_ERR_USAGE);
    tn_graph *g = sample();
    assert_int_equal(tn_graph_optimize(g, &(tn_optimize_options){0}), TN_ERR_USAGE);
    assert_int_equal(tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .level = (tn_level)9)), TN_ERR_USAGE);
    assert_int_equal(tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .rewrite_count = 2)), TN_ERR_USAGE);
    tn_graph_freeze(g);
    assert_int_equal(tn_graph_optimize(g, NULL), TN_ERR_USAGE);
    assert_non_null(strstr(tn_error_what(), "frozen"));
    tn_graph_destroy(g);
}

static void test_dumps_of_what_changed(void **state) {
    (void)state;
    char folder[] = "/tmp/tenon-dump-XXXXXX", inner[100];
    assert_non_null(mkdtemp(folder));
    snprintf(inner, sizeof inner, "%s/a/b", folder);
    tn_graph *g = sample();
    assert_int_equal(
        tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .dump = inner, .passes = "cleanup,cleanup,cse,dce")),
        TN_OK);
    char **names;
    size_t count;
    assert_int_equal(tn_folder_list(NULL, inner, &names, &count), TN_OK);
    /* defaults, expand and the second cleanup change nothing */
    const char *wanted[] = {"00-input.txt", "03-cleanup.txt", "05-cse.txt", "06-dce.txt", "07-inline-composites.txt"};
    assert_int_equal(count, 5);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(names[i], wanted[i]);
        char path[200];
        size_t size;
        snprintf(path, sizeof path, "%s/%s", inner, names[i]);
        char *text = tn_file_read(NULL, path, &size);
        tn_graph *back = text ? tn_graph_parse(NULL, text, size) : NULL;
        assert_non_null(back);
        tn_graph_destroy(back);
        tn_free(NULL, text);
        assert_int_equal(remove(path), 0);
        tn_free(NULL, names[i]);
    }
    tn_free(NULL, names);
    assert_int_equal(remove(inner), 0);
    snprintf(inner, sizeof inner, "%s/a", folder);
    assert_int_equal(remove(inner), 0);
    assert_int_equal(remove(folder), 0);
    tn_graph_destroy(g);
    /* a folder that cannot be made */
    g = sample();
    assert_int_equal(tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .dump = "/dev/null/x")), TN_ERR_IO);
    tn_graph_destroy(g);
}

/* A pass that breaks a graph is named. */
static void test_the_verifier_runs(void **state) {
    (void)state;
    tn_graph *g = sample();
    tn_node add = tn_value_producer(g, tn_graph_output(g, 0));
    g->node.data[add.id].order = 0; /* breaks rule 2 */
    tn_pass_context c = pass_context(2, "cse");
    assert_int_equal(tn_passes_run(g, &c), TN_ERR_MODEL);
    assert_non_null(strstr(tn_error_where(), "before the first pass"));
    tn_pass_context_free(&c);
    tn_graph_destroy(g);
}

static void keep_note(void *ctx, const char *text) {
    snprintf(ctx, 300, "%s", text);
}

static void test_notes_name_the_node(void **state) {
    (void)state;
    char note[300] = "";
    tn_graph *g = tn_graph_create();
    float zero[8] = {0};
    tn_tensor *t = tn_tensor_from_f32(1, (const int64_t[]){8}, zero);
    tn_value k = tn_constant(g, t);
    tn_set_output(g, "y", tn_add(g, k, k));
    assert_int_equal(
        tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .log = keep_note, .log_user = note, .fold_bytes = 31)),
        TN_OK);
    assert_non_null(strstr(note, "fold: add"));
    assert_non_null(strstr(note, "32 bytes"));
    assert_non_null(strstr(note, "test_manager.c"));
    assert_int_equal(tn_graph_count_nodes(g), 1);
    assert_int_equal(tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .fold_bytes = 32)), TN_OK);
    assert_int_equal(tn_graph_count_nodes(g), 0); /* a graph of constants alone */
    tn_tensor_destroy(t);
    tn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels_and_lists),
        cmocka_unit_test(test_effect_of_the_whole),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_the_list_of_passes),
        cmocka_unit_test(test_wrong_calls),
        cmocka_unit_test(test_dumps_of_what_changed),
        cmocka_unit_test(test_the_verifier_runs),
        cmocka_unit_test(test_notes_name_the_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
