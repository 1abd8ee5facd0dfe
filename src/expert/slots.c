/* SPDX-License-Identifier: Apache-2.0 */
#include "expert/slots.h"

#include <assert.h>
#include <math.h>

#include "base/checked.h"

/* A guessed expert stands for a use that is about to come, so it displaces what was used once just now, but
 * nothing that was used twice of late. */
#define GUESS_USES 2.0f

/* Counts are kept as if every use had happened at token 0: a use at token t weighs 2^(t / half_life), so ageing
 * touches nothing but the weight. Past this weight everything is scaled down by it, a power of two. A layer is at most
 * 2^30 ahead of the others, and a step has fewer than 2^13 tokens: nothing overflows. */
#define WEIGHT_LIMIT 0x1p60f
#define MOST_AHEAD 30.0

#define NOT_QUEUED UINT32_MAX

enum { HALF_LIFE_PERIODS = 8 }; /* of n_experts / top_k tokens, the mean interval between uses of one expert */

typedef struct {
    uint32_t key;
    uint32_t heap;    /* position in its layer's heap, NOT_QUEUED unless READY and unpinned */
    uint32_t used;    /* clock of uses, for ties                                     */
    uint16_t pins;
    uint8_t state;    /* aeg_slot_state                                              */
    float favour;     /* added to the count while a guess is open                    */
} slot_info;

typedef struct {
    float weight;      /* what its counts are compared in: of a use at the layer's clock   */
    float use_weight;  /* of a use now: the mean over the tokens of the step               */
    uint32_t n_heap;
} layer_info;

/* One heap for each layer: in the middle of a step some layers have counted it and the others have not, so that only
 * within a layer the order of counts is the order of heat. */
struct aeg_slots {
    uint32_t n_slots, n_keys, n_layers, n_experts;
    double half_life;
    float weight;      /* of a use at the clock of the layers that wait for the step, in [1, WEIGHT_LIMIT) */
    uint32_t clock;
    float *counts;     /* [n_keys] */
    uint32_t *places;  /* [n_keys] slot, or AEG_NO_SLOT */
    slot_info *info;   /* [n_slots] */
    layer_info *layers; /* [n_layers] */
    uint32_t *heaps;   /* [n_layers][n_experts] coldest first */
    uint32_t *empty;   /* a stack */
    uint32_t n_empty;
};

static uint32_t layer_of(const aeg_slots *s, uint32_t slot) { return s->info[slot].key / s->n_experts; }

/* In the units of the slot's layer. */
static float heat(const aeg_slots *s, uint32_t slot) { return s->counts[s->info[slot].key] + s->info[slot].favour; }

/* On a tie the one used last goes first: layers come round in a circle, so the expert used last is the one
 * whose layer is farthest away. */
static bool colder(const aeg_slots *s, uint32_t a, uint32_t b) /* of one layer */
{
    const float heat_a = heat(s, a), heat_b = heat(s, b);
    return heat_a < heat_b || (heat_a == heat_b && s->info[a].used > s->info[b].used);
}

static void put(aeg_slots *s, uint32_t *heap, uint32_t at, uint32_t slot)
{
    heap[at] = slot;
    s->info[slot].heap = at;
}

static void sift_up(aeg_slots *s, uint32_t *heap, uint32_t at)
{
    const uint32_t slot = heap[at];
    while (at > 0 && colder(s, slot, heap[(at - 1) / 2])) {
        put(s, heap, at, heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(s, heap, at, slot);
}

static void sift_down(aeg_slots *s, uint32_t *heap, uint32_t n, uint32_t at)
{
    const uint32_t slot = heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n && colder(s, heap[child + 1], heap[child]))
            child++;
        if (!colder(s, heap[child], slot))
            break;
        put(s, heap, at, heap[child]);
        at = child;
    }
    put(s, heap, at, slot);
}

static uint32_t *heap_of(const aeg_slots *s, uint32_t layer) { return s->heaps + (size_t)layer * s->n_experts; }

static void enqueue(aeg_slots *s, uint32_t slot)
{
    const uint32_t layer = layer_of(s, slot), at = s->layers[layer].n_heap++;
    put(s, heap_of(s, layer), at, slot);
    sift_up(s, heap_of(s, layer), at);
}

static void dequeue(aeg_slots *s, uint32_t slot)
{
    layer_info *l = &s->layers[layer_of(s, slot)];
    uint32_t *heap = heap_of(s, layer_of(s, slot));
    const uint32_t at = s->info[slot].heap, last = heap[--l->n_heap];
    s->info[slot].heap = NOT_QUEUED;
    if (last == slot)
        return;
    put(s, heap, at, last);
    sift_up(s, heap, at);
    sift_down(s, heap, l->n_heap, s->info[last].heap);
}

/* The heat of `slot` has changed. */
static void requeue(aeg_slots *s, uint32_t slot)
{
    if (s->info[slot].heap == NOT_QUEUED)
        return;
    const uint32_t layer = layer_of(s, slot);
    sift_up(s, heap_of(s, layer), s->info[slot].heap);
    sift_down(s, heap_of(s, layer), s->layers[layer].n_heap, s->info[slot].heap);
}

double aeg_slots_half_life(uint32_t n_experts, uint32_t top_k)
{
    return (double)HALF_LIFE_PERIODS * n_experts / AEG_MAX(top_k, 1u);
}

