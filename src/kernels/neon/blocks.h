/* SPDX-License-Identifier: Apache-2.0 */
/* neon/blocks.h - the primitives of wide/blocks.inc.h: four parts of 4 rows. */
#ifndef AEG_KERNELS_NEON_BLOCKS_H
#define AEG_KERNELS_NEON_BLOCKS_H

#include "kernels/blocks.h"
#include "kernels/grids.h"
#include "kernels/neon/matmul.h"

enum { PARTS = AEG_QUARTERS, PART_ROWS = AEG_QUARTER_ROWS, PART_BYTES = AEG_QUARTER_BYTES, PREFETCH_ONE = 0, LANES_AHEAD = 0 };

typedef uint8x16_t vec;
typedef float32x4_t fvec;

AEG_INLINE uint32x4_t v_words(vec v) { return vreinterpretq_u32_u8(v); }
AEG_INLINE vec v_of_words(uint32x4_t v) { return vreinterpretq_u8_u32(v); }

AEG_INLINE uint8x8_t v_four(const uint8_t *p) { return vreinterpret_u8_u32(vdup_n_u32((uint32_t)aeg_load32(p))); }

AEG_INLINE vec v_load(const uint8_t *p) { return vld1q_u8(p); }
AEG_INLINE vec v_u8(const uint8_t *p) { return v_of_words(vmovl_u16(vget_low_u16(vmovl_u8(v_four(p))))); }
AEG_INLINE vec v_i8(const uint8_t *p)
{
    return vreinterpretq_u8_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(v_four(p))))));
}
AEG_INLINE vec v_set(int32_t x) { return vreinterpretq_u8_s32(vdupq_n_s32(x)); }
AEG_INLINE vec v_set8(int32_t x) { return vdupq_n_u8((uint8_t)x); }
AEG_INLINE vec v_and(vec a, vec b) { return vandq_u8(a, b); }
AEG_INLINE vec v_or(vec a, vec b) { return vorrq_u8(a, b); }
AEG_INLINE vec v_xor(vec a, vec b) { return veorq_u8(a, b); }
AEG_INLINE vec v_add(vec a, vec b) { return v_of_words(vaddq_u32(v_words(a), v_words(b))); }
AEG_INLINE vec v_sub(vec a, vec b) { return v_of_words(vsubq_u32(v_words(a), v_words(b))); }
AEG_INLINE vec v_add8(vec a, vec b) { return vaddq_u8(a, b); }
AEG_INLINE vec v_sub8(vec a, vec b) { return vsubq_u8(a, b); }
/* Vector operators, since the intrinsics want a literal. */
AEG_INLINE vec v_shr(vec v, int n) { return v_of_words(v_words(v) >> vdupq_n_u32((uint32_t)n)); }
AEG_INLINE vec v_shl(vec v, int n) { return v_of_words(v_words(v) << vdupq_n_u32((uint32_t)n)); }
AEG_INLINE vec v_where_less(vec v, int32_t n, vec a, vec b)
{
    return vbslq_u8(v_of_words(vcltq_s32(vreinterpretq_s32_u8(v), vdupq_n_s32(n))), a, b);
}

/* Byte i: table[v.byte i], entries 0..15. */
AEG_INLINE vec v_lookup(const uint8_t *table, vec v) { return vqtbl1q_u8(vld1q_u8(table), v); }

AEG_INLINE vec v_gather(const uint32_t *table, vec i)
{
    const uint32x4_t at = v_words(i);
    const uint32_t words[4] = { table[vgetq_lane_u32(at, 0)], table[vgetq_lane_u32(at, 1)], table[vgetq_lane_u32(at, 2)],
                                table[vgetq_lane_u32(at, 3)] };
    return v_of_words(vld1q_u32(words));
}

/* 0xff in byte t of a lane where bit t (odd: 4 + t) of its byte `group` is set. */
AEG_INLINE vec v_sign_mask(vec signs, uint32_t group, uint32_t odd)
{
    static const uint32_t first_byte[4] = { 0, 0x04040404, 0x08080808, 0x0c0c0c0c };
    const vec byte = vaddq_u8(v_of_words(vld1q_u32(first_byte)), vdupq_n_u8((uint8_t)group));
    return vtstq_u8(vqtbl1q_u8(signs, byte), v_set(odd ? (int32_t)0x80402010 : 0x08040201));
}

AEG_INLINE fvec f_half(const uint8_t *p) { return aeg_load_floats(AEG_W_F16, p, 0); }
AEG_INLINE fvec f_set(float x) { return vdupq_n_f32(x); }
AEG_INLINE fvec f_from(vec v) { return vcvtq_f32_s32(vreinterpretq_s32_u8(v)); }
AEG_INLINE fvec f_bits(vec v) { return vreinterpretq_f32_u8(v); }
AEG_INLINE fvec f_mul(fvec a, fvec b) { return vmulq_f32(a, b); }
AEG_INLINE fvec f_fma(fvec a, fvec b, fvec c) { return vfmaq_f32(c, a, b); }
AEG_INLINE fvec f_negate(fvec a) { return vnegq_f32(a); }

AEG_INLINE void b_store(float *y, const aeg_weights *w, uint32_t block, const fvec *rows) { aeg_store_rows(y, w, block, rows); }

#include "kernels/wide/blocks.inc.h"

#endif
