/* What ends sums while they are in registers (finish.h), at the instruction-set level that the including file is built for. */
#ifndef TN_KERNELS_ISA_ENDS_H
#define TN_KERNELS_ISA_ENDS_H

#include "kernels/finish.h"
#include "kernels/isa_vector.h"

/* The greater and the lesser of x and a bound: x where neither is, so that NaN stays what it is. */
INLINE vec at_least(vec x, vec bound) {
#if defined(__AVX512F__)
    return (vec)_mm512_max_ps((__m512)bound, (__m512)x);
#elif defined(__AVX2__)
    return (vec)_mm256_max_ps((__m256)bound, (__m256)x);
#else
    typedef int32_t mask __attribute__((vector_size(WIDTH * 4)));
    mask m = bound > x;
    return (vec)(((mask)bound & m) | ((mask)x & ~m));
#endif
}
INLINE vec at_most(vec x, vec bound) {
#if defined(__AVX512F__)
    return (vec)_mm512_min_ps((__m512)bound, (__m512)x);
#elif defined(__AVX2__)
    return (vec)_mm256_min_ps((__m256)bound, (__m256)x);
#else
    typedef int32_t mask __attribute__((vector_size(WIDTH * 4)));
    mask m = bound < x;
    return (vec)(((mask)bound & m) | ((mask)x & ~m));
#endif
}
/* What ends sums that are whole, of `vectors` vectors of columns from `first` on. */
INLINE void end_sums(const int rows, const int vectors, vec (*sum)[VECTORS], const tn_finish_end *e,
                     const float *const *all, int64_t first) {
    if (e->scales) {
        vec z = splat(e->scale);
        EACH (i, rows)
            EACH (v, vectors)
                sum[i][v] = sum[i][v] * z;
    }
    if (e->add)
        EACH (v, vectors) {
            vec z = load(e->add + first + v * WIDTH);
            EACH (i, rows)
                sum[i][v] = sum[i][v] + z;
        }
    if (all && e->all)
        EACH (i, rows)
            EACH (v, vectors)
                sum[i][v] = sum[i][v] + load(all[i] + first + v * WIDTH);
    if (e->bounds) {
        vec low = splat(e->low), zero = splat(e->zero), high = splat(e->high);
        EACH (i, rows)
            EACH (v, vectors)
                sum[i][v] = at_most(at_least(sum[i][v], low) + zero, high);
    }
}

#define ENDS_PASTE_(a, b) a##b
#define ENDS_PASTE(a, b) ENDS_PASTE_(a, b)
#define end_rows ENDS_PASTE(tn_end_rows_, TN_ISA)
#define finish_rows_of ENDS_PASTE(tn_finish_rows_, TN_ISA)

/* What ends sums that are stored: `vectors` (one, or a panel's) vectors of columns from `first` on. What is left out changes nothing: 0 is
   subtracted, -0 added, the factor 1. */
void end_rows(const tn_finish_end *e, int rows, int vectors, float *const *c, const float *const *all, int64_t first);
/* tn_finish_fn. */
void finish_rows_of(const tn_finish *f, int rows, int64_t columns, int64_t first, float *const *c,
                    const void *const *all);

#endif
