/* SPDX-License-Identifier: Apache-2.0 */
#include "kv/codes.h"

#include <math.h>
#include <string.h>

#include "kernels/math.h"

/* Midpoints between the centroids of N(0,1), ascending (spec/turboquant.md section 2). */
static const float bounds4[15] = {
    -2.4008034f, -1.8435318f, -1.4371388f, -1.0992858f, -0.7995498f, -0.5224037f, -0.2582217f, 0.0f,
    0.2582217f, 0.5224037f, 0.7995498f, 1.0992858f, 1.4371388f, 1.8435318f, 2.4008034f,
};
static const float bounds3[7] = { -1.7479275f, -1.0499573f, -0.5005497f, 0.0f, 0.5005497f, 1.0499573f, 1.7479275f };

void aeg_kv_signs(float *signs, uint32_t d)
{
    uint64_t s = 0x9E3779B97F4A7C15u ^ d;
    for (uint32_t word = 0; word < d / 64; word++) {
        s += 0x9E3779B97F4A7C15u;
        uint64_t z = s;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        z ^= z >> 31;
        for (uint32_t i = 0; i < 64; i++)
            signs[64 * word + i] = z >> i & 1 ? -1.0f : 1.0f;
    }
}

void aeg_kv_rotate(const aeg_kernels *kernels, const float *signs, float *x, uint32_t d)
{
    const float factor = 1.0f / sqrtf((float)d);
    for (uint32_t i = 0; i < d; i++)
        x[i] *= signs[i];
    kernels->hadamard(x, d);
    for (uint32_t i = 0; i < d; i++)
        x[i] *= factor;
}

void aeg_kv_rotate_back(const aeg_kernels *kernels, const float *signs, float *y, uint32_t d)
{
    const float factor = 1.0f / sqrtf((float)d);
    kernels->hadamard(y, d);
    for (uint32_t i = 0; i < d; i++)
        y[i] *= factor * signs[i];
}

/* One scale for the whole vector; the rule of quantize_i8. A scale of 0 or NaN comes with codes of 0. */
static float encode_i8(int8_t *codes, const float *y, uint32_t d)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < d; i++) {
        const uint32_t magnitude = aeg_f32_bits(y[i]) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    const float top = aeg_f32_from_bits(largest);
    if (largest >= 0x7f800000u || top < 1e-30f) {
        memset(codes, 0, d);
        return largest >= 0x7f800000u ? NAN : 0.0f;
    }
    const float scale = top / 127.0f, inverse = 1.0f / scale;
    for (uint32_t i = 0; i < d; i++)
        codes[i] = (int8_t)((y[i] * inverse + AEG_ROUND_MAGIC) - AEG_ROUND_MAGIC);
    return scale;
}

/* index[e]: how many of the n bounds are <= y * inverse */
static void find_cells(uint8_t *index, const float *y, float inverse, const float *bounds, uint32_t n, uint32_t d)
{
    for (uint32_t i = 0; i < d; i++) {
        const float u = y[i] * inverse;
        uint32_t cell = 0;
        for (uint32_t b = 0; b < n; b++)
            cell += bounds[b] <= u;
        index[i] = (uint8_t)cell;
    }
}

static void pack4(uint8_t *row, const uint8_t *index, uint32_t d)
{
    for (uint32_t i = 0; i < d / 2; i++)
        row[i] = (uint8_t)(index[2 * i] | index[2 * i + 1] << 4);
}

static void pack3(uint8_t *row, const uint8_t *index, uint32_t d)
{
    uint8_t *top = row + d / 4;
    memset(row, 0, d / 8 * 3);
    for (uint32_t i = 0; i < d; i++) {
        row[i / 4] |= (uint8_t)((index[i] & 3) << i % 4 * 2);
        top[i / 8] |= (uint8_t)(index[i] >> 2 << i % 8);
    }
}

static float encode_cells(const aeg_kernels *kernels, aeg_kv_kind kind, uint8_t *row, const float *y, uint32_t d)
{
    const int8_t *table = kind == AEG_KV_T4 ? aeg_kv_table4 : aeg_kv_table3;
    const float n2 = kernels->dot(y, y, d);
    uint8_t index[AEG_KV_MAX_CODED_DIM] = { 0 };
    int32_t c2 = 0;
    float scale = n2 < INFINITY ? 0.0f : NAN;
    if (n2 >= 1e-30f && n2 < INFINITY) {
        find_cells(index, y, sqrtf((float)d / n2), kind == AEG_KV_T4 ? bounds4 : bounds3, kind == AEG_KV_T4 ? 15 : 7, d);
        for (uint32_t i = 0; i < d; i++)
            c2 += table[index[i]] * table[index[i]];
        scale = sqrtf(n2 / (float)c2);
    }
    if (kind == AEG_KV_T4)
        pack4(row, index, d);
    else
        pack3(row, index, d);
    return scale;
}

float aeg_kv_encode(const aeg_kernels *kernels, aeg_kv_kind kind, uint8_t *row, const float *y, uint32_t d)
{
    return kind == AEG_KV_Q8 ? encode_i8((int8_t *)row, y, d) : encode_cells(kernels, kind, row, y, d);
}

float aeg_kv_encode_query(aeg_kv_kind kind, int8_t *codes, const float *y, uint32_t d)
{
    int8_t plain[AEG_KV_MAX_CODED_DIM];
    const float scale = encode_i8(plain, y, d);
    for (uint32_t i = 0; i < d; i++)
        codes[i] = plain[aeg_kv_place(kind, i)];
    return scale;
}
