/* Repeated blocks of a model, as `tenon info` shows them. */
#ifndef TN_CLI_BLOCK_LIST_H
#define TN_CLI_BLOCK_LIST_H

#include "base/buffer.h"
#include "ir/graph.h"

/* Lines "  100 x 200 nodes from MatMul 'layer0/mm': 40 MatMul, 40 Add, ..." under a heading; nothing when no block repeats. Out of memory
   shows as a failed buffer. */
void tn_cli_put_blocks(const tn_graph *graph, tn_text *out);
/* [{"count": 100, "nodes": 200, "first": {"operator": "MatMul", "name": "layer0/mm"}, "operators": {"MatMul": 40}}] */
void tn_cli_put_blocks_json(const tn_graph *graph, tn_text *out);

#endif
