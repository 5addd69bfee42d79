/* Depthwise convolution in f32: the channels of some pixels at a time where channels lie side by side, else pixels of one channel. */
#include <string.h>

#include "kernels/depthwise_f32.h"
#include "kernels/kernels.h"
#include "kernels/machine.h"
#include "kernels/move.h"
#include "lower/packs.h"

#define MAX_TAPS TN_DEPTHWISE_TAPS
#define MAX_GUARDS TN_DEPTHWISE_GUARDS
#define TURNED 4096 /* elements that are turned at once: they stay in L1 */
#define PIXELS 64   /* of a block that needs no room of its own */

static int group_axis(const tn_kernel *k) {
    for (int i = 0; i < k->outer; i++)
        if (k->role[i] == TN_AXIS_BATCH)
            return i;
    return -1;
}

static void list_taps(tn_depthwise *d) {
    const tn_resolved *r = d->r;
    const tn_resolved_access *a = &r->operand[0];
    int64_t at[TN_MACHINE_AXES] = {0};
    do {
        d->offset[d->taps] = tn_machine_offset(a, r->outer + r->inner, at);
        for (int g = 0; g < a->guards; g++) {
            int64_t share = 0;
            for (int i = r->outer; i < r->outer + r->inner; i++)
                share += a->guard[g].coef[i] * at[i];
            d->guard[d->taps][g] = share;
            d->least[g] = !d->taps || share < d->least[g] ? share : d->least[g];
            d->most[g] = !d->taps || share > d->most[g] ? share : d->most[g];
        }
        d->taps++;
    } while (tn_machine_next(r, at));
}

/* The taps of a pixel: NULL where they lie outside. */
static void point_taps(const tn_depthwise *d, const float *from, const int64_t *guard, const float **tap) {
    const tn_resolved_access *a = &d->r->operand[0];
    for (int64_t t = 0; t < d->taps; t++) {
        bool inside = true;
        for (int g = 0; g < a->guards; g++)
            inside &= (uint64_t)(guard[g] + d->guard[t][g]) < (uint64_t)a->guard[g].extent;
        tap[t] = inside ? from + d->offset[t] : NULL;
    }
}

/* Whether what pixels `next` elements apart read slides along rows of the window: q says how, but for what lies inside. *along: the guard that
   tells positions along a row; -1: none. */
static bool slides(const tn_depthwise *d, int64_t next, const int64_t *step, tn_depthwise_row *q, int *along) {
    const tn_resolved_access *a = &d->r->operand[0];
    if (d->width != 3 && d->width != 5)
        return false;
    *along = -1;
    q->unit = d->offset[1] - d->offset[0];
    q->step = q->unit > 0 ? next / q->unit : 0;
    if ((q->step != 1 && (q->step != 2 || d->width != 3)) || next != q->step * q->unit)
        return false;
    for (int64_t t = 0; t < d->taps; t++)
        if (d->offset[t] - d->offset[t - t % d->width] != t % d->width * q->unit)
            return false;
    for (int g = 0; g < a->guards; g++) {
        int64_t each = d->guard[1][g] - d->guard[0][g];
        for (int64_t t = 0; t < d->taps; t++) /* of rows alone, or of positions alone */
            if (d->guard[t][g] != (each ? d->guard[0][g] + t % d->width : d->guard[t - t % d->width][g]))
                return false;
        if ((each && (each != 1 || *along >= 0)) || step[g] != each * q->step)
            return false;
        *along = each ? g : *along;
    }
    return true;
}

/* So many pixels side by side, if they slide, and but for a few at their ends all that they read lies inside. */
static bool slide_row(const tn_depthwise *d, int64_t pixels, const float *from, const int64_t *guard,
                      const int64_t *step, tn_depthwise_row *q, const float **tap) {
    const tn_resolved_access *a = &d->r->operand[0];
    const tn_depthwise_level *level = d->level->depthwise;
    int along;
    if (!level->slides || q->groups < level->slides || pixels < level->sliding ||
        !slides(d, q->next_in, step, q, &along))
        return false;
    int64_t first = along >= 0 ? guard[along] + d->guard[0][along] : 0;
    q->low = -first;
    q->high = along >= 0 ? a->guard[along].extent - first : INT64_MAX;
    if (q->low > d->width - 1 || q->high <= (pixels - 1) * q->step)
        return false;
    for (int64_t t = 0; t < d->taps; t += d->width) {
        bool inside = true;
        for (int g = 0; g < a->guards; g++)
            inside &= g == along || (uint64_t)(guard[g] + d->guard[t][g]) < (uint64_t)a->guard[g].extent;
        tap[t] = inside ? from + d->offset[t] : NULL;
    }
    q->slide = d->width;
    q->pixels = pixels;
    return true;
}

