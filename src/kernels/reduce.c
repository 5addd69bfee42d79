/* Reductions. The recipe: element k of the reduced index, in row-major order, goes to lane k % 16; the lanes are combined in pairs
   (l, l + 8), then (l, l + 4), ... Sums and products of floats are formed in f64 and rounded once; in sums of f32, four elements of a
   lane that follow each other in f32 first, unless that overflows (tn_strip_sums). So the bits do not depend on how outputs are
   grouped, nor on whether a strip runs across outputs or along the elements of one. */
#include "kernels/kernels.h"
#include "kernels/window.h"

#include <string.h>

#define LANES TN_STRIP_LANES
#define GROUP (LANES * TN_STRIP_SUMMED)
#define ACROSS 512 /* outputs of a strip that are combined side by side */

static void fill(const tn_reduction *q, int64_t n, void *to) {
    tn_dtype dtype = q->acc == TN_STRIP_B8 ? TN_BOOL : tn_strip_bytes(q->acc) == 4 ? TN_F32 : TN_F64;
    q->level->load[dtype](n, &q->identity, 0, to);
}

/* Combines `count` lanes of n accumulators each, `pitch` bytes apart, into the first. */
static void combine_lanes(const tn_reduction *q, int64_t n, char *acc, int64_t pitch, int64_t count) {
    tn_strip_fn *combine = q->level->op[q->combine][q->acc];
    if (n == 1 && count == LANES && q->level->fold_end[q->combine][q->acc]) {
        q->level->fold_end[q->combine][q->acc](acc);
        return;
    }
    for (int64_t half = LANES / 2; half && n == 1 && count == LANES; half /= 2) /* the same, side by side */
        combine(half, acc, acc + half * pitch, NULL, acc);
    for (int64_t half = LANES / 2; half && (n > 1 || count < LANES); half /= 2)
        for (int64_t l = 0; l < half && l + half < count; l++)
            combine(n, acc + l * pitch, acc + (l + half) * pitch, NULL, acc + l * pitch);
}

static bool is_finite(double x) {
    return x - x == 0;
}

/* Folds the elements of the output at `at`, which is left anywhere. */
static void fold_all(const tn_reduction *q, tn_strip *s, int64_t *at, tn_strip_fold_fn *fold,
                     tn_reduction_lanes *lanes) {
    const tn_resolved *r = q->r;
    int last = r->outer + r->inner - 1;
    int64_t most = q->whole ? INT64_MAX : s->program->length, phase = 0;
    tn_reduction_begin(q, lanes);
    do {
        int64_t left = r->extent[last] - at[last];
        tn_strip_block run = {.at = at, .axis = last, .tile = -1, .n = left < most ? left : most, .rows = 1};
        tn_strip_compute(s, TN_STRIP_BEFORE, &run, NULL);
        fold(run.n, s->reg[q->summand], phase, lanes);
        phase = (phase + run.n) % GROUP;
        at[last] += run.n - 1;
    } while (tn_machine_next(r, at));
}

/* Combines lanes into the first. */
static void end_lanes(const tn_reduction *q, tn_reduction_lanes *lanes) {
    if (q->parts)
        for (int l = 0; l < LANES; l++)
            lanes->sums.sum[l] += (double)lanes->sums.part[l];
    combine_lanes(q, 1, (char *)lanes, tn_strip_bytes(q->acc), LANES);
}

/* The outputs of a block, each along its elements, into sums. */
static void along(const tn_reduction *q, tn_strip *s, const tn_strip_block *b, char *sums) {
    tn_strip_fold_fn *fold = q->level->fold[q->combine][q->in];
    int64_t bytes = tn_strip_bytes(q->acc);
    for (int64_t e = 0; e < b->n; e++) {
        tn_reduction_lanes lanes;
        for (int again = 0; again < 2; again++) {
            int64_t at[TN_MACHINE_AXES];
            memcpy(at, b->at, sizeof at);
            if (b->axis >= 0)
                at[b->axis] += e;
            fold_all(q, s, at, again ? q->level->fold_wide : fold, &lanes);
            end_lanes(q, &lanes);
            if (!q->parts || is_finite(lanes.sums.sum[0]))
                break;
        }
        memcpy(sums + e * bytes, &lanes, (size_t)bytes);
    }
}

