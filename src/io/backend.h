/* SPDX-License-Identifier: Apache-2.0 */
/* io/backend.h - what the back ends share; private to io/.
 *
 * A request lives in a fixed table of `depth` entries: queued (in `pending`), active (with the system or a
 * pool thread), then in `ready` until aeg_io_wait hands it out. Only pool.c touches requests from other
 * threads, under its own lock.
 */
#ifndef AEG_IO_BACKEND_H
#define AEG_IO_BACKEND_H

#include <stdatomic.h>
#include <sys/types.h>

#include "io/io.h"

enum {
    IO_NAME_MAX = 256,          /* the end of a longer path is kept, for messages            */
    IO_BOUNCE_BYTES = 256 << 10, /* one unaligned synchronous read goes through this at a time */
    IO_MAX_TRIES = 1000,        /* EAGAIN or no progress in a row before a read has failed    */
};

typedef struct {
    int fd;
    bool direct;
    bool drop;                  /* buffered: drop the pages after each read */
    uint64_t bytes;             /* size at open */
    char name[IO_NAME_MAX];
} io_file;

typedef struct {
    aeg_io_read read;
    uint32_t want;              /* bytes of the read that lie below the end of the file */
    uint32_t got;
    uint32_t tries;
    int os_code;
    uint64_t submit_ns, submit_wait_ns; /* when, and how long the owner had waited until then */
    uint64_t due_ns;            /* sim: not handed out before this time */
    bool finished;              /* sim: the pool has read it (pool's lock) */
} io_request;

/* Indices of requests, in order. */
typedef struct {
    uint32_t *items;
    uint32_t capacity, head, n;
} io_ring;

typedef struct {
    /* Hand every pending request to the system. */
    aegis_status (*submit)(aeg_io *io, aegis_error *err);
    /* Move finished requests to io->ready; with `block`, at least one if any is active. */
    aegis_status (*reap)(aeg_io *io, bool block, aegis_error *err);
    void (*set_buffer)(aeg_io *io); /* io->buffer changed; may be NULL */
    void (*close)(aeg_io *io);
} io_backend;

struct aeg_io {
    aeg_io_kind kind;           /* never AUTO */
    const io_backend *backend;
    void *impl;                 /* the back end's own state */
    uint32_t depth, n_files, n_threads;
    io_file files[AEG_IO_MAX_FILES];
    io_request *requests;
    io_ring free, pending, ready;
    uint32_t active;
    uint8_t *bounce;            /* page aligned, IO_BOUNCE_BYTES */
    void *buffer;
    uint64_t buffer_bytes, buffer_unit;
    bool buffer_registered;     /* in part at least */
    double sim_bytes_per_s, sim_latency_s;
    uint64_t sim_free_ns;       /* the simulated disk is busy until then */
    int (*fault)(void *ctx, uint32_t file, uint64_t offset);
    void *fault_ctx;
    uint64_t busy_since_ns, wait_since_ns; /* 0: not waiting */
    aeg_io_stats stats;
    char text[128];
};

void aeg_io_ring_push(io_ring *ring, uint32_t item);
uint32_t aeg_io_ring_pop(io_ring *ring); /* n > 0 */

/* files.c: open with O_DIRECT, or buffered where that is refused. */
aegis_status aeg_io_file_open(io_file *file, const char *path, bool buffered, bool keep_cache,
                              uint8_t *bounce, aegis_error *err);
void aeg_io_file_drop(const io_file *file, uint64_t offset, uint64_t bytes);

/* Account for one system read (result: bytes, or -errno). True when the request is over; otherwise read on at
 * offset + got. */
bool aeg_io_progress(const io_file *file, io_request *request, int64_t result);

/* Owner: requests became active / a request is over. */
void aeg_io_activate(aeg_io *io, uint32_t n);
void aeg_io_finish(aeg_io *io, uint32_t request);

/* uring.c. Usable: a small ring can be made here. Open leaves io->backend set. */
bool aeg_io_uring_usable(int *os_code);
aegis_status aeg_io_uring_open(aeg_io *io, aeg_arena *arena, aegis_error *err);

/* pool.c: pread and sim. */
aegis_status aeg_io_pool_open(aeg_io *io, aeg_arena *arena, aegis_error *err);

#endif
