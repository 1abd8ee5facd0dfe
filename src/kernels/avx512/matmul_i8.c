/* SPDX-License-Identifier: Apache-2.0 */
/* avx512/matmul_i8.c - int8 activations: vpdpbusd of 16 rows x 4 columns with a broadcast of 4 activations.
 * There is never a horizontal sum, and each code is expanded once for up to 8 tokens. */
#include "kernels/avx512/matmul.h"
#include "kernels/register.h"

enum { CHAINS = 4 }; /* integer chains for one token: vpdpbusd has a latency of 4 to 5 cycles */

/* Adds one plane group to the dots of m_n tokens; bits and m_n are constants. */
AEG_INLINE void add_group(const uint32_t bits, const uint32_t m_n, const uint8_t *planes, const int8_t *const *q,
                          size_t col, __m512i acc[AEG_STRIP][CHAINS])
{
    const uint32_t chains = m_n == 1 ? CHAINS : m_n == 2 ? 2 : 1;
    AEG_UNROLL for (uint32_t j = 0; j < AEG_QUADS; j++) {
        const __m512i u = aeg_quad(bits, planes, j);
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) {
            const __m512i x = _mm512_set1_epi32(aeg_load32(q[m] + col + 4 * j));
            acc[m][j % chains] = _mm512_dpbusd_epi32(acc[m][j % chains], u, x);
        }
    }
}

AEG_INLINE __m512i sum_chains(const uint32_t m_n, const __m512i *acc)
{
    return m_n > 2    ? acc[0]
           : m_n == 2 ? _mm512_add_epi32(acc[0], acc[1])
                      : _mm512_add_epi32(_mm512_add_epi32(acc[0], acc[1]), _mm512_add_epi32(acc[2], acc[3]));
}

/* The columns of one tile, from `col` on, for m_n tokens from m0; bits, m_n and ahead are constants. */
AEG_INLINE void add_tile(const uint32_t bits, const uint32_t m_n, const uint32_t ahead, const aeg_matmul_args *a,
                         const aeg_strip *x, uint32_t m0, const uint8_t *p, size_t col, __m512 *y)
{
    const aeg_weight_type type = a->w->type;
    const uint32_t scale_bytes = AEG_ROWS * aeg_scale_bytes(type.scale_kind), x_block = a->x->block;
    const __m512 scale = aeg_load_floats(type.scale_kind, p), bias = aeg_load_floats(type.scale_kind, p + scale_bytes);
    aeg_prefetch(p, 2 * scale_bytes, ahead);
    p += 2 * scale_bytes;
    for (const size_t tile_end = col + type.group; col < tile_end;) {
        const size_t b = col / x_block;
        const int8_t *q[AEG_STRIP];
        __m512i acc[AEG_STRIP][CHAINS];
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) {
            q[m] = x->q8[m0 + m];
            AEG_UNROLL for (uint32_t c = 0; c < CHAINS; c++) acc[m][c] = _mm512_setzero_si512();
        }
        for (const size_t end = col + x_block; col < end; col += AEG_PLANE_COLS) {
            aeg_prefetch(p, AEG_PLANE_BYTES * bits, ahead);
            add_group(bits, m_n, p, q, col, acc);
            p += AEG_PLANE_BYTES * bits;
        }
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) {
            const __m512 scaled = _mm512_mul_ps(scale, _mm512_set1_ps(x->d[m0 + m][b]));
            y[m] = _mm512_fmadd_ps(scaled, _mm512_cvtepi32_ps(sum_chains(m_n, acc[m])), y[m]);
            y[m] = _mm512_fmadd_ps(bias, _mm512_set1_ps(x->s[m0 + m][b]), y[m]);
        }
    }
}

/* `lanes` row blocks, `step` apart, for m_n tokens from m0; bits, lanes and m_n are constants. */
AEG_INLINE void row_blocks(const uint32_t bits, const uint32_t lanes, const uint32_t m_n, const aeg_matmul_args *a,
                           const aeg_strip *x, uint32_t m0, uint32_t block, uint32_t step)
{
    const aeg_weights *w = a->w;
    const size_t tile_bytes = aeg_tile_bytes(w->type), apart = step * w->block_stride;
    const uint8_t *p = w->data + block * w->block_stride;
    __m512 y[AEG_LANES][AEG_STRIP];

    AEG_UNROLL for (uint32_t r = 0; r < lanes; r++)
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) y[r][m] = _mm512_setzero_ps();
    for (size_t col = 0; col < w->n_cols; col += w->type.group, p += tile_bytes)
        AEG_UNROLL for (uint32_t r = 0; r < lanes; r++)
            add_tile(bits, m_n, lanes > 1 ? AEG_AHEAD_LANES : AEG_AHEAD, a, x, m0, p + r * apart, col, y[r]);
    AEG_UNROLL for (uint32_t r = 0; r < lanes; r++)
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) aeg_store_rows(x->y[m0 + m], w, block + r * step, y[r][m]);
}

#define TOKENS(bits, n)                                                                                    \
    static void i8_##bits##_##n(const aeg_matmul_args *a, const aeg_strip *x, uint32_t m0, uint32_t block) \
    {                                                                                                      \
        row_blocks(bits, 1, n, a, x, m0, block, 0);                                                        \
    }

#define WIDTH(bits)                                                                                               \
    TOKENS(bits, 1)                                                                                               \
    TOKENS(bits, 2)                                                                                               \
    TOKENS(bits, 3)                                                                                               \
    TOKENS(bits, 4)                                                                                               \
    TOKENS(bits, 6)                                                                                               \
    TOKENS(bits, 8)                                                                                               \
    static void i8_##bits##_lanes(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block, uint32_t step)    \
    {                                                                                                             \
        row_blocks(bits, AEG_LANES, 1, a, x, 0, block, step);                                                     \
    }                                                                                                             \
    static void i8_##bits##_strip(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block0, uint32_t block1) \
    {                                                                                                             \
        static const aeg_row_block_fn by_n[AEG_STRIP + 1] = {                                                     \
            NULL, i8_##bits##_1, i8_##bits##_2, i8_##bits##_3, i8_##bits##_4, NULL, i8_##bits##_6, NULL,          \
            i8_##bits##_8,                                                                                        \
        };                                                                                                        \
        if (x->n == 1)                                                                                            \
            block0 = aeg_run_lanes(i8_##bits##_lanes, a, x, block0, block1);                                      \
        aeg_run_strip(by_n, a, x, block0, block1);                                                                \
    }                                                                                                             \
    static void i8_##bits(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)                             \
    {                                                                                                             \
        aeg_for_strips(a, AEG_ACT_I8, block0, block1, i8_##bits##_strip);                                         \
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
