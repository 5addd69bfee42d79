/* The shape of a contraction summed in f32: what its axes are, how rows lie, and how the work is cut into pieces. */
#include "kernels/contract_f32.h"

#define GROUP 256              /* summed elements: a panel of so many stays in L1 */
#define ROW_BYTES (192 << 10)  /* of a block's rows, in L2 while the columns of a group pass */
#define ENDED_BYTES (16 << 10) /* of those that end elsewhere tile by tile: they stay in L1 */
#define PACKED_BYTES (4 << 20) /* of packed rows, all summed elements */
#define SHORT_RUN 8            /* shorter runs are packed into rows */
#define MOST_STEP 4            /* elements between those of a row that is read in place */
#define WORTH (1 << 17)        /* multiply-adds: less is not worth another thread */
#define PAYS 24                /* panels that read a row: less, and copying it costs more than it gains */

static bool guards_use(const tn_resolved_access *a, int axis) {
    for (int i = 0; i < a->guards; i++)
        if (a->guard[i].coef[axis])
            return true;
    return false;
}

void tn_gemm_describe(tn_gemm *g, const tn_resolved *r, const tn_kernel *k) {
    const tn_resolved_access *a = &r->operand[0];
    const tn_strip_level *strip = k->program->level;
    g->r = r;
    for (int i = 0; i < 2; i++)
        g->load[i] = k->operand[i].dtype == TN_F32 ? NULL : strip->load[k->operand[i].dtype];
    if (k->operand[0].dtype == TN_F16)
        g->load[0] = g->level->half->widen_f16;
    g->round = strip->round[k->reduced];
    g->column = -1;
    g->m = g->n = g->k = g->batches = 1;
    for (int i = 0; i < r->outer; i++) {
        if (k->role[i] == TN_AXIS_COLUMN) {
            g->column = i;
            g->n = r->extent[i];
        } else if (k->role[i] == TN_AXIS_ROW) {
            g->rows[g->n_rows++] = i;
            g->m *= r->extent[i];
        } else {
            g->batch[g->n_batch++] = i;
            g->batches *= r->extent[i];
        }
    }
    g->first_sum = r->outer;
    g->last_sum = r->outer + r->inner - 1;
    for (int i = g->first_sum; i <= g->last_sum; i++)
        g->k *= r->extent[i];
    /* the longest run of summed elements that lie side by side in a row */
    g->run_axis = g->last_sum + 1;
    g->run = 1;
    while (g->run_axis > g->first_sum) {
        int i = g->run_axis - 1;
        if (r->extent[i] != 1 && (a->stride[i] != g->run || guards_use(a, i)))
            break;
        g->run *= r->extent[i];
        g->run_axis = i;
    }
    /* or a small step apart */
    g->row_step = 1;
    int innermost = g->last_sum;
    while (innermost > g->first_sum && r->extent[innermost] == 1)
        innermost--;
    if (g->run == 1 && !g->load[0] && r->extent[innermost] >= SHORT_RUN && a->stride[innermost] > 1 &&
        a->stride[innermost] <= MOST_STEP && !guards_use(a, innermost)) {
        g->row_step = a->stride[innermost];
        g->run = r->extent[innermost];
        g->run_axis = innermost;
    }
    g->direct = !g->load[0] && (g->run >= SHORT_RUN || g->run == g->k);
    g->taps = 1;
    for (int i = g->first_sum; i < g->run_axis && g->direct; i++)
        g->taps *= r->extent[i];
}

/* Whether rows in memory lie so that their lines share few sets of the caches. */
static bool rows_collide(const tn_gemm *g) {
    int64_t step = g->n_rows ? g->r->operand[0].stride[g->rows[g->n_rows - 1]] : 0;
    return g->m > 1 && step * (int64_t)sizeof(float) % 2048 == 0;
}

void tn_gemm_cut(tn_gemm *g, int threads, bool ended) {
    const tn_gemm_level *level = g->level;
    g->panels = (g->n + level->columns - 1) / level->columns;
    bool whole = g->run == g->k && g->row_step == 1 && !g->r->operand[0].guards && g->m > TN_GEMM_MAX_ROWS;
    if (g->direct && whole && (g->panels >= PAYS || (g->panels >= 4 && rows_collide(g))))
        g->direct = false;
    g->interleaved = !g->direct && whole;
    int64_t line = g->direct ? g->run : g->k, parts = 1;
    g->segment = line;
    g->groups = g->per_group = 1;
    if (g->k) {
        if (line > GROUP) {
            parts = (line + GROUP - 1) / GROUP;
            g->segment = ((line + parts - 1) / parts + 7) & ~7;
            parts = (line + g->segment - 1) / g->segment;
        } else
            g->per_group = GROUP / line;
        g->segments = g->taps * parts;
        g->groups = (g->segments + g->per_group - 1) / g->per_group;
    }
    g->pitch = ((g->k + 15) & ~15) + 16;
    /* blocks of rows */
    int64_t of_group = g->k < GROUP ? g->k : GROUP, most = ROW_BYTES / 4 / (of_group + 1);
    if (!g->packed || !g->direct) { /* columns that are packed a panel at a time pass by all of a row */
        int64_t fit = (g->packed ? PACKED_BYTES : 2 * ROW_BYTES) / 4 / (g->k + 1);
        most = fit < most ? fit : most;
    }
    most = most < 4 * level->rows ? 4 * level->rows : most > 1200 ? 1200 : most;
    int64_t wanted = threads > 1 ? 4 * threads : 1;
    double worth = (double)g->m * (double)g->n * (double)g->k * (double)g->batches / WORTH;
    wanted = worth < 1 ? 1 : worth < (double)wanted ? (int64_t)worth : wanted;
    g->pieces = wanted;
    int64_t even = (g->m * g->batches + wanted - 1) / wanted;
    if (even < most && even >= 4 * level->rows)
        most = even;
    g->blocks = (g->m + most - 1) / most;
    g->block = (g->m + g->blocks - 1) / g->blocks;
    g->block = (g->block + level->rows - 1) / level->rows * level->rows;
    g->blocks = (g->m + g->block - 1) / g->block;
    int64_t pieces = g->blocks * g->batches;
    g->spans = pieces >= wanted ? 1 : (wanted + pieces - 1) / pieces;
    g->spans = g->panels == 0 ? 1 : g->spans > g->panels ? g->panels : g->spans;
    g->panels_per_span = (g->panels + g->spans - 1) / g->spans;
    g->step = (ended ? ENDED_BYTES : TN_GEMM_SUM_BYTES) / 4 / g->block / level->columns;
    g->step = g->step < 1 ? 1 : g->step > g->panels_per_span ? g->panels_per_span : g->step;
}
