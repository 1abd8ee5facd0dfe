/* SPDX-License-Identifier: Apache-2.0 */
/* scalar/sums.h - the one order of every reduction: 16 partial sums, then a fixed tree (kernels.h). */
#ifndef AEG_KERNELS_SCALAR_SUMS_H
#define AEG_KERNELS_SCALAR_SUMS_H

#include "kernels/math.h"

enum { AEG_LANES = 16 };

static inline float aeg_tree_sum(float *p)
{
    for (int half = AEG_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            p[i] += p[i + half];
    return p[0];
}

static inline float aeg_tree_max(float *p)
{
    for (int half = AEG_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            p[i] = aeg_maxf(p[i], p[i + half]);
    return p[0];
}

/* sum of a[i] * b[i]; n a multiple of 16 */
static inline float aeg_dot16(const float *a, const float *b, uint32_t n)
{
    float p[AEG_LANES] = { 0 };
    for (uint32_t i = 0; i < n; i++)
        p[i % AEG_LANES] = fmaf(a[i], b[i], p[i % AEG_LANES]);
    return aeg_tree_sum(p);
}

/* sum of x[i]; any n */
static inline float aeg_sum16(const float *x, uint32_t n)
{
    float p[AEG_LANES] = { 0 };
    for (uint32_t i = 0; i < n; i++)
        p[i % AEG_LANES] += x[i];
    return aeg_tree_sum(p);
}

/* largest x[i]; any n; NaNs are passed over; -inf if nothing is left */
static inline float aeg_max16(const float *x, uint32_t n)
{
    float p[AEG_LANES];
    for (int i = 0; i < AEG_LANES; i++)
        p[i] = -INFINITY;
    for (uint32_t i = 0; i < n; i++)
        p[i % AEG_LANES] = aeg_maxf(x[i], p[i % AEG_LANES]);
    return aeg_tree_max(p);
}

#endif
