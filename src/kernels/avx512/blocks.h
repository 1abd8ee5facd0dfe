/* SPDX-License-Identifier: Apache-2.0 */
/* avx512/blocks.h - the primitives of wide/blocks.inc.h: one part of 16 rows. */
#ifndef AEG_KERNELS_AVX512_BLOCKS_H
#define AEG_KERNELS_AVX512_BLOCKS_H

#include "kernels/avx512/matmul.h"
#include "kernels/blocks.h"
#include "kernels/grids.h"

enum { PARTS = 1, PART_ROWS = 16, PART_BYTES = 64, PREFETCH_ONE = 1, LANES_AHEAD = AEG_AHEAD_LANES };

typedef __m512i vec;
typedef __m512 fvec;

AEG_INLINE vec v_load(const uint8_t *p) { return _mm512_loadu_si512(p); }
AEG_INLINE vec v_u8(const uint8_t *p) { return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)); }
AEG_INLINE vec v_i8(const uint8_t *p) { return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)); }
AEG_INLINE vec v_set(int32_t x) { return _mm512_set1_epi32(x); }
AEG_INLINE vec v_set8(int32_t x) { return _mm512_set1_epi8((char)x); }
AEG_INLINE vec v_and(vec a, vec b) { return _mm512_and_si512(a, b); }
AEG_INLINE vec v_or(vec a, vec b) { return _mm512_or_si512(a, b); }
AEG_INLINE vec v_xor(vec a, vec b) { return _mm512_xor_si512(a, b); }
AEG_INLINE vec v_add(vec a, vec b) { return _mm512_add_epi32(a, b); }
AEG_INLINE vec v_sub(vec a, vec b) { return _mm512_sub_epi32(a, b); }
AEG_INLINE vec v_add8(vec a, vec b) { return _mm512_add_epi8(a, b); }
AEG_INLINE vec v_sub8(vec a, vec b) { return _mm512_sub_epi8(a, b); }
AEG_INLINE vec v_shr(vec v, int n) { return _mm512_srli_epi32(v, (unsigned)n); }
AEG_INLINE vec v_shl(vec v, int n) { return _mm512_slli_epi32(v, (unsigned)n); }
AEG_INLINE vec v_where_less(vec v, int32_t n, vec a, vec b)
{
    return _mm512_mask_blend_epi32(_mm512_cmplt_epi32_mask(v, _mm512_set1_epi32(n)), b, a);
}

/* Byte i: table[v.byte i], entries 0..15. */
AEG_INLINE vec v_lookup(const uint8_t *table, vec v)
{
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)table)), v);
}

AEG_INLINE vec v_gather(const uint32_t *table, vec i) { return _mm512_i32gather_epi32(i, table, 4); }

/* 0xff in byte t of a lane where bit t (odd: 4 + t) of its byte `group` is set. */
AEG_INLINE vec v_sign_mask(vec signs, uint32_t group, uint32_t odd)
{
    const vec byte = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);
    const vec spread = _mm512_shuffle_epi8(signs, _mm512_add_epi8(byte, _mm512_set1_epi8((char)group)));
    return _mm512_movm_epi8(_mm512_test_epi8_mask(spread, _mm512_set1_epi32(odd ? (int32_t)0x80402010 : 0x08040201)));
}

AEG_INLINE fvec f_half(const uint8_t *p) { return aeg_load_floats(AEG_W_F16, p); }
AEG_INLINE fvec f_set(float x) { return _mm512_set1_ps(x); }
AEG_INLINE fvec f_from(vec v) { return _mm512_cvtepi32_ps(v); }
AEG_INLINE fvec f_bits(vec v) { return _mm512_castsi512_ps(v); }
AEG_INLINE fvec f_mul(fvec a, fvec b) { return _mm512_mul_ps(a, b); }
AEG_INLINE fvec f_fma(fvec a, fvec b, fvec c) { return _mm512_fmadd_ps(a, b, c); }
AEG_INLINE fvec f_negate(fvec a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }

AEG_INLINE void b_store(float *y, const aeg_weights *w, uint32_t block, const fvec *rows) { aeg_store_rows(y, w, block, rows[0]); }

#include "kernels/wide/blocks.inc.h"

#endif
