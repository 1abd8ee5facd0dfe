/* SPDX-License-Identifier: Apache-2.0 */
/* model/guess.h - which experts the next layer will want, before its turn.
 *
 * Its router applied to the present residual: right for most of the top k where neighbouring layers are alike. A chunk of
 * tokens is represented by a few of them. Guesses decide what is read early and never what is computed.
 */
#ifndef AEG_MODEL_GUESS_H
#define AEG_MODEL_GUESS_H

#include "base/arena.h"
#include "format/hparams.h"

struct aeg_model;

typedef struct {
    uint32_t rows;         /* tokens that stand for a chunk */
    float *u;              /* [rows][hidden]    */
    float *logits;         /* [rows][n_experts] */
    float *work;           /* [rows][aeg_route_scratch], n_experts at least */
    float *weights;        /* [rows][n_experts] */
    uint16_t *ids;         /* [rows][n_experts] */
    uint16_t *order;       /* [n_experts] what is asked for, best first */
} aeg_guess_scratch;

void aeg_guess_scratch_init(aeg_guess_scratch *s, aeg_arena *arena, const aeg_hparams *hp, uint32_t chunk);

/* Ask the streamer for experts of `layer`, the next one, from the residual of n tokens: for one token those that the
 * router chooses, the surest first; for a chunk those that any of its representatives chooses, in ascending id. */
void aeg_model_guess(struct aeg_model *m, uint32_t layer, uint32_t n);

#endif
