/* Rows of cleanup: rewrites that keep every bit. */
#ifndef TN_PASSES_CLEANUP_H
#define TN_PASSES_CLEANUP_H

#include "passes/pass.h"

extern const tn_rewrite tn_cleanup_move_rows[], tn_cleanup_algebra_rows[];
extern const uint32_t tn_cleanup_move_count, tn_cleanup_algebra_count;

/* Input `index` of a node is made by a node of the same operator as `node`; that node, or null. */
tn_node tn_cleanup_same_op(const tn_graph *graph, tn_node node, uint32_t index);
/* Replaces the node by a value of the very same type; does nothing when the types differ. */
tn_status tn_cleanup_forward(tn_rewriter *rewriter, tn_node node, tn_value value);
/* The same for a value just built. One that could not be built, because the graph is seen to be wrong only when two nodes are joined,
   is left alone: the error belongs where the nodes run. */
tn_status tn_cleanup_built(tn_rewriter *rewriter, tn_node node, tn_value value);
/* The one element that a constant (looked at through views) repeats: its tensor (of one element, or uniform) and dtype. NULL:
   not uniform. */
const tn_tensor *tn_cleanup_uniform(const tn_graph *graph, tn_value value);

#endif
