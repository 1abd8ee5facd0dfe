/* SPDX-License-Identifier: Apache-2.0 */
/* bandwidth.h - how fast this machine reads memory: the yardstick of bench rows and of predictions. Thread: main only. */
#ifndef AEG_CLI_BANDWIDTH_H
#define AEG_CLI_BANDWIDTH_H

#include <stdint.h>

#include "base/read_rate.h"

typedef aeg_read_rate aeg_bandwidth; /* bytes per second over the passes; 0: not measured */

/* A plain sum over `bytes` of memory by n_threads, several passes. Runs in a child process, so that the buffer does not
 * show in our own peak. */
aeg_bandwidth aeg_bandwidth_measure(uint64_t bytes, uint32_t n_threads);

/* The size a measurement takes: well above the caches, and within half of a budget (0: none). */
uint64_t aeg_bandwidth_bytes(uint64_t budget);

#endif
