/* Contractions summed in f32: rows and columns in register tiles (gemm.h). Rows are read in place where the summed index runs through
   memory; else, and where elements are narrower, they are packed a block at a time. Constant columns are packed when the plan is
   made. */
#include <string.h>

#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "kernels/machine.h"

#define BLOCK_BYTES (384 << 10) /* of rows that stay in L2 while the columns pass */
#define SHORT_RUN 8             /* shorter runs are packed into rows */

typedef struct gemm {
    const tn_resolved *r;
    const tn_gemm_level *level;
    tn_heap *heap;
    int column; /* axis, -1: none */
    int rows[TN_MACHINE_AXES], n_rows;
    int batch[TN_MACHINE_AXES], n_batch;
    int first_sum, last_sum; /* summed axes; the runs are [run_axis, last_sum] */
    int run_axis;
    int64_t m, n, k, batches; /* counts */
    int64_t run, taps;        /* elements of a run, number of runs of one output */
    int64_t panels, block, blocks, groups, panels_per_group;
    tn_strip_load_fn *load[2]; /* of rows, of columns; NULL: they are f32 in memory */
    tn_strip_fn *round;        /* of sums; NULL: they stay f32 */
    bool direct;               /* rows are read in place */
    bool in_place;             /* sums are formed in the output itself */
    const float *packed;       /* columns, NULL: packed by each piece */
    _Atomic int failed;
} gemm;

/* --- columns --------------------------------------------------------------------------------------------------------------------------- */

/* Reads constants where a file put them, at any byte. */
static float read_f32(const float *from) {
    float x;
    memcpy(&x, from, sizeof x);
    return x;
}

/* n elements of two bytes, `stride` apart, at any byte. */
static void read_narrow(tn_strip_load_fn *load, const uint16_t *from, int64_t n, int64_t stride, float *to) {
    uint16_t line[64];
    for (int64_t k = 0; k < n; k += 64) {
        int64_t count = n - k < 64 ? n - k : 64;
        if (stride == 1)
            memcpy(line, (const char *)from + 2 * k, (size_t)count * 2);
        else
            for (int64_t i = 0; i < count; i++)
                memcpy(line + i, (const char *)from + 2 * (k + i) * stride, 2);
        load(count, line, 1, to + k);
    }
}

/* The same as pack_run of f16 and bf16. */
static void pack_narrow(tn_strip_load_fn *load, const uint16_t *from, int64_t step, int64_t have, int64_t length,
                        int64_t stride, int width, float *to) {
    float line[16];
    for (int64_t k = 0; k < length; k += 16) {
        int64_t end = k + 16 < length ? k + 16 : length;
        if (step == 1 || stride != 1)
            for (int64_t i = k; i < end; i++)
                read_narrow(load, from + i * stride, have, step, to + i * width);
        else
            for (int64_t j = 0; j < have; j++) {
                read_narrow(load, from + j * step + k, end - k, 1, line);
                for (int64_t i = k; i < end; i++)
                    to[i * width + j] = line[i - k];
            }
        for (int64_t i = k; i < end; i++)
            for (int64_t j = have; j < width; j++)
                to[i * width + j] = 0;
    }
}

/* `have` columns, `step` apart, of `length` summed elements, `stride` apart; a block at a time, so that lines are read once. */
static void pack_run(const float *from, int64_t step, int64_t have, int64_t length, int64_t stride, int width,
                     float *to) {
    for (int64_t k = 0; k < length; k += 16) {
        int64_t end = k + 16 < length ? k + 16 : length;
        if (step == 1)
            for (int64_t i = k; i < end; i++)
                memcpy(to + i * width, from + i * stride, (size_t)have * sizeof *to);
        else
            for (int64_t j = 0; j < have; j++)
                for (int64_t i = k; i < end; i++)
                    to[i * width + j] = read_f32(from + j * step + i * stride);
        for (int64_t i = k; i < end; i++)
            for (int64_t j = have; j < width; j++)
                to[i * width + j] = 0;
    }
}

