/* Checked mode finds what is wrong, names it, and holds where nothing is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <tenon/build.h>

#include "kernels/kernels.h"
#include "runtime/verify.h"
#include "support/random_graph.h"

static tn_graph *sample_graph(void) {
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 6)), y = tn_input(g, "y", TN_F32, TN_SHAPE("N", 6));
    int64_t dims[2] = {6, 5};
    random_rng r = {3};
    tn_tensor *w = random_tensor(&r, TN_F32, 2, dims, 0);
    tn_value sum = tn_add(g, x, y), product = tn_matmul(g, tn_relu(g, sum), tn_constant(g, w));
    tn_set_output(g, "a", tn_softmax(g, product, -1));
    tn_set_output(g, "b", tn_reduce_max(g, tn_rsqrt(g, tn_abs(g, sum)), 1, (const int[]){1}, false));
    tn_tensor_destroy(w);
    return g;
}

static tn_verify_result check(tn_graph *g, const tn_verify_options *o) {
    tn_model *model = tn_model_from_graph(g, NULL);
    tn_verify_result r;
    assert_non_null(model);
    tn_status status = tn_model_check(model, o, &r);
    if (status != TN_OK)
        print_error("%s\n", tn_error_message());
    assert_int_equal(status, TN_OK);
    if (!r.holds)
        print_message("%d %s: %s: %s (%s)\n", (int)r.stage, r.name, r.node, r.what, r.inputs);
    tn_model_destroy(model);
    tn_graph_destroy(g);
    return r;
}

static void test_holds(void **s) {
    (void)s;
    for (int level = 0; level <= 2; level++) {
        tn_verify_result r = check(
            sample_graph(), &(tn_verify_options){.level = level, .isa = tn_cpu_best(), .threads = 1, .samples = 9});
        assert_true(r.holds);
        assert_int_equal(r.samples, 9);
        assert_int_equal(r.refused, 0);
        assert_true(r.kernel_runs >= 18);
    }
}

/* Sizes that a model demands are found while the batch stays small: all of them so large would take long. */
static void test_demanded_sizes(void **s) {
    (void)s;
    tn_graph *g = tn_graph_create();
    int64_t dims[2] = {144, 4096};
    random_rng r = {5};
    tn_tensor *w = random_tensor(&r, TN_F32, 2, dims, 0);
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", 3, "H", "W"));
    tn_set_output(g, "y", tn_matmul(g, tn_reshape(g, x, TN_SHAPE("N", 48, 144)), tn_constant(g, w)));
    tn_tensor_destroy(w);
    tn_verify_result v = check(g, &(tn_verify_options){.level = 2, .isa = tn_cpu_best(), .threads = 1, .samples = 1});
    assert_true(v.holds);
    assert_int_equal(v.refused, 0);
    assert_true(v.kernel_runs > 0);
}

/* The first `add` becomes a `sub`. */
static tn_status run_broken(tn_graph *g, tn_pass_context *c) {
    for (tn_node n = tn_region_first(g, tn_graph_region(g)); n.id; n = tn_node_next(g, n)) {
        if (strcmp(tn_node_op_name(g, n), "add") != 0)
            continue;
        tn_graph_insert_before(g, n);
        c->sites++;
        return tn_value_replace_uses(g, tn_node_output(g, n, 0),
                                     tn_sub(g, tn_node_input(g, n, 0), tn_node_input(g, n, 1)));
    }
    return TN_OK;
}
static const tn_pass broken = {.name = "broken", .effect = TN_BIT_EXACT, .keeps = TN_KEEPS_ALL, .run = run_broken};
static const tn_pass broken_rounding = {.name = "broken-rounding", .effect = TN_VALUE_CHANGING, .run = run_broken};

static void test_broken_pass(void **s) {
    (void)s;
    const tn_pass *const passes[] = {&broken, &broken_rounding};
    for (int i = 0; i < 2; i++) {
        tn_verify_result r =
            check(sample_graph(), &(tn_verify_options){.level = 2, .more = &passes[i], .more_count = 1});
        assert_false(r.holds);
        assert_int_equal(r.stage, TN_VERIFY_PASS);
        assert_string_equal(r.name, passes[i]->name);
        assert_non_null(strstr(r.node, "sub"));
        assert_non_null(strstr(r.what, "instead of"));
    }
}

/* 1/sqrt(x) in two roundings. */
static tn_status two_roundings(tn_rewriter *r, tn_node n) {
    tn_graph *g = tn_rewriter_graph(r);
    return tn_rewrite_replace(r, n, tn_reciprocal(g, tn_sqrt(g, tn_node_input(g, n, 0))));
}

static void test_classes(void **s) {
    (void)s;
    tn_rewrite rewrite = {
        .name = "two-roundings", .root = "rsqrt", .apply = two_roundings, .effect = TN_VALUE_CHANGING};
    tn_verify_result r =
        check(sample_graph(), &(tn_verify_options){.level = 2, .samples = 8, .rewrites = &rewrite, .rewrite_count = 1});
    assert_true(r.holds);
    rewrite.effect = TN_BIT_EXACT;
    r = check(sample_graph(), &(tn_verify_options){.level = 2, .samples = 8, .rewrites = &rewrite, .rewrite_count = 1});
    assert_false(r.holds);
    assert_string_equal(r.name, "rewrites");
}

/* --- a wrong kernel ------------------------------------------------------------------------------------------------------------- */

