/* Symbolic shapes through rows that move, reduce and contract: what is inferred, what is refused at once, what is
   left to the run and found there; contents of shape computations. */
#include "ops/naive.h"

typedef struct world {
    tn_graph *graph;
    tn_dim n, m;
} world;

static world begin(void) {
    world w = {.graph = tn_graph_new(NULL, tn_ops_table())};
    assert_non_null(w.graph);
    w.n = tn_dim_symbol(w.graph, "N");
    w.m = tn_dim_symbol(w.graph, "M");
    return w;
}

static tn_dim k(const world *w, int64_t value) {
    return tn_dim_const(w->graph, value);
}

static tn_value input(const world *w, tn_dtype dtype, int rank, const tn_dim *dims) {
    return tn_region_add_arg(w->graph, tn_graph_region(w->graph), tn_type_tensor(w->graph, dtype, rank, dims), NULL);
}

static tn_value add(const world *w, const char *op, uint32_t inputs, const tn_value *in, uint32_t attrs,
                    const tn_attr *attr) {
    tn_value v = tn_graph_add(w->graph, op, inputs, in, attrs, attr);
    if (v.id == 0)
        fail_msg("%s", tn_error_message());
    return v;
}

static tn_value numbers(const world *w, tn_dtype dtype, int64_t count, const int64_t *values, int rank) {
    tn_tensor *t = tn_tensor_create(dtype, rank, &count);
    assert_non_null(t);
    for (int64_t i = 0; i < count; i++)
        tn_store_i64(dtype, t->data, i, values[i]);
    tn_value v = tn_graph_constant(w->graph, t);
    tn_tensor_destroy(t);
    assert_true(v.id != 0);
    return v;
}

static void expect_dims(const world *w, tn_value v, int rank, const tn_dim *dims) {
    assert_int_equal(tn_value_rank(w->graph, v), rank);
    for (int i = 0; i < rank; i++)
        if (tn_value_dim(w->graph, v, i).id != dims[i].id) {
            char text[128];
            fail_msg("axis %d of %s", i, tn_value_describe(w->graph, v, text, sizeof text));
        }
}

static void expect_contents(const world *w, tn_value v, int n, const tn_dim *dims) {
    const tn_dim *known;
    assert_int_equal(tn_value_contents(w->graph, v, &known), n);
    for (int i = 0; i < n; i++)
        assert_int_equal(known[i].id, dims[i].id);
}

/* The next building call must fail with TN_ERR_MODEL, its message holding both texts. Ends the world. */
static void refused(const world *w, tn_value v, const char *a, const char *b) {
    assert_int_equal(v.id, 0);
    assert_int_equal(tn_graph_check(w->graph), TN_ERR_MODEL);
    if (strstr(tn_error_message(), a) == NULL || strstr(tn_error_message(), b) == NULL)
        fail_msg("message: %s", tn_error_message());
    tn_graph_destroy(w->graph);
}

#define DIMS(...) ((const tn_dim[]){__VA_ARGS__})
#define INTS(...) ((const int64_t[]){__VA_ARGS__})
#define IN(...) ((const tn_value[]){__VA_ARGS__})
#define ATTRS(...) ((const tn_attr[]){__VA_ARGS__})

