/* SPDX-License-Identifier: Apache-2.0 */
/* expert/slots.h - which expert is in which slot of the pool, and which one has to go.
 *
 * Slot life: EMPTY -> FILLING -> READY -> (EMPTY | FILLING). Each (layer, expert) has a decayed count of uses,
 * resident or not; the victim is the READY, unpinned slot with the lowest count, from a heap. The rule and
 * what lost against it: docs/adr/0002-expert-pool.md.
 * Memory: carved once; no call below allocates. Thread: the decode thread only.
 */
#ifndef AEG_EXPERT_SLOTS_H
#define AEG_EXPERT_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

typedef struct aeg_slots aeg_slots;

typedef enum { AEG_SLOT_EMPTY, AEG_SLOT_FILLING, AEG_SLOT_READY } aeg_slot_state;

#define AEG_NO_SLOT UINT32_MAX

typedef struct {
    uint32_t n_slots;
    uint32_t n_keys;           /* n_layers * n_experts; a key is layer * n_experts + expert */
    double half_life;          /* tokens after which a use counts half                      */
    uint32_t n_experts;        /* keys of a layer, for aeg_slots_begin; 0: all are one layer */
} aeg_slots_config;

/* The half-life that the replay of recorded routes chose, in tokens: docs/adr/0007-cache-policy.md. */
double aeg_slots_half_life(uint32_t n_experts, uint32_t top_k);

aegis_status aeg_slots_init(aeg_slots **out, aeg_arena *arena, const aeg_slots_config *cfg, aegis_error *err);

uint32_t aeg_slots_find(const aeg_slots *slots, uint32_t key); /* FILLING or READY, else AEG_NO_SLOT */
aeg_slot_state aeg_slots_state(const aeg_slots *slots, uint32_t slot);
uint32_t aeg_slots_key(const aeg_slots *slots, uint32_t slot); /* not of an EMPTY slot */

/* A layer's part of a step of n tokens begins, before its uses: what the layer has counted so far is n tokens older now,
 * which the layers still to come will be later. Without it a prefill's uses make each layer look hotter than those
 * that wait for theirs, and these lose their slots just before they are needed (ADR 7). May be left out. */
void aeg_slots_begin(aeg_slots *slots, uint32_t layer, uint32_t n_tokens);
/* Count `uses` of the expert in the step; the step is over: tokens have passed. */
void aeg_slots_use(aeg_slots *slots, uint32_t key, uint32_t uses);
void aeg_slots_tick(aeg_slots *slots, uint32_t n_tokens);

/* A slot for an expert that is needed now (key is in no slot): an EMPTY one, else the coldest READY unpinned
 * one. It becomes FILLING, pinned once. AEG_NO_SLOT: all are pinned or FILLING. */
uint32_t aeg_slots_take(aeg_slots *slots, uint32_t key);

/* The same for a guess: only an EMPTY slot or one that is strictly colder than the expert would be
 * with two more uses now. Not pinned; favoured until settled. */
uint32_t aeg_slots_take_guess(aeg_slots *slots, uint32_t key);

/* A guess names an expert that is in a slot already: it goes last until settled. */
void aeg_slots_favour(aeg_slots *slots, uint32_t slot);
void aeg_slots_settle(aeg_slots *slots, uint32_t slot);

void aeg_slots_filled(aeg_slots *slots, uint32_t slot);  /* FILLING -> READY */
void aeg_slots_drop(aeg_slots *slots, uint32_t slot);    /* FILLING -> EMPTY, pins forgotten: its read failed */

/* A pinned slot keeps its expert. Pins count. */
void aeg_slots_pin(aeg_slots *slots, uint32_t slot);
void aeg_slots_unpin(aeg_slots *slots, uint32_t slot);

#endif
