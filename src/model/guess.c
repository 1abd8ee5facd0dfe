/* SPDX-License-Identifier: Apache-2.0 */
#include "model/guess.h"

#include <stdbool.h>

#include "base/checked.h"
#include "model/blocks/norm.h"
#include "model/model_parts.h"

/* Enough to name the experts that fill the pause before a layer's own demand; a hundredth of the chunk's work. */
enum { MAX_ROWS = 64 };

void aeg_guess_scratch_init(aeg_guess_scratch *s, aeg_arena *arena, const aeg_hparams *hp, uint32_t chunk)
{
    const uint64_t rows = AEG_MIN(chunk, (uint32_t)MAX_ROWS);
    s->rows = (uint32_t)rows;
    s->u = AEG_ARENA_ARRAY(arena, float, rows * hp->hidden_size);
    s->logits = AEG_ARENA_ARRAY(arena, float, rows * hp->n_experts);
    s->work = AEG_ARENA_ARRAY(arena, float, rows * aeg_route_scratch(hp->n_experts, hp->n_groups));
    s->weights = AEG_ARENA_ARRAY(arena, float, rows * hp->n_experts);
    s->ids = AEG_ARENA_ARRAY(arena, uint16_t, rows * hp->n_experts);
    s->order = AEG_ARENA_ARRAY(arena, uint16_t, hp->n_experts);
}

typedef struct {
    const aeg_model *m;
    const float *bias;
    uint32_t k;
} guess_job;

/* Units are representatives. */
static void choose(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const guess_job *j = ctx;
    const aeg_guess_scratch *s = &j->m->guess;
    const aeg_hparams *hp = j->m->hp;
    const size_t n = hp->n_experts, work = aeg_route_scratch(hp->n_experts, hp->n_groups);
    (void)thread;
    for (uint32_t r = begin; r < end; r++)
        aeg_choose_experts(j->m->compute.kernels, hp, j->bias, s->logits + r * n, j->k, s->work + r * work, s->ids + r * n,
                           s->weights + r * n);
}

/* Descending logit: the surest guess is read first. k is small: insertion sort. */
static uint32_t order_by_logit(aeg_guess_scratch *s, uint32_t k)
{
    for (uint32_t i = 0; i < k; i++) {
        const uint16_t id = s->ids[i];
        uint32_t at = i;
        while (at > 0 && s->logits[s->order[at - 1]] < s->logits[id]) {
            s->order[at] = s->order[at - 1];
            at--;
        }
        s->order[at] = id;
    }
    return k;
}

static uint32_t order_by_id(aeg_guess_scratch *s, uint32_t rows, uint32_t k, uint32_t n_experts)
{
    uint32_t n = 0;
    for (uint32_t e = 0; e < n_experts; e++)
        s->work[e] = 0.0f;
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t i = 0; i < k; i++)
            s->work[s->ids[(size_t)r * n_experts + i]] = 1.0f;
    for (uint32_t e = 0; e < n_experts; e++)
        if (s->work[e] != 0.0f)
            s->order[n++] = (uint16_t)e;
    return n;
}

void aeg_model_guess(aeg_model *m, uint32_t layer, uint32_t n)
{
    const aeg_hparams *hp = m->hp;
    const aeg_layer_weights *w = &m->weights.layers[layer];
    aeg_guess_scratch *s = &m->guess;
    const uint32_t rows = AEG_MIN(n, s->rows);
    const uint32_t most = hp->n_experts / hp->n_groups * hp->top_groups; /* that a router could choose */
    guess_job j = { .m = m, .bias = w->router_bias,
                    .k = n > 1 || m->cfg.n_guess < 0 ? hp->top_k : AEG_MIN((uint32_t)m->cfg.n_guess, most) };
    /* With several streams what this layer's own network reads stands for what the next one's will. */
    const float *from = hp->hc_streams > 0 ? m->hyper.collapsed : m->x;
    aeg_norm_rows(&m->compute, s->u, from, (size_t)(n / rows) * hp->hidden_size, w->ffn_norm, rows, hp->hidden_size,
                  hp->rms_eps);
    const aeg_linear_out out = { .w = &w->router, .y = s->logits, .y_stride = hp->n_experts, .exact = true };
    aeg_linear(&m->compute, &m->room, s->u, rows, hp->hidden_size, &out, 1);
    aeg_team_run(m->compute.team, rows, choose, &j);
    const uint32_t found = n == 1 ? order_by_logit(s, j.k) : order_by_id(s, rows, j.k, hp->n_experts);
    aeg_streamer_guess(m->cfg.streamer, layer, s->order, found);
}
