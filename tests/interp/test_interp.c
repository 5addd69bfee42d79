/* The reference interpreter: worked examples with their bits, feeding and fetching, errors, limits, failing allocations. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <tenon/build.h>

#include "support/run_graph.h"

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float f32_at(const tn_tensor *t, int64_t i) {
    return (float)tn_tensor_get_f64(t, i);
}

static void expect_ok(tn_status status) {
    if (status != TN_OK)
        print_error("%s\n", tn_error_message());
    assert_int_equal(status, TN_OK);
}

static void expect_words(tn_status got, tn_status wanted, const char *const *words) {
    if (got != wanted)
        print_error("%s\n", tn_error_message());
    assert_int_equal(got, wanted);
    for (; *words; words++)
        if (!strstr(tn_error_message(), *words)) {
            print_error("no \"%s\" in: %s\n", *words, tn_error_message());
            fail();
        }
    tn_error_clear();
}
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* --- the two-layer net ---------------------------------------------------------------------------------------------------- */

typedef struct net {
    tn_value x, a, r, y;
} net;

static tn_value variable(tn_graph *g, const char *name, int rank, const int64_t *dims, const double *values) {
    tn_tensor *t = make_tensor(TN_F32, rank, dims, values);
    tn_value v = tn_variable(g, name, t);
    tn_tensor_destroy(t);
    return v;
}

static tn_graph *build_net(net *n, tn_heap *heap) {
    tn_graph *g = tn_graph_create_in(heap);
    if (!g)
        return NULL;
    n->x = tn_input(g, "x", TN_F32, TN_SHAPE("batch", 3));
    tn_value w1 = variable(g, "W1", 2, RUN_DIMS(3, 2), (const double[]){1, 0, -1, 2, 0, -1});
    tn_value b1 = variable(g, "b1", 1, RUN_DIMS(2), (const double[]){1.5, 1});
    n->a = tn_add(g, tn_matmul(g, n->x, w1), b1);
    n->r = tn_relu(g, n->a);
    tn_value w2 = variable(g, "W2", 2, RUN_DIMS(2, 1), (const double[]){2, 3});
    tn_value b2 = variable(g, "b2", 1, RUN_DIMS(1), (const double[]){1});
    n->y = tn_set_output(g, "y", tn_add(g, tn_matmul(g, n->r, w2), b2));
    return g;
}

typedef struct counts {
    const tn_graph *graph;
    int values, dots;
} counts;

static void count(void *ctx, tn_value v, const tn_object *object) {
    counts *c = ctx;
    assert_non_null(object);
    c->values++;
    c->dots += strcmp(tn_node_op_name(c->graph, tn_value_producer(c->graph, v)), "dot") == 0;
}

