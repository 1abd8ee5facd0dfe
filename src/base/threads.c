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
    SPIN_NS = 50 * 1000, /* cpu-kernels.md 4.5: spin 20-50 us, then futex */
    SPIN_BATCH = 64,     /* pauses between two looks at the clock         */
};

typedef struct {
    aeg_team *team;
    uint32_t thread;
    pthread_t handle;
} worker;

struct aeg_team {
    uint32_t n_threads;
    uint32_t n_started;
    worker *workers;
    aeg_work work;   /* written before `generation` is released */
    void *ctx;
    uint32_t n;
    bool stop;
    _Alignas(64) _Atomic uint32_t generation; /* release by run(), acquire by the workers   */
    _Alignas(64) _Atomic uint32_t pending;    /* release by the workers, acquire by run()   */
    _Atomic uint32_t sleepers;
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

/* Wait until *word differs from `seen`: spin, then sleep. */
static void wait_change(aeg_team *team, _Atomic uint32_t *word, uint32_t seen)
{
    const uint64_t start = aeg_now_ns();
    for (;;) {
        for (int i = 0; i < SPIN_BATCH; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != seen)
                return;
            cpu_pause();
        }
        if (aeg_now_ns() - start > SPIN_NS)
            break;
    }
    /* Sequentially consistent on both sides: the waker stores the word and then reads
     * `sleepers`, we count ourselves and then re-read the word (inside futex_wait). */
    atomic_fetch_add(&team->sleepers, 1);
    while (atomic_load(word) == seen)
        futex_wait(word, seen);
    atomic_fetch_sub(&team->sleepers, 1);
}

static void run_range(const aeg_team *team, uint32_t thread)
{
    const uint64_t n = team->n;
    const uint32_t begin = (uint32_t)(n * thread / team->n_threads);
    const uint32_t end = (uint32_t)(n * (thread + 1) / team->n_threads);
    if (begin < end)
        team->work(team->ctx, begin, end, thread);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    aeg_team *team = w->team;
    uint32_t seen = 0;
    for (;;) {
        wait_change(team, &team->generation, seen);
        seen = atomic_load_explicit(&team->generation, memory_order_acquire);
        if (team->stop)
            return NULL;
        run_range(team, w->thread);
        if (atomic_fetch_sub(&team->pending, 1) == 1 && atomic_load(&team->sleepers) > 0)
            futex_wake_all(&team->pending);
    }
}

static void wake(aeg_team *team)
{
    atomic_fetch_add(&team->generation, 1);
    if (atomic_load(&team->sleepers) > 0)
        futex_wake_all(&team->generation);
}

aegis_status aeg_team_init(aeg_team **out, aeg_arena *arena, uint32_t n_threads, aegis_error *err)
{
    if (n_threads < 1 || n_threads > AEG_MAX_THREADS)
        return aeg_fail(err, AEGIS_E_USAGE, "threads: %u, expected 1 to %d", n_threads, AEG_MAX_THREADS);

    aeg_team *team = AEG_ARENA_ARRAY(arena, aeg_team, 1);
    worker *workers = AEG_ARENA_ARRAY(arena, worker, n_threads);
    uint8_t *stacks = aeg_arena_alloc(arena, (uint64_t)(n_threads - 1) * STACK_BYTES, AEG_PAGE);
    if (aeg_arena_measuring(arena))
        return AEGIS_OK;
    AEG_TRY(aeg_arena_check(arena, err));

    team->n_threads = n_threads;
    team->workers = workers;
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
    team->stop = true;
    wake(team);
    for (uint32_t i = 1; i <= team->n_started; i++)
        pthread_join(team->workers[i].handle, NULL);
    team->n_started = 0;
}

uint32_t aeg_team_size(const aeg_team *team) { return team == NULL ? 1 : team->n_threads; }

void aeg_team_run(aeg_team *team, uint32_t n, aeg_work work, void *ctx)
{
    if (n == 0)
        return;
    if (team == NULL || team->n_threads == 1 || n == 1) {
        work(ctx, 0, n, 0);
        return;
    }
    team->work = work;
    team->ctx = ctx;
    team->n = n;
    atomic_store(&team->pending, team->n_threads - 1);
    wake(team);
    run_range(team, 0);
    for (;;) {
        const uint32_t left = atomic_load_explicit(&team->pending, memory_order_acquire);
        if (left == 0)
            break;
        wait_change(team, &team->pending, left);
    }
}
