/* Shared by the interpreter's files. */
#ifndef TN_INTERP_INTERNAL_H
#define TN_INTERP_INTERNAL_H

#include "interp/interp.h"

/* --- what is run, and when values are freed (analysis.c) -------------------------------------------------------------------------- */

typedef struct tn_interp_plan {
    const tn_graph *graph;
    tn_heap *heap;
    uint8_t *needed;      /* by node: it is run */
    uint8_t *pinned;      /* by value: never freed before the end */
    uint32_t *slot;       /* by value: its place in the scope, from 1; 0: never there */
    uint32_t *last;       /* by value: the node of its own region after which it is freed; 0: none */
    uint32_t *free_first; /* by node: its range in frees; one entry more */
    uint32_t *frees;      /* values */
    uint32_t *slots;      /* by region that is the main one or a function's: places of its scope */
    uint32_t
        *definition; /* by node, of composites: index of its definition in the runner from 1; 0: not looked up yet */
} tn_interp_plan;

/* `whole`: the main region is run to its return, as a function is; else for `out` (values of the main region). `only`, if not null,
   is the one node that is run. */
tn_status tn_interp_plan_make(tn_interp_plan *plan, const tn_graph *graph, tn_heap *heap, uint32_t n_fed,
                              const tn_value *fed, bool whole, tn_node only, uint32_t n_out, const tn_value *out);
void tn_interp_plan_free(tn_interp_plan *plan);
/* The region that a value belongs to. */
tn_region tn_interp_home(const tn_graph *graph, tn_value value);

/* --- values and symbols of one run of a root region (scope.c) ------------------------------------------------------------------- */

typedef struct tn_interp_scope {
    tn_interp_plan *plan;
    tn_object **value; /* by slot */
    uint32_t slots;
    tn_dim_env env;
    tn_u32_vec trail; /* symbols in the order in which they were bound */
} tn_interp_scope;

tn_status tn_interp_scope_init(tn_interp_scope *scope, tn_interp_plan *plan, tn_region root);
void tn_interp_scope_free(tn_interp_scope *scope);
/* Unbinds what was bound since the trail had this length. */
void tn_interp_scope_undo(tn_interp_scope *scope, uint32_t mark);

/* How an object is not of a value's type. */
typedef enum tn_interp_misfit {
    TN_FITS,
    TN_MISFIT_KIND,
    TN_MISFIT_DTYPE,
    TN_MISFIT_RANK,
    TN_MISFIT_DIM,
    TN_MISFIT_CONTENTS,
    TN_MISFIT_FAILED
} tn_interp_misfit;
typedef struct tn_interp_mismatch {
    tn_interp_misfit what;
    int axis;       /* or element */
    int64_t actual; /* dimension or element */
    int64_t expected;
    bool has_expected;
    tn_dim dim;
} tn_interp_mismatch;
/* Compares an object with a value's type and known contents, and binds symbols. FAILED: out of memory. */
tn_interp_mismatch tn_interp_fit(tn_interp_scope *scope, tn_value value, const tn_object *object);
/* Fails: "WHO 'x': dimension 1 is 5, expected 4", with the expected type and the object as hint. */
tn_status tn_interp_fail_fit(const tn_interp_scope *scope, tn_status status, const char *who, tn_value value,
                             const tn_object *object, const tn_interp_mismatch *mismatch);
/* "'conv1'", or "%12" for a value without a name. Returns text. */
const char *tn_interp_label(const tn_graph *graph, tn_value value, char *text, size_t size);

/* --- running (run.c) ---------------------------------------------------------------------------------------------------------------- */

typedef struct tn_interp_definition {
    char *key;
    tn_graph *graph;
    tn_interp_plan plan;
} tn_interp_definition;

typedef struct tn_interp_runner {
    const tn_interp_options *options;
    tn_heap *heap;
    const tn_interp_plan *tapped; /* of the user's graph */
    size_t base_bytes;            /* in use when the run began */
    uint64_t steps;
    int depth;
    TN_VEC(tn_interp_definition *) definitions;
} tn_interp_runner;

/* TN_ERR_LIMIT if that many bytes more would pass the run's limit. */
tn_status tn_interp_check_bytes(const tn_interp_runner *runner, size_t more);
/* Runs the needed nodes of a region but its return. */
tn_status tn_interp_run_nodes(tn_interp_runner *runner, tn_interp_scope *scope, tn_region region);
/* Runs one node. */
tn_status tn_interp_run_one(tn_interp_runner *runner, tn_interp_scope *scope, tn_node node);
void tn_interp_runner_free(tn_interp_runner *runner);

#endif
