/* SPDX-License-Identifier: Apache-2.0 */
/* model/model_parts.h - what model.c and the family files share. Not for other folders. */
#ifndef AEG_MODEL_MODEL_PARTS_H
#define AEG_MODEL_MODEL_PARTS_H

#include "model/blocks/attention.h"
#include "model/blocks/gdn.h"
#include "model/blocks/hyper.h"
#include "model/blocks/mla.h"
#include "model/blocks/moe.h"
#include "model/embed.h"
#include "model/guess.h"
#include "model/model.h"
#include "model/rope.h"
#include "model/weights.h"

typedef struct aeg_family aeg_family;

struct aeg_model {
    aeg_model_config cfg;
    const aeg_hparams *hp;
    const aeg_family *family;
    aeg_compute compute;
    aeg_model_weights weights;
    uint32_t *mixer_index;      /* [n_layers]: number of earlier layers with the same mixer: row of state or kv */
    aeg_rope rope;
    float *x;                   /* [chunk][streams][hidden] residual, f32, unbounded: never narrow */
    float *u;                   /* [chunk][hidden] normalised input of a block                   */
    float *y;                   /* [chunk][hidden] result of a mixer                             */
    aeg_act_room room;          /* codes of u                                                    */
    union {                     /* one block runs at a time: they share the same bytes           */
        aeg_gdn_scratch gdn;
        aeg_attn_scratch attn;
        aeg_mla_scratch mla;
    } mixer_scratch[AEG_N_MIXERS];         /* by aeg_mixer */
    aeg_hyper_scratch hyper;    /* with hc_streams only */
    aeg_moe_scratch moe_scratch;
    aeg_guess_scratch guess;
    aeg_embed_room embed;
    uint64_t embed_ns;          /* reading rows of the embedding */
    uint32_t n_logits;          /* rows of `logits` */
    float *logits;              /* [n_logits][vocab] */
    uint32_t last_logits;       /* row of the last token's */
    uint32_t n_decode;          /* threads of a chunk of at most AEG_DECODE_TOKENS */
};

/* A layer over a chunk, in terms of the shared blocks: m->x is taken through it. */
struct aeg_family {
    const char *name;
    aegis_status (*layer)(aeg_model *m, uint32_t layer, uint32_t n, uint32_t pos0, const aeg_watch *watch,
                          aegis_error *err);
    uint32_t mixers;            /* bit i: aeg_mixer i may be in a layer */
    bool streams;               /* its residual is hc_streams wide      */
};

/* AEGIS_E_MODEL naming `path` if no family of that name is known, or the store has what it never has (families.c). */
aegis_status aeg_family_find(const aeg_family **out, const aeg_hparams *hp, const char *path, aegis_error *err);

/* Streams of the residual: 1, or hc_streams. */
static inline uint32_t aeg_n_streams(const aeg_hparams *hp) { return hp->hc_streams != 0 ? hp->hc_streams : 1; }

/* --- layers and halves of layers (layer.c); the halves read m->u [n, hidden] --- */

/* h = x + mixer(norm(x)), by layer what the hyper-parameters say;  x = h + ffn(norm(h)), experts or an ordinary network */
aegis_status aeg_model_plain_layer(aeg_model *m, uint32_t layer, uint32_t n, uint32_t pos0, const aeg_watch *watch,
                                   aegis_error *err);
/* The same halves around hyper-connections (xing4_0.c). */
aegis_status aeg_model_xing4_layer(aeg_model *m, uint32_t layer, uint32_t n, uint32_t pos0, const aeg_watch *watch,
                                   aegis_error *err);

/* Latent attention of `layer` into m->y, which is added to x unless that is NULL. */
void aeg_model_mla(aeg_model *m, uint32_t layer, uint32_t n, uint32_t pos0, float *x);
/* The feed-forward half of `layer`, ordinary or of experts, added to x [n, hidden]; guesses for the next layer go with it. */
aegis_status aeg_model_ffn(aeg_model *m, uint32_t layer, uint32_t n, uint32_t pos0, float *x, const aeg_watch *watch,
                           aegis_error *err);

#endif
