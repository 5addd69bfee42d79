/* Bands: convolutions of which each reads what the one before makes, some rows of the last one's output at a time. Of what lies between them
   only the rows that are read next are there, in the caches; those that the next band reads, too, are kept. The bits are those of the parts
   one after the other: each output is made as its kernel makes it. */
#include <string.h>

#include "kernels/contract_f32.h"
#include "kernels/depthwise_f32.h"
#include "kernels/kernels.h"

#define MOST 8                 /* parts */
#define BAND_BYTES (384 << 10) /* of rows between parts: they stay in L2 */
#define WORTH (1 << 17)        /* multiply-adds: less is not worth another thread */
#define AGAIN 0.05             /* of the work may be done twice, where threads meet */

typedef struct part {
    tn_resolved *r;
    tn_gemm *gemm; /* or */
    tn_depthwise *depthwise;
    int64_t height, width; /* of its output */
    int64_t step, tap, taps,
        low;       /* row i reads rows i * step + low + (0 ... taps - 1) * tap of what the part before makes */
    int64_t shift; /* bytes from the first element of that to where row 0 begins to read, padding and all */
    int64_t row;   /* bytes from a row of its output to the next */
    int64_t rows;  /* that are there at once, at most */
    double work;   /* of a row, multiply-adds */
    size_t at;     /* where they are, in a thread's scratch */
} part;

typedef struct range {
    int64_t low, high;
} range;

typedef struct bands {
    const tn_kernel *k;
    int parts, threads; /* threads: that it was cut for */
    bool fits;          /* else parts run one after the other, on whole images */
    int64_t images, cuts, rows, band;
    size_t rows_bytes, rooms, work; /* of a thread's scratch: rows between parts, accesses, what contractions want */
    tn_places places;
    _Atomic int failed;
    part part[MOST];
} bands;

static size_t aligned(size_t n) {
    return (n + 63) & ~(size_t)63;
}

/* --- sizes ------------------------------------------------------------------------------------------------------------------------------------ */

/* Whether part i reads rows of the one before, and nothing of a row but itself; then says which. */
static bool reads_rows(bands *b, int i, const tn_kernel_args *args) {
    part *p = &b->part[i];
    const part *from = &b->part[i - 1];
    const tn_resolved *r = p->r;
    const tn_resolved_access *x = &r->operand[0], *y = &from->r->output[0];
    int tall = r->outer - 2, wide = r->outer - 1, tap_tall = r->outer, tap_wide = r->outer + 1;
    int64_t row = y->stride[from->r->outer - 2], pixel = y->stride[from->r->outer - 1], left = 0;
    int64_t channels = from->r->extent[from->depthwise ? from->depthwise->group : from->gemm->column];
    p->taps = r->extent[tap_tall];
    p->step = row > 0 ? x->stride[tall] / row : 0;
    p->tap = row > 0 && p->taps > 1 ? x->stride[tap_tall] / row : 0;
    p->low = 0;
    if (pixel < channels || row < from->width * pixel || p->step < 1 || x->stride[tall] != p->step * row ||
        (p->taps > 1 && x->stride[tap_tall] != p->tap * row) || p->tap < 0 ||
        (b->images > 1 && x->stride[0] != y->stride[0]) || r->extent[0] != b->images)
        return false;
    bool guarded[2] = {false, false};
    for (int n = 0; n < x->guards; n++) {
        const tn_resolved_guard *g = &x->guard[n];
        bool rows = g->coef[tall] != 0;
        for (int j = 0; j < r->outer + r->inner; j++)
            if (j != (rows ? tall : wide) && j != (rows ? tap_tall : tap_wide) && g->coef[j])
                return false;
        if (guarded[rows] || g->extent > (rows ? from->height : from->width) ||
            g->coef[rows ? tall : wide] * (rows ? row : pixel) != x->stride[rows ? tall : wide] ||
            (r->extent[rows ? tap_tall : tap_wide] > 1 &&
             g->coef[rows ? tap_tall : tap_wide] * (rows ? row : pixel) != x->stride[rows ? tap_tall : tap_wide]))
            return false;
        guarded[rows] = true;
        if (rows)
            p->low = g->offset;
        else
            left = g->offset;
    }
    int64_t across = (p->width - 1) * x->stride[wide] + (r->extent[tap_wide] - 1) * x->stride[tap_wide];
    if (!guarded[0] && (x->stride[wide] < 0 || x->stride[tap_wide] < 0 || across > (from->width - 1) * pixel))
        return false;
    if (!guarded[1] && (p->height - 1) * p->step + (p->taps - 1) * p->tap >= from->height)
        return false;
    int64_t within = 0;
    for (int j = 1; j < r->outer + r->inner; j++)
        if (j != tall && j != wide && j != tap_tall && j != tap_wide) {
            if (x->stride[j] < 0)
                return false;
            within += (r->extent[j] - 1) * x->stride[j];
        }
    int64_t shift = args->size[r->kernel->operand[0].offset] - args->size[from->r->kernel->output[0].offset];
    p->shift = shift * x->element;
    return within < pixel && shift == p->low * row + left * pixel;
}

