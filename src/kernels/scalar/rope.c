/* SPDX-License-Identifier: Apache-2.0 */
/* scalar/rope.c - rotary positions on halves (formula: kernels.h). */
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
