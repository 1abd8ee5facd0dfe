/* SPDX-License-Identifier: Apache-2.0 */
#include "model/blocks/mla.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

/* Tokens of a unit of the per-head products: their queries stay in the second-level cache between q_b and K_b. */
enum { UNIT_TOKENS = 64 };

static uint32_t head_input(const aeg_hparams *hp) { return AEG_MAX(hp->qk_nope, hp->kv_lora); }

void aeg_mla_scratch_init(aeg_mla_scratch *s, aeg_arena *arena, const aeg_hparams *hp, aeg_act_kind act,
                          const aeg_kv_config *kv, uint32_t chunk, uint32_t n_threads)
{
    const uint64_t heads = (uint64_t)chunk * hp->n_heads, row = hp->kv_lora + hp->qk_rope;
    s->unit_tokens = AEG_MIN(chunk, (uint32_t)UNIT_TOKENS);
    const uint64_t in_flight = (uint64_t)n_threads * s->unit_tokens;
    s->q_a = AEG_ARENA_ARRAY(arena, float, (uint64_t)chunk * hp->q_lora);
    s->row = AEG_ARENA_ARRAY(arena, float, chunk * row);
    s->head_q = AEG_ARENA_ARRAY(arena, float, in_flight * (hp->qk_nope + hp->qk_rope));
    s->q = AEG_ARENA_ARRAY(arena, float, heads * row);
    s->a = AEG_ARENA_ARRAY(arena, float, heads * hp->kv_lora);
    s->o = AEG_ARENA_ARRAY(arena, float, heads * hp->v_dim);
    aeg_act_room_init(&s->q_a_room, arena, act, chunk, hp->q_lora);
    aeg_act_room_init(&s->head_room, arena, act, in_flight, head_input(hp));
    aeg_act_room_init(&s->room, arena, act, chunk, (uint64_t)hp->n_heads * hp->v_dim);
    s->q_codes = NULL;
    s->q_scale = s->q_rotary_scale = NULL;
    if (aeg_kv_is_codes(kv->kind)) {
        s->q_codes = AEG_ARENA_ARRAY(arena, int8_t, heads * aeg_kv_code_dim(kv));
        s->q_scale = AEG_ARENA_ARRAY(arena, float, heads);
        s->q_rotary_scale = AEG_ARENA_ARRAY(arena, float, heads);
    }
    aeg_attend_scratch_init(&s->attend, arena, kv, hp->n_heads, chunk, n_threads);
}

float aeg_mla_scale(const aeg_hparams *hp)
{
    const double m = hp->yarn_factor > 1 ? 0.1 * (double)hp->yarn_mscale_all * log((double)hp->yarn_factor) + 1 : 1;
    return (float)(m * m / sqrt((double)(hp->qk_nope + hp->qk_rope)));
}

typedef struct {
    const aeg_mla_args *a;
    uint32_t row;               /* numbers of a cache row */
    bool q_codes;               /* q_b reads codes */
    uint32_t n_tiles;           /* of the tokens of the chunk */
    aeg_acts q_in;              /* what q_b reads */
} mla_job;

static void rotate(const mla_job *j, float *x, uint32_t t)
{
    const aeg_rope *rope = j->a->rope;
    const float *cos = rope->cos + (size_t)t * rope->half, *sin = rope->sin + (size_t)t * rope->half;
    if (j->a->hp->rope_interleaved)
        j->a->c->kernels->rope_pairs(x, cos, sin, rope->half);
    else
        j->a->c->kernels->rope(x, cos, sin, rope->half);
}

/* Units are tokens: the cache row, and the query's bottleneck as q_b reads it. */
static void prepare_tokens(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const mla_job *j = ctx;
    const aeg_mla_args *a = j->a;
    const aeg_kernels *k = a->c->kernels;
    const uint32_t latent = a->hp->kv_lora, q_lora = a->hp->q_lora;
    (void)thread;
    for (uint32_t t = begin; t < end; t++) {
        float *row = a->s->row + (size_t)t * j->row, *q_a = a->s->q_a + (size_t)t * q_lora;
        k->rmsnorm(row, row, a->w->kv_a_norm, latent, a->hp->rms_eps);
        rotate(j, row + latent, t);
        aeg_kv_append(a->kv, k, a->layer, 0, a->pos0 + t, row, NULL);
        if (q_lora == 0)
            continue;
        k->rmsnorm(q_a, q_a, a->w->q_a_norm, q_lora, a->hp->rms_eps);
        if (j->q_codes)
            aeg_quantize_row(a->c, &a->s->q_a_room, t, q_a, q_lora, aeg_act_block(a->w->q_b.type));
    }
}

