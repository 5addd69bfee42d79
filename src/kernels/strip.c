/* Elementwise kernels: strips along the innermost outer axis, of several rows where these are short. */
#include "kernels/kernels.h"
#include "kernels/move.h"

static void piece(void *ctx, tn_strip_range *range) {
    tn_strip s;
    tn_strip_block b;
    tn_strip_begin(&s, ctx);
    while (tn_strip_range_next(range, &b))
        tn_strip_run(&s, TN_STRIP_BEFORE, &b, NULL);
}

/* A kernel that is one block. */
static void run_whole(const tn_resolved *r) {
    tn_strip s;
    int64_t at[TN_MACHINE_AXES] = {0};
    tn_strip_block b = {.at = at, .axis = r->outer - 1, .tile = -1, .n = 1, .rows = 1};
    if (r->outer)
        b.n = r->extent[b.axis];
    if (r->outer == 2) {
        b.tile = 0;
        b.rows = r->extent[0];
    }
    tn_strip_begin(&s, r);
    tn_strip_run(&s, TN_STRIP_BEFORE, &b, NULL);
}

/* An axis along which an operand lies side by side while it strides along the innermost: rows along that axis are walked together,
   a line of the cache at a time. -1: none. */
static int crossed_axis(const tn_resolved *r) {
    int last = r->outer - 1;
    if (last < 1 || r->extent[last] < 8)
        return -1;
    for (int k = 0; k < r->kernel->operands; k++) {
        const tn_resolved_access *a = &r->operand[k];
        int64_t reach = a->stride[last] * a->element;
        for (int i = 0; i < last && (reach >= 64 || reach <= -64); i++)
            if (r->extent[i] >= 4 && (a->stride[i] == 1 || a->stride[i] == -1))
                return i;
    }
    return -1;
}

void tn_strip_run_resolved(const tn_resolved *r, tn_pool *pool) {
    if (tn_copy_run_resolved(r, pool))
        return;
    const tn_strip_program *p = r->kernel->program;
    int crossed = crossed_axis(r);
    if (r->outer <= 2 && r->outputs_count <= p->length && crossed < 0) {
        if (r->outputs_count)
            run_whole(r);
        return;
    }
    tn_strip_walk w = {.r = r,
                       .axis = r->outer - 1,
                       .tile = crossed >= 0   ? crossed
                               : r->outer < 2 ? -1
                                              : r->outer - 2,
                       .crossed = crossed >= 0,
                       .length = p->length,
                       .work = 1.0 + p->first[2],
                       .piece = piece,
                       .ctx = (void *)(uintptr_t)r};
    tn_strip_walk_run(&w, pool);
}

static tn_status run(const tn_kernel_args *args) {
    if (args->kept && tn_small_run(*args->kept, args))
        return TN_OK;
    tn_resolved *r = tn_resolve(args, TN_RESOLVE_MERGED, tn_small_room(args->kernel));
    if (!r)
        return tn_error_status();
    tn_small_consider(r);
    tn_strip_run_resolved(r, args->pool);
    tn_resolved_free(args, r);
    return TN_OK;
}

static bool takes(const tn_kernel *k, const tn_kernel_facts *facts) {
    (void)facts;
    return k->operands + k->steps + k->epilogue + 1 <= TN_MACHINE_REGISTERS;
}

const tn_kernel_impl tn_kernel_strip = {
    .name = "strip machine", .kind = TN_KERNEL_STRIP, .takes = takes, .prepare = tn_strip_prepare, .run = run};
