/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/register.h"

#if defined(__AVX512F__)

#include "kernels/avx512/matmul.h"

void aeg_matmul_avx512_register(aeg_kernels *k)
{
    aeg_matmul_avx512_i8_register(k);
    aeg_matmul_avx512_i16_register(k);
    aeg_matmul_avx512_f32_register(k);
    aeg_matmul_avx512_plain_register(k);
    aeg_matmul_avx512_blocks_i8_register(k);
    aeg_matmul_avx512_blocks_register(k);
    aeg_matmul_avx512_f8_register(k);
}

#else

void aeg_matmul_avx512_register(aeg_kernels *k) { (void)k; }

#endif