/* Rows [first, first + n) of a matrix; both multiples of AEG_ROWS. */
static aeg_weights rows_of(const aeg_weights *w, uint32_t first, uint32_t n)
{
    aeg_weights part = *w;
    part.data += first / AEG_ROWS * w->block_stride;
    part.n_rows = n;
    return part;
}

static void multiply(const aeg_kernels *k, const aeg_weights *w, const aeg_acts *x, uint32_t n, float *y, size_t y_stride)
{
    const aeg_matmul_args args = { .w = w, .x = x, .n = n, .y = y, .y_stride = y_stride };
    aeg_kernels_matmul(k, w->type, (aeg_act_kind)x->kind)(&args, 0, aeg_row_blocks(w->n_rows));
}

/* y = W x for n rows of x, x_stride floats apart, in the calling thread: codes, where W reads them, go to its room. */
static void head_product(const mla_job *j, const aeg_weights *w, const float *x, size_t x_stride, uint32_t n, float *y,
                         size_t y_stride, uint32_t thread)
{
    const aeg_mla_args *a = j->a;
    aeg_acts in = { .kind = AEG_ACT_F32, .n_cols = (uint32_t)x_stride, .block = 64, .f32 = x };
    if (aeg_reads_codes(a->c, w->type)) {
        const uint32_t block = aeg_act_block(w->type);
        const aeg_act_room room = aeg_act_room_at(&a->s->head_room, (uint64_t)thread * a->s->unit_tokens * head_input(a->hp));
        for (uint32_t r = 0; r < n; r++)
            aeg_quantize_row(a->c, &room, r, x + r * x_stride, w->n_cols, block);
        in = aeg_act_view(a->c, &room, x, w->n_cols, block);
    }
    multiply(a->c->kernels, w, &in, n, y, y_stride);
}

/* n queries of one head as a coded cache reads them. */
static void encode_queries(const mla_job *j, float *q, size_t stride, uint32_t t0, uint32_t n, uint32_t head)
{
    const aeg_mla_args *a = j->a;
    for (uint32_t i = 0; i < n; i++) {
        const size_t at = (size_t)(t0 + i) * a->hp->n_heads + head;
        aeg_kv_query_latent(a->kv, a->c->kernels, a->s->q_codes + at * aeg_kv_code_dim(&a->kv->cfg), a->s->q_scale + at,
                            a->s->q_rotary_scale + at, q + i * stride);
    }
}

/* Units are (head, tile of tokens): its queries, rotated and multiplied with K_b. */
static void make_queries(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const mla_job *j = ctx;
    const aeg_mla_args *a = j->a;
    const uint32_t nope = a->hp->qk_nope, width = nope + a->hp->qk_rope, latent = a->hp->kv_lora;
    const size_t stride = (size_t)a->hp->n_heads * j->row;
    float *head_q = a->s->head_q + (size_t)thread * a->s->unit_tokens * width;
    for (uint32_t unit = begin; unit < end; unit++) {
        const uint32_t head = unit / j->n_tiles, t0 = unit % j->n_tiles * a->s->unit_tokens;
        const uint32_t n = AEG_MIN(a->s->unit_tokens, a->n - t0);
        const aeg_weights q_b = rows_of(&a->w->q_b, head * width, width), k_b = rows_of(&a->w->k_b, head * latent, latent);
        const aeg_acts in = aeg_acts_from(&j->q_in, t0);
        float *q = a->s->q + t0 * stride + (size_t)head * j->row;
        multiply(a->c->kernels, &q_b, &in, n, head_q, width);
        for (uint32_t i = 0; i < n; i++) {
            float *rotary = q + i * stride + latent;
            memcpy(rotary, head_q + (size_t)i * width + nope, a->hp->qk_rope * sizeof(float));
            rotate(j, rotary, t0 + i);
        }
        head_product(j, &k_b, head_q, width, n, q, stride, thread);
        if (a->s->q_codes != NULL)
            encode_queries(j, q, stride, t0, n, head);
    }
}

