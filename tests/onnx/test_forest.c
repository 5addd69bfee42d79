/* Ensembles of trees, many rows at a time: random forests of all kinds, of the same bits as their eval walked row by row, on every
   instruction-set level and number of threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tenon/session.h>

#include "support/onnx_bytes.h"

static uint64_t state = 88172645463325252u;
static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}
static int64_t below(int64_t n) {
    return (int64_t)(draw() % (uint64_t)n);
}
static float number(void) {
    return (float)(below(17) - 8) / 4;
}

static void put_int(tn_text *a, int64_t v) {
    tn_wire_put_varint(a, 8, (uint64_t)v);
}
static void put_float(tn_text *a, float v) {
    uint32_t bits;
    memcpy(&bits, &v, 4);
    const char bytes[5] = {0x3d, (char)bits, (char)(bits >> 8), (char)(bits >> 16), (char)(bits >> 24)};
    tn_text_bytes(a, bytes, sizeof bytes);
}
/* An attribute of a list; type 6: floats, 7: ints, 8: strings. Frees the values. */
static void put_list(tn_text *attrs, const char *name, int type, tn_text values) {
    tn_text a = message();
    put_text(&a, 1, name);
    tn_text_bytes(&a, values.data ? values.data : "", values.len);
    tn_wire_put_varint(&a, 20, (uint64_t)type);
    put_message(attrs, 5, a);
    tn_text_free(&values);
}

typedef struct kind {
    int trees, leaves, features, targets, votes;
    bool plain, missing;
    const char *aggregate;
} kind;

enum { TREE, NODE, FEATURE, TRUE, FALSE, TRACKS, TARGET_TREE, TARGET_NODE, TARGET_ID, LISTS };
static const char *const names[LISTS] = {"nodes_treeids",     "nodes_nodeids",      "nodes_featureids",
                                         "nodes_truenodeids", "nodes_falsenodeids", "nodes_missing_value_tracks_true",
                                         "target_treeids",    "target_nodeids",     "target_ids"};

