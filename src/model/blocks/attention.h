/* SPDX-License-Identifier: Apache-2.0 */
/* model/blocks/attention.h - gated grouped-query attention over a chunk of tokens.
 *
 *   q, k normalised per head (RMS), rotated on the leading rope_dim dims; scores q.k / sqrt(head_dim), causal;
 *   y = W_o (attention * sigmoid(gate)).
 * Keys and values are written to the KV cache first and read back from it in the stored format. Positions are
 * walked in fixed blocks of AEG_ATTN_BLOCK absolute positions that are merged in order, so the bits depend
 * neither on the chunk nor on the threads.
 */
#ifndef AEG_MODEL_BLOCKS_ATTENTION_H
#define AEG_MODEL_BLOCKS_ATTENTION_H

#include "format/hparams.h"
#include "kv/kv.h"
#include "model/blocks/linear.h"
#include "model/rope.h"
#include "model/weights.h"

typedef struct {
    float *q;              /* [chunk][n_heads][head_dim query, head_dim gate] (gate only with attn_gate) */
    float *k, *v;          /* [chunk][n_kv_heads][head_dim]  */
    float *o;              /* [chunk][n_heads][head_dim]     */
    float *part_m, *part_l, *part_acc; /* partial results, one per unit of work in flight */
    float *scores;         /* [threads][n_rep][AEG_ATTN_BLOCK] */
    uint32_t n_parts;      /* units that have room: >= threads, >= kv heads * blocks of the context */
    aeg_act_room room;
} aeg_attn_scratch;

void aeg_attn_scratch_init(aeg_attn_scratch *s, aeg_arena *arena, const aeg_hparams *hp, aeg_act_kind act,
                           uint32_t chunk, uint32_t n_ctx, uint32_t n_threads);

/* Tokens at positions pos0..pos0+n-1; `layer` counts attention layers; rope rows 0..n-1 are theirs. */
void aeg_attn_forward(const aeg_compute *c, const aeg_hparams *hp, const aeg_attn_weights *w, aeg_kv *kv,
                      uint32_t layer, const aeg_rope *rope, aeg_attn_scratch *s, const aeg_act_room *room,
                      const float *u, uint32_t n, uint32_t pos0, float *y, float *x);

#endif
