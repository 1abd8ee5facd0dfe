/* SPDX-License-Identifier: Apache-2.0 */
#include "model/blocks/attend.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

/* Queries that share the fetch of a block in prefill: enough to hide it, few enough for the second-level cache. */
enum { TILE_TOKENS = 8, TILE_ROWS = 64 };

/* Blocks that a decode step has in flight: units enough for every thread, and 4096 positions at least. */
enum { ROUND_BLOCKS = 16, UNITS_PER_THREAD = 8 };

enum { GROUP_MIN = 2 }; /* query heads of a unit: every group fetches its rows anew */

static uint32_t n_blocks(uint32_t n_pos) { return (n_pos + AEG_ATTN_BLOCK - 1) / AEG_ATTN_BLOCK; }

void aeg_attend_scratch_init(aeg_attend_scratch *s, aeg_arena *arena, const aeg_kv_config *kv, uint32_t n_heads,
                             uint32_t chunk, uint32_t n_threads)
{
    const uint32_t n_rep = n_heads / kv->n_kv_heads, most = AEG_MAX(1u, (uint32_t)TILE_ROWS / n_rep);
    const uint32_t tile = AEG_MIN(AEG_MIN((uint32_t)TILE_TOKENS, most), chunk);
    s->tile_rows = tile * n_rep;
    s->round_blocks = AEG_MAX((uint32_t)ROUND_BLOCKS, (n_threads * UNITS_PER_THREAD + kv->n_kv_heads - 1) / kv->n_kv_heads);
    s->round_blocks = AEG_MIN(s->round_blocks, n_blocks(kv->n_ctx));
    const uint64_t n_parts = AEG_MAX((uint64_t)n_threads * s->tile_rows, (uint64_t)n_heads * s->round_blocks);
    const uint64_t n_running = AEG_MAX((uint64_t)n_threads * s->tile_rows, (uint64_t)n_heads);
    s->part_m = AEG_ARENA_ARRAY(arena, float, n_parts);
    s->part_l = AEG_ARENA_ARRAY(arena, float, n_parts);
    s->part_acc = AEG_ARENA_ARRAY(arena, float, n_parts * aeg_kv_value_dim(kv));
    s->run_m = AEG_ARENA_ARRAY(arena, float, n_running);
    s->run_l = AEG_ARENA_ARRAY(arena, float, n_running);
    s->scratch_bytes = aeg_align_up(aeg_attn_scratch_bytes(kv->kind, tile, n_rep, aeg_kv_code_dim(kv)), AEG_CACHE_LINE);
    s->scratch = aeg_arena_alloc(arena, n_threads * s->scratch_bytes, AEG_CACHE_LINE);
}

typedef struct {
    const aeg_attend_args *a;
    uint32_t n_kv_heads, n_rep, row_dim, value_dim; /* row_dim: numbers or codes of a query */
    uint32_t first_block, n_blocks; /* decode: of this round */
    uint32_t group;                 /* decode: query heads of a unit */
    bool first_round, last_round;
    bool latent_codes;
    uint32_t tile, n_tiles;         /* prefill: tokens of a tile, tiles of the chunk */
} attend_job;

/* Query heads that read the same KV head. */
typedef struct {
    uint32_t first, n;
} head_range;

