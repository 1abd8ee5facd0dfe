/* SPDX-License-Identifier: Apache-2.0 */
/* avx2/matmul_i16.c - int16 activations: codes widened to 16 bits, vpmaddwd. A quad's even and odd columns become
 * two operands, so the activations are reordered to (0, 2, 1, 3) once per token and plane group. */
#include "kernels/avx2/matmul.h"
#include "kernels/register.h"

/* 32 activations as the 16 pairs that quads 0..7 meet: even columns, odd columns, of each. */
AEG_INLINE void reorder(int32_t *out, const int16_t *q)
{
    const __m256i order = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
    AEG_UNROLL for (int i = 0; i < 2; i++) {
        const __m256i v = _mm256_loadu_si256((const __m256i *)(q + 16 * i));
        _mm256_storeu_si256((__m256i *)(out + 8 * i), _mm256_shuffle_epi8(v, order));
    }
}

AEG_INLINE __m256i dot_group(__m256i dot, const __m256i *quads, const int32_t *q)
{
    const __m256i even = _mm256_set1_epi16(0xff);
    AEG_UNROLL for (uint32_t j = 0; j < AEG_QUADS; j++) {
        const __m256i u0 = _mm256_and_si256(quads[j], even), u1 = _mm256_srli_epi16(quads[j], 8);
        dot = _mm256_add_epi32(dot, _mm256_madd_epi16(u0, _mm256_set1_epi32(q[2 * j])));
        dot = _mm256_add_epi32(dot, _mm256_madd_epi16(u1, _mm256_set1_epi32(q[2 * j + 1])));
    }
    return dot;
}

static void row_block(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block)
{
    const aeg_weights *w = a->w;
    const uint32_t bits = w->type.bits, scale_kind = w->type.scale_kind, n = x->n;
    const uint32_t scale_bytes = AEG_ROWS * aeg_scale_bytes(scale_kind), x_block = a->x->block;
    const uint8_t *p = w->data + block * w->block_stride, *header = p;
    __m256 y[AEG_STRIP][AEG_HALVES];
    __m256i quads[AEG_HALVES][AEG_QUADS], dot[AEG_STRIP][AEG_HALVES];
    int32_t q[2 * AEG_QUADS];

    for (uint32_t m = 0; m < n; m++)
        y[m][0] = y[m][1] = _mm256_setzero_ps();
    for (size_t col = 0; col < w->n_cols;) {
        const size_t b = col / x_block;
        if (col % w->type.group == 0) {
            header = p;
            p += 2 * scale_bytes;
        }
        for (uint32_t m = 0; m < n; m++)
            dot[m][0] = dot[m][1] = _mm256_setzero_si256();
        for (const size_t end = col + x_block; col < end; col += AEG_PLANE_COLS) {
            aeg_expand(bits, p, quads[0]);
            aeg_expand(bits, p + AEG_HALF_BYTES, quads[1]);
            p += AEG_PLANE_BYTES * bits;
            for (uint32_t m = 0; m < n; m++) {
                reorder(q, x->q16[m] + col);
                dot[m][0] = dot_group(dot[m][0], quads[0], q);
                dot[m][1] = dot_group(dot[m][1], quads[1], q);
            }
        }
        for (uint32_t h = 0; h < AEG_HALVES; h++) {
            const __m256 scale = aeg_load_floats(scale_kind, header, h);
            const __m256 bias = aeg_load_floats(scale_kind, header + scale_bytes, h);
            for (uint32_t m = 0; m < n; m++)
                y[m][h] = aeg_add_dot(y[m][h], scale, bias, dot[m][h], x->d[m][b], x->s[m][b]);
        }
    }
    for (uint32_t m = 0; m < n; m++)
        aeg_store_rows(x->y[m], w, block, y[m][0], y[m][1]);
}

static void strip(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block0, uint32_t block1)
{
    for (uint32_t block = block0; block < block1; block++)
        row_block(a, x, block);
}

static void i16(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)
{
    aeg_for_strips(a, AEG_ACT_I16, block0, block1, strip);
}

void aeg_matmul_avx2_i16_register(aeg_kernels *k)
{
    for (int bits = 2; bits <= 8; bits++)
        if (bits != 7)
            k->affine[bits][AEG_ACT_I16] = i16;
}
