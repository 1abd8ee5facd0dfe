/* SPDX-License-Identifier: Apache-2.0 */
/* scalar/rope.c - rotary positions on halves and on pairs of neighbours (formula: kernels.h). */
#include "kernels/register.h"
#include "kernels/math.h"

void aeg_scalar_rope(float *x, const float *cos, const float *sin, uint32_t half)
{
    for (uint32_t i = 0; i < half; i++) {
        const float xi = x[i], xj = x[i + half];
        x[i] = fmaf(xi, cos[i], -(xj * sin[i]));
        x[i + half] = fmaf(xj, cos[i], xi * sin[i]);
    }
}

void aeg_scalar_rope_pairs(float *x, const float *cos, const float *sin, uint32_t half)
{
    for (uint32_t i = 0; i < half; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = fmaf(a, cos[i], -(b * sin[i]));
        x[2 * i + 1] = fmaf(b, cos[i], a * sin[i]);
    }
}
