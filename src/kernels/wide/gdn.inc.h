/* SPDX-License-Identifier: Apache-2.0 */
/* wide/gdn.inc.h - the gated delta rule: lane = value column, so sums over i run down the rows and need no
 * horizontal step. Each is one fma chain: several strips side by side hide its latency. */

static void gdn_gates(float *beta, float *decay, const float *b, const float *a, const float *a_log,
                      const float *dt_bias, uint32_t n_heads)
{
    /* 32 heads a layer: the scalar functions are quick enough */
    for (uint32_t h = 0; h < n_heads; h++) {
        beta[h] = aeg_sigmoid(b[h]);
        decay[h] = aeg_expf(-aeg_expf(a_log[h]) * aeg_softplus(a[h] + dt_bias[h]));
    }
}

/* All tokens through n strips from `strip` on. Pass 1 does not write the decayed state: pass 2 multiplies again,
 * which gives the same bits and saves a store per vector. */
LANES_INLINE void gdn_strips(const aeg_gdn_args *a, uint32_t strip, const uint32_t n)
{
    const size_t strip_floats = (size_t)a->dk * LANES;
    float *S = a->state + strip * strip_floats;

    for (uint32_t t = 0; t < a->n_tokens; t++) {
        const float *k = a->k + t * a->k_stride, *q = a->q + t * a->q_stride;
        const float *v = a->v + t * a->v_stride + strip * LANES;
        float *out = a->o + t * a->o_stride + strip * LANES;
        const lanes decay = l_set1(a->decay[t * a->decay_stride]), beta = l_set1(a->beta[t * a->beta_stride]);
        lanes r[GDN_STRIPS], o[GDN_STRIPS];

        for (uint32_t j = 0; j < n; j++)
            r[j] = o[j] = l_set1(0.0f);
        for (uint32_t i = 0; i < a->dk; i++) {
            const lanes ki = l_set1(k[i]);
            for (uint32_t j = 0; j < n; j++)
                r[j] = l_fma(ki, l_mul(decay, l_load(S + j * strip_floats + i * LANES)), r[j]);
        }
        for (uint32_t j = 0; j < n; j++)
            r[j] = l_mul(beta, l_sub(l_load(v + j * LANES), r[j])); /* now delta */
        for (uint32_t i = 0; i < a->dk; i++) {
            const lanes ki = l_set1(k[i]), qi = l_set1(q[i]);
            for (uint32_t j = 0; j < n; j++) {
                float *at = S + j * strip_floats + i * LANES;
                const lanes s = l_fma(ki, r[j], l_mul(decay, l_load(at)));
                l_store(at, s);
                o[j] = l_fma(qi, s, o[j]);
            }
        }
        for (uint32_t j = 0; j < n; j++)
            l_store(out + j * LANES, o[j]);
    }
}

static void gdn(const aeg_gdn_args *a, uint32_t strip0, uint32_t strip1)
{
    uint32_t strip = strip0;
    for (; strip + GDN_STRIPS <= strip1; strip += GDN_STRIPS)
        gdn_strips(a, strip, GDN_STRIPS);
    for (; strip < strip1; strip++)
        gdn_strips(a, strip, 1);
}
