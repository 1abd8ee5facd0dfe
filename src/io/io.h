/* SPDX-License-Identifier: Apache-2.0 */
/* io/io.h - asynchronous reads of file ranges into memory that the caller owns.
 *
 * Back ends: io_uring (registered files and buffers, O_DIRECT), a small pread pool where io_uring is refused,
 * `null` (completes at once, bytes undefined) and `sim` (a real pread, delayed to a given bandwidth and
 * latency). Where O_DIRECT is refused the file is read buffered and its pages are dropped after each
 * read; every such choice is said once through aeg_log. Offsets, lengths and destinations are multiples of
 * AEG_IO_ALIGN; a file whose size is not ends with a short block, which is not an error as long as the bytes
 * asked for below its end arrive.
 * Thread: owner only. Memory: carved from the arena at open; no call after open allocates.
 */
#ifndef AEG_IO_IO_H
#define AEG_IO_IO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum { AEG_IO_ALIGN = 4096, AEG_IO_MAX_FILES = 8, AEG_IO_MAX_DEPTH = 256 };

typedef enum { AEG_IO_AUTO, AEG_IO_URING, AEG_IO_PREAD, AEG_IO_NULL, AEG_IO_SIM } aeg_io_kind;

typedef struct aeg_io aeg_io;

typedef struct {
    aeg_io_kind kind;             /* AUTO: io_uring, else pread, saying so             */
    uint32_t depth;               /* reads in flight at most, 1..AEG_IO_MAX_DEPTH      */
    uint32_t n_files;
    const char *paths[AEG_IO_MAX_FILES];
    void *buffer;                 /* the one region reads go to (may be NULL: not registered);   */
    uint64_t buffer_bytes;        /* see aeg_io_set_buffer                                       */
    uint64_t buffer_unit;
    uint32_t n_threads;           /* pread pool: threads; 0 = 4                        */
    bool buffered;                /* never O_DIRECT (tests, comparisons)               */
    double sim_bytes_per_s, sim_latency_s;
    /* tests: called before each read is issued; non-zero = fail it with that errno */
    int (*fault)(void *ctx, uint32_t file, uint64_t offset);
    void *fault_ctx;
} aeg_io_config;

typedef struct {
    uint32_t file;     /* index in paths         */
    uint32_t bytes;    /* multiple of AEG_IO_ALIGN, > 0 */
    uint64_t offset;
    void *dst;
    uint64_t tag;      /* comes back in the completion */
} aeg_io_read;

typedef struct {
    uint64_t tag;
    int os_code;       /* 0, or errno of the failed read (short reads are EIO) */
    uint32_t bytes;
} aeg_io_done;

/* AEGIS_E_IO names the file. Measuring: *out stays NULL and no file is touched. */
aegis_status aeg_io_open(aeg_io **out, aeg_arena *arena, const aeg_io_config *cfg, aegis_error *err);
void aeg_io_close(aeg_io *io); /* waits for reads in flight; NULL allowed */

/* Name (or change) the region before the first read, for callers that carve it after aeg_io_open. io_uring registers it
 * where the locked-memory limit allows: in pieces of several units, each when the first read goes there, so that
 * opening touches no memory. A read that lies across two pieces goes unregistered; reads that each stay inside one
 * unit never do. unit 0: AEG_IO_ALIGN. */
aegis_status aeg_io_set_buffer(aeg_io *io, void *buffer, uint64_t bytes, uint64_t unit, aegis_error *err);

uint32_t aeg_io_room(const aeg_io *io);   /* reads that may still be queued  */
uint32_t aeg_io_flight(const aeg_io *io); /* queued and not yet returned by wait */
bool aeg_io_reads(const aeg_io *io);      /* false: the null back end, what "arrives" is undefined */

/* Queue one read (room must be > 0); aeg_io_submit hands everything queued to the system in one call. */
void aeg_io_queue(aeg_io *io, const aeg_io_read *read);
aegis_status aeg_io_submit(aeg_io *io, aegis_error *err);

/* Completions in any order: up to max; waits for at least `min` (0 = only poll; min <= flight). Returns the
 * number through *n. A failed read is a completion with os_code, not an error of this call. */
aegis_status aeg_io_wait(aeg_io *io, uint32_t min, aeg_io_done *out, uint32_t max, uint32_t *n,
                         aegis_error *err);

/* A blocking read of any offset/length/destination through the same file descriptors (bounce buffer inside;
 * used at open for dense.bin). */
aegis_status aeg_io_read_sync(aeg_io *io, uint32_t file, uint64_t offset, void *dst, uint64_t bytes,
                              aegis_error *err);

typedef struct {
    uint64_t reads, bytes;
    uint64_t busy_ns;    /* time with at least one read in flight */
    uint64_t wait_ns;    /* time the owner was blocked in aeg_io_wait */
    /* By file: what was read in that time, the bytes of a read spread evenly from its submission to its completion. A completion
     * counts when it is noticed. */
    uint64_t wait_bytes[AEG_IO_MAX_FILES];
} aeg_io_stats;
aeg_io_stats aeg_io_get_stats(const aeg_io *io); /* up to now: reads in flight count as busy */

/* For the plan: kernel memory that opening with `cfg` makes the machine hold besides the arena (rings, the table
 * of a registered buffer's pages, reading threads). An upper estimate; touches no file. */
uint64_t aeg_io_system_bytes(const aeg_io_config *cfg);

/* "io_uring, O_DIRECT, registered buffers" */
const char *aeg_io_describe(const aeg_io *io);
const char *aeg_io_file_name(const aeg_io *io, uint32_t file); /* its path, for messages */

#endif