/* What rows `of` of part i read of the part before. */
static range read_by(const bands *b, int i, range of) {
    const part *p = &b->part[i];
    int64_t height = b->part[i - 1].height;
    range x = {of.low * p->step + p->low, (of.high - 1) * p->step + p->low + (p->taps - 1) * p->tap + 1};
    x.low = x.low < 0 ? 0 : x.low > height ? height : x.low;
    x.high = x.high > height ? height : x.high < x.low ? x.low : x.high;
    return x;
}

/* How much of the work is done twice, as a share, where the images are cut into so many parts. */
static double done_again(const bands *b, int64_t cuts) {
    int64_t cut = b->part[b->parts - 1].height / 2;
    range before = {0, cut}, after = {cut, cut + 1};
    double all = 0, again = 0;
    for (int i = b->parts - 1; i >= 0; i--) {
        int64_t both = before.high - after.low;
        all += b->part[i].work * (double)b->part[i].height;
        again += both > 0 ? b->part[i].work * (double)both : 0;
        if (i && before.low < before.high && after.low < after.high) {
            before = read_by(b, i, before);
            after = read_by(b, i, after);
        }
    }
    return again * (double)(cuts - 1) / all;
}

/* Rows of each part that are there at once, for bands of so many rows; answers their bytes. */
static int64_t set_rows(bands *b, int64_t band) {
    int64_t bytes = 0, rows = band;
    for (int i = b->parts - 1; i >= 0; i--) {
        part *p = &b->part[i];
        p->rows = rows < p->height ? rows : p->height;
        bytes += i < b->parts - 1 ? p->rows * p->row : 0;
        rows = i ? (p->rows - 1) * p->step + (p->taps - 1) * p->tap + 1 : 0;
    }
    return bytes;
}

/* Of what a part makes, images side by side. */
static size_t output_bytes(const tn_kernel *k, const int64_t *size) {
    int64_t last = size[k->output[0].offset];
    for (int i = 0; i < k->outer; i++)
        last += size[k->output[0].stride[i]] * (size[k->extent[i]] - 1);
    return last < 0 ? 0 : aligned((size_t)(last + 1) * sizeof(float));
}

static void cut(bands *b, const tn_gemm_level *level, int threads) {
    int64_t height = b->part[b->parts - 1].height;
    double work = 0;
    for (int i = 0; i < b->parts; i++)
        work += b->part[i].work * (double)b->part[i].height * (double)b->images;
    b->threads = threads;
    int64_t wanted = threads < 2 || work < WORTH ? 1 : 4 * threads;
    b->cuts = (wanted + b->images - 1) / b->images;
    while (b->cuts > 1 && (b->cuts > height || done_again(b, b->cuts) > AGAIN))
        b->cuts--;
    if (wanted > 1 && b->cuts * b->images < threads)
        b->cuts = 0; /* parts one after the other, each on all threads */
    if (!b->cuts)
        return;
    b->rows = (height + b->cuts - 1) / b->cuts;
    b->cuts = (height + b->rows - 1) / b->rows;
    b->band = b->rows;
    while (b->band > 1 && set_rows(b, b->band) > BAND_BYTES)
        b->band--;
    int64_t n = (b->rows + b->band - 1) / b->band;
    b->band = (b->rows + n - 1) / n;
    set_rows(b, b->band);
    b->rooms = b->work = b->rows_bytes = 0;
    for (int i = 0; i < b->parts; i++) {
        part *p = &b->part[i];
        if (p->gemm) {
            tn_gemm_open(p->gemm, level, p->r, p->rows * p->width, true);
            tn_gemm_use_lines(p->gemm);
        }
        p->at = b->rows_bytes;
        b->rows_bytes += i < b->parts - 1 ? aligned((size_t)(p->rows * p->row)) : 0;
        b->rooms += aligned((size_t)(p->r->kernel->operands + 1) * sizeof(tn_resolved_access));
    }
}

