/* Few columns: a vector holds one column of many outputs that follow each other along the last row axis, where a tile's would be mostly
   empty. What these read is laid out in lines, one for each summed element that does not slide with that axis: a window's taps along it
   read the same line, shifted. The chain of each output is the tile's, so the bits are. */
#include <string.h>

#include "kernels/contract_f32.h"
#include "kernels/isa/interleave.h"
#include "kernels/move.h"

#define OUTPUTS \
    64 /* beside each other, at least: what a block of few columns takes at most, past the last output, too */
#define MOST_OUTPUTS 256
#define LINE_BYTES (256 << 10) /* of all lines, where columns pass by them in L2, and else */
#define MOST_BYTES (384 << 10)
#define ROWS 1024 /* of a block, at most */
#define SLIDE 256 /* places that the window slides over, at most */
#define COLUMNS TN_GEMM_LINES_MOST

static int64_t greatest_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Whether guards tell the places of a line alike, whatever step and tap they are of. */
static bool guards_slide(const tn_resolved_access *a, int along, int slide, int64_t step, int64_t tap) {
    for (int i = 0; i < a->guards; i++) {
        const int64_t *coef = a->guard[i].coef;
        if (coef[along] < 0 || coef[along] % step || (slide >= 0 && coef[slide] != coef[along] / step * tap))
            return false;
    }
    return true;
}

/* Looks for the summed axis that slides along the last row axis by the smallest steps. */
static bool find_slide(const tn_gemm *g, tn_gemm_lines *l) {
    const tn_resolved *r = g->r;
    const tn_resolved_access *a = &r->operand[0];
    *l = (tn_gemm_lines){.along = g->rows[g->n_rows - 1], .slide = -1};
    int64_t whole = a->stride[l->along];
    for (int i = g->first_sum; i <= g->last_sum && whole > 0; i++) {
        if (r->extent[i] < 2 || a->stride[i] <= 0)
            continue;
        int64_t unit = greatest_divisor(whole, a->stride[i]), step = whole / unit, tap = a->stride[i] / unit;
        if (tap > SLIDE || tap * (r->extent[i] - 1) > SLIDE || (l->slide >= 0 && tap >= l->tap) ||
            !guards_slide(a, l->along, i, step, tap))
            continue;
        l->slide = i;
        l->unit = unit;
        l->step = step;
        l->tap = tap;
    }
    return l->slide >= 0 && l->step <= 8;
}

/* Looks for the summed axis along which the next row of outputs, one step along the last row axis but one, reads what this one reads, some
   taps further. */
static void find_tall(const tn_gemm *g, tn_gemm_lines *l) {
    const tn_resolved *r = g->r;
    const tn_resolved_access *a = &r->operand[0];
    l->tall = -1;
    int tall = g->first_sum, row = g->n_rows > 1 ? g->rows[g->n_rows - 2] : -1;
    while (tall <= g->last_sum && r->extent[tall] == 1)
        tall++;
    if (row < 0 || tall >= g->last_sum || tall == l->slide || a->stride[tall] <= 0 ||
        a->stride[row] % a->stride[tall] != 0)
        return;
    l->down = a->stride[row] / a->stride[tall];
    for (int i = 0; i < a->guards; i++)
        if (a->guard[i].coef[row] != l->down * a->guard[i].coef[tall])
            return;
    for (int i = tall + 1; i <= g->last_sum; i++) /* what is copied together lies within one of its taps */
        if (i != l->slide && r->extent[i] > 1)
            l->tall = tall;
    if (l->down < 1 || l->down >= r->extent[tall])
        l->tall = -1;
}

bool tn_gemm_lines_fit(const tn_gemm *g, tn_gemm_lines *l) {
    const tn_resolved *r = g->r;
    bool few = g->n <= COLUMNS && g->n != g->level->columns && g->n != g->level->narrow;
    if (!g->packed || (!few && ((g->direct && g->run >= 16) || !(g->in_place || g->turns))) || g->n < 1 || !g->n_rows ||
        g->k < 2 || r->operand[1].guards || g->level->lines == NULL || r->extent[g->rows[g->n_rows - 1]] < 16 ||
        !find_slide(g, l))
        return false;
    int64_t extent = r->extent[l->along];
    /* a line costs its copy, and each column of an output a multiply-add; a tile's columns cost as much however few they are */
    int64_t taps = r->extent[l->slide];
    l->few = few;
    l->count = g->k / taps;
    find_tall(g, l);
    const int64_t bytes = few ? MOST_BYTES : LINE_BYTES;
    l->outputs = (extent + 63) & ~(int64_t)63;
    if (l->outputs > MOST_OUTPUTS || l->count * (l->outputs * l->step + 64) * (int64_t)sizeof(float) > bytes)
        l->outputs = OUTPUTS;
    int64_t places = (l->outputs - 1) * l->step + (taps - 1) * l->tap + 1;
    if (!few && places > l->outputs * taps)
        return false; /* packed rows are less */
    if (few && 16 * places / l->outputs + g->n * taps > (g->run < 16 ? 20 : 9) * taps)
        return false;
    l->length = (places + l->step - 1) / l->step;
    l->length = ((l->length + 15) & ~(int64_t)15) + 16; /* not all lines begin at the same sets of the cache */
    l->pitch = l->length * l->step;
    return l->count * l->pitch * (int64_t)sizeof(float) <= bytes && g->k * l->pitch <= INT32_MAX;
}

