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

/* The greatest of a row; NaN if there is one. Whether exponentials are those of arguments near 0 (TN_VM_EXP_LIMIT). */
static float greatest(int64_t n, const float *x, bool *near) {
    float most[TN_STRIP_LANES], eight[8], four[4];
    int32_t magnitude[TN_STRIP_LANES], eights[8], fours[4]; /* as bits: NaN is beyond all */
    int64_t at = 0;
    for (int l = 0; l < TN_STRIP_LANES; l++) {
        most[l] = -__builtin_inff();
        magnitude[l] = 0;
    }
    for (; at + TN_STRIP_LANES <= n; at += TN_STRIP_LANES)
        for (int l = 0; l < TN_STRIP_LANES; l++) {
            float b = x[at + l];
            int32_t m = (int32_t)(tn_vm_bits(b) & 0x7fffffffu);
            most[l] = most[l] > b ? most[l] : b;
            magnitude[l] = magnitude[l] > m ? magnitude[l] : m;
        }
    for (int l = 0; at < n; at++, l++) {
        int32_t m = (int32_t)(tn_vm_bits(x[at]) & 0x7fffffffu);
        most[l] = most[l] > x[at] ? most[l] : x[at];
        magnitude[l] = magnitude[l] > m ? magnitude[l] : m;
    }
    for (int l = 0; l < 8; l++) {
        eight[l] = most[l] > most[l + 8] ? most[l] : most[l + 8];
        eights[l] = magnitude[l] > magnitude[l + 8] ? magnitude[l] : magnitude[l + 8];
    }
    for (int l = 0; l < 4; l++) {
        four[l] = eight[l] > eight[l + 4] ? eight[l] : eight[l + 4];
        fours[l] = eights[l] > eights[l + 4] ? eights[l] : eights[l + 4];
    }
    float even = four[0] > four[2] ? four[0] : four[2], odd = four[1] > four[3] ? four[1] : four[3];
    int32_t evens = fours[0] > fours[2] ? fours[0] : fours[2], odds = fours[1] > fours[3] ? fours[1] : fours[3];
    float all = even > odd ? even : odd;
    int32_t far = evens > odds ? evens : odds;
    *near = far <= (int32_t)tn_vm_bits(TN_VM_EXP_LIMIT / 2);
    if (far > 0x7f800000)
        return __builtin_nanf("");
    return all;
}

/* r = exp(r) of what is not above 0, -inf too; false: nothing is left of any. Most of what is masked is far below: nothing is left of it, and to
   form that by way of subnormal numbers costs many times what others do. */
