#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ir/text.h"
#include "support/binary_checks.h"
#include "support/graph_checks.h"

static void check_same(const tn_graph *graph, const char *text, tn_graph *other, const char *what) {
    if (!other)
        fail_msg("%s: %s\n%s", what, tn_error_message(), text);
    char *again = tn_graph_print(other);
    assert_non_null(again);
    if (strcmp(text, again) != 0)
        fail_msg("%s prints otherwise:\n%s\ninstead of\n%s", what, again, text);
    if (!tn_graph_equal(graph, other))
        fail_msg("%s: %s\n%s", what, tn_error_message(), text);
    tn_graph_free_text(other, again);
    tn_graph_destroy(other);
}

void check_graph(const tn_graph *graph) {
    char *text = tn_graph_print(graph);
    assert_non_null(text);
    if (tn_graph_verify(graph) != TN_OK)
        fail_msg("%s\n%s", tn_error_message(), text);
    check_same(graph, text, tn_graph_parse_with(NULL, graph->ops, text, strlen(text)), "the graph from its text");
    check_same(graph, text, tn_graph_clone(graph, NULL, NULL), "the clone");
    if (!binary_survives(graph, NULL))
        fail_msg("the binary form: %s\n%s", tn_error_message(), text);
    tn_graph_free_text(graph, text);
}
