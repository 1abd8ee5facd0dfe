/* SPDX-License-Identifier: Apache-2.0 */
#include "expert/replay.h"

#include "base/checked.h"
#include "expert/replay_cache.h"

enum { IO_DEPTH = 32 }; /* as the engine's: half of the window of a prefill */

const aeg_replay_policy aeg_replay_policies[] = {
    { "slots", AEG_REPLAY_SLOTS, 0, 0, AEG_PREFILL_FULL },
    { "lru", AEG_REPLAY_LRU, 0, 0, AEG_PREFILL_FULL },
    { "lfu", AEG_REPLAY_LFU, 0, 0, AEG_PREFILL_FULL },
    { "lfu-aged-1", AEG_REPLAY_AGED, 1, 0, AEG_PREFILL_FULL },
    { "lfu-aged-2", AEG_REPLAY_AGED, 2, 0, AEG_PREFILL_FULL },
    { "lfu-aged-4", AEG_REPLAY_AGED, 4, 0, AEG_PREFILL_FULL },
    { "lfu-aged-8", AEG_REPLAY_AGED, 8, 0, AEG_PREFILL_FULL },
    { "lfu-aged-16", AEG_REPLAY_AGED, 16, 0, AEG_PREFILL_FULL },
    { "lfu-aged-32", AEG_REPLAY_AGED, 32, 0, AEG_PREFILL_FULL },
    { "lfu-aged-8, prefill once", AEG_REPLAY_AGED, 8, 0, AEG_PREFILL_ONCE },
    { "lfu-aged-8, prefill not counted", AEG_REPLAY_AGED, 8, 0, AEG_PREFILL_NONE },
    { "lfu-aged-16, idle 16", AEG_REPLAY_IDLE, 16, 16, AEG_PREFILL_FULL },
    { "lfu-layered-8", AEG_REPLAY_LAYERED, 8, 0, AEG_PREFILL_FULL },
    { "next-use-8", AEG_REPLAY_NEXT, 8, 0, AEG_PREFILL_FULL },
    { "s3-fifo-like", AEG_REPLAY_S3FIFO, 0, 0, AEG_PREFILL_FULL },
    { "belady", AEG_REPLAY_BELADY, 0, 0, AEG_PREFILL_FULL },
};
const uint32_t aeg_n_replay_policies = AEG_ARRAY_LEN(aeg_replay_policies);

/* ---- from tokens to demands ---- */

/* The union of a step's choices in one layer: `count` is 0 for all experts before and after. */
static void add_demand(aeg_replay_stream *s, const aeg_trace *t, uint64_t token, uint64_t n_tokens, uint32_t layer,
                       uint32_t *count)
{
    const aeg_trace_shape *h = &t->shape;
    aeg_replay_demand *d = &s->demands[s->n_demands++];
    *d = (aeg_replay_demand){ .first = s->n_accesses, .prefill = t->flags[token] & AEG_ROUTE_PREFILL };
    for (uint64_t i = token; i < token + n_tokens; i++)
        for (uint32_t k = 0; k < h->top_k; k++)
            count[t->ids[(i * h->n_layers + layer) * h->top_k + k]]++;
    for (uint32_t e = 0; e < h->n_experts; e++) {
        if (count[e] == 0)
            continue;
        s->keys[s->n_accesses] = layer * h->n_experts + e;
        s->uses[s->n_accesses++] = count[e];
        count[e] = 0;
        d->n++;
    }
    d->n_tokens = (uint32_t)n_tokens;
    d->last = layer + 1 == h->n_layers;
}

static void add_steps(aeg_replay_stream *s, const aeg_trace *t, uint32_t *count)
{
    for (uint64_t token = 0, n; token < t->n_tokens; token += n) {
        n = 1;
        while (token + n < t->n_tokens && !(t->flags[token + n] & AEG_ROUTE_STEP))
            n++;
        for (uint32_t layer = 0; layer < t->shape.n_layers; layer++)
            add_demand(s, t, token, n, layer, count);
        s->n_decode_tokens += t->flags[token] & AEG_ROUTE_PREFILL ? 0 : n;
    }
    for (uint64_t token = 0; token < t->n_tokens; token++)
        s->n_texts += (t->flags[token] & AEG_ROUTE_TEXT) != 0;
}

static void find_next(aeg_replay_stream *s, uint64_t *seen, uint32_t n_keys)
{
    for (uint32_t k = 0; k < n_keys; k++)
        seen[k] = UINT64_MAX;
    for (uint64_t d = s->n_demands; d-- > 0;)
        for (uint64_t a = s->demands[d].first; a < s->demands[d].first + s->demands[d].n; a++) {
            s->next[a] = seen[s->keys[a]];
            seen[s->keys[a]] = d;
        }
}

aegis_status aeg_replay_stream_make(aeg_replay_stream *out, const aeg_trace *trace, aeg_memory *memory, aegis_error *err)
{
    const aeg_trace_shape *h = &trace->shape;
    const uint64_t most = trace->n_tokens * h->n_layers * h->top_k;
    const uint32_t n_keys = h->n_layers * h->n_experts;
    aeg_replay_stream s = { .shape = *h, .memory = memory };
    s.demands = aeg_malloc(memory, trace->n_tokens * h->n_layers * sizeof *s.demands);
    s.keys = aeg_malloc(memory, most * sizeof *s.keys);
    s.uses = aeg_malloc(memory, most * sizeof *s.uses);
    s.next = aeg_malloc(memory, most * sizeof *s.next);
    uint32_t *count = aeg_calloc(memory, h->n_experts, sizeof *count);
    uint64_t *seen = aeg_malloc(memory, n_keys * sizeof *seen);
    const bool made = s.demands != NULL && s.keys != NULL && s.uses != NULL && s.next != NULL && count != NULL && seen != NULL;
    if (made) {
        add_steps(&s, trace, count);
        find_next(&s, seen, n_keys);
    }
    aeg_free(memory, count);
    aeg_free(memory, seen);
    if (!made) {
        aeg_replay_stream_free(&s);
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory to replay the routes of %llu tokens",
                        (unsigned long long)trace->n_tokens);
    }
    *out = s;
    return AEGIS_OK;
}

