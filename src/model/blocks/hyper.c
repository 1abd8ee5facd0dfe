/* SPDX-License-Identifier: Apache-2.0 */
#include "model/blocks/hyper.h"

#include <string.h>

#include "base/checked.h"
#include "kernels/planes.h"

enum {
    S = AEG_HYPER_STREAMS,
    COLUMNS = 256,      /* of each stream: enough units for a dozen threads at decode, a strip of tokens fits the first cache */
    TOKENS = AEG_STRIP, /* of a unit: they share the fetch of fn */
};

void aeg_hyper_scratch_init(aeg_hyper_scratch *s, aeg_arena *arena, const aeg_hparams *hp, uint32_t chunk)
{
    s->n_parts = (hp->hidden_size + COLUMNS - 1) / COLUMNS;
    const uint64_t parts = (uint64_t)chunk * s->n_parts;
    s->dots = AEG_ARENA_ARRAY(arena, float, parts * AEG_HYPER_GATES);
    s->squares = AEG_ARENA_ARRAY(arena, float, parts);
    s->gates = AEG_ARENA_ARRAY(arena, aeg_hyper_gates, chunk);
    s->collapsed = AEG_ARENA_ARRAY(arena, float, (uint64_t)chunk * hp->hidden_size);
}

typedef struct {
    const aeg_hyper *h;
    const float *y;
    const aeg_hyper_weights *w;
    const float *norm;
    float *out;
} hyper_job;

/* Dot products of a block of columns for n tokens from t into sum [n][24], as kernels/hyper.h has them. Several tokens
 * share the fetch of fn and are chains enough; those of a single one are put side by side. */
static void block_dots(const hyper_job *j, uint32_t t, uint32_t n, uint32_t c0, uint32_t width, float *sum)
{
    const aeg_hyper *h = j->h;
    const aeg_kernels *k = h->c->kernels;
    const aeg_weights *fn = &j->w->fn;
    const uint32_t hidden = h->hp->hidden_size;
    const float *streams = h->x + (size_t)t * S * hidden;
    float dots[TOKENS * AEG_HYPER_GATES];
    if (n == 1) {
        const aeg_hyper_dots_args args = { .fn = fn, .x = streams, .stride = hidden, .column = c0, .n = width, .dots = sum };
        k->hyper_dots(&args);
        return;
    }
    memset(sum, 0, n * AEG_HYPER_GATES * sizeof *sum);
    for (uint32_t s = 0; s < S; s++) {
        aeg_weights block = *fn; /* plain numbers: column c lies c tiles into each row block */
        block.data += (size_t)(s * hidden + c0) * aeg_tile_bytes(fn->type);
        block.n_cols = width;
        const aeg_acts acts = { .kind = AEG_ACT_F32, .n_cols = S * hidden, .block = 64, .f32 = streams + (size_t)s * hidden + c0 };
        const aeg_matmul_args args = { .w = &block, .x = &acts, .n = n, .y = dots, .y_stride = AEG_HYPER_GATES };
        aeg_kernels_matmul(k, fn->type, AEG_ACT_F32)(&args, 0, aeg_row_blocks(AEG_HYPER_GATES));
        k->add(sum, dots, n * AEG_HYPER_GATES);
    }
}

/* dots and squares of one block of columns for n tokens from t: streams ascending, one sum after the other. */
static void begin_part(const hyper_job *j, uint32_t t, uint32_t n, uint32_t part)
{
    const aeg_hyper *h = j->h;
    const uint32_t hidden = h->hp->hidden_size, c0 = part * COLUMNS, width = AEG_MIN((uint32_t)COLUMNS, hidden - c0);
    float sum[TOKENS * AEG_HYPER_GATES];
    block_dots(j, t, n, c0, width, sum);
    for (uint32_t i = 0; i < n; i++) {
        const size_t at = (size_t)(t + i) * h->s->n_parts + part;
        const float *x = h->x + (size_t)(t + i) * S * hidden + c0;
        memcpy(h->s->dots + at * AEG_HYPER_GATES, sum + (size_t)i * AEG_HYPER_GATES, AEG_HYPER_GATES * sizeof(float));
        h->s->squares[at] = 0.0f;
        for (uint32_t s = 0; s < S; s++)
            h->s->squares[at] += h->c->kernels->dot(x + (size_t)s * hidden, x + (size_t)s * hidden, width);
    }
}

