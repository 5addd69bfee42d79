/* Running random programs. */
#include "support/random_run.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tenon/session.h>

#include "base/os.h"
#include "interp/oracle.h"
#include "support/random_graph.h"

enum { MOST = RANDOM_OBJECTS };

typedef struct fed {
    const tn_graph *graph;
    tn_object *const *in;
} fed;

static tn_status run_reference(void *ctx, const tn_interp_options *options, tn_object **out) {
    const fed *f = ctx;
    tn_value in[MOST], wanted[MOST];
    uint32_t n = tn_graph_input_count(f->graph), m = tn_graph_output_count(f->graph);
    for (uint32_t i = 0; i < n; i++)
        in[i] = tn_graph_input(f->graph, i);
    for (uint32_t i = 0; i < m; i++)
        wanted[i] = tn_graph_output(f->graph, i);
    return tn_interp_run(f->graph, options, n, in, f->in, m, wanted, out);
}

typedef struct trial {
    tn_model *model;
    const tn_graph *graph;
    tn_object *const *in;
    tn_oracle oracle[2]; /* of levels below 2, and from there on */
    int level;
    tn_status expected;
    const random_options *options;
    random_failure *failure;
} trial;

static void TN_PRINTF(4, 5) failed(trial *t, random_kind kind, tn_status status, const char *format, ...) {
    random_failure *f = t->failure;
    va_list args;
    f->kind = kind;
    f->status = status;
    snprintf(f->what, sizeof f->what, "%s", status == TN_OK ? "" : tn_error_what());
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
}

static void release(uint32_t n, tn_object **objects) {
    for (uint32_t i = 0; i < n; i++) {
        tn_object_destroy(objects[i]);
        objects[i] = NULL;
    }
}

/* One way to run it. `out` receives the results when it ran. */
static bool try_one(trial *t, const tn_session_options *o, const char *label, tn_object **out) {
    tn_binding in[MOST];
    tn_output outputs[MOST];
    uint32_t n = tn_graph_input_count(t->graph), m = tn_graph_output_count(t->graph);
    for (uint32_t i = 0; i < n; i++)
        in[i] = (tn_binding){.name = tn_value_name(t->graph, tn_graph_input(t->graph, i)), .object = t->in[i]};
    for (uint32_t i = 0; i < m; i++)
        outputs[i] = (tn_output){.name = tn_graph_output_name(t->graph, i), .object = &out[i]};
    tn_session *s = tn_session_create(t->model, o);
    tn_status status = s ? tn_session_run(s, n, in, m, outputs) : tn_error_status();
    if (status == TN_OK && t->options->fault && (status = t->options->fault(t->options->ctx, t->graph, out)) != TN_OK)
        release(m, out);
    bool ok = (status == TN_OK) == (t->expected == TN_OK), unread = false;
    if (!ok && status == TN_OK && t->options->unread && t->level > 0)
        ok = unread = true;
    if (!ok && status != TN_OK)
        failed(t, RANDOM_PLAN_FAILS, status, "%s: fails: %s", label, tn_error_message());
    else if (!ok)
        failed(t, RANDOM_PLAN_RUNS, TN_OK, "%s: runs, but the reference fails", label);
    tn_session_destroy(s);
    for (uint32_t i = 0; i < m && ok && status == TN_OK && !unread; i++) {
        tn_difference d;
        if (tn_oracle_judge(&t->oracle[t->level >= 2], i, out[i], false, &ok, &d) != TN_OK)
            abort();
        if (!ok)
            failed(t, RANDOM_DIFFERS, TN_OK, "%s: output '%s': %s (%" PRIu64 " elements)", label,
                   tn_graph_output_name(t->graph, i), d.text, d.elements);
    }
    if (status != TN_OK || !ok)
        release(status == TN_OK ? m : 0, out);
    return ok;
}

