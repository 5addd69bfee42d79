/* The thread pool: one job at a time, its pieces claimed from a counter by the caller and by parked or spinning workers.

   A worker counts itself in (`inside`) before it looks whether a job is open, and the caller closes the job before it
   looks whether somebody is inside; both in sequentially consistent order, so either the caller waits for the worker or
   the worker finds the job closed. A worker that is slow to wake up therefore never delays a job that the others have
   finished. Parking uses the same pattern: a thread announces that it parks and looks again before it does. */
#include "base/error.h"
#include "base/os.h"
#include "base/os_thread.h"
#include "base/pool.h"

#include <stdatomic.h>

/* Waking a parked thread costs 33 to 50 us; spinning longer than about that starves the neighbours. Between the calls of a task the next
   one is near: networks whose kernels take 10 to 100 us each lose 10 to 20 % to waking otherwise. */
#define SPIN_MICROSECONDS 30
#define TASK_MICROSECONDS 300
#define LARGEST_POOL 1024

/* The contended counters have cache lines of their own. */
struct tn_pool { // NOLINT(clang-analyzer-optin.performance.Padding)
    tn_heap *heap;
    int threads;
    int workers;            /* running ones; changed only by the owner of a run */
    bool refused;           /* the system refused a thread: more are not asked for */
    bool spins;             /* it is wanted, and there are enough processors for every thread */
    bool idle;              /* runs nothing */
    double spin, task_spin; /* seconds */
    tn_thread *handles;

    /* The fork count the pool was built for, times two; plus one while it is being rebuilt for it. */
    atomic_uint_fast64_t epoch;
    atomic_bool busy; /* a run owns the workers */

    atomic_uint_fast64_t rounds; /* jobs opened so far, and one more to quit */
    atomic_uint_fast64_t jobs;   /* of them */
    atomic_bool open, quit;
    atomic_int inside; /* workers that may touch the job */
    atomic_int tasks;  /* begun and not ended */
    void (*run)(void *ctx, int64_t piece);
    void *ctx;
    int64_t pieces;
    bool ends; /* see tn_pool_run_ends */
    /* Pieces claimed: of all, and of those from the first on and from the last on. */
    _Alignas(64) atomic_int_fast64_t claimed, front, back;

    _Alignas(64) atomic_int parked; /* workers that park or are about to */
    atomic_bool caller_parks;
    tn_park worker_park, caller_park;
};

static void reset(tn_pool *pool) {
    pool->workers = 0;
    pool->refused = false;
    atomic_store(&pool->busy, false);
    atomic_store(&pool->open, false);
    atomic_store(&pool->quit, false);
    atomic_store(&pool->inside, 0);
    atomic_store(&pool->tasks, 0);
    atomic_store(&pool->parked, 0);
    atomic_store(&pool->caller_parks, false);
}

tn_pool *tn_pool_create(tn_heap *heap, int threads) {
    if (threads < 1 || threads > LARGEST_POOL) {
        tn_fail(TN_ERR_USAGE, "a pool of %d threads was asked for", threads);
        tn_fail_hint("1 to %d threads", LARGEST_POOL);
        return NULL;
    }
    if (threads > 1 && !tn_fork_watch())
        return NULL;
    tn_pool *pool = tn_alloc_aligned(heap, sizeof *pool, 64);
    if (!pool)
        return NULL;
    *pool = (tn_pool){.heap = heap, .threads = threads};
    tn_pool_spin(pool, 0);
    reset(pool);
    atomic_init(&pool->epoch, tn_fork_count() * 2);
    pool->handles = tn_alloc_array(heap, (size_t)threads, sizeof *pool->handles);
    if (!pool->handles || !tn_park_init(&pool->worker_park)) {
        tn_free(heap, pool->handles);
        tn_free(heap, pool);
        return NULL;
    }
    if (!tn_park_init(&pool->caller_park)) {
        tn_park_destroy(&pool->worker_park);
        tn_free(heap, pool->handles);
        tn_free(heap, pool);
        return NULL;
    }
    return pool;
}

