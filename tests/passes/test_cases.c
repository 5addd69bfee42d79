/* Shared models: what the passes make of them computes the same bits as the plain expansion, and what the model's data sets say.
   Folders of worked-examples (W*) and of optimiser complaints (O*) in TENON_SHARED; without it all are skipped. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/number.h"
#include "base/os.h"
#include "onnx/model.h"
#include "onnx/tensor_file.h"
#include "support/pass_checks.h"

typedef struct tally {
    uint32_t checked, unsupported, bad;
} tally;

/* A number after "key": in the text of case.json. */
static double number(const char *json, const char *key, double otherwise) {
    const char *at = json ? strstr(json, key) : NULL;
    double value;
    if (!at || !(at = strchr(at, ':')))
        return otherwise;
    at += 1 + strspn(at + 1, " ");
    size_t used;
    return tn_parse_f64(at, strspn(at, "+-.0123456789eE"), &value, &used) ? value : otherwise;
}

/* A graph made ready at a level, with the inputs fed that in[] holds. NULL with the error set. */
static tn_graph *prepare(const char *model, int level, const char *disable, tn_object *const *in) {
    tn_graph *g = tn_onnx_load_file(model, NULL);
    if (!g)
        return NULL;
    tn_value fed[PASS_MAX];
    tn_pass_context c = {.level = level,
                         .disable = disable,
                         .verify = true,
                         .evaluate = tn_pass_evaluate,
                         .bind_defaults = true,
                         .fed = fed};
    for (uint32_t i = 0; i < tn_graph_input_count(g) && i < PASS_MAX; i++)
        if (in[i])
            fed[c.fed_count++] = tn_graph_input(g, i);
    tn_status status = tn_passes_run(g, &c);
    tn_pass_context_free(&c);
    if (status == TN_OK)
        return g;
    tn_graph_destroy(g);
    return NULL;
}

static bool close_to(const tn_object *a, const tn_object *b, double rtol, double atol) {
    if (pass_same(a, b))
        return true;
    if (a->kind != TN_KIND_TENSOR || b->kind != TN_KIND_TENSOR)
        return false;
    const tn_tensor *x = (const tn_tensor *)a, *y = (const tn_tensor *)b;
    bool same = x->dtype == y->dtype && x->rank == y->rank && x->dtype != TN_STRING &&
                memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0;
    for (int64_t i = 0; same && i < x->count; i++) {
        double p = tn_load_f64((tn_dtype)x->dtype, x->data, i), q = tn_load_f64((tn_dtype)y->dtype, y->data, i);
        same = p == q || (isnan(p) && isnan(q)) || fabs(p - q) <= atol + rtol * fabs(q);
    }
    return same;
}

/* Reads PREFIX_i.pb of a folder; false when there is none. */
static bool read_object(const char *folder, const char *prefix, uint32_t i, tn_object **out) {
    char path[700];
    snprintf(path, sizeof path, "%s/%s_%u.pb", folder, prefix, i);
    if (tn_path_kind_of(path) != TN_PATH_FILE)
        return false;
    *out = tn_onnx_read_object_file(NULL, path, TN_KIND_TENSOR);
    if (!*out)
        tn_error_clear(); /* a sequence: those cases are not looked at here */
    return *out != NULL;
}

static bool unsupported(void) {
    return tn_error_status() == TN_ERR_UNSUPPORTED;
}

