/* Pooling: reductions over a window of few elements of f32, many outputs side by side. What is read beyond a guard is the combination's
   identity, so that taps can be combined without asking, and in the order of the recipe. */
#include "kernels/window.h"

#include <string.h>

static const tn_window_level *best_level(const tn_strip_level *strips) {
#if defined(TN_HAVE_ISA_AVX512)
    if (strips == &tn_strip_avx512)
        return &tn_window_avx512;
    if (strips == &tn_strip_avx2)
        return &tn_window_avx2;
#elif defined(TN_HAVE_ISA_NEON)
    if (strips == &tn_strip_neon)
        return &tn_window_neon;
#endif
    (void)strips;
    return &tn_window_generic;
}

static float identity_of(const tn_reduction *q) {
    return q->combine == TN_SCALAR_MAX ? -__builtin_inff() : 0.0f;
}

bool tn_windows_fit(const tn_reduction *q, int axis) {
    const tn_resolved *r = q->r;
    const tn_resolved_access *a = &r->operand[0];
    if (r->kernel->steps || a->dtype != TN_F32 || q->in != TN_STRIP_F32 || axis < 0 || r->inner_count < 2 ||
        r->inner_count > (q->lanes ? TN_STRIP_LANES : TN_WINDOW_TAPS) || a->stride[axis] < 1 ||
        a->stride[axis] > TN_WINDOW_STEP || a->guards > TN_WINDOW_GUARDS ||
        (q->combine != TN_SCALAR_MAX && q->combine != TN_SCALAR_ADD))
        return false;
    for (int g = 0; g < a->guards; g++)
        if (a->guard[g].coef[axis] < 0)
            return false;
    float outside = identity_of(q);
    uint32_t want, fill; /* the sign of zero matters */
    memcpy(&want, &outside, sizeof want);
    memcpy(&fill, &a->fill, sizeof fill);
    return !a->guards || fill == want;
}

void tn_windows_begin(tn_windows *w, const tn_reduction *q) {
    const tn_resolved *r = q->r;
    const tn_resolved_access *a = &r->operand[0];
    int64_t at[TN_MACHINE_AXES] = {0};
    w->q = q;
    w->level = best_level(q->level);
    w->taps = 0;
    do {
        int64_t t = w->taps++;
        w->offset[t] = tn_machine_offset(a, r->outer + r->inner, at);
        for (int g = 0; g < a->guards; g++) {
            int64_t add = 0;
            for (int i = r->outer; i < r->outer + r->inner; i++)
                add += a->guard[g].coef[i] * at[i];
            w->guard[t][g] = add;
            w->low[g] = t && w->low[g] < add ? w->low[g] : add;
            w->high[g] = t && w->high[g] > add ? w->high[g] : add;
        }
    } while (tn_machine_next(r, at));
    for (size_t i = 0; a->guards && i < sizeof w->outside / sizeof *w->outside; i++)
        w->outside[i] = identity_of(q);
}

static void run(const tn_windows *w, const tn_window_lines *line, void *out) {
    if (w->q->combine == TN_SCALAR_MAX)
        w->level->max(line, out);
    else
        w->level->sum(line, out);
}

/* One output, where guards do not hold for all taps; `first`: their values where its window begins. */
static void one(const tn_windows *w, const float *from, const int64_t *first, void *out) {
    const tn_resolved_access *a = &w->q->r->operand[0];
    const float *tap[TN_WINDOW_TAPS];
    for (int64_t t = 0; t < w->taps; t++) {
        bool inside = true;
        for (int g = 0; g < a->guards; g++)
            inside &= first[g] + w->guard[t][g] >= 0 && first[g] + w->guard[t][g] < a->guard[g].extent;
        tap[t] = inside ? from + w->offset[t] : w->outside;
    }
    run(w, &(tn_window_lines){.n = 1, .taps = w->taps, .step = 1, .rows = 1, .a = tap}, out);
}

