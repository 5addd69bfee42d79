/* Contractions summed in f32: rows and columns in register tiles (gemm.h). Rows are read in place where the summed index runs through
   memory; else, and where elements are narrower, they are packed a block at a time. Constant columns are packed when the plan is
   made. */
#include <string.h>

#include "kernels/contract_f32.h"
#include "kernels/kernels.h"
#include "kernels/move.h"
#include "lower/packs.h"

#define LEAST_TURNED 8 /* rows side by side */
#define FEW 8          /* columns: a tile of fewer is not worth the calls of what ends it */

static int64_t batch_count_of_b(const tn_gemm *g) {
    int64_t n = 1;
    for (int i = 0; i < g->n_batch; i++)
        if (g->r->operand[1].stride[g->batch[i]])
            n *= g->r->extent[g->batch[i]];
    return n;
}

/* Which set of columns a batch uses. */
static int64_t batch_of_b(const tn_gemm *g, const int64_t *at) {
    int64_t index = 0;
    for (int i = 0; i < g->n_batch; i++)
        if (g->r->operand[1].stride[g->batch[i]])
            index = index * g->r->extent[g->batch[i]] + at[g->batch[i]];
    return index;
}

static const char *columns_at(const tn_gemm *g, const int64_t *at) {
    const tn_resolved_access *b = &g->r->operand[1];
    const char *p = b->base;
    for (int i = 0; i < g->n_batch; i++)
        p += at[g->batch[i]] * b->stride[g->batch[i]] * b->element;
    return p;
}

static void decode(const tn_resolved *r, const int *axes, int count, int64_t index, int64_t *at) {
    for (int i = count - 1; i >= 0; i--) {
        at[axes[i]] = index % r->extent[axes[i]];
        index /= r->extent[axes[i]];
    }
}

void tn_gemm_advance(const tn_resolved *r, const int *axes, int count, int64_t *at) {
    for (int i = count - 1; i >= 0; i--) {
        if (++at[axes[i]] < r->extent[axes[i]])
            return;
        at[axes[i]] = 0;
    }
}

/* --- one piece ------------------------------------------------------------------------------------------------------------------------------ */

/* `rows` rows of sums, side by side in memory, from at (which has rows' axes) on: columns [first, first + count). More than one row
   only of all columns. */
static void epilogue(const tn_gemm *g, tn_strip *s, int64_t *at, float *sums, int64_t first, int64_t count,
                     int64_t rows) {
    int64_t most = s->program->length;
    int tile = g->n_rows ? g->rows[g->n_rows - 1] : -1;
    for (int64_t j = 0; j < count; j += most) {
        if (g->column >= 0)
            at[g->column] = first + j;
        tn_strip_block b = {
            .at = at, .axis = g->column, .tile = tile, .n = count - j < most ? count - j : most, .rows = rows};
        if (g->n == 1 && tile >= 0) { /* rows are a run */
            b.axis = tile;
            b.tile = -1;
            b.n = rows;
            b.rows = 1;
        }
        if (g->round)
            g->round(b.n * b.rows, sums + j, NULL, NULL, sums + j);
        tn_strip_run(s, TN_STRIP_AFTER, &b, sums + j);
    }
    if (g->column >= 0)
        at[g->column] = 0;
}

/* The epilogue of rows [first, first + rows) of the block at `at`: as many together as lie side by side. */
static void epilogues(const tn_gemm *g, int64_t *at, float *const *out, int64_t first, int64_t rows, int64_t from,
                      int64_t width) {
    const tn_resolved *r = g->r;
    tn_strip s;
    tn_strip_begin(&s, r);
    int64_t extent = g->n_rows ? r->extent[g->rows[g->n_rows - 1]] : 1, most = s.program->length / (width ? width : 1);
    for (int64_t i = 0, n; i < rows; i += n) {
        decode(r, g->rows, g->n_rows, first + i, at);
        int64_t left = extent - (first + i) % extent;
        n = 1;
        if (width == g->n)
            while (n < most && n < left && i + n < rows && out[i + n] == out[i] + n * width)
                n++;
        epilogue(g, &s, at, out[i] + from, from, width, n);
    }
}

