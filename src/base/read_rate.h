/* SPDX-License-Identifier: Apache-2.0 */
/* base/read_rate.h - how fast a team reads memory by a plain sum, one stream per thread: the yardstick of what reads weights.
 * Thread: that of the team. */
#ifndef AEG_BASE_READ_RATE_H
#define AEG_BASE_READ_RATE_H

#include "base/threads.h"

/* Bytes per second over the passes; 0: nothing was read. */
typedef struct { double min, median, max; } aeg_read_rate;

enum { AEG_READ_MAX_PASSES = 16 };

/* Counts what each thread read. A job's context begins with it. */
typedef struct { uint64_t bytes[AEG_MAX_THREADS]; } aeg_reader;

/* Reads `bytes` at p (whole words of 8). */
void aeg_reader_read(aeg_reader *r, const void *p, uint64_t bytes, uint32_t thread);

/* Runs `work` over n units `passes` times (1 to AEG_READ_MAX_PASSES); it reads by aeg_reader_read(ctx, ...). *bytes: of one pass;
 * may be NULL. */
aeg_read_rate aeg_read_rate_of(aeg_team *team, uint32_t passes, uint32_t n, aeg_work work, aeg_reader *ctx, uint64_t *bytes);

#endif
