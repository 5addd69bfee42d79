/* The block engine of contractions: register tiles of sums over packed operands, and the split of the work. */
#include <stdatomic.h>

#include "ops/contract.h"

#define TILE 8       /* columns of a register tile */
#define STRIP_ROWS 8 /* rows packed at a time: with a tile's panel they stay in the first-level cache */

bool tn_block_init(tn_block *block, tn_heap *heap, bool floats, int64_t rows) {
    size_t sums = (size_t)(rows + (rows & 1)) * TN_BLOCK_COLUMNS, panel = TN_BLOCK_DEPTH * TN_BLOCK_COLUMNS,
           strip = TN_BLOCK_DEPTH * STRIP_ROWS;
    *block = (tn_block){.heap = heap, .floats = floats, .rows = rows};
    block->memory = tn_alloc_aligned(heap, (sums + panel + strip) * sizeof(tn_lane), 64);
    if (block->memory == NULL)
        return false;
    block->acc = block->memory;
    block->panel = block->acc + sums;
    block->strip = block->panel + panel;
    return true;
}

void tn_block_free(tn_block *block) {
    tn_free(block->heap, block->memory);
}

void tn_block_clear(tn_block *block) {
    memset(block->acc, 0, (size_t)(block->rows + (block->rows & 1)) * TN_BLOCK_COLUMNS * sizeof(tn_lane));
}

void tn_block_set_term(tn_block *block, int64_t term, const tn_lane line[TN_BLOCK_COLUMNS]) {
    for (int j = 0; j < TN_BLOCK_COLUMNS; j += TILE)
        memcpy(block->panel + j * TN_BLOCK_DEPTH + term * TILE, line + j, TILE * sizeof *line);
}

void tn_block_set_column(tn_block *block, int64_t column, int64_t terms, const tn_lane *operands) {
    tn_lane *to = block->panel + column / TILE * TILE * TN_BLOCK_DEPTH + column % TILE;
    for (int64_t t = 0; t < terms; t++)
        to[t * TILE] = operands[t];
}

void tn_block_pad_columns(tn_block *block, int64_t first, int64_t terms) {
    const tn_lane zeros[TN_BLOCK_DEPTH] = {0};
    for (; first % TILE != 0; first++)
        tn_block_set_column(block, first, terms, zeros);
}

typedef double pair __attribute__((vector_size(16)));
typedef union row_tile {
    pair v[TILE / 2];
    tn_lane lane[TILE];
} row_tile;

/* Two rows of a tile: sums[r][j] += a[t][r] * b[t][j]. */
static void multiply_floats(int64_t terms, const tn_lane *a, const tn_lane *b, tn_lane *sums0, tn_lane *sums1) {
    row_tile x, y;
    memcpy(&x, sums0, sizeof x);
    memcpy(&y, sums1, sizeof y);
    pair x0 = x.v[0], x1 = x.v[1], x2 = x.v[2], x3 = x.v[3], y0 = y.v[0], y1 = y.v[1], y2 = y.v[2], y3 = y.v[3];
    const double *p = (const double *)(const void *)a;
    const pair *q = (const pair *)(const void *)b;
    for (int64_t t = 0; t < terms; t++, p += 2, q += TILE / 2) {
        pair u = {p[0], p[0]}, v = {p[1], p[1]};
        pair b0 = q[0], b1 = q[1], b2 = q[2], b3 = q[3];
        x0 += u * b0;
        x1 += u * b1;
        x2 += u * b2;
        x3 += u * b3;
        y0 += v * b0;
        y1 += v * b1;
        y2 += v * b2;
        y3 += v * b3;
    }
    x = (row_tile){.v = {x0, x1, x2, x3}};
    y = (row_tile){.v = {y0, y1, y2, y3}};
    memcpy(sums0, &x, sizeof x);
    memcpy(sums1, &y, sizeof y);
}

static void multiply_integers(int64_t terms, const tn_lane *a, const tn_lane *b, tn_lane *sums0, tn_lane *sums1) {
    for (int r = 0; r < 2; r++) {
        tn_lane *to = r == 0 ? sums0 : sums1, x[TILE];
        memcpy(x, to, sizeof x);
        for (int64_t t = 0; t < terms; t++)
            for (int j = 0; j < TILE; j++)
                x[j] += a[2 * t + r] * b[TILE * t + j];
        memcpy(to, x, sizeof x);
    }
}

