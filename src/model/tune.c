/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tune.h"

#include <stdio.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "model/model_parts.h"

static const uint64_t ALL_NS = 60 * 1000 * 1000;
static const uint64_t PASS_NS = 3 * 1000 * 1000;    /* of one pass with one thread                    */
static const uint64_t PASS_BYTES = 64 << 20;        /* of weights that one pass reads                 */
static const uint64_t WAKE_NS = 100 * 1000;         /* before each pass, so that nobody sleeps in it; */
static const uint64_t WAKE_THREAD_NS = 2 * 1000;    /* and for each thread                            */
static const double GOOD_ENOUGH = 1.03;
enum { MIN_ROUNDS = 3 };

uint32_t aeg_tune_counts(uint32_t out[AEG_TUNE_COUNTS], uint32_t n)
{
    uint32_t n_counts = 0;
    for (uint32_t count = 1; count < n; count *= 2)
        out[n_counts++] = count;
    out[n_counts++] = n;
    return n_counts;
}

uint32_t aeg_tune_choose(const uint32_t *counts, const double *cost, uint32_t n)
{
    double best = cost[0];
    for (uint32_t i = 1; i < n; i++)
        best = AEG_MIN(best, cost[i]);
    uint32_t i = 0;
    while (cost[i] > best * GOOD_ENOUGH)
        i++;
    return counts[i];
}

double aeg_tune_median(double *cost, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const double c = cost[i];
        uint32_t at = i;
        for (; at > 0 && cost[at - 1] > c; at--)
            cost[at] = cost[at - 1];
        cost[at] = c;
    }
    return cost[n / 2];
}

/* --- one pass ------------------------------------------------------------------------------------- */

/* Where the next pass goes on: passes walk through the weights, as a step does, so that they are not all in the caches
 * of a machine that would read them from memory. Layers have the mixer of the first one, so that passes are alike. */
typedef struct {
    aeg_model *m;
    uint32_t layer, expert, head_block;
    uint32_t n_layers;   /* of a pass */
    uint64_t bytes;      /* read so far */
} walk;

static void run_linear(walk *k, const aeg_act_room *room, const float *x, uint32_t n_cols, const aeg_linear_out *outs,
                       uint32_t n_outs)
{
    aeg_linear(&k->m->compute, room, x, 1, n_cols, outs, n_outs);
    for (uint32_t i = 0; i < n_outs; i++)
        k->bytes += aeg_matrix_bytes(outs[i].w->type, outs[i].w->n_rows, n_cols);
}

/* The projections of a mixer. What lies between them would change its state and is left out. */
static void run_gdn(walk *k, const aeg_gdn_weights *w)
{
    aeg_model *m = k->m;
    const aeg_gdn_scratch *s = &m->mixer_scratch[AEG_MIXER_GDN].gdn;
    const aeg_linear_out in[] = { { .w = &w->qkv, .y = s->qkv, .y_stride = w->qkv.n_rows },
                                  { .w = &w->z, .y = s->z, .y_stride = w->z.n_rows },
                                  { .w = &w->b, .y = s->b, .y_stride = w->b.n_rows, .exact = true },
                                  { .w = &w->a, .y = s->a, .y_stride = w->a.n_rows, .exact = true } };
    const aeg_linear_out out = { .w = &w->out, .y = m->y, .y_stride = w->out.n_rows };
    run_linear(k, &m->room, m->u, m->hp->hidden_size, in, AEG_ARRAY_LEN(in));
    run_linear(k, &s->room, s->o, w->out.n_cols, &out, 1);
}

static void run_attention(walk *k, const aeg_attn_weights *w)
{
    aeg_model *m = k->m;
    const aeg_attn_scratch *s = &m->mixer_scratch[AEG_MIXER_ATTENTION].attn;
    const aeg_linear_out in[] = { { .w = &w->q, .y = s->q, .y_stride = w->q.n_rows },
                                  { .w = &w->k, .y = s->k, .y_stride = w->k.n_rows },
                                  { .w = &w->v, .y = s->v, .y_stride = w->v.n_rows } };
    const aeg_linear_out out = { .w = &w->o, .y = m->y, .y_stride = w->o.n_rows };
    run_linear(k, &m->room, m->u, m->hp->hidden_size, in, AEG_ARRAY_LEN(in));
    run_linear(k, &s->room, s->o, w->o.n_cols, &out, 1);
}