/* V_b for n tokens of one head. */
static void project_values(const mla_job *j, uint32_t t0, uint32_t n, uint32_t head, uint32_t thread)
{
    const aeg_mla_args *a = j->a;
    const uint32_t latent = a->hp->kv_lora, v_dim = a->hp->v_dim, heads = a->hp->n_heads;
    const aeg_weights v_b = rows_of(&a->w->v_b, head * v_dim, v_dim);
    const size_t at = (size_t)t0 * heads + head;
    head_product(j, &v_b, a->s->a + at * latent, (size_t)heads * latent, n, a->s->o + at * v_dim, (size_t)heads * v_dim, thread);
}

static void project_tiles(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const mla_job *j = ctx;
    for (uint32_t unit = begin; unit < end; unit++) {
        const uint32_t t0 = unit % j->n_tiles * j->a->s->unit_tokens;
        project_values(j, t0, AEG_MIN(j->a->s->unit_tokens, j->a->n - t0), unit / j->n_tiles, thread);
    }
}

/* Decode: V_b as soon as a head's sum is complete, one barrier less. */
static void project_head(void *ctx, uint32_t t, uint32_t head, float *o, uint32_t thread)
{
    (void)o;
    project_values(ctx, t, 1, head, thread);
}

/* The two projections of u, and what lies between them and the heads. */
static void project_input(mla_job *j)
{
    const aeg_mla_args *a = j->a;
    const uint32_t q_lora = a->hp->q_lora, block = aeg_act_block(a->w->q_b.type);
    const aeg_linear_out in[] = {
        { .w = &a->w->kv_a, .y = a->s->row, .y_stride = j->row },
        { .w = &a->w->q_a, .y = a->s->q_a, .y_stride = q_lora },
    };
    j->q_codes = aeg_reads_codes(a->c, a->w->q_b.type);
    aeg_linear(a->c, a->room, a->u, a->n, a->hp->hidden_size, in, q_lora > 0 ? 2 : 1);
    aeg_team_run(a->c->team, a->n, prepare_tokens, j);

    const float *x = q_lora > 0 ? a->s->q_a : a->u;
    const uint32_t n_cols = q_lora > 0 ? q_lora : a->hp->hidden_size;
    if (!j->q_codes)
        j->q_in = (aeg_acts){ .kind = AEG_ACT_F32, .n_cols = n_cols, .block = 64, .f32 = x };
    else if (q_lora > 0)
        j->q_in = aeg_act_view(a->c, &a->s->q_a_room, x, n_cols, block);
    else
        j->q_in = aeg_quantize_rows(a->c, a->room, x, a->n, n_cols, block);
}

void aeg_mla_forward(const aeg_mla_args *a)
{
    const aeg_hparams *hp = a->hp;
    mla_job job = { .a = a, .row = hp->kv_lora + hp->qk_rope,
                    .n_tiles = (a->n + a->s->unit_tokens - 1) / a->s->unit_tokens };
    const uint32_t n_units = hp->n_heads * job.n_tiles;
    project_input(&job);
    aeg_team_run(a->c->team, n_units, make_queries, &job);

    const aeg_attend_args attend = {
        .c = a->c, .kv = a->kv, .layer = a->layer, .n_heads = hp->n_heads, .scale = aeg_mla_scale(hp), .n = a->n,
        .pos0 = a->pos0, .q = a->s->q, .q_stride = job.row, .q_token = (size_t)hp->n_heads * job.row, .q_codes = a->s->q_codes,
        .q_scale = a->s->q_scale, .q_rotary_scale = a->s->q_rotary_scale, .o = a->s->a,
        .finish = a->n == 1 ? project_head : NULL, .finish_ctx = &job, .s = &a->s->attend,
    };
    aeg_attend(&attend);
    if (a->n > 1)
        aeg_team_run(a->c->team, n_units, project_tiles, &job);
    const aeg_linear_out out = { .w = &a->w->o, .y = a->y, .y_stride = hp->hidden_size, .add = a->x };
    aeg_linear(a->c, &a->s->room, a->s->o, a->n, hp->n_heads * hp->v_dim, &out, 1);
}
