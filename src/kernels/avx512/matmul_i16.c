/* SPDX-License-Identifier: Apache-2.0 */
/* avx512/matmul_i16.c - int16 activations: codes widened to 16 bits, vpdpwssd. A quad's even and odd columns
 * become two operands, so the activations are reordered to (0, 2, 1, 3) once per token and plane group. */
#include "kernels/avx512/matmul.h"
#include "kernels/register.h"

AEG_INLINE void reorder(int32_t *out, const int16_t *q)
{
    const __m512i order = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
    _mm512_storeu_si512(out, _mm512_shuffle_epi8(_mm512_loadu_si512(q), order));
}

/* Adds one plane group of codes to the dots of m_n (constant) tokens. */
AEG_INLINE void add_group(const uint32_t m_n, const __m512i *quads, int32_t q[AEG_STRIP][2 * AEG_QUADS], __m512i *acc)
{
    const __m512i even = _mm512_set1_epi16(0xff);
    for (uint32_t j = 0; j < AEG_QUADS; j++) {
        const __m512i u0 = _mm512_and_si512(quads[j], even), u1 = _mm512_srli_epi16(quads[j], 8);
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) {
            acc[m] = _mm512_dpwssd_epi32(acc[m], u0, _mm512_set1_epi32(q[m][2 * j]));
            acc[m] = _mm512_dpwssd_epi32(acc[m], u1, _mm512_set1_epi32(q[m][2 * j + 1]));
        }
    }
}

/* One row block, m_n (constant) tokens from m0. */
AEG_INLINE void row_block(const uint32_t m_n, const aeg_matmul_args *a, const aeg_strip *x, uint32_t m0,
                          uint32_t block)
{
    const aeg_weights *w = a->w;
    const uint32_t bits = w->type.bits, scale_kind = w->type.scale_kind, x_block = a->x->block;
    const uint32_t scale_bytes = AEG_ROWS * aeg_scale_bytes(scale_kind);
    const uint8_t *p = w->data + block * w->block_stride;
    __m512 y[AEG_STRIP], scale = _mm512_setzero_ps(), bias = scale;
    __m512i quads[AEG_QUADS];
    int32_t q[AEG_STRIP][2 * AEG_QUADS];

    AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) y[m] = _mm512_setzero_ps();
    for (uint32_t col = 0; col < w->n_cols;) {
        if (col % w->type.group == 0) {
            scale = aeg_load_floats(scale_kind, p);
            bias = aeg_load_floats(scale_kind, p + scale_bytes);
            p += 2 * scale_bytes;
        }
        const uint32_t b = col / x_block;
        __m512i acc[AEG_STRIP];
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) acc[m] = _mm512_setzero_si512();
        for (const uint32_t end = col + x_block; col < end; col += AEG_PLANE_COLS) {
            aeg_expand(bits, p, quads);
            p += AEG_PLANE_BYTES * bits;
            AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) reorder(q[m], x->q16[m0 + m] + col);
            add_group(m_n, quads, q, acc);
        }
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) {
            const __m512 scaled = _mm512_mul_ps(scale, _mm512_set1_ps(x->d[m0 + m][b]));
            y[m] = _mm512_fmadd_ps(scaled, _mm512_cvtepi32_ps(acc[m]), y[m]);
            y[m] = _mm512_fmadd_ps(bias, _mm512_set1_ps(x->s[m0 + m][b]), y[m]);
        }
    }
    AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) aeg_store_rows(x->y[m0 + m], w, block, y[m]);
}

#define TOKENS(n)                                                                                \
    static void i16_##n(const aeg_matmul_args *a, const aeg_strip *x, uint32_t m0, uint32_t block) \
    {                                                                                            \
        row_block(n, a, x, m0, block);                                                           \
    }

TOKENS(1)
TOKENS(2)
TOKENS(3)
TOKENS(4)
TOKENS(6)
TOKENS(8)

static void strip(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block0, uint32_t block1)
{
    static const aeg_row_block_fn by_n[AEG_STRIP + 1] = { NULL, i16_1, i16_2, i16_3, i16_4, NULL, i16_6, NULL, i16_8 };
    aeg_run_strip(by_n, a, x, block0, block1);
}

static void i16(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)
{
    aeg_for_strips(a, AEG_ACT_I16, block0, block1, strip);
}

void aeg_matmul_avx512_i16_register(aeg_kernels *k)
{
    for (int bits = 2; bits <= 8; bits++)
        if (bits != 7)
            k->affine[bits][AEG_ACT_I16] = i16;
}
