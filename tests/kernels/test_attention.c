/* Attention as one kernel, against the parts of it one after the other, bit for bit: whoever asks for the weights gets these. Any sizes, masks and
   shared keys, at each level, on any number of threads; and the memory that it takes. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <tenon/build.h>

#include "base/os.h"
#include "runtime/session.h"
#include "support/random_attention.h"

typedef struct trial {
    uint64_t seed;
    int64_t size[7]; /* batch, batch, heads, queries, keys, depth, width */
    int rank;
    int64_t group;
    bool symbolic;
} trial;

static tn_graph *build(const trial *t, bool asks) {
    tn_graph *g = tn_graph_create();
    random_rng r = {t->seed};
    random_attention_sizes s = {.rank = t->rank,
                                .group = t->group,
                                .known_keys = !t->symbolic,
                                .query_count = t->size[3],
                                .key_count = t->size[4]};
    tn_dim *to[7] = {&s.batch[0], &s.batch[1], &s.heads, &s.queries, &s.keys, &s.depth, &s.width};
    for (int i = 0; i < 7; i++) {
        bool named = t->symbolic && (i == 0 || i == 3 || i == 4);
        *to[i] = named ? tn_dim_symbol(g, i == 0 ? "B" : i == 3 ? "T" : "S") : tn_dim_const(g, t->size[i]);
    }
    tn_value operand[3];
    for (int i = 0; i < 3; i++) {
        tn_dim dims[8];
        int64_t sizes[8];
        tn_shape shape = {.rank = random_attention_dims(g, &s, i, dims)};
        const int64_t all[] = {t->size[0], t->size[1]};
        for (int n = 0; n < shape.rank; n++)
            sizes[n] = n < t->rank ? all[n] : 0;
        sizes[t->rank] = i ? t->size[2] / t->group : t->size[2];
        sizes[t->rank + 1] = i ? t->size[4] : t->size[3];
        sizes[t->rank + 2] = i == 2 ? t->size[6] : t->size[5];
        for (int n = 0; n < shape.rank; n++) {
            bool first = t->symbolic && n == 0 && t->rank, second = t->symbolic && n == t->rank + 1;
            shape.item[n] = first    ? tn_shape_named("B")
                            : second ? tn_shape_named(i ? "S" : "T")
                                     : tn_shape_sized(sizes[n]);
        }
        operand[i] = tn_input(g, i == 0 ? "q" : i == 1 ? "k" : "v", TN_F32, shape);
    }
    random_attention a = random_attention_make(g, &r, &s, operand[0], operand[1], operand[2]);
    tn_set_output(g, "y", a.result);
    if (asks)
        tn_set_output(g, "p", a.weights);
    if (tn_graph_check(g) != TN_OK)
        fail_msg("seed %" PRIu64 ": %s", t->seed, tn_error_message());
    return g;
}

static tn_tensor *operand_of(const trial *t, int i) {
    random_rng r = {t->seed * 3 + (uint64_t)i};
    int64_t dims[5] = {t->size[0], t->size[1]};
    dims[t->rank] = i ? t->size[2] / t->group : t->size[2];
    dims[t->rank + 1] = i ? t->size[4] : t->size[3];
    dims[t->rank + 2] = i == 2 ? t->size[6] : t->size[5];
    return random_tensor(&r, TN_F32, t->rank + 3, dims, t->seed % 5 == 0 ? 3 : 0);
}

static uint32_t attentions(const tn_session *s) {
    const tn_plan *p = s->whole.compiled->plan;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->kernel.len; i++)
        n += p->kernel.data[i].kind == TN_KERNEL_ATTENTION;
    return n;
}

/* Runs twice, so that what is kept is used. */
static tn_tensor *run(const trial *t, tn_model *model, const tn_session_options *o, uint32_t *kernels) {
    tn_session *s = tn_session_create(model, o);
    tn_tensor *in[3], *y = NULL;
    for (int i = 0; i < 3; i++)
        in[i] = operand_of(t, i);
    for (int time = 0; time < 2; time++) {
        tn_tensor_destroy(y);
        y = NULL;
        if (!s || tn_session_run(s, 3,
                                 (const tn_binding[]){{.name = "q", .tensor = in[0]},
                                                      {.name = "k", .tensor = in[1]},
                                                      {.name = "v", .tensor = in[2]}},
                                 1, (const tn_output[]){{.name = "y", .tensor = &y}}) != TN_OK)
            fail_msg("seed %" PRIu64 ": %s", t->seed, tn_error_message());
    }
    if (kernels)
        *kernels = attentions(s);
    for (int i = 0; i < 3; i++)
        tn_tensor_destroy(in[i]);
    tn_session_destroy(s);
    return y;
}

static bool same_bits(const tn_tensor *a, const tn_tensor *b) {
    const float *x = a->data, *y = b->data;
    bool same = a->count == b->count;
    for (int64_t i = 0; i < a->count && same; i++)
        same = memcmp(&x[i], &y[i], sizeof *x) == 0 || (x[i] != x[i] && y[i] != y[i]);
    return same;
}

static uint32_t found, looked;

