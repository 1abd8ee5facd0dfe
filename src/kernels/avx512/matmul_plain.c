/* SPDX-License-Identifier: Apache-2.0 */
/* avx512/matmul_plain.c - bf16, f16 and f32 weights: y = fma(w, x, y), column by column. One chain per output
 * is slow alone (4 cycles per fma), so r_n row blocks times m_n tokens, 8 chains where possible, advance together. */
#include "kernels/avx512/matmul.h"
#include "kernels/register.h"

enum { MAX_BLOCKS = AEG_LANES };

/* r_n row blocks from `block` on, `step` apart, m_n tokens from m0; kind, r_n and m_n are constants. */
AEG_INLINE void row_blocks(const uint32_t kind, const uint32_t r_n, const uint32_t m_n, const aeg_matmul_args *a,
                           const aeg_strip *s, uint32_t m0, uint32_t block, uint32_t step)
{
    const aeg_weights *w = a->w;
    const uint32_t column_bytes = AEG_ROWS * aeg_scale_bytes(kind);
    const uint8_t *p[MAX_BLOCKS];
    const float *x[AEG_STRIP];
    __m512 y[MAX_BLOCKS][AEG_STRIP];

    AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) x[m] = s->f32[m0 + m];
    AEG_UNROLL for (uint32_t r = 0; r < r_n; r++) {
        p[r] = w->data + (size_t)(block + r * step) * w->block_stride;
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) y[r][m] = _mm512_setzero_ps();
    }
    for (size_t col = 0; col < w->n_cols; col += 4) {
        if (m_n != 2)
            AEG_UNROLL for (uint32_t r = 0; r < r_n; r++)
                aeg_prefetch(p[r] + col * column_bytes, 4 * column_bytes, m_n == 1 ? AEG_AHEAD_LANES : AEG_AHEAD);
        AEG_UNROLL for (uint32_t t = 0; t < 4; t++)
            AEG_UNROLL for (uint32_t r = 0; r < r_n; r++) {
                const __m512 v = aeg_load_floats(kind, p[r] + (col + t) * column_bytes);
                AEG_UNROLL for (uint32_t m = 0; m < m_n; m++)
                    y[r][m] = _mm512_fmadd_ps(v, _mm512_set1_ps(x[m][col + t]), y[r][m]);
            }
    }
    AEG_UNROLL for (uint32_t r = 0; r < r_n; r++)
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) aeg_store_rows(s->y[m0 + m], w, block + r * step, y[r][m]);
}

#include "kernels/wide/matmul_plain.inc.h"

AEG_INLINE void any_strip(const uint32_t kind, const aeg_matmul_args *a, const aeg_strip *s, uint32_t block0,
                          uint32_t block1)
{
    uint32_t m = 0;
    if (s->n == 8) {
        tokens(kind, 2, 8, a, s, m, block0, block1);
        m += 8;
    }
    for (; m + 4 <= s->n; m += 4)
        tokens(kind, 2, 4, a, s, m, block0, block1);
    for (; m + 2 <= s->n; m += 2)
        tokens(kind, 4, 2, a, s, m, block0, block1);
    for (; m < s->n; m++)
        one_token(kind, a, s, m, block0, block1);
}

AEG_PLAIN_KERNELS(aeg_matmul_avx512_plain_register)
