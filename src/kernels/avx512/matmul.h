/* SPDX-License-Identifier: Apache-2.0 */
/* avx512/matmul.h - what the AVX-512 matmuls share: a row block is one vector wide. */
#ifndef AEG_KERNELS_AVX512_MATMUL_H
#define AEG_KERNELS_AVX512_MATMUL_H

#include <immintrin.h>

#include "kernels/kernels.h"
#include "kernels/strip.h"

void aeg_matmul_avx512_i8_register(aeg_kernels *k);
void aeg_matmul_avx512_i16_register(aeg_kernels *k);
void aeg_matmul_avx512_f32_register(aeg_kernels *k);
void aeg_matmul_avx512_plain_register(aeg_kernels *k);
void aeg_matmul_avx512_blocks_i8_register(aeg_kernels *k);
void aeg_matmul_avx512_blocks_register(aeg_kernels *k);
void aeg_matmul_avx512_f8_register(aeg_kernels *k);

/* 16 stored floats of one kind. */
AEG_INLINE __m512 aeg_load_floats(uint32_t kind, const uint8_t *p)
{
    if (kind == AEG_W_BF16)
        return _mm512_castsi512_ps(
            _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
    if (kind == AEG_W_F16)
        return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_loadu_ps(p);
}

AEG_INLINE __m512i aeg_plane(const uint8_t *planes, uint32_t vector)
{
    return _mm512_loadu_si512(planes + AEG_PLANE_BYTES * vector);
}

/* Shift by a constant of either sign. Bits that cross a byte border are masked by the caller. */
AEG_INLINE __m512i aeg_shift_right(__m512i v, int by)
{
    return by > 0 ? _mm512_srli_epi16(v, (unsigned)by) : by < 0 ? _mm512_slli_epi16(v, (unsigned)-by) : v;
}

/* The codes of quad j; bits and j are constants. */
AEG_INLINE __m512i aeg_quad(uint32_t bits, const uint8_t *planes, uint32_t j)
{
    const uint32_t low = aeg_low_bits(bits), high = bits - low;
    const __m512i v = aeg_shift_right(aeg_plane(planes, j * low / 8), (int)(j * low % 8));
    if (bits == 8)
        return v;
    const __m512i mask = _mm512_set1_epi8((char)((1u << bits) - 1));
    if (high == 0)
        return _mm512_and_si512(v, mask);
    const __m512i h = aeg_shift_right(aeg_plane(planes, low + j * high / 8), (int)(j * high % 8) - (int)low);
    const __m512i low_mask = _mm512_set1_epi8((char)((1u << low) - 1));
    /* 0xE4: bits of v where low_mask is set, of h elsewhere */
    return _mm512_and_si512(_mm512_ternarylogic_epi32(v, h, low_mask, 0xE4), mask);
}

AEG_INLINE void aeg_expand_bits(uint32_t bits, const uint8_t *planes, __m512i *quads)
{
    AEG_UNROLL for (uint32_t j = 0; j < AEG_QUADS; j++) quads[j] = aeg_quad(bits, planes, j);
}

/* The 8 quads of one plane group, for the kernels that are not compiled once per width. */
AEG_INLINE void aeg_expand(uint32_t bits, const uint8_t *planes, __m512i *quads)
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

AEG_INLINE void aeg_store_rows(float *y, const aeg_weights *w, uint32_t block, __m512 v)
{
    const __mmask16 rows = (__mmask16)(0xffffu >> (AEG_ROWS - aeg_rows_of_block(w, block)));
    _mm512_mask_storeu_ps(y + (size_t)block * AEG_ROWS, rows, v);
}

/* Kernels are compiled for 1, 2, 3, 4, 6 and 8 tokens; 5 and 7 tokens pass a row block in two parts, the second
 * of which finds it in the first-level cache. */
typedef void (*aeg_row_block_fn)(const aeg_matmul_args *a, const aeg_strip *x, uint32_t m0, uint32_t block);

AEG_INLINE void aeg_run_strip(const aeg_row_block_fn *by_n, const aeg_matmul_args *a, const aeg_strip *x,
                              uint32_t block0, uint32_t block1)
{
    const uint32_t first = by_n[x->n] ? x->n : x->n / 2 + 1, rest = x->n - first;
    for (uint32_t block = block0; block < block1; block++) {
        by_n[first](a, x, 0, block);
        if (rest)
            by_n[rest](a, x, first, block);
    }
}

#endif
