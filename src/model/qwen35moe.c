/* SPDX-License-Identifier: Apache-2.0 */
/* qwen35moe: Qwen3.5 / Qwen3.6 Mixture-of-Experts text models.
 *   h = x + mixer(norm(x)), mixer = Gated DeltaNet or gated attention by layer;  x = h + moe(norm(h)) */
#include "model/blocks/norm.h"
#include "model/model_parts.h"

/* Adds the mixer's result to the residual. */
static void run_mixer(aeg_model *m, uint32_t layer, uint32_t n, uint32_t pos0)
{
    const aeg_layer_weights *w = &m->weights.layers[layer];
    if (m->hp->mixer[layer] == AEG_MIXER_GDN)
        aeg_gdn_forward(&m->compute, m->hp, &w->gdn, m->cfg.state, m->mixer_index[layer],
                        &m->mixer_scratch[AEG_MIXER_GDN].gdn, &m->room, m->u, n, m->y, m->x);
    else
        aeg_attn_forward(&m->compute, m->hp, &w->attn, m->cfg.kv, m->mixer_index[layer], &m->rope,
                         &m->mixer_scratch[AEG_MIXER_ATTENTION].attn, &m->room, m->u, n, pos0, m->y, m->x);
}

static aegis_status layer_forward(aeg_model *m, uint32_t layer, uint32_t n, uint32_t pos0, const aeg_watch *watch,
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

const aeg_family aeg_family_qwen35moe = { .name = "qwen35moe", .layer = layer_forward };
