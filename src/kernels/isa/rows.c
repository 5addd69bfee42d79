/* Steps of rows that pass over memory together: a few that follow each other in softmax and in normalisations, with the operations, and so
   the bits, of the steps one by one. */
#include "kernels/rows.h"

#include <string.h>

/* The same instructions as AVX-512: that level's table serves. */
#if !defined(__AVX512VNNI__)

#include "kernels/move.h"
#include "kernels/sums.h"

#define BLOCK (8 * TN_VM_GROUP)

#define LOOP TN_VM_LOOP

/* The next lines of the cache of what other rows need. */
TN_VM void fetch(const char *from, int64_t at, int64_t n) {
    for (int64_t i = at; from && i < at + n; i += 16)
        __builtin_prefetch(from + i * 4);
}

/* Loops do not wait for each other's last results if they are long. */
static void exp_sum(int64_t n, const float *x, float shift, float *to, tn_strip_sums *sums,
                    const tn_rows_ahead *ahead) {
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        const float *a = x + at;
        float *r = to + at;
        int32_t most = 0; /* the greatest magnitude, as bits: NaN is beyond all */
        fetch(ahead->read, at, m);
        if (x == to)
            most = INT32_MAX;
        else
            LOOP(m) {
                float d = a[i] - shift;
                int32_t magnitude = (int32_t)(tn_vm_bits(d) & 0x7fffffffu);
                most = magnitude > most ? magnitude : most;
                r[i] = tn_vm_exp_normal(d);
            }
        if (most > (int32_t)tn_vm_bits(TN_VM_EXP_LIMIT))
            LOOP(m) r[i] = tn_vm_exp(a[i] - shift);
        fetch(ahead->write, at, m);
        tn_vm_add_sums(m, r, 0, sums);
    }
}

static void square_sum(int64_t n, const float *x, float shift, float *to, tn_strip_sums *sums,
                       const tn_rows_ahead *ahead) {
    _Alignas(64) double sum[TN_STRIP_LANES];
    int64_t at = 0;
    memcpy(sum, sums->sum, sizeof sum);
    for (; at + TN_VM_GROUP <= n; at += TN_VM_GROUP) {
        fetch(ahead->read, at, TN_VM_GROUP);
        fetch(ahead->write, at, TN_VM_GROUP);
        tn_vm_add_squares(x + at, shift, to + at, sum);
    }
    memcpy(sums->sum, sum, sizeof sum);
    for (int64_t l = 0; at < n; at++, l++) {
        float d = x[at] - shift;
        to[at] = d;
        sums->part[l % TN_STRIP_LANES] += d * d;
    }
}

static void wide_squares(int64_t n, const float *x, tn_strip_sums *sums) {
    for (int64_t i = 0; i < n; i++)
        sums->sum[i % TN_STRIP_LANES] += (double)(x[i] * x[i]);
}

static void scale_shift(int64_t n, const float *x, float factor, const float *scale, const float *shift, float *to) {
    if (shift)
        LOOP(n) to[i] = x[i] * factor * scale[i] + shift[i];
    else if (scale)
        LOOP(n) to[i] = x[i] * factor * scale[i];
    else
        LOOP(n) to[i] = x[i] * factor;
}

static void divide(int64_t n, const float *x, float by, float *to) {
    LOOP(n) to[i] = x[i] / by;
}

/* The greatest of a row, and whether its exponentials are those of arguments near 0 (TN_VM_EXP_LIMIT); NaN if there is one. */
static float greatest(int64_t n, const float *x, bool *near) {
    float most[TN_STRIP_LANES], least[TN_STRIP_LANES];
    int odd[TN_STRIP_LANES] = {0}, any = 0;
    int64_t at = 0;
    for (int l = 0; l < TN_STRIP_LANES; l++) {
        most[l] = -__builtin_inff();
        least[l] = __builtin_inff();
    }
    for (; at + TN_STRIP_LANES <= n; at += TN_STRIP_LANES)
        for (int l = 0; l < TN_STRIP_LANES; l++) {
            float b = x[at + l];
            odd[l] |= b != b ? -1 : 0;
            most[l] = most[l] > b ? most[l] : b;
            least[l] = least[l] < b ? least[l] : b;
        }
    for (int l = 0; at < n; at++, l++) {
        odd[l] |= x[at] != x[at] ? -1 : 0;
        most[l] = most[l] > x[at] ? most[l] : x[at];
        least[l] = least[l] < x[at] ? least[l] : x[at];
    }
    for (int half = TN_STRIP_LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) {
            odd[l] |= odd[l + half];
            most[l] = most[l] > most[l + half] ? most[l] : most[l + half];
            least[l] = least[l] < least[l + half] ? least[l] : least[l + half];
        }
    any |= odd[0];
    *near = least[0] - most[0] >= -TN_VM_EXP_LIMIT;
    return any ? __builtin_nanf("") : most[0];
}

/* --- softmax of short rows: many of them beside each other, so that nothing is combined within a register --------------------------------- */

#define TOGETHER 16
#define SHORT 64 /* elements: longer rows are taken one by one */

#if defined(__AVX2__)
#define MOVE tn_move_avx2
#elif defined(__aarch64__)
#define MOVE tn_move_neon
#else
#define MOVE tn_move_generic
#endif

