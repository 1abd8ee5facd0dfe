/* SPDX-License-Identifier: Apache-2.0 */
#include "model/blocks/moe.h"

#include <string.h>

#include "base/checked.h"
#include "kernels/math.h"

enum {
    WAVE_ROUTES_MIN = 128, /* room for the routes of a few decoding tokens; a chunk may need more */
    VIEWS_MAX = 64,        /* experts computed together                                          */
};

void aeg_moe_scratch_init(aeg_moe_scratch *s, aeg_arena *arena, const aeg_hparams *hp, aeg_act_kind act,
                          uint32_t chunk, uint32_t n_threads)
{
    /* One expert can be the choice of every token of the chunk, so a wave holds at least a chunk. */
    const uint64_t all = (uint64_t)chunk * hp->top_k;
    const uint64_t wave = AEG_MIN(all, AEG_MAX((uint64_t)chunk, (uint64_t)WAVE_ROUTES_MIN));
    const uint64_t hidden = hp->hidden_size, width = AEG_MAX(hp->expert_width, hp->shared_width);
    s->n_wave = (uint32_t)wave;
    aeg_routes_init(&s->routes, arena, chunk, hp->top_k, hp->n_experts);
    s->logits = AEG_ARENA_ARRAY(arena, float, (uint64_t)chunk * hp->n_experts);
    s->shared_logit = AEG_ARENA_ARRAY(arena, float, chunk);
    s->scratch = AEG_ARENA_ARRAY(arena, float, (uint64_t)n_threads * hp->n_experts);
    s->gate = AEG_ARENA_ARRAY(arena, float, wave * width);
    s->up = AEG_ARENA_ARRAY(arena, float, wave * width);
    s->y = AEG_ARENA_ARRAY(arena, float, wave * hidden);
    s->acc = AEG_ARENA_ARRAY(arena, float, chunk * hidden);
    s->shared = AEG_ARENA_ARRAY(arena, float, hp->shared_width > 0 ? chunk * hidden : 0);
    aeg_act_room_init(&s->wave_room, arena, act, wave, width);
}

/* --- routing ---------------------------------------------------------------------------------- */

static void choose_tokens(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const aeg_moe *m = ctx;
    const uint32_t n = m->hp->n_experts, k = m->hp->top_k;
    for (uint32_t t = begin; t < end; t++)
        m->c->kernels->router(m->s->routes.ids + (size_t)t * k, m->s->routes.weights + (size_t)t * k,
                              m->s->logits + (size_t)t * n, n, k, m->hp->norm_top_k,
                              m->s->scratch + (size_t)thread * n);
}

void aeg_moe_route(const aeg_moe *m, const aeg_layer_weights *w, const float *u, uint32_t n)
{
    const aeg_linear_out outs[] = {
        { .w = &w->router, .y = m->s->logits, .y_stride = m->hp->n_experts, .exact = true },
        { .w = &w->shared_gate, .y = m->s->shared_logit, .y_stride = 1, .exact = true },
    };
    aeg_linear(m->c, m->room, u, n, m->hp->hidden_size, outs, m->hp->shared_width > 0 ? 2 : 1);
    aeg_team_run(m->c->team, n, choose_tokens, (void *)m);
}

/* --- the shared expert -------------------------------------------------------------------------- */

typedef struct {
    const aeg_kernels *k;
    float *gate;
    const float *up;
    uint32_t width;
} act_job;

static void activate_rows(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const act_job *j = ctx;
    (void)thread;
    for (uint32_t r = begin; r < end; r++)
        j->k->silu_mul(j->gate + (size_t)r * j->width, j->gate + (size_t)r * j->width, j->up + (size_t)r * j->width,
                       j->width);
}

static void run_shared(const aeg_moe *m, const aeg_layer_weights *w, const float *u, uint32_t n)
{
    const uint32_t width = m->hp->shared_width;
    aeg_moe_scratch *s = m->s;
    const aeg_linear_out in[] = { { .w = &w->shared_gate_proj, .y = s->gate, .y_stride = width },
                                  { .w = &w->shared_up, .y = s->up, .y_stride = width } };
    aeg_linear(m->c, m->room, u, n, m->hp->hidden_size, in, 2);
    act_job act = { .k = m->c->kernels, .gate = s->gate, .up = s->up, .width = width };
    aeg_team_run(m->c->team, n, activate_rows, &act);
    const aeg_linear_out out[] = { { .w = &w->shared_down, .y = s->shared, .y_stride = m->hp->hidden_size } };
    aeg_linear(m->c, &s->wave_room, s->gate, n, width, out, 1);
}

/* --- a wave of routed experts --------------------------------------------------------------------- */

typedef struct {
    const aeg_moe *m;
    uint32_t layer, n_views;
    const aeg_expert_view *views;
    uint32_t row[VIEWS_MAX];        /* first row of each view in gate, up and y */
    aeg_weights gate[VIEWS_MAX], up[VIEWS_MAX], down[VIEWS_MAX];
    const aeg_acts *u;              /* the chunk's input       */
    const aeg_acts *h;              /* the wave's hidden rows  */
    aeg_matmul_fn gate_up_fn, down_fn;
} wave_job;

