/* Bringing factors to the form that register tiles read. */
#include <string.h>

#include "kernels/contract_f32.h"
#include "kernels/move.h"

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
        if (step == 1 && have == 16)
            for (int64_t i = k; i < end; i++)
                memcpy(to + i * width, from + i * stride, 16 * sizeof *to);
        else if (step == 1)
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

/* The summed axes of columns as they follow each other in memory, innermost first: all elements of a column lie together then. */
typedef struct dense {
    int axes;
    int64_t extent[TN_MACHINE_AXES], row[TN_MACHINE_AXES]; /* row: of the panel, from an index to the next */
} dense;

static bool is_dense(const tn_gemm *g, dense *d) {
    const tn_resolved_access *b = &g->r->operand[1];
    int64_t row[TN_MACHINE_AXES], walked = 1;
    int left = 0;
    for (int i = g->last_sum, next = 1; i >= g->first_sum; i--) {
        row[i] = next;
        next *= (int)g->r->extent[i];
        left += g->r->extent[i] > 1;
    }
    for (d->axes = 0; d->axes < left; d->axes++) {
        int found = -1;
        for (int i = g->first_sum; i <= g->last_sum; i++)
            if (g->r->extent[i] > 1 && b->stride[i] == walked)
                found = i;
        if (found < 0)
            return false;
        walked *= d->extent[d->axes] = g->r->extent[found];
        d->row[d->axes] = row[found];
    }
    return true;
}

/* A whole panel of f32, `step` elements from column to column: a block of elements is turned, then its rows go where they belong. */
static void pack_dense(const tn_gemm *g, const dense *d, const float *from, int64_t step, float *to) {
    enum { ELEMENTS = 64 };
    float block[ELEMENTS * TN_GEMM_MAX_COLUMNS];
    int64_t at[TN_MACHINE_AXES] = {0}, row = 0;
    int width = g->level->columns;
    tn_move_transpose_fn *turn = tn_move_of(g->r->kernel->program->level)->transpose[sizeof(float)];
    for (int64_t k = 0, n; k < g->k; k += n) {
        n = g->k - k < ELEMENTS ? g->k - k : ELEMENTS;
        if (d->axes < 2) {
            turn(width, n, from + k, step, to + k * width, width);
            continue;
        }
        turn(width, n, from + k, step, block, width);
        for (int64_t i = 0; i < n; i++) {
            memcpy(to + row * width, block + i * width, (size_t)width * sizeof *to);
            row += d->row[0];
            at[0]++;
            for (int j = 0; j + 1 < d->axes && at[j] == d->extent[j]; j++) {
                row += d->row[j + 1] - at[j] * d->row[j];
                at[j] = 0;
                at[j + 1]++;
            }
        }
    }
}

