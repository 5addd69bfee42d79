/* Rows of behaviour about shapes and element types: D4, H1, H3, H4. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tenon/build.h>

#include <tenon/tenon.h>

#include "interp/oracle.h"
#include "onnx/tensor_file.h"
#include "ops/scalar.h"
#include "runtime/session.h"
#include "support/model_runs.h"
#include "support/nets.h"

/* --- D4: every operator static, with one free dimension and with all free ----------------------------------------------------------------- */

/* The type of an input with its dimensions free: none, the first of all inputs, all. */
static tn_type freed(tn_graph *n, const tn_graph *g, tn_type type, int how, bool *first, uint32_t input) {
    tn_dim dims[TN_MAX_RANK];
    int rank = type.id && tn_type_kind(g, type) == TN_KIND_TENSOR ? tn_type_rank(g, type) : -1;
    if (!how || rank < 1 || tn_type_dtype(g, type) == TN_DTYPE_NONE)
        return tn_type_copy(n, g, type, true);
    for (int i = 0; i < rank; i++) {
        int64_t size = 0;
        char name[32];
        snprintf(name, sizeof name, "d%u_%d", input, i);
        bool free = how == 2 || *first || !tn_dim_is_const(g, tn_type_dims(g, type)[i], &size);
        *first = false;
        dims[i] = free ? tn_dim_symbol(n, name) : tn_dim_const(n, size);
    }
    return tn_type_tensor(n, tn_type_dtype(g, type), rank, dims);
}

static tn_graph *with_free(const tn_graph *g, int how) {
    uint32_t inputs = tn_graph_input_count(g), outputs = tn_graph_output_count(g);
    tn_graph *n = tn_graph_new(NULL, g->ops);
    tn_value values[2 * RUN_MAX];
    bool first = true;
    assert_true(inputs <= RUN_MAX && outputs <= RUN_MAX);
    for (uint32_t i = 0; i < inputs; i++) {
        tn_value v = tn_graph_input(g, i);
        tn_tensor *given = tn_graph_input_default(g, v);
        values[i] = tn_region_add_arg(
            n, tn_graph_region(n), freed(n, g, tn_value_type(g, v), given ? 0 : how, &first, i), tn_value_name(g, v));
        if (given)
            tn_graph_set_input_default(n, values[i], given);
    }
    for (uint32_t i = 0; i < outputs; i++)
        values[inputs + i] = tn_graph_output(g, i);
    tn_graph_copy_functions(n, g);
    tn_region_copy(n, g, tn_graph_region(g), inputs, values, outputs, values + inputs, NULL, NULL);
    for (uint32_t i = 0; i < outputs; i++)
        tn_graph_add_output(n, values[inputs + i], tn_graph_output_name(g, i));
    for (uint32_t i = 0; i < g->metadata.len; i++) {
        const tn_metadata *m = &g->metadata.data[i];
        tn_graph_set_metadata(n, tn_strings_text(&g->strings, m->key), tn_strings_text(&g->strings, m->value),
                              tn_strings_length(&g->strings, m->value));
    }
    return n;
}

/* Outputs of a graph on the first set of a folder; false with the error set. Nothing to run: *count 0. */
static bool run_set(tn_graph *g, const char *folder, uint32_t *count, tn_object **out) {
    tn_model *model = tn_graph_check(g) == TN_OK ? tn_model_from_graph(g, NULL) : NULL;
    run_inputs in = {0};
    run_outputs got = {0};
    tn_status status = TN_ERR_USAGE;
    *count = 0;
    if (model && run_inputs_read(model, folder, 0, &in))
        status = run_model(model, TN_OPTIONS(tn_session_options, .threads = 1), &in, &got);
    else if (model)
        status = TN_OK;
    for (uint32_t i = 0; status == TN_OK && i < got.count; i++)
        out[(*count)++] = tn_object_retain(got.object[i]);
    if (status == TN_OK)
        run_outputs_free(&got);
    run_inputs_free(&in);
    tn_model_destroy(model);
    return status == TN_OK;
}

