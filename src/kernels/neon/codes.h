/* SPDX-License-Identifier: Apache-2.0 */
/* style: long: primitives, a line or a few each.
 * neon/codes.h - 64 codes as four q registers: the primitives of wide/attention_codes.inc.h and wide/hadamard.inc.h
 * (described there). Products of 8 bits are widened (no dot-product extension needed); a pair of them is at most
 * 2*127*127 = 32258 and fits 16 bits. Thread: any. */
#ifndef AEG_KERNELS_NEON_CODES_H
#define AEG_KERNELS_NEON_CODES_H

#include <string.h>

#include "kernels/attention.h"
#include "kernels/neon/ilanes.h"

enum { KEY_ROWS = 4, VALUE_ROWS = 2, VALUE_COLS = 1 };

typedef struct { uint8x16_t q[4]; } code64;
typedef code64 key_operand;
typedef ilanes value_sums;
typedef struct { int16x8_t even[4], odd[4]; } value_operand; /* positions 0 and 2, 1 and 3 of each lane */
typedef struct { int16x8_t even, odd; } value_weights;

LANES_INLINE lanes l_from_i(ilanes x) { QUARTERS(lanes, vcvtq_f32_s32(x.q[i])); }
LANES_INLINE lanes l_swap1(lanes x) { QUARTERS(lanes, vrev64q_f32(x.q[i])); }
LANES_INLINE lanes l_swap2(lanes x) { QUARTERS(lanes, vextq_f32(x.q[i], x.q[i], 2)); }
LANES_INLINE lanes l_swap4(lanes x) { QUARTERS(lanes, x.q[i ^ 1]); }
LANES_INLINE lanes l_swap8(lanes x) { QUARTERS(lanes, x.q[i ^ 2]); }

LANES_INLINE void l_zip(lanes *low, lanes *high, lanes x, lanes y)
{
    for (int i = 0; i < 2; i++) {
        low->q[2 * i] = vzip1q_f32(x.q[i], y.q[i]);
        low->q[2 * i + 1] = vzip2q_f32(x.q[i], y.q[i]);
        high->q[2 * i] = vzip1q_f32(x.q[2 + i], y.q[2 + i]);
        high->q[2 * i + 1] = vzip2q_f32(x.q[2 + i], y.q[2 + i]);
    }
}

LANES_INLINE code64 c_load(const uint8_t *p) { QUARTERS(code64, vld1q_u8(p + 16 * i)); }
LANES_INLINE code64 c_and(code64 x, uint8_t mask) { QUARTERS(code64, vandq_u8(x.q[i], vdupq_n_u8(mask))); }
LANES_INLINE code64 c_or(code64 x, code64 y) { QUARTERS(code64, vorrq_u8(x.q[i], y.q[i])); }
LANES_INLINE code64 c_lookup(code64 table, code64 index) { QUARTERS(code64, vqtbl1q_u8(table.q[i], index.q[i])); }

LANES_INLINE void c_store(uint8_t *p, code64 x)
{
    for (int i = 0; i < 4; i++)
        vst1q_u8(p + 16 * i, x.q[i]);
}

/* By a register: the immediate forms want a literal. */
LANES_INLINE uint8x16_t shift16(uint8x16_t x, int n)
{
    return vreinterpretq_u8_u16(vshlq_u16(vreinterpretq_u16_u8(x), vdupq_n_s16((int16_t)n)));
}
LANES_INLINE code64 c_shr(code64 x, int n) { QUARTERS(code64, shift16(x.q[i], -n)); }
LANES_INLINE code64 c_shl(code64 x, int n) { QUARTERS(code64, shift16(x.q[i], n)); }

LANES_INLINE code64 c_table(const int8_t *entries)
{
    const uint8x16_t t = vreinterpretq_u8_s8(vld1q_s8(entries));
    QUARTERS(code64, t);
}

