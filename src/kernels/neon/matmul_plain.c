/* SPDX-License-Identifier: Apache-2.0 */
/* neon/matmul_plain.c - bf16, f16 and f32 weights: y = fma(w, x, y), column by column. r_n row blocks (four
 * quarters each) times m_n tokens, 8 to 16 chains, advance together. */
#include "kernels/neon/matmul.h"
#include "kernels/register.h"

enum { MAX_BLOCKS = AEG_LANES, MAX_QUARTERS = MAX_BLOCKS * AEG_QUARTERS, MAX_TOKENS = 4 };

/* r_n row blocks from `block` on, `step` apart, m_n tokens from m0; kind, r_n and m_n are constants. */
AEG_INLINE void row_blocks(const uint32_t kind, const uint32_t r_n, const uint32_t m_n, const aeg_matmul_args *a,
                           const aeg_strip *s, uint32_t m0, uint32_t block, uint32_t step)
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
    AEG_UNROLL for (uint32_t r = 0; r < r_n; r++) p[r] = w->data + (size_t)(block + r * step) * w->block_stride;
    for (size_t col = 0; col < w->n_cols; col++)
        AEG_UNROLL for (uint32_t i = 0; i < q_n; i++) {
            const float32x4_t v = aeg_load_floats(kind, p[i / AEG_QUARTERS] + col * column_bytes, i % AEG_QUARTERS);
            AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) y[m][i] = vfmaq_n_f32(y[m][i], v, x[m][col]);
        }
    AEG_UNROLL for (uint32_t r = 0; r < r_n; r++)
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++)
            aeg_store_rows(s->y[m0 + m], w, block + r * step, &y[m][r * AEG_QUARTERS]);
}

#include "kernels/wide/matmul_plain.inc.h"

AEG_INLINE void any_strip(const uint32_t kind, const aeg_matmul_args *a, const aeg_strip *s, uint32_t block0,
                          uint32_t block1)
{
    uint32_t m = 0;
    for (; m + MAX_TOKENS <= s->n; m += MAX_TOKENS)
        tokens(kind, 1, MAX_TOKENS, a, s, m, block0, block1);
    for (; m < s->n; m++)
        one_token(kind, a, s, m, block0, block1);
}

AEG_PLAIN_KERNELS(aeg_matmul_neon_plain_register)
