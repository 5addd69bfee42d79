/* Winograd's convolution summed in f32 (ops/winograd.h), a block of tiles at a time: what a block reads is transformed, and for each panel of
   columns its points' products are summed in register tiles (gemm.h), transformed and ended, while all of that is in the caches. Neither
   the image nor the sums are ever whole in transformed form. Each output is made by the same operations wherever its tile stands. */
#include <string.h>

#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "kernels/machine.h"
#include "kernels/move.h"
#include "kernels/winograd.h"
#include "lower/packs.h"

#define GROUP 256             /* summed elements: a panel of so many stays in L1 */
#define BLOCK_BYTES (1 << 18) /* of a block's transformed inputs */
#define TILES_LEAST 24        /* of a block: fewer, and weights pass too often */
#define TILES_FEW 6           /* so many still fill a register tile's rows */
#define BLOCK_MOST (8 << 20)  /* bytes, whatever that says */
#define TILES_MOST 96
#define WORTH (1 << 17) /* multiply-adds: less is not worth another thread */
#define POINTS (TN_WINOGRAD_MOST * TN_WINOGRAD_MOST)
#define OUTPUTS 16 /* of a tile, at most */

enum { IMAGE, COLUMN, TALL, WIDE, TAP_TALL, TAP_WIDE, CHANNEL, AXES }; /* of the kernel, as convolutions are lowered */
enum { OUTER = TAP_TALL };

typedef struct winograd {
    const tn_resolved *r;
    const tn_gemm_level *level;
    tn_winograd_in_fn *in;
    tn_winograd_out_fn *out;
    tn_strip_load_fn *load; /* of inputs and to the sums' dtype; NULL: that is f32 */
    tn_strip_fn *round;
    int m, n;
    int64_t channels, columns, panels;
    int64_t tall, wide, tiles; /* tiles of an image's column and row; all */
    int64_t low[2], high[2];   /* positions along either axis, counted from the first output's, that are read */
    int64_t block, blocks, spans, span; /* tiles of a block; panels of a span */
    int64_t row, pitch,
        sums_pitch; /* floats from tile to tile and from point to point of inputs, from point to point of sums */
    bool in_place, finishes;
    tn_finish finish;
    tn_places places;
    int threads; /* that it was cut for; 0: not yet */
    _Atomic int failed;
} winograd;

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static void describe(winograd *w, const tn_resolved *r) {
    const tn_resolved_access *x = &r->operand[0], *y = &r->output[0];
    const tn_winograd *t = tn_winograd_transforms(r->kernel->winograd);
    w->r = r;
    w->m = t->m;
    w->n = t->n;
    w->channels = r->extent[CHANNEL];
    w->columns = r->extent[COLUMN];
    w->panels = ceil_div(w->columns, w->level->columns);
    w->tall = ceil_div(r->extent[TALL], w->m);
    w->wide = ceil_div(r->extent[WIDE], w->m);
    w->tiles = r->extent[IMAGE] * w->tall * w->wide;
    for (int i = 0; i < 2; i++) {
        w->low[i] = 0;
        w->high[i] = r->extent[TALL + i] + 2;
        for (int j = 0; j < x->guards; j++) {
            const tn_resolved_guard *g = &x->guard[j];
            if (!g->coef[TALL + i])
                continue;
            w->low[i] = -g->offset > 0 ? -g->offset : 0;
            w->high[i] = g->extent - g->offset < w->high[i] ? g->extent - g->offset : w->high[i];
        }
    }
    w->load = x->dtype == TN_F32 ? NULL : r->kernel->program->level->load[x->dtype];
    w->round = r->kernel->program->level->round[r->kernel->reduced];
    w->in_place = r->kernel->outputs == 1 && y->dtype == TN_F32 && r->kernel->reduced == TN_F32 &&
                  (y->stride[COLUMN] == 1 || w->columns == 1);
}

