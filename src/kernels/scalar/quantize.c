/* SPDX-License-Identifier: Apache-2.0 */
/* scalar/quantize.c - activations into int8 or int16 codes per block (rule: weights.h). */
#include "kernels/register.h"
#include "kernels/math.h"

/* The scale of one block, and its reciprocal (0 if all codes are to be 0). The largest magnitude is taken from the
 * bits: integers order like the floats and a NaN or infinity comes out on top, so it cannot be lost. Such a
 * block gets d = s = NaN and codes 0: the product becomes NaN instead of a plausible number. */
static float block_scale(float *inverse, const float *x, uint32_t block, float top)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < block; i++) {
        const uint32_t magnitude = aeg_f32_bits(x[i]) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    const float a = aeg_f32_from_bits(largest);
    *inverse = 0.0f;
    if (largest >= 0x7f800000u)
        return aeg_f32_from_bits(0x7fc00000u);
    if (a < 1e-30f)
        return 0.0f;
    const float d = a / top;
    *inverse = 1.0f / d;
    return d;
}

static int32_t code(float x, float inverse, float top)
{
    if (inverse == 0.0f)
        return 0;
    float r = (x * inverse + AEG_ROUND_MAGIC) - AEG_ROUND_MAGIC; /* half to even */
    r = r > top ? top : r;
    r = r < -top ? -top : r;
    return (int32_t)r;
}

void aeg_scalar_quantize_i8(int8_t *q, float *d, float *s, const float *x, uint32_t n, uint32_t block)
{
    for (uint32_t b = 0; b < n / block; b++) {
        float inverse;
        int32_t sum = 0;
        d[b] = block_scale(&inverse, x + b * block, block, 127.0f);
        for (uint32_t i = b * block; i < (b + 1) * block; i++) {
            q[i] = (int8_t)code(x[i], inverse, 127.0f);
            sum += q[i];
        }
        s[b] = d[b] * (float)sum;
    }
}

void aeg_scalar_quantize_i16(int16_t *q, float *d, float *s, const float *x, uint32_t n, uint32_t block)
{
    for (uint32_t b = 0; b < n / block; b++) {
        float inverse;
        int32_t sum = 0;
        d[b] = block_scale(&inverse, x + b * block, block, 32767.0f);
        for (uint32_t i = b * block; i < (b + 1) * block; i++) {
            q[i] = (int16_t)code(x[i], inverse, 32767.0f);
            sum += q[i];
        }
        s[b] = d[b] * (float)sum;
    }
}

void aeg_scalar_code_sums_i8(int32_t *sums, const int8_t *q, uint32_t n16)
{
    for (uint32_t b = 0; b < n16 / 16; b++) {
        sums[b] = 0;
        for (uint32_t i = 0; i < 16; i++)
            sums[b] += q[16 * b + i];
    }
}

void aeg_scalar_code_sums_i16(int32_t *sums, const int16_t *q, uint32_t n16)
{
    for (uint32_t b = 0; b < n16 / 16; b++) {
        sums[b] = 0;
        for (uint32_t i = 0; i < 16; i++)
            sums[b] += q[16 * b + i];
    }
}
