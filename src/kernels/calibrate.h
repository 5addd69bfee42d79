/* What this machine reaches at best, measured in a few milliseconds: the yardstick of `tenon bench` and of bench/. */
#ifndef TN_KERNELS_CALIBRATE_H
#define TN_KERNELS_CALIBRATE_H

#include "base/os.h"
#include "base/pool.h"

/* f32 operations a second (a multiply-add is two) at an instruction-set level, on all threads of the pool; best of `rounds`, each of
   about a millisecond. */
double tn_calibrate_operations(tn_isa isa, tn_pool *pool, int rounds);
/* Bytes read and written a second by copies of `bytes` bytes on all threads of the pool; best of `rounds`. 0: out of memory. */
double tn_calibrate_copy(tn_pool *pool, size_t bytes, int rounds);

#endif