typedef struct scratch {
    tn_gemm_row *row;
    const float **table;
    int64_t *length;
    float *zeros, *rows, *panel, *sums;
    float **out;
    const char **all; /* rows of what ends them */
    uint16_t **to;    /* where rows of 16-bit floats go */
    void *lines;
    char *place; /* NULL: `small` does */
    _Alignas(64) char small[4096];
} scratch;

static size_t aligned(size_t n) {
    return (n + 63) & ~(size_t)63;
}

/* Lays the arrays out from `p` on, and answers their size; NULL: only that. */
static size_t scratch_lay(const tn_gemm *g, int64_t rows, int64_t width, scratch *s, char *p) {
    size_t row = aligned((size_t)rows * sizeof *s->row),
           table = aligned((size_t)(rows * g->segments) * sizeof *s->table),
           length = aligned((size_t)g->segments * sizeof *s->length),
           zeros = aligned((size_t)(g->segment * g->row_step) * sizeof(float)),
           packed = g->direct ? 0 : aligned((size_t)(rows * g->pitch) * sizeof(float)),
           panel = g->packed ? 0 : aligned((size_t)(g->k * g->level->columns) * sizeof(float)),
           sums = g->in_place ? 0 : aligned((size_t)(rows * width) * sizeof(float)),
           out = aligned((size_t)rows * sizeof *s->out),
           all = g->finishes && g->finish.all ? aligned((size_t)rows * sizeof *s->all) : 0,
           to = g->finishes && !g->in_place && !g->turned ? aligned((size_t)rows * sizeof *s->to) : 0,
           lines = g->by_lines ? aligned(tn_gemm_lines_bytes(g)) : 0;
    if (g->by_lines)
        table = packed = 0;
    if (p) {
        s->row = (tn_gemm_row *)(void *)p;
        s->table = (const float **)(void *)(p += row);
        s->length = (int64_t *)(void *)(p += table);
        s->zeros = (float *)(void *)(p += length);
        s->rows = (float *)(void *)(p += zeros);
        s->panel = (float *)(void *)(p += packed);
        s->sums = (float *)(void *)(p += panel);
        s->out = (float **)(void *)(p += sums);
        s->all = all ? (const char **)(void *)(p + out) : NULL;
        s->to = to ? (uint16_t **)(void *)(p + out + all) : NULL;
        s->lines = p + out + all + to;
        memset(s->zeros, 0, zeros);
    }
    return row + table + length + zeros + packed + panel + sums + out + all + to + lines;
}

static bool scratch_make(tn_gemm *g, int64_t rows, scratch *s) {
    s->place = g->places.base ? tn_places_take(&g->places) : NULL;
    if (g->places.base && !s->place)
        return false;
    scratch_lay(g, rows, g->step * g->level->columns, s, s->place ? s->place : s->small);
    return true;
}

static void scratch_free(tn_gemm *g, scratch *s) {
    if (s->place)
        tn_places_give(&g->places, s->place);
}

/* Where group `group` of a panel's columns begins: its first segment, and the elements before it. */
static int64_t group_start(const tn_gemm *g, int64_t group, int64_t *segment) {
    int64_t line = g->direct ? g->run : g->k, parts = g->segments ? g->segments / g->taps : 1;
    *segment = group * g->per_group;
    return *segment / parts * line + *segment % parts * g->segment;
}

