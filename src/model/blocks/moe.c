/* SPDX-License-Identifier: Apache-2.0 */
#include "model/blocks/moe.h"

#include "base/checked.h"

enum { WAVE_ROWS_MIN = 144 }; /* room for the routes of sixteen decoding tokens; a chunk may need more */

void aeg_moe_routing_init(aeg_moe_scratch *s, aeg_arena *arena, const aeg_hparams *hp, uint32_t chunk, uint32_t n_threads)
{
    aeg_routes_init(&s->routes, arena, chunk, hp->top_k, hp->n_experts);
    s->logits = AEG_ARENA_ARRAY(arena, float, (uint64_t)chunk * hp->n_experts);
    s->shared_logit = AEG_ARENA_ARRAY(arena, float, chunk);
    s->scratch_floats = aeg_align_up(aeg_route_scratch(hp->n_experts, hp->n_groups), AEG_CACHE_LINE / sizeof(float));
    s->scratch = AEG_ARENA_ARRAY(arena, float, n_threads * s->scratch_floats);
}

void aeg_moe_sums_init(aeg_moe_scratch *s, aeg_arena *arena, const aeg_hparams *hp, aeg_act_kind act, uint32_t chunk)
{
    /* One expert can be the choice of every token of the chunk, so a wave holds at least a chunk. The network of a layer
     * without experts runs in the same room (ffn.h): it has place for one of its rows. */
    const uint32_t width = AEG_MAX(hp->expert_width, hp->shared_width);
    const uint64_t all = (uint64_t)chunk * (hp->top_k + 1), one_dense = hp->dense_width / width + 2;
    const uint64_t routed = AEG_MIN(all, AEG_MAX((uint64_t)chunk, (uint64_t)WAVE_ROWS_MIN));
    const uint64_t wave = hp->n_dense_layers > 0 ? AEG_MAX(routed, one_dense) : routed;
    const uint64_t hidden = hp->hidden_size;
    s->n_wave = (uint32_t)wave;
    s->y = AEG_ARENA_ARRAY(arena, float, wave * hidden);
    s->acc = AEG_ARENA_ARRAY(arena, float, chunk * hidden);
    s->shared = AEG_ARENA_ARRAY(arena, float, hp->shared_width > 0 ? chunk * hidden : 0);
    aeg_wave_scratch_init(&s->wave, arena, act, wave, width);
}

/* --- routing ---------------------------------------------------------------------------------- */

typedef struct {
    const aeg_moe *m;
    const float *bias;
} choose_job;

static void choose_tokens(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const choose_job *j = ctx;
    const aeg_moe_scratch *s = j->m->s;
    const uint32_t n = j->m->hp->n_experts, k = j->m->hp->top_k;
    for (uint32_t t = begin; t < end; t++)
        aeg_choose_experts(j->m->c->kernels, j->m->hp, j->bias, s->logits + (size_t)t * n, k, s->scratch + thread * s->scratch_floats,
                           s->routes.ids + (size_t)t * k, s->routes.weights + (size_t)t * k);
}

void aeg_moe_route(const aeg_moe *m, const aeg_layer_weights *w, const float *u, uint32_t n)
{
    const aeg_linear_out outs[] = {
        { .w = &w->router, .y = m->s->logits, .y_stride = m->hp->n_experts, .exact = true },
        { .w = &w->shared_gate, .y = m->s->shared_logit, .y_stride = 1, .exact = true },
    };
    aeg_linear(m->c, m->room, u, n, m->hp->hidden_size, outs, w->shared_gate.n_rows > 0 ? 2 : 1);
    choose_job job = { .m = m, .bias = w->router_bias };
    aeg_team_run(m->c->team, n, choose_tokens, &job);
}

/* --- waves --------------------------------------------------------------------------------------- */

/* A step through the experts of one layer. */
typedef struct {
    const aeg_moe *m;
    const aeg_layer_weights *w;
    uint32_t layer, n;
    const float *u;
    float *x;
    aeg_acts acts;                 /* codes of u as acts_of reads them        */
    aeg_wave_view acts_of;
    bool have_acts, cleared;
    bool ordered;                  /* views come, and are summed, in ascending id */
    bool shared_left;              /* the shared expert is still to be computed   */
    uint32_t done;                 /* routed experts computed                     */
    uint32_t n_views, n_taken;     /* of the wave: all, and those of the streamer */
    aeg_wave_view views[AEG_WAVE_VIEWS];
    aeg_expert_view taken[AEG_WAVE_VIEWS];
} moe_step;

static aeg_wave_view routed_view(const moe_step *p, const aeg_expert_view *e)
{
    const aeg_hparams *hp = p->m->hp;
    const aeg_store_experts *experts = p->m->experts;
    const aeg_routes *r = &p->m->s->routes;
    const aeg_weight_type gu = experts->gate_up[p->layer], d = experts->down[p->layer];
    const size_t block = aeg_block_bytes(gu, hp->hidden_size);
    aeg_wave_view v = {
        .gate = { .type = gu, .n_rows = hp->expert_width, .n_cols = hp->hidden_size, .block_stride = 2 * block,
                  .data = e->gate_up },
        .down = { .type = d, .n_rows = hp->hidden_size, .n_cols = hp->expert_width,
                  .block_stride = aeg_block_bytes(d, hp->expert_width), .data = e->down },
        .token = r->token + r->first[e->index], .n = r->uses[e->index],
    };
    v.up = v.gate;
    v.up.data = v.gate.data == NULL ? NULL : v.gate.data + block;
    /* In ascending order the rows of y are the wave's own, else those of the route. */
    v.y = p->m->s->y + (size_t)(r->first[e->index] - (p->ordered ? r->first[p->done] : 0)) * hp->hidden_size;
    return v;
}

