/* SPDX-License-Identifier: Apache-2.0 */
/* avx2/blocks.h - the primitives of wide/blocks.inc.h: two parts of 8 rows. */
#ifndef AEG_KERNELS_AVX2_BLOCKS_H
#define AEG_KERNELS_AVX2_BLOCKS_H

#include "kernels/avx2/matmul.h"
#include "kernels/blocks.h"
#include "kernels/grids.h"

enum { PARTS = AEG_HALVES, PART_ROWS = AEG_HALF_ROWS, PART_BYTES = AEG_HALF_BYTES, PREFETCH_ONE = 0, LANES_AHEAD = 0 };

typedef __m256i vec;
typedef __m256 fvec;

AEG_INLINE vec v_load(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
AEG_INLINE vec v_u8(const uint8_t *p) { return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)); }
AEG_INLINE vec v_i8(const uint8_t *p) { return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)); }
AEG_INLINE vec v_set(int32_t x) { return _mm256_set1_epi32(x); }
AEG_INLINE vec v_set8(int32_t x) { return _mm256_set1_epi8((char)x); }
AEG_INLINE vec v_and(vec a, vec b) { return _mm256_and_si256(a, b); }
AEG_INLINE vec v_or(vec a, vec b) { return _mm256_or_si256(a, b); }
AEG_INLINE vec v_xor(vec a, vec b) { return _mm256_xor_si256(a, b); }
AEG_INLINE vec v_add(vec a, vec b) { return _mm256_add_epi32(a, b); }
AEG_INLINE vec v_sub(vec a, vec b) { return _mm256_sub_epi32(a, b); }
AEG_INLINE vec v_add8(vec a, vec b) { return _mm256_add_epi8(a, b); }
AEG_INLINE vec v_sub8(vec a, vec b) { return _mm256_sub_epi8(a, b); }
AEG_INLINE vec v_shr(vec v, int n) { return _mm256_srli_epi32(v, n); }
AEG_INLINE vec v_shl(vec v, int n) { return _mm256_slli_epi32(v, n); }
AEG_INLINE vec v_where_less(vec v, int32_t n, vec a, vec b)
{
    return _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi32(_mm256_set1_epi32(n), v));
}

/* Byte i: table[v.byte i], entries 0..15. */
AEG_INLINE vec v_lookup(const uint8_t *table, vec v)
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table)), v);
}

AEG_INLINE vec v_gather(const uint32_t *table, vec i) { return _mm256_i32gather_epi32((const int *)table, i, 4); }

/* 0xff in byte t of a lane where bit t (odd: 4 + t) of its byte `group` is set. */
AEG_INLINE vec v_sign_mask(vec signs, uint32_t group, uint32_t odd)
{
    const vec byte = _mm256_broadcastsi128_si256(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c));
    const vec bits = _mm256_set1_epi32(odd ? (int32_t)0x80402010 : 0x08040201);
    const vec spread = _mm256_shuffle_epi8(signs, _mm256_add_epi8(byte, _mm256_set1_epi8((char)group)));
    return _mm256_cmpeq_epi8(_mm256_and_si256(spread, bits), bits);
}

AEG_INLINE fvec f_half(const uint8_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p)); }
AEG_INLINE fvec f_set(float x) { return _mm256_set1_ps(x); }
AEG_INLINE fvec f_from(vec v) { return _mm256_cvtepi32_ps(v); }
AEG_INLINE fvec f_bits(vec v) { return _mm256_castsi256_ps(v); }
AEG_INLINE fvec f_mul(fvec a, fvec b) { return _mm256_mul_ps(a, b); }
AEG_INLINE fvec f_fma(fvec a, fvec b, fvec c) { return _mm256_fmadd_ps(a, b, c); }
AEG_INLINE fvec f_negate(fvec a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }

AEG_INLINE void b_store(float *y, const aeg_weights *w, uint32_t block, const fvec *rows)
{
    aeg_store_rows(y, w, block, rows[0], rows[1]);
}

#include "kernels/wide/blocks.inc.h"

#endif
