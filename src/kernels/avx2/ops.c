/* SPDX-License-Identifier: Apache-2.0 */
/* avx2/ops.c - the float ops of this level. */
#include "kernels/register.h"

void aeg_kernels_avx2(aeg_kernels *k) { aeg_matmul_avx2_register(k); }
