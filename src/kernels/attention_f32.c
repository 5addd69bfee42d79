/* Attention: a contraction, what is made of its rows, and a contraction of that, a block of rows at a time. What lies between them, a row of
   it for each row of outputs, stays in the cache and is never in memory as a whole. The bits are those of the parts one after the other: each
   sum, and each row, is formed as they form it, in whatever blocks. */
#include <string.h>

#include "kernels/contract_f32.h"
#include "kernels/kernels.h"
#include "kernels/rows.h"

#define BLOCK_BYTES (768 << 10) /* of scores: in the caches, and rows enough that columns are worth fetching */
#define MOST_ROWS 192           /* of a block */
#define WORTH (1 << 17)         /* multiply-adds: less is not worth another thread */
#define NOBODY INT64_MIN

typedef struct attention {
    const tn_kernel *k;
    int links; /* the parts between the contractions */
    tn_resolved *scores, *sums, *link[TN_CHAIN_MOST];
    tn_gemm of_scores, of_sums;
    int64_t pitch; /* floats from row to row of scores */
    int threads;   /* that it was cut for */
    int64_t m, batches;
    int64_t blocks, per_piece, cuts, pieces;
    bool packs;                                   /* a piece uses columns more than once */
    size_t packed[2], accesses, block, work, all; /* bytes of a thread's scratch */
    tn_places places;
    _Atomic int failed;
    bool by_rows, lasting; /* lasting: `rows` is good for other addresses, too */
    tn_rows_link merged[TN_CHAIN_MOST];
    tn_rows rows;
    size_t made[TN_CHAIN_MOST]; /* else: where links' outputs lie in `work` */
} attention;

/* What a place for scratch begins with: whose columns are packed there. */
typedef struct header {
    int64_t of[2];
} header;

static size_t aligned(size_t n) {
    return (n + 63) & ~(size_t)63;
}

/* What only parts read of each other has no address; it is told by these. */
static char somewhere[2];
#define SCORES (&somewhere[0])
#define WEIGHTS (&somewhere[1])

static const tn_kernel *part_of(const attention *a, int i) {
    return &a->k->part[i];
}

static uint32_t made_by(const attention *a, int part) {
    return part_of(a, part)->output[0].slot;
}

/* Which part makes an operand of a link; -1: it comes from elsewhere. */
static int maker_of(const attention *a, int j, int operand) {
    for (int p = 0; p <= j; p++)
        if (part_of(a, 1 + j)->operand[operand].slot == made_by(a, p))
            return p;
    return -1;
}

/* --- sizes ------------------------------------------------------------------------------------------------------------------------------------ */

/* The strides of an access to scores: `column` is the axis along a row. */
static void stride_scores(const attention *a, const tn_resolved *scores, tn_resolved_access *access, int column) {
    int64_t step = a->pitch;
    memset(access->stride, 0, sizeof access->stride);
    for (int i = scores->outer - 1; i >= 0; i--)
        if (part_of(a, 0)->role[i] == TN_AXIS_ROW) {
            access->stride[i] = step;
            step *= scores->extent[i];
        }
    access->stride[column] = 1;
}

/* How many rows a block has, and how many blocks a piece. */
static void cut(attention *a, const tn_gemm_level *level, int threads) {
    int64_t m = a->m, batches = a->batches;
    a->threads = threads;
    int64_t most = BLOCK_BYTES / (a->pitch * (int64_t)sizeof(float)) / level->rows * level->rows;
    most = most < level->rows ? level->rows : most > MOST_ROWS ? MOST_ROWS / level->rows * level->rows : most;
    a->blocks = (m + most - 1) / most;
    int64_t rows = (m + a->blocks - 1) / a->blocks;
    rows = a->blocks > 1 ? (rows + level->rows - 1) / level->rows * level->rows : rows;
    a->blocks = (m + rows - 1) / rows;
    double work = (double)a->scores->outputs_count * (double)(a->scores->inner_count + 1);
    int64_t wanted = threads < 2 || work < WORTH ? 1 : 4 * threads, cuts = (wanted + batches - 1) / batches;
    cuts = cuts < a->blocks ? cuts : a->blocks;
    a->per_piece = (a->blocks + cuts - 1) / cuts;
    a->cuts = (a->blocks + a->per_piece - 1) / a->per_piece;
    a->pieces = a->cuts * batches;
    a->packs = a->per_piece > 1;
    tn_gemm_open(&a->of_scores, level, a->scores, rows, a->packs);
    tn_gemm_open(&a->of_sums, level, a->sums, rows, a->packs);
}

