/* Register tiles of the contraction at one instruction-set level. Vectors are GNU vector types; the accumulators of a tile stay in
   registers for the whole sum. */
#include "kernels/gemm.h"
#include "kernels/isa/interleave.h"

#include <string.h>

/* The same instructions as AVX-512: that level's table serves. */
#if !defined(__AVX512VNNI__)

#include "kernels/isa/ends.h"
#include "kernels/isa_vector.h"

#if defined(__AVX512F__)
#define ROWS 12
#elif defined(__AVX2__)
#define ROWS 6
#else
#define ROWS 4
#endif
#define LINES (COLUMNS * 4 / TN_GEMM_LINE) /* of the cache, that the columns of an element are */

/* Adds the products of one summed element to sums. */
INLINE void add_element(const int rows, const int vectors, vec (*sum)[VECTORS], const float *const *a, int64_t at,
                        const float *b) {
    vec column[VECTORS];
    EACH (v, vectors)
        column[v] = load(b + v * WIDTH);
    EACH (i, rows) {
        vec x = splat(a[i][at]);
        EACH (v, vectors)
            sum[i][v] = madd(x, column[v], sum[i][v]);
    }
}

/* Adds summed elements [k, end) of a run to sums; from[i]: row i of the run, b: columns of element k. Fetches so many lines at the place ahead
   of each element; 0: one for two elements. */
INLINE void add_run(const int rows, const int vectors, const int lines, vec (*sum)[VECTORS], const float *const *from,
                    int64_t k, int64_t end, int64_t step, const float *b, uintptr_t ahead, int64_t ahead_step) {
    const float *a[ROWS];
    EACH (i, rows)
        a[i] = from[i] + k * step;
    int64_t at = 0, next = step;
    for (const float *last = b + (end - k - 1) * COLUMNS; b < last; b += 2 * COLUMNS) {
        __builtin_prefetch((const void *)ahead, 0, 2);
        for (int i = 1; i < lines; i++)
            __builtin_prefetch((const void *)(ahead + (uintptr_t)i * TN_GEMM_LINE), 0, 2);
        for (int i = 0; i < lines; i++)
            __builtin_prefetch((const void *)(ahead + (uintptr_t)ahead_step + (uintptr_t)i * TN_GEMM_LINE), 0, 2);
        ahead += 2 * (uintptr_t)ahead_step;
        add_element(rows, vectors, sum, a, at, b);
        add_element(rows, vectors, sum, a, next, b + COLUMNS);
        at += 2 * step;
        next += 2 * step;
    }
    if ((end - k) & 1)
        add_element(rows, vectors, sum, a, at, b);
}

INLINE void tile_of(const int rows, const int vectors, const int lines, const tn_gemm_tile *t) {
    vec sum[ROWS][VECTORS];
    EACH (i, rows)
        EACH (v, vectors)
            sum[i][v] = (vec){0};
    if (t->add)
        EACH (i, rows)
            EACH (v, vectors)
                sum[i][v] = load(t->c[i] + t->first + v * WIDTH);
    const float *b = t->b;
    uintptr_t ahead = t->ahead ? t->ahead : (uintptr_t)b;
    for (int64_t r = 0, n; r < t->runs; r++, b += n * COLUMNS, ahead += (uintptr_t)(n * t->ahead_step)) {
        n = t->length[r];
        add_run(rows, vectors, lines, sum, t->a + r * t->stride, 0, n, t->step, b, ahead, t->ahead_step);
    }
    if (t->end)
        end_sums(rows, vectors, sum, t->end, t->all, t->first);
    EACH (i, rows)
        EACH (v, vectors)
            store(t->c[i] + t->first + v * WIDTH, sum[i][v]);
}

/* Some rows of a block of a run; their sums wait in memory. */
INLINE void block_of(const int rows, float (*sums)[COLUMNS], const float *const *a, int64_t k, int64_t end,
                     int64_t step, const float *b, uintptr_t ahead, int64_t ahead_step) {
    vec sum[ROWS][VECTORS];
    EACH (i, rows)
        EACH (v, VECTORS)
            sum[i][v] = load(sums[i] + v * WIDTH);
    add_run(rows, VECTORS, 1, sum, a, k, end, step, b, ahead, ahead_step);
    EACH (i, rows)
        EACH (v, VECTORS)
            store(sums[i] + v * WIDTH, sum[i][v]);
}

