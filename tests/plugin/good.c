/* A plugin with two operators of domain com.example: Affine (a * x + b, any float type) and Split3 (three outputs, of sizes
   that only data decides). Sees only the public headers. */
#include <string.h>
#include <tenon/custom.h>

static tn_status affine_infer(tn_custom_call *c) {
    if (tn_custom_input_dtype(c, 0) != TN_F32)
        return tn_custom_unsupported(c, "element type %s", tn_dtype_name(tn_custom_input_dtype(c, 0)));
    return tn_custom_set_like(c, 0, 0);
}

static tn_status affine_eval(tn_custom_call *c) {
    const tn_tensor *x = tn_custom_input(c, 0);
    tn_tensor *y = tn_custom_output(c, 0, TN_F32, tn_tensor_rank(x), tn_tensor_dims(x));
    if (!y)
        return tn_error_status();
    float a = (float)tn_custom_float(c, "a"), b = (float)tn_custom_float(c, "b");
    const float *from = tn_tensor_data(x);
    float *to = tn_tensor_data(y);
    for (int64_t i = 0; i < tn_tensor_count(x); i++) {
        if (from[i] > 1e30f)
            return tn_custom_fail(c, "element %lld is too large", (long long)i);
        to[i] = a * from[i] + b;
    }
    return TN_OK;
}

/* The negative, zero and positive elements. */
static tn_status split_infer(tn_custom_call *c) {
    for (uint32_t i = 0; i < 3; i++) {
        tn_dim size = tn_custom_fresh_dim(c, i, 0, 0, INT64_MAX);
        tn_status status = tn_custom_set_tensor(c, i, tn_custom_input_dtype(c, 0), 1, &size);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status split_eval(tn_custom_call *c) {
    const tn_tensor *x = tn_custom_input(c, 0);
    for (uint32_t k = 0; k < 3; k++) {
        int64_t count = 0, at = 0;
        for (int64_t i = 0; i < tn_tensor_count(x); i++) {
            double v = tn_tensor_get_f64(x, i);
            count += (v < 0 ? 0 : v > 0 ? 2 : 1) == (int)k;
        }
        tn_tensor *y = tn_custom_output(c, k, tn_tensor_dtype(x), 1, &count);
        if (!y)
            return tn_error_status();
        for (int64_t i = 0; i < tn_tensor_count(x); i++) {
            double v = tn_tensor_get_f64(x, i);
            if ((v < 0 ? 0 : v > 0 ? 2 : 1) == (int)k)
                tn_tensor_set_f64(y, at++, v);
        }
    }
    return TN_OK;
}

TN_PLUGIN(set) {
    static const tn_attribute_spec attributes[] = {
        {.name = "a", .kind = TN_ATTRIBUTE_FLOAT, .float_default = 1}, {.name = "b", .kind = TN_ATTRIBUTE_FLOAT}, {0}};
    tn_status status =
        tn_op_set_add(set, TN_OPTIONS(tn_custom_op, .domain = "com.example", .name = "Affine", .min_inputs = 1,
                                      .max_inputs = 1, .attributes = attributes, .inputs = "x", .doc = "a * x + b",
                                      .infer = affine_infer, .eval = affine_eval));
    if (status != TN_OK)
        return status;
    return tn_op_set_add(set, TN_OPTIONS(tn_custom_op, .domain = "com.example", .name = "Split3", .min_inputs = 1,
                                         .max_inputs = 1, .min_outputs = 3, .max_outputs = 3,
                                         .doc = "negative, zero and positive elements", .infer = split_infer,
                                         .eval = split_eval));
}