/* What is done with a tile's sums when they are whole, and were not ended in registers. */
static void end_tile(const tn_gemm *g, const scratch *s, const tn_gemm_tile *t, int64_t row) {
    const void *all[TN_GEMM_MAX_ROWS];
    uint16_t *to[TN_GEMM_MAX_ROWS];
    float *c[TN_GEMM_MAX_ROWS];
    for (int j = 0; j < t->rows; j++) {
        c[j] = t->c[j] + t->first;
        if (s->all)
            all[j] = s->all[row + j] + t->first * g->r->operand[g->finish.all].element;
    }
    if (g->in_place || g->turned) {
        g->level->finish(&g->finish, t->rows, t->columns, t->first, c, s->all ? all : NULL);
        return;
    }
    for (int j = 0; j < t->rows; j++)
        to[j] = s->to[row + j] + t->first;
    g->level->half->finish(&g->finish, t->rows, t->columns, t->first, c, s->all ? all : NULL, to);
}

/* Adds group `group` of the sums of one panel, rows in tiles. Meanwhile the columns that are read next are fetched. */
static void sum_panel(const tn_gemm *g, const scratch *s, int64_t rows, int64_t panel, int64_t group,
                      const float *columns, const float *next) {
    const tn_gemm_level *level = g->level;
    int64_t segment, left = g->n - panel * level->columns, first = group_start(g, group, &segment), elements = 0;
    int64_t end = segment + g->per_group < g->segments ? segment + g->per_group : g->segments;
    for (int64_t i = segment; i < end; i++)
        elements += s->length[i];
    int64_t tiles = (rows + level->rows - 1) / level->rows;
    bool whole = group + 1 == g->groups, narrow = whole && g->narrows && left >= level->columns;
    tn_gemm_tile t = {.columns = (int)(left < level->columns ? left : level->columns),
                      .runs = g->k ? end - segment : 0,
                      .length = s->length + segment,
                      .stride = rows,
                      .b = columns + first * level->columns,
                      .add = group > 0,
                      .first = panel * level->columns,
                      .end = whole && (g->ends || narrow) ? &g->end : NULL,
                      .ahead = (uintptr_t)next,
                      .ahead_step = next ? level->columns * (int64_t)sizeof(float) / tiles : 0};
    /* as tn_gemm_tile_rows says: the first ones are higher by a row */
    int64_t low = rows / tiles, higher = rows % tiles;
    for (int64_t i = 0; i < rows; i += t.rows * t.tiles) {
        t.tiles = i ? tiles - higher : higher ? higher : tiles;
        t.rows = (int)(low + (!i && higher));
        t.a = s->table + segment * rows + i;
        t.step = g->interleaved ? t.rows : g->direct ? g->row_step : 1;
        t.c = s->out + i;
        if (narrow)
            t.half = s->to + i;
        if (t.end && s->all)
            t.all = (const float *const *)(const void *)(s->all + i);
        level->tile(&t);
        t.ahead += (uintptr_t)(t.tiles * elements * t.ahead_step);
        if (!whole || !g->finishes || t.end)
            continue;
        for (int64_t tile = 0; tile < t.tiles; tile++, t.c += t.rows)
            end_tile(g, s, &t, i + tile * t.rows);
    }
}

static void sum_few(const tn_gemm *g, const scratch *s, int64_t rows, int64_t panel, int panels, const float *columns,
                    int64_t next, bool fetch) {
    tn_gemm_tile t = {.rows = (int)rows,
                      .tiles = 1,
                      .panels = panels,
                      .apart = next ? g->level->columns : g->k * g->level->columns,
                      .next = next,
                      .runs = g->k ? g->segments : 0,
                      .length = s->length,
                      .a = s->table,
                      .stride = rows,
                      .step = g->direct ? g->row_step : 1,
                      .b = columns};
    tn_gemm_few_tile(g->level, &t, g->n, panel, s->out, fetch);
    if (g->finishes)
        end_tile(g, s, &t, 0);
}

