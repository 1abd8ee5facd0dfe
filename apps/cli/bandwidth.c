/* SPDX-License-Identifier: Apache-2.0 */
#include "bandwidth.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"

enum { PASSES = 7, BLOCK = 32 << 10 }; /* bytes per unit of work */

typedef struct {
    aeg_reader reader; /* first */
    const uint8_t *buffer;
} job;

static void read_blocks(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    job *j = ctx;
    aeg_reader_read(&j->reader, j->buffer + (uint64_t)begin * BLOCK, (uint64_t)(end - begin) * BLOCK, thread);
}

static aeg_bandwidth measure(uint64_t bytes, uint32_t n_threads)
{
    const aeg_bandwidth none = { 0 };
    static job j;
    aeg_arena buffer, threads = aeg_arena_measure("threads");
    aeg_team *team = NULL;
    const uint32_t n_blocks = (uint32_t)(bytes / BLOCK);
    if (n_blocks == 0 || aeg_arena_map(&buffer, "buffer", bytes, true, NULL) != AEGIS_OK ||
        aeg_team_init(&team, &threads, n_threads, NULL) != AEGIS_OK)
        return none;
    const uint64_t team_bytes = threads.used;
    if (aeg_arena_map(&threads, "threads", team_bytes, false, NULL) != AEGIS_OK ||
        aeg_team_init(&team, &threads, n_threads, NULL) != AEGIS_OK)
        return none;
    memset(buffer.base, 1, bytes);
    j.buffer = buffer.base;
    return aeg_read_rate_of(team, PASSES, n_blocks, read_blocks, &j.reader, NULL);
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
