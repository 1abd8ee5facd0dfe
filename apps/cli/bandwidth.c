/* SPDX-License-Identifier: Apache-2.0 */
#include "bandwidth.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/threads.h"

enum { PASSES = 5, BLOCK = 4096 }; /* words per unit of work */

typedef struct {
    const uint64_t *words;
    uint64_t sums[AEG_MAX_THREADS];
} job;

static void sum_blocks(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    job *j = ctx;
    uint64_t sum = 0;
    for (uint64_t i = (uint64_t)begin * BLOCK; i < (uint64_t)end * BLOCK; i++)
        sum += j->words[i];
    j->sums[thread] += sum;
}

static double measure(uint64_t bytes, uint32_t n_threads)
{
    static job j;
    aeg_arena buffer, threads = aeg_arena_measure("threads");
    aeg_team *team = NULL;
    const uint32_t n_blocks = (uint32_t)(bytes / (BLOCK * sizeof(uint64_t)));
    if (n_blocks == 0 || aeg_arena_map(&buffer, "buffer", bytes, true, NULL) != AEGIS_OK ||
        aeg_team_init(&team, &threads, n_threads, NULL) != AEGIS_OK)
        return 0;
    const uint64_t team_bytes = threads.used;
    if (aeg_arena_map(&threads, "threads", team_bytes, false, NULL) != AEGIS_OK ||
        aeg_team_init(&team, &threads, n_threads, NULL) != AEGIS_OK)
        return 0;
    memset(buffer.base, 1, bytes);
    j.words = (const uint64_t *)(const void *)buffer.base;
    uint64_t best_ns = UINT64_MAX;
    for (int pass = 0; pass < PASSES; pass++) {
        const uint64_t start = aeg_now_ns();
        aeg_team_run(team, n_blocks, sum_blocks, &j);
        const uint64_t ns = aeg_now_ns() - start;
        if (ns < best_ns)
            best_ns = ns;
    }
    uint64_t sum = 0; /* used below, so that no pass can be left out */
    for (uint32_t i = 0; i < n_threads; i++)
        sum += j.sums[i];
    return sum == 0 ? 0 : (double)n_blocks * BLOCK * sizeof(uint64_t) * 1e9 / (double)best_ns;
}

double aeg_bandwidth_measure(uint64_t bytes, uint32_t n_threads)
{
    int ends[2];
    double rate = 0;
    if (pipe(ends) != 0)
        return 0;
    const pid_t child = fork();
    if (child == 0) {
        rate = measure(bytes, n_threads);
        _exit(write(ends[1], &rate, sizeof rate) == sizeof rate ? 0 : 1);
    }
    close(ends[1]);
    if (child > 0 && read(ends[0], &rate, sizeof rate) != sizeof rate)
        rate = 0;
    close(ends[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return rate;
}
