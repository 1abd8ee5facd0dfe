/* SPDX-License-Identifier: Apache-2.0 */
/* bandwidth.h - how fast this machine reads memory, as a yardstick for bench rows. Thread: main only. */
#ifndef AEG_CLI_BANDWIDTH_H
#define AEG_CLI_BANDWIDTH_H

#include <stdint.h>

/* Bytes per second of a plain sum over `bytes` of memory by n_threads, best of several passes; 0 if it cannot be
 * measured. Runs in a child process, so that the buffer does not show in our own peak. */
double aeg_bandwidth_measure(uint64_t bytes, uint32_t n_threads);

#endif
