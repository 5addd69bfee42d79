/* Changing graphs: optimising one in place, and rewrites of your own.

   A rewrite looks at nodes of one operator (`root`) and replaces them by something built with the ordinary builders:

       static tn_status relu_to_gelu(tn_rewriter *r, tn_node n) {
           tn_graph *g = tn_rewriter_graph(r);
           return tn_rewrite_replace(r, n, tn_gelu(g, tn_node_input(g, n, 0)));
       }
       static const tn_rewrite rewrites[] = {{.name = "relu-to-gelu", .root = "relu", .apply = relu_to_gelu}};
       tn_graph_optimize(graph, TN_OPTIONS(tn_optimize_options, .rewrites = rewrites, .rewrite_count = 1));

   There is no table of rewrites for the whole process: each call is given its own. */
#ifndef TENON_PASSES_H
#define TENON_PASSES_H

#include <tenon/session.h>

TN_BEGIN_DECLS

/* What a pass or rewrite may do to values. */
typedef enum tn_effect {
    TN_VALUE_CHANGING, /* rounding may differ; used at -O2 and above */
    TN_BIT_EXACT       /* the same bits (NaN equals NaN); used at -O1 and above */
} tn_effect;

/* --- rewrites ---------------------------------------------------------------------------------------------------------------- */

typedef struct tn_rewriter tn_rewriter;

typedef struct tn_rewrite {
    const char *name; /* for messages, reports and `disable` */
    const char *root; /* name of the operator it looks at ("relu", "onnx.Conv"); NULL: any */
    /* A cheap test made first; NULL: always. Must not change the graph. */
    bool (*condition)(const tn_graph *graph, tn_node node, void *user);
    /* Builds at the insertion point, which is before `node`, and calls tn_rewrite_replace; or does nothing. What it built and did
       not use is taken back. Nodes built get the origins of all nodes that disappear, and the role of `node`. */
    tn_status (*apply)(tn_rewriter *rewriter, tn_node node);
    tn_effect effect;
    void *user;
} tn_rewrite;

/* The graph at work, and `user` of the rewrite at work. */
TN_API tn_graph *tn_rewriter_graph(const tn_rewriter *rewriter);
TN_API void *tn_rewriter_user(const tn_rewriter *rewriter);
/* Every use of the node's only output becomes a use of `value`, which must have its type; the node, and what only it used, is
   removed when `apply` returns. A null `value` answers the error that made it null. */
TN_API tn_status tn_rewrite_replace(tn_rewriter *rewriter, tn_node node, tn_value value);
/* The same for one of several outputs; the node is removed when none is used any more. */
TN_API tn_status tn_rewrite_replace_output(tn_rewriter *rewriter, tn_node node, uint32_t output, tn_value value);
/* Reports why the rewrite did not fire at a node that looked like one for it. Answers TN_OK, to be returned. */
TN_API tn_status tn_rewrite_near_miss(tn_rewriter *rewriter, tn_node node, const char *why);

/* Applies rewrites until none fires, also in bodies of control flow. *sites (may be NULL) receives the number of replacements.
   TN_ERR_LIMIT when they do not come to an end; the graph is then good, but rewritten many times. */
TN_API tn_status tn_rewrite_apply(tn_graph *graph, uint32_t count, const tn_rewrite *rewrites, uint64_t *sites);

/* --- the pipeline -------------------------------------------------------------------------------------------------------------- */

/* What one pass did. */
typedef struct tn_pass_report {
    const char *name;
    double seconds;
    uint32_t nodes_before, nodes_after; /* without constants */
    uint64_t sites;                     /* places changed */
} tn_pass_report;

typedef struct tn_optimize_options {
    size_t size;          /* set by TN_OPTIONS */
    tn_level level;       /* default: 2 */
    const char *disable;  /* passes and rewrites left out, by name, separated by commas; NULL: none */
    const char *passes;   /* run these instead of the level's list, in this order; NULL: the level's */
    const char *dump;     /* folder that receives NN-name.txt after each pass that changed the graph; NULL: none */
    bool verify;          /* run the verifier after every pass */
    bool strip_debug;     /* remove print and assert */
    bool bind_defaults;   /* inputs that have a default become constants */
    bool keep_variables;  /* constants made by tn_variable may change later: neither fold nor merge them */
    bool keep_composites; /* softmax, gelu, ... stay as they are */
    uint64_t fold_bytes;  /* constants larger than this are not made; 0: 16 MiB */
    bool
        for_onnx; /* the graph will be saved as an ONNX model: ONNX nodes that could not be written back stay as they are */
    const tn_rewrite *rewrites; /* of your own */
    uint32_t rewrite_count;
    tn_log_callback *log; /* what was not done and why; NULL: dropped */
    void *log_user;
    void (*report)(void *user, const tn_pass_report *report); /* called after every pass; NULL: not */
    void *report_user;
} tn_optimize_options;

/* Optimises a graph in place. `options` may be NULL. A failure leaves a graph that means the same, partly optimised; one that
   ran out of memory may be good for nothing but tn_graph_destroy (tn_graph_check tells). Unknown names in `disable` or `passes`
   are TN_ERR_USAGE. */
TN_API tn_status tn_graph_optimize(tn_graph *graph, const tn_optimize_options *options);

/* The passes there are, in the order in which they first run: name, and what it does. NULL past the end. */
TN_API const char *tn_pass_name(uint32_t index);
TN_API const char *tn_pass_doc(uint32_t index);

TN_END_DECLS
#endif