static void test_two_layers(void **state) {
    (void)state;
    net n;
    tn_graph *g = build_net(&n, NULL);
    expect_ok(tn_graph_check(g));
    counts c = {.graph = g};
    tn_interp_options o = {.tap = count, .tap_ctx = &c};
    tn_tensor *x = make_tensor(TN_F32, 2, RUN_DIMS(1, 3), (const double[]){1, -2, 3});
    tn_object *in = tn_tensor_object(x), *out[2];

    expect_ok(tn_interp_run(g, &o, 1, &n.x, &in, 1, &n.a, out));
    tn_tensor *a = tn_object_tensor(out[0]);
    assert_true(f32_at(a, 0) == 4.5f && f32_at(a, 1) == -6);
    assert_int_equal(c.dots, 1); /* no second product */
    tn_object_destroy(out[0]);

    expect_ok(tn_interp_run(g, &o, 1, &n.x, &in, 2, (const tn_value[]){n.y, n.a}, out));
    assert_true(f32_at(tn_object_tensor(out[0]), 0) == 10 && f32_at(tn_object_tensor(out[1]), 1) == -6);
    assert_int_equal(tn_tensor_rank(tn_object_tensor(out[0])), 2);
    assert_int_equal(c.dots, 3);
    tn_object_destroy(out[0]);
    tn_object_destroy(out[1]);

    /* relu's output fed: x is not needed */
    tn_tensor *r = make_tensor(TN_F32, 2, RUN_DIMS(1, 2), (const double[]){1, 1});
    tn_object *fed = tn_tensor_object(r);
    expect_ok(tn_interp_run(g, &o, 1, &n.r, &fed, 1, &n.y, out));
    assert_true(f32_at(tn_object_tensor(out[0]), 0) == 6);
    assert_int_equal(c.dots, 4);
    tn_object_destroy(out[0]);
    /* fed and fetched, an input fetched */
    expect_ok(tn_interp_run(g, &o, 1, &n.r, &fed, 1, &n.r, out));
    assert_true(tn_object_equal(out[0], fed) && out[0] != fed);
    tn_object_destroy(out[0]);

    expect_words(tn_interp_run(g, NULL, 0, NULL, NULL, 1, &n.y, out), TN_ERR_INPUT, WORDS("'x'", "f32[batch, 3]"));
    assert_null(out[0]);
    expect_words(tn_interp_run(g, NULL, 1, &n.x, &fed, 1, &n.y, out), TN_ERR_INPUT,
                 WORDS("'x'", "dimension 1 is 2", "expected 3"));
    tn_tensor *flat = make_tensor(TN_F32, 1, RUN_DIMS(3), (const double[]){1, 2, 3});
    tn_tensor *wide = make_tensor(TN_F64, 2, RUN_DIMS(1, 3), (const double[]){1, 2, 3});
    tn_object *wrong[2] = {tn_tensor_object(flat), tn_tensor_object(wide)};
    expect_words(tn_interp_run(g, NULL, 1, &n.x, &wrong[0], 1, &n.y, out), TN_ERR_INPUT,
                 WORDS("'x'", "rank", "f32[3]"));
    expect_words(tn_interp_run(g, NULL, 1, &n.x, &wrong[1], 1, &n.y, out), TN_ERR_INPUT,
                 WORDS("'x'", "dtype", "f64[1,3]"));
    expect_words(tn_interp_run(g, NULL, 2, (const tn_value[]){n.x, n.x}, (tn_object *[]){in, in}, 1, &n.y, out),
                 TN_ERR_USAGE, WORDS("'x'", "twice"));
    expect_words(tn_interp_run(g, NULL, 1, (const tn_value[]){{9999}}, &in, 1, &n.y, out), TN_ERR_USAGE, WORDS("fed"));
    expect_words(tn_interp_run(g, NULL, 1, &n.x, &in, 1, (const tn_value[]){{0}}, out), TN_ERR_USAGE,
                 WORDS("asked for"));

    /* a default, overridden or not */
    expect_ok(tn_graph_set_input_default(g, n.x, x));
    expect_ok(tn_interp_run(g, NULL, 0, NULL, NULL, 1, &n.y, out));
    assert_true(f32_at(tn_object_tensor(out[0]), 0) == 10);
    tn_object_destroy(out[0]);
    tn_tensor_destroy(flat);
    tn_tensor_destroy(wide);
    tn_tensor_destroy(r);
    tn_tensor_destroy(x);
    tn_graph_destroy(g);
}

static void test_symbols(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value a = tn_input(g, "a", TN_F32, TN_SHAPE("n", 2)), b = tn_input(g, "b", TN_F32, TN_SHAPE("n"));
    tn_set_output(g, "y", tn_add(g, a, tn_expand_dims(g, b, 1, (const int[]){1})));
    expect_ok(tn_graph_check(g));
    tn_tensor *x = make_tensor(TN_F32, 2, RUN_DIMS(2, 2), (const double[]){1, 2, 3, 4});
    tn_tensor *three = make_tensor(TN_F32, 1, RUN_DIMS(3), (const double[]){1, 2, 3});
    tn_tensor *two = make_tensor(TN_F32, 1, RUN_DIMS(2), (const double[]){10, 20}), *y;
    expect_words(run_graph(g, NULL, (tn_tensor *[]){x, three}, &y), TN_ERR_INPUT,
                 WORDS("'b'", "dimension 0 is 3", "n = 2"));
    expect_ok(run_graph(g, NULL, (tn_tensor *[]){x, two}, &y));
    assert_true(f32_at(y, 0) == 11 && f32_at(y, 3) == 24);
    tn_tensor_destroy(y);
    tn_tensor_destroy(x);
    tn_tensor_destroy(two);
    tn_tensor_destroy(three);
    tn_graph_destroy(g);
}

