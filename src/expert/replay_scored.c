/* SPDX-License-Identifier: Apache-2.0 */
/* Policies in which each key has a score and the lowest one that is free to go is the victim: a heap of keys,
 * except for NEXT and LAYERED, whose scores change with the layer and are looked through one by one. */
#include <math.h>

#include "expert/replay_cache.h"
#include "format/hparams.h"

#define OUTSIDE UINT32_MAX

typedef struct {
    double count;     /* of uses; of aged ones see add_aged         */
    double score;     /* the lowest goes                            */
    double tie;       /* of equals, the lowest goes                 */
    uint32_t heap;    /* place, OUTSIDE unless resident and unpinned */
    uint16_t pins;
    bool resident;
} scored_key;

typedef struct {
    aeg_replay_setup setup;
    double half_life, idle; /* tokens */
    double token, clock; /* so far */
    double layer_token[AEG_MAX_LAYERS]; /* LAYERED: tokens that each layer has seen */
    uint64_t demand;
    uint32_t n_resident, n_heap;
    scored_key *keys;       /* [n_keys]  */
    uint32_t *heap;         /* [n_slots] */
} scored;

static bool lower(const scored *c, uint32_t a, uint32_t b)
{
    const scored_key *x = &c->keys[a], *y = &c->keys[b];
    return x->score < y->score || (x->score == y->score && x->tie < y->tie);
}

static void put(scored *c, uint32_t at, uint32_t key)
{
    c->heap[at] = key;
    c->keys[key].heap = at;
}

static void sift(scored *c, uint32_t at)
{
    const uint32_t key = c->heap[at];
    for (; at > 0 && lower(c, key, c->heap[(at - 1) / 2]); at = (at - 1) / 2)
        put(c, at, c->heap[(at - 1) / 2]);
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < c->n_heap && lower(c, c->heap[child + 1], c->heap[child]))
            child++;
        if (child >= c->n_heap || !lower(c, c->heap[child], key))
            break;
        put(c, at, c->heap[child]);
        at = child;
    }
    put(c, at, key);
}

static void enqueue(scored *c, uint32_t key)
{
    put(c, c->n_heap, key);
    sift(c, c->n_heap++);
}

static void dequeue(scored *c, uint32_t key)
{
    const uint32_t at = c->keys[key].heap, last = c->heap[--c->n_heap];
    c->keys[key].heap = OUTSIDE;
    if (last == key)
        return;
    put(c, at, last);
    sift(c, at);
}

static void close_scored(void *cache)
{
    scored *c = cache;
    aeg_free(c->setup.memory, c->keys);
    aeg_free(c->setup.memory, c->heap);
    aeg_free(c->setup.memory, c);
}

static void *open_scored(const aeg_replay_setup *setup)
{
    const uint32_t n_keys = setup->n_layers * setup->n_experts;
    const double period = (double)setup->n_experts / setup->top_k;
    scored *c = aeg_malloc(setup->memory, sizeof *c);
    if (c == NULL)
        return NULL;
    *c = (scored){ .setup = *setup, .half_life = setup->policy->half_life * period, .idle = setup->policy->idle * period, .demand = UINT64_MAX };
    c->keys = aeg_calloc(setup->memory, n_keys, sizeof *c->keys);
    c->heap = aeg_malloc(setup->memory, setup->n_slots * sizeof *c->heap);
    if (c->keys == NULL || c->heap == NULL) {
        close_scored(c);
        return NULL;
    }
    for (uint32_t k = 0; k < n_keys; k++) {
        c->keys[k].heap = OUTSIDE;
        c->keys[k].count = setup->policy->kind == AEG_REPLAY_LFU ? 0 : -INFINITY;
    }
    return c;
}

static bool has(const void *cache, uint32_t key) { return ((const scored *)cache)->keys[key].resident; }

static double counted(const scored *c, const aeg_replay_use *u)
{
    const aeg_replay_prefill how = c->setup.policy->prefill;
    if (!u->prefill || how == AEG_PREFILL_FULL)
        return u->uses;
    return how == AEG_PREFILL_ONCE ? 1.0 : 0.0;
}

/* `count` and the result are logarithms to base 2 of aged counts in units of a use at token 0, so that nothing
 * overflows; -INFINITY is none. */
