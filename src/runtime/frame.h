/* One run of a compiled plan: what the files that execute it share; nothing else includes it. */
#ifndef TN_RUNTIME_FRAME_H
#define TN_RUNTIME_FRAME_H

#include "runtime/execute.h"

typedef struct tn_block {
    void *data;
    uint64_t bytes;
} tn_block;

typedef struct tn_frame {
    const tn_plan *plan;
    const tn_execute_options *options;
    tn_heap *heap;
    tn_dim_env env;
    int64_t *size;      /* by tn_size */
    uint8_t *missing;   /* by tn_size: it has no value in this binding (`size` is 0) */
    void **slot;        /* by slot: base address */
    tn_object **object; /* by slot: retained; inputs, objects, fetched tensors */
    tn_block *arena;    /* by segment */
    tn_block *late;     /* by slot: memory of its own where it was not placed with its segment; NULL: all were */
    uint32_t lacking; /* how many sizes are missing; with any, or `late`, instructions are looked at before they run */
    uint64_t bytes;
} tn_frame;

/* --- bind.c ------------------------------------------------------------------------------------------------------------------- */
/* Sizes of a segment are evaluated, its slots placed. What has no value, or no room, is an error only for an instruction that
   needs it: a branch may not be taken, a loop may make no trip. */
tn_status tn_frame_bind(tn_frame *f, uint32_t segment);
/* Forgets the sizes that a segment finds: on a later trip of a loop they are found anew. */
void tn_frame_unbind(tn_frame *f, uint32_t segment);
/* Before a CALL or HOST instruction while f->lacking or f->late: fails when a size that it needs has no value; gives memory to slots that have
   none. *skip: there is nothing to compute. */
tn_status tn_frame_admit(tn_frame *f, const tn_instruction *in, bool *skip);

/* --- explain.c ---------------------------------------------------------------------------------------------------------------- */
/* Ends the run if one of `count` checks from `first` on does not hold, in the words of the node's own row where it has any. */
tn_status tn_frame_check(const tn_frame *f, uint32_t first, uint32_t count);
/* Fails at a node because of a size without a value. */
tn_status tn_frame_fail_size(const tn_frame *f, tn_node node, tn_size size);
/* Adds the nodes in whose regions a node lies, as the interpreter does. */
void tn_frame_say_enclosing(const tn_frame *f, tn_node node);

#endif
