/* Sessions: running a model. */
#ifndef TENON_SESSION_H
#define TENON_SESSION_H

#include <tenon/model.h>

TN_BEGIN_DECLS

/* A session of a model. One session may run on many threads at once; two sessions never share mutable state (they share the
   model's compiled plans and packed weights). */
typedef struct tn_session tn_session;

typedef enum tn_backend {
    TN_BACKEND_DEFAULT, /* the compiled plan */
    TN_BACKEND_CPU,
    TN_BACKEND_REFERENCE /* the interpreter: the oracle */
} tn_backend;

typedef enum tn_level { TN_LEVEL_DEFAULT, TN_LEVEL_0, TN_LEVEL_1, TN_LEVEL_2, TN_LEVEL_3 } tn_level; /* default: 2 */

/* How values between kernels are laid out: results do not depend on it. */
typedef enum tn_layout_option { TN_LAYOUT_AUTO, TN_LAYOUT_NCHW, TN_LAYOUT_NHWC } tn_layout_option;
/* What memory of values is used again within a run: of all that are dead, where a value is written over in place, none. */
typedef enum tn_reuse_option { TN_REUSE_FULL, TN_REUSE_IN_PLACE, TN_REUSE_NONE } tn_reuse_option;

typedef struct tn_session_options {
    size_t size; /* set by TN_OPTIONS */
    tn_backend backend;
    tn_level level;
    int threads; /* 0: the CPUs this process may use (affinity and cgroup quota); more than those is TN_ERR_USAGE */
    const char
        *isa; /* "generic", "avx2", ...: the highest level used; NULL: the CPU's. Above the CPU's: TN_ERR_USAGE */
    const char *disable;     /* passes left out, by name, separated by commas; NULL: none */
    const char *passes;      /* instead of the level's list; NULL: the level's */
    const char *dump;        /* folder for the graph after each pass that changed it, and the plan; NULL: none */
    bool verify;             /* run the verifier after every pass */
    bool check_shapes;       /* reference: compare every value's actual shape with the inferred one */
    const char *const *dims; /* "NAME=N" strings, NULL-ended: symbols fixed to sizes; NULL: none */
    uint64_t max_bytes;      /* refuse runs that would allocate more; 0: no limit */
    void (*tap)(void *user, const char *name,
                const tn_object *object); /* reference: every value computed that has a name */
    void *tap_user;
    tn_layout_option layout; /* cpu */
    tn_reuse_option reuse;   /* cpu */
    bool
        guard; /* testing aid, cpu: what is written outside of a value's memory ends the run (TN_ERR_INTERNAL), what is read
                   where nothing is held is garbage */
    bool oversubscribe; /* testing aid: more threads than CPUs */
    bool
        measure; /* cpu: a run takes memory as any other, but computes nothing, and always ends with TN_ERR_LIMIT, the largest values
                    named. tn_session_measured tells under which limit of the heap the same would succeed */
    int spin_microseconds; /* how long threads look for more work before they sleep: 0: the default, 30, and 300 while a run is under way;
                              below 0: not at all; at most 1000000. Longer answers sooner where calls follow each other, and takes
                              processor time from others */
    bool
        describe_only; /* to look at with tn_session_describe and tn_session_graph: weights are not read, it does not run */
} tn_session_options;

/* Prepares a session: optimises and compiles the model for its default inputs (once for each model and options). */
TN_API tn_session *tn_session_create(tn_model *model, const tn_session_options *options);
/* Runs that are under way on other threads end with TN_ERR_CANCELLED; it returns when they have. No run may begin any more. */
TN_API void tn_session_destroy(tn_session *session);

/* After a run of a session made with `measure`: the heap's peak until then, and whether that is all; false: what only data decides is
   not counted. */
TN_API bool tn_session_measured(const tn_session *session, uint64_t *peak_bytes);

/* What is fed: a tensor, or any object (then tensor is NULL). Borrowed for the call. */
typedef struct tn_binding {
    const char *name;
    tn_tensor *tensor;
    tn_object *object;
} tn_binding;

/* What is wanted: an output by name. *tensor NULL on entry: it receives a new tensor (destroy it). Not NULL: the result is written
   into it, in place where it is contiguous and aligned; dtype and shape must be the result's (or there is room: tn_tensor_wrap_room). It
   may share no memory with another output, nor with an input unless that is donated. `object` receives a result of any kind instead, when `tensor` is NULL. */
typedef struct tn_output {
    const char *name;
    tn_tensor **tensor;
    tn_object **object;
} tn_output;

/* Runs. An input left out that is needed and has no default is TN_ERR_INPUT, listing name, dtype and shape of all inputs. After a
   failure, outputs are NULL (those created) or unspecified (those given). `inputs` may be 0.

   Any named value outside of loop bodies and branches may be fed: it then replaces what makes it. Any may be asked for. Only what the
   values asked for need is computed, and only inputs that they need are needed (all outputs, nothing inner fed: the whole model). What
   is fed and asked for, as sets of names, is compiled once for each such set and shared by all sessions of a model (it keeps the 16
   used last); a session remembers the 16 lists of names that it was called with last, and a call like one of them looks nothing up.
   From the second run of the same sizes on, a run allocates nothing but outputs that it creates. */