/* From a pixel on, how many of `most` have the same taps outside as it has: those whose guards that grow (by step) from pixel to pixel hold for
   all taps; one, where they do not. */
static int64_t alike(const tn_depthwise *d, const int64_t *guard, const int64_t *step, int64_t most) {
    const tn_resolved_access *a = &d->r->operand[0];
    for (int g = 0; g < a->guards; g++) {
        if (!step[g])
            continue;
        int64_t first = guard[g] + d->least[g], left = a->guard[g].extent - 1 - guard[g] - d->most[g];
        int64_t n = step[g] > 0 ? left / step[g] + 1 : first / -step[g] + 1;
        if (first < 0 || left < 0)
            return 1;
        most = n < most ? n : most;
    }
    return most;
}

/* What is done with sums while they are in L1. */
static void end_pixels(const tn_depthwise *d, const tn_depthwise_row *q, int64_t channel) {
    enum { MOST = 16 };
    float *out[MOST];
    for (int64_t p = 0, n; p < q->pixels; p += n) {
        n = q->pixels - p < MOST ? q->pixels - p : MOST;
        for (int64_t i = 0; i < n; i++)
            out[i] = q->out + (p + i) * q->next_out;
        d->level->finish(&d->finish, (int)n, q->groups, channel, out, NULL);
    }
}

/* Some pixels side by side, of b->n channels. */
static void row(const tn_depthwise *d, const tn_resolved *r, tn_strip *s, const tn_strip_block *b) {
    const tn_kernel *k = r->kernel;
    const tn_resolved_access *a = &r->operand[0], *c = &r->output[0];
    const float *tap[MAX_TAPS];
    float sums[TURNED];
    int64_t *at = b->at, guard[MAX_GUARDS] = {0}, step[MAX_GUARDS] = {0};
    const float *from = (const float *)a->base + tn_machine_offset(a, r->outer, at);
    for (int g = 0; g < a->guards; g++) {
        guard[g] = a->guard[g].offset;
        for (int i = 0; i < r->outer; i++)
            guard[g] += a->guard[g].coef[i] * at[i];
        step[g] = b->rows > 1 ? a->guard[g].coef[b->tile] : 0;
    }
    bool direct = d->direct;
    float *out = direct ? (float *)c->base + tn_machine_offset(c, r->outer, at) : sums;
    int64_t next_in = b->rows > 1 ? a->stride[b->tile] : 0, next_out = !direct       ? b->n
                                                                       : b->rows > 1 ? c->stride[b->tile]
                                                                                     : 0;
    tn_finish_end end = d->end;
    end.sub = end.sub ? end.sub + at[d->group] : NULL;
    end.mul = end.mul ? end.mul + at[d->group] : NULL;
    end.add = end.add ? end.add + at[d->group] : NULL;
    /* a piece of the channels: weights are [taps][all channels] */
    tn_depthwise_row q = {.groups = b->n,
                          .stride = r->extent[d->group],
                          .taps = d->taps,
                          .a = tap,
                          .end = d->ends ? &end : NULL,
                          .w = (const float *)k->packed + at[d->group],
                          .next_in = next_in,
                          .next_out = next_out};
    for (int64_t i = 0; i < b->rows; i += q.pixels) {
        if (!slide_row(d, b->rows - i, from + i * next_in, guard, step, &q, tap)) {
            q.pixels = alike(d, guard, step, b->rows - i);
            point_taps(d, from + i * next_in, guard, tap);
        }
        q.out = out + i * next_out;
        d->level->depthwise->row(&q);
        if (d->finishes && !d->ends)
            end_pixels(d, &q, at[d->group]);
        for (int g = 0; g < a->guards; g++)
            guard[g] += q.pixels * step[g];
    }
    if (d->turned)
        tn_move_of(k->program->level)
            ->transpose[sizeof(float)](b->rows, b->n, sums, b->n, (float *)c->base + tn_machine_offset(c, r->outer, at),
                                       c->stride[d->group]);
    else if (!direct)
        tn_strip_run(s, TN_STRIP_AFTER, b, sums);
}

