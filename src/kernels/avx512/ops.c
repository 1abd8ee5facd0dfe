/* SPDX-License-Identifier: Apache-2.0 */
/* avx512/ops.c - the float ops of this level. */
#include "kernels/register.h"

void aeg_kernels_avx512(aeg_kernels *k) { aeg_matmul_avx512_register(k); }
