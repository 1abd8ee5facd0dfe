/* SPDX-License-Identifier: Apache-2.0 */
#include "model/blocks/attention.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

/* Tokens that share the fetch of a block in prefill: enough to hide it, few enough for the second-level cache. */
enum { TILE_TOKENS = 8 };

static uint32_t n_blocks(uint32_t n_pos) { return (n_pos + AEG_ATTN_BLOCK - 1) / AEG_ATTN_BLOCK; }

void aeg_attn_scratch_init(aeg_attn_scratch *s, aeg_arena *arena, const aeg_hparams *hp, aeg_act_kind act,
                           aeg_kv_kind kv, uint32_t chunk, uint32_t n_ctx, uint32_t n_threads)
{
    const uint64_t q = (uint64_t)hp->n_heads * hp->head_dim, kv_width = (uint64_t)hp->n_kv_heads * hp->head_dim;
    const uint32_t n_rep = hp->n_heads / hp->n_kv_heads, tile = AEG_MIN((uint32_t)TILE_TOKENS, chunk);
    s->tile_rows = tile * n_rep;
    const uint64_t n_parts = AEG_MAX((uint64_t)n_threads * s->tile_rows, (uint64_t)hp->n_heads * n_blocks(n_ctx));
    s->q = AEG_ARENA_ARRAY(arena, float, chunk * (hp->attn_gate ? 2 * q : q));
    s->k = AEG_ARENA_ARRAY(arena, float, chunk * kv_width);
    s->v = AEG_ARENA_ARRAY(arena, float, chunk * kv_width);
    s->o = AEG_ARENA_ARRAY(arena, float, chunk * q);
    s->q_codes = NULL;
    s->q_scale = NULL;
    if (aeg_kv_is_codes(kv)) {
        s->q_codes = AEG_ARENA_ARRAY(arena, int8_t, chunk * q);
        s->q_scale = AEG_ARENA_ARRAY(arena, float, (uint64_t)chunk * hp->n_heads);
    }
    s->part_m = AEG_ARENA_ARRAY(arena, float, n_parts);
    s->part_l = AEG_ARENA_ARRAY(arena, float, n_parts);
    s->part_acc = AEG_ARENA_ARRAY(arena, float, n_parts * hp->head_dim);
    s->run_m = AEG_ARENA_ARRAY(arena, float, (uint64_t)n_threads * s->tile_rows);
    s->run_l = AEG_ARENA_ARRAY(arena, float, (uint64_t)n_threads * s->tile_rows);
    s->scratch_bytes = aeg_align_up(aeg_attn_scratch_bytes(kv, tile, n_rep, hp->head_dim), AEG_CACHE_LINE);
    s->scratch = aeg_arena_alloc(arena, n_threads * s->scratch_bytes, AEG_CACHE_LINE);
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
    uint32_t tile, n_tiles;                           /* prefill: tokens of a tile, tiles of the chunk */
} attn_job;

static float *query(const attn_job *j, uint32_t t, uint32_t head)
{
    return j->s->q + ((size_t)t * j->hp->n_heads + head) * j->q_head;
}

static void prepare_query(const attn_job *j, uint32_t t, uint32_t head, const float *cos, const float *sin)
{
    const aeg_kernels *kernels = j->c->kernels;
    const uint32_t d = j->hp->head_dim;
    const size_t at = (size_t)t * j->hp->n_heads + head;
    float *q = query(j, t, head);
    kernels->rmsnorm(q, q, j->w->q_norm, d, j->hp->rms_eps);
    kernels->rope(q, cos, sin, j->rope->half);
    if (j->s->q_codes != NULL)
        aeg_kv_query(j->kv, kernels, j->s->q_codes + at * d, j->s->q_scale + at, q);
}

/* Units are (token, KV head): norm and rotate its key and its queries, store key and value. */
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
        kernels->rmsnorm(k, k, j->w->k_norm, hp->head_dim, hp->rms_eps);
        kernels->rope(k, cos, sin, j->rope->half);
        aeg_kv_append(j->kv, kernels, j->layer, kv_head, j->pos0 + t, k, v);
    }
}

/* One block of positions for the query heads of one KV head and n tokens from t, into partials from `part` on. */
static void run_block(const attn_job *j, uint32_t t, uint32_t n, uint32_t kv_head, uint32_t block, size_t part,
                      uint32_t thread)
{
    const aeg_hparams *hp = j->hp;
    const uint32_t first = block * AEG_ATTN_BLOCK, head = kv_head * j->n_rep;
    const size_t at = (size_t)t * hp->n_heads + head;
    aeg_attn_args args = {
        .n_tokens = n, .n_rep = j->n_rep, .head_dim = hp->head_dim,
        .n_pos = AEG_MIN((uint32_t)AEG_ATTN_BLOCK, j->pos0 + t + 1 - first),
        .q = query(j, t, head), .q_stride = j->q_head, .q_token = (size_t)hp->n_heads * j->q_head,
        .scale = 1.0f / sqrtf((float)hp->head_dim),
        .out_m = j->s->part_m + part, .out_l = j->s->part_l + part, .acc = j->s->part_acc + part * hp->head_dim,
        .scratch = j->s->scratch + thread * j->s->scratch_bytes,
    };
    if (j->s->q_codes != NULL) {
        args.q_codes = j->s->q_codes + at * hp->head_dim;
        args.q_token = (size_t)hp->n_heads * hp->head_dim;
        args.q_scale = j->s->q_scale + at;
        args.q_scale_token = hp->n_heads;
    }
    aeg_kv_block(j->kv, j->layer, kv_head, first, &args);
    aeg_kv_attend(j->kv, j->c->kernels, &args);
}

