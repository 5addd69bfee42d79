/* Running random programs. */
#include "support/random_run.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tenon/session.h>

#include "base/os.h"
#include "interp/oracle.h"
#include "passes/pass.h"
#include "support/random_graph.h"

#define MOST 64 /* inputs and outputs of one graph */

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
    char *text;
    size_t size;
} trial;

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
    bool ok = (status == TN_OK) == (t->expected == TN_OK);
    if (!ok && status != TN_OK)
        snprintf(t->text, t->size, "%s: fails: %s", label, tn_error_message());
    else if (!ok)
        snprintf(t->text, t->size, "%s: runs, but the reference fails", label);
    tn_session_destroy(s);
    for (uint32_t i = 0; i < m && ok && status == TN_OK; i++) {
        tn_difference d;
        if (tn_oracle_judge(&t->oracle[t->level >= 2], i, out[i], false, &ok, &d) != TN_OK)
            abort();
        if (!ok)
            snprintf(t->text, t->size, "%s: output '%s': %s (%" PRIu64 " elements)", label,
                     tn_graph_output_name(t->graph, i), d.text, d.elements);
    }
    if (status != TN_OK || !ok)
        release(status == TN_OK ? m : 0, out);
    return ok;
}

static bool try_all(trial *t, uint64_t seed, bool thorough) {
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
                        snprintf(t->text, t->size, "%s: output %" PRIu32 " has other bits than on %d threads", label, i,
                                 begin);
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

bool random_holds(const tn_graph *graph, tn_object *const *in, uint64_t seed, bool thorough, char *text, size_t size) {
    tn_graph *g = tn_graph_clone(graph, NULL, NULL);
    fed f = {g, in};
    trial t = {.graph = g, .in = in, .text = text, .size = size};
    if (!g)
        abort();
    for (int i = 0; i < 2; i++) {
        t.oracle[i] = (tn_oracle){
            .run = run_reference, .ctx = &f, .count = tn_graph_output_count(g), .seed = seed, .winograd = i == 1};
        t.expected = tn_oracle_begin(&t.oracle[i]);
    }
    bool ok = false;
    if (!(t.model = tn_model_from_graph(g, NULL)))
        snprintf(text, size, "not a good graph: %s", tn_error_message());
    else
        ok = try_all(&t, seed, thorough);
    for (int i = 0; i < 2; i++)
        tn_oracle_free(&t.oracle[i]);
    tn_model_destroy(t.model);
    tn_graph_destroy(g);
    return ok;
}

/* --- making it small --------------------------------------------------------------------------------------------------------------- */

typedef struct specimen {
    tn_graph *graph;
    tn_object *in[MOST];
} specimen;

static void specimen_free(specimen *s) {
    if (s->graph)
        release(tn_graph_input_count(s->graph), s->in);
    tn_graph_destroy(s->graph);
    s->graph = NULL;
}

static void specimen_copy(specimen *to, const specimen *from) {
    to->graph = tn_graph_clone(from->graph, NULL, NULL);
    if (!to->graph)
        abort();
    for (uint32_t i = 0; i < tn_graph_input_count(from->graph); i++)
        to->in[i] = tn_object_retain(from->in[i]);
}

/* Takes away what no output needs. */
static bool tidy(specimen *s) {
    tn_pass_context c = {.passes = "dce", .just_listed = true};
    bool ok = tn_passes_run(s->graph, &c) == TN_OK;
    tn_pass_context_free(&c);
    for (uint32_t i = tn_graph_input_count(s->graph); ok && i-- > 0;) {
        if (tn_value_use_count(s->graph, tn_graph_input(s->graph, i)))
            continue;
        uint32_t n = tn_graph_input_count(s->graph);
        tn_object_destroy(s->in[i]);
        for (uint32_t k = i; k + 1 < n; k++)
            s->in[k] = s->in[k + 1];
        s->in[n - 1] = NULL;
        ok = tn_region_remove_arg(s->graph, tn_graph_region(s->graph), i) == TN_OK;
    }
    tn_graph *clean = ok ? tn_graph_clone(s->graph, NULL, NULL) : NULL;
    if (clean) {
        tn_graph_destroy(s->graph);
        s->graph = clean;
    }
    return clean != NULL;
}

static bool still_fails(const specimen *s, uint64_t seed) {
    char text[4000];
    return !random_holds(s->graph, s->in, seed, true, text, sizeof text);
}

/* Takes `next` in place of `now` if it is good and still fails; frees the other. */
static bool adopt(specimen *now, specimen *next, bool good, uint64_t seed) {
    bool better = good && tidy(next) && still_fails(next, seed);
    specimen_free(better ? now : next);
    if (better)
        *now = *next;
    return better;
}

static bool keep_output(specimen *s, uint32_t index) {
    tn_graph *g = s->graph;
    tn_value v = tn_graph_output(g, index);
    uint32_t name = g->output_name.data[index];
    bool ok = tn_region_return(g, tn_graph_region(g), 1, &v) == TN_OK;
    g->output_name.data[0] = name;
    g->output_name.len = 1;
    return ok;
}

/* An input in place of a node's output, fed with what the reference gives for it. */
static bool cut(specimen *s, tn_node node, uint32_t output) {
    tn_graph *g = s->graph;
    tn_value v = tn_node_output(g, node, output), in[MOST];
    uint32_t n = tn_graph_input_count(g);
    tn_object *object = NULL;
    if (n + 1 >= MOST || !tn_value_use_count(g, v))
        return false;
    for (uint32_t i = 0; i < n; i++)
        in[i] = tn_graph_input(g, i);
    if (tn_interp_run(g, NULL, n, in, s->in, 1, &v, &object) != TN_OK)
        return false;
    char name[24];
    static uint32_t cuts;
    snprintf(name, sizeof name, "cut%" PRIu32, ++cuts);
    tn_value arg = tn_region_add_arg(g, tn_graph_region(g), tn_value_type(g, v), name);
    s->in[n] = object;
    return arg.id && tn_value_replace_uses(g, v, arg) == TN_OK;
}

static bool cut_somewhere(specimen *s, uint64_t seed) {
    for (tn_node node = tn_region_last(s->graph, tn_graph_region(s->graph)); node.id;
         node = tn_node_previous(s->graph, node)) {
        if (tn_node_has_trait(s->graph, node, TN_TERMINATOR))
            continue;
        for (uint32_t i = 0; i < tn_node_output_count(s->graph, node); i++) {
            specimen next = {0};
            uint32_t *map;
            next.graph = tn_graph_clone(s->graph, NULL, &map);
            if (!next.graph)
                abort();
            for (uint32_t k = 0; k < tn_graph_input_count(s->graph); k++)
                next.in[k] = tn_object_retain(s->in[k]);
            bool good = cut(&next, (tn_node){map[node.id]}, i);
            tn_graph_free_map(s->graph, map);
            if (adopt(s, &next, good, seed))
                return true;
        }
    }
    return false;
}

static void print_inputs(const specimen *s) {
    for (uint32_t i = 0; i < tn_graph_input_count(s->graph); i++) {
        tn_tensor *t = tn_object_tensor(s->in[i]);
        char text[200];
        if (!t)
            continue;
        fprintf(stderr, "  %s = %s", tn_value_name(s->graph, tn_graph_input(s->graph, i)),
                tn_tensor_describe(t, text, sizeof text));
        for (int64_t k = 0; k < t->count && k < 64; k++)
            fprintf(stderr, "%s%.9g", k ? "," : " [", tn_tensor_get_f64(t, k));
        fprintf(stderr, "%s\n", t->count > 64 ? ",...]" : t->count ? "]" : "");
    }
}

void random_shrink(const tn_graph *graph, tn_object *const *in, uint64_t seed) {
    specimen s = {0}, original = {.graph = (tn_graph *)graph};
    memcpy(original.in, in, tn_graph_input_count(graph) * sizeof *in);
    specimen_copy(&s, &original);
    for (uint32_t i = 0; tn_graph_output_count(s.graph) > 1 && i < tn_graph_output_count(s.graph); i++) {
        specimen next = {0};
        specimen_copy(&next, &s);
        if (adopt(&s, &next, keep_output(&next, i), seed))
            break;
    }
    for (int i = 0; i < 100 && cut_somewhere(&s, seed); i++)
        ;
    char text[4000], *printed = tn_graph_print(s.graph);
    random_holds(s.graph, s.in, seed, true, text, sizeof text);
    fprintf(stderr, "%s\n%s", text, printed ? printed : "");
    print_inputs(&s);
    tn_graph_free_text(s.graph, printed);
    specimen_free(&s);
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
        char text[4000] = "";
        tn_graph *g = random_graph_make(seed, size);
        random_graph_inputs(g, size, seed, in);
        if (getenv("TENON_RANDOM_VERBOSE") && count == 1) {
            char *printed = tn_graph_print(g);
            fprintf(stderr, "%s", printed ? printed : "");
            tn_graph_free_text(g, printed);
        }
        if (!random_holds(g, in, seed, thorough, text, sizeof text)) {
            failures++;
            fprintf(stderr, "seed %" PRIu64 ": %s\n  again: TENON_SEED=%" PRIu64 " <this program>\n", seed, text, seed);
            if (shrunk++ < 1 || count == 1)
                random_shrink(g, in, seed);
        }
        release(tn_graph_input_count(g), in);
        tn_graph_destroy(g);
    }
    for (int i = 0; i < 4; i++)
        signal(signals[i], before[i]);
    return failures;
}
