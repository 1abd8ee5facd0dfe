/* SPDX-License-Identifier: Apache-2.0 */
#include "expert/streamer.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "expert/streamer_parts.h"

uint32_t aeg_streamer_min_slots(const aeg_store *store) { return store->hparams.top_k; }

/* ---- opening ---- */

static aegis_status check_config(const aeg_streamer_config *cfg, aegis_error *err)
{
    const aeg_hparams *h = &cfg->store->hparams;
    const aeg_store_experts *e = &cfg->store->experts;
    if (cfg->n_slots < aeg_streamer_min_slots(cfg->store))
        return aeg_fail(err, AEGIS_E_BUDGET, "expert slots: %u, expected at least %u", cfg->n_slots,
                        aeg_streamer_min_slots(cfg->store));
    if (cfg->max_demand < 1 || cfg->max_demand > h->n_experts)
        return aeg_fail(err, AEGIS_E_USAGE, "experts in one demand: %u, expected 1 to %u", cfg->max_demand,
                        h->n_experts);
    if (e->record_bytes == 0 || e->record_bytes > UINT32_MAX || e->record_bytes % AEG_IO_ALIGN != 0 ||
        e->down_offset % AEG_IO_ALIGN != 0 || e->down_offset > e->record_bytes)
        return aeg_fail(err, AEGIS_E_MODEL, "expert record: %llu bytes, down part at %llu, expected multiples of %d below 4 GiB",
                        (unsigned long long)e->record_bytes, (unsigned long long)e->down_offset, AEG_IO_ALIGN);
    for (uint32_t layer = h->n_dense_layers; layer < h->n_layers; layer++)
        if (e->gate_up_bytes[layer] > e->down_offset || e->down_bytes[layer] > e->record_bytes - e->down_offset)
            return aeg_fail(err, AEGIS_E_MODEL, "layer %u: expert parts of %llu and %llu bytes do not fit their record",
                            layer, (unsigned long long)e->gate_up_bytes[layer], (unsigned long long)e->down_bytes[layer]);
    return AEGIS_OK;
}

/* How many slots a prefill may hold at once for what it reads: enough to keep the disk busy behind the views
 * that are being computed, and at most half of the pool, so that the hotter half stays. */
static uint32_t window_of(uint32_t depth, uint32_t n_slots)
{
    return AEG_MAX(2u, AEG_MIN(2 * depth, n_slots / 2));
}

aegis_status aeg_streamer_init(aeg_streamer **out, aeg_arena *arena, aeg_arena *slots,
                               const aeg_streamer_config *cfg, aegis_error *err)
{
    AEG_TRY(check_config(cfg, err));
    const aeg_hparams *h = &cfg->store->hparams;
    const aeg_store_experts *e = &cfg->store->experts;
    const aeg_slots_config pool = { .n_slots = cfg->n_slots, .n_keys = aeg_moe_layers(h) * h->n_experts,
                                    .n_experts = h->n_experts,
                                    .half_life = aeg_slots_half_life(h->n_experts, h->top_k) };
    aeg_streamer *s = AEG_ARENA_ARRAY(arena, aeg_streamer, 1);
    aeg_streamer made = { .first_layer = h->n_dense_layers, .n_layers = h->n_layers, .n_experts = h->n_experts, .top_k = h->top_k,
                          .n_slots = cfg->n_slots, .max_demand = cfg->max_demand, .file = cfg->file, .record_bytes = e->record_bytes,
                          .down_offset = e->down_offset, .split_bytes = cfg->split_bytes, .experts = e, .io = cfg->io,
                          .predictor = { .prefetch = cfg->prefetch }, .telemetry = cfg->telemetry,
                          .telemetry_ctx = cfg->telemetry_ctx };
    AEG_TRY(aeg_slots_init(&made.slots, arena, &pool, err));
    made.uses = AEG_ARENA_ARRAY(arena, slot_use, cfg->n_slots);
    made.entries = AEG_ARENA_ARRAY(arena, entry, cfg->max_demand);
    made.arrived = AEG_ARENA_ARRAY(arena, uint32_t, cfg->max_demand);
    made.waiting = AEG_ARENA_ARRAY(arena, uint32_t, cfg->max_demand);
    made.guessed = AEG_ARENA_ARRAY(arena, uint32_t, cfg->max_demand);
    made.memory = aeg_arena_alloc(slots, cfg->n_slots * e->record_bytes, AEG_PAGE);
    if (aeg_arena_measuring(arena) || aeg_arena_measuring(slots))
        return AEGIS_OK;
    AEG_TRY(aeg_arena_check(arena, err));
    AEG_TRY(aeg_arena_check(slots, err));

    AEG_TRY(aeg_io_set_buffer(made.io, made.memory, cfg->n_slots * e->record_bytes, e->record_bytes, err));
    made.depth = aeg_io_room(made.io);
    made.window = window_of(made.depth, cfg->n_slots);
    made.demand.failed = NO_ENTRY;
    for (uint32_t i = 0; i < cfg->n_slots; i++)
        made.uses[i].entry = NO_ENTRY;
    *s = made;
    *out = s;
    return AEGIS_OK;
}