/* Whether the rows of a batch can be run row by row: makes a->rows. */
static bool make_rows(attention *a) {
    int64_t rows = a->m > 1 ? a->m : 2;
    uint32_t scores = made_by(a, 0), weights = made_by(a, a->links);
    a->lasting = true;
    for (int j = 0; j < a->links; j++) {
        tn_rows_link *l = &a->merged[j];
        const tn_kernel *k = part_of(a, 1 + j);
        if (!l->r.outer || l->r.extent[0] % rows != 0)
            return false;
        l->times = l->r.extent[0] / rows;
        l->internal = k->output[0].slot != weights;
        l->row = l->r.output[0].stride[0] * l->times * l->r.output[0].element;
        for (int i = 0; i < k->operands; i++) {
            a->lasting &= maker_of(a, j, i) >= 0;
            if (k->operand[i].slot == scores)
                l->r.operand[i].base = SCORES;
        }
        if (!l->internal)
            l->r.output[0].base = WEIGHTS;
    }
    if (a->scores->outer < 2 || a->of_scores.n < 2 || !tn_rows_make_any(&a->rows, a->merged, a->links, rows))
        return false;
    for (int i = 0; i < a->rows.places; i++) {
        tn_rows_place *p = &a->rows.place[i];
        if (p->base == SCORES || p->base == WEIGHTS) {
            p->apart = true;
            p->step = a->pitch * (int64_t)sizeof(float);
        }
    }
    return true;
}

/* How far what links read from elsewhere is from the first batch's. */
static void shift_places(const attention *a, const int64_t *at, int64_t *shift) {
    for (int i = 0; i < a->rows.places; i++) {
        const tn_rows_place *p = &a->rows.place[i];
        const tn_resolved_access *x = &a->link[p->link]->operand[p->operand];
        shift[i] = 0;
        for (int n = 0; n < a->of_scores.n_batch && p->base && !p->apart; n++)
            shift[i] += at[a->of_scores.batch[n]] * x->stride[a->of_scores.batch[n]] * x->element;
    }
}

/* Scratch of a thread, part by part. */
static void lay_out(attention *a) {
    const tn_gemm *g[2] = {&a->of_scores, &a->of_sums};
    size_t work = 0, narrow = (size_t)a->of_scores.block * 8;
    a->all = aligned(sizeof(header));
    a->accesses = 0;
    for (int i = 0; i <= 1 + a->links; i++) {
        size_t bytes = (size_t)(part_of(a, i)->operands + 1) * sizeof(tn_resolved_access);
        a->accesses = bytes > a->accesses ? bytes : a->accesses;
    }
    a->accesses = aligned(a->accesses);
    for (int i = 0; i < 2; i++) {
        a->packed[i] = a->packs ? aligned((size_t)(g[i]->panels * g[i]->k * g[i]->level->columns) * sizeof(float)) : 0;
        size_t bytes = tn_gemm_rows_bytes(g[i]);
        work = bytes > work ? bytes : work;
    }
    size_t rows = a->by_rows ? a->rows.scratch : 0;
    for (int j = 0; j < a->links && !a->by_rows; j++) {
        const tn_kernel *k = part_of(a, 1 + j);
        bool wide = k->kind == TN_KERNEL_STRIP && a->link[j]->extent[k->outer - 1] != 1;
        a->made[j] = rows;
        rows += wide ? aligned((size_t)(a->of_scores.block * a->pitch) * 8) : aligned(narrow);
    }
    work = rows > work ? rows : work;
    a->block = aligned((size_t)(a->of_scores.block * a->pitch) * sizeof(float));
    a->work = aligned(work);
    a->all += a->packed[0] + a->packed[1] + 3 * a->accesses + a->block + a->work;
}