static void test_movement(void **state) {
    (void)state;
    world w = begin();
    tn_dim nm = tn_dim_mul(w.graph, w.n, w.m);
    tn_value x = input(&w, TN_F32, 3, DIMS(w.n, w.m, k(&w, 4)));
    tn_value flat = add(&w, "reshape", 1, &x, 1, ATTRS(TN_A_DIMS("shape", 2, DIMS(nm, k(&w, 4)))));
    expect_dims(&w, flat, 2, DIMS(nm, k(&w, 4)));
    tn_value t = add(&w, "transpose", 1, &x, 1, ATTRS(TN_A_INTS("perm", 3, INTS(2, 0, 1))));
    expect_dims(&w, t, 3, DIMS(k(&w, 4), w.n, w.m));
    tn_value b = add(&w, "broadcast", 1, &x, 1, ATTRS(TN_A_DIMS("shape", 4, DIMS(k(&w, 7), w.n, w.m, k(&w, 4)))));
    expect_dims(&w, b, 4, DIMS(k(&w, 7), w.n, w.m, k(&w, 4)));
    tn_value s = add(&w, "slice", 1, &x, 3,
                     ATTRS(TN_A_DIMS("start", 3, DIMS(tn_dim_sub(w.graph, w.n, k(&w, 1)), k(&w, 0), k(&w, 3))),
                           TN_A_DIMS("size", 3, DIMS(w.n, w.m, k(&w, 2))), TN_A_INTS("step", 3, INTS(-1, 1, -2))));
    expect_dims(&w, s, 3, DIMS(w.n, w.m, k(&w, 2)));
    tn_value p = add(
        &w, "pad", 1, &x, 2,
        ATTRS(TN_A_DIMS("lo", 3, DIMS(k(&w, 1), w.n, k(&w, 0))), TN_A_DIMS("hi", 3, DIMS(k(&w, 1), w.n, k(&w, 0)))));
    expect_dims(&w, p, 3,
                DIMS(tn_dim_add(w.graph, w.n, k(&w, 2)), tn_dim_add(w.graph, w.m, tn_dim_mul(w.graph, k(&w, 2), w.n)),
                     k(&w, 4)));
    tn_value c = add(&w, "concat", 3, IN(x, x, x), 1, ATTRS(TN_A_INT("axis", 1)));
    expect_dims(&w, c, 3, DIMS(w.n, tn_dim_mul(w.graph, k(&w, 3), w.m), k(&w, 4)));
    tn_value r = add(&w, "reduce_max", 1, &x, 2, ATTRS(TN_A_INTS("axes", 1, INTS(1)), TN_A_INT("keepdims", 1)));
    expect_dims(&w, r, 3, DIMS(w.n, k(&w, 1), k(&w, 4)));
    tn_graph_destroy(w.graph);
}

static void test_windows(void **state) {
    (void)state;
    world w = begin();
    tn_value x = input(&w, TN_F32, 3, DIMS(w.n, k(&w, 8), w.m)),
             f = input(&w, TN_F32, 3, DIMS(k(&w, 6), k(&w, 4), k(&w, 3)));
    tn_dim zero = k(&w, 0), one = k(&w, 1),
           half = tn_dim_add(w.graph, tn_dim_floordiv(w.graph, tn_dim_sub(w.graph, w.m, one), k(&w, 2)), one);
    tn_value y = add(&w, "conv", 2, IN(x, f), 6,
                     ATTRS(TN_A_INTS("stride", 1, INTS(1)), TN_A_INTS("dilation", 1, INTS(1)),
                           TN_A_INTS("lhs_dilation", 1, INTS(1)), TN_A_DIMS("lo", 1, DIMS(one)),
                           TN_A_DIMS("hi", 1, DIMS(one)), TN_A_INT("groups", 2)));
    expect_dims(&w, y, 3, DIMS(w.n, k(&w, 6), w.m)); /* "same" padding keeps the size */
    y = add(&w, "conv", 2, IN(x, f), 6,
            ATTRS(TN_A_INTS("stride", 1, INTS(2)), TN_A_INTS("dilation", 1, INTS(1)),
                  TN_A_INTS("lhs_dilation", 1, INTS(1)), TN_A_DIMS("lo", 1, DIMS(one)), TN_A_DIMS("hi", 1, DIMS(one)),
                  TN_A_INT("groups", 2)));
    expect_dims(&w, y, 3, DIMS(w.n, k(&w, 6), half));
    y = add(&w, "conv", 2, IN(x, f), 6,
            ATTRS(TN_A_INTS("stride", 1, INTS(1)), TN_A_INTS("dilation", 1, INTS(1)),
                  TN_A_INTS("lhs_dilation", 1, INTS(2)), TN_A_DIMS("lo", 1, DIMS(k(&w, 2))),
                  TN_A_DIMS("hi", 1, DIMS(k(&w, 2))), TN_A_INT("groups", 2)));
    expect_dims(&w, y, 3,
                DIMS(w.n, k(&w, 6), tn_dim_add(w.graph, tn_dim_mul(w.graph, k(&w, 2), w.m), one))); /* (M - 1) 2 + 3 */
    y = add(&w, "window_sum", 1, &x, 5,
            ATTRS(TN_A_INTS("window", 3, INTS(1, 2, 1)), TN_A_INTS("stride", 3, INTS(1, 2, 2)),
                  TN_A_INTS("dilation", 3, INTS(1, 1, 1)), TN_A_DIMS("lo", 3, DIMS(zero, zero, zero)),
                  TN_A_DIMS("hi", 3, DIMS(zero, zero, zero))));
    expect_dims(&w, y, 3, DIMS(w.n, k(&w, 4), half));
    tn_value a = input(&w, TN_F32, 3, DIMS(w.n, k(&w, 5), w.m)), b = input(&w, TN_F32, 3, DIMS(w.n, w.m, k(&w, 7)));
    y = add(&w, "dot", 2, IN(a, b), 4,
            ATTRS(TN_A_INTS("a_batch", 1, INTS(0)), TN_A_INTS("b_batch", 1, INTS(0)),
                  TN_A_INTS("a_contract", 1, INTS(2)), TN_A_INTS("b_contract", 1, INTS(1))));
    expect_dims(&w, y, 3, DIMS(w.n, k(&w, 5), k(&w, 7)));
    tn_graph_destroy(w.graph);
}