static void run_mla(walk *k, const aeg_mla_weights *w)
{
    aeg_model *m = k->m;
    const aeg_hparams *hp = m->hp;
    const aeg_mla_scratch *s = &m->mixer_scratch[AEG_MIXER_MLA].mla;
    const aeg_linear_out in[] = { { .w = &w->kv_a, .y = s->row, .y_stride = w->kv_a.n_rows },
                                  { .w = &w->q_a, .y = s->q_a, .y_stride = w->q_a.n_rows } };
    const aeg_linear_out q = { .w = &w->q_b, .y = s->q, .y_stride = w->q_b.n_rows };
    const aeg_linear_out heads[] = { { .w = &w->k_b, .y = s->q, .y_stride = w->k_b.n_rows },
                                     { .w = &w->v_b, .y = s->o, .y_stride = w->v_b.n_rows } };
    const aeg_linear_out out = { .w = &w->o, .y = m->y, .y_stride = w->o.n_rows };
    run_linear(k, &m->room, m->u, hp->hidden_size, in, hp->q_lora > 0 ? 2 : 1);
    run_linear(k, hp->q_lora > 0 ? &s->q_a_room : &m->room, hp->q_lora > 0 ? s->q_a : m->u, w->q_b.n_cols, &q, 1);
    for (int i = 0; i < 2; i++) /* every head with the same input: the same bytes of weights */
        run_linear(k, &s->room, s->a, heads[i].w->n_cols, &heads[i], 1);
    run_linear(k, &s->room, s->o, w->o.n_cols, &out, 1);
}

static void run_router(walk *k, const aeg_layer_weights *w)
{
    aeg_model *m = k->m;
    const aeg_moe_scratch *s = &m->moe_scratch;
    const aeg_linear_out outs[] = { { .w = &w->router, .y = s->logits, .y_stride = w->router.n_rows, .exact = true },
                                    { .w = &w->shared_gate, .y = s->shared_logit, .y_stride = 1, .exact = true } };
    run_linear(k, &m->room, m->u, m->hp->hidden_size, outs, w->shared_gate.n_rows > 0 ? 2 : 1);
}

/* Routed experts may be on disk: the shared experts of several layers stand for those of one. */
static void run_experts(walk *k)
{
    aeg_model *m = k->m;
    const aeg_hparams *hp = m->hp;
    aeg_moe_scratch *s = &m->moe_scratch;
    const uint32_t most = AEG_MIN(AEG_MIN(hp->top_k + 1, (uint32_t)AEG_WAVE_VIEWS), s->n_wave);
    const aeg_wave_sums none = { 0 };
    aeg_wave_view views[AEG_WAVE_VIEWS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < most; i++) {
        k->expert = AEG_MAX(k->expert, hp->n_dense_layers);
        const aeg_layer_weights *w = &m->weights.layers[k->expert];
        views[n] = (aeg_wave_view){ .gate = w->shared_gate_proj, .up = w->shared_up, .down = w->shared_down, .n = 1,
                                    .y = s->y + (size_t)n * hp->hidden_size };
        k->expert = (k->expert + 1) % hp->n_layers;
        if (n > 0 && !aeg_wave_alike(&views[0], &views[n]))
            continue;
        k->bytes += 2 * aeg_matrix_bytes(w->shared_up.type, hp->shared_width, hp->hidden_size) +
                    aeg_matrix_bytes(w->shared_down.type, hp->hidden_size, hp->shared_width);
        n++;
    }
    const aeg_acts u = aeg_wave_input(&m->compute, &m->room, m->u, 1, &views[0]);
    aeg_wave_run(&m->compute, &s->wave, &u, views, n, hp->hidden_size, &none);
}

static void run_layer(walk *k)
{
    const aeg_model *m = k->m;
    const aeg_layer_weights *w = &m->weights.layers[k->layer];
    if (m->hp->mixer[k->layer] == AEG_MIXER_GDN)
        run_gdn(k, &w->gdn);
    else if (m->hp->mixer[k->layer] == AEG_MIXER_MLA)
        run_mla(k, &w->mla);
    else
        run_attention(k, &w->attn);
    if (aeg_has_experts(m->hp, k->layer))
        run_router(k, w);
    if (m->hp->shared_width > 0)
        run_experts(k);
    do
        k->layer = (k->layer + 1) % m->hp->n_layers;
    while (m->hp->mixer[k->layer] != m->hp->mixer[0]);
}

/* The head's part of so many layers. */
static void run_head_part(walk *k)
{
    aeg_model *m = k->m;
    const uint32_t n_blocks = aeg_row_blocks(m->weights.head.n_rows);
    const uint32_t n = AEG_MAX(1u, (uint32_t)((uint64_t)n_blocks * k->n_layers / m->hp->n_layers));
    if (k->head_block + n > n_blocks)
        k->head_block = 0;
    aeg_weights part = m->weights.head;
    part.data += k->head_block * part.block_stride;
    part.n_rows = AEG_MIN(n * AEG_ROWS, part.n_rows - k->head_block * AEG_ROWS);
    const aeg_linear_out out = { .w = &part, .y = m->logits, .y_stride = part.n_rows };
    run_linear(k, &m->room, m->u, m->hp->hidden_size, &out, 1);
    k->head_block += n;
}

/* --- timing ---------------------------------------------------------------------------------------- */

static void no_work(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    (void)ctx, (void)begin, (void)end, (void)thread;
}

