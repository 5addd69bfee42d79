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

INLINE void fetch_lines(uintptr_t *ahead, int64_t ahead_step, uintptr_t apart) {
    EACH (i, LINES)
        __builtin_prefetch((const void *)(*ahead + (uintptr_t)i * apart), 0, 2);
    *ahead += (uintptr_t)ahead_step;
}

/* Adds summed elements [k, end) of a run to sums; from[i]: row i of the run, b: columns of element k. Fetches the line at the place ahead of
   each element, and those that follow it `apart` bytes apart, LINES in all: none but the first twice, where that is 0. */
INLINE void add_run(const int rows, const int vectors, vec (*sum)[VECTORS], const float *const *from, int64_t k,
                    int64_t end, int64_t step, const float *b, uintptr_t ahead, int64_t ahead_step, uintptr_t apart) {
    const float *a[ROWS];
    EACH (i, rows)
        a[i] = from[i] + k * step;
    int64_t at = 0;
#if ROWS <= 6 /* else an element's products are enough to hide what the loop costs */
    for (const float *last = b + (end - k - 1) * COLUMNS; b < last; b += 2 * COLUMNS, at += 2 * step) {
        fetch_lines(&ahead, ahead_step, apart);
        fetch_lines(&ahead, ahead_step, apart);
        add_element(rows, vectors, sum, a, at, b);
        add_element(rows, vectors, sum, a, at + step, b + COLUMNS);
    }
    if ((end - k) & 1)
        add_element(rows, vectors, sum, a, at, b);
#else
    for (const float *last = b + (end - k) * COLUMNS; b < last; b += COLUMNS, at += step) {
        fetch_lines(&ahead, ahead_step, apart);
        add_element(rows, vectors, sum, a, at, b);
    }
#endif
}

