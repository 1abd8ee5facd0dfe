/* SPDX-License-Identifier: Apache-2.0 */
/* io_uring: one ring, one owner. Registered files always where the kernel lets us; registered buffers where
 * the locked-memory limit does. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/log.h"
#include "io/backend.h"

#if AEGIS_HAVE_LIBURING
#include <liburing.h>

enum {
    MAX_PIECES = 4096,         /* registered buffers; the kernel takes 16,384       */
    PIECE_BYTES = 16 << 20,    /* pinned and cleared when the first read goes there */
    PIECE_MAX = 1 << 30,       /* the kernel takes at most 1 GiB in one buffer      */
    MAX_SUBMIT_TRIES = 100000, /* EAGAIN, EBUSY: the kernel is short of memory      */
};

typedef enum { PIECE_NEW, PIECE_REGISTERED, PIECE_REFUSED } piece_state;

typedef struct {
    struct io_uring ring;
    bool fixed_files;
    bool sparse;               /* a table of pieces is registered                   */
    uint64_t piece_bytes;
    uint8_t pieces[MAX_PIECES]; /* piece_state */
    int broken;                /* errno after which nothing more is submitted       */
    io_ring prepared;          /* requests in the submission queue, in order        */
} uring;

/* COOP_TASKRUN: completions are collected when we ask and do not interrupt the arithmetic. SINGLE_ISSUER
 * is not used: it ties the ring to the thread that made it, and opening and decoding may be different threads. */
static int make_ring_once(struct io_uring *ring, uint32_t depth)
{
    static const uint32_t flags[] = { IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG, 0 };
    int rc = -EINVAL;
    for (uint32_t i = 0; i < AEG_ARRAY_LEN(flags) && rc == -EINVAL; i++) {
        struct io_uring_params params = { .flags = flags[i] };
        rc = io_uring_queue_init_params(depth, ring, &params);
        /* Plain READ came with this feature (5.6); older rings only have READV. */
        if (rc == 0 && (params.features & IORING_FEAT_RW_CUR_POS) == 0) {
            io_uring_queue_exit(ring);
            rc = -EOPNOTSUPP;
        }
    }
    return rc;
}

/* Rings count as locked memory, and the kernel gives back what a closed one held a little later: where the limit is
 * low, a ring made right after another is refused for some milliseconds. */
static int make_ring(struct io_uring *ring, uint32_t depth)
{
    enum { TRIES = 25 };
    int rc = make_ring_once(ring, depth);
    for (int i = 0; i < TRIES && rc == -ENOMEM; i++) {
        nanosleep(&(struct timespec){ .tv_nsec = 20 * 1000 * 1000 }, NULL);
        rc = make_ring_once(ring, depth);
    }
    return rc;
}

/* Asked once per process: planning and opening must come to the same answer. A race of two first calls only
 * asks twice. */
bool aeg_io_uring_usable(int *os_code)
{
    static _Atomic int answer = -1; /* errno, 0: usable, -1: not asked */
    if (answer < 0) {
        struct io_uring ring;
        const int rc = make_ring(&ring, AEG_IO_MAX_DEPTH / 4);
        if (rc == 0)
            io_uring_queue_exit(&ring);
        answer = -rc;
    }
    *os_code = answer;
    return answer == 0;
}

static void register_piece(aeg_io *io, uint64_t piece)
{
    uring *u = io->impl;
    const uint64_t at = piece * u->piece_bytes;
    const struct iovec part = { .iov_base = (uint8_t *)io->buffer + at,
                                .iov_len = AEG_MIN(io->buffer_bytes - at, u->piece_bytes) };
    const int rc = io_uring_register_buffers_update_tag(&u->ring, (unsigned)piece, &part, NULL, 1);
    u->pieces[piece] = rc < 0 ? PIECE_REFUSED : PIECE_REGISTERED;
    if (rc >= 0)
        return;
    /* What is registered stays so. */
    for (uint64_t i = 0; i < MAX_PIECES; i++)
        if (u->pieces[i] == PIECE_NEW)
            u->pieces[i] = PIECE_REFUSED;
    /* Under the usual limit of 8 MiB this is so for everybody but root, costs a few per cent and is nothing to do about in a
     * run: `aegis doctor` says it, with what helps. Once per process: a program may open several. */
    static _Atomic bool told;
    if (!told)
        aeg_log(AEG_LOG_DEBUG, "%s read buffers are registered with io_uring (%s): locked-memory limit",
                piece == 0 ? "no" : "not all", strerror(-rc));
    told = true;
}

