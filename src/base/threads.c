/* SPDX-License-Identifier: Apache-2.0 */
#include "base/threads.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"

/* The thread sanitizer keeps its state (0.9 MB) on the stack. */
#if defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum {
    STACK_BYTES = SANITIZED ? 2 << 20 : 128 << 10,
    SPIN_NS = 50 * 1000, /* cpu-kernels.md 4.5: spin 20-50 us, then futex       */
    SPIN_BATCH = 64,     /* pauses between two looks at the clock               */
    PIECES = 8,          /* of each thread's range: what is left when one lags  */
};

/* Whose units they are at first; anybody may take the next piece. */
typedef struct {
    _Alignas(64) _Atomic uint32_t next;
    uint32_t end, piece;
} range;

typedef struct {
    aeg_team *team;
    uint32_t thread;
    pthread_t handle;
} worker;

struct aeg_team {
    uint32_t n_threads;
    uint32_t n_started;
    worker *workers;
    /* The job: written while no worker is inside, before `ticket` becomes odd. */
    aeg_work work;
    void *ctx;
    range *ranges;   /* [n_threads] */
    bool stop;
    _Alignas(64) _Atomic uint32_t ticket; /* odd: a job is open; every job has its own number */
    _Alignas(64) _Atomic uint32_t inside; /* workers that may be reading the job              */
    _Atomic uint32_t sleepers;            /* workers asleep on ticket                         */
    _Atomic uint32_t caller_sleeps;       /* the caller is asleep on inside                   */
    _Atomic uint32_t n_active;
    _Atomic uint32_t idle;                /* workers out of use that may be asleep on n_active */
};

static inline void cpu_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static bool is_open(uint32_t ticket) { return ticket % 2 == 1; }

/* Wait for a job that this worker has not seen. */
static void wait_job(aeg_team *team, uint32_t seen)
{
    const uint64_t start = aeg_now_ns();
    do {
        for (int i = 0; i < SPIN_BATCH; i++) {
            const uint32_t ticket = atomic_load_explicit(&team->ticket, memory_order_acquire);
            if (is_open(ticket) && ticket != seen)
                return;
            cpu_pause();
        }
    } while (aeg_now_ns() - start < SPIN_NS);
    /* Sequentially consistent on both sides: the caller stores the ticket and then reads `sleepers`, we count
     * ourselves and then re-read the ticket (inside futex_wait too). */
    atomic_fetch_add(&team->sleepers, 1);
    for (;;) {
        const uint32_t ticket = atomic_load(&team->ticket);
        if (is_open(ticket) && ticket != seen)
            break;
        futex_wait(&team->ticket, ticket);
    }
    atomic_fetch_sub(&team->sleepers, 1);
}

/* Until no worker is inside the job. */
static void wait_outside(aeg_team *team)
{
    const uint64_t start = aeg_now_ns();
    do {
        for (int i = 0; i < SPIN_BATCH; i++) {
            if (atomic_load(&team->inside) == 0)
                return;
            cpu_pause();
        }
    } while (aeg_now_ns() - start < SPIN_NS);
    atomic_store(&team->caller_sleeps, 1);
    for (uint32_t n = atomic_load(&team->inside); n != 0; n = atomic_load(&team->inside))
        futex_wait(&team->inside, n);
    atomic_store(&team->caller_sleeps, 0);
}

/* Relaxed: the job itself was published by the ticket, and what the pieces wrote is by `inside`. */
static void run_range(const aeg_team *team, range *r, uint32_t thread)
{
    while (atomic_load_explicit(&r->next, memory_order_relaxed) < r->end) {
        const uint32_t begin = atomic_fetch_add_explicit(&r->next, r->piece, memory_order_relaxed);
        if (begin >= r->end)
            return;
        team->work(team->ctx, begin, AEG_MIN(r->end, begin + r->piece), thread);
    }
}

/* Its own pieces first: they are next to each other in memory. */
static void run_pieces(aeg_team *team, uint32_t thread)
{
    const uint32_t n_active = atomic_load_explicit(&team->n_active, memory_order_relaxed);
    if (thread >= n_active)
        return;
    for (uint32_t k = 0; k < n_active; k++)
        run_range(team, &team->ranges[(thread + k) % n_active], thread);
}

