/* SPDX-License-Identifier: Apache-2.0 */
/* ops_truth.c - is scalar right? Against libm in double, a plain softmax, and the known vectors of the recurrence. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/math.h"
#include "ops_check.h"

static double relative(double got, double want) { return fabs(got - want) / fabs(want); }

static void check_exp(void)
{
    double worst = 0, worst_sigmoid = 0, worst_softplus = 0;
    for (double x = -87.29; x < 88.72; x += 0.0013) {
        const float f = (float)x;
        worst = fmax(worst, relative(aeg_expf(f), exp(f)));
        if (x > -86.0)
            worst_sigmoid = fmax(worst_sigmoid, relative(aeg_sigmoid(f), 1.0 / (1.0 + exp(-(double)f))));
        if (x < 30.0)
            worst_softplus = fmax(worst_softplus, relative(aeg_softplus(f), log1p(exp(f))));
    }
    OPS_CHECK(worst < 1.2e-7, "exp is off by %g", worst);
    OPS_CHECK(worst_sigmoid < 3e-7, "sigmoid is off by %g", worst_sigmoid);
    OPS_CHECK(worst_softplus < 5e-7, "softplus is off by %g", worst_softplus);

    OPS_CHECK(aeg_expf(0.0f) == 1.0f && aeg_expf(-0.0f) == 1.0f, "exp(0) is %a", (double)aeg_expf(0.0f));
    OPS_CHECK(aeg_expf(-87.4f) == 0.0f && aeg_expf(-INFINITY) == 0.0f && aeg_expf(-1e30f) == 0.0f, "not clamped");
    OPS_CHECK(isinf(aeg_expf(88.73f)) && isinf(aeg_expf(INFINITY)) && isinf(aeg_expf(1e30f)), "not clamped");
    OPS_CHECK(isfinite(aeg_expf(0x1.62e42ep+6f)), "the largest finite exp overflows");
    OPS_CHECK(isnan(aeg_expf(NAN)) && isnan(aeg_expf(-NAN)) && isnan(aeg_softplus(NAN)), "a NaN is lost");
    OPS_CHECK(aeg_sigmoid(-200.0f) == 0.0f && aeg_sigmoid(200.0f) == 1.0f, "sigmoid's ends");
    OPS_CHECK(aeg_softplus(25.0f) == 25.0f && aeg_softplus(-100.0f) == 0.0f, "softplus' ends");
}

static void check_halves(const aeg_kernels *k)
{
    for (uint32_t h = 0; h < 65536; h++) {
        const float f = aeg_f32_from_f16((uint16_t)h);
        uint16_t back;
        k->store_f16(&back, &f, 1);
        if (f == f && back != h)
            OPS_CHECK(false, "f16 %04x comes back as %04x", h, back);
        if (f != f)
            OPS_CHECK((back & 0x7fff) > 0x7c00, "the NaN %04x comes back as %04x", h, back);
    }
    const float ties[] = { 1.0f + 0x1p-11f, 1.0f + 0x1.8p-10f, 65519.99f, 65520.0f, 0x1p-25f, 0x1.000002p-25f };
    const uint16_t want[] = { 0x3c00, 0x3c02, 0x7bff, 0x7c00, 0x0000, 0x0001 };
    uint16_t got[6];
    k->store_f16(got, ties, 6);
    for (int i = 0; i < 6; i++)
        OPS_CHECK(got[i] == want[i], "f16 of %a is %04x, not %04x", (double)ties[i], got[i], want[i]);
}

enum { GDN_T = 6, GDN_D = 4, GDN_DV = 16 };

/* Double-precision results of the recurrence for q[t][i] = sin(1+4t+i), k = cos(2+4t+i), v = sin((4t+i)/2),
 * a = 0.1t - 0.2, b = 0.3t - 0.5, A_log = 0.3, dt_bias = -0.4, q scale 1/2, l2 eps 1e-6. Here dv is padded to 16. */
