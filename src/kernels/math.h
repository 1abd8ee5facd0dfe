/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/math.h - exp, sigmoid, silu and softplus as fixed sequences of f32 operations.
 *
 * libm differs between machines and between its own vector and scalar code; these do not: fmaf, add, multiply,
 * divide and bit moves only, so every ISA level gives the same bits (wide/lanes_math.inc.h repeats aeg_expf lane
 * by lane: change both together). Rounding mode: nearest, as everywhere. A NaN gives a NaN. Thread: any.
 */
#ifndef AEG_KERNELS_MATH_H
#define AEG_KERNELS_MATH_H

#include <math.h>

#include "kernels/half.h"

/* exp: x = n ln2 + r, |r| <= ln2/2; ln2 in two constants so that n * HI is exact. */
#define AEG_EXP_LOG2E 0x1.715476p+0f
#define AEG_EXP_LN2_HI 0x1.62e4p-1f
#define AEG_EXP_LN2_LO 0x1.7f7d1cp-20f
/* Adding 1.5 * 2^23 rounds to an integer, half to even, and leaves it in the low bits. */
#define AEG_ROUND_MAGIC 12582912.0f
#define AEG_EXP_MIN (-87.3f)            /* this and below: 0; above, all are normal numbers */
#define AEG_EXP_MAX 0x1.62e42ep+6f      /* above (88.72283): infinity                      */
/* e^r = 1 + r + r^2 (C2 + C3 r + ... + C6 r^4), Chebyshev fit, error 1.1e-8 before rounding. */
#define AEG_EXP_C2 0.5f
#define AEG_EXP_C3 0x1.5554dcp-3f
#define AEG_EXP_C4 0x1.55551ap-5f
#define AEG_EXP_C5 0x1.120ba2p-7f
#define AEG_EXP_C6 0x1.6d113cp-10f

/* a if a > b, else b: the x86 rule, so a NaN in `a` is passed over. */
static inline float aeg_maxf(float a, float b) { return a > b ? a : b; }

static inline float aeg_expf(float x)
{
    const float t = fmaf(x, AEG_EXP_LOG2E, AEG_ROUND_MAGIC);
    const float n = t - AEG_ROUND_MAGIC;
    float r = fmaf(n, -AEG_EXP_LN2_HI, x);
    r = fmaf(n, -AEG_EXP_LN2_LO, r);
    float p = fmaf(AEG_EXP_C6, r, AEG_EXP_C5);
    p = fmaf(p, r, AEG_EXP_C4);
    p = fmaf(p, r, AEG_EXP_C3);
    p = fmaf(p, r, AEG_EXP_C2);
    p = fmaf(p, r * r, r) + 1.0f;
    /* times 2^n by adding n to the exponent: n = 128 is reached only with p < 1 */
    const float y = aeg_f32_from_bits(aeg_f32_bits(p) + (aeg_f32_bits(t) << 23));
    const float top = x <= AEG_EXP_MAX ? y : x + INFINITY; /* a NaN comes this way, and stays one */
    return x <= AEG_EXP_MIN ? 0.0f : top;
}

static inline float aeg_sigmoid(float x) { return 1.0f / (1.0f + aeg_expf(-x)); }
static inline float aeg_silu(float x) { return x * aeg_sigmoid(x); }

/* log(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)]: f - f^2/2 + f^3 P(f), error 4e-9 before rounding. */
static inline float aeg_log1p_near(float f)
{
    float p = fmaf(0x1.1d982ap-4f, f, -0x1.d6453cp-4f);
    p = fmaf(p, f, 0x1.dea656p-4f);
    p = fmaf(p, f, -0x1.fcf30ep-4f);
    p = fmaf(p, f, 0x1.23d1d6p-3f);
    p = fmaf(p, f, -0x1.555b5p-3f);
    p = fmaf(p, f, 0x1.999d5cp-3f);
    p = fmaf(p, f, -0x1.fffffcp-3f);
    p = fmaf(p, f, 0x1.555554p-2f);
    const float f2 = f * f;
    return fmaf(f2 * f, p, fmaf(f2, -0.5f, f));
}

/* log(1 + e) for e >= 0. u = 1 + e loses low bits of e; (e - (u - 1)) / u brings them back, which for tiny e
 * is the whole answer. */
static inline float aeg_log1pf(float e)
{
    const float u = 1.0f + e;
    const uint32_t bits = aeg_f32_bits(u);
    const int32_t k = (int32_t)((bits - 0x3f3504f3u) >> 23); /* u = m 2^k, m in [sqrt(1/2), sqrt(2)) */
    const float m = aeg_f32_from_bits(bits - ((uint32_t)k << 23));
    const float low = (e - (u - 1.0f)) / u;
    const float y = fmaf((float)k, AEG_EXP_LN2_LO, aeg_log1p_near(m - 1.0f) + low);
    return fmaf((float)k, AEG_EXP_LN2_HI, y);
}

/* log(1 + e^x) */
static inline float aeg_softplus(float x) { return x > 20.0f ? x : aeg_log1pf(aeg_expf(x)); }

#endif
