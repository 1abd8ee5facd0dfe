/* SPDX-License-Identifier: Apache-2.0 */
/* model/blocks/routes.h - which expert each token of a chunk goes to, grouped by expert.
 *
 * A route is one (token, chosen expert) pair. Routes are sorted by expert, tokens ascending within it, so that an
 * expert's weights are used for all its tokens at once and sums are added in ascending expert id.
 */
#ifndef AEG_MODEL_BLOCKS_ROUTES_H
#define AEG_MODEL_BLOCKS_ROUTES_H

#include <stdint.h>

#include "base/arena.h"
#include "format/hparams.h"
#include "kernels/kernels.h"

typedef struct {
    uint16_t *ids;         /* [chunk][top_k] ascending id per token        */
    float *weights;        /* [chunk][top_k]                               */
    uint32_t *token;       /* [chunk*top_k] by route                       */
    float *weight;         /* [chunk*top_k] by route                       */
    uint16_t *experts;     /* [n_experts] needed ones, ascending           */
    uint32_t *uses;        /* [n_experts] routes of each needed one        */
    uint32_t *first;       /* [n_experts + 1] first route of each needed one */
    uint32_t *cursor;      /* [n_experts] scratch of the sort              */
    uint32_t n_needed, n_routes;
} aeg_routes;

void aeg_routes_init(aeg_routes *r, aeg_arena *arena, uint32_t chunk, uint32_t top_k, uint32_t n_experts);

/* The top_k experts of one token (hp->top_k, or as many as are wanted for a guess), ids ascending, by the model's rule: softmax
 * over all (kernels.h, router), or kernels/route.h where there are sigmoids, a bias, groups or a scale. bias [n_experts] or
 * NULL; scratch: aeg_route_scratch floats. */
void aeg_choose_experts(const aeg_kernels *k, const aeg_hparams *hp, const float *bias, const float *logits, uint32_t top_k,
                        float *scratch, uint16_t *ids, float *weights);

/* Fill everything below `weights` from ids and weights of n tokens. */
void aeg_routes_group(aeg_routes *r, uint32_t n, uint32_t top_k, uint32_t n_experts);

#endif
