/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/register.h"

void aeg_matmul_avx2_register(aeg_kernels *k) { (void)k; }
