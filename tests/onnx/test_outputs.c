/* As many outputs as the operator's row says, the required ones with names: of every operator, before anything else is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "onnx/model.h"
#include "onnx/op.h"
#include "support/onnx_bytes.h"

/* A node of the row with its required inputs and `count` outputs, of which `nameless` (-1: none) has no name: what is said of it. */
static const char *said(const tn_onnx_op *row, int count, int nameless) {
    char inputs[200] = "";
    for (int i = 0; i < row->inputs.min; i++)
        snprintf(inputs + strlen(inputs), sizeof inputs - strlen(inputs), "%sa", i ? "," : "");
    tn_text g = message(), node = node_bytes(row->name, "n", inputs, "", message());
    for (int i = 0; i < count; i++) {
        char name[16] = "";
        if (i != nameless)
            snprintf(name, sizeof name, "y%d", i);
        tn_wire_put_bytes(&node, 2, name, strlen(name));
    }
    if (*row->domain)
        put_text(&node, 7, row->domain);
    put_message(&g, 1, node);
    put_value(&g, 11, "a", TN_F32, "1,1,1");
    put_value(&g, 12, "a", TN_F32, "1,1,1");
    int version = row->until ? row->until : tn_onnx_newest(row->domain);
    tn_text bytes = model_bytes(*row->domain ? 21 : version, g);
    if (*row->domain)
        put_opset(&bytes, 8, row->domain, version);
    tn_graph *graph = load_bytes(&bytes);
    if (!graph)
        fail_msg("%s: %s", row->name, tn_error_message());
    static char text[2000];
    tn_status status = tn_onnx_expand(graph, 0);
    snprintf(text, sizeof text, "%s", status == TN_OK ? "nothing" : tn_error_message());
    if (status != TN_OK && status != TN_ERR_MODEL)
        fail_msg("%s: status %d: %s", row->name, (int)status, text);
    tn_graph_destroy(graph);
    tn_text_free(&bytes);
    return text;
}

static void says(const tn_onnx_op *row, int count, int nameless, const char *wanted) {
    const char *text = said(row, count, nameless);
    if (!strstr(text, wanted) || !strstr(text, "'n'"))
        fail_msg("%s with %d outputs, %d without name: '%s' is not said: %s", row->name, count, nameless, wanted, text);
}

static void test_outputs(void **state) {
    (void)state;
    uint32_t families, checked = 0;
    const tn_onnx_family *const *all = tn_onnx_families(&families);
    for (uint32_t f = 0; f < families; f++)
        for (uint32_t i = 0; i < all[f]->count; i++) {
            const tn_onnx_op *row = &all[f]->rows[i];
            if (row->outputs.max < 0)
                continue;
            char wanted[100];
            if (row->outputs.min) {
                snprintf(wanted, sizeof wanted, "it has %d outputs, at least %d are needed", row->outputs.min - 1,
                         row->outputs.min);
                says(row, row->outputs.min - 1, -1, wanted);
            }
            snprintf(wanted, sizeof wanted, "it has %d outputs, at most %d are allowed", row->outputs.max + 1,
                     row->outputs.max);
            says(row, row->outputs.max + 1, -1, wanted);
            for (int k = 0; k < row->outputs.max; k++) {
                snprintf(wanted, sizeof wanted, "its required output %d has no name", k);
                if (k < row->outputs.min)
                    says(row, row->outputs.max, k, wanted);
                else if (strstr(said(row, row->outputs.max, k), "has no name"))
                    fail_msg("%s without the optional output %d: %s", row->name, k, said(row, row->outputs.max, k));
            }
            checked++;
        }
    assert_true(checked > 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_outputs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