/* Two bytes of each 4-byte piece, each becoming a byte of its low and one of its high nibble. */
LANES_INLINE code64 c_spread_key(const uint8_t *p, int odd)
{
    static const uint8_t picks[2][16] = { { 0, 255, 1, 255, 4, 255, 5, 255, 8, 255, 9, 255, 12, 255, 13, 255 },
                                          { 2, 255, 3, 255, 6, 255, 7, 255, 10, 255, 11, 255, 14, 255, 15, 255 } };
    const uint8x16_t pick = vld1q_u8(picks[odd]);
    code64 x = c_load(p);
    for (int i = 0; i < 4; i++)
        x.q[i] = vqtbl1q_u8(x.q[i], pick);
    return c_and(c_or(x, c_shl(x, 4)), 15);
}

LANES_INLINE uint8x16_t spread8(const uint8_t *p)
{
    uint32_t pieces[2];
    memcpy(pieces, p, sizeof pieces);
    const uint64x2_t x = vmovl_u32(vld1_u32(pieces));
    return vreinterpretq_u8_u64(vorrq_u64(x, vshlq_n_u64(x, 28)));
}

/* 8 pieces of 4 positions; each becomes a piece of its low and one of its high nibbles. */
LANES_INLINE code64 c_spread_value(const uint8_t *p)
{
    code64 x;
    for (int i = 0; i < 4; i++)
        x.q[i] = spread8(p + 8 * i);
    return c_and(x, 15);
}

LANES_INLINE key_operand c_key(code64 x) { return x; }

LANES_INLINE int32_t c_bias(const int8_t *q, uint32_t d)
{
    (void)q;
    (void)d;
    return 0;
}

LANES_INLINE int32x4_t dot4(int32x4_t acc, int8x16_t k, int8x16_t q)
{
    const int16x8_t low = vmull_s8(vget_low_s8(k), vget_low_s8(q)), high = vmull_high_s8(k, q);
    return vpadalq_s16(acc, vpaddq_s16(low, high));
}

LANES_INLINE ilanes c_dot(ilanes acc, key_operand k, const int8_t *q)
{
    int32_t four;
    memcpy(&four, q, sizeof four);
    const int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(four));
    QUARTERS(ilanes, dot4(acc.q[i], vreinterpretq_s8_u8(k.q[i]), x));
}

LANES_INLINE value_operand c_value(code64 x)
{
    value_operand v;
    for (int i = 0; i < 4; i++) {
        const int16x8_t pair = vreinterpretq_s16_u8(x.q[i]);
        v.even[i] = vshrq_n_s16(vshlq_n_s16(pair, 8), 8);
        v.odd[i] = vshrq_n_s16(pair, 8);
    }
    return v;
}

LANES_INLINE value_sums v_zero(void) { return i_set1(0); }

/* Groups of four weights in the order 0, 2, 1, 3. */
LANES_INLINE void v_store_weights(int16_t *row, uint32_t pos, ilanes w)
{
    for (int i = 0; i < 4; i++) {
        const int32x4_t swapped = vzip1q_s32(w.q[i], vextq_s32(w.q[i], w.q[i], 2)); /* 0 2 1 3 */
        vst1_s16(row + pos + 4 * i, vqmovn_s32(swapped));
    }
}

LANES_INLINE value_weights v_weights(const int16_t *row, uint32_t group)
{
    int32_t pairs[2];
    memcpy(pairs, row + 4 * group, sizeof pairs);
    return (value_weights){ vreinterpretq_s16_s32(vdupq_n_s32(pairs[0])), vreinterpretq_s16_s32(vdupq_n_s32(pairs[1])) };
}

LANES_INLINE int32x4_t pair_dots(int16x8_t v, int16x8_t w)
{
    return vpaddq_s32(vmull_s16(vget_low_s16(v), vget_low_s16(w)), vmull_high_s16(v, w));
}

LANES_INLINE value_sums v_mac(value_sums acc, value_operand v, value_weights w)
{
    QUARTERS(ilanes, vaddq_s32(acc.q[i], vaddq_s32(pair_dots(v.even[i], w.even), pair_dots(v.odd[i], w.odd))));
}

LANES_INLINE ilanes v_total(value_sums acc) { return acc; }

#endif