static const tn_kernel_impl *right;

static bool takes(const tn_kernel *k, const tn_kernel_facts *facts) {
    return k->steps == 1 && k->step[0].op == TN_SCALAR_ADD && right->takes(k, facts);
}

static tn_status prepare(tn_kernel *k, const tn_kernel_facts *facts) {
    return right->prepare ? right->prepare(k, facts) : TN_OK;
}

/* As the right one, but for the last element. */
static tn_status run_off(const tn_kernel_args *a, float by) {
    TN_TRY(right->run(a));
    const tn_kernel *k = a->kernel;
    int64_t count = 1;
    for (int i = 0; i < k->outer; i++)
        count *= a->size[k->extent[i]];
    if (count > 2)
        ((float *)a->slot[k->output[0].slot])[count - 1] += by;
    return TN_OK;
}
static tn_status run_wrong(const tn_kernel_args *a) {
    return run_off(a, 1e-3f);
}
static tn_status run_wrong_tile(const tn_kernel_args *a) {
    return run_off(a, 1e-2f);
}

static void test_wrong_kernel(void **s) {
    (void)s;
    const tn_kernel_table *all = tn_kernels();
    static const tn_kernel_impl wrong = {
        .name = "wrong sum", .kind = TN_KERNEL_STRIP, .takes = takes, .prepare = prepare, .run = run_wrong};
    const tn_kernel_impl *impls[64] = {&wrong};
    assert_true(all->count < 63);
    for (uint32_t i = 0; i < all->count; i++) {
        impls[1 + i] = all->impl[i];
        if (all->impl[i]->kind == TN_KERNEL_STRIP)
            right = all->impl[i];
    }
    tn_kernel_table table = {impls, all->count + 1};
    tn_verify_result r = check(sample_graph(), &(tn_verify_options){.level = 0, .kernels = &table});
    assert_false(r.holds);
    assert_int_equal(r.stage, TN_VERIFY_KERNEL);
    assert_string_equal(r.name, "wrong sum");
    assert_non_null(strstr(r.node, "add"));
    assert_non_null(strstr(r.what, "5]"));
}

static bool takes_tiles(const tn_kernel *k, const tn_kernel_facts *facts) {
    return k->winograd && right->takes(k, facts);
}

/* Convolutions by tiles err by more than plain sums, in proportion to what a whole tile reads: one that is wrong by a hundredth is found, one
   that is right holds for inputs that are zero here and large there, infinite or no numbers. */
static void test_wrong_tile(void **s) {
    (void)s;
    const tn_kernel_table *all = tn_kernels();
    static const tn_kernel_impl wrong = {.name = "wrong tile",
                                         .kind = TN_KERNEL_CONTRACT,
                                         .takes = takes_tiles,
                                         .prepare = prepare,
                                         .run = run_wrong_tile};
    const tn_kernel_impl *impls[64] = {&wrong};
    for (uint32_t i = 0; i < all->count; i++) {
        impls[1 + i] = all->impl[i];
        if (all->impl[i]->isa == TN_ISA_GENERIC && strstr(all->impl[i]->name, "winograd"))
            right = all->impl[i];
    }
    tn_kernel_table table = {impls, all->count + 1};
    for (int m = 0; m < 2; m++) {
        const int64_t channels = m ? 364 : 16, dims[] = {channels, channels, 3, 3};
        for (int is_wrong = 0; is_wrong < 2; is_wrong++) {
            tn_graph *g = tn_graph_create();
            tn_tensor *w = tn_tensor_create(TN_F32, 4, dims);
            for (int64_t i = 0; i < tn_tensor_count(w); i++)
                ((float *)tn_tensor_data(w))[i] = (float)((i * 7919 % 2003) - 1001) / (float)(40 * channels);
            tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE(1, channels, 7, 9));
            tn_set_output(g, "y", tn_relu(g, tn_conv(g, x, tn_constant(g, w), NULL, NULL, NULL, NULL, NULL, 1)));
            tn_tensor_destroy(w);
            tn_verify_result r =
                check(g, &(tn_verify_options){.level = 2, .samples = 4, .kernels = is_wrong ? &table : NULL});
            if (r.holds == (is_wrong == 1))
                fail_msg("%s: %s", r.name, r.what);
            if (is_wrong)
                assert_string_equal(r.name, "wrong tile");
        }
    }
}

/* --- many graphs ------------------------------------------------------------------------------------------------------------------ */

static void test_random_graphs(void **s) {
    (void)s;
    unsigned checked = 0, refused = 0;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        int64_t size[RANDOM_SYMBOLS];
        tn_verify_result r =
            check(random_graph_make(seed, size),
                  &(tn_verify_options){.level = (int)(seed % 3), .isa = tn_cpu_best(), .threads = 1, .seed = seed});
        if (!r.holds)
            print_error("seed %llu\n", (unsigned long long)seed);
        assert_true(r.holds);
        checked += r.samples;
        refused += r.refused;
    }
    print_message("%u samples, %u refused\n", checked, refused);
    assert_true(refused < checked / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_holds),        cmocka_unit_test(test_demanded_sizes),
                                       cmocka_unit_test(test_broken_pass),  cmocka_unit_test(test_classes),
                                       cmocka_unit_test(test_wrong_kernel), cmocka_unit_test(test_wrong_tile),
                                       cmocka_unit_test(test_random_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
