/* What ends contractions (finish.h) at one instruction-set level: chains in a fixed form, and any others step by step. */
#include "kernels/gemm.h"

#include <stddef.h>

/* The same instructions as AVX-512: that level's table serves. */
#if !defined(__AVX512VNNI__)

#include "kernels/isa/ends.h"
#include "kernels/vector_math.h"

/* --- in a fixed form --------------------------------------------------------------------------------------------------------------------- */

/* The numbers of a form, as vectors: read once, for what is stored might be they. */
typedef struct numbers {
    vec low, high, zero, by, plus, over, after, more;
    bool divides, goes_on;
} numbers;

/* A row of a few vectors that lie at p; v: what is subtracted, the factor, what is added. */
INLINE void end_row(const numbers *u, const int form, const int vectors, float *p, const float *other,
                    const vec (*v)[VECTORS]) {
    EACH (j, vectors) {
        vec y = (load(p + j * WIDTH) - v[0][j]) * v[1][j] + v[2][j];
        if (other)
            y = y + load(other + j * WIDTH);
        if (form == TN_ENDS_BOUNDED)
            y = at_most(at_least(y, u->low) + u->zero, u->high);
        if (form == TN_ENDS_SWISH) {
            vec z = y * u->by + u->plus;
            y = y * at_most(at_least(z, u->low) + u->zero, u->high);
            if (u->divides)
                y = y / u->over;
            if (u->goes_on)
                y = y * u->after + u->more;
        }
        store(p + j * WIDTH, y);
    }
}

/* Vectors side by side, whose chains do not wait for each other. */
#define ABREAST 4

/* y * sigmoid(y): tn_vm_sigmoid_normal, step by step; false, and nothing is done, if one is beyond what that takes. */
INLINE bool silu(const int n, vec *y) {
    vec e[ABREAST], t[ABREAST], r[ABREAST];
    bits far = {0};
    EACH (j, n)
        far |= ((bits)y[j] & INT32_MAX) > (bits)splat(TN_VM_EXP_LIMIT);
    if (any_of(far))
        return false;
#if defined(TN_VM_FUSED)
    EACH (j, n)
        t[j] = madd(y[j], splat(-TN_VM_LOG2_E), splat(TN_VM_ROUND));
    EACH (j, n)
        r[j] = madd(t[j] - splat(TN_VM_ROUND), splat(-TN_VM_LN2_HIGH), -y[j]);
    EACH (j, n)
        r[j] = madd(t[j] - splat(TN_VM_ROUND), splat(-TN_VM_LN2_LOW), r[j]);
    EACH (j, n)
        e[j] = madd(splat(TN_VM_EXP_5), r[j], splat(TN_VM_EXP_4));
    EACH (j, n)
        e[j] = madd(e[j], r[j], splat(TN_VM_EXP_3));
    EACH (j, n)
        e[j] = madd(e[j], r[j], splat(TN_VM_EXP_2));
    EACH (j, n)
        e[j] = madd(e[j], r[j], splat(0.5f));
    EACH (j, n)
        e[j] = madd(e[j], r[j], splat(1));
    EACH (j, n)
        e[j] = madd(e[j], r[j], splat(1));
    EACH (j, n)
        e[j] = (vec)((bits)e[j] + ((bits)t[j] << 23));
    EACH (j, n)
        y[j] = y[j] * (1 / (1 + e[j]));
#else
    (void)e, (void)t, (void)r;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < WIDTH; i++)
            y[j][i] = y[j][i] * tn_vm_sigmoid_normal(y[j][i]);
#endif
    return true;
}

/* A vector, whatever it holds. */
static __attribute__((noinline)) void silu_any(const tn_finish_end *e, float *p, vec add) {
    vec y = load(p) + add;
    if (silu(1, &y)) {
        store(p, y);
        return;
    }
    float x[WIDTH], s[WIDTH];
    store(x, y);
    e->sigmoid(WIDTH, x, x, x, s);
    store(p, load(x) * load(s));
}

