/* Contractions of few rows in f32 (1 to TN_GEMM_MAX_ROWS): bound by reading the columns once; and calls of so little work that what a run
   reads of its description counts. */
#include "kernels/contract_f32.h"
#include "kernels/kernels.h"

#define FAR 128 /* summed elements: how far ahead the columns of few rows are fetched */

void tn_gemm_few_tile(const tn_gemm_level *level, tn_gemm_tile *t, int64_t n, int64_t panel, float *const *c,
                      bool fetch) {
    t->c = c;
    t->first = panel * level->columns;
    if (t->panels > 1) {
        t->columns = t->panels * level->columns;
        level->tile(t);
        return;
    }
    int64_t line = level->columns * (int64_t)sizeof(float);
    t->columns = (int)(n - t->first < level->columns ? n - t->first : level->columns);
    if (fetch && t->rows > 4) { /* while few are computed, processors fetch better by themselves */
        t->ahead = (uintptr_t)t->b + (uintptr_t)(line * (t->rows > level->rows ? FAR : FAR / 2));
        t->ahead_step = line;
    }
    level->tile(t);
}

int tn_gemm_few_panels(const tn_gemm_level *level, int64_t rows, int64_t n, int64_t panel, int64_t end, bool backwards,
                       int64_t index, int64_t *first) {
    int64_t most = rows <= TN_GEMM_LOW ? level->beside[rows] : 1, last = n / level->columns;
    last = last < end ? last : end; /* of whole columns; then one of a part at most */
    int64_t whole = last > panel ? (last - panel + most - 1) / most : 0, tiles = whole + (end > last);
    if (index >= tiles)
        return 0;
    index = backwards ? tiles - 1 - index : index;
    *first = index < whole ? panel + index * most : last;
    return index < whole && last - *first < most ? (int)(last - *first) : index < whole ? (int)most : 1;
}

void tn_gemm_few_learn(const tn_kernel_args *args, tn_gemm *g) {
    const tn_kernel *k = args->kernel;
    const tn_resolved_access *a = &g->r->operand[0], *c = &g->r->output[0];
    if (!g->packed || !g->k || !g->direct || g->row_step != 1 || g->taps != 1 || a->guards || !g->in_place ||
        k->epilogue > g->finishes * TN_FINISH_STEPS || g->batches != 1 || g->m > TN_GEMM_MAX_ROWS ||
        g->blocks * g->spans != 1)
        return;
    tn_gemm_few *f = &g->few;
    *f = (tn_gemm_few){.rows = (int)g->m,
                       .threads = g->threads,
                       .a_slot = k->operand[0].slot,
                       .c_slot = k->output[0].slot,
                       .n = g->n,
                       .k = g->k,
                       .columns = g->packed};
    int64_t at[TN_MACHINE_AXES] = {0};
    for (int i = 0; i < f->rows; i++, tn_gemm_advance(g->r, g->rows, g->n_rows, at)) {
        f->a[i] = (args->size[k->operand[0].offset] + tn_machine_offset(a, g->r->outer, at)) * a->element;
        f->c[i] = (args->size[k->output[0].offset] + tn_machine_offset(c, g->r->outer, at)) * c->element;
        if (g->finishes && g->finish.all)
            f->all[i] = tn_machine_offset(&g->r->operand[g->finish.all], g->r->outer, at);
    }
    for (int i = 0; g->finishes && i < g->finish.steps; i++) {
        const tn_finish_step *s = &g->finish.step[i];
        const tn_access *with = &k->operand[s->operand];
        if (s->op == TN_FINISH_MAX || s->op == TN_FINISH_MIN || s->op == TN_FINISH_CALL || s->form == TN_FINISH_KEPT)
            return; /* what a bound is decides in each run */
        f->with_slot[i] = with->slot;
        f->with[i] = args->size[with->offset] * (int64_t)sizeof(float);
        f->finish = g->finish;
        f->ends = true;
    }
    f->known = true;
}

/* Apart: small products that end as they are read little of what is known of them. */
static __attribute__((noinline)) void end_few(const tn_kernel_args *args, const tn_gemm_few *f,
                                              const tn_gemm_level *level, float *const *c) {
    tn_finish finish = f->finish;
    const void *all[TN_GEMM_MAX_ROWS] = {NULL};
    for (int s = 0; s < finish.steps; s++) {
        tn_finish_step *step = &finish.step[s];
        const float *at = (const float *)(const void *)((const char *)args->slot[f->with_slot[s]] + f->with[s]);
        step->at = at;
        step->one = step->form == TN_FINISH_ONE ? *at : 0;
        for (int i = 0; i < f->rows && step->form == TN_FINISH_ALL; i++)
            all[i] = at + f->all[i];
    }
    level->finish(&finish, f->rows, f->n, 0, c, finish.all ? all : NULL);
}

void tn_gemm_few_run(const tn_kernel_args *args, const tn_gemm_few *f, const tn_gemm_level *level) {
    const char *a_base = args->slot[f->a_slot];
    char *c_base = args->slot[f->c_slot];
    const float *a[TN_GEMM_MAX_ROWS];
    float *c[TN_GEMM_MAX_ROWS];
    c[0] = NULL;
    for (int i = 0; i < f->rows; i++) {
        a[i] = (const float *)(const void *)(a_base + f->a[i]);
        c[i] = (float *)(void *)(c_base + f->c[i]);
    }
    tn_gemm_tile t = {
        .rows = f->rows, .tiles = 1, .runs = 1, .length = &f->k, .a = a, .step = 1, .apart = f->k * level->columns};
    int64_t panels = (f->n + level->columns - 1) / level->columns, panel;
    for (int64_t i = 0;
         (t.panels = tn_gemm_few_panels(level, f->rows, f->n, 0, panels, args->backwards, i, &panel)) > 0; i++) {
        t.b = f->columns + panel * t.apart;
        tn_gemm_few_tile(level, &t, f->n, panel, c, true);
    }
    if (f->ends)
        end_few(args, f, level, c);
}