/* shape_of -> slice, gather, concat, reduce: the shape that a reshape then takes. */
static void test_contents(void **state) {
    (void)state;
    world w = begin();
    tn_value x = input(&w, TN_F32, 3, DIMS(w.n, w.m, k(&w, 4)));
    tn_value shape = add(&w, "shape_of", 1, &x, 0, NULL);
    expect_contents(&w, shape, 3, DIMS(w.n, w.m, k(&w, 4)));
    tn_value first = add(&w, "slice", 1, &shape, 3,
                         ATTRS(TN_A_DIMS("start", 1, DIMS(k(&w, 0))), TN_A_DIMS("size", 1, DIMS(k(&w, 2))),
                               TN_A_INTS("step", 1, INTS(1))));
    expect_contents(&w, first, 2, DIMS(w.n, w.m));
    tn_value backwards = add(&w, "slice", 1, &shape, 3,
                             ATTRS(TN_A_DIMS("start", 1, DIMS(k(&w, 2))), TN_A_DIMS("size", 1, DIMS(k(&w, 2))),
                                   TN_A_INTS("step", 1, INTS(-2))));
    expect_contents(&w, backwards, 2, DIMS(k(&w, 4), w.n));
    tn_value area = add(&w, "reduce_prod", 1, &first, 2, ATTRS(TN_A_INTS("axes", 1, INTS(0)), TN_A_INT("keepdims", 1)));
    tn_dim nm = tn_dim_mul(w.graph, w.n, w.m);
    expect_contents(&w, area, 1, &nm);
    tn_value last = numbers(&w, TN_I32, 1, INTS(-1), 0);
    tn_value channels = add(&w, "gather", 2, IN(shape, last), 1, ATTRS(TN_A_INT("axis", 0)));
    assert_int_equal(tn_value_rank(w.graph, channels), 0);
    tn_value row_of_one = add(&w, "reshape", 1, &channels, 1, ATTRS(TN_A_DIMS("shape", 1, DIMS(k(&w, 1)))));
    tn_value joined = add(&w, "concat", 2, IN(area, row_of_one), 1, ATTRS(TN_A_INT("axis", 0)));
    expect_contents(&w, joined, 2, DIMS(nm, k(&w, 4)));
    tn_value twice = add(&w, "broadcast", 1, &row_of_one, 1, ATTRS(TN_A_DIMS("shape", 1, DIMS(k(&w, 3)))));
    expect_contents(&w, twice, 3, DIMS(k(&w, 4), k(&w, 4), k(&w, 4)));
    tn_value count =
        add(&w, "iota", 0, NULL, 3,
            ATTRS(TN_A_DIMS("shape", 1, DIMS(k(&w, 3))), TN_A_INT("axis", 0), TN_A_DTYPE("dtype", TN_I32)));
    expect_contents(&w, count, 3, DIMS(k(&w, 0), k(&w, 1), k(&w, 2)));
    tn_value sum = add(&w, "reduce_sum", 1, &count, 1, ATTRS(TN_A_INTS("axes", 1, INTS(0))));
    expect_contents(&w, sum, 1, DIMS(k(&w, 3)));
    /* Nothing is known of what lies outside, of other dtypes, of large tensors. */
    tn_value five = numbers(&w, TN_I64, 1, INTS(5), 0),
             none = add(&w, "gather", 2, IN(shape, five), 1, ATTRS(TN_A_INT("axis", 0)));
    expect_contents(&w, none, -1, NULL);
    expect_contents(&w, numbers(&w, TN_U8, 2, INTS(1, 2), 1), -1, NULL);
    int64_t many[TN_MAX_CONTENTS + 1] = {0};
    tn_dim zeros[TN_MAX_CONTENTS];
    for (int i = 0; i < TN_MAX_CONTENTS; i++)
        zeros[i] = k(&w, 0);
    expect_contents(&w, numbers(&w, TN_I64, TN_MAX_CONTENTS, many, 1), TN_MAX_CONTENTS, zeros);
    expect_contents(&w, numbers(&w, TN_I64, TN_MAX_CONTENTS + 1, many, 1), -1, NULL);
    tn_value wrap = numbers(&w, TN_I64, 2, INTS(INT64_MAX, 2), 1);
    wrap = add(&w, "reduce_sum", 1, &wrap, 1, ATTRS(TN_A_INTS("axes", 1, INTS(0))));
    expect_contents(&w, wrap, 1, DIMS(k(&w, INT64_MIN + 1)));
    assert_int_equal(tn_graph_check(w.graph), TN_OK);
    tn_graph_destroy(w.graph);
}

