/* SPDX-License-Identifier: Apache-2.0 */
#include "model/blocks/gdn.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

enum { TAPS_BEFORE = 3 };

static const float L2_EPS = 1e-6f;

void aeg_gdn_scratch_init(aeg_gdn_scratch *s, aeg_arena *arena, const aeg_hparams *hp, aeg_act_kind act,
                          uint32_t chunk)
{
    const uint64_t value = (uint64_t)hp->gdn_v_heads * hp->gdn_v_dim;
    const uint64_t channels = 2ull * hp->gdn_k_heads * hp->gdn_k_dim + value;
    s->qkv = AEG_ARENA_ARRAY(arena, float, (TAPS_BEFORE + (uint64_t)chunk) * channels);
    s->z = AEG_ARENA_ARRAY(arena, float, chunk * value);
    s->o = AEG_ARENA_ARRAY(arena, float, chunk * value);
    s->b = AEG_ARENA_ARRAY(arena, float, (uint64_t)chunk * hp->gdn_v_heads);
    s->a = AEG_ARENA_ARRAY(arena, float, (uint64_t)chunk * hp->gdn_v_heads);
    aeg_act_room_init(&s->room, arena, act, chunk, value);
}

typedef struct {
    const aeg_compute *c;
    const aeg_hparams *hp;
    const aeg_gdn_weights *w;
    aeg_state *state;
    aeg_gdn_scratch *s;
    uint32_t layer, n, channels, key, value;
} gdn_job;

/* Units are strips of 16 channels. Tokens descend, so that a row can be overwritten by its result: the
 * rows after it no longer need its input. */
static void conv_strips(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const gdn_job *j = ctx;
    const size_t first = (size_t)begin * AEG_ROWS;
    const uint32_t width = (end - begin) * AEG_ROWS;
    float *saved = aeg_state_conv(j->state, j->layer) + first;
    float *rows = j->s->qkv + first;
    (void)thread;

    for (uint32_t t = 0; t < TAPS_BEFORE; t++)
        memcpy(rows + (size_t)t * j->channels, saved + (size_t)t * j->channels, width * sizeof(float));
    for (uint32_t t = 0; t < TAPS_BEFORE; t++)
        memcpy(saved + (size_t)t * j->channels, rows + (size_t)(j->n + t) * j->channels, width * sizeof(float));

    /* The kernel reads tap j at w + j*n: give it a compact copy of this range's taps, a piece at a time. */
    enum { PIECE = 512 };
    float taps[4 * PIECE];
    for (uint32_t at = 0; at < width; at += PIECE) {
        const uint32_t m = AEG_MIN((uint32_t)PIECE, width - at);
        for (uint32_t tap = 0; tap < 4; tap++)
            memcpy(taps + (size_t)tap * m, j->w->conv + (size_t)tap * j->channels + first + at, m * sizeof(float));
        for (uint32_t t = j->n; t-- > 0;) {
            float *x = rows + (size_t)t * j->channels + at;
            float *x3 = x + 3 * (size_t)j->channels;
            j->c->kernels->conv4_silu(x3, x, x + j->channels, x + 2 * (size_t)j->channels, x3, taps, m);
        }
    }
}

/* Units are tokens: gates, and the norms of their q and k heads. */
static void prepare_tokens(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const gdn_job *j = ctx;
    const aeg_hparams *hp = j->hp;
    const float q_scale = 1.0f / sqrtf((float)hp->gdn_k_dim);
    (void)thread;
    for (uint32_t t = begin; t < end; t++) {
        float *q = j->s->qkv + (size_t)(TAPS_BEFORE + t) * j->channels;
        float *k = q + j->key;
        for (uint32_t h = 0; h < hp->gdn_k_heads; h++) {
            j->c->kernels->l2norm(q + (size_t)h * hp->gdn_k_dim, hp->gdn_k_dim, L2_EPS, q_scale);
            j->c->kernels->l2norm(k + (size_t)h * hp->gdn_k_dim, hp->gdn_k_dim, L2_EPS, 1.0f);
        }
        float *b = j->s->b + (size_t)t * hp->gdn_v_heads, *a = j->s->a + (size_t)t * hp->gdn_v_heads;
        j->c->kernels->gdn_gates(b, a, b, a, j->w->a_log, j->w->dt_bias, hp->gdn_v_heads);
    }
}