/* Heights of tiles, of the parts of tall ones, and of those that fetch all lines of an element (fewer rows leave that to the processor). */
#if ROWS > 6
#define EACH_HEIGHT(f) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12)
#define EACH_PART(f) f(6) f(7) f(8)
#define EACH_FETCHING(f) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12)
#elif ROWS > 4
#define EACH_HEIGHT(f) f(1) f(2) f(3) f(4) f(5) f(6)
#define EACH_PART(f) f(3) f(4) f(5) f(6)
#define EACH_FETCHING(f) f(5) f(6)
#else
#define EACH_HEIGHT(f) f(1) f(2) f(3) f(4)
#define EACH_PART(f) f(2) f(3) f(4)
#define EACH_FETCHING(f)
#endif
#define BLOCK 64

/* More rows than fit in registers: in turns, a block of columns at a time, so that columns come from memory steadily. */
static void tall_tile(const tn_gemm_tile *t) {
    float sums[TN_GEMM_MAX_ROWS][COLUMNS];
    for (int i = 0; i < t->rows; i++)
        for (int j = 0; j < COLUMNS; j++)
            sums[i][j] = t->add ? t->c[i][t->first + j] : 0;
    int parts = (t->rows + ROWS - 1) / ROWS;
    int64_t ahead_step = t->ahead_step / parts;
    const float *b = t->b;
    uintptr_t ahead = t->ahead ? t->ahead : (uintptr_t)b;
    for (int64_t r = 0; r < t->runs; r++) {
        const float *const *a = t->a + r * t->stride;
        for (int64_t k = 0, n = t->length[r], end; k < n; k = end) {
            end = n - k < BLOCK ? n : k + BLOCK;
            uintptr_t next = ahead;
            for (int part = 0, i = 0, rows; part < parts; part++, i += rows) {
                rows = (t->rows - i + parts - part - 1) / (parts - part);
#define BLOCK_OF(n) \
    case n: block_of(n, sums + i, a + i, k, end, t->step, b, next, ahead_step); break;
                switch (rows) {
                    EACH_PART(BLOCK_OF)
                default: break;
                }
                next += (uintptr_t)((end - k) * ahead_step);
            }
            ahead += (uintptr_t)((end - k) * t->ahead_step);
            b += (end - k) * COLUMNS;
        }
    }
    for (int i = 0; i < t->rows; i++)
        memcpy(t->c[i] + t->first, sums[i], sizeof sums[i]);
}

/* Rows that slide through the same memory. */
INLINE void placed_of(const int rows, const int vectors, const tn_gemm_tile *t) {
    vec sum[ROWS][VECTORS];
    EACH (i, rows)
        EACH (v, vectors)
            sum[i][v] = (vec){0};
    const float *b = t->b, *a = t->a[0];
    const int32_t *place = t->place;
    for (const int32_t *last = place + t->length[0]; place < last; place++, b += COLUMNS) {
        const float *from = a + *place;
        vec column[VECTORS];
        EACH (v, vectors)
            column[v] = load(b + v * WIDTH);
        EACH (i, rows) {
            vec x = splat(from[i]);
            EACH (v, vectors)
                sum[i][v] = madd(x, column[v], sum[i][v]);
        }
    }
    if (t->end)
        end_sums(rows, vectors, sum, t->end, t->all, t->first);
    EACH (i, rows)
        EACH (v, vectors)
            store(t->c[i] + t->first + v * WIDTH, sum[i][v]);
}

static void placed_tile(const tn_gemm_tile *t) {
    if (t->rows != ROWS)
        placed_of(1, VECTORS, t);
    else if (VECTORS == 2 && t->columns == WIDTH)
        placed_of(ROWS, 1, t);
    else
        placed_of(ROWS, VECTORS, t);
}