void tn_gemm_pack_panel(const tn_gemm *g, const char *b, int64_t first, float *to) {
    const tn_resolved_access *a = &g->r->operand[1];
    int width = g->level->columns;
    int64_t step = g->column >= 0 ? a->stride[g->column] : 0, have = g->n - first < width ? g->n - first : width;
    int64_t at[TN_MACHINE_AXES] = {0}, length = g->r->extent[g->last_sum];
    dense d;
    if (!g->k)
        return;
    if (!g->load[1] && have == width && step != 1 && is_dense(g, &d)) {
        pack_dense(g, &d, (const float *)(const void *)b + first * step, step, to);
        return;
    }
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

int64_t tn_gemm_step_of_columns(const tn_gemm *g) {
    const tn_resolved_access *b = &g->r->operand[1];
    int64_t step = 0, walked = 0;
    if (g->load[1] || g->column < 0 || b->stride[g->column] != 1)
        return 0;
    for (int i = g->last_sum; i >= g->first_sum; i--) {
        if (g->r->extent[i] == 1)
            continue;
        if (step && b->stride[i] != walked)
            return 0;
        step = step ? step : b->stride[i];
        walked = b->stride[i] * g->r->extent[i];
    }
    return step;
}

void tn_gemm_fetch_columns(const tn_gemm *g, const char *columns, int64_t first) {
    const tn_resolved_access *b = &g->r->operand[1];
    int64_t step = g->column >= 0 ? b->stride[g->column] : 0, bytes = g->k * b->element;
    if (step <= 1 || b->stride[g->last_sum] != 1 || bytes > 8 * TN_GEMM_LINE)
        return;
    for (int64_t j = first; j < g->n && j < first + g->level->columns; j++)
        for (int64_t i = 0; i < bytes; i += TN_GEMM_LINE)
            __builtin_prefetch(columns + j * step * b->element + i);
}

/* --- rows -------------------------------------------------------------------------------------------------------------------------------- */

void tn_gemm_row_at(const tn_gemm *g, const int64_t *at, tn_gemm_row *row) {
    const tn_resolved_access *a = &g->r->operand[0];
    row->a = a->base + tn_machine_offset(a, g->r->outer, at) * a->element;
    for (int i = 0; i < a->guards; i++) {
        row->guard[i] = a->guard[i].offset;
        for (int j = 0; j < g->r->outer; j++)
            row->guard[i] += a->guard[i].coef[j] * at[j];
    }
}

static bool inside(const tn_resolved_access *a, const tn_gemm_row *row, const int64_t *guard) {
    for (int i = 0; i < a->guards; i++) {
        int64_t v = row->guard[i] + guard[i];
        if (v < 0 || v >= a->guard[i].extent)
            return false;
    }
    return true;
}

/* Steps through the taps: offset and guards' shares of each. */
static void tap_at(const tn_gemm *g, const int64_t *at, int last, int64_t *offset, int64_t *guard) {
    const tn_resolved_access *a = &g->r->operand[0];
    *offset = 0;
    memset(guard, 0, 4 * sizeof *guard);
    for (int i = g->first_sum; i < last; i++) {
        *offset += a->stride[i] * at[i];
        for (int j = 0; j < a->guards; j++)
            guard[j] += a->guard[j].coef[i] * at[i];
    }
}

static bool next_tap(const tn_gemm *g, int64_t *at, int last) {
    for (int i = last - 1; i >= g->first_sum; i--) {
        if (++at[i] < g->r->extent[i])
            return true;
        at[i] = 0;
    }
    return false;
}

/* The elements [*low, *high) of a run of n, `coef` apart in each guard's value, that lie inside. */
static void inside_run(const tn_resolved_access *a, const tn_gemm_row *row, const int64_t *guard, const int64_t *coef,
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

void tn_gemm_point_rows(const tn_gemm *g, const tn_gemm_row *row, int64_t rows, int64_t first, const float *zeros,
                        const float **table) {
    const tn_resolved_access *a = &g->r->operand[0];
    int64_t at[TN_MACHINE_AXES] = {0}, offset, guard[4], coef[4] = {0}, parts = g->segments / g->taps;
    int last = g->n_rows ? g->rows[g->n_rows - 1] : -1;
    int64_t extent = last < 0 ? 1 : g->r->extent[last], step = last < 0 ? 0 : a->stride[last];
    bool grow = true; /* guards, along that axis */
    for (int j = 0; j < a->guards && last >= 0; j++) {
        coef[j] = a->guard[j].coef[last];
        grow &= coef[j] >= 0;
    }
    do {
        tap_at(g, at, g->run_axis, &offset, guard);
        for (int64_t i = 0, n; i < rows; i += n) { /* rows that follow each other along it */
            int64_t left = extent - (first + i) % extent, low, high;
            n = !grow ? 1 : rows - i < left ? rows - i : left;
            if (n == 1) {
                low = 0;
                high = inside(a, &row[i], guard);
            } else
                inside_run(a, &row[i], guard, coef, n, &low, &high);
            const float *from = (const float *)(const void *)row[i].a + offset;
            for (int64_t p = 0; p < parts; p++, from += g->segment * g->row_step) {
                const float **to = table + p * rows + i;
                for (int64_t k = 0; k < low; k++)
                    to[k] = zeros;
                for (int64_t k = low; k < high; k++)
                    to[k] = from + k * step;
                for (int64_t k = high; k < n; k++)
                    to[k] = zeros;
            }
        }
        table += parts * rows;
    } while (next_tap(g, at, g->run_axis));
}

/* Where the elements of a row lie from its first one, and their shares of the guards' values. */
enum { FEW = 512 };
typedef struct layout {
    int64_t offset[FEW], guard[FEW][4], least[4], most[4];
} layout;

/* Their number. */
static int64_t lay_out(const tn_gemm *g, layout *l) {
    const tn_resolved_access *a = &g->r->operand[0];
    int64_t at[TN_MACHINE_AXES] = {0}, k = 0;
    do {
        tap_at(g, at, g->last_sum + 1, &l->offset[k], l->guard[k]);
        for (int j = 0; j < a->guards; j++) {
            int64_t share = l->guard[k][j];
            l->least[j] = k == 0 || share < l->least[j] ? share : l->least[j];
            l->most[j] = k == 0 || share > l->most[j] ? share : l->most[j];
        }
        k++;
    } while (next_tap(g, at, g->last_sum + 1));
    return k;
}

/* Rows of few elements that lie here and there, as at the first layer of an image: one by one. */
static void pack_scattered(const tn_gemm *g, const tn_gemm_row *row, int64_t rows, float *to) {
    const tn_resolved_access *a = &g->r->operand[0];
    layout l;
    int64_t count = lay_out(g, &l);
    for (int64_t i = 0; i < rows; i++) {
        float *line = to + i * g->pitch;
        const void *at_row = row[i].a;
        const float *from = at_row;
        bool whole = true;
        for (int j = 0; j < a->guards; j++)
            whole &= row[i].guard[j] + l.least[j] >= 0 && row[i].guard[j] + l.most[j] < a->guard[j].extent;
        if (whole)
            for (int64_t k = 0; k < count; k++)
                line[k] = from[l.offset[k]];
        else
            for (int64_t k = 0; k < count; k++)
                line[k] = inside(a, &row[i], l.guard[k]) ? from[l.offset[k]] : 0;
    }
}

/* Runs along the last summed axis that is more than one element. */
void tn_gemm_pack_rows(const tn_gemm *g, const tn_gemm_row *row, int64_t rows, float *to, const float **table) {
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
    for (int64_t s = 0; s < g->segments; s++)
        for (int64_t i = 0; i < rows; i++)
            table[s * rows + i] = to + i * g->pitch + s * g->segment;
    if (length < 16 && g->k <= FEW && !g->load[0]) {
        pack_scattered(g, row, rows, to);
        return;
    }
    do {
        tap_at(g, at, last, &offset, guard);
        for (int64_t i = 0; i < rows; i++) {
            float *line = to + i * g->pitch + k;
            const void *at_row = row[i].a + offset * a->element;
            const float *from = at_row;
            inside_run(a, &row[i], guard, coef, length, &low, &high);
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

void tn_gemm_interleave_rows(const tn_gemm *g, const tn_gemm_row *row, int64_t rows, const int64_t *length, float *to,
                             const float **table) {
    tn_dtype dtype = g->r->operand[0].dtype;
    void (*interleave)(int, int64_t, const void *const *, float *) = dtype == TN_F16 ? g->level->half->interleave_f16
                                                                     : dtype == TN_BF16
                                                                         ? g->level->half->interleave_bf16
                                                                         : g->level->interleave;
    for (int64_t i = 0, n; i < rows; i += n) {
        n = tn_gemm_tile_rows(g->level, rows, i);
        const void *from[TN_GEMM_MAX_ROWS];
        for (int64_t j = 0; j < n; j++)
            from[j] = row[i + j].a;
        for (int64_t s = 0; s < g->segments; s++) {
            float *place = to + s * g->segment * rows + i * length[s];
            interleave((int)n, length[s], from, place);
            for (int64_t j = 0; j < n; j++) {
                table[s * rows + i + j] = place + j;
                from[j] = (const char *)from[j] + length[s] * g->r->operand[0].element;
            }
        }
    }
}
