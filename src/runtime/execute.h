/* Running a compiled plan. */
#ifndef TN_RUNTIME_EXECUTE_H
#define TN_RUNTIME_EXECUTE_H

#include <tenon/session.h>

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
    uint64_t max_bytes;           /* refuse to allocate more for this run; 0: no limit */
    struct tn_late_cache *late;   /* of nodes that are expanded at run time; NULL: none */
    bool (*cancelled)(void *ctx); /* asked before every instruction; true ends the run. NULL: never */
    void *cancel_ctx;
    tn_status (*watch)(void *ctx, const tn_execute_watch *watch); /* around every kernel; NULL: not */
    void *watch_ctx;
    void (*profile)(void *user, const tn_profile_event *event); /* as tn_run_options says; NULL: not */
    void *profile_user;
    /* By output: until after which instruction the memory of its tensor in `into` is read as an input's that was donated; -1: never;
       NULL: none is. */
    const int32_t *apart;
    bool
        guard; /* testing aid: zones around slots are checked after every instruction, dead slots and fresh memory hold poison */
    bool measure;   /* as tn_session_options says */
    bool *measured; /* with `measure`, as tn_session_measured says */
    uint64_t *measured_bytes;
    uint64_t *arena_bytes; /* receives the bytes of the run's arenas; NULL: not wanted */
} tn_execute_options;

/* What runs of a plan need and keep from one to the next: sizes, places of slots, arenas, freed blocks. One run at a time; a second
   run of the same sizes allocates nothing but results. The plan must outlive it. */
typedef struct tn_frame tn_frame;
tn_frame *tn_frame_create(const tn_plan *plan, tn_heap *heap);
void tn_frame_destroy(tn_frame *frame); /* NULL is fine */
typedef struct tn_frame_memory {
    size_t arena, cached; /* bytes held: arenas, freed blocks */
} tn_frame_memory;
tn_frame_memory tn_frame_measure(tn_frame *frame); /* not during a run */
void tn_frame_trim(tn_frame *frame);               /* gives them back; not during a run */

/* Runs a plan: in[i] is graph input i (NULL: not given, which is an error when the plan reads it). out[i] receives output i of the
   graph as a new object that shares no memory with the inputs, contiguous; all NULL on failure. `into`, or an entry of it, may be NULL;
   else result i must be a tensor of that type and shape and is written there, and out[i] is that tensor, retained. It shares no
   memory with another, nor with an input but as `apart` says. Many threads may run one plan, each with a frame. `options->heap` is the frame's. */
tn_status tn_frame_run(tn_frame *frame, const tn_execute_options *options, tn_object *const *in, tn_tensor *const *into,
                       tn_object **out);
/* The same once, in a frame of its own. */
tn_status tn_execute(const tn_plan *plan, const tn_execute_options *options, tn_object *const *in, tn_object **out);

#endif
