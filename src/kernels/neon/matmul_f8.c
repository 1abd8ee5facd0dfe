/* SPDX-License-Identifier: Apache-2.0 */
/* neon/matmul_f8.c - F8 weights and f32 activations. */
#include "kernels/neon/blocks.h"
#include "kernels/register.h"

enum { F8_BLOCKS = 2, F8_TOKENS = 4 };

/* Eight codes, sign-extended and shifted: the sign stands at bit 15 and once more at 14, which is taken away: a binary16. */
AEG_INLINE uint16x8_t f8_halves(int8x8_t codes)
{
    return vandq_u16(vreinterpretq_u16_s16(vshll_n_s8(codes, 7)), vdupq_n_u16(0xbfff));
}

AEG_INLINE void f8_codes(const uint8_t *p, fvec *out)
{
    const int8x16_t codes = vreinterpretq_s8_u8(vld1q_u8(p));
    const uint16x8_t low = f8_halves(vget_low_s8(codes)), high = f8_halves(vget_high_s8(codes));
    out[0] = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(low)));
    out[1] = vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(low)));
    out[2] = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(high)));
    out[3] = vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(high)));
}

AEG_INLINE fvec f_load(const uint8_t *p) { return aeg_load_floats(AEG_W_F32, p, 0); }

#include "kernels/wide/matmul_f8.inc.h"

void aeg_matmul_neon_f8_register(aeg_kernels *k) { k->f8 = f8; }
