/* What a plan holds at once, known before it runs: a number, or a formula in the symbolic dimensions. */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "runtime/session.h"

#define MOST_TERMS 12 /* sums of which none is known to be the largest */

typedef struct measuring {
    const tn_plan *plan;
    tn_graph *g; /* a copy of the plan's, where expressions may be made; their ids are the same */
} measuring;

static bool is_placed(const tn_slot *s, uint32_t segment) {
    return s->kind == TN_SLOT_ARENA && s->segment == segment && s->first >= 0;
}

/* The bytes of a segment's slots that live at an instruction; results live throughout. */
static tn_dim live_at(const measuring *m, uint32_t segment, int32_t at) {
    tn_dim sum = tn_dim_const(m->g, 0);
    for (uint32_t i = 0; i < m->plan->slot.len; i++) {
        const tn_slot *s = &m->plan->slot.data[i];
        tn_lifetime life;
        if (is_placed(s, segment) &&
            (s->fetched || (tn_plan_lifetime(m->plan, i, &life) && life.first <= at && life.last >= at)))
            sum = tn_dim_add(m->g, sum, m->plan->size.data[s->bytes]);
    }
    return sum;
}

/* The largest of those sums: those that another is known to be at least as large as are left out. */
static tn_dim largest_of(const measuring *m, uint32_t segment) {
    tn_dim kept[MOST_TERMS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->plan->slot.len; i++) {
        const tn_slot *s = &m->plan->slot.data[i];
        if (!is_placed(s, segment))
            continue;
        tn_dim sum = live_at(m, segment, s->first); /* what is live grows only where a slot begins to be */
        bool below = false;
        for (uint32_t k = 0; k < count && !below; k++)
            below = tn_dim_at_most(m->g, sum, kept[k]);
        if (below)
            continue;
        uint32_t left = 0;
        for (uint32_t k = 0; k < count; k++)
            if (!tn_dim_at_most(m->g, kept[k], sum))
                kept[left++] = kept[k];
        count = left;
        if (count == MOST_TERMS)
            kept[count - 1] = tn_dim_max(m->g, kept[count - 1], sum);
        else
            kept[count++] = sum;
    }
    tn_dim most = count ? kept[0] : tn_dim_const(m->g, 0);
    for (uint32_t k = 1; k < count; k++)
        most = tn_dim_max(m->g, most, kept[k]);
    return most;
}

tn_status tn_session_peak(tn_session *s, uint64_t *bytes, char *text, size_t size) {
    if (!s || !bytes || (size && !text))
        return tn_fail(TN_ERR_USAGE, "a session, or where its peak is to be written, is NULL");
    const tn_plan *p = s->whole.compiled->plan;
    if (size)
        text[0] = '\0';
    *bytes = 0;
    if (!p)
        return tn_fail(TN_ERR_UNSUPPORTED, "not supported: the reference back end plans no memory");
    measuring m = {p, tn_graph_clone(p->graph, NULL, NULL)};
    if (!m.g)
        return tn_error_status();
    tn_dim sum = tn_dim_const(m.g, 0);
    for (uint32_t segment = 0; segment <= p->segments; segment++)
        sum = tn_dim_add(m.g, sum, largest_of(&m, segment));
    tn_status status = tn_graph_check(m.g);
    int64_t number;
    if (status == TN_OK && tn_dim_is_const(m.g, sum, &number))
        *bytes = (uint64_t)number;
    tn_text formula;
    tn_text_init(&formula, s->heap);
    if (status == TN_OK)
        tn_dim_print(&m.g->dims, sum, &formula);
    if (formula.failed)
        status = TN_ERR_MEMORY;
    if (status == TN_OK && formula.len < size)
        snprintf(text, size, "%s", formula.data);
    tn_text_free(&formula);
    tn_graph_destroy(m.g);
    return status;
}
