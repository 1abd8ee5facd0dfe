/* SPDX-License-Identifier: Apache-2.0 */
/* neon/matmul_blocks_i8_dot.c - int8 activations with the ggml types, sdot by lane. Compiled for ARMv8.2 with dotprod, so
 * nothing here may run before aeg_cpu_has_dotprod() said yes. */
#include "kernels/neon/matmul.h"

AEG_INLINE int32x4_t dot_half(int32x4_t dot, const int8x16_t *u, int8x16_t x)
{
    dot = vdotq_laneq_s32(dot, u[0], x, 0);
    dot = vdotq_laneq_s32(dot, u[1], x, 1);
    dot = vdotq_laneq_s32(dot, u[2], x, 2);
    return vdotq_laneq_s32(dot, u[3], x, 3);
}

#define REGISTER aeg_matmul_neon_blocks_i8_dot_register
#include "kernels/neon/matmul_blocks_i8.inc.h"
