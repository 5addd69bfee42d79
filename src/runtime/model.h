/* Models and their compiled forms, from the inside. */
#ifndef TN_RUNTIME_MODEL_H
#define TN_RUNTIME_MODEL_H

#include <tenon/session.h>

#include "base/error.h"
#include "base/pool.h"
#include "lower/plan.h"

/* A part of a model: from values that are fed in place of what makes them to values that are asked for. */
typedef struct tn_cut {
    const tn_value *feed; /* inner values of the model's graph, each once */
    uint32_t feeds;
    const tn_value *fetch;
    const char *const *fetch_name;
    uint32_t fetches;
} tn_cut;
/* The graph of that part, with inputs of the names of the values fed: nodes, inputs and effects that the values asked for do not need
   are not in it (cut.c). `typed` (may be NULL): the same graph with types inferred, where values of these names may have a type that
   they lack in `graph`. NULL with the error set. */
tn_graph *tn_graph_cut(const tn_graph *graph, const tn_graph *typed, const tn_cut *cut);

/* How a model is compiled: what plans are told apart by. Text fields are owned by the session. */
typedef struct tn_compile_key {
    tn_backend backend;
    int level; /* -1: the reference back end's own, nodes as written */
    tn_isa isa;
    const char *disable, *passes, *dump; /* "" for none */
    const char *dims;                    /* "N=1,T=4" */
    bool verify;
    bool describe_only; /* weights are not read: the plan does not run */
    tn_layout_option layout;
    tn_reuse_option reuse;
    bool measure;       /* the plan runs without computing */
    const uint8_t *fed; /* by input of the model: 1 when an input that has a default is fed; NULL: none */
    const tn_cut *cut;  /* NULL: the whole model */
} tn_compile_key;

/* A graph after the passes and, for the cpu back end, its plan. Shared, immutable. */
typedef struct tn_compiled {
    int32_t refs;    /* guarded by the model's mutex */
    char *key;       /* tn_compile_key as text */
    char *reason;    /* what it was made for, in words */
    tn_graph *graph; /* the plan's, when there is one */
    tn_plan *plan;
    struct tn_late_cache *late; /* of the graph's nodes that are expanded at run time */
    uint64_t used;              /* for eviction */
} tn_compiled;

#define TN_COMPILED_KEPT 16 /* forms a model keeps that no session holds */

struct tn_model {
    _Atomic int32_t refs;
    tn_heap *heap;
    tn_graph *graph;
    bool owned;
    tn_log_callback *log;
    void *log_user;
    bool notes; /* of passes go to the log */
    uint64_t max_ops;
    tn_mutex *mutex;
    struct tn_packs *packs; /* constants as kernels want them, shared by the plans */
    TN_VEC(tn_compiled *) compiled;
    uint64_t clock;
    uint64_t compilations; /* so far */
};

/* Runs the passes and, for the cpu back end, lowers: fills graph and plan of `compiled` (compile.c). */
tn_status tn_compile(tn_model *model, const tn_compile_key *key, tn_compiled *compiled);
/* A copy of a model's graph with its ONNX nodes expanded, and so with all types that can be inferred. NULL with the error set. */
tn_graph *tn_model_infer(tn_model *model);
tn_model *tn_model_retain(tn_model *model);
/* The compiled form for a key, made if it is not there. NULL with the error set. Release it. */
tn_compiled *tn_model_compile(tn_model *model, const tn_compile_key *key);
void tn_model_release(tn_model *model, tn_compiled *compiled);

#endif
