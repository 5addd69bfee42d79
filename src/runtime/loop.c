/* Loops of a plan: where moving slots lie from trip to trip. */
#include "runtime/frame.h"

/* An address so many elements of a slot's dtype behind that of a slot. */
static void *place(const tn_frame *f, const tn_moving *m, uint32_t in, int64_t elements) {
    char *base = f->slot[in];
    return base ? base + elements * (tn_dtype_bits((tn_dtype)f->plan->slot.data[m->slot].dtype) / 8) : NULL;
}

/* Moving slots that are not carried, on a trip. */
static void move(tn_frame *f, const tn_loop *loop, int64_t trip) {
    for (uint32_t i = loop->first; i < loop->first + loop->count; i++) {
        const tn_moving *m = &f->plan->moving.data[i];
        if (m->kind == TN_MOVING_ROW)
            f->slot[m->slot] = place(f, m, m->from, f->size[m->offset] + trip * f->size[m->step]);
        else if (m->kind == TN_MOVING_TURNS)
            f->slot[m->slot] = f->slot[trip % 2 ? m->other : m->from];
    }
}

bool tn_frame_enter(tn_frame *f, uint32_t index) {
    const tn_loop *loop = &f->plan->loop.data[index];
    f->trip[index] = 0;
    for (uint32_t i = loop->first; i < loop->first + loop->count; i++) {
        const tn_moving *m = &f->plan->moving.data[i];
        if (m->kind == TN_MOVING_CARRIED)
            f->slot[m->slot] = place(f, m, m->from, f->size[m->offset]);
        if (f->options->measure)
            f->garbage[m->slot] = 1;
    }
    if (loop->counted && f->size[loop->trips] <= 0)
        return false;
    move(f, loop, 0);
    return true;
}

bool tn_frame_next(tn_frame *f, uint32_t index) {
    const tn_loop *loop = &f->plan->loop.data[index];
    int64_t trip = ++f->trip[index];
    for (uint32_t i = loop->first; i < loop->first + loop->count; i++) {
        const tn_moving *m = &f->plan->moving.data[i];
        if (m->kind == TN_MOVING_CARRIED)
            f->slot[m->slot] = f->slot[m->other];
    }
    if (f->options->measure || (loop->counted && trip >= f->size[loop->trips]))
        return false;
    move(f, loop, trip);
    return true;
}