/* A worker out of use sleeps until it is wanted again. */
static void wait_use(aeg_team *team, uint32_t thread)
{
    uint32_t n_active;
    if (atomic_load(&team->n_active) > thread)
        return;
    /* As in wait_job: we count ourselves and then read n_active again, aeg_team_use stores it and then reads `idle`. */
    atomic_fetch_add(&team->idle, 1);
    while ((n_active = atomic_load(&team->n_active)) <= thread)
        futex_wait(&team->n_active, n_active);
    atomic_fetch_sub(&team->idle, 1);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    aeg_team *team = w->team;
    uint32_t seen = 0;
    for (;;) {
        wait_use(team, w->thread);
        wait_job(team, seen);
        /* Count ourselves in, then look again: the caller closes the job and then reads `inside`. Either it sees us,
         * or we see that the job is over. */
        atomic_fetch_add(&team->inside, 1);
        const uint32_t ticket = atomic_load(&team->ticket);
        const bool open = is_open(ticket) && ticket != seen;
        const bool stop = open && team->stop;
        if (open && !stop)
            run_pieces(team, w->thread);
        seen = open ? ticket : seen;
        if (atomic_fetch_sub(&team->inside, 1) == 1 && atomic_load(&team->caller_sleeps) != 0)
            futex_wake_all(&team->inside);
        if (stop)
            return NULL;
    }
}

static void open_job(aeg_team *team)
{
    atomic_fetch_add(&team->ticket, 1);
    if (atomic_load(&team->sleepers) > 0)
        futex_wake_all(&team->ticket);
}

aegis_status aeg_team_init(aeg_team **out, aeg_arena *arena, uint32_t n_threads, aegis_error *err)
{
    if (n_threads < 1 || n_threads > AEG_MAX_THREADS)
        return aeg_fail(err, AEGIS_E_USAGE, "threads: %u, expected 1 to %d", n_threads, AEG_MAX_THREADS);

    aeg_team *team = AEG_ARENA_ARRAY(arena, aeg_team, 1);
    worker *workers = AEG_ARENA_ARRAY(arena, worker, n_threads);
    range *ranges = AEG_ARENA_ARRAY(arena, range, n_threads);
    uint8_t *stacks = aeg_arena_alloc(arena, (uint64_t)(n_threads - 1) * STACK_BYTES, AEG_PAGE);
    if (aeg_arena_measuring(arena))
        return AEGIS_OK;
    AEG_TRY(aeg_arena_check(arena, err));

    team->n_threads = n_threads;
    team->n_active = n_threads;
    team->workers = workers;
    team->ranges = ranges;
    for (uint32_t i = 1; i < n_threads; i++) {
        workers[i] = (worker){ .team = team, .thread = i };
        pthread_attr_t attr;
        pthread_attr_init(&attr);
        pthread_attr_setstack(&attr, stacks + (uint64_t)(i - 1) * STACK_BYTES, STACK_BYTES);
        const int rc = pthread_create(&workers[i].handle, &attr, worker_main, &workers[i]);
        pthread_attr_destroy(&attr);
        if (rc != 0) {
            aeg_team_close(team);
            return aeg_fail_os(err, AEGIS_E_RUNTIME, rc, "starting thread %u of %u", i + 1, n_threads);
        }
        team->n_started++;
    }
    *out = team;
    return AEGIS_OK;
}

void aeg_team_close(aeg_team *team)
{
    if (team == NULL)
        return;
    aeg_team_use(team, team->n_threads);
    team->stop = true;
    open_job(team);
    for (uint32_t i = 1; i <= team->n_started; i++)
        pthread_join(team->workers[i].handle, NULL);
    team->n_started = 0;
}

uint32_t aeg_team_size(const aeg_team *team) { return team == NULL ? 1 : team->n_threads; }
uint32_t aeg_team_in_use(const aeg_team *team)
{
    /* relaxed: only the caller changes it */
    return team == NULL ? 1 : atomic_load_explicit(&team->n_active, memory_order_relaxed);
}

void aeg_team_use(aeg_team *team, uint32_t n_active)
{
    const uint32_t before = aeg_team_in_use(team);
    if (n_active == before)
        return; /* also every call for a NULL team */
    atomic_store(&team->n_active, n_active);
    if (n_active > before && atomic_load(&team->idle) > 0)
        futex_wake_all(&team->n_active);
}

static void cut(aeg_team *team, uint32_t n, uint32_t grain, uint32_t n_active)
{
    for (uint64_t t = 0; t < n_active; t++) {
        range *r = &team->ranges[t];
        const uint32_t begin = (uint32_t)(n * t / n_active);
        r->end = (uint32_t)(n * (t + 1) / n_active);
        r->piece = AEG_MAX(grain, (r->end - begin) / PIECES);
        atomic_store_explicit(&r->next, begin, memory_order_relaxed);
    }
}

void aeg_team_run(aeg_team *team, uint32_t n, aeg_work work, void *ctx) { aeg_team_run_grain(team, n, 1, work, ctx); }

void aeg_team_run_grain(aeg_team *team, uint32_t n, uint32_t grain, aeg_work work, void *ctx)
{
    if (n == 0)
        return;
    const uint32_t n_active = aeg_team_in_use(team);
    if (n_active == 1 || n == 1) {
        work(ctx, 0, n, 0);
        return;
    }
    team->work = work;
    team->ctx = ctx;
    cut(team, n, AEG_MAX(grain, 1u), n_active);
    open_job(team);
    run_pieces(team, 0);
    atomic_fetch_add(&team->ticket, 1);
    wait_outside(team);
}
