/* What is made of a random program that does not hold goes on failing as it did, and in nothing but that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <tenon/build.h>

#include "base/error.h"
#include "support/random_graph.h"
#include "support/random_run.h"

/* A fault of plans that have node `op`: their first output is off by something. One more failure where input `needed` is not there. */
typedef struct broken {
    const char *op, *needed;
    random_kind kind;
} broken;

static uint32_t count_nodes(const tn_graph *g, const char *op) {
    uint32_t n = 0;
    for (tn_node node = tn_region_first(g, tn_graph_region(g)); node.id; node = tn_node_next(g, node))
        n += !op || strcmp(tn_node_op_name(g, node), op) == 0;
    return n;
}

static bool has_input(const tn_graph *g, const char *name) {
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++)
        if (strcmp(tn_value_name(g, tn_graph_input(g, i)), name) == 0)
            return true;
    return false;
}

static tn_status break_plan(void *ctx, const tn_graph *g, tn_object **out) {
    const broken *b = ctx;
    if (b->needed && !has_input(g, b->needed))
        return tn_fail(TN_ERR_INPUT, "size 'N' of input '%s' is not known", b->needed);
    if (!count_nodes(g, b->op))
        return TN_OK;
    if (b->kind == RANDOM_PLAN_FAILS)
        return tn_fail(TN_ERR_INPUT, "'%s' is not computed", b->op);
    /* an output of another shape is another result, whatever its elements are */
    tn_tensor *other = tn_tensor_create(TN_U8, 5, (const int64_t[]){1, 1, 1, 1, 7});
    assert_non_null(other);
    tn_object_destroy(out[0]);
    out[0] = tn_tensor_object(other);
    return TN_OK;
}

static tn_graph *shrunk(const tn_graph *g, tn_object *const *in, broken *b, uint64_t seed) {
    random_options options = {.seed = seed, .thorough = false, .fault = break_plan, .ctx = b};
    random_failure before, after;
    tn_object *small_in[RANDOM_OBJECTS];
    assert_false(random_holds(g, in, &options, &before));
    assert_int_equal(before.kind, b->kind);
    tn_graph *small = random_shrink(g, in, &options, small_in, &after);
    assert_int_equal(after.kind, b->kind);
    for (uint32_t i = 0; i < tn_graph_input_count(small); i++)
        tn_object_destroy(small_in[i]);
    return small;
}

/* y = exp(-x) * relu(w): exp is at fault. Without x plans fail otherwise, and so everything on the way from x to exp must stay; what
   comes of w goes. */
static void test_other_failure(void **state) {
    (void)state;
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 3)), w = tn_input(g, "w", TN_F32, TN_SHAPE(3));
    tn_set_output(g, "y", tn_mul(g, tn_exp(g, tn_neg(g, x)), tn_relu(g, w)));
    tn_tensor *a = tn_tensor_from_f32(2, (const int64_t[]){1, 3}, (const float[]){1, 2, 3}),
              *b = tn_tensor_from_f32(1, (const int64_t[]){3}, (const float[]){4, -5, 6});
    tn_object *in[] = {tn_tensor_object(a), tn_tensor_object(b)};
    static const random_kind kinds[] = {RANDOM_DIFFERS, RANDOM_PLAN_FAILS};
    for (int i = 0; i < 2; i++) {
        broken fault = {.op = "exp", .needed = "x", .kind = kinds[i]};
        tn_graph *small = shrunk(g, in, &fault, 1);
        assert_int_equal(tn_graph_input_count(small), 2);
        assert_true(has_input(small, "x"));
        assert_false(has_input(small, "w"));
        assert_int_equal(count_nodes(small, "neg"), 1);
        assert_int_equal(count_nodes(small, "exp"), 1);
        assert_int_equal(count_nodes(small, "relu"), 0);
        tn_graph_destroy(small);
    }
    tn_tensor_destroy(a);
    tn_tensor_destroy(b);
    tn_graph_destroy(g);
}

/* In random programs each operator in turn is at fault. */
static void test_random_programs(void **state) {
    (void)state;
    int smaller = 0, count = 0;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        int64_t size[RANDOM_SYMBOLS];
        tn_object *in[RANDOM_OBJECTS] = {NULL};
        random_failure failure;
        tn_graph *g = random_graph_make(seed, size);
        random_graph_inputs(g, size, seed, in);
        uint32_t nodes = count_nodes(g, NULL), at = (uint32_t)(seed * 7 % nodes);
        tn_node node = tn_region_first(g, tn_graph_region(g));
        while (at--)
            node = tn_node_next(g, node);
        broken fault = {.op = tn_node_op_name(g, node), .kind = RANDOM_DIFFERS};
        random_options options = {.seed = seed, .fault = break_plan, .ctx = &fault};
        /* those that the reference refuses hold */
        if (!tn_node_has_trait(g, node, TN_TERMINATOR) && !random_holds(g, in, &options, &failure)) {
            tn_graph *small = shrunk(g, in, &fault, seed);
            assert_true(count_nodes(small, fault.op) > 0);
            assert_true(count_nodes(small, NULL) <= nodes);
            smaller += count_nodes(small, NULL) <= nodes / 2;
            count++;
            tn_graph_destroy(small);
        }
        for (uint32_t i = 0; i < tn_graph_input_count(g); i++)
            tn_object_destroy(in[i]);
        tn_graph_destroy(g);
    }
    print_message("%d programs, %d of them at most half as large as before\n", count, smaller);
    assert_true(count >= 20);
    assert_true(2 * smaller >= count);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_other_failure), cmocka_unit_test(test_random_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
