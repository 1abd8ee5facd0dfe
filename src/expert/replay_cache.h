/* SPDX-License-Identifier: Apache-2.0 */
/* expert/replay_cache.h - what the replay asks of a policy. Internal to the replay. A pinned key stays; `take` makes
 * room for a key that is not there and pins it. */
#ifndef AEG_EXPERT_REPLAY_CACHE_H
#define AEG_EXPERT_REPLAY_CACHE_H

#include "expert/replay.h"

typedef struct {
    const aeg_replay_policy *policy;
    uint32_t n_slots, n_layers, n_experts, top_k;
    aeg_memory *memory;
} aeg_replay_setup;

typedef struct {
    uint32_t key, uses;
    uint64_t next, demand;    /* demand that needs the key next; the present one */
    bool prefill;
    uint32_t n_tokens;        /* of the step */
} aeg_replay_use;

typedef struct {
    void *(*open)(const aeg_replay_setup *setup); /* NULL: no memory */
    void (*close)(void *cache);
    bool (*has)(const void *cache, uint32_t key);
    void (*use)(void *cache, const aeg_replay_use *use); /* resident or not */
    void (*pin)(void *cache, uint32_t key);
    void (*unpin)(void *cache, uint32_t key);
    bool (*take)(void *cache, uint32_t key);      /* false: all are pinned */
    void (*tick)(void *cache, uint32_t n_tokens, bool prefill);
} aeg_replay_cache;

extern const aeg_replay_cache aeg_replay_slots;  /* SLOTS */
extern const aeg_replay_cache aeg_replay_scored; /* the others: each key has a score */
extern const aeg_replay_cache aeg_replay_s3fifo; /* S3FIFO */

#endif
