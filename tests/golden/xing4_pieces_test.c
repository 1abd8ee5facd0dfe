/* SPDX-License-Identifier: Apache-2.0 */
/* Single operators of Xing4.0 against an independent float64 implementation (tests/data/README.md), on every level that
 * this processor has. */
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "support/t.h"
#include "support/t_tensors.h"

#define GOLDEN "tests/data/xing4-tiny/pieces.safetensors"
enum { HIDDEN = 256, S = AEG_HYPER_STREAMS, N_HEADS = 4, NOPE = 32, ROPE = 32, LATENT = 64, ROW = LATENT + ROPE, V_DIM = 32 };
static const double TOLERANCE = 1e-5;

static t_tensors *golden;
static aeg_kernels levels[4];
static uint32_t n_levels;

static int open_golden(void **state)
{
    (void)state;
    static const char *const names[] = { "scalar", "avx2", "avx512", "neon" };
    uint32_t mask;
    golden = t_tensors_open(GOLDEN);
    for (int i = 0; i < 4; i++)
        if (aeg_cpu_parse(&mask, names[i], NULL) == AEGIS_OK)
            aeg_kernels_init(&levels[n_levels++], mask);
    return 0;
}

static int close_golden(void **state)
{
    (void)state;
    t_tensors_close(golden);
    return 0;
}

/* Floats of a golden tensor from element `first` on. */
static void load(float *out, const char *name, size_t first, size_t n)
{
    const t_tensor *t = t_tensors_get(golden, "%s", name);
    T_CHECK(first + n <= t->n_elements);
    for (size_t i = 0; i < n; i++)
        out[i] = t_tensor_f32(t, first + i);
}

/* Largest difference to a golden tensor, relative where that is above 1. */
static double worst(const float *got, const char *name, size_t first, size_t n)
{
    const t_tensor *t = t_tensors_get(golden, "%s", name);
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        const double want = t_tensor_f32(t, first + i);
        most = fmax(most, fabs(got[i] - want) / fmax(1.0, fabs(want)));
    }
    return most;
}

static void check_connection(const aeg_kernels *k, size_t t)
{
    static float x[S * HIDDEN], fn[AEG_HYPER_GATES * S * HIDDEN], y[HIDDEN], out[HIDDEN];
    float dots[AEG_HYPER_GATES], base[AEG_HYPER_GATES], scale[3];
    aeg_hyper_gates g;
    load(x, "hc.x", t * S * HIDDEN, S * HIDDEN);
    load(fn, "hc.fn", 0, AEG_HYPER_GATES * S * HIDDEN);
    load(base, "hc.base", 0, AEG_HYPER_GATES);
    load(scale, "hc.scale", 0, 3);
    for (int i = 0; i < AEG_HYPER_GATES; i++)
        dots[i] = k->dot(fn + (size_t)i * S * HIDDEN, x, S * HIDDEN);
    const aeg_hyper_args a = { .dots = dots, .base = base, .scale = scale, .sum_squares = k->dot(x, x, S * HIDDEN),
                               .width = S * HIDDEN, .rms_eps = 1e-6f, .clamp = 30.0f, .eps = 1e-6f, .iters = 20, .out = &g };
    k->hyper_gates(&a);
    T_CHECK(worst(g.pre, "hc.pre", t * S, S) <= TOLERANCE);
    T_CHECK(worst(g.post, "hc.post", t * S, S) <= TOLERANCE);
    T_CHECK(worst(g.mix, "hc.comb", t * S * S, S * S) <= TOLERANCE);
    k->hyper_collapse(out, x, HIDDEN, g.pre, HIDDEN);
    T_CHECK(worst(out, "hc.collapsed", t * HIDDEN, HIDDEN) <= TOLERANCE);
    load(y, "hc.sublayer_out", t * HIDDEN, HIDDEN);
    k->hyper_update(x, HIDDEN, y, &g, HIDDEN);
    T_CHECK(worst(x, "hc.out", t * S * HIDDEN, S * HIDDEN) <= TOLERANCE);
}

static void hyper_connection_matches(void **state)
{
    (void)state;
    for (uint32_t l = 0; l < n_levels; l++)
        for (size_t t = 0; t < 7; t++)
            check_connection(&levels[l], t);
}

/* The logits as they are: r, scale and base are 1, 1 and 0. Tells rows first from columns first, and 19 from 20. */
static void sinkhorn_matches_after_1_2_and_20_sweeps(void **state)
{
    (void)state;
    static const struct { uint32_t iters; const char *name; } runs[] = {
        { 1, "sinkhorn.after_1" }, { 2, "sinkhorn.after_2" }, { 20, "sinkhorn.after_20" },
    };
    float dots[AEG_HYPER_GATES] = { 0 }, base[AEG_HYPER_GATES] = { 0 }, scale[3] = { 1, 1, 1 };
    aeg_hyper_gates g;
    for (uint32_t l = 0; l < n_levels; l++)
        for (int i = 0; i < 3; i++)
            for (size_t m = 0; m < 6; m++) {
                load(dots + 2 * S, "sinkhorn.logits", m * S * S, S * S);
                const aeg_hyper_args a = { .dots = dots, .base = base, .scale = scale, .width = 1, .rms_eps = 1.0f,
                                           .clamp = 30.0f, .eps = 1e-6f, .iters = runs[i].iters, .out = &g };
                levels[l].hyper_gates(&a);
                T_CHECK(worst(g.mix, runs[i].name, m * S * S, S * S) <= TOLERANCE);
            }
}

