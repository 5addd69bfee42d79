/* Unpredictable bits. */
#define _GNU_SOURCE
#include "base/map.h"
#include "base/os.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/random.h>
#endif

uint64_t tn_random_seed(void) {
    uint64_t seed = 0;
#if defined(__linux__)
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
        return seed;
    struct timespec now = {0}; /* early in the boot, or a sandbox without the call: time and address layout */
    clock_gettime(CLOCK_MONOTONIC, &now);
    seed = tn_hash_mix((uint64_t)now.tv_nsec, (uint64_t)now.tv_sec ^ (uint64_t)(uintptr_t)&now);
    return tn_hash_mix(seed, (uint64_t)getpid());
#else
    arc4random_buf(&seed, sizeof seed);
    return seed;
#endif
}
