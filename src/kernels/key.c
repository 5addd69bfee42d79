/* Elements of any dtype as keys. */
#include "kernels/order.h"

static const tn_order_level *best_level(const tn_strip_level *strips) {
#if defined(TN_HAVE_ISA_AVX512)
    if (strips != &tn_strip_generic)
        return &tn_order_avx2;
#elif defined(TN_HAVE_ISA_NEON)
    if (strips != &tn_strip_generic)
        return &tn_order_neon;
#endif
    (void)strips;
    return &tn_order_generic;
}

bool tn_keys_make(tn_keys *k, tn_dtype dtype, bool smallest, bool nan_first, tn_isa isa) {
    const tn_strip_level *strips = tn_strip_best(isa);
    tn_strip_type type = tn_strip_type_of(dtype);
    if (!(tn_dtype_is_float(dtype) || tn_dtype_is_int(dtype) || dtype == TN_BOOL) || !strips->load[dtype])
        return false;
    *k = (tn_keys){.dtype = dtype, .wide = tn_strip_bytes(type) == 8, .flip = smallest ? -1 : 0, .strips = strips};
    k->nan = (k->wide ? INT64_MAX : INT32_MAX) ^ (nan_first ? 0 : k->flip);
    k->level = &best_level(strips)->keys[k->wide];
    return true;
}

const void *tn_keys_of(const tn_keys *k, int64_t n, const void *x, void *room) {
    tn_dtype dtype = k->dtype == TN_BOOL ? TN_U8 : k->dtype;
    tn_strip_type type = tn_strip_type_of(dtype);
    if (!tn_strip_same(dtype)) {
        k->strips->load[dtype](n, x, 1, room);
        x = room;
    }
    if (type == TN_STRIP_F32 || type == TN_STRIP_F64) {
        k->level->of_float(n, x, k->flip, k->nan, room);
        return room;
    }
    int64_t flip = k->flip ^ (type == TN_STRIP_U64 ? INT64_MIN : 0);
    if (flip == 0 && k->dtype != TN_BOOL)
        return x;
    if (k->wide)
        for (int64_t i = 0; i < n; i++)
            ((int64_t *)room)[i] = ((const int64_t *)x)[i] ^ flip;
    else
        for (int64_t i = 0; i < n; i++) {
            int32_t v = ((const int32_t *)x)[i];
            ((int32_t *)room)[i] = (k->dtype == TN_BOOL ? v != 0 : v) ^ (int32_t)flip;
        }
    return room;
}
