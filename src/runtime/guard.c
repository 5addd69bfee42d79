/* Testing aid: zones of a pattern around slots that no instruction may write, and poison where nothing may be read. */
#include <string.h>

#include "base/error.h"
#include "runtime/frame.h"

#define ZONE_BYTE 0xc7

static bool is_guarded(const tn_frame *f, uint32_t slot) {
    const tn_slot *s = &f->plan->slot.data[slot];
    return s->kind == TN_SLOT_ARENA && !s->fetched && f->slot[slot] && !(f->late && f->late[slot].data);
}

static size_t bytes_of(const tn_frame *f, uint32_t slot) {
    int64_t bytes = f->size[f->plan->slot.data[slot].bytes];
    return bytes < 0 ? 0 : (size_t)bytes;
}

/* The zone behind a slot reaches to the next multiple of the alignment. */
static size_t behind(size_t bytes) {
    return TN_GUARD_ZONE + (TN_PLAN_ALIGN - bytes % TN_PLAN_ALIGN) % TN_PLAN_ALIGN;
}

static void arm(const tn_frame *f, uint32_t slot) {
    char *data = f->slot[slot];
    size_t bytes = bytes_of(f, slot);
    memset(data - TN_GUARD_ZONE, ZONE_BYTE, TN_GUARD_ZONE);
    memset(data, TN_POISON, bytes);
    memset(data + bytes, ZONE_BYTE, behind(bytes));
}

void tn_frame_guard_bound(tn_frame *f, uint32_t segment) {
    const tn_segment *part = &f->segment[segment];
    for (uint32_t i = 0; i < part->slots; i++) {
        uint32_t slot = f->slot_list[part->slot + i];
        if (is_guarded(f, slot))
            f->armed[slot] = 0;
    }
}

static bool is_whole(const char *zone, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if ((uint8_t)zone[i] != ZONE_BYTE)
            return false;
    return true;
}

static tn_status fail_at(const tn_frame *f, uint32_t at, uint32_t slot) {
    const tn_plan *p = f->plan;
    char text[200];
    const tn_instruction *in = &p->code.data[at];
    tn_fail(TN_ERR_INTERNAL, "instruction %u wrote outside of a value: near %s", at,
            tn_value_describe(p->graph, p->slot.data[slot].value, text, sizeof text));
    if (in->op == TN_DO_CALL && p->kernel.data[in->a].node_count)
        tn_fail_at_node(p->graph, (tn_node){p->kernel_node.data[p->kernel.data[in->a].nodes]});
    if (in->op == TN_DO_HOST)
        tn_fail_at_node(p->graph, p->host.data[in->a].node);
    return TN_ERR_INTERNAL;
}

void tn_frame_guard_before(tn_frame *f, uint32_t first, uint32_t last) {
    for (uint32_t i = 0; i < f->plan->slot.len; i++) {
        const tn_slot *s = &f->plan->slot.data[i];
        if (is_guarded(f, i) && !f->armed[i] && s->first >= 0 && s->first <= (int32_t)last &&
            s->last >= (int32_t)first) {
            arm(f, i);
            f->armed[i] = 1;
        }
    }
}

tn_status tn_frame_guard_ran(tn_frame *f, uint32_t first, uint32_t last) {
    for (uint32_t i = 0; i < f->plan->slot.len; i++) {
        if (!is_guarded(f, i) || !f->armed[i])
            continue;
        const tn_slot *s = &f->plan->slot.data[i];
        if (s->first > (int32_t)last || s->last < (int32_t)first) { /* a branch was left out, a trip ended */
            f->armed[i] = 0;
            continue;
        }
        const char *data = f->slot[i];
        size_t bytes = bytes_of(f, i);
        if (!is_whole(data - TN_GUARD_ZONE, TN_GUARD_ZONE) || !is_whole(data + bytes, behind(bytes)))
            return fail_at(f, first, i);
        if (s->last <= (int32_t)last) { /* others may lie there from now on */
            memset((char *)f->slot[i], TN_POISON, bytes);
            f->armed[i] = 0;
        }
    }
    return TN_OK;
}
