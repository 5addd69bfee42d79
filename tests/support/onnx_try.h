/* What untrusted bytes go through: loaded, expanded, run on zeros, all within limits. Nothing may crash, hang or leak. */
#ifndef TESTS_SUPPORT_ONNX_TRY_H
#define TESTS_SUPPORT_ONNX_TRY_H

#include "interp/interp.h"
#include "onnx/model.h"

enum { TRY_INPUTS = 16 };

/* A tensor of zeros of a value's type, unknown sizes 1; NULL: not a tensor of known type, or too large. */
static inline tn_object *try_zeros(tn_heap *heap, const tn_graph *g, tn_value value) {
    int64_t dims[TN_MAX_RANK], count = 1;
    int rank = tn_value_rank(g, value);
    if (rank < 0)
        return NULL;
    for (int i = 0; i < rank; i++) {
        if (!tn_dim_is_const(g, tn_value_dim(g, value, i), &dims[i]))
            dims[i] = 1;
        if (dims[i] > 1000000 || (count *= dims[i]) > 1000000)
            return NULL;
    }
    tn_tensor *t = tn_tensor_create_in(heap, tn_value_dtype(g, value), rank, dims);
    return t ? tn_tensor_object(t) : NULL;
}

static inline tn_status try_run(tn_heap *heap, tn_graph *g, size_t max_bytes) {
    uint32_t n = tn_graph_input_count(g), m = tn_graph_output_count(g), fed = 0;
    tn_value in_values[TRY_INPUTS], out_values[TRY_INPUTS];
    tn_object *in[TRY_INPUTS], *out[TRY_INPUTS] = {NULL};
    tn_interp_options o = {.heap = heap, .max_bytes = max_bytes, .max_nodes = 100000};
    if (n > TRY_INPUTS || m > TRY_INPUTS)
        return tn_fail(TN_ERR_LIMIT, "more than %d inputs or outputs", TRY_INPUTS);
    for (uint32_t i = 0; i < n; i++) {
        tn_value v = tn_graph_input(g, i);
        tn_object *object = tn_graph_input_default(g, v) ? NULL : try_zeros(heap, g, v);
        if (object) {
            in_values[fed] = v;
            in[fed++] = object;
        }
    }
    for (uint32_t i = 0; i < m; i++)
        out_values[i] = tn_graph_output(g, i);
    tn_status status = tn_interp_run(g, &o, fed, in_values, in, m, out_values, out);
    for (uint32_t i = 0; i < m; i++)
        tn_object_destroy(out[i]);
    for (uint32_t i = 0; i < fed; i++)
        tn_object_destroy(in[i]);
    return status;
}

/* Everything, on a heap of its own that never holds more than max_bytes. */
static inline tn_status try_model(const void *bytes, size_t size, size_t max_bytes) {
    tn_heap *heap = tn_heap_create(NULL);
    if (!heap)
        return TN_ERR_MEMORY;
    tn_heap_set_limit(heap, max_bytes);
    tn_onnx_options o = {.heap = heap, .max_bytes = max_bytes, .max_nodes = 20000};
    tn_graph *g = tn_onnx_load_memory(bytes, size, NULL, NULL, &o);
    tn_status status = g ? TN_OK : tn_error_status();
    if (status == TN_OK)
        status = tn_onnx_use_defaults(g, 0, NULL);
    if (status == TN_OK)
        status = tn_onnx_expand(g, 20000);
    if (status == TN_OK)
        status = tn_graph_verify(g);
    if (status == TN_OK)
        status = try_run(heap, g, max_bytes);
    tn_graph_destroy(g);
    if (tn_heap_in_use(heap))
        status = tn_fail(TN_ERR_INTERNAL, "%zu bytes leaked", tn_heap_in_use(heap));
    tn_heap_destroy(heap);
    return status;
}

#endif
