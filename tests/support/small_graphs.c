/* Small graphs built in C, one for each part of the builder. */
#include <stddef.h>

#include <tenon/tenon.h>

#include "support/model_runs.h"

static void mlp(tn_graph *g) {
    static const float w1[] = {1, 0, 0, 1, 1, -1}, b1[] = {0.5f, -1}, w2[] = {2, -3};
    tn_tensor *t1 = tn_tensor_from_f32(2, (const int64_t[]){3, 2}, w1),
              *t2 = tn_tensor_from_f32(1, (const int64_t[]){2}, b1),
              *t3 = tn_tensor_from_f32(2, (const int64_t[]){2, 1}, w2);
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 3));
    tn_value a = tn_add(g, tn_matmul(g, x, tn_variable(g, "w1", t1)), tn_constant(g, t2));
    tn_set_output(g, "a", a);
    tn_set_output(g, "y", tn_matmul(g, tn_relu(g, a), tn_constant(g, t3)));
    tn_tensor_destroy(t1);
    tn_tensor_destroy(t2);
    tn_tensor_destroy(t3);
}

static void conv(tn_graph *g) {
    float w[2 * 3 * 3 * 3];
    for (int i = 0; i < 54; i++)
        w[i] = (float)(i % 7) * 0.25f - 0.5f;
    tn_tensor *t = tn_tensor_from_f32(4, (const int64_t[]){2, 3, 3, 3}, w);
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 3, 9, 9));
    tn_dim one = tn_dim_const(g, 1);
    tn_value y =
        tn_conv(g, x, tn_constant(g, t), NULL, NULL, NULL, (const tn_dim[]){one, one}, (const tn_dim[]){one, one}, 1);
    tn_set_output(g, "y", tn_reduce_mean(g, tn_gelu(g, y), 2, (const int[]){2, 3}, false));
    tn_set_output(
        g, "p", tn_window(g, "max", y, (const int64_t[]){1, 1, 2, 2}, (const int64_t[]){1, 1, 2, 2}, NULL, NULL, NULL));
    tn_tensor_destroy(t);
}

static void attention(tn_graph *g) {
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("T", 8)), y = tn_input(g, "mask", TN_BOOL, TN_SHAPE("T", "T"));
    tn_value scores = tn_mul(g, tn_matmul(g, x, tn_transpose(g, x, NULL)), tn_scalar(g, TN_F32, 0.5));
    scores = tn_select(g, y, scores, tn_scalar(g, TN_F32, -1e9));
    tn_set_output(g, "y", tn_matmul(g, tn_softmax(g, scores, -1), x));
}

static void movement(tn_graph *g) {
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(4, 6)), i = tn_input(g, "i", TN_I64, TN_SHAPE("K"));
    tn_value a = tn_slice_axis(g, tn_transpose(g, x, NULL), 0, 1, 4), b = tn_reshape(g, x, TN_SHAPE(6, 4));
    tn_value c = tn_concat(g, 0, 2, (const tn_value[]){a, b});
    tn_set_output(g, "y", tn_gather(g, c, i, 0));
    tn_set_output(g, "s", tn_shape_of(g, c));
    tn_set_output(g, "n", tn_cast(g, tn_floor(g, tn_mul(g, x, tn_scalar(g, TN_F32, 3))), TN_I32));
}

static void twice(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    tn_value x = *(tn_value *)ctx;
    results[0] = tn_add(g, x, x);
}

static void negated(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_neg(g, *(tn_value *)ctx);
}

static void choice(tn_graph *g) {
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N")), y = {0};
    tn_value sum = tn_reduce_sum(g, x, TN_ALL_AXES, false);
    tn_if(g, tn_greater(g, sum, tn_scalar(g, TN_F32, 0)), twice, negated, &x, 1, &y);
    tn_set_output(g, "y", y);
}

static void below(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_less(g, args[0], *(tn_value *)ctx);
}

static void step(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = tn_add(g, args[0], tn_scalar(g, TN_I64, 1));
    results[1] = tn_tanh(g, tn_add(g, args[1], tn_scalar(g, TN_F32, 0.5)));
}

static void loop(tn_graph *g) {
    tn_value trips = tn_input(g, "trips", TN_I64, TN_SCALAR), x = tn_input(g, "x", TN_F32, TN_SHAPE(3)),
             results[2] = {{0}, {0}};
    tn_while(g, 2, (const tn_value[]){tn_scalar(g, TN_I64, 0), x}, NULL, below, step, &trips, 0, results);
    tn_set_output(g, "y", results[1]);
}

static void running_sum(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = tn_add(g, args[0], args[1]);
    results[1] = tn_mul(g, results[0], results[0]);
}

static void scan(tn_graph *g) {
    tn_value xs = tn_input(g, "xs", TN_F32, TN_SHAPE("T", 2)), results[2] = {{0}, {0}};
    tn_value zero = tn_reduce_sum(g, tn_slice_axis(g, tn_concat(g, 0, 2, (const tn_value[]){xs, xs}), 0, 0, 0), 1,
                                  (const int[]){0}, false);
    tn_scan(g, 1, &zero, 1, &xs, running_sum, NULL, 1, results);
    tn_set_output(g, "sum", results[0]);
    tn_set_output(g, "squares", results[1]);
}

tn_graph *small_graph(tn_heap *heap, uint32_t index, const char **name) {
    static const struct {
        const char *name;
        void (*build)(tn_graph *);
    } all[] = {{"mlp", mlp},   {"conv", conv}, {"attention", attention}, {"movement", movement}, {"choice", choice},
               {"loop", loop}, {"scan", scan}};
    *name = NULL;
    if (index >= sizeof all / sizeof *all)
        return NULL;
    *name = all[index].name;
    tn_graph *g = tn_graph_create_in(heap);
    if (g)
        all[index].build(g);
    return g;
}