/* ---- reads ---- */

/* A slot for entry i, which must have one or nothing can go on: the last hit that was not given yet gives up
 * its slot and is read again in its turn. */
static bool release_last_hit(aeg_streamer *s, uint32_t i)
{
    demand *d = &s->demand;
    for (uint32_t j = d->n; j-- > i + 1;) {
        entry *e = &s->entries[j];
        if (e->state != ENTRY_READY || e->found == FOUND_MISS)
            continue;
        s->uses[e->slot].entry = NO_ENTRY;
        aeg_slots_unpin(s->slots, e->slot);
        d->found[e->found]--;
        d->found[FOUND_MISS]++;
        e->found = FOUND_MISS;
        e->state = ENTRY_MISSING;
        d->n_missing++;
        return true;
    }
    return false;
}

static uint32_t slot_for(aeg_streamer *s, uint32_t i)
{
    const demand *d = &s->demand;
    const bool next = d->ordered && i == d->n_given;
    if (d->ordered && !next && d->n_held >= s->window)
        return AEG_NO_SLOT;
    const uint32_t key = aeg_streamer_key(s, d->layer, s->entries[i].expert);
    uint32_t slot = aeg_slots_take(s->slots, key);
    /* A running read frees its slot sooner than reading a hit again would. */
    if (slot == AEG_NO_SLOT && next && aeg_io_flight(s->io) == 0 && release_last_hit(s, i))
        slot = aeg_slots_take(s->slots, key);
    return slot;
}

/* Give slots to missing experts and submit their reads, as many as fit, in ascending order. */
static aegis_status pump_demand(aeg_streamer *s, aegis_error *err)
{
    demand *d = &s->demand;
    while (d->n_missing > 0 && aeg_streamer_has_room(s, d->layer)) {
        while (s->entries[d->next_missing].state != ENTRY_MISSING)
            d->next_missing++;
        const uint32_t i = d->next_missing, slot = slot_for(s, i);
        if (slot == AEG_NO_SLOT)
            break;
        aeg_streamer_forget_guess(s, slot);
        entry *e = &s->entries[i];
        s->uses[slot] = (slot_use){ .entry = i };
        e->slot = slot;
        e->state = ENTRY_FLIGHT;
        d->n_missing--;
        d->n_flight++;
        d->n_held++;
        aeg_streamer_queue_reads(s, slot);
    }
    return aeg_io_submit(s->io, err);
}

/* ---- a demand ---- */

static aegis_status check_demand(const aeg_streamer *s, uint32_t layer, const uint16_t *experts, uint32_t n,
                                 aegis_error *err)
{
    const demand *d = &s->demand;
    if (d->n_done < d->n)
        return aeg_fail(err, AEGIS_E_RUNTIME, "layer %u: experts demanded while %u of %u of layer %u are not done", layer,
                        d->n - d->n_done, d->n, d->layer);
    if (!aeg_streamer_has_layer(s, layer) || n > s->max_demand)
        return aeg_fail(err, AEGIS_E_USAGE, "layer %u: %u experts demanded, expected layers %u to %u and at most %u", layer,
                        n, s->first_layer, s->n_layers - 1, s->max_demand);
    for (uint32_t i = 0; i < n; i++)
        if (experts[i] >= s->n_experts || (i > 0 && experts[i] <= experts[i - 1]))
            return aeg_fail(err, AEGIS_E_USAGE, "layer %u: expert %u at place %u, expected ascending ids below %u", layer,
                            experts[i], i, s->n_experts);
    return AEGIS_OK;
}

static void add_entry(aeg_streamer *s, uint32_t i, uint16_t expert)
{
    demand *d = &s->demand;
    const uint32_t slot = aeg_slots_find(s->slots, aeg_streamer_key(s, d->layer, expert));
    entry *e = &s->entries[i];
    *e = (entry){ .slot = slot, .expert = expert, .state = ENTRY_MISSING, .found = FOUND_MISS };
    if (slot == AEG_NO_SLOT) {
        d->n_missing++;
        d->found[FOUND_MISS]++;
        return;
    }
    slot_use *use = &s->uses[slot];
    e->found = use->guess == GUESS_READ ? FOUND_PREFETCH : FOUND_HIT;
    d->found[e->found]++;
    aeg_streamer_close_guess(s, slot, false);
    aeg_slots_pin(s->slots, slot);
    use->entry = i;
    if (aeg_slots_state(s->slots, slot) == AEG_SLOT_READY) {
        e->state = ENTRY_READY;
        if (!d->ordered)
            s->arrived[s->n_arrived++] = i;
    } else {
        e->state = ENTRY_FLIGHT;
        d->n_flight++;
    }
}

