/* SPDX-License-Identifier: Apache-2.0 */
/* neon/lanes.h - 16 float lanes as four q registers: the primitives under kernels/wide/ (described in
 * wide/lanes_math.inc.h). Thread: any. */
#ifndef AEG_KERNELS_NEON_LANES_H
#define AEG_KERNELS_NEON_LANES_H

#include <arm_neon.h>
#include <stdint.h>

#define LANES_INLINE static inline __attribute__((always_inline))

typedef struct { float32x4_t q[4]; } lanes; /* q[i]: lanes 4i .. 4i+3 */
typedef struct { int32x4_t q[4]; } ilanes;

/* 32 registers: four accumulators (16 registers), and what feeds them. */
enum { TILE_HEADS = 2, TILE_POS = 2, TILE_COLS = 2, GDN_STRIPS = 2, HYPER_STREAMS = 2 };

/* expr for each quarter i */
#define QUARTERS(type, expr)      \
    type out;                     \
    for (int i = 0; i < 4; i++)   \
        out.q[i] = (expr);        \
    return out

LANES_INLINE lanes l_load(const float *p) { QUARTERS(lanes, vld1q_f32(p + 4 * i)); }
LANES_INLINE lanes l_set1(float x) { QUARTERS(lanes, vdupq_n_f32(x)); }
LANES_INLINE lanes l_add(lanes x, lanes y) { QUARTERS(lanes, vaddq_f32(x.q[i], y.q[i])); }
LANES_INLINE lanes l_sub(lanes x, lanes y) { QUARTERS(lanes, vsubq_f32(x.q[i], y.q[i])); }
LANES_INLINE lanes l_mul(lanes x, lanes y) { QUARTERS(lanes, vmulq_f32(x.q[i], y.q[i])); }
LANES_INLINE lanes l_div(lanes x, lanes y) { QUARTERS(lanes, vdivq_f32(x.q[i], y.q[i])); }
LANES_INLINE lanes l_fma(lanes x, lanes y, lanes z) { QUARTERS(lanes, vfmaq_f32(z.q[i], x.q[i], y.q[i])); }
LANES_INLINE lanes l_neg(lanes x) { QUARTERS(lanes, vnegq_f32(x.q[i])); }

/* Not vmaxq, which returns a NaN where the definition (aeg_maxf) passes it over. */
LANES_INLINE float32x4_t max4(float32x4_t x, float32x4_t y) { return vbslq_f32(vcgtq_f32(x, y), x, y); }
LANES_INLINE lanes l_max(lanes x, lanes y) { QUARTERS(lanes, max4(x.q[i], y.q[i])); }

LANES_INLINE void l_store(float *p, lanes x)
{
    for (int i = 0; i < 4; i++)
        vst1q_f32(p + 4 * i, x.q[i]);
}

LANES_INLINE lanes l_select_le(lanes x, lanes y, lanes yes, lanes no)
{
    QUARTERS(lanes, vbslq_f32(vcleq_f32(x.q[i], y.q[i]), yes.q[i], no.q[i]));
}

LANES_INLINE int32x4_t bits4(float32x4_t x) { return vreinterpretq_s32_f32(x); }

LANES_INLINE lanes l_add_exponent(lanes p, lanes t)
{
    QUARTERS(lanes, vreinterpretq_f32_s32(vaddq_s32(bits4(p.q[i]), vshlq_n_s32(bits4(t.q[i]), 23))));
}

/* The first two levels of the tree: 16 lanes to 4. */
LANES_INLINE float32x4_t l_fold(lanes x)
{
    return vaddq_f32(vaddq_f32(x.q[0], x.q[2]), vaddq_f32(x.q[1], x.q[3]));
}

LANES_INLINE float l_sum(lanes x)
{
    const float32x4_t c = l_fold(x);
    const float32x2_t d = vadd_f32(vget_low_f32(c), vget_high_f32(c));
    return vget_lane_f32(vpadd_f32(d, d), 0);
}

LANES_INLINE float32x2_t half_sum(lanes x)
{
    const float32x4_t c = l_fold(x);
    return vadd_f32(vget_low_f32(c), vget_high_f32(c));
}

LANES_INLINE void l_sum4(float *out, const lanes *x)
{
    const float32x4_t pq = vcombine_f32(half_sum(x[0]), half_sum(x[1]));
    const float32x4_t rs = vcombine_f32(half_sum(x[2]), half_sum(x[3]));
    vst1q_f32(out, vpaddq_f32(pq, rs));
}

LANES_INLINE float l_max_all(lanes x)
{
    const float32x4_t c = max4(max4(x.q[0], x.q[2]), max4(x.q[1], x.q[3]));
    const float32x4_t d = max4(c, vextq_f32(c, c, 2));
    return vgetq_lane_f32(max4(d, vextq_f32(d, d, 1)), 0);
}

LANES_INLINE lanes l_load_f16(const uint16_t *p)
{
    QUARTERS(lanes, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i))));
}

LANES_INLINE lanes l_load_bf16(const uint16_t *p)
{
    QUARTERS(lanes, vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p + 4 * i), 16)));
}

LANES_INLINE void l_store_f16(uint16_t *p, lanes x)
{
    for (int i = 0; i < 4; i++)
        vst1_u16(p + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(x.q[i])));
}

#endif