enum { N_EXPERTS = 10, TOP_K = 4, N_ROUTED = 64 };

static void check_choice(const aeg_kernels *k, size_t row, const float *logits, const float *bias, bool with_bias)
{
    float weights[TOP_K], scratch[2 * N_EXPERTS + 1];
    uint16_t ids[TOP_K];
    const aeg_route_args a = { .logits = logits, .bias = with_bias ? bias : NULL, .n = N_EXPERTS, .top_k = TOP_K,
                               .n_groups = 1, .top_groups = 1, .sigmoid = true, .renormalise = true, .scale = 2.0f,
                               .scratch = scratch, .ids = ids, .weights = weights };
    k->route(&a);
    T_CHECK(worst(scratch, "router.scores", row * N_EXPERTS, N_EXPERTS) <= TOLERANCE);
    const t_tensor *pick = t_tensors_get(golden, with_bias ? "router.pick" : "router.pick_without_bias");
    const t_tensor *weight = t_tensors_get(golden, "router.weight");
    for (size_t i = 0; i < TOP_K; i++) {
        const int64_t want = t_tensor_i64(pick, row * TOP_K + i);
        size_t at = 0;
        while (at < TOP_K && ids[at] != want)
            at++;
        T_CHECK(at < TOP_K);
        if (with_bias)
            T_CHECK(fabs(weights[at] - t_tensor_f32(weight, row * TOP_K + i)) <= TOLERANCE);
    }
}

static void router_matches(void **state)
{
    (void)state;
    static float u[HIDDEN], w[N_EXPERTS * HIDDEN];
    float bias[N_EXPERTS], logits[N_EXPERTS];
    load(w, "router.w", 0, N_EXPERTS * HIDDEN);
    load(bias, "router.bias", 0, N_EXPERTS);
    for (size_t row = 0; row < N_ROUTED; row++) {
        load(u, "router.u", row * HIDDEN, HIDDEN);
        if (t_tensor_f32(t_tensors_get(golden, "router.margin"), row) < 1e-4f)
            continue;
        for (uint32_t l = 0; l < n_levels; l++) {
            for (int e = 0; e < N_EXPERTS; e++)
                logits[e] = levels[l].dot(w + (size_t)e * HIDDEN, u, HIDDEN);
            check_choice(&levels[l], row, logits, bias, true);
            check_choice(&levels[l], row, logits, bias, false);
        }
    }
}

/* The absorbed queries of the golden: K_b q_nope, then the rotated part. */
static void make_queries(float q[N_HEADS][ROW])
{
    float k_b[LATENT * NOPE], nope[NOPE];
    for (size_t h = 0; h < N_HEADS; h++) {
        load(k_b, "mla.w.k_b", h * LATENT * NOPE, LATENT * NOPE);
        load(nope, "mla.q_nope", h * NOPE, NOPE);
        for (int j = 0; j < LATENT; j++) {
            double sum = 0;
            for (int i = 0; i < NOPE; i++)
                sum += (double)k_b[j * NOPE + i] * nope[i];
            q[h][j] = (float)sum;
        }
        load(q[h] + LATENT, "mla.q_pe", h * ROPE, ROPE);
    }
}

static void check_heads(const float *acc, const float *l)
{
    float v_b[V_DIM * LATENT], out[V_DIM];
    for (size_t h = 0; h < N_HEADS; h++) {
        load(v_b, "mla.w.v_b", h * V_DIM * LATENT, V_DIM * LATENT);
        for (int v = 0; v < V_DIM; v++) {
            double sum = 0;
            for (int j = 0; j < LATENT; j++)
                sum += (double)v_b[v * LATENT + j] * acc[h * LATENT + (size_t)j] / l[h];
            out[v] = (float)sum;
        }
        T_CHECK(worst(out, "mla.heads_out", h * V_DIM, V_DIM) <= TOLERANCE);
    }
}

static void latent_attention_matches(void **state)
{
    (void)state;
    enum { N_POS = 24 };
    static float rows[N_POS][ROW], q[N_HEADS][ROW], scratch[N_HEADS * AEG_ATTN_BLOCK];
    float m[N_HEADS], l[N_HEADS], acc[N_HEADS * LATENT], scale;
    load(rows[0], "mla.cache", 0, (N_POS - 1) * ROW);
    load(rows[N_POS - 1], "mla.new_row", 0, ROW);
    load(&scale, "mla.scale", 0, 1);
    make_queries(q);
    const aeg_attn_args a = { .n_tokens = 1, .n_rep = N_HEADS, .n_pos = N_POS, .head_dim = ROW, .value_dim = LATENT,
                              .q = q[0], .q_stride = ROW, .k = rows, .v = rows, .kv_stride = sizeof rows[0], .scale = scale,
                              .out_m = m, .out_l = l, .acc = acc, .scratch = scratch };
    for (uint32_t i = 0; i < n_levels; i++) {
        levels[i].attn_f32(&a);
        check_heads(acc, l);
        const t_tensor *scores = t_tensors_get(golden, "mla.scores");
        for (size_t h = 0; h < N_HEADS; h++) {
            double most = -1e300;
            for (size_t p = 0; p < N_POS; p++)
                most = fmax(most, t_tensor_f32(scores, h * N_POS + p));
            T_CHECK(fabs(m[h] - most) <= TOLERANCE);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hyper_connection_matches),
        cmocka_unit_test(sinkhorn_matches_after_1_2_and_20_sweeps),
        cmocka_unit_test(router_matches),
        cmocka_unit_test(latent_attention_matches),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