static void two_sizes(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    results[0] = tn_neg(g, *(tn_value *)ctx);
    results[1] = tn_reduce_sum(g, results[0], TN_ALL_AXES, true);
}

/* A producer that runs for another output: what it gives for the fed value is dropped, whatever its size. */
static void test_fed_producer_runs(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("n")), other = tn_slice_axis(g, x, 0, 0, 1), y[2];
    tn_value c = tn_greater(g, tn_reduce_sum(g, x, TN_ALL_AXES, false), tn_scalar_like(g, x, 0));
    (void)other;
    tn_if(g, c, two_sizes, two_sizes, &x, 2, y);
    tn_set_output(g, "a", tn_add(g, y[0], y[1]));
    tn_set_output(g, "b", y[1]);
    expect_ok(tn_graph_check(g));
    tn_tensor *t = make_tensor(TN_F32, 1, RUN_DIMS(2), (const double[]){1, 2});
    tn_tensor *fed = make_tensor(TN_F32, 1, RUN_DIMS(2), (const double[]){10, 20});
    tn_object *out[2];
    expect_ok(tn_interp_run(g, NULL, 2, (const tn_value[]){x, y[0]},
                            (tn_object *[]){tn_tensor_object(t), tn_tensor_object(fed)}, 2,
                            (const tn_value[]){tn_graph_output(g, 0), y[1]}, out));
    assert_true(f32_at(tn_object_tensor(out[0]), 1) == 17 && f32_at(tn_object_tensor(out[1]), 0) == -3);
    tn_object_destroy(out[0]);
    tn_object_destroy(out[1]);
    tn_tensor_destroy(t);
    tn_tensor_destroy(fed);
    tn_graph_destroy(g);
}

/* Outputs share nothing with inputs, constants or each other. */
static void test_outputs_are_owned(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(2, 3));
    tn_value k = variable(g, "k", 1, RUN_DIMS(1), (const double[]){7});
    tn_set_output(g, "t", tn_transpose(g, x, NULL));
    tn_set_output(g, "r", tn_reshape(g, x, TN_SHAPE(-1)));
    tn_set_output(g, "x2", x);
    tn_set_output(g, "k", k);
    tn_set_output(g, "e", tn_neg(g, x));
    tn_set_output(g, "f", tn_reshape(g, tn_graph_output(g, 4), TN_SHAPE(6)));
    float data[6] = {1, 2, 3, 4, 5, 6};
    tn_tensor *borrowed = tn_tensor_wrap(TN_F32, 2, RUN_DIMS(2, 3), data), *out[6];
    expect_ok(run_graph(g, NULL, &borrowed, out));
    for (int i = 0; i < 6; i++) {
        assert_true(tn_tensor_is_contiguous(out[i]));
        for (int j = 0; j < i; j++)
            assert_ptr_not_equal(tn_tensor_data(out[i]), tn_tensor_data(out[j]));
    }
    memset(data, 0, sizeof data);
    tn_tensor_set_f64(out[3], 0, 0);
    tn_tensor_set_f64(out[4], 0, 0);
    assert_true(f32_at(out[0], 1) == 4 && f32_at(out[1], 5) == 6 && f32_at(out[2], 1) == 2 && f32_at(out[5], 0) == -1);
    for (int i = 0; i < 6; i++)
        tn_tensor_destroy(out[i]);
    expect_ok(run_graph(g, NULL, &borrowed, out));
    assert_true(f32_at(out[3], 0) == 7);
    for (int i = 0; i < 6; i++)
        tn_tensor_destroy(out[i]);
    tn_tensor_destroy(borrowed);
    tn_graph_destroy(g);
}

