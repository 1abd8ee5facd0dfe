/* SPDX-License-Identifier: Apache-2.0 */
#include "model/blocks/attention.h"

#include <math.h>

#include "base/checked.h"

void aeg_attn_scratch_init(aeg_attn_scratch *s, aeg_arena *arena, const aeg_hparams *hp, aeg_act_kind act,
                           const aeg_kv_config *kv, uint32_t chunk, uint32_t n_threads)
{
    const uint64_t q = (uint64_t)hp->n_heads * hp->head_dim, kv_width = (uint64_t)hp->n_kv_heads * hp->head_dim;
    s->q = AEG_ARENA_ARRAY(arena, float, chunk * (hp->attn_gate ? 2 * q : q));
    s->k = AEG_ARENA_ARRAY(arena, float, chunk * kv_width);
    s->v = AEG_ARENA_ARRAY(arena, float, chunk * kv_width);
    s->o = AEG_ARENA_ARRAY(arena, float, chunk * q);
    s->q_codes = NULL;
    s->q_scale = NULL;
    if (aeg_kv_is_codes(kv->kind)) {
        s->q_codes = AEG_ARENA_ARRAY(arena, int8_t, chunk * q);
        s->q_scale = AEG_ARENA_ARRAY(arena, float, (uint64_t)chunk * hp->n_heads);
    }
    aeg_attend_scratch_init(&s->attend, arena, kv, hp->n_heads, chunk, n_threads);
    aeg_act_room_init(&s->room, arena, act, chunk, q);
}

typedef struct {
    const aeg_compute *c;
    const aeg_hparams *hp;
    const aeg_attn_weights *w;
    aeg_kv *kv;
    const aeg_rope *rope;
    aeg_attn_scratch *s;
    uint32_t layer, n, pos0, n_rep, q_head; /* q_head: floats from one query head to the next */
} attn_job;

static float *query(const attn_job *j, uint32_t t, uint32_t head)
{
    return j->s->q + ((size_t)t * j->hp->n_heads + head) * j->q_head;
}

/* One norm over all heads: units are the rows of q, then those of k. */
static void norm_whole_rows(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const attn_job *j = ctx;
    const aeg_hparams *hp = j->hp;
    const uint32_t q_width = hp->n_heads * hp->head_dim, k_width = hp->n_kv_heads * hp->head_dim;
    (void)thread;
    for (uint32_t unit = begin; unit < end; unit++) {
        const bool is_q = unit < j->n;
        float *row = is_q ? j->s->q + (size_t)unit * q_width : j->s->k + (size_t)(unit - j->n) * k_width;
        j->c->kernels->rmsnorm(row, row, is_q ? j->w->q_norm : j->w->k_norm, is_q ? q_width : k_width, hp->rms_eps);
    }
}

/* To +- limit; 0 is none. A NaN stays one. */
static void clamp(float *x, uint32_t n, float limit)
{
    if (limit == 0)
        return;
    for (uint32_t i = 0; i < n; i++)
        x[i] = x[i] > limit ? limit : x[i] < -limit ? -limit : x[i];
}

/* A query or key head: norm, clamp, rotation. */
static void prepare_head(const attn_job *j, float *x, const float *norm, const float *cos, const float *sin)
{
    const aeg_hparams *hp = j->hp;
    const aeg_kernels *kernels = j->c->kernels;
    if (hp->qk_norm == AEG_QK_NORM_HEAD)
        kernels->rmsnorm(x, x, norm, hp->head_dim, hp->rms_eps);
    clamp(x, hp->head_dim, hp->qkv_clamp);
    if (hp->rope_interleaved)
        kernels->rope_pairs(x, cos, sin, j->rope->half);
    else
        kernels->rope(x, cos, sin, j->rope->half);
}

