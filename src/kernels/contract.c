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

static tn_status run(const tn_kernel_args *args) {
    tn_resolved *r = tn_resolve(args, TN_RESOLVE_MERGED, 0);
    if (!r)
        return tn_error_status();
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
