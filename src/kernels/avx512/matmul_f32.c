/* SPDX-License-Identifier: Apache-2.0 */
/* avx512/matmul_f32.c - f32 activations with affine weights, the reference path: w = fma(scale, code, bias),
 * y = fma(w, x, y), column by column. One chain per output is slow alone (4 cycles per fma), so r_n row blocks
 * or m_n tokens advance together. */
#include "kernels/avx512/matmul.h"
#include "kernels/register.h"

enum { MAX_BLOCKS = 4 };

/* y[r][m] += quad j of r_n expanded row blocks times the tokens' 4 columns at x + 4j. */
AEG_INLINE void add_group(const uint32_t r_n, const uint32_t m_n, __m512i quads[MAX_BLOCKS][AEG_QUADS],
                          const __m512 *scale, const __m512 *bias, const float *const *x, size_t col,
                          __m512 y[MAX_BLOCKS][AEG_STRIP])
{
    const __m512i mask = _mm512_set1_epi32(0xff);
    for (uint32_t j = 0; j < AEG_QUADS; j++)
        AEG_UNROLL for (uint32_t t = 0; t < 4; t++)
            AEG_UNROLL for (uint32_t r = 0; r < r_n; r++) {
                const __m512i code = _mm512_and_si512(_mm512_srli_epi32(quads[r][j], 8 * t), mask);
                const __m512 w = _mm512_fmadd_ps(scale[r], _mm512_cvtepi32_ps(code), bias[r]);
                AEG_UNROLL for (uint32_t m = 0; m < m_n; m++)
                    y[r][m] = _mm512_fmadd_ps(w, _mm512_set1_ps(x[m][col + 4 * j + t]), y[r][m]);
            }
}

/* r_n row blocks from `block`, m_n tokens from m0; both constants. */
AEG_INLINE void row_blocks(const uint32_t r_n, const uint32_t m_n, const aeg_matmul_args *a, const aeg_strip *s,
                           uint32_t m0, uint32_t block)
{
    const aeg_weights *w = a->w;
    const aeg_weight_type type = w->type;
    const uint32_t scale_bytes = AEG_ROWS * aeg_scale_bytes(type.scale_kind);
    const uint8_t *p[MAX_BLOCKS];
    const float *x[AEG_STRIP];
    __m512 y[MAX_BLOCKS][AEG_STRIP], scale[MAX_BLOCKS], bias[MAX_BLOCKS];
    __m512i quads[MAX_BLOCKS][AEG_QUADS];

    AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) x[m] = s->f32[m0 + m];
    AEG_UNROLL for (uint32_t r = 0; r < r_n; r++) {
        p[r] = w->data + (block + r) * w->block_stride;
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) y[r][m] = _mm512_setzero_ps();
    }
    for (uint32_t col = 0; col < w->n_cols;) {
        AEG_UNROLL for (uint32_t r = 0; r < r_n; r++) {
            scale[r] = aeg_load_floats(type.scale_kind, p[r]);
            bias[r] = aeg_load_floats(type.scale_kind, p[r] + scale_bytes);
            p[r] += 2 * scale_bytes;
        }
        for (const uint32_t end = col + type.group; col < end; col += AEG_PLANE_COLS) {
            for (uint32_t r = 0; r < r_n; r++) {
                aeg_expand(type.bits, p[r], quads[r]);
                p[r] += AEG_PLANE_BYTES * type.bits;
            }
            add_group(r_n, m_n, quads, scale, bias, x, col, y);
        }
    }
    AEG_UNROLL for (uint32_t r = 0; r < r_n; r++)
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) aeg_store_rows(s->y[m0 + m], w, block + r, y[r][m]);
}

static void strip(const aeg_matmul_args *a, const aeg_strip *s, uint32_t block0, uint32_t block1)
{
    uint32_t m = 0, block;
    for (; m + 8 <= s->n; m += 8)
        for (block = block0; block < block1; block++)
            row_blocks(1, 8, a, s, m, block);
    for (; m + 4 <= s->n; m += 4)
        for (block = block0; block < block1; block++)
            row_blocks(1, 4, a, s, m, block);
    for (; m < s->n; m++) {
        for (block = block0; block + MAX_BLOCKS <= block1; block += MAX_BLOCKS)
            row_blocks(MAX_BLOCKS, 1, a, s, m, block);
        for (; block < block1; block++)
            row_blocks(1, 1, a, s, m, block);
    }
}

static void f32(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)
{
    aeg_for_strips(a, AEG_ACT_F32, block0, block1, strip);
}

void aeg_matmul_avx512_f32_register(aeg_kernels *k)
{
    for (int bits = 2; bits <= 8; bits++)
        if (bits != 7)
            k->affine[bits][AEG_ACT_F32] = f32;
}