static void prepare_query(const attn_job *j, uint32_t t, uint32_t head, const float *cos, const float *sin)
{
    const aeg_kernels *kernels = j->c->kernels;
    const uint32_t d = j->hp->head_dim;
    const size_t at = (size_t)t * j->hp->n_heads + head;
    float *q = query(j, t, head);
    prepare_head(j, q, j->w->q_norm, cos, sin);
    if (j->s->q_codes != NULL)
        aeg_kv_query(j->kv, kernels, j->s->q_codes + at * d, j->s->q_scale + at, q);
}

/* Units are (token, KV head): finish its key and its queries, store key and value. */
static void prepare_heads(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const attn_job *j = ctx;
    const aeg_hparams *hp = j->hp;
    const aeg_kernels *kernels = j->c->kernels;
    (void)thread;
    for (uint32_t unit = begin; unit < end; unit++) {
        const uint32_t t = unit / hp->n_kv_heads, kv_head = unit % hp->n_kv_heads;
        const float *cos = j->rope->cos + (size_t)t * j->rope->half, *sin = j->rope->sin + (size_t)t * j->rope->half;
        float *k = j->s->k + (size_t)unit * hp->head_dim, *v = j->s->v + (size_t)unit * hp->head_dim;
        for (uint32_t r = 0; r < j->n_rep; r++)
            prepare_query(j, t, kv_head * j->n_rep + r, cos, sin);
        prepare_head(j, k, j->w->k_norm, cos, sin);
        clamp(v, hp->head_dim, hp->qkv_clamp);
        aeg_kv_append(j->kv, kernels, j->layer, kv_head, j->pos0 + t, k, v);
    }
}

/* The output gate. */
static void gate_head(void *ctx, uint32_t t, uint32_t head, float *o, uint32_t thread)
{
    (void)thread;
    const attn_job *j = ctx;
    const uint32_t d = j->hp->head_dim;
    j->c->kernels->sigmoid_mul(o, query(j, t, head) + d, d);
}

void aeg_attn_forward(const aeg_compute *c, const aeg_hparams *hp, const aeg_attn_weights *w, aeg_kv *kv,
                      uint32_t layer, const aeg_rope *rope, aeg_attn_scratch *s, const aeg_act_room *room,
                      const float *u, uint32_t n, uint32_t pos0, float *y, float *x)
{
    const uint32_t q_head = hp->attn_gate ? 2 * hp->head_dim : hp->head_dim;
    const uint32_t kv_width = hp->n_kv_heads * hp->head_dim;
    attn_job job = { .c = c, .hp = hp, .w = w, .kv = kv, .rope = rope, .s = s, .layer = layer, .n = n, .pos0 = pos0,
                     .n_rep = hp->n_heads / hp->n_kv_heads, .q_head = q_head };
    const aeg_linear_out in[] = {
        { .w = &w->q, .y = s->q, .y_stride = (size_t)hp->n_heads * q_head },
        { .w = &w->k, .y = s->k, .y_stride = kv_width },
        { .w = &w->v, .y = s->v, .y_stride = kv_width },
    };
    aeg_linear(c, room, u, n, hp->hidden_size, in, AEG_ARRAY_LEN(in));
    if (hp->qk_norm == AEG_QK_NORM_FULL)
        aeg_team_run(c->team, 2 * n, norm_whole_rows, &job);
    aeg_team_run(c->team, n * hp->n_kv_heads, prepare_heads, &job);
    const aeg_attend_args attend = {
        .c = c, .kv = kv, .layer = layer, .n_heads = hp->n_heads, .scale = 1.0f / sqrtf((float)hp->head_dim), .n = n,
        .pos0 = pos0, .q = s->q, .q_stride = q_head, .q_token = (size_t)hp->n_heads * q_head, .q_codes = s->q_codes,
        .q_scale = s->q_scale, .o = s->o, .finish = hp->attn_gate ? gate_head : NULL, .finish_ctx = &job, .s = &s->attend,
    };
    aeg_attend(&attend);
    const aeg_linear_out out[] = { { .w = &w->o, .y = y, .y_stride = hp->hidden_size, .add = x } };
    aeg_linear(c, &s->room, s->o, n, hp->n_heads * hp->head_dim, out, 1);
}