/* One block of positions for some heads and n tokens from t, into partials from `part` on. */
static void run_block(const attend_job *j, uint32_t t, uint32_t n, head_range heads, uint32_t block, size_t part, uint32_t thread)
{
    const aeg_attend_args *a = j->a;
    const uint32_t first = block * AEG_ATTN_BLOCK, head = heads.first;
    const size_t at = (size_t)t * a->n_heads + head;
    aeg_attn_args args = {
        .n_tokens = n, .n_rep = heads.n, .head_dim = j->row_dim, .value_dim = j->value_dim, .scale = a->scale,
        .n_pos = AEG_MIN((uint32_t)AEG_ATTN_BLOCK, a->pos0 + t + 1 - first),
        .out_m = a->s->part_m + part, .out_l = a->s->part_l + part, .acc = a->s->part_acc + part * j->value_dim,
        .scratch = a->s->scratch + thread * a->s->scratch_bytes,
    };
    if (a->q_codes != NULL) {
        args.q_codes = a->q_codes + at * j->row_dim;
        args.q_token = (size_t)a->n_heads * j->row_dim;
        args.q_scale = a->q_scale + at;
        args.q_scale_token = a->n_heads;
        if (j->latent_codes) {
            args.q_rotary_scale = a->q_rotary_scale + at;
            args.rotary = j->row_dim - j->value_dim;
        }
    } else {
        args.q = a->q + t * a->q_token + head * a->q_stride;
        args.q_stride = a->q_stride;
        args.q_token = a->q_token;
    }
    aeg_kv_block(a->kv, a->layer, head / j->n_rep, first, &args);
    aeg_kv_attend(a->kv, a->c->kernels, &args);
}

static void merge_part(const attend_job *j, float *m, float *l, float *o, size_t part)
{
    const aeg_attend_scratch *s = j->a->s;
    j->a->c->kernels->attn_merge(m, l, o, s->part_m[part], s->part_l[part], s->part_acc + part * j->value_dim, j->value_dim);
}

static void start_head(const attend_job *j, float *m, float *l, float *o)
{
    *m = -INFINITY;
    *l = 0.0f;
    memset(o, 0, j->value_dim * sizeof(float));
}

/* Divide by the sum of weights and undo the cache's rotation. */
static void finish_head(const attend_job *j, float l, uint32_t t, uint32_t head, float *o, uint32_t thread)
{
    const float inv = 1.0f / l;
    for (uint32_t i = 0; i < j->value_dim; i++)
        o[i] *= inv;
    aeg_kv_output(j->a->kv, j->a->c->kernels, o);
    if (j->a->finish != NULL)
        j->a->finish(j->a->finish_ctx, t, head, o, thread);
}

static float *result(const attend_job *j, uint32_t t, uint32_t head)
{
    return j->a->o + ((size_t)t * j->a->n_heads + head) * j->value_dim;
}

/* Tokens [t, t + n) of one KV head: blocks in order, each for all of them that see it. */
static void run_tile(const attend_job *j, uint32_t t, uint32_t n, uint32_t kv_head, uint32_t thread)
{
    const uint32_t head = kv_head * j->n_rep;
    const size_t rows = (size_t)thread * j->a->s->tile_rows;
    float *m = j->a->s->run_m + rows, *l = j->a->s->run_l + rows;
    for (uint32_t i = 0; i < n * j->n_rep; i++)
        start_head(j, &m[i], &l[i], result(j, t + i / j->n_rep, head + i % j->n_rep));
    for (uint32_t b = 0; b < n_blocks(j->a->pos0 + t + n); b++) {
        const uint32_t first = b * AEG_ATTN_BLOCK, pos = j->a->pos0 + t;
        const uint32_t skip = first > pos ? first - pos : 0; /* tokens before the block */
        run_block(j, t + skip, n - skip, (head_range){ head, j->n_rep }, b, rows, thread);
        for (uint32_t i = skip * j->n_rep; i < n * j->n_rep; i++)
            merge_part(j, &m[i], &l[i], result(j, t + i / j->n_rep, head + i % j->n_rep), rows + i - skip * j->n_rep);
    }
    for (uint32_t i = 0; i < n * j->n_rep; i++)
        finish_head(j, l[i], t + i / j->n_rep, head + i % j->n_rep, result(j, t + i / j->n_rep, head + i % j->n_rep), thread);
}

/* Prefill: units are (tile, KV head). First and last tiles alternate, so that the short and the long ones spread
 * evenly over contiguous ranges of units. */
static void run_tiles(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const attend_job *j = ctx;
    for (uint32_t unit = begin; unit < end; unit++) {
        const uint32_t i = unit / j->n_kv_heads, tile = i % 2 == 0 ? i / 2 : j->n_tiles - 1 - i / 2;
        const uint32_t t = tile * j->tile;
        run_tile(j, t, AEG_MIN(j->tile, j->a->n - t), unit % j->n_kv_heads, thread);
    }
}

