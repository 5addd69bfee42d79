/* Chains: elementwise kernels and reductions that follow each other, run together a few rows at a time, so that what only they read
   stays in the cache and never reaches its slot. Which kernels of a chain go together is decided when sizes and addresses are known;
   the bits are those of the kernels one after the other, since no recipe depends on how outputs are grouped. */
#include "kernels/kernels.h"
#include "kernels/rows.h"

#include <string.h>

#define BLOCK_BYTES (48 << 10) /* of rows between kernels, in the cache */
#define ROW_BYTES (512 << 10)  /* of one row between kernels, at most */
#define PIECE_WORK (1 << 15)

typedef tn_rows_link link;

typedef struct group {
    link *link;
    int count;
    int64_t rows, block, blocks, per_piece;
    size_t scratch; /* bytes */
    tn_heap *heap;
    tn_places places;
    const tn_rows *by_row; /* NULL: blocks of rows */
    _Atomic int failed;
} group;

/* Bytes that an access reaches, from its base. */
static void reach(const tn_resolved *r, const tn_resolved_access *a, int axes, const char **low, const char **high) {
    *low = *high = a->base;
    for (int i = 0; i < axes; i++) {
        int64_t bytes = a->stride[i] * (r->extent[i] - 1) * a->element;
        *(bytes < 0 ? low : high) += bytes;
    }
    *high += a->element;
}

/* Whether an access walks whole rows of `row` bytes, each from its own bytes alone. It has no guards: admits. No `row` of 0 or less is
   kept, since `within` is not less. */
static bool keeps_rows(const link *l, const tn_resolved_access *a, int axes, int64_t row) {
    const tn_resolved *r = &l->r;
    int64_t within = a->stride[0] * (l->times - 1) * a->element;
    if (a->stride[0] * l->times * a->element != row)
        return false;
    for (int i = 1; i < axes; i++) {
        if (a->stride[i] < 0)
            return false;
        within += a->stride[i] * (r->extent[i] - 1) * a->element;
    }
    return within < row;
}

static bool overlap(const link *a, const tn_resolved_access *x, int x_axes, const link *b, const tn_resolved_access *y,
                    int y_axes) {
    const char *low[2], *high[2];
    reach(&a->r, x, x_axes, &low[0], &high[0]);
    reach(&b->r, y, y_axes, &low[1], &high[1]);
    return low[0] < high[1] && low[1] < high[0];
}

/* Whether an operand is the internal output of an earlier kernel: its link. */
static const link *maker_of(const group *g, int j, int operand) {
    for (int i = 0; i < j; i++)
        if (g->link[i].internal && g->link[j].r.kernel->operand[operand].slot == g->link[i].r.kernel->output[0].slot)
            return &g->link[i];
    return NULL;
}

/* Whether `reader` may read operand k where `writer` writes, row by row. */
static bool agree(const link *reader, int k, const link *writer, bool later, bool *linked) {
    const tn_resolved_access *in = &reader->r.operand[k], *out = &writer->r.output[0];
    int axes = reader->r.outer + reader->r.inner;
    bool made = later && reader->r.kernel->operand[k].slot == writer->r.kernel->output[0].slot;
    if (!made && (writer->internal || !overlap(reader, in, axes, writer, out, writer->r.outer)))
        return true;
    *linked |= made;
    /* Each row from the same row, in the order of the kernels: read after it is made, or before its memory is used again. */
    return in->base == out->base && keeps_rows(reader, in, axes, writer->row);
}

/* Whether kernel `last` can run row by row with those before it; these can with each other. What an internal output would be is not in
   memory. */
static bool joins(const group *g, int last) {
    const link *l = &g->link[last];
    const tn_resolved *r = &l->r;
    bool linked = false, ignored = false;
    if (r->extent[0] % g->rows != 0 || r->kernel->outputs != 1 || !keeps_rows(l, &r->output[0], r->outer, l->row))
        return false;
    for (int i = 0; i < last; i++) {
        const link *other = &g->link[i];
        for (int k = 0; k < r->kernel->operands; k++)
            if (!(maker_of(g, last, k) && maker_of(g, last, k) != other) && !agree(l, k, other, true, &linked))
                return false;
        for (int k = 0; k < other->r.kernel->operands; k++)
            if (!maker_of(g, i, k) && !agree(other, k, l, false, &ignored))
                return false;
        if (!other->internal && !l->internal &&
            overlap(l, &r->output[0], r->outer, other, &other->r.output[0], other->r.outer))
            return false;
    }
    return last == 0 ||
           linked; /* no condition of the bits: the cache gains nothing by kernels that have no value in common */
}

