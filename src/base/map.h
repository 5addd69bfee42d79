/* Hash maps and interned strings. Seeded per map, so hostile keys cannot be prepared. Not thread safe. */
#ifndef TN_BASE_MAP_H
#define TN_BASE_MAP_H

#include "base/arena.h"
#include "base/vec.h"

/* A 64-bit hash of bytes (not cryptographic) and a mixer of two hashes. */
uint64_t tn_hash_bytes(const void *bytes, size_t size, uint64_t seed);
uint64_t tn_hash_mix(uint64_t a, uint64_t b);

/* Maps uint64 keys to uint64 values. Zero-initialised is empty. */
typedef struct tn_map {
    uint64_t *slots; /* key, value, used triples are an implementation detail */
    uint8_t *state;
    uint32_t len, used, cap;
    uint64_t seed; /* drawn when the first key is put */
} tn_map;
bool tn_map_put(tn_heap *heap, tn_map *map, uint64_t key, uint64_t value); /* false: out of memory */
bool tn_map_get(const tn_map *map, uint64_t key, uint64_t *value);         /* value may be NULL */
bool tn_map_remove(tn_map *map, uint64_t key);
void tn_map_free(tn_heap *heap, tn_map *map);

/* Hash-consing support (zero-initialised is empty): a set of uint32 ids (> 0) found by a caller's hash and equality. */
typedef struct tn_idset {
    uint32_t *ids;
    uint32_t *hashes;
    uint32_t len, cap;
} tn_idset;
/* The id whose hash is `hash` and for which equal(ctx, id) holds, or 0. */
uint32_t tn_idset_find(const tn_idset *set, uint64_t hash, bool (*equal)(const void *ctx, uint32_t id),
                       const void *ctx);
bool tn_idset_add(tn_heap *heap, tn_idset *set, uint64_t hash, uint32_t id);
bool tn_idset_reserve(tn_heap *heap, tn_idset *set, uint32_t extra); /* makes room for so many more */
void tn_idset_free(tn_heap *heap, tn_idset *set);

/* Interned strings: the same bytes give the same id; id 0 is the empty string. Strings live in the table's arena,
   NUL-terminated, and may hold NULs. */
typedef struct tn_strings {
    tn_arena arena;
    TN_VEC(const char *) text;
    tn_u32_vec length;
    tn_idset set;
    uint64_t seed;
} tn_strings;
bool tn_strings_init(tn_strings *strings, tn_heap *heap);
/* UINT32_MAX when out of memory. */
uint32_t tn_strings_add(tn_strings *strings, const char *text, size_t length);
bool tn_strings_reserve(tn_strings *strings, uint32_t extra); /* makes room for so many more */
/* The id of `text`, or UINT32_MAX when it was never added. */
uint32_t tn_strings_find(const tn_strings *strings, const char *text, size_t length);
const char *tn_strings_text(const tn_strings *strings, uint32_t id);
uint32_t tn_strings_length(const tn_strings *strings, uint32_t id);
void tn_strings_free(tn_strings *strings);

#endif
