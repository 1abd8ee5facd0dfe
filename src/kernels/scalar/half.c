/* SPDX-License-Identifier: Apache-2.0 */
/* scalar/half.c - f32 to f16, nearest even. */
#include "kernels/register.h"
#include "kernels/half.h"

void aeg_scalar_store_f16(uint16_t *y, const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        y[i] = aeg_f16_from_f32(x[i]);
}
