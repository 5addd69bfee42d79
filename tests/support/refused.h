/* Models of inputs a, b, ... and output y that break a rule of an operator: refused by both back ends alike, whatever the file says of
   the shapes, also when they were optimised and written. */
#ifndef TESTS_SUPPORT_REFUSED_H
#define TESTS_SUPPORT_REFUSED_H

#include <stdio.h>
#include <stdlib.h>
#include <tenon/model.h>
#include <tenon/passes.h>
#include <tenon/session.h>
#include <unistd.h>

#include "support/onnx_bytes.h"

enum { MOST_BYTES = 1 << 28 }; /* of a run: what needs more is refused, not tried */

/* One input: element type and sizes ("2,3"; "" a scalar; NULL ends). */
typedef struct input {
    int dtype;
    const char *shape;
} input;

typedef enum form {
    FIXED,  /* the file says the shapes */
    NAMED,  /* every size has a name of its own: the message is that of FIXED, whatever primitive failed */
    UNKNOWN /* it says nothing of them */
} form;
static char fixed_what[2][1024]; /* by back end: what the run before said, if it was FIXED */

static inline void forget_fixed(void) {
    fixed_what[0][0] = fixed_what[1][0] = 0;
}

static inline tn_tensor *zeros(input in) {
    int64_t dims[8];
    int rank = 0;
    for (const char *p = in.shape; *p; p += *p == ',')
        dims[rank++] = strtoll(p, (char **)&p, 10);
    tn_tensor *t = tn_tensor_create((tn_dtype)in.dtype, rank, dims);
    assert_non_null(t);
    return t;
}

/* The model, optimised and written as `file`, refuses the inputs, too: in whose words is open, operators may have become others;
   so is whether what is too large is told to be wrong, too. */
static inline void written_is_refused(const tn_text *bytes, const char *file, uint32_t n, const tn_binding *feed) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/tenon-test-%ld%s", (long)getpid(), file);
    bool onnx = strcmp(file, ".onnx") == 0;
    tn_graph *g = load_bytes(bytes);
    tn_status status =
        g ? tn_graph_optimize(g, TN_OPTIONS(tn_optimize_options, .keep_composites = true, .for_onnx = onnx))
          : tn_error_status();
    if (status == TN_OK)
        status = tn_graph_save(g, path);
    tn_graph_destroy(g);
    for (int backend = 0; backend < 2 && status != TN_ERR_MODEL; backend++) {
        if (status != TN_OK)
            fail_msg("%s: %s", file, tn_error_message());
        tn_model *model = tn_model_load(path, NULL);
        tn_session *session =
            !model ? NULL
                   : tn_session_create(model, TN_OPTIONS(tn_session_options,
                                                         .backend = backend ? TN_BACKEND_CPU : TN_BACKEND_REFERENCE,
                                                         .threads = 1, .max_bytes = MOST_BYTES));
        tn_object *y = NULL;
        tn_status got =
            session ? tn_session_run(session, n, feed, 1, &(tn_output){.name = "y", .object = &y}) : tn_error_status();
        if (got != TN_ERR_MODEL && got != TN_ERR_INPUT && got != TN_ERR_LIMIT && got != TN_ERR_MEMORY)
            fail_msg("back end %d, optimised and written as %s: status %d: %s", backend, file, (int)got,
                     got ? tn_error_message() : "");
        tn_object_destroy(y);
        tn_session_destroy(session);
        tn_model_destroy(model);
    }
    unlink(path);
}

/* Adds inputs a, b, ... and output y to the graph; loads and runs it by both back ends. The status must be one, said with `says`. */
static inline void is_refused(tn_text graph, int opset, const input *in, form how, const char *says) {
    tn_binding feed[6];
    tn_tensor *tensors[6];
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    uint32_t n = 0;
    for (; in[n].shape; n++) {
        char sizes[64] = "";
        tensors[n] = zeros(in[n]);
        for (int k = 0; k < tn_tensor_rank(tensors[n]); k++)
            snprintf(sizes + strlen(sizes), sizeof sizes - strlen(sizes), "%sN%u_%d", k ? "," : "", (unsigned)n, k);
        put_value(&graph, 11, names[n], in[n].dtype, how == FIXED ? in[n].shape : how == NAMED ? sizes : NULL);
        feed[n] = (tn_binding){.name = names[n], .tensor = tensors[n]};
    }
    put_value(&graph, 12, "y", 0, NULL);
    tn_text bytes = model_bytes(opset, graph);
    put_opset(&bytes, 8, "ai.onnx.ml", 3);
    for (int backend = 0; backend < 2; backend++) {
        tn_model *model = tn_model_load_memory(bytes.data, bytes.len, NULL);
        tn_status status = model ? TN_OK : tn_error_status();
        tn_session *session =
            !model ? NULL
                   : tn_session_create(model, TN_OPTIONS(tn_session_options,
                                                         .backend = backend ? TN_BACKEND_CPU : TN_BACKEND_REFERENCE,
                                                         .threads = 1, .max_bytes = MOST_BYTES));
        if (model && !session)
            status = tn_error_status();
        tn_object *y = NULL;
        tn_output out = {.name = "y", .object = &y};
        if (session)
            status = tn_session_run(session, n, feed, 1, &out);
        if (status != TN_ERR_MODEL && status != TN_ERR_INPUT)
            fail_msg("back end %d, form %d, '%s', opset %d: status %d: %s", backend, (int)how, says, opset, (int)status,
                     tn_error_message());
        if (!strstr(tn_error_message(), says))
            fail_msg("back end %d, form %d: '%s' is not said: %s", backend, (int)how, says, tn_error_message());
        if (!(tn_error_what()[0] >= 'A' && tn_error_what()[0] <= 'Z'))
            fail_msg("back end %d, form %d: no operator is named: %s", backend, (int)how, tn_error_message());
        if (!strstr(tn_error_message(), "'n'"))
            fail_msg("back end %d, form %d: the node is not named: %s", backend, (int)how, tn_error_message());
        for (uint32_t i = 0; i < n; i++) {
            char name[8];
            snprintf(name, sizeof name, " '%s' ", names[i]);
            const char *at = strstr(tn_error_message(), name), *made = at ? strstr(at, " from constant") : NULL;
            if (made && made < at + strcspn(at, "\n"))
                fail_msg("back end %d, form %d: what is fed is no constant: %s", backend, (int)how, tn_error_message());
        }
        if (how == NAMED && *fixed_what[backend] && strcmp(tn_error_what(), fixed_what[backend]) != 0)
            fail_msg("back end %d: with sizes in the file it is '%s', with names for them %s", backend,
                     fixed_what[backend], tn_error_message());
        snprintf(fixed_what[backend], sizeof fixed_what[backend], "%s", how == FIXED ? tn_error_what() : "");
        tn_object_destroy(y);
        tn_session_destroy(session);
        tn_model_destroy(model);
    }
    if (how == NAMED) {
        written_is_refused(&bytes, ".onnx", n, feed);
        written_is_refused(&bytes, ".tenon", n, feed);
    }
    tn_text_free(&bytes);
    for (uint32_t i = 0; i < n; i++)
        tn_tensor_destroy(tensors[i]);
}

#endif
