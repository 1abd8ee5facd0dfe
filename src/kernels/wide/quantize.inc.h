/* SPDX-License-Identifier: Apache-2.0 */
/* wide/quantize.inc.h - activations into codes per block of 32 or 64 (two or four vectors). No clamp: |x| <= a,
 * so |x * (1/d)| exceeds `top` by three roundings at most and still rounds to it. */

enum { MAX_VECTORS = 4 };

/* Codes of one block; returns its scale. */
LANES_INLINE float quantize_block(ilanes *codes, const float *x, uint32_t n_vectors, float top)
{
    ilanes magnitude = i_set1(0);
    for (uint32_t v = 0; v < n_vectors; v++)
        magnitude = i_max(magnitude, i_magnitude(l_load(x + v * LANES)));
    const uint32_t largest = (uint32_t)i_max_all(magnitude);
    const float a = aeg_f32_from_bits(largest);
    if (largest >= 0x7f800000u || a < 1e-30f) {
        for (uint32_t v = 0; v < n_vectors; v++)
            codes[v] = i_set1(0);
        return largest >= 0x7f800000u ? aeg_f32_from_bits(0x7fc00000u) : 0.0f;
    }
    const float d = a / top;
    const lanes inverse = l_set1(1.0f / d);
    for (uint32_t v = 0; v < n_vectors; v++)
        codes[v] = i_round(l_mul(l_load(x + v * LANES), inverse));
    return d;
}

LANES_INLINE float code_sum(const ilanes *codes, uint32_t n_vectors)
{
    ilanes sum = codes[0];
    for (uint32_t v = 1; v < n_vectors; v++)
        sum = i_add(sum, codes[v]);
    return (float)i_sum(sum);
}

LANES_INLINE void quantize_i8_blocks(int8_t *q, float *d, float *s, const float *x, uint32_t n, uint32_t n_vectors)
{
    const uint32_t block = n_vectors * LANES;
    for (uint32_t b = 0; b < n / block; b++) {
        ilanes codes[MAX_VECTORS];
        d[b] = quantize_block(codes, x + b * block, n_vectors, 127.0f);
        for (uint32_t v = 0; v < n_vectors; v++)
            i_store_i8(q + b * block + v * LANES, codes[v]);
        s[b] = d[b] * code_sum(codes, n_vectors);
    }
}

LANES_INLINE void quantize_i16_blocks(int16_t *q, float *d, float *s, const float *x, uint32_t n, uint32_t n_vectors)
{
    const uint32_t block = n_vectors * LANES;
    for (uint32_t b = 0; b < n / block; b++) {
        ilanes codes[MAX_VECTORS];
        d[b] = quantize_block(codes, x + b * block, n_vectors, 32767.0f);
        for (uint32_t v = 0; v < n_vectors; v++)
            i_store_i16(q + b * block + v * LANES, codes[v]);
        s[b] = d[b] * code_sum(codes, n_vectors);
    }
}

/* The block size as a constant, so that the codes of a block stay in registers. */
static void quantize_i8(int8_t *q, float *d, float *s, const float *x, uint32_t n, uint32_t block)
{
    if (block == 64)
        quantize_i8_blocks(q, d, s, x, n, 4);
    else
        quantize_i8_blocks(q, d, s, x, n, 2);
}

static void quantize_i16(int16_t *q, float *d, float *s, const float *x, uint32_t n, uint32_t block)
{
    if (block == 64)
        quantize_i16_blocks(q, d, s, x, n, 4);
    else
        quantize_i16_blocks(q, d, s, x, n, 2);
}

/* Plain loops: compilers make two or three vector operations of 16 additions of constant places. */
static void code_sums_i8(int32_t *sums, const int8_t *q, uint32_t n16)
{
    for (uint32_t b = 0; b < n16 / LANES; b++, q += LANES) {
        int32_t sum = 0;
        for (uint32_t i = 0; i < LANES; i++)
            sum += q[i];
        sums[b] = sum;
    }
}

static void code_sums_i16(int32_t *sums, const int16_t *q, uint32_t n16)
{
    for (uint32_t b = 0; b < n16 / LANES; b++, q += LANES) {
        int32_t sum = 0;
        for (uint32_t i = 0; i < LANES; i++)
            sum += q[i];
        sums[b] = sum;
    }
}