static const double gdn_o[GDN_T][GDN_D] = {
    { 0.000000, -0.074972, -0.131589, -0.155988 }, { -0.183447, -0.120950, -0.028841, 0.070330 },
    { 0.164782, 0.227253, 0.234083, 0.183603 },    { 0.119032, 0.000622, -0.117940, -0.207626 },
    { -0.301928, -0.267794, -0.168094, -0.027239 }, { 0.157756, 0.284389, 0.341393, 0.314813 },
};
static const double gdn_state[GDN_D][GDN_D] = {
    { 0.295877, 0.448970, 0.492141, 0.414818 }, { 0.293580, 0.320289, 0.268580, 0.151114 },
    { 0.021367, -0.102865, -0.201912, -0.251523 }, { -0.270490, -0.431445, -0.486767, -0.422911 },
};
static const double gdn_beta[GDN_T] = { 0.377541, 0.450166, 0.524979, 0.598688, 0.668188, 0.731059 };
static const double gdn_log_decay[GDN_T] = { -0.590547, -0.639937, -0.692498, -0.748301, -0.807403, -0.869845 };

static void check_gdn(const aeg_kernels *k)
{
    float q[GDN_T][16] = { { 0 } }, key[GDN_T][16] = { { 0 } }, v[GDN_T][GDN_DV] = { { 0 } }, o[GDN_T][GDN_DV];
    float state[GDN_D * GDN_DV] = { 0 }, decay[GDN_T], beta[GDN_T];
    for (int t = 0; t < GDN_T; t++) {
        for (int i = 0; i < GDN_D; i++) {
            q[t][i] = (float)sin(1 + 4 * t + i);
            key[t][i] = (float)cos(2 + 4 * t + i);
            v[t][i] = (float)sin((4 * t + i) / 2.0);
        }
        k->l2norm(q[t], 16, 1e-6f, 0.5f); /* the twelve zeros add nothing to the sum */
        k->l2norm(key[t], 16, 1e-6f, 1.0f);
        const float a = 0.1f * (float)t - 0.2f, b = 0.3f * (float)t - 0.5f, a_log = 0.3f, dt_bias = -0.4f;
        k->gdn_gates(&beta[t], &decay[t], &b, &a, &a_log, &dt_bias, 1);
        OPS_CHECK(fabs(beta[t] - gdn_beta[t]) < 1e-6, "beta of token %d is %g", t, (double)beta[t]);
        OPS_CHECK(fabs(log(decay[t]) - gdn_log_decay[t]) < 1e-6, "log decay of token %d is %g", t, log(decay[t]));
    }
    const aeg_gdn_args a = { .state = state, .q = q[0], .k = key[0], .q_stride = 16, .k_stride = 16, .v = v[0],
                             .v_stride = GDN_DV, .decay = decay, .beta = beta, .decay_stride = 1, .beta_stride = 1,
                             .o = o[0], .o_stride = GDN_DV, .dk = GDN_D, .dv = GDN_DV, .n_tokens = GDN_T };
    k->gdn(&a, 0, 1);
    for (int t = 0; t < GDN_T; t++)
        for (int i = 0; i < GDN_D; i++)
            OPS_CHECK(fabs(o[t][i] - gdn_o[t][i]) < 2e-6, "o[%d][%d] is %g", t, i, (double)o[t][i]);
    for (int i = 0; i < GDN_D; i++)
        for (int j = 0; j < GDN_D; j++)
            OPS_CHECK(fabs(state[i * GDN_DV + j] - gdn_state[i][j]) < 2e-6, "S[%d][%d] is %g", i, j,
                      (double)state[i * GDN_DV + j]);

    /* o of the last token as one head of four: the mean over 16 is a quarter of the mean over 4: twice o makes up
     * for that, and y is twice as large */
    float doubled[16] = { 0 }, y[16];
    const float z[16] = { 0.5f, -1.0f, 2.0f, 0.0f }, w[16] = { 1.0f, 0.5f, 2.0f, 1.5f };
    const double want[4] = { 0.173204, -0.134906, 4.243082, 0.0 };
    for (int i = 0; i < GDN_D; i++)
        doubled[i] = 2.0f * o[GDN_T - 1][i];
    k->rmsnorm_gated(y, doubled, z, w, 16, 1e-6f);
    for (int i = 0; i < 4; i++)
        OPS_CHECK(fabs(y[i] / 2 - want[i]) < 1e-5, "gated norm [%d] is %g", i, (double)y[i] / 2);
}