/* One data set. */
static void check_set(const char *name, const char *model, const char *set, double rtol, double atol, int nodes_after,
                      tally *t) {
    tn_object *in[PASS_MAX] = {0}, *want[PASS_MAX] = {0}, *x[PASS_MAX] = {0}, *y[PASS_MAX] = {0}, *z[PASS_MAX] = {0};
    for (uint32_t i = 0; i < PASS_MAX; i++) {
        read_object(set, "input", i, &in[i]);
        read_object(set, "output", i, &want[i]);
    }
    tn_graph *like = tn_onnx_load_file(model, NULL), *plain = like ? prepare(model, 0, NULL, in) : NULL;
    bool missing = !plain && unsupported();
    tn_graph *best = plain ? prepare(model, 2, NULL, in) : NULL,
             *exact = best ? prepare(model, 2, "fold-affine", in) : NULL; /* without what may round otherwise */
    const char *fault = NULL;
    if (missing || !plain) {
        t->unsupported++; /* what other folders' tests are about */
    } else if (!exact) {
        fault = "the passes fail";
    } else if (pass_outputs(plain, like, in, x) != TN_OK) {
        t->unsupported++;
    } else {
        t->checked++;
        if (pass_outputs(best, like, in, y) != TN_OK || pass_outputs(exact, like, in, z) != TN_OK)
            fault = "it does not run after the passes";
        for (uint32_t i = 0; !fault && i < tn_graph_output_count(plain); i++) {
            if (!pass_same(x[i], z[i]))
                fault = "the passes change its values";
            else if (!close_to(y[i], x[i], 1e-5, 1e-6) || (want[i] && !close_to(y[i], want[i], rtol, atol)))
                fault = "its values are not those of the data set";
        }
        if (!fault && nodes_after >= 0 && tn_graph_count_nodes(best) != (uint32_t)nodes_after)
            fault = "the number of nodes left is another";
    }
    if (fault) {
        print_error("%s: %s: %s\n", name, fault, tn_error_message());
        char *text = best ? tn_graph_print(best) : NULL;
        if (text && strlen(text) < 5000)
            print_error("%s\n", text);
        tn_graph_free_text(best, text);
        t->bad++;
    }
    pass_release(PASS_MAX, in);
    pass_release(PASS_MAX, want);
    pass_release(PASS_MAX, x);
    pass_release(PASS_MAX, y);
    pass_release(PASS_MAX, z);
    tn_graph_destroy(like);
    tn_graph_destroy(plain);
    tn_graph_destroy(best);
    tn_graph_destroy(exact);
}

static void check_case(const char *root, const char *name, tally *t) {
    char folder[500], path[600];
    snprintf(folder, sizeof folder, "%s/%s", root, name);
    snprintf(path, sizeof path, "%s/case.json", folder);
    size_t size;
    char *json = tn_path_kind_of(path) == TN_PATH_FILE ? tn_file_read(NULL, path, &size) : NULL;
    double rtol = number(json, "\"rtol\"", 1e-4), atol = number(json, "\"atol\"", 1e-6);
    int nodes_after = (int)number(json, "\"nodes_after\"", -1);
    bool later = strncmp(name, "W01", 3) == 0 || strncmp(name, "W05", 3) == 0 || strncmp(name, "W13", 3) == 0 ||
                 strncmp(name, "W14", 3) == 0; /* rewritings that are not there yet */
    bool outputs = json && !strstr(json, "\"expect\": \"error\"");
    tn_free(NULL, json);
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    for (int set = 0; outputs && set < 4; set++) {
        char data[600];
        snprintf(data, sizeof data, "%s/test_data_set_%d", folder, set);
        if (tn_path_kind_of(data) == TN_PATH_FOLDER)
            check_set(name, path, data, rtol, atol, later ? -1 : nodes_after, t);
    }
}

static void check_folder(const char *root, char first) {
    char **names;
    size_t count;
    tally t = {0};
    if (tn_path_kind_of(root) != TN_PATH_FOLDER) {
        print_message("skipped: there is no %s\n", root);
        skip();
    }
    assert_int_equal(tn_folder_list(NULL, root, &names, &count), TN_OK);
    for (size_t i = 0; i < count; i++) {
        if (names[i][0] == first)
            check_case(root, names[i], &t);
        tn_free(NULL, names[i]);
    }
    tn_free(NULL, names);
    print_message("%u data sets checked, %u of models that do not run yet\n", t.checked, t.unsupported);
    assert_int_equal(t.bad, 0);
}

static void test_worked_examples(void **state) {
    (void)state;
    check_folder(TENON_SHARED_DIR "/worked-examples", 'W');
}

static void test_optimiser_cases(void **state) {
    (void)state;
    check_folder(TENON_SHARED_DIR "/cases", 'O');
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_worked_examples), cmocka_unit_test(test_optimiser_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