/* The outputs of a block side by side. `sums` has room for ACROSS * LANES accumulators. */
static void across(const tn_reduction *q, tn_strip *s, const tn_strip_block *b, char *sums) {
    const tn_resolved *r = q->r;
    int64_t n = b->n * b->rows, pitch = n * tn_strip_bytes(q->acc), k = 0;
    int64_t used = !q->lanes ? 1 : r->inner_count < LANES ? r->inner_count : LANES;
    fill(q, n * used, sums);
    do {
        tn_strip_compute(s, TN_STRIP_BEFORE, b, NULL);
        char *acc = sums + k * pitch;
        q->step(n, acc, s->reg[q->summand], NULL, acc);
        k = k + 1 < used ? k + 1 : 0;
    } while (tn_machine_next(r, b->at));
    if (q->lanes)
        combine_lanes(q, n, sums, pitch, used);
}

/* The same for sums of f32, with parts of them in f32. `part` has room for ACROSS * LANES. */
static void across_parts(const tn_reduction *q, tn_strip *s, const tn_strip_block *b, double *sums, float *part) {
    const tn_resolved *r = q->r;
    int64_t n = b->n * b->rows, k = 0, used = r->inner_count < LANES ? r->inner_count : LANES;
    fill(q, n * used, sums);
    do {
        tn_strip_compute(s, TN_STRIP_BEFORE, b, NULL);
        float *to = part + k % LANES * n;
        const float *x = s->reg[q->summand];
        if (k < LANES)
            memcpy(to, x, (size_t)n * sizeof *to);
        else
            q->level->op[TN_SCALAR_ADD][TN_STRIP_F32](n, to, x, NULL, to);
        k++;
        if (k == GROUP) {
            q->level->add_wide(n * LANES, sums, part, NULL, sums);
            k = 0;
        }
    } while (tn_machine_next(r, b->at));
    if (k)
        q->level->add_wide(n * (k < LANES ? k : LANES), sums, part, NULL, sums);
    combine_lanes(q, n, (char *)sums, n * (int64_t)sizeof *sums, used);
    bool finite = true;
    for (int64_t i = 0; i < n; i++)
        finite &= is_finite(sums[i]);
    if (finite)
        return;
    double first[ACROSS];
    memcpy(first, sums, (size_t)n * sizeof *first);
    across(q, s, b, (char *)sums);
    for (int64_t i = 0; i < n; i++)
        sums[i] = is_finite(first[i]) ? first[i] : sums[i];
}

/* Rounds accumulators to the dtype of the reduced register, into `to`. */
static void round_sums(const tn_reduction *q, int64_t n, const char *sums, void *to) {
    tn_dtype dtype = (tn_dtype)q->r->kernel->reduced;
    tn_strip_type type = tn_strip_type_of(dtype);
    if (q->acc == TN_STRIP_F64 && (dtype == TN_F16 || dtype == TN_BF16)) {
        uint16_t narrow[ACROSS];
        tn_run_store(dtype, TN_DOMAIN_F64, sums, n, narrow, 0, 1);
        q->level->load[dtype](n, narrow, 1, to);
        return;
    }
    q->level->convert[q->acc][type](n, sums, NULL, &dtype, to);
    if (q->level->round[dtype] && !tn_dtype_is_float(dtype))
        q->level->round[dtype](n, to, NULL, NULL, to);
}

static void piece(void *ctx, tn_strip_range *range) {
    const tn_reduction *q = ctx;
    tn_strip s;
    tn_strip_block b;
    _Alignas(64) char sums[ACROSS * LANES * 8];
    _Alignas(64) float parts[ACROSS * LANES];
    uint64_t reduced[ACROSS];
    tn_windows windows;
    if (q->windows)
        tn_windows_begin(&windows, q);
    tn_strip_begin(&s, q->r);
    while (tn_strip_range_next(range, &b)) {
        if (!q->r->inner_count)
            fill(q, b.n * b.rows, sums);
        else if (q->windows)
            tn_windows_block(&windows, &b, sums);
        else if (q->along)
            along(q, &s, &b, sums);
        else if (q->parts && q->r->inner_count > LANES)
            across_parts(q, &s, &b, (double *)(void *)sums, parts);
        else
            across(q, &s, &b, sums);
        bool round = q->acc != TN_STRIP_F32 || q->r->kernel->reduced != TN_F32;
        if (round)
            round_sums(q, b.n * b.rows, sums, reduced);
        tn_strip_run(&s, TN_STRIP_AFTER, &b, round ? (void *)reduced : sums);
    }
}

static void set_identity(tn_reduction *q) {
    static const tn_dtype of_type[] = {TN_F32, TN_F64, TN_I32, TN_I64, TN_U64, TN_BOOL};
    tn_dtype dtype = q->in == q->acc ? (tn_dtype)q->r->kernel->reduced : of_type[q->acc];
    uint64_t element = 0;
    tn_scalar_identity(q->combine, dtype, &element);
    q->level->load[dtype](1, &element, 0, &q->identity);
}

