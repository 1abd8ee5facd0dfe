/* SPDX-License-Identifier: Apache-2.0 */
/* model/blocks/gdn.h - one Gated DeltaNet mixer over a chunk of tokens.
 *
 *   q|k|v = silu(conv4(W_qkv u));  q, k normalised per head, q scaled by k_dim^-1/2
 *   beta = sigmoid(W_b u), decay = exp(-exp(A_log) softplus(W_a u + dt_bias))
 *   per value head: the delta rule (kernels.h, gdn);  y = W_out (rmsnorm(o) * w * silu(W_z u))
 * The recurrence runs token by token inside each (head, strip of 16 columns), so a chunk of any length gives
 * the bits of single steps. Source: spec of Qwen3.5/3.6 (docs/architecture.md, "Gated DeltaNet").
 */
#ifndef AEG_MODEL_BLOCKS_GDN_H
#define AEG_MODEL_BLOCKS_GDN_H

#include "format/hparams.h"
#include "kv/state.h"
#include "model/blocks/linear.h"
#include "model/weights.h"

typedef struct {
    float *qkv;            /* [3 + chunk][channels]: rows 0..2 are the saved ones */
    float *z, *o;          /* [chunk][value width]  */
    float *b, *a;          /* [chunk][v_heads]; become beta, decay */
    aeg_act_room room;
} aeg_gdn_scratch;

void aeg_gdn_scratch_init(aeg_gdn_scratch *s, aeg_arena *arena, const aeg_hparams *hp, aeg_act_kind act,
                          uint32_t chunk);

/* u: [n, hidden] normalised input (also its room for codes); y: [n, hidden] result, which is added to x [n, hidden]. `layer` counts GDN layers. */
void aeg_gdn_forward(const aeg_compute *c, const aeg_hparams *hp, const aeg_gdn_weights *w, aeg_state *state,
                     uint32_t layer, aeg_gdn_scratch *s, const aeg_act_room *room, const float *u, uint32_t n,
                     float *y, float *x);

#endif
