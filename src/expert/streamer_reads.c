/* SPDX-License-Identifier: Apache-2.0 */
/* expert/streamer_reads.c - from a slot to reads, and from completions back to slots and demands. */
#include "base/checked.h"
#include "base/clock.h"
#include "expert/streamer_parts.h"

enum {
    MAX_PARTS = 2,
    HOLE_MIN = 64 << 10,  /* padding between the parts that is worth a second read to skip */
    REAP_MAX = 32,
};

/* The reads that fetch a record of `layer`; padding behind the last used byte is not read. */
static uint32_t plan_reads(const aeg_streamer *s, uint32_t layer, uint64_t at[MAX_PARTS], uint64_t bytes[MAX_PARTS])
{
    const uint64_t first = aeg_align_up(s->experts->gate_up_bytes[layer], AEG_IO_ALIGN);
    const uint64_t second = aeg_align_up(s->experts->down_bytes[layer], AEG_IO_ALIGN);
    const bool hole = s->down_offset - first >= HOLE_MIN;
    const bool large = s->split_bytes != 0 && s->record_bytes >= s->split_bytes;
    at[0] = 0;
    bytes[0] = s->down_offset + second;
    if ((!hole && !large) || first == 0 || second == 0 || s->depth < MAX_PARTS)
        return 1;
    bytes[0] = first;
    at[1] = s->down_offset;
    bytes[1] = second;
    return 2;
}

void aeg_streamer_queue_reads(aeg_streamer *s, uint32_t slot)
{
    const uint32_t key = aeg_slots_key(s->slots, slot);
    uint64_t at[MAX_PARTS], bytes[MAX_PARTS];
    const uint32_t n = plan_reads(s, aeg_streamer_layer(s, key), at, bytes);
    s->uses[slot].parts = (uint8_t)n;
    s->uses[slot].os_code = 0;
    for (uint32_t i = 0; i < n; i++) {
        const aeg_io_read read = { .file = s->file, .bytes = (uint32_t)bytes[i], .tag = slot,
                                   .offset = key * s->record_bytes + at[i],
                                   .dst = s->memory + slot * s->record_bytes + at[i] };
        aeg_io_queue(s->io, &read);
    }
}

bool aeg_streamer_has_room(const aeg_streamer *s, uint32_t layer)
{
    uint64_t at[MAX_PARTS], bytes[MAX_PARTS];
    return aeg_io_room(s->io) >= plan_reads(s, layer, at, bytes);
}

static void entry_arrived(aeg_streamer *s, uint32_t i, int os_code)
{
    demand *d = &s->demand;
    s->entries[i].state = os_code == 0 ? ENTRY_READY : ENTRY_FAILED;
    if (os_code != 0 && d->failed == NO_ENTRY) {
        d->failed = i;
        d->os_code = os_code;
    }
    if (os_code == 0 && !d->ordered)
        s->arrived[s->n_arrived++] = i;
    if (--d->n_flight == 0 && d->n_missing == 0)
        aeg_predictor_end(&s->predictor, aeg_now_ns(), d->found[FOUND_MISS]);
}

static void slot_arrived(aeg_streamer *s, uint32_t slot)
{
    slot_use *use = &s->uses[slot];
    const uint32_t i = use->entry;
    if (use->os_code == 0) {
        aeg_slots_filled(s->slots, slot);
    } else {
        aeg_streamer_close_guess(s, slot, true);
        aeg_slots_drop(s->slots, slot);
        use->entry = NO_ENTRY;
    }
    if (i != NO_ENTRY)
        entry_arrived(s, i, use->os_code);
}

void aeg_streamer_arrived(aeg_streamer *s, const aeg_io_done *done)
{
    if (done->tag >= s->n_slots)
        return; /* nobody waits for it: its owner gave up when the queue failed */
    slot_use *use = &s->uses[done->tag];
    s->stats.read_bytes += done->bytes;
    if (done->os_code != 0)
        use->os_code = done->os_code;
    if (--use->parts == 0)
        slot_arrived(s, (uint32_t)done->tag);
}

aegis_status aeg_streamer_reap(aeg_streamer *s, uint32_t min, aegis_error *err)
{
    aeg_io_done done[REAP_MAX];
    uint32_t n;
    do {
        AEG_TRY(aeg_io_wait(s->io, min, done, REAP_MAX, &n, err));
        min = 0;
        for (uint32_t k = 0; k < n; k++)
            aeg_streamer_arrived(s, &done[k]);
    } while (n == REAP_MAX);
    return AEGIS_OK;
}