/* All views were given: count and report. Demands that were abandoned count nowhere. */
static void tell(aeg_streamer *s)
{
    const demand *d = &s->demand;
    s->stats.demands++;
    s->stats.hits += d->found[FOUND_HIT];
    s->stats.prefetch_hits += d->found[FOUND_PREFETCH];
    s->stats.misses += d->found[FOUND_MISS];
    s->stats.by_misses[AEG_MIN(d->found[FOUND_MISS], (uint32_t)AEG_STREAMER_MISSES)]++;
    const aeg_streamer_event event = { .token = s->token, .layer = d->layer, .n_experts = d->n,
                                       .hits = d->found[FOUND_HIT], .prefetch_hits = d->found[FOUND_PREFETCH],
                                       .misses = d->found[FOUND_MISS],
                                       .read_bytes = s->stats.read_bytes - s->told_bytes, .wait_ns = d->wait_ns };
    s->told_bytes = s->stats.read_bytes;
    if (s->telemetry != NULL)
        s->telemetry(s->telemetry_ctx, &event);
}

static uint32_t n_tokens(const aeg_streamer *s, const uint32_t *uses, uint32_t n)
{
    uint32_t routes = 0;
    for (uint32_t i = 0; i < n; i++)
        routes += uses[i];
    return routes / AEG_MAX(s->top_k, 1u);
}

aegis_status aeg_streamer_demand(aeg_streamer *s, uint32_t layer, const uint16_t *experts,
                                 const uint32_t *uses, uint32_t n, bool ordered, aegis_error *err)
{
    AEG_TRY(check_demand(s, layer, experts, n, err));
    AEG_TRY(aeg_streamer_reap(s, 0, err));
    demand *d = &s->demand;
    *d = (demand){ .layer = layer, .n = n, .ordered = ordered, .failed = NO_ENTRY };
    s->n_arrived = s->arrived_head = 0;
    s->n_waiting = s->waiting_head = 0; /* demand needs the queue */
    aeg_predictor_begin(&s->predictor, aeg_now_ns(), ordered);
    /* All uses are counted and all hits pinned before the first victim is chosen. */
    aeg_slots_begin(s->slots, layer, n_tokens(s, uses, n));
    for (uint32_t i = 0; i < n; i++)
        aeg_slots_use(s->slots, aeg_streamer_key(s, layer, experts[i]), uses[i]);
    for (uint32_t i = 0; i < n; i++)
        add_entry(s, i, experts[i]);
    aeg_streamer_close_guesses(s, layer);
    if (n == 0)
        tell(s);
    return pump_demand(s, err);
}

static void give(aeg_streamer *s, uint32_t i, aeg_expert_view *out)
{
    entry *e = &s->entries[i];
    assert(e->state == ENTRY_READY);
    e->state = ENTRY_GIVEN;
    if (s->demand.n_given++ == s->demand.n_done)
        s->held_since_ns = aeg_now_ns();
    const uint8_t *record = s->memory + e->slot * s->record_bytes;
    *out = (aeg_expert_view){ .index = i, .gate_up = record, .down = record + s->down_offset, .slot = e->slot };
}

static uint32_t give_ready(aeg_streamer *s, aeg_expert_view *out, uint32_t max)
{
    demand *d = &s->demand;
    uint32_t n = 0;
    if (d->ordered)
        while (n < max && d->n_given < d->n && s->entries[d->n_given].state == ENTRY_READY)
            give(s, d->n_given, &out[n++]);
    else
        while (n < max && s->arrived_head < s->n_arrived)
            give(s, s->arrived[s->arrived_head++], &out[n++]);
    return n;
}

static aegis_status fail_read(const aeg_streamer *s, aegis_error *err)
{
    const demand *d = &s->demand;
    const uint32_t expert = s->entries[d->failed].expert;
    return aeg_fail_os(err, AEGIS_E_IO, d->os_code, "%s: expert %u of layer %u, %llu bytes at offset %llu",
                       aeg_io_file_name(s->io, s->file), expert, d->layer, (unsigned long long)s->record_bytes,
                       (unsigned long long)(aeg_streamer_key(s, d->layer, expert) * s->record_bytes));
}

