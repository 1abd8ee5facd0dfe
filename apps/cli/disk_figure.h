/* SPDX-License-Identifier: Apache-2.0 */
/* disk_figure.h - what doctor measured, kept in $XDG_CACHE_HOME/aegis/doctor.json for plan and bench.
 *
 * One entry per filesystem (its device number) and size of reads, and the read bandwidth of the machine. A file that cannot be read or
 * is not ours counts as none: it is a cache, and doctor writes it anew. Thread: main only.
 */
#ifndef AEG_CLI_DISK_FIGURE_H
#define AEG_CLI_DISK_FIGURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct {
    uint64_t record_bytes;     /* size of the reads */
    double bytes_per_s;        /* random direct reads at the best depth */
    double burst_bytes_per_s;  /* m reads submitted together take latency + m * record / rate */
    double burst_latency_s;
    double read_bandwidth;     /* memory, all threads; 0: not measured */
    int64_t measured_at;       /* seconds since 1970 */
} aeg_disk_figure;

/* Reads of a size that differs by more than this factor have another rate (32 KiB against 1.7 MB: two to ten times), and a figure for
 * one says nothing of the other. */
#define AEG_DISK_SIZE_FACTOR 1.25

/* The figure of the filesystem that holds `path` for reads of record_bytes. False: none is known; then *out is that of the
 * nearest size that was measured, or zero. */
bool aeg_disk_figure_find(const char *path, uint64_t record_bytes, aeg_disk_figure *out);

/* Keep it for that filesystem and size of reads, beside the others. */
aegis_status aeg_disk_figure_save(const char *path, const aeg_disk_figure *figure, aegis_error *err);

/* The read bandwidth kept by doctor, 0 if none. */
double aeg_disk_figure_bandwidth(void);

#endif
