/* SPDX-License-Identifier: Apache-2.0 */
/* neon/matmul_i8.c - int8 activations without the dot-product extension: 8-bit products widened to 16 bits, two of
 * them added (2*128*127 = 32512 fits), then pairs widened to 32. */
#include "kernels/neon/matmul.h"

/* Quads a and b against activations xa and xb (4 columns, repeated); lanes hold two partial sums per row. */
AEG_INLINE void add_two(int32x4_t *rows01, int32x4_t *rows23, int8x16_t a, int8x16_t xa, int8x16_t b, int8x16_t xb)
{
    int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(xa)), high = vmull_high_s8(a, xa);
    low = vmlal_s8(low, vget_low_s8(b), vget_low_s8(xb));
    high = vmlal_high_s8(high, b, xb);
    *rows01 = vpadalq_s16(*rows01, low);
    *rows23 = vpadalq_s16(*rows23, high);
}

/* A macro, since the lane must be a literal. */
#define COPY(x, lane) vreinterpretq_s8_s32(vdupq_laneq_s32(vreinterpretq_s32_s8(x), lane))

AEG_INLINE int32x4_t dot_quads(int32x4_t dot, const int8x16_t *u, int8x16_t x0, int8x16_t x1)
{
    int32x4_t rows01 = vdupq_n_s32(0), rows23 = rows01;
    add_two(&rows01, &rows23, u[0], COPY(x0, 0), u[1], COPY(x0, 1));
    add_two(&rows01, &rows23, u[2], COPY(x0, 2), u[3], COPY(x0, 3));
    add_two(&rows01, &rows23, u[4], COPY(x1, 0), u[5], COPY(x1, 1));
    add_two(&rows01, &rows23, u[6], COPY(x1, 2), u[7], COPY(x1, 3));
    return vaddq_s32(dot, vpaddq_s32(rows01, rows23));
}

#define REGISTER aeg_matmul_neon_i8_register
#include "kernels/neon/matmul_i8.inc.h"
