/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/hyper.h - manifold-constrained hyper-connections of four residual streams (Xing4.0): arguments and formulas.
 *
 * The 24 gates of a token: with r = 1 / sqrtf(sum_squares / width + rms_eps) over all four streams,
 *   g_i = fmaf(dots_i * r, scale_k, base_i), k = 0 for i in 0..3 (pre), 1 for 4..7 (post), 2 for 8..23 (the mix)
 *   pre = sigmoid(g), post = 2 * sigmoid(g)
 *   L[d][s] = g_(8 + 4d + s) clamped to +-clamp; M[d][s] = exp(L[d][s] - max over s of L[d][s])
 *   `iters` times: every row / (its sum + eps), then every column / (its sum + eps)     (Sinkhorn)
 * A sum or maximum of four is (0 op 1) op (2 op 3). d is the stream that is written, s the one that is read.
 *
 * The 24 dot products of columns [column, column + n) of all streams: for each stream, ascending, one chain over its columns
 * from 0, d = fmaf(fn[g][s * stride + c], x[s * stride + c], d), which is then added to a sum that began at 0.
 *
 * Into the sublayer: y = pre[0]*x[0], then fmaf(pre[s], x[s], y), s ascending.
 * Back: x[d] = post[d]*y, then fmaf(mix[d][s], old x[s], .), s ascending; all four are read before one is written.
 * Not DeepSeek-V4's: that adds eps to every element, has no clamp and contracts the mix the other way.
 */
#ifndef AEG_KERNELS_HYPER_H
#define AEG_KERNELS_HYPER_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/weights.h"

enum { AEG_HYPER_STREAMS = 4, AEG_HYPER_GATES = 2 * AEG_HYPER_STREAMS + AEG_HYPER_STREAMS * AEG_HYPER_STREAMS };

/* What a connection does with one token. */
typedef struct {
    float pre[AEG_HYPER_STREAMS], post[AEG_HYPER_STREAMS];
    float mix[AEG_HYPER_STREAMS * AEG_HYPER_STREAMS]; /* [to][from] */
} aeg_hyper_gates;

typedef struct {
    const float *dots;           /* [24] of fn with the raw streams */
    const float *base, *scale;   /* [24], [3] */
    float sum_squares;           /* of all streams */
    uint32_t width;              /* their values: 4 * hidden */
    float rms_eps, clamp, eps;
    uint32_t iters;
    aeg_hyper_gates *out;
} aeg_hyper_args;

typedef struct {
    const aeg_weights *fn;       /* [24][4 * stride], F32, F16 or BF16 */
    const float *x;              /* [4][stride] the streams of a token */
    size_t stride;
    uint32_t column, n;          /* n a multiple of 4 */
    float *dots;                 /* out [24] */
} aeg_hyper_dots_args;

#endif