aegis_status aeg_slots_init(aeg_slots **out, aeg_arena *arena, const aeg_slots_config *cfg, aegis_error *err)
{
    const uint32_t n_experts = cfg->n_experts != 0 ? cfg->n_experts : cfg->n_keys;
    const uint32_t n_layers = cfg->n_keys / n_experts;
    if (n_layers * n_experts != cfg->n_keys)
        return aeg_fail(err, AEGIS_E_USAGE, "%u keys of expert slots, expected a multiple of %u experts", cfg->n_keys, n_experts);
    aeg_slots *s = AEG_ARENA_ARRAY(arena, aeg_slots, 1);
    float *counts = AEG_ARENA_ARRAY(arena, float, cfg->n_keys);
    uint32_t *places = AEG_ARENA_ARRAY(arena, uint32_t, cfg->n_keys);
    slot_info *info = AEG_ARENA_ARRAY(arena, slot_info, cfg->n_slots);
    layer_info *layers = AEG_ARENA_ARRAY(arena, layer_info, n_layers);
    uint32_t *heaps = AEG_ARENA_ARRAY(arena, uint32_t, cfg->n_keys);
    uint32_t *empty = AEG_ARENA_ARRAY(arena, uint32_t, cfg->n_slots);
    if (aeg_arena_measuring(arena))
        return AEGIS_OK;
    AEG_TRY(aeg_arena_check(arena, err));

    *s = (aeg_slots){ .n_slots = cfg->n_slots, .n_keys = cfg->n_keys, .n_layers = n_layers, .n_experts = n_experts,
                      .half_life = cfg->half_life, .weight = 1.0f, .counts = counts, .places = places, .info = info,
                      .layers = layers, .heaps = heaps, .empty = empty };
    for (uint32_t i = 0; i < n_layers; i++)
        layers[i] = (layer_info){ .weight = 1.0f, .use_weight = 1.0f };
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

void aeg_slots_begin(aeg_slots *s, uint32_t layer, uint32_t n_tokens)
{
    layer_info *l = &s->layers[layer];
    const double half_lives = AEG_MIN(n_tokens / s->half_life, MOST_AHEAD), decay = half_lives * log(2.0);
    l->weight = s->weight * (float)exp2(half_lives);
    l->use_weight = n_tokens <= 1 ? l->weight : l->weight * (float)((1.0 - exp(-decay)) / decay);
}

void aeg_slots_use(aeg_slots *s, uint32_t key, uint32_t uses)
{
    const uint32_t slot = s->places[key];
    s->counts[key] += (float)uses * s->layers[key / s->n_experts].use_weight;
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
    for (uint32_t layer = 0; layer < s->n_layers; layer++)
        for (uint32_t n = s->layers[layer].n_heap, i = n / 2; i-- > 0;)
            sift_down(s, heap_of(s, layer), n, i);
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
    for (uint32_t layer = 0; layer < s->n_layers; layer++)
        s->layers[layer].weight = s->layers[layer].use_weight = s->weight;
}

static void occupy(aeg_slots *s, uint32_t slot, uint32_t key, uint16_t pins, float favour)
{
    s->places[key] = slot;
    s->info[slot] = (slot_info){ .key = key, .heap = NOT_QUEUED, .used = ++s->clock, .pins = pins,
                                 .state = AEG_SLOT_FILLING, .favour = favour };
}

/* The coldest of all layers, its heat in uses of now; AEG_NO_SLOT if none is free to go. A look at the top of each layer's
 * heap: 40 of them cost less than the read that follows by four orders of magnitude. */
static uint32_t coldest(const aeg_slots *s, float *uses)
{
    uint32_t best = AEG_NO_SLOT;
    *uses = INFINITY;
    for (uint32_t layer = 0; layer < s->n_layers; layer++) {
        if (s->layers[layer].n_heap == 0)
            continue;
        const uint32_t slot = heap_of(s, layer)[0];
        const float h = heat(s, slot) / s->layers[layer].weight;
        if (best == AEG_NO_SLOT || h < *uses || (h == *uses && s->info[slot].used > s->info[best].used)) {
            best = slot;
            *uses = h;
        }
    }
    return best;
}

/* EMPTY first, else the coldest; AEG_NO_SLOT if neither is there. */
static uint32_t vacate(aeg_slots *s)
{
    float uses;
    if (s->n_empty > 0)
        return s->empty[--s->n_empty];
    const uint32_t slot = coldest(s, &uses);
    if (slot == AEG_NO_SLOT)
        return slot;
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
    const float weight = s->layers[key / s->n_experts].weight;
    float uses = 0.0f;
    assert(s->places[key] == AEG_NO_SLOT);
    /* Strictly: on a tie two experts would take the slot from each other, and each swap costs a read. */
    if (s->n_empty == 0 && (coldest(s, &uses) == AEG_NO_SLOT || uses >= s->counts[key] / weight + GUESS_USES))
        return AEG_NO_SLOT;
    const uint32_t slot = vacate(s);
    occupy(s, slot, key, 0, GUESS_USES * weight);
    return slot;
}

void aeg_slots_favour(aeg_slots *s, uint32_t slot)
{
    s->info[slot].favour = GUESS_USES * s->layers[layer_of(s, slot)].weight;
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
