/* SPDX-License-Identifier: Apache-2.0 */
/* model/blocks/attention.h - grouped-query attention over a chunk of tokens.
 *
 *   q, k normalised (RMS; per head, over all heads at once, or not), q, k, v clamped to +- qkv_clamp if it is not 0;
 *   q, k rotated on the leading rope_dim dims; scores q.k / sqrt(head_dim), causal;
 *   y = W_o (attention * sigmoid(gate)), the gate with attn_gate only.
 * Keys and values are written to the KV cache first and read back from it in the stored format (attend.h).
 */
#ifndef AEG_MODEL_BLOCKS_ATTENTION_H
#define AEG_MODEL_BLOCKS_ATTENTION_H

#include "format/hparams.h"
#include "kv/kv.h"
#include "model/blocks/attend.h"
#include "model/blocks/linear.h"
#include "model/rope.h"
#include "model/weights.h"

typedef struct {
    float *q;              /* [chunk][n_heads][head_dim query, head_dim gate] (gate only with attn_gate) */
    float *k, *v;          /* [chunk][n_kv_heads][head_dim]  */
    float *o;              /* [chunk][n_heads][head_dim]     */
    int8_t *q_codes;       /* [chunk][n_heads][head_dim]; with a coded cache only */
    float *q_scale;        /* [chunk][n_heads]               */
    aeg_attend_scratch attend;
    aeg_act_room room;
} aeg_attn_scratch;

/* `kv`: the cache's shapes and kind. */
void aeg_attn_scratch_init(aeg_attn_scratch *s, aeg_arena *arena, const aeg_hparams *hp, aeg_act_kind act,
                           const aeg_kv_config *kv, uint32_t chunk, uint32_t n_threads);

/* Tokens at positions pos0..pos0+n-1; `layer` counts attention layers; rope rows 0..n-1 are theirs. */
void aeg_attn_forward(const aeg_compute *c, const aeg_hparams *hp, const aeg_attn_weights *w, aeg_kv *kv,
                      uint32_t layer, const aeg_rope *rope, aeg_attn_scratch *s, const aeg_act_room *room,
                      const float *u, uint32_t n, uint32_t pos0, float *y, float *x);

#endif