void tn_reduction_make(tn_reduction *q, const tn_resolved *r) {
    const tn_kernel *k = r->kernel;
    const tn_strip_program *p = k->program;
    *q = (tn_reduction){.r = r, .level = p->level, .combine = (tn_scalar_op)k->combine};
    q->summand = (uint16_t)(k->steps ? k->operands + k->steps - 1 : 0);
    q->in = q->acc = (tn_strip_type)p->type[q->summand];
    q->lanes = (q->combine == TN_SCALAR_ADD || q->combine == TN_SCALAR_MUL) && q->in <= TN_STRIP_F64;
    q->step = q->level->op[q->combine][q->in];
    if (q->lanes && q->in == TN_STRIP_F32) {
        q->acc = TN_STRIP_F64;
        q->parts = q->combine == TN_SCALAR_ADD;
        q->step = q->combine == TN_SCALAR_ADD ? q->level->add_wide : q->level->mul_wide;
    }
    set_identity(q);
}

void tn_reduction_begin(const tn_reduction *q, tn_reduction_lanes *lanes) {
    if (q->parts)
        lanes->sums = (tn_strip_sums){0};
    else
        fill(q, LANES, lanes);
}

bool tn_reduction_end(const tn_reduction *q, tn_reduction_lanes *lanes, void *to) {
    end_lanes(q, lanes);
    round_sums(q, 1, (const char *)lanes, to);
    return !q->parts || is_finite(lanes->sums.sum[0]);
}

void tn_reduction_row(const tn_reduction *q, int64_t n, const void *x, void *to) {
    tn_reduction_lanes lanes;
    tn_reduction_begin(q, &lanes);
    q->level->fold[q->combine][q->in](n, x, 0, &lanes);
    if (tn_reduction_end(q, &lanes, to))
        return;
    tn_reduction_begin(q, &lanes);
    q->level->fold_wide(n, x, 0, &lanes);
    tn_reduction_end(q, &lanes, to);
}

void tn_reduce_run_resolved(const tn_resolved *r, tn_pool *pool) {
    const tn_kernel *k = r->kernel;
    const tn_strip_program *p = k->program;
    tn_reduction q;
    tn_reduction_make(&q, r);
    const tn_resolved_access *x = &r->operand[0];
    int axis = r->outer - 1, last = r->outer + r->inner - 1;
    int64_t outputs = axis >= 0 ? r->extent[axis] : 1;
    if (r->inner) {
        int64_t in = x->stride[last] < 0 ? -x->stride[last] : x->stride[last];
        int64_t out = axis < 0 ? INT64_MAX : x->stride[axis] < 0 ? -x->stride[axis] : x->stride[axis];
        q.along = r->extent[last] >= LANES ? in <= out || outputs < 8 : outputs < 4 && r->inner_count > 4;
        q.windows = !q.along && tn_windows_fit(&q, axis);
        q.whole = !k->steps && !x->guards && x->stride[last] == 1 && tn_strip_same(x->dtype);
    }
    int64_t most = q.along ? TN_STRIP_LENGTH : ACROSS;
    tn_strip_walk w = {.r = r,
                       .axis = axis,
                       .tile = q.along || r->outer < 2 ? -1 : r->outer - 2,
                       .length = most < p->length ? most : p->length,
                       .work = (double)(r->inner_count + 1) * (1 + p->first[1]) + p->first[2] - p->first[1],
                       .piece = piece,
                       .ctx = &q};
    tn_strip_walk_run(&w, pool);
}

static tn_status run(const tn_kernel_args *args) {
    tn_resolved *r = tn_resolve(args, TN_RESOLVE_MERGED, 0);
    if (!r)
        return tn_error_status();
    tn_reduce_run_resolved(r, args->pool);
    tn_resolved_free(args, r);
    return TN_OK;
}

static bool takes(const tn_kernel *k, const tn_kernel_facts *facts) {
    tn_strip_type type = tn_strip_type_of((tn_dtype)(k->steps ? k->step[k->steps - 1].dtype : k->operand[0].dtype));
    return k->operands > 0 && tn_strip_best(facts->isa)->fold[k->combine][type] != NULL &&
           k->operands + k->steps + k->epilogue + 1 <= TN_MACHINE_REGISTERS;
}

const tn_kernel_impl tn_kernel_reduce = {
    .name = "strip machine", .kind = TN_KERNEL_REDUCE, .takes = takes, .prepare = tn_strip_prepare, .run = run};
