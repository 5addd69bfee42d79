/* Growing of arrays. */
#include "base/vec.h"

#include "base/error.h"

#include <inttypes.h>

bool tn_vec_reserve_raw(tn_heap *heap, void **data, uint32_t len, uint32_t *cap, uint32_t extra, size_t size) {
    if (extra <= *cap - len)
        return true;
    uint64_t need = (uint64_t)len + extra, want = (uint64_t)*cap * 2;
    if (need > UINT32_MAX) {
        tn_fail(TN_ERR_LIMIT, "too large: an array of more than %u elements", UINT32_MAX);
        return false;
    }
    if (want < 8)
        want = 8;
    if (want < need)
        want = need;
    if (want > UINT32_MAX)
        want = UINT32_MAX;
    size_t bytes;
    if (__builtin_mul_overflow((size_t)want, size, &bytes)) {
        tn_fail(TN_ERR_LIMIT, "too large: %" PRIu64 " elements of %zu bytes", want, size);
        return false;
    }
    void *grown = tn_realloc(heap, *data, bytes);
    if (!grown)
        return false;
    *data = grown;
    *cap = (uint32_t)want;
    return true;
}
