/* The generic contraction: a strip of outputs at a time, products added over the inner indices in row-major order: one order for
   every shape and grouping, so the bits are the same at any size and in any batch. */
#include "kernels/kernels.h"
#include "kernels/machine.h"

#include <string.h>

typedef struct contraction {
    const tn_resolved *r;
    const tn_strip_level *level;
    tn_strip_type type; /* of the sum */
    int axis;
    bool direct; /* both factors are f32, read in place */
} contraction;

static void add_f32(int64_t n, const float *a, int64_t sa, const float *b, int64_t sb, float *sum) {
    if (sa == 0 && sb == 1)
        for (int64_t i = 0; i < n; i++)
            sum[i] += a[0] * b[i];
    else if (sa == 1 && sb == 0)
        for (int64_t i = 0; i < n; i++)
            sum[i] += a[i] * b[0];
    else
        for (int64_t i = 0; i < n; i++)
            sum[i] += a[i * sa] * b[i * sb];
}

static void add_type(tn_strip_type type, int64_t n, const void *pa, const void *pb, void *sum) {
    if (type == TN_STRIP_F32) {
        add_f32(n, pa, 1, pb, 1, sum);
    } else if (type == TN_STRIP_F64) {
        const double *a = pa, *b = pb;
        for (int64_t i = 0; i < n; i++)
            ((double *)sum)[i] += a[i] * b[i];
    } else if (type == TN_STRIP_I32) { /* two's complement wraps alike for signed and unsigned */
        const uint32_t *a = pa, *b = pb;
        for (int64_t i = 0; i < n; i++)
            ((uint32_t *)sum)[i] += a[i] * b[i];
    } else {
        const uint64_t *a = pa, *b = pb;
        for (int64_t i = 0; i < n; i++)
            ((uint64_t *)sum)[i] += a[i] * b[i];
    }
}

/* A factor in the type of the sum. */
static const void *factor(const contraction *q, tn_strip *s, int i, const tn_strip_block *b, void *converted) {
    tn_strip_type type = (tn_strip_type)s->program->type[i];
    const void *x = tn_strip_load(s, i, b);
    if (type == q->type)
        return x;
    q->level->convert[type][q->type](b->n, x, NULL, NULL, converted);
    return converted;
}

static void block(const contraction *q, tn_strip *s, const tn_strip_block *b) {
    const tn_resolved *r = q->r;
    const tn_kernel *k = r->kernel;
    uint64_t sum[TN_STRIP_LENGTH], reduced[TN_STRIP_LENGTH], wide[2][TN_STRIP_LENGTH];
    int axes = r->outer + r->inner;
    int64_t bytes = tn_strip_bytes(q->type), n = b->n;
    memset(sum, 0, (size_t)(n * bytes));
    if (r->inner_count)
        do {
            int64_t low = 0, high = n;
            tn_machine_inside(&r->operand[0], axes, q->axis, b->at, n, &low, &high);
            if (low >= high)
                continue;
            if (q->direct) {
                const tn_resolved_access *x = &r->operand[0], *y = &r->operand[1];
                int64_t sa = q->axis >= 0 ? x->stride[q->axis] : 0, sb = q->axis >= 0 ? y->stride[q->axis] : 0;
                const float *pa = (const float *)x->base + tn_machine_offset(x, axes, b->at) + low * sa;
                const float *pb = (const float *)y->base + tn_machine_offset(y, axes, b->at) + low * sb;
                add_f32(high - low, pa, sa, pb, sb, (float *)sum + low);
                continue;
            }
            const char *x = factor(q, s, 0, b, wide[0]), *y = factor(q, s, 1, b, wide[1]);
            add_type(q->type, high - low, x + low * bytes, y + low * bytes, (char *)sum + low * bytes);
        } while (tn_machine_next(r, b->at));
    tn_dtype dtype = (tn_dtype)k->reduced;
    if (q->type == TN_STRIP_F64 && tn_strip_type_of(dtype) == TN_STRIP_F32 && dtype != TN_F32) {
        uint16_t narrow[TN_STRIP_LENGTH];
        tn_run_store(dtype, TN_DOMAIN_F64, sum, n, narrow, 0, 1);
        q->level->load[dtype](n, narrow, 1, reduced);
    } else {
        q->level->convert[q->type][tn_strip_type_of(dtype)](n, sum, NULL, &dtype, reduced);
        if (q->level->round[dtype])
            q->level->round[dtype](n, reduced, NULL, NULL, reduced);
    }
    tn_strip_run(s, TN_STRIP_AFTER, b, reduced);
}

static void piece(void *ctx, tn_strip_range *range) {
    const contraction *q = ctx;
    tn_strip s;
    tn_strip_block b;
    tn_strip_begin(&s, q->r);
    while (tn_strip_range_next(range, &b))
        block(q, &s, &b);
}

/* The outer axis along which the factors are read best: one of them in steps of one, the other standing; longest first. */
static int best_axis(const tn_resolved *r) {
    int best = r->outer - 1;
    int64_t score = -1;
    for (int i = 0; i < r->outer; i++) {
        int64_t a = r->operand[0].stride[i], b = r->operand[1].stride[i];
        int64_t s = r->extent[i] < TN_STRIP_LENGTH ? r->extent[i] : TN_STRIP_LENGTH;
        if ((a == 0 && b == 1) || (a == 1 && b == 0))
            s *= 8;
        if (s >= score) {
            score = s;
            best = i;
        }
    }
    return best;
}