/* Units are (strip of tokens, block of columns). */
static void leave_parts(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const hyper_job *j = ctx;
    const aeg_hyper *h = j->h;
    const uint32_t hidden = h->hp->hidden_size;
    (void)thread;
    for (uint32_t unit = begin; unit < end; unit++) {
        const uint32_t t = unit / h->s->n_parts * TOKENS, part = unit % h->s->n_parts, n = AEG_MIN((uint32_t)TOKENS, h->n - t);
        const uint32_t c0 = part * COLUMNS, width = AEG_MIN((uint32_t)COLUMNS, hidden - c0);
        for (uint32_t i = t; j->y != NULL && i < t + n; i++)
            h->c->kernels->hyper_update(h->x + (size_t)i * S * hidden + c0, hidden, j->y + (size_t)i * hidden + c0,
                                        &h->s->gates[i], width);
        if (j->w != NULL)
            begin_part(j, t, n, part);
    }
}

void aeg_hyper_leave(const aeg_hyper *h, const float *y, const aeg_hyper_weights *next)
{
    hyper_job job = { .h = h, .y = y, .w = next };
    aeg_team_run(h->c->team, (h->n + TOKENS - 1) / TOKENS * h->s->n_parts, leave_parts, &job);
}

/* Units are tokens. */
static void enter_tokens(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const hyper_job *j = ctx;
    const aeg_hyper *h = j->h;
    const aeg_hparams *hp = h->hp;
    const aeg_kernels *k = h->c->kernels;
    (void)thread;
    for (uint32_t t = begin; t < end; t++) {
        const float *parts = h->s->dots + (size_t)t * h->s->n_parts * AEG_HYPER_GATES;
        float dots[AEG_HYPER_GATES] = { 0 }, squares = 0.0f, *collapsed = h->s->collapsed + (size_t)t * hp->hidden_size;
        for (uint32_t p = 0; p < h->s->n_parts; p++) {
            k->add(dots, parts + (size_t)p * AEG_HYPER_GATES, AEG_HYPER_GATES);
            squares += h->s->squares[(size_t)t * h->s->n_parts + p];
        }
        const aeg_hyper_args args = { .dots = dots, .base = j->w->base, .scale = j->w->scale, .sum_squares = squares,
                                      .width = S * hp->hidden_size, .rms_eps = hp->rms_eps, .clamp = hp->hc_clamp,
                                      .eps = hp->hc_eps, .iters = hp->hc_iters, .out = &h->s->gates[t] };
        k->hyper_gates(&args);
        k->hyper_collapse(collapsed, h->x + (size_t)t * S * hp->hidden_size, hp->hidden_size, h->s->gates[t].pre, hp->hidden_size);
        k->rmsnorm(j->out + (size_t)t * hp->hidden_size, collapsed, j->norm, hp->hidden_size, hp->rms_eps);
    }
}

void aeg_hyper_enter(const aeg_hyper *h, const aeg_hyper_weights *w, const float *norm, float *u)
{
    hyper_job job = { .h = h, .w = w, .norm = norm, .out = u };
    aeg_team_run(h->c->team, h->n, enter_tokens, &job);
}

/* Quarters are exact, so this is the sum in order, divided by four. */
static void mean_tokens(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    static const float quarter[S] = { 0.25f, 0.25f, 0.25f, 0.25f };
    const hyper_job *j = ctx;
    const size_t hidden = j->h->hp->hidden_size;
    (void)thread;
    for (uint32_t t = begin; t < end; t++)
        j->h->c->kernels->hyper_collapse(j->out + t * hidden, j->h->x + t * S * hidden, hidden, quarter, (uint32_t)hidden);
}

void aeg_hyper_mean(const aeg_hyper *h, float *y)
{
    hyper_job job = { .h = h, .out = y };
    aeg_team_run(h->c->team, h->n, mean_tokens, &job);
}
