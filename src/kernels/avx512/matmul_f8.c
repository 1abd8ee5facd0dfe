/* SPDX-License-Identifier: Apache-2.0 */
/* avx512/matmul_f8.c - F8 weights and f32 activations. */
#include "kernels/avx512/blocks.h"
#include "kernels/register.h"

enum { F8_BLOCKS = 8, F8_TOKENS = 8 };

/* Sign-extended and shifted, the sign stands at bit 15 and once more at 14, which is taken away: a binary16. */
AEG_INLINE void f8_codes(const uint8_t *p, fvec *out)
{
    const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
    out[0] = _mm512_cvtph_ps(_mm256_and_si256(_mm256_slli_epi16(wide, 7), _mm256_set1_epi16((short)0xbfff)));
}

AEG_INLINE fvec f_load(const uint8_t *p) { return aeg_load_floats(AEG_W_F32, p); }

#include "kernels/wide/matmul_f8.inc.h"

void aeg_matmul_avx512_f8_register(aeg_kernels *k) { k->f8 = f8; }
