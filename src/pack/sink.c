/* SPDX-License-Identifier: Apache-2.0 */
#define XXH_STATIC_LINKING_ONLY /* the state's size: it is a member */
#include <xxhash.h>

#include "pack/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/file.h"
#include "format/rawfile.h"

/* Sanitizers keep a megabyte on a thread's stack: there the system chooses it. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define OWN_STACK 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define OWN_STACK 0
#endif
#endif
#ifndef OWN_STACK
#define OWN_STACK 1
#endif

enum { ALIGN = AEG_RAW_ALIGN, STACK_BYTES = 256 << 10, ZEROS = 4096 };

typedef struct {
    uint8_t *data;
    size_t n;            /* bytes to write, a multiple of ALIGN */
    uint64_t offset;
} job;

struct aeg_sink {
    XXH3_state_t hash;
    aeg_memory *memory;
    uint8_t *buffer[2];
    uint8_t *stack;
    size_t buffer_bytes, room;
    uint32_t current;    /* buffer being filled                */
    size_t used;         /* bytes in it                        */
    uint64_t base;       /* position of its first byte, aligned */
    int fd;              /* -1: no file                        */
    bool direct;
    char path[AEG_PATH_MAX];

    pthread_t thread;
    bool threaded;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    bool busy, stop;      /* busy: `pending` belongs to the thread */
    job pending;
    int error;            /* errno of the first failed write */
};

/* --- the thread ------------------------------------------------------------------------------------------------ */

static int write_job(aeg_sink *s, const job *j)
{
    size_t done = 0;
    while (done < j->n) {
        const ssize_t put = pwrite(s->fd, j->data + done, j->n - done, (off_t)(j->offset + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno == EINVAL && s->direct) { /* accepted at open, refused now */
            const int flags = fcntl(s->fd, F_GETFL);
            if (flags < 0 || fcntl(s->fd, F_SETFL, flags & ~O_DIRECT) != 0)
                return EINVAL;
            s->direct = false;
            continue;
        }
        if (put < 0)
            return errno;
        if (put == 0)
            return ENOSPC;
        done += (size_t)put;
    }
    if (!s->direct) {
        sync_file_range(s->fd, (off_t)j->offset, (off_t)j->n,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
        posix_fadvise(s->fd, (off_t)j->offset, (off_t)j->n, POSIX_FADV_DONTNEED);
    }
    return 0;
}

static void *writer_main(void *arg)
{
    aeg_sink *s = arg;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->busy && !s->stop)
            pthread_cond_wait(&s->changed, &s->lock);
        if (!s->busy)
            break;
        const job j = s->pending;
        pthread_mutex_unlock(&s->lock);
        const int error = write_job(s, &j);
        pthread_mutex_lock(&s->lock);
        if (s->error == 0)
            s->error = error;
        s->busy = false;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Wait until no write is running; the first error so far. */
static int drain(aeg_sink *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->busy)
        pthread_cond_wait(&s->changed, &s->lock);
    const int error = s->error;
    pthread_mutex_unlock(&s->lock);
    return error;
}

static aegis_status write_failed(const aeg_sink *s, int code, aegis_error *err)
{
    return aeg_fail_os(err, AEGIS_E_IO, code, "%s: writing", s->path);
}

/* Hand the aligned part of the current buffer over and go on in the other one with the rest. */
static aegis_status flush(aeg_sink *s, aegis_error *err)
{
    const size_t n = s->used & ~(size_t)(ALIGN - 1), rest = s->used - n;
    int error = drain(s);
    if (error != 0)
        return write_failed(s, error, err);
    const job j = { .data = s->buffer[s->current], .n = n, .offset = s->base };
    uint8_t *other = s->buffer[1 - s->current];
    memcpy(other, j.data + n, rest);
    if (n > 0 && s->threaded) {
        pthread_mutex_lock(&s->lock);
        s->pending = j;
        s->busy = true;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
    } else if (n > 0) {
        error = write_job(s, &j);
        if (error != 0)
            return write_failed(s, error, err);
    }
    s->current = 1 - s->current;
    s->base += n;
    s->used = rest;
    return AEGIS_OK;
}

/* --- life -------------------------------------------------------------------------------------------------------- */

/* Without a thread the writes simply happen in the caller's. */
static void start_thread(aeg_sink *s)
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0)
        return;
    if (!OWN_STACK || pthread_attr_setstack(&attr, s->stack, STACK_BYTES) == 0)
        s->threaded = pthread_create(&s->thread, &attr, writer_main, s) == 0;
    pthread_attr_destroy(&attr);
}