/* --- cond ------------------------------------------------------------------------------------------------------------------------ */

static void twice(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    tn_value x = *(tn_value *)ctx;
    results[0] = tn_mul(g, x, tn_scalar_like(g, x, 2));
}

static void negated(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    tn_value x = *(tn_value *)ctx;
    tn_assert(g, tn_less_equal(g, x, tn_scalar_like(g, x, 1)), "only what is taken is run");
    results[0] = tn_mul(g, x, tn_scalar_like(g, x, -1));
}

static tn_graph *build_cond(tn_heap *heap) {
    tn_graph *g = tn_graph_create_in(heap);
    if (!g)
        return NULL;
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("n")), y;
    tn_value positive = tn_greater(g, tn_reduce_sum(g, x, TN_ALL_AXES, false), tn_scalar_like(g, x, 0));
    tn_if(g, positive, twice, negated, &x, 1, &y);
    tn_set_output(g, "y", y);
    return g;
}

static void test_cond(void **state) {
    (void)state;
    static const struct {
        int64_t n;
        double x[2], y[2];
        bool sum_is_nan;
    } cases[] = {{2, {1, 2}, {2, 4}, false},
                 {2, {5, 2}, {10, 4}, false},
                 {2, {0, 0}, {-0.0, -0.0}, false},
                 {2, {-3, 1}, {3, -1}, false},
                 {0, {0}, {0}, false}};
    tn_graph *g = build_cond(NULL);
    expect_ok(tn_graph_check(g));
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        tn_tensor *x = make_tensor(TN_F32, 1, &cases[k].n, cases[k].x), *y;
        expect_ok(run_graph(g, NULL, &x, &y));
        assert_int_equal(tn_tensor_count(y), cases[k].n);
        for (int64_t i = 0; i < cases[k].n; i++)
            assert_int_equal(bits_of(f32_at(y, i)), bits_of((float)cases[k].y[i]));
        tn_tensor_destroy(x);
        tn_tensor_destroy(y);
    }
    /* not a number: not above 0, and the assertion in that branch sees it */
    tn_tensor *x = make_tensor(TN_F32, 1, RUN_DIMS(2), (const double[]){NAN, 1}), *y;
    expect_words(run_graph(g, NULL, &x, &y), TN_ERR_FAILED, WORDS("only what is taken is run", "assert", "if"));
    tn_tensor_destroy(x);
    tn_graph_destroy(g);
}

/* --- while ------------------------------------------------------------------------------------------------------------------------ */

typedef struct trips {
    tn_value n, x;
} trips;

static void more(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_less(g, args[0], ((trips *)ctx)->n);
}

static void add_x(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    results[0] = tn_add(g, args[0], tn_scalar_like(g, args[0], 1));
    results[1] = tn_add(g, args[1], ((trips *)ctx)->x);
}

static tn_graph *build_while(tn_heap *heap) {
    tn_graph *g = tn_graph_create_in(heap);
    if (!g)
        return NULL;
    trips t = {.n = tn_input(g, "n", TN_I64, TN_SCALAR), .x = tn_input(g, "x", TN_F32, TN_SHAPE("k"))};
    tn_value zero = tn_sub(g, t.x, t.x), out[2];
    tn_while(g, 2, (const tn_value[]){tn_scalar(g, TN_I64, 0), zero}, NULL, more, add_x, &t, 0, out);
    tn_set_output(g, "acc", out[1]);
    return g;
}

static void test_while(void **state) {
    (void)state;
    static const struct {
        int64_t n;
        uint32_t bits[3];
    } cases[] = {{10, {0x41200000, 0x41a00000, 0x3f800001}},
                 {0, {0, 0, 0}},
                 {1, {0x3f800000, 0x40000000, 0x3dcccccd}},
                 {1000, {0x447a0000, 0x44fa0000, 0x42c7ff83}}};
    tn_graph *g = build_while(NULL);
    expect_ok(tn_graph_check(g));
    tn_tensor *x = make_tensor(TN_F32, 1, RUN_DIMS(3), (const double[]){1, 2, 0.1f});
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        tn_tensor *n = make_scalar(TN_I64, (double)cases[k].n), *acc;
        expect_ok(run_graph(g, NULL, (tn_tensor *[]){n, x}, &acc));
        for (int i = 0; i < 3; i++)
            assert_int_equal(bits_of(f32_at(acc, i)), cases[k].bits[i]);
        tn_tensor_destroy(acc);
        tn_tensor_destroy(n);
    }
    tn_tensor_destroy(x);
    tn_graph_destroy(g);
}

