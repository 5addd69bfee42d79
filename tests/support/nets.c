/* Small networks built in C. */
#include "support/nets.h"

#include <stdio.h>
#include <stdlib.h>
#include <tenon/build.h>

#include "ir/graph.h"

const char *const net_names[NET_KINDS] = {"mlp",  "cnn", "inverted residual", "transformer block", "branch",
                                          "loop", "scan"};

static tn_tensor *random_tensor(int rank, const int64_t *dims, uint64_t seed) {
    tn_tensor *t = tn_tensor_create(TN_F32, rank, dims);
    float *data = tn_tensor_data(t);
    uint64_t state = seed * 2654435761u + 12345;
    for (int64_t i = 0; i < tn_tensor_count(t); i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        data[i] = (float)(state >> 40) / 8388608.0f - 1;
    }
    return t;
}

static tn_value weights(tn_graph *g, int rank, const int64_t *dims, uint64_t seed) {
    tn_tensor *t = random_tensor(rank, dims, seed);
    tn_value v = tn_mul(g, tn_constant(g, t), tn_scalar(g, TN_F32, 0.25));
    tn_tensor_destroy(t);
    return v;
}
#define WEIGHTS(g, seed, ...) \
    weights((g), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__}, (seed))

static tn_value mlp(tn_graph *g, tn_value x) {
    x = tn_relu(g, tn_add(g, tn_matmul(g, x, WEIGHTS(g, 1, 32, 48)), WEIGHTS(g, 2, 48)));
    x = tn_relu(g, tn_add(g, tn_matmul(g, x, WEIGHTS(g, 3, 48, 24)), WEIGHTS(g, 4, 24)));
    return tn_softmax(g, tn_matmul(g, x, WEIGHTS(g, 5, 24, 10)), 1);
}

static tn_value conv(tn_graph *g, tn_value x, tn_value w, int64_t stride) {
    const int64_t steps[2] = {stride, stride};
    tn_dim one[2] = {tn_dim_const(g, 1), tn_dim_const(g, 1)};
    return tn_conv(g, x, w, steps, NULL, NULL, one, one, 1);
}

static tn_value cnn(tn_graph *g, tn_value x) {
    const int64_t window[4] = {1, 1, 2, 2};
    x = tn_relu(g, conv(g, x, WEIGHTS(g, 6, 8, 3, 3, 3), 1));
    tn_value y = tn_window(g, "max", x, window, window, NULL, NULL, NULL);
    y = tn_relu(g, conv(g, y, WEIGHTS(g, 7, 16, 8, 3, 3), 1));
    y = tn_add(g, y, conv(g, y, WEIGHTS(g, 8, 16, 16, 3, 3), 1));
    y = tn_reduce_mean(g, y, 2, (const int[]){2, 3}, false);
    return tn_matmul(g, y, WEIGHTS(g, 9, 16, 10));
}

static tn_value inverted(tn_graph *g, tn_value x) {
    const tn_dim one[2] = {tn_dim_const(g, 1), tn_dim_const(g, 1)};
    x = tn_conv(g, x, WEIGHTS(g, 18, 8, 8, 1, 1), NULL, NULL, NULL, NULL, NULL, 1);
    tn_value y = tn_relu(g, tn_conv(g, x, WEIGHTS(g, 19, 24, 8, 1, 1), NULL, NULL, NULL, NULL, NULL, 1));
    y = tn_relu(g, tn_conv(g, y, WEIGHTS(g, 20, 24, 1, 3, 3), NULL, NULL, NULL, one, one, 24));
    y = tn_add(g, x, tn_conv(g, y, WEIGHTS(g, 21, 8, 24, 1, 1), NULL, NULL, NULL, NULL, NULL, 1));
    return tn_reduce_mean(g, y, 2, (const int[]){2, 3}, false);
}

static tn_value heads(tn_graph *g, tn_value x, uint64_t seed) {
    static const int perm[] = {0, 2, 1, 3};
    tn_value y = tn_matmul(g, x, WEIGHTS(g, seed, 32, 32));
    const tn_dim dims[4] = {tn_value_dim(g, x, 0), tn_value_dim(g, x, 1), tn_dim_const(g, 4), tn_dim_const(g, 8)};
    return tn_transpose(g, tn_reshape_dims(g, y, 4, dims), perm);
}