static void measure(group *g, int count) {
    g->rows = INT64_MAX;
    for (int j = 0; j < count; j++)
        g->rows = g->link[j].r.extent[0] < g->rows ? g->link[j].r.extent[0] : g->rows;
    for (int j = 0; j < count; j++) {
        link *l = &g->link[j];
        l->times = l->r.extent[0] / g->rows;
        l->row = l->r.output[0].stride[0] * l->times * l->r.output[0].element;
        l->internal = l->r.kernel->readers > 0 && j + l->r.kernel->readers < count;
    }
}

/* Whether a kernel can be part of a group at all. Outputs have no guards; those of an operand count from the first row. */
static bool admits(const link *l) {
    const tn_resolved *r = &l->r;
    for (int k = 0; k < r->kernel->operands; k++)
        if (r->operand[k].guards)
            return false;
    return r->outer > 0 && r->outputs_count > 0 && r->inner_count > 0 && r->extent[0] > 1;
}

/* Bytes of a row between the first `count` kernels. */
static int64_t row_bytes(const group *g, int count) {
    int64_t row = 0;
    for (int j = 0; j < count; j++)
        row += g->link[j].internal ? g->link[j].row : 0;
    return row;
}

/* How many of the links run together, from the first on, none that makes rows longer than so many bytes. */
static int grow(group *g, int most, int64_t longest) {
    int count = 0;
    for (; count < most && admits(&g->link[count]); count++) {
        int64_t rows = g->rows;
        measure(g, count + 1);
        bool longer = row_bytes(g, count + 1) > longest;
        for (int j = rows == g->rows ? count : 0; j <= count; j++)
            if (longer || !joins(g, j)) {
                measure(g, count ? count : 1);
                return count ? count : 1;
            }
    }
    return count ? count : 1;
}

/* --- running -------------------------------------------------------------------------------------------------------------------------- */

static void run_block(const group *g, int64_t first, int64_t rows, char *scratch, tn_resolved_access *copy) {
    for (int j = 0; j < g->count; j++) {
        const link *l = &g->link[j];
        tn_resolved r = l->r;
        int operands = r.kernel->operands;
        memcpy(copy, l->r.operand, (size_t)operands * sizeof *copy);
        copy[operands] = l->r.output[0];
        r.operand = copy;
        r.output = copy + operands;
        r.outputs_count = r.outputs_count / r.extent[0] * (rows * l->times);
        r.extent[0] = rows * l->times;
        for (int k = 0; k <= operands; k++) {
            const link *maker = k == operands ? (l->internal ? l : NULL) : maker_of(g, j, k);
            if (maker)
                copy[k].base = scratch + maker->scratch;
            else
                copy[k].base += first * l->times * copy[k].stride[0] * copy[k].element;
        }
        (r.kernel->kind == TN_KERNEL_STRIP ? tn_strip_run_resolved : tn_reduce_run_resolved)(&r, NULL);
    }
}

static void piece(void *ctx, int64_t index) {
    group *g = ctx;
    int64_t end = (index + 1) * g->per_piece < g->blocks ? (index + 1) * g->per_piece : g->blocks;
    tn_resolved_access copy[TN_MACHINE_REGISTERS];
    char *scratch = tn_places_take(&g->places);
    if (!scratch) {
        g->failed = 1;
        return;
    }
    for (int64_t b = index * g->per_piece; b < end && !g->by_row; b++) {
        int64_t first = b * g->block, left = g->rows - first;
        run_block(g, first, left < g->block ? left : g->block, scratch, copy);
    }
    if (g->by_row)
        tn_rows_run(g->by_row, index * g->per_piece * g->block, end * g->block < g->rows ? end * g->block : g->rows,
                    scratch);
    tn_places_give(&g->places, scratch);
}