void tn_gemm_lines_cut(tn_gemm *g) {
    const tn_gemm_lines *l = &g->lines;
    int64_t extent = g->r->extent[l->along], whole = g->m / extent;
    g->step = g->panels_per_span; /* lines are laid out once */
    if (l->tall < 0 || l->outputs < extent)
        return;
    int64_t most = g->in_place ? ROWS : TN_GEMM_SUM_BYTES / 4 / (g->step * g->level->columns),
            wanted = (g->pieces + g->batches - 1) / g->batches, even = (whole + wanted - 1) / wanted;
    most = (most > ROWS ? ROWS : most) / extent;
    most = most < 1 ? 1 : most < even ? most : even;
    g->blocks = (whole + most - 1) / most;
    g->block = (whole + g->blocks - 1) / g->blocks * extent;
    g->blocks = (g->m + g->block - 1) / g->block;
}

size_t tn_gemm_lines_bytes(const tn_gemm *g) {
    const tn_gemm_lines *l = &g->lines;
    return (size_t)(l->count * l->pitch + COLUMNS * l->outputs) * sizeof(float) +
           (((size_t)g->k * sizeof(int32_t) + 63) & ~(size_t)63);
}

/* The line of the summed indices at; lines of the tall axis' taps go round, the first of them is `turn`. */
static int64_t line_of(const tn_gemm *g, const int64_t *at, int64_t turn) {
    const tn_gemm_lines *l = &g->lines;
    int64_t line = 0;
    for (int i = g->first_sum; i <= g->last_sum; i++) {
        int64_t index = i == l->tall ? (at[i] + turn) % g->r->extent[i] : at[i];
        line = i == l->slide ? line : line * g->r->extent[i] + index;
    }
    return line;
}

/* Where in the lines each summed element of the first output lies. */
static void list_places(const tn_gemm *g, int32_t *place) {
    const tn_gemm_lines *l = &g->lines;
    const tn_resolved *r = g->r;
    int64_t at[TN_MACHINE_AXES] = {0};
    for (int64_t k = 0; k < g->k; k++) {
        int64_t tap = at[l->slide] * l->tap;
        place[k] = (int32_t)(line_of(g, at, 0) * l->pitch + tap % l->step * l->length + tap / l->step);
        for (int i = g->last_sum; i >= g->first_sum && ++at[i] == r->extent[i]; i--)
            at[i] = 0;
    }
}

/* The tall axis' lines, the outermost, go round by so many taps. */
static void turn_places(const tn_gemm *g, int64_t taps, int32_t *place) {
    const tn_gemm_lines *l = &g->lines;
    const int32_t all = (int32_t)(l->count * l->pitch),
                  step = (int32_t)(l->count / g->r->extent[l->tall] * taps * l->pitch);
    for (int64_t k = 0; k < g->k; k++) {
        int32_t p = place[k] + step;
        place[k] = p >= all ? p - all : p;
    }
}

/* The places [*low, *high) of `n` that lie inside, of the line that begins where guards are those of `row` and `share`. */
static void inside_places(const tn_gemm *g, const tn_gemm_row *row, const int64_t *share, int64_t n, int64_t *low,
                          int64_t *high) {
    const tn_resolved_access *a = &g->r->operand[0];
    *low = 0;
    *high = n;
    for (int i = 0; i < a->guards; i++) {
        int64_t v = row->guard[i] + share[i], left = a->guard[i].extent - v,
                c = a->guard[i].coef[g->lines.along] / g->lines.step;
        int64_t from = v >= 0 ? 0 : c > 0 ? (c - 1 - v) / c : n, to = left <= 0 ? 0 : c > 0 ? (left + c - 1) / c : n;
        *low = from > *low ? from : *low;
        *high = to < *high ? to : *high;
    }
    if (*low >= *high)
        *low = *high = 0;
}

/* How many of the places phase, phase + step, ... lie before `place`. */
static int64_t places_before(int64_t place, int64_t phase, int64_t step) {
    return place > phase ? (place - phase + step - 1) / step : 0;
}