/* Sums of few rows by columns that are read once, where they lie: up to the panel that is the answer. */
static int64_t sum_unpacked(const tn_gemm *g, const scratch *s, int64_t rows, int64_t panel, int64_t end,
                            const char *columns) {
    int64_t next = rows <= TN_GEMM_LOW ? tn_gemm_step_of_columns(g) : 0, whole = g->n / g->level->columns;
    whole = whole < end ? whole : end;
    while (next && whole - panel > 1) {
        int64_t n = g->level->beside[rows] < whole - panel ? g->level->beside[rows] : whole - panel;
        n -= n > 2 && whole - panel - n == 1; /* one is not left alone */
        if (n < 2)
            break;
        sum_few(g, s, rows, panel, (int)n, (const float *)(const void *)columns + panel * g->level->columns, next,
                false);
        panel += n;
    }
    return panel;
}

/* All sums of panels [panel, end). */
static void sum_panels(const tn_gemm *g, const scratch *s, int64_t rows, int64_t panel, int64_t end,
                       const float *packed, const char *columns) {
    int64_t size = g->k * g->level->columns, segment;
    bool few = rows <= TN_GEMM_MAX_ROWS && !g->interleaved;
    if (packed && few)
        for (int64_t i = 0, p, n; (n = tn_gemm_few_panels(g->level, rows, g->n, panel, end, g->backwards, i, &p)) > 0;
             i++)
            sum_few(g, s, rows, p, (int)n, packed + p * size, 0, true);
    else if (!packed)
        for (int64_t p = few ? sum_unpacked(g, s, rows, panel, end, columns) : panel; p < end; p++) {
            if (few && p + 1 < end)
                tn_gemm_fetch_columns(g, columns, (p + 1) * g->level->columns);
            tn_gemm_pack_panel(g, columns, p * g->level->columns, s->panel);
            for (int64_t group = 0; group < (few ? 0 : g->groups); group++)
                sum_panel(g, s, rows, p, group, s->panel, NULL);
            if (few)
                sum_few(g, s, rows, p, 1, s->panel, 0, false);
        }
    else
        for (int64_t group = 0; group < g->groups; group++)
            for (int64_t p = panel; p < end; p++) {
                bool last = p + 1 == end;
                const float *next =
                    packed + (last ? panel : p + 1) * size + group_start(g, group + last, &segment) * g->level->columns;
                sum_panel(g, s, rows, p, group, packed + p * size, group + last < g->groups ? next : NULL);
            }
}

/* Where `rows` rows from `at` on begin: their first elements, their sums, what ends them. */
static void find_rows(const tn_gemm *g, const scratch *s, int64_t *at, int64_t rows) {
    const tn_resolved *r = g->r;
    const tn_resolved_access *a = &r->operand[0], *c = &r->output[0], *also = &r->operand[g->finish.all];
    int last = g->n_rows ? g->rows[g->n_rows - 1] : -1;
    for (int64_t i = 0, n; i < rows; i += n, tn_gemm_advance(r, g->rows, g->n_rows, at)) {
        tn_gemm_row *row = &s->row[i];
        tn_gemm_row_at(g, at, row);
        int64_t offset = tn_machine_offset(c, r->outer, at);
        s->out[i] = (float *)c->base + offset;
        if (s->to)
            s->to[i] = (uint16_t *)(void *)c->base + offset;
        if (s->all)
            s->all[i] = also->base + tn_machine_offset(also, r->outer, at) * also->element;
        /* those that follow along the last axis: a step from one to the next */
        n = last < 0 ? 1 : r->extent[last] - at[last];
        n = n < rows - i ? n : rows - i;
        if (n == 1)
            continue;
        at[last] += n - 1;
        int64_t step = a->stride[last] * a->element;
        for (int64_t k = 1; k < n; k++)
            row[k].a = row->a + k * step;
        for (int j = 0; j < a->guards; j++)
            for (int64_t k = 1; k < n; k++)
                row[k].guard[j] = row->guard[j] + k * a->guard[j].coef[last];
        for (int64_t k = 1; k < n; k++)
            s->out[i + k] = s->out[i] + k * c->stride[last];
        for (int64_t k = 1; k < n && s->to; k++)
            s->to[i + k] = s->to[i] + k * c->stride[last];
        for (int64_t k = 1; k < n && s->all; k++)
            s->all[i + k] = s->all[i] + k * also->stride[last] * also->element;
    }
}

