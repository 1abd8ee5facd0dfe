/* SPDX-License-Identifier: Apache-2.0 */
/* neon/matmul_i8_dot.c - int8 activations with sdot by lane: 16 activations sit in a register and no broadcast is
 * needed. Compiled for ARMv8.2 with dotprod, so nothing here may run before aeg_cpu_has_dotprod() said yes. */
#include "kernels/neon/matmul.h"

AEG_INLINE int32x4_t dot_quads(int32x4_t dot, const int8x16_t *u, int8x16_t x0, int8x16_t x1)
{
    dot = vdotq_laneq_s32(dot, u[0], x0, 0);
    dot = vdotq_laneq_s32(dot, u[1], x0, 1);
    dot = vdotq_laneq_s32(dot, u[2], x0, 2);
    dot = vdotq_laneq_s32(dot, u[3], x0, 3);
    dot = vdotq_laneq_s32(dot, u[4], x1, 0);
    dot = vdotq_laneq_s32(dot, u[5], x1, 1);
    dot = vdotq_laneq_s32(dot, u[6], x1, 2);
    return vdotq_laneq_s32(dot, u[7], x1, 3);
}

#define REGISTER aeg_matmul_neon_i8_dot_register
#include "kernels/neon/matmul_i8.inc.h"