void tn_block_multiply(tn_block *block, int64_t begin, int64_t terms, int64_t columns, tn_block_load_row *load,
                       const void *ctx) {
    tn_lane loaded[TN_BLOCK_DEPTH];
    for (int64_t first = 0; first < block->rows; first += STRIP_ROWS) {
        int64_t rows = block->rows - first < STRIP_ROWS ? block->rows - first : STRIP_ROWS;
        for (int64_t r = 0; r < rows + (rows & 1); r++) {
            tn_lane *to = block->strip + r / 2 * 2 * TN_BLOCK_DEPTH + r % 2;
            if (r < rows)
                load(ctx, first + r, begin, terms, loaded);
            else
                memset(loaded, 0, sizeof loaded);
            for (int64_t t = 0; t < terms; t++)
                to[2 * t] = loaded[t];
        }
        for (int64_t j = 0; j < columns; j += TILE)
            for (int64_t r = 0; r < rows; r += 2) {
                tn_lane *sums = block->acc + (first + r) * TN_BLOCK_COLUMNS + j;
                (block->floats ? multiply_floats : multiply_integers)(terms, block->strip + r * TN_BLOCK_DEPTH,
                                                                      block->panel + j * TN_BLOCK_DEPTH, sums,
                                                                      sums + TN_BLOCK_COLUMNS);
            }
    }
}

void tn_space_load(const tn_space *space, tn_dtype dtype, const char *base, int64_t begin, int64_t n, tn_lane *out) {
    int64_t size = tn_dtype_bits(dtype) / 8;
    int64_t inner = space->rank > 0 ? space->dims[space->rank - 1] : 1,
            step = space->rank > 0 ? space->strides[space->rank - 1] : 1;
    tn_domain domain = tn_contract_domain(dtype);
    while (n > 0) {
        int64_t m = inner - begin % inner;
        m = m > n ? n : m;
        tn_run_load(dtype, domain, base + tn_space_offset(space, begin) * size, 0, step, m, out);
        begin += m;
        out += m;
        n -= m;
    }
}

/* --- split -------------------------------------------------------------------------------------------------------- */

void tn_contract_plan(tn_contract_split *split, int threads, int64_t outer, int64_t columns, int64_t rows) {
    *split = (tn_contract_split){.outer = outer, .columns = columns, .rows = rows};
    int64_t wanted = threads > 1 ? 4 * (int64_t)threads : 1;
    split->column_blocks = (columns - 1) / TN_BLOCK_COLUMNS + 1;
    split->row_block = rows < 512 ? rows : 512;
    /* Fewer rows repeat the packing of columns, so no fewer than pay for it. */
    while (split->row_block > 32 && outer < wanted && split->column_blocks < wanted &&
           outer * split->column_blocks * ((rows - 1) / split->row_block + 1) < wanted)
        split->row_block = (split->row_block + 3) / 4 * 2;
    split->row_blocks = (rows - 1) / split->row_block + 1;
    split->units = outer * split->column_blocks * split->row_blocks;
    split->pieces = split->units < 16 * wanted ? split->units : 16 * wanted;
}

tn_contract_unit tn_contract_unit_at(const tn_contract_split *s, int64_t unit) {
    tn_contract_unit u;
    u.row = unit % s->row_blocks * s->row_block;
    unit /= s->row_blocks;
    u.column = unit % s->column_blocks * TN_BLOCK_COLUMNS;
    u.outer = unit / s->column_blocks;
    u.rows = s->rows - u.row < s->row_block ? s->rows - u.row : s->row_block;
    u.columns = s->columns - u.column < TN_BLOCK_COLUMNS ? s->columns - u.column : TN_BLOCK_COLUMNS;
    return u;
}

typedef struct contract_run {
    const tn_contract_split *split;
    tn_heap *heap;
    bool floats;
    tn_contract_compute *compute;
    const void *ctx;
    atomic_int failed; /* tn_status */
} contract_run;

static void run_piece(void *ctx, int64_t piece) {
    contract_run *r = ctx;
    const tn_contract_split *s = r->split;
    int64_t each = s->units / s->pieces, more = s->units % s->pieces;
    int64_t begin = piece * each + (piece < more ? piece : more), end = begin + each + (piece < more);
    tn_block block;
    if (!tn_block_init(&block, r->heap, r->floats, s->row_block)) {
        atomic_store(&r->failed, tn_error_status());
        return;
    }
    for (; begin < end; begin++) {
        tn_contract_unit unit = tn_contract_unit_at(s, begin);
        block.rows = unit.rows;
        tn_block_clear(&block);
        r->compute(r->ctx, &block, &unit);
    }
    tn_block_free(&block);
}

tn_status tn_contract_run(tn_eval *e, const tn_contract_split *split, bool floats, tn_contract_compute *compute,
                          const void *ctx) {
    contract_run run = {.split = split, .heap = e->heap, .floats = floats, .compute = compute, .ctx = ctx};
    tn_pool_run(e->pool, split->pieces, run_piece, &run);
    if (atomic_load(&run.failed)) /* on some thread */
        return tn_eval_fail(e, (tn_status)atomic_load(&run.failed), "no memory for the blocks of a contraction");
    return TN_OK;
}
