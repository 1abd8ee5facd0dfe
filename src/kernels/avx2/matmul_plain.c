/* SPDX-License-Identifier: Apache-2.0 */
/* avx2/matmul_plain.c - bf16, f16 and f32 weights: y = fma(w, x, y), column by column. One chain per output is
 * slow alone (4 cycles per fma), so r_n row blocks (two halves each) times m_n tokens, 8 chains where possible,
 * advance together. */
#include "kernels/avx2/matmul.h"
#include "kernels/register.h"

enum { MAX_BLOCKS = AEG_LANES, MAX_HALVES = MAX_BLOCKS * AEG_HALVES, MAX_TOKENS = 4 };

/* r_n row blocks from `block` on, `step` apart, m_n tokens from m0; kind, r_n and m_n are constants. */
AEG_INLINE void row_blocks(const uint32_t kind, const uint32_t r_n, const uint32_t m_n, const aeg_matmul_args *a,
                           const aeg_strip *s, uint32_t m0, uint32_t block, uint32_t step)
{
    const aeg_weights *w = a->w;
    const uint32_t column_bytes = AEG_ROWS * aeg_scale_bytes(kind), h_n = r_n * AEG_HALVES;
    const uint8_t *p[MAX_BLOCKS];
    const float *x[MAX_TOKENS];
    __m256 y[MAX_HALVES][MAX_TOKENS];

    AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) x[m] = s->f32[m0 + m];
    AEG_UNROLL for (uint32_t r = 0; r < r_n; r++) p[r] = w->data + (size_t)(block + r * step) * w->block_stride;
    AEG_UNROLL for (uint32_t i = 0; i < h_n; i++)
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) y[i][m] = _mm256_setzero_ps();
    for (size_t col = 0; col < w->n_cols; col += 4) {
        if (m_n != 2)
            AEG_UNROLL for (uint32_t r = 0; r < r_n; r++)
                aeg_prefetch(p[r] + col * column_bytes, 4 * column_bytes, m_n == 1 ? AEG_AHEAD_LANES : AEG_AHEAD);
        AEG_UNROLL for (uint32_t t = 0; t < 4; t++)
            AEG_UNROLL for (uint32_t i = 0; i < h_n; i++) {
                const __m256 v = aeg_load_floats(kind, p[i / 2] + (col + t) * column_bytes, i % 2);
                AEG_UNROLL for (uint32_t m = 0; m < m_n; m++)
                    y[i][m] = _mm256_fmadd_ps(v, _mm256_set1_ps(x[m][col + t]), y[i][m]);
            }
    }
    AEG_UNROLL for (uint32_t r = 0; r < r_n; r++)
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++)
            aeg_store_rows(s->y[m0 + m], w, block + r * step, y[2 * r][m], y[2 * r + 1][m]);
}

#include "kernels/wide/matmul_plain.inc.h"

AEG_INLINE void any_strip(const uint32_t kind, const aeg_matmul_args *a, const aeg_strip *s, uint32_t block0,
                          uint32_t block1)
{
    uint32_t m = 0;
    for (; m + 4 <= s->n; m += 4)
        tokens(kind, 1, 4, a, s, m, block0, block1);
    for (; m + 2 <= s->n; m += 2)
        tokens(kind, 2, 2, a, s, m, block0, block1);
    for (; m < s->n; m++)
        one_token(kind, a, s, m, block0, block1);
}

AEG_PLAIN_KERNELS(aeg_matmul_avx2_plain_register)