/* --- a few doubles: without strips, in the same order -------------------------------------------------------------------------------------- */

#define FEW 4096 /* products */
#define FEW_TERMS 256

static bool is_few(const tn_resolved *r) {
    const tn_kernel *k = r->kernel;
    return k->accumulator == TN_F64 && k->reduced == TN_F64 && !k->epilogue && k->outputs == 1 && k->operands == 2 &&
           r->operand[0].dtype == TN_F64 && r->operand[1].dtype == TN_F64 && r->output[0].dtype == TN_F64 &&
           !r->operand[0].guards && !r->operand[1].guards && !r->output[0].guards && r->inner_count > 0 &&
           r->outputs_count > 0 && r->outputs_count <= FEW && r->inner_count <= FEW / r->outputs_count &&
           r->inner_count <= FEW_TERMS;
}

/* Where the terms of a sum lie, in order. */
typedef struct terms {
    int64_t count, a[FEW_TERMS], b[FEW_TERMS];
} terms;

static void find_terms(const tn_resolved *r, terms *t) {
    int64_t at[TN_MACHINE_AXES] = {0};
    int axes = r->outer + r->inner;
    t->count = 0;
    do {
        t->a[t->count] = tn_machine_offset(&r->operand[0], axes, at);
        t->b[t->count++] = tn_machine_offset(&r->operand[1], axes, at);
    } while (tn_machine_next(r, at));
}

/* Outputs along the last outer axis, four sums at a time. */
static void run_line(const terms *t, int64_t n, const double *a, int64_t sa, const double *b, int64_t sb, double *y,
                     int64_t sy) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4, a += 4 * sa, b += 4 * sb) {
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (int64_t k = 0; k < t->count; k++) {
            const double *p = a + t->a[k], *q = b + t->b[k];
            s0 += p[0] * q[0];
            s1 += p[sa] * q[sb];
            s2 += p[2 * sa] * q[2 * sb];
            s3 += p[3 * sa] * q[3 * sb];
        }
        y[i * sy] = s0;
        y[(i + 1) * sy] = s1;
        y[(i + 2) * sy] = s2;
        y[(i + 3) * sy] = s3;
    }
    for (; i < n; i++, a += sa, b += sb) {
        double sum = 0;
        for (int64_t k = 0; k < t->count; k++)
            sum += a[t->a[k]] * b[t->b[k]];
        y[i * sy] = sum;
    }
}

/* The same where one axis at most is summed; no table. */
static void run_steps(const tn_resolved *r, int64_t n, const double *a, int64_t sa, const double *b, int64_t sb,
                      double *y, int64_t sy) {
    int64_t ka = r->inner ? r->operand[0].stride[r->outer] : 0, kb = r->inner ? r->operand[1].stride[r->outer] : 0;
    for (int64_t i = 0; i < n; i++, a += sa, b += sb) {
        double sum = 0;
        for (int64_t k = 0; k < r->inner_count; k++)
            sum += a[k * ka] * b[k * kb];
        y[i * sy] = sum;
    }
}

static void run_few(const tn_resolved *r, const terms *t, int axis, const double *a, const double *b, double *y) {
    int64_t n = axis < r->outer ? r->extent[axis] : 1, sa = axis < r->outer ? r->operand[0].stride[axis] : 0,
            sb = axis < r->outer ? r->operand[1].stride[axis] : 0, sy = axis < r->outer ? r->output[0].stride[axis] : 0;
    if (axis + 1 >= r->outer && r->inner <= 1)
        run_steps(r, n, a, sa, b, sb, y, sy);
    else if (axis + 1 >= r->outer)
        run_line(t, n, a, sa, b, sb, y, sy);
    else
        for (int64_t i = 0; i < n; i++)
            run_few(r, t, axis + 1, a + i * sa, b + i * sb, y + i * sy);
}

static tn_status run(const tn_kernel_args *args) {
    tn_resolved *r = tn_resolve(args, TN_RESOLVE_MERGED, 0);
    if (!r)
        return tn_error_status();
    if (is_few(r)) {
        terms t;
        if (r->inner > 1)
            find_terms(r, &t);
        run_few(r, &t, 0, (const double *)(const void *)r->operand[0].base,
                (const double *)(const void *)r->operand[1].base, (double *)(void *)r->output[0].base);
        tn_resolved_free(args, r);
        return TN_OK;
    }
    contraction q = {.r = r,
                     .level = args->kernel->program->level,
                     .type = tn_strip_type_of((tn_dtype)args->kernel->accumulator),
                     .axis = best_axis(r)};
    q.direct = r->operand[0].dtype == TN_F32 && r->operand[1].dtype == TN_F32 && args->kernel->accumulator == TN_F32;
    tn_strip_walk w = {.r = r,
                       .axis = q.axis,
                       .tile = -1,
                       .length = args->kernel->program->length,
                       .work = (double)r->inner_count * (q.direct ? 1 : 4) + 1,
                       .piece = piece,
                       .ctx = &q};
    tn_strip_walk_run(&w, args->pool);
    tn_resolved_free(args, r);
    return TN_OK;
}

static bool takes(const tn_kernel *k, const tn_kernel_facts *facts) {
    (void)facts;
    return k->steps == 0 && !k->operand[1].guards && k->operands + k->epilogue + 1 <= TN_MACHINE_REGISTERS;
}

const tn_kernel_impl tn_kernel_contract = {
    .name = "generic", .kind = TN_KERNEL_CONTRACT, .takes = takes, .prepare = tn_strip_prepare, .run = run};