static aegis_status wait_arrival(aeg_streamer *s, aegis_error *err)
{
    demand *d = &s->demand;
    if (aeg_io_flight(s->io) == 0)
        return aeg_fail(err, AEGIS_E_RUNTIME, "layer %u: all %u expert slots are held and %u experts are missing", d->layer,
                        s->n_slots, d->n_missing);
    const uint64_t start = aeg_now_ns(), busy = aeg_io_get_stats(s->io).busy_ns;
    const aegis_status status = aeg_streamer_reap(s, 1, err);
    s->stats.wait_busy_ns += aeg_io_get_stats(s->io).busy_ns - busy;
    const uint64_t waited = aeg_now_ns() - start;
    d->wait_ns += waited;
    s->stats.wait_ns += waited;
    return status;
}

static aegis_status take(aeg_streamer *s, bool wait, aeg_expert_view *out, uint32_t max, uint32_t *n, aegis_error *err)
{
    demand *d = &s->demand;
    *n = 0;
    if (max == 0 || d->n_given == d->n)
        return AEGIS_OK;
    AEG_TRY(aeg_streamer_reap(s, 0, err));
    for (;;) {
        AEG_TRY(pump_demand(s, err));
        if (d->failed != NO_ENTRY)
            return fail_read(s, err);
        *n = give_ready(s, out, max);
        if (*n > 0 || !wait)
            break;
        AEG_TRY(wait_arrival(s, err));
    }
    aeg_streamer_pump_guesses(s);
    if (d->n_given == d->n)
        tell(s);
    return AEGIS_OK;
}

aegis_status aeg_streamer_take(aeg_streamer *s, aeg_expert_view *out, uint32_t max, uint32_t *n,
                               aegis_error *err)
{
    return take(s, true, out, max, n, err);
}

aegis_status aeg_streamer_poll(aeg_streamer *s, aeg_expert_view *out, uint32_t max, uint32_t *n,
                               aegis_error *err)
{
    return take(s, false, out, max, n, err);
}

void aeg_streamer_done(aeg_streamer *s, const aeg_expert_view *view)
{
    demand *d = &s->demand;
    assert(view->index < d->n && s->entries[view->index].state == ENTRY_GIVEN);
    entry *e = &s->entries[view->index];
    e->state = ENTRY_DONE;
    if (++d->n_done == d->n_given)
        s->stats.held_ns += aeg_now_ns() - s->held_since_ns;
    d->n_held -= e->found == FOUND_MISS;
    s->uses[e->slot].entry = NO_ENTRY;
    aeg_slots_unpin(s->slots, e->slot);
    if (d->failed != NO_ENTRY)
        return;
    if (d->n_missing > 0)
        pump_demand(s, NULL); /* an error comes back in the next take */
    if (d->ordered)
        aeg_streamer_pump_guesses(s);
}

void aeg_streamer_abort(aeg_streamer *s)
{
    demand *d = &s->demand;
    s->n_waiting = s->waiting_head = 0;
    d->n_missing = 0;
    while (d->n_flight > 0)
        if (aeg_streamer_reap(s, 1, NULL) != AEGIS_OK)
            break; /* the slots stay FILLING, so nothing else is put there */
    for (uint32_t i = 0; i < d->n; i++) {
        const entry *e = &s->entries[i];
        if (e->state != ENTRY_FLIGHT && e->state != ENTRY_READY && e->state != ENTRY_GIVEN)
            continue;
        s->uses[e->slot].entry = NO_ENTRY;
        aeg_slots_unpin(s->slots, e->slot);
    }
    *d = (demand){ .failed = NO_ENTRY };
    s->n_arrived = s->arrived_head = 0;
    aeg_predictor_forget(&s->predictor);
}

void aeg_streamer_close(aeg_streamer *s)
{
    if (s == NULL)
        return;
    aeg_streamer_abort(s);
    while (aeg_io_flight(s->io) > 0)
        if (aeg_streamer_reap(s, 1, NULL) != AEGIS_OK)
            break;
}

void aeg_streamer_tick(aeg_streamer *s, uint32_t n_tokens)
{
    aeg_slots_tick(s->slots, n_tokens);
    s->token += n_tokens;
}

aeg_streamer_stats aeg_streamer_get_stats(const aeg_streamer *s) { return s->stats; }

const uint8_t *aeg_streamer_record(const aeg_streamer *s, uint32_t slot)
{
    return aeg_slots_state(s->slots, slot) == AEG_SLOT_READY ? s->memory + slot * s->record_bytes : NULL;
}

bool aeg_streamer_resident(const aeg_streamer *s, uint32_t layer, uint32_t expert)
{
    if (!aeg_streamer_has_layer(s, layer) || expert >= s->n_experts)
        return false;
    const uint32_t slot = aeg_slots_find(s->slots, aeg_streamer_key(s, layer, expert));
    return slot != AEG_NO_SLOT && aeg_slots_state(s->slots, slot) == AEG_SLOT_READY;
}
