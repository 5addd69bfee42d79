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
    struct {
        uint32_t id, hash; /* id 0: empty */
    } * slots;             /* side by side: a lookup that misses the caches does so once */
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
    uint32_t sorted; /* strings 1 to `sorted` are in ascending order and not in the set */
    uint64_t seed;
} tn_strings;
bool tn_strings_init(tn_strings *strings, tn_heap *heap);
/* UINT32_MAX when out of memory. */
uint32_t tn_strings_add(tn_strings *strings, const char *text, size_t length);
/* Fills a table that is still empty with `count` strings of `lengths` bytes (32-bit numbers, perhaps unaligned) that lie in `bytes`
   one behind the other, each ended by a NUL; `size` bytes in all. They must hold no other NUL, none may be empty, and they must be in
   strictly ascending order, so that none is there twice: if not, *record is the first that is wrong (from 1; count + 1 when bytes are
   left over) and the answer is false; it is 0 when out of memory. String i gets the id i. */
bool tn_strings_load(tn_strings *strings, uint32_t count, const uint8_t *lengths, const char *bytes, size_t size,
                     uint32_t *record);
/* Adds a string that is not looked for, whatever others there are: finding it by its text may find another id or none. */
uint32_t tn_strings_append(tn_strings *strings, const char *text, size_t length);
/* Order of strings: by bytes, a prefix first. */
int tn_string_compare(const char *a, size_t a_length, const char *b, size_t b_length);
/* The id of `text`, or UINT32_MAX when it was never added. */
uint32_t tn_strings_find(const tn_strings *strings, const char *text, size_t length);
const char *tn_strings_text(const tn_strings *strings, uint32_t id);
uint32_t tn_strings_length(const tn_strings *strings, uint32_t id);
void tn_strings_free(tn_strings *strings);

#endif