/* A link of one batch's rows alone; of one row as if there were another. */
static const tn_resolved *one_batch(const attention *a, tn_resolved *r, const tn_kernel_args *args) {
    const tn_kernel *scores = part_of(a, 0);
    int column = scores->outer - 1;
    tn_resolve_sizes(r, args, TN_RESOLVE_PLAIN);
    for (int i = 0; i < column; i++) {
        bool row = scores->role[i] == TN_AXIS_ROW;
        if (!row)
            r->extent[i] = 1;
        if (i + 1 == column && a->m == 1)
            r->extent[i] = 2;
    }
    r->outputs_count = 1;
    for (int i = 0; i < r->outer; i++)
        r->outputs_count *= r->extent[i];
    tn_resolved_merge(r);
    return r;
}

/* Everything but addresses, in one block. */
static attention *make(const tn_kernel_args *args) {
    const tn_kernel *k = args->kernel;
    size_t bytes = aligned(sizeof(attention));
    for (int i = 0; i < k->parts; i++)
        bytes += 2 * aligned(tn_resolved_bytes(&k->part[i]));
    attention *a = tn_alloc(args->heap, bytes);
    if (!a)
        return NULL;
    char *at = (char *)a + aligned(sizeof *a);
    *a = (attention){.k = k, .links = k->parts - 2, .m = 1, .batches = 1};
    for (int i = 0; i + 1 < k->part[0].outer; i++)
        *(k->part[0].role[i] == TN_AXIS_ROW ? &a->m : &a->batches) *= args->size[k->part[0].extent[i]];
    for (int i = 0; i < k->parts; i++) {
        tn_kernel_args part = *args;
        part.kernel = &k->part[i];
        size_t own = aligned(tn_resolved_bytes(part.kernel));
        tn_resolved *r = (tn_resolved *)(void *)at, *merged = (tn_resolved *)(void *)(at + own);
        tn_resolve_sizes(r, &part, TN_RESOLVE_PLAIN);
        if (i && i + 1 < k->parts)
            a->merged[i - 1] = (tn_rows_link){.r = *one_batch(a, merged, &part)};
        *(i == 0 ? &a->scores : i + 1 == k->parts ? &a->sums : &a->link[i - 1]) = r;
        at += 2 * own;
    }
    const tn_resolved *r = a->scores;
    int64_t n = r->extent[r->outer - 1];
    a->pitch = ((n + 15) & ~(int64_t)15) + 16;
    stride_scores(a, r, &a->scores->output[0], r->outer - 1);
    stride_scores(a, r, &a->sums->operand[0], a->sums->outer);
    return a;
}

/* --- a block ---------------------------------------------------------------------------------------------------------------------------------- */

/* A contraction with the addresses of a block. */
typedef struct moved {
    tn_gemm g;
    tn_resolved r;
} moved;

static void move_to(moved *to, const tn_gemm *g, tn_resolved_access *room) {
    to->g = *g;
    to->r = *g->r;
    memcpy(room, g->r->operand, (size_t)(g->r->kernel->operands + 1) * sizeof *room);
    to->r.operand = room;
    to->r.output = room + g->r->kernel->operands;
    to->g.r = &to->r;
}

/* Moves an access to `n` rows from `at` on, which is row `row` of the block: what parts make (part `maker`) lies in scratch. */
static void move_access(const attention *a, tn_resolved_access *x, const tn_resolved *r, const int64_t *at, int64_t row,
                        int maker, char *block, char *work) {
    int axes = r->outer + r->inner, column = a->scores->outer - 1, last = a->of_scores.n_rows ? column - 1 : -1;
    if (maker < 0) {
        for (int i = 0; i < column; i++)
            x->base += x->stride[i] * at[i] * x->element;
        return;
    }
    bool wide = maker == 0 || maker == a->links ||
                (part_of(a, maker)->kind == TN_KERNEL_STRIP && a->link[maker - 1]->extent[column] != 1);
    int64_t step = wide ? a->pitch : 1;
    memset(x->stride, 0, sizeof x->stride);
    if (last >= 0)
        x->stride[last] = step;
    if (wide)
        x->stride[axes - 1] = 1;
    x->base = (maker == 0 || maker == a->links ? block : work + a->made[maker - 1]) + row * step * x->element;
}