/* One panel: `width` columns (zeros beyond n) of all summed elements in their order. */
static void pack_panel(const gemm *g, const char *b, int64_t first, int width, float *to) {
    const tn_resolved_access *a = &g->r->operand[1];
    int64_t step = g->column >= 0 ? a->stride[g->column] : 0, have = g->n - first < width ? g->n - first : width;
    int64_t at[TN_MACHINE_AXES] = {0}, length = g->r->extent[g->last_sum];
    if (!g->k)
        return;
    do {
        int64_t offset = first * step, stride = a->stride[g->last_sum];
        for (int i = g->first_sum; i < g->last_sum; i++)
            offset += at[i] * a->stride[i];
        const void *from = b + offset * a->element;
        if (g->load[1])
            pack_narrow(g->load[1], from, step, have, length, stride, width, to);
        else
            pack_run(from, step, have, length, stride, width, to);
        to += length * width;
        at[g->last_sum] = length - 1;
    } while (tn_machine_next(g->r, at));
}

static int64_t batch_count_of_b(const gemm *g) {
    int64_t n = 1;
    for (int i = 0; i < g->n_batch; i++)
        if (g->r->operand[1].stride[g->batch[i]])
            n *= g->r->extent[g->batch[i]];
    return n;
}

/* Which set of columns a batch uses. */
static int64_t batch_of_b(const gemm *g, const int64_t *at) {
    int64_t index = 0;
    for (int i = 0; i < g->n_batch; i++)
        if (g->r->operand[1].stride[g->batch[i]])
            index = index * g->r->extent[g->batch[i]] + at[g->batch[i]];
    return index;
}

static const char *columns_at(const gemm *g, const int64_t *at) {
    const tn_resolved_access *b = &g->r->operand[1];
    const char *p = b->base;
    for (int i = 0; i < g->n_batch; i++)
        p += at[g->batch[i]] * b->stride[g->batch[i]] * b->element;
    return p;
}

/* --- shape of the work ------------------------------------------------------------------------------------------------------------------ */

static bool guards_use(const tn_resolved_access *a, int axis) {
    for (int i = 0; i < a->guards; i++)
        if (a->guard[i].coef[axis])
            return true;
    return false;
}

static void describe(gemm *g, const tn_resolved *r, const tn_kernel *k) {
    const tn_resolved_access *a = &r->operand[0];
    const tn_strip_level *strip = k->program->level;
    g->r = r;
    for (int i = 0; i < 2; i++)
        g->load[i] = k->operand[i].dtype == TN_F32 ? NULL : strip->load[k->operand[i].dtype];
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
    g->direct = !g->load[0] && (g->run >= SHORT_RUN || g->run == g->k);
    if (!g->direct) {
        g->taps = 1;
        return;
    }
    g->taps = 1;
    for (int i = g->first_sum; i < g->run_axis; i++)
        g->taps *= r->extent[i];
}

/* --- rows -------------------------------------------------------------------------------------------------------------------------------- */

typedef struct row_info {
    const char *a;
    int64_t guard[4]; /* guards' values at the row, summed indices zero */
} row_info;

static void decode(const tn_resolved *r, const int *axes, int count, int64_t index, int64_t *at) {
    for (int i = count - 1; i >= 0; i--) {
        at[axes[i]] = index % r->extent[axes[i]];
        index /= r->extent[axes[i]];
    }
}

/* The next of the indices that `decode` counts. */
static void advance(const tn_resolved *r, const int *axes, int count, int64_t *at) {
    for (int i = count - 1; i >= 0; i--) {
        if (++at[axes[i]] < r->extent[axes[i]])
            return;
        at[axes[i]] = 0;
    }
}

static void row_at(const gemm *g, const int64_t *at, row_info *info) {
    const tn_resolved_access *a = &g->r->operand[0];
    info->a = a->base + tn_machine_offset(a, g->r->outer, at) * a->element;
    for (int i = 0; i < a->guards; i++) {
        info->guard[i] = a->guard[i].offset;
        for (int j = 0; j < g->r->outer; j++)
            info->guard[i] += a->guard[i].coef[j] * at[j];
    }
}

static bool inside(const tn_resolved_access *a, const row_info *row, const int64_t *guard) {
    for (int i = 0; i < a->guards; i++) {
        int64_t v = row->guard[i] + guard[i];
        if (v < 0 || v >= a->guard[i].extent)
            return false;
    }
    return true;
}

