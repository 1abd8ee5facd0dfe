/* SPDX-License-Identifier: Apache-2.0 */
/* avx2/lanes.h - 16 float lanes as two ymm registers: the primitives under kernels/wide/ (described in
 * wide/lanes_math.inc.h). Thread: any. */
#ifndef AEG_KERNELS_AVX2_LANES_H
#define AEG_KERNELS_AVX2_LANES_H

#include <immintrin.h>
#include <stdint.h>

#define LANES_INLINE static inline __attribute__((always_inline))

typedef struct { __m256 a, b; } lanes;   /* lanes 0..7, 8..15 */
typedef struct { __m256i a, b; } ilanes;

/* 16 registers: four accumulators (eight registers), and what feeds them. */
enum { TILE_HEADS = 2, TILE_POS = 2, TILE_COLS = 2, GDN_STRIPS = 2, HYPER_STREAMS = 2 };

LANES_INLINE lanes l_load(const float *p) { return (lanes){ _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8) }; }
LANES_INLINE lanes l_set1(float x) { return (lanes){ _mm256_set1_ps(x), _mm256_set1_ps(x) }; }
LANES_INLINE lanes l_add(lanes x, lanes y) { return (lanes){ _mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b) }; }
LANES_INLINE lanes l_sub(lanes x, lanes y) { return (lanes){ _mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b) }; }
LANES_INLINE lanes l_mul(lanes x, lanes y) { return (lanes){ _mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b) }; }
LANES_INLINE lanes l_div(lanes x, lanes y) { return (lanes){ _mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b) }; }
LANES_INLINE lanes l_max(lanes x, lanes y) { return (lanes){ _mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b) }; }

LANES_INLINE void l_store(float *p, lanes x)
{
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}

LANES_INLINE lanes l_fma(lanes x, lanes y, lanes z)
{
    return (lanes){ _mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b) };
}

LANES_INLINE lanes l_neg(lanes x)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return (lanes){ _mm256_xor_ps(x.a, sign), _mm256_xor_ps(x.b, sign) };
}

LANES_INLINE lanes l_select_le(lanes x, lanes y, lanes yes, lanes no)
{
    return (lanes){ _mm256_blendv_ps(no.a, yes.a, _mm256_cmp_ps(x.a, y.a, _CMP_LE_OQ)),
                    _mm256_blendv_ps(no.b, yes.b, _mm256_cmp_ps(x.b, y.b, _CMP_LE_OQ)) };
}

LANES_INLINE __m256 add_exponent8(__m256 p, __m256 t)
{
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(t), 23)));
}

LANES_INLINE lanes l_add_exponent(lanes p, lanes t)
{
    return (lanes){ add_exponent8(p.a, t.a), add_exponent8(p.b, t.b) };
}

/* The first two levels of the tree: 16 lanes to 4. */
LANES_INLINE __m128 l_fold(lanes x)
{
    const __m256 s = _mm256_add_ps(x.a, x.b);
    return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}

LANES_INLINE float l_sum(lanes x)
{
    __m128 c = l_fold(x);
    c = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_shuffle_ps(c, c, 1)));
}

LANES_INLINE void l_sum4(float *out, const lanes *x)
{
    const __m128 p = l_fold(x[0]), q = l_fold(x[1]), r = l_fold(x[2]), s = l_fold(x[3]);
    const __m128 pq = _mm_add_ps(_mm_movelh_ps(p, q), _mm_movehl_ps(q, p));
    const __m128 rs = _mm_add_ps(_mm_movelh_ps(r, s), _mm_movehl_ps(s, r));
    _mm_storeu_ps(out, _mm_add_ps(_mm_shuffle_ps(pq, rs, 0x88), _mm_shuffle_ps(pq, rs, 0xdd)));
}

LANES_INLINE float l_max_all(lanes x)
{
    const __m256 s = _mm256_max_ps(x.a, x.b);
    __m128 c = _mm_max_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    c = _mm_max_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_max_ss(c, _mm_shuffle_ps(c, c, 1)));
}

LANES_INLINE lanes l_load_f16(const uint16_t *p)
{
    return (lanes){ _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p)),
                    _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p + 8))) };
}

LANES_INLINE __m256 l_half_bf16(const uint16_t *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)), 16));
}

LANES_INLINE lanes l_load_bf16(const uint16_t *p) { return (lanes){ l_half_bf16(p), l_half_bf16(p + 8) }; }

LANES_INLINE void l_store_f16(uint16_t *p, lanes x)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    _mm_storeu_si128((__m128i *)(void *)(p + 8), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#endif