/* Sums of columns [from, from + width) of rows [first, first + rows), which lie row by row, go to an output of which rows lie side by side. */
static void turn(const tn_gemm *g, int64_t *at, const float *sums, int64_t first, int64_t rows, int64_t from,
                 int64_t width) {
    const tn_resolved *r = g->r;
    const tn_resolved_access *c = &r->output[0];
    tn_move_transpose_fn *transpose = tn_move_of(r->kernel->program->level)->transpose[sizeof(float)];
    int64_t extent = r->extent[g->rows[g->n_rows - 1]], step = c->stride[g->column];
    for (int64_t i = 0, n; i < rows; i += n) {
        int64_t left = extent - (first + i) % extent;
        n = rows - i < left ? rows - i : left;
        decode(r, g->rows, g->n_rows, first + i, at);
        transpose(n, width, sums + i * width, width,
                  (float *)c->base + tn_machine_offset(c, r->outer, at) + from * step, step);
    }
}

/* Panels [panel, end) of rows [first, first + rows) of the batch at `at`. `packed`: its columns, NULL: they are packed a panel at a time. */
static __attribute__((noinline)) void sum_rows(const tn_gemm *g, const scratch *s, int64_t *at, int64_t first,
                                               int64_t rows, int64_t panel, int64_t end, const float *packed) {
    const tn_resolved *r = g->r;
    int columns = g->level->columns;
    const char *unpacked = columns_at(g, at);
    decode(r, g->rows, g->n_rows, first, at);
    find_rows(g, s, at, rows);
    int64_t line = g->direct ? g->run : g->k, parts = g->segments ? g->segments / g->taps : 1;
    for (int64_t i = 0; i < g->segments; i++) /* of the last: what is left */
        s->length[i] = i % parts == parts - 1 ? line - (parts - 1) * g->segment : g->segment;
    if (!g->k || g->by_lines) {
    } else if (g->direct)
        tn_gemm_point_rows(g, s->row, rows, first, s->zeros, s->table);
    else if (g->interleaved)
        tn_gemm_interleave_rows(g, s->row, rows, s->length, s->rows, s->table);
    else
        tn_gemm_pack_rows(g, s->row, rows, s->rows, s->table);
    for (int64_t to; panel < end; panel = to) {
        to = panel + g->step < end ? panel + g->step : end;
        int64_t from = panel * columns, width = (to * columns < g->n ? to * columns : g->n) - from;
        if (!g->in_place)
            for (int64_t i = 0; i < rows; i++)
                s->out[i] = s->sums + i * width - from;
        if (g->by_lines)
            tn_gemm_lines_sum(g, s->row, rows, first, packed, panel, to, s->out, s->all, s->lines);
        else
            sum_panels(g, s, rows, panel, to, packed, unpacked);
        if (g->turned)
            turn(g, at, s->sums, first, rows, from, width);
        else if (!g->finishes && (!g->in_place || r->kernel->epilogue))
            epilogues(g, at, s->out, first, rows, from, width);
    }
}

static void piece(void *ctx, int64_t index) {
    tn_gemm *g = ctx;
    const tn_resolved *r = g->r;
    int64_t span = index % g->spans, block = index / g->spans % g->blocks, batch = index / g->spans / g->blocks;
    int64_t first = block * g->block, rows = g->m - first < g->block ? g->m - first : g->block;
    int64_t panel = span * g->panels_per_span, end = panel + g->panels_per_span;
    end = end < g->panels ? end : g->panels;
    if (panel >= end)
        return;
    scratch s;
    if (!scratch_make(g, rows, &s)) {
        g->failed = 1;
        return;
    }
    int64_t at[TN_MACHINE_AXES] = {0};
    decode(r, g->batch, g->n_batch, batch, at);
    const float *packed = g->packed ? g->packed + batch_of_b(g, at) * g->panels * g->k * g->level->columns : NULL;
    sum_rows(g, &s, at, first, rows, panel, end, packed);
    scratch_free(g, &s);
}