static void test_refused(void **state) {
    (void)state;
    world w = begin();
    tn_value x = input(&w, TN_F32, 2, DIMS(w.n, k(&w, 3)));
    tn_dim more = tn_dim_add(w.graph, w.n, k(&w, 1));
    refused(&w, tn_graph_add(w.graph, "reshape", 1, &x, 1, ATTRS(TN_A_DIMS("shape", 2, DIMS(more, k(&w, 3))))),
            "elements", "f32[N, 3]");
    w = begin();
    x = input(&w, TN_F32, 2, DIMS(w.n, k(&w, 3)));
    refused(&w, tn_graph_add(w.graph, "broadcast", 1, &x, 1, ATTRS(TN_A_DIMS("shape", 2, DIMS(w.m, k(&w, 4))))),
            "axis 1", "4");
    w = begin();
    x = input(&w, TN_F32, 2, DIMS(w.n, k(&w, 3)));
    refused(&w,
            tn_graph_add(w.graph, "slice", 1, &x, 3,
                         ATTRS(TN_A_DIMS("start", 2, DIMS(w.n, k(&w, 0))),
                               TN_A_DIMS("size", 2, DIMS(k(&w, 1), k(&w, 3))), TN_A_INTS("step", 2, INTS(1, 1)))),
            "leaves axis 0", "N");
    w = begin();
    x = input(&w, TN_F32, 1, DIMS(w.n));
    tn_value y = input(&w, TN_F32, 1, DIMS(tn_dim_add(w.graph, w.n, k(&w, 2))));
    refused(&w,
            tn_graph_add(w.graph, "dot", 2, IN(x, y), 4,
                         ATTRS(TN_A_INTS("a_batch", 0, NULL), TN_A_INTS("b_batch", 0, NULL),
                               TN_A_INTS("a_contract", 1, INTS(0)), TN_A_INTS("b_contract", 1, INTS(0)))),
            "contracted axes", "N + 2");
    w = begin();
    x = input(&w, TN_F32, -1, NULL);
    refused(&w, tn_graph_add(w.graph, "shape_of", 1, &x, 0, NULL), "rank", "shape_of");
}

/* --- found at run time -------------------------------------------------------------------------------------------- */

/* Evaluates the producer of `v` on these tensors with N = n. */
static tn_status run(const world *w, tn_value v, uint32_t inputs, tn_tensor *const *in, int64_t n) {
    tn_node node = tn_value_producer(w->graph, v);
    tn_object *out = NULL, *objects[4];
    tn_dim_env env;
    for (uint32_t i = 0; i < inputs; i++)
        objects[i] = tn_tensor_object(in[i]);
    assert_true(tn_dim_env_init(&env, NULL, tn_graph_dims(w->graph)));
    assert_int_equal(tn_dim_env_match(tn_graph_dims(w->graph), &env, w->n, n), 0);
    tn_eval e = {
        .graph = w->graph, .node = node, .inputs = inputs, .outputs = 1, .in = objects, .out = &out, .env = &env};
    tn_status status = tn_node_op(w->graph, node)->eval(&e);
    tn_object_destroy(out);
    tn_dim_env_free(&env);
    return status;
}

