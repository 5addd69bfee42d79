/* Threads, parking and fork: what pool.c needs from the operating system. */
#ifndef TN_BASE_OS_THREAD_H
#define TN_BASE_OS_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* A place where threads park until another wakes them. */
typedef struct tn_park {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
} tn_park;

bool tn_park_init(tn_park *park); /* false with the error set */
void tn_park_destroy(tn_park *park);
void tn_park_lock(tn_park *park);
void tn_park_unlock(tn_park *park);
void tn_park_wait(tn_park *park); /* locked before and after; may return for no reason */
void tn_park_wake_one(tn_park *park);
void tn_park_wake_all(tn_park *park);

typedef struct tn_thread {
    pthread_t handle;
} tn_thread;

/* Starts body(arg) with all signals blocked, so that the host's handlers run on the host's threads, and in the default
   floating-point mode. False when the system refuses (no error is set). */
bool tn_thread_start(tn_thread *thread, void (*body)(void *arg), void *arg);
void tn_thread_join(tn_thread *thread);

/* How often this process came out of a fork since tn_fork_watch was first called. */
bool tn_fork_watch(void);
uint64_t tn_fork_count(void);

/* Tells the processor that this is a spin loop. */
static inline void tn_cpu_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