/* Links one after the other, of rows [first, first + rows), as many together as lie along the last axis of rows. */
static void run_links(const attention *a, const int64_t *batch, int64_t first, int64_t rows, tn_resolved_access *room,
                      char *block, char *work) {
    const tn_gemm *g = &a->of_scores;
    int64_t at[TN_MACHINE_AXES], extent = g->n_rows ? a->scores->extent[g->rows[g->n_rows - 1]] : 1;
    memcpy(at, batch, sizeof at);
    for (int64_t row = 0, n; row < rows; row += n) {
        n = extent - (first + row) % extent;
        n = n < rows - row ? n : rows - row;
        for (int64_t i = g->n_rows - 1, left = first + row; i >= 0; i--) {
            at[g->rows[i]] = left % a->scores->extent[g->rows[i]];
            left /= a->scores->extent[g->rows[i]];
        }
        for (int j = 0; j < a->links; j++) {
            tn_resolved r = *a->link[j];
            const tn_kernel *k = r.kernel;
            int column = a->scores->outer - 1;
            memcpy(room, r.operand, (size_t)(k->operands + 1) * sizeof *room);
            r.operand = room;
            r.output = room + k->operands;
            for (int i = 0; i < k->operands; i++)
                move_access(a, &room[i], &r, at, row, maker_of(a, j, i), block, work);
            tn_resolved outputs = r;
            outputs.inner = 0;
            move_access(a, r.output, &outputs, at, row, 1 + j, block, work);
            for (int i = 0; i < column; i++)
                r.extent[i] = 1;
            if (g->n_rows)
                r.extent[g->rows[g->n_rows - 1]] = n;
            r.outputs_count = n * (r.outer > column ? r.extent[column] : 1);
            (k->kind == TN_KERNEL_STRIP ? tn_strip_run_resolved : tn_reduce_run_resolved)(&r, NULL);
        }
    }
}

/* The columns of contraction `which`, packed where they are not yet. */
static const float *packed_columns(const tn_gemm *g, int which, const int64_t *at, char *place, float *to) {
    int64_t *of = &((header *)(void *)place)->of[which], want = tn_gemm_columns_of(g, at);
    if (*of != want)
        tn_gemm_pack_columns(g, at, to);
    *of = want;
    return to;
}

static void piece(void *ctx, int64_t index) {
    attention *a = ctx;
    char *place = tn_places_take(&a->places);
    if (!place) {
        a->failed = 1;
        return;
    }
    if (place < a->places.base || place >= a->places.base + (size_t)a->places.count * a->places.bytes)
        *(header *)(void *)place = (header){{NOBODY, NOBODY}};
    char *columns = place + aligned(sizeof(header)), *rooms = columns + a->packed[0] + a->packed[1],
         *block = rooms + 3 * a->accesses, *work = block + a->block;
    tn_resolved_access *room[3];
    for (int i = 0; i < 3; i++)
        room[i] = (tn_resolved_access *)(void *)(rooms + (size_t)i * a->accesses);
    int64_t at[TN_MACHINE_AXES] = {0}, batch = index / a->cuts, from = index % a->cuts * a->per_piece;
    int64_t m = a->m, rows = a->of_scores.block, row_bytes = a->pitch * (int64_t)sizeof(float);
    moved scores, sums;
    move_to(&scores, &a->of_scores, room[0]);
    move_to(&sums, &a->of_sums, room[1]);
    tn_gemm_batch_at(&a->of_scores, batch, at);
    const float *packed[2] = {NULL, NULL};
    int64_t shift[TN_ROWS_PLACES];
    if (a->by_rows)
        shift_places(a, at, shift);
    if (a->packs) {
        packed[0] = packed_columns(&scores.g, 0, at, place, (float *)(void *)columns);
        packed[1] = packed_columns(&sums.g, 1, at, place, (float *)(void *)(columns + a->packed[0]));
    }
    for (int64_t i = from; i < from + a->per_piece && i < a->blocks; i++) {
        int64_t first = i * rows, n = m - first < rows ? m - first : rows;
        char *base = block - first * row_bytes; /* rows are counted from the batch's first */
        scores.r.output[0].base = base;
        sums.r.operand[0].base = base;
        if (a->of_scores.n) {
            tn_gemm_rows(&scores.g, at, first, n, packed[0], work);
            if (a->by_rows)
                tn_rows_run_apart(&a->rows, first, first + n, work, block, shift);
            else
                run_links(a, at, first, n, room[2], block, work);
        }
        tn_gemm_rows(&sums.g, at, first, n, packed[1], work);
    }
    tn_places_give(&a->places, place);
}