/* Some pixels along b->axis of one channel, where channels do not lie side by side: the same sums in the same order. */
static void line(const tn_depthwise *d, tn_strip *s, const tn_strip_block *b) {
    const tn_resolved *r = d->r;
    const tn_resolved_access *a = &r->operand[0];
    const float *tap[MAX_TAPS];
    float sums[TN_STRIP_LENGTH];
    int64_t low[MAX_TAPS], high[MAX_TAPS], guard[MAX_GUARDS];
    const float *from = (const float *)a->base + tn_machine_offset(a, r->outer, b->at);
    for (int g = 0; g < a->guards; g++) {
        guard[g] = a->guard[g].offset;
        for (int i = 0; i < r->outer; i++)
            guard[g] += a->guard[g].coef[i] * b->at[i];
    }
    for (int64_t t = 0; t < d->taps; t++) {
        tap[t] = from + d->offset[t];
        low[t] = 0;
        high[t] = b->n;
        for (int g = 0; g < a->guards; g++) {
            int64_t first = guard[g] + d->guard[t][g], step = b->axis >= 0 ? a->guard[g].coef[b->axis] : 0,
                    left = a->guard[g].extent - first;
            int64_t begin = first >= 0 ? 0
                            : step > 0 ? (step - 1 - first) / step
                                       : b->n,
                    end = left <= 0  ? 0
                          : step > 0 ? (left + step - 1) / step
                                     : b->n;
            low[t] = begin > low[t] ? begin : low[t];
            high[t] = end < high[t] ? end : high[t];
        }
    }
    tn_depthwise_line q = {.n = b->n,
                           .taps = d->taps,
                           .step = b->axis >= 0 ? a->stride[b->axis] : 0,
                           .a = tap,
                           .low = low,
                           .high = high,
                           .w = (const float *)r->kernel->packed + b->at[d->group],
                           .w_stride = r->extent[d->group],
                           .out = sums};
    d->level->depthwise->line(&q);
    tn_strip_run(s, TN_STRIP_AFTER, b, sums);
}

static void piece(void *ctx, tn_strip_range *range) {
    const tn_depthwise *d = ctx;
    tn_strip s;
    tn_strip_block b;
    tn_strip_begin(&s, d->r);
    while (tn_strip_range_next(range, &b))
        if (d->beside)
            row(d, d->r, &s, &b);
        else
            line(d, &s, &b);
}

void tn_depthwise_rows(const tn_depthwise *d, const tn_resolved *r, int64_t image, int64_t first, int64_t end) {
    int last = r->outer - 1;
    int64_t at[TN_MACHINE_AXES] = {0}, channels = r->extent[d->group], strip = r->kernel->program->length,
            n = d->direct || channels < strip ? channels : strip, most = d->direct ? PIXELS : strip / n;
    tn_strip s;
    if (!d->direct)
        tn_strip_begin(&s, r);
    at[0] = image;
    for (int64_t i = first; i < end; i++)
        for (int64_t j = 0; j < r->extent[last]; j += most)
            for (int64_t c = 0; c < channels; c += n) {
                int64_t left = r->extent[last] - j;
                at[last - 1] = i;
                at[last] = j;
                at[d->group] = c;
                tn_strip_block b = {.at = at,
                                    .axis = d->group,
                                    .tile = last,
                                    .n = channels - c < n ? channels - c : n,
                                    .rows = left < most ? left : most};
                row(d, r, &s, &b);
            }
}

void tn_depthwise_open(tn_depthwise *d, const tn_gemm_level *level, const tn_resolved *r) {
    *d = (tn_depthwise){.r = r, .level = level, .group = group_axis(r->kernel)};
    list_taps(d);
    d->width = 1;
    for (int i = r->outer + r->inner - 1; i >= r->outer && d->width == 1; i--)
        d->width = r->extent[i];
}

void tn_depthwise_see_ends(tn_depthwise *d) {
    const tn_resolved *r = d->r;
    const tn_resolved_access *c = &r->output[0];
    int last = r->outer - 1 != d->group ? r->outer - 1 : -1; /* of pixels */
    bool read_beside = r->operand[0].stride[d->group] == 1, made_beside = c->stride[d->group] == 1;
    d->finishes = read_beside && c->dtype == TN_F32 && r->kernel->epilogue && tn_finish_make(&d->finish, r, d->group) &&
                  !d->finish.all;
    d->ends = d->finishes && tn_finish_end_of(&d->finish, &d->end);
    bool plain = read_beside && r->kernel->outputs == 1 && c->dtype == TN_F32 && (d->finishes || !r->kernel->epilogue);
    d->direct = plain && made_beside;
    d->turned = plain && !made_beside && last >= 0 && c->stride[last] == 1;
    d->beside = read_beside && (made_beside || d->turned);
}

