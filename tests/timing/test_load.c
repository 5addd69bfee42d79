/* T1, T2, V5: loading costs the same for each node of a chain however long, a large attribute costs little more than reading the file,
   and a graph of repeated blocks is shown at once. Slower than the bounds is a failure in optimised builds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/os.h"
#include "ir/graph.h"
#include "support/paths.h"

#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define BOUND(condition) assert_true(condition)
#else
#define BOUND(condition) (void)(condition)
#endif

static double least(double a, double b) {
    return a < b ? a : b;
}

/* Nanoseconds a node, the best of several. */
static double load_time(const tn_text *bytes, int nodes) {
    double best = 1e30;
    for (int i = 0; i < 7; i++) {
        double start = tn_clock();
        tn_model *model = tn_model_load_memory(bytes->data, bytes->len, NULL);
        best = least(best, tn_clock() - start);
        assert_non_null(model);
        tn_model_destroy(model);
    }
    return best / nodes * 1e9;
}

static void test_t1_chains(void **state) {
    (void)state;
    static const int lengths[] = {5000, 10000, 20000, 100000};
    double took[4];
    for (int i = 0; i < 4; i++) {
        tn_text bytes = chain_bytes(lengths[i]);
        took[i] = load_time(&bytes, lengths[i]);
        print_message("T1: %d nodes: %d ns each\n", lengths[i], (int)took[i]);
        tn_text_free(&bytes);
    }
    BOUND(took[3] <= 1.5 * took[0]);
}

/* A file of a node with a float attribute of 10 million entries: as protobuf packs them, and one by one, as most files have them. */
static void large_attribute(bool packed) {
    enum { ENTRIES = 10000000 };
    char path[] = "/tmp/tenon-test-XXXXXX", line[100];
    float *values = malloc(ENTRIES * sizeof *values);
    assert_non_null(values);
    for (int i = 0; i < ENTRIES; i++)
        values[i] = (float)i;
    tn_text g = message(), attrs = message(), a = message();
    put_text(&a, 1, "value_floats");
    if (packed)
        tn_wire_put_bytes(&a, 7, values, ENTRIES * sizeof *values);
    for (int i = 0; i < ENTRIES && !packed; i++) {
        char field[5] = {7 << 3 | TN_WIRE_FIXED32};
        memcpy(field + 1, &values[i], 4);
        tn_text_bytes(&a, field, sizeof field);
    }
    tn_wire_put_varint(&a, 20, 6);
    put_message(&attrs, 5, a);
    put_value(&g, 11, "x", TN_F32, "1");
    put_message(&g, 1, node_bytes("Constant", "many", "", "c", attrs));
    put_node(&g, "Add", "sum", "x,c", "y");
    put_value(&g, 12, "y", TN_F32, NULL);
    tn_text bytes = model_bytes(17, g);
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(tn_file_write(path, bytes.data, bytes.len), TN_OK);
    snprintf(line, sizeof line, "cat '%s' >/dev/null", path);
    double cat = 1e30, load = 1e30;
    for (int i = 0; i < 7; i++) {
        double start = tn_clock();
        assert_int_equal(system(line), 0);
        cat = least(cat, tn_clock() - start);
        start = tn_clock();
        tn_model *model = tn_model_load(path, NULL);
        load = least(load, tn_clock() - start);
        if (!model)
            fail_msg("%s", tn_error_message());
        const tn_graph *graph = tn_model_graph(model);
        const tn_attr *attr = tn_node_attr(graph, tn_region_first(graph, tn_graph_region(graph)), "value_floats");
        assert_true(attr && attr->count == ENTRIES);
        assert_memory_equal(attr->as.floats, values, ENTRIES * sizeof *values);
        tn_model_destroy(model);
    }
    unlink(path);
    print_message("T2, %s: %d us by cat, loaded in %d us\n", packed ? "packed" : "one by one", (int)(cat * 1e6),
                  (int)(load * 1e6));
    BOUND(load <= 3 * cat);
    free(values);
    tn_text_free(&bytes);
}

static void test_t2_large_attribute(void **state) {
    (void)state;
    large_attribute(true);
    large_attribute(false);
}

/* 20 000 nodes in 100 equal blocks: the summary, by the command. */
static void test_v5_blocks(void **state) {
    (void)state;
    static const char *const ops[] = {"Sin", "Neg", "Abs", "Relu", "Exp"};
    char from[24], to[24], line[300], *text = calloc(1, 1 << 16), path[] = "/tmp/tenon-test-XXXXXX";
    tn_text g = message();
    put_value(&g, 11, "v0", TN_F32, "4");
    for (int i = 0; i < 20000; i++) {
        snprintf(from, sizeof from, "v%d", i);
        snprintf(to, sizeof to, "v%d", i + 1);
        int at = i % 200;
        put_node(&g, at == 0 ? "Tanh" : at == 199 ? "Sigmoid" : ops[at * at % 5], "", from, to);
    }
    put_value(&g, 12, to, TN_F32, "4");
    tn_text bytes = model_bytes(17, g);
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(tn_file_write(path, bytes.data, bytes.len), TN_OK);
    snprintf(line, sizeof line, "'%s' info '%s'", TENON_BINARY, path);
    double best = 1e30;
    for (int i = 0; i < 3; i++) {
        double start = tn_clock();
        FILE *pipe = popen(line, "r");
        assert_non_null(pipe);
        text[fread(text, 1, (1 << 16) - 1, pipe)] = 0;
        assert_int_equal(pclose(pipe), 0);
        best = least(best, tn_clock() - start);
    }
    unlink(path);
    print_message("V5: info of 20000 nodes in %d ms\n", (int)(best * 1e3));
    assert_non_null(strstr(text, "100 x 200 nodes from Tanh"));
    BOUND(best < 1);
    free(text);
    tn_text_free(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_t1_chains), cmocka_unit_test(test_t2_large_attribute),
                                       cmocka_unit_test(test_v5_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
