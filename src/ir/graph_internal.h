/* Shared by the files that implement the graph, its verifier and its binary form; nothing else includes it. */
#ifndef TN_IR_GRAPH_INTERNAL_H
#define TN_IR_GRAPH_INTERNAL_H

#include "ir/graph.h"

bool tn_region_is_alive(const tn_graph *graph, tn_region region);
const char *tn_origin_describe(const tn_graph *graph, uint32_t origin, char *text, size_t size);
/* Copies attributes into the graph's arena (payloads copied, tensors retained). NULL on failure (count > 0). */
tn_attr *tn_attrs_copy(tn_graph *graph, uint32_t count, const tn_attr *attrs);
/* Checks attributes against a row: unknown, twice, ill-typed, missing, not allowed. `who` names the node in messages. */
tn_status tn_attrs_check(const tn_op *op, uint32_t count, const tn_attr *attrs, const char *who);
/* Appends dims to dim_list; UINT32_MAX when out of memory. */
uint32_t tn_dim_list_add(tn_graph *graph, uint32_t count, const tn_dim *dims);
/* Runs infer of a node into `c` (types and contents in c->scratch; the caller frees it with tn_arena_free in any case). */
tn_status tn_infer_run(tn_graph *graph, tn_node node, tn_infer *c);
/* The same with an arena that becomes c->scratch: for many nodes in turn. */
tn_status tn_infer_run_in(tn_graph *graph, tn_node node, tn_infer *c, const tn_arena *scratch);
/* Use lists. */
void tn_operand_link(tn_graph *graph, uint32_t operand, uint32_t value);
void tn_operand_unlink(tn_graph *graph, uint32_t operand);
/* Puts a node record that has no place into a region before `before` (0: at the end, before the return). */
void tn_node_link(tn_graph *graph, uint32_t node, uint32_t region, uint32_t before);
void tn_node_unlink(tn_graph *graph, uint32_t node);
/* Kills a node, its outputs and regions, whatever uses them. */
void tn_node_kill(tn_graph *graph, uint32_t node);
/* Notes which value defines the fresh symbols of a type. */
tn_status tn_graph_note_symbols(tn_graph *graph, uint32_t value);

#endif
