/* What memory values share: a value that is written over in place, one that is dead, none; results are the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tenon/build.h>

#include "runtime/session.h"
#include "support/nets.h"

enum { ROWS = 6, COLUMNS = 50 };

static tn_tensor *ramp(void) {
    tn_tensor *t = tn_tensor_create(TN_F32, 2, (const int64_t[]){ROWS, COLUMNS});
    for (int64_t i = 0; i < ROWS * COLUMNS; i++)
        tn_tensor_set_f64(t, i, (double)(i % 17) / 7 - 1);
    return t;
}

/* Of `how` 0: nodes of which each may take over what the one before left. 1: the same, but all are read at the end. 2: transposed on
   the way, half as many elements, other types. */
static tn_graph *make(int how) {
    tn_graph *g = tn_graph_create();
    tn_value x = tn_input(g, "x", TN_F32, TN_SHAPE("N", COLUMNS)), v[5];
    v[0] = tn_exp(g, x);
    v[1] = how == 2 ? tn_transpose(g, tn_neg(g, v[0]), NULL) : tn_neg(g, v[0]);
    v[2] = how == 2 ? tn_slice_axis(g, tn_add(g, v[1], v[1]), 0, 0, COLUMNS / 2) : tn_abs(g, v[1]);
    v[3] = how == 2 ? tn_cast(g, tn_sqrt(g, tn_abs(g, v[2])), TN_F64) : tn_sqrt(g, v[2]);
    v[4] = tn_tanh(g, v[3]);
    tn_value y = tn_mul(g, v[4], v[4]);
    for (int i = 0; i < 4 && how == 1; i++)
        y = tn_add(g, y, v[i]);
    tn_set_output(g, "y", y);
    assert_int_equal(tn_graph_check(g), TN_OK);
    return g;
}

static uint32_t run(int how, tn_level level, tn_reuse_option reuse, bool guard, uint64_t *arena, tn_tensor **y) {
    tn_graph *g = make(how);
    tn_model *model = tn_model_from_graph(g, NULL);
    tn_session *s = tn_session_create(
        model, TN_OPTIONS(tn_session_options, .level = level, .reuse = reuse, .guard = guard, .threads = 1));
    tn_tensor *x = ramp();
    *y = NULL;
    for (int time = 0; time < 2; time++) {
        tn_tensor_destroy(*y);
        *y = NULL;
        if (!s || tn_session_run(s, 1, (const tn_binding[]){{.name = "x", .tensor = x}}, 1,
                                 (const tn_output[]){{.name = "y", .tensor = y}}) != TN_OK)
            fail_msg("%s", tn_error_message());
    }
    tn_session_report report;
    assert_int_equal(tn_session_describe(s, &report), TN_OK);
    *arena = report.arena_bytes;
    uint32_t over = 0;
    const tn_plan *p = s->whole.compiled->plan;
    for (uint32_t i = 0; i < p->slot.len; i++)
        over += p->slot.data[i].over != 0;
    tn_tensor_destroy(x);
    tn_session_destroy(s);
    tn_model_destroy(model);
    tn_graph_destroy(g);
    return over;
}

static void test_reuse(void **state) {
    (void)state;
    for (int how = 0; how < 3; how++)
        for (int level = 0; level < 3; level++) {
            uint64_t arena[3] = {0}, guarded;
            tn_tensor *want = NULL;
            for (int reuse = 0; reuse < 6; reuse++) {
                tn_tensor *y;
                uint32_t over = run(how, (tn_level)(TN_LEVEL_0 + level), (tn_reuse_option)(reuse % 3), reuse > 2,
                                    reuse > 2 ? &guarded : &arena[reuse], &y);
                if (level == 0)                               /* a kernel for each node */
                    assert_int_equal(over, how == 2 ? 3 : 4); /* also where one value is both operands */
                want = want ? want : tn_tensor_retain(y);
                assert_int_equal(tn_tensor_bytes(y), tn_tensor_bytes(want));
                assert_memory_equal(tn_tensor_data(y), tn_tensor_data(want), tn_tensor_bytes(y));
                tn_tensor_destroy(y);
            }
            tn_tensor_destroy(want);
            assert_true(arena[TN_REUSE_FULL] <= arena[TN_REUSE_IN_PLACE]);
            assert_true(arena[TN_REUSE_IN_PLACE] <= arena[TN_REUSE_NONE]);
            if (level == 0 && how == 0)
                assert_true(arena[TN_REUSE_NONE] - arena[TN_REUSE_IN_PLACE] >= 4 * ROWS * COLUMNS * sizeof(float));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reuse)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
