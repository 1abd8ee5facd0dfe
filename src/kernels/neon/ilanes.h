/* SPDX-License-Identifier: Apache-2.0 */
/* neon/ilanes.h - the integer half of lanes.h: 16 int32 lanes, for the quantiser and the router. Thread: any. */
#ifndef AEG_KERNELS_NEON_ILANES_H
#define AEG_KERNELS_NEON_ILANES_H

#include "kernels/neon/lanes.h"

LANES_INLINE ilanes i_load(const int32_t *p) { QUARTERS(ilanes, vld1q_s32(p + 4 * i)); }
LANES_INLINE ilanes i_set1(int32_t x) { QUARTERS(ilanes, vdupq_n_s32(x)); }
LANES_INLINE ilanes i_add(ilanes x, ilanes y) { QUARTERS(ilanes, vaddq_s32(x.q[i], y.q[i])); }
LANES_INLINE ilanes i_max(ilanes x, ilanes y) { QUARTERS(ilanes, vmaxq_s32(x.q[i], y.q[i])); }
LANES_INLINE ilanes i_round(lanes x) { QUARTERS(ilanes, vcvtnq_s32_f32(x.q[i])); }
LANES_INLINE ilanes i_magnitude(lanes x) { QUARTERS(ilanes, bits4(vabsq_f32(x.q[i]))); }

LANES_INLINE void i_store(int32_t *p, ilanes x)
{
    for (int i = 0; i < 4; i++)
        vst1q_s32(p + 4 * i, x.q[i]);
}

LANES_INLINE int32_t i_sum(ilanes x)
{
    return vaddvq_s32(vaddq_s32(vaddq_s32(x.q[0], x.q[1]), vaddq_s32(x.q[2], x.q[3])));
}

LANES_INLINE int32_t i_max_all(ilanes x)
{
    return vmaxvq_s32(vmaxq_s32(vmaxq_s32(x.q[0], x.q[1]), vmaxq_s32(x.q[2], x.q[3])));
}

LANES_INLINE int i_find(ilanes x, int32_t value)
{
    static const uint8_t index[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    const int32x4_t v = vdupq_n_s32(value);
    const uint16x8_t low = vcombine_u16(vmovn_u32(vceqq_s32(x.q[0], v)), vmovn_u32(vceqq_s32(x.q[1], v)));
    const uint16x8_t high = vcombine_u16(vmovn_u32(vceqq_s32(x.q[2], v)), vmovn_u32(vceqq_s32(x.q[3], v)));
    const uint8x16_t equal = vcombine_u8(vmovn_u16(low), vmovn_u16(high));
    return vminvq_u8(vbslq_u8(equal, vld1q_u8(index), vdupq_n_u8(16)));
}

/* aeg_router_key on each lane. */
LANES_INLINE int32x4_t router_key4(float32x4_t x)
{
    const int32x4_t u = bits4(vaddq_f32(x, vdupq_n_f32(0.0f)));
    const uint32x4_t flip = vshrq_n_u32(vreinterpretq_u32_s32(vshrq_n_s32(u, 31)), 1);
    const int32x4_t key = veorq_s32(u, vreinterpretq_s32_u32(flip));
    return vbslq_s32(vceqq_f32(x, x), key, vdupq_n_s32(INT32_MIN + 1));
}

LANES_INLINE ilanes i_router_key(lanes x) { QUARTERS(ilanes, router_key4(x.q[i])); }

LANES_INLINE int16x8_t pack8(int32x4_t x, int32x4_t y) { return vcombine_s16(vqmovn_s32(x), vqmovn_s32(y)); }

LANES_INLINE void i_store_i16(int16_t *p, ilanes x)
{
    vst1q_s16(p, pack8(x.q[0], x.q[1]));
    vst1q_s16(p + 8, pack8(x.q[2], x.q[3]));
}

LANES_INLINE void i_store_i8(int8_t *p, ilanes x)
{
    vst1q_s8(p, vcombine_s8(vqmovn_s16(pack8(x.q[0], x.q[1])), vqmovn_s16(pack8(x.q[2], x.q[3]))));
}

#endif