/* Decode: units are (KV head, block of positions, group of its query heads). */
static void run_blocks(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const attend_job *j = ctx;
    const uint32_t n_groups = j->n_rep / j->group;
    for (uint32_t unit = begin; unit < end; unit++) {
        const uint32_t at = unit / n_groups, rep = unit % n_groups * j->group;
        const head_range heads = { at / j->n_blocks * j->n_rep + rep, j->group };
        run_block(j, 0, 1, heads, j->first_block + at % j->n_blocks, (size_t)at * j->n_rep + rep, thread);
    }
}

/* Units are query heads. */
static void merge_heads(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const attend_job *j = ctx;
    for (uint32_t head = begin; head < end; head++) {
        float *m = &j->a->s->run_m[head], *l = &j->a->s->run_l[head], *o = result(j, 0, head);
        if (j->first_round)
            start_head(j, m, l, o);
        for (uint32_t b = 0; b < j->n_blocks; b++)
            merge_part(j, m, l, o, (size_t)(head / j->n_rep * j->n_blocks + b) * j->n_rep + head % j->n_rep);
        if (j->last_round)
            finish_head(j, *l, 0, head, o, thread);
    }
}

/* Small chunks on many threads want small tiles; the size never shows in the bits. */
static void choose_tile(attend_job *j)
{
    const uint32_t per_thread = j->a->n * j->n_kv_heads / (2 * aeg_team_size(j->a->c->team));
    const uint32_t room = j->a->s->tile_rows / j->n_rep;
    j->tile = AEG_MIN(room, AEG_MAX(1u, per_thread));
    j->n_tiles = (j->a->n + j->tile - 1) / j->tile;
}

/* While there are fewer blocks than threads (short contexts, latent rows that all heads share) the query heads are shared out
 * too. Of several blocks the last one may be short: there are more units than threads then. */
static uint32_t choose_group(const attend_job *j)
{
    const uint32_t n_threads = aeg_team_in_use(j->a->c->team), units = j->n_kv_heads * j->n_blocks;
    const uint32_t wanted = n_threads == 1 ? 1 : j->n_blocks > 1 ? 2 * n_threads : n_threads;
    uint32_t group = j->n_rep;
    while (units * (j->n_rep / group) < wanted && group % 2 == 0 && group > GROUP_MIN)
        group /= 2;
    return group;
}

/* One token: rounds of blocks, each merged in order behind the one before. */
static void decode(attend_job *j)
{
    const uint32_t all = n_blocks(j->a->pos0 + 1);
    for (j->first_block = 0; j->first_block < all; j->first_block += j->n_blocks) {
        j->n_blocks = AEG_MIN(j->a->s->round_blocks, all - j->first_block);
        j->first_round = j->first_block == 0;
        j->last_round = j->first_block + j->n_blocks == all;
        j->group = choose_group(j);
        aeg_team_run(j->a->c->team, j->n_kv_heads * j->n_blocks * (j->n_rep / j->group), run_blocks, j);
        aeg_team_run(j->a->c->team, j->a->n_heads, merge_heads, j);
    }
}

void aeg_attend(const aeg_attend_args *a)
{
    const aeg_kv_config *kv = &a->kv->cfg;
    attend_job job = { .a = a, .n_kv_heads = kv->n_kv_heads, .n_rep = a->n_heads / kv->n_kv_heads,
                       .row_dim = a->q_codes != NULL ? aeg_kv_code_dim(kv) : kv->head_dim,
                       .latent_codes = a->q_codes != NULL && kv->latent != 0, .value_dim = aeg_kv_value_dim(kv) };
    if (a->n == 1) {
        decode(&job);
    } else {
        choose_tile(&job);
        aeg_team_run(a->c->team, job.n_tiles * job.n_kv_heads, run_tiles, &job);
    }
}