static void test_d4_free_dimensions(void **state) {
    (void)state;
    char **names = shared_models("onnx-suite/node");
    uint32_t ran = 0, wrong = 0, folders = 0;
    while (names[folders])
        folders++;
    for (uint32_t k = 0; k < folders; k += run_full() ? 1 : 6) {
        char within[512], folder[4096], path[4200];
        snprintf(within, sizeof within, "onnx-suite/node/%s", names[k]);
        if (!shared_path(within, folder, sizeof folder))
            continue;
        snprintf(path, sizeof path, "%s/model.onnx", folder);
        tn_model *model = tn_model_load(path, NULL);
        tn_object *out[3][RUN_MAX];
        uint32_t count[3] = {0};
        bool ok = model != NULL;
        for (int how = 0; how < 3 && ok; how++) {
            tn_graph *g = with_free(tn_model_graph(model), how);
            ok = run_set(g, folder, &count[how], out[how]);
            if (!ok && how) {
                wrong++;
                fprintf(stderr, "%s, %s: %s\n", names[k], how == 1 ? "one free dimension" : "all free",
                        tn_error_message());
            }
            tn_graph_destroy(g);
        }
        for (int how = 1; how < 3 && ok; how++)
            for (uint32_t i = 0; i < count[0]; i++)
                if (count[how] != count[0] || !tn_object_same_bits(out[0][i], out[how][i])) {
                    wrong++;
                    fprintf(stderr, "%s: output %u differs with %s\n", names[k], i,
                            how == 1 ? "one free dimension" : "all free");
                }
        ran += ok && count[0];
        for (int how = 0; how < 3; how++)
            for (uint32_t i = 0; i < count[how]; i++)
                tn_object_destroy(out[how][i]);
        tn_model_destroy(model);
    }
    print_message("%u operators in three forms\n", ran);
    shared_free_names(names);
    assert_int_equal(wrong, 0);
}

/* --- half precision -------------------------------------------------------------------------------------------------------------------------- */

enum { LAYERS = 10, WIDE = 64 };

static tn_graph *mlp(tn_dtype dtype) {
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", dtype, TN_SHAPE("N", WIDE));
    uint32_t noise = 1;
    for (int i = 0; i < LAYERS; i++) {
        tn_tensor *w = tn_tensor_create(dtype, 2, (const int64_t[]){WIDE, WIDE}),
                  *b = tn_tensor_create(dtype, 1, (const int64_t[]){WIDE});
        for (int64_t k = 0; k < WIDE * WIDE; k++) {
            noise = noise * 1664525u + 1013904223u;
            tn_tensor_set_f64(w, k, ((double)(noise >> 8) / 8388608 - 1) / 6);
        }
        for (int64_t k = 0; k < WIDE; k++)
            tn_tensor_set_f64(b, k, (double)k / WIDE - 0.25);
        x = tn_relu(g, tn_add(g, tn_matmul(g, x, tn_constant(g, w)), tn_constant(g, b)));
        tn_tensor_destroy(w);
        tn_tensor_destroy(b);
    }
    tn_set_output(g, "y", x);
    assert_int_equal(tn_graph_check(g), TN_OK);
    return g;
}

static tn_tensor *run_mlp(tn_graph *g, tn_dtype dtype, const char *isa, tn_text *plan, uint32_t *casts,
                          uint32_t *other) {
    tn_model *model = tn_model_from_graph(g, NULL);
    tn_session *s = tn_session_create(model, TN_OPTIONS(tn_session_options, .isa = isa));
    tn_tensor *x = tn_tensor_create(dtype, 2, (const int64_t[]){5, WIDE}), *y = NULL;
    for (int64_t i = 0; i < 5 * WIDE; i++)
        tn_tensor_set_f64(x, i, (double)(i % 13) / 8 - 0.7);
    if (!s || tn_session_run(s, 1, (const tn_binding[]){{.name = "x", .tensor = x}}, 1,
                             (const tn_output[]){{.name = "y", .tensor = &y}}) != TN_OK)
        fail_msg("%s", tn_error_message());
    const tn_plan *p = s->whole.compiled->plan;
    *casts = *other = 0;
    for (uint32_t i = 0; i < p->kernel.len; i++) {
        const tn_kernel *k = &p->kernel.data[i];
        *other += k->kind != TN_KERNEL_CONTRACT;
        for (int n = 0; n < k->steps + k->epilogue; n++)
            *casts += k->step[n].op == TN_SCALAR_CAST;
    }
    *other += p->host.len;
    assert_int_equal(tn_plan_print(p, plan), TN_OK);
    tn_tensor_destroy(x);
    tn_session_destroy(s);
    tn_model_destroy(model);
    return y;
}

/* H1: no conversion in the plan of a half-precision network. */
static void test_h1_no_conversions(void **state) {
    (void)state;
    static const tn_dtype half[] = {TN_F16, TN_BF16};
    for (int i = 0; i < 2; i++) {
        tn_graph *g = mlp(half[i]);
        tn_text plan;
        uint32_t casts, other;
        tn_text_init(&plan, NULL);
        tn_tensor_destroy(run_mlp(g, half[i], NULL, &plan, &casts, &other));
        tn_text_free(&plan);
        tn_graph_destroy(g);
        assert_int_equal(casts, 0);
        assert_int_equal(other, 0); /* a kernel for each layer, nothing else */
    }
}