static tn_tensor *made(op_harness *h, int rank, const int64_t *dims) {
    return op_random(h, TN_F32, rank, dims, true);
}

static void test_run_time(void **state) {
    op_harness h;
    (void)state;
    op_harness_begin(&h);
    world w = begin();
    tn_dim three = k(&w, 3), minus = tn_dim_sub(w.graph, w.n, k(&w, 9)), zero = k(&w, 0);
    tn_value x = input(&w, TN_F32, 1, DIMS(w.m)), y = input(&w, TN_F32, 1, DIMS(w.n)),
             f = input(&w, TN_F32, 3, DIMS(w.n, w.m, w.n));
    tn_tensor *t3 = made(&h, 1, INTS(3)), *t4 = made(&h, 1, INTS(4)), *t0 = made(&h, 1, INTS(0)),
              *t1 = made(&h, 1, INTS(1));

    tn_value v = add(&w, "reshape", 1, &x, 1, ATTRS(TN_A_DIMS("shape", 2, DIMS(k(&w, 1), three))));
    assert_int_equal(run(&w, v, 1, &t3, 1), TN_OK);
    assert_int_equal(run(&w, v, 1, &t4, 1), TN_ERR_INPUT);
    assert_non_null(strstr(tn_error_message(), "f32[4]"));
    v = add(&w, "reshape", 1, &x, 1, ATTRS(TN_A_DIMS("shape", 1, DIMS(minus))));
    assert_int_equal(run(&w, v, 1, &t3, 12), TN_OK);
    assert_int_equal(run(&w, v, 1, &t3, 6), TN_ERR_INPUT);

    v = add(&w, "broadcast", 1, &x, 1, ATTRS(TN_A_DIMS("shape", 2, DIMS(w.n, three))));
    assert_int_equal(run(&w, v, 1, &t3, 5), TN_OK);
    assert_int_equal(run(&w, v, 1, &t1, 0), TN_OK);
    assert_int_equal(run(&w, v, 1, &t4, 5), TN_ERR_INPUT);
    assert_int_equal(run(&w, v, 1, &t0, 5), TN_ERR_INPUT);

    v = add(&w, "slice", 1, &x, 3,
            ATTRS(TN_A_DIMS("start", 1, DIMS(minus)), TN_A_DIMS("size", 1, DIMS(w.n)), TN_A_INTS("step", 1, INTS(-1))));
    assert_int_equal(run(&w, v, 1, &t4, 0), TN_OK);         /* nothing of anywhere */
    assert_int_equal(run(&w, v, 1, &t4, 10), TN_ERR_INPUT); /* 1, 0, -1 ... */
    assert_int_equal(run(&w, v, 1, &t4, 5), TN_ERR_INPUT);  /* from -4 */
    v = add(&w, "slice", 1, &x, 3,
            ATTRS(TN_A_DIMS("start", 1, DIMS(zero)), TN_A_DIMS("size", 1, DIMS(w.n)), TN_A_INTS("step", 1, INTS(2))));
    assert_int_equal(run(&w, v, 1, &t4, 2), TN_OK);
    assert_int_equal(run(&w, v, 1, &t4, 3), TN_ERR_INPUT);

    v = add(&w, "pad", 1, &x, 3,
            ATTRS(TN_A_DIMS("lo", 1, DIMS(w.n)), TN_A_DIMS("hi", 1, DIMS(zero)), TN_A_STRING("mode", "edge", 4)));
    assert_int_equal(run(&w, v, 1, &t4, 3), TN_OK);
    assert_int_equal(run(&w, v, 1, &t0, 3), TN_ERR_INPUT);
    assert_int_equal(run(&w, v, 1, &t0, 0), TN_OK);
    v = add(&w, "pad", 1, &x, 2, ATTRS(TN_A_DIMS("lo", 1, DIMS(minus)), TN_A_DIMS("hi", 1, DIMS(w.n))));
    assert_int_equal(run(&w, v, 1, &t4, 9), TN_OK);
    assert_int_equal(run(&w, v, 1, &t4, 8), TN_ERR_INPUT);
    assert_int_equal(run(&w, v, 1, &t4, INT64_MAX), TN_ERR_LIMIT);

    tn_value stack = add(&w, "concat", 2, IN(f, f), 1, ATTRS(TN_A_INT("axis", 1)));
    assert_int_equal(run(&w, stack, 2, (tn_tensor *[]){made(&h, 3, INTS(2, 1, 2)), made(&h, 3, INTS(2, 0, 2))}, 2),
                     TN_OK);
    assert_int_equal(run(&w, stack, 2, (tn_tensor *[]){made(&h, 3, INTS(2, 1, 2)), made(&h, 3, INTS(2, 1, 3))}, 2),
                     TN_ERR_INPUT);

    v = add(&w, "dot", 2, IN(x, y), 4,
            ATTRS(TN_A_INTS("a_batch", 0, NULL), TN_A_INTS("b_batch", 0, NULL), TN_A_INTS("a_contract", 1, INTS(0)),
                  TN_A_INTS("b_contract", 1, INTS(0))));
    assert_int_equal(run(&w, v, 2, (tn_tensor *[]){t3, t3}, 3), TN_OK);
    assert_int_equal(run(&w, v, 2, (tn_tensor *[]){t3, t4}, 3), TN_ERR_INPUT);

    v = add(&w, "conv", 2, IN(f, f), 6,
            ATTRS(TN_A_INTS("stride", 1, INTS(1)), TN_A_INTS("dilation", 1, INTS(1)),
                  TN_A_INTS("lhs_dilation", 1, INTS(1)), TN_A_DIMS("lo", 1, DIMS(zero)), TN_A_DIMS("hi", 1, DIMS(zero)),
                  TN_A_INT("groups", 2)));
    assert_int_equal(run(&w, v, 2, (tn_tensor *[]){made(&h, 3, INTS(1, 4, 5)), made(&h, 3, INTS(2, 2, 5))}, 1), TN_OK);
    assert_int_equal(run(&w, v, 2, (tn_tensor *[]){made(&h, 3, INTS(1, 4, 5)), made(&h, 3, INTS(3, 2, 5))}, 1),
                     TN_ERR_INPUT);
    assert_int_equal(run(&w, v, 2, (tn_tensor *[]){made(&h, 3, INTS(1, 6, 5)), made(&h, 3, INTS(2, 2, 5))}, 1),
                     TN_ERR_INPUT);
    assert_int_equal(run(&w, v, 2, (tn_tensor *[]){made(&h, 3, INTS(1, 5, 5)), made(&h, 3, INTS(2, 2, 5))}, 1),
                     TN_ERR_INPUT);
    assert_int_equal(run(&w, v, 2, (tn_tensor *[]){made(&h, 3, INTS(1, 4, 5)), made(&h, 3, INTS(2, 2, 0))}, 1),
                     TN_ERR_INPUT);
    assert_int_equal(run(&w, v, 2, (tn_tensor *[]){made(&h, 3, INTS(1, 4, 5)), made(&h, 3, INTS(2, 2, 7))}, 1),
                     TN_ERR_INPUT);
    assert_int_equal(run(&w, v, 2, (tn_tensor *[]){made(&h, 3, INTS(1, 4, 5)), made(&h, 3, INTS(2, 2, 6))}, 1),
                     TN_OK); /* no position */

    v = add(&w, "window_max", 1, &x, 5,
            ATTRS(TN_A_INTS("window", 1, INTS(3)), TN_A_INTS("stride", 1, INTS(1)), TN_A_INTS("dilation", 1, INTS(2)),
                  TN_A_DIMS("lo", 1, DIMS(minus)), TN_A_DIMS("hi", 1, DIMS(zero))));
    assert_int_equal(run(&w, v, 1, &t4, 10), TN_OK);
    assert_int_equal(run(&w, v, 1, &t3, 9), TN_ERR_INPUT);
    assert_int_equal(run(&w, v, 1, &t4, 8), TN_ERR_INPUT);
    tn_graph_destroy(w.graph);
    op_harness_end(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_movement), cmocka_unit_test(test_windows),
                                       cmocka_unit_test(test_contents), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_run_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
