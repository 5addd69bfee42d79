/* Reading a saved model of thousands of nodes against reading its ONNX file. Slower than the bound is a failure in optimised
   builds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/os.h"
#include "ir/binary.h"
#include "onnx/model.h"
#include "onnx/op.h"

#define MODEL TENON_SHARED_DIR "/models/bert-tf-graph/model.onnx"
#define BOUND 5
#define LAST 14

static double least(double a, double b) {
    return a < b ? a : b;
}

/* Microseconds to map and read the saved graph, the best of several. */
static double read_time(const char *path) {
    double best = 1e30;
    for (int i = 0; i < 40; i++) {
        double start = tn_clock();
        tn_mapping *map = tn_mapping_open(NULL, path);
        assert_non_null(map);
        tn_binary_options options = {.unknown_op = tn_onnx_make_row};
        tn_graph *g =
            tn_graph_read_binary_from(NULL, tn_onnx_table(), tn_mapping_data(map), tn_mapping_size(map), map, &options);
        best = least(best, (tn_clock() - start) * 1e6);
        if (!g)
            fail_msg("%s", tn_error_message());
        tn_graph_destroy(g);
        tn_mapping_release(map);
    }
    return best;
}

static void check(const char *what, uint32_t nodes, double before, double after) {
    print_message("%s, %u nodes: %d us from ONNX, %d us from the binary form\n", what, nodes, (int)before, (int)after);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(before >= BOUND * after);
#endif
}

static uint32_t count_nodes(const tn_graph *g) {
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->node.len; i++)
        n += tn_node_is_alive(g, (tn_node){i});
    return n;
}

static void saved_models_load_fast(void **state) {
    (void)state;
    if (tn_path_kind_of(MODEL) != TN_PATH_FILE) {
        print_message("%s is not there: skipped\n", MODEL);
        skip();
    }
    char path[] = "/tmp/tenon-test-XXXXXX.tenon";
    close(mkstemps(path, 6));
    double load = 1e30, whole = 1e30;
    for (int i = 0; i <= LAST; i++) {
        double start = tn_clock();
        tn_graph *g = tn_onnx_load_file(MODEL, &(tn_onnx_options){0});
        load = least(load, (tn_clock() - start) * 1e6);
        if (!g)
            fail_msg("%s", tn_error_message());
        if (i == LAST) {
            assert_int_equal(tn_graph_save(g, path), TN_OK);
            check("as loaded", count_nodes(g), load, read_time(path));
        }
        start = tn_clock();
        assert_int_equal(tn_onnx_expand(g, 0), TN_OK);
        whole = least(whole, load + (tn_clock() - start) * 1e6);
        if (i == LAST) {
            assert_int_equal(tn_graph_save(g, path), TN_OK);
            check("expanded", count_nodes(g), whole, read_time(path));
        }
        tn_graph_destroy(g);
    }
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(saved_models_load_fast)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
