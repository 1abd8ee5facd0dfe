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

/* The causal convolution of channels [first, first + width), in place: tokens descend, so the rows after the present
 * one no longer need its input. */
static void convolve(const gdn_job *j, uint32_t first, uint32_t width)
{
    float *saved = aeg_state_conv(j->state, j->layer) + first;
    float *rows = j->s->qkv + first;
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

/* q and k of one key head, ready for the delta rule. */
static void prepare_key_head(const gdn_job *j, uint32_t head)
{
    const uint32_t dk = j->hp->gdn_k_dim;
    const float q_scale = 1.0f / sqrtf((float)dk);
    convolve(j, head * dk, dk);
    convolve(j, j->key + head * dk, dk);
    for (uint32_t t = 0; t < j->n; t++) {
        float *q = j->s->qkv + (size_t)(TAPS_BEFORE + t) * j->channels + (size_t)head * dk;
        j->c->kernels->l2norm(q, dk, L2_EPS, q_scale);
        j->c->kernels->l2norm(q + j->key, dk, L2_EPS, 1.0f);
    }
}

/* The delta rule of one value head over the chunk, its gates before and its gated norm after. */
static void run_value_head(const gdn_job *j, uint32_t key_head, uint32_t head)
{
    const aeg_hparams *hp = j->hp;
    const uint32_t dv = hp->gdn_v_dim, n_heads = hp->gdn_v_heads;
    float *row = j->s->qkv + (size_t)TAPS_BEFORE * j->channels;
    float *beta = j->s->b + head, *decay = j->s->a + head, *o = j->s->o + (size_t)head * dv;

    convolve(j, 2 * j->key + head * dv, dv);
    for (uint32_t t = 0; t < j->n; t++)
        j->c->kernels->gdn_gates(beta + (size_t)t * n_heads, decay + (size_t)t * n_heads, beta + (size_t)t * n_heads,
                                 decay + (size_t)t * n_heads, j->w->a_log + head, j->w->dt_bias + head, 1);
    const aeg_gdn_args args = {
        .state = aeg_state_s(j->state, j->layer, head),
        .q = row + (size_t)key_head * hp->gdn_k_dim, .k = row + j->key + (size_t)key_head * hp->gdn_k_dim,
        .v = row + 2 * (size_t)j->key + (size_t)head * dv,
        .q_stride = j->channels, .k_stride = j->channels, .v_stride = j->channels,
        .decay = decay, .beta = beta, .decay_stride = n_heads, .beta_stride = n_heads,
        .o = o, .o_stride = j->value, .dk = hp->gdn_k_dim, .dv = dv, .n_tokens = j->n,
    };
    j->c->kernels->gdn(&args, 0, dv / AEG_GDN_STRIP);
    for (uint32_t t = 0; t < j->n; t++) {
        const size_t at = (size_t)t * j->value;
        j->c->kernels->rmsnorm_gated(o + at, o + at, j->s->z + at + (size_t)head * dv, j->w->norm, dv, hp->rms_eps);
    }
}

/* Units are key heads, each with the value heads that read it: everything between the two projections needs nothing
 * from another key head, so there is one barrier instead of four. */
static void run_key_heads(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const gdn_job *j = ctx;
    const uint32_t n_keys = j->hp->gdn_k_heads, n_rep = j->hp->gdn_v_heads / n_keys;
    (void)thread;
    for (uint32_t head = begin; head < end; head++) {
        prepare_key_head(j, head);
        for (uint32_t r = 0; r < n_rep; r++)
            run_value_head(j, head, j->hp->gdn_v_tiled ? head + r * n_keys : head * n_rep + r);
    }
}

void aeg_gdn_forward(const aeg_compute *c, const aeg_hparams *hp, const aeg_gdn_weights *w, aeg_state *state,
                     uint32_t layer, aeg_gdn_scratch *s, const aeg_act_room *room, const float *u, uint32_t n,
                     float *y, float *x)
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
    aeg_team_run(c->team, hp->gdn_k_heads, run_key_heads, &job);

    const aeg_linear_out out[] = { { .w = &w->out, .y = y, .y_stride = hp->hidden_size, .add = x } };
    aeg_linear(c, &s->room, s->o, n, value, out, 1);
}
