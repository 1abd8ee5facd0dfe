/* SPDX-License-Identifier: Apache-2.0 */
/* neon/matmul_i16.c - int16 activations: codes widened to 16 bits, one 32-bit accumulator per row of a quarter
 * (lane = column % 4), added across at the end of each plane group. */
#include "kernels/neon/matmul.h"
#include "kernels/register.h"

AEG_INLINE int32x4_t dot_group(int32x4_t dot, const uint8x16_t *quads, const int16_t *q)
{
    int32x4_t r0 = vdupq_n_s32(0), r1 = r0, r2 = r0, r3 = r0;
    AEG_UNROLL for (uint32_t j = 0; j < AEG_QUADS; j++) {
        const int16x4_t x = vld1_s16(q + 4 * j);
        const int16x8_t rows01 = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(quads[j])));
        const int16x8_t rows23 = vreinterpretq_s16_u16(vmovl_high_u8(quads[j]));
        r0 = vmlal_s16(r0, vget_low_s16(rows01), x);
        r1 = vmlal_s16(r1, vget_high_s16(rows01), x);
        r2 = vmlal_s16(r2, vget_low_s16(rows23), x);
        r3 = vmlal_s16(r3, vget_high_s16(rows23), x);
    }
    return vaddq_s32(dot, vpaddq_s32(vpaddq_s32(r0, r1), vpaddq_s32(r2, r3)));
}

static void row_block(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block)
{
    const aeg_weights *w = a->w;
    const uint32_t bits = w->type.bits, scale_kind = w->type.scale_kind, n = x->n;
    const uint32_t scale_bytes = AEG_ROWS * aeg_scale_bytes(scale_kind), x_block = a->x->block;
    const uint8_t *p = w->data + block * w->block_stride, *header = p;
    float32x4_t y[AEG_STRIP][AEG_QUARTERS];
    int32x4_t dot[AEG_STRIP][AEG_QUARTERS];
    uint8x16_t quads[AEG_QUADS];

    for (uint32_t m = 0; m < n; m++)
        y[m][0] = y[m][1] = y[m][2] = y[m][3] = vdupq_n_f32(0);
    for (size_t col = 0; col < w->n_cols;) {
        const size_t b = col / x_block;
        if (col % w->type.group == 0) {
            header = p;
            p += 2 * scale_bytes;
        }
        for (uint32_t m = 0; m < n; m++)
            dot[m][0] = dot[m][1] = dot[m][2] = dot[m][3] = vdupq_n_s32(0);
        for (const size_t end = col + x_block; col < end; col += AEG_PLANE_COLS) {
            for (uint32_t i = 0; i < AEG_QUARTERS; i++) {
                aeg_expand(bits, p + i * AEG_QUARTER_BYTES, quads);
                for (uint32_t m = 0; m < n; m++)
                    dot[m][i] = dot_group(dot[m][i], quads, x->q16[m] + col);
            }
            p += AEG_PLANE_BYTES * bits;
        }
        for (uint32_t i = 0; i < AEG_QUARTERS; i++) {
            const float32x4_t scale = aeg_load_floats(scale_kind, header, i);
            const float32x4_t bias = aeg_load_floats(scale_kind, header + scale_bytes, i);
            for (uint32_t m = 0; m < n; m++)
                y[m][i] = aeg_add_dot(y[m][i], scale, bias, dot[m][i], x->d[m][b], x->s[m][b]);
        }
    }
    for (uint32_t m = 0; m < n; m++)
        aeg_store_rows(x->y[m], w, block, y[m]);
}

static void strip(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block0, uint32_t block1)
{
    for (uint32_t block = block0; block < block1; block++)
        row_block(a, x, block);
}

static void i16(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)
{
    aeg_for_strips(a, AEG_ACT_I16, block0, block1, strip);
}

void aeg_matmul_neon_i16_register(aeg_kernels *k)
{
    for (int bits = 2; bits <= 8; bits++)
        if (bits != 7)
            k->affine[bits][AEG_ACT_I16] = i16;
}
