/* SPDX-License-Identifier: Apache-2.0 */
/* avx2/matmul_blocks.c - int16 and f32 activations with the ggml types. */
#include "kernels/avx2/blocks.h"
#include "kernels/register.h"

enum { BLOCKS_F32 = 2 };

/* Columns 0, 1 and 2, 3 of a quad as pairs of 16-bit codes, vpmaddwd. */
AEG_INLINE vec b_dot16(const vec *u, const int16_t *q, uint32_t n_quads, uint32_t offset)
{
    const vec first = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1));
    const vec second = _mm256_broadcastsi128_si256(_mm_setr_epi8(2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1));
    const vec minus = _mm256_set1_epi16((short)offset);
    vec dot = _mm256_setzero_si256();
    for (uint32_t j = 0; j < n_quads; j++) {
        const vec a = _mm256_sub_epi16(_mm256_shuffle_epi8(u[j], first), minus);
        const vec b = _mm256_sub_epi16(_mm256_shuffle_epi8(u[j], second), minus);
        dot = v_add(dot, _mm256_madd_epi16(a, _mm256_set1_epi32(aeg_load32(q + 4 * j))));
        dot = v_add(dot, _mm256_madd_epi16(b, _mm256_set1_epi32(aeg_load32(q + 4 * j + 2))));
    }
    return dot;
}

#include "kernels/wide/matmul_blocks.inc.h"

void aeg_matmul_avx2_blocks_register(aeg_kernels *k) { b_register(k); }
