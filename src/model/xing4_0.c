/* SPDX-License-Identifier: Apache-2.0 */
/* xing4_0: Xing4.0. The blocks of DeepSeek-V3 with a hyper-connection over four residual streams around each of them:
 *   c, post, mix = connection(x);  y = block(norm(c));  x[d] = post[d] y + sum of mix[d][s] x[s]
 * Nothing is added to the residual beside that. The head reads the mean of the streams. */
#include <string.h>

#include "model/model_parts.h"

/* The connection after this layer's last one. */
static const aeg_hyper_weights *next_connection(const aeg_model *m, uint32_t layer)
{
    return layer + 1 < m->hp->n_layers ? &m->weights.layers[layer + 1].hyper_attn : NULL;
}

aegis_status aeg_model_xing4_layer(aeg_model *m, uint32_t layer, uint32_t n, uint32_t pos0, const aeg_watch *watch,
                                   aegis_error *err)
{
    const aeg_hyper h = { .c = &m->compute, .hp = m->hp, .s = &m->hyper, .x = m->x, .n = n };
    const aeg_layer_weights *w = &m->weights.layers[layer];
    if (layer == 0)
        aeg_hyper_leave(&h, NULL, &w->hyper_attn);
    aeg_hyper_enter(&h, &w->hyper_attn, w->mixer_norm, m->u);
    aeg_model_mla(m, layer, n, pos0, NULL);
    aeg_streamer_pump(m->cfg.streamer);
    aeg_hyper_leave(&h, m->y, &w->hyper_ffn);

    aeg_hyper_enter(&h, &w->hyper_ffn, w->ffn_norm, m->u);
    memset(m->y, 0, (size_t)n * m->hp->hidden_size * sizeof(float)); /* the network adds to it */
    AEG_TRY(aeg_model_ffn(m, layer, n, pos0, m->y, watch, err));
    aeg_hyper_leave(&h, m->y, next_connection(m, layer));
    return AEGIS_OK;
}
