/* SPDX-License-Identifier: Apache-2.0 */
#include "bandwidth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/threads.h"

enum { PASSES = 7, BLOCK = 4096 }; /* words per unit of work */

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

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static aeg_bandwidth measure(uint64_t bytes, uint32_t n_threads)
{
    const aeg_bandwidth none = { 0 };
    static job j;
    aeg_arena buffer, threads = aeg_arena_measure("threads");
    aeg_team *team = NULL;
    const uint32_t n_blocks = (uint32_t)(bytes / (BLOCK * sizeof(uint64_t)));
    if (n_blocks == 0 || aeg_arena_map(&buffer, "buffer", bytes, true, NULL) != AEGIS_OK ||
        aeg_team_init(&team, &threads, n_threads, NULL) != AEGIS_OK)
        return none;
    const uint64_t team_bytes = threads.used;
    if (aeg_arena_map(&threads, "threads", team_bytes, false, NULL) != AEGIS_OK ||
        aeg_team_init(&team, &threads, n_threads, NULL) != AEGIS_OK)
        return none;
    memset(buffer.base, 1, bytes);
    j.words = (const uint64_t *)(const void *)buffer.base;
    double rates[PASSES];
    for (int pass = 0; pass < PASSES; pass++) {
        const uint64_t start = aeg_now_ns();
        aeg_team_run(team, n_blocks, sum_blocks, &j);
        rates[pass] = (double)n_blocks * BLOCK * sizeof(uint64_t) * 1e9 / (double)AEG_MAX(aeg_now_ns() - start, 1u);
    }
    uint64_t sum = 0; /* used below, so that no pass can be left out */
    for (uint32_t i = 0; i < n_threads; i++)
        sum += j.sums[i];
    if (sum == 0)
        return none;
    qsort(rates, PASSES, sizeof rates[0], by_value);
    return (aeg_bandwidth){ .min = rates[0], .median = rates[PASSES / 2], .max = rates[PASSES - 1] };
}

uint64_t aeg_bandwidth_bytes(uint64_t budget)
{
    const uint64_t bytes = 256u << 20;
    return budget != 0 ? AEG_MIN(bytes, budget / 2) : bytes;
}

aeg_bandwidth aeg_bandwidth_measure(uint64_t bytes, uint32_t n_threads)
{
    int ends[2];
    aeg_bandwidth rate = { 0 };
    if (pipe(ends) != 0)
        return rate;
    const pid_t child = fork();
    if (child == 0) {
        rate = measure(bytes, n_threads);
        _exit(write(ends[1], &rate, sizeof rate) == sizeof rate ? 0 : 1);
    }
    close(ends[1]);
    if (child > 0 && read(ends[0], &rate, sizeof rate) != sizeof rate)
        rate = (aeg_bandwidth){ 0 };
    close(ends[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return rate;
}
