/* SPDX-License-Identifier: Apache-2.0 */
#include "io/io.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "io/backend.h"

enum { DEFAULT_THREADS = 4, MAX_THREADS = 64, DIRECT_CHUNK = 4 << 20 };

void aeg_io_ring_push(io_ring *ring, uint32_t item)
{
    assert(ring->n < ring->capacity);
    ring->items[(ring->head + ring->n++) % ring->capacity] = item;
}

uint32_t aeg_io_ring_pop(io_ring *ring)
{
    assert(ring->n > 0);
    const uint32_t item = ring->items[ring->head];
    ring->head = (ring->head + 1) % ring->capacity;
    ring->n--;
    return item;
}

void aeg_io_activate(aeg_io *io, uint32_t n)
{
    if (io->active == 0 && n > 0)
        io->busy_since_ns = aeg_now_ns();
    io->active += n;
}

static uint64_t waited_until(const aeg_io *io, uint64_t now)
{
    return io->stats.wait_ns + (io->wait_since_ns != 0 ? now - io->wait_since_ns : 0);
}

void aeg_io_finish(aeg_io *io, uint32_t request)
{
    const io_request *r = &io->requests[request];
    const uint64_t now = aeg_now_ns();
    const double flight = (double)(now - r->submit_ns), waited = (double)(waited_until(io, now) - r->submit_wait_ns);
    if (flight > 0)
        io->stats.wait_bytes[r->read.file] += (uint64_t)(r->got * AEG_MIN(1.0, waited / flight));
    aeg_io_ring_push(&io->ready, request);
    if (--io->active == 0)
        io->stats.busy_ns += now - io->busy_since_ns;
}

static aegis_status null_submit(aeg_io *io, aegis_error *err)
{
    (void)err;
    while (io->pending.n > 0) {
        const uint32_t i = aeg_io_ring_pop(&io->pending);
        io->requests[i].got = io->requests[i].want;
        aeg_io_ring_push(&io->ready, i);
    }
    return AEGIS_OK;
}

static aegis_status null_reap(aeg_io *io, bool block, aegis_error *err)
{
    (void)io, (void)block, (void)err;
    return AEGIS_OK;
}

static void null_close(aeg_io *io) { (void)io; }

static const io_backend null_backend = { null_submit, null_reap, NULL, null_close };

static aegis_status check_config(const aeg_io_config *cfg, aegis_error *err)
{
    if (cfg->depth < 1 || cfg->depth > AEG_IO_MAX_DEPTH)
        return aeg_fail(err, AEGIS_E_USAGE, "reads in flight: %u, expected 1 to %d", cfg->depth,
                        AEG_IO_MAX_DEPTH);
    if (cfg->n_files > AEG_IO_MAX_FILES)
        return aeg_fail(err, AEGIS_E_USAGE, "files to read: %u, expected at most %d", cfg->n_files,
                        AEG_IO_MAX_FILES);
    if (cfg->n_threads > MAX_THREADS)
        return aeg_fail(err, AEGIS_E_USAGE, "reading threads: %u, expected at most %d", cfg->n_threads,
                        MAX_THREADS);
    return AEGIS_OK;
}

/* The same answer while measuring and while carving, so that the pool's stacks are planned only where the
 * pool will run. */
static aeg_io_kind resolve_kind(const aeg_io_config *cfg, bool measuring)
{
    int os_code = 0;
    if (cfg->kind != AEG_IO_AUTO)
        return cfg->kind;
    if (aeg_io_uring_usable(&os_code))
        return AEG_IO_URING;
    if (!measuring)
        aeg_log(AEG_LOG_NOTICE, "io_uring cannot be used (%s), so a few threads read instead", strerror(os_code));
    return AEG_IO_PREAD;
}

