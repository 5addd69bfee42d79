/* Making failing random programs small. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "interp/interp.h"
#include "passes/pass.h"
#include "support/random_run.h"

enum { MOST = RANDOM_OBJECTS };

typedef struct specimen {
    tn_graph *graph;
    tn_object *in[MOST];
} specimen;

/* What it has to go on failing with. */
typedef struct aim {
    const random_options *options;
    random_failure failure;
} aim;

static void specimen_free(specimen *s) {
    for (uint32_t i = 0; s->graph && i < tn_graph_input_count(s->graph); i++)
        tn_object_destroy(s->in[i]);
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

/* The same words, whatever the names in quotes, the shapes in brackets and the numbers. */
static bool same_words(const char *a, const char *b) {
    for (;;) {
        const char **at[] = {&a, &b};
        for (int i = 0; i < 2; i++)
            while (**at[i] && strchr("'[0123456789", **at[i])) {
                const char *end = **at[i] == '\''  ? strchr(*at[i] + 1, '\'')
                                  : **at[i] == '[' ? strchr(*at[i], ']')
                                                   : NULL;
                *at[i] = end ? end + 1 : *at[i] + 1;
            }
        if (*a != *b)
            return false;
        if (!*a++)
            return true;
        b++;
    }
}

/* A cut that fails in another way is another failure, often one of the cut alone: a size that an input had is not known without it. */
static bool fails_alike(const specimen *s, const aim *a) {
    random_failure now;
    return !random_holds(s->graph, s->in, a->options, &now) && now.kind == a->failure.kind &&
           now.status == a->failure.status && same_words(now.what, a->failure.what);
}

/* Takes `next` in place of `now` if it is good and still fails; frees the other. */
static bool adopt(specimen *now, specimen *next, bool good, const aim *a) {
    bool better = good && tidy(next) && fails_alike(next, a);
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

static bool cut_somewhere(specimen *s, const aim *a) {
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
            if (adopt(s, &next, good, a))
                return true;
        }
    }
    return false;
}

tn_graph *random_shrink(const tn_graph *graph, tn_object *const *in, const random_options *options,
                        tn_object **small_in, random_failure *failure) {
    specimen s = {0}, original = {.graph = (tn_graph *)graph};
    aim a = {.options = options};
    memcpy(original.in, in, tn_graph_input_count(graph) * sizeof *in);
    specimen_copy(&s, &original);
    if (!random_holds(s.graph, s.in, options, &a.failure)) {
        for (uint32_t i = 0; tn_graph_output_count(s.graph) > 1 && i < tn_graph_output_count(s.graph); i++) {
            specimen next = {0};
            specimen_copy(&next, &s);
            if (adopt(&s, &next, keep_output(&next, i), &a))
                break;
        }
        for (int i = 0; i < 100 && cut_somewhere(&s, &a); i++)
            ;
    }
    random_holds(s.graph, s.in, options, failure);
    memcpy(small_in, s.in, tn_graph_input_count(s.graph) * sizeof *small_in);
    return s.graph;
}

static void print_inputs(const tn_graph *g, tn_object *const *in) {
    for (uint32_t i = 0; i < tn_graph_input_count(g); i++) {
        tn_tensor *t = tn_object_tensor(in[i]);
        char text[200];
        if (!t)
            continue;
        fprintf(stderr, "  %s = %s", tn_value_name(g, tn_graph_input(g, i)), tn_tensor_describe(t, text, sizeof text));
        for (int64_t k = 0; k < t->count && k < 64; k++)
            fprintf(stderr, "%s%.9g", k ? "," : " [", tn_tensor_get_f64(t, k));
        fprintf(stderr, "%s\n", t->count > 64 ? ",...]" : t->count ? "]" : "");
    }
}

void random_print_small(const tn_graph *graph, tn_object *const *in, const random_options *options) {
    random_failure failure;
    tn_object *small_in[MOST];
    tn_graph *small = random_shrink(graph, in, options, small_in, &failure);
    char *printed = tn_graph_print(small);
    fprintf(stderr, "%s\n%s", failure.text, printed ? printed : "");
    print_inputs(small, small_in);
    tn_graph_free_text(small, printed);
    for (uint32_t i = 0; i < tn_graph_input_count(small); i++)
        tn_object_destroy(small_in[i]);
    tn_graph_destroy(small);
}