/* Steps through the taps: offset and guards' shares of each. */
static void tap_at(const gemm *g, const int64_t *at, int last, int64_t *offset, int64_t *guard) {
    const tn_resolved_access *a = &g->r->operand[0];
    *offset = 0;
    memset(guard, 0, 4 * sizeof *guard);
    for (int i = g->first_sum; i < last; i++) {
        *offset += a->stride[i] * at[i];
        for (int j = 0; j < a->guards; j++)
            guard[j] += a->guard[j].coef[i] * at[i];
    }
}

static bool next_tap(const gemm *g, int64_t *at, int last) {
    for (int i = last - 1; i >= g->first_sum; i--) {
        if (++at[i] < g->r->extent[i])
            return true;
        at[i] = 0;
    }
    return false;
}

static void point_rows(const gemm *g, const row_info *info, int64_t rows, const float *zeros, const float **table,
                       int64_t stride) {
    const tn_resolved_access *a = &g->r->operand[0];
    int64_t at[TN_MACHINE_AXES] = {0}, offset, guard[4];
    int64_t tap = 0;
    do {
        tap_at(g, at, g->run_axis, &offset, guard);
        for (int64_t i = 0; i < rows; i++)
            table[tap * stride + i] =
                inside(a, &info[i], guard) ? (const float *)(const void *)info[i].a + offset : zeros;
        tap++;
    } while (next_tap(g, at, g->run_axis));
}

/* The elements [*low, *high) of a run of n, `coef` apart in each guard's value, that lie inside. */
static void inside_run(const tn_resolved_access *a, const row_info *row, const int64_t *guard, const int64_t *coef,
                       int64_t n, int64_t *low, int64_t *high) {
    int64_t lo = 0, hi = n;
    for (int i = 0; i < a->guards; i++) {
        int64_t v = row->guard[i] + guard[i], left = a->guard[i].extent - v, c = coef[i];
        int64_t from = v >= 0 ? 0 : c == 1 ? -v : c ? (c - 1 - v) / c : n;
        int64_t to = left <= 0 ? 0 : c == 1 ? left : c ? (left + c - 1) / c : n;
        lo = from > lo ? from : lo;
        hi = to < hi ? to : hi;
    }
    *low = lo < hi ? lo : 0;
    *high = lo < hi ? hi : 0;
}

/* Copies rows so that their summed elements lie side by side: runs along the last summed axis that is more than one element. */
static void pack_rows(const gemm *g, const row_info *info, int64_t rows, float *to, const float **table) {
    const tn_resolved_access *a = &g->r->operand[0];
    int last = g->last_sum;
    while (last > g->first_sum && g->r->extent[last] == 1)
        last--;
    int64_t length = g->r->extent[last], step = a->stride[last], coef[4] = {0};
    if (g->run_axis <= last)
        last = g->run_axis, length = g->run, step = 1;
    else
        for (int i = 0; i < a->guards; i++)
            coef[i] = a->guard[i].coef[last];
    int64_t at[TN_MACHINE_AXES] = {0}, offset, guard[4], k = 0, low, high;
    for (int64_t i = 0; i < rows; i++)
        table[i] = to + i * g->k;
    do {
        tap_at(g, at, last, &offset, guard);
        for (int64_t i = 0; i < rows; i++) {
            float *line = to + i * g->k + k;
            const void *at_row = info[i].a + offset * a->element;
            const float *from = at_row;
            inside_run(a, &info[i], guard, coef, length, &low, &high);
            for (int64_t j = 0; j < low; j++)
                line[j] = 0;
            if (g->load[0]) {
                if (low < high)
                    g->load[0](high - low, (const uint16_t *)at_row + low * step, step, line + low);
            } else if (step == 1)
                for (int64_t j = low; j < high; j++)
                    line[j] = from[j];
            else
                for (int64_t j = low; j < high; j++)
                    line[j] = from[j * step];
            for (int64_t j = high; j < length; j++)
                line[j] = 0;
        }
        k += length;
    } while (next_tap(g, at, last));
}

/* --- one piece ------------------------------------------------------------------------------------------------------------------------------ */

/* `rows` rows of sums, side by side in memory, from at (which has rows' axes) on: columns [first, first + count). More than one row
   only of all columns. */
