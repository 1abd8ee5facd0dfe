/* SPDX-License-Identifier: Apache-2.0 */
/* neon/matmul_i8.inc.h - int8 activations over quarters of 4 rows; the including file has defined dot_quads(),
 * the sum of 8 signed products of 4 rows x 4 columns, and REGISTER, the name of the registration.
 *
 * Codes up to 6 bits are valid signed values. Of 8-bit codes 128 is taken away, which makes them signed, and
 * the dot starts at 128 * sum(activations) instead of 0: exact in integers. */
#include "kernels/neon/matmul.h"
#include "kernels/register.h"

AEG_INLINE void expand(const uint32_t bits, const uint8_t *planes, int8x16_t *u)
{
    AEG_UNROLL for (uint32_t j = 0; j < AEG_QUADS; j++) {
        const uint8x16_t quad = aeg_quad(bits, planes, j);
        u[j] = vreinterpretq_s8_u8(bits == 8 ? veorq_u8(quad, vdupq_n_u8(0x80)) : quad);
    }
}

AEG_INLINE int32x4_t first_dot(const uint32_t bits, const int8_t *q, uint32_t n)
{
    int32_t sum = 0;
    if (bits == 8)
        for (uint32_t c = 0; c < n; c += 16)
            sum += vaddlvq_s8(vld1q_s8(q + c));
    return vdupq_n_s32(128 * sum);
}

/* One row block, n tokens; bits is a constant, and n where it is 1. */
AEG_INLINE void row_block(const uint32_t bits, const uint32_t n, const aeg_matmul_args *a, const aeg_strip *x,
                          uint32_t block)
{
    const aeg_weights *w = a->w;
    const uint32_t scale_kind = w->type.scale_kind, scale_bytes = AEG_ROWS * aeg_scale_bytes(scale_kind);
    const uint32_t group = w->type.group, x_block = a->x->block;
    const uint8_t *p = w->data + block * w->block_stride;
    float32x4_t y[AEG_STRIP][AEG_QUARTERS];
    int32x4_t dot[AEG_STRIP][AEG_QUARTERS];
    int8x16_t u[AEG_QUADS];

    for (uint32_t m = 0; m < n; m++)
        y[m][0] = y[m][1] = y[m][2] = y[m][3] = vdupq_n_f32(0);
    for (size_t col = 0; col < w->n_cols;) {
        const uint8_t *header = p;
        p += 2 * scale_bytes;
        for (const size_t tile_end = col + group; col < tile_end;) {
            const size_t b = col / x_block;
            for (uint32_t m = 0; m < n; m++)
                dot[m][0] = dot[m][1] = dot[m][2] = dot[m][3] = first_dot(bits, x->q8[m] + col, x_block);
            for (const size_t end = col + x_block; col < end; col += AEG_PLANE_COLS) {
                AEG_UNROLL for (uint32_t i = 0; i < AEG_QUARTERS; i++) {
                    expand(bits, p + i * AEG_QUARTER_BYTES, u);
                    for (uint32_t m = 0; m < n; m++)
                        dot[m][i] = dot_quads(dot[m][i], u, vld1q_s8(x->q8[m] + col), vld1q_s8(x->q8[m] + col + 16));
                }
                p += AEG_PLANE_BYTES * bits;
            }
            AEG_UNROLL for (uint32_t i = 0; i < AEG_QUARTERS; i++) {
                const float32x4_t scale = aeg_load_floats(scale_kind, header, i);
                const float32x4_t bias = aeg_load_floats(scale_kind, header + scale_bytes, i);
                for (uint32_t m = 0; m < n; m++)
                    y[m][i] = aeg_add_dot(y[m][i], scale, bias, dot[m][i], x->d[m][b], x->s[m][b]);
            }
        }
    }
    for (uint32_t m = 0; m < n; m++)
        aeg_store_rows(x->y[m], w, block, y[m]);
}

#define WIDTH(bits)                                                                                             \
    static void i8_##bits##_one(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block0, uint32_t block1)  \
    {                                                                                                           \
        for (uint32_t block = block0; block < block1; block++)                                                  \
            row_block(bits, 1, a, x, block);                                                                    \
    }                                                                                                           \
    static void i8_##bits##_some(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block0, uint32_t block1) \
    {                                                                                                           \
        for (uint32_t block = block0; block < block1; block++)                                                  \
            row_block(bits, x->n, a, x, block);                                                                 \
    }                                                                                                           \
    static void i8_##bits(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)                           \
    {                                                                                                           \
        aeg_for_strips(a, AEG_ACT_I8, block0, block1, a->n == 1 ? i8_##bits##_one : i8_##bits##_some);         \
    }

WIDTH(2)
WIDTH(3)
WIDTH(4)
WIDTH(5)
WIDTH(6)
WIDTH(8)

void REGISTER(aeg_kernels *k)
{
    k->affine[2][AEG_ACT_I8] = i8_2;
    k->affine[3][AEG_ACT_I8] = i8_3;
    k->affine[4][AEG_ACT_I8] = i8_4;
    k->affine[5][AEG_ACT_I8] = i8_5;
    k->affine[6][AEG_ACT_I8] = i8_6;
    k->affine[8][AEG_ACT_I8] = i8_8;
}