static __attribute__((noinline)) bool exp_below(int64_t n, float *r) {
    const float least = -104.0f; /* and less: 0 */
    int some = 0, between = 0;
    LOOP(n) {
        some |= r[i] > least ? -1 : 0;
        between |= r[i] > least ? (r[i] < -TN_VM_EXP_LIMIT ? -1 : 0) : 0;
    }
    if (!some)
        LOOP(n) r[i] = 0;
    else if (between)
        LOOP(n) r[i] = tn_vm_exp(r[i]);
    else
        LOOP(n) {
            float x = r[i], e = tn_vm_exp_normal(x < -TN_VM_EXP_LIMIT ? -TN_VM_EXP_LIMIT : x);
            r[i] = x < -TN_VM_EXP_LIMIT ? 0 : e;
        }
    return some != 0;
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
    for (int r = TOGETHER; r < 2 * TOGETHER; r++) { /* what follows, perhaps */
        fetch(from + r * step, 0, n);
        fetch(into + r * into_step, 0, n);
    }
    if (!greatest_of_each(n, t, most, &near))
        return false;
    for (int64_t k = 0; k < n; k++)
        if (near)
            LOOP(TOGETHER) t[k][i] = tn_vm_exp_normal(t[k][i] - most[i]);
        else {
            LOOP(TOGETHER) t[k][i] = t[k][i] - most[i];
            exp_below(TOGETHER, t[k]);
        }
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

#define ABREAST 8             /* rows, at most */
#define ABREAST_ELEMENTS 2048 /* that stay in the cache meanwhile */

/* exp(x - shift), and their sum. Fetches as much of two other rows meanwhile. */
TN_VM float exponentials(int64_t n, const float *x, float shift, bool near, float *to, const char *next,
                         const char *next_into) {
    tn_strip_sums sums = {.sum = {0}};
    int64_t at = 0;
    for (; at + TN_VM_GROUP <= n; at += TN_VM_GROUP) {
        const float *a = x + at;
        float *r = to + at;
        fetch(next, at, TN_VM_GROUP);
        fetch(next_into, at, TN_VM_GROUP);
        if (near)
            LOOP(TN_VM_GROUP) r[i] = tn_vm_exp_normal(a[i] - shift);
        else {
            LOOP(TN_VM_GROUP) r[i] = a[i] - shift;
            if (!exp_below(TN_VM_GROUP, r))
                continue; /* 0 is added */
        }
        tn_vm_add_group(r, sums.sum);
    }
    if (at < n) {
        const float *a = x + at;
        float *r = to + at;
        LOOP(n - at) r[i] = a[i] - shift;
        exp_below(n - at, r);
        for (int64_t i = 0; i < n - at; i++)
            sums.part[i % TN_STRIP_LANES] += r[i];
        tn_vm_end_group(&sums);
    }
    return (float)tn_vm_sum_lanes(sums.sum);
}

/* Some rows, step by step: what a step of one row waits for, another does meanwhile. How many are done, as above. */
static int64_t softmax_abreast(int64_t rows, int64_t n, const char *from, int64_t step, char *into, int64_t into_step,
                               bool divides) {
    float most[ABREAST], sum[ABREAST];
    bool near[ABREAST];
    int64_t done = 0;
    for (; done < rows; done++) {
        most[done] = greatest(n, (const float *)(const void *)(from + done * step), &near[done]);
        if (!(most[done] - most[done] == 0))
            break;
    }
    for (int64_t r = 0; r < done; r++) {
        const char *next = from + (r + rows) * step,
                   *next_into = into + (r + rows) * into_step; /* what follows, perhaps */
        float all = exponentials(n, (const float *)(const void *)(from + r * step), most[r], near[r],
                                 (float *)(void *)(into + r * into_step), next, next_into);
        sum[r] = divides ? all : 1.0f / all;
    }
    for (int64_t r = 0; r < done; r++) {
        float *to = (float *)(void *)(into + r * into_step), by = sum[r];
        if (divides)
            LOOP(n) to[i] = to[i] / by;
        else
            LOOP(n) to[i] = to[i] * by;
    }
    return done;
}

static int64_t softmax(int64_t rows, int64_t n, const char *from, int64_t step, char *into, int64_t into_step,
                       bool divides) {
    int64_t next = 0, abreast = n > ABREAST_ELEMENTS / 2         ? 1
                                : n > ABREAST_ELEMENTS / ABREAST ? ABREAST_ELEMENTS / n
                                                                 : ABREAST;
    for (int64_t row = 0, some; row < rows; row += some) {
        const char *x = from + row * step;
        char *to = into + row * into_step;
        some = TOGETHER;
        if (n <= SHORT && rows - row >= TOGETHER && row >= next) {
            if (softmax_together(n, x, step, to, into_step, divides))
                continue;
            next = row + TOGETHER; /* these otherwise */
        }
        some = rows - row < abreast ? rows - row : abreast;
        int64_t done = softmax_abreast(some, n, x, step, to, into_step, divides);
        if (done < some)
            return row + done;
    }
    return rows;
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
const tn_rows_level PASTE(tn_rows_, TN_ISA) = {exp_sum, square_sum, wide_squares, scale_shift, divide, softmax};

#endif
