/* Copies: rows that lie side by side in source and target, and planes of which the source has the columns where the target has the rows.
   Planes are transposed in blocks that stay in L1, so that lines of source and target are read and written whole. */
#include "kernels/kernels.h"
#include "kernels/move.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* From this size on a target is written past the caches: else each of its lines would be read before it is written, and what the next
   kernel reads first is gone anyway. */
#define STREAM_BYTES (8 << 20)
#define BLOCK_ROW 256                /* bytes of a block that lie side by side in the target */
#define BLOCK_BYTES (BLOCK_ROW * 64) /* of a block */
#define STRETCH (32 << 10)           /* bytes of a row that are one block where nothing is transposed */
#define PIECE_BYTES (128 << 10)
#define PIECES 64

typedef struct copy {
    const char *from;
    char *to;
    int64_t element; /* bytes */
    int axes;        /* in the order of the target's memory */
    int64_t extent[TN_MACHINE_AXES], step[TN_MACHINE_AXES],
        out[TN_MACHINE_AXES]; /* strides of source and target in elements */
    /* blocks: `length` elements along the last axis for `band` along `across` */
    tn_move_transpose_fn *transpose; /* NULL: rows alone */
    int across, others, order[TN_MACHINE_AXES];
    int64_t length, lengths, band, bands, blocks, per_piece;
    bool stream;
} copy;

const tn_move_level *tn_move_of(const tn_strip_level *strips) {
#if defined(TN_HAVE_ISA_AVX512)
    if (strips != &tn_strip_generic)
        return &tn_move_avx2;
#elif defined(TN_HAVE_ISA_NEON)
    if (strips != &tn_strip_generic)
        return &tn_move_neon;
#endif
    (void)strips;
    return &tn_move_generic;
}

/* --- blocks ------------------------------------------------------------------------------------------------------------------------------- */

static void stream(char *to, const char *from, int64_t bytes) {
#if defined(__SSE2__)
    int64_t head = -(int64_t)(uintptr_t)to & 63;
    head = head < bytes ? head : bytes;
    memcpy(to, from, (size_t)head);
    int64_t end = head + ((bytes - head) & ~(int64_t)63);
    for (int64_t i = head; i < end; i += 64) {
        __m128i a = _mm_loadu_si128((const void *)(from + i)), b = _mm_loadu_si128((const void *)(from + i + 16)),
                c = _mm_loadu_si128((const void *)(from + i + 32)), d = _mm_loadu_si128((const void *)(from + i + 48));
        _mm_stream_si128((void *)(to + i), a);
        _mm_stream_si128((void *)(to + i + 16), b);
        _mm_stream_si128((void *)(to + i + 32), c);
        _mm_stream_si128((void *)(to + i + 48), d);
    }
    memcpy(to + end, from + end, (size_t)(bytes - end));
#else
    memcpy(to, from, (size_t)bytes);
#endif
}

static void put(const copy *c, char *to, const char *from, int64_t bytes) {
    if (c->stream)
        stream(to, from, bytes);
    else
        memcpy(to, from, (size_t)bytes);
}

static void plane(const copy *c, const char *from, char *to, int64_t n, int64_t rows) {
    _Alignas(64) char block[BLOCK_BYTES];
    int64_t line = n * c->element, step = c->out[c->across] * c->element;
    c->transpose(n, rows, from, c->step[c->axes - 1], block, n);
    for (int64_t i = 0; i < rows; i++)
        put(c, to + i * step, block + i * line, line);
}

static void piece(void *ctx, int64_t index) {
    const copy *c = ctx;
    int last = c->axes - 1;
    int64_t next = index * c->per_piece, end = next + c->per_piece, at[TN_MACHINE_AXES] = {0}, left = next;
    end = end < c->blocks ? end : c->blocks;
    int64_t length = left % c->lengths, from = 0, to = 0;
    left /= c->lengths;
    int64_t band = left % c->bands;
    left /= c->bands;
    for (int i = c->others - 1; i >= 0; i--) {
        int axis = c->order[i];
        at[axis] = left % c->extent[axis];
        left /= c->extent[axis];
        from += at[axis] * c->step[axis];
        to += at[axis] * c->out[axis];
    }
    for (; next < end; next++) {
        int64_t l = length * c->length, n = c->extent[last] - l;
        n = n < c->length ? n : c->length;
        const char *a = c->from + (from + l * c->step[last]) * c->element;
        char *b = c->to + (to + l) * c->element;
        if (c->across < 0)
            put(c, b, a, n * c->element);
        else {
            int64_t first = band * c->band, rows = c->extent[c->across] - first;
            rows = rows < c->band ? rows : c->band;
            plane(c, a + first * c->element, b + first * c->out[c->across] * c->element, n, rows);
        }
        if (++length < c->lengths)
            continue;
        length = 0;
        if (++band < c->bands)
            continue;
        band = 0;
        for (int i = c->others - 1; i >= 0; i--) {
            int axis = c->order[i];
            from += c->step[axis];
            to += c->out[axis];
            if (++at[axis] < c->extent[axis])
                break;
            from -= at[axis] * c->step[axis];
            to -= at[axis] * c->out[axis];
            at[axis] = 0;
        }
    }
#if defined(__SSE2__)
    if (c->stream)
        _mm_sfence(); /* before another thread is told */
#endif
}

