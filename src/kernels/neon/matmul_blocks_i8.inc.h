/* SPDX-License-Identifier: Apache-2.0 */
/* neon/matmul_blocks_i8.inc.h - int8 activations with the ggml types over quarters of 4 rows; the including file has
 * defined dot_half(), the sum of 4 signed products of 4 rows x 4 columns, and REGISTER. All codes are valid signed
 * bytes once the offset is taken away, so no sum of activations is needed. */
#include "kernels/neon/blocks.h"
#include "kernels/register.h"

enum { N_OPERANDS = AEG_QUADS };

AEG_INLINE void b_operands(const uint32_t kind, const uint32_t fixed, const uint8_t *codes, uint32_t part, vec *u)
{
    const vec offset = v_set8(aeg_block_shape_of(kind).offset);
    (void)fixed;
    b_quads(kind, codes, part, u);
    AEG_UNROLL for (uint32_t j = 0; j < AEG_QUADS; j++) u[j] = v_sub8(u[j], offset);
}

AEG_INLINE vec b_dot(const uint32_t kind, const uint32_t fixed, const b_source *source, const vec *u, const int8_t *q,
                     const int32_t *sums, const uint32_t q0, const uint32_t n_quads)
{
    int8x16_t codes[AEG_QUADS];
    int32x4_t dot = vdupq_n_s32(0);
    (void)kind, (void)fixed, (void)source, (void)sums;
    AEG_UNROLL for (uint32_t j = 0; j < n_quads; j++) codes[j] = vreinterpretq_s8_u8(u[q0 + j]);
    dot = dot_half(dot, codes, vld1q_s8(q + 4 * q0));
    if (n_quads == AEG_QUADS)
        dot = dot_half(dot, codes + 4, vld1q_s8(q + AEG_SUM_COLS));
    return vreinterpretq_u8_s32(dot);
}

#include "kernels/wide/matmul_blocks_i8.inc.h"

AEG_BLOCK_KINDS(B_ONE_AND_SOME)

void REGISTER(aeg_kernels *k)
{
#define SET_KIND(name, kind) k->blocks[kind][AEG_ACT_I8] = name##_i8;
    AEG_BLOCK_KINDS(SET_KIND)
#undef SET_KIND
}
