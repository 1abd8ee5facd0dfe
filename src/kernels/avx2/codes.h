/* SPDX-License-Identifier: Apache-2.0 */
/* style: long: primitives, a line or a few each.
 * avx2/codes.h - 64 codes as two ymm registers: the primitives of wide/attention_codes.inc.h and wide/hadamard.inc.h
 * (described there). vpmaddubsw wants one unsigned operand: |key| times the query with the key's sign; pairs of
 * such products are at most 2*127*127 = 32258. Values are widened to 16 bits for vpmaddwd. Thread: any. */
#ifndef AEG_KERNELS_AVX2_CODES_H
#define AEG_KERNELS_AVX2_CODES_H

#include <string.h>

#include "kernels/attention.h"
#include "kernels/avx2/ilanes.h"

enum { KEY_ROWS = 4, VALUE_ROWS = 4, VALUE_COLS = 1 };

typedef ilanes code64, value_sums;
typedef struct { ilanes magnitude, sign; } key_operand;
typedef struct { ilanes even, odd; } value_operand;       /* positions 0 and 2, 1 and 3 of each lane */
typedef struct { __m256i even, odd; } value_weights;

#define BOTH(expr_a, expr_b) ((ilanes){ (expr_a), (expr_b) })

LANES_INLINE lanes l_from_i(ilanes x) { return (lanes){ _mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b) }; }
LANES_INLINE lanes l_swap1(lanes x) { return (lanes){ _mm256_permute_ps(x.a, 0xb1), _mm256_permute_ps(x.b, 0xb1) }; }
LANES_INLINE lanes l_swap2(lanes x) { return (lanes){ _mm256_permute_ps(x.a, 0x4e), _mm256_permute_ps(x.b, 0x4e) }; }
LANES_INLINE lanes l_swap8(lanes x) { return (lanes){ x.b, x.a }; }

LANES_INLINE lanes l_swap4(lanes x)
{
    return (lanes){ _mm256_permute2f128_ps(x.a, x.a, 1), _mm256_permute2f128_ps(x.b, x.b, 1) };
}

LANES_INLINE lanes zip8(__m256 a, __m256 b)
{
    const __m256 low = _mm256_unpacklo_ps(a, b), high = _mm256_unpackhi_ps(a, b);
    return (lanes){ _mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31) };
}

LANES_INLINE void l_zip(lanes *low, lanes *high, lanes x, lanes y)
{
    *low = zip8(x.a, y.a);
    *high = zip8(x.b, y.b);
}

LANES_INLINE __m256i c_load32(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
LANES_INLINE code64 c_load(const uint8_t *p) { return BOTH(c_load32(p), c_load32(p + 32)); }

LANES_INLINE void c_store(uint8_t *p, code64 x)
{
    _mm256_storeu_si256((__m256i *)(void *)p, x.a);
    _mm256_storeu_si256((__m256i *)(void *)(p + 32), x.b);
}

LANES_INLINE code64 c_and(code64 x, uint8_t mask)
{
    const __m256i m = _mm256_set1_epi8((char)mask);
    return BOTH(_mm256_and_si256(x.a, m), _mm256_and_si256(x.b, m));
}

LANES_INLINE code64 c_or(code64 x, code64 y) { return BOTH(_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)); }

LANES_INLINE code64 c_shr(code64 x, const int n) { return BOTH(_mm256_srli_epi16(x.a, n), _mm256_srli_epi16(x.b, n)); }
LANES_INLINE code64 c_shl(code64 x, const int n) { return BOTH(_mm256_slli_epi16(x.a, n), _mm256_slli_epi16(x.b, n)); }

LANES_INLINE code64 c_table(const int8_t *entries)
{
    const __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)entries));
    return BOTH(t, t);
}

LANES_INLINE code64 c_lookup(code64 table, code64 index)
{
    return BOTH(_mm256_shuffle_epi8(table.a, index.a), _mm256_shuffle_epi8(table.b, index.b));
}

