/* SPDX-License-Identifier: Apache-2.0 */
/* neon/ops.c - the float ops of this level. */
#include "kernels/register.h"

void aeg_kernels_neon(aeg_kernels *k) { aeg_matmul_neon_register(k); }