/* --- limits ------------------------------------------------------------------------------------------------------------------------- */

static void forever(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)args;
    (void)ctx;
    results[0] = tn_scalar(g, TN_BOOL, 1);
}

static void same(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)g;
    (void)ctx;
    results[0] = args[0];
}

static bool after_many(void *ctx) {
    return ++*(int *)ctx > 1000;
}

static void test_limits(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("n")), y;
    tn_while(g, 1, &x, NULL, forever, same, NULL, 0, &y);
    tn_set_output(g, "y", y);
    expect_ok(tn_graph_check(g));
    tn_tensor *t = make_tensor(TN_F32, 1, RUN_DIMS(1), (const double[]){1}), *out;
    int asked = 0;
    expect_words(run_graph(g, &(tn_interp_options){.cancelled = after_many, .cancel_ctx = &asked}, &t, &out),
                 TN_ERR_CANCELLED, WORDS("cancelled"));
    expect_words(run_graph(g, &(tn_interp_options){.max_nodes = 500}, &t, &out), TN_ERR_LIMIT, WORDS("500"));
    tn_graph_destroy(g);

    /* a large intermediate value is refused before it is made */
    g = tn_graph_create();
    x = tn_input(g, "x", TN_F32, TN_SHAPE("n"));
    tn_dim big[2] = {tn_dim_const(g, 1 << 20), tn_value_dim(g, x, 0)};
    tn_set_output(g, "y", tn_reduce_sum(g, tn_exp(g, tn_broadcast(g, x, 2, big)), TN_ALL_AXES, false));
    expect_ok(tn_graph_check(g));
    expect_words(run_graph(g, &(tn_interp_options){.max_bytes = 1 << 20}, &t, &out), TN_ERR_LIMIT,
                 WORDS("1048576", "exp"));
    expect_ok(run_graph(g, NULL, &t, &out));
    tn_tensor_destroy(out);
    tn_tensor_destroy(t);
    tn_graph_destroy(g);
}

static void lines(void *ctx, const char *text) {
    char *all = ctx;
    strncat(all, text, 499 - strlen(all));
    strncat(all, "\n", 499 - strlen(all));
}

static void test_print(void **state) {
    (void)state;
    char text[500] = "";
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(2, "n"));
    tn_value p = tn_print(g, x, "here"); /* runs although nothing reads it */
    tn_print(g, tn_greater(g, x, tn_scalar_like(g, x, 2)), NULL);
    tn_set_output(g, "y", tn_neg(g, x));
    assert_int_equal(tn_node_role(g, tn_value_producer(g, p)), TN_ROLE_DEBUG);
    tn_tensor *t = make_tensor(TN_F32, 2, RUN_DIMS(2, 2), (const double[]){1, 2.5, -0.0, 1e30f}), *y;
    expect_ok(run_graph(g, &(tn_interp_options){.log = lines, .log_ctx = text}, &t, &y));
    assert_string_equal(text, "here: f32[2,2] [[1, 2.5], [-0, 1e+30]]\nbool[2,2] [[false, true], [false, true]]\n");
    tn_tensor_destroy(y);
    expect_ok(run_graph(g, NULL, &t, &y));
    tn_tensor_destroy(y);
    tn_tensor_destroy(t);
    tn_graph_destroy(g);
}

/* --- failing allocations --------------------------------------------------------------------------------------------------------------- */