/* Everything but addresses, in one block. */
static bands *make(const tn_kernel_args *args, const tn_gemm_level *level, const tn_kernel_impl *gemm) {
    const tn_kernel *k = args->kernel;
    size_t bytes = aligned(sizeof(bands));
    for (int i = 0; i < k->parts; i++)
        bytes += aligned(tn_resolved_bytes(&k->part[i])) + aligned(sizeof(tn_gemm)) + aligned(sizeof(tn_depthwise));
    bands *b = tn_alloc(args->heap, bytes);
    if (!b)
        return NULL;
    char *at = (char *)b + aligned(sizeof *b);
    *b = (bands){.k = k, .parts = k->parts, .images = args->size[k->extent[0]], .fits = true};
    for (int i = 0; i < k->parts; i++) {
        part *p = &b->part[i];
        tn_kernel_args of = *args;
        of.kernel = &k->part[i];
        p->r = (tn_resolved *)(void *)at;
        at += aligned(tn_resolved_bytes(of.kernel));
        tn_resolve_sizes(p->r, &of, TN_RESOLVE_PLAIN);
        const tn_resolved *r = p->r;
        b->fits &= r->outputs_count > 0 && r->inner_count > 0;
        if (!b->fits)
            break;
        if (of.kernel->impl != gemm) {
            p->depthwise = (tn_depthwise *)(void *)at;
            at += aligned(sizeof(tn_depthwise));
            tn_depthwise_open(p->depthwise, level, r);
        } else {
            p->gemm = (tn_gemm *)(void *)at;
            at += aligned(sizeof(tn_gemm));
            tn_gemm_open(p->gemm, level, r, 1, true);
        }
        p->height = r->extent[r->outer - 2];
        p->width = r->extent[r->outer - 1];
        p->row = r->output[0].stride[r->outer - 2] * (int64_t)sizeof(float);
        p->work = (double)r->outputs_count / (double)(p->height * b->images) * (double)r->inner_count;
        int beside = p->gemm ? p->gemm->column : p->depthwise->group;
        b->fits = b->fits && beside >= 0 && (r->extent[beside] == 1 || r->output[0].stride[beside] == 1) &&
                  (p->gemm ? p->gemm->batches == 1 : r->operand[0].stride[beside] == 1 || r->extent[beside] == 1) &&
                  (!i || reads_rows(b, i, args));
    }
    return b;
}

/* --- a piece ---------------------------------------------------------------------------------------------------------------------------------- */

/* A part with the addresses of a thread. */
typedef struct moved {
    tn_resolved r;
    range there; /* rows of its output that are in scratch */
    range next;  /* that are made next */
} moved;

static void make_rows(const bands *b, int i, moved *m, int64_t image, char *scratch, void *work) {
    const part *p = &b->part[i];
    tn_resolved *r = &m[i].r;
    tn_resolved_access *x = &r->operand[0], *y = &r->output[0];
    range rows = m[i].next;
    if (i < b->parts - 1)
        y->base = scratch + p->at - m[i].there.low * p->row - image * y->stride[0] * y->element;
    if (i)
        x->base = scratch + b->part[i - 1].at - m[i - 1].there.low * b->part[i - 1].row -
                  image * x->stride[0] * x->element + p->shift;
    if (p->depthwise) {
        tn_depthwise_rows(p->depthwise, r, image, rows.low, rows.high);
        return;
    }
    int64_t at[TN_MACHINE_AXES] = {0};
    tn_gemm g = *p->gemm;
    g.r = r;
    tn_gemm_rows(&g, at, (image * p->height + rows.low) * p->width, (rows.high - rows.low) * p->width,
                 r->kernel->packed, work);
}

