/* SPDX-License-Identifier: Apache-2.0 */
/* neon/matmul_blocks.c - int16 and f32 activations with the ggml types. */
#include "kernels/neon/blocks.h"
#include "kernels/register.h"

enum { BLOCKS_F32 = 1 }; /* the four quarters are four chains */

/* One 32-bit accumulator per row (lane = column % 4), added across at the end. */
AEG_INLINE vec b_dot16(const vec *u, const int16_t *q, uint32_t n_quads, uint32_t offset)
{
    const int16x8_t minus = vdupq_n_s16((int16_t)offset);
    int32x4_t r0 = vdupq_n_s32(0), r1 = r0, r2 = r0, r3 = r0;
    for (uint32_t j = 0; j < n_quads; j++) {
        const int16x4_t x = vld1_s16(q + 4 * j);
        const int16x8_t rows01 = vsubq_s16(vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(u[j]))), minus);
        const int16x8_t rows23 = vsubq_s16(vreinterpretq_s16_u16(vmovl_high_u8(u[j])), minus);
        r0 = vmlal_s16(r0, vget_low_s16(rows01), x);
        r1 = vmlal_s16(r1, vget_high_s16(rows01), x);
        r2 = vmlal_s16(r2, vget_low_s16(rows23), x);
        r3 = vmlal_s16(r3, vget_high_s16(rows23), x);
    }
    return vreinterpretq_u8_s32(vpaddq_s32(vpaddq_s32(r0, r1), vpaddq_s32(r2, r3)));
}

#include "kernels/wide/matmul_blocks.inc.h"

void aeg_matmul_neon_blocks_register(aeg_kernels *k) { b_register(k); }
