/* What nobody reads ends no run, on any path; the same result, read, ends it on all of them. Where the file does not even say ranks, a
   node may be refused as a whole when they are known: on all paths or on none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <tenon/model.h>

#include "support/paths.h"

typedef enum where {
    MAIN,   /* a node of the main graph */
    BRANCH, /* a result of both branches of If */
    LOOP,   /* a stacked output of Loop */
    SCAN,   /* and of Scan */
    PLACES
} where;

/* bad = x + w, whose sizes do not fit; fine = -x */
static tn_text body_of(where w, const char *name) {
    tn_text b = message();
    put_text(&b, 2, name);
    if (w == LOOP) {
        put_value(&b, 11, "i", TN_I64, "");
        put_value(&b, 11, "go", TN_BOOL, "");
    } else if (w == SCAN) {
        put_value(&b, 11, "row", TN_F32, "");
    }
    put_message(&b, 1, node_bytes("Neg", "neg", "x", "fine", message()));
    put_message(&b, 1, node_bytes("Add", "wrong", "x,w", "bad", message()));
    if (w == LOOP)
        put_value(&b, 12, "go", TN_BOOL, "");
    put_value(&b, 12, "fine", TN_F32, "?");
    put_value(&b, 12, "bad", TN_F32, "?");
    return b;
}

/* Outputs y and, with `read`, z. */
static tn_text graph_of(where w, bool read, bool named) {
    tn_text g = message(), attrs = message();
    put_value(&g, 11, "x", TN_F32, named ? "N" : NULL);
    put_value(&g, 11, "w", TN_F32, named ? "M" : NULL);
    if (w == MAIN) {
        put_message(&g, 1, node_bytes("Neg", "neg", "x", "y", message()));
        put_message(&g, 1, node_bytes("Add", "wrong", "x,w", "z", message()));
    } else if (w == BRANCH) {
        put_value(&g, 11, "c", TN_BOOL, "");
        attr_graph(&attrs, "then_branch", body_of(w, "then"));
        attr_graph(&attrs, "else_branch", body_of(w, "else"));
        put_message(&g, 1, node_bytes("If", "if", "c", "y,z", attrs));
    } else {
        attr_graph(&attrs, "body", body_of(w, "body"));
        if (w == SCAN)
            attr_int(&attrs, "num_scan_inputs", 1);
        else
            put_ints(&g, 5, "trips", 1, (const int64_t[]){2});
        put_message(&g, 1, node_bytes(w == LOOP ? "Loop" : "Scan", "loop", w == LOOP ? "trips," : "x", "y,z", attrs));
    }
    put_value(&g, 12, "y", TN_F32, NULL);
    if (read)
        put_value(&g, 12, "z", TN_F32, NULL);
    return g;
}

static void test_unread(void **state) {
    (void)state;
    tn_tensor *x = tn_tensor_from_f32(1, (const int64_t[]){2}, (const float[]){1, 2}),
              *w = tn_tensor_from_f32(1, (const int64_t[]){3}, (const float[]){1, 2, 3}),
              *c = tn_tensor_create(TN_BOOL, 0, NULL);
    const tn_binding in[] = {{.name = "x", .tensor = x}, {.name = "w", .tensor = w}, {.name = "c", .tensor = c}};
    for (int place = 0; place < PLACES; place++)
        for (int form = 0; form < 4; form++) {
            bool read = form & 1, named = form & 2;
            tn_text bytes;
            tn_model *model = path_model(17, graph_of(place, read, named), NULL, &bytes);
            if (!model)
                fail_msg("%s", tn_error_message());
            tn_status want = read ? TN_ERR_INPUT : TN_OK;
            for (int p = 0; p < RUN_PATHS; p++) {
                tn_tensor *y = NULL, *z = NULL;
                const tn_output out[] = {{.name = "y", .tensor = &y}, {.name = "z", .tensor = &z}};
                tn_session *s = tn_session_create(model, &run_paths[p].options);
                tn_status status =
                    s ? tn_session_run(s, place == BRANCH ? 3 : 2, in, read ? 2 : 1, out) : tn_error_status();
                if (!named && !read && p == 0)
                    want = status;
                if (status != want)
                    fail_msg("place %d, %s, %s: status %d: %s", place, read ? "read" : "unread", run_paths[p].name,
                             (int)status, status == TN_OK ? "" : tn_error_message());
                if (status != TN_OK && !strstr(tn_error_message(), "'wrong'"))
                    fail_msg("place %d, %s: %s", place, run_paths[p].name, tn_error_message());
                tn_tensor_destroy(y);
                tn_tensor_destroy(z);
                tn_session_destroy(s);
            }
            tn_model_destroy(model);
            tn_text_free(&bytes);
        }
    tn_tensor_destroy(x);
    tn_tensor_destroy(w);
    tn_tensor_destroy(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unread)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
