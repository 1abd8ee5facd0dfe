/* SPDX-License-Identifier: Apache-2.0 */
/* expert/streamer_guess.c - experts that are read before their layer asks. */
#include "base/checked.h"
#include "expert/streamer_parts.h"

void aeg_streamer_forget_guess(aeg_streamer *s, uint32_t slot)
{
    if (s->uses[slot].guess != GUESS_READ)
        return;
    s->stats.guesses_wasted++;
    s->n_guess_reads--;
}

void aeg_streamer_close_guess(aeg_streamer *s, uint32_t slot, bool wasted)
{
    slot_use *use = &s->uses[slot];
    if (use->guess == GUESS_READ) {
        s->stats.guesses_wasted += wasted;
        s->n_guess_reads--;
    }
    if (use->guess != GUESS_NONE)
        aeg_slots_settle(s->slots, slot);
    use->guess = GUESS_NONE;
}

/* May a guess be read now? In decode only while no demand read waits or runs. A prefill reads the next layer's first
 * experts behind its own last ones, inside its window. */
static bool guesses_run(const aeg_streamer *s)
{
    const demand *d = &s->demand;
    if (d->n_missing > 0)
        return false;
    return d->ordered ? d->n_held + s->n_guess_reads < s->window : d->n_flight == 0;
}

void aeg_streamer_pump_guesses(aeg_streamer *s)
{
    if (s->waiting_head == s->n_waiting)
        return;
    while (s->waiting_head < s->n_waiting && guesses_run(s) && aeg_streamer_has_room(s, aeg_streamer_layer(s, s->waiting[s->waiting_head]))) {
        const uint32_t key = s->waiting[s->waiting_head++];
        if (aeg_slots_find(s->slots, key) != AEG_NO_SLOT || s->n_guessed == s->max_demand)
            continue;
        const uint32_t slot = aeg_slots_take_guess(s->slots, key);
        if (slot == AEG_NO_SLOT)
            continue;
        aeg_streamer_forget_guess(s, slot);
        s->uses[slot] = (slot_use){ .entry = NO_ENTRY, .guess = GUESS_READ };
        s->guessed[s->n_guessed++] = key;
        s->n_guess_reads++;
        s->stats.guesses++;
        aeg_streamer_queue_reads(s, slot);
    }
    aeg_io_submit(s->io, NULL); /* a guess may fail in silence: the demand will tell */
}

void aeg_streamer_close_guesses(aeg_streamer *s, uint32_t layer)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < s->n_guessed; k++) {
        const uint32_t key = s->guessed[k], slot = aeg_slots_find(s->slots, key);
        if (slot == AEG_NO_SLOT || s->uses[slot].guess == GUESS_NONE)
            continue;
        if (aeg_streamer_layer(s, key) == layer)
            aeg_streamer_close_guess(s, slot, true);
        else
            s->guessed[kept++] = key;
    }
    s->n_guessed = kept;
}

void aeg_streamer_guess(aeg_streamer *s, uint32_t layer, const uint16_t *experts, uint32_t n)
{
    uint32_t limit = aeg_predictor_limit(&s->predictor);
    if (limit == 0 || !aeg_streamer_has_layer(s, layer))
        return;
    if (s->predictor.prefetch > 0 && !s->demand.ordered)
        n = AEG_MIN(n, limit);
    for (uint32_t k = 0; k < n; k++) {
        if (experts[k] >= s->n_experts)
            continue;
        const uint32_t key = aeg_streamer_key(s, layer, experts[k]), slot = aeg_slots_find(s->slots, key);
        if (slot == AEG_NO_SLOT) {
            if (limit == 0 || s->n_waiting == s->max_demand)
                continue;
            s->waiting[s->n_waiting++] = key;
            limit--;
        } else if (s->uses[slot].guess == GUESS_NONE && s->n_guessed < s->max_demand) {
            s->uses[slot].guess = GUESS_KEPT;
            s->guessed[s->n_guessed++] = key;
            aeg_slots_favour(s->slots, slot);
        }
    }
    aeg_streamer_pump_guesses(s);
}

void aeg_streamer_pump(aeg_streamer *s)
{
    if (s->waiting_head < s->n_waiting && aeg_streamer_reap(s, 0, NULL) == AEGIS_OK)
        aeg_streamer_pump_guesses(s);
}
