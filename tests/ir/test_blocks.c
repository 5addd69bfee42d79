/* Repeated blocks: found whole, cut where they differ, and fast. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/os.h"
#include "ir/blocks.h"
#include <tenon/build.h>

static tn_tensor *weights(int64_t rows) {
    tn_tensor *t = tn_tensor_create(TN_F32, 2, (const int64_t[]){rows, rows});
    tn_tensor_set_f64(t, 0, 1.5);
    return t;
}

/* A block that reads its input twice, a value of all blocks, and weights of its own. 3 + `extra` nodes. */
static tn_value layer(tn_graph *g, tn_value x, tn_value shared, int extra) {
    tn_tensor *w = weights(4);
    tn_value y = tn_matmul(g, x, tn_constant(g, w));
    tn_tensor_destroy(w);
    y = tn_add(g, y, shared);
    for (int i = 0; i < extra; i++)
        y = i & 1 ? tn_tanh(g, y) : tn_sigmoid(g, y);
    return tn_add(g, y, x);
}

static void expect(tn_graph *g, uint32_t runs, const uint32_t (*wanted)[2]) {
    if (tn_graph_check(g) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_block_runs found = {0};
    assert_int_equal(tn_blocks_find(g, tn_graph_region(g), &found), TN_OK);
    for (uint32_t i = 0; i < found.len && i < runs; i++) {
        assert_int_equal(found.data[i].count, wanted[i][0]);
        assert_int_equal(found.data[i].nodes, wanted[i][1]);
    }
    assert_int_equal(found.len, runs);
    tn_vec_free(g->heap, &found);
}

static void layers(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 4)), shared = tn_exp(g, x);
    expect(g, 0, NULL);
    for (int i = 0; i < 12; i++)
        x = layer(g, x, shared, 0);
    tn_set_output(g, "y", tn_neg(g, x));
    expect(g, 1, (const uint32_t[][2]){{12, 3}});
    tn_block_runs found = {0};
    assert_int_equal(tn_blocks_find(g, tn_graph_region(g), &found), TN_OK);
    tn_node n = found.data[0].first;
    assert_string_equal(tn_node_op_name(g, n), "dot");
    for (int i = 0; i < 36; i++)
        n = tn_blocks_next(g, n);
    assert_string_equal(tn_node_op_name(g, n), "neg");
    assert_int_equal(tn_blocks_next(g, n).id, 0);
    tn_vec_free(g->heap, &found);
    tn_graph_destroy(g);
}

/* Two kinds of layers; a run that begins elsewhere; layers that repeat something inside. */
static void several(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 4)), shared = tn_exp(g, x);
    for (int i = 0; i < 5; i++)
        x = layer(g, x, shared, 1);
    x = tn_floor(g, x);
    for (int i = 0; i < 7; i++)
        x = layer(g, x, shared, 12);
    tn_set_output(g, "y", x);
    expect(g, 2, (const uint32_t[][2]){{5, 4}, {7, 15}});
    tn_graph_destroy(g);

    g = tn_graph_create();
    x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 4));
    for (int i = 0; i < 30; i++)
        x = tn_sin(g, x);
    tn_set_output(g, "y", x);
    expect(g, 1, (const uint32_t[][2]){{30, 1}});
    tn_graph_destroy(g);
}

static void kinds(tn_graph *g, uint32_t runs, const uint32_t *wanted) {
    tn_block_runs found = {0};
    assert_int_equal(tn_blocks_find(g, tn_graph_region(g), &found), TN_OK);
    assert_int_equal(found.len, runs);
    for (uint32_t i = 0; i < runs; i++)
        assert_int_equal(found.data[i].kind, wanted[i]);
    tn_vec_free(g->heap, &found);
}