TN_API tn_status tn_session_run(tn_session *session, uint32_t inputs, const tn_binding *input, uint32_t outputs,
                                const tn_output *output);

/* A cancel token. Setting it ends the runs that it was given to, between two instructions, nodes or trips of a loop, with
   TN_ERR_CANCELLED; the session stays usable. Thread safe; tn_cancel_set may be called from a signal handler. NULL is fine, but for
   tn_cancel_is_set. It must outlive the runs. */
typedef struct tn_cancel tn_cancel;
TN_API tn_cancel *tn_cancel_create(void); /* not set; NULL when out of memory */
TN_API void tn_cancel_destroy(tn_cancel *cancel);
TN_API void tn_cancel_set(tn_cancel *cancel);
TN_API void tn_cancel_reset(tn_cancel *cancel);
TN_API bool tn_cancel_is_set(const tn_cancel *cancel);

/* A part of a compiled run that has ended: a kernel, several that ran together, or a host instruction. Texts live during the call. */
typedef struct tn_profile_event {
    const char *name;      /* what ran: "contraction avx2", "host", ... */
    const char *operators; /* the nodes that it stands for, after the passes: "conv add max" */
    const char *origin;    /* the nodes of the model that these come from, separated by commas; the first few of many */
    uint32_t kernels;      /* that ran together; 0: a host instruction */
    double start, seconds; /* since the run began; of the event */
    double operations;     /* scalar ones, a multiply-add is two; 0 of host instructions */
    double bytes;          /* that had to be read and written; 0 of host instructions */
} tn_profile_event;

typedef struct tn_run_options {
    size_t size;       /* set by TN_OPTIONS */
    tn_cancel *cancel; /* NULL: none */
    void (*profile)(
        void *user,
        const tn_profile_event *event); /* compiled back end: called for each part in turn, on the thread that
                                                                   called, when the run has ended (or failed) or 4096 parts have; a part
                                                                   costs the run a time stamp. NULL: not */
    void *profile_user;
    /* Inputs, by name, whose memory the run may overwrite (their contents are unspecified afterwards); ended by NULL. Only of those may a
       tensor given for an output share memory: a cache that is read and written anew. NULL: none. */
    const char *const *donate;
} tn_run_options;
/* tn_session_run with options; NULL: none. */
TN_API tn_status tn_session_run_with(tn_session *session, uint32_t inputs, const tn_binding *input, uint32_t outputs,
                                     const tn_output *output, const tn_run_options *options);

/* What the session's plan is: number of nodes after the passes, kernels, bytes. 0 where it has no meaning (reference). */
typedef struct tn_session_report {
    uint32_t nodes, kernels, host_calls, operators, fused_operators;
    uint64_t weight_bytes, arena_bytes, peak_bytes;
    /* Nodes whose form only a run decides: how often one was expanded, how often what it became last time was found, and the bytes
       of what is kept (of all sessions that share the plan; at most 4 forms of a node, 8192 in all, 64 MiB). */
    uint64_t expansions, expansions_found, expansion_bytes;
} tn_session_report;
TN_API tn_status tn_session_describe(tn_session *session, tn_session_report *report);

/* The most bytes of activations and results that a run of the plan for the default inputs holds at once, before it runs: *bytes (0 where
   a size is open), and as text a number or a formula in the names of dimensions, where min and max are of their operands. "" where it does
   not fit into text. What kernels use for themselves is not in it. The reference back end plans nothing: TN_ERR_UNSUPPORTED. */
TN_API tn_status tn_session_peak(tn_session *session, uint64_t *bytes, char *text, size_t size);

/* Memory, in bytes. */
typedef struct tn_memory {
    size_t in_use;  /* of the model's heap now: everything but what is mapped from files */
    size_t peak;    /* the most so far */
    size_t cached;  /* of it: kept by idle runs of this session for the next ones; tn_session_trim gives it back */
    size_t arenas;  /* of `cached`: activations */
    size_t weights; /* constants of the plan for the default inputs, mapped or not */
    size_t packed;  /* of in_use: copies of weights as its kernels want them */
    uint32_t plans; /* compiled forms that the model has now */
    uint64_t compilations; /* so far */
} tn_memory;
TN_API tn_status tn_memory_report(tn_session *session, tn_memory *memory);
/* What compiled form `index` of the model (below tn_memory.plans) was made for, in words: "-O2, avx2: all outputs", "-O2, avx2: for y; fed
   inside: r". */
TN_API tn_status tn_session_plan(tn_session *session, uint32_t index, char *text, size_t size);
/* Gives back what is cached (it is 0 then). Runs that are under way keep theirs. */
TN_API void tn_session_trim(tn_session *session);
/* The graph after the passes, for the default inputs. Lives as long as the session. */
TN_API const tn_graph *tn_session_graph(tn_session *session);

TN_END_DECLS
#endif