static void bind_view(wave_job *j, uint32_t i)
{
    const aeg_hparams *hp = j->m->hp;
    const aeg_weight_type gu = j->m->experts->gate_up[j->layer], d = j->m->experts->down[j->layer];
    const size_t block = aeg_block_bytes(gu, hp->hidden_size);
    j->gate[i] = (aeg_weights){ .type = gu, .n_rows = hp->expert_width, .n_cols = hp->hidden_size,
                                .block_stride = 2 * block, .data = j->views[i].gate_up };
    j->up[i] = j->gate[i];
    j->up[i].data += block;
    j->down[i] = (aeg_weights){ .type = d, .n_rows = hp->hidden_size, .n_cols = hp->expert_width,
                                .block_stride = aeg_block_bytes(d, hp->expert_width), .data = j->views[i].down };
}

/* Units are (view, row block): gate and up of the same 16 rows, then silu(gate)*up for them. */
static void run_gate_up(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const wave_job *j = ctx;
    const aeg_moe_scratch *s = j->m->s;
    const uint32_t width = j->m->hp->expert_width, n_blocks = aeg_row_blocks(width);
    (void)thread;
    for (uint32_t unit = begin; unit < end;) {
        const uint32_t i = unit / n_blocks, b0 = unit % n_blocks, b1 = AEG_MIN(n_blocks, b0 + (end - unit));
        const uint32_t expert = j->views[i].index;
        float *gate = s->gate + (size_t)j->row[i] * width, *up = s->up + (size_t)j->row[i] * width;
        aeg_matmul_args a = { .w = &j->gate[i], .x = j->u, .rows = s->routes.token + s->routes.first[expert],
                              .n = s->routes.uses[expert], .y = gate, .y_stride = width };
        j->gate_up_fn(&a, b0, b1);
        a.w = &j->up[i];
        a.y = up;
        j->gate_up_fn(&a, b0, b1);
        const uint32_t c0 = b0 * AEG_ROWS, n_cols = AEG_MIN(width, b1 * AEG_ROWS) - c0;
        for (uint32_t r = 0; r < a.n; r++)
            j->m->c->kernels->silu_mul(gate + (size_t)r * width + c0, gate + (size_t)r * width + c0,
                                       up + (size_t)r * width + c0, n_cols);
        unit += b1 - b0;
    }
}

/* Units are (view, row block of down). */
static void run_down(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const wave_job *j = ctx;
    const aeg_moe_scratch *s = j->m->s;
    const uint32_t hidden = j->m->hp->hidden_size, width = j->m->hp->expert_width, n_blocks = aeg_row_blocks(hidden);
    (void)thread;
    for (uint32_t unit = begin; unit < end;) {
        const uint32_t i = unit / n_blocks, b0 = unit % n_blocks, b1 = AEG_MIN(n_blocks, b0 + (end - unit));
        aeg_acts x = *j->h;
        const size_t at = (size_t)j->row[i] * width, at_block = at / x.block;
        x.f32 += at;
        if (x.q8 != NULL)
            x.q8 += at;
        if (x.q16 != NULL)
            x.q16 += at;
        if (x.d != NULL) {
            x.d += at_block;
            x.s += at_block;
        }
        const aeg_matmul_args a = { .w = &j->down[i], .x = &x, .n = s->routes.uses[j->views[i].index],
                                    .y = s->y + (size_t)j->row[i] * hidden, .y_stride = hidden };
        j->down_fn(&a, b0, b1);
        unit += b1 - b0;
    }
}

/* The views' routes occupy rows below n_rows of the wave buffers. */
static void run_wave(wave_job *j, uint32_t n_rows)
{
    const aeg_moe *m = j->m;
    const uint32_t width = m->hp->expert_width;
    const aeg_weight_type down = m->experts->down[j->layer];
    for (uint32_t i = 0; i < j->n_views; i++)
        bind_view(j, i);
    aeg_team_run(m->c->team, j->n_views * aeg_row_blocks(width), run_gate_up, j);

    const aeg_compute exact = { .kernels = m->c->kernels, .team = m->c->team, .act = AEG_ACT_F32 };
    const aeg_acts h = aeg_quantize_rows(down.kind == AEG_W_AFFINE ? m->c : &exact, &m->s->wave_room, m->s->gate,
                                         n_rows, width, aeg_act_block(down));
    j->h = &h;
    j->down_fn = aeg_kernels_matmul(m->c->kernels, down, h.kind);
    aeg_team_run(m->c->team, j->n_views * aeg_row_blocks(m->hp->hidden_size), run_down, j);
}

/* --- sums ------------------------------------------------------------------------------------------ */

enum { SUM_STRIP = 64 };

typedef struct {
    const aeg_moe *m;
    uint32_t route0, route1;   /* routes to add, ascending expert           */
    float *x;                  /* finish: the residual                      */
    uint32_t n;
} sum_job;