/* A tree of some leaves, split at random. */
static void put_tree(const kind *k, int tree, tn_text *l, tn_text *values, tn_text *modes, tn_text *weights) {
    enum { MOST = 1024 };
    static const char *const all[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE", "BRANCH_EQ", "BRANCH_NEQ"};
    int child[MOST] = {0}, nodes = 1, leaf[MOST], leaves = 1, want = 1 + (int)below(k->leaves);
    leaf[0] = 0;
    while (leaves < want) {
        int at = (int)below(leaves), i = leaf[at];
        child[i] = nodes;
        leaf[at] = nodes++;
        leaf[leaves++] = nodes++;
        child[nodes - 1] = child[nodes - 2] = 0;
    }
    for (int i = 0; i < nodes; i++) {
        bool inner = child[i] != 0;
        const int64_t of[TARGET_TREE] = {tree,
                                         i,
                                         inner ? below(k->features) : 0,
                                         inner ? child[i] : 0,
                                         inner ? child[i] + 1 : 0,
                                         k->missing && inner && below(2)};
        for (int n = 0; n < TARGET_TREE; n++)
            put_int(&l[n], of[n]);
        put_float(values, inner ? number() : 0);
        put_text(modes, 9, inner ? all[below(k->plain ? 4 : 6)] : "LEAF");
        for (int v = 0; v < k->votes && !inner; v++) {
            put_int(&l[TARGET_TREE], tree);
            put_int(&l[TARGET_NODE], i);
            put_int(&l[TARGET_ID], below(k->targets));
            put_float(weights, number() / 3);
        }
    }
}

static tn_text make(const kind *k) {
    tn_text l[LISTS], values = message(), modes = message(), weights = message(), attrs = message(), g = message();
    char shape[16];
    for (int i = 0; i < LISTS; i++)
        l[i] = message();
    for (int t = 0; t < k->trees; t++)
        put_tree(k, t, l, &values, &modes, &weights);
    for (int i = 0; i < LISTS; i++)
        put_list(&attrs, names[i], 7, l[i]);
    put_list(&attrs, "nodes_values", 6, values);
    put_list(&attrs, "nodes_modes", 8, modes);
    put_list(&attrs, "target_weights", 6, weights);
    attr_int(&attrs, "n_targets", k->targets);
    tn_text a = message();
    put_text(&a, 1, "aggregate_function");
    put_text(&a, 4, k->aggregate);
    tn_wire_put_varint(&a, 20, 3);
    put_message(&attrs, 5, a);
    put_node_of(&g, "ai.onnx.ml", "TreeEnsembleRegressor", "x", "y", attrs);
    snprintf(shape, sizeof shape, "N,%d", k->features);
    put_value(&g, 11, "x", TN_F32, shape);
    put_value(&g, 12, "y", TN_F32, "N,?");
    tn_text bytes = model_bytes(17, g);
    put_opset(&bytes, 8, "ai.onnx.ml", 3);
    return bytes;
}

static tn_tensor *run(tn_model *model, tn_backend backend, const char *isa, int threads, tn_tensor *x) {
    tn_session *s = tn_session_create(model, TN_OPTIONS(tn_session_options, .backend = backend, .isa = isa,
                                                        .threads = threads, .oversubscribe = true));
    tn_tensor *y = NULL;
    if (!s || tn_session_run(s, 1, &(tn_binding){.name = "x", .tensor = x}, 1,
                             &(tn_output){.name = "y", .tensor = &y}) != TN_OK)
        fail_msg("%s", tn_error_message());
    tn_session_destroy(s);
    return y;
}

static void check(const kind *k, int64_t rows) {
    tn_text bytes = make(k);
    tn_model *model = tn_model_load_memory(bytes.data, bytes.len, NULL);
    if (!model)
        fail_msg("%s", tn_error_message());
    tn_tensor *x = tn_tensor_create(TN_F32, 2, (const int64_t[]){rows, k->features});
    for (int64_t i = 0; i < rows * k->features; i++) {
        int64_t odd = below(40);
        tn_tensor_set_f64(x, i, odd == 0 ? (double)NAN : odd == 1 ? -HUGE_VAL : odd == 2 ? -0.0 : (double)number());
    }
    tn_tensor *want = run(model, TN_BACKEND_REFERENCE, NULL, 1, x);
    for (int way = 0; way < 3; way++) {
        tn_tensor *got = run(model, TN_BACKEND_CPU, way == 1 ? "generic" : NULL, way == 2 ? 3 : 1, x);
        if (memcmp(tn_tensor_data(got), tn_tensor_data(want), tn_tensor_bytes(want)) != 0)
            fail_msg("%d trees of %d leaves, %d features, %d targets, %s, %d rows: way %d differs", k->trees, k->leaves,
                     k->features, k->targets, k->aggregate, (int)rows, way);
        tn_tensor_destroy(got);
    }
    tn_tensor_destroy(want);
    tn_tensor_destroy(x);
    tn_model_destroy(model);
    tn_text_free(&bytes);
}

static void test_random(void **unused) {
    (void)unused;
    static const char *const how[] = {"SUM", "AVERAGE", "MIN", "MAX"};
    static const int64_t rows[] = {1, 9, 127, 128, 256, 257, 400, 1000};
    for (int i = 0; i < 60; i++) {
        kind k = {.trees = 1 + (int)below(20),
                  .leaves = below(3) ? 1 + (int)below(64) : 1 + (int)below(200),
                  .features = 1 + (int)below(40),
                  .targets = below(2) ? 1 : 3,
                  .votes = below(3) ? 1 : (int)below(3),
                  .plain = below(4) != 0,
                  .missing = below(2) != 0,
                  .aggregate = how[below(3) ? 0 : below(4)]};
        check(&k, rows[i % (int)(sizeof rows / sizeof *rows)]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
