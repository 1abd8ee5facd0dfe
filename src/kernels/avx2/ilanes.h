/* SPDX-License-Identifier: Apache-2.0 */
/* avx2/ilanes.h - the integer half of lanes.h: 16 int32 lanes, for the quantiser and the router. Thread: any. */
#ifndef AEG_KERNELS_AVX2_ILANES_H
#define AEG_KERNELS_AVX2_ILANES_H

#include "kernels/avx2/lanes.h"

LANES_INLINE __m256i i_load8(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
LANES_INLINE void i_store8(int32_t *p, __m256i x) { _mm256_storeu_si256((__m256i *)(void *)p, x); }
LANES_INLINE ilanes i_load(const int32_t *p) { return (ilanes){ i_load8(p), i_load8(p + 8) }; }
LANES_INLINE ilanes i_set1(int32_t x) { return (ilanes){ _mm256_set1_epi32(x), _mm256_set1_epi32(x) }; }
LANES_INLINE ilanes i_round(lanes x) { return (ilanes){ _mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b) }; }

LANES_INLINE void i_store(int32_t *p, ilanes x)
{
    i_store8(p, x.a);
    i_store8(p + 8, x.b);
}

LANES_INLINE ilanes i_add(ilanes x, ilanes y)
{
    return (ilanes){ _mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b) };
}

LANES_INLINE ilanes i_max(ilanes x, ilanes y)
{
    return (ilanes){ _mm256_max_epi32(x.a, y.a), _mm256_max_epi32(x.b, y.b) };
}

LANES_INLINE int32_t i_sum(ilanes x)
{
    const __m256i s = _mm256_add_epi32(x.a, x.b);
    __m128i c = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
    c = _mm_add_epi32(c, _mm_shuffle_epi32(c, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(c, _mm_shuffle_epi32(c, 0xb1)));
}

LANES_INLINE int32_t i_max_all(ilanes x)
{
    const __m256i s = _mm256_max_epi32(x.a, x.b);
    __m128i c = _mm_max_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
    c = _mm_max_epi32(c, _mm_shuffle_epi32(c, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(c, _mm_shuffle_epi32(c, 0xb1)));
}

LANES_INLINE ilanes i_magnitude(lanes x)
{
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    return (ilanes){ _mm256_and_si256(_mm256_castps_si256(x.a), mask),
                     _mm256_and_si256(_mm256_castps_si256(x.b), mask) };
}

LANES_INLINE int i_find(ilanes x, int32_t value)
{
    const __m256i v = _mm256_set1_epi32(value);
    const int low = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(x.a, v)));
    const int high = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(x.b, v)));
    const int mask = low | high << 8;
    return mask ? __builtin_ctz((unsigned)mask) : 16;
}

/* aeg_router_key on each lane. */
LANES_INLINE __m256i router_key8(__m256 x)
{
    const __m256i u = _mm256_castps_si256(_mm256_add_ps(x, _mm256_setzero_ps()));
    const __m256i key = _mm256_xor_si256(u, _mm256_srli_epi32(_mm256_srai_epi32(u, 31), 1));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(key, _mm256_set1_epi32(INT32_MIN + 1), nan);
}

LANES_INLINE ilanes i_router_key(lanes x) { return (ilanes){ router_key8(x.a), router_key8(x.b) }; }

/* packs works within 128-bit halves; the permute puts the quarters back in order. */
LANES_INLINE __m256i pack16(ilanes x) { return _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xd8); }

LANES_INLINE void i_store_i16(int16_t *p, ilanes x) { _mm256_storeu_si256((__m256i *)(void *)p, pack16(x)); }

LANES_INLINE void i_store_i8(int8_t *p, ilanes x)
{
    const __m256i h = pack16(x);
    _mm_storeu_si128((__m128i *)(void *)p, _mm_packs_epi16(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1)));
}

#endif
