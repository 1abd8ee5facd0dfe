/* SPDX-License-Identifier: Apache-2.0 */
/* avx2/matmul_blocks_i8.c - int8 activations with the ggml types: vpmaddubsw of unsigned codes; minus offset times the
 * sum of the activations makes the dot that of the signed codes. What fits a 16-bit sum: avx2/matmul_i8.c; codes above
 * 63 are split in two nibbles. */
#include "kernels/avx2/blocks.h"
#include "kernels/register.h"

enum { N_OPERANDS = 2 * AEG_QUADS };

/* Codes of up to 241 (Q8_0 of up to 255): code = 16 * u[8 + j] + u[j]. */
AEG_INLINE bool b_split(const uint32_t kind) { return aeg_block_shape_of(kind).offset >= 64; }

/* Products of two pairs that a 16-bit sum holds: codes of up to 15, 31 and 63. */
AEG_INLINE uint32_t b_limit(const uint32_t kind)
{
    const uint32_t bits = aeg_block_shape_of(kind).bits;
    return b_split(kind) ? 8 : bits == 6 ? 2 : bits == 5 || kind == AEG_W_MXFP4 ? 4 : 8;
}

/* The low and the high nibbles of the codebook of IQ4, so that looking up splits them as well. */
static const uint8_t iq4_low[16] = { 1, 8, 13, 15, 15, 13, 10, 6, 1, 13, 9, 6, 5, 5, 9, 1 };
static const uint8_t iq4_high[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12, 13, 15 };

AEG_INLINE void b_operands(const uint32_t kind, const uint8_t *codes, uint32_t part, vec *u)
{
    if (aeg_block_lookup(kind) == aeg_iq4_codes) {
        AEG_UNROLL for (uint32_t j = 0; j < AEG_QUADS; j++) {
            const vec quad = aeg_quad(4, codes + part * PART_BYTES, j);
            u[j] = v_lookup(iq4_low, quad);
            u[AEG_QUADS + j] = v_lookup(iq4_high, quad);
        }
        return;
    }
    b_quads(kind, codes, part, u);
    if (!b_split(kind))
        return;
    const vec nibble = v_set8(15);
    AEG_UNROLL for (uint32_t j = 0; j < AEG_QUADS; j++) {
        u[AEG_QUADS + j] = v_and(_mm256_srli_epi16(u[j], 4), nibble);
        u[j] = v_and(u[j], nibble);
    }
}

/* Sum of n_quads products, widened after every `limit` of them. */
AEG_INLINE vec dot_quads(const uint32_t limit, const uint32_t n_quads, const vec *u, const int8_t *q)
{
    const vec ones = _mm256_set1_epi16(1);
    vec sum = _mm256_setzero_si256(), part = sum;
    AEG_UNROLL for (uint32_t j = 0; j < n_quads; j++) {
        const vec product = _mm256_maddubs_epi16(u[j], _mm256_set1_epi32(aeg_load32(q + 4 * j)));
        part = j % limit == 0 ? product : _mm256_add_epi16(part, product);
        if (j % limit == limit - 1 || j == n_quads - 1)
            sum = j < limit ? _mm256_madd_epi16(part, ones) : v_add(sum, _mm256_madd_epi16(part, ones));
    }
    return sum;
}

AEG_INLINE vec b_dot(const uint32_t kind, const uint32_t n, const vec *u, const int8_t *q, const int32_t *sums, const uint32_t q0,
                     const uint32_t n_quads)
{
    const int32_t offset = aeg_block_shape_of(kind).offset;
    vec dot = dot_quads(b_limit(kind), n_quads, u + q0, q + 4 * q0);
    (void)n;
    if (b_split(kind))
        dot = v_add(dot, v_shl(dot_quads(8, n_quads, u + AEG_QUADS + q0, q + 4 * q0), 4));
    return offset == 0 ? dot : v_sub(dot, v_set(offset * (n_quads == 8 ? sums[0] + sums[1] : sums[q0 / 4])));
}

#include "kernels/wide/matmul_blocks_i8.inc.h"

AEG_BLOCK_KINDS(B_ONE_AND_SOME)

void aeg_matmul_avx2_blocks_i8_register(aeg_kernels *k)
{
#define SET_KIND(name, kind) k->blocks[kind][AEG_ACT_I8] = name##_i8;
    AEG_BLOCK_KINDS(SET_KIND)
#undef SET_KIND
}