aegis_status aeg_sink_new(aeg_sink **out, size_t room, size_t buffer_bytes, aeg_memory *memory, aegis_error *err)
{
    *out = NULL;
    uint8_t *block = aeg_raw_buffer(memory, sizeof(aeg_sink)); /* the hash state wants 64-byte alignment */
    if (block == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for a writer");
    aeg_sink *s = (aeg_sink *)(void *)block;
    memset(s, 0, sizeof *s);
    s->memory = memory;
    s->fd = -1;
    s->room = room;
    s->buffer_bytes = buffer_bytes & ~(size_t)(ALIGN - 1);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    XXH3_64bits_reset(&s->hash);
    s->buffer[0] = aeg_raw_buffer(memory, s->buffer_bytes);
    s->buffer[1] = aeg_raw_buffer(memory, s->buffer_bytes);
    s->stack = aeg_raw_buffer(memory, STACK_BYTES);
    if (s->buffer[0] == NULL || s->buffer[1] == NULL || s->stack == NULL) {
        aeg_sink_free(s);
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for two write buffers of %zu bytes", buffer_bytes);
    }
    start_thread(s);
    *out = s;
    return AEGIS_OK;
}

void aeg_sink_free(aeg_sink *s)
{
    if (s == NULL)
        return;
    if (s->threaded) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
    }
    if (s->fd >= 0)
        close(s->fd);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    aeg_raw_buffer_free(s->memory, s->buffer[0]);
    aeg_raw_buffer_free(s->memory, s->buffer[1]);
    aeg_raw_buffer_free(s->memory, s->stack);
    aeg_raw_buffer_free(s->memory, (uint8_t *)s);
}

aegis_status aeg_sink_open(aeg_sink *s, const char *path, uint64_t expected, aegis_error *err)
{
    const size_t n = strlen(path);
    if (n >= sizeof s->path)
        return aeg_fail(err, AEGIS_E_USAGE, "a path of %zu bytes, expected at most %zu", n, sizeof s->path - 1);
    memcpy(s->path, path, n + 1);
    s->direct = true;
    s->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_DIRECT, 0644);
    if (s->fd < 0 && errno == EINVAL) {
        s->direct = false;
        unlink(path); /* some file systems create it before they refuse the flag */
        s->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    }
    if (s->fd < 0)
        return aeg_fail_os(err, AEGIS_E_IO, errno, "%s", path);
    s->base = 0;
    s->used = 0;
    /* writes into allocated blocks need no metadata update each; the end is cut at close */
    if (expected > 0 && fallocate(s->fd, 0, 0, (off_t)expected) != 0 && (errno == ENOSPC || errno == EFBIG))
        return aeg_fail_os(err, AEGIS_E_IO, errno, "%s: allocating %llu bytes", path, (unsigned long long)expected);
    return AEGIS_OK;
}

aegis_status aeg_sink_reserve(aeg_sink *s, size_t n, uint8_t **out, aegis_error *err)
{
    if (n > s->room)
        return aeg_fail(err, AEGIS_E_RUNTIME, "%s: %zu bytes at once, expected at most %zu", s->path, n, s->room);
    if (s->used + n > s->buffer_bytes)
        AEG_TRY(flush(s, err));
    *out = s->buffer[s->current] + s->used;
    return AEGIS_OK;
}

void aeg_sink_commit(aeg_sink *s, size_t n)
{
    XXH3_64bits_update(&s->hash, s->buffer[s->current] + s->used, n);
    s->used += n;
}

aegis_status aeg_sink_append(aeg_sink *s, const void *data, size_t n, aegis_error *err)
{
    const uint8_t *p = data;
    while (n > 0) {
        const size_t now = AEG_MIN(n, s->room);
        uint8_t *dst = NULL;
        AEG_TRY(aeg_sink_reserve(s, now, &dst, err));
        memcpy(dst, p, now);
        aeg_sink_commit(s, now);
        p += now;
        n -= now;
    }
    return AEGIS_OK;
}

aegis_status aeg_sink_pad_to(aeg_sink *s, uint64_t at, aegis_error *err)
{
    while (aeg_sink_position(s) < at) {
        const size_t n = (size_t)AEG_MIN(at - aeg_sink_position(s), AEG_MIN(s->room, (uint64_t)ZEROS));
        uint8_t *dst = NULL;
        AEG_TRY(aeg_sink_reserve(s, n, &dst, err));
        memset(dst, 0, n);
        aeg_sink_commit(s, n);
    }
    return AEGIS_OK;
}

aegis_status aeg_sink_pad(aeg_sink *s, uint64_t align, aegis_error *err)
{
    return aeg_sink_pad_to(s, aeg_align_up(aeg_sink_position(s), align), err);
}

uint64_t aeg_sink_position(const aeg_sink *s) { return s->base + s->used; }

void aeg_sink_hash_reset(aeg_sink *s) { XXH3_64bits_reset(&s->hash); }
uint64_t aeg_sink_hash(const aeg_sink *s) { return XXH3_64bits_digest(&s->hash); }

aegis_status aeg_sink_close(aeg_sink *s, aegis_error *err)
{
    const uint64_t end = aeg_sink_position(s);
    const size_t whole = (size_t)aeg_align_up(s->used, ALIGN); /* fits: buffers are multiples of ALIGN */
    memset(s->buffer[s->current] + s->used, 0, whole - s->used);
    s->used = whole;
    AEG_TRY(flush(s, err));
    const int error = drain(s);
    if (error != 0)
        return write_failed(s, error, err);
    if (ftruncate(s->fd, (off_t)end) != 0)
        return aeg_fail_os(err, AEGIS_E_IO, errno, "%s: setting its length to %llu", s->path, (unsigned long long)end);
    if (fsync(s->fd) != 0)
        return aeg_fail_os(err, AEGIS_E_IO, errno, "%s: fsync", s->path);
    posix_fadvise(s->fd, 0, 0, POSIX_FADV_DONTNEED);
    const int fd = s->fd;
    s->fd = -1;
    return close(fd) == 0 ? AEGIS_OK : aeg_fail_os(err, AEGIS_E_IO, errno, "%s: close", s->path);
}
