/* Shared by the files of the control family: control.c (if, call, rows) and control_loop.c (while, scan). */
#ifndef TN_OPS_CONTROL_H
#define TN_OPS_CONTROL_H

#include "ops/infer.h"
#include "ops/ops.h"

static inline tn_region tn_control_region(const tn_infer *c, uint32_t index) {
    return tn_node_region(c->graph, c->node, index);
}
/* Whether a dim has a symbol that gets its value inside a region of the node (or nowhere), so that it means nothing outside. */
bool tn_control_inner(const tn_infer *c, tn_dim dim);
/* Fails: "WHAT 2 is f32[n] HERE, but f64[n] THERE". */
tn_status tn_control_differ(tn_infer *c, const char *what, uint32_t index, const char *here, tn_type a,
                            const char *there, tn_type b);
/* Copies the dims of a tensor type, which move when the graph grows. The rank, -1 for unranked. */
int tn_control_dims(const tn_graph *graph, tn_type type, tn_dim dims[TN_MAX_RANK]);
bool tn_control_bool_scalar(const tn_graph *graph, tn_value value);
/* The one element of a bool scalar. */
bool tn_control_truth(const tn_tensor *tensor);

tn_status tn_while_infer(tn_infer *c);
tn_status tn_while_eval(tn_eval *e);
tn_status tn_scan_infer(tn_infer *c);
tn_status tn_scan_eval(tn_eval *e);

#endif
