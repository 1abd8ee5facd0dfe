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
enum { TILE_HEADS = 1, TILE_POS = 4, TILE_COLS = 4, GDN_STRIPS = 2 };

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

LANES_INLINE void l_store_f16(uint16_t *p, lanes x)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    _mm_storeu_si128((__m128i *)(void *)(p + 8), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

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