#if defined(__F16C__)
#define NARROWS 1
INLINE void store_half(uint16_t *to, vec v) {
#if defined(__AVX512F__)
    _mm256_storeu_si256((__m256i *)(void *)to, _mm512_maskz_cvtps_ph(0xffff, (__m512)v, _MM_FROUND_TO_NEAREST_INT));
#else
    _mm_storeu_si128((__m128i *)(void *)to, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
#endif
}
#else
#define NARROWS 0
#endif

/* Tile `tile` of several: its rows' pointers follow those of the tiles before. */
INLINE void store_tile(const int rows, const int vectors, vec (*sum)[VECTORS], const tn_gemm_tile *t, int64_t tile) {
    float *const *c = t->c + tile * rows;
    const float *const *all = t->all ? t->all + tile * rows : NULL;
    const int64_t first = t->first;
    const bool late = t->end && t->end->late;
    if (t->end && !late)
        end_sums(rows, vectors, sum, t->end, all, first);
#if NARROWS
    if (vectors == VECTORS && t->half) {
        uint16_t *const *half = t->half + tile * rows;
        EACH (i, rows)
            EACH (v, vectors)
                store_half(half[i] + first + v * WIDTH, sum[i][v]);
        return;
    }
#endif
    EACH (i, rows)
        EACH (v, vectors)
            store(c[i] + first + v * WIDTH, sum[i][v]);
    if (late)
        end_rows(t->end, rows, vectors, c, all, first);
}

INLINE void tile_of(const int rows, const int vectors, const tn_gemm_tile *t) {
    const uintptr_t apart = t->ahead_step > TN_GEMM_LINE / 2 ? TN_GEMM_LINE : 0;
    uintptr_t ahead = t->ahead ? t->ahead : (uintptr_t)t->b;
    for (int64_t tile = 0; tile < t->tiles; tile++) {
        vec sum[ROWS][VECTORS];
        EACH (i, rows)
            EACH (v, vectors)
                sum[i][v] = (vec){0};
        if (t->add)
            EACH (i, rows)
                EACH (v, vectors)
                    sum[i][v] = load(t->c[tile * rows + i] + t->first + v * WIDTH);
        const float *b = t->b, *const *a = t->a + tile * rows;
        for (int64_t r = 0, n; r < t->runs;
             r++, a += t->stride, b += n * COLUMNS, ahead += (uintptr_t)(n * t->ahead_step)) {
            n = t->length[r];
            add_run(rows, vectors, sum, a, 0, n, t->step, b, ahead, t->ahead_step, apart);
        }
        store_tile(rows, vectors, sum, t, tile);
    }
}

/* Some rows of a block of a run; their sums wait in memory. */
INLINE void block_of(const int rows, float (*sums)[COLUMNS], const float *const *a, int64_t k, int64_t end,
                     int64_t step, const float *b, uintptr_t ahead, int64_t ahead_step) {
    vec sum[ROWS][VECTORS];
    EACH (i, rows)
        EACH (v, VECTORS)
            sum[i][v] = load(sums[i] + v * WIDTH);
    add_run(rows, VECTORS, sum, a, k, end, step, b, ahead, ahead_step, 0);
    EACH (i, rows)
        EACH (v, VECTORS)
            store(sums[i] + v * WIDTH, sum[i][v]);
}

/* Heights of tiles, of those of one vector, and of the parts of tall ones: of several tiles none is less than half of the highest. */
#if ROWS > 6
#define EACH_NARROW(f) f(1) f(6) f(7) f(8) f(9) f(10) f(11) f(12)
#define EACH_HEIGHT(f) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12)
#define EACH_PART(f) f(6) f(7) f(8)
#elif ROWS > 4
#define EACH_NARROW(f) f(1) f(3) f(4) f(5) f(6)
#define EACH_HEIGHT(f) f(1) f(2) f(3) f(4) f(5) f(6)
#define EACH_PART(f) f(3) f(4) f(5) f(6)
#else
#define EACH_HEIGHT(f) f(1) f(2) f(3) f(4)
#define EACH_PART(f) f(2) f(3) f(4)
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
#define NARROW_ROWS 12 /* of tiles of one vector: as many sums as registers and latencies ask for */
INLINE void placed_of(const int rows, const int vectors, const tn_gemm_tile *t) {
    vec sum[NARROW_ROWS][VECTORS];
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
    store_tile(rows, vectors, sum, t, 0);
}

static void placed_tile(const tn_gemm_tile *t) {
    bool narrow = VECTORS == 2 && t->columns == WIDTH;
    if (!WORTH_CODE)
        for (int i = 0; i < t->rows; i++) {
            const float *a = t->a[0] + i;
            tn_gemm_tile one = *t;
            one.a = &a;
            one.c += i;
            one.all = t->all ? t->all + i : NULL;
            placed_of(1, VECTORS, &one);
        }
    else if (t->rows == 1)
        narrow ? placed_of(1, 1, t) : placed_of(1, VECTORS, t);
    else
        narrow ? placed_of(NARROW_ROWS, 1, t) : placed_of(ROWS, VECTORS, t);
}

static void whole_tile(const tn_gemm_tile *t) {
#define TILE_OF(n) \
    case n: tile_of(n, VECTORS, t); break;
    switch (t->rows) {
        EACH_HEIGHT(TILE_OF)
    default: tall_tile(t); break;
    }
}

/* Of a panel's first vector of columns. */
#if VECTORS == 2
static void narrow_tile(const tn_gemm_tile *t) {
#define NARROW_TILE_OF(n) \
    case n: tile_of(n, 1, t); break;
    switch (t->rows) {
        EACH_NARROW(NARROW_TILE_OF)
    default: whole_tile(t); break;
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
    const int64_t next = t->next ? t->next : COLUMNS;
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
                b[p] += next;
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

static const float *copied(const float *from, int64_t first, int n, float *to) {
    for (int j = 0; j < n && from; j++)
        to[j] = from[first + j];
    return from ? to : NULL;
}

/* What ends the sums of a part of a panel, which stand in c: what that reads is copied, for nothing may be read beyond it. */
static void end_part(const tn_gemm_tile *t, float (*beside)[COLUMNS], float *const *c) {
    float columns[3][COLUMNS] = {{0}}, also[TN_GEMM_MAX_ROWS][COLUMNS];
    const float *all[TN_GEMM_MAX_ROWS];
    tn_finish_end end = *t->end;
    end.sub = copied(end.sub, t->first, t->columns, columns[0]);
    end.mul = copied(end.mul, t->first, t->columns, columns[1]);
    end.add = copied(end.add, t->first, t->columns, columns[2]);
    for (int i = 0; i < t->rows; i++) {
        for (int j = t->columns; j < COLUMNS; j++)
            beside[i][j] = also[i][j] = 0;
        if (end.all)
            all[i] = copied(t->all[i], t->first, t->columns, also[i]);
    }
    end_rows(&end, t->rows, VECTORS, c, all, 0);
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
    if (t->end)
        end_part(t, beside, c);
    for (int i = 0; i < t->rows; i++)
        for (int v = 0; v < VECTORS; v++)
            store_part(t->c[i] + t->first + v * WIDTH, load(beside[i] + v * WIDTH), t->columns - v * WIDTH);
}

/* Tiles of a part of a panel, one after the other. */
static void part_tiles(const tn_gemm_tile *t) {
    tn_gemm_tile one = *t;
    one.tiles = 1;
    for (int64_t i = 0; i < t->tiles; i++) {
        one.a = t->a + i * t->rows;
        one.c = t->c + i * t->rows;
        one.all = t->all ? t->all + i * t->rows : NULL;
        part_tile(&one);
    }
}

static void tile(const tn_gemm_tile *t) {
    if (t->panels > 1)
        beside_tile(t);
    else if (t->columns == COLUMNS)
        (t->place ? placed_tile : whole_tile)(t);
    else if (VECTORS == 2 && t->columns == WIDTH &&
             (t->place || t->rows == 1 || (t->rows >= ROWS / 2 && t->rows <= ROWS)))
        (t->place ? placed_tile : narrow_tile)(t);
    else if (t->tiles == 1)
        part_tile(t);
    else
        part_tiles(t);
}

/* --- few columns ------------------------------------------------------------------------------------------------------------------------ */

/* Sums of `columns` columns of `vectors` vectors of outputs. */
INLINE void lines_block(const int columns, const int vectors, int64_t count, const int32_t *place, const float *x,
                        const float *b, float *to, int64_t pitch) {
    vec sum[8][8];
    EACH (c, columns)
        EACH (v, vectors)
            sum[c][v] = (vec){0};
    for (int64_t k = 0; k < count; k++, b += COLUMNS) {
        const float *from = x + place[k];
        vec a[8];
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
                                               .narrows = NARROWS,
                                               .narrow = VECTORS == 2 ? WIDTH : 0,
                                               .narrow_rows = NARROW_ROWS,
                                               .beside = MOST_BESIDE,
                                               .tile = tile,
                                               .interleave = interleave,
                                               .depthwise = &PASTE(tn_depthwise_, TN_ISA),
                                               .finish = finish_rows_of,
                                               .half = &PASTE(tn_half_, TN_ISA),
                                               .lines = lines,
                                               .peak = peak,
                                               .peak_operations = 2 * SUMS * WIDTH};

#endif
