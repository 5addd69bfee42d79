/* Interned strings. */
#include "base/error.h"
#include "base/map.h"
#include "base/os.h"

#include <string.h>

bool tn_strings_init(tn_strings *strings, tn_heap *heap) {
    *strings = (tn_strings){.seed = tn_random_seed()};
    tn_arena_init(&strings->arena, heap);
    if (tn_vec_push(heap, &strings->text, "") && tn_vec_push(heap, &strings->length, 0))
        return true;
    tn_strings_free(strings);
    return false;
}

typedef struct probe {
    const tn_strings *strings;
    const char *text;
    size_t length;
} probe;

static bool same_text(const void *ctx, uint32_t id) {
    const probe *p = ctx;
    return p->strings->length.data[id] == p->length && memcmp(p->strings->text.data[id], p->text, p->length) == 0;
}

/* The id, or 0 when it was never added; `length` is not 0. */
static uint32_t lookup(const tn_strings *strings, const char *text, size_t length, uint64_t hash) {
    return tn_idset_find(&strings->set, hash, same_text, &(probe){strings, text, length});
}

bool tn_strings_reserve(tn_strings *strings, uint32_t extra) {
    tn_heap *heap = strings->arena.heap;
    return tn_vec_reserve(heap, &strings->text, extra) && tn_vec_reserve(heap, &strings->length, extra) &&
           tn_idset_reserve(heap, &strings->set, extra);
}

uint32_t tn_strings_add(tn_strings *strings, const char *text, size_t length) {
    if (length == 0)
        return 0;
    if (length >= UINT32_MAX) {
        tn_fail(TN_ERR_LIMIT, "too large: a name of %zu bytes", length);
        return UINT32_MAX;
    }
    uint64_t hash = tn_hash_bytes(text, length, strings->seed);
    uint32_t id = lookup(strings, text, length, hash);
    if (id)
        return id;
    tn_heap *heap = strings->arena.heap;
    id = strings->text.len;
    if (id == UINT32_MAX) {
        tn_fail(TN_ERR_LIMIT, "too many different names: %u", id);
        return UINT32_MAX;
    }
    if (!tn_vec_reserve(heap, &strings->text, 1) || !tn_vec_reserve(heap, &strings->length, 1))
        return UINT32_MAX;
    const char *copy = tn_arena_strndup(&strings->arena, text, length);
    if (!copy || !tn_idset_add(heap, &strings->set, hash, id))
        return UINT32_MAX;
    strings->text.data[strings->text.len++] = copy;
    strings->length.data[strings->length.len++] = (uint32_t)length;
    return id;
}

uint32_t tn_strings_find(const tn_strings *strings, const char *text, size_t length) {
    if (length == 0)
        return 0;
    uint32_t id = lookup(strings, text, length, tn_hash_bytes(text, length, strings->seed));
    return id ? id : UINT32_MAX;
}

const char *tn_strings_text(const tn_strings *strings, uint32_t id) {
    return id < strings->text.len ? strings->text.data[id] : "";
}

uint32_t tn_strings_length(const tn_strings *strings, uint32_t id) {
    return id < strings->length.len ? strings->length.data[id] : 0;
}

void tn_strings_free(tn_strings *strings) {
    tn_heap *heap = strings->arena.heap;
    tn_vec_free(heap, &strings->text);
    tn_vec_free(heap, &strings->length);
    tn_idset_free(heap, &strings->set);
    tn_arena_free(&strings->arena);
}