static double add_aged(double count, double uses, double weight)
{
    if (uses == 0)
        return count;
    const double added = log2(uses) + weight, high = fmax(count, added);
    return high + log2(1.0 + exp2(fmin(count, added) - high));
}

/* The n tokens of a step lie one after the other: the mean weight of their uses in units of the last one's. */
static double spread(uint32_t n, double half_life)
{
    const double decay = log(2.0) / half_life;
    return n == 1 ? 1.0 : (1.0 - exp(-decay * n)) / (decay * n);
}

static void use(void *cache, const aeg_replay_use *u)
{
    scored *c = cache;
    scored_key *k = &c->keys[u->key];
    c->clock++;
    const uint32_t layer = u->key / c->setup.n_experts;
    if (u->demand != c->demand) /* the first use of a layer's step */
        c->layer_token[layer] += u->n_tokens;
    c->demand = u->demand;
    switch (c->setup.policy->kind) {
    case AEG_REPLAY_LRU:
        k->score = c->clock;
        break;
    case AEG_REPLAY_LFU:
        k->count += counted(c, u);
        k->score = k->count;
        k->tie = c->clock;
        break;
    case AEG_REPLAY_BELADY:
        k->score = u->next == UINT64_MAX ? -INFINITY : -(double)u->next;
        break;
    case AEG_REPLAY_LAYERED:
        k->count = add_aged(k->count, counted(c, u) * spread(u->n_tokens, c->half_life), c->layer_token[layer] / c->half_life);
        k->score = k->count;
        k->tie = -c->clock;
        break;
    default:
        k->count = add_aged(k->count, counted(c, u), c->token / c->half_life);
        k->score = k->count + (c->idle > 0 ? c->token / c->idle : 0);
        k->tie = -c->clock;
    }
    if (k->heap != OUTSIDE)
        sift(c, k->heap);
}

static void pin(void *cache, uint32_t key)
{
    scored *c = cache;
    c->keys[key].pins++;
    if (c->keys[key].heap != OUTSIDE)
        dequeue(c, key);
}

static void unpin(void *cache, uint32_t key)
{
    scored *c = cache;
    if (--c->keys[key].pins == 0)
        enqueue(c, key);
}

/* Tokens until the key is used: until its layer comes round, and then 1/p - 1 rounds more. */
static double expected(const scored *c, uint32_t key)
{
    const uint32_t n_layers = c->setup.n_layers, layer = key / c->setup.n_experts, now = (uint32_t)(c->demand % n_layers);
    const double wait = (double)(layer > now ? layer - now : layer + n_layers - now) / n_layers;
    const double p = exp2(c->keys[key].count - c->token / c->half_life) * (1.0 - exp2(-1.0 / c->half_life));
    return wait + 1.0 / fmin(fmax(p, 1e-9), 1.0) - 1.0;
}

/* Larger goes first; of equals the one used last. */
static double reason_to_go(const scored *c, uint32_t key)
{
    if (c->setup.policy->kind == AEG_REPLAY_NEXT)
        return expected(c, key);
    return c->layer_token[key / c->setup.n_experts] / c->half_life - c->keys[key].count;
}

static uint32_t victim(const scored *c)
{
    uint32_t worst = c->heap[0];
    if (c->setup.policy->kind != AEG_REPLAY_NEXT && c->setup.policy->kind != AEG_REPLAY_LAYERED)
        return worst;
    double most = reason_to_go(c, worst);
    for (uint32_t i = 1; i < c->n_heap; i++) {
        const uint32_t key = c->heap[i];
        const double reason = reason_to_go(c, key);
        if (reason > most || (reason == most && c->keys[key].tie < c->keys[worst].tie)) {
            most = reason;
            worst = key;
        }
    }
    return worst;
}

static bool take(void *cache, uint32_t key)
{
    scored *c = cache;
    if (c->n_resident == c->setup.n_slots) {
        if (c->n_heap == 0)
            return false;
        const uint32_t gone = victim(c);
        dequeue(c, gone);
        c->keys[gone].resident = false;
        c->n_resident--;
    }
    c->n_resident++;
    c->keys[key].resident = true;
    c->keys[key].pins = 1;
    return true;
}

static void tick(void *cache, uint32_t n_tokens, bool prefill)
{
    scored *c = cache;
    (void)prefill;
    c->token += n_tokens;
}

const aeg_replay_cache aeg_replay_scored = { open_scored, close_scored, has, use, pin, unpin, take, tick };