static void whole_tile(const tn_gemm_tile *t) {
#define FETCHING_TILE_OF(n)            \
    case n:                            \
        tile_of(n, VECTORS, LINES, t); \
        return;
#define TILE_OF(n) \
    case n: tile_of(n, VECTORS, 0, t); break;
    if (t->ahead_step > TN_GEMM_LINE / 2)
        switch (t->rows) {
            EACH_FETCHING(FETCHING_TILE_OF)
        default: break;
        }
    switch (t->rows) {
        EACH_HEIGHT(TILE_OF)
    default: tall_tile(t); break;
    }
}

/* Of a panel's first vector of columns. */
#if VECTORS == 2
static void narrow_tile(const tn_gemm_tile *t) {
#define NARROW_TILE_OF(n) \
    case n: tile_of(n, 1, 0, t); break;
    switch (t->rows) {
        EACH_HEIGHT(NARROW_TILE_OF)
    default: tall_tile(t); break;
    }
}
#else /* four vectors: it is not worth its code */
#define narrow_tile whole_tile
#endif

/* Several panels at once: sums of one row that wait for each other would leave the multiply-adds idle. */
#define BESIDE 4 /* at most */
INLINE void beside_of(const int rows, const int panels, const tn_gemm_tile *t) {
    vec sum[TN_GEMM_LOW][BESIDE][VECTORS];
    EACH (i, rows)
        EACH (p, panels)
            EACH (v, VECTORS)
                sum[i][p][v] = (vec){0};
    const float *b[BESIDE];
    EACH (p, panels)
        b[p] = t->b + p * t->apart;
    for (int64_t r = 0; r < t->runs; r++) {
        const float *a[TN_GEMM_LOW];
        EACH (i, rows)
            a[i] = t->a[r * t->stride + i];
        for (int64_t k = 0, at = 0; k < t->length[r]; k++, at += t->step) {
            vec x[TN_GEMM_LOW];
            EACH (i, rows)
                x[i] = splat(a[i][at]);
            EACH (p, panels) {
                EACH (v, VECTORS) {
                    vec column = load(b[p] + v * WIDTH);
                    EACH (i, rows)
                        sum[i][p][v] = madd(x[i], column, sum[i][p][v]);
                }
                b[p] += COLUMNS;
            }
        }
    }
    EACH (i, rows)
        EACH (p, panels)
            EACH (v, VECTORS)
                store(t->c[i] + t->first + p * COLUMNS + v * WIDTH, sum[i][p][v]);
}

/* Heights, and panels that they take at once: as many sums as there are registers for, and what is left of a row of panels. */
#if VECTORS == 2
#define EACH_BESIDE(f) f(1, 2) f(1, 3) f(1, 4) f(2, 2) f(2, 3) f(3, 2)
#define MOST_BESIDE \
    { 1, 4, 3, 2 }
#else
#define EACH_BESIDE(f) f(1, 2)
#define MOST_BESIDE \
    { 1, 2, 1, 1 }
#endif

static void beside_tile(const tn_gemm_tile *t) {
#define BESIDE_OF(n, m) \
    case (n)*8 + (m): beside_of(n, m, t); break;
    switch (t->rows * 8 + t->panels) {
        EACH_BESIDE(BESIDE_OF)
    default: break;
    }
}

