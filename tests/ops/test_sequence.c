/* Sequences and optionals: every row against a list of what it should hold, types, wrong operands, failing
   allocations. */
#include "ops/trials.h"

#include "interp/interp.h"
#include "support/run_graph.h"

#define D(...) ((const int64_t[]){__VA_ARGS__})

/* A graph of one node over inputs like these objects, and its evaluation. */
typedef struct one_node {
    tn_graph *graph;
    tn_node node;
    uint32_t inputs;
    tn_object *in[6];
} one_node;

static tn_type type_of(tn_graph *g, const tn_object *o) {
    tn_dim dims[TN_MAX_RANK];
    if (tn_object_kind(o) == TN_KIND_SEQUENCE) {
        tn_type element = tn_type_tensor(g, TN_F32, -1, NULL);
        if (tn_sequence_length(o) > 0)
            element = type_of(g, tn_sequence_at(o, 0));
        return tn_type_sequence(g, element);
    }
    if (tn_object_kind(o) == TN_KIND_OPTIONAL) {
        const tn_object *held = tn_optional_get(o);
        return tn_type_optional(g, held != NULL ? type_of(g, held) : tn_type_tensor(g, TN_F32, -1, NULL));
    }
    const tn_tensor *t = (const tn_tensor *)o;
    for (int i = 0; i < t->rank; i++)
        dims[i] = tn_dim_const(g, t->dims[i]);
    return tn_type_tensor(g, (tn_dtype)t->dtype, t->rank, dims);
}

static tn_status make(one_node *n, const char *name, uint32_t inputs, tn_object *const *in, uint32_t attrs,
                      const tn_attr *attr) {
    tn_value value[6] = {{0}};
    *n = (one_node){.graph = tn_graph_create(), .inputs = inputs};
    for (uint32_t i = 0; i < inputs; i++) {
        n->in[i] = in[i];
        if (in[i] != NULL)
            value[i] = tn_region_add_arg(n->graph, tn_graph_region(n->graph), type_of(n->graph, in[i]),
                                         ((const char *[]){"a", "b", "c", "d", "e", "f"})[i]);
    }
    n->node = tn_graph_add_node(
        n->graph,
        &(tn_node_desc){
            .op = primitive(name), .input_count = inputs, .inputs = value, .attr_count = attrs, .attrs = attr});
    return tn_graph_check(n->graph);
}

static tn_status evaluate(const one_node *n, tn_heap *heap, tn_object **out) {
    tn_dim_env env;
    assert_true(tn_dim_env_init(&env, NULL, &n->graph->dims));
    *out = NULL;
    tn_eval e = {.graph = n->graph,
                 .node = n->node,
                 .inputs = n->inputs,
                 .outputs = 1,
                 .in = n->in,
                 .out = out,
                 .heap = heap,
                 .env = &env};
    tn_status status = tn_node_op(n->graph, n->node)->eval(&e);
    tn_dim_env_free(&env);
    if (status != TN_OK) {
        tn_object_destroy(*out);
        *out = NULL;
    }
    return status;
}

/* The result; with every allocation failing in turn before. */
static tn_object *run(const char *name, uint32_t inputs, tn_object *const *in, uint32_t attrs, const tn_attr *attr) {
    one_node n;
    tn_object *out;
    tn_heap *heap = tn_heap_create(NULL);
    if (make(&n, name, inputs, in, attrs, attr) != TN_OK)
        fail_msg("%s: %s", name, tn_error_message());
    assert_int_equal(tn_graph_add_output(n.graph, tn_node_output(n.graph, n.node, 0), "y"), TN_OK);
    if (tn_graph_verify(n.graph) != TN_OK)
        fail_msg("%s: %s", name, tn_error_message());
    for (uint64_t at = 1;; at++) {
        tn_heap_fail_at(heap, at, at % 2 == 0);
        tn_status status = evaluate(&n, heap, &out);
        tn_heap_fail_at(heap, 0, false);
        if (status == TN_OK)
            break;
        if (status != TN_ERR_MEMORY)
            fail_msg("%s: %s", name, tn_error_message());
        assert_int_equal(tn_heap_in_use(heap), 0);
        assert_true(at < 1000);
    }
    tn_object_destroy(out);
    assert_int_equal(tn_heap_in_use(heap), 0);
    tn_heap_destroy(heap);
    assert_int_equal(evaluate(&n, NULL, &out), TN_OK);
    tn_graph_destroy(n.graph);
    return out;
}

