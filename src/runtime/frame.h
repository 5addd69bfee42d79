/* One run of a compiled plan: what the files that execute it share; nothing else includes it. */
#ifndef TN_RUNTIME_FRAME_H
#define TN_RUNTIME_FRAME_H

#include "base/heap_cache.h"
#include "runtime/execute.h"

/* Memory that is kept from run to run and replaced when more is needed. */
typedef struct tn_block {
    void *data;
    uint64_t bytes; /* that this run uses */
    uint64_t held;
} tn_block;

/* A part of the plan that is bound at once: ranges of the frame's lists, and for which binding it was done last. */
typedef struct tn_segment {
    uint32_t size, sizes;      /* in size_list */
    uint32_t slot, slots;      /* in slot_list: those placed together */
    uint32_t fetched, fetches; /* in fetched_list */
    uint32_t read, reads;      /* in read_list */
    uint32_t symbol, symbols;  /* in symbol_list */
    uint64_t version;          /* of the symbols' values; 0: never */
    uint64_t bytes;            /* of the arena then */
    tn_placement placement;    /* how its slots were placed last */
} tn_segment;

/* Whether a fork pays, and for which binding and number of threads that was found. */
typedef struct tn_fork_state {
    uint64_t version; /* 0: none */
    int threads;
    bool pays;
} tn_fork_state;

struct tn_frame {
    const tn_plan *plan;
    const tn_execute_options *options; /* of the run */
    tn_heap *home;                     /* of the frame, and of results */
    tn_heap_cache *cache;
    tn_heap *heap; /* the cache's: of what a run makes and no caller sees */
    tn_dim_env env;
    int64_t *size;      /* by tn_size */
    uint8_t *missing;   /* by tn_size: it has no value in this binding (`size` is 0) */
    void **slot;        /* by slot: base address */
    int64_t *trip;      /* by loop: the number of its trip, and how many there are: 2 each */
    bool backwards;     /* of the innermost: it is odd */
    bool shared;        /* several threads took part in the last run */
    tn_object **object; /* by slot: retained; inputs, objects, fetched tensors */
    tn_block *late;     /* by slot: memory of its own where it was not placed with its segment; NULL: all were */
    uint32_t lacking; /* how many sizes are missing; with any, or `late`, instructions are looked at before they run */
    uint64_t bytes;   /* charged to this run */

    /* kept from run to run */
    tn_block *arena; /* by segment */
    tn_segment *segment;
    uint32_t *size_list, *slot_list, *fetched_list, *read_list, *symbol_list;
    uint32_t *placed_order; /* by slot of slot_list: see tn_placement */
    uint32_t *output_of;    /* by slot: the output of the graph that it holds whole; UINT32_MAX: none */
    uint64_t version;       /* of the values of symbols: each change makes a new one */
    int64_t *was_value;     /* by symbol: what `version` stands for */
    uint8_t *was_bound;
    void **kept;         /* by kernel: what it keeps (tn_kernel_args), of sizes that have not changed since */
    bool keeping;        /* some kernel does */
    tn_fork_state *fork; /* by fork: whether it pays */
    tn_lifetime *life;   /* room for placing */
    uint32_t *which;
    struct tn_frame_profile *profile; /* NULL: no run was profiled */
    bool guarded;                     /* the run before was */
    uint8_t *armed;                   /* by slot: its zones are filled */
    uint8_t *garbage;                 /* measured: by slot: it does not hold what a run would have left there */
    struct tn_host_kernels *host;     /* NULL: no host instruction */
    bool uncounted;                   /* measured: some memory that a run takes is not known */
    tn_tensor *const *into;           /* of the run: by output, the caller's tensor or NULL; NULL: none */
};

/* --- bind.c ------------------------------------------------------------------------------------------------------------------- */
/* Sizes of a segment are evaluated, its slots placed. What has no value, or no room, is an error only for an instruction that
   needs it: a branch may not be taken, a loop may make no trip. */
tn_status tn_frame_bind(tn_frame *f, uint32_t segment);
/* Forgets the sizes that a segment finds: on a later trip of a loop they are found anew. */
void tn_frame_unbind(tn_frame *f, uint32_t segment);
/* After a failure for lack of memory: which values need most. */
void tn_frame_say_largest(const tn_frame *f);
/* Frees what kernels keep: sizes change, or the frame ends. */
void tn_frame_drop_kept(tn_frame *f);
/* What is kept for later makes room for a result of a slot's size, where a limit leaves none. */
void tn_frame_make_room(const tn_frame *f, uint32_t slot);
/* Forgets how slots were placed: the next run places them anew. */
void tn_frame_forget(tn_frame *f);
/* Before a CALL, HOST or ENTER instruction while f->lacking or f->late: fails when a size that it needs has no value; gives memory to slots that have
   none. *skip: there is nothing to compute. */
