/* Keys of floats, and looking for what is above others. */
#include "kernels/order.h"

/* Levels with registers of 64 bytes use those of 32: see move.h. */
#if !defined(__AVX512F__)

#include "kernels/vector_math.h"

#define LOOP TN_VM_LOOP
#define BLOCK 32 /* keys that are looked at together */

#define KEYS(bits, T, least, inf)                                                              \
    static void key_##bits(int64_t n, const void *px, int64_t flip, int64_t nan, void *to) {   \
        const T *x = px;                                                                       \
        T *r = to, f = (T)flip, odd = (T)nan;                                                  \
        LOOP(n) {                                                                              \
            T v = x[i], size = (T)(v & ~(least)), key = (T)((v >> (bits - 1) & ~(least)) ^ v); \
            key = size == 0 ? 0 : key;                                                         \
            key ^= f;                                                                          \
            r[i] = size > (inf) ? odd : key;                                                   \
        }                                                                                      \
    }                                                                                          \
    static int64_t most_##bits(int64_t n, const void *keys) {                                  \
        const T *x = keys;                                                                     \
        T most = (least);                                                                      \
        LOOP(n) most = x[i] > most ? x[i] : most;                                              \
        return most;                                                                           \
    }                                                                                          \
    static int64_t find_##bits(int64_t n, const void *keys, int64_t from, int64_t bound) {     \
        const T *x = keys;                                                                     \
        T b = (T)bound;                                                                        \
        for (; from + BLOCK <= n; from += BLOCK) {                                             \
            const T *y = x + from;                                                             \
            T any = 0;                                                                         \
            LOOP(BLOCK) any |= y[i] > b ? -1 : 0;                                              \
            if (any)                                                                           \
                break;                                                                         \
        }                                                                                      \
        while (from < n && x[from] <= b)                                                       \
            from++;                                                                            \
        return from;                                                                           \
    }                                                                                          \
    static void across_##bits(int64_t n, const void *keys, int64_t k, void *best, void *at) {  \
        const T *x = keys;                                                                     \
        T *b = best, *a = at, here = (T)k;                                                     \
        LOOP(n) {                                                                              \
            a[i] = x[i] > b[i] ? here : a[i];                                                  \
            b[i] = x[i] > b[i] ? x[i] : b[i];                                                  \
        }                                                                                      \
    }
KEYS(32, int32_t, INT32_MIN, 0x7f800000)
KEYS(64, int64_t, INT64_MIN, 0x7ff0000000000000)

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
const tn_order_level PASTE(tn_order_,
                           TN_ISA) = {{{key_32, most_32, find_32, across_32}, {key_64, most_64, find_64, across_64}}};

#endif
