/* Lists of floats in attributes, however the file writes them: packed, one by one, in several runs, mixed, cut off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "ir/graph.h"
#include "support/onnx_bytes.h"

static void put_one(tn_text *a, float value) {
    char field[5] = {7 << 3 | TN_WIRE_FIXED32};
    memcpy(field + 1, &value, 4);
    tn_text_bytes(a, field, sizeof field);
}

/* A Constant of value_floats; `how`: a digit for so many floats one by one, 'a'..'i' for so many packed, '-' for a field between. `cut`
   bytes are left out at the end. */
static tn_graph *load(const char *how, size_t cut, int *count) {
    tn_text g = message(), attrs = message(), a = message();
    put_text(&a, 1, "value_floats");
    tn_wire_put_varint(&a, 20, 6);
    *count = 0;
    for (; *how; how++) {
        float packed[9];
        int n = *how >= 'a' ? *how - 'a' + 1 : *how - '0';
        if (*how == '-') {
            put_text(&a, 13, "a doc string");
            continue;
        }
        for (int i = 0; i < n; i++) {
            packed[i] = (float)++*count / 4;
            if (*how < 'a')
                put_one(&a, packed[i]);
        }
        if (*how >= 'a')
            tn_wire_put_bytes(&a, 7, packed, (size_t)n * sizeof *packed);
    }
    a.len -= cut;
    put_message(&attrs, 5, a);
    put_message(&g, 1, node_bytes("Constant", "c", "", "y", attrs));
    put_value(&g, 12, "y", 0, NULL);
    tn_text bytes = model_bytes(17, g);
    tn_graph *graph = load_bytes(&bytes);
    tn_text_free(&bytes);
    return graph;
}

static void test_forms(void **state) {
    (void)state;
    static const char *const forms[] = {"1",  "9",  "a",    "i",      "99", "9-9", "3-4-5", "ii",
                                        "9i", "i9", "1a1a", "b-2-c3", "-7", "7-",  "0",     "1-1-1"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        int count;
        tn_graph *g = load(forms[i], 0, &count);
        if (!g)
            fail_msg("'%s': %s", forms[i], tn_error_message());
        const tn_attr *attr = tn_node_attr(g, tn_region_first(g, tn_graph_region(g)), "value_floats");
        assert_non_null(attr);
        assert_int_equal(attr->count, count);
        for (int k = 0; k < count; k++)
            if (attr->as.floats[k] != (float)(k + 1) / 4)
                fail_msg("'%s': float %d", forms[i], k);
        /* it stays when the bytes are gone, and in a copy */
        tn_graph *copy = tn_graph_clone(g, NULL, NULL);
        tn_graph_destroy(g);
        attr = tn_node_attr(copy, tn_region_first(copy, tn_graph_region(copy)), "value_floats");
        assert_int_equal(attr->count, count);
        for (int k = 0; k < count; k++)
            assert_true(attr->as.floats[k] == (float)(k + 1) / 4);
        tn_graph_destroy(copy);
    }
}

static void test_cut(void **state) {
    (void)state;
    for (size_t cut = 1; cut < 5; cut++) {
        int count;
        tn_error_clear();
        tn_graph *g = load("99", cut, &count);
        assert_null(g);
        assert_int_equal(tn_error_status(), TN_ERR_MODEL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
