/* The ONNX standard's own tests through the interpreter: every folder either gives the expected values or is refused as not supported.
   TENON_SUITE names another folder of tests (or one test); TENON_SUITE_ONLY runs those whose name contains it and tells of each;
   TENON_SUITE_PASSED writes the names of those that pass to a file. */
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <tenon/tensor.h>

#include "interp/interp.h"
#include "onnx/model.h"
#include "onnx/tensor_file.h"

typedef struct judge {
    double rtol, atol;
    char why[1200];
} judge;

static bool is_there(const char *path) {
    struct stat s;
    return stat(path, &s) == 0;
}

/* --- comparing ------------------------------------------------------------------------------------------------------------------------ */

static bool differ(judge *j, const char *what, int64_t at) {
    snprintf(j->why, sizeof j->why, "%s (element %" PRId64 ")", what, at);
    return false;
}

static bool same_number(const judge *j, double a, double b) {
    if (isnan(b))
        return isnan(a);
    if (isinf(b) || isinf(a))
        return a == b;
    return fabs(a - b) <= j->atol + j->rtol * fabs(b);
}

static bool same_tensor(judge *j, tn_tensor *a, tn_tensor *b) {
    char x[200], y[200];
    bool shape = a->dtype == b->dtype && a->rank == b->rank;
    for (int i = 0; shape && i < a->rank; i++)
        shape = a->dims[i] == b->dims[i];
    if (!shape) {
        snprintf(j->why, sizeof j->why, "is %s, expected %s", tn_tensor_describe(a, x, sizeof x),
                 tn_tensor_describe(b, y, sizeof y));
        return false;
    }
    for (int64_t i = 0; i < a->count; i++) {
        if (a->dtype == TN_STRING) {
            tn_string s, t;
            if (tn_tensor_get_string(a, i, &s) != TN_OK || tn_tensor_get_string(b, i, &t) != TN_OK ||
                s.length != t.length || memcmp(s.data, t.data, s.length) != 0)
                return differ(j, "another string", i);
        } else if (tn_dtype_is_complex((tn_dtype)a->dtype)) {
            tn_dtype part = a->dtype == TN_C64 ? TN_F32 : TN_F64;
            for (int64_t k = 2 * i; k < 2 * i + 2; k++)
                if (!same_number(j, tn_load_f64(part, tn_tensor_data(a), k), tn_load_f64(part, tn_tensor_data(b), k)))
                    return differ(j, "another complex number", i);
        } else if (tn_dtype_is_float((tn_dtype)a->dtype)) {
            double p = tn_tensor_get_f64(a, i), q = tn_tensor_get_f64(b, i);
            if (!same_number(j, p, q)) {
                snprintf(j->why, sizeof j->why, "element %" PRId64 " is %.9g, expected %.9g", i, p, q);
                return false;
            }
        } else if (tn_tensor_get_i64(a, i) != tn_tensor_get_i64(b, i)) {
            snprintf(j->why, sizeof j->why, "element %" PRId64 " is %" PRId64 ", expected %" PRId64, i,
                     tn_tensor_get_i64(a, i), tn_tensor_get_i64(b, i));
            return false;
        }
    }
    return true;
}

static bool same_object(judge *j, tn_object *a, tn_object *b) {
    if (!a || !b || tn_object_kind(a) != tn_object_kind(b))
        return differ(j, "another kind of value", 0);
    switch (tn_object_kind(a)) {
    case TN_KIND_TENSOR: return same_tensor(j, (tn_tensor *)a, (tn_tensor *)b);
    case TN_KIND_SEQUENCE:
        if (tn_sequence_length(a) != tn_sequence_length(b))
            return differ(j, "another length of the sequence", 0);
        for (size_t i = 0; i < tn_sequence_length(a); i++)
            if (!same_object(j, tn_sequence_at(a, i), tn_sequence_at(b, i)))
                return false;
        return true;
    case TN_KIND_OPTIONAL:
        if (!tn_optional_get(a) != !tn_optional_get(b))
            return differ(j, "another presence of the optional", 0);
        return !tn_optional_get(a) || same_object(j, tn_optional_get(a), tn_optional_get(b));
    case TN_KIND_MAP: return tn_object_equal(a, b) || differ(j, "another map", 0);
    }
    return false;
}

/* --- one test --------------------------------------------------------------------------------------------------------------------------- */

static tn_status run_set(tn_graph *g, const char *folder, judge *j) {
    tn_value in[256], out[256];
    tn_object *fed[256] = {0}, *got[256] = {0};
    uint32_t n = 0, outputs = tn_graph_output_count(g);
    char path[4096];
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < tn_graph_input_count(g) && n < 256 && status == TN_OK; i++) {
        in[n] = tn_graph_input(g, i);
        snprintf(path, sizeof path, "%s/input_%u.pb", folder, (unsigned)i);
        if (!is_there(path))
            continue;
        fed[n] = tn_onnx_read_object_file(NULL, path, tn_type_kind(g, tn_value_type(g, in[n])));
        status = fed[n++] ? TN_OK : tn_error_status();
    }
    for (uint32_t i = 0; i < outputs && i < 256; i++)
        out[i] = tn_graph_output(g, i);
    tn_interp_options options = {.max_bytes = (size_t)4 << 30};
    if (status == TN_OK)
        status = tn_interp_run(g, &options, n, in, fed, outputs, out, got);
    if (status != TN_OK)
        snprintf(j->why, sizeof j->why, "%s", tn_error_message());
    for (uint32_t i = 0; i < outputs && i < 256 && status == TN_OK; i++) {
        snprintf(path, sizeof path, "%s/output_%u.pb", folder, (unsigned)i);
        if (!is_there(path))
            continue;
        tn_object *want = tn_onnx_read_object_file(NULL, path, got[i] ? tn_object_kind(got[i]) : TN_KIND_TENSOR);
        if (!want) {
            status = tn_error_status();
            snprintf(j->why, sizeof j->why, "%s", tn_error_message());
        } else if (!same_object(j, got[i], want)) {
            char rest[600];
            snprintf(rest, sizeof rest, "%.500s", j->why);
            snprintf(j->why, sizeof j->why, "output %u: %s", (unsigned)i, rest);
            status = TN_ERR_FAILED;
        }
        tn_object_destroy(want);
    }
    for (uint32_t i = 0; i < 256; i++) {
        tn_object_destroy(fed[i]);
        tn_object_destroy(got[i]);
    }
    return status;
}

