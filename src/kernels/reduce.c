/* Reductions: a run of outputs at a time over the inner indices in row-major order, so the bits do not depend on how outputs are
   grouped. Where outputs are few, a run of inner elements is loaded for one output and combined in the same order. */
#include "kernels/kernels.h"
#include "kernels/machine.h"

#include <string.h>

typedef struct reduction {
    const tn_resolved *r;
    tn_domain domain; /* of the accumulator */
    tn_run_function *combine;
    int axis; /* outer axis of runs; -1 */
    bool by_row;
    uint64_t identity[2];
} reduction;

/* A loaded register in the accumulator's domain. */
static const tn_register *as_accumulator(const reduction *q, tn_dtype dtype, int64_t n, const tn_register *from,
                                         tn_register *wide) {
    if (tn_register_domain(dtype) == q->domain)
        return from;
    for (int64_t i = 0; i < n; i++)
        wide->d[i] = from->f[i];
    return wide;
}

static uint16_t summand(const tn_kernel *k) {
    return (uint16_t)(k->steps ? k->operands + k->steps - 1 : 0);
}

static void load_all(const reduction *q, int axis, const int64_t *at, int64_t n, tn_register *reg) {
    const tn_kernel *k = q->r->kernel;
    tn_machine_load(q->r, &q->r->operand[0], axis, at, n, &reg[0]);
    tn_machine_steps(k, 0, k->steps, k->operands, n, reg);
}

static void set_run(tn_register *r, int64_t n, const uint64_t *value) {
    for (int64_t i = 0; i < n; i++)
        r->u[i] = value[0];
}

static void row(void *ctx, int64_t *at, int64_t n) {
    const reduction *q = ctx;
    const tn_resolved *r = q->r;
    const tn_kernel *k = r->kernel;
    tn_register reg[TN_MACHINE_REGISTERS], sum, wide;
    tn_dtype dtype = k->steps ? (tn_dtype)k->step[k->steps - 1].dtype : r->operand[0].dtype;
    set_run(&sum, n, q->identity);
    int64_t total = 1;
    for (int i = r->outer; i < r->outer + r->inner; i++)
        total *= r->extent[i];
    if (q->by_row && total) {
        int last = r->outer + r->inner - 1;
        for (int64_t e = 0; e < n; e++) {
            int64_t here[TN_MACHINE_AXES];
            memcpy(here, at, sizeof here);
            if (q->axis >= 0)
                here[q->axis] += e;
            do {
                int64_t m = r->extent[last] - here[last] < TN_RUN ? r->extent[last] - here[last] : TN_RUN;
                load_all(q, last, here, m, reg);
                const tn_register *v = as_accumulator(q, dtype, m, &reg[summand(k)], &wide);
                for (int64_t i = 0; i < m; i++) {
                    const void *in[2] = {&sum.u[e], &v->u[i]};
                    q->combine(1, in, &sum.u[e]);
                }
                here[last] += m - 1;
            } while (tn_machine_next(r, here));
        }
    } else if (total) {
        do {
            load_all(q, q->axis, at, n, reg);
            const void *in[2] = {&sum, as_accumulator(q, dtype, n, &reg[summand(k)], &wide)};
            q->combine(n, in, &sum);
        } while (tn_machine_next(r, at));
    }
    uint32_t reduced = (uint32_t)k->operands + k->steps;
    uint64_t narrow[TN_RUN];
    tn_run_store((tn_dtype)k->reduced, q->domain, &sum, n, narrow, 0, 1);
    tn_run_load((tn_dtype)k->reduced, tn_register_domain((tn_dtype)k->reduced), narrow, 0, 1, n, &reg[reduced]);
    for (int i = 1; i < k->operands; i++)
        tn_machine_load(r, &r->operand[i], q->axis, at, n, &reg[i]);
    tn_machine_steps(k, k->steps, k->epilogue, reduced + 1, n, reg);
    for (int i = 0; i < k->outputs; i++)
        tn_machine_store(r, &r->output[i], q->axis, at, n, &reg[k->result[i]]);
}

static tn_status run(const tn_kernel_args *args) {
    tn_resolved r;
    TN_TRY(tn_resolve(&r, args));
    const tn_kernel *k = args->kernel;
    tn_dtype dtype = (tn_dtype)k->accumulator;
    reduction q = {.r = &r, .domain = tn_register_domain(dtype), .axis = r.outer - 1};
    q.combine = tn_scalar_run((tn_scalar_op)k->combine, q.domain);
    uint64_t element[2] = {0};
    tn_scalar_identity((tn_scalar_op)k->combine, dtype, element);
    tn_run_load(dtype, q.domain, element, 0, 1, 1, q.identity);
    int64_t outputs = q.axis >= 0 ? r.extent[q.axis] : 1, inner = r.inner ? r.extent[r.outer + r.inner - 1] : 1;
    q.by_row = r.inner > 0 && outputs < 16 && inner > outputs;
    tn_machine_rows(&r, args->pool, q.axis, TN_RUN, row, &q);
    tn_resolved_free(&r);
    return TN_OK;
}

/* Accumulators of 64 bits only: every dtype's sum is exact in them or rounded once at the end. */
static bool takes(const tn_kernel *k, const tn_kernel_facts *facts) {
    (void)facts;
    tn_domain domain = tn_register_domain((tn_dtype)k->accumulator);
    return domain != TN_DOMAIN_F32 && tn_scalar_run((tn_scalar_op)k->combine, domain) != NULL && k->operands > 0 &&
           k->operands + k->steps + k->epilogue + 1 <= TN_MACHINE_REGISTERS;
}

const tn_kernel_impl tn_kernel_reduce = {.name = "strip machine", .kind = TN_KERNEL_REDUCE, .takes = takes, .run = run};
