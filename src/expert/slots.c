/* SPDX-License-Identifier: Apache-2.0 */
#include "expert/slots.h"

#include <assert.h>
#include <math.h>

#include "base/checked.h"

/* A guessed expert stands for a use that is about to come, so it displaces what was used once just now, but
 * nothing that was used twice of late. */
#define GUESS_USES 2.0f

/* Counts are kept as if every use had happened at token 0: a use at token t weighs 2^(t / half_life), so ageing
 * touches nothing but the weight. Past this weight everything is scaled down by it, a power of two. */
#define WEIGHT_LIMIT 0x1p60f

#define NOT_QUEUED UINT32_MAX

enum { HALF_LIFE_PERIODS = 8 }; /* of n_experts / top_k tokens, the mean interval between uses of one expert */

typedef struct {
    uint32_t key;
    uint32_t heap;    /* position in the heap, NOT_QUEUED unless READY and unpinned */
    uint32_t used;    /* clock of uses, for ties                                     */
    uint16_t pins;
    uint8_t state;    /* aeg_slot_state                                              */
    float favour;     /* added to the count while a guess is open                    */
} slot_info;

struct aeg_slots {
    uint32_t n_slots, n_keys;
    double half_life;
    float weight;      /* of a use now, in [1, WEIGHT_LIMIT) */
    uint32_t clock;
    float *counts;     /* [n_keys] */
    uint32_t *places;  /* [n_keys] slot, or AEG_NO_SLOT */
    slot_info *info;   /* [n_slots] */
    uint32_t *heap;    /* coldest first */
    uint32_t n_heap;
    uint32_t *empty;   /* a stack */
    uint32_t n_empty;
};

static float heat(const aeg_slots *s, uint32_t slot) { return s->counts[s->info[slot].key] + s->info[slot].favour; }

/* On a tie the one used last goes first: layers come round in a circle, so the expert used last is the one
 * whose layer is farthest away. */
static bool colder(const aeg_slots *s, uint32_t a, uint32_t b)
{
    const float heat_a = heat(s, a), heat_b = heat(s, b);
    return heat_a < heat_b || (heat_a == heat_b && s->info[a].used > s->info[b].used);
}

static void put(aeg_slots *s, uint32_t at, uint32_t slot)
{
    s->heap[at] = slot;
    s->info[slot].heap = at;
}

static void sift_up(aeg_slots *s, uint32_t at)
{
    const uint32_t slot = s->heap[at];
    while (at > 0 && colder(s, slot, s->heap[(at - 1) / 2])) {
        put(s, at, s->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(s, at, slot);
}

static void sift_down(aeg_slots *s, uint32_t at)
{
    const uint32_t slot = s->heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= s->n_heap)
            break;
        if (child + 1 < s->n_heap && colder(s, s->heap[child + 1], s->heap[child]))
            child++;
        if (!colder(s, s->heap[child], slot))
            break;
        put(s, at, s->heap[child]);
        at = child;
    }
    put(s, at, slot);
}

static void enqueue(aeg_slots *s, uint32_t slot)
{
    const uint32_t at = s->n_heap++;
    put(s, at, slot);
    sift_up(s, at);
}

static void dequeue(aeg_slots *s, uint32_t slot)
{
    const uint32_t at = s->info[slot].heap, last = s->heap[--s->n_heap];
    s->info[slot].heap = NOT_QUEUED;
    if (last == slot)
        return;
    put(s, at, last);
    sift_up(s, at);
    sift_down(s, s->info[last].heap);
}

/* The heat of `slot` has changed. */
static void requeue(aeg_slots *s, uint32_t slot)
{
    if (s->info[slot].heap == NOT_QUEUED)
        return;
    sift_up(s, s->info[slot].heap);
    sift_down(s, s->info[slot].heap);
}

double aeg_slots_half_life(uint32_t n_experts, uint32_t top_k)
{
    return (double)HALF_LIFE_PERIODS * n_experts / AEG_MAX(top_k, 1u);
}

aegis_status aeg_slots_init(aeg_slots **out, aeg_arena *arena, const aeg_slots_config *cfg, aegis_error *err)
{
    aeg_slots *s = AEG_ARENA_ARRAY(arena, aeg_slots, 1);
    float *counts = AEG_ARENA_ARRAY(arena, float, cfg->n_keys);
    uint32_t *places = AEG_ARENA_ARRAY(arena, uint32_t, cfg->n_keys);
    slot_info *info = AEG_ARENA_ARRAY(arena, slot_info, cfg->n_slots);
    uint32_t *heap = AEG_ARENA_ARRAY(arena, uint32_t, cfg->n_slots);
    uint32_t *empty = AEG_ARENA_ARRAY(arena, uint32_t, cfg->n_slots);
    if (aeg_arena_measuring(arena))
        return AEGIS_OK;
    AEG_TRY(aeg_arena_check(arena, err));

    *s = (aeg_slots){ .n_slots = cfg->n_slots, .n_keys = cfg->n_keys, .half_life = cfg->half_life, .weight = 1.0f,
                      .counts = counts, .places = places, .info = info, .heap = heap, .empty = empty };
    for (uint32_t i = 0; i < cfg->n_keys; i++) {
        counts[i] = 0.0f;
        places[i] = AEG_NO_SLOT;
    }
    for (uint32_t i = 0; i < cfg->n_slots; i++) {
        info[i] = (slot_info){ .heap = NOT_QUEUED, .state = AEG_SLOT_EMPTY };
        empty[s->n_empty++] = cfg->n_slots - 1 - i; /* low slots first: memory never used stays untouched */
    }
    *out = s;
    return AEGIS_OK;
}

