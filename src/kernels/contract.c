/* The generic contraction: a run of outputs at a time, products added over the inner indices in row-major order: one order for
   every shape and grouping, so the bits are the same at any size and in any batch. */
#include "kernels/kernels.h"
#include "kernels/machine.h"

#include <string.h>

typedef struct contraction {
    const tn_resolved *r;
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

static void add_domain(tn_domain domain, int64_t n, const tn_register *a, const tn_register *b, tn_register *sum,
                       int64_t low) {
    if (domain == TN_DOMAIN_F32)
        for (int64_t i = low; i < n; i++)
            sum->f[i] += a->f[i] * b->f[i];
    else if (domain == TN_DOMAIN_F64)
        for (int64_t i = low; i < n; i++)
            sum->d[i] += a->d[i] * b->d[i];
    else /* two's complement wraps alike for signed and unsigned */
        for (int64_t i = low; i < n; i++)
            sum->u[i] += a->u[i] * b->u[i];
}

static void row(void *ctx, int64_t *at, int64_t n) {
    const contraction *q = ctx;
    const tn_resolved *r = q->r;
    const tn_kernel *k = r->kernel;
    tn_register reg[TN_MACHINE_REGISTERS], sum;
    tn_domain domain = tn_register_domain((tn_dtype)k->accumulator);
    int axes = r->outer + r->inner;
    memset(&sum, 0, sizeof sum);
    int64_t total = 1;
    for (int i = r->outer; i < axes; i++)
        total *= r->extent[i];
    if (total)
        do {
            int64_t low = 0, high = n;
            tn_machine_inside(&r->operand[0], axes, q->axis, at, n, &low, &high);
            if (low >= high)
                continue;
            if (q->direct) {
                const tn_resolved_access *a = &r->operand[0], *b = &r->operand[1];
                int64_t sa = q->axis >= 0 ? a->stride[q->axis] : 0, sb = q->axis >= 0 ? b->stride[q->axis] : 0;
                const float *pa = (const float *)a->base + tn_machine_offset(a, axes, at) + low * sa;
                const float *pb = (const float *)b->base + tn_machine_offset(b, axes, at) + low * sb;
                add_f32(high - low, pa, sa, pb, sb, sum.f + low);
            } else {
                tn_machine_load(r, &r->operand[0], q->axis, at, n, &reg[0]);
                tn_machine_load(r, &r->operand[1], q->axis, at, n, &reg[1]);
                add_domain(domain, high, &reg[0], &reg[1], &sum, low);
            }
        } while (tn_machine_next(r, at));
    uint32_t reduced = (uint32_t)k->operands + k->steps;
    uint64_t narrow[TN_RUN];
    tn_run_store((tn_dtype)k->reduced, domain, &sum, n, narrow, 0, 1);
    tn_run_load((tn_dtype)k->reduced, tn_register_domain((tn_dtype)k->reduced), narrow, 0, 1, n, &reg[reduced]);
    for (int i = 2; i < k->operands; i++)
        tn_machine_load(r, &r->operand[i], q->axis, at, n, &reg[i]);
    tn_machine_steps(k, k->steps, k->epilogue, reduced + 1, n, reg);
    for (int i = 0; i < k->outputs; i++)
        tn_machine_store(r, &r->output[i], q->axis, at, n, &reg[k->result[i]]);
}

/* The outer axis along which the factors are read best: one of them in steps of one, the other standing; longest first. */
static int best_axis(const tn_resolved *r) {
    int best = r->outer - 1;
    int64_t score = -1;
    for (int i = 0; i < r->outer; i++) {
        int64_t a = r->operand[0].stride[i], b = r->operand[1].stride[i];
        int64_t s = r->extent[i] < TN_RUN ? r->extent[i] : TN_RUN;
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
    tn_resolved r;
    TN_TRY(tn_resolve(&r, args));
    contraction q = {.r = &r, .axis = best_axis(&r)};
    q.direct = r.operand[0].dtype == TN_F32 && r.operand[1].dtype == TN_F32 && args->kernel->accumulator == TN_F32;
    tn_machine_rows(&r, args->pool, q.axis, TN_RUN, row, &q);
    tn_resolved_free(&r);
    return TN_OK;
}

static bool takes(const tn_kernel *k, const tn_kernel_facts *facts) {
    (void)facts;
    tn_dtype a = (tn_dtype)k->operand[0].dtype, b = (tn_dtype)k->operand[1].dtype, acc = (tn_dtype)k->accumulator;
    return k->steps == 0 && !k->operand[1].guards && tn_register_domain(a) == tn_register_domain(acc) &&
           tn_register_domain(b) == tn_register_domain(acc) && k->operands + k->epilogue + 1 <= TN_MACHINE_REGISTERS;
}

const tn_kernel_impl tn_kernel_contract = {.name = "generic", .kind = TN_KERNEL_CONTRACT, .takes = takes, .run = run};
