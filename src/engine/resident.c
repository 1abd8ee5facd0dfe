/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the weights can be read where they lie: one address range of a machine is not as fast as another. */
#include <stdlib.h>

#include "aegis/probe.h"
#include "base/checked.h"
#include "base/clock.h"
#include "engine_parts.h"

enum { PASSES = 3, BLOCK_BYTES = 32 << 10 };

typedef struct {
    const uint8_t *dense;
    const aeg_streamer *streamer;
    uint64_t record_bytes;
    uint64_t bytes[AEG_MAX_THREADS]; /* read by each thread */
} read_job;

static uint64_t sum_of(const uint8_t *p, uint64_t bytes)
{
    const uint64_t *words = (const uint64_t *)(const void *)p;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < bytes / sizeof *words; i++)
        sum += words[i];
    return sum;
}

static void read_range(read_job *j, const uint8_t *p, uint64_t bytes, uint32_t thread)
{
    const uint64_t sum = sum_of(p, bytes);
    __asm__ volatile("" : : "r"(sum)); /* used: the loop cannot be left out */
    j->bytes[thread] += bytes;
}

static void read_dense(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    read_job *j = ctx;
    read_range(j, j->dense + (uint64_t)begin * BLOCK_BYTES, (uint64_t)(end - begin) * BLOCK_BYTES, thread);
}

static void read_slots(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    read_job *j = ctx;
    for (uint32_t slot = begin; slot < end; slot++) {
        const uint8_t *record = aeg_streamer_record(j->streamer, slot);
        if (record != NULL)
            read_range(j, record, j->record_bytes, thread);
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of the passes; *bytes: of one of them. */
static double rate_of(aeg_team *team, uint32_t n, aeg_work work, read_job *j, uint64_t *bytes)
{
    double rates[PASSES];
    for (int pass = 0; pass < PASSES; pass++) {
        uint64_t before = 0, after = 0;
        for (uint32_t i = 0; i < aeg_team_size(team); i++)
            before += j->bytes[i];
        const uint64_t start = aeg_now_ns();
        aeg_team_run(team, n, work, j);
        const uint64_t ns = AEG_MAX(aeg_now_ns() - start, 1u);
        for (uint32_t i = 0; i < aeg_team_size(team); i++)
            after += j->bytes[i];
        *bytes = after - before;
        rates[pass] = (double)*bytes * 1e9 / (double)ns;
    }
    qsort(rates, PASSES, sizeof rates[0], by_value);
    return rates[PASSES / 2];
}

aegis_status aegis_probe_resident(aegis_engine *e, aegis_resident_rate *out, aegis_error *err)
{
    *out = (aegis_resident_rate){ 0 };
    if (e->text_only)
        return aeg_fail(err, AEGIS_E_USAGE, "the engine was opened for text only");
    const aeg_arena *dense = &e->accounts.arena[AEG_ACCT_DENSE];
    read_job j = { .dense = dense->base, .streamer = e->streamer, .record_bytes = e->store->experts.record_bytes };
    out->dense_bytes_per_s = rate_of(e->team, (uint32_t)(dense->used / BLOCK_BYTES), read_dense, &j, &out->dense_bytes);
    if (aeg_io_reads(e->io)) /* else nothing was ever written to the slots */
        out->experts_bytes_per_s = rate_of(e->team, e->plan.expert_slots, read_slots, &j, &out->experts_bytes);
    return AEGIS_OK;
}