void tn_pool_spin(tn_pool *pool, int microseconds) {
    pool->spin = 1e-6 * (microseconds ? microseconds : SPIN_MICROSECONDS);
    pool->task_spin = microseconds ? pool->spin : 1e-6 * TASK_MICROSECONDS;
    pool->spins = microseconds >= 0 && pool->threads <= tn_cpu_count();
}

void tn_pool_idle(tn_pool *pool, bool idle) {
    if (pool)
        pool->idle = idle;
}

int tn_pool_threads(const tn_pool *pool) {
    return pool ? pool->threads : 1;
}

static void work(tn_pool *pool, bool worker) {
    int64_t pieces = pool->pieces;
    bool last = worker && pool->ends;
    while (atomic_fetch_add_explicit(&pool->claimed, 1, memory_order_relaxed) < pieces) {
        int64_t piece = atomic_fetch_add_explicit(last ? &pool->back : &pool->front, 1, memory_order_relaxed);
        pool->run(pool->ctx, last ? pieces - 1 - piece : piece);
    }
}

/* How long a thread has spun: in all, and since no task was under way. */
typedef struct spinning {
    double start, idle;
} spinning;

static spinning spin_begin(const tn_pool *pool) {
    double now = pool->spins ? tn_clock() : 0;
    return (spinning){now, now};
}

static bool spins_on(const tn_pool *pool, spinning *s) {
    if (!pool->spins)
        return false;
    double now = tn_clock();
    if (atomic_load_explicit(&pool->tasks, memory_order_relaxed) > 0)
        s->idle = now;
    return now - s->idle < pool->spin && now - s->start < pool->task_spin;
}

/* Spins until there is another round than `from`, for a while. */
static bool spin_while_round(const tn_pool *pool, uint64_t from) {
    if (!pool->spins)
        return atomic_load(&pool->rounds) != from;
    for (spinning s = spin_begin(pool);;) {
        for (int i = 0; i < 64; i++) {
            if (atomic_load_explicit(&pool->rounds, memory_order_acquire) != from)
                return true;
            tn_cpu_relax();
        }
        if (!spins_on(pool, &s))
            return false;
    }
}

static bool spin_while_inside(const tn_pool *pool) {
    for (spinning s = spin_begin(pool);;) {
        for (int i = 0; i < 64; i++) {
            if (atomic_load(&pool->inside) == 0)
                return true;
            tn_cpu_relax();
        }
        if (!spins_on(pool, &s))
            return false;
    }
}

static void worker(void *arg) {
    tn_pool *pool = arg;
    uint64_t round = 0; /* the last round it looked at; a pool starts with round 1 */
    for (;;) {
        if (!spin_while_round(pool, round)) {
            tn_park_lock(&pool->worker_park);
            atomic_fetch_add(&pool->parked, 1);
            while (atomic_load(&pool->rounds) == round)
                tn_park_wait(&pool->worker_park);
            atomic_fetch_sub(&pool->parked, 1);
            tn_park_unlock(&pool->worker_park);
        }
        round = atomic_load(&pool->rounds);
        if (atomic_load(&pool->quit))
            return;
        atomic_fetch_add(&pool->inside, 1);
        if (atomic_load(&pool->open))
            work(pool, true);
        if (atomic_fetch_sub(&pool->inside, 1) == 1 && atomic_load(&pool->caller_parks)) {
            tn_park_lock(&pool->caller_park);
            tn_park_wake_all(&pool->caller_park);
            tn_park_unlock(&pool->caller_park);
        }
    }
}

static void start_workers(tn_pool *pool, int wanted) {
    while (pool->workers < wanted && !pool->refused) {
        if (tn_thread_start(&pool->handles[pool->workers], worker, pool))
            pool->workers++;
        else
            pool->refused = true; /* computing on fewer threads gives the same results */
    }
}

/* Opens the job to the workers and wakes `helpers` of those that are parked. */
static void announce(tn_pool *pool, int helpers) {
    atomic_fetch_add(&pool->rounds, 1);
    if (atomic_load(&pool->parked) == 0)
        return;
    tn_park_lock(&pool->worker_park);
    int parked = atomic_load(&pool->parked);
    if (helpers >= parked)
        tn_park_wake_all(&pool->worker_park);
    else
        for (int i = 0; i < helpers; i++)
            tn_park_wake_one(&pool->worker_park);
    tn_park_unlock(&pool->worker_park);
}

