/* SPDX-License-Identifier: Apache-2.0 */
/* base/threads.h - a fixed team of threads that splits work by output.
 *
 * Work of `n` units is cut into one contiguous range per thread, and each range into pieces. A thread takes the pieces
 * of its own range in order and then helps with the others', so neither a thread that another program has displaced nor
 * one that still sleeps holds the job up. Writes are disjoint, and results do not depend on who did a piece.
 * The caller is thread 0. Between jobs workers spin for a short while and then sleep on a futex.
 * Memory: aeg_team_init carves the team and the stacks from its arena. Thread: one caller at a time.
 */
#ifndef AEG_BASE_THREADS_H
#define AEG_BASE_THREADS_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

typedef struct aeg_team aeg_team;

/* Units [begin, end) of the job, one piece; called several times in a job, in any order. `thread` is in [0, n_threads)
 * and is the one that runs. Must not fail. */
typedef void (*aeg_work)(void *ctx, uint32_t begin, uint32_t end, uint32_t thread);

enum { AEG_MAX_THREADS = 256 };

/* n_threads in [1, AEG_MAX_THREADS], the caller included. Measuring: *out stays NULL. */
aegis_status aeg_team_init(aeg_team **out, aeg_arena *arena, uint32_t n_threads, aegis_error *err);
void aeg_team_close(aeg_team *team); /* NULL allowed; joins the workers */

uint32_t aeg_team_size(const aeg_team *team);

/* Run the jobs from now on with threads [0, n_active) only; the others sleep. 1 <= n_active <= size. Not during a job.
 * Cheap: the kernel is asked only if a thread that is wanted again sleeps. A NULL team has one thread. */
void aeg_team_use(aeg_team *team, uint32_t n_active);
uint32_t aeg_team_in_use(const aeg_team *team);

/* Run `work` over n units and return when all are done. n = 0 is legal. A NULL team means one thread. */
void aeg_team_run(aeg_team *team, uint32_t n, aeg_work work, void *ctx);
/* The same in pieces of at least `grain` units: for work that reads long stretches of memory per unit range. */
void aeg_team_run_grain(aeg_team *team, uint32_t n, uint32_t grain, aeg_work work, void *ctx);

#endif