static tn_value transformer(tn_graph *g, tn_value x) {
    static const int perm[] = {0, 2, 1, 3}, flip[] = {0, 1, 3, 2};
    tn_value q = heads(g, x, 10), k = heads(g, x, 11), v = heads(g, x, 12);
    tn_value score = tn_mul(g, tn_matmul(g, q, tn_transpose(g, k, flip)), tn_scalar(g, TN_F32, 0.35));
    tn_value y = tn_transpose(g, tn_matmul(g, tn_softmax(g, score, 3), v), perm);
    const tn_dim dims[3] = {tn_value_dim(g, x, 0), tn_value_dim(g, x, 1), tn_dim_const(g, 32)};
    y = tn_matmul(g, tn_reshape_dims(g, y, 3, dims), WEIGHTS(g, 13, 32, 32));
    x = tn_layer_norm(g, tn_add(g, x, y), WEIGHTS(g, 14, 32), WEIGHTS(g, 15, 32), 2, 1e-5);
    y = tn_gelu(g, tn_matmul(g, x, WEIGHTS(g, 16, 32, 64)));
    return tn_add(g, x, tn_matmul(g, y, WEIGHTS(g, 17, 64, 32)));
}

static void twice(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_mul(g, tn_exp(g, *(const tn_value *)ctx), tn_scalar(g, TN_F32, 2));
}
static void minus(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_neg(g, *(const tn_value *)ctx);
}
static void below(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = tn_less(g, args[0], tn_constant_i64(g, 0, 1, (const int64_t[]){5}));
}
static void trip(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_add(g, args[0], tn_constant_i64(g, 0, 1, (const int64_t[]){1}));
    results[1] = tn_add(g, tn_sin(g, args[1]), *(const tn_value *)ctx);
}
static void step(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = tn_tanh(g, tn_add(g, args[0], args[1]));
    results[1] = tn_mul(g, results[0], results[0]);
}

static tn_value control(tn_graph *g, net_kind kind, tn_value x) {
    tn_value y[2], zero = tn_constant_i64(g, 0, 1, (const int64_t[]){0});
    if (kind == NET_BRANCH) {
        tn_value sum = tn_reduce_sum(g, x, TN_ALL_AXES, false);
        tn_if(g, tn_greater(g, sum, tn_scalar(g, TN_F32, 0)), twice, minus, &x, 1, y);
        return tn_add(g, y[0], x);
    }
    if (kind == NET_LOOP) {
        tn_while(g, 2, (const tn_value[]){zero, x}, NULL, below, trip, &x, 0, y);
        return y[1];
    }
    tn_value first = tn_reduce_sum(g, x, 1, (const int[]){0}, false);
    tn_scan(g, 1, &first, 1, &x, step, NULL, 1, y);
    return y[1];
}

static int sizes_of(net_kind kind, int64_t n, int64_t t, int64_t *dims) {
    const int64_t all[NET_KINDS][4] = {{n, 32}, {n, 3, t, t}, {n, 8, t, t}, {n, t, 32}, {n, t}, {n, t}, {n, t}};
    static const int ranks[NET_KINDS] = {2, 4, 4, 3, 2, 2, 2};
    for (int i = 0; i < ranks[kind]; i++)
        dims[i] = all[kind][i];
    return ranks[kind];
}

tn_graph *net_build(tn_heap *heap, net_kind kind, int64_t n, int64_t t) {
    tn_graph *g = tn_graph_create_in(heap);
    tn_dim sizes[2] = {n < 0 ? tn_dim_symbol(g, "N") : tn_dim_const(g, n),
                       t < 0 ? tn_dim_symbol(g, "T") : tn_dim_const(g, t)};
    const tn_dim c3 = tn_dim_const(g, 3), c8 = tn_dim_const(g, 8), c32 = tn_dim_const(g, 32);
    const tn_dim all[NET_KINDS][4] = {{sizes[0], c32},
                                      {sizes[0], c3, sizes[1], sizes[1]},
                                      {sizes[0], c8, sizes[1], sizes[1]},
                                      {sizes[0], sizes[1], c32},
                                      {sizes[0], sizes[1]},
                                      {sizes[0], sizes[1]},
                                      {sizes[0], sizes[1]}};
    int64_t dims[4];
    int rank = sizes_of(kind, n, t, dims);
    tn_value x = tn_region_add_arg(g, tn_graph_region(g), tn_type_tensor(g, TN_F32, rank, all[kind]), "x");
    tn_value y = kind == NET_MLP           ? mlp(g, x)
                 : kind == NET_CNN         ? cnn(g, x)
                 : kind == NET_INVERTED    ? inverted(g, x)
                 : kind == NET_TRANSFORMER ? transformer(g, x)
                                           : control(g, kind, x);
    tn_set_output(g, "y", y);
    if (tn_graph_check(g) != TN_OK) {
        fprintf(stderr, "%s: %s\n", net_names[kind], tn_error_message());
        abort();
    }
    return g;
}

tn_tensor *net_input(net_kind kind, int64_t n, int64_t t, uint64_t seed) {
    int64_t dims[4];
    int rank = sizes_of(kind, n, t, dims);
    return random_tensor(rank, dims, seed + 100);
}
