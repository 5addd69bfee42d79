/* XXH64, as its specification describes it: four lanes of 8 bytes each, mixed at the end. */
#include "base/checksum.h"

#include <string.h>

#define P1 0x9E3779B185EBCA87u
#define P2 0xC2B2AE3D27D4EB4Fu
#define P3 0x165667B19E3779F9u
#define P4 0x85EBCA77C2B2AE63u
#define P5 0x27D4EB2F165667C5u

static uint64_t rotate(uint64_t x, int by) {
    return x << by | x >> (64 - by);
}

static uint64_t load64(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static uint64_t load32(const uint8_t *at) {
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static uint64_t mix(uint64_t lane, uint64_t word) {
    return rotate(lane + word * P2, 31) * P1;
}

/* Takes `count` blocks of 32 bytes. */
static void take_blocks(uint64_t lane[4], const uint8_t *at, size_t count) {
    uint64_t a = lane[0], b = lane[1], c = lane[2], d = lane[3];
    for (; count; count--, at += 32) {
        a = mix(a, load64(at));
        b = mix(b, load64(at + 8));
        c = mix(c, load64(at + 16));
        d = mix(d, load64(at + 24));
    }
    lane[0] = a;
    lane[1] = b;
    lane[2] = c;
    lane[3] = d;
}

void tn_checksum_begin(tn_checksum *sum) {
    *sum = (tn_checksum){.lane = {P1 + P2, P2, 0, 0 - P1}};
}

void tn_checksum_add(tn_checksum *sum, const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    size_t held = (size_t)(sum->size % 32);
    sum->size += size;
    if (held) {
        size_t more = size < 32 - held ? size : 32 - held;
        if (more)
            memcpy(sum->tail + held, at, more);
        at += more;
        size -= more;
        if (held + more < 32)
            return;
        take_blocks(sum->lane, sum->tail, 1);
    }
    take_blocks(sum->lane, at, size / 32);
    if (size % 32)
        memcpy(sum->tail, at + size / 32 * 32, size % 32);
}

uint64_t tn_checksum_end(const tn_checksum *sum) {
    const uint64_t *lane = sum->lane;
    uint64_t h = P5;
    if (sum->size >= 32) {
        h = rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
        for (int i = 0; i < 4; i++)
            h = (h ^ mix(0, lane[i])) * P1 + P4;
    }
    h += sum->size;
    const uint8_t *at = sum->tail;
    size_t left = (size_t)(sum->size % 32);
    for (; left >= 8; at += 8, left -= 8)
        h = rotate(h ^ mix(0, load64(at)), 27) * P1 + P4;
    if (left >= 4) {
        h = rotate(h ^ load32(at) * P1, 23) * P2 + P3;
        at += 4;
        left -= 4;
    }
    for (; left; at++, left--)
        h = rotate(h ^ *at * P5, 11) * P1;
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}

uint64_t tn_checksum_of(const void *bytes, size_t size) {
    tn_checksum sum;
    tn_checksum_begin(&sum);
    if (size)
        tn_checksum_add(&sum, bytes, size);
    return tn_checksum_end(&sum);
}