/* The threads of a decode step do not sleep between its jobs, so those of a pass must not before its first. */
static void wake(aeg_team *team, uint32_t count)
{
    const uint64_t until = aeg_now_ns() + WAKE_NS + count * WAKE_THREAD_NS;
    do
        aeg_team_run(team, count, no_work, NULL);
    while (count > 1 && aeg_now_ns() < until);
}

/* Nanoseconds per byte of one pass with `count` threads. */
static double time_pass(walk *k, uint32_t count)
{
    aeg_team_use(k->m->cfg.team, count);
    wake(k->m->cfg.team, count);
    const uint64_t start = aeg_now_ns(), before = k->bytes;
    for (uint32_t i = 0; i < k->n_layers; i++)
        run_layer(k);
    run_head_part(k);
    return (double)AEG_MAX(aeg_now_ns() - start, 1u) / (double)(k->bytes - before);
}

/* Not counted: brings code and pages in, and finds out how many layers make a pass. */
static void size_pass(walk *k)
{
    const aeg_hparams *hp = k->m->hp;
    uint32_t n_alike = 0;
    for (uint32_t layer = 0; layer < hp->n_layers; layer++)
        n_alike += hp->mixer[layer] == hp->mixer[0];
    aeg_team_use(k->m->cfg.team, 1);
    const uint64_t start = aeg_now_ns();
    do {
        run_layer(k);
        k->n_layers++;
    } while (k->n_layers < n_alike && aeg_now_ns() - start < PASS_NS && k->bytes / k->n_layers * (k->n_layers + 1) <= PASS_BYTES);
}

/* Neither zeros nor denormals, whose arithmetic may take another time. */
static void fill(float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] = (float)((int)(i * 37 % 64) - 31) / 32.0f;
}

static void fill_mla(aeg_model *m, const aeg_mla_weights *w)
{
    const aeg_mla_scratch *s = &m->mixer_scratch[AEG_MIXER_MLA].mla;
    fill(s->q_a, w->q_a.n_rows);
    fill(s->a, w->v_b.n_cols);
    fill(s->o, w->o.n_cols);
}

static void fill_inputs(aeg_model *m)
{
    const aeg_layer_weights *w = &m->weights.layers[0];
    fill(m->u, m->hp->hidden_size);
    if (m->hp->mixer[0] == AEG_MIXER_GDN)
        fill(m->mixer_scratch[AEG_MIXER_GDN].gdn.o, w->gdn.out.n_cols);
    else if (m->hp->mixer[0] == AEG_MIXER_MLA)
        fill_mla(m, &w->mla);
    else
        fill(m->mixer_scratch[AEG_MIXER_ATTENTION].attn.o, w->attn.o.n_cols);
}

static void report(const walk *k, const uint32_t *counts, const double *cost, uint32_t n_counts, uint32_t n_rounds,
                   uint64_t start)
{
    char text[256];
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < n_counts && n_rounds > 0 && at < sizeof text; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%u: %.1f", i > 0 ? ", " : "", counts[i], 1.0 / cost[i]);
    aeg_log(AEG_LOG_DEBUG, "%u of %u threads for decoding; GB/s of weights by threads, median of %u passes of %u layers: %s; "
            "measured in %.0f ms", k->m->n_decode, k->m->cfg.n_threads, n_rounds, k->n_layers, text,
            (double)(aeg_now_ns() - start) * 1e-6);
}

/* Full rounds, one pass of each count after the other, until `end`; returns how many. */
static uint32_t time_rounds(walk *k, const uint32_t *counts, uint32_t n_counts, uint64_t end,
                            double cost[AEG_TUNE_COUNTS][AEG_TUNE_ROUNDS])
{
    for (uint32_t round = 0; round < AEG_TUNE_ROUNDS; round++)
        for (uint32_t i = 0; i < n_counts; i++) {
            if (aeg_now_ns() >= end)
                return round;
            cost[i][round] = time_pass(k, counts[i]);
        }
    return AEG_TUNE_ROUNDS;
}

uint32_t aeg_model_tune(aeg_model *m)
{
    const uint64_t start = aeg_now_ns();
    uint32_t counts[AEG_TUNE_COUNTS];
    double cost[AEG_TUNE_COUNTS][AEG_TUNE_ROUNDS], median[AEG_TUNE_COUNTS] = { 0 };
    walk k = { .m = m };
    const uint32_t n_counts = aeg_tune_counts(counts, m->cfg.n_threads);
    m->n_decode = m->cfg.n_threads;
    if (n_counts == 1)
        return m->n_decode;

    fill_inputs(m);
    size_pass(&k);
    const uint32_t n_rounds = time_rounds(&k, counts, n_counts, start + ALL_NS, cost);
    for (uint32_t i = 0; i < n_counts && n_rounds > 0; i++)
        median[i] = aeg_tune_median(cost[i], n_rounds);
    if (n_rounds >= MIN_ROUNDS)
        m->n_decode = aeg_tune_choose(counts, median, n_counts);
    report(&k, counts, median, n_counts, n_rounds, start);
    aeg_team_use(m->cfg.team, m->n_decode);
    return m->n_decode;
}
