/* SPDX-License-Identifier: Apache-2.0 */
/* neon/matmul_blocks_i8.c - int8 activations with the ggml types, without the dot-product extension: products widened to
 * 16 bits, two of them added (2*128*127 = 32512 fits), then pairs widened to 32. */
#include "kernels/neon/matmul.h"

AEG_INLINE int32x4_t add_two(int32x4_t dot, int8x16_t a, int8x16_t xa, int8x16_t b, int8x16_t xb)
{
    int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(xa)), high = vmull_high_s8(a, xa);
    low = vmlal_s8(low, vget_low_s8(b), vget_low_s8(xb));
    high = vmlal_high_s8(high, b, xb);
    return vaddq_s32(dot, vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high)));
}

/* A macro, since the lane must be a literal. */
#define COPY(x, lane) vreinterpretq_s8_s32(vdupq_laneq_s32(vreinterpretq_s32_s8(x), lane))

AEG_INLINE int32x4_t dot_half(int32x4_t dot, const int8x16_t *u, int8x16_t x)
{
    dot = add_two(dot, u[0], COPY(x, 0), u[1], COPY(x, 1));
    return add_two(dot, u[2], COPY(x, 2), u[3], COPY(x, 3));
}

#define REGISTER aeg_matmul_neon_blocks_i8_register
#include "kernels/neon/matmul_blocks_i8.inc.h"