static void epilogue(const gemm *g, tn_strip *s, int64_t *at, float *sums, int64_t first, int64_t count, int64_t rows) {
    int64_t most = s->program->length;
    int tile = g->n_rows ? g->rows[g->n_rows - 1] : -1;
    for (int64_t j = 0; j < count; j += most) {
        if (g->column >= 0)
            at[g->column] = first + j;
        tn_strip_block b = {
            .at = at, .axis = g->column, .tile = tile, .n = count - j < most ? count - j : most, .rows = rows};
        if (g->round)
            g->round(b.n * rows, sums + j, NULL, NULL, sums + j);
        tn_strip_run(s, TN_STRIP_AFTER, &b, sums + j);
    }
    if (g->column >= 0)
        at[g->column] = 0;
}

/* The epilogue of rows [first, first + rows) of the block at `at`: as many together as lie side by side. */
static void epilogues(const gemm *g, int64_t *at, float *const *out, int64_t first, int64_t rows, int64_t from,
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
    row_info *info;
    const float **table;
    float *zeros, *rows, *panel, *sums;
    float **out;
    void *block;
} scratch;

static size_t aligned(size_t n) {
    return (n + 63) & ~(size_t)63;
}

static bool scratch_make(const gemm *g, int64_t rows, int64_t width, scratch *s) {
    size_t info = aligned((size_t)rows * sizeof *s->info), table = aligned((size_t)(rows * g->taps) * sizeof *s->table),
           zeros = aligned((size_t)g->run * sizeof(float)),
           packed = g->direct ? 0 : aligned((size_t)(rows * g->k) * sizeof(float)),
           panel = g->packed ? 0 : aligned((size_t)(g->k * g->level->columns) * sizeof(float)),
           sums = g->in_place ? 0 : aligned((size_t)(rows * width) * sizeof(float)),
           out = aligned((size_t)rows * sizeof *s->out);
    char *p = tn_alloc_aligned(g->heap, info + table + zeros + packed + panel + sums + out + 64, 64);
    s->block = p;
    if (!p)
        return false;
    s->info = (row_info *)(void *)p;
    s->table = (const float **)(void *)(p += info);
    s->zeros = (float *)(void *)(p += table);
    s->rows = (float *)(void *)(p += zeros);
    s->panel = (float *)(void *)(p += packed);
    s->sums = (float *)(void *)(p += panel);
    s->out = (float **)(void *)(p + sums);
    memset(s->zeros, 0, zeros);
    return true;
}

static void piece(void *ctx, int64_t index) {
    gemm *g = ctx;
    const tn_resolved *r = g->r;
    const tn_gemm_level *level = g->level;
    int64_t group = index % g->groups, block = index / g->groups % g->blocks, batch = index / g->groups / g->blocks;
    int64_t first = block * g->block, rows = g->m - first < g->block ? g->m - first : g->block;
    int64_t panel = group * g->panels_per_group, end = panel + g->panels_per_group;
    end = end < g->panels ? end : g->panels;
    if (panel >= end)
        return;
    int64_t from = panel * level->columns, width = (end * level->columns < g->n ? end * level->columns : g->n) - from;
    scratch s;
    if (!scratch_make(g, rows, width, &s)) {
        g->failed = 1;
        return;
    }
    int64_t at[TN_MACHINE_AXES] = {0};
    decode(r, g->batch, g->n_batch, batch, at);
    const tn_resolved_access *c = &r->output[0];
    decode(r, g->rows, g->n_rows, first, at);
    for (int64_t i = 0; i < rows; i++, advance(r, g->rows, g->n_rows, at)) {
        row_at(g, at, &s.info[i]);
        s.out[i] = g->in_place ? (float *)c->base + tn_machine_offset(c, r->outer, at) : s.sums + i * width - from;
    }
    if (g->direct)
        point_rows(g, s.info, rows, s.zeros, s.table, rows);
    else
        pack_rows(g, s.info, rows, s.rows, s.table);
    const float *b = g->packed ? g->packed + batch_of_b(g, at) * g->panels * g->k * level->columns : NULL;
    int64_t length_all = g->direct ? g->run : g->k, lengths[64];
    int64_t *length = g->taps <= 64 ? lengths : tn_alloc_array(g->heap, (size_t)g->taps, sizeof *length);
    if (!length) {
        g->failed = 1;
        tn_free(g->heap, s.block);
        return;
    }
    for (int64_t t = 0; t < g->taps; t++)
        length[t] = length_all;
    for (int64_t p = panel; p < end; p++) {
        const float *columns = b ? b + p * g->k * level->columns : s.panel;
        if (!b)
            pack_panel(g, columns_at(g, at), p * level->columns, level->columns, s.panel);
        int64_t left = g->n - p * level->columns;
        for (int64_t i = 0; i < rows; i += level->rows) {
            float *out[TN_GEMM_MAX_ROWS];
            tn_gemm_tile t = {.rows = (int)(rows - i < level->rows ? rows - i : level->rows),
                              .columns = (int)(left < level->columns ? left : level->columns),
                              .runs = g->k ? g->taps : 0,
                              .length = length,
                              .a = s.table + i,
                              .stride = rows,
                              .b = columns,
                              .c = out};
            for (int j = 0; j < t.rows; j++)
                out[j] = s.out[i + j] + p * level->columns;
            level->tile(&t);
        }
    }
    if (!g->in_place || r->kernel->epilogue)
        epilogues(g, at, s.out, first, rows, from, width);
    if (length != lengths)
        tn_free(g->heap, length);
    tn_free(g->heap, s.block);
}

