/* SPDX-License-Identifier: Apache-2.0 */
/* base/clock.h - monotonic time. Thread: any. */
#ifndef AEG_BASE_CLOCK_H
#define AEG_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t aeg_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#endif
