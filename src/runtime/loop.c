/* Loops of a plan: where moving slots lie from trip to trip; loops side by side. */
#include <string.h>

#include "base/error.h"
#include "lower/cost.h"
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

/* How many trips a loop makes at most. Measured, what only data say is one. */
static int64_t trips_of(const tn_frame *f, const tn_loop *loop) {
    if (!loop->counted)
        return INT64_MAX;
    if (loop->limit == UINT32_MAX)
        return f->size[loop->trips];
    if (f->options->measure)
        return 1;
    const tn_view *v = &f->plan->view.data[loop->limit];
    const void *at = f->slot[v->slot];
    return tn_value_dtype(f->plan->graph, v->value) == TN_I64 ? ((const int64_t *)at)[f->size[v->offset]]
                                                              : ((const int32_t *)at)[f->size[v->offset]];
}

bool tn_frame_enter(tn_frame *f, uint32_t index) {
    const tn_loop *loop = &f->plan->loop.data[index];
    int64_t trips = trips_of(f, loop);
    f->trip[2 * index] = 0;
    f->trip[2 * index + 1] = trips;
    f->backwards = false;
    for (uint32_t i = loop->first; i < loop->first + loop->count; i++) {
        const tn_moving *m = &f->plan->moving.data[i];
        if (m->kind == TN_MOVING_CARRIED)
            f->slot[m->slot] = place(f, m, m->from, f->size[m->offset]);
        if (f->options->measure)
            f->garbage[m->slot] = 1;
    }
    if (trips <= 0)
        return false;
    move(f, loop, 0);
    return true;
}

bool tn_frame_next(tn_frame *f, uint32_t index) {
    const tn_loop *loop = &f->plan->loop.data[index];
    int64_t trip = ++f->trip[2 * index];
    for (uint32_t i = loop->first; i < loop->first + loop->count; i++) {
        const tn_moving *m = &f->plan->moving.data[i];
        if (m->kind == TN_MOVING_CARRIED)
            f->slot[m->slot] = f->slot[m->other];
    }
    if (f->options->measure || trip >= f->trip[2 * index + 1])
        return false;
    move(f, loop, trip);
    f->backwards = trip % 2 != 0;
    return true;
}

/* --- loops side by side ----------------------------------------------------------------------------------------------------------- */

#define WORTH 1e6  /* operations of the smallest part: fewer, and waking a thread costs more than it gains */
#define SPLITS 4e6 /* operations of a kernel that is worth more threads than there are parts */

/* Operations of the kernels from `first` to `end`, of those in loops on all trips, as far as these are known; *most: of one kernel. */
static double work_of(const tn_frame *f, uint32_t first, uint32_t end, double *most) {
    const tn_plan *p = f->plan;
    double sum = 0, times = 1, outer[TN_MAX_NESTING + 1];
    uint32_t loop_end[TN_MAX_NESTING + 1], depth = 0;
    for (uint32_t i = first; i < end; i++) {
        const tn_instruction in = p->code.data[i];
        while (depth && i >= loop_end[depth - 1])
            times = outer[--depth];
        if (in.op == TN_DO_ENTER && depth <= TN_MAX_NESTING) {
            const tn_loop *loop = &p->loop.data[in.a];
            loop_end[depth] = in.b;
            outer[depth++] = times;
            times *= loop->counted && loop->limit == UINT32_MAX ? (double)f->size[loop->trips] : 1;
        } else if (in.op == TN_DO_CALL) {
            tn_kernel_cost c = tn_kernel_cost_of(p, &p->kernel.data[in.a], f->size);
            *most = c.operations > *most ? c.operations : *most;
            sum += times * c.operations;
        }
    }
    return sum;
}

static bool pays(const tn_frame *f, const tn_fork *fork, int threads) {
    double least = 0, most = 0;
    for (uint32_t i = 0; i < fork->parts; i++) {
        double work = work_of(f, fork->start[i], fork->start[i + 1], &most);
        least = !i || work < least ? work : least;
    }
    return least > WORTH && (threads <= (int)fork->parts || most < SPLITS);
}

/* A part has places of its own for its moving slots, and computes on its thread alone. */
typedef struct part {
    tn_frame frame;
    tn_execute_options options;
    tn_status status;
    tn_error_record error;
} part;

typedef struct parts {
    const tn_fork *fork;
    part *part;
} parts;

static void run_part(void *ctx, int64_t index) {
    const parts *all = ctx;
    part *one = &all->part[index];
    one->status = tn_frame_run_code(&one->frame, all->fork->start[index], all->fork->start[index + 1]);
    if (one->status != TN_OK)
        tn_error_save(&one->error);
}

/* What follows reads the moving slots where the parts left them. */
static void take_back(tn_frame *f, const tn_fork *fork, const part *of) {
    const tn_plan *p = f->plan;
    for (uint32_t i = 0; i < fork->parts; i++)
        for (uint32_t pc = fork->start[i]; pc < fork->start[i + 1]; pc++) {
            const tn_loop *loop = p->code.data[pc].op == TN_DO_ENTER ? &p->loop.data[p->code.data[pc].a] : NULL;
            for (uint32_t k = 0; loop && k < loop->count; k++) {
                uint32_t slot = p->moving.data[loop->first + k].slot;
                f->slot[slot] = of[i].frame.slot[slot];
            }
        }
}

static tn_status run_parts(tn_frame *f, const tn_fork *fork) {
    uint32_t slots = f->plan->slot.len;
    part *of = tn_alloc_array(f->heap, fork->parts, sizeof *of);
    void **slot = tn_alloc_array(f->heap, (size_t)fork->parts * slots + 1, sizeof *slot);
    tn_status status = of && slot ? TN_OK : TN_ERR_MEMORY;
    for (uint32_t i = 0; i < fork->parts && status == TN_OK; i++) {
        of[i].frame = *f;
        of[i].options = *f->options;
        of[i].options.pool = NULL;
        of[i].frame.options = &of[i].options;
        of[i].frame.slot = memcpy(slot + (size_t)i * slots, f->slot, slots * sizeof *slot);
    }
    if (status == TN_OK) {
        parts all = {fork, of};
        f->keeping = true;
        tn_pool_run(f->options->pool, fork->parts, run_part, &all);
        take_back(f, fork, of);
    }
    for (uint32_t i = 0; i < fork->parts && status == TN_OK; i++)
        if (of[i].status != TN_OK)
            status = tn_error_restore(&of[i].error);
    tn_free(f->heap, slot);
    tn_free(f->heap, of);
    return status;
}

tn_status tn_frame_fork(tn_frame *f, uint32_t index, bool *done) {
    const tn_execute_options *o = f->options;
    const tn_fork *fork = &f->plan->fork.data[index];
    tn_fork_state *s = &f->fork[index];
    int threads = tn_pool_threads(o->pool);
    /* what looks at instructions looks at one after the other; under a limit, what kernels take must not depend on how parts meet */
    *done =
        threads > 1 && !o->max_bytes && !o->measure && !o->guard && !o->watch && !o->profile && !f->lacking && !f->late;
    if (!*done)
        return TN_OK;
    if (s->version != f->version || s->threads != threads)
        *s = (tn_fork_state){.version = f->version, .threads = threads, .pays = pays(f, fork, threads)};
    *done = s->pays;
    return s->pays ? run_parts(f, fork) : TN_OK;
}