/* The greatest of each row, of which t[k][row] are the elements. False: one is not finite. *near as above, of all rows. */
static bool greatest_of_each(int64_t n, float t[][TOGETHER], float *most, bool *near) {
    float most_of[TOGETHER], least[TOGETHER];
    int odd[TOGETHER] = {0}, any = 0, far = 0;
    for (int r = 0; r < TOGETHER; r++)
        most_of[r] = least[r] = t[0][r];
    for (int64_t k = 0; k < n; k++)
        for (int r = 0; r < TOGETHER; r++) {
            float b = t[k][r];
            odd[r] |= b != b ? -1 : 0;
            most_of[r] = most_of[r] > b ? most_of[r] : b;
            least[r] = least[r] < b ? least[r] : b;
        }
    for (int r = 0; r < TOGETHER; r++) {
        any |= odd[r] | !(most_of[r] - most_of[r] == 0);
        far |= !(least[r] - most_of[r] >= -TN_VM_EXP_LIMIT);
        most[r] = most_of[r];
    }
    *near = !far;
    return !any;
}

/* The sums of rows in the order of tn_strip_sums: element k goes to lane k % 16. */
static void sum_of_each(int64_t n, float t[][TOGETHER], float *sum) {
    _Alignas(64) double lane[TN_STRIP_LANES][TOGETHER];
    int64_t lanes = n < TN_STRIP_LANES ? n : TN_STRIP_LANES;
    for (int64_t l = 0; l < lanes; l++)
        for (int64_t k = l; k < n; k += TN_VM_GROUP) {
            float part[TOGETHER];
            for (int r = 0; r < TOGETHER; r++)
                part[r] = t[k][r];
            for (int64_t i = k + TN_STRIP_LANES; i < n && i < k + TN_VM_GROUP; i += TN_STRIP_LANES)
                for (int r = 0; r < TOGETHER; r++)
                    part[r] += t[i][r];
            if (k == l)
                for (int r = 0; r < TOGETHER; r++)
                    lane[l][r] = (double)part[r];
            else
                for (int r = 0; r < TOGETHER; r++)
                    lane[l][r] += (double)part[r];
        }
    for (int64_t half = TN_STRIP_LANES / 2; half > 0; half /= 2)
        for (int64_t l = 0; l < half && l + half < lanes; l++)
            for (int r = 0; r < TOGETHER; r++)
                lane[l][r] += lane[l + half][r];
    for (int r = 0; r < TOGETHER; r++)
        sum[r] = (float)lane[0][r];
}

/* TOGETHER rows; false: nothing was done, one has a greatest that is not finite. */
static bool softmax_together(int64_t n, const char *from, int64_t step, char *into, int64_t into_step, bool divides) {
    _Alignas(64) float t[SHORT][TOGETHER], most[TOGETHER], sum[TOGETHER];
    bool near;
    MOVE.transpose[4](TOGETHER, n, from, step / 4, t, TOGETHER);
    if (!greatest_of_each(n, t, most, &near))
        return false;
    for (int64_t k = 0; k < n; k++)
        if (near)
            LOOP(TOGETHER) t[k][i] = tn_vm_exp_normal(t[k][i] - most[i]);
        else
            LOOP(TOGETHER) t[k][i] = tn_vm_exp(t[k][i] - most[i]);
    sum_of_each(n, t, sum);
    for (int r = 0; r < TOGETHER; r++)
        most[r] = divides ? sum[r] : 1.0f / sum[r];
    for (int64_t k = 0; k < n; k++)
        if (divides)
            for (int r = 0; r < TOGETHER; r++)
                t[k][r] /= most[r];
        else
            for (int r = 0; r < TOGETHER; r++)
                t[k][r] *= most[r];
    MOVE.transpose[4](n, TOGETHER, t, TOGETHER, into, into_step / 4);
    return true;
}

/* --- softmax ------------------------------------------------------------------------------------------------------------------------------ */

static int64_t softmax(int64_t rows, int64_t n, const char *from, int64_t step, char *into, int64_t into_step,
                       bool divides) {
    int64_t next = 0;
    for (int64_t row = 0; row < rows; row++) {
        if (n <= SHORT && rows - row >= TOGETHER && row >= next) {
            if (softmax_together(n, from + row * step, step, into + row * into_step, into_step, divides)) {
                row += TOGETHER - 1;
                continue;
            }
            next = row + TOGETHER; /* these one by one */
        }
        const float *x = (const float *)(const void *)(from + row * step);
        float *to = (float *)(void *)(into + row * into_step);
        tn_strip_sums sums = {0};
        bool near;
        float most = greatest(n, x, &near);
        if (!(most - most == 0))
            return row;
        if (near)
            LOOP(n) to[i] = tn_vm_exp_normal(x[i] - most);
        else
            LOOP(n) to[i] = tn_vm_exp(x[i] - most);
        tn_vm_add_sums(n, to, 0, &sums);
        float sum = (float)tn_vm_end_sums(&sums), factor = 1.0f / sum;
        if (divides)
            LOOP(n) to[i] = to[i] / sum;
        else
            LOOP(n) to[i] = to[i] * factor;
    }
    return rows;
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
const tn_rows_level PASTE(tn_rows_, TN_ISA) = {exp_sum, square_sum, wide_squares, scale_shift, divide, softmax};

#endif
