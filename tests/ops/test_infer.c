/* Inference of the elementwise rows: merged shapes, refusals that name what did not agree, contents of shape arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ir/graph.h"
#include "ops/contents.h"
#include "ops/infer.h"
#include "ops/ops.h"

static tn_graph *graph;

static int setup(void **state) {
    (void)state;
    graph = tn_graph_new(NULL, tn_ops_table());
    return graph == NULL;
}

static int teardown(void **state) {
    (void)state;
    tn_graph_destroy(graph);
    return 0;
}

static tn_dim size_of(int64_t value) {
    return tn_dim_const(graph, value);
}
static tn_dim symbol(const char *name) {
    return tn_dim_symbol(graph, name);
}

static tn_value input(tn_dtype dtype, int rank, const tn_dim *dims) {
    return tn_region_add_arg(graph, tn_graph_region(graph), tn_type_tensor(graph, dtype, rank, dims), NULL);
}

static tn_value add(const char *op, uint32_t n, const tn_value *in) {
    return tn_graph_add(graph, op, n, in, 0, NULL);
}
static tn_value add2(const char *op, tn_value a, tn_value b) {
    return add(op, 2, (tn_value[]){a, b});
}

static void assert_dims(tn_value value, int rank, const tn_dim *dims) {
    assert_int_equal(tn_graph_check(graph), TN_OK);
    assert_int_equal(tn_value_rank(graph, value), rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(tn_value_dim(graph, value, i).id, dims[i].id);
}

/* The sizes of the main inputs [N, M, ...] as known contents: shape_of. */
static tn_value shape_of(tn_value value) {
    return add("shape_of", 1, &value);
}

