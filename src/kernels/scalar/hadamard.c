/* SPDX-License-Identifier: Apache-2.0 */
/* scalar/hadamard.c - the Walsh-Hadamard transform in natural order, not normalised. */
#include "kernels/register.h"

void aeg_scalar_hadamard(float *x, uint32_t n)
{
    for (uint32_t h = 1; h < n; h *= 2)
        for (uint32_t i = 0; i < n; i++)
            if ((i & h) == 0) {
                const float a = x[i], b = x[i + h];
                x[i] = a + b;
                x[i + h] = a - b;
            }
}