/* Fewer columns than a panel has, nor one vector: sums are formed beside c, for what follows there is another's. */
static __attribute__((noinline)) void part_tile(const tn_gemm_tile *t) {
    float beside[TN_GEMM_MAX_ROWS][COLUMNS], *c[TN_GEMM_MAX_ROWS];
    for (int i = 0; i < TN_GEMM_MAX_ROWS; i++)
        c[i] = beside[i];
    for (int i = 0; i < t->rows && t->add; i++)
        for (int v = 0; v < VECTORS; v++)
            store(beside[i] + v * WIDTH, load_part(t->c[i] + t->first + v * WIDTH, t->columns - v * WIDTH));
    tn_gemm_tile whole = *t;
    whole.c = c;
    whole.first = 0;
    whole.end = NULL;
    if (t->place)
        placed_tile(&whole);
    else if (t->columns <= WIDTH)
        narrow_tile(&whole);
    else
        whole_tile(&whole);
    float add[COLUMNS] = {0}, all[COLUMNS] = {0};
    const float *one = all;
    tn_finish_end end = {0};
    if (t->end) {
        end = *t->end;
        for (int j = 0; j < t->columns && end.add; j++)
            add[j] = end.add[t->first + j];
        end.add = end.add ? add : NULL;
    }
    for (int i = 0; i < t->rows; i++) {
        vec sum[1][VECTORS];
        EACH (v, VECTORS)
            sum[0][v] = load(beside[i] + v * WIDTH);
        if (t->end) {
            for (int j = 0; j < t->columns && end.all; j++)
                all[j] = t->all[i][t->first + j];
            end_sums(1, VECTORS, sum, &end, &one, 0);
        }
        for (int v = 0; v < VECTORS; v++)
            store_part(t->c[i] + t->first + v * WIDTH, sum[0][v], t->columns - v * WIDTH);
    }
}

static void tile(const tn_gemm_tile *t) {
    if (t->panels > 1)
        beside_tile(t);
    else if (t->columns == COLUMNS)
        (t->place ? placed_tile : whole_tile)(t);
    else if (VECTORS == 2 && t->columns == WIDTH && t->rows <= ROWS && (!t->place || t->rows == ROWS))
        (t->place ? placed_tile : narrow_tile)(t);
    else
        part_tile(t);
}

/* --- few columns ------------------------------------------------------------------------------------------------------------------------ */

/* Sums of `columns` columns of `vectors` vectors of outputs. */
INLINE void lines_block(const int columns, const int vectors, int64_t count, const int32_t *place, const float *x,
                        const float *b, float *to, int64_t pitch) {
    vec sum[columns][vectors];
    EACH (c, columns)
        EACH (v, vectors)
            sum[c][v] = (vec){0};
    for (int64_t k = 0; k < count; k++, b += COLUMNS) {
        const float *from = x + place[k];
        vec a[vectors];
        EACH (v, vectors)
            a[v] = load(from + v * WIDTH);
        EACH (c, columns) {
            vec w = splat(b[c]);
            EACH (v, vectors)
                sum[c][v] = madd(a[v], w, sum[c][v]);
        }
    }
    EACH (c, columns)
        EACH (v, vectors)
            store(to + c * pitch + v * WIDTH, sum[c][v]);
}

/* Vectors beside each other for so many columns: sums fill the registers, and none waits for the one before. */
#if WIDTH == 16
#define LINES_OF(f) f(1, 4) f(2, 4) f(3, 4) f(4, 4) f(5, 2) f(6, 2) f(7, 2) f(8, 2)
#else
#define LINES_OF(f) f(1, 8) f(2, 4) f(3, 4) f(4, 2)
#endif

static void lines(int columns, int64_t n, int64_t count, const int32_t *place, const float *x, const float *b,
                  float *to, int64_t pitch) {
    enum { MOST = WIDTH == 16 ? 8 : 4 };
    for (int part; columns > 0; columns -= part, b += part, to += part * pitch) {
        int parts = (columns + MOST - 1) / MOST;
        part = (columns + parts - 1) / parts;
        switch (part) {
#define LINES_CASE(c, v)                                              \
    case c:                                                           \
        for (int64_t i = 0; i < n; i += v * WIDTH)                    \
            lines_block(c, v, count, place, x + i, b, to + i, pitch); \
        break;
            LINES_OF(LINES_CASE)
        default: break;
        }
    }
}

/* --- what ends a contraction ---------------------------------------------------------------------------------------------------------- */

