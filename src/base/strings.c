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

int tn_string_compare(const char *a, size_t a_length, const char *b, size_t b_length) {
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static uint32_t search_sorted(const tn_strings *strings, const char *text, size_t length) {
    uint32_t low = 1, high = strings->sorted + 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = tn_string_compare(text, length, strings->text.data[middle], strings->length.data[middle]);
        if (order == 0)
            return middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return 0;
}

/* Puts the sorted strings into the set, where they are found faster. */
static bool index_sorted(tn_strings *strings) {
    tn_heap *heap = strings->arena.heap;
    if (!tn_idset_reserve(heap, &strings->set, strings->sorted))
        return false;
    for (uint32_t id = 1; id <= strings->sorted; id++) {
        uint64_t hash = tn_hash_bytes(strings->text.data[id], strings->length.data[id], strings->seed);
        if (!tn_idset_add(heap, &strings->set, hash, id))
            return false;
    }
    strings->sorted = 0;
    return true;
}

static bool fits(size_t length) {
    if (length < UINT32_MAX)
        return true;
    tn_fail(TN_ERR_LIMIT, "too large: a name of %zu bytes", length);
    return false;
}

/* A new string at the end. */
static uint32_t append(tn_strings *strings, const char *text, size_t length) {
    tn_heap *heap = strings->arena.heap;
    uint32_t id = strings->text.len;
    if (id == UINT32_MAX) {
        tn_fail(TN_ERR_LIMIT, "too many different names: %u", id);
        return UINT32_MAX;
    }
    if (!tn_vec_reserve(heap, &strings->text, 1) || !tn_vec_reserve(heap, &strings->length, 1))
        return UINT32_MAX;
    const char *copy = tn_arena_strndup(&strings->arena, text, length);
    if (!copy)
        return UINT32_MAX;
    strings->text.data[strings->text.len++] = copy;
    strings->length.data[strings->length.len++] = (uint32_t)length;
    return id;
}

uint32_t tn_strings_add(tn_strings *strings, const char *text, size_t length) {
    if (length == 0)
        return 0;
    if (!fits(length) || (strings->sorted && !index_sorted(strings)))
        return UINT32_MAX;
    uint64_t hash = tn_hash_bytes(text, length, strings->seed);
    uint32_t id = lookup(strings, text, length, hash);
    if (id)
        return id;
    if (!tn_idset_reserve(strings->arena.heap, &strings->set, 1))
        return UINT32_MAX;
    id = append(strings, text, length);
    if (id != UINT32_MAX)
        (void)tn_idset_add(strings->arena.heap, &strings->set, hash, id); /* there is room */
    return id;
}

uint32_t tn_strings_append(tn_strings *strings, const char *text, size_t length) {
    return length == 0 ? 0 : fits(length) ? append(strings, text, length) : UINT32_MAX;
}

#define MORE \
    64 /* strings that are added soon after many were loaded, such as values of metadata, without growing again */

bool tn_strings_load(tn_strings *strings, uint32_t count, const uint8_t *lengths, const char *bytes, size_t size,
                     uint32_t *record) {
    tn_heap *heap = strings->arena.heap;
    *record = 0;
    uint32_t room = count < UINT32_MAX / 2 ? count + MORE : count;
    if (!tn_vec_reserve(heap, &strings->text, room) || !tn_vec_reserve(heap, &strings->length, room))
        return false;
    const char *at = count ? tn_arena_copy(&strings->arena, bytes, size) : bytes, *before = "";
    if (!at)
        return false;
    uint32_t length_before = 0;
    for (uint32_t i = 1; i <= count; i++) {
        uint32_t length;
        memcpy(&length, lengths + (i - 1) * sizeof length, sizeof length);
        *record = i;
        if (length >= size || at[length] || memchr(at, '\0', length) ||
            tn_string_compare(before, length_before, at, length) >= 0)
            return false;
        strings->text.data[strings->text.len++] = before = at;
        strings->length.data[strings->length.len++] = length_before = length;
        at += length + 1;
        size -= length + 1;
    }
    strings->sorted = count;
    *record = count + 1;
    return size == 0;
}

uint32_t tn_strings_find(const tn_strings *strings, const char *text, size_t length) {
    if (length == 0)
        return 0;
    uint32_t id = strings->sorted ? search_sorted(strings, text, length) : 0;
    if (!id)
        id = lookup(strings, text, length, tn_hash_bytes(text, length, strings->seed));
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