/* --- a run ------------------------------------------------------------------------------------------------------------------------------------ */

static void take_addresses(attention *a, const tn_kernel_args *args) {
    for (int i = 0; i < a->k->parts; i++) {
        tn_kernel_args part = *args;
        part.kernel = part_of(a, i);
        tn_resolve_bases(i == 0 ? a->scores : i + 1 == a->k->parts ? a->sums : a->link[i - 1], &part);
        if (i && i + 1 < a->k->parts)
            tn_resolve_bases(&a->merged[i - 1].r, &part);
    }
}

static tn_status run_at(const tn_kernel_args *args, const tn_gemm_level *level) {
    int threads = tn_pool_threads(args->pool);
    attention *a = args->kept ? *args->kept : NULL;
    bool fresh = !a;
    if (!a && !(a = make(args)))
        return tn_error_status();
    if (args->kept)
        *args->kept = a;
    bool failed = false;
    if (a->sums->outputs_count) {
        take_addresses(a, args);
        if (a->threads != threads)
            cut(a, level, threads);
        if (a->of_scores.n) /* else what ends them may have no elements */
            tn_gemm_see_ends(&a->of_scores);
        tn_gemm_see_ends(&a->of_sums);
        if (fresh || !a->lasting)
            a->by_rows = make_rows(a);
        lay_out(a);
        a->failed = 0;
        if (tn_places_make(&a->places, args->heap, args->pool, a->pieces, a->all)) {
            for (int i = 0; i < a->places.count; i++)
                *(header *)(void *)(a->places.base + (size_t)i * a->places.bytes) = (header){{NOBODY, NOBODY}};
            tn_pool_run(args->pool, a->pieces, piece, a);
        } else
            a->failed = 1;
        tn_places_free(&a->places);
        failed = a->failed;
    }
    if (!args->kept)
        tn_free(args->heap, a);
    return failed ? tn_fail(TN_ERR_MEMORY, "out of memory in an attention") : TN_OK;
}

/* --- the rows of the table -------------------------------------------------------------------------------------------------------------------- */

static bool takes_at(const tn_kernel *k, const tn_kernel_facts *facts, const tn_kernel_impl *impl) {
    const tn_kernel *first = &k->part[0], *last = &k->part[k->parts - 1];
    int64_t step;
    for (int i = 0; i < k->parts; i++)
        if (k->part[i].outputs != 1)
            return false;
    return k->parts >= 3 && k->parts <= 2 + TN_CHAIN_MOST && first->impl == impl && last->impl == impl &&
           first->output[0].dtype == TN_F32 && last->operand[0].dtype == TN_F32 && last->output[0].dtype == TN_F32 &&
           facts->constant(facts->ctx, last->output[0].stride[last->outer - 1], &step) && step == 1;
}

#define LEVEL(name, index)                                                       \
    static tn_status run_##name(const tn_kernel_args *args) {                    \
        return run_at(args, &tn_gemm_##name);                                    \
    }                                                                            \
    static bool takes_##name(const tn_kernel *k, const tn_kernel_facts *facts) { \
        return takes_at(k, facts, &tn_kernel_gemm[index]);                       \
    }
#define ROW(n, level) \
    { .name = "attention " #n, .kind = TN_KERNEL_ATTENTION, .isa = level, .takes = takes_##n, .run = run_##n }
LEVEL(generic, 0)
#if defined(TN_HAVE_ISA_AVX512)
LEVEL(avx2, 1)
LEVEL(avx512, 2)
#elif defined(TN_HAVE_ISA_NEON)
LEVEL(neon, 1)
#endif

const tn_kernel_impl tn_kernel_attention[] = {
    ROW(generic, TN_ISA_GENERIC),
#if defined(TN_HAVE_ISA_AVX512)
    ROW(avx2, TN_ISA_AVX2),
    ROW(avx512, TN_ISA_AVX512),
#elif defined(TN_HAVE_ISA_NEON)
    ROW(neon, TN_ISA_NEON),
#endif
};