/* Whether sums end as 16-bit floats, tile by tile; then says how. */
static bool ends_narrow(tn_gemm *g) {
    const tn_resolved_access *c = &g->r->output[0];
    return g->r->kernel->reduced != TN_F32 && (g->column < 0 || c->stride[g->column] == 1) &&
           tn_finish_make(&g->finish, g->r, g->column);
}

/* Whether tiles of f32 sums would end by calls, not in registers. */
static bool ends_by_calls(tn_gemm *g) {
    return g->r->kernel->reduced == TN_F32 && g->r->kernel->epilogue && tn_finish_make(&g->finish, g->r, g->column) &&
           !tn_finish_end_of(&g->finish, &g->end);
}

static tn_status run_at(const tn_kernel_args *args, const tn_gemm_level *level) {
    if (args->kept && *args->kept) {
        const tn_gemm *known = ((const tn_resolved *)*args->kept)->extra;
        if (known->few.known && known->few.threads == tn_pool_threads(args->pool)) {
            tn_gemm_few_run(args, &known->few, level);
            return TN_OK;
        }
    }
    const tn_kernel *k = args->kernel;
    tn_resolved *r = tn_resolve(args, TN_RESOLVE_PLAIN, sizeof(tn_gemm));
    if (!r)
        return tn_error_status();
    tn_gemm *g = r->extra;
    int threads = tn_pool_threads(args->pool);
    bool fresh = g->threads != threads;
    if (fresh) {
        *g = (tn_gemm){.level = level, .heap = args->heap, .packed = k->packed, .threads = threads};
        tn_gemm_describe(g, r, k);
        if (r->outputs_count) {
            const tn_resolved_access *c = &r->output[0];
            g->in_place =
                k->outputs == 1 && c->dtype == TN_F32 && (g->column < 0 || c->stride[g->column] == 1 || g->n == 1);
            g->by_strips = g->n < FEW && ends_by_calls(g);
            g->in_place &= !g->by_strips;
            g->turns = !g->in_place && k->outputs == 1 && c->dtype == TN_F32 && k->reduced == TN_F32 &&
                       g->column >= 0 && g->n_rows && c->stride[g->rows[g->n_rows - 1]] == 1 &&
                       r->extent[g->rows[g->n_rows - 1]] >= LEAST_TURNED;
            tn_gemm_cut(g, threads, g->turns || (!g->in_place && ends_narrow(g)));
            g->by_lines = tn_gemm_lines_fit(g, &g->lines);
            if (g->by_lines)
                tn_gemm_lines_cut(g);
        }
    }
    g->failed = 0;
    g->backwards = args->backwards;
    bool few = g->by_lines && g->lines.few;
    g->finishes = r->outputs_count && !few && !g->by_strips &&
                  (g->in_place || g->turns ? k->epilogue && tn_finish_make(&g->finish, r, g->column) : ends_narrow(g));
    g->ends = g->finishes && (g->in_place || g->turns) && tn_finish_end_of(&g->finish, &g->end);
    g->narrows = g->finishes && !g->in_place && !g->turns && g->level->narrows && g->finish.dtype == TN_F16 &&
                 tn_finish_bounds_of(&g->finish, &g->end);
    g->finishes = g->finishes && (g->ends || !g->by_lines);
    g->turned = g->turns && (g->finishes || !k->epilogue);
    if (fresh && r->outputs_count)
        tn_gemm_few_learn(args, g);
    if (r->outputs_count) {
        int64_t pieces = g->blocks * g->batches * g->spans, rows = g->block < g->m ? g->block : g->m;
        size_t bytes = scratch_lay(g, rows, g->step * g->level->columns, NULL, NULL);
        if (bytes > sizeof((scratch *)NULL)->small && !tn_places_make(&g->places, g->heap, args->pool, pieces, bytes))
            g->failed = 1;
        else
            /* pieces that share columns go side by side: those come from memory once */
            (g->spans == 1 ? tn_pool_run_ends : tn_pool_run)(args->pool, pieces, piece, g);
        tn_places_free(&g->places);
    }
    bool failed = g->failed;
    tn_resolved_free(args, r);
    return failed ? tn_fail(TN_ERR_MEMORY, "out of memory in a contraction") : TN_OK;
}

