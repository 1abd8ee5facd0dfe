/* SPDX-License-Identifier: Apache-2.0 */
/* scalar/conv.c - the causal depthwise convolution of four taps, with SiLU (formula: kernels.h). */
#include "kernels/register.h"
#include "kernels/math.h"

void aeg_scalar_conv4_silu(float *out, const float *x0, const float *x1, const float *x2, const float *x3,
                           const float *w, uint32_t n)
{
    for (size_t c = 0; c < n; c++) {
        float s = w[c] * x0[c];
        s = fmaf(w[n + c], x1[c], s);
        s = fmaf(w[2 * (size_t)n + c], x2[c], s);
        s = fmaf(w[3 * (size_t)n + c], x3[c], s);
        out[c] = aeg_silu(s);
    }
}
