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

/* What is said of the part that begins with an instruction. */
typedef struct told {
    tn_profile_event event; /* texts: NULL until it is said for the first time */
    uint64_t version;       /* of the frame's sizes, that the counts are of */
} told;

typedef struct mark {
    uint32_t pc, count;
    uint64_t start, end;
} mark;

/* Parts are marked while they run, and told when the run has ended or so many are marked: telling them costs more than many of them. */
#define MARKS 4096

/* Not of the model's heap: who looks does not change what a model may take. */
struct tn_frame_profile {
    double tick; /* seconds */
    uint64_t began, last;
    uint32_t marks;
    mark mark[MARKS];
    told told[]; /* by instruction */
};

/* The length of a tick, by the clock. */
static double measure_tick(void) {
    double from = tn_clock(), to;
    uint64_t first = tn_ticks();
    do
        to = tn_clock();
    while (to - from < 100e-6);
    uint64_t ticks = tn_ticks() - first;
    return (to - from) / (double)(ticks ? ticks : 1);
}

static char *kept_text(const words *w) {
    size_t bytes = strlen(w->text) + 1;
    char *text = tn_alloc(NULL, bytes);
    return text ? memcpy(text, w->text, bytes) : NULL;
}

/* The texts of a part; false when out of memory. */
static bool name_part(const tn_frame *f, const mark *m, tn_profile_event *e) {
    const tn_plan *p = f->plan;
    const tn_instruction *in = &p->code.data[m->pc];
    enum { MOST = 64 };
    words operators = {.used = 0}, origin = {.used = 0};
    uint32_t seen[MOST], seen_count = 0;
    e->name = "host";
    if (in->op == TN_DO_HOST) {
        tn_node n = p->host.data[in->a].node;
        add_word(&operators, " ", tn_node_op_name(p->graph, n));
        add_origins(p->graph, n, &origin, seen, &seen_count, MOST);
    }
    for (uint32_t i = in->a; i < in->a + m->count; i++) {
        const tn_kernel *k = &p->kernel.data[i];
        e->name = k->impl->name;
        for (uint32_t j = 0; j < k->node_count; j++) {
            tn_node n = {p->kernel_node.data[k->nodes + j]};
            add_word(&operators, " ", tn_node_op_name(p->graph, n));
            add_origins(p->graph, n, &origin, seen, &seen_count, MOST);
        }
    }
    char *texts[2] = {kept_text(&operators), kept_text(&origin)};
    if (!texts[0] || !texts[1]) {
        tn_free(NULL, texts[0]);
        tn_free(NULL, texts[1]);
        return false;
    }
    e->operators = texts[0];
    e->origin = texts[1];
    return true;
}

static void count_part(const tn_frame *f, const mark *m, tn_profile_event *e) {
    const tn_plan *p = f->plan;
    uint32_t first = p->code.data[m->pc].a;
    e->kernels = m->count;
    e->operations = e->bytes = 0;
    for (uint32_t i = first; i < first + m->count; i++) {
        tn_kernel_cost c = tn_kernel_cost_of(p, &p->kernel.data[i], f->size);
        e->operations += c.operations;
        e->bytes += c.bytes;
    }
    if (m->count > 1) {
        double kept = between(p, first, m->count, f->size);
        e->bytes = kept < e->bytes ? e->bytes - kept : 0;
    }
}

static tn_status tell(tn_frame *f) {
    struct tn_frame_profile *q = f->profile;
    for (uint32_t i = 0; i < q->marks; i++) {
        const mark *m = &q->mark[i];
        told *t = &q->told[m->pc];
        if (!t->event.operators && !name_part(f, m, &t->event))
            return TN_ERR_MEMORY;
        if (t->version != f->version || t->event.kernels != m->count) {
            count_part(f, m, &t->event);
            t->version = f->version;
        }
        t->event.start = q->tick * (double)(int64_t)(m->start - q->began); /* signed: cheaper to convert */
        t->event.seconds = q->tick * (double)(int64_t)(m->end - m->start);
        f->options->profile(f->options->profile_user, &t->event);
    }
    q->marks = 0;
    return TN_OK;
}

tn_status tn_frame_profile_begin(tn_frame *f) {
    if (!f->profile) {
        f->profile = tn_alloc(NULL, sizeof *f->profile + f->plan->code.len * sizeof *f->profile->told);
        if (!f->profile)
            return TN_ERR_MEMORY;
        f->profile->tick = measure_tick();
    }
    f->profile->marks = 0;
    f->profile->began = f->profile->last = tn_ticks();
    return TN_OK;
}

tn_status tn_frame_profile_mark(tn_frame *f, uint32_t pc, uint32_t count) {
    struct tn_frame_profile *q = f->profile;
    uint64_t now = tn_ticks();
    q->mark[q->marks++] = (mark){pc, count, q->last, now};
    q->last = now;
    if (q->marks < MARKS)
        return TN_OK;
    tn_status status = tell(f);
    q->last = tn_ticks();
    return status;
}

tn_status tn_frame_profile_bind(tn_frame *f, uint32_t segment) {
    TN_TRY(tell(f));
    TN_TRY(tn_frame_bind(f, segment));
    f->profile->last = tn_ticks();
    return TN_OK;
}

tn_status tn_frame_profile_end(tn_frame *f, tn_status status) {
    if (status == TN_OK)
        return tell(f);
    tn_error_record error;
    tn_error_save(&error);
    tell(f);
    return tn_error_restore(&error);
}

void tn_frame_profile_free(tn_frame *f) {
    for (uint32_t i = 0; f->profile && i < f->plan->code.len; i++) {
        tn_free(NULL, (char *)f->profile->told[i].event.operators);
        tn_free(NULL, (char *)f->profile->told[i].event.origin);
    }
    tn_free(NULL, f->profile);
}
