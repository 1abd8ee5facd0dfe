/* SPDX-License-Identifier: Apache-2.0 */
#include "model/blocks/attention.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

static uint32_t n_blocks(uint32_t n_pos) { return (n_pos + AEG_ATTN_BLOCK - 1) / AEG_ATTN_BLOCK; }

void aeg_attn_scratch_init(aeg_attn_scratch *s, aeg_arena *arena, const aeg_hparams *hp, aeg_act_kind act,
                           uint32_t chunk, uint32_t n_ctx, uint32_t n_threads)
{
    const uint64_t q = (uint64_t)hp->n_heads * hp->head_dim, kv = (uint64_t)hp->n_kv_heads * hp->head_dim;
    const uint64_t n_rep = hp->n_heads / hp->n_kv_heads;
    s->n_parts = AEG_MAX(2 * n_threads, hp->n_kv_heads * n_blocks(n_ctx));
    s->q = AEG_ARENA_ARRAY(arena, float, chunk * (hp->attn_gate ? 2 * q : q));
    s->k = AEG_ARENA_ARRAY(arena, float, chunk * kv);
    s->v = AEG_ARENA_ARRAY(arena, float, chunk * kv);
    s->o = AEG_ARENA_ARRAY(arena, float, chunk * q);
    s->part_m = AEG_ARENA_ARRAY(arena, float, s->n_parts * n_rep);
    s->part_l = AEG_ARENA_ARRAY(arena, float, s->n_parts * n_rep);
    s->part_acc = AEG_ARENA_ARRAY(arena, float, s->n_parts * n_rep * hp->head_dim);
    s->scores = AEG_ARENA_ARRAY(arena, float, n_threads * n_rep * AEG_ATTN_BLOCK);
    aeg_act_room_init(&s->room, arena, act, chunk, q);
}

typedef struct {
    const aeg_compute *c;
    const aeg_hparams *hp;
    const aeg_attn_weights *w;
    aeg_kv *kv;
    const aeg_rope *rope;
    aeg_attn_scratch *s;
    uint32_t layer, n, pos0, n_rep, q_head, n_blocks; /* q_head: floats from one query head to the next */
} attn_job;

static float *query(const attn_job *j, uint32_t t, uint32_t head)
{
    return j->s->q + ((size_t)t * j->hp->n_heads + head) * j->q_head;
}

/* Units are tokens: norm and rotate q and k, store k and v. */
static void prepare_tokens(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const attn_job *j = ctx;
    const aeg_hparams *hp = j->hp;
    const aeg_kernels *kernels = j->c->kernels;
    const uint32_t d = hp->head_dim;
    (void)thread;
    for (uint32_t t = begin; t < end; t++) {
        const float *cos = j->rope->cos + (size_t)t * j->rope->half, *sin = j->rope->sin + (size_t)t * j->rope->half;
        for (uint32_t h = 0; h < hp->n_heads; h++) {
            float *q = query(j, t, h);
            kernels->rmsnorm(q, q, j->w->q_norm, d, hp->rms_eps);
            kernels->rope(q, cos, sin, j->rope->half);
        }
        for (uint32_t h = 0; h < hp->n_kv_heads; h++) {
            float *k = j->s->k + ((size_t)t * hp->n_kv_heads + h) * d;
            kernels->rmsnorm(k, k, j->w->k_norm, d, hp->rms_eps);
            kernels->rope(k, cos, sin, j->rope->half);
            aeg_kv_append(j->kv, kernels, j->layer, h, j->pos0 + t, k, j->s->v + ((size_t)t * hp->n_kv_heads + h) * d);
        }
    }
}

/* One block of positions for the query heads of one KV head, into partial `part`. */
static void run_block(const attn_job *j, uint32_t t, uint32_t kv_head, uint32_t block, uint32_t part, uint32_t thread)
{
    const aeg_hparams *hp = j->hp;
    const uint32_t first = block * AEG_ATTN_BLOCK;
    const aeg_attn_args args = {
        .q = query(j, t, kv_head * j->n_rep), .q_stride = j->q_head,
        .k = aeg_kv_k(j->kv, j->layer, kv_head, first), .v = aeg_kv_v(j->kv, j->layer, kv_head, first),
        .kv_stride = j->kv->row_bytes, .n_rep = j->n_rep,
        .n_pos = AEG_MIN((uint32_t)AEG_ATTN_BLOCK, j->pos0 + t + 1 - first), .head_dim = hp->head_dim,
        .scale = 1.0f / sqrtf((float)hp->head_dim),
        .out_m = j->s->part_m + (size_t)part * j->n_rep, .out_l = j->s->part_l + (size_t)part * j->n_rep,
        .acc = j->s->part_acc + (size_t)part * j->n_rep * hp->head_dim,
        .scratch = j->s->scores + (size_t)thread * j->n_rep * AEG_ATTN_BLOCK,
    };
    if (j->kv->cfg.kind == AEG_KV_F16)
        j->c->kernels->attn_f16(&args);
    else
        j->c->kernels->attn_f32(&args);
}

