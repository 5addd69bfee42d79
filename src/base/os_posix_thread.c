/* Threads, mutexes, parking and fork over pthreads. */
#define _GNU_SOURCE
#include "base/error.h"
#include "base/os_thread.h"
#include "base/pool.h"

#include <fenv.h>
#include <signal.h>
#include <stdatomic.h>

bool tn_park_init(tn_park *park) {
    if (pthread_mutex_init(&park->mutex, NULL) == 0) {
        if (pthread_cond_init(&park->cond, NULL) == 0)
            return true;
        pthread_mutex_destroy(&park->mutex);
    }
    tn_fail(TN_ERR_MEMORY, "the system refuses a mutex");
    return false;
}

void tn_park_destroy(tn_park *park) {
    pthread_cond_destroy(&park->cond);
    pthread_mutex_destroy(&park->mutex);
}

void tn_park_lock(tn_park *park) {
    pthread_mutex_lock(&park->mutex);
}

void tn_park_unlock(tn_park *park) {
    pthread_mutex_unlock(&park->mutex);
}

void tn_park_wait(tn_park *park) {
    pthread_cond_wait(&park->cond, &park->mutex);
}

void tn_park_wake_one(tn_park *park) {
    pthread_cond_signal(&park->cond);
}

void tn_park_wake_all(tn_park *park) {
    pthread_cond_broadcast(&park->cond);
}

/* ---- threads ---- */

/* What a new thread is to do; the starter keeps it until the thread has read it. */
typedef struct start {
    void (*body)(void *arg);
    void *arg;
    tn_park park;
    bool taken;
} start;

static void *run_thread(void *arg) {
    start *from = arg;
    tn_park_lock(&from->park);
    void (*body)(void *) = from->body;
    void *body_arg = from->arg;
    from->taken = true;
    tn_park_wake_one(&from->park);
    tn_park_unlock(&from->park);
#if defined(__linux__)
    pthread_setname_np(pthread_self(), "tenon");
#endif
    fesetenv(FE_DFL_ENV); /* not the rounding or flush-to-zero mode of the thread that started it */
    body(body_arg);
    return NULL;
}

bool tn_thread_start(tn_thread *thread, void (*body)(void *arg), void *arg) {
    start from = {.body = body, .arg = arg};
    sigset_t all, before;
    if (!tn_park_init(&from.park))
        return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread->handle, NULL, run_thread, &from) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started) {
        tn_park_lock(&from.park);
        while (!from.taken)
            tn_park_wait(&from.park);
        tn_park_unlock(&from.park);
    }
    tn_park_destroy(&from.park);
    return started;
}

void tn_thread_join(tn_thread *thread) {
    pthread_join(thread->handle, NULL);
}

/* ---- fork ---- */

static atomic_uint_fast64_t forks;
static bool watching;

static void after_fork(void) {
    atomic_fetch_add(&forks, 1);
}

static void watch(void) {
    watching = pthread_atfork(NULL, NULL, after_fork) == 0;
}

bool tn_fork_watch(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
    if (!watching)
        tn_fail(TN_ERR_MEMORY, "the system refuses to watch for forks");
    return watching;
}

uint64_t tn_fork_count(void) {
    return atomic_load(&forks);
}

/* ---- mutexes ---- */

struct tn_mutex {
    pthread_mutex_t mutex;
};

tn_mutex *tn_mutex_create(tn_heap *heap) {
    tn_mutex *mutex = tn_alloc(heap, sizeof *mutex);
    if (mutex && pthread_mutex_init(&mutex->mutex, NULL) != 0) {
        tn_free(heap, mutex);
        tn_fail(TN_ERR_MEMORY, "the system refuses a mutex");
        return NULL;
    }
    return mutex;
}

void tn_mutex_destroy(tn_heap *heap, tn_mutex *mutex) {
    if (!mutex)
        return;
    pthread_mutex_destroy(&mutex->mutex);
    tn_free(heap, mutex);
}

void tn_mutex_lock(tn_mutex *mutex) {
    pthread_mutex_lock(&mutex->mutex);
}

void tn_mutex_unlock(tn_mutex *mutex) {
    pthread_mutex_unlock(&mutex->mutex);
}
