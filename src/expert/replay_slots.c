/* SPDX-License-Identifier: Apache-2.0 */
/* The policy in use: expert/slots.c, driven as the streamer drives it. */
#include "base/arena.h"
#include "expert/replay_cache.h"
#include "expert/slots.h"

typedef struct {
    aeg_slots *slots;
    aeg_arena arena;
    aeg_memory *memory;
    uint32_t n_experts;
    uint64_t demand;          /* the present one */
} slots_cache;

static void close_slots(void *cache)
{
    slots_cache *c = cache;
    aeg_arena_unmap(&c->arena);
    aeg_free(c->memory, c);
}

static void *open_slots(const aeg_replay_setup *setup)
{
    const aeg_slots_config cfg = { .n_slots = setup->n_slots, .n_keys = setup->n_layers * setup->n_experts,
                                   .n_experts = setup->n_experts,
                                   .half_life = aeg_slots_half_life(setup->n_experts, setup->top_k) };
    aeg_arena plan = aeg_arena_measure("replay");
    slots_cache *c = aeg_calloc(setup->memory, 1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->memory = setup->memory;
    c->n_experts = setup->n_experts;
    c->demand = UINT64_MAX;
    if (aeg_slots_init(&c->slots, &plan, &cfg, NULL) == AEGIS_OK &&
        aeg_arena_map(&c->arena, "replay", plan.used, false, NULL) == AEGIS_OK &&
        aeg_slots_init(&c->slots, &c->arena, &cfg, NULL) == AEGIS_OK)
        return c;
    close_slots(c);
    return NULL;
}

static bool has(const void *cache, uint32_t key)
{
    return aeg_slots_find(((const slots_cache *)cache)->slots, key) != AEG_NO_SLOT;
}

static void use(void *cache, const aeg_replay_use *u)
{
    slots_cache *c = cache;
    if (u->demand != c->demand)
        aeg_slots_begin(c->slots, u->key / c->n_experts, u->n_tokens);
    c->demand = u->demand;
    aeg_slots_use(c->slots, u->key, u->uses);
}

static void pin(void *cache, uint32_t key)
{
    aeg_slots *s = ((slots_cache *)cache)->slots;
    aeg_slots_pin(s, aeg_slots_find(s, key));
}

static void unpin(void *cache, uint32_t key)
{
    aeg_slots *s = ((slots_cache *)cache)->slots;
    aeg_slots_unpin(s, aeg_slots_find(s, key));
}

static bool take(void *cache, uint32_t key)
{
    aeg_slots *s = ((slots_cache *)cache)->slots;
    const uint32_t slot = aeg_slots_take(s, key);
    if (slot == AEG_NO_SLOT)
        return false;
    aeg_slots_filled(s, slot);
    return true;
}

static void tick(void *cache, uint32_t n_tokens, bool prefill)
{
    (void)prefill;
    aeg_slots_tick(((slots_cache *)cache)->slots, n_tokens);
}

const aeg_replay_cache aeg_replay_slots = { open_slots, close_slots, has, use, pin, unpin, take, tick };
