/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.h - logits -> one token.
 *
 * Order of the steps: logit bias, repeat / presence / frequency penalties, then either greedy (temperature 0)
 * or: temperature, top-k, softmax, top-p, min-p, one draw. Every step is exact or uses our own exp, sums run in
 * a fixed order in double, and draw n of a seed is a function of (seed, n): the same logits and settings give
 * the same tokens on every machine. Ties go to the lower id throughout.
 *
 * Odd logits are defined: a NaN counts as -infinity, +infinity as the largest float; if nothing is above
 * -infinity the answer is token 0.
 *
 * Memory: aeg_sampler_init carves 8 bytes per vocabulary entry; nothing below allocates.
 * Cost: O(vocab_size) with a heap of top_k entries; with top_k = 0 and top_p < 1 a heap of all entries is
 * built in O(vocab_size) and only the kept ones are popped. No full sort.
 * Thread: owner only.
 */
#ifndef AEG_SAMPLE_SAMPLER_H
#define AEG_SAMPLE_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "aegis/aegis.h"
#include "base/arena.h"
#include "base/error.h"

typedef struct aeg_sampler aeg_sampler;

enum { AEG_SAMPLER_MAX_VOCAB = 1 << 24, AEG_SAMPLER_DEFAULT_LAST_N = 64 };

/* Greedy until aeg_sampler_set. Measuring: *out stays NULL. AEGIS_E_USAGE: vocab_size is 0 or above the limit. */
aegis_status aeg_sampler_init(aeg_sampler **out, aeg_arena *arena, uint32_t vocab_size, aegis_error *err);

/* Copy the settings (checked by aegis_sampling_check before) and start again at draw 0 of their seed.
 * Bias entries for ids outside the vocabulary are ignored. */
void aeg_sampler_set(aeg_sampler *s, const aegis_sampling *settings);

/* The next token. logits: [vocab_size] f32, not changed. recent: the tokens so far, oldest first (prompt and
 * answer); the last penalty_last_n count. */
uint32_t aeg_sampler_next(aeg_sampler *s, const float *logits, const uint32_t *recent, size_t n_recent);

/* Index of the largest logit, lowest id on a tie; the greedy rule above. n >= 1. */
uint32_t aeg_sampler_argmax(const float *logits, uint32_t n);

#endif
