/* SPDX-License-Identifier: Apache-2.0 */
/* S3-FIFO (Yang, Zhang, Qiu, Yue, Vinayak: "FIFO queues are all you need for cache eviction", SOSP 2023): newcomers enter
 * a small queue of a tenth of the slots; what is used again there moves to the main queue, the rest is remembered in a
 * ghost queue, from which a return goes straight to main. "-like": pinned keys go round. */
#include "base/checked.h"
#include "expert/replay_cache.h"

enum { SMALL, MAIN, GHOST, N_QUEUES, NOWHERE = N_QUEUES, MAX_USES = 3, SMALL_PART = 10 };
#define NONE UINT32_MAX

typedef struct {
    uint32_t newer, older;
    uint16_t pins;
    uint8_t where, uses;
} fifo_key;

typedef struct {
    uint32_t n, head, tail; /* head: newest */
} fifo;

typedef struct {
    aeg_replay_setup setup;
    fifo queues[N_QUEUES];
    fifo_key *keys;
} s3fifo;

static void push(s3fifo *c, uint32_t queue, uint32_t key)
{
    fifo *q = &c->queues[queue];
    fifo_key *k = &c->keys[key];
    k->where = (uint8_t)queue;
    k->newer = NONE;
    k->older = q->head;
    if (q->head != NONE)
        c->keys[q->head].newer = key;
    else
        q->tail = key;
    q->head = key;
    q->n++;
}

static void drop(s3fifo *c, uint32_t key)
{
    fifo_key *k = &c->keys[key];
    fifo *q = &c->queues[k->where];
    *(k->newer != NONE ? &c->keys[k->newer].older : &q->head) = k->older;
    *(k->older != NONE ? &c->keys[k->older].newer : &q->tail) = k->newer;
    q->n--;
    k->where = NOWHERE;
}

static void close_s3fifo(void *cache)
{
    s3fifo *c = cache;
    aeg_free(c->setup.memory, c->keys);
    aeg_free(c->setup.memory, c);
}

static void *open_s3fifo(const aeg_replay_setup *setup)
{
    const uint32_t n_keys = setup->n_layers * setup->n_experts;
    s3fifo *c = aeg_malloc(setup->memory, sizeof *c);
    if (c == NULL)
        return NULL;
    *c = (s3fifo){ .setup = *setup };
    c->keys = aeg_calloc(setup->memory, n_keys, sizeof *c->keys);
    if (c->keys == NULL) {
        close_s3fifo(c);
        return NULL;
    }
    for (uint32_t k = 0; k < n_keys; k++)
        c->keys[k].where = NOWHERE;
    for (int q = 0; q < N_QUEUES; q++)
        c->queues[q] = (fifo){ .head = NONE, .tail = NONE };
    return c;
}

static bool has(const void *cache, uint32_t key) { return ((const s3fifo *)cache)->keys[key].where <= MAIN; }

static void use(void *cache, const aeg_replay_use *u)
{
    s3fifo *c = cache;
    fifo_key *k = &c->keys[u->key];
    if (k->where <= MAIN)
        k->uses = (uint8_t)AEG_MIN((uint32_t)MAX_USES, k->uses + 1u);
}

static void pin(void *cache, uint32_t key) { ((s3fifo *)cache)->keys[key].pins++; }
static void unpin(void *cache, uint32_t key) { ((s3fifo *)cache)->keys[key].pins--; }

static void remember(s3fifo *c, uint32_t key)
{
    push(c, GHOST, key);
    if (c->queues[GHOST].n > c->setup.n_slots - c->setup.n_slots / SMALL_PART)
        drop(c, c->queues[GHOST].tail);
}

typedef enum { WENT, STAYS, PINNED } look;

/* One look at the tail of a queue. */
static look look_at(s3fifo *c, uint32_t queue)
{
    const uint32_t key = c->queues[queue].tail;
    fifo_key *k = &c->keys[key];
    drop(c, key);
    if (k->pins > 0) {
        push(c, queue, key);
        return PINNED;
    }
    if (k->uses > 0) { /* used again since it came, or since the last look */
        k->uses = queue == SMALL ? 0 : (uint8_t)(k->uses - 1);
        push(c, MAIN, key);
        return STAYS;
    }
    if (queue == SMALL)
        remember(c, key);
    return WENT;
}

/* The small queue if it is too long, else main; the other one if nothing but pinned keys came by in `passed` looks. */
static uint32_t queue_to_look_at(const s3fifo *c, uint32_t passed)
{
    const uint32_t small = c->queues[SMALL].n, n_main = c->queues[MAIN].n;
    const uint32_t first = small > c->setup.n_slots / SMALL_PART || n_main == 0 ? SMALL : MAIN, other = SMALL + MAIN - first;
    return passed >= c->queues[first].n && c->queues[other].n > 0 ? other : first;
}

static bool take(void *cache, uint32_t key)
{
    s3fifo *c = cache;
    fifo_key *k = &c->keys[key];
    const bool known = k->where == GHOST;
    uint32_t passed = 0;
    if (known)
        drop(c, key);
    while (c->queues[SMALL].n + c->queues[MAIN].n >= c->setup.n_slots) {
        if (passed > 2 * c->setup.n_slots)
            return false; /* all are pinned */
        passed = look_at(c, queue_to_look_at(c, passed)) == PINNED ? passed + 1 : 0;
    }
    k->uses = 0;
    push(c, known ? MAIN : SMALL, key);
    k->pins = 1;
    return true;
}

static void tick(void *cache, uint32_t n_tokens, bool prefill)
{
    (void)cache;
    (void)n_tokens;
    (void)prefill;
}

const aeg_replay_cache aeg_replay_s3fifo = { open_s3fifo, close_s3fifo, has, use, pin, unpin, take, tick };
