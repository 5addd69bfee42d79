/* Golden texts: each file of tests/ir/golden parses with Tenon's operators, verifies, and prints as it stands.
   TENON_UPDATE_GOLDENS=1 rewrites the files with what is printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/os.h"
#include "ir/text.h"
#include "ops/ops.h"

#define FOLDER TENON_SOURCE_DIR "/tests/ir/golden"

static bool check(const char *path, bool update) {
    size_t size;
    char *text = tn_file_read(NULL, path, &size);
    tn_graph *graph = text ? tn_graph_parse(NULL, text, size) : NULL;
    char *printed = graph && tn_graph_verify(graph) == TN_OK ? tn_graph_print(graph) : NULL;
    bool good = printed != NULL;
    if (!good)
        print_error("%s: %s\n", path, tn_error_message());
    if (good && update) {
        good = tn_file_write(path, printed, strlen(printed)) == TN_OK;
    } else if (good && (strlen(printed) != size || memcmp(printed, text, size) != 0)) {
        size_t line = 1, i = 0;
        for (; i < size && printed[i] == text[i]; i++)
            line += text[i] == '\n';
        print_error("%s differs from what is printed in line %zu:\n%s\n", path, line, printed);
        good = false;
    }
    /* clones and copies keep everything too */
    tn_graph *clone = good ? tn_graph_clone(graph, NULL, NULL) : NULL;
    char *again = clone ? tn_graph_print(clone) : NULL;
    if (good &&
        (!again || strcmp(again, printed) != 0 || !tn_graph_equal(graph, clone) || tn_graph_verify(clone) != TN_OK)) {
        print_error("%s: a clone differs: %s\n%s\n", path, tn_error_message(), again ? again : "");
        good = false;
    }
    if (clone)
        tn_graph_free_text(clone, again);
    tn_graph_destroy(clone);
    if (graph)
        tn_graph_free_text(graph, printed);
    tn_graph_destroy(graph);
    tn_free(NULL, text);
    return good;
}

static void goldens(void **state) {
    (void)state;
    char **names;
    size_t count, wrong = 0, seen = 0;
    const char *update = getenv("TENON_UPDATE_GOLDENS");
    assert_int_equal(tn_folder_list(NULL, FOLDER, &names, &count), TN_OK);
    for (size_t i = 0; i < count; i++) {
        char path[4096];
        size_t length = strlen(names[i]);
        if (length > 4 && strcmp(names[i] + length - 4, ".txt") == 0) {
            snprintf(path, sizeof path, "%s/%s", FOLDER, names[i]);
            wrong += !check(path, update && *update && strcmp(update, "0") != 0);
            seen++;
        }
        tn_free(NULL, names[i]);
    }
    tn_free(NULL, names);
    assert_int_equal(wrong, 0);
    assert_true(seen > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(goldens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
