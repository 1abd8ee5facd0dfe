/* SPDX-License-Identifier: Apache-2.0 */
/* wide/norm.inc.h - RMS norm, its gated form, L2 norm. The sum of squares is one chain (kernels.h), so a row of
 * 2048 costs 128 fma latencies; callers that have several rows gain by the processor overlapping them. */

static float inverse_rms(const float *x, uint32_t n, float eps)
{
    return 1.0f / sqrtf(l_sum(l_dot_partial(x, x, n)) / (float)n + eps);
}

static void rmsnorm(float *y, const float *x, const float *w, uint32_t n16, float eps)
{
    const lanes r = l_set1(inverse_rms(x, n16, eps));
    for (uint32_t i = 0; i < n16; i += LANES)
        l_store(y + i, l_mul(l_mul(l_load(x + i), r), l_load(w + i)));
}

static void rmsnorm_gated(float *y, const float *o, const float *z, const float *w, uint32_t n16, float eps)
{
    const lanes r = l_set1(inverse_rms(o, n16, eps));
    for (uint32_t i = 0; i < n16; i += LANES) {
        const lanes normed = l_mul(l_mul(l_load(o + i), r), l_load(w + i));
        l_store(y + i, l_mul(normed, l_silu(l_load(z + i))));
    }
}

static void l2norm(float *x, uint32_t n16, float eps, float scale)
{
    const lanes f = l_set1(scale * (1.0f / sqrtf(l_sum(l_dot_partial(x, x, n16)) + eps)));
    for (uint32_t i = 0; i < n16; i += LANES)
        l_store(x + i, l_mul(l_load(x + i), f));
}
