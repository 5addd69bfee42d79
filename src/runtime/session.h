/* Sessions from the inside: what session.c and run.c share; nothing else includes it. */
#ifndef TN_RUNTIME_SESSION_H
#define TN_RUNTIME_SESSION_H

#include "base/os_thread.h"
#include "runtime/execute.h"
#include "runtime/model.h"

/* What one run uses at a time: kept for the next. */
typedef struct tn_lane {
    struct tn_lane *next;  /* in the list of idle ones */
    tn_frame *frame;       /* NULL: reference back end */
    tn_object **in, **out; /* by input and output of the compiled graph */
    tn_tensor **into;      /* by output */
    int32_t *apart;        /* by output: see tn_execute_options */
} tn_lane;

/* A compiled form that the session holds, with the lanes of its runs. */
typedef struct tn_form {
    tn_compiled *compiled;
    tn_lane *idle;
    uint32_t busy; /* runs */
    uint32_t calls;
} tn_form;

/* The names that a run was called with, in order, and what they came to: a run that is called alike looks nothing up. */
typedef struct tn_call {
    uint32_t inputs, outputs;
    char *names;              /* of inputs, then of outputs, each ended by NUL */
    uint32_t *input, *output; /* in the compiled graph; UINT32_MAX: no pass left a reader of the input */
    tn_form *form;
    uint32_t busy;
    uint64_t used; /* for eviction */
} tn_call;

/* Ways of being called that a session remembers; the one used longest ago goes, and its form with it when no other uses it. */
#define TN_SESSION_CALLS 16

struct tn_session {
    tn_heap *heap;
    tn_model *model;
    tn_session_options options; /* texts point into `text` */
    tn_compile_key key;
    tn_text disable, passes, dump, dims;
    tn_form whole; /* for the default inputs and all outputs */
    tn_pool *pool;
    bool parks;   /* `park` is there */
    tn_park park; /* guards what follows */
    TN_VEC(tn_call *) call;
    TN_VEC(tn_form *) form; /* others */
    uint64_t clock;
    uint32_t running;
    _Atomic bool closing;
    _Atomic uint64_t arena_bytes;
    _Atomic bool measured; /* by the run that was measured last: all of it */
    _Atomic uint64_t measured_bytes;
};

/* --- session.c ------------------------------------------------------------------------------------------------------------------ */
/* After a failure for lack of memory: which constants of the model are the largest. */
void tn_session_say_largest(const tn_session *session);

/* --- refused.c ------------------------------------------------------------------------------------------------------------------ */
/* After a run that failed because its inputs do not fit, or need more than there is: says so in the words of the ONNX operator, as far
   as it can be told. Where a limit hid that they do not fit the error is TN_ERR_INPUT then. */
void tn_session_say_rule(tn_session *session, uint32_t inputs, const tn_binding *input);

/* --- call.c --------------------------------------------------------------------------------------------------------------------- */
/* What a run needs: how it is called (the first time, what is needed is compiled), and a lane. NULL with the error set; *lane NULL, too:
   out of memory, with the call to be given back. */
tn_call *tn_session_acquire(tn_session *session, uint32_t inputs, const tn_binding *input, uint32_t outputs,
                            const tn_output *output, tn_lane **lane);
void tn_session_give_back(tn_session *session, tn_call *call, tn_lane *lane);
/* Frees what runs left behind. */
void tn_session_free_runs(tn_session *session);
/* The memory of lanes, idle ones; with `trim` it is given back. */
tn_frame_memory tn_session_lanes(tn_session *session, bool trim);

#endif
