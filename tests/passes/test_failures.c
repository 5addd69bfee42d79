/* Every allocation of every pass fails in turn: an error, nothing leaked, in the end the result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <tenon/build.h>

#include "base/os.h"
#include "support/pass_checks.h"

#define FOLDER TENON_SOURCE_DIR "/tests/passes/golden"

static void quiet(void *ctx, const char *text) {
    (void)ctx, (void)text;
}

static tn_status attempt(tn_heap *heap, const char *text, size_t size, const char *passes, uint64_t n, bool after,
                         tn_graph **out) {
    *out = NULL;
    tn_graph *g = tn_graph_parse(heap, text, size);
    assert_non_null(g);
    tn_pass_context c = pass_context(2, passes);
    c.verify = false;
    c.evaluate_ctx = heap;
    c.bind_defaults = true;
    c.log = quiet;
    uint64_t made = tn_heap_allocations(heap);
    tn_heap_fail_at(heap, n, after);
    tn_status status = tn_passes_run(g, &c);
    tn_heap_fail_at(heap, 0, false);
    bool failed = tn_heap_allocations(heap) - made + 1 >= n; /* those that fail are not counted */
    tn_pass_context_free(&c);
    if (status == TN_OK) {
        assert_int_equal(tn_graph_check(g), TN_OK);
        assert_int_equal(tn_graph_verify(g), TN_OK);
        if (!failed) {
            *out = g;
            return status;
        }
        tn_graph_destroy(g); /* an origin was lost, or a note */
        assert_int_equal(tn_heap_in_use(heap), 0);
        return TN_ERR_MEMORY;
    }
    assert_int_equal(status, TN_ERR_MEMORY);
    assert_true(tn_error_status() == TN_ERR_MEMORY);
    tn_graph_destroy(g);
    if (tn_heap_in_use(heap))
        print_error("%s: allocation %llu left %zu bytes\n", passes, (unsigned long long)n, tn_heap_in_use(heap));
    assert_int_equal(tn_heap_in_use(heap), 0);
    return status;
}

static void check(const char *path, uint64_t *failures) {
    size_t size;
    char *text = tn_file_read(NULL, path, &size), passes[200] = "";
    assert_non_null(text);
    const char *at = strstr(text, "# passes: "), *mark = strstr(text, "# after\n");
    snprintf(passes, sizeof passes, "%.*s", (int)strcspn(at + 10, "\n"), at + 10);
    tn_heap *heap = tn_heap_create(NULL);
    for (int after = 0; after < 2; after++) {
        tn_graph *done = NULL;
        for (uint64_t n = 1; attempt(heap, text, (size_t)(mark - text), passes, n, after, &done) != TN_OK; n++)
            (*failures)++;
        tn_graph *right = tn_graph_parse(NULL, text, (size_t)(mark - text));
        tn_pass_context c = pass_context(2, passes);
        c.bind_defaults = true;
        assert_int_equal(tn_passes_run(right, &c), TN_OK);
        tn_pass_context_free(&c);
        assert_int_equal(tn_graph_verify(done), TN_OK);
        assert_int_equal(tn_graph_count_nodes(done), tn_graph_count_nodes(right));
        tn_graph_destroy(right);
        tn_graph_destroy(done);
    }
    assert_int_equal(tn_heap_in_use(heap), 0);
    tn_heap_destroy(heap);
    tn_free(NULL, text);
}

static void test_every_allocation(void **state) {
    (void)state;
    char **names;
    size_t count;
    uint64_t failures = 0;
    assert_int_equal(tn_folder_list(NULL, FOLDER, &names, &count), TN_OK);
    for (size_t i = 0; i < count; i++) {
        char path[500];
        snprintf(path, sizeof path, "%s/%s", FOLDER, names[i]);
        if (strstr(names[i], ".txt"))
            check(path, &failures);
        tn_free(NULL, names[i]);
    }
    tn_free(NULL, names);
    assert_true(failures > 500);
}

static tn_status to_gelu(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    return tn_rewrite_replace(r, n, tn_gelu(g, tn_node_input(g, n, 0)));
}

static void test_rewrites(void **state) {
    (void)state;
    const tn_rewrite rows[] = {{.name = "relu-to-gelu", .root = "relu", .apply = to_gelu}};
    tn_heap *heap = tn_heap_create(NULL);
    tn_status status = TN_ERR_MEMORY;
    for (uint64_t n = 1; status != TN_OK; n++) {
        tn_graph *g = tn_graph_create_in(heap);
        tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N"));
        for (int i = 0; i < 20; i++)
            x = tn_relu(g, x);
        tn_set_output(g, "y", x);
        assert_int_equal(tn_graph_check(g), TN_OK);
        tn_heap_fail_at(heap, n, false);
        uint64_t sites;
        status = tn_rewrite_apply(g, 1, rows, &sites);
        tn_heap_fail_at(heap, 0, false);
        assert_true(status == TN_OK ? sites == 20 : status == TN_ERR_MEMORY);
        tn_graph_destroy(g);
        assert_int_equal(tn_heap_in_use(heap), 0);
        assert_true(n < 10000);
    }
    tn_heap_destroy(heap);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation), cmocka_unit_test(test_rewrites)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