/* n elements, every second one to each of two lines. */
static void part_in_two(int64_t n, const float *from, float *even, float *odd) {
    int64_t i = 0;
    for (; 2 * i + 8 <= n; i += 4) {
        four x = *(const loose_four *)(from + 2 * i), y = *(const loose_four *)(from + 2 * i + 4);
        *(loose_four *)(even + i) = PICK(x, y, 0, 2, 4, 6);
        *(loose_four *)(odd + i) = PICK(x, y, 1, 3, 5, 7);
    }
    for (; 2 * i < n; i++) {
        even[i] = from[2 * i];
        if (2 * i + 1 < n)
            odd[i] = from[2 * i + 1];
    }
}

static void fill(const tn_gemm *g, const void *from, int64_t low, int64_t high, int64_t n, float *to) {
    const tn_gemm_lines *l = &g->lines;
    if (l->step == 1) {
        memset(to, 0, (size_t)low * sizeof *to);
        if (g->load[0] && low < high)
            g->load[0](high - low, (const uint16_t *)from + low * l->unit, l->unit, to + low);
        else if (l->unit == 1)
            memcpy(to + low, (const float *)from + low, (size_t)(high - low) * sizeof *to);
        else
            for (int64_t i = low; i < high; i++)
                to[i] = ((const float *)from)[i * l->unit];
        memset(to + high, 0, (size_t)(n - high) * sizeof *to);
        return;
    }
    if (l->step == 2 && l->unit == 1 && !g->load[0] && low < high) {
        int64_t even = (low + 1) / 2;
        memset(to, 0, (size_t)even * sizeof *to);
        memset(to + l->length, 0, (size_t)(low / 2) * sizeof *to);
        if (low & 1)
            to[l->length + low / 2] = ((const float *)from)[low];
        part_in_two(high - 2 * even, (const float *)from + 2 * even, to + even, to + l->length + even);
        for (int64_t i = high; i < n; i++)
            to[i % 2 * l->length + i / 2] = 0;
        return;
    }
    for (int64_t phase = 0; phase < l->step; phase++, to += l->length) {
        int64_t begin = places_before(low, phase, l->step), end = places_before(high, phase, l->step),
                all = places_before(n, phase, l->step), next = l->step * l->unit;
        int64_t first = (phase + begin * l->step) * l->unit;
        memset(to, 0, (size_t)begin * sizeof *to);
        if (g->load[0] && begin < end)
            g->load[0](end - begin, (const uint16_t *)from + first, next, to + begin);
        else
            for (int64_t j = begin; j < end; j++)
                to[j] = ((const float *)from)[first + (j - begin) * next];
        memset(to + end, 0, (size_t)(all - end) * sizeof *to);
    }
}

/* Rows that follow each other by `unit` elements, turned, as turn does; 16-bit ones are widened first. */
static void turn_rows(const tn_gemm *g, tn_move_transpose_fn *turn, int64_t rows, int64_t columns, const char *from,
                      float *to) {
    const tn_gemm_lines *l = &g->lines;
    if (!g->load[0]) {
        turn(rows, columns, from, l->unit, to, l->pitch);
        return;
    }
    enum { SOME = 64 };
    float wide[SOME * SOME];
    for (int64_t j = 0, m; j < columns; j += m)
        for (int64_t i = 0, n; m = columns - j < SOME ? columns - j : SOME, i < rows; i += n) {
            n = rows - i < SOME ? rows - i : SOME;
            for (int64_t k = 0; k < n; k++)
                g->load[0](m, (const uint16_t *)(const void *)from + (i + k) * l->unit + j, 1, wide + k * SOME);
            turn(n, m, wide, SOME, to + j * l->pitch + i, l->pitch);
        }
}

