/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/register.h - the parts of each level's table. aeg_kernels_<isa>() (in <isa>/ops.c) sets the float ops and
 * calls the matmul part; a part only overwrites the entries it has, and is empty on other architectures.
 * Thread: any. */
#ifndef AEG_KERNELS_REGISTER_H
#define AEG_KERNELS_REGISTER_H

#include <stdbool.h>

#include "kernels/kernels.h"

void aeg_matmul_scalar_register(aeg_kernels *k);
void aeg_matmul_scalar_blocks_register(aeg_kernels *k);
void aeg_matmul_avx2_register(aeg_kernels *k);
void aeg_matmul_avx512_register(aeg_kernels *k);
void aeg_matmul_neon_register(aeg_kernels *k);
/* As on a processor without the dot-product extension; for tests. */
void aeg_matmul_neon_widening_register(aeg_kernels *k);

/* Has this processor the int8 dot products of ARMv8.2 (sdot)? false elsewhere. */
bool aeg_cpu_has_dotprod(void);

/* Every scalar op, by name: aeg_scalar_rmsnorm and so on. A missing one does not link. */
#define AEG_KERNEL_SCALAR(name, ret, params) ret aeg_scalar_##name params;
AEG_KERNEL_LIST(AEG_KERNEL_SCALAR)
#undef AEG_KERNEL_SCALAR

#endif
