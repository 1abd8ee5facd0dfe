/* SPDX-License-Identifier: Apache-2.0 */
/* neon/matmul.h - what the NEON matmuls share: a row block is four quarters of 4 rows, and each 64-byte plane is
 * read as four 16-byte vectors. */
#ifndef AEG_KERNELS_NEON_MATMUL_H
#define AEG_KERNELS_NEON_MATMUL_H

#include <arm_neon.h>

#include "kernels/kernels.h"
#include "kernels/strip.h"

enum { AEG_QUARTERS = 4, AEG_QUARTER_ROWS = 4, AEG_QUARTER_BYTES = 16 };

void aeg_matmul_neon_i8_register(aeg_kernels *k);     /* widening products                          */
void aeg_matmul_neon_i8_dot_register(aeg_kernels *k); /* sdot: only where aeg_cpu_has_dotprod() says so */
void aeg_matmul_neon_i16_register(aeg_kernels *k);
void aeg_matmul_neon_f32_register(aeg_kernels *k);
void aeg_matmul_neon_plain_register(aeg_kernels *k);
void aeg_matmul_neon_blocks_i8_register(aeg_kernels *k);
void aeg_matmul_neon_blocks_i8_dot_register(aeg_kernels *k);
void aeg_matmul_neon_blocks_register(aeg_kernels *k);
void aeg_matmul_neon_f8_register(aeg_kernels *k);

/* The 4 stored floats of quarter i out of 16. */
AEG_INLINE float32x4_t aeg_load_floats(uint32_t kind, const uint8_t *p, uint32_t i)
{
    p += i * AEG_QUARTER_ROWS * aeg_scale_bytes(kind);
    if (kind == AEG_W_BF16)
        return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
    if (kind == AEG_W_F16)
        return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
    return vreinterpretq_f32_u8(vld1q_u8(p));
}

/* Shift by a constant of either sign; vector operators, since the intrinsics want a literal. */
AEG_INLINE uint8x16_t aeg_shift_right(uint8x16_t v, int by)
{
    return by > 0 ? v >> vdupq_n_u8((uint8_t)by) : by < 0 ? v << vdupq_n_u8((uint8_t)-by) : v;
}

/* The codes of quad j of the quarter whose planes start at `planes`; bits and j are constants. */
AEG_INLINE uint8x16_t aeg_quad(uint32_t bits, const uint8_t *planes, uint32_t j)
{
    const uint32_t low = aeg_low_bits(bits), high = bits - low;
    const uint8x16_t v =
        aeg_shift_right(vld1q_u8(planes + AEG_PLANE_BYTES * (j * low / 8)), (int)(j * low % 8));
    if (bits == 8)
        return v;
    const uint8x16_t low_code = vandq_u8(v, vdupq_n_u8((uint8_t)((1u << low) - 1)));
    if (high == 0)
        return low_code;
    const uint8x16_t h = aeg_shift_right(vld1q_u8(planes + AEG_PLANE_BYTES * (low + j * high / 8)),
                                         (int)(j * high % 8) - (int)low);
    return vorrq_u8(low_code, vandq_u8(h, vdupq_n_u8((uint8_t)(((1u << high) - 1) << low))));
}

AEG_INLINE void aeg_expand_bits(uint32_t bits, const uint8_t *planes, uint8x16_t *quads)
{
    AEG_UNROLL for (uint32_t j = 0; j < AEG_QUADS; j++) quads[j] = aeg_quad(bits, planes, j);
}

/* The 8 quads of one quarter of a plane group, for the kernels that are not compiled once per width. */
AEG_INLINE void aeg_expand(uint32_t bits, const uint8_t *planes, uint8x16_t *quads)
{
    switch (bits) {
    case 2: aeg_expand_bits(2, planes, quads); break;
    case 3: aeg_expand_bits(3, planes, quads); break;
    case 4: aeg_expand_bits(4, planes, quads); break;
    case 5: aeg_expand_bits(5, planes, quads); break;
    case 6: aeg_expand_bits(6, planes, quads); break;
    default: aeg_expand_bits(8, planes, quads); break;
    }
}

/* y = fma(scale*d, dot, y), then fma(bias, s, y). */
AEG_INLINE float32x4_t aeg_add_dot(float32x4_t y, float32x4_t scale, float32x4_t bias, int32x4_t dot, float d,
                                   float s)
{
    y = vfmaq_f32(y, vmulq_n_f32(scale, d), vcvtq_f32_s32(dot));
    return vfmaq_n_f32(y, bias, s);
}

AEG_INLINE void aeg_store_rows(float *y, const aeg_weights *w, uint32_t block, const float32x4_t *v)
{
    float rows[AEG_ROWS];
    AEG_UNROLL for (uint32_t i = 0; i < AEG_QUARTERS; i++) vst1q_f32(rows + AEG_QUARTER_ROWS * i, v[i]);
    memcpy(y + (size_t)block * AEG_ROWS, rows, aeg_rows_of_block(w, block) * sizeof(float));
}

#endif
