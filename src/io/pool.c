/* SPDX-License-Identifier: Apache-2.0 */
/* pread on a few threads: where io_uring is refused, and beneath the simulated disk. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/backend.h"

/* A reader needs one frame and libc's own data. Sanitizers keep far more on a stack. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define POOL_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define POOL_SANITIZED 1
#endif
#endif
#ifdef POOL_SANITIZED
enum { STACK_BYTES = 2 << 20 }; /* tsan keeps 0.9 MB on the stack */
#else
enum { STACK_BYTES = 64 << 10 };
#endif

typedef struct {
    aeg_io *io;
    uint32_t n_started;
    pthread_t *threads;
    pthread_mutex_t lock;       /* guards the fields below, and requests[i] while i is in `work` */
    pthread_cond_t has_work, has_done;
    io_ring work, done;
    bool stop;
    io_ring order;              /* sim, owner only: requests in the order they were submitted */
} pool;

static void read_request(aeg_io *io, io_request *request)
{
    const aeg_io_read *read = &request->read;
    const io_file *file = &io->files[read->file];
    for (;;) {
        const ssize_t n = pread(file->fd, (uint8_t *)read->dst + request->got, read->bytes - request->got,
                                (off_t)(read->offset + request->got));
        if (aeg_io_progress(file, request, n < 0 ? -errno : n))
            break;
    }
    aeg_io_file_drop(file, read->offset, read->bytes);
}

static void *reader_main(void *arg)
{
    pool *p = arg;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->work.n == 0 && !p->stop)
            pthread_cond_wait(&p->has_work, &p->lock);
        if (p->work.n == 0)
            break;
        const uint32_t i = aeg_io_ring_pop(&p->work);
        pthread_mutex_unlock(&p->lock);
        read_request(p->io, &p->io->requests[i]);
        pthread_mutex_lock(&p->lock);
        p->io->requests[i].finished = true;
        aeg_io_ring_push(&p->done, i);
        pthread_cond_signal(&p->has_done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* One arm that moves `bytes_per_s`, and a latency that overlaps with the transfers of other reads. */
static uint64_t sim_due(aeg_io *io, uint32_t bytes)
{
    const uint64_t now = aeg_now_ns();
    if (io->sim_free_ns < now)
        io->sim_free_ns = now;
    if (io->sim_bytes_per_s > 0)
        io->sim_free_ns += (uint64_t)(bytes / io->sim_bytes_per_s * 1e9);
    return io->sim_free_ns + (uint64_t)(io->sim_latency_s * 1e9);
}

static aegis_status pool_submit(aeg_io *io, aegis_error *err)
{
    pool *p = io->impl;
    const uint32_t n = io->pending.n;
    (void)err;
    pthread_mutex_lock(&p->lock);
    while (io->pending.n > 0) {
        const uint32_t i = aeg_io_ring_pop(&io->pending);
        if (io->kind == AEG_IO_SIM) {
            io->requests[i].due_ns = sim_due(io, io->requests[i].want);
            aeg_io_ring_push(&p->order, i);
        }
        aeg_io_ring_push(&p->work, i);
    }
    pthread_cond_broadcast(&p->has_work);
    pthread_mutex_unlock(&p->lock);
    aeg_io_activate(io, n);
    return AEGIS_OK;
}

static aegis_status pread_reap(aeg_io *io, bool block, aegis_error *err)
{
    pool *p = io->impl;
    (void)err;
    pthread_mutex_lock(&p->lock);
    while (block && p->done.n == 0)
        pthread_cond_wait(&p->has_done, &p->lock);
    while (p->done.n > 0)
        aeg_io_finish(io, aeg_io_ring_pop(&p->done));
    pthread_mutex_unlock(&p->lock);
    return AEGIS_OK;
}

static void sleep_until(uint64_t ns)
{
    const struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
        ;
}

/* Times are due in the order of submission, so the oldest request is always the next to finish. */
static aegis_status sim_reap(aeg_io *io, bool block, aegis_error *err)
{
    pool *p = io->impl;
    (void)err;
    while (p->order.n > 0) {
        const uint32_t i = p->order.items[p->order.head];
        const io_request *request = &io->requests[i];
        pthread_mutex_lock(&p->lock);
        while (block && !request->finished)
            pthread_cond_wait(&p->has_done, &p->lock);
        const bool finished = request->finished;
        p->done.n = 0; /* the order is kept elsewhere */
        pthread_mutex_unlock(&p->lock);
        if (!finished || (!block && request->due_ns > aeg_now_ns()))
            break;
        sleep_until(request->due_ns);
        aeg_io_finish(io, aeg_io_ring_pop(&p->order));
        block = false;
    }
    return AEGIS_OK;
}

static void pool_close(aeg_io *io)
{
    pool *p = io->impl;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->has_work);
    pthread_mutex_unlock(&p->lock);
    for (uint32_t i = 0; i < p->n_started; i++)
        pthread_join(p->threads[i], NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->has_work);
    pthread_cond_destroy(&p->has_done);
}

static const io_backend pread_backend = { pool_submit, pread_reap, NULL, pool_close };
static const io_backend sim_backend = { pool_submit, sim_reap, NULL, pool_close };

aegis_status aeg_io_pool_open(aeg_io *io, aeg_arena *arena, aegis_error *err)
{
    pool *p = AEG_ARENA_ARRAY(arena, pool, 1);
    pthread_t *threads = AEG_ARENA_ARRAY(arena, pthread_t, io->n_threads);
    uint32_t *items = AEG_ARENA_ARRAY(arena, uint32_t, 3 * (uint64_t)io->depth);
    uint8_t *stacks = aeg_arena_alloc(arena, (uint64_t)io->n_threads * STACK_BYTES, AEG_PAGE);
    if (aeg_arena_measuring(arena))
        return AEGIS_OK;
    AEG_TRY(aeg_arena_check(arena, err));

    *p = (pool){ .io = io, .threads = threads };
    p->work = (io_ring){ .items = items, .capacity = io->depth };
    p->done = (io_ring){ .items = items + io->depth, .capacity = io->depth };
    p->order = (io_ring){ .items = items + 2 * io->depth, .capacity = io->depth };
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->has_work, NULL);
    pthread_cond_init(&p->has_done, NULL);
    io->impl = p;
    io->backend = io->kind == AEG_IO_SIM ? &sim_backend : &pread_backend;
    for (uint32_t i = 0; i < io->n_threads; i++) {
        pthread_attr_t attr;
        pthread_attr_init(&attr);
        pthread_attr_setstack(&attr, stacks + (uint64_t)i * STACK_BYTES, STACK_BYTES);
        const int rc = pthread_create(&threads[i], &attr, reader_main, p);
        pthread_attr_destroy(&attr);
        if (rc != 0) {
            pool_close(io);
            return aeg_fail_os(err, AEGIS_E_RUNTIME, rc, "starting reading thread %u of %u", i + 1, io->n_threads);
        }
        p->n_started++;
    }
    return AEGIS_OK;
}