static void cut(winograd *w, int threads) {
    int64_t points = (int64_t)w->n * w->n, rows = w->level->rows;
    w->row = (w->channels + 15) & ~(int64_t)15;
    int64_t tile = points * w->row * (int64_t)sizeof(float), most = BLOCK_BYTES / tile / rows * rows;
    most = most < TILES_LEAST ? TILES_LEAST : most > TILES_MOST ? TILES_MOST : most;
    most = most * tile > BLOCK_MOST ? BLOCK_MOST / tile + 1 : most;
    double worth = (double)w->tiles * (double)points * (double)w->channels * (double)w->columns / WORTH;
    int64_t wanted = threads > 1 ? 4 * threads : 1;
    wanted = worth < 1 ? 1 : worth < (double)wanted ? (int64_t)worth : wanted;
    int64_t sharers = wanted < threads ? wanted : threads, even = ceil_div(w->tiles, wanted);
    even = even < TILES_LEAST ? TILES_LEAST : even;
    if (even > w->tiles / sharers) /* a span transforms what its neighbour does: rather few tiles */
        even = w->tiles / sharers < TILES_FEW ? TILES_FEW : ceil_div(w->tiles, sharers);
    most = even < most ? even : most;
    w->block = ceil_div(w->tiles, ceil_div(w->tiles, most));
    w->blocks = ceil_div(w->tiles, w->block);
    w->spans = w->blocks >= sharers ? 1 : ceil_div(sharers, w->blocks);
    w->spans = w->spans > w->panels ? w->panels : w->spans;
    w->span = ceil_div(w->panels, w->spans);
    w->spans = ceil_div(w->panels, w->span);
    /* points lie so that they do not share sets of the caches */
    w->pitch = w->block * w->row + 16;
    w->sums_pitch = w->block * w->level->columns + 16;
}

/* --- one piece ----------------------------------------------------------------------------------------------------------------------- */

typedef struct scratch {
    float *v, *s; /* points of the inputs, of the sums */
    float *zeros; /* what is read outside */
    float *
        lines; /* lines of inputs whose channels do not lie side by side, turned so that they do, or that are not f32 */
    char *turned; /* such a line of 16-bit floats */
    float *whole; /* sums that wait for strips: the lines of each run */
} scratch;

static size_t aligned(int64_t floats) {
    return ((size_t)floats * sizeof(float) + 63) & ~(size_t)63;
}

/* Floats of a line of a run's inputs. */
static int64_t line_pitch(const winograd *w) {
    return ((w->block < w->wide ? w->block : w->wide) * w->m + 2) * w->channels;
}

/* Lays the arrays out from `p` on, and answers their size; NULL: only that. */
static size_t scratch_lay(const winograd *w, scratch *s, char *p) {
    int64_t points = (int64_t)w->n * w->n;
    bool beside = w->r->operand[0].stride[CHANNEL] == 1 && !w->load;
    size_t v = aligned(points * w->pitch), sums = aligned(points * w->sums_pitch), zeros = aligned(w->channels),
           lines = beside ? 0 : aligned(w->n * line_pitch(w)), turned = w->load ? aligned(line_pitch(w) / 2 + 1) : 0,
           whole = w->in_place ? 0 : aligned(w->block * w->m * w->m * w->span * w->level->columns);
    if (p) {
        s->v = (float *)(void *)p;
        s->s = (float *)(void *)(p += v);
        s->zeros = (float *)(void *)(p += sums);
        s->lines = beside ? NULL : (float *)(void *)(p + zeros);
        s->turned = p + zeros + lines;
        s->whole = (float *)(void *)(p + zeros + lines + turned);
        memset(s->zeros, 0, zeros);
    }
    return v + sums + zeros + lines + turned + whole;
}

/* Tiles of a block that stand beside each other in an image. */
typedef struct run {
    int64_t first, count;
    int64_t image, i, j;   /* the first output */
    int64_t rows, columns; /* of the outputs that there are */
} run;

