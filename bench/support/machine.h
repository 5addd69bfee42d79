/* What this machine can do, measured: the yardstick that stands beside every figure of bench/. Machines are shared and noisy, so a
   figure and its yardstick are taken in turns, and best is compared with best. */
#ifndef BENCH_SUPPORT_MACHINE_H
#define BENCH_SUPPORT_MACHINE_H

#include <stdint.h>

/* f32 multiply-adds a second, counted as two operations each, with the widest vectors of the CPU on `threads` threads at once; best
   of `rounds` rounds of some milliseconds. */
double machine_multiply_add_rate(int threads, int rounds);
/* Bytes read a second by one thread that reads a block of `bytes` again and again; best of `rounds`. */
double machine_read_rate(int64_t bytes, int rounds);
/* Bytes read and written a second by memcpy of 16 MiB; best of `rounds`. */
double machine_copy_rate(int rounds);
/* Seconds until a sleeping thread runs that another one wakes: median of many. */
double machine_wake_time(void);
/* Seconds of the first write to a page that is mapped anew. */
double machine_page_time(void);

/* All of it, on stdout. */
void machine_print(int threads);

#endif
