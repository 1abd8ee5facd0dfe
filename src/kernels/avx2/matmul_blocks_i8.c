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

/* What quad j is multiplied by: its codes, or their low and high nibbles. */
AEG_INLINE void operands_of(const uint32_t kind, const uint8_t *codes, uint32_t part, const uint32_t j, vec *low, vec *high)
{
    if (aeg_block_lookup(kind) == aeg_iq4_codes) {
        const vec quad = aeg_quad(4, codes + part * PART_BYTES, j);
        *low = v_lookup(iq4_low, quad);
        *high = v_lookup(iq4_high, quad);
        return;
    }
    *low = b_quad(kind, codes, part, j);
    if (b_split(kind)) {
        *high = v_and(_mm256_srli_epi16(*low, 4), v_set8(15));
        *low = v_and(*low, v_set8(15));
    }
}

/* One token expands a quad where it is multiplied: 16 operands at once are more than there are registers. */
AEG_INLINE void b_operands(const uint32_t kind, const uint32_t fixed, const uint8_t *codes, uint32_t part, vec *u)
{
    if (fixed == 1)
        return;
    AEG_UNROLL for (uint32_t j = 0; j < AEG_QUADS; j++) operands_of(kind, codes, part, j, &u[j], &u[AEG_QUADS + j]);
}

/* part += product, widened into sum after every `limit` products and after the last. */
AEG_INLINE void add_product(const uint32_t limit, const uint32_t i, const bool last, vec product, vec *part, vec *sum)
{
    *part = i % limit == 0 ? product : _mm256_add_epi16(*part, product);
    if (i % limit != limit - 1 && !last)
        return;
    const vec wide = _mm256_madd_epi16(*part, _mm256_set1_epi16(1));
    *sum = i < limit ? wide : v_add(*sum, wide);
}

AEG_INLINE vec b_dot(const uint32_t kind, const uint32_t fixed, const b_source *source, const vec *u, const int8_t *q,
                     const int32_t *sums, const uint32_t q0, const uint32_t n_quads)
{
    const int32_t offset = aeg_block_shape_of(kind).offset;
    const uint32_t limit = b_limit(kind);
    vec part[2], sum[2], low, high;
    AEG_UNROLL for (uint32_t i = 0; i < n_quads; i++) {
        const vec x = _mm256_set1_epi32(aeg_load32(q + 4 * (q0 + i)));
        const bool last = i == n_quads - 1;
        if (fixed == 1) {
            operands_of(kind, source->codes, source->part, q0 + i, &low, &high);
        } else {
            low = u[q0 + i];
            high = u[AEG_QUADS + q0 + i];
        }
        add_product(limit, i, last, _mm256_maddubs_epi16(low, x), &part[0], &sum[0]);
        if (b_split(kind))
            add_product(limit, i, last, _mm256_maddubs_epi16(high, x), &part[1], &sum[1]);
    }
    const vec dot = b_split(kind) ? v_add(sum[0], v_shl(sum[1], 4)) : sum[0];
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
