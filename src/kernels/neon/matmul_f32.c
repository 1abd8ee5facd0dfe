/* SPDX-License-Identifier: Apache-2.0 */
/* neon/matmul_f32.c - f32 activations with affine weights, the reference path: w = fma(scale, code, bias),
 * y = fma(w, x, y), column by column. The four quarters of a row block are four chains; m_n tokens advance together. */
#include "kernels/neon/matmul.h"
#include "kernels/register.h"

enum { MAX_TOKENS = 4 };

/* y[i][m] += quad j of the four quarters times the tokens' 4 columns at x + 4j; m_n is a constant. */
AEG_INLINE void add_group(const uint32_t m_n, uint8x16_t quads[AEG_QUARTERS][AEG_QUADS], const float32x4_t *scale,
                          const float32x4_t *bias, const float *const *x, size_t col,
                          float32x4_t y[AEG_QUARTERS][MAX_TOKENS])
{
    const uint32x4_t mask = vdupq_n_u32(0xff);
    for (uint32_t j = 0; j < AEG_QUADS; j++)
        AEG_UNROLL for (uint32_t t = 0; t < 4; t++)
            AEG_UNROLL for (uint32_t i = 0; i < AEG_QUARTERS; i++) {
                const uint32x4_t code = vandq_u32(vreinterpretq_u32_u8(quads[i][j]) >> vdupq_n_u32(8 * t), mask);
                const float32x4_t w = vfmaq_f32(bias[i], scale[i], vcvtq_f32_u32(code));
                AEG_UNROLL for (uint32_t m = 0; m < m_n; m++)
                    y[i][m] = vfmaq_n_f32(y[i][m], w, x[m][col + 4 * j + t]);
            }
}

/* One row block, m_n (constant) tokens from m0. */
AEG_INLINE void row_block(const uint32_t m_n, const aeg_matmul_args *a, const aeg_strip *s, uint32_t m0,
                          uint32_t block)
{
    const aeg_weights *w = a->w;
    const aeg_weight_type type = w->type;
    const uint32_t scale_bytes = AEG_ROWS * aeg_scale_bytes(type.scale_kind);
    const uint8_t *p = w->data + block * w->block_stride;
    const float *x[MAX_TOKENS];
    float32x4_t y[AEG_QUARTERS][MAX_TOKENS], scale[AEG_QUARTERS], bias[AEG_QUARTERS];
    uint8x16_t quads[AEG_QUARTERS][AEG_QUADS];

    AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) {
        x[m] = s->f32[m0 + m];
        y[0][m] = y[1][m] = y[2][m] = y[3][m] = vdupq_n_f32(0);
    }
    for (size_t col = 0; col < w->n_cols;) {
        AEG_UNROLL for (uint32_t i = 0; i < AEG_QUARTERS; i++) {
            scale[i] = aeg_load_floats(type.scale_kind, p, i);
            bias[i] = aeg_load_floats(type.scale_kind, p + scale_bytes, i);
        }
        p += 2 * scale_bytes;
        for (const size_t end = col + type.group; col < end; col += AEG_PLANE_COLS) {
            for (uint32_t i = 0; i < AEG_QUARTERS; i++)
                aeg_expand(type.bits, p + i * AEG_QUARTER_BYTES, quads[i]);
            p += AEG_PLANE_BYTES * type.bits;
            add_group(m_n, quads, scale, bias, x, col, y);
        }
    }
    AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) {
        const float32x4_t rows[AEG_QUARTERS] = { y[0][m], y[1][m], y[2][m], y[3][m] };
        aeg_store_rows(s->y[m0 + m], w, block, rows);
    }
}

static void strip(const aeg_matmul_args *a, const aeg_strip *s, uint32_t block0, uint32_t block1)
{
    uint32_t m = 0;
    for (; m + MAX_TOKENS <= s->n; m += MAX_TOKENS)
        for (uint32_t block = block0; block < block1; block++)
            row_block(MAX_TOKENS, a, s, m, block);
    for (; m < s->n; m++)
        for (uint32_t block = block0; block < block1; block++)
            row_block(1, a, s, m, block);
}

static void f32(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)
{
    aeg_for_strips(a, AEG_ACT_F32, block0, block1, strip);
}

void aeg_matmul_neon_f32_register(aeg_kernels *k)
{
    for (int bits = 2; bits <= 8; bits++)
        if (bits != 7)
            k->affine[bits][AEG_ACT_F32] = f32;
}
