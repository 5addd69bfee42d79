/* Fuzzes the text form: what parses verifies, prints, and parses back to the same text and an equal graph. */
#include <stdio.h>
#include <stdlib.h>

#include "ir/text.h"
#include "ops/ops.h"
#include "support/toy_ops.h"

#define REQUIRE(condition)                                                                          \
    do {                                                                                            \
        if (!(condition)) {                                                                         \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, tn_error_message()); \
            abort();                                                                                \
        }                                                                                           \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const tn_op_table *ops = toy_ops_before(tn_ops_table());
    tn_heap *heap = tn_heap_create(NULL);
    REQUIRE(heap);
    /* what is allocated is bounded by the text, whatever numbers stand in it */
    tn_heap_set_limit(heap, ((size_t)4 << 20) + size * 4096);
    tn_graph *graph = tn_graph_parse_with(heap, ops, (const char *)data, size);
    if (graph) {
        REQUIRE(tn_graph_verify(graph) == TN_OK);
        char *text = tn_graph_print(graph);
        REQUIRE(text);
        tn_graph *again = tn_graph_parse_with(heap, ops, text, strlen(text));
        REQUIRE(again);
        char *second = tn_graph_print(again);
        REQUIRE(second && strcmp(text, second) == 0);
        REQUIRE(tn_graph_equal(graph, again));
        tn_graph_free_text(again, second);
        tn_graph_free_text(graph, text);
        tn_graph_destroy(again);
        tn_graph_destroy(graph);
    } else {
        REQUIRE(tn_error_status() != TN_OK && tn_error_status() != TN_ERR_INTERNAL);
        REQUIRE(tn_error_status() != TN_ERR_MEMORY);
    }
    REQUIRE(tn_heap_in_use(heap) == 0);
    tn_heap_destroy(heap);
    return 0;
}