void aeg_replay_stream_free(aeg_replay_stream *s)
{
    if (s->memory == NULL)
        return;
    aeg_free(s->memory, s->demands);
    aeg_free(s->memory, s->keys);
    aeg_free(s->memory, s->uses);
    aeg_free(s->memory, s->next);
    *s = (aeg_replay_stream){ 0 };
}

/* ---- the engine's order ---- */

typedef struct {
    const aeg_replay_cache *c;
    void *cache;
    uint32_t window;
    uint8_t *missed;          /* [n_experts], of the present demand */
} runner;

/* All experts are held until the last one is there. */
static uint32_t run_decode(runner *r, const uint32_t *keys, uint32_t n)
{
    uint32_t n_hits = 0;
    for (uint32_t i = 0; i < n; i++)
        if (r->missed[i])
            r->c->take(r->cache, keys[i]); /* n <= top_k <= slots: there is room */
        else
            n_hits++;
    for (uint32_t i = 0; i < n; i++)
        r->c->unpin(r->cache, keys[i]);
    return n_hits;
}

/* As the streamer does it: the last hit that was not given yet gives up its slot and is read again. */
static bool release_last_hit(runner *r, const uint32_t *keys, uint32_t i, uint32_t n)
{
    for (uint32_t j = n; j-- > i + 1;)
        if (!r->missed[j]) {
            r->c->unpin(r->cache, keys[j]);
            r->missed[j] = true;
            return true;
        }
    return false;
}

/* In ascending order; what is read ahead holds at most `window` slots. */
static uint32_t run_prefill(runner *r, const uint32_t *keys, uint32_t n)
{
    uint32_t n_hits = 0, ahead = 0, held = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (; ahead < n; ahead++) {
            if (!r->missed[ahead])
                continue;
            if (held >= r->window && ahead != i)
                break;
            if (!r->c->take(r->cache, keys[ahead]) &&
                !(ahead == i && release_last_hit(r, keys, i, n) && r->c->take(r->cache, keys[ahead])))
                break;
            held++;
        }
        r->c->unpin(r->cache, keys[i]);
        held -= r->missed[i];
        n_hits += !r->missed[i];
    }
    return n_hits;
}

static void run_demand(runner *r, const aeg_replay_stream *s, uint64_t demand, aeg_replay_result *result)
{
    const aeg_replay_demand *d = &s->demands[demand];
    const uint32_t *keys = s->keys + d->first;
    for (uint32_t i = 0; i < d->n; i++) {
        const aeg_replay_use use = { .key = keys[i], .uses = s->uses[d->first + i], .next = s->next[d->first + i],
                                     .demand = demand, .prefill = d->prefill, .n_tokens = d->n_tokens };
        r->c->use(r->cache, &use);
    }
    for (uint32_t i = 0; i < d->n; i++) {
        r->missed[i] = !r->c->has(r->cache, keys[i]);
        if (!r->missed[i])
            r->c->pin(r->cache, keys[i]);
    }
    const uint32_t n_hits = d->prefill ? run_prefill(r, keys, d->n) : run_decode(r, keys, d->n);
    *(d->prefill ? &result->prefill_uses : &result->uses) += d->n;
    *(d->prefill ? &result->prefill_hits : &result->hits) += n_hits;
    if (d->last)
        r->c->tick(r->cache, d->n_tokens, d->prefill);
}

static const aeg_replay_cache *cache_of(aeg_replay_kind kind)
{
    return kind == AEG_REPLAY_SLOTS ? &aeg_replay_slots : kind == AEG_REPLAY_S3FIFO ? &aeg_replay_s3fifo : &aeg_replay_scored;
}

aegis_status aeg_replay_run(const aeg_replay_stream *s, const aeg_replay_policy *policy, uint32_t n_slots,
                            aeg_memory *memory, aeg_replay_result *out, aegis_error *err)
{
    const aeg_replay_setup setup = { .policy = policy, .n_slots = n_slots, .n_layers = s->shape.n_layers,
                                     .n_experts = s->shape.n_experts, .top_k = s->shape.top_k, .memory = memory };
    if (n_slots < s->shape.top_k)
        return aeg_fail(err, AEGIS_E_USAGE, "replay with %u slots, expected at least the %u experts of a token and layer",
                        n_slots, s->shape.top_k);
    runner r = { .c = cache_of(policy->kind), .window = AEG_MAX(2u, AEG_MIN(2u * IO_DEPTH, n_slots / 2)) };
    aeg_replay_result result = { 0 };
    r.missed = aeg_malloc(memory, s->shape.n_experts);
    r.cache = r.missed == NULL ? NULL : r.c->open(&setup);
    if (r.cache == NULL) {
        aeg_free(memory, r.missed);
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory to replay %s with %u slots", policy->name, n_slots);
    }
    for (uint64_t d = 0; d < s->n_demands; d++)
        run_demand(&r, s, d, &result);
    r.c->close(r.cache);
    aeg_free(memory, r.missed);
    *out = result;
    return AEGIS_OK;
}
