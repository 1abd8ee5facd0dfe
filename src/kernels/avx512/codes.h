/* SPDX-License-Identifier: Apache-2.0 */
/* avx512/codes.h - 64 codes as one zmm register: the primitives of wide/attention_codes.inc.h and wide/hadamard.inc.h
 * (described there). vpdpbusd wants one unsigned operand: keys are moved to 0..255 and -128 * sum(q) put in first;
 * weights of values (15 bits) go in as two unsigned bytes. Thread: any. */
#ifndef AEG_KERNELS_AVX512_CODES_H
#define AEG_KERNELS_AVX512_CODES_H

#include <string.h>

#include "kernels/attention.h"
#include "kernels/avx512/ilanes.h"

enum { KEY_ROWS = 8, VALUE_ROWS = 4, VALUE_COLS = 2 };

typedef __m512i code64, key_operand, value_operand;
typedef struct { __m512i low, high; } value_sums, value_weights;

LANES_INLINE lanes l_from_i(ilanes a) { return _mm512_cvtepi32_ps(a); }
LANES_INLINE lanes l_swap1(lanes a) { return _mm512_permute_ps(a, 0xb1); }
LANES_INLINE lanes l_swap2(lanes a) { return _mm512_permute_ps(a, 0x4e); }
LANES_INLINE lanes l_swap4(lanes a) { return _mm512_shuffle_f32x4(a, a, 0xb1); }
LANES_INLINE lanes l_swap8(lanes a) { return _mm512_shuffle_f32x4(a, a, 0x4e); }

LANES_INLINE void l_zip(lanes *low, lanes *high, lanes a, lanes b)
{
    const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    *low = _mm512_permutex2var_ps(a, first, b);
    *high = _mm512_permutex2var_ps(a, _mm512_add_epi32(first, _mm512_set1_epi32(8)), b);
}

LANES_INLINE code64 c_load(const uint8_t *p) { return _mm512_loadu_si512(p); }
LANES_INLINE void c_store(uint8_t *p, code64 a) { _mm512_storeu_si512(p, a); }
LANES_INLINE code64 c_and(code64 a, uint8_t mask) { return _mm512_and_si512(a, _mm512_set1_epi8((char)mask)); }
LANES_INLINE code64 c_or(code64 a, code64 b) { return _mm512_or_si512(a, b); }
LANES_INLINE code64 c_shr(code64 a, const unsigned n) { return _mm512_srli_epi16(a, n); }
LANES_INLINE code64 c_shl(code64 a, const unsigned n) { return _mm512_slli_epi16(a, n); }
LANES_INLINE code64 c_lookup(code64 table, code64 index) { return _mm512_shuffle_epi8(table, index); }

LANES_INLINE code64 c_table(const int8_t *entries)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)entries));
}

/* Two bytes of each 4-byte piece, each becoming a byte of its low and one of its high nibble. */
LANES_INLINE code64 c_spread_key(const uint8_t *p, const int odd)
{
    const __m128i even_pick = _mm_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1);
    const __m128i odd_pick = _mm_setr_epi8(2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1);
    const __m512i x = _mm512_shuffle_epi8(_mm512_loadu_si512(p), _mm512_broadcast_i32x4(odd ? odd_pick : even_pick));
    return c_and(_mm512_or_si512(x, _mm512_slli_epi16(x, 4)), 15);
}

/* 8 pieces of 4 positions; each becomes a piece of its low and one of its high nibbles. */
LANES_INLINE code64 c_spread_value(const uint8_t *p)
{
    const __m512i x = _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return c_and(_mm512_or_si512(x, _mm512_slli_epi64(x, 28)), 15);
}

LANES_INLINE key_operand c_key(code64 a) { return _mm512_xor_si512(a, _mm512_set1_epi8((char)0x80)); }

LANES_INLINE int32_t c_bias(const int8_t *q, uint32_t d)
{
    __m512i sum = _mm512_setzero_si512();
    for (uint32_t i = 0; i < d; i += 64)
        sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(1), _mm512_loadu_si512(q + i));
    return -128 * i_sum(sum);
}

LANES_INLINE ilanes c_dot(ilanes acc, key_operand k, const int8_t *q)
{
    int32_t four;
    memcpy(&four, q, sizeof four);
    return _mm512_dpbusd_epi32(acc, k, _mm512_set1_epi32(four));
}

LANES_INLINE value_operand c_value(code64 a) { return a; }
LANES_INLINE value_sums v_zero(void) { return (value_sums){ _mm512_setzero_si512(), _mm512_setzero_si512() }; }

/* A row of weights: 256 low bytes, then 256 high ones. */
LANES_INLINE void v_store_weights(int16_t *row, uint32_t pos, ilanes w)
{
    uint8_t *bytes = (uint8_t *)row + pos;
    _mm_storeu_si128((__m128i *)(void *)bytes, _mm512_cvtepi32_epi8(w));
    _mm_storeu_si128((__m128i *)(void *)(bytes + AEG_ATTN_BLOCK), _mm512_cvtepi32_epi8(_mm512_srli_epi32(w, 8)));
}

LANES_INLINE value_weights v_weights(const int16_t *row, uint32_t group)
{
    int32_t low, high;
    memcpy(&low, (const uint8_t *)row + 4 * group, sizeof low);
    memcpy(&high, (const uint8_t *)row + AEG_ATTN_BLOCK + 4 * group, sizeof high);
    return (value_weights){ _mm512_set1_epi32(low), _mm512_set1_epi32(high) };
}

LANES_INLINE value_sums v_mac(value_sums acc, value_operand v, value_weights w)
{
    return (value_sums){ _mm512_dpbusd_epi32(acc.low, w.low, v), _mm512_dpbusd_epi32(acc.high, w.high, v) };
}

LANES_INLINE ilanes v_total(value_sums acc)
{
    return _mm512_add_epi32(acc.low, _mm512_slli_epi32(acc.high, 8));
}

#endif
