/* SPDX-License-Identifier: Apache-2.0 */
/* base/threads.h - a fixed team of threads that splits work by output.
 *
 * Work of `n` units is cut into contiguous static ranges, so writes are disjoint and results do
 * not depend on the number of threads. The caller is thread 0. Between jobs workers spin for a
 * short while and then sleep on a futex.
 * Memory: aeg_team_init carves the team and the stacks from its arena. Thread: one caller at a time.
 */
#ifndef AEG_BASE_THREADS_H
#define AEG_BASE_THREADS_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

typedef struct aeg_team aeg_team;

/* Units [begin, end) of the job; `thread` is in [0, n_threads). Must not fail. */
typedef void (*aeg_work)(void *ctx, uint32_t begin, uint32_t end, uint32_t thread);

enum { AEG_MAX_THREADS = 256 };

/* n_threads in [1, AEG_MAX_THREADS], the caller included. Measuring: *out stays NULL. */
aegis_status aeg_team_init(aeg_team **out, aeg_arena *arena, uint32_t n_threads, aegis_error *err);
void aeg_team_close(aeg_team *team); /* NULL allowed; joins the workers */

uint32_t aeg_team_size(const aeg_team *team);

/* Run `work` over n units and return when all are done. n = 0 is legal. A NULL team means one thread. */
void aeg_team_run(aeg_team *team, uint32_t n, aeg_work work, void *ctx);

#endif
