/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h - what this machine gives the engine, measured with the engine's own parts. For `aegis doctor`.
 *
 * Reads go through the same back ends as expert records do and leave nothing behind. Thread: any; blocking.
 * Memory: depth * record_bytes, or buffer_bytes, for the time of the call.
 */
#ifndef AEGIS_PROBE_H
#define AEGIS_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "aegis/aegis.h"

typedef struct {
    const char *path;        /* a regular file */
    uint64_t record_bytes;   /* of one read: a multiple of 4096, at most 256 MiB */
    uint32_t depth;          /* reads in flight, 1 to 256 */
    bool together;           /* submit `depth` reads, wait for all of them, and so on; else keep `depth` in flight */
    uint64_t first, stride;  /* read i is record (first + i * stride) modulo the records of the file; stride coprime to
                              * their number visits each once before any twice */
    uint64_t buffer_bytes;   /* of the region that is registered; 0, or less than `depth` records: those */
    uint32_t max_reads;      /* stop after as many, or */
    double max_seconds;      /* after this time */
    aegis_io io;             /* AUTO, URING or PREAD */
} aegis_probe_reads;

typedef struct {
    uint64_t n_reads, bytes, ns;
    uint64_t batch_ns;       /* `together`: median time of `depth` reads; a hiccup of the machine does not count */
    uint64_t next;           /* `first` of a call that goes on where this one stopped */
    bool direct, uring, registered;
    char how[128];           /* "io_uring, O_DIRECT, registered buffers" */
} aegis_probe_rate;

/* AEGIS_E_IO: the file cannot be opened or read, or the back end is refused (os_code says why); AEGIS_E_USAGE: the file
 * is shorter than one record, or a number is out of range. */
aegis_status aegis_probe_disk(const aegis_probe_reads *what, aegis_probe_rate *out, aegis_error *err);

/* The engine registers its slots with io_uring in pieces of this size: a smaller region may be allowed where a piece is not. */
enum { AEGIS_PROBE_PIECE = 16 << 20 };

/* Records of record_bytes in a file of this size. */
static inline uint64_t aegis_probe_records(uint64_t file_bytes, uint64_t record_bytes)
{
    return record_bytes == 0 ? 0 : file_bytes / record_bytes;
}

/* How fast the engine's threads read its weights where they lie, by a plain sum: the yardstick of what decoding reaches. On a
 * virtual machine, on several nodes, or with small pages it differs from that of a fresh buffer, and between weights. */
typedef struct {
    double dense_bytes_per_s, experts_bytes_per_s; /* medians of three passes; experts: 0 if no slot holds one (AEGIS_IO_NULL) */
    uint64_t dense_bytes, experts_bytes;           /* read in a pass */
} aegis_resident_rate;

/* AEGIS_E_USAGE: the engine was opened for text only. Touches no page that was not in use. Thread: that of the engine. */
aegis_status aegis_probe_resident(aegis_engine *engine, aegis_resident_rate *out, aegis_error *err);

/* The level that an engine would compute with here, after its self-check; *dropped names a level that this processor
 * announces and whose kernels gave wrong answers (NULL: none). Static texts. */
const char *aegis_probe_kernels(const char **dropped);

#endif
