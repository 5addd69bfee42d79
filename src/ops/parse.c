/* Reading the text form of a graph with Tenon's operators. */
#include "ir/text.h"
#include "ops/ops.h"

tn_graph *tn_graph_parse(tn_heap *heap, const char *text, size_t length) {
    return tn_graph_parse_with(heap, tn_ops_table(), text, length);
}
