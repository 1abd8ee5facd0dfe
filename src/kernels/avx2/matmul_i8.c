/* SPDX-License-Identifier: Apache-2.0 */
/* avx2/matmul_i8.c - int8 activations: vpmaddubsw of 8 rows x 4 columns with a broadcast of 4 activations.
 *
 * vpmaddubsw and 16-bit sums saturate, so each width has its number of products that fit a 16-bit sum before
 * vpmaddwd widens it: a product of two pairs is at most 2*127*code_max; 254*15*8 = 30480, 254*31*4 = 31496,
 * 254*63*2 = 32004. Codes of 8 bits are split in two nibbles (code = 16*hi + lo), which is exact. */
#include "kernels/avx2/matmul.h"
#include "kernels/register.h"

enum { N_OPERANDS = 2 * AEG_QUADS };

/* The first operands of vpmaddubsw for one half of a plane group: 8 quads, or 8 low and 8 high nibbles. */
AEG_INLINE void expand(const uint32_t bits, const uint8_t *planes, __m256i *u)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    AEG_UNROLL for (uint32_t j = 0; j < AEG_QUADS; j++) {
        const __m256i quad = aeg_quad(bits, planes, j);
        u[j] = bits == 8 ? _mm256_and_si256(quad, nibble) : quad;
        if (bits == 8)
            u[AEG_QUADS + j] = _mm256_and_si256(_mm256_srli_epi16(quad, 4), nibble);
    }
}

/* Sum of 8 products, widened after every `limit` of them. */
AEG_INLINE __m256i dot8(const uint32_t limit, const __m256i *u, const int8_t *q)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sum = _mm256_setzero_si256(), part = sum;
    AEG_UNROLL for (uint32_t j = 0; j < AEG_QUADS; j++) {
        const __m256i product = _mm256_maddubs_epi16(u[j], _mm256_set1_epi32(aeg_load32(q + 4 * j)));
        part = j % limit == 0 ? product : _mm256_add_epi16(part, product);
        if (j % limit == limit - 1)
            sum = j < limit ? _mm256_madd_epi16(part, ones) : _mm256_add_epi32(sum, _mm256_madd_epi16(part, ones));
    }
    return sum;
}

AEG_INLINE __m256i dot_group(const uint32_t bits, const __m256i *u, const int8_t *q)
{
    const uint32_t limit = bits == 6 ? 2 : bits == 5 ? 4 : 8;
    const __m256i low = dot8(limit, u, q);
    return bits == 8 ? _mm256_add_epi32(low, _mm256_slli_epi32(dot8(limit, u + AEG_QUADS, q), 4)) : low;
}

/* The columns of one tile, from `col` on, for n tokens; bits and ahead (0: nothing is fetched) are constants, and n where it is 1. */
AEG_INLINE void add_tile(const uint32_t bits, const uint32_t ahead, const uint32_t n, const aeg_matmul_args *a,
                         const aeg_strip *x, const uint8_t *tile, size_t col, __m256 y[AEG_STRIP][AEG_HALVES])
{
    const aeg_weight_type type = a->w->type;
    const uint32_t scale_bytes = AEG_ROWS * aeg_scale_bytes(type.scale_kind), x_block = a->x->block;
    const uint8_t *p = tile + 2 * scale_bytes;
    __m256i u[N_OPERANDS], dot[AEG_STRIP][AEG_HALVES];

    if (ahead != 0)
        aeg_prefetch(tile, 2 * scale_bytes, ahead);
    for (const size_t tile_end = col + type.group; col < tile_end;) {
        const size_t b = col / x_block;
        for (uint32_t m = 0; m < n; m++)
            dot[m][0] = dot[m][1] = _mm256_setzero_si256();
        for (const size_t end = col + x_block; col < end; col += AEG_PLANE_COLS) {
            if (ahead != 0)
                aeg_prefetch(p, AEG_PLANE_BYTES * bits, ahead);
            AEG_UNROLL for (uint32_t h = 0; h < AEG_HALVES; h++) {
                expand(bits, p + h * AEG_HALF_BYTES, u);
                for (uint32_t m = 0; m < n; m++)
                    dot[m][h] = _mm256_add_epi32(dot[m][h], dot_group(bits, u, x->q8[m] + col));
            }
            p += AEG_PLANE_BYTES * bits;
        }
        AEG_UNROLL for (uint32_t h = 0; h < AEG_HALVES; h++) {
            const __m256 scale = aeg_load_floats(type.scale_kind, tile, h);
            const __m256 bias = aeg_load_floats(type.scale_kind, tile + scale_bytes, h);
            for (uint32_t m = 0; m < n; m++)
                y[m][h] = aeg_add_dot(y[m][h], scale, bias, dot[m][h], x->d[m][b], x->s[m][b]);
        }
    }
}

