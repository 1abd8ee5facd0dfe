/* SPDX-License-Identifier: Apache-2.0 */
/* The halves of a layer that several families have. */
#include "model/blocks/ffn.h"
#include "model/blocks/norm.h"
#include "model/model_parts.h"

void aeg_model_mla(aeg_model *m, uint32_t layer, uint32_t n, uint32_t pos0, float *x)
{
    const aeg_mla_args args = {
        .c = &m->compute, .hp = m->hp, .w = &m->weights.layers[layer].mla, .kv = m->cfg.kv, .layer = m->mixer_index[layer],
        .rope = &m->rope, .s = &m->mixer_scratch[AEG_MIXER_MLA].mla, .room = &m->room, .u = m->u, .n = n, .pos0 = pos0,
        .y = m->y, .x = x,
    };
    aeg_mla_forward(&args);
}

typedef struct {
    aeg_model *m;
    uint32_t layer, n;
} guess_ctx;

static void guess_next(void *ctx)
{
    const guess_ctx *g = ctx;
    aeg_model_guess(g->m, g->layer + 1, g->n);
}

aegis_status aeg_model_ffn(aeg_model *m, uint32_t layer, uint32_t n, uint32_t pos0, float *x, const aeg_watch *watch,
                           aegis_error *err)
{
    const aeg_hparams *hp = m->hp;
    const aeg_layer_weights *w = &m->weights.layers[layer];
    const aeg_moe moe = { .c = &m->compute, .hp = hp, .experts = &m->cfg.store->experts,
                          .streamer = m->cfg.streamer, .s = &m->moe_scratch, .room = &m->room };
    guess_ctx g = { .m = m, .layer = layer, .n = n };
    const bool guess = m->cfg.n_guess != 0 && layer + 1 < hp->n_layers && aeg_has_experts(hp, layer + 1);
    if (!aeg_has_experts(hp, layer)) {
        if (guess)
            guess_next(&g); /* reads go on while this layer computes */
        aeg_ffn_forward(&moe, w, m->u, n, x);
        return AEGIS_OK;
    }
    aeg_moe_route(&moe, w, m->u, n);
    if (watch != NULL && watch->router != NULL)
        for (uint32_t t = 0; t < n; t++)
            watch->router(watch->ctx, layer, pos0 + t, m->moe_scratch.routes.ids + (size_t)t * hp->top_k);
    return aeg_moe_forward(&moe, w, layer, m->u, n, x, guess ? guess_next : NULL, &g, err);
}

/* Adds the mixer's result to the residual. */
static void run_mixer(aeg_model *m, uint32_t layer, uint32_t n, uint32_t pos0)
{
    const aeg_layer_weights *w = &m->weights.layers[layer];
    switch (m->hp->mixer[layer]) {
    case AEG_MIXER_GDN:
        aeg_gdn_forward(&m->compute, m->hp, &w->gdn, m->cfg.state, m->mixer_index[layer],
                        &m->mixer_scratch[AEG_MIXER_GDN].gdn, &m->room, m->u, n, m->y, m->x);
        break;
    case AEG_MIXER_ATTENTION:
        aeg_attn_forward(&m->compute, m->hp, &w->attn, m->cfg.kv, m->mixer_index[layer], &m->rope,
                         &m->mixer_scratch[AEG_MIXER_ATTENTION].attn, &m->room, m->u, n, pos0, m->y, m->x);
        break;
    default: aeg_model_mla(m, layer, n, pos0, m->x);
    }
}

aegis_status aeg_model_plain_layer(aeg_model *m, uint32_t layer, uint32_t n, uint32_t pos0, const aeg_watch *watch,
                                   aegis_error *err)
{
    const aeg_hparams *hp = m->hp;
    const aeg_layer_weights *w = &m->weights.layers[layer];
    aeg_norm_rows(&m->compute, m->u, m->x, hp->hidden_size, w->mixer_norm, n, hp->hidden_size, hp->rms_eps);
    run_mixer(m, layer, n, pos0);
    aeg_streamer_pump(m->cfg.streamer);
    aeg_norm_rows(&m->compute, m->u, m->x, hp->hidden_size, w->ffn_norm, n, hp->hidden_size, hp->rms_eps);
    return aeg_model_ffn(m, layer, n, pos0, m->x, watch, err);
}