static void refused(const char *name, uint32_t inputs, tn_object *const *in, uint32_t attrs, const tn_attr *attr) {
    one_node n;
    tn_object *out = NULL;
    tn_status status = make(&n, name, inputs, in, attrs, attr);
    if (status == TN_OK)
        status = evaluate(&n, NULL, &out);
    if (status != TN_ERR_MODEL && status != TN_ERR_INPUT && status != TN_ERR_USAGE)
        fail_msg("%s: %s: %s", name, tn_status_name(status), tn_error_message());
    tn_object_destroy(out);
    tn_graph_destroy(n.graph);
}

/* f32 [size, 2] full of `value`. */
static tn_object *filled(int64_t size, double value) {
    tn_tensor *t = tn_tensor_create(TN_F32, 2, D(size, 2));
    for (int64_t i = 0; i < t->count; i++)
        tn_store_f64(TN_F32, t->data, i, value);
    return tn_tensor_object(t);
}

static tn_object *number(int64_t value) {
    tn_tensor *t = tn_tensor_create(TN_I64, 0, NULL);
    tn_store_i64(TN_I64, t->data, 0, value);
    return tn_tensor_object(t);
}

static double first(const tn_object *o) {
    return tn_load_f64(TN_F32, ((const tn_tensor *)o)->data, 0);
}

/* The first elements of the items must be these digits. */
static void holds(tn_object *sequence, const char *digits) {
    assert_int_equal(tn_object_kind(sequence), TN_KIND_SEQUENCE);
    assert_int_equal(tn_sequence_length(sequence), strlen(digits));
    for (size_t i = 0; digits[i]; i++)
        assert_true(first(tn_sequence_at(sequence, i)) == digits[i] - '0');
    tn_object_destroy(sequence);
}

static void test_lists(void **state) {
    (void)state;
    tn_object *item[3] = {filled(1, 1), filled(2, 2), filled(3, 3)}, *extra = filled(1, 9);
    tn_attr f32 = TN_A_DTYPE("dtype", TN_F32);
    holds(run("sequence_empty", 0, NULL, 1, &f32), "");
    tn_object *all = run("sequence_construct", 3, item, 0, NULL);
    tn_object *none = run("sequence_empty", 0, NULL, 1, &f32);
    holds(tn_object_retain(all), "123");
    static const struct {
        int64_t at;
        const char *inserted, *erased;
        int item;
    } cases[] = {{0, "9123", "23", 1},  {1, "1923", "13", 2},  {2, "1293", "12", 3},
                 {3, "1239", NULL, 0},  {-1, "1293", "12", 3}, {-2, "1923", "13", 2},
                 {-3, "9123", "23", 1}, {4, NULL, NULL, 0},    {-4, NULL, NULL, 0}};
    for (int i = 0; i < COUNT(cases); i++) {
        tn_object *at = number(cases[i].at);
        if (cases[i].inserted)
            holds(run("sequence_insert", 3, (tn_object *[]){all, extra, at}, 0, NULL), cases[i].inserted);
        else
            refused("sequence_insert", 3, (tn_object *[]){all, extra, at}, 0, NULL);
        if (cases[i].erased) {
            holds(run("sequence_erase", 2, (tn_object *[]){all, at}, 0, NULL), cases[i].erased);
            tn_object *got = run("sequence_at", 2, (tn_object *[]){all, at}, 0, NULL);
            assert_true(first(got) == cases[i].item);
            tn_object_destroy(got);
        } else {
            refused("sequence_erase", 2, (tn_object *[]){all, at}, 0, NULL);
            refused("sequence_at", 2, (tn_object *[]){all, at}, 0, NULL);
        }
        tn_object_destroy(at);
    }
    holds(run("sequence_insert", 2, (tn_object *[]){all, extra}, 0, NULL), "1239");
    holds(run("sequence_insert", 2, (tn_object *[]){none, extra}, 0, NULL), "9");
    holds(run("sequence_erase", 1, &all, 0, NULL), "12");
    refused("sequence_erase", 1, &none, 0, NULL);
    tn_object *count = run("sequence_length", 1, &all, 0, NULL), *zero = run("sequence_length", 1, &none, 0, NULL);
    assert_int_equal(tn_tensor_get_i64(tn_object_tensor(count), 0), 3);
    assert_int_equal(tn_tensor_get_i64(tn_object_tensor(zero), 0), 0);
    tn_object *wrong = number(1);
    refused("sequence_construct", 2, (tn_object *[]){extra, wrong}, 0, NULL);
    refused("sequence_insert", 2, (tn_object *[]){all, wrong}, 0, NULL);
    refused("sequence_insert", 3, (tn_object *[]){all, extra, extra}, 0, NULL);
    refused("sequence_at", 2, (tn_object *[]){extra, wrong}, 0, NULL);
    refused("sequence_length", 1, &extra, 0, NULL);
    /* memory of the caller's is copied: it may be used again */
    float lent[2] = {5, 5};
    tn_object *borrowed = tn_tensor_object(tn_tensor_wrap(TN_F32, 2, D(1, 2), lent));
    tn_object *kept = run("sequence_construct", 1, &borrowed, 0, NULL);
    lent[0] = 6;
    holds(kept, "5");
    tn_object *gone[] = {item[0], item[1], item[2], extra, all, none, count, zero, wrong, borrowed};
    for (int i = 0; i < COUNT(gone); i++)
        tn_object_destroy(gone[i]);
}

