/* SPDX-License-Identifier: Apache-2.0 */
/* base/processors.h - which processors this process may run on, and which of them share a core.
 *
 * Source: sched_getaffinity(2) and /sys/devices/system/cpu/cpuN/topology/thread_siblings_list. Thread: any. No heap.
 */
#ifndef AEG_BASE_PROCESSORS_H
#define AEG_BASE_PROCESSORS_H

#include <stdbool.h>
#include <stdint.h>

enum { AEG_MAX_PROCESSORS = 8192 }; /* the largest NR_CPUS that Linux can be built with */

typedef struct {
    uint64_t bits[AEG_MAX_PROCESSORS / 64]; /* processor i is bit i % 64 of word i / 64 */
} aeg_processor_set;

uint32_t aeg_processor_count(const aeg_processor_set *set);

/* "0-3,8,10-11\n", as files of /sys list processors. False, and *out is undefined, if the text is anything else. */
bool aeg_processor_list(const char *text, aeg_processor_set *out);

/* Cores that the processors of `usable` belong to. `folder`: /sys/devices/system/cpu. A processor whose siblings cannot
 * be told counts as a core of its own. */
uint32_t aeg_core_count(const char *folder, const aeg_processor_set *usable);

/* Of this process, at most AEG_MAX_THREADS and at least 1. */
uint32_t aeg_usable_processors(void);
uint32_t aeg_usable_cores(void);

#endif