uint64_t aeg_io_system_bytes(const aeg_io_config *cfg)
{
    enum {
        RING_ENTRY = 64 + 2 * 16 + 4 + 512, /* submission, two completions, index, the kernel's request */
        RING_FIXED = 64 << 10,
        PAGE_ENTRY = 16,                    /* a registered buffer keeps one such entry per page */
        PIECES = 1 << 20,                   /* and a header per piece; at most 4,096 of them     */
        THREAD = 40 << 10,                  /* kernel stack and task */
    };
    const uint64_t n_threads = cfg->n_threads == 0 ? DEFAULT_THREADS : cfg->n_threads;
    switch (resolve_kind(cfg, true)) {
    case AEG_IO_URING:
        return RING_FIXED + 2ull * cfg->depth * RING_ENTRY + aeg_div_up(cfg->buffer_bytes, AEG_PAGE) * PAGE_ENTRY +
               AEG_MIN(cfg->buffer_bytes >> 12, (uint64_t)PIECES);
    case AEG_IO_PREAD:
    case AEG_IO_SIM: return n_threads * THREAD;
    default: return 0;
    }
}

static io_ring make_ring(aeg_arena *arena, uint32_t n)
{
    return (io_ring){ .items = AEG_ARENA_ARRAY(arena, uint32_t, n), .capacity = n };
}

static aegis_status open_backend(aeg_io *io, aeg_arena *arena, aegis_error *err)
{
    switch (io->kind) {
    case AEG_IO_URING: return aeg_io_uring_open(io, arena, err);
    case AEG_IO_PREAD:
    case AEG_IO_SIM: return aeg_io_pool_open(io, arena, err);
    default: io->backend = &null_backend; return AEGIS_OK;
    }
}

static aegis_status open_files(aeg_io *io, const aeg_io_config *cfg, aegis_error *err)
{
    /* A simulated disk may be faster than the real one, so its bytes come from the page cache. */
    const bool sim = io->kind == AEG_IO_SIM;
    if (sim)
        aeg_log(AEG_LOG_NOTICE, "simulated disk: reads come from the page cache, outside the memory budget");
    for (uint32_t i = 0; i < cfg->n_files; i++) {
        AEG_TRY(aeg_io_file_open(&io->files[i], cfg->paths[i], sim || cfg->buffered, sim, io->bounce, err));
        io->n_files++;
    }
    return AEGIS_OK;
}

static void close_files(aeg_io *io)
{
    for (uint32_t i = 0; i < io->n_files; i++)
        close(io->files[i].fd);
    io->n_files = 0;
}

static void set_text(aeg_io *io)
{
    static const char *const kinds[] = { [AEG_IO_URING] = "io_uring", [AEG_IO_PREAD] = "pread",
                                         [AEG_IO_NULL] = "null", [AEG_IO_SIM] = "sim" };
    uint32_t n_direct = 0;
    for (uint32_t i = 0; i < io->n_files; i++)
        n_direct += io->files[i].direct;
    snprintf(io->text, sizeof io->text, "%s, %s%s", kinds[io->kind],
             n_direct == io->n_files ? "O_DIRECT" : n_direct == 0 ? "buffered" : "partly O_DIRECT",
             io->buffer_registered ? ", registered buffers" : "");
}

aegis_status aeg_io_open(aeg_io **out, aeg_arena *arena, const aeg_io_config *cfg, aegis_error *err)
{
    AEG_TRY(check_config(cfg, err));
    aeg_io head = { .kind = resolve_kind(cfg, aeg_arena_measuring(arena)),
                    .depth = cfg->depth,
                    .n_threads = cfg->n_threads == 0 ? DEFAULT_THREADS : cfg->n_threads,
                    .sim_bytes_per_s = cfg->sim_bytes_per_s,
                    .sim_latency_s = cfg->sim_latency_s,
                    .fault = cfg->fault,
                    .fault_ctx = cfg->fault_ctx };
    aeg_io *io = AEG_ARENA_ARRAY(arena, aeg_io, 1);
    head.requests = AEG_ARENA_ARRAY(arena, io_request, cfg->depth);
    head.free = make_ring(arena, cfg->depth);
    head.pending = make_ring(arena, cfg->depth);
    head.ready = make_ring(arena, cfg->depth);
    head.bounce = aeg_arena_alloc(arena, IO_BOUNCE_BYTES, AEG_PAGE);
    if (aeg_arena_measuring(arena))
        return open_backend(&head, arena, err);
    AEG_TRY(aeg_arena_check(arena, err));

    *io = head;
    for (uint32_t i = 0; i < io->depth; i++)
        aeg_io_ring_push(&io->free, i);
    aegis_status status = open_files(io, cfg, err);
    if (status == AEGIS_OK)
        status = open_backend(io, arena, err);
    if (status != AEGIS_OK) {
        close_files(io);
        return status;
    }
    set_text(io);
    if (cfg->buffer != NULL)
        status = aeg_io_set_buffer(io, cfg->buffer, cfg->buffer_bytes, cfg->buffer_unit, err);
    if (status == AEGIS_OK)
        *out = io;
    else
        aeg_io_close(io);
    return status;
}

