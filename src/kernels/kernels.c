/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c - filling the table, level by level. */
#include "kernels/kernels.h"

#include <string.h>

#include "kernels/register.h"

void aeg_kernels_scalar(aeg_kernels *k)
{
#define SET_SCALAR(name, ret, params) k->name = aeg_scalar_##name;
    AEG_KERNEL_LIST(SET_SCALAR)
#undef SET_SCALAR
    aeg_matmul_scalar_register(k);
}

void aeg_kernels_init(aeg_kernels *k, uint32_t cpu)
{
    memset(k, 0, sizeof *k);
    k->cpu = cpu;
    aeg_kernels_scalar(k); /* fills every entry */
    if (cpu & AEG_CPU_NEON)
        aeg_kernels_neon(k); /* each is empty on other architectures, and only overwrites what it has */
    if (cpu & AEG_CPU_AVX2)
        aeg_kernels_avx2(k);
    if (cpu & AEG_CPU_AVX512)
        aeg_kernels_avx512(k);
}

aeg_matmul_fn aeg_kernels_matmul(const aeg_kernels *k, aeg_weight_type type, aeg_act_kind act)
{
    if (aeg_weight_is_block(type))
        return k->blocks[type.kind][act];
    if (type.kind == AEG_W_F8)
        return k->f8;
    return type.kind == AEG_W_AFFINE ? k->affine[type.bits][act] : k->plain[type.kind];
}