/* H4: a float network is computed in float at every level, says so, and gives the same but for the order of sums. */
static void test_h4_float_stays(void **state) {
    (void)state;
    tn_graph *g = mlp(TN_F32);
    tn_tensor *first = NULL;
    double worst = 0, largest = 0;
    for (int isa = 0; isa < TN_ISA_COUNT; isa++) {
        if (!tn_cpu_has((tn_isa)isa))
            continue;
        tn_text plan;
        uint32_t casts, other, stated = 0;
        tn_text_init(&plan, NULL);
        tn_tensor *y = run_mlp(g, TN_F32, tn_isa_name((tn_isa)isa), &plan, &casts, &other);
        for (const char *at = plan.data; (at = strstr(at, " in f32\n")) != NULL; at++)
            stated++;
        assert_int_equal(stated, LAYERS);
        assert_null(strstr(plan.data, "f16"));
        assert_int_equal(casts, 0);
        tn_text_free(&plan);
        for (int64_t i = 0; first && i < tn_tensor_count(y); i++) {
            worst = fmax(worst, fabs(tn_tensor_get_f64(y, i) - tn_tensor_get_f64(first, i)));
            largest = fmax(largest, fabs(tn_tensor_get_f64(first, i)));
        }
        if (first)
            tn_tensor_destroy(y);
        else
            first = y;
    }
    tn_tensor_destroy(first);
    tn_graph_destroy(g);
    assert_true(worst <= 1e-6 * fmax(1, largest));
}

/* H3: products of bfloat16 matrices are those of their values, rounded once. */
static void test_h3_bfloat16_products(void **state) {
    (void)state;
    uint32_t noise = 7;
    for (int isa = 0; isa < TN_ISA_COUNT; isa++)
        for (int64_t n = 1; n <= 65 && tn_cpu_has((tn_isa)isa); n += run_full() || n < 9 || n > 60 ? 1 : 7)
            for (int constant = 0; constant < 2; constant++) {
                tn_graph *g = tn_graph_create();
                tn_tensor *t[2], *y = NULL;
                for (int i = 0; i < 2; i++) {
                    t[i] = tn_tensor_create(TN_BF16, 2, (const int64_t[]){n, n});
                    for (int64_t k = 0; k < n * n; k++) {
                        noise = noise * 1664525u + 1013904223u;
                        tn_tensor_set_f64(t[i], k, (double)(noise >> 8) / 8388608 - 1);
                    }
                }
                tn_value a = tn_input(g, "a", TN_BF16, TN_SHAPE("M", n)),
                         b = constant ? tn_constant(g, t[1]) : tn_input(g, "b", TN_BF16, TN_SHAPE(n, n));
                tn_set_output(g, "y", tn_matmul(g, a, b));
                tn_model *model = tn_model_from_graph(g, NULL);
                tn_session *s =
                    tn_session_create(model, TN_OPTIONS(tn_session_options, .isa = tn_isa_name((tn_isa)isa)));
                const tn_binding in[] = {{.name = "a", .tensor = t[0]}, {.name = "b", .tensor = t[1]}};
                if (!s || tn_session_run(s, constant ? 1 : 2, in, 1,
                                         (const tn_output[]){{.name = "y", .tensor = &y}}) != TN_OK)
                    fail_msg("%s", tn_error_message());
                for (int64_t i = 0; i < n * n; i++) {
                    double sum = 0, terms = 0;
                    for (int64_t k = 0; k < n; k++) {
                        double term = tn_tensor_get_f64(t[0], i / n * n + k) * tn_tensor_get_f64(t[1], k * n + i % n);
                        sum += term;
                        terms += fabs(term);
                    }
                    double error = fabs(tn_tensor_get_f64(y, i) - sum), sums = (double)n * 0x1p-24 * terms;
                    if (error > (fabs(sum) + sums) * 0x1p-8 + sums)
                        fail_msg("%s, %d x %d, element %d: off by %g of %g", tn_isa_name((tn_isa)isa), (int)n, (int)n,
                                 (int)i, error, sum);
                }
                tn_tensor_destroy(y);
                tn_tensor_destroy(t[0]);
                tn_tensor_destroy(t[1]);
                tn_session_destroy(s);
                tn_model_destroy(model);
                tn_graph_destroy(g);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_d4_free_dimensions),
                                       cmocka_unit_test(test_h1_no_conversions), cmocka_unit_test(test_h4_float_stays),
                                       cmocka_unit_test(test_h3_bfloat16_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
