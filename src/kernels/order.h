/* Order: elements as whole numbers that are ordered as they are (ops/plain.h: tn_order_key), of 32 bits where that is enough. */
#ifndef TN_KERNELS_ORDER_H
#define TN_KERNELS_ORDER_H

#include "kernels/move.h"

/* --- isa/order.c ----------------------------------------------------------------------------------------------------------------------- */

/* Keys of floats: 0 of either sign is 0, larger ones have larger keys; complemented where `flip` is -1; that of NaN is `nan`. `to` may be x. */
typedef void tn_order_key_fn(int64_t n, const void *x, int64_t flip, int64_t nan, void *to);
typedef struct tn_order_keys { /* of one width */
    tn_order_key_fn *of_float;
    int64_t (*most)(int64_t n, const void *keys); /* n >= 1 */
    /* The first at `from` or later that is above `bound`; n: none is. */
    int64_t (*find)(int64_t n, const void *keys, int64_t from, int64_t bound);
    /* best[i] = keys[i], at[i] = k, where keys[i] is larger; `at` of the keys' width. */
    void (*across)(int64_t n, const void *keys, int64_t k, void *best, void *at);
} tn_order_keys;
typedef struct tn_order_level {
    tn_order_keys keys[2]; /* of 32 bits, of 64 */
} tn_order_level;
extern const tn_order_level tn_order_generic, tn_order_avx2, tn_order_neon;

/* --- key.c ----------------------------------------------------------------------------------------------------------------------------- */

typedef struct tn_keys {
    tn_dtype dtype;
    bool wide;         /* of 64 bits */
    int64_t flip, nan; /* as above; integers are complemented too */
    const tn_strip_level *strips;
    const tn_order_keys *level;
} tn_keys;
/* False: elements of the dtype have no keys. `nan_first`: NaN comes first even where the smallest does. */
bool tn_keys_make(tn_keys *k, tn_dtype dtype, bool smallest, bool nan_first, tn_isa isa);
/* Keys of n elements side by side: in `room` (of n keys), or where they are. The larger, the earlier. */
const void *tn_keys_of(const tn_keys *k, int64_t n, const void *x, void *room);
static inline int64_t tn_keys_at(const tn_keys *k, const void *keys, int64_t i) {
    return k->wide ? ((const int64_t *)keys)[i] : ((const int32_t *)keys)[i];
}

#endif
