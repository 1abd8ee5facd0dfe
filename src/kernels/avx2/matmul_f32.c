/* SPDX-License-Identifier: Apache-2.0 */
/* avx2/matmul_f32.c - f32 activations with affine weights, the reference path: w = fma(scale, code, bias),
 * y = fma(w, x, y), column by column. One chain per output is slow alone (4 cycles per fma), so r_n row blocks or
 * m_n tokens advance together. */
#include "kernels/avx2/matmul.h"
#include "kernels/register.h"

enum { MAX_BLOCKS = 2, MAX_HALVES = MAX_BLOCKS * AEG_HALVES, MAX_TOKENS = 4 };

/* y[i][m] += quad j of h_n expanded halves times the tokens' 4 columns at x + 4j. */
AEG_INLINE void add_group(const uint32_t h_n, const uint32_t m_n, __m256i quads[MAX_HALVES][AEG_QUADS],
                          const __m256 *scale, const __m256 *bias, const float *const *x, size_t col,
                          __m256 y[MAX_HALVES][MAX_TOKENS])
{
    const __m256i mask = _mm256_set1_epi32(0xff);
    for (uint32_t j = 0; j < AEG_QUADS; j++)
        AEG_UNROLL for (uint32_t t = 0; t < 4; t++)
            AEG_UNROLL for (uint32_t i = 0; i < h_n; i++) {
                const __m256i code = _mm256_and_si256(_mm256_srli_epi32(quads[i][j], (int)(8 * t)), mask);
                const __m256 w = _mm256_fmadd_ps(scale[i], _mm256_cvtepi32_ps(code), bias[i]);
                AEG_UNROLL for (uint32_t m = 0; m < m_n; m++)
                    y[i][m] = _mm256_fmadd_ps(w, _mm256_set1_ps(x[m][col + 4 * j + t]), y[i][m]);
            }
}

/* r_n row blocks from `block`, m_n tokens from m0; both constants. */
AEG_INLINE void row_blocks(const uint32_t r_n, const uint32_t m_n, const aeg_matmul_args *a, const aeg_strip *s,
                           uint32_t m0, uint32_t block)
{
    const aeg_weights *w = a->w;
    const aeg_weight_type type = w->type;
    const uint32_t scale_bytes = AEG_ROWS * aeg_scale_bytes(type.scale_kind), h_n = r_n * AEG_HALVES;
    const uint8_t *p[MAX_BLOCKS];
    const float *x[MAX_TOKENS];
    __m256 y[MAX_HALVES][MAX_TOKENS], scale[MAX_HALVES], bias[MAX_HALVES];
    __m256i quads[MAX_HALVES][AEG_QUADS];

    AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) x[m] = s->f32[m0 + m];
    AEG_UNROLL for (uint32_t r = 0; r < r_n; r++) p[r] = w->data + (block + r) * w->block_stride;
    AEG_UNROLL for (uint32_t i = 0; i < h_n; i++)
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) y[i][m] = _mm256_setzero_ps();
    for (size_t col = 0; col < w->n_cols;) {
        AEG_UNROLL for (uint32_t i = 0; i < h_n; i++) {
            scale[i] = aeg_load_floats(type.scale_kind, p[i / 2], i % 2);
            bias[i] = aeg_load_floats(type.scale_kind, p[i / 2] + scale_bytes, i % 2);
        }
        AEG_UNROLL for (uint32_t r = 0; r < r_n; r++) p[r] += 2 * scale_bytes;
        for (const size_t end = col + type.group; col < end; col += AEG_PLANE_COLS) {
            for (uint32_t i = 0; i < h_n; i++)
                aeg_expand(type.bits, p[i / 2] + i % 2 * AEG_HALF_BYTES, quads[i]);
            AEG_UNROLL for (uint32_t r = 0; r < r_n; r++) p[r] += AEG_PLANE_BYTES * type.bits;
            add_group(h_n, m_n, quads, scale, bias, x, col, y);
        }
    }
    AEG_UNROLL for (uint32_t r = 0; r < r_n; r++)
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++)
            aeg_store_rows(s->y[m0 + m], w, block + r, y[2 * r][m], y[2 * r + 1][m]);
}

static void strip(const aeg_matmul_args *a, const aeg_strip *s, uint32_t block0, uint32_t block1)
{
    uint32_t m = 0, block;
    for (; m + MAX_TOKENS <= s->n; m += MAX_TOKENS)
        for (block = block0; block < block1; block++)
            row_blocks(1, MAX_TOKENS, a, s, m, block);
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

void aeg_matmul_avx2_f32_register(aeg_kernels *k)
{
    for (int bits = 2; bits <= 8; bits++)
        if (bits != 7)
            k->affine[bits][AEG_ACT_F32] = f32;
}
