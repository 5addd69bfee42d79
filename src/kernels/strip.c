/* Elementwise kernels: runs along the innermost outer axis. */
#include "kernels/kernels.h"
#include "kernels/machine.h"

static void row(void *ctx, int64_t *at, int64_t n) {
    const tn_resolved *r = ctx;
    const tn_kernel *k = r->kernel;
    tn_register reg[TN_MACHINE_REGISTERS];
    int axis = r->outer - 1;
    for (int i = 0; i < k->operands; i++)
        tn_machine_load(r, &r->operand[i], axis, at, n, &reg[i]);
    tn_machine_steps(k, 0, k->steps, k->operands, n, reg);
    for (int i = 0; i < k->outputs; i++)
        tn_machine_store(r, &r->output[i], axis, at, n, &reg[k->result[i]]);
}

static tn_status run(const tn_kernel_args *args) {
    tn_resolved r;
    TN_TRY(tn_resolve(&r, args));
    tn_machine_rows(&r, args->pool, r.outer - 1, TN_RUN, row, &r);
    tn_resolved_free(&r);
    return TN_OK;
}

static bool takes(const tn_kernel *k, const tn_kernel_facts *facts) {
    (void)facts;
    return k->operands + k->steps + k->epilogue + 1 <= TN_MACHINE_REGISTERS;
}

const tn_kernel_impl tn_kernel_strip = {.name = "strip machine", .kind = TN_KERNEL_STRIP, .takes = takes, .run = run};