/* Units are strips of columns: every route in ascending expert id for the strip's columns. */
static void add_routes(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const sum_job *j = ctx;
    const aeg_moe_scratch *s = j->m->s;
    const uint32_t hidden = j->m->hp->hidden_size;
    const uint32_t c0 = begin * SUM_STRIP, n_cols = AEG_MIN(hidden, end * SUM_STRIP) - c0;
    (void)thread;
    for (uint32_t r = j->route0; r < j->route1; r++)
        j->m->c->kernels->axpy(s->acc + (size_t)s->routes.token[r] * hidden + c0, s->routes.weight[r],
                               s->y + (size_t)(r - j->route0) * hidden + c0, n_cols);
}

/* The shared expert comes last; then the block's result joins the residual. */
static void finish_rows(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const sum_job *j = ctx;
    const aeg_moe_scratch *s = j->m->s;
    const uint32_t hidden = j->m->hp->hidden_size;
    (void)thread;
    for (uint32_t t = begin; t < end; t++) {
        float *acc = s->acc + (size_t)t * hidden;
        if (j->m->hp->shared_width > 0)
            j->m->c->kernels->axpy(acc, aeg_sigmoid(s->shared_logit[t]), s->shared + (size_t)t * hidden, hidden);
        j->m->c->kernels->add(j->x + (size_t)t * hidden, acc, hidden);
    }
}

/* Routes [route0, route1) have rows 0.. of y. */
static void sum_range(const aeg_moe *m, uint32_t route0, uint32_t route1)
{
    sum_job job = { .m = m, .route0 = route0, .route1 = route1 };
    aeg_team_run(m->c->team, (m->hp->hidden_size + SUM_STRIP - 1) / SUM_STRIP, add_routes, &job);
}

/* Experts from `next` on whose routes fit a wave: in ordered mode they are the next ones to arrive. */
static uint32_t wave_experts(const aeg_moe_scratch *s, uint32_t next)
{
    uint32_t n = 0, rows = 0;
    while (next + n < s->routes.n_needed && n < VIEWS_MAX && rows + s->routes.uses[next + n] <= s->n_wave)
        rows += s->routes.uses[next + n++];
    return n;
}

static aegis_status run_experts(const aeg_moe *m, wave_job *job, aegis_error *err)
{
    aeg_moe_scratch *s = m->s;
    const bool ordered = s->routes.n_routes > s->n_wave;
    aeg_expert_view views[VIEWS_MAX];
    uint32_t done = 0;

    job->views = views;
    while (done < s->routes.n_needed) {
        AEG_TRY(aeg_streamer_take(m->streamer, views, ordered ? wave_experts(s, done) : VIEWS_MAX, &job->n_views, err));
        uint32_t rows = 0;
        for (uint32_t i = 0; i < job->n_views; i++) {
            job->row[i] = ordered ? rows : s->routes.first[views[i].index];
            rows += s->routes.uses[views[i].index];
        }
        if (ordered) {
            run_wave(job, rows);
            sum_range(m, s->routes.first[done], s->routes.first[done] + rows);
        } else {
            /* Out of order the rows of these views are scattered: quantising all rows keeps one call. */
            run_wave(job, s->routes.n_routes);
        }
        for (uint32_t i = 0; i < job->n_views; i++)
            aeg_streamer_done(m->streamer, &views[i]);
        done += job->n_views;
    }
    if (!ordered)
        sum_range(m, 0, s->routes.n_routes);
    return AEGIS_OK;
}

aegis_status aeg_moe_forward(const aeg_moe *m, const aeg_layer_weights *w, uint32_t layer, const float *u,
                             uint32_t n, float *x, void (*guess)(void *ctx), void *guess_ctx, aegis_error *err)
{
    aeg_moe_scratch *s = m->s;
    const aeg_weight_type gate_up = m->experts->gate_up[layer];

    aeg_routes_group(&s->routes, n, m->hp->top_k, m->hp->n_experts);
    AEG_TRY(aeg_streamer_demand(m->streamer, layer, s->routes.experts, s->routes.uses, s->routes.n_needed,
                                s->routes.n_routes > s->n_wave, err));
    if (m->hp->shared_width > 0)
        run_shared(m, w, u, n);
    if (guess != NULL)
        guess(guess_ctx);

    const aeg_compute exact = { .kernels = m->c->kernels, .team = m->c->team, .act = AEG_ACT_F32 };
    const aeg_acts acts = aeg_quantize_rows(gate_up.kind == AEG_W_AFFINE ? m->c : &exact, m->room, u, n,
                                            m->hp->hidden_size, aeg_act_block(gate_up));
    wave_job job = { .m = m, .layer = layer, .u = &acts,
                     .gate_up_fn = aeg_kernels_matmul(m->c->kernels, gate_up, acts.kind) };
    memset(s->acc, 0, (size_t)n * m->hp->hidden_size * sizeof(float));
    aegis_status status = run_experts(m, &job, err);
    if (status != AEGIS_OK) {
        aeg_streamer_abort(m->streamer);
        return status;
    }
    sum_job finish = { .m = m, .x = x, .n = n };
    aeg_team_run(m->c->team, n, finish_rows, &finish);
    return AEGIS_OK;
}