/* Rows that are read once more move to the front of those that are there. */
static void keep_rows(const part *p, moved *m, int64_t low, char *scratch) {
    low = low < m->there.high ? low : m->there.high;
    if (low > m->there.low && low < m->there.high)
        memmove(scratch + p->at, scratch + p->at + (low - m->there.low) * p->row,
                (size_t)((m->there.high - low) * p->row));
    m->there.low = low;
}

/* Rows [low, high) of the last part's outputs, and what they need. */
static void make_band(const bands *b, moved *m, int64_t image, range rows, char *scratch, void *work) {
    for (int i = b->parts - 1; i >= 0; i--) {
        m[i].next = rows;
        if (!i)
            break;
        range read = rows.low < rows.high ? read_by(b, i, rows) : m[i - 1].there;
        if (read.low > m[i - 1].there.high) /* between them are rows that nobody reads */
            m[i - 1].there = (range){read.low, read.low};
        keep_rows(&b->part[i - 1], &m[i - 1], read.low, scratch);
        rows = (range){m[i - 1].there.high, read.high > m[i - 1].there.high ? read.high : m[i - 1].there.high};
    }
    for (int i = 0; i < b->parts; i++) {
        if (m[i].next.low < m[i].next.high)
            make_rows(b, i, m, image, scratch, work);
        m[i].there.high = m[i].next.high;
    }
}

static void piece(void *ctx, int64_t index) {
    bands *b = ctx;
    char *scratch = tn_places_take(&b->places);
    if (!scratch) {
        b->failed = 1;
        return;
    }
    moved m[MOST];
    char *room = scratch + b->rows_bytes;
    for (int i = 0; i < b->parts; i++) {
        const tn_resolved *r = b->part[i].r;
        size_t n = (size_t)(r->kernel->operands + 1);
        m[i] = (moved){.r = *r};
        memcpy(room, r->operand, n * sizeof *r->operand);
        m[i].r.operand = (tn_resolved_access *)(void *)room;
        m[i].r.output = m[i].r.operand + n - 1;
        room += aligned(n * sizeof *r->operand);
    }
    int64_t height = b->part[b->parts - 1].height, low = index % b->cuts * b->rows,
            high = low + b->rows < height ? low + b->rows : height;
    for (range rows = {low, low}; rows.low < high; rows.low = rows.high) {
        rows.high = rows.low + b->band < high ? rows.low + b->band : high;
        make_band(b, m, index / b->cuts, rows, scratch, room);
    }
    tn_places_give(&b->places, scratch);
}

/* --- a run ------------------------------------------------------------------------------------------------------------------------------------ */

/* Parts one after the other; what they hand on is in memory of its own. */
static tn_status run_parts(const bands *b, const tn_kernel_args *args) {
    uint32_t slots = 0;
    size_t bytes = 0;
    for (int i = 0; i < b->parts; i++) {
        const tn_kernel *k = &b->k->part[i];
        for (int j = 0; j <= k->operands; j++) {
            uint32_t slot = j < k->operands ? k->operand[j].slot : k->output[0].slot;
            slots = slot >= slots ? slot + 1 : slots;
        }
        bytes += i < b->parts - 1 ? output_bytes(k, args->size) : 0;
    }
    size_t table = aligned(slots * sizeof(void *));
    char *room = tn_alloc(args->heap, table + bytes);
    if (!room)
        return tn_error_status();
    void **slot = (void **)(void *)room;
    room += table;
    for (int i = 0; i < b->parts; i++) {
        const tn_kernel *k = &b->k->part[i];
        for (int j = 0; j < k->operands; j++)
            if (!i || k->operand[j].slot != b->k->part[i - 1].output[0].slot)
                slot[k->operand[j].slot] = args->slot[k->operand[j].slot];
        slot[k->output[0].slot] = i < b->parts - 1 ? room : args->slot[k->output[0].slot];
        room += output_bytes(k, args->size);
    }
    tn_status status = TN_OK;
    for (int i = 0; i < b->parts && status == TN_OK; i++) {
        tn_kernel_args of = *args;
        of.kernel = &b->k->part[i];
        of.slot = slot;
        of.kept = NULL;
        status = of.kernel->impl->run(&of);
    }
    tn_free(args->heap, slot);
    return status;
}