static void check_tensor(tn_object *o, int rank, const int64_t *dims, const double *values) {
    tn_tensor *t = tn_object_tensor(o);
    assert_non_null(t);
    assert_int_equal(t->rank, rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(t->dims[i], dims[i]);
    for (int64_t i = 0; i < t->count; i++)
        assert_true(op_get(t, i) == values[i]);
    tn_object_destroy(o);
}

static void test_concat_split(void **state) {
    (void)state;
    tn_object *item[3] = {filled(1, 1), filled(2, 2), filled(0, 0)};
    tn_object *all = run("sequence_construct", 3, item, 0, NULL),
              *two = run("sequence_construct", 2, (tn_object *[]){item[0], item[0]}, 0, NULL);
    for (int axis = 0; axis >= -2; axis -= 2)
        check_tensor(run("concat_from_sequence", 1, &all, 1, &TN_A_INT("axis", axis)), 2, D(3, 2),
                     (double[]){1, 1, 2, 2, 2, 2});
    for (int64_t axis = -3; axis < 3; axis++) {
        int64_t dims[3] = {1, 2}, at = axis < 0 ? axis + 3 : axis;
        memmove(dims + at + 1, dims + at, (size_t)(2 - at) * sizeof *dims);
        dims[at] = 2;
        check_tensor(
            run("concat_from_sequence", 1, &two, 2, (tn_attr[]){TN_A_INT("axis", axis), TN_A_INT("new_axis", 1)}), 3,
            dims, (double[]){1, 1, 1, 1});
    }
    refused("concat_from_sequence", 1, &all, 1, &TN_A_INT("axis", 1));
    refused("concat_from_sequence", 1, &all, 1, &TN_A_INT("axis", 2));
    refused("concat_from_sequence", 1, &all, 2, (tn_attr[]){TN_A_INT("axis", 0), TN_A_INT("new_axis", 1)});
    refused("concat_from_sequence", 1, &item[0], 1, &TN_A_INT("axis", 0));
    tn_object *none = run("sequence_empty", 0, NULL, 1, &TN_A_DTYPE("dtype", TN_F32));
    refused("concat_from_sequence", 1, &none, 1, &TN_A_INT("axis", 0));

    /* split and join again, for every dtype: parts along each axis, of one size, of given sizes */
    op_harness h;
    op_harness_begin(&h);
    for (int d = 0; any_dtypes[d] != TN_DTYPE_NONE; d++)
        for (int axis = 0; axis < 3; axis++)
            for (int how = 0; how < 3; how++) {
                tn_tensor *x = random_bits(&h, any_dtypes[d], 3, D(4, 5, 3));
                int64_t n = x->dims[axis], sizes[3] = {1, 0, n - 1};
                tn_tensor *split =
                    how == 1 ? op_values(&h, TN_I32, 0, NULL, (double[]){2}) : op_tensor(&h, TN_I64, 1, D(3));
                for (int i = 0; i < 3 && how == 2; i++)
                    tn_store_i64(TN_I64, split->data, i, sizes[i]);
                tn_object *in[2] = {tn_tensor_object(x), tn_tensor_object(split)};
                tn_object *parts = run("split_to_sequence", how ? 2 : 1, in, 1, &TN_A_INT("axis", axis));
                assert_int_equal(tn_sequence_length(parts), how == 0 ? n : how == 1 ? (n + 1) / 2 : 3);
                tn_object *whole = run("concat_from_sequence", 1, &parts, 1, &TN_A_INT("axis", axis));
                assert_true(tn_object_equal(whole, in[0]));
                tn_object_destroy(whole);
                tn_object_destroy(parts);
                if (how > 0)
                    continue;
                parts =
                    run("split_to_sequence", 1, in, 2, (tn_attr[]){TN_A_INT("axis", axis), TN_A_INT("keepdims", 0)});
                assert_int_equal(tn_object_tensor(tn_sequence_at(parts, 0))->rank, 2);
                whole = run("concat_from_sequence", 1, &parts, 2,
                            (tn_attr[]){TN_A_INT("axis", axis), TN_A_INT("new_axis", 1)});
                assert_true(tn_object_equal(whole, in[0]));
                tn_object_destroy(whole);
                tn_object_destroy(parts);
            }
    tn_object *x = tn_tensor_object(op_random(&h, TN_F32, 2, D(4, 2), true));
    const double bad[][2] = {{1, 2}, {5, -1}, {4, 4}};
    for (int i = 0; i < COUNT(bad); i++)
        refused("split_to_sequence", 2, (tn_object *[]){x, tn_tensor_object(op_values(&h, TN_I64, 1, D(2), bad[i]))}, 1,
                &TN_A_INT("axis", 0));
    refused("split_to_sequence", 2, (tn_object *[]){x, tn_tensor_object(op_tensor(&h, TN_I64, 0, NULL))}, 1,
            &TN_A_INT("axis", 0));
    refused("split_to_sequence", 1, &x, 1, &TN_A_INT("axis", 2));
    refused("split_to_sequence", 2, (tn_object *[]){x, x}, 1, &TN_A_INT("axis", 0));
    op_harness_end(&h);
    tn_object *gone[] = {item[0], item[1], item[2], all, two, none};
    for (int i = 0; i < COUNT(gone); i++)
        tn_object_destroy(gone[i]);
}

static void test_optional(void **state) {
    (void)state;
    tn_object *x = filled(1, 4), *sequence = run("sequence_construct", 1, &x, 0, NULL);
    tn_object *some = run("optional", 1, &x, 0, NULL), *list = run("optional", 1, &sequence, 0, NULL), *got;
    tn_graph *g = tn_graph_create();
    tn_node empty =
        tn_graph_add_node(g, &(tn_node_desc){.op = primitive("optional"),
                                             .attr_count = 1,
                                             .attrs = &TN_A_TYPE("type", tn_type_tensor(g, TN_F32, -1, NULL))});
    tn_value held[2] = {tn_node_output(g, empty, 0)};
    held[1] = tn_graph_add(g, "optional_has_element", 1, held, 0, NULL);
    assert_int_equal(tn_graph_add_output(g, held[1], "has"), TN_OK);
    assert_int_equal(tn_graph_verify(g), TN_OK);
    tn_tensor *has;
    assert_int_equal(run_graph(g, NULL, NULL, &has), TN_OK);
    assert_int_equal(tn_tensor_get_i64(has, 0), 0);
    tn_tensor_destroy(has);
    tn_graph_destroy(g);
    tn_object *in[] = {some, list, x, sequence};
    for (int i = 0; i < 4; i++) {
        got = run("optional_has_element", 1, &in[i], 0, NULL);
        assert_int_equal(tn_tensor_get_i64(tn_object_tensor(got), 0), 1);
        tn_object_destroy(got);
        got = run("optional_get_element", 1, &in[i], 0, NULL);
        assert_true(tn_object_equal(got, i % 2 ? sequence : x));
        tn_object_destroy(got);
    }
    got = run("optional_has_element", 0, NULL, 0, NULL);
    assert_int_equal(tn_tensor_get_i64(tn_object_tensor(got), 0), 0);
    tn_object_destroy(got);
    tn_object *nothing = tn_optional_create(NULL, NULL);
    refused("optional_get_element", 1, &nothing, 0, NULL);
    refused("optional", 0, NULL, 0, NULL);
    tn_object *gone[] = {x, sequence, some, list, nothing};
    for (int i = 0; i < COUNT(gone); i++)
        tn_object_destroy(gone[i]);
}

/* Types: what items share is known, what differs is any; items taken out have sizes of their own. */
static void test_types(void **state) {
    (void)state;
    char text[200];
    tn_graph *g = tn_graph_create();
    tn_region main = tn_graph_region(g);
    tn_dim n = tn_dim_symbol(g, "n"), three = tn_dim_const(g, 3), two = tn_dim_const(g, 2);
    tn_value a = tn_region_add_arg(g, main, tn_type_tensor(g, TN_F32, 2, (tn_dim[]){n, three}), "a");
    tn_value b = tn_region_add_arg(g, main, tn_type_tensor(g, TN_F32, 2, (tn_dim[]){two, three}), "b");
    tn_object *position = number(0);
    tn_value zero = tn_graph_constant(g, tn_object_tensor(position));
    tn_object_destroy(position);
    tn_value s = tn_graph_add(g, "sequence_construct", 2, (tn_value[]){a, b}, 0, NULL);
    tn_type element = tn_type_element(g, tn_value_type(g, s));
    assert_int_equal(tn_type_rank(g, element), 2);
    assert_true(tn_dim_equal(g, tn_type_dims(g, element)[1], three));
    tn_type before = tn_value_type(g, s);
    assert_int_equal(tn_node_reinfer(g, tn_value_producer(g, s)), TN_OK);
    assert_int_equal(tn_value_type(g, s).id, before.id);
    tn_value one = tn_graph_add(g, "sequence_at", 2, (tn_value[]){s, zero}, 0, NULL);
    tn_value other = tn_graph_add(g, "sequence_at", 2, (tn_value[]){s, zero}, 0, NULL);
    assert_int_equal(tn_value_rank(g, one), 2);
    assert_false(tn_dim_equal(g, tn_value_dim(g, one, 0), tn_value_dim(g, other, 0)));
    assert_true(tn_dim_equal(g, tn_value_dim(g, one, 1), three));
    tn_value joined = tn_graph_add(g, "concat_from_sequence", 1, &s, 1, &TN_A_INT("axis", 0));
    assert_true(tn_dim_equal(g, tn_value_dim(g, joined, 1), three));
    tn_value parts = tn_graph_add(g, "split_to_sequence", 1, &b, 1, &TN_A_INT("axis", 0));
    assert_string_equal(tn_type_describe(g, tn_value_type(g, parts), text, sizeof text), "sequence<f32[1, 3]>");
    assert_int_equal(tn_graph_add_output(g, one, "one"), TN_OK);
    assert_int_equal(tn_graph_add_output(g, joined, "joined"), TN_OK);
    assert_int_equal(tn_graph_verify(g), TN_OK);
    tn_tensor *in[2], *out[2];
    in[0] = make_tensor(TN_F32, 2, D(1, 3), (double[]){1, 2, 3});
    in[1] = make_tensor(TN_F32, 2, D(2, 3), (double[]){4, 5, 6, 7, 8, 9});
    assert_int_equal(run_graph(g, NULL, in, out), TN_OK);
    assert_true(tn_tensor_dims(out[0])[0] == 1 && tn_tensor_dims(out[1])[0] == 3);
    assert_true(tn_tensor_get_f64(out[1], 8) == 9);
    for (int i = 0; i < 2; i++) {
        tn_tensor_destroy(in[i]);
        tn_tensor_destroy(out[i]);
    }
    tn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists), cmocka_unit_test(test_concat_split),
                                       cmocka_unit_test(test_optional), cmocka_unit_test(test_types)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