uint32_t aeg_slots_find(const aeg_slots *s, uint32_t key) { return s->places[key]; }
aeg_slot_state aeg_slots_state(const aeg_slots *s, uint32_t slot) { return (aeg_slot_state)s->info[slot].state; }
uint32_t aeg_slots_key(const aeg_slots *s, uint32_t slot) { return s->info[slot].key; }

void aeg_slots_use(aeg_slots *s, uint32_t key, uint32_t uses)
{
    const uint32_t slot = s->places[key];
    s->counts[key] += (float)uses * s->weight;
    if (slot == AEG_NO_SLOT)
        return;
    s->info[slot].used = ++s->clock;
    requeue(s, slot);
}

static void scale_down(aeg_slots *s)
{
    s->weight /= WEIGHT_LIMIT;
    for (uint32_t i = 0; i < s->n_keys; i++)
        s->counts[i] /= WEIGHT_LIMIT;
    for (uint32_t i = 0; i < s->n_slots; i++)
        s->info[i].favour /= WEIGHT_LIMIT;
    /* The oldest counts may have become equal (0), and ties have an order of their own. */
    for (uint32_t i = s->n_heap / 2; i-- > 0;)
        sift_down(s, i);
}

void aeg_slots_tick(aeg_slots *s, uint32_t n_tokens)
{
    double half_lives = n_tokens / s->half_life;
    while (half_lives > 0.0) {
        const double step = AEG_MIN(half_lives, 30.0); /* keeps the weight far from overflow */
        s->weight *= (float)exp2(step);
        half_lives -= step;
        if (s->weight >= WEIGHT_LIMIT)
            scale_down(s);
    }
}

static void occupy(aeg_slots *s, uint32_t slot, uint32_t key, uint16_t pins, float favour)
{
    s->places[key] = slot;
    s->info[slot] = (slot_info){ .key = key, .heap = NOT_QUEUED, .used = ++s->clock, .pins = pins,
                                 .state = AEG_SLOT_FILLING, .favour = favour };
}

/* EMPTY first, else the coldest; AEG_NO_SLOT if neither is there. */
static uint32_t vacate(aeg_slots *s)
{
    if (s->n_empty > 0)
        return s->empty[--s->n_empty];
    if (s->n_heap == 0)
        return AEG_NO_SLOT;
    const uint32_t slot = s->heap[0];
    dequeue(s, slot);
    s->places[s->info[slot].key] = AEG_NO_SLOT;
    return slot;
}

uint32_t aeg_slots_take(aeg_slots *s, uint32_t key)
{
    assert(s->places[key] == AEG_NO_SLOT);
    const uint32_t slot = vacate(s);
    if (slot != AEG_NO_SLOT)
        occupy(s, slot, key, 1, 0.0f);
    return slot;
}

uint32_t aeg_slots_take_guess(aeg_slots *s, uint32_t key)
{
    const float favour = GUESS_USES * s->weight;
    assert(s->places[key] == AEG_NO_SLOT);
    /* Strictly: on a tie two experts would take the slot from each other, and each swap costs a read. */
    if (s->n_empty == 0 && (s->n_heap == 0 || heat(s, s->heap[0]) >= s->counts[key] + favour))
        return AEG_NO_SLOT;
    const uint32_t slot = vacate(s);
    occupy(s, slot, key, 0, favour);
    return slot;
}

void aeg_slots_favour(aeg_slots *s, uint32_t slot)
{
    s->info[slot].favour = GUESS_USES * s->weight;
    requeue(s, slot);
}

void aeg_slots_settle(aeg_slots *s, uint32_t slot)
{
    s->info[slot].favour = 0.0f;
    requeue(s, slot);
}

void aeg_slots_filled(aeg_slots *s, uint32_t slot)
{
    assert(s->info[slot].state == AEG_SLOT_FILLING);
    s->info[slot].state = AEG_SLOT_READY;
    if (s->info[slot].pins == 0)
        enqueue(s, slot);
}

void aeg_slots_drop(aeg_slots *s, uint32_t slot)
{
    assert(s->info[slot].state == AEG_SLOT_FILLING);
    s->places[s->info[slot].key] = AEG_NO_SLOT;
    s->info[slot] = (slot_info){ .heap = NOT_QUEUED, .state = AEG_SLOT_EMPTY };
    s->empty[s->n_empty++] = slot;
}

void aeg_slots_pin(aeg_slots *s, uint32_t slot)
{
    assert(s->info[slot].state != AEG_SLOT_EMPTY);
    s->info[slot].pins++;
    if (s->info[slot].heap != NOT_QUEUED)
        dequeue(s, slot);
}

void aeg_slots_unpin(aeg_slots *s, uint32_t slot)
{
    assert(s->info[slot].pins > 0);
    if (--s->info[slot].pins == 0 && s->info[slot].state == AEG_SLOT_READY)
        enqueue(s, slot);
}
