/* SPDX-License-Identifier: Apache-2.0 */
/* avx512/matmul_i8.c - int8 activations: vpdpbusd of 16 rows x 4 columns with a broadcast of 4 activations.
 * There is never a horizontal sum, and each code is expanded once for up to 8 tokens. */
#include "kernels/avx512/matmul.h"

#include "kernels/register.h"

/* One row block, m_n tokens; bits, m_n and parts (plane groups per activation block) are constants. */
AEG_INLINE void row_block(const uint32_t bits, const uint32_t m_n, const uint32_t parts, const aeg_matmul_args *a,
                          const aeg_strip *x, uint32_t block)
{
    enum { CHAINS = 4 }; /* integer chains for one token: vpdpbusd has a latency of 4 to 5 cycles */
    const uint32_t chains = m_n == 1 ? CHAINS : m_n == 2 ? 2 : 1;
    const aeg_weights *w = a->w;
    const uint32_t scale_kind = w->type.scale_kind, blocks_per_tile = w->type.group / (parts * AEG_PLANE_COLS);
    const uint32_t scale_bytes = AEG_ROWS * aeg_scale_bytes(scale_kind);
    const uint32_t n_blocks = w->n_cols / (parts * AEG_PLANE_COLS);
    const uint8_t *p = w->data + block * w->block_stride;
    __m512 y[AEG_STRIP];

    AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) y[m] = _mm512_setzero_ps();
    for (uint32_t b = 0; b < n_blocks;) {
        const __m512 scale = aeg_load_floats(scale_kind, p), bias = aeg_load_floats(scale_kind, p + scale_bytes);
        p += 2 * scale_bytes;
        for (const uint32_t b1 = b + blocks_per_tile; b < b1; b++) {
            const size_t col = (size_t)b * parts * AEG_PLANE_COLS;
            __m512i acc[AEG_STRIP][CHAINS];
            AEG_UNROLL for (uint32_t m = 0; m < m_n; m++)
                AEG_UNROLL for (uint32_t c = 0; c < chains; c++) acc[m][c] = _mm512_setzero_si512();
            AEG_UNROLL for (uint32_t j = 0; j < parts * AEG_QUADS; j++) {
                const uint8_t *planes = p + j / AEG_QUADS * AEG_PLANE_BYTES * bits;
                const __m512i u = aeg_quad(bits, planes, j % AEG_QUADS);
                AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) {
                    const __m512i q = _mm512_set1_epi32(aeg_load32(x->q8[m] + col + 4 * j));
                    acc[m][j % chains] = _mm512_dpbusd_epi32(acc[m][j % chains], u, q);
                }
            }
            p += parts * AEG_PLANE_BYTES * bits;
            AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) {
                __m512i sum = acc[m][0];
                AEG_UNROLL for (uint32_t c = 1; c < chains; c++) sum = _mm512_add_epi32(sum, acc[m][c]);
                const __m512 scaled = _mm512_mul_ps(scale, _mm512_set1_ps(x->d[m][b]));
                y[m] = _mm512_fmadd_ps(scaled, _mm512_cvtepi32_ps(sum), y[m]);
                y[m] = _mm512_fmadd_ps(bias, _mm512_set1_ps(x->s[m][b]), y[m]);
            }
        }
    }
    AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) aeg_store_rows(x->y[m], w, block, y[m]);
}

AEG_INLINE void row_blocks(const uint32_t bits, const uint32_t m_n, const aeg_matmul_args *a, const aeg_strip *x,
                           uint32_t block0, uint32_t block1)
{
    if (a->x->block == 2 * AEG_PLANE_COLS)
        for (uint32_t block = block0; block < block1; block++)
            row_block(bits, m_n, 2, a, x, block);
    else
        for (uint32_t block = block0; block < block1; block++)
            row_block(bits, m_n, 1, a, x, block);
}

#define STRIP(bits, n)                                                                                         \
    static void i8_##bits##_##n(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block0, uint32_t block1) \
    {                                                                                                          \
        row_blocks(bits, n, a, x, block0, block1);                                                             \
    }

#define WIDTH(bits)                                                                                        \
    STRIP(bits, 1) STRIP(bits, 2) STRIP(bits, 3) STRIP(bits, 4)                                            \
    STRIP(bits, 5) STRIP(bits, 6) STRIP(bits, 7) STRIP(bits, 8)                                            \
    static void i8_##bits(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)                      \
    {                                                                                                      \
        static const aeg_strip_fn by_n[AEG_STRIP + 1] = {                                                  \
            NULL,          i8_##bits##_1, i8_##bits##_2, i8_##bits##_3, i8_##bits##_4,                     \
            i8_##bits##_5, i8_##bits##_6, i8_##bits##_7, i8_##bits##_8,                                    \
        };                                                                                                 \
        aeg_for_strips(a, AEG_ACT_I8, block0, block1, by_n);                                               \
    }

WIDTH(2)
WIDTH(3)
WIDTH(4)
WIDTH(5)
WIDTH(6)
WIDTH(8)

void aeg_matmul_avx512_i8_register(aeg_kernels *k)
{
    k->affine[2][AEG_ACT_I8] = i8_2;
    k->affine[3][AEG_ACT_I8] = i8_3;
    k->affine[4][AEG_ACT_I8] = i8_4;
    k->affine[5][AEG_ACT_I8] = i8_5;
    k->affine[6][AEG_ACT_I8] = i8_6;
    k->affine[8][AEG_ACT_I8] = i8_8;
}