static tn_value constant(tn_dtype dtype, int64_t n, const int64_t *values) {
    tn_tensor *tensor = tn_tensor_create(dtype, 1, &n);
    assert_non_null(tensor);
    for (int64_t i = 0; i < n; i++)
        tn_store_i64(dtype, tensor->data, i, values[i]);
    tn_value value = tn_graph_constant(graph, tensor);
    tn_tensor_destroy(tensor);
    return value;
}
#define CONSTANT(dtype, ...) \
    constant(dtype, (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static void assert_contents(tn_value value, int32_t n, const tn_dim *want) {
    const tn_dim *dims;
    assert_int_equal(tn_graph_check(graph), TN_OK);
    assert_int_equal(tn_value_contents(graph, value, &dims), n);
    for (int32_t i = 0; i < n; i++)
        assert_int_equal(dims[i].id, want[i].id);
}
static void assert_unknown(tn_value value) {
    assert_contents(value, -1, NULL);
}
#define DIMS(...) ((tn_dim[]){__VA_ARGS__})
#define ASSERT_CONTENTS(value, ...) \
    assert_contents(value, (int32_t)(sizeof DIMS(__VA_ARGS__) / sizeof(tn_dim)), DIMS(__VA_ARGS__))

static void test_merge(void **state) {
    (void)state;
    tn_dim n = symbol("N"), m = symbol("M"), u = tn_dim_fresh(graph, 0, 100), two = size_of(2);
    tn_value a = input(TN_F32, 3, DIMS(n, u, two)), b = input(TN_F32, 3, DIMS(n, m, two));
    assert_dims(add2("add", a, b), 3, DIMS(n, m, two));
    tn_value c = input(TN_F32, 3, DIMS(size_of(7), m, u));
    assert_dims(add2("add", b, c), 3, DIMS(size_of(7), m, two));
    assert_dims(add2("add", c, a), 3, DIMS(size_of(7), m, two));
    tn_value less = add2("less", a, b);
    assert_int_equal(tn_value_dtype(graph, less), TN_BOOL);
    tn_value in[3] = {less, a, c};
    tn_value selected = add("select", 3, in);
    assert_dims(selected, 3, DIMS(size_of(7), m, two));
    assert_int_equal(tn_value_dtype(graph, selected), TN_F32);
}

static void expect_refused(const char *op, uint32_t n, const tn_value *in, const char *text) {
    assert_int_equal(add(op, n, in).id, 0);
    assert_int_equal(tn_graph_check(graph), TN_ERR_MODEL);
    if (strstr(tn_error_message(), text) == NULL)
        fail_msg("'%s' is not in: %s", text, tn_error_message());
    tn_graph_destroy(graph);
    graph = tn_graph_new(NULL, tn_ops_table());
    assert_non_null(graph);
}

static void test_refusals(void **state) {
    (void)state;
    tn_dim n = symbol("N"), more = tn_dim_add(graph, n, size_of(1));
    expect_refused("add", 2, (tn_value[]){input(TN_F32, 1, &n), input(TN_F32, 1, &more)}, "f32[N]");
    tn_dim two = size_of(2), three = size_of(3);
    expect_refused("mul", 2, (tn_value[]){input(TN_F32, 1, &two), input(TN_F32, 1, &three)}, "f32[3]");
    expect_refused("mul", 2, (tn_value[]){input(TN_F32, 0, NULL), input(TN_I32, 0, NULL)}, "f32 and i32");
    expect_refused("floor", 1, (tn_value[]){input(TN_I32, 0, NULL)}, "i32 is not admitted");
    expect_refused("exp", 1, (tn_value[]){input(TN_F32, -1, NULL)}, "needs a rank");
    expect_refused("less", 2, (tn_value[]){input(TN_BOOL, 0, NULL), input(TN_BOOL, 0, NULL)}, "it takes floats");
    expect_refused("select", 3, (tn_value[]){input(TN_U8, 0, NULL), input(TN_F32, 0, NULL), input(TN_F32, 0, NULL)},
                   "not bool");
    tn_type sequence = tn_type_sequence(graph, tn_type_tensor(graph, TN_F32, 0, NULL));
    expect_refused("neg", 1, (tn_value[]){tn_region_add_arg(graph, tn_graph_region(graph), sequence, NULL)},
                   "no tensor");
}

static void test_arithmetic(void **state) {
    (void)state;
    tn_dim n = symbol("N"), m = symbol("M");
    tn_value s = shape_of(input(TN_F32, 2, DIMS(n, m))), c = CONSTANT(TN_I64, 2, 3);
    ASSERT_CONTENTS(s, n, m);
    ASSERT_CONTENTS(add2("add", s, c), tn_dim_add(graph, n, size_of(2)), tn_dim_add(graph, m, size_of(3)));
    ASSERT_CONTENTS(add2("sub", s, s), size_of(0), size_of(0));
    ASSERT_CONTENTS(add2("mul", s, c), tn_dim_mul(graph, n, size_of(2)), tn_dim_mul(graph, m, size_of(3)));
    ASSERT_CONTENTS(add2("div", s, c), tn_dim_floordiv(graph, n, size_of(2)), tn_dim_floordiv(graph, m, size_of(3)));
    ASSERT_CONTENTS(add2("mod", s, c), tn_dim_mod(graph, n, size_of(2)), tn_dim_mod(graph, m, size_of(3)));
    ASSERT_CONTENTS(add2("max", s, c), tn_dim_max(graph, n, size_of(2)), tn_dim_max(graph, m, size_of(3)));
    ASSERT_CONTENTS(add2("min", s, c), tn_dim_min(graph, n, size_of(2)), tn_dim_min(graph, m, size_of(3)));
    ASSERT_CONTENTS(add("neg", 1, &s), tn_dim_sub(graph, size_of(0), n), tn_dim_sub(graph, size_of(0), m));
    ASSERT_CONTENTS(add("abs", 1, &s), n, m);
    /* What is no expression, or could be another number than the row's, is not known. */
    assert_unknown(add2("div", c, s));                              /* N may be 0 */
    assert_unknown(add2("div", add("neg", 1, &s), c));              /* truncates, does not floor */
    assert_unknown(add2("add", s, CONSTANT(TN_I64, INT64_MAX, 1))); /* would overflow */
    assert_unknown(add2("add", s, input(TN_I64, 1, DIMS(size_of(2)))));
    /* Constants are computed as rows do. */
    tn_value low = CONSTANT(TN_I64, INT64_MIN, -7), divisor = CONSTANT(TN_I64, -1, 2);
    ASSERT_CONTENTS(add2("div", low, divisor), size_of(INT64_MIN), size_of(-3));
    ASSERT_CONTENTS(add2("mod", low, divisor), size_of(0), size_of(1));
    ASSERT_CONTENTS(add2("rem", low, divisor), size_of(0), size_of(-1));
    ASSERT_CONTENTS(add2("add", CONSTANT(TN_I32, INT32_MAX), CONSTANT(TN_I32, 1)), size_of(INT32_MIN));
    ASSERT_CONTENTS(add2("min", s, CONSTANT(TN_I64, INT64_MAX, INT64_MAX)), n, m);
    assert_unknown(add2("add", CONSTANT(TN_I16, 1), CONSTANT(TN_I16, 1)));
    /* Numbers and expressions that outgrow the symbols' limits are not known; the graph is as good as before. */
    tn_value power = add2("mul", s, CONSTANT(TN_I64, 1 << 20, 3)), sum = s;
    for (int i = 0; i < 40; i++)
        power = add2("mul", power, CONSTANT(TN_I64, 1 << 20, 3));
    assert_unknown(power);
    for (int i = 0; i < 200; i++)
        sum = add2("mod", add2("mul", sum, s), CONSTANT(TN_I64, 1000 + i, 2000 + i));
    assert_unknown(sum);
}

static void test_cast(void **state) {
    (void)state;
    tn_dim n = symbol("N");
    tn_value s = shape_of(input(TN_F32, 1, &n)), big = CONSTANT(TN_I64, (int64_t)1 << 32 | 5);
    const tn_attr i32 = TN_A_DTYPE("to", TN_I32), i64 = TN_A_DTYPE("to", TN_I64), f32 = TN_A_DTYPE("to", TN_F32);
    tn_value narrow = tn_graph_add(graph, "cast", 1, &s, 1, &i32);
    ASSERT_CONTENTS(narrow, n);
    ASSERT_CONTENTS(tn_graph_add(graph, "cast", 1, &narrow, 1, &i64), n);
    ASSERT_CONTENTS(tn_graph_add(graph, "cast", 1, &big, 1, &i32), size_of(5));
    tn_value real = tn_graph_add(graph, "cast", 1, &s, 1, &f32);
    assert_unknown(real);
    assert_unknown(tn_graph_add(graph, "cast", 1, &real, 1, &i64));
}

/* expand(x, where(shape == -1, 1, shape)), as exporters write it. */
static void test_select(void **state) {
    (void)state;
    tn_dim n = symbol("N"), m = symbol("M"), two = size_of(2);
    tn_value s = shape_of(input(TN_F32, 2, DIMS(n, two))), minus = CONSTANT(TN_I64, -1, -1),
             ones = CONSTANT(TN_I64, 1, 1);
    tn_value is_minus = add2("equal", s, minus);
    ASSERT_CONTENTS(add("select", 3, (tn_value[]){is_minus, ones, s}), n, two);
    ASSERT_CONTENTS(add("select", 3, (tn_value[]){add("not", 1, &is_minus), ones, s}), size_of(1), size_of(1));
    tn_value is_two = add2("equal", s, CONSTANT(TN_I64, 2, 2)); /* N may be 2 */
    assert_unknown(add("select", 3, (tn_value[]){is_two, ones, s}));
    ASSERT_CONTENTS(add("select", 3, (tn_value[]){is_two, s, s}), n, two);
    ASSERT_CONTENTS(add("select", 3, (tn_value[]){add2("or", is_two, add2("greater_equal", s, minus)), s, ones}), n,
                    two);
    tn_value chosen = CONSTANT(TN_BOOL, 1, 0), t = shape_of(input(TN_F32, 2, DIMS(m, m)));
    ASSERT_CONTENTS(add("select", 3, (tn_value[]){chosen, t, s}), m, two);
    /* One side unknown does not matter where the other is taken. */
    tn_value data = input(TN_I64, 1, &two);
    ASSERT_CONTENTS(add("select", 3, (tn_value[]){is_minus, data, s}), n, two);
    assert_unknown(add("select", 3, (tn_value[]){chosen, data, s}));
    /* A condition of one element, spread. */
    tn_value one = CONSTANT(TN_BOOL, 1);
    const tn_attr shape = TN_A_DIMS("shape", 1, &two);
    tn_value spread = tn_graph_add(graph, "broadcast", 1, &one, 1, &shape);
    ASSERT_CONTENTS(add("select", 3, (tn_value[]){spread, t, s}), m, m);
}

static void test_comparisons_decided(void **state) {
    (void)state;
    tn_dim n = symbol("N"), k = symbol("K");
    tn_dim_set_bounds(graph, k, 1, 8);
    tn_value a = shape_of(input(TN_F32, 3, DIMS(n, k, size_of(3)))), b = CONSTANT(TN_I64, 0, 9, 3);
    static const struct {
        const char *op;
        uint8_t truth[3];
    } cases[] = {{"equal", {2, 0, 1}},      {"not_equal", {2, 1, 0}}, {"less", {0, 1, 0}},
                 {"less_equal", {2, 1, 1}}, {"greater", {2, 0, 0}},   {"greater_equal", {1, 0, 1}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t truth[3];
        assert_true(tn_contents_truth(graph, add2(cases[i].op, a, b), 3, truth));
        for (int j = 0; j < 3; j++)
            if (truth[j] != cases[i].truth[j])
                fail_msg("%s, element %d: %d, not %d", cases[i].op, j, truth[j], cases[i].truth[j]);
    }
    uint8_t truth[3];
    assert_false(tn_contents_truth(graph, input(TN_BOOL, 1, DIMS(size_of(3))), 3, truth));
}

static void test_identities(void **state) {
    (void)state;
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16, TN_I8, TN_U8, TN_I64, TN_U64, TN_BOOL};
    for (int op = 1; op < TN_SCALAR_COUNT; op++)
        for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
            uint64_t one[1] = {0}, x[1], in[2][1], out[1];
            tn_domain domain = tn_scalar_domain((tn_scalar_op)op, dtypes[i]);
            bool associative = (tn_scalar_describe((tn_scalar_op)op)->traits & TN_ASSOCIATIVE) != 0;
            bool has = tn_scalar_identity((tn_scalar_op)op, dtypes[i], one);
            assert_int_equal(has, associative && tn_scalar_admits((tn_scalar_op)op, dtypes[i]));
            for (int value = 0; has && value < (dtypes[i] == TN_BOOL ? 2 : 100); value++) {
                x[0] = 0;
                tn_store_i64(dtypes[i], x, 0, value);
                tn_run_load(dtypes[i], domain, one, 0, 1, 1, in[0]);
                tn_run_load(dtypes[i], domain, x, 0, 1, 1, in[1]);
                const void *operands[2] = {in[0], in[1]};
                tn_scalar_run((tn_scalar_op)op, domain)(1, operands, in[0]);
                out[0] = 0;
                tn_run_store(dtypes[i], domain, in[0], 1, out, 0, 1);
                assert_int_equal(out[0], x[0]);
            }
        }
    assert_string_equal(tn_scalar_describe(TN_SCALAR_NONE)->name, "none");
    assert_string_equal(tn_scalar_describe((tn_scalar_op)9999)->name, "none");
    assert_null(tn_scalar_run((tn_scalar_op)9999, TN_DOMAIN_F64));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_merge),      TEST(test_refusals), TEST(test_arithmetic),
        TEST(test_cast),       TEST(test_select),   TEST(test_comparisons_decided),
        TEST(test_identities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