tn_status tn_frame_admit(tn_frame *f, const tn_instruction *in, bool *skip);

/* --- explain.c ---------------------------------------------------------------------------------------------------------------- */
/* Ends the run if one of `count` checks from `first` on does not hold, in the words of the node's own row where it has any. */
tn_status tn_frame_check(const tn_frame *f, uint32_t first, uint32_t count);
/* Fails at a node because of a size without a value. */
tn_status tn_frame_fail_size(const tn_frame *f, tn_node node, tn_size size);
/* Adds the nodes in whose regions a node lies, as the interpreter does. */
void tn_frame_say_enclosing(const tn_frame *f, tn_node node);
/* Fails because the caller's tensor for an output is not of the result's type and shape. */
tn_status tn_frame_fail_output(const tn_frame *f, uint32_t output, const tn_tensor *given, const tn_tensor *result);

/* --- profile.c ---------------------------------------------------------------------------------------------------------------- */
/* A run with a profile begins. */
tn_status tn_frame_profile_begin(tn_frame *f);
/* What ran since the last call of these were `count` kernels from instruction `pc` on, or a host instruction (0). */
tn_status tn_frame_profile_mark(tn_frame *f, uint32_t pc, uint32_t count);
/* tn_frame_bind; what ran before is told with the sizes that it had. */
tn_status tn_frame_profile_bind(tn_frame *f, uint32_t segment);
/* The run ends with `status`, which is the answer but for want of memory: the last parts are told. */
tn_status tn_frame_profile_end(tn_frame *f, tn_status status);
void tn_frame_profile_free(tn_frame *f);
/* --- execute.c ---------------------------------------------------------------------------------------------------------------- */
/* Runs instructions from `first` on, to the end of the code or to `end`. */
tn_status tn_frame_run_code(tn_frame *f, uint32_t first, uint32_t end);
/* Room for what a host instruction gives to a slot: *out stays NULL where only data decides how much. */
tn_status tn_frame_prepare_output(tn_frame *f, uint32_t slot, tn_object **out);

/* --- loop.c ------------------------------------------------------------------------------------------------------------------- */
/* A loop begins: its moving slots lie where the first trip has them. False: there is no trip. */
bool tn_frame_enter(tn_frame *f, uint32_t loop);
/* A trip has ended. False: it was the last. */
bool tn_frame_next(tn_frame *f, uint32_t loop);
/* Runs the parts of a fork at once, if that pays. *done: they have run. */
tn_status tn_frame_fork(tn_frame *f, uint32_t fork, bool *done);

/* --- host_kernel.c ------------------------------------------------------------------------------------------------------------- */
typedef struct tn_host_kernels tn_host_kernels;
/* `own`: of itself; `heap`: of what it keeps. */
tn_host_kernels *tn_host_kernels_create(tn_heap *own, tn_heap *heap, tn_isa isa);
void tn_host_kernels_destroy(tn_host_kernels *kernels); /* NULL is fine */
void tn_host_kernels_trim(tn_host_kernels *kernels);    /* forgets all; NULL is fine */
/* Runs a node whose results depend on the order of sums as a plan would. *done: it was such a node, e->out[0] is filled. */
tn_status tn_host_kernels_run(tn_host_kernels *kernels, tn_eval *e, bool *done);

/* --- measure.c: with tn_execute_options.measure ------------------------------------------------------------------------------- */
/* Whether a host instruction reads what no run would read there. */
bool tn_frame_reads_garbage(const tn_frame *f, const tn_host_call *h);
/* Whether it ends. */
bool tn_frame_may_run(const tn_frame *f, const tn_host_call *h);
/* What such an instruction gave: its results count where sizes alone decide what they take. */
tn_status tn_frame_settle_host(tn_frame *f, const tn_host_call *h, tn_object **out, tn_status status);
/* Whether kernels from `first` on are run: only small integers, of which sizes are made, are computed. */
bool tn_frame_computes(const tn_frame *f, uint32_t first, uint32_t count);
/* They were not. */
void tn_frame_note_garbage(tn_frame *f, uint32_t first, uint32_t count);

/* --- guard.c: with tn_execute_options.guard ----------------------------------------------------------------------------------- */
#define TN_GUARD_ZONE ((size_t)64) /* bytes before and behind each slot, which its alignment allows */
/* A segment was bound: its slots lie elsewhere. */
void tn_frame_guard_bound(tn_frame *f, uint32_t segment);
/* Before instructions from `first` to `last`: slots that live from here on and their zones are filled. */
void tn_frame_guard_before(tn_frame *f, uint32_t first, uint32_t last);
/* Instructions from `first` to `last` have run: zones must be whole; slots that live no longer are filled. */
tn_status tn_frame_guard_ran(tn_frame *f, uint32_t first, uint32_t last);

#endif