void aeg_io_close(aeg_io *io)
{
    aeg_io_done done[16];
    uint32_t n = 0;
    if (io == NULL)
        return;
    while (aeg_io_flight(io) > 0)
        if (aeg_io_wait(io, 1, done, AEG_ARRAY_LEN(done), &n, NULL) != AEGIS_OK)
            break;
    io->backend->close(io);
    close_files(io);
}

aegis_status aeg_io_set_buffer(aeg_io *io, void *buffer, uint64_t bytes, uint64_t unit, aegis_error *err)
{
    if ((uintptr_t)buffer % AEG_IO_ALIGN != 0)
        return aeg_fail(err, AEGIS_E_USAGE, "read buffer at %p, expected a multiple of %d", buffer, AEG_IO_ALIGN);
    if (aeg_io_flight(io) > 0)
        return aeg_fail(err, AEGIS_E_RUNTIME, "read buffer changed with %u reads in flight", aeg_io_flight(io));
    io->buffer = buffer;
    io->buffer_bytes = bytes;
    io->buffer_unit = unit == 0 ? AEG_IO_ALIGN : unit;
    if (io->backend->set_buffer != NULL)
        io->backend->set_buffer(io);
    set_text(io);
    return AEGIS_OK;
}

uint32_t aeg_io_room(const aeg_io *io) { return io->free.n; }
uint32_t aeg_io_flight(const aeg_io *io) { return io->depth - io->free.n; }
bool aeg_io_reads(const aeg_io *io) { return io->kind != AEG_IO_NULL; }

void aeg_io_queue(aeg_io *io, const aeg_io_read *read)
{
    assert(read->file < io->n_files && read->bytes > 0 && read->bytes % AEG_IO_ALIGN == 0 &&
           read->offset % AEG_IO_ALIGN == 0 && (uintptr_t)read->dst % AEG_IO_ALIGN == 0);
    const io_file *file = &io->files[read->file];
    const uint64_t left = read->offset < file->bytes ? file->bytes - read->offset : 0;
    const uint32_t i = aeg_io_ring_pop(&io->free);

    io->requests[i] = (io_request){ .read = *read, .want = (uint32_t)AEG_MIN(left, read->bytes) };
    /* Wholly behind the end: the file is not the one that was described. */
    int os_code = left == 0 ? EIO : 0;
    if (os_code == 0 && io->fault != NULL)
        os_code = io->fault(io->fault_ctx, read->file, read->offset);
    io->requests[i].os_code = os_code;
    aeg_io_ring_push(os_code == 0 ? &io->pending : &io->ready, i);
}

aegis_status aeg_io_submit(aeg_io *io, aegis_error *err)
{
    if (io->pending.n == 0)
        return AEGIS_OK;
    const uint64_t now = aeg_now_ns(), waited = waited_until(io, now);
    for (uint32_t i = 0; i < io->pending.n; i++) {
        io_request *r = &io->requests[io->pending.items[(io->pending.head + i) % io->pending.capacity]];
        r->submit_ns = now;
        r->submit_wait_ns = waited;
    }
    return io->backend->submit(io, err);
}

static aegis_status fill_ready(aeg_io *io, uint32_t min, aegis_error *err)
{
    AEG_TRY(aeg_io_submit(io, err));
    if (io->active > 0)
        AEG_TRY(io->backend->reap(io, false, err));
    if (io->ready.n >= min)
        return AEGIS_OK;
    io->wait_since_ns = aeg_now_ns();
    aegis_status status = AEGIS_OK;
    while (status == AEGIS_OK && io->ready.n < min && io->active > 0)
        status = io->backend->reap(io, true, err);
    io->stats.wait_ns = waited_until(io, aeg_now_ns());
    io->wait_since_ns = 0;
    return status;
}