static void check_conv(const aeg_kernels *k)
{
    const float w[4] = { 1, 2, 3, 4 }, x[7] = { 0, 0, 0, 1, 10, 100, 1000 };
    const double sums[4] = { 4, 43, 432, 4321 };
    for (int t = 0; t < 4; t++) {
        float y;
        k->conv4_silu(&y, &x[t], &x[t + 1], &x[t + 2], &x[t + 3], w, 1);
        OPS_CHECK(relative(y, sums[t] / (1 + exp(-sums[t]))) < 3e-7, "conv at %d is %g", t, (double)y);
    }
}

static void check_rope(const aeg_kernels *k)
{
    float x[64], c[32], s[32];
    const int at[] = { 0, 1, 2, 31, 32, 33, 34, 63 };
    const double want[] = { -5.646953, -33.487975, -29.748113, 31.999968, -32.528632, -6.209312, 18.682874, 64.000016 };
    for (int i = 0; i < 64; i++)
        x[i] = (float)(i + 1);
    for (int i = 0; i < 32; i++) {
        const double angle = 3.0 * pow(1e7, -i / 32.0);
        c[i] = (float)cos(angle);
        s[i] = (float)sin(angle);
    }
    float pairs[64], pair_c[32], pair_s[32];
    for (int i = 0; i < 32; i++) { /* the same pairs, neighbours instead of halves */
        pairs[2 * i] = x[i];
        pairs[2 * i + 1] = x[i + 32];
        pair_c[i] = c[i];
        pair_s[i] = s[i];
    }
    k->rope_pairs(pairs, pair_c, pair_s, 32);
    k->rope(x, c, s, 32);
    for (int i = 0; i < 32; i++)
        OPS_CHECK(pairs[2 * i] == x[i] && pairs[2 * i + 1] == x[i + 32], "pair %d is not half %d", i, i);
    for (int i = 0; i < 8; i++)
        OPS_CHECK(fabs(x[at[i]] - want[i]) < 1e-5, "rotated [%d] is %.7g, not %.7g", at[i], (double)x[at[i]], want[i]);
}

enum { MAX_POS = 600, DIM = 32, REP = 3 };
static float att_q[REP][DIM], att_k[MAX_POS][DIM], att_v[MAX_POS][DIM];

static void plain_softmax(double *out, const float *q, uint32_t n, double scale)
{
    static double score[MAX_POS];
    double top = -1e300, sum = 0;
    for (uint32_t p = 0; p < n; p++) {
        score[p] = 0;
        for (int d = 0; d < DIM; d++)
            score[p] += scale * q[d] * (double)att_k[p][d];
        top = fmax(top, score[p]);
    }
    memset(out, 0, DIM * sizeof *out);
    for (uint32_t p = 0; p < n; p++) {
        const double w = exp(score[p] - top);
        sum += w;
        for (int d = 0; d < DIM; d++)
            out[d] += w * (double)att_v[p][d];
    }
    for (int d = 0; d < DIM; d++)
        out[d] /= sum;
}

/* Blocks of 256 positions merged in order against softmax in double. */
static void check_attention_of(const aeg_kernels *k, uint32_t n, const char *what)
{
    static float scratch[REP * AEG_ATTN_BLOCK];
    float m[REP], l[REP], acc[REP][DIM] = { { 0 } }, m2[REP], l2[REP], acc2[REP][DIM];
    for (int h = 0; h < REP; h++) {
        m[h] = -INFINITY;
        l[h] = 0.0f;
    }
    for (uint32_t first = 0; first < n; first += AEG_ATTN_BLOCK) {
        const uint32_t left = n - first;
        const aeg_attn_args a = { .q = att_q[0], .q_stride = DIM, .k = att_k[first], .v = att_v[first],
                                  .kv_stride = sizeof att_k[0], .n_tokens = 1, .n_rep = REP, .head_dim = DIM, .scale = 0.25f,
                                  .n_pos = left < AEG_ATTN_BLOCK ? left : AEG_ATTN_BLOCK,
                                  .out_m = m2, .out_l = l2, .acc = acc2[0], .scratch = scratch };
        k->attn_f32(&a);
        for (int h = 0; h < REP; h++)
            k->attn_merge(&m[h], &l[h], acc[h], m2[h], l2[h], acc2[h], DIM);
    }
    for (int h = 0; h < REP; h++) {
        double want[DIM];
        plain_softmax(want, att_q[h], n, 0.25);
        for (int d = 0; d < DIM; d++)
            OPS_CHECK(fabs(acc[h][d] / l[h] - want[d]) < 3e-6, "%s, %u positions, head %d, [%d]: %g, not %g", what, n,
                      h, d, (double)(acc[h][d] / l[h]), want[d]);
    }
}

