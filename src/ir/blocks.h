/* Repeated blocks: runs of nodes that come again and again, as the layers of a deep network do. For showing, not for rewriting. */
#ifndef TN_IR_BLOCKS_H
#define TN_IR_BLOCKS_H

#include "ir/graph.h"

/* `count` blocks one after the other, each of `nodes` nodes: the same operators with the same attributes, inputs that come from
   the same places, constants of the same types and shapes (not values). Nodes without inputs (constants) and the region's return are not counted. */
typedef struct tn_block_run {
    tn_node first; /* of the first block */
    uint32_t nodes, count;
    uint32_t kind; /* runs of equal blocks have one number, that of the first of them in the list */
} tn_block_run;
typedef TN_VEC(tn_block_run) tn_block_runs;

/* The runs in a region's own list of nodes, in order, none within another; blocks after the first have at least so many nodes
   together. `runs` is empty before; free it with the graph's heap. Time grows little faster than the number of nodes. */
#define TN_BLOCKS_LEAST 4
tn_status tn_blocks_find(const tn_graph *graph, tn_region region, tn_block_runs *runs);
/* The next node that counts, for going through a block; null at the end. */
tn_node tn_blocks_next(const tn_graph *graph, tn_node node);

#endif