/* `lanes` row blocks, `step` apart, for n tokens; bits and lanes are constants, and n where it is 1. */
AEG_INLINE void row_blocks(const uint32_t bits, const uint32_t lanes, const uint32_t n, const aeg_matmul_args *a,
                           const aeg_strip *x, uint32_t block, uint32_t step)
{
    const aeg_weights *w = a->w;
    const uint32_t ahead = lanes > 1 ? AEG_AHEAD_LANES : n > 1 ? AEG_AHEAD : 0;
    const size_t tile_bytes = aeg_tile_bytes(w->type), apart = step * w->block_stride;
    const uint8_t *tile = w->data + block * w->block_stride;
    __m256 y[AEG_LANES][AEG_STRIP][AEG_HALVES];

    for (uint32_t r = 0; r < lanes; r++)
        for (uint32_t m = 0; m < n; m++)
            y[r][m][0] = y[r][m][1] = _mm256_setzero_ps();
    for (size_t col = 0; col < w->n_cols; col += w->type.group, tile += tile_bytes)
        AEG_UNROLL for (uint32_t r = 0; r < lanes; r++) add_tile(bits, ahead, n, a, x, tile + r * apart, col, y[r]);
    for (uint32_t r = 0; r < lanes; r++)
        for (uint32_t m = 0; m < n; m++)
            aeg_store_rows(x->y[m], w, block + r * step, y[r][m][0], y[r][m][1]);
}

#define WIDTH(bits)                                                                                             \
    static void i8_##bits##_lanes(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block, uint32_t step)  \
    {                                                                                                           \
        row_blocks(bits, AEG_LANES, 1, a, x, block, step);                                                      \
    }                                                                                                           \
    static void i8_##bits##_one(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block0, uint32_t block1)  \
    {                                                                                                           \
        block0 = aeg_run_lanes(i8_##bits##_lanes, a, x, block0, block1);                                        \
        for (uint32_t block = block0; block < block1; block++)                                                  \
            row_blocks(bits, 1, 1, a, x, block, 0);                                                             \
    }                                                                                                           \
    static void i8_##bits##_some(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block0, uint32_t block1) \
    {                                                                                                           \
        for (uint32_t block = block0; block < block1; block++)                                                  \
            row_blocks(bits, 1, x->n, a, x, block, 0);                                                          \
    }                                                                                                           \
    static void i8_##bits(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)                           \
    {                                                                                                           \
        aeg_for_strips(a, AEG_ACT_I8, block0, block1, a->n == 1 ? i8_##bits##_one : i8_##bits##_some);         \
    }

WIDTH(2)
WIDTH(3)
WIDTH(4)
WIDTH(5)
WIDTH(6)
WIDTH(8)

void aeg_matmul_avx2_i8_register(aeg_kernels *k)
{
    k->affine[2][AEG_ACT_I8] = i8_2;
    k->affine[3][AEG_ACT_I8] = i8_3;
    k->affine[4][AEG_ACT_I8] = i8_4;
    k->affine[5][AEG_ACT_I8] = i8_5;
    k->affine[6][AEG_ACT_I8] = i8_6;
    k->affine[8][AEG_ACT_I8] = i8_8;
}