static void check_attention(const aeg_kernels *k)
{
    const uint32_t sizes[] = { 1, 2, 255, 256, 257, 512, 513, MAX_POS };
    ops_world w = { .random = 7 };
    for (int h = 0; h < REP; h++)
        for (int d = 0; d < DIM; d++)
            att_q[h][d] = ops_value(&w);
    for (int p = 0; p < MAX_POS; p++)
        for (int d = 0; d < DIM; d++) {
            att_k[p][d] = ops_value(&w);
            att_v[p][d] = ops_value(&w);
        }
    for (int i = 0; i < 8; i++)
        check_attention_of(k, sizes[i], "random");
    for (int d = 0; d < DIM; d++)
        att_k[300][d] = 3000.0f * att_q[1][d]; /* one huge score among ordinary ones */
    check_attention_of(k, MAX_POS, "one huge score");
    memset(att_q, 0, sizeof att_q);
    check_attention_of(k, MAX_POS, "all scores equal");
}

static void check_router(const aeg_kernels *k)
{
    const float logits[8] = { 1.0f, 3.0f, -0.0f, 3.0f, 0.0f, 3.0f, -5.0f, NAN };
    float weights[8], scratch[8];
    uint16_t ids[8];
    k->router(ids, weights, logits, 7, 2, 1, scratch);
    OPS_CHECK(ids[0] == 1 && ids[1] == 3, "ids %u %u", ids[0], ids[1]); /* lower ids of the tie */
    OPS_CHECK(weights[0] == 0.5f && weights[1] == 0.5f, "weights %g %g", (double)weights[0], (double)weights[1]);
    k->router(ids, weights, logits, 8, 5, 1, scratch);
    OPS_CHECK(ids[0] == 0 && ids[1] == 1 && ids[2] == 2 && ids[3] == 3 && ids[4] == 5, "-0 does not tie with 0");
    k->router(ids, weights, logits, 8, 8, 1, scratch);
    for (uint16_t i = 0; i < 8; i++)
        OPS_CHECK(ids[i] == i, "all chosen: ids[%u] is %u", i, ids[i]);
    k->router(ids, weights, logits, 7, 4, 0, scratch);
    double all = 0;
    for (int i = 0; i < 7; i++)
        all += exp(logits[i]);
    for (int i = 0; i < 4; i++)
        OPS_CHECK(relative(weights[i], exp(logits[ids[i]]) / all) < 3e-7, "weight %d is %g", i, (double)weights[i]);
}

/* Four groups of three, two of which stay. Scores less bias are negative: an excluded expert at 0 would win. */
static void check_route(const aeg_kernels *k)
{
    const float logits[12] = { 2, 1, -3, 0.5f, 0.4f, 0.3f, -1, -2, 3, 1.5f, 1.4f, NAN };
    float bias[12], weights[3], scratch[12 * 2 + 4];
    uint16_t ids[3];
    for (int i = 0; i < 12; i++)
        bias[i] = -2.0f;
    aeg_route_args a = { .logits = logits, .bias = bias, .n = 12, .top_k = 3, .n_groups = 4, .top_groups = 2, .sigmoid = true,
                         .renormalise = true, .group_top2 = true, .scale = 2.5f, .scratch = scratch, .ids = ids, .weights = weights };
    k->route(&a); /* sums of two: 1.612, 1.221, 1.222, 1.620 */
    OPS_CHECK(ids[0] == 0 && ids[1] == 9 && ids[2] == 10, "the best pairs of groups: %u %u %u", ids[0], ids[1], ids[2]);
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += 1 / (1 + exp(-(double)logits[ids[i]]));
    for (int i = 0; i < 3; i++)
        OPS_CHECK(relative(weights[i], 2.5 / (1 + exp(-(double)logits[ids[i]])) / sum) < 4e-7, "weight %d is %g", i, (double)weights[i]);
    a.group_top2 = false;
    a.renormalise = false;
    k->route(&a); /* bests: 0.881, 0.622, 0.953, 0.818 */
    OPS_CHECK(ids[0] == 0 && ids[1] == 1 && ids[2] == 8, "the best of groups: %u %u %u", ids[0], ids[1], ids[2]);
    bias[4] = 3.0f;
    a.sigmoid = false;
    a.n = 11;
    a.n_groups = a.top_groups = 1;
    k->route(&a);
    OPS_CHECK(ids[0] == 0 && ids[1] == 4 && ids[2] == 8, "bias decides: %u %u %u", ids[0], ids[1], ids[2]);
    sum = 0;
    for (int i = 0; i < 11; i++)
        sum += exp(logits[i]);
    OPS_CHECK(relative(weights[1], 2.5 * exp(logits[4]) / sum) < 4e-7, "softmax weight %g", (double)weights[1]);
}

