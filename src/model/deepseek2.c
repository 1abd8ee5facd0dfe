/* SPDX-License-Identifier: Apache-2.0 */
/* deepseek2: DeepSeek-V2/V3, Cogito-v2, Moonlight, GLM-4.7-Flash.
 *   h = x + mla(norm(x));  x = h + ffn(norm(h)), ffn = an ordinary network in the leading layers, else experts */
#include "model/blocks/ffn.h"
#include "model/blocks/norm.h"
#include "model/model_parts.h"

static aegis_status layer_forward(aeg_model *m, uint32_t layer, uint32_t n, uint32_t pos0, const aeg_watch *watch,
                                  aegis_error *err)
{
    const aeg_hparams *hp = m->hp;
    const aeg_layer_weights *w = &m->weights.layers[layer];
    aeg_norm_rows(&m->compute, m->u, m->x, hp->hidden_size, w->mixer_norm, n, hp->hidden_size, hp->rms_eps);
    aeg_model_mla(m, layer, n, pos0, m->x);
    aeg_streamer_pump(m->cfg.streamer);
    aeg_norm_rows(&m->compute, m->u, m->x, hp->hidden_size, w->ffn_norm, n, hp->hidden_size, hp->rms_eps);
    return aeg_model_ffn(m, layer, n, pos0, m->x, watch, err);
}

const aeg_family aeg_family_deepseek2 = { .name = "deepseek2", .layer = layer_forward };
