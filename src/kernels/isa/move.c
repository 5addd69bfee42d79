/* Transposes in registers, by the size of an element. */
#include "kernels/move.h"

/* Levels with registers of 64 bytes use those of 32: see move.h. */
#if !defined(__AVX512F__)

#if defined(__AVX2__)
#include <immintrin.h>
#define LANES 2
#else
#define LANES 1
#endif
#define LANE 16 /* bytes within which elements are shuffled */

/* Elements i, j, ... of two registers in turn, n elements in a register. */
#define TWO(i, n) i, (i) + (n)
#define FOUR(i, n) TWO(i, n), TWO(i + 1, n)
#define EIGHT(i, n) FOUR(i, n), FOUR(i + 2, n)
#define SIXTEEN(i, n) EIGHT(i, n), EIGHT(i + 4, n)
#if LANES == 2
#define LANE_BY_LANE(list, i, each) list(i, 2 * each), list(i + each, 2 * each)
#else
#define LANE_BY_LANE(list, i, each) list(i, each)
#endif
#if defined(__clang__)
#define SHUFFLE(type, x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define SHUFFLE(type, x, y, ...) __builtin_shuffle(x, y, (type){__VA_ARGS__})
#endif

typedef long long lanes __attribute__((vector_size(LANES * LANE)));

/* A lane of each of LANES rows that lie `apart` bytes from each other. */
static inline __attribute__((always_inline)) lanes load(const char *from, int64_t apart) {
#if LANES == 2
    __m128i low = _mm_loadu_si128((const void *)from), high = _mm_loadu_si128((const void *)(from + apart));
    return (lanes)_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
#else
    lanes all;
    (void)apart;
    __builtin_memcpy(&all, from, sizeof all);
    return all;
#endif
}

/* A tile is LANES * EACH rows, EACH columns of which make a lane. Where extents are no multiples of a tile, the last one covers some of the
   one before again. */
#define TRANSPOSE(T, EACH, list)                                                                                   \
    typedef T vec_##EACH __attribute__((vector_size(LANES * LANE)));                                               \
    typedef T loose_##EACH __attribute__((vector_size(LANES * LANE), aligned(sizeof(T)), may_alias));              \
    typedef T any_##EACH __attribute__((aligned(1), may_alias));                                                   \
    static inline __attribute__((always_inline)) void tile_##EACH (const any_##EACH *from, int64_t stride, T * to, \
                                                                   int64_t pitch) {                                \
        vec_##EACH x[EACH], y[EACH];                                                                               \
        _Pragma("GCC unroll 16") for (int k = 0; k < EACH; k++) x[k] =                                             \
            (vec_##EACH)load((const char *)(from + k * stride), EACH * stride * (int64_t)sizeof(T));               \
        _Pragma("GCC unroll 4") for (int half = EACH / 2; half; half /= 2) {                                       \
            _Pragma("GCC unroll 8") for (int k = 0; k < EACH / 2; k++) {                                           \
                y[2 * k] = SHUFFLE(vec_##EACH, x[k], x[k + EACH / 2], LANE_BY_LANE(list, 0, EACH));                \
                y[2 * k + 1] = SHUFFLE(vec_##EACH, x[k], x[k + EACH / 2], LANE_BY_LANE(list, EACH / 2, EACH));     \
            }                                                                                                      \
            _Pragma("GCC unroll 16") for (int k = 0; k < EACH; k++) x[k] = y[k];                                   \
        }                                                                                                          \
        _Pragma("GCC unroll 16") for (int k = 0; k < EACH; k++) * (loose_##EACH *)(to + k * pitch) = x[k];         \
    }                                                                                                              \
    static void transpose_##EACH (int64_t rows, int64_t columns, const void *from, int64_t stride, void *to,       \
                                  int64_t pitch) {                                                                 \
        const any_##EACH *a = from;                                                                                \
        T *b = to;                                                                                                 \
        if (rows < LANES * EACH || columns < EACH) {                                                               \
            for (int64_t c = 0; c < columns; c++)                                                                  \
                _Pragma("GCC unroll 1") for (int64_t r = 0; r < rows; r++) b[c * pitch + r] = a[r * stride + c];   \
            return;                                                                                                \
        }                                                                                                          \
        for (int64_t i = 0; i < rows; i += LANES * EACH) {                                                         \
            int64_t r = i + LANES * EACH <= rows ? i : rows - LANES * EACH;                                        \
            for (int64_t j = 0; j < columns; j += EACH) {                                                          \
                int64_t c = j + EACH <= columns ? j : columns - EACH;                                              \
                tile_##EACH (a + r * stride + c, stride, b + c * pitch + r, pitch);                                \
            }                                                                                                      \
        }                                                                                                          \
    }
TRANSPOSE(uint8_t, 16, SIXTEEN)
TRANSPOSE(uint16_t, 8, EIGHT)
TRANSPOSE(uint32_t, 4, FOUR)
TRANSPOSE(uint64_t, 2, TWO)

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
const tn_move_level PASTE(tn_move_, TN_ISA) = {
    .transpose = {[1] = transpose_16, [2] = transpose_8, [4] = transpose_4, [8] = transpose_2}};

#endif