static tn_status run_bands(bands *b, const tn_kernel_args *args) {
    for (int i = 0; i < b->parts; i++) {
        part *p = &b->part[i];
        tn_kernel_args of = *args;
        of.kernel = &b->k->part[i];
        tn_resolve_bases(p->r, &of);
        if (p->gemm)
            tn_gemm_see_ends(p->gemm);
        else
            tn_depthwise_see_ends(p->depthwise);
        size_t bytes = p->gemm ? tn_gemm_rows_bytes(p->gemm) : 0;
        b->work = bytes > b->work ? bytes : b->work;
    }
    int64_t pieces = b->images * b->cuts;
    b->failed = 0;
    if (tn_places_make(&b->places, args->heap, args->pool, pieces, b->rows_bytes + b->rooms + aligned(b->work)))
        tn_pool_run_ends(args->pool, pieces, piece, b);
    else
        b->failed = 1;
    tn_places_free(&b->places);
    return b->failed ? tn_fail(TN_ERR_MEMORY, "out of memory in a band of convolutions") : TN_OK;
}

static tn_status run_at(const tn_kernel_args *args, const tn_gemm_level *level, const tn_kernel_impl *gemm) {
    int threads = tn_pool_threads(args->pool);
    bands *b = args->kept ? *args->kept : NULL;
    if (!b && !(b = make(args, level, gemm)))
        return tn_error_status();
    if (args->kept)
        *args->kept = b;
    if (b->fits && b->threads != threads)
        cut(b, level, threads);
    tn_status status = b->fits && b->cuts ? run_bands(b, args) : run_parts(b, args);
    if (!args->kept)
        tn_free(args->heap, b);
    return status;
}

/* --- the rows of the table -------------------------------------------------------------------------------------------------------------------- */

static bool takes_at(const tn_kernel *k, const tn_kernel_impl *gemm, const tn_kernel_impl *depthwise) {
    for (int i = 0; i < k->parts; i++)
        if (k->part[i].outputs != 1 || !k->part[i].packed || (k->part[i].impl != gemm && k->part[i].impl != depthwise))
            return false;
    return k->parts >= 2 && k->parts <= MOST;
}

#define LEVEL(name, index)                                                       \
    static tn_status run_##name(const tn_kernel_args *args) {                    \
        return run_at(args, &tn_gemm_##name, &tn_kernel_gemm[index]);            \
    }                                                                            \
    static bool takes_##name(const tn_kernel *k, const tn_kernel_facts *facts) { \
        (void)facts;                                                             \
        return takes_at(k, &tn_kernel_gemm[index], &tn_kernel_depthwise[index]); \
    }
#define ROW(n, level) \
    { .name = "bands " #n, .kind = TN_KERNEL_BANDS, .isa = level, .takes = takes_##n, .run = run_##n }
LEVEL(generic, 0)
#if defined(TN_HAVE_ISA_AVX512)
LEVEL(avx2, 1)
LEVEL(avx512, 2)
#elif defined(TN_HAVE_ISA_NEON)
LEVEL(neon, 1)
#endif

const tn_kernel_impl tn_kernel_bands[] = {
    ROW(generic, TN_ISA_GENERIC),
#if defined(TN_HAVE_ISA_AVX512)
    ROW(avx2, TN_ISA_AVX2),
    ROW(avx512, TN_ISA_AVX512),
#elif defined(TN_HAVE_ISA_NEON)
    ROW(neon, TN_ISA_NEON),
#endif
};
