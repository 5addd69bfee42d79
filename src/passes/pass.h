/* Passes: what one is, the context it runs in, and what passes share. A pass is one file and one function over a graph;
   pipeline.c is the list of them in order. */
#ifndef TN_PASSES_PASS_H
#define TN_PASSES_PASS_H

#include <tenon/passes.h>

#include "base/buffer.h"
#include "ir/graph.h"

/* --- a pass -------------------------------------------------------------------------------------------------------------------- */

typedef struct tn_pass_context tn_pass_context;

/* What a pass keeps, for inputs that are finite or not. */
enum { TN_KEEPS_NAN = 1, TN_KEEPS_INF = 2, TN_KEEPS_NEGATIVE_ZERO = 4, TN_KEEPS_ALL = 7 };

typedef enum tn_pass_need {
    TN_PASS_FREE,         /* may be left out */
    TN_PASS_NEEDED_FIRST, /* back ends rely on it: cannot be disabled, put in front of explicit lists that lack it */
    TN_PASS_NEEDED_LAST   /* the same, put at their end */
} tn_pass_need;

#define TN_LEVEL_ON_REQUEST 100 /* level of passes that run only when asked for */

typedef struct tn_pass {
    const char *name;
    const char *doc; /* one line */
    tn_effect effect;
    uint8_t keeps; /* TN_KEEPS_* */
    uint8_t need;  /* tn_pass_need */
    uint8_t level; /* lowest -O that runs it */
    /* Counts the places it changed in context->sites. */
    tn_status (*run)(tn_graph *graph, tn_pass_context *context);
} tn_pass;

/* The pipeline in order; a pass may stand in it several times. */
const tn_pass *const *tn_pipeline(uint32_t *count);
const tn_pass *tn_pass_find(const char *name, size_t length);

extern const tn_pass tn_pass_defaults, tn_pass_expand, tn_pass_strip_debug, tn_pass_rewrites, tn_pass_fold,
    tn_pass_cleanup, tn_pass_cse, tn_pass_fold_affine, tn_pass_dce, tn_pass_inline_composites;

/* --- the context ----------------------------------------------------------------------------------------------------------------- */

typedef struct tn_pass_record {
    const tn_pass *pass;
    double seconds;
    uint32_t nodes_before, nodes_after; /* without constants */
    uint64_t sites;
} tn_pass_record;

/* Computes all outputs of a node whose inputs are constants, directly or through nodes that need nothing else (the node may lie in
   a body). outputs[i] receives a new reference each. */
typedef tn_status tn_pass_evaluate_fn(void *ctx, const tn_graph *graph, tn_node node, tn_object **outputs);

/* Zero-initialised, then set by the caller. */
struct tn_pass_context {
    int level;           /* 0 to 3 */
    const char *disable; /* names separated by commas; NULL: none */
    const char *passes;  /* instead of the level's list; NULL: the level's */
    bool just_listed;    /* `passes` is taken as it is: what back ends need is not added */
    const char *dump;    /* folder; NULL: none */
    bool verify;         /* before the first pass and after each */
    bool strip_debug;
    bool keep_variables; /* named constants may change: neither folded nor merged */
    /* Inputs with a default that are not among `fed` become constants. */
    bool bind_defaults;
    const tn_value *fed;
    uint32_t fed_count;
    tn_pass_evaluate_fn *evaluate; /* NULL: only shape arithmetic is folded */
    void *evaluate_ctx;
    uint64_t fold_bytes;      /* cap of one folded constant; 0: TN_FOLD_BYTES */
    uint64_t fold_operations; /* estimated scalar operations that one run of `fold` may spend; 0: TN_FOLD_OPERATIONS */
    uint64_t max_nodes;       /* expand: 0 its own limit */
    bool writable;            /* expand: for a graph that will be written as an ONNX model */
    /* Composites that a back end takes as they are. NULL: none, all are inlined. */
    bool (*claims)(void *ctx, const tn_graph *graph, tn_node node);
    void *claims_ctx;
    const tn_rewrite *rewrites;
    uint32_t rewrite_count;
    /* What was not done and why, one line each. */
    void (*log)(void *ctx, const char *text);
    void *log_ctx;
    void (*report)(void *ctx, const tn_pass_record *record);
    void *report_ctx;

    /* Filled by tn_passes_run; freed by tn_pass_context_free. */
    tn_heap *heap;
    TN_VEC(tn_pass_record) record;
    uint64_t sites;         /* of the pass at work */
    const tn_pass *running; /* the pass at work */
    uint32_t notes;         /* lines it logged */
};

#define TN_FOLD_BYTES ((uint64_t)16 << 20)
#define TN_FOLD_OPERATIONS ((uint64_t)1 << 26)
#define TN_PASS_MAX_NOTES 200 /* of one pass run */

