/* Operators of images: ImageScaler, ImageDecoder. */
#include "onnx/expand_common.h"
#include "onnx/host_ops.h"

/* An operator of the first files, since withdrawn: scale * x + bias[channel]. */
static tn_status expand_image_scaler(tn_expand *x) {
    tn_graph *g = x->graph;
    const float *bias;
    int rank = tn_expand_rank(x, 0);
    int64_t n = tn_expand_floats(x, "bias", &bias);
    tn_value y = tn_expand_input(x, 0);
    tn_dtype dtype = tn_expand_dtype(x, 0);
    TN_RULE(x, tn_is_float(dtype) && rank >= 2, "the input must be floats [N, C, ...]");
    y = tn_mul(g, y, tn_scalar_like(g, y, tn_expand_float(x, "scale")));
    if (!n)
        return tn_expand_set(x, 0, y);
    TN_RULE(x, !tn_dim_never_equal(g, tn_expand_dim(x, 0, 1), tn_size(x, n)),
            "'bias' has %d entries, the input another number of channels", (int)n);
    tn_tensor *t = tn_tensor_new(g->heap, dtype, 1, &n);
    for (int64_t i = 0; t && i < n; i++)
        tn_store_f64(dtype, t->data, i, (double)bias[i]);
    if (!t)
        return tn_error_status();
    tn_value b = tn_graph_constant(g, t);
    tn_tensor_destroy(t);
    return tn_expand_set(x, 0, tn_add(g, y, tn_expand_along(x, b, rank, 1)));
}

static const tn_attr_spec scaler_attrs[] = {TN_SPEC_FLOATS("bias"), TN_SPEC_FLOAT("scale", 1), {0}};

static const tn_onnx_op rows[] = {
    TN_ONNX("ImageScaler", .since = 1, .until = 9, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = scaler_attrs,
            .expand = expand_image_scaler),
    TN_ONNX("ImageDecoder", .since = 20, .inputs = {1, 1}, .outputs = {1, 1}, .attrs = tn_host_image_attrs,
            .host = &tn_host_image),
};

const tn_onnx_family tn_onnx_family_image = {rows, sizeof rows / sizeof *rows};