static run run_from(const winograd *w, int64_t tile, int64_t end) {
    const int64_t *extent = w->r->extent;
    int64_t line = tile / w->wide, j = tile % w->wide, count = w->wide - j < end - tile ? w->wide - j : end - tile;
    run u = {.first = tile, .count = count, .image = line / w->tall, .i = line % w->tall * w->m, .j = j * w->m};
    u.rows = extent[TALL] - u.i < w->m ? extent[TALL] - u.i : w->m;
    u.columns = extent[WIDE] - u.j < count * w->m ? extent[WIDE] - u.j : count * w->m;
    return u;
}

/* Where output (0, 0) of a run lies in an access by outer axes. */
static int64_t run_offset(const run *u, const tn_resolved_access *a) {
    return u->image * a->stride[IMAGE] + u->i * a->stride[TALL] + u->j * a->stride[WIDE];
}

/* Fetches n floats. It is no access: any address will do. */
static inline void fetch(const float *at, int64_t n, bool to_write) {
    for (int64_t i = 0; i < n; i += TN_GEMM_LINE / (int64_t)sizeof(float))
        if (to_write)
            __builtin_prefetch((const void *)((uintptr_t)at + (uintptr_t)i * sizeof(float)), 1);
        else
            __builtin_prefetch((const void *)((uintptr_t)at + (uintptr_t)i * sizeof(float)), 0);
}

/* Turns or widens the lines that a run reads. */
static void turn_lines(const winograd *w, const scratch *s, const run *u) {
    const tn_resolved_access *x = &w->r->operand[0];
    const tn_strip_level *strips = w->r->kernel->program->level;
    tn_move_transpose_fn *turn = tn_move_of(strips)->transpose[x->element];
    int64_t low = w->low[1] > u->j ? w->low[1] - u->j : 0, high = u->count * w->m + 2, step = x->stride[WIDE];
    int64_t apart = x->stride[CHANNEL], element = x->element;
    high = w->high[1] - u->j < high ? w->high[1] - u->j : high;
    for (int i = 0; i < w->n && low < high; i++) {
        if (u->i + i < w->low[0] || u->i + i >= w->high[0])
            continue;
        const char *at = (const char *)x->base + (run_offset(u, x) + i * x->stride[TALL] + low * step) * element;
        float *to = s->lines + i * line_pitch(w) + low * w->channels;
        if (step == 1) {
            turn(w->channels, high - low, at, apart, w->load ? (void *)s->turned : to, w->channels);
            if (w->load)
                w->load((high - low) * w->channels, s->turned, 1, to);
        } else if (w->load && apart == 1 && step == w->channels)
            w->load((high - low) * w->channels, at, 1, to);
        else
            for (int64_t j = low; j < high; j++, at += step * element, to += w->channels)
                strips->load[x->dtype](w->channels, at, apart, to);
    }
}

static void transform_run(const winograd *w, const scratch *s, const run *u, float *to) {
    const tn_resolved_access *x = &w->r->operand[0];
    const float *first = s->lines;
    int64_t tall = x->stride[TALL], wide = x->stride[WIDE];
    if (s->lines) {
        turn_lines(w, s, u);
        tall = line_pitch(w);
        wide = w->channels;
    } else
        first = (const float *)(const void *)x->base + run_offset(u, x);
    for (int64_t tile = 0; tile < u->count; tile++, first += w->m * wide, to += w->row) {
        const float *pixel[POINTS];
        int64_t column = u->j + tile * w->m;
        bool in_line = column >= w->low[1] && column + w->n <= w->high[1];
        for (int i = 0, k = 0; i < w->n; i++) {
            bool inside = u->i + i >= w->low[0] && u->i + i < w->high[0];
            if (inside && in_line)
                for (int j = 0; j < w->n; j++)
                    pixel[k++] = first + i * tall + j * wide;
            else
                for (int64_t j = 0; j < w->n; j++)
                    pixel[k++] = inside && column + j >= w->low[1] && column + j < w->high[1]
                                     ? first + i * tall + j * wide
                                     : s->zeros;
        }
        if (in_line) /* what the next tile reads and this one does not */
            for (int i = 0; i < w->n; i++)
                for (int j = 2; j < w->n; j++)
                    fetch(pixel[i * w->n + j] + w->m * wide, w->channels, false);
        w->in(w->channels, pixel, to, w->pitch);
    }
}