/* --- for kernels that a contraction is a part of ------------------------------------------------------------------------------------------------ */

void tn_gemm_open(tn_gemm *g, const tn_gemm_level *level, const tn_resolved *r, int64_t rows, bool packed) {
    static const float somewhere;
    *g = (tn_gemm){.level = level, .packed = packed ? &somewhere : NULL, .in_place = true};
    tn_gemm_describe(g, r, r->kernel);
    tn_gemm_cut(g, 1, false);
    g->block = rows < g->m ? rows : g->m;
    g->spans = 1;
    g->panels_per_span = g->panels;
    g->step = TN_GEMM_SUM_BYTES / 4 / g->block / level->columns;
    g->step = g->step < 1 ? 1 : g->step > g->panels ? g->panels : g->step;
}

void tn_gemm_use_lines(tn_gemm *g) {
    g->by_lines = tn_gemm_lines_fit(g, &g->lines);
    g->step = g->by_lines ? g->panels_per_span : g->step;
}

void tn_gemm_see_ends(tn_gemm *g) {
    g->finishes =
        g->r->kernel->epilogue && !(g->by_lines && g->lines.few) && tn_finish_make(&g->finish, g->r, g->column);
    g->ends = g->finishes && tn_finish_end_of(&g->finish, &g->end);
    g->finishes = g->finishes && (g->ends || !g->by_lines);
}

size_t tn_gemm_rows_bytes(const tn_gemm *g) {
    return scratch_lay(g, g->block, 0, NULL, NULL);
}

void tn_gemm_batch_at(const tn_gemm *g, int64_t batch, int64_t *at) {
    decode(g->r, g->batch, g->n_batch, batch, at);
}

int64_t tn_gemm_columns_of(const tn_gemm *g, const int64_t *at) {
    return batch_of_b(g, at);
}

void tn_gemm_pack_columns(const tn_gemm *g, const int64_t *at, float *to) {
    const char *from = columns_at(g, at);
    for (int64_t p = 0; p < g->panels; p++)
        tn_gemm_pack_panel(g, from, p * g->level->columns, to + p * g->k * g->level->columns);
}

void tn_gemm_rows(const tn_gemm *g, int64_t *at, int64_t first, int64_t rows, const float *packed, void *room) {
    scratch s = {.place = NULL};
    scratch_lay(g, rows, 0, &s, room);
    sum_rows(g, &s, at, first, rows, 0, g->panels, packed);
}

/* --- the rows of the table ---------------------------------------------------------------------------------------------------------------------- */

static bool is_narrow_float(int dtype) {
    return dtype == TN_F32 || dtype == TN_F16 || dtype == TN_BF16;
}

static bool takes(const tn_kernel *k, const tn_kernel_facts *facts) {
    (void)facts;
    return k->role && is_narrow_float(k->operand[0].dtype) && is_narrow_float(k->operand[1].dtype) &&
           k->accumulator == TN_F32 && is_narrow_float(k->reduced) && !k->operand[1].guards &&
           k->operand[0].guards <= 4 && !k->steps && k->inner > 0 &&
           k->operands + k->epilogue + 1 <= TN_MACHINE_REGISTERS;
}

