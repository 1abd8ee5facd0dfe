/* SPDX-License-Identifier: Apache-2.0 */
#include "model/rope.h"

#include <math.h>

/* The pair that turns `turns` times within the original context. */
static double pair_of(const aeg_hparams *hp, double turns)
{
    return hp->rope_dim * log(hp->yarn_orig_ctx / (turns * 2 * 3.14159265358979323846)) / (2 * log(hp->rope_theta));
}

static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

/* How much of pair i's frequency is divided by the factor: 0 up to the pair of beta_fast turns, 1 from that of beta_slow. */
static double yarn_ramp(const aeg_hparams *hp, uint32_t i)
{
    const double last = hp->rope_dim - 1.0;
    const double low = clamp(floor(pair_of(hp, (double)hp->yarn_beta_fast)), 0, last);
    const double high = clamp(ceil(pair_of(hp, (double)hp->yarn_beta_slow)), 0, last);
    return clamp((i - low) / (high > low ? high - low : 0.001), 0, 1);
}

static double yarn_m(const aeg_hparams *hp, float mscale)
{
    return hp->yarn_factor > 1 ? 0.1 * (double)mscale * log((double)hp->yarn_factor) + 1 : 1;
}

void aeg_rope_init(aeg_rope *rope, aeg_arena *arena, const aeg_hparams *hp, uint32_t chunk)
{
    rope->half = hp->rope_dim / 2;
    rope->scale = (float)(yarn_m(hp, hp->yarn_mscale) / yarn_m(hp, hp->yarn_mscale_all));
    rope->inv_freq = AEG_ARENA_ARRAY(arena, float, rope->half);
    rope->cos = AEG_ARENA_ARRAY(arena, float, (uint64_t)chunk * rope->half);
    rope->sin = AEG_ARENA_ARRAY(arena, float, (uint64_t)chunk * rope->half);
    if (rope->inv_freq == NULL)
        return;
    /* pow differs between C libraries by an ulp of double at most: invisible after rounding to f32. */
    for (uint32_t i = 0; i < rope->half; i++) {
        const double plain = 1.0 / pow(hp->rope_theta, 2.0 * i / hp->rope_dim);
        const double ramp = hp->yarn_factor != 0 ? yarn_ramp(hp, i) : 0;
        rope->inv_freq[i] = (float)(ramp > 0 ? plain / (double)hp->yarn_factor * ramp + plain * (1 - ramp) : plain);
    }
}

void aeg_sincos(float angle, float *sin_out, float *cos_out)
{
    /* Cody-Waite: pi/2 = HI + LO, HI with 33 significant bits, so that k*HI is exact for k < 2^20. */
    static const double TWO_OVER_PI = 0.63661977236758134308;
    static const double PIO2_HI = 1.57079632673412561417e+00, PIO2_LO = 6.07710050650619224932e-11;
    const double x = angle;
    const double k = nearbyint(x * TWO_OVER_PI);
    const double r = (x - k * PIO2_HI) - k * PIO2_LO;
    const double z = r * r;
    /* Taylor polynomials on [-pi/4, pi/4]: the first term left out is below 1e-12. */
    const double s = r * (1 + z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 +
                          z * (-1.0 / 39916800))))));
    const double c = 1 + z * (-0.5 + z * (1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 +
                          z * (-1.0 / 3628800 + z * (1.0 / 479001600))))));
    switch ((int64_t)k & 3) {
    case 0: *sin_out = (float)s; *cos_out = (float)c; break;
    case 1: *sin_out = (float)c; *cos_out = (float)-s; break;
    case 2: *sin_out = (float)-s; *cos_out = (float)-c; break;
    default: *sin_out = (float)-c; *cos_out = (float)s; break;
    }
}

void aeg_rope_fill(aeg_rope *rope, uint32_t pos0, uint32_t n)
{
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t i = 0; i < rope->half; i++) {
            const size_t at = (size_t)t * rope->half + i;
            const float angle = (float)(pos0 + t) * rope->inv_freq[i];
            aeg_sincos(angle, &rope->sin[at], &rope->cos[at]);
            rope->sin[at] *= rope->scale; /* by 1 nearly always: exact */
            rope->cos[at] *= rope->scale;
        }
}