/* Sums of all points of one panel of `tiles` tiles. Meanwhile the columns that are read next are fetched: they follow. */
static void sum_panel(const winograd *w, const scratch *s, int64_t tiles, const float *columns) {
    const tn_gemm_level *level = w->level;
    int points = w->n * w->n;
    int64_t heights = ceil_div(tiles, level->rows), size = level->columns * (int64_t)sizeof(float);
    int64_t low = tiles / heights, higher = tiles % heights; /* tiles of nearly the same height */
    for (int p = 0; p < points; p++)
        for (int64_t k = 0, length; k < w->channels; k += length, columns += length * level->columns) {
            const float *a[TILES_MOST], *from = s->v + p * w->pitch + k;
            float *c[TILES_MOST], *to = s->s + p * w->sums_pitch;
            length = w->channels - k < GROUP ? w->channels - k : GROUP;
            tn_gemm_tile t = {.columns = level->columns,
                              .runs = 1,
                              .length = &length,
                              .step = 1,
                              .b = columns,
                              .add = k > 0,
                              .ahead = (uintptr_t)(columns + length * level->columns),
                              .ahead_step = size / heights};
            for (int64_t i = 0; i < tiles; i++, from += w->row, to += level->columns) {
                a[i] = from;
                c[i] = to;
            }
            for (int64_t i = 0; i < tiles; i += t.rows * t.tiles) {
                t.a = a + i;
                t.c = c + i;
                t.tiles = i ? heights - higher : higher ? higher : heights;
                t.rows = (int)(low + (!i && higher));
                level->tile(&t);
                t.ahead += (uintptr_t)(t.tiles * length * t.ahead_step);
            }
        }
}

/* The outputs of a run of one panel of `count` columns from `column` on. sums: of its first tile. out: where its first output's go, `tall` and
   `wide` floats from one output to the next. */
static void end_run(const winograd *w, const run *u, const float *sums, int64_t column, int64_t count, float *out,
                    int64_t tall, int64_t wide) {
    const tn_resolved_access *also = &w->r->operand[w->finish.all];
    const tn_gemm_level *level = w->level;
    const float *other = w->finish.all ? (const float *)(const void *)also->base + run_offset(u, also) + column : NULL;
    bool part = count < level->columns;
    for (int64_t tile = 0; tile < u->count; tile++, sums += level->columns, out += w->m * wide) {
        float outside[TN_GEMM_MAX_COLUMNS], beside[OUTPUTS][TN_GEMM_MAX_COLUMNS];
        float *made[OUTPUTS], *inside[OUTPUTS], *to[OUTPUTS];
        const void *all[OUTPUTS];
        int64_t columns = u->columns - tile * w->m;
        int outputs = 0;
        for (int i = 0, k = 0; i < w->m; i++)
            for (int j = 0; j < w->m; j++, k++) {
                made[k] = outside;
                if (i >= u->rows || j >= columns)
                    continue;
                to[outputs] = out + i * tall + j * wide;
                inside[outputs] = made[k] = part ? beside[k] : to[outputs];
                if (other)
                    all[outputs] = other + i * also->stride[TALL] + (tile * w->m + j) * also->stride[WIDE];
                outputs++;
            }
        for (int k = 0; k < outputs; k++) /* what the next tile writes */
            fetch(to[k] + w->m * wide, count, true);
        w->out(sums, w->sums_pitch, made);
        if (w->finishes)
            level->finish(&w->finish, outputs, count, column, inside, other ? all : NULL);
        for (int k = 0; k < outputs && part; k++)
            memcpy(to[k], inside[k], (size_t)count * sizeof(float));
    }
}

