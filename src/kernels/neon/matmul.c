/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/register.h"

#if defined(__aarch64__)

#include "kernels/neon/matmul.h"

void aeg_matmul_neon_widening_register(aeg_kernels *k)
{
    aeg_matmul_neon_i8_register(k);
    aeg_matmul_neon_i16_register(k);
    aeg_matmul_neon_f32_register(k);
    aeg_matmul_neon_plain_register(k);
    aeg_matmul_neon_blocks_i8_register(k);
    aeg_matmul_neon_blocks_register(k);
    aeg_matmul_neon_f8_register(k);
}

void aeg_matmul_neon_register(aeg_kernels *k)
{
    aeg_matmul_neon_widening_register(k);
    if (aeg_cpu_has_dotprod()) {
        aeg_matmul_neon_i8_dot_register(k);
        aeg_matmul_neon_blocks_i8_dot_register(k);
    }
}

#else

void aeg_matmul_neon_widening_register(aeg_kernels *k) { (void)k; }

void aeg_matmul_neon_register(aeg_kernels *k) { (void)k; }

#endif
