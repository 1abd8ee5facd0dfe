/* SPDX-License-Identifier: Apache-2.0 */
/* base/process.h - what the operating system says about memory. Thread: any. */
#ifndef AEG_BASE_PROCESS_H
#define AEG_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t rss_bytes;        /* VmRSS: anonymous + file + shared pages now */
    uint64_t peak_bytes;       /* VmHWM                                      */
    uint64_t page_table_bytes; /* VmPTE                                      */
} aeg_process_memory;

/* False where /proc is not readable. */
bool aeg_process_memory_now(aeg_process_memory *out);

typedef struct {
    uint64_t total_bytes;      /* of the machine, or the memory cgroup's limit if smaller       */
    uint64_t available_bytes;  /* free now for us: reclaimable cache counts as free             */
    bool limited_by_cgroup;
} aeg_machine_memory;

bool aeg_machine_memory_now(aeg_machine_memory *out);

/* The beginning of a file of /proc, /sys or a cgroup as a text of less than `size` bytes. False, and an empty text, if
 * there is nothing to read. No heap. */
bool aeg_system_text(const char *path, char *out, size_t size);

#endif