/* Columns [from, from + width) of the tiles [first, end) of a block. */
typedef struct span {
    int64_t first, end, from, width;
} span;

/* Where the sums of a run's first output are formed, and how far its lines lie apart there. */
static float *sums_at(const winograd *w, const scratch *s, const span *p, const run *u, int64_t *tall) {
    const tn_resolved_access *y = &w->r->output[0];
    *tall = w->in_place ? y->stride[TALL] : u->count * w->m * p->width;
    return w->in_place ? (float *)(void *)y->base + run_offset(u, y) + p->from
                       : s->whole + (u->first - p->first) * w->m * w->m * p->width;
}

static void end_panel(const winograd *w, const scratch *s, const span *p, int64_t panel) {
    int64_t column = panel * w->level->columns, tall, wide = w->in_place ? w->r->output[0].stride[WIDE] : p->width,
            count = w->columns - column < w->level->columns ? w->columns - column : w->level->columns;
    run u;
    for (int64_t tile = p->first; tile < p->end; tile += u.count) {
        u = run_from(w, tile, p->end);
        float *out = sums_at(w, s, p, &u, &tall) + column - p->from;
        end_run(w, &u, s->s + (tile - p->first) * w->level->columns, column, count, out, tall, wide);
    }
}

/* What follows the sums as strips: lines of outputs that lie side by side. */
static void end_by_strips(const winograd *w, const scratch *s, const span *p) {
    const tn_resolved *r = w->r;
    int64_t at[TN_MACHINE_AXES] = {0}, wide = w->in_place ? r->output[0].stride[WIDE] : p->width, tall;
    tn_strip strip;
    tn_strip_begin(&strip, r);
    int64_t most = strip.program->length, together = wide == p->width && most / p->width > 1 ? most / p->width : 1;
    run u;
    for (int64_t tile = p->first; tile < p->end; tile += u.count) {
        u = run_from(w, tile, p->end);
        float *sums = sums_at(w, s, p, &u, &tall);
        at[IMAGE] = u.image;
        for (int i = 0; i < u.rows; i++)
            for (int64_t j = 0, rows; j < u.columns; j += rows) {
                rows = u.columns - j < together ? u.columns - j : together;
                at[TALL] = u.i + i;
                at[WIDE] = u.j + j;
                for (int64_t c = 0; c < p->width; c += most) {
                    at[COLUMN] = p->from + c;
                    tn_strip_block b = {.at = at,
                                        .axis = COLUMN,
                                        .tile = WIDE,
                                        .n = p->width - c < most ? p->width - c : most,
                                        .rows = rows};
                    float *first = sums + i * tall + j * wide + c;
                    if (w->round)
                        w->round(b.n * b.rows, first, NULL, NULL, first);
                    tn_strip_run(&strip, TN_STRIP_AFTER, &b, first);
                }
            }
    }
}

static void piece(void *ctx, int64_t index) {
    winograd *w = ctx;
    char *room = tn_places_take(&w->places);
    if (!room) {
        w->failed = 1;
        return;
    }
    scratch s;
    scratch_lay(w, &s, room);
    int64_t columns = w->level->columns, panel = index % w->spans * w->span,
            last = panel + w->span < w->panels ? panel + w->span : w->panels,
            size = (int64_t)w->n * w->n * w->channels * columns;
    span p = {.first = index / w->spans * w->block, .from = panel * columns};
    p.end = p.first + w->block < w->tiles ? p.first + w->block : w->tiles;
    p.width = (last * columns < w->columns ? last * columns : w->columns) - p.from;
    run u;
    for (int64_t tile = p.first; tile < p.end; tile += u.count) {
        u = run_from(w, tile, p.end);
        transform_run(w, &s, &u, s.v + (tile - p.first) * w->row);
    }
    for (; panel < last; panel++) {
        sum_panel(w, &s, p.end - p.first, (const float *)w->r->kernel->packed + panel * size);
        end_panel(w, &s, &p, panel);
    }
    if (!w->in_place || (w->r->kernel->epilogue && !w->finishes))
        end_by_strips(w, &s, &p);
    tn_places_give(&w->places, room);
}

