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

/* An optional attribute of while and scan: what is said of a row of each stacked output, for when no trip makes one and inference does
   not know: dtype (0: nothing is said), rank (-1: not known), sizes (0 for those not known), one output after the other. */
#define TN_LOOP_ROWS "rows"
/* Where in `rows` the entry of stacked output `index` begins; `count` where there is none, or after the last. */
uint32_t tn_loop_row(const int64_t *rows, uint32_t count, uint32_t index);

/* control_trips.c: what a while counts up to, one trip after the other, whatever else it does, a number of its condition's region or of
   outside; *counter: the loop value that counts. Null: it does not. */
tn_value tn_while_limit(const tn_graph *graph, tn_node node, uint32_t *counter);
/* The trips of a while that counts them up to a known limit, whatever else it does; null: not known. */
tn_dim tn_while_trips(tn_infer *c);

tn_status tn_while_infer(tn_infer *c);
tn_status tn_while_eval(tn_eval *e);
tn_status tn_scan_infer(tn_infer *c);
tn_status tn_scan_eval(tn_eval *e);

#endif