static uint32_t key_head(const aeg_hparams *hp, uint32_t v_head)
{
    return hp->gdn_v_tiled ? v_head % hp->gdn_k_heads : v_head / (hp->gdn_v_heads / hp->gdn_k_heads);
}

/* Units are (value head, strip of 16 columns). */
static void run_strips(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const gdn_job *j = ctx;
    const aeg_hparams *hp = j->hp;
    const uint32_t n_strips = hp->gdn_v_dim / AEG_GDN_STRIP;
    (void)thread;
    for (uint32_t unit = begin; unit < end;) {
        const uint32_t head = unit / n_strips, strip0 = unit % n_strips;
        const uint32_t strip1 = AEG_MIN(n_strips, strip0 + (end - unit));
        float *row = j->s->qkv + (size_t)TAPS_BEFORE * j->channels;
        const aeg_gdn_args args = {
            .state = aeg_state_s(j->state, j->layer, head),
            .q = row + (size_t)key_head(hp, head) * hp->gdn_k_dim,
            .k = row + j->key + (size_t)key_head(hp, head) * hp->gdn_k_dim,
            .v = row + 2 * (size_t)j->key + (size_t)head * hp->gdn_v_dim,
            .q_stride = j->channels, .k_stride = j->channels, .v_stride = j->channels,
            .decay = j->s->a + head, .beta = j->s->b + head,
            .decay_stride = hp->gdn_v_heads, .beta_stride = hp->gdn_v_heads,
            .o = j->s->o + (size_t)head * hp->gdn_v_dim, .o_stride = j->value,
            .dk = hp->gdn_k_dim, .dv = hp->gdn_v_dim, .n_tokens = j->n,
        };
        j->c->kernels->gdn(&args, strip0, strip1);
        unit += strip1 - strip0;
    }
}

/* Units are (token, value head). */
static void gate_heads(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const gdn_job *j = ctx;
    const uint32_t dv = j->hp->gdn_v_dim;
    (void)thread;
    for (uint32_t unit = begin; unit < end; unit++) {
        const size_t at = (size_t)unit * dv;
        j->c->kernels->rmsnorm_gated(j->s->o + at, j->s->o + at, j->s->z + at, j->w->norm, dv, j->hp->rms_eps);
    }
}

void aeg_gdn_forward(const aeg_compute *c, const aeg_hparams *hp, const aeg_gdn_weights *w, aeg_state *state,
                     uint32_t layer, aeg_gdn_scratch *s, const aeg_act_room *room, const float *u, uint32_t n,
                     float *y)
{
    const uint32_t key = hp->gdn_k_heads * hp->gdn_k_dim, value = hp->gdn_v_heads * hp->gdn_v_dim;
    gdn_job job = { .c = c, .hp = hp, .w = w, .state = state, .s = s, .layer = layer, .n = n,
                    .channels = 2 * key + value, .key = key, .value = value };
    const aeg_linear_out in[] = {
        { .w = &w->qkv, .y = s->qkv + (size_t)TAPS_BEFORE * job.channels, .y_stride = job.channels },
        { .w = &w->z, .y = s->z, .y_stride = value },
        { .w = &w->b, .y = s->b, .y_stride = hp->gdn_v_heads, .exact = true },
        { .w = &w->a, .y = s->a, .y_stride = hp->gdn_v_heads, .exact = true },
    };
    aeg_linear(c, room, u, n, hp->hidden_size, in, AEG_ARRAY_LEN(in));
    aeg_team_run(c->team, job.channels / AEG_ROWS, conv_strips, &job);
    aeg_team_run(c->team, n, prepare_tokens, &job);
    aeg_team_run(c->team, hp->gdn_v_heads * (hp->gdn_v_dim / AEG_GDN_STRIP), run_strips, &job);
    aeg_team_run(c->team, n * hp->gdn_v_heads, gate_heads, &job);

    const aeg_linear_out out[] = { { .w = &w->out, .y = y, .y_stride = hp->hidden_size } };
    aeg_linear(c, &s->room, s->o, n, value, out, 1);
}
