/* SPDX-License-Identifier: Apache-2.0 */
#include "kv/state.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

enum { CONV_ROWS = 3 };

aegis_status aeg_state_init(aeg_state *out, aeg_arena *arena, aeg_arena *copies, const aeg_state_config *cfg,
                            aegis_error *err)
{
    const uint64_t s = (uint64_t)cfg->v_heads * cfg->k_dim * cfg->v_dim;
    const uint64_t layer_floats = s + (uint64_t)CONV_ROWS * cfg->channels;
    const uint64_t bytes = cfg->n_layers * layer_floats * sizeof(float);

    float *live = aeg_arena_alloc(arena, bytes, AEG_CACHE_LINE);
    aeg_checkpoint *checkpoints = AEG_ARENA_ARRAY(copies, aeg_checkpoint, cfg->n_checkpoints);
    for (uint32_t i = 0; i < cfg->n_checkpoints; i++) {
        uint8_t *copy = aeg_arena_alloc(copies, bytes, AEG_CACHE_LINE);
        if (checkpoints != NULL)
            checkpoints[i] = (aeg_checkpoint){ .copy = copy };
    }
    AEG_TRY(aeg_arena_check(arena, err));
    AEG_TRY(aeg_arena_check(copies, err));
    *out = (aeg_state){ .cfg = *cfg, .layer_floats = layer_floats, .bytes = bytes, .live = live,
                        .checkpoints = checkpoints };
    return AEGIS_OK;
}

float *aeg_state_s(const aeg_state *state, uint32_t layer, uint32_t head)
{
    return state->live + layer * state->layer_floats + (uint64_t)head * state->cfg.k_dim * state->cfg.v_dim;
}

float *aeg_state_conv(const aeg_state *state, uint32_t layer)
{
    return aeg_state_s(state, layer, state->cfg.v_heads);
}

void aeg_state_reset(aeg_state *state) { memset(state->live, 0, state->bytes); }

void aeg_state_save(aeg_state *state, uint32_t n_tokens)
{
    aeg_checkpoint *victim = NULL;
    for (uint32_t i = 0; i < state->cfg.n_checkpoints; i++) {
        aeg_checkpoint *c = &state->checkpoints[i];
        if (c->n_tokens == n_tokens) {
            victim = c;
            break;
        }
        if (victim == NULL || c->stamp < victim->stamp)
            victim = c;
    }
    if (victim == NULL)
        return;
    memcpy(victim->copy, state->live, state->bytes);
    victim->n_tokens = n_tokens;
    victim->stamp = ++state->stamp;
}

static aeg_checkpoint *find(const aeg_state *state, uint32_t limit)
{
    aeg_checkpoint *best = NULL;
    for (uint32_t i = 0; i < state->cfg.n_checkpoints; i++) {
        aeg_checkpoint *c = &state->checkpoints[i];
        if (c->n_tokens > 0 && c->n_tokens <= limit && (best == NULL || c->n_tokens > best->n_tokens))
            best = c;
    }
    return best;
}

uint32_t aeg_state_best(const aeg_state *state, uint32_t limit)
{
    const aeg_checkpoint *c = find(state, limit);
    return c == NULL ? 0 : c->n_tokens;
}

void aeg_state_load(aeg_state *state, uint32_t n_tokens)
{
    aeg_checkpoint *c = find(state, n_tokens);
    assert(c != NULL && c->n_tokens == n_tokens);
    memcpy(state->live, c->copy, state->bytes);
    c->stamp = ++state->stamp;
}

void aeg_state_drop_after(aeg_state *state, uint32_t n_tokens)
{
    for (uint32_t i = 0; i < state->cfg.n_checkpoints; i++)
        if (state->checkpoints[i].n_tokens > n_tokens) {
            state->checkpoints[i].n_tokens = 0;
            state->checkpoints[i].stamp = 0;
        }
}