/* After a fork the workers are gone and what they held is in an unknown state: starts anew. False while another thread
   does that. */
static bool rebuild_after_fork(tn_pool *pool) {
    uint64_t wanted = tn_fork_count() * 2;
    uint_fast64_t epoch = atomic_load(&pool->epoch);
    if (epoch == wanted)
        return true;
    if (epoch == wanted + 1 || !atomic_compare_exchange_strong(&pool->epoch, &epoch, wanted + 1))
        return false;
    reset(pool);
    bool whole = tn_park_init(&pool->worker_park) && tn_park_init(&pool->caller_park);
    if (!whole)
        pool->refused = true;
    atomic_store(&pool->epoch, wanted);
    return whole;
}

tn_pool_task tn_pool_task_begin(tn_pool *pool, bool shared) {
    if (!pool || pool->threads == 1)
        return (tn_pool_task){0};
    atomic_fetch_add(&pool->tasks, 1);
    if (shared && pool->spins)
        announce(pool, pool->threads - 1);
    return (tn_pool_task){atomic_load_explicit(&pool->jobs, memory_order_relaxed)};
}

bool tn_pool_task_end(tn_pool *pool, tn_pool_task task) {
    if (!pool || pool->threads == 1)
        return false;
    atomic_fetch_sub(&pool->tasks, 1);
    return atomic_load_explicit(&pool->jobs, memory_order_relaxed) != task.jobs;
}

static void run_alone(int64_t pieces, void (*run)(void *ctx, int64_t piece), void *ctx) {
    for (int64_t piece = 0; piece < pieces; piece++)
        run(ctx, piece);
}

static void run_pieces(tn_pool *pool, int64_t pieces, bool ends, void (*run)(void *ctx, int64_t piece), void *ctx) {
    if (pool && pool->idle)
        return;
    if (!pool || pool->threads == 1 || pieces <= 1 || !rebuild_after_fork(pool) || atomic_exchange(&pool->busy, true)) {
        run_alone(pieces, run, ctx);
        return;
    }
    int helpers = pieces - 1 < pool->threads - 1 ? (int)(pieces - 1) : pool->threads - 1;
    start_workers(pool, helpers);
    if (pool->workers == 0) {
        atomic_store(&pool->busy, false);
        run_alone(pieces, run, ctx);
        return;
    }
    pool->run = run;
    atomic_fetch_add_explicit(&pool->jobs, 1, memory_order_relaxed);
    pool->ctx = ctx;
    pool->pieces = pieces;
    pool->ends = ends;
    atomic_store(&pool->claimed, 0);
    atomic_store(&pool->front, 0);
    atomic_store(&pool->back, 0);
    atomic_store(&pool->open, true);
    announce(pool, helpers);
    work(pool, false);
    atomic_store(&pool->open, false);
    if (!spin_while_inside(pool)) {
        tn_park_lock(&pool->caller_park);
        atomic_store(&pool->caller_parks, true);
        while (atomic_load(&pool->inside) != 0)
            tn_park_wait(&pool->caller_park);
        atomic_store(&pool->caller_parks, false);
        tn_park_unlock(&pool->caller_park);
    }
    atomic_store(&pool->busy, false);
}

void tn_pool_run(tn_pool *pool, int64_t pieces, void (*run)(void *ctx, int64_t piece), void *ctx) {
    run_pieces(pool, pieces, false, run, ctx);
}

void tn_pool_run_ends(tn_pool *pool, int64_t pieces, void (*run)(void *ctx, int64_t piece), void *ctx) {
    run_pieces(pool, pieces, true, run, ctx);
}

void tn_pool_destroy(tn_pool *pool) {
    if (!pool)
        return;
    if (atomic_load(&pool->epoch) == tn_fork_count() * 2) {
        atomic_store(&pool->quit, true);
        announce(pool, pool->threads);
        for (int i = 0; i < pool->workers; i++)
            tn_thread_join(&pool->handles[i]);
        tn_park_destroy(&pool->caller_park);
        tn_park_destroy(&pool->worker_park);
    }
    tn_free(pool->heap, pool->handles);
    tn_free(pool->heap, pool);
}