/* The lines of the outputs that begin at `row`, `n` places of each; of the tall axis those from tap `from_tap` on. */
static void fill_lines(const tn_gemm *g, const tn_gemm_row *row, int64_t n, int64_t from_tap, int64_t turned,
                       float *lines) {
    const tn_gemm_lines *l = &g->lines;
    const tn_resolved *r = g->r;
    const tn_resolved_access *a = &r->operand[0];
    int64_t at[TN_MACHINE_AXES] = {0}, low, high;
    /* lines beside each other in memory are turned together */
    int last = g->last_sum;
    while (last > g->first_sum && (r->extent[last] == 1 || last == l->slide))
        last--;
    int64_t together = 1;
    if (l->step == 1 && last != l->slide && a->stride[last] == 1) {
        together = r->extent[last];
        for (int i = 0; i < a->guards; i++)
            together = a->guard[i].coef[last] ? 1 : together;
    }
    tn_move_transpose_fn *turn = tn_move_of(r->kernel->program->level)->transpose[sizeof(float)];
    int64_t count = l->count;
    if (l->tall >= 0) {
        at[l->tall] = from_tap;
        count -= count / r->extent[l->tall] * from_tap;
    }
    for (int64_t line = 0; line < count; line += together) {
        int64_t offset = 0, share[4] = {0};
        for (int i = g->first_sum; i <= g->last_sum; i++) {
            offset += a->stride[i] * at[i];
            for (int j = 0; j < a->guards; j++)
                share[j] += a->guard[j].coef[i] * at[i];
        }
        float *to = lines + line_of(g, at, turned) * l->pitch;
        const char *from = row->a + offset * a->element;
        inside_places(g, row, share, n, &low, &high);
        if (together > 1) {
            for (int64_t i = 0; i < together; i++) {
                memset(to + i * l->pitch, 0, (size_t)low * sizeof *to);
                memset(to + i * l->pitch + high, 0, (size_t)(n - high) * sizeof *to);
            }
            turn_rows(g, turn, high - low, together, from + low * l->unit * a->element, to + low);
            at[last] = together - 1;
        } else
            fill(g, from, low, high, n, to);
        for (int i = g->last_sum; i >= g->first_sum; i--) {
            if (i == l->slide)
                continue;
            if (++at[i] < r->extent[i])
                break;
            at[i] = 0;
        }
    }
}

/* One panel of `n` outputs from lines, in tiles. */
static void sum_tiles(const tn_gemm *g, int64_t n, int64_t panel, const int32_t *place, const float *lines,
                      const float *columns, float *const *out, const char *const *all) {
    int64_t first = panel * g->level->columns, left = g->n - first;
    tn_gemm_tile t = {.columns = (int)(left < g->level->columns ? left : g->level->columns),
                      .tiles = 1,
                      .runs = 1,
                      .length = &g->k,
                      .place = place,
                      .b = columns + panel * g->k * g->level->columns,
                      .first = first,
                      .end = g->ends ? &g->end : NULL};
    /* the last rows once more among others: tiles have two heights, and a row's sums are the same in each */
    int most = t.columns == g->level->narrow ? g->level->narrow_rows : g->level->rows;
    t.rows = n < most ? 1 : most;
    for (int64_t i = 0; i < n; i += t.rows) {
        int64_t at = i + t.rows <= n ? i : n - t.rows;
        const float *from = lines + at;
        t.a = &from;
        t.c = out + at;
        t.all = all ? (const float *const *)(const void *)(all + at) : NULL;
        g->level->tile(&t);
    }
}

void tn_gemm_lines_sum(const tn_gemm *g, const tn_gemm_row *row, int64_t rows, int64_t first, const float *columns,
                       int64_t panel, int64_t end, float *const *out, const char *const *all, void *scratch) {
    const tn_gemm_lines *l = &g->lines;
    int64_t extent = g->r->extent[l->along], taps = g->r->extent[l->slide];
    int32_t *place = scratch;
    float *lines = (float *)(void *)((char *)scratch + (((size_t)g->k * sizeof *place + 63) & ~(size_t)63));
    float *sums = lines + l->count * l->pitch;
    memset(lines, 0, (size_t)(l->count * l->pitch) * sizeof *lines); /* beyond its places a line is read, for nothing */
    int64_t turned = 0, before = -1, down = l->tall >= 0 ? l->down : 0;
    list_places(g, place);
    for (int64_t i = 0, n; i < rows; i += n) {
        int64_t left = extent - (first + i) % extent, line = (first + i) / extent, from_tap = 0;
        n = rows - i < left ? rows - i : left;
        n = n < l->outputs ? n : l->outputs;
        if (down && n == extent) { /* a whole row of outputs: the next one finds most of its lines here */
            if (before == line - 1 && line % g->r->extent[g->rows[g->n_rows - 2]]) {
                from_tap = g->r->extent[l->tall] - down;
                turned = (turned + down) % g->r->extent[l->tall];
                turn_places(g, down, place);
            }
            before = line;
        }
        fill_lines(g, &row[i], (n - 1) * l->step + (taps - 1) * l->tap + 1, from_tap, turned, lines);
        if (!l->few) {
            for (int64_t p = panel; p < end; p++)
                sum_tiles(g, n, p, place, lines, columns, out + i, all ? all + i : NULL);
            continue;
        }
        g->level->lines((int)g->n, n, g->k, place, lines, columns, sums, l->outputs);
        for (int64_t j = 0; j < n; j++)
            for (int64_t c = 0; c < g->n; c++)
                out[i + j][c] = sums[c * l->outputs + j];
    }
}