static aeg_wave_view shared_view(const moe_step *p)
{
    return (aeg_wave_view){ .gate = p->w->shared_gate_proj, .up = p->w->shared_up, .down = p->w->shared_down,
                            .n = p->n, .y = p->m->s->shared };
}

/* The shared expert goes with the first experts that are ready, where it reads the same codes and there is room. */
static bool shared_joins(const moe_step *p)
{
    const aeg_wave_view routed = routed_view(p, &(aeg_expert_view){ 0 }), shared = shared_view(p);
    return p->shared_left && !p->ordered && aeg_wave_alike(&routed, &shared);
}

static void run_wave(moe_step *p)
{
    const aeg_moe *m = p->m;
    aeg_moe_scratch *s = m->s;
    const uint32_t end = p->done + p->n_taken, first = p->done;
    const bool last = !p->shared_left && end == s->routes.n_needed;
    const bool sums = p->n_taken > 0 && (p->ordered || last);
    const aeg_wave_sums all = {
        .clear = sums && !p->cleared, .finish = last, .routes = &s->routes,
        .route0 = sums && p->ordered ? s->routes.first[first] : 0,
        .route1 = !sums ? 0 : p->ordered ? s->routes.first[end] : s->routes.n_routes,
        .y = s->y, .acc = s->acc, .shared = m->hp->shared_width > 0 ? s->shared : NULL,
        .shared_logit = p->w->shared_gate.n_rows > 0 ? s->shared_logit : NULL, .x = p->x, .n = p->n,
    };
    if (!p->have_acts || !aeg_wave_alike(&p->acts_of, &p->views[0])) {
        p->acts = aeg_wave_input(m->c, m->room, p->u, p->n, &p->views[0]);
        p->acts_of = p->views[0];
        p->have_acts = true;
    }
    aeg_wave_run(m->c, &s->wave, &p->acts, p->views, p->n_views, m->hp->hidden_size, &all);
    p->cleared |= sums;
    p->done = end;
    for (uint32_t i = 0; i < p->n_taken; i++)
        aeg_streamer_done(m->streamer, &p->taken[i]);
}

/* Experts from `next` on whose routes fit a wave: in ordered mode they are the next ones to arrive. */
static uint32_t wave_experts(const aeg_moe_scratch *s, uint32_t next)
{
    uint32_t n = 0, rows = 0;
    while (next + n < s->routes.n_needed && n < AEG_WAVE_VIEWS && rows + s->routes.uses[next + n] <= s->n_wave)
        rows += s->routes.uses[next + n++];
    return n;
}

static void take_shared(moe_step *p)
{
    p->views[p->n_views++] = shared_view(p);
    p->shared_left = false;
}

static aegis_status run_experts(moe_step *p, aegis_error *err)
{
    const aeg_routes *routes = &p->m->s->routes;
    while (p->shared_left || p->done < routes->n_needed) {
        const uint32_t max = p->ordered ? wave_experts(p->m->s, p->done) : AEG_WAVE_VIEWS - 1;
        p->n_views = p->n_taken = 0;
        if (p->shared_left && !shared_joins(p)) {
            take_shared(p);
        } else if (p->shared_left) {
            AEG_TRY(aeg_streamer_poll(p->m->streamer, p->taken, max, &p->n_taken, err));
        } else {
            AEG_TRY(aeg_streamer_take(p->m->streamer, p->taken, max, &p->n_taken, err));
        }
        for (uint32_t i = 0; i < p->n_taken; i++)
            p->views[p->n_views++] = routed_view(p, &p->taken[i]);
        if (p->shared_left)
            take_shared(p);
        run_wave(p);
    }
    return AEGIS_OK;
}

aegis_status aeg_moe_forward(const aeg_moe *m, const aeg_layer_weights *w, uint32_t layer, const float *u,
                             uint32_t n, float *x, void (*guess)(void *ctx), void *guess_ctx, aegis_error *err)
{
    const aeg_routes *routes = &m->s->routes;
    const bool shared = m->hp->shared_width > 0;
    moe_step p = { .m = m, .w = w, .layer = layer, .n = n, .u = u, .x = x, .shared_left = shared };

    aeg_routes_group(&m->s->routes, n, m->hp->top_k, m->hp->n_experts);
    p.ordered = routes->n_routes + (shared ? n : 0) > m->s->n_wave;
    AEG_TRY(aeg_streamer_demand(m->streamer, layer, routes->experts, routes->uses, routes->n_needed, p.ordered, err));
    if (guess != NULL)
        guess(guess_ctx);
    const aegis_status status = run_experts(&p, err);
    if (status != AEGIS_OK)
        aeg_streamer_abort(m->streamer);
    return status;
}
