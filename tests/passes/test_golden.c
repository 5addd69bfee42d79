/* Golden texts: each file of tests/passes/golden is a graph, and what passes make of it.

   # passes: cse,dce
   # level: 1
   <graph>
   # after
   <graph>

   The result verifies after every pass, prints as it stands, and computes what the graph before computes, on random inputs, bit for
   bit. TENON_UPDATE_GOLDENS=1 rewrites what stands after "# after". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/os.h"
#include "support/pass_checks.h"

#define FOLDER TENON_SOURCE_DIR "/tests/passes/golden"
#define MARK "# after\n"

/* The rest of the line that begins with `key`, or `otherwise`. */
static void setting(const char *text, const char *key, const char *otherwise, char *value, size_t size) {
    const char *at = strstr(text, key);
    size_t length = at ? strcspn(at + strlen(key), "\n") : 0;
    if (at)
        snprintf(value, size, "%.*s", (int)length, at + strlen(key));
    else
        snprintf(value, size, "%s", otherwise);
}

static bool write_after(const char *path, const char *text, size_t head, const char *printed) {
    tn_text all;
    tn_text_init(&all, NULL);
    tn_text_bytes(&all, text, head);
    tn_text_add(&all, printed);
    bool good = !all.failed && tn_file_write(path, all.data, all.len) == TN_OK;
    tn_text_free(&all);
    return good;
}

static bool check_after(const char *path, const char *text, const char *printed) {
    const char *mark = strstr(text, MARK);
    size_t head = (size_t)(mark - text) + strlen(MARK);
    if (getenv("TENON_UPDATE_GOLDENS"))
        return write_after(path, text, head, printed);
    if (strcmp(text + head, printed) == 0)
        return true;
    print_error("%s: after the passes it is\n%s\n", path, printed);
    return false;
}

static bool check(const char *path) {
    size_t size;
    char *text = tn_file_read(NULL, path, &size), passes[200], level[20];
    assert_non_null(text);
    const char *mark = strstr(text, MARK);
    assert_non_null(mark);
    setting(text, "# passes: ", "", passes, sizeof passes);
    setting(text, "# level: ", "2", level, sizeof level);
    tn_graph *before = tn_graph_parse(NULL, text, (size_t)(mark - text)),
             *after = before ? tn_graph_clone(before, NULL, NULL) : NULL;
    tn_pass_context c = pass_context(atoi(level), passes);
    c.bind_defaults = strstr(passes, "defaults") != NULL;
    bool good = after && tn_passes_run(after, &c) == TN_OK;
    char *printed = good ? tn_graph_print(after) : NULL;
    if (!printed)
        print_error("%s: %s\n", path, tn_error_message());
    good = printed && check_after(path, text, printed);
    if (good && !pass_equal(before, after, strstr(passes, "strip-debug") ? 0 : 12)) {
        print_error("%s: values differ\n%s\n", path, printed);
        good = false;
    }
    if (printed)
        tn_graph_free_text(after, printed);
    tn_pass_context_free(&c);
    tn_graph_destroy(before);
    tn_graph_destroy(after);
    tn_free(NULL, text);
    return good;
}

static void test_goldens(void **state) {
    (void)state;
    char **names;
    size_t count, checked = 0, bad = 0;
    assert_int_equal(tn_folder_list(NULL, FOLDER, &names, &count), TN_OK);
    for (size_t i = 0; i < count; i++) {
        char path[500];
        snprintf(path, sizeof path, "%s/%s", FOLDER, names[i]);
        if (strstr(names[i], ".txt")) {
            checked++;
            bad += !check(path);
        }
        tn_free(NULL, names[i]);
    }
    tn_free(NULL, names);
    assert_true(checked >= 20);
    assert_int_equal(bad, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_goldens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
