/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/half.h - f16 and bf16 bits to and from f32, exact or round-to-nearest-even. Thread: any. */
#ifndef AEG_KERNELS_HALF_H
#define AEG_KERNELS_HALF_H

#include <stdint.h>
#include <string.h>

static inline float aeg_f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint32_t aeg_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float aeg_f32_from_bf16(uint16_t h) { return aeg_f32_from_bits((uint32_t)h << 16); }

static inline uint16_t aeg_bf16_from_f32(float f)
{
    const uint32_t u = aeg_f32_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((u >> 16) | 0x40u); /* keep a NaN a NaN */
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

static inline float aeg_f32_from_f16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t exponent = (h >> 10) & 31u;
    uint32_t mantissa = h & 0x3ffu;
    if (exponent == 31)
        return aeg_f32_from_bits(sign | 0x7f800000u | (mantissa << 13));
    if (exponent != 0)
        return aeg_f32_from_bits(sign | ((exponent + 112) << 23) | (mantissa << 13));
    if (mantissa == 0)
        return aeg_f32_from_bits(sign);
    uint32_t e = 113;
    while ((mantissa & 0x400u) == 0) {
        mantissa <<= 1;
        e--;
    }
    return aeg_f32_from_bits(sign | (e << 23) | ((mantissa & 0x3ffu) << 13));
}

/* A 256th of an e4m3 code: seen as a binary16 its exponent is 8 too low, its subnormals are right. Exact. The two NaN codes
 * would be 480 / 256; nobody may pass them. */
static inline float aeg_f32_from_e4m3_256th(uint8_t code)
{
    return aeg_f32_from_f16((uint16_t)((code & 0x80u) << 8 | (code & 0x7fu) << 7));
}

/* scale * code rounded once: |scale| * 448 is finite, so 256 * scale is, and exact. */
static inline float aeg_f8_value(float scale, uint8_t code) { return 256.0f * scale * aeg_f32_from_e4m3_256th(code); }

static inline uint16_t aeg_f16_from_f32(float f)
{
    const uint32_t u = aeg_f32_bits(f);
    const uint16_t sign = (uint16_t)((u >> 16) & 0x8000u);
    const uint32_t a = u & 0x7fffffffu;
    if (a > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((a >> 13) & 0x3ffu)); /* quiet, payload kept: as the instructions do */
    if (a >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00u); /* 65520 and above round to infinity */
    if (a < 0x38800000u) {                 /* below 2^-14: subnormal, or zero */
        /* Adding 0.5 puts the f16 subnormal unit (2^-24) at the last f32 bit: the FPU rounds for us. */
        const float r = aeg_f32_from_bits(a) + 0.5f;
        return (uint16_t)(sign | (uint16_t)(aeg_f32_bits(r) - 0x3f000000u));
    }
    const uint32_t odd = (a >> 13) & 1u;
    return (uint16_t)(sign | (uint16_t)((a + 0xc8000fffu + odd) >> 13));
}

#endif
