/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/register.h - the parts of each level's table; kernels/<isa>/<isa>.c calls them. A part only overwrites
 * the entries it has, and is empty on other architectures. Thread: any. */
#ifndef AEG_KERNELS_REGISTER_H
#define AEG_KERNELS_REGISTER_H

#include "kernels/kernels.h"

void aeg_matmul_scalar_register(aeg_kernels *k);
void aeg_matmul_avx2_register(aeg_kernels *k);
void aeg_matmul_avx512_register(aeg_kernels *k);
void aeg_matmul_neon_register(aeg_kernels *k);

#endif