static bool prepare(group *g) {
    double work = 0;
    int64_t row = row_bytes(g, g->count);
    for (int j = 0; j < g->count; j++) {
        const tn_resolved *r = &g->link[j].r;
        work += (double)r->outputs_count * (double)(r->inner_count + r->kernel->steps + r->kernel->epilogue);
    }
    if (row == 0 || row > ROW_BYTES)
        return false;
    g->block = BLOCK_BYTES / row;
    g->block = g->block < 1 ? 1 : g->block > g->rows ? g->rows : g->block;
    work /= PIECE_WORK;
    int64_t pieces = work < 2 ? 1 : work > 64 ? 64 : (int64_t)work, even = (g->rows + pieces - 1) / pieces;
    g->block = even < g->block ? even : g->block;
    g->blocks = (g->rows + g->block - 1) / g->block;
    g->per_piece = (g->blocks + pieces - 1) / pieces;
    g->scratch = 0;
    for (int j = 0; j < g->count; j++) {
        g->link[j].scratch = g->scratch;
        if (g->link[j].internal)
            g->scratch += ((size_t)(g->block * g->link[j].row) + 127) & ~(size_t)63;
    }
    return true;
}

static tn_status run_group(group *g, const tn_kernel_args *args, bool in_blocks) {
    tn_rows rows;
    bool together = g->count > 1 && prepare(g);
    if (together && tn_rows_make(&rows, g->link, g->count, g->rows)) {
        g->by_row = &rows;
        g->scratch = rows.scratch;
    }
    if (g->by_row || (together && in_blocks)) {
        int64_t pieces = (g->blocks + g->per_piece - 1) / g->per_piece;
        if (tn_places_make(&g->places, g->heap, args->pool, pieces, g->scratch))
            tn_pool_run(args->pool, pieces, piece, g);
        else
            g->failed = 1;
        tn_places_free(&g->places);
        return g->failed ? tn_fail(TN_ERR_MEMORY, "out of memory in a chain of kernels") : TN_OK;
    }
    for (int j = 0; j < g->count; j++) {
        const tn_resolved *r = &g->link[j].r;
        (r->kernel->kind == TN_KERNEL_STRIP ? tn_strip_run_resolved : tn_reduce_run_resolved)(r, args->pool);
    }
    return TN_OK;
}

/* Bytes that go from kernel to kernel. */
static double passed(const link *links, uint32_t count) {
    double bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        if (links[i].r.kernel->readers)
            bytes += (double)links[i].r.outputs_count * (double)links[i].r.output[0].element;
    return bytes;
}

/* From how many such bytes on calls over single rows are worth their making, which all runs begin with; those of a softmax are the fewest. */
static double rows_pay(const link *links) {
    const tn_kernel *k = links[0].r.kernel;
    return k->kind == TN_KERNEL_REDUCE && k->combine == TN_SCALAR_MAX ? 1 << 10 : 12 << 10;
}

/* --- long rows ------------------------------------------------------------------------------------------------------------------------ */

#define SLICED 96 /* accesses of a chain that is sliced, at most */

/* Row `row` of `rows` of a link as a kernel of its own, with shorter rows. */
static void slice(const link *from, int64_t rows, int64_t row, tn_resolved_access *room, link *to) {
    tn_resolved *r = &to->r;
    int operands = from->r.kernel->operands;
    *to = *from;
    memcpy(room, from->r.operand, (size_t)operands * sizeof *room);
    room[operands] = from->r.output[0];
    r->operand = room;
    r->output = room + operands;
    r->outputs_count /= rows;
    r->extent[0] /= rows;
    for (int k = 0; k <= operands; k++)
        room[k].base += row * r->extent[0] * room[k].stride[0] * room[k].element;
    if (r->extent[0] > 1 || r->outer == 1)
        return;
    memmove(r->extent, r->extent + 1, (TN_MACHINE_AXES - 1) * sizeof *r->extent);
    for (int k = 0; k <= operands; k++)
        memmove(room[k].stride, room[k].stride + 1, (TN_MACHINE_AXES - 1) * sizeof *room[k].stride);
    r->outer--;
}