static __attribute__((noinline)) tn_status run_at(const tn_kernel_args *args, const tn_gemm_level *level,
                                                  const tn_winograd_level *transforms) {
    tn_resolved *r = tn_resolve(args, TN_RESOLVE_PLAIN, sizeof(winograd));
    if (!r)
        return tn_error_status();
    winograd *w = r->extra;
    int threads = tn_pool_threads(args->pool), half = args->kernel->winograd / 2 - 1;
    if (w->threads != threads) {
        *w = (winograd){.level = level, .in = transforms->in[half], .out = transforms->out[half], .threads = threads};
        describe(w, r);
        if (r->outputs_count)
            cut(w, threads);
    }
    w->failed = 0;
    w->finish.all = 0;
    w->finishes = r->outputs_count && w->in_place && args->kernel->epilogue && tn_finish_make(&w->finish, r, COLUMN);
    if (!w->finishes)
        w->finish.all = 0;
    if (r->outputs_count) {
        int64_t pieces = w->blocks * w->spans;
        if (!tn_places_make(&w->places, args->heap, args->pool, pieces, scratch_lay(w, NULL, NULL)))
            w->failed = 1;
        else
            tn_pool_run(args->pool, pieces, piece, w);
        tn_places_free(&w->places);
    }
    bool failed = w->failed;
    tn_resolved_free(args, r);
    return failed ? tn_fail(TN_ERR_MEMORY, "out of memory in a convolution") : TN_OK;
}

/* --- the rows of the table --------------------------------------------------------------------------------------------------------------- */

static bool constant(const tn_kernel_facts *f, tn_size size, int64_t *value) {
    return f->constant(f->ctx, size, value);
}

static bool takes(const tn_kernel *k, const tn_kernel_facts *f) {
    int64_t in, out, stride;
    if (!k->winograd || k->outer != OUTER || k->inner != AXES - OUTER || k->steps || k->accumulator != TN_F32 ||
        k->operand[0].dtype != k->operand[1].dtype || !f->weights(f->ctx, k->operand[1].slot) ||
        k->operands + k->epilogue + 1 > TN_MACHINE_REGISTERS)
        return false;
    for (int i = 0; i < OUTER + 3; i++)
        if (!constant(f, k->operand[1].stride[i], &stride))
            return false;
    return constant(f, k->operand[1].offset, &stride) && constant(f, k->extent[CHANNEL], &in) &&
           constant(f, k->extent[COLUMN], &out) && in > 0 && out > 0;
}

/* to[c] = g0 x[c] + g1 x[step + c] + g2 x[2 * step + c], for a panel's columns. */
static __attribute__((noinline)) void combine(const double *g, const double *x, int step, double *to) {
    for (int c = 0; c < TN_GEMM_MAX_COLUMNS; c++)
        to[c] = g[0] * x[c] + g[1] * x[step + c] + g[2] * x[2 * step + c];
}

/* The weights of one channel in and a panel of columns out, to[p * pitch + column]: G w G', in double. */
static void transform_weights(const tn_winograd *t, const double *x, int columns, float *to, int64_t pitch) {
    enum { STEP = TN_GEMM_MAX_COLUMNS };
    double half[3 * STEP], made[STEP];
    for (int i = 0; i < t->n; i++) {
        for (int j = 0; j < 3; j++)
            combine(t->g[i], x + j * STEP, 3 * STEP, half + j * STEP);
        for (int j = 0; j < t->n; j++, to += pitch) {
            combine(t->g[j], half, STEP, made);
            for (int c = 0; c < columns; c++)
                to[c] = (float)made[c];
        }
    }
}

