/* SPDX-License-Identifier: Apache-2.0 */
/* avx512/matmul_blocks.c - int16 and f32 activations with the ggml types. */
#include "kernels/avx512/blocks.h"
#include "kernels/register.h"

enum { BLOCKS_F32 = 4 };

/* Columns 0, 1 and 2, 3 of a quad as pairs of 16-bit codes, vpdpwssd. */
AEG_INLINE vec b_dot16(const vec *u, const int16_t *q, uint32_t n_quads, uint32_t offset)
{
    const vec first = _mm512_broadcast_i32x4(_mm_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1));
    const vec second = _mm512_broadcast_i32x4(_mm_setr_epi8(2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1));
    const vec minus = _mm512_set1_epi16((short)offset);
    vec dot = _mm512_setzero_si512();
    for (uint32_t j = 0; j < n_quads; j++) {
        const vec a = _mm512_sub_epi16(_mm512_shuffle_epi8(u[j], first), minus);
        const vec b = _mm512_sub_epi16(_mm512_shuffle_epi8(u[j], second), minus);
        dot = _mm512_dpwssd_epi32(dot, a, _mm512_set1_epi32(aeg_load32(q + 4 * j)));
        dot = _mm512_dpwssd_epi32(dot, b, _mm512_set1_epi32(aeg_load32(q + 4 * j + 2)));
    }
    return dot;
}

#include "kernels/wide/matmul_blocks.inc.h"

void aeg_matmul_avx512_blocks_register(aeg_kernels *k) { b_register(k); }