static void compare(const trial *t) {
    static const char *const levels[] = {"generic", NULL};
    tn_graph *g[2] = {build(t, false), build(t, true)};
    tn_model *model[2] = {tn_model_from_graph(g[0], NULL), tn_model_from_graph(g[1], NULL)};
    for (int level = 0; level < 2; level++) {
        tn_session_options o = {.size = sizeof o, .level = TN_LEVEL_2, .isa = levels[level], .threads = 1};
        /* all that is asked for at once */
        tn_session *s = tn_session_create(model[1], &o);
        if (!s)
            fail_msg("seed %" PRIu64 ": %s", t->seed, tn_error_message());
        assert_int_equal(attentions(s), 0);
        tn_tensor *in[3], *want = NULL, *p = NULL;
        for (int i = 0; i < 3; i++)
            in[i] = operand_of(t, i);
        if (tn_session_run(
                s, 3,
                (const tn_binding[]){
                    {.name = "q", .tensor = in[0]}, {.name = "k", .tensor = in[1]}, {.name = "v", .tensor = in[2]}},
                2, (const tn_output[]){{.name = "y", .tensor = &want}, {.name = "p", .tensor = &p}}) != TN_OK)
            fail_msg("seed %" PRIu64 ": %s", t->seed, tn_error_message());
        for (int i = 0; i < 3; i++)
            tn_tensor_destroy(in[i]);
        tn_session_destroy(s);
        for (int threads = 1; threads <= 4; threads++)
            for (int guard = 0; guard < (threads == 1 ? 2 : 1); guard++) {
                uint32_t kernels = 0;
                o.threads = threads;
                o.oversubscribe = true;
                o.guard = guard;
                o.level = threads == 3 ? TN_LEVEL_1 : TN_LEVEL_2;
                tn_tensor *y = run(t, model[0], &o, &kernels);
                if (!same_bits(want, y))
                    fail_msg("seed %" PRIu64 ", %s, %d threads: other bits", t->seed,
                             levels[level] ? levels[level] : "best", threads);
                found += kernels;
                looked++;
                tn_tensor_destroy(y);
            }
        tn_tensor_destroy(want);
        tn_tensor_destroy(p);
    }
    for (int i = 0; i < 2; i++) {
        tn_model_destroy(model[i]);
        tn_graph_destroy(g[i]);
    }
}

static trial trial_of(uint64_t seed) {
    static const int64_t sizes[] = {1, 2, 3, 5, 8, 13, 16, 17, 33, 40, 64, 65, 100, 300, 700};
    random_rng r = {seed};
    trial t = {.seed = seed, .rank = (int)random_below(&r, 3), .symbolic = random_chance(&r, 40), .group = 1};
    for (;;) {
        t.size[0] = 1 + random_below(&r, 3);
        t.size[1] = 1 + random_below(&r, 2);
        t.size[2] = 1 + random_below(&r, 4);
        for (int i = 3; i < 7; i++)
            t.size[i] = random_chance(&r, 5) ? random_below(&r, 2) : sizes[random_below(&r, i < 5 ? 15 : 11)];
        t.group = t.size[2] % 2 == 0 && random_chance(&r, 40) ? 2 : 1;
        int64_t heads = t.size[2] * (t.rank > 0 ? t.size[0] : 1) * (t.rank > 1 ? t.size[1] : 1);
        if (heads * t.size[3] * t.size[4] * (t.size[5] + t.size[6] + 8) < 8000000)
            return t;
    }
}

static void test_bits(void **state) {
    (void)state;
    const char *one = getenv("TENON_SEED");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1, count = one ? 1 : 250;
    for (uint64_t seed = first; seed < first + count; seed++) {
        trial t = trial_of(seed);
        compare(&t);
    }
    printf("%" PRIu32 " of %" PRIu32 " plans have it as one kernel\n", found, looked);
    if (!one)
        assert_true(found > looked * 3 / 4);
}

/* What a run takes besides its inputs and outputs, for so many queries and keys. */
static size_t bytes_of(int64_t n, int threads) {
    trial t = {.seed = 0, .size = {1, 1, 4, n, n, 32, 32}, .rank = 1, .group = 1};
    tn_graph *g = tn_graph_create();
    tn_value x[3];
    for (int i = 0; i < 3; i++)
        x[i] = tn_input(g, i == 0 ? "q" : i == 1 ? "k" : "v", TN_F32, TN_SHAPE(1, 4, "T", 32));
    tn_value scores =
        tn_div(g, tn_matmul(g, x[0], tn_transpose(g, x[1], (const int[]){0, 1, 3, 2})), tn_scalar(g, TN_F32, 6));
    tn_set_output(g, "y", tn_matmul(g, tn_softmax(g, scores, -1), x[2]));
    tn_heap *heap = tn_heap_create(NULL);
    tn_model *model = tn_model_from_graph(g, TN_OPTIONS(tn_model_options, .heap = heap));
    uint32_t kernels;
    size_t before = tn_heap_in_use(heap);
    tn_tensor *y = run(&t, model, TN_OPTIONS(tn_session_options, .threads = threads, .oversubscribe = true), &kernels);
    size_t peak = tn_heap_peak(heap) - before - tn_tensor_bytes(y);
    assert_int_equal(kernels, 1);
    tn_tensor_destroy(y);
    tn_model_destroy(model);
    tn_graph_destroy(g);
    tn_heap_destroy(heap);
    return peak;
}

static void test_memory(void **state) {
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        size_t some = bytes_of(1024, threads), more = bytes_of(2048, threads);
        printf("%d thread%s: %zu bytes for 1024, %zu for 2048\n", threads, threads > 1 ? "s" : "", some, more);
        assert_true(more < some * 5 / 2);
        assert_true(more < 2048u * 2048 * 4); /* the scores of one head */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits), cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
