/* Running a compiled plan. */
#ifndef TN_RUNTIME_EXECUTE_H
#define TN_RUNTIME_EXECUTE_H

#include "lower/plan.h"

/* Shown to `watch`: a kernel that is about to run, or has run. */
typedef struct tn_execute_watch {
    uint32_t kernel;
    bool after;
    const tn_dim_env *env;                                /* sizes bound so far */
    tn_object *(*view)(const void *frame, uint32_t view); /* what a view of the plan holds now: a new reference */
    const void *frame;
} tn_execute_watch;

typedef struct tn_execute_options {
    tn_heap *heap;
    tn_pool *pool;
    void (*log)(void *ctx, const char *text); /* of `print` nodes; NULL: dropped */
    void *log_ctx;
    uint64_t max_bytes;         /* refuse to allocate more for this run; 0: no limit */
    struct tn_late_cache *late; /* of nodes that are expanded at run time; NULL: none */
    tn_status (*watch)(void *ctx, const tn_execute_watch *watch); /* around every kernel; NULL: not */
    void *watch_ctx;
    uint64_t *arena_bytes; /* receives the bytes of the run's arenas; NULL: not wanted */
} tn_execute_options;

/* Runs a plan: in[i] is graph input i (NULL: not given, which is an error when the plan reads it). out[i] receives output i of the
   graph as a new object that shares no memory with the inputs, contiguous; all NULL on failure. Many threads may run one plan. */
tn_status tn_execute(const tn_plan *plan, const tn_execute_options *options, tn_object *const *in, tn_object **out);

#endif
