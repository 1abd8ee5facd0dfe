/* SPDX-License-Identifier: Apache-2.0 */
/* scalar/gdn.c - the gated delta rule, one token after the other (formulas: kernels.h). */
#include "kernels/register.h"
#include "kernels/math.h"

void aeg_scalar_gdn_gates(float *beta, float *decay, const float *b, const float *a, const float *a_log,
                          const float *dt_bias, uint32_t n_heads)
{
    for (uint32_t h = 0; h < n_heads; h++) {
        beta[h] = aeg_sigmoid(b[h]);
        decay[h] = aeg_expf(-aeg_expf(a_log[h]) * aeg_softplus(a[h] + dt_bias[h]));
    }
}

/* One value column `c` of the strip whose state is S[dk][16]. */
static void step_column(const aeg_gdn_args *a, float *S, uint32_t column, uint32_t t)
{
    const float *k = a->k + t * a->k_stride, *q = a->q + t * a->q_stride;
    const float decay = a->decay[t * a->decay_stride], beta = a->beta[t * a->beta_stride];
    const uint32_t c = column % AEG_GDN_STRIP;
    float r = 0.0f, o = 0.0f;

    for (uint32_t i = 0; i < a->dk; i++) {
        const float s = decay * S[i * AEG_GDN_STRIP + c];
        S[i * AEG_GDN_STRIP + c] = s;
        r = fmaf(k[i], s, r);
    }
    const float delta = beta * (a->v[t * a->v_stride + column] - r);
    for (uint32_t i = 0; i < a->dk; i++) {
        const float s = fmaf(k[i], delta, S[i * AEG_GDN_STRIP + c]);
        S[i * AEG_GDN_STRIP + c] = s;
        o = fmaf(q[i], s, o);
    }
    a->o[t * a->o_stride + column] = o;
}

void aeg_scalar_gdn(const aeg_gdn_args *a, uint32_t strip0, uint32_t strip1)
{
    for (uint32_t strip = strip0; strip < strip1; strip++)
        for (uint32_t t = 0; t < a->n_tokens; t++)
            for (uint32_t c = 0; c < AEG_GDN_STRIP; c++)
                step_column(a, a->state + (size_t)strip * a->dk * AEG_GDN_STRIP, strip * AEG_GDN_STRIP + c, t);
}
