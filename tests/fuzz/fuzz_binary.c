/* Fuzzes the binary form beneath its checksums, which are made right first: what reads verifies, and survives being written. */
#include <stdio.h>
#include <stdlib.h>

#include "ir/text.h"
#include "ops/ops.h"
#include "support/binary_checks.h"
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
    uint8_t *bytes = tn_alloc(NULL, size);
    REQUIRE(heap && bytes);
    if (size)
        memcpy(bytes, data, size);
    binary_seal(bytes, size);
    /* what is allocated is bounded by the file, whatever numbers stand in it */
    tn_heap_set_limit(heap, ((size_t)4 << 20) + size * 1024);
    tn_graph *graph = tn_graph_read_binary_from(heap, ops, bytes, size, NULL, NULL);
    if (graph) {
        REQUIRE(tn_graph_verify(graph) == TN_OK);
        tn_heap_set_limit(heap, 0);
        REQUIRE(binary_survives(graph, NULL));
        tn_graph_destroy(graph);
    } else {
        REQUIRE(tn_error_status() != TN_OK && tn_error_status() != TN_ERR_INTERNAL);
        REQUIRE(tn_error_status() != TN_ERR_MEMORY);
    }
    REQUIRE(tn_heap_in_use(heap) == 0);
    tn_free(NULL, bytes);
    tn_heap_destroy(heap);
    return 0;
}