/* n outputs along `axis`, whose first window begins at `from`, where guards are `first`. */
static void line(const tn_windows *w, int axis, const float *from, const int64_t *first, int64_t n, char *out) {
    const tn_resolved_access *a = &w->q->r->operand[0];
    const float *tap[TN_WINDOW_TAPS];
    int64_t bytes = tn_strip_bytes(w->q->acc), low = 0, high = n, step[TN_WINDOW_GUARDS];
    bool always[TN_WINDOW_GUARDS], within = true; /* holds or not for all of the line; all do, of all taps */
    for (int g = 0; g < a->guards; g++) {
        const tn_resolved_guard *q = &a->guard[g];
        step[g] = q->coef[axis];
        always[g] = step[g] == 0;
        int64_t least = first[g] + w->low[g], most = first[g] + w->high[g]; /* of output 0 */
        if (always[g]) {
            within &= least >= 0 && most < q->extent;
            continue;
        }
        int64_t begin = least >= 0 ? 0 : (-least + step[g] - 1) / step[g];
        int64_t end = most >= q->extent ? 0 : (q->extent - most + step[g] - 1) / step[g];
        low = begin > low ? begin : low;
        high = end < high ? end : high;
    }
    low = low < n ? low : n;
    high = high > low ? high : low;
    for (int64_t i = low ? 0 : high; i < n; i = i + 1 == low ? high : i + 1) {
        int64_t there[TN_WINDOW_GUARDS];
        for (int g = 0; g < a->guards; g++)
            there[g] = first[g] + step[g] * i;
        one(w, from + i * a->stride[axis], there, out + i * bytes);
    }
    if (low == high)
        return;
    from += low * a->stride[axis];
    for (int64_t t = 0; t < w->taps; t++)
        tap[t] = from + w->offset[t];
    for (int64_t t = 0; t < w->taps && !within; t++)
        for (int g = 0; g < a->guards; g++)
            if (always[g] && (uint64_t)(first[g] + w->guard[t][g]) >= (uint64_t)a->guard[g].extent)
                tap[t] = w->outside;
    run(w, &(tn_window_lines){.n = high - low, .taps = w->taps, .step = a->stride[axis], .rows = 1, .a = tap},
        out + low * bytes);
}

/* How many of `rows`, from the first on, guard g holds for all taps and outputs; `first`: its value where the first one's window begins. */
static int64_t inside_rows(const tn_windows *w, const tn_strip_block *b, int g, int64_t first, int64_t rows) {
    const tn_resolved_guard *q = &w->q->r->operand[0].guard[g];
    int64_t least = first + w->low[g], most = first + w->high[g] + q->coef[b->axis] * (b->n - 1);
    int64_t step = b->tile < 0 ? 0 : q->coef[b->tile];
    if (least < 0 || most >= q->extent || step < 0)
        return 0;
    int64_t fit = step ? (q->extent - 1 - most) / step + 1 : rows;
    return fit < rows ? fit : rows;
}

void tn_windows_block(const tn_windows *w, const tn_strip_block *b, void *sums) {
    const tn_resolved *r = w->q->r;
    const tn_resolved_access *a = &r->operand[0];
    int64_t bytes = b->n * tn_strip_bytes(w->q->acc), first[TN_WINDOW_GUARDS];
    const float *from = (const float *)(const void *)a->base + tn_machine_offset(a, r->outer, b->at);
    char *out = sums;
    for (int g = 0; g < a->guards; g++) {
        first[g] = a->guard[g].offset;
        for (int i = 0; i < r->outer; i++)
            first[g] += a->guard[g].coef[i] * b->at[i];
    }
    for (int64_t row = 0; row < b->rows;) {
        int64_t rows = b->rows - row;
        for (int g = 0; g < a->guards && rows; g++)
            rows = inside_rows(w, b, g, first[g], rows);
        if (rows) {
            const float *tap[TN_WINDOW_TAPS];
            for (int64_t t = 0; t < w->taps; t++)
                tap[t] = from + w->offset[t];
            run(w,
                &(tn_window_lines){.n = b->n,
                                   .taps = w->taps,
                                   .step = a->stride[b->axis],
                                   .rows = rows,
                                   .apart = b->tile < 0 ? 0 : a->stride[b->tile],
                                   .a = tap},
                out);
        } else {
            line(w, b->axis, from, first, b->n, out);
            rows = 1;
        }
        row += rows;
        out += rows * bytes;
        if (b->tile < 0)
            continue;
        from += rows * a->stride[b->tile];
        for (int g = 0; g < a->guards; g++)
            first[g] += rows * a->guard[g].coef[b->tile];
    }
}
