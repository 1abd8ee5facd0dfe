/* SPDX-License-Identifier: Apache-2.0 */
/* model/blocks/mla.h - multi-head latent attention over a chunk of tokens (DeepSeek-V2/V3, Xing4.0).
 *
 *   q = W_qb rmsnorm(W_qa u), or W_q u without q_lora: per head qk_nope numbers, then qk_rope that rotate
 *   W_kva u = latent [kv_lora] | key [qk_rope]; cache row = rmsnorm(latent) | rotated key, one for all heads
 *   per head, in the absorbed form: q' = K_b q_nope;  score = scale * (q' . latent + q_rope . key);
 *   a = sum of softmax * latent;  o = V_b a;  y = W_o o
 * Keys and values of all heads are linear images of the latent, so K_b goes into the query and V_b behind the sum: the cache
 * is read as it lies, once for all heads. Prefill uses the same form, because the expanded one rounds differently
 * (its products are fewer: a later prefill may want it, with its own promise). scale = (qk_nope + qk_rope)^-1/2, never of
 * the cache's width, times m^2 with YaRN, m = 0.1 * yarn_mscale_all * ln(yarn_factor) + 1.
 * Source: DeepSeek-V2 (arXiv 2405.04434), section 2.1.
 */
#ifndef AEG_MODEL_BLOCKS_MLA_H
#define AEG_MODEL_BLOCKS_MLA_H

#include "format/hparams.h"
#include "kv/kv.h"
#include "model/blocks/attend.h"
#include "model/blocks/linear.h"
#include "model/rope.h"
#include "model/weights.h"

typedef struct {
    float *q_a;            /* [chunk][q_lora]                                       */
    float *row;            /* [chunk][kv_lora + qk_rope]                            */
    float *head_q;         /* [threads][tokens of a unit][qk_nope + qk_rope]        */
    float *q;              /* [chunk][n_heads][kv_lora + qk_rope] absorbed queries  */
    float *a;              /* [chunk][n_heads][kv_lora]                             */
    float *o;              /* [chunk][n_heads][v_dim]                               */
    uint32_t unit_tokens;
    aeg_act_room q_a_room; /* codes of q_a                                          */
    aeg_act_room head_room;/* [threads][unit_tokens][widest input of K_b and V_b]   */
    aeg_act_room room;     /* codes of o                                            */
    int8_t *q_codes;       /* [chunk][n_heads][aeg_kv_code_dim]; with a coded cache only */
    float *q_scale, *q_rotary_scale; /* [chunk][n_heads]                            */
    aeg_attend_scratch attend;
} aeg_mla_scratch;

/* `kv`: the cache's shapes and kind. */
void aeg_mla_scratch_init(aeg_mla_scratch *s, aeg_arena *arena, const aeg_hparams *hp, aeg_act_kind act,
                          const aeg_kv_config *kv, uint32_t chunk, uint32_t n_threads);

/* Of the scores. */
float aeg_mla_scale(const aeg_hparams *hp);

typedef struct {
    const aeg_compute *c;
    const aeg_hparams *hp;
    const aeg_mla_weights *w;
    aeg_kv *kv;
    uint32_t layer;             /* of the cache: counts MLA layers      */
    const aeg_rope *rope;       /* rows 0..n-1 are the tokens'          */
    aeg_mla_scratch *s;
    const aeg_act_room *room;   /* for codes of u                       */
    const float *u;             /* [n, hidden] normalised input         */
    uint32_t n, pos0;
    float *y;                   /* [n, hidden] result                   */
    float *x;                   /* [n, hidden] y is added to it, or NULL */
} aeg_mla_args;

void aeg_mla_forward(const aeg_mla_args *args);

#endif
