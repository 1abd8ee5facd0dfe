/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/register.h"

#if defined(__AVX2__)

#include "kernels/avx2/matmul.h"

void aeg_matmul_avx2_register(aeg_kernels *k)
{
    aeg_matmul_avx2_i8_register(k);
    aeg_matmul_avx2_i16_register(k);
    aeg_matmul_avx2_f32_register(k);
    aeg_matmul_avx2_plain_register(k);
    aeg_matmul_avx2_blocks_i8_register(k);
    aeg_matmul_avx2_blocks_register(k);
    aeg_matmul_avx2_f8_register(k);
}

#else

void aeg_matmul_avx2_register(aeg_kernels *k) { (void)k; }

#endif
