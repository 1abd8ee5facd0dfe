/* SPDX-License-Identifier: Apache-2.0 */
/* avx512/ilanes.h - the integer half of lanes.h: 16 int32 lanes, for the quantiser and the router. Thread: any. */
#ifndef AEG_KERNELS_AVX512_ILANES_H
#define AEG_KERNELS_AVX512_ILANES_H

#include "kernels/avx512/lanes.h"

LANES_INLINE ilanes i_load(const int32_t *p) { return _mm512_loadu_si512(p); }
LANES_INLINE void i_store(int32_t *p, ilanes a) { _mm512_storeu_si512(p, a); }
LANES_INLINE ilanes i_set1(int32_t x) { return _mm512_set1_epi32(x); }
LANES_INLINE ilanes i_add(ilanes a, ilanes b) { return _mm512_add_epi32(a, b); }
LANES_INLINE ilanes i_max(ilanes a, ilanes b) { return _mm512_max_epi32(a, b); }
LANES_INLINE int32_t i_sum(ilanes a) { return _mm512_reduce_add_epi32(a); }
LANES_INLINE int32_t i_max_all(ilanes a) { return _mm512_reduce_max_epi32(a); }
LANES_INLINE ilanes i_round(lanes a) { return _mm512_cvtps_epi32(a); }
LANES_INLINE ilanes i_magnitude(lanes a)
{
    return _mm512_and_si512(_mm512_castps_si512(a), _mm512_set1_epi32(0x7fffffff));
}

LANES_INLINE int i_find(ilanes a, int32_t x)
{
    const uint32_t mask = _mm512_cmpeq_epi32_mask(a, _mm512_set1_epi32(x));
    return mask ? __builtin_ctz(mask) : 16;
}

/* aeg_router_key on each lane. */
LANES_INLINE ilanes i_router_key(lanes a)
{
    const __m512i u = _mm512_castps_si512(_mm512_add_ps(a, _mm512_setzero_ps()));
    const __m512i key = _mm512_xor_si512(u, _mm512_srli_epi32(_mm512_srai_epi32(u, 31), 1));
    return _mm512_mask_set1_epi32(key, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), INT32_MIN + 1);
}

LANES_INLINE void i_store_i8(int8_t *p, ilanes a)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtsepi32_epi8(a));
}

LANES_INLINE void i_store_i16(int16_t *p, ilanes a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtsepi32_epi16(a));
}

#endif