/* Every size of every input becomes a symbol of its own. */
static tn_status free_sizes(tn_graph *g) {
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++) {
        tn_value v = tn_graph_input(g, i);
        tn_dim dims[TN_MAX_RANK];
        int rank = tn_value_rank(g, v);
        if (rank < 1 || tn_type_kind(g, tn_value_type(g, v)) != TN_KIND_TENSOR)
            continue;
        for (int k = 0; k < rank; k++)
            dims[k] = tn_dim_fresh(g, 0, INT64_MAX);
        tn_status status = tn_value_set_type(g, v, tn_type_tensor(g, tn_value_dtype(g, v), rank, dims));
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status judge_folder(const char *folder, judge *j, bool free_dims) {
    char path[4096];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    j->why[0] = 0;
    tn_graph *g = tn_onnx_load_file(path, NULL);
    tn_status status = g ? TN_OK : tn_error_status();
    if (status == TN_OK && free_dims)
        status = free_sizes(g);
    if (status == TN_OK)
        status = tn_onnx_expand(g, 0);
    if (status == TN_OK)
        status = tn_graph_verify(g);
    if (status != TN_OK)
        snprintf(j->why, sizeof j->why, "%s", tn_error_message());
    for (int set = 0; status == TN_OK; set++) {
        snprintf(path, sizeof path, "%s/test_data_set_%d", folder, set);
        if (!is_there(path))
            break;
        status = run_set(g, path, j);
    }
    if (g)
        tn_graph_destroy(g);
    return status;
}

/* --- folders -------------------------------------------------------------------------------------------------------------------------------- */

static int is_test(const struct dirent *d) {
    return d->d_name[0] != '.';
}

typedef struct tally {
    int passed, unsupported, wrong;
} tally;

static void run_folder(const char *folder, bool free_dims, tally *t, FILE *names) {
    struct dirent **list;
    const char *only = getenv("TENON_SUITE_ONLY");
    int n = scandir(folder, &list, is_test, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, name);
        if (!only || strstr(name, only)) {
            judge j = {.rtol = 1e-3, .atol = 1e-7};
            tn_status status = judge_folder(path, &j, free_dims);
            /* Random numbers: what comes is another sample. */
            bool random = strncmp(name, "test_bernoulli", 14) == 0;
            if (status == TN_OK || (random && status == TN_ERR_FAILED && strstr(j.why, "element"))) {
                t->passed++;
                if (names)
                    fprintf(names, "%s\n", name);
            } else if (status == TN_ERR_UNSUPPORTED) {
                t->unsupported++;
            } else {
                t->wrong++;
            }
            if (only || (status != TN_OK && status != TN_ERR_UNSUPPORTED))
                print_message("%s: %s %s\n", name, status == TN_OK ? "passed" : tn_status_name(status), j.why);
        }
        free(list[i]);
    }
    if (n >= 0)
        free(list);
}

/* `least`: so many tests passed before. */
static void run_suite(const char *part, bool free_dims, int least) {
    const char *shared = getenv("TENON_SHARED"), *own = getenv("TENON_SUITE"), *passed = getenv("TENON_SUITE_PASSED");
    char path[4096];
    snprintf(path, sizeof path, "%s/onnx-suite/%s", shared ? shared : TENON_SHARED_DIR, part);
    if (own)
        snprintf(path, sizeof path, "%s", own);
    if (!is_there(path)) {
        print_message("skipped: the tests of the standard are not at %s\n", path);
        skip();
    }
    tally t = {0};
    FILE *names = passed ? fopen(passed, "a") : NULL;
    run_folder(path, free_dims, &t, names);
    if (names)
        fclose(names);
    print_message("%s: %d passed, %d not supported, %d wrong\n", part, t.passed, t.unsupported, t.wrong);
    assert_int_equal(t.wrong, 0);
    if (!own && !getenv("TENON_SUITE_ONLY"))
        assert_true(t.passed >= least);
}

static void node_tests(void **state) {
    (void)state;
    run_suite("node", false, 1756);
}
static void simple_tests(void **state) {
    (void)state;
    run_suite("simple", false, 21);
}
static void converted_tests(void **state) {
    (void)state;
    run_suite("pytorch-converted", false, 82);
}
static void operator_tests(void **state) {
    (void)state;
    run_suite("pytorch-operator", false, 35);
}

/* The same with no size known before the run. */
static void node_tests_of_free_sizes(void **state) {
    (void)state;
    run_suite("node", true, 1756);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(node_tests), cmocka_unit_test(simple_tests),
                                       cmocka_unit_test(converted_tests), cmocka_unit_test(operator_tests),
                                       cmocka_unit_test(node_tests_of_free_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
