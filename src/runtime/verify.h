/* Checked mode: each pass, the plan and each kernel of a model against the reference, on sampled sizes and inputs. */
#ifndef TN_RUNTIME_VERIFY_H
#define TN_RUNTIME_VERIFY_H

#include "interp/oracle.h"
#include "lower/plan.h"
#include "passes/pass.h"
#include "runtime/model.h"

typedef enum tn_verify_stage { TN_VERIFY_PASS, TN_VERIFY_PLAN, TN_VERIFY_KERNEL } tn_verify_stage;

/* Zero-initialised is fine. */
typedef struct tn_verify_options {
    uint32_t samples; /* 0: 4, or 2 when all sizes are fixed or a sample takes long */
    double tolerance; /* also right: off by this share of the rms of a value */
    uint64_t seed;
    int level; /* 0 to 3 */
    tn_isa isa;
    int threads;
    const char *disable, *passes, *dims, *dump; /* as a session's; NULL for none */
    const tn_rewrite *rewrites;                 /* checked with the passes */
    uint32_t rewrite_count;
    const tn_pass *const *more; /* passes run and checked after the pipeline's */
    uint32_t more_count;
    tn_layout_option layout;
    tn_reuse_option reuse;
    const tn_kernel_table *kernels; /* NULL: the library's */
    void (*progress)(void *ctx, uint32_t done, uint32_t total);
    void *progress_ctx;
} tn_verify_options;

/* What was found; with `holds` false the first difference. */
typedef struct tn_verify_result {
    bool holds;
    uint32_t passes, changed; /* passes run, and those that changed the graph */
    uint32_t regions;         /* values compared at the borders of what passes changed */
    uint32_t kernels,
        unchecked; /* of the plan; runs whose operands have no value of the graph (copies): the plan's outputs cover them */
    uint32_t kernel_runs;
    uint32_t samples, refused; /* inputs that the model itself refuses say nothing */
    uint32_t sample;           /* of the difference */
    tn_verify_stage stage;
    char name[160];   /* the pass, or the kernel's way of running */
    char node[300];   /* the node or output that differs, with its origin */
    char what[1100];  /* how */
    char inputs[300]; /* sizes and kind of the sample */
} tn_verify_result;

/* Verifies. A status: it could not be done; differences are in the result, which is to be read then. */
tn_status tn_model_check(tn_model *model, const tn_verify_options *options, tn_verify_result *result);

/* --- shared by the files of verify -------------------------------------------------------------------------------------------------- */

/* One set of inputs, by input of the model's graph. */
typedef struct tn_verify_sample {
    tn_object **in;
    uint32_t count;
    bool large; /* inputs of such sizes are not made up: the reference would take long */
    char text[300];
} tn_verify_sample;
/* Which sizes are drawn, where the model's bounds allow it. */
typedef struct tn_verify_sizes {
    int64_t least, most;
    bool few;        /* of the samples: the second has corner values, too */
    uint32_t raised; /* `least` is for this one of the symbols that inputs have; UINT32_MAX: for all */
    bool others;     /* for all but that one */
} tn_verify_sizes;
/* *possible false: not a tensor of a known type. */
tn_status tn_verify_sample_make(tn_verify_sample *sample, tn_heap *heap, const tn_graph *graph, const uint8_t *wanted,
                                uint64_t seed, uint32_t index, const tn_verify_sizes *sizes, bool *possible);
void tn_verify_sample_free(tn_verify_sample *sample, tn_heap *heap);

/* Graphs before and after each pass, with what must be compared (verify_passes.c). */
typedef struct tn_verify_steps tn_verify_steps;
/* Runs the pipeline on `graph` in place. The error of a pass that fails is the status. */
tn_status tn_verify_steps_make(tn_verify_steps **steps, tn_graph *graph, tn_pass_context *context,
                               const tn_verify_options *options);
void tn_verify_steps_free(tn_verify_steps *steps);
/* The graph as it came. */
const tn_graph *tn_verify_steps_graph(const tn_verify_steps *steps);
uint32_t tn_verify_steps_count(const tn_verify_steps *steps, uint32_t *changed);
/* Compares all of them on one sample; fills the result's pass, node and what on a difference. *refused: the graph as it came fails. */
tn_status tn_verify_steps_run(tn_verify_steps *steps, const tn_verify_options *options, const tn_interp_options *interp,
                              const tn_verify_sample *sample, bool *refused, tn_verify_result *result);

/* Runs the plan on a sample with every kernel watched, then, with `outputs`, compares those with the graph's (verify_kernels.c).
   *refused becomes true where the plan refuses the sample. */
tn_status tn_verify_plan_run(const tn_plan *plan, const tn_verify_options *options, const tn_interp_options *interp,
                             const tn_verify_sample *sample, bool outputs, bool *refused, tn_verify_result *result);
/* Whether a run's status says that a model does not take its inputs. */
static inline bool tn_verify_is_refusal(tn_status status) {
    return status == TN_ERR_INPUT || status == TN_ERR_FAILED || status == TN_ERR_LIMIT || status == TN_ERR_MODEL;
}
/* "add 'name' (node 12, from Add 'a' (m.onnx))" */
void tn_verify_describe(const tn_graph *graph, tn_node node, char *text, size_t size);

#endif