static tn_status run_links(link *links, uint32_t count, const tn_kernel_args *args);

typedef struct slices {
    link link[TN_CHAIN_MOST];
    tn_resolved_access room[SLICED];
} slices;

static void slice_all(const group *g, int64_t row, slices *s) {
    for (int j = 0, used = 0; j < g->count; used += g->link[j++].r.kernel->operands + 1)
        slice(&g->link[j], g->rows, row, s->room + used, &s->link[j]);
}

/* Rows that are too long for the cache, of which each needs only itself: one after the other, as chains of shorter ones. An axis of an operand
   that repeats (a scale of each channel, for each image) makes them so long. */
static tn_status run_long(const group *g, const tn_kernel_args *args) {
    slices s;
    tn_status status = TN_OK;
    for (int64_t row = 0; row < g->rows && status == TN_OK; row++) {
        slice_all(g, row, &s);
        status = run_links(s.link, (uint32_t)g->count, args);
    }
    return status;
}

/* Whether more links run together where rows may be as long as they are, and these are short ones that do. */
static bool is_long(const group *g, int most, group *longer) {
    int accesses = 0;
    *longer = *g;
    longer->rows = 1;
    longer->count = grow(longer, most, INT64_MAX);
    for (int j = 0; j < longer->count; j++)
        accesses += longer->link[j].r.kernel->operands + 1;
    if (longer->count <= g->count || longer->rows <= 1 || accesses > SLICED)
        return false;
    slices s;
    slice_all(longer, 0, &s);
    group one = {.link = s.link, .rows = 1};
    return grow(&one, longer->count, ROW_BYTES) == longer->count;
}

static tn_status run_links(link *links, uint32_t count, const tn_kernel_args *args) {
    double bytes = passed(links, count);
    bool large = bytes > 2 * BLOCK_BYTES,
         together = count > 0 && bytes > rows_pay(links); /* large: more than the cache keeps anyway */
    tn_status status = TN_OK;
    for (uint32_t first = 0; first < count && status == TN_OK;) {
        group g = {.link = links + first, .heap = args->heap, .rows = 1}, longer;
        int most = (int)(count - first);
        g.count = together ? grow(&g, most, ROW_BYTES) : 1;
        if (large && g.count < most && is_long(&g, most, &longer)) {
            status = run_long(&longer, args);
            first += (uint32_t)longer.count;
            continue;
        }
        if (g.count > 1) /* is_long measured more */
            measure(&g, g.count);
        status = run_group(&g, args, large);
        first += (uint32_t)g.count;
    }
    return status;
}

static tn_kernel_args args_of(const tn_kernel_args *args, uint32_t index) {
    tn_kernel_args each = *args;
    each.kernel += index;
    each.kept = args->kept ? args->kept + index : NULL;
    return each;
}

/* Those of the links that are not small, from `first` on, up to one that is. */
static tn_status run_part(const tn_kernel_args *args, uint32_t first, uint32_t count, uint32_t *end) {
    link links[TN_CHAIN_MOST];
    uint32_t have = 0;
    tn_status status = TN_OK;
    for (; first + have < count; have++) {
        tn_kernel_args each = args_of(args, first + have);
        if (have && each.kept && *each.kept && tn_small_is(*each.kept))
            break;
        links[have].resolved = tn_resolve(&each, TN_RESOLVE_MERGED, tn_small_room(each.kernel));
        if (!links[have].resolved) {
            status = tn_error_status();
            break;
        }
        tn_small_consider(links[have].resolved);
        links[have].r = *links[have].resolved;
    }
    if (status == TN_OK)
        status = run_links(links, have, args);
    for (uint32_t i = 0; i < have; i++)
        tn_resolved_free(args, links[i].resolved);
    *end = first + have;
    return status;
}

tn_status tn_chain_run(const tn_kernel_args *args, uint32_t count) {
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < count && status == TN_OK;) {
        tn_kernel_args each = args_of(args, i);
        if (each.kept && tn_small_run(*each.kept, &each))
            i++;
        else
            status = run_part(args, i, count, &i);
    }
    return status;
}