/* Builds and runs with the n-th allocation failing (0: none). What failed is answered; nothing may be left, a result is right. */
static tn_status try_failing(tn_heap *heap, uint64_t n, tn_graph *(*build)(tn_heap *), tn_tensor *const *in,
                             tn_tensor **right) {
    tn_tensor *out = NULL;
    tn_heap_fail_at(heap, n, false);
    tn_graph *g = build(heap);
    tn_status status = g ? tn_graph_check(g) : tn_error_status();
    if (status == TN_OK)
        status = run_graph(g, &(tn_interp_options){.heap = heap}, in, &out);
    tn_heap_fail_at(heap, 0, false);
    assert_true((status == TN_OK) == (out != NULL));
    if (out && !*right) { /* a copy on the default heap */
        *right = tn_tensor_create(tn_tensor_dtype(out), tn_tensor_rank(out), tn_tensor_dims(out));
        expect_ok(tn_tensor_assign(*right, out));
    }
    assert_true(!out || tn_object_equal(tn_tensor_object(out), tn_tensor_object(*right)));
    tn_tensor_destroy(out);
    tn_graph_destroy(g);
    if (tn_heap_in_use(heap))
        print_error("allocation %d left something\n", (int)n);
    assert_int_equal(tn_heap_in_use(heap), 0);
    return status;
}

static void run_failing(tn_graph *(*build)(tn_heap *), tn_tensor *const *in) {
    tn_heap *heap = tn_heap_create(NULL);
    tn_tensor *right = NULL;
    uint64_t failed = 0;
    expect_ok(try_failing(heap, 0, build, in, &right));
    uint64_t total = tn_heap_allocations(heap);
    for (uint64_t n = 1; n <= total; n++) {
        tn_status status = try_failing(heap, n, build, in, &right);
        if (status != TN_ERR_MEMORY && status != TN_OK) /* a source position or a proof may be lost without harm */
            print_error("allocation %d of %d: %d %s\n", (int)n, (int)total, (int)status, tn_error_message());
        assert_true(status == TN_ERR_MEMORY || status == TN_OK);
        failed += status != TN_OK;
        tn_error_clear();
    }
    assert_true(total > 80 && failed > total / 2);
    expect_ok(try_failing(heap, total + 1, build, in, &right));
    tn_tensor_destroy(right);
    tn_heap_destroy(heap);
}

static tn_graph *build_net_only(tn_heap *heap) {
    net n;
    return build_net(&n, heap);
}

static void soft_sum(void *ctx, tn_graph *g, const tn_value *args, tn_value *results) {
    (void)ctx;
    results[0] = tn_add(g, args[0], tn_softmax(g, args[1], 0));
    results[1] = tn_print(g, tn_relu(g, args[1]), "row");
}

static tn_graph *build_scan(tn_heap *heap) {
    tn_graph *g = tn_graph_create_in(heap);
    if (!g)
        return NULL;
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("t", 2)), out[2],
             init = tn_reduce_sum(g, x, 1, (const int[]){0}, false);
    tn_scan(g, 1, &init, 1, &x, soft_sum, NULL, 1, out);
    tn_set_output(g, "y", tn_add(g, out[0], out[1]));
    return g;
}

static void test_failing(void **state) {
    (void)state;
    tn_tensor *x = make_tensor(TN_F32, 2, RUN_DIMS(1, 3), (const double[]){1, -2, 3});
    run_failing(build_net_only, &x);
    tn_tensor_destroy(x);
    x = make_tensor(TN_F32, 1, RUN_DIMS(2), (const double[]){1, -2});
    run_failing(build_cond, &x);
    tn_tensor *n = make_scalar(TN_I64, 3);
    run_failing(build_while, (tn_tensor *[]){n, x});
    tn_tensor_destroy(n);
    tn_tensor_destroy(x);
    x = make_tensor(TN_F32, 2, RUN_DIMS(3, 2), (const double[]){1, -2, 3, 4, 0, 0});
    run_failing(build_scan, &x);
    tn_tensor_destroy(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_layers),
        cmocka_unit_test(test_symbols),
        cmocka_unit_test(test_fed_producer_runs),
        cmocka_unit_test(test_outputs_are_owned),
        cmocka_unit_test(test_cond),
        cmocka_unit_test(test_while),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_failing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
