/* SPDX-License-Identifier: Apache-2.0 */
/* model/blocks/moe.h - one Mixture-of-Experts block over a chunk of tokens.
 *
 *   router logits = W_r u (f32);  the choice of each token and its weights (routes.h)
 *   y = sum over the chosen experts, ascending id, of weight * down(silu(gate u) * up u),
 *       then + sigmoid(W_s u) * shared expert, or + shared expert where it has no gate
 * Misses are on their way before anything is computed. Few routes (decode): the shared expert and the resident ones
 * make the first wave, the others are computed as they arrive, all summed at the end. Many (prefill): in waves of
 * ascending id, summed at once. Both give the same bits because the order of the additions is the same.
 */
#ifndef AEG_MODEL_BLOCKS_MOE_H
#define AEG_MODEL_BLOCKS_MOE_H

#include "expert/streamer.h"
#include "format/hparams.h"
#include "model/blocks/linear.h"
#include "model/blocks/moe_wave.h"
#include "model/blocks/routes.h"
#include "model/weights.h"

typedef struct {
    aeg_routes routes;
    float *logits;         /* [chunk][n_experts]               */
    float *shared_logit;   /* [chunk]                          */
    float *scratch;        /* [threads][scratch_floats]        */
    size_t scratch_floats;
    uint32_t n_wave;       /* rows with room in y and wave: routes, and tokens of the shared expert */
    aeg_wave_scratch wave;
    float *y;              /* [n_wave][hidden]                 */
    float *acc;            /* [chunk][hidden]                  */
    float *shared;         /* [chunk][hidden]                  */
} aeg_moe_scratch;

/* The two parts of the scratch: what the routes are, down to scratch_floats, and what the experts compute in. The second
 * holds nothing until the guess of aeg_moe_forward is made, which may use the same bytes. */
void aeg_moe_routing_init(aeg_moe_scratch *s, aeg_arena *arena, const aeg_hparams *hp, uint32_t chunk, uint32_t n_threads);
void aeg_moe_sums_init(aeg_moe_scratch *s, aeg_arena *arena, const aeg_hparams *hp, aeg_act_kind act, uint32_t chunk);

typedef struct {
    const aeg_compute *c;
    const aeg_hparams *hp;
    const aeg_store_experts *experts;
    aeg_streamer *streamer;
    aeg_moe_scratch *s;
    const aeg_act_room *room;       /* for codes of u */
} aeg_moe;

/* Logits and choices of each token: fills s->routes.ids, weights, s->shared_logit. */
void aeg_moe_route(const aeg_moe *m, const aeg_layer_weights *w, const float *u, uint32_t n);

/* The chosen experts of `layer` on u [n, hidden], added to x [n, hidden]. `guess`, when not NULL, is called once
 * the demand reads are submitted, before anything is waited for. On error nothing was added. */
aegis_status aeg_moe_forward(const aeg_moe *m, const aeg_layer_weights *w, uint32_t layer, const float *u,
                             uint32_t n, float *x, void (*guess)(void *ctx), void *guess_ctx, aegis_error *err);

#endif
