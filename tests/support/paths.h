/* Every way to run a model, and models from bytes put together on the spot: for tests of behaviour. */
#ifndef TESTS_SUPPORT_PATHS_H
#define TESTS_SUPPORT_PATHS_H

#include <tenon/session.h>

#include "support/onnx_bytes.h"

static const struct {
    const char *name;
    tn_session_options options;
} run_paths[] = {
    {"reference", {.size = sizeof(tn_session_options), .backend = TN_BACKEND_REFERENCE}},
    {"reference -O2", {.size = sizeof(tn_session_options), .backend = TN_BACKEND_REFERENCE, .level = TN_LEVEL_2}},
    {"compiled -O0", {.size = sizeof(tn_session_options), .level = TN_LEVEL_0}},
    {"compiled -O1", {.size = sizeof(tn_session_options), .level = TN_LEVEL_1}},
    {"compiled", {.size = sizeof(tn_session_options)}},
};
enum { RUN_PATHS = sizeof run_paths / sizeof *run_paths };

/* A model of a graph message (freed), whose bytes go to `bytes` and must outlive it. NULL: the thread's error. */
static inline tn_model *path_model(int opset, tn_text graph, const tn_model_options *options, tn_text *bytes) {
    *bytes = model_bytes(opset, graph);
    return tn_model_load_memory(bytes->data, bytes->len, options);
}

/* Output "y" of a model from its inputs "x" and, if not NULL, "z". */
static inline tn_status path_run(tn_model *model, int path, tn_tensor *x, tn_tensor *z, tn_tensor **y) {
    *y = NULL;
    tn_session *session = tn_session_create(model, &run_paths[path].options);
    if (!session)
        return tn_error_status();
    const tn_binding in[] = {{.name = "x", .tensor = x}, {.name = "z", .tensor = z}};
    tn_status status = tn_session_run(session, x ? z ? 2 : 1 : 0, in, 1, &(tn_output){.name = "y", .tensor = y});
    tn_session_destroy(session); /* keeps the error when there is one */
    return status;
}

#endif