/* Index of the registered buffer that holds the whole range, or -1. */
static int buffer_index(aeg_io *io, const uint8_t *dst, uint32_t bytes)
{
    uring *u = io->impl;
    const uint8_t *base = io->buffer;
    if (!u->sparse || dst < base || dst + bytes > base + io->buffer_bytes)
        return -1;
    const uint64_t first = (uint64_t)(dst - base) / u->piece_bytes, last = (uint64_t)(dst - base + bytes - 1) / u->piece_bytes;
    if (first != last)
        return -1;
    if (u->pieces[first] == PIECE_NEW)
        register_piece(io, first);
    return u->pieces[first] == PIECE_REGISTERED ? (int)first : -1;
}

/* False: the submission queue is full for now. */
static bool prepare(aeg_io *io, uint32_t request)
{
    uring *u = io->impl;
    const io_request *r = &io->requests[request];
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    if (sqe == NULL)
        return false;
    uint8_t *dst = (uint8_t *)r->read.dst + r->got;
    const uint32_t bytes = r->read.bytes - r->got;
    const int fd = u->fixed_files ? (int)r->read.file : io->files[r->read.file].fd;
    const int buffer = buffer_index(io, dst, bytes);
    if (buffer >= 0)
        io_uring_prep_read_fixed(sqe, fd, dst, bytes, r->read.offset + r->got, buffer);
    else
        io_uring_prep_read(sqe, fd, dst, bytes, r->read.offset + r->got);
    if (u->fixed_files)
        sqe->flags |= IOSQE_FIXED_FILE;
    io_uring_sqe_set_data(sqe, (void *)(uintptr_t)request);
    aeg_io_ring_push(&u->prepared, request);
    return true;
}

/* Nothing can be submitted any more: what has not reached the kernel fails, so that nobody waits for it. */
static void break_ring(aeg_io *io, int os_code)
{
    uring *u = io->impl;
    u->broken = os_code;
    while (u->prepared.n > 0) {
        const uint32_t i = aeg_io_ring_pop(&u->prepared);
        io->requests[i].os_code = os_code;
        aeg_io_finish(io, i);
    }
}

static void flush(aeg_io *io)
{
    uring *u = io->impl;
    for (uint32_t tries = 0; u->prepared.n > 0 && u->broken == 0;) {
        const int rc = io_uring_submit(&u->ring);
        for (int i = 0; i < rc; i++)
            aeg_io_ring_pop(&u->prepared);
        if (rc == -EINTR || rc == -EAGAIN || rc == -EBUSY || rc == 0) {
            if (++tries >= MAX_SUBMIT_TRIES)
                break_ring(io, rc == 0 ? EAGAIN : -rc);
        } else if (rc < 0) {
            break_ring(io, -rc);
        }
    }
}

static void start_read(aeg_io *io, uint32_t request)
{
    uring *u = io->impl;
    while (u->broken == 0 && !prepare(io, request))
        flush(io);
    if (u->broken != 0) {
        io->requests[request].os_code = u->broken;
        aeg_io_finish(io, request);
    }
}

static aegis_status uring_submit(aeg_io *io, aegis_error *err)
{
    (void)err;
    aeg_io_activate(io, io->pending.n);
    while (io->pending.n > 0)
        start_read(io, aeg_io_ring_pop(&io->pending));
    flush(io);
    return AEGIS_OK;
}

/* A read that came back short, or EAGAIN, goes on; true if one was prepared again. */
static bool take_completion(aeg_io *io, struct io_uring_cqe *cqe)
{
    uring *u = io->impl;
    const uint32_t i = (uint32_t)(uintptr_t)io_uring_cqe_get_data(cqe);
    io_request *request = &io->requests[i];
    const io_file *file = &io->files[request->read.file];
    const int result = cqe->res;
    io_uring_cqe_seen(&u->ring, cqe);
    if (!aeg_io_progress(file, request, result)) {
        start_read(io, i);
        return true;
    }
    aeg_io_file_drop(file, request->read.offset, request->read.bytes);
    aeg_io_finish(io, i);
    return false;
}

