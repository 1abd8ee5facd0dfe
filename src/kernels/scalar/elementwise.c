/* SPDX-License-Identifier: Apache-2.0 */
/* scalar/elementwise.c - activations, adds, and the plain dot product (formulas: kernels.h). */
#include "kernels/register.h"
#include "kernels/scalar/sums.h"

void aeg_scalar_silu_mul(float *y, const float *gate, const float *up, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        y[i] = aeg_silu(gate[i]) * up[i];
}

void aeg_scalar_sigmoid_mul(float *x, const float *gate, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] *= aeg_sigmoid(gate[i]);
}

void aeg_scalar_add(float *y, const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        y[i] += x[i];
}

void aeg_scalar_axpy(float *y, float a, const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        y[i] = fmaf(a, x[i], y[i]);
}

float aeg_scalar_dot(const float *a, const float *b, uint32_t n16)
{
    return aeg_dot16(a, b, n16);
}