/* Runs the pipeline, or what `passes` lists, on a graph in place. */
tn_status tn_passes_run(tn_graph *graph, tn_pass_context *context);
/* Only checks the names in `disable` and `passes`. */
tn_status tn_passes_check_names(const tn_pass_context *context);
/* Runs one pass as the manager does (records, verifier). */
tn_status tn_pass_run_one(const tn_pass *pass, tn_graph *graph, tn_pass_context *context);
void tn_pass_context_free(tn_pass_context *context);
/* Logs "pass: op 'name': text" (node may be null). */
void tn_pass_note(tn_pass_context *context, const tn_graph *graph, tn_node node, const char *format, ...)
    TN_PRINTF(4, 5);
/* Whether `name` stands in a list of names separated by commas. */
bool tn_name_listed(const char *list, const char *name);
/* The tn_pass_evaluate_fn by the reference interpreter; ctx is the heap of what it makes (NULL: the default heap). */
tn_status tn_pass_evaluate(void *ctx, const tn_graph *graph, tn_node node, tn_object **outputs);

/* --- what passes share (graph_tools.c) ---------------------------------------------------------------------------------------------- */

uint32_t tn_graph_count_nodes(const tn_graph *graph); /* alive, without constants and returns */

/* By node id: 1 where outputs, effects and the sizes of needed values come from; a node with regions is needed as a whole. What
   nobody needs is not run. Free it on the graph's heap; NULL: out of memory. */
uint8_t *tn_graph_needed_nodes(tn_graph *graph);

typedef enum tn_control_kind {
    TN_CONTROL_NONE,
    TN_CONTROL_IF,
    TN_CONTROL_WHILE,
    TN_CONTROL_SCAN,
    TN_CONTROL_OTHER
} tn_control_kind;
/* How a node with regions runs them; OTHER: nothing is known. */
tn_control_kind tn_node_control_kind(const tn_graph *graph, tn_node node);

/* Which functions have effects or draw random numbers, so that calls of them do. */
typedef struct tn_purity {
    tn_heap *heap;
    uint32_t *function; /* TN_EFFECT | TN_RANDOM by function */
    uint8_t *ordered;   /* by node id: another node's control input */
    uint32_t nodes;
} tn_purity;
tn_status tn_purity_init(tn_purity *purity, const tn_graph *graph);
void tn_purity_free(tn_purity *purity);
/* TN_EFFECT | TN_RANDOM of a node, its bodies and callees; both for operators that nothing is known about. */
uint32_t tn_purity_traits(const tn_purity *purity, const tn_graph *graph, tn_node node);
/* Whether the node stands in an ordering edge: it may be neither moved nor merged. */
bool tn_purity_is_ordered(const tn_purity *purity, const tn_graph *graph, tn_node node);

/* Saves and sets insertion point, location and role to build in a node's place. */
typedef struct tn_place {
    tn_insertion at;
    uint8_t role;
} tn_place;
tn_place tn_place_enter(tn_graph *graph, tn_node node);
void tn_place_leave(tn_graph *graph, tn_place place);
/* Gives `to` the name of `from` if it has none and is no argument; the producers' origins are united. */
tn_status tn_value_inherit(tn_graph *graph, tn_value to, tn_value from);
/* Records again which value defines the symbols of this one's type, after what defined them was removed. */
tn_status tn_value_note_symbols(tn_graph *graph, tn_value value);

/* --- symbols (substitute.c) ----------------------------------------------------------------------------------------------------------- */

/* Symbols that turned out to be something else: replaced everywhere by tn_symbol_map_apply. */
typedef struct tn_symbol_map {
    tn_heap *heap;
    tn_dim *to; /* by symbol index; null: kept */
    uint32_t count, used;
} tn_symbol_map;
void tn_symbol_map_init(tn_symbol_map *map, tn_heap *heap);
void tn_symbol_map_free(tn_symbol_map *map);
/* Adds symbol -> dim. */
tn_status tn_symbol_map_add(tn_graph *graph, tn_symbol_map *map, uint32_t symbol, tn_dim dim);
tn_dim tn_symbol_map_get(tn_graph *graph, const tn_symbol_map *map, tn_dim dim);
/* Whether `from` may be replaced by a value of type `to`: the types agree, where needed because symbols that the node making
   `from` defines are dimensions of `to` (they are then added to the map). *yes false leaves the map as it was. */
tn_status tn_symbol_map_unify(tn_graph *graph, tn_symbol_map *map, tn_value from, tn_type to, bool *yes);
/* Rewrites all types, attributes and contents of the graph, and empties the map. */
tn_status tn_symbol_map_apply(tn_graph *graph, tn_symbol_map *map);

/* "N=1,T=4": symbols become constants everywhere. TN_ERR_USAGE, TN_ERR_INPUT (no such symbol). */
tn_status tn_graph_fix_dims(tn_graph *graph, const char *dims);

/* --- rewrites (rewrite.c) ---------------------------------------------------------------------------------------------------------------- */

/* tn_rewrite_apply within a pass: rewrites of an effect that the context's level does not allow, and disabled ones, are left out. */
tn_status tn_rewrites_run(tn_graph *graph, tn_pass_context *context, uint32_t count, const tn_rewrite *rewrites);
/* Refuses rows without name or apply, names twice, roots that no operator has (`known_roots`). */
tn_status tn_rewrites_check(const tn_graph *graph, uint32_t count, const tn_rewrite *rewrites);

#endif
