/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the weights can be read where they lie: one address range of a machine is not as fast as another. */
#include "aegis/probe.h"
#include "base/read_rate.h"
#include "engine_parts.h"

enum { PASSES = 3, BLOCK_BYTES = 32 << 10 };

typedef struct {
    aeg_reader reader; /* first */
    const uint8_t *dense;
    const aeg_streamer *streamer;
    uint64_t record_bytes;
} read_job;

static void read_dense(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    read_job *j = ctx;
    aeg_reader_read(&j->reader, j->dense + (uint64_t)begin * BLOCK_BYTES, (uint64_t)(end - begin) * BLOCK_BYTES, thread);
}

static void read_slots(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    read_job *j = ctx;
    for (uint32_t slot = begin; slot < end; slot++) {
        const uint8_t *record = aeg_streamer_record(j->streamer, slot);
        if (record != NULL)
            aeg_reader_read(&j->reader, record, j->record_bytes, thread);
    }
}

aegis_status aegis_probe_resident(aegis_engine *e, aegis_resident_rate *out, aegis_error *err)
{
    *out = (aegis_resident_rate){ 0 };
    if (e->text_only)
        return aeg_fail(err, AEGIS_E_USAGE, "the engine was opened for text only");
    const aeg_arena *dense = &e->accounts.arena[AEG_ACCT_DENSE];
    read_job j = { .dense = dense->base, .streamer = e->streamer, .record_bytes = e->store->experts.record_bytes };
    out->dense_bytes_per_s = aeg_read_rate_of(e->team, PASSES, (uint32_t)(dense->used / BLOCK_BYTES), read_dense, &j.reader,
                                              &out->dense_bytes).median;
    if (aeg_io_reads(e->io)) /* else nothing was ever written to the slots */
        out->experts_bytes_per_s = aeg_read_rate_of(e->team, PASSES, e->plan.expert_slots, read_slots, &j.reader,
                                                    &out->experts_bytes).median;
    return AEGIS_OK;
}