/* The other operand of a step. */
INLINE void finish_operand(const int rows, const bool part, const bool across, const tn_finish_step *step, int64_t n,
                           int64_t first, const float *const *all, vec (*kept)[VECTORS], vec (*z)[VECTORS]) {
    const float *at = (const float *)step->at + first;
    switch ((tn_finish_form)step->form) {
    case TN_FINISH_ONE:
        EACH (i, rows)
            EACH (v, VECTORS)
                z[i][v] = splat(step->one);
        return;
    case TN_FINISH_COLUMNS:
        EACH (v, VECTORS) {
            vec x = part ? load_part(at + v * WIDTH, n - v * WIDTH) : load(at + v * WIDTH);
            EACH (i, rows)
                z[i][v] = across && i ? load(at + i * COLUMNS + v * WIDTH) : x;
        }
        return;
    case TN_FINISH_ALL:
        EACH (i, rows)
            EACH (v, VECTORS)
                z[i][v] = part ? load_part(all[i] + v * WIDTH, n - v * WIDTH) : load(all[i] + v * WIDTH);
        return;
    case TN_FINISH_KEPT:
    default:
        EACH (i, rows)
            EACH (v, VECTORS)
                z[i][v] = kept[i][v];
        return;
    }
}

static __attribute__((noinline)) void finish_call(const tn_finish_step *step, int64_t n, float *x) {
    step->call(n, x, x, x, x);
}

/* `rows` rows of COLUMNS columns, or of the first n; across: one row's, each of the columns that follow. */
INLINE void finish_block(const int rows, const bool part, const bool across, const tn_finish *f, int64_t n,
                         int64_t first, float *const *c, const float *const *all) {
    vec y[4][VECTORS], z[4][VECTORS], kept[4][VECTORS] = {0};
    EACH (i, rows)
        EACH (v, VECTORS)
            y[i][v] = part ? load_part(c[i] + v * WIDTH, n - v * WIDTH) : load(c[i] + v * WIDTH);
    for (const tn_finish_step *step = f->step, *end = step + f->steps; step < end; step++) {
        if (step->keep)
            EACH (i, rows)
                EACH (v, VECTORS)
                    kept[i][v] = y[i][v];
        if (step->op == TN_FINISH_CALL) {
            float x[4 * COLUMNS];
            EACH (i, rows)
                EACH (v, VECTORS)
                    store(x + i * COLUMNS + v * WIDTH, y[i][v]);
            finish_call(step, rows * COLUMNS, x);
            EACH (i, rows)
                EACH (v, VECTORS)
                    y[i][v] = load(x + i * COLUMNS + v * WIDTH);
            continue;
        }
        finish_operand(rows, part, across, step, n, first, all, kept, z);
#define FINISH_BY(expression)     \
    EACH (i, rows)                \
        EACH (v, VECTORS)         \
            y[i][v] = expression; \
    break
        switch ((tn_finish_op)step->op) {
        case TN_FINISH_ADD: FINISH_BY(y[i][v] + z[i][v]);
        case TN_FINISH_MUL: FINISH_BY(y[i][v] * z[i][v]);
        case TN_FINISH_SUB: FINISH_BY(y[i][v] - z[i][v]);
        case TN_FINISH_FROM: FINISH_BY(z[i][v] - y[i][v]);
        case TN_FINISH_DIV: FINISH_BY(y[i][v] / z[i][v]);
        case TN_FINISH_INTO: FINISH_BY(z[i][v] / y[i][v]);
        case TN_FINISH_MAX: {
            /* Of two zeros the bound counts: added, 0 makes 0 of -0, and -0 changes nothing. */
            vec zero = splat(step->one == 0 ? step->one : -0.0f);
            FINISH_BY(at_least(y[i][v], z[i][v]) + zero);
        }
        case TN_FINISH_MIN: FINISH_BY(at_most(y[i][v], z[i][v]));
        case TN_FINISH_CALL: break;
        }
    }
    EACH (i, rows)
        for (int v = 0; v < VECTORS; v++)
            if (part)
                store_part(c[i] + v * WIDTH, y[i][v], n - v * WIDTH);
            else
                store(c[i] + v * WIDTH, y[i][v]);
}

