/* The passes in order, each with the reason for its place. */
#include "passes/pass.h"

static const tn_pass *const pipeline[] = {
    /* Defaults become constants before anything looks at shapes: a default is often a shape. */
    &tn_pass_defaults,
    /* Rewrites of the user's whose root is an onnx.* operator: those are gone after the next pass. */
    &tn_pass_rewrites,
    /* Everything below knows primitives and composites only. */
    &tn_pass_expand,
    /* Before folding: a print of a constant would keep it from being folded further. */
    &tn_pass_strip_debug,
    /* The user's rewrites see composites whole, so before they are inlined; the passes below tidy up after them. */
    &tn_pass_rewrites,
    /* What nobody reads goes before twins are looked for: else a dead node outside of a branch stands for its twin inside, and runs
       where the branch is not taken. */
    &tn_pass_dce,
    /* Folding first: it makes conditions, shapes and neutral elements known, which the others look for. */
    &tn_pass_fold,
    /* Then what does nothing disappears: two values that differed by an identity become twins. */
    &tn_pass_cleanup,
    &tn_pass_cse,
    /* After what makes nodes useless, before what would otherwise work on them. */
    &tn_pass_dce,
    /* Composites that no back end claims. Late: the passes above had fewer nodes to look at, and a twin softmax is found as one
       node. */
    &tn_pass_inline_composites,
    /* Definitions bring constants and casts of their own, and share subexpressions with what stands around them. */
    &tn_pass_fold,
    &tn_pass_cleanup,
    &tn_pass_cse,
    /* When nothing more merges: weights that two products share stay shared. */
    &tn_pass_fold_affine,
    &tn_pass_dce,
};

const tn_pass *const *tn_pipeline(uint32_t *count) {
    *count = (uint32_t)(sizeof pipeline / sizeof pipeline[0]);
    return pipeline;
}

const tn_pass *tn_pass_find(const char *name, size_t length) {
    for (uint32_t i = 0; i < sizeof pipeline / sizeof pipeline[0]; i++)
        if (strlen(pipeline[i]->name) == length && memcmp(pipeline[i]->name, name, length) == 0)
            return pipeline[i];
    return NULL;
}

/* The index-th pass of those that differ. */
static const tn_pass *distinct(uint32_t index) {
    uint32_t seen = 0;
    for (uint32_t i = 0; i < sizeof pipeline / sizeof pipeline[0]; i++) {
        bool before = false;
        for (uint32_t j = 0; j < i; j++)
            before = before || pipeline[j] == pipeline[i];
        if (!before && seen++ == index)
            return pipeline[i];
    }
    return NULL;
}

const char *tn_pass_name(uint32_t index) {
    const tn_pass *pass = distinct(index);
    return pass ? pass->name : NULL;
}

const char *tn_pass_doc(uint32_t index) {
    const tn_pass *pass = distinct(index);
    return pass ? pass->doc : NULL;
}
