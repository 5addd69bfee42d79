/* Every version of every operator, and every choice of its optional inputs that it takes, on every path: nodes of versions.txt give what ONNX
   Runtime, the standard's evaluator or the operator's text say (tests/nightly/meaning/versions.py). Then their inputs of every element type:
   plans give what the reference gives, or both refuse it. TENON_VERSIONS: the rows of that operator alone, each told of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/tensor.h"
#include "support/node_text.h"
#include "support/paths.h"

static char *read_text(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    char *text = NULL;
    size_t n = 0, room = 0;
    do {
        room += 1 << 20;
        text = realloc(text, room + 1);
        assert_non_null(text);
        n += fread(text + n, 1, room - n, f);
    } while (n == room);
    text[n] = 0;
    fclose(f);
    return text;
}

static char *table(void) {
    char *text = read_text(TENON_SOURCE_DIR "/tests/onnx/versions.txt");
    assert_non_null(text);
    return text;
}

/* False: refused. */
static bool results(const node_text *row, int path, tn_object **got) {
    tn_text bytes = node_text_model(row);
    tn_model *model = tn_model_load_memory(bytes.data, bytes.len, NULL);
    tn_session *s = model ? tn_session_create(model, &run_paths[path].options) : NULL;
    tn_binding in[NODE_TEXT_MOST];
    tn_output out[NODE_TEXT_MOST];
    uint32_t fed = 0;
    for (uint32_t i = 0; i < row->ins; i++)
        if (row->in[i].type)
            in[fed++] = (tn_binding){.name = row->in[i].name, .object = row->in[i].object};
    for (uint32_t i = 0; i < row->outs; i++) {
        got[i] = NULL;
        out[i] = (tn_output){.name = row->out[i].name, .object = &got[i]};
    }
    bool ran = s && tn_session_run(s, fed, in, row->outs, out) == TN_OK;
    tn_session_destroy(s);
    tn_model_destroy(model);
    tn_text_free(&bytes);
    return ran;
}

/* NULL: right, else what is wrong. */
static const char *run(const node_text *row, int path, char *why, size_t size) {
    tn_object *got[NODE_TEXT_MOST];
    const char *wrong = NULL;
    if (!results(row, path, got)) {
        snprintf(why, size, "%s", tn_error_message());
        wrong = why;
    }
    for (uint32_t i = 0; i < row->outs && !wrong; i++)
        if (!node_text_is(&row->out[i], got[i], why, size))
            wrong = why;
    for (uint32_t i = 0; i < row->outs; i++)
        tn_object_destroy(got[i]);
    return wrong;
}

static void test_rows(void **state) {
    (void)state;
    char *text = table(), why[600];
    const char *only = getenv("TENON_VERSIONS");
    node_text_reader reader = {text, 1};
    node_text row;
    int wrong = 0, rows = 0;
    while (node_text_next(&reader, &row)) {
        for (int p = 0; p < RUN_PATHS && (!only || strcmp(only, row.op) == 0); p++) {
            const char *what = run(&row, p, why, sizeof why);
            rows += p == 0;
            if (only || what)
                print_message("line %d, %s-%d, %s: %s\n", row.line, row.op, row.version, run_paths[p].name,
                              what ? what : "right");
            wrong += what != NULL;
        }
        node_text_free(&row);
    }
    free(text);
    print_message("%d nodes\n", rows);
    assert_int_equal(wrong, 0);
}

/* --- element types ------------------------------------------------------------------------------------------------------------------------ */

/* The same numbers, as far as the type has them. */
static tn_tensor *as_type(const tn_tensor *x, tn_dtype to) {
    tn_tensor *y = tn_tensor_create(to, x->rank, x->dims);
    char text[32];
    for (int64_t i = 0; i < x->count; i++) {
        double v = x->dtype == TN_STRING || tn_dtype_is_complex((tn_dtype)x->dtype) ? (double)(i % 3)
                                                                                    : tn_tensor_get_f64(x, i);
        bool positive = !(tn_dtype_is_signed(to) || tn_dtype_is_float(to)) || to == TN_F8E8M0;
        v = v > -100 && v < 100 ? v : 2; /* NaN, too */
        v = positive && v < 0 ? -v : v;
        if (to == TN_STRING) {
            snprintf(text, sizeof text, "%d", (int)v);
            assert_int_equal(tn_tensor_set_string(y, i, text, strlen(text)), TN_OK);
        } else if (tn_dtype_is_complex(to)) {
            tn_dtype part = to == TN_C64 ? TN_F32 : TN_F64;
            tn_store_f64(part, y->data, 2 * i, v);
            tn_store_f64(part, y->data, 2 * i + 1, 0);
        } else {
            double most = to == TN_I2 ? 1 : to == TN_U2 ? 3 : to == TN_I4 ? 7 : to == TN_U4 ? 15 : 100;
            v = v > most ? most : v < -most ? -most : v;
            tn_store_f64(to, y->data, i, tn_dtype_is_float(to) ? v : (double)(int)v);
        }
    }
    return y;
}