static void finish_rows(const tn_finish *f, int rows, int64_t n, int64_t first, float *const *c,
                        const float *const *all) {
    if (n < COLUMNS)
        for (int i = 0; i < rows; i++)
            finish_block(1, true, false, f, n, first, c + i, all + i);
    else if (rows == 4)
        finish_block(4, false, false, f, n, first, c, all);
    else if (rows == 2)
        finish_block(2, false, false, f, n, first, c, all);
    else
        finish_block(1, false, false, f, n, first, c, all);
}

/* As many columns of fewer than four rows as fill four rows; how many. A bound is one element, never one of each column. */
static int64_t finish_across(const tn_finish *f, int rows, int64_t columns, int64_t first, float *const *c,
                             const void *const *all) {
    int64_t whole = columns - columns % (4 * COLUMNS);
    for (int i = 0; i < rows; i++)
        for (int64_t j = 0; j < whole; j += 4 * COLUMNS) {
            float *to[4];
            const float *also[4];
            for (int k = 0; k < 4; k++) {
                to[k] = c[i] + j + k * COLUMNS;
                also[k] = all ? (const float *)all[i] + j + k * COLUMNS : NULL;
            }
            finish_block(4, false, true, f, COLUMNS, first + j, to, also);
        }
    return whole;
}

/* Few rows to which rows are added: a step of a recurrence, whose products with its input were formed before. */
static void finish_sum(int rows, int64_t columns, float *const *c, const void *const *all) {
    for (int i = 0; i < rows; i++) {
        const float *other = all[i];
        int64_t j = 0;
        for (; j + WIDTH <= columns; j += WIDTH)
            store(c[i] + j, load(c[i] + j) + load(other + j));
        if (j < columns)
            store_part(c[i] + j, load_part(c[i] + j, columns - j) + load_part(other + j, columns - j), columns - j);
    }
}

static void finish(const tn_finish *f, int rows, int64_t columns, int64_t first, float *const *c,
                   const void *const *all) {
    if (rows < 4 && f->steps == 1 && f->step[0].form == TN_FINISH_ALL && f->step[0].op == TN_FINISH_ADD) {
        finish_sum(rows, columns, c, all);
        return;
    }
    for (int64_t j = rows < 4 ? finish_across(f, rows, columns, first, c, all) : 0; j < columns; j += COLUMNS)
        for (int i = 0, step; i < rows; i += step) {
            float *to[4];
            const float *also[4];
            step = rows - i < 2 ? 1 : rows - i < 4 ? 2 : 4;
            for (int k = 0; k < step; k++) {
                to[k] = c[i + k] + j;
                also[k] = all ? (const float *)all[i + k] + j : NULL;
            }
            finish_rows(f, step, columns - j, first + j, to, also);
        }
}

INLINE four read_four(const char *from) {
    return *(const loose_four *)(const void *)from;
}
INLINE float read_one(const char *from) {
    return *(const float *)(const void *)from;
}
static void interleave(int rows, int64_t n, const void *const *from, float *to) {
    interleave_by(read_four, read_one, sizeof(float), rows, n, from, to);
}

/* Twelve independent sums, no two alike: a compiler would keep one of them. */
#define SUMS 12
static float peak(int64_t rounds) {
    vec sum[SUMS], a = splat(0.999f), b = splat(1e-3f);
    EACH (i, SUMS)
        sum[i] = splat((float)i);
    for (int64_t r = 0; r < rounds; r++)
        EACH (i, SUMS)
            sum[i] = madd(sum[i], a, b);
    float total = 0;
    EACH (i, SUMS)
        total += sum[i][0] + sum[i][WIDTH - 1];
    return total;
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
const tn_gemm_level PASTE(tn_gemm_, TN_ISA) = {.rows = ROWS,
                                               .columns = COLUMNS,
                                               .beside = MOST_BESIDE,
                                               .tile = tile,
                                               .interleave = interleave,
                                               .depthwise = &PASTE(tn_depthwise_, TN_ISA),
                                               .finish = finish,
                                               .half = &PASTE(tn_half_, TN_ISA),
                                               .lines = lines,
                                               .peak = peak,
                                               .peak_operations = 2 * SUMS * WIDTH};

#endif