/* Equal layers with others between them are of one kind; what is wired otherwise is not. */
static void places(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 4)), shared = tn_exp(g, x);
    static const int count[] = {4, 5, 4, 6};
    for (int run = 0; run < 4; run++) {
        for (int i = 0; i < count[run]; i++)
            x = layer(g, x, run == 2 ? x : shared, 2);
        x = run == 0 ? tn_floor(g, x) : run == 1 ? tn_cos(g, x) : tn_neg(g, x);
    }
    tn_set_output(g, "y", x);
    expect(g, 4, (const uint32_t[][2]){{4, 5}, {5, 5}, {4, 5}, {6, 5}});
    kinds(g, 4, (const uint32_t[]){0, 0, 2, 0});
    tn_graph_destroy(g);
}

/* The same operators, wired otherwise from the fifth block on: two runs. */
static void wiring(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 4));
    for (int i = 0; i < 10; i++) {
        tn_value a = tn_sin(g, x), b = tn_cos(g, a), c = i < 5 ? tn_add(g, a, b) : tn_add(g, b, a);
        x = tn_tanh(g, c);
    }
    tn_set_output(g, "y", x);
    expect(g, 2, (const uint32_t[][2]){{5, 4}, {5, 4}});
    tn_graph_destroy(g);

    /* always reads the second block's result, not the one before */
    g = tn_graph_create();
    x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 4));
    tn_value second = x;
    for (int i = 0; i < 8; i++) {
        x = tn_tanh(g, tn_add(g, tn_cos(g, tn_sin(g, x)), i < 4 ? x : second));
        second = i == 1 ? x : second;
    }
    tn_set_output(g, "y", x);
    expect(g, 2, (const uint32_t[][2]){{4, 4}, {4, 4}});
    tn_graph_destroy(g);

    /* weights of other shapes are other blocks */
    g = tn_graph_create();
    x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 4));
    for (int i = 0; i < 6; i++) {
        tn_tensor *w = tn_tensor_create(TN_F32, 1, (const int64_t[]){i < 3 ? 4 : 1});
        x = tn_sin(g, tn_cos(g, tn_mul(g, x, tn_constant(g, w))));
        tn_tensor_destroy(w);
    }
    tn_set_output(g, "y", x);
    tn_block_runs found = {0};
    assert_int_equal(tn_blocks_find(g, tn_graph_region(g), &found), TN_OK);
    assert_true(found.len >= 1 && found.data[0].count <= 3);
    tn_vec_free(g->heap, &found);
    tn_graph_destroy(g);
}

static void large(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 4)), shared = tn_exp(g, x);
    for (int i = 0; i < 100; i++)
        x = layer(g, x, shared, 197);
    tn_set_output(g, "y", x);
    double before = tn_clock();
    expect(g, 1, (const uint32_t[][2]){{100, 200}});
    double seconds = tn_clock() - before;
    print_message("20000 nodes: %d ms\n", (int)(seconds * 1000));
    assert_true(seconds < 5); /* a bound against quadratic time, not a measurement */
    tn_graph_destroy(g);
}

static void out_of_memory(void **state) {
    (void)state;
    tn_heap *heap = tn_heap_create(NULL);
    tn_graph *g = tn_graph_create_in(heap);
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 4)), shared = tn_exp(g, x);
    for (int i = 0; i < 6; i++)
        x = layer(g, x, shared, 2);
    assert_int_equal(tn_graph_check(g), TN_OK);
    size_t before = tn_heap_in_use(heap);
    tn_status status = TN_ERR_MEMORY;
    for (uint64_t k = 1; status != TN_OK; k++) {
        tn_block_runs found = {0};
        tn_heap_fail_at(heap, k, false);
        status = tn_blocks_find(g, tn_graph_region(g), &found);
        tn_heap_fail_at(heap, 0, false);
        assert_true(status == TN_OK || status == TN_ERR_MEMORY);
        tn_vec_free(heap, &found);
        assert_int_equal(tn_heap_in_use(heap), before);
        assert_true(k < 5000);
    }
    tn_graph_destroy(g);
    tn_heap_destroy(heap);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(layers), cmocka_unit_test(several),
                                       cmocka_unit_test(wiring), cmocka_unit_test(places),
                                       cmocka_unit_test(large),  cmocka_unit_test(out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
