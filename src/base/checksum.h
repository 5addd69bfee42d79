/* The checksum of saved files: XXH64 with seed 0. Finds damage; it does not protect against intent. */
#ifndef TN_BASE_CHECKSUM_H
#define TN_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

typedef struct tn_checksum {
    uint64_t lane[4];
    uint64_t size; /* bytes so far */
    uint8_t tail[32];
} tn_checksum;

void tn_checksum_begin(tn_checksum *sum);
void tn_checksum_add(tn_checksum *sum, const void *bytes, size_t size);
uint64_t tn_checksum_end(const tn_checksum *sum); /* may be called in between */
uint64_t tn_checksum_of(const void *bytes, size_t size);

#endif