static tn_status run_at(const tn_kernel_args *args, const tn_gemm_level *level) {
    const tn_kernel *k = args->kernel;
    tn_resolved r;
    TN_TRY(tn_resolve_plain(&r, args));
    gemm g = {.level = level, .heap = args->heap, .packed = k->packed};
    describe(&g, &r, k);
    if (r.outputs_count) {
        const tn_resolved_access *c = &r.output[0];
        g.in_place = k->outputs == 1 && c->dtype == TN_F32 && (g.column < 0 || c->stride[g.column] == 1 || g.n == 1);
        g.panels = (g.n + level->columns - 1) / level->columns;
        int64_t row_bytes = (g.k ? g.k : 1) * (int64_t)sizeof(float);
        g.block = BLOCK_BYTES / row_bytes / level->rows * level->rows;
        g.block = g.block < 4 * level->rows ? 4 * level->rows : g.block > 1200 ? 1200 : g.block;
        int threads = tn_pool_threads(args->pool);
        int64_t wanted = threads > 1 ? 4 * threads : 1;
        int64_t even = (g.m * g.batches + wanted - 1) / wanted;
        even = (even + level->rows - 1) / level->rows * level->rows;
        if (even < g.block && even >= 4 * level->rows)
            g.block = even;
        g.blocks = (g.m + g.block - 1) / g.block;
        int64_t pieces = g.blocks * g.batches;
        g.groups = pieces >= wanted ? 1 : (wanted + pieces - 1) / pieces;
        g.groups = g.groups > g.panels ? g.panels : g.groups;
        g.panels_per_group = (g.panels + g.groups - 1) / g.groups;
        tn_pool_run(args->pool, pieces * g.groups, piece, &g);
    }
    tn_resolved_free(&r);
    return g.failed ? tn_fail(TN_ERR_MEMORY, "out of memory in a contraction") : TN_OK;
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
    gemm g = {.level = level};
    describe(&g, &r, k);
    g.panels = (g.n + level->columns - 1) / level->columns;
    int64_t sets = batch_count_of_b(&g);
    if (!g.n || !g.k || !sets)
        return TN_OK;
    size_t bytes = (size_t)(sets * g.panels * g.k * level->columns) * sizeof(float);
    float *to = tn_alloc_aligned(f->heap, bytes, 64);
    if (!to)
        return TN_ERR_MEMORY;
    k->packed = to;
    k->packed_bytes = bytes;
    k->packed_only = true;
    for (int64_t set = 0; set < sets; set++) {
        int64_t at[TN_MACHINE_AXES] = {0};
        decode(&r, g.batch, g.n_batch, set, at);
        for (int64_t p = 0; p < g.panels; p++, to += g.k * level->columns)
            pack_panel(&g, columns_at(&g, at), p * level->columns, level->columns, to);
    }
    return TN_OK;
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