/* (m, l) and the result row of one query head while its blocks are merged. */
typedef struct {
    float m, l;
} running;

static void merge_part(const attn_job *j, running *run, float *o, uint32_t part, uint32_t rep)
{
    const size_t at = (size_t)part * j->n_rep + rep;
    j->c->kernels->attn_merge(&run->m, &run->l, o, j->s->part_m[at], j->s->part_l[at],
                              j->s->part_acc + at * j->hp->head_dim, j->hp->head_dim);
}

static void start_head(const attn_job *j, running *run, float *o)
{
    *run = (running){ .m = -INFINITY };
    memset(o, 0, j->hp->head_dim * sizeof(float));
}

/* Divide by the sum of weights and apply the output gate. */
static void finish_head(const attn_job *j, const running *run, uint32_t t, uint32_t head, float *o)
{
    const uint32_t d = j->hp->head_dim;
    const float inv = 1.0f / run->l;
    for (uint32_t i = 0; i < d; i++)
        o[i] *= inv;
    if (j->hp->attn_gate)
        j->c->kernels->sigmoid_mul(o, query(j, t, head) + d, d);
}

static float *result(const attn_job *j, uint32_t t, uint32_t head)
{
    return j->s->o + ((size_t)t * j->hp->n_heads + head) * j->hp->head_dim;
}

/* Prefill: units are (token, KV head); each walks its blocks in order with one partial per thread. */
static void run_tokens(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const attn_job *j = ctx;
    enum { MAX_REP = AEG_MAX_HEADS };
    for (uint32_t unit = begin; unit < end; unit++) {
        const uint32_t t = unit / j->hp->n_kv_heads, kv_head = unit % j->hp->n_kv_heads;
        running run[MAX_REP];
        for (uint32_t r = 0; r < j->n_rep; r++)
            start_head(j, &run[r], result(j, t, kv_head * j->n_rep + r));
        for (uint32_t b = 0; b < n_blocks(j->pos0 + t + 1); b++) {
            run_block(j, t, kv_head, b, thread, thread);
            for (uint32_t r = 0; r < j->n_rep; r++)
                merge_part(j, &run[r], result(j, t, kv_head * j->n_rep + r), thread, r);
        }
        for (uint32_t r = 0; r < j->n_rep; r++)
            finish_head(j, &run[r], t, kv_head * j->n_rep + r, result(j, t, kv_head * j->n_rep + r));
    }
}

/* Decode: units are (KV head, block of positions), so that one token uses every core at long contexts. */
static void run_blocks(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const attn_job *j = ctx;
    for (uint32_t unit = begin; unit < end; unit++)
        run_block(j, 0, unit / j->n_blocks, unit % j->n_blocks, unit, thread);
}

/* Units are query heads. */
static void merge_heads(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const attn_job *j = ctx;
    (void)thread;
    for (uint32_t head = begin; head < end; head++) {
        running run;
        float *o = result(j, 0, head);
        start_head(j, &run, o);
        for (uint32_t b = 0; b < j->n_blocks; b++)
            merge_part(j, &run, o, head / j->n_rep * j->n_blocks + b, head % j->n_rep);
        finish_head(j, &run, 0, head, o);
    }
}

void aeg_attn_forward(const aeg_compute *c, const aeg_hparams *hp, const aeg_attn_weights *w, aeg_kv *kv,
                      uint32_t layer, const aeg_rope *rope, aeg_attn_scratch *s, const aeg_act_room *room,
                      const float *u, uint32_t n, uint32_t pos0, float *y, float *x)
{
    const uint32_t q_head = hp->attn_gate ? 2 * hp->head_dim : hp->head_dim;
    const uint32_t kv_width = hp->n_kv_heads * hp->head_dim;
    attn_job job = { .c = c, .hp = hp, .w = w, .kv = kv, .rope = rope, .s = s, .layer = layer, .n = n, .pos0 = pos0,
                     .n_rep = hp->n_heads / hp->n_kv_heads, .q_head = q_head, .n_blocks = n_blocks(pos0 + n) };
    const aeg_linear_out in[] = {
        { .w = &w->q, .y = s->q, .y_stride = (size_t)hp->n_heads * q_head },
        { .w = &w->k, .y = s->k, .y_stride = kv_width },
        { .w = &w->v, .y = s->v, .y_stride = kv_width },
    };
    aeg_linear(c, room, u, n, hp->hidden_size, in, AEG_ARRAY_LEN(in));
    aeg_team_run(c->team, n, prepare_tokens, &job);
    if (n == 1) {
        aeg_team_run(c->team, hp->n_kv_heads * job.n_blocks, run_blocks, &job);
        aeg_team_run(c->team, hp->n_heads, merge_heads, &job);
    } else {
        aeg_team_run(c->team, n * hp->n_kv_heads, run_tokens, &job);
    }
    const aeg_linear_out out[] = { { .w = &w->o, .y = y, .y_stride = hp->hidden_size, .add = x } };
    aeg_linear(c, &s->room, s->o, n, hp->n_heads * hp->head_dim, out, 1);
}