/* Constant columns are packed now, when their shape is constant. */
static tn_status prepare_at(tn_kernel *k, const tn_kernel_facts *f, const tn_gemm_level *level) {
    TN_TRY(tn_strip_prepare(k, f));
    const tn_access *b = &k->operand[1];
    const tn_tensor *w = f->weights(f->ctx, b->slot);
    if (!w)
        return TN_OK;
    tn_resolved r = {.kernel = k, .outer = k->outer, .inner = k->inner};
    tn_resolved_access access[2] = {
        {0}, {.base = w->data, .dtype = (tn_dtype)b->dtype, .element = tn_dtype_bits((tn_dtype)b->dtype) / 8}};
    r.operand = access;
    int64_t offset;
    if (!f->constant(f->ctx, b->offset, &offset))
        return TN_OK;
    access[1].base += offset * access[1].element;
    for (int i = 0; i < k->outer + k->inner; i++) {
        if (!f->constant(f->ctx, b->stride[i], &access[1].stride[i]))
            return TN_OK;
        if (!access[1].stride[i] && i < k->outer && k->role[i] != TN_AXIS_COLUMN)
            r.extent[i] = 1; /* of rows, or of batches that share columns */
        else if (!f->constant(f->ctx, k->extent[i], &r.extent[i]))
            return TN_OK;
    }
    tn_gemm g = {.level = level};
    tn_gemm_describe(&g, &r, k);
    g.panels = (g.n + level->columns - 1) / level->columns;
    int64_t sets = batch_count_of_b(&g);
    if (!g.n || !g.k || !sets)
        return TN_OK;
    size_t bytes = (size_t)(sets * g.panels * g.k * level->columns) * sizeof(float);
    tn_pack_form form = {.unfilled = f->unfilled};
    const int64_t said[] = {TN_PACK_COLUMNS, level->columns, b->dtype, offset, k->outer, k->inner};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        tn_pack_say(&form, said[i]);
    for (int i = 0; i < k->outer + k->inner; i++) {
        tn_pack_say(&form, k->role[i]);
        tn_pack_say(&form, r.extent[i]);
        tn_pack_say(&form, access[1].stride[i]);
    }
    float *to;
    TN_TRY(tn_kernel_pack(k, f, &form, bytes, &to));
    k->packed_only = true;
    if (!to)
        return TN_OK;
    for (int64_t set = 0; set < sets && !f->unfilled; set++) {
        int64_t at[TN_MACHINE_AXES] = {0};
        decode(&r, g.batch, g.n_batch, set, at);
        for (int64_t p = 0; p < g.panels; p++, to += g.k * level->columns)
            tn_gemm_pack_panel(&g, columns_at(&g, at), p * level->columns, to);
    }
    return tn_kernel_packed(k, f, &form);
}

#define LEVEL(name)                                                           \
    static tn_status run_##name(const tn_kernel_args *args) {                 \
        return run_at(args, &tn_gemm_##name);                                 \
    }                                                                         \
    static tn_status prepare_##name(tn_kernel *k, const tn_kernel_facts *f) { \
        return prepare_at(k, f, &tn_gemm_##name);                             \
    }
#define ROW(n, level)                                                                                                \
    {                                                                                                                \
        .name = "contraction " #n, .kind = TN_KERNEL_CONTRACT, .isa = level, .takes = takes, .prepare = prepare_##n, \
        .run = run_##n                                                                                               \
    }
LEVEL(generic)
#if defined(TN_HAVE_ISA_AVX512)
LEVEL(avx2)
LEVEL(avx512)
#elif defined(TN_HAVE_ISA_NEON)
LEVEL(neon)
#endif

const tn_kernel_impl tn_kernel_gemm[] = {
    ROW(generic, TN_ISA_GENERIC),
#if defined(TN_HAVE_ISA_AVX512)
    ROW(avx2, TN_ISA_AVX2),
    ROW(avx512, TN_ISA_AVX512),
#elif defined(TN_HAVE_ISA_NEON)
    ROW(neon, TN_ISA_NEON),
#endif
};