/* Inputs of type `from` become of type `to`: what plans then say. NULL: what the reference says. */
static const char *other_type(const node_text *row, tn_dtype from, tn_dtype to, bool *ran, char *why, size_t size) {
    node_text other = *row;
    tn_object *want[NODE_TEXT_MOST], *got[NODE_TEXT_MOST];
    const char *wrong = NULL;
    for (uint32_t i = 0; i < row->ins; i++)
        if (((const tn_tensor *)row->in[i].object)->dtype == from)
            other.in[i].object = tn_tensor_object(as_type((const tn_tensor *)row->in[i].object, to));
    *ran = results(&other, 0, want);
    bool plan = results(&other, RUN_PATHS - 1, got);
    if (plan != *ran) {
        snprintf(why, size, "%s runs it alone: %s", plan ? "a plan" : "the reference", tn_error_message());
        wrong = why;
    }
    for (uint32_t i = 0; i < row->outs && plan && *ran; i++) {
        node_text_value v = row->out[i];
        v.object = want[i];
        if (!wrong && !node_text_is(&v, got[i], why, size))
            wrong = why;
        tn_object_destroy(want[i]);
        tn_object_destroy(got[i]);
    }
    for (uint32_t i = 0; i < row->ins; i++)
        if (other.in[i].object != row->in[i].object)
            tn_object_destroy(other.in[i].object);
    return wrong;
}

/* The newest version of each operator. */
static void test_types(void **state) {
    (void)state;
    char *text = table(), why[600], head[200];
    const char *only = getenv("TENON_VERSIONS");
    node_text_reader reader = {text, 1};
    node_text row;
    int wrong = 0, tried = 0, ran = 0;
    while (node_text_next(&reader, &row)) {
        snprintf(head, sizeof head, "case %s%s%s ", row.op, *row.domain ? ":" : "", row.domain);
        bool last = strncmp(reader.at, head, strlen(head)) != 0 && (!only || strcmp(only, row.op) == 0);
        for (uint32_t i = 0; i < row.ins && last; i++) {
            tn_dtype from = (tn_dtype)((const tn_tensor *)row.in[i].object)->dtype;
            for (uint32_t k = 0; k < i; k++)
                if (((const tn_tensor *)row.in[k].object)->dtype == from)
                    from = TN_DTYPE_NONE;
            for (int to = 1; from && to < TN_DTYPE_COUNT; to++) {
                bool takes;
                const char *what = other_type(&row, from, (tn_dtype)to, &takes, why, sizeof why);
                tried++;
                ran += takes;
                wrong += what != NULL;
                if (what || (only && takes))
                    print_message("line %d, %s-%d, %s for %s: %s\n", row.line, row.op, row.version,
                                  tn_dtype_name((tn_dtype)to), tn_dtype_name(from), what ? what : "alike");
            }
        }
        node_text_free(&row);
    }
    free(text);
    print_message("%d nodes of other types, %d of them are taken\n", tried, ran);
    assert_int_equal(wrong, 0);
    assert_true(only || ran > 1500);
}

/* --- that there is a row for each version ---------------------------------------------------------------------------------------------- */

/* Versions without a row, and where else they are tested. */
static const struct {
    const char *op;
    int version; /* 0: all */
    const char *why;
} elsewhere[] = {
    {"Gradient", 0, "not supported: differentiation is to come"},
    {"ImageDecoder", 0, "onnx/image: files of pictures"},
    {"CastMap", 0, "onnx/ml: takes a map"},
    {"DictVectorizer", 0, "onnx/ml: takes a map"},
};

static bool is_elsewhere(const char *op, int version) {
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (strcmp(elsewhere[i].op, op) == 0 && (!elsewhere[i].version || elsewhere[i].version == version))
            return true;
    return false;
}

static bool has_row(const char *text, const char *op, const char *domain, int version) {
    char head[200];
    snprintf(head, sizeof head, "case %s%s%s %d ", op, strcmp(domain, "ai.onnx") == 0 ? "" : ":",
             strcmp(domain, "ai.onnx") == 0 ? "" : domain, version);
    return strstr(text, head) != NULL;
}

/* By the standard's table of operators, where it is there. */
static void test_all_versions(void **state) {
    (void)state;
    char *ops = read_text(TENON_SHARED_DIR "/onnx-ops.tsv"), *text = table();
    if (!ops) {
        print_message("no table of the standard's operators: skipped\n");
        free(text);
        skip();
    }
    int versions = 0, rows = 0, missing = 0;
    char *line = strchr(ops, '\n');
    while (line && line[1]) {
        char domain[64], op[64], list[200];
        if (sscanf(line + 1, "%63[^\t]\t%63[^\t]\t%199[^\t]", domain, op, list) != 3)
            fail_msg("what is '%.60s'?", line + 1);
        for (char *v = strtok(list, ","); v; v = strtok(NULL, ",")) {
            int version = atoi(v);
            versions++;
            if (has_row(text, op, domain, version))
                rows++;
            else if (!is_elsewhere(op, version)) {
                missing++;
                print_message("no row for %s %s-%d\n", domain, op, version);
            }
        }
        line = strchr(line + 1, '\n');
    }
    print_message("%d versions, %d with a row, %d elsewhere\n", versions, rows, versions - rows - missing);
    free(ops);
    free(text);
    assert_true(versions >= 640);
    assert_int_equal(missing, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_types),
                                       cmocka_unit_test(test_all_versions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
