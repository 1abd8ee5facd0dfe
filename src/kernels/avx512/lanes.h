/* SPDX-License-Identifier: Apache-2.0 */
/* avx512/lanes.h - 16 float lanes as one zmm register: the primitives under kernels/wide/ (described in
 * wide/lanes_math.inc.h). Thread: any. */
#ifndef AEG_KERNELS_AVX512_LANES_H
#define AEG_KERNELS_AVX512_LANES_H

#include <immintrin.h>
#include <stdint.h>

#define LANES_INLINE static inline __attribute__((always_inline))

typedef __m512 lanes;
typedef __m512i ilanes;

/* 32 registers: tiles of 4 heads x 4 positions (or columns); four strips hide the latency of the fma chain. */
enum { TILE_HEADS = 4, TILE_POS = 4, TILE_COLS = 4, GDN_STRIPS = 4, HYPER_STREAMS = 4 };

LANES_INLINE lanes l_load(const float *p) { return _mm512_loadu_ps(p); }
LANES_INLINE void l_store(float *p, lanes a) { _mm512_storeu_ps(p, a); }
LANES_INLINE lanes l_set1(float x) { return _mm512_set1_ps(x); }
LANES_INLINE lanes l_add(lanes a, lanes b) { return _mm512_add_ps(a, b); }
LANES_INLINE lanes l_sub(lanes a, lanes b) { return _mm512_sub_ps(a, b); }
LANES_INLINE lanes l_mul(lanes a, lanes b) { return _mm512_mul_ps(a, b); }
LANES_INLINE lanes l_div(lanes a, lanes b) { return _mm512_div_ps(a, b); }
LANES_INLINE lanes l_fma(lanes a, lanes b, lanes c) { return _mm512_fmadd_ps(a, b, c); }
LANES_INLINE lanes l_max(lanes a, lanes b) { return _mm512_max_ps(a, b); }
LANES_INLINE lanes l_neg(lanes a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }

LANES_INLINE lanes l_select_le(lanes x, lanes y, lanes yes, lanes no)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_LE_OQ), no, yes);
}

LANES_INLINE lanes l_add_exponent(lanes p, lanes t)
{
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), _mm512_slli_epi32(_mm512_castps_si512(t), 23)));
}

LANES_INLINE __m256 l_high(lanes a) { return _mm512_extractf32x8_ps(a, 1); }

/* The first two levels of the tree: 16 lanes to 4. */
LANES_INLINE __m128 l_fold(lanes a)
{
    const __m256 b = _mm256_add_ps(_mm512_castps512_ps256(a), l_high(a));
    return _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
}

LANES_INLINE float l_sum(lanes a)
{
    __m128 c = l_fold(a);
    c = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_shuffle_ps(c, c, 1)));
}

LANES_INLINE void l_sum4(float *out, const lanes *a)
{
    const __m128 p = l_fold(a[0]), q = l_fold(a[1]), r = l_fold(a[2]), s = l_fold(a[3]);
    const __m128 pq = _mm_add_ps(_mm_movelh_ps(p, q), _mm_movehl_ps(q, p));
    const __m128 rs = _mm_add_ps(_mm_movelh_ps(r, s), _mm_movehl_ps(s, r));
    _mm_storeu_ps(out, _mm_add_ps(_mm_shuffle_ps(pq, rs, 0x88), _mm_shuffle_ps(pq, rs, 0xdd)));
}

LANES_INLINE float l_max_all(lanes a)
{
    const __m256 b = _mm256_max_ps(_mm512_castps512_ps256(a), l_high(a));
    __m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
    c = _mm_max_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_max_ss(c, _mm_shuffle_ps(c, c, 1)));
}

LANES_INLINE lanes l_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

LANES_INLINE lanes l_load_bf16(const uint16_t *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p)), 16));
}

LANES_INLINE void l_store_f16(uint16_t *p, lanes a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#endif
