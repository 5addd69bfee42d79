/* Hash maps: open addressing with linear probing over a power of two of slots, at most 3/4 full. */
#include "base/map.h"

#include "base/error.h"
#include "base/os.h"

#include <string.h>

#define LARGEST_CAP (1u << 31)

static uint64_t multiply_fold(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#define K0 0x9E3779B97F4A7C15u
#define K1 0xD6E8FEB86659FD93u
#define K2 0xA0761D6478BD642Fu

static uint64_t load64(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

uint64_t tn_hash_bytes(const void *bytes, size_t size, uint64_t seed) {
    const uint8_t *at = bytes;
    size_t left = size;
    uint64_t h = multiply_fold(seed ^ K0, K1), g = h ^ K2;
    for (; left >= 32; at += 32, left -= 32) {
        h = multiply_fold(load64(at) ^ K1, load64(at + 8) ^ h);
        g = multiply_fold(load64(at + 16) ^ K2, load64(at + 24) ^ g);
    }
    h = multiply_fold(h ^ K0, g ^ K2) ^ g;
    for (; left >= 8; at += 8, left -= 8)
        h = multiply_fold(load64(at) ^ K1, h ^ K0) ^ h;
    uint64_t tail = 0;
    if (left)
        memcpy(&tail, at, left);
    h = multiply_fold(tail ^ K2, h ^ K0) ^ h;
    return multiply_fold(h ^ (uint64_t)size, K1) ^ h;
}

uint64_t tn_hash_mix(uint64_t a, uint64_t b) {
    uint64_t h = multiply_fold(a ^ K0, K1) ^ (b + K2);
    return multiply_fold(h, K2) ^ h;
}

/* ---- uint64 to uint64 ---- */

enum { SLOT_EMPTY, SLOT_FULL, SLOT_REMOVED };

/* The slot of `key`, or the slot where it would be put; *found says which. The map has an empty slot. */
static uint32_t map_slot(const tn_map *map, uint64_t key, bool *found) {
    uint32_t mask = map->cap - 1, at = (uint32_t)tn_hash_mix(key, map->seed) & mask, free_slot = UINT32_MAX;
    for (;; at = (at + 1) & mask) {
        if (map->state[at] == SLOT_EMPTY) {
            *found = false;
            return free_slot != UINT32_MAX ? free_slot : at;
        }
        if (map->state[at] == SLOT_REMOVED) {
            if (free_slot == UINT32_MAX)
                free_slot = at;
        } else if (map->slots[2 * (size_t)at] == key) {
            *found = true;
            return at;
        }
    }
}

static void map_fill(tn_map *map, uint32_t at, uint64_t key, uint64_t value) {
    map->slots[2 * (size_t)at] = key;
    map->slots[2 * (size_t)at + 1] = value;
    map->used += map->state[at] == SLOT_EMPTY;
    map->state[at] = SLOT_FULL;
    map->len++;
}

/* Moves to a table with room for one more, dropping what removed keys left behind. */
static bool map_grow(tn_heap *heap, tn_map *map) {
    uint32_t cap = map->cap < 8 ? 8 : map->cap;
    while ((uint64_t)map->len * 2 >= cap) { /* at most half full afterwards, so moving pays for itself */
        if (cap >= LARGEST_CAP) {
            tn_fail(TN_ERR_LIMIT, "too large: a map of %u keys", map->len);
            return false;
        }
        cap *= 2;
    }
    tn_map moved = {.cap = cap, .seed = map->seed ? map->seed : tn_random_seed() | 1};
    moved.slots = tn_alloc_array(heap, (size_t)cap * 2, sizeof *moved.slots);
    moved.state = moved.slots ? tn_alloc(heap, cap) : NULL;
    if (!moved.state) {
        tn_free(heap, moved.slots);
        return false;
    }
    for (uint32_t i = 0; i < map->cap; i++)
        if (map->state[i] == SLOT_FULL) {
            bool found;
            uint64_t key = map->slots[2 * (size_t)i];
            map_fill(&moved, map_slot(&moved, key, &found), key, map->slots[2 * (size_t)i + 1]);
        }
    tn_map_free(heap, map);
    *map = moved;
    return true;
}

bool tn_map_put(tn_heap *heap, tn_map *map, uint64_t key, uint64_t value) {
    bool found = false;
    uint32_t at = 0;
    if (map->cap) {
        at = map_slot(map, key, &found);
        if (found) {
            map->slots[2 * (size_t)at + 1] = value;
            return true;
        }
    }
    if (map->cap == 0 || (map->state[at] == SLOT_EMPTY && (uint64_t)(map->used + 1) * 4 > (uint64_t)map->cap * 3)) {
        if (!map_grow(heap, map))
            return false;
        at = map_slot(map, key, &found);
    }
    map_fill(map, at, key, value);
    return true;
}

bool tn_map_get(const tn_map *map, uint64_t key, uint64_t *value) {
    if (map->len == 0)
        return false;
    bool found;
    uint32_t at = map_slot(map, key, &found);
    if (found && value)
        *value = map->slots[2 * (size_t)at + 1];
    return found;
}

bool tn_map_remove(tn_map *map, uint64_t key) {
    if (map->len == 0)
        return false;
    bool found;
    uint32_t at = map_slot(map, key, &found);
    if (!found)
        return false;
    map->state[at] = SLOT_REMOVED;
    map->len--;
    return true;
}

void tn_map_free(tn_heap *heap, tn_map *map) {
    tn_free(heap, map->slots);
    tn_free(heap, map->state);
    *map = (tn_map){0};
}

/* ---- ids by a caller's hash ---- */

static uint32_t fold32(uint64_t hash) {
    return (uint32_t)(hash ^ hash >> 32);
}

uint32_t tn_idset_find(const tn_idset *set, uint64_t hash, bool (*equal)(const void *ctx, uint32_t id),
                       const void *ctx) {
    if (set->len == 0)
        return 0;
    uint32_t folded = fold32(hash), mask = set->cap - 1;
    for (uint32_t at = folded & mask; set->slots[at].id; at = (at + 1) & mask)
        if (set->slots[at].hash == folded && equal(ctx, set->slots[at].id))
            return set->slots[at].id;
    return 0;
}

static void idset_fill(tn_idset *set, uint32_t folded, uint32_t id) {
    uint32_t mask = set->cap - 1, at = folded & mask;
    while (set->slots[at].id)
        at = (at + 1) & mask;
    set->slots[at].id = id;
    set->slots[at].hash = folded;
    set->len++;
}

/* Moves to a table of `cap` slots. */
static bool idset_move(tn_heap *heap, tn_idset *set, uint32_t cap) {
    tn_idset moved = {.cap = cap};
    moved.slots = tn_alloc_array(heap, moved.cap, sizeof *moved.slots);
    if (!moved.slots)
        return false;
    for (uint32_t i = 0; i < set->cap; i++)
        if (set->slots[i].id)
            idset_fill(&moved, set->slots[i].hash, set->slots[i].id);
    tn_idset_free(heap, set);
    *set = moved;
    return true;
}

bool tn_idset_reserve(tn_heap *heap, tn_idset *set, uint32_t extra) {
    uint64_t wanted = ((uint64_t)set->len + extra) * 4;
    uint32_t cap = set->cap ? set->cap : 16;
    while (wanted > (uint64_t)cap * 3) {
        if (cap >= LARGEST_CAP) {
            tn_fail(TN_ERR_LIMIT, "too large: a set of %u ids", set->len);
            return false;
        }
        cap *= 2;
    }
    return cap == set->cap || idset_move(heap, set, cap);
}

bool tn_idset_add(tn_heap *heap, tn_idset *set, uint64_t hash, uint32_t id) {
    if ((uint64_t)(set->len + 1) * 4 > (uint64_t)set->cap * 3 && !tn_idset_reserve(heap, set, 1))
        return false;
    idset_fill(set, fold32(hash), id);
    return true;
}

void tn_idset_free(tn_heap *heap, tn_idset *set) {
    tn_free(heap, set->slots);
    *set = (tn_idset){0};
}
