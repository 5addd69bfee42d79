/* An operator of our own, used by a graph that is built here: y = x * sigmoid(beta * x), then a sum. It runs on the reference
   interpreter and in a compiled plan; a model in a file can name it as com.example.Swish just as well. */
#include <math.h>
#include <stdio.h>
#include <tenon/tenon.h>

static tn_status swish_infer(tn_custom_call *c) {
    if (tn_custom_input_dtype(c, 0) != TN_F32)
        return tn_custom_unsupported(c, "element type %s", tn_dtype_name(tn_custom_input_dtype(c, 0)));
    return tn_custom_set_like(c, 0, 0);
}

static tn_status swish_eval(tn_custom_call *c) {
    const tn_tensor *x = tn_custom_input(c, 0);
    tn_tensor *y = tn_custom_output(c, 0, TN_F32, tn_tensor_rank(x), tn_tensor_dims(x));
    if (!y)
        return tn_error_status();
    const float *from = tn_tensor_data(x);
    float *to = tn_tensor_data(y), beta = (float)tn_custom_float(c, "beta");
    for (int64_t i = 0; i < tn_tensor_count(x); i++)
        to[i] = from[i] / (1 + expf(-beta * from[i]));
    return TN_OK;
}

static const tn_attribute_spec swish_attributes[] = {{.name = "beta", .kind = TN_ATTRIBUTE_FLOAT, .float_default = 1},
                                                     {.name = NULL}};

static int run(tn_model *model, tn_backend backend, const char *title) {
    tn_session *session = tn_session_create(model, TN_OPTIONS(tn_session_options, .backend = backend));
    tn_tensor *x = tn_tensor_from_f32(2, (const int64_t[]){1, 3}, (const float[]){-1, 0, 2}), *y = NULL;
    tn_status status = session && x ? tn_session_run(session, 1, (const tn_binding[]){{.name = "x", .tensor = x}}, 1,
                                                     (const tn_output[]){{.name = "y", .tensor = &y}})
                                    : tn_error_status();
    double value = y ? tn_tensor_get_f64(y, 0) : 0, expected = -1 / (1 + exp(2.0)) + 2 / (1 + exp(-4.0));
    if (status != TN_OK)
        fprintf(stderr, "%s\n", tn_error_message());
    else
        printf("%s: %.6f\n", title, value);
    tn_tensor_destroy(x);
    tn_tensor_destroy(y);
    tn_session_destroy(session);
    return status == TN_OK && fabs(value - expected) < 1e-5 ? 0 : 1;
}

int main(void) {
    tn_op_set *ops = tn_op_set_create(NULL);
    tn_op_set_add(ops, TN_OPTIONS(tn_custom_op, .domain = "com.example", .name = "Swish", .min_inputs = 1,
                                  .max_inputs = 1, .attributes = swish_attributes, .inputs = "x",
                                  .doc = "x * sigmoid(beta * x)", .infer = swish_infer, .eval = swish_eval));
    tn_graph *g = tn_graph_create_using(NULL, ops);
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("batch", 3));
    tn_value y = tn_custom(g, "com.example.Swish", 1, &x, 1, (const tn_attribute[]){TN_SET_FLOAT("beta", 2)});
    tn_set_output(g, "y", tn_reduce_sum(g, y, 1, (const int[]){1}, false));
    tn_model *model = tn_graph_check(g) == TN_OK ? tn_model_from_graph(g, NULL) : NULL;
    int failed = 1;
    if (model)
        failed = run(model, TN_BACKEND_REFERENCE, "reference") | run(model, TN_BACKEND_CPU, "compiled");
    else
        fprintf(stderr, "%s\n", tn_error_message());
    tn_model_destroy(model);
    tn_graph_destroy(g);
    tn_op_set_destroy(ops);
    return failed;
}
