/* SPDX-License-Identifier: Apache-2.0 */
/* scalar/norm.c - RMS norm, its gated form, and L2 norm (formulas: kernels.h). */
#include "kernels/register.h"
#include "kernels/scalar/sums.h"

static float inverse_rms(const float *x, uint32_t n, float eps)
{
    return 1.0f / sqrtf(aeg_dot16(x, x, n) / (float)n + eps);
}

void aeg_scalar_rmsnorm(float *y, const float *x, const float *w, uint32_t n16, float eps)
{
    const float r = inverse_rms(x, n16, eps);
    for (uint32_t i = 0; i < n16; i++)
        y[i] = (x[i] * r) * w[i];
}

void aeg_scalar_rmsnorm_gated(float *y, const float *o, const float *z, const float *w, uint32_t n16, float eps)
{
    const float r = inverse_rms(o, n16, eps);
    for (uint32_t i = 0; i < n16; i++)
        y[i] = ((o[i] * r) * w[i]) * aeg_silu(z[i]);
}

void aeg_scalar_l2norm(float *x, uint32_t n16, float eps, float scale)
{
    const float f = scale * (1.0f / sqrtf(aeg_dot16(x, x, n16) + eps));
    for (uint32_t i = 0; i < n16; i++)
        x[i] *= f;
}