static tn_status run_at(const tn_kernel_args *args, const tn_gemm_level *level) {
    tn_resolved *r = tn_resolve(args, TN_RESOLVE_PLAIN, sizeof(tn_depthwise));
    if (!r)
        return tn_error_status();
    tn_depthwise *d = r->extra;
    if (!d->r)
        tn_depthwise_open(d, level, r);
    tn_depthwise_see_ends(d);
    int last = r->outer - 1 != d->group ? r->outer - 1 : -1; /* of pixels */
    tn_strip_walk w = {.r = r,
                       .axis = d->beside ? d->group : last,
                       .tile = d->beside ? last : -1,
                       .length = d->direct   ? PIXELS * r->extent[d->group]
                                 : d->turned ? TURNED
                                             : args->kernel->program->length,
                       .work = (double)r->inner_count + args->kernel->epilogue,
                       .piece = piece,
                       .ctx = d};
    tn_strip_walk_run(&w, args->pool);
    tn_resolved_free(args, r);
    return TN_OK;
}

static bool is_one(const tn_kernel_facts *f, tn_size size) {
    int64_t n;
    return f->constant(f->ctx, size, &n) && n == 1;
}

/* One channel in, one out, for each group; constant weights of constant shape. */
static bool takes(const tn_kernel *k, const tn_kernel_facts *f) {
    const tn_tensor *w = k->role ? f->weights(f->ctx, k->operand[1].slot) : NULL;
    if (!w || !w->contiguous || k->operand[0].dtype != TN_F32 || w->dtype != TN_F32 || k->accumulator != TN_F32 ||
        k->reduced != TN_F32 || k->steps || group_axis(k) < 0 || k->inner < 2 || k->operand[0].guards > MAX_GUARDS ||
        !is_one(f, k->extent[k->outer + k->inner - 1]) || k->operands + k->epilogue + 1 > TN_MACHINE_REGISTERS)
        return false;
    int64_t taps = 1, n;
    int batches = 0;
    for (int i = 0; i < k->outer; i++) {
        batches += k->role[i] == TN_AXIS_BATCH;
        if (k->role[i] == TN_AXIS_COLUMN && !is_one(f, k->extent[i]))
            return false;
    }
    for (int i = k->outer; i < k->outer + k->inner; i++) {
        if (!f->constant(f->ctx, k->extent[i], &n) || n > MAX_TAPS)
            return false;
        taps *= n;
        if (taps > MAX_TAPS || taps < 1)
            return false;
    }
    int64_t offset, groups;
    return batches == 1 && f->constant(f->ctx, k->operand[1].offset, &offset) && offset == 0 &&
           f->constant(f->ctx, k->extent[group_axis(k)], &groups) && w->count == groups * taps;
}

static tn_status prepare(tn_kernel *k, const tn_kernel_facts *f) {
    TN_TRY(tn_strip_prepare(k, f));
    const tn_tensor *w = f->weights(f->ctx, k->operand[1].slot);
    int64_t groups = 0;
    f->constant(f->ctx, k->extent[group_axis(k)], &groups);
    size_t bytes = (size_t)w->count * sizeof(float);
    int64_t taps = groups ? w->count / groups : 0;
    tn_pack_form form = {.unfilled = f->unfilled};
    tn_pack_say(&form, TN_PACK_DEPTHWISE);
    tn_pack_say(&form, groups);
    tn_pack_say(&form, taps);
    float *to;
    TN_TRY(tn_kernel_pack(k, f, &form, bytes + 64, &to));
    k->packed_bytes = bytes;
    if (!to)
        return TN_OK;
    memset((char *)to + bytes, 0, 64); /* it is read in whole vectors */
    for (int64_t g = 0; g < groups && !f->unfilled; g++)
        for (int64_t t = 0; t < taps; t++)
            memcpy(&to[t * groups + g], (const char *)w->data + (g * taps + t) * 4, 4);
    return tn_kernel_packed(k, f, &form);
}

#define LEVEL(name)                                           \
    static tn_status run_##name(const tn_kernel_args *args) { \
        return run_at(args, &tn_gemm_##name);                 \
    }
#define ROW(n, level)                                                                                          \
    {                                                                                                          \
        .name = "depthwise " #n, .kind = TN_KERNEL_CONTRACT, .isa = level, .takes = takes, .prepare = prepare, \
        .run = run_##n                                                                                         \
    }
LEVEL(generic)
#if defined(TN_HAVE_ISA_AVX512)
LEVEL(avx2)
LEVEL(avx512)
#elif defined(TN_HAVE_ISA_NEON)
LEVEL(neon)
#endif

const tn_kernel_impl tn_kernel_depthwise[] = {
    ROW(generic, TN_ISA_GENERIC),
#if defined(TN_HAVE_ISA_AVX512)
    ROW(avx2, TN_ISA_AVX2),
    ROW(avx512, TN_ISA_AVX512),
#elif defined(TN_HAVE_ISA_NEON)
    ROW(neon, TN_ISA_NEON),
#endif
};
