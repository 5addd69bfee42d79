/* Each allocation while a model of the ONNX standard's tests is expanded fails once, alone: the answer is TN_ERR_MEMORY or what it is with
   all memory, and nothing leaks. A failure that nobody passes on is not hidden by the next one, as it is where all later ones fail too.
   TENON_SUITE_ONLY: the tests whose name contains it. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

/* An arena of the test's own, whose blocks are each a chunk: an allocation that can fail. */
#define FIRST_CHUNK 48
#define LARGEST_CHUNK 16
#include "base/arena.c"
#include "ir/graph.h"
#include "onnx/model.h"

enum { MOST = 4000 }; /* allocations that fail in one model; of more, evenly spread ones */

static int is_test(const struct dirent *d) {
    return strncmp(d->d_name, "test_", 5) == 0;
}

static tn_graph *load(const char *path, tn_heap *heap) {
    return tn_onnx_load_file(path, &(tn_onnx_options){.heap = heap});
}

/* The operators of a graph's nodes in the order they were made, lines of text that the caller frees. Sizes are left out: a proof about
   them that lacks memory proves nothing, and then they are only written at greater length. */
static char *operators_of(const tn_graph *g) {
    size_t room = 1, at = 0;
    for (uint32_t i = 1; i < g->node.len; i++)
        room += strlen(tn_node_op_name(g, (tn_node){i})) + 1;
    char *text = malloc(room);
    assert_non_null(text);
    for (uint32_t i = 1; i < g->node.len; i++)
        at += (size_t)sprintf(text + at, "%s\n", tn_node_op_name(g, (tn_node){i}));
    text[at] = '\0';
    return text;
}

static bool starve(const char *name, const char *path) {
    tn_heap *heap = tn_heap_create(NULL);
    assert_non_null(heap);
    tn_graph *g = load(path, heap);
    uint64_t before = tn_heap_allocations(heap);
    tn_status status = g ? tn_onnx_expand(g, 0) : tn_error_status();
    uint64_t count = tn_heap_allocations(heap) - before, step = count / MOST + 1;
    char *whole = status == TN_OK ? operators_of(g) : NULL;
    bool good = true;
    tn_graph_destroy(g);
    for (uint64_t n = 1; whole && good && n <= count; n += step) {
        if (!(g = load(path, heap)))
            fail_msg("%s: %s", name, tn_error_message());
        tn_error_clear();
        tn_heap_fail_at(heap, n, false);
        status = tn_onnx_expand(g, 0);
        tn_heap_fail_at(heap, 0, false);
        if (status == TN_OK) {
            char *text = operators_of(g);
            good = strcmp(text, whole) == 0;
            if (!good)
                print_message("%s: allocation %d failed, and another graph came:\n%s", name, (int)n, text);
            free(text);
        } else if (status != TN_ERR_MEMORY || tn_error_status() != TN_ERR_MEMORY) {
            print_message("%s: allocation %d failed: %s (%s)\n", name, (int)n, tn_status_name(status),
                          tn_error_message());
            good = false;
        }
        tn_graph_destroy(g);
        if (tn_heap_in_use(heap)) {
            print_message("%s: allocation %d failed: %d bytes leak\n", name, (int)n, (int)tn_heap_in_use(heap));
            good = false;
        }
    }
    free(whole);
    tn_heap_destroy(heap);
    return good;
}

static void test_starved(void **state) {
    (void)state;
    const char *shared = getenv("TENON_SHARED"), *only = getenv("TENON_SUITE_ONLY");
    char folder[2048], path[4096];
    struct dirent **list;
    int bad = 0;
    snprintf(folder, sizeof folder, "%s/onnx-suite/node", shared ? shared : TENON_SHARED_DIR);
    int n = scandir(folder, &list, is_test, alphasort);
    if (n <= 0) {
        print_message("skipped: the tests of the standard are not at %s\n", folder);
        skip();
    }
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s/model.onnx", folder, list[i]->d_name);
        if (!only || strstr(list[i]->d_name, only))
            bad += !starve(list[i]->d_name, path);
        free(list[i]);
    }
    free(list);
    print_message("%d models, %d bad\n", n, bad);
    assert_int_equal(bad, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_starved)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