/* x * sigmoid(x) of what the rows hold, and what is added. */
INLINE void silu_rows(const tn_finish_end *e, int rows, const int vectors, float *const *c, int64_t first,
                      const vec *add) {
    const int step = ABREAST / vectors;
    int i = 0;
    for (bool near = true; WORTH_CODE && near && i + step <= rows; i += near ? step : 0) {
        vec y[ABREAST];
        EACH (k, ABREAST)
            y[k] = load(c[i + k / vectors] + first + k % vectors * WIDTH) + add[k % vectors];
        near = silu(ABREAST, y);
        if (near)
            EACH (k, ABREAST)
                store(c[i + k / vectors] + first + k % vectors * WIDTH, y[k]);
    }
    for (; i < rows; i++)
        for (int j = 0; j < vectors; j++)
            silu_any(e, c[i] + first + j * WIDTH, add[j]);
}

INLINE void end_rows_by(const tn_finish_end *e, const int form, const int rows, const int vectors, float *const *c,
                        const float *const *all, int64_t first) {
    vec v[3][VECTORS];
    EACH (j, vectors) {
        v[0][j] = e->sub ? load(e->sub + first + j * WIDTH) : (vec){0};
        v[0][j] = e->adds ? -v[0][j] : v[0][j];
        v[1][j] = e->mul ? load(e->mul + first + j * WIDTH) : splat(e->scale);
        v[2][j] = e->add ? load(e->add + first + j * WIDTH) : splat(e->shift);
    }
    const bool also = e->all;
    if (form == TN_ENDS_SILU && !e->sub && !e->mul && e->scale == 1 && !also) {
        silu_rows(e, rows, vectors, c, first, v[2]);
        return;
    }
    const numbers u = {splat(e->low),  splat(e->high),  splat(e->zero), splat(e->by), splat(e->plus),
                       splat(e->over), splat(e->after), splat(e->more), e->over != 1, e->goes_on};
    for (int i = 0; i < rows; i++) {
        end_row(&u, form, vectors, c[i] + first, also ? all[i] + first : NULL, (const vec(*)[VECTORS])v);
        for (int j = 0; form == TN_ENDS_SILU && j < vectors; j++)
            silu_any(e, c[i] + first + j * WIDTH, splat(-0.0f));
    }
}

void end_rows(const tn_finish_end *e, int rows, int vectors, float *const *c, const float *const *all, int64_t first) {
#define END_ROWS(form)                                                    \
    case form:                                                            \
        if (WORTH_CODE && vectors == VECTORS)                             \
            end_rows_by(e, form, rows, VECTORS, c, all, first);           \
        else                                                              \
            for (int v = 0; v < vectors; v++)                             \
                end_rows_by(e, form, rows, 1, c, all, first + v * WIDTH); \
        break;
    switch ((tn_finish_end_form)e->form) {
        END_ROWS(TN_ENDS_BOUNDED)
        END_ROWS(TN_ENDS_SILU)
        END_ROWS(TN_ENDS_SWISH)
    }
}

/* --- step by step ------------------------------------------------------------------------------------------------------------------------ */

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
            step->call(rows * COLUMNS, x, x, x, x);
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
    else if (WORTH_CODE && rows == 4)
        finish_block(4, false, false, f, n, first, c, all);
    else
        for (int i = 0; i < rows; i++)
            finish_block(1, false, false, f, n, first, c + i, all + i);
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

void finish_rows_of(const tn_finish *f, int rows, int64_t columns, int64_t first, float *const *c,
                    const void *const *all) {
    if (rows < 4 && f->steps == 1 && f->step[0].form == TN_FINISH_ALL && f->step[0].op == TN_FINISH_ADD) {
        finish_sum(rows, columns, c, all);
        return;
    }
    for (int64_t j = WORTH_CODE && rows < 4 ? finish_across(f, rows, columns, first, c, all) : 0; j < columns;
         j += COLUMNS)
        for (int i = 0, step; i < rows; i += step) {
            float *to[4];
            const float *also[4];
            step = rows - i < 4 ? 1 : 4;
            for (int k = 0; k < step; k++) {
                to[k] = c[i + k] + j;
                also[k] = all ? (const float *)all[i + k] + j : NULL;
            }
            finish_rows(f, step, columns - j, first + j, to, also);
        }
}

#endif