static double weight(const tn_tensor *w, int64_t at) {
    float x;
    if (w->dtype != TN_F32)
        return tn_load_f64((tn_dtype)w->dtype, w->data, at);
    memcpy(&x, (const char *)w->data + at * (int64_t)sizeof x, sizeof x);
    return (double)x;
}

/* Panels of all points, [panel][point][channel][column]. */
static __attribute__((noinline)) tn_status prepare_at(tn_kernel *k, const tn_kernel_facts *f,
                                                      const tn_gemm_level *level) {
    TN_TRY(tn_strip_prepare(k, f));
    const tn_tensor *w = f->weights(f->ctx, k->operand[1].slot);
    const tn_winograd *t = tn_winograd_transforms(k->winograd);
    int64_t in = 0, out = 0, offset = 0, s_out = 0, s_in = 0, s_tall = 0, s_wide = 0;
    constant(f, k->extent[CHANNEL], &in);
    constant(f, k->extent[COLUMN], &out);
    constant(f, k->operand[1].offset, &offset);
    constant(f, k->operand[1].stride[COLUMN], &s_out);
    constant(f, k->operand[1].stride[CHANNEL], &s_in);
    constant(f, k->operand[1].stride[TAP_TALL], &s_tall);
    constant(f, k->operand[1].stride[TAP_WIDE], &s_wide);
    int columns = level->columns, points = t->n * t->n;
    int64_t panels = ceil_div(out, columns);
    tn_pack_form form = {.unfilled = f->unfilled};
    const int64_t said[] = {TN_PACK_WINOGRAD, t->m, columns, offset, in, out, s_out, s_in, s_tall, s_wide};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        tn_pack_say(&form, said[i]);
    float *to;
    TN_TRY(tn_kernel_pack(k, f, &form, (size_t)(panels * points * in * columns) * sizeof(float), &to));
    k->packed_only = true;
    if (!to)
        return TN_OK;
    for (int64_t panel = 0; panel < panels && !f->unfilled; panel++, to += points * in * columns)
        for (int64_t c = 0; c < in; c++) {
            double x[9 * TN_GEMM_MAX_COLUMNS] = {0};
            for (int64_t j = 0; j < columns && panel * columns + j < out; j++)
                for (int p = 0; p < 9; p++)
                    x[p * TN_GEMM_MAX_COLUMNS + j] =
                        weight(w, offset + (panel * columns + j) * s_out + c * s_in + p / 3 * s_tall + p % 3 * s_wide);
            transform_weights(t, x, columns, to + c * columns, in * columns);
        }
    return tn_kernel_packed(k, f, &form);
}

#define LEVEL(name)                                                           \
    static tn_status run_##name(const tn_kernel_args *args) {                 \
        return run_at(args, &tn_gemm_##name, &tn_winograd_##name);            \
    }                                                                         \
    static tn_status prepare_##name(tn_kernel *k, const tn_kernel_facts *f) { \
        return prepare_at(k, f, &tn_gemm_##name);                             \
    }
#define ROW(n, level)                                                                                             \
    {                                                                                                             \
        .name = "winograd " #n, .kind = TN_KERNEL_CONTRACT, .isa = level, .takes = takes, .prepare = prepare_##n, \
        .run = run_##n                                                                                            \
    }
LEVEL(generic)
#if defined(TN_HAVE_ISA_AVX512)
LEVEL(avx2)
LEVEL(avx512)
#elif defined(TN_HAVE_ISA_NEON)
LEVEL(neon)
#endif

const tn_kernel_impl tn_kernel_winograd[] = {
    ROW(generic, TN_ISA_GENERIC),
#if defined(TN_HAVE_ISA_AVX512)
    ROW(avx2, TN_ISA_AVX2),
    ROW(avx512, TN_ISA_AVX512),
#elif defined(TN_HAVE_ISA_NEON)
    ROW(neon, TN_ISA_NEON),
#endif
};