static void check_quantize(const aeg_kernels *k)
{
    float x[64], d[2], s[2];
    int8_t q[64];
    int16_t wide[64];
    ops_world w = { .random = 9 };

    for (int i = 0; i < 64; i++)
        x[i] = i < 32 ? 0.0f : ops_value(&w);
    k->quantize_i8(q, d, s, x, 64, 32);
    OPS_CHECK(d[0] == 0.0f && s[0] == 0.0f && q[0] == 0 && q[31] == 0, "a zero block has d %g", (double)d[0]);
    int sum = 0, largest = 0;
    for (int i = 32; i < 64; i++) {
        OPS_CHECK(fabs(x[i] - (double)d[1] * q[i]) <= d[1] * 0.5001, "code %d of %g at scale %g", q[i], (double)x[i],
                  (double)d[1]);
        sum += q[i];
        largest = abs(q[i]) > largest ? abs(q[i]) : largest;
    }
    OPS_CHECK(largest == 127 && s[1] == d[1] * (float)sum, "largest code %d", largest);
    k->quantize_i16(wide, d, s, x, 64, 64);
    for (int i = 0; i < 64; i++)
        OPS_CHECK(fabs(x[i] - (double)d[0] * wide[i]) <= d[0] * 0.51, "code %d of %g", wide[i], (double)x[i]);

    int32_t sums[4];
    k->code_sums_i8(sums, q, 64);
    OPS_CHECK(sums[0] == 0 && sums[1] == 0 && sums[2] + sums[3] == sum, "sums %d and %d of codes with sum %d", sums[2],
              sums[3], sum);
    k->code_sums_i16(sums, wide, 64);
    for (int i = 48; i < 64; i++)
        sums[3] -= wide[i];
    OPS_CHECK(sums[3] == 0, "the sum of the last 16 codes is off by %d", sums[3]);

    for (int i = 0; i < 64; i++) /* a scale of exactly 1: ties go to the even code */
        x[i] = i == 0 ? 127.0f : i == 32 ? -127.0f : (float)(i % 32) - 0.5f;
    k->quantize_i8(q, d, s, x, 64, 32);
    OPS_CHECK(d[0] == 1.0f && q[1] == 0 && q[2] == 2 && q[3] == 2 && q[4] == 4 && q[32] == -127, "%d %d %d %d", q[1],
              q[2], q[3], q[4]);

    for (int i = 0; i < 64; i++)
        x[i] = i < 32 ? 1e-40f : (i == 40 ? NAN : 1.0f);
    k->quantize_i8(q, d, s, x, 64, 32);
    OPS_CHECK(d[0] == 0.0f && q[5] == 0, "denormals are zero; d is %g", (double)d[0]);
    OPS_CHECK(isnan(d[1]) && isnan(s[1]) && q[33] == 0 && q[40] == 0, "a NaN is lost in d %g", (double)d[1]);
    x[40] = -INFINITY;
    k->quantize_i16(wide, d, s, x, 64, 64);
    OPS_CHECK(isnan(d[0]) && isnan(s[0]) && wide[0] == 0, "an infinity is lost in d %g", (double)d[0]);
}

void ops_check_truth(const aeg_kernels *k)
{
    check_exp();
    check_halves(k);
    check_gdn(k);
    check_conv(k);
    check_rope(k);
    check_attention(k);
    check_router(k);
    check_route(k);
    check_quantize(k);
}
