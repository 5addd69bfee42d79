/* Running a graph by the reference interpreter, and short forms for its operands: for tests. */
#ifndef TESTS_SUPPORT_RUN_GRAPH_H
#define TESTS_SUPPORT_RUN_GRAPH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interp/interp.h"

#define RUN_DIMS(...) ((const int64_t[]){__VA_ARGS__})

/* The graph keeps the verifier's rules, and so does what its text form reads as, which prints as the same text; a clone too. */
static inline tn_status check_graph(const tn_graph *g) {
    tn_graph *graphs[2] = {NULL, NULL};
    TN_TRY(tn_graph_verify(g));
    char *text = tn_graph_print(g);
    if (!text)
        return tn_error_status();
    graphs[0] = tn_graph_parse(NULL, text, strlen(text));
    graphs[1] = tn_graph_clone(g, NULL, NULL);
    tn_status status = TN_OK;
    for (int i = 0; i < 2 && status == TN_OK; i++) {
        status = graphs[i] ? tn_graph_verify(graphs[i]) : tn_error_status();
        char *again = status == TN_OK ? tn_graph_print(graphs[i]) : NULL;
        if (again && strcmp(text, again) != 0)
            status = tn_fail(TN_ERR_FAILED, "%s prints otherwise", i ? "a clone" : "a parsed graph");
        if (again)
            tn_graph_free_text(graphs[i], again);
    }
    if (status != TN_OK)
        fprintf(stderr, "%s\n", text);
    tn_graph_destroy(graphs[0]);
    tn_graph_destroy(graphs[1]);
    tn_graph_free_text(g, text);
    return status;
}

/* Runs all outputs from all inputs, in order; in[i] NULL: left out. out[i] is a new tensor, NULL on failure. Without options the
   graph is checked first. */
static inline tn_status run_graph(const tn_graph *g, const tn_interp_options *o, tn_tensor *const *in,
                                  tn_tensor **out) {
    uint32_t n = tn_graph_input_count(g), m = tn_graph_output_count(g), fed = 0;
    tn_value values[16], wanted[16];
    tn_object *objects[16];
    if (n > 16 || m > 16)
        abort();
    if (!o)
        TN_TRY(check_graph(g));
    for (uint32_t i = 0; i < n; i++)
        if (in[i]) {
            values[fed] = tn_graph_input(g, i);
            objects[fed++] = tn_tensor_object(in[i]);
        }
    for (uint32_t i = 0; i < m; i++)
        wanted[i] = tn_graph_output(g, i);
    return tn_interp_run(g, o, fed, values, objects, m, wanted, (tn_object **)out);
}

/* A tensor of any real dtype with these values (contiguous, default heap). */
static inline tn_tensor *make_tensor(tn_dtype dtype, int rank, const int64_t *dims, const double *values) {
    tn_tensor *t = tn_tensor_create(dtype, rank, dims);
    if (!t)
        abort();
    for (int64_t i = 0; i < t->count; i++)
        tn_store_f64(dtype, t->data, i, values[i]);
    return t;
}

static inline tn_tensor *make_scalar(tn_dtype dtype, double value) {
    return make_tensor(dtype, 0, NULL, &value);
}

#endif
