/* Composites: rows defined by primitives. Their definitions as functions, as graphs of their own, or put in their place. */
#ifndef TN_OPS_COMPOSITE_H
#define TN_OPS_COMPOSITE_H

#include "base/buffer.h"
#include "ir/graph.h"
#include "ops/infer.h"

/* Whether a node is defined by primitives. */
bool tn_node_is_composite(const tn_graph *graph, tn_node node);
/* Writes what its definition depends on (row, attributes, input dtypes and ranks): "softmax.f32_2.axis_m1". Equal texts, equal
   definitions. TN_ERR_UNSUPPORTED for kinds of attributes that no definition may depend on. */
tn_status tn_composite_key(const tn_graph *graph, tn_node node, tn_text *key);
/* The index of the definition in the graph's function table (named by the key; added on first use). Its arguments have the node's
   dtypes and ranks and dimensions of their own. */
tn_status tn_composite_function(tn_graph *graph, tn_node node, uint32_t *function);
/* The definition as a graph of its own: inputs and outputs are the node's. Destroy it. For readers of a graph that must not change. */
tn_status tn_composite_definition(const tn_graph *graph, tn_node node, tn_heap *heap, tn_graph **definition);
/* Replaces the node by its definition, with the actual dimensions; names of outputs, location and role are kept. The node is dead. */
tn_status tn_composite_inline(tn_graph *graph, tn_node node);

/* For the files of composites. Output 0 has the type of x, input 0: a float (or, unless `floats_only`, an integer). */
tn_status tn_composite_same_type(tn_infer *c, bool floats_only, tn_operand_type *x);
/* 16-bit floats as f32, else x. */
tn_value tn_composite_widen(tn_graph *graph, tn_value x);
/* Hands over the result in the dtype of `like`. */
tn_status tn_composite_finish(tn_graph *graph, tn_value y, tn_value like, tn_value *out);

#endif