static bool try_all(trial *t) {
    uint64_t seed = t->options->seed;
    bool thorough = t->options->thorough;
    uint32_t m = tn_graph_output_count(t->graph);
    for (int level = 0; level <= 2; level++)
        for (int isa = 0; isa < TN_ISA_COUNT; isa++) {
            tn_object *first[MOST] = {NULL};
            t->level = level;
            if (!tn_cpu_has((tn_isa)isa) ||
                (!thorough && isa != (int)tn_cpu_best() && (seed + (uint64_t)level) % 3 != 0))
                continue;
            int count = thorough ? 4 : 1, begin = thorough ? 1 : 1 + (int)((seed + (uint64_t)level) % 4);
            bool ok = true;
            for (int threads = begin; threads < begin + count && ok; threads++) {
                char label[80];
                tn_object *out[MOST] = {NULL};
                static const char *const lists[] = {NULL,      NULL,   NULL,      "cse",
                                                    "cleanup", "fold", "dce,cse", "fold,cleanup,cse"};
                const char *disable = lists[(seed / 3 + (uint64_t)level) % 8];
                snprintf(label, sizeof label, "-O%d --isa %s --threads %d%s%s", level, tn_isa_name((tn_isa)isa),
                         threads, disable ? " --disable " : "", disable ? disable : "");
                ok = try_one(t,
                             TN_OPTIONS(tn_session_options, .level = (tn_level)(TN_LEVEL_0 + level), .threads = threads,
                                        .oversubscribe = true, .isa = tn_isa_name((tn_isa)isa), .disable = disable,
                                        .verify = thorough),
                             label, out);
                for (uint32_t i = 0; i < m && ok && first[0]; i++)
                    if (!tn_object_same_bits(first[i], out[i])) {
                        ok = false;
                        failed(t, RANDOM_OTHER_BITS, TN_OK, "%s: output %" PRIu32 " has other bits than on %d threads",
                               label, i, begin);
                    }
                if (!first[0] && ok)
                    memcpy(first, out, sizeof first);
                else
                    release(m, out);
            }
            release(m, first);
            if (!ok)
                return false;
        }
    return true;
}

bool random_holds(const tn_graph *graph, tn_object *const *in, const random_options *options, random_failure *failure) {
    tn_graph *g = tn_graph_clone(graph, NULL, NULL);
    fed f = {g, in};
    trial t = {.graph = g, .in = in, .options = options, .failure = failure};
    failure->kind = RANDOM_HOLDS;
    if (!g)
        abort();
    for (int i = 0; i < 2; i++) {
        t.oracle[i] = (tn_oracle){.run = run_reference,
                                  .ctx = &f,
                                  .count = tn_graph_output_count(g),
                                  .seed = options->seed,
                                  .winograd = i == 1};
        t.expected = tn_oracle_begin(&t.oracle[i]);
        failure->refused = t.expected != TN_OK;
    }
    bool ok = false;
    if (!(t.model = tn_model_from_graph(g, NULL)))
        failed(&t, RANDOM_NO_MODEL, tn_error_status(), "not a good graph: %s", tn_error_message());
    else
        ok = try_all(&t);
    for (int i = 0; i < 2; i++)
        tn_oracle_free(&t.oracle[i]);
    tn_model_destroy(t.model);
    tn_graph_destroy(g);
    return ok;
}

/* --- many ------------------------------------------------------------------------------------------------------------------------------- */

static volatile uint64_t seed_now;

/* A crash names its seed. */
static void on_crash(int number) {
    char text[64] = "crash: TENON_SEED=", digits[24];
    size_t n = strlen(text), k = 0;
    for (uint64_t rest = seed_now; k == 0 || rest; rest /= 10)
        digits[k++] = (char)('0' + rest % 10);
    while (k)
        text[n++] = digits[--k];
    text[n++] = '\n';
    if (write(2, text, n) < 0)
        n = 0;
    signal(number, SIG_DFL);
    raise(number);
}

uint64_t random_run(uint64_t first, uint64_t count, bool thorough, double seconds, uint64_t *ran) {
    uint64_t failures = 0, shrunk = 0;
    double start = tn_clock();
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
    void (*before[4])(int);
    for (int i = 0; i < 4; i++)
        before[i] = signal(signals[i], on_crash);
    for (*ran = 0; *ran < count && !(seconds > 0 && tn_clock() - start > seconds); ++*ran) {
        uint64_t seed = seed_now = first + *ran;
        int64_t size[RANDOM_SYMBOLS];
        tn_object *in[MOST] = {NULL};
        random_options options = {.seed = seed, .thorough = thorough};
        random_failure failure;
        tn_graph *g = random_graph_make(seed, size);
        random_graph_inputs(g, size, seed, in);
        if (getenv("TENON_RANDOM_VERBOSE") && count == 1) {
            char *printed = tn_graph_print(g);
            fprintf(stderr, "%s", printed ? printed : "");
            tn_graph_free_text(g, printed);
        }
        if (!random_holds(g, in, &options, &failure)) {
            failures++;
            fprintf(stderr, "seed %" PRIu64 ": %s\n  again: TENON_SEED=%" PRIu64 " <this program>\n", seed,
                    failure.text, seed);
            if (shrunk++ < 1 || count == 1) {
                options.thorough = true;
                random_print_small(g, in, &options);
            };
        }
        release(tn_graph_input_count(g), in);
        tn_graph_destroy(g);
    }
    for (int i = 0; i < 4; i++)
        signal(signals[i], before[i]);
    return failures;
}
