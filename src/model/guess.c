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
    s->work = AEG_ARENA_ARRAY(arena, float, rows * hp->n_experts);
    s->weights = AEG_ARENA_ARRAY(arena, float, rows * hp->n_experts);
    s->ids = AEG_ARENA_ARRAY(arena, uint16_t, rows * hp->n_experts);
    s->order = AEG_ARENA_ARRAY(arena, uint16_t, hp->n_experts);
}

typedef struct {
    const aeg_model *m;
    uint32_t k;
} guess_job;

/* Units are representatives. */
static void choose(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const guess_job *j = ctx;
    const aeg_guess_scratch *s = &j->m->guess;
    const uint32_t n = j->m->hp->n_experts;
    (void)thread;
    for (uint32_t r = begin; r < end; r++)
        j->m->compute.kernels->router(s->ids + (size_t)r * n, s->weights + (size_t)r * n, s->logits + (size_t)r * n, n, j->k, 1,
                                      s->work + (size_t)r * n);
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
    guess_job j = { .m = m, .k = n > 1 || m->cfg.n_guess < 0 ? hp->top_k : AEG_MIN((uint32_t)m->cfg.n_guess, hp->n_experts) };
    aeg_norm_rows(&m->compute, s->u, m->x, (size_t)(n / rows) * hp->hidden_size, w->ffn_norm, rows, hp->hidden_size,
                  hp->rms_eps);
    const aeg_linear_out out = { .w = &w->router, .y = s->logits, .y_stride = hp->n_experts, .exact = true };
    aeg_linear(&m->compute, &m->room, s->u, rows, hp->hidden_size, &out, 1);
    aeg_team_run(m->compute.team, rows, choose, &j);
    const uint32_t found = n == 1 ? order_by_logit(s, j.k) : order_by_id(s, rows, j.k, hp->n_experts);
    aeg_streamer_guess(m->cfg.streamer, layer, s->order, found);
}
