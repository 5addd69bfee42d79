/* The reference interpreter: runs any graph node after node by the rows' `eval`, with nothing planned. It is the definition of
   what a graph computes: slow, obvious, and what everything else is compared with. */
#ifndef TN_INTERP_INTERP_H
#define TN_INTERP_INTERP_H

#include "ir/graph.h"

/* Zero-initialised is fine. */
typedef struct tn_interp_options {
    tn_heap *heap; /* of all values; NULL: the default heap */
    tn_pool *pool; /* may be NULL */
    /* Where `print` writes; NULL: nowhere. */
    void (*log)(void *ctx, const char *text);
    void *log_ctx;
    /* Called for every value that a node of the graph computes, those of bodies on every trip; not inside composites. The object is
       borrowed. */
    void (*tap)(void *ctx, tn_value value, const tn_object *object);
    void *tap_ctx;
    /* Called after the evaluation of every node, within bodies, functions and composites too; it may change what e->out holds. */
    tn_status (*adjust)(void *ctx, tn_eval *e);
    void *adjust_ctx;
    /* Called before a node's row evaluates it, on `adjust_ctx`: *done says that it is done, into e->out; then there is nothing to adjust. */
    tn_status (*instead)(void *ctx, tn_eval *e, bool *done);
    /* Asked before every node and every trip; true ends the run with TN_ERR_CANCELLED. */
    bool (*cancelled)(void *ctx);
    void *cancel_ctx;
    bool
        check_shapes; /* states in messages that a false inferred shape was looked for; such a shape is an error either way */
    size_t max_bytes;           /* of the heap's growth during the run; 0: no limit */
    uint64_t max_nodes;         /* nodes and trips run; 0: no limit */
    struct tn_late_cache *late; /* for the nodes of the graph that is run: as in tn_eval; NULL: none */
    uint32_t late_graph;
} tn_interp_options;

/* Runs what out_values need of the main region (and what has effects) from in_values: inputs, or inner values of the main region, which
   then replace what their producer gives. Inputs left out take their default; one that is needed and has none is TN_ERR_INPUT.
   Objects given are only read. out[i] receives a new reference (destroy it) that shares no memory with anything else, contiguous;
   all NULL on failure. `options` may be NULL. */
tn_status tn_interp_run(const tn_graph *graph, const tn_interp_options *options, uint32_t n_in,
                        const tn_value *in_values, tn_object *const *in, uint32_t n_out, const tn_value *out_values,
                        tn_object **out);

/* Runs one node, in whatever region, from its inputs and the enclosing values that its regions read; out[i] is its output i, as above.
   Effects of other nodes do not happen. `env` (may be NULL): symbols bound already. For host instructions of
   compiled plans. */
tn_status tn_interp_run_node(const tn_graph *graph, const tn_interp_options *options, tn_node node,
                             const tn_dim_env *env, uint32_t n_in, const tn_value *in_values, tn_object *const *in,
                             tn_object **out);

#endif