/* Two bytes of each 4-byte piece, each becoming a byte of its low and one of its high nibble. */
LANES_INLINE code64 c_spread_key(const uint8_t *p, const int odd)
{
    const __m128i even_pick = _mm_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1);
    const __m128i odd_pick = _mm_setr_epi8(2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1);
    const __m256i pick = _mm256_broadcastsi128_si256(odd ? odd_pick : even_pick);
    const code64 x = BOTH(_mm256_shuffle_epi8(c_load32(p), pick), _mm256_shuffle_epi8(c_load32(p + 32), pick));
    return c_and(c_or(x, c_shl(x, 4)), 15);
}

/* 8 pieces of 4 positions; each becomes a piece of its low and one of its high nibbles. */
LANES_INLINE code64 c_spread_value(const uint8_t *p)
{
    const __m256i a = _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)(const void *)p));
    const __m256i b = _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)(const void *)(p + 16)));
    return c_and(BOTH(_mm256_or_si256(a, _mm256_slli_epi64(a, 28)), _mm256_or_si256(b, _mm256_slli_epi64(b, 28))), 15);
}

LANES_INLINE key_operand c_key(code64 x)
{
    return (key_operand){ BOTH(_mm256_abs_epi8(x.a), _mm256_abs_epi8(x.b)), x };
}

LANES_INLINE int32_t c_bias(const int8_t *q, uint32_t d)
{
    (void)q;
    (void)d;
    return 0;
}

LANES_INLINE __m256i dot8(__m256i acc, __m256i magnitude, __m256i sign, __m256i q)
{
    const __m256i pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(q, sign));
    return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

LANES_INLINE ilanes c_dot(ilanes acc, key_operand k, const int8_t *q)
{
    int32_t four;
    memcpy(&four, q, sizeof four);
    const __m256i x = _mm256_set1_epi32(four);
    return BOTH(dot8(acc.a, k.magnitude.a, k.sign.a, x), dot8(acc.b, k.magnitude.b, k.sign.b, x));
}

LANES_INLINE value_operand c_value(code64 x)
{
    const code64 even = c_shl(x, 8);
    return (value_operand){ BOTH(_mm256_srai_epi16(even.a, 8), _mm256_srai_epi16(even.b, 8)),
                            BOTH(_mm256_srai_epi16(x.a, 8), _mm256_srai_epi16(x.b, 8)) };
}

LANES_INLINE value_sums v_zero(void) { return i_set1(0); }

/* Groups of four weights in the order 0, 2, 1, 3. */
LANES_INLINE void v_store_weights(int16_t *row, uint32_t pos, ilanes w)
{
    const __m256i order = _mm256_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15, 0, 1, 4, 5, 2, 3, 6, 7,
                                           8, 9, 12, 13, 10, 11, 14, 15);
    _mm256_storeu_si256((__m256i *)(void *)(row + pos), _mm256_shuffle_epi8(pack16(w), order));
}

LANES_INLINE value_weights v_weights(const int16_t *row, uint32_t group)
{
    int32_t pairs[2];
    memcpy(pairs, row + 4 * group, sizeof pairs);
    return (value_weights){ _mm256_set1_epi32(pairs[0]), _mm256_set1_epi32(pairs[1]) };
}

LANES_INLINE __m256i mac8(__m256i acc, __m256i even, __m256i odd, value_weights w)
{
    return _mm256_add_epi32(_mm256_add_epi32(acc, _mm256_madd_epi16(even, w.even)), _mm256_madd_epi16(odd, w.odd));
}

LANES_INLINE value_sums v_mac(value_sums acc, value_operand v, value_weights w)
{
    return BOTH(mac8(acc.a, v.even.a, v.odd.a, w), mac8(acc.b, v.even.b, v.odd.b, w));
}

LANES_INLINE ilanes v_total(value_sums acc) { return acc; }

#endif
