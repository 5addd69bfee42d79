/* Threads. A pool runs fixed pieces of work on its workers and the caller; which thread takes a piece never changes results. */
#ifndef TN_BASE_POOL_H
#define TN_BASE_POOL_H

#include "base/heap.h"

typedef struct tn_pool tn_pool;
/* A pool that computes on `threads` threads, the caller counted (1: no worker is started). Workers are started on first
   use, spin for at most tens of microseconds, then park. Survives fork: the child rebuilds its workers on first use. */
tn_pool *tn_pool_create(tn_heap *heap, int threads);
void tn_pool_destroy(tn_pool *pool);
/* For how long workers look for the next call, and a caller for the last piece, before they park; below 0: not at all, 0: the default,
   30 us. Where there are fewer processors than threads, none spins. Not during a run. */
void tn_pool_spin(tn_pool *pool, int microseconds);
/* While it is idle, nothing is run: what callers allocate around it can be measured. Not during a run. NULL is fine. */
void tn_pool_idle(tn_pool *pool, bool idle);
int tn_pool_threads(const tn_pool *pool); /* NULL pool: 1 */
/* Calls run(ctx, piece) once for each piece in [0, pieces), in any order, on any thread; returns when all are done.
   A call made while another thread's call is running, or from inside a piece, runs on the calling thread alone. NULL pool: serial. */
void tn_pool_run(tn_pool *pool, int64_t pieces, void (*run)(void *ctx, int64_t piece), void *ctx);
/* The same; but the caller takes pieces from the first on, and others from the last on: who makes a part of a value mostly makes what is made of
   it in the next such run, and finds it in its own caches. */
void tn_pool_run_ends(tn_pool *pool, int64_t pieces, void (*run)(void *ctx, int64_t piece), void *ctx);

/* A task: several such calls, one soon after the other. Until it ends, threads that wait spin for longer (300 us, where tn_pool_spin says nothing
   else); if it is `shared`, parked workers wake up at its begin, not at its first call. Tasks of several threads may overlap, and the one that
   forks is not ended in the child. */
typedef struct tn_pool_task {
    uint64_t jobs;
} tn_pool_task;
tn_pool_task tn_pool_task_begin(tn_pool *pool, bool shared);
/* Whether calls were made on several threads meanwhile: what a like task may be told at its begin. */
bool tn_pool_task_end(tn_pool *pool, tn_pool_task task);

typedef struct tn_mutex tn_mutex;
tn_mutex *tn_mutex_create(tn_heap *heap);
void tn_mutex_destroy(tn_heap *heap, tn_mutex *mutex);
void tn_mutex_lock(tn_mutex *mutex);
void tn_mutex_unlock(tn_mutex *mutex);

#endif
