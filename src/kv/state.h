/* SPDX-License-Identifier: Apache-2.0 */
/* kv/state.h - the recurrent state of the Gated DeltaNet layers, and saved copies of it.
 *
 * Per layer: S [v_heads][v_dim/16][k_dim][16] f32 and the last 3 pre-convolution rows [3][channels] f32,
 * oldest first. Unlike KV it cannot be cut back: continuing from an earlier length needs a copy taken there.
 * f32 always: errors accumulate over thousands of steps. Thread: owner only (a step may split by head).
 */
#ifndef AEG_KV_STATE_H
#define AEG_KV_STATE_H

#include <stdint.h>

#include "base/arena.h"

typedef struct {
    uint32_t n_layers;    /* GDN layers of the model */
    uint32_t v_heads, k_dim, v_dim, channels;
    uint32_t n_checkpoints;
} aeg_state_config;

typedef struct {
    uint32_t n_tokens;    /* length it was taken at; 0 = free */
    uint64_t stamp;       /* for dropping the oldest          */
    uint8_t *copy;
} aeg_checkpoint;

typedef struct {
    aeg_state_config cfg;
    uint64_t layer_floats, bytes;
    float *live;          /* [n_layers][layer_floats] */
    aeg_checkpoint *checkpoints;
    uint64_t stamp;
} aeg_state;

/* Live state from `arena`, copies from `copies` (two accounts). */
aegis_status aeg_state_init(aeg_state *out, aeg_arena *arena, aeg_arena *copies, const aeg_state_config *cfg,
                            aegis_error *err);

float *aeg_state_s(const aeg_state *state, uint32_t layer, uint32_t head);
float *aeg_state_conv(const aeg_state *state, uint32_t layer); /* [3][channels] */

void aeg_state_reset(aeg_state *state); /* zero: the start of a sequence */

/* Copy the live state as the one of `n_tokens` > 0 tokens; replaces one of equal length, else the oldest. */
void aeg_state_save(aeg_state *state, uint32_t n_tokens);
/* Longest saved length <= limit; 0 if none. */
uint32_t aeg_state_best(const aeg_state *state, uint32_t limit);
/* Load the copy of exactly n_tokens (it must exist). */
void aeg_state_load(aeg_state *state, uint32_t n_tokens);
/* Forget copies longer than n_tokens: their tokens are no longer the session's. */
void aeg_state_drop_after(aeg_state *state, uint32_t n_tokens);

#endif
