/* SPDX-License-Identifier: Apache-2.0 */
/* avx2/matmul.h - what the AVX2 matmuls share: a row block is two halves of 8 rows, and each 64-byte plane is
 * read as two 32-byte vectors. */
#ifndef AEG_KERNELS_AVX2_MATMUL_H
#define AEG_KERNELS_AVX2_MATMUL_H

#include <immintrin.h>

#include "kernels/kernels.h"
#include "kernels/strip.h"

enum { AEG_HALVES = 2, AEG_HALF_ROWS = 8, AEG_HALF_BYTES = 32 };

void aeg_matmul_avx2_i8_register(aeg_kernels *k);
void aeg_matmul_avx2_i16_register(aeg_kernels *k);
void aeg_matmul_avx2_f32_register(aeg_kernels *k);
void aeg_matmul_avx2_plain_register(aeg_kernels *k);
void aeg_matmul_avx2_blocks_i8_register(aeg_kernels *k);
void aeg_matmul_avx2_blocks_register(aeg_kernels *k);
void aeg_matmul_avx2_f8_register(aeg_kernels *k);

/* The 8 stored floats of half h out of 16. */
AEG_INLINE __m256 aeg_load_floats(uint32_t kind, const uint8_t *p, uint32_t h)
{
    p += h * AEG_HALF_ROWS * aeg_scale_bytes(kind);
    if (kind == AEG_W_BF16)
        return _mm256_castsi256_ps(
            _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
    if (kind == AEG_W_F16)
        return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
    return _mm256_loadu_ps((const float *)p);
}

AEG_INLINE __m256i aeg_plane(const uint8_t *planes, uint32_t vector)
{
    return _mm256_loadu_si256((const __m256i *)(planes + AEG_PLANE_BYTES * vector));
}

/* Shift by a constant of either sign. Bits that cross a byte border are masked by the caller. */
AEG_INLINE __m256i aeg_shift_right(__m256i v, int by)
{
    return by > 0 ? _mm256_srli_epi16(v, by) : by < 0 ? _mm256_slli_epi16(v, -by) : v;
}

/* The codes of quad j of the half whose planes start at `planes`; bits and j are constants. */
AEG_INLINE __m256i aeg_quad(uint32_t bits, const uint8_t *planes, uint32_t j)
{
    const uint32_t low = aeg_low_bits(bits), high = bits - low;
    const __m256i v = aeg_shift_right(aeg_plane(planes, j * low / 8), (int)(j * low % 8));
    if (bits == 8)
        return v;
    const __m256i low_code = _mm256_and_si256(v, _mm256_set1_epi8((char)((1u << low) - 1)));
    if (high == 0)
        return low_code;
    const __m256i h = aeg_shift_right(aeg_plane(planes, low + j * high / 8), (int)(j * high % 8) - (int)low);
    return _mm256_or_si256(low_code, _mm256_and_si256(h, _mm256_set1_epi8((char)(((1u << high) - 1) << low))));
}

AEG_INLINE void aeg_expand_bits(uint32_t bits, const uint8_t *planes, __m256i *quads)
{
    AEG_UNROLL for (uint32_t j = 0; j < AEG_QUADS; j++) quads[j] = aeg_quad(bits, planes, j);
}

/* The 8 quads of one half of a plane group, for the kernels that are not compiled once per width. */
AEG_INLINE void aeg_expand(uint32_t bits, const uint8_t *planes, __m256i *quads)
{
    switch (bits) {
    case 2: aeg_expand_bits(2, planes, quads); break;
    case 3: aeg_expand_bits(3, planes, quads); break;
    case 4: aeg_expand_bits(4, planes, quads); break;
    case 5: aeg_expand_bits(5, planes, quads); break;
    case 6: aeg_expand_bits(6, planes, quads); break;
    default: aeg_expand_bits(8, planes, quads); break;
    }
}

/* y = fma(scale*d, dot, y), then fma(bias, s, y). */
AEG_INLINE __m256 aeg_add_dot(__m256 y, __m256 scale, __m256 bias, __m256i dot, float d, float s)
{
    y = _mm256_fmadd_ps(_mm256_mul_ps(scale, _mm256_set1_ps(d)), _mm256_cvtepi32_ps(dot), y);
    return _mm256_fmadd_ps(bias, _mm256_set1_ps(s), y);
}

AEG_INLINE void aeg_store_rows(float *y, const aeg_weights *w, uint32_t block, __m256 v0, __m256 v1)
{
    const uint32_t n = aeg_rows_of_block(w, block);
    float *to = y + (size_t)block * AEG_ROWS;
    if (n == AEG_ROWS) {
        _mm256_storeu_ps(to, v0);
        _mm256_storeu_ps(to + AEG_HALF_ROWS, v1);
        return;
    }
    float rows[AEG_ROWS];
    _mm256_storeu_ps(rows, v0);
    _mm256_storeu_ps(rows + AEG_HALF_ROWS, v1);
    memcpy(to, rows, n * sizeof(float));
}

#endif
