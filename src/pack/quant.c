/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/quant.h"

#include <math.h>
#include <string.h>

#include "kernels/half.h"

/* Integers in the order of the floats: min and max of integers need no care for NaN, so compilers vectorise
 * them, and a value that is not finite shows at the ends. */
static inline int32_t order_key(float f)
{
    const int32_t i = (int32_t)aeg_f32_bits(f);
    return i ^ (int32_t)((uint32_t)(i >> 31) & 0x7fffffffu);
}

static inline float key_value(int32_t key)
{
    return aeg_f32_from_bits((uint32_t)(key ^ (int32_t)((uint32_t)(key >> 31) & 0x7fffffffu)));
}

static bool range(const float *w, uint32_t group, float *min, float *max)
{
    const int32_t infinity = 0x7f800000;
    int32_t low = INT32_MAX, high = INT32_MIN;
    for (uint32_t i = 0; i < group; i++) {
        const int32_t key = order_key(w[i]);
        low = key < low ? key : low;
        high = key > high ? key : high;
    }
    *min = key_value(low);
    *max = key_value(high);
    return high < infinity && low > ~infinity;
}

bool aeg_quantise_group(const float *w, uint32_t group, uint32_t bits, uint8_t *codes, float *scale, float *bias)
{
    const float top = (float)((1u << bits) - 1);
    float min, max;
    if (!range(w, group, &min, &max))
        return false;
    const bool anchor_low = fabsf(min) > fabsf(max);
    const float edge = anchor_low ? min : max;
    float s = (max - min) / top;
    s = s > 1e-7f ? s : 1e-7f;
    s = anchor_low ? s : -s;
    const float q0 = rintf(edge / s);
    float b = 0.0f;
    if (q0 != 0.0f) {
        s = edge / q0;
        b = edge;
    }
    if (!isfinite(s))
        return false;
    /* Adding and taking away 1.5 * 2^23 rounds to an integer, half to even, without a call; a value too large
     * for that is far outside [0, top] and clamped. */
    const float magic = 12582912.0f;
    for (uint32_t i = 0; i < group; i++) {
        float q = (w[i] - b) / s;
        q = (q + magic) - magic;
        q = q > 0.0f ? q : 0.0f;
        q = q < top ? q : top;
        codes[i] = (uint8_t)(int32_t)q;
    }
    *scale = s;
    *bias = b;
    return true;
}

void aeg_codes_pack(const uint8_t *codes, size_t n, uint32_t bits, uint8_t *out)
{
    for (size_t i = 0; i < n; i += 8) { /* eight codes are `bits` bytes */
        uint64_t v = 0;
        for (uint32_t k = 0; k < 8; k++)
            v |= (uint64_t)codes[i + k] << (k * bits);
        for (uint32_t k = 0; k < bits; k++)
            out[k] = (uint8_t)(v >> (8 * k));
        out += bits;
    }
}

void aeg_codes_unpack(const uint8_t *in, size_t n, uint32_t bits, uint8_t *codes)
{
    const uint64_t mask = (1u << bits) - 1;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t v = 0;
        for (uint32_t k = 0; k < bits; k++)
            v |= (uint64_t)in[k] << (8 * k);
        for (uint32_t k = 0; k < 8; k++)
            codes[i + k] = (uint8_t)(v >> (k * bits) & mask);
        in += bits;
    }
}

uint32_t aeg_stored_bits(uint32_t kind, float value)
{
    return kind == AEG_W_BF16 ? aeg_bf16_from_f32(value) : kind == AEG_W_F16 ? aeg_f16_from_f32(value) : aeg_f32_bits(value);
}
