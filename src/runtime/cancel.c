/* Cancel tokens. */
#include <stdatomic.h>
#include <tenon/session.h>

#include "base/heap.h"

struct tn_cancel {
    atomic_bool set;
};

tn_cancel *tn_cancel_create(void) {
    return tn_alloc(NULL, sizeof(tn_cancel));
}

void tn_cancel_destroy(tn_cancel *cancel) {
    tn_free(NULL, cancel);
}

void tn_cancel_set(tn_cancel *cancel) {
    if (cancel)
        atomic_store(&cancel->set, true);
}

void tn_cancel_reset(tn_cancel *cancel) {
    if (cancel)
        atomic_store(&cancel->set, false);
}

bool tn_cancel_is_set(const tn_cancel *cancel) {
    return cancel && atomic_load_explicit(&cancel->set, memory_order_relaxed);
}