aegis_status aeg_io_wait(aeg_io *io, uint32_t min, aeg_io_done *out, uint32_t max, uint32_t *n,
                         aegis_error *err)
{
    *n = 0;
    min = AEG_MIN(min, AEG_MIN(max, aeg_io_flight(io)));
    AEG_TRY(fill_ready(io, min, err));
    while (*n < max && io->ready.n > 0) {
        const uint32_t i = aeg_io_ring_pop(&io->ready);
        const io_request *r = &io->requests[i];
        out[(*n)++] = (aeg_io_done){ .tag = r->read.tag, .os_code = r->os_code, .bytes = r->got };
        io->stats.reads++;
        io->stats.bytes += r->got;
        aeg_io_ring_push(&io->free, i);
    }
    return AEGIS_OK;
}

/* One aligned read of up to `bytes`; *got is at least `want` or it is an error. */
static aegis_status read_blocks(aeg_io *io, uint32_t index, uint64_t offset, void *dst, uint32_t bytes,
                                uint32_t want, aegis_error *err)
{
    const io_file *file = &io->files[index];
    io_request r = { .want = want };
    int os_code = io->fault == NULL ? 0 : io->fault(io->fault_ctx, index, offset);
    while (os_code == 0) {
        const ssize_t n = pread(file->fd, (uint8_t *)dst + r.got, bytes - r.got, (off_t)(offset + r.got));
        if (aeg_io_progress(file, &r, n < 0 ? -errno : n))
            break;
    }
    aeg_io_file_drop(file, offset, bytes);
    os_code = os_code == 0 ? r.os_code : os_code;
    io->stats.reads++;
    io->stats.bytes += r.got;
    if (os_code != 0)
        return aeg_fail_os(err, AEGIS_E_IO, os_code, "%s: reading %u bytes at offset %llu", file->name, want,
                           (unsigned long long)offset);
    return AEGIS_OK;
}

aegis_status aeg_io_read_sync(aeg_io *io, uint32_t file, uint64_t offset, void *dst, uint64_t bytes,
                              aegis_error *err)
{
    uint64_t end;
    if (file >= io->n_files)
        return aeg_fail(err, AEGIS_E_USAGE, "file %u of %u", file, io->n_files);
    if (!aeg_add(offset, bytes, &end) || end > io->files[file].bytes)
        return aeg_fail(err, AEGIS_E_IO, "%s: %llu bytes, expected %llu bytes at offset %llu", io->files[file].name,
                        (unsigned long long)io->files[file].bytes, (unsigned long long)bytes,
                        (unsigned long long)offset);
    uint8_t *to = dst;
    while (offset < end) {
        const uint64_t skew = offset % AEG_IO_ALIGN, left = end - offset;
        const bool even = skew == (uintptr_t)to % AEG_IO_ALIGN;
        uint64_t n;
        if (even && skew == 0 && left >= AEG_IO_ALIGN) {
            n = AEG_MIN(left - left % AEG_IO_ALIGN, DIRECT_CHUNK);
            AEG_TRY(read_blocks(io, file, offset, to, (uint32_t)n, (uint32_t)n, err));
        } else {
            /* Same skew on both sides: only the ragged ends need the bounce buffer. */
            n = AEG_MIN(left, (even ? AEG_IO_ALIGN : IO_BOUNCE_BYTES) - skew);
            const uint64_t blocks = aeg_align_up(skew + n, AEG_IO_ALIGN);
            AEG_TRY(read_blocks(io, file, offset - skew, io->bounce, (uint32_t)blocks, (uint32_t)(skew + n), err));
            memcpy(to, io->bounce + skew, n);
        }
        offset += n;
        to += n;
    }
    return AEGIS_OK;
}

aeg_io_stats aeg_io_get_stats(const aeg_io *io)
{
    aeg_io_stats stats = io->stats;
    if (io->active > 0)
        stats.busy_ns += aeg_now_ns() - io->busy_since_ns;
    return stats;
}

const char *aeg_io_describe(const aeg_io *io) { return io->text; }

const char *aeg_io_file_name(const aeg_io *io, uint32_t file)
{
    return file < io->n_files ? io->files[file].name : "?";
}