/* --- what is copied ------------------------------------------------------------------------------------------------------------------------ */

/* Cuts it into blocks. False: neither rows nor planes. Axes are in order, and at least one. */
static bool cut(copy *c, const tn_move_level *level) {
    int last = c->axes - 1;
    if (c->out[last] != 1 || c->element > 8)
        return false;
    c->across = -1;
    c->band = c->bands = 1;
    if (c->step[last] == 1)
        c->length = STRETCH / c->element;
    else {
        for (int i = 0; i < last; i++)
            if (c->step[i] == 1)
                c->across = i;
        c->transpose = level->transpose[c->element];
        if (c->across < 0 || c->step[last] == 0 || !c->transpose)
            return false;
        c->length = BLOCK_ROW / c->element;
        int64_t n = c->extent[last] < c->length ? c->extent[last] : c->length;
        c->band = BLOCK_BYTES / (n * c->element);
        c->band = c->band < 256 ? c->band : 256;
        c->bands = (c->extent[c->across] + c->band - 1) / c->band;
    }
    c->lengths = (c->extent[last] + c->length - 1) / c->length;
    c->blocks = c->lengths * c->bands;
    c->others = 0;
    for (int i = 0; i < last; i++)
        if (i != c->across) {
            c->order[c->others++] = i;
            c->blocks *= c->extent[i];
        }
    return true;
}

static void run(copy *c, int64_t count, tn_pool *pool) {
    int64_t bytes = count * c->element, pieces = bytes / PIECE_BYTES;
    c->stream = bytes >= STREAM_BYTES;
    pieces = pieces < 1 ? 1 : pieces > PIECES ? PIECES : pieces;
    c->per_piece = (c->blocks + pieces - 1) / pieces;
    tn_pool_run(pool, (c->blocks + c->per_piece - 1) / c->per_piece, piece, c);
}

bool tn_copy_run_resolved(const tn_resolved *r, tn_pool *pool) {
    const tn_kernel *k = r->kernel;
    const tn_resolved_access *x = &r->operand[0], *y = &r->output[0];
    if (k->operands != 1 || k->outputs != 1 || k->steps || k->epilogue || k->result[0] || x->guards ||
        x->dtype != y->dtype || r->outer == 0 || r->outputs_count == 0)
        return false;
    copy c = {.from = x->base, .to = y->base, .element = x->element, .axes = r->outer};
    for (int i = 0; i < c.axes; i++) {
        c.extent[i] = r->extent[i];
        c.step[i] = x->stride[i];
        c.out[i] = y->stride[i];
    }
    if (!cut(&c, tn_move_of(k->program->level)))
        return false;
    run(&c, r->outputs_count, pool);
    return true;
}

tn_status tn_copy_tensor(tn_tensor *to, const tn_tensor *from, tn_isa isa, tn_pool *pool) {
    if (!to->contiguous || to->dtype != from->dtype || to->dtype == TN_STRING ||
        tn_dtype_is_subbyte((tn_dtype)to->dtype) || to->count < 2 || to->data == from->data || to->rank != from->rank ||
        memcmp(to->dims, from->dims, to->rank * sizeof *to->dims) != 0)
        return tn_tensor_assign(to, from);
    copy c = {.from = from->data, .to = to->data, .element = tn_dtype_bits((tn_dtype)to->dtype) / 8};
    /* one axis where the source walks on as the target does */
    int64_t out = 1;
    for (int i = to->rank - 1; i >= 0; i--) {
        int first = TN_MACHINE_AXES - c.axes;
        if (to->dims[i] == 1)
            continue;
        if (c.axes && from->strides[i] == c.step[first] * c.extent[first])
            c.extent[first] *= to->dims[i];
        else {
            c.axes++;
            c.extent[first - 1] = to->dims[i];
            c.step[first - 1] = from->strides[i];
            c.out[first - 1] = out;
        }
        out *= to->dims[i];
    }
    int skip = TN_MACHINE_AXES - c.axes;
    memmove(c.extent, c.extent + skip, (size_t)c.axes * sizeof *c.extent);
    memmove(c.step, c.step + skip, (size_t)c.axes * sizeof *c.step);
    memmove(c.out, c.out + skip, (size_t)c.axes * sizeof *c.out);
    bool aligned = (uintptr_t)from->data % (size_t)c.element == 0 && (uintptr_t)to->data % (size_t)c.element == 0;
    if (!aligned || !cut(&c, tn_move_of(tn_strip_best(isa))))
        return tn_tensor_assign(to, from);
    run(&c, to->count, pool);
    return TN_OK;
}
