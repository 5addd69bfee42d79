/* Rows as tiles read them, element by element, of any type that four elements of are read as floats. For the files of isa/. */
#ifndef TN_KERNELS_ISA_INTERLEAVE_H
#define TN_KERNELS_ISA_INTERLEAVE_H

#include <stdint.h>

typedef float four __attribute__((vector_size(16)));
typedef int choice __attribute__((vector_size(16)));
typedef float two __attribute__((vector_size(8)));
typedef float loose_four __attribute__((vector_size(16), aligned(4), may_alias));
typedef float loose_two __attribute__((vector_size(8), aligned(4), may_alias));
#if defined(__clang__)
#define PICK(x, y, a, b, c, d) __builtin_shufflevector(x, y, a, b, c, d)
#else
#define PICK(x, y, a, b, c, d) __builtin_shuffle(x, y, (choice){a, b, c, d})
#endif

/* to[k * rows + i] = from[i][k], k < n; elements of so many bytes. */
static inline __attribute__((always_inline)) void interleave_by(four (*read)(const char *),
                                                                float (*read_one)(const char *), const int bytes,
                                                                int rows, int64_t n, const void *const *from,
                                                                float *to) {
    int64_t whole = n & ~(int64_t)3;
    int i = 0;
    for (; i + 2 <= rows; i += 2) {
        const char *p = from[i], *q = from[i + 1];
        float *r = to + i;
        for (int64_t k = 0; k < whole; k += 4, r += 4 * rows) {
            four x = read(p + k * bytes), y = read(q + k * bytes);
            four low = PICK(x, y, 0, 4, 1, 5), high = PICK(x, y, 2, 6, 3, 7);
            *(loose_two *)r = (two){low[0], low[1]};
            *(loose_two *)(r + rows) = (two){low[2], low[3]};
            *(loose_two *)(r + 2 * rows) = (two){high[0], high[1]};
            *(loose_two *)(r + 3 * rows) = (two){high[2], high[3]};
        }
        for (int64_t k = whole; k < n; k++) {
            to[k * rows + i] = read_one(p + k * bytes);
            to[k * rows + i + 1] = read_one(q + k * bytes);
        }
    }
    for (; i < rows; i++)
        for (int64_t k = 0; k < n; k++)
            to[k * rows + i] = read_one((const char *)from[i] + k * bytes);
}

#endif