static void merge_part(const attn_job *j, float *m, float *l, float *o, size_t part)
{
    const uint32_t d = j->hp->head_dim;
    j->c->kernels->attn_merge(m, l, o, j->s->part_m[part], j->s->part_l[part], j->s->part_acc + part * d, d);
}

static void start_head(const attn_job *j, float *m, float *l, float *o)
{
    *m = -INFINITY;
    *l = 0.0f;
    memset(o, 0, j->hp->head_dim * sizeof(float));
}

/* Divide by the sum of weights, undo the cache's rotation and apply the output gate. */
static void finish_head(const attn_job *j, float l, uint32_t t, uint32_t head, float *o)
{
    const uint32_t d = j->hp->head_dim;
    const float inv = 1.0f / l;
    for (uint32_t i = 0; i < d; i++)
        o[i] *= inv;
    aeg_kv_output(j->kv, j->c->kernels, o);
    if (j->hp->attn_gate)
        j->c->kernels->sigmoid_mul(o, query(j, t, head) + d, d);
}

static float *result(const attn_job *j, uint32_t t, uint32_t head)
{
    return j->s->o + ((size_t)t * j->hp->n_heads + head) * j->hp->head_dim;
}

/* Tokens [t, t + n) of one KV head: blocks in order, each for all of them that see it. */
static void run_tile(const attn_job *j, uint32_t t, uint32_t n, uint32_t kv_head, uint32_t thread)
{
    const uint32_t head = kv_head * j->n_rep;
    const size_t rows = (size_t)thread * j->s->tile_rows;
    float *m = j->s->run_m + rows, *l = j->s->run_l + rows;
    for (uint32_t i = 0; i < n * j->n_rep; i++)
        start_head(j, &m[i], &l[i], result(j, t + i / j->n_rep, head + i % j->n_rep));
    for (uint32_t b = 0; b < n_blocks(j->pos0 + t + n); b++) {
        const uint32_t first = b * AEG_ATTN_BLOCK, pos = j->pos0 + t;
        const uint32_t skip = first > pos ? first - pos : 0; /* tokens before the block */
        run_block(j, t + skip, n - skip, kv_head, b, rows, thread);
        for (uint32_t i = skip * j->n_rep; i < n * j->n_rep; i++)
            merge_part(j, &m[i], &l[i], result(j, t + i / j->n_rep, head + i % j->n_rep), rows + i - skip * j->n_rep);
    }
    for (uint32_t i = 0; i < n * j->n_rep; i++)
        finish_head(j, l[i], t + i / j->n_rep, head + i % j->n_rep, result(j, t + i / j->n_rep, head + i % j->n_rep));
}

/* Prefill: units are (tile, KV head). First and last tiles alternate, so that the short and the long ones spread
 * evenly over contiguous ranges of units. */
static void run_tiles(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const attn_job *j = ctx;
    for (uint32_t unit = begin; unit < end; unit++) {
        const uint32_t i = unit / j->hp->n_kv_heads, tile = i % 2 == 0 ? i / 2 : j->n_tiles - 1 - i / 2;
        const uint32_t t = tile * j->tile;
        run_tile(j, t, AEG_MIN(j->tile, j->n - t), unit % j->hp->n_kv_heads, thread);
    }
}

/* Decode: units are (KV head, block of positions), so that one token uses every core at long contexts. */
static void run_blocks(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const attn_job *j = ctx;
    for (uint32_t unit = begin; unit < end; unit++)
        run_block(j, 0, 1, unit / j->n_blocks, unit % j->n_blocks, (size_t)unit * j->n_rep, thread);
}

/* Units are query heads. */
static void merge_heads(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const attn_job *j = ctx;
    (void)thread;
    for (uint32_t head = begin; head < end; head++) {
        float m, l, *o = result(j, 0, head);
        start_head(j, &m, &l, o);
        for (uint32_t b = 0; b < j->n_blocks; b++)
            merge_part(j, &m, &l, o, (size_t)(head / j->n_rep * j->n_blocks + b) * j->n_rep + head % j->n_rep);
        finish_head(j, l, 0, head, o);
    }
}

/* Small chunks on many threads want small tiles; the size never shows in the bits. */
static void choose_tile(attn_job *j)
{
    const uint32_t per_thread = j->n * j->hp->n_kv_heads / (2 * aeg_team_size(j->c->team));
    const uint32_t room = j->s->tile_rows / j->n_rep;
    j->tile = AEG_MIN(room, AEG_MAX(1u, per_thread));
    j->n_tiles = (j->n + j->tile - 1) / j->tile;
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
    aeg_team_run(c->team, n * hp->n_kv_heads, prepare_heads, &job);
    if (n == 1) {
        aeg_team_run(c->team, hp->n_kv_heads * job.n_blocks, run_blocks, &job);
        aeg_team_run(c->team, hp->n_heads, merge_heads, &job);
    } else {
        choose_tile(&job);
        aeg_team_run(c->team, job.n_tiles * hp->n_kv_heads, run_tiles, &job);
    }
    const aeg_linear_out out[] = { { .w = &w->o, .y = y, .y_stride = hp->hidden_size, .add = x } };
    aeg_linear(c, &s->room, s->o, n, hp->n_heads * hp->head_dim, out, 1);
}
