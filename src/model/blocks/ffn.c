/* SPDX-License-Identifier: Apache-2.0 */
#include "model/blocks/ffn.h"

#include "base/checked.h"

void aeg_ffn_forward(const aeg_moe *m, const aeg_layer_weights *w, const float *u, uint32_t n, float *x)
{
    const uint32_t hidden = m->hp->hidden_size;
    aeg_moe_scratch *s = m->s;
    aeg_wave_scratch wave = s->wave; /* the same bytes, fewer and wider rows */
    const uint32_t rows = aeg_wave_widen(&wave, s->n_wave, m->hp->dense_width);
    for (uint32_t t = 0; t < n; t += rows) {
        const size_t at = (size_t)t * hidden;
        aeg_wave_view view = { .gate = w->dense_gate, .up = w->dense_up, .down = w->dense_down,
                               .n = AEG_MIN(rows, n - t), .y = s->y };
        const aeg_wave_sums sums = { .clear = true, .finish = true, .acc = s->acc, .shared = s->y, .x = x + at, .n = view.n };
        const aeg_acts in = aeg_wave_input(m->c, m->room, u + at, view.n, &view);
        aeg_wave_run(m->c, &wave, &in, &view, 1, hidden, &sums);
    }
}
