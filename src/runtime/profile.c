/* What a run tells of its parts. */
#include <string.h>

#include "base/os.h"
#include "lower/cost.h"
#include "runtime/frame.h"

/* A list of words or names of bounded length; of more, the first. */
typedef struct words {
    char text[512];
    size_t used;
    bool full;
} words;

static void add_word(words *w, const char *separator, const char *word) {
    static const char more[] = " ...";
    size_t n = strlen(word), gap = w->used ? strlen(separator) : 0;
    if (w->full)
        return;
    if (w->used + gap + n + sizeof more > sizeof w->text) {
        memcpy(w->text + w->used, more, sizeof more);
        w->full = true;
        return;
    }
    memcpy(w->text + w->used, separator, gap);
    memcpy(w->text + w->used + gap, word, n + 1);
    w->used += gap + n;
}

/* The origins of a node that are not yet in the list. */
static void add_origins(const tn_graph *g, tn_node n, words *w, uint32_t *seen, uint32_t *seen_count, uint32_t most) {
    const tn_location_set set = g->location.data[tn_node_location(g, n)];
    for (uint32_t i = 0; i < set.count; i++) {
        uint32_t id = g->origin_list.data[set.first + i], k = 0;
        while (k < *seen_count && seen[k] != id)
            k++;
        if (k < *seen_count)
            continue;
        if (*seen_count < most)
            seen[(*seen_count)++] = id;
        const tn_origin *o = &g->origin.data[id];
        const char *name = tn_strings_text(&g->strings, o->name);
        add_word(w, ", ", *name ? name : tn_strings_text(&g->strings, o->what));
    }
}

/* What kernels that ran together read of each other never left the cache. */
static double between(const tn_plan *p, uint32_t first, uint32_t count, const int64_t *size) {
    double bytes = 0;
    for (uint32_t i = first; i < first + count; i++) {
        const tn_kernel *k = &p->kernel.data[i];
        if (k->readers)
            bytes += (1.0 + k->readers) * (double)size[p->slot.data[k->output[0].slot].bytes];
    }
    return bytes;
}

void tn_frame_profile(const tn_frame *f, const tn_instruction *in, uint32_t count, double start) {
    const tn_plan *p = f->plan;
    enum { MOST = 64 };
    words operators = {.used = 0}, origin = {.used = 0};
    uint32_t seen[MOST], seen_count = 0;
    tn_profile_event e = {.name = "host",
                          .operators = operators.text,
                          .origin = origin.text,
                          .kernels = count,
                          .start = start - f->began,
                          .seconds = tn_clock() - start};
    if (in->op == TN_DO_HOST) {
        tn_node n = p->host.data[in->a].node;
        add_word(&operators, " ", tn_node_op_name(p->graph, n));
        add_origins(p->graph, n, &origin, seen, &seen_count, MOST);
    }
    for (uint32_t i = in->a; i < in->a + count; i++) {
        const tn_kernel *k = &p->kernel.data[i];
        e.name = k->impl->name;
        tn_kernel_cost c = tn_kernel_cost_of(p, k, f->size);
        e.operations += c.operations;
        e.bytes += c.bytes;
        for (uint32_t j = 0; j < k->node_count; j++) {
            tn_node n = {p->kernel_node.data[k->nodes + j]};
            add_word(&operators, " ", tn_node_op_name(p->graph, n));
            add_origins(p->graph, n, &origin, seen, &seen_count, MOST);
        }
    }
    if (count > 1) {
        double kept = between(p, in->a, count, f->size);
        e.bytes = kept < e.bytes ? e.bytes - kept : 0;
    }
    f->options->profile(f->options->profile_user, &e);
}
