/* SPDX-License-Identifier: Apache-2.0 */
/* neon/matmul_plain.c - bf16, f16 and f32 weights: y = fma(w, x, y), column by column. r_n row blocks (four
 * quarters each) times m_n tokens, 8 to 16 chains, advance together. */
#include "kernels/neon/matmul.h"
#include "kernels/register.h"

enum { MAX_BLOCKS = 2, MAX_QUARTERS = MAX_BLOCKS * AEG_QUARTERS, MAX_TOKENS = 4 };

/* r_n row blocks from `block`, m_n tokens from m0; kind, r_n and m_n are constants. */
AEG_INLINE void row_blocks(const uint32_t kind, const uint32_t r_n, const uint32_t m_n, const aeg_matmul_args *a,
                           const aeg_strip *s, uint32_t m0, uint32_t block)
{
    const aeg_weights *w = a->w;
    const uint32_t column_bytes = AEG_ROWS * aeg_scale_bytes(kind), q_n = r_n * AEG_QUARTERS;
    const uint8_t *p[MAX_BLOCKS];
    const float *x[MAX_TOKENS];
    float32x4_t y[MAX_TOKENS][MAX_QUARTERS];

    AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) {
        x[m] = s->f32[m0 + m];
        AEG_UNROLL for (uint32_t i = 0; i < q_n; i++) y[m][i] = vdupq_n_f32(0);
    }
    AEG_UNROLL for (uint32_t r = 0; r < r_n; r++) p[r] = w->data + (block + r) * w->block_stride;
    for (size_t col = 0; col < w->n_cols; col++)
        AEG_UNROLL for (uint32_t i = 0; i < q_n; i++) {
            const float32x4_t v = aeg_load_floats(kind, p[i / AEG_QUARTERS] + col * column_bytes, i % AEG_QUARTERS);
            AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) y[m][i] = vfmaq_n_f32(y[m][i], v, x[m][col]);
        }
    AEG_UNROLL for (uint32_t r = 0; r < r_n; r++)
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++)
            aeg_store_rows(s->y[m0 + m], w, block + r, &y[m][r * AEG_QUARTERS]);
}

AEG_INLINE void any_strip(const uint32_t kind, const aeg_matmul_args *a, const aeg_strip *s, uint32_t block0,
                          uint32_t block1)
{
    uint32_t m = 0, block;
    for (; m + MAX_TOKENS <= s->n; m += MAX_TOKENS)
        for (block = block0; block < block1; block++)
            row_blocks(kind, 1, MAX_TOKENS, a, s, m, block);
    for (; m < s->n; m++) {
        for (block = block0; block + MAX_BLOCKS <= block1; block += MAX_BLOCKS)
            row_blocks(kind, MAX_BLOCKS, 1, a, s, m, block);
        for (; block < block1; block++)
            row_blocks(kind, 1, 1, a, s, m, block);
    }
}

#define KIND(name, kind)                                                                                     \
    static void name##_strip(const aeg_matmul_args *a, const aeg_strip *s, uint32_t block0, uint32_t block1) \
    {                                                                                                        \
        any_strip(kind, a, s, block0, block1);                                                               \
    }                                                                                                        \
    static void name(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)                             \
    {                                                                                                        \
        aeg_for_strips(a, AEG_ACT_F32, block0, block1, name##_strip);                                        \
    }

KIND(plain_f32, AEG_W_F32)
KIND(plain_f16, AEG_W_F16)
KIND(plain_bf16, AEG_W_BF16)

void aeg_matmul_neon_plain_register(aeg_kernels *k)
{
    k->plain[AEG_W_F32] = plain_f32;
    k->plain[AEG_W_F16] = plain_f16;
    k->plain[AEG_W_BF16] = plain_bf16;
}