static aegis_status uring_reap(aeg_io *io, bool block, aegis_error *err)
{
    uring *u = io->impl;
    struct io_uring_cqe *cqe;
    const uint32_t before = io->ready.n;
    for (;;) {
        bool again = false;
        while (io_uring_peek_cqe(&u->ring, &cqe) == 0)
            again |= take_completion(io, cqe);
        if (again)
            flush(io);
        if (!block || io->ready.n > before || io->active == 0)
            return AEGIS_OK;
        const int rc = io_uring_wait_cqe(&u->ring, &cqe);
        if (rc < 0 && rc != -EINTR && rc != -EAGAIN)
            return aeg_fail_os(err, AEGIS_E_IO, -rc, "waiting for %u reads (io_uring)", io->active);
    }
}

static uint64_t choose_piece(const aeg_io *io)
{
    const uint64_t least = AEG_MAX((uint64_t)PIECE_BYTES, aeg_div_up(io->buffer_bytes, MAX_PIECES));
    return aeg_div_up(least, io->buffer_unit) * io->buffer_unit;
}

static void uring_set_buffer(aeg_io *io)
{
    uring *u = io->impl;
    if (u->sparse)
        io_uring_unregister_buffers(&u->ring);
    u->sparse = io->buffer_registered = false;
    if (io->buffer_bytes == 0)
        return;
    u->piece_bytes = choose_piece(io);
    if (u->piece_bytes > PIECE_MAX)
        return;
    const int rc = io_uring_register_buffers_sparse(&u->ring, (unsigned)aeg_div_up(io->buffer_bytes, u->piece_bytes));
    u->sparse = rc == 0;
    memset(u->pieces, PIECE_NEW, sizeof u->pieces);
    if (u->sparse)
        register_piece(io, 0); /* so that a refusal is told at open */
    else
        aeg_log(AEG_LOG_DEBUG, "read buffers are not registered with io_uring (%s)", strerror(-rc));
    io->buffer_registered = u->sparse && u->pieces[0] == PIECE_REGISTERED;
}

static void uring_close(aeg_io *io)
{
    uring *u = io->impl;
    io_uring_queue_exit(&u->ring);
}

static const io_backend uring_backend = { uring_submit, uring_reap, uring_set_buffer, uring_close };

aegis_status aeg_io_uring_open(aeg_io *io, aeg_arena *arena, aegis_error *err)
{
    uring *u = AEG_ARENA_ARRAY(arena, uring, 1);
    uint32_t *items = AEG_ARENA_ARRAY(arena, uint32_t, io->depth);
    int fds[AEG_IO_MAX_FILES];
    if (aeg_arena_measuring(arena))
        return AEGIS_OK;
    AEG_TRY(aeg_arena_check(arena, err));

    *u = (uring){ .prepared = { .items = items, .capacity = io->depth } };
    const int rc = make_ring(&u->ring, io->depth);
    if (rc != 0)
        return aeg_fail_os(err, AEGIS_E_IO, -rc, "io_uring with %u reads in flight (--io pread reads without it)", io->depth);
    for (uint32_t i = 0; i < io->n_files; i++)
        fds[i] = io->files[i].fd;
    u->fixed_files = io->n_files > 0 && io_uring_register_files(&u->ring, fds, io->n_files) == 0;
    io->impl = u;
    io->backend = &uring_backend;
    return AEGIS_OK;
}

#else

bool aeg_io_uring_usable(int *os_code)
{
    *os_code = ENOSYS;
    return false;
}

aegis_status aeg_io_uring_open(aeg_io *io, aeg_arena *arena, aegis_error *err)
{
    (void)io;
    if (aeg_arena_measuring(arena))
        return AEGIS_OK;
    return aeg_fail(err, AEGIS_E_IO, "io_uring: this build has no liburing");
}

#endif
